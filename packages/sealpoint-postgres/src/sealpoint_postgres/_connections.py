# SPDX-License-Identifier: Apache-2.0
"""Connections to PostgreSQL: a pool, retries, and the mapping of the server's errors.

- A connection commits each statement by itself, or a group of them that is sent at once. Nothing
  depends on the isolation level beyond READ COMMITTED, on locks, triggers or notifications.
- Work that is given to `run` MUST be repeatable: `run` repeats it when the connection is lost, when
  the server asks for it (serialization, deadlock), and when a server turns out to be a standby. A
  caller that lost a connection does not know whether its statements were committed; the repeated
  work finds out by reading and never guesses.
- A commit waits for the disk, and for a synchronous standby if one exists, regardless of the
  server's default.
- A password comes from a function that is called for each connection, so that it can be changed
  while workers run: it may give two, a line each, of which one is in force, and is called again if
  the server takes neither. It is in no message: of what the server says, only the code is repeated,
  and of what libpq says about a connection that was not made, the first line.
- A password is proven (SCRAM) and never sent, unless the URL allows a server to ask for it.
- Names are looked up in PostgreSQL's own schema first, then in that of the URL.
- Statements are prepared, values go and come in their binary form, and nothing of the server's is
  turned into an object but bytes, whole numbers and truth values: `run` and `run_together` of a
  connection take a fifth of the time of a cursor. A column of any other type is `Edited`.
"""

import contextlib
import os
import random
import select
import shlex
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

import psycopg
from psycopg import errors, pq

from sealpoint.errors import Edited, SealpointError, UsageError
from sealpoint_postgres._url import PostgresUrl

_T = TypeVar("_T")
Value = bytes | int | list[bytes] | list[int] | None
Row = tuple[Any, ...]
Password = Callable[[], str]
Unavailable = Callable[..., SealpointError]

_CONNECT_SECONDS = 10
# No server gets the password itself, or a hash that would do in its place, unless the URL says so.
_AUTHENTICATION = (
    {"require_auth": "scram-sha-256,gss,sspi,none"} if pq.version() >= 160000 else {}  # noqa: PLR2004
)
_LOOKS = 4
_GRACE_SECONDS = 5.0
_PAUSE_SECONDS = 0.05
_PAUSE_SECONDS_MAX = 2.0
_LOCK_SECONDS = 0.1
_BETWEEN_LOCKS_SECONDS = 0.5
_MESSAGE_CHARS_MAX = 300

# The same work again, on the same connection.
_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
# Repeat the work on another connection: this server is shutting down or does not accept writes.
_ELSEWHERE = (
    errors.ReadOnlySqlTransaction,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
    errors.IdleSessionTimeout,
)
# Messages of a server that will accept connections a moment later.
_PASSING = ("starting up", "shutting down", "recovery", "not accepting", "too many", "slots are")
# Tables that differ from the ones that were created; their rows may hold anything.
_ALTERED = (
    errors.UndefinedColumn,
    errors.UndefinedFunction,
    errors.AmbiguousFunction,
    errors.DatatypeMismatch,
    errors.CannotCoerce,
    errors.WrongObjectType,
    errors.FeatureNotSupported,
    errors.GeneratedAlways,
    errors.NotNullViolation,
    errors.CheckViolation,
    errors.ForeignKeyViolation,
    errors.ExclusionViolation,
    errors.DataCorrupted,
    errors.IndexCorrupted,
    errors.DataException,
    errors.ProgrammingError,
    UnicodeError,
)


_BYTEA, _BIGINT, _INTEGER, _BOOLEAN = 17, 20, 23, 16
_ARRAYS = {_BYTEA: 1001, _BIGINT: 1016}
_WHOLE = struct.Struct(">q")
_ARRAY = struct.Struct(">iiIii")  # dimensions, whether there is a null, type, length, first index
_SIZE = struct.Struct(">i")
_DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
_LOADED: dict[int, Callable[[bytes], Any]] = {
    _BYTEA: bytes,
    _BIGINT: lambda data: int.from_bytes(data, "big", signed=True),
    _INTEGER: lambda data: int.from_bytes(data, "big", signed=True),
    _BOOLEAN: lambda data: data == b"\1",
}


