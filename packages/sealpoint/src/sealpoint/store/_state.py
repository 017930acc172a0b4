# SPDX-License-Identifier: Apache-2.0
"""What one handle knows of its thread: the verified head, what lies where, and its session.

Each piece of that is kept here and nowhere else; the reader, the writer and the gate ask for it and
change it through the methods below. Whatever is known comes from verified entries, and is let go of
as soon as one of them cannot be read: a handle that has been open for long knows what a new one
would find, or less.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import Enum, auto
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
    parse_body,
)
from sealpoint.storage import Record
from sealpoint.store._append import EntryDraft, append, append_all, check_rights, reserve
from sealpoint.store._blobs import BlobCaches
from sealpoint.store._chain import Chain, entry_body
from sealpoint.store._core import Core
from sealpoint.store._index import CheckpointIndex, CheckpointPlace, Key
from sealpoint.store._names import check_name
from sealpoint.store._refs import CheckpointRef
from sealpoint.store._release import Release, Standpoint

_T = TypeVar("_T")
_encoded = msgspec.json.Encoder().encode
_copied = msgspec.json.Decoder(dict[str, Any]).decode
"""Metadata, which are JSON, as an object of the caller's own: its readers share the body."""


class Retention:
    """What was given up of a thread, as its newest prune or delete says; looked up when asked for.

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
        """How often something was given up, as far as this handle has met it."""

    def observe(self, header: Header) -> None:
        """An entry that this handle did not know has been verified."""
        rule = KINDS[header.kind]
        if rule.is_checkpoint or rule.gives_up or header.kind is Kind.GENESIS:
            self._is_known = False
            self.changes += rule.gives_up

    def observe_own(self, seq: int, body: PruneBody | None) -> None:
        """This handle has written a prune or delete; without a body, an erasure or a genesis."""
        self._newest = None if body is None else (seq, body)
        self._is_known = True

    def forget(self) -> None:
        """Look again when it is asked for."""
        self._newest, self._is_known = None, False

    def newest(self) -> PruneBody | None:
        """What the newest prune or delete says; the newest checkpoint names it."""
        newest = self._newest if self._is_known else self._find()
        return None if newest is None else newest[1]

    def seq(self) -> int | None:
        """The position of the newest prune or delete, for the checkpoint that follows it."""
        newest = None if self._chain.head is None else self._find()
        return None if newest is None else newest[0]

    def covers(self, seq: int) -> bool:
        """Whether a checkpoint or results have lost what they held."""
        body = self.newest()
        return body is not None and body.covers(seq)

    def deletes(self, seq: int) -> bool:
        """Whether the application deleted what lies at a position."""
        body = self.newest()
        return body is not None and body.deletes(seq)

    def require_kept(self, seq: int) -> None:
        """(6) Refuse a checkpoint whose state was given up, whether or not its bytes are there."""
        body = self.newest()
        if body is not None and body.covers(seq):
            how = "it was deleted" if body.deletes(seq) else "a prune gave its state up"
            raise Pruned(f"entry {seq} of thread {self._chain.name!r}: {how}")

    def newest_before(self, resumed: int) -> PruneBody | None:
        """What the newest prune or delete below a position said."""
        found = self._find()
        seq, body = (-1, None) if found is None else found
        while body is not None and seq > resumed:
            seq, body = (
                (-1, None) if body.earlier is None else (body.earlier, self._read(body.earlier))
            )
        return body

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
        """The position of the newest prune or delete, as the first entry below the head says."""
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
    """The index of the verified chain, kept from one call to the next while it follows.

    Args:
        chain: The chain of the thread.
        retention: What was given up.
    """

    def __init__(self, chain: Chain, retention: Retention) -> None:
        self._chain = chain
        self._retention = retention
        self._index: CheckpointIndex | None = None
        self._begun: list[tuple[Entry, CheckpointBody | ResultsBody]] | None = None
        """All that the generation holds, if this handle began it and that is little: an index of
        it is made without reading it."""

    @property
    def is_kept(self) -> bool:
        """Whether there is one, or what it is made of."""
        return self._index is not None or self._begun is not None

    def begin(self) -> None:
        """This handle has just begun a generation, which holds nothing yet."""
        self._index, self._begun = None, []

    def get(self, *, keep: bool = True) -> CheckpointIndex:
        """The index.

        Args:
            keep: Whether it is kept once it is made: what it holds follows the length of the
                thread, which who asks only for the newest need not pay for.
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
        """Take in an entry that has become the newest."""
        if self._begun is not None:
            self._begun.append((entry, body))
            if len(self._begun) > _BEGUN_MAX:
                self._begun = None
        elif self._index is not None and not self._index.follow(entry.header, entry.hash, body):
            self._index = None  # it is made again, from the head downwards

    def forget(self) -> None:
        """Make it again when it is asked for."""
        self._index = self._begun = None

    def newest(self, lane: str) -> CheckpointPlace | None:
        """The newest checkpoint of a lane that was not deleted."""
        return (
            None if self._chain.head is None else self.get().newest(lane, self._retention.deletes)
        )

    def find(self, key: Key, *, rises: bool = False) -> CheckpointPlace | None:
        """The newest checkpoint of a name, unless it was deleted.

        Args:
            key: Lane and name.
            rises: Whether the names of a lane rise, as texts: a higher one than the newest is new,
                and nobody has to look for it.
        """
        if self._chain.head is None:
            return None
        index, deletes = self.get(), self._retention.deletes
        newest = index.newest(key.lane, deletes) if rises else None
        is_new = newest is not None and newest.key.id < key.id
        found = index.known(key) if is_new else index.find(key)
        return None if found is None or deletes(found.seq) else found


