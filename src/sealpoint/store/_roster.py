# SPDX-License-Identifier: Apache-2.0
"""Writing to the store chain: a roster or a new root by the root, an adoption by an operator."""

import hashlib
from collections.abc import Mapping, Sequence

from sealpoint.errors import KeyMissing, NotTrusted, UsageError
from sealpoint.ledger import (
    KINDS,
    STORE_CHAIN,
    AdoptBody,
    Body,
    CutList,
    Header,
    Kind,
    RestoreBody,
    RootBody,
    RosterBody,
    StoreChain,
    encode_body,
    encode_header,
    skip_seq,
)
from sealpoint.limits import SEALS_MAX
from sealpoint.signing import (
    ANY_NAMESPACE,
    ENTRY_TYPE,
    PrivateKey,
    Root,
    RosterDocument,
    Seal,
    SigningKey,
    check_reason_size,
    encode_seals,
    pae,
)
from sealpoint.storage import Record
from sealpoint.store._core import Core
from sealpoint.store._expiry import require_unexpired

__all__ = ["append_restore", "append_root", "append_roster", "append_store_adoption"]


def append_roster(
    core: Core,
    chain: StoreChain,
    document: RosterDocument,
    roots: Sequence[PrivateKey],
    *,
    reason: str | None = None,
    blobs: Mapping[bytes, bytes] | None = None,
) -> StoreChain:
    """Append a roster, signed by as many root keys as the root demands.

    Args:
        core: The store.
        chain: Its chain, as it is now.
        document: The roster.
        roots: The root keys that are here.
        reason: Why, for the record.
        blobs: The lists that its new cuts name, by their digests.

    Raises:
        KeyMissing: There are fewer root keys here than that.
        NotTrusted: The roster contradicts itself or takes a right away without a cut.
        HeadMoved: Somebody else has written the store chain.
    """
    if reason is not None:
        check_reason_size(reason, "roster")
    body = RosterBody(salt=core.salt(), roster=document, reason=reason)
    return _append(core, chain, Kind.ROSTER, body, require_roots(chain.root, roots), blobs=blobs)


def append_root(
    core: Core,
    chain: StoreChain,
    root: Root,
    roots: Sequence[PrivateKey],
    *,
    reason: str | None = None,
) -> StoreChain:
    """Append a new root, signed by as many keys as the old root demands and as the new one does.

    Raises:
        KeyMissing: There are fewer keys of the old or of the new root here than that.
        UsageError: Together they are more than an entry has room for.
        NotTrusted: It is not the next root.
        HeadMoved: Somebody else has written the store chain.
    """
    old, new = require_roots(chain.root, roots), require_roots(root, roots)
    signers = {signer.public.id: signer for signer in (*old, *new)}
    if len(signers) > SEALS_MAX:
        raise UsageError(
            f"root: expected at most {SEALS_MAX} signatures of both roots, found {len(signers)}",
            hint="Go by way of a root with a lower threshold, or keep some of the keys.",
        )
    if reason is not None:
        check_reason_size(reason, "root")
    body = RootBody(salt=core.salt(), root=root.document, reason=reason)
    return _append(core, chain, Kind.ROOT, body, list(signers.values()))


def require_roots(root: Root, roots: Sequence[PrivateKey]) -> list[PrivateKey]:
    """As many keys of a root as it demands.

    Raises:
        KeyMissing: There are fewer here.
    """
    signers = [signer for signer in roots if signer.public in root.keys][: root.threshold]
    if len(signers) < root.threshold:
        raise KeyMissing(
            f"root: expected {root.threshold} of its keys here, found {len(signers)}",
            hint="Run this where the root keys are.",
        )
    return signers


def append_restore(
    core: Core,
    chain: StoreChain,
    *,
    kept: CutList,
    lost: CutList,
    released: CutList,
    reason: str,
    signers: Sequence[PrivateKey],
) -> StoreChain:
    """Append a restore, signed by the root or by a quorum of operators.

    Raises:
        NotTrusted: These are not enough to sign it.
        HeadMoved: Somebody else has written the store chain.
    """
    body = RestoreBody(
        salt=core.salt(),
        reason=reason,
        kept=kept.digest.hex(),
        lost=lost.digest.hex(),
        released=released.digest.hex(),
    )
    blobs = {listed.digest: listed.data for listed in (kept, lost, released)}
    return _append(core, chain, Kind.RESTORE, body, signers, blobs=blobs)


def append_store_adoption(core: Core, chain: StoreChain, reason: str) -> StoreChain:
    """Record that an operator takes the store chain into an anchor that does not know it."""
    signer = core.signer()
    require_unexpired(core, chain, signer.key, None, f"identity {signer.name!r}")
    holder, roles = chain.roster.holder(signer.public.id), KINDS[Kind.ADOPT].roles
    if holder is not None and not holder[0].may_any(roles, ANY_NAMESPACE):
        found, hint = holder[0].lacking(roles, ANY_NAMESPACE)
        raise NotTrusted(
            f"anchor adopt by {signer.name!r}: expected an operator of all namespaces, found "
            f"{found}",
            hint=hint,
        )
    body = AdoptBody(salt=core.salt(), reason=reason)
    return _append(core, chain, Kind.ADOPT, body, [signer])


def _append(
    core: Core,
    chain: StoreChain,
    kind: Kind,
    body: Body,
    signers: Sequence[SigningKey],
    *,
    blobs: Mapping[bytes, bytes] | None = None,
) -> StoreChain:
    seq = chain.seq + 1
    data = encode_body(body)
    header = Header(
        store=core.store_hex,
        epoch=chain.epoch + (kind is Kind.RESTORE),
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
    core.storage.append(STORE_CHAIN, seq, [Record(raw, seals, data)], blobs=blobs or {})
    return extended
