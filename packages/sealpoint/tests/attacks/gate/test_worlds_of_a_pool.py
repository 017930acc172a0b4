# SPDX-License-Identifier: Apache-2.0
"""A member of the pool that owns a thread widens the world by what was allowed once, or elsewhere.

The member has a genuine key and other code: its gate allows everything, and its resumes say about
their world what it likes. The other members go on only in a world that was decided by the rules.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from sealpoint.audit import UNJUSTIFIED
from sealpoint.errors import NeedsApproval, NotTrusted
from sealpoint.gate import Thread, shipped_policy
from sealpoint.gate._decision import Decision, Outcome
from sealpoint.ledger import (
    ROLLOUTS,
    CheckpointBody,
    Kind,
    ResultsBody,
    ResumeBody,
    link_hash,
)
from sealpoint.signing import Action, RosterKey, Statement
from sealpoint.store import Key
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.deployment import Deployment
from tests.ledgers import identity, key
from tests.rogue import Rogue
from tests.unit.gate.team import READ, SHELL, Team
from tests.unit.store.laned import put, saved

_PAYLOAD = b"\x81\xa1n\x09"
_Change = Callable[[ResumeBody], dict[str, Any]]


def _rogue(team: AttackedTeam, change: _Change = lambda _: {}, *, who: str = "spare") -> Thread:
    """A handle of the rogue member; a change says what its resumes say instead."""
    thread = team.fresh(who)
    gate: Any = thread._gate
    allow = Decision(outcome=Outcome.ALLOW, reasons=(), ordinary=True)
    gate._context.decide = lambda *_: (allow, ())
    gate._allowed = lambda _: None
    plain = gate._resume_body

    def resume_body(*args: Any) -> ResumeBody:
        body: ResumeBody = plain(*args)
        return msgspec.structs.replace(body, **change(body))

    gate._resume_body = resume_body
    return thread


def _shared(team: AttackedTeam, other: str = "spare") -> None:
    """A thread that the worker shares with somebody, and that reads and does no more."""
    team.pool("pods", "worker", other)
    thread = team.thread()
    thread.save({"n": 1}, world=READ)
    thread.handoff(to="pods", reason="shared")


def _approved_once(team: AttackedTeam) -> int:
    """A thread of a pool that people let go on with a shell, once; where that was decided."""
    team.pool("pods", "worker", "spare")
    team.granted()
    thread = team.thread()
    thread.resume(world=SHELL)
    thread.save({"n": 2}, id="wide", world=SHELL)
    decided = team.find(Kind.RESUME)
    again = team.fresh()
    again.resume(world=READ)
    again.save({"n": 3}, world=READ)
    again.handoff(to="pods", reason="shared")
    third = team.fresh()
    third.resume(world=READ)
    third.save({"n": 4}, world=READ)
    return decided


def _place(team: AttackedTeam, name: str) -> int:
    return next(each.seq for each in team.fresh().history() if each.id == name)


def _says_decided(team: AttackedTeam, decided: int) -> None:
    rogue = _rogue(team, lambda _: {"leaves": None, "decided": decided})
    rogue.resume(world=SHELL)
    rogue.save({"n": "rogue"}, world=SHELL)


def _says_it_often(team: AttackedTeam, decided: int) -> None:
    for _ in range(6):
        _says_decided(team, decided)


def _decides_on_top(team: AttackedTeam, decided: int) -> None:
    _says_decided(team, decided)
    leaves = World.from_dict(SHELL).to_dict()
    rogue = _rogue(team, lambda _: {"leaves": leaves, "decided": None})
    rogue.resume(world=SHELL)
    rogue.save({"n": "rogue"}, world=SHELL)


def _goes_on_from_an_older_one(team: AttackedTeam, decided: int) -> None:
    rogue = _rogue(team, lambda _: {"leaves": None, "decided": decided})
    rogue.resume(ref="wide", world=SHELL)
    rogue.save({"n": "rogue"}, world=SHELL)


def _after_a_deletion(team: AttackedTeam, _: int) -> None:
    newer = [each for each in team.fresh().history() if each.seq > _place(team, "wide")]
    team.fresh("spare").adapter.delete([Key("", each.id) for each in newer])
    rogue = _rogue(team)
    rogue.resume(world=SHELL)
    rogue.save({"n": "rogue"}, world=SHELL)


def _after_a_deletion_and_an_empty_session(team: AttackedTeam, _: int) -> None:
    newer = [each for each in team.fresh().history() if each.seq > _place(team, "wide")]
    team.fresh("spare").adapter.delete([Key("", each.id) for each in newer])
    for _empty in range(2):
        _rogue(team).resume(world=SHELL)
    rogue = _rogue(team)
    rogue.resume(world=SHELL)
    rogue.save({"n": "rogue"}, world=SHELL)


_WAYS = {
    "what was newer is deleted, and a session saves nothing": (
        _after_a_deletion_and_an_empty_session
    ),
    "what was newer is deleted": _after_a_deletion,
    "an old decision": _says_decided,
    "in many sessions": _says_it_often,
    "a decision on top": _decides_on_top,
    "an older checkpoint": _goes_on_from_an_older_one,
}


@pytest.mark.parametrize("way", _WAYS)
def test_a_world_that_was_allowed_once_is_not_allowed_again(
    attacked: AttackedTeam, way: str
) -> None:
    """People let the thread go on with a shell, and it went back: they are asked again."""
    decided = _approved_once(attacked)
    with pytest.raises(NeedsApproval):
        attacked.fresh().resume(world=SHELL)
    attacked.sound()
    with attacked.landing():
        _WAYS[way](attacked, decided)

    for _ in range(2):  # and it does not grow good with time
        with pytest.raises(NeedsApproval, match="compared with what was allowed"):
            attacked.fresh().resume(world=SHELL)
    assert attacked.fresh().resume(world=READ).state == {"n": "rogue"}
    findings = attacked.world.open(None, read_only=True, gated=True).verify().findings
    assert UNJUSTIFIED in {each.code for each in findings}


def test_a_name_that_is_saved_again_is_no_newer_for_that(attacked: AttackedTeam) -> None:
    """An early checkpoint, put once more with a shell, keeps its place in the order."""
    attacked.pool("pods", "worker", "spare")
    attacked.granted()
    thread = attacked.thread()
    thread.resume(world=SHELL)
    saved(thread, put({"n": 1.5}, "c1", world=World.from_dict(SHELL)))
    thread.handoff(to="pods", reason="shared")
    with pytest.raises(NeedsApproval):
        attacked.fresh().resume(world=SHELL)
    rogue = _rogue(attacked)
    rogue.resume(ref="c1", world=SHELL)
    rogue.save({"n": "rogue"}, world=SHELL)

    with pytest.raises(NeedsApproval, match="compared with what was allowed"):
        attacked.fresh().resume(world=SHELL)


def test_pods_of_one_person_do_not_vouch_for_each_other(attacked: AttackedTeam) -> None:
    """A pool of one service: a row of its sessions is not one's own because of the person."""
    attacked.world.enrol(msgspec.structs.replace(identity("pod"), person="worker"))
    _shared(attacked, "pod")
    extra = [*SHELL["tools"], *({"name": f"tool-{number}"} for number in range(6))]
    for count in range(len(extra), 1, -1):
        rogue = _rogue(attacked, who="pod")
        rogue.resume(world={"tools": extra[:count]})
        rogue.save({"n": "rogue"}, world={"tools": extra[:count]})

    with pytest.raises(NeedsApproval, match="compared with what was allowed"):
        attacked.fresh().resume(world=SHELL)


