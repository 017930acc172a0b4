# SPDX-License-Identifier: Apache-2.0
"""Restores under workers that go on: nothing is built on what was lost, and nothing in silence."""

from collections.abc import Callable

import pytest

from sealpoint.errors import (
    HeadMoved,
    Misplaced,
    Superseded,
    UnknownCheckpoint,
    UnknownThread,
)
from sealpoint.store import Core, RestorePlan, accept_restore, plan_restore
from tests.deployment import Deployment, Opened, SimulatedStorage
from tests.ledgers import identity, key
from tests.unit.store.backup import Backup, accepted, planned
from tests.unit.store.ended import enter, pool
from tests.unit.store.retained import filled, state_of


def _rows(world: Deployment, name: str) -> int:
    return world.using(lambda core: len(list(core.storage.scan(world.thread_id(name), 0))))


def _cut_in_session(world: Deployment, store: Opened) -> None:
    """The thread `a` loses the end of the session that the handle is in; `b` loses nothing."""
    thread = store.thread("a")
    thread.save("one")
    store.thread("b").save("one")
    backup = Backup(world)
    thread.save("two")
    thread.save("three")
    backup.put_back()


def _cut_before_session(world: Deployment, store: Opened) -> None:
    """The thread `a` loses all of the session that the handle is in."""
    world.open().thread("a").save("one")
    store.thread("b").save("one")
    backup = Backup(world)
    store.thread("a").load()
    store.thread("a").save("two")
    backup.put_back()


_CUTS = [_cut_in_session, _cut_before_session]


@pytest.mark.parametrize("cut", _CUTS)
def test_a_worker_does_not_build_on_what_was_lost(
    world: Deployment, cut: Callable[[Deployment, Opened], None]
) -> None:
    """Its next save is refused and writes nothing; once it has loaded, it goes on."""
    store = world.open()
    cut(world, store)
    accepted(world)
    before = _rows(world, "a")
    thread = store.thread("a")
    with pytest.raises((Superseded, HeadMoved)):
        thread.save("on top of it")
    with pytest.raises((Superseded, HeadMoved), match="load it again"):
        thread.save("on top of it")

    assert _rows(world, "a") == before
    assert thread.load().state == "one"
    thread.save("after")
    assert world.open().thread("a").load().state == "after"
    assert store.verify().ok


def test_a_session_that_begins_where_a_lost_one_did_is_another_one(world: Deployment) -> None:
    """A thread that was lost begins anew at the same positions; who had it before goes on after."""
    world.enrol(identity("second"))
    enter(world, pool("pods", "worker", "second"))
    backup = Backup(world)
    thread = world.open("second").thread("a")
    thread.save("lost")
    backup.put_back()
    accepted(world)
    world.open("worker").thread("a").save("anew")

    assert thread.load().state == "anew"
    thread.save("after")
    assert [ref.writer for ref in thread.history()] == ["second", "worker"]


def test_a_session_on_a_whole_thread_goes_on(world: Deployment) -> None:
    """A thread that lost nothing is not disturbed: the same session, in the new epoch."""
    store = world.open()
    _cut_in_session(world, store)
    accepted(world)
    ref = store.thread("b").save("two")

    assert ref.seq == 3
    assert store.thread("b").save("three").seq == 4
    assert world.open().thread("b").load().state == "three"
    assert store.verify().ok


def test_a_thread_that_is_gone_begins_anew(world: Deployment) -> None:
    """The worker is told once; when it has looked, it saves to a new thread of the name."""
    store = world.open()
    backup = Backup(world)
    thread = store.thread("a")
    thread.save("one")
    backup.put_back()
    accepted(world)
    with pytest.raises(HeadMoved, match="an accepted restore removed"):
        thread.save("two")
    with pytest.raises(UnknownThread):
        thread.load()

    assert thread.save("three").seq == 2
    assert world.open().thread("a").load().state == "three"
    assert store.verify().ok


def test_reading_handles_follow(world: Deployment) -> None:
    """A handle that has loaded what was lost gives what was kept from now on."""
    store = world.open()
    filled(store, 2)
    backup = Backup(world)
    lost = filled(store, 2, first=2)
    readers = [world.open(None, read_only=True), store]
    for reader in readers:
        assert reader.thread("t").load("c3").state == state_of(3)
        assert reader.thread("t").load().state == state_of(3)
    backup.put_back()
    accepted(world)

    for reader in readers:
        thread = reader.thread("t")
        assert thread.load().state == state_of(1)
        assert thread.load("c0").state == state_of(0)
        for ref in lost:
            for named in (ref, ref.id):
                with pytest.raises(UnknownCheckpoint):
                    thread.load(named)
        assert [ref.id for ref in thread.history()] == ["c1", "c0"]


