# SPDX-License-Identifier: Apache-2.0
"""A store in one SQLite file, for several threads and processes of one machine.

It guarantees what `Storage` says: an append or a drop is one transaction with a write-ahead log
and `synchronous=FULL`, and whether a position was free is decided by the inserting statement
itself. One connection writes, another reads (`_sqlite_reads.py`), so that no read waits for a
commit. It refuses files that are not exactly a store (`_sqlite_file.py` says how). It leaves to
its caller whether bytes are genuine. It is not for network file systems: SQLite's locks do not
hold there.
"""

import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from sealpoint.errors import Edited, ReadOnly, StorageUnavailable, UsageError
from sealpoint.limits import SQL_STEPS_MAX
from sealpoint.storage._contract import Record
from sealpoint.storage._sqlite_changes import append_rows, drop_rows, truncate_rows
from sealpoint.storage._sqlite_file import FAILURES, BoundedConnection, failure, file_bytes, recover
from sealpoint.storage._sqlite_handles import Handles
from sealpoint.storage._sqlite_reads import SqliteReads
from sealpoint.storage._sqlite_rows import (
    DIGEST_BYTES,
    SEQ_MAX,
    THREAD_BYTES,
    Purpose,
    blob_row,
    entry_row,
    require_bytes,
)

__all__ = ["SqliteStorage"]

# ---------------------------------------------------------------------- sqlite compact
# Compacting a SQLite store: nothing that was dropped stays in the file or its log.
#
# Overwriting what is dropped (`secure_delete`) is not enough. When SQLite moves rows from page to
# page, it leaves copies in the gaps of pages, which nobody knows of when the row goes; and the
# log holds pages as they were. So everything that is stored is copied to new pages (`VACUUM`),
# which come into the file by the log, as any change does: a crash leaves the store as it was or
# as it will be, and other processes see either. Then the log is emptied, which takes a moment
# without readers on older pages; until it is empty, what was dropped may still be there, and that
# is `StorageUnavailable`.
#
# It refuses a damaged file before it copies anything: following wrong pointers, SQLite could copy
# the same page without end. It leaves to the file system what becomes of blocks that files no
# longer use.
#
# SQLite copies into a database of its own that has no name: in memory if what is stored takes at
# most 64 MiB, otherwise in a file that is for its owner alone and, except on Windows, has lost
# its name before the first byte is written. It holds nothing of what was dropped. Where that file
# lies is SQLite's decision for the whole process (`SQLITE_TMPDIR`, `TMPDIR`, `/var/tmp`); the one
# way to say so from here, `PRAGMA temp_store_directory`, changes it for everybody else in the
# process, is not safe while they work, and is deprecated.


_MEMORY_BYTES_MAX = 64 * 1024 * 1024
_PAGE_BYTES = 4096
# While readers are waited for writers wait too, so that is done in turns.
_TURN_SECONDS = 1.0
_PAUSE_SECONDS = 0.05


def compact_file(connection: sqlite3.Connection, path: Path, wait_seconds_max: float) -> None:
    """Write the file anew, and empty its log.

    Raises:
        Edited: The file is damaged.
        StorageUnavailable: Others read for so long that the log could not be emptied.
    """
    # (1) The pages form the trees of their tables, each once.
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        # What SQLite says about it may hold text from the file.
        raise Edited(f"store {path}: expected whole tables, found damaged ones")
    # (2) What is stored, and nothing else, in new pages.
    in_memory = _live_bytes(connection) <= _MEMORY_BYTES_MAX
    connection.execute(f"PRAGMA temp_store = {'MEMORY' if in_memory else 'FILE'}")
    connection.execute("VACUUM")
    # (3) Those pages in the file, no page after them, and nothing in the log.
    deadline = time.monotonic() + wait_seconds_max
    while True:
        turn_seconds = min(_TURN_SECONDS, max(0.0, deadline - time.monotonic()))
        connection.execute(f"PRAGMA busy_timeout = {int(turn_seconds * 1000)}")
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return
        if time.monotonic() + _PAUSE_SECONDS > deadline:
            raise StorageUnavailable(
                f"store {path}: expected to empty its log within {wait_seconds_max:g} seconds, "
                f"found others reading or writing; what was dropped may still be in its files",
                hint="Compact again when nobody else works with the store.",
            )
        time.sleep(_PAUSE_SECONDS)


