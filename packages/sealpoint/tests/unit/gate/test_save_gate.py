# SPDX-License-Identifier: Apache-2.0
"""A save behind the gate: ordinary continuation needs no call, everything else does."""

from datetime import timedelta
from typing import Any

import pytest

from sealpoint.errors import (
    AnchorUnavailable,
    HeadMoved,
    NeedsApproval,
    ResumeRefused,
    StorageUnavailable,
    Superseded,
)
from sealpoint.gate import Request, shipped_policy
from sealpoint.ledger import Kind, VerdictBody
from sealpoint.signing import Attestation, Verdict, attest
from tests.deployment import Opened
from tests.ledgers import key
from tests.unit.gate.team import NARROW, READ, SHELL, Team, policy
from tests.unit.store.backup import Backup, accepted


def test_the_first_save_asks_nobody(team: Team) -> None:
    """There is nothing that it could go on from; the policy is named all the same."""
    team.thread().save(1, world=SHELL, question="pay?")
    body = team.newest(Kind.RESUME)

    assert team.kinds() == ["genesis", "resume", "checkpoint"]
    assert (body.policy, body.checkpoint, body.rules) == (team.digest, None, ())
    assert team.fresh().load().question == "pay?"


def test_an_ordinary_save_begins_a_session_by_itself(team: Team) -> None:
    """In the same group as its checkpoint, with the decision in it."""
    first = team.thread().save(1, world=READ)
    store = team.world.open("worker", gated=True)
    store.thread("t").save(2, world=READ)
    body = team.newest(Kind.RESUME)

    assert store.storage.groups == [2]
    assert (body.checkpoint, body.policy, body.rules) == (first.entry, team.digest, ())
    with pytest.raises(Superseded):
        team.thread().save(3, world=READ)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"world": SHELL}, r"the tools are not those of the checkpoint: \+ tool shell"),
        ({}, "no world is declared"),
        ({"world": {**READ, "code": {"version": "2"}}}, "code"),
    ],
    ids=["wider", "missing", "code"],
)
def test_what_is_not_ordinary_is_not_saved(team: Team, options: dict[str, Any], words: str) -> None:
    """Nothing is written, nothing is asked for, and the caller is told what to do."""
    team.thread().save(1, world=READ)
    before = team.everything()
    with pytest.raises(ResumeRefused, match=words) as refused:
        team.fresh().save(2, **options)

    assert "resume" in refused.value.hint
    assert team.everything() == before


def test_an_open_question_stops_a_save_of_another_session(team: Team) -> None:
    """Somebody has to answer it; the session that asked may go on by itself."""
    team.thread().save(1, world=READ, question="pay?")
    before = team.everything()
    with pytest.raises(ResumeRefused, match="a question is pending"):
        team.fresh().save(2, world=READ)
    assert team.everything() == before

    assert team.thread().save(2, world=READ).seq == 3


def test_what_the_policy_allows_without_a_word_is_saved_and_told(team: Team) -> None:
    """A narrower world, and under solo an answer that nobody gave."""
    team.thread().save(1, world=READ)
    team.fresh().save(2, world=NARROW)
    assert team.newest(Kind.RESUME).rules == ("narrower-world",)
    team.apply(shipped_policy("solo"))
    team.fresh().save(3, world=NARROW, question="pay?")
    team.fresh().save(4, world=NARROW)

    assert team.newest(Kind.RESUME).rules == ("answer",)
    with pytest.raises(ResumeRefused, match="deliberate="):
        team.fresh().save(5, world=READ)


def test_without_a_policy_the_one_line_change_goes_on_working(team: Team) -> None:
    """Saves of many processes that declare nothing."""
    team.enter(lambda document: type(document)(identities=document.identities))
    for number in range(3):
        team.fresh().save(number)

    assert team.fresh().load().state == 2


def test_a_session_that_declared_nothing_declares_nothing_later(team: Team) -> None:
    """A world is declared as a session begins: a resume declares a first one, if it may."""
    team.apply(policy(first_world="record"))
    team.thread().save(1)
    with pytest.raises(ResumeRefused, match="none was when the session began"):
        team.thread().save(2, world=READ)
    team.thread().resume(world=READ)
    team.thread().save(2, world=READ)
    with pytest.raises(ResumeRefused, match="the world of a session"):
        team.thread().save(3, world=SHELL)

    assert team.fresh().load().world == READ


def test_a_save_inherits_the_world_of_its_own_session_only(team: Team) -> None:
    """A handle that has lost its session has lost its world with it."""
    team.pool("pods", "worker", "spare")
    team.thread().save(1, world=READ)
    team.thread("spare").resume(world=READ)
    with pytest.raises(Superseded):
        team.thread().save(2)
    team.thread().load()
    with pytest.raises(ResumeRefused, match="no world is declared"):
        team.thread().save(2)

    assert team.thread().save(2, world=READ).seq == len(team.kinds()) - 1


