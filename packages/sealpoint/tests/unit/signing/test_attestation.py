# SPDX-License-Identifier: Apache-2.0
"""Attestations: made, verified by one roster, and counted by persons."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import Forged, NotTrusted, UsageError
from sealpoint.signing import (
    STATEMENT_TYPE,
    STOPPED,
    Attestation,
    Cutoff,
    Identity,
    PrivateKey,
    Role,
    RosterKey,
    Statement,
    Tally,
    Verdict,
    attest,
    count,
    pae,
    verify_attestation,
)
from tests.repo._tree import ROOT
from tests.unit.signing.authenticator import Authenticator
from tests.unit.signing.samples import signer
from tests.unit.signing.statements import (
    NOW,
    approve,
    break_glass,
    deny,
    handoff,
    person,
    rollout,
    roster,
    statement,
    tally,
)

_ROSTER = roster(person("alice", 2), person("bob", 3, 4), person("carol", 5))


def test_the_proof_is_that_of_the_specification() -> None:
    """The worked example of the format page is what the code signs."""
    page = (ROOT / "docs" / "formats" / "statement.md").read_text(encoding="utf-8")
    key = PrivateKey("alice", bytes(range(32)))
    made = attest(key, statement().digest, Verdict.APPROVE, "I have read the diff")

    assert made.proof == (
        "394f5961c58c0bdc78884bdee9c6cf3263b7563a58e88a1ae89945a98fc7a6b6"
        "89eaf5c35832924a5ec221e4e74d7f4d328664309218c78c125017fff32ff50f"
    )
    assert f"credential {made.credential}\n" in page
    assert f"proof      {made.proof[:64]}\n           {made.proof[64:]}\n" in page


def test_digest_verdict_and_reason_are_signed_and_nothing_else() -> None:
    """The message can be made from these three texts alone."""
    made = attest(signer(2), "ab" * 32, Verdict.DENY, 'no "\u00e9"')
    payload = b'{"statement":"' + b"ab" * 32 + '","verdict":"deny","reason":"no \\"é\\""}'.encode()

    signer(2).public.verify(bytes.fromhex(made.proof), pae(STATEMENT_TYPE, payload))
    assert made == Attestation(
        "ed25519", signer(2).key, "ab" * 32, Verdict.DENY, 'no "\u00e9"', made.proof
    )
    assert list(json.loads(msgspec.json.encode(made))) == [
        *("scheme", "credential", "statement", "verdict", "reason", "proof"),
    ]


def test_an_attestation_verifies_as_its_holder() -> None:
    """Every key of an identity speaks for it, and reading it back from bytes changes nothing."""
    for number, name in ((2, "alice"), (3, "bob"), (4, "bob"), (1, "worker")):
        for made in (approve(number), deny(number)):
            again = msgspec.json.decode(msgspec.json.encode(made), type=Attestation)

            assert verify_attestation(again, _ROSTER).name == name


@pytest.mark.parametrize(
    "reason", ["", " \n", "\u200b", "x" * 4097, "\u00e9" * 2049, "a\ud800", None]
)
def test_a_verdict_needs_a_reason(reason: Any) -> None:
    """Nothing is signed without one that can be seen, nor with one beyond its bound."""
    with pytest.raises(UsageError, match=r"attestation: (expected a reason|a reason is needed)"):
        attest(signer(2), "ab" * 32, Verdict.APPROVE, reason)


@pytest.mark.parametrize(
    "digest", ["", "ab" * 31, "AB" * 32, "ab" * 32 + "\n", "sha256:" + "a" * 57]
)
def test_only_a_digest_is_signed(digest: str) -> None:
    """An approver is not made to sign other text."""
    with pytest.raises(UsageError, match="the digest of a statement is 64"):
        attest(signer(2), digest, Verdict.APPROVE, "read it")


def test_only_a_verdict_is_signed() -> None:
    """There are three, and nothing between them."""
    unknown: Any = "maybe"

    with pytest.raises(UsageError, match="the verdict must be approve, deny or break-glass"):
        attest(signer(2), "ab" * 32, unknown, "read it")


def test_a_key_that_nobody_holds_is_refused() -> None:
    """The given roster decides, not the one of the time it was signed."""
    with pytest.raises(NotTrusted, match="expected a key of roster 7, found one unknown"):
        verify_attestation(approve(9), _ROSTER)
    with pytest.raises(NotTrusted, match="expected a key of roster 7, found one that was revoked"):
        verify_attestation(approve(9), roster(cutoffs=(Cutoff(signer(9).key, "ab" * 32),)))


@pytest.mark.parametrize(
    "credential", ["", "ab", signer(2).key.upper(), signer(2).key + "\n", "z" * 64, "x" * 10**6]
)
def test_a_malformed_credential_is_refused(credential: str) -> None:
    """A key has one spelling, and a hostile text is not repeated in the message."""
    made = msgspec.structs.replace(approve(2), credential=credential)

    with pytest.raises(NotTrusted, match=r"^attestation by key without an id: expected the id"):
        verify_attestation(made, _ROSTER)


@pytest.mark.parametrize("scheme", ["", "none", "Ed25519", "ed25519 ", "webauthn", "x" * 10**6])
def test_an_attestation_does_not_choose_its_scheme(scheme: str) -> None:
    """The roster says what a key is; another word beside a valid proof is refused."""
    made = msgspec.structs.replace(approve(2), scheme=scheme)

    with pytest.raises(NotTrusted, match="expected scheme ed25519, as roster 7 says"):
        verify_attestation(made, _ROSTER)


_GOOD = approve(2)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"statement": "ab" * 32}, "expected a valid one"),
        ({"verdict": Verdict.DENY}, "expected a valid one"),
        ({"verdict": Verdict.BREAK_GLASS}, "expected a valid one"),
        ({"reason": "read it."}, "expected a valid one"),
        ({"proof": "00" * 64}, "expected a valid one"),
        ({"proof": _GOOD.proof[:-2]}, "expected a valid one"),
        ({"proof": _GOOD.proof + "00"}, "expected a valid one"),
        ({"proof": ""}, "expected a valid one"),
        ({"proof": _GOOD.proof.upper()}, "lower-case hexadecimal"),
        ({"proof": _GOOD.proof[:2] + " " + _GOOD.proof[2:]}, "lower-case hexadecimal"),
        ({"proof": _GOOD.proof + "\n"}, "lower-case hexadecimal"),
        ({"proof": "zz" * 64}, "lower-case hexadecimal"),
        ({"proof": "0" * 4096}, "expected a valid one"),
        ({"proof": "0" * 4097}, "at most 4096 digits, found 4097"),
        ({"proof": "0" * 10**7}, "at most 4096 digits"),
        ({"statement": ""}, "approve, deny or break-glass on the digest"),
        ({"statement": _GOOD.statement.upper()}, "approve, deny or break-glass on the digest"),
        ({"statement": "a" * 10**7}, "approve, deny or break-glass on the digest"),
        ({"verdict": "maybe"}, "approve, deny or break-glass on the digest"),
        ({"reason": ""}, "a reason of 1 to 4096 bytes"),
        ({"reason": "x" * 4097}, "a reason of 1 to 4096 bytes"),
        ({"reason": "x" * 10**7}, "a reason of 1 to 4096 bytes"),
        ({"reason": "\ud800"}, "a reason of 1 to 4096 bytes"),
    ],
    ids=range(23),
)
def test_a_changed_attestation_is_forged(changes: dict[str, Any], match: str) -> None:
    """Each signed field, changed on its own, and each field beyond its bounds is refused."""
    with pytest.raises(Forged, match=match):
        verify_attestation(msgspec.structs.replace(_GOOD, **changes), _ROSTER)


def test_bounds_come_before_the_roster() -> None:
    """What is too large is refused as that, whoever is said to have signed it."""
    made = msgspec.structs.replace(approve(9), reason="x" * 10**7)

    with pytest.raises(Forged, match="a reason of"):
        verify_attestation(made, _ROSTER)


def test_of_nothing_nothing_counts() -> None:
    """Empty means no."""
    assert tally([], _ROSTER) == Tally(approved_by=(), denied_by=(), ignored=())


def test_approvals_and_denials_count_by_person() -> None:
    """Different persons are counted under the names of their identities, in order."""
    found = tally([approve(5), approve(2), deny(4)], _ROSTER)

    assert found == Tally(approved_by=("alice", "carol"), denied_by=("bob",))
    assert tally([deny(5), deny(2)], _ROSTER).denied_by == ("alice", "carol")


def test_one_person_counts_once() -> None:
    """Neither two keys, nor two identities, nor two reasons, nor repetition make two persons."""
    by = roster(person("alice", 2, 3, who="A"), person("ada", 4, who="A"), person("bob", 5))
    words = [approve(2), approve(2), approve(2, reason="again"), approve(3), approve(4)]

    assert tally(words, by).approved_by == ("ada",)
    assert sorted(tally(words, by).ignored) == [
        *["approve by 'alice': the person counts once"] * 3,
        f"attestation by key {signer(2).key[:12]}: it is there more than once and counts once",
    ]
    assert tally([*words, approve(5)], by).approved_by == ("ada", "bob")
    assert tally([deny(2), deny(3), deny(4)], by).denied_by == ("ada",)


def test_a_denial_outweighs_the_same_persons_approval() -> None:
    """Whichever came first, and through whichever identity."""
    by = roster(person("alice", 2, who="A"), person("ada", 3, who="A"), person("bob", 4))
    for words in ([approve(2), deny(3), approve(4)], [deny(3), approve(4), approve(2)]):
        found = tally(words, by)

        assert found == Tally(
            approved_by=("bob",),
            denied_by=("ada",),
            ignored=("approval by 'alice': the same person has denied",),
        )


def test_the_requester_does_not_approve() -> None:
    """Not with the requesting identity, and not with another one of the same person."""
    everything = tuple(Role)
    by = roster(person("second", 2, who="worker", roles=everything), person("alice", 3))
    found = tally([approve(2), approve(3)], by)
    asked = tally([approve(3), approve(2)], by, statement(requester="alice"))

    assert found.approved_by == ("alice",)
    assert "it is the person who asks" in found.ignored[0]
    assert asked.approved_by == ()
    assert len(asked.ignored) == 2


def test_the_requester_may_withdraw() -> None:
    """A denial by the requester's person counts without the role, within the namespace alone."""
    by = roster(
        person("second", 2, who="worker", roles=()),
        person("third", 3, who="worker", namespaces=("elsewhere",)),
        person("alice", 4),
    )

    for number, name in ((1, "worker"), (2, "second")):
        found = tally([approve(4), deny(number)], by)
        assert found == Tally(approved_by=("alice",), denied_by=(name,))
    assert tally([deny(3)], by).denied_by == ()
    assert tally([approve(1), deny(1)], by).denied_by == ("worker",)
    assert tally([approve(1), deny(1)], by).approved_by == ()


