# SPDX-License-Identifier: Apache-2.0
"""Reading distributed checkpoints that a thread vouches for, by any number of processes.

The order of a load, in each process: (1) the thread's newest checkpoint, (2) the list of files,
(3) the metadata, (4) the chunks that the plan asks for. All bytes are hashed as they are read, and
handed on only when their digests are those of the thread. What is not asked for is not read.
"""

import os
from pathlib import Path
from typing import Any

from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from sealpoint.api import Store
from sealpoint.errors import ModelMalformed, SealpointError, UsageError
from sealpoint.models._load_targets import (
    RefusedMetadata,
    as_chunk,
    done_future,
    give_tensor,
    give_value,
    is_path,
)
from sealpoint.models._sealed_folder import ModelFolder, open_folder, required_run
from sealpoint.models._shard_metadata import METADATA_FILE, entry_name, read_metadata
from sealpoint.store import CheckpointRef


class SealedStorageReader(StorageReader):
    """Reads distributed checkpoints that a thread vouches for, and verifies all that it reads.

    The number of processes may be another than that of the save.

    Args:
        path: The folder; `checkpoint_id=` of a load takes its place.
        store: An open store that has to vouch for it; it may be open for reading only.
        thread: The thread of the training run in it.
        ref: The checkpoint whose folder is meant; without it the newest one.

    Errors of a load, inside of a `CheckpointException`:
        Edited, RolledBack, FileNotSealed: The folder is not the one that was sealed.
        ModelError: It cannot be read, or is not one of `SealedStorageWriter`.
        SealpointError: Whatever `Thread.load` raises.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        store: Store,
        thread: str,
        ref: str | CheckpointRef | None = None,
    ) -> None:
        super().__init__()
        self._run = required_run(store, thread)
        self._path = Path(path)
        self._which = ref
        self._folder: ModelFolder | None = None
        self._checkpoint = Metadata({})

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self._path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin another load."""
        self.close()
        if checkpoint_id is not None:
            self._path = Path(checkpoint_id)

    def close(self) -> None:
        """Close the folder, as a load does at its end; closing twice is allowed."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def read_metadata(self, *_args: Any) -> Metadata:
        """What the checkpoint consists of, verified.

        Raises:
            Edited, RolledBack, FileNotSealed: When it is looked into: the folder is not the one
                that was sealed.
        """
        self.close()
        try:
            self._folder = open_folder(
                self._path, store=self._run.store, thread=self._run.name, ref=self._which
            )
            if METADATA_FILE not in self._folder.files:
                raise ModelMalformed(
                    f"{self._path}: expected a checkpoint of SealedStorageWriter, found another "
                    "folder"
                )
            return read_metadata(self._folder.load_file(METADATA_FILE), str(self._path))
        except SealpointError as exc:
            self.close()
            return RefusedMetadata(exc)

    def set_up_storage_reader(
        self,
        metadata: Metadata,
        is_coordinator: bool,  # noqa: ARG002, FBT001 (torch's signature)
        *_args: Any,
        **_kwargs: Any,
    ) -> None:
        """Take the metadata of this load.

        Raises:
            Edited, RolledBack, FileNotSealed: The folder is not the one that was sealed.
        """
        if isinstance(metadata, RefusedMetadata):
            raise metadata.refusal
        self._checkpoint = metadata

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read what the plan asks for; nothing is handed on before it was verified."""
        if self._folder is None:
            raise UsageError("read_data: expected read_metadata before it, found no open folder")
        by_file: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            by_file.setdefault(self._checkpoint.storage_data[item.storage_index], []).append(item)
        try:
            for file, items in sorted(by_file.items()):
                if items[0].type == LoadItemType.BYTE_IO:
                    values = self._folder.load_file(file)
                    for item in items:
                        give_value(planner, item, values[item.storage_index.fqn])
                else:
                    self._read_tensors(self._folder, file, items, planner)
        finally:
            self.close()
        return done_future()

    def _read_tensors(
        self, folder: ModelFolder, file: str, items: list[ReadItem], planner: LoadPlanner
    ) -> None:
        by_chunk: dict[str, list[ReadItem]] = {}
        for item in items:
            by_chunk.setdefault(entry_name(item.storage_index), []).append(item)
        with folder.open(file) as model:
            for name, wanted in by_chunk.items():
                index = wanted[0].storage_index
                chunk = as_chunk(model.tensor(name), self._checkpoint, index, str(self._path))
                for item in wanted:
                    give_tensor(planner, item, chunk)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it is a path."""
        return is_path(checkpoint_id)
