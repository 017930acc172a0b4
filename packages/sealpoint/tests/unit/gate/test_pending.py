# SPDX-License-Identifier: Apache-2.0
"""What entries make of requests: who has a say, until when, and what is left out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.gate._requests import Asked, RequestsById, fold_entry, grant_of
from sealpoint.ledger import (
    Body,
    Entry,
    ExpiryBody,
    Header,
    Kind,
    RequestBody,
    StoreChain,
    VerdictBody,
)
from sealpoint.signing import Action, Role, Roster, Statement, Verdict, attest
from tests.ledgers import SALT, identity, key, pin, roster

_START = datetime(2026, 1, 1, tzinfo=UTC)
_EXPIRES = _START + timedelta(hours=1)
_BEFORE, _AFTER = _EXPIRES - timedelta(microseconds=1), _EXPIRES + timedelta(microseconds=1)
_BASIS, _OTHER = "ab" * 32, "cd" * 32
_ROSTER = Roster(
    roster(
        identity("worker"),
        identity("second"),
        identity("ann", Role.APPROVER),
        identity("operator", Role.OPERATOR),
        replace(identity("chief", Role.OPERATOR), break_glass=True),
        identity("officer", Role.PRIVACY),
        identity("far", Role.APPROVER, namespaces=("billing",)),
    ),
    seq=0,
)
_TRUST = StoreChain(pin(), rosters=(_ROSTER,))
_STATEMENT = Statement(
    store="11" * 16,
    ns="default",
    thread="22" * 16,
    epoch=0,
    gen=0,
    basis=_BASIS,
    action=Action.RESUME,
    checkpoint=_OTHER,
    release=_OTHER,
    world_from=None,
    world_to=None,
    answer=None,
    to=None,
    differences=(),
    requester="worker",
    actor=None,
    policy=None,
    needed=1,
    nonce="33" * 16,
    expires=_EXPIRES,
    reason="a release",
)


def _entry(kind: Kind, who: str, at: datetime = _START, seq: int = 3) -> Entry:
    header = Header(
        store=_STATEMENT.store,
        epoch=0,
        ns=_STATEMENT.ns,
        thread=_STATEMENT.thread,
        gen=0,
        seq=seq,
        prev=_BASIS,
        skip=_BASIS,
        kind=kind,
        fence=1,
        pause=0,
        owner=0,
        roster=0,
        at=at,
        by=_OTHER,
        body=_OTHER,
    )
    return Entry(b"", header, who, bytes(32))


def _fold(asked: RequestsById, entry: Entry, body: Body, *, trust: StoreChain = _TRUST) -> None:
    fold_entry(asked, entry, body, basis=_BASIS, epoch=0, trust=trust)


def _asked(**changes: Any) -> RequestsById:
    found = RequestsById()
    statement = replace(_STATEMENT, **changes)
    _fold(found, _entry(Kind.REQUEST, "worker"), RequestBody(salt=SALT, statement=statement))
    return found


def _the(asked: RequestsById) -> Asked:
    assert list(asked) == [_STATEMENT.digest]
    return asked[_STATEMENT.digest]


@pytest.mark.parametrize(
    "changes",
    [
        {"store": "44" * 16},
        {"ns": "billing"},
        {"thread": "44" * 16},
        {"epoch": 1},
        {"gen": 1},
        {"basis": _OTHER},
        {"requester": "second"},
        {"answer": _OTHER},
        {"world_to": _OTHER},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_request_that_says_anything_else_than_its_place_is_left_out(
    changes: dict[str, Any],
) -> None:
    """Each field that binds it is compared, and what people are shown as well."""
    assert list(_asked()) == [_STATEMENT.digest]
    assert _asked(**changes) == {}


def test_a_request_that_shows_no_world_is_left_out() -> None:
    """What cannot be shown to people as a world binds none."""
    found = RequestsById()
    body = RequestBody(salt=SALT, statement=_STATEMENT, world={"tools": 5})
    _fold(found, _entry(Kind.REQUEST, "worker"), body)

    assert found == {}


def test_a_request_of_an_ended_epoch_is_left_out() -> None:
    """Also if its statement names the epoch in force, and its entry another."""
    found = RequestsById()
    body = RequestBody(salt=SALT, statement=replace(_STATEMENT, epoch=1))
    fold_entry(found, _entry(Kind.REQUEST, "worker"), body, basis=_BASIS, epoch=1, trust=_TRUST)

    assert found == {}


def test_a_request_that_is_written_twice_is_the_first() -> None:
    """What was said to it stays."""
    asked = _asked()
    word = attest(key("ann"), _STATEMENT.digest, Verdict.APPROVE, "fine")
    _fold(asked, _entry(Kind.APPROVAL, "ann", seq=4), VerdictBody(salt=SALT, attestation=word))
    _fold(
        asked, _entry(Kind.REQUEST, "worker", seq=5), RequestBody(salt=SALT, statement=_STATEMENT)
    )

    assert _the(asked).entry.seq == 3
    assert (_the(asked).attestations, _the(asked).relayed) == ((word,), (4,))


@pytest.mark.parametrize("kind", [Kind.APPROVAL, Kind.EXPIRY, Kind.BREAK_GLASS])
def test_a_word_on_no_request_is_left_out(kind: Kind) -> None:
    """Whoever writes it stops nobody."""
    asked = _asked()
    bodies: dict[Kind, Body] = {
        Kind.APPROVAL: VerdictBody(
            salt=SALT, attestation=attest(key("ann"), _OTHER, Verdict.APPROVE, "fine")
        ),
        Kind.EXPIRY: ExpiryBody(salt=SALT, request=_OTHER),
        Kind.BREAK_GLASS: VerdictBody(
            salt=SALT, attestation=attest(key("chief"), _OTHER, Verdict.BREAK_GLASS, "it burns")
        ),
    }
    for at in (_BEFORE, _AFTER):
        _fold(asked, _entry(kind, "operator", at), bodies[kind])

    assert asked == _asked()


@pytest.mark.parametrize(
    ("at", "expired"), [(_BEFORE, False), (_EXPIRES, True), (_AFTER, True)], ids=str
)
def test_an_expiry_counts_from_the_moment_on(at: datetime, *, expired: bool) -> None:
    """One that was written too early says nothing."""
    asked = _asked()
    _fold(asked, _entry(Kind.EXPIRY, "ann", at), ExpiryBody(salt=SALT, request=_STATEMENT.digest))

    assert _the(asked).expired is expired


@pytest.mark.parametrize(
    ("who", "counts"),
    [
        ("worker", True),
        ("ann", True),
        ("operator", True),
        ("second", False),
        ("officer", False),
        ("far", False),
        ("nobody", False),
    ],
)
def test_an_expiry_is_for_the_requester_and_those_who_could_stop_it(
    who: str, *, counts: bool
) -> None:
    """Anybody else could end what they like by a wrong clock; without a roster, only the first."""
    body = ExpiryBody(salt=SALT, request=_STATEMENT.digest)
    for trust, expected in ((_TRUST, counts), (StoreChain(pin()), who == "worker")):
        asked = _asked()
        _fold(asked, _entry(Kind.EXPIRY, who, _AFTER), body, trust=trust)
        assert _the(asked).expired is expected


def test_an_expiry_that_counts_is_not_undone() -> None:
    """A later one by somebody without a say changes nothing."""
    asked, body = _asked(), ExpiryBody(salt=SALT, request=_STATEMENT.digest)
    for who in ("ann", "second"):
        _fold(asked, _entry(Kind.EXPIRY, who, _AFTER), body)

    assert _the(asked).expired


@pytest.mark.parametrize(
    ("now", "expired"), [(_BEFORE, False), (_EXPIRES, True), (_AFTER, True)], ids=str
)
def test_glass_is_broken_before_a_request_expires(now: datetime, *, expired: bool) -> None:
    """Nobody turns what is over into a grant, whatever time its relay says."""
    asked = _asked()
    word = attest(key("chief"), _STATEMENT.digest, Verdict.BREAK_GLASS, "it burns")
    _fold(
        asked,
        _entry(Kind.BREAK_GLASS, "second", _AFTER),
        VerdictBody(salt=SALT, attestation=word),
    )
    grant = grant_of(_the(asked), _ROSTER, now)

    assert grant.broken_glass == "chief: it burns"
    assert grant.expired is expired
