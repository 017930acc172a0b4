# SPDX-License-Identifier: Apache-2.0
"""All files of one store on this machine, and the allowed places of the store itself.

```
CONFIG_DIR/stores/<32 hexadecimal digits of the URL's SHA-256>/
    store.json              the URL, and where it leads
    pin.json                the root and the oldest roster to accept
    slots.key               the secret that keys the anchor's slots
    initialised             `init` was completed here
    group.json              the group that shares the store, if this user declared one
    anchor.json             the anchor shared with other machines, if this user declared one
    roster-<n>-<hash>.json  the newest roster that was verified here, for restores
    keys/<identity>.key
    keys/<identity>.next    the next key of the identity, during a rotation
STATE_DIR/anchors/<store id>/
```

`pin.json`, `slots.key`, `anchor.json` and `<identity>.key` may also be in the directory of a
mounted secret, which is read first and never written to.

Every directory from CONFIG_DIR down is checked from the top before a file in it is opened. A file
that others could have read or changed is refused, never repaired. The files belong to the URL as it
was given. If a URL leads to another place than before, it is refused until the user declares that
the store was moved.

A store must be separate from its keys and its anchor. Restoring a directory to an earlier time must
not restore a store together with its anchor, and an attacker who may write the store must not reach
the keys. So a store must not be in the configuration or state directory, neither of these may be in
a store's directory, and neither may be in the directory that contains a store's file, since that
counts as the store's directory. The home directory of the user is an exception: the user's own
directories are always below it. For a store file directly in the home directory, only directories
at the same level count.

The check compares both the paths themselves and their targets. It cannot see what is mounted where,
or what a backup includes.
"""

import contextlib
import dataclasses
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from sealpoint.config._backends import StoreUrl
from sealpoint.config._group_sharing import Group
from sealpoint.config._key_files import KeyFiles
from sealpoint.config._protected_files import (
    read_descriptor,
    read_file,
    replace_file,
    sync_directory,
    write_new_file,
)
from sealpoint.config._settings import Settings
from sealpoint.config._shared_anchor import SharedAnchorFile
from sealpoint.config._store_directory import Note, StoreDirectory, read_note
from sealpoint.errors import (
    ConfigError,
    DirectoryUnusable,
    KeyFileUnsafe,
    KeyMissing,
    NoPin,
    NotTrusted,
    SealpointError,
    StoreExists,
    StoreMisplaced,
)
from sealpoint.ids import StoreId
from sealpoint.limits import ROSTER_COPY_BYTES_MAX
from sealpoint.signing import TrustPin

_NAME = re.compile(r"roster-([0-9]{1,9})-[0-9a-f]{16}\.json")
_HASH_BYTES = 8
_SECRET_BYTES = 32
_SECRET_FILE_BYTES_MAX = 128
_PIN_BYTES_MAX = 64 * 1024
_KNOWN_SHOWN = 4
_MARK = "initialised"


