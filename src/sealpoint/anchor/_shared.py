# SPDX-License-Identifier: Apache-2.0
"""The file of a local anchor as several processes see it: found, locked, made and made larger.

At most one process, and one OS thread in it, is between `locked` and `unlock`, and the file it
gets is the one that every other process reads. A file that was removed or replaced by hand is
`AnchorUnavailable`: what would be written to it, nobody else would read. `OSError` and
`DirectoryUnusable` are left to `local.py`, which also tells how growth keeps readers right.
"""

import os
import threading
import time
import weakref
from pathlib import Path

from sealpoint.anchor._directory import make_directory, opened_directory, publish
from sealpoint.anchor._slots import KEY_BYTES, SUPERSEDED_AT, Seal
from sealpoint.anchor._table import Table, open_table, write_table
from sealpoint.errors import AnchorUnavailable, DirectoryUnusable, UsageError

try:
    import fcntl
except ImportError:  # pragma: no cover - only where there is no POSIX
    fcntl = None  # type: ignore[assignment]

__all__ = ["SharedFile"]

_NAME = "anchor.slots"
_GROWN = "anchor.grown"
_LOCK_WAIT_S = 30.0
_LOCK_PAUSE_S = 0.00002
_LOCK_PAUSE_MAX_S = 0.001
_REOPEN_MAX = 100

_open_files: "weakref.WeakSet[SharedFile]" = weakref.WeakSet()
_open_files_lock = threading.Lock()