class Freshness(Enum):
    """How what the caller was shown relates to what is newest."""

    UNSEEN = auto()
    """The caller has been shown nothing yet; the first look adopts what is there."""
    CURRENT = auto()
    """Nobody else has written since."""
    MOVED = auto()
    """Somebody else has."""
    OVERTAKEN = auto()
    """A write was refused for that, outside a session: the caller has to load again."""
    SUPERSEDED = auto()
    """The same, inside a session."""


_LOST: dict[Freshness, type[SealpointError]] = {
    Freshness.OVERTAKEN: HeadMoved,
    Freshness.SUPERSEDED: Superseded,
}


class _Reporting:
    """Holds the lock of a thread, and tells of refusals; it may be entered again inside."""

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
    """What a handle knows of its thread. Whoever uses it holds `lock`."""

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
        """What was released to that session; None: it began from nothing."""
        self.released_lanes: Mapping[str, str] = {}
        """The checkpoints of other lanes that were released although they are not the newest."""
        self.opened: dict[int, ResumeBody] = {}
        """What this handle has begun its last sessions with, by their positions."""
        self.resume: tuple[int, Record] | None = None
        """The last resume of somebody else that this handle has followed, and where it lies."""
        self.freshness = Freshness.UNSEEN
        self.was_overtaken = False
        """Whether `mark_seen` has met entries of others, since somebody last asked."""
        self.uncertain = False
        """Whether nobody knows what became of the last write: the next one looks first."""
        self.own: frozenset[str] = frozenset()
        """Digests of the bodies of an attempt whose outcome is unknown."""
        self._read_body: tuple[Header, bytes | None, CheckpointBody] | None = None
        self.retention = Retention(self.chain, self.checkpoint_body)
        self.checkpoints = KeptIndex(self.chain, self.retention)

    # ------------------------------------------------------------------ looking

    def refresh(self, *, reads_back: bool = True) -> None:
        """Learn what is newest. At first use that is adopted; later it may be others' entries.

        Args:
            reads_back: Whether what this handle has just written is read, once: whoever only asks
                what others have done need not.
        """
        first = self.freshness is Freshness.UNSEEN
        try:
            self.chain.refresh(reads_back=reads_back)
        except UnknownThread:
            if first:
                self.freshness = Freshness.CURRENT  # it was seen that nobody has saved
            raise
        if first:
            self.freshness = Freshness.CURRENT

    def find(self, *, reads_back: bool = True) -> bool:
        """Look, as `refresh` does; False if the thread holds nothing."""
        try:
            self.refresh(reads_back=reads_back)
        except UnknownThread:
            return False
        head = self.chain.head
        return head is not None and head.header.kind is not Kind.ERASE

    def retry_if_pruned(self, call: Callable[[], _T]) -> _T:
        """The result of a call, which is repeated where a prune or an erasure came in between.

        A read while another process gives up what is read would take that for damage.
        """
        while True:
            changes = self.retention.changes
            try:
                return call()
            except Missing:
                if not self.gave_up_since(changes):
                    raise

    def gave_up_since(self, changes: int) -> bool:
        """Whether a prune or an erasure has come since `retention.changes` was this number."""
        with suppress(SealpointError):
            self.refresh()
        return self.retention.changes != changes

    # ------------------------------------------------------------------ told by the chain

    def observe(self, entry: Entry, record: Record) -> None:
        """An entry that this handle did not know has been verified."""
        header, rule = entry.header, KINDS[entry.header.kind]
        # A prune keeps what the newest checkpoint holds, so a session goes on after it: whoever
        # writes or runs next judges whether it does (`judge_unvouched`).
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
            # Either an erasure follows, or the store was edited, or its writer lied: whoever reads
            # next looks from the head downwards, as a handle does that has just been opened.
            try:
                self.checkpoints.follow(entry, entry_body(self.name, header, record.body))
            except (Missing, Misplaced):
                self.checkpoints.forget()

    def observe_own(self, entry: Entry, body: Body) -> None:
        """This handle has just written an entry: nobody else has, so where it stands stays.

        The blobs of the state that it saved are remembered once the save has returned.
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
        """This handle has begun a session."""
        self.opened[session] = body
        if len(self.opened) > _OPENED_MAX:
            del self.opened[next(iter(self.opened))]

    def cut_off(self) -> None:
        """A restore has cut off what this handle knew."""
        self.forget()
        self.opened.clear()
        self.resume = None
        self.retention.changes += 1
        if self.freshness is Freshness.CURRENT:
            self.freshness = Freshness.MOVED

    def forget(self) -> None:
        """Let go of whatever was derived from entries; it is found again from the head."""
        self._forget_states()
        self.retention.forget()

    def _forget_states(self) -> None:
        self.caches.forget()
        self.checkpoints.forget()

    def checkpoint_body(self, header: Header, record: Record) -> CheckpointBody:
        """The body of a checkpoint of the generation that is there.

        The same bytes in the same place are read once, unless the caller gets at something in them
        that could be changed: metadata are copied, questions are not.
        """
        known = self._read_body
        if known is not None and known[0] == header and known[1] == record.body:
            return known[2]
        body: CheckpointBody = entry_body(self.name, header, record.body)
        if body.question is None:
            self._read_body = (header, record.body, body)
        return body

    def require_generation(self, header: Header) -> None:
        """(6) Refuse what an erasure took, whether or not its bytes are there."""
        head = self.chain.verified_head().header
        if head.kind is Kind.ERASE:
            raise self.erased(head)
        if header.gen < head.gen:
            raise Erased(f"entry {header.seq} of thread {self.name!r}: it was erased on purpose")

    def erased(self, header: Header) -> Erased:
        """What to say of a thread whose newest entry is an erasure."""
        return Erased(f"thread {self.name!r}: it was erased at entry {header.seq}")

    # ------------------------------------------------------------------ releases

    def standpoint(self) -> Standpoint:
        """Where the thread stands, for a release."""
        head, tip = self.chain.verified_head().header, self.chain.tip()
        resumed = self.last_resume()
        return Standpoint(
            thread=head.thread,
            gen=head.gen,
            basis=tip.basis[1].hex(),
            fence=head.fence,
            resumed=resumed,
            given_up=self.retention.newest(),
            given_up_before=self.retention.newest_before(resumed),
        )

    def last_resume(self) -> int:
        """The position of the newest resume; -1 if there is none."""
        fence = self.chain.tip().fence
        if fence.is_session:
            return fence.seq
        found = (header.seq for header, _ in self.chain.walk() if header.kind is Kind.RESUME)
        return next(found, -1)

    # ------------------------------------------------------------------ the session

    def mark_seen(self) -> None:
        """The caller is given what is newest, and may write again."""
        head, moved = self.chain.head, self.freshness is Freshness.MOVED
        self.was_overtaken = self.was_overtaken or moved
        self.freshness, self.uncertain = Freshness.CURRENT, False
        # After a restore the session of somebody else may begin at the very position of this one.
        if head is None or moved or head.header.fence != self.session:
            self.session = None

    @contextmanager
    def shown_only_if_it_passes(self) -> Iterator[None]:
        """For a resume: one that is refused is no load, so who had to load again still has to."""
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
        """Adopt the verified head at first use; refuse to go on after having lost the thread.

        Returns:
            The store chain, by whose roster this call writes.

        Raises:
            HeadMoved, Superseded: Others have written: the caller has to load again.
        """
        if self.freshness is not Freshness.CURRENT and self.freshness in _LOST:
            raise _LOST[self.freshness](
                f"thread {self.name!r}: another session has written; load it again before saving"
            )
        chain = self.chain
        trust = chain.begin_call()
        # A look that failed halfway has a head and nothing that it was compared with.
        unknown = chain.head is None or chain.anchored is None or chain.is_cut_off(trust)
        # A pause that was met may be over, although results were let pass meanwhile.
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
        """Write the first entry of a thread on which nobody saves; nothing if others were first."""
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
        """Refuse to go on where others have written, whichever call has met their entries.

        The anchor may show them even to a save that succeeded.
        """
        head = self.chain.head
        if self.session is not None and head is not None and head.header.fence != self.session:
            self._lose(Freshness.SUPERSEDED)
        if self.freshness is Freshness.MOVED:
            self._lose(Freshness.OVERTAKEN)

    def require_session(self, session: int | None) -> None:
        """Refuse to read for a run that does not go on with the thread any more.

        Args:
            session: The session of the run; None: that of this handle, if it has one.

        Raises:
            Superseded: Somebody else goes on with the thread.
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
            f"thread {self.name!r}: somebody else has written: entry {head.seq} of session "
            f"{head.header.fence} by {head.writer!r}"
        )

    # ------------------------------------------------------------------ small entries

    def record(self, draft: EntryDraft, blobs: Mapping[bytes, bytes] | None = None) -> int | None:
        """Append an entry; None if somebody else wrote first, and it is to be decided anew."""
        before = self.chain.head
        try:
            entry = append_all(self.chain, [draft], blobs=blobs or {})[-1]
        except HeadMoved:
            self.refresh()
            self.require_moved(before)
            return None
        self.core.emit(draft.kind.word, entry.header.thread, entry.seq, entry.hash)
        return entry.seq

    def require_moved(self, before: Entry | None) -> None:
        """Refuse to try again for ever: a damaged index may hold a position that no read shows."""
        if self.chain.head is before:
            raise Edited(
                f"thread {self.name!r}: the store says that another entry was first, and does "
                "not have it"
            ) from None

    def reporting(self) -> AbstractContextManager[None]:
        """Hold the lock, and tell whoever listens of a refusal."""
        return self._reporting

    def report(self, error: SealpointError) -> None:
        """Tell whoever listens of a refusal."""
        self.core.emit_refused(error, self.chain.place.thread)


def make_ref(
    header: Header, body: CheckpointBody, writer: str, entry: bytes, *, pruned: bool = False
) -> CheckpointRef:
    """The reference to a checkpoint that was verified."""
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
