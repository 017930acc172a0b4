# SPDX-License-Identifier: Apache-2.0
"""The private keys of a store on this machine: `keys/<identity>.key`.

A key is made once and never overwritten by another; only its passphrase changes. What lies in a
file is the business of `sealpoint.signing`.
"""

import hashlib
import os
from pathlib import Path

import msgspec

from sealpoint.config._backends import StoreUrl
from sealpoint.config._disk import (
    check_directory,
    make_directory,
    move_file,
    read_file,
    replace_file,
    sync_directory,
    write_new_file,
)
from sealpoint.config._mounted import read_descriptor, read_mounted
from sealpoint.config._settings import Settings, check_identity_name
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

# ---------------------------------------------------------------------- directory
# The directory of one store below the configuration directory.
#
# Every directory from CONFIG_DIR down is checked from the top before a file in it is opened, and
# made for the user alone before one is written. The first file that is written says what the
# address of the store is, and where that led then.


_NAME_BYTES = 16
_NOTE_BYTES_MAX = 64 * 1024


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `store.json` says."""

    url: str
    """The address of the store."""
    target: str
    """Where it led when it was first used, or when somebody said that it moved."""


class StoreDirectory:
    """Where the files of a store lie, and the safe way to them."""

    __slots__ = ("_prepared", "_settings", "directory", "url")

    def __init__(self, settings: Settings, url: StoreUrl) -> None:
        self._settings = settings
        self.url = url
        self._prepared: set[Path] = set()
        """Directories that this object has made, or found, and whose names are on the disk."""
        name = hashlib.sha256(str(url).encode()).digest()[:_NAME_BYTES].hex()
        self.directory = settings.config_dir / "stores" / name

    def _below(self, directory: Path) -> list[Path]:
        """Every directory below CONFIG_DIR down to one, from the top."""
        top = self._settings.config_dir
        parts = directory.relative_to(top).parts
        return [top.joinpath(*parts[:count]) for count in range(1, len(parts) + 1)]

    def _is_safe(self, directory: Path) -> bool:
        """Whether a directory is there; every one on the way to it is checked."""
        return check_directory(self._settings.config_dir, follow=True) and all(
            check_directory(path) for path in self._below(directory)
        )

    def _read(
        self, path: Path, *, bytes_max: int, secret: bool, mounted: bool = False
    ) -> bytes | None:
        """A file of the store; if `mounted`, the one of that name in a mounted secret before it."""
        secrets = self._settings.secrets_dir
        if mounted and secrets is not None:
            data = read_mounted(secrets, path.name, bytes_max=bytes_max, secret=secret)
            if data is not None:
                return data
        if not self._is_safe(path.parent):
            return None
        return read_file(path, bytes_max=bytes_max, secret=secret)

    def _prepare(self, directory: Path) -> None:
        """Make the directories down to one, and note where the store lies, unless that is known."""
        if directory in self._prepared and self._is_safe(directory):
            return
        make_directory(self._settings.config_dir, follow=True, parents=True)
        for path in self._below(directory):
            make_directory(path)
        if os.path.lexists(self.note_path):
            # Whoever wrote it may have died before its name was on the disk.
            sync_directory(self.directory)
        else:
            write_new_file(self.note_path, self._note())
        self._prepared.add(directory)

    @property
    def note_path(self) -> Path:
        """The file that says what the address of the store is, and where it leads."""
        return self.directory / "store.json"

    def _note(self) -> bytes:
        note = Note(url=str(self.url), target=self.url.target())
        return msgspec.json.format(msgspec.json.encode(note), indent=2) + b"\n"


def read_note(path: Path) -> Note | None:
    """What a note says, or None where there is none that says anything.

    Raises:
        KeyFileUnsafe: Others can change it.
    """
    data = read_file(path, bytes_max=_NOTE_BYTES_MAX, secret=False)
    try:
        return None if data is None else msgspec.json.decode(data, type=Note)
    except msgspec.MsgspecError:
        return None


# ---------------------------------------------------------------------- key files

_KEY_FILE_BYTES_MAX = 16 * 1024
_KEY_SUFFIX = ".key"


class KeyFiles(StoreDirectory):
    """The key files of a store. Nothing is read or made before a method asks for it."""

    __slots__ = ()

    def signer(self, name: str, unlock: Unlock | None = None) -> PrivateKey:
        """The private key of an identity; `unlock` is asked for the passphrase of one that has one.

        Raises:
            KeyMissing: It is not on this machine.
            KeyFileUnsafe: Others can read it, or it is damaged.
            KeyLocked: It is encrypted, and the passphrase is missing or does not open it.
            NameInvalid: No identity can be called this.
        """
        return decode_key_file(self._key_bytes(name, mounted=True), name=name, unlock=unlock)

    def key_from_descriptor(
        self, descriptor: int, name: str, unlock: Unlock | None = None
    ) -> PrivateKey:
        """The private key of an identity from a descriptor that the process was started with.

        Raises:
            KeyMissing: It is not open, or gives nothing any more.
            KeyFileUnsafe, KeyLocked, NameInvalid: As `signer`.
        """
        data = read_descriptor(
            descriptor,
            f"the key of {check_identity_name(name)!r}",
            bytes_max=_KEY_FILE_BYTES_MAX,
            secret=True,
        )
        return decode_key_file(data, name=name, unlock=unlock)

    def key_facts(self, name: str, *, mounted: bool = False) -> KeyFacts:
        """What the key file of an identity says without a passphrase; raises as `signer` does.

        Args:
            name: The identity.
            mounted: Look into the directory of a mounted secret first.
        """
        return describe_key_file(self._key_bytes(name, mounted=mounted), name=name)

    def write_key(self, signer: PrivateKey, choose: Unlock | None = None) -> None:
        """Keep a private key, encrypted if `choose` gives a passphrase; none is ever overwritten.

        Raises:
            StoreExists: There is a key of this name already.
            NameInvalid: No identity can be called this.
        """
        path = self._key_path(signer.name)
        self._prepare(path.parent)
        # Nobody is asked to choose a passphrase for what cannot be made.
        if os.path.lexists(path) or not write_new_file(path, key_file_bytes(signer, choose)):
            raise StoreExists(
                f"key {signer.name!r} of store {self.url}: expected none yet, found {path}",
                hint="A key is never overwritten: use it, or choose another name.",
            )

    def relock_key(self, name: str, unlock: Unlock, choose: Unlock | None) -> PrivateKey:
        """Write a key under another passphrase, or as it is where `choose` is None.

        Until the new file is durable the old one stays, so a failure at any step loses nothing.

        Raises:
            ConfigError: The file was changed meanwhile.
            KeyMissing, KeyFileUnsafe, KeyLocked, NameInvalid: As `signer`.
        """
        before = self._key_bytes(name)
        signer = decode_key_file(before, name=name, unlock=unlock)
        data = key_file_bytes(signer, choose)
        # Somebody may have taken minutes to type: a key that came in meanwhile must not be lost.
        if self._key_bytes(name) != before:
            raise ConfigError(
                f"key {name!r}: expected its file as it was when it was opened, found another",
                hint="Somebody changed the key meanwhile, and it was left alone: try again.",
            )
        replace_file(self._key_path(name), data)
        return signer

    def key_names(self) -> list[str]:
        """The identities whose private keys are on this machine, in order."""
        keys = self.directory / "keys"
        if not self._is_safe(keys):
            return []
        try:
            found = [path.name for path in keys.iterdir()]
        except OSError as exc:
            raise DirectoryUnusable(
                f"{keys}: expected a directory that can be read, found {exc.strerror}"
            ) from exc
        return sorted(
            name.removesuffix(_KEY_SUFFIX)
            for name in found
            if name.endswith(_KEY_SUFFIX) and _is_identity_name(name.removesuffix(_KEY_SUFFIX))
        )

    def _key_path(self, name: str) -> Path:
        return self.directory / "keys" / f"{check_identity_name(name)}{_KEY_SUFFIX}"

    def _key_bytes(self, name: str, *, mounted: bool = False) -> bytes:
        path = self._key_path(name)
        data = self._read(path, bytes_max=_KEY_FILE_BYTES_MAX, secret=True, mounted=mounted)
        if data is None:
            secrets = self._settings.secrets_dir if mounted else None
            places = f"{path}" if secrets is None else f"{path} or {secrets / path.name}"
            raise KeyMissing(
                f"key {name!r} of store {self.url}: expected a file {places}, found none"
            )
        return data


def key_file_bytes(signer: PrivateKey, choose: Unlock | None) -> bytes:
    """The content of a key's file, encrypted if `choose` gives a passphrase."""
    if choose is None:
        return encode_key_file(signer)
    return encode_locked_key_file(signer, choose(signer.name), os.urandom)


