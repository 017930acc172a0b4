# SPDX-License-Identifier: Apache-2.0
"""A disk that loses power: what may be on it after a sequence of writes, renames and syncs.

What is assumed of the file system, and no more:

- A file's bytes and size are on the disk once `fsync` or `fdatasync` of it returned. Before that
  every sector of 512 bytes holds what it held at any moment since the last sync, each sector on
  its own: writes are lost, kept out of order and torn. A sector is never a mixture: a page
  cache writes whole sectors, with all that was written to them before.
- The size is on its own too: bytes beyond it are lost, and where it grew before its bytes came,
  zeros are read.
- A name (of a file made, linked, renamed or removed) is on the disk once `fsync` of its directory
  returned; that of the file itself is not enough, although it is on many systems. Before that any
  part of the changes may have happened, except that changes of one name keep their order and a
  rename happens in one piece.
- A sync that failed leaves its writes off the disk for good, although programs still read them:
  a later sync that succeeds says nothing about them. So do Linux file systems.

Permissions are taken to be on the disk at once: nothing that is tested here depends on them.
"""

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from tests.faults.events import (
    Event,
    Link,
    LostSync,
    Make,
    Mark,
    Mode,
    Rename,
    Resize,
    Sync,
    Unlink,
    Write,
)

__all__ = ["ROOT", "SECTOR_BYTES", "Cut", "Disk", "Image"]

SECTOR_BYTES = 512
ROOT = 0
_SIZE = -1


Image = dict[str, tuple[int, int, bytes | None]]
"""Node, mode and bytes of every file and directory by its path, parents first.

Paths of one node are names of one file. A directory has no bytes.
"""


