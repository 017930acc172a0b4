# SPDX-License-Identifier: Apache-2.0
"""Restores after restores, on other machines, and those that were cut short."""

import itertools

import pytest

from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.errors import (
    Misplaced,
    RolledBack,
    StorageUnavailable,
)
from sealpoint.storage import Record
from sealpoint.store import (
    Core,
    ThreadOutcome,
    accept_restore,
    adopt_store_chain,
    adopt_thread,
    plan_restore,
    unanchored_threads,
)
from tests.deployment import Deployment, SimulatedAnchor, SimulatedStorage
from tests.ledgers import key
from tests.unit.store.backup import (
    Backup,
    accepted,
    check_goes_on,
    lossy,
    planned,
    position_of,
    saved,
)


def _gone() -> None:
    raise StorageUnavailable("storage: expected it, found it gone")


def _storage(core: Core) -> SimulatedStorage:
    assert isinstance(core.storage, SimulatedStorage)
    return core.storage


# ------------------------------------------------------------------ more than one restore


def test_lost_entries_that_come_back_are_refused_and_taken_out(world: Deployment) -> None:
    """They are genuine in every other respect; a second look shows them and records nothing."""
    saved(world, "a", count=2)
    backup = Backup(world)
    saved(world, "a", "d", first=2)
    newest = Backup(world)
    backup.put_back()
    accepted(world)
    newest.put_back()
    for name in ("a", "d"):
        with pytest.raises(Misplaced):
            world.open().thread(name).load()
        with pytest.raises(Misplaced):
            world.open().thread(name).save("on top of it")
    assert not world.open().verify().ok
    plan = planned(world)

    assert not plan.losses
    assert [(each.name, each.kept, each.beyond) for each in plan.leftovers] == [
        ("a", 3, 2),
        ("d", None, 3),
    ]
    assert {each.outcome for each in plan.leftovers} == {ThreadOutcome.LEFTOVER}
    done = accepted(world, plan, roots=[])
    assert (done.entry, done.epoch, done.removed, done.in_the_way) == (None, 1, 5, ())
    assert world.open().thread("a").load().state == ["a", 1]
    check_goes_on(world, "a", "d")


def test_two_restores_in_a_row(world: Deployment) -> None:
    """Each ends an epoch; what both kept is there, and what either lost is not."""
    saved(world, "a", "b", count=2)
    first = Backup(world)
    saved(world, "a", first=2, count=2)
    first.put_back()
    accepted(world)
    saved(world, "a", first=8, count=2)
    second = Backup(world)
    saved(world, "a", "b", first=10)
    second.put_back()
    done = accepted(world)

    assert done.epoch == 2
    assert world.open().thread("a").load().state == ["a", 9]
    assert world.open().thread("b").load().state == ["b", 1]
    check_goes_on(world, "a", "b")


def test_what_an_earlier_restore_lost_is_not_lost_again(memory: Deployment) -> None:
    """An anchor that nobody has moved since is read as the earlier restore left it."""
    saved(memory, "a")
    older = Backup(memory)
    saved(memory, "a", first=1, count=2)
    backup = Backup(memory)
    saved(memory, "a", first=3, count=2)
    seen = position_of(memory, "a")
    backup.put_back()
    accepted(memory)
    memory.anchored._positions[memory.slot("a")] = seen
    older.put_back()
    with pytest.raises(RolledBack, match="which the newest restore kept"):
        memory.open().thread("a").load()
    (loss,) = planned(memory).losses

    assert (loss.kept, loss.seen, loss.lost) == (2, 5, 3)
    accepted(memory)
    assert memory.open().thread("a").load().state == ["a", 0]
    check_goes_on(memory, "a")


def test_a_backup_from_an_earlier_epoch_is_kept_up_to_what_all_restores_kept(
    memory: Deployment,
) -> None:
    """A newer backup than the one that was accepted brings back nothing that was lost."""
    saved(memory, "a")
    older = Backup(memory)
    saved(memory, "a", first=1, count=2)
    newer = Backup(memory)
    older.put_back()
    accepted(memory)
    saved(memory, "a", first=5)
    newer.put_back()
    (loss,) = planned(memory).losses

    assert (loss.outcome, loss.kept, loss.seen, loss.beyond) == (ThreadOutcome.BEHIND, 2, 4, 3)
    accepted(memory)
    assert memory.open().thread("a").load().state == ["a", 0]
    check_goes_on(memory, "a")


# ------------------------------------------------------------------ what this anchor has not seen


def test_threads_that_this_anchor_has_never_seen_are_kept(memory: Deployment) -> None:
    """Another machine's anchor may know them: they are shown, and stay."""
    saved(memory, "a", "theirs", count=2)
    backup = Backup(memory)
    saved(memory, "a", first=2)
    theirs = memory.thread_id("theirs")
    memory.forget("theirs")
    backup.put_back()
    memory.put(b"p" * 16, 0, Record(b"planted", b"", b""))
    plan = planned(memory)

    assert [(each.name, each.outcome, each.kept) for each in plan.unseen] == [
        ("theirs", ThreadOutcome.UNSEEN, 3)
    ]
    assert plan.unseen[0].lost == 0
    accepted(memory)
    core = memory.core("operator")
    assert unanchored_threads(core) == [("theirs", theirs)]
    adopt_thread(core, "theirs", theirs, "moved")
    assert memory.open().thread("theirs").load().state == ["theirs", 1]


