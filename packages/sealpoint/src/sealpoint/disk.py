# SPDX-License-Identifier: Apache-2.0
"""Opening, checking, creating and syncing files and directories: the only place for it.

- Checks use the open descriptor, so that nothing can be swapped between the check and the use.
  Opening follows no link unless the caller asks for it, and never blocks on a pipe. A file of
  another kind, of another owner, or open to others is `Unsafe`.
- A file gets its name only when its bytes are on the disk, and the name is on the disk when the
  call returns: a crash leaves the old file, the new one or none, and never part of one.
- A directory's name is on the disk before anything is created in it.
- Files belong to this user alone, or to a group of users who share them on purpose. Shared files
  have that group, any member may own them, and nobody outside the group may write them. In a shared
  directory, a member can rename another member's files and put links in their place. So there,
  nothing is changed by its path: it is created in an open directory, opened without following a
  link, and opened to the group through its descriptor, after a check that it is still the file that
  was created.

Callers never show `Unsafe` and `OSError` to users: they raise errors of their own. On systems
without owners and modes, such as Windows, only the kind of a file is checked.
"""

import contextlib
import errno
import os
import shlex
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from sealpoint.errors import SealpointError

try:
    import fcntl
except ImportError:  # pragma: no cover - only where there is no POSIX
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "DIRECTORY",
    "FILE",
    "GROUP_DIRECTORY",
    "GROUP_FILE",
    "OTHERS_ANY",
    "OTHERS_WRITE",
    "OWN_DIRECTORY",
    "OWN_FILE",
    "STRANGERS_ANY",
    "STRANGERS_WRITE",
    "Unsafe",
    "has_owners",
    "kind_of",
    "make_directory",
    "move_file",
    "new_file",
    "open_plain",
    "open_safe",
    "permission_denied",
    "publish",
    "refusing",
    "reporting",
    "require_mode",
    "require_owner",
    "require_safe",
    "sync",
    "sync_data",
    "sync_directory",
    "wait_for_lock",
    "write_all",
    "write_file",
]

DIRECTORY = stat.S_IFDIR
FILE = stat.S_IFREG
OWN_FILE = 0o600
OWN_DIRECTORY = 0o700
GROUP_FILE = 0o660
GROUP_DIRECTORY = 0o2770
OTHERS_ANY = 0o077
OTHERS_WRITE = 0o022
STRANGERS_ANY = 0o007
STRANGERS_WRITE = 0o002

_ROOT_USER = 0
# Not every system has all of these. Without O_NONBLOCK, opening a pipe in the place of a file would
# block forever.
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_FLAGS: dict[int, int] = {
    DIRECTORY: getattr(os, "O_DIRECTORY", 0),
    FILE: getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0),
}
_DRAFT_PREFIX = ".new-"
_ANOTHER = "another one in the place of the one that was made"
_LOCK_PAUSE_S = 0.00002
_LOCK_PAUSE_MAX_S = 0.001
_KIND_AND_OTHERS = stat.S_IFMT(0o177777) | OTHERS_WRITE
_KINDS = {
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFREG: "a file",
    stat.S_IFSOCK: "a socket",
}
_MODES = {
    OTHERS_ANY: (
        "mode 0600",
        "If nobody else has read it: chmod 600 {0}. Else make a new one.",
    ),
    OTHERS_WRITE: (
        "a mode in which only its owner writes",
        "If nobody else has written to it: chmod go-w {0}",
    ),
    STRANGERS_ANY: (
        "a mode in which only the group reads and writes",
        "If nobody outside the group has read it: chmod o= {0}",
    ),
    STRANGERS_WRITE: (
        "a mode in which only the group writes",
        "If nobody outside the group has written to it: chmod o-w {0}",
    ),
}
# The errors for opening a link, a file instead of a directory, a socket, or a device without
# driver.
_OTHER_KIND = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.ENXIO, errno.ENODEV})
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
# Linux skips the journal if only data changed; not every system has the call.
sync_data = getattr(os, "fdatasync", os.fsync)


