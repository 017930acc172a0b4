# SPDX-License-Identifier: Apache-2.0
"""A store in one SQLite file, for several OS threads and processes of one machine.

It guarantees the contract of `Storage`. An append or a drop is one transaction with a write-ahead
log and `synchronous=FULL`; whether it is permitted is decided inside it, and for a free position by
the inserting statement itself. No statement outlives its call, so between calls nothing is held
that a writer or `compact` could wait for. Rows are checked by type and size inside SQLite, before
they are brought into memory. A damaged index cannot make a statement or a list endless: each is
bounded, or strictly rises or falls. It refuses files that are not exactly a store (see
`_sqlite_connections.py`). The caller must check whether bytes are genuine. It is not for network
file systems: SQLite's locks do not hold there.
"""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path

from sealpoint.errors import Edited, HeadMoved, Missing, UsageError
from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)
from sealpoint.storage import _sqlite_schema as sql
from sealpoint.storage._contract import (
    DIGEST_BYTES,
    SEQ_MAX,
    THREAD_BYTES,
    Record,
    require_append,
    require_blobs,
    require_drop,
)
from sealpoint.storage._row_batches import rising, scan_batches
from sealpoint.storage._sqlite_connections import SqliteConnections
from sealpoint.storage._sqlite_file import compact_file
from sealpoint.storage._sqlite_schema import Purpose

__all__ = ["SqliteStorage"]

_EntryRow = tuple[bytes, int, bytes, bytes, bytes | None, bytes | None]
_BlobRow = tuple[bytes, bytes, bytes]

# SQLite itself takes 1,000,000,000 bytes for a whole row.
_BLOB_BYTES_MAX = 999_000_000
# A whole record has less; a row is rewritten when a part of it is dropped.
_ROW_BYTES_MAX = 2 * 1024 * 1024


