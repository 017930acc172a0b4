# SPDX-License-Identifier: Apache-2.0
"""Changing a model file as text and bytes: the header's JSON, the length, and anything."""

import json
import random
from collections.abc import Callable
from typing import Any

from fuzz._model_sketch import framed, split
from fuzz._model_words import ELEMENTS, NAMES, NUMBERS
from sealpoint_models.scan._safetensors import LENGTH_BYTES

__all__ = ["changed_bytes", "changed_header", "changed_length"]

_TOKENS = (
    *("NaN", "Infinity", "-0", "1e5", "1.0", "01", "9" * 19, "9" * 20, "9" * 5000, "null", "true"),
    *('""', '"\\ud800"', '"\\u0000"', "{}", "[]", "[[]]", "[1,]", '{"a":1,"a":1}', "//", "\ufeff"),
    *(" ", "\n", "\t", "\0", ",", ":", "{", "}", "[", "]", '"', "\\", "é", '"\\u00e9"', '"\\/"'),
)


def _any_json(rng: random.Random) -> Any:
    match rng.randrange(8):
        case 0:
            return rng.choice(NUMBERS)
        case 1:
            return rng.choice(NAMES)
        case 2:
            return rng.choice(ELEMENTS)
        case 3:
            return [rng.choice(NUMBERS) for _ in range(rng.randrange(4))]
        case 4:
            return rng.choice((None, True, 1.5, "", [], {}, [[]], {"a": {}}))
        case 5:
            return {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
        case 6:
            return [0, rng.randrange(20)]
        case _:
            return rng.choice(NUMBERS[:20])


def _changed_members(members: dict[str, Any], rng: random.Random) -> None:
    """Change one place of the header as a value."""
    name = rng.choice(list(members)) if members else "a"
    entry = members.get(name)
    if isinstance(entry, dict) and entry and rng.random() < 0.7:
        key = rng.choice(list(entry))
        inner = entry[key]
        if isinstance(inner, list) and inner and rng.random() < 0.6:
            place = rng.randrange(len(inner))
            old = inner[place] if isinstance(inner[place], int) else 0
            inner[place] = rng.choice((old + 1, old - 1, old * 2, _any_json(rng)))
        elif rng.random() < 0.2:
            del entry[key]
        elif rng.random() < 0.2:
            entry[rng.choice(NAMES)] = _any_json(rng)
        else:
            entry[key] = _any_json(rng)
    elif rng.random() < 0.4:
        members[rng.choice(NAMES)] = members.pop(name, _any_json(rng))
    else:
        members[rng.choice((name, *NAMES))] = _any_json(rng)


def changed_header(data: bytes, rng: random.Random) -> bytes:
    """Another header, its length right."""
    header, rest = split(data)
    text = header.decode("utf-8", "replace")
    if rng.random() < 0.6:
        try:
            members = json.loads(text)
        except (ValueError, RecursionError):
            members = None
        if isinstance(members, dict):
            for _ in range(rng.choice((1, 1, 2, 3))):
                _changed_members(members, rng)
            text = _dumped(members, rng)
    if rng.random() < 0.5:
        place = rng.randrange(len(text) + 1)
        cut = rng.choice((0, 0, 1, 2, 8))
        text = text[:place] + rng.choice(_TOKENS) + text[place + cut :]
    if rng.random() < 0.05:
        deep = rng.choice((10, 1000, 3000))
        opening, closing = rng.choice((("[", "]"), ('{"a":', "}")))
        text = text.replace(":", ":" + opening * deep + "1" + closing * deep + ",", 1)
    return framed(text.encode("utf-8", "replace"), rest)


def _dumped(members: dict[str, Any], rng: random.Random) -> str:
    separators = rng.choice(((",", ":"), (",", ":"), (", ", ": "), (",\n", ":\t")))
    text = json.dumps(members, ensure_ascii=rng.random() < 0.3, separators=separators)
    if rng.random() < 0.7:
        text += " " * (-len(text.encode("utf-8", "replace")) % 8)
    return text


def changed_length(data: bytes, rng: random.Random) -> bytes:
    """Another length in front of the same header."""
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    other: int = rng.choice(
        (
            length + 1,
            length - 1,
            length - 8,
            length * 2,
            0,
            1,
            2,
            len(data),
            len(data) - 8,
            *NUMBERS,
        )
    )
    return (other % (1 << 64)).to_bytes(LENGTH_BYTES, "little") + data[LENGTH_BYTES:]


def changed_bytes(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """A few other bytes, or a splice with another file."""
    found = bytearray(data)
    changes: tuple[Callable[[int], None], ...] = (
        lambda place: found.__setitem__(slice(place, place + 1), rng.randbytes(1)),
        lambda place: found.__setitem__(slice(place, place), rng.randbytes(rng.choice((1, 2, 8)))),
        lambda place: found.__delitem__(slice(place, place + rng.choice((1, 2, 8, 64)))),
        lambda place: found.__delitem__(slice(place, None)),
        lambda place: found.__setitem__(slice(place, None), other[place:]),
        lambda place: found.extend(other[place : place + 16]),
    )
    for _ in range(rng.choice((1, 1, 2, 4))):
        rng.choice(changes)(rng.randrange(len(found) + 1))
    return bytes(found)
