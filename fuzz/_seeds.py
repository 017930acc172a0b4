# SPDX-License-Identifier: Apache-2.0
"""The first cases: the zoo under all limits, hand-made hostile bytes, trees, the frozen vectors."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import _types as app
from fuzz._older import older_values
from fuzz._tokens import Kind, Token
from fuzz._zoo import allowed_values
from fuzz.decode_never_executes import (
    IS_PLANTED,
    IS_RETREED,
    IS_TREE,
    IS_VERIFIED,
    Case,
)
from sealpoint import Registry
from sealpoint.errors import EncodeError

__all__ = ["known_labels", "seeds"]

_VECTORS = Path(__file__).resolve().parents[1] / "tests" / "vectors"
_REFERENCE = 2
_Blob = tuple[bytes, bytes]
_FLAT_VECTOR = re.compile(r'"hex": "([0-9a-f]*)"')
_TREE_VECTOR = re.compile(r'"blobs": \[([0-9a-f", ]*)\]')


def _extension(tag: int, payload: bytes) -> bytes:
    return Token(Kind.EXTENSION, tag, payload).raw


def known_labels(registry: Registry) -> list[bytes]:
    """The labels of all rules, and the same for other versions and shapes."""
    older = [
        rule.label[:-10] + version.to_bytes(2, "big") + rule.label[-8:]
        for rule in registry.rules
        for version in range(1, rule.version)
    ]
    first = registry.rules[0].label
    return [
        *(rule.label for rule in registry.rules),
        *older,
        first[:-1] + b"\0",
        first[:-10] + b"\xff\xff" + first[-8:],
        b"\x01q" + first[-10:],
    ]


def _hostile(registry: Registry) -> Iterator[bytes]:
    """Bytes that some decoder somewhere believed."""
    yield from (b"", b"\x92", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff\xa1a")
    yield from (b"\x91" * 300 + b"\xc0", b"\x81\xa1a" * 40 + b"\xc0", b"\x82\xa1a\x01\xa1a\x02")
    yield from (b"\x80\x04\x95\x0e\0\0\0\0\0\0\0\x8c\x02os\x94.", b"\xc0\xc0", b"\x81\x01\x02")
    for tag in (*range(26), *range(31, 36), 127, 128, 255):
        yield _extension(tag, b"")
        yield _extension(tag, b"\0" * 16)
        yield b"\x91" + _extension(tag, b"\x93\x01\x02\x03")
    for seconds in (b"\xff" * 4, b"\xff" * 8, b"\0\0\0\0" + b"\xff" * 8, b"\0" * 12, b"\x7f" * 12):
        yield _extension(255, seconds)
    yield b"\xdc\x01\x00\xd6\xff\xc6\xff\xff\xff" + bytes(255)
    for head in known_labels(registry):
        yield _extension(7, b"\x91" + _extension(1, head + b"\x91\x81\xa1a\x01"))
        yield b"\xc0" + _extension(1, head + b"\x91\x82\xa1a\x01\xa1b\x02")
    nested = b"\x90"
    for _ in range(40):
        nested = _extension(6, b"\x91" + nested)
    yield nested
    for spec, shape in (
        ("<i8", [1 << 60]),
        ("|O", [1]),
        ("|S0", [9]),
        ("<U0", [1 << 39]),
        ("|S0", [1 << 31]),
        ([["a", "<i4", []]], [0]),
    ):
        frame = _array_header([spec, shape])
        yield _extension(32, frame + b"\xc4\x00")
    for head in known_labels(registry):
        yield _extension(1, head + b"\x91\x81\xa1b\x01")
        yield _extension(1, head + b"\x92\x81\xa1b\x01\xc0")
        yield _extension(1, head + b"\x94\x81\xa1b\x01\x01\xc0\xc0")
        yield _extension(1, head + b"\x91\x82\xa1a\x01\xa1b\x02")
        yield _extension(1, head + b"\x91\x05")
    for name in (b"zEurope/Berlin", b"z../../etc/passwd", b"z", b"q", b"o" + b"\xff" * 8, b"u"):
        yield _extension(24, name)
        yield _extension(12, b"\1\2\3\0\0\0\0" + name)


def _array_header(parts: list[Any]) -> bytes:
    """An array's header in its frame."""
    data = Registry().encode(parts)
    return len(data).to_bytes(2, "big") + data