class SqliteStorage:
    """A storage in one SQLite file; see `Storage` for the promises of each method.

    The file may be used by several processes at once, and when a process forks, both sides reopen
    it by themselves. When the last writable storage is closed, the whole store is in the one file;
    until then `<file>-wal` and `<file>-shm` belong to it.

    Args:
        path: The file.
        create: Make the file, readable for its owner alone, if it does not exist.
        read_only: Never write; another process may.
        wait_seconds_max: How long a call waits for another process to finish writing.
        group: The number of the group whose members share a file that is made; without it, it
            belongs to its owner alone.

    Raises:
        SchemaUnknown: The file is not a store, or has an unknown schema version.
        Edited: The file is damaged or holds other tables than a store.
        StorageUnavailable: The file does not exist, or cannot be made or opened.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool = False,
        read_only: bool = False,
        wait_seconds_max: float = 30.0,
        group: int | None = None,
    ) -> None:
        self._connections = SqliteConnections(
            path,
            create=create,
            read_only=read_only,
            wait_seconds_max=wait_seconds_max,
            group=group,
        )
        self._path = self._connections.path
        self._rows = self._connections.rows

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
            HeadMoved: Another record is at one of the positions.
            Missing: A needed blob is not stored.
            Edited: The data at one of the positions cannot be a record.
            StorageUnavailable: SQLite failed; nothing was changed, or `read` shows it.
        """
        require_append(thread, seq, records, blobs=blobs, needs=needs, label=label)
        rows = []
        for record in records:
            rows.append((thread, seq, record.header, record.seals, record.body, record.payload))
            seq += 1
        if not blobs and not needs and label is None and len(rows) <= sql.PUT_ENTRIES_MAX:
            self._connections.change(len(rows), _append_at_once, rows)
            return
        blob_rows, needed = _blob_rows(thread, blobs), [*needs]
        self._connections.change(
            len(rows) + len(blob_rows) + len(needed),
            lambda writer: _append_rows(
                writer, thread, entries=rows, blobs=blob_rows, needs=needed, label=label
            ),
        )

    def alone(self, thread: bytes) -> AbstractContextManager[None]:  # noqa: ARG002 # as `Storage`
        """Hold SQLite's write lock, of which the file has only one."""
        return self._connections.alone()

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Make blobs durable ahead of the entry that will name them."""
        require_blobs(thread, blobs)
        rows = _blob_rows(thread, blobs)
        self._connections.change(
            len(rows),
            lambda writer: _append_rows(
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
        """Remove bytes and overwrite them, in one transaction.

        Copies that SQLite has made of them may be in the file and its log until `compact`.

        Raises:
            HeadMoved: There is a newer entry.
            Edited: The kept part of an entry cannot be a record.
            StorageUnavailable: SQLite failed; nothing was changed, or `read` shows it.
        """
        require_drop(thread, head, (*payloads, *bodies), blobs=blobs, label=label)
        digests = [*blobs]
        self._connections.change(
            len(payloads) + len(bodies) + len(digests),
            lambda writer: _drop_rows(
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
        """Remove the record at a position and all after it, in one transaction.

        Raises:
            HeadMoved: The record there has another header, or there is none.
            StorageUnavailable: SQLite failed; nothing was changed, or `read` shows it.
        """
        require_drop(thread, -1, (seq,))
        self._connections.change_apart(
            Purpose.TRUNCATE, lambda connection: _truncate_rows(connection, thread, seq, header)
        )

    def compact(self) -> None:
        """Rewrite the file without dropped bytes, and empty its log.

        Writers wait during that time, those of other processes at most for their own limit. It
        takes about twice the space of the stored data: see `_sqlite_file.py`.

        Raises:
            Edited: The file is damaged; it was not changed.
            StorageUnavailable: SQLite failed, or others read for so long that the log could not be
                emptied; everything is stored, and dropped bytes may still be in the files.
        """
        self._connections.change_apart(
            Purpose.COMPACT,
            lambda connection: compact_file(
                connection, self._path, self._connections.wait_seconds_max
            ),
        )

    def read(self, thread: bytes, seq: int) -> Record | None:
        """Return the record at a position, or None."""
        if not 0 <= seq <= SEQ_MAX:
            return None
        rows = self._rows(sql.READ, (thread, seq))
        return _numbered_record(thread, rows[0])[1] if rows else None

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return those that are stored, of the first positions that one statement takes."""
        wanted = [*seqs[: sql.HEADERS_ROWS]]
        # One statement for any number: SQLite keeps it prepared.
        wanted += wanted[-1:] * (sql.HEADERS_ROWS - len(wanted))
        rows = self._rows(sql.HEADERS, (thread, *wanted)) if wanted else []
        return {seq: header for seq, header in rows if type(seq) is int and type(header) is bytes}

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """Yield the records from `first` to `last` inclusive, in order of position.

        They are read in batches of at most 32 rows, each a short separate transaction, the first
        before this returns: between batches nothing is held that a writer could wait for.
        """
        statement = sql.SCAN_DESCENDING if descending else sql.SCAN_ASCENDING

        def read(low: int, high: int) -> list[tuple[int, Record]]:
            rows = self._rows(statement, (thread, low, high))
            return [_numbered_record(thread, row) for row in rows]

        return scan_batches(read, thread, first, last, full=sql.SCAN_ROWS, descending=descending)

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """Return the bytes stored under a digest, or None.

        Raises:
            Edited: More than `size_bytes_max` bytes, or no bytes, are stored there.
        """
        rows = self._rows(sql.BLOB, (min(size_bytes_max, SEQ_MAX), thread, digest))
        if not rows:
            return None
        data = rows[0][0]
        if type(data) is bytes:
            return data
        raise Edited(
            f"blob {digest.hex()} of thread {thread.hex()}: "
            f"{_expected_bytes('data', data, size_bytes_max)}"
        )

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Return those of the blobs that are stored and not too large."""
        found: dict[bytes, bytes] = {}
        for place in range(0, len(digests), sql.BLOBS_ROWS):
            wanted = [*digests[place : place + sql.BLOBS_ROWS]]
            # One statement for any number: SQLite keeps it prepared.
            wanted += wanted[-1:] * (sql.BLOBS_ROWS - len(wanted))
            rows = self._rows(sql.BLOBS, (size_bytes_max, thread, *wanted))
            found |= {
                digest: data
                for digest, data in rows
                if type(digest) is bytes and type(data) is bytes
            }
        return found

    def stored_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield digest and size of every blob of a thread, in the order of the digests.

        They are read in batches, as by `scan`; the blobs' bytes are not read.
        """

        def more(statement: str, *given: bytes) -> list[tuple[bytes, int]]:
            return [_stored_blob(thread, row) for row in self._rows(statement, (thread, *given))]

        return rising(
            more(sql.STORED_FIRST),
            partial(more, sql.STORED_NEXT),
            itemgetter(0),
            full=sql.STORED_ROWS,
            what=f"blobs in store {self._path}",
        )

    def version(self) -> tuple[int, int, int] | None:
        """Return SQLite's number for foreign commits, together with a count of our own commits.

        Bytes that an attacker changes in the file without SQLite do not change it; a statement
        would not see them either while SQLite has the page in its cache.
        """
        return self._connections.version()

    def heads(self) -> Iterator[tuple[bytes, int]]:
        """Yield every thread that has an entry, each once, in the order of their bytes.

        They are read in batches, as by `scan`.
        """

        def more(statement: str, *given: bytes) -> list[tuple[bytes, int]]:
            return [_stored_head(*row) for row in self._rows(statement, given)]

        return rising(
            more(sql.HEADS_FIRST),
            partial(more, sql.HEADS_NEXT),
            itemgetter(0),
            full=sql.HEADS_ROWS,
            what=f"threads in store {self._path}",
        )

    def blob_threads(self) -> Iterator[bytes]:
        """Yield every thread that has a blob, each once, in the order of their bytes."""

        def more(statement: str, *given: bytes) -> list[bytes]:
            return [_stored_thread("blobs", row[0]) for row in self._rows(statement, given)]

        return rising(
            more(sql.BLOB_THREAD_FIRST),
            partial(more, sql.BLOB_THREAD_NEXT),
            bytes,
            full=1,
            what=f"threads in store {self._path}",
        )

    def labelled(self, label: bytes) -> list[bytes]:
        """Return the threads that were appended with this label.

        Raises:
            Edited: More than 4096 threads carry it, or a row cannot be a thread.
        """
        rows = self._rows(sql.LABELLED, (label,))
        if len(rows) > sql.LABELLED_MAX:
            raise Edited(f"label {label.hex()}: it has more than {sql.LABELLED_MAX} threads")
        return [_stored_thread("labels", row[0]) for row in rows]

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""
        self._connections.close()


