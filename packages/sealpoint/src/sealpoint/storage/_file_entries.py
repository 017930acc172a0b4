# SPDX-License-Identifier: Apache-2.0
"""The entries of one thread: read without a lock, written and reduced under it.

The module guarantees that an append of several records is one file that appears whole or not at
all, that a position never gets other bytes, and that everything a reader returns is on the disk.
The caller must hold the thread's lock where a function says so, and limit positions and records.

Entries are stored in groups. A group is the file `<first>-<last>`, both positions as 16 hexadecimal
digits. Its directory follows from the digits of its last position without leading zeros: their
number is the first directory, each digit but the last is one more. The group of positions 255 to
258, whose last is 102 in hexadecimal, is `03/1/0/00000000000000ff-0000000000000102`. So no
directory has more than 16 names that count, and listing one directory for each digit finds the next
group before or after any position.

Groups are read in order, with the names of one directory for each digit in memory. Groups do not
overlap, with two exceptions: a crash may leave a group whose records are in a wider one as well,
and a hostile store may contain anything. Each position is then still returned once, and in order. A
name that looks like a group and cannot be one is `Edited`; other names are skipped.

A group holds the records of one append. It is read only if its lengths are within
`sealpoint.limits` and add up to the size of the file, and only the requested part of it is brought
into memory. All numbers are big endian:

| Bytes | Field |
|---|---|
| 18 | `sealpoint group 1` and a newline: the kind and version of the file |
| 2 | number of records |
| 16 for each record | lengths of header, seals, body and payload; ff ff ff ff where there is none |
| the rest | header, seals, body and payload of each record, one after the other |
"""

import heapq
import itertools
import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from sealpoint.errors import Edited, HeadMoved, StorageUnavailable
from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)
from sealpoint.storage._contract import SEQ_MAX, Record
from sealpoint.storage._file_directory import Directory, Drafts, File

RECORDS_MAX = 4096
"""The maximum number of records in one group."""

_MAGIC = b"sealpoint group 1\n"
_HEAD = struct.Struct(f">{len(_MAGIC)}sH")
_LENGTHS = struct.Struct(">IIII")
_NONE = 0xFFFF_FFFF
_BOUNDS = (HEADER_BYTES_MAX, SEALS_BYTES_MAX, BODY_BYTES_MAX, PAYLOAD_BYTES_MAX)
_NAMES = ("header", "seals", "body", "payload")
_MAY_BE_ABSENT = (False, False, True, True)
# Read at once, unless the lengths take more: all of a small group.
_FIRST_BYTES = 64 * 1024
_JOINED_BYTES_MAX = 1024 * 1024


def encode_group(records: Sequence[Record]) -> list[bytes]:
    """Return the bytes of a group, in pieces to be written one after the other."""
    parts = [_parts(record) for record in records]
    lengths = [
        _LENGTHS.pack(*(_NONE if part is None else len(part) for part in four)) for four in parts
    ]
    pieces = [_HEAD.pack(_MAGIC, len(records)), *lengths]
    pieces += [part for part in itertools.chain.from_iterable(parts) if part]
    if sum(map(len, pieces)) <= _JOINED_BYTES_MAX:
        return [b"".join(pieces)]
    return pieces


