# SPDX-License-Identifier: Apache-2.0
"""A member of the pool that owns a thread lies about the place of a checkpoint, or of its results.

By a false rank an older state would be the newest, in a world that somebody allowed once; by a
false start, or by giving them up alone, finished tasks would be done again and questions be gone.
"""

import hashlib
from typing import Any

import pytest

from sealpoint.audit import UNJUSTIFIED
from sealpoint.errors import Misplaced, NeedsApproval
from sealpoint.gate import Request
from sealpoint.ledger import CheckpointBody, Kind, PruneBody, ResultsBody
from sealpoint.store import Key
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.rogue import Rogue
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.backup import planned

_PAYLOAD = b"\xa6paid 7"
_ROOT = hashlib.sha256(_PAYLOAD).hexdigest()


def _shared(attacked: AttackedTeam) -> None:
    """A thread of a pool, with a newest checkpoint by its honest member."""
    attacked.pool("pods", "worker", "spare")
    attacked.thread().save({"n": 0}, id="c0", world=READ)
    attacked.thread().handoff(to="pods", reason="shared")


def _rogue(attacked: AttackedTeam) -> Rogue:
    """The other member, in a session of its own."""
    attacked.fresh().resume(world=READ)
    return Rogue(attacked.store().core, "worker")


def _put(rogue: Rogue, name: str, **fields: Any) -> int:
    body = CheckpointBody(
        salt="00" * 16, id=name, root=_ROOT, world=World.from_dict(READ).digest, **fields
    )
    return rogue.write(Kind.CHECKPOINT, body, _PAYLOAD)


def _add_results(rogue: Rogue, checkpoint: str, **fields: Any) -> int:
    body = ResultsBody(salt="00" * 16, checkpoint=checkpoint, task="pay", root=_ROOT, **fields)
    return rogue.write(Kind.RESULTS, body, _PAYLOAD)


def _require_refused(attacked: AttackedTeam, words: str, **wish: Any) -> None:
    """Every honest process refuses the thread, and `verify` reports it."""
    for call in (
        lambda: attacked.fresh("spare").load(),
        lambda: attacked.fresh("spare").resume(**({"world": READ} | wish)),
        lambda: attacked.fresh("spare").save({"n": 9}, world=READ),
        lambda: attacked.fresh("ann").release(),
    ):
        with pytest.raises(Misplaced, match=words):
            call()
    assert not attacked.world.open(None, read_only=True).verify().ok


def test_a_false_rank_brings_no_earlier_world_back(attacked: AttackedTeam) -> None:
    """A checkpoint that is put once more keeps its place, so the one before stays an older one."""
    _shared(attacked)
    with pytest.raises(NeedsApproval) as asked:
        attacked.fresh("spare").resume(world=SHELL)
    request = asked.value.request
    assert isinstance(request, Request)
    attacked.approve(request)
    wide = attacked.fresh("spare")
    wide.resume(world=SHELL)
    wide.save({"n": 1}, id="c1", world=SHELL)
    narrow = attacked.fresh("spare")
    narrow.resume(world=READ)
    narrow.save({"n": 2}, id="c2", world=READ)
    warm = attacked.fresh("spare")
    warm.load()
    with pytest.raises(NeedsApproval):
        attacked.fresh("spare").resume(world=SHELL)
    _put(_rogue(attacked), "c2", again=0)

    _require_refused(attacked, "expected rank", world=SHELL)
    with pytest.raises(Misplaced, match="expected rank"):
        warm.load()


@pytest.mark.parametrize("buried", [True, False])
def test_of_two_states_of_one_name_the_newest_counts(
    attacked: AttackedTeam, *, buried: bool
) -> None:
    """The first of two that claim to be new gives no rank to a third one."""
    _shared(attacked)
    rogue = _rogue(attacked)
    first = _put(rogue, "x")
    newest = _put(rogue, "x")
    _put(rogue, "x", again=newest)
    rogue.anchor()
    assert attacked.world.open(None, read_only=True).verify().ok
    _put(rogue, "x", again=first)
    if buried:
        _put(rogue, "y")
    rogue.anchor()

    for call in (
        lambda: attacked.fresh("spare").resume(world=READ),
        lambda: attacked.fresh("spare").save({"n": 9}, world=READ),
    ):
        with pytest.raises(Misplaced, match="expected"):
            call()
    assert not attacked.world.open(None, read_only=True).verify().ok
    assert [each.kept for each in planned(attacked.world).losses] == [newest + 1]


