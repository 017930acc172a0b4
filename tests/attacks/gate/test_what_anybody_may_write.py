# SPDX-License-Identifier: Apache-2.0
"""What anybody of the namespace may write: it moves no clock, stops nobody and fills nothing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.audit import UNJUSTIFIED
from sealpoint.errors import NeedsApproval, NotTrusted
from sealpoint.gate import Request, Status
from sealpoint.ledger import Body, ExpiryBody, Kind, VerdictBody, parse_header
from sealpoint.signing import Role, RosterDocument, Verdict, attest
from tests.attacks.gate.raid import Raid
from tests.ledgers import identity, key
from tests.unit.gate.team import READ, SHELL

_FAR = datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC)
_RELAYED = (Kind.APPROVAL, Kind.DENIAL, Kind.EXPIRY)


def _slipped(raid: Raid, kind: Kind, body: Body | bytes, at: datetime | None = None) -> None:
    """Append an entry of an auditor, under the newest roster and at a time of its choice."""
    fields: dict[str, Any] = {"roster": raid.store().core.renewed_trust().roster.seq}
    if at is not None:
        fields["at"] = at
    raid.append(raid.forged(kind, body, "reader", **fields))


def _empty(raid: Raid, kind: Kind) -> Body:
    """The body of such an entry that is about no request."""
    if kind is Kind.EXPIRY:
        return ExpiryBody(salt=raid.salt, request="00" * 32)
    verdict = Verdict.APPROVE if kind is Kind.APPROVAL else Verdict.DENY
    word = attest(key("reader"), "00" * 32, verdict, "of no request")
    return VerdictBody(salt=raid.salt, attestation=word)


def _audited(raid: Raid) -> Raid:
    raid.world.enrol(identity("reader", Role.AUDITOR))
    return raid


# ---------------------------------------------------------------------- time


@pytest.mark.parametrize("kind", _RELAYED)
def test_an_auditors_clock_far_ahead_ends_nothing(raid: Raid, kind: Kind) -> None:
    """Neither a grant nor a key: both are still good, and a request can still be made."""
    _audited(raid)
    raid.waiting("ann", "bob")

    def until_2090(document: RosterDocument) -> RosterDocument:
        ends = _FAR - timedelta(days=3650)
        return replace(
            document,
            identities=tuple(
                replace(each, keys=tuple(replace(held, expires=ends) for held in each.keys))
                for each in document.identities
            ),
        )

    raid.enter(until_2090)
    with raid.landing():
        _slipped(raid, kind, _empty(raid, kind), _FAR)

    assert raid.fresh("ann").requests()[0].status is Status.APPROVED
    worker = raid.fresh()
    assert worker.resume(world=SHELL).state == {"n": 2}
    assert worker.save({"n": 3}).seq == len(raid.kinds()) - 1
    assert raid.resumed(world={"permissions": ["more"]}) is NeedsApproval
    assert raid.newest(Kind.REQUEST).statement.expires < _FAR


@pytest.mark.parametrize("kind", _RELAYED)
def test_an_auditors_clock_turned_back_revives_nothing(raid: Raid, kind: Kind) -> None:
    """An operator wrote after the expiry; a backdated entry on top does not hide that."""
    _audited(raid)
    request = raid.waiting("ann", "bob")
    start = raid.world.clock
    written = parse_header(raid.rows()[len(raid.rows()) - 1].header).at
    raid.later(hours=2)
    raid.thread("operator").pause("late")
    raid.thread("operator").unpause("still late")
    with raid.landing():
        _slipped(raid, kind, _empty(raid, kind), written)
    raid.world.clock = start

    assert raid.resumed() is NeedsApproval
    assert raid.newest(Kind.REQUEST).statement.digest != request.id


def test_an_auditor_ends_no_request_by_a_wrong_clock(raid: Raid) -> None:
    """Its word that the request has expired does not count, at whatever time it is given."""
    _audited(raid)
    request = raid.waiting("ann", "bob")
    with raid.landing():
        _slipped(raid, Kind.EXPIRY, ExpiryBody(salt=raid.salt, request=request.id), _FAR)

    assert raid.fresh("ann").requests()[0].status is Status.APPROVED
    assert raid.fresh().resume(world=SHELL).state == {"n": 2}


# ---------------------------------------------------------------------- nonsense


@pytest.mark.parametrize("body", [b"{}", b"\xff\x00", b""])
@pytest.mark.parametrize("kind", _RELAYED)
def test_sealed_nonsense_stops_nobody(raid: Raid, kind: Kind, body: bytes) -> None:
    """Whoever reads, lists, asks, spends or gives away goes on; the audit tells who wrote it."""
    _audited(raid)
    raid.waiting("ann", "bob")
    with raid.landing():
        _slipped(raid, kind, body)

    assert raid.fresh().load().state == {"n": 2}
    assert raid.world.open("ann", gated=True).requests().failures == ()
    assert raid.fresh("ann").requests()[0].status is Status.APPROVED
    assert raid.resumed("operator") is NotTrusted
    handoff = partial(raid.fresh("operator").handoff, to="spare", reason="gone")
    assert raid.ending(handoff) is NeedsApproval
    assert raid.fresh().resume(world=SHELL).state == {"n": 2}
    report = raid.world.open("operator", gated=True).verify()
    assert [(each.code, each.refuses) for each in report.findings] == [(UNJUSTIFIED, False)]
    assert f"expected the fields of a {kind}" in report.findings[0].message


def test_sealed_nonsense_does_not_stop_a_save(raid: Raid) -> None:
    """Nor the session that a save begins by itself."""
    _audited(raid)
    raid.thread().save({"n": 1}, world=READ)
    _slipped(raid, Kind.APPROVAL, b"{}")
    raid.thread().save({"n": 2})
    _slipped(raid, Kind.DENIAL, b"{}")

    assert raid.fresh().save({"n": 3}, world=READ).seq == len(raid.rows()) - 1


# ---------------------------------------------------------------------- many


def _asked_handoff(raid: Raid) -> tuple[Request, Callable[[], int]]:
    raid.thread().save({"n": 1}, world=READ)

    def handoff() -> int:
        return raid.fresh("operator").handoff(to="spare", reason="gone")

    with pytest.raises(NeedsApproval) as needs:
        handoff()
    assert isinstance(needs.value.request, Request)
    return needs.value.request, handoff


def test_a_word_is_relayed_once(raid: Raid) -> None:
    """The same attestation again adds nothing, whoever brings it; it says where it lies."""
    request = raid.waiting()
    word = attest(key("ann"), request.id, Verdict.APPROVE, "looked")
    first = raid.store("officer").relay(word)
    before = raid.everything()
    again = [raid.store(who).relay(word) for who in ("officer", "worker", "ann", "officer")]

    assert raid.kinds().count("approval") == 1
    assert set(again) == {first}
    assert raid.everything() == before


def test_a_handoff_carries_only_what_counts(raid: Raid) -> None:
    """Words of others, copies and second words of a person are left out of its body."""
    _audited(raid)
    request, handoff = _asked_handoff(raid)
    raid.approve(request, "ann")
    genuine = raid.body(raid.find(Kind.APPROVAL))
    for _ in range(3):
        _slipped(raid, Kind.APPROVAL, genuine)
    for who, reason in (("reader", "me too"), ("stranger", "x" * 4000), ("operator", "mine")):
        word = attest(key(who), request.id, Verdict.APPROVE, reason)
        _slipped(raid, Kind.APPROVAL, VerdictBody(salt=raid.salt, attestation=word))
    second = attest(key("ann"), request.id, Verdict.APPROVE, "once more")
    _slipped(raid, Kind.APPROVAL, VerdictBody(salt=raid.salt, attestation=second))
    raid.approve(request, "bob")
    raid.world.close()
    handoff()
    found = raid.newest(Kind.HANDOFF).attestations

    assert [word.credential for word in found] == [key("ann").key, key("bob").key]
    assert found[0].reason == "ann has looked"
