# SPDX-License-Identifier: Apache-2.0
"""Storage and anchor fail, or a rival writes, at a named step of a save: what stands is known."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sealpoint.api import Store
from sealpoint.errors import (
    AnchorUnavailable,
    HeadMoved,
    StorageUnavailable,
    Superseded,
    UnknownThread,
)
from sealpoint.gate import Thread
from sealpoint_testing.faults import Faults, Step, anchor_error, inject, storage_error
from tests.faults.places import Place, facts

_NEW, _OPENING, _OPEN = "a new thread", "a new session", "an open session"


class _Bench:
    """A store with faults, a rival with handles of its own, and a way to see what stands."""

    def __init__(self, place: Place, stack: ExitStack) -> None:
        self._place = place
        self.rival: Store = stack.enter_context(place.open())
        self.store: Store = stack.enter_context(place.open())
        self.faults: Faults = inject(self.store)

    def thread(self, situation: str) -> Thread:
        """A thread of the store in a situation, with the steps of its preparation forgotten."""
        thread = self.store.thread("t")
        if situation == _OPENING:
            self.rival.thread("t").save("first")
            thread.load()
        elif situation == _OPEN:
            thread.save("first")
        self.faults.clear()
        return thread

    def rival_saves(self) -> None:
        """Let the rival read and save, whatever it has seen before."""
        self.rival.thread("t").load()
        self.rival.thread("t").save("rival")

    def states(self) -> list[object]:
        """Every state of the thread, oldest first, as a fresh handle sees the sound store."""
        with self._place.open() as store:
            report = store.verify()
            assert (report.ok, report.findings) == (True, ())
            thread = store.thread("t")
            return [thread.load(fact.id).state for fact in facts(store, "t")]


@pytest.fixture
def bench(place: Place) -> Iterator[_Bench]:
    """A fresh store for each test."""
    with ExitStack() as stack:
        yield _Bench(place, stack)


_situation = pytest.mark.parametrize("situation", [_NEW, _OPENING, _OPEN])


def _before(situation: str) -> list[object]:
    return [] if situation == _NEW else ["first"]


@_situation
def test_error_before_the_append_saves_nothing(bench: _Bench, situation: str) -> None:
    """A storage that fails before it wrote is StorageUnavailable; the same save then works."""
    thread = bench.thread(situation)
    bench.faults.at(Step.BEFORE_APPEND, storage_error)

    with pytest.raises(StorageUnavailable):
        thread.save("mine")
    if situation != _NEW:
        assert bench.states() == ["first"]
    thread.save("mine")
    assert bench.states() == [*_before(situation), "mine"]


@_situation
def test_error_after_the_append_is_looked_up(bench: _Bench, situation: str) -> None:
    """A storage that wrote and then failed is asked what it has, and the save succeeds."""
    thread = bench.thread(situation)
    bench.faults.at(Step.AFTER_APPEND, storage_error)
    ref = thread.save("mine")
    thread.save("next")

    assert bench.states() == [*_before(situation), "mine", "next"]
    assert thread.load(ref).state == "mine"


@_situation
@pytest.mark.parametrize("step", [Step.BEFORE_APPEND, Step.AFTER_APPEND])
def test_unknown_outcome_is_repeated_under_its_id(
    bench: _Bench, situation: str, step: Step
) -> None:
    """A save of unknown outcome that is made again under its id is there exactly once."""
    thread = bench.thread(situation)

    def fail_and_stay_silent() -> None:
        bench.faults.at(Step.BEFORE_READ, storage_error)
        storage_error()

    bench.faults.at(step, fail_and_stay_silent)

    with pytest.raises(StorageUnavailable):
        thread.save("mine", id="same")
    thread.save("mine", id="same")
    thread.save("next")
    assert bench.states() == [*_before(situation), "mine", "next"]


@_situation
def test_rival_after_an_unknown_outcome_is_noticed(bench: _Bench, situation: str) -> None:
    """A save that failed is not repeated on top of what somebody else wrote meanwhile."""
    thread = bench.thread(situation)
    bench.faults.at(Step.BEFORE_APPEND, storage_error)
    with pytest.raises(StorageUnavailable):
        thread.save("mine")
    if situation == _NEW:
        bench.rival.thread("t").save("first")
        thread.load()
        bench.faults.at(Step.BEFORE_APPEND, storage_error)
        with pytest.raises(StorageUnavailable):
            thread.save("mine")
    bench.rival_saves()

    with pytest.raises((HeadMoved, Superseded)):
        thread.save("mine")
    assert thread.load().state == "rival"
    thread.save("mine")
    assert bench.states() == ["first", "rival", "mine"]


@_situation
def test_anchor_that_cannot_follow_leaves_the_checkpoint(bench: _Bench, situation: str) -> None:
    """AnchorUnavailable after the append names the checkpoint, which stands, and work goes on."""
    thread = bench.thread(situation)
    bench.faults.at(Step.BEFORE_ADVANCE, anchor_error)

    with pytest.raises(AnchorUnavailable) as caught:
        thread.save("mine")
    assert caught.value.ref == next(thread.history())
    assert bench.states() == [*_before(situation), "mine"]
    thread.save("next")
    assert bench.states() == [*_before(situation), "mine", "next"]


@pytest.mark.parametrize("step", [Step.BEFORE_CREATE, Step.AFTER_CREATE])
def test_failed_reservation_leaves_the_name_free(bench: _Bench, step: Step) -> None:
    """A new name whose reservation failed or went unheard is still unknown, and can be saved."""
    thread = bench.thread(_NEW)
    bench.faults.at(step, anchor_error)
    with pytest.raises(AnchorUnavailable) as caught:
        thread.save("mine")

    assert caught.value.ref is None
    with pytest.raises(UnknownThread):
        thread.load()
    bench.rival.thread("t").save("rival")
    assert bench.states() == ["rival"]


@_situation
def test_rival_between_append_and_anchor_ends_the_session(bench: _Bench, situation: str) -> None:
    """A save that a rival overtook before its anchor moved stands; the next is not the rival's."""
    thread = bench.thread(situation)
    bench.faults.at(Step.AFTER_APPEND, bench.rival_saves)
    thread.save("mine")

    for _ in range(2):
        with pytest.raises(Superseded):
            thread.save("more")
    assert thread.load().state == "rival"
    thread.save("more")
    assert bench.states() == [*_before(situation), "mine", "rival", "more"]