class EntryGroup:
    """An open group whose lengths have been checked.

    Args:
        file: The open file.
        count: The expected number of records.

    Raises:
        Edited: It is not a group, or has other records.
    """

    __slots__ = ("_ends", "_file", "_first", "_lengths")

    def __init__(self, file: File, count: int) -> None:
        self._file = file
        start = _HEAD.size + count * _LENGTHS.size
        self._first = file.read(min(file.size_bytes, max(start, _FIRST_BYTES)))
        if len(self._first) < start or self._first[: _HEAD.size] != _HEAD.pack(_MAGIC, count):
            raise Edited(
                f"{file.path}: expected a group of {count} records, found bytes of another form"
            )
        self._lengths = list(_LENGTHS.iter_unpack(self._first[_HEAD.size : start]))
        self._ends = list(
            itertools.accumulate(map(self._checked_bytes, self._lengths), initial=start)
        )
        if self._ends[-1] != file.size_bytes:
            raise Edited(f"{file.path}: expected {self._ends[-1]} bytes, found {file.size_bytes}")

    def records(self, start: int, stop: int) -> list[Record]:
        """Return the records from number `start` in the group up to, but excluding, `stop`."""
        first, last = self._ends[start], self._ends[stop]
        if last <= len(self._first):
            data, offset = self._first, first
        else:
            data, offset = self._file.read(last - first, first), 0
        found = []
        for lengths in self._lengths[start:stop]:
            parts: list[bytes | None] = []
            for length in lengths:
                if length == _NONE:
                    parts.append(None)
                else:
                    parts.append(data[offset : offset + length])
                    offset += length
            header, seals, body, payload = parts
            found.append(Record(header or b"", seals or b"", body, payload))
        return found

    def without(self, bodies: frozenset[int], payloads: frozenset[int]) -> Iterator[bytes] | None:
        """Yield the bytes of the group without the bodies and payloads of these records, by number.

        One record at a time is in memory.

        Returns:
            None if there is nothing to remove.
        """
        lengths = [
            (
                header,
                seals,
                _NONE if number in bodies else body,
                _NONE if number in bodies or number in payloads else payload,
            )
            for number, (header, seals, body, payload) in enumerate(self._lengths)
        ]
        if lengths == self._lengths:
            return None
        return self._pieces(lengths)

    def _pieces(self, lengths: list[tuple[int, int, int, int]]) -> Iterator[bytes]:
        yield _HEAD.pack(_MAGIC, len(lengths))
        for four in lengths:
            yield _LENGTHS.pack(*four)
        for number, (_, _, body, payload) in enumerate(lengths):
            (record,) = self.records(number, number + 1)
            yield record.header + record.seals
            if record.body is not None and body != _NONE:
                yield record.body
            if record.payload is not None and payload != _NONE:
                yield record.payload

    def _checked_bytes(self, lengths: tuple[int, ...]) -> int:
        """Return the size of a record in bytes."""
        total = 0
        for name, length, bytes_max, absent in zip(
            _NAMES, lengths, _BOUNDS, _MAY_BE_ABSENT, strict=True
        ):
            if length == _NONE and absent:
                continue
            if length > bytes_max:
                raise Edited(
                    f"{self._file.path}: expected at most {bytes_max} bytes of {name}, "
                    f"found {length}"
                )
            total += length
        return total


def _parts(record: Record) -> tuple[bytes | None, ...]:
    return record.header, record.seals, record.body, record.payload


_BITS = 4
_COUNTS = {f"{count:02x}": count for count in range(1, 17)}
_DIGITS = frozenset("0123456789abcdef")
_NAME = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})", re.ASCII)
_NAME_CHARS = 33
_LAST_FROM = 17
# Sixteen groups end in one directory, or a few more after crashes.
_SPANS_MAX = 1024


