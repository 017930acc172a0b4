# SPDX-License-Identifier: Apache-2.0
"""The SQLite file of a store: how it is made, opened, checked, and what its failures mean.

It guarantees that a connection it returns leads to a file with exactly the tables of
`_sqlite_schema.py` and no trigger, view or further table; that this stays so while the connection
is open, because its authorizer refuses statements that reach a trigger or a view; and that a file
appears under its name complete or not at all. It refuses foreign files before it writes anything
to them, and files whose pages lead in circles after a bounded number of steps.
"""

import contextlib
import os
import sqlite3
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sealpoint.errors import Edited, SchemaUnknown, StorageUnavailable
from sealpoint.limits import SQL_OPEN_STEPS_MAX, SQL_STEPS_MAX
from sealpoint.storage._file_directory import sync
from sealpoint.storage._sqlite_rows import (
    APPLICATION_ID,
    AUTHORIZERS,
    OBJECTS,
    SCHEMA,
    SCHEMA_VERSION,
    Purpose,
)

# ---------------------------------------------------------------------- sqlite steps
# How far a statement of SQLite may go: to a bound, or until a signal ends it.
#
# SQLite follows the pages of a file wherever they lead, and pages that refer to themselves lead
# nowhere: reading the schema of 98 KB may take for ever. It guarantees that a statement, and the
# schema that SQLite reads before it, ends after a number of steps that no honest store comes
# near; and that a signal whose handler raises, as Ctrl-C does, ends it too, with that exception.
# SQLite calls a statement that was ended so interrupted; `_sqlite_file.py` says what that means.


_LOOK_STEPS = 1000


class BoundedConnection(sqlite3.Connection):
    """A connection whose statements end; without `allow`, they end at the first look."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._watch = _Watch()
        self.look_every()

    def look_every(self, steps: int = _LOOK_STEPS) -> None:
        """Look after so many steps whether to go on; `allow` has to say anew how far."""
        self._look_steps = steps
        self._watch.looks_left = 0
        self.set_progress_handler(self._watch.looks.__next__, steps)

    def allow(self, steps_max: int) -> None:
        """Let the statements from now on take so many steps together."""
        self._watch.looks_left = steps_max // self._look_steps

    def is_spent(self) -> bool:
        """Whether more steps were taken than were allowed."""
        return self._watch.looks_left < 0

    def interruption(self) -> BaseException | None:
        """What a signal's handler raised while a statement was under way, once."""
        raised, self._watch.raised = self._watch.raised, None
        return raised


class _Watch:
    """What SQLite asks; it does not refer to the connection, which refers to it."""

    __slots__ = ("looks", "looks_left", "raised")

    def __init__(self) -> None:
        self.looks_left = 0
        self.raised: BaseException | None = None
        self.looks = self._look()
        next(self.looks)

    def _look(self) -> Iterator[bool]:
        """Whether to stop, each time.

        A generator and no function: Python runs the handlers of signals when it enters either,
        and what they raise there is inside the `try` block of a generator alone. What leaves the
        function that SQLite calls is lost.
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


# ---------------------------------------------------------------------- sqlite file

_SCHEMA_BYTES_MAX = 64 * 1024
_OWN_MODE = 0o600
_GROUP_MODE = 0o660
_DENIED_CODES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
_VALUE_BYTES_MAX = 1_000_000_000
_OPENING_LOOK_STEPS = 100

# A hostile name in a message of SQLite need not be UTF-8.
FAILURES = (sqlite3.Error, UnicodeError)

_OBJECTS_SQL = "SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT ?"

_SETTINGS: tuple[str, ...] = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    # NORMAL loses acknowledged commits in a power cut; fullfsync is for macOS, where a plain
    # fsync leaves the bytes in the drive.
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA cache_size = -8192",
    "PRAGMA wal_autocheckpoint = 1000",
    "PRAGMA journal_size_limit = 33554432",
    # What is dropped is overwritten at once. Copies that SQLite made of it, when it moved rows
    # from page to page, only compacting removes.
    "PRAGMA secure_delete = ON",
)

# Not what was written: damage, or a schema that somebody changed after it was checked.
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


def failure(
    path: Path,
    exc: Exception,
    connection: BoundedConnection | None = None,
    *,
    opening: bool = False,
) -> BaseException:
    """What a failure of SQLite means: an error of ours, or what the handler of a signal raised.

    The caller raises it from `exc`. The text of SQLite's message is left to that cause: it may
    hold names that whoever wrote the file has chosen.
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
    denied = _denied(path) if code in _DENIED_CODES else None
    return denied or StorageUnavailable(f"store {path}: expected SQLite to succeed, found {name}")