def test_another_key_of_the_same_identity_does_not_vouch_for_it(attacked: AttackedTeam) -> None:
    """A second key may be stolen: its sessions are judged, however many lie in a row."""
    keys = [RosterKey("ed25519", str(key(each).public)) for each in ("worker", "worker2")]
    attacked.change("worker", keys=tuple(keys))
    attacked.thread().save({"n": 1}, world=READ)
    extra = [*SHELL["tools"], *({"name": f"tool-{number}"} for number in range(6))]
    for count in range(len(extra), 1, -1):
        rogue = _rogue(attacked, who="worker2")
        rogue.resume(world={"tools": extra[:count]})
        rogue.save({"n": "rogue"}, world={"tools": extra[:count]})

    with pytest.raises(NeedsApproval, match="compared with what was allowed"):
        attacked.fresh().resume(world=SHELL)


@pytest.mark.parametrize("saves", [False, True])
def test_an_empty_session_of_another_member_settles_no_deletion(
    attacked: AttackedTeam, *, saves: bool
) -> None:
    """Only a session that saved something new settles what was deleted before it."""
    decided = _approved_once(attacked)
    newer = [each for each in attacked.fresh().history() if each.seq > _place(attacked, "wide")]
    attacked.fresh("spare").adapter.delete([Key("", each.id) for each in newer])
    rogue = _rogue(attacked)
    rogue.resume(world=SHELL)
    if saves:
        saved(rogue, put({"n": "rogue"}, "c1", world=World.from_dict(SHELL)))

    assert decided
    with pytest.raises(NeedsApproval, match="newer checkpoints, or results of tasks, have been"):
        attacked.fresh().resume(world=SHELL)


