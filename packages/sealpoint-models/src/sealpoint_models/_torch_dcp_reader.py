# SPDX-License-Identifier: Apache-2.0
"""Reading checkpoints of torch's own distributed writer, without running anything in them.

The metadata are a pickle, and so is each value, in a file of `torch.save`; all of them are read as
data, by closed tables. Nobody vouches for such a folder: anyone who can write there controls its
numbers, but nothing else. Checkpoints of processes that did not coordinate, with metadata for each
of them, are not read.
"""

import os
from typing import Any

from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner
from torch.futures import Future

from sealpoint.errors import ModelLimitExceeded, ModelMalformed, SealpointError
from sealpoint.limits import MODEL_PICKLE_BYTES_MAX
from sealpoint_models._folder_reader import ReadFolder
from sealpoint_models._load_targets import (
    FolderReader,
    RefusedMetadata,
    as_chunk,
    done_future,
    give_tensor,
    give_value,
)
from sealpoint_models._sealed_folder import load_pt_bytes
from sealpoint_models._torch_dcp_metadata import TorchPlace, parse_torch_metadata
from sealpoint_models.scan import Unknown

_STOCK_METADATA = ".metadata"


class SafeFileSystemReader(FolderReader):
    """Reads a checkpoint of torch's `FileSystemWriter`, in place of its `FileSystemReader`.

    Args:
        path: The folder; `checkpoint_id=` of a load takes its place.
        unknown: The treatment of names in values that are in no table, as for `load_checkpoint`.

    Errors of a load, inside of a `CheckpointException`:
        GlobalNotAllowed: A pickle in it names something that is not tensors and plain data.
        ModelError: It cannot be read, or is not what torch writes.
    """

    def __init__(self, path: str | os.PathLike[str], *, unknown: Unknown = "refuse") -> None:
        super().__init__(path)
        self._unknown: Unknown = unknown

    def read_metadata(self, *_args: Any) -> Metadata:
        """The parts of the checkpoint.

        Raises:
            ModelError: On access: it was refused.
        """
        try:
            with ReadFolder(self._path) as folder:
                with folder.open(_STOCK_METADATA) as file:
                    if file.size > MODEL_PICKLE_BYTES_MAX:
                        raise ModelLimitExceeded(
                            f"{file.what}: expected at most {MODEL_PICKLE_BYTES_MAX} bytes, found "
                            f"{file.size}"
                        )
                    metadata = parse_torch_metadata(file.read(0, file.size), file.what)
                self._check_files(folder, metadata)
        except SealpointError as exc:
            return RefusedMetadata(exc)
        return metadata

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the parts that the plan requests."""
        with ReadFolder(self._path) as folder:
            for item in plan.items:
                value = self._load(folder, item.storage_index)
                if item.type == LoadItemType.BYTE_IO:
                    give_value(planner, item, value)
                else:
                    what = str(self._path)
                    chunk = as_chunk(value, self._checkpoint, item.storage_index, what)
                    give_tensor(planner, item, chunk)
        return done_future()

    def _load(self, folder: ReadFolder, index: MetadataIndex) -> Any:
        """The object that `torch.save` wrote at one place."""
        place: TorchPlace = self._checkpoint.storage_data[index]
        with folder.open(place.file) as file:
            data = file.read(place.offset, place.length)
        what = f"{self._path}/{place.file}: {index.fqn}"
        return load_pt_bytes(data, what, "cpu", self._unknown)

    def _check_files(self, folder: ReadFolder, metadata: Metadata) -> None:
        """Check that the files are as long as the places in them need."""
        ends: dict[str, int] = {}
        for place in metadata.storage_data.values():
            ends[place.file] = max(ends.get(place.file, 0), place.offset + place.length)
        for name, end in ends.items():
            with folder.open(name) as file:
                if file.size < end:
                    raise ModelMalformed(
                        f"{file.what}: expected at least {end} bytes, found {file.size}"
                    )
