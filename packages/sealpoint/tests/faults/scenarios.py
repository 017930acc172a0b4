# SPDX-License-Identifier: Apache-2.0
"""What a traced process does, and how it tells: by marks, which the tracer puts among its calls.

A save under way is named by its number, its state is made from that number, and each thread
holds the numbers of its saves in their order. So what was acknowledged can be looked for.
"""

import errno
import json
import mmap
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sealpoint.storage._file_directory as file_directory
import sealpoint.storage._sqlite_connections as sqlite_connections
import sealpoint.store._blobs as store_blobs
from sealpoint.anchor import RESERVED_SEQ, Position
from sealpoint.anchor.local import LocalAnchor
from sealpoint.api import Store
from sealpoint.errors import SealpointError
from tests.faults.places import Place, anchor_of

__all__ = [
    "SAVES",
    "SCENARIOS",
    "SITUATIONS",
    "STATES_KEPT",
    "Note",
    "Teller",
    "fill_anchor",
    "state_of",
]

SAVES = 200
STATES_KEPT = 3
"""How many of the newest states of a thread nobody ever gives up."""
_SESSIONS = 5
_THREAD = "t"
_STRIDE = 30
"""How many numbers a writer has for its saves: a multiple of three, so that sizes are known."""
_BLOB = bytes(range(256)) * 80


@dataclass(frozen=True, slots=True)
class Note:
    """What a process said at one moment: a word, and what it is about."""

    word: str
    name: str = ""
    number: int = -1
    detail: str = ""

    @staticmethod
    def read(text: str) -> "Note":
        """What a mark says."""
        return Note(*json.loads(text))


@dataclass(frozen=True, slots=True)
class Teller:
    """How a process tells: into a descriptor that leads nowhere, for the tracer sees the call."""

    marks: int
    writer: int
    arm: Callable[[], None]
    """Called before faults are allowed."""

    def tell(self, word: str, name: str = "", number: int = -1, detail: str = "") -> None:
        """Put a mark among the calls of this process."""
        if word == "armed":
            self.arm()
        os.write(self.marks, json.dumps([word, name, number, detail]).encode())

    def save(self, store: Store, name: str, number: int) -> bool:
        """Save, and tell what became of it; returns whether it was acknowledged."""
        self.tell("begin", name, number)
        try:
            store.thread(name).save(state_of(number), metadata={"number": number})
        except SealpointError as exc:
            self.tell("failed", name, number, f"{type(exc).__name__}: {exc}")
            return False
        self.tell("saved", name, number)
        return True


def state_of(number: int) -> Any:
    """The state of a save: every third needs blobs, of its own and shared with the others."""
    if number % 3:
        return {"number": number}
    return {"number": number, "shared": _BLOB, "own": number.to_bytes(4, "big") * 3000}


def fill_anchor(store: Store) -> None:
    """Reserve names until the next one makes the file of the anchor grow."""
    anchor = anchor_of(store)
    assert isinstance(anchor, LocalAnchor)
    while (table := anchor._file.table) is not None and not table.crowded:
        anchor.create(os.urandom(32), Position(os.urandom(16), 0, 0, RESERVED_SEQ, bytes(32)))