def test_what_was_approved_is_not_asked_again_after_a_crash(attacked: AttackedTeam) -> None:
    """One's own session settles a deletion although it saved nothing, and others rely on that."""
    attacked.pool("pods", "worker", "spare")
    thread = attacked.thread()
    for number in range(3):
        thread.save({"n": number}, id=f"c{number}", world=READ)
    thread.handoff(to="pods", reason="shared")
    thread.adapter.delete([Key("", "c2")])
    with pytest.raises(NeedsApproval) as needs:
        attacked.fresh().resume(world=READ)
    request: Any = needs.value.request
    attacked.approve(request)
    attacked.fresh().resume(world=READ)
    again = attacked.fresh()
    released = again.resume(world=READ)
    again.save({"n": "right"}, world=READ)

    assert released.state == {"n": 1}
    assert attacked.fresh("spare").resume(world=READ).state == {"n": "right"}
    assert attacked.world.open(None, read_only=True, gated=True).verify().ok


def test_a_row_of_rollouts_is_judged_in_one_pass(attacked: AttackedTeam) -> None:
    """Two keys open sessions in turn, each under a rollout that names other worlds."""
    attacked.world.enrol(*(identity(f"pod-{number}") for number in range(2)))
    attacked.shared("worker", "pod-0", "pod-1")
    released, judged = attacked.find(Kind.CHECKPOINT), []
    core = attacked.store().core
    rogue = Rogue(core, "pod-0")
    policy = core.trust().roster.policy_digest("default")
    statement = Statement(
        store=core.store_hex,
        ns="default",
        thread=rogue.thread.hex(),
        epoch=0,
        gen=0,
        basis="00" * 32,
        action=Action.ROLLOUT,
        actor=None,
        checkpoint=None,
        release=None,
        world_from=None,
        world_to=None,
        answer=None,
        to=None,
        requester="pod-0",
        policy=policy,
        needed=0,
        nonce="ab" * 16,
        expires=attacked.world.clock + timedelta(days=1),
        reason="x",
        differences=(("tool.none", None, "22" * 32),),
    )
    for number in range(40):
        rogue.key = key(f"pod-{number % 2}")
        world = World.from_dict({"tools": [{"name": f"tool-{number}"}]})
        rogue.resume(
            "pods",
            checkpoint=link_hash(rogue.rows[released].header).hex(),
            release="11" * 32,
            released=released,
            world=world.digest,
            leaves=world.to_dict(),
            rollouts=(statement,),
            policy=policy,
        )
        released = rogue.save(world=world.digest)
    rogue.anchor()
    thread = attacked.fresh()
    worlds: Any = thread._gate._worlds
    plain = worlds._judge

    def judge(*args: Any) -> Any:
        judged.append(args)
        return plain(*args)

    worlds._judge = judge
    thread.judge(world=READ)

    assert 40 <= len(judged) <= 3 * 40


