# SPDX-License-Identifier: Apache-2.0
"""Rollouts under attack: by whoever has the store, a worker's key, or a rollout of somewhere else.

In each case the honest twin passes: the same rollout, untouched, lets the same resume pass.
"""

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from sealpoint.api import verify_bundle
from sealpoint.errors import (
    NeedsApproval,
    RequestClosed,
    ResumeRefused,
    RolledBack,
    SealpointError,
    Superseded,
    Tampered,
)
from sealpoint.gate import ROLLOUTS, Request, Status
from sealpoint.gate._requests import shown_differences
from sealpoint.ledger import (
    CheckpointBody,
    ExpiryBody,
    Kind,
    PositionList,
    RequestBody,
    ResumeBody,
    VerdictBody,
    parse_header,
)
from sealpoint.signing import Attestation, Statement, Verdict, attest
from sealpoint.storage import Record
from sealpoint.store import accept_restore, plan_restore
from sealpoint.world import value_digest
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import key
from tests.rogue import Rogue
from tests.unit.gate.team import NARROW, READ, SHELL, policy
from tests.unit.store.ended import expire

_FAR = datetime(9998, 1, 1, tzinfo=UTC)
_OTHER: dict[str, Any] = {"tools": [{"name": "other"}]}


def _rolled_out(attacked: AttackedTeam, *people: str, **named: Any) -> Request:
    """Threads t and u that wait in one world, and a rollout to another, approved by these."""
    for name in ("t", "u"):
        attacked.thread(name=name).save({"n": 1}, id="c1", world=READ)
    wish = {"reason": "release 42"} | named
    found = attacked.store("operator").rollouts.propose([(READ, SHELL)], **wish)
    if people:
        attacked.approve(found, *people)
    return found


def _request_of(attacked: AttackedTeam) -> RequestBody:
    """The entry of the newest proposal."""
    body: RequestBody = attacked.newest(Kind.REQUEST, ROLLOUTS)
    return body


def _twin_passes(attacked: AttackedTeam) -> None:
    attacked.fresh(name="u").resume(world=SHELL)
    attacked.check_sound()


# ---------------------------------------------------------------------- the store


@pytest.mark.parametrize("kind", [Kind.GENESIS, Kind.REQUEST, Kind.APPROVAL])
def test_an_edited_book_lets_nothing_pass(attacked: AttackedTeam, kind: Kind) -> None:
    """One byte of any entry of it, and people are asked, as if nobody had proposed anything."""
    _rolled_out(attacked, "ann", "bob")
    _twin_passes(attacked)
    with attacked.landing():
        seq = attacked.find(kind, ROLLOUTS)
        row = attacked.rows(ROLLOUTS)[seq]
        edited = (row.body or b"").replace(b"release 42", b"release 43").replace(b"ann", b"eve")
        edited = edited if edited != row.body else (row.body or b"")[:-2] + b" }"
        attacked.put({seq: Record(row.header, row.seals, edited)}, ROLLOUTS)
    assert attacked.resumed() is NeedsApproval
    operator = attacked.world.open("operator", gated=True)
    if kind is Kind.GENESIS:
        with pytest.raises(Tampered):
            operator.rollouts.list()
    else:
        assert [each.status for each in operator.rollouts.list()] == (
            [Status.OPEN] if kind is Kind.APPROVAL else []
        )
    assert not operator.verify().ok


def test_a_book_that_is_gone_lets_nothing_pass(attacked: AttackedTeam) -> None:
    """Nor does an empty one: the anchor has seen what it held."""
    _rolled_out(attacked, "ann", "bob")
    _twin_passes(attacked)
    with attacked.landing():
        attacked.truncate(1, ROLLOUTS)
    assert attacked.resumed() is NeedsApproval
    with pytest.raises(RolledBack):
        attacked.world.open("operator", gated=True).rollouts.list()


def test_a_revocation_cannot_be_taken_back(attacked: AttackedTeam) -> None:
    """The book as it was before it is an older one."""
    rollout = _rolled_out(attacked, "ann", "bob")
    _twin_passes(attacked)
    before = dict(attacked.rows(ROLLOUTS))
    attacked.store("carl").rollouts.revoke(rollout.id, reason="the tool misbehaves")
    assert attacked.resumed() is NeedsApproval
    with attacked.landing():
        attacked.editor.put_rows(attacked.world.thread_id(ROLLOUTS), before)
    assert attacked.resumed() is NeedsApproval


def test_a_warm_worker_sees_every_edit(attacked: AttackedTeam) -> None:
    """What a process has verified before is no reason to believe the book now."""
    rollout = _rolled_out(attacked, "ann", "bob")
    attacked.thread(name="u").resume(world=SHELL)  # this process has read the book
    attacked.store("carl").rollouts.revoke(rollout.id, reason="no")
    with attacked.landing():
        attacked.truncate(len(attacked.rows(ROLLOUTS)) - 1, ROLLOUTS)
    assert attacked.ending(lambda: attacked.thread().resume(world=SHELL)) is NeedsApproval


def test_a_rollout_of_another_thread_is_none(attacked: AttackedTeam) -> None:
    """A genuine request, copied with its approvals onto the thread that would profit."""
    _rolled_out(attacked, "ann", "bob")
    with attacked.landing():
        rows = attacked.rows(ROLLOUTS)
        attacked.append(*(rows[seq] for seq in sorted(rows) if seq > 0))
    assert issubclass(attacked.resumed(), Tampered)


