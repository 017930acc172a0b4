# SPDX-License-Identifier: Apache-2.0
"""One thread's chain for a reader: the verified head, and the way from it to any entry.

Only `refresh` finds the current state: it compares store and anchor, judges the anchored entry
(`_head_verification.py`), and verifies every newer one. Older entries are reached from the verified
head by its links. `_thread_state.py` interprets the entries, `_append_entries.py` writes new ones,
and `_thread_walk.py` verifies a thread from its first entry on.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol, Self

import msgspec

from sealpoint.anchor import Position, is_rising
from sealpoint.errors import (
    AnchorUnavailable,
    Edited,
    Forged,
    Forked,
    Misplaced,
    Missing,
    NotTrusted,
    RolledBack,
    SealpointError,
    Tampered,
    Unanchored,
    UnknownThread,
    UsageError,
)
from sealpoint.ledger import (
    RESERVED,
    Body,
    CutoffCheck,
    Entry,
    Fence,
    GenesisBody,
    Header,
    Kind,
    Links,
    Place,
    SkipHashes,
    StoreChain,
    Tip,
    accepted_until,
    begin,
    extend,
    link_hash,
    link_to,
    next_link,
    parse_body,
    parse_header,
    parse_links,
    read_basis_and_time,
    require_attestations,
    require_past,
    skip_seq,
)
from sealpoint.signing import Check, PublicKey
from sealpoint.storage import Record
from sealpoint.store._anchor_positions import position_of, require_begun
from sealpoint.store._covered_requests import CoveredRequestEntries
from sealpoint.store._entry_reader import EntryReader, NearEntries
from sealpoint.store._genesis import claimed_name, newest_genesis
from sealpoint.store._head_verification import JudgedHead, judge_head, require_genesis_name
from sealpoint.store._key_expiry import check_expiry
from sealpoint.store._names import label_of, thread_slot
from sealpoint.store._store_chain_cache import CallTrust, trust_and_position, verify_renewed
from sealpoint.store._store_parts import Core


class Observer(Protocol):
    """Receives all entries of a chain, in their order, before the anchor advances."""

    def observe(self, entry: Entry, record: Record) -> None:
        """Receive an entry that was verified and is new to this handle."""

    def observe_own(self, entry: Entry, body: Body) -> None:
        """Receive an entry that this handle has just written, which stands in any case."""

    def cut_off(self) -> None:
        """Drop everything known, because a restore has cut it off."""

    def forget(self) -> None:
        """Drop all derived data, because an error followed the write of an entry."""


_VERIFIED_MAX = 16
_ANCHOR_ROUNDS_MAX = 64
_NEAR_MAX = 16
"""A thread with this few entries is read at once, if several of them are needed."""


class VerifiedEntries:
    """The most recently verified entries of a chain, with their seals and the store chain used.

    Verifying the same header and seals by the same store chain again would give the same result.
    """

    __slots__ = ("_known", "_most")

    def __init__(self) -> None:
        self._known: dict[int, tuple[Entry, bytes, StoreChain]] = {}
        self._most = _VERIFIED_MAX

    @contextmanager
    def all_kept(self) -> Iterator[None]:
        """Keep every entry during a read that meets each of them several times."""
        before, self._most = self._most, sys.maxsize
        try:
            yield
        finally:
            self._most = before
            while len(self._known) > before:
                del self._known[next(iter(self._known))]

    def forget(self) -> None:
        """Drop everything, because the chain now belongs to another thread."""
        self._known.clear()

    def find(self, record: Record, seq: int, trust: StoreChain) -> Entry | None:
        """Return the entry of a record, if it was verified before."""
        known = self._known.get(seq)
        if known is None:
            return None
        entry, seals, by = known
        same = record.header == entry.raw and record.seals == seals and trust is by
        return entry if same else None

    def note(self, entry: Entry, record: Record, trust: StoreChain) -> None:
        """Record an entry that a store chain verified, or that this store's key signed."""
        self._known[entry.header.seq] = entry, record.seals, trust
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]


class SessionGrant(msgspec.Struct, frozen=True):
    """Whether a roster lets this store's key write in a session, determined once for both."""

    trust: StoreChain
    fence: Fence
    writer: str | None
    """The identity that writes; None: it is determined at each entry."""


