# SPDX-License-Identifier: Apache-2.0
"""Ed25519 keys, and what they sign: framed messages, and the signatures beside a header.

A public key is refused when it is made if it is one of the few points of small order or another
spelling of a point: with those, one signature fits many messages or many keys. Signatures are
checked by libsodium, which refuses a non-canonical scalar; they are never used as an identity, so
that a second valid signature would change nothing. They are made by whichever library is the faster
on this processor: the bytes are the same. ADR 0007 says why.

A seal, a pair of key id and signature, has only a hint at which key of the roster to try. The
algorithm is the key's own, as the roster says; a seal has no field for it, so data can never choose
one.

Keys that live elsewhere: in a key management service, a hardware module, another process.

What such a signer returns is not believed: each signature is verified with the public key
before it is used, so one that is wrong ends in an error and is written nowhere. Whatever the
signer raises ends in the same error, with its cause chained; its text is not repeated, as it
may say anything.

The exact bytes that are signed: DSSE's pre-authentication encoding.

Type and payload are framed by their byte lengths, so no two pairs give the same bytes, and a
signature over one type is never one over another. The payload is the stored bytes as they lie;
nothing is serialised again in order to verify it.
"""

import base64
import platform
import re
from binascii import unhexlify
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import ClassVar, NamedTuple, Protocol, Self

import msgspec
from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