# ---------------------------------------------------------------------- a worker's key


def _words(*people: str, statement: Statement) -> tuple[Attestation, ...]:
    return tuple(attest(key(who), statement.digest, Verdict.APPROVE, "looked at") for who in people)


def test_a_worker_approves_nothing_in_the_book(attacked: AttackedTeam) -> None:
    """Words of those who may not, twice the same person, or for another statement count nothing."""
    rollout = _rolled_out(attacked, "bob")
    other = msgspec.structs.replace(rollout.statement, reason="something else")
    with attacked.landing():
        for word in (
            *_words("worker", "spare", "operator", "bobby", "far", statement=rollout.statement),
            *_words("ann", statement=other),
        ):
            attacked.slip(
                Kind.APPROVAL, VerdictBody(salt=attacked.salt, attestation=word), "worker", ROLLOUTS
            )
    assert attacked.resumed() is NeedsApproval
    attacked.approve(rollout, "ann")
    _twin_passes(attacked)


@pytest.mark.parametrize("lie", ["values", "fewer people", "somebody else", "another namespace"])
def test_a_request_that_lies_is_none(attacked: AttackedTeam, lie: str) -> None:
    """About its values, its requester or its place; and fewer people than needed are too few."""
    rollout = _rolled_out(attacked)
    statement = rollout.statement
    differences = _request_of(attacked).differences
    if lie == "values":
        # People would be shown a harmless tool, and sign the digest of another.
        differences = (("tool.shell", (), ({"name": "shell", "description": "lists files"},)),)
    elif lie == "fewer people":
        statement = msgspec.structs.replace(statement, needed=0, requester="worker")
    elif lie == "somebody else":
        statement = msgspec.structs.replace(statement, nonce="0" * 32)
    else:
        statement = msgspec.structs.replace(statement, ns="billing", requester="worker")
    body = RequestBody(salt=attacked.salt, statement=statement, differences=differences)
    with attacked.landing():
        attacked.slip(Kind.REQUEST, body, "worker", ROLLOUTS)
        for word in _words("carl", statement=statement):
            attacked.slip(
                Kind.APPROVAL, VerdictBody(salt=attacked.salt, attestation=word), "worker", ROLLOUTS
            )
    assert attacked.resumed() is NeedsApproval
    attacked.approve(rollout, "ann", "bob")
    _twin_passes(attacked)


def test_nonsense_in_the_book_stops_nobody(attacked: AttackedTeam) -> None:
    """Whoever may relay there can write what nobody reads, and honest rollouts go on."""
    _rolled_out(attacked, "ann", "bob")
    with attacked.landing():
        attacked.slip(Kind.APPROVAL, b'{"salt":"nonsense"}', "spare", ROLLOUTS)
    attacked.fresh(name="u").resume(world=SHELL)


