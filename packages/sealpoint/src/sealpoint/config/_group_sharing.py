# SPDX-License-Identifier: Apache-2.0
"""A store that a group of users of one machine shares, on purpose.

Each user has declared this in a file of their own, `group.json` next to their keys: the group, by
name and number, and the directory of the shared anchor. It is never learned from the store, from
the shared directory or from a mode: a directory that others may write is refused unless its user
declared the group. The members share the store, the anchor and the secret that keys the anchor's
slots; private keys and pins stay with each member. ADR 0020 explains the consequences.
"""

import os
import shlex
import stat
from pathlib import Path

import msgspec

from sealpoint import disk
from sealpoint.disk import FILE, GROUP_DIRECTORY, GROUP_FILE, STRANGERS_ANY, refusing, reporting
from sealpoint.errors import DirectoryUnusable, KeyFileUnsafe, KeyMissing, UsageError

try:
    import grp
except ImportError:  # pragma: no cover - only where there is no POSIX
    grp = None  # type: ignore[assignment]


_SECRET_MODE = 0o640
_SHARED_NAME = "slots.key"
_SECRET_BYTES_MAX = 128
_GROUP_OWNS = 0o2070
_GROUP_USES = 0o060


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A group of users who share a store, as one of them has declared it."""

    name: str
    gid: int
    state_dir: str
    """The directory of the shared anchor."""

    @classmethod
    def find(cls, name: str, state_dir: Path) -> "Group":
        """Find the group of a name on this machine.

        Raises:
            UsageError: There is none.
        """
        try:
            gid = grp.getgrnam(name).gr_gid
        except (KeyError, AttributeError) as exc:  # the latter on a system without groups
            raise UsageError(
                f"group {name!r}: this machine has no such group",
                hint=f"An administrator makes it: groupadd {name}; usermod -aG {name} USER",
            ) from exc
        return cls(name=name, gid=gid, state_dir=str(state_dir))

    def require_member(self) -> None:
        """Refuse to share with a group that this user does not belong to.

        Raises:
            UsageError: The user is not a member.
        """
        if os.geteuid() != 0 and self.gid not in (os.getegid(), *os.getgroups()):
            raise UsageError(
                f"group {self.name!r}: this user is not a member of it",
                hint=f"An administrator runs: usermod -aG {self.name} USER; then log in again.",
            )


def make_shared_directory(path: Path, group: Group) -> None:
    """Create a directory that the members of a group share, or check that it is one.

    Raises:
        DirectoryUnusable: It cannot be created, or belongs to another group.
    """
    with reporting(DirectoryUnusable, f"{path}: expected a directory to share"):
        disk.make_directory(path, group.gid, parents=True)
    fault = _directory_fault(path, group)
    if fault is not None:
        raise DirectoryUnusable(f"{path}: {fault[0]}", hint=f"Run: {fault[1]}")
    _require_reachable(path, group)


def _require_reachable(path: Path, group: Group) -> None:
    """Refuse a directory below one that the other members cannot enter, such as a home."""
    for parent in path.parents:
        found = parent.stat()
        inner = found.st_mode & stat.S_IXGRP and found.st_gid == group.gid
        if not inner and not found.st_mode & stat.S_IXOTH:
            raise DirectoryUnusable(
                f"{path}: members of {group.name!r} cannot reach it, because {parent} keeps them "
                "out",
                hint="Name a directory that the group shares, such as --state-dir "
                f"/srv/{group.name}/state and --store sqlite:////srv/{group.name}/store/agents.db",
            )


def share_secret(directory: Path, secret: bytes, group: Group) -> None:
    """Write the secret that keys the anchor's slots to a file that the members can read.

    Raises:
        DirectoryUnusable: The directory cannot be written.
    """
    with reporting(DirectoryUnusable, f"{directory}: expected to write {_SHARED_NAME} there"):
        disk.write_file(
            directory / _SHARED_NAME,
            f"{secret.hex()}\n".encode(),
            replace=True,
            mode=_SECRET_MODE,
            group=group.gid,
        )


def read_shared_secret(directory: Path, group: Group) -> bytes:
    """Read the secret that a member wrote there.

    Raises:
        KeyMissing: There is none, or this user may not read it.
        KeyFileUnsafe: It belongs to another group, or others can read or change it.
    """
    path = directory / _SHARED_NAME
    try:
        with refusing(KeyFileUnsafe, path):
            descriptor = disk.open_plain(path, FILE)
    except OSError as exc:
        raise KeyMissing(
            f"group {group.name!r}: the anchor's secret at {path} cannot be read: {exc.strerror}",
            hint="Name the --state-dir that sealpoint init --group was given, and be a member of "
            "the group.",
        ) from exc
    try:
        found = os.fstat(descriptor)
        with refusing(KeyFileUnsafe, path):
            disk.require_safe(found, FILE, group=group.gid)
            disk.require_mode(found, STRANGERS_ANY)
        data = os.read(descriptor, _SECRET_BYTES_MAX)
    finally:
        os.close(descriptor)
    try:
        secret = bytes.fromhex(data.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != 32 or f"{secret.hex()}\n".encode() != data:  # noqa: PLR2004 # a SHA-256
        raise KeyFileUnsafe(
            f"{path}: expected 64 hexadecimal digits, found {len(data)} bytes of another form"
        )
    return secret


def group_faults(group: Group, directories: list[Path], files: list[Path]) -> list[tuple[str, str]]:
    """Find modes of shared files that lock members out, or let others in.

    Returns:
        For each, a description and the command that fixes it.
    """
    found = []
    for path in directories:
        fault = _directory_fault(path, group)
        if fault is not None:
            found.append((f"{path}: {fault[0]}", fault[1]))
    for path in files:
        fault = _file_fault(path, group)
        if fault is not None:
            found.append((f"{path}: {fault[0]}", fault[1]))
    return found


def _directory_fault(path: Path, group: Group) -> tuple[str, str] | None:
    try:
        found = path.stat()
        is_link = path.is_symlink()
    except OSError as exc:
        return f"expected a directory, found {exc.strerror}", _look(path)
    fault = _mode_fault(found, group, mode=GROUP_DIRECTORY, needed=_GROUP_OWNS)
    if fault is None:
        return None
    if is_link:
        return f"{fault} where a symbolic link leads", _look(path)
    return fault, _repair(path, group, GROUP_DIRECTORY)


def _file_fault(path: Path, group: Group) -> tuple[str, str] | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as exc:
        return f"expected a file, found {exc.strerror}", _look(path)
    if stat.S_ISLNK(found.st_mode):
        return "expected a file, found a symbolic link", _look(path)
    fault = _mode_fault(found, group, mode=GROUP_FILE, needed=_GROUP_USES)
    return None if fault is None else (fault, _repair(path, group, GROUP_FILE))


def _mode_fault(found: os.stat_result, group: Group, *, mode: int, needed: int) -> str | None:
    """Describe what is wrong with the group or the mode of a shared file or directory."""
    if found.st_gid != group.gid:
        return f"expected group {group.name!r}, found group {found.st_gid}"
    found_mode = stat.S_IMODE(found.st_mode)
    if found_mode & needed != needed or found_mode & stat.S_IWOTH:
        return f"expected mode {mode:04o}, found {found_mode:04o}"
    return None


def _look(path: Path) -> str:
    """Return a command that shows a link: changing modes would affect the link's target."""
    return f"ls -ld -- {shlex.quote(str(path))}"


def _repair(path: Path, group: Group, mode: int) -> str:
    """Return the commands that give a file or directory its group and mode; for a shell."""
    place = shlex.quote(str(path))
    return f"chgrp -h -- {shlex.quote(group.name)} {place}; chmod -- {mode:o} {place}"
