# SPDX-License-Identifier: Apache-2.0
"""Directories and files of a file store: opened step by step, and used only when safe.

The module guarantees that nothing outside the root is ever reached. Every step is relative to an
open directory, no symbolic link is followed, and the opened object is checked before it is used, so
that nothing can be put in its place between the check and the use. The module refuses objects of
another kind, objects of another user, and objects that others could have changed: at the root as
`DirectoryUnusable`, below it as `Edited`, since only a store may write there. It never waits for a
pipe, and reads nothing whose size was not compared with a bound. `OSError` is left to `file.py`.

A directory that was just made may be gone after a power cut, with everything written into it since.
So it is made with the sticky bit (mode 1700), which is removed (0700) when its name is on the disk.
A process that finds the bit, perhaps because the maker crashed, completes this before it writes
into the directory; without the bit, a process may rely on the directory. (Where making a directory
does not set that bit, as on macOS, this holds only for its maker.)

A store that a group of users shares on purpose is opened with the number of that group. Then files
and directories belong to that group, regardless of the member who owns them, and its members may
write them (0660, 2770); nobody else may. ADR 0020 gives the consequences.

A draft is a file on its way to its name, written in the directory of its thread under a name that
no reader looks for; the caller holds the lock. The module guarantees this order, each step for all
drafts before the next: (1) the bytes are on the disk; (2) the file gets its own name as a second
one; a name that is taken is refused, or replaced in one piece if the caller requests that; (3) the
directory with that name is on the disk; (4) the name of the draft is removed. So a file that still
has its draft's name (two links) is whole, but its own name may not be on the disk yet. A reader
that is about to rely on such a file makes its directory durable first: then data that was once read
is never gone after a power cut, although readers take no lock. A crash leaves drafts behind; nobody
reads them, and `compact` removes them.
"""

import contextlib
import errno
import os
import shlex
import stat
import time
from collections.abc import Container, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

from sealpoint.disk import (
    DIRECTORY,
    FILE,
    GROUP_DIRECTORY,
    OWN_DIRECTORY,
    Unsafe,
    new_file,
    open_safe,
    require_safe,
    sync,
    write_all,
)
from sealpoint.errors import DirectoryUnusable, Edited, StorageUnavailable

_CREATED_MODE = 0o1700
_MAKE_TRIES = 100
_SHARE_TRIES = 100
_SHARE_PAUSE_S = 0.01


class _Open:
    """An open object of a store, until the end of a `with` block or until it is closed.

    Args:
        descriptor: The open file or directory, which this object closes.
        path: Its path, for messages.
    """

    __slots__ = ("descriptor", "path")

    def __init__(self, descriptor: int, path: str) -> None:
        self.descriptor = descriptor
        self.path = path

    def close(self) -> None:
        """Release the descriptor; the file or directory itself stays."""
        os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class File(_Open):
    """An open file of a store, for reading."""

    __slots__ = ("is_durable", "size_bytes")

    def __init__(self, descriptor: int, path: str, found: os.stat_result) -> None:
        super().__init__(descriptor, path)
        self.size_bytes = found.st_size
        self.is_durable = found.st_nlink == 1
        """Whether its name is known to be on the disk: see `Drafts`."""

    def read(self, size_bytes: int, offset: int = 0) -> bytes:
        """Read exactly this many bytes; the caller has compared the number with the size.

        Raises:
            Edited: The file has become shorter.
        """
        data = os.pread(self.descriptor, size_bytes, offset)
        while len(data) < size_bytes:
            more = os.pread(self.descriptor, size_bytes - len(data), offset + len(data))
            if not more:
                raise Edited(
                    f"{self.path}: expected {offset + size_bytes} bytes, found {offset + len(data)}"
                )
            data += more
        return data


