# SPDX-License-Identifier: Apache-2.0
"""Rollouts under attack: by whoever has the store, a worker's key, or a rollout of somewhere else.

In each case the honest twin passes: the same rollout, untouched, lets the same resume pass.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from sealpoint.errors import (
    NeedsApproval,
    RequestClosed,
    ResumeRefused,
    RolledBack,
    SealpointError,
    Tampered,
)
from sealpoint.gate import ROLLOUTS, Request, Status
from sealpoint.ledger import (
    CheckpointBody,
    Kind,
    RequestBody,
    ResumeBody,
    VerdictBody,
    parse_header,
)
from sealpoint.signing import Attestation, Statement, Verdict, attest
from sealpoint.storage import Record
from sealpoint.store import accept_restore, plan_restore
from sealpoint.world import World
from tests.attacks.gate.raid import Raid
from tests.ledgers import key
from tests.unit.gate.team import NARROW, READ, SHELL, policy
from tests.unit.store.ended import expire

_FAR = datetime(9998, 1, 1, tzinfo=UTC)
_OTHER: dict[str, Any] = {"tools": [{"name": "other"}]}


def _rolled_out(raid: Raid, *people: str, **named: Any) -> Request:
    """Threads t and u that wait in one world, and a rollout to another, approved by these."""
    for name in ("t", "u"):
        raid.thread(name=name).save({"n": 1}, id="c1", world=READ)
    wish = {"reason": "release 42"} | named
    found = raid.store("operator").rollouts.propose([(READ, SHELL)], **wish)
    if people:
        raid.approve(found, *people)
    return found


def _twin_passes(raid: Raid) -> None:
    raid.fresh(name="u").resume(world=SHELL)
    raid.check_sound()


# ---------------------------------------------------------------------- the store


@pytest.mark.parametrize("kind", [Kind.GENESIS, Kind.REQUEST, Kind.APPROVAL])
def test_an_edited_book_lets_nothing_pass(raid: Raid, kind: Kind) -> None:
    """One byte of any entry of it, and the change is refused, not asked for anew."""
    _rolled_out(raid, "ann", "bob")
    _twin_passes(raid)
    with raid.landing():
        seq = raid.find(kind, ROLLOUTS)
        row = raid.rows(ROLLOUTS)[seq]
        edited = (row.body or b"").replace(b"release 42", b"release 43").replace(b"ann", b"eve")
        edited = edited if edited != row.body else (row.body or b"")[:-2] + b" }"
        raid.put({seq: Record(row.header, row.seals, edited)}, ROLLOUTS)
    assert issubclass(raid.resumed(), Tampered)


def test_a_book_that_is_gone_lets_nothing_pass(raid: Raid) -> None:
    """Nor does an empty one: the anchor has seen what it held."""
    _rolled_out(raid, "ann", "bob")
    _twin_passes(raid)
    with raid.landing():
        raid.truncate(1, ROLLOUTS)
    assert raid.resumed() is RolledBack


def test_a_revocation_cannot_be_taken_back(raid: Raid) -> None:
    """The book as it was before it is an older one."""
    rollout = _rolled_out(raid, "ann", "bob")
    _twin_passes(raid)
    before = dict(raid.rows(ROLLOUTS))
    raid.store("carl").rollouts.revoke(rollout.id, reason="the tool misbehaves")
    assert raid.resumed() is NeedsApproval
    with raid.landing():
        raid.burglar.put_rows(raid.world.thread_id(ROLLOUTS), before)
    assert raid.resumed() is RolledBack


def test_a_warm_worker_sees_every_edit(raid: Raid) -> None:
    """What a process has verified before is no reason to believe the book now."""
    rollout = _rolled_out(raid, "ann", "bob")
    raid.thread(name="u").resume(world=SHELL)  # this process has read the book
    raid.store("carl").rollouts.revoke(rollout.id, reason="no")
    with raid.landing():
        raid.truncate(len(raid.rows(ROLLOUTS)) - 1, ROLLOUTS)
    assert raid.ending(lambda: raid.thread().resume(world=SHELL)) is RolledBack


def test_a_rollout_of_another_thread_is_none(raid: Raid) -> None:
    """A genuine request, copied with its approvals onto the thread that would profit."""
    _rolled_out(raid, "ann", "bob")
    with raid.landing():
        rows = raid.rows(ROLLOUTS)
        raid.append(*(rows[seq] for seq in sorted(rows) if seq > 0))
    assert issubclass(raid.resumed(), Tampered)


# ---------------------------------------------------------------------- a worker's key


def _words(*people: str, statement: Statement) -> tuple[Attestation, ...]:
    return tuple(attest(key(who), statement.digest, Verdict.APPROVE, "looked at") for who in people)


def test_a_worker_approves_nothing_in_the_book(raid: Raid) -> None:
    """Words of those who may not, twice the same person, or for another statement count nothing."""
    rollout = _rolled_out(raid, "bob")
    other = msgspec.structs.replace(rollout.statement, reason="something else")
    with raid.landing():
        for word in (
            *_words("worker", "spare", "operator", "bobby", "far", statement=rollout.statement),
            *_words("ann", statement=other),
        ):
            raid.slip(
                Kind.APPROVAL, VerdictBody(salt=raid.salt, attestation=word), "worker", ROLLOUTS
            )
    assert raid.resumed() is NeedsApproval
    raid.approve(rollout, "ann")
    _twin_passes(raid)


@pytest.mark.parametrize("lie", ["worlds", "fewer people", "somebody else", "another namespace"])
def test_a_request_that_lies_is_none(raid: Raid, lie: str) -> None:
    """About its worlds, its requester or its place; and fewer people than needed are too few."""
    rollout = _rolled_out(raid)
    statement = rollout.statement
    worlds = rollout.worlds
    if lie == "worlds":
        # People would be shown a harmless world, and sign the digest of another.
        worlds = tuple({"tools": [{"name": "read"}]} for _ in worlds)
    elif lie == "fewer people":
        statement = msgspec.structs.replace(statement, needed=0, requester="worker")
    elif lie == "somebody else":
        statement = msgspec.structs.replace(statement, nonce="0" * 32)
    else:
        statement = msgspec.structs.replace(statement, ns="billing", requester="worker")
    body = RequestBody(salt=raid.salt, statement=statement, worlds=worlds)
    with raid.landing():
        raid.slip(Kind.REQUEST, body, "worker", ROLLOUTS)
        for word in _words("carl", statement=statement):
            raid.slip(
                Kind.APPROVAL, VerdictBody(salt=raid.salt, attestation=word), "worker", ROLLOUTS
            )
    assert raid.resumed() is NeedsApproval
    raid.approve(rollout, "ann", "bob")
    _twin_passes(raid)


def test_nonsense_in_the_book_stops_nobody(raid: Raid) -> None:
    """Whoever may relay there can write what nobody reads, and honest rollouts go on."""
    _rolled_out(raid, "ann", "bob")
    with raid.landing():
        raid.slip(Kind.APPROVAL, b'{"salt":"nonsense"}', "spare", ROLLOUTS)
    raid.fresh(name="u").resume(world=SHELL)


def test_saving_into_the_book_voids_and_lets_nothing_pass(raid: Raid) -> None:
    """Whoever owns the book can end what it holds, never add to it."""
    raid.thread().save({"n": 1}, id="c1", world=READ)
    rollout = raid.store("worker").rollouts.propose([(READ, SHELL)], reason="mine")
    raid.approve(rollout)
    with raid.landing():
        raid.slip(
            Kind.RESUME, ResumeBody(salt=raid.salt, owner="worker", basis=0), "worker", ROLLOUTS
        )
        root = raid.body(raid.find(Kind.CHECKPOINT)).root
        raid.slip(
            Kind.CHECKPOINT, CheckpointBody(salt=raid.salt, id="x", root=root), "worker", ROLLOUTS
        )
    assert issubclass(raid.resumed(), SealpointError)


# ---------------------------------------------------------------------- a resume that claims one


def _claim(raid: Raid, change: Callable[[ResumeBody], ResumeBody]) -> tuple[str, ...]:
    """What verify says to a resume that a worker wrote past the gate, honest but for a change."""
    raid.fresh(name="u").resume(world=SHELL)
    honest = raid.body(raid.find(Kind.RESUME, "u"), "u")
    checkpoint = raid.find(Kind.CHECKPOINT)
    release = raid.fresh().release()
    body = msgspec.structs.replace(
        honest, basis=checkpoint, checkpoint=release.entry, release=release.digest
    )
    at = parse_header(raid.rows("u")[raid.find(Kind.RESUME, "u")].header).at
    raid.append(raid.forged(Kind.RESUME, change(body), "worker", at=at))
    # The anchor follows whatever is well made.
    raid.fresh().load()
    report = raid.world.open(None, read_only=True).verify()
    return tuple(each.message for each in report.findings if each.code == "unjustified")


def _restated(body: ResumeBody, **fields: Any) -> ResumeBody:
    """The same with another statement, approved by the keys of the same people."""
    assert body.rollout is not None
    statement = msgspec.structs.replace(body.rollout, **fields)
    return msgspec.structs.replace(
        body, rollout=statement, attestations=_words("ann", "bob", statement=statement)
    )


_ELSEWHERE = World.from_dict(_OTHER).digest
_SHELL = World.from_dict(SHELL).digest

_CLAIMS: dict[str, tuple[Callable[[ResumeBody], ResumeBody], str]] = {
    "without approvals": (
        lambda body: msgspec.structs.replace(body, attestations=()),
        "would not allow",
    ),
    "one approval twice": (
        lambda body: msgspec.structs.replace(body, attestations=body.attestations[:1] * 2),
        "would not allow",
    ),
    "never proposed": (lambda body: _restated(body, nonce="0" * 32), "nobody has proposed it"),
    "another namespace": (lambda body: _restated(body, ns="billing"), "it was for namespace"),
    "another store": (lambda body: _restated(body, store="0" * 32), "it was for store"),
    "another policy": (lambda body: _restated(body, policy="0" * 64), "it was for policy"),
    "another epoch": (lambda body: _restated(body, epoch=1), "it was for epoch"),
    "other worlds": (
        lambda body: _restated(body, pairs=((_ELSEWHERE, _SHELL),)),
        "does not name a change",
    ),
    "fewer people": (lambda body: _restated(body, needed=0), "nobody has proposed it"),
    "long ended": (
        lambda body: _restated(
            body, expires=(body.rollout or _none()).expires - timedelta(days=60)
        ),
        "it had expired",
    ),
}


def _none() -> Statement:
    raise AssertionError("the honest resume names a rollout")


@pytest.mark.parametrize("name", _CLAIMS)
def test_a_resume_that_claims_a_rollout_is_found_out(raid: Raid, name: str) -> None:
    """The audit judges the proof that an entry carries, and holds it against the book."""
    change, words = _CLAIMS[name]
    _rolled_out(raid, "ann", "bob")
    found = _claim(raid, change)
    assert found, "not found out"
    assert any(words in each for each in found), found


def test_an_honest_claim_is_no_finding(raid: Raid) -> None:
    """The control: the same resume without a change is justified."""
    _rolled_out(raid, "ann", "bob")
    assert _claim(raid, lambda body: body) == ()


def test_a_resume_after_the_revocation_is_found_out(raid: Raid) -> None:
    """Although it carries genuine approvals."""
    rollout = _rolled_out(raid, "ann", "bob")
    raid.fresh(name="u").resume(world=SHELL)
    honest = raid.body(raid.find(Kind.RESUME, "u"), "u")
    raid.later(hours=1)
    raid.store("carl").rollouts.revoke(rollout.id, reason="no")
    raid.later(hours=1)
    release = raid.fresh().release()
    body = msgspec.structs.replace(
        honest,
        basis=raid.find(Kind.CHECKPOINT),
        checkpoint=release.entry,
        release=release.digest,
    )
    raid.append(raid.forged(Kind.RESUME, body, "worker", at=raid.world.clock))
    raid.fresh().load()
    report = raid.world.open(None, read_only=True).verify()
    assert [each.message for each in report.findings if "revoked" in each.message]


# ---------------------------------------------------------------------- other things to try


def test_a_restore_ends_what_was_accepted_before(raid: Raid) -> None:
    """Even where nothing of the book is lost: a denial may be in what is."""
    raid.apply(policy(after_restore="record"))
    _rolled_out(raid, "ann", "bob")
    before = dict(raid.rows())
    raid.fresh().resume(world=SHELL)
    raid.fresh().save({"n": 2}, id="c2", world=SHELL)
    raid.burglar.put_rows(raid.world.thread_id("t"), before)
    raid.world.using(
        lambda core: accept_restore(core, plan_restore(core), "disk died", roots=[key("root")]),
        "operator",
    )
    assert raid.resumed() is NeedsApproval
    assert raid.world.open("ann", gated=True).rollouts.list() == ()
    raid.approve(raid.store("operator").rollouts.propose([(READ, SHELL)], reason="once more"))
    raid.fresh().resume(world=SHELL)


def test_a_revocation_that_comes_between_look_and_entry_ends_the_next_resume(raid: Raid) -> None:
    """The one that had looked goes on, as if it had come first; nobody after it does."""
    rollout = _rolled_out(raid, "ann", "bob")
    worker, carl = raid.store("worker"), raid.store("carl")
    worker.storage.appending.before = lambda: carl.rollouts.revoke(rollout.id, reason="no")
    worker.thread("t").resume(world=SHELL)
    assert raid.ending(lambda: worker.thread("u").resume(world=SHELL)) is NeedsApproval
    raid.check_sound()


@pytest.mark.parametrize("later", ["the key ends", "the key expires"])
def test_a_denial_stays_whatever_becomes_of_the_key(raid: Raid, later: str) -> None:
    """A revoked rollout, and a denied request, do not come back when a key is replaced."""
    rollout = _rolled_out(raid, "ann", "bob")
    raid.store("carl").rollouts.revoke(rollout.id, reason="the tool misbehaves")
    raid.thread(name="u").save({"n": 2}, id="c2", world=READ)
    request = raid.ask(name="u")
    raid.store("carl").deny(request.id, reason="no")
    if later == "the key ends":
        raid.end("carl")
    else:
        expire(raid.world, "carl", raid.world.clock + timedelta(minutes=1))
        raid.later(minutes=5)

    assert raid.ending(lambda: raid.approve(request)) is RequestClosed
    assert raid.resumed() is NeedsApproval
    assert raid.store().rollouts.get(rollout.id).status is Status.DENIED
    assert raid.ending(lambda: raid.fresh(name="u").resume(world=SHELL)) is ResumeRefused


def test_honest_resumes_are_not_accused_in_another_namespace_or_epoch(raid: Raid) -> None:
    """An audit that was opened elsewhere, or comes after a restore, knows what was proposed."""
    raid.apply(policy(after_restore="record"))
    _rolled_out(raid, "ann", "bob")
    raid.fresh(name="u").resume(world=SHELL)
    before = dict(raid.rows())
    raid.thread().save({"n": 2}, id="c2", world=READ)
    assert raid.world.open(None, read_only=True, namespace="billing").verify().ok
    raid.burglar.put_rows(raid.world.thread_id("t"), before)
    raid.world.using(
        lambda core: accept_restore(core, plan_restore(core), "disk died", roots=[key("root")]),
        "operator",
    )
    raid.check_sound()


def test_a_damaged_book_is_a_finding_and_the_rest_is_verified(raid: Raid) -> None:
    """One byte of it does not keep an audit from the other threads."""
    _rolled_out(raid, "ann", "bob")
    raid.fresh(name="u").resume(world=SHELL)
    with raid.landing():
        seq = raid.find(Kind.APPROVAL, ROLLOUTS)
        row = raid.rows(ROLLOUTS)[seq]
        raid.put({seq: Record(row.header, row.seals, (row.body or b"")[:-2] + b" }")}, ROLLOUTS)
    report = raid.world.open(None, read_only=True).verify()
    assert {each.name for each in report.findings} == {ROLLOUTS}


def test_a_wrong_clock_does_not_end_the_book(raid: Raid) -> None:
    """Whoever proposes first, or pauses there, far in the future, ends nobody's rollouts."""
    raid.thread().save({"n": 1}, id="c1", world=READ)
    raid.thread(name="u").save({"n": 1}, id="c1", world=READ)
    raid.later(days=400)
    raid.store("operator").rollouts.propose([(READ, SHELL)], reason="by a wrong clock")
    raid.later(days=-400)
    rollout = raid.store("operator").rollouts.propose([(READ, SHELL)], reason="release 43")
    raid.approve(rollout)
    raid.fresh().resume(world=SHELL)