class SharedFile:
    """A handle on the file; `mutex` is to be held around every method but the constructor.

    Args:
        directory: Where the file is or will be.
        seal: Makes and checks its codes.
        read_only: Open for reading only; locks then keep writers away and nothing else.
        group: The group whose members share the file; None: it is this user's own.

    Raises:
        AnchorUnavailable: This system has no POSIX file locks.
    """

    def __init__(
        self, directory: Path, seal: Seal, *, read_only: bool, group: int | None = None
    ) -> None:
        if fcntl is None:
            raise AnchorUnavailable(
                "local anchor: expected POSIX file locks, found a system without the fcntl module"
            )
        self.mutex = threading.Lock()
        self.table: Table | None = None
        """The file as last opened: readers may use it without the mutex unless superseded."""
        self._directory = directory
        self._seal = seal
        self._read_only = read_only
        self._group = group
        self._lock_kind = (fcntl.LOCK_SH if read_only else fcntl.LOCK_EX) | fcntl.LOCK_NB
        self._seen = False
        self._closed = False
        with _open_files_lock:
            _open_files.add(self)

    def current(self) -> Table | None:
        """The file that has the name now, opened if need be, or None while there never was one."""
        self.require_open()
        for _ in range(_REOPEN_MAX):
            table = self._opened()
            if table is None or not table.superseded or self._has_the_name(table):
                return table
            self._release()
        raise self._vanished()

    def locked(self) -> Table | None:
        """The current file with its lock held, or None while there never was one."""
        self.require_open()
        for _ in range(_REOPEN_MAX):
            table = self._opened()
            if table is None:
                return None
            self._wait_for_lock(table.descriptor)
            removed = os.fstat(table.descriptor).st_nlink == 0
            if not table.map[SUPERSEDED_AT]:
                if removed:
                    # What is written to it now, no other process will ever read.
                    raise self._vanished()
                return table
            if not removed and self._has_the_name(table):
                # Growth holds the lock from mark to rename: this one ended between them.
                if not self._read_only:
                    table.mark(superseded=False)
                return table
            self._release()
        raise self._vanished()

    def unlock(self) -> None:
        """Let the next writer in; without a lock held it does nothing."""
        if self.table is not None:
            fcntl.flock(self.table.descriptor, fcntl.LOCK_UN)

    def make(self) -> None:
        """Make an empty file unless there is one, and open it."""
        make_directory(self._directory, self._group)
        temporary = f"anchor.{os.urandom(8).hex()}.new"
        try:
            with opened_directory(self._directory, self._group) as within:
                write_table(within, temporary, self._seal, group=self._group)
                publish(within, temporary, _NAME, replace=False)
        except FileExistsError:
            pass  # Another process was faster; its file is as good.
        except OSError as exc:
            message = f"anchor directory {self._directory}: expected to make a file, found {exc}"
            raise DirectoryUnusable(message) from exc
        self._opened()

    def make_locked(self) -> Table:
        """Make an empty file unless there is one, and hold its lock."""
        self.make()
        table = self.locked()
        if table is None:
            raise self._vanished()
        return table

    def grow(self, old: Table) -> Table:
        """A table with room for one more slot, its lock held like the lock of the old one."""
        # (1) Moving a slot whose key is damaged would hide it from its thread for ever.
        used = 0
        for offset in old.offsets():
            old.newest(old.raw(offset)[:KEY_BYTES], offset)
            used += 1
        old.count(used)
        if not old.crowded:
            return old
        with opened_directory(self._directory, self._group) as within:
            # (2) The larger file, complete and locked before anybody can see it.
            write_table(within, _GROWN, self._seal, grown_from=old, group=self._group)
            new = open_table(
                self._directory, within, _GROWN, self._seal, read_only=False, group=self._group
            )
            try:
                self._wait_for_lock(new.descriptor)
                # (3) From here on every reader asks which file has the name.
                old.mark(superseded=True)
                # (4) and (5) Renamed, and the directory on the disk.
                publish(within, _GROWN, _NAME, replace=True)
            except BaseException:
                _let_go(new)
                raise
        self._release()
        self.table = new
        return new

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        with self.mutex:
            self._closed = True
            self._release()
        with _open_files_lock:
            _open_files.discard(self)

    def require_open(self) -> None:
        """Refuse to go on after `close`."""
        if self._closed:
            raise UsageError(f"anchor in {self._directory}: expected it open, found it closed")

    def start_in_child(self) -> None:
        """After a fork: a lock shared with the parent is none against it, so open anew."""
        self.mutex = threading.Lock()
        table, self.table = self.table, None
        if table is not None:
            os.close(table.descriptor)

    def _opened(self) -> Table | None:
        if self.table is None:
            try:
                with opened_directory(self._directory, self._group) as within:
                    self.table = open_table(
                        self._directory,
                        within,
                        _NAME,
                        self._seal,
                        read_only=self._read_only,
                        group=self._group,
                    )
                    if not self._read_only:
                        # Whoever gave the file its name may have died before that was on the disk.
                        os.fsync(within)
            except FileNotFoundError as exc:
                if self._seen:
                    raise self._vanished() from exc
                return None
            self._seen = True
        return self.table

    def _wait_for_lock(self, descriptor: int) -> None:
        deadline = pause = 0.0
        while True:
            try:
                fcntl.flock(descriptor, self._lock_kind)
                return
            except BlockingIOError as exc:
                now = time.monotonic()
                deadline = deadline or now + _LOCK_WAIT_S
                if now > deadline:
                    raise AnchorUnavailable(
                        f"anchor in {self._directory}: expected its lock within "
                        f"{_LOCK_WAIT_S:.0f} s, found another process holding it"
                    ) from exc
            pause = min(pause + _LOCK_PAUSE_S, _LOCK_PAUSE_MAX_S)
            time.sleep(pause)

    def _release(self) -> None:
        table, self.table = self.table, None
        if table is not None:
            _let_go(table)

    def _has_the_name(self, table: Table) -> bool:
        try:
            status = (self._directory / _NAME).stat(follow_symlinks=False)
        except FileNotFoundError as exc:
            raise self._vanished() from exc
        return (status.st_dev, status.st_ino) == table.identity

    def _vanished(self) -> AnchorUnavailable:
        return AnchorUnavailable(
            f"anchor in {self._directory}: expected the file that was opened, "
            "found it removed or replaced",
            hint="Bring the anchor's directory back, then open the store again.",
        )


def _let_go(table: Table) -> None:
    # The map has a descriptor of its own, which would keep the lock; and a reader may still be
    # using the map, so it goes when the last reader does.
    fcntl.flock(table.descriptor, fcntl.LOCK_UN)
    os.close(table.descriptor)


def _start_in_child() -> None:
    for file in _open_files:
        file.start_in_child()
    _open_files_lock.release()


if fcntl is not None:
    # The lock is held over the fork, so that the child finds the set whole.
    os.register_at_fork(
        before=_open_files_lock.acquire,
        after_in_parent=_open_files_lock.release,
        after_in_child=_start_in_child,
    )
