# SPDX-License-Identifier: Apache-2.0
"""A member's bare session stands between a question that the gate asks and the next honest run.

Each session records what was not known when it began. A member with other code leaves that out;
its session, in which nothing was saved, does not answer for what lies before it.
"""

from typing import Any

import pytest

from sealpoint.audit import CALLED_IDEMPOTENT
from sealpoint.errors import NeedsApproval
from sealpoint.ledger import Kind, link_hash
from sealpoint.store import CheckpointRef
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.rogue import Rogue
from tests.unit.gate.team import READ, policy
from tests.unit.store.backup import accepted
from tests.unit.store.laned import put


def _bare_resume(attacked: AttackedTeam, *rules: str, saves: bool = False, **fields: Any) -> None:
    """A session of the member `spare`, well made but for what it leaves out."""
    core, handle = attacked.store("spare").core, attacked.fresh("spare")
    release, head = handle.release(), handle._state.chain.verified_head().header
    decided = attacked.body(head.fence).decided
    rogue = Rogue(core, "spare")
    trust = core.trust()
    rogue.resume(
        "pods",
        header={"epoch": trust.epoch},
        checkpoint=release.entry,
        release=release.digest,
        released=release.seq,
        world=release.world,
        decided=head.fence if decided is None else decided,
        policy=trust.roster.policy_digest("default"),
        rules=rules,
        **fields,
    )
    if saves:
        rogue.save(world=release.world)
    rogue.anchor()


def _answered(attacked: AttackedTeam) -> None:
    """A run was given an answer, and has saved nothing since."""
    attacked.apply(policy("p", answer="record", unknown_outcome="approve 2"))
    attacked.shared("worker", "spare")
    asking = attacked.fresh()
    asking.resume(world=READ)
    world = World.from_dict(READ)
    asking.adapter.commit([put({"pay": 1}, "q1", world=world, question={"pay?": 1})])
    attacked.fresh().resume(world=READ, answer="yes")


@pytest.mark.parametrize("times", [0, 1, 3])
def test_an_unknown_outcome_is_asked_about(attacked: AttackedTeam, times: int) -> None:
    """A run was given an answer and died; members' sessions since then do not make that known."""
    _answered(attacked)
    for _ in range(times):
        _bare_resume(attacked, "answer")

    with pytest.raises(NeedsApproval, match="may happen again"):
        attacked.fresh().resume(world=READ, answer="yes")


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_run_that_died_is_asked_about(attacked: AttackedTeam, times: int) -> None:
    """Only the anchor knows that it did; members' sessions since then save, and do not say it."""
    _died(attacked)
    for _ in range(times):
        _bare_resume(attacked, saves=True)

    with pytest.raises(NeedsApproval, match="did not come to its end"):
        attacked.fresh().adapter.begin(world=World.from_dict(READ), token="next")  # noqa: S106
    assert not _notes(attacked)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("died", [True, False])
def test_what_a_members_edit_saves_settles_nothing(
    attacked: AttackedTeam, times: int, *, held: bool, died: bool
) -> None:
    """Nothing runs in an edit: what it saves is not what came of an answer."""
    (_died if died else _answered)(attacked)
    for _ in range(times):
        _bare_resume(attacked, saves=True, edits=True, held=held)
    begin = attacked.fresh().adapter.begin

    with pytest.raises(NeedsApproval, match="may happen again"):
        begin(world=World.from_dict(READ), token="next")  # noqa: S106


def test_a_colleagues_edit_after_a_run_that_ended_is_no_question(attacked: AttackedTeam) -> None:
    """The control: the answer was acted on, and what came of it was saved."""
    _answered(attacked)
    attacked.approve(attacked.ask(world=READ, answer="yes"))
    asked = attacked.thread()
    asked.resume(world=READ, answer="yes")
    asked.save({"paid": 1}, world=READ)
    _bare_resume(attacked, saves=True, edits=True)

    attacked.fresh().resume(world=READ)
    attacked.sound()


def test_that_a_colleague_was_asked_about_a_death_is_enough(attacked: AttackedTeam) -> None:
    """The control: an honest session says so, and what it saves settles it."""
    _died(attacked)
    attacked.approve(attacked.ask("spare", world=READ))
    spare = attacked.thread("spare")
    spare.resume(world=READ)
    spare.save({"n": 2}, world=READ)

    attacked.fresh().resume(world=READ)


def test_a_member_that_calls_it_idempotent_is_noted(attacked: AttackedTeam) -> None:
    """That is the word of its application, which nobody can check; so people are shown it."""
    _died(attacked)
    _bare_resume(attacked, saves=True, idempotent=True)
    session = attacked.find(Kind.RESUME)

    attacked.fresh().adapter.begin(world=World.from_dict(READ), token="next")  # noqa: S106
    (note,) = _notes(attacked)
    assert note.startswith(f"entry {session}: 'spare' called it idempotent to repeat what 'worker'")
    with attacked.world.open("operator", gated=True) as store:
        entry = link_hash(attacked.rows()[session].header).hex()
        assert "called idempotent" in dict(store.why(entry).facts)


def _died(attacked: AttackedTeam) -> None:
    """A run with an approved answer saved its first step, and broke off in the second."""
    attacked.apply(policy("p", answer="record", unknown_outcome="approve 2"))
    attacked.shared("worker", "spare")
    world, run = World.from_dict(READ), attacked.fresh().adapter
    run.begin(world=world, answer="pay", token="first")  # noqa: S106
    assert isinstance(run.commit([put({"pay": 1}, "p1", world=world)])[0], CheckpointRef)
    run.end("first", came_to_end=False)


def _notes(attacked: AttackedTeam) -> list[str]:
    report = attacked.world.open("operator", gated=True).verify()
    assert report.ok
    return [each.message for each in report.findings if each.code == CALLED_IDEMPOTENT]


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_restore_is_asked_about(attacked: AttackedTeam, times: int) -> None:
    """A restore has cut a thread; members' sessions since then do not mean that it has run."""
    attacked.apply(policy("p", after_restore="approve 2"))
    attacked.shared("worker", "spare")
    honest = attacked.fresh()
    honest.resume(world=READ)
    honest.save({"n": 2}, id="c2", world=READ)
    honest.save({"n": 3}, id="c3", world=READ)
    attacked.world.close()
    attacked._open.clear()
    attacked.truncate(len(attacked.rows()) - 1)
    accepted(attacked.world)
    for _ in range(times):
        _bare_resume(attacked)

    with pytest.raises(NeedsApproval, match="a restore cut the thread"):
        attacked.fresh().resume(world=READ)