def _denied(path: Path) -> StorageUnavailable | None:
    """Permission denied, if that is why SQLite could not open a file."""
    for place in (path.parent, path, path.with_name(f"{path.name}-wal")):
        try:
            found = place.stat()
        except OSError:
            continue
        wanted = os.R_OK | os.W_OK | (os.X_OK if place == path.parent else 0)
        effective = os.access in os.supports_effective_ids
        if not os.access(place, wanted, effective_ids=effective):
            return StorageUnavailable(
                f"store {path}: permission denied: {place} is of user {found.st_uid} and group "
                f"{found.st_gid}, with mode {stat.S_IMODE(found.st_mode):04o}",
                hint="Run this as that user. To share a store among users, make it for a group: "
                "sealpoint init --group NAME, and sealpoint trust import PIN --group NAME.",
            )
    return None


def recover(connection: BoundedConnection) -> None:
    """Leave a connection usable after a failure; what failed is what the caller hears of.

    A statement that the authorizer refused was never run, so SQLite did not look whether its idea
    of the schema is still right. Without this read it would go by a dropped trigger for ever; with
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


def file_identity(path: Path) -> tuple[int, int]:
    """Which file lies under a name: two connections must not be on two files.

    Raises:
        StorageUnavailable: There is none, or it is a link, a pipe, a device or a directory.
    """
    try:
        found = path.lstat()
    except FileNotFoundError as exc:
        raise StorageUnavailable(f"store {path}: expected a file, found none") from exc
    except OSError as exc:
        raise StorageUnavailable(f"store {path}: expected a file, found {exc.strerror}") from exc
    if not stat.S_ISREG(found.st_mode):
        raise StorageUnavailable(
            f"store {path}: expected a file, found a link or something else",
            hint="Name the file itself in the URL.",
        )
    return found.st_dev, found.st_ino


def file_bytes(path: Path) -> int:
    """How much the file of a store and its log hold."""
    total = 0
    for name in (path.name, f"{path.name}-wal"):
        with contextlib.suppress(OSError):
            total += path.with_name(name).lstat().st_size
    return total


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
        identity: Which file it has to be, as `file_identity` said.
        purpose: What this connection is for; it is held to it.
        wait_seconds_max: How long a statement waits for another process.

    Raises:
        SchemaUnknown: The file is no store, or one of another schema version.
        Edited: The file is damaged or was exchanged, or the store holds more or other tables than
            its schema, or its pages lead in circles, or something lies beside it that no store has.
        StorageUnavailable: The file does not exist or cannot be opened.
    """
    _refuse_beside(path)
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
        # The file is open and nothing has been read from it, so nobody was waited for: whoever
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


