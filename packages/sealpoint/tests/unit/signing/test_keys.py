# SPDX-License-Identifier: Apache-2.0
"""Ed25519 as RFC 8032 has it; weak and second spellings are refused; secrets are never shown."""

import hashlib
import pickle

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nacl.bindings import crypto_sign, crypto_sign_seed_keypair

from sealpoint.errors import Forged, KeyFileUnsafe, NotTrusted
from sealpoint.ids import KeyId
from sealpoint.signing import PrivateKey, PublicKey
from tests.unit.signing import curve
from tests.unit.signing.samples import signer

# RFC 8032, section 7.1: secret, public, message, signature.
_VECTORS = [
    pytest.param(
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        b"",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
        "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        id="TEST 1",
    ),
    pytest.param(
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        b"\x72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        id="TEST 2",
    ),
    pytest.param(
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        b"\xaf\x82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        id="TEST 3",
    ),
    pytest.param(
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        hashlib.sha512(b"abc").digest(),
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589"
        "09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
        id="TEST SHA(abc)",
    ),
]


@pytest.mark.parametrize(("secret", "public", "message", "signature"), _VECTORS)
def test_the_vectors_of_the_standard_hold(
    secret: str, public: str, message: bytes, signature: str
) -> None:
    """A secret gives the public key and the signature of RFC 8032, and they verify."""
    made = PrivateKey("worker", bytes.fromhex(secret))
    made.public.verify(bytes.fromhex(signature), message)

    assert str(made.public) == public
    assert made.sign(message).hex() == signature


def test_eight_points_of_small_order_are_refused_in_every_encoding() -> None:
    """With such a key one signature fits many messages, so it can never be made."""
    # Computed from the equation of the curve, not copied from the sources.
    points = curve.small_order_points()
    spellings = {raw for _, y in points for raw in curve.encodings(y)}

    assert len(points) == 8
    assert len(spellings) == 14
    for raw in sorted(spellings):
        with pytest.raises(NotTrusted):
            PublicKey(raw)


def test_a_second_encoding_of_a_point_is_refused() -> None:
    """A y coordinate of the field's prime or more is another spelling of a smaller one."""
    spellings = [raw for y in range(19) for raw in curve.encodings(y)[2:]]

    assert len(spellings) == 38
    for raw in spellings:
        with pytest.raises(NotTrusted):
            PublicKey(raw)


def test_the_canonical_encoding_of_a_small_y_is_a_key() -> None:
    """Only the second spelling is refused, not the point."""
    y = next(y for y in range(2, 19) if curve.point_at(y))

    assert PublicKey(y.to_bytes(32, "little")).raw[0] == y


def test_bytes_that_are_no_point_verify_nothing() -> None:
    """A y coordinate without a point on the curve is a key that nobody can sign with."""
    y = next(y for y in range(2, 19) if curve.point_at(y) is None)
    key = PublicKey(y.to_bytes(32, "little"))

    for signature in (bytes(64), signer(1).sign(b"m"), key.raw + bytes(32)):
        with pytest.raises(Forged):
            key.verify(signature, b"m")


def test_a_signature_with_a_scalar_beyond_the_order_is_refused() -> None:
    """Adding the group's order to S gives a second signature unless S is bounded."""
    key = signer(1)
    good = key.sign(b"m")
    scalar = int.from_bytes(good[32:], "little")
    key.public.verify(good, b"m")

    for added in range(1, 16):
        changed = good[:32] + (scalar + added * curve.ORDER).to_bytes(32, "little")
        with pytest.raises(Forged):
            key.public.verify(changed, b"m")


def test_other_messages_keys_and_lengths_are_forged() -> None:
    """A signature is valid for its key, its message and its 64 bytes alone."""
    key = signer(1)
    good = key.sign(b"m")

    for public, signature, message in (
        (key.public, good, b"n"),
        (signer(2).public, good, b"m"),
        (key.public, good[:-1], b"m"),
        (key.public, good + b"\0", b"m"),
        (key.public, b"", b"m"),
        (key.public, good[32:] + good[:32], b"m"),
    ):
        with pytest.raises(Forged, match=public.id.short()):
            public.verify(signature, message)