def test_without_a_known_requester_nobody_approves() -> None:
    """Any approval could be the requester's own; a denial is still one."""
    about = statement(requester="somebody")
    found = tally([approve(2, about), deny(3, about), deny(1, about)], _ROSTER, about)

    assert found.approved_by == ()
    assert found.denied_by == ("bob",)
    assert any("the roster does not know who asks" in line for line in found.ignored)


def test_the_person_whom_it_is_asked_for_does_not_approve() -> None:
    """With no identity of theirs, while others do; they may withdraw as the requester may."""
    by = roster(
        person("alice", 2, who="Alice"),
        person("ada", 3, who="Alice", roles=(Role.AUDITOR,)),
        person("bob", 4),
    )
    about = statement(actor="Alice")
    found = tally([approve(2, about), approve(4, about)], by, about)

    assert found.approved_by == ("bob",)
    assert "it is the person who asks" in found.ignored[0]
    for number, name in ((2, "alice"), (3, "ada"), (1, "worker")):
        assert tally([deny(number, about)], by, about).denied_by == (name,)


@pytest.mark.parametrize("actor", ["alice", "Mallory", "ALICE"])
def test_for_somebody_unknown_nobody_approves(actor: str) -> None:
    """An actor is a person and no identity: one whom the roster does not know widens nothing."""
    by = roster(person("alice", 2, who="Alice"), person("bob", 3))
    about = statement(actor=actor)
    found = tally([approve(2, about), approve(3, about), deny(3, about)], by, about)

    assert found.approved_by == ()
    assert found.denied_by == ("bob",)
    assert any("the roster does not know who asks" in line for line in found.ignored)


