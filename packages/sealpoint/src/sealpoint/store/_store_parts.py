# SPDX-License-Identifier: Apache-2.0
"""The shared parts of an open store: backend, anchor, keys, and the store chain."""

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial

from sealpoint.anchor import RESERVED_SEQ, Anchor, Position
from sealpoint.anchor.paired import PairedAnchors
from sealpoint.codec import Registry
from sealpoint.errors import (
    AnchorUnavailable,
    Forked,
    Missing,
    ReadOnly,
    RolledBack,
    SealpointError,
    Unanchored,
)
from sealpoint.ids import KeyId, StoreId
from sealpoint.ledger import (
    STORE_CHAIN,
    Header,
    Kind,
    PositionLists,
    StoreChain,
)
from sealpoint.limits import POSITION_LIST_BYTES_MAX
from sealpoint.signing import Identity, PublicKey, SigningKey, TrustPin
from sealpoint.storage import Storage
from sealpoint.store._anchor_comparison import judge_slot
from sealpoint.store._anchor_positions import (
    raised_position,
    require_begun,
    require_settled,
    shown_position,
    store_chain_position,
)
from sealpoint.store._names import store_slot
from sealpoint.store._return_values import Event
from sealpoint.store._state_cache import StateMemory

_SALT_BYTES = 32
_LOGGER = logging.getLogger("sealpoint")
_LOGGER.addHandler(logging.NullHandler())  # a library prints nothing by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreParts:
    """The parts of an open store, and the only source of its time and randomness."""

    storage: Storage
    anchor: Anchor
    pin: TrustPin
    secret: bytes
    """The secret that keys the anchor's slots."""
    signer: SigningKey | None
    registry: Registry
    namespace: str
    read_only: bool
    now: Callable[[], datetime]
    """The clock, in UTC."""
    random_bytes: Callable[[int], bytes]
    on_event: Callable[[Event], object] | None
    on_roster: "Callable[[Core, StoreChain], object] | None" = None
    """Called with each store chain that was verified and is new to this process."""
    shared_anchor: Anchor | None = None
    """An anchor shared with other machines, required together with this machine's own."""

    def close(self) -> None:
        """Release storage and anchors, each even if another fails."""
        with ExitStack() as closing:
            if self.shared_anchor is not None:
                closing.callback(self.shared_anchor.close)
            closing.callback(self.anchor.close)
            self.storage.close()


