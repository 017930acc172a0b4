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


@lru_cache
def _rsa_key(number: int) -> rsa.RSAPrivateKey:
    del number
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@lru_cache
def _ec_key(number: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(number, ec.SECP256R1())


def encode_challenge(data: bytes) -> str:
    """A challenge as client data has it."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass(frozen=True)
class Authenticator:
    """One credential, and the browser before it; the same number gives the same key."""

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
            return _rsa_key(self.number).public_key().public_numbers().n.to_bytes(256)
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
            return _rsa_key(self.number).sign(message, padding.PKCS1v15(), SHA256())
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
