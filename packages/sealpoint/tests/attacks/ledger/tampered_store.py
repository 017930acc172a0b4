# SPDX-License-Identifier: Apache-2.0
"""A real store on disk, somebody who tampers with it by plain SQL, and every way to read.

A read ends in one of three ways: it gives exactly what was saved, it raises a `SealpointError`, or
the test fails. A verdict counts only with three controls: the store was usable before the edit, a
reopen without an edit still verifies, and the edit really landed.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import sealpoint
from sealpoint.api import Store, admin
from sealpoint.errors import SealpointError
from sealpoint.gate import Thread
from sealpoint.store import CheckpointRef, Loaded
from tests.sameness import same

__all__ = [
    "WORLD",
    "Edit",
    "Outcome",
    "Saved",
    "TamperedStore",
    "Truth",
    "contents",
    "entry_rows",
    "read_everything",
    "refused",
]

Edit = Callable[[sqlite3.Connection], object]
Row = tuple[Any, ...]


Outcome = dict[str, SealpointError | None]
"""Every read by its name: None if it gave exactly what was saved, else how it was refused."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint as its writer knows it."""

    ref: CheckpointRef
    state: Any
    world: dict[str, Any] | None

    def check(self, loaded: Loaded) -> None:
        """Fail unless a load gave exactly this."""
        assert same(loaded.state, self.state)
        assert loaded.ref == self.ref
        assert loaded.metadata == self.ref.metadata
        assert loaded.world == self.world


WORLD = {"tools": [{"name": "read_file"}]}
"""What every session declares: the gate asks why where one declares another, or none."""

Truth = dict[str, list[Saved]]
"""The checkpoints of every thread, oldest first."""


def contents(database: sqlite3.Connection) -> dict[str, list[Row]]:
    """Every row of every table, and the schema."""
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master ORDER BY name")]
    found: dict[str, list[Row]] = {"": database.execute("SELECT * FROM sqlite_master").fetchall()}
    for table in tables:
        if not table.startswith("sqlite_"):
            rows = database.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608 # a test
            found[table] = sorted(rows, key=repr)
    return found


