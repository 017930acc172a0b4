# SPDX-License-Identifier: Apache-2.0
"""A member that appends answers to requests without end: reading past them is cheap.

The member has an auditor's key, other code than ours, and appends as fast as it can.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import pytest
from msgspec.structs import replace
from nacl.bindings import crypto_sign_open

from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.audit import UNJUSTIFIED, audit_trail, read_timeline
from sealpoint.errors import Forged, NeedsApproval, NotTrusted, Tampered, UsageError
from sealpoint.gate import ROLLOUTS, Status
from sealpoint.ledger import Entry, Kind, VerdictBody, parse_header
from sealpoint.limits import REQUEST_ANSWERS_MAX
from sealpoint.signing import Role, Verdict, attest, parse_seals
from sealpoint.storage import Record
from sealpoint.store import (
    Chain,
    Core,
    adopt_store_chain,
    adopt_thread,
    enter_copy,
)
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.deployment import SimulatedAnchor
from tests.ledgers import identity, key, seals
from tests.rogue import Rogue
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.backup import planned

_MANY = 300
_NO_REQUEST = "00" * 32


@dataclass
class _Checks:
    """How many signatures were checked."""

    number: int = 0


@contextmanager
def _counted() -> Iterator[_Checks]:
    """Count the signatures of entries that are checked meanwhile."""
    checks = _Checks()

    def check(signed: bytes, public: bytes) -> bytes:
        checks.number += 1
        return crypto_sign_open(signed, public)

    with patch("sealpoint.signing._keys.crypto_sign_open", check):
        yield checks


def _answer(
    attacked: AttackedTeam,
    rows: dict[int, Record],
    request: str = _NO_REQUEST,
    verdict: Verdict = Verdict.APPROVE,
    signer: str = "reader",
    *,
    attester: str | None = None,
) -> None:
    """Add an answer of somebody, recorded by somebody, to rows that are not in the store yet."""
    word = attest(key(attester or signer), request, verdict, "junk")
    kind = Kind.APPROVAL if verdict is Verdict.APPROVE else Kind.DENIAL
    body = VerdictBody(salt=attacked.salt, attestation=word)
    rows[len(rows)] = attacked.forged(kind, body, signer, rows=rows, roster=_roster(attacked))


def _roster(attacked: AttackedTeam) -> int:
    return attacked.store().core.renewed_trust().roster.seq


def _flooded(attacked: AttackedTeam, request: str = _NO_REQUEST, number: int = _MANY) -> None:
    """Append many answers of an auditor."""
    rows = attacked.rows()
    for _ in range(number):
        _answer(attacked, rows, request)
    with attacked.landing():
        attacked.put(dict(rows))


@pytest.fixture
def audited(attacked: AttackedTeam) -> AttackedTeam:
    """A thread of two checkpoints, and an auditor."""
    attacked.world.enrol(identity("reader", Role.AUDITOR))
    attacked.thread().save({"n": 1}, world=READ)
    attacked.thread().save({"n": 2}, world=READ)
    return attacked


# ---------------------------------------------------------------------- cheap


def test_a_pause_checks_few_signatures_of_many_answers(audited: AttackedTeam) -> None:
    """An operator's process that has just been started, and one that was open before."""
    warm = audited.thread("operator")
    warm.load()
    _flooded(audited)
    with _counted() as first:
        audited.fresh("operator").pause("stop")
    with _counted() as second:
        warm.unpause("go on")

    assert first.number < _MANY / 10
    assert second.number < _MANY / 10