class Unsafe(Exception):  # users never see it: callers raise their own error
    """A file has the wrong kind or owner, or is open to others.

    Args:
        text: The expected and the found value.
        repair: The commands that fix it, with `{0}` for its path.
    """

    def __init__(self, text: str, repair: str | None = None) -> None:
        super().__init__(text)
        self._repair = repair

    def hint(self, path: str | Path) -> str | None:
        """Return instructions that fix it; None if that depends on the case."""
        return None if self._repair is None else self._repair.format(shlex.quote(str(path)))


@contextlib.contextmanager
def refusing(
    error: type[SealpointError], path: str | Path, named: str | None = None
) -> Iterator[None]:
    """Raise an `Unsafe` about a path as an error of the caller's type, with the fix."""
    try:
        yield
    except Unsafe as exc:
        raise error(f"{named or path}: {exc}", hint=exc.hint(path)) from exc


@contextlib.contextmanager
def reporting(error: type[SealpointError], expected: str) -> Iterator[None]:
    """Raise system errors as an error of the caller's type.

    Args:
        error: Its class.
        expected: The path, and what was expected.
    """
    try:
        yield
    except OSError as exc:
        raise error(f"{expected}, found {exc.strerror or type(exc).__name__}") from exc


def has_owners() -> bool:
    """Whether files have owners and modes on this system."""
    return hasattr(os, "geteuid")


def kind_of(found: os.stat_result) -> str:
    """Return the kind of a file, in words."""
    return _KINDS.get(stat.S_IFMT(found.st_mode), "something else")


def permission_denied(path: Path) -> tuple[str, str]:
    """Return who owns the lowest accessible part of a path, and what its user can do."""
    whose = "permission denied"
    for part in (path, *path.parents):
        with contextlib.suppress(OSError):
            found = part.lstat()
            whose += (
                f": {part} is of user {found.st_uid} and group {found.st_gid}, "
                f"mode {stat.S_IMODE(found.st_mode):04o}"
            )
            break
    return whose, (
        "Run this as that user. To share a store among users, make it for a group: "
        "sealpoint init --group NAME, and sealpoint trust import PIN --group NAME."
    )


def require_safe(
    found: os.stat_result,
    kind: int,
    *,
    group: int | None = None,
    root_too: bool = False,
    refused: int = OTHERS_WRITE,
) -> None:
    """Refuse a file or directory that other users could have created or changed.

    Args:
        found: Its status.
        kind: `FILE` or `DIRECTORY`.
        group: The group that shares it; None: it belongs to this user alone.
        root_too: Whether root may own it instead.
        refused: The mode bits of others that make it unsafe, unless a group shares it.

    Raises:
        Unsafe: It is unsafe.
    """
    if stat.S_IFMT(found.st_mode) != kind:
        raise Unsafe(f"expected {_KINDS[kind]}, found {kind_of(found)}")
    if group is None:
        require_owner(found, root_too=root_too)
        require_mode(found, refused)
        return
    if found.st_gid != group:
        mode = GROUP_DIRECTORY if kind == DIRECTORY else GROUP_FILE
        raise Unsafe(
            f"expected group {group}, which shares it, found group {found.st_gid}",
            f"Run: chgrp -h -- {group} {{0}}; chmod -- {mode:o} {{0}}",
        )
    require_mode(found, STRANGERS_WRITE)


def require_owner(found: os.stat_result, *, root_too: bool = False) -> None:
    """Refuse a file that does not belong to this user, or to root if `root_too`.

    Raises:
        Unsafe: It belongs to another user.
    """
    if not has_owners():
        return
    user = os.geteuid()
    if found.st_uid != user and not (root_too and found.st_uid == _ROOT_USER):
        raise Unsafe(
            f"expected user {user} as its owner, found user {found.st_uid}",
            f"If you know how it came there and trust what it holds: sudo chown {user} {{0}}",
        )


def require_mode(found: os.stat_result, refused: int) -> None:
    """Refuse a file with any of these mode bits.

    Raises:
        Unsafe: It has one.
    """
    mode = stat.S_IMODE(found.st_mode)
    if has_owners() and mode & refused:
        expected, repair = _MODES[refused]
        raise Unsafe(f"expected {expected}, found {mode:04o}", repair)


