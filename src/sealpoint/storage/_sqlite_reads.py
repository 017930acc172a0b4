# SPDX-License-Identifier: Apache-2.0
"""The reading half of a SQLite store: its connections, and what is found through them.

It guarantees that no statement outlives its call, so that between calls nothing is held that a
writer or `compact` could wait for; that rows are checked by type and size inside SQLite, before
they are brought into memory; and that no damage to an index makes a statement or a list go round:
each is bounded, or goes on strictly upwards or downwards. `sqlite.py` adds what writes; it is the
address to import from.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from sealpoint.errors import Edited, UsageError
from sealpoint.limits import SQL_STEPS_MAX
from sealpoint.storage._contract import Record
from sealpoint.storage._sqlite_file import (
    FAILURES,
    BoundedConnection,
    create_file,
    failure,
    recover,
)
from sealpoint.storage._sqlite_handles import Handles, fork_lock
from sealpoint.storage._sqlite_rows import (
    BLOB,
    BLOB_THREAD_FIRST,
    BLOB_THREAD_NEXT,
    BLOBS,
    BLOBS_ROWS,
    LABELLED,
    LABELLED_MAX,
    READ,
    SCAN_ASCENDING,
    SCAN_DESCENDING,
    SCAN_ROWS,
    SEQ_MAX,
    STORED_FIRST,
    STORED_NEXT,
    STORED_ROWS,
    THREAD_FIRST,
    THREAD_NEXT,
    expected_bytes,
    numbered_record,
    stored_blob,
    stored_thread,
)


class SqliteReads:
    """What `SqliteStorage` does without writing; its docstring says what the arguments are."""

    def __init__(
        self,
        path: Path,
        *,
        create: bool = False,
        read_only: bool = False,
        wait_seconds_max: float = 30.0,
        group: int | None = None,
    ) -> None:
        if create and read_only:
            raise UsageError(f"store {path}: expected create or read_only, found both")
        self._path = Path(os.path.abspath(path))  # noqa: PTH100 # resolve() would follow links
        self._read_only = read_only
        self._wait_seconds_max = wait_seconds_max
        self._closed = False
        if create:
            create_file(self._path, group)
        self._handles = self._opened()

    def read(self, thread: bytes, seq: int) -> Record | None:
        """The record at a position, or None."""
        if not 0 <= seq <= SEQ_MAX:
            return None
        rows = self._rows(READ, (thread, seq))
        return numbered_record(thread, rows[0])[1] if rows else None

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """The records from `first` up to and with `last`, in order of position.

        They are read in batches of at most 32 rows, each a short transaction of its own, the
        first before this returns: between batches nothing is held that a writer could wait for.
        """
        low = max(0, first)
        high = SEQ_MAX if last is None or last > SEQ_MAX else last
        if low > high:
            return iter(())
        batch = self._batch(thread, low, high, descending=descending)
        if len(batch) < SCAN_ROWS:
            return iter(batch)
        return self._scan_on(batch, thread, low, high, descending=descending)

    def _scan_on(
        self,
        batch: list[tuple[int, Record]],
        thread: bytes,
        low: int,
        high: int,
        *,
        descending: bool,
    ) -> Iterator[tuple[int, Record]]:
        """Yield a full batch, then those after it."""
        while batch:
            yield from batch
            if len(batch) < SCAN_ROWS:
                return
            if descending:
                high = batch[-1][0] - 1
            else:
                low = batch[-1][0] + 1
            batch = self._batch(thread, low, high, descending=descending)

    def _batch(
        self, thread: bytes, low: int, high: int, *, descending: bool
    ) -> list[tuple[int, Record]]:
        sql = SCAN_DESCENDING if descending else SCAN_ASCENDING
        found = [numbered_record(thread, row) for row in self._rows(sql, (thread, low, high))]
        for number, _ in found:
            if not low <= number <= high:
                # In a damaged index the batches would go round for ever.
                raise Edited(
                    f"entry {number} of thread {thread.hex()}: expected a position from {low} to "
                    f"{high}, in order, found it among these"
                )
            if descending:
                high = number - 1
            else:
                low = number + 1
        return found

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """The bytes stored under a digest, or None.

        Raises:
            Edited: More than `size_bytes_max` bytes, or no bytes, are stored there.
        """
        rows = self._rows(BLOB, (min(size_bytes_max, SEQ_MAX), thread, digest))
        if not rows:
            return None
        data = rows[0][0]
        if type(data) is bytes:
            return data
        raise Edited(
            f"blob {digest.hex()} of thread {thread.hex()}: "
            f"{expected_bytes('data', data, size_bytes_max)}"
        )

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Those of the blobs that are stored and not too large."""
        found: dict[bytes, bytes] = {}
        for place in range(0, len(digests), BLOBS_ROWS):
            wanted = [*digests[place : place + BLOBS_ROWS]]
            # One statement for any number: SQLite keeps it prepared.
            wanted += wanted[-1:] * (BLOBS_ROWS - len(wanted))
            rows = self._rows(BLOBS, (size_bytes_max, thread, *wanted))
            found |= {
                digest: data
                for digest, data in rows
                if type(digest) is bytes and type(data) is bytes
            }
        return found

    def stored_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """Digest and size of every blob of a thread, in the order of the digests.

        They are read in batches, as by `scan`; a blob's bytes are not.
        """
        return self._stored_from(thread, self._rows(STORED_FIRST, (thread,)))

    def _stored_from(
        self, thread: bytes, rows: list[tuple[object, ...]]
    ) -> Iterator[tuple[bytes, int]]:
        """Yield a batch, then those after it, as long as the index leads upwards."""
        before = b""
        while rows:
            for row in rows:
                digest, size_bytes = stored_blob(thread, row)
                if digest <= before:
                    # In a damaged index the batches would go round for ever.
                    raise Edited(f"store {self._path}: expected blobs in order, found them in none")
                before = digest
                yield digest, size_bytes
            if len(rows) < STORED_ROWS:
                return
            rows = self._rows(STORED_NEXT, (thread, before))

    def threads(self) -> Iterator[bytes]:
        """Every thread that has an entry, each once, in the order of their bytes."""
        return self._threads_from("entries", self._rows(THREAD_FIRST, ()), THREAD_NEXT)

    def blob_threads(self) -> Iterator[bytes]:
        """Every thread that has a blob, each once, in the order of their bytes."""
        return self._threads_from("blobs", self._rows(BLOB_THREAD_FIRST, ()), BLOB_THREAD_NEXT)

    def _threads_from(
        self, table: str, rows: list[tuple[object, ...]], next_sql: str
    ) -> Iterator[bytes]:
        """Leap through the index from one thread to the next, as long as it leads upwards."""
        before = b""
        while rows:
            thread = stored_thread(table, rows[0][0])
            if thread <= before:
                # In a damaged index the leaps would go round for ever.
                raise Edited(f"store {self._path}: expected threads in order, found them in none")
            before = thread
            yield thread
            rows = self._rows(next_sql, (thread,))

    def labelled(self, label: bytes) -> list[bytes]:
        """The threads that were appended with this label.

        Raises:
            Edited: More than 4096 threads carry it, or a row cannot be a thread.
        """
        rows = self._rows(LABELLED, (label,))
        if len(rows) > LABELLED_MAX:
            raise Edited(
                f"label {label.hex()}: expected at most {LABELLED_MAX} threads, found more"
            )
        return [stored_thread("labels", row[0]) for row in rows]

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""
        self._closed = True
        handles = self._handles
        if handles.pid == os.getpid():
            handles.close()

    def _rows(self, sql: str, parameters: tuple[object, ...]) -> list[tuple[object, ...]]:
        """Run one reading statement to its end, so that no transaction stays open."""
        handles = self._here()
        with handles.read_lock:
            reader, rows = handles.reader, handles.rows
            if reader is None or rows is None:
                reader, rows = self._reopened_reader(handles)
            reader.allow(SQL_STEPS_MAX)
            try:
                return rows.execute(sql, parameters).fetchall()
            except FAILURES as exc:
                error = failure(self._path, exc, reader)
                recover(reader)
                raise error from exc

    def _reopened_reader(self, handles: Handles) -> tuple[BoundedConnection, sqlite3.Cursor]:
        """The connection that a fork has closed."""
        if self._closed:
            raise self._closed_error()
        return handles.open_reader()

    def _opened(self) -> Handles:
        return Handles(
            self._path, read_only=self._read_only, wait_seconds_max=self._wait_seconds_max
        )

    def _here(self) -> Handles:
        """The connections of this process; a fork's child opens its own, once needed."""
        handles = self._handles
        if handles.pid == os.getpid():
            return handles
        with fork_lock():
            if self._closed:
                raise self._closed_error()
            if self._handles.pid != os.getpid():
                self._handles = self._opened()
            return self._handles

    def _closed_error(self) -> UsageError:
        return UsageError(f"store {self._path}: expected it open, found it closed")