@pytest.mark.parametrize("situation", [_OPENING, _OPEN])
def test_anchor_error_does_not_hide_a_rival(bench: _Bench, situation: str) -> None:
    """The anchor fails while a handle learns that it lost: it stays refused until it loads."""
    thread = bench.thread(situation)
    rival_faults = inject(bench.rival)
    rival_faults.at(Step.BEFORE_ADVANCE, anchor_error)
    bench.rival.thread("t").load()
    with pytest.raises(AnchorUnavailable):
        bench.rival.thread("t").save("rival")
    bench.faults.at(Step.BEFORE_ADVANCE, anchor_error)
    with pytest.raises(AnchorUnavailable):
        thread.save("mine")

    with pytest.raises((HeadMoved, Superseded)):
        thread.save("mine")
    assert thread.load().state == "rival"
    thread.save("mine")
    assert bench.states() == ["first", "rival", "mine"]


@pytest.mark.parametrize("situation", [_OPENING, _OPEN])
def test_reading_the_history_does_not_take_the_thread_back(bench: _Bench, situation: str) -> None:
    """A handle that lost its thread may list it, and must still load before it saves."""
    thread = bench.thread(situation)
    bench.rival_saves()

    assert len(list(thread.history())) == 2
    for _ in range(2):
        with pytest.raises((HeadMoved, Superseded)):
            thread.save("mine")
        assert len(list(thread.history())) == 2
    assert thread.load().state == "rival"
    thread.save("mine")
    assert bench.states() == ["first", "rival", "mine"]


def test_a_handle_that_only_listed_the_thread_may_save(bench: _Bench) -> None:
    """Listing is a first use like any other: what is there is adopted, and a save goes on it."""
    bench.rival.thread("t").save("first")
    thread = bench.store.thread("t")

    assert len(list(thread.history())) == 1
    thread.save("mine")
    assert bench.states() == ["first", "mine"]


def test_two_handles_that_create_one_thread_make_it_once(bench: _Bench) -> None:
    """A rival makes the thread after it was reserved: HeadMoved, one genesis, and work goes on."""
    thread = bench.thread(_NEW)
    bench.faults.at(Step.AFTER_CREATE, lambda: bench.rival.thread("t").save("rival"))

    with pytest.raises(HeadMoved):
        thread.save("mine")
    assert thread.load().state == "rival"
    thread.save("mine")
    assert bench.states() == ["rival", "mine"]