def open_plain(
    path: str | Path,
    kind: int,
    *,
    within: int | None = None,
    follow: bool = False,
    writable: bool = False,
) -> int:
    """Open a file or directory; the caller checks the result.

    Args:
        path: Its path, or its name in `within`.
        kind: `FILE` or `DIRECTORY`.
        within: An open directory.
        follow: Whether to follow links.
        writable: Whether to open a file for reading and writing.

    Raises:
        Unsafe: It has another kind.
        OSError: It cannot be opened, or does not exist.
    """
    flags = _FLAGS[kind] | (os.O_RDWR if writable else os.O_RDONLY)
    if not follow:
        flags |= _NO_FOLLOW
    try:
        return os.open(path, flags, dir_fd=within)
    except OSError as exc:
        if exc.errno not in _OTHER_KIND:
            raise
        found = os.stat(path, dir_fd=within, follow_symlinks=follow)
        if stat.S_IFMT(found.st_mode) == kind:
            raise
        raise Unsafe(f"expected {_KINDS[kind]}, found {kind_of(found)}") from exc


def open_safe(
    path: str | Path,
    kind: int,
    *,
    within: int | None = None,
    group: int | None = None,
    writable: bool = False,
) -> tuple[int, os.stat_result]:
    """Open a file or directory of this user, or of a group, and return its status too.

    Raises:
        Unsafe: It has another kind or owner, or others can write it.
        OSError: It cannot be opened, or does not exist.
    """
    descriptor = open_plain(path, kind, within=within, writable=writable)
    try:
        found = os.fstat(descriptor)
        # Check the usual case first: a store of files opens several directories for each call.
        if (
            group is not None
            or found.st_mode & _KIND_AND_OTHERS != kind
            or found.st_uid != os.geteuid()
        ):
            require_safe(found, kind, group=group)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found


