# SPDX-License-Identifier: Apache-2.0
"""What the gate decides about is what is handed over, bound, recorded and judged again.

The attacker here is a worker with a key of its own, or two honest workers that race; the store is
as it was written. Each case has its honest twin.
"""

from typing import Any

import pytest

from sealpoint.errors import (
    NeedsApproval,
    NotTrusted,
    ResumeRefused,
    SealpointError,
    Superseded,
    UsageError,
)
from sealpoint.ledger import CheckpointBody, Kind, ResumeBody
from sealpoint.store import CheckpointRef, EntryDraft, Key, ResultsDraft, SaveDraft, SessionStart
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.laned import put, results, saved


def _held(attacked: AttackedTeam) -> None:
    """A run of 5, whose next state, of 5,000,000, a pause holds back."""
    attacked.thread().save({"amount": 5}, id="1", world=READ)
    attacked.thread("operator").pause("a look")
    saved(attacked.thread(), put({"amount": 5_000_000}, "2", holds=True))
    attacked.thread("operator").unpause("fine")


def test_what_a_pause_held_back_is_what_people_approve(attacked: AttackedTeam) -> None:
    """The request, the release, `load` and the record name the state that is handed over."""
    _held(attacked)
    request = attacked.ask()
    release = attacked.fresh("ann").release_of(request)
    attacked.approve(request)
    loaded = attacked.fresh().resume(world=SHELL)
    recorded = attacked.newest(Kind.RESUME)

    assert loaded.state == attacked.fresh().load().state == {"amount": 5_000_000}
    assert release.held
    assert (release.id, release.entry) == ("2", loaded.ref.entry)
    assert request.statement.checkpoint == recorded.checkpoint == loaded.ref.entry
    assert request.statement.release == recorded.release == release.digest
    attacked.check_sound()


def test_without_a_pause_the_same_is_an_ordinary_checkpoint(attacked: AttackedTeam) -> None:
    """The control: the draft says that it may be held back, and nothing holds it."""
    attacked.thread().save({"amount": 5}, id="1", world=READ)
    saved(attacked.thread(), put({"amount": 6}, "2", holds=True))

    assert not attacked.fresh().release().held
    assert Kind.HELD not in attacked.kinds()
    attacked.check_sound()


def test_nobody_writes_a_held_back_checkpoint_without_a_pause(attacked: AttackedTeam) -> None:
    """Our own writer refuses to sign it."""
    attacked.thread().save({"amount": 5}, id="1", world=READ)
    body = attacked.newest(Kind.CHECKPOINT)

    with pytest.raises(UsageError, match="only while the thread is paused"):
        attacked.thread()._state.record(EntryDraft(Kind.HELD, body))
    attacked.check_sound()


def test_a_held_back_checkpoint_without_a_pause_is_refused_by_readers(
    attacked: AttackedTeam,
) -> None:
    """Somebody else's writer may sign it with a worker's key; nobody reads it."""
    attacked.thread().save({"amount": 5}, id="1", world=READ)
    warm = attacked.fresh()
    warm.load()
    body: CheckpointBody = attacked.newest(Kind.CHECKPOINT)
    attacked.append(attacked.forged(Kind.HELD, body, "worker"))

    for thread in (warm, attacked.fresh()):
        with pytest.raises(NotTrusted, match="only for a paused thread"):
            thread.load()
    assert not attacked.world.open(None, read_only=True).verify().ok


# ---------------------------------------------------------------------- pending results


def test_pending_results_are_part_of_what_is_approved(attacked: AttackedTeam) -> None:
    """A result that is added after the request makes it another release: nothing is spent."""
    attacked.thread().save({"amount": 5}, id="1", world=READ)
    saved(attacked.thread(), results("paid 5", "1", task="pay"))
    request = attacked.ask()
    attacked.approve(request)
    saved(attacked.thread(), results("paid 5,000,000", "1", task="pay again"))

    with pytest.raises(NeedsApproval) as needs:
        attacked.fresh().resume(world=SHELL)
    assert getattr(needs.value.request, "id", None) != request.id


def test_pending_results_that_were_approved_are_what_is_recorded(attacked: AttackedTeam) -> None:
    """The control: every result that counts is in the release, in its order."""
    attacked.thread().save({"amount": 5}, id="1", world=READ)
    saved(attacked.thread(), results("one", "1", task="a"), results("two", "1", task="b"))
    request = attacked.ask()
    release = attacked.fresh("ann").release_of(request)
    attacked.approve(request)
    thread = attacked.fresh()
    session = thread.adapter.begin(world=SHELL)
    snapshot = thread.adapter.snapshot(running=True, session=session)

    assert [each.task for each in release.results] == ["a", "b"]
    assert snapshot is not None
    assert [each.value for each in snapshot.results] == ["one", "two"]
    assert [each.ref.entry for each in snapshot.results] == [each.entry for each in release.results]
    assert attacked.newest(Kind.RESUME).release == release.digest
    attacked.check_sound()


