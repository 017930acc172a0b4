# SPDX-License-Identifier: Apache-2.0
"""Counting the objects in an encoding without building any.

A value of n bytes holds at most n objects, so only values larger than the bound are counted.
The count goes through the bytes in the order the decoder does, into the payloads that hold
values and past those that do not. Where a payload lies about its length the count goes astray,
but there the decoder stops: everything it built until then was counted.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

from sealpoint.codec._rules import LABEL_BYTES
from sealpoint.codec._wire import (
    COUNTED,
    FIXED,
    FIXED_EXTENSIONS,
    SIZED,
    SIZED_EXTENSIONS,
    TIMESTAMP,
    Tag,
)
from sealpoint.errors import BytesMalformed, DecodeLimitExceeded, UnknownType
from sealpoint.limits import ENCODE_DEPTH_MAX

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


# ---------------------------------------------------------------------- depth
# How deep containers nest in an encoding, told without decoding it.
#
# The native engine recurses on the C stack, half a kilobyte for each container, and each nested
# extension starts a new recursion on top of the one around it. The engine stops by itself at
# 1,023, which is well for one recursion; for all the others on a path the bound is 255, which is
# all that a writer may write, so that they fit a thread's stack together. Payloads of up to a
# kilobyte need no look: they and everything nested in them cannot hold more containers than that
# in all.


UNCHECKED_BYTES_MAX = 1024
"""Payloads of up to this length are not looked at."""

# A reader's own frame, and the levels at which a tree joins members, come on top.
_DEPTH_MAX = ENCODE_DEPTH_MAX + 16
_HEADERS = bytes((*range(0x81, 0x90), *range(0x91, 0xA0), *COUNTED))
_SKIPPED = {
    **dict.fromkeys((*range(0x80), *range(0xC0, 0xC4), *range(0xE0, 0x100)), 1),
    **{first: 1 + (first & 31) for first in range(0xA0, 0xC0)},
    **{first: 1 + size for first, size in FIXED.items()},
    **{first: 2 + size for first, size in FIXED_EXTENSIONS.items()},
}
_WIDTHS = {**SIZED, **SIZED_EXTENSIONS}


def is_deep(payload: bytes) -> bool:
    """Whether containers in `payload` nest deeper than a writer may write."""
    openers = len(payload) - len(payload.translate(None, _HEADERS))
    return openers > _DEPTH_MAX and nesting(payload) > _DEPTH_MAX


def nesting(payload: bytes) -> int:
    """How deep containers nest in a sequence of values, extensions not entered."""
    place, deepest, end = 0, 0, len(payload)
    left = 1 << 62  # members still to come in the innermost open container
    around: list[int] = []
    while place < end:
        first = payload[place]
        left -= 1
        if first in _SKIPPED:
            place += _SKIPPED[first]
        elif first in _WIDTHS:
            start = place + 1 + _WIDTHS[first]
            size = int.from_bytes(payload[place + 1 : start], "big")
            place = start + size + (first in SIZED_EXTENSIONS)
        else:
            members, place = _opened(payload, place)
            if members:
                around.append(left)
                left = members
                deepest = max(deepest, len(around))
        while not left:
            left = around.pop()
    return deepest


def _opened(payload: bytes, place: int) -> tuple[int, int]:
    """How many members the container at `place` has, and where they start."""
    first = payload[place]
    if first in COUNTED:
        start = place + 1 + COUNTED[first]
        count = int.from_bytes(payload[place + 1 : start], "big")
    else:
        start, count = place + 1, first & 15
    is_map = first < 0x90 or first >= 0xDE
    return count * 2 if is_map else count, start


# ---------------------------------------------------------------------- scan
# Finding the references in a stream of bytes without decoding it.
#
# Objects lie behind one another without gaps, also inside payloads, so one pass over the bytes
# that steps from object to object meets every reference, and nesting need not be known. Chunks
# may be cut anywhere; all that one leaves to the next is how many bytes to skip, or the first
# bytes of an object. Where a payload lies about its length the pass goes astray, but no reader
# accepts that. Refuses tags that the format does not have: they could hold references.


ScanState: TypeAlias = int | bytes
"""What the bytes so far leave to the next: so many to skip, or the first bytes of an object."""

# Plain numbers, which are faster to compare than members of an enumeration.
_TYPED, _REFERENCE, _DEFAULT_DICT = map(int, (Tag.TYPED, Tag.REFERENCE, Tag.DEFAULT_DICT))
# Payloads that are one value; a header with its length in front, then one value; no value at all.
_TAGS_OF_VALUES = frozenset(map(int, _HOLDING_VALUES - {Tag.TYPED, Tag.DEFAULT_DICT}))
_FRAMED = frozenset(map(int, (Tag.ARRAY, Tag.ARRAY_SCALAR, Tag.TENSOR)))
_OPAQUE = frozenset(
    map(
        int,
        (
            *(Tag.BIG_INT, Tag.COMPLEX, Tag.DATETIME, Tag.DATE, Tag.TIME, Tag.TIMEDELTA),
            *(Tag.DECIMAL, Tag.UUID, Tag.PATH, Tag.ADDRESS, Tag.ZONE, TIMESTAMP % 256),
        ),
    )
)

# How long an object is, by its first byte; of a container, its header. Those with 0 say it behind.
_UNSTEPPED = frozenset({0xC1, *SIZED, *FIXED_EXTENSIONS, *SIZED_EXTENSIONS})
_FOLLOWING = {first: first & 31 for first in range(0xA0, 0xC0)} | FIXED | COUNTED
_STEPS = bytes(0 if first in _UNSTEPPED else 1 + _FOLLOWING.get(first, 0) for first in range(256))
_LONGER_THAN_ONE = re.compile(rb"[\xa1-\xbf\xc1\xc4-\xdf]")

# A reference as writers make them is shorter; a longer one is put together too.
_STATE_BYTES_MAX = 512


class ReferenceScan:
    """One stream on its way past, chunk by chunk.

    Args:
        payload_bytes_max: The longest reference that may stand in it; so much may be held.
    """

    __slots__ = ("_held", "_needed_bytes", "_payload_bytes_max", "_skipped_bytes")

    def __init__(self, payload_bytes_max: int) -> None:
        self._payload_bytes_max = payload_bytes_max
        self._skipped_bytes = 0
        self._held = bytearray()
        self._needed_bytes = 0  # so much has to be held before another look is of use

    def state(self) -> ScanState | None:
        """All that matters for what comes, 0 between objects; None if it is long."""
        if self._held:
            return bytes(self._held) if len(self._held) <= _STATE_BYTES_MAX else None
        return self._skipped_bytes

    def go_on_from(self, state: ScanState) -> None:
        """Take up the state that another scan was in."""
        self._held = bytearray(state) if isinstance(state, bytes) else bytearray()
        self._skipped_bytes = state if isinstance(state, int) else 0
        self._needed_bytes = 0

    def is_between_objects(self) -> bool:
        """Whether the bytes so far may be all."""
        return not self._held and not self._skipped_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads of the references that end in the next bytes.

        Raises:
            DecodeError: The bytes are no objects of the format.
        """
        found: list[bytes] = []
        if self._held:
            self._held += data
            if len(self._held) < self._needed_bytes:
                return found
            data = bytes(self._held)
            self._held = bytearray()
        self._skipped_bytes = self._scan(data, self._skipped_bytes, found) - len(data)
        return found

    def _scan(self, data: bytes, place: int, found: list[bytes]) -> int:
        """Step from object to object; where the one behind `data` begins."""
        end, steps, sizes = len(data), _STEPS, SIZED
        while place < end:
            first = data[place]
            step = steps[first]
            if step > 1:
                place += step
            elif step:
                place += 1
                if place < end and steps[data[place]] == 1:  # small numbers come in long runs
                    longer = _LONGER_THAN_ONE.search(data, place)
                    place = end if longer is None else longer.start()
            elif first in sizes:
                start = place + 1 + sizes[first]
                if start > end:
                    return self._hold(data, place, start)
                place = start + int.from_bytes(data[place + 1 : start], "big")
            else:
                place = self._extension(data, place, found)
        return place

    def _hold(self, data: bytes, place: int, stop: int) -> int:
        """Keep the first bytes of an object that cannot be told before `stop`."""
        self._held += data[place:]
        self._needed_bytes = stop - place
        return len(data)

    def _extension(self, data: bytes, place: int, found: list[bytes]) -> int:
        """Step past an extension, or to the value in it."""
        first, end = data[place], len(data)
        if first == 0xC1:
            raise BytesMalformed("value: expected MessagePack, found the byte c1")
        start = place + 2 + SIZED_EXTENSIONS.get(first, 0)
        if start > end:
            return self._hold(data, place, start)
        size = FIXED_EXTENSIONS.get(first) or int.from_bytes(data[place + 1 : start - 1], "big")
        tag = data[start - 1]
        if tag == _TYPED:
            if start + 1 > end:
                return self._hold(data, place, start + 1)
            inner = LABEL_BYTES + data[start]
        elif tag in _TAGS_OF_VALUES:
            inner = 0
        elif tag in _OPAQUE:
            return start + size
        elif tag == _REFERENCE:
            return self._reference(data, place, start, size, found)
        elif tag in _FRAMED:
            if start + 2 > end:
                return self._hold(data, place, start + 2)
            inner = 2 + int.from_bytes(data[start : start + 2], "big")
        elif tag == _DEFAULT_DICT:
            inner = 1
        else:
            raise UnknownType(
                f"extension: expected a known tag, found {tag}",
                hint="The format has no such tag: do not use these bytes.",
            )
        if inner >= size:
            raise BytesMalformed(f"extension {tag}: expected a value in its payload, found none")
        return start + inner

    def _reference(self, data: bytes, place: int, start: int, size: int, found: list[bytes]) -> int:
        if size > self._payload_bytes_max:
            raise DecodeLimitExceeded(
                f"reference: expected at most {self._payload_bytes_max} bytes (blob_bytes_max), "
                f"found {size}"
            )
        stop = start + size
        if stop > len(data):
            return self._hold(data, place, stop)
        found.append(data[start:stop])
        return stop
