# SPDX-License-Identifier: Apache-2.0
"""Taking the store chain out of a store as a document, and putting back what a store lacks of it.

What is put back is verified from the pin alone, so it works for a store that cannot be opened
because its chain is behind the anchor. Nothing that is there is changed, and the anchor is only
read: whoever opens the store next compares the two as ever.
"""

import hashlib

from sealpoint.errors import Edited, Forked, Missing
from sealpoint.ledger import STORE_CHAIN, CopiedEntry, RosterCopy, StoreChain
from sealpoint.limits import CUT_BYTES_MAX
from sealpoint.storage import Record
from sealpoint.store._core import Core
from sealpoint.store._names import store_slot

__all__ = ["copy_roster", "export_roster", "import_roster"]


def export_roster(core: Core) -> bytes:
    """The store chain as a document, as new as the anchor has seen it.

    Raises:
        Tampered, NotTrusted, RolledBack, Forked, Unanchored: The store chain does not verify.
        Missing, Edited: A list or policy that it names is not there, or is another.
    """
    return copy_roster(core, core.renewed_trust())


def copy_roster(core: Core, chain: StoreChain) -> bytes:
    """The same for a store chain that was verified already.

    Raises:
        Missing, Edited: A list or policy that it names is not there, or is another.
    """
    entries = [
        CopiedEntry(_text(record.header), _text(record.seals), _text(record.body or b""))
        for _, record in core.storage.scan(STORE_CHAIN, 0, chain.seq)
    ]
    blobs = {digest: _blob(core, digest) for digest in chain.blobs}
    copy = RosterCopy.verified(core.parts.pin, entries, blobs)
    if copy.chain.hashes != chain.hashes:
        raise Missing("store chain: expected it as it was verified, found another")
    return copy.encode()


def import_roster(core: Core, data: bytes) -> int:
    """Put back the entries and lists of the store chain that the store lacks.

    Returns:
        How many entries were put back.

    Raises:
        NotTrusted: The document is none, is of another store, or the root did not sign it.
        Tampered: The document, or an entry that is in the store, was changed.
        Forked: The store, or the anchor, has another entry where the document has one.
    """
    # (1) The document, by the pin alone.
    copy = RosterCopy.parse(data, core.parts.pin)
    # (2) The anchor: what it has seen is not gone back on.
    hashes = copy.chain.hashes
    anchored = core.anchor.get(store_slot(core.parts.secret))
    if anchored is not None and anchored.seq < len(hashes):
        _require_same(hashes[anchored.seq] == anchored.entry, anchored.seq, "the anchor")
    # (3) The store: all of it before anything is written.
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
    data = core.storage.blob(STORE_CHAIN, digest, CUT_BYTES_MAX)
    where = f"store chain blob {digest.hex()[:12]}"
    if data is None:
        raise Missing(f"{where}: expected the list or policy that a roster names, found none")
    if hashlib.sha256(data).digest() != digest:
        raise Edited(f"{where}: expected the bytes that a roster names, found others")
    return data


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise Edited("store chain: expected the sealed bytes, found others") from exc


def _require_same(same: bool, seq: int, where: str) -> None:  # noqa: FBT001 (a comparison)
    if not same:
        raise Forked(
            f"store chain entry {seq}: expected {where} to have the one of the roster export, "
            "found another"
        )


def _is_missing(core: Core, seq: int, record: Record) -> bool:
    found = core.storage.read(STORE_CHAIN, seq)
    if found is None:
        return True
    _require_same(found.header == record.header, seq, "the store")
    if found != record:
        raise Edited(f"store chain entry {seq}: expected the sealed bytes, found others")
    return False


def _is_stored(core: Core, digest: bytes, blob: bytes) -> bool:
    try:
        found = core.storage.blob(STORE_CHAIN, digest, CUT_BYTES_MAX)
    except Edited:
        return False
    return found is not None and hashlib.sha256(found).digest() == digest and found == blob
