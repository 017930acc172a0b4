# SPDX-License-Identifier: Apache-2.0
"""The outbox: the waiting events of each hook, and the reported position of every thread.

One SQLite file of one console, which no other user can read, and which a second console of the same
store and namespace cannot open. A write is on the disk when the call returns, together with the
reported positions of threads, so a process that is killed repeats nothing and leaves nothing out.
Without a path it is in memory, and ends with the process.

It is bounded: if more events wait for a hook than it holds, the oldest is given up, and counted.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sealpoint.disk import FILE, Unsafe, make_directory, require_safe
from sealpoint.errors import DirectoryUnusable
from sealpoint_console._notification_events import ConsoleEvent

WAITING_MAX = 10_000
"""The number of events that may wait for one hook."""

_ERROR_CHARS_MAX = 200
_VERSION = 1
_TABLES = """
    CREATE TABLE waiting (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        hook TEXT NOT NULL,
        event TEXT NOT NULL,
        id TEXT NOT NULL,
        since REAL NOT NULL,
        UNIQUE (hook, id)
    );
    CREATE TABLE hook (
        name TEXT PRIMARY KEY,
        delivered INTEGER NOT NULL DEFAULT 0,
        dropped INTEGER NOT NULL DEFAULT 0,
        delivered_at REAL,
        failed_at REAL,
        error TEXT NOT NULL DEFAULT ''
    );
    CREATE TABLE thread (id TEXT PRIMARY KEY, told INTEGER NOT NULL);
    CREATE TABLE finding (thread TEXT PRIMARY KEY, code TEXT NOT NULL, count INTEGER NOT NULL);
    CREATE TABLE key (event TEXT PRIMARY KEY, expires REAL NOT NULL);
    CREATE TABLE begun (at REAL NOT NULL);
"""
_MOST = """
    SELECT json_extract(event, '$.kind'), coalesce(json_extract(event, '$.by'), ''), count(*)
    FROM waiting WHERE hook = ? GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1
"""
_DROP = """
    DELETE FROM waiting WHERE number IN (
        SELECT number FROM waiting WHERE hook = ? AND json_extract(event, '$.kind') = ?
        AND coalesce(json_extract(event, '$.by'), '') = ? ORDER BY number LIMIT ?
    )
"""
_FIRST = """
    SELECT number, event, since FROM waiting WHERE hook = ?
    ORDER BY json_extract(event, '$.kind') NOT IN ('unreadable', 'broken-glass'), number LIMIT 1
"""
"""Alarms first: other entries, which an attacker may write in bulk, must not delay them."""
_FORGET_OTHERS = (
    "DELETE FROM waiting WHERE hook NOT IN (SELECT value FROM json_each(?))",
    "DELETE FROM hook WHERE name NOT IN (SELECT value FROM json_each(?))",
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event that waits for a hook."""

    number: int
    event: ConsoleEvent
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HookStatus:
    """The delivery status of a hook."""

    name: str
    delivered: int
    """The number of events that it accepted."""
    waiting: int
    dropped: int
    """The number of events given up: the hook failed for a day, or too many waited."""
    delivered_at: datetime | None
    failed_at: datetime | None
    error: str
    """The error of the last attempt; empty: it succeeded."""


