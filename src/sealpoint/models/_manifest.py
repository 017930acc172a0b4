# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint of a training run holds: the digests of one model file.

It is plain data, so that every reader of the store can show it. The root stands in the metadata
as well, where it is found without loading the checkpoint.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sealpoint.api import Store
from sealpoint.errors import ModelMalformed
from sealpoint.models._digests import FileDigests
from sealpoint.store import CheckpointRef

__all__ = [
    "METADATA_KEY",
    "SealedFile",
    "parse_manifest",
    "root_in",
    "sealed_files",
    "write_manifest",
    "write_metadata",
]

METADATA_KEY = "model"
"""Where the metadata of a checkpoint speaks of its file."""

_FORMAT = "sealpoint.model.v1"
_KEYS = {"format", "size", "header", "tensors"}
_DIGITS = 64


def write_manifest(digests: FileDigests) -> dict[str, Any]:
    """The state of the checkpoint that vouches for a file."""
    return {
        "format": _FORMAT,
        "size": digests.size,
        "header": digests.header.hex(),
        "tensors": {name: digest.hex() for name, digest in digests.tensors.items()},
    }


def write_metadata(digests: FileDigests, file: str) -> dict[str, Any]:
    """What its metadata says of the file; the name is only for people."""
    return {
        "file": file,
        "root": digests.root.hex(),
        "size": digests.size,
        "tensors": len(digests.tensors),
    }


def root_in(metadata: Mapping[str, Any]) -> str | None:
    """The root that a checkpoint's metadata names, if it vouches for a model file."""
    found = metadata.get(METADATA_KEY)
    root = found.get("root") if isinstance(found, Mapping) else None
    return root if isinstance(root, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFile:
    """A model file that a checkpoint vouches for, as its metadata describes it."""

    ref: CheckpointRef
    """The checkpoint."""
    file: str
    """What the file was called when it was saved; only for people."""
    root: str
    """The root of its digests."""
    size: int
    """How many bytes it has."""
    tensors: int
    """How many tensors it has."""
    metadata: dict[str, Any]
    """What else was saved beside it."""


def sealed_files(store: Store, thread: str) -> Iterator[SealedFile]:
    """The model files that a thread vouches for, newest first; no file is looked at.

    Checkpoints of anything else are left out.

    Raises:
        SealpointError: Whatever `Thread.history` raises.
    """
    for ref in store.thread(thread).history():
        found = ref.metadata.get(METADATA_KEY)
        match found:
            case {"file": str(file), "root": str(root), "size": int(size), "tensors": int(tensors)}:
                rest = {key: value for key, value in ref.metadata.items() if key != METADATA_KEY}
                yield SealedFile(
                    ref=ref, file=file, root=root, size=size, tensors=tensors, metadata=rest
                )
            case _:
                pass


def parse_manifest(state: Any, what: str) -> FileDigests:
    """The digests that a checkpoint holds.

    Args:
        state: Its state.
        what: What the checkpoint is called.

    Raises:
        ModelMalformed: It is not a checkpoint of a model file.
    """
    try:
        if type(state) is dict and state.keys() == _KEYS and state["format"] == _FORMAT:
            digests = FileDigests(
                size=state["size"],
                header=_digest(state["header"]),
                tensors={name: _digest(text) for name, text in state["tensors"].items()},
            )
            if type(digests.size) is int and write_manifest(digests) == state:
                return digests
    except (ValueError, TypeError, AttributeError):
        pass
    raise ModelMalformed(
        f"{what}: expected a checkpoint of a model file, found another state",
        hint="Give each training run a thread of its own, which only save_checkpoint writes to.",
    )


def _digest(text: str) -> bytes:
    if len(text) != _DIGITS:
        raise ValueError(text)
    return bytes.fromhex(text)
