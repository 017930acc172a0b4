# SPDX-License-Identifier: Apache-2.0
"""The directory of one store below the configuration directory, and safe access to it.

Every directory from CONFIG_DIR down is checked from the top before a file in it is opened, and is
created for this user alone before a file is written. Writing the first file also records the
address of the store, and where it leads at that time.
"""

import hashlib
import os
from pathlib import Path

import msgspec

from sealpoint.config._backends import StoreUrl
from sealpoint.config._protected_files import (
    check_directory,
    make_directory,
    read_file,
    read_mounted,
    sync_directory,
    write_new_file,
)
from sealpoint.config._settings import Settings

_NAME_BYTES = 16
_NOTE_BYTES_MAX = 64 * 1024


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of `store.json`."""

    url: str
    """The address of the store."""
    target: str
    """The target when the store was first used, or when the user declared that it moved."""


class StoreDirectory:
    """The location of a store's files, and safe access to them."""

    __slots__ = ("_levels", "_prepared", "note_path", "path", "settings", "url")

    def __init__(self, settings: Settings, url: StoreUrl) -> None:
        self.settings = settings
        self.url = url
        self._levels: dict[Path, list[str]] = {}
        self._prepared: set[str] = set()
        """Directories that this object has created or found, and whose names are on the disk."""
        name = hashlib.sha256(url.place.encode()).digest()[:_NAME_BYTES].hex()
        self.path = settings.config_dir / "stores" / name
        self.note_path = self.path / "store.json"
        """The file with the address of the store, and where it leads."""

    def _below(self, directory: Path) -> list[str]:
        """Return every directory below CONFIG_DIR down to one, from the top; cached for speed."""
        found = self._levels.get(directory)
        if found is None:
            top = self.settings.config_dir
            parts = directory.relative_to(top).parts
            found = [str(top.joinpath(*parts[:count])) for count in range(1, len(parts) + 1)]
            self._levels[directory] = found
        return found

    def is_safe(self, directory: Path) -> bool:
        """Whether a directory exists, after checking every directory on the path to it."""
        return check_directory(self.settings.config_dir, follow=True) and all(
            check_directory(path) for path in self._below(directory)
        )

    def read(
        self, path: Path, *, bytes_max: int, secret: bool, mounted: bool = False
    ) -> bytes | None:
        """Read a file of the store; if `mounted`, a mounted secret with that name comes first."""
        secrets = self.settings.secrets_dir
        if mounted and secrets is not None:
            data = read_mounted(secrets, path.name, bytes_max=bytes_max, secret=secret)
            if data is not None:
                return data
        if not self.is_safe(path.parent):
            return None
        return read_file(path, bytes_max=bytes_max, secret=secret)

    def prepare(self, directory: Path) -> None:
        """Create the directories down to one, and record where the store is if that is unknown."""
        if str(directory) in self._prepared and self.is_safe(directory):
            return
        make_directory(self.settings.config_dir, follow=True, parents=True)
        self.is_safe(directory)  # checks whatever exists already, before anything is created in it
        # In one call, so that each name is synced to the disk once.
        make_directory(directory, parents=True)
        self.is_safe(directory)
        if os.path.lexists(self.note_path):
            # The process that wrote it may have died before its name was on the disk.
            sync_directory(self.path)
        else:
            write_new_file(self.note_path, self.note())
        self._prepared.update(self._below(directory))

    def note(self) -> bytes:
        """Return the content to write there."""
        note = Note(url=self.url.place, target=self.url.target())
        return msgspec.json.format(msgspec.json.encode(note), indent=2) + b"\n"


def read_note(path: Path) -> Note | None:
    """Read a note; None if it does not exist or is malformed.

    Raises:
        KeyFileUnsafe: Others can change it.
    """
    data = read_file(path, bytes_max=_NOTE_BYTES_MAX, secret=False)
    try:
        return None if data is None else msgspec.json.decode(data, type=Note)
    except msgspec.MsgspecError:
        return None