class Core:
    """The parts of a store, and the verified store chain."""

    def __init__(self, parts: StoreParts) -> None:
        self.parts = parts
        self.storage = parts.storage
        self.together: PairedAnchors | None = None
        """Both anchors, if a shared one exists."""
        if parts.shared_anchor is not None:
            self.together = PairedAnchors(
                parts.shared_anchor,
                parts.anchor,
                judge=partial(judge_slot, self),
                read_only=parts.read_only,
                watched=store_slot(parts.secret),
            )
        self.anchor: Anchor = parts.anchor if self.together is None else self.together
        self.registry = parts.registry
        self.namespace = parts.namespace
        self.memory = StateMemory()
        self.secret = parts.secret
        self.store: StoreId = parts.pin.store
        self.store_hex = parts.pin.store.raw.hex()
        self._lock = threading.Lock()
        self._slot = store_slot(parts.secret)
        self._anchored: Position | None = None
        self._holder: tuple[StoreChain, tuple[Identity, PublicKey] | None] | None = None
        self._granted: tuple[StoreChain, dict[tuple[Kind, str | None], Identity]] | None = None
        self._writers: dict[tuple[int, str], str] = {}
        self._begun = StoreChain(
            parts.pin,
            lists=PositionLists(
                lambda name: parts.storage.blob(STORE_CHAIN, name, POSITION_LIST_BYTES_MAX)
            ),
        )
        self._chain = self._begun
        self.warned: tuple[int, date] | None = None
        """The roster and the day of the last warning that the key expires soon."""

    def signer(self) -> SigningKey:
        """Return the key that signs entries.

        Raises:
            ReadOnly: The store was opened without one.
        """
        if self.parts.read_only or self.parts.signer is None:
            raise ReadOnly("store: it is open for reading only")
        return self.parts.signer

    def holder(self, trust: StoreChain) -> tuple[Identity, PublicKey] | None:
        """Return the identity of this store's signer; looked up once for each roster."""
        known = self._holder  # read once: another OS thread may use another roster
        if known is None or known[0] is not trust:
            self._holder = known = (trust, trust.roster.holder(self.signer().public.id))
        return known[1]

    def granted(self, trust: StoreChain) -> dict[tuple[Kind, str | None], Identity]:
        """Return the cached rights of this store's signer, by kind of entry and owner of a thread.

        The callers fill the cache, and each roster has a new one.
        """
        known = self._granted  # read once: another OS thread may use another roster
        if known is None or known[0] is not trust:
            self._granted = known = (trust, {})
        return known[1]

    def salt(self) -> str:
        """Return the random salt for the body of an entry."""
        return self.parts.random_bytes(_SALT_BYTES).hex()

    def random_hex(self, size_bytes: int) -> str:
        """Return new random bytes, in hexadecimal."""
        return self.parts.random_bytes(size_bytes).hex()

    def now(self, newest: datetime | None = None) -> datetime:
        """Return the effective time: the clock, unless the thread is already later."""
        clock = self.parts.now()
        if clock.tzinfo is not UTC:
            # Readers accept an instant in one encoding only.
            clock = clock.astimezone(UTC)
        return clock if newest is None or clock > newest else newest

    def emit(self, code: str, thread: str, seq: int, entry: bytes, detail: str = "") -> None:
        """Log and send an event: codes and digests, and names in the application's code."""
        if _LOGGER.isEnabledFor(logging.DEBUG):
            _LOGGER.debug("%s thread=%s seq=%d entry=%s", code, thread, seq, entry.hex())
        if self.parts.on_event is not None:
            event = Event(code=code, thread=thread, seq=seq, entry=entry.hex(), detail=detail)
            self._tell(event)

    def emit_refused(self, error: SealpointError, thread: str) -> None:
        """Log and send the event that something was refused."""
        _LOGGER.warning("refused code=%s thread=%s", error.code, thread)
        if self.parts.on_event is not None:
            self._tell(Event(code=error.code, thread=thread, seq=-1, entry=""))

    def emit_lenient(self, policy: str) -> None:
        """Log and send the event that the policy in force requires nothing."""
        _LOGGER.warning(
            "policy %r is in force: everything but tampering passes, and is recorded", policy
        )
        if self.parts.on_event is not None:
            self._tell(Event(code="policy-asks-nothing", thread="", seq=-1, entry=""))

    def _tell(self, event: Event) -> None:
        """Call the listener; its failure must not make a successful save look like a failed one."""
        if self.parts.on_event is None:
            return
        try:
            self.parts.on_event(event)
        except Exception as exc:  # noqa: BLE001 (any error here is the listener's)
            _LOGGER.warning("listener failed event=%s with=%s", event.code, type(exc).__name__)

    def writer(self, header: Header) -> str:
        """Return the name of the identity whose key a verified header names."""
        found = self._writers.get((header.roster, header.by))
        if found is None:
            roster = self._chain.roster_at(header.roster)
            holder = None if roster is None else roster.holder(KeyId(bytes.fromhex(header.by)))
            found = header.by if holder is None else holder[0].name
            if holder is not None:
                self._writers[header.roster, header.by] = found
        return found

    # ------------------------------------------------------------------ (0) pin and store chain

    def trust(self, told: Position | None = None) -> StoreChain:
        """Return the store chain, verified as far as the anchor has seen it.

        Every read and every write begins here. While the anchor's slot is unchanged, there is no
        newer roster to read.

        Args:
            told: The anchored position of the store chain, if it was just read along with another
                one.

        Raises:
            Unanchored: The anchor does not know this store.
            RolledBack: The store lacks a roster that the anchor has seen.
        """
        if told is not None and told == self._anchored:
            return self._chain
        anchored = self.anchor.get(self._slot)
        if anchored is not None and anchored == self._anchored:
            return self._chain
        if anchored is None:
            raise Unanchored(
                f"store {self.store_hex[:12]}: this machine's anchor has no record of this store"
            )
        with self._lock:
            return self._follow(anchored)

    def renewed_trust(self) -> StoreChain:
        """Return the store chain with every roster added since, even if it is not anchored yet."""
        anchored = self.anchor.get(self._slot)
        if anchored is None:
            raise Unanchored(
                f"store {self.store_hex[:12]}: this machine's anchor has no record of this store"
            )
        with self._lock:
            return self._follow(anchored)

    def _follow(self, anchored: Position) -> StoreChain:
        while True:
            chain = self.read_store_chain(self._chain, anchored)
            chain.require_minimum("store chain")
            position = raised_position(store_chain_position(chain), anchored)
            if anchored == position or self.parts.read_only:
                break
            # Another process may have moved it: its new position is compared like any other.
            anchored = self.anchor.advance(self._slot, anchored, position)
        if self.together is not None:
            self.together.confirm(self._slot, anchored)
        return self._learn(chain, anchored)

    def _learn(self, chain: StoreChain, anchored: Position) -> StoreChain:
        known = self._chain
        self._chain, self._anchored = chain, anchored
        if self.parts.on_roster is not None and chain.seq > known.seq:
            self.parts.on_roster(self, chain)
        return chain

    def read_store_chain(self, chain: StoreChain, anchored: Position | None) -> StoreChain:
        """Verify the entries after `chain`, and that it passes through the anchored entry."""
        for seq, record in self.storage.scan(STORE_CHAIN, chain.seq + 1):
            if seq != chain.seq + 1:
                raise Missing(f"store chain: expected entry {chain.seq + 1}, found entry {seq}")
            chain = chain.extended(record.header, record.seals, record.body)
        if anchored is not None and anchored.seq > chain.seq:
            raise RolledBack(
                f"store chain: expected {anchored.seq + 1} entries or more, as many as the anchor "
                f"has seen, found {chain.seq + 1}"
            )
        if anchored is not None and anchored.entry != chain.hashes[anchored.seq]:
            raise Forked(
                f"store chain entry {anchored.seq}: expected {anchored.entry.hex()[:12]}, which "
                f"the anchor has seen, found {chain.hashes[anchored.seq].hex()[:12]}"
            )
        if anchored is not None:
            require_begun(anchored, chain.epoch)
            require_settled(chain, anchored)
        return chain

    def restored(self, anchored: Position) -> Position:
        """Return an anchored position of a thread, updated for the restores accepted since.

        Raises:
            RolledBack: The store does not have the entry that the newest restore kept.
        """
        chain = self._chain
        if anchored.epoch >= chain.epoch or anchored.thread == STORE_CHAIN:
            return anchored
        kept = chain.kept(anchored.thread)
        if kept is None:
            return Position(anchored.thread, chain.epoch, 0, RESERVED_SEQ, bytes(32))
        seq, entry = kept
        found = shown_position(self.storage, anchored.thread, seq, entry, epoch=chain.epoch)
        if found is None:
            raise RolledBack(
                f"thread {anchored.thread.hex()[:12]}: entry {seq}, which the newest restore "
                "kept, is missing or is not the one that was kept"
            )
        return found

    def restored_or_same(self, anchored: Position) -> Position:
        """Return the updated position, or the same on error, which a read of the thread raises."""
        try:
            return self.restored(anchored)
        except SealpointError:
            return anchored

    def follow_restore(self, slot: bytes, anchored: Position) -> Position:
        """Return the anchored position after the restores accepted since, and anchor it.

        Raises:
            RolledBack: The store does not have the entry that the newest restore kept.
        """
        while True:
            position = self.restored(anchored)
            if position == anchored or self.parts.read_only:
                return position
            found = self.anchor.advance(slot, anchored, position)
            if found == position:
                return position
            anchored = found

    def is_anchored(self) -> bool:
        """Whether the anchor knows this store at all."""
        return self.anchor.get(self._slot) is not None

    def verified_store_chain(self) -> StoreChain:
        """Return the store chain by the pin alone, without the anchor: for `init` and adoption."""
        chain = self.read_store_chain(self._begun, None)
        chain.require_minimum("store chain")
        return chain

    def written(self, chain: StoreChain) -> StoreChain:
        """Return the store chain, which must contain the entry that was just appended.

        Raises:
            RolledBack: The appended entry is missing again.
        """
        found = self.renewed_trust()
        _require_shown(found, chain)
        return found

    def anchor_store_chain(self, written: StoreChain | None = None) -> StoreChain:
        """Anchor a store chain that the anchor does not know: only at `init` and for adoption.

        Args:
            written: The chain as it was just written, which the store must show.

        Raises:
            RolledBack: The written entry is missing again.
            AnchorUnavailable: Another process anchored another store chain in between.
        """
        chain = self.verified_store_chain()
        if written is not None:
            _require_shown(chain, written)
        position = store_chain_position(chain)
        if self.anchor.create(self._slot, position) != position:
            raise AnchorUnavailable("store chain: the anchor has a position for it already")
        return self._learn(chain, position)


def _require_shown(found: StoreChain, written: StoreChain) -> None:
    if found.hashes[: len(written.hashes)] != written.hashes:
        raise RolledBack(
            f"store chain: expected entry {written.seq}, which was just written, found it gone"
        )
