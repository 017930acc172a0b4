# SPDX-License-Identifier: Apache-2.0
"""Content-defined boundaries: where a long container or byte string is cut into chunks.

A cut depends only on the bytes near it (or on one member), never on a position, so an insertion
moves the chunks behind it without changing them. Where the cuts lie is the writer's business alone:
a reader joins chunks and never asks. The seed keeps an outsider who can only choose content from
learning where a store cuts; sizes are bounded whatever the content.

With the extra `fast` byte strings above 4 MiB are cut by `pyfastcdc`, elsewhere than here. Who cuts
with it and who without it read each other's values, and share no chunks of those.

Finding a cut in bytes is slower than hashing what lies before it. So it is remembered how a byte
string was cut (`CutBytes`): where the bytes of a chunk and the one behind it are as they were, so
is the cut. With what is remembered and without, the cuts are the same; that bytes are as they were
is told by their SHA-256, never by who owns them. Remembered are places and ids, a thousandth of
the bytes themselves.
"""

import hashlib
import re
import threading
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, TypeVar

_T = TypeVar("_T")

# A cut in bytes lies behind one of these pairs. They are dense in text, numbers and random data
# alike (about 1 in 128), which lets the regular expression engine do nearly all of the work.
_CANDIDATE = re.compile(
    b"[%s][%s]"
    % (
        b"".join(b"\\x%02x" % code for code in range(1, 256, 16)),
        b"".join(b"\\x%02x" % code for code in range(4, 256, 8)),
    )
)
_CANDIDATE_ODDS = 128
_WINDOW_BYTES = 48
_SMALLEST_PART = 4
_LARGEST_FACTOR = 8
_CRC_RANGE = 1 << 32
_CRC_MASK = _CRC_RANGE - 1
_LARGE_TARGET = 64 * 1024
_NATIVE_BYTES_MAX = 16 * 1024 * 1024

_BATCH_BYTES_MAX = 16 * 1024 * 1024
_BESIDE_BYTES_MIN = 1024 * 1024
_REMEMBERED_BYTES = 128
"""What a place and an id take in memory."""

_BYTES_TARGET = 4096
_MEMBERS_TARGET = 1024
_IDS_TARGET = 8
_IDS_SMALLEST = 4  # whatever the ids are, each level of an index is a quarter of the one below


def _target(size_bytes: int, base: int) -> int:
    """The size to aim at: it grows with the whole, so that the chunks stay in the thousands."""
    target, reach = base, base * 1024
    while size_bytes > reach:
        target, reach = target * 4, reach * 16
    return target


def bytes_target(size_bytes: int) -> int:
    """The size of chunks to aim at for a byte string of so many bytes."""
    return _target(size_bytes, _BYTES_TARGET)


def largest_chunk(target: int) -> int:
    """The most bytes that a chunk of a byte string has."""
    return target * _LARGEST_FACTOR


def byte_ends(view: memoryview, seed: int, target: int, first: int = 0) -> Iterator[int]:
    """Where chunks of a byte string end, cutting where its content says so.

    A cut depends on the bytes of its chunk and the one behind it alone, as long as there is room
    for a largest chunk.

    Args:
        view: Bytes that lie one after the other.
        seed: Moves the boundaries.
        target: The size of chunks to aim at.
        first: Where a chunk begins; what lies before it is left out.
    """
    if target > _BYTES_TARGET and largest_chunk(target) <= _NATIVE_BYTES_MAX:
        cutter = native_cutter()
        if cutter is not None:
            return _native_ends(cutter, view, seed, target, first)
    return _python_ends(view, seed, target, first)


def _python_ends(view: memoryview, seed: int, target: int, first: int) -> Iterator[int]:
    largest = largest_chunk(target)
    if target == _BYTES_TARGET:
        # As it always was: most byte strings are that short, and stay as they are stored.
        smallest, span, begun, factor = target // _SMALLEST_PART, target, seed, 1
    else:
        # Most bytes are passed over. A seed that CRC-32 begins with flips the same bits of each
        # sum, which leaves a handful of ways to cut; a factor moves them all.
        smallest = target * 7 // 8 if target >= _LARGE_TARGET else target * 3 // 4
        span, begun, factor = target - smallest, 0, (seed & _CRC_MASK) | 1
    threshold = _CRC_RANGE * _CANDIDATE_ODDS // span
    start = first
    while len(view) - start > smallest:
        stop = min(start + largest, len(view))
        for match in _CANDIDATE.finditer(view, start + smallest, stop):
            place = match.end()
            window = view[place - _WINDOW_BYTES : place]
            if zlib.crc32(window, begun) * factor & _CRC_MASK < threshold:
                stop = place
                break
        yield stop
        start = stop
    if start < len(view):
        yield len(view)