def _is_identity_name(name: str) -> bool:
    try:
        check_identity_name(name)
    except NameInvalid:
        return False
    return True


# ---------------------------------------------------------------------- next keys
# The key that takes the place of another: `keys/<identity>.next`, until the rotation is done.
#
# It is durable before any roster names it, and takes the name of the old file last. So whatever
# interrupts a rotation, the private half of a key that a roster holds is never lost. The old file
# is gone then: reading needs no private key, and the old one may not write any more.


_NEXT_SUFFIX = ".next"
_FILE_BYTES_MAX = 16 * 1024


class NextKeyFiles(KeyFiles):
    """The key files of a store, and those that are to take their places."""

    __slots__ = ()

    def next_key(self, name: str) -> KeyFacts | None:
        """The next key of an identity, if one was prepared; its secret stays closed.

        Raises:
            KeyFileUnsafe: Others can read the file, or it is damaged.
            NameInvalid: No identity can be called this.
        """
        data = self._read(self._next_path(name), bytes_max=_FILE_BYTES_MAX, secret=True)
        return None if data is None else describe_key_file(data, name=name)

    def write_next_key(self, signer: PrivateKey, choose: Unlock | None = None) -> None:
        """Keep the next key of an identity; one that is there stays as it is."""
        path = self._next_path(signer.name)
        self._prepare(path.parent)
        write_new_file(path, key_file_bytes(signer, choose))

    def take_next_key(self, name: str) -> None:
        """Let the next key take the place of the one before, whose file is gone with that.

        Raises:
            KeyMissing: There is no next key.
        """
        if self.next_key(name) is None:
            raise KeyMissing(
                f"key {name!r} of store {self.url}: expected a file {self._next_path(name)}, "
                "found none"
            )
        move_file(self._next_path(name), self._key_path(name))

    def _next_path(self, name: str) -> Path:
        return self.directory / "keys" / f"{check_identity_name(name)}{_NEXT_SUFFIX}"
