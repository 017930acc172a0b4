# SPDX-License-Identifier: Apache-2.0
"""Where the passphrase of a key comes from: an argument, then the environment, then a file.

Nothing is read or asked before an encrypted key needs it. The environment opens keys and never
decides whether a new one is encrypted. The file that a variable names is as secret as a key file:
one that others can read is refused. There is no setting for a passphrase in `config.toml`, and
none is ever taken from a command line, which every process of the machine can read.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from sealpoint.config._secret_files import read_file
from sealpoint.errors import ConfigError, KeyLocked
from sealpoint.signing import Passphrase, Unlock

PassphraseSource = str | bytes | Callable[[str], str | bytes]
"""A passphrase, or what is called with the name of a key and returns its passphrase."""

_VARIABLE = "SEALPOINT_PASSPHRASE"
_FILE_VARIABLE = "SEALPOINT_PASSPHRASE_FILE"
_FILE_BYTES_MAX = 4096


def unlocking(
    source: PassphraseSource | None, *, environ: Mapping[str, str] | None = None
) -> Unlock:
    """What gives the passphrase of a key that has to be opened.

    Args:
        source: The caller's argument, which comes first.
        environ: The environment; that of the process when absent. A variable that is empty counts
            as unset.

    Returns:
        A function of the key's name. It raises KeyLocked if nothing names a passphrase, and
        UsageError, ConfigError or KeyFileUnsafe if what names one cannot be used.
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
    """What gives the passphrase of a key that is made: from the caller alone."""

    def choose(name: str) -> Passphrase:
        return Passphrase(
            source(name) if callable(source) else source, source=f"passphrase of key {name!r}"
        )

    return choose


def environment_passphrase(*, environ: Mapping[str, str] | None = None) -> str | None:
    """The passphrase that SEALPOINT_PASSPHRASE is, or whose file SEALPOINT_PASSPHRASE_FILE names.

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


def read_passphrase_file(path: str, setting: str) -> str:
    """The passphrase in a file: its one line, without the line feed.

    Args:
        path: The file.
        setting: What named it, for messages.

    Raises:
        UsageError: It does not hold one line of text.
        ConfigError: There is no such file.
        KeyFileUnsafe: Others can read or change it, or it is another user's.
    """
    if "\0" in path:
        raise ConfigError(f"{setting}: expected the path of a file, found {path!r}")
    # Secrets are often mounted as links; what counts is the file that one leads to.
    data = read_file(Path(path).absolute(), bytes_max=_FILE_BYTES_MAX, secret=True, follow=True)
    if data is None:
        raise ConfigError(f"{setting}: there is no file {path}")
    line = data.removesuffix(b"\n").removesuffix(b"\r")
    Passphrase(line, source=f"{setting} {path}")
    return line.decode()
