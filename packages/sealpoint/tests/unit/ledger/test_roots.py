# SPDX-License-Identifier: Apache-2.0
"""A new root is signed by the old and the new one, and signs what comes after it."""

import pytest

from sealpoint.errors import Edited, Forged, NotTrusted
from sealpoint.ledger import Kind, RootBody, encode_body
from sealpoint.signing import Role, Root, RootDocument, TrustPin
from sealpoint.storage import Record
from tests.ledgers import SALT, StoreLedger, identity, key, pin, roster, seals

_TEAM = roster(identity("worker"), identity("operator", Role.OPERATOR))


def _root(*names: str, version: int = 2, threshold: int = 1) -> Root:
    return Root(version=version, threshold=threshold, keys=[key(name).public for name in names])


def _begun(trusted: TrustPin | None = None, *signers: str) -> StoreLedger:
    ledger = StoreLedger(trusted)
    ledger.add(ledger.roster_record(_TEAM, *signers))
    return ledger


def test_the_new_root_signs_from_there_on() -> None:
    """Rosters after it are by the new root; the old one signs none any more."""
    ledger = _begun()
    chain = ledger.add(ledger.root_record(_root("new"), "root", "new"))

    assert (chain.seq, chain.root.version, chain.roster.seq) == (1, 2, 0)
    with pytest.raises(NotTrusted, match="expected 1 of the keys of root 2, found 0"):
        ledger.add(ledger.roster_record(_TEAM, "root"))
    assert ledger.add(ledger.roster_record(_TEAM, "new")).roster.seq == 2


def test_roots_follow_one_another() -> None:
    """Each is one version later, and signed by the one before it."""
    ledger = _begun()
    ledger.add(ledger.root_record(_root("new"), "root", "new"))
    with pytest.raises(NotTrusted, match="keys of root 2, found 0"):
        ledger.add(ledger.root_record(_root("third", version=3), "root", "third"))
    chain = ledger.add(ledger.root_record(_root("third", version=3), "new", "third"))

    assert [root.version for root in chain.roots] == [2, 3]
    assert chain.pin.root.version == 1


@pytest.mark.parametrize("signers", [("root",), ("new",), ("worker",), ("root", "worker")])
def test_one_of_the_two_roots_is_not_enough(signers: tuple[str, ...]) -> None:
    """Neither the old root alone, nor the new one, nor an identity beside one."""
    ledger = _begun()

    with pytest.raises(NotTrusted, match="root signatures: expected 1 of the keys of root"):
        ledger.add(ledger.root_record(_root("new"), *signers))
    assert ledger.chain.root.version == 1


def test_both_thresholds_are_met() -> None:
    """Two of three old keys and two of two new ones; a key of both counts for both."""
    old = pin("a", "b", "c", threshold=2)
    new = _root("c", "d", threshold=2)
    for signers in (("a", "c"), ("a", "b", "c"), ("c", "d"), ("a", "b", "d")):
        ledger = _begun(old, "a", "b")
        with pytest.raises(NotTrusted, match="expected 2 of the keys of root"):
            ledger.add(ledger.root_record(new, *signers))
    ledger = _begun(old, "a", "b")

    assert ledger.add(ledger.root_record(new, "a", "c", "d")).root.threshold == 2


def test_the_threshold_alone_may_change() -> None:
    """The same keys, of which more must sign."""
    ledger = _begun(pin("a", "b"), "a")
    ledger.add(ledger.root_record(_root("a", "b", threshold=2), "a", "b"))

    with pytest.raises(NotTrusted, match="expected 2 of the keys of root 2, found 1"):
        ledger.add(ledger.roster_record(_TEAM, "a"))
    ledger.add(ledger.roster_record(_TEAM, "b", "a"))


@pytest.mark.parametrize("version", [1, 3, 9])
def test_a_root_of_another_version_is_refused(version: int) -> None:
    """No version is repeated or left out."""
    ledger = _begun()

    with pytest.raises(NotTrusted, match=f"expected root 2, found root {version}"):
        ledger.add(ledger.root_record(_root("new", version=version), "root", "new"))


@pytest.mark.parametrize(
    "document",
    [
        RootDocument(2, 0, (str(key("new").public),)),
        RootDocument(2, 1, ()),
        RootDocument(2, 1, (str(key("new").public),) * 2),
        RootDocument(2, 1, ("00" * 32,)),
    ],
)
def test_what_cannot_be_a_root_is_refused(document: RootDocument) -> None:
    """Both roots may have signed it."""
    ledger = _begun()
    body = RootBody(salt=SALT, root=document)

    with pytest.raises(NotTrusted):
        ledger.add(ledger.record(Kind.ROOT, body, "root", "new"))


def test_a_false_signature_of_the_new_root_is_a_forgery() -> None:
    """Whoever names a key of the new root must have signed with it."""
    ledger = _begun()
    record = ledger.root_record(_root("new"), "root", "new")
    other = seals(record.header + b" ", key("new"))
    mixed = seals(record.header, key("root"))[:-1] + b"," + other[1:]

    with pytest.raises(Forged, match="expected a valid one"):
        ledger.add(Record(record.header, mixed, record.body))


def test_an_edited_root_is_refused() -> None:
    """The body is bound by the header that both roots signed."""
    ledger = _begun()
    record = ledger.root_record(_root("new"), "root", "new")
    other = encode_body(RootBody(salt=SALT, root=_root("mallory").document))

    with pytest.raises(Edited):
        ledger.add(Record(record.header, record.seals, other))


def test_a_pin_that_knows_the_new_root_takes_no_other() -> None:
    """The old root, stolen later, makes another root of the same version: refused by the pin."""
    known = pin().with_root(_root("new"))
    ledger = _begun(known)
    stolen = ledger.root_record(_root("mallory"), "root", "mallory")

    with pytest.raises(NotTrusted, match="root 2 is not the one that the pin has"):
        ledger.add(stolen)
    weaker = ledger.root_record(_root("new", "mallory"), "root", "new")
    with pytest.raises(NotTrusted, match="not the one that the pin has"):
        ledger.add(weaker)
    assert ledger.add(ledger.root_record(_root("new"), "root", "new")).root.version == 2


def test_a_pin_of_a_later_root_passes_by_those_before() -> None:
    """It knows the newest alone; the way to it is proven by the roots themselves."""
    known = pin().with_root(_root("third", version=3))
    ledger = _begun(known)
    ledger.add(ledger.root_record(_root("new"), "root", "new"))
    ledger.add(ledger.root_record(_root("third", version=3), "new", "third"))
    chain = ledger.add(ledger.root_record(_root("fourth", version=4), "third", "fourth"))

    assert chain.root.version == 4


def test_the_body_of_a_root_has_one_spelling() -> None:
    """Version, threshold, keys and why, after its salt."""
    body = RootBody(salt=SALT, root=_root("new").document, reason="stolen laptop")

    assert encode_body(body) == (
        b'{"salt":"%b","root":{"version":2,"threshold":1,"keys":["%b"]},"reason":"stolen laptop"}'
        % (SALT.encode(), str(key("new").public).encode())
    )
