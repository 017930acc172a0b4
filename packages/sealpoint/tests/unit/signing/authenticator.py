# SPDX-License-Identifier: Apache-2.0
"""An authenticator and its browser in software, after WebAuthn level 3, sections 5.8.1 and 6.1."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256

from sealpoint.signing import (
    Attestation,
    Passkey,
    PasskeyAssertion,
    PasskeyBinding,
    Verdict,
    challenge,
    passkey_attestation,
)

__all__ = ["BE", "BS", "ED", "UP", "UV", "Authenticator", "encode_challenge"]

UP, UV, BE, BS, AT, ED = 0x01, 0x04, 0x08, 0x10, 0x40, 0x80
_EXPONENT = 65537


_P = int(
    "f1dedf078c12b6f4733479353f2e5753268fbc1c78bce48ab38ff85a8f1acf27"
    "823d2d0445b31afaa16b8f226b07f049dc392ef8778d4382a9fa6b69d8c3ea80"
    "c3da03d0d6651ac515be77f1c48eccfe30a05ab5f7f7e88ebfc7c88ac53e2462"
    "73e87fad5eb271bd53b49022694e3fa5b33c844646e88938048a1be1b9c677cb",
    16,
)
_Q = int(
    "e71c8dfe92c0a1eee19a2a2c2114bc91149364fd4b64b848be46de5d68feae43"
    "f761b85c7c1a195fd19c4e9e468b68b6b594bcf763f1a2d3a5a6acaced975a0d"
    "86a9f219b28f48fa7a3e4d682b12fc86cd0fb57841406e324c20c0facdc560e8"
    "2399042d783df43969adb01d36c9a63f011cdf1bc5702814dccd99732d211501",
    16,
)
"""The primes of the one RSA key; making one takes long."""


@lru_cache
def _rsa_key() -> rsa.RSAPrivateKey:
    d = rsa.rsa_recover_private_exponent(_EXPONENT, _P, _Q)
    dmp1, dmq1 = rsa.rsa_crt_dmp1(d, _P), rsa.rsa_crt_dmq1(d, _Q)
    public = rsa.RSAPublicNumbers(_EXPONENT, _P * _Q)
    return rsa.RSAPrivateNumbers(
        _P, _Q, d, dmp1, dmq1, rsa.rsa_crt_iqmp(_P, _Q), public
    ).private_key()


@lru_cache
def _ec_key(number: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(number, ec.SECP256R1())


def encode_challenge(data: bytes) -> str:
    """A challenge as client data has it."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass(frozen=True)
class Authenticator:
    """One credential, and the browser before it; the same number gives the same key.

    Of RSA there is one key, whatever the number.
    """

    number: int = 1
    algorithm: str = "es256"
    relying_party: str = "localhost"
    origin: str = "http://localhost:8080"
    backup_eligible: bool = False
    extra: dict[str, Any] = field(default_factory=dict, hash=False)
    """More members of the client data."""

    @property
    def credential(self) -> bytes:
        """The id by which the browser finds it."""
        return hashlib.sha256(f"{self.algorithm} {self.number}".encode()).digest()[:16]

    @property
    def raw(self) -> bytes:
        """The public key."""
        if self.algorithm == "es256":
            numbers = self._ec.public_key().public_numbers()
            return numbers.x.to_bytes(32) + numbers.y.to_bytes(32)
        if self.algorithm == "rs256":
            return _rsa_key().public_key().public_numbers().n.to_bytes(256)
        return self._ed.public_key().public_bytes_raw()

    @property
    def cose(self) -> bytes:
        """The public key in COSE."""
        raw = self.raw
        if self.algorithm == "es256":
            x, y = raw[:32], raw[32:]
            return bytes.fromhex("a5010203262001215820") + x + bytes.fromhex("225820") + y
        if self.algorithm == "rs256":
            return bytes.fromhex("a401030339010020590100") + raw + bytes.fromhex("2143010001")
        return bytes.fromhex("a4010103272006215820") + raw

    @property
    def passkey(self) -> Passkey:
        """What a roster has of it."""
        binding = PasskeyBinding(
            self.credential.hex(), self.relying_party, self.origin, self.backup_eligible
        )
        return Passkey(f"{self.algorithm}:{self.raw.hex()}", binding)

    @property
    def flags(self) -> int:
        """Those of an answer by a verified user."""
        return UP | UV | (BE | BS if self.backup_eligible else 0)

    def client_data(self, data: bytes, kind: str = "webauthn.get") -> bytes:
        """What a browser makes of a challenge."""
        members = {
            "type": kind,
            "challenge": encode_challenge(data),
            "origin": self.origin,
            "crossOrigin": False,
        }
        return json.dumps(members | self.extra, separators=(",", ":")).encode()

    def authenticator_data(self, flags: int | None = None, *, after: bytes = b"") -> bytes:
        """What the authenticator says; its counter stays 0, as of those that are synchronised."""
        flags = self.flags if flags is None else flags
        head = hashlib.sha256(self.relying_party.encode()).digest() + bytes([flags])
        return head + bytes(4) + after

    def create(self, data: bytes) -> tuple[bytes, bytes]:
        """Client data and authenticator data of a new credential."""
        after = bytes(16) + len(self.credential).to_bytes(2) + self.credential + self.cose
        made = self.authenticator_data(self.flags | AT, after=after)
        return self.client_data(data, "webauthn.create"), made

    def sign(self, message: bytes) -> bytes:
        """A signature over any bytes, the same each time."""
        if self.algorithm == "es256":
            return self._ec.sign(message, ec.ECDSA(SHA256(), deterministic_signing=True))
        if self.algorithm == "rs256":
            return _rsa_key().sign(message, padding.PKCS1v15(), SHA256())
        return self._ed.sign(message)

    def answer(self, client_data: bytes, authenticator_data: bytes) -> PasskeyAssertion:
        """A signature over these two, whatever they are."""
        signature = self.sign(authenticator_data + hashlib.sha256(client_data).digest())
        return self.passkey.assertion(
            client_data=client_data, authenticator_data=authenticator_data, signature=signature
        )

    def get(self, data: bytes) -> PasskeyAssertion:
        """The answer to a challenge."""
        return self.answer(self.client_data(data), self.authenticator_data())

    def say(self, statement: str, verdict: Verdict, reason: str) -> Attestation:
        """A word on a statement."""
        made = self.get(challenge(statement, verdict, reason))
        return passkey_attestation(self.passkey, statement, verdict, reason, made)

    @property
    def _ec(self) -> ec.EllipticCurvePrivateKey:
        return _ec_key(self.number)

    @property
    def _ed(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(bytes([self.number]) * 32)