_CHIEF = person("chief", 2, roles=(Role.OPERATOR,), break_glass=True)


def test_broken_glass_counts_beside_approvals_and_denials() -> None:
    """It is no approval, it takes none away, and a person breaks the glass once."""
    by = roster(_CHIEF, person("deputy", 3, who="chief", roles=tuple(Role), break_glass=True))
    words = [break_glass(2), break_glass(3), approve(3), break_glass(2, reason="again")]
    found = tally(words, by)

    assert (found.approved_by, found.denied_by) == (("deputy",), ())
    assert found.broken_glass_by == ("chief",)
    assert found.broken_glass == (break_glass(2),)
    assert tally([break_glass(3), deny(3)], by).denied_by == ("deputy",)


def test_whoever_asks_may_break_the_glass_if_marked_for_it() -> None:
    """The mark alone decides, and the record says who it was."""
    for about in (statement(requester="chief"), statement(actor="chief")):
        assert tally([break_glass(2, about)], roster(_CHIEF), about).broken_glass_by == ("chief",)


@pytest.mark.parametrize(
    "identity",
    [
        person("chief", 2, roles=(Role.OPERATOR,)),
        person("chief", 2, roles=tuple(set(Role) - {Role.OPERATOR}), break_glass=True),
        person("chief", 2, roles=tuple(Role), break_glass=True, namespaces=("billing",)),
        person("chief", 2, roles=tuple(Role), break_glass=True, expires=NOW),
    ],
)
def test_only_a_marked_operator_of_the_namespace_breaks_the_glass(identity: Identity) -> None:
    """Neither the mark without the role, the role without the mark, elsewhere, nor afterwards."""
    found = tally([break_glass(2)], roster(identity))

    assert found.broken_glass_by == ()
    assert len(found.ignored) == 1