def _refuse_beside(path: Path) -> None:
    """Refuse what SQLite would use beside the store although no store has it.

    A store with a write-ahead log never has a rollback journal. SQLite would play a planted one
    back, and then delete whatever file it names as its super-journal: the anchor, say. A log or
    its index that has another name elsewhere would be overwritten there.
    """
    journal = path.with_name(f"{path.name}-journal")
    if os.path.lexists(journal):
        raise Edited(f"store {path}: expected no rollback journal beside it, found {journal.name}")
    for suffix in ("-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        with contextlib.suppress(OSError):
            found = beside.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise Edited(f"store {path}: expected a file of its own, found {beside.name}")


def _prepare(path: Path, connection: BoundedConnection, purpose: Purpose) -> None:
    """Bounds, then checks and settings, then the first write: a foreign file stays as it was."""
    # A schema is short: whatever claims otherwise is neither brought into memory nor followed.
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _SCHEMA_BYTES_MAX)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _SCHEMA_BYTES_MAX)
    connection.look_every(_OPENING_LOOK_STEPS)
    connection.allow(SQL_OPEN_STEPS_MAX)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)  # noqa: FBT003 # positional only
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)  # noqa: FBT003 # positional only
    # Before the settings, with which SQLite reads the schema: others have longer ones.
    _require_version(path, connection)
    for setting in _SETTINGS:
        connection.execute(setting)
    _require_schema(path, connection)
    # A file that somebody turned back to a rollback journal would let a planted journal be played
    # back, which deletes whatever file that journal names.
    if (mode := _pragma(connection, "PRAGMA journal_mode")) != "wal":
        raise Edited(f"store {path}: expected a write-ahead log, found mode {mode}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES_MAX)
    if purpose is Purpose.READ:
        connection.execute("PRAGMA query_only = ON")
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
    """Refuse whatever could change what we write or read: triggers, views, other columns."""
    # One row more than a store has: a row that is there twice is one too many.
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


def create_file(path: Path, group: int | None = None) -> None:
    """Make the file of a store unless there is a file already.

    It is made complete under another name, then given its own, which fails if that is taken: of
    two processes that create at once one makes the store, and the other uses it. If a group shares
    it, its members may write it: SQLite gives the files beside it the same mode. They may also
    rename whatever is made in its directory, so all is done through descriptors, never by a path.

    Raises:
        StorageUnavailable: The directory does not exist or cannot be written, or somebody put
            another file in the place of the one that was made.
    """
    if os.path.lexists(path):
        return
    draft = f".{path.name[:100]}.{os.urandom(8).hex()}"
    try:
        content = _empty_store()
        with contextlib.ExitStack() as opened:
            within = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, within)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(draft, flags, _OWN_MODE, dir_fd=within)
            file = opened.enter_context(os.fdopen(descriptor, "wb"))
            opened.callback(_remove, draft, within)
            file.write(content)
            file.flush()
            if group is not None:
                os.fchown(descriptor, -1, group)
                os.fchmod(descriptor, _GROUP_MODE)
            sync(descriptor)
            os.link(draft, path.name, src_dir_fd=within, dst_dir_fd=within, follow_symlinks=False)
            named = os.stat(path.name, dir_fd=within, follow_symlinks=False)
            if not os.path.samestat(named, os.fstat(descriptor)):
                raise StorageUnavailable(
                    f"store {path}: expected the file that was made, found another in its place",
                    hint=f"Look who else may write to {path.parent}; remove what they put there.",
                )
            sync(within)
    except FileExistsError:
        return
    except OSError as exc:
        raise StorageUnavailable(
            f"store {path}: expected a directory {path.parent} that can be written, "
            f"found {exc.strerror}"
        ) from exc
    except FAILURES as exc:
        raise failure(path, exc) from exc


def _remove(name: str, within: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=within)


def _empty_store() -> bytes:
    """The bytes of a file with the tables of a store; made in memory, since SQLite knows paths."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        if not hasattr(connection, "serialize"):  # pragma: no cover - only before SQLite 3.36
            raise StorageUnavailable(
                f"SQLite: expected 3.36 or newer to make a store, found {sqlite3.sqlite_version}",
                hint="Use a newer Python or SQLite, or a store of files: file:///DIRECTORY",
            )
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("BEGIN")
        for sql in SCHEMA.values():
            connection.execute(sql)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
        content = bytearray(connection.serialize())
    # The versions of the format for writing and reading: a write-ahead log, which memory has not.
    content[18:20] = b"\x02\x02"
    return bytes(content)


def sync_log(path: Path) -> None:
    """Let reach the disk what SQLite has just found in the log.

    A writer that was killed before its sync leaves a commit that is read from now on, and that
    a power cut could still take away after the anchor has seen it.

    Raises:
        StorageUnavailable: It cannot be synced.
    """
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path.with_name(f"{path.name}-wal"), flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise StorageUnavailable(
            f"store {path}: expected its log to reach the disk, found {exc.strerror}"
        ) from exc
