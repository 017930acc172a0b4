# SPDX-License-Identifier: Apache-2.0
"""Where the anchor stands against the store: position by position, for people who look.

Positions and hashes are compared and nothing else: no signature is verified, no name is proven
beyond the anchor's slot for it, and nothing is written. So it answers also for a store that every
read refuses. Reading and `verify` decide what is to be believed.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from sealpoint.anchor import Position
from sealpoint.api._init import OPERATOR
from sealpoint.api._location import StorePlace
from sealpoint.audit import verify_thread
from sealpoint.config import PassphraseSource
from sealpoint.errors import Forked, SealpointError, UnknownThread
from sealpoint.ledger import STORE_CHAIN, link_hash
from sealpoint.store import (
    Chain,
    Core,
    adopt_store_chain,
    adopt_thread,
    claimed_name,
    unanchored_threads,
)


class Standing(StrEnum):
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
    standing: Standing


def anchor_positions(
    url: str,
    *,
    threads: Sequence[str] | None = None,
    namespace: str = "default",
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
) -> list[AnchorPosition]:
    """Compare the anchor with the store: the store chain first, then threads by name.

    Args:
        url: The store.
        threads: Names; without them, all threads of the namespace, and all that the anchor knows
            and the store does not have, whatever their namespace was.
        namespace: Where the threads are.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.

    Raises:
        NotTrusted: There is no pin for this store here.
        UnknownThread: Neither the anchor nor the store knows a thread of that name.
        StorageUnavailable, AnchorUnavailable: Store or anchor cannot be read.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    parts = place.parts(pin=place.files.pin(), signer=None, namespace=namespace, read_only=True)
    try:
        return _Look(Core(parts)).positions(threads)
    finally:
        parts.close()


class _Look:
    def __init__(self, core: Core) -> None:
        self._core = core
        with suppress(SealpointError):
            core.renewed_trust()  # for the restores; without it, positions are shown as they are
        self._slots = {slot: self._restored(position) for slot, position in core.anchor.slots()}

    def _restored(self, position: Position) -> Position:
        try:
            return self._core.restored(position)
        except SealpointError:
            return position

    def positions(self, names: Sequence[str] | None) -> list[AnchorPosition]:
        anchored = {position.thread: position for position in self._slots.values()}
        found = [self._compared(None, STORE_CHAIN, anchored.pop(STORE_CHAIN, None))]
        named: list[AnchorPosition] = []
        unnamed: list[AnchorPosition] = []
        nameless: set[bytes] = set()
        for thread in self._core.storage.threads():
            if thread == STORE_CHAIN:
                continue
            position = anchored.pop(thread, None)
            try:
                namespace, name = claimed_name(self._core, thread)
            except SealpointError:
                unnamed.append(self._compared(None, thread, position))
                continue
            if namespace == self._core.namespace:
                if name:
                    named.append(self._compared(name, thread, self._slots.get(self._slot(name))))
                else:
                    nameless.add(thread)
        known = {self._slot(name): name for name in names or ()}
        for slot, position in self._slots.items():
            if position.thread in anchored or position.thread in nameless:
                gone = self._compared(known.get(slot), position.thread, position)
                (unnamed if gone.name is None else named).append(gone)
                nameless.discard(position.thread)
        unnamed.extend(self._compared(None, thread, None) for thread in sorted(nameless))
        named.sort(key=lambda each: each.name or "")
        if names is None:
            return [*found, *named, *unnamed]
        for name in names:
            if not any(each.name == name for each in named):
                raise UnknownThread(f"thread {name!r}: expected the anchor or the store to know it")
        return [*found, *(each for each in named if each.name in names)]

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
            standing = Standing.UNREADABLE
        return AnchorPosition(
            name=name,
            thread=thread.hex(),
            is_store_chain=thread == STORE_CHAIN,
            anchored=None if position is None or position.reserved else position.seq,
            head=head,
            standing=standing,
        )

    def _standing(self, thread: bytes, position: Position | None, head: int | None) -> Standing:
        if position is None:
            return Standing.UNANCHORED
        if position.thread != thread:
            return Standing.FORKED
        if head is None:
            return Standing.RESERVED if position.reserved else Standing.MISSING
        if position.reserved:
            return Standing.ANCHOR_BEHIND
        if head < position.seq:
            return Standing.STORE_BEHIND
        record = self._core.storage.read(thread, position.seq)
        if record is None or link_hash(record.header) != position.entry:
            return Standing.FORKED
        if head != position.seq:
            return Standing.ANCHOR_BEHIND
        return Standing.ERASED if position.erased else Standing.IN_STEP


# ---------------------------------------------------------------------- adopt
# Adoption from outside: what the store holds and the anchor of this machine does not know.


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What was taken into the anchor, or would be."""

    store_chain: bool
    threads: tuple[str, ...]


def adopt(
    url: str,
    *,
    reason: str,
    threads: Sequence[str] | None = None,
    dry_run: bool = False,
    identity: str = OPERATOR,
    namespace: str = "default",
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    passphrase: PassphraseSource | None = None,
) -> Adopted:
    """Take the store chain and threads into an anchor that does not know them, and record it.

    Whoever does this vouches that the store is the newest copy there is: an older one would be
    believed from now on. Everything is verified from its first entry before it is adopted.

    Args:
        url: The store.
        reason: Why; it is recorded in every adopted chain.
        threads: Names; without them, all that the anchor does not know.
        dry_run: Only say what would be adopted.
        identity: An operator.
        namespace: Where the threads are.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: What opens the operator's key if it is encrypted, as for `open_store`.

    Raises:
        UnknownThread: There is no such thread that the anchor does not know.
        NotTrusted: The identity is no operator, or a chain is not signed as it must be.
        Tampered: A chain does not verify; it is not adopted.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    parts = place.parts(
        pin=place.files.pin(),
        signer=None if dry_run else place.signer(identity),
        namespace=namespace,
        read_only=dry_run,
    )
    try:
        core = Core(parts)
        new_store = not core.is_anchored()
        if not dry_run:
            adopt_store_chain(core, reason)
        listed = unanchored_threads(core)
        found = dict(listed)
        for name, thread in listed:
            if found[name] != thread:
                raise Forked(
                    f"thread {name!r}: expected one thread of that name, found "
                    f"{thread.hex()[:12]} and {found[name].hex()[:12]}"
                )
        for name in threads or ():
            if name not in found:
                raise UnknownThread(f"thread {name!r}: expected one that the anchor does not know")
        names = tuple(found) if threads is None else tuple(threads)
        if not dry_run:
            for name in names:
                verify_thread(core, found[name])
                adopt_thread(core, name, found[name], reason)
        return Adopted(store_chain=new_store, threads=names)
    finally:
        parts.close()
