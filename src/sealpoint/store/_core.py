# SPDX-License-Identifier: Apache-2.0
"""What all threads of an open store share: the backend, the anchor, the keys, the store chain."""

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from time import monotonic
from typing import NamedTuple, Protocol

import msgspec

from sealpoint.anchor import RESERVED_SEQ, Anchor, Position, is_behind
from sealpoint.anchor.together import FORKED_HINT, AnchorsTogether, newer_position
from sealpoint.codec import Registry
from sealpoint.errors import (
    AnchorUnavailable,
    Forked,
    KeyNotInForce,
    Misplaced,
    Missing,
    NotTrusted,
    ReadOnly,
    RolledBack,
    SealpointError,
    Tampered,
    Unanchored,
)
from sealpoint.ids import KeyId, StoreId
from sealpoint.ledger import (
    KINDS,
    STORE_CHAIN,
    Entry,
    GenesisBody,
    HandoffBody,
    Header,
    Kind,
    Place,
    PositionLists,
    StoreChain,
    Tip,
    counted_attestations,
    link_hash,
    link_to,
    next_link,
    parse_body,
    parse_header,
    verify_entry,
)
from sealpoint.limits import POSITION_LIST_BYTES_MAX, STATE_MEMORY_BYTES_MAX
from sealpoint.signing import STOPPED, Check, Identity, PublicKey, SigningKey, TrustPin, count
from sealpoint.storage import Record, Storage
from sealpoint.store._names import store_slot, thread_slot
from sealpoint.store._refs import Event

EXPIRY_WARNING = timedelta(days=30)
"""For so long before a key expires, whoever looks is told."""

_SOON = "key-expires-soon"
_SALT_BYTES = 32
_JUST_NOW_SECONDS = 0.05
_LOGGER = logging.getLogger("sealpoint")
_LOGGER.addHandler(logging.NullHandler())  # a library prints nothing by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreParts:
    """What an open store is made of. Time and randomness come in here and nowhere else."""

    storage: Storage
    anchor: Anchor
    pin: TrustPin
    secret: bytes
    """Under which the anchor's slots are keyed."""
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
    """An anchor that others ask too, required together with this machine's own."""

    def close(self) -> None:
        """Release storage and anchors, each even if another fails."""
        with ExitStack() as closing:
            if self.shared_anchor is not None:
                closing.callback(self.shared_anchor.close)
            closing.callback(self.anchor.close)
            self.storage.close()


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


class StateCache(Protocol):
    """What is remembered of one state."""

    @property
    def size_bytes(self) -> int:
        """What it takes in memory."""
        ...

    def let_go(self) -> None:
        """Forget it. MAY be called while another OS thread uses it."""
        ...


