# SPDX-License-Identifier: Apache-2.0
"""A denial stands, although a member or the store takes bodies of entries away.

Each test has a control: the same steps without the entry or the edit that would lift the denial.
"""

import msgspec
import pytest
from msgspec.structs import replace

from sealpoint.errors import NeedsApproval, ResumeRefused
from sealpoint.gate import Request
from sealpoint.ledger import ROLLOUTS, Body, Kind, VerdictBody, link_hash
from sealpoint.signing import Role, Verdict, attest
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.attacks.gate.test_session_worlds import _save
from tests.ledgers import SALT, identity, key
from tests.unit.gate.team import READ, SHELL

_BY = "reader"


@pytest.fixture(autouse=True)
def _reader(attacked: AttackedTeam) -> None:
    attacked.world.enrol(identity(_BY, Role.AUDITOR))


def _append(
    attacked: AttackedTeam,
    kind: Kind,
    signer: str,
    body: Body,
    *,
    lose: bool = False,
    name: str = "t",
) -> None:
    roster = attacked.store().core.renewed_trust().roster.seq
    made = attacked.forged(kind, body, signer, name=name, roster=roster, at=attacked.world.now())
    attacked.append(replace(made, body=None) if lose else made, name=name)


def _append_lost_denial(
    attacked: AttackedTeam, signer: str, request: Request, name: str = "t"
) -> None:
    word = attest(key(signer), request.id, Verdict.DENY, "mine")
    body = VerdictBody(salt=SALT, attestation=word)
    _append(attacked, Kind.DENIAL, signer, body, lose=True, name=name)


def _lose(attacked: AttackedTeam, kind: Kind, name: str = "t") -> None:
    seq = attacked.find(kind, name)
    attacked.put({seq: replace(attacked.rows(name)[seq], body=None)}, name)


def _asked(attacked: AttackedTeam, name: str = "t") -> list[Body]:
    """Return the request and the approvals of it, to append once more."""
    asked = attacked.body(attacked.find(Kind.REQUEST, name), name)
    return [asked, *(body for kind, body in attacked.entries(name) if kind == Kind.APPROVAL)]


def _append_all(attacked: AttackedTeam, signer: str, bodies: list[Body], name: str = "t") -> None:
    _append(attacked, Kind.REQUEST, signer, bodies[0], name=name)
    for body in bodies[1:]:
        _append(attacked, Kind.APPROVAL, signer, body, name=name)


@pytest.mark.parametrize("attack", [False, True])
def test_a_lost_denial_lifts_no_denial(attacked: AttackedTeam, *, attack: bool) -> None:
    """Appended by an identity that may not deny: what was denied stays denied."""
    request = attacked.waiting("ann", "bob")
    attacked.store("carl").deny(request.id, reason="no shell")
    if attack:
        _append_lost_denial(attacked, _BY, request)

    assert attacked.resumed() is ResumeRefused


@pytest.mark.parametrize("attack", ["again", "lost"])
def test_a_denied_request_is_not_made_again_with_old_approvals(
    attacked: AttackedTeam, attack: str
) -> None:
    """By its requester, after a lost denial of its own."""
    request = attacked.waiting("ann", "bob")
    bodies = _asked(attacked)
    attacked.store("carl").deny(request.id, reason="no shell")
    if attack == "lost":
        _append_lost_denial(attacked, "worker", request)
    _append_all(attacked, "worker", bodies)

    assert attacked.resumed() is ResumeRefused


@pytest.mark.parametrize("attack", ["again", "lost", "hollow request", "hollow denial"])
def test_a_revoked_rollout_is_not_revived(attacked: AttackedTeam, attack: str) -> None:
    """By its proposer, with the old approvals."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    rollout = attacked.store("spare").rollouts.propose([(READ, SHELL)], reason="r")
    attacked.approve(rollout)
    bodies = _asked(attacked, ROLLOUTS)
    attacked.store("carl").rollouts.revoke(rollout.id, reason="bad")
    match attack:
        case "lost":
            _append_lost_denial(attacked, "spare", rollout, ROLLOUTS)
        case "hollow request":
            _lose(attacked, Kind.REQUEST, ROLLOUTS)
        case "hollow denial":
            _lose(attacked, Kind.DENIAL, ROLLOUTS)
        case _:
            pass
    _append_all(attacked, "spare", bodies, ROLLOUTS)

    assert attacked.resumed() is NeedsApproval


@pytest.mark.parametrize("kind", [Kind.REQUEST, Kind.DENIAL])
def test_old_approvals_grant_nothing_after_a_denial_that_the_store_hollowed_out(
    attacked: AttackedTeam, kind: Kind
) -> None:
    """The denial was relayed; it or the request loses its body, and all is appended again."""
    request = attacked.waiting("ann", "bob")
    bodies = _asked(attacked)
    attacked.store(_BY).relay(attest(key("carl"), request.id, Verdict.DENY, "no shell"))
    _lose(attacked, kind)
    _append_all(attacked, "worker", bodies)

    assert attacked.resumed() in (NeedsApproval, ResumeRefused)


@pytest.mark.parametrize("hollow", [False, True])
def test_a_session_by_a_revoked_rollout_is_not_continued(
    attacked: AttackedTeam, *, hollow: bool
) -> None:
    """A member with other code resumes by it, and the store takes the body of its denial away."""
    attacked.pool("pods", "worker", "spare")
    for name in ("t", "u"):
        attacked.thread(name=name).save({"n": 1}, id="c1", world=READ)
        attacked.thread(name=name).handoff(to="pods", reason="shared")
        attacked.fresh(name=name).resume(world=READ)
        attacked.fresh(name=name).save({"n": 2}, id="c2", world=READ)
    rollout = attacked.store("operator").rollouts.propose([(READ, SHELL)], reason="r")
    attacked.approve(rollout)
    attacked.fresh(name="u").resume(world=SHELL)
    honest = attacked.body(attacked.find(Kind.RESUME, "u"), "u")
    attacked.later(hours=1)
    attacked.store("carl").rollouts.revoke(rollout.id, reason="no")
    attacked.later(hours=1)
    if hollow:
        _lose(attacked, Kind.DENIAL, ROLLOUTS)
    release = attacked.fresh().release()
    assert release is not None
    forged = msgspec.structs.replace(
        honest,
        basis=attacked.find(Kind.CHECKPOINT),
        checkpoint=release.entry,
        release=release.digest,
        released=release.seq,
    )
    attacked.append(attacked.forged(Kind.RESUME, forged, "worker", at=attacked.world.clock))
    store = attacked.world.open("operator", gated=True)
    why = store.why(link_hash(attacked.rows()[attacked.find(Kind.RESUME)].header).hex(), thread="t")
    _save(attacked)

    with pytest.raises(NeedsApproval):
        attacked.fresh("spare").resume(world=SHELL)
    assert any("it had ended" in each for each in why.unjustified)