class Span(NamedTuple):
    """The positions of one group, and therefore its name."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """Return the name of its file."""
        return f"{self.first:016x}-{self.last:016x}"

    @property
    def size(self) -> int:
        """Return the number of its records."""
        return self.last - self.first + 1


# Before and after every group; they are beyond every bound, and never returned.
_BEGIN = Span(-1, -1)
_END = Span(2**66, 2**66 + RECORDS_MAX)


class Groups:
    """The groups of a thread; one walk through them at a time.

    Args:
        thread: The directory of the thread.
    """

    __slots__ = ("_leaf", "_prefix", "_thread")

    def __init__(self, thread: Directory) -> None:
        self._thread = thread
        # The current directory of the walk: its last group is opened from there.
        self._leaf: Directory | None = None
        self._prefix = -1

    def file(self, span: Span) -> File | None:
        """Open a group, whose name is on the disk then; None if it does not exist."""
        if self._leaf is not None and self._prefix == span.last >> _BITS:
            return _durable_file(self._leaf, span)
        leaf = _open_leaf(self._thread, span.last)
        if leaf is None:
            return None
        with leaf:
            return _durable_file(leaf, span)

    def ascending(self, low: int, high: int) -> Generator[tuple[Span, int, int], None, None]:
        """Yield the groups that hold positions from `low` to `high`, with first and last of these.

        In order of position, and no position twice.
        """
        # A group must wait as long as one that ends later may begin before it. If it continues the
        # previous group, as in a thread without holes, it does not wait.
        waiting: list[Span] = []
        with closing(self.by_last(low, high + RECORDS_MAX - 1)) as spans:
            for span in itertools.chain(spans, [_END]):
                heapq.heappush(waiting, span)
                while waiting and waiting[0].first <= max(low, span.last + 1 - RECORDS_MAX):
                    given = heapq.heappop(waiting)
                    if given.first > high:
                        return
                    if given.last >= low:
                        yield given, max(low, given.first), min(high, given.last)
                        low = given.last + 1
                    if low > high:
                        return

    def descending(self, low: int, high: int) -> Generator[tuple[Span, int, int], None, None]:
        """Yield the same groups from `high` down to `low`, with first and last of the positions."""
        with closing(self.by_last(low, high, backwards=True)) as spans:
            for span in itertools.chain(spans, [_BEGIN]):
                # If a group does not end just below the previous one, a wider one may be there.
                while low <= high > span.last and (wide := self._holder(high)) is not None:
                    yield wide, max(low, wide.first), high
                    high = wide.first - 1
                if low <= high >= span.first >= 0:
                    yield span, max(low, span.first), min(high, span.last)
                    high = span.first - 1
                if low > high:
                    return

    def _holder(self, seq: int) -> Span | None:
        """Return a group that holds a position, or None."""
        with closing(self.by_last(seq, seq + RECORDS_MAX - 1)) as spans:
            return next((span for span in spans if span.first <= seq), None)

    def by_last(
        self, low: int, high: int, *, backwards: bool = False
    ) -> Generator[Span, None, None]:
        """Yield the groups whose last position is from `low` to `high`, in that order."""
        counts = [_COUNTS[name] for name in self._thread.names_in(_COUNTS)]
        for count in sorted(counts, reverse=backwards):
            least = 0 if count == 1 else 1 << _BITS * (count - 1)
            if low < 1 << _BITS * count and high >= least:
                with _opened(self._thread, f"{count:02x}") as directory:
                    yield from self._walk(directory, 0, count, low, high, backwards=backwards)

    def _walk(
        self,
        directory: Directory,
        prefix: int,
        digits: int,
        low: int,
        high: int,
        *,
        backwards: bool,
    ) -> Generator[Span, None, None]:
        """Yield the groups in a directory, whose prefix is followed by `digits` more digits."""
        if digits == 1:
            spans = _spans(directory, prefix, low, high)
            spans.sort(key=_by_last, reverse=backwards)
            self._leaf, self._prefix = directory, prefix
            try:
                yield from spans
            finally:
                self._leaf = None
            return
        bits = _BITS * (digits - 1)
        for name in sorted(directory.names_in(_DIGITS), reverse=backwards):
            longer = prefix << _BITS | int(name, 16)
            # A number does not begin with 0: a directory that does is skipped.
            if longer and low < longer + 1 << bits and high >= longer << bits:
                with _opened(directory, name) as child:
                    yield from self._walk(child, longer, digits - 1, low, high, backwards=backwards)


def _by_last(span: Span) -> tuple[int, int]:
    return span.last, span.first


def _spans(directory: Directory, prefix: int, low: int, high: int) -> list[Span]:
    """Return the groups in one prefix's directory whose last position is from `low` to `high`."""
    found: list[Span] = []
    # Compared as text first: most are outside.
    least, most = f"{low:016x}", f"{min(high, SEQ_MAX):016x}"
    for name in directory.names():
        if len(name) != _NAME_CHARS or not least <= name[_LAST_FROM:] <= most:
            continue
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        span = Span(int(match[1], 16), int(match[2], 16))
        if not 1 <= span.size <= RECORDS_MAX or span.last >> _BITS != prefix:
            raise Edited(f"{directory.path}: expected the names of groups, found {name}")
        if len(found) == _SPANS_MAX:
            raise Edited(f"{directory.path}: it holds more than {_SPANS_MAX} groups")
        found.append(span)
    return found


