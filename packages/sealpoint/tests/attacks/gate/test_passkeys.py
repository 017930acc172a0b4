# SPDX-License-Identifier: Apache-2.0
"""People who approve with passkeys, and a console between them and the store that was taken over.

It has its own key, the store, and everything that authenticators ever gave back: for a sign-in, for
other requests, for other words. What it lacks is a person who touches an authenticator for this.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import utils

from sealpoint.api import verify_bundle
from sealpoint.errors import (
    Forged,
    NeedsApproval,
    NoRight,
    NotTrusted,
    RequestClosed,
    ResumeRefused,
    SealpointError,
)
from sealpoint.gate import Request
from sealpoint.ledger import (
    CheckpointBody,
    HandoffBody,
    Kind,
    ResumeBody,
    VerdictBody,
    encode_body,
)
from sealpoint.signing import (
    ENTRY_TYPE,
    Attestation,
    PasskeyAssertion,
    PrivateKey,
    Role,
    RosterKey,
    Seal,
    Verdict,
    challenge,
    encode_seals,
    pae,
)
from sealpoint.storage import Record
from sealpoint.store import revoke_keys
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import identity, key
from tests.unit.audit.bundles import lines_of, resigned
from tests.unit.gate.team import READ, SHELL
from tests.unit.signing.authenticator import UP, UV, Authenticator

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_PASSKEYS = {
    "ann": Authenticator(1),
    "bob": Authenticator(2, "eddsa", backup_eligible=True),
    "chief": Authenticator(3, "rs256"),
}
_REASON = "looked at it"


@pytest.fixture
def console(attacked: AttackedTeam) -> AttackedTeam:
    """The team with a console, and with passkeys of those who decide."""
    attacked.world.enrol(identity("console", Role.OPERATOR))
    for who, made in _PASSKEYS.items():
        (line,) = (each for each in attacked.world.people if each.name == who)
        attacked.change(who, keys=(*line.keys, RosterKey.of(made.passkey)))
    return attacked


def _word(who: str, request: Request, verdict: Verdict = Verdict.APPROVE) -> Attestation:
    return _PASSKEYS[who].say(request.id, verdict, _REASON)


def _with(who: str, request: Request, proof: bytes, **changes: Any) -> Attestation:
    """An approval by somebody's passkey, with whatever proof."""
    credential = _PASSKEYS[who].passkey.id.raw.hex()
    word = Attestation("webauthn", credential, request.id, Verdict.APPROVE, _REASON, proof.hex())
    return msgspec.structs.replace(word, **changes)


def _slip(console: AttackedTeam, word: Attestation, kind: Kind = Kind.APPROVAL) -> None:
    """Put a word into the store past every check of the console's own code."""
    console.slip(kind, VerdictBody(salt=console.salt, attestation=word), "console")


def _relayed(console: AttackedTeam, word: Attestation) -> type[SealpointError]:
    """How the console is refused that relays a word."""
    return console.ending(partial(console.store("console").relay, word))


# ---------------------------------------------------------------------- the control


def test_words_that_people_gave_count_whoever_relays_them(console: AttackedTeam) -> None:
    """The run goes on, who approved is told, and the whole is sound, here and in a bundle."""
    request = console.waiting()
    for who in ("ann", "bob"):
        console.store("console").relay(_word(who, request))
    assert console.fresh().resume(world=SHELL).state == {"n": 2}
    told = list(console.store("carl").audit(kind="approval"))
    report = verify_bundle(b"".join(console.store("operator").export()), console.world.pin)

    assert [each.by for each in told] == ["console", "console"]
    assert [who for who, each in zip(("ann", "bob"), told, strict=True) if who in each.people] == [
        *("ann", "bob"),
    ]
    assert report.ok
    console.check_sound()


def test_a_key_and_a_passkey_of_one_person_are_one_person(console: AttackedTeam) -> None:
    """Two are needed, and Ann is not two."""
    request = console.waiting("ann")
    with console.landing():
        _slip(console, _word("ann", request))

    assert console.resumed() is NeedsApproval
    (found,) = console.thread("operator").requests()
    assert found.approved_by == ("ann",)


def test_the_glass_is_broken_with_a_passkey(console: AttackedTeam) -> None:
    """By whom the roster marks, at their own touch; a console alone breaks none."""
    request = console.waiting()
    relay = console.store("console").relay

    assert console.ending(lambda: relay(_word("ann", request, Verdict.BREAK_GLASS))) is NoRight
    relay(_word("chief", request, Verdict.BREAK_GLASS))
    assert console.fresh().resume(world=SHELL).state == {"n": 2}
    console.check_sound()


