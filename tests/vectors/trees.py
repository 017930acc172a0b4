# SPDX-License-Identifier: Apache-2.0
"""The vectors of the blob tree: blobs, children first and the root last, and what they give."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.vectors.building import array, blob_id, encoded, extension, reference, typed
from tests.vectors.rendering import render
from tests.vectors.rules import Plan, Point, registry

__all__ = ["vectors"]

Vectors = Iterator[dict[str, Any]]

_MALFORMED = "bytes-malformed"
_LIMIT = "decode-limit"


def vectors() -> list[dict[str, Any]]:
    """Every vector of the tree."""
    return [*_written(), *_accepted(), *_refused(), *_limits()]


def _tree(name: str, text: str, *blobs: bytes, **more: Any) -> dict[str, Any]:
    return {"name": name, "text": text, "blobs": [blob.hex() for blob in blobs], **more}


def _accept(name: str, text: str, value: Any, *blobs: bytes, **more: Any) -> dict[str, Any]:
    return _tree(name, text, *blobs, **more, canonical=False, value=render(value))


def _refuse(name: str, text: str, error: str, *blobs: bytes, **more: Any) -> dict[str, Any]:
    return _tree(name, text, *blobs, **more, error=error)


def _written() -> Vectors:
    """Values as our encoder cuts them."""
    values = {
        "small": {"a": [1, 2]},
        "255 deep": _lists(255),
        "list": [{"number": place, "text": "x" * 40} for place in range(200)],
        "map": {f"key {place}": "y" * 60 for place in range(200)},
        "text": "".join(f"line {place}\n" for place in range(2000)),
        "bytes": bytes(range(256)) * 80,
        "set": {f"member {place:04}" for place in range(700)},
        "array": np.arange(6000, dtype="<i4"),
        "numbers": list(range(5000)),
        "typed": Plan([f"step {place:04}" for place in range(1000)], 5),
        "index": [f"{place:0100}" for place in range(400)],
    }
    for name, value in values.items():
        blobs: dict[bytes, bytes] = {}

        def put(blob: bytes, blobs: dict[bytes, bytes] = blobs) -> bytes:
            blobs.setdefault(blob_id(blob), blob)
            return blob_id(blob)

        registry().encode_tree(value, put)
        vector = _tree(f"written {name}", "As our writer cuts it.", *blobs.values())
        digest = hashlib.sha256(json.dumps(render(value)).encode("ascii")).hexdigest()
        yield vector | {"canonical": True, "value_sha256": digest}


def _accepted() -> Vectors:
    cut = "Where the cuts lie is the writer's business."
    yield _accept("root", "A root without references.", [1], b"\x91\1")
    yield _accept(
        "value",
        "A root may be cut itself.",
        [1],
        b"\x91",
        b"\1",
        reference(0, 0, 0, 2, b"\x91", b"\1"),
    )
    yield _accept("list", cut, [1, "a"], b"\1\xa1", b"a", reference(1, 0, 2, 3, b"\1\xa1", b"a"))
    yield _accept("list empty tail", cut, [1, 1], b"\1", reference(1, 0, 2, 2, b"\1", b"\1"))
    yield _accept("map", cut, {"a": 1}, b"\xa1a", b"\1", reference(2, 0, 1, 3, b"\xa1a", b"\1"))
    yield _accept("text", cut, "é", b"\xc3", b"\xa9", reference(3, 0, 0, 2, b"\xc3", b"\xa9"))
    yield _accept("bytes", cut, b"ab", b"a", b"b", reference(4, 0, 0, 2, b"a", b"b"))
    index = blob_id(b"a" * 64) + blob_id(b"b" * 64)
    yield _accept(
        "index",
        "Ids below one level.",
        b"a" * 64 + b"b" * 64,
        b"a" * 64,
        b"b" * 64,
        index,
        reference(4, 1, 0, 128, index),
    )
    yield _accept(
        "in a list", "Anywhere in a value.", [b"a"], b"a", b"\x91" + reference(4, 0, 0, 1, b"a")
    )
    inner = reference(1, 0, 1, 1, b"\1")
    yield _accept(
        "in a chunk",
        "References in chunks.",
        [[1]],
        b"\1",
        inner,
        reference(1, 0, 1, len(inner), inner),
    )
    yield _accept(
        "array",
        "Raw bytes as a reference.",
        np.array([1, 2], dtype="|u1"),
        b"\1\2",
        array(32, ["|u1", [2]], reference(4, 0, 0, 2, b"\1\2")),
    )
    fields = encoded({"x": 1, "y": 2.0})[1:]
    yield _accept(
        "fields",
        "A typed value's fields as a reference.",
        Point(1, 2.0),
        fields,
        typed("test.point", b"\x91" + reference(2, 0, 2, len(fields), fields)),
    )
    yield _accept(
        "count of a value",
        "The count of a whole value is not read.",
        1,
        b"\1",
        reference(0, 0, 7, 1, b"\1"),
    )
    yield _accept(
        "reference depth", "reference_depth_max + 1 in one another.", _lists(5), *_deep(5)
    )


def _lists(count: int) -> Any:
    value: Any = 1
    for _ in range(count):
        value = [value]
    return value


def _deep(count: int) -> list[bytes]:
    blobs = [b"\1"]
    for _ in range(count):
        blobs.append(reference(1, 0, 1, len(blobs[-1]), blobs[-1]))
    return blobs


def _refused() -> Vectors:
    missing = reference(4, 0, 0, 1, b"a")
    yield _refuse("missing", "A blob that is not there.", "blob-mismatch", missing)
    head = "A reference is a stream, levels, a count, a total and ids."
    cases: dict[str, tuple[bytes, ...]] = {
        "reference short": (extension(2, b"\4\0\0"),),
        "reference of no ids": (extension(2, reference(4, 0, 0, 1, b"a")[3:17]),),
        "reference of half an id": (b"a", extension(2, reference(4, 0, 0, 1, b"a")[3:40])),
        "stream 5": (b"a", reference(5, 0, 0, 1, b"a")),
        "stream 5 in a list": (b"a", b"\x91" + reference(5, 0, 0, 1, b"a")),
        "value in a list": (b"\1", b"\x91" + reference(0, 0, 0, 1, b"\1")),
        "value in a value": (
            b"\1",
            (once := reference(0, 0, 0, 1, b"\1")),
            reference(0, 0, 0, len(once), once),
        ),
        "root trailing": (b"a", reference(4, 0, 0, 1, b"a") + b"\1"),
        "root empty": (b"",),
    }
    for name, blobs in cases.items():
        yield _refuse(name, head, _MALFORMED, *blobs)
    cases = {
        "total small": (b"ab", reference(4, 0, 0, 1, b"ab")),
        "total large": (b"ab", reference(4, 0, 0, 3, b"ab")),
        "chunk empty": (b"", b"a", reference(4, 0, 0, 1, b"a", b"")),
        "chunk empty only": (b"", reference(4, 0, 0, 0, b"")),
        "count of bytes": (b"a", reference(4, 0, 1, 1, b"a")),
        "count of a text": (b"a", reference(3, 0, 1, 1, b"a")),
        "count small": (b"\1\1", reference(1, 0, 1, 2, b"\1\1")),
        "count large": (b"\1\1", reference(1, 0, 3, 2, b"\1\1")),
        "map twice": (b"\xa1a\1\xa1a\1", reference(2, 0, 2, 6, b"\xa1a\1\xa1a\1")),
        "map of ints": (b"\1\1", reference(2, 0, 1, 2, b"\1\1")),
        "text not UTF-8": (b"\xff", reference(3, 0, 0, 1, b"\xff")),
        "index of no ids": (b"a", reference(4, 1, 0, 1, b"a")),
        "index empty": (b"", reference(4, 1, 0, 1, b"")),
        "set of a map": (b"\xa1a\1", extension(7, reference(2, 0, 1, 3, b"\xa1a\1"))),
    }
    many = blob_id(b"a") * 2
    cases["chunks too small"] = (b"a", many, reference(4, 1, 0, 2, many))
    fields = encoded({"x": 1, "y": 2.0})[1:]
    cases["fields of a list"] = (
        b"\1\1",
        typed("test.point", b"\x91" + reference(1, 0, 2, 2, b"\1\1")),
    )
    cases["fields beside"] = (
        fields,
        typed("test.point", b"\x92" + reference(2, 0, 2, len(fields), fields) + b"\1"),
    )
    for name, blobs in cases.items():
        yield _refuse(name, "What a reference says must hold.", _MALFORMED, *blobs)
    yield _refuse("reference too deep", "More than reference_depth_max + 1.", _LIMIT, *_deep(6))


def _limits() -> Vectors:
    def both(name: str, bound: int, value: Any, *blobs: bytes) -> Vectors:
        text = "Exactly at a limit, and one beyond it."
        yield _accept(f"{name} {bound}", text, value, *blobs, limits={name: bound})
        less = bound - 1
        yield _refuse(f"{name} {less} exceeded", text, _LIMIT, *blobs, limits={name: less})

    index = blob_id(b"a")
    above = blob_id(index)
    yield from both("tree_levels_max", 2, b"a", b"a", index, above, reference(4, 2, 0, 1, above))
    whole = b"a" * (1 << 16)
    chunk = _refuse(
        "blob_bytes_max 65536 exceeded",
        "One beyond a limit.",
        _LIMIT,
        whole + b"a",
        reference(4, 0, 0, len(whole) + 1, whole + b"a"),
        limits={"blob_bytes_max": 1 << 16},
    )
    yield chunk
    pair = reference(4, 0, 0, 50, b"a" * 50)
    yield from both("value_bytes_max", 100, [b"a" * 50] * 2, b"a" * 50, b"\x92" + pair * 2)
    yield from both("reference_depth_max", 2, _lists(3), *_deep(3))
    top = reference(1, 0, 60, 60, b"\1" * 60)
    yield from both("value_bytes_max", 60, [1] * 60, b"\1" * 60, top)
