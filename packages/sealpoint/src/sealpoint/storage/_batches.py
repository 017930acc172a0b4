# SPDX-License-Identifier: Apache-2.0
"""Rows of a database in batches: each is asked for by itself, and nothing is held between them.

A damaged index, or tables that somebody put others in the place of, may give rows in any order, and
the batches would go round for ever. So rows have to lead strictly upwards, or downwards; else they
are `Edited`.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from sealpoint.errors import Edited
from sealpoint.storage._contract import SEQ_MAX, Record

_T = TypeVar("_T")
_Records = list[tuple[int, Record]]


def scan_batches(
    read: Callable[[int, int], _Records],
    thread: bytes,
    first: int,
    last: int | None,
    *,
    full: int,
    descending: bool,
) -> Iterator[tuple[int, Record]]:
    """The records of a thread from `first` up to and with `last`; the first batch is read at once.

    Args:
        read: Gives the first records between two positions, or the last ones.
        thread: The thread, for messages.
        first: The lowest position.
        last: The highest; None: there is no end.
        full: How many records there are in a batch that another may follow.
        descending: Begin with the highest.
    """
    low = max(0, first)
    high = SEQ_MAX if last is None or last > SEQ_MAX else last
    if low > high:
        return iter(())
    batch = _ordered(read(low, high), thread, low, high, descending=descending)
    if len(batch) < full:
        return iter(batch)
    return _scan_on(read, thread, low, high, batch, full=full, descending=descending)


def _scan_on(
    read: Callable[[int, int], _Records],
    thread: bytes,
    low: int,
    high: int,
    batch: _Records,
    *,
    full: int,
    descending: bool,
) -> Iterator[tuple[int, Record]]:
    while batch:
        yield from batch
        if len(batch) < full:
            return
        if descending:
            high = batch[-1][0] - 1
        else:
            low = batch[-1][0] + 1
        batch = _ordered(read(low, high), thread, low, high, descending=descending)


def _ordered(batch: _Records, thread: bytes, low: int, high: int, *, descending: bool) -> _Records:
    for number, _ in batch:
        if not low <= number <= high:
            raise Edited(
                f"entry {number} of thread {thread.hex()}: expected positions from {low} to "
                f"{high} in order, found this one among them"
            )
        if descending:
            high = number - 1
        else:
            low = number + 1
    return batch


def rising(
    batch: list[_T],
    more: Callable[[bytes], list[_T]],
    name: Callable[[_T], bytes],
    *,
    full: int,
    what: str,
    descending: bool = False,
) -> Iterator[_T]:
    """What rows are about, by their names, as long as those rise, or fall.

    Args:
        batch: The first of them.
        more: Gives those behind a name.
        name: What one is called; may refuse what has no name.
        full: How many there are in a batch that another may follow.
        what: What they are, and where, for messages.
        descending: Whether they fall.
    """
    before: bytes | None = None
    while batch:
        for each in batch:
            called = name(each)
            if before is not None and (called >= before if descending else called <= before):
                order = "falling" if descending else "rising"
                raise Edited(f"{what}: expected them in {order} order, found them in another")
            before = called
            yield each
        if len(batch) < full or before is None:
            return
        batch = more(before)
