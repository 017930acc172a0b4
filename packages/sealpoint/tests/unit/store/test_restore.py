# SPDX-License-Identifier: Apache-2.0
"""Restores: what is kept and lost is shown, recorded, and holds for everybody."""

from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.anchor import Position
from sealpoint.errors import (
    Edited,
    Erased,
    HeadMoved,
    KeyMissing,
    RolledBack,
    SealpointError,
    UnknownThread,
    UsageError,
)
from sealpoint.ledger import STORE_CHAIN, link_hash
from sealpoint.storage import Record
from sealpoint.store import (
    LostDecision,
    ThreadOutcome,
    ThreadRestore,
    accept_restore,
    plan_restore,
)
from tests.deployment import Deployment
from tests.ledgers import identity, key
from tests.unit.store.backup import (
    Backup,
    accepted,
    check_goes_on,
    lossy,
    planned,
    position_of,
    saved,
)
from tests.unit.store.ended import enter
from tests.unit.store.retained import enrolled, filled

# ------------------------------------------------------------------ plan and acceptance


def test_the_plan_says_what_is_kept_and_what_is_lost(world: Deployment) -> None:
    """For each thread how far it goes, how far the anchor has seen it, and what it is called."""
    lossy(world)
    plan = planned(world)
    by_name = {each.name: each for each in plan.losses}

    assert plan.threads == 3
    assert set(by_name) == {"a", ""}
    assert by_name["a"] == ThreadRestore(
        thread=world.thread_id("a").hex(),
        name="a",
        outcome=ThreadOutcome.BEHIND,
        kept=3,
        seen=6,
        lost_session=4,
    )
    assert by_name["a"].lost == 3
    assert by_name["a"].lost_range == (4, 6)
    gone = by_name[""]
    assert (gone.outcome, gone.kept, gone.seen) == (ThreadOutcome.GONE, None, 2)
    assert gone.lost == 3
    assert gone.thread == world.thread_id("d").hex()
    assert set(plan.kept.threads()) == {world.thread_id("a"), world.thread_id("b")}
    assert set(plan.lost.threads()) == {world.thread_id("a"), world.thread_id("d")}
    assert plan.kept.position(world.thread_id("a")) is not None
    assert not plan.leftovers
    assert not plan.unseen


def test_looking_writes_nothing(world: Deployment) -> None:
    """A plan changes neither the store nor the anchor."""
    lossy(world)
    before = [world.position(name) for name in ("a", "b", "d")], Backup(world).contents()
    planned(world)

    assert before == ([world.position(name) for name in ("a", "b", "d")], Backup(world).contents())


def test_an_accepted_store_is_read_as_it_was_kept(world: Deployment) -> None:
    """What was kept is loaded, what was lost is unknown, and everything goes on."""
    lossy(world)
    reader = world.open(None, read_only=True)
    with pytest.raises(RolledBack):
        reader.thread("a").load()
    done = accepted(world)
    store = world.open()

    assert (done.epoch, done.entry, done.removed, done.in_the_way) == (1, 1, 0, ())
    assert done.compacted
    for each in (store, reader):
        assert each.thread("a").load().state == ["a", 1]
        assert each.thread("b").load().state == ["b", 1]
        assert [ref.id for ref in each.thread("a").history()] == ["c1", "c0"]
        with pytest.raises(UnknownThread):
            each.thread("d").load()
        assert each.threads().names == ("a", "b")
        assert each.verify().ok
    check_goes_on(world, "a", "b", "d")
    assert not planned(world).losses


def test_what_is_recorded_is_what_was_shown(world: Deployment) -> None:
    """A store that changed since the plan is not accepted, and nothing is written."""
    lossy(world)
    plan = planned(world)
    saved(world, "b", first=2)
    before = Backup(world).contents()

    with pytest.raises(HeadMoved, match="it changed after the plan was made"):
        accepted(world, plan)
    assert Backup(world).contents() == before
    accepted(world)
    check_goes_on(world, "a", "b")


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_a_restore_has_a_reason(memory: Deployment, reason: str) -> None:
    """Nobody accepts a loss without saying why."""
    lossy(memory)

    with pytest.raises(UsageError, match="reason"):
        memory.using(
            lambda core: accept_restore(core, plan_restore(core), reason, roots=[key("root")])
        )


