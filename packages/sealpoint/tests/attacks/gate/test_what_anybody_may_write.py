# SPDX-License-Identifier: Apache-2.0
"""What anybody of the namespace may write: it moves no clock, stops nobody and fills nothing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.audit import UNJUSTIFIED
from sealpoint.errors import NeedsApproval, NoRight, ResumeRefused
from sealpoint.gate import Request, Status
from sealpoint.ledger import Body, ExpiryBody, Kind, VerdictBody, parse_header
from sealpoint.signing import Role, RosterDocument, Verdict, attest
from sealpoint.storage import Record
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import identity, key
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.backup import accepted, planned

_FAR = datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC)
_RELAYED = (Kind.APPROVAL, Kind.DENIAL, Kind.EXPIRY)


def _slipped(
    attacked: AttackedTeam, kind: Kind, body: Body | bytes, at: datetime | None = None
) -> None:
    """Append an entry of an auditor, under the newest roster and at a time of its choice."""
    fields: dict[str, Any] = {"roster": attacked.store().core.renewed_trust().roster.seq}
    if at is not None:
        fields["at"] = at
    attacked.append(attacked.forged(kind, body, "reader", **fields))


def _empty(attacked: AttackedTeam, kind: Kind) -> Body:
    """The body of such an entry that is about no request."""
    if kind is Kind.EXPIRY:
        return ExpiryBody(salt=attacked.salt, request="00" * 32)
    verdict = Verdict.APPROVE if kind is Kind.APPROVAL else Verdict.DENY
    word = attest(key("reader"), "00" * 32, verdict, "of no request")
    return VerdictBody(salt=attacked.salt, attestation=word)


def _audited(attacked: AttackedTeam) -> AttackedTeam:
    attacked.world.enrol(identity("reader", Role.AUDITOR))
    return attacked


# ---------------------------------------------------------------------- time


@pytest.mark.parametrize("kind", _RELAYED)
def test_an_auditors_clock_far_ahead_ends_nothing(attacked: AttackedTeam, kind: Kind) -> None:
    """Neither a grant nor a key: both are still good, and a request can still be made."""
    _audited(attacked)
    attacked.waiting("ann", "bob")

    def until_2090(document: RosterDocument) -> RosterDocument:
        ends = _FAR - timedelta(days=3650)
        return replace(
            document,
            identities=tuple(
                replace(each, keys=tuple(replace(held, expires=ends) for held in each.keys))
                for each in document.identities
            ),
        )

    attacked.enter(until_2090)
    with attacked.landing():
        _slipped(attacked, kind, _empty(attacked, kind), _FAR)

    assert attacked.fresh("ann").requests()[0].status is Status.APPROVED
    worker = attacked.fresh()
    assert worker.resume(world=SHELL).state == {"n": 2}
    assert worker.save({"n": 3}).seq == len(attacked.kinds()) - 1
    assert attacked.resumed(world={"permissions": ["more"]}) is NeedsApproval
    assert attacked.newest(Kind.REQUEST).statement.expires < _FAR


@pytest.mark.parametrize("kind", _RELAYED)
def test_an_auditors_clock_turned_back_revives_nothing(attacked: AttackedTeam, kind: Kind) -> None:
    """An operator wrote after the expiry; a backdated entry on top does not hide that."""
    _audited(attacked)
    request = attacked.waiting("ann", "bob")
    start = attacked.world.clock
    written = parse_header(attacked.rows()[len(attacked.rows()) - 1].header).at
    attacked.later(hours=2)
    attacked.thread("operator").pause("late")
    attacked.thread("operator").unpause("still late")
    with attacked.landing():
        _slipped(attacked, kind, _empty(attacked, kind), written)
    attacked.world.clock = start

    assert attacked.resumed() is NeedsApproval
    assert attacked.newest(Kind.REQUEST).statement.digest != request.id


def test_an_auditor_ends_no_request_by_a_wrong_clock(attacked: AttackedTeam) -> None:
    """Its word that the request has expired does not count, at whatever time it is given."""
    _audited(attacked)
    request = attacked.waiting("ann", "bob")
    with attacked.landing():
        _slipped(attacked, Kind.EXPIRY, ExpiryBody(salt=attacked.salt, request=request.id), _FAR)

    assert attacked.fresh("ann").requests()[0].status is Status.APPROVED
    assert attacked.fresh().resume(world=SHELL).state == {"n": 2}


@pytest.mark.parametrize("who", ["worker", "carl", "operator"])
def test_nobody_ends_a_denial_by_a_wrong_clock(attacked: AttackedTeam, who: str) -> None:
    """Who may record that a request is over ends by that no denial of somebody else."""
    request = attacked.waiting()
    attacked.store("ann").deny(request.id, reason="no shell")
    body = ExpiryBody(salt=attacked.salt, request=request.id)
    late = request.statement.expires + timedelta(seconds=1)
    attacked.append(attacked.forged(Kind.EXPIRY, body, who, at=late))

    with pytest.raises(ResumeRefused, match="denied by ann"):
        attacked.fresh().resume(world=SHELL)
    assert attacked.newest(Kind.REQUEST).statement.digest == request.id
    attacked.world.clock = late + timedelta(minutes=1)
    with pytest.raises(NeedsApproval):
        attacked.fresh().resume(world=SHELL)


# ---------------------------------------------------------------------- nonsense


@pytest.mark.parametrize("body", [b"{}", b"\xff\x00", b""])
@pytest.mark.parametrize("kind", _RELAYED)
def test_sealed_nonsense_stops_nobody(attacked: AttackedTeam, kind: Kind, body: bytes) -> None:
    """Whoever reads, lists, asks, spends or gives away goes on; the audit tells who wrote it."""
    _audited(attacked)
    attacked.waiting("ann", "bob")
    with attacked.landing():
        _slipped(attacked, kind, body)

    assert attacked.fresh().load().state == {"n": 2}
    assert attacked.world.open("ann", gated=True).requests().failures == ()
    assert attacked.fresh("ann").requests()[0].status is Status.APPROVED
    assert attacked.resumed("operator") is NoRight
    handoff = partial(attacked.fresh("operator").handoff, to="spare", reason="gone")
    assert attacked.ending(handoff) is NeedsApproval
    assert attacked.fresh().resume(world=SHELL).state == {"n": 2}
    report = attacked.world.open("operator", gated=True).verify()
    assert [(each.code, each.refuses) for each in report.findings] == [(UNJUSTIFIED, False)]
    assert f"expected the fields of a {kind}" in report.findings[0].message


def test_sealed_nonsense_does_not_stop_a_save(attacked: AttackedTeam) -> None:
    """Nor the session that a save begins by itself."""
    _audited(attacked)
    attacked.thread().save({"n": 1}, world=READ)
    _slipped(attacked, Kind.APPROVAL, b"{}")
    attacked.thread().save({"n": 2})
    _slipped(attacked, Kind.DENIAL, b"{}")

    assert attacked.fresh().save({"n": 3}, world=READ).seq == len(attacked.rows()) - 1


# ---------------------------------------------------------------------- many


def _asked_handoff(attacked: AttackedTeam) -> tuple[Request, Callable[[], int]]:
    attacked.thread().save({"n": 1}, world=READ)

    def handoff() -> int:
        return attacked.fresh("operator").handoff(to="spare", reason="gone")

    with pytest.raises(NeedsApproval) as needs:
        handoff()
    assert isinstance(needs.value.request, Request)
    return needs.value.request, handoff


def test_a_word_is_relayed_once(attacked: AttackedTeam) -> None:
    """The same attestation again adds nothing, whoever brings it; it says where it lies."""
    request = attacked.waiting()
    word = attest(key("ann"), request.id, Verdict.APPROVE, "looked")
    first = attacked.store("officer").relay(word)
    before = attacked.everything()
    again = [attacked.store(who).relay(word) for who in ("officer", "worker", "ann", "officer")]

    assert attacked.kinds().count("approval") == 1
    assert set(again) == {first}
    assert attacked.everything() == before


def test_a_handoff_carries_only_what_counts(attacked: AttackedTeam) -> None:
    """Words of others, copies and second words of a person are left out of its body."""
    _audited(attacked)
    request, handoff = _asked_handoff(attacked)
    attacked.approve(request, "ann")
    genuine = attacked.body(attacked.find(Kind.APPROVAL))
    for _ in range(3):
        _slipped(attacked, Kind.APPROVAL, genuine)
    for who, reason in (("reader", "me too"), ("stranger", "x" * 4000), ("operator", "mine")):
        word = attest(key(who), request.id, Verdict.APPROVE, reason)
        _slipped(attacked, Kind.APPROVAL, VerdictBody(salt=attacked.salt, attestation=word))
    second = attest(key("ann"), request.id, Verdict.APPROVE, "once more")
    _slipped(attacked, Kind.APPROVAL, VerdictBody(salt=attacked.salt, attestation=second))
    attacked.approve(request, "bob")
    attacked.world.close()
    handoff()
    found = attacked.newest(Kind.HANDOFF).attestations

    assert [word.credential for word in found] == [key("ann").key, key("bob").key]
    assert found[0].reason == "ann has looked"


# ---------------------------------------------------------------------- signatures that are covered


@pytest.mark.parametrize("between", [0, 70])
def test_a_damaged_signature_that_is_covered_costs_no_work(
    attacked: AttackedTeam, between: int
) -> None:
    """Every reader takes the entry, however far above the cover lies; so does a restore."""
    _audited(attacked).thread().save({"n": 1}, world=READ)
    seq = len(attacked.rows())
    _slipped(attacked, Kind.EXPIRY, _empty(attacked, Kind.EXPIRY))
    junk = attacked.rows()[seq]
    for _ in range(between + 1):
        _slipped(attacked, Kind.EXPIRY, _empty(attacked, Kind.EXPIRY))
    damaged = junk.seals.replace(junk.seals[-20:-4], b"0" * 16)
    attacked.put({seq: Record(junk.header, damaged, junk.body)})
    for n in (2, 3):
        attacked.fresh().resume(world=READ)
        attacked.fresh().save({"n": n}, world=READ)
    length = len(attacked.rows())
    attacked.truncate(length - 1)

    assert [each.kept for each in planned(attacked.world).losses] == [length - 2]
    accepted(attacked.world)
    assert attacked.fresh().load().state == {"n": 2}
