# SPDX-License-Identifier: Apache-2.0
"""Keys that live elsewhere: in a key management service, a hardware module, another process.

Nothing that such a signer returns is trusted: each signature is verified with the public key before
it is used, so a wrong one ends in `SignerFailed` and is never written. An exception of the signer
ends in the same error, with the exception as its cause; the message does not repeat its text, which
may say anything.
"""

from typing import Protocol

from sealpoint.errors import Forged, SignerFailed
from sealpoint.signing._keys import PrivateKey, PublicKey


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
