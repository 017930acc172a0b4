# SPDX-License-Identifier: Apache-2.0
"""Passkeys: enrolled, written down in one spelling, and verified without anybody being asked."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import utils
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import Forged, TrustFileInvalid, UsageError
from sealpoint.ids import KeyId
from sealpoint.signing import (
    PASSKEY_ALGORITHMS,
    STATEMENT_TYPE,
    Passkey,
    PasskeyAssertion,
    PasskeyBinding,
    Verdict,
    challenge,
    pae,
    passkey_attestation,
)
from tests.unit.signing.authenticator import BE, BS, ED, UP, UV, Authenticator, encode_challenge
from tests.unit.signing.samples import signer

_CHALLENGE = bytes(range(32))
_ONE = Authenticator()
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
# The point of P-256 with the coordinate x = 0, which a coordinate x = _PRIME would spell again.
_Y_AT_ZERO = 0x66485C780E2F83D72433BD5D84A06BB6541C2AF31DAE871728BF856A174F93F4
_ALGORITHMS = [algorithm.name for algorithm in PASSKEY_ALGORITHMS]


def _enrol(made: Authenticator, **changes: Any) -> Passkey:
    client_data, authenticator_data = made.create(_CHALLENGE)
    options: dict[str, Any] = {
        "client_data": client_data,
        "authenticator_data": authenticator_data,
        "challenge": _CHALLENGE,
        "relying_party": made.relying_party,
        "origin": made.origin,
    }
    return Passkey.enroll(**(options | changes))


def _refused(assertion: PasskeyAssertion, by: Authenticator = _ONE) -> str:
    with pytest.raises(Forged) as caught:
        by.passkey.verify_assertion(assertion, _CHALLENGE)
    return caught.value.message


def _said(text: str, by: Authenticator = _ONE) -> PasskeyAssertion:
    """A genuine signature over whatever client data."""
    return by.answer(text.encode(), by.authenticator_data())


# ---------------------------------------------------------------------- what is signed


def test_the_challenge_is_the_hash_of_what_other_keys_sign() -> None:
    """Statement digest, verdict and reason, framed: whatever the scheme, that is what is said."""
    payload = b'{"statement":"' + b"ab" * 32 + b'","verdict":"deny","reason":"no"}'

    made = challenge("ab" * 32, Verdict.DENY, "no")

    assert made == hashlib.sha256(pae(STATEMENT_TYPE, payload)).digest()


@pytest.mark.parametrize(
    ("statement", "verdict", "reason"),
    [("AB" * 32, "approve", "r"), ("ab" * 32, "maybe", "r"), ("ab" * 32, "approve", "\n ")],
)
def test_there_is_no_challenge_for_what_cannot_be_said(
    statement: str, verdict: Any, reason: str
) -> None:
    """Whoever asks for one is refused as whoever signs is."""
    with pytest.raises(UsageError):
        challenge(statement, verdict, reason)


@pytest.mark.parametrize("algorithm", _ALGORITHMS)
@pytest.mark.parametrize("backup", [False, True])
def test_a_word_by_each_kind_of_passkey_verifies(algorithm: str, backup: bool) -> None:  # noqa: FBT001
    """From enrolment to proof, for every algorithm, with and without copies elsewhere."""
    made = Authenticator(2, algorithm, backup_eligible=backup)
    passkey = _enrol(made)
    word = made.say("ab" * 32, Verdict.APPROVE, "I have read it")

    passkey.verify(
        bytes.fromhex(word.proof),
        pae(
            STATEMENT_TYPE,
            b'{"statement":"' + b"ab" * 32 + b'","verdict":"approve","reason":"I have read it"}',
        ),
    )

    assert (word.scheme, word.credential) == ("webauthn", passkey.id.raw.hex())
    assert (passkey.algorithm, passkey.binding.backup_eligible) == (algorithm, backup)
    assert passkey == made.passkey
    assert passkey.credential == made.credential


def test_what_a_passkey_did_not_say_becomes_no_attestation() -> None:
    """An answer to another challenge is refused before anything is made of it."""
    answer = _ONE.get(challenge("ab" * 32, Verdict.DENY, "no"))

    with pytest.raises(Forged, match="challenge"):
        passkey_attestation(_ONE.passkey, "ab" * 32, Verdict.APPROVE, "no", answer)


def test_extensions_of_an_authenticator_are_passed_over() -> None:
    """They are signed, and nothing depends on them."""
    made = _ONE.authenticator_data(UP | UV | ED, after=b"\xa0")

    _ONE.passkey.verify_assertion(_ONE.answer(_ONE.client_data(_CHALLENGE), made), _CHALLENGE)


def test_members_that_nobody_knows_are_passed_over() -> None:
    """Browsers add some so that nobody compares client data with a template."""
    made = Authenticator(extra={"other_keys_can_be_added_here": {"n": [1, None, 2.5, "x"]}})

    made.passkey.verify_assertion(made.get(_CHALLENGE), _CHALLENGE)


def test_client_data_without_a_word_on_frames_is_taken() -> None:
    """Older browsers leave it out where the page is in no frame."""
    members = json.loads(_ONE.client_data(_CHALLENGE))
    del members["crossOrigin"]

    _ONE.passkey.verify_assertion(_said(json.dumps(members)), _CHALLENGE)


# ---------------------------------------------------------------------- what is refused


_MEMBERS: dict[str, tuple[dict[str, Any], str]] = {
    "a new credential": ({"type": "webauthn.create"}, "type webauthn.get"),
    "no type": ({"type": None}, "type webauthn.get"),
    "another challenge": ({"challenge": encode_challenge(bytes(32))}, "challenge"),
    "a padded challenge": ({"challenge": encode_challenge(_CHALLENGE) + "="}, "challenge"),
    "a challenge in a list": ({"challenge": [encode_challenge(_CHALLENGE)]}, "challenge"),
    "another port": ({"origin": "http://localhost:8081"}, "origin http://localhost:8080"),
    "another spelling": ({"origin": "http://LOCALHOST:8080"}, "origin"),
    "a path": ({"origin": "http://localhost:8080/"}, "origin"),
    "another scheme": ({"origin": "https://localhost:8080"}, "origin"),
    "a frame": ({"crossOrigin": True}, "frame"),
    "a frame as a number": ({"crossOrigin": 0}, "frame"),
    "a frame as nothing": ({"crossOrigin": None}, "frame"),
    "a top origin": ({"topOrigin": "http://localhost:8080"}, "frame"),
    "no top origin": ({"topOrigin": None}, "frame"),
}


@pytest.mark.parametrize("case", _MEMBERS)
def test_client_data_of_another_act_is_refused(case: str) -> None:
    """Act, challenge and origin are compared exactly, and a frame of another site is refused."""
    extra, expected = _MEMBERS[case]

    assert expected in _refused(Authenticator(extra=extra).get(_CHALLENGE))


_CLEAN = _ONE.client_data(_CHALLENGE).decode()
_TEXTS = {
    "nothing": "",
    "no object": "[]",
    "a text": json.dumps(_CLEAN),
    "null": "null",
    "two documents": _CLEAN + _CLEAN,
    "something after it": _CLEAN + "x",
    "a byte order mark": "\ufeff" + _CLEAN,
    "a name twice": _CLEAN[:-1] + ',"origin":"http://localhost:8080"}',
    "a name twice, first another": '{"origin":"https://evil.example",' + _CLEAN[1:],
    "a name twice, spelt otherwise": _CLEAN[:-1] + ',"orig\\u0069n":"http://localhost:8080"}',
    "a name twice further in": _CLEAN[:-1] + ',"more":{"a":1,"a":2}}',
    "no number": _CLEAN[:-1] + ',"more":NaN}',
    "an endless number": _CLEAN[:-1] + ',"more":-Infinity}',
    "a comment": _CLEAN[:-1] + "/**/}",
    "a control character": _CLEAN[:-1] + ',"more":"\x00"}',
    "single quotes": _CLEAN.replace('"', "'"),
    "deep nesting": "[" * 1024,
    "deep nesting inside": _CLEAN[:-1] + ',"a":' + "[" * 400 + "]" * 400 + "x}",
    "names nested as one": '{"a":' + _CLEAN + "}",
    "a name in capitals": _CLEAN.replace("challenge", "Challenge"),
    "a name with a space": _CLEAN.replace('"type"', '"type "'),
}


@pytest.mark.parametrize("case", _TEXTS)
def test_hostile_client_data_is_refused(case: str) -> None:
    """However genuine the signature: what two readers could read in two ways says nothing."""
    _refused(_said(_TEXTS[case]))


def test_client_data_that_is_no_text_is_refused() -> None:
    """Bytes that are not UTF-8 are no JSON."""
    _refused(_ONE.answer(_CLEAN.encode("utf-16"), _ONE.authenticator_data()))
    _refused(_ONE.answer(_CLEAN.encode()[:-1] + b',"x":"\xff"}', _ONE.authenticator_data()))


_FLAGS = {
    "nobody was present": UV,
    "nobody was verified": UP,
    "neither": 0,
    "backed up without being eligible": UP | UV | BS,
    "eligible for backup, unlike when enrolled": UP | UV | BE,
    "backed up, unlike when enrolled": UP | UV | BE | BS,
    "a new credential": UP | UV | 0x40,
    "extensions that are not there": UP | UV | ED,
}


@pytest.mark.parametrize("case", _FLAGS)
def test_flags_of_another_answer_are_refused(case: str) -> None:
    """The user was present and verified, and the authenticator is what it was when enrolled."""
    made = _ONE.authenticator_data(_FLAGS[case])

    _refused(_ONE.answer(_ONE.client_data(_CHALLENGE), made))


def test_a_passkey_that_may_be_copied_does_not_become_one_that_may_not() -> None:
    """What the roster says of copies is what the authenticator says each time."""
    made = Authenticator(backup_eligible=True)

    assert "backed up" in _refused(_ONE.get(_CHALLENGE), made)


def test_data_that_no_flag_announces_is_refused() -> None:
    """There is nothing behind the counter, and nothing is missing before it."""
    for data in (_ONE.authenticator_data(after=b"\xa0"), _ONE.authenticator_data()[:-1], b""):
        _refused(
            PasskeyAssertion(
                client_data=_CLEAN.encode(), authenticator_data=data, signature=b"\x00" * 70
            )
        )
    _refused(_ONE.answer(_CLEAN.encode(), _ONE.authenticator_data(after=b"\xa0")))


def test_another_relying_party_is_refused() -> None:
    """The authenticator says for whom it has answered."""
    other = Authenticator(relying_party="example.com")

    assert "relying party localhost" in _refused(
        _ONE.answer(_CLEAN.encode(), other.authenticator_data())
    )


@pytest.mark.parametrize("algorithm", _ALGORITHMS)
def test_another_key_is_refused(algorithm: str) -> None:
    """Everything is right but who has signed."""
    one, other = Authenticator(1, algorithm), Authenticator(2, algorithm)
    answer = other.get(_CHALLENGE)
    if algorithm == "rs256":  # of which there is one
        answer = msgspec.structs.replace(answer, signature=bytes(256))

    assert "valid one" in _refused(answer, one)


@pytest.mark.parametrize("algorithm", _ALGORITHMS)
@pytest.mark.parametrize("signature", [b"\x00", b"\x30\x00", b"\x00" * 64, b"\xff" * 512])
def test_what_is_no_signature_is_refused(algorithm: str, signature: bytes) -> None:
    """Whatever its form and length."""
    made = Authenticator(1, algorithm)

    _refused(msgspec.structs.replace(made.get(_CHALLENGE), signature=signature), made)


def test_the_other_of_two_signatures_is_refused_where_it_counts_and_turned_where_it_is_made() -> (
    None
):
    """Of the two ECDSA signatures that fit one message one is taken, so no word has a twin."""
    good = _ONE.get(_CHALLENGE)
    r, s = utils.decode_dss_signature(good.signature)
    twin = utils.encode_dss_signature(r, _ORDER - s)

    assert s <= _ORDER // 2
    assert "valid one" in _refused(msgspec.structs.replace(good, signature=twin))
    assert good == _ONE.passkey.assertion(
        client_data=good.client_data, authenticator_data=good.authenticator_data, signature=twin
    )


@pytest.mark.parametrize(
    "signature",
    [
        b"",
        b"\x30\x00",
        utils.encode_dss_signature(1, 0),
        utils.encode_dss_signature(1, _ORDER),
        utils.encode_dss_signature(1, 2**300),
    ],
)
def test_a_signature_of_no_form_is_not_turned(signature: bytes) -> None:
    """It ends in an error of ours, before anything is verified."""
    with pytest.raises(Forged, match="expected a signature"):
        _ONE.passkey.assertion(client_data=b"", authenticator_data=b"", signature=signature)


def test_a_signature_in_another_spelling_is_refused() -> None:
    """Lengths in more bytes than needed, and numbers with more zeros, are no second proof."""
    good = _ONE.get(_CHALLENGE)
    spelt = b"\x30\x81" + good.signature[1:]

    _refused(msgspec.structs.replace(good, signature=spelt))
    _refused(msgspec.structs.replace(good, signature=good.signature + b"\x00"))


# ---------------------------------------------------------------------- proofs


def test_a_proof_is_its_parts_after_their_lengths() -> None:
    """Client data and authenticator data after two bytes of length each, then the signature."""
    made = PasskeyAssertion(client_data=b"ab", authenticator_data=b"c" * 37, signature=b"d")

    assert made.encode() == b"\x00\x02ab\x00\x25" + b"c" * 37 + b"d"
    assert PasskeyAssertion.parse(made.encode()) == made


@given(st.binary(max_size=2000))
def test_a_proof_has_one_spelling(data: bytes) -> None:
    """What parses is written as the same bytes again, and nothing else parses."""
    try:
        made = PasskeyAssertion.parse(data)
    except Forged:
        return

    assert made.encode() == data


@pytest.mark.parametrize(
    "parts",
    [
        (b"x" * 1025, b"a" * 37, b"s"),
        (b"x", b"a" * 36, b"s"),
        (b"x", b"a" * 257, b"s"),
        (b"x", b"a" * 37, b""),
        (b"x", b"a" * 37, b"s" * 513),
    ],
)
def test_parts_beyond_their_bounds_are_neither_written_nor_read(
    parts: tuple[bytes, bytes, bytes],
) -> None:
    """The bounds come first, whatever the parts hold."""
    client_data, authenticator_data, signature = parts
    made = PasskeyAssertion(
        client_data=client_data, authenticator_data=authenticator_data, signature=signature
    )
    framed = (len(each).to_bytes(2) + each for each in (client_data, authenticator_data))

    with pytest.raises(Forged, match="bounds"):
        made.encode()
    with pytest.raises(Forged, match="bounds"):
        PasskeyAssertion.parse(b"".join(framed) + signature)
    assert "bounds" in _refused(made)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x05abcd", b"\x00\x01a\x00", b"\xff\xff"])
def test_a_proof_that_ends_too_early_is_refused(data: bytes) -> None:
    """A length says more than there is."""
    with pytest.raises(Forged, match="lengths"):
        PasskeyAssertion.parse(data)


# ---------------------------------------------------------------------- enrolment


_REGISTRATIONS: dict[str, Callable[[bytes], bytes]] = {
    "no credential": lambda data: data[:37],
    "no flag for it": lambda data: data[:32] + bytes([UP | UV]) + data[33:],
    "nobody verified": lambda data: data[:32] + bytes([UP | 0x40]) + data[33:],
    "another relying party": lambda data: bytes(32) + data[32:],
    "a credential that is longer than the rest": lambda data: data[:53] + b"\xff\xff" + data[55:],
    "something after it": lambda data: data + b"\xa0",
    "extensions that are not there": lambda data: data[:32] + bytes([data[32] | ED]) + data[33:],
    "too much": lambda data: data + bytes(5000),
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("case", _REGISTRATIONS)
def test_an_authenticator_that_says_something_else_is_not_enrolled(case: str) -> None:
    """A new credential for this relying party, by a verified user, and nothing after it."""
    data = _REGISTRATIONS[case](_ONE.create(_CHALLENGE)[1])

    with pytest.raises(Forged):
        _enrol(_ONE, authenticator_data=data)


def test_a_key_of_another_form_is_not_enrolled() -> None:
    """Another curve, another algorithm, a key that is none: they are named by what is allowed."""
    data = _ONE.create(_CHALLENGE)[1]
    for old, new in (("26", "24"), ("2001", "2002"), ("a5", "a6")):
        cose = bytes.fromhex(_ONE.cose.hex()[:20].replace(old, new, 1)) + _ONE.cose[10:]
        with pytest.raises(TrustFileInvalid, match="es256 or eddsa or rs256"):
            _enrol(_ONE, authenticator_data=data[: -len(_ONE.cose)] + cose)
    with pytest.raises(TrustFileInvalid, match="a public key of es256"):
        _enrol(_ONE, authenticator_data=data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize(
    "changes",
    [
        {"challenge": bytes(32)},
        {"origin": "http://localhost:8081"},
        {"client_data": _ONE.client_data(_CHALLENGE)},
        {"client_data": b" " * 1025},
        {"client_data": b""},
    ],
)
def test_a_browser_that_says_something_else_enrols_nothing(changes: dict[str, Any]) -> None:
    """An answer to another challenge, from another origin, or to another question."""
    with pytest.raises(Forged):
        _enrol(_ONE, **changes)


def test_extensions_of_a_new_credential_are_passed_over() -> None:
    """Security keys announce how they protect a credential."""
    data = _ONE.create(_CHALLENGE)[1]
    data = data[:32] + bytes([data[32] | ED]) + data[33:] + b"\xa1kcredProtect\x03"

    assert _enrol(_ONE, authenticator_data=data) == _ONE.passkey


def test_an_enrolment_is_a_document_that_people_can_read() -> None:
    """It is versioned, holds no secret, and reading it gives the same passkey."""
    data = _ONE.passkey.encode()

    assert Passkey.parse(data) == _ONE.passkey
    assert json.loads(data) == {
        "v": 1,
        "public": f"es256:{_ONE.raw.hex()}",
        "passkey": {
            "credential": _ONE.credential.hex(),
            "relying_party": "localhost",
            "origin": "http://localhost:8080",
            "backup_eligible": False,
        },
    }
    assert data.endswith(b"}\n")


_DOCUMENTS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "no object": lambda _: b"[]\n",
    "too much": lambda data: data + b" " * 9000,
    "other spacing": lambda data: data.replace(b"\n", b""),
    "no line feed": lambda data: data.rstrip(),
    "another version": lambda data: data.replace(b'"v": 1', b'"v": 2'),
    "another member": lambda data: data.replace(b'"v": 1,', b'"v": 1,\n  "name": "x",'),
    "a member twice": lambda data: data.replace(b'"v": 1,', b'"v": 1,\n  "v": 1,'),
    "a number for a text": lambda data: data.replace(b'"localhost"', b"7"),
    "a text for a truth": lambda data: data.replace(b"false", b'"false"'),
    "no UTF-8": lambda data: data.replace(b"localhost", b"\xff"),
    "deep nesting": lambda _: b"[" * 8000,
}


@pytest.mark.parametrize("case", _DOCUMENTS)
def test_an_enrolment_in_another_spelling_is_refused(case: str) -> None:
    """Only the bytes that the console gives out are read."""
    with pytest.raises(TrustFileInvalid):
        Passkey.parse(_DOCUMENTS[case](_ONE.passkey.encode()))


@pytest.mark.parametrize(
    "public",
    [
        "",
        "es256",
        "es256:",
        "es256:00",
        "es256:0",
        f"ES256:{_ONE.raw.hex()}",
        f"es256:{_ONE.raw.hex().upper()}",
        f"es256:{_ONE.raw.hex()[:-2]}",
        f"es256:04{_ONE.raw.hex()}",
        f"es256:{'00' * 64}",
        f"es256:{'ff' * 64}",
        f"es256:{_ONE.raw[:32].hex()}{bytes(31).hex()}05",
        f"es256:{_PRIME:064x}{_Y_AT_ZERO:064x}",
        f"es384:{_ONE.raw.hex()}",
        f"eddsa:{'00' * 32}",
        f"eddsa:{_ONE.raw.hex()}",
        "rs256:",
        f"rs256:{'ff' * 255}",
        f"rs256:{'ff' * 128}",
        f"rs256:7f{'ff' * 255}",
        f"rs256:{'ff' * 255}fe",
        f"none:{'ff' * 32}",
        f"{signer(1).public}",
    ],
)
def test_a_weak_or_misspelt_public_key_is_refused(public: str) -> None:
    """No point off the curve, no short RSA key, no algorithm that nobody allowed."""
    with pytest.raises(TrustFileInvalid, match="passkey: expected a public key"):
        Passkey(public, _ONE.passkey.binding)


def test_every_point_of_the_curve_is_a_public_key() -> None:
    """P-256 has no weak points: also one with a coordinate of 0 is taken."""
    public = f"es256:{0:064x}{_Y_AT_ZERO:064x}"

    assert str(Passkey(public, _ONE.passkey.binding)) == public


@pytest.mark.parametrize("credential", ["", "a", "AB", "zz", "ab" * 1024])
def test_a_credential_id_of_no_form_is_refused(credential: str) -> None:
    """It is 1 to 1023 bytes in hexadecimal."""
    with pytest.raises(TrustFileInvalid, match="credential id"):
        Passkey(_ONE.passkey.public, PasskeyBinding(credential, "localhost", _ONE.origin, False))  # noqa: FBT003


_LONG = ".".join(["a" * 63] * 4)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "localhost",
        "http://example.com",
        "https://example.com/",
        "https://example.com:443",
        "http://localhost:80",
        "https://example.com:0443",
        "https://example.com:65536",
        "https://EXAMPLE.com",
        "https://example.com.",
        "https://user@example.com",
        "https://-example.com",
        "https://exämple.com",
        "https://127.0.0.1",
        "https://[::1]",
        "https://example.com\n",
        f"https://{_LONG}",
        "android:apk-key-hash:x",
        "null",
    ],
)
def test_what_browsers_call_no_origin_is_refused(origin: str) -> None:
    """One spelling: as a browser writes it, of a domain, and secure."""
    with pytest.raises(TrustFileInvalid, match="origin such as"):
        Passkey(_ONE.passkey.public, PasskeyBinding("ab", "example.com", origin, False))  # noqa: FBT003


@pytest.mark.parametrize(
    ("relying_party", "origin"),
    [
        ("example.com", "https://example.com"),
        ("example.com", "https://console.example.com:8443"),
        ("console", "https://console"),
        ("localhost", "http://localhost:1"),
        ("a.localhost", "http://a.localhost:8080"),
    ],
)
def test_a_relying_party_is_the_host_or_a_domain_around_it(relying_party: str, origin: str) -> None:
    """What a browser allows, an enrolment has."""
    made = Authenticator(relying_party=relying_party, origin=origin)

    assert Passkey.parse(made.passkey.encode()) == made.passkey


@pytest.mark.parametrize(
    "relying_party",
    ["", "com.", ".com", "ample.com", "evil.example", "a.example.com", "Example.com"],
)
def test_a_relying_party_of_another_domain_is_refused(relying_party: str) -> None:
    """No browser would make a passkey there."""
    with pytest.raises(TrustFileInvalid, match="as relying party"):
        Passkey(
            _ONE.passkey.public,
            PasskeyBinding("ab", relying_party, "https://example.com", False),  # noqa: FBT003
        )


def test_a_passkey_is_told_apart_by_all_that_it_is() -> None:
    """Two are the same if key and binding are; its id is that of its public key as a text."""
    other = Authenticator(origin="http://localhost:8081")

    assert _ONE.passkey.id == other.passkey.id == KeyId.of(f"es256:{_ONE.raw.hex()}".encode())
    assert _ONE.passkey != other.passkey
    assert len({_ONE.passkey, other.passkey, Authenticator().passkey}) == 2
    assert _ONE.passkey != "passkey"
    assert str(_ONE.passkey) == _ONE.passkey.public


# ---------------------------------------------------------------------- any change


@given(
    part=st.sampled_from(["client_data", "authenticator_data", "signature"]),
    place=st.integers(0, 2**16),
    bit=st.integers(0, 7),
    algorithm=st.sampled_from(["es256", "eddsa"]),
)
def test_any_changed_bit_of_a_proof_is_refused(
    part: str, place: int, bit: int, algorithm: str
) -> None:
    """The signature covers both others, and has no twin."""
    made = Authenticator(1, algorithm)
    good = made.get(_CHALLENGE)
    data = bytearray({**msgspec.structs.asdict(good)}[part])
    data[place % len(data)] ^= 1 << bit

    _refused(msgspec.structs.replace(good, **{part: bytes(data)}), made)


@given(
    members=st.dictionaries(
        st.text(max_size=12) | st.sampled_from(["type", "challenge", "origin", "crossOrigin"]),
        st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.lists(st.integers()),
        max_size=5,
    )
)
def test_client_data_counts_exactly_if_its_members_are_those_that_are_expected(
    members: dict[str, Any],
) -> None:
    """Whatever else there is: four names decide, and their values are compared exactly."""
    made = json.loads(_CLEAN) | members
    data = json.dumps(made, separators=(",", ":")).encode()
    is_good = (
        all(made[each] == json.loads(_CLEAN)[each] for each in ("type", "challenge", "origin"))
        and made["crossOrigin"] is False
        and "topOrigin" not in made
        and len(data) <= 1024
    )
    answer = _ONE.answer(data, _ONE.authenticator_data())

    if is_good:
        _ONE.passkey.verify_assertion(answer, _CHALLENGE)
    else:
        _refused(answer)
