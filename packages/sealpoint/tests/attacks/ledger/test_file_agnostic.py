# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to the files of a file store: reads give exactly what was saved, or refuse.

The attacker knows nothing of the layout. For every file of the store: flip a byte, truncate, make
longer, delete, swap with a sibling, copy another thread's over it, put an older version back, or
put a directory, a link or a pipe in its place. The short test takes a sample of the bytes; the
long one takes every byte of every file.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint.errors import SealpointError
from tests.attacks.ledger.tampered_store import WORLD, Outcome, Saved, Truth, read_everything

Files = dict[str, bytes]


@dataclass(frozen=True)
class Damage:
    """An edit of the files."""

    what: str
    make: Callable[[Path], object]


class Archive:
    """A file store worth damaging, which can be put back into its first state at once."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "disk" / "agents"
        self.root.parent.mkdir()
        self._url = f"file://{self.root}"
        self._places: dict[str, Any] = {
            "config_dir": folder / "config",
            "state_dir": folder / "state",
        }
        sealpoint.init(self._url, **self._places)
        self.truth: Truth = {}
        self._session(0)
        self.older = self.files()
        self._session(1)
        self._session(2)
        self.pristine = self.files()
        (self._anchor,) = self._places["state_dir"].rglob("anchor.slots")
        self._anchored = self._anchor.read_bytes()

    def files(self) -> Files:
        """Every file of the store by its path."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }

    def _session(self, number: int) -> None:
        with sealpoint.open_store(self._url, **self._places) as store:
            for name, length in (("alpha", 120), ("beta", 2)):
                state = {"words": [f"{name} {place} " + "word " * 20 for place in range(length)]}
                state["words"] = state["words"] * (number + 1)
                ref = store.thread(name).save(
                    state, id=f"{name[0]}-{number}", metadata={"step": number}, world=WORLD
                )
                self.truth.setdefault(name, []).append(Saved(ref, state, WORLD))

    def put_back(self) -> None:
        """Store and anchor as they were."""
        shutil.rmtree(self.root)
        for name, data in self.pristine.items():
            path = self.root / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o600)
        for directory in (self.root, *(path for path in self.root.rglob("*") if path.is_dir())):
            directory.chmod(0o700)
        self._anchor.write_bytes(self._anchored)

    def read(self) -> Outcome:
        """Everything there is to read; anything but the truth or a `SealpointError` fails."""
        try:
            store = sealpoint.open_store(self._url, **self._places)
        except SealpointError as error:
            return {"open": error}
        with store:
            return {"open": None, **read_everything(store, self.truth)}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """One store for all edits."""
    archive = Archive(tmp_path_factory.mktemp("archive"))
    archive.put_back()
    found = {name: error for name, error in archive.read().items() if error is not None}
    assert not found, f"not usable before any edit: {found}"
    return archive


def _flips(name: str, data: bytes, step: int) -> Iterator[Damage]:
    for place in range(0, len(data), step):
        changed = bytearray(data)
        changed[place] ^= 0x41

        def flip(root: Path, changed: bytes = bytes(changed)) -> None:
            (root / name).write_bytes(changed)

        yield Damage(f"flip byte {place} of {name}", flip)


def _lengths(name: str, data: bytes, step: int) -> Iterator[Damage]:
    for size in {0, len(data) // 2, max(0, len(data) - 1), *range(0, len(data), step)}:
        if size != len(data):
            yield Damage(f"cut {name} to {size} bytes", _writer(name, data[:size]))
    longer = data + b"\0"
    yield Damage(f"make {name} longer", lambda root: (root / name).write_bytes(longer))


def _replacements(name: str) -> Iterator[Damage]:
    def replace(make: Callable[[Path], object]) -> Callable[[Path], None]:
        def edit(root: Path) -> None:
            (root / name).unlink()
            make(root / name)

        return edit

    yield Damage(f"delete {name}", lambda root: (root / name).unlink())
    yield Damage(f"a directory in place of {name}", replace(Path.mkdir))
    yield Damage(f"a pipe in place of {name}", replace(os.mkfifo))
    yield Damage(
        f"a link in place of {name}", replace(lambda path: path.symlink_to("/etc/hostname"))
    )


def _mixtures(archive: Archive) -> Iterator[Damage]:
    names = sorted(archive.pristine)
    for name, other in zip(names, islice(cycle(names), 1, None), strict=False):
        mine, theirs = archive.pristine[name], archive.pristine[other]

        def swap(
            root: Path, pair: tuple[str, str, bytes, bytes] = (name, other, mine, theirs)
        ) -> None:
            first, second, one, two = pair
            (root / first).write_bytes(two)
            (root / second).write_bytes(one)

        if mine != theirs:
            yield Damage(f"swap {name} and {other}", swap)
    for name in names:
        before = archive.older.get(name)
        if before is not None and before != archive.pristine[name]:
            yield Damage(f"put {name} back", _writer(name, before))
    yield Damage("put the whole store back", lambda root: _restore(root, archive.older))
    yield from _copies(names, archive)


def _copies(names: list[str], archive: Archive) -> Iterator[Damage]:
    """Each file of one thread over, or beside, the files of the other one."""
    threads = sorted({"/".join(name.split("/")[:3]) for name in names if "threads/" in name})
    for name in names:
        for thread in threads:
            if name.startswith("threads/") and not name.startswith(thread):
                target = "/".join([thread, *name.split("/")[3:]])
                data = archive.pristine[name]
                if archive.pristine.get(target) != data:
                    yield Damage(f"copy {name} to {target}", _writer(target, data))


def _writer(name: str, data: bytes) -> Callable[[Path], None]:
    def write(root: Path) -> None:
        path = root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)

    return write


def _restore(root: Path, files: Files) -> None:
    for path in list(root.rglob("*")):
        if path.is_file() and str(path.relative_to(root)) not in files:
            path.unlink()
    for name, data in files.items():
        _writer(name, data)(root)


def _damages(archive: Archive, step: int) -> Iterator[Damage]:
    for name, data in sorted(archive.pristine.items()):
        yield from _flips(name, data, step)
        yield from _lengths(name, data, step)
        yield from _replacements(name)
    yield from _mixtures(archive)


def _survey(archive: Archive, damages: Iterator[Damage]) -> tuple[int, int]:
    """Make each edit, read everything, put all back; how many edits there were, and refusals."""
    made = refusals = 0
    for damage in damages:
        archive.put_back()
        damage.make(archive.root)
        outcome = archive.read()
        made += 1
        refusals += any(error is not None for error in outcome.values())
    archive.put_back()
    return made, refusals


def test_a_sample_of_all_edits_gives_the_truth_or_is_refused(archive: Archive) -> None:
    """Nothing but what was saved or a `SealpointError` comes of any edit, and most are noticed."""
    made, refusals = _survey(archive, _damages(archive, 997))

    assert made > 300
    assert refusals > made * 0.7, (made, refusals)
    assert not [error for error in archive.read().values() if error is not None]


@pytest.mark.soak
def test_every_byte_of_every_file(archive: Archive) -> None:
    """The same for each byte of each file."""
    made, refusals = _survey(archive, _damages(archive, 1))

    assert made > 20_000
    assert refusals > made * 0.7, (made, refusals)