def test_a_denial_by_passkey_is_for_good(console: AttackedTeam) -> None:
    """Also once the passkey has ended."""
    request = console.waiting("bob", "carl")
    console.store("console").relay(_word("ann", request, Verdict.DENY))
    _end(console, "ann")

    assert console.ending(lambda: console.store("bob").approve(request.id, reason="please")) is (
        RequestClosed
    )
    assert console.resumed() is ResumeRefused


# ---------------------------------------------------------------------- a taken console


def _answers(made: Authenticator, request: Request, other: Request) -> Iterator[PasskeyAssertion]:
    """What an authenticator gave back for something else, or what a site got out of a visitor."""
    wanted = challenge(request.id, Verdict.APPROVE, _REASON)
    yield made.get(hashlib.sha256(b"sign in").digest())
    yield made.get(challenge(other.id, Verdict.APPROVE, _REASON))
    yield made.get(challenge(request.id, Verdict.DENY, _REASON))
    yield made.get(challenge(request.id, Verdict.BREAK_GLASS, _REASON))
    yield made.get(challenge(request.id, Verdict.APPROVE, "another reason"))
    members = json.loads(made.client_data(wanted))
    for changes in (
        {"origin": "http://localhost:8081"},
        {"origin": "https://localhost.evil.example"},
        {"crossOrigin": True, "topOrigin": "https://evil.example"},
        {"topOrigin": "https://evil.example"},
        {"type": "webauthn.create"},
    ):
        data = json.dumps(members | changes).encode()
        yield made.answer(data, made.authenticator_data())
    text = made.client_data(wanted)
    yield made.answer(text, made.authenticator_data(UP))
    yield made.answer(text, made.authenticator_data(UV))
    yield made.answer(b'{"origin":"https://evil.example",' + text[1:], made.authenticator_data())
    good = made.get(wanted)
    yield msgspec.structs.replace(good, signature=good.signature[:-1])


@pytest.mark.parametrize("who", _PASSKEYS)
def test_nothing_that_an_authenticator_ever_signed_becomes_this_approval(
    console: AttackedTeam, who: str
) -> None:
    """Neither relayed, nor put into the store past the relay."""
    console.thread(name="u").save(1, world=READ)
    other = console.ask(name="u")
    request = console.waiting()
    words = [
        _with(who, request, answer.encode()) for answer in _answers(_PASSKEYS[who], request, other)
    ]
    for word in words:
        assert _relayed(console, word) is Forged
    with console.landing():
        for word in words:
            _slip(console, word)

    assert console.resumed() is NeedsApproval
    (found,) = console.thread("operator").requests()
    assert (found.approved_by, len(found.ignored)) == ((), len(words))


def test_a_word_has_no_twin(console: AttackedTeam) -> None:
    """The other ECDSA signature that fits is no second word, and no word at all."""
    request = console.waiting()
    word = _word("ann", request)
    good = PasskeyAssertion.parse(bytes.fromhex(word.proof))
    r, s = utils.decode_dss_signature(good.signature)
    twin = msgspec.structs.replace(good, signature=utils.encode_dss_signature(r, _ORDER - s))
    turned = _with("ann", request, twin.encode())

    assert console.ending(lambda: console.store("console").relay(turned)) is Forged
    console.store("console").relay(word)
    with console.landing():
        _slip(console, turned)
    (found,) = console.thread("operator").requests()
    assert (found.approved_by, len(found.ignored)) == (("ann",), 1)


def test_the_word_of_one_passkey_is_nobody_elses(console: AttackedTeam) -> None:
    """Under another credential, scheme or person it is forged."""
    request = console.waiting()
    word = _word("ann", request)
    for changes in (
        {"credential": _PASSKEYS["bob"].passkey.id.raw.hex()},
        {"credential": key("bob").key, "scheme": "ed25519"},
        {"verdict": Verdict.DENY},
        {"verdict": Verdict.BREAK_GLASS},
        {"reason": "paid"},
    ):
        changed = msgspec.structs.replace(word, **changes)
        assert _relayed(console, changed) is Forged
    for changes in ({"scheme": "ed25519"}, {"credential": "ab" * 32}):
        changed = msgspec.structs.replace(word, **changes)
        assert _relayed(console, changed) is NotTrusted


def test_a_resume_on_a_forged_approval_is_found(console: AttackedTeam) -> None:
    """With a stolen worker's key as well: audit and bundle say that it was no grant."""
    request = console.waiting("carl")
    told = request.statement
    signed_in = _PASSKEYS["ann"].get(hashlib.sha256(b"sign in").digest())
    with console.landing():
        _slip(console, _with("ann", request, signed_in.encode()))
        body = ResumeBody(
            salt=console.salt,
            owner="worker",
            basis=console.find(Kind.CHECKPOINT),
            reason=told.reason,
            checkpoint=told.checkpoint,
            release=told.release,
            world=World.from_dict(SHELL).digest,
            policy=told.policy,
            rules=("tools",),
            request=request.id,
            attestations=tuple(
                each.attestation for kind, each in console.entries() if kind == "approval"
            ),
        )
        console.slip(Kind.RESUME, body, "worker")
    store = console.world.open("operator", gated=True)
    report = verify_bundle(b"".join(store.export()), console.world.pin)

    assert {each.code for each in store.verify().findings} == {"unjustified"}
    assert any("it needed 2 approvals and had 1" in each.message for each in report.findings)