def test_fewer_people_or_more_days_than_the_policy_allows_hold_nowhere(raid: Raid) -> None:
    """Neither the gate nor a list nor a plan takes a proposer's word for it."""
    rollout = _rolled_out(raid)
    statement = msgspec.structs.replace(rollout.statement, needed=0, requester="worker")
    lies = [statement, msgspec.structs.replace(statement, expires=_FAR, needed=2)]
    with raid.landing():
        for lie in lies:
            body = RequestBody(salt=raid.salt, statement=lie, worlds=rollout.worlds)
            raid.slip(Kind.REQUEST, body, "worker", ROLLOUTS)
    operator = raid.world.open("operator", gated=True)
    raid.approve(operator.rollouts.get(lies[1].digest))

    assert operator.rollouts.get(lies[0].digest).status is Status.OPEN
    assert operator.rollouts.plan(SHELL).worlds[0].rollout is None
    assert raid.resumed() is NeedsApproval


def test_a_rollout_on_another_thread_is_not_listed(raid: Raid) -> None:
    """It would let nothing pass, and people would think that it does."""
    rollout = _rolled_out(raid)
    statement = msgspec.structs.replace(
        rollout.statement,
        thread=raid.world.thread_id("t").hex(),
        basis=raid.fresh().release().basis,
        requester="worker",
    )
    with raid.landing():
        body = RequestBody(salt=raid.salt, statement=statement, worlds=rollout.worlds)
        raid.slip(Kind.REQUEST, body, "worker")
    found = raid.world.open("ann", gated=True).requests().requests
    assert [each.id for each in found] == [rollout.id]