def _sub_below(attacked: AttackedTeam) -> None:
    """A subgraph that was saved before the newest checkpoint of the graph."""
    saved(
        attacked.thread(),
        put({"n": 0}, "0", world=World.of(READ)),
        put({"sub": 1}, "s", "sub"),
        put({"n": 1}, "1"),
    )


def test_results_in_a_lane_below_the_target_are_part_of_what_is_approved(
    attacked: AttackedTeam,
) -> None:
    """What a run would take in a subgraph is shown, bound and recorded, wherever it was saved."""
    _sub_below(attacked)
    saved(
        attacked.thread(),
        results("pay 1000000", "s", "pay", "sub", question="pay?"),
        results("yes", "s", "boss", "sub", answers=True),
    )
    request = attacked.ask()
    shown = attacked.fresh("ann").release_of(request)
    attacked.approve(request)
    thread = attacked.fresh()
    session = thread.adapter.begin(world=SHELL)
    ran = thread.adapter.snapshot("sub", running=True, session=session)

    assert ran is not None
    (lane,) = shown.lanes
    assert (lane.lane, lane.id, lane.entry) == ("sub", "s", ran.ref.entry)
    assert [each.entry for each in lane.results] == [each.ref.entry for each in ran.results]
    assert [(each.question, each.answers) for each in lane.results] == [
        ("pay?", False),
        (None, True),
    ]
    assert attacked.newest(Kind.RESUME).release == shown.digest
    attacked.check_sound()


def test_results_in_a_lane_below_the_target_end_an_approval(attacked: AttackedTeam) -> None:
    """Somebody adds them after people approved: nothing is spent."""
    _sub_below(attacked)
    request = attacked.ask()
    assert attacked.fresh("ann").release_of(request).lanes == ()
    attacked.approve(request)
    before = attacked.fresh().release()
    saved(attacked.thread(), results("pay 1000000", "s", "pay", "sub"))
    after = attacked.fresh().release()

    assert (before.digest == after.digest, len(after.lanes)) == (False, 1)
    with pytest.raises(NeedsApproval) as needs:
        attacked.fresh().resume(world=SHELL)
    assert getattr(needs.value.request, "id", None) != request.id


def test_a_lane_below_the_target_that_nobody_touched_is_no_part_of_it(
    attacked: AttackedTeam,
) -> None:
    """The control: what had been finished before is not gone through at every resume."""
    _sub_below(attacked)
    release = attacked.fresh().release()

    assert (release.lanes, release.results) == ((), ())
    assert attacked.fresh().resume(world=READ).state == {"n": 1}
    attacked.check_sound()


# ---------------------------------------------------------------------- the record


@pytest.mark.parametrize("lie", ["release", "checkpoint"])
def test_a_record_of_another_release_is_found(attacked: AttackedTeam, lie: str) -> None:
    """A worker writes a resume that names what it did not run: every audit says so."""
    attacked.thread().save({"amount": 5}, id="1", world=READ)
    older = attacked.thread().release()
    attacked.thread().save({"amount": 6}, id="2")
    thread = attacked.fresh()
    release = thread.release()
    fields: dict[str, Any] = {"checkpoint": release.entry, "release": release.digest}
    fields[lie] = {"release": older.digest, "checkpoint": older.entry}[lie]
    body = ResumeBody(
        salt="ab" * 32,
        owner="worker",
        basis=attacked.find(Kind.CHECKPOINT),
        world=release.world,
        policy=attacked.digest,
        **fields,
    )
    thread._gate.writer.open_session(SessionStart(body, thread._state.core.trust()))
    findings = attacked.world.open(None, read_only=True).verify().findings

    assert any("records release" in finding.message for finding in findings)


def test_a_run_that_was_overtaken_reads_nothing(attacked: AttackedTeam) -> None:
    """Its session has ended: what lies there was released to somebody else."""
    attacked.thread().save({"amount": 5}, id="1", world=READ)
    victim = attacked.fresh()
    session = victim.adapter.begin(world=READ)
    assert victim.adapter.snapshot(running=True, session=session) is not None
    other = attacked.fresh()
    other.resume(world=READ)
    other.save({"amount": 5_000_000}, question="pay 5,000,000?")

    with pytest.raises(Superseded):
        victim.adapter.snapshot(running=True, session=session)
    with pytest.raises(Superseded):
        victim.adapter.snapshot("child", running=True, session=session)
    found = victim.adapter.snapshot()  # a look is a look
    assert found is not None
    assert found.state == {"amount": 5_000_000}


