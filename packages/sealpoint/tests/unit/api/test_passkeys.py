# SPDX-License-Identifier: Apache-2.0
"""Passkeys of a store on disk: entered into the roster, listed, exchanged and ended."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from sealpoint import api
from sealpoint.api import KeyStatus, Store
from sealpoint.errors import (
    Forged,
    KeyMissing,
    NeedsApproval,
    NotTrusted,
    TrustFileInvalid,
    UsageError,
)
from sealpoint.gate import Request
from sealpoint.signing import Attestation, Passkey, PrivateKey, Verdict
from tests.unit.api.place import Place
from tests.unit.signing.authenticator import Authenticator

_ONE, _TWO = Authenticator(1), Authenticator(2, backup_eligible=True)
_UNTIL = datetime(2999, 1, 1, tzinfo=UTC)


def _add(place: Place, name: str = "alice", **options: Any) -> int:
    given: dict[str, Any] = {"person": name, "roles": ["approver"], "namespaces": ["*"]}
    return place.admin.keys.add(name, **(given | options))


def _listed(place: Place, name: str = "alice") -> list[api.KeyInfo]:
    return [each for each in place.admin.keys.list() if each.name == name]


@pytest.fixture
def team(made: Place) -> Place:
    """A store that asks one person, with a thread that is asked for."""
    made.admin.policy.apply("strict")
    with made.open() as store:
        store.thread("t").save(1, world={"tools": []})
    return made


@pytest.fixture
def worker(team: Place) -> Iterator[Store]:
    """The worker's process."""
    with team.open() as store:
        yield store


def _asked(store: Store) -> Request:
    with pytest.raises(NeedsApproval) as caught:
        store.thread("t").resume(world={"tools": [{"name": "shell"}]}, deliberate="a new tool")
    request = caught.value.request
    assert isinstance(request, Request)
    return request


def _say(made: Authenticator, request: Request, verdict: Verdict = Verdict.APPROVE) -> Attestation:
    return made.say(request.id, verdict, "looked at it")


# ---------------------------------------------------------------------- adding


def test_a_passkey_is_added_to_a_new_identity(made: Place) -> None:
    """It is listed with all that it is bound to, and with no private half here."""
    seq = _add(made, passkey=_TWO.passkey, expires=_UNTIL)
    (row,) = _listed(made)

    assert seq > 0
    assert (row.scheme, row.key, row.public) == (
        "webauthn",
        str(_TWO.passkey.id),
        str(_TWO.passkey),
    )
    assert (row.here, row.encrypted, row.in_roster) == (False, None, True)
    assert (row.status, row.expires) == (KeyStatus.IN_FORCE, "2999-01-01T00:00:00Z")
    assert row.passkey == api.PasskeyInfo(
        algorithm="es256",
        credential=_TWO.credential.hex(),
        relying_party="localhost",
        origin="http://localhost:8080",
        backup_eligible=True,
    )


def test_a_passkey_is_added_beside_a_key(made: Place) -> None:
    """As a second key is, and both are the same person's."""
    made.admin.keys.create("alice")
    _add(made)
    _add(made, passkey=_ONE.passkey)
    _add(made, passkey=_TWO.passkey)

    assert [row.scheme for row in _listed(made)] == ["ed25519", "webauthn", "webauthn"]
    assert [row.passkey is None for row in _listed(made)] == [True, False, False]


def test_a_passkey_that_is_there_is_named_by_its_public_key(made: Place) -> None:
    """Its expiry may be moved, and it may be given rights, without the enrolment at hand."""
    _add(made, passkey=_ONE.passkey)
    _add(made, public=str(_ONE.passkey), roles=["auditor"], expires=_UNTIL)
    (row,) = _listed(made)

    assert row.roles == ("approver", "auditor")
    assert row.expires == "2999-01-01T00:00:00Z"


def test_whoever_has_one_passkey_and_no_key_is_given_rights_by_name(made: Place) -> None:
    """As the hint of a missing right says; with two passkeys it has to be said which."""
    _add(made, passkey=_ONE.passkey)
    _add(made, roles=["auditor"])
    (row,) = _listed(made)

    assert row.roles == ("approver", "auditor")
    _add(made, passkey=_TWO.passkey)
    with pytest.raises(KeyMissing):
        _add(made, roles=["operator"])


