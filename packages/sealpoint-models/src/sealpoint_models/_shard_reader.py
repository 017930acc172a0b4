# SPDX-License-Identifier: Apache-2.0
"""Reading distributed checkpoints that a thread vouches for, by any number of processes.

The order of a load, in each process: (1) the thread's newest checkpoint, (2) the list of files,
(3) the metadata, (4) the chunks that the plan asks for. All bytes are hashed as they are read, and
passed to torch only when their digests are those of the thread. Other chunks are not read.
"""

import os
from typing import Any

from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from torch.futures import Future

from sealpoint.api import Store
from sealpoint.errors import ModelMalformed, SealpointError, UsageError
from sealpoint.store import CheckpointRef
from sealpoint_models._load_targets import (
    FolderReader,
    RefusedMetadata,
    as_chunk,
    done_future,
    give_tensor,
    give_value,
)
from sealpoint_models._sealed_folder import ModelFolder, open_folder, required_run
from sealpoint_models._shard_metadata import METADATA_FILE, entry_name, read_metadata


class SealedStorageReader(FolderReader):
    """Reads distributed checkpoints that a thread vouches for, and verifies all that it reads.

    A load may have another number of processes than the save.

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
        super().__init__(path)
        self._run = required_run(store, thread)
        self._which = ref
        self._folder: ModelFolder | None = None

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin another load."""
        self.close()
        super().reset(checkpoint_id)

    def close(self) -> None:
        """Close the folder, as a load does at its end; closing twice is allowed."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def read_metadata(self, *_args: Any) -> Metadata:
        """The parts of the checkpoint, verified.

        Raises:
            Edited, RolledBack, FileNotSealed: On access: the folder is not the one that was sealed.
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

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the chunks of the plan; each is verified before torch gets it."""
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
