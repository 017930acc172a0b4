# SPDX-License-Identifier: Apache-2.0
"""Entries that a member appends without their bodies, or with other bodies than those it sealed.

Nothing of a thread depends on what such an entry says: it is about requests, or only gives a
reason. So it stops nobody, and a verification names who wrote it.
"""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sealpoint.api import verify_bundle
from sealpoint.audit import UNJUSTIFIED
from sealpoint.errors import NeedsApproval, ResumeRefused
from sealpoint.gate import Request, Status
from sealpoint.ledger import (
    ROLLOUTS,
    AdoptBody,
    Body,
    EraseBody,
    ExpiryBody,
    Kind,
    PauseBody,
    RequestBody,
    UnpauseBody,
    VerdictBody,
    parse_header,
)
from sealpoint.signing import Role, Verdict, attest
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import SALT, identity, key
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.backup import planned

_VERDICTS = {
    Kind.APPROVAL: Verdict.APPROVE,
    Kind.DENIAL: Verdict.DENY,
    Kind.BREAK_GLASS: Verdict.BREAK_GLASS,
}
_LOSSES: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda _: None,
    "another": lambda body: body[:-1] + b" }",
}
_MAIL = {"tools": [{"name": "read"}, {"name": "mail"}]}
_every_loss = pytest.mark.parametrize("loss", _LOSSES)


@pytest.fixture(autouse=True)
def _reader(attacked: AttackedTeam) -> None:
    attacked.world.enrol(identity("reader", Role.AUDITOR))


def _append(
    attacked: AttackedTeam, kind: Kind, signer: str, body: Body, loss: str, *, name: str = "t"
) -> None:
    """Append a genuine entry, and lose its body on the way."""
    roster = attacked.store().core.renewed_trust().roster.seq
    made = attacked.forged(kind, body, signer, name=name, roster=roster, at=attacked.world.now())
    assert made.body is not None
    attacked.append(replace(made, body=_LOSSES[loss](made.body)), name=name)


def _verdict(kind: Kind, signer: str, request: Request) -> Body:
    word = attest(key(signer), request.id, _VERDICTS[kind], "mine")
    return VerdictBody(salt=SALT, attestation=word)


def _about(kind: Kind, signer: str, request: Request) -> Body:
    if kind in _VERDICTS:
        return _verdict(kind, signer, request)
    if kind is Kind.EXPIRY:
        return ExpiryBody(salt=SALT, request=request.id)
    statement = replace(request.statement, requester=signer, nonce="ab" * 16)
    return RequestBody(salt=SALT, statement=statement, world=SHELL)


_ANSWERS = [Kind.APPROVAL, Kind.EXPIRY, Kind.BREAK_GLASS, Kind.REQUEST]


def _check_goes_on(attacked: AttackedTeam, request: Request) -> None:
    """Everybody does what they came for: with the request, with the thread, with the store."""
    failures = attacked.world.open("ann", gated=True).requests().failures
    assert all("has lost its body" in message for _, message in failures)
    assert attacked.fresh("ann").requests()[0].status is Status.OPEN
    attacked.approve(request)
    operator = attacked.fresh("operator")
    operator.pause("a look")
    assert operator.paused
    operator.unpause("fine")
    with pytest.raises(NeedsApproval):
        operator.handoff(to="spare", reason="gone")
    worker = attacked.fresh()
    assert worker.resume(world=SHELL).state == {"n": 2}
    worker.save({"n": 3}, world=SHELL)


def _check_found(attacked: AttackedTeam, kind: Kind, writer: str) -> None:
    """A verification reads on, and says who wrote it; so does a bundle."""
    store = attacked.world.open("operator", gated=True)
    report = store.verify()
    messages = [each.message for each in report.findings if each.code == UNJUSTIFIED]
    checked = verify_bundle(b"".join(store.export()), attacked.world.pin)

    assert not report.ok
    assert not any(each.refuses for each in report.findings)
    assert len(messages) == 1, report.findings
    assert f"a {kind}" in messages[0]
    assert writer in messages[0]
    assert any(f"a {kind}" in each.message for each in checked.findings)
    assert any(each.kind == kind for each in store.audit())
    assert store.threads().complete
    assert planned(attacked.world).losses == ()