def _durable_file(leaf: Directory, span: Span) -> File | None:
    file = leaf.file(span.name)
    if file is not None and not file.is_durable:
        # Its writer has not finished, or crashed: see `Drafts`.
        try:
            leaf.sync()
        except BaseException:
            file.close()
            raise
    return file


def _opened(parent: Directory, name: str) -> Directory:
    child = parent.child(name)
    if child is None:
        raise Edited(f"{parent.path}/{name}: expected a directory, found it removed")
    return child


def _open_leaf(thread: Directory, last: int) -> Directory | None:
    """Open the directory of a group that ends at a position; None if it does not exist."""
    directory: Directory | None = None
    for name in _steps(last):
        parent = directory or thread
        try:
            directory = parent.child(name)
        finally:
            if parent is not thread:
                parent.close()
        if directory is None:
            return None
    return directory


def open_or_create_leaf(thread: Directory, last: int) -> Directory:
    """Open the directory of a group that ends at a position, for writing; make it if absent."""
    directory = thread
    for name in _steps(last):
        parent = directory
        try:
            directory = parent.open_or_create(name)
        finally:
            if parent is not thread:
                parent.close()
    return directory


def _steps(last: int) -> Iterator[str]:
    digits = f"{last:x}"
    yield f"{len(digits):02x}"
    yield from digits[:-1]


BATCH_RECORDS = 32
_TRIES_MAX = 100


def last_position(thread: Directory) -> int | None:
    """Return the last position of a thread; -1 if it is unknown; None if it has no entry."""
    try:
        with closing(Groups(thread).by_last(0, SEQ_MAX, backwards=True)) as spans:
            last = next(spans, None)
            return None if last is None else last.last
    except Edited:
        with closing(Groups(thread).by_last(0, SEQ_MAX)) as spans:
            return None if next(spans, None) is None else -1


def has_header(thread: Directory, seq: int, header: bytes | None) -> bool:
    """Whether a position has a record with this header; None: one that cannot be read."""
    try:
        record = read_record(thread, seq)
    except Edited:
        return header is None
    return record is not None and record.header == header


def read_record(thread: Directory, seq: int) -> Record | None:
    """Return the record at a position, or None."""
    # Most groups have one record, so the name is known.
    records = _records(Groups(thread), Span(seq, seq), seq, seq)
    if records is None:
        batch = read_batch(thread, seq, seq)
        return batch[0][1] if batch else None
    return records[0]


def read_batch(
    thread: Directory, low: int, high: int, *, backwards: bool = False
) -> list[tuple[int, Record]]:
    """Return the first `BATCH_RECORDS` records from `low` to `high`, or the last ones backwards."""
    for _ in range(_TRIES_MAX):
        found = _batch(thread, low, high, backwards=backwards)
        if found is not None:
            return found
    raise StorageUnavailable(f"{thread.path}: expected it to stay, found groups that come and go")


def _batch(
    thread: Directory, low: int, high: int, *, backwards: bool
) -> list[tuple[int, Record]] | None:
    """Return a batch; None if a group vanished during the read: a wider one has its records now."""
    found: list[tuple[int, Record]] = []
    groups = Groups(thread)
    walk = groups.descending(low, high) if backwards else groups.ascending(low, high)
    with closing(walk):
        for span, low_here, high_here in walk:
            most = BATCH_RECORDS - len(found)
            first = max(low_here, high_here - most + 1) if backwards else low_here
            last = high_here if backwards else min(high_here, low_here + most - 1)
            records = _records(groups, span, first, last)
            if records is None:
                return None
            numbered = list(zip(range(first, last + 1), records, strict=True))
            found += numbered[::-1] if backwards else numbered
            if len(found) == BATCH_RECORDS:
                break
    return found


def _records(groups: Groups, span: Span, first: int, last: int) -> list[Record] | None:
    """Return the records of a group between two positions; None if the group is gone."""
    file = groups.file(span)
    if file is None:
        return None
    with file:
        return EntryGroup(file, span.size).records(first - span.first, last + 1 - span.first)