def _native_ends(
    cutter: Callable[..., Any], view: memoryview, seed: int, target: int, first: int
) -> Iterator[int]:
    smallest, largest = target // _SMALLEST_PART, largest_chunk(target)
    cut = cutter(
        target,
        min_size=smallest,
        max_size=largest,
        normalized_chunking=2,
        seed=seed >> 1,  # it takes 63 bits
    )
    end = first
    for chunk in cut.cut_buf(view[first:]):
        if not 0 < chunk.length <= min(largest, len(view) - end):
            break  # whatever it says, nothing is lost
        end += chunk.length
        yield end
    yield from _python_ends(view, seed, target, end)


@cache
def native_cutter() -> Callable[..., Any] | None:
    """The cutter of the extra `fast`; None where it is missing, or is Python itself."""
    try:
        from pyfastcdc import FastCDC  # noqa: PLC0415 # optional
    except ImportError:
        return None
    return FastCDC if FastCDC.__module__.startswith("pyfastcdc.cy.") else None


def members_target(size_bytes: int) -> int:
    """The size of chunks to aim at for members of so many bytes together."""
    return _target(size_bytes, _MEMBERS_TARGET)


def member_ends(parts: Sequence[bytes], seed: int, target: int, first: int = 0) -> Iterator[int]:
    """Where chunks of encoded members end, cutting behind members whose content says so.

    A member ends a chunk with odds in proportion to its length, and surely if it is as long as
    the chunk to aim at.

    Args:
        parts: The members.
        seed: Moves the boundaries.
        target: The size of chunks to aim at.
        first: Where a chunk begins; what lies before it is left out.
    """
    smallest, largest = target // _SMALLEST_PART, target * _LARGEST_FACTOR
    scale = _CRC_RANGE // target
    crc32 = zlib.crc32
    held_bytes = 0
    place = first
    for part in islice(parts, first, None):
        place += 1
        size = len(part)
        held_bytes += size
        if held_bytes >= smallest and (
            size >= target or held_bytes >= largest or crc32(part, seed) < size * scale
        ):
            yield place
            held_bytes = 0
    if held_bytes:
        yield place


def id_ends(ids: Sequence[bytes], first: int = 0) -> Iterator[int]:
    """Where the index blobs over blob ids end; ids are digests, so their own first byte decides.

    Args:
        ids: The ids.
        first: Where an index blob begins; what lies before it is left out.
    """
    for place, each in enumerate(islice(ids, first, None), start=first + 1):
        held = place - first
        cut = each[0] < 256 // _IDS_TARGET and held >= _IDS_SMALLEST
        if cut or held >= _IDS_TARGET * _LARGEST_FACTOR:
            yield place
            first = place
    if first < len(ids):
        yield len(ids)


