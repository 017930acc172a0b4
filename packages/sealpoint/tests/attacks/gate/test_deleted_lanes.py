# SPDX-License-Identifier: Apache-2.0
"""A lane that a subgraph keeps between its runs, and somebody who deletes it.

The subgraph then begins again from nothing, or from an older state. Its owner may want that; a
writer who had the thread for a while, and gave it away, has decided it for the next one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.errors import NeedsApproval, ResumeRefused
from sealpoint.gate import Thread, shipped_policy
from sealpoint.ledger import Kind
from sealpoint.store import Key
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import identity
from tests.rogue import Rogue
from tests.unit.gate.team import READ
from tests.unit.store.laned import put, saved

_WORLD = World.of(READ)
_LANE = (Key("sub", "s1"), Key("sub", "s2"))
_TAKEN = "deleted by 'spare'"


@pytest.fixture(autouse=True)
def _kept(attacked: AttackedTeam) -> None:
    """A subgraph has worked in two runs, each of which the graph has gone on from."""
    attacked.apply(shipped_policy("strict"))
    saved(
        attacked.thread(),
        put({"n": 0}, "c0", world=_WORLD),
        put({"kept": 1}, "s1", "sub"),
        put({"n": 1}, "c1"),
        put({"kept": 2}, "s2", "sub"),
        put({"n": 2}, "c2"),
    )


def _sub(thread: Thread) -> Any:
    found = thread.adapter.snapshot("sub", running=True, session=thread.adapter.begin(world=READ))
    return None if found is None else found.state


def _taken(attacked: AttackedTeam, keys: Sequence[Key] = _LANE, to: str = "worker") -> None:
    """Delete them as a writer whose thread it is for a while."""
    attacked.thread().handoff(to="spare", reason="hold this for me")
    attacked.fresh("spare").adapter.delete(keys)
    attacked.fresh("spare").handoff(to=to, reason="yours again")


def _and_pruned(attacked: AttackedTeam) -> None:
    """The same, below a prune."""
    attacked.thread().handoff(to="spare", reason="hold this for me")
    attacked.fresh("spare").adapter.delete(_LANE)
    attacked.fresh("spare").prune(keep_last=1, compact=False)
    attacked.fresh("spare").handoff(to="worker", reason="yours again")


_THEFTS: dict[str, Callable[[AttackedTeam], None]] = {
    "all of it": _taken,
    "the newest": lambda attacked: _taken(attacked, _LANE[1:]),
    "all of it, and pruned": _and_pruned,
}


@pytest.mark.parametrize("theft", _THEFTS.values(), ids=_THEFTS)
def test_a_lane_that_a_stranger_deleted_is_asked_about(
    attacked: AttackedTeam, theft: Callable[[AttackedTeam], None]
) -> None:
    """Once: whoever approves it lets the run go on, and the next one is an ordinary one."""
    theft(attacked)
    for _ in range(2):
        with pytest.raises(NeedsApproval, match=_TAKEN):
            attacked.fresh().resume(world=READ)
    with pytest.raises(ResumeRefused, match=_TAKEN):
        attacked.fresh().save({"n": 3}, world=READ)
    assert attacked.go_on("worker", world=READ) == {"n": 2}
    attacked.thread().save({"n": 3}, world=READ)
    assert attacked.fresh().resume(world=READ).state == {"n": 3}
    attacked.check_sound()


def test_a_worker_that_goes_on_without_it_unasked_is_found(attacked: AttackedTeam) -> None:
    """Its process runs other code; whoever verifies sees what was not told."""
    _taken(attacked)
    handle = attacked.fresh()
    handle.load()
    release = handle.release()
    rogue = Rogue(attacked.store().core, "worker")
    rogue.resume(
        "worker",
        checkpoint=release.entry,
        release=release.digest,
        released=release.seq,
        world=release.world,
        decided=release.session,
        policy=attacked.store().core.trust().roster.policy_digest("default"),
    )
    rogue.anchor()
    findings = attacked.world.open(None, read_only=True, gated=True).verify().findings

    assert any(_TAKEN in each.message for each in findings)


def _by_its_owner(attacked: AttackedTeam) -> None:
    attacked.fresh().adapter.delete(_LANE)


def _in_its_session(attacked: AttackedTeam) -> None:
    attacked.thread().adapter.delete(_LANE)
    saved(attacked.thread(), put({"n": 2}, "c3"))


def _by_a_colleague(attacked: AttackedTeam) -> None:
    attacked.pool("pods", "worker", "spare")
    attacked.thread().handoff(to="pods", reason="shared")
    attacked.fresh("spare").adapter.delete(_LANE)


def _by_oneself_elsewhere(attacked: AttackedTeam) -> None:
    attacked.world.enrol(replace(identity("other"), person="worker"))
    attacked.thread().handoff(to="other", reason="the other machine")
    attacked.fresh("other").adapter.delete(_LANE)
    attacked.fresh("other").handoff(to="worker", reason="and back")


def _by_its_owner_before_it_was_held(attacked: AttackedTeam) -> None:
    attacked.fresh().adapter.delete(_LANE)
    attacked.thread().handoff(to="spare", reason="hold this for me")
    attacked.fresh("spare").handoff(to="worker", reason="yours again")


_HONEST = [
    _by_its_owner,
    _in_its_session,
    _by_a_colleague,
    _by_oneself_elsewhere,
    _by_its_owner_before_it_was_held,
]


@pytest.mark.parametrize("delete", _HONEST)
def test_a_lane_that_its_owner_deleted_is_not_asked_about(
    attacked: AttackedTeam, delete: Callable[[AttackedTeam], None]
) -> None:
    """The control: the subgraph begins again, and nothing else does."""
    delete(attacked)
    thread = attacked.fresh()

    assert thread.judge(world=READ).ordinary
    assert _sub(thread) is None
    assert attacked.newest(Kind.RESUME).rules == ()
    attacked.check_sound()


def test_what_a_stranger_held_and_left_alone_is_not_asked_about(attacked: AttackedTeam) -> None:
    """The control: it has pruned, which leaves the newest of each lane."""
    attacked.thread().handoff(to="spare", reason="hold this for me")
    attacked.fresh("spare").prune(keep_last=1, compact=False)
    attacked.fresh("spare").handoff(to="worker", reason="yours again")
    thread = attacked.fresh()

    assert _sub(thread) == {"kept": 2}
    assert attacked.newest(Kind.RESUME).rules == ()
