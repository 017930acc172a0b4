# SPDX-License-Identifier: Apache-2.0
"""Content-defined chunking: the boundaries at which a long container or byte string is cut.

A cut depends only on the bytes near it (or on one member), never on a position, so an insertion
moves the later chunks without changing them. Only the writer decides where to cut: a reader joins
chunks regardless. The seed prevents an outsider who can only choose content from learning where a
store cuts; sizes are bounded for any content.

Finding a cut in bytes is slower than hashing the bytes before it. So `CutBytes` remembers how a
byte string was cut: if the bytes of a chunk and of the next one are unchanged, so is the cut. The
cuts are the same with and without this memory. Only the SHA-256 shows that bytes are unchanged,
never the identity of the object. The memory holds positions and ids, a thousandth of the size of
the bytes.
"""

import hashlib
import re
import threading
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")

# A cut in bytes follows one of these pairs. They are equally dense in text, numbers and random data
# (about 1 in 128), which lets the regular expression engine do nearly all of the work.
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

_BATCH_BYTES_MAX = 16 * 1024 * 1024
_BESIDE_BYTES_MIN = 1024 * 1024
_REMEMBERED_BYTES = 128
"""The approximate memory for a position and an id."""

_BYTES_TARGET = 4096
_MEMBERS_TARGET = 1024
_IDS_TARGET = 8
# for any ids, each level of an index has at most a quarter of the entries of the level below
_IDS_SMALLEST = 4


def _target(size_bytes: int, base: int) -> int:
    """Return the target size; it grows with the whole, so that chunks stay in the thousands."""
    target, reach = base, base * 1024
    while size_bytes > reach:
        target, reach = target * 4, reach * 16
    return target


def bytes_target(size_bytes: int) -> int:
    """Return the target chunk size for a byte string of this length."""
    return _target(size_bytes, _BYTES_TARGET)


def largest_chunk(target: int) -> int:
    """Return the maximum size of a byte string's chunk."""
    return target * _LARGEST_FACTOR


def byte_ends(view: memoryview, seed: int, target: int, first: int = 0) -> Iterator[int]:
    """Yield where the chunks of a byte string end, as its content determines.

    A cut depends only on the bytes of its chunk and the next one, as long as there is room for a
    chunk of maximum size.

    Args:
        view: Contiguous bytes.
        seed: Moves the boundaries.
        target: The target chunk size.
        first: The start of the first chunk; earlier bytes are skipped.
    """
    largest = largest_chunk(target)
    if target == _BYTES_TARGET:
        # The original method: most byte strings are this short, and keep their stored chunks.
        smallest, span, begun, factor = target // _SMALLEST_PART, target, seed, 1
    else:
        # Most bytes are skipped. Using the seed as the start value of CRC-32 would flip the same
        # bits of each sum, which leaves only a few different ways to cut; a factor changes all
        # sums.
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


def members_target(size_bytes: int) -> int:
    """Return the target chunk size for members with this total size."""
    return _target(size_bytes, _MEMBERS_TARGET)


def member_ends(parts: Sequence[bytes], seed: int, target: int, first: int = 0) -> Iterator[int]:
    """Yield where chunks of encoded members end, after members as their content determines.

    A member ends a chunk with a probability proportional to its length, and always if it is as long
    as the target size.

    Args:
        parts: The members.
        seed: Moves the boundaries.
        target: The target chunk size.
        first: The start of the first chunk; earlier members are skipped.
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
    """Yield where index blobs over ids end; ids are digests, so their first byte decides.

    Args:
        ids: The ids.
        first: The start of the first index blob; earlier ids are skipped.
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
    """The cuts of a byte string."""

    target: int
    seed: int
    ends: list[int]
    ids: list[bytes]
    behind: bytes
    """The byte after each chunk except the last."""

    @classmethod
    def of(
        cls, view: memoryview, target: int, seed: int, ends: list[int], ids: list[bytes]
    ) -> "CutBytes | None":
        """Make the record to remember; None if a chunk was split into several blobs."""
        if len(ids) != len(ends):
            return None
        return cls(target, seed, ends, ids, bytes(view[end] for end in ends[:-1]))

    def stayed(self, view: memoryview, first: int, shift: int) -> int:
        """Return the first chunk, from `first` on, that may have changed.

        Args:
            view: The current byte string.
            first: The first chunk to compare.
            shift: How far its start has moved.
        """
        largest = largest_chunk(self.target)
        # For chunks near the end it is uncertain whether their content determined the cut.
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
        """Do the same for some chunks; many of them are hashed on two cores."""
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
        """Return the number of the chunk that began at a position, or None."""
        before = bisect_left(self.ends, start - shift)
        found = before < len(self.ends) and self.ends[before] == start - shift
        return before + 1 if found else None


def _beside(call: Callable[[], _T]) -> Future[_T]:
    """Start a call in a separate OS thread, or make it at once if none can be started.

    This uses an OS thread for each call instead of a pool: starting one takes a tenth of a
    millisecond, and the threads of a pool do not exist after a fork.
    """
    outcome: Future[_T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as exc:  # noqa: BLE001 # the caller gets it with the result
            outcome.set_exception(exc)

    try:
        threading.Thread(target=run, name="sealpoint-hash", daemon=True).start()
    except RuntimeError:
        run()
    return outcome


def recut(
    view: memoryview, target: int, seed: int, before: CutBytes | None
) -> Iterator[tuple[list[int], list[bytes]]]:
    """Cut a byte string as `byte_ends` does, using the known cuts of a similar one.

    Returns:
        Ends of chunks in order, in batches, with their ids, or without ids for new chunks.
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
    """The cuts of the byte strings of the last value, in order."""

    __slots__ = ("_before", "_now", "size_bytes")

    def __init__(self) -> None:
        self.size_bytes = 0
        """The approximate memory that it takes."""
        self._before: list[CutBytes | None] = []
        self._now: list[CutBytes | None] = []

    def begin(self) -> None:
        """Prepare for encoding a value."""
        self._now = []

    def end(self) -> None:
        """Finish after encoding a value."""
        self._before, self._now = self._now, []
        chunks = sum(len(cut.ends) for cut in self._before if cut is not None)
        self.size_bytes = chunks * _REMEMBERED_BYTES

    def before(self) -> CutBytes | None:
        """Return the cuts of the earlier byte string at this place, if any."""
        place = len(self._now)
        return self._before[place] if place < len(self._before) else None

    def remember(self, cut: CutBytes | None) -> None:
        """Remember the cuts of a byte string for the next encoding."""
        self._now.append(cut)
