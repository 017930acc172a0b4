# SPDX-License-Identifier: Apache-2.0
"""The store chain is believed from the pin alone, and no right on it shrinks without a cutoff."""

from typing import Any

import msgspec
import pytest

from sealpoint.errors import Edited, Forged, Misplaced, NotTrusted, SealpointError, Tampered
from sealpoint.ids import StoreId
from sealpoint.ledger import STORE_CHAIN, Body, Kind, PositionLists, StoreChain
from sealpoint.signing import Cutoff, Pool, Role, RosterDocument, RosterKey, TrustPin
from sealpoint.storage import Record
from tests.ledgers import (
    SALT,
    StoreLedger,
    ThreadLedger,
    identity,
    key,
    pin,
    roster,
    seals,
)

_FIRST = roster(
    identity("worker", keys=("worker", "worker-2"), namespaces=("billing", "support")),
    identity("operator", Role.OPERATOR, Role.AUDITOR),
    pools=[Pool("pods", ("worker", "operator"))],
)


def _begun(trusted: TrustPin | None = None) -> StoreLedger:
    ledger = StoreLedger(trusted)
    ledger.add(ledger.roster_record(_FIRST))
    return ledger


def _refused(ledger: StoreLedger, record: Record, error: type[SealpointError], why: str) -> None:
    """The record is refused for this reason, and the chain stays as it was."""
    before = ledger.chain.hashes
    with pytest.raises(error, match=why) as caught:
        ledger.add(record)

    assert caught.type is error
    assert ledger.chain.hashes == before


def test_an_empty_chain_trusts_nobody() -> None:
    """A pin alone has no roster, and no position."""
    chain = StoreChain(pin())

    assert chain.seq == -1
    assert chain.roster_at(0) is None
    with pytest.raises(NotTrusted, match="store chain: it has no roster"):
        _ = chain.roster


def test_a_chain_keeps_every_roster() -> None:
    """An entry is judged by the roster that its writer saw, so each one stays known."""
    ledger = _begun()
    ledger.add(ledger.adopt_record("operator"))
    more = roster(*_FIRST.identities, identity("second"), pools=_FIRST.pools)
    chain = ledger.add(ledger.roster_record(more))
    old = chain.roster_at(0)

    assert (chain.seq, chain.roster.seq) == (2, 2)
    assert chain.roster_at(2) is chain.roster
    assert chain.roster.identity("second") is not None
    assert old is not None
    assert old.identity("second") is None
    assert chain.roster_at(1) is None
    assert chain.roster_at(3) is None


def test_a_threshold_of_one_is_met_by_one() -> None:
    """The smallest root signs alone."""
    assert _begun().chain.roster.seq == 0


@pytest.mark.parametrize("signers", [("a", "b"), ("c", "a"), ("a", "b", "c")], ids="".join)
def test_a_threshold_of_two_is_met_by_any_two(signers: tuple[str, ...]) -> None:
    """Two or all of three root keys, in any order, sign a roster."""
    ledger = StoreLedger(pin("a", "b", "c", threshold=2))
    chain = ledger.add(ledger.roster_record(_FIRST, *signers))

    assert chain.seq == 0


def test_a_missing_signature_is_refused() -> None:
    """One of two demanded keys is not enough, nor is a stranger beside it."""
    ledger = StoreLedger(pin("a", "b", "c", threshold=2))

    for signers in (("a",), ("a", "stranger"), ("stranger", "a")):
        _refused(
            ledger,
            ledger.roster_record(_FIRST, *signers),
            NotTrusted,
            "expected 2 of the keys of root 1, found 1",
        )


def test_one_key_never_signs_twice() -> None:
    """The same seal twice is no second signature."""
    ledger = StoreLedger(pin("a", "b", "c", threshold=2))

    _refused(ledger, ledger.roster_record(_FIRST, "a", "a"), Edited, "by different keys")


def test_no_seal_is_refused() -> None:
    """An empty list of signatures is none."""
    ledger = StoreLedger()
    record = ledger.roster_record(_FIRST)

    _refused(ledger, Record(record.header, b"[]", record.body), Edited, "1 to 16")