class StoreFiles:
    """The pin and the keys of one store, and the location of its anchor.

    Nothing is read or created until a method needs it.
    """

    __slots__ = ("_directory", "_group_path", "_pin_path", "_secret_path", "keys", "shared_anchor")

    def __init__(self, settings: Settings, url: StoreUrl) -> None:
        self._directory = StoreDirectory(settings, url)
        self._group_path = self.directory / "group.json"
        self._pin_path = self.directory / "pin.json"
        self._secret_path = self.directory / "slots.key"
        self.keys = KeyFiles(self._directory)
        """The private keys."""
        self.shared_anchor = SharedAnchorFile(self._directory)
        """The anchor shared with other machines."""

    @classmethod
    def find(cls, settings: Settings, url: StoreUrl) -> "StoreFiles":
        """Return the files of a store; a declared group determines the location of the anchor."""
        files = cls(settings, url)
        group = files.group()
        if group is None:
            return files
        return cls(dataclasses.replace(settings, state_dir=Path(group.state_dir)), url)

    def pin(self) -> TrustPin:
        """Return the pin of the store.

        Raises:
            NotTrusted: There is none, or it is malformed.
            KeyFileUnsafe: Others can change it.
        """
        data = self._directory.read(
            self._pin_path, bytes_max=_PIN_BYTES_MAX, secret=False, mounted=True
        )
        if data is None:
            raise NoPin(
                f"store {self.url}: this machine has no pin of it at {self._pin_path}",
                hint=self._ways_on(),
            )
        return TrustPin.parse(data)

    def target(self) -> str:
        """Return where the store is; its URL must lead there now and when it was first used here.

        Raises:
            NotTrusted: The URL leads to another place than before, or the earlier place is unknown.
            KeyFileUnsafe: Others can change the file that records it.
        """
        found = self.url.target()
        note = (
            read_note(self._directory.note_path)
            if self._directory.is_safe(self.directory)
            else None
        )
        if note is None:
            if self.has_pin():
                raise NotTrusted(
                    f"store {self.url}: {self._directory.note_path}, which says where the store "
                    "lies, is missing",
                    hint=f"If {found} is the store: {_way_to_move(self.url)}",
                )
            return found
        if note.target != found:
            raise NotTrusted(
                f"store {self.url}: expected it to lead to {note.target}, found that it leads to "
                f"{found}",
                hint="An attacker may have put a link there. If you moved the store yourself: "
                f"{_way_to_move(self.url)}",
            )
        return found

    def known_urls(self) -> list[str]:
        """Return the URLs of the stores that this machine has files for, from their notes."""
        return known_urls(self._directory.settings)

    def _ways_on(self) -> str:
        here = self.url.target()
        for note in _known_stores(self._directory.settings.config_dir):
            if note.target == here:
                return f"This store is known here as {note.url}: use that URL."
        known, url = self.known_urls(), shlex.quote(str(self.url))
        shown = ", ".join(known[:_KNOWN_SHOWN]) or "none"
        more = " and more" if len(known) > _KNOWN_SHOWN else ""
        return (
            f"New store: sealpoint init --store {url}. With the same --store: sealpoint trust "
            "import PIN for a store from elsewhere, sealpoint trust move OLD-URL for one that was "
            f"moved. Stores known here: {shown}{more}."
        )

    def move_from(self, old: "StoreFiles") -> None:
        """Take over the files of a store that has a new URL, or whose URL leads to a new place.

        Raises:
            NotTrusted: There are no files under the old URL.
            StoreExists: There are files under the new one.
        """
        pin = old.pin()
        if self.directory == old.directory:
            replace_file(self._directory.note_path, self._directory.note())
            return
        if self.has_pin():
            raise StoreExists(
                f"store {self.url}: this machine has a pin of it already, at {self._pin_path}"
            )
        try:
            old.directory.rename(self.directory)
        except OSError as exc:
            raise DirectoryUnusable(
                f"{old.directory}: it cannot be moved to {self.directory}: {exc.strerror}"
            ) from exc
        replace_file(self._directory.note_path, self._directory.note())
        self.write_pin(pin)

    def has_pin(self) -> bool:
        """Whether there is a pin, even an unsafe or malformed one.

        Raises:
            DirectoryUnusable: A directory on the path is not a directory, or others can change it.
        """
        if not self._directory.is_safe(self.directory):
            return False
        try:
            self._pin_path.lstat()
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise DirectoryUnusable(
                f"{self.directory}: the directory cannot be read: {exc.strerror}"
            ) from exc
        return True

    def write_pin(self, pin: TrustPin, *, replace: bool = False) -> None:
        """Trust a store from now on. Writing the existing pin again is allowed.

        Raises:
            StoreExists: There is another pin, and `replace` is false.
        """
        self._directory.prepare(self.directory)
        data = pin.encode()
        if replace:
            replace_file(self._pin_path, data)
        elif not write_new_file(self._pin_path, data) and self.pin().encode() != data:
            raise StoreExists(
                f"store {self.url}: this machine has another pin of it already, at "
                f"{self._pin_path}",
                hint="Compare the two pins; replace the old one only if its owner says so.",
            )

    def is_initialized(self) -> bool:
        """Whether `init` was once completed here: it then never starts again on its own."""
        return self._directory.is_safe(self.directory) and os.path.lexists(self.directory / _MARK)

    def mark_initialized(self) -> None:
        """Record that `init` was completed."""
        # An earlier `init` may have died before a name was on the disk.
        self._directory.prepare(self.directory / "keys")
        sync_directory(self.directory / "keys")
        sync_directory(self.directory)
        write_new_file(self.directory / _MARK, b"\n")

    def secret(self) -> bytes:
        """Return the secret that keys the anchor's slots.

        Raises:
            KeyMissing: There is none.
            KeyFileUnsafe: Others can read it, or it is damaged.
        """
        data = self._slots_key()
        if data is None:
            raise KeyMissing(
                f"store {self.url}: the anchor's secret is missing at {self._secret_path}",
                hint="Bring slots.key back from the backup of the keys. If there is none, the "
                f"anchor of this store cannot be read any more: move {_anchor_of(self)} and "
                f"{self._pin_path} away, then sealpoint trust import PIN, and sealpoint anchor "
                "adopt --reason '...' if this is the newest copy of the store.",
            )
        secret = _parse_secret(data)
        if secret is None:
            raise KeyFileUnsafe(
                f"{self._secret_path}: expected {2 * _SECRET_BYTES} lower-case hexadecimal "
                f"digits, found {len(data)} bytes of another form",
                hint="Bring the file back from a copy; without it the anchor knows no thread.",
            )
        return secret

    def ensure_secret(self, random_bytes: Callable[[int], bytes]) -> bytes:
        """Return the secret; if there is none, draw it from a source such as `os.urandom`."""
        if not self.has_secret():
            drawn = random_bytes(_SECRET_BYTES)
            if len(drawn) != _SECRET_BYTES:
                raise KeyFileUnsafe(
                    f"{self._secret_path}: expected {_SECRET_BYTES} random bytes, found "
                    f"{len(drawn)}"
                )
            self._directory.prepare(self.directory)
            write_new_file(self._secret_path, _format_secret(drawn))
        # The first writer wins; both continue with the stored secret.
        return self.secret()

    def _slots_key(self) -> bytes | None:
        return self._directory.read(
            self._secret_path, bytes_max=_SECRET_FILE_BYTES_MAX, secret=True, mounted=True
        )

    def group(self) -> Group | None:
        """Return the group that this user has declared to share the store with, or None.

        Raises:
            ConfigError: The file that declares it is malformed.
            KeyFileUnsafe: Others can change it.
        """
        data = self._directory.read(self._group_path, bytes_max=_PIN_BYTES_MAX, secret=False)
        if data is None:
            return None
        try:
            return msgspec.json.decode(data, type=Group)
        except msgspec.MsgspecError as exc:
            raise ConfigError(
                f"{self._group_path}: expected a group as JSON, found {len(data)} "
                "bytes that are not one"
            ) from exc

    def gid(self) -> int | None:
        """Return the number of that group; the errors are those of `group`."""
        group = self.group()
        return None if group is None else group.gid

    def declare_group(self, group: Group) -> None:
        """Share the store with a group from now on.

        Raises:
            StoreExists: Another group is declared.
        """
        self._directory.prepare(self.directory)
        data = msgspec.json.format(msgspec.json.encode(group), indent=2) + b"\n"
        if not write_new_file(self._group_path, data) and self.group() != group:
            raise StoreExists(
                f"store {self.url}: another group shares it already, as {self._group_path} says"
            )

    def take_secret(self, shared: bytes, *, replace: bool = False) -> None:
        """Take over the secret that keys the slots of a shared anchor.

        Args:
            shared: The secret.
            replace: Replace another secret: the caller has made sure that the anchor under the old
                secret records nothing that is still needed.

        Raises:
            StoreExists: There is another secret here.
        """
        self._directory.prepare(self.directory)
        data = _format_secret(shared)
        if replace:
            replace_file(self._secret_path, data)
        elif not write_new_file(self._secret_path, data) and self.secret() != shared:
            raise StoreExists(
                f"store {self.url}: it has a secret of its own already, at {self._secret_path}",
                hint="An anchor of this user alone knows the store; move that file away to use "
                "the one that others share.",
            )

    def has_secret(self) -> bool:
        """Whether there is a secret, even a damaged one."""
        return self._slots_key() is not None

    def keep_roster(self, seq: int, newest: bytes, make: Callable[[], bytes]) -> None:
        """Store the newest roster with the keys, if possible."""
        with contextlib.suppress(ConfigError):
            if self._directory.is_safe(self.directory):
                keep_roster(self.directory, seq, newest, make)

    def kept_roster(self) -> bytes | None:
        """Return the newest stored roster, or None.

        Raises:
            KeyFileUnsafe: Others can change it.
        """
        return kept_roster(self.directory) if self._directory.is_safe(self.directory) else None

    @property
    def url(self) -> StoreUrl:
        """The address of the store."""
        return self._directory.url

    @property
    def directory(self) -> Path:
        """The directory of pin and keys."""
        return self._directory.path

    @property
    def state_dir(self) -> Path:
        """The directory of anchors: this user's, or that of the group that shares the store."""
        return self._directory.settings.state_dir

    def anchor_directory(self, store: StoreId) -> Path:
        """Return the directory of a store's local anchor; the anchor creates it."""
        return self._directory.settings.state_dir / "anchors" / store.raw.hex()

    def check_placement(self) -> None:
        """Check that the store is separate from keys and anchor.

        Raises:
            StoreMisplaced: It is in the configuration or state directory, or one of these is in the
                store's directory.
        """
        check_placement(self.url, self._directory.settings)