def _blob(data: bytes) -> _Blob:
    return hashlib.sha256(data).digest(), data


def _reference(stream: int, levels: int, count: int, total: int, *ids: bytes) -> bytes:
    fixed = bytes((stream, levels)) + count.to_bytes(4, "big") + total.to_bytes(8, "big")
    return _extension(_REFERENCE, fixed + b"".join(ids))


def _hand_made_trees(registry: Registry) -> Iterator[tuple[_Blob, ...]]:
    """Small trees with every stream, an index level, and references in every position."""
    numbers, pairs = _blob(b"\x01\x02\x03"), _blob(b"\xa1a\x01\xa1b\x02")
    text, whole = _blob("häh".encode()), _blob(b"\x93\x01\x02\x03")
    raw = _blob(b"\x00" * 16)
    index = _blob(numbers[0] * 3)
    many = _blob(b"\x00" * 64)
    list_ref = _reference(1, 0, 3, 3, numbers[0])
    map_ref = _reference(2, 0, 2, 8, pairs[0])
    bytes_ref = _reference(4, 0, 0, 16, raw[0])
    plan = next(rule for rule in registry.rules if rule.name == "d")
    roots: list[tuple[bytes, list[_Blob]]] = [
        (list_ref, [numbers]),
        (map_ref, [pairs]),
        (_reference(3, 0, 0, 4, text[0]), [text]),
        (bytes_ref, [raw]),
        (_reference(0, 0, 0, 4, whole[0]), [whole]),
        (_reference(1, 1, 192, 192, _blob(many[0] * 3)[0]), [_blob(many[0] * 3), many]),
        (_reference(1, 1, 9, 9, index[0]), [index, numbers]),
        (_extension(6, list_ref), [numbers]),
        (_extension(7, list_ref), [numbers]),
        (_extension(19, b"\x92\xc0" + list_ref), [numbers]),
        (b"\x93" + list_ref + map_ref + bytes_ref, [numbers, pairs, raw]),
        (_extension(1, plan.label + b"\x91" + map_ref), [pairs]),
        (_extension(1, plan.label + b"\x91" + registry.encode({app.Key(1): 2})), []),
        (_extension(32, _array_header(["<i4", [4]]) + bytes_ref), [raw]),
        (
            _extension(
                1, plan.label + b"\x91" + registry.encode({np.str_("a"): 1, np.str_("b"): 2})
            ),
            [],
        ),
        (_extension(2, b"\0"), []),
        (_reference(9, 0, 0, 0), []),
        (_reference(1, 200, 0, 0, raw[0]), [raw]),
        (_reference(1, 0, 0, 1 << 40, raw[0]), [raw]),
        (b"\x01", []),
        (b"\0" * 66_000, []),
        *_cut_within(list_ref + b"\xc5\0\4data" + list_ref, [numbers]),
    ]
    for root, children in roots:
        yield (_blob(root), *children)
    inner = list_ref
    blobs = [numbers]
    for _ in range(11):
        level = _blob(inner)
        blobs.insert(0, level)
        inner = _reference(1, 0, 1, len(level[1]), level[0])
    yield (_blob(inner), *blobs)