def test_what_was_denied_vouches_for_no_world(attacked: AttackedTeam) -> None:
    """The same is asked once more by other code, and people who did not know approve that."""
    _shared(attacked)
    with pytest.raises(NeedsApproval) as needs:
        attacked.fresh("spare").resume(world=SHELL)
    denied: Any = needs.value.request
    attacked.store("ann").deny(denied.id, reason="never")
    asked = attacked.newest(Kind.REQUEST)
    again = msgspec.structs.replace(asked.statement, nonce="cd" * 16)
    rogue = _rogue(attacked, lambda _: {"request": again.digest, "rules": ("tools",)})
    rogue.load()
    rogue._gate._context.ask(msgspec.structs.replace(asked, statement=again))
    for who in ("bob", "carl"):
        attacked.store(who).approve(again.digest, reason="fine")
    rogue.resume(world=SHELL)
    rogue.save({"n": "rogue"}, world=SHELL)

    with pytest.raises(NeedsApproval, match="compared with what was allowed"):
        attacked.fresh().resume(world=SHELL)


def test_an_approval_of_a_key_that_was_ended_vouches_for_no_world(attacked: AttackedTeam) -> None:
    """The rogue member spends it under the roster from before; what it carries is judged now."""
    _shared(attacked)
    with pytest.raises(NeedsApproval) as needs:
        attacked.fresh("spare").resume(world=SHELL)
    request: Any = needs.value.request
    attacked.approve(request)
    words = tuple(each.attestation for each in _verdicts(attacked, "t"))
    told = {"request": request.id, "rules": ("tools",), "attestations": words}
    rogue = _rogue(attacked, lambda _: told)
    rogue.load()
    core: Any = rogue._state.core
    earlier = core.trust()
    attacked.end("bob")
    core.trust = core.renewed_trust = lambda *_: earlier
    rogue.resume(world=SHELL)
    rogue.save({"n": "rogue"}, world=SHELL)

    with pytest.raises(NeedsApproval, match="compared with what was allowed"):
        attacked.fresh().resume(world=SHELL)
    report = attacked.world.open(None, read_only=True, gated=True).verify()
    assert any("it needed 2 approvals and had 1" in each.message for each in report.findings)


def test_a_rollout_holds_no_longer_than_rollouts_may(attacked: AttackedTeam) -> None:
    """Its proposer says until when, and people approve it: more than the limit is never used."""
    attacked.thread().save({"n": 1}, world=READ)
    rollouts = attacked.store("operator").rollouts
    plain = rollouts.propose([(READ, SHELL)], reason="release 42")
    asked = attacked.newest(Kind.REQUEST, ROLLOUTS)
    expires = plain.statement.expires + timedelta(days=3650)
    longer = msgspec.structs.replace(asked.statement, expires=expires, nonce="cd" * 16)
    rollouts._operations._context.ask(msgspec.structs.replace(asked, statement=longer))
    for who in ("ann", "bob"):
        attacked.store(who).approve(longer.digest, reason="fine")
    words = tuple(each.attestation for each in _verdicts(attacked, ROLLOUTS))
    rogue = _rogue(attacked, lambda _: {"rollouts": (longer,), "attestations": words}, who="worker")
    rogue.resume(world=SHELL)
    rogue.save({"n": "rogue"}, world=SHELL)
    report = attacked.world.open(None, read_only=True, gated=True).verify()

    with pytest.raises(NeedsApproval, match="compared with what was allowed"):
        attacked.fresh().resume(world=SHELL)
    assert any("more than 90 days" in each.message for each in report.findings)


def _verdicts(team: AttackedTeam, name: str) -> list[Any]:
    return [body for kind, body in team.entries(name) if kind == "approval"]