class Chain:
    """A thread's chain, as far as this handle has verified it. Callers hold the thread's lock."""

    def __init__(
        self,
        core: Core,
        name: str,
        observer: Observer | None = None,
        *,
        entries: EntryReader | None = None,
        slot: bytes | None = None,
        check: Check = PublicKey.verify,
    ) -> None:
        self.core = core
        self.entries: EntryReader = core.storage if entries is None else entries
        """The source of entries: the storage, or entries that were read from it at once."""
        self._check = check
        self.observer = observer
        self.name = name
        self.is_named = True
        """Whether that is the name of the slot; otherwise it is a substitute."""
        self._title = f"thread {name!r}"
        self.slot = thread_slot(core.parts.secret, core.namespace, name) if slot is None else slot
        self.thread = b""
        self._namespace = core.namespace
        self.place = Place(core.store_hex, core.namespace, "")
        self.anchored: Position | None = None
        self.head: Entry | None = None
        self.head_record: Record | None = None
        self.judged: JudgedHead | None = None
        """The state in force at a head that was judged first, without reading all entries below."""
        self.unvouched: Entry | None = None
        """The newest entry read, until the last entries of another person below it were judged."""
        self._tip: Tip | None = None
        self.verified = VerifiedEntries()
        self._version: tuple[int, int, int] | None = None
        """The storage's version while no other process has committed since the head was read or
        written: the verified head is then still current."""
        self._is_unread = False
        """Whether this handle wrote the head, and has not read it back yet."""
        self.grant: SessionGrant | None = None
        """The rights of the current session, as `_append_entries.py` determined them."""
        self._cutoffs = CutoffCheck()
        self._epoch: int | None = None
        self._kept_of = 0
        """The newest epoch whose kept entries the thread was found to have."""
        self.trust = CallTrust(core)
        """The store chain, as read by the current call."""
        self._words: tuple[StoreChain, CoveredRequestEntries] | None = None
        """The entries found to be covered, with the store chain used for that."""

    @classmethod
    def at_slot(
        cls,
        core: Core,
        slot: bytes,
        thread: bytes,
        entries: EntryReader | None = None,
        check: Check = PublicKey.verify,
    ) -> Self:
        """Return the chain of a thread whose name may be erased, of any namespace."""
        namespace, name = claimed_name(core.storage if entries is None else entries, thread)
        is_named = thread_slot(core.parts.secret, namespace, name) == slot
        name = name if is_named else thread.hex()[:12]
        chain = cls(core, name, entries=entries, slot=slot, check=check)
        chain.is_named = is_named
        chain.bind(thread, namespace)
        return chain

    @property
    def label(self) -> bytes:
        """Return the storage's hint for this name."""
        return label_of(self.core.store.raw, self._namespace, self.name)

    def bind(self, thread: bytes, namespace: str | None = None) -> None:
        """Bind the chain to a thread; it may change until a head is verified."""
        self.thread = thread
        self.verified.forget()
        self._words = None
        self._namespace = self._namespace if namespace is None else namespace
        self.place = Place(self.core.store_hex, self._namespace, thread.hex())

    def refresh(self, *, reads_back: bool = True) -> None:
        """Verify all entries that are new to this handle, then advance the anchor.

        The observer receives every entry that is new to this handle, oldest first; on first use,
        that begins with the anchored entry. If a restore has cut off entries that this handle knew,
        the observer receives that first.

        Args:
            reads_back: Whether to read, once, the entry that this handle has just written.

        Raises:
            UnknownThread: Nothing was saved under this name.
            Unanchored: The store has such a thread and the anchor does not know it.
            RolledBack: The store ends before the anchored entry.
            Forked: The store has diverged from the anchored entry.
            Tampered: An entry is edited, missing, forged or misplaced.
            NotTrusted: An entry is signed by a key that may not write it.
        """
        # (0) the pin and the store chain
        # The anchor is read before the store: the store already had everything that it names.
        trust, anchored = trust_and_position(self.core, self.slot)
        if anchored is not None and anchored.epoch > trust.epoch:
            trust = self.core.renewed_trust()
            require_begun(anchored, trust.epoch)
        try:
            self._refresh(trust, anchored, reads_back=reads_back)
        except (RolledBack, Forked, Tampered):
            # A restore that this process does not know yet would explain it.
            renewed = self.core.renewed_trust()
            if renewed.epoch == trust.epoch:
                raise
            anchored = self.core.anchor.get(self.slot)
            self._refresh(renewed, anchored, reads_back=reads_back)

    def _refresh(self, trust: StoreChain, told: Position | None, *, reads_back: bool) -> None:
        self.trust.note(trust)
        anchored = self._anchored_position(trust, told)
        if self._epoch != trust.epoch:
            self._follow_restore(trust)
        known = self.head
        if known is not None:
            # Its key may have ended since this handle verified it.
            accepted_until(trust, known.header, known.hash)
        # A first refresh skips the version, because there may be no second one.
        version = None if known is None else self.core.storage.version()
        if version is None or version != self._version or (self._is_unread and reads_back):
            self._version = None  # if the refresh fails, nothing of it may be used
            self._verify_newer(anchored, known)
            self._version, self._is_unread = version, False
        if self._kept_of != trust.epoch:
            self._require_kept(trust)
        self._compare(anchored, known)

    def _verify_newer(self, anchored: Position, known: Entry | None) -> None:
        """(1) to (4) for every entry after the known head, or from the anchored one on."""
        first = expected = known.seq if known is not None else max(anchored.seq, 0)
        tip: Tip | None = None
        unsettled: list[tuple[Entry, Record]] = []
        for seq, record, covered in self.scan_covered(first):
            if seq != expected:
                raise Missing(f"{self._entry(expected)}: it is missing from the store")
            expected += 1
            if known is not None and seq == first:
                _check_same(self, known, record)
                self.head_record = record
                continue
            entry, tip = self._next(record, seq, anchored, tip, covered=covered)
            unsettled.append((entry, record))
            # If the body that names the owner is missing, the owner is unknown. The entries that
            # follow could be anyone's, and count only once an erasure explains the missing body.
            if tip is None or not tip.lacks_owner:
                self._settle(unsettled, tip)
                unsettled.clear()
        if expected == first:
            raise _nothing_at(self, first, anchored)
        if tip is not None:
            tip.require_owner()

    def scan_covered(
        self, first: int, last: int | None = None
    ) -> Iterator[tuple[int, Record, bool]]:
        """Yield records in order, and whether a later entry covers the signature of each."""
        return CoveredRequestEntries(self.entries, self.thread, self._verify_alone).rows(
            first, last
        )

    def _settle(self, entries: Iterable[tuple[Entry, Record]], tip: Tip | None) -> None:
        """Move to the last of some judged entries; a failed call leaves all to the next one."""
        for entry, record in entries:
            if self.observer is not None:
                self.observer.observe(entry, record)
        self.head, self.head_record, self._tip = entry, record, tip

    def begin_call(self) -> StoreChain:
        """Return the store chain whose roster the call that begins here uses."""
        trust = self.core.trust()
        self.trust.note(trust)
        return trust

    def is_cut_off(self, trust: StoreChain) -> bool:
        """Whether a restore was accepted since this handle's last refresh."""
        return self._epoch != trust.epoch

    def _follow_restore(self, trust: StoreChain) -> None:
        """Drop a head that a restore cut off; the kept entries are then read like new ones."""
        if self.head is not None:
            self._cutoffs = CutoffCheck()  # an entry that it waits for may be lost
            try:
                trust.restores.check(self.head.header, self.head.hash, trust.lists)
            except Misplaced:
                self.head = self.head_record = self._tip = self.judged = self.anchored = None
                self.unvouched = None
                if self.observer is not None:
                    self.observer.cut_off()
        self._epoch = trust.epoch

    def _require_kept(self, trust: StoreChain) -> None:
        """After a restore, require the entry that the restore kept of the thread.

        A process that moves an anchor to the new epoch starts with other marks there, and could
        otherwise omit the kept entries.

        Raises:
            RolledBack: The thread ends before that entry.
            Forked: The thread has another entry in its place.
            Missing, Edited: The list of kept entries is missing or different.
        """
        head = self.verified_head()
        try:
            kept = trust.kept(self.thread)
        except (Missing, Edited):
            # A missing list refuses the threads that it must judge, but not those begun since.
            if self.descend(0)[1].epoch < trust.epoch:
                raise
            kept = None
        if kept is not None and kept[0] > head.seq:
            raise _lacks_kept(self._title, kept[0])
        found = None if kept is None else link_hash(self.descend(kept[0])[0].header)
        if kept is not None and found is not None and found != kept[1]:
            raise Forked(
                f"{self._entry(kept[0])}: expected {kept[1].hex()[:12]}, which the newest restore "
                f"kept, found {found.hex()[:12]}"
            )
        self._kept_of = trust.epoch

    def _compare(self, anchored: Position, known: Entry | None) -> None:
        """(5) The head must be the anchored entry or descend from it."""
        head = self.verified_head()
        newest = head.header.seq
        if self._cutoffs.due:
            self._cutoffs.require_settled(self._title)
        if anchored.seq > newest:
            raise RolledBack(
                f"{self._title}: expected entry {anchored.seq}, which the anchor has seen, found "
                f"that the store ends at entry {newest}"
            )
        has_moved = anchored != self.anchored
        if has_moved and known is not None and not anchored.reserved:
            self._check_ancestor(anchored)
        self.anchored = anchored
        if self.core.parts.read_only:
            return
        # The process that moved the anchor to the head may have stored other facts than the head's.
        if newest > anchored.seq or (has_moved and anchored != self._position(head)):
            self._lead_anchor()  # if the anchor is ahead by now, the next refresh compares it
        elif self.core.together is not None:
            self.core.together.confirm(self.slot, anchored)

    def _anchored_position(self, trust: StoreChain, anchored: Position | None) -> Position:
        if anchored is None:
            unknown = _unknown(self)
            # The thread may have been created in between: its slot came before its genesis.
            anchored = self.core.anchor.get(self.slot)
            if anchored is None:
                raise unknown
        if anchored.epoch < trust.epoch:
            anchored = self.core.follow_restore(self.slot, anchored)
        if anchored.thread != self.thread:
            if self.head is not None:
                raise Forked(
                    f"{self._title}: expected thread {self.thread.hex()[:12]}, which "
                    "was read before, found that the anchor names "
                    f"{anchored.thread.hex()[:12]}"
                )
            self.bind(anchored.thread)
        return anchored

    def _next(
        self,
        record: Record,
        seq: int,
        anchored: Position,
        after: Tip | None,
        *,
        covered: bool = False,
    ) -> tuple[Entry, Tip | None]:
        """Verify the next entry, which becomes the head when the caller moves to it.

        It follows `after`, or otherwise the head.
        """
        if seq == anchored.seq and link_hash(record.header) != anchored.entry:
            raise self.differs(record, seq)
        entry = self.verify(record, seq, covered=covered)
        chain = self.trust.get()
        self._cutoffs.follow(entry, record.body, chain)
        newest = self.head if after is None else after.entry
        before = None if newest is None else newest.header
        if seq > anchored.seq:
            check_expiry(self.core, chain, entry, record.body, before)
        if before is not None:
            known = self.tip() if after is None else after
            tip: Tip | None = extend(known, entry, record.body, chain)
        elif seq == 0:
            tip = begin(entry, record.body, chain)
        else:
            tip = _judge(self, entry, record, anchored)
        self.unvouched = entry
        require_genesis_name(entry, record, self.name if self.is_named else None)
        return entry, tip

    def verify(self, record: Record, seq: int, *, covered: bool = False) -> Entry:
        """Verify one entry on its own, with a newer roster if the entry names one.

        For an entry about requests, a later entry of the same key may cover a damaged signature.

        The same header and seals are verified once by the same store chain, as long as they are
        among the most recent ones. Results are read repeatedly until a checkpoint includes them,
        and so is the checkpoint of a lane that another lane waits for.

        Args:
            record: The entry.
            seq: Its position.
            covered: Whether a verified entry of the same key, which reaches this one by links,
                covers its signature.
        """
        try:
            return self._verify_alone(record, seq, covered=covered)
        except (Edited, Forged):
            if covered or not self._covered_request_entries().covers(record):
                raise
        return self._verify_alone(record, seq, covered=True)

    def _verify_alone(self, record: Record, seq: int, *, covered: bool = False) -> Entry:
        trust = self.trust.get()
        entry = self.verified.find(record, seq, trust)
        if entry is None:
            check = None if covered else self._check
            entry, trust = verify_renewed(
                self.core, record, place=self.place, seq=seq, chain=trust, check=check
            )
            self.verified.note(entry, record, trust)
        return require_attestations(entry, record.body, trust)

    def _covered_request_entries(self) -> CoveredRequestEntries:
        """Return the covered entries, read from the storage: a batch may end below a later one."""
        trust = self.trust.get()
        if self._words is None or self._words[0] is not trust:
            words = CoveredRequestEntries(self.core.storage, self.thread, self._verify_alone)
            self._words = trust, words
        return self._words[1]

    # ------------------------------------------------------------------ from the head downwards

    def verified_head(self) -> Entry:
        """Return the head; only after `refresh` or `append`."""
        if self.head is None:
            raise UnknownThread(f"thread {self.name!r}: it has no entries")
        return self.head

    def tip(self) -> Tip:
        """Return the head with everything needed to judge or write the next entry."""
        if self._tip is None:
            self._tip = _read_tip(self, self.verified_head(), self.in_force())
        return self._tip

    def in_force(self) -> JudgedHead:
        """Return session, owner and pause at the verified head."""
        tip = self._tip
        if tip is not None:
            return JudgedHead(tip.fence, tip.owner, tip.paused)
        if self.judged is None:
            raise UnknownThread(f"thread {self.name!r}: it has no entries")
        return self.judged

    def move_to(
        self, tip: Tip, record: Record | None, written: Iterable[tuple[Entry, Body]]
    ) -> None:
        """Move to a tip that this handle has just written, with the entries that lead to it."""
        self.head, self.head_record, self._tip = tip.entry, record, tip
        self._epoch = tip.entry.header.epoch
        self._is_unread = True
        if self._version is not None:
            connection, others, own = self._version
            self._version = connection, others, own + 1
        if self.observer is not None:
            for entry, body in written:
                self.observer.observe_own(entry, body)

    def descend(self, seq: int) -> tuple[Record, Header]:
        """(4) Return an older entry, proven to be an ancestor of the verified head."""
        header, found = self.verified_head().header, self.head_record
        if seq > header.seq:
            raise Missing(f"{self._entry(seq)}: it lies above the newest entry, {header.seq}")
        if seq == header.seq:
            return (found, header) if found else self.linked(seq, self.verified_head().hash.hex())
        path = [next_link(header.seq, seq)]
        while path[-1] > seq:
            path.append(next_link(path[-1], seq))
        between = path[:-1]
        headers = self.entries.headers(self.thread, between) if len(between) > 1 else {}
        links: Header | Links = header
        for below in between:
            raw, expected = headers.get(below), link_to(links, below)
            if raw is not None and link_hash(raw).hex() == expected:
                links = parse_links(raw)
            else:
                links = self.linked(below, expected)[1]
        return self.linked(seq, link_to(links, seq))

    def walk(self, below: Header | None = None) -> Iterator[tuple[Header, Record]]:
        """Yield every entry from the verified head, or below a proven one, proven by its link."""
        seq, expected = (head := self.verified_head()).seq, head.hash
        if below is None and self.head_record is not None:
            yield head.header, self.head_record  # already in memory, and often sufficient
            below = head.header
        if below is not None:
            seq, expected = below.seq - 1, bytes.fromhex(below.prev or "")
            if seq < 0:
                return
        for found, record in self.entries.scan(self.thread, 0, seq, descending=True):
            if found != seq:
                break
            if link_hash(record.header) != expected:
                raise self.differs(record, seq)
            header = parse_header(record.header)
            yield header, record
            seq -= 1
            expected = bytes.fromhex(header.prev) if header.prev else b""
        if seq >= 0:
            raise Missing(f"{self._entry(seq)}: it is missing from the store")

    def linked(self, seq: int, expected: str | None) -> tuple[Record, Header]:
        """Return the entry at a position, if it has this hash."""
        record = self.entries.read(self.thread, seq)
        if record is None:
            raise Missing(f"{self._entry(seq)}: it is missing from the store")
        if link_hash(record.header).hex() != expected:
            raise self.differs(record, seq)
        return record, parse_header(record.header)

    # ------------------------------------------------------------------ the anchor

    def advance_anchor(self) -> None:
        """Advance the anchor to the verified head, which this handle has just written.

        Raises:
            Forked: The anchor has diverged. Never retried.
            NotTrusted: The anchor and the thread's entries contradict each other.
            AnchorUnavailable: The anchor cannot be written; the entries stand.
        """
        if not self._lead_anchor():
            # The anchor holds a descendant, if the store can show that.
            self.refresh()

    def _lead_anchor(self) -> bool:
        """Do the work of `advance_anchor`; return False if the anchor is already ahead."""
        head, expected = self.verified_head(), self.anchored
        position = self._position(head)
        if expected is None:
            raise AnchorUnavailable(f"{self._title}: what the anchor holds is not known")
        for _ in range(_ANCHOR_ROUNDS_MAX):
            try:
                found = self.core.anchor.advance(self.slot, expected, position)
            except UsageError as exc:
                raise _misled(self, expected, position, exc) from exc
            if found == position:
                self.anchored = position
                return True
            if found.epoch > position.epoch:
                return True  # a restore was accepted in between: the next refresh handles it
            if found.seq > head.seq:
                return False
            if not found.reserved:
                self._check_ancestor(found)
            expected = found
        raise AnchorUnavailable(f"{self._title}: the anchor holds something else at each look")

    def _position(self, head: Entry) -> Position:
        """Return the anchor position of the verified head."""
        seen, known = self.anchored, self._tip or self.in_force()
        position = position_of(
            head.header, head.hash, known.owner.hash, paused=known.paused is not None
        )
        if seen is not None and seen.epoch > position.epoch and seen.entry == position.entry:
            return msgspec.structs.replace(position, epoch=seen.epoch)  # as a restore kept it
        return position

    def _check_ancestor(self, anchored: Position) -> None:
        record, _ = self.descend(anchored.seq)
        if link_hash(record.header) != anchored.entry or anchored.thread != self.thread:
            raise Forked(
                f"{self._entry(anchored.seq)}: expected {anchored.entry.hex()[:12]}, "
                f"which the anchor has seen, found {link_hash(record.header).hex()[:12]}"
            )

    def differs(self, record: Record, seq: int) -> SealpointError:
        """Return the error for an entry that is not the expected one at its position."""
        try:
            self.verify(record, seq)
        except Forged:
            return Edited(f"{self._entry(seq)}: its bytes are not those that were signed")
        except (Tampered, NotTrusted) as exc:
            return exc
        return Forked(
            f"{self._entry(seq)}: it is genuine, and not the one that the anchor has seen"
        )

    def _entry(self, seq: int) -> str:
        return f"entry {seq} of {self._title}"


