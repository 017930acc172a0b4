# SPDX-License-Identifier: Apache-2.0
"""`kill -9` at every step of a save: what was acknowledged is there, and work goes on."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpoint.anchor import RESERVED_SEQ, Position
from sealpoint.anchor.local import LocalAnchor
from sealpoint.api import Store
from sealpoint.errors import UnknownThread
from tests.faults.places import KINDS, Place, anchor_of, facts
from tests.faults.spawner import Job, Notes, Spawner, spawner
from tests.faults.steering import GROWTH_STEPS, NEW_THREAD_STEPS, SAVE_STEPS, SMALL_STEPS
from tests.faults.writers import SMALL, state_of

_KILLED = (-signal.SIGKILL, -signal.SIGXFSZ)
_kills = pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.soak)])


@pytest.fixture(scope="module")
def children() -> Iterator[Spawner]:
    """One spawner for all tests of this file."""
    with spawner() as running:
        yield running


def _require_acknowledged(store: Store, name: str, notes: Notes) -> list[tuple[int, ...]]:
    """What was acknowledged is there once and exact; nothing else but what was under way.

    Returns:
        The marks of the thread, oldest first.
    """
    acknowledged, begun = notes.acknowledged(name), notes.begun(name)
    try:
        found = facts(store, name)
    except UnknownThread:
        found = []
    marks = [tuple(fact.metadata["mark"]) for fact in found]

    assert max(Counter(marks).values(), default=1) == 1
    assert (
        acknowledged.items() <= dict(zip(marks, (fact.seq for fact in found), strict=True)).items()
    )
    assert set(marks) <= begun
    for fact in found[-5:]:
        assert store.thread(name).load(fact.id).state == state_of(fact.metadata["mark"])
    return marks


def _recover(place: Place, name: str, notes: Notes) -> list[tuple[int, ...]]:
    """Open the store anew, check everything, and save; returns the marks that were found."""
    with place.open() as store:
        marks = _require_acknowledged(store, name, notes)
        report = store.verify()
        assert (report.ok, report.findings) == (True, ())
        assert store.threads().complete
        thread = store.thread(name)
        if marks:
            assert thread.load().state == state_of(list(marks[-1]))
        else:
            with pytest.raises(UnknownThread):
                thread.load()
        mark = (-1, len(marks), time.monotonic_ns())
        ref = thread.save(state_of(list(mark)), metadata={"mark": list(mark)})
        notes.acknowledge(name, mark, ref.seq)
        assert thread.load().ref == ref
    return marks


def _job(place: Place, writer: int, **more: object) -> Job:
    log = str(place.directory / "notes")
    directory, kind = str(place.directory), place.kind
    return Job(directory=directory, kind=kind, log=log, writer=writer, **more)  # type: ignore[arg-type]


def _require_step(place: Place, children: Spawner, job: Job, *, stands: bool, notes: Notes) -> None:
    """Let a writer die at its step; the checkpoint under way stands or does not, as expected."""
    status = children.run(job)
    marks = _recover(place, job.names[0], notes)

    assert status in _KILLED
    assert ((job.writer, 0, 0) in marks) == stands


@_kills
@pytest.mark.parametrize(("kind", "step", "stands"), SAVE_STEPS)
def test_kill_in_a_save_of_an_open_session(
    tmp_path: Path, children: Spawner, kind: str, step: str, *, stands: bool, kills: int
) -> None:
    """A writer that is killed at a step of an ordinary save loses at most what it was not told."""
    place = Place(tmp_path, kind).make()
    notes = Notes(tmp_path / "notes")
    for number in range(kills):
        job = _job(place, number, names=("t",), unsteered=2, step=step)
        _require_step(place, children, job, stands=stands, notes=notes)

    assert notes.hits() == [step] * kills


@_kills
@pytest.mark.parametrize(("kind", "step", "stands"), SMALL_STEPS)
def test_kill_in_a_save_of_one_statement(
    tmp_path: Path, children: Spawner, kind: str, step: str, *, stands: bool, kills: int
) -> None:
    """A writer that is killed while it saves a state without blobs leaves all of it or none."""
    place = Place(tmp_path, kind).make()
    notes = Notes(tmp_path / "notes")
    for number in range(SMALL, SMALL + kills):
        job = _job(place, number, names=("t",), unsteered=2, step=step)
        _require_step(place, children, job, stands=stands, notes=notes)

    assert notes.hits() == [step] * kills


@_kills
@pytest.mark.parametrize(("kind", "step", "stands"), SAVE_STEPS)
def test_kill_while_a_session_is_opened(
    tmp_path: Path, children: Spawner, kind: str, step: str, *, stands: bool, kills: int
) -> None:
    """A writer that is killed while its first save takes a thread over leaves all of it or none."""
    place = Place(tmp_path, kind).make()
    notes = Notes(tmp_path / "notes")
    assert children.run(_job(place, -2, names=("t",))) == 0
    for number in range(kills):
        job = _job(place, number, names=("t",), step=step)
        _require_step(place, children, job, stands=stands, notes=notes)

    assert notes.hits() == [step] * kills


@_kills
@pytest.mark.parametrize(("kind", "step", "stands"), NEW_THREAD_STEPS + SAVE_STEPS)
def test_kill_while_a_thread_is_made(
    tmp_path: Path, children: Spawner, kind: str, step: str, *, stands: bool, kills: int
) -> None:
    """A writer that is killed while it makes a thread leaves a thread or a name that is free."""
    place = Place(tmp_path, kind).make()
    notes = Notes(tmp_path / "notes")
    for number in range(kills):
        job = _job(place, number, names=(f"new-{number}",), step=step)
        _require_step(place, children, job, stands=stands, notes=notes)

    assert notes.hits() == [step] * kills


@_kills
@pytest.mark.parametrize(("kind", "step", "stands"), GROWTH_STEPS)
def test_kill_while_the_anchor_grows(
    tmp_path: Path, children: Spawner, kind: str, step: str, *, stands: bool, kills: int
) -> None:
    """A writer that is killed while the anchor's file grows leaves an anchor that knows all."""
    for number in range(kills):
        place = Place(tmp_path / str(number), kind).make()
        notes = Notes(place.directory / "notes")
        assert children.run(_job(place, -2, names=("old",))) == 0
        with place.open() as store:
            _fill(anchor_of(store))
        job = _job(place, number, names=("new",), step=step)
        _require_step(place, children, job, stands=stands, notes=notes)
        with place.open() as store:
            _require_acknowledged(store, "old", notes)

        assert notes.hits() == [step]