def test_a_plan_shows_no_name_that_the_slot_does_not_prove(raid: Raid) -> None:
    """A genesis that was edited, or a body that was taken away, is a failure and no name."""
    _rolled_out(raid)
    with raid.landing():
        row = raid.rows()[0]
        edited = (row.body or b"").replace(b'"name":"t"', b'"name":"scratch"')
        raid.put({0: Record(row.header, row.seals, edited)})
        newest = raid.find(Kind.CHECKPOINT, "u")
        row = raid.rows("u")[newest]
        raid.put({newest: Record(row.header, row.seals, None)}, "u")
    plan = raid.world.open("operator", gated=True).rollouts.plan(SHELL)
    assert (plan.worlds, plan.empty, plan.failed) == ((), 0, 2)


def test_less_is_asked_about_inside_a_session_too(raid: Raid) -> None:
    """A policy that wants people for a narrower world gets them, also after a resume."""
    raid.apply(policy(narrower_world="approve 2"))
    raid.thread().save({"n": 1}, id="c1", world=READ)
    assert raid.ending(lambda: raid.thread().save({"n": 2}, world=NARROW)) is ResumeRefused
    raid.apply(policy(narrower_world="record"))
    raid.fresh().resume(world=READ)
    raid.thread().load()
    raid.fresh().save({"n": 2}, world=NARROW)