def lost_pause(chain: Chain) -> str | None:
    """Name the restore that lost a pause of the thread that no operator has ended since.

    Raises:
        Missing, Edited: A list of a restore is missing or different.
    """
    return chain.trust.get().lost_pause(chain.thread, chain.verified_head().header.pause)


def is_paused(chain: Chain) -> bool:
    """Whether a pause is in force at the verified head, including one that a restore lost."""
    return chain.tip().paused is not None or lost_pause(chain) is not None


class _BelowHead:
    """The entries below a head under judgment, with few reads of the storage.

    The headers on the way to the entries that the head names are read at once. Each is proven by
    its link, from the nearest proven one.
    """

    def __init__(self, chain: Chain, head: Header) -> None:
        self._chain = chain
        self._proven: dict[int, tuple[Header | Links, str]] = {head.seq: (head, "")}
        """Links and hash of the entries that were proven."""
        way, at = {head.seq - 1, head.fence - 1}, head.seq
        for seq in sorted({head.fence, head.pause, head.owner}, reverse=True):
            while at > seq:
                at = next_link(at, seq)
                way.add(at)
        # Session and owner often date from the beginning of the thread, next to each other.
        ends = [seq for seq in (head.fence, head.owner) if seq < head.seq]
        self._records: dict[int, Record] = {}
        if ends and max(ends) - min(ends) < _NEAR_MAX:
            self._records = dict(chain.entries.scan(chain.thread, min(ends), max(ends)))
        found = sorted(seq for seq in way - self._records.keys() if 0 <= seq < head.seq)
        self._headers = chain.entries.headers(chain.thread, found) if found else {}
        self._headers |= {seq: record.header for seq, record in self._records.items()}

    def descend(self, seq: int) -> tuple[Record, Header]:
        """Return the entry at a position."""
        at = min((known for known in self._proven if known >= seq), default=seq)
        links, found = self._proven.get(at, (None, ""))
        if links is None or (not found and at == seq):
            return self._chain.descend(seq)  # the head, or above it
        while at > seq:
            at = next_link(links.seq, seq)
            found = link_to(links, at) or ""
            if at > seq:
                links = self._links(at, found)
                self._proven[at] = links, found
        near = self._records.get(seq)
        if near is not None and link_hash(near.header).hex() == found:
            record, header = near, parse_header(near.header)
        else:
            record, header = self._chain.linked(seq, found)
        self._proven[seq] = header, found
        return record, header

    def _links(self, seq: int, expected: str) -> Header | Links:
        raw = self._headers.get(seq)
        if raw is not None and link_hash(raw).hex() == expected:
            return parse_links(raw)
        return self._chain.linked(seq, expected)[1]

    def before(self, header: Header) -> Header:
        """Return the entry before a proven one."""
        raw = self._headers.get(header.seq - 1)
        if raw is not None and link_hash(raw).hex() == header.prev:
            return parse_header(raw)
        return next(iter(self._chain.walk(header)))[0]

    def walk(self, below: Header | None = None) -> Iterator[tuple[Header, Record]]:
        """Yield every entry from the head, or below a proven one, downwards."""
        return self._chain.walk(below)

    def verify(self, record: Record, seq: int, *, covered: bool = False) -> Entry:
        """Verify one entry on its own."""
        return self._chain.verify(record, seq, covered=covered)

    def body(self, header: Header, record: Record) -> Any:
        """Return the body of a proven entry."""
        return entry_body(self._chain.name, header, record.body)