def test_a_whole_store_is_not_accepted(memory: Deployment) -> None:
    """Where nothing was lost, no epoch ends."""
    saved(memory, "a")

    with pytest.raises(UsageError, match="the store has lost nothing"):
        accepted(memory)


def test_an_older_store_chain_is_brought_back_first(memory: Deployment) -> None:
    """No restore revives a roster, so none is planned without the newest."""
    saved(memory, "a")
    backup = Backup(memory)
    enrolled(memory)
    saved(memory, "a", first=1)
    backup.put_back(with_roster=True)

    with pytest.raises(RolledBack) as refused:
        memory.using(plan_restore, read_only=True)
    assert "roster import" in refused.value.hint


def test_progress_is_told_for_every_thread(memory: Deployment) -> None:
    """The count ends where it said that it would."""
    lossy(memory)
    told: list[tuple[int, int]] = []
    memory.using(lambda core: plan_restore(core, lambda *each: told.append(each)))

    assert told == [(1, 3), (2, 3), (3, 3)]


# ------------------------------------------------------------------ who may accept


def test_neither_root_nor_quorum_is_no_restore(memory: Deployment) -> None:
    """Operators do not accept anything as long as the roster names no quorum."""
    lossy(memory)

    for kind, names in (("roots", []), ("operators", ["operator"]), ("roots", ["worker"])):
        signers: dict[str, Any] = {kind: [key(name) for name in names]}
        with pytest.raises(KeyMissing, match="1 root keys are needed here"):
            accepted(memory, None, **signers)
    assert memory.using(lambda core: core.renewed_trust().epoch) == 0


def test_a_quorum_of_operators_accepts(memory: Deployment) -> None:
    """As many different persons as the roster asks for, and no fewer."""
    lossy(memory)
    enter(memory, lambda found: replace(found, restore_quorum=1))

    with pytest.raises(KeyMissing, match="who are 1 persons, are needed here, found 0 root keys"):
        accepted(memory, operators=[key("worker")])
    done = accepted(memory, operators=[key("worker"), key("operator")])
    assert done.epoch == 1
    check_goes_on(memory, "a")


# ------------------------------------------------------------------ other outcomes


def test_a_thread_that_went_another_way_is_marked(memory: Deployment) -> None:
    """A backup that was written on is kept as it is, if that is accepted."""
    saved(memory, "a", count=2)
    backup = Backup(memory)
    saved(memory, "a", first=2, count=2)
    seen = position_of(memory, "a")
    backup.put_back()
    # Somebody whose anchor had seen less went on from the backup.
    entry = link_hash(memory.record("a", 3).header)
    memory.anchored._positions[memory.slot("a")] = Position(seen.thread, 0, 0, 3, entry)
    saved(memory, "a", first=7, count=4)
    memory.anchored._positions[memory.slot("a")] = seen
    (loss,) = planned(memory).losses

    assert loss.outcome is ThreadOutcome.BESIDE
    assert (loss.kept, loss.seen, loss.lost) == (8, 6, 1)
    accepted(memory)
    assert memory.open().thread("a").load().state == ["a", 10]
    check_goes_on(memory, "a")


def test_a_damaged_end_is_taken_out(memory: Deployment) -> None:
    """Entries that the anchor has seen stay, and what does not verify after them goes."""
    saved(memory, "a", count=2)
    thread = memory.thread_id("a")
    memory.put(thread, 4, Record(b"{}", b"[]", b"{}"))
    memory.put(thread, 5, Record(b"{}", b"[]", b"{}"))
    with pytest.raises(SealpointError):
        memory.open().thread("a").load()
    plan = planned(memory)
    (loss,) = plan.losses

    assert loss.outcome is ThreadOutcome.DAMAGED
    assert (loss.kept, loss.seen, loss.lost, loss.beyond) == (3, 3, 0, 2)
    assert "entry header" in loss.stopped
    assert len(plan.lost) == 0
    assert accepted(memory, plan).removed == 2
    assert [seq for seq, _ in memory.memory.scan(thread, 0)] == [0, 1, 2, 3]
    check_goes_on(memory, "a")


