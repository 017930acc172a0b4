# SPDX-License-Identifier: Apache-2.0
"""The settings of a guard: the table `[openclaw]` of config.toml, and the secret of its digests.

Both are in the configuration directory of the guard, which only its user may change. A place
that the gateway's user could reach is refused: a user who can seal a change can hide it.
"""

import json
import os
import pwd
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path

import sealpoint
from sealpoint.api import Store
from sealpoint.cli.stores import asked_passphrase
from sealpoint.config import (
    load_settings,
    read_passphrase_file,
    read_settings_file,
    replace_file,
    write_new_file,
)
from sealpoint.errors import ConfigError, GuardExposed, UsageError
from sealpoint_openclaw._folder import Folder
from sealpoint_openclaw._guard import Guard
from sealpoint_openclaw._inventory import KEY_BYTES, Digests
from sealpoint_openclaw._plugin_folder import require_readable, write_plugin_folder

DEFAULT_THREAD = "openclaw"

_TABLE = "openclaw"
_KEYS = {
    "folder": str,
    "user": int,
    "store": str,
    "thread": str,
    "same_user": bool,
    "gate": str,
    "folders": dict,
}
_SECRET = "openclaw.key"  # noqa: S105 # nosec B105 # the name of a file
_NAME = "config.toml"
_SQLITE = "sqlite:///"
_GATE = Path("/var/lib/sealpoint-openclaw/gate")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSettings:
    """Where a gateway is, and where its guard keeps the seals."""

    folder: Folder
    user: int
    """The uid of the gateway: whose the folder was at `init`, and who runs every command."""
    store: str
    """The URL of the store."""
    thread: str = DEFAULT_THREAD
    namespace: str = "default"
    same_user: bool = False
    """Whether guard and gateway are known to run as one user."""
    gate: Path
    """The folder of the plugin and its socket, which the gateway's user may read."""
    config_dir: Path
    state_dir: Path
    runtime: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, *, config_dir: str | None, state_dir: str | None) -> "GuardSettings":
        """Read the settings that `init` wrote.

        Raises:
            UsageError: There are none.
            ConfigError: They are malformed.
        """
        found = load_settings(config_dir=config_dir, state_dir=state_dir)
        table = read_settings_file(found.config_dir).get(_TABLE)
        path = found.config_dir / _NAME
        if table is None:
            raise UsageError(
                f"{path}: no OpenClaw is guarded from here",
                hint="Make the first seal: sealpoint openclaw init --folder DIR",
            )
        for key, value in table.items():
            if key not in _KEYS or type(value) is not _KEYS[key]:
                known = ", ".join(_KEYS)
                raise ConfigError(f"{path}: openclaw.{key}: unknown, or malformed; known: {known}")
        if not {"folder", "user", "store", "gate"} <= table.keys():
            raise ConfigError(
                f"{path}: [openclaw] needs folder, user, store and gate",
                hint="Add what is missing. `user` is the number that `id -u NAME` prints for the "
                "user of the gateway.",
            )
        others = table.get("folders", {})
        return cls(
            folder=Folder(
                root=Path(table["folder"]),
                others={name: Path(str(other)) for name, other in others.items()},
            ),
            user=table["user"],
            store=table["store"],
            thread=table.get("thread", DEFAULT_THREAD),
            namespace=found.namespace,
            same_user=table.get("same_user", False),
            gate=Path(table["gate"]),
            config_dir=found.config_dir,
            state_dir=found.state_dir,
        )

    def write(self) -> None:
        """Add the table to config.toml, and the store as the one of all verbs if it names none.

        Raises:
            UsageError: It has one.
        """
        path = self.config_dir / _NAME
        known = read_settings_file(self.config_dir)
        if _TABLE in known:
            raise UsageError(
                f"{path}: it has a table [openclaw] already",
                hint="sealpoint openclaw status shows it. For another gateway, use another "
                "directory: --config-dir DIR",
            )
        before = path.read_text("utf-8") if path.exists() else ""
        if "store" not in known:
            before = f"store = {json.dumps(self.store)}\n{before}"
        replace_file(path, f"{before}{_gap(before)}{self._toml()}".encode())

    def _toml(self) -> str:
        lines = [
            f"[{_TABLE}]",
            f"folder = {json.dumps(str(self.folder.root))}",
            f"user = {self.user}",
            f"store = {json.dumps(self.store)}",
            f"thread = {json.dumps(self.thread)}",
            f"same_user = {json.dumps(self.same_user)}",
            f"gate = {json.dumps(str(self.gate))}",
        ]
        if self.folder.others:
            lines += ["", f"[{_TABLE}.folders]"]
            lines += [
                f"{json.dumps(name)} = {json.dumps(str(other))}"
                for name, other in self.folder.others.items()
            ]
        return "\n".join(lines) + "\n"

    # ------------------------------------------------------------------ who can reach what

    def check_reach(self) -> None:
        """Refuse keys, a store or an anchor that the gateway's user can reach.

        Raises:
            GuardExposed: They are inside the gateway's folder, or its user could change them; or
                the folder is not the one of this user any more.
        """
        found = self.folder.root.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != self.user:
            raise GuardExposed(
                f"{self.folder.root}: expected a directory of uid {self.user}, the gateway's user "
                f"at `init`; found {'one' if stat.S_ISDIR(found.st_mode) else 'a link or file'} of "
                f"uid {found.st_uid}",
                hint="Find out who replaced it. If this is meant, change folder and user in the "
                "table [openclaw] of config.toml.",
            )
        directories = [self.config_dir, self.state_dir, *self.store_directory(), self.gate]
        guarded = [self.folder.root, *self.folder.others.values()]
        for path in directories:
            for folder in guarded:
                if path.resolve().is_relative_to(folder.resolve()):
                    raise GuardExposed(
                        f"{path}: keys, seals and anchor must be outside of {folder}",
                        hint="Name other directories: --config-dir, --state-dir and --store.",
                    )
        if self.is_same_user():
            if not self.same_user:
                raise GuardExposed(
                    f"{self.folder.root}: OpenClaw's files belong to the user of this guard, so "
                    "the gateway and its agents could read the guard's keys",
                    hint="Run the guard as root or another user. If you accept that it protects "
                    "only against others: sealpoint openclaw init --same-user",
                )
            return
        groups = _groups(self.user)
        for path in dict.fromkeys(each for own_path in self._own() for each in _leading(own_path)):
            if _may_write(path, self.user, groups):
                raise GuardExposed(
                    f"{path}: the user of the gateway (uid {self.user}) can change or replace what "
                    "the guard keeps here",
                    hint="Name other directories, or give it to the guard's user alone: chown and "
                    f"chmod go-w {path}",
                )

    def is_same_user(self) -> bool:
        """Whether the gateway's user can do whatever the guard's user can."""
        return self.user in {0, os.geteuid()}

    def _own(self) -> Iterator[Path]:
        """Yield the guard's files and directories: keys, anchor, plugin, and the store."""
        roots = [self.config_dir, self.state_dir, self.gate]
        for path in self._store_path():
            # SQLite keeps more files next to a database.
            roots += [path, *path.parent.glob(f"{escape(path.name)}-*")]
        for root in roots:
            yield root
            for directory, names, files in os.walk(root):
                yield from (Path(directory, name) for name in (*names, *files))

    def _store_path(self) -> list[Path]:
        """Return the file or directory of the store, if it is on this machine."""
        for scheme in (_SQLITE, "file://"):
            if self.store.startswith(scheme):
                return [Path(self.store.removeprefix(scheme)).absolute()]
        return []

    def store_directory(self) -> list[Path]:
        """Return the directory that the store is in, if it is on this machine."""
        return [path.parent for path in self._store_path()]

    # ------------------------------------------------------------------ opening

    def make_secret(self) -> None:
        """Make the secret of the digests, unless it exists."""
        write_new_file(self.config_dir / _SECRET, f"{secrets.token_hex(KEY_BYTES)}\n".encode())

    def digests(self) -> Digests:
        """Return what makes digests with the guard's secret.

        Raises:
            ConfigError: There is no secret.
            KeyFileUnsafe: Others can read it.
        """
        path = self.config_dir / _SECRET
        text = read_passphrase_file(str(path), _SECRET)
        try:
            return Digests(bytes.fromhex(text))
        except ValueError as exc:
            raise ConfigError(f"{path}: expected {KEY_BYTES} bytes in hexadecimal digits") from exc

    def open_store(self, *, identity: str | None = None, read_only: bool = False) -> Store:
        """Open the store of the seals."""
        return sealpoint.open_store(
            self.store,
            identity=identity,
            namespace=self.namespace,
            config_dir=self.config_dir,
            state_dir=self.state_dir,
            read_only=read_only,
            passphrase=None if read_only else asked_passphrase,
        )

    def write_plugin(self) -> None:
        """Write the plugin of this version, and what loads it.

        Raises:
            GuardExposed: The gateway's user cannot read it.
        """
        verb = ("openclaw", "run", "--config-dir", self.config_dir, "--state-dir")
        write_plugin_folder(self.gate, (*map(str, verb), str(self.state_dir)))
        if not self.is_same_user():
            require_readable(self.gate, self.user)

    def guard(self, store: Store) -> Guard:
        """Return the guard of the gateway."""
        return Guard(store.thread, self.thread, self.folder, self.digests(), self.runtime)