def test_a_repeated_save_under_an_id_writes_nothing(team: Team) -> None:
    """Whether the gate would let it through or not: it is there already."""
    ref = team.thread().save(1, id="one", world=READ)
    before = team.everything()

    assert team.fresh().save(1, id="one", world=READ) == ref
    assert team.everything() == before


@pytest.mark.parametrize("after", [False, True])
def test_a_failed_save_can_be_repeated_in_its_session(team: Team, *, after: bool) -> None:
    """The world of the session is as it was, and nothing is there twice."""
    team.granted()
    team.thread().resume(world=SHELL)
    team.store().anchor.fail(AnchorUnavailable("gone"))
    if not after:
        team.store().anchor.advancing.before = None
        team.store().storage.fail(StorageUnavailable("gone"), after=False)
    with pytest.raises((AnchorUnavailable, StorageUnavailable)):
        team.thread().save(3, id="three")
    team.thread().save(3, id="three")

    assert team.kinds()[-2:] == ["resume", "checkpoint"]
    assert team.fresh().load().world == SHELL


def test_a_handle_that_was_overtaken_is_not_asked_about_its_world(team: Team) -> None:
    """It learns that it has to load, whatever it declares."""
    reader = team.fresh()
    team.thread().save(1, world=READ)
    reader.load()
    team.thread().save(2, world=READ)
    with pytest.raises(HeadMoved):
        reader.save("stale", world=READ)


def _record(team: Team, word: Attestation) -> int:
    """Record a word as other code than ours may: although the person has said the same."""
    operations = team.store("officer").thread("t").operations
    operations.requests()
    seq = operations._context.write(Kind.APPROVAL, VerdictBody(salt="0" * 64, attestation=word))
    assert seq is not None
    return seq


def _chatter(team: Team, store: Opened, times: int) -> list[int]:
    """Let somebody relay a word before each of the next appends of a process."""
    request = team.ask()
    said: list[int] = []

    def relay() -> None:
        word = attest(key("ann"), request.id, Verdict.APPROVE, f"looked {len(said)} times")
        said.append(_record(team, word))
        if len(said) < times:
            store.storage.appending.before = relay

    store.storage.appending.before = relay
    return said


def test_a_save_that_loses_its_place_to_harmless_entries_goes_on(memory: Team) -> None:
    """However many there are in a row; it needs no load, and its session stays."""
    memory.thread().save(1, world=READ)
    store = memory.world.open("worker", gated=True)
    store.thread("t").save(2, world=READ)
    said = _chatter(memory, store, 40)
    ref = store.thread("t").save(3)

    assert len(said) == 40
    assert ref.seq == said[-1] + 1
    assert memory.kinds().count("resume") == 2
    memory.check_sound()


def test_a_save_does_not_wait_for_ever_for_others_to_be_quiet(memory: Team) -> None:
    """It says who was in the way; nothing is saved, and the same session saves later."""
    memory.thread().save(1, world=READ)
    store = memory.world.open("worker", gated=True)
    store.thread("t").save(2, world=READ)
    said = _chatter(memory, store, 1000)
    with pytest.raises(HeadMoved, match="the last of them 'officer' entry") as moved:
        store.thread("t").save(3)
    store.storage.appending.before = None

    assert "save again" in moved.value.hint
    assert len(said) == 65
    assert memory.kinds().count("checkpoint") == 2
    assert store.thread("t").save(3).seq == said[-1] + 1
    assert memory.kinds().count("resume") == 2


def test_an_old_checkpoint_is_not_gone_on_from_in_silence(team: Team) -> None:
    """The age of the newest checkpoint counts for a save as well."""
    team.thread().save(1, world=READ)
    team.later(days=8)
    with pytest.raises(ResumeRefused, match="more than"):
        team.fresh().save(2, world=READ)

    assert team.thread().save(2).seq == 3


# ---------------------------------------------------------------------- after a restore


def _restored(team: Team, *, release: bool = False) -> None:
    team.thread().save(1, id="c1", world=READ)
    backup = Backup(team.world)
    team.fresh().resume(world=READ)
    team.fresh().save(2, id="c2", world=READ)
    backup.put_back()
    accepted(team.world, release=release)


def test_a_thread_that_the_restore_released_goes_on(team: Team) -> None:
    """By resume or by save, and the audit finds nothing to object to."""
    _restored(team, release=True)

    assert team.fresh().resume(world=READ).state == 1
    assert team.fresh().save(2, world=READ).seq == len(team.kinds()) - 1
    team.check_sound()


