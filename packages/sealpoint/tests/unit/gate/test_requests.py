# SPDX-License-Identifier: Apache-2.0
"""What a request has become: by the newest roster, the policy in force and the hour."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.gate import Measure, Policy, Status
from sealpoint.gate._requests import Asked, grant_of, make_request
from sealpoint.ledger import Entry, Header, Kind, RequestBody
from sealpoint.signing import Action, Identity, Role, Roster, Statement, Verdict, attest
from tests.ledgers import SALT, identity, key, roster
from tests.unit.gate.judging import policy

_START = datetime(2026, 1, 1, tzinfo=UTC)
_EXPIRES = _START + timedelta(hours=1)
_DIGEST = "ab" * 32
_POLICY = policy()
_STATEMENT = Statement(
    store="11" * 16,
    ns="default",
    thread="22" * 16,
    epoch=0,
    gen=0,
    basis=_DIGEST,
    action=Action.RESUME,
    checkpoint=_DIGEST,
    release="ab" * 32,
    world_from=None,
    world_to=None,
    answer=None,
    to=None,
    differences=(),
    requester="worker",
    actor=None,
    policy=_POLICY.digest,
    needed=2,
    nonce="33" * 16,
    expires=_EXPIRES,
    reason="a release",
)
_HEADER = Header(
    store=_STATEMENT.store,
    epoch=0,
    ns="default",
    thread=_STATEMENT.thread,
    gen=0,
    seq=3,
    prev=_DIGEST,
    skip=_DIGEST,
    kind=Kind.REQUEST,
    fence=1,
    pause=0,
    owner=0,
    roster=0,
    at=_START,
    by=_DIGEST,
    body=_DIGEST,
)
_CHIEF = replace(identity("chief", Role.OPERATOR), break_glass=True)
_GLASS = ("chief", Verdict.BREAK_GLASS)


def _roster(*others: Identity) -> Roster:
    people = [identity(name, Role.APPROVER) for name in ("ann", "bob", "carl")]
    return Roster(roster(identity("worker"), *people, *others), seq=0)


def _asked(*words: tuple[str, Verdict], about: Statement = _STATEMENT, **more: Any) -> Asked:
    return Asked(
        id=about.digest,
        entry=Entry(b"", _HEADER, "worker", bytes(32)),
        body=RequestBody(salt=SALT, statement=about),
        attestations=tuple(
            attest(key(who), about.digest, verdict, "looked") for who, verdict in words
        ),
        relayed=tuple(range(1, len(words) + 1)),
        **more,
    )


@pytest.mark.parametrize(
    ("breaker", "counts"),
    [
        (_CHIEF, True),
        (identity("other", Role.OPERATOR), False),
        (replace(_CHIEF, break_glass=False), False),
        (replace(_CHIEF, roles=(Role.APPROVER,)), False),
        (replace(_CHIEF, namespaces=("billing",)), False),
    ],
    ids=["marked", "gone", "unmarked", "no-operator", "elsewhere"],
)
def test_broken_glass_counts_by_the_newest_roster(breaker: Identity, *, counts: bool) -> None:
    """Whoever may not do it any more has let nothing pass, whatever the roster of that time."""
    found = grant_of(_asked(_GLASS), _roster(breaker), _START)

    assert found.broken_glass == ("chief: looked" if counts else None)


def test_glass_that_nobody_broke_is_whole() -> None:
    """Also where somebody could have."""
    assert grant_of(_asked(), _roster(_CHIEF), _START).broken_glass is None


@pytest.mark.parametrize(
    ("now", "recorded", "expired"),
    [
        (_EXPIRES - timedelta(microseconds=1), False, False),
        (_EXPIRES, False, True),
        (_EXPIRES + timedelta(microseconds=1), False, True),
        (_START, True, True),
    ],
    ids=["before", "then", "after", "recorded"],
)
def test_a_request_expires_at_its_moment(now: datetime, *, recorded: bool, expired: bool) -> None:
    """Or earlier by the clock, if its end was recorded."""
    assert grant_of(_asked(expired=recorded), _roster(), now).expired is expired


def test_glass_is_broken_for_one_resume_alone() -> None:
    """A handoff and a rollout always need their approvals."""
    differences = (("tool.pay", None, "22" * 32),)
    handoff = replace(_STATEMENT, action=Action.HANDOFF, release=None, to="second")
    rolled: dict[str, Any] = {"action": Action.ROLLOUT, "checkpoint": None, "release": None}
    rollout = replace(_STATEMENT, differences=differences, **rolled)
    found = [
        grant_of(_asked(_GLASS, about=about), _roster(_CHIEF), _START)
        for about in (_STATEMENT, handoff, rollout)
    ]

    assert [each.broken_glass for each in found] == ["chief: looked", None, None]
    assert [each.needed for each in found] == [2, 2, 2]


_YES = [(who, Verdict.APPROVE) for who in ("ann", "bob", "carl")]
_NO = ("carl", Verdict.DENY)


@pytest.mark.parametrize(
    ("asked", "rules", "now", "status"),
    [
        (_asked(), _POLICY, _START, Status.OPEN),
        (_asked(_YES[0]), _POLICY, _START, Status.OPEN),
        (_asked(*_YES[:2]), _POLICY, _START, Status.APPROVED),
        (_asked(*_YES), _POLICY, _START, Status.APPROVED),
        (_asked(_GLASS), _POLICY, _START, Status.APPROVED),
        (_asked(("ann", Verdict.BREAK_GLASS)), _POLICY, _START, Status.OPEN),
        (_asked(*_YES[:2], _NO), _POLICY, _START, Status.DENIED),
        (_asked(*_YES[:2], _NO), _POLICY, _EXPIRES, Status.DENIED),
        (_asked(*_YES[:2]), _POLICY, _EXPIRES, Status.EXPIRED),
        (_asked(*_YES[:2]), None, _EXPIRES, Status.EXPIRED),
        (_asked(*_YES[:2]), None, _START, Status.VOID),
        (_asked(*_YES[:2]), policy(Measure.approve(2)), _START, Status.VOID),
        (_asked(_GLASS), None, _START, Status.VOID),
    ],
)
def test_a_request_is_shown_as_it_stands(
    asked: Asked, rules: Policy | None, now: datetime, status: Status
) -> None:
    """A denial before an end, an end before a change of the policy, and that before approvals."""
    found = make_request(asked, "t", roster=_roster(_CHIEF), policy=rules, now=now)

    assert found.status is status
    assert found.needed == 2
    assert (found.id, found.thread, found.asked_at) == (_STATEMENT.digest, "t", _START)