@pytest.mark.parametrize("about", [handoff(), rollout()], ids=["handoff", "rollout"])
def test_the_glass_is_broken_for_a_resume_alone(about: Statement) -> None:
    """A handoff or a rollout always needs its approvals."""
    found = tally([break_glass(2, about)], roster(_CHIEF), about)

    assert found == Tally(ignored=found.ignored)
    assert "it is for one resume, and never for a" in found.ignored[0]


def test_a_pool_is_no_requester() -> None:
    """Names of pools stand for nobody in particular, and so does the name of a person."""
    by = roster(person("alice", 2, who="Alice"), person("bob", 3))
    about = statement(requester="Alice")

    assert tally([approve(3, about)], by, about).approved_by == ()


@pytest.mark.parametrize(
    "identity",
    [
        person("alice", 2, roles=()),
        person("alice", 2, roles=tuple(set(Role) - {Role.APPROVER})),
        person("alice", 2, namespaces=()),
        person("alice", 2, namespaces=("billing", "")[:1]),
        person("alice", 2, namespaces=("default2", "def*")),
    ],
)
def test_only_approvers_of_the_namespace_count(identity: Identity) -> None:
    """Every other role, or the same role elsewhere, neither approves nor denies."""
    for made, verdict in ((approve(2), "approve"), (deny(2), "deny")):
        found = tally([made], roster(identity))

        assert (found.approved_by, found.denied_by) == ((), ())
        assert found.ignored == (
            f"{verdict} by 'alice': 'alice' is not an approver of namespace 'default'",
        )