class Answer(NamedTuple):
    """The result of a statement."""

    rows: list[Row]
    changed: int
    """How many rows it changed, or found."""


class Connection:
    """A connection that keeps its statements prepared. Used by one OS thread at a time.

    Args:
        connection: The one that was made.
        wait_seconds_max: The statement timeout that the server was given. The connection gives a
            statement up a little later if the server does not keep to it.
        columns: The number of columns in the result of each statement: a server could answer with
            others.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Row],
        wait_seconds_max: float,
        columns: Mapping[str, int],
    ) -> None:
        self._connection = connection
        self.pgconn = connection.pgconn
        self._wait_seconds_max = wait_seconds_max
        self._columns = columns
        self._answer_seconds_max: float | None = wait_seconds_max + _GRACE_SECONDS
        self._events = select.poll()
        self._events.register(connection.pgconn.socket, select.POLLIN)
        self._names: dict[tuple[str, tuple[int, ...]], bytes] = {}

    @property
    def driver(self) -> psycopg.Connection[Row]:
        """The library's own connection, for what is rare and needs its quoting."""
        return self._connection

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way on it."""
        return self.pgconn.transaction_status == pq.TransactionStatus.IDLE

    @property
    def is_lost(self) -> bool:
        """Whether the server is gone."""
        return self.pgconn.status != pq.ConnStatus.OK

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction, which is undone if the block raises."""
        self.run("BEGIN")
        try:
            yield
        except BaseException:
            # Closing the connection undoes an open transaction, for example after Ctrl-C.
            with contextlib.suppress(psycopg.Error):
                self.run("ROLLBACK")
            raise
        self.run("COMMIT")

    def run(self, statement: str, *values: Value) -> Answer:
        """Execute a statement, by itself or in the transaction that is under way."""
        name, data = self._ready(statement, values)
        formats = [pq.Format.BINARY] * len(data)
        self.pgconn.send_query_prepared(name, data, formats, pq.Format.BINARY)
        return self._answer(self._only_result(), statement)

    def rewrite(self, statements: Iterable[str]) -> None:
        """Execute statements that write whole tables, each when nobody else has its table.

        The work takes as long as it needs. A statement that waits for a lock blocks every later
        one, and a reader may keep a table open forever; so each statement waits for a short time
        only, and tries again.

        Raises:
            LockNotAvailable: Another session held a table all the time.
        """
        limit, given = self._answer_seconds_max, int(self._wait_seconds_max * 1000)
        self.run(f"SET lock_timeout = {int(_LOCK_SECONDS * 1000)}")
        self.run("SET statement_timeout = 0")
        self._answer_seconds_max = None
        try:
            for statement in statements:
                self._run_when_free(statement)
        finally:
            self._answer_seconds_max = limit
            if self.is_idle:
                self.run(f"SET statement_timeout = {given}")
                self.run("SET lock_timeout = 0")

    def _run_when_free(self, statement: str) -> None:
        deadline = time.monotonic() + self._wait_seconds_max
        while True:
            try:
                self.run(statement)
            except errors.LockNotAvailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_BETWEEN_LOCKS_SECONDS)
            else:
                return

    def run_together(
        self, statements: Sequence[tuple[str, Sequence[Value]]], *, apart: bool = False
    ) -> list[Answer]:
        """Execute statements as one transaction that is sent at once, and waited for once.

        If they are to be `apart`, each is committed before the next begins.
        """
        ready = [self._ready(statement, given) for statement, given in statements]
        found = self._exchange(ready, apart=apart)
        for result in found:
            if result.status not in _DONE and result.status != pq.ExecStatus.PIPELINE_ABORTED:
                self._answer(result)
        return [
            self._answer(result, statement)
            for result, (statement, _) in zip(found, statements, strict=True)
        ]

    def _exchange(
        self, ready: list[tuple[bytes, list[bytes | None]]], *, apart: bool
    ) -> "list[pq.abc.PGresult]":
        """Send prepared statements, and receive a result for each."""
        found: list[pq.abc.PGresult] = []
        self.pgconn.enter_pipeline_mode()
        for name, data in ready:
            formats = [pq.Format.BINARY] * len(data)
            self.pgconn.send_query_prepared(name, data, formats, pq.Format.BINARY)
            if apart:
                self.pgconn.pipeline_sync()
        if not apart:
            self.pgconn.pipeline_sync()
        deadline, ends = self._deadline(), len(ready) if apart else 1
        # If this is left early, the connection is not idle, and is not used again.
        while ends:
            result = self._next_result(deadline)
            if result is None:
                if self.is_lost:
                    raise psycopg.OperationalError("the connection is lost")
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                ends -= 1
            else:
                found.append(result)
        if len(found) != len(ready):
            raise psycopg.OperationalError("the server does not answer what it was asked")
        self.pgconn.exit_pipeline_mode()
        return found

    def _only_result(self) -> "pq.abc.PGresult":
        """The result of a statement; after the only result, libpq returns none."""
        deadline = self._deadline()
        result = self._next_result(deadline)
        if result is None:
            raise psycopg.OperationalError("the connection is lost")
        if self._next_result(deadline) is not None and not self.is_lost:
            raise psycopg.OperationalError("the server does not answer what it was asked")
        return result

    def _deadline(self) -> float | None:
        """The time until which the server may answer everything in the current request."""
        limit = self._answer_seconds_max
        return None if limit is None else time.monotonic() + limit

    def _next_result(self, deadline: float | None) -> "pq.abc.PGresult | None":
        """Wait for the server without keeping the interpreter, and not for ever.

        A server is trusted with nothing, so not with ending its statements either, nor with an end
        of its results.
        """
        connection = self.pgconn
        if deadline is not None and time.monotonic() > deadline:
            raise psycopg.OperationalError("the server does not come to an end")
        if connection.flush():
            self._events.modify(connection.socket, select.POLLIN | select.POLLOUT)
            while connection.flush():
                self._wait(deadline)
            self._events.modify(connection.socket, select.POLLIN)
        while connection.is_busy():
            self._wait(deadline)
        return connection.get_result()

    def _wait(self, deadline: float | None) -> None:
        """Wait for what the server sends, or until it takes more."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        if not self._events.poll(left):
            raise psycopg.OperationalError("the server does not answer")
        self.pgconn.consume_input()

    def _ready(self, statement: str, values: Sequence[Value]) -> tuple[bytes, list[bytes | None]]:
        """The name under which the server has a statement, and its values as it takes them."""
        types, data = [], []
        for value in values:
            kind, encoded = _encoded(value)
            types.append(kind)
            data.append(encoded)
        key = (statement, tuple(types))
        name = self._names.get(key)
        if name is None:
            name = b"s%d" % len(self._names)
            self.pgconn.send_prepare(name, statement.encode(), types)
            self._answer(self._only_result())
            self._names[key] = name
        return name, data

    def _answer(self, result: "pq.abc.PGresult", statement: str = "") -> Answer:
        if result.status not in _DONE:
            if self.is_lost:
                raise psycopg.OperationalError("the connection is lost")
            raise errors.error_from_result(result, encoding="utf-8")
        if not result.nfields:
            return Answer([], result.command_tuples or 0)
        loads = [_LOADED.get(result.ftype(place)) for place in range(result.nfields)]
        if len(loads) != self._columns.get(statement, len(loads)):
            raise psycopg.OperationalError("the server does not answer what it was asked")
        if None in loads:
            raise Edited("a column of a table is not of the type that it was made with")
        rows = []
        for number in range(result.ntuples):
            row = []
            for place, load in enumerate(loads):
                data = result.get_value(number, place)
                row.append(None if data is None or load is None else load(data))
            rows.append(tuple(row))
        return Answer(rows, len(rows))


def _encoded(value: Value) -> tuple[int, bytes | None]:
    """The type of a value, and its binary form."""
    if value is None or type(value) is bytes:
        return _BYTEA, value
    if type(value) is int:
        return _BIGINT, _WHOLE.pack(value)
    if type(value) is not list:
        raise TypeError(f"expected bytes, a whole number or a list of either, found {type(value)}")
    kind = _BIGINT if value and type(value[0]) is int else _BYTEA
    parts = [_ARRAY.pack(1, 0, kind, len(value), 1)]
    for each in value:
        data = _encoded(each)[1] or b""
        parts += (_SIZE.pack(len(data)), data)
    return _ARRAYS[kind], b"".join(parts)


class Connections:
    """Up to `connections_max` connections to one database, for all OS threads of a process.

    After a fork each side has connections of its own.

    Args:
        url: Where the database is, and who logs in.
        what: The name of the database in messages, such as `store postgresql://...`.
        unavailable: The error for a database that cannot be used.
        password: Asked at each new connection; None leaves it to libpq (PGPASSFILE, certificates).
        read_only: No statement may change anything; a standby will do, unless `newest`.
        wait_seconds_max: How long to try, and how long one statement may take.
        connections_max: How many at once; who comes later waits.
        columns: How many columns statements are answered with.
        purpose: The purpose of the database, in the words of the options and variables that name
            it.
        newest: Only the server that takes writes may answer, also for reading: a standby may lag.
    """

    def __init__(
        self,
        url: PostgresUrl,
        *,
        what: str,
        unavailable: Unavailable,
        password: Password | None = None,
        read_only: bool = False,
        wait_seconds_max: float = 30.0,
        connections_max: int = 8,
        columns: Mapping[str, int] = MappingProxyType({}),
        purpose: Literal["store", "anchor"] = "store",
        newest: bool = False,
    ) -> None:
        self.url = url
        self.what = what
        self._unavailable = unavailable
        self._password = password
        self._read_only = read_only
        self._wait_seconds_max = wait_seconds_max
        self._connections_max = connections_max
        self._columns = columns
        self._purpose = purpose
        self._newest = newest
        self._closed = False
        self._was_connected = False
        """Whether the address was right once: a server that cannot be reached may come back."""
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._places = threading.BoundedSemaphore(self._connections_max)

    def run(self, work: Callable[[Connection], _T]) -> _T:
        """Do some work that can be done again, until it is done or there is no more time.

        Raises:
            SealpointError: The work raised it; the database cannot be used; or the tables differ
                from the ones that were created (`Edited`).
        """
        deadline = time.monotonic() + self._wait_seconds_max
        pause = _PAUSE_SECONDS
        while True:
            try:
                with self._connection(deadline) as connection:
                    return work(connection)
            except _AGAIN as exc:
                failure: psycopg.Error = exc
            except psycopg.OperationalError as exc:
                if not self._is_passing(exc):
                    raise self._failed(exc) from exc
                failure = exc
            except (psycopg.Error, UnicodeError) as exc:
                if not isinstance(exc, _ELSEWHERE):
                    raise self._failed(exc) from exc
                failure = exc
            now = time.monotonic()
            if now + pause > deadline:
                raise self._failed(failure) from failure
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 # nosec B311 # no secret
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    @contextlib.contextmanager
    def lent(self) -> Iterator[Connection | None]:
        """A second connection for the length of a block, while others stay in use.

        None where there is only one, or none can be made. The block handles what fails on it.
        """
        with contextlib.ExitStack() as stack:
            connection: Connection | None = None
            if self._connections_max > 1:
                with contextlib.suppress(psycopg.Error):
                    deadline = time.monotonic() + self._wait_seconds_max
                    connection = stack.enter_context(self._connection(deadline))
            yield connection

    @contextlib.contextmanager
    def _connection(self, deadline: float) -> Iterator[Connection]:
        self.require_open()
        if self._process != os.getpid():
            self._begin()  # those of the other side of a fork are left to it
        places = self._places
        if not places.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise self._unavailable(
                f"{self.what}: all {self._connections_max} connections were in use for "
                f"{self._wait_seconds_max:g} seconds"
            )
        try:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self._connect()
            try:
                yield connection
            except BaseException as exc:
                self._give_back(connection, keep=not isinstance(exc, _ELSEWHERE))
                raise
            self._give_back(connection, keep=True)
        finally:
            places.release()

    def _give_back(self, connection: Connection, *, keep: bool) -> None:
        """Keep a connection for the next, if nothing is under way on it."""
        with self._lock:
            if keep and connection.is_idle and not self._closed:
                self._idle.append(connection)
                return
        lost = connection.is_lost
        connection.close()
        if lost:
            self._forget_idle()  # the server went, and they with it

    def _forget_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connect(self) -> Connection:
        """A new connection, with whichever of the passwords that are given the server takes."""
        if self._password is None:
            return self._log_in(None)
        tried: tuple[str, ...] = ()
        refused = psycopg.OperationalError("no password was given")
        for _ in range(_LOOKS):
            given = tuple(self._password().split("\n"))
            for password in given:
                if password not in tried:
                    try:
                        return self._log_in(password)
                    except psycopg.OperationalError as exc:
                        if "FATAL:" not in str(exc):
                            raise
                        refused = exc
            if given == tried:
                break  # what was tried is still all there is: it was not changed meanwhile
            tried = given
        raise refused

    def _log_in(self, password: str | None) -> Connection:
        settings = {
            "search_path": f"pg_catalog,{self.url.schema},pg_temp",
            "statement_timeout": str(int(self._wait_seconds_max * 1000)),
            "default_transaction_isolation": "read committed",
            "default_transaction_read_only": "on" if self._read_only else "off",
            # A login may have settings of its own, by which every statement would fail.
            "row_security": "on",
        }
        given = " ".join(
            f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in settings.items()
        )
        parameters: dict[str, Any] = {
            **_AUTHENTICATION,
            **self.url.parameters(),
            "connect_timeout": _CONNECT_SECONDS,
            "application_name": "sealpoint",
            # A server that does not answer any more is noticed, and not waited for.
            "keepalives_idle": _CONNECT_SECONDS,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": int(self._wait_seconds_max * 1000),
            "options": given,
            "target_session_attrs": self._server_kind(),
            **({} if password is None else {"password": password}),
        }
        made = psycopg.connect(**parameters, autocommit=True)
        connection = Connection(made, self._wait_seconds_max, self._columns)
        try:
            if not self._read_only:
                _wait_for_commits(connection)
        except BaseException:
            connection.close()
            raise
        self._was_connected = True
        return connection

    def _server_kind(self) -> str:
        """Which of the servers of a cluster will do, in libpq's words."""
        if not self._read_only:
            return "read-write"
        return "primary" if self._newest else "any"

    def _is_passing(self, error: psycopg.OperationalError) -> bool:
        """Whether it may work in a moment: the server restarts, is busy, or another took over."""
        if isinstance(error, errors.QueryCanceled | errors.DiskFull | errors.OutOfMemory):
            return False
        state = error.sqlstate
        if state is None:  # the connection was lost, or not made; libpq tells no code for that
            said = str(error)
            if "FATAL:" in said:
                return any(each in said for each in _PASSING)
            return self._was_connected and "no password supplied" not in said
        return isinstance(error, _ELSEWHERE) or state[:2] in {"08", "53", "57"}

    def _failed(self, error: Exception) -> SealpointError:
        """The error of this package for one of the server."""
        state = getattr(error, "sqlstate", None)
        if state is None and not isinstance(error, UnicodeError):
            said = str(error).strip().splitlines() or [type(error).__name__]
            hint = next(hint for words, hint in _UNREACHED if words in "\n".join(said))
            place = {
                "variable": f"SEALPOINT_{self._purpose.upper()}_PASSWORD_FILE",
                "host": self.url.hosts[0][0].strip("[]"),
                "port": self.url.hosts[0][1],
                "database": self.url.database,
                "named": self._named(),
            }
            return self._unavailable(
                f"{self.what}: it cannot be reached: {said[0][:_MESSAGE_CHARS_MAX]}",
                hint=hint.format(**place),
            )
        for kinds, said_so, hint in _MEANINGS:
            if isinstance(error, kinds):
                found = f"{self.what}: {said_so} ({state})"
                return self._unavailable(found, hint=hint.format(named=self._named()))
        if isinstance(error, _ALTERED):
            return Edited(f"{self.what}: its tables are not as they were made ({state})")
        return self._unavailable(f"{self.what}: the server failed ({state})")

    def _named(self) -> str:
        """The option that names the database, for its administrator."""
        return f"--{self._purpose} {shlex.quote(str(replace(self.url, user='ADMIN')))}"

    def require_open(self) -> None:
        """Raise `UsageError` after `close`."""
        if self._closed:
            raise UsageError(f"{self.what}: expected it open, found it closed")

    def close(self) -> None:
        """Close all. Closing twice is allowed; any other call then is `UsageError`."""
        self._closed = True
        if self._process == os.getpid():
            self._forget_idle()