def sync(descriptor: int) -> None:
    """Wait until a file's bytes, or a directory's names, are on the disk."""
    if _FULL_SYNC is None:
        os.fsync(descriptor)
    else:
        # On macOS a plain fsync leaves the bytes in the drive's cache.
        fcntl.fcntl(descriptor, _FULL_SYNC)


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory are on the disk."""
    with contextlib.ExitStack() as opened:
        sync(_opened(opened, path))


def write_all(descriptor: int, data: bytes) -> None:
    """Write all the bytes at the file's current position."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def new_file(name: str, *, within: int, mode: int = OWN_FILE, group: int | None = None) -> int:
    """Create an empty file in an open directory, and open it for reading and writing.

    Args:
        name: Its name.
        within: The directory.
        mode: Its mode, regardless of the umask.
        group: The group that shares it, if any.

    Raises:
        FileExistsError: The name is taken.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
    descriptor = os.open(name, flags, OWN_FILE, dir_fd=within)
    try:
        if group is not None:
            os.fchown(descriptor, -1, group)
            mode = GROUP_FILE if mode == OWN_FILE else mode
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)
    except BaseException:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=within)
        raise
    return descriptor


def publish(draft: str, name: str, *, within: int, replace: bool) -> None:
    """Rename a synced draft to its final name, and sync the directory.

    Args:
        draft: The current name.
        name: The final name.
        within: The open directory of both.
        replace: Whether to replace an existing file of that name.

    Raises:
        FileExistsError: The name is taken, and `replace` is false.
    """
    if replace:
        os.replace(draft, name, src_dir_fd=within, dst_dir_fd=within)
    else:
        try:
            # Unlike a rename, a hard link never replaces a file. If someone replaced the draft by a
            # symbolic link, `follow_symlinks=False` keeps the target of that link from getting the
            # name.
            os.link(draft, name, src_dir_fd=within, dst_dir_fd=within, follow_symlinks=False)
        finally:
            os.unlink(draft, dir_fd=within)
    sync(within)


def write_file(
    path: Path, data: bytes, *, replace: bool, mode: int = OWN_FILE, group: int | None = None
) -> None:
    """Write a complete file, and sync the file and its name to the disk.

    Args:
        path: The file.
        data: Its content.
        replace: Whether to replace an existing file; otherwise that stays.
        mode: Its mode.
        group: The group that shares it, if any.

    Raises:
        FileExistsError: The file exists, and `replace` is false.
        OSError: It cannot be written, or another file was put in its place.
    """
    draft = f"{_DRAFT_PREFIX}{os.urandom(8).hex()}"
    with contextlib.ExitStack() as opened:
        within = _opened(opened, path.parent)
        descriptor = new_file(draft, within=within, mode=mode, group=group)
        opened.callback(os.close, descriptor)
        try:
            write_all(descriptor, data)
            sync(descriptor)
            publish(draft, path.name, within=within, replace=replace)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=within)
            raise
        named = os.stat(path.name, dir_fd=within, follow_symlinks=False)
        # When this replaces a file, a concurrent writer may legitimately replace it again; when
        # this creates one, no one may.
        is_other = not os.path.samestat(named, os.fstat(descriptor))
        if is_other and (group is not None or not replace):
            raise OSError(errno.ESTALE, _ANOTHER)


def move_file(source: Path, target: Path) -> None:
    """Rename a durable file over another one in the same directory, whose content is then gone."""
    with contextlib.ExitStack() as opened:
        # Open this before replacing anything: a directory need not be readable.
        within = _opened(opened, target.parent)
        source.replace(target)
        sync(within)


def make_directory(path: Path, group: int | None = None, *, parents: bool = False) -> None:
    """Create a directory unless its name is taken; whatever has the name stays as it is.

    Args:
        path: The directory.
        group: The number of the group that may read and write in it, in addition to this user.
        parents: Whether to create missing parent directories in the same way.

    Raises:
        FileNotFoundError: The parent directory does not exist.
        OSError: It cannot be created, or another directory or a link was put in its place.
    """
    missing = [part for part in (path, *path.parents) if not os.path.lexists(part)]
    with contextlib.suppress(OSError):
        # The process that created the lowest existing directory may have died before its name was
        # on the disk.
        lowest = missing[-1].parent if missing else path
        sync_directory(lowest.parent)
    if not missing:
        return
    if not parents:
        del missing[1:]
    with contextlib.ExitStack() as opened:
        within = _opened(opened, missing[-1].parent)
        for part in reversed(missing):
            is_new = True
            try:
                os.mkdir(part.name, OWN_DIRECTORY, dir_fd=within)
            except FileExistsError:
                is_new = False  # another process was faster, and opens it to the group itself
            made = _opened(opened, part.name, within)
            if is_new and group is not None:
                _share(made, group)
            sync(within)
            within = made


def _opened(opened: contextlib.ExitStack, path: Path | str, within: int | None = None) -> int:
    """Open a directory; refuse a link if it is below another open directory."""
    flags = os.O_RDONLY | _FLAGS[DIRECTORY]
    descriptor = os.open(path, flags | (0 if within is None else _NO_FOLLOW), dir_fd=within)
    opened.callback(os.close, descriptor)
    return descriptor


def _share(descriptor: int, group: int) -> None:
    """Open a directory to a group, if it is as new as the one that was created."""
    # An empty directory of this user contains nothing that the members could not see anyway.
    if os.fstat(descriptor).st_uid != os.geteuid() or os.listdir(descriptor):
        raise OSError(errno.ESTALE, _ANOTHER)
    os.fchown(descriptor, -1, group)
    os.fchmod(descriptor, GROUP_DIRECTORY)


def wait_for_lock(descriptor: int, wait_s: float, *, shared: bool = False) -> bool:
    """Take the lock of an open file or directory; the lock ends with the process at the latest.

    Returns:
        Whether it was free, or became free in time.
    """
    kind = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    deadline = pause = 0.0
    while True:
        try:
            fcntl.flock(descriptor, kind)
            return True
        except BlockingIOError:
            now = time.monotonic()
            deadline = deadline or now + wait_s
            if now > deadline:
                return False
        pause = min(pause * 2 or _LOCK_PAUSE_S, _LOCK_PAUSE_MAX_S)
        time.sleep(pause)