def _blob_rows(thread: bytes, blobs: Mapping[bytes, bytes]) -> list[_BlobRow]:
    for digest, data in blobs.items():
        if len(data) > _BLOB_BYTES_MAX:
            raise UsageError(
                f"blob {digest.hex()}: expected at most {_BLOB_BYTES_MAX} bytes, found {len(data)}"
            )
    return [(thread, digest, data) for digest, data in blobs.items()]


# Each function uses the writing connection from begin to commit. On any failure it raises, and its
# caller must roll back. It brings no stored value into memory that a record could not have.


def _append_at_once(writer: sqlite3.Connection, rows: Sequence[_EntryRow]) -> None:
    """Store a few entries and nothing else: the most frequent append is one statement.

    Raises:
        HeadMoved: Another record is at one of the positions.
        Edited: The data at one of them cannot be a record.
    """
    if len(rows) == 1:
        if writer.execute(sql.PUT_ENTRY, rows[0]).rowcount != 1:
            _require_same(writer, rows[0])
    else:
        try:
            # All of them or none: a taken position undoes the whole statement.
            writer.execute(sql.PUT_ENTRIES[len(rows)], [*chain.from_iterable(rows)])
        except sqlite3.IntegrityError:
            _append_rows(writer, rows[0][0], entries=rows, blobs=(), needs=(), label=None)
    if writer.in_transaction:  # begun by `alone`
        writer.execute("COMMIT")


