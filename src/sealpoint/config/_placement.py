# SPDX-License-Identifier: Apache-2.0
"""Where a store may lie: apart from its keys and its anchor.

Whoever puts a directory back to an earlier time must not put back a store together with the
memory of it, and whoever may write the store must not reach the keys. So a store lies neither
in the configuration nor in the state directory, neither of them lies in a directory that is a
store, and neither lies in the directory that holds the file of a store, which counts as the
store's. The home directory of the user is an exception: the user's own directories lie below it
whatever one does, so for a file in it only what lies directly beside the file counts.

Paths are compared where they lie and where they lead. What is mounted where, and what a backup
takes together, nobody can see from here.
"""

import os
import shlex
from dataclasses import replace
from pathlib import Path

from sealpoint.config._backends import StoreUrl
from sealpoint.config._settings import Settings
from sealpoint.errors import StoreMisplaced


def check_placement(url: StoreUrl, settings: Settings) -> None:
    """Check that a store lies apart from keys and anchor.

    Raises:
        StoreMisplaced: It does not.
    """
    path = url.path
    if path is None:
        return
    system = _FileSystem()
    # Where the name lies, and where the file does if the name is a link.
    places = {path, Path(url.target()), system.real(path)}
    for kind, named in (("configuration", settings.config_dir), ("state", settings.state_dir)):
        # As it is written, without dots, and where it leads.
        directories = {Path(os.path.normpath(named)), system.real(named)}
        if any(system.contains(named, place) for place in places):
            raise StoreMisplaced(
                f"store {url}: expected a place outside the {kind} directory, found it in {named}"
            )
        if any(system.contains(path, directory) for directory in directories):
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
    """What lies where, each path looked at once."""

    def __init__(self) -> None:
        self._real: dict[Path, Path] = {}
        self._identities: dict[Path, tuple[int, int] | None] = {}

    def real(self, path: Path) -> Path:
        """The path with every link followed as far as it exists; unlike `resolve`, no error."""
        if path not in self._real:
            self._real[path] = Path(os.path.realpath(path))
        return self._real[path]

    def contains(self, directory: Path, path: Path) -> bool:
        """Whether a path lies in a directory, whatever either is called."""
        real = self.real(directory)
        if path.is_relative_to(real):
            return True
        # Names that differ may be one directory: where case does not count, or when mounted twice.
        return any(self._is_same(real, parent) for parent in path.parents)

    def is_beside(self, file: Path, directory: Path) -> bool:
        """Whether a directory lies in the directory of a file."""
        holder = self.real(file.parent)
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 # unlike Path.home(), never an error
        if self._is_same(holder, home):
            return self._is_same(holder, directory.parent)
        return self.contains(holder, directory)

    def _is_same(self, one: Path, other: Path) -> bool:
        identity = self._identity(one)
        return identity is not None and identity == self._identity(other)

    def _identity(self, path: Path) -> tuple[int, int] | None:
        if path not in self._identities:
            try:
                found = path.stat()
                self._identities[path] = found.st_dev, found.st_ino
            except OSError:
                self._identities[path] = None
        return self._identities[path]