def test_a_foreign_root_is_refused() -> None:
    """A whole chain by another root is nothing here, however valid it is there."""
    foreign = StoreLedger(pin("mallory"))
    foreign.add(foreign.roster_record(_FIRST, "mallory"))
    ledger = StoreLedger()

    _refused(ledger, foreign.records[0], NotTrusted, "expected 1 of the keys of root 1, found 0")


def test_an_identity_of_the_roster_signs_no_roster() -> None:
    """Not even an operator of everything may change the roster."""
    ledger = _begun()

    _refused(ledger, ledger.roster_record(_FIRST, "operator"), NotTrusted, "root 1, found 0")


def test_a_false_root_signature_is_a_forgery() -> None:
    """A seal in the name of a root key that did not sign these bytes is refused as forged."""
    ledger = StoreLedger()
    record = ledger.roster_record(_FIRST)
    false = Record(record.header, seals(record.header + b" ", key("root")), record.body)

    _refused(ledger, false, Forged, "expected a valid one")


def test_another_payload_type_is_another_signature() -> None:
    """What the root signed as something else than an entry is no roster."""
    ledger = StoreLedger()
    record = ledger.roster_record(_FIRST)
    confused = seals(
        record.header, key("root"), payload_type=b"application/vnd.sealpoint.root.v1+json"
    )

    _refused(ledger, Record(record.header, confused, record.body), Forged, "expected a valid one")


def test_the_first_seal_is_by_the_key_that_the_header_names() -> None:
    """A header that names another key than its first seal's is refused."""
    ledger = StoreLedger()
    by = key("worker").public.id.raw.hex()

    _refused(ledger, ledger.roster_record(_FIRST, by=by), Forged, "expected a signature by key")


_OTHER = "ab" * 32
_PLACES: dict[str, tuple[dict[str, Any], str]] = {
    "another store": ({"store": "ff" * 16}, "another store"),
    "a thread's id": ({"thread": "11" * 16}, "another chain"),
    "a namespace": ({"ns": "default"}, "another chain"),
    "a gap": ({"seq": 2}, "another position"),
    "the same position": ({"seq": 0}, "another position"),
    "an epoch": ({"epoch": 1}, "another epoch"),
    "a generation": ({"gen": 1}, "another generation"),
    "a session": ({"fence": 1}, "another session, pause and owner"),
    "a pause": ({"pause": 1}, "another session, pause and owner"),
    "an owner": ({"owner": 1}, "another session, pause and owner"),
    "another previous hash": ({"prev": _OTHER}, "another previous hash"),
    "no previous hash": ({"prev": None}, "another previous hash"),
    "another skip hash": ({"skip": _OTHER}, "another skip hash"),
    "no skip hash": ({"skip": None}, "another skip hash"),
    "a roster that does not exist": ({"roster": 1}, "another roster"),
}


@pytest.mark.parametrize(("changes", "why"), _PLACES.values(), ids=_PLACES)
def test_an_entry_of_another_place_is_refused(changes: dict[str, Any], why: str) -> None:
    """Each part of the place is checked, though the root signed the entry."""
    ledger = _begun()

    _refused(ledger, ledger.roster_record(_FIRST, **changes), Misplaced, why)


@pytest.mark.parametrize("changes", [{"prev": _OTHER}, {"skip": _OTHER}, {"seq": 1}], ids=str)
def test_the_first_entry_has_no_links(changes: dict[str, Any]) -> None:
    """The chain begins at 0 with nothing before it."""
    ledger = StoreLedger()

    _refused(ledger, ledger.roster_record(_FIRST, **changes), Misplaced, "expected another")


def test_a_chain_of_another_store_is_refused() -> None:
    """The same root may own two stores; their chains are not exchangeable."""
    twin = TrustPin(store=StoreId(b"t" * 16), root=pin().root)
    ledger = StoreLedger(twin)

    _refused(ledger, _begun().records[0], Misplaced, "another store")


def test_an_older_roster_cannot_come_again() -> None:
    """A roster that was replaced is misplaced at every later position."""
    ledger = _begun()
    ledger.add(ledger.roster_record(_FIRST))

    for record in ledger.records:
        _refused(ledger, record, Misplaced, "another position")