def _judge(chain: Chain, entry: Entry, record: Record, anchored: Position) -> Tip | None:
    """Judge the anchored entry: being anchored proves nothing about its rights.

    Returns:
        The tip, if the body that names the owner is missing, because later entries may explain
        that. None in every other case, because a reader needs no tip.
    """
    core, entries = chain.core, chain.entries
    local = None if core.together is None else core.together.local.get(chain.slot)
    seen = [anchored]
    if local is not None and local.epoch == anchored.epoch:
        seen.append(local)
    chain.head, chain.head_record = entry, record
    try:
        if entry.seq <= _NEAR_MAX and entries is core.storage:
            below = entries.scan(chain.thread, 0, entry.seq - 1)
            chain.entries = NearEntries(entries, chain.thread, [*below, (entry.seq, record)])
        judged = _judged_head(chain, entry, seen)
        if judged.fence.owner is None and not judged.fence.erased:
            return _read_tip(chain, entry, judged)
        chain.judged = judged
        return None
    finally:
        chain.entries, chain.head, chain.head_record = entries, None, None


def tip_at(chain: Chain, entry: Entry, record: Record) -> Tip:
    """Return the tip at the time when a verified entry was the newest, judged as a head is."""
    then = Chain(chain.core, chain.name, entries=chain.entries, slot=chain.slot)
    then.is_named = chain.is_named
    then.bind(chain.thread, chain.place.ns)
    then.trust.note(chain.trust.get())
    if not entry.seq:
        return begin(entry, record.body, then.trust.get())
    then.head, then.head_record = entry, record
    judged = _judged_head(then, entry, ())
    return _read_tip(then, entry, judged)