def test_a_reader_does_not_follow_who_appends_as_fast_as_it_reads(
    audited: AttackedTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends at what was the newest when it looked; the next look goes on from there."""
    warm = audited.thread("operator")
    warm.load()
    rows = audited.rows()
    known = added = len(rows)
    for _ in range(_MANY):
        _answer(audited, rows)
    storage, thread = audited.store().core.storage, audited.world.thread_id("t")

    def add(number: int) -> None:
        nonlocal added
        for seq in range(added, min(added + number, len(rows))):
            storage.append(thread, seq, [rows[seq]], blobs={})
            added += 1

    verify = Chain.verify

    def verify_slowly(chain: Chain, record: Record, seq: int, *, covered: bool = False) -> Entry:
        add(1)
        return verify(chain, record, seq, covered=covered)

    add(100)
    with monkeypatch.context() as patched:
        patched.setattr(Chain, "verify", verify_slowly)
        first = warm.standing().head_seq
    newest = added - 1

    assert known < first < newest < len(rows) - 1
    assert warm.standing().head_seq == newest


def test_a_resume_checks_few_signatures_of_many_answers(audited: AttackedTeam) -> None:
    """Neither the judging of the head nor that of what nobody vouches for checks each."""
    audited.pool("pods", "worker", "spare")
    audited.thread().handoff(to="pods", reason="shared")
    _flooded(audited)
    audited.fresh("operator").load()
    with _counted() as checks:
        audited.fresh("spare").resume(world=READ)

    assert checks.number < _MANY / 5


def test_answers_to_an_open_request_are_bounded(audited: AttackedTeam) -> None:
    """Those of one key beyond the limit do not count; a later one of an approver does."""
    request = audited.ask()
    _flooded(audited, request.id, REQUEST_ANSWERS_MAX + _MANY)
    audited.approve(request)
    found = audited.fresh("ann").requests()[0]

    assert found.status is Status.APPROVED
    assert len(found.attestations) == REQUEST_ANSWERS_MAX + 2
    assert audited.fresh().resume(world=SHELL).state == {"n": 2}
    assert audited.world.open("operator", gated=True).verify().findings == ()


def test_a_key_does_not_record_more_answers_than_count(audited: AttackedTeam) -> None:
    """Whoever relays with such a key is told, and another key records the answer."""
    request = audited.ask()
    _flooded(audited, request.id, REQUEST_ANSWERS_MAX)
    word = attest(key("ann"), request.id, Verdict.APPROVE, "looked")
    with pytest.raises(UsageError, match="recorded 256 answers"):
        audited.store("reader").relay(word)

    assert audited.store("officer").relay(word) == len(audited.rows()) - 1


def _beyond_the_limit(audited: AttackedTeam, request: str, verdict: Verdict) -> None:
    """Record bob's answer with a key whose limit answers of a revoked key have used up."""
    audited.end("carl")
    rows = audited.rows()
    for _ in range(REQUEST_ANSWERS_MAX):
        _answer(audited, rows, request, attester="carl")
    _answer(audited, rows, request, verdict, attester="bob")
    with audited.landing():
        audited.put(dict(rows))


def test_an_audit_leaves_out_a_denial_that_the_gate_leaves_out(audited: AttackedTeam) -> None:
    """Answers of a revoked key count towards the limit of the key that records them, for both."""
    audited.world.enrol(identity("dora", Role.APPROVER))
    request = audited.ask()
    _beyond_the_limit(audited, request.id, Verdict.DENY)
    audited.approve(request, "ann", "dora")

    assert audited.fresh().resume(world=SHELL).state == {"n": 2}
    assert audited.world.open("operator", gated=True).verify().findings == ()


def test_an_audit_leaves_out_an_approval_that_the_gate_leaves_out(audited: AttackedTeam) -> None:
    """A worker that uses it has not got it, although its person has really approved."""
    request = audited.ask()
    _beyond_the_limit(audited, request.id, Verdict.APPROVE)
    audited.approve(request, "ann")
    with pytest.raises(NeedsApproval, match="1 of 2 approvals"):
        audited.fresh().resume(world=SHELL)
    release, statement = audited.fresh().release(), request.statement
    words = [
        attest(key(who), request.id, Verdict.APPROVE, reason)
        for who, reason in (("ann", "ann has looked"), ("bob", "junk"))
    ]
    rogue = Rogue(audited.store().core, "worker")
    rogue.resume(
        "worker",
        checkpoint=release.entry,
        release=release.digest,
        released=release.seq,
        world=statement.world_to,
        leaves=SHELL,
        policy=audited.digest,
        rules=("tools",),
        request=request.id,
        attestations=tuple(words),
    )
    rogue.anchor()
    findings = audited.world.open("operator", gated=True).verify().findings

    assert {each.code for each in findings} == {UNJUSTIFIED}
    assert any("needed 2 approvals" in each.message for each in findings)


# ---------------------------------------------------------------------- and nothing is believed


def _put(attacked: AttackedTeam, rows: dict[int, Record]) -> None:
    with attacked.landing():
        attacked.put(dict(rows))


def test_answers_of_one_key_do_not_cover_those_of_another(audited: AttackedTeam) -> None:
    """A denial in somebody's name below genuine answers of the auditor is refused."""
    request = audited.ask()
    rows = audited.rows()
    _answer(audited, rows, request.id, Verdict.DENY, "ann")
    last = len(rows) - 1
    rows[last] = replace(rows[last], seals=seals(rows[last].header, key("reader")))
    for _ in range(3):
        _answer(audited, rows)
    _put(audited, rows)

    with pytest.raises(Forged):
        audited.fresh().load()


def test_the_newest_answer_of_a_key_is_checked(audited: AttackedTeam) -> None:
    """Without a genuine one above, nothing covers an answer."""
    rows = audited.rows()
    for _ in range(3):
        _answer(audited, rows)
    last = len(rows) - 1
    rows[last] = replace(rows[last], seals=seals(rows[last].header, key("ann")))
    _put(audited, rows)

    with pytest.raises(Forged):
        audited.fresh().load()


def test_a_covered_entry_needs_its_role(audited: AttackedTeam) -> None:
    """An auditor's request is refused although a genuine answer of the auditor lies above."""
    request = audited.ask()
    rows = audited.rows()
    body = audited.body(audited.find(Kind.REQUEST))
    rows[len(rows)] = audited.forged(
        Kind.REQUEST, body, "reader", rows=rows, roster=_roster(audited)
    )
    _answer(audited, rows, request.id)
    _put(audited, rows)

    with pytest.raises(NotTrusted, match="expected writer or operator"):
        audited.fresh().load()


def test_an_audit_checks_every_signature(audited: AttackedTeam) -> None:
    """A covered answer whose own signature is gone is read past, and is a finding of `verify`."""
    rows = audited.rows()
    for _ in range(3):
        _answer(audited, rows)
    forged = len(rows) - 2
    other = parse_seals(rows[forged + 1].seals)[0]
    assert other.key.raw.hex() == parse_header(rows[forged].header).by
    rows[forged] = replace(rows[forged], seals=rows[forged + 1].seals)
    _put(audited, rows)
    loaded = audited.fresh().load()
    report = audited.world.open("operator", gated=True).verify()

    assert loaded.state == {"n": 2}
    assert {each.code for each in report.findings} == {"forged"}


# ---------------------------------------------------------------------- damaged and covered

_AROUND = 20
"""More than a chain remembers having verified."""


def _damaged(record: Record, damage: str) -> Record:
    if damage == "seals":
        return replace(record, seals=b"no seals")
    return replace(record, seals=record.seals[:-20] + b"0" * 16 + record.seals[-4:])


def _plant(
    attacked: AttackedTeam,
    request: str = _NO_REQUEST,
    *,
    name: str = "t",
    damage: str = "signature",
    number: int = 1,
    covered: bool = True,
) -> None:
    """Append answers of an auditor with damaged signatures, and some genuine ones around them."""
    rows = attacked.rows(name)
    for _ in range(_AROUND):
        _answer(attacked, rows, request)
    for _ in range(number):
        _answer(attacked, rows, request)
        rows[len(rows) - 1] = _damaged(rows[len(rows) - 1], damage)
    for _ in range(_AROUND if covered else 0):
        _answer(attacked, rows, request)
    with attacked.landing():
        attacked.put(dict(rows), name)


def _findings(attacked: AttackedTeam) -> set[str]:
    return {each.code for each in attacked.world.open(None, read_only=True).verify().findings}


@pytest.mark.parametrize("damage", ["signature", "seals"])
def test_a_covered_answer_stops_no_request(audited: AttackedTeam, damage: str) -> None:
    """What a load and the plan of a restore read past, a list, an approval and a resume do too."""
    request = audited.ask()
    audited.approve(request, "ann")
    _plant(audited, request.id, damage=damage)
    listed = audited.fresh("bob").requests()
    audited.world.open("bob", gated=True).approve(request.id, reason="looked")
    resumed = audited.fresh().resume(world=SHELL)

    assert [each.approved_by for each in listed] == [("ann",)]
    assert resumed.state == {"n": 2}
    assert not planned(audited.world).losses
    assert _findings(audited) <= {"forged", "edited"}
    assert not audited.store().verify().ok


@pytest.mark.parametrize("damage", ["signature", "seals"])
def test_what_nothing_covers_stops_readers_and_is_cut(audited: AttackedTeam, damage: str) -> None:
    """A load, a list of requests and the plan of a restore say the same of it."""
    request = audited.ask()
    _plant(audited, request.id, damage=damage, covered=False)

    with pytest.raises(Tampered):
        audited.fresh().load()
    with pytest.raises(Tampered):
        audited.fresh("bob").requests()
    assert [each.kept for each in planned(audited.world).losses] == [len(audited.rows()) - 2]


def test_many_covered_answers_are_cheap(audited: AttackedTeam) -> None:
    """Each is looked at a few times, however many lie below the one that covers them."""
    request = audited.ask()
    _plant(audited, request.id, number=_MANY)
    reader = audited.fresh("bob")
    with _counted() as checks:
        reader.requests()

    assert checks.number < 4 * _MANY


def test_a_covered_answer_changes_no_judgement_of_a_world(audited: AttackedTeam) -> None:
    """Another member goes on from a session that spent a grant, or used a rollout."""
    audited.pool("pods", "worker", "spare")
    audited.thread().handoff(to="pods", reason="shared")
    audited.fresh().resume(world=READ)
    audited.fresh().save({"n": 3}, world=READ)
    request = audited.ask()
    audited.approve(request, "ann", "bob")
    _plant(audited, request.id)
    worker = audited.fresh()
    worker.resume(world=SHELL)
    worker.save({"n": 4}, world=SHELL)
    resumed = audited.fresh("spare").resume(world=SHELL)

    assert resumed.state == {"n": 4}
    assert audited.newest(Kind.RESUME).request is None
    assert _findings(audited) == {"forged"}


def test_a_covered_answer_in_the_book_accuses_nobody(audited: AttackedTeam) -> None:
    """A change that a rollout let pass is not compared from the world before it."""
    audited.pool("pods", "worker", "spare")
    audited.thread().handoff(to="pods", reason="shared")
    rollout = audited.store("operator").rollouts.propose([(READ, SHELL)], reason="release 42")
    audited.approve(rollout, "ann", "bob")
    worker = audited.fresh()
    worker.resume(world=SHELL)
    worker.save({"n": 3}, world=SHELL)
    _plant(audited, rollout.id, name=ROLLOUTS)
    warm = audited.world.open("spare", gated=True)
    warm.rollouts.list()
    resumed = warm.thread("t").resume(world=SHELL)
    other = audited.world.open("bob", gated=True)
    other.rollouts.list()
    other.deny(rollout.id, reason="leaks")

    assert resumed.state == {"n": 3}
    assert audited.newest(Kind.RESUME).rollouts == ()
    assert _findings(audited) == {"forged"}


def test_a_covered_answer_keeps_no_machine_out(audited: AttackedTeam) -> None:
    """Another anchor adopts the thread, a copy in memory enters it, an audit shows all of it."""
    request = audited.ask()
    audited.approve(request, "ann", "bob")
    _plant(audited, request.id)
    worker = audited.fresh()
    worker.resume(world=SHELL)
    worker.save({"n": 3}, world=SHELL)
    thread, length = audited.world.thread_id("t"), len(audited.rows())
    trail = list(audit_trail(audited.store().core, thread="t"))
    page = read_timeline(audited.store("ann").core, "t", length - 2 * _AROUND - 9, 2 * _AROUND)

    def elsewhere() -> Core:
        core = audited.world.core("operator", anchor=SimulatedAnchor(MemoryAnchor(), closes=False))
        adopt_store_chain(core, "another machine")
        return core

    enter_copy(elsewhere(), "t", thread)
    assert adopt_thread(elsewhere(), "t", thread, "moved") == length
    assert len(trail) == length
    assert not any(each.finding for each in trail)
    assert (len(page.entries), page.finding) == (2 * _AROUND, None)
    assert audited.store().why(request.id[:8]).decision