def _replaced(whose: str, **changes: Any) -> RosterDocument:
    identities = [
        msgspec.structs.replace(each, **changes) if each.name == whose else each
        for each in _FIRST.identities
    ]
    return msgspec.structs.replace(_FIRST, identities=tuple(identities))


_LESS: dict[str, RosterDocument] = {
    "a key": _replaced("worker", keys=_FIRST.identities[0].keys[:1]),
    "a key exchanged for another": _replaced(
        "worker", keys=(_FIRST.identities[0].keys[0], RosterKey("ed25519", str(key("n").public)))
    ),
    "a role": _replaced("operator", roles=(Role.OPERATOR,)),
    "every role": _replaced("operator", roles=()),
    "a namespace": _replaced("worker", namespaces=("billing",)),
    "all namespaces": _replaced("operator", namespaces=("billing", "support")),
    "an identity": roster(_FIRST.identities[0], pools=[Pool("pods", ("worker",))]),
    "a name": msgspec.structs.replace(
        _replaced("worker", name="new"), pools=(Pool("pods", ("new", "operator")),)
    ),
    "a person": _replaced("worker", person="somebody else"),
    "a pool": roster(*_FIRST.identities),
    "a pool member": roster(*_FIRST.identities, pools=[Pool("pods", ("worker",))]),
}


@pytest.mark.parametrize("document", _LESS.values(), ids=_LESS)
def test_a_roster_that_takes_a_right_away_is_refused(document: RosterDocument) -> None:
    """The holder could go on under the older roster, so the newer one would be a false comfort."""
    ledger = _begun()

    _refused(ledger, ledger.roster_record(document), NotTrusted, "lost a right without a cutoff")


def test_a_roster_that_gives_rights_is_believed() -> None:
    """Keys, roles, namespaces, identities, pools and members may be added, all at once."""
    worker, operator = _FIRST.identities
    ledger = _begun()
    more = RosterDocument(
        identities=(
            identity("third"),
            msgspec.structs.replace(operator, roles=(*operator.roles, Role.WRITER)),
            identity("worker", Role.WRITER, Role.AUDITOR, keys=("n", "worker-2", "worker")),
        ),
        pools=(Pool("more", ()), Pool("pods", ("third", "operator", "worker"))),
    )
    chain = ledger.add(ledger.roster_record(more))

    assert chain.roster.holder(key("n").public.id) is not None
    assert chain.roster.owns("third", "pods")
    assert worker.namespaces == ("billing", "support")


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (
            msgspec.structs.replace(_FIRST, cutoffs=(Cutoff("ab", "cd"),)),
            "expected cutoffs with a key",
        ),
        (msgspec.structs.replace(_FIRST, cutoffs=(Cutoff("ab" * 32, "cd" * 32),)), "roster before"),
        (roster(identity("a"), pools=[Pool("p", ("a", "b"))]), "members of pools"),
        (roster(identity("a"), identity("a", keys=("b",))), "'a' once"),
        (roster(identity("a"), identity("b", keys=("a",))), "with one identity"),
        (roster(identity("a"), pools=[Pool("a", ("a",))]), "name of its own"),
        (roster(identity("a"), pools=[Pool("p", ()), Pool("p", ())]), "name of its own"),
    ],
)
def test_a_roster_that_contradicts_itself_is_refused(document: RosterDocument, why: str) -> None:
    """What the root signed is still checked, the first roster like any other."""
    ledger = StoreLedger()

    _refused(ledger, ledger.roster_record(document), NotTrusted, why)


def test_the_body_must_be_the_sealed_one() -> None:
    """No body, or the body of another entry, is refused."""
    ledger = StoreLedger()
    record = ledger.roster_record(_FIRST)
    other = ledger.roster_record(roster(identity("mallory"))).body

    _refused(ledger, Record(record.header, record.seals, None), Tampered, "its body is missing")
    _refused(ledger, Record(record.header, record.seals, other), Edited, "with digest")


