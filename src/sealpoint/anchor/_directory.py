# SPDX-License-Identifier: Apache-2.0
"""The directory of a local anchor: who may write it, and how a file in it appears.

A directory or file that somebody else owns or may write, or that is a link, is refused with
`DirectoryUnusable`: what others can replace remembers nothing. A file appears under its name only
when all of it is on the disk. Every other failure is left to the caller as `OSError`.

An anchor that a group of users shares on purpose is opened with the number of that group: then
directory and files are of that group, whoever of it owns them, and its members may write them.
They are trusted not to turn it back; nobody else may write it. ADR 0020 says more.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sealpoint import _directories
from sealpoint.errors import DirectoryUnusable

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Linux spares the journal when nothing but data changed; not every system has the call.
sync_data = getattr(os, "fdatasync", os.fsync)


def make_directory(directory: Path, group: int | None = None) -> None:
    """Make a directory and its parents, open to this user or to a group alone, and durably."""
    try:
        _directories.make_directory(directory, group, parents=True)
    except OSError as exc:
        message = f"anchor directory {directory}: expected to make it, found {_reason(exc)}"
        raise DirectoryUnusable(message) from exc


@contextmanager
def opened_directory(directory: Path, group: int | None = None) -> Iterator[int]:
    """Open a directory after checking it; what is done through the descriptor stays in it.

    Raises:
        DirectoryUnusable: It is a link, no directory, of another user, or writable for others.
        FileNotFoundError: There is none.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(directory, flags)
    except FileNotFoundError:
        raise
    except OSError as exc:
        found = "a link" if directory.is_symlink() else _reason(exc)
        message = f"anchor directory {directory}: expected a directory, found {found}"
        raise DirectoryUnusable(message) from exc
    try:
        _require_own(os.fstat(descriptor), f"anchor directory {directory}", group)
        yield descriptor
    finally:
        os.close(descriptor)


def open_file(
    directory: Path, within: int, name: str, *, read_only: bool, group: int | None = None
) -> int:
    """Open a file of a directory after checking it.

    Raises:
        DirectoryUnusable: It is a link, no plain file, of another user, or writable for others.
        OSError: It cannot be opened.
    """
    flags = os.O_RDONLY if read_only else os.O_RDWR
    place = f"anchor file {directory / name}"
    try:
        # Without O_NONBLOCK a named pipe in the place of the file would hold the caller for ever.
        descriptor = os.open(
            name, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=within
        )
    except OSError as exc:
        with suppress(FileNotFoundError):
            if stat.S_ISLNK(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode):
                raise DirectoryUnusable(f"{place}: expected a plain file, found a link") from exc
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DirectoryUnusable(f"{place}: expected a plain file, found something else")
        _require_own(status, place, group)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def publish(within: int, temporary: str, name: str, *, replace: bool) -> None:
    """Give a finished file its name, in one step that survives a power cut.

    Raises:
        FileExistsError: The name is taken, and `replace` is false.
    """
    if replace:
        os.rename(temporary, name, src_dir_fd=within, dst_dir_fd=within)
    else:
        # Unlike a rename, a link never takes the place of a file that another process made.
        try:
            # A member of the group may have put a link there; what it names gets no name here.
            os.link(temporary, name, src_dir_fd=within, dst_dir_fd=within, follow_symlinks=False)
        finally:
            os.unlink(temporary, dir_fd=within)
    os.fsync(within)


def _require_own(status: os.stat_result, place: str, group: int | None) -> None:
    if group is not None:
        _require_shared(status, place, group)
        return
    user = os.geteuid()
    if status.st_uid != user:
        message = f"{place}: expected user {user} to own it, found user {status.st_uid}"
        raise DirectoryUnusable(message)
    if status.st_mode & _OTHERS_MAY_WRITE:
        mode = stat.S_IMODE(status.st_mode)
        message = f"{place}: expected no write permission for others, found mode {mode:04o}"
        raise DirectoryUnusable(message)


def _require_shared(status: os.stat_result, place: str, group: int) -> None:
    mode = stat.S_IMODE(status.st_mode)
    if status.st_gid != group:
        raise DirectoryUnusable(
            f"{place}: expected group {group}, which shares it, found group {status.st_gid}",
            hint="sealpoint status says how to repair it.",
        )
    if mode & stat.S_IWOTH:
        raise DirectoryUnusable(
            f"{place}: expected no write permission outside the group, found mode {mode:04o}",
            hint="sealpoint status says how to repair it.",
        )


def _reason(exc: OSError) -> str:
    return exc.strerror or type(exc).__name__