def test_damage_below_the_newest_entry_keeps_what_is_before_it(memory: Deployment) -> None:
    """A thread is kept as far as it verifies from its genesis on, bodies included."""
    saved(memory, "a", count=4)
    record = memory.record("a", 4)
    head = memory.record("a", 5)
    memory.put(memory.thread_id("a"), 4, Record(record.header, record.seals, b"{}", record.payload))
    memory.put(memory.thread_id("a"), 5, Record(head.header, b"[]", head.body, head.payload))
    (loss,) = planned(memory).losses

    assert (loss.outcome, loss.kept, loss.seen) == (ThreadOutcome.BEHIND, 3, 5)
    assert (loss.lost, loss.beyond) == (2, 2)
    assert accepted(memory).removed == 2
    assert memory.open().thread("a").load().state == ["a", 1]
    check_goes_on(memory, "a")


def test_a_missing_body_is_no_entry_that_stays(memory: Deployment) -> None:
    """Without an erasure after it, a body that is gone ends what can be kept."""
    saved(memory, "a", count=4)
    record = memory.record("a", 3)
    memory.put(memory.thread_id("a"), 3, Record(record.header, record.seals, None))
    memory.put(memory.thread_id("a"), 5, None)
    (loss,) = planned(memory).losses

    assert (loss.outcome, loss.kept, loss.beyond) == (ThreadOutcome.BEHIND, 2, 2)
    assert "its body is missing" in loss.stopped


def test_a_thread_without_a_genesis_is_gone(memory: Deployment) -> None:
    """Nothing can be kept of it; its name is free again, and its leftovers are taken out."""
    saved(memory, "a", "b", count=2)
    thread = memory.thread_id("a")
    memory.put(thread, 0, Record(b"{}", b"[]", b"{}"))
    memory.put(thread, 3, None)
    (loss,) = planned(memory).losses

    assert (loss.outcome, loss.name, loss.kept) == (ThreadOutcome.GONE, "", None)
    assert (loss.lost, loss.beyond) == (4, 3)
    assert accepted(memory).removed == 3
    assert thread not in dict(memory.memory.heads())
    assert thread not in list(memory.memory.blob_threads())
    with pytest.raises(UnknownThread):
        memory.open().thread("a").load()
    check_goes_on(memory, "a", "b")


def test_a_damaged_genesis_below_a_sound_head_loses_the_thread(memory: Deployment) -> None:
    """Nobody can say any more whose the thread is, and the plan says so."""
    saved(memory, "a", count=2)
    record = memory.record("a", 0)
    memory.put(memory.thread_id("a"), 0, Record(record.header, record.seals, b"{}"))
    (loss,) = planned(memory).losses

    assert (loss.outcome, loss.kept) == (ThreadOutcome.GONE, None)
    with pytest.raises(Edited):
        memory.open().thread("a").load()


# ------------------------------------------------------------------ erasure and retention


def test_an_erased_thread_stays_erased(world: Deployment) -> None:
    """A backup from before the erasure brings its bytes back: nothing of them is kept."""
    enrolled(world)
    filled(world.open(), 2, name="secret")
    saved(world, "a")
    backup = Backup(world)
    world.open("officer").thread("secret").erase(reason="asked for")
    backup.put_back()
    thread = world.thread_id("secret")
    plan = planned(world)
    (loss,) = plan.losses

    assert (loss.name, loss.outcome, loss.kept) == ("secret", ThreadOutcome.ERASED, None)
    assert loss.beyond == 4
    done = accepted(world, plan)
    assert done.removed == 4
    assert done.compacted
    store = world.open()
    with pytest.raises(UnknownThread):
        store.thread("secret").load()
    inner = store.storage.inner
    assert thread not in dict(inner.heads())
    assert thread not in list(inner.blob_threads())
    assert inner.labelled(store.thread("secret")._state.chain.label) == []
    check_goes_on(world, "secret", "a")