# Messages of libpq about a connection that failed, which have no code, and the fix for each.
_UNREACHED = (
    (
        "password authentication failed",
        (
            "Check the user in the URL, and the password in the file that {variable} names, or in "
            "the file that PGPASSFILE names."
        ),
    ),
    (
        "no password supplied",
        (
            "Put the password into a file for this user alone, and its path into {variable}; or "
            "into the file that PGPASSFILE names."
        ),
    ),
    (
        "pg_hba.conf",
        (
            "The server lets nobody in this way. If it wants TLS, take sslmode=disable out of the "
            "URL; else a line of its pg_hba.conf has to name user, database and this machine."
        ),
    ),
    *(
        (words, "Let an administrator make it good: sealpoint provision postgres {named}")
        for words in ("permission denied for database", "not permitted to log in")
    ),
    (
        'database "',
        "If the name is right, make it: createdb --host {host} --port {port} {database}",
    ),
    (
        "authentication method requirement",
        (
            "The server asks for the password itself: give the login one by SCRAM and let "
            "pg_hba.conf say scram-sha-256, or allow it by require_auth=password in the URL."
        ),
    ),
    (
        "root certificate",
        (
            "Name who signs the server's certificate in the URL: sslrootcert=/PATH/OF/ca.pem, or "
            "sslrootcert=system for who signs for everybody."
        ),
    ),
    (
        "certificate verify failed",
        (
            "The authority that the URL names did not sign the server's certificate: "
            "sslrootcert=/PATH/OF/ca.pem, or sslrootcert=system for public authorities."
        ),
    ),
    (
        "does not match host name",
        "Write a name of the host into the URL that its certificate has; the message names one.",
    ),
    (
        "SSL",
        (
            "Let the server offer TLS. sslmode=disable in the URL turns it off; anyone on the "
            "network path can then read along."
        ),
    ),
    ("", "Check that the server runs and that host and port are right: {host}, {port}."),
)