@_every_loss
@pytest.mark.parametrize("kind", _ANSWERS)
def test_an_answer_whose_body_is_lost_stops_nobody(
    attacked: AttackedTeam, kind: Kind, loss: str
) -> None:
    """It counts for nothing, and the next honest entry buries nothing."""
    request = attacked.waiting()
    signer = "spare" if kind is Kind.REQUEST else "reader"
    with attacked.landing():
        _append(attacked, kind, signer, _about(kind, signer, request), loss)

    _check_goes_on(attacked, request)
    _check_found(attacked, kind, signer)


@_every_loss
@pytest.mark.parametrize("warm", [False, True])
def test_a_reason_that_is_lost_stops_nobody(
    attacked: AttackedTeam, loss: str, *, warm: bool
) -> None:
    """A pause and its end count all the same: their kinds say everything."""
    request = attacked.waiting()
    handle = attacked.thread("operator") if warm else None
    with attacked.landing():
        _append(attacked, Kind.PAUSE, "operator", PauseBody(salt=SALT, reason="mine"), loss)
    operator = attacked.fresh("operator") if handle is None else handle

    assert operator.paused
    assert attacked.world.open("ann", gated=True).requests().failures == ()
    attacked.approve(request)
    assert attacked.resumed() is ResumeRefused
    _append(attacked, Kind.UNPAUSE, "operator", UnpauseBody(salt=SALT, reason="mine"), loss)
    assert not operator.paused
    _append(attacked, Kind.ADOPT, "operator", AdoptBody(salt=SALT, reason="mine"), loss)
    assert attacked.fresh().resume(world=SHELL).state == {"n": 2}
    report = attacked.world.open("operator", gated=True).verify()
    assert [each.code for each in report.findings] == [UNJUSTIFIED] * 3
    assert not any(each.refuses for each in report.findings)


@_every_loss
def test_an_erasure_whose_reason_is_lost_stops_nobody(attacked: AttackedTeam, loss: str) -> None:
    """The thread is erased, and begins again."""
    attacked.thread().save({"n": 1}, world=READ)
    _append(attacked, Kind.ERASE, "officer", EraseBody(salt=SALT, reason="mine"), loss)
    attacked.fresh().save({"n": 2}, world=READ)

    assert attacked.fresh().load().state == {"n": 2}
    report = attacked.world.open("operator", gated=True).verify()
    assert [(each.code, each.refuses) for each in report.findings] == [(UNJUSTIFIED, False)]


# ---------------------------------------------------------------------- what must be known


@_every_loss
@pytest.mark.parametrize("signer", ["carl", "reader"])
def test_a_denial_whose_body_is_lost_lets_nothing_pass(
    attacked: AttackedTeam, loss: str, signer: str
) -> None:
    """Whoever appended it: a request from before it is not granted. Other threads are not met."""
    request = attacked.waiting("ann", "bob")
    attacked.thread(name="u").save({"n": 1}, world=READ)
    other = attacked.ask(name="u")
    attacked.approve(other)
    with attacked.landing():
        _append(attacked, Kind.DENIAL, signer, _verdict(Kind.DENIAL, signer, request), loss)

    assert attacked.resumed() in (ResumeRefused, NeedsApproval)
    (failure,) = attacked.world.open("ann", gated=True).requests().failures
    assert f"by {signer!r}, a denial, has lost its body" in failure[1]
    (found,) = (each for each in attacked.fresh("ann").requests() if each.id == request.id)
    assert found.status in (Status.DENIED, Status.EXPIRED)
    assert attacked.fresh(name="u").resume(world=SHELL).state == {"n": 1}