def _judged_head(chain: Chain, entry: Entry, seen: Sequence[Position]) -> JudgedHead:
    """Judge the head of a chain by the entries that it names."""
    return judge_head(
        _BelowHead(chain, entry.header),
        entry,
        seen,
        chain.trust.get(),
        reserved=chain.is_named and chain.name.startswith(RESERVED),
        name=chain.name if chain.is_named else None,
    )


def _read_tip(chain: Chain, head: Entry, judged: JudgedHead) -> Tip:
    """Read from the store what is needed to write the entry after a judged head."""
    seq, header, below = head.seq, head.header, []
    while seq:
        seq = skip_seq(seq)
        record, header = chain.linked(seq, header.skip)
        below.append((seq, link_hash(record.header)))
    skip_hashes = None
    for place in reversed(below):
        skip_hashes = SkipHashes(*place, skip_hashes)
    skip_hashes = SkipHashes(head.seq, head.hash, skip_hashes)
    record, _ = chain.descend(head.header.fence)
    chain.verify(record, head.header.fence)
    basis, time = read_basis_and_time((found, record.header) for found, record in chain.walk())
    return Tip(head, skip_hashes, judged.fence, basis, time, judged.owner, judged.paused)


def entry_body(name: str, header: Header, data: bytes | None) -> Any:
    """Return the body of an entry of a thread; errors name its position.

    Raises:
        Missing: It is missing, and no erasure explains that.
        Edited: It is not the one that was sealed, or not one of its kind.
        Misplaced: It names a position that did not exist when it was written.
    """
    where = f"entry {header.seq} of thread {name!r}"
    if data is None:
        raise Missing(f"{where}: its body is missing")
    try:
        body = parse_body(header.kind, header.body, data)
    except Edited as exc:
        raise Edited(f"{where}: {exc.message}") from exc
    try:
        require_past(header, body)
    except Misplaced as exc:
        raise Misplaced(f"thread {name!r}: {exc.message}") from exc
    return body


