# SPDX-License-Identifier: Apache-2.0
"""Stepping through an encoding from object to object, without building any.

Objects follow each other without gaps, also inside payloads, so one table gives the start of the
next object, and one function describes an extension. Three questions use this: how many objects
there are (`count_nodes`), how deeply containers are nested (`nesting`), and which references there
are (`ReferenceScan`). If a payload has a false length, the steps go astray, but the decoder stops
there: everything that it built until then was counted, and no reader accepts the value.
"""

import re
from typing import TypeAlias

from sealpoint.codec._type_rules import LABEL_BYTES
from sealpoint.codec._wire_format import (
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

# The length of an object, by its first byte; for a container, the length of its header. For those
# with 0, the length follows the first byte.
_UNSTEPPED = frozenset({0xC1, *SIZED, *FIXED_EXTENSIONS, *SIZED_EXTENSIONS})
_FOLLOWING = {first: first & 31 for first in range(0xA0, 0xC0)} | FIXED | COUNTED
_STEPS = bytes(0 if first in _UNSTEPPED else 1 + _FOLLOWING.get(first, 0) for first in range(256))
# Objects of a single byte, and the headers of short arrays and maps, come in long runs.
_LONGER_THAN_ONE = re.compile(rb"[\xa1-\xbf\xc1\xc4-\xdf]")

# The content of payloads, as plain numbers, which compare faster than members of an enumeration:
# one value; a header with its length before it, then one value; no value at all.
_TYPED, _REFERENCE, _DEFAULT_DICT = map(int, (Tag.TYPED, Tag.REFERENCE, Tag.DEFAULT_DICT))
_VALUES = frozenset(
    {
        *map(int, (Tag.SURROGATE_TEXT, Tag.PAIRS, Tag.TUPLE, Tag.SET, Tag.FROZENSET)),
        *map(int, (Tag.FRACTION, Tag.DEQUE, Tag.ORDERED_DICT, Tag.RANGE, Tag.SLICE)),
    }
)
_FRAMED = frozenset(map(int, (Tag.ARRAY, Tag.ARRAY_SCALAR, Tag.TENSOR)))
_OPAQUE = frozenset(
    {
        *map(int, (Tag.BIG_INT, Tag.COMPLEX, Tag.DATETIME, Tag.DATE, Tag.TIME, Tag.TIMEDELTA)),
        *map(int, (Tag.DECIMAL, Tag.UUID, Tag.PATH, Tag.ADDRESS, Tag.ZONE)),
        TIMESTAMP % 256,
    }
)


def _extension(data: bytes, place: int) -> tuple[int, int, int]:
    """Return the tag of the extension at `place`, and the start and length of its payload.

    The tag is -1 if its header is not completely in `data`.
    """
    first = data[place]
    start = place + 2 + SIZED_EXTENSIONS.get(first, 0)
    if start > len(data):
        return -1, start, 0
    size = FIXED_EXTENSIONS.get(first) or int.from_bytes(data[place + 1 : start - 1], "big")
    return data[start - 1], start, size


def count_nodes(data: bytes, nodes_max: int) -> int:
    """Return how many objects decoding `data` could build before it fails, up to `nodes_max`.

    It enters payloads that hold values, and skips the others.
    """
    place, nodes, end = 0, 0, len(data)
    while place < end and nodes <= nodes_max:
        first = data[place]
        step = _STEPS[first]
        nodes += 1
        if step == 1:
            longer = _LONGER_THAN_ONE.search(data, place)
            stop = end if longer is None else longer.start()
            nodes += stop - place - 1
            place = stop
        elif step:
            place += step
        elif first in SIZED:
            start = place + 1 + SIZED[first]
            place = start + int.from_bytes(data[place + 1 : start], "big")
        else:
            place = _into_extension(data, place)
    return nodes


def _into_extension(data: bytes, place: int) -> int:
    """Return where counting continues: inside the payload if it holds values, else after it."""
    tag, start, size = _extension(data, place)
    if tag in _VALUES:
        return start
    if tag == _TYPED:
        return start + LABEL_BYTES + data[start] if start < len(data) else start
    return start + (1 if tag == _DEFAULT_DICT else size)


# The native engine recurses on the C stack, half a kilobyte for each container, and each nested
# extension starts a new recursion on top of the enclosing one. The engine itself stops at 1,023,
# which is safe for one recursion. For all the others on a path the bound is 255, the maximum for a
# writer, so that together they fit an OS thread's stack. Payloads of up to a kilobyte need no
# check: with everything nested in them, they cannot hold more containers than that in total.

UNCHECKED_BYTES_MAX = 1024
"""Payloads of up to this length are not checked."""

# A reader's own frame, and the levels at which a tree joins members, are added.
_DEPTH_MAX = ENCODE_DEPTH_MAX + 16
_HEADERS = bytes((*range(0x81, 0x90), *range(0x91, 0xA0), *COUNTED))
_OPENERS = frozenset((*range(0x80, 0xA0), *COUNTED))
_SKIPS = bytes(0 if first in _OPENERS else step for first, step in enumerate(_STEPS))


def is_deep(payload: bytes) -> bool:
    """Whether containers in `payload` are nested deeper than a writer may write."""
    openers = len(payload) - len(payload.translate(None, _HEADERS))
    return openers > _DEPTH_MAX and nesting(payload) > _DEPTH_MAX


def nesting(payload: bytes) -> int:
    """Return how deeply containers are nested in a sequence of values, without extensions."""
    place, deepest, end = 0, 0, len(payload)
    left = 1 << 62  # members still to come in the innermost open container
    around: list[int] = []
    while place < end:
        first = payload[place]
        left -= 1
        step = _SKIPS[first]
        if step:
            place += step
        elif first in _OPENERS:
            members, place = _opened(payload, place)
            if members:
                around.append(left)
                left = members
                deepest = max(deepest, len(around))
        elif first in SIZED:
            start = place + 1 + SIZED[first]
            place = start + int.from_bytes(payload[place + 1 : start], "big")
        else:
            _, start, size = _extension(payload, place)
            place = start + size
        while not left:
            left = around.pop()
    return deepest


def _opened(payload: bytes, place: int) -> tuple[int, int]:
    """Return the number of members of the container at `place`, and where they start."""
    first = payload[place]
    if first in COUNTED:
        start = place + 1 + COUNTED[first]
        count = int.from_bytes(payload[place + 1 : start], "big")
    else:
        start, count = place + 1, first & 15
    is_map = first < 0x90 or first >= 0xDE
    return count * 2 if is_map else count, start


ScanState: TypeAlias = int | bytes
"""The state between chunks: the number of bytes to skip, or the first bytes of an object."""

# References as writers make them are shorter; a longer one is assembled too.
_STATE_BYTES_MAX = 512


class ReferenceScan:
    """The references in one stream that is read chunk by chunk.

    Chunks may be cut anywhere. The only state between chunks is the number of bytes to skip, or the
    first bytes of an object. Tags that the format does not have are refused: they could hold
    references.

    Args:
        payload_bytes_max: The longest allowed reference; the scan holds at most this much.
    """

    __slots__ = ("_held", "_needed_bytes", "_payload_bytes_max", "_skipped_bytes")

    def __init__(self, payload_bytes_max: int) -> None:
        self._payload_bytes_max = payload_bytes_max
        self._skipped_bytes = 0
        self._held = bytearray()
        self._needed_bytes = 0  # another check is useless until this many bytes are held

    def state(self) -> ScanState | None:
        """Return the state for the next chunk, 0 between objects; None if it is long."""
        if self._held:
            return bytes(self._held) if len(self._held) <= _STATE_BYTES_MAX else None
        return self._skipped_bytes

    def go_on_from(self, state: ScanState) -> None:
        """Continue from the state of another scan."""
        self._held = bytearray(state) if isinstance(state, bytes) else bytearray()
        self._skipped_bytes = state if isinstance(state, int) else 0
        self._needed_bytes = 0

    def is_between_objects(self) -> bool:
        """Whether the stream may end here."""
        return not self._held and not self._skipped_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads of the references that end in the next bytes.

        Raises:
            DecodeError: The bytes are not objects of the format.
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
        """Step from object to object; return the start of the one after `data`."""
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
        """Keep the first bytes of an object that cannot be interpreted before `stop`."""
        self._held += data[place:]
        self._needed_bytes = stop - place
        return len(data)

    def _extension(self, data: bytes, place: int, found: list[bytes]) -> int:
        """Step past an extension, or to the value in it."""
        if data[place] == 0xC1:
            raise BytesMalformed("value: expected MessagePack, found the byte c1")
        tag, start, size = _extension(data, place)
        if tag == _REFERENCE:
            return self._reference(data, place, start, size, found)
        if tag in _OPAQUE:
            return start + size
        stop = start + _HEADS.get(tag, 0)
        if stop > len(data):
            return self._hold(data, place, stop)
        inner = _value_start(data, tag, start)
        if inner >= size:
            raise BytesMalformed(f"extension {tag}: its payload is empty")
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


# The number of payload bytes that determine where the value in it begins.
_HEADS = {_TYPED: 1} | dict.fromkeys(_FRAMED, 2)


def _value_start(data: bytes, tag: int, start: int) -> int:
    """Return where the value of an extension begins in its payload."""
    if tag in _VALUES:
        return 0
    if tag == _TYPED:
        return LABEL_BYTES + data[start]
    if tag in _FRAMED:
        return 2 + int.from_bytes(data[start : start + 2], "big")
    if tag == _DEFAULT_DICT:
        return 1
    raise UnknownType(
        f"extension: expected a known tag, found {tag}",
        hint="The format has no such tag: do not use these bytes.",
    )