def test_an_approval_of_an_answer_is_none_of_a_world(attacked: AttackedTeam) -> None:
    """The rogue member has an answer approved, in a world that it says was there before."""
    _shared(attacked)
    rogue = _rogue(attacked)
    rogue.resume(world=SHELL)
    rogue.save({"n": 2}, world=SHELL, question="Ship the parcel?")
    plain = attacked.fresh("spare")
    gate: Any = plain._gate
    gate._allowed = lambda _: None
    with pytest.raises(NeedsApproval) as needs:
        plain.resume(world=SHELL, answer="yes")
    request: Any = needs.value.request

    with pytest.raises(NotTrusted, match="not what the thread has: entry"):
        attacked.fresh("ann").compare(request)
    with pytest.raises(NotTrusted, match="not what the thread has: entry"):
        attacked.store("ann").approve(request.id, reason="fine")
    with pytest.raises(NeedsApproval, match="compared with what was allowed"):
        attacked.fresh().resume(world=SHELL, answer="yes")


def test_what_people_approve_in_full_view_holds(attacked: AttackedTeam) -> None:
    """Who has to approve is shown the change from what was allowed, and then it is allowed."""
    decided = _approved_once(attacked)
    _says_decided(attacked, decided)
    with pytest.raises(NeedsApproval) as needs:
        attacked.fresh().resume(world=SHELL)
    request: Any = needs.value.request
    compared = attacked.fresh("ann").compare(request)
    before = len(attacked.world.open(None, read_only=True, gated=True).verify().findings)
    attacked.approve(request)
    thread = attacked.fresh()
    thread.resume(world=SHELL)
    thread.save({"n": 5}, world=SHELL)

    assert compared is not None
    assert compared.lines() == ("+ tool shell",)
    for who in ("worker", "spare"):
        again = attacked.fresh(who)
        assert again.resume(world=SHELL).state == {"n": 5}
    after = attacked.world.open(None, read_only=True, gated=True).verify().findings
    assert len(after) == before


def test_however_often_the_world_changed_a_resume_is_decided() -> None:
    """Changes that need nobody's word are judged one after the other."""
    team = Team(Deployment())
    team.apply(shipped_policy("dev"))
    worlds = [{"tools": [{"name": f"tool-{number}"}]} for number in range(100)]
    thread = team.thread()
    thread.save(0, world=worlds[0])
    for world in worlds[1:]:
        thread.resume(world=world)
        thread.save(0, world=world)
    thread.handoff(to="spare", reason="a new owner judges all of them")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 120)
    try:
        judged = team.fresh("spare").judge(world=worlds[-1])
    finally:
        sys.setrecursionlimit(limit)

    assert judged.outcome is Outcome.ALLOW


@pytest.mark.parametrize("buried", ["a session", "results", "its own wide session"])
def test_a_false_mark_of_a_session_brings_no_world_back(
    attacked: AttackedTeam, buried: str
) -> None:
    """A buried checkpoint that says it was saved in the session that people once approved."""
    decided = _approved_once(attacked)
    with pytest.raises(NeedsApproval):
        attacked.fresh().resume(world=SHELL)
    who = "worker" if buried == "its own wide session" else "spare"
    honest = "spare" if who == "worker" else "worker"
    wide = World.from_dict(SHELL).digest
    rogue = Rogue(attacked.store(who).core, who)
    rogue.resume("pods", world=World.from_dict(READ).digest)
    root = hashlib.sha256(_PAYLOAD).hexdigest()
    body = CheckpointBody(salt=attacked.salt, id="false", root=root, world=wide)
    at = rogue.write(Kind.CHECKPOINT, body, _PAYLOAD, fence=decided)
    if buried == "results":
        results = ResultsBody(salt=attacked.salt, checkpoint="false", task="a", root=root)
        rogue.write(Kind.RESULTS, results, _PAYLOAD, fence=at - 1)
    else:
        named = link_hash(rogue.rows[at].header).hex()
        rogue.resume(
            "pods", world=wide, decided=decided, checkpoint=named, release="ab" * 32, released=at
        )
        rogue.save(world=wide)
    rogue.anchor()

    with pytest.raises(
        (NeedsApproval, NotTrusted), match=r"it names entry|saved in session|opened"
    ):
        attacked.fresh(honest).resume(world=SHELL)
    assert not attacked.world.open(None, read_only=True).verify().ok
