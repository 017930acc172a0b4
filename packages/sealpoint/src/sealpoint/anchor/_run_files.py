# SPDX-License-Identifier: Apache-2.0
"""The threads that have a live run on this machine: a file for each, locked by its process.

The operating system releases the lock when the process ends, in whatever way, so no renewal is
needed. The file exists from the beginning of a run to its end. An unlocked file belongs to a run
whose process ended first; an empty file belongs to a run that never began.

A process removes a file while it holds the lock. Another process that opened the file before that
finds that it has no name any more, and tries again; so two processes never hold one thread. Nothing
is synced to the disk: after a power failure no run is alive.

A lock belongs to the open file description, which a child process made by fork shares with its
parent. So the child closes the files of its parent's runs, and no file of a run is opened during a
fork.
"""

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep

import msgspec

from sealpoint import disk
from sealpoint.anchor._contract import Hold, Holder
from sealpoint.disk import FILE, Unsafe, refusing
from sealpoint.errors import DirectoryUnusable

try:
    import fcntl
except ImportError:  # pragma: no cover - only where there is no POSIX
    fcntl = None  # type: ignore[assignment]

_PREFIX = "run."
_LOOKS = 5
_LOOK_S = 0.001
_WAIT_S = 5.0
"""How often and how long to wait for another process that is between two steps. A new file is
empty, and not yet in its group, for microseconds; `holder` locks a file for about as long."""
_BYTES_MAX = 4096
_UNKNOWN = Holder("", datetime.min.replace(tzinfo=UTC), living=False)
_BEING_WRITTEN = msgspec.structs.replace(_UNKNOWN, living=True)
_decode = msgspec.json.Decoder(Holder).decode

_holds: "set[_FileHold]" = set()
"""Every hold of this process: one without other references lasts until the process ends."""
_holds_lock = threading.RLock()
"""Reentrant: the garbage collector may end a run in the OS thread that holds this lock."""