def test_saving_into_the_book_voids_and_lets_nothing_pass(attacked: AttackedTeam) -> None:
    """Whoever owns the book can end what it holds, never add to it."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    rollout = attacked.store("worker").rollouts.propose([(READ, SHELL)], reason="mine")
    attacked.approve(rollout)
    with attacked.landing():
        attacked.slip(
            Kind.RESUME, ResumeBody(salt=attacked.salt, owner="worker", basis=0), "worker", ROLLOUTS
        )
        root = attacked.body(attacked.find(Kind.CHECKPOINT)).root
        attacked.slip(
            Kind.CHECKPOINT,
            CheckpointBody(salt=attacked.salt, id="x", root=root),
            "worker",
            ROLLOUTS,
        )
    assert issubclass(attacked.resumed(), SealpointError)


# ---------------------------------------------------------------------- a resume that claims one


def _claim(attacked: AttackedTeam, change: Callable[[ResumeBody], ResumeBody]) -> tuple[str, ...]:
    """What verify says to a resume that a worker wrote past the gate, honest but for a change."""
    attacked.fresh(name="u").resume(world=SHELL)
    honest = attacked.body(attacked.find(Kind.RESUME, "u"), "u")
    checkpoint = attacked.find(Kind.CHECKPOINT)
    release = attacked.fresh().release()
    body = msgspec.structs.replace(
        honest, basis=checkpoint, checkpoint=release.entry, release=release.digest
    )
    at = parse_header(attacked.rows("u")[attacked.find(Kind.RESUME, "u")].header).at
    attacked.append(attacked.forged(Kind.RESUME, change(body), "worker", at=at))
    # The anchor follows whatever is well made.
    attacked.fresh().load()
    report = attacked.world.open(None, read_only=True).verify()
    return tuple(each.message for each in report.findings if each.code == "unjustified")


def _restated(body: ResumeBody, **fields: Any) -> ResumeBody:
    """The same with another statement, approved by the keys of the same people."""
    statement = msgspec.structs.replace(_rollout(body), **fields)
    return msgspec.structs.replace(
        body, rollouts=(statement,), attestations=_words("ann", "bob", statement=statement)
    )


_OTHER_TOOL = (("tool.other", None, value_digest({"name": "other"})),)

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
    "other differences": (
        lambda body: _restated(body, differences=_OTHER_TOOL),
        "does not name a difference",
    ),
    "another value": (
        lambda body: _restated(body, differences=(("tool.shell", None, "ab" * 32),)),
        "would not allow",
    ),
    "another value before": (
        lambda body: _restated(
            body,
            differences=tuple(
                (leaf, "ab" * 32, after) for leaf, _, after in _rollout(body).differences
            ),
        ),
        "would not allow",
    ),
    "fewer people": (lambda body: _restated(body, needed=0), "nobody has proposed it"),
    "long ended": (
        lambda body: _restated(body, expires=_rollout(body).expires - timedelta(days=60)),
        "it had expired",
    ),
}


def _rollout(body: ResumeBody) -> Statement:
    """The one rollout that an honest resume names."""
    (statement,) = body.rollouts
    return statement


@pytest.mark.parametrize("name", _CLAIMS)
def test_a_resume_that_claims_a_rollout_is_found_out(attacked: AttackedTeam, name: str) -> None:
    """The audit judges the proof that an entry carries, and holds it against the book."""
    change, words = _CLAIMS[name]
    _rolled_out(attacked, "ann", "bob")
    found = _claim(attacked, change)
    assert found, "not found out"
    assert any(words in each for each in found), found


def test_an_honest_claim_is_no_finding(attacked: AttackedTeam) -> None:
    """The control: the same resume without a change is justified."""
    _rolled_out(attacked, "ann", "bob")
    assert _claim(attacked, lambda body: body) == ()


def test_a_resume_after_the_revocation_is_found_out(attacked: AttackedTeam) -> None:
    """Although it carries genuine approvals."""
    rollout = _rolled_out(attacked, "ann", "bob")
    attacked.fresh(name="u").resume(world=SHELL)
    honest = attacked.body(attacked.find(Kind.RESUME, "u"), "u")
    attacked.later(hours=1)
    attacked.store("carl").rollouts.revoke(rollout.id, reason="no")
    attacked.later(hours=1)
    release = attacked.fresh().release()
    body = msgspec.structs.replace(
        honest,
        basis=attacked.find(Kind.CHECKPOINT),
        checkpoint=release.entry,
        release=release.digest,
    )
    attacked.append(attacked.forged(Kind.RESUME, body, "worker", at=attacked.world.clock))
    attacked.fresh().load()
    report = attacked.world.open(None, read_only=True).verify()
    assert [each.message for each in report.findings if "had ended before" in each.message]


def _ended(attacked: AttackedTeam, how: str) -> tuple[Request, ResumeBody, datetime]:
    """A rollout that was used and has ended; what its use recorded, and a time when it held."""
    rollout = _rolled_out(attacked, "ann", "bob", until=timedelta(days=2))
    attacked.fresh(name="u").resume(world=SHELL)
    honest = attacked.body(attacked.find(Kind.RESUME, "u"), "u")
    held = attacked.world.clock
    attacked.later(hours=1 if how == "revoked" else 49)
    if how == "not yet":
        pass
    elif how == "proposed again":
        attacked.store("operator").rollouts.propose([(READ, _OTHER)], reason="release 43")
    else:
        ending = RequestClosed if how == "expired" else ()
        with pytest.raises(ending) if ending else nullcontext():
            attacked.store("carl").rollouts.revoke(rollout.id, reason="leaks data")
    attacked.later(hours=5)
    return rollout, honest, held


def _backdate(attacked: AttackedTeam, honest: ResumeBody, at: datetime) -> None:
    """Use the rollout on another thread, at a time of the attacker's choice."""
    attacked.slip_resume(
        at=at,
        roster=attacked.store().core.trust().roster.seq,
        policy=honest.policy,
        rollouts=honest.rollouts,
        attestations=honest.attestations,
    )


def _findings(attacked: AttackedTeam) -> str:
    report = attacked.world.open(None, read_only=True).verify()
    return "\n".join(each.message for each in report.findings)


@pytest.mark.parametrize("how", ["revoked", "expired", "proposed again"])
def test_a_backdated_resume_by_a_rollout_that_ended_is_found(
    attacked: AttackedTeam, how: str
) -> None:
    """B03: where each thread stood at the end is listed, and no time brings the rollout back."""
    _, honest, held = _ended(attacked, how)
    with attacked.landing():
        _backdate(attacked, honest, held)

    assert "it had ended before the thread came to this position" in _findings(attacked)


def test_two_persons_list_the_end_of_a_rollout(attacked: AttackedTeam) -> None:
    """Whoever meets it later, and may list it, finds that it is; a read writes nothing."""
    rollout, _, _ = _ended(attacked, "revoked")
    counts = [attacked.kinds(ROLLOUTS).count("expiry")]
    for who in ("carl", "ann", "bob", "ann"):
        with pytest.raises(RequestClosed):
            attacked.store(who).rollouts.revoke(rollout.id, reason="again")
        attacked.store(who).rollouts.list()
        counts.append(attacked.kinds(ROLLOUTS).count("expiry"))

    assert counts == [1, 1, 2, 2, 2]


_POLICIES = {"that in force": None, "none": "00" * 32}