def verified_genesis(chain: Chain) -> GenesisBody | None:
    """Return the body of the newest genesis, verified on its own; None if it was erased."""
    if chain.core.storage.read(chain.thread, 0) is None:
        raise Missing(f"entry 0 of thread {chain.name!r}: it is missing from the store")
    found = newest_genesis(chain.core.storage, chain.thread)
    if found is None:
        return None
    seq, record = found
    entry = chain.verify(record, seq)
    body: GenesisBody = parse_body(Kind.GENESIS, entry.header.body, record.body or b"")
    return body


def _unknown(chain: Chain) -> SealpointError:
    """Return the error for a name without a slot. The label is a hint; the genesis decides."""
    for thread in chain.core.storage.labelled(chain.label):
        found = Chain(chain.core, chain.name)
        found.bind(thread)
        genesis = verified_genesis(found)
        if genesis is not None and genesis.name == chain.name:
            return Unanchored(
                f"thread {chain.name!r}: the store has it, and this machine's anchor has no "
                "record of it"
            )
    return _never_saved(chain)


def _never_saved(chain: Chain) -> UnknownThread:
    return UnknownThread(
        f"thread {chain.name!r} in namespace {chain.core.namespace!r}: there is no such thread"
    )


def _check_same(chain: Chain, known: Entry, record: Record) -> None:
    """Require that the store still has the known head, possibly with another valid seal."""
    if record.header != known.raw:
        raise chain.differs(record, known.seq)
    if chain.head_record is None or record.seals != chain.head_record.seals:
        chain.verify(record, known.seq)