@pytest.mark.parametrize("again", [True, False])
def test_a_false_start_leaves_no_results_out(attacked: AttackedTeam, *, again: bool) -> None:
    """Results that count are not those that a later checkpoint of the name says."""
    _shared(attacked)
    handle = attacked.fresh("spare")
    handle.save({"n": 1}, id="c1", world=READ)
    place = attacked.find(Kind.CHECKPOINT)
    _add_results(Rogue(attacked.store("spare").core, "spare"), "c1")
    assert [each.task for each in attacked.fresh("spare").release().results] == ["pay"]
    rogue = _rogue(attacked)
    if again:
        _put(rogue, "c1", again=place, since=place + 1)
    else:
        _put(rogue, "c3", since=0)

    _require_refused(attacked, "'since'")


def test_a_checkpoint_passes_over_no_deletion(attacked: AttackedTeam) -> None:
    """What the application deleted stays so, if somebody has kept its bytes and says nothing."""
    _shared(attacked)
    handle = attacked.fresh("spare")
    handle.save({"n": 1}, id="c1", world=READ)
    handle.save({"n": 2}, id="poisoned", world=READ)
    at = attacked.find(Kind.CHECKPOINT)
    row = attacked.rows()[at]
    handle.adapter.delete([Key("", "poisoned")], reason="talked into buying")
    rogue = Rogue(attacked.store().core, "worker")
    rogue.resume("pods", world=World.from_dict(READ).digest)
    attacked.put({at: row})
    _put(rogue, "c9", again=0)

    _require_refused(attacked, "to name what entry")


@pytest.mark.parametrize("how", [Kind.DELETE, Kind.PRUNE])
def test_results_that_are_given_up_alone_are_part_of_the_decision(
    attacked: AttackedTeam, how: Kind
) -> None:
    """A question that a task waits with does not go away in silence, and no finished task does."""
    _shared(attacked)
    attacked.fresh("spare").save({"n": 1}, id="c1", world=READ)
    at = _add_results(Rogue(attacked.store("spare").core, "spare"), "c1", question="5 million?")
    with pytest.raises(NeedsApproval):
        attacked.fresh("spare").resume(world=READ)
    body = PruneBody(salt="00" * 16, before=0, deleted=((at, at),))
    if how is Kind.PRUNE:
        kept = (attacked.find(Kind.CHECKPOINT),)
        body = PruneBody(salt="00" * 16, before=at + 1, kept=kept)
    Rogue(attacked.store().core, "worker").write(how, body)
    release = attacked.fresh("spare").release()

    assert [(each.id, each.task) for each in release.deleted] == [("c1", "pay")]
    with pytest.raises(NeedsApproval, match="have been deleted"):
        attacked.fresh("spare").resume(world=READ)
    findings = attacked.world.open(None, read_only=True).verify().findings
    assert [each.code for each in findings] == [UNJUSTIFIED]
    assert "gives up results of task 'pay'" in findings[0].message


def test_a_lane_with_results_is_missed(attacked: AttackedTeam) -> None:
    """A subgraph that was saved before the newest checkpoint and has worked since is no old one."""
    _shared(attacked)
    attacked.fresh("spare").save({"n": 1}, id="c1", world=READ)
    honest = Rogue(attacked.store("spare").core, "spare")
    lane = _put(honest, "s1", lane="sub")
    _put(honest, "c2")
    at = _add_results(honest, "s1", lane="sub")
    attacked.sound()
    deleted = PruneBody(salt="00" * 16, before=0, deleted=((lane, lane), (at, at)))
    Rogue(attacked.store().core, "worker").write(Kind.DELETE, deleted)

    release = attacked.fresh("spare").release()
    assert [(each.lane, each.id, each.task) for each in release.deleted] == [("sub", "s1", "pay")]
    with pytest.raises(NeedsApproval, match="have been deleted"):
        attacked.fresh("spare").resume(world=READ)


def test_a_prune_that_leaves_another_lane_alone_is_a_finding(attacked: AttackedTeam) -> None:
    """Else a session that goes on from nothing would look like the first one."""
    _shared(attacked)
    attacked.fresh("spare").save({"n": 1}, id="c1", world=READ)
    rogue = _rogue(attacked)
    at = _put(rogue, "s1", lane="sub")
    rogue.write(Kind.PRUNE, PruneBody(salt="00" * 16, before=at, kept=()))

    findings = attacked.world.open(None, read_only=True).verify().findings
    assert any("gives up the newest checkpoint" in each.message for each in findings)
