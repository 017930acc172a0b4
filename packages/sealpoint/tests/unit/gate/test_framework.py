# SPDX-License-Identifier: Apache-2.0
"""Sessions of frameworks: begun before a state is read, with results that may ask."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from sealpoint.errors import (
    NeedsApproval,
    ResumeRefused,
    Superseded,
    Tampered,
    UnknownCheckpoint,
    UsageError,
)
from sealpoint.gate import Outcome, Rule, Thread, shipped_policy
from sealpoint.ledger import Kind
from sealpoint.store import CheckpointRef, Key, ResultsDraft, SaveDraft
from sealpoint.world import World
from tests.unit.gate.team import READ, SHELL, Team
from tests.unit.store.laned import ids, put, refused, results, saved, values


def _rules(thread: Thread, **wish: object) -> list[str]:
    decision = thread.judge(**({"world": READ} | wish))  # type: ignore[arg-type]
    return [reason.rule for reason in decision.reasons]


def _asking(team: Team) -> None:
    """A checkpoint, and a task that goes on from it and waits for an answer."""
    saved(
        team.thread(),
        put(1, "1", world=World.of(READ)),
        results("paid?", "1", "pay", question="pay 5?"),
    )


# ---------------------------------------------------------------------- questions of tasks


def test_a_question_of_a_task_is_pending(team: Team) -> None:
    """The gate sees it as one of the checkpoint itself, and says what it is."""
    _asking(team)
    decision = team.fresh().judge(world=READ)

    assert decision.outcome is Outcome.NEEDS_APPROVAL
    assert [reason.rule for reason in decision.reasons] == [Rule.ANSWER]
    assert team.fresh().question == ["pay 5?"]
    with pytest.raises(ResumeRefused, match="a question is pending"):
        team.fresh().save(2, world=READ)


def test_a_question_before_its_checkpoint_is_pending(team: Team) -> None:
    """Results may come first; who looks later finds them all the same."""
    saved(team.thread(), put(0, "0", world=World.of(READ)))
    saved(team.thread(), results("?", "1", question="pay?"), put(1, "1", world=World.of(READ)))

    assert _rules(team.fresh()) == [Rule.ANSWER]


def test_the_team_policy_asks_for_the_answer(memory: Team) -> None:
    """Under the shipped policy two people approve the very answer; then it is given."""
    memory.apply(shipped_policy("strict"))
    _asking(memory)
    request = memory.ask(world=READ, answer="yes")
    memory.approve(request)
    memory.thread().resume(world=READ, answer="yes")
    saved(memory.thread(), results("paid", "1", "pay"))

    assert memory.newest(Kind.RESUME).rules == (Rule.ANSWER,)
    assert _rules(memory.fresh()) == []
    memory.check_sound()


@pytest.mark.parametrize(
    ("more", "pending"),
    [
        (results("done", "1", "pay"), False),
        (results("yes", "1", "pay", answers=True), True),
        (results("yes", "1", "other"), True),
        (results("done", "1", "pay", lane="sub"), True),
    ],
    ids=["what the task made of it", "an answer alone", "another task", "another lane"],
)
def test_what_settles_a_question(memory: Team, more: object, *, pending: bool) -> None:
    """Only what the task itself wrote next: an answer that was kept is not yet taken in."""
    _asking(memory)
    saved(memory.thread(), more)  # type: ignore[arg-type]

    assert (_rules(memory.fresh()) == [Rule.ANSWER]) == pending
    memory.check_sound()


def test_a_question_of_an_older_checkpoint_is_not_that_of_the_newest(memory: Team) -> None:
    """It counts for who goes on from there."""
    _asking(memory)
    saved(memory.thread(), put(2, "2", world=World.of(READ)))

    assert _rules(memory.fresh()) == []
    assert _rules(memory.fresh(), ref="1") == [Rule.OLDER_CHECKPOINT, Rule.ANSWER]


def test_a_deleted_question_is_not_pending(memory: Team) -> None:
    """Nor for who saves the same name anew, and the audit agrees with the gate about it."""
    _asking(memory)
    memory.thread().adapter.delete()
    saved(memory.thread(), put(1, "1", world=World.of(READ)))

    assert memory.fresh().question is None
    assert _rules(memory.fresh()) == []
    memory.fresh().save(2, world=READ)
    memory.check_sound()


# ---------------------------------------------------------------------- begin


def test_begin_records_the_decision_before_anything_is_read(team: Team) -> None:
    """As a resume does, and what is written then belongs to the session."""
    first = team.thread().save(1, id="1", world=READ)
    thread = team.fresh()
    at = thread.adapter.begin(world=READ, actor="ann")
    body = team.newest(Kind.RESUME)

    assert (at, team.kinds()[-1]) == (3, "resume")
    assert (body.checkpoint, body.policy, body.actor) == (first.entry, team.digest, "ann")
    assert thread.adapter.snapshot().state == 1  # type: ignore[union-attr]
    saved(thread, results("r", "1"))
    assert team.kinds()[-2:] == ["resume", "writes"]
    team.check_sound()


def test_begin_on_nothing_writes_nothing(team: Team) -> None:
    """Its first save begins the thread."""
    thread = team.fresh()
    before = team.everything()
    assert thread.adapter.begin(world=READ) is None
    assert team.everything() == before
    saved(thread, put(1, "1", world=World.of(READ)))

    assert team.kinds() == ["genesis", "resume", "checkpoint"]


def test_begin_asks_as_resume_does(team: Team) -> None:
    """What needs approval is asked for, and granted once for exactly that."""
    team.granted()
    thread = team.thread()
    assert thread.adapter.begin(world=SHELL) == 7

    assert team.newest(Kind.RESUME).request is not None
    with pytest.raises(NeedsApproval):
        team.fresh().adapter.begin(world=SHELL)
    with pytest.raises(UnknownCheckpoint):
        team.fresh().adapter.begin(world=READ, ref="9")
    team.check_sound()


# ---------------------------------------------------------------------- handles that were lost


@pytest.mark.parametrize("look", ["snapshot", "snapshots", "question", "paused", "judge"])
def test_looking_arms_no_handle_again(memory: Team, look: str) -> None:
    """A run that was taken over stays so, whatever is read beside it."""
    thread = memory.thread()
    thread.save(1, id="1", world=READ)
    memory.fresh().save(2, id="2", world=READ)

    def looked() -> object:
        if look == "judge":
            return thread.judge(world=READ)
        found = getattr(thread.adapter if look.startswith("snapshot") else thread, look)
        return list(found()) if look == "snapshots" else (found() if callable(found) else found)

    for _ in range(2):
        looked()
        with pytest.raises(Superseded):
            thread.save(3, world=READ)
    thread.load()
    thread.save(3, world=READ)


# ---------------------------------------------------------------------- groups behind the gate


def test_a_wider_world_is_found_in_the_middle_of_a_group(team: Team) -> None:
    """Inside a session no draft widens it, wherever it stands; the others are written."""
    team.thread().save(0, id="0", world=READ)
    outcomes = team.thread().adapter.commit(
        [
            put(1, "1"),
            put(2, "2", world=World.of(SHELL)),
            put(3, "3", world=World.of(READ)),
            results("r", "3"),
        ]
    )

    assert refused(outcomes) == [None, "resume-refused", None, None]
    assert ids(team.fresh()) == ["3", "1", "0"]
    team.check_sound()


def test_a_group_has_the_world_of_the_draft_before(team: Team) -> None:
    """What declares none has that of the one before it, so it is not taken for a change."""
    store = team.store()
    saved(store.thread("t"), put(1, "1", world=World.of(READ)), results("r", "1"), put(2, "2"))
    worlds = {body.world for kind, body in team.entries() if kind == "checkpoint"}

    assert store.storage.groups == [5]
    assert len(worlds) == 1
    assert None not in worlds


def test_a_draft_has_a_world_that_can_be_judged(memory: Team) -> None:
    """Plain JSON would be sealed into the checkpoint without having been compared."""
    with pytest.raises(UsageError, match="expected a World"):
        memory.thread().adapter.commit([SaveDraft(1, "1", None, None, cast("World", SHELL))])


# ---------------------------------------------------------------------- paused threads


def test_a_paused_thread_takes_results_and_nothing_else(team: Team) -> None:
    """Work that had begun is kept: inside one group, results pass and the rest is refused."""
    team.thread().save(1, id="1", world=READ)
    team.thread("operator").pause("a look")
    outcomes = team.thread().adapter.commit(
        [
            results("a", "1", "a"),
            put(2, "2"),
            results("yes", "1", "b", answers=True),
            results("c", "1", "c"),
        ]
    )

    assert refused(outcomes) == [None, "paused", "paused", None]
    assert values(team.fresh()) == ["a", "c"]
    assert team.fresh().paused
    assert ids(team.fresh()) == ["1"]
    team.check_sound()


@pytest.mark.parametrize("what", ["results", "both", "a checkpoint", "an answer"])
def test_a_paused_thread_begins_no_session(memory: Team, what: str) -> None:
    """Not even for results: who writes them had not begun the work."""
    memory.thread().save(1, id="1", world=READ)
    memory.thread("operator").pause("a look")
    before = memory.everything()
    declared = World.of(READ)
    groups: dict[str, list[SaveDraft | ResultsDraft]] = {
        "results": [results("a", "1", world=declared)],
        "both": [results("a", "1", world=declared), put(2, "2")],
        "a checkpoint": [put(2, "2", world=declared)],
        "an answer": [results("yes", "1", answers=True, world=declared)],
    }
    outcomes = memory.fresh().adapter.commit(groups[what])

    assert refused(outcomes) == ["paused"] * len(groups[what])
    assert memory.everything() == before


@pytest.mark.parametrize("how", ["resume", "begin"])
def test_nobody_goes_on_with_a_paused_thread(memory: Team, how: str) -> None:
    """Neither by a resume nor by what frameworks call."""
    memory.thread().save(1, id="1", world=READ)
    memory.thread("operator").pause("a look")

    def go_on() -> object:
        thread = memory.fresh()
        return (thread.resume if how == "resume" else thread.adapter.begin)(world=READ)

    with pytest.raises(ResumeRefused, match="paused"):
        go_on()
    memory.thread("operator").unpause("fine")

    go_on()


def test_a_pause_stops_an_answer_and_keeps_what_was_done(memory: Team) -> None:
    """Also if what was done is a checkpoint of the very name that the answer is for."""
    thread = memory.thread()
    thread.save(1, id="1", world=READ)
    memory.thread("operator").pause("a look")
    outcomes = thread.adapter.commit([results("yes", "1", answers=True), put(2, "1", holds=True)])

    assert refused(outcomes) == ["paused", None]
    memory.check_sound()


def test_a_pause_that_comes_in_between_is_met(memory: Team) -> None:
    """Between building a group and writing it: the checkpoint is refused, the results stay."""
    store = memory.store()
    store.thread("t").save(1, id="1", world=READ)
    store.storage.appending.before = lambda: memory.thread("operator").pause("now")
    outcomes = store.thread("t").adapter.commit([results("a", "1"), put(2, "2")])

    assert refused(outcomes) == [None, "paused"]
    assert values(memory.fresh()) == ["a"]
    memory.thread("operator").unpause("fine")
    saved(store.thread("t"), put(2, "2"))
    memory.check_sound()


def test_a_checkpoint_that_a_pause_holds_back_is_kept(memory: Team) -> None:
    """It is what everybody reads and the gate decides on, and nobody goes on while it is paused."""
    memory.thread().save(1, id="1", world=READ)
    memory.thread("operator").pause("a look")
    fields: dict[str, Any] = {"metadata": {"step": 2}, "question": "pay?"}
    assert refused(memory.thread().adapter.commit([put({"n": 2}, "2", **fields)])) == ["paused"]
    (ref, _) = saved(memory.thread(), put({"n": 2}, "2", holds=True, **fields), results("r", "2"))

    assert isinstance(ref, CheckpointRef)
    assert ref.held
    for thread in (memory.thread(), memory.fresh()):
        found = thread.adapter.snapshot()
        assert found is not None
        assert (found.state, found.ref.id, found.ref.metadata) == ({"n": 2}, "2", {"step": 2})
        assert [each.value for each in found.results] == ["r"]
        assert thread.load().ref.id == "2"
        release = thread.release()
        assert (release.id, release.held, release.newest) == ("2", True, True)
        assert release.world == memory.newest(Kind.HELD).world is not None
        assert thread.question == "pay?"
    memory.check_sound()
    memory.thread("operator").unpause("fine")
    assert refused(memory.thread().adapter.commit([put({"n": 3}, "3", holds=True)])) == [None]
    assert not memory.fresh().load().ref.held
    memory.check_sound()


def test_a_deleted_checkpoint_is_not_held_back(memory: Team) -> None:
    """Deleting takes what a pause held back along."""
    memory.thread().save(1, id="1", world=READ)
    memory.thread("operator").pause("a look")
    saved(memory.thread(), put(2, "2", question="pay?", holds=True))
    reader = memory.fresh()
    assert reader.adapter.snapshot().ref.id == "2"  # type: ignore[union-attr]
    memory.thread().adapter.delete([Key("", "2")])

    for thread in (reader, memory.fresh()):
        assert thread.adapter.snapshot().ref.id == "1"  # type: ignore[union-attr]
        assert thread.question is None


# ---------------------------------------------------------------------- what was found wrong


def test_nothing_is_released_of_a_thread_that_cannot_be_found(memory: Team) -> None:
    """A handle that knew it has nothing to decide about, and so nothing to show."""
    saved(memory.thread(), put(1, "1", world=World.of(READ)))
    store = memory.world.open("worker", gated=True)
    thread = store.thread("t")
    assert thread.adapter.snapshot() is not None
    memory.world.forget("t")
    store.storage.labelled = lambda label: []  # type: ignore[method-assign] # noqa: ARG005

    assert thread.adapter.snapshot() is None
    assert thread.adapter.begin(world=READ) is None


def test_broken_seals_of_the_newest_entry_are_noticed_by_who_has_read_it(memory: Team) -> None:
    """What it says was verified; that its proof is gone is told all the same."""
    thread = memory.thread()
    ref = thread.save(1, id="1", world=READ)
    assert thread.load().state == 1
    record = memory.world.record("t", ref.seq)
    memory.world.put(memory.world.thread_id("t"), ref.seq, replace(record, seals=b""))

    for read in (thread.load, thread.adapter.snapshot, lambda: thread.adapter.snapshot("", "1")):
        with pytest.raises(Tampered):
            read()


def test_a_refusal_for_a_pause_says_how_it_ends(memory: Team) -> None:
    """Whoever is refused learns the command, with the name of the thread."""
    memory.thread().save(1, id="1", world=READ)
    memory.thread("operator").pause("look first")

    with pytest.raises(ResumeRefused) as refusal:
        memory.fresh().adapter.begin(world=READ)
    assert "sealpoint unpause 't' --reason" in str(refusal.value.hint)