@dataclass(frozen=True, slots=True)
class CutBytes:
    """A byte string as it was cut."""

    target: int
    seed: int
    ends: list[int]
    ids: list[bytes]
    behind: bytes
    """The byte behind each chunk but the last."""

    @classmethod
    def of(
        cls, view: memoryview, target: int, seed: int, ends: list[int], ids: list[bytes]
    ) -> "CutBytes | None":
        """What to remember; nothing of chunks that were put in pieces, of which each has an id."""
        if len(ids) != len(ends):
            return None
        return cls(target, seed, ends, ids, bytes(view[end] for end in ends[:-1]))

    def stayed(self, view: memoryview, first: int, shift: int) -> int:
        """Up to which chunk, from `first` on, all are as they were.

        Args:
            view: What the byte string is now.
            first: The first of them.
            shift: How far behind its old place it begins.
        """
        largest = largest_chunk(self.target)
        # Of those near the end it is not sure that they were cut by their content.
        room = min(self.ends[-1], len(view) - shift) - largest
        stop = min(bisect_left(self.ends, room) + (room > 0), len(self.ends) - 1)
        count, most = 1, max(1, _BATCH_BYTES_MAX // self.target)
        while first < stop:
            batch = min(first + count, stop)
            first = self._stayed_within(view, first, batch, shift)
            if first < batch:
                break
            count = min(2 * count, most)
        return first

    def _stayed_within(self, view: memoryview, first: int, stop: int, shift: int) -> int:
        """The same for some chunks; many of them are hashed on two cores."""
        if (stop - first) * self.target < _BESIDE_BYTES_MIN:
            return self._compare(view, first, stop, shift)
        middle = (first + stop) // 2
        rest = _beside(lambda: self._compare(view, middle, stop, shift))
        found = self._compare(view, first, middle, shift)
        return rest.result() if found == middle else found

    def _compare(self, view: memoryview, first: int, stop: int, shift: int) -> int:
        ends, ids, behind = self.ends, self.ids, self.behind
        start = (ends[first - 1] if first else 0) + shift
        for place in range(first, stop):
            end = ends[place] + shift
            if view[end] != behind[place]:
                return place
            if hashlib.sha256(view[start:end]).digest() != ids[place]:
                return place
            start = end
        return stop

    def chunk_at(self, start: int, shift: int) -> int | None:
        """The chunk that began at a place, or None."""
        before = bisect_left(self.ends, start - shift)
        found = before < len(self.ends) and self.ends[before] == start - shift
        return before + 1 if found else None


def _beside(call: Callable[[], _T]) -> Future[_T]:
    """Begin a call in an OS thread of its own, or make it at once where none can be started.

    A thread for each call and no pool: one takes a tenth of a millisecond to start, and those of a
    pool are not there after a fork.
    """
    outcome: Future[_T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as exc:  # noqa: BLE001 # whoever asks for the result hears of it
            outcome.set_exception(exc)

    try:
        threading.Thread(target=run, name="sealpoint-hash", daemon=True).start()
    except RuntimeError:
        run()
    return outcome


def recut(
    view: memoryview, target: int, seed: int, before: CutBytes | None
) -> Iterator[tuple[list[int], list[bytes]]]:
    """Cut a byte string as `byte_ends` does, knowing how one was cut that may be like it.

    Returns:
        Ends of chunks in order, some at a time, with their ids, or without any if they are new.
    """
    if before is None or (before.target, before.seed) != (target, seed):
        for end in byte_ends(view, seed, target):
            yield [end], []
        return
    shifts = {0, len(view) - before.ends[-1]}
    start, shift, place = 0, 0, 0
    while start < len(view):
        stop = before.stayed(view, place, shift)
        if stop > place:
            yield [end + shift for end in before.ends[place:stop]], before.ids[place:stop]
            start = before.ends[stop - 1] + shift
        for end in byte_ends(view, seed, target, start):
            yield [end], []
            start = end
            found = [(chunk, by) for by in shifts if (chunk := before.chunk_at(end, by))]
            if found:
                place, shift = found[0]
                break


class ByteCuts:
    """The byte strings of the value before, in the order in which they were cut."""

    __slots__ = ("_before", "_now", "size_bytes")

    def __init__(self) -> None:
        self.size_bytes = 0
        """What it takes in memory, about."""
        self._before: list[CutBytes | None] = []
        self._now: list[CutBytes | None] = []

    def begin(self) -> None:
        """A value is about to be encoded."""
        self._now = []

    def end(self) -> None:
        """The value has been encoded."""
        self._before, self._now = self._now, []
        chunks = sum(len(cut.ends) for cut in self._before if cut is not None)
        self.size_bytes = chunks * _REMEMBERED_BYTES

    def before(self) -> CutBytes | None:
        """How the byte string was cut that stood at this place."""
        place = len(self._now)
        return self._before[place] if place < len(self._before) else None

    def remember(self, cut: CutBytes | None) -> None:
        """Keep how a byte string was cut for the next encoding."""
        self._now.append(cut)
