# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint on a sealed store: sharded, sealed as one, without pickle.

`torch.distributed.checkpoint.save` and `load` take `SealedStorageWriter` and `SealedStorageReader`
as storage. Each process writes its own files, safetensors all of them; the coordinator writes the
list of parts as plain data, compares every file with its writer's digests, and makes the folder the
newest checkpoint of the run's thread. A save that ends before that is not a checkpoint: the one
before stays the newest.

A load verifies everything in the same read, in each process, for any number of processes. Errors
travel to all processes inside torch's `CheckpointException`, whose `failures` hold them.

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
from sealpoint_models._torch_dcp_reader import SafeFileSystemReader

__all__ = ["SafeFileSystemReader", "SealedStorageReader", "SealedStorageWriter"]
