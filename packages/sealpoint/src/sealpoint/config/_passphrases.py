# SPDX-License-Identifier: Apache-2.0
"""Passphrases of keys and passwords of databases: from an argument, the environment or a file.

A passphrase comes from an argument, then the environment, then a file. Nothing is read or requested
until an encrypted key needs it. The environment opens keys and never decides whether a new one is
encrypted. The file that a variable names is as secret as a key file: one that others can read is
refused. There is no setting for a passphrase in `config.toml`, and none is ever taken from a
command line, which every process of the machine can read.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from sealpoint.config._protected_files import (
    read_file,
)
from sealpoint.errors import (
    ConfigError,
    KeyLocked,
    UsageError,
)
from sealpoint.signing import (
    Passphrase,
    Unlock,
)

PassphraseSource = str | bytes | Callable[[str], str | bytes]
"""A passphrase, or a function of a key's name that returns it."""

PasswordSource = str | Callable[[], str]
"""A password, or a function that returns it, called at each new connection."""

_VARIABLE = "SEALPOINT_PASSPHRASE"
_FILE_VARIABLE = "SEALPOINT_PASSPHRASE_FILE"
_DATABASE_VARIABLE = "SEALPOINT_STORE_PASSWORD_FILE"
_ANCHOR_VARIABLE = "SEALPOINT_ANCHOR_PASSWORD_FILE"
_FILE_BYTES_MAX = 4096
_PASSWORDS_MAX = 2


def unlocking(
    source: PassphraseSource | None, *, environ: Mapping[str, str] | None = None
) -> Unlock:
    """Make the function that returns the passphrase of a key to open.

    Args:
        source: The caller's argument, which comes first.
        environ: The environment; that of the process when absent. An empty variable counts as
            unset.

    Returns:
        A function of the key's name. It raises KeyLocked if there is no passphrase, and UsageError,
        ConfigError or KeyFileUnsafe if the source of one cannot be used.
    """

    def unlock(name: str) -> Passphrase:
        if source is not None:
            return choosing(source)(name)
        found = environment_passphrase(environ=environ)
        if found is None:
            raise KeyLocked(f"key {name!r}: it is locked by a passphrase, and none was given")
        return Passphrase(found)

    return unlock


def choosing(source: PassphraseSource) -> Unlock:
    """Make the function that returns the passphrase of a new key: from the caller alone."""

    def choose(name: str) -> Passphrase:
        return Passphrase(
            source(name) if callable(source) else source, source=f"passphrase of key {name!r}"
        )

    return choose


def environment_passphrase(*, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the passphrase from SEALPOINT_PASSPHRASE or the file in SEALPOINT_PASSPHRASE_FILE.

    Returns:
        The passphrase, or None if neither variable is set.

    Raises:
        UsageError: It cannot be a passphrase.
        ConfigError: There is no such file.
        KeyFileUnsafe: Others can read the file.
    """
    variables = os.environ if environ is None else environ
    if text := variables.get(_VARIABLE):
        Passphrase(text, source=_VARIABLE)
        return text
    if path := variables.get(_FILE_VARIABLE):
        return read_passphrase_file(path, _FILE_VARIABLE)
    return None


def store_password(source: str | Callable[[], str] | None) -> Callable[[], str] | None:
    """Make the function that returns a database password: from the caller or the environment.

    The environment names a file. The function is called at each new connection, so that a password
    can be changed while programs run. None leaves the password to the client of the database, which
    has its own places for it (PGPASSFILE).
    """
    return _database_password(source, _DATABASE_VARIABLE)


def anchor_password(source: str | Callable[[], str] | None) -> Callable[[], str] | None:
    """Do the same for the database of a shared anchor, which has another login."""
    return _database_password(source, _ANCHOR_VARIABLE)


def _database_password(
    source: str | Callable[[], str] | None, variable: str
) -> Callable[[], str] | None:
    if callable(source):
        return source
    if source is not None:
        return lambda: source
    if path := os.environ.get(variable):
        return lambda: read_password_file(path, variable)
    return None


def password_files(*, environ: Mapping[str, str] | None = None) -> list[Path]:
    """Return the password and passphrase files that the environment names, or libpq reads."""
    variables = os.environ if environ is None else environ
    named = (_DATABASE_VARIABLE, _ANCHOR_VARIABLE, _FILE_VARIABLE, "PGPASSFILE")
    found = [Path(path).absolute() for each in named if (path := variables.get(each))]
    with contextlib.suppress(RuntimeError):  # a user without a home
        found.append(Path.home() / ".pgpass")
    return [path for path in dict.fromkeys(found) if path.exists()]


def read_password_file(path: str, setting: str) -> str:
    """Read a database password file: one line, or two while the password is being changed.

    Args:
        path: The file.
        setting: The setting that named it, for messages.

    Raises:
        UsageError: It does not hold one or two lines of text.
        ConfigError: There is no such file.
        KeyFileUnsafe: Others can read or change it, or it belongs to another user.
    """
    lines = _secret_lines(path, setting)
    if len(lines) > _PASSWORDS_MAX:
        raise UsageError(f"{setting} {path}: expected one password or two, a line each")
    return "\n".join(_secret_text(line, setting, path) for line in lines)


def read_passphrase_file(path: str, setting: str) -> str:
    """Read the passphrase in a file: its one line, without the line feed.

    Args:
        path: The file.
        setting: The setting that named it, for messages.

    Raises:
        UsageError: It does not hold one line of text.
        ConfigError: There is no such file.
        KeyFileUnsafe: Others can read or change it, or it belongs to another user.
    """
    return _secret_text(b"\n".join(_secret_lines(path, setting)), setting, path)


def _secret_lines(path: str, setting: str) -> list[bytes]:
    if "\0" in path:
        raise ConfigError(f"{setting}: expected the path of a file, found {path!r}")
    # Secrets are often mounted as links; the target of the link counts.
    data = read_file(Path(path).absolute(), bytes_max=_FILE_BYTES_MAX, secret=True, follow=True)
    if data is None:
        raise ConfigError(f"{setting}: there is no file {path}")
    return data.removesuffix(b"\n").removesuffix(b"\r").split(b"\n")


def _secret_text(line: bytes, setting: str, path: str) -> str:
    Passphrase(line, source=f"{setting} {path}")
    return line.decode()
