# SPDX-License-Identifier: Apache-2.0
"""Files that others must not read or change.

Reading opens a file once and asks the open descriptor what it is, so that nothing can be put in
its place between the check and the read. Writing gives a file its name only when its bytes are
durable: a crash leaves the old file, the new one or none, and never a part of one. Where the
system has no owners and modes, as on Windows, only the kind of a file is checked.
"""

import contextlib
import errno
import os
import shlex
import stat
import tempfile
from pathlib import Path

from sealpoint.errors import DirectoryUnusable, KeyFileUnsafe

_SECRET_MODE = 0o600
_DIRECTORY_MODE = 0o700
_OTHERS_ANY = 0o077
_OTHERS_WRITE = 0o022
_MOUNTED_REFUSED = 0o027
_ROOT_USER = 0
_TEMPORARY_PREFIX = ".new-"
_KINDS = {
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFREG: "a file",
    stat.S_IFSOCK: "a socket",
}


def read_file(
    path: Path, *, bytes_max: int, secret: bool, follow: bool = False, mounted: bool = False
) -> bytes | None:
    """Read a whole file, or None where there is none.

    Args:
        path: The file.
        bytes_max: The most it may hold.
        secret: Others must not read it, and it must be the user's own; else others must not
            change it, and it may be root's.
        follow: Whether the file may be reached through a symbolic link.
        mounted: It is of a mounted secret: even if secret, it may be root's, and a group may read
            it.

    Raises:
        KeyFileUnsafe: Others could read or change it, it is too large, or it is no file.
        DirectoryUnusable: Its directory is none.
    """
    # Without O_NONBLOCK, a pipe in the place of the file would block for ever.
    flags: int = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return None
    except NotADirectoryError as exc:
        raise _unusable(path.parent, exc) from exc
    except OSError as exc:
        # What O_NOFOLLOW meets a link with; EMLINK on some systems.
        link = exc.errno in {errno.ELOOP, errno.EMLINK}
        found = "a symbolic link" if link else exc.strerror
        raise KeyFileUnsafe(f"{path}: expected a file that can be read, found {found}") from exc
    try:
        check_file(str(path), os.fstat(descriptor), secret=secret, mounted=mounted)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(bytes_max + 1)
    except OSError as exc:
        raise KeyFileUnsafe(
            f"{path}: expected a file that can be read, found {exc.strerror}"
        ) from exc
    finally:
        os.close(descriptor)
    if len(data) > bytes_max:
        raise KeyFileUnsafe(f"{path}: expected at most {bytes_max} bytes, found more")
    return data


def check_file(named: str, found: os.stat_result, *, secret: bool, mounted: bool) -> None:
    """Check that an open file is one, and that others cannot change it, or read a secret one.

    Raises:
        KeyFileUnsafe: It is not so.
    """
    if not stat.S_ISREG(found.st_mode):
        raise KeyFileUnsafe(f"{named}: expected a file, found {kind_of(found)}")
    check_owner(named, found, root_too=mounted or not secret)
    if not _has_modes():
        return
    if secret and not mounted and found.st_mode & _OTHERS_ANY:
        raise KeyFileUnsafe(f"{named}: expected mode {_SECRET_MODE:04o}, found {_mode(found)}")
    if secret and found.st_mode & _MOUNTED_REFUSED:
        raise KeyFileUnsafe(
            f"{named}: expected a mode in which others can neither read nor change it, such as "
            f"0440 or 0400, found {_mode(found)}",
            hint="In Kubernetes: defaultMode: 0440 for the volume and fsGroup for the pod. If "
            "somebody else may have read it, make a new key.",
        )
    if found.st_mode & _OTHERS_WRITE:
        raise KeyFileUnsafe(
            f"{named}: expected a mode in which only its owner writes, found {_mode(found)}",
            hint=f"chmod go-w {named}, if nobody else has written to it.",
        )


def check_directory(path: Path, *, follow: bool = False) -> bool:
    """Check that only the user and root can change what a directory holds.

    Returns:
        Whether it is there.

    Raises:
        DirectoryUnusable: It is no directory, or others can change it.
    """
    try:
        found = path.stat() if follow else path.lstat()
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise _unusable(path, exc) from exc
    if not stat.S_ISDIR(found.st_mode):
        raise DirectoryUnusable(f"{path}: expected a directory, found {kind_of(found)}")
    fault = _owner_fault(found, root_too=True)
    if fault is not None:
        raise DirectoryUnusable(f"{path}: {fault}", hint=_chown(path))
    if _has_modes() and found.st_mode & _OTHERS_WRITE:
        raise DirectoryUnusable(
            f"{path}: expected mode {_DIRECTORY_MODE:04o}, found {_mode(found)}",
            hint="chmod 700 the directory if nobody else has written to it.",
        )
    return True


