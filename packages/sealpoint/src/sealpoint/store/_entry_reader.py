# SPDX-License-Identifier: Apache-2.0
"""The sources of entries: the storage, or entries that were read from it at once."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from sealpoint.storage import Record


class EntryReader(Protocol):
    """The part of a storage that reads the entries of threads."""

    def read(self, thread: bytes, seq: int) -> Record | None:
        """Return the record at a position; None if there is none."""
        ...

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the headers at some of the positions."""
        ...

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """Yield the records from `first` to `last` inclusive, in order of position."""
        ...


class NearEntries:
    """The newest entries of a thread, read at once instead of one by one.

    The entries are not trusted: the caller verifies them as usual. They show one moment, so newer
    entries may exist since.

    Args:
        storage: The source of all other entries, and of every other thread.
        thread: The thread.
        newest: Its entries from some position to the end, in rising order.
    """

    def __init__(
        self, storage: EntryReader, thread: bytes, newest: Sequence[tuple[int, Record]]
    ) -> None:
        self._storage = storage
        self._thread = thread
        self._first = newest[0][0]
        self._records = dict(newest)

    def read(self, thread: bytes, seq: int) -> Record | None:
        """Return the record at a position."""
        if thread != self._thread or seq < self._first:
            return self._storage.read(thread, seq)
        return self._records.get(seq)

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the headers of the older positions; the newer entries are already in memory."""
        return self._storage.headers(thread, [seq for seq in seqs if seq < self._first])

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """Yield the records of some positions, in order."""
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
