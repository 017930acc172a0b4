# SPDX-License-Identifier: Apache-2.0
"""A writer gives a worker a thread with a state of the writer's choice in it.

Every entry is genuine, and an owner may give a thread away: but nobody whom the worker goes on with
has seen that state.
"""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.errors import NeedsApproval, ResumeRefused
from sealpoint.gate import shipped_policy
from sealpoint.ledger import HandoffBody, Kind, VerdictBody
from sealpoint.signing import Action
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import SALT, identity
from tests.rogue import Rogue
from tests.unit.gate.team import READ
from tests.unit.store.laned import put, results, saved

_SAVED = "was saved by 'spare'"


@pytest.fixture(autouse=True)
def _policy(attacked: AttackedTeam) -> None:
    attacked.apply(shipped_policy("strict"))


def _plant(attacked: AttackedTeam, to: str = "worker") -> None:
    """The spare begins the thread that the worker is going to use, and gives it away."""
    attacked.thread("spare").save({"pay": "mallory"}, id="c1", world=READ)
    attacked.thread("spare").handoff(to=to, reason="yours")


def _findings(attacked: AttackedTeam) -> list[str]:
    report = attacked.world.open(None, read_only=True, gated=True).verify()
    return [finding.message for finding in report.findings]


def test_a_state_that_was_planted_under_the_name_of_a_thread_is_asked_about(
    attacked: AttackedTeam,
) -> None:
    """It is not released, and nothing is saved on top of it."""
    _plant(attacked)
    for who in ("worker", "worker"):
        with pytest.raises(NeedsApproval, match=_SAVED):
            attacked.fresh(who).resume(world=READ)
    with pytest.raises(ResumeRefused, match=_SAVED):
        attacked.fresh().save({"n": 1}, world=READ)
    assert attacked.go_on("worker", world=READ) == {"pay": "mallory"}
    attacked.thread().save({"n": 2}, world=READ)
    assert attacked.fresh().resume(world=READ).state == {"n": 2}
    assert _findings(attacked) == []


def test_a_state_that_was_planted_in_a_pool_is_asked_about(attacked: AttackedTeam) -> None:
    """The writer is none of the pool that it gives the thread to."""
    attacked.world.enrol(identity("second"))
    attacked.pool("pods", "worker", "second")
    _plant(attacked, to="pods")
    for who in ("worker", "second"):
        with pytest.raises(NeedsApproval, match=_SAVED):
            attacked.fresh(who).resume(world=READ)


def test_results_that_were_planted_on_the_state_of_a_worker_are_asked_about(
    attacked: AttackedTeam,
) -> None:
    """A run would take them for its own work, although the state is its own."""
    saved(attacked.thread(), put({"n": 1}, "c1", world=World.of(READ)))
    attacked.thread().handoff(to="spare", reason="hold this for me")
    attacked.go_on("spare", world=READ)
    saved(attacked.thread("spare"), results("paid", "c1"))
    attacked.thread("spare").handoff(to="worker", reason="yours again")
    with pytest.raises(NeedsApproval, match=_SAVED):
        attacked.fresh().resume(world=READ)


def test_a_handoff_that_claims_approvals_is_no_approved_one(attacked: AttackedTeam) -> None:
    """An owner needs none for it, so nobody has looked at those that it carries."""
    attacked.thread("spare").save({"pay": "mallory"}, id="c1", world=READ)
    with pytest.raises(NeedsApproval) as asked:
        attacked.fresh("operator").handoff(to="worker", reason="on leave")
    request: Any = asked.value.request
    statement = request.statement
    assert statement.action is Action.HANDOFF
    rogue = Rogue(attacked.store("spare").core, "spare")
    body = HandoffBody(salt=SALT, owner="worker", reason="yours", statement=statement)
    rogue.write(Kind.HANDOFF, body)
    rogue.anchor()
    with pytest.raises(NeedsApproval, match=_SAVED):
        attacked.fresh().resume(world=READ)


def test_a_worker_that_goes_on_from_it_unasked_is_found(attacked: AttackedTeam) -> None:
    """Its process runs other code; whoever verifies sees what was not told."""
    _plant(attacked)
    handle = attacked.fresh()
    handle.load()
    release = handle.release()
    rogue = Rogue(attacked.store().core, "worker")
    trust = attacked.store().core.trust()
    rogue.resume(
        "worker",
        checkpoint=release.entry,
        release=release.digest,
        released=release.seq,
        world=release.world,
        decided=release.session,
        policy=trust.roster.policy_digest("default"),
    )
    rogue.anchor()
    assert any(_SAVED in each for each in _findings(attacked))


def _approved(attacked: AttackedTeam) -> None:
    attacked.thread("spare").save({"n": 1}, id="c1", world=READ)
    with pytest.raises(NeedsApproval) as asked:
        attacked.fresh("operator").handoff(to="worker", reason="on leave")
    request: Any = asked.value.request
    attacked.approve(request)
    attacked.fresh("operator").handoff(to="worker", reason="on leave")
    assert isinstance(attacked.newest(Kind.APPROVAL), VerdictBody)


def _approved_and_passed_on(attacked: AttackedTeam) -> None:
    _approved(attacked)
    attacked.world.enrol(identity("second"))
    attacked.fresh().handoff(to="second", reason="you are on call")
    attacked.fresh("second").handoff(to="worker", reason="no, you")


def _in_a_pool(attacked: AttackedTeam) -> None:
    attacked.pool("pods", "worker", "spare")
    attacked.thread("spare").save({"n": 1}, id="c1", world=READ)
    attacked.thread("spare").handoff(to="worker", reason="yours alone")


def _to_oneself(attacked: AttackedTeam) -> None:
    attacked.world.enrol(replace(identity("other"), person="worker"))
    attacked.thread("other").save({"n": 1}, id="c1", world=READ)
    attacked.thread("other").handoff(to="worker", reason="the other machine")


def _there_and_back(attacked: AttackedTeam) -> None:
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    attacked.thread().handoff(to="spare", reason="hold this for me")
    attacked.thread("spare").handoff(to="worker", reason="not needed")


@pytest.mark.parametrize(
    "given", [_approved, _approved_and_passed_on, _in_a_pool, _to_oneself, _there_and_back]
)
def test_what_people_or_colleagues_gave_is_not_asked_about(
    attacked: AttackedTeam, given: Callable[[AttackedTeam], None]
) -> None:
    """The control: who approved the handoff, or works with the writer, has been asked enough."""
    given(attacked)
    assert attacked.fresh().resume(world=READ).state == {"n": 1}
    assert _findings(attacked) == []
