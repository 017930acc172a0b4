# SPDX-License-Identifier: Apache-2.0
"""Rosters: contradictions are refused, and what is not said is not allowed."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from sealpoint.errors import NotTrusted
from sealpoint.signing import (
    STOPPED,
    Cutoff,
    Identity,
    Passkey,
    Pool,
    Role,
    Roster,
    RosterDocument,
    RosterKey,
)
from tests.unit.signing.authenticator import Authenticator
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


def _cut(number: int, positions: str = "ab" * 32) -> Cutoff:
    return Cutoff(signer(number).key, positions)


def _later(
    *identities: Identity, pools: tuple[Pool, ...] = (), cutoffs: tuple[Cutoff, ...] = ()
) -> Roster:
    return Roster(RosterDocument(identities, pools, cutoffs=cutoffs), seq=8)


_PODS = (Pool("pods", ("alice",)),)
_BEFORE = _roster(_identity("alice", 1), pools=_PODS)


def test_a_roster_that_gives_more_lessens_nobody() -> None:
    """Added identities, keys, roles, namespaces, pools and members take nothing away."""
    after = _later(
        _identity("alice", 1, 2, roles=(Role.AUDITOR, Role.WRITER), namespaces=("x", "default")),
        _identity("bob", 3),
        pools=(Pool("pods", ("bob", "alice")), Pool("more", ())),
    )
    everywhere = _later(_identity("alice", 1, namespaces=("*",)), pools=_PODS)

    for each in (_BEFORE, after, everywhere):
        assert each.lessened(_BEFORE) == set()
        each.follows(_BEFORE)
    after.follows(_roster())
    after.follows(None)
    assert _BEFORE.lessened(after) == {
        signer(1).public.id,
        signer(2).public.id,
        signer(3).public.id,
    }
    assert _BEFORE.lessened(everywhere) == {signer(1).public.id}
    assert _roster().lessened(_BEFORE) == {signer(1).public.id}


_LESS: dict[str, tuple[tuple[Identity, ...], tuple[Pool, ...]]] = {
    "identity": ((), ()),
    "name": ((_identity("bob", 1),), (Pool("pods", ("bob",)),)),
    "person": ((msgspec.structs.replace(_identity("alice", 1), person="zoe"),), _PODS),
    "key": ((_identity("alice", 2),), _PODS),
    "role": ((_identity("alice", 1, roles=(Role.AUDITOR,)),), _PODS),
    "namespace": ((_identity("alice", 1, namespaces=("x",)),), _PODS),
    "member": ((_identity("alice", 1), _identity("bob", 3)), (Pool("pods", ("bob",)),)),
    "pool": ((_identity("alice", 1),), ()),
}


@pytest.mark.parametrize(("identities", "pools"), _LESS.values(), ids=_LESS)
def test_a_right_shrinks_with_a_cut_alone(
    identities: tuple[Identity, ...], pools: tuple[Pool, ...]
) -> None:
    """Every kind of right is compared, each on its own; with a cut the key is held by nobody."""
    assert _later(*identities, pools=pools).lessened(_BEFORE) == {signer(1).public.id}
    with pytest.raises(
        NotTrusted, match=f"key {signer(1).public.id.short()} lost a right without a cutoff"
    ):
        _later(*identities, pools=pools).follows(_BEFORE)
    without = tuple(
        msgspec.structs.replace(each, keys=tuple(key for key in each.keys if key != _key(1)))
        for each in identities
    )
    _later(*without, pools=pools, cutoffs=(_cut(1),)).follows(_BEFORE)


def test_break_glass_is_a_right() -> None:
    """It may be given, and is not taken away without a cutoff."""
    marked = msgspec.structs.replace(_identity("alice", 1), break_glass=True)
    plain = _later(_identity("alice", 1))

    assert _later(marked).lessened(plain) == set()
    assert plain.lessened(_later(marked)) == {signer(1).public.id}


def test_every_key_that_loses_a_right_needs_its_cut() -> None:
    """One of two keys of an identity that has fewer roles is not enough."""
    before = _roster(_identity("alice", 1, 2), _identity("bob", 3))
    fewer = _identity("alice", roles=())

    with pytest.raises(NotTrusted, match=f"key {signer(2).public.id.short()}"):
        _later(fewer, _identity("bob", 3), cutoffs=(_cut(1),)).follows(before)
    _later(fewer, _identity("bob", 3), cutoffs=(_cut(1), _cut(2))).follows(before)


def test_an_identity_without_keys_loses_nothing() -> None:
    """Where no key had the right, nobody can go on under an older roster."""
    _later(_identity("bob", 3)).follows(_roster(_identity("alice"), _identity("bob", 3)))


def test_cuts_are_never_taken_back() -> None:
    """A later roster repeats every cut as it was, in any order."""
    before = _later(_identity("alice", 3), cutoffs=(_cut(1), _cut(2)))

    _later(_identity("alice", 3), cutoffs=(_cut(2), _cut(1))).follows(before)
    for cutoffs in ((), (_cut(1),), (_cut(1), _cut(2, "cd" * 32)), (_cut(2), _cut(3))):
        with pytest.raises(NotTrusted, match="every earlier cutoff"):
            _later(_identity("alice"), cutoffs=cutoffs).follows(before)


def test_a_cut_is_for_a_key_that_was_held() -> None:
    """There is nothing to end in the first roster, nor of a key that nobody has."""
    for earlier in (None, _BEFORE):
        with pytest.raises(NotTrusted, match="that the roster before did not have"):
            _later(_identity("alice", 1), pools=_PODS, cutoffs=(_cut(9),)).follows(earlier)


def test_a_key_with_a_cut_is_held_by_nobody() -> None:
    """Not by its identity, and not by another one."""
    for name in ("alice", "bob"):
        with pytest.raises(
            NotTrusted, match=f"which has a cutoff, with nobody, found it with '{name}'"
        ):
            _later(_identity(name, 2, 1), cutoffs=(_cut(1),))


@pytest.mark.parametrize(
    "cutoffs",
    [
        (Cutoff("key", "ab" * 32),),
        (Cutoff("ab" * 32, "positions"),),
        (Cutoff("AB" * 32, "ab" * 32),),
        (Cutoff("ab" * 32, "ab" * 31),),
        (Cutoff("ab" * 32, "ab" * 32 + "\n"),),
        (_cut(1), _cut(1)),
        (_cut(1), _cut(1, "cd" * 32)),
    ],
)
def test_a_malformed_cut_is_refused(cutoffs: tuple[Cutoff, ...]) -> None:
    """A cut is a key id and a digest in hexadecimal, one for each key."""
    with pytest.raises(NotTrusted, match="expected cutoffs with a key and a digest, each key once"):
        _later(cutoffs=cutoffs)


def test_an_older_roster_gives_its_cuts_up() -> None:
    """The newest one decides about them, and an older one judges rights as before."""
    plain = _later(_identity("alice", 3))
    made = _later(_identity("alice", 3), pools=_PODS, cutoffs=(_cut(1),))
    kept = made.without_cutoffs()

    assert plain.without_cutoffs() is plain
    assert (kept.seq, kept.cutoffs, kept.document.cutoffs) == (8, {}, ())
    assert made.cutoffs == {signer(1).key: "ab" * 32}
    assert kept.owns("alice", "pods")
    assert kept.holder(signer(3).public.id) == made.holder(signer(3).public.id)


def test_a_key_expires_when_the_roster_says() -> None:
    """By the id of the key; other keys, held or not, do not."""
    late = datetime(2030, 1, 1, tzinfo=UTC)
    keys = (msgspec.structs.replace(_key(1), expires=late), _key(2))
    roster = _roster(msgspec.structs.replace(_identity("alice"), keys=keys))

    assert roster.expiries.get(signer(1).key) == late
    assert roster.expiries.get(signer(2).key) is None
    assert roster.expiries.get(signer(3).key) is None


def test_a_key_has_expired_from_its_expiry_on() -> None:
    """At that instant and after it; a key without an expiry never, and neither does one unheld."""
    at = datetime(2030, 1, 1, tzinfo=UTC)
    keys = (msgspec.structs.replace(_key(1), expires=at), _key(2))
    roster = _roster(msgspec.structs.replace(_identity("alice"), keys=keys))
    just_before, last = at - timedelta(microseconds=1), datetime.max.replace(tzinfo=UTC)

    assert roster.key_expired_at(signer(1).key, at)
    assert not roster.key_expired_at(signer(1).key, just_before)
    assert not roster.key_expired_at(signer(2).key, last)
    assert not roster.key_expired_at(signer(3).key, last)


def test_an_expiry_may_be_set_moved_and_taken_away() -> None:
    """The newest roster decides about it, so no older one can be used against it."""
    times = (None, datetime(2030, 1, 1, tzinfo=UTC), STOPPED)
    rosters = [
        _later(
            msgspec.structs.replace(
                _identity("alice"), keys=(msgspec.structs.replace(_key(1), expires=time),)
            )
        )
        for time in times
    ]

    for after in rosters:
        for before in rosters:
            after.follows(before)


@pytest.mark.parametrize("zone", [None, timezone(timedelta(hours=1)), timezone(timedelta(0), "X")])
def test_an_expiry_is_in_utc(zone: timezone | None) -> None:
    """One instant has one spelling."""
    key = msgspec.structs.replace(_key(1), expires=datetime(2030, 1, 1, tzinfo=zone))

    with pytest.raises(NotTrusted, match="expected an expiry in UTC"):
        _roster(msgspec.structs.replace(_identity("alice"), keys=(key,)))


def test_an_identity_stands_for_the_one_pool_that_it_is_in() -> None:
    """With none or several it stands for itself."""
    roster = _roster(
        _identity("alice", 1),
        _identity("bob", 2),
        _identity("carol", 3),
        pools=(Pool("pods", ("alice", "bob")), Pool("more", ("bob",)), Pool("empty", ())),
    )

    assert roster.pool_of("alice") == "pods"
    assert roster.pool_of("bob") is None
    assert roster.pool_of("carol") is None
    assert roster.pool_of("nobody") is None


@pytest.mark.parametrize("scheme", ["", "none", "Ed25519", "ed25519ph", "rsa", "hmac-sha256"])
def test_an_unknown_scheme_is_refused(scheme: str) -> None:
    """A key of a scheme that this version does not know refuses the whole roster."""
    key = RosterKey(scheme, str(signer(1).public))
    identity = Identity("alice", "Alice", (Role.WRITER,), ("default",), (key,))

    with pytest.raises(NotTrusted, match="expected scheme ed25519 or webauthn, found"):
        _roster(identity)


@pytest.mark.parametrize("public", ["", "00" * 32, "ff" * 32, "zz", str(signer(1).public).upper()])
def test_a_weak_or_misspelt_key_is_refused(public: str) -> None:
    """A roster is no way round the checks on public keys."""
    key = RosterKey("ed25519", public)

    with pytest.raises(NotTrusted, match="public key"):
        _roster(Identity("alice", "Alice", (), (), (key,)))


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


@pytest.mark.parametrize("role", Role)
def test_one_of_several_roles_is_enough_in_its_namespaces_only(role: Role) -> None:
    """Whoever has one of them may; without any, or elsewhere, nobody may."""
    identity = _identity("alice", 1, roles=(role,), namespaces=("billing",))

    assert identity.may_any((role,), "billing")
    assert identity.may_any(tuple(Role), "billing")
    assert not identity.may_any(tuple(Role), "default")
    assert not identity.may_any(tuple(set(Role) - {role}), "billing")
    assert not identity.may_any((), "billing")


@pytest.mark.parametrize("digest", ["", "ab" * 31, "AB" * 32, "zz" * 32, "ab" * 32 + "\n"])
def test_what_names_a_policy_is_a_digest(digest: str) -> None:
    """Even the root may have signed nonsense: what no blob can be called is refused."""
    document = RosterDocument((_identity("alice", 1),), policies={"*": digest})
    with pytest.raises(NotTrusted, match="expected the digest of a policy"):
        Roster(document, seq=7)


def test_policies_are_named_by_namespace() -> None:
    """A digest for each, and the same one may be there twice."""
    policies = {"*": "ab" * 32, "billing": "ab" * 32, "tests": "cd" * 32}
    document = RosterDocument((_identity("alice", 1),), policies=policies)

    assert Roster(document, seq=7).document.policies == policies


def test_a_star_covers_every_namespace() -> None:
    """Everywhere is said with a star of its own, never by a pattern."""
    everywhere = _identity("alice", 1, namespaces=("*",))
    pattern = _identity("bob", 2, namespaces=("bill*",))

    assert everywhere.may(Role.WRITER, "billing")
    assert not everywhere.may(Role.OPERATOR, "billing")
    assert not pattern.covers("billing")


def test_a_namespace_has_a_name() -> None:
    """The store chain has none, and nobody is given it by an empty one."""
    with pytest.raises(NotTrusted, match="expected namespaces with names"):
        _roster(_identity("alice", 1, namespaces=("default", "")))


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


# ---------------------------------------------------------------------- passkeys


def _with_passkey(
    *made: Authenticator, name: str = "alice", number: int | None = None, **options: Any
) -> Identity:
    keys = tuple(RosterKey.of(each.passkey) for each in made)
    identity = _identity(name, *(() if number is None else (number,)), **options)
    return msgspec.structs.replace(identity, keys=(*identity.keys, *keys))


def test_a_passkey_is_held_for_attestations_and_nothing_else() -> None:
    """Whoever asks who may sign an entry does not find it; whoever counts words does."""
    passkey = Authenticator().passkey
    alice = _with_passkey(Authenticator(), number=1)
    roster = _roster(alice)

    assert roster.holder(passkey.id) is None
    assert roster.keys.keys() == {signer(1).public.id}
    assert roster.attester(passkey.id) == (alice, passkey)
    assert roster.attester(signer(1).public.id) == (alice, signer(1).public)
    assert roster.holders().keys() == {passkey.id, signer(1).public.id}


def test_keys_without_a_passkey_are_written_as_before() -> None:
    """A roster without passkeys has the bytes that it always had."""
    public = str(signer(1).public)

    assert RosterKey.of(signer(1).public) == RosterKey("ed25519", public)
    assert msgspec.json.encode(RosterKey("ed25519", public)) == (
        b'{"scheme":"ed25519","public":"' + public.encode() + b'","expires":null}'
    )


def test_a_passkey_is_read_as_it_is_written() -> None:
    """Its binding lies beside its public key, and both come back."""
    made = RosterKey.of(Authenticator().passkey, STOPPED)
    data = msgspec.json.encode(made)

    assert msgspec.json.decode(data, type=RosterKey) == made
    assert msgspec.json.decode(data)["passkey"]["origin"] == "http://localhost:8080"
    assert made.key == Authenticator().passkey
    assert made.digits == Authenticator().passkey.id.raw.hex()


def test_a_binding_is_with_a_passkey_and_with_no_other_key() -> None:
    """Neither is a passkey without one, nor does another key have one."""
    made = RosterKey.of(Authenticator().passkey)
    for key in (
        msgspec.structs.replace(made, passkey=msgspec.UNSET),
        msgspec.structs.replace(made, scheme="ed25519"),
        msgspec.structs.replace(made, scheme="ed25519", public=str(signer(1).public)),
    ):
        identity = msgspec.structs.replace(_identity("alice"), keys=(key,))
        with pytest.raises(NotTrusted, match="expected what binds a passkey"):
            _roster(identity)


def test_a_passkey_belongs_to_one_identity() -> None:
    """Neither a public key nor a credential is there twice, whatever the scheme."""
    one, two = Authenticator(1), Authenticator(2)
    same_credential = RosterKey.of(
        Passkey(two.passkey.public, one.passkey.binding),
    )
    same_key = RosterKey.of(Passkey(one.passkey.public, two.passkey.binding))
    same_bytes = RosterKey.of(Authenticator(1, "eddsa").passkey)
    for key in (same_credential, same_key, RosterKey.of(one.passkey), same_bytes):
        other = msgspec.structs.replace(_identity("bob"), keys=(key,))
        with pytest.raises(NotTrusted, match="with one identity"):
            _roster(_with_passkey(one, number=1), other)


def test_a_passkey_that_goes_or_loses_a_right_needs_a_cutoff() -> None:
    """As of any other key, and its binding is part of what it is."""
    one = Authenticator()
    before = _roster(_with_passkey(one, number=1))
    moved = Authenticator(origin="http://localhost:9")
    for shrunk in (
        _identity("alice", 1),
        _with_passkey(one, number=1, namespaces=("other",)),
        _with_passkey(moved, number=1),
    ):
        after = _roster(shrunk)
        assert one.passkey.id in after.lessened(before)
        with pytest.raises(NotTrusted, match="lost a right without a cutoff"):
            after.follows(before)


def test_a_passkey_is_ended_by_a_cutoff_for_good() -> None:
    """The cutoff is for a key that was held, and nobody holds it afterwards."""
    one = Authenticator()
    digits = one.passkey.id.raw.hex()
    cutoffs = (Cutoff(digits, "cd" * 32),)
    before = _roster(_with_passkey(one, number=1))
    after = Roster(RosterDocument((_identity("alice", 1),), cutoffs=cutoffs), seq=8)

    after.follows(before)
    assert after.attester(one.passkey.id) is None
    with pytest.raises(NotTrusted, match="which has a cutoff"):
        Roster(RosterDocument((_with_passkey(one, number=1),), cutoffs=cutoffs), seq=9)


def test_a_passkey_expires_as_others_do() -> None:
    """Its expiry is found by the digits of its id, and is in UTC."""
    until = datetime(2030, 1, 1, tzinfo=UTC)
    key = RosterKey.of(Authenticator().passkey, until)
    roster = _roster(msgspec.structs.replace(_identity("alice"), keys=(key,)))

    assert roster.expiries == {Authenticator().passkey.id.raw.hex(): until}