def _gap(text: str) -> str:
    return "\n" if text.endswith("\n") else "\n\n"


def _leading(path: Path) -> tuple[Path, ...]:
    """Return what a path leads to, and the directories on the way."""
    resolved = path.resolve()
    return (resolved, *resolved.parents)


def _groups(uid: int) -> frozenset[int]:
    """Return the groups of a user; none if this machine does not know the user."""
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return frozenset()
    return frozenset(os.getgrouplist(user.pw_name, user.pw_gid))


def _may_write(path: Path, uid: int, groups: frozenset[int]) -> bool:
    """Whether a user may change a file, or replace names in a directory.

    A sticky directory lets nobody replace ours. The guard's socket is for the gateway.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    if stat.S_ISSOCK(found.st_mode):
        return False
    if found.st_uid == uid:
        return True
    wide = stat.S_IWOTH | (stat.S_IWGRP if found.st_gid in groups else 0)
    return bool(found.st_mode & wide) and not (
        stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    )


def default_store(state_dir: Path) -> str:
    """Return the URL of the store that `init` makes if none is named."""
    return f"{_SQLITE}{state_dir.with_name(f'{state_dir.name}-openclaw') / 'seals.db'}"


def default_gate(user: int, store: str) -> Path:
    """Return the folder of the plugin that `init` makes if none is named."""
    if user in {0, os.geteuid()} and store.startswith(_SQLITE):
        return Path(store.removeprefix(_SQLITE)).parent / "gate"
    return _GATE