@dataclass(slots=True)
class OutboxChange:
    """One atomic write: events for hooks, and the positions that they cover."""

    begins: bool = False
    """Whether its positions are the start of reporting."""
    events: list[tuple[str, ConsoleEvent]] = field(default_factory=list)
    """Each with the name of its hook."""
    threads: dict[str, int] = field(default_factory=dict)
    """The reported position of each thread."""
    findings: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Code and count of each verification failure, by thread; an empty code: it has ended."""
    keys: dict[str, datetime] = field(default_factory=dict)
    """The expiry of keys with a sent event, by the event."""

    def __bool__(self) -> bool:
        return bool(self.events or self.threads or self.findings or self.keys)


class Outbox:
    """The waiting events, in the order of their arrival.

    Args:
        path: The file; None: in memory.
        hooks: The names of the current hooks; events that wait for other hooks are dropped.

    Raises:
        DirectoryUnusable: Another console has it open, it cannot be read and written, or it is not
            an outbox.
    """

    def __init__(self, path: Path | None, hooks: Sequence[str]) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._closed = False
        if path is not None:
            _prepare(path)
        with self._failing():
            self._database = sqlite3.connect(
                ":memory:" if path is None else path,
                timeout=0,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._open(hooks)
            except BaseException:
                self._database.close()
                raise

    def _open(self, hooks: Sequence[str]) -> None:
        # The lock is held while the file is open, and the system releases it at a crash.
        self._database.executescript(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;"
        )
        with self._changing() as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _TABLES.split(";"):
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {_VERSION}")
            elif version != _VERSION:
                raise DirectoryUnusable(
                    f"{self._path}: expected an outbox of version {_VERSION}, found {version}",
                    hint="Move the file away: what waits in it is not sent then.",
                )
            names = json.dumps(list(hooks))
            for statement in _FORGET_OTHERS:
                database.execute(statement, (names,))
            for name in hooks:
                database.execute("INSERT OR IGNORE INTO hook (name) VALUES (?)", (name,))

    # ------------------------------------------------------------------ progress

    def begun(self) -> bool:
        """Whether the start of reporting is known, so that past entries stay silent."""
        return bool(self._rows("SELECT 1 FROM begun"))

    def threads(self) -> dict[str, int]:
        """The reported position of each thread."""
        return dict(self._rows("SELECT id, told FROM thread"))

    def findings(self) -> dict[str, tuple[str, int]]:
        """Code and count of each verification failure, by thread; an empty code: it has ended."""
        rows = self._rows("SELECT thread, code, count FROM finding")
        return {thread: (code, count) for thread, code, count in rows}

    def keys(self) -> set[str]:
        """The sent events of expiring keys."""
        return {event for (event,) in self._rows("SELECT event FROM key")}

    def put(self, change: OutboxChange, now: float) -> None:
        """Write events and positions, as one transaction.

        Raises:
            DirectoryUnusable: The file cannot be written.
        """
        with self._failing(), self._lock, self._changing() as database:
            if change.begins:
                database.execute("INSERT INTO begun VALUES (?)", (now,))
            database.executemany(
                "INSERT OR IGNORE INTO waiting (hook, event, id, since) VALUES (?, ?, ?, ?)",
                [
                    (hook, json.dumps(event.as_dict()), event.id, now)
                    for hook, event in change.events
                ],
            )
            database.executemany("REPLACE INTO thread VALUES (?, ?)", change.threads.items())
            database.executemany(
                "REPLACE INTO finding VALUES (?, ?, ?)",
                [(thread, code, count) for thread, (code, count) in change.findings.items()],
            )
            database.execute("DELETE FROM key WHERE expires < ?", (now,))
            database.executemany(
                "REPLACE INTO key VALUES (?, ?)",
                [(event, expires.timestamp()) for event, expires in change.keys.items()],
            )
            for hook in {hook for hook, _ in change.events}:
                _keep_bound(database, hook)

    # ------------------------------------------------------------------ what is to be sent

    def first(self, hook: str) -> Waiting | None:
        """The next event for a hook; None if there is none."""
        rows = self._rows(_FIRST, hook)
        if not rows:
            return None
        number, event, since = rows[0]
        return Waiting(number, ConsoleEvent.from_dict(json.loads(event)), since)

    def delivered(self, hook: str, number: int, now: float) -> None:
        """Record that a hook accepted an event."""
        self._settle(
            "UPDATE hook SET delivered = delivered + 1, delivered_at = ?, error = '' "
            "WHERE name = ?",
            (now, hook),
            number,
        )

    def failed(self, hook: str, number: int, error: str, now: float, *, give_up: bool) -> None:
        """Record why a hook did not accept an event, which is given up or retried."""
        self._settle(
            "UPDATE hook SET dropped = dropped + ?, failed_at = ?, error = ? WHERE name = ?",
            (int(give_up), now, error[:_ERROR_CHARS_MAX], hook),
            number if give_up else None,
        )

    def _settle(self, statement: str, values: tuple[Any, ...], number: int | None) -> None:
        with self._failing(), self._lock:
            if self._closed:
                return  # it is sent again by whoever opens the outbox next
            with self._changing() as database:
                database.execute(statement, values)
                database.execute("DELETE FROM waiting WHERE number = ?", (number,))

    def statuses(self) -> tuple[HookStatus, ...]:
        """The delivery status of every hook."""
        rows = self._rows(
            "SELECT name, delivered, dropped, delivered_at, failed_at, error, "
            "(SELECT count(*) FROM waiting WHERE hook = name) FROM hook ORDER BY name"
        )
        return tuple(
            HookStatus(
                name=name,
                delivered=delivered,
                dropped=dropped,
                delivered_at=_time(delivered_at),
                failed_at=_time(failed_at),
                error=error,
                waiting=waiting,
            )
            for name, delivered, dropped, delivered_at, failed_at, error, waiting in rows
        )

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        with self._lock:
            self._closed = True
            self._database.close()

    # ------------------------------------------------------------------ the file

    def _rows(self, statement: str, *values: object) -> list[Any]:
        with self._failing(), self._lock:
            return [] if self._closed else self._database.execute(statement, values).fetchall()

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        self._database.execute("BEGIN EXCLUSIVE")
        try:
            yield self._database
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as exc:
            if exc.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise DirectoryUnusable(
                    f"{self._path}: another console of this store and namespace has it open",
                    hint="Stop that one: one console of a namespace tells its hooks.",
                ) from exc
            raise DirectoryUnusable(
                f"{self._path}: the outbox of the console cannot be written: {exc}",
                hint="If the disk is full, make room. If the file is damaged, move it away: what "
                "waits in it is not sent then.",
            ) from exc


def _keep_bound(database: sqlite3.Connection, hook: str) -> None:
    """Give up some of the events that wait for a hook, if there are too many.

    It gives up the oldest of the most frequent kind and writer: an attacker who can write very many
    entries suppresses no event of another writer and no alarm.
    """
    (waiting,) = database.execute("SELECT count(*) FROM waiting WHERE hook = ?", (hook,)).fetchone()
    beyond = waiting - WAITING_MAX
    while beyond > 0:
        ((kind, by, count),) = database.execute(_MOST, (hook,)).fetchall()
        dropped = database.execute(_DROP, (hook, kind, by, min(beyond, count))).rowcount
        database.execute("UPDATE hook SET dropped = dropped + ? WHERE name = ?", (dropped, hook))
        beyond -= dropped


def _prepare(path: Path) -> None:
    """Create the file if needed, and ensure that no other user can change it."""
    try:
        make_directory(path.parent, parents=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            require_safe(os.fstat(descriptor), FILE)
        finally:
            os.close(descriptor)
    except Unsafe as exc:
        raise DirectoryUnusable(f"{path}: {exc}", hint=exc.hint(path)) from exc
    except OSError as exc:
        raise DirectoryUnusable(
            f"{path}: expected a file that can be read and written, found {exc.strerror}"
        ) from exc


def _time(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
