# SPDX-License-Identifier: Apache-2.0
"""Passkeys: keys in an authenticator, and the checks of an authenticator's answer.

A passkey signs for one origin of one relying party, after its user was verified, and it signs only
data that a browser made for it: client data that contains our challenge. So it makes attestations
and nothing else: `Roster.holder`, which is used to verify entries, rosters and bundles, finds no
passkey.

All verification is offline. It uses no signature counter, because copies of a passkey on several
devices share none; the nonce of a statement makes an attestation count only once. Bounds come
before any parsing. The signature covers the bytes as the browser made them. They are read as JSON
in which no name occurs twice, so that no two readers find different values, and unknown names are
ignored, as the standard requires. Of the two ECDSA signatures that fit one message only one is
accepted, so that no one can make a second attestation from the first.

The authenticator does not display what it signs. The page that requests the signature must do that,
and a person who does not trust that page compares the digest. An authenticator's claims about
itself are not attested: the person who adds a passkey to the roster checks by its id that it
belongs to the right person.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import msgspec

from sealpoint.errors import Forged, TrustFileInvalid
from sealpoint.ids import KeyId
from sealpoint.signing._keys import PublicKey
from sealpoint.signing._statement import is_hexadecimal

WEBAUTHN = "webauthn"
"""The scheme of a passkey."""

_VERSION = 1
_DOCUMENT_BYTES_MAX = 8192
_CREDENTIAL_BYTES_MAX = 1023  # the maximum in WebAuthn
_CLIENT_DATA_BYTES_MAX = 1024
_AUTHENTICATOR_DATA_BYTES_MAX = 256
_REGISTRATION_BYTES_MAX = 4096
_SIGNATURE_BYTES_MAX = 512
_LENGTH_BYTES = 2
_HOST_CHARS_MAX = 253
_PORT_MAX = 65535
_DEFAULT_PORTS = {"https": 443, "http": 80}
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_ORIGIN = re.compile(rf"(https?)://({_LABEL}(?:\.{_LABEL})*)(?::([1-9][0-9]{{0,4}}))?")
_LOCAL = "localhost"
_CREATE = "webauthn.create"
_GET = "webauthn.get"

# Authenticator data: the hash of the relying party's id, flags, a counter, and the parts that the
# flags announce.
_RP_HASH_BYTES = 32
_FLAGS_AT = 32
_HEAD_BYTES = 37
_AAGUID_BYTES = 16
_USER_PRESENT = 0x01
_USER_VERIFIED = 0x04
_BACKUP_ELIGIBLE = 0x08
_BACKED_UP = 0x10
_HAS_CREDENTIAL = 0x40
_HAS_EXTENSIONS = 0x80

_ANSWER_HINT = (
    "Nothing counts that was said so. Have the person answer once more, at the console where the "
    "passkey was enrolled."
)
_HINT = (
    "Have it enrolled once more at the console, and take the text that it gives out unchanged: "
    "sealpoint keys add NAME --person WHO --role approver --namespace NAMESPACE --passkey FILE."
)

_RSA_EXPONENT = 65537
_RSA_BYTES = (256, 384, 512)
_HIGHEST_BIT = 0x80


@dataclass(frozen=True, slots=True, kw_only=True)
class PasskeyAlgorithm:
    """An algorithm that a passkey may have."""

    name: str
    """The prefix of a public key's text."""
    cose: int
    """Its number in COSE, which the browser's request for a new passkey contains."""
    reason: str
    """Why it is allowed."""
    cose_key: re.Pattern[bytes]
    """The pattern of its keys in COSE. The canonical form has one spelling, so no parser is
    needed."""
    key: Callable[[bytes], Any]
    """Makes a public key from bytes. Raises ValueError or TrustFileInvalid if they are not one."""
    verify: Callable[[Any, bytes, bytes], None]
    """Verifies a signature over a message: (key, signature, message). Raises ValueError, Forged or
    `cryptography`'s InvalidSignature if it is invalid."""


