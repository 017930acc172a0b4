# SPDX-License-Identifier: Apache-2.0
"""How files and directories are opened, checked, made and brought to the disk: said here once.

- What is opened is asked what it is through its descriptor, so that nothing can be put in its place
  between the check and the use. No link is followed unless the caller says so, and no pipe waited
  for. What is of another kind, of another owner, or open to others is `Unsafe`.
- A file gets its name only when its bytes are on the disk, and the name is on the disk when the
  call returns: a crash leaves the old file, the new one or none, and never a part of one.
- A directory's name is on the disk before anything is made in it.
- Files are for this user alone, or for a group of users who share them on purpose: then they are of
  that group, whoever of it owns them, and nobody else may write them. A member can rename whatever
  another makes in a shared directory and put a link in its place. So there nothing is changed by
  its path: it is made in an open directory, opened without following a link, and opened to the
  group through its descriptor, after a look whether it is still the one that was made.

`Unsafe` and `OSError` are never an answer to a user: every caller raises them as an error of its
own. Where the system has no owners and modes, as on Windows, only the kind of a file is checked.
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
# Not every system has all of them. Without O_NONBLOCK, a pipe in the place of a file would block
# for ever.
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
# What opening a link, a file in place of a directory, a socket or a device without driver gives.
_OTHER_KIND = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.ENXIO, errno.ENODEV})
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
# Linux spares the journal when nothing but data changed; not every system has the call.
sync_data = getattr(os, "fdatasync", os.fsync)


class Unsafe(Exception):  # never seen by users: callers raise an error of theirs
    """Something is of another kind or owner than it should be, or open to others.

    Args:
        text: What was expected and found.
        repair: How it is put right, with `{0}` for its path.
    """

    def __init__(self, text: str, repair: str | None = None) -> None:
        super().__init__(text)
        self._repair = repair

    def hint(self, path: str | Path) -> str | None:
        """How it is put right, in words that can be followed; None if that depends."""
        return None if self._repair is None else self._repair.format(shlex.quote(str(path)))


@contextlib.contextmanager
def refusing(
    error: type[SealpointError], path: str | Path, named: str | None = None
) -> Iterator[None]:
    """Raise what is unsafe about a path as an error of the caller's that says how to repair it."""
    try:
        yield
    except Unsafe as exc:
        raise error(f"{named or path}: {exc}", hint=exc.hint(path)) from exc


