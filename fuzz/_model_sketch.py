# SPDX-License-Identifier: Apache-2.0
"""A model file as a sketch that can be changed anywhere and written again.

Reading is lenient: what has no sketch is changed as plain bytes. Writing gives the canonical form,
since a reader refuses any other one at its first check.
"""

import base64
import binascii
import json
import math
from dataclasses import dataclass, replace
from typing import Any

from sealpoint_models._structure_nodes import STRUCTURE
from sealpoint_models.scan._safetensors import ELEMENT_BITS, LENGTH_BYTES, write_header

__all__ = ["PART_BYTES_MAX", "Part", "Sketch", "framed", "sketch_of", "split"]

PART_BYTES_MAX = 1 << 14
"""More elements show nothing that fewer do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One tensor of a file."""

    name: str
    element: str
    shape: tuple[int, ...]
    data: bytes = b""

    @property
    def size(self) -> int:
        """What its shape says."""
        return math.prod(self.shape) * ELEMENT_BITS[self.element] // 8

    def fitted(self) -> "Part":
        """The same with as many bytes as its shape needs, or with a smaller shape."""
        shape = self.shape if self.size <= PART_BYTES_MAX else tuple(min(n, 3) for n in self.shape)
        part = replace(self, shape=shape[:8] if self.size > PART_BYTES_MAX else shape)
        data = self.data or b"\0"
        return replace(part, data=(data * (part.size // len(data) + 1))[: part.size])


@dataclass(slots=True, kw_only=True)
class Sketch:
    """What a file says."""

    parts: list[Part]
    metadata: dict[str, str]
    structure: bytes | None

    def copy(self) -> "Sketch":
        """One that can be changed."""
        return Sketch(
            parts=list(self.parts), metadata=dict(self.metadata), structure=self.structure
        )

    def __bytes__(self) -> bytes:
        metadata = dict(self.metadata)
        if self.structure is not None:
            metadata[STRUCTURE] = base64.b64encode(self.structure).decode()
        parts = {part.name: part.fitted() for part in self.parts}
        header = write_header(
            [(part.name, part.element, part.shape) for part in parts.values()], metadata
        )
        return header.raw + b"".join(parts[name].data for name in header.tensors)


def split(data: bytes) -> tuple[bytes, bytes]:
    """The header of a file without its length, and what follows it."""
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    return data[LENGTH_BYTES:end], data[end:]


def framed(header: bytes, rest: bytes) -> bytes:
    """A file of a header and what follows it."""
    return len(header).to_bytes(LENGTH_BYTES, "little") + header + rest


def sketch_of(data: bytes) -> Sketch | None:
    """The sketch of a file; None if it has none."""
    header, rest = split(data)
    try:
        members = json.loads(header)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    metadata = members.pop("__metadata__", {})
    texts = metadata if isinstance(metadata, dict) else {}
    texts = {key: text for key, text in texts.items() if isinstance(text, str)}
    structure: bytes | None = None
    try:
        structure = base64.b64decode(texts.pop(STRUCTURE)) if STRUCTURE in texts else None
    except (binascii.Error, ValueError):
        structure = b""
    parts = [part for name, entry in members.items() if (part := _part(name, entry, rest))]
    try:
        "".join((*texts, *texts.values(), *(part.name for part in parts))).encode()
    except UnicodeEncodeError:
        return None
    return Sketch(parts=parts, metadata=texts, structure=structure)


def _part(name: str, entry: Any, rest: bytes) -> Part | None:
    try:
        element, shape = entry["dtype"], tuple(entry["shape"])
        begin, end = entry["data_offsets"]
        part = Part(name=name, element=element, shape=shape, data=rest[begin:end])
        good = element in ELEMENT_BITS and all(type(n) is int and 0 <= n < 1 << 64 for n in shape)
    except (KeyError, TypeError, ValueError):
        return None
    return part if good else None
