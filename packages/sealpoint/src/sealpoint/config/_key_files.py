# SPDX-License-Identifier: Apache-2.0
"""The private keys of a store on this machine: `keys/<identity>.key` and `keys/<identity>.next`.

A key is created once and never overwritten by another; only its passphrase changes. The one
exception is a rotation: the next key is on the disk before any roster names it, and replaces the
old file as the last step. So an interrupted rotation never loses the private half of a key that a
roster holds. The old file is gone then: reading needs no private key, and the old key may not write
any more. `sealpoint.signing` defines the content of the files.

The passphrase of a key comes from an argument, then the environment, then a file. Nothing is read
or requested until an encrypted key needs it. The environment opens keys and never decides whether a
new one is encrypted. The file that a variable names is as secret as a key file: one that others can
read is refused. There is no setting for a passphrase in `config.toml`, and none is ever taken from
a command line, which every process of the machine can read.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from sealpoint.config._protected_files import (
    move_file,
    read_descriptor,
    read_file,
    replace_file,
    write_new_file,
)
from sealpoint.config._settings import check_identity_name
from sealpoint.config._store_directory import StoreDirectory
from sealpoint.errors import (
    ConfigError,
    DirectoryUnusable,
    KeyLocked,
    KeyMissing,
    NameInvalid,
    StoreExists,
    UsageError,
)
from sealpoint.signing import (
    KeyFacts,
    Passphrase,
    PrivateKey,
    Unlock,
    decode_key_file,
    describe_key_file,
    encode_key_file,
    encode_locked_key_file,
)

_KEY_FILE_BYTES_MAX = 16 * 1024
_KEY_SUFFIX = ".key"
_NAMES_SHOWN = 8
_NEXT_SUFFIX = ".next"


class KeyFiles:
    """The key files of a store. Nothing is read or created until a method needs it."""

    __slots__ = ("_directory", "_path")

    def __init__(self, directory: StoreDirectory) -> None:
        self._directory = directory
        self._path = directory.path / "keys"

    def signer(self, name: str, unlock: Unlock | None = None) -> PrivateKey:
        """Return the private key of an identity; `unlock` returns the passphrase if it has one.

        Raises:
            KeyMissing: It is not on this machine.
            KeyFileUnsafe: Others can read it, or it is damaged.
            KeyLocked: It is encrypted, and the passphrase is missing or wrong.
            NameInvalid: An identity cannot have this name.
        """
        return decode_key_file(self._key_bytes(name, mounted=True), name=name, unlock=unlock)

    def signer_from_descriptor(
        self, descriptor: int, name: str, unlock: Unlock | None = None
    ) -> PrivateKey:
        """Read the private key of an identity from a descriptor that the process was started with.

        Raises:
            KeyMissing: It is not open, or is empty by now.
            KeyFileUnsafe, KeyLocked, NameInvalid: As `signer`.
        """
        data = read_descriptor(
            descriptor,
            f"the key of {check_identity_name(name)!r}",
            bytes_max=_KEY_FILE_BYTES_MAX,
            secret=True,
        )
        return decode_key_file(data, name=name, unlock=unlock)

    def facts(self, name: str, *, mounted: bool = False) -> KeyFacts:
        """Return the facts in a key file that need no passphrase; raises as `signer` does.

        Args:
            name: The identity.
            mounted: Search the directory of a mounted secret first.
        """
        return describe_key_file(self._key_bytes(name, mounted=mounted), name=name)

    def write(self, signer: PrivateKey, choose: Unlock | None = None) -> None:
        """Store a private key, encrypted if `choose` returns a passphrase; never overwrite one.

        Raises:
            StoreExists: There is a key of this name already.
            NameInvalid: An identity cannot have this name.
        """
        path = self._key_path(signer.name)
        self._directory.prepare(path.parent)
        # Do not ask for a new passphrase if the key cannot be created.
        if os.path.lexists(path) or not write_new_file(path, key_file_bytes(signer, choose)):
            raise StoreExists(
                f"key {signer.name!r} of store {self._directory.url}: it exists already, at {path}",
                hint="A key is never overwritten: use it, or choose another name.",
            )

    def relock(self, name: str, unlock: Unlock, choose: Unlock | None) -> PrivateKey:
        """Write a key under another passphrase, or unencrypted if `choose` is None.

        The old file stays until the new one is on the disk, so a failure at any step loses nothing.

        Raises:
            ConfigError: The file was changed at the same time.
            KeyMissing, KeyFileUnsafe, KeyLocked, NameInvalid: As `signer`.
        """
        before = self._key_bytes(name)
        signer = decode_key_file(before, name=name, unlock=unlock)
        data = key_file_bytes(signer, choose)
        # The user may have typed for minutes: a key that was written in that time must not be lost.
        if self._key_bytes(name) != before:
            raise ConfigError(
                f"key {name!r}: its file changed after it was opened",
                hint="The key changed at the same time, and was left alone: try again.",
            )
        replace_file(self._key_path(name), data)
        return signer

    def names(self) -> list[str]:
        """Return the identities whose private keys are on this machine, in order."""
        keys = self._path
        if not self._directory.is_safe(keys):
            return []
        try:
            found = [path.name for path in keys.iterdir()]
        except OSError as exc:
            raise DirectoryUnusable(
                f"{keys}: the directory cannot be read: {exc.strerror}"
            ) from exc
        return sorted(
            name.removesuffix(_KEY_SUFFIX)
            for name in found
            if name.endswith(_KEY_SUFFIX) and _is_identity_name(name.removesuffix(_KEY_SUFFIX))
        )

    def next_facts(self, name: str) -> KeyFacts | None:
        """Return the facts of an identity's next key, if one was prepared, without opening it.

        Raises:
            KeyFileUnsafe: Others can read the file, or it is damaged.
            NameInvalid: An identity cannot have this name.
        """
        data = self._directory.read(
            self._key_path(name, _NEXT_SUFFIX), bytes_max=_KEY_FILE_BYTES_MAX, secret=True
        )
        return None if data is None else describe_key_file(data, name=name)

    def write_next(self, signer: PrivateKey, choose: Unlock | None = None) -> None:
        """Store the next key of an identity; an existing one stays as it is."""
        path = self._key_path(signer.name, _NEXT_SUFFIX)
        self._directory.prepare(path.parent)
        write_new_file(path, key_file_bytes(signer, choose))

    def take_next(self, name: str) -> None:
        """Replace the key of an identity with its next key; the old file is gone then.

        Raises:
            KeyMissing: There is no next key.
        """
        path = self._key_path(name, _NEXT_SUFFIX)
        if self.next_facts(name) is None:
            raise KeyMissing(
                f"key {name!r} of store {self._directory.url}: no next key was prepared here: no "
                f"file {path}",
                hint=f"Prepare it first: sealpoint keys rotate {name} --prepare",
            )
        move_file(path, self._key_path(name))

    def _key_path(self, name: str, suffix: str = _KEY_SUFFIX) -> Path:
        return self._path / f"{check_identity_name(name)}{suffix}"

    def _key_bytes(self, name: str, *, mounted: bool = False) -> bytes:
        path = self._key_path(name)
        data = self._directory.read(
            path, bytes_max=_KEY_FILE_BYTES_MAX, secret=True, mounted=mounted
        )
        if data is None:
            secrets = self._directory.settings.secrets_dir if mounted else None
            places = f"{path}" if secrets is None else f"{path} or {secrets / path.name}"
            raise KeyMissing(
                f"key {name!r} of store {self._directory.url}: this machine does not have it: no "
                f"file {places}",
                hint=f"Keys here: {', '.join(self.names()[:_NAMES_SHOWN]) or 'none'}; --identity "
                "NAME chooses one. sealpoint keys new NAME makes one under a new name, and prints "
                "what to run where the root key is.",
            )
        return data


def key_file_bytes(signer: PrivateKey, choose: Unlock | None) -> bytes:
    """Encode a key file, encrypted if `choose` returns a passphrase."""
    if choose is None:
        return encode_key_file(signer)
    return encode_locked_key_file(signer, choose(signer.name), os.urandom)


def _is_identity_name(name: str) -> bool:
    try:
        check_identity_name(name)
    except NameInvalid:
        return False
    return True


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
