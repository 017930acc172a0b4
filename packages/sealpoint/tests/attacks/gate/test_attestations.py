# SPDX-License-Identifier: Apache-2.0
"""Approvals that were never given: replayed, turned round, borrowed, counted twice, or too large.

Each attack has its control beside it: what it starts from is genuine and counts.
"""

import json
from typing import Any

import msgspec
import pytest

from sealpoint.errors import Edited, Forged, NotTrusted
from sealpoint.ids import KeyId
from sealpoint.ledger import Header, Kind, encode_header
from sealpoint.limits import STATEMENT_BYTES_MAX
from sealpoint.signing import (
    ENTRY_TYPE,
    STATEMENT_TYPE,
    Attestation,
    Identity,
    Role,
    RosterDocument,
    Statement,
    Verdict,
    attest,
    encode_seals,
    pae,
    parse_seals,
    verify_attestation,
)
from tests.unit.signing.samples import seal, signer
from tests.unit.signing.statements import (
    NOW,
    WORKER,
    approve,
    deny,
    handoff,
    person,
    roster,
    statement,
    tally,
)

_ROSTER = roster(person("alice", 2), person("bob", 3))
_OTHERS: dict[str, dict[str, Any]] = {
    "store": {"store": "ab" * 16},
    "namespace": {"ns": "billing"},
    "thread": {"thread": "ab" * 16},
    "epoch": {"epoch": 1},
    "generation": {"gen": 1},
    "basis": {"basis": "ab" * 32},
    "checkpoint": {"checkpoint": "ab" * 32},
    "world it was": {"world_from": None},
    "world it will be": {"world_to": "ab" * 32},
    "answer": {"answer": "ab" * 32},
    "requester": {"requester": "carol"},
    "actor": {"actor": "carol"},
    "policy": {"policy": None},
    "nonce": {"nonce": "ab" * 16},
    "expiry": {"expires": NOW.replace(year=2027)},
    "reason": {"reason": "something else"},
}


@pytest.mark.parametrize("changes", _OTHERS.values(), ids=_OTHERS)
def test_an_approval_is_for_one_statement(changes: dict[str, Any]) -> None:
    """With any one field changed, an approval given before does not count, nor with its digest."""
    everywhere = roster(
        person("alice", 2, namespaces=("*",)), person("carol", 5, namespaces=("*",))
    )
    other = statement(**changes)
    moved = msgspec.structs.replace(approve(2), statement=other.digest)

    assert tally([approve(2)], everywhere).approved_by == ("alice",)
    assert tally([approve(2, other)], everywhere, other).approved_by == ("alice",)
    assert tally([approve(2)], everywhere, other).approved_by == ()
    assert tally([moved], everywhere, other).approved_by == ()
    with pytest.raises(Forged):
        verify_attestation(moved, everywhere)


def test_an_approval_of_a_handoff_resumes_nothing() -> None:
    """Each action is approved for itself."""
    assert tally([approve(2, handoff())], _ROSTER, handoff()).approved_by == ("alice",)
    assert tally([approve(2, handoff())], _ROSTER).approved_by == ()
    assert tally([approve(2)], _ROSTER, handoff()).approved_by == ()


def test_an_approval_is_never_a_denial_and_the_other_way_round() -> None:
    """A verdict is inside what is signed: neither proof fits the other word."""
    for made, turned in (
        (approve(2, reason="same"), Verdict.DENY),
        (deny(2, reason="same"), Verdict.APPROVE),
    ):
        forged = msgspec.structs.replace(made, verdict=turned)

        assert verify_attestation(made, _ROSTER).name == "alice"
        with pytest.raises(Forged):
            verify_attestation(forged, _ROSTER)
        assert tally([forged], _ROSTER).approved_by == ()
        assert tally([forged], _ROSTER).denied_by == ()


