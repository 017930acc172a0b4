# SPDX-License-Identifier: Apache-2.0
"""The positions that an anchor keeps, of a thread and of the store chain."""

import msgspec

from sealpoint.anchor import Position
from sealpoint.errors import Forked, NotTrusted
from sealpoint.ledger import (
    STORE_CHAIN,
    Header,
    Kind,
    StoreChain,
    Tip,
    link_hash,
    link_to,
    next_link,
    parse_header,
)
from sealpoint.store._entry_reader import EntryReader


def shown_position(
    entries: EntryReader, thread: bytes, seq: int, entry: bytes, *, epoch: int
) -> Position | None:
    """Return the anchor position of a thread at an entry that is known to count.

    Returns:
        None if the store lacks the entry, or one that it names.
    """
    record = entries.read(thread, seq)
    if record is None or link_hash(record.header) != entry:
        return None
    header = parse_header(record.header)
    owner = ancestor_hash(entries, thread, seq, entry, header.owner)
    settled = entries.read(thread, header.pause)
    if owner is None or settled is None:
        return None
    paused = parse_header(settled.header).kind is Kind.PAUSE
    return msgspec.structs.replace(position_of(header, entry, owner, paused=paused), epoch=epoch)


def tip_position(tip: Tip) -> Position:
    """Return the anchor position of a thread that was verified up to a tip."""
    head = tip.entry
    return position_of(head.header, head.hash, tip.owner.hash, paused=tip.paused is not None)


def position_of(header: Header, entry: bytes, owner: bytes, *, paused: bool) -> Position:
    """Return the anchor position of a thread whose head is judged.

    Args:
        header: The header of the head.
        entry: Its hash.
        owner: The hash of the entry that names the owner.
        paused: Whether a pause is in force.
    """
    return Position(
        bytes.fromhex(header.thread),
        header.epoch,
        header.gen,
        header.seq,
        entry,
        header.kind is Kind.ERASE,
        header.fence,
        header.pause,
        header.owner,
        owner,
        paused,
    )


def store_chain_position(chain: StoreChain) -> Position:
    """Return the anchor position of the store chain; the root's last entry is its owner entry.

    An operator may add entries, and must not be able to put them in the place of a roster.
    """
    return Position(
        STORE_CHAIN,
        chain.epoch,
        0,
        chain.seq,
        chain.hashes[-1],
        owner=chain.settled,
        owner_entry=chain.hashes[chain.settled],
    )


def raised_position(position: Position, anchored: Position) -> Position:
    """Return the position with any higher marks of the anchor, where marks never go down.

    They mean nothing for the store chain, and must not prevent the anchor from following.
    """
    higher = anchored.owner > position.owner
    return msgspec.structs.replace(
        position,
        fence=max(position.fence, anchored.fence),
        pause=max(position.pause, anchored.pause),
        paused=anchored.paused,
        owner=anchored.owner if higher else position.owner,
        owner_entry=anchored.owner_entry if higher else position.owner_entry,
    )


def require_settled(chain: StoreChain, anchored: Position) -> None:
    """Refuse a store chain without the newest roster or root that the anchor has seen.

    Raises:
        Forked: Another entry has its place.
    """
    if anchored.owner >= 0 and anchored.owner_entry != chain.hashes[anchored.owner]:
        raise Forked(
            f"store chain entry {anchored.owner}: expected {anchored.owner_entry.hex()[:12]}, "
            "which the root signed and the anchor has seen, found another entry"
        )


def require_begun(position: Position, epoch: int) -> None:
    """Refuse an anchored position of an epoch that no accepted restore has begun.

    Its marks would count for nothing: only a restore lets marks go down.

    Raises:
        NotTrusted: It is of such an epoch.
    """
    if position.epoch > epoch:
        raise NotTrusted(
            f"anchors of thread {position.thread.hex()[:12]}: expected at most {epoch} accepted "
            f"restores, as the store chain has, found {position.epoch}",
            hint="Another program wrote an anchor: find out who may write it.",
        )


def ancestor_hash(
    entries: EntryReader, thread: bytes, seq: int, entry: bytes, target: int
) -> bytes | None:
    """Return the hash of the entry at `target`, by links from another; None if one is missing."""
    while True:
        record = entries.read(thread, seq)
        if record is None or link_hash(record.header) != entry:
            return None
        if seq == target:
            return entry
        header = parse_header(record.header)
        seq = next_link(seq, target)
        entry = bytes.fromhex(link_to(header, seq) or "")
        if seq == target:
            return entry
