# SPDX-License-Identifier: Apache-2.0
"""The lock of a directory, which one writer at a time holds: of all OS threads and processes.

It is the operating system's lock on the open directory itself (`flock`). There is no file that
could be deleted or replaced, and when a process ends, its locks end with it. A fork copies open
directories, and a copy keeps the lock alive when the holder is killed; so a child closes those it
was given at once. It leaves to its caller whether the directory is still the one under its name.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sealpoint.errors import StorageUnavailable
from sealpoint.storage._file_directory import Directory

try:
    import fcntl
except ImportError:  # pragma: no cover - only where there is no POSIX
    fcntl = None  # type: ignore[assignment]

__all__ = ["has_locks", "locked"]

_PAUSE_S = 0.00005
_PAUSE_MAX_S = 0.005

_held: set[int] = set()
_fork_lock = threading.RLock()


def has_locks() -> bool:
    """Whether this system has the locks that a file store needs."""
    return fcntl is not None


@contextmanager
def locked(
    opened: Callable[[], Directory | None], wait_seconds_max: float
) -> Iterator[Directory | None]:
    """Open a directory and hold its lock.

    Args:
        opened: Opens the directory, anew for each lock; None where there is none.
        wait_seconds_max: How long to wait for another holder.

    Raises:
        StorageUnavailable: Another holder keeps it for longer.
    """
    # No fork between opening and noting: the child would not know what to close.
    with _fork_lock:
        directory = opened()
        if directory is not None:
            _held.add(directory.descriptor)
    if directory is None:
        yield None
        return
    try:
        _wait(directory, wait_seconds_max)
        try:
            yield directory
        finally:
            # Not by closing alone: a process that was forked elsewhere may have a copy.
            fcntl.flock(directory.descriptor, fcntl.LOCK_UN)
    finally:
        with _fork_lock:
            _held.discard(directory.descriptor)
            os.close(directory.descriptor)


def _wait(directory: Directory, wait_seconds_max: float) -> None:
    deadline = pause = 0.0
    while True:
        try:
            fcntl.flock(directory.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as exc:
            now = time.monotonic()
            deadline = deadline or now + wait_seconds_max
            if now > deadline:
                raise StorageUnavailable(
                    f"{directory.path}: expected its lock within {wait_seconds_max:g} s, "
                    "found another writer holding it"
                ) from exc
        pause = min(pause * 2 or _PAUSE_S, _PAUSE_MAX_S)
        time.sleep(pause)


def _before_fork() -> None:
    _fork_lock.acquire()


def _after_fork_in_parent() -> None:
    _fork_lock.release()


def _after_fork_in_child() -> None:
    global _fork_lock  # noqa: PLW0603 # a lock of the parent's, which knows other threads
    _fork_lock = threading.RLock()
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