def fresh_positions(thread: Directory, seq: int, records: Sequence[Record]) -> list[int]:
    """Return those positions of an append that have no record yet; the lock is held.

    Raises:
        HeadMoved: Another record is at one of the positions.
    """
    low, high = seq, seq + len(records) - 1
    taken: set[int] = set()
    while low <= high:
        batch = read_batch(thread, low, high)
        for number, record in batch:
            if record != records[number - seq]:
                raise HeadMoved(f"entry {number} of thread {thread.name}: it is there already")
            taken.add(number)
            low = number + 1
        if len(batch) < BATCH_RECORDS:
            break
    return [number for number in range(seq, high + 1) if number not in taken]


def write_records(
    thread: Directory, seq: int, records: Sequence[Record], fresh: Sequence[int]
) -> None:
    """Write the records at fresh positions as one group; the lock is held."""
    span = Span(fresh[0], fresh[-1])
    group = encode_group(records[span.first - seq : span.last + 1 - seq])
    with open_or_create_leaf(thread, span.last) as directory, Drafts(thread) as drafts:
        drafts.write(directory, span.name, group)
    if span.size > len(fresh):
        # Between them are older groups, whose records are in this one as well: two files could not
        # appear at once. Both have the same bytes, so it does not matter which one is read.
        with closing(Groups(thread).by_last(span.first, span.last)) as spans:
            within = [other for other in spans if other != span and other.first >= span.first]
        for other in within:
            with open_or_create_leaf(thread, other.last) as directory:
                directory.remove(other.name)
                directory.sync()


def drop_parts(thread: Directory, *, bodies: Sequence[int], payloads: Sequence[int]) -> None:
    """Rewrite the groups of some records without their bodies or payloads; the lock is held."""
    wanted = sorted({*bodies, *payloads})
    if not wanted:
        return
    bare, plain = sorted(bodies), sorted(payloads)
    with closing(Groups(thread).by_last(wanted[0], wanted[-1] + RECORDS_MAX - 1)) as spans:
        for _, near in itertools.groupby(spans, lambda span: span.last >> 4):
            concerned = [span for span in near if _within(wanted, span)]
            if not concerned:
                continue
            # All groups of a directory at once, so that it is synced once.
            with (
                open_or_create_leaf(thread, concerned[0].last) as directory,
                Drafts(thread) as drafts,
            ):
                for span in concerned:
                    _rewrite(directory, drafts, span, _within(bare, span), _within(plain, span))


def truncate_records(thread: Directory, seq: int) -> None:
    """Remove the records from a position on, the last ones first; the lock is held."""
    with closing(Groups(thread).by_last(seq, SEQ_MAX, backwards=True)) as spans:
        for span in spans:
            if span.first < seq:
                # The kept part of a group is on the disk before the whole group is removed.
                _write_first(thread, span, seq - 1)
            with open_or_create_leaf(thread, span.last) as directory:
                directory.remove(span.name)
                directory.sync()


def _write_first(thread: Directory, span: Span, last: int) -> None:
    """Write the first records of a group, up to a position, as a separate group."""
    records = _records(Groups(thread), span, span.first, last)
    if records is None:
        raise Edited(f"{thread.path}/{span.name}: expected a group, found it removed")
    with open_or_create_leaf(thread, last) as directory, Drafts(thread) as drafts:
        name = Span(span.first, last).name
        drafts.write(directory, name, encode_group(records), replaces=True)


def _rewrite(
    directory: Directory,
    drafts: Drafts,
    span: Span,
    bodies: frozenset[int],
    payloads: frozenset[int],
) -> None:
    file = directory.file(span.name)
    if file is None:
        raise Edited(f"{directory.path}/{span.name}: expected a group, found it removed")
    with file:
        pieces = EntryGroup(file, span.size).without(bodies, payloads)
        if pieces is not None:
            drafts.write(directory, span.name, pieces, replaces=True)
        elif not file.is_durable:
            directory.sync()


def _within(numbers: Sequence[int], span: Span) -> frozenset[int]:
    """Return those of some sorted positions that a group holds, counted from its first."""
    found = numbers[bisect_left(numbers, span.first) : bisect_right(numbers, span.last)]
    return frozenset(number - span.first for number in found)