def _cut_within(members: bytes, children: list[_Blob]) -> Iterator[tuple[bytes, list[_Blob]]]:
    """A list of three, cut in a header, in a reference, and in the length of what follows it."""
    for place in (1, 20, len(members) // 2, len(members) // 2 - 3):
        chunks = [_blob(members[:place]), _blob(members[place:])]
        root = _reference(1, 0, 3, len(members), *(name for name, _ in chunks))
        yield root, [*chunks, *children]


def _long_values() -> Iterator[Any]:
    """Values that are long enough to be split."""
    long = [f"{'x' * 20}{n}" for n in range(500)]
    yield from (long, ["x" * 100] * 800, b"\x01\x04" * 9000, bytearray(20_000))
    yield [{f"k{n}" for n in range(2000)}, dict.fromkeys(range(900), "y" * 30), 1 << 20_000]
    yield [list(range(3000)), dict.fromkeys(long)]
    squares = [n * n for n in range(1500)]
    yield [dict.fromkeys(squares), set(squares), {n << 40 for n in range(1200)}]
    yield {"a": tuple(long), "b": set(long), "c": app.Plan(None, long), "d": "y" * 20_000}
    yield [memoryview(bytes(20_000))[::2], "\ud800" + "x" * 20_000, {1: long}]
    yield {"é" * 5000: "é" * 9000, "z": list(range(10_000))}
    yield [[[[[[[[[[long, long]]]]]]]]]]
    yield [app.Money(number % 700 or None) for number in range(900)]
    yield {"paid": [[app.Money(number), "y" * 30] for number in range(500)], "due": [app.Money([])]}
    tuples: Any = None
    members: Any = None
    for depth in range(22):
        tuples = (long if depth > 12 else 0, tuples)
        if depth < 12:
            members = frozenset([members, *(f"{depth}-{n}" * 4 for n in range(900))])
    yield from (tuples, members)


def _real_trees(registry: Registry) -> Iterator[tuple[_Blob, ...]]:
    """Trees as `encode_tree` makes them."""
    for value in _long_values():
        blobs: list[_Blob] = []

        def put(blob: bytes, blobs: list[_Blob] = blobs) -> bytes:
            blobs.insert(0, _blob(blob))
            return blobs[0][0]

        registry.encode_tree(value, put, seed=b"fuzz")
        yield tuple(dict(blobs).items())


def _vectors() -> Iterator[Case]:
    """The frozen vectors, accepted and refused: flat encodings, and trees with their root last.

    The files have one vector to a line. They are searched, not parsed: the values in them are
    nested deeper than a JSON parser goes.
    """
    for name in ("values.json", "trees.json"):
        path = _VECTORS / name
        for line in path.read_text(encoding="ascii").splitlines() if path.exists() else ():
            if flat := _FLAT_VECTOR.search(line):
                yield Case(selector=0, data=bytes.fromhex(flat[1]))
            elif tree := _TREE_VECTOR.search(line):
                texts = [text.strip('" ') for text in tree[1].split(",")]
                blobs = tuple(_blob(bytes.fromhex(text)) for text in reversed(texts))
                yield Case(selector=IS_TREE | IS_VERIFIED, blobs=blobs)


def seeds(registry: Registry) -> Iterator[bytes]:
    """All first cases, in a fixed order."""
    for value in allowed_values():
        try:
            data = registry.encode(value)
        except EncodeError:
            continue
        for selector in (IS_PLANTED, 1, 2 | IS_RETREED):
            yield bytes(Case(selector=selector, data=data))
    for data in map(registry.encode, _long_values()):
        for selector in (IS_RETREED, 2 | IS_RETREED):
            yield bytes(Case(selector=selector, data=data))
    for data in (*older_values(), *_hostile(registry)):
        for selector in (0, 1):
            yield bytes(Case(selector=selector, data=data))
    for blobs in (*_hand_made_trees(registry), *_real_trees(registry)):
        for selector in (IS_TREE | IS_VERIFIED, IS_TREE | 1, IS_TREE | IS_VERIFIED | 2):
            yield bytes(Case(selector=selector, blobs=blobs))
    for case in _vectors():
        for limits in (0, 1):
            yield bytes(replace(case, selector=case.selector | limits))