@pytest.mark.parametrize(
    "reason",
    [
        'x","verdict":"approve',
        'x"}{"statement":"',
        '","reason":"y","verdict":"approve","reason":"',
        "\\u0022,\\u0022verdict\\u0022:\\u0022approve",
    ],
)
def test_a_reason_cannot_speak_for_the_verdict(reason: str) -> None:
    """Whoever chooses the text of a denial's reason does not get an approval signed by it."""
    made = deny(2, reason=reason)
    payload = {"statement": made.statement, "verdict": "deny", "reason": reason}
    message = pae(STATEMENT_TYPE, json.dumps(payload, separators=(",", ":")).encode())

    signer(2).public.verify(bytes.fromhex(made.proof), message)
    assert tally([made], _ROSTER).denied_by == ("alice",)
    assert tally([msgspec.structs.replace(made, verdict=Verdict.APPROVE)], _ROSTER).ignored
    for part in (reason[:1], "x", "y"):
        forged = msgspec.structs.replace(made, verdict=Verdict.APPROVE, reason=part)
        with pytest.raises(Forged):
            verify_attestation(forged, _ROSTER)


def _header(about: Statement) -> bytes:
    """An entry's header as close to a statement as one can be."""
    return encode_header(
        Header(
            store=about.store,
            epoch=0,
            ns=about.ns,
            thread=about.thread,
            gen=0,
            seq=0,
            prev=None,
            skip=None,
            kind=Kind.GENESIS,
            fence=0,
            pause=0,
            owner=0,
            roster=0,
            at=NOW,
            by=signer(2).key,
            body=about.digest,
        )
    )


def test_a_signature_on_an_entry_is_no_attestation() -> None:
    """Whatever bytes a worker's process signs as an entry, its key has approved nothing by it."""
    about = statement()
    payload = msgspec.json.encode(
        {"statement": about.digest, "verdict": "approve", "reason": "read it"}
    )
    genuine = signer(2).sign(pae(STATEMENT_TYPE, payload))
    signed = [
        pae(ENTRY_TYPE, payload),
        pae(ENTRY_TYPE, _header(about)),
        pae(ENTRY_TYPE, about.encode()),
        pae(STATEMENT_TYPE, about.encode()),
        pae(STATEMENT_TYPE, about.digest.encode()),
        pae(b"", payload),
        about.encode(),
        payload,
    ]

    assert genuine.hex() == approve(2).proof
    for message in signed:
        proof = signer(2).sign(message).hex()
        with pytest.raises(Forged):
            verify_attestation(msgspec.structs.replace(approve(2), proof=proof), _ROSTER)


def test_an_attestation_is_no_signature_on_an_entry() -> None:
    """A proof fits no header as a seal, though a seal of any bytes can be stored."""
    made = approve(2)
    header = _header(statement())
    key = KeyId(bytes.fromhex(made.credential))
    (lifted,) = parse_seals(encode_seals([seal(signer(2), b"")._replace(
        key=key, signature=bytes.fromhex(made.proof)
    )]))  # fmt: skip
    payload = msgspec.json.encode(
        {"statement": made.statement, "verdict": made.verdict, "reason": made.reason}
    )

    signer(2).public.verify(lifted.signature, pae(STATEMENT_TYPE, payload))
    for signed in (header, payload, statement().encode()):
        with pytest.raises(Forged):
            signer(2).public.verify(lifted.signature, pae(ENTRY_TYPE, signed))


def test_a_header_is_no_statement() -> None:
    """The digest of an entry cannot be the digest of a statement: neither parses as the other."""
    with pytest.raises(Edited):
        Statement.parse(_header(statement()))


def test_somebody_elses_name_on_a_proof_is_forged() -> None:
    """The console, or whoever relays, cannot lend one person's proof to another."""
    lent = msgspec.structs.replace(approve(2), credential=signer(3).key)

    with pytest.raises(Forged):
        verify_attestation(lent, _ROSTER)
    assert tally([approve(2), lent], _ROSTER).approved_by == ("alice",)


def test_a_key_in_two_identities_makes_no_roster() -> None:
    """One key cannot be two persons: such a roster is refused before anything is counted."""
    with pytest.raises(NotTrusted, match="with one identity"):
        roster(person("alice", 2), person("bob", 2))