def _life(place: Place, teller: Teller, trace: Callable[[], None]) -> None:
    """A store is made and used: 200 saves of five sessions, a new thread now and then."""
    trace()
    place.init()
    teller.tell("made")
    settings = sqlite_connections._WRITE_SETTINGS
    for session in range(_SESSIONS):
        # As it is, the log is folded in after a thousand pages; here it happens all the time.
        if session % 2:
            sqlite_connections._WRITE_SETTINGS = f"{settings} PRAGMA wal_autocheckpoint = 30"
        with place.open() as store:
            for number in range(session * SAVES // _SESSIONS, (session + 1) * SAVES // _SESSIONS):
                name = f"new-{number}" if number % 20 == 0 else ("even", "odd")[number % 2]
                assert teller.save(store, name, number)
        sqlite_connections._WRITE_SETTINGS = settings


def _growth(place: Place, teller: Teller, trace: Callable[[], None]) -> None:
    """The file of the anchor grows while a store is used."""
    with place.open() as store:
        fill_anchor(store)
        trace()
        teller.tell("made")
        for number in range(10):
            assert teller.save(store, f"new-{number}" if number % 3 == 0 else _THREAD, number)


def _unprepared(_store: Store, _teller: Teller, _first: int) -> None:
    """The thread is new, or the first save takes it over."""


def _in_session(store: Store, teller: Teller, first: int) -> None:
    assert teller.save(store, _THREAD, first)


def _spilling(store: Store, teller: Teller, first: int) -> None:
    """Blobs are stored ahead of their entry, as those of very large states are."""
    store_blobs._PENDING_BYTES_MAX = 8000
    file_directory._SYNCED_TOGETHER_MIN = 2
    _in_session(store, teller, first)


def _growing(store: Store, _teller: Teller, _first: int) -> None:
    fill_anchor(store)


@dataclass(frozen=True, slots=True)
class _Situation:
    """What comes before a save that is hit, and whether it is of a new thread and large."""

    prepare: Callable[[Store, Teller, int], None]
    new: bool = False
    large: bool = False


SITUATIONS = {
    "new thread": _Situation(_unprepared, new=True, large=True),
    "new session": _Situation(_unprepared),
    "small state": _Situation(_in_session),
    "large state": _Situation(_in_session, large=True),
    "spilled state": _Situation(_spilling, large=True),
    "growing anchor": _Situation(_growing, new=True),
}
"""The saves that are hit."""


def _save(situation: str, place: Place, teller: Teller, trace: Callable[[], None]) -> None:
    """One save is hit; then the same handle saves again, as if its caller had tried again."""
    how = SITUATIONS[situation]
    first = teller.writer * _STRIDE
    # The next writer may go on with a thread that another one was about to make.
    name = f"new-{teller.writer // 2}" if how.new else _THREAD
    if how.prepare is not _growing:
        trace()
    with place.open() as store:
        how.prepare(store, teller, first + 1)
        if how.prepare is _growing:
            trace()
        teller.tell("made")
        teller.tell("armed")
        done = teller.save(store, name, first + 3 if how.large else first + 4)
        teller.tell("disarmed")
        if not done:
            assert teller.save(store, name, first + 6 if how.large else first + 7)


def _loading(place: Place, teller: Teller, trace: Callable[[], None]) -> None:
    """A store is opened, read and closed, and everything may fail."""
    trace()
    teller.tell("armed")
    try:
        with place.open() as store:
            teller.tell("loaded", _THREAD, store.thread(_THREAD).load().metadata["number"])
            teller.tell("listed", _THREAD, len(list(store.thread(_THREAD).history())))
    except SealpointError as exc:
        teller.tell("failed", _THREAD, -1, f"{type(exc).__name__}: {exc}")
    teller.tell("disarmed")


def _closing(place: Place, teller: Teller, trace: Callable[[], None]) -> None:
    """A store that was written to is closed, and everything may fail."""
    first = teller.writer * _STRIDE
    trace()
    store = place.open()
    for number in range(first, first + 3):
        assert teller.save(store, _THREAD, number)
    teller.tell("made")
    teller.tell("armed")
    try:
        store.close()
    except SealpointError as exc:
        teller.tell("failed", _THREAD, -1, f"{type(exc).__name__}: {exc}")
    teller.tell("disarmed")


def _making(place: Place, teller: Teller, trace: Callable[[], None]) -> None:
    """A store is made, and everything may fail; then it is made again."""
    trace()
    teller.tell("armed")
    try:
        place.init()
        teller.tell("made")
    except SealpointError as exc:
        teller.tell("failed", "", -1, f"{type(exc).__name__}: {exc}")
    teller.tell("disarmed")


def _pruning(place: Place, teller: Teller, trace: Callable[[], None]) -> None:
    """Older states of a thread are given up and their space is freed, and everything may fail."""
    first = teller.writer * _STRIDE
    trace()
    with place.open() as store:
        for number in range(first, first + 9):
            assert teller.save(store, _THREAD, number)
        teller.tell("made")
        teller.tell("armed")
        try:
            store.thread(_THREAD).prune(keep_last=STATES_KEPT)
            done = True
        except SealpointError as exc:
            done = False
            teller.tell("failed", _THREAD, -1, f"{type(exc).__name__}: {exc}")
        teller.tell("disarmed")
        if not done:
            store.thread(_THREAD).prune(keep_last=STATES_KEPT)
        assert teller.save(store, _THREAD, first + 9)


def _sample(place: Place, teller: Teller, trace: Callable[[], None]) -> None:
    """Files are written in every way that stores and anchors use, by two OS threads."""
    trace()
    directory = place.directory
    teller.tell("armed")
    try:
        (directory / "first").write_bytes(b"a" * 1000)
    except OSError as exc:
        teller.tell("failed", "", -1, errno.errorcode[exc.errno or 0])
    teller.tell("disarmed")
    file = os.open(directory / "second", os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(file, b"b" * 5000, 100)
    os.writev(file, [b"c" * 10, b"", b"d" * 600])
    os.ftruncate(file, 4096)
    with mmap.mmap(file, 4096) as shared:
        shared[2000:2010] = b"e" * 10
        shared.flush()
    os.fsync(file)
    os.close(file)
    (directory / "inside").mkdir(mode=0o700)
    os.link(directory / "second", directory / "inside" / "third")
    writer = threading.Thread(target=(directory / "inside" / "fourth").write_text, args=("f",))
    writer.start()
    writer.join()
    (directory / "inside" / "fourth").rename(directory / "fifth")
    with (directory / "fifth").open("a") as appended:
        appended.write("g")
    (directory / "second").unlink()
    (directory / "fifth").chmod(0o640)
    if teller.writer:
        os.sync()


SCENARIOS: dict[str, Callable[[Place, Teller, Callable[[], None]], None]] = {
    "sample": _sample,
    "life": _life,
    "growth": _growth,
    "loading": _loading,
    "closing": _closing,
    "making": _making,
    "pruning": _pruning,
    **{situation: partial(_save, situation) for situation in SITUATIONS},
}
"""What a child can be told to do; each says from when on it is traced."""
