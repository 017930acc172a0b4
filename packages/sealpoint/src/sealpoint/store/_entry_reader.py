# SPDX-License-Identifier: Apache-2.0
"""Where entries of threads are read: the storage, or what was read there at once."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from sealpoint.storage import Record


class EntryReader(Protocol):
    """Where entries of threads are read: the part of a storage that needs no more."""

    def read(self, thread: bytes, seq: int) -> Record | None:
        """The record at a position; None if there is none."""
        ...

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """The headers at some of the positions."""
        ...

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """The records from `first` up to and with `last`, in order of position."""
        ...


class NearEntries:
    """The newest entries of a thread, read at once in place of one look for each.

    Nothing is believed for it: whoever reads here verifies as elsewhere. It is a picture of one
    moment, so what it lacks may have been written since.

    Args:
        storage: Where the rest is read, and every other thread.
        thread: The thread.
        newest: Its entries from some position to the end, rising.
    """

    def __init__(
        self, storage: EntryReader, thread: bytes, newest: Sequence[tuple[int, Record]]
    ) -> None:
        self._storage = storage
        self._thread = thread
        self._first = newest[0][0]
        self._records = dict(newest)

    def read(self, thread: bytes, seq: int) -> Record | None:
        """The record at a position."""
        if thread != self._thread or seq < self._first:
            return self._storage.read(thread, seq)
        return self._records.get(seq)

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """The headers at those of the positions that are not near: those are at hand."""
        return self._storage.headers(thread, [seq for seq in seqs if seq < self._first])

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """The records of some positions, in their order."""
        if thread != self._thread or (first < self._first and not descending):
            yield from self._storage.scan(thread, first, last, descending=descending)
            return
        near = self._records.items()
        for seq, record in reversed(near) if descending else near:
            if first <= seq and (last is None or seq <= last):
                yield seq, record
        if first < self._first:
            end = self._first - 1 if last is None else min(last, self._first - 1)
            yield from self._storage.scan(thread, first, end, descending=True)