@contextlib.contextmanager
def reporting(error: type[SealpointError], expected: str) -> Iterator[None]:
    """Raise failures of the system as an error of the caller's.

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
    """What something is, in words."""
    return _KINDS.get(stat.S_IFMT(found.st_mode), "something else")


def permission_denied(path: Path) -> tuple[str, str]:
    """Whose the lowest part of a path is that can be looked at, and what its user can do."""
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
    """Refuse a file or directory that others could have put there or changed.

    Args:
        found: What is there.
        kind: `FILE` or `DIRECTORY`.
        group: The group whose members share it; None: it is this user's own.
        root_too: Whether it may be root's instead.
        refused: The modes of others that make it unsafe, unless a group shares it.

    Raises:
        Unsafe: It is one.
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
    """Refuse what is not this user's own, or root's where that is as good.

    Raises:
        Unsafe: It is somebody else's.
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
    """Refuse what others may do too much with.

    Raises:
        Unsafe: They may.
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
    """Open a file or directory; the caller checks what was opened.

    Args:
        path: Its path, or its name in `within`.
        kind: `FILE` or `DIRECTORY`.
        within: An open directory.
        follow: Whether a link may lead to it.
        writable: Whether to open a file for reading and writing.

    Raises:
        Unsafe: Something of another kind lies there.
        OSError: It cannot be opened, or there is none.
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
    """Open a file or directory of this user's, or of a group's, and say what it is.

    Raises:
        Unsafe: It is of another kind or owner, or others can write it.
        OSError: It cannot be opened, or there is none.
    """
    descriptor = open_plain(path, kind, within=within, writable=writable)
    try:
        found = os.fstat(descriptor)
        # The usual case first: a store of files opens several directories for each call.
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
        # On macOS a plain fsync leaves the bytes in the drive.
        fcntl.fcntl(descriptor, _FULL_SYNC)


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory are on the disk."""
    with contextlib.ExitStack() as opened:
        sync(_opened(opened, path))


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of some bytes where a file stands."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def new_file(name: str, *, within: int, mode: int = OWN_FILE, group: int | None = None) -> int:
    """Make an empty file in an open directory, and open it for reading and writing.

    Args:
        name: Its name.
        within: The directory.
        mode: Its mode, whatever mask the process has.
        group: The group whose members share it, if they do.

    Raises:
        FileExistsError: There is something of this name.
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
    """Give a file that is on the disk its name, on the disk too; it loses its draft's name.

    Args:
        draft: What it is called so far.
        name: What it is to be called.
        within: The open directory of both.
        replace: Whether it takes the place of what has the name.

    Raises:
        FileExistsError: Something has the name, and it is not to be replaced.
    """
    if replace:
        os.replace(draft, name, src_dir_fd=within, dst_dir_fd=within)
    else:
        try:
            # Unlike a rename, a second name is never given in the place of a file. Whoever put a
            # link in the place of the draft does not get what it leads to named.
            os.link(draft, name, src_dir_fd=within, dst_dir_fd=within, follow_symlinks=False)
        finally:
            os.unlink(draft, dir_fd=within)
    sync(within)


def write_file(
    path: Path, data: bytes, *, replace: bool, mode: int = OWN_FILE, group: int | None = None
) -> None:
    """Write a whole file, and let it and its name reach the disk.

    Args:
        path: The file.
        data: What it holds.
        replace: Whether it takes the place of another; else one that is there stays.
        mode: Its mode.
        group: The group whose members share it, if they do.

    Raises:
        FileExistsError: There is one, and it is not to be replaced.
        OSError: It cannot be written, or another was put in its place.
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
        # Who replaces a file may meet somebody else who does; who makes one meets nobody.
        is_other = not os.path.samestat(named, os.fstat(descriptor))
        if is_other and (group is not None or not replace):
            raise OSError(errno.ESTALE, _ANOTHER)


def move_file(source: Path, target: Path) -> None:
    """Give a durable file the name of another in its directory, whose content is gone with that."""
    with contextlib.ExitStack() as opened:
        # Before anything is replaced: a directory need not be readable.
        within = _opened(opened, target.parent)
        source.replace(target)
        sync(within)


def make_directory(path: Path, group: int | None = None, *, parents: bool = False) -> None:
    """Make a directory unless there is something of its name, which stays as it is.

    Args:
        path: The directory.
        group: The number of the group whose members may read and write in it, beside this user.
        parents: Whether to make what is missing above it, too, in the same way.

    Raises:
        FileNotFoundError: There is nothing to make it in.
        OSError: It cannot be made, or another directory or a link was put in its place.
    """
    missing = [part for part in (path, *path.parents) if not os.path.lexists(part)]
    with contextlib.suppress(OSError):
        # Whoever made the lowest that is there may have died before its name was on the disk.
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
                is_new = False  # Another process was faster, and opens it to the group itself.
            made = _opened(opened, part.name, within)
            if is_new and group is not None:
                _share(made, group)
            sync(within)
            within = made


def _opened(opened: contextlib.ExitStack, path: Path | str, within: int | None = None) -> int:
    """Open a directory; one below another that is open must not be a link."""
    flags = os.O_RDONLY | _FLAGS[DIRECTORY]
    descriptor = os.open(path, flags | (0 if within is None else _NO_FOLLOW), dir_fd=within)
    opened.callback(os.close, descriptor)
    return descriptor


def _share(descriptor: int, group: int) -> None:
    """Open a directory to a group, if it is as new as the one that was made."""
    # One that is this user's and empty holds nothing that the members could not see anyway.
    if os.fstat(descriptor).st_uid != os.geteuid() or os.listdir(descriptor):
        raise OSError(errno.ESTALE, _ANOTHER)
    os.fchown(descriptor, -1, group)
    os.fchmod(descriptor, GROUP_DIRECTORY)


def wait_for_lock(descriptor: int, wait_s: float, *, shared: bool = False) -> bool:
    """Take the lock of an open file or directory, which ends with the process at the latest.

    Returns:
        Whether it was free, or became so in time.
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