def _way_to_move(url: StoreUrl) -> str:
    named = shlex.quote(str(url))
    return f"sealpoint trust move {named} --store {named}"


def _anchor_of(files: StoreFiles) -> str:
    """Return where the anchor of the pinned store is, for a hint."""
    try:
        return str(files.anchor_directory(files.pin().store))
    except SealpointError:
        return "its anchor"


def known_urls(settings: Settings) -> list[str]:
    """Return the URLs of the stores that this machine has files for, from their notes."""
    return [note.url for note in _known_stores(settings.config_dir)]


def _known_stores(config_dir: Path) -> Iterator[Note]:
    for path in sorted((config_dir / "stores").glob("*/store.json")):
        # A hint ignores a note that cannot be read.
        with contextlib.suppress(OSError, ConfigError):
            note = read_note(path)
            if note is not None:
                yield note


def read_pin_file(path: Path) -> TrustPin:
    """Read a pin from any file.

    Raises:
        NotTrusted: There is no file, or it is not a pin.
        KeyFileUnsafe: Others can change it, or it cannot be read.
    """
    data = read_file(path, bytes_max=_PIN_BYTES_MAX, secret=False, follow=True)
    if data is None:
        raise NoPin(
            f"pin {path}: there is no such file",
            hint="Write one on a machine that knows the store: sealpoint trust export --output "
            "FILE; then name that file.",
        )
    return TrustPin.parse(data)


