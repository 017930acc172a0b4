# SPDX-License-Identifier: Apache-2.0
"""Every thread that the store has or the anchor knows."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from sealpoint.anchor import Position
from sealpoint.errors import Forked, NotTrusted, RolledBack, Tampered, Unanchored
from sealpoint.ledger import STORE_CHAIN, GenesisBody, Kind, Place, parse_body, parse_header
from sealpoint.store._call_trust import verify_renewed
from sealpoint.store._core import Core
from sealpoint.store._genesis import newest_genesis
from sealpoint.store._names import thread_slot


class ListedThread(NamedTuple):
    """A thread that the store has, that the anchor knows, or both."""

    thread: bytes
    head: int | None
    """Where the store says that its last entry lies, which proves nothing; None: it has none."""
    slot: bytes
    """Under which the anchor knows it; empty: it does not."""
    anchored: Position | None
    """What the anchor has seen of it; None: it does not know it."""
    least: Position | None = None
    """The same for what is signed: where several slots name the thread and the store does not show
    which is that of its name, the lowest, and `anchored` is the highest."""
    doubles: tuple[bytes, ...] = ()
    """Further slots that name it: somebody who may write the anchor has made them."""

    @property
    def stored(self) -> bool:
        """Whether the store had an entry of it."""
        return self.head is not None

    @property
    def is_begun(self) -> bool:
        """Whether the anchor has seen an entry of it; that may be one that erased it."""
        return not (self.anchored is None or self.anchored.reserved)


def all_threads(core: Core) -> list[ListedThread]:
    """Every thread that the store has or the anchor knows, by id; not the store chain.

    Nothing is left out and nothing is read. Threads come before slots: a name is reserved
    before it has an entry, so a thread that comes into being meanwhile has its slot. Whoever
    reads entries does so after this: the store then has what the anchor has seen. A slot
    without a stored thread may be a reserved name, a thread begun since, or one that the store
    has lost; a thread without a slot is another anchor's, or planted.
    """
    heads = dict(core.storage.heads())
    found = match_heads(core, heads, core.anchor.slots())
    return sorted(found, key=lambda each: (each.thread, each.slot))


def match_heads(
    core: Core, heads: Mapping[bytes, int], slots: Iterable[tuple[bytes, Position]]
) -> list[ListedThread]:
    """As `all_threads` in no order, for who has listed threads and then slots.

    Each thread is listed once, so that nobody who can make a slot keeps others from what lists all
    threads.

    Args:
        core: The store.
        heads: The last position of each thread, as the storage says.
        slots: What the anchor holds.
    """
    found: dict[bytes, ListedThread] = {}
    several: dict[bytes, dict[bytes, Position]] = {}
    for slot, position in slots:
        thread = position.thread
        if thread == STORE_CHAIN:
            continue  # its own slot, or one that is nobody's
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
    """A thread that several slots name, by the one that is that of its name."""
    highest, lowest = (choose(slots, key=lambda each: _place(slots[each])) for choose in (max, min))
    named = named_slot(core, listed.thread)
    if named is not None and named in slots:
        highest = lowest = named
    # Else nobody can tell: what is looked for is the most that was seen, and what is signed is the
    # least, since anybody can have planted a position that no entry will ever have.
    doubles = tuple(sorted(slots.keys() - {highest}))
    return listed._replace(
        slot=highest, anchored=slots[highest], least=slots[lowest], doubles=doubles
    )


def _place(position: Position) -> tuple[int, int]:
    return position.epoch, position.seq


def named_slot(core: Core, thread: bytes) -> bytes | None:
    """The slot of the name that a thread has, by a genesis that is genuine on its own.

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