def test_a_passkey_is_no_key_of_the_root(made: Place) -> None:
    """Neither is the root's key enrolled as one, nor does the root take one over."""
    root = made.files.keys.signer("root")
    taken = Passkey(f"eddsa:{root.public}", _ONE.passkey.binding)
    with pytest.raises(UsageError, match="a key of the root"):
        _add(made, passkey=taken)
    eddsa = Authenticator(7, "eddsa")
    _add(made, passkey=eddsa.passkey)
    with pytest.raises(UsageError, match="belongs to an identity"):
        made.admin.roster.rotate_root(publics=[eddsa.raw.hex()])


def test_the_public_key_of_a_passkey_that_nobody_enrolled_adds_nothing(made: Place) -> None:
    """What it is bound to is in the enrolment alone; that of somebody else is not taken either."""
    _add(made, "bob", passkey=_TWO.passkey)
    for public in (str(_ONE.passkey), str(_TWO.passkey), "es256:00"):
        with pytest.raises(UsageError, match="no passkey with this public key"):
            _add(made, public=public)
    assert _listed(made) == []


def test_a_key_and_a_passkey_are_not_added_at_once(made: Place) -> None:
    """One call enters one key."""
    public = str(PrivateKey("far", b"f" * 32).public)
    with pytest.raises(UsageError, match="cannot be combined"):
        _add(made, public=public, passkey=_ONE.passkey)
    with pytest.raises(UsageError, match="cannot be combined"):
        made.admin.keys.rotate("worker", public=public, passkey=_ONE.passkey)


def test_a_passkey_has_one_holder(made: Place) -> None:
    """Neither its key nor its credential is given to a second identity, nor the root's to one."""
    _add(made, passkey=_ONE.passkey)
    with pytest.raises(NotTrusted, match="with one identity"):
        _add(made, "bob", passkey=_ONE.passkey)
    with pytest.raises(UsageError, match="none of that ever changes"):
        _add(made, passkey=Authenticator(1, origin="http://localhost:9").passkey)


# ---------------------------------------------------------------------- its words


def test_the_word_of_a_passkey_is_relayed_and_lets_a_run_go_on(team: Place, worker: Store) -> None:
    """Whoever relays it vouches for nothing, and it counts as its person's."""
    _add(team, passkey=_ONE.passkey)
    _add(team, "bob", passkey=_TWO.passkey)
    request = _asked(worker)
    for made in (_ONE, _TWO):
        worker.relay(_say(made, request))
    waiting = worker.request(request.id)

    assert waiting.approved_by == ("alice", "bob")
    assert worker.thread("t").resume(world={"tools": [{"name": "shell"}]}).state == 1
    assert worker.verify().ok


def test_a_word_is_recorded_once(team: Place, worker: Store) -> None:
    """Repeating it, or saying it with another passkey, leads to what is recorded already."""
    _add(team, passkey=_ONE.passkey)
    _add(team, passkey=_TWO.passkey)
    request = _asked(worker)

    assert len({worker.relay(_say(made, request)) for made in (_ONE, _TWO, _ONE)}) == 1


def test_a_word_that_no_passkey_said_is_not_recorded(team: Place, worker: Store) -> None:
    """Nobody can make one for somebody else, whoever relays it."""
    _add(team, passkey=_ONE.passkey)
    request = _asked(worker)
    word = _say(_ONE, request)
    other = Authenticator(1, origin="http://localhost:9").say(
        request.id, Verdict.APPROVE, "looked at it"
    )
    for forged in (
        Attestation(
            word.scheme, word.credential, word.statement, Verdict.APPROVE, "other", word.proof
        ),
        Attestation(
            word.scheme, word.credential, word.statement, Verdict.DENY, word.reason, word.proof
        ),
        other,
    ):
        with pytest.raises(Forged):
            worker.relay(forged)


# ---------------------------------------------------------------------- ending


