# SPDX-License-Identifier: Apache-2.0
"""The connections of a SQLite store: opened, checked, limited, with their failures mapped.

The module guarantees that a connection leads to a file with exactly the tables of a store and no
trigger, view or further table, and that this stays so while it is open, because its authorizer
refuses statements that reach one. It refuses foreign files before it writes anything to them.

Every statement ends. SQLite follows the pages of a file wherever they lead, and pages that refer to
themselves never end: reading the schema of 98 KB may take forever. So a statement, and the schema
that SQLite reads before it, ends after a number of steps that no honest store approaches. A signal
whose handler raises, such as Ctrl-C, also ends it, with that exception.

No connection is open while the process forks. SQLite keeps in memory which locks the process holds
on a file; a child would inherit that belief and not the locks. Its own connections would then take
none, and the parent, when it closes, would remove a log that the child still writes to; or the
child would wait forever for a transaction that only the parent can end. So a fork waits for the
running statements, closes everything, and both sides reopen when they next need it.
"""

import contextlib
import itertools
import os
import sqlite3
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from sealpoint.disk import permission_denied
from sealpoint.errors import Edited, ReadOnly, SchemaUnknown, StorageUnavailable, UsageError
from sealpoint.limits import SQL_OPEN_STEPS_MAX, SQL_STEPS_MAX
from sealpoint.storage._sqlite_file import (
    create_file,
    denied_place,
    file_bytes,
    file_identity,
    refuse_beside,
    sync_log,
)
from sealpoint.storage._sqlite_schema import (
    APPLICATION_ID,
    AUTHORIZERS,
    OBJECTS,
    SCHEMA_VERSION,
    VERSION,
    Purpose,
)

# For a change, per row that is written or looked up; it takes about 50.
_ROW_STEPS_MAX = 1000
# For a pass through the whole file; compacting the smallest rows takes a third of a step.
_BYTE_STEPS_MAX = 4
_SCHEMA_BYTES_MAX = 64 * 1024
_DENIED_CODES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
_FULL_HINT = (
    "The disk is full, and nothing was half-written: make room where the store lies, and repeat "
    "the call."
)
_READ_ONLY_HINT = (
    "Nothing was changed: have it mounted so that it can be written, and repeat the call."
)
_VALUE_BYTES_MAX = 1_000_000_000
_OPENING_LOOK_STEPS = 100

# A hostile name in a message of SQLite need not be UTF-8.
FAILURES = (sqlite3.Error, UnicodeError)

_OBJECTS_SQL = "SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT ?"

_READ_SETTINGS = """
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA cache_size = -8192;
"""
# NORMAL loses acknowledged commits in a power cut; fullfsync is for macOS, where a plain fsync
# leaves the bytes in the drive. Dropped bytes are overwritten at once. If SQLite made copies of
# them when it moved rows from page to page, only compacting removes these.
_WRITE_SETTINGS = """
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA wal_autocheckpoint = 1000;
    PRAGMA journal_size_limit = 33554432;
    PRAGMA secure_delete = ON;
"""

# The file is not as written: damage, or a schema that was changed after it was checked.
_EDITED_CODES = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_NOTADB,
    }
)
_FOREIGN_CODES = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_NOTADB})
_LOOK_STEPS = 1000
_BUSY_SECONDS = 0.0002


