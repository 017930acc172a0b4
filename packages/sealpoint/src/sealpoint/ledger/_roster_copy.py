# SPDX-License-Identifier: Apache-2.0
"""A copy of a store chain in one document, for backups: entries, signatures, bodies and lists.

It is a JSON document that people can read. It holds no secret and proves itself: anyone with the
pin can verify every entry of it as if it were in the store. Parsing is a round trip, so a copy has
only one spelling. A copy is refused if it lacks a list that the chain names, or has an additional
one.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from sealpoint.errors import TrustFileInvalid, UsageError
from sealpoint.ids import StoreId
from sealpoint.ledger._store_chain import StoreChain
from sealpoint.limits import ROSTER_COPY_BYTES_MAX
from sealpoint.signing import TrustPin

_VERSION = 1
_HINT = (
    "Use another copy, unchanged. A machine whose store is whole writes one: sealpoint roster "
    "export FILE."
)


class CopiedEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of a store chain in its stored form: each part is a JSON document."""

    header: str
    seals: str
    body: str


class _CopyDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    v: int
    store: str
    entries: tuple[CopiedEntry, ...]
    blobs: dict[str, bytes]
    """The blobs by digest, sorted; the bytes in base 64."""


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
        """Make a copy in which the pin's root, or its delegates, signed every entry.

        Raises:
            Tampered, NotTrusted: It does not verify, or is not complete.
        """
        chain = StoreChain(pin)
        for entry in entries:
            chain = chain.extended(entry.header.encode(), entry.seals.encode(), entry.body.encode())
        if not chain.rosters:
            raise TrustFileInvalid(
                f"roster export: expected a roster, found none in {len(entries)} entries",
                hint=_HINT,
            )
        if chain.blobs != tuple(sorted(blobs)):
            raise TrustFileInvalid(
                f"roster export: expected the {len(chain.blobs)} lists that its entries name, "
                f"found {len(blobs)}",
                hint=_HINT,
            )
        for digest, data in blobs.items():
            if hashlib.sha256(data).digest() != digest:
                raise TrustFileInvalid(
                    f"roster export: expected list {digest.hex()[:12]}, found "
                    f"{len(data)} bytes of another hash",
                    hint=_HINT,
                )
        return cls(chain, tuple(entries), blobs)

    def encode(self) -> bytes:
        """Encode the document.

        Raises:
            UsageError: It is larger than a reader would accept.
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
        """Read and verify the output of `encode`.

        Raises:
            NotTrusted: It is not such a document, belongs to another store, or the root did not
                sign it.
            Tampered: One of its entries was changed.
        """
        if len(data) > ROSTER_COPY_BYTES_MAX:
            raise TrustFileInvalid(
                f"roster export: expected at most {ROSTER_COPY_BYTES_MAX} bytes, found {len(data)}",
                hint=_HINT,
            )
        try:
            document = _DECODER.decode(data)
            store = StoreId.parse(document.store)
            blobs = {bytes.fromhex(name): blob for name, blob in document.blobs.items()}
        except (msgspec.MsgspecError, ValueError, RecursionError, UsageError) as exc:
            raise TrustFileInvalid(
                f"roster export: expected one as JSON, found {len(data)} bytes that are not one",
                hint=_HINT,
            ) from exc
        if document.v != _VERSION:
            raise TrustFileInvalid(
                f"roster export: expected version {_VERSION}, found {document.v}",
                hint="Install the Sealpoint version that wrote it, or a newer one.",
            )
        if store != pin.store:
            raise TrustFileInvalid(
                f"roster export: expected one of store {pin.store}, found one of {store}",
                hint="Name the store that it is of with --store.",
            )
        copy = cls.verified(pin, document.entries, blobs)
        if copy.encode() != data:
            raise TrustFileInvalid(
                "roster export: expected it byte for byte as sealpoint roster export writes it, "
                "found other spacing, order or spelling",
                hint=_HINT,
            )
        return copy