@pytest.mark.parametrize("policy_digest", _POLICIES.values(), ids=_POLICIES)
def test_the_ends_of_rollouts_that_never_held_are_left_alone(
    attacked: AttackedTeam, policy_digest: str | None
) -> None:
    """A worker proposes many, denies some and lets the rest end; nobody lists them one by one."""
    held, waits = _rolled_out(attacked, "ann", "bob"), _proposed(attacked, "held by nobody")
    rogue = Rogue(attacked.store().core, "worker", ROLLOUTS)
    asked = attacked.newest(Kind.REQUEST, ROLLOUTS)
    for number in range(20):
        statement = msgspec.structs.replace(
            asked.statement,
            nonce=f"{number:032x}",
            requester="worker",
            expires=attacked.world.clock + timedelta(minutes=1),
            policy=policy_digest or asked.statement.policy,
            needed=number % 2,
        )
        rogue.write(Kind.REQUEST, msgspec.structs.replace(asked, statement=statement))
        word = attest(key("worker"), statement.digest, Verdict.DENY, "no")
        junk = attest(key("worker"), statement.digest, Verdict.APPROVE, "yes")
        for kind, said in ((Kind.DENIAL, word), (Kind.APPROVAL, junk))[: number % 3]:
            rogue.write(kind, VerdictBody(salt=attacked.salt, attestation=said))
    rogue.anchor()
    attacked.later(minutes=2)
    before = len(attacked.kinds(ROLLOUTS))
    attacked.store("bob").rollouts.revoke(waits.id, reason="not this one")
    attacked.store("bob").rollouts.revoke(held.id, reason="leaks data")

    kinds = attacked.kinds(ROLLOUTS)[before:]
    assert kinds == ["denial", "expiry", "denial", "expiry"]
    attacked.check_sound()


def _proposed(attacked: AttackedTeam, reason: str) -> Request:
    return attacked.store("operator").rollouts.propose([(READ, _OTHER)], reason=reason)


def test_a_false_list_by_who_ended_a_rollout_is_not_the_only_one(attacked: AttackedTeam) -> None:
    """The next person who meets the end lists too, and each list binds."""
    rollout, honest, held = _ended(attacked, "not yet")
    book = Rogue(attacked.store("carl").core, "carl", ROLLOUTS)
    threads = sorted(map(attacked.world.thread_id, ("t", "u")))
    far = PositionList.of([(thread, 10**9, bytes(32)) for thread in threads])
    attacked.store("carl").core.storage.put_blobs(book.thread, {far.digest: far.data})
    word = attest(key("carl"), rollout.id, Verdict.DENY, "mine")
    book.write(Kind.DENIAL, VerdictBody(salt=attacked.salt, attestation=word))
    body = ExpiryBody(salt=attacked.salt, request=rollout.id, positions=far.digest.hex())
    book.write(Kind.EXPIRY, body)
    book.anchor()
    with pytest.raises(RequestClosed):
        attacked.store("ann").rollouts.revoke(rollout.id, reason="leaks data")
    with attacked.landing():
        _backdate(attacked, honest, held)

    assert "it had ended before the thread came to this position" in _findings(attacked)


@pytest.mark.parametrize("damage", ["gone", "edited"])
def test_without_its_list_no_use_of_an_ended_rollout_passes(
    attacked: AttackedTeam, damage: str
) -> None:
    """Not even the honest one: it cannot be judged, and the book has a finding of its own."""
    _ended(attacked, "revoked")
    attacked.check_sound()
    thread = attacked.world.thread_id(ROLLOUTS)
    listed = bytes.fromhex(attacked.newest(Kind.EXPIRY, ROLLOUTS).positions)
    blobs = attacked.editor.blobs(thread)
    kept = {name: data for name, data in blobs.items() if name != listed}
    edited = {} if damage == "gone" else {listed: blobs[listed] * 2}
    attacked.editor.put_blobs(thread, kept | edited)
    found = _findings(attacked)

    assert "it has ended, and the resume cannot be judged: list of positions" in found
    assert "the end of a rollout, recorded by 'carl': list of positions" in found


@pytest.mark.parametrize("who", ["worker", "spare", "officer"])
def test_a_list_of_somebody_without_the_right_counts_for_nothing(
    attacked: AttackedTeam, who: str
) -> None:
    """A worker could accuse others by it, or let itself go on."""
    rollout = _rolled_out(attacked, "ann", "bob")
    attacked.fresh(name="u").resume(world=SHELL)
    empty = hashlib.sha256(b"").digest()
    body = ExpiryBody(salt=attacked.salt, request=rollout.id, positions=empty.hex())
    core = attacked.store("operator").core
    core.storage.put_blobs(attacked.world.thread_id(ROLLOUTS), {empty: b""})
    with attacked.landing():
        attacked.slip(Kind.EXPIRY, body, who, ROLLOUTS)
    attacked.check_sound()
    attacked.fresh().resume(world=SHELL)

    attacked.check_sound()


def test_a_list_before_the_end_counts_for_nothing(attacked: AttackedTeam) -> None:
    """An approver who lists the threads while the rollout holds ends nothing by that."""
    rollout = _rolled_out(attacked, "ann", "bob")
    empty = hashlib.sha256(b"").digest()
    body = ExpiryBody(salt=attacked.salt, request=rollout.id, positions=empty.hex())
    core = attacked.store("operator").core
    core.storage.put_blobs(attacked.world.thread_id(ROLLOUTS), {empty: b""})
    attacked.slip(Kind.EXPIRY, body, "carl", ROLLOUTS)
    attacked.fresh().resume(world=SHELL)

    attacked.check_sound()