@_every_loss
def test_a_denial_of_nobody_who_may_deny_is_no_last_word(attacked: AttackedTeam, loss: str) -> None:
    """The same can be asked for again, and is granted by those who may."""
    request = attacked.waiting("ann", "bob")
    _append(attacked, Kind.DENIAL, "reader", _verdict(Kind.DENIAL, "reader", request), loss)
    again = attacked.ask()
    attacked.approve(again)

    assert again.id != request.id
    assert attacked.fresh().resume(world=SHELL).state == {"n": 2}
    _check_found(attacked, Kind.DENIAL, "reader")


@_every_loss
def test_a_denial_that_was_hollowed_out_stands(attacked: AttackedTeam, loss: str) -> None:
    """Whoever edits the store takes no denial away, and the same is not asked for again."""
    request = attacked.waiting("ann", "bob")
    attacked.store("carl").deny(request.id, reason="no shell")
    seq = attacked.find(Kind.DENIAL)
    row = attacked.rows()[seq]
    with attacked.landing():
        attacked.put({seq: replace(row, body=_LOSSES[loss](row.body or b""))})

    for _ in range(2):
        with pytest.raises(ResumeRefused, match="denied by carl"):
            attacked.fresh().resume(world=SHELL)
    assert [parse_header(row.header).kind for row in attacked.rows().values()].count(
        Kind.REQUEST
    ) == 1


@_every_loss
def test_an_expiry_that_was_hollowed_out_revives_nothing(attacked: AttackedTeam, loss: str) -> None:
    """A clock that is set back makes no request good that had ended by a recorded time."""
    request = attacked.waiting("ann", "bob")
    start = attacked.world.clock
    attacked.later(hours=2)
    with pytest.raises(NeedsApproval):
        attacked.fresh().resume(world=SHELL)
    body = ExpiryBody(salt=SALT, request=request.id)
    _append(attacked, Kind.EXPIRY, "worker", body, loss)
    attacked.world.clock = start

    with pytest.raises(NeedsApproval):
        attacked.fresh().resume(world=SHELL)


# ---------------------------------------------------------------------- the book of rollouts


@_every_loss
@pytest.mark.parametrize("kind", [Kind.APPROVAL, Kind.EXPIRY, Kind.REQUEST])
def test_the_book_of_rollouts_is_read_on(attacked: AttackedTeam, kind: Kind, loss: str) -> None:
    """Rollouts are listed, proposed, approved and used as before."""
    attacked.thread().save({"n": 1}, world=READ)
    operator = attacked.store("operator")
    rollout = operator.rollouts.propose([(READ, SHELL)], reason="r")
    signer = "spare" if kind is Kind.REQUEST else "reader"
    _append(attacked, kind, signer, _about(kind, signer, rollout), loss, name=ROLLOUTS)
    attacked.approve(rollout)

    assert attacked.fresh().resume(world=SHELL).state == {"n": 1}
    assert [each.id for each in operator.rollouts.list()] == [rollout.id]
    assert operator.rollouts.propose([(READ, _MAIL)], reason="another").id
    report = attacked.world.open("operator", gated=True).verify()
    assert [(each.code, each.refuses) for each in report.findings] == [(UNJUSTIFIED, False)]


@_every_loss
def test_a_rollout_from_before_a_lost_denial_lets_nothing_pass(
    attacked: AttackedTeam, loss: str
) -> None:
    """Nobody can tell which one was denied; another one can be proposed."""
    attacked.thread().save({"n": 1}, world=READ)
    operator = attacked.store("operator")
    rollout = operator.rollouts.propose([(READ, SHELL)], reason="r")
    attacked.approve(rollout)
    _append(
        attacked,
        Kind.DENIAL,
        "reader",
        _verdict(Kind.DENIAL, "reader", rollout),
        loss,
        name=ROLLOUTS,
    )

    assert attacked.resumed() is NeedsApproval
    again = attacked.world.open("operator", gated=True).rollouts.propose(
        [(READ, SHELL)], reason="again"
    )
    attacked.approve(again)
    assert attacked.fresh().resume(world=SHELL).state == {"n": 1}
