# SPDX-License-Identifier: Apache-2.0
"""The private keys of a store on this machine: `keys/<identity>.key` and `keys/<identity>.next`.

A key is created once and never overwritten by another; only its passphrase changes. The one
exception is a rotation: the next key is on the disk before any roster names it, and replaces the
old file as the last step. So an interrupted rotation never loses the private half of a key that a
roster holds. The old file is gone then: reading needs no private key, and the old key may not write
any more. `sealpoint.signing` defines the content of the files.
"""

import os
from pathlib import Path

from sealpoint.config._protected_files import (
    move_file,
    read_descriptor,
    replace_file,
    write_new_file,
)
from sealpoint.config._settings import check_identity_name
from sealpoint.config._store_directory import StoreDirectory
from sealpoint.errors import (
    ConfigError,
    DirectoryUnusable,
    KeyMissing,
    NameInvalid,
    StoreExists,
)
from sealpoint.signing import (
    KeyFacts,
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
