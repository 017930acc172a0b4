# SPDX-License-Identifier: Apache-2.0
"""Writing to the store chain: rosters and new roots by the root, adoptions by an operator."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress

from sealpoint.anchor import Position
from sealpoint.errors import Edited, Forked, HeadMoved, KeyMissing, Missing, NoRight, UsageError
from sealpoint.ledger import (
    KINDS,
    STORE_CHAIN,
    AdoptBody,
    Body,
    CopiedEntry,
    Header,
    Kind,
    PositionList,
    RestoreBody,
    RootBody,
    RosterBody,
    RosterCopy,
    StoreChain,
    encode_body,
    encode_header,
    skip_seq,
)
from sealpoint.limits import POSITION_LIST_BYTES_MAX, SEALS_MAX
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
from sealpoint.store._key_expiry import require_unexpired
from sealpoint.store._names import store_slot
from sealpoint.store._store_parts import Core
from sealpoint.store._thread_list import all_threads


def append_roster(
    core: Core,
    chain: StoreChain,
    document: RosterDocument,
    roots: Sequence[PrivateKey],
    *,
    reason: str | None = None,
    blobs: Mapping[bytes, bytes] | None = None,
    positions: PositionList | None = None,
) -> StoreChain:
    """Append a roster, signed by as many root keys as the root requires.

    A roster that changes a policy lists the position of each thread.

    Args:
        core: The store.
        chain: Its current chain.
        document: The roster.
        roots: The available root keys.
        reason: Why, for the record.
        blobs: The lists that its new cutoffs name, and new policies, by their digests.
        positions: A new list for an earlier change of policy, which replaces the existing one.

    Raises:
        KeyMissing: There are too few root keys here.
        NotTrusted: The roster contradicts itself or removes a right without a cutoff.
        HeadMoved: Another process has written the store chain.
    """
    if reason is not None:
        check_reason_size(reason, "roster")
    signers = require_roots(chain.root, roots)
    if chain.rosters and chain.roster.document.policies != document.policies:
        positions = anchored_positions(core, chain)
    listed = None if positions is None else positions.digest.hex()
    body = RosterBody(salt=core.salt(), roster=document, reason=reason, positions=listed)
    named = dict(blobs or {}) | ({} if positions is None else {positions.digest: positions.data})
    return _append(core, chain, Kind.ROSTER, body, signers, blobs=named)


def anchored_entry(chain: StoreChain, anchored: Position) -> tuple[int, bytes] | None:
    """Return the entry that the anchor, or a restore accepted since, vouches for; else None."""
    if anchored.epoch < chain.epoch:
        return chain.kept(anchored.thread)
    return None if anchored.reserved else (anchored.seq, anchored.entry)


def anchored_positions(core: Core, chain: StoreChain) -> PositionList:
    """Return the position of each thread that the anchor knows; no thread is read.

    Raises:
        StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
        Missing, Edited: The list of the newest restore is missing or different.
    """
    entries = (
        (each.thread, anchored_entry(chain, each.least))
        for each in all_threads(core)
        if each.least is not None
    )
    return PositionList.of((thread, *entry) for thread, entry in entries if entry is not None)


def list_positions_again(core: Core, chain: StoreChain, roots: Sequence[PrivateKey]) -> None:
    """Replace the position list of a policy change, if threads have moved while it was written.

    The list was made before the roster existed, so a worker that resumed in between did nothing
    wrong, and received no error. Once the anchor has the roster, every worker meets it after its
    append. So a list made after that contains every entry that was reported as a success.

    Args:
        core: The store.
        chain: Its anchored chain, with the roster that changes a policy.
        roots: The available root keys.
    """
    document = chain.roster.document
    while chain.roster.document.policies == document.policies:
        positions = anchored_positions(core, chain)
        if positions.digest.hex() == chain.roster.positions:
            return
        with suppress(HeadMoved):  # then another process has written a roster: try again
            again = append_roster(core, chain, chain.roster.document, roots, positions=positions)
            core.written(again)
            return
        chain = core.renewed_trust()


def append_root(
    core: Core,
    chain: StoreChain,
    root: Root,
    roots: Sequence[PrivateKey],
    *,
    reason: str | None = None,
) -> StoreChain:
    """Append a new root, signed by as many keys as the old and the new root each require.

    Raises:
        KeyMissing: There are too few keys of the old or of the new root here.
        UsageError: Together they are more than an entry has room for.
        NotTrusted: It is not the next root.
        HeadMoved: Another process has written the store chain.
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
    """Return as many keys of a root as it requires.

    Raises:
        KeyMissing: There are fewer here.
    """
    signers = [signer for signer in roots if signer.public in root.keys][: root.threshold]
    if len(signers) < root.threshold:
        raise KeyMissing(
            f"root: {root.threshold} of its keys are needed here, found {len(signers)}",
            hint="Run this where the root keys are.",
        )
    return signers


def append_restore(
    core: Core,
    chain: StoreChain,
    *,
    kept: PositionList,
    lost: PositionList,
    released: PositionList,
    paused: PositionList,
    reason: str,
    signers: Sequence[PrivateKey],
) -> StoreChain:
    """Append a restore, signed by the root or by a quorum of operators.

    Raises:
        NotTrusted: These keys are not enough to sign it.
        HeadMoved: Another process has written the store chain.
    """
    body = RestoreBody(
        salt=core.salt(),
        reason=reason,
        kept=kept.digest.hex(),
        lost=lost.digest.hex(),
        released=released.digest.hex(),
        paused=paused.digest.hex() if len(paused) else None,
    )
    lists = (kept, lost, released, *((paused,) if len(paused) else ()))
    blobs = {listed.digest: listed.data for listed in lists}
    return _append(core, chain, Kind.RESTORE, body, signers, blobs=blobs)


