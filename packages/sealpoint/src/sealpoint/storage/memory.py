# SPDX-License-Identifier: Apache-2.0
"""The reference implementation of the contract: everything is stored in this process's memory.

It guarantees the contract of `Storage` for any number of OS threads of one process. It accepts
everything that another backend accepts. It lacks what memory cannot provide: it is not shared
between processes and nothing survives the process, so it is for tests and for state that may be
lost.
"""

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext

from sealpoint.errors import Edited, HeadMoved, Missing, UsageError
from sealpoint.storage._contract import Record, require_append, require_blobs, require_drop

__all__ = ["MemoryStorage"]


class MemoryStorage:
    """A storage in memory, for one process; see `Storage` for the promises of each method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._records: dict[bytes, dict[int, Record]] = {}
        # The keys of each thread's records in order, so that a scan can continue after an append.
        self._positions: dict[bytes, list[int]] = {}
        self._blobs: dict[tuple[bytes, bytes], bytes] = {}
        # The digests of each thread's blobs, in order unless the thread is among those that have
        # new ones: they are sorted on the next listing, because many are added one by one.
        self._digests: dict[bytes, list[bytes]] = {}
        self._unsorted: set[bytes] = set()
        # A dict without values: a set that keeps its order.
        self._labels: dict[bytes, dict[bytes, None]] = {}

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        needs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Create entries with the blobs they name: all or nothing."""
        require_append(thread, seq, records, blobs=blobs, needs=needs, label=label)
        with self._lock:
            self._require_open()
            held = self._records.get(thread, {})
            fresh: dict[int, Record] = {}
            # (1) Compare every position and look for every blob before anything is changed.
            for number, record in enumerate(records, start=seq):
                if number not in held:
                    fresh[number] = record
                elif held[number] != record:
                    raise HeadMoved(f"entry {number} of thread {thread.hex()}: it is there already")
            for digest in needs:
                if (thread, digest) not in self._blobs:
                    raise Missing(f"blob {digest.hex()} of thread {thread.hex()}: it is missing")
            # (2) Blobs, then the entries that name them.
            self._put(thread, blobs)
            if fresh:
                self._records.setdefault(thread, {}).update(fresh)
                positions = self._positions.setdefault(thread, [])
                for number in fresh:
                    insort(positions, number)
            if label is not None:
                self._labels.setdefault(label, {})[thread] = None

    def alone(self, thread: bytes) -> nullcontext[None]:  # noqa: ARG002 # as `Storage` has it
        """Do nothing: the positions of a thread are taken one by one."""
        return nullcontext()

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Keep blobs ahead of the entry that will name them."""
        require_blobs(thread, blobs)
        with self._lock:
            self._require_open()
            self._put(thread, blobs)

    def drop(
        self,
        thread: bytes,
        head: int,
        *,
        payloads: Sequence[int] = (),
        bodies: Sequence[int] = (),
        blobs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Drop bytes of a thread, unless there is a newer entry: all or nothing."""
        require_drop(thread, head, (*payloads, *bodies), blobs=blobs, label=label)
        with self._lock:
            self._require_open()
            held = self._records.get(thread, {})
            if head + 1 in held:
                raise HeadMoved(
                    f"entry {head + 1} of thread {thread.hex()}: expected no record, found one"
                )
            for seq in payloads:
                if (record := held.get(seq)) is not None:
                    held[seq] = Record(record.header, record.seals, record.body)
            for seq in bodies:
                if (record := held.get(seq)) is not None:
                    held[seq] = Record(record.header, record.seals, None)
            self._forget(thread, blobs)
            if label is not None and (labelled := self._labels.get(label)) is not None:
                labelled.pop(thread, None)
                if not labelled:
                    del self._labels[label]

    def truncate(self, thread: bytes, seq: int, header: bytes | None) -> None:
        """Drop the record at a position, if it has this header, and all after it."""
        require_drop(thread, -1, (seq,))
        with self._lock:
            self._require_open()
            held = self._records.get(thread, {})
            if seq not in held or held[seq].header != header:
                raise HeadMoved(
                    f"entry {seq} of thread {thread.hex()}: the record that is to go is gone "
                    "already, or is another one"
                )
            positions = self._positions[thread]
            place = bisect_left(positions, seq)
            for number in positions[place:]:
                del held[number]
            del positions[place:]
            if not held:
                del self._records[thread], self._positions[thread]

    def compact(self) -> None:
        """Do nothing: dropped bytes are nowhere, as far as a program can determine."""
        with self._lock:
            self._require_open()

    def read(self, thread: bytes, seq: int) -> Record | None:
        """Return the record at a position, or None."""
        with self._lock:
            self._require_open()
            return self._records.get(thread, {}).get(seq)

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the headers at those of the positions that have a record."""
        with self._lock:
            self._require_open()
            records = self._records.get(thread, {})
            return {seq: records[seq].header for seq in seqs if seq in records}

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """Yield the records from `first` to `last` inclusive, in order of position."""
        with self._lock:
            self._require_open()
        return self._walk(thread, first, last, descending=descending)

    def _walk(
        self, thread: bytes, first: int, last: int | None, *, descending: bool
    ) -> Iterator[tuple[int, Record]]:
        """Look up each next position again: the lock is never held while the caller works."""
        low, high = first, last
        while True:
            with self._lock:
                self._require_open()
                positions = self._positions.get(thread, [])
                start = bisect_left(positions, low)
                stop = len(positions) if high is None else bisect_right(positions, high)
                if start >= stop:
                    return
                number = positions[stop - 1] if descending else positions[start]
                record = self._records[thread][number]
            yield number, record
            if descending:
                high = number - 1
            else:
                low = number + 1

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """Return the bytes stored under a digest, or None.

        Raises:
            Edited: More than `size_bytes_max` bytes are stored there.
        """
        with self._lock:
            self._require_open()
            data = self._blobs.get((thread, digest))
        if data is not None and len(data) > size_bytes_max:
            raise Edited(
                f"blob {digest.hex()} of thread {thread.hex()}: expected at most "
                f"{size_bytes_max} bytes, found {len(data)}"
            )
        return data

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Return those of the blobs that are stored and not too large."""
        with self._lock:
            self._require_open()
            found = {digest: self._blobs.get((thread, digest)) for digest in digests}
        return {
            digest: data
            for digest, data in found.items()
            if data is not None and len(data) <= size_bytes_max
        }

    def stored_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield digest and size of every blob of a thread, in the order of the digests."""
        with self._lock:
            self._require_open()
        return self._walk_blobs(thread)

    def _walk_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """Look up each next digest again: the lock is never held while the caller works."""
        before = b""
        while True:
            with self._lock:
                self._require_open()
                digests = self._digests.get(thread, [])
                if thread in self._unsorted:
                    digests.sort()
                    self._unsorted.remove(thread)
                place = bisect_right(digests, before)
                if place == len(digests):
                    return
                before = digests[place]
                size_bytes = len(self._blobs[thread, before])
            yield before, size_bytes

    def version(self) -> None:
        """Return None: tests change the rows directly, so every read must be repeated."""
        with self._lock:
            self._require_open()

    def heads(self) -> Iterator[tuple[bytes, int]]:
        """Yield every thread that has an entry, each once, with its last position."""
        with self._lock:
            self._require_open()
            return iter([(thread, self._positions[thread][-1]) for thread in self._records])

    def blob_threads(self) -> Iterator[bytes]:
        """Yield every thread that has a blob, each once."""
        with self._lock:
            self._require_open()
            return iter(list(self._digests))

    def labelled(self, label: bytes) -> list[bytes]:
        """Return the threads that were appended with this label."""
        with self._lock:
            self._require_open()
            return list(self._labels.get(label, {}))

    def close(self) -> None:
        """Drop everything. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            self._records.clear()
            self._positions.clear()
            self._blobs.clear()
            self._digests.clear()
            self._unsorted.clear()
            self._labels.clear()

    def _put(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Keep blobs, and replace stored ones that differ; the lock is held."""
        for digest, data in blobs.items():
            if (thread, digest) not in self._blobs:
                self._digests.setdefault(thread, []).append(digest)
                self._unsorted.add(thread)
            self._blobs[thread, digest] = data

    def _forget(self, thread: bytes, digests: Collection[bytes]) -> None:
        """Drop blobs; the lock is held."""
        for digest in digests:
            self._blobs.pop((thread, digest), None)
        if digests and thread in self._digests:
            left = [each for each in self._digests[thread] if (thread, each) in self._blobs]
            if left:
                self._digests[thread] = left
            else:
                del self._digests[thread]
                self._unsorted.discard(thread)

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("memory storage: expected it open, found it closed")
