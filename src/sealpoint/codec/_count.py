# SPDX-License-Identifier: Apache-2.0
"""Counting the objects in an encoding without building any.

A value of n bytes holds at most n objects, so only values larger than the bound are counted.
The count goes through the bytes in the order the decoder does, into the payloads that hold
values and past those that do not. Where a payload lies about its length the count goes astray,
but there the decoder stops: everything it built until then was counted.
"""

import re
from collections.abc import Sequence

from sealpoint.codec._rules import LABEL_BYTES
from sealpoint.codec._wire import (
    COUNTED,
    FIXED,
    FIXED_EXTENSIONS,
    SIZED,
    SIZED_EXTENSIONS,
    Tag,
)

__all__ = ["NodeBudget", "count_nodes"]

# Objects of a single byte, and the headers of short arrays and maps.
_SINGLE = re.compile(rb"[\x00-\xa0\xc0-\xc3\xe0-\xff]+")

_HOLDING_VALUES = frozenset(
    {
        *(Tag.TYPED, Tag.SURROGATE_TEXT, Tag.PAIRS, Tag.TUPLE, Tag.SET, Tag.FROZENSET),
        *(Tag.FRACTION, Tag.DEQUE, Tag.ORDERED_DICT, Tag.DEFAULT_DICT, Tag.RANGE, Tag.SLICE),
    }
)


class NodeBudget:
    """How many objects a value may still hold, over all its parts.

    Bytes bound objects, so nothing is counted until the bytes alone could be too many.
    """

    __slots__ = ("_left", "_uncounted", "_uncounted_bytes")

    def __init__(self, nodes_max: int) -> None:
        self._left = nodes_max
        self._uncounted: list[bytes] = []
        self._uncounted_bytes = 0

    def charge(self, parts: Sequence[bytes]) -> bool:
        """Account for the objects in `parts`; whether the budget holds them."""
        self._uncounted.extend(parts)
        self._uncounted_bytes += sum(map(len, parts))
        if self._uncounted_bytes <= self._left:
            return True
        for part in self._uncounted:
            self._left -= count_nodes(part, self._left)
            if self._left < 0:
                return False
        self._uncounted.clear()
        self._uncounted_bytes = 0
        return True


def count_nodes(data: bytes, nodes_max: int) -> int:
    """How many objects decoding `data` could build before it fails; stops beyond `nodes_max`."""
    place, nodes, end = 0, 0, len(data)
    while place < end and nodes <= nodes_max:
        single = _SINGLE.match(data, place)
        if single is not None:
            nodes += single.end() - place
            place = single.end()
            continue
        first = data[place]
        nodes += 1
        if 0xA1 <= first <= 0xBF:
            place += 1 + (first & 31)
        elif first in FIXED:
            place += 1 + FIXED[first]
        elif first in SIZED:
            start = place + 1 + SIZED[first]
            place = start + int.from_bytes(data[place + 1 : start], "big")
        elif first in COUNTED:
            place += 1 + COUNTED[first]
        else:
            place = _past_extension(data, place)
    return nodes


def _past_extension(data: bytes, place: int) -> int:
    """Where to go on counting: inside the payload where it holds values, else behind it."""
    first = data[place]
    width = SIZED_EXTENSIONS.get(first, 0)
    size = FIXED_EXTENSIONS.get(first) or int.from_bytes(data[place + 1 : place + 1 + width], "big")
    start = place + 2 + width
    tag = data[start - 1] if start <= len(data) else 0
    if tag not in _HOLDING_VALUES:
        return start + size
    if tag == Tag.TYPED and start < len(data):
        return start + LABEL_BYTES + data[start]
    return start + (1 if tag == Tag.DEFAULT_DICT else 0)
