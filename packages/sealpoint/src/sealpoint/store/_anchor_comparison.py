# SPDX-License-Identifier: Apache-2.0
"""Two anchors of one store, of which one may have seen more than the other.

The store must show that the position in one anchor descends from the position in the other. The
links alone prove that; the reader that continues from there verifies the rest.
"""

from contextlib import suppress
from typing import Protocol

from sealpoint.anchor import Position, is_behind
from sealpoint.anchor.paired import FORKED_HINT, newer_position
from sealpoint.errors import AnchorUnavailable, Forked, NotTrusted, SealpointError
from sealpoint.ledger import STORE_CHAIN, StoreChain
from sealpoint.storage import Storage
from sealpoint.store._anchor_positions import ancestor_hash, require_begun
from sealpoint.store._genesis import claimed_name
from sealpoint.store._names import store_slot, thread_slot


class AnchoredStore(Protocol):
    """The part of an open store that the comparison needs."""

    storage: Storage
    secret: bytes
    """The secret that keys the slots."""

    def trust(self) -> StoreChain:
        """Return the verified store chain."""
        ...

    def restored(self, anchored: Position) -> Position:
        """Return a position, updated for the restores accepted since."""
        ...


def judge_slot(
    store: AnchoredStore, slot: bytes, local: Position, shared: Position
) -> tuple[Position, bool]:
    """Judge as `judge_positions`, after a check that the shared anchor's thread fits the slot.

    A position that this machine has seen names the thread itself. If the machine has seen nothing
    yet, an attacker with write access to the shared anchor could put a genuine thread under another
    name.

    Raises:
        NotTrusted: The thread belongs to another slot.
        AnchorUnavailable: The same for the slot of the store chain.
    """
    is_chain = slot == store_slot(store.secret)
    named = is_chain == (shared.thread == STORE_CHAIN)
    if named and not is_chain and local.reserved and not shared.reserved:
        with suppress(SealpointError):  # a read of the thread reports the error
            namespace, name = claimed_name(store.storage, shared.thread)
            named = not name or thread_slot(store.secret, namespace, name) == slot
    if not named:
        # Without the store chain no thread can be read; one thread must not block the others.
        error = AnchorUnavailable if is_chain else NotTrusted
        raise error(
            f"shared anchor: it has thread {shared.thread.hex()[:12]} in slot {slot.hex()[:12]}, "
            "which is that of another name",
            hint="Another program wrote its tables: find out who may, and bring the "
            "database back from before.",
        )
    return judge_positions(store, local, shared)


def judge_positions(
    store: AnchoredStore, local: Position, shared: Position
) -> tuple[Position, bool]:
    """Return the newer of two positions of a slot, and whether the store shows it as a descendant.

    Positions of different epochs are compared after the restores accepted since, so that no claim
    of a restore goes beyond the store chain.

    Raises:
        Forked: They belong to different histories.
        NotTrusted: One names a restore that was not accepted.
        RolledBack: The store does not have the entry that the newest restore kept.
    """
    if local.thread != shared.thread:
        newer = newer_position(local, shared)  # for the other thread, only a name was reserved
        return newer, _descends(store, local if newer is shared else shared, newer)
    one, other = local, shared
    if local.thread != STORE_CHAIN:
        epoch = store.trust().epoch
        for position in (local, shared):
            require_begun(position, epoch)
        one, other = store.restored(local), store.restored(shared)
    if one.seq == other.seq:
        newer_position(one, other)  # refuses another entry at the same place
        return (shared if is_behind(local, shared) else local), True
    if one.seq < other.seq:
        return shared, _descends(store, one, other)
    return local, _descends(store, other, one)


def _descends(store: AnchoredStore, older: Position, newer: Position) -> bool:
    """Whether the store has the newer entry, and the older one below it.

    Raises:
        Forked: It has the newer one, and below it another entry than the older one.
    """
    if newer.reserved:
        return True
    target = newer.seq if older.reserved else older.seq
    found = ancestor_hash(store.storage, newer.thread, newer.seq, newer.entry, target)
    if found is None:
        return False  # a read of the thread reports the error
    if not older.reserved and found != older.entry:
        raise Forked(
            f"thread {newer.thread.hex()[:12]}: expected entry {target} to be "
            f"{older.entry.hex()[:12]}, which one anchor has seen, found that the entry "
            f"{newer.seq} that the other has seen follows {found.hex()[:12]}",
            hint=FORKED_HINT,
        )
    return True
