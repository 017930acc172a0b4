# SPDX-License-Identifier: Apache-2.0
"""Where the anchor stands against the store, for people who look, and adoption into an anchor.

Looking compares positions and hashes and nothing else: no signature is verified, no name is proven
beyond the anchor's slot for it, and nothing is written. So it answers also for a store that every
read refuses. Adoption verifies everything from its first entry.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from sealpoint.anchor import Position
from sealpoint.api._location import StoreLocation
from sealpoint.api._open import OPERATOR
from sealpoint.audit import verify_thread
from sealpoint.errors import Forked, SealpointError, UnknownThread
from sealpoint.ledger import STORE_CHAIN, link_hash
from sealpoint.store import (
    Chain,
    Core,
    ListedThread,
    adopt_store_chain,
    adopt_thread,
    claimed_name,
    store_slot,
    unanchored_threads,
)


class AnchorStanding(StrEnum):
    """How the anchor and the store stand to each other, for one chain."""

    IN_STEP = "in-step"
    """Both end at the same entry."""
    ANCHOR_BEHIND = "anchor-behind"
    """The store has newer entries; the next load or save verifies them and moves the anchor."""
    STORE_BEHIND = "store-behind"
    """The store ends before the anchored entry: it was rolled back."""
    FORKED = "forked"
    """Another entry, or another thread, lies where the anchored one was."""
    MISSING = "missing"
    """The anchor knows the thread, and the store has nothing of it."""
    UNANCHORED = "unanchored"
    """The store has the thread, and the anchor does not know it."""
    RESERVED = "reserved"
    """A first save began and never came to an entry."""
    ERASED = "erased"
    """It was erased on purpose."""
    UNREADABLE = "unreadable"
    """What the store has cannot be read, so there is nothing to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorPosition:
    """One chain: what the anchor holds, and where the store says that it ends."""

    name: str | None
    """The thread's name; None for the store chain and for threads whose name cannot be known."""
    thread: str
    """The thread's id in hexadecimal."""
    is_store_chain: bool
    anchored: int | None
    """The anchored sequence number; None if the anchor does not know it."""
    head: int | None
    """The newest sequence number in the store; None if there is none."""
    standing: AnchorStanding


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What was taken into the anchor, or would be."""

    store_chain: bool
    threads: tuple[str, ...]


class AnchorAdmin:
    """`admin.anchor`: the memory of heads on this machine."""

    def __init__(self, location: StoreLocation) -> None:
        self._location = location

    def positions(
        self, *, threads: Sequence[str] | None = None, namespace: str = "default"
    ) -> list[AnchorPosition]:
        """Compare the anchor with the store: the store chain first, then threads by name.

        Args:
            threads: Names; without them, all threads of the namespace, and all that the anchor
                knows and the store does not have, whatever their namespace was.
            namespace: Where the threads are.

        Raises:
            NotTrusted: There is no pin for this store here.
            UnknownThread: Neither the anchor nor the store knows a thread of that name.
            StorageUnavailable, AnchorUnavailable: Store or anchor cannot be read.
        """
        with self._location.open_core(namespace=namespace, read_only=True) as core:
            return _AnchorComparison(core).positions(threads)

    def adopt(
        self,
        *,
        reason: str,
        threads: Sequence[str] | None = None,
        dry_run: bool = False,
        identity: str = OPERATOR,
        namespace: str = "default",
    ) -> Adopted:
        """Take the store chain and threads into an anchor that does not know them, and record it.

        Whoever does this vouches that the store is the newest copy there is: an older one would be
        believed from now on. Everything is verified from its first entry before it is adopted.

        Args:
            reason: Why; it is recorded in every adopted chain.
            threads: Names; without them, all that the anchor does not know.
            dry_run: Only say what would be adopted.
            identity: An operator.
            namespace: Where the threads are.

        Raises:
            UnknownThread: There is no such thread that the anchor does not know.
            NotTrusted: The identity is no operator, or a chain is not signed as it must be.
            Tampered: A chain does not verify; it is not adopted.
        """
        signer = None if dry_run else self._location.signer(identity)
        with self._location.open_core(
            signer=signer, namespace=namespace, read_only=dry_run
        ) as core:
            new_store = not core.is_anchored()
            if not dry_run:
                adopt_store_chain(core, reason)
            found = _unanchored_by_name(core)
            names = tuple(found) if threads is None else tuple(threads)
            for name in names:
                if name not in found:
                    raise UnknownThread(
                        f"thread {name!r}: the anchor knows it already, so there is nothing to "
                        "adopt",
                        hint="Nothing has to be done for this thread: leave it out.",
                    )
            if not dry_run:
                for name in names:
                    verify_thread(core, found[name])
                    adopt_thread(core, name, found[name], reason)
            return Adopted(store_chain=new_store, threads=names)


def _unanchored_by_name(core: Core) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, thread in unanchored_threads(core):
        other = found.setdefault(name, thread)
        if other != thread:
            raise Forked(
                f"thread {name!r}: the store has two threads of that name, {other.hex()[:12]} "
                f"and {thread.hex()[:12]}"
            )
    return found


class _AnchorComparison:
    """The positions that the anchor holds beside those at which the store ends."""

    def __init__(self, core: Core) -> None:
        self._core = core
        with suppress(SealpointError):
            core.renewed_trust()  # for the restores; without it, positions are shown as they are
        self._slots: dict[bytes, Position] = {}

    def positions(self, names: Sequence[str] | None) -> list[AnchorPosition]:
        """Every chain, or those of some names: the store chain, by name, then without a name."""
        core, asked = self._core, {self._slot(name): name for name in names or ()}
        chain = self._compared(None, STORE_CHAIN, core.anchor.get(store_slot(core.parts.secret)))
        threads = core.each_thread()
        self._slots = {
            each.slot: core.restored_or_same(each.anchored)
            for each in threads
            if each.anchored is not None
        }
        found = (self._listed(each, asked.get(each.slot)) for each in threads)
        rows = [row for row in found if row is not None]
        rows.sort(key=lambda row: (row.name is None, row.name or ""))
        return [chain, *(rows if names is None else _of_names(rows, names))]

    def _listed(self, listed: ListedThread, asked: str | None) -> AnchorPosition | None:
        """A thread of the namespace, or one of which nobody can tell; None for another."""
        position = self._slots.get(listed.slot)
        if not listed.stored:
            return self._compared(asked, listed.thread, position)
        try:
            namespace, name = claimed_name(self._core, listed.thread)
        except SealpointError:
            return self._compared(None, listed.thread, position)
        if namespace != self._core.namespace:
            return None
        if name:
            return self._compared(name, listed.thread, self._slots.get(self._slot(name)))
        return self._compared(asked, listed.thread, position)

    def _slot(self, name: str) -> bytes:
        return Chain(self._core, name).slot

    def _compared(
        self, name: str | None, thread: bytes, position: Position | None
    ) -> AnchorPosition:
        head: int | None = None
        try:
            head = next(
                (seq for seq, _ in self._core.storage.scan(thread, 0, descending=True)), None
            )
            standing = self._standing(thread, position, head)
        except SealpointError:
            standing = AnchorStanding.UNREADABLE
        return AnchorPosition(
            name=name,
            thread=thread.hex(),
            is_store_chain=thread == STORE_CHAIN,
            anchored=None if position is None or position.reserved else position.seq,
            head=head,
            standing=standing,
        )

    def _standing(
        self, thread: bytes, position: Position | None, head: int | None
    ) -> AnchorStanding:
        if position is None:
            return AnchorStanding.UNANCHORED
        if position.thread != thread:
            return AnchorStanding.FORKED
        if head is None:
            return AnchorStanding.RESERVED if position.reserved else AnchorStanding.MISSING
        if position.reserved:
            return AnchorStanding.ANCHOR_BEHIND
        if head < position.seq:
            return AnchorStanding.STORE_BEHIND
        record = self._core.storage.read(thread, position.seq)
        if record is None or link_hash(record.header) != position.entry:
            return AnchorStanding.FORKED
        if head != position.seq:
            return AnchorStanding.ANCHOR_BEHIND
        return AnchorStanding.ERASED if position.erased else AnchorStanding.IN_STEP


def _of_names(rows: Sequence[AnchorPosition], names: Sequence[str]) -> list[AnchorPosition]:
    for name in names:
        if not any(row.name == name for row in rows):
            raise UnknownThread(
                f"thread {name!r}: neither the anchor nor the store knows a thread of this name"
            )
    return [row for row in rows if row.name in names]
