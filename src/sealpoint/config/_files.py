# SPDX-License-Identifier: Apache-2.0
"""All files of one store on this machine.

```
CONFIG_DIR/stores/<32 hexadecimal digits of the URL's SHA-256>/
    store.json          the URL, for people
    pin.json            which root and roster to believe
    slots.key           the secret under which anchor slots are keyed
    initialised         `init` came to its end here
    keys/<identity>.key
    keys/<identity>.next    the key that is to take its place, while it is being rotated
STATE_DIR/anchors/<store id>/
```

Every directory from CONFIG_DIR down is checked from the top before a file in it is opened. A
file that others could have read or changed is refused, never repaired.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from sealpoint.config._disk import read_file, replace_file, sync_directory, write_new_file
from sealpoint.config._next_keys import NextKeyFiles
from sealpoint.errors import (
    ConfigError,
    DirectoryUnusable,
    KeyFileUnsafe,
    KeyMissing,
    NotTrusted,
    StoreExists,
    StoreMisplaced,
)
from sealpoint.ids import StoreId
from sealpoint.signing import TrustPin

__all__ = ["StoreFiles", "read_pin_file"]

_SECRET_BYTES = 32
_SECRET_FILE_BYTES_MAX = 128
_PIN_BYTES_MAX = 64 * 1024
_NOTE_BYTES_MAX = 64 * 1024
_KNOWN_SHOWN = 4
_MARK = "initialised"


class StoreFiles(NextKeyFiles):
    """The pin and the keys of one store, and where its anchor lies.

    Nothing is read or made before a method asks for it.
    """

    __slots__ = ()

    def pin(self) -> TrustPin:
        """The pin of the store.

        Raises:
            NotTrusted: There is none, or it is malformed.
            KeyFileUnsafe: Others can change it.
        """
        data = self._read(self._pin_path, bytes_max=_PIN_BYTES_MAX, secret=False)
        if data is None:
            raise NotTrusted(
                f"store {self.url}: expected a pin at {self._pin_path}, found none",
                hint=self._ways_on(),
            )
        return TrustPin.parse(data)

    def known_urls(self) -> list[str]:
        """The URLs of the stores that this machine has files for, as their notes say."""
        stores = self._settings.config_dir / "stores"
        found = []
        for path in sorted(stores.glob("*/store.json")):
            # A note that cannot be read says nothing; it is only for people.
            with contextlib.suppress(OSError, ConfigError, msgspec.MsgspecError):
                note = read_file(path, bytes_max=_NOTE_BYTES_MAX, secret=False)
                if note is not None:
                    found.append(msgspec.json.decode(note, type=dict[str, str]).get("url", ""))
        return [url for url in found if url]

    def _ways_on(self) -> str:
        known = self.known_urls()
        shown = ", ".join(known[:_KNOWN_SHOWN]) or "none"
        more = " and more" if len(known) > _KNOWN_SHOWN else ""
        return (
            "New: sealpoint init. From elsewhere: sealpoint trust import PIN. Moved: sealpoint "
            f"trust move OLD-URL. Stores known here: {shown}{more}."
        )

    def move_from(self, old: "StoreFiles") -> None:
        """Take over the files of a store that has another URL now.

        Raises:
            NotTrusted: There are none under the old URL.
            StoreExists: There are some under the new one.
        """
        pin = old.pin()
        if self.has_pin():
            raise StoreExists(f"store {self.url}: expected no pin yet, found {self._pin_path}")
        try:
            old.directory.rename(self.directory)
        except OSError as exc:
            raise DirectoryUnusable(
                f"{old.directory}: expected to become {self.directory}, found {exc.strerror}"
            ) from exc
        replace_file(self.directory / "store.json", self._note())
        self.write_pin(pin)

    def has_pin(self) -> bool:
        """Whether there is a pin; one that is unsafe or malformed is one.

        Raises:
            DirectoryUnusable: A directory on the way is none, or others can change it.
        """
        if not self._is_safe(self.directory):
            return False
        try:
            self._pin_path.lstat()
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise DirectoryUnusable(
                f"{self.directory}: expected a directory that can be read, found {exc.strerror}"
            ) from exc
        return True

    def write_pin(self, pin: TrustPin, *, replace: bool = False) -> None:
        """Trust a store from now on. The pin that is there already may be written again.

        Raises:
            StoreExists: There is another pin, and it is not to be replaced.
        """
        self._prepare(self.directory)
        data = pin.encode()
        if replace:
            replace_file(self._pin_path, data)
        elif not write_new_file(self._pin_path, data) and self.pin().encode() != data:
            raise StoreExists(
                f"store {self.url}: expected no pin yet, found another at {self._pin_path}",
                hint="Compare the two pins; replace the old one only if its owner says so.",
            )

    def is_initialised(self) -> bool:
        """Whether `init` once came to its end here: it then never begins anew by itself."""
        return self._is_safe(self.directory) and os.path.lexists(self.directory / _MARK)

    def mark_initialised(self) -> None:
        """Note that `init` came to its end."""
        # An earlier `init` may have died between a name and its way to the disk.
        self._prepare(self.directory / "keys")
        sync_directory(self.directory / "keys")
        sync_directory(self.directory)
        write_new_file(self.directory / _MARK, b"\n")

    def secret(self) -> bytes:
        """The secret under which anchor slots are keyed.

        Raises:
            KeyMissing: There is none.
            KeyFileUnsafe: Others can read it, or it is damaged.
        """
        data = self._read(self._secret_path, bytes_max=_SECRET_FILE_BYTES_MAX, secret=True)
        if data is None:
            raise KeyMissing(
                f"store {self.url}: expected the anchor's secret at {self._secret_path}, found none"
            )
        secret = _parse_secret(data)
        if secret is None:
            raise KeyFileUnsafe(
                f"{self._secret_path}: expected {2 * _SECRET_BYTES} lower-case hexadecimal "
                "digits, found other bytes",
                hint="Bring the file back from a copy; without it the anchor knows no thread.",
            )
        return secret

    def ensure_secret(self, random_bytes: Callable[[int], bytes]) -> bytes:
        """The secret, drawn from a source of randomness such as `os.urandom` if there is none."""
        if self._read(self._secret_path, bytes_max=_SECRET_FILE_BYTES_MAX, secret=True) is None:
            drawn = random_bytes(_SECRET_BYTES)
            if len(drawn) != _SECRET_BYTES:
                raise KeyFileUnsafe(
                    f"{self._secret_path}: expected {_SECRET_BYTES} random bytes, found others"
                )
            self._prepare(self.directory)
            write_new_file(self._secret_path, _format_secret(drawn))
        # Whoever wrote first has won; both go on with what lies there.
        return self.secret()

    def anchor_directory(self, store: StoreId) -> Path:
        """Where the local anchor of a store lies; the anchor makes it."""
        return self._settings.state_dir / "anchors" / store.raw.hex()

    def check_placement(self) -> None:
        """Check that the store lies apart from keys and anchor.

        Raises:
            StoreMisplaced: It lies in the configuration or the state directory, or one of these
                in it.
        """
        if self.url.path is None:
            return
        for kind, directory in (
            ("configuration", self._settings.config_dir),
            ("state", self._settings.state_dir),
        ):
            # Where the name lies, and where the file does if the name is a link.
            if _contains(directory, self.url.path) or _contains(directory, _real(self.url.path)):
                raise StoreMisplaced(
                    f"store {self.url}: expected a place outside the {kind} directory, "
                    f"found it in {directory}"
                )
            if _contains(self.url.path, directory) or _contains(self.url.path, _real(directory)):
                raise StoreMisplaced(
                    f"store {self.url}: expected the {kind} directory outside of it, "
                    f"found it at {directory}"
                )

    @property
    def _pin_path(self) -> Path:
        return self.directory / "pin.json"

    @property
    def _secret_path(self) -> Path:
        return self.directory / "slots.key"


def read_pin_file(path: Path) -> TrustPin:
    """A pin that lies anywhere.

    Raises:
        NotTrusted: There is no file, or it is no pin.
        KeyFileUnsafe: Others can change it, or it cannot be read.
    """
    data = read_file(path, bytes_max=_PIN_BYTES_MAX, secret=False, follow=True)
    if data is None:
        raise NotTrusted(f"pin {path}: expected a file, found none")
    return TrustPin.parse(data)


def _format_secret(secret: bytes) -> bytes:
    return f"{secret.hex()}\n".encode()


def _parse_secret(data: bytes) -> bytes | None:
    try:
        secret = bytes.fromhex(data.decode("ascii"))
    except ValueError:
        return None
    return secret if len(secret) == _SECRET_BYTES and _format_secret(secret) == data else None


def _real(path: Path) -> Path:
    """The path with every link followed as far as it exists; unlike `resolve`, never an error."""
    return Path(os.path.realpath(path))


def _contains(directory: Path, path: Path) -> bool:
    """Whether a path lies in a directory, whatever either is called."""
    real = _real(directory)
    if path.is_relative_to(real):
        return True
    # Names that differ may be one directory: where case does not count, or when mounted twice.
    return any(_is_same(real, parent) for parent in path.parents)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