def test_an_erasure_below_a_later_generation_counts_as_well(memory: Deployment) -> None:
    """The thread went on after it was erased: its older generation does not come back."""
    enrolled(memory)
    saved(memory, "t", count=2)
    backup = Backup(memory)
    memory.open("officer").thread("t").erase(reason="asked for")
    saved(memory, "t", first=5)
    after = Backup(memory)
    saved(memory, "t", first=6)
    backup.put_back()
    (loss,) = planned(memory).losses
    after.put_back()
    (behind,) = planned(memory).losses

    assert (loss.outcome, loss.kept) == (ThreadOutcome.ERASED, None)
    assert (behind.outcome, behind.kept) == (ThreadOutcome.BEHIND, 7)
    accepted(memory)
    assert memory.open().thread("t").load().state == ["t", 5]
    check_goes_on(memory, "t")


def test_an_erased_thread_that_is_not_in_the_backup_is_called_erased(memory: Deployment) -> None:
    """There was nothing left to lose."""
    enrolled(memory)
    backup = Backup(memory)
    saved(memory, "t")
    memory.open("officer").thread("t").erase(reason="asked for")
    backup.put_back()

    assert [each.outcome for each in planned(memory).losses] == [ThreadOutcome.ERASED]


def test_a_recorded_erasure_is_kept(memory: Deployment) -> None:
    """A backup from after the erasure holds nothing to be erased again."""
    enrolled(memory)
    saved(memory, "t")
    memory.open("officer").thread("t").erase(reason="asked for")
    backup = Backup(memory)
    saved(memory, "t", first=1)
    backup.put_back()
    (loss,) = planned(memory).losses

    assert (loss.outcome, loss.kept) == (ThreadOutcome.BEHIND, 3)
    accepted(memory)
    with pytest.raises(Erased):
        memory.open().thread("t").load()
    check_goes_on(memory, "t")


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_prune_is_lost_or_kept_like_any_entry(memory: Deployment, *, before: bool) -> None:
    """From before it, the states that it gave up are there again; from after it, they are not."""
    enrolled(memory)
    filled(memory.open(), 4)
    backup = Backup(memory)
    memory.open().thread("t").prune(keep_last=1)
    if not before:
        backup = Backup(memory)
    memory.open().thread("t").save("newest")
    backup.put_back()
    accepted(memory)
    store = memory.open()
    kept = [ref.id for ref in store.thread("t").history() if not ref.pruned]

    assert kept == (["c3", "c2", "c1", "c0"] if before else ["c3"])
    assert store.verify().ok
    check_goes_on(memory, "t")


def test_gc_takes_away_what_a_restore_left(memory: Deployment) -> None:
    """Blobs of entries that were cut off, and of threads that were lost, belong to nobody."""
    filled(memory.open(), 2)
    backup = Backup(memory)
    filled(memory.open(), 2, first=2)
    filled(memory.open(), 1, name="lost")
    newest = dict(memory.memory._blobs)
    backup.put_back()
    left = {place: blob for place, blob in newest.items() if place not in memory.memory._blobs}
    accepted(memory)
    for (thread, digest), blob in left.items():
        memory.memory.put_blobs(thread, {digest: blob})
    found = memory.open("operator").gc()

    assert not found.failures
    assert found.blobs == len(left) > 0
    assert memory.open().verify().ok


def test_the_store_chain_is_no_thread_of_a_plan(memory: Deployment) -> None:
    """Its slot is compared by itself."""
    lossy(memory)
    plan = planned(memory)

    assert STORE_CHAIN not in {*plan.kept.threads(), *plan.lost.threads()}


# ------------------------------------------------------------------ what the lost entries decided


def test_a_lost_pause_is_in_the_plan_and_in_the_entry(world: Deployment) -> None:
    """The anchor has seen the thread paused, and what is kept is not."""
    saved(world, "a", "b")
    backup = Backup(world)
    world.open("operator", gated=True).thread("a").pause("stop")
    saved(world, "b", first=1)
    backup.put_back()
    plan = planned(world)
    by_name = {each.name: each for each in plan.losses}

    assert (by_name["a"].paused, by_name["a"].loses_pause) == (True, True)
    assert (by_name["b"].paused, by_name["b"].loses_pause) == (False, False)
    assert plan.released(release=True) == (by_name["b"],)
    assert list(plan.paused.threads()) == [world.thread_id("a")]
    accepted(world, plan, release=True)
    restore = world.using(lambda core: core.renewed_trust()).restores.all[-1]
    assert restore.paused == plan.paused.digest.hex()
    assert len(restore.lists) == 4
    assert world.open("operator", gated=True).verify().ok