def test_what_was_decided_about_is_not_handed_to_a_run_that_was_overtaken(
    attacked: AttackedTeam,
) -> None:
    """Between the decision and the first load, somebody else goes on."""
    attacked.thread().save({"amount": 5}, id="1", world=READ)
    victim = attacked.fresh()
    session = victim.adapter.begin(world=READ)
    attacked.fresh().resume(world=READ)

    with pytest.raises(Superseded):
        victim.adapter.snapshot(running=True, session=session)


# ---------------------------------------------------------------------- what is newest


def test_an_older_checkpoint_that_was_put_once_more_is_not_called_the_newest(
    attacked: AttackedTeam,
) -> None:
    """Its rank is that of its first entry, whatever lies last; its own question is shown."""
    saved(attacked.thread(), put({"n": 1}, "1", world=World.of(READ), question="pay 5?"))
    saved(attacked.thread(), put({"n": 2}, "2", question="pay 5,000,000?"))
    saved(attacked.thread(), put({"n": 1, "again": True}, "1", question="pay 5?"))
    older = attacked.ask(ref="1", world=READ)
    newest = attacked.fresh("ann").release()
    release = attacked.fresh("ann").release_of(older)

    assert (newest.id, newest.question, newest.newest) == ("2", "pay 5,000,000?", True)
    assert (release.id, release.question, release.newest) == ("1", "pay 5?", False)


def test_the_question_of_a_task_of_an_older_checkpoint_is_shown(attacked: AttackedTeam) -> None:
    """It lies in results, and those are of the checkpoint that is asked for."""
    saved(attacked.thread(), put({"n": 1}, "1", world=World.of(READ)))
    saved(attacked.thread(), results("asked", "1", task="pay", question="pay 5?"))
    saved(attacked.thread(), put({"n": 2}, "2"))
    release = attacked.fresh("ann").release_of(attacked.ask(ref="1", world=READ))

    assert release.question == ["pay 5?"]
    assert attacked.fresh().release().question is None


# ---------------------------------------------------------------------- drafts that do not fit


def test_results_are_never_read_as_a_checkpoint(attacked: AttackedTeam) -> None:
    """Whatever value they hold, and whatever task they name."""
    saved(attacked.thread(), put({"n": 1}, "1", world=World.of(READ)))
    envelope = {"state": {"n": 5_000_000}, "parent": None, "metadata": None}
    draft = ResultsDraft(envelope, checkpoint="2", task="held back")
    saved(attacked.thread(), draft)

    for thread in (attacked.thread(), attacked.fresh()):
        found = thread.adapter.snapshot()
        assert found is not None
        assert found.state == {"n": 1}
        assert thread.adapter.snapshot(id="2") is None
        with pytest.raises(SealpointError):
            thread.load("2")


def test_a_copy_is_as_old_as_its_original(attacked: AttackedTeam) -> None:
    """A copy into another thread sheds neither age nor the rule for older checkpoints."""
    ref = attacked.thread(name="source").save({"n": 1}, id="1", world=READ)
    origin = attacked.origin_of(ref, "source")
    attacked.later(days=8)
    copy = SaveDraft({"n": 1}, "1", None, None, World.of(READ), origin=origin)
    (outcome,) = attacked.thread(name="copy").adapter.commit([copy])
    assert isinstance(outcome, CheckpointRef)
    thread = attacked.fresh(name="copy")
    release = thread.release()

    assert (release.time, release.origin) == (ref.time, origin)
    rules = {each.rule for each in thread.judge(world=READ).reasons}
    assert rules == {"older-checkpoint", "old-age"}
    with pytest.raises(ResumeRefused, match="a copy of one of another thread"):
        thread.save({"n": 2}, world=READ)


def test_what_is_left_after_a_deletion_is_older(attacked: AttackedTeam) -> None:
    """Whoever deletes what is newer needs the same approval as for going back."""
    saved(attacked.thread(), put({"n": 1}, "1", world=World.of(READ)), put({"n": 2}, "2"))
    attacked.thread().adapter.delete([Key("", "2")])
    decision = attacked.fresh().judge(world=READ)

    assert [each.rule for each in decision.reasons] == ["older-checkpoint"]
    assert decision.release is not None
    assert [each.id for each in decision.release.deleted] == ["2"]
    attacked.approve(attacked.ask(world=READ))
    attacked.thread().resume(world=READ)
    assert attacked.fresh().judge(world=READ).ordinary
    attacked.check_sound()