def test_an_end_that_a_wrong_clock_recorded_is_listed(attacked: AttackedTeam) -> None:
    """A proposer whose clock runs ahead ends its own rollout; others list that at their time."""
    rollout = _rolled_out(attacked, "ann", "bob")
    body = ExpiryBody(salt=attacked.salt, request=rollout.id)
    ahead = attacked.world.clock + timedelta(days=30)
    record = attacked.forged(Kind.EXPIRY, body, "operator", name=ROLLOUTS, at=ahead)
    attacked.append(record, name=ROLLOUTS)
    with pytest.raises(RequestClosed):
        attacked.store("carl").rollouts.revoke(rollout.id, reason="no")

    assert attacked.newest(Kind.EXPIRY, ROLLOUTS).positions is not None
    assert attacked.kinds(ROLLOUTS).count("expiry") == 2


def test_a_relayed_denial_is_listed_by_the_next_who_may(attacked: AttackedTeam) -> None:
    """Until then time decides, as it did before there were lists."""
    rollout = _rolled_out(attacked, "ann", "bob")
    attacked.fresh(name="u").resume(world=SHELL)
    word = attest(key("carl"), rollout.id, Verdict.DENY, "leaks data")
    attacked.later(hours=1)
    attacked.store("officer").relay(word)
    before = attacked.kinds(ROLLOUTS)
    with pytest.raises(RequestClosed):
        attacked.store("ann").rollouts.revoke(rollout.id, reason="me too")

    assert before[-1] == "denial"
    assert attacked.kinds(ROLLOUTS) == [*before, "expiry"]
    attacked.check_sound()


@pytest.mark.parametrize(
    ("ended", "who"),
    [
        *(("listed", who) for who in ("officer", "carl")),
        *(("denied in person", who) for who in ("officer", "carl")),
        ("relayed", "officer"),
    ],
)
def test_a_denial_that_is_copied_to_an_earlier_time_accuses_nobody(
    attacked: AttackedTeam, ended: str, who: str
) -> None:
    """Those who went on by the rollout while it held stay justified, and go on."""
    rollout = _rolled_out(attacked, "ann", "bob")
    proposed = attacked.world.clock
    attacked.later(hours=1)
    honest = attacked.fresh(name="u")
    honest.resume(world=SHELL)
    honest.save({"n": 2})
    attacked.later(hours=24)
    body = VerdictBody(
        salt=attacked.salt, attestation=attest(key("carl"), rollout.id, Verdict.DENY, "leaks data")
    )
    if ended == "listed":
        attacked.store("carl").rollouts.revoke(rollout.id, reason="leaks data")
    elif ended == "denied in person":
        at = attacked.world.clock
        record = attacked.forged(Kind.DENIAL, body, "carl", name=ROLLOUTS, at=at)
        attacked.append(record, name=ROLLOUTS)
    attacked.check_sound()
    copy = attacked.forged(Kind.DENIAL, body, who, name=ROLLOUTS, at=proposed)
    with attacked.landing():
        attacked.append(copy, name=ROLLOUTS)

    attacked.check_sound()
    assert attacked.fresh(name="u").resume(world=SHELL).state == {"n": 2}
    assert attacked.resumed() is NeedsApproval


def test_a_sweep_and_a_bundle_keep_the_list(attacked: AttackedTeam) -> None:
    """It is no orphan, and whoever has the bundle has it too."""
    _ended(attacked, "revoked")
    listed = attacked.newest(Kind.EXPIRY, ROLLOUTS).positions
    attacked.store("operator").gc()
    attacked.check_sound()
    bundle = b"".join(attacked.store("operator").export())
    report = verify_bundle(bundle, attacked.world.pin)

    assert report.ok
    assert f'"digest":"{listed}"'.encode() in bundle


# ---------------------------------------------------------------------- other things to try


def _accept_restore(attacked: AttackedTeam) -> None:
    attacked.world.using(
        lambda core: accept_restore(core, plan_restore(core), "disk died", roots=[key("root")]),
        "operator",
    )


def _restore_without(attacked: AttackedTeam, name: str) -> None:
    """Accept a store that lost the end of a thread, from its next save on."""
    before = dict(attacked.rows(name))
    attacked.fresh(name=name).save({"n": 2}, world=READ)
    attacked.editor.put_rows(attacked.world.thread_id(name), before)
    _accept_restore(attacked)


def test_a_restore_that_loses_entries_of_the_book_ends_what_was_accepted_before(
    attacked: AttackedTeam,
) -> None:
    """A denial may be among the lost entries, as it is here."""
    attacked.apply(policy(after_restore="record"))
    rollout = _rolled_out(attacked, "ann", "bob")
    before = dict(attacked.rows(ROLLOUTS))
    attacked.store("carl").rollouts.revoke(rollout.id, reason="leaks data")
    attacked.editor.put_rows(attacked.world.thread_id(ROLLOUTS), before)
    _accept_restore(attacked)
    assert attacked.resumed() is NeedsApproval
    assert attacked.world.open("ann", gated=True).rollouts.list() == ()
    attacked.approve(
        attacked.store("operator").rollouts.propose([(READ, SHELL)], reason="once more")
    )
    attacked.fresh().resume(world=SHELL)


