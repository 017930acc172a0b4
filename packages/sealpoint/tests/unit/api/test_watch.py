# SPDX-License-Identifier: Apache-2.0
"""A watch of a store: what is shown of every thread, and what is told of it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from sealpoint.api import StoreWatch
from sealpoint.errors import SealpointError, UnknownThread, UsageError
from sealpoint.gate import ROLLOUTS, Status, ThreadPhase
from sealpoint.limits import WATCH_EVENTS_MAX, WATCH_PAGE_MAX
from tests.deployment import Deployment
from tests.unit.gate.team import READ, SHELL, Team, policy
from tests.unit.store.backup import Backup, accepted


@pytest.fixture(params=["memory", "sqlite", "file", "postgres"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    """A team whose store is kept in each of the backends."""
    made = Deployment(None if request.param == "memory" else tmp_path, backend=request.param)
    yield Team(made)
    made.remove()


@pytest.fixture
def memory() -> Iterator[Team]:
    """A team whose store is in memory, for what no backend can change."""
    made = Deployment()
    yield Team(made)
    made.close()


def _watch(team: Team) -> StoreWatch:
    watch = team.world.open(None, read_only=True).watch()
    watch.refresh()
    return watch


def _told(watch: StoreWatch, since: int) -> list[tuple[str, str]]:
    return [(each.thread, each.what) for each in watch.changes(since).events]


def test_what_everybody_does_is_shown_and_told(team: Team) -> None:
    """A thread is saved, asks, is approved, paused and goes on, and each is told once."""
    watch = _watch(team)
    assert watch.page().total == 0
    team.thread(name="quiet").save(1, world=READ, id="c1")
    team.thread(name="asks").save(1, world=READ, id="c1", question="go on?")
    since = watch.refresh()
    assert watch.thread("quiet").phase is ThreadPhase.SAVED
    assert watch.thread("quiet").checkpoint == "c1"
    assert watch.thread("quiet").owner == "worker"
    assert watch.thread("asks").phase is ThreadPhase.NEEDS_ANSWER
    assert sorted(_told(watch, 0)) == sorted(
        (name, what) for name in ("quiet", "asks") for what in ("genesis", "resume", "checkpoint")
    )

    request = team.ask(name="asks")
    since, before = watch.refresh(), since
    (event,) = watch.changes(before).events
    assert (event.thread, event.what, event.by) == ("asks", "request", "worker")
    assert event.request == request.id
    assert watch.thread("asks").phase is ThreadPhase.NEEDS_APPROVAL
    assert [each.id for each in watch.requests().requests] == [request.id]

    team.approve(request)
    since, before = watch.refresh(), since
    assert _told(watch, before) == [("asks", "approval")] * 2
    assert watch.requests().requests[0].approved_by == ("ann", "bob")
    assert watch.thread("asks").phase is ThreadPhase.READY

    team.thread("operator", "quiet").pause(reason="a look")
    team.thread(name="asks").resume(world=SHELL)
    since, before = watch.refresh(), since
    assert sorted(_told(watch, before)) == [("asks", "resume"), ("quiet", "pause")]
    assert watch.thread("quiet").reason == "a look"
    assert watch.counts()[ThreadPhase.PAUSED] == 1
    assert watch.requests().requests == ()
    assert watch.state.complete
    assert watch.state.version == since


@pytest.mark.parametrize("quick", [False, True])
def test_it_says_what_an_overview_says(team: Team, *, quick: bool) -> None:
    """Each thread as it would be read alone, after any number of refreshes of either kind."""
    watch = _watch(team)
    for number in range(3):
        team.thread(name=f"t-{number}").save(number, world=READ)
        team.ask(name=f"t-{number}")
        watch.refresh(quick=quick)
    team.thread("operator", "t-1").pause(reason="later")
    watch.refresh(quick=quick)
    team.store("officer").thread("t-2").erase(reason="as was asked for")
    newest = watch.refresh(quick=quick)
    overview = list(team.world.open(None, read_only=True).overview())

    assert list(watch.page(by_name=True).threads) == overview
    assert [each.name for each in overview] == ["t-0", "t-1"]
    assert watch.requests() == team.store("ann").requests()
    assert watch.refresh() == newest, "there is nothing left to be met"


def test_a_watch_changes_nothing_and_nobody_notices_it(team: Team) -> None:
    """Neither store nor anchor is written to, and the session of a worker goes on under it."""
    request = team.granted()
    store = team.world.open("worker", gated=True)
    watch = store.watch()
    before = team.everything()
    watch.refresh()
    watch.page()
    watch.requests()
    watch.refresh()

    assert team.everything() == before
    assert watch.requests().requests[0].id == request.id
    assert store.anchor.writes == 0
    team.thread().resume(world=SHELL)
    watch.refresh()
    team.thread().save({"n": 3}, world=SHELL)


def test_only_what_moved_is_read(team: Team) -> None:
    """A refresh with nothing new reads no thread but the few of the patrol."""
    for name in ("a", "b", "c"):
        team.thread(name=name).save(1, world=READ)
    store = team.world.open(None, read_only=True)
    watch = store.watch()
    watch.refresh()
    for _ in range(4):
        watch.refresh()
    ids = {team.world.thread_id(name): name for name in ("a", "b", "c")}
    team.thread(name="b").save(2, world=READ)
    store.storage.read_positions.clear()
    watch.refresh()
    read = {
        ids[thread] for thread, seq in store.storage.read_positions if seq < 2 and thread in ids
    }

    assert read == {"b"}


def test_pages_are_cut_sorted_and_searched(memory: Team) -> None:
    """By change or by name, by phase, and by what is in the name or is its owner."""
    for name in ("Delta", "alpha", "charlie", "bravo"):
        memory.thread(name=name).save(1, world=READ)
    memory.thread("operator", "alpha").pause(reason="a look")
    watch = _watch(memory)

    def names(**wish: object) -> list[str]:
        return [each.name for each in watch.page(**wish).threads]  # type: ignore[arg-type]

    assert names() == ["bravo", "charlie", "alpha", "Delta"]
    assert names(by_name=True) == ["Delta", "alpha", "bravo", "charlie"]
    assert names(offset=1, limit=2) == ["charlie", "alpha"]
    assert watch.page(offset=1, limit=2).total == 4
    assert names(text="HA") == ["charlie", "alpha"]
    assert names(text="Worker", offset=3) == ["Delta"]
    assert names(phase=ThreadPhase.PAUSED) == ["alpha"]
    assert names(text="nobody") == []
    assert watch.page(text="nobody").total == 0
    for offset, limit in ((-1, 1), (0, 0), (0, WATCH_PAGE_MAX + 1)):
        with pytest.raises(UsageError):
            watch.page(offset=offset, limit=limit)
    with pytest.raises(UnknownThread):
        watch.thread("echo")


def test_what_a_request_has_become_is_found_out_when_it_is_asked_for(memory: Team) -> None:
    """Time alone ends a request, and a key that ends takes its approval back."""
    memory.thread().save(1, world=READ)
    request = memory.ask()
    memory.approve(request)
    watch = _watch(memory)
    assert watch.requests().requests[0].status is Status.APPROVED
    memory.end("bob")
    watch.refresh()
    assert watch.requests().requests[0].status is Status.OPEN
    assert watch.counts()[ThreadPhase.NEEDS_APPROVAL] == 1
    memory.later(hours=2)

    assert watch.requests().requests[0].status is Status.EXPIRED
    assert watch.counts()[ThreadPhase.NEEDS_APPROVAL] == 0
    assert ("", "roster") in _told(watch, 0)


def test_another_policy_voids_what_was_asked_for(memory: Team) -> None:
    """The roster has moved, and no thread has."""
    memory.thread().save(1, world=READ)
    memory.ask()
    watch = _watch(memory)
    memory.apply(policy("other"))
    watch.refresh()

    assert watch.requests().requests[0].status is Status.VOID


def test_a_rollout_is_among_the_requests_and_no_thread(memory: Team) -> None:
    """The book of rollouts is Sealpoint's own; what is asked there is told."""
    memory.thread().save(1, world=READ)
    watch = _watch(memory)
    rollouts = memory.store("operator").rollouts
    rollouts.propose([(READ, SHELL)], reason="the new shell")
    watch.refresh()

    assert [each.name for each in watch.page().threads] == ["t"]
    assert [each.statement.action for each in watch.requests().requests] == ["rollout"]
    assert "request" in {what for _, what in _told(watch, 0)}


