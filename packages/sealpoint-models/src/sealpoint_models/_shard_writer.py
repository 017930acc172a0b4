# SPDX-License-Identifier: Apache-2.0
"""Writing distributed checkpoints: each process its own files, then all of them sealed as one.

The order of a save: (1) the coordinator makes the folder; (2) each process writes its files,
durably, and reports their digests; (3) the coordinator writes the metadata, and (4) compares the
bytes of every file with what was reported; (5) the folder becomes the newest checkpoint of the
thread. Until then it is none, and the one before stays the newest.

No value is pickled: a value that the codec of model files does not accept is refused.
"""

import dataclasses
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
from torch.futures import Future

from sealpoint.api import Store
from sealpoint.errors import (
    ModelMalformed,
    TypeNotAllowed,
    UnknownThread,
    UsageError,
    ValueNotAllowed,
)
from sealpoint.store import CheckpointRef
from sealpoint_models._device_placement import raw_bytes
from sealpoint_models._file_manifest import METADATA_KEY
from sealpoint_models._file_reader import unreadable
from sealpoint_models._folder_manifest import save_folder_manifest, sealed_folders
from sealpoint_models._folder_reader import SAFETENSORS, ReadFolder
from sealpoint_models._load_targets import is_path
from sealpoint_models._sealed_folder import required_run
from sealpoint_models._shard_metadata import (
    METADATA_FILE,
    entry_name,
    is_saved_type,
    write_metadata,
)
from sealpoint_models._state_flattening import TensorEntry
from sealpoint_models._tensor_entries import entries_of_state, write_file
from sealpoint_models.scan._safetensors import CARRIERS, name_fault