def test_a_restore_that_loses_no_pause_has_three_lists(memory: Deployment) -> None:
    """The fourth list is there only where it says something."""
    lossy(memory)
    plan = planned(memory)
    accepted(memory, plan)
    restore = memory.using(lambda core: core.renewed_trust()).restores.all[-1]

    assert len(plan.paused) == 0
    assert restore.paused is None
    assert len(restore.lists) == 3


def test_a_thread_whose_kept_copy_is_paused_stays_paused(memory: Deployment) -> None:
    """Nothing is recorded about it: its own entries pause it. It is not released either."""
    saved(memory, "a")
    memory.open("operator", gated=True).thread("a").pause("stop")
    backup = Backup(memory)
    operator = memory.open("operator", gated=True).thread("a")
    operator.unpause("go on")
    operator.pause("stop again")
    backup.put_back()
    plan = planned(memory)
    (loss,) = plan.losses

    assert (loss.paused, loss.loses_pause) == (True, False)
    assert loss.not_released == "it is paused"
    assert plan.released(release=True) == ()
    assert len(plan.paused) == 0
    accepted(memory, plan)
    handle = memory.open("operator", gated=True).thread("a")
    assert handle.paused
    handle.unpause("looked at")
    assert not handle.paused


def test_a_lost_unpause_leaves_the_thread_paused(memory: Deployment) -> None:
    """The kept copy decides; such a thread may be released for the time after its pause."""
    saved(memory, "a")
    memory.open("operator", gated=True).thread("a").pause("stop")
    backup = Backup(memory)
    memory.open("operator", gated=True).thread("a").unpause("go on")
    backup.put_back()
    (loss,) = planned(memory).losses
    accepted(memory)

    assert (loss.paused, loss.loses_pause) == (False, False)
    assert memory.open("operator", gated=True).thread("a").paused


def test_lost_handoffs_and_sessions_are_in_the_plan(memory: Deployment) -> None:
    """With the positions that the anchor has seen."""
    memory.enrol(identity("spare"))
    saved(memory, "a", "b")
    backup = Backup(memory)
    memory.open("worker", gated=True).thread("a").handoff(to="spare", reason="holidays")
    saved(memory, "b", first=1)
    backup.put_back()
    by_name = {each.name: each for each in planned(memory).losses}

    assert (by_name["a"].lost_handoff, by_name["a"].lost_session) == (3, None)
    assert (by_name["b"].lost_handoff, by_name["b"].lost_session) == (None, 3)


def test_lost_decisions_that_the_store_still_shows_are_named(memory: Deployment) -> None:
    """Each entry must verify on its own; a forged one is left out."""
    saved(memory, "a", count=2)
    operator = memory.open("operator", gated=True).thread("a")
    operator.pause("stop")
    operator.unpause("go on")
    operator.pause("stop again")
    thread, unpause = memory.thread_id("a"), memory.record("a", 5)
    memory.put(thread, 3, None)
    memory.put(thread, 5, Record(unpause.header, b"[]", unpause.body))
    (loss,) = planned(memory).losses

    assert (loss.kept, loss.lost_range, loss.loses_pause) == (2, (3, 6), True)
    assert loss.decisions == (
        LostDecision(seq=4, kind="pause", by="operator"),
        LostDecision(seq=6, kind="pause", by="operator"),
    )


def test_a_paused_thread_of_which_nothing_is_left_is_in_the_plan(memory: Deployment) -> None:
    """There is nothing that could stay paused."""
    saved(memory, "b")
    backup = Backup(memory)
    saved(memory, "a")
    memory.open("operator", gated=True).thread("a").pause("stop")
    backup.put_back()
    plan = planned(memory)
    (loss,) = plan.losses

    assert (loss.outcome, loss.loses_pause) == (ThreadOutcome.GONE, True)
    assert len(plan.paused) == 0
    accepted(memory, plan)
    check_goes_on(memory, "a")
