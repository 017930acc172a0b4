# SPDX-License-Identifier: Apache-2.0
"""The state of one handle on its thread: the verified head, the positions, and its session.

Each piece of that state is kept only here; the reader, the writer and the gate access it through
the methods below. All of it comes from verified entries, and is dropped as soon as one of them
cannot be read. So a handle that has been open for long knows the same as a new one would find, or
less.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import Enum, auto
from hashlib import sha256
from typing import Any, NoReturn, TypeVar

import msgspec

from sealpoint.errors import (
    Edited,
    Erased,
    HeadMoved,
    Misplaced,
    Missing,
    Pruned,
    SealpointError,
    Superseded,
    UnknownCheckpoint,
    UnknownThread,
)
from sealpoint.ids import ThreadId
from sealpoint.ledger import (
    KINDS,
    Body,
    CheckpointBody,
    Entry,
    EraseBody,
    GenesisBody,
    Header,
    Kind,
    PruneBody,
    ResultsBody,
    ResumeBody,
    StoreChain,
    encode_body,
    parse_body,
)
from sealpoint.storage import Record
from sealpoint.store._append_entries import EntryDraft, append, append_all, check_rights, reserve
from sealpoint.store._blobs import BlobCaches
from sealpoint.store._checkpoint_index import CheckpointIndex, CheckpointPlace, Key
from sealpoint.store._names import check_name
from sealpoint.store._release import Release, ReleasePosition
from sealpoint.store._return_values import CheckpointRef
from sealpoint.store._store_parts import Core
from sealpoint.store._verified_chain import Chain, entry_body

_T = TypeVar("_T")
_encoded = msgspec.json.Encoder().encode
_copied = msgspec.json.Decoder(dict[str, Any]).decode
"""Metadata, which are JSON, as a new object for the caller: its readers share the body."""


class Retention:
    """The removals of a thread, from its newest prune or delete; looked up when needed.

    Args:
        chain: The chain of the thread.
        checkpoint_body: Reads the body of a checkpoint.
    """

    def __init__(
        self, chain: Chain, checkpoint_body: Callable[[Header, Record], CheckpointBody]
    ) -> None:
        self._chain = chain
        self._checkpoint_body = checkpoint_body
        self._newest: tuple[int, PruneBody] | None = None
        self._is_known = False
        """Whether `_newest` is the newest prune or delete, with its position."""
        self.changes = 0
        """How many removals this handle has observed."""

    def observe(self, header: Header) -> None:
        """Handle a verified entry that is new to this handle."""
        rule = KINDS[header.kind]
        if rule.is_checkpoint or rule.gives_up or header.kind is Kind.GENESIS:
            self._is_known = False
            self.changes += rule.gives_up

    def observe_own(self, seq: int, body: PruneBody | None) -> None:
        """Handle this handle's own prune or delete; without a body, an erasure or a genesis."""
        self._newest = None if body is None else (seq, body)
        self._is_known = True

    def forget(self) -> None:
        """Drop the state; it is read again when needed."""
        self._newest, self._is_known = None, False

    def newest(self) -> PruneBody | None:
        """Return the body of the newest prune or delete; the newest checkpoint names it."""
        newest = self._newest if self._is_known else self._find()
        return None if newest is None else newest[1]

    def seq(self) -> int | None:
        """Return the position of the newest prune or delete, for the next checkpoint."""
        newest = None if self._chain.head is None else self._find()
        return None if newest is None else newest[0]

    def covers(self, seq: int) -> bool:
        """Whether a checkpoint or results have lost their payload."""
        body = self.newest()
        return body is not None and body.covers(seq)

    def deletes(self, seq: int) -> bool:
        """Whether the application deleted the entry at a position."""
        body = self.newest()
        return body is not None and body.deletes(seq)

    def require_kept(self, seq: int) -> None:
        """(6) Refuse a checkpoint whose state was removed, even if its bytes are still there."""
        body = self.newest()
        if body is not None and body.covers(seq):
            how = "it was deleted" if body.deletes(seq) else "a prune gave its state up"
            raise Pruned(f"entry {seq} of thread {self._chain.name!r}: {how}")

    def newest_before(self, resumed: int) -> PruneBody | None:
        """Return the body of the newest prune or delete below a position."""
        found = self._find()
        seq, body = (-1, None) if found is None else found
        while body is not None and seq > resumed:
            seq, body = (
                (-1, None) if body.earlier is None else (body.earlier, self._read(body.earlier))
            )
        return body

    def deletions(self, since: int) -> list[int]:
        """Return where the deletions above a position lie, newest first."""
        found = self._find()
        deletions: list[int] = []
        while found is not None and found[0] > since:
            seq, body = found
            if self._chain.descend(seq)[1].kind is Kind.DELETE:
                deletions.append(seq)
            found = None if body.earlier is None else (body.earlier, self._read(body.earlier))
        return deletions

    def _find(self) -> tuple[int, PruneBody] | None:
        if not self._is_known:
            seq = self._named_seq()
            if seq is None:
                self._newest = None
            elif self._newest is None or self._newest[0] != seq:
                self._newest = seq, self._read(seq)
            self._is_known = True
        return self._newest

    def _read(self, seq: int) -> PruneBody:
        record, header = self._chain.descend(seq)
        self._chain.verify(record, seq)
        where = f"entry {seq} of thread {self._chain.name!r}"
        if not KINDS[header.kind].is_retention:
            raise Misplaced(f"{where}: the prune that a later one names is not there")
        if record.body is None:
            raise Missing(f"{where}: the body of a prune is missing")
        body: PruneBody = parse_body(header.kind, header.body, record.body)
        if body.end > seq or (body.earlier is not None and body.earlier >= seq):
            raise Misplaced(f"{where}: a prune gives up more than was there")
        return body

    def _named_seq(self) -> int | None:
        """Return the position of the newest prune or delete, from the first suitable entry."""
        head, head_record = self._chain.verified_head().header, self._chain.head_record
        if KINDS[head.kind].is_checkpoint and head_record is not None:
            return self._checkpoint_body(head, head_record).prune
        for header, record in self._chain.walk():
            rule = KINDS[header.kind]
            if rule.is_checkpoint:
                return self._checkpoint_body(header, record).prune
            if rule.is_retention:
                return header.seq
            if header.kind in (Kind.GENESIS, Kind.ERASE):
                break
        return None


