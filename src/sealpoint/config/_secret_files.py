# SPDX-License-Identifier: Apache-2.0
"""Files of a user's that others must not read or change, and the directories that hold them.

What is unsafe is refused, never repaired, as `KeyFileUnsafe` or `DirectoryUnusable`. How files are
opened, checked and brought to the disk is the business of `sealpoint._disk`.
"""

import contextlib
import os
from pathlib import Path

from sealpoint import _disk
from sealpoint._disk import DIRECTORY, FILE, OTHERS_ANY, OTHERS_WRITE, refusing, reporting
from sealpoint.errors import DirectoryUnusable, KeyFileUnsafe

_MOUNTED_REFUSED = 0o027


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
    with reporting(KeyFileUnsafe, f"{path}: expected a file that can be read"):
        try:
            with refusing(KeyFileUnsafe, path):
                descriptor = _disk.open_plain(path, FILE, follow=follow)
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
        raise KeyFileUnsafe(f"{path}: expected at most {bytes_max} bytes, found more")
    return data


def check_file(named: str, found: os.stat_result, *, secret: bool, mounted: bool) -> None:
    """Check that an open file is one, and that others cannot change it, or read a secret one.

    Raises:
        KeyFileUnsafe: It is not so.
    """
    with refusing(KeyFileUnsafe, named):
        _disk.require_safe(
            found,
            FILE,
            root_too=mounted or not secret,
            refused=OTHERS_ANY if secret and not mounted else OTHERS_WRITE,
        )
    if secret and mounted and _disk.has_owners() and found.st_mode & _MOUNTED_REFUSED:
        raise KeyFileUnsafe(
            f"{named}: expected a mode in which others can neither read nor change it, such as "
            f"0440 or 0400, found {found.st_mode & 0o7777:04o}",
            hint="In Kubernetes: defaultMode: 0440 for the volume and fsGroup for the pod. If "
            "somebody else may have read it, make a new key.",
        )


def check_owner(named: str, found: os.stat_result) -> None:
    """Check that a file or a link is the user's own, or root's.

    Raises:
        KeyFileUnsafe: It is somebody else's.
    """
    with refusing(KeyFileUnsafe, named):
        _disk.require_owner(found, root_too=True)


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
    with refusing(DirectoryUnusable, path):
        _disk.require_safe(found, DIRECTORY, root_too=True)
    return True


def make_directory(path: Path, *, follow: bool = False, parents: bool = False) -> None:
    """Make sure that a directory is there and that only the user and root can change it.

    Raises:
        DirectoryUnusable: It cannot be made, is no directory, or others can change it.
    """
    with _writing(path):
        _disk.make_directory(path, parents=parents)
    if not check_directory(path, follow=follow):
        raise DirectoryUnusable(
            f"{path}: expected a directory that can be read and written, found a link to nothing"
        )


def write_new_file(path: Path, data: bytes) -> bool:
    """Write a file that only the user can read, unless there is one of that name.

    Returns:
        Whether it was written; an existing file stays as it is.

    Raises:
        DirectoryUnusable: Its directory cannot be written.
    """
    with _writing(path.parent):
        try:
            _disk.write_file(path, data, replace=False)
        except FileExistsError:
            # Whoever wrote it may have died before its name was on the disk.
            _disk.sync_directory(path.parent)
            return False
    return True


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable.

    Raises:
        DirectoryUnusable: It cannot be synced.
    """
    with _writing(path):
        _disk.sync_directory(path)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that only the user can read, in the place of any of that name.

    Raises:
        DirectoryUnusable: Its directory cannot be written.
    """
    with _writing(path.parent):
        _disk.write_file(path, data, replace=True)


def move_file(source: Path, target: Path) -> None:
    """Give a file the name of another in its directory, whose content is gone with that.

    Raises:
        DirectoryUnusable: The directory cannot be written, or the file is not there.
    """
    with _writing(target.parent):
        _disk.move_file(source, target)


def _writing(directory: Path) -> contextlib.AbstractContextManager[None]:
    return reporting(
        DirectoryUnusable, f"{directory}: expected a directory that can be read and written"
    )


def _unusable(path: Path, exc: OSError) -> DirectoryUnusable:
    return DirectoryUnusable(
        f"{path}: expected a directory that can be read and written, found {exc.strerror}"
    )
