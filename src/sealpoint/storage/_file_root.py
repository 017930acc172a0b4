# SPDX-License-Identifier: Apache-2.0
"""The root of a file store: how it is made, recognised, and opened for each call.

It guarantees that a directory is taken for a store only if it holds the mark of one, in a version
that is known, and that the mark comes last when a store is made: whoever finds it finds all else.
It refuses to make a store among other files. Nothing stays open between calls, so there is
nothing that a fork, or closing while another OS thread reads, could hurt; every call opens the
root by its path and compares it with the one that was opened first.
"""

import os
import re
import stat
from pathlib import Path
from types import TracebackType

from sealpoint._directories import make_directory
from sealpoint.errors import Edited, SchemaUnknown, StorageUnavailable
from sealpoint.storage._file_directory import Directory, sync
from sealpoint.storage._file_drafts import Drafts, draft_names
from sealpoint.storage._file_labels import LABELS
from sealpoint.storage._file_lock import locked
from sealpoint.storage._file_threads import THREADS

__all__ = ["SCHEMA_VERSION", "Failures", "Root", "create_root"]

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
            raise self._denied() from error
        if isinstance(error, OSError):
            raise StorageUnavailable(
                f"store {self._path}: expected the file system to succeed, found {error.strerror}"
            ) from error

    def _denied(self) -> StorageUnavailable:
        try:
            found = self._path.stat()
            mode = stat.S_IMODE(found.st_mode)
            whose = f"of user {found.st_uid} and group {found.st_gid}, with mode {mode:04o}"
        except OSError:
            whose = "out of reach"
        return StorageUnavailable(
            f"store {self._path}: permission denied: it is {whose}",
            hint="Run this as that user. To share a store among users, make it for a group: "
            "sealpoint init --group NAME, and sealpoint trust import PIN --group NAME.",
        )


class Root:
    """The root of an existing store.

    Args:
        path: The directory.
        read_only: Leave everything as it is.
        group: The group whose members share it, if they do.

    Raises:
        SchemaUnknown: It is no store, or one of a version that is not known.
        DirectoryUnusable: It is no directory, another user's, or others can write in it.
        StorageUnavailable: There is none.
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
                f"store {self._path}: expected the directory that was opened, found another",
                hint="If you have exchanged it yourself, open the store again.",
            )
        return root


def create_root(path: Path, wait_seconds_max: float, group: int | None = None) -> None:
    """Make a store in a new or an empty directory, unless there is one already.

    Raises:
        SchemaUnknown: The directory holds something else.
        DirectoryUnusable: It is no directory, another user's, or others can write in it.
        StorageUnavailable: It cannot be made.
    """
    try:
        make_directory(path, group)
    except FileNotFoundError as exc:
        raise StorageUnavailable(
            f"store {path}: expected a directory {path.parent}, found none"
        ) from exc
    with locked(lambda: Directory.root(str(path), group), wait_seconds_max) as root:
        if root is None or root.look(_MARK) is not None:
            return
        # A creator that crashed leaves these, and nothing in them.
        known = {THREADS, LABELS, *draft_names(root)}
        if not known.issuperset(root.names()) or not _is_empty(root, THREADS, LABELS):
            raise SchemaUnknown(
                f"store {path}: expected a new or an empty directory, found other files in it"
            )
        _sync_parent(path)
        for name in (THREADS, LABELS):
            root.made(name).close()
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
            raise SchemaUnknown(
                f"store {root.path}: expected a Sealpoint store, found another {_MARK} in it"
            )
        if int(match[1]) != SCHEMA_VERSION:
            raise SchemaUnknown(
                f"store {root.path}: expected schema version {SCHEMA_VERSION}, the newest this "
                f"version of Sealpoint knows, found {int(match[1])}"
            )
        if not file.settled and not read_only:
            # Whoever made the store may have crashed before its name was on the disk.
            root.sync()


def _sync_parent(path: Path) -> None:
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
