# SPDX-License-Identifier: Apache-2.0
"""A store in one SQLite file, for several threads and processes of one machine.

It guarantees what `Storage` says: an append is one transaction with a write-ahead log and
`synchronous=FULL`, and whether a position was free is decided by the inserting statement itself.
One connection writes, another reads, so that no read waits for a commit. Rows are checked by type
and size inside SQLite, before they are brought into memory. It refuses files that are not exactly
a store (`_sqlite_file.py` says how, and why the tables are as they are). It leaves to its caller
whether bytes are genuine. It is not for network file systems: SQLite's locks do not hold there.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sealpoint.errors import Edited, ReadOnly, UsageError
from sealpoint.storage._contract import Record
from sealpoint.storage._sqlite_file import FAILURES, create_file, failure, recover
from sealpoint.storage._sqlite_handles import Handles, fork_lock
from sealpoint.storage._sqlite_rows import (
    BLOB,
    BLOBS,
    BLOBS_ROWS,
    DIGEST_BYTES,
    LABELLED,
    LABELLED_MAX,
    PUT_BLOB,
    PUT_ENTRY,
    PUT_LABEL,
    READ,
    SCAN_ASCENDING,
    SCAN_DESCENDING,
    SCAN_ROWS,
    SEQ_MAX,
    THREAD_BYTES,
    THREAD_FIRST,
    THREAD_NEXT,
    EntryRow,
    blob_row,
    entry_row,
    expected_bytes,
    numbered_record,
    require_bytes,
    require_same,
    stored_thread,
)

__all__ = ["SqliteStorage"]


class SqliteStorage:
    """A storage in one SQLite file; see `Storage` for what each method promises.

    The file may be used by several processes at once, and when a process forks, both sides open
    it anew by themselves. When the last storage that may write is closed, all of the store is in
    the one file; until then `<file>-wal` and `<file>-shm` belong to it.

    Args:
        path: The file.
        create: Make the file, readable for its owner alone, if there is none.
        read_only: Never write; another process may.
        wait_seconds_max: How long a call waits for another process to finish writing.

    Raises:
        SchemaUnknown: The file is no store, or one of a schema version that is not known.
        Edited: The file is damaged or holds other tables than a store.
        StorageUnavailable: There is no file, or it cannot be made or opened.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool = False,
        read_only: bool = False,
        wait_seconds_max: float = 30.0,
    ) -> None:
        if create and read_only:
            raise UsageError(f"store {path}: expected create or read_only, found both")
        self._path = Path(os.path.abspath(path))  # noqa: PTH100 # resolve() would follow links
        self._read_only = read_only
        self._wait_seconds_max = wait_seconds_max
        self._closed = False
        if create:
            create_file(self._path)
        self._handles = self._opened()

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        label: bytes | None = None,
    ) -> None:
        """Create entries with the blobs they name, in one transaction.

        Raises:
            HeadMoved: Another record lies at one of the positions.
            Edited: What lies at one of the positions cannot be a record.
            StorageUnavailable: SQLite failed; nothing was changed, or `read` tells.
        """
        if not records:
            raise UsageError("append: expected at least one record, found none")
        if not 0 <= seq <= SEQ_MAX - len(records):
            raise UsageError(f"position: expected 0 to {SEQ_MAX - len(records)}, found {seq}")
        if label is not None:
            require_bytes("label", label, DIGEST_BYTES)
        entry_rows = [
            entry_row(thread, number, record) for number, record in enumerate(records, start=seq)
        ]
        self._write(thread, entry_rows, blobs, label)

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Make blobs durable ahead of the entry that will name them."""
        self._write(thread, [], blobs, None)

    def _write(
        self,
        thread: bytes,
        entry_rows: list[EntryRow],
        blobs: Mapping[bytes, bytes],
        label: bytes | None,
    ) -> None:
        """Take one transaction from begin to commit, or leave nothing of it."""
        require_bytes("thread", thread, THREAD_BYTES)
        blob_rows = [blob_row(thread, digest, data) for digest, data in blobs.items()]
        handles = self._here()
        if self._read_only:
            raise ReadOnly(f"store {self._path}: expected one opened for writing, found read_only")
        with handles.write_lock:
            writer = handles.writer
            if writer is None:
                writer = self._reopened_writer(handles)
            try:
                if len(entry_rows) == 1 and not blob_rows and label is None:
                    # The most frequent append is one statement: a transaction of its own.
                    if writer.execute(PUT_ENTRY, entry_rows[0]).rowcount != 1:
                        require_same(writer, entry_rows[0])
                    return
                writer.execute("BEGIN IMMEDIATE")
                for row in entry_rows:
                    # Create if absent: the statement itself decides, and its count tells.
                    if writer.execute(PUT_ENTRY, row).rowcount != 1:
                        require_same(writer, row)
                if blob_rows:
                    writer.executemany(PUT_BLOB, blob_rows)
                if label is not None:
                    writer.execute(PUT_LABEL, (label, thread))
                writer.execute("COMMIT")
            except BaseException as exc:
                recover(writer)
                if isinstance(exc, FAILURES):
                    raise failure(self._path, exc) from exc
                raise

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
        return [numbered_record(thread, row) for row in self._rows(sql, (thread, low, high))]

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

    def threads(self) -> Iterator[bytes]:
        """Every thread that has an entry, each once, in the order of their bytes."""
        rows = self._rows(THREAD_FIRST, ())
        return self._threads_from(rows)

    def _threads_from(self, rows: list[tuple[object, ...]]) -> Iterator[bytes]:
        """Leap through the index from one thread to the next, as long as it leads upwards."""
        before = b""
        while rows:
            thread = stored_thread("entries", rows[0][0])
            if thread <= before:
                # In a damaged index the leaps would go round for ever.
                raise Edited(f"store {self._path}: expected threads in order, found them in none")
            before = thread
            yield thread
            rows = self._rows(THREAD_NEXT, (thread,))

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
            rows = handles.rows
            if rows is None:
                rows = self._reopened_reader(handles)
            try:
                return rows.execute(sql, parameters).fetchall()
            except FAILURES as exc:
                recover(rows.connection)
                raise failure(self._path, exc) from exc

    def _reopened_reader(self, handles: Handles) -> sqlite3.Cursor:
        """The connection that a fork has closed."""
        if self._closed:
            raise self._closed_error()
        return handles.open_reader()

    def _reopened_writer(self, handles: Handles) -> sqlite3.Connection:
        with handles.read_lock:
            self._reopened_reader(handles)
        return handles.open_writer()

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