class RunFiles:
    """The runs of a store, in a directory of this machine.

    Args:
        directory: The directory.
        opened: Opens the directory, checks it, and closes it.
        group: The group that shares it; None: it belongs to this user alone.
    """

    def __init__(
        self,
        directory: Path,
        opened: Callable[[], AbstractContextManager[int]],
        group: int | None,
    ) -> None:
        self._directory = directory
        self._place = os.path.join(directory, _PREFIX)  # noqa: PTH118 - paths cost too much here
        self._opened = opened
        self._group = group

    def hold(self, name: str, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Give a name to a run; return the hold, or the current holder.

        Args:
            name: The name.
            holder: The holder of the run.
            instead: Take the name from its current holder, whose file loses it.

        Raises:
            OSError: The file cannot be created or written.
            DirectoryUnusable: Directory or file is a link, belongs to another user, or others can
                write it.
        """
        data = msgspec.json.encode(holder)
        looks_left, deadline = _LOOKS, monotonic() + _WAIT_S
        with refusing(DirectoryUnusable, self._directory):
            while True:
                try:
                    with self._opened() as within, _holds_lock:
                        found = self._try(_PREFIX + name, data, within)
                        if instead and isinstance(found, Holder):
                            os.unlink(_PREFIX + name, dir_fd=within)
                            continue
                except (PermissionError, Unsafe):
                    looks_left -= 1
                    if not looks_left:
                        raise
                else:
                    if isinstance(found, _FileHold):
                        return found
                    if found is not None:
                        looks_left -= 1
                        if found != _BEING_WRITTEN or not looks_left:
                            return found
                    elif monotonic() > deadline:
                        raise TimeoutError(f"readers held the lock of a run for {_WAIT_S:g} s")
                sleep(_LOOK_S)

    def holder(self, name: str) -> Holder | None:
        """Return the holder of a name, also if its process has ended; None: there is none.

        Raises:
            OSError: The file cannot be read.
            DirectoryUnusable: Directory or file is a link, belongs to another user, or others can
                write it.
        """
        if not os.path.lexists(self._place + name) and self._directory.is_dir():
            return None  # the usual case: no run is in progress
        looks_left = _LOOKS
        with refusing(DirectoryUnusable, self._directory):
            while True:
                looks_left -= 1
                try:
                    found = self._look(_PREFIX + name)
                except (PermissionError, Unsafe):
                    if not looks_left:
                        raise
                else:
                    if found != _BEING_WRITTEN or not looks_left:
                        return found
                sleep(_LOOK_S)

    def _try(self, name: str, data: bytes, within: int) -> "_FileHold | Holder | None":
        """Open or create a file and lock it; None: it was removed, or another process reads it."""
        try:
            descriptor = disk.new_file(name, within=within, group=self._group)
        except FileExistsError:
            try:
                descriptor, _ = disk.open_safe(
                    name, FILE, within=within, group=self._group, writable=True
                )
            except FileNotFoundError:
                return None
        try:
            if not _lock(descriptor, fcntl.LOCK_EX):
                # If a shared lock is possible, the other lock is that of a reader and not of a run.
                looked_at = _lock(descriptor, fcntl.LOCK_SH)
                return None if looked_at else _read(descriptor, living=True)
            status = os.fstat(descriptor)
            if not status.st_nlink:
                return None
            # In this order: an empty file would belong to a run that never began.
            os.pwrite(descriptor, data, 0)
            os.ftruncate(descriptor, len(data))
            hold = _FileHold(descriptor, os.dup(within), name, left=bool(status.st_size))
            _holds.add(hold)
            descriptor = -1
            return hold
        finally:
            if descriptor >= 0:
                _release(descriptor)

    def _look(self, name: str) -> Holder | None:
        """Return the process that has a file locked, or that wrote it."""
        with self._opened() as within:
            try:
                descriptor, _ = disk.open_safe(name, FILE, within=within, group=self._group)
            except FileNotFoundError:
                return None
        try:
            living = not _lock(descriptor, fcntl.LOCK_SH)
            status = os.fstat(descriptor)
            if not living and not (status.st_nlink and status.st_size):
                return None
            return _read(descriptor, living=living)
        finally:
            _release(descriptor)


class _FileHold:
    """The hold of a run of this process."""

    def __init__(self, descriptor: int, within: int, name: str, *, left: bool) -> None:
        self.left = left
        self._descriptor = descriptor
        self._within = within
        self._name = name

    def end(self, *, begun: bool = True) -> None:
        """Remove the file, then release it; if it cannot be removed, release it all the same.

        A file that stays looks as if the process had ended, and the next run may have the thread.
        The same applies to a run that has not begun.
        """
        with _holds_lock:
            descriptor, self._descriptor = self._descriptor, -1
            _holds.discard(self)
        if descriptor < 0:
            return
        try:
            # If someone removed the file by hand, the name may already belong to another run.
            if begun and os.fstat(descriptor).st_nlink:
                with suppress(OSError):
                    os.unlink(self._name, dir_fd=self._within)
        finally:
            os.close(self._within)
            _release(descriptor)

    def start_in_child(self) -> None:
        """Close the files after a fork: the run belongs to the parent."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
        os.close(self._within)


def _lock(descriptor: int, kind: int) -> bool:
    """Take a lock if it is free."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _release(descriptor: int) -> None:
    """Unlock and close a file; a child process that inherited it then has no lock either."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _read(descriptor: int, *, living: bool) -> Holder:
    """Return the holder that a file names; unknown for a foreign or half-written file."""
    try:
        found = _decode(os.pread(descriptor, _BYTES_MAX, 0))
    except msgspec.MsgspecError:
        found = _UNKNOWN
    return msgspec.structs.replace(found, living=living)


def _start_in_child() -> None:
    for hold in _holds:
        hold.start_in_child()
    _holds.clear()
    _holds_lock.release()


if fcntl is not None:
    # Hold the lock across the fork, so that the child finds the set consistent.
    os.register_at_fork(
        before=_holds_lock.acquire,
        after_in_parent=_holds_lock.release,
        after_in_child=_start_in_child,
    )