def test_an_approver_everywhere_counts() -> None:
    """A star covers the namespace, and the namespace is the statement's."""
    everywhere = roster(person("alice", 2, namespaces=("*",)))
    billing = roster(person("alice", 2, namespaces=("billing",)))
    about = statement(ns="billing")

    assert tally([approve(2)], everywhere).approved_by == ("alice",)
    assert tally([approve(2, about)], billing, about).approved_by == ("alice",)


def test_an_expired_key_says_nothing() -> None:
    """From the instant of its expiry on, nor while it is being ended; before, it counts."""
    for expires, counts in (
        (NOW + timedelta(microseconds=1), True),
        (NOW, False),
        (NOW - timedelta(days=1), False),
        (STOPPED, False),
    ):
        by = roster(person("alice", 2, expires=expires))

        assert bool(tally([approve(2)], by).approved_by) is counts
        assert bool(tally([deny(2)], by).denied_by) is counts
        assert bool(tally([approve(2)], by).ignored) is not counts


def test_an_expired_denial_leaves_the_approval_by_another_key() -> None:
    """What is not eligible outweighs nothing."""
    old = person("ada", 2, who="A", expires=NOW)
    found = tally([deny(2), approve(3)], roster(old, person("alice", 3, who="A")))

    assert found.approved_by == ("alice",)
    assert found.denied_by == ()


def test_what_does_not_verify_is_told_and_not_raised() -> None:
    """Anybody may relay anything: one bad attestation does not stop the others from counting."""
    broken = msgspec.structs.replace(approve(3), reason="another")
    words = [broken, approve(9), approve(2, handoff()), approve(2)]
    found = tally(words, _ROSTER)

    assert found.approved_by == ("alice",)
    assert found.denied_by == ()
    assert len(found.ignored) == 3
    assert any("expected a valid one" in line for line in found.ignored)
    assert any("expected a key of roster 7" in line for line in found.ignored)
    assert any("it is for another statement" in line for line in found.ignored)


# Keys 2 to 9 belong to identities of four persons, one of them the requester's; 10 is unknown.
_CROWD = roster(
    person("a1", 2, 3, who="A"),
    person("a2", 4, who="A"),
    person("b1", 5, who="B"),
    person("b2", 6, who="B", roles=(Role.OPERATOR,), break_glass=True),
    person("c", 7, who="C", expires=NOW),
    person("d", 8, who="D"),
    person("w", 9, who="worker"),
)
_ABOUT = (statement(), statement(nonce="77" * 16))
_WORDS = [
    attest(signer(number), about.digest, verdict, reason)
    for number in range(1, 11)
    for about in _ABOUT
    for verdict in Verdict
    for reason in ("one", "two")
]
_words = st.lists(
    st.sampled_from(_WORDS)
    | st.builds(
        lambda made, other: msgspec.structs.replace(made, proof=other.proof),
        st.sampled_from(_WORDS),
        st.sampled_from(_WORDS),
    ),
    max_size=12,
)
_PERSONS = {identity.name: identity.person for identity in _CROWD.identities}


@given(_words, st.randoms(use_true_random=False))
def test_counting_does_not_depend_on_the_order(words: list[Attestation], random: Any) -> None:
    """Whoever relays attestations cannot decide anything by when."""
    found = tally(words, _CROWD)
    shuffled = list(words)
    random.shuffle(shuffled)

    assert tally(shuffled, _CROWD) == found
    assert tally(iter(words), _CROWD) == found


