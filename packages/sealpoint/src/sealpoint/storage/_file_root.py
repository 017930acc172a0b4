# SPDX-License-Identifier: Apache-2.0
"""The root of a file store: how it is made, recognized, and opened for each call.

The module guarantees that a directory is used as a store only if it holds the mark of one, in a
known version, and that the mark is written last: a process that finds the mark finds everything
else. It refuses to make a store among other files. Nothing stays open between calls, so a fork, or
closing while another OS thread reads, can do no harm; every call opens the root by its path and
compares it with the one that was opened first.

A label is the empty file `labels/<first two digits>/<label>-<thread>-<position>`, all in
hexadecimal digits: it is a hint, and its name is its whole content. The position is the first one
of the append that brought it. The label is on the disk before that entry, and counts once the entry
is there. So both appear at once, and the remains of a crashed append are not a label. The caller
must hold the thread's lock for every write.
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType

from sealpoint.disk import make_directory, permission_denied, sync_directory
from sealpoint.errors import Edited, SchemaUnknown, StorageUnavailable
from sealpoint.storage._file_directory import Directory, Drafts, draft_names
from sealpoint.storage._file_entries import read_record
from sealpoint.storage._file_threads import THREADS, locked, open_thread

LABELS = "labels"
_LABELLED_MAX = 4096
_SHARD_DIGITS = 2
_NAME = re.compile(r"[0-9a-f]{64}-([0-9a-f]{32})-([0-9a-f]{16})", re.ASCII)


def put_label(root: Directory, thread: Directory, label: bytes, seq: int) -> None:
    """Make a label lead to a thread once it has an entry at a position."""
    with _labels(root) as labels, labels.open_or_create(label.hex()[:_SHARD_DIGITS]) as shard:
        start = f"{label.hex()}-{thread.name}-"
        if not any(_counts(thread, position) for _, _, position in _found(shard, start)):
            shard.new_empty_file(f"{start}{seq:016x}")
        # Even if it existed already: a crash may have come before the sync.
        shard.sync()


def drop_label(root: Directory, thread: bytes, label: bytes) -> None:
    """Make a label no longer lead to a thread."""
    shard = _open_shard(root, label, writing=True)
    if shard is not None:
        with shard:
            for name, _, _ in _found(shard, f"{label.hex()}-{thread.hex()}-"):
                shard.remove(name)
            shard.sync()


def labelled_threads(root: Directory, label: bytes) -> list[bytes]:
    """Return the threads that a label leads to, in order.

    Raises:
        Edited: There are more than 4096.
    """
    shard = _open_shard(root, label)
    if shard is None:
        return []
    with shard:
        found = _found(shard, f"{label.hex()}-")
    threads = set()
    for _, thread, position in found:
        directory = None if thread in threads else open_thread(root, thread)
        if directory is not None:
            with directory:
                if _counts(directory, position):
                    threads.add(thread)
    return sorted(threads)


def _counts(thread: Directory, position: int) -> bool:
    return read_record(thread, position) is not None


def _found(shard: Directory, start: str) -> list[tuple[str, bytes, int]]:
    """Return the labels whose names begin with some digits: name, thread and position."""
    found = list(islice(_matching(shard, start), _LABELLED_MAX + 1))
    if len(found) > _LABELLED_MAX:
        raise Edited(f"{shard.path}: a label has more than {_LABELLED_MAX} threads")
    return found


def _matching(shard: Directory, start: str) -> Iterator[tuple[str, bytes, int]]:
    for name in shard.names():
        match = _NAME.fullmatch(name) if name.startswith(start) else None
        if match is not None:
            yield name, bytes.fromhex(match[1]), int(match[2], 16)


def _open_shard(root: Directory, label: bytes, *, writing: bool = False) -> Directory | None:
    with _labels(root) as labels:
        return labels.child(label.hex()[:_SHARD_DIGITS], writing=writing)


def _labels(root: Directory) -> Directory:
    labels = root.child(LABELS)
    if labels is None:
        raise Edited(f"{root.path}/{LABELS}: the directory is missing")
    return labels


SCHEMA_VERSION = 1
_MARK = "sealpoint-store"
_MARK_FORM = "sealpoint file store, version {}\n"
_MARK_BYTES = re.compile(rb"sealpoint file store, version ([1-9][0-9]{0,8})\n")
_MARK_BYTES_MAX = 64


class Failures:
    """Turns failures of the file system into `StorageUnavailable`; use it in `with` blocks."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Do nothing yet."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, PermissionError):
            denied, hint = permission_denied(self._path)
            raise StorageUnavailable(f"store {self._path}: {denied}", hint=hint) from error
        if isinstance(error, OSError):
            raise StorageUnavailable(
                f"store {self._path}: expected the file system to succeed, found {error.strerror}"
            ) from error