def test_a_revocation_that_comes_between_look_and_entry_ends_the_next_resume(
    attacked: AttackedTeam,
) -> None:
    """The one that had looked is told, and its entry stays as a finding; nobody goes on."""
    rollout = _rolled_out(attacked, "ann", "bob")
    worker, carl = attacked.store("worker"), attacked.store("carl")
    worker.storage.appending.before = lambda: carl.rollouts.revoke(rollout.id, reason="no")
    with pytest.raises(Superseded, match="ended while this resume was written"):
        worker.thread("t").resume(world=SHELL)
    assert attacked.ending(lambda: worker.thread("t").resume(world=SHELL)) is NeedsApproval
    assert attacked.ending(lambda: worker.thread("u").resume(world=SHELL)) is NeedsApproval
    assert "it had ended before the thread came to this position" in _findings(attacked)


def test_a_revocation_that_comes_between_look_and_save_ends_the_session_of_the_save(
    attacked: AttackedTeam,
) -> None:
    """A save that begins a session by itself looks again, as a resume does."""
    rollout = _rolled_out(attacked, "ann", "bob")
    worker, carl = attacked.world.open("worker", gated=True), attacked.store("carl")
    thread = worker.thread("t")
    thread.load()
    worker.storage.appending.before = lambda: carl.rollouts.revoke(rollout.id, reason="no")
    with pytest.raises(Superseded, match="ended while this resume was written"):
        thread.save({"n": 2}, id="c2", world=SHELL)
    assert attacked.ending(lambda: thread.save({"n": 3}, world=SHELL)) is not None
    assert "it had ended before the thread came to this position" in _findings(attacked)


@pytest.mark.parametrize("later", ["the key ends", "the key expires"])
def test_a_denial_stays_whatever_becomes_of_the_key(attacked: AttackedTeam, later: str) -> None:
    """A revoked rollout, and a denied request, do not come back when a key is replaced."""
    rollout = _rolled_out(attacked, "ann", "bob")
    attacked.store("carl").rollouts.revoke(rollout.id, reason="the tool misbehaves")
    attacked.thread(name="u").save({"n": 2}, id="c2", world=READ)
    request = attacked.ask(name="u")
    attacked.store("carl").deny(request.id, reason="no")
    if later == "the key ends":
        attacked.end("carl")
    else:
        expire(attacked.world, "carl", attacked.world.clock + timedelta(minutes=1))
        attacked.later(minutes=5)

    assert attacked.ending(lambda: attacked.approve(request)) is RequestClosed
    assert attacked.resumed() is NeedsApproval
    assert attacked.store().rollouts.get(rollout.id).status is Status.DENIED
    assert attacked.ending(lambda: attacked.fresh(name="u").resume(world=SHELL)) is ResumeRefused


def test_honest_resumes_are_not_accused_in_another_namespace_or_epoch(
    attacked: AttackedTeam,
) -> None:
    """An audit that was opened elsewhere, or comes after a restore, knows what was proposed."""
    attacked.apply(policy(after_restore="record"))
    _rolled_out(attacked, "ann", "bob")
    attacked.fresh(name="u").resume(world=SHELL)
    before = dict(attacked.rows())
    attacked.thread().save({"n": 2}, id="c2", world=READ)
    assert attacked.world.open(None, read_only=True, namespace="billing").verify().ok
    attacked.editor.put_rows(attacked.world.thread_id("t"), before)
    attacked.world.using(
        lambda core: accept_restore(core, plan_restore(core), "disk died", roots=[key("root")]),
        "operator",
    )
    attacked.check_sound()


def test_a_damaged_book_is_a_finding_and_the_rest_is_verified(attacked: AttackedTeam) -> None:
    """One byte of it does not keep an audit from the other threads."""
    _rolled_out(attacked, "ann", "bob")
    attacked.fresh(name="u").resume(world=SHELL)
    with attacked.landing():
        seq = attacked.find(Kind.APPROVAL, ROLLOUTS)
        row = attacked.rows(ROLLOUTS)[seq]
        attacked.put({seq: Record(row.header, row.seals, (row.body or b"")[:-2] + b" }")}, ROLLOUTS)
    report = attacked.world.open(None, read_only=True).verify()
    assert {each.name for each in report.findings} == {ROLLOUTS}


def test_a_wrong_clock_does_not_end_the_book(attacked: AttackedTeam) -> None:
    """Whoever proposes first, or pauses there, far in the future, ends nobody's rollouts."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    attacked.thread(name="u").save({"n": 1}, id="c1", world=READ)
    attacked.later(days=400)
    attacked.store("operator").rollouts.propose([(READ, SHELL)], reason="by a wrong clock")
    attacked.later(days=-400)
    rollout = attacked.store("operator").rollouts.propose([(READ, SHELL)], reason="release 43")
    attacked.approve(rollout)
    attacked.fresh().resume(world=SHELL)


def test_fewer_people_or_more_days_than_the_policy_allows_hold_nowhere(
    attacked: AttackedTeam,
) -> None:
    """Neither the gate nor a list nor a plan takes a proposer's word for it."""
    rollout = _rolled_out(attacked)
    statement = msgspec.structs.replace(rollout.statement, needed=0, requester="worker")
    lies = [statement, msgspec.structs.replace(statement, expires=_FAR, needed=2)]
    with attacked.landing():
        for lie in lies:
            shown = _request_of(attacked).differences
            body = RequestBody(salt=attacked.salt, statement=lie, differences=shown)
            attacked.slip(Kind.REQUEST, body, "worker", ROLLOUTS)
    operator = attacked.world.open("operator", gated=True)
    attacked.approve(operator.rollouts.get(lies[1].digest))

    assert operator.rollouts.get(lies[0].digest).status is Status.OPEN
    assert operator.rollouts.plan(SHELL).worlds[0].rollouts == ()
    assert attacked.resumed() is NeedsApproval


