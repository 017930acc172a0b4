# SPDX-License-Identifier: Apache-2.0
"""A copy of a store chain in one document, for backups: entries, signatures, bodies and lists.

It is a JSON document that people can read. It holds no secret, and proves itself: whoever has the
pin verifies every entry of it as if it lay in the store. Parsing is a round trip, so one copy has
one spelling; a list that the chain names and the copy lacks, or one more, is refused.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from sealpoint.errors import NotTrusted, UsageError
from sealpoint.ids import StoreId
from sealpoint.ledger._store_chain import StoreChain
from sealpoint.limits import ROSTER_COPY_BYTES_MAX
from sealpoint.signing import TrustPin

_VERSION = 1


class CopiedEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of a store chain, as it lies in the store: each part is JSON of its own."""

    header: str
    seals: str
    body: str


class _CopyDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    v: int
    store: str
    entries: tuple[CopiedEntry, ...]
    blobs: dict[str, bytes]
    """By their digests, in the order of these; the bytes in base 64."""


_DECODER = msgspec.json.Decoder(_CopyDocument)


@dataclass(frozen=True, slots=True)
class RosterCopy:
    """A store chain with everything that belongs to it, verified from the pin alone."""

    chain: StoreChain
    entries: tuple[CopiedEntry, ...]
    blobs: Mapping[bytes, bytes]

    @classmethod
    def verified(
        cls, pin: TrustPin, entries: Sequence[CopiedEntry], blobs: Mapping[bytes, bytes]
    ) -> "RosterCopy":
        """A copy whose every entry the pin's root, or whom it entrusted, has signed.

        Raises:
            Tampered, NotTrusted: It does not verify, or is not whole.
        """
        chain = StoreChain(pin)
        for entry in entries:
            chain = chain.extended(entry.header.encode(), entry.seals.encode(), entry.body.encode())
        if not chain.rosters:
            raise NotTrusted("roster export: expected a roster, found none")
        if chain.blobs != tuple(sorted(blobs)):
            raise NotTrusted(
                f"roster export: expected the {len(chain.blobs)} lists that its entries name, "
                f"found {len(blobs)}"
            )
        for digest, data in blobs.items():
            if hashlib.sha256(data).digest() != digest:
                raise NotTrusted(
                    f"roster export: expected list {digest.hex()[:12]}, found other bytes"
                )
        return cls(chain, tuple(entries), blobs)

    def encode(self) -> bytes:
        """The document.

        Raises:
            UsageError: It is larger than a reader would take.
        """
        document = _CopyDocument(
            _VERSION,
            str(self.chain.pin.store),
            self.entries,
            {digest.hex(): self.blobs[digest] for digest in sorted(self.blobs)},
        )
        data = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
        if len(data) > ROSTER_COPY_BYTES_MAX:
            raise UsageError(
                f"roster export: expected at most {ROSTER_COPY_BYTES_MAX} bytes, found {len(data)}"
            )
        return data

    @classmethod
    def parse(cls, data: bytes, pin: TrustPin) -> "RosterCopy":
        """Read and verify what `encode` wrote.

        Raises:
            NotTrusted: It is no such document, is of another store, or the root did not sign it.
            Tampered: An entry of it was changed.
        """
        if len(data) > ROSTER_COPY_BYTES_MAX:
            raise NotTrusted(
                f"roster export: expected at most {ROSTER_COPY_BYTES_MAX} bytes, found {len(data)}"
            )
        try:
            document = _DECODER.decode(data)
            store = StoreId.parse(document.store)
            blobs = {bytes.fromhex(name): blob for name, blob in document.blobs.items()}
        except (msgspec.MsgspecError, ValueError, RecursionError, UsageError) as exc:
            raise NotTrusted("roster export: expected one as JSON, found something else") from exc
        if document.v != _VERSION:
            raise NotTrusted(f"roster export: expected version {_VERSION}, found {document.v}")
        if store != pin.store:
            raise NotTrusted(
                f"roster export: expected one of store {pin.store}, found one of {store}"
            )
        copy = cls.verified(pin, document.entries, blobs)
        if copy.encode() != data:
            raise NotTrusted("roster export: expected the one spelling of it, found another")
        return copy