def _append_rows(
    writer: sqlite3.Connection,
    thread: bytes,
    *,
    entries: Sequence[_EntryRow],
    blobs: Sequence[_BlobRow],
    needs: Sequence[bytes],
    label: bytes | None,
) -> None:
    """Store entries and blobs.

    Raises:
        HeadMoved: Another record is at one of the positions.
        Missing: A needed blob is not stored.
        Edited: The data at one of the positions cannot be a record.
    """
    if not writer.in_transaction:  # `alone` may have begun one
        writer.execute("BEGIN IMMEDIATE")
    for row in entries:
        # Create if absent: the statement itself decides, and its row count shows the result.
        if writer.execute(sql.PUT_ENTRY, row).rowcount != 1:
            _require_same(writer, row)
    if needs:
        _require_stored(writer, thread, needs)
    if blobs:
        writer.executemany(sql.PUT_BLOB, blobs)
    if label is not None:
        writer.execute(sql.PUT_LABEL, (label, thread))
    writer.execute("COMMIT")


def _drop_rows(
    writer: sqlite3.Connection,
    thread: bytes,
    head: int,
    *,
    payloads: Sequence[int],
    bodies: Sequence[int],
    blobs: Sequence[bytes],
    label: bytes | None,
) -> None:
    """Remove parts of a thread.

    Raises:
        HeadMoved: There is an entry after the head.
    """
    # An entry is rewritten without the dropped part: no kept part may be gigantic.
    bytes_max = writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _ROW_BYTES_MAX)
    try:
        writer.execute("BEGIN IMMEDIATE")
        if head < SEQ_MAX and writer.execute(sql.IS_AT, (thread, head + 1)).fetchall():
            raise HeadMoved(
                f"entry {head + 1} of thread {thread.hex()}: expected no record, found one"
            )
        writer.executemany(sql.DROP_BODY, ((thread, seq) for seq in bodies))
        writer.executemany(sql.DROP_PAYLOAD, ((thread, seq) for seq in payloads))
        writer.executemany(sql.DROP_BLOB, ((thread, digest) for digest in blobs))
        if label is not None:
            writer.execute(sql.DROP_LABEL, (label, thread))
        writer.execute("COMMIT")
    finally:
        writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, bytes_max)


def _truncate_rows(
    writer: sqlite3.Connection, thread: bytes, seq: int, header: bytes | None
) -> None:
    """Remove the row of a position and all after it.

    Raises:
        HeadMoved: The record there has another header, or there is none.
    """
    writer.execute("BEGIN IMMEDIATE")
    stored = writer.execute(sql.READ, (thread, seq)).fetchone()
    if stored is None or _header(thread, stored) != header:
        raise HeadMoved(
            f"entry {seq} of thread {thread.hex()}: the record that is to go is gone already, or "
            "is another one"
        )
    writer.execute(sql.TRUNCATE, (thread, seq))
    writer.execute("COMMIT")


def _header(thread: bytes, stored: tuple[object, ...]) -> bytes | None:
    """Return the header of a row, or None if the row cannot be a record."""
    try:
        return _numbered_record(thread, stored)[1].header
    except Edited:
        return None