@given(_words)
def test_no_person_counts_twice(words: list[Attestation]) -> None:
    """Persons are counted once, each from a word that it really said about this statement."""
    found = tally(words, _CROWD)
    approved = [_PERSONS[name] for name in found.approved_by]
    denied = [_PERSONS[name] for name in found.denied_by]
    genuine = set(words) & set(_WORDS)
    said: dict[Verdict, set[str]] = {verdict: set() for verdict in Verdict}
    for made in genuine:
        holder = next((held for held in range(1, 10) if signer(held).key == made.credential), None)
        if made.statement == statement().digest and holder is not None:
            said[made.verdict].add(verify_attestation(made, _CROWD).name)

    assert len({*approved, *denied}) == len(approved) + len(denied)
    assert set(found.approved_by) <= said[Verdict.APPROVE] & {"a1", "a2", "b1", "d"}
    assert set(found.denied_by) <= said[Verdict.DENY] & {"a1", "a2", "b1", "d", "w", "worker"}
    assert set(found.broken_glass_by) <= said[Verdict.BREAK_GLASS] & {"b2"}
    counted = (found.approved_by, found.denied_by, found.broken_glass_by)
    assert sum(map(len, counted)) + len(found.ignored) == len(words)


@given(_words, _words)
def test_more_words_never_lift_a_denial(words: list[Attestation], more: list[Attestation]) -> None:
    """Who has denied stays so, and nobody who has said nothing comes to approve."""
    before, after = tally(words, _CROWD), tally([*words, *more], _CROWD)
    denied = [{_PERSONS[name] for name in found.denied_by} for found in (before, after)]

    assert denied[0] <= denied[1]
    assert not {_PERSONS[name] for name in after.approved_by} & denied[0]


def test_time_is_an_argument() -> None:
    """The same words count or not as the caller's now says."""
    by = roster(person("alice", 2, expires=NOW))

    for now, names in ((NOW - timedelta(seconds=1), ("alice",)), (NOW, ())):
        found = count([approve(2)], statement=statement(), roster=by, now=now)
        assert found.approved_by == names


# ---------------------------------------------------------------------- passkeys


_PASSKEY = Authenticator()


def _holding(*made: Authenticator, name: str = "alice", numbers: tuple[int, ...] = ()) -> Identity:
    identity = person(name, *numbers)
    keys = tuple(RosterKey.of(each.passkey) for each in made)
    return msgspec.structs.replace(identity, keys=(*identity.keys, *keys))


def _by_passkey(made: Authenticator = _PASSKEY, **changes: Any) -> Attestation:
    word = made.say(statement().digest, Verdict.APPROVE, "read it")
    return msgspec.structs.replace(word, **changes)


def test_the_word_of_a_passkey_counts_as_that_of_a_key() -> None:
    """For its person, once, beside those of others."""
    people = roster(_holding(_PASSKEY, numbers=(2,)), person("bob", 3))
    found = tally([_by_passkey(), approve(2), approve(3)], people)

    assert found.approved_by == ("alice", "bob")
    assert found.ignored == ("approve by 'alice': the person counts once",)


def test_a_person_with_two_passkeys_counts_once() -> None:
    """However many authenticators somebody has."""
    other = Authenticator(2)
    found = tally([_by_passkey(), _by_passkey(other)], roster(_holding(_PASSKEY, other)))

    assert found.approved_by == ("alice",)


def test_a_denial_by_passkey_outweighs() -> None:
    """With whichever of their keys a person says no, it is no."""
    word = _PASSKEY.say(statement().digest, Verdict.DENY, "no")
    found = tally([approve(2), word], roster(_holding(_PASSKEY, numbers=(2,))))

    assert (found.approved_by, found.denied_by) == ((), ("alice",))