_BEGUN_MAX = 8
_OPENED_MAX = 4


class KeptIndex:
    """The index of the verified chain, kept between calls while it follows.

    Args:
        chain: The chain of the thread.
        retention: The removals of the thread.
    """

    def __init__(self, chain: Chain, retention: Retention) -> None:
        self._chain = chain
        self._retention = retention
        self._index: CheckpointIndex | None = None
        self._begun: list[tuple[Entry, CheckpointBody | ResultsBody]] | None = None
        """All entries of the generation, if this handle began it and they are few: an index of them
        is made without reading them."""

    @property
    def is_kept(self) -> bool:
        """Whether an index exists, or the entries to make it from."""
        return self._index is not None or self._begun is not None

    def begin(self) -> None:
        """Record that this handle has just begun a generation, which is empty."""
        self._index, self._begun = None, []

    def get(self, *, keep: bool = True) -> CheckpointIndex:
        """Return the index.

        Args:
            keep: Whether to keep a new index: its size grows with the thread, which a caller that
                needs only the newest checkpoint can avoid.
        """
        if self._index is not None:
            return self._index
        found = CheckpointIndex(self._chain, is_complete=self._begun is not None)
        for entry, body in self._begun or ():
            found.follow(entry.header, entry.hash, body)
        if keep:
            self._index, self._begun = found, None
        return found

    def follow(self, entry: Entry, body: CheckpointBody | ResultsBody) -> None:
        """Add an entry that has become the newest."""
        if self._begun is not None:
            self._begun.append((entry, body))
            if len(self._begun) > _BEGUN_MAX:
                self._begun = None
        elif self._index is not None and not self._index.follow(entry.header, entry.hash, body):
            self._index = None  # it is made again, from the head downwards

    def forget(self) -> None:
        """Drop the index; it is made again when needed."""
        self._index = self._begun = None

    def newest(self, lane: str) -> CheckpointPlace | None:
        """Return the newest checkpoint of a lane that was not deleted."""
        return (
            None if self._chain.head is None else self.get().newest(lane, self._retention.deletes)
        )

    def find(self, key: Key, *, rises: bool = False) -> CheckpointPlace | None:
        """Return the newest checkpoint of a name, unless it was deleted.

        Args:
            key: Lane and name.
            rises: Whether the names of a lane rise, as texts: a higher one than the newest is new,
                and needs no search.
        """
        if self._chain.head is None:
            return None
        index, deletes = self.get(), self._retention.deletes
        newest = index.newest(key.lane, deletes) if rises else None
        is_new = newest is not None and newest.key.id < key.id
        found = index.known(key) if is_new else index.find(key)
        return None if found is None or deletes(found.seq) else found


