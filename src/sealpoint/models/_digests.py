# SPDX-License-Identifier: Apache-2.0
"""The digest tree of a model file: pieces, tensors, the file. BLAKE3, a context for each level.

A tensor is cut into pieces of `PIECE_BYTES`, so that several workers can hash it while it is read
or written, in any order; its digest is that of its length and of the digests of its pieces. The
root is the digest of the header's digest and of all tensors', in the order of the file. A tensor
is verified without reading the others. `docs/formats/model-file.md` has the details.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sealpoint.models._extras import the_blake3

__all__ = ["PIECE_BYTES", "FileDigests", "header_digest", "piece_hasher", "tensor_digest"]

PIECE_BYTES = 8 << 20
"""How long a piece is; the last one of a tensor may be shorter. Part of the format."""

_CONTEXT = "sealpoint 2026-11 model {} v1"
_PIECE, _TENSOR, _HEADER, _FILE = map(_CONTEXT.format, ("piece", "tensor", "header", "file"))


def _hasher(context: str) -> Any:
    return the_blake3()(derive_key_context=context)


def piece_hasher() -> Any:
    """Hashes one piece: `update` as often as there are bytes, then `digest`."""
    return _hasher(_PIECE)


def tensor_digest(size: int, pieces: Iterable[bytes]) -> bytes:
    """The digest of a tensor of `size` bytes from those of its pieces, in order."""
    hasher = _hasher(_TENSOR)
    hasher.update(size.to_bytes(8, "little"))
    for piece in pieces:
        hasher.update(piece)
    return bytes(hasher.digest())


def header_digest(raw: bytes) -> bytes:
    """The digest of a header with the length in front."""
    hasher = _hasher(_HEADER)
    hasher.update(raw)
    return bytes(hasher.digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDigests:
    """The digests of one file."""

    size: int
    """How long the file is."""
    header: bytes
    tensors: Mapping[str, bytes]
    """By name, in the order of the file."""

    @property
    def root(self) -> bytes:
        """What stands for the whole file."""
        hasher = _hasher(_FILE)
        hasher.update(self.header)
        for digest in self.tensors.values():
            hasher.update(digest)
        return bytes(hasher.digest())