def test_ids_and_blobs_of_what_was_lost_are_forgotten(world: Deployment) -> None:
    """An id is free again, and a blob that went with it is stored again."""
    store = world.open()
    filled(store, 1)
    backup = Backup(world)
    thread = store.thread("t")
    thread.save(state_of(1), id="c1")
    thread.load("c0")
    backup.put_back()
    accepted(world)
    thread.load()
    thread.save(state_of(1) | {"number": 7}, id="c1")

    assert world.open().thread("t").load("c1").state == state_of(1) | {"number": 7}
    assert store.verify().ok


def test_a_prune_that_was_lost_is_forgotten(world: Deployment) -> None:
    """What it gave up is there again, also for the handle that gave it up."""
    store = world.open()
    filled(store, 3)
    backup = Backup(world)
    thread = store.thread("t")
    thread.prune(keep_last=1)
    thread.save(state_of(9), id="c9")
    backup.put_back()
    accepted(world)
    thread.load()
    thread.save(state_of(4), id="c4")

    assert [ref.pruned for ref in thread.history()] == [False] * 4
    assert thread.load("c0").state == state_of(0)
    assert store.verify().ok


# ------------------------------------------------------------------ at the same moment


def _prepared(world: Deployment) -> Opened:
    """A store whose thread `a` is whole and has a session, and which lost the thread `d`."""
    store = world.open()
    store.thread("a").save("one")
    backup = Backup(world)
    world.open().thread("d").save("one")
    backup.put_back()
    return store


@pytest.mark.parametrize("name", ["a", "new"])
def test_a_save_while_a_restore_is_accepted_is_refused_loudly(world: Deployment, name: str) -> None:
    """It is in the store and does not count: its writer is told, and a second run takes it out."""
    store = _prepared(world)
    store.storage.appending.before = lambda: accepted(world)
    world.events.clear()
    with pytest.raises(Superseded, match="accepted a restore that does not keep it"):
        store.thread(name).save("meanwhile")

    assert "saved" not in {event.code for event in world.events}
    with pytest.raises(Misplaced):
        world.open().thread(name).load()
    with pytest.raises(Misplaced):
        store.thread(name).save("again")
    plan = planned(world)
    assert [each.name for each in plan.leftovers] == [name]
    assert not plan.losses
    done = accepted(world, plan, roots=[])
    assert (done.entry, done.removed) == (None, 1 if name == "a" else 3)
    if name == "a":
        assert store.thread("a").load().state == "one"
    else:
        with pytest.raises(UnknownThread):
            store.thread(name).load()
    store.thread(name).save("in the end")
    assert world.open().thread(name).load().state == "in the end"
    assert store.verify().ok


@pytest.mark.parametrize("name", ["a", "new"])
def test_a_save_that_the_restore_has_seen_is_kept(world: Deployment, name: str) -> None:
    """It was in the store when the plan was made, though its writer had not heard of it yet."""
    store = _prepared(world)
    store.storage.appending.after = lambda: accepted(world)
    store.thread(name).save("just in time")
    store.thread(name).save("and on")

    assert world.open().thread(name).load().state == "and on"
    assert store.verify().ok


def test_what_was_acknowledged_meanwhile_is_reported(memory: Deployment) -> None:
    """A save that came after the look and before the entry is not lost in silence."""
    store = _prepared(memory)

    def accept(core: Core) -> tuple[str, ...]:
        plan: RestorePlan = plan_restore(core)
        storage = core.storage
        assert isinstance(storage, SimulatedStorage)
        storage.appending.before = lambda: store.thread("a").save("meanwhile")
        done = accept_restore(core, plan, "disk died", roots=[key("root")])
        return tuple(each.name for each in done.in_the_way)

    assert memory.using(accept) == ("a",)
    with pytest.raises(Misplaced):
        store.thread("a").load()
    accepted(memory)
    assert store.thread("a").load().state == "one"


def test_a_plan_and_a_save_exclude_each_other(memory: Deployment) -> None:
    """Whoever saved after the plan makes it another one, and nothing is accepted."""
    store = _prepared(memory)
    plan = planned(memory)
    store.thread("a").save("two")
    with pytest.raises(HeadMoved):
        accepted(memory, plan)

    accepted(memory)
    assert store.thread("a").load().state == "two"