class StateMemory:
    """What one open store remembers of states, over all its threads: those that were used last.

    All of it was proven or made by this process, and nothing of it says what is newest. It may be
    used by any number of OS threads.
    """

    def __init__(self, bytes_max: int = STATE_MEMORY_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        # Weak, so that a handle that nobody holds is let go of; it counts until it is the oldest.
        self._sizes: dict[weakref.ref[StateCache], int] = {}
        self._total_bytes = 0

    def hold(self, cache: StateCache) -> None:
        """A cache was used: it is the youngest, and the oldest go until all fit."""
        size_bytes, mine = cache.size_bytes, weakref.ref(cache)
        with self._lock:
            self._total_bytes += size_bytes - self._sizes.pop(mine, 0)
            self._sizes[mine] = size_bytes
            while self._total_bytes > self._bytes_max and self._sizes:
                oldest = next(iter(self._sizes))
                self._total_bytes -= self._sizes.pop(oldest)
                if (found := oldest()) is not None:
                    found.let_go()


class EntryReader(Protocol):
    """Where entries of threads are read: the part of a storage that needs no more."""

    def read(self, thread: bytes, seq: int) -> Record | None:
        """The record at a position; None if there is none."""
        ...

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """The headers at some of the positions."""
        ...

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """The records from `first` up to and with `last`, in order of position."""
        ...


class NearEntries:
    """The newest entries of a thread, read at once in place of one look for each.

    Nothing is believed for it: whoever reads here verifies as elsewhere. It is a picture of one
    moment, so what it lacks may have been written since.

    Args:
        storage: Where the rest is read, and every other thread.
        thread: The thread.
        newest: Its entries from some position to the end, rising.
    """

    def __init__(
        self, storage: EntryReader, thread: bytes, newest: Sequence[tuple[int, Record]]
    ) -> None:
        self._storage = storage
        self._thread = thread
        self._first = newest[0][0]
        self._records = dict(newest)

    def read(self, thread: bytes, seq: int) -> Record | None:
        """The record at a position."""
        if thread != self._thread or seq < self._first:
            return self._storage.read(thread, seq)
        return self._records.get(seq)

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """The headers at those of the positions that are not near: those are at hand."""
        return self._storage.headers(thread, [seq for seq in seqs if seq < self._first])

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """The records of some positions, in their order."""
        if thread != self._thread or (first < self._first and not descending):
            yield from self._storage.scan(thread, first, last, descending=descending)
            return
        near = self._records.items()
        for seq, record in reversed(near) if descending else near:
            if first <= seq and (last is None or seq <= last):
                yield seq, record
        if first < self._first:
            end = self._first - 1 if last is None else min(last, self._first - 1)
            yield from self._storage.scan(thread, first, end, descending=True)


class Core:
    """The parts, and the verified store chain."""

    def __init__(self, parts: StoreParts) -> None:
        self.parts = parts
        self.storage = parts.storage
        self.together: AnchorsTogether | None = None
        """Both anchors, where one is shared besides."""
        if parts.shared_anchor is not None:
            self.together = AnchorsTogether(
                parts.shared_anchor,
                parts.anchor,
                judge=partial(_judge_slot, self),
                read_only=parts.read_only,
                watched=store_slot(parts.secret),
            )
        self.anchor: Anchor = parts.anchor if self.together is None else self.together
        self.registry = parts.registry
        self.namespace = parts.namespace
        self.memory = StateMemory()
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
        """For which roster, and on which day, it was last said that the key expires soon."""

    def signer(self) -> SigningKey:
        """The key that writes.

        Raises:
            ReadOnly: The store was opened without one.
        """
        if self.parts.read_only or self.parts.signer is None:
            raise ReadOnly("store: it is open for reading only")
        return self.parts.signer

    def holder(self, trust: StoreChain) -> tuple[Identity, PublicKey] | None:
        """Who the roster says this store's signer is; looked up once for each roster."""
        known = self._holder  # read once: another OS thread may be at another roster
        if known is None or known[0] is not trust:
            self._holder = known = (trust, trust.roster.holder(self.signer().public.id))
        return known[1]

    def granted(self, trust: StoreChain) -> dict[tuple[Kind, str | None], Identity]:
        """Of which kinds the roster lets this store's signer write entries, by owner of a thread.

        It is filled by those who find out, and begins anew with each roster.
        """
        known = self._granted  # read once: another OS thread may be at another roster
        if known is None or known[0] is not trust:
            self._granted = known = (trust, {})
        return known[1]

    def salt(self) -> str:
        """The random bytes that a body of its own begins with."""
        return self.parts.random_bytes(_SALT_BYTES).hex()

    def random_hex(self, size_bytes: int) -> str:
        """Fresh random bytes, as digits."""
        return self.parts.random_bytes(size_bytes).hex()

    def now(self, newest: datetime | None = None) -> datetime:
        """The effective time: the clock, unless the thread is already later."""
        clock = self.parts.now()
        if clock.tzinfo is not UTC:
            # No reader takes another spelling of an instant.
            clock = clock.astimezone(UTC)
        return clock if newest is None or clock > newest else newest

    def emit(self, code: str, thread: str, seq: int, entry: bytes, detail: str = "") -> None:
        """Tell whoever listens. Codes and digests, and names in the application's code."""
        if _LOGGER.isEnabledFor(logging.DEBUG):
            _LOGGER.debug("%s thread=%s seq=%d entry=%s", code, thread, seq, entry.hex())
        if self.parts.on_event is not None:
            event = Event(code=code, thread=thread, seq=seq, entry=entry.hex(), detail=detail)
            self._tell(event)

    def emit_refused(self, error: SealpointError, thread: str) -> None:
        """Tell whoever listens that something was refused."""
        _LOGGER.warning("refused code=%s thread=%s", error.code, thread)
        if self.parts.on_event is not None:
            self._tell(Event(code=error.code, thread=thread, seq=-1, entry=""))

    def emit_lenient(self, policy: str) -> None:
        """Tell whoever listens that the policy in force asks for nothing."""
        _LOGGER.warning(
            "policy %r is in force: everything but tampering passes, and is recorded", policy
        )
        if self.parts.on_event is not None:
            self._tell(Event(code="policy-asks-nothing", thread="", seq=-1, entry=""))

    def _tell(self, event: Event) -> None:
        """A listener that fails must not make a save that stands look as if it did not."""
        if self.parts.on_event is None:
            return
        try:
            self.parts.on_event(event)
        except Exception as exc:  # noqa: BLE001 (whatever it is, it is the listener's)
            _LOGGER.warning("listener failed event=%s with=%s", event.code, type(exc).__name__)

    def writer(self, header: Header) -> str:
        """The name of the identity whose key a verified header names."""
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
        """The store chain, verified as far as the anchor has seen it.

        Every read and every write begins here. While the anchor's slot stands still there is no
        newer roster to look for.

        Args:
            told: What the anchor holds of it, where that was just found out with something else.

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
        """The store chain with whatever roster was added since, seen by the anchor or not."""
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
            position = _raised(_position(chain), anchored)
            if anchored == position or self.parts.read_only:
                break
            # Somebody else may have moved it: what it holds then is compared like any other.
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
        """Verify what lies beyond `chain`, and that it passes through the anchored entry."""
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
            _require_settled(chain, anchored)
        return chain

    def restored(self, anchored: Position) -> Position:
        """What an anchored position of a thread has become by the restores accepted since.

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
        found = shown_position(self, anchored.thread, seq, entry, epoch=chain.epoch)
        if found is None:
            raise RolledBack(
                f"thread {anchored.thread.hex()[:12]}: entry {seq}, which the newest restore "
                "kept, is missing or is not the one that was kept"
            )
        return found

    def restored_or_same(self, anchored: Position) -> Position:
        """The same, for a look at all threads: what the store lacks, reading it will tell."""
        try:
            return self.restored(anchored)
        except SealpointError:
            return anchored

    def follow_restore(self, slot: bytes, anchored: Position) -> Position:
        """The anchored position after the restores accepted since, entered into the anchor.

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

    def each_thread(self) -> list[ListedThread]:
        """Every thread that the store has or the anchor knows, by id; not the store chain.

        Nothing is left out and nothing is read. Threads come before slots: a name is reserved
        before it has an entry, so a thread that comes into being meanwhile has its slot. Whoever
        reads entries does so after this: the store then has what the anchor has seen. A slot
        without a stored thread may be a reserved name, a thread begun since, or one that the store
        has lost; a thread without a slot is another anchor's, or planted.
        """
        heads = dict(self.storage.heads())
        found = match_heads(self, heads, self.anchor.slots())
        return sorted(found, key=lambda each: (each.thread, each.slot))

    def is_anchored(self) -> bool:
        """Whether the anchor knows this store at all."""
        return self.anchor.get(self._slot) is not None

    def verified_store_chain(self) -> StoreChain:
        """The store chain by the pin alone, without the anchor: for `init` and adoption."""
        chain = self.read_store_chain(self._begun, None)
        chain.require_minimum("store chain")
        return chain

    def written(self, chain: StoreChain) -> StoreChain:
        """The store chain, which must show what was just appended to it.

        Raises:
            RolledBack: It does not: what was written is gone again.
        """
        found = self.renewed_trust()
        _require_shown(found, chain)
        return found

    def anchor_store_chain(self, written: StoreChain | None = None) -> StoreChain:
        """Enter a store chain that the anchor does not know: at `init` and by adoption alone.

        Args:
            written: The chain as it was just written, which the store must show.

        Raises:
            RolledBack: What was written is gone again.
            AnchorUnavailable: Somebody else entered another one meanwhile.
        """
        chain = self.verified_store_chain()
        if written is not None:
            _require_shown(chain, written)
        position = _position(chain)
        if self.anchor.create(self._slot, position) != position:
            raise AnchorUnavailable("store chain: the anchor has a position for it already")
        return self._learn(chain, position)


def match_heads(
    core: Core, heads: Mapping[bytes, int], slots: Iterable[tuple[bytes, Position]]
) -> list[ListedThread]:
    """As `Core.each_thread` in no order, for who has listed threads and then slots.

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


def trust_and_position(core: Core, slot: bytes) -> tuple[StoreChain, Position | None]:
    """The store chain as `Core.trust` gives it, and what the anchor holds of a thread.

    From a shared anchor both come in one round trip.
    """
    if core.together is None:
        return core.trust(), core.anchor.get(slot)
    watched, position = core.together.get_with_watched(slot)
    return core.trust(watched), position


class CallTrust:
    """The store chain for the length of one call on a thread.

    An anchor of this machine is asked each time. One that is shared is asked when a call begins,
    and again if that was not just now: whatever ended since is met after a write.
    """

    __slots__ = ("_asked", "_core")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._asked: tuple[StoreChain, float] | None = None

    def note(self, trust: StoreChain) -> None:
        """A call has begun, and asked."""
        if self._core.together is not None:
            self._asked = trust, monotonic()

    def get(self) -> StoreChain:
        """The store chain, as this call has found it."""
        asked = self._asked
        if asked is not None and monotonic() - asked[1] < _JUST_NOW_SECONDS:
            return asked[0]
        return self._core.trust()


def trust_after_advance(core: Core) -> StoreChain:
    """The store chain as `Core.trust` gives it, right after the anchor was advanced.

    From a shared anchor its position came along, read after the advance.
    """
    watched = None if core.together is None else core.together.take_watched()
    return core.trust(watched)


def _require_shown(found: StoreChain, written: StoreChain) -> None:
    if found.hashes[: len(written.hashes)] != written.hashes:
        raise RolledBack(
            f"store chain: expected entry {written.seq}, which was just written, found it gone"
        )


def shown_position(
    core: Core, thread: bytes, seq: int, entry: bytes, *, epoch: int
) -> Position | None:
    """What an anchor keeps of a thread at an entry that is known to count.

    Returns:
        None if the store lacks the entry, or one that it names.
    """
    record = core.storage.read(thread, seq)
    if record is None or link_hash(record.header) != entry:
        return None
    header = parse_header(record.header)
    owner = _ancestor(core, thread, seq, entry, header.owner)
    settled = core.storage.read(thread, header.pause)
    if owner is None or settled is None:
        return None
    paused = parse_header(settled.header).kind is Kind.PAUSE
    return msgspec.structs.replace(position_of(header, entry, owner, paused=paused), epoch=epoch)


def tip_position(tip: Tip) -> Position:
    """What an anchor keeps of a thread that was verified up to a tip."""
    head = tip.entry
    return position_of(head.header, head.hash, tip.owner.hash, paused=tip.paused is not None)


def position_of(header: Header, entry: bytes, owner: bytes, *, paused: bool) -> Position:
    """What an anchor keeps of a thread whose head is judged.

    Args:
        header: The header of the head.
        entry: Its hash.
        owner: The hash of the entry that says whose the thread is.
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


def _position(chain: StoreChain) -> Position:
    """What an anchor keeps of the store chain: what the root signed last is its owner's entry.

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


def _raised(position: Position, anchored: Position) -> Position:
    """The same with marks that somebody has raised in the anchor, where they never go down.

    They mean nothing for the store chain, and must not keep it from following.
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


def _require_settled(chain: StoreChain, anchored: Position) -> None:
    """Refuse a store chain without the newest roster or root that the anchor has seen.

    Raises:
        Forked: Another entry has its place.
    """
    if anchored.owner >= 0 and anchored.owner_entry != chain.hashes[anchored.owner]:
        raise Forked(
            f"store chain entry {anchored.owner}: expected {anchored.owner_entry.hex()[:12]}, "
            "which the root signed and the anchor has seen, found another entry"
        )


# Two anchors of one store, of which one may have seen more: the store has to show that what the one
# holds descends from what the other held. By links alone: who goes on from there verifies the rest.


def _judge_slot(
    core: Core, slot: bytes, local: Position, shared: Position
) -> tuple[Position, bool]:
    """As `judge_positions`, once the thread that the shared anchor names is the slot's.

    What this machine has seen names the thread itself. Where it has seen nothing yet, whoever
    writes the shared anchor could put a genuine thread under the name of another.

    Raises:
        NotTrusted: It is another's.
        AnchorUnavailable: The same for the slot of the store chain.
    """
    is_chain = slot == store_slot(core.parts.secret)
    named = is_chain == (shared.thread == STORE_CHAIN)
    if named and not is_chain and local.reserved and not shared.reserved:
        with suppress(SealpointError):  # whoever reads the thread says what is wrong with it
            namespace, name = claimed_name(core, shared.thread)
            named = not name or thread_slot(core.parts.secret, namespace, name) == slot
    if not named:
        # Without the store chain nobody can look; a thread keeps nobody from the others.
        error = AnchorUnavailable if is_chain else NotTrusted
        raise error(
            f"shared anchor: it has thread {shared.thread.hex()[:12]} in slot {slot.hex()[:12]}, "
            "which is that of another name",
            hint="Somebody wrote its tables by other means: find out who may, and bring the "
            "database back from before.",
        )
    return judge_positions(core, local, shared)


def judge_positions(core: Core, local: Position, shared: Position) -> tuple[Position, bool]:
    """The newer of two positions of a slot, and whether the store shows it as a descendant.

    Positions of different epochs are compared after the restores accepted since, so that no claim
    of a restore goes beyond what the store chain has.

    Raises:
        Forked: They belong to different histories.
        NotTrusted: One names a restore that nobody accepted.
        RolledBack: The store does not have the entry that the newest restore kept.
    """
    if local.thread != shared.thread:
        newer = newer_position(local, shared)  # of the other, a name was reserved and no more
        return newer, _descends(core, local if newer is shared else shared, newer)
    one, other = local, shared
    if local.thread != STORE_CHAIN:
        epoch = core.trust().epoch
        for position in (local, shared):
            require_begun(position, epoch)
        one, other = core.restored(local), core.restored(shared)
    if one.seq == other.seq:
        newer_position(one, other)  # refuses another entry at the same place
        return (shared if is_behind(local, shared) else local), True
    if one.seq < other.seq:
        return shared, _descends(core, one, other)
    return local, _descends(core, other, one)


def require_begun(position: Position, epoch: int) -> None:
    """Refuse an anchored position of an epoch that no accepted restore has begun.

    Its marks would count for nothing: a restore is the only reason for which marks go down.

    Raises:
        NotTrusted: It is of such an epoch.
    """
    if position.epoch > epoch:
        raise NotTrusted(
            f"anchors of thread {position.thread.hex()[:12]}: expected at most {epoch} accepted "
            f"restores, as the store chain has, found {position.epoch}",
            hint="Somebody wrote an anchor by other means: find out who may write it.",
        )


def _descends(core: Core, older: Position, newer: Position) -> bool:
    """Whether the store has the newer entry, and the older one below it.

    Raises:
        Forked: It has the newer one, and another below it than the older one.
    """
    if newer.reserved:
        return True
    target = newer.seq if older.reserved else older.seq
    found = _ancestor(core, newer.thread, newer.seq, newer.entry, target)
    if found is None:
        return False  # reading the thread says what is wrong with it
    if not older.reserved and found != older.entry:
        raise Forked(
            f"thread {newer.thread.hex()[:12]}: expected entry {target} to be "
            f"{older.entry.hex()[:12]}, which one anchor has seen, found that the entry "
            f"{newer.seq} that the other has seen follows {found.hex()[:12]}",
            hint=FORKED_HINT,
        )
    return True


def _ancestor(core: Core, thread: bytes, seq: int, entry: bytes, target: int) -> bytes | None:
    """The hash of the entry at `target`, by links from another; None if the store lacks the way."""
    while True:
        record = core.storage.read(thread, seq)
        if record is None or link_hash(record.header) != entry:
            return None
        if seq == target:
            return entry
        header = parse_header(record.header)
        seq = next_link(seq, target)
        entry = bytes.fromhex(link_to(header, seq) or "")
        if seq == target:
            return entry


# The genesis of a thread, as the store shows it: where its name is said.
#
# Nothing here is verified. A name is no more than a claim until the anchor's slot of that name
# turns out to be this thread's, or somebody has verified the entry.


def claimed_name(core: Core, thread: bytes, entries: EntryReader | None = None) -> tuple[str, str]:
    """The namespace and name that a thread claims; the name is empty if it was erased.

    Raises:
        Missing: The thread has no first entry.
        Edited: Its genesis cannot be read.
    """
    entries = core.storage if entries is None else entries
    first = entries.read(thread, 0)
    if first is None:
        raise Missing(f"thread {thread.hex()[:12]}: its genesis is missing")
    header = parse_header(first.header)
    record, digest = first, header.body
    if first.body is None:
        found = newest_genesis(core, thread, entries)
        if found is None:
            return header.ns, ""
        record = found[1]
        digest = parse_header(record.header).body
    body: GenesisBody = parse_body(Kind.GENESIS, digest, record.body or b"")
    return header.ns, body.name


def named_slot(core: Core, thread: bytes) -> bytes | None:
    """The slot of the name that a thread has, by a genesis that is genuine on its own.

    None if its name was erased, or is not shown.
    """
    with suppress(Tampered, NotTrusted, RolledBack, Forked, Unanchored):
        found = newest_genesis(core, thread)
        if found is not None:
            seq, record = found
            header = parse_header(record.header)
            place = Place(core.store_hex, header.ns, thread.hex())
            verify_renewed(core, record, place=place, seq=seq, chain=core.trust())
            body: GenesisBody = parse_body(Kind.GENESIS, header.body, record.body or b"")
            return thread_slot(core.parts.secret, header.ns, body.name)
    return None


def newest_genesis(
    core: Core, thread: bytes, entries: EntryReader | None = None
) -> tuple[int, Record] | None:
    """The genesis that still has its body, with its position: the first one or a later one."""
    entries = core.storage if entries is None else entries
    first = entries.read(thread, 0)
    if first is not None and first.body is not None:
        return 0, first
    for seq, record in entries.scan(thread, 0, descending=True):
        kind = parse_header(record.header).kind
        if kind is Kind.ERASE:
            return None
        if kind is Kind.GENESIS and record.body is not None:
            return seq, record
    return None


# An expired key writes nothing, and proves nothing that is new. The newest roster says when. An
# entry has a time, but whoever holds the key chooses it: so what the anchor has not seen yet is
# refused once the key has expired, whatever time it claims, and so are the attestations that a
# handoff carries. Now is the later of the clock and the newest verified time on the thread.


def verify_renewed(
    core: Core,
    record: Record,
    *,
    place: Place,
    seq: int,
    chain: StoreChain,
    check: Check | None = PublicKey.verify,
) -> tuple[Entry, StoreChain]:
    """Verify one entry on its own, under a newer roster if it was written under one.

    Returns:
        The entry, and the store chain that it was judged by.
    """
    header, seals = record.header, record.seals
    try:
        return verify_entry(header, seals, place=place, seq=seq, chain=chain, check=check), chain
    except (NotTrusted, Misplaced):
        renewed = core.renewed_trust()
        if renewed.seq == chain.seq:
            raise
    return verify_entry(header, seals, place=place, seq=seq, chain=renewed, check=check), renewed


def require_unexpired(
    core: Core, trust: StoreChain, key: str, newest: datetime | None, where: str
) -> None:
    """Refuse to write with a key that has expired, and say so when it soon will.

    Args:
        core: The store.
        trust: Its chain.
        key: The digits of the key's id.
        newest: The newest verified time on the thread.
        where: Who would write what.

    Raises:
        NotTrusted: It has.
    """
    expires = trust.roster.expiries.get(key)
    if expires is None:
        return
    at = core.now(newest)
    if at >= expires:
        raise KeyNotInForce(
            f"{where}: its key {key[:12]} {_ended(expires)}",
            hint="Where the root key is, give it a new one: sealpoint keys rotate NAME",
        )
    if at >= expires - EXPIRY_WARNING:
        _warn(core, trust.roster.seq, at, _SOON)


def check_expiry(
    core: Core, trust: StoreChain, entry: Entry, body: bytes | None, before: Header | None
) -> None:
    """(3) Refuse an entry that the anchor has not seen, by a key that has expired by now.

    Args:
        core: The store.
        trust: Its chain.
        entry: A verified entry.
        body: Its body, if that is there.
        before: The header of the verified entry before it, if there is one.

    Raises:
        NotTrusted: It could have been written at any time since, or it is a handoff that rests
            on attestations of such keys.
    """
    # What anybody may write tells no time: else it could let the keys of others expire.
    told = [each.at for each in (entry.header, before) if each and KINDS[each.kind].tells_time]
    newest = max(told, default=None)
    if entry.header.kind is Kind.HANDOFF and body is not None:
        _check_approvers(core, trust, entry, body, newest)
    expires = trust.roster.expiries.get(entry.header.by)
    if expires is not None and core.now(newest) >= expires:
        raise NotTrusted(
            f"entry {entry.seq} of thread {entry.header.thread[:12]}: the key "
            f"{entry.header.by[:12]} of {entry.writer!r} that signed it "
            f"{_ended(expires)}, and the anchor has not seen the entry",
            hint="If its writer vouches for it, the root may move the expiry: sealpoint keys "
            "add NAME --person WHO --role ROLE --namespace NAMESPACE --expires LATER, with "
            "what sealpoint keys list shows; then load the thread, and rotate the key.",
        )


def _check_approvers(
    core: Core, trust: StoreChain, entry: Entry, body: bytes, newest: datetime | None
) -> None:
    """Refuse an operator's handoff if the keys of all who approved it have expired by now."""
    parsed: HandoffBody = parse_body(Kind.HANDOFF, entry.header.body, body)
    roster = trust.roster_at(entry.header.roster)
    if parsed.statement is None or roster is None:
        return  # its owner gave it away
    at = core.now(newest)
    counted = counted_attestations(entry, parsed, trust)
    living = [each for each in counted if not _has_expired(trust, each.credential, at)]
    found = count(living, statement=parsed.statement, roster=roster, now=entry.header.at)
    if len(living) < len(counted) and not found.approved_by:
        raise NotTrusted(
            f"entry {entry.seq} of thread {entry.header.thread[:12]}: the keys of all who "
            "approved this handoff have expired, and the anchor has not seen it",
            hint="If the approver vouches for it, the root may move the expiry: sealpoint keys "
            "add NAME --person WHO --role ROLE --namespace NAMESPACE --expires LATER, with "
            "what sealpoint keys list shows; then load the thread, and rotate the key.",
        )


def _has_expired(trust: StoreChain, key: str, at: datetime) -> bool:
    expires = trust.roster.expiries.get(key)
    return expires is not None and at >= expires


def warn_of_expiry(core: Core, trust: StoreChain) -> None:
    """Tell whoever listens if this store's own key has expired or soon will; for opening."""
    if core.parts.read_only or core.parts.signer is None:
        return
    expires = trust.roster.expiries.get(core.parts.signer.key)
    if expires is not None:
        at = core.now()
        if at >= expires - EXPIRY_WARNING:
            _warn(core, trust.roster.seq, at, "key-expired" if at >= expires else _SOON)


def _warn(core: Core, roster: int, at: datetime, code: str) -> None:
    """Say it once a day for each roster."""
    said = (roster, at.date())
    if core.warned != said:
        core.warned = said
        core.emit(code, STORE_CHAIN.hex(), roster, b"")


def _ended(expires: datetime) -> str:
    return "is being ended" if expires == STOPPED else f"expired at {expires.isoformat()}"
