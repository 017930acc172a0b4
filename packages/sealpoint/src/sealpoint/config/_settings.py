# SPDX-License-Identifier: Apache-2.0
"""Settings: an argument before the environment before `config.toml` before the default.

The file is strict: an unknown key is an error, since silently ignoring a misspelled setting would
be worse. The store URL and the namespace are passed on unchanged, and checked where they are used.
Importing a module reads nothing.

The name of an identity is safe as a file name on every system. It is lower case only, so that two
names never share one file on a file system that ignores case; it has no separator and no leading
dot, so that a name never leaves its directory or is hidden in it.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from sealpoint.config._protected_files import check_directory, read_file
from sealpoint.errors import ConfigError, DirectoryUnusable, NameInvalid

_IDENTITY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_FOUND_CHARS_MAX = 80


def check_identity_name(name: str) -> str:
    """Check the name of an identity, and return it.

    Raises:
        NameInvalid: An identity cannot have this name.
    """
    if _IDENTITY.fullmatch(name) is None:
        raise NameInvalid(
            "identity name: expected 1 to 64 of a-z, 0-9, dot, underscore and hyphen, beginning "
            f"with a letter or digit, found {name[:_FOUND_CHARS_MAX]!r}",
            hint="Choose a name such as worker, alice or billing-2.",
        )
    return name


_APPLICATION = "sealpoint"
_FILE_NAME = "config.toml"
_FILE_BYTES_MAX = 64 * 1024
_FILE_KEYS = ("identity", "namespace", "store")
_TABLES = ("console", "openclaw")
_NAMESPACE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that is configured outside the program."""

    store: str | None
    """The URL of the store; None if nothing names one."""
    identity: str | None
    """The name of the identity that signs; None if nothing names one."""
    namespace: str
    """The namespace of threads that are named without one."""
    config_dir: Path
    """The directory of pins and keys; absolute."""
    state_dir: Path
    """The directory of the local anchor; absolute."""
    secrets_dir: Path | None = None
    """The mount point of a secret that holds keys and pin; absolute."""
    key_fd: int | None = None
    """The descriptor from which to read the identity's key."""
    trust_fd: int | None = None
    """The descriptor from which to read the pin."""


def load_settings(
    *,
    store: str | None = None,
    identity: str | None = None,
    namespace: str | None = None,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    secrets_dir: str | os.PathLike[str] | None = None,
    key_fd: int | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Gather the settings.

    Args:
        store: The URL of the store, before SEALPOINT_STORE.
        identity: The name of the identity, before SEALPOINT_IDENTITY.
        namespace: The namespace, before SEALPOINT_NAMESPACE.
        config_dir: The configuration directory, before SEALPOINT_CONFIG_DIR.
        state_dir: The state directory, before SEALPOINT_STATE_DIR.
        secrets_dir: The directory of a mounted secret, before SEALPOINT_SECRETS_DIR.
        key_fd: The descriptor of the key, before SEALPOINT_KEY_FD.
        environ: The environment; that of the process when absent. An empty variable counts as
            unset.

    Raises:
        ConfigError: The file is malformed, or the path of a directory is invalid.
        DirectoryUnusable: The configuration directory is not a directory, others can change it, or
            its location is unknown.
        KeyFileUnsafe: Others can change the file.
        NameInvalid: An identity cannot have this name.
    """
    variables = os.environ if environ is None else environ
    config_path = _directory(
        "config_dir", config_dir, variables.get("SEALPOINT_CONFIG_DIR")
    ) or _users_own(platformdirs.user_config_path, "SEALPOINT_CONFIG_DIR")
    state_path = _directory(
        "state_dir", state_dir, variables.get("SEALPOINT_STATE_DIR")
    ) or _users_own(platformdirs.user_state_path, "SEALPOINT_STATE_DIR")
    file = read_settings_file(config_path)

    def chosen(argument: str | None, variable: str, key: str) -> str | None:
        if argument is not None:
            return argument
        return variables.get(variable) or file.get(key)

    name = chosen(identity, "SEALPOINT_IDENTITY", "identity")
    space = chosen(namespace, "SEALPOINT_NAMESPACE", "namespace")
    return Settings(
        store=chosen(store, "SEALPOINT_STORE", "store"),
        identity=None if name is None else check_identity_name(name),
        namespace=_NAMESPACE if space is None else space,
        config_dir=config_path,
        state_dir=state_path,
        secrets_dir=_directory("secrets_dir", secrets_dir, variables.get("SEALPOINT_SECRETS_DIR")),
        key_fd=_descriptor("key_fd", key_fd, variables.get("SEALPOINT_KEY_FD")),
        trust_fd=_descriptor("trust_fd", None, variables.get("SEALPOINT_TRUST_FD")),
    )


def _users_own(find: Callable[[str], Path], variable: str) -> Path:
    """Return the user's own directory; a user without a home and a name has none."""
    try:
        path = find(_APPLICATION)
    except (RuntimeError, KeyError, OSError):
        path = Path()
    if not path.is_absolute():
        raise DirectoryUnusable(
            f"{variable}: it is not set, and this user has no home directory",
            hint="Set SEALPOINT_CONFIG_DIR (keys and pin) and SEALPOINT_STATE_DIR (the anchor), or "
            "pass config_dir= and state_dir=.",
        )
    return path


def _descriptor(setting: str, argument: int | None, variable: str | None) -> int | None:
    """Return the descriptor that an argument or else a variable names, or None."""
    if argument is None and not variable:
        return None
    text = variable if argument is None else str(argument)
    try:
        found = int(text or "")
    except ValueError:
        found = -1
    if found < 0 or str(found) != text:
        raise ConfigError(f"{setting}: expected the number of a descriptor, found {text!r}")
    return found


def _directory(
    setting: str, argument: str | os.PathLike[str] | None, variable: str | None
) -> Path | None:
    """Return the absolute path that an argument or else a variable names, or None."""
    text = os.fspath(argument) if argument is not None else variable
    if argument is None and not text:
        return None
    if not text or "\0" in text:
        raise ConfigError(f"{setting}: expected the path of a directory, found {text!r}")
    try:
        return Path(text).expanduser().absolute()
    except (OSError, RuntimeError) as exc:
        raise ConfigError(f"{setting}: expected a path, found {text!r}: {exc}") from exc


def read_settings_file(config_dir: Path) -> dict[str, Any]:
    """Read `config.toml`: texts, and the tables that other code checks.

    Raises:
        ConfigError: The file is malformed.
        DirectoryUnusable, KeyFileUnsafe: Others can change it.
    """
    if not check_directory(config_dir, follow=True):
        return {}
    path = config_dir / _FILE_NAME
    # A settings file is often a link into a directory of settings files.
    data = read_file(path, bytes_max=_FILE_BYTES_MAX, secret=False, follow=True)
    if data is None:
        return {}
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{path}: it is not valid TOML: {exc}") from exc
    for key, value in document.items():
        if key in _TABLES and isinstance(value, dict):
            continue
        if key not in _FILE_KEYS:
            known = ", ".join((*_FILE_KEYS, *(f"[{name}]" for name in _TABLES)))
            raise ConfigError(f"{path}: unknown key {key!r}; known are {known}")
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{path}: expected text as {key}, found {_found(value)}")
    return document


def _found(value: object) -> str:
    return "no text" if value == "" else type(value).__name__