@dataclass(slots=True)
class _File:
    durable: bytes = b""
    current: bytearray = field(default_factory=bytearray)
    pending: list[Write | Resize] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    """The sectors whose newest bytes a failed sync has left off the disk."""

    def write(self, change: Write | Resize) -> None:
        _change(self.current, change)
        if self.lost and isinstance(change, Write):
            again = _sectors(change)
            if not self.lost.isdisjoint(again):
                # The sector goes to the disk as a whole, with what was lost before.
                start, end = again[0] * SECTOR_BYTES, (again[-1] + 1) * SECTOR_BYTES
                change = Write(change.node, start, bytes(self.current[start:end]))
                self.lost.difference_update(again)
        self.pending.append(change)

    def sync(self) -> None:
        if self.pending:
            durable = bytearray(self.current)
            for sector in self.lost:
                start = sector * SECTOR_BYTES
                old = self.durable[start : start + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0")
                size = len(durable[start : start + SECTOR_BYTES])
                durable[start : start + size] = old[:size]
            self.durable = bytes(durable)
            self.pending = []

    def lose(self) -> None:
        for change in self.pending:
            if isinstance(change, Write):
                self.lost.update(_sectors(change))
        self.pending = []

    def after(self, cut: "Cut") -> bytes:
        """The bytes on the disk after a power cut."""
        writes = self.pending
        if not writes:
            return self.durable
        limits: dict[int, int] = {}

        def done(number: int, sector: int) -> bool:
            if sector not in limits:
                limits[sector] = cut.sectors(writes, sector)
            return number < limits[sector]

        data, size = bytearray(self.durable), len(self.durable)
        for number, change in enumerate(writes):
            end = change.size if isinstance(change, Resize) else change.offset + len(change.data)
            if done(number, _SIZE):
                size = end if isinstance(change, Resize) else max(size, end)
            data.extend(bytes(max(0, end - len(data))))
            for sector in _sectors(change, len(data)):
                if done(number, sector):
                    _change_sector(data, change, sector)
        return bytes(data[:size]).ljust(size, b"\0")


@dataclass(slots=True)
class _Names:
    """The names in all directories: as programs see them, and as the disk has them."""

    current: dict[int, dict[str, int]] = field(default_factory=dict)
    durable: dict[int, dict[str, int]] = field(default_factory=dict)
    pending: list[dict[tuple[int, str], int | None]] = field(default_factory=list)

    def change(self, changes: dict[tuple[int, str], int | None]) -> None:
        _apply(self.current, changes)
        self.pending.append(changes)

    def sync(self, directory: int) -> None:
        kept = []
        for changes in self.pending:
            if any(found == directory for found, _ in changes):
                _apply(self.durable, changes)
            else:
                kept.append(changes)
        self.pending = kept

    def after(self, taken: Callable[[int], bool]) -> dict[int, dict[str, int]]:
        """The names of which those changes happened that are taken, as far as order allows."""
        names = {directory: dict(found) for directory, found in self.durable.items()}
        held: set[tuple[int, str]] = set()
        for number, changes in enumerate(self.pending):
            if held.isdisjoint(changes) and taken(number):
                _apply(names, changes)
            else:
                held.update(changes)
        return names


def _apply(names: dict[int, dict[str, int]], changes: dict[tuple[int, str], int | None]) -> None:
    for (directory, name), node in changes.items():
        within = names.setdefault(directory, {})
        if node is None:
            within.pop(name, None)
        else:
            within[name] = node


@dataclass(frozen=True, slots=True)
class Cut:
    """Which of the unsynced changes are on the disk when the power goes.

    Attributes:
        names: Whether a change of names happened, by its number among those that are unsynced.
        sectors: Up to which of its unsynced writes a sector of a file is; given are the writes
            and the number of the sector, -1 for the size of the file.
    """

    names: Callable[[int], bool]
    sectors: Callable[[list[Write | Resize], int], int]

    @staticmethod
    def dropped() -> "Cut":
        """Nothing that was not synced."""
        return Cut(lambda _: False, lambda _writes, _: 0)

    @staticmethod
    def kept() -> "Cut":
        """Everything, in the order it was done."""
        return Cut(lambda _: True, lambda writes, _: len(writes))

    @staticmethod
    def names_only() -> "Cut":
        """Names without the bytes of their files."""
        return Cut(lambda _: True, lambda _writes, _: 0)

    @staticmethod
    def bytes_only() -> "Cut":
        """The bytes of files without their names."""
        return Cut(lambda _: False, lambda writes, _: len(writes))

    @staticmethod
    def torn(draw: Random) -> "Cut":
        """Everything, but of the last write to each file only some sectors in a row."""
        return Cut(lambda _: True, _Torn(draw))

    @staticmethod
    def hole(draw: Random) -> "Cut":
        """Everything but one write to each file and one change of names."""
        spared = draw.randrange(4)
        return Cut(lambda number: number != spared, _Hole(draw))

    @staticmethod
    def mixed(draw: Random) -> "Cut":
        """Each sector as it was at some moment, each change of names or not."""
        return Cut(lambda _: draw.random() < 0.5, lambda writes, _: draw.randint(0, len(writes)))


class _Torn:
    """The last write reaches the disk up to a sector, or from a sector on."""

    def __init__(self, draw: Random) -> None:
        self._part = draw.random()
        self._first = draw.random() < 0.5

    def __call__(self, writes: list[Write | Resize], sector: int) -> int:
        last = writes[-1]
        if isinstance(last, Resize) or sector == _SIZE:
            return len(writes)
        edge = (last.offset + len(last.data) * self._part) // SECTOR_BYTES
        return len(writes) - ((sector >= edge) if self._first else (sector < edge))


class _Hole:
    """One write, drawn for each file, is missing where it alone was."""

    def __init__(self, draw: Random) -> None:
        self._part = draw.random()

    def __call__(self, writes: list[Write | Resize], sector: int) -> int:
        number = int(self._part * len(writes))
        missing = writes[number]
        touched = sector == _SIZE if isinstance(missing, Resize) else sector in _sectors(missing)
        return number if touched else len(writes)


def _sectors(change: Write | Resize, size_bytes: int = 0) -> range:
    """The sectors that a change touches in a file that is so long, or will be."""
    if isinstance(change, Resize):
        start, end = change.size, max(change.size, size_bytes)
    else:
        start, end = change.offset, change.offset + len(change.data)
    return range(start // SECTOR_BYTES, -(-end // SECTOR_BYTES))


def _change(data: bytearray, change: Write | Resize) -> None:
    if isinstance(change, Resize):
        del data[change.size :]
        data.extend(bytes(change.size - len(data)))
    else:
        data.extend(bytes(max(0, change.offset - len(data))))
        data[change.offset : change.offset + len(change.data)] = change.data


def _change_sector(data: bytearray, change: Write | Resize, sector: int) -> None:
    """Do to one sector of a file, which is long enough, what a change does to it."""
    start, end = sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES
    if isinstance(change, Resize):
        start, end = max(start, change.size), min(end, len(data))
        data[start:end] = bytes(max(0, end - start))
    else:
        start = max(start, change.offset)
        end = min(end, change.offset + len(change.data))
        data[start:end] = change.data[start - change.offset : end - change.offset]


class Disk:
    """Files and directories below one directory, with what has reached the disk of each."""

    def __init__(self) -> None:
        self.files: dict[int, _File] = {}
        self.modes: dict[int, int] = {}
        self.names = _Names({ROOT: {}}, {ROOT: {}})

    def apply(self, event: Event) -> None:
        """Do what was recorded."""
        match event:
            case Make(directory, name, node, mode):
                self.modes[node] = mode
                if stat.S_ISDIR(mode):
                    self.names.current[node] = {}
                    self.names.durable[node] = {}
                else:
                    self.files[node] = _File()
                self.names.change({(directory, name): node})
            case Link(directory, name, node):
                self.names.change({(directory, name): node})
            case Unlink(directory, name):
                self.names.change({(directory, name): None})
            case Rename(directory, name, new_directory, new_name):
                node = self.names.current[directory][name]
                self.names.change({(directory, name): None, (new_directory, new_name): node})
            case Write(node, _, _) | Resize(node, _):
                self.files[node].write(event)
            case Mode(node, mode):
                self.modes[node] = mode
            case Sync(node) if node in self.files:
                self.files[node].sync()
            case Sync(node):
                self.names.sync(node)
            case LostSync(node) if node in self.files:
                self.files[node].lose()
            case LostSync() | Mark():
                pass

    def node(self, path: str) -> int:
        """The file or directory of a relative path, as programs see it; -1 if there is none."""
        found = ROOT
        for name in path.split("/") if path not in ("", ".") else ():
            found = self.names.current.get(found, {}).get(name, -1)
        return found

    def image(self, cut: Cut) -> Image:
        """What is on the disk after a power cut."""
        return dict(self._walk(cut, self.names.after(cut.names), ROOT, "", {}))

    def _walk(
        self,
        cut: Cut,
        names: dict[int, dict[str, int]],
        directory: int,
        place: str,
        contents: dict[int, bytes],
    ) -> Iterator[tuple[str, tuple[int, int, bytes | None]]]:
        for name, node in names[directory].items():
            path = f"{place}{name}"
            if node in self.files:
                if node not in contents:
                    contents[node] = self.files[node].after(cut)
                yield path, (node, self.modes[node], contents[node])
            else:
                yield path, (node, self.modes[node], None)
                yield from self._walk(cut, names, node, f"{path}/", contents)
