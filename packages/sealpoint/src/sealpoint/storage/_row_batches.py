# SPDX-License-Identifier: Apache-2.0
"""Rows of a database in batches: each batch is a separate query, and nothing is held in between.

A damaged index, or tables that an attacker replaced, may return rows in any order, and the batches
would never end. So rows must strictly rise or fall; otherwise they are `Edited`.
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
    """Return the records of a thread from `first` to `last` inclusive; the first batch at once.

    Args:
        read: Returns the first records between two positions, or the last ones.
        thread: The thread, for messages.
        first: The lowest position.
        last: The highest; None: there is no end.
        full: The size of a batch that another batch may follow.
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
    """Yield the items of rows, sorted by name, as long as the names rise, or fall.

    Args:
        batch: The first items.
        more: Returns the items after a name.
        name: Returns the name of an item; may refuse an item without a name.
        full: The size of a batch that another batch may follow.
        what: A description of the items and their place, for messages.
        descending: Whether the names fall.
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