def test_heads_are_those_of_every_thread_that_verifies(memory: Team) -> None:
    """By id, with name and last position; the thread of rollouts too, and none that does not."""
    memory.thread(name="one").save(1, world=READ)
    memory.thread(name="two").save(1, world=READ)
    memory.store("operator").rollouts.propose([(READ, SHELL)], reason="release 42")
    heads = _watch(memory).heads()
    memory.world.put(memory.world.thread_id("two"), 2, None)

    ids = {name: memory.world.thread_id(name).hex() for name in ("one", "two", ROLLOUTS)}
    assert heads == {
        ids[name]: (name, len(memory.kinds(name)) - 1 + (name == "two"))
        for name in ("one", "two", ROLLOUTS)
    }
    assert ids["two"] not in _watch(memory).heads()


def test_threads_of_another_namespace_are_not_shown(memory: Team) -> None:
    """Nor are they looked at again when they move."""
    memory.thread().save(1, world=READ)
    other = memory.world.open(namespace="billing").thread("theirs")
    other.save(1)
    watch = _watch(memory)
    other.save(2)
    watch.refresh()

    assert [each.name for each in watch.page().threads] == ["t"]
    assert watch.state.complete
    assert watch.state.total == 0


def test_a_restore_that_was_accepted_is_told(memory: Team) -> None:
    """What it cut off is gone from the list, and nothing of that is a finding."""
    memory.thread(name="kept").save(1, world=READ)
    backup = Backup(memory.world)
    memory.thread(name="kept").save(2, world=READ)
    memory.thread(name="lost").save(1, world=READ)
    watch = _watch(memory)
    assert watch.page().total == 2
    backup.put_back()
    watch.refresh()
    assert {each.code for each in watch.findings()} == {"rolled-back"}
    accepted(memory.world)
    watch.refresh()

    assert watch.findings() == ()
    assert [each.name for each in watch.page().threads] == ["kept"]
    assert watch.thread("kept").restored
    assert {("", "restore"), ("kept", "verified"), ("kept", "cut")} <= {*_told(watch, 0)}