def _require_stored(writer: sqlite3.Connection, thread: bytes, needs: Sequence[bytes]) -> None:
    """Look up each blob in the index; its bytes are not read.

    Raises:
        Missing: A blob is not stored.
    """
    for place in range(0, len(needs), sql.BLOBS_ROWS):
        wanted = [*needs[place : place + sql.BLOBS_ROWS]]
        # One statement for any number: SQLite keeps it prepared.
        padded = wanted + wanted[-1:] * (sql.BLOBS_ROWS - len(wanted))
        absent = set(wanted)
        for (digest,) in writer.execute(sql.STORED_OF, (thread, *padded)):
            absent.discard(digest)
        if absent:
            raise Missing(f"blob {min(absent).hex()} of thread {thread.hex()}: it is missing")


def _require_same(writer: sqlite3.Connection, row: _EntryRow) -> None:
    """Compare the stored record at a position with the one to be written there.

    Raises:
        HeadMoved: It is another record.
        Edited: It cannot be a record.
    """
    thread, number, header, seals, body, payload = row
    stored = writer.execute(sql.READ, (thread, number)).fetchone()
    if stored is None:
        raise Edited(f"entry {number} of thread {thread.hex()}: it was written and is not there")
    if _numbered_record(thread, stored)[1] != Record(header, seals, body, payload):
        raise HeadMoved(f"entry {number} of thread {thread.hex()}: it is there already")


def _numbered_record(thread: bytes, row: tuple[object, ...]) -> tuple[int, Record]:
    """Return a row as a record with its position.

    Raises:
        Edited: It cannot be one.
    """
    seq, header, seals, body, payload = row
    if (
        type(header) is bytes
        and type(seals) is bytes
        and (body is None or type(body) is bytes)
        and (payload is None or type(payload) is bytes)
        and type(seq) is int
    ):
        return seq, Record(header, seals, body, payload)
    place = f"entry {seq!r} of thread {thread.hex()}"
    if type(seq) is not int:
        raise Edited(
            f"{place}: expected a whole number as its position, found {type(seq).__name__}"
        )
    for name, value, bytes_max in (
        ("header", header, HEADER_BYTES_MAX),
        ("seals", seals, SEALS_BYTES_MAX),
        ("body", body, BODY_BYTES_MAX),
        ("payload", payload, PAYLOAD_BYTES_MAX),
    ):
        if type(value) is int or type(value) is str:
            raise Edited(f"{place}: {_expected_bytes(name, value, bytes_max)}")
    raise Edited(f"{place}: its header is missing")


def _stored_thread(table: str, value: object) -> bytes:
    """Return a thread from a row.

    Raises:
        Edited: It cannot be one.
    """
    if type(value) is bytes and len(value) == THREAD_BYTES:
        return value
    found = f"{len(value)} bytes" if type(value) is bytes else _found(value)
    raise Edited(f"thread in {table}: expected {THREAD_BYTES} bytes, found {found}")


def _stored_head(thread: object, seq: object) -> tuple[bytes, int]:
    """Return a row as a thread and its last position.

    Raises:
        Edited: It names no thread.
    """
    return _stored_thread("entries", thread), seq if type(seq) is int else -1


def _stored_blob(thread: bytes, row: tuple[object, ...]) -> tuple[bytes, int]:
    """Return a row as the digest and the size of a blob.

    Raises:
        Edited: It cannot be one.
    """
    digest, size_bytes = row
    if type(digest) is not bytes or len(digest) != DIGEST_BYTES:
        found = f"{len(digest)} bytes" if type(digest) is bytes else _found(digest)
        raise Edited(
            f"digest in blobs of thread {thread.hex()}: expected {DIGEST_BYTES} bytes, "
            f"found {found}"
        )
    if type(size_bytes) is not int:
        raise Edited(
            f"blob {digest.hex()} of thread {thread.hex()}: expected bytes, "
            f"found {_found(size_bytes)}"
        )
    return digest, size_bytes


def _expected_bytes(name: str, value: object, bytes_max: int) -> str:
    """Describe what a guarded column returned in place of its bytes."""
    return f"expected at most {bytes_max} bytes of {name}, found {_found(value)}"


def _found(value: object) -> str:
    return f"{value} bytes" if type(value) is int else f"type {value}"
