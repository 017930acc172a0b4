# SPDX-License-Identifier: Apache-2.0
"""The directories of threads: found, listed, locked, made, and cleaned up.

A thread is stored in `threads/<first two digits>/<thread>`, with its id in hexadecimal digits, so
that a name chosen by a user never becomes a name on the disk. The module guarantees that at most
one writer, of all processes, is in a `locked_thread` block of one thread, and that it gets the
directory that all other processes read.

The lock is the operating system's lock on the open directory itself (`flock`). There is no file
that could be deleted or replaced, and when a process ends, its locks end with it. A fork copies
open directories, and a copy keeps the lock alive when the holder is killed; so a child closes its
copies at once.
"""

import heapq
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TypeVar

from sealpoint.disk import wait_for_lock
from sealpoint.errors import Edited, StorageUnavailable
from sealpoint.storage._file_blobs import remove_empty_shards
from sealpoint.storage._file_directory import Directory, draft_names

try:
    import fcntl
except ImportError:  # pragma: no cover - only where there is no POSIX
    fcntl = None  # type: ignore[assignment]


_T = TypeVar("_T")

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
        opened: Opens the directory, newly for each lock; None if it does not exist.
        wait_seconds_max: How long to wait for another holder.

    Raises:
        StorageUnavailable: Another holder keeps it for longer.
    """
    # No fork between opening and recording: the child would not know what to close.
    with _fork_lock:
        directory = opened()
        if directory is not None:
            _held.add(directory.descriptor)
    if directory is None:
        yield None
        return
    try:
        if not wait_for_lock(directory.descriptor, wait_seconds_max):
            raise StorageUnavailable(
                f"{directory.path}: another writer held its lock for {wait_seconds_max:g} s"
            )
        try:
            yield directory
        finally:
            # Not by closing alone: a process forked without Python may have a copy.
            fcntl.flock(directory.descriptor, fcntl.LOCK_UN)
    finally:
        with _fork_lock:
            _held.discard(directory.descriptor)
            os.close(directory.descriptor)


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


THREADS = "threads"
_SHARD_DIGITS = 2
_SHARDS = tuple(f"{number:02x}" for number in range(256))
_NAME = re.compile(r"[0-9a-f]{32}", re.ASCII)
# Directories of groups and blobs; positions have 16 digits at most.
_STEP = re.compile(r"[0-9a-f]{1,2}|blobs", re.ASCII)
_DEPTH_MAX = 17
_LISTED_MAX = 1024
_BEYOND = "g"
_TRIES_MAX = 100
# A million drafts; an attacker who makes them faster than they are removed must not block it
# forever.
_ROUNDS_MAX = 1024


def open_thread(root: Directory, thread: bytes) -> Directory | None:
    """Open the directory of a thread for reading, or return None if it does not exist."""
    shard = _open_shard(root, thread)
    if shard is None:
        return None
    with shard:
        return shard.child(thread.hex())


@contextmanager
def create_thread(root: Directory, thread: bytes, wait_seconds_max: float) -> Iterator[Directory]:
    """Open the directory of a thread, made if it does not exist, and hold its lock.

    Raises:
        StorageUnavailable: Another writer keeps the lock for longer than `wait_seconds_max`.
    """
    name = thread.hex()
    with _threads(root) as threads:
        shard = threads.open_or_create(name[:_SHARD_DIGITS])
    with shard:
        for _ in range(_TRIES_MAX):
            with locked(partial(shard.child, name), wait_seconds_max) as directory:
                if directory is not None and _is_ready(directory, shard, name):
                    yield directory
                    return
            shard.open_or_create(name).close()
    raise StorageUnavailable(f"thread {name}: expected its directory to stay, found it removed")


@contextmanager
def locked_thread(
    root: Directory, thread: bytes, wait_seconds_max: float
) -> Iterator[Directory | None]:
    """Open the directory of a thread, or None if it does not exist, and hold its lock.

    Raises:
        StorageUnavailable: Another writer keeps the lock for longer than `wait_seconds_max`.
    """
    directory = open_thread(root, thread)
    if directory is None:
        yield None
        return
    directory.close()
    # It may be removed at this moment, because it is empty; then it is made again, and is empty.
    with create_thread(root, thread, wait_seconds_max) as made:
        yield made


def _is_ready(directory: Directory, shard: Directory, name: str) -> bool:
    """Whether a locked directory is on the disk and is the one that all processes read.

    `compact` may have removed an empty one before the lock was ours.
    """
    if not directory.is_durable:
        return False
    try:
        found = os.stat(name, dir_fd=shard.descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == directory.identity


def threads_after(
    root: Directory, after: str, look: Callable[[Directory], _T | None]
) -> tuple[list[tuple[bytes, _T]], str | None]:
    """Return some threads that have a directory, in order, each with the result of `look`.

    Args:
        root: The root of the store.
        after: Where to begin: "", or the second result of the previous call.
        look: Inspects the directory of a thread; a thread for which it returns None is left out.

    Returns:
        The threads, and where the next call begins, or None when there are no more.
    """
    with _threads(root) as threads:
        for digits in _SHARDS:
            shard = threads.child(digits) if digits + _BEYOND > after else None
            if shard is None:
                continue
            with shard:
                names = heapq.nsmallest(
                    _LISTED_MAX, (name for name in _names(shard, digits) if name > after)
                )
                if names:
                    end = names[-1] if len(names) == _LISTED_MAX else digits + _BEYOND
                    looks = ((bytes.fromhex(name), _look(shard, name, look)) for name in names)
                    return [(name, each) for name, each in looks if each is not None], end
    return [], None


def _names(shard: Directory, digits: str) -> Iterator[str]:
    return (name for name in shard.names() if name.startswith(digits) and _NAME.fullmatch(name))


def _look(shard: Directory, name: str, look: Callable[[Directory], _T | None]) -> _T | None:
    directory = shard.child(name)
    if directory is None:
        return None
    with directory:
        return look(directory)


def compact_thread(root: Directory, thread: bytes, wait_seconds_max: float) -> None:
    """Remove the remains of crashes and drops in a thread's directory, and the directory if empty.

    Raises:
        StorageUnavailable: Another process makes drafts as fast as they are removed.
    """
    with locked_thread(root, thread, wait_seconds_max) as directory:
        if directory is None:
            return
        names = list(islice(draft_names(directory), _LISTED_MAX))
        if names:
            # A draft may have its final name too, which need not be on the disk: see `Drafts`.
            _sync_below(directory)
        for _ in range(_ROUNDS_MAX):
            if not names:
                break
            for name in names:
                directory.remove(name)
            directory.sync()
            names = list(islice(draft_names(directory), _LISTED_MAX))
        else:
            raise StorageUnavailable(
                f"{directory.path}: what crashes left there was removed, and more of it keeps "
                "coming",
                hint="Find out who writes there besides Sealpoint, then repeat the call.",
            )
        remove_empty_shards(directory)
        shard = _open_shard(root, thread)
        if shard is not None:
            with shard:
                shard.remove_empty(thread.hex())


def _sync_below(directory: Directory, depth: int = 0) -> None:
    """Wait until the names in the directories of a thread are on the disk."""
    for name in directory.names():
        child = directory.child(name) if _STEP.fullmatch(name) and depth < _DEPTH_MAX else None
        if child is not None:
            with child:
                child.sync()
                _sync_below(child, depth + 1)


def _open_shard(root: Directory, thread: bytes) -> Directory | None:
    with _threads(root) as threads:
        return threads.child(thread.hex()[:_SHARD_DIGITS])


def _threads(root: Directory) -> Directory:
    threads = root.child(THREADS)
    if threads is None:
        raise Edited(f"{root.path}/{THREADS}: the directory is missing")
    return threads