def test_every_changed_bit_of_a_signature_is_refused() -> None:
    """There is no bit of a signature that may be anything."""
    key = signer(1)
    good = key.sign(b"m")

    for bit in range(512):
        changed = bytearray(good)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Forged):
            key.public.verify(bytes(changed), b"m")


@pytest.mark.parametrize("length", [0, 1, 31, 33, 64])
def test_a_public_key_has_32_bytes(length: int) -> None:
    """Other lengths are refused before anything else looks at them."""
    with pytest.raises(NotTrusted, match="Ed25519"):
        PublicKey(b"\x05" * length)


def test_a_public_key_has_one_text() -> None:
    """Only 64 lower-case hexadecimal digits are read."""
    text = str(signer(1).public)
    spellings = [
        *("", text[:-1], text + "0", text[:-2], text + "00", text.upper(), " " + text, text + "\n"),
        *(text[:2] + " " + text[2:], "0x" + text[2:], text[:-1] + "g", text[:-1] + "\u0661"),
    ]

    assert PublicKey.parse(text) == signer(1).public
    for spelling in spellings:
        with pytest.raises(NotTrusted, match="64 lower-case"):
            PublicKey.parse(spelling)


def test_public_keys_are_equal_by_their_bytes() -> None:
    """Two objects of one key are one member of a set, and the id is the digest of the bytes."""
    one, again, other = signer(1).public, PublicKey(signer(1).public.raw), signer(2).public

    assert {one, again, other} == {one, other}
    assert one == again
    assert one != other
    assert one != one.raw
    assert one.id == KeyId(hashlib.sha256(one.raw).digest())


@pytest.mark.parametrize("openssl", [True, False])
def test_whichever_library_signs_the_bytes_are_the_same(
    *, openssl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A processor chooses how fast a signature is made, and nothing else."""
    monkeypatch.setattr("sealpoint.signing._keys._OPENSSL_SIGNS_FASTER", openssl)
    for length in (0, 1, 63, 64, 700, 70_000):
        secret, message = hashlib.sha256(bytes([length % 251])).digest(), b"m" * length
        key = PrivateKey("worker", secret)
        pair = crypto_sign_seed_keypair(secret)[1]

        made = {key.sign(message) for _ in range(40)}

        assert made == {crypto_sign(message, pair)[:64]}
        assert made == {Ed25519PrivateKey.from_private_bytes(secret).sign(message)}


def test_a_drawn_key_takes_its_secret_from_the_source() -> None:
    """The source of randomness is asked once, for exactly the secret."""
    asked = []

    def source(count: int) -> bytes:
        asked.append(count)
        return b"\x07" * count

    drawn = PrivateKey.draw("worker", source)

    assert asked == [32]
    assert drawn.secret_bytes() == b"\x07" * 32
    assert drawn.public == signer(7).public


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_a_secret_of_another_length_is_refused_unshown(length: int) -> None:
    """The error names the key and not its bytes."""
    with pytest.raises(KeyFileUnsafe, match="'worker'") as caught:
        PrivateKey("worker", b"\xab" * length)

    assert "abab" not in str(caught.value)


def test_a_signer_never_prints_its_secret() -> None:
    """Neither repr nor str holds the secret; both name the identity and the public key."""
    key = signer(0xAB)

    for shown in (repr(key), str(key), f"{key}", f"{[key]}"):
        assert "abab" not in shown
        assert "\\xab" not in shown
        assert "'worker'" in shown
        assert key.public.id.short() in shown


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_signer_is_never_pickled(protocol: int) -> None:
    """No protocol turns a private key into data."""
    with pytest.raises(TypeError):
        pickle.dumps(signer(1), protocol=protocol)
