# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint through us: sharded, sealed as one, and without a pickle on disk.

`SealedStorageWriter` and `SealedStorageReader` are what `torch.distributed.checkpoint.save` and
`load` take as storage. Each process writes its own files, safetensors all of them; the coordinator
writes what the checkpoint consists of as plain data, compares every file with what its writer
wrote, and makes the folder the newest checkpoint of the run's thread. A save that ends before
that is no checkpoint: the one before stays the newest.

A load verifies what it reads in the same read, in each process, however many there are. Errors
travel to all processes inside of torch's `CheckpointException`, whose `failures` hold them.

`SafeFileSystemReader` reads what torch's own `FileSystemWriter` wrote, whose metadata and values
are pickles, as data, and runs nothing. Nobody vouches for such a folder.

The processes of a group trust each other: torch itself sends plans between them as pickles.
"""

from sealpoint.errors import ExtraMissing

try:
    import torch.distributed.checkpoint  # noqa: F401 (what all below needs)
except ModuleNotFoundError as exc:
    raise ExtraMissing(
        "sealpoint_models.distributed: expected torch, found it missing: "
        "pip install 'sealpoint[models]'"
    ) from exc

from sealpoint_models._shard_reader import SealedStorageReader
from sealpoint_models._shard_writer import SealedStorageWriter
from sealpoint_models._stock_reader import SafeFileSystemReader

__all__ = ["SafeFileSystemReader", "SealedStorageReader", "SealedStorageWriter"]
