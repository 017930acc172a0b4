# SPDX-License-Identifier: Apache-2.0
"""Rosters: contradictions are refused, and what is not said is not allowed."""

import msgspec
import pytest

from sealpoint.errors import NotTrusted
from sealpoint.signing import Identity, Pool, Role, Roster, RosterDocument, RosterKey
from sealpoint.signing._roster import Cut
from tests.unit.signing.samples import signer


def _key(number: int) -> RosterKey:
    return RosterKey("ed25519", str(signer(number).public))


def _identity(
    name: str,
    *numbers: int,
    roles: tuple[Role, ...] = (Role.WRITER,),
    namespaces: tuple[str, ...] = ("default",),
) -> Identity:
    keys = tuple(_key(number) for number in numbers)
    return Identity(name, f"{name} person", roles, namespaces, keys)


def _roster(*identities: Identity, pools: tuple[Pool, ...] = ()) -> Roster:
    return Roster(RosterDocument(identities, pools), seq=7)


def test_a_roster_finds_identities_by_name_and_key() -> None:
    """Every key leads to its holder, every name to its identity, others to nothing."""
    alice, bob = _identity("alice", 1, 2), _identity("bob", 3)
    roster = _roster(alice, bob)

    assert roster.seq == 7
    assert roster.identities == (alice, bob)
    assert roster.identity("alice") is alice
    assert roster.identity("carol") is None
    for number, holder in ((1, alice), (2, alice), (3, bob)):
        assert roster.holder(signer(number).public.id) == (holder, signer(number).public)
    assert roster.holder(signer(4).public.id) is None


def test_an_empty_roster_knows_nobody() -> None:
    """A roster without identities is valid and allows nothing."""
    roster = _roster()

    assert roster.identities == ()
    assert roster.holder(signer(1).public.id) is None
    assert roster.identity("") is None


def test_one_key_with_two_identities_is_refused() -> None:
    """Who holds a key twice could approve his own request."""
    with pytest.raises(NotTrusted, match=f"{signer(1).public.id.short()} with one identity"):
        _roster(_identity("alice", 1), _identity("bob", 2, 1))


def test_one_key_twice_with_one_identity_is_refused() -> None:
    """A repetition is a mistake in the document too."""
    with pytest.raises(NotTrusted, match="with one identity"):
        _roster(_identity("alice", 1, 1))


def test_one_name_for_two_identities_is_refused() -> None:
    """A name means one identity."""
    with pytest.raises(NotTrusted, match="roster 7: expected identity 'alice' once"):
        _roster(_identity("alice", 1), _identity("alice", 2))


@pytest.mark.parametrize(
    "pools",
    [
        (Pool("alice", ("bob",)),),
        (Pool("pods", ("bob",)), Pool("bob", ())),
        (Pool("pods", ("alice",)), Pool("pods", ("bob",))),
        (Pool("pods", ()), Pool("pods", ())),
    ],
)
def test_a_pool_has_a_name_of_its_own(pools: tuple[Pool, ...]) -> None:
    """A pool that is called like an identity or another pool would own its threads."""
    with pytest.raises(NotTrusted, match="a name of its own for each pool"):
        _roster(_identity("alice", 1), _identity("bob", 2), pools=pools)


def test_owners_are_the_identity_itself_and_members_of_the_pool() -> None:
    """A pool's threads belong to its members; nobody else owns anything."""
    roster = _roster(
        _identity("alice", 1),
        _identity("bob", 2),
        pools=(Pool("pods", ("alice",)), Pool("nobody", ())),
    )

    assert roster.owns("alice", "alice")
    assert roster.owns("alice", "pods")
    assert not roster.owns("bob", "pods")
    assert not roster.owns("alice", "bob")
    assert not roster.owns("alice", "nobody")
    assert not roster.owns("pods", "alice")
    assert not roster.owns("alice", "unknown")


def test_a_roster_covers_one_that_allows_no_more() -> None:
    """Added identities, keys, roles, namespaces, pools and members take nothing away."""
    before = _roster(_identity("alice", 1), pools=(Pool("pods", ("alice",)),))
    after = _roster(
        _identity("alice", 1, 2, roles=(Role.AUDITOR, Role.WRITER), namespaces=("x", "default")),
        _identity("bob", 3),
        pools=(Pool("pods", ("bob", "alice")), Pool("more", ())),
    )
    everywhere = _roster(_identity("alice", 1, namespaces=("*",)), pools=before.document.pools)

    assert before.covers(before)
    assert after.covers(before)
    assert everywhere.covers(before)
    assert before.covers(_roster())
    assert not before.covers(after)
    assert not before.covers(everywhere)
    assert not _roster().covers(before)