class StoreRoot:
    """The root of an existing store.

    Args:
        path: The directory.
        read_only: Change nothing.
        group: The group whose members share it, if they do.

    Raises:
        SchemaUnknown: It is not a store, or has an unknown version.
        DirectoryUnusable: It is not a directory, belongs to another user, or others can write in
            it.
        StorageUnavailable: It does not exist.
    """

    __slots__ = ("_group", "_identity", "_path")

    def __init__(self, path: Path, *, read_only: bool, group: int | None = None) -> None:
        self._path = str(path)
        self._group = group
        with Directory.root(self._path, group) as root:
            self._identity = root.identity
            _require_mark(root, read_only=read_only)

    def open(self) -> Directory:
        """Open the root for one call.

        Raises:
            Edited: Another directory has its name now.
        """
        root = Directory.root(self._path, self._group)
        if root.identity != self._identity:
            root.close()
            raise Edited(
                f"store {self._path}: another directory has taken the place of the one that was "
                "opened",
                hint="If you have exchanged it yourself, open the store again.",
            )
        return root


def create_root(path: Path, wait_seconds_max: float, group: int | None = None) -> None:
    """Make a store in a new or an empty directory, unless it exists already.

    Raises:
        SchemaUnknown: The directory has other content.
        DirectoryUnusable: It is not a directory, belongs to another user, or others can write in
            it.
        StorageUnavailable: It cannot be made.
    """
    try:
        make_directory(path, group)
    except FileNotFoundError as exc:
        raise StorageUnavailable(f"store {path}: there is no directory {path.parent}") from exc
    with locked(lambda: Directory.root(str(path), group), wait_seconds_max) as root:
        if root is None or root.look(_MARK) is not None:
            return
        # A creator that crashed leaves these, and they are empty.
        known = {THREADS, LABELS, *draft_names(root)}
        if not known.issuperset(root.names()) or not _is_empty(root, THREADS, LABELS):
            raise SchemaUnknown(f"store {path}: it is a directory with other files in it")
        sync_directory(path.parent)
        for name in (THREADS, LABELS):
            root.open_or_create(name).close()
        with Drafts(root) as drafts:
            drafts.write(root, _MARK, [_MARK_FORM.format(SCHEMA_VERSION).encode()])


def _is_empty(root: Directory, *names: str) -> bool:
    for name in names:
        child = root.child(name)
        if child is not None:
            with child:
                if next(child.names(), None) is not None:
                    return False
    return True


def _require_mark(root: Directory, *, read_only: bool) -> None:
    file = root.file(_MARK)
    if file is None:
        raise SchemaUnknown(
            f"store {root.path}: expected a Sealpoint store, found no {_MARK} in it"
        )
    with file:
        data = file.read(min(file.size_bytes, _MARK_BYTES_MAX))
        match = _MARK_BYTES.fullmatch(data)
        if match is None:
            raise SchemaUnknown(f"store {root.path}: its {_MARK} is not that of a Sealpoint store")
        if int(match[1]) != SCHEMA_VERSION:
            raise SchemaUnknown(
                f"store {root.path}: expected schema version {SCHEMA_VERSION}, the newest this "
                f"version of Sealpoint knows, found {int(match[1])}"
            )
        if not file.is_durable and not read_only:
            # The maker of the store may have crashed before its name was on the disk.
            root.sync()