_MEANINGS: tuple[tuple[Any, str, str], ...] = (
    (
        errors.InsufficientPrivilege,
        "this login may not do that",
        (
            "Use a login of the duty that may, or let an administrator make the grants good: "
            "sealpoint provision postgres {named}"
        ),
    ),
    (
        (errors.UndefinedTable, errors.InvalidSchemaName),
        "its schema does not have the tables",
        "Let an administrator make them: sealpoint provision postgres {named}",
    ),
    (
        (errors.InvalidPassword, errors.InvalidAuthorizationSpecification),
        "the server refuses this login",
        "Check user and password, and where the password is looked for.",
    ),
    (errors.InvalidCatalogName, "there is no such database", "Make it: createdb NAME"),
    (
        (errors.QueryCanceled, errors.LockNotAvailable),
        "a statement took too long and was given up",
        "Another session may hold a lock, or the server is busy: see pg_stat_activity, and retry.",
    ),
    (
        errors.DiskFull,
        "the disk of the server is full",
        "Make room there and repeat the call. Nothing was half-written.",
    ),
)


def create_all(connection: Connection, statements: Sequence[str]) -> None:
    """Make a schema and its tables, or as much of them as is not there."""
    for number, statement in enumerate(statements):
        try:
            connection.run(statement)
        except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateSchema):
            continue  # somebody made it at the same moment
        except errors.InsufficientPrivilege:
            if number:  # who may not make a schema may own the one that is there
                raise


def _wait_for_commits(connection: Connection) -> None:
    """Have commits wait for the disk and the standbys, where the server would not."""
    waits = "SELECT current_setting('synchronous_commit') NOT IN ('off', 'local')"
    if connection.run(waits).rows != [(True,)]:
        connection.run("SET synchronous_commit = on")
