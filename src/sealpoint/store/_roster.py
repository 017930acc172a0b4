# SPDX-License-Identifier: Apache-2.0
"""Writing to the store chain: a new roster by the root, or an adoption by an operator."""

import hashlib
from collections.abc import Sequence

from sealpoint.errors import KeyMissing, NotTrusted
from sealpoint.ledger import (
    STORE_CHAIN,
    AdoptBody,
    Body,
    Header,
    Kind,
    RosterBody,
    StoreChain,
    encode_body,
    encode_header,
    skip_seq,
)
from sealpoint.signing import ENTRY_TYPE, RosterDocument, Seal, Signer, encode_seals, pae
from sealpoint.storage import Record
from sealpoint.store._core import Core

__all__ = ["append_roster", "append_store_adoption"]


def append_roster(
    core: Core,
    chain: StoreChain,
    document: RosterDocument,
    roots: Sequence[Signer],
    *,
    reason: str | None = None,
) -> StoreChain:
    """Append a roster, signed by as many root keys as the root demands.

    Raises:
        KeyMissing: There are fewer root keys here than that.
        NotTrusted: The roster contradicts itself or takes a right away.
        HeadMoved: Somebody else has written the store chain.
    """
    root = core.parts.pin.root
    signers = [signer for signer in roots if signer.public in root.keys][: root.threshold]
    if len(signers) < root.threshold:
        raise KeyMissing(
            f"root: expected {root.threshold} of its keys here, found {len(signers)}",
            hint="Run this where the root keys are.",
        )
    body = RosterBody(salt=core.salt(), roster=document, reason=reason)
    return _append(core, chain, Kind.ROSTER, body, signers)


def append_store_adoption(core: Core, chain: StoreChain, reason: str) -> StoreChain:
    """Record that an operator takes the store chain into an anchor that does not know it."""
    body = AdoptBody(salt=core.salt(), reason=reason)
    return _append(core, chain, Kind.ADOPT, body, [core.signer()])


def _append(
    core: Core, chain: StoreChain, kind: Kind, body: Body, signers: Sequence[Signer]
) -> StoreChain:
    if not signers:
        raise NotTrusted("store chain: expected a key to sign with, found none")
    seq = chain.seq + 1
    data = encode_body(body)
    header = Header(
        store=core.store_hex,
        epoch=chain.epoch,
        ns="",
        thread=STORE_CHAIN.hex(),
        gen=0,
        seq=seq,
        prev=chain.hashes[-1].hex() if seq else None,
        skip=chain.hashes[skip_seq(seq)].hex() if seq else None,
        kind=kind,
        fence=0,
        roster=chain.rosters[-1].seq if chain.rosters else 0,
        at=core.now(),
        by=signers[0].key,
        body=hashlib.sha256(data).hexdigest(),
    )
    raw = encode_header(header)
    message = pae(ENTRY_TYPE, raw)
    seals = encode_seals([Seal(signer.public.id, signer.sign(message)) for signer in signers])
    # Judged by the rules that every reader applies, before anything is written.
    extended = chain.extended(raw, seals, data)
    core.storage.append(STORE_CHAIN, seq, [Record(raw, seals, data)], blobs={})
    return extended
