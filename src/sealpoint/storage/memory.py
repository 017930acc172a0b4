# SPDX-License-Identifier: Apache-2.0
"""The reference implementation of the contract: everything lies in this process's memory.

It guarantees what `Storage` says for any number of OS threads of one process. It refuses nothing
that another backend would take. It leaves out what memory cannot give: it is not shared between
processes and nothing survives the process, so it is for tests and for state that may be lost.
"""

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence

from sealpoint.errors import Edited, HeadMoved, UsageError
from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)
from sealpoint.storage._contract import Record

__all__ = ["MemoryStorage"]

_THREAD_BYTES = 16
_DIGEST_BYTES = 32


class MemoryStorage:
    """A storage in memory, for one process; see `Storage` for what each method promises."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._records: dict[bytes, dict[int, Record]] = {}
        # The keys of each thread's records in order, so that a scan can go on after an append.
        self._positions: dict[bytes, list[int]] = {}
        self._blobs: dict[tuple[bytes, bytes], bytes] = {}
        # A dict without values: a set that keeps its order.
        self._labels: dict[bytes, dict[bytes, None]] = {}

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        label: bytes | None = None,
    ) -> None:
        """Create entries with the blobs they name: all or nothing."""
        _require_sizes(thread, blobs)
        if seq < 0 or not records:
            raise UsageError(
                f"append: expected a position of 0 or more and at least one record, "
                f"found position {seq} and {len(records)} records"
            )
        if label is not None and len(label) != _DIGEST_BYTES:
            raise UsageError(f"label: expected {_DIGEST_BYTES} bytes, found {len(label)}")
        for number, record in enumerate(records, start=seq):
            _require_bounds(number, record)
        with self._lock:
            self._require_open()
            held = self._records.get(thread, {})
            fresh: dict[int, Record] = {}
            # (1) Compare every position before anything is changed.
            for number, record in enumerate(records, start=seq):
                if number not in held:
                    fresh[number] = record
                elif held[number] != record:
                    raise HeadMoved(
                        f"entry {number} of thread {thread.hex()}: expected no record, "
                        f"found another one"
                    )
            # (2) Blobs, then the entries that name them.
            self._put(thread, blobs)
            if fresh:
                self._records.setdefault(thread, {}).update(fresh)
                positions = self._positions.setdefault(thread, [])
                for number in fresh:
                    insort(positions, number)
            if label is not None:
                self._labels.setdefault(label, {})[thread] = None

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Keep blobs ahead of the entry that will name them."""
        _require_sizes(thread, blobs)
        with self._lock:
            self._require_open()
            self._put(thread, blobs)

    def read(self, thread: bytes, seq: int) -> Record | None:
        """The record at a position, or None."""
        with self._lock:
            self._require_open()
            return self._records.get(thread, {}).get(seq)

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """The records from `first` up to and with `last`, in order of position."""
        with self._lock:
            self._require_open()
        return self._walk(thread, first, last, descending=descending)

    def _walk(
        self, thread: bytes, first: int, last: int | None, *, descending: bool
    ) -> Iterator[tuple[int, Record]]:
        """Look each next position up anew: the lock is never held while the caller works."""
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
        """The bytes stored under a digest, or None.

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
        """Those of the blobs that are stored and not too large."""
        with self._lock:
            self._require_open()
            found = {digest: self._blobs.get((thread, digest)) for digest in digests}
        return {
            digest: data
            for digest, data in found.items()
            if data is not None and len(data) <= size_bytes_max
        }

    def threads(self) -> Iterator[bytes]:
        """Every thread that has an entry, each once."""
        with self._lock:
            self._require_open()
            return iter(list(self._records))

    def labelled(self, label: bytes) -> list[bytes]:
        """The threads that were appended with this label."""
        with self._lock:
            self._require_open()
            return list(self._labels.get(label, {}))

    def close(self) -> None:
        """Forget everything. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            self._records.clear()
            self._positions.clear()
            self._blobs.clear()
            self._labels.clear()

    def _put(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Keep blobs, in place of stored ones that differ; the lock is held."""
        for digest, data in blobs.items():
            self._blobs[thread, digest] = data

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("memory storage: expected it open, found it closed")


def _require_sizes(thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
    """Refuse a thread or digest that could not be found again."""
    if len(thread) != _THREAD_BYTES:
        raise UsageError(f"thread: expected {_THREAD_BYTES} bytes, found {len(thread)}")
    for digest in blobs:
        if len(digest) != _DIGEST_BYTES:
            raise UsageError(f"digest: expected {_DIGEST_BYTES} bytes, found {len(digest)}")


def _require_bounds(number: int, record: Record) -> None:
    """Refuse a record that no reader would take."""
    for name, value, bytes_max in (
        ("header", record.header, HEADER_BYTES_MAX),
        ("seals", record.seals, SEALS_BYTES_MAX),
        ("body", record.body, BODY_BYTES_MAX),
        ("payload", record.payload, PAYLOAD_BYTES_MAX),
    ):
        if value is not None and len(value) > bytes_max:
            raise UsageError(
                f"{name} of entry {number}: expected at most {bytes_max} bytes, found {len(value)}"
            )