def test_a_rollout_on_another_thread_is_not_listed(attacked: AttackedTeam) -> None:
    """It would let nothing pass, and people would think that it does."""
    rollout = _rolled_out(attacked)
    statement = msgspec.structs.replace(
        rollout.statement,
        thread=attacked.world.thread_id("t").hex(),
        basis=attacked.fresh().release().basis,
        requester="worker",
    )
    with attacked.landing():
        shown = _request_of(attacked).differences
        body = RequestBody(salt=attacked.salt, statement=statement, differences=shown)
        attacked.slip(Kind.REQUEST, body, "worker")
    found = attacked.world.open("ann", gated=True).requests().requests
    assert [each.id for each in found] == [rollout.id]


def test_a_plan_shows_no_name_that_the_slot_does_not_prove(attacked: AttackedTeam) -> None:
    """A genesis that was edited, or a body that was taken away, is a failure and no name."""
    _rolled_out(attacked)
    with attacked.landing():
        row = attacked.rows()[0]
        edited = (row.body or b"").replace(b'"name":"t"', b'"name":"scratch"')
        attacked.put({0: Record(row.header, row.seals, edited)})
        newest = attacked.find(Kind.CHECKPOINT, "u")
        row = attacked.rows("u")[newest]
        attacked.put({newest: Record(row.header, row.seals, None)}, "u")
    plan = attacked.world.open("operator", gated=True).rollouts.plan(SHELL)
    assert (plan.worlds, plan.empty, plan.failed) == ((), 0, 2)


def test_less_is_asked_about_inside_a_session_too(attacked: AttackedTeam) -> None:
    """A policy that wants people for a narrower world gets them, also after a resume."""
    attacked.apply(policy(narrower_world="approve 2"))
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    assert attacked.ending(lambda: attacked.thread().save({"n": 2}, world=NARROW)) is ResumeRefused
    attacked.apply(policy(narrower_world="record"))
    attacked.fresh().resume(world=READ)
    attacked.thread().load()
    attacked.fresh().save({"n": 2}, world=NARROW)


@pytest.mark.parametrize("lie", ["too many people", "a person nobody knows", "a refused change"])
def test_what_nobody_can_approve_is_in_nobodys_way(attacked: AttackedTeam, lie: str) -> None:
    """A stolen worker's key would keep everybody from proposing a change."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    operator = attacked.store("operator")
    if lie == "a refused change":
        attacked.world.apply(policy(model="refuse"))
        operator = attacked.world.open("operator", gated=True)
    honest = operator.rollouts.propose([(READ, SHELL)], reason="release 42")
    operator.rollouts.revoke(honest.id, reason="not yet")
    statement = msgspec.structs.replace(honest.statement, requester="worker", nonce="0" * 32)
    shown = _request_of(attacked).differences
    if lie == "too many people":
        statement = msgspec.structs.replace(statement, needed=16)
    elif lie == "a person nobody knows":
        statement = msgspec.structs.replace(statement, actor="nobody")
    else:
        shown = (("model.name", (), ("other",)), *shown)
        statement = msgspec.structs.replace(statement, differences=shown_differences(shown))
    body = RequestBody(salt=attacked.salt, statement=statement, differences=shown)
    with attacked.landing():
        attacked.slip(Kind.REQUEST, body, "worker", ROLLOUTS)
    assert operator.rollouts.get(statement.digest).status is Status.OPEN
    attacked.approve(operator.rollouts.propose([(READ, SHELL)], reason="release 42"))

    attacked.fresh().resume(world=SHELL)


def test_a_difference_that_is_none_is_no_rollout(attacked: AttackedTeam) -> None:
    """A member names something that no world has; it is ignored, and others are still ended."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    good = attacked.store("operator").rollouts.propose([(READ, SHELL)], reason="release 42")
    attacked.approve(good, "ann", "bob")
    statement = msgspec.structs.replace(
        good.statement,
        requester="worker",
        nonce="0" * 32,
        differences=(("engine.fast", None, value_digest(1)),),
    )
    body = RequestBody(
        salt=attacked.salt, statement=statement, differences=(("engine.fast", (), (1,)),)
    )
    with attacked.landing():
        attacked.slip(Kind.REQUEST, body, "worker", ROLLOUTS)

    assert [each.id for each in attacked.store("operator").rollouts.list()] == [good.id]
    attacked.store("ann").deny(good.id, reason="it leaks")
    with pytest.raises(NeedsApproval):
        attacked.fresh().resume(world=SHELL)


# ---------------------------------------------------------------------- differences