class Freshness(Enum):
    """How the state that the caller has seen relates to the newest one."""

    UNSEEN = auto()
    """The caller has seen nothing yet; the first refresh adopts the current state."""
    CURRENT = auto()
    """No other process has written since."""
    MOVED = auto()
    """Another process has written since."""
    OVERTAKEN = auto()
    """A write was refused for that, outside a session: the caller must load again."""
    SUPERSEDED = auto()
    """The same, inside a session."""


_LOST: dict[Freshness, type[SealpointError]] = {
    Freshness.OVERTAKEN: HeadMoved,
    Freshness.SUPERSEDED: Superseded,
}


class _Reporting:
    """Holds the lock of a thread, and reports refusals; it is reentrant."""

    __slots__ = ("_state",)

    def __init__(self, state: "ThreadState") -> None:
        self._state = state

    def __enter__(self) -> None:
        self._state.lock.acquire()

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        try:
            if isinstance(error, SealpointError):
                self._state.report(error)
        finally:
            self._state.lock.release()


class ThreadState:
    """The state of a handle on its thread. Callers hold `lock`."""

    def __init__(self, core: Core, name: str, chain: Chain | None = None) -> None:
        self.core = core
        self.name = check_name(name, "thread name")
        self.lock = threading.RLock()
        self._reporting = _Reporting(self)
        self.chain = Chain(core, self.name) if chain is None else chain
        self.chain.observer = self
        self.caches = BlobCaches(core.memory)
        self.session: int | None = None
        """The position of the resume that began this handle's session."""
        self.released: Release | None = None
        """The release of that session; None: it began from an empty thread."""
        self.released_lanes: Mapping[str, str] = {}
        """The checkpoints of other lanes that were released although they are not the newest."""
        self.opened: dict[int, ResumeBody] = {}
        """The bodies of the resumes of this handle's last sessions, by their positions."""
        self.resume: tuple[int, Record] | None = None
        """The last resume of another process that this handle has observed, with its position."""
        self.freshness = Freshness.UNSEEN
        self.was_overtaken = False
        """Whether `mark_seen` has met entries of other processes since this was last reset."""
        self.uncertain = False
        """Whether the outcome of the last write is unknown: the next write refreshes first."""
        self.own: frozenset[str] = frozenset()
        """Digests of the bodies of an attempt whose outcome is unknown."""
        self._read_body: tuple[Header, bytes | None, CheckpointBody] | None = None
        self.retention = Retention(self.chain, self.checkpoint_body)
        self.checkpoints = KeptIndex(self.chain, self.retention)

    # ------------------------------------------------------------------ refreshing

    def refresh(self, *, reads_back: bool = True) -> None:
        """Find the newest state. The first call adopts it; later it may contain others' entries.

        Args:
            reads_back: Whether to read, once, the entry that this handle has just written: a caller
                that only looks for others' entries does not need that.
        """
        first = self.freshness is Freshness.UNSEEN
        try:
            self.chain.refresh(reads_back=reads_back)
        except UnknownThread:
            if first:
                self.freshness = Freshness.CURRENT  # an empty thread was seen
            raise
        if first:
            self.freshness = Freshness.CURRENT

    def find(self, *, reads_back: bool = True) -> bool:
        """Refresh; return False if the thread holds nothing."""
        try:
            self.refresh(reads_back=reads_back)
        except UnknownThread:
            return False
        head = self.chain.head
        return head is not None and head.header.kind is not Kind.ERASE

    def retry_if_pruned(self, call: Callable[[], _T]) -> _T:
        """Return the result of a call, repeated if a prune or an erasure interrupted it.

        A read during a removal by another process would otherwise look like damage.
        """
        while True:
            changes = self.retention.changes
            try:
                return call()
            except Missing:
                if not self.has_removed_since(changes):
                    raise

    def has_removed_since(self, changes: int) -> bool:
        """Whether a removal has happened since `retention.changes` had this value."""
        with suppress(SealpointError):
            self.refresh()
        return self.retention.changes != changes

    # ------------------------------------------------------------------ called by the chain

    def observe(self, entry: Entry, record: Record) -> None:
        """Handle a verified entry that is new to this handle."""
        header, rule = entry.header, KINDS[entry.header.kind]
        # A prune keeps the newest checkpoint's data, so a session continues after it. The next
        # write or run judges whether it does (`judge_unvouched`).
        others = rule.moves_basis and not rule.is_retention and header.body not in self.own
        if others and self.freshness is Freshness.CURRENT:
            self.freshness = Freshness.MOVED
        self.retention.observe(header)
        if header.kind is Kind.RESUME:
            self.resume = entry.seq, record
        elif header.kind is Kind.ERASE:
            self._forget_states()
        elif rule.is_checkpoint or rule.is_retention:
            self.caches.lose_known()
        if rule.holds_payload and self.checkpoints.is_kept:
            # An erasure follows, or the store was edited, or the writer lied. The next read starts
            # from the head downwards, as in a new handle.
            try:
                self.checkpoints.follow(entry, entry_body(self.name, header, record.body))
            except (Missing, Misplaced):
                self.checkpoints.forget()

    def observe_own(self, entry: Entry, body: Body) -> None:
        """Handle an entry that this handle has just written, which changes no position of others.

        The blobs of the saved state are cached after the save has returned.
        """
        if isinstance(body, (CheckpointBody, ResultsBody)):
            self.checkpoints.follow(entry, body)
            record = self.chain.head_record if entry is self.chain.head else None
            if record is not None and isinstance(body, CheckpointBody) and body.question is None:
                self._read_body = (entry.header, record.body, body)
        elif isinstance(body, PruneBody):
            self.retention.observe_own(entry.seq, body)
            if entry.header.kind is Kind.DELETE:
                self.caches.lose_known()
        elif isinstance(body, EraseBody):
            self._forget_states()
            self.retention.observe_own(entry.seq, None)
        elif isinstance(body, GenesisBody):
            self.checkpoints.begin()
            self.retention.observe_own(entry.seq, None)

    def note_opened(self, session: int, body: ResumeBody) -> None:
        """Record that this handle has begun a session."""
        self.opened[session] = body
        if len(self.opened) > _OPENED_MAX:
            del self.opened[next(iter(self.opened))]

    def cut_off(self) -> None:
        """Handle a restore that has cut off entries known to this handle."""
        self.forget()
        self.opened.clear()
        self.resume = None
        self.retention.changes += 1
        if self.freshness is Freshness.CURRENT:
            self.freshness = Freshness.MOVED

    def forget(self) -> None:
        """Drop everything derived from entries; it is derived again from the head."""
        self._forget_states()
        self.retention.forget()

    def _forget_states(self) -> None:
        self.caches.forget()
        self.checkpoints.forget()

    def checkpoint_body(self, header: Header, record: Record) -> CheckpointBody:
        """Return the body of a checkpoint of the current generation.

        The same bytes in the same place are parsed once, unless the caller can change a part of the
        result: metadata are copied, questions are not.
        """
        known = self._read_body
        if known is not None and known[0] == header and known[1] == record.body:
            return known[2]
        body: CheckpointBody = entry_body(self.name, header, record.body)
        if body.question is None:
            self._read_body = (header, record.body, body)
        return body

    def require_generation(self, header: Header) -> None:
        """(6) Refuse an erased entry, even if its bytes are still there."""
        head = self.chain.verified_head().header
        if head.kind is Kind.ERASE:
            raise self.erased(head)
        if header.gen < head.gen:
            raise Erased(f"entry {header.seq} of thread {self.name!r}: it was erased on purpose")

    def erased(self, header: Header) -> Erased:
        """Return the error for a thread whose newest entry is an erasure."""
        return Erased(f"thread {self.name!r}: it was erased at entry {header.seq}")

    # ------------------------------------------------------------------ releases

    def release_position(self) -> ReleasePosition:
        """Return the position of the thread, for a release."""
        head, tip = self.chain.verified_head().header, self.chain.tip()
        resumed = self._settled_resume()
        return ReleasePosition(
            thread=head.thread,
            gen=head.gen,
            basis=tip.basis[1].hex(),
            fence=head.fence,
            resumed=resumed,
            removals=self.retention.newest(),
            removals_before=self.retention.newest_before(resumed),
        )

    def _settled_resume(self) -> int:
        """Return the resume of the newest session that saved a new checkpoint; -1: there is none.

        A session that saved none settles nothing that was deleted or copied before it. Otherwise
        opening one would be enough to hide a deletion.
        """
        for header, record in self.chain.walk():
            if header.kind in (Kind.GENESIS, Kind.ERASE):
                break
            if header.kind is Kind.CHECKPOINT and (
                self.checkpoint_body(header, record).is_new_in_main_lane
            ):
                return header.fence
        return -1

    def deletions_since_save(self) -> list[int]:
        """Return where the deletions lie since a session last saved a new checkpoint."""
        return self.retention.deletions(self._settled_resume())

    def removals_at_resume(self) -> PruneBody | None:
        """Return the prune or delete in force when the thread was last resumed."""
        fence = self.chain.tip().fence
        found = (header.seq for header, _ in self.chain.walk() if header.kind is Kind.RESUME)
        return self.retention.newest_before(fence.seq if fence.is_session else next(found, -1))

    # ------------------------------------------------------------------ the session

    def mark_seen(self) -> None:
        """Record that the caller receives the newest state, and may write again."""
        head, moved = self.chain.head, self.freshness is Freshness.MOVED
        self.was_overtaken = self.was_overtaken or moved
        self.freshness, self.uncertain = Freshness.CURRENT, False
        # After a restore, another process's session may begin at the position of this one.
        if head is None or moved or head.header.fence != self.session:
            self.session = None

    @contextmanager
    def shown_only_if_it_passes(self) -> Iterator[None]:
        """Undo the effect of a load if a resume is refused: a required load is still required."""
        freshness, session, self.was_overtaken = self.freshness, self.session, False
        try:
            yield
        except (UnknownThread, UnknownCheckpoint, Erased, Pruned):
            raise  # there was nothing to release, and the caller knows that, as after a load
        except BaseException:
            if freshness in _LOST:
                self.freshness, self.session = freshness, None
            elif self.was_overtaken:
                lost = Freshness.OVERTAKEN if session is None else Freshness.SUPERSEDED
                self.freshness, self.session = lost, None
            raise

    def admit_write(self) -> StoreChain:
        """Adopt the verified head at first use; refuse a handle that has lost the thread.

        Returns:
            The store chain, by whose roster this call writes.

        Raises:
            HeadMoved, Superseded: Others have written: the caller must load again.
        """
        if self.freshness is not Freshness.CURRENT and self.freshness in _LOST:
            raise _LOST[self.freshness](
                f"thread {self.name!r}: another session has written; load it again before saving"
            )
        chain = self.chain
        trust = chain.begin_call()
        # A refresh that failed halfway has a head but no anchored position to compare with.
        unknown = chain.head is None or chain.anchored is None or chain.is_cut_off(trust)
        # A known pause may have ended, even if results were let through since.
        if unknown or self.uncertain or chain.tip().paused is not None:
            try:
                self.refresh()
            except UnknownThread:
                if chain.head is not None:
                    raise
                if not chain.thread:
                    chain.bind(ThreadId.draw(self.core.parts.random_bytes, self.core.namespace).raw)
            self.uncertain = False
            trust = chain.trust.get()
        self.check_session()
        return trust

    def begin_empty(self) -> None:
        """Write the first entry of a thread without saves; does nothing if others were first."""
        chain = self.chain
        trust = self.admit_write()
        writer = check_rights(chain, trust, Kind.GENESIS, None).name
        if chain.head is None and not reserve(chain, chain.thread):
            self.uncertain = True
            return
        genesis = GenesisBody(salt=self.core.salt(), name=self.name, owner=writer)
        with suppress(HeadMoved):
            append(chain, EntryDraft(Kind.GENESIS, genesis), trust=trust)

    def check_session(self) -> None:
        """Refuse to continue if other processes have written, regardless of the call that found it.

        The anchor may reveal their entries even to a save that succeeded.
        """
        head = self.chain.head
        if self.session is not None and head is not None and head.header.fence != self.session:
            self._lose(Freshness.SUPERSEDED)
        if self.freshness is Freshness.MOVED:
            self._lose(Freshness.OVERTAKEN)

    def require_session(self, session: int | None) -> None:
        """Refuse to read for a run that no longer holds the thread.

        Args:
            session: The session of the run; None: that of this handle, if it has one.

        Raises:
            Superseded: Another run has resumed the thread.
        """
        head = self.chain.verified_head()
        expected = self.session if session is None else session
        moved = self.freshness not in (Freshness.CURRENT, Freshness.UNSEEN)
        if moved or (expected is not None and head.header.fence != expected):
            raise Superseded(
                f"thread {self.name!r}: another run has resumed it: entry {head.seq} of session "
                f"{head.header.fence} by {head.writer!r}"
            )

    def _lose(self, freshness: Freshness) -> NoReturn:
        self.session, self.freshness = None, freshness
        head, error = self.chain.head, _LOST[freshness]
        if head is None:
            raise error(f"thread {self.name!r}: an accepted restore removed its entries")
        raise error(
            f"thread {self.name!r}: another process has written: entry {head.seq} of session "
            f"{head.header.fence} by {head.writer!r}"
        )

    # ------------------------------------------------------------------ small entries

    def record(self, draft: EntryDraft, blobs: Mapping[bytes, bytes] | None = None) -> int | None:
        """Append an entry; None if another process wrote first: the caller must decide again."""
        before = self.chain.head
        try:
            entry = append_all(self.chain, [draft], blobs=blobs or {})[-1]
        except HeadMoved:
            self.refresh()
            self.require_moved(before)
            return None
        except BaseException:
            self.uncertain = True
            self.own = frozenset({sha256(encode_body(draft.body)).hexdigest()})
            raise
        self.core.emit(draft.kind.word, entry.header.thread, entry.seq, entry.hash)
        return entry.seq

    def require_moved(self, before: Entry | None) -> None:
        """Refuse endless retries: a damaged index may list a position that no read shows."""
        if self.chain.head is before:
            raise Edited(
                f"thread {self.name!r}: the store says that another entry was first, and does "
                "not have it"
            ) from None

    def reporting(self) -> AbstractContextManager[None]:
        """Return a context that holds the lock, and sends an event for a refusal."""
        return self._reporting

    def report(self, error: SealpointError) -> None:
        """Send an event for a refusal."""
        self.core.emit_refused(error, self.chain.place.thread)


def make_ref(
    header: Header, body: CheckpointBody, writer: str, entry: bytes, *, pruned: bool = False
) -> CheckpointRef:
    """Return the reference to a verified checkpoint."""
    return CheckpointRef(
        id=body.id,
        seq=header.seq,
        time=header.at,
        writer=writer,
        metadata={} if body.metadata is None else _copied(_encoded(body.metadata)),
        entry=entry.hex(),
        pruned=pruned,
        question=body.question,
        lane=body.lane,
        parent=body.parent,
        held=header.kind is Kind.HELD,
    )
