# SPDX-License-Identifier: Apache-2.0
"""Files that others must not read or change: a user's own, mounted secrets, and descriptors.

Unsafe files are refused, never repaired, as `KeyFileUnsafe` or `DirectoryUnusable`.
`sealpoint.disk` opens, checks and syncs files.

A mounted secret is a directory that the user declares to be one. Its content belongs to root or the
user, others can neither read a key nor change anything, and a group may read, as the group of a pod
does. Links are followed one by one, as Kubernetes makes them (`worker.key` is a link to
`..data/worker.key`, `..data` to `..2026_01_31`); a link that leads out of the directory is refused.
A secret that is replaced during a read is read again: an existing name is never treated as missing.
Nothing is written.

A descriptor is one that the process was started with. Child processes do not inherit it. A file is
read from its beginning each time; a pipe yields its bytes once.
"""

import contextlib
import os
import stat
import time
from pathlib import Path

from sealpoint import disk
from sealpoint.disk import (
    DIRECTORY,
    FILE,
    OTHERS_ANY,
    OTHERS_WRITE,
    Unsafe,
    kind_of,
    refusing,
    reporting,
)
from sealpoint.errors import DirectoryUnusable, KeyFileUnsafe, KeyMissing

_MOUNTED_REFUSED = 0o027
_LINKS_MAX = 8
_ATTEMPTS = 10
_PAUSE_S = 0.005


def read_file(
    path: Path, *, bytes_max: int, secret: bool, follow: bool = False, mounted: bool = False
) -> bytes | None:
    """Read a complete file, or None if it does not exist.

    Args:
        path: The file.
        bytes_max: Its maximum size.
        secret: Others must not read it, and it must belong to the user; otherwise, others must not
            change it, and it may belong to root.
        follow: Whether to follow a symbolic link to the file.
        mounted: It is part of a mounted secret: even if secret, it may belong to root, and a group
            may read it.

    Raises:
        KeyFileUnsafe: Others could read or change it, it is too large, or it is not a file.
        DirectoryUnusable: Its directory is not a directory.
    """
    with reporting(KeyFileUnsafe, f"{path}: expected a file that can be read"):
        try:
            with refusing(KeyFileUnsafe, path):
                descriptor = disk.open_plain(path, FILE, follow=follow)
        except FileNotFoundError:
            return None
        except NotADirectoryError as exc:
            raise _unusable(path.parent, exc) from exc
        try:
            check_file(str(path), os.fstat(descriptor), secret=secret, mounted=mounted)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(bytes_max + 1)
        finally:
            os.close(descriptor)
    if len(data) > bytes_max:
        raise KeyFileUnsafe(f"{path}: it is larger than {bytes_max} bytes")
    return data


def check_file(named: str, found: os.stat_result, *, secret: bool, mounted: bool) -> None:
    """Check that an open file is one, and that others cannot change it, or read a secret one.

    Raises:
        KeyFileUnsafe: The check fails.
    """
    with refusing(KeyFileUnsafe, named):
        disk.require_safe(
            found,
            FILE,
            root_too=mounted or not secret,
            refused=OTHERS_ANY if secret and not mounted else OTHERS_WRITE,
        )
    if secret and mounted and disk.has_owners() and found.st_mode & _MOUNTED_REFUSED:
        raise KeyFileUnsafe(
            f"{named}: expected a mode in which others can neither read nor change it, such as "
            f"0440 or 0400, found {found.st_mode & 0o7777:04o}",
            hint="In Kubernetes: defaultMode: 0440 for the volume and fsGroup for the pod. If "
            "another person may have read it, make a new one.",
        )


def check_owner(named: str, found: os.stat_result) -> None:
    """Check that a file or a link belongs to the user or to root.

    Raises:
        KeyFileUnsafe: It belongs to another user.
    """
    with refusing(KeyFileUnsafe, named):
        disk.require_owner(found, root_too=True)