def test_events_are_numbered_and_a_bounded_number_is_kept(memory: Team) -> None:
    """Who comes too late, or from another watch, is told to read everything anew."""
    thread = memory.thread()
    thread.save(0, world=READ)
    watch = _watch(memory)
    assert watch.changes(0).events == ()
    assert not watch.changes(0).missed
    for number in range(3):
        thread.save(number, world=READ)
    newest = watch.refresh()

    assert [each.number for each in watch.changes(0).events] == [1, 2, 3]
    assert [each.seq for each in watch.changes(1).events] == [4, 5]
    assert watch.changes(newest).events == ()
    assert watch.changes(newest + 1).missed
    for _ in range(WATCH_EVENTS_MAX):
        watch._threads.journal.add(watch.changes(2).events[0])
    assert watch.changes(0).missed
    assert not watch.changes(newest).missed
    assert len(watch.changes(newest).events) == WATCH_EVENTS_MAX


def test_many_ask_while_one_refreshes_and_others_write(tmp_path: Path) -> None:
    """Every page is of one moment, every entry is told once, and nobody is disturbed."""
    world = Deployment(tmp_path)
    names, rounds = [f"t-{number}" for number in range(4)], 12
    watch = world.open(None, read_only=True).watch()
    watch.refresh()
    done = threading.Event()
    failed: list[object] = []

    def write(name: str) -> None:
        with world.open() as store:
            for number in range(rounds):
                store.thread(name).save({"number": number})

    def ask() -> None:
        while not done.is_set():
            page, counts = watch.page(), watch.counts()
            if page.total != len(page.threads) or sum(counts.values()) > len(names):
                failed.append((page, counts))
            with suppress(UnknownThread):
                watch.thread("t-0")
            watch.requests()

    def refresh() -> None:
        while not done.is_set():
            try:
                watch.refresh()
            except SealpointError as error:
                failed.append(error)

    writers = [threading.Thread(target=write, args=(name,)) for name in names]
    others = [threading.Thread(target=each) for each in (ask, ask, refresh)]
    for each in (*writers, *others):
        each.start()
    for each in writers:
        each.join()
    done.set()
    for each in others:
        each.join()
    watch.refresh()

    assert failed == []
    assert watch.findings() == ()
    events = watch.changes(0).events
    assert {each.what for each in events} == {"genesis", "resume", "checkpoint"}
    for name in names:
        assert [each.seq for each in events if each.thread == name] == list(range(rounds + 2))
    world.close()


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("backend", ["sqlite", "file", "postgres"])
def test_a_verification_runs_beside_a_watch(tmp_path: Path, backend: str, *, own: bool) -> None:
    """In another OS thread, on the same open store or on one of its own, with its progress."""
    world = Deployment(tmp_path, backend=backend)
    store = world.open()
    for number in range(6):
        for _ in range(4):
            store.thread(f"t-{number}").save({"number": number})
    watch = store.watch()
    verified = world.open(None, read_only=True) if own else store
    progress: list[int] = []
    with ThreadPoolExecutor() as beside:
        report = beside.submit(verified.verify, lambda each: progress.append(each.threads))
        while not report.done():
            store.thread("t-0").save({"more": len(progress)})
            watch.refresh()

        assert report.result().ok
    assert progress
    assert watch.state.complete
    world.remove()