class Directory(_Open):
    """An open directory of a store; use it in a `with` block.

    Args:
        descriptor: The open directory, which this object closes.
        path: Its path, for messages.
        found: Its file status.
        group: The group whose members share the store; None: it belongs to this user alone.
    """

    __slots__ = ("group", "identity", "is_durable")

    def __init__(
        self, descriptor: int, path: str, found: os.stat_result, group: int | None = None
    ) -> None:
        super().__init__(descriptor, path)
        self.group = group
        self.identity = (found.st_dev, found.st_ino)
        self.is_durable = not found.st_mode & stat.S_ISVTX
        """Whether its own name is known to be on the disk."""

    @property
    def name(self) -> str:
        """Return the last part of its path."""
        return self.path.rpartition("/")[2]

    @classmethod
    def root(cls, path: str, group: int | None = None) -> Self:
        """Open the root of a store, which may be shared by a group.

        Raises:
            StorageUnavailable: It does not exist.
            DirectoryUnusable: It is not a directory, belongs to another user, or others can write
                in it.
        """
        try:
            descriptor, found = open_safe(path, DIRECTORY, group=group)
        except FileNotFoundError as exc:
            raise StorageUnavailable(f"store {path}: there is no such directory") from exc
        except Unsafe as exc:
            hint = exc.hint(path) or "Name the directory itself in the URL."
            if group is not None:
                place = shlex.quote(path)
                hint = f"chgrp -R -- {group} {place}; chmod -R -- g+rwX,o-w {place}"
            raise DirectoryUnusable(f"store {path}: {exc}", hint=hint) from exc
        return cls(descriptor, path, found, group)

    def child(self, name: str, *, writing: bool = False) -> "Directory | None":
        """Open a directory in this one, or return None if it does not exist.

        Raises:
            Edited: It is not a directory, belongs to another user, or others can write in it.
        """
        try:
            descriptor, found = open_safe(name, DIRECTORY, within=self.descriptor, group=self.group)
        except FileNotFoundError:
            return None
        except Unsafe as exc:
            raise Edited(f"{self.path}/{name}: {exc}") from exc
        path = f"{self.path}/{name}"
        child = Directory(descriptor, path, found, self.group)
        if writing and not child.is_durable:
            self._make_durable(child)
        return child

    def open_or_create(self, name: str) -> "Directory":
        """Open a directory in this one for writing, and make it if it does not exist.

        Raises:
            StorageUnavailable: Another process removes it as fast as it is made.
        """
        child = self.child(name, writing=True)
        if child is not None:
            return child
        for _ in range(_MAKE_TRIES):
            # Another process may be faster; its directory is as good.
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, _CREATED_MODE, dir_fd=self.descriptor)
            child = self.child(name)
            if child is not None:
                self._make_durable(child)
                return child
            # `compact` removes empty directories, even one made at this moment.
        raise StorageUnavailable(f"{self.path}/{name}: expected it made, found it removed")

    def _make_durable(self, child: "Directory") -> None:
        """Wait until a directory's name in this one is on the disk, and mark that in its mode."""
        try:
            sync(self.descriptor)
            if self.group is None:
                os.fchmod(child.descriptor, OWN_DIRECTORY)
            else:
                _share(child.descriptor)
        except BaseException:
            child.close()
            raise

    def file(self, name: str) -> File | None:
        """Open a file in this directory for reading, or return None if it does not exist.

        Raises:
            Edited: It is not a file, belongs to another user, or others can write to it.
        """
        try:
            descriptor, found = open_safe(name, FILE, within=self.descriptor, group=self.group)
        except FileNotFoundError:
            return None
        except Unsafe as exc:
            raise Edited(f"{self.path}/{name}: {exc}") from exc
        return File(descriptor, f"{self.path}/{name}", found)

    def size_bytes(self, name: str) -> int | None:
        """Return the size of a file, or None if it does not exist.

        Raises:
            Edited: As `file`.
        """
        found = self.look(name)
        return None if found is None else found.st_size

    def look(self, name: str) -> os.stat_result | None:
        """Return the status of a file without opening it, or None if it does not exist.

        Raises:
            Edited: As `file`.
        """
        try:
            found = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None
        try:
            require_safe(found, FILE, group=self.group)
        except Unsafe as exc:
            raise Edited(f"{self.path}/{name}: {exc}") from exc
        return found

    def new_file(self, name: str) -> int:
        """Make an empty file, and open it for writing.

        Raises:
            FileExistsError: The name is taken.
        """
        return new_file(name, within=self.descriptor, group=self.group)

    def new_empty_file(self, name: str) -> None:
        """Make an empty file, unless the name is taken."""
        with contextlib.suppress(FileExistsError):
            os.close(self.new_file(name))

    def remove(self, name: str) -> None:
        """Remove a file; a missing one is not a failure."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def remove_empty(self, name: str) -> None:
        """Remove a directory if it is empty."""
        try:
            os.rmdir(name, dir_fd=self.descriptor)
        except OSError as exc:
            if exc.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
                raise

    def names(self) -> Iterator[str]:
        """Yield every name in this directory, unordered; only one is in memory at a time."""
        with os.scandir(self.descriptor) as entries:
            for entry in entries:
                yield entry.name

    def names_in(self, known: Container[str]) -> list[str]:
        """Return those of some few known names that are in this directory, unordered."""
        with os.scandir(self.descriptor) as entries:
            return [entry.name for entry in entries if entry.name in known]

    def sync(self) -> None:
        """Wait until the names in this directory are on the disk."""
        sync(self.descriptor)


def _share(descriptor: int) -> None:
    """Open a directory to the group; if another member made it, wait a moment for their change."""
    for _ in range(_SHARE_TRIES):
        try:
            os.fchmod(descriptor, GROUP_DIRECTORY)
            return
        except PermissionError:
            if not os.fstat(descriptor).st_mode & stat.S_ISVTX:
                return
            time.sleep(_SHARE_PAUSE_S)
    # Its maker died: its name is on the disk now, and the next process syncs once more.


_PREFIX = "new-"
_SECOND = "-b"
# Open files at a time, and the most that one crash leaves behind.
_DRAFTS_MAX = 32
_SYNCED_TOGETHER = 4
_SYNCED_TOGETHER_MIN = 8
# Names that are skipped: the drafts of 128 crashes, or of an attacker who wants to block writers.
_LEFT_MAX = 4096


@dataclass(slots=True)
class _Draft:
    draft: str
    descriptor: int
    directory: Directory
    name: str
    replaces: bool
    named: bool = False

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class Drafts:
    """The drafts of one call; use it in a `with` block, which settles them at its end.

    Args:
        home: The directory of the drafts until they have their names; its lock is held.
    """

    __slots__ = ("_drafts", "_home", "_number")

    def __init__(self, home: Directory) -> None:
        self._home = home
        self._number = 0
        self._drafts: list[_Draft] = []

    def write(
        self, directory: Directory, name: str, pieces: Iterable[bytes], *, replaces: bool = False
    ) -> None:
        """Write a file that is to be called `name` in `directory`, which must stay open."""
        if len(self._drafts) >= _DRAFTS_MAX:
            self.settle()
        draft, descriptor = self._new()
        self._drafts.append(_Draft(draft, descriptor, directory, name, replaces))
        for piece in pieces:
            write_all(descriptor, piece)

    def settle(self) -> None:
        """Give all drafts their names; when it returns, they survive a power cut."""
        # (1) Bytes.
        _sync_all([draft.descriptor for draft in self._drafts])
        for draft in self._drafts:
            draft.close()
        # (2) Names.
        for draft in self._drafts:
            self._name(draft)
        # (3) Names on the disk, once for each directory.
        _sync_all([*{draft.directory.descriptor: None for draft in self._drafts}])
        # (4) Only the one name.
        for draft in self._drafts:
            self._home.remove(draft.draft)
        self._drafts.clear()

    def _new(self) -> tuple[str, int]:
        """Make the file of a draft; names that a crash has left are skipped.

        Raises:
            StorageUnavailable: There are more of them than crashes leave.
        """
        for _ in range(_LEFT_MAX):
            name = f"{_PREFIX}{self._number}"
            self._number += 1
            with contextlib.suppress(FileExistsError):
                return name, self._home.new_file(name)
        raise StorageUnavailable(
            f"{self._home.path}: crashes have left more than {_LEFT_MAX} files there",
            hint="sealpoint gc removes them.",
        )

    def _name(self, draft: _Draft) -> None:
        home, directory = self._home.descriptor, draft.directory.descriptor
        if draft.replaces:
            # A rename alone would leave one link, as if the name were on the disk already.
            second = draft.draft + _SECOND
            self._home.remove(second)
            _link(draft.draft, home, second, home)
            os.rename(second, draft.name, src_dir_fd=home, dst_dir_fd=directory)
        else:
            _link(draft.draft, home, draft.name, directory)
        draft.named = True

    def _abandon(self) -> None:
        """Remove all drafts but those with final names, which may not be on the disk yet."""
        for draft in self._drafts:
            with contextlib.suppress(OSError):
                draft.close()
            if not draft.named:
                for name in (draft.draft, draft.draft + _SECOND):
                    with contextlib.suppress(OSError):
                        self._home.remove(name)
        self._drafts.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.settle()
        finally:
            self._abandon()


def _sync_all(descriptors: list[int]) -> None:
    """Wait until files or directories are on the disk.

    A disk takes many at once in the time of a few, if they are requested together.
    """
    if len(descriptors) >= _SYNCED_TOGETHER_MIN:
        try:
            with ThreadPoolExecutor(_SYNCED_TOGETHER, "sealpoint-sync") as pool:
                for _ in pool.map(sync, descriptors):
                    pass
        except RuntimeError:
            pass  # no OS thread can be started
        else:
            return
    for descriptor in descriptors:
        sync(descriptor)


def _link(name: str, directory: int, new_name: str, new_directory: int) -> None:
    """Give a file a second name, unless that is taken."""
    os.link(name, new_name, src_dir_fd=directory, dst_dir_fd=new_directory, follow_symlinks=False)


def draft_names(home: Directory) -> Iterator[str]:
    """Return the names of the drafts in a directory."""
    return (name for name in home.names() if name.startswith(_PREFIX))
