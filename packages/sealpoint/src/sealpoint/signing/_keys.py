# SPDX-License-Identifier: Apache-2.0
"""Ed25519 keys: public keys that verify, and private keys in this process that sign.

`PublicKey` refuses the few points of small order and every second spelling of a point: with these,
one signature fits many messages or many keys. libsodium verifies signatures and refuses a
non-canonical scalar. A signature is never an identity, so a second valid signature for the same
message changes nothing. The library that is faster on this processor signs: the bytes are the same.
ADR 0007 gives the reasons.
"""

import base64
import platform
from collections.abc import Callable
from typing import ClassVar, Self

from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

from sealpoint.errors import Forged, KeyFileUnsafe, TrustFileInvalid
from sealpoint.ids import KeyId

_KEY_BYTES = 32
SIGNATURE_BYTES = 64
_OPENSSL_SIGNS_FASTER = platform.machine() in ("aarch64", "arm64")
_EARLY_SIGNATURES = 32
# A SubjectPublicKeyInfo of an Ed25519 key up to the key itself (RFC 8410).
_DER_PREFIX = bytes.fromhex("302a300506032b6570032100")
_PEM_BEGIN = "-----BEGIN PUBLIC KEY-----"
_PEM_END = "-----END PUBLIC KEY-----"
_FIELD_PRIME = 2**255 - 19
_ORDER_8 = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
# The y coordinates of the eight points of small order.
_SMALL_ORDER = frozenset({0, 1, _FIELD_PRIME - 1, _ORDER_8, _FIELD_PRIME - _ORDER_8})
_HINT = (
    "Give the 64 digits that sealpoint keys new prints, or public in sealpoint keys list --json, "
    "or a PEM or DER file with an Ed25519 public key."
)


class PublicKey:
    """A validated public key."""

    __slots__ = ("id", "raw")

    scheme: ClassVar[str] = "ed25519"

    def __init__(self, raw: bytes) -> None:
        y = int.from_bytes(raw, "little") & ~(1 << 255)
        if len(raw) != _KEY_BYTES or y >= _FIELD_PRIME or y in _SMALL_ORDER:
            raise TrustFileInvalid(
                f"public key: expected the {_KEY_BYTES} bytes of an Ed25519 key, found {len(raw)} "
                "bytes that are none",
                hint=_HINT,
            )
        self.raw = raw
        self.id = KeyId.of(raw)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read 64 lower-case hexadecimal digits."""
        try:
            raw = bytes.fromhex(text)
        except ValueError:
            raw = b""
        if raw.hex() != text or len(raw) != _KEY_BYTES:
            raise TrustFileInvalid(
                f"public key: expected 64 lower-case hexadecimal digits, found {len(text)} "
                "characters that are not such digits",
                hint=_HINT,
            )
        return cls(raw)

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read a key file: hexadecimal digits, or PEM or DER as OpenSSL and key services write.

        Raises:
            TrustFileInvalid: It is not an Ed25519 public key.
        """
        text = data.decode("ascii", "replace").strip()
        if len(text) == 2 * _KEY_BYTES:
            return cls.parse(text)
        der = data
        if text.startswith(_PEM_BEGIN) and text.endswith(_PEM_END):
            try:
                inside = text[len(_PEM_BEGIN) : -len(_PEM_END)]
                der = base64.b64decode("".join(inside.split()), validate=True)
            except ValueError:
                der = b""
        if len(der) != len(_DER_PREFIX) + _KEY_BYTES or not der.startswith(_DER_PREFIX):
            raise TrustFileInvalid(
                "public key: expected an Ed25519 key as 64 hexadecimal digits, PEM or DER, found "
                f"{len(data)} bytes of another form",
                hint=_HINT,
            )
        return cls(der[len(_DER_PREFIX) :])

    def verify(self, signature: bytes, message: bytes) -> None:
        """Verify a signature.

        Raises:
            Forged: This key did not sign this message.
        """
        # libsodium takes both in one piece, so the signature must have the right length: it decides
        # where the message begins.
        if len(signature) == SIGNATURE_BYTES:
            try:
                crypto_sign_open(signature + message, self.raw)
            except BadSignatureError:
                pass
            else:
                return
        raise Forged(f"signature by key {self.id.short()}: expected a valid one")

    def __str__(self) -> str:
        return self.raw.hex()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and other.raw == self.raw

    def __hash__(self) -> int:
        return hash(self.raw)


class PrivateKey:
    """A private key with the name of its identity. It never prints its secret."""

    __slots__ = ("_early", "_pair", "_secret", "_sign", "key", "name", "public")

    def __init__(self, name: str, secret: bytes) -> None:
        if len(secret) != _KEY_BYTES:
            raise KeyFileUnsafe(
                f"key {name!r}: expected {_KEY_BYTES} secret bytes, found {len(secret)}"
            )
        self.name = name
        # Unlike bytes, a view cannot be pickled or printed by accident.
        self._secret = memoryview(secret)
        public, self._pair = crypto_sign_seed_keypair(secret)
        self._early = _EARLY_SIGNATURES
        self._sign: Callable[[bytes], bytes] = self._sodium_sign
        if _OPENSSL_SIGNS_FASTER:
            self._sign = self._early_sign
        self.public = PublicKey(public)
        self.key = self.public.id.raw.hex()
        """The key's name in entries: the digits of its id."""

    @classmethod
    def draw(cls, name: str, random_bytes: Callable[[int], bytes]) -> Self:
        """Make a new key from a source of randomness such as `os.urandom`."""
        return cls(name, random_bytes(_KEY_BYTES))

    def sign(self, message: bytes) -> bytes:
        """Sign a message that `pae` framed."""
        return self._sign(message)

    def _sodium_sign(self, message: bytes) -> bytes:
        signed: bytes = crypto_sign(message, self._pair)
        return signed[:SIGNATURE_BYTES]

    def _early_sign(self, message: bytes) -> bytes:
        # Loading the faster library takes as long as it saves on many signatures, so a command that
        # signs only a few does not load it.
        self._early -= 1
        if not self._early:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
                Ed25519PrivateKey,
            )

            self._sign = Ed25519PrivateKey.from_private_bytes(self._secret).sign
        return self._sodium_sign(message)

    def secret_bytes(self) -> bytes:
        """Return the secret, for the key file alone."""
        return bytes(self._secret)

    def __repr__(self) -> str:
        return f"PrivateKey({self.name!r}, key {self.public.id.short()})"
