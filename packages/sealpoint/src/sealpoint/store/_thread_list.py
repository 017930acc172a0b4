# SPDX-License-Identifier: Apache-2.0
"""Every thread that the store has or the anchor knows."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from sealpoint.anchor import Position
from sealpoint.errors import Forked, NotTrusted, RolledBack, Tampered, Unanchored
from sealpoint.ledger import STORE_CHAIN, GenesisBody, Kind, Place, parse_body, parse_header
from sealpoint.store._genesis import newest_genesis
from sealpoint.store._names import thread_slot
from sealpoint.store._store_chain_cache import verify_renewed
from sealpoint.store._store_parts import Core


class ListedThread(NamedTuple):
    """A thread that the store has, that the anchor knows, or both."""

    thread: bytes
    head: int | None
    """The claimed position of its last entry in the store, unproven; None: it has none."""
    slot: bytes
    """The anchor's slot of the thread; empty: the anchor does not know it."""
    anchored: Position | None
    """The anchor's position of the thread; None: the anchor does not know it."""
    least: Position | None = None
    """The position to use in signed data. If several slots name the thread and the store does not
    show which slot belongs to its name, it is the lowest, and `anchored` is the highest."""
    doubles: tuple[bytes, ...] = ()
    """Further slots that name it, made by an attacker with write access to the anchor."""

    @property
    def stored(self) -> bool:
        """Whether the store had an entry of it."""
        return self.head is not None

    @property
    def is_begun(self) -> bool:
        """Whether the anchor has seen an entry of it, which may be the one that erased it."""
        return not (self.anchored is None or self.anchored.reserved)


def all_threads(core: Core) -> list[ListedThread]:
    """Return every thread that the store has or the anchor knows, by id; not the store chain.

    No thread is left out and no entry is read. Threads are listed before slots: a name is reserved
    before it has an entry, so a thread that is created in between has its slot. The caller reads
    entries after this call, so the store then has everything that the anchor has seen. A slot
    without a stored thread may be a reserved name, a thread begun since, or one that the store has
    lost. A thread without a slot belongs to another anchor, or is planted.
    """
    heads = dict(core.storage.heads())
    found = match_heads(core, heads, core.anchor.slots())
    return sorted(found, key=lambda each: (each.thread, each.slot))


def match_heads(
    core: Core, heads: Mapping[bytes, int], slots: Iterable[tuple[bytes, Position]]
) -> list[ListedThread]:
    """Match heads and slots like `all_threads`, unsorted, for callers that listed them in order.

    Each thread is listed once, so that an attacker who can make a slot cannot block the functions
    that list all threads.

    Args:
        core: The store.
        heads: The last position of each thread, as the storage claims.
        slots: The slots of the anchor.
    """
    found: dict[bytes, ListedThread] = {}
    several: dict[bytes, dict[bytes, Position]] = {}
    for slot, position in slots:
        thread = position.thread
        if thread == STORE_CHAIN:
            continue  # its own slot, or a slot without an owner
        if (before := found.get(thread)) is not None and before.anchored is not None:
            several.setdefault(thread, {before.slot: before.anchored})[slot] = position
            continue
        found[thread] = ListedThread(thread, heads.get(thread), slot, position, position)
    for thread, each in several.items():
        found[thread] = _listed_once(core, found[thread], each)
    unknown = heads.keys() - found.keys() - {STORE_CHAIN}
    listed = list(found.values())
    listed += [ListedThread(thread, heads[thread], slot=b"", anchored=None) for thread in unknown]
    return listed


def _listed_once(core: Core, listed: ListedThread, slots: Mapping[bytes, Position]) -> ListedThread:
    """List a thread that several slots name once, by the slot of its name if that is known."""
    highest, lowest = (choose(slots, key=lambda each: _place(slots[each])) for choose in (max, min))
    named = named_slot(core, listed.thread)
    if named is not None and named in slots:
        highest = lowest = named
    # If it is unknown, the highest position is used for searches and the lowest for signed data,
    # since an attacker may have planted a position that no entry will ever have.
    doubles = tuple(sorted(slots.keys() - {highest}))
    return listed._replace(
        slot=highest, anchored=slots[highest], least=slots[lowest], doubles=doubles
    )


def _place(position: Position) -> tuple[int, int]:
    return position.epoch, position.seq


def named_slot(core: Core, thread: bytes) -> bytes | None:
    """Return the slot of a thread's name, from a genesis that is genuine on its own.

    None if its name was erased, or is not shown.
    """
    with suppress(Tampered, NotTrusted, RolledBack, Forked, Unanchored):
        found = newest_genesis(core.storage, thread)
        if found is not None:
            seq, record = found
            header = parse_header(record.header)
            place = Place(core.store_hex, header.ns, thread.hex())
            verify_renewed(core, record, place=place, seq=seq, chain=core.trust())
            body: GenesisBody = parse_body(Kind.GENESIS, header.body, record.body or b"")
            return thread_slot(core.parts.secret, header.ns, body.name)
    return None