_VALUES = f".values{SAFETENSORS}"
_TEXTS = {"format": "pt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _WrittenPart:
    """The file of an item, and the digests of that file when it was written."""

    file: str
    root: bytes


class SealedStorageWriter(StorageWriter):
    """Writes distributed checkpoints, each a folder that is sealed as one.

    Args:
        path: The folder; `checkpoint_id=` of a save takes its place.
        store: An open store that vouches for the folders. Processes other than the coordinator
            may have opened it for reading.
        thread: The thread of this training run in it.
        metadata: A JSON object that the store keeps with each checkpoint, such as the step.

    Errors of a save, inside of a `CheckpointException`:
        UsageError: A checkpoint of this name was sealed before, or processes do not coordinate.
        TypeNotAllowed, ValueNotAllowed: A value is none that a file can hold.
        ModelMalformed: A file is not what its process wrote, or is not there.
        SealpointError: Whatever `Thread.save` raises.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        store: Store,
        thread: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._run = required_run(store, thread)
        if metadata is not None and METADATA_KEY in metadata:
            raise UsageError(f"metadata: expected no key {METADATA_KEY!r}, which is ours")
        self._metadata = metadata
        self._path = Path(path)
        self._ref: CheckpointRef | None = None

    @property
    def ref(self) -> CheckpointRef | None:
        """The checkpoint of the last save, in the coordinator; None before, and elsewhere."""
        return self._ref

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self._path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin another checkpoint."""
        if checkpoint_id is not None:
            self._path = Path(checkpoint_id)
        self._ref = None

    def set_up_storage_writer(self, is_coordinator: bool, *_args: Any, **kwargs: Any) -> None:  # noqa: FBT001 (torch's signature)
        """Make the folder, before any process writes to it."""
        if not kwargs.get("use_collectives", True):
            raise UsageError("use_collectives: expected that processes coordinate, found False")
        self._ref = None
        if is_coordinator:
            self._make_room()

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Number the processes, so that each has files of its own."""
        return [dataclasses.replace(plan, storage_data=number) for number, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the files of this process, durably."""
        stem = f"rank-{plan.storage_data:05}"
        tensors = [item for item in plan.items if item.type != WriteItemType.BYTE_IO]
        values = [item for item in plan.items if item.type == WriteItemType.BYTE_IO]
        results: list[WriteResult] = []
        if tensors:
            entries = [_entry(item, planner) for item in tensors]
            results += self._write(f"{stem}{SAFETENSORS}", tensors, entries, _TEXTS)
        if values:
            state = {item.index.fqn: _value(item, planner) for item in values}
            results += self._write(f"{stem}{_VALUES}", values, *entries_of_state(state))
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the metadata, compare all files with what was written, and seal the folder."""
        written = {result.index: result.storage_data for part in results for result in part}
        roots = {part.file: part.root for part in written.values()}
        places = {index: part.file for index, part in written.items()}
        entries, texts = entries_of_state(write_metadata(metadata, places))
        roots[METADATA_FILE] = write_file(self._path / METADATA_FILE, entries, texts).root
        with ReadFolder(self._path) as folder:
            digests = folder.digests(durable=True)
        found = {name: each.root for name, each in digests.files.items()}
        if found != roots or digests.directories:
            differing = sorted(
                {name for name, _ in found.items() ^ roots.items()} | {*digests.directories}
            )
            raise ModelMalformed(
                f"{self._path}: expected the files of all processes, found {differing[0]!r} "
                "changed or added",
                hint="Save to a directory that all processes share, and nobody else writes to.",
            )
        self._ref = save_folder_manifest(
            self._run, digests, self._path.absolute().name, self._metadata
        )
        metadata.storage_data = places

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it is a path."""
        return is_path(checkpoint_id)

    def _write(
        self,
        file: str,
        items: list[WriteItem],
        entries: list[TensorEntry],
        texts: Mapping[str, str],
    ) -> list[WriteResult]:
        digests = write_file(self._path / file, entries, texts)
        part = _WrittenPart(file=file, root=digests.root)
        return [
            WriteResult(index=item.index, size_in_bytes=digests.size, storage_data=part)
            for item in items
        ]

    def _make_room(self) -> None:
        """An empty folder, durably; remains of a killed save are moved aside.

        A folder that was sealed is left alone: the run may have to go back to it.
        """
        name = self._path.absolute().name
        try:
            planted = self._path.is_symlink()  # files would be written to wherever it leads
            if planted or (self._path.exists() and any(self._path.iterdir())):
                if self._was_sealed(name):
                    raise UsageError(
                        f"{self._path}: expected no checkpoint of this name, found a sealed one",
                        hint="Save each checkpoint into a folder of its own, such as step-100.",
                    )
                self._path.rename(self._path.with_name(f"{name}.unsealed-{secrets.token_hex(4)}"))
            self._path.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise unreadable(str(self._path), exc) from exc

    def _was_sealed(self, name: str) -> bool:
        try:
            folders = sealed_folders(self._run.store, self._run.name)
            return any(each.folder == name for each in folders)
        except UnknownThread:  # the anchor has never seen this run: it is the first save
            return False


def _entry(item: WriteItem, planner: SavePlanner) -> TensorEntry:
    """A chunk of a tensor as it will be in the file."""
    name = entry_name(item.index)
    tensor = planner.resolve_data(item)
    if not isinstance(tensor, torch.Tensor):
        raise TypeNotAllowed(f"{item.index.fqn}: expected a tensor, found {type(tensor).__name__}")
    plain = tensor.detach()
    if type(plain) is not torch.Tensor:
        raise TypeNotAllowed(
            f"{item.index.fqn}: expected a plain tensor, found {type(plain).__name__}",
            hint="Save what it is made of as tensors of their own.",
        )
    dense = plain.layout is torch.strided and plain.device.type != "meta"
    if not dense or not is_saved_type(plain.dtype) or name_fault(name) is not None:
        raise ValueNotAllowed(
            f"{item.index.fqn}: expected a dense tensor with elements, and a name that a file can "
            "hold"
        )
    carrier = CARRIERS[str(plain.dtype).removeprefix("torch.")]
    return TensorEntry(
        name=name,
        element=carrier.element,
        shape=(*plain.shape, 2) if carrier.pair else tuple(plain.shape),
        source=lambda: raw_bytes(torch, plain.resolve_conj().resolve_neg()),
    )


def _value(item: WriteItem, planner: SavePlanner) -> Any:
    """The value itself if it is not a tensor: the planner would return a pickle of it."""
    if not isinstance(planner, DefaultSavePlanner):
        raise UsageError(
            f"planner: expected a DefaultSavePlanner, found {type(planner).__name__}",
            hint="Derive the planner from torch.distributed.checkpoint.DefaultSavePlanner.",
        )
    return planner.lookup_object(item.index)