def test_an_operator_of_all_namespaces_adopts() -> None:
    """The entry counts as an entry and changes no roster."""
    ledger = _begun()
    chain = ledger.add(ledger.adopt_record("operator"))

    assert (chain.seq, chain.roster.seq) == (1, 0)


@pytest.mark.parametrize("body", [None, b"", b"{}"])
def test_an_adoption_counts_without_its_reason(body: bytes | None) -> None:
    """An operator that appends it without the body, or with another, stops no reader."""
    ledger = _begun()
    record = ledger.adopt_record("operator")
    chain = ledger.add(Record(record.header, record.seals, body))

    assert (chain.seq, chain.roster.seq) == (1, 0)


@pytest.mark.parametrize(
    ("document", "by"),
    [
        (_FIRST, "worker"),
        (_FIRST, "root"),
        (_FIRST, "stranger"),
        (roster(identity("operator", Role.OPERATOR, namespaces=("billing",))), "operator"),
        (roster(identity("operator", Role.OPERATOR, namespaces=())), "operator"),
    ],
    ids=["a writer", "the root", "a stranger", "one namespace", "no namespace"],
)
def test_nobody_else_adopts(document: RosterDocument, by: str) -> None:
    """Adoption of the store chain is for operators of all namespaces alone."""
    ledger = StoreLedger()
    ledger.add(ledger.roster_record(document))

    _refused(ledger, ledger.adopt_record(by), NotTrusted, "by role operator of all namespaces")


def test_an_adoption_comes_after_a_roster() -> None:
    """Before the first roster there is no operator."""
    ledger = StoreLedger()

    _refused(ledger, ledger.adopt_record("operator"), NotTrusted, "store chain: it has no roster")


def test_an_adoption_has_one_signature() -> None:
    """A second one, even by another operator, is refused."""
    ledger = _begun()

    _refused(ledger, ledger.adopt_record("operator", "root"), Forged, "expected one signature")


def test_a_false_adoption_is_a_forgery() -> None:
    """The operator must have signed these very bytes."""
    ledger = _begun()
    record = ledger.adopt_record("operator")
    false = Record(record.header, seals(b"{}", key("operator")), record.body)

    _refused(ledger, false, Forged, "expected a valid one")


@pytest.mark.parametrize(
    "kind",
    sorted(set(Kind) - {Kind.ROSTER, Kind.ADOPT, Kind.ROOT, Kind.RESTORE}),
    ids=lambda kind: kind.value,
)
def test_any_other_kind_is_refused(kind: Kind) -> None:
    """Kinds of threads and kinds that nobody judges yet are refused, by the root's key as well."""
    ledger = _begun()

    for by in ("root", "operator"):
        record = ledger.record(kind, Body(salt=SALT), by)
        _refused(ledger, record, NotTrusted, f"expected a kind of this chain, found {kind.word}")


def test_a_thread_entry_is_nothing_on_the_store_chain() -> None:
    """A thread's bytes, genuine where they lie, are refused here."""
    thread = ThreadLedger().begun()

    for record in thread.records:
        with pytest.raises(Misplaced, match="another chain"):
            StoreLedger().add(record)


def test_a_store_chain_entry_is_nothing_in_a_thread() -> None:
    """A roster's bytes, genuine where they lie, are refused in a thread."""
    ledger = _begun()
    ledger.add(ledger.adopt_record("operator"))
    thread = ThreadLedger(ledger.chain)

    with pytest.raises(NotTrusted, match="expected a key of roster 0"):
        thread.verify(ledger.records[0])
    with pytest.raises(Misplaced, match="expected namespace"):
        thread.verify(ledger.records[1], seq=1)


def test_the_reserved_id_is_no_thread() -> None:
    """An operator's entry under the reserved id cannot begin a thread."""
    ledger = ThreadLedger(_begun().chain, thread=STORE_CHAIN, writer="operator")
    record = ledger.record(Kind.ADOPT)

    with pytest.raises(Misplaced, match="expected a genesis, found a adopt"):
        ledger.follow(record)


def test_chains_are_the_same_wherever_their_lists_come_from() -> None:
    """Two readers of one store have verified the same chain."""
    same = pin()

    assert StoreChain(same) == StoreChain(same, lists=PositionLists())
