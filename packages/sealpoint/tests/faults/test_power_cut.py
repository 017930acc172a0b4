# SPDX-License-Identifier: Apache-2.0
"""The power goes at any moment: what was acknowledged is there, whatever was not synced is lost.

Real system calls are recorded and replayed on the disk of `disk.py`, which says what is assumed
of a file system. Keys, pin and anchor lie on the same disk as the store and suffer the same cut.
"""

import contextlib
import functools
import itertools
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from sealpoint.errors import SealpointError, StoreExists
from tests.faults.disk import ROOT, Cut, Disk
from tests.faults.events import Event, LostSync, Make, Sync
from tests.faults.killed_children import every_kind
from tests.faults.places import Place
from tests.faults.replay import CUTS, Layout, Told, cut_of, image_of, judge, moments
from tests.faults.scenarios import SAVES, SITUATIONS
from tests.faults.traced import Outcome, Task, Traced, read_events

_MEMORY = Path("/dev/shm")  # noqa: S108 # only to be quicker: the disk that counts is a simulation
_GO_ON_EVERY = 7
# SQLite asks for the sync of a directory and does not look whether it failed.
_SYNCS = {"file": "syncs", "sqlite": "file syncs"}


def _images(count: int) -> pytest.MarkDecorator:
    """So many images of each recording, or all in long runs."""
    return pytest.mark.parametrize("images", [count, pytest.param(None, marks=pytest.mark.soak)])


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(
        prefix="sealpoint-", dir=_MEMORY if _MEMORY.is_dir() else None
    ) as name:
        yield Path(name).resolve()


@pytest.fixture
def directory() -> Iterator[Path]:
    """Where a store is recorded and then laid out as the disk may have it."""
    with _directory() as found:
        yield found


class _Bench:
    """A place, and what was recorded there."""

    def __init__(self, directory: Path, kind: str, tracer: Traced) -> None:
        self.place = Place(directory / "place", kind)
        self._recording = directory / "recording"
        self._tracer = tracer
        self.layout = Layout(self.place.directory)
        self.images = 0

    def record(self, scenario: str, **more: object) -> Outcome:
        """Let a child do something, and record it."""
        return self.run(scenario, recording=str(self._recording), **more)

    def events(self) -> list[Event]:
        """All that was recorded here so far."""
        return read_events(self._recording)

    def run(self, scenario: str, **more: object) -> Outcome:
        """Let a child do something."""
        directory, kind = str(self.place.directory), self.place.kind
        task = Task(directory=directory, kind=kind, scenario=scenario, **more)  # type: ignore[arg-type]
        outcome = self._tracer.run(task)
        assert outcome.status in (0, -signal.SIGKILL), outcome
        return outcome

    def replay(
        self, events: list[Event], *, images: int | None = None, before: Told | None = None
    ) -> None:
        """Judge every image of every moment once; or as many as asked for, drawn at random.

        Args:
            events: What was recorded.
            images: How many; None: all.
            before: What others told before the recording.
        """
        found = [
            (moment, name) for moment, _, told in moments(events) for name in CUTS if told.made
        ]
        draw = Random(len(found))  # noqa: S311 # which of them
        chosen = set(found if images is None else draw.sample(found, min(images, len(found))))
        for moment, disk, told in moments(events, before):
            for name in CUTS:
                if (moment, name) in chosen:
                    self._judge(moment, name, disk, told)

    def _judge(self, moment: int, name: str, disk: Disk, told: Told) -> None:
        image = disk.image(cut_of(name, moment))
        if self.layout.is_new(image, told):
            self.layout.lay(image, Random(moment))  # noqa: S311 # what was in memory
            self.images += 1
            try:
                judge(self.place, told, go_on=self.images % _GO_ON_EVERY == 0)
            except (SealpointError, AssertionError) as exc:
                exc.add_note(f"power cut at moment {moment}, {name}")
                raise


def _made(directory: Path, kind: str, tracer: Traced) -> _Bench:
    bench = _Bench(directory, kind, tracer)
    (bench.place.directory / "store").mkdir(parents=True, mode=0o700)
    return bench


@pytest.fixture(scope="module")
def lives(tracer: Traced) -> Iterator[Callable[[str], _Bench]]:
    """A store's life of 200 saves, recorded once for each backend."""
    with _directory() as directory:

        @functools.cache
        def recorded(kind: str) -> Path:
            bench = _made(directory / kind, kind, tracer)
            bench.record("life")
            *_, (_, disk, told) = moments(bench.events())
            assert sum(map(len, told.saved.values())) == SAVES
            assert image_of(disk.image(Cut.kept())) == image_of(bench.place.directory)
            return directory / kind

        yield lambda kind: _Bench(recorded(kind), kind, tracer)