@pytest.mark.parametrize(
    "after",
    [
        _roster(_identity("bob", 1), pools=(Pool("pods", ("bob",)),)),
        _roster(_identity("alice", 2), pools=(Pool("pods", ("alice",)),)),
        _roster(_identity("alice", 1, roles=(Role.AUDITOR,)), pools=(Pool("pods", ("alice",)),)),
        _roster(_identity("alice", 1, namespaces=("x",)), pools=(Pool("pods", ("alice",)),)),
        _roster(_identity("alice", 1), _identity("bob", 3), pools=(Pool("pods", ("bob",)),)),
        _roster(_identity("alice", 1)),
    ],
    ids=["identity", "key", "role", "namespace", "member", "pool"],
)
def test_a_roster_that_takes_something_away_does_not_cover(after: Roster) -> None:
    """Every kind of right is compared, each on its own."""
    before = _roster(_identity("alice", 1), pools=(Pool("pods", ("alice",)),))

    assert not after.covers(before)


@pytest.mark.parametrize("scheme", ["", "none", "Ed25519", "ed25519ph", "rsa", "hmac-sha256"])
def test_an_unknown_scheme_is_refused(scheme: str) -> None:
    """A key of a scheme that this version does not know refuses the whole roster."""
    key = RosterKey(scheme, str(signer(1).public))
    identity = Identity("alice", "Alice", (Role.WRITER,), ("default",), (key,))

    with pytest.raises(NotTrusted, match="expected scheme ed25519, found"):
        _roster(identity)


@pytest.mark.parametrize("public", ["", "00" * 32, "ff" * 32, "zz", str(signer(1).public).upper()])
def test_a_weak_or_misspelt_key_is_refused(public: str) -> None:
    """A roster is no way round the checks on public keys."""
    key = RosterKey("ed25519", public)

    with pytest.raises(NotTrusted, match="public key"):
        _roster(Identity("alice", "Alice", (), (), (key,)))


def test_cuts_are_refused_while_nobody_heeds_them() -> None:
    """A roster that ends a key must not be believed by a version that would ignore it."""
    document = RosterDocument((), cuts=(Cut("key", "positions"),))

    with pytest.raises(NotTrusted, match="expected no cuts"):
        Roster(document, seq=1)


@pytest.mark.parametrize("role", Role)
def test_a_role_holds_in_its_namespaces_only(role: Role) -> None:
    """An identity may do what its roles say, where its namespaces say."""
    identity = _identity("alice", 1, roles=(role,), namespaces=("billing", "tests"))

    assert identity.may(role, "billing")
    assert identity.may(role, "tests")
    for other in ("default", "bill", "billing2", "", "*", "Billing"):
        assert not identity.may(role, other)
        assert not identity.covers(other)
    for another in set(Role) - {role}:
        assert not identity.may(another, "billing")


def test_a_star_covers_every_namespace() -> None:
    """Everywhere is said with a star of its own, never by a pattern."""
    everywhere = _identity("alice", 1, namespaces=("*",))
    pattern = _identity("bob", 2, namespaces=("bill*",))

    assert everywhere.may(Role.WRITER, "billing")
    assert not everywhere.may(Role.OPERATOR, "billing")
    assert not pattern.covers("billing")


def test_empty_means_no() -> None:
    """Without roles or without namespaces an identity may do nothing."""
    without_roles = _identity("alice", 1, roles=(), namespaces=("*",))
    without_namespaces = _identity("bob", 2, roles=tuple(Role), namespaces=())

    for role in Role:
        assert not without_roles.may(role, "default")
        assert not without_namespaces.may(role, "default")
    assert not without_namespaces.covers("default")


@pytest.mark.parametrize(
    "text",
    [
        '{"identities":[],"extra":1}',
        '{"identities":[{"name":"a","person":"b","roles":["root"],"namespaces":[],"keys":[]}]}',
        '{"identities":[{"name":"a","person":"b","roles":[],"namespaces":[]}]}',
        '{"identities":[{"name":"a","person":"b","roles":[],"namespaces":[],"keys":[],"x":1}]}',
        '{"identities":[],"pools":[{"name":"p","members":[],"x":1}]}',
        '{"identities":[],"cuts":[{"key":"k","positions":"p","x":1}]}',
        '{"pools":[]}',
    ],
)
def test_a_document_with_unknown_or_missing_parts_is_refused(text: str) -> None:
    """A field, role or part that this version does not know is an error and not ignored."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=RosterDocument)