def _fill(anchor: object) -> None:
    """Reserve names until the next one makes the file grow."""
    assert isinstance(anchor, LocalAnchor)
    while (table := anchor._file.table) is not None and not table.crowded:
        anchor.create(os.urandom(32), Position(os.urandom(16), 0, 0, RESERVED_SEQ, bytes(32)))


def _line_job(place: Place, situation: str, number: int, line: int) -> Job:
    name = f"new-{number}" if situation == "new" else "t"
    unsteered = 1 if situation == "open" else 0
    return _job(place, number, names=(name,), unsteered=unsteered, line=line)


def _prepared(place: Place, children: Spawner, situation: str) -> tuple[Place, Notes]:
    """A store with a thread, and a note of how many lines a save executes in the situation."""
    place.make()
    for number, line in ((-3, 0), (-2, -1)):
        assert children.run(_line_job(place, situation, number, line)) == 0
    return place, Notes(place.directory / "notes")


@pytest.mark.parametrize("kills_max", [4, pytest.param(10_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("situation", ["new", "opening", "open"])
@pytest.mark.parametrize("kind", KINDS)
def test_kill_at_any_line_of_a_save(
    tmp_path: Path, children: Spawner, kind: str, situation: str, kills_max: int
) -> None:
    """A kill at any line of store, storage or anchor that a save executes loses nothing."""
    # The fewest of a few: names whose slots of the anchor collide take some lines more.
    counted = (Place(tmp_path / f"counted-{turn}", kind) for turn in range(3))
    lines = min(_prepared(place, children, situation)[1].executed_lines() for place in counted)
    draw = random.Random(situation)  # noqa: S311 # which lines
    chosen = draw.sample(range(1, lines + 1), min(lines, kills_max))
    hits = 0
    # A new store now and then: to verify a long one takes longer than a kill.
    for first in range(0, len(chosen), 40):
        place, notes = _prepared(Place(tmp_path / str(first), kind), children, situation)
        for number, line in enumerate(chosen[first : first + 40]):
            job = _line_job(place, situation, number, line)
            # From other positions the links take fewer steps: the last lines may not be reached.
            assert children.run(job) in (*_KILLED, 0)
            _recover(place, job.names[0], notes)
        hits += len(notes.hits())

    assert lines > 100
    assert hits >= 0.9 * len(chosen) - 1


@pytest.mark.parametrize(
    ("rounds", "kills"), [(1, 5), pytest.param(10, 30, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_kill_at_random_moments(
    tmp_path: Path, children: Spawner, kind: str, *, rounds: int, kills: int
) -> None:
    """A writer dies again and again; its successors and the rival beside it lose nothing."""
    delays = random.Random(0)  # noqa: S311 # when to kill
    for turn in range(rounds):
        place = Place(tmp_path / str(turn), kind).make()
        notes = Notes(place.directory / "notes")
        stop = place.directory / "stop"
        other = children.start(
            _job(place, SMALL + 99, names=("other", "shared"), saves=0, pause_s=0.01)
        )
        for number in range(kills):
            victim = number + SMALL * (number % 2)
            names = ("own", "shared")
            job = _job(place, victim, names=names, saves=0, os_threads=2, pause_s=0.001)
            child = children.start(job)
            while not any(mark[0] == victim for mark in notes.acknowledged("own")):
                time.sleep(0.002)
            time.sleep(delays.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            assert children.reap(child) == -signal.SIGKILL
            _recover(place, "own", notes)
        stop.touch()

        assert children.reap(other) == 0
        with place.open() as store:
            assert store.verify().findings == ()
            for name in ("own", "shared", "other"):
                _require_acknowledged(store, name, notes)