# ---------------------------------------------------------------------- nothing but words


def _stolen_passkey(console: AttackedTeam, kind: Kind, body: bytes, *, by_id: bool) -> Record:
    """The next entry, by whoever got the private key of Bob's passkey out of its authenticator."""
    made = _PASSKEYS["bob"]
    signer = PrivateKey("bob", bytes([made.number]) * 32)
    name = made.passkey.id if by_id else signer.public.id
    usual = console.forged(kind, body, "bob", by=name.raw.hex())
    return Record(
        usual.header,
        encode_seals([Seal(name, signer.sign(pae(ENTRY_TYPE, usual.header)))]),
        usual.body,
    )


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("kind", [Kind.CHECKPOINT, Kind.PAUSE, Kind.APPROVAL, Kind.ERASE])
def test_a_passkey_writes_no_entry(console: AttackedTeam, kind: Kind, by_id: bool) -> None:  # noqa: FBT001
    """Whatever roles its holder has, and whichever id the entry names."""
    console.change("bob", roles=tuple(Role))
    request = console.waiting()
    bodies: dict[Kind, bytes] = {
        Kind.CHECKPOINT: encode_body(CheckpointBody(salt=console.salt, id="c", root="ab" * 32)),
        Kind.APPROVAL: encode_body(
            VerdictBody(salt=console.salt, attestation=_word("bob", request))
        ),
    }
    data = bodies.get(kind) or b'{"salt":"%b","reason":"mine"}' % console.salt.encode()
    made = _stolen_passkey(console, kind, data, by_id=by_id)
    with console.landing():
        console.append(made)

    assert console.ending(lambda: console.fresh().load()) is NotTrusted


def test_a_passkey_seals_no_bundle(console: AttackedTeam) -> None:
    """Its private key, in whose hands ever, exports nothing that is believed."""
    console.change("bob", roles=tuple(Role))
    console.waiting()
    lines = lines_of(b"".join(console.store("operator").export()))
    made = _PASSKEYS["bob"]
    signer = PrivateKey("bob", bytes([made.number]) * 32)

    assert verify_bundle(resigned(lines, key("operator")), console.world.pin).ok
    for by in (made.passkey.id, signer.public.id):
        data = resigned(lines, signer, by=by.raw.hex())
        assert console.ending(partial(verify_bundle, data, console.world.pin)) is NotTrusted


# ---------------------------------------------------------------------- ended passkeys


def _end(console: AttackedTeam, who: str) -> int:
    """End somebody's passkey alone; the roster in which it was good."""
    before = console.store().core.renewed_trust().roster.seq
    ending = frozenset({_PASSKEYS[who].passkey.id.raw.hex()})
    console.world.using(
        lambda core: revoke_keys(
            core,
            ending,
            [key("root")],
            change=lambda document: document,
            reason="lost",
            settle=lambda: None,
        )
    )
    for store in ("console", "operator", "worker"):
        console.store(store).core.renewed_trust()
    return before


def test_a_passkey_that_was_lost_says_nothing_more(console: AttackedTeam) -> None:
    """Neither to what is open, nor under the roster in which it still counted."""
    request = console.waiting("carl")
    console.store("console").relay(_word("ann", request))
    before = _end(console, "ann")
    late = _PASSKEYS["ann"].say(request.id, Verdict.APPROVE, "later")

    assert console.ending(lambda: console.store("console").relay(late)) is NotTrusted
    with console.landing():
        body = VerdictBody(salt=console.salt, attestation=late)
        console.append(console.forged(Kind.APPROVAL, body, "console", roster=before))
    assert console.resumed() is NeedsApproval


def test_a_lost_passkey_hands_nothing_off(console: AttackedTeam) -> None:
    """With a stolen operator's key, under an older roster: no reader takes the entry."""
    console.thread().save(1, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        console.thread("operator").handoff(to="spare", reason="gone")
    request = needs.value.request
    assert isinstance(request, Request)
    before = _end(console, "ann")
    body = HandoffBody(
        salt=console.salt,
        owner="spare",
        reason="gone",
        statement=request.statement,
        attestations=(_word("ann", request),),
    )
    with console.landing():
        console.append(console.forged(Kind.HANDOFF, body, "operator", roster=before))

    assert console.ending(lambda: console.fresh("spare").load()) is NotTrusted
