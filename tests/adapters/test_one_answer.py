# SPDX-License-Identifier: Apache-2.0
"""One answer, one run: what an answer lets happen happens once, or a person has said "again".

On every backend, with both frameworks, in one process and in several: a double click, two workers,
a worker that is killed when it has paid and not yet saved, and a slow one that returns.
"""

import signal
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sealpoint.api import Store
from sealpoint.errors import Busy, ResumeRefused
from sealpoint.gate import shipped_policy
from tests.adapters.one_run import (
    FRAMEWORKS,
    THREAD,
    Another,
    Bank,
    Worker,
    told,
)
from tests.effort import in_turn
from tests.faults.places import Place

_KINDS = in_turn("sqlite", "file", "postgres")
_SECONDS = 60


class Scene:
    """A store in which a worker has asked, and a bank."""

    def __init__(self, place: Place, framework: str) -> None:
        self.place = place
        self.bank = Bank(str(place.directory))
        self.worker = Worker(framework, self.bank)
        with self.open() as store:
            assert told(lambda: self.worker.ask(store)) == "done"

    def open(self) -> Any:
        """The store, opened anew."""
        return closing(self.place.open())

    def slow(self, **named: Any) -> Worker:
        """A worker whose bank does not answer before it is told to."""
        return Worker(self.worker.framework, Bank(self.bank.directory, waits=True), **named)

    def mortal(self, **named: Any) -> Worker:
        """A worker that is killed when it has paid."""
        return Worker(self.worker.framework, Bank(self.bank.directory, dies=True), **named)

    def again(self, **named: Any) -> Worker:
        """Another worker of the same kind."""
        return Worker(self.worker.framework, self.bank, **named)

    def require_sound(self, resumes: int) -> None:
        """The store is whole, every resume of it justified, and there are so many."""
        with self.open() as store:
            report = store.verify()
            found = list(store.audit(thread=THREAD, kind="resume"))
        assert report.ok, report.findings
        assert len(found) == resumes


@pytest.fixture(params=_KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A store of a backend."""
    return Place(tmp_path, request.param).make()


@pytest.fixture(params=FRAMEWORKS)
def scene(place: Place, request: pytest.FixtureRequest) -> Scene:
    """A worker that waits for an answer."""
    return Scene(place, request.param)


def _busy_while_it_runs(scene: Scene, store: Store) -> None:
    """A second click, in whatever process it comes."""
    with pytest.raises(Busy, match=r"a run is under way: 'worker', since 20\d\d-") as busy:
        scene.again().answer(store)
    assert "sealpoint pause" in str(busy.value.hint)


def test_a_double_click_in_one_process(scene: Scene) -> None:
    """The second call is told before anything of it runs, whatever handle it has."""
    outcomes: list[str] = []
    with scene.open() as store, scene.open() as other:
        first = threading.Thread(
            target=lambda: outcomes.append(told(lambda: scene.slow().answer(store)))
        )
        first.start()
        scene.bank.wait_for_payment()
        _busy_while_it_runs(scene, store)
        _busy_while_it_runs(scene, other)
        scene.bank.answer()
        first.join(_SECONDS)

    assert outcomes == ["done"]
    assert scene.bank.paid == 1
    scene.require_sound(2)


def test_two_workers_in_two_processes(scene: Scene) -> None:
    """The first goes on, and the second one does nothing, as long as the first one lives."""
    first = Another(scene.place, scene.slow(), "answer")
    scene.bank.wait_for_payment()
    second = Another(scene.place, scene.again(), "answer")
    assert second.ended() == "busy"
    scene.bank.answer()

    assert first.ended() == "done"
    assert scene.bank.paid == 1
    scene.require_sound(2)


def test_a_retry_after_a_crash_says_that_the_outcome_is_not_known(scene: Scene) -> None:
    """Killed when it had paid and not yet saved: nobody pays again until a person has said so."""
    killed = Another(scene.place, scene.mortal(), "answer")
    assert killed.ended() == -signal.SIGKILL
    with scene.open() as store:
        for _ in range(2):  # whoever asks twice is told twice
            with pytest.raises(ResumeRefused, match="resumed with an answer at") as refused:
                scene.again().answer(store)
            assert "may happen again" in refused.value.message
        assert scene.bank.paid == 1
        told_by_gate = store.thread(THREAD).judge(world=None, identity="worker")
        assert "unknown-outcome" in {each.rule for each in told_by_gate.reasons}
    again = Another(scene.place, scene.again(), "answer", "the bank has no payment of ours")

    assert again.ended() == "done"
    assert scene.bank.paid == 2
    scene.require_sound(3)


def test_what_is_idempotent_is_done_again_without_a_word(scene: Scene) -> None:
    """The application has said that paying again moves nothing."""
    names = ("ask", "pay") if scene.worker.framework == "langgraph" else ("clerk", "pay")
    killed = Another(scene.place, scene.mortal(idempotent=names), "answer")
    assert killed.ended() == -signal.SIGKILL
    with scene.open() as store:
        scene.again(idempotent=names).answer(store)

    scene.require_sound(3)


def _let_it_save(scene: Scene) -> None:
    """Wait until nothing is written beside the payment: who is stopped in a write keeps a lock."""
    seen: Any = None
    with scene.open() as store:
        while (standing := store.thread(THREAD).standing()) != seen:
            seen = standing
            time.sleep(0.3)


def test_a_slow_worker_that_returns_is_told(scene: Scene) -> None:
    """It hangs: an operator stops it, somebody says "again", and what it saves is refused."""
    slow = Another(scene.place, scene.slow(), "answer")
    scene.bank.wait_for_payment()
    _let_it_save(scene)
    slow.send(signal.SIGSTOP)
    try:
        with scene.open() as store:
            _busy_while_it_runs(scene, store)
        with closing(scene.place.open(identity="operator")) as operator:
            operator.thread(THREAD).pause("it hangs")
            operator.thread(THREAD).unpause("somebody else goes on")
        with scene.open() as store:
            with pytest.raises(ResumeRefused, match="did not come to its end"):
                scene.again().answer(store)
            assert scene.bank.paid == 1
            scene.again().answer(store, "the bank has no payment of ours")
    finally:
        scene.bank.answer()
        slow.send(signal.SIGCONT)

    assert slow.ended() == "superseded"
    assert scene.bank.paid == 2
    scene.require_sound(3)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_run_that_is_broken_off_is_asked_about(framework: str, tmp_path: Path) -> None:
    """A client goes away while the bank is asked: what it was asked for may still happen."""
    scene = Scene(Place(tmp_path).make(), framework)
    with scene.open() as store:
        assert scene.slow().answer_and_leave(store)
        with pytest.raises(ResumeRefused, match="did not come to its end"):
            scene.again().answer(store)

    assert scene.bank.paid == 1
    scene.require_sound(2)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_session_that_ended_is_not_waited_for(framework: str, tmp_path: Path) -> None:
    """`takeover_after` is for sessions that have not ended: not for one that asked or finished."""
    solo = shipped_policy("solo")
    policy = solo.replace(b'takeover_after = "0s"', b'takeover_after = "1d"')
    place = Place(tmp_path).make(policy=policy)
    scene = Scene(place, framework)
    other = Another(scene.place, scene.again(), "answer")

    assert other.ended() == "done"
    assert scene.bank.paid == 1