class BoundedConnection(sqlite3.Connection):
    """A connection whose statements end; without `allow`, they end at the first check."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._watch = _Watch()
        self.look_every()

    def look_every(self, steps: int = _LOOK_STEPS) -> None:
        """Check after this many steps whether to continue; `allow` must set the limit again."""
        self._look_steps = steps
        self._watch.looks_left = 0
        self.set_progress_handler(self._watch.looks.__next__, steps)

    def allow(self, steps_max: int) -> None:
        """Let the statements from now on take this many steps together."""
        self._watch.looks_left = steps_max // self._look_steps

    def is_spent(self) -> bool:
        """Whether more steps were taken than were allowed."""
        return self._watch.looks_left < 0

    def interruption(self) -> BaseException | None:
        """Return the exception of a signal handler during a statement, once."""
        raised, self._watch.raised = self._watch.raised, None
        return raised


class _Watch:
    """The progress handler of SQLite; it does not refer to the connection, which refers to it."""

    __slots__ = ("looks", "looks_left", "raised")

    def __init__(self) -> None:
        self.looks_left = 0
        self.raised: BaseException | None = None
        self.looks = self._look()
        next(self.looks)

    def _look(self) -> Iterator[bool]:
        """Yield each time whether to stop.

        This is a generator and not a function. Python runs the handlers of signals when it enters
        either, and only in a generator their exceptions are raised inside its `try` block. An
        exception that leaves the function that SQLite calls is lost.
        """
        stop = False
        while True:
            try:
                yield stop
                self.looks_left -= 1
                stop = self.looks_left < 0
            except GeneratorExit:
                return
            except BaseException as exc:  # noqa: BLE001 # `interruption` gives it to the caller
                self.raised = exc
                stop = True


def failure(
    path: Path,
    exc: Exception,
    connection: BoundedConnection | None = None,
    *,
    opening: bool = False,
) -> BaseException:
    """Return the error for a failure of SQLite, or the exception of a signal handler.

    The caller raises it from `exc`. The text of SQLite's message is left to that cause: it may
    contain names that an attacker who wrote the file has chosen.
    """
    interruption = None if connection is None else connection.interruption()
    if interruption is not None:
        return interruption
    if not isinstance(exc, sqlite3.Error):
        return Edited(f"store {path}: expected the schema of a store, found undecodable names")
    # Errors that Python's own checks raise carry no code.
    code = getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_INTERNAL) & 0xFF
    name = getattr(exc, "sqlite_errorname", type(exc).__name__)
    if opening and code in _FOREIGN_CODES:
        return SchemaUnknown(f"store {path}: expected a Sealpoint store, found no such SQLite file")
    if code == sqlite3.SQLITE_INTERRUPT and connection is not None and connection.is_spent():
        return Edited(f"store {path}: expected tables that end, found pages that lead in circles")
    if code in _EDITED_CODES:
        return Edited(f"store {path}: expected the tables as written, found {name}")
    return _unavailable(path, code, name)


def _unavailable(path: Path, code: int, name: str) -> StorageUnavailable:
    """Return the error for a failure that no edit caused: the file cannot be used or written."""
    place = denied_place(path) if code in _DENIED_CODES else None
    if place is not None:
        denied, hint = _mounted_read_only(place) or permission_denied(place)
        return StorageUnavailable(f"store {path}: {denied}", hint=hint)
    full = code == sqlite3.SQLITE_FULL
    return StorageUnavailable(
        f"store {path}: expected SQLite to succeed, found {name}", hint=_FULL_HINT if full else None
    )


def _mounted_read_only(place: Path) -> tuple[str, str] | None:
    """Return why a place is read-only, and a hint; None if its file system is not the reason."""
    with contextlib.suppress(OSError):
        if os.statvfs(place).f_flag & os.ST_RDONLY:
            return f"{place} is on a file system that is mounted read-only", _READ_ONLY_HINT
    return None


def recover(connection: BoundedConnection) -> None:
    """Make a connection usable again after a failure; the caller reports the failure.

    SQLite never ran a statement that the authorizer refused, so it did not check whether its copy
    of the schema is still current. Without this read it would use a dropped trigger forever; with
    it the next call but one succeeds.
    """
    connection.allow(SQL_STEPS_MAX)
    with contextlib.suppress(*FAILURES):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    with contextlib.suppress(*FAILURES):
        connection.execute("SELECT name FROM sqlite_master LIMIT 0").fetchall()
    interruption = connection.interruption()
    if interruption is not None:
        raise interruption


def connect(
    path: Path,
    *,
    identity: tuple[int, int],
    purpose: Purpose,
    wait_seconds_max: float,
) -> BoundedConnection:
    """Open the file of a store and check it.

    Args:
        path: The file, absolute.
        identity: The expected file, as `file_identity` returned it.
        purpose: The purpose of this connection, which limits its statements.
        wait_seconds_max: How long a statement waits for another process.

    Raises:
        SchemaUnknown: The file is not a store, or has another schema version.
        Edited: The file is damaged or was exchanged, or the store has more or other tables than its
            schema, or its pages lead in circles, or a file next to it belongs to no store.
        StorageUnavailable: The file does not exist or cannot be opened.
    """
    refuse_beside(path)
    uri = f"{path.as_uri()}?mode={'ro' if purpose is Purpose.READ else 'rw'}"
    connection: BoundedConnection | None = None
    try:
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=wait_seconds_max,
            isolation_level=None,
            check_same_thread=False,
            factory=BoundedConnection,
        )
        # The file is open and nothing has been read from it, so there was no wait: an attacker who
        # wants two connections on two files has no time to exchange the name.
        if file_identity(path) != identity:
            raise Edited(f"store {path}: expected one file, found it exchanged while opening")
        _prepare(path, connection, purpose)
    except BaseException as exc:
        if connection is not None:
            connection.close()
        if not isinstance(exc, FAILURES):
            raise
        file_identity(path)
        raise failure(path, exc, connection, opening=True) from exc
    return connection


def _prepare(path: Path, connection: BoundedConnection, purpose: Purpose) -> None:
    """Set limits, check, apply settings, and only then write: a foreign file does not change."""
    # A schema is short: a longer one is neither brought into memory nor followed.
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _SCHEMA_BYTES_MAX)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _SCHEMA_BYTES_MAX)
    connection.look_every(_OPENING_LOOK_STEPS)
    connection.allow(SQL_OPEN_STEPS_MAX)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)  # noqa: FBT003 # positional only
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)  # noqa: FBT003 # positional only
    # Before the settings, with which SQLite reads the schema: foreign files have longer ones.
    _require_version(path, connection)
    # In one call: separate statements would each cost as much again.
    connection.executescript(
        _READ_SETTINGS if purpose is Purpose.READ else _READ_SETTINGS + _WRITE_SETTINGS
    )
    _require_schema(path, connection)
    # If an attacker set the file back to a rollback journal, SQLite would play back a planted
    # journal, which deletes any file that the journal names.
    if (mode := _pragma(connection, "PRAGMA journal_mode")) != "wal":
        raise Edited(f"store {path}: expected a write-ahead log, found mode {mode}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES_MAX)
    if purpose is Purpose.READ:
        connection.execute("PRAGMA query_only = ON")
    if purpose is Purpose.WRITE:
        connection.execute("PRAGMA busy_timeout = 0")  # `Connections.change` waits
    connection.set_authorizer(AUTHORIZERS[purpose])
    connection.look_every()
    connection.allow(SQL_STEPS_MAX)


def _pragma(connection: sqlite3.Connection, sql: str) -> object:
    (value,) = connection.execute(sql).fetchone()
    return value


def _require_version(path: Path, connection: sqlite3.Connection) -> None:
    application = _pragma(connection, "PRAGMA application_id")
    if application != APPLICATION_ID:
        raise SchemaUnknown(
            f"store {path}: expected a Sealpoint store (application id {APPLICATION_ID}), "
            f"found application id {application}"
        )
    version = _pragma(connection, "PRAGMA user_version")
    if version != SCHEMA_VERSION:
        raise SchemaUnknown(
            f"store {path}: expected schema version {SCHEMA_VERSION}, the newest this version of "
            f"Sealpoint knows, found {version}"
        )


def _require_schema(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a schema that could change our writes or reads: triggers, views, other columns."""
    # One row more than a store has: a duplicated row is one too many.
    rows = connection.execute(_OBJECTS_SQL, (len(OBJECTS) + 1,)).fetchall()
    found = set(rows)
    if found == OBJECTS and len(rows) == len(OBJECTS):
        return
    others = found ^ OBJECTS or {row for row in rows if rows.count(row) > 1}
    names = sorted({repr(name)[:80] for _, name, _, _ in others})[:5]
    raise Edited(
        f"store {path}: expected exactly the tables of schema version {SCHEMA_VERSION}, each once, "
        f"found these objects added, changed or missing: {', '.join(names)}"
    )