def append_store_adoption(core: Core, chain: StoreChain, reason: str) -> StoreChain:
    """Record that an operator adopts the store chain into an anchor that does not know it."""
    signer = core.signer()
    require_unexpired(core, chain, signer.key, None, f"identity {signer.name!r}")
    holder, roles = chain.roster.holder(signer.public.id), KINDS[Kind.ADOPT].roles
    if holder is not None and not holder[0].may_any(roles, ANY_NAMESPACE):
        found, hint = holder[0].lacking(roles, ANY_NAMESPACE)
        raise NoRight(
            f"anchor adopt by {signer.name!r}: this needs role operator in all namespaces; "
            f"{signer.name!r} has {found}",
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
        pause=0,
        owner=0,
        roster=chain.rosters[-1].seq if chain.rosters else 0,
        at=core.now(),
        by=signers[0].key,
        body=hashlib.sha256(data).hexdigest(),
    )
    raw = encode_header(header)
    message = pae(ENTRY_TYPE, raw)
    seals = encode_seals([Seal(signer.public.id, signer.sign(message)) for signer in signers])
    # The rules that every reader applies judge the entry before anything is written.
    extended = chain.extended(raw, seals, data)
    core.storage.append(STORE_CHAIN, seq, [Record(raw, seals, data)], blobs=blobs or {})
    return extended


# Exporting the store chain as a document, and putting back the parts that a store lacks.
#
# The imported data is verified from the pin alone, so this works for a store that cannot be opened
# because its chain is behind the anchor. Existing data is not changed, and the anchor is only read:
# the next process that opens the store compares the two as usual.


def export_roster(core: Core) -> bytes:
    """Return the store chain as a document, as new as the anchor has seen it.

    Raises:
        Tampered, NotTrusted, RolledBack, Forked, Unanchored: The store chain does not verify.
        Missing, Edited: A list or policy that it names is missing or different.
    """
    return copy_roster(core, core.renewed_trust())


def copy_roster(core: Core, chain: StoreChain) -> bytes:
    """Return a store chain that was already verified as a document.

    Raises:
        Missing, Edited: A list or policy that it names is missing or different.
    """
    entries = [
        CopiedEntry(_text(record.header), _text(record.seals), _text(record.body or b""))
        for _, record in core.storage.scan(STORE_CHAIN, 0, chain.seq)
    ]
    blobs = {digest: _blob(core, digest) for digest in chain.blobs}
    copy = RosterCopy.verified(core.parts.pin, entries, blobs)
    if copy.chain.hashes != chain.hashes:
        raise Missing("store chain: it changed after it was verified")
    return copy.encode()


def import_roster(core: Core, data: bytes) -> int:
    """Put back the entries and lists of the store chain that the store lacks.

    Returns:
        How many entries were put back.

    Raises:
        NotTrusted: The document is invalid, belongs to another store, or the root did not sign it.
        Tampered: The document, or an entry in the store, was changed.
        Forked: The store, or the anchor, has another entry in place of one in the document.
    """
    # (1) The document, by the pin alone.
    copy = RosterCopy.parse(data, core.parts.pin)
    # (2) The anchor: entries that it has seen must not change.
    hashes = copy.chain.hashes
    anchored = core.anchor.get(store_slot(core.parts.secret))
    if anchored is not None and anchored.seq < len(hashes):
        _require_same(hashes[anchored.seq] == anchored.entry, anchored.seq, "the anchor")
    # (3) The store: check all of it before anything is written.
    records = [
        Record(entry.header.encode(), entry.seals.encode(), entry.body.encode())
        for entry in copy.entries
    ]
    missing = [seq for seq, record in enumerate(records) if _is_missing(core, seq, record)]
    # (4) Lists before the entries that name them.
    blobs = {
        digest: blob for digest, blob in copy.blobs.items() if not _is_stored(core, digest, blob)
    }
    if blobs:
        core.storage.put_blobs(STORE_CHAIN, blobs)
    for seq in missing:
        core.storage.append(STORE_CHAIN, seq, [records[seq]], blobs={})
    return len(missing)


def _blob(core: Core, digest: bytes) -> bytes:
    data = core.storage.blob(STORE_CHAIN, digest, POSITION_LIST_BYTES_MAX)
    where = f"store chain blob {digest.hex()[:12]}"
    if data is None:
        raise Missing(f"{where}: a list or policy that a roster names is missing")
    if hashlib.sha256(data).digest() != digest:
        raise Edited(
            f"{where}: expected the list or policy that a roster names, found bytes of another hash"
        )
    return data


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise Edited("store chain: its bytes are not those that were signed") from exc


def _require_same(same: bool, seq: int, where: str) -> None:  # noqa: FBT001 (a comparison)
    if not same:
        raise Forked(
            f"store chain entry {seq}: {where} has another entry there than the roster export"
        )


def _is_missing(core: Core, seq: int, record: Record) -> bool:
    found = core.storage.read(STORE_CHAIN, seq)
    if found is None:
        return True
    _require_same(found.header == record.header, seq, "the store")
    if found != record:
        raise Edited(f"store chain entry {seq}: its bytes are not those that were signed")
    return False


def _is_stored(core: Core, digest: bytes, blob: bytes) -> bool:
    try:
        found = core.storage.blob(STORE_CHAIN, digest, POSITION_LIST_BYTES_MAX)
    except Edited:
        return False
    return found is not None and hashlib.sha256(found).digest() == digest and found == blob