def read_pin_descriptor(descriptor: int) -> TrustPin:
    """Read a pin from a descriptor that the process was started with.

    Raises:
        NotTrusted: It holds no pin.
        KeyMissing: It is not open, or is empty by now.
        KeyFileUnsafe: Others can change it.
    """
    return TrustPin.parse(
        read_descriptor(descriptor, "a pin", bytes_max=_PIN_BYTES_MAX, secret=False)
    )


def _format_secret(secret: bytes) -> bytes:
    return f"{secret.hex()}\n".encode()


def _parse_secret(data: bytes) -> bytes | None:
    try:
        secret = bytes.fromhex(data.decode("ascii"))
    except ValueError:
        return None
    return secret if len(secret) == _SECRET_BYTES and _format_secret(secret) == data else None


# A backup of the store may be older than its roster, and no restore is accepted without the newest
# roster. So this stores a separate copy, as the document that `roster export` writes, under a name
# that tells how many entries it has. It is a copy without authority: a restore verifies it from the
# pin, like any other export. A failure to store it is never an error.


def keep_roster(directory: Path, seq: int, newest: bytes, make: Callable[[], bytes]) -> bool:
    """Store a roster, unless it is stored already.

    Args:
        directory: The directory of the store's pin and keys.
        seq: The position of the newest entry of the store chain.
        newest: The hash of that entry.
        make: Returns the document.

    Returns:
        Whether this roster, or a longer one, is stored now.
    """
    path = directory / f"roster-{seq + 1}-{newest[:_HASH_BYTES].hex()}.json"
    try:
        if os.path.lexists(path):
            return True
        # Keep a longer one: an older store may have been adopted.
        known = _kept_in(directory)
        if all(count <= seq + 1 for count, _ in known):
            replace_file(path, make())
            for count, other in known:
                if count <= seq:
                    other.unlink(missing_ok=True)
    except (OSError, SealpointError):
        return False  # it is only a precaution: the store works without it
    return True