from sealpoint.errors import (
    Edited,
    Forged,
    IdMalformed,
    KeyFileUnsafe,
    SignerFailed,
    TrustFileInvalid,
)
from sealpoint.ids import KeyId
from sealpoint.limits import SEALS_BYTES_MAX, SEALS_MAX

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
    """A public key that may be believed to be one."""

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
        """Read what a file says: hexadecimal digits, PEM or DER as OpenSSL and key services write.

        Raises:
            TrustFileInvalid: It is no Ed25519 public key.
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
        """Check a signature.

        Raises:
            Forged: This key did not sign this message.
        """
        # The engine takes both in one piece, so the length decides where the message begins.
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
        # A view can be neither pickled nor printed by accident, which bytes can.
        self._secret = memoryview(secret)
        public, self._pair = crypto_sign_seed_keypair(secret)
        self._early = _EARLY_SIGNATURES
        self._sign: Callable[[bytes], bytes] = self._sodium_sign
        if _OPENSSL_SIGNS_FASTER:
            self._sign = self._early_sign
        self.public = PublicKey(public)
        self.key = self.public.id.raw.hex()
        """How entries name the key: the digits of its id."""

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
        # To load the faster library takes as long as it saves on many signatures: a command that
        # signs a few does without it.
        self._early -= 1
        if not self._early:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
                Ed25519PrivateKey,
            )

            self._sign = Ed25519PrivateKey.from_private_bytes(self._secret).sign
        return self._sodium_sign(message)

    def secret_bytes(self) -> bytes:
        """The secret, for the key file alone."""
        return bytes(self._secret)

    def __repr__(self) -> str:
        return f"PrivateKey({self.name!r}, key {self.public.id.short()})"


class Signer(Protocol):
    """A private key that does not lie in this process.

    The key MUST be an Ed25519 key. It is not told what it signs for: whoever may call `sign` may
    write whatever the roster lets the identity of this key write.
    """

    @property
    def public_key(self) -> bytes:
        """The public half: 32 bytes. It MUST stay the same; it is asked for once."""
        ...

    def sign(self, data: bytes) -> bytes:
        """The Ed25519 signature of `data`, 64 bytes.

        - It MUST sign the bytes as they are (pure Ed25519, RFC 8032), not a digest of them.
        - It MUST be safe to call from several OS threads at once, and MAY take long: while it
          does, this process can do nothing else with the same thread, and everything with others.
          No file, database or anchor is locked meanwhile.
        - It MUST raise if it cannot sign, and MUST NOT wait for ever: set a time limit of its own.
        - It MAY be called more than once for one save: when another process has written to the
          same thread meanwhile, the entry is made and signed anew.
        """
        ...


class RemoteKey:
    """A signer with the name that the roster has for its key."""

    __slots__ = ("_signer", "key", "name", "public")

    def __init__(self, name: str, public: PublicKey, signer: Signer) -> None:
        self.name = name
        self.public = public
        self.key = public.id.raw.hex()
        """How entries name the key: the digits of its id."""
        self._signer = signer

    def sign(self, message: bytes) -> bytes:
        """Have a message signed that `pae` framed.

        Raises:
            SignerFailed: It was not, or by another key.
        """
        named = f"signer of identity {self.name!r}"
        try:
            signature = self._signer.sign(message)
        except MemoryError:
            raise
        except Exception as exc:
            raise SignerFailed(
                f"{named}: expected a signature, found that it raised {type(exc).__name__}"
            ) from exc
        if not isinstance(signature, bytes):
            found = type(signature).__name__
            raise SignerFailed(f"{named}: expected a signature as bytes, found {found}")
        try:
            self.public.verify(signature, message)
        except Forged as exc:
            raise SignerFailed(
                f"{named}: what it returned is not a signature by key {self.public.id.short()} "
                "of the bytes that it was given",
                hint="Nothing was written. The signer must sign the bytes as they are with this "
                "very Ed25519 key, and not a digest of them.",
            ) from exc
        return signature

    def __repr__(self) -> str:
        return f"RemoteKey({self.name!r}, key {self.public.id.short()})"


SigningKey = PrivateKey | RemoteKey
"""Whatever signs for an identity."""


def public_key_of(signer: Signer) -> PublicKey:
    """The public half of a key that lives elsewhere.

    Raises:
        SignerFailed: It does not tell one.
        NotTrusted: What it tells is no public key.
    """
    try:
        raw = signer.public_key
    except MemoryError:
        raise
    except Exception as exc:
        raise SignerFailed(
            f"signer: expected its public key, found that it raised {type(exc).__name__}"
        ) from exc
    if not isinstance(raw, bytes):
        raise SignerFailed(f"signer: expected its public key as bytes, found {type(raw).__name__}")
    return PublicKey(raw)


_PAIRS = msgspec.json.Decoder(list[tuple[str, str]])
_encode = msgspec.json.Encoder().encode


class Seal(NamedTuple):
    """One signature and the id of the key that is said to have made it."""

    key: KeyId
    signature: bytes


_ONE_SEAL = re.compile(rb'\[\["([0-9a-f]{64})","([0-9a-f]{128})"\]\]')
"""The stored form of a single seal, which nearly all entries have: it has no other spelling."""


def encode_seals(seals: Sequence[Seal]) -> bytes:
    """The stored form."""
    return _encode([(key.raw.hex(), signature.hex()) for key, signature in seals])


def encode_seal(signer: SigningKey, message: bytes) -> bytes:
    """Have a message signed that `pae` framed; the stored form of that one seal.

    Raises:
        SignerFailed: A key that lives elsewhere did not sign it.
    """
    return _encode(((signer.key, signer.sign(message).hex()),))


@lru_cache(maxsize=512)  # of the same entry they are read ahead, and again when it is verified
def parse_seals(data: bytes) -> tuple[Seal, ...]:
    """Read the stored form; only what `encode_seals` would write is accepted.

    Raises:
        Edited: The bytes are not the encoding of 1 to SEALS_MAX seals by different keys.
    """
    if (one := _ONE_SEAL.fullmatch(data)) is not None:
        key, signature = one.groups()
        return (Seal(KeyId(unhexlify(key)), unhexlify(signature)),)
    if len(data) > SEALS_BYTES_MAX:
        raise Edited(f"seals: expected at most {SEALS_BYTES_MAX} bytes, found {len(data)}")
    try:
        seals = tuple(
            Seal(KeyId(bytes.fromhex(key)), bytes.fromhex(signature))
            for key, signature in _PAIRS.decode(data)
        )
    except (ValueError, msgspec.MsgspecError, RecursionError, IdMalformed) as exc:
        raise Edited(
            "seals: expected pairs of key id and signature, found bytes of another form"
        ) from exc
    if not 1 <= len(seals) <= SEALS_MAX or len({seal.key for seal in seals}) != len(seals):
        raise Edited(f"seals: expected 1 to {SEALS_MAX} by different keys, found {len(seals)}")
    if encode_seals(seals) != data:
        raise Edited("seals: they are not in canonical form")
    return seals


ENTRY_TYPE = b"application/vnd.sealpoint.entry.v1+json"
"""The type of a ledger entry's header. What kind of entry it is, the header itself says."""

STATEMENT_TYPE = b"application/vnd.sealpoint.statement.v1+json"
"""The type of what an approver signs: a statement's digest, a verdict and a reason."""


def pae(payload_type: bytes, payload: bytes) -> bytes:
    """Frame a payload for signing."""
    return b"DSSEv1 %d %b %d %b" % (len(payload_type), payload_type, len(payload), payload)
