# SPDX-License-Identifier: Apache-2.0
"""How vectors are put together: extensions, arrays, typed values and references, byte by byte.

Nothing here refuses anything: most of what it builds is wrong on purpose.
"""

import hashlib
import struct
from typing import Any

import ormsgpack

from tests.vectors.rendering import render
from tests.vectors.rules import registry, rules_as_data

__all__ = [
    "accept",
    "array",
    "blob_id",
    "encoded",
    "extension",
    "reference",
    "refuse",
    "shape",
    "typed",
]

RULES = rules_as_data()
_REGISTRY = registry()


def extension(tag: int, payload: bytes) -> bytes:
    """An extension with the shortest header."""
    fixed = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}.get(len(payload))
    if fixed is not None:
        return bytes((fixed, tag)) + payload
    if len(payload) < 1 << 8:
        return bytes((0xC7, len(payload), tag)) + payload
    return b"\xc8" + len(payload).to_bytes(2, "big") + bytes((tag,)) + payload


def array(tag: int, header: list[Any] | bytes, raw: bytes | None) -> bytes:
    """An array, scalar or tensor; a header may come as bytes, raw bytes with their own header."""
    packed = header if isinstance(header, bytes) else ormsgpack.packb(header)
    return extension(tag, len(packed).to_bytes(2, "big") + packed + (raw or b""))


def typed(
    name: str, body: bytes, *, version: int | None = None, shape: bytes | None = None
) -> bytes:
    """A typed value with the label of a rule, or one that differs from it."""
    rule = RULES.get(name, {"version": 1, "shape": "00" * 8})
    version = rule["version"] if version is None else version
    label = bytes((len(name),)) + name.encode() + version.to_bytes(2, "big")
    return extension(1, label + (bytes.fromhex(rule["shape"]) if shape is None else shape) + body)


def shape(kind: str, *fields: tuple[str, str]) -> bytes:
    """The shape digest of a class, as the specification says."""

    def number(text: str) -> int:
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % (2**32 - 5)

    named = list(enumerate([("", kind), *fields]))
    marks = sum(number(text) for _, (_, text) in named)
    weighted = sum(number(text) * number(f"{place} {name}") for place, (name, text) in named)
    return b"".join((each % (2**32 - 5)).to_bytes(4, "big") for each in (marks, weighted))


def blob_id(blob: bytes) -> bytes:
    """The id of a blob."""
    return hashlib.sha256(blob).digest()


def reference(stream: int, levels: int, count: int, total: int, *blobs: bytes) -> bytes:
    """A reference to blobs."""
    head = struct.pack(">BBIQ", stream, levels, count, total)
    return extension(2, head + b"".join(map(blob_id, blobs)))


def encoded(value: Any) -> bytes:
    """A value as our encoder writes it."""
    return _REGISTRY.encode(value)


def accept(
    name: str, text: str, value: Any, data: bytes | None = None, **more: Any
) -> dict[str, Any]:
    """A vector that is accepted; canonical unless its bytes are given."""
    vector = {"name": name, "text": text, "canonical": data is None, **more}
    return vector | {
        "hex": (encoded(value) if data is None else data).hex(),
        "value": render(value),
    }


def refuse(name: str, text: str, error: str, data: bytes, **more: Any) -> dict[str, Any]:
    """A vector that is refused, with the code of the error."""
    return {"name": name, "text": text, **more, "hex": data.hex(), "error": error}