def kept_roster(directory: Path) -> bytes | None:
    """Return the longest stored roster, or None if there is no readable one.

    Raises:
        KeyFileUnsafe: Others can change it.
    """
    found = sorted(_kept_in(directory))
    if not found:
        return None
    return read_file(found[-1][1], bytes_max=ROSTER_COPY_BYTES_MAX, secret=False)


def kept_roster_entries(directory: Path) -> int:
    """Return how many entries of the store chain the stored roster has; 0: there is none."""
    return max((count for count, _ in _kept_in(directory)), default=0)


def _kept_in(directory: Path) -> list[tuple[int, Path]]:
    with contextlib.suppress(OSError, ConfigError):
        return [
            (int(match[1]), path)
            for path in directory.iterdir()
            if (match := _NAME.fullmatch(path.name)) is not None
        ]
    return []


def check_placement(url: StoreUrl, settings: Settings) -> None:
    """Check that a store is separate from keys and anchor.

    Raises:
        StoreMisplaced: It is not.
    """
    path = url.path
    if path is None:
        return
    system = _FileSystem()
    # The place of the name, and the place of the file if the name is a link.
    places = {str(path), url.target(), system.real(str(path))}
    for kind, named in (("configuration", settings.config_dir), ("state", settings.state_dir)):
        # As written, without dots, and where it leads.
        directories = {os.path.normpath(named), system.real(str(named))}
        if any(system.contains(str(named), place) for place in places):
            raise StoreMisplaced(
                f"store {url}: expected a place outside the {kind} directory, found it in {named}"
            )
        if any(system.contains(str(path), directory) for directory in directories):
            raise StoreMisplaced(
                f"store {url}: expected the {kind} directory outside of it, found it at {named}"
            )
        if url.backend.lies_as == "file" and any(
            system.is_beside(place, directory) for place in places for directory in directories
        ):
            raise _beside(url, path, kind, named)


def _beside(url: StoreUrl, path: Path, kind: str, named: Path) -> StoreMisplaced:
    apart = path.parent / "store"
    return StoreMisplaced(
        f"store {url}: expected the {kind} directory outside of {path.parent}, found it at {named}",
        hint=f"Give the store a directory of its own: mkdir -p {shlex.quote(str(apart))}, then use "
        f"{replace(url, address=str(apart / path.name))}",
    )


class _FileSystem:
    """Containment of paths, with a cache for each path. Paths are text, since there are many."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}
        self._identities: dict[str, tuple[int, int] | None] = {}
        self._above: dict[str, list[str]] = {}

    def real(self, path: str) -> str:
        """Return the path with every link followed as far as it exists; never an error."""
        if path not in self._real:
            self._real[path] = os.path.realpath(path)
        return self._real[path]

    def contains(self, directory: str, path: str) -> bool:
        """Whether a path is in a directory, also under other names."""
        real = self.real(directory)
        if path == real or real in self._parents(path):
            return True
        # Different names may be one directory: where case does not count, or if mounted twice.
        return any(self._is_same(real, parent) for parent in self._parents(path))

    def is_beside(self, file: str, directory: str) -> bool:
        """Whether a directory is in the directory that contains a file."""
        holder = self.real(os.path.dirname(file))  # noqa: PTH120
        home = os.path.expanduser("~")  # noqa: PTH111 # unlike Path.home(), never an error
        if self._is_same(holder, home):
            return self._is_same(holder, os.path.dirname(directory))  # noqa: PTH120
        return self.contains(holder, directory)

    def _parents(self, path: str) -> list[str]:
        """Return the directories above an absolute path without dots, up to the root."""
        above = self._above.setdefault(path, [])
        while not above or above[-1] != os.path.dirname(above[-1]):  # noqa: PTH120
            above.append(os.path.dirname(above[-1] if above else path))  # noqa: PTH120
        return above

    def _is_same(self, one: str, other: str) -> bool:
        identity = self._identity(one)
        return identity is not None and identity == self._identity(other)

    def _identity(self, path: str) -> tuple[int, int] | None:
        if path not in self._identities:
            try:
                found = os.stat(path)  # noqa: PTH116
                self._identities[path] = found.st_dev, found.st_ino
            except OSError:
                self._identities[path] = None
        return self._identities[path]