# `cryptography` is imported only to read a passkey or verify an answer: most rosters have no
# passkey.


def _es256_key(raw: bytes) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    # This refuses a coordinate that is not below the prime, and a point off the curve.
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + raw)


def _verify_es256(key: Any, signature: bytes, message: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    if _low_es256(signature) != signature:
        raise ValueError("the other one of the two signatures that fit")
    key.verify(signature, message, ECDSA(SHA256()))


def _low_es256(signature: bytes) -> bytes:
    """Return the signature, or the equivalent one with the lower second number.

    Raises:
        ValueError: It is not a signature.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415

    r, s = utils.decode_dss_signature(signature)
    order = ec.SECP256R1.group_order
    if not 0 < s < order:
        raise ValueError("no signature")
    return utils.encode_dss_signature(r, min(s, order - s))


def _rs256_key(raw: bytes) -> Any:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers  # noqa: PLC0415

    if len(raw) not in _RSA_BYTES or raw[0] < _HIGHEST_BIT or raw[-1] % 2 == 0:
        raise ValueError("not a modulus of an allowed size")
    return RSAPublicNumbers(_RSA_EXPONENT, int.from_bytes(raw)).public_key()


def _verify_rs256(key: Any, signature: bytes, message: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    key.verify(signature, message, PKCS1v15(), SHA256())


PASSKEY_ALGORITHMS = (
    PasskeyAlgorithm(
        name="es256",
        cose=-7,
        reason="ECDSA on P-256 with SHA-256: every authenticator has it",
        cose_key=re.compile(
            rb"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20(.{32})\x22\x58\x20(.{32})", re.DOTALL
        ),
        key=_es256_key,
        verify=_verify_es256,
    ),
    PasskeyAlgorithm(
        name="eddsa",
        cose=-8,
        reason="Ed25519, as our own keys: security keys have it",
        cose_key=re.compile(rb"\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20(.{32})", re.DOTALL),
        key=PublicKey,
        verify=PublicKey.verify,
    ),
    PasskeyAlgorithm(
        name="rs256",
        cose=-257,
        reason="RSA of 2048, 3072 or 4096 bits, PKCS #1 v1.5 with SHA-256: the security chips of "
        "many Windows machines have nothing else",
        cose_key=re.compile(
            rb"\xa4\x01\x03\x03\x39\x01\x00\x20\x59"
            rb"(?:\x01\x00(.{256})|\x01\x80(.{384})|\x02\x00(.{512}))\x21\x43\x01\x00\x01",
            re.DOTALL,
        ),
        key=_rs256_key,
        verify=_verify_rs256,
    ),
)
"""The only algorithms that a passkey may have, in order of preference."""

_BY_NAME = {algorithm.name: algorithm for algorithm in PASSKEY_ALGORITHMS}


class PasskeyAssertion(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of an authenticator and its browser; no part of it is verified."""

    client_data: bytes
    """`clientDataJSON`, as the browser made it."""
    authenticator_data: bytes
    signature: bytes

    def encode(self) -> bytes:
        """Encode the proof of an attestation: each part except the last has its length before it.

        Raises:
            Forged: A part has a length that no reader accepts.
        """
        self.check_bounds()
        parts = (self.client_data, self.authenticator_data)
        return b"".join(len(part).to_bytes(2) + part for part in parts) + self.signature

    @classmethod
    def parse(cls, proof: bytes) -> Self:
        """Read the output of `encode`; there is no second spelling.

        Raises:
            Forged: It is malformed.
        """
        client_data, rest = _split(proof)
        authenticator_data, signature = _split(rest)
        made = cls(
            client_data=client_data, authenticator_data=authenticator_data, signature=signature
        )
        made.check_bounds()
        return made

    def check_bounds(self) -> None:
        """Refuse sizes that no authenticator produces, before anything is read."""
        _require(
            len(self.client_data) <= _CLIENT_DATA_BYTES_MAX
            and _HEAD_BYTES <= len(self.authenticator_data) <= _AUTHENTICATOR_DATA_BYTES_MAX
            and 1 <= len(self.signature) <= _SIGNATURE_BYTES_MAX,
            "client data, authenticator data and a signature within their bounds",
            f"{len(self.client_data)}, {len(self.authenticator_data)} and {len(self.signature)} "
            "bytes",
        )


class PasskeyBinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The context that a passkey is bound to besides its public key, as the roster states it."""

    credential: str
    """The id by which a browser finds it, in hexadecimal."""
    relying_party: str
    """The domain for which it was made."""
    origin: str
    """The only origin at which it counts."""
    backup_eligible: bool
    """Whether the authenticator may keep copies of it in other places."""


class _PasskeyDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    v: int
    public: str
    passkey: PasskeyBinding


_DECODER = msgspec.json.Decoder(_PasskeyDocument)


class Passkey:
    """A key in an authenticator, with everything that it is bound to; it holds no secret.

    Args:
        public: The name of an algorithm, a colon, and the public key in hexadecimal.
        binding: The context in which it counts.

    Raises:
        TrustFileInvalid: This cannot be a passkey.
    """

    __slots__ = ("_algorithm", "_key", "binding", "id", "public", "raw")

    scheme: ClassVar[str] = WEBAUTHN

    def __init__(self, public: str, binding: PasskeyBinding) -> None:
        name, _, digits = public.partition(":")
        algorithm = _BY_NAME.get(name)
        if algorithm is None or len(digits) % 2 or not is_hexadecimal(digits):
            raise _no_passkey(f"a public key that begins with {' or '.join(_BY_NAME)}")
        self.public = public
        self.raw = bytes.fromhex(digits)
        """The public key without the name of its algorithm."""
        try:
            self._key = algorithm.key(self.raw)
        except (ValueError, TrustFileInvalid) as exc:
            raise _no_passkey(f"a public key of {name}") from exc
        _check_binding(binding)
        self.binding = binding
        self.id = KeyId.of(public.encode())
        """The id that attestations use and that people compare: the id of `public` as a text."""
        self._algorithm = algorithm

    @property
    def algorithm(self) -> str:
        """The name of its algorithm."""
        return self._algorithm.name

    @property
    def credential(self) -> bytes:
        """The id by which a browser finds it."""
        return bytes.fromhex(self.binding.credential)

    def __str__(self) -> str:
        return self.public

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Passkey) and (other.public, other.binding) == (
            self.public,
            self.binding,
        )

    def __hash__(self) -> int:
        return hash(self.public)

    # ------------------------------------------------------------------ enrollment

    @classmethod
    def enroll(
        cls,
        *,
        client_data: bytes,
        authenticator_data: bytes,
        challenge: bytes,
        relying_party: str,
        origin: str,
    ) -> Self:
        """Read the answer of a browser that created a passkey.

        Args:
            client_data: `clientDataJSON`.
            authenticator_data: The result of `getAuthenticatorData()`.
            challenge: The challenge that was sent to the browser.
            relying_party: The domain that was sent to the browser.
            origin: The origin of the page.

        Raises:
            Forged: It does not answer that request, or its user was not verified.
            TrustFileInvalid: Its key has an algorithm that is not allowed, or the origin or relying
                party is not valid.
        """
        # (1) Bounds, before anything is parsed.
        _require(
            len(client_data) <= _CLIENT_DATA_BYTES_MAX
            and _HEAD_BYTES <= len(authenticator_data) <= _REGISTRATION_BYTES_MAX,
            "client data and authenticator data within their bounds",
            f"{len(client_data)} and {len(authenticator_data)} bytes",
        )
        # (2) The claims of the browser, and of the authenticator.
        _check_client_data(client_data, kind=_CREATE, challenge=challenge, origin=origin)
        flags = _check_head(authenticator_data, relying_party)
        _require(bool(flags & _HAS_CREDENTIAL), "a new credential", "none")
        # (3) The credential: its maker's id, its own, its public key, and extensions if announced.
        rest = authenticator_data[_HEAD_BYTES + _AAGUID_BYTES :]
        credential, rest = _split(rest)
        for algorithm in PASSKEY_ALGORITHMS:
            found = algorithm.cose_key.match(rest)
            if found is not None:
                break
        else:
            raise _no_passkey(f"a public key of {' or '.join(_BY_NAME)}")
        _require(
            (found.end() < len(rest)) == bool(flags & _HAS_EXTENSIONS),
            "authenticator data that ends where its flags say",
            f"{len(authenticator_data)} bytes",
        )
        raw = b"".join(part for part in found.groups() if part is not None)
        return cls(
            f"{algorithm.name}:{raw.hex()}",
            PasskeyBinding(
                credential=credential.hex(),
                relying_party=relying_party,
                origin=origin,
                backup_eligible=bool(flags & _BACKUP_ELIGIBLE),
            ),
        )

    def encode(self) -> bytes:
        """Encode the passkey as a JSON document that people can read and pass on."""
        document = _PasskeyDocument(_VERSION, self.public, self.binding)
        return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read the output of `encode`.

        Raises:
            TrustFileInvalid: It is not a passkey.
        """
        if len(data) > _DOCUMENT_BYTES_MAX:
            raise _no_passkey(f"at most {_DOCUMENT_BYTES_MAX} bytes")
        try:
            document = _DECODER.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
            raise _no_passkey("its enrolment as JSON") from exc
        if document.v != _VERSION:
            raise TrustFileInvalid(
                f"passkey: expected version {_VERSION}, found {document.v}",
                hint="Install the Sealpoint version that wrote the enrolment, or a newer one.",
            )
        passkey = cls(document.public, document.passkey)
        if passkey.encode() != data:
            raise _no_passkey("its enrolment byte for byte as the console gives it out")
        return passkey

    # ------------------------------------------------------------------ verification

    def assertion(
        self, *, client_data: bytes, authenticator_data: bytes, signature: bytes
    ) -> PasskeyAssertion:
        """Make an assertion from a browser's answer, with the signature in the accepted form.

        Raises:
            Forged: The signature is malformed.
        """
        if self._algorithm.verify is _verify_es256:
            try:
                signature = _low_es256(signature)
            except ValueError as exc:
                raise Forged(
                    f"passkey {self.id.short()}: expected a signature, found {len(signature)} "
                    "bytes that are none",
                    hint=_ANSWER_HINT,
                ) from exc
        return PasskeyAssertion(
            client_data=client_data, authenticator_data=authenticator_data, signature=signature
        )

    def verify(self, proof: bytes, message: bytes) -> None:
        """Verify the proof of an attestation.

        Raises:
            Forged: This passkey did not sign this message at its origin.
        """
        self.verify_assertion(PasskeyAssertion.parse(proof), hashlib.sha256(message).digest())

    def verify_assertion(self, assertion: PasskeyAssertion, challenge: bytes) -> None:
        """Verify the answer to a challenge.

        Raises:
            Forged: This passkey did not give it at its origin, or its user was not verified.
        """
        # (1) Bounds, before anything is parsed.
        assertion.check_bounds()
        # (2) The claims of the browser: the action, the challenge, and the origin.
        _check_client_data(
            assertion.client_data, kind=_GET, challenge=challenge, origin=self.binding.origin
        )
        # (3) The claims of the authenticator: the relying party, and a verified user's presence.
        data = assertion.authenticator_data
        flags = _check_head(data, self.binding.relying_party)
        _require(
            not flags & _HAS_CREDENTIAL
            and (len(data) > _HEAD_BYTES) == bool(flags & _HAS_EXTENSIONS),
            "authenticator data that ends where its flags say",
            f"{len(data)} bytes",
        )
        _require(
            bool(flags & _BACKUP_ELIGIBLE) == self.binding.backup_eligible,
            "a passkey that may be backed up if it might when it was enrolled",
            "that this has changed",
        )
        # (4) The signature, over both.
        self._check_signature(
            assertion.signature, data + hashlib.sha256(assertion.client_data).digest()
        )

    def _check_signature(self, signature: bytes, message: bytes) -> None:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415

        try:
            self._algorithm.verify(self._key, signature, message)
        except (InvalidSignature, ValueError, Forged) as exc:
            raise Forged(
                f"signature by passkey {self.id.short()}: expected a valid one", hint=_ANSWER_HINT
            ) from exc


def _no_passkey(expected: str) -> TrustFileInvalid:
    return TrustFileInvalid(f"passkey: expected {expected}, found another text", hint=_HINT)


def _require(holds: bool, expected: str, found: str) -> None:  # noqa: FBT001 (a comparison)
    if not holds:
        raise Forged(f"answer by a passkey: expected {expected}, found {found}", hint=_ANSWER_HINT)


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Split off a part that has its length in two bytes before it; return it and the rest."""
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES])
    _require(
        _LENGTH_BYTES <= end <= len(data),
        "parts of the lengths that it says",
        f"{len(data)} bytes that end before",
    )
    return data[_LENGTH_BYTES:end], data[end:]


def _check_binding(binding: PasskeyBinding) -> None:
    digits = binding.credential
    size_bytes, half = divmod(len(digits), 2)
    if not 1 <= size_bytes <= _CREDENTIAL_BYTES_MAX or half or not is_hexadecimal(digits):
        raise _no_passkey(f"a credential id of 1 to {_CREDENTIAL_BYTES_MAX} bytes in hexadecimal")
    host = _host(binding.origin)
    if host is None:
        raise _no_passkey("an origin such as https://console.example.com or http://localhost:8080")
    if not f".{host}".endswith(f".{binding.relying_party}"):
        raise _no_passkey("the host of the origin, or a parent domain of it, as relying party")


def _host(origin: str) -> str | None:
    """Return the host of an origin that may have passkeys, if spelled as browsers do; else None."""
    found = _ORIGIN.fullmatch(origin)
    if found is None:
        return None
    scheme, host, port = found.groups()
    is_local = f".{host}".endswith(f".{_LOCAL}")
    is_address = host.rpartition(".")[2].isdigit()  # browsers make no passkeys for an address
    if len(host) > _HOST_CHARS_MAX or is_address or (scheme == "http" and not is_local):
        return None
    if port is not None and (int(port) > _PORT_MAX or int(port) == _DEFAULT_PORTS[scheme]):
        return None
    return host


def _check_client_data(data: bytes, *, kind: str, challenge: bytes, origin: str) -> None:
    """Check client data: for this action, in answer to this challenge, at this origin itself."""
    try:
        found = json.loads(
            data.decode(), object_pairs_hook=_members, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as exc:
        raise Forged(
            "answer by a passkey: expected client data as JSON with each name once, found "
            f"{len(data)} bytes that are none",
            hint=_ANSWER_HINT,
        ) from exc
    _require(isinstance(found, dict), "client data as a JSON object", "another value")
    wanted = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
    _require(found.get("type") == kind, f"type {kind}", "one of another act")
    _require(found.get("challenge") == wanted, "the challenge of this", "that of something else")
    _require(found.get("origin") == origin, f"origin {origin}", "one of another site")
    _require(
        found.get("crossOrigin", False) is False and "topOrigin" not in found,
        "a page in no other site's frame",
        "one that may be in such a frame",
    )


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _check_head(data: bytes, relying_party: str) -> int:
    """Return the flags; require this relying party and a verified user."""
    flags = data[_FLAGS_AT]
    _require(
        data[:_RP_HASH_BYTES] == hashlib.sha256(relying_party.encode()).digest(),
        f"relying party {relying_party}",
        "one of another domain",
    )
    _require(bool(flags & _USER_PRESENT), "a user who was present", "none")
    _require(bool(flags & _USER_VERIFIED), "a user who was verified", "one who was not")
    _require(
        bool(flags & _BACKUP_ELIGIBLE) or not flags & _BACKED_UP,
        "no copy of what may not be copied",
        "such a copy",
    )
    return flags
