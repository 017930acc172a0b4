# SPDX-License-Identifier: Apache-2.0
"""Power cuts at any moment of a recording: the disk is laid out as it may be then, and judged.

What is judged is the whole: the store is opened with the keys and the anchor that the same disk
holds, verified from end to end, and must have everything that was acknowledged before the power
went, in order, beside at most what was under way.
"""

import shutil
import stat
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from sealpoint.api import Store
from sealpoint.errors import UnknownThread
from tests.faults.disk import Cut, Disk, Image
from tests.faults.events import Event, Mark
from tests.faults.places import Place
from tests.faults.recording import MEMORY_SUFFIX
from tests.faults.scenarios import STATES_KEPT, Note, state_of

__all__ = ["CUTS", "Layout", "Told", "cut_of", "image_of", "judge", "moments"]

CUTS = ("dropped", "kept", "names only", "bytes only", "torn", "hole", "mixed", "mixed again")
"""The ways in which the unsynced changes of a moment are lost or kept."""


@dataclass(slots=True)
class Told:
    """What a process had told up to a moment, by thread and in order."""

    made: bool = False
    saved: dict[str, list[int]] = field(default_factory=dict)
    begun: dict[str, list[int]] = field(default_factory=dict)

    def note(self, note: Note) -> None:
        """Take one thing in that it told."""
        if note.word == "made":
            self.made = True
        elif note.word in {"begin", "saved"}:
            told = self.begun if note.word == "begin" else self.saved
            told.setdefault(note.name, []).append(note.number)


def moments(events: list[Event], before: Told | None = None) -> Iterator[tuple[int, Disk, Told]]:
    """Every moment of a recording that differs for the disk or in what was told before it.

    The disk and what was told, beginning with what was before, are the same objects each time.
    """
    disk = Disk()
    told = Told() if before is None else deepcopy(before)
    for number, event in enumerate(events, start=1):
        disk.apply(event)
        if isinstance(event, Mark):
            told.note(Note.read(event.text))
        # Telling changes nothing on the disk: the moment after it asks for more.
        if number == len(events) or not isinstance(events[number], Mark):
            yield number, disk, told


def cut_of(name: str, moment: int) -> Cut:
    """A way to lose power, the same one each time it is asked for."""
    draw = Random(f"{name} {moment}")  # noqa: S311 # which writes are lost
    match name:
        case "dropped":
            return Cut.dropped()
        case "kept":
            return Cut.kept()
        case "names only":
            return Cut.names_only()
        case "bytes only":
            return Cut.bytes_only()
        case "torn":
            return Cut.torn(draw)
        case "hole":
            return Cut.hole(draw)
        case _:
            return Cut.mixed(draw)


class Layout:
    """A directory that is made to hold one image after the other."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._laid: dict[str, tuple[int, bytes, tuple[int, ...]]] = {}
        self._judged: set[int] = set()

    def is_new(self, image: Image, told: Told) -> bool:
        """Whether the image, with as much acknowledged, was not asked about before."""
        key = hash((*image.items(), sum(map(len, told.saved.values()))))
        if key in self._judged:
            return False
        self._judged.add(key)
        return True

    def lay(self, image: Image, draw: Random) -> None:
        """Make the directory hold exactly an image; what still lies there is left alone."""
        for path in sorted(self._directory.rglob("*"), reverse=True):
            name = str(path.relative_to(self._directory))
            mode = image[name][1] if name in image else 0
            if stat.S_IFMT(mode) != stat.S_IFMT(path.lstat().st_mode):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        names: dict[int, list[str]] = {}
        for name, (node, mode, data) in image.items():
            if data is None:
                (self._directory / name).mkdir(exist_ok=True)
                (self._directory / name).chmod(stat.S_IMODE(mode))
            else:
                names.setdefault(node, []).append(name)
        for found in names.values():
            _, mode, data = image[found[0]]
            if found[0].endswith(MEMORY_SUFFIX) and data is not None:
                # Nobody has recorded what was in memory, and it is to be made anew anyway.
                data = draw.randbytes(len(data)) if draw.random() < 0.5 else bytes(len(data))
            self._lay_file(found, mode, data or b"")

    def _lay_file(self, names: list[str], mode: int, data: bytes) -> None:
        """Make a file with all its names, unless it is there."""
        paths = [self._directory / name for name in names]
        if all(
            self._laid.get(name) == (mode, data, _signature(self._directory / name))
            for name in names
        ):
            return
        for path in paths:
            path.unlink(missing_ok=True)
        paths[0].write_bytes(data)
        paths[0].chmod(stat.S_IMODE(mode))
        for path in paths[1:]:
            path.hardlink_to(paths[0])
        for name in names:
            self._laid[name] = mode, data, _signature(paths[0])


def image_of(found: Image | Path) -> dict[str, tuple[int, bytes | None]]:
    """Mode and bytes of what an image or a directory holds, for a comparison of the two."""
    if isinstance(found, Path):
        return {
            str(path.relative_to(found)): (
                path.stat().st_mode,
                None if path.is_dir() else path.read_bytes(),
            )
            for path in found.rglob("*")
            if not path.name.endswith(MEMORY_SUFFIX)
        }
    return {
        name: (mode, data)
        for name, (_, mode, data) in found.items()
        if not name.endswith(MEMORY_SUFFIX)
    }


def _signature(path: Path) -> tuple[int, ...]:
    """Changes whenever a file is written to."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_nlink, found.st_mode, found.st_size, found.st_mtime_ns


def judge(place: Place, told: Told, *, go_on: bool) -> None:
    """Open what is there; all that was told to be saved must be there, verified and readable."""
    with place.open() as store:
        report = store.verify()
        assert report.ok, report.findings
        for name in told.begun:
            numbers = _numbers(store, name)
            saved = told.saved.get(name, [])
            # What failed or was under way may be there or not.
            assert [number for number in numbers if number in saved] == saved, (
                name,
                numbers,
                saved,
            )
            assert [number for number in told.begun[name] if number in numbers] == numbers, name
        if go_on:
            name = next(iter(told.begun), "t")
            ref = store.thread(name).save("after the cut")
            assert store.thread(name).load().ref == ref


def _numbers(store: Store, name: str) -> list[int]:
    """The numbers of a thread's saves, oldest first; the newest states are read."""
    thread = store.thread(name)
    try:
        refs = list(thread.history())
    except UnknownThread:
        return []
    for ref in refs[:STATES_KEPT]:
        assert thread.load(ref).state == state_of(ref.metadata["number"])
    return [ref.metadata["number"] for ref in refs[::-1]]
