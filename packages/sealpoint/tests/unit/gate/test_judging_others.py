# SPDX-License-Identifier: Apache-2.0
"""What the gate would say to somebody else: a read that needs nobody's key and changes nothing."""

import pytest

from sealpoint.errors import UsageError
from sealpoint.gate import Outcome
from sealpoint.signing import Role
from tests.ledgers import identity
from tests.unit.gate.team import READ, SHELL, Team, policy


def test_it_says_what_the_gate_says_to_them(team: Team) -> None:
    """To the owner in the same world, in another one, and once enough people have approved."""
    team.thread().save(1, world=READ)
    reader = team.world.open(None, read_only=True, gated=True).thread("t")
    before = team.everything()
    same = reader.judge(world=READ, identity="worker")
    wider = reader.judge(world=SHELL, identity="worker")
    assert team.everything() == before
    request = team.ask()
    team.approve(request)
    granted = reader.judge(world=SHELL, identity="worker")

    assert same.ordinary
    assert (wider.outcome, wider.needed) == (Outcome.NEEDS_APPROVAL, 2)
    assert granted.outcome is Outcome.ALLOW
    assert granted.release is not None
    assert granted == team.fresh().judge(world=SHELL)


def test_a_grant_is_its_requesters_alone(memory: Team) -> None:
    """Another writer of the pool that owns the thread is asked for approvals of its own."""
    memory.pool("pods", "worker", "spare")
    memory.thread().save(1, world=READ)
    memory.thread().handoff(to="pods", reason="shared")
    memory.fresh().resume(world=READ)
    memory.approve(memory.ask())
    thread = memory.thread("ann")

    assert thread.judge(world=SHELL, identity="worker").outcome is Outcome.ALLOW
    assert thread.judge(world=SHELL, identity="spare").outcome is Outcome.NEEDS_APPROVAL


@pytest.mark.parametrize(
    ("who", "rules"),
    [
        ("spare", ["not-owner"]),
        ("operator", ["no-right", "not-owner"]),
        ("far", ["no-right", "not-owner"]),
    ],
)
def test_who_may_not_resume_is_refused(memory: Team, who: str, rules: list[str]) -> None:
    """Somebody who does not own the thread, is no writer, or belongs elsewhere."""
    memory.thread().save(1, world=READ)
    found = memory.thread("ann").judge(world=READ, identity=who)

    assert found.outcome is Outcome.REFUSE
    assert [each.rule for each in found.reasons] == rules


def test_an_owner_who_lost_the_role_is_refused(memory: Team) -> None:
    """Owning a thread is no right to write it."""
    memory.thread().save(1, world=READ)
    memory.end("worker")
    keys = (identity("worker-2").keys[0],)
    memory.change("worker", keys=keys, roles=(Role.AUDITOR,))
    found = memory.fresh("ann").judge(world=READ, identity="worker")

    assert found.outcome is Outcome.REFUSE
    assert not found.ordinary
    assert [each.rule for each in found.reasons] == ["no-right"]


def test_their_process_is_another_than_this_one(memory: Team) -> None:
    """The session of this handle is somebody else's to them."""
    memory.apply(policy(takeover="1h"))
    memory.thread().save(1, world=READ)
    worker = memory.thread()

    assert worker.judge(world=READ).outcome is Outcome.ALLOW
    assert worker.judge(world=READ, identity="worker").busy


@pytest.mark.parametrize("name", ["nobody", "", "pods", "WORKER"])
def test_only_an_identity_of_the_roster_is_judged_for(memory: Team, name: str) -> None:
    """A pool or a name that nobody has would be told something that no gate says."""
    memory.pool("pods", "worker", "spare")
    memory.thread().save(1, world=READ)

    with pytest.raises(UsageError, match="identity: expected one of roster"):
        memory.thread("ann").judge(world=READ, identity=name)