def test_a_revoked_passkey_says_nothing_more(team: Place, worker: Store) -> None:
    """What it said before stays in the record and counts for nothing that is still open."""
    _add(team, passkey=_ONE.passkey)
    request = _asked(worker)
    word = _say(_ONE, request)
    worker.relay(word)
    done = team.admin.keys.revoke("alice", reason="phone lost")
    (row,) = _listed(team)

    assert done.keys == (str(_ONE.passkey.id),)
    assert done.threads == 1
    assert (row.status, row.in_roster) == (KeyStatus.REVOKED, False)
    assert row.passkey is not None
    with pytest.raises(NotTrusted, match="revoked"):
        worker.relay(word)
    assert worker.request(request.id).approved_by == ()
    with pytest.raises(NotTrusted, match="which has a cutoff"):
        _add(team, passkey=_ONE.passkey)
    assert worker.verify().ok


def test_one_of_several_keys_is_revoked(made: Place) -> None:
    """By the digits of its id, as any other."""
    made.admin.keys.create("alice")
    _add(made)
    _add(made, passkey=_ONE.passkey)
    digits = _ONE.passkey.id.raw.hex()[:12]
    made.admin.keys.revoke("alice", key=digits, reason="phone lost")
    statuses = {row.scheme: row.status for row in _listed(made)}

    assert statuses == {"ed25519": KeyStatus.IN_FORCE, "webauthn": KeyStatus.REVOKED}


def test_a_rotated_key_leaves_passkeys_and_a_rotated_passkey_leaves_keys(made: Place) -> None:
    """Like is exchanged for like."""
    made.admin.keys.create("alice")
    _add(made)
    _add(made, passkey=_ONE.passkey)
    first = made.admin.keys.rotate("alice")
    second = made.admin.keys.rotate("alice", passkey=_TWO.passkey, expires=_UNTIL)
    living = [row for row in _listed(made) if row.in_roster]

    assert first.here
    assert str(_ONE.passkey.id) not in first.ended
    assert second.ended == (str(_ONE.passkey.id),)
    assert (second.key, second.public, second.here) == (
        str(_TWO.passkey.id),
        str(_TWO.passkey),
        False,
    )
    assert {row.key for row in living} == {first.key, str(_TWO.passkey.id)}


def test_with_other_rights_passkeys_end_too(made: Place) -> None:
    """Whoever is to have fewer rights gets new keys, of every kind."""
    made.admin.keys.create("alice")
    _add(made)
    _add(made, passkey=_ONE.passkey)
    plan = made.admin.keys.rotate("alice", namespaces=["billing"], dry_run=True)
    done = made.admin.keys.rotate("alice", namespaces=["billing"])

    assert str(_ONE.passkey.id) in plan.ended
    assert plan.ended == done.ended
    assert [row.scheme for row in _listed(made) if row.in_roster] == ["ed25519"]


def test_a_key_for_somebody_who_has_passkeys_alone_is_not_made_up(made: Place) -> None:
    """To exchange a passkey a new one is needed: rotating without it looks for a key."""
    _add(made, passkey=_ONE.passkey)
    with pytest.raises(KeyMissing):
        made.admin.keys.rotate("alice")
    with pytest.raises(TrustFileInvalid):
        made.admin.keys.rotate("alice", public=str(_TWO.passkey))


# ---------------------------------------------------------------------- who can approve


def test_who_has_a_passkey_can_approve_and_cannot_ask(team: Place) -> None:
    """A passkey approves; it writes nothing, so nobody asks with one."""
    _add(team, passkey=_ONE.passkey, roles=["approver", "writer"])
    before = team.admin.policy.approvers(None)
    team.admin.keys.create("alice")
    _add(team)
    after = team.admin.policy.approvers(None)

    assert ("alice" in before.people, "alice" in before.askers) == (True, False)
    assert ("alice" in after.people, "alice" in after.askers) == (False, True)


def test_an_expiring_passkey_is_told_of(made: Place) -> None:
    """As any key that is about to end, wherever the roster is looked at."""
    past = datetime(2020, 1, 1, tzinfo=UTC)
    _add(made, passkey=_ONE.passkey, expires=past)
    (row,) = _listed(made)
    with made.open() as store:
        found = [each.message for each in store.verify().findings]

    assert row.status is KeyStatus.EXPIRED
    assert any(_ONE.passkey.id.short() in message and "expired" in message for message in found)