def check_directory(path: str | Path, *, follow: bool = False) -> bool:
    """Check that only the user and root can change what a directory holds.

    Returns:
        Whether it exists.

    Raises:
        DirectoryUnusable: It is not a directory, or others can change it.
    """
    try:
        found = os.stat(path, follow_symlinks=follow)  # noqa: PTH116 (it is asked for often)
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise _unusable(path, exc) from exc
    try:
        disk.require_safe(found, DIRECTORY, root_too=True)
    except Unsafe as exc:
        raise DirectoryUnusable(f"{path}: {exc}", hint=exc.hint(path)) from exc
    return True


def make_directory(path: Path, *, follow: bool = False, parents: bool = False) -> None:
    """Make sure that a directory exists and that only the user and root can change it.

    Raises:
        DirectoryUnusable: It cannot be created, is not a directory, or others can change it.
    """
    with _writing(path):
        disk.make_directory(path, parents=parents)
    if not check_directory(path, follow=follow):
        raise DirectoryUnusable(
            f"{path}: expected a directory that can be read and written, found a link to nothing"
        )


def write_new_file(path: Path, data: bytes) -> bool:
    """Write a file that only the user can read, unless the name is taken.

    Returns:
        Whether it was written; an existing file stays as it is.

    Raises:
        DirectoryUnusable: Its directory cannot be written.
    """
    with _writing(path.parent):
        try:
            disk.write_file(path, data, replace=False)
        except FileExistsError:
            # The process that wrote it may have died before its name was on the disk.
            disk.sync_directory(path.parent)
            return False
    return True


