# SPDX-License-Identifier: Apache-2.0
"""Which threads have a run that lives on this machine: a file for each, which its process locks.

The operating system releases the lock when the process ends, however it ends, so nothing has to be
renewed. The file exists from the beginning of a run to its end. A file that nobody has locked is
that of a run whose process ended first; an empty one is that of a run that never began.

A file is removed while it is locked. A process that opened it before that finds a file without a
name, and tries again; so two processes never have one thread. Nothing waits for the disk: after a
power cut no run lives.

A lock belongs to what was opened, and a child made by fork shares that with its parent. So the
child closes the files of its parent's runs, and nothing is opened for a run while a fork happens.
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
"""How often and how long to wait for another process that is between two steps: a new file is
empty, and not yet of its group, for microseconds, and `holder` locks a file for as long."""
_BYTES_MAX = 4096
_UNKNOWN = Holder("", datetime.min.replace(tzinfo=UTC), living=False)
_BEING_WRITTEN = msgspec.structs.replace(_UNKNOWN, living=True)
_decode = msgspec.json.Decoder(Holder).decode

_holds: "set[_FileHold]" = set()
"""All of this process, also those that nobody refers to any more: they last until it ends."""
_holds_lock = threading.RLock()
"""The collector may end a run of the very OS thread that has it."""


class RunFiles:
    """The runs of a store in a directory of this machine.

    Args:
        directory: Where it is.
        opened: Opens the directory, checked, and closes it.
        group: The group whose members share it; None: it is this user's own.
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
        """Let a run have a name; returns the hold, or who has it.

        Args:
            name: The name.
            holder: Whose run it is.
            instead: Take the name from whoever has it: the file of that run loses it.

        Raises:
            OSError: The file cannot be made or written.
            DirectoryUnusable: Directory or file is a link, of another user or writable for others.
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
        """Who has a name, or had it when its process ended; None: nobody.

        Raises:
            OSError: The file cannot be read.
            DirectoryUnusable: Directory or file is a link, of another user or writable for others.
        """
        if not os.path.lexists(self._place + name) and self._directory.is_dir():
            return None  # nearly always: no run is under way
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
        """Open or make a file and lock it; None: it was removed meanwhile, or somebody looks."""
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
                # What lets others read it as well is no run.
                looked_at = _lock(descriptor, fcntl.LOCK_SH)
                return None if looked_at else _read(descriptor, living=True)
            status = os.fstat(descriptor)
            if not status.st_nlink:
                return None
            # In this order: an empty file would be that of a run which never began.
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
        """Who has a file locked, or wrote it."""
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
    """That a run of this process has a thread."""

    def __init__(self, descriptor: int, within: int, name: str, *, left: bool) -> None:
        self.left = left
        self._descriptor = descriptor
        self._within = within
        self._name = name

    def end(self, *, begun: bool = True) -> None:
        """Remove the file, then release it; a file that cannot be removed is released all the same.

        Then it looks as if the process had ended, and the next run may have the thread; as it does
        for a run that has not begun.
        """
        with _holds_lock:
            descriptor, self._descriptor = self._descriptor, -1
            _holds.discard(self)
        if descriptor < 0:
            return
        try:
            # Somebody may have removed it by hand; then the name is another run's by now.
            if begun and os.fstat(descriptor).st_nlink:
                with suppress(OSError):
                    os.unlink(self._name, dir_fd=self._within)
        finally:
            os.close(self._within)
            _release(descriptor)

    def start_in_child(self) -> None:
        """After a fork: the run is the parent's, and ends with it."""
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
    """Close a file; a child that was made meanwhile and has it open as well keeps no lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _read(descriptor: int, *, living: bool) -> Holder:
    """Who wrote a file; of one that is no run's, or is being written, nobody knows."""
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
    # The lock is held over the fork, so that the child finds the set whole.
    os.register_at_fork(
        before=_holds_lock.acquire,
        after_in_parent=_holds_lock.release,
        after_in_child=_start_in_child,
    )