def test_a_release_covers_nothing_but_the_restore(team: Team) -> None:
    """A wider world and an older checkpoint are asked about as ever, and a pause stops it."""
    team.thread().save(0, id="c0", world=READ)
    _restored(team, release=True)
    with pytest.raises(NeedsApproval) as needs:
        team.fresh().resume(world=SHELL)
    assert "restore" not in needs.value.message
    with pytest.raises(NeedsApproval) as needs:
        team.fresh().resume(ref="c0", world=READ)
    assert "restore" not in needs.value.message
    team.thread("operator").pause(reason="look first")
    with pytest.raises(ResumeRefused, match="paused"):
        team.fresh().resume(world=READ)
    team.thread("operator").unpause(reason="looked")

    assert team.fresh().resume(world=READ).state == 1


def test_a_released_thread_that_moved_is_asked_about(memory: Team) -> None:
    """The release was for the thread as it was kept, and not for what its owner did since."""
    _restored(memory, release=True)
    memory.fresh().handoff(to="spare", reason="on call")
    with pytest.raises(NeedsApproval, match="a restore cut the thread"):
        memory.fresh("spare").resume(world=READ)


def test_a_release_does_not_cover_the_next_restore(team: Team) -> None:
    """Each restore says for itself which threads go on."""
    team.thread().save(1, id="c1", world=READ)
    backup = Backup(team.world)
    for release in (True, False):
        team.fresh().save(2, world=READ) if release else team.fresh().resume(world=READ)
        backup.put_back()
        accepted(team.world, release=release)
    with pytest.raises(NeedsApproval, match="a restore cut the thread"):
        team.fresh().resume(world=READ)


def test_the_first_execution_after_a_restore_needs_approval(team: Team) -> None:
    """By resume or by save; after it the thread is as any other."""
    _restored(team)
    fresh = team.fresh()
    with pytest.raises(ResumeRefused, match="a restore cut the thread"):
        fresh.save("again", world=READ)
    with pytest.raises(NeedsApproval, match="a restore cut the thread") as needs:
        fresh.resume(world=READ)
    assert isinstance(needs.value.request, Request)
    assert needs.value.request.statement.epoch == 1
    team.approve(needs.value.request)

    assert fresh.resume(world=READ).state == 1
    assert fresh.save(2).seq == len(team.kinds()) - 1
    assert team.fresh().resume(world=READ).state == 2
    team.check_sound()


def test_a_handoff_after_a_restore_is_no_execution(memory: Team) -> None:
    """The next owner is asked about the restore as the last one would have been."""
    _restored(memory)
    memory.fresh().handoff(to="spare", reason="on call")
    with pytest.raises(NeedsApproval, match="a restore cut the thread"):
        memory.fresh("spare").resume(world=READ)


def test_after_a_restore_one_execution_is_enough_whoever_owns_the_thread(memory: Team) -> None:
    """Once it was executed, the next owner is not asked about the restore any more."""
    _restored(memory)
    request = memory.ask(world=READ)
    memory.approve(request)
    memory.fresh().resume(world=READ)
    memory.fresh().save(2, world=READ)
    memory.fresh().handoff(to="spare", reason="on call")

    reasons = memory.ask("spare", world=READ).reasons
    assert len(reasons) == 1, reasons
    assert "was saved by 'worker'" in reasons[0]


def test_a_thread_that_lost_nothing_in_a_restore_goes_on(team: Team) -> None:
    """Only what was cut is asked about."""
    team.thread(name="whole").save(1, world=READ)
    _restored(team)

    assert team.fresh(name="whole").resume(world=READ).state == 1


def test_a_grant_does_not_survive_a_restore(team: Team) -> None:
    """The approvals are in the backup, and are for another epoch."""
    request = team.granted()
    backup = Backup(team.world)
    team.fresh().resume(world=SHELL)
    backup.put_back()
    accepted(team.world)
    with pytest.raises(NeedsApproval, match="has 0 of") as needs:
        team.fresh().resume(world=SHELL)

    assert isinstance(needs.value.request, Request)
    assert needs.value.request.id != request.id


def test_a_running_session_is_over_after_a_restore_that_cut_it(team: Team) -> None:
    """Its worker has to look again, and finds the gate closed."""
    team.thread().save(1, world=READ)
    backup = Backup(team.world)
    team.thread().save(2, world=READ)
    backup.put_back()
    accepted(team.world)
    team.later(seconds=timedelta(minutes=1).total_seconds())
    with pytest.raises((HeadMoved, Superseded)):
        team.thread().save(3, world=READ)
    with pytest.raises(NeedsApproval, match="a restore cut the thread"):
        team.thread().resume(world=READ)
    with pytest.raises((HeadMoved, Superseded)):
        team.thread().save(3, world=READ)
