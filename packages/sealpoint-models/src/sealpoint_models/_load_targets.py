# SPDX-License-Identifier: Apache-2.0
"""The targets of a torch.distributed.checkpoint planner, and the shared parts of readers.

Tensors use the planner's own interface. Other values do not: torch's planners take them as pickles
only, and run them. They are put where the default planner puts them.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint._traverse import set_element
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, ReadItem
from torch.distributed.checkpoint.storage import StorageReader
from torch.futures import Future

from sealpoint.errors import ModelMalformed, SealpointError, UsageError


def give_tensor(planner: LoadPlanner, item: ReadItem, chunk: torch.Tensor) -> None:
    """Copy the part of a chunk that an item requests to the planner's target."""
    part = chunk
    for dimension, (start, length) in enumerate(
        zip(item.storage_offsets, item.lengths, strict=True)
    ):
        part = part.narrow(dimension, start, length)
    target = planner.resolve_tensor(item).detach()
    target.copy_(part)
    planner.commit_tensor(item, target)


def give_value(planner: LoadPlanner, item: ReadItem, value: Any) -> None:
    """Put a value at the planner's target: `load_bytes` itself takes only pickles, and runs them.

    Raises:
        UsageError: The planner has another way.
    """
    name = item.dest_index.fqn
    load_bytes: Callable[..., Any] = type(planner).load_bytes
    if not isinstance(planner, DefaultLoadPlanner) or (
        load_bytes is not DefaultLoadPlanner.load_bytes
    ):
        raise UsageError(
            f"planner: expected the load_bytes of DefaultLoadPlanner, found that of "
            f"{type(planner).__name__}",
            hint="Use a planner that leaves load_bytes as it is.",
        )
    if planner.flatten_state_dict:
        set_element(planner.original_state_dict, planner.mappings[name], value)
    else:
        planner.state_dict[name] = value


class RefusedMetadata(Metadata):
    """A placeholder for refused metadata: any access raises the refusal.

    torch takes an error of `read_metadata` for a folder of another kind, and hides it. This one
    is raised a step later, where torch hands errors on.
    """

    def __init__(self, refusal: SealpointError) -> None:
        self.refusal = refusal

    @property
    def state_dict_metadata(self) -> dict[str, Any]:  # type: ignore[override]
        """Raise the refusal."""
        raise self.refusal


def as_chunk(found: Any, metadata: Metadata, index: MetadataIndex, what: str) -> Any:
    """A tensor of a file in its saved type: some types are stored as another one."""
    entry = metadata.state_dict_metadata[index.fqn]
    if isinstance(entry, TensorStorageMetadata) and type(found) is torch.Tensor:
        for chunk in entry.chunks:
            size = chunk.sizes.numel() * entry.properties.dtype.itemsize
            if chunk.offsets == index.offset and found.nbytes == size:
                return found.reshape(-1).view(entry.properties.dtype).reshape(chunk.sizes)
    raise ModelMalformed(f"{what}: {index.fqn}: expected a chunk of the size that was planned")


def is_path(checkpoint_id: str | os.PathLike[str]) -> bool:
    """Whether a name of a checkpoint is a path, and no URL."""
    return "://" not in os.fspath(checkpoint_id)


class FolderReader(StorageReader):
    """The shared parts of readers of a folder: its path, its metadata, and unchanged plans.

    Args:
        path: The folder; `checkpoint_id=` of a load takes its place.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._path = Path(path)
        self._checkpoint = Metadata({})

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self._path

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begin another load."""
        if checkpoint_id is not None:
            self._path = Path(checkpoint_id)

    def set_up_storage_reader(
        self,
        metadata: Metadata,
        is_coordinator: bool,  # noqa: ARG002, FBT001 (torch's signature)
        *_args: Any,
        **_kwargs: Any,
    ) -> None:
        """Take the metadata of this load.

        Raises:
            SealpointError: `read_metadata` refused them.
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

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it is a path."""
        return is_path(checkpoint_id)


def done_future() -> Future[None]:
    """The completed future that torch waits for."""
    done: Future[None] = Future()
    done.set_result(None)
    return done