_MAIL: dict[str, Any] = {"tools": [{"name": "read"}, {"name": "mail"}]}
_BOTH: dict[str, Any] = {"tools": [{"name": "read"}, {"name": "mail"}, {"name": "shell"}]}
_WIDE: dict[str, Any] = {"tools": [{"name": "read"}, {"name": "shell", "description": "as root"}]}


def _accepted(attacked: AttackedTeam, before: Any, after: Any) -> Request:
    found = attacked.store("operator").rollouts.propose([(before, after)], reason="a release")
    attacked.approve(found, "ann", "bob")
    return found


def test_a_rollout_of_one_difference_is_none_of_another(attacked: AttackedTeam) -> None:
    """The same tool with another description, another tool, and one more tool are not accepted."""
    _rolled_out(attacked, "ann", "bob")

    for world in (_WIDE, _MAIL, _BOTH):
        assert attacked.ending(lambda: attacked.fresh().resume(world=world)) is NeedsApproval  # noqa: B023
    _twin_passes(attacked)


def test_what_a_value_was_before_counts(attacked: AttackedTeam) -> None:
    """People saw what changes from A to B: a thread with X there is asked about by itself."""
    _accepted(attacked, SHELL, _WIDE)
    attacked.thread(name="u").save({"n": 1}, id="c1", world=SHELL)

    odd: dict[str, Any] = {"tools": [{"name": "read"}, {"name": "shell", "description": "odd"}]}
    attacked.thread(name="v").save({"n": 1}, id="c1", world=odd)
    assert attacked.ending(lambda: attacked.fresh(name="v").resume(world=_WIDE)) is NeedsApproval
    attacked.fresh(name="u").resume(world=_WIDE)
    attacked.check_sound()


def test_two_rollouts_accept_together_until_one_is_revoked(attacked: AttackedTeam) -> None:
    """The entry carries both, and without one of them people are asked."""
    for name in ("t", "u"):
        attacked.thread(name=name).save({"n": 1}, id="c1", world=READ)
    one, other = _accepted(attacked, READ, SHELL), _accepted(attacked, READ, _MAIL)
    attacked.fresh().resume(world=_BOTH)
    carried = attacked.newest(Kind.RESUME).rollouts
    attacked.store("carl").rollouts.revoke(other.id, reason="it writes to customers")

    assert {each.digest for each in carried} == {one.id, other.id}
    assert attacked.ending(lambda: attacked.fresh(name="u").resume(world=_BOTH)) is NeedsApproval
    attacked.check_sound()


def test_a_resume_that_leaves_out_one_of_two_rollouts_is_found_out(attacked: AttackedTeam) -> None:
    """The rest of the differences is judged without it."""
    for name in ("t", "u"):
        attacked.thread(name=name).save({"n": 1}, id="c1", world=READ)
    _accepted(attacked, READ, SHELL)
    _accepted(attacked, READ, _MAIL)
    attacked.fresh(name="u").resume(world=_BOTH)
    honest = attacked.body(attacked.find(Kind.RESUME, "u"), "u")
    release = attacked.fresh().release()
    body = msgspec.structs.replace(
        honest,
        basis=attacked.find(Kind.CHECKPOINT),
        checkpoint=release.entry,
        release=release.digest,
        rollouts=honest.rollouts[:1],
    )
    attacked.append(attacked.forged(Kind.RESUME, body, "worker", at=attacked.world.clock))
    attacked.fresh().load()

    assert "would not allow" in _findings(attacked)


def test_a_stricter_policy_ends_what_fewer_people_accepted(attacked: AttackedTeam) -> None:
    """A rollout was made under a policy that asked one person; the next asks two."""
    attacked.apply(policy(needed=1))
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    rollout = attacked.store("operator").rollouts.propose([(READ, SHELL)], reason="a release")
    attacked.approve(rollout, "ann")
    attacked.apply(policy())

    assert attacked.resumed() is NeedsApproval
    assert attacked.store("operator").rollouts.get(rollout.id).status is Status.VOID


def test_a_restore_that_loses_nothing_of_the_book_leaves_rollouts(attacked: AttackedTeam) -> None:
    """They accept capabilities and no state; the cut thread is still asked about by its rule."""
    attacked.apply(policy(after_restore="record"))
    _rolled_out(attacked, "ann", "bob")
    _restore_without(attacked, "t")

    attacked.fresh().resume(world=SHELL)
    attacked.fresh(name="u").resume(world=SHELL)
    attacked.check_sound()


def test_a_rollout_that_was_revoked_stays_so_after_a_restore(attacked: AttackedTeam) -> None:
    """Its list of positions is of longer threads: a cut thread does not count as before its end."""
    attacked.apply(policy(after_restore="record"))
    rollout = _rolled_out(attacked, "ann", "bob")
    attacked.fresh(name="u").resume(world=SHELL)
    honest = attacked.body(attacked.find(Kind.RESUME, "u"), "u")
    held = attacked.world.clock
    short = dict(attacked.rows())
    for number in range(3):
        attacked.thread().save({"n": number}, world=READ)
    attacked.store("carl").rollouts.revoke(rollout.id, reason="leaks data")
    attacked.editor.put_rows(attacked.world.thread_id("t"), short)
    _accept_restore(attacked)
    assert attacked.resumed() is NeedsApproval
    with attacked.landing():
        _backdate(attacked, honest, held)

    assert "it had ended before a restore" in _findings(attacked)
