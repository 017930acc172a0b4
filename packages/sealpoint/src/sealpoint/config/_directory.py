# SPDX-License-Identifier: Apache-2.0
"""The directory of one store below the configuration directory, and the safe way into it.

Every directory from CONFIG_DIR down is checked from the top before a file in it is opened, and
made for the user alone before one is written. The first file that is written says what the address
of the store is, and where that led then.
"""

import hashlib
import os
from pathlib import Path

import msgspec

from sealpoint.config._backends import StoreUrl
from sealpoint.config._secret_files import (
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
    """What `store.json` says."""

    url: str
    """The address of the store."""
    target: str
    """Where it led when it was first used, or when somebody said that it moved."""


class StoreDirectory:
    """Where the files of a store lie, and the safe way to them."""

    __slots__ = ("_levels", "_prepared", "note_path", "path", "settings", "url")

    def __init__(self, settings: Settings, url: StoreUrl) -> None:
        self.settings = settings
        self.url = url
        self._levels: dict[Path, list[str]] = {}
        self._prepared: set[str] = set()
        """Directories that this object has made, or found, and whose names are on the disk."""
        name = hashlib.sha256(url.place.encode()).digest()[:_NAME_BYTES].hex()
        self.path = settings.config_dir / "stores" / name
        self.note_path = self.path / "store.json"
        """The file that says what the address of the store is, and where it leads."""

    def _below(self, directory: Path) -> list[str]:
        """Every directory below CONFIG_DIR down to one, from the top; they are asked for often."""
        found = self._levels.get(directory)
        if found is None:
            top = self.settings.config_dir
            parts = directory.relative_to(top).parts
            found = [str(top.joinpath(*parts[:count])) for count in range(1, len(parts) + 1)]
            self._levels[directory] = found
        return found

    def is_safe(self, directory: Path) -> bool:
        """Whether a directory is there; every one on the way to it is checked."""
        return check_directory(self.settings.config_dir, follow=True) and all(
            check_directory(path) for path in self._below(directory)
        )

    def read(
        self, path: Path, *, bytes_max: int, secret: bool, mounted: bool = False
    ) -> bytes | None:
        """A file of the store; if `mounted`, the one of that name in a mounted secret before it."""
        secrets = self.settings.secrets_dir
        if mounted and secrets is not None:
            data = read_mounted(secrets, path.name, bytes_max=bytes_max, secret=secret)
            if data is not None:
                return data
        if not self.is_safe(path.parent):
            return None
        return read_file(path, bytes_max=bytes_max, secret=secret)

    def prepare(self, directory: Path) -> None:
        """Make the directories down to one, and note where the store lies, unless that is known."""
        if str(directory) in self._prepared and self.is_safe(directory):
            return
        make_directory(self.settings.config_dir, follow=True, parents=True)
        self.is_safe(directory)  # whatever is there already, before anything is made in it
        # In one go: each name is brought to the disk once.
        make_directory(directory, parents=True)
        self.is_safe(directory)
        if os.path.lexists(self.note_path):
            # Whoever wrote it may have died before its name was on the disk.
            sync_directory(self.path)
        else:
            write_new_file(self.note_path, self.note())
        self._prepared.update(self._below(directory))

    def note(self) -> bytes:
        """What is to be written there."""
        note = Note(url=self.url.place, target=self.url.target())
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