@every_kind
@_images(12)
def test_power_cut_at_any_moment_of_200_saves(
    lives: Callable[[str], _Bench], kind: str, images: int | None
) -> None:
    """Every prefix of what a store's life of 200 saves wrote reopens, verifies and has them all."""
    bench = lives(kind)
    bench.replay(bench.events(), images=images)

    assert bench.images > (10 * SAVES if images is None else images // 2)


@every_kind
@pytest.mark.parametrize("missing", ["files", "directories"])
def test_store_that_did_not_sync_would_be_found(
    lives: Callable[[str], _Bench], kind: str, missing: str
) -> None:
    """Without the syncs of its files, or of its directories, the same recording is an alarm."""
    bench = lives(kind)
    events = bench.events()
    made = next(number for number, _, told in moments(events) if told.made)
    folders = {
        event.node for event in events if isinstance(event, Make) and stat.S_ISDIR(event.mode)
    }
    without = [
        event
        for number, event in enumerate(events)
        if number < made
        or not isinstance(event, Sync)
        or (event.node in folders | {ROOT}) == (missing == "files")
    ]

    with pytest.raises((AssertionError, SealpointError)):
        bench.replay(without, images=200)


@every_kind
@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.soak)])
def test_power_cut_while_a_store_is_made(
    directory: Path, tracer: Traced, kind: str, every: int
) -> None:
    """An `init` that a power cut ended can be repeated, or has come to its end."""
    bench = _made(directory, kind, tracer)
    bench.record("making")
    events = bench.events()
    images = 0
    for moment, disk, told in moments(events):
        for name in CUTS:
            image = disk.image(cut_of(name, moment))
            if "store" not in image or not bench.layout.is_new(image, told):
                continue
            images += 1
            if images % every:
                continue
            bench.layout.lay(image, Random(moment))  # noqa: S311 # what was in memory
            if not told.made:
                with contextlib.suppress(StoreExists):
                    bench.place.init()
            with bench.place.open() as store:
                store.thread("t").save("first")

                assert store.verify().ok

    assert images > 100


@every_kind
@_images(10)
def test_power_cut_while_the_anchor_grows(
    directory: Path, tracer: Traced, kind: str, images: int | None
) -> None:
    """The anchor's file is replaced by a larger one, and no moment of that forgets a thread."""
    bench = _made(directory, kind, tracer)
    bench.place.init()
    bench.record("growth")
    events = bench.events()
    bench.replay(events, images=images)

    assert bench.images > (20 if images is None else images // 2)


@every_kind
@_images(8)
def test_power_cut_while_states_are_given_up(
    directory: Path, tracer: Traced, kind: str, images: int | None
) -> None:
    """A prune that a power cut ended has taken nothing away that was to be kept."""
    bench = _made(directory, kind, tracer)
    bench.place.init()
    bench.record("pruning")
    bench.replay(bench.events(), images=images)

    assert bench.images > (20 if images is None else images // 2)


@every_kind
@pytest.mark.parametrize(
    ("situation", "images"),
    [
        ("new thread", 8),
        *(pytest.param(situation, None, marks=pytest.mark.soak) for situation in SITUATIONS),
    ],
)
def test_power_cut_after_a_sync_failed(
    directory: Path, tracer: Traced, kind: str, situation: str, images: int | None
) -> None:
    """A failed sync has lost its writes for good: what is acknowledged later does not need them."""
    for number in itertools.count(1, 1 if images is None else 3):
        bench = _made(directory / str(number), kind, tracer)
        bench.place.init()
        bench.run("small state")
        bench.record(situation, writer=1, counted=_SYNCS[kind], number=number)
        events = bench.events()
        if not any(isinstance(event, LostSync) for event in events):
            break
        bench.replay(events, images=images, before=_told_before())

    assert number > 1


def _told_before() -> Told:
    """What the child told that used the store before the one that is recorded."""
    return Told(made=False, begun={"t": [1, 4]}, saved={"t": [1, 4]})


@every_kind
@pytest.mark.parametrize("situation", ["making", "new thread", "growing anchor"])
@_images(8)
def test_power_cut_after_a_kill(
    directory: Path, tracer: Traced, kind: str, situation: str, images: int | None
) -> None:
    """One is killed at any call, the next comes to an end with the same, then the power goes."""
    again = "new thread" if situation == "growing anchor" else situation
    every = 1 if images is None else 60 if situation == "making" else 20
    for number in itertools.count(1, every):
        bench = _made(directory / str(number), kind, tracer)
        if situation != "making":
            bench.place.init()
        killed = bench.record(
            situation, writer=2, counted="changes", number=number, fault="kill after"
        )
        if len(killed.calls) < number:
            break
        assert killed.status == -signal.SIGKILL
        bench.record(again, writer=3)
        bench.replay(bench.events(), images=images)

    assert number > 5
