# SPDX-License-Identifier: Apache-2.0
"""The entries of one thread: read without a lock, written and thinned out under it.

It guarantees that an append of several records is one file that appears whole or not at all, that
a position is never given other bytes, and that what a reader returns is on the disk. It leaves to
its caller to hold the thread's lock where a function says so, and to bound positions and records.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import closing

from sealpoint.errors import Edited, HeadMoved, StorageUnavailable
from sealpoint.storage._contract import SEQ_MAX, Record
from sealpoint.storage._file_directory import Directory, Drafts
from sealpoint.storage._file_positions import (
    RECORDS_MAX,
    EntryGroup,
    Groups,
    Span,
    encode_group,
    open_or_create_leaf,
)

BATCH_RECORDS = 32
_TRIES_MAX = 100


def has_entries(thread: Directory) -> bool:
    """Whether a thread has an entry."""
    with closing(Groups(thread).by_last(0, SEQ_MAX)) as spans:
        return next(spans, None) is not None


def has_header(thread: Directory, seq: int, header: bytes | None) -> bool:
    """Whether there is a record at a position with this header; None: one that cannot be read."""
    try:
        record = read_record(thread, seq)
    except Edited:
        return header is None
    return record is not None and record.header == header


def read_record(thread: Directory, seq: int) -> Record | None:
    """The record at a position, or None."""
    # Most groups are of one record, and then the name is known.
    records = _records(Groups(thread), Span(seq, seq), seq, seq)
    if records is None:
        batch = read_batch(thread, seq, seq)
        return batch[0][1] if batch else None
    return records[0]


def read_batch(
    thread: Directory, low: int, high: int, *, backwards: bool = False
) -> list[tuple[int, Record]]:
    """The first `BATCH_RECORDS` records from `low` to `high`, or the last of them backwards."""
    for _ in range(_TRIES_MAX):
        found = _batch(thread, low, high, backwards=backwards)
        if found is not None:
            return found
    raise StorageUnavailable(f"{thread.path}: expected it to stay, found groups that come and go")


def _batch(
    thread: Directory, low: int, high: int, *, backwards: bool
) -> list[tuple[int, Record]] | None:
    """A batch; None if a group went while it was read: its records are in a wider one now."""
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
    """The records of a group from one position to another; None if the group is gone."""
    file = groups.file(span)
    if file is None:
        return None
    with file:
        return EntryGroup(file, span.size).records(first - span.first, last + 1 - span.first)


def fresh_positions(thread: Directory, seq: int, records: Sequence[Record]) -> list[int]:
    """Those positions of an append that have no record yet; the lock is held.

    Raises:
        HeadMoved: Another record lies at one of the positions.
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
        # Between them lie older groups, whose records are in this one as well: two files could
        # not appear at once. They are the same bytes, so it does not matter which one is read.
        with closing(Groups(thread).by_last(span.first, span.last)) as spans:
            within = [other for other in spans if other != span and other.first >= span.first]
        for other in within:
            with open_or_create_leaf(thread, other.last) as directory:
                directory.remove(other.name)
                directory.sync()


def drop_parts(thread: Directory, *, bodies: Sequence[int], payloads: Sequence[int]) -> None:
    """Write the groups of some records anew without their bodies or payloads; the lock is held."""
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
    """Take the records from a position on away, the last ones first; the lock is held."""
    with closing(Groups(thread).by_last(seq, SEQ_MAX, backwards=True)) as spans:
        for span in spans:
            if span.first < seq:
                # What stays of a group is on the disk before the whole of it goes.
                _write_first(thread, span, seq - 1)
            with open_or_create_leaf(thread, span.last) as directory:
                directory.remove(span.name)
                directory.sync()


def _write_first(thread: Directory, span: Span, last: int) -> None:
    """Write the first records of a group, up to a position, as a group of their own."""
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
    """Those of some sorted positions that a group holds, counted from its first."""
    found = numbers[bisect_left(numbers, span.first) : bisect_right(numbers, span.last)]
    return frozenset(number - span.first for number in found)