class Handles:
    """The connections of one storage in one process, each with the lock that guards it."""

    __slots__ = (
        *("__weakref__", "_identity", "_path", "_read_only", "_wait_seconds_max"),
        *(
            "alone_in",
            "commits",
            "looks",
            "number",
            "pid",
            "read_lock",
            "reader",
            "rows",
            "write_lock",
        ),
        "writer",
    )

    def __init__(self, path: Path, *, read_only: bool, wait_seconds_max: float) -> None:
        self._path = path
        self._read_only = read_only
        self._wait_seconds_max = wait_seconds_max
        self.pid = os.getpid()
        self.read_lock = threading.Lock()
        self.write_lock = threading.Lock()
        self.alone_in: int | None = None
        """The OS thread that holds the lock in a block of `SqliteConnections.alone`."""
        self._identity = (0, 0)
        self.writer: BoundedConnection | None = None
        self.reader: BoundedConnection | None = None
        self.number = 0
        """A number that no other connections of this process, or of its fork parents, have."""
        self.commits = 0
        """How often the writing connection has committed, or tried to."""
        # One cursor for all reads: making one each time costs a tenth of a small read.
        self.rows: sqlite3.Cursor | None = None
        self.looks: sqlite3.Cursor | None = None
        """The cursor for reads on the writing connection."""
        with fork_lock():
            try:
                # The reader first: it cannot play back a journal that appears at this moment, and
                # the lock it holds from now on keeps the writer from it (see `refuse_beside`).
                # So both must be on the same file.
                self.open_reader()
                if not read_only:
                    self.open_writer()
            except BaseException:
                self.close()
                raise
            _open_handles.add(self)

    def open_reader(self) -> tuple[BoundedConnection, sqlite3.Cursor]:
        """Open the reading connection, if it is not open; the caller holds its lock."""
        if self.reader is None or self.rows is None:
            self._identity = file_identity(self._path)
            self.reader = connect(
                self._path,
                identity=self._identity,
                purpose=Purpose.READ,
                wait_seconds_max=self._wait_seconds_max,
            )
            self.rows = self.reader.cursor()
            self.number = next(_numbers)
        return self.reader, self.rows

    def open_writer(self) -> BoundedConnection:
        """Open the writing connection; the caller holds its lock, and the reader is open."""
        sync_log(self._path)
        self.writer = connect(
            self._path,
            identity=self._identity,
            purpose=Purpose.WRITE,
            wait_seconds_max=self._wait_seconds_max,
        )
        self.looks = self.writer.cursor()
        return self.writer

    def open_another(self, purpose: Purpose) -> BoundedConnection:
        """Open a temporary connection; the caller holds the writer's lock and closes it before.

        The writer is open, too: it is the last to be closed.
        """
        return connect(
            self._path,
            identity=self._identity,
            purpose=purpose,
            wait_seconds_max=self._wait_seconds_max,
        )

    def close(self) -> None:
        """Close the writer last: the last writable connection to a file merges its log into it."""
        with self.write_lock, self.read_lock:
            self._close()

    def suspend(self) -> None:
        """Close everything and keep both locks, so that nothing is opened before `resume`."""
        self.write_lock.acquire()
        self.read_lock.acquire()
        self._close()

    def resume(self) -> None:
        """Let the connections be opened again."""
        self.read_lock.release()
        self.write_lock.release()

    def _close(self) -> None:
        if self.reader is not None:
            self.reader.close()
            self.reader = self.rows = None
        if self.writer is not None:
            self.writer.close()
            self.writer = self.looks = None