def _lacks_kept(title: str, seq: int) -> RolledBack:
    return RolledBack(
        f"{title}: expected entry {seq}, which the newest restore kept, found the store to end "
        "before it"
    )


def _misled(
    chain: Chain, expected: Position, position: Position, error: UsageError
) -> SealpointError:
    """Return the error for an anchor that refuses to follow, because it contradicts the thread."""
    local = None if chain.core.together is None else chain.core.together.local.get(chain.slot)
    held = [each for each in (expected, local) if each is not None]
    if all(is_rising(each, position) for each in held):
        return error
    return NotTrusted(
        f"thread {chain.name!r}: the anchor has seen what its entry {position.seq} leaves out: "
        f"{error.message}",
        hint="Other code moved the anchor: find out who may write it.",
    )


def _nothing_at(chain: Chain, first: int, anchored: Position) -> SealpointError:
    if anchored.reserved and chain.head is None:
        kept: tuple[int, bytes] | None = None
        with suppress(Missing, Edited):  # as in `_require_kept`
            kept = chain.trust.get().kept(anchored.thread)
        title = f"thread {chain.name!r}"
        return _never_saved(chain) if kept is None else _lacks_kept(title, kept[0])
    return RolledBack(
        f"thread {chain.name!r}: expected entry {first}, which the anchor has seen, found the "
        "store to end before it"
    )