def sync_directory(path: Path) -> None:
    """Sync the names in a directory to the disk.

    Raises:
        DirectoryUnusable: It cannot be synced.
    """
    with _writing(path):
        disk.sync_directory(path)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that only the user can read, replacing any file of that name.

    Raises:
        DirectoryUnusable: Its directory cannot be written.
    """
    with _writing(path.parent):
        disk.write_file(path, data, replace=True)


def move_file(source: Path, target: Path) -> None:
    """Rename a file over another one in the same directory, whose content is then gone.

    Raises:
        DirectoryUnusable: The directory cannot be written, or the file does not exist.
    """
    with _writing(target.parent):
        disk.move_file(source, target)


def _writing(directory: Path) -> contextlib.AbstractContextManager[None]:
    return reporting(
        DirectoryUnusable, f"{directory}: expected a directory that can be read and written"
    )


def _unusable(path: str | Path, exc: OSError) -> DirectoryUnusable:
    return DirectoryUnusable(f"{path}: the directory cannot be read or written: {exc.strerror}")


def read_mounted(directory: Path, name: str, *, bytes_max: int, secret: bool) -> bytes | None:
    """Read a file of a mounted secret, or None if the name does not exist.

    Args:
        directory: The mount point of the secret.
        name: The file.
        bytes_max: Its maximum size.
        secret: Whether others must not read it.

    Raises:
        KeyFileUnsafe: Others could read or change it, or it leads out of the directory or, for more
            than a moment, to nothing.
        DirectoryUnusable: The directory does not exist, or others can change it.
    """
    try:
        top = directory.resolve(strict=True)
    except (OSError, RuntimeError) as exc:
        raise DirectoryUnusable(
            f"{directory}: there is no such directory, where a mounted secret should be",
            hint="Mount it there, or name another with secrets_dir= or SEALPOINT_SECRETS_DIR.",
        ) from exc
    # Kubernetes replaces the whole directory at once, so a file that was found may be gone when it
    # is opened. That must not lead to an older key from another place, so only a name that does not
    # exist returns None.
    for _ in range(_ATTEMPTS):
        try:
            path = _resolved(top, name)
            if path is None:
                return None
            data = read_file(path, bytes_max=bytes_max, secret=secret, mounted=True)
            if data is not None:
                return data
        except FileNotFoundError:
            pass
        except OSError as exc:
            raise KeyFileUnsafe(f"{top / name}: the file cannot be read: {exc.strerror}") from exc
        time.sleep(_PAUSE_S)
    raise KeyFileUnsafe(
        f"{top / name}: it is a link that leads nowhere",
        hint="Mount the secret whole, or take this name out of it.",
    )


def _resolved(top: Path, name: str) -> Path | None:
    """Resolve a name link by link; None if the name does not exist.

    Raises:
        FileNotFoundError: It leads to nothing: perhaps the secret is being replaced right now.
    """
    named = top / name
    here, parts, links = top, [name], 0
    _check_mounted_directory(top)
    while parts:
        part = parts.pop(0)
        if part == "..":
            if here == top:
                raise _leads_out(named, top)
            here = here.parent
            continue
        step = here / part
        try:
            found = step.lstat()
        except FileNotFoundError:
            if step == named:
                return None
            raise
        # In a directory with the sticky bit, others may create names, which belong to them.
        check_owner(str(step), found)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            target = str(step.readlink())
            if links > _LINKS_MAX or target.startswith("/"):
                raise _leads_out(named, top)
            parts = [each for each in target.split("/") if each not in {"", "."}] + parts
        elif not parts:
            return step
        else:
            _check_mounted_directory(step)
            here = step
    raise KeyFileUnsafe(f"{named}: expected a file, found a directory")


def _check_mounted_directory(path: Path) -> None:
    """Refuse a directory in which others can replace existing names."""
    found = path.lstat()
    # With the sticky bit, as Kubernetes mounts it, no one replaces or removes files of others.
    refused = 0 if found.st_mode & stat.S_ISVTX else OTHERS_WRITE
    with refusing(DirectoryUnusable, path):
        disk.require_safe(found, DIRECTORY, root_too=True, refused=refused)


def _leads_out(named: Path, top: Path) -> KeyFileUnsafe:
    return KeyFileUnsafe(
        f"{named}: expected a link within {top}, found one that leads out of it or nowhere",
        hint="Mount the key itself there; only links inside of the secret are followed.",
    )


def read_descriptor(descriptor: int, what: str, *, bytes_max: int, secret: bool) -> bytes:
    """Read the content of a descriptor that the process was started with.

    Args:
        descriptor: Its number; it stays open.
        what: The expected content, for messages.
        bytes_max: The maximum size.
        secret: Whether others must not be able to read it by a name that it has.

    Raises:
        KeyMissing: It is not open, or is empty: a pipe is empty the second time.
        KeyFileUnsafe: It is not a file, pipe or socket, holds too much, or others could read or
            change it.
    """
    named = f"descriptor {descriptor}"
    try:
        found = os.fstat(descriptor)
        os.set_inheritable(descriptor, False)  # noqa: FBT003 (the parameter has no name)
        if stat.S_ISREG(found.st_mode):
            if found.st_nlink:  # without a link, others cannot reach it by a name
                check_file(named, found, secret=secret, mounted=True)
            data = os.pread(descriptor, bytes_max + 1, 0)
        elif stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode):
            data = _read_all(descriptor, bytes_max)
        else:
            raise KeyFileUnsafe(f"{named}: expected a file or a pipe, found {kind_of(found)}")
    except OSError as exc:
        raise KeyMissing(
            f"{named}: {what} cannot be read from it: {exc.strerror}",
            hint="Start the process with this descriptor open, such as with 3<worker.key in a "
            "shell, or pass_fds= in Python.",
        ) from exc
    if not data:
        raise KeyMissing(
            f"{named}: expected {what}, found an empty descriptor",
            hint="A pipe gives its bytes once: open the store once and keep it, or pass a file.",
        )
    if len(data) > bytes_max:
        raise KeyFileUnsafe(f"{named}: it is larger than {bytes_max} bytes")
    return data


def _read_all(descriptor: int, bytes_max: int) -> bytes:
    data = b""
    while len(data) <= bytes_max:
        piece = os.read(descriptor, bytes_max + 1 - len(data))
        if not piece:
            break
        data += piece
    return data