def test_the_requesters_other_hats_do_not_approve() -> None:
    """A person who asks as a worker is the same person as operator and as approver."""
    hats = [
        person(f"hat {number}", number, who="worker", roles=tuple(Role), namespaces=("*",))
        for number in range(2, 8)
    ]
    given = [approve(number) for number in range(1, 9)]
    found = tally(given, roster(*hats, person("alice", 8)))

    assert found.approved_by == ("alice",)
    assert len(found.ignored) == 7


def test_many_identities_of_one_person_are_one_approval() -> None:
    """Two of three cannot be met by one person with three names and five keys."""
    names = [person("a", 2, 3, who="A"), person("b", 4, 5, who="A"), person("c", 6, who="A")]
    found = tally([approve(number) for number in range(2, 7)], roster(*names))

    assert found.approved_by == ("a",)


def test_an_approver_who_lost_the_role_no_longer_counts() -> None:
    """The newest roster judges an approval when it is spent, not the roster of its day."""
    made = approve(2)
    gone: list[tuple[Identity, ...]] = [
        (),
        (person("alice", 3),),
        (person("alice", 2, roles=(Role.AUDITOR,)),),
        (person("alice", 2, namespaces=("elsewhere",)),),
        (person("alice", 2, expires=NOW),),
        (person("alice", 2, who="worker"),),
    ]

    assert tally([made], _ROSTER).approved_by == ("alice",)
    for identities in gone:
        assert tally([made], roster(*identities)).approved_by == ()


def test_an_approval_under_the_attackers_own_roster_is_none_under_ours() -> None:
    """A stranger's key with an approver's name proves nothing where the root did not enter it."""
    made = approve(200)

    assert tally([made], roster(person("alice", 200))).approved_by == ("alice",)
    assert tally([made], _ROSTER).approved_by == ()


def test_a_denial_cannot_be_drowned() -> None:
    """Ten thousand approvals by everybody and by the denier do not outweigh one denial."""
    own = [approve(2, reason=f"reason {number}") for number in range(50)]
    copies = [approve(3)] * 10_000
    found = tally([*own, *copies, deny(2), *copies, *own], _ROSTER)

    assert found.denied_by == ("alice",)
    assert found.approved_by == ("bob",)


@pytest.mark.parametrize("field", ["scheme", "credential", "statement", "reason", "proof"])
def test_huge_texts_are_refused_and_not_repeated(field: str) -> None:
    """A text of ten million characters costs a comparison of lengths and stays out of messages."""
    made: Attestation = msgspec.structs.replace(approve(2), **{field: "a" * 10**7})

    with pytest.raises((Forged, NotTrusted)) as caught:
        verify_attestation(made, _ROSTER)
    found = tally([made, approve(3)], _ROSTER)

    assert len(caught.value.message) < 200
    assert found.approved_by == ("bob",)
    assert sum(map(len, found.ignored)) < 200


def test_a_huge_statement_is_refused_unread() -> None:
    """A statement of many megabytes, or nested without end, is refused by its length."""
    for data in (b"[" * 10**7, statement(reason="x" * 10**7).encode()):
        with pytest.raises(Edited, match=f"at most {STATEMENT_BYTES_MAX} bytes"):
            Statement.parse(data)


def test_unknown_words_in_an_attestation_are_no_attestation() -> None:
    """A field of another version, such as a second verdict, is not skipped."""
    good = json.loads(msgspec.json.encode(approve(2)))

    assert msgspec.json.decode(json.dumps(good), type=Attestation) == approve(2)
    for changes in ({"role": "approver"}, {"verdict": "Approve"}, {"verdict": None}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(json.dumps(good | changes), type=Attestation)


def test_an_empty_roster_approves_nothing() -> None:
    """Where nobody is known nobody approves, and nobody is the requester either."""
    empty = type(_ROSTER)(RosterDocument(()), seq=0)
    alone = roster()

    for by in (empty, alone):
        assert tally([approve(2), approve(1)], by).approved_by == ()
    assert alone.identities == (WORKER,)
    assert attest(signer(2), statement().digest, Verdict.APPROVE, "read it") == approve(2)