def entry_rows(database: sqlite3.Connection, thread: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """Header, seals and body of each entry of a thread, in order."""
    return database.execute(
        "SELECT header, seals, body FROM entries WHERE thread = ? ORDER BY seq", (thread,)
    ).fetchall()


@dataclass
class TamperedStore:
    """A store with its keys and its anchor, each in a place of its own."""

    folder: Path
    truth: Truth = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.disk = self.folder / "disk"
        self.path = self.disk / "agents.db"
        self.url = f"sqlite:///{self.path}"
        self.places: dict[str, Any] = {
            "config_dir": self.folder / "config",
            "state_dir": self.folder / "state",
        }

    @classmethod
    def make(cls, folder: Path) -> "TamperedStore":
        """Initialise an empty store."""
        scene = cls(folder)
        scene.disk.mkdir(parents=True)
        sealpoint.init(scene.url, **scene.places)
        return scene

    def copied(self, folder: Path) -> "TamperedStore":
        """The same store with its keys and its anchor, elsewhere."""
        shutil.copytree(self.folder, folder)
        copy = TamperedStore(folder, {name: list(saved) for name, saved in self.truth.items()})
        admin(copy.url, **copy.places).trust.move_from(self.url)
        return copy

    def open(self, **options: Any) -> Store:
        """Open the store as its user would."""
        return sealpoint.open_store(self.url, **self.places, **options)

    def save(self, store: Store, name: str, state: Any, **options: Any) -> CheckpointRef:
        """Save, and remember what is true from now on."""
        ref = store.thread(name).save(state, **{"world": WORLD, **options})
        self.truth.setdefault(name, []).append(Saved(ref, state, WORLD))
        return ref

    def thread_id(self, name: str) -> bytes:
        """The id of a thread, as an attacker learns it: from the name in its genesis."""
        with self.raw() as database:
            rows = database.execute("SELECT thread, body FROM entries WHERE seq = 0").fetchall()
        (found,) = [thread for thread, body in rows if f'"name":"{name}"'.encode() in body]
        return bytes(found)

    # ------------------------------------------------------------------ the attacker

    @contextmanager
    def raw(self) -> Iterator[sqlite3.Connection]:
        """Plain SQL on the file."""
        database = sqlite3.connect(self.path, isolation_level=None)
        try:
            yield database
        finally:
            database.close()

    def commit(self, edit: Edit) -> None:
        """Make an edit, and require that it landed."""
        with self.raw() as database:
            before = contents(database)
            edit(database)
        with self.raw() as database:
            assert contents(database) != before, "the edit did not land"

    def copy_of_the_store(self) -> dict[str, bytes]:
        """What a backup of the disk holds: the file and whatever lies beside it."""
        return {each.name: each.read_bytes() for each in self.disk.iterdir()}

    def put_back(self, copied: dict[str, bytes]) -> None:
        """Restore such a backup."""
        for each in list(self.disk.iterdir()):
            each.unlink()
        for name, data in copied.items():
            (self.disk / name).write_bytes(data)

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Put store and anchor back afterwards, for the next edit of a test."""
        copied = self.copy_of_the_store()
        (anchor,) = self.places["state_dir"].rglob("anchor.slots")
        anchored = anchor.read_bytes()
        yield
        self.put_back(copied)
        anchor.write_bytes(anchored)

    # ------------------------------------------------------------------ the victim

    def read(self, **options: Any) -> Outcome:
        """Open the store and read everything there is to read."""
        try:
            store = self.open(**options)
        except SealpointError as error:
            return {"open": error, "threads": error, **dict.fromkeys(_names(self.truth), error)}
        with store:
            return {"open": None, **read_everything(store, self.truth)}

    def require_sound(self) -> None:
        """Two controls: the store is usable, and a reopen without an edit verifies."""
        for _ in range(2):
            found = {name: error for name, error in self.read().items() if error is not None}
            assert not found, f"not usable before the edit: {found}"

    def after(self, edit: Edit, **options: Any) -> Outcome:
        """How every read ends after an edit, with all three controls."""
        self.require_sound()
        self.commit(edit)
        return self.read(**options)


def _names(truth: Truth) -> Iterator[str]:
    for name, checkpoints in truth.items():
        yield f"load {name}"
        yield f"history {name}"
        yield f"find {name}"
        for saved in checkpoints:
            yield f"load {name} {saved.ref.id}"


def read_everything(store: Store, truth: Truth) -> Outcome:
    """Every read of an open store; anything but the truth or a `SealpointError` fails."""
    found: Outcome = {"threads": _attempt(partial(_check_threads, store, truth))}
    for name, checkpoints in truth.items():
        thread = store.thread(name)
        found[f"load {name}"] = _attempt(partial(_check_load, thread, checkpoints[-1], None))
        for saved in checkpoints:
            read = partial(_check_load, thread, saved, saved.ref)
            found[f"load {name} {saved.ref.id}"] = _attempt(read)
        found[f"history {name}"] = _attempt(partial(_check_history, thread, checkpoints))
        oldest = checkpoints[0]
        found[f"find {name}"] = _attempt(partial(_check_load, thread, oldest, oldest.ref.id))
    return found


def _attempt(read: Callable[[], object]) -> SealpointError | None:
    try:
        read()
    except SealpointError as error:
        return error
    return None


def _check_threads(store: Store, truth: Truth) -> None:
    found = store.threads(partial=True)
    assert set(found.names) <= set(truth), "a name that nobody saved anything under"
    assert len(set(found.names)) == len(found.names)
    assert set(store.threads()) == set(truth), "a complete list that lacks a name"


def _check_load(thread: Thread, truth: Saved, ref: CheckpointRef | str | None) -> None:
    truth.check(thread.load(ref))


def _check_history(thread: Thread, truth: list[Saved]) -> None:
    assert list(thread.history()) == [saved.ref for saved in reversed(truth)]


def refused(outcome: Outcome) -> dict[str, type[SealpointError]]:
    """The reads that were refused, each with the class of its error."""
    return {name: type(error) for name, error in outcome.items() if error is not None}