_numbers = itertools.count(1)
_open_handles: "weakref.WeakSet[Handles]" = weakref.WeakSet()
_suspended: list[Handles] = []
_inherited: list[Handles] = []
_fork_lock = threading.RLock()


def fork_lock() -> threading.RLock:
    """Return the lock that is held while a file is opened, so that no fork happens then."""
    return _fork_lock


def _before_fork() -> None:
    _fork_lock.acquire()
    for handles in list(_open_handles):
        handles.suspend()
        _suspended.append(handles)


def _after_fork_in_parent() -> None:
    while _suspended:
        _suspended.pop().resume()
    _fork_lock.release()


def _after_fork_in_child() -> None:
    """Leave inherited connections alone; the child opens its own handles.

    Code that forks without Python's knowledge leaves connections open here: they must not be used,
    closed or collected, because a child would act on locks that it does not hold.
    """
    global _fork_lock  # noqa: PLW0603 # another thread of the parent may have held it
    _fork_lock = threading.RLock()
    _suspended.clear()
    _inherited.extend(_open_handles)
    _open_handles.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


def _begin(writer: BoundedConnection) -> None:
    writer.execute("BEGIN IMMEDIATE")


class SqliteConnections:
    """Gives a storage the connections of its process; see `SqliteStorage` for the arguments.

    One connection writes, another reads, so that no read waits for a commit.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool,
        read_only: bool,
        wait_seconds_max: float,
        group: int | None,
    ) -> None:
        if create and read_only:
            raise UsageError(f"store {path}: expected create or read_only, found both")
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 # resolve() would follow links
        self._read_only = read_only
        self.wait_seconds_max = wait_seconds_max
        self._closed = False
        if create:
            try:
                create_file(self.path, group)
            except FAILURES as exc:
                raise failure(self.path, exc) from exc
        self._handles = self._open()

    def rows(self, sql: str, parameters: tuple[object, ...]) -> list[tuple[object, ...]]:
        """Run one reading statement to its end, so that no transaction stays open."""
        handles = self._handles
        if handles.pid != os.getpid():
            handles = self._here()
        with handles.read_lock:
            return self._run(handles, sql, parameters)

    def version(self) -> tuple[int, int, int] | None:
        """Return the number of these connections, SQLite's number for foreign commits, and ours.

        SQLite's number changes once any other connection has committed, including those of other
        processes. It is read on the writing connection: its own commits do not change the number,
        and are counted. The number of one connection says nothing about that of another.

        Returns:
            None during a commit of this process, which the call would have to wait for.
        """
        handles = self._handles
        if handles.pid != os.getpid():
            handles = self._here()
        if self._read_only:
            with handles.read_lock:
                found: Any = self._run(handles, VERSION, ())
                return handles.number, found[0][0], 0
        if not handles.write_lock.acquire(False):  # noqa: FBT003 (by name it takes longer)
            return None
        try:
            writer, looks = handles.writer, handles.looks
            if writer is None or looks is None:
                writer = self._reopen_writer(handles)
                looks = writer.cursor()
            writer.allow(SQL_STEPS_MAX)
            return handles.number, looks.execute(VERSION).fetchall()[0][0], handles.commits
        except FAILURES as exc:
            error = failure(self.path, exc, handles.writer)
            if handles.writer is not None:
                recover(handles.writer)
            raise error from exc
        finally:
            handles.write_lock.release()

    def _run(
        self, handles: Handles, sql: str, parameters: tuple[object, ...]
    ) -> list[tuple[object, ...]]:
        """Run a statement on the reading connection; the caller holds its lock."""
        reader, rows = handles.reader, handles.rows
        if reader is None or rows is None:
            reader, rows = self._reopen_reader(handles)
        reader.allow(SQL_STEPS_MAX)
        try:
            return rows.execute(sql, parameters).fetchall()
        except FAILURES as exc:
            error = failure(self.path, exc, reader)
            recover(reader)
            raise error from exc

    def change(self, rows: int, make: Callable[..., None], *given: object) -> None:
        """Run one transaction over this many rows from begin to commit, or leave nothing of it."""
        handles = self._handles
        if self._read_only or handles.pid != os.getpid():
            handles = self._writable()
        is_alone = handles.alone_in == threading.get_ident()
        with contextlib.nullcontext() if is_alone else handles.write_lock:
            writer = handles.writer
            if writer is None:
                writer = self._reopen_writer(handles)
            writer.allow(SQL_STEPS_MAX + rows * _ROW_STEPS_MAX)
            handles.commits += 1
            try:
                self._make(writer, make, *given)
            except FAILURES as exc:
                error = failure(self.path, exc, writer)
                recover(writer)
                raise error from exc
            except BaseException:
                recover(writer)
                raise

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the write lock until the block ends, or until a change in it is committed."""
        handles = self._writable()
        with handles.write_lock:
            writer = handles.writer
            if writer is None:
                writer = self._reopen_writer(handles)
            writer.allow(SQL_STEPS_MAX)
            try:
                self._make(writer, _begin)
            except FAILURES as exc:
                raise failure(self.path, exc, writer) from exc
            handles.alone_in = threading.get_ident()
            try:
                yield
            finally:
                handles.alone_in = None
                recover(writer)

    def _make(self, writer: BoundedConnection, make: Callable[..., None], *given: object) -> None:
        """Wait until no other process writes, and run a transaction.

        SQLite itself checks less and less often, down to ten times a second. A process that writes
        all the time leaves only short gaps, and rare checks would hardly ever find one.
        """
        until = monotonic() + self.wait_seconds_max
        while True:
            try:
                return make(writer, *given)
            except sqlite3.OperationalError as exc:
                is_busy = exc.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or writer.in_transaction or monotonic() >= until:
                    raise
                sleep(_BUSY_SECONDS)

    def change_apart(self, purpose: Purpose, make: Callable[[sqlite3.Connection], None]) -> None:
        """Make a change that saving connections must not be able to make, on a separate one."""
        handles = self._writable()
        # The lock also keeps the process from forking while one more connection is open.
        with handles.write_lock:
            if handles.writer is None:
                self._reopen_writer(handles)
            with contextlib.closing(handles.open_another(purpose)) as connection:
                connection.allow(SQL_STEPS_MAX + file_bytes(self.path) * _BYTE_STEPS_MAX)
                try:
                    make(connection)
                except FAILURES as exc:
                    raise failure(self.path, exc, connection) from exc

    def close(self) -> None:
        """Close the connections of this process. Closing twice is allowed."""
        self._closed = True
        handles = self._handles
        if handles.pid == os.getpid():
            handles.close()

    def _open(self) -> Handles:
        return Handles(self.path, read_only=self._read_only, wait_seconds_max=self.wait_seconds_max)

    def _here(self) -> Handles:
        """Return the connections of this process; a forked child opens its own when needed."""
        handles = self._handles
        if handles.pid == os.getpid():
            return handles
        with fork_lock():
            self._require_open()
            if self._handles.pid != os.getpid():
                self._handles = self._open()
            return self._handles

    def _writable(self) -> Handles:
        handles = self._here()
        if self._read_only:
            raise ReadOnly(f"store {self.path}: expected one opened for writing, found read_only")
        return handles

    def _reopen_reader(self, handles: Handles) -> tuple[BoundedConnection, sqlite3.Cursor]:
        """Reopen the reader that a fork has closed."""
        self._require_open()
        return handles.open_reader()

    def _reopen_writer(self, handles: Handles) -> BoundedConnection:
        with handles.read_lock:
            self._reopen_reader(handles)
        return handles.open_writer()

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError(f"store {self.path}: expected it open, found it closed")
