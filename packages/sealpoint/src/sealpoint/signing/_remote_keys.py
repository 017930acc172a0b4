# SPDX-License-Identifier: Apache-2.0
"""Keys outside this process: in a key management service, a hardware module or another process.

Nothing that such a signer returns is trusted: each signature is verified with the public key before
it is used, so a wrong one results in `SignerFailed` and is never written. An exception of the
signer results in the same error, with the exception as its cause; the message does not repeat its
text, which may contain anything.
"""

from typing import Protocol

from sealpoint.errors import Forged, SignerFailed
from sealpoint.signing._keys import PrivateKey, PublicKey


class Signer(Protocol):
    """A private key that is not in this process.

    The key MUST be an Ed25519 key. The signer does not learn what it signs for: anyone who may call
    `sign` can write everything that the roster lets the identity of this key write.
    """

    @property
    def public_key(self) -> bytes:
        """The public half: 32 bytes. It MUST stay the same; it is read once."""
        ...

    def sign(self, data: bytes) -> bytes:
        """Return the Ed25519 signature of `data`, 64 bytes.

        - It MUST sign the bytes as they are (pure Ed25519, RFC 8032), not a digest of them.
        - It MUST be safe to call from several OS threads at once, and MAY take long: until it
          returns, this process can do nothing else with the same thread, but can work with other
          threads. No file, database or anchor is locked during the call.
        - It MUST raise if it cannot sign, and MUST NOT wait forever: it must set its own time
          limit.
        - It MAY be called more than once for one save: if another process writes to the same thread
          first, a new entry is made and signed.
        """
        ...


class RemoteKey:
    """A signer with the name that the roster has for its key."""

    __slots__ = ("_signer", "key", "name", "public")

    def __init__(self, name: str, public: PublicKey, signer: Signer) -> None:
        self.name = name
        self.public = public
        self.key = public.id.raw.hex()
        """The key's name in entries: the digits of its id."""
        self._signer = signer

    def sign(self, message: bytes) -> bytes:
        """Get a signature for a message that `pae` framed.

        Raises:
            SignerFailed: The signer failed, or signed with another key.
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
"""Any key that signs for an identity."""


def public_key_of(signer: Signer) -> PublicKey:
    """Return the public half of a key outside this process.

    Raises:
        SignerFailed: The signer does not return it.
        NotTrusted: The signer returns something that is not a public key.
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