def make_directory(path: Path, *, follow: bool = False, parents: bool = False) -> None:
    """Make sure that a directory is there and that only the user and root can change it.

    Raises:
        DirectoryUnusable: It cannot be made, is no directory, or others can change it.
    """
    lowest = next((part for part in (path, *path.parents) if os.path.lexists(part)), path)
    with contextlib.suppress(OSError):
        # Whoever made it may have died before its name was on the disk.
        _sync_directory(lowest.parent)
    if check_directory(path, follow=follow):
        return
    try:
        missing = [part for part in (path, *path.parents) if not os.path.lexists(part)]
        for part in reversed(missing if missing and parents else [path]):
            part.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
            _sync_directory(part.parent)
    except OSError as exc:
        raise _unusable(path, exc) from exc
    check_directory(path, follow=follow)


def write_new_file(path: Path, data: bytes) -> bool:
    """Write a file that only the user can read, unless there is one of that name.

    Returns:
        Whether it was written; an existing file stays as it is.

    Raises:
        DirectoryUnusable: Its directory cannot be written.
    """
    try:
        temporary = _written_aside(path, data)
        try:
            # Unlike a rename, a second name is never given in the place of a file.
            os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except FileExistsError:
        # Whoever wrote it may have died before its name was on the disk.
        sync_directory(path.parent)
        return False
    except OSError as exc:
        raise _unusable(path.parent, exc) from exc
    return True


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable.

    Raises:
        DirectoryUnusable: It cannot be synced.
    """
    try:
        _sync_directory(path)
    except OSError as exc:
        raise _unusable(path, exc) from exc


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that only the user can read, in the place of any of that name.

    Raises:
        DirectoryUnusable: Its directory cannot be written.
    """
    try:
        temporary = _written_aside(path, data)
        try:
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except OSError as exc:
        raise _unusable(path.parent, exc) from exc


def move_file(source: Path, target: Path) -> None:
    """Give a file the name of another in its directory, whose content is gone with that.

    Raises:
        DirectoryUnusable: The directory cannot be written, or the file is not there.
    """
    try:
        source.replace(target)
        _sync_directory(target.parent)
    except OSError as exc:
        raise _unusable(target.parent, exc) from exc


def _written_aside(path: Path, data: bytes) -> Path:
    """Write the bytes durably under a name that nothing reads."""
    # mkstemp creates with O_EXCL and O_NOFOLLOW, readable by the user alone.
    descriptor, name = tempfile.mkstemp(prefix=_TEMPORARY_PREFIX, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, _SECRET_MODE)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    return Path(name)


def _sync_directory(path: Path) -> None:
    """Make the names in a directory durable, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_owner(named: str, found: os.stat_result, *, root_too: bool) -> None:
    """Check that a file or a link is the user's own, or root's where that is as good.

    Raises:
        KeyFileUnsafe: It is somebody else's.
    """
    fault = _owner_fault(found, root_too=root_too)
    if fault is not None:
        raise KeyFileUnsafe(f"{named}: {fault}", hint=_chown(named))


def _chown(named: str | Path) -> str:
    return (
        f"If you know how it came there and trust what it holds: sudo chown {os.geteuid()} "
        f"{shlex.quote(str(named))}"
    )


def _owner_fault(found: os.stat_result, *, root_too: bool) -> str | None:
    if not _has_modes():
        return None
    user = os.geteuid()
    if found.st_uid == user or (root_too and found.st_uid == _ROOT_USER):
        return None
    return f"expected user {user} as its owner, found user {found.st_uid}"


def _has_modes() -> bool:
    return hasattr(os, "geteuid")


def kind_of(found: os.stat_result) -> str:
    """What something is, in words."""
    return _KINDS.get(stat.S_IFMT(found.st_mode), "something else")


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"


def _unusable(path: Path, exc: OSError) -> DirectoryUnusable:
    return DirectoryUnusable(
        f"{path}: expected a directory that can be read and written, found {exc.strerror}"
    )
