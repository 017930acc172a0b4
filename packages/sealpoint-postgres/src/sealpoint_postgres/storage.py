# SPDX-License-Identifier: Apache-2.0
"""A store in a PostgreSQL database, for workers on many machines.

It keeps the contract of `Storage` with primary keys alone: a position is free if the row can be
inserted, under READ COMMITTED, so that databases that are only compatible with PostgreSQL work as
well. An append is one transaction that is sent at once. It checks that a needed blob is still
stored after it has inserted its entries, so that a `drop`, which holds the next position while it
works, comes entirely before or entirely after. A caller that lost a connection repeats the call,
and the rows show the result of the first attempt. A login that may only insert can save: it never
updates a row.

The caller checks whether bytes are genuine. The server's operator handles what `compact` cannot
reach: the log and the backups of the server hold dropped bytes for as long as they are kept.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import itemgetter
from threading import Lock, get_ident
from time import monotonic

import psycopg
from psycopg import errors

from sealpoint.errors import (
    Edited,
    HeadMoved,
    Missing,
    SchemaUnknown,
    StorageUnavailable,
    UsageError,
)
from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)
from sealpoint.storage import (
    DIGEST_BYTES,
    SEQ_MAX,
    THREAD_BYTES,
    Backend,
    Record,
    pack,
    require_append,
    require_blobs,
    require_drop,
    rising,
    scan_batches,
    unpack,
)
from sealpoint_postgres import _storage_schema as sql
from sealpoint_postgres._connections import (
    Answer,
    Connection,
    Connections,
    Password,
    Row,
    Value,
    create_all,
)
from sealpoint_postgres._url import SCHEME, PostgresUrl

__all__ = ["BACKEND", "PostgresStorage", "is_vacant"]

_BLOB_BYTES_MAX = 999_000_000  # PostgreSQL itself takes a gigabyte for a value
_BATCH_BYTES_MAX = 8 * 1024 * 1024
_FENCE = (b"", None, None)

_Entry = tuple[bytes, int, bytes, bytes | None, bytes | None]
"""Thread, position, and the record in its stored form."""


class PostgresStorage:
    """A storage in a schema of a PostgreSQL database; see `Storage` for the contract.

    Args:
        url: The database and the schema in it, and who logs in.
        create: Make schema and tables where there are none.
        read_only: Never write; another process may. A standby of the server will do.
        password: Gives the password at each new connection; without it, libpq looks for one.
        wait_seconds_max: How long a call retries, and how long one statement may take.
        connections_max: How many connections there are at most.

    Raises:
        SchemaUnknown: The version of the tables is unknown.
        Edited: The tables are not those of a store.
        StorageUnavailable: There are no tables, or the server cannot be used.
    """

    def __init__(
        self,
        url: PostgresUrl,
        *,
        create: bool = False,
        read_only: bool = False,
        password: Password | None = None,
        wait_seconds_max: float = 30.0,
        connections_max: int = 8,
    ) -> None:
        self._wait_seconds_max = wait_seconds_max
        self._alone = Lock()
        """One OS thread at a time is in `alone`: it needs two connections of the limited pool."""
        self._held: tuple[int, bytes, Connection] | None = None
        """The OS thread in `alone`, the thread whose next position it holds, and the connection."""
        self._connections = Connections(
            url,
            what=f"store {url}",
            unavailable=StorageUnavailable,
            password=password,
            read_only=read_only,
            wait_seconds_max=wait_seconds_max,
            connections_max=connections_max,
            columns=sql.COLUMNS,
        )
        try:
            if create:
                self._connections.run(self._create)
            self._require_known()
        except BaseException:
            self._connections.close()
            raise

    def _create(self, connection: Connection) -> None:
        """Create the tables, unless they exist."""
        if not _is_made(connection):
            create_all(connection, sql.create_statements(self._connections.url.schema))

    def _require_known(self) -> None:
        found = [row[0] for row in self._rows(sql.VERSION)]
        if found != [sql.SCHEMA_VERSION]:
            shown = ", ".join(str(each) for each in found) or "none"
            raise SchemaUnknown(
                f"{self._connections.what}: expected tables of version {sql.SCHEMA_VERSION}, found "
                f"{shown}"
            )

    def _rows(self, statement: str, *values: Value) -> list[Row]:
        """The rows that a read-only statement returns."""
        return self._connections.run(lambda connection: connection.run(statement, *values).rows)

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
        """Create entries with the blobs they name, in one transaction and one round trip.

        Raises:
            HeadMoved: Another record is stored at one of the positions.
            Missing: A blob that is needed is not stored.
            Edited: The row at one of the positions cannot be a record.
            StorageUnavailable: The server failed until the time limit; `read` shows the result of
                the call.
        """
        require_append(thread, seq, records, blobs=blobs, needs=needs, label=label)
        _require_sizes(blobs)
        rows: list[_Entry] = [
            (thread, number, *_packed(record)) for number, record in enumerate(records, start=seq)
        ]
        change = _Append(thread, rows, blobs, [*{*needs}], label)
        held = self._held
        if held is not None and held[:2] == (get_ident(), thread):
            self._held = None
            if change.make_held(held[2]):
                return
        self._connections.run(change.make)

    @contextmanager
    def alone(self, thread: bytes) -> Iterator[None]:
        """Hold the next position of a thread by a row that is never committed.

        Another process that appends there waits for that row, as it waits for the row of `drop`;
        the next `append` of this OS thread releases it and takes the position in one round trip. A
        login that may insert could always do this. Where the position cannot be held, nobody waits,
        and `append` reports why.
        """
        with self._alone, self._connections.lent() as connection:
            if connection is not None and _hold_next(connection, thread, self._wait_seconds_max):
                self._held = get_ident(), thread, connection
            try:
                yield
            finally:
                self._held = None
                if connection is not None and not connection.is_idle:
                    with suppress(psycopg.Error):
                        connection.run("ROLLBACK")

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Make blobs durable ahead of the entry that will name them."""
        require_blobs(thread, blobs)
        _require_sizes(blobs)
        for batch in _batches(blobs):
            self._connections.run(_Append(thread, [], batch, [], None).make)

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
        """Take bytes away, in one transaction, in which nobody can append.

        Raises:
            HeadMoved: There is a newer entry.
            StorageUnavailable: The server failed, or this login may not delete.
        """
        require_drop(thread, head, (*payloads, *bodies), blobs=blobs, label=label)
        fence = (thread, head + 1)

        def change(connection: Connection) -> None:
            try:
                with connection.transaction():
                    if head < SEQ_MAX:  # whoever would append waits for this row
                        connection.run(sql.put(), *fence, *_FENCE)
                    if payloads:
                        connection.run(sql.DROP_PAYLOADS, thread, [*payloads])
                    if bodies:
                        connection.run(sql.DROP_BODIES, thread, [*bodies])
                    if blobs:
                        connection.run(sql.DROP_BLOBS, thread, [*blobs])
                    if label is not None:
                        connection.run(sql.DROP_LABEL, label, thread)
                    connection.run(sql.DROP_ENTRY, *fence)
            except errors.UniqueViolation as exc:
                raise HeadMoved(
                    f"entry {head + 1} of thread {thread.hex()}: expected no record, found one"
                ) from exc

        self._connections.run(change)

    def truncate(self, thread: bytes, seq: int, header: bytes | None) -> None:
        """Delete the record at a position and all records after it, in one transaction.

        Raises:
            HeadMoved: The record there has another header, or does not exist.
            StorageUnavailable: The server failed, or this login may not delete.
        """
        require_drop(thread, -1, (seq,))
        tried = False

        def change(connection: Connection) -> None:
            nonlocal tried
            with connection.transaction():
                rows, gone = connection.run(sql.READ, thread, seq).rows, 0
                if rows and _header(thread, rows[0]) == header:
                    # Compare with the row that was read: another process may have replaced the
                    # record since.
                    head = rows[0][2]
                    if type(head) is bytes:
                        gone = connection.run(sql.DROP_HEADED, thread, seq, head).changed
                    else:
                        gone = connection.run(sql.DROP_OVERLONG, thread, seq).changed
                # A retry finds nothing there: the response to the first attempt was lost.
                if not gone and (rows or not tried):
                    raise HeadMoved(
                        f"entry {seq} of thread {thread.hex()}: the record that is to go is gone "
                        "already, or is another one"
                    )
                tried = True
                connection.run(sql.TRUNCATE, thread, seq)

        self._connections.run(change)

    def compact(self) -> None:
        """Rewrite the tables without dropped bytes; all other sessions wait until it is done.

        The server's log and its backups hold what was dropped for as long as they are kept. It
        takes as long as the tables are large.

        Raises:
            StorageUnavailable: The server failed, another login owns the tables, or another session
                has one of them open all the time.
        """
        self._connections.run(lambda connection: connection.rewrite(sql.COMPACT))

    def read(self, thread: bytes, seq: int) -> Record | None:
        """The record at a position, or None."""
        if not 0 <= seq <= SEQ_MAX:
            return None
        rows = self._rows(sql.READ, thread, seq)
        return _numbered_record(thread, rows[0])[1] if rows else None

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """Those that are stored and are headers, of the first positions that one statement takes.

        Each read costs a round trip to the server; this saves most of them.
        """
        found: dict[int, bytes] = {}
        wanted = [*seqs[: sql.HEADERS_ROWS]]
        for seq, head in self._rows(sql.HEADERS, thread, wanted) if wanted else ():
            with suppress(Edited):
                if type(seq) is int:
                    found[seq] = _split_head(head)[0]
        return found

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """The records from `first` up to and with `last`, in order of position.

        They are read in batches, each by a statement of its own, the first before this returns.
        """
        statement = sql.SCAN_DESCENDING if descending else sql.SCAN_ASCENDING

        def read(low: int, high: int) -> list[tuple[int, Record]]:
            rows = self._rows(statement, thread, low, high)
            return [_numbered_record(thread, row) for row in rows]

        return scan_batches(read, thread, first, last, full=sql.SCAN_ROWS, descending=descending)

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """The bytes stored under a digest, or None.

        Raises:
            Edited: More than `size_bytes_max` bytes, or no bytes, are stored there.
        """
        rows = self._rows(sql.BLOB, min(size_bytes_max, SEQ_MAX), thread, digest)
        if not rows:
            return None
        size_bytes, data = rows[0]
        if type(data) is bytes:
            return data
        raise Edited(
            f"blob {digest.hex()} of thread {thread.hex()}: expected at most {size_bytes_max} "
            f"bytes of data, found {size_bytes}"
        )

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Those of the blobs that are stored and not too large."""
        found: dict[bytes, bytes] = {}
        for place in range(0, len(digests), sql.BLOBS_ROWS):
            wanted = [*digests[place : place + sql.BLOBS_ROWS]]
            rows = self._rows(sql.BLOBS, thread, wanted, min(size_bytes_max, SEQ_MAX))
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

        def more(behind: bytes) -> list[tuple[bytes, int]]:
            return [_stored_blob(thread, row) for row in self._rows(sql.STORED, thread, behind)]

        return rising(
            more(b""),
            more,
            itemgetter(0),
            full=sql.STORED_ROWS,
            what=f"blobs in {self._connections.what}",
        )

    def version(self) -> None:
        """Nothing: a server does not say whether another commit has happened since."""
        self._connections.require_open()

    def heads(self) -> Iterator[tuple[bytes, int]]:
        """Every thread that has an entry, each once, against the order of their bytes.

        They are read in batches, as by `scan`.
        """

        def more(statement: str, *given: bytes) -> list[tuple[bytes, int]]:
            rows = self._rows(statement, *given)
            return [
                (_stored_thread("entries", thread), seq if type(seq) is int else -1)
                for thread, seq in rows
            ]

        return rising(
            more(sql.HEADS_FIRST),
            partial(more, sql.HEADS_NEXT),
            itemgetter(0),
            full=sql.HEADS_ROWS,
            what=f"threads in {self._connections.what}",
            descending=True,
        )

    def blob_threads(self) -> Iterator[bytes]:
        """Every thread that has a blob, each once, in the order of their bytes."""

        def more(behind: bytes) -> list[bytes]:
            return [_stored_thread("blobs", row[0]) for row in self._rows(sql.BLOB_THREADS, behind)]

        return rising(
            more(b""),
            more,
            bytes,
            full=sql.THREADS_ROWS,
            what=f"threads in {self._connections.what}",
        )

    def labelled(self, label: bytes) -> list[bytes]:
        """The threads that were appended with this label.

        Raises:
            Edited: More than 4096 threads carry it, or a row cannot be a thread.
        """
        rows = self._rows(sql.LABELLED, label)
        if len(rows) > sql.LABELLED_MAX:
            raise Edited(f"label {label.hex()}: it has more than {sql.LABELLED_MAX} threads")
        return [_stored_thread("labels", row[0]) for row in rows]

    def close(self) -> None:
        """Close all connections. Closing twice is allowed."""
        self._connections.close()


def is_vacant(url: PostgresUrl, password: Password | None = None) -> bool:
    """Whether the schema that a URL names holds no entry.

    Raises:
        StorageUnavailable: The answer cannot be determined.
    """
    connections = Connections(
        url,
        what=f"store {url}",
        unavailable=StorageUnavailable,
        password=password,
        read_only=True,
        columns=sql.COLUMNS,
    )

    def look(connection: Connection) -> bool:
        if not _is_made(connection):
            if connection.run(sql.MAY_LOOK_INTO, url.schema.encode()).rows == [(False,)]:
                # The tables of a schema that a login may not read count as absent.
                raise errors.InsufficientPrivilege
            return True
        return connection.run(sql.HAS_ENTRIES).rows == [(False,)]

    try:
        return connections.run(look)
    finally:
        connections.close()


class _Append:
    """The entries and blobs of an append, as repeatable work."""

    def __init__(
        self,
        thread: bytes,
        rows: list[_Entry],
        blobs: Mapping[bytes, bytes],
        needs: list[bytes],
        label: bytes | None,
    ) -> None:
        self._thread = thread
        self._rows = rows
        self._blobs = blobs
        self._needs = needs
        self._label = label

    def make(self, connection: Connection) -> None:
        """Write all rows as new ones; if that fails, compare with the rows that exist."""
        statements = self._statements()
        try:
            if len(statements) == 1:
                answers = [connection.run(statements[0][0], *statements[0][1])]
            else:
                answers = connection.run_together(statements)
        except (errors.UniqueViolation, errors.DivisionByZero):
            with connection.transaction():
                self._make_with_care(connection)
            return
        self._require_kept(answers[0])

    def make_held(self, connection: Connection) -> bool:
        """Write it where a connection holds the position.

        Returns:
            False if the caller has to use the normal way, which also finds the result of this
                attempt.
        """
        try:
            _, answer, *_ = connection.run_together(
                [(sql.LEAVE_NEXT, ()), *self._statements(), ("COMMIT", ())]
            )
        except psycopg.Error:
            with suppress(psycopg.Error):
                connection.run("ROLLBACK")
            return False
        self._require_kept(answer)
        return True

    def _require_kept(self, answer: Answer) -> None:
        if self._rows and answer.changed != len(self._rows):
            # A rule or a trigger keeps rows away without an error.
            raise Edited(
                f"entry {self._rows[0][1]} of thread {self._thread.hex()}: the server took it "
                "and did not keep it"
            )

    def _statements(self) -> list[tuple[str, Sequence[Value]]]:
        found = list[tuple[str, Sequence[Value]]]()
        if self._rows:
            rest = [each for row in self._rows for each in row[1:]]
            found.append((sql.put(len(self._rows)), [self._thread, *rest]))
        if self._needs:
            # After the entries: a drop that was in progress has finished by now.
            needed = (len(self._needs), self._thread, self._needs)
            found.append((sql.REQUIRE_STORED, needed))
        for batch in _batches(self._blobs):
            found.append((sql.PUT_BLOBS, (self._thread, [*batch], [*batch.values()])))
        if self._label is not None:
            found.append((sql.PUT_LABEL, (self._label, self._thread)))
        return found

    def _make_with_care(self, connection: Connection) -> None:
        thread = self._thread
        for row in self._rows:
            if connection.run(sql.PUT_IF_ABSENT, *row).changed == 0:
                _require_same(connection, row)
        if self._needs:
            rows = connection.run(sql.STORED_OF, thread, self._needs).rows
            absent = set(self._needs) - {digest for (digest,) in rows}
            if absent:
                raise Missing(f"blob {min(absent).hex()} of thread {thread.hex()}: it is missing")
        for batch in _batches(self._blobs):
            given = [*batch], [*batch.values()]
            rows = connection.run(sql.PUT_BLOBS_IF_ABSENT, thread, *given).rows
            for digest in batch.keys() - {digest for (digest,) in rows}:
                _make_good(connection, thread, digest, batch[digest])
        if self._label is not None:
            connection.run(sql.PUT_LABEL, self._label, thread)


def _hold_next(connection: Connection, thread: bytes, wait_seconds_max: float) -> bool:
    """Hold the position after the newest entry of a thread, in a transaction that stays open."""
    statements = [("BEGIN", ()), (sql.SAVE_POINT, ()), (sql.HOLD_NEXT, (thread,))]
    until = monotonic() + wait_seconds_max
    while monotonic() < until:
        try:
            connection.run_together(statements)
        except psycopg.Error as exc:
            with suppress(psycopg.Error):
                connection.run("ROLLBACK")
            # Another process took the position between the read and the insert.
            if not isinstance(exc, errors.UniqueViolation):
                return False
        else:
            return True
    return False


def _is_made(connection: Connection) -> bool:
    try:
        connection.run(sql.VERSION)
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return False
    return True


def _make_good(connection: Connection, thread: bytes, digest: bytes, data: bytes) -> None:
    """Replace a stored blob that differs.

    Raises:
        Edited: It differs, and this login may not replace anything.
    """
    same = connection.run(sql.IS_BLOB, len(data), data, thread, digest).rows
    if same == [(True,)]:
        return
    try:
        connection.run(sql.REPLACE_BLOB, data, thread, digest)
    except errors.InsufficientPrivilege as exc:
        raise Edited(
            f"blob {digest.hex()} of thread {thread.hex()}: other bytes are stored there, and this "
            "login may not replace them",
            hint="The owner of the tables takes that row of blobs away, then repeat the "
            f"call: thread = '\\x{thread.hex()}' AND digest = '\\x{digest.hex()}'",
        ) from exc


def _packed(record: Record) -> tuple[bytes, bytes | None, bytes | None]:
    """The columns of a record."""
    size = len(record.header).to_bytes(sql.HEADER_LENGTH_BYTES, "big")
    return (
        pack(b"".join((size, record.header, record.seals))),
        None if record.body is None else pack(record.body),
        None if record.payload is None else pack(record.payload),
    )


def _header(thread: bytes, row: Row) -> bytes | None:
    """The header of a row, or None if the row cannot be a record."""
    try:
        return _numbered_record(thread, row)[1].header
    except Edited:
        return None


def _require_same(connection: Connection, row: _Entry) -> None:
    """Compare the row at a position with the record that was to be written there.

    Raises:
        HeadMoved: It is another record.
        Edited: It cannot be a record.
    """
    thread, number, *columns = row
    rows = connection.run(sql.READ, thread, number).rows
    if not rows:
        raise HeadMoved(f"entry {number} of thread {thread.hex()}: it was there and is not")
    expected = _numbered_record(thread, (number, True, *columns))
    if _numbered_record(thread, rows[0]) != expected:
        raise HeadMoved(f"entry {number} of thread {thread.hex()}: it is there already")


def _numbered_record(thread: bytes, row: Row) -> tuple[int, Record]:
    """A row as a record with its position.

    Raises:
        Edited: It cannot be one.
    """
    seq, fits, head, body, payload = row
    place = f"entry {seq!r} of thread {thread.hex()}"
    if fits is not True or type(seq) is not int:
        raise Edited(f"{place}: its columns have more bytes than a record may have")
    try:
        return seq, Record(
            *_split_head(head),
            None if body is None else _unpacked(body, BODY_BYTES_MAX),
            None if payload is None else _unpacked(payload, PAYLOAD_BYTES_MAX),
        )
    except Edited as exc:
        raise Edited(f"{place}: {exc.message}") from exc


def _split_head(column: object) -> tuple[bytes, bytes]:
    """Split header and seals, which share one column."""
    head = _unpacked(column, sql.HEAD_BYTES_MAX)
    end = sql.HEADER_LENGTH_BYTES + int.from_bytes(head[: sql.HEADER_LENGTH_BYTES], "big")
    header, seals = head[sql.HEADER_LENGTH_BYTES : end], head[end:]
    if end > len(head) or len(header) > HEADER_BYTES_MAX or len(seals) > SEALS_BYTES_MAX:
        raise Edited("record: its head is cut off")
    return header, seals


def _unpacked(column: object, bytes_max: int) -> bytes:
    if type(column) is not bytes:
        raise Edited("record: a column of it holds no bytes")
    return unpack(column, bytes_max)


def _stored_thread(table: str, value: object) -> bytes:
    """A thread as a row names it.

    Raises:
        Edited: It cannot be one.
    """
    if type(value) is bytes and len(value) == THREAD_BYTES:
        return value
    raise Edited(f"thread in {table}: expected {THREAD_BYTES} bytes, found {_found(value)}")


def _stored_blob(thread: bytes, row: Row) -> tuple[bytes, int]:
    """A row as the digest and the size of a blob.

    Raises:
        Edited: It cannot be one.
    """
    digest, size_bytes = row
    if type(digest) is bytes and len(digest) == DIGEST_BYTES and type(size_bytes) is int:
        return digest, size_bytes
    raise Edited(
        f"digest in blobs of thread {thread.hex()}: expected {DIGEST_BYTES} bytes and a size, "
        f"found {_found(digest)}"
    )


def _found(value: object) -> str:
    return f"{len(value)} bytes" if type(value) is bytes else type(value).__name__


def _require_sizes(blobs: Mapping[bytes, bytes]) -> None:
    for digest, data in blobs.items():
        if len(data) > _BLOB_BYTES_MAX:
            raise UsageError(
                f"blob {digest.hex()}: expected at most {_BLOB_BYTES_MAX} bytes, found {len(data)}"
            )


def _batches(blobs: Mapping[bytes, bytes]) -> Iterator[dict[bytes, bytes]]:
    """Blobs by so many as one statement should carry."""
    batch: dict[bytes, bytes] = {}
    size_bytes = 0
    for digest, data in blobs.items():
        if batch and size_bytes + len(data) > _BATCH_BYTES_MAX:
            yield batch
            batch, size_bytes = {}, 0
        batch[digest] = data
        size_bytes += len(data)
    if batch:
        yield batch


def _open(
    target: str,  # noqa: ARG001 # the URL says it as well
    url: str,
    *,
    create: bool,
    read_only: bool,
    group: int | None,
    password: Password | None,
) -> PostgresStorage:
    if group is not None:
        raise UsageError(
            f"store {url}: a group shares a store on this machine, and this one is elsewhere",
            hint="Leave --group out: a database has logins of its own.",
        )
    found = PostgresUrl.parse(url)
    return PostgresStorage(found, create=create, read_only=read_only, password=password)


BACKEND = Backend(
    scheme=SCHEME,
    forms=(f"{SCHEME}://USER@HOST/DATABASE",),
    read=lambda text: PostgresUrl.parse(text).place,
    write=lambda address: f"{SCHEME}://{address}",
    read_way=lambda text: str(PostgresUrl.parse(text)),
    is_vacant=lambda _, url, password: is_vacant(PostgresUrl.parse(url), password),
    open=_open,
)
"""The value of an entry point of `sealpoint.storages`."""