def test_data_does_not_choose_the_scheme_of_a_passkey() -> None:
    """Neither is a passkey's word one of a key, nor a key's one of a passkey."""
    people = roster(_holding(_PASSKEY, numbers=(2,)))
    for word, expected in (
        (_by_passkey(scheme="ed25519"), "webauthn"),
        (msgspec.structs.replace(approve(2), scheme="webauthn"), "ed25519"),
        (_by_passkey(scheme=""), "webauthn"),
    ):
        with pytest.raises(NotTrusted, match=f"expected scheme {expected}"):
            verify_attestation(word, people)


def test_the_signature_of_a_key_is_no_proof_of_a_passkey() -> None:
    """A passkey of Ed25519 whose private key somebody holds still needs a browser's client data."""
    made = Authenticator(2, "eddsa")
    people = roster(_holding(made))
    word = msgspec.structs.replace(
        approve(2), scheme="webauthn", credential=made.passkey.id.raw.hex()
    )

    with pytest.raises(Forged):
        verify_attestation(word, people)


_CHANGES: dict[str, dict[str, Any]] = {
    "statement": {"statement": "ab" * 32},
    "verdict": {"verdict": Verdict.DENY},
    "reason": {"reason": "read it."},
    "credential": {"credential": signer(3).key},
    "scheme": {"scheme": "ed25519"},
    "no proof": {"proof": ""},
    "half a proof": {"proof": _by_passkey().proof[:100]},
    "the proof of another word": {
        "proof": _PASSKEY.say(statement().digest, Verdict.APPROVE, "read").proof
    },
    "the proof of another passkey": {"proof": _by_passkey(Authenticator(2)).proof},
}


@pytest.mark.parametrize("field", _CHANGES)
def test_a_changed_word_of_a_passkey_is_nobodys(field: str) -> None:
    """Statement, verdict, reason, credential and proof belong together."""
    people = roster(_holding(_PASSKEY), person("bob", 3))

    with pytest.raises((Forged, NotTrusted)):
        verify_attestation(_by_passkey(**_CHANGES[field]), people)


@pytest.mark.parametrize(
    "changed",
    [
        Authenticator(origin="http://localhost:8081"),
        Authenticator(backup_eligible=True),
        Authenticator(relying_party="console.localhost", origin="http://console.localhost:8080"),
    ],
)
def test_a_passkey_that_is_bound_otherwise_has_not_said_it(changed: Authenticator) -> None:
    """With the same key under another origin, relying party or kind of authenticator."""
    with pytest.raises(Forged):
        verify_attestation(_by_passkey(), roster(_holding(changed)))


@given(
    field=st.sampled_from(["statement", "verdict", "reason", "credential", "proof"]),
    text=st.text(max_size=80) | st.text("0123456789abcdef", min_size=64, max_size=64),
)
def test_no_text_in_the_place_of_another_counts(field: str, text: str) -> None:
    """Whatever is put into one field of a word, it counts only as it was said."""
    word = _by_passkey()
    people = roster(_holding(_PASSKEY), person("bob", 3))
    changed = msgspec.structs.replace(word, **{field: text})

    assert tally([changed], people).approved_by == (("alice",) if changed == word else ())


def test_an_expired_passkey_does_not_count() -> None:
    """From its expiry on, as of any key."""
    for expires, counted in ((NOW, ()), (NOW + timedelta(seconds=1), ("alice",))):
        key = RosterKey.of(_PASSKEY.passkey, expires)
        alice = msgspec.structs.replace(person("alice"), keys=(key,))

        assert tally([_by_passkey()], roster(alice)).approved_by == counted


def test_a_revoked_passkey_does_not_count() -> None:
    """Its cutoff leaves it with nobody."""
    cutoffs = (Cutoff(_PASSKEY.passkey.id.raw.hex(), "cd" * 32),)

    with pytest.raises(NotTrusted, match="revoked"):
        verify_attestation(_by_passkey(), roster(person("alice", 2), cutoffs=cutoffs))
