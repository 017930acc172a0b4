# SPDX-License-Identifier: Apache-2.0
"""Which threads have a run that lives on this machine: a file for each, which its process locks.

The operating system lets go of the lock when the process ends, however it ends, so that nothing has
to be renewed. The file lies there from the beginning of a run to its end. One that lies there and
nobody has locked is that of a run whose process ended first.

A file is removed while it is locked. Whoever has waited for a lock meanwhile finds a file without a
name, and begins anew; so two never have one thread. Nothing is waited for to reach the disk: after
a power cut no run lives.
"""

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from time import sleep

import msgspec

from sealpoint import _disk
from sealpoint._disk import FILE
from sealpoint.anchor._contract import Hold, Holder

try:
    import fcntl
except ImportError:  # pragma: no cover - only where there is no POSIX
    fcntl = None  # type: ignore[assignment]

_PREFIX = "run."
_LOOKS = 4
_LOOK_S = 0.001
"""Who only looks has the lock for microseconds: that is no run."""
_BYTES_MAX = 4096
_UNKNOWN = Holder("", datetime.min.replace(tzinfo=UTC), living=False)
_decode = msgspec.json.Decoder(Holder).decode

_holds: "weakref.WeakSet[_FileHold]" = weakref.WeakSet()
_holds_lock = threading.Lock()


class RunFiles:
    """The runs of a store in a directory of this machine.

    Args:
        opened: Opens the directory, checked, and closes it.
        group: The group whose members share it; None: it is this user's own.
    """

    def __init__(
        self, opened: Callable[[], AbstractContextManager[int]], group: int | None
    ) -> None:
        self._opened = opened
        self._group = group

    def hold(self, name: str, holder: Holder) -> Hold | Holder:
        """Let a run have a name; returns the hold, or who has it."""
        with self._opened() as within:
            looks = 0
            while True:
                descriptor = self._made(_PREFIX + name, within)
                try:
                    if not _lock(descriptor, fcntl.LOCK_EX):
                        looks += 1
                        if looks == _LOOKS:
                            return _read(descriptor, living=True)
                        sleep(_LOOK_S)
                        continue
                    if not os.fstat(descriptor).st_nlink:
                        continue  # its run ended just now
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, msgspec.json.encode(holder), 0)
                    hold = _FileHold(descriptor, _PREFIX + name, self._opened)
                    descriptor = -1
                    return hold
                finally:
                    if descriptor >= 0:
                        os.close(descriptor)

    def holder(self, name: str) -> Holder | None:
        """Who has a name, or had it when its process ended; None: nobody."""
        try:
            with self._opened() as within:
                descriptor, _ = _disk.open_safe(
                    _PREFIX + name, FILE, within=within, group=self._group
                )
        except FileNotFoundError:
            return None
        try:
            living = not _lock(descriptor, fcntl.LOCK_SH)
            if not living and not os.fstat(descriptor).st_nlink:
                return None
            return _read(descriptor, living=living)
        finally:
            os.close(descriptor)

    def _made(self, name: str, within: int) -> int:
        """The file of a name, opened; made if there is none."""
        with suppress(FileExistsError):
            return _disk.new_file(name, within=within, group=self._group)
        with suppress(FileNotFoundError):  # it was removed just now
            return _disk.open_safe(name, FILE, within=within, group=self._group, writable=True)[0]
        return self._made(name, within)


class _FileHold:
    """That a run of this process has a thread."""

    def __init__(
        self, descriptor: int, name: str, opened: Callable[[], AbstractContextManager[int]]
    ) -> None:
        self._descriptor = descriptor
        self._name = name
        self._opened = opened
        with _holds_lock:
            _holds.add(self)

    def end(self) -> None:
        """Remove the file, then let go of it."""
        with _holds_lock:
            descriptor, self._descriptor = self._descriptor, -1
            _holds.discard(self)
        if descriptor < 0:
            return
        try:
            with self._opened() as within:
                os.unlink(self._name, dir_fd=within)
        finally:
            os.close(descriptor)

    def start_in_child(self) -> None:
        """After a fork: the run is the parent's, and ends with it."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    """Take a lock if it is free."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int, *, living: bool) -> Holder:
    """Who wrote a file; one that was being written says nothing yet."""
    try:
        found = _decode(os.pread(descriptor, _BYTES_MAX, 0))
    except msgspec.MsgspecError:
        found = _UNKNOWN
    return msgspec.structs.replace(found, living=living)


def _start_in_child() -> None:
    for hold in list(_holds):
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