def test_a_machine_that_has_not_heard_of_a_restore_learns_of_it(memory: Deployment) -> None:
    """Its own anchor has seen what was lost; the entry on the store chain explains that."""
    saved(memory, "a", "b", count=2)
    backup = Backup(memory)
    saved(memory, "a", first=2, count=2)
    other = MemoryAnchor()
    for slot, position in list(memory.anchored.slots()):
        other.create(slot, position)
    reader = memory.open(anchor=SimulatedAnchor(other, closes=True))
    reader.thread("a").load()
    backup.put_back()
    accepted(memory)

    assert reader.thread("a").load().state == ["a", 1]
    saved(memory, "a", first=5, count=6)
    assert reader.thread("a").load().state == ["a", 10]
    late = memory.open(anchor=SimulatedAnchor(other, closes=False))
    assert late.thread("b").load().state == ["b", 1]
    assert late.verify().ok


def test_adoption_needs_what_the_newest_restore_kept(memory: Deployment) -> None:
    """A new machine is not shown less than the root has accepted."""
    lossy(memory)
    accepted(memory)
    memory.anchored._positions.clear()
    core = memory.core("operator")
    adopt_store_chain(core, "a new machine")
    (found,) = [thread for name, thread in unanchored_threads(core) if name == "a"]
    head = memory.memory._records[found][3]
    memory.put(found, 3, None)

    with pytest.raises(RolledBack, match="entry 3, which the newest restore kept"):
        adopt_thread(core, "a", found, "a new machine")
    memory.put(found, 3, head)
    adopt_thread(core, "a", found, "a new machine")
    assert memory.open().thread("a").load().state == ["a", 1]


# ------------------------------------------------------------------ interruptions


def test_a_restore_that_was_cut_short_is_finished(memory: Deployment) -> None:
    """The entry stands; the next run takes out what is in the way, and records nothing."""
    saved(memory, "a", count=3)
    for seq in (3, 4):
        record = memory.record("a", seq)
        changed = Record(record.header, record.seals, b"{}", record.payload)
        memory.put(memory.thread_id("a"), seq, changed)
    head = memory.record("a", 4)
    memory.put(memory.thread_id("a"), 4, Record(head.header, b"[]", head.body))

    def crash(core: Core) -> None:
        _storage(core).truncating.before = _gone
        accept_restore(core, plan_restore(core), "x", roots=[key("root")])

    with pytest.raises(StorageUnavailable):
        memory.using(crash)
    with pytest.raises(Misplaced):
        memory.open().thread("a").load()
    assert [each.kept for each in planned(memory).leftovers] == [2]
    assert accepted(memory).entry is None
    check_goes_on(memory, "a")


def test_a_file_that_cannot_be_compacted_is_said(memory: Deployment) -> None:
    """What is recorded stands; the bytes are to be collected later."""
    saved(memory, "a")
    memory.put(memory.thread_id("a"), 3, Record(b"{}", b"[]", b"{}"))

    def accept(core: Core) -> bool:
        _storage(core).compacting.before = _gone
        return accept_restore(core, plan_restore(core), "x", roots=[key("root")]).compacted

    assert memory.using(accept) is False
    assert memory.open().thread("a").load().state == ["a", 0]


def test_what_is_saved_in_the_new_epoch_is_not_taken_out(memory: Deployment) -> None:
    """Somebody who goes on at once is not in the way, and loses nothing."""
    saved(memory, "a", count=2)
    memory.put(memory.thread_id("a"), 4, Record(b"{}", b"[]", b"{}"))

    def race() -> None:
        memory.put(memory.thread_id("a"), 4, None)
        saved(memory, "a", first=5)

    def accept(core: Core) -> int:
        _storage(core).truncating.before = race
        return accept_restore(core, plan_restore(core), "x", roots=[key("root")]).removed

    assert memory.using(accept) == 0
    assert memory.open().thread("a").load().state == ["a", 5]
    assert memory.open().verify().ok


@pytest.mark.parametrize("number", range(1, 17))
def test_what_nobody_can_look_at_is_no_plan(memory: Deployment, number: int) -> None:
    """A storage that fails is not taken for one that lost everything."""
    lossy(memory)
    calls = itertools.count()

    def fail(core: Core) -> None:
        core.renewed_trust()
        storage = _storage(core)

        def counted() -> None:
            storage.reading.before = storage.scanning.before = counted
            if next(calls) == number:
                _gone()

        counted()
        plan_restore(core)

    with pytest.raises(StorageUnavailable):
        memory.using(fail)
