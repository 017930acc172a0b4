# SPDX-License-Identifier: Apache-2.0
"""The connections of a SQLite store, and what becomes of them when the process forks.

It guarantees that no connection is open while the process forks. SQLite keeps in memory which
locks the process holds on a file; a child would inherit that belief and not the locks. Its own
connections would then take none, and the parent, closing, would remove a log that the child still
writes to; or the child would wait for ever for a transaction that only the parent can end. So a
fork waits for the statements under way, closes everything, and both sides open anew when they
next need it. It leaves to its caller to take the locks, the one for writing first.
"""

import os
import sqlite3
import threading
import weakref
from pathlib import Path

from sealpoint.storage._sqlite_file import BoundedConnection, connect, file_identity, sync_log
from sealpoint.storage._sqlite_rows import Purpose


class Handles:
    """The connections of one storage in one process, each with the lock that guards it."""

    __slots__ = (
        *("__weakref__", "_identity", "_path", "_read_only", "_wait_seconds_max"),
        *("pid", "read_lock", "reader", "rows", "write_lock", "writer"),
    )

    def __init__(self, path: Path, *, read_only: bool, wait_seconds_max: float) -> None:
        self._path = path
        self._read_only = read_only
        self._wait_seconds_max = wait_seconds_max
        self.pid = os.getpid()
        self.read_lock = threading.Lock()
        self.write_lock = threading.Lock()
        self._identity = (0, 0)
        self.writer: BoundedConnection | None = None
        self.reader: BoundedConnection | None = None
        # One cursor for all reads: making one each time costs a tenth of a small read.
        self.rows: sqlite3.Cursor | None = None
        with fork_lock():
            try:
                # The reader first: it cannot play back a journal that appears in this moment, and
                # the lock it holds from now on keeps the writer from it (see `_refuse_beside`);
                # so both must be on the same file.
                self.open_reader()
                if not read_only:
                    self.open_writer()
            except BaseException:
                self.close()
                raise
            _open_handles.add(self)

    def open_reader(self) -> tuple[BoundedConnection, sqlite3.Cursor]:
        """Open the connection that reads, if it is not open; the caller holds its lock."""
        if self.reader is None or self.rows is None:
            self._identity = file_identity(self._path)
            self.reader = connect(
                self._path,
                identity=self._identity,
                purpose=Purpose.READ,
                wait_seconds_max=self._wait_seconds_max,
            )
            self.rows = self.reader.cursor()
        return self.reader, self.rows

    def open_writer(self) -> BoundedConnection:
        """Open the connection that writes; the caller holds its lock, and the reader is open."""
        sync_log(self._path)
        self.writer = connect(
            self._path,
            identity=self._identity,
            purpose=Purpose.WRITE,
            wait_seconds_max=self._wait_seconds_max,
        )
        return self.writer

    def open_another(self, purpose: Purpose) -> BoundedConnection:
        """Open one more, for a while; the caller holds the writer's lock and closes it before.

        The writer is open, too: it is the last to be closed.
        """
        return connect(
            self._path,
            identity=self._identity,
            purpose=purpose,
            wait_seconds_max=self._wait_seconds_max,
        )

    def close(self) -> None:
        """Close the writer last: the last connection to a file that may write folds its log in."""
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
            self.writer = None


_open_handles: "weakref.WeakSet[Handles]" = weakref.WeakSet()
_suspended: list[Handles] = []
_inherited: list[Handles] = []
_fork_lock = threading.RLock()


def fork_lock() -> threading.RLock:
    """Held while a file is opened: no fork happens meanwhile."""
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
    """Leave alone what was inherited; the child opens handles of its own.

    Whatever forks without telling Python first leaves connections open here: they must neither
    be used nor closed nor collected, for a child would act on locks that it does not hold.
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