def _live_bytes(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    return int(pages - free) * _PAGE_BYTES


# ---------------------------------------------------------------------- sqlite

# Of a change, for each row that is written or looked for; it takes about 50.
_ROW_STEPS_MAX = 1000
# Of what goes through the whole file; compacting the smallest rows takes a third of a step.
_BYTE_STEPS_MAX = 4


class SqliteStorage(SqliteReads):
    """A storage in one SQLite file; see `Storage` for what each method promises.

    The file may be used by several processes at once, and when a process forks, both sides open
    it anew by themselves. When the last storage that may write is closed, all of the store is in
    the one file; until then `<file>-wal` and `<file>-shm` belong to it.

    Args:
        path: The file.
        create: Make the file, readable for its owner alone, if there is none.
        read_only: Never write; another process may.
        wait_seconds_max: How long a call waits for another process to finish writing.
        group: The number of the group whose members share a file that is made; without it, it is
            its owner's alone.

    Raises:
        SchemaUnknown: The file is no store, or one of a schema version that is not known.
        Edited: The file is damaged or holds other tables than a store.
        StorageUnavailable: There is no file, or it cannot be made or opened.
    """

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
        """Create entries with the blobs they name, in one transaction.

        Raises:
            HeadMoved: Another record lies at one of the positions.
            Missing: A blob that is needed is not stored.
            Edited: What lies at one of the positions cannot be a record.
            StorageUnavailable: SQLite failed; nothing was changed, or `read` tells.
        """
        require_bytes("thread", thread, THREAD_BYTES)
        if not records:
            raise UsageError("append: expected at least one record, found none")
        if not 0 <= seq <= SEQ_MAX - len(records):
            raise UsageError(f"position: expected 0 to {SEQ_MAX - len(records)}, found {seq}")
        if label is not None:
            require_bytes("label", label, DIGEST_BYTES)
        needed = _digests(needs) if needs else ()
        rows = [
            entry_row(thread, number, record) for number, record in enumerate(records, start=seq)
        ]
        blob_rows = [blob_row(thread, digest, data) for digest, data in blobs.items()]
        self._change(
            len(rows) + len(blob_rows) + len(needed),
            lambda writer: append_rows(
                writer, thread, entries=rows, blobs=blob_rows, needs=needed, label=label
            ),
        )

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Make blobs durable ahead of the entry that will name them."""
        require_bytes("thread", thread, THREAD_BYTES)
        rows = [blob_row(thread, digest, data) for digest, data in blobs.items()]
        self._change(
            len(rows),
            lambda writer: append_rows(
                writer, thread, entries=(), blobs=rows, needs=(), label=None
            ),
        )

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
        """Take bytes away and overwrite them, in one transaction.

        Copies that SQLite has made of them may lie in the file and its log until `compact`.

        Raises:
            HeadMoved: There is a newer entry.
            Edited: What stays of an entry cannot be a record.
            StorageUnavailable: SQLite failed; nothing was changed, or `read` tells.
        """
        require_bytes("thread", thread, THREAD_BYTES)
        digests = _digests(blobs)
        if label is not None:
            require_bytes("label", label, DIGEST_BYTES)
        for least, position in ((-1, head), *((0, seq) for seq in (*payloads, *bodies))):
            if not least <= position <= SEQ_MAX:
                raise UsageError(f"position: expected {least} to {SEQ_MAX}, found {position}")
        self._change(
            len(payloads) + len(bodies) + len(digests),
            lambda writer: drop_rows(
                writer,
                thread,
                head,
                payloads=payloads,
                bodies=bodies,
                blobs=digests,
                label=label,
            ),
        )

    def truncate(self, thread: bytes, seq: int, header: bytes | None) -> None:
        """Take the record at a position away and all after it, in one transaction.

        Raises:
            HeadMoved: The record there has another header, or there is none.
            StorageUnavailable: SQLite failed; nothing was changed, or `read` tells.
        """
        require_bytes("thread", thread, THREAD_BYTES)
        if not 0 <= seq <= SEQ_MAX:
            raise UsageError(f"position: expected 0 to {SEQ_MAX}, found {seq}")
        self._apart(
            Purpose.TRUNCATE, lambda connection: truncate_rows(connection, thread, seq, header)
        )

    def _change(self, rows: int, make: Callable[[sqlite3.Connection], None]) -> None:
        """Take one transaction over so many rows from begin to commit, or leave nothing of it."""
        handles = self._writable()
        with handles.write_lock:
            writer = handles.writer
            if writer is None:
                writer = self._reopened_writer(handles)
            writer.allow(SQL_STEPS_MAX + rows * _ROW_STEPS_MAX)
            try:
                make(writer)
            except FAILURES as exc:
                error = failure(self._path, exc, writer)
                recover(writer)
                raise error from exc
            except BaseException:
                recover(writer)
                raise

    def compact(self) -> None:
        """Write the file anew without what was dropped, and empty its log.

        Writers wait meanwhile, those of other processes for at most as long as they were told to.
        It takes about twice the space of what is stored: see `_sqlite_compact.py`.

        Raises:
            Edited: The file is damaged; it was not changed.
            StorageUnavailable: SQLite failed, or others read for so long that the log could not
                be emptied; everything is stored, and what was dropped may still be in the files.
        """
        self._apart(
            Purpose.COMPACT,
            lambda connection: compact_file(connection, self._path, self._wait_seconds_max),
        )

    def _apart(self, purpose: Purpose, make: Callable[[sqlite3.Connection], None]) -> None:
        """Do with a connection of its own what those that save must not be able to do."""
        handles = self._writable()
        # The lock also keeps the process from forking while one more connection is open.
        with handles.write_lock:
            if handles.writer is None:
                self._reopened_writer(handles)
            with closing(handles.open_another(purpose)) as connection:
                connection.allow(SQL_STEPS_MAX + file_bytes(self._path) * _BYTE_STEPS_MAX)
                try:
                    make(connection)
                except FAILURES as exc:
                    raise failure(self._path, exc, connection) from exc

    def _writable(self) -> Handles:
        handles = self._here()
        if self._read_only:
            raise ReadOnly(f"store {self._path}: expected one opened for writing, found read_only")
        return handles

    def _reopened_writer(self, handles: Handles) -> BoundedConnection:
        with handles.read_lock:
            self._reopened_reader(handles)
        return handles.open_writer()


def _digests(digests: Collection[bytes]) -> list[bytes]:
    """What is asked for by its digest, in a fixed order."""
    for digest in digests:
        require_bytes("digest", digest, DIGEST_BYTES)
    return [*digests]
