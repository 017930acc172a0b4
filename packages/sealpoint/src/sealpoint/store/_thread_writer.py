# SPDX-License-Identifier: Apache-2.0
"""Writing to a thread: every save goes through `commit`.

It writes several drafts in order, as one durable step where possible. The steps, numbered below:
(1) admit: this handle has not lost the thread to another writer; (2) encode: make bodies and blobs
from the drafts; (3) the session: the gate begins one, or agrees that the drafts belong to the
current one; (4) seal and append, (5) advance the anchor: both in `_append_entries.py`. If another
writer came first, everything is repeated, or the caller learns that it lost the thread.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple, Protocol

import msgspec

from sealpoint.codec import TreeMemo
from sealpoint.errors import (
    Forked,
    HeadMoved,
    IdReused,
    Missing,
    NotTrusted,
    Paused,
    ResumeRefused,
    SealpointError,
    Superseded,
    Tampered,
    UsageError,
)
from sealpoint.ids import CheckpointId
from sealpoint.ledger import (
    KINDS,
    NO_ID,
    PRINT_BYTES,
    TABLE_EVERY,
    TABLE_POSITIONS_MAX,
    CheckpointBody,
    Entry,
    GenesisBody,
    IdTable,
    Kind,
    ResultsBody,
    ResumeBody,
    StoreChain,
    encode_body,
    id_print,
    link_hash,
)
from sealpoint.limits import BODY_BYTES_MAX
from sealpoint.store._append_entries import (
    EntryDraft,
    append,
    append_all,
    check_rights,
    reserve,
)
from sealpoint.store._blobs import BlobWriter, blob_digest
from sealpoint.store._checkpoint_index import CheckpointPlace, Key, id_stretches, join_prints
from sealpoint.store._drafts import ResultsDraft, SaveDraft
from sealpoint.store._release import Release
from sealpoint.store._return_values import CheckpointRef, ResultsRef
from sealpoint.store._thread_reader import ThreadReader
from sealpoint.store._thread_state import ThreadState, make_ref
from sealpoint.store._verified_chain import Chain

CommitDraft = SaveDraft | ResultsDraft

Outcome = CheckpointRef | ResultsRef | SealpointError
"""The result of writing one draft."""

_Newest = tuple[set[bytes], dict[bytes, bytes]]
"""The blobs that the newest state of a lane references, and their bytes by digest."""


class SessionStart(NamedTuple):
    """How a session is to begin."""

    body: ResumeBody
    trust: StoreChain
    """The store chain whose roster the decision used."""
    release: Release | None = None
    """The release of the session; None: it begins from an empty thread."""
    lanes: Mapping[str, str] = {}
    """The checkpoints of other lanes that are released although they are not the newest."""
    require_standing: Callable[[], None] | None = None
    """Called after the session was written: raises if what allowed it has ended since."""


class SessionGate(Protocol):
    """Decides about the sessions that saves belong to; the gate, a higher layer, implements it."""

    def begin_session(
        self, draft: CommitDraft, owner: str, basis: int, trust: StoreChain
    ) -> SessionStart:
        """Judge the session that a save begins by itself; raises if that is not allowed.

        Args:
            draft: The first draft that is to be written.
            owner: The owner of the thread.
            basis: The position of the entry that the session continues from.
            trust: The store chain whose roster the session is judged by and written under.
        """
        ...

    def continue_session(self, draft: CommitDraft) -> None:
        """Judge a save in the current session; raises if it does not belong there."""
        ...


class _Item(msgspec.Struct, frozen=True):
    """One draft of a group, ready to be signed."""

    at: int
    """Its number among the given drafts."""
    draft: CommitDraft
    body: CheckpointBody | ResultsBody
    payload: bytes | None
    blobs: BlobWriter | None
    """None: there are none, except the root that is stored with the entry."""

    def entry(self, *, paused: bool) -> EntryDraft:
        """Return the entry that it becomes."""
        draft = self.draft
        holds = paused and isinstance(draft, SaveDraft) and draft.holds
        kind = Kind.HELD if holds else draft.kind
        return EntryDraft(
            kind, self.body, self.payload, draft.blocked_by_pause or KINDS[kind].blocked_by_pause
        )


def _blobs_of(group: Sequence[_Item]) -> tuple[dict[bytes, bytes], set[bytes]]:
    """Return the blobs to store with the entries of a group, and those stored ahead of them."""
    pending: dict[bytes, bytes] = {}
    spilled: set[bytes] = set()
    for item in group:
        if item.blobs is not None:
            pending |= item.blobs.pending
            spilled |= item.blobs.spilled
    return pending, spilled


def _reached(blobs: BlobWriter | None) -> _Newest:
    return (set(), {}) if blobs is None else (blobs.reached, blobs.seen)


_UNPRINTED_MAX = 32


class _RecentIds:
    """The ids of the most recently written entries, and the tables made from them.

    The first checkpoint at or after each multiple of `TABLE_EVERY` carries a table of the entries
    since the previous table. Every second table also includes the stretch of the table before it,
    every fourth those of the three before it, and so on: so few tables cover a whole thread.

    Args:
        chain: The chain of the thread.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._first = 0
        self._prints = bytearray()
        self._unprinted: list[CheckpointBody | None] = []
        """The bodies of the entries after those; their prints are made in small batches."""
        self._last = b""
        """The hash of the last entry that has a print."""
        self._newest = -1
        """The position of the last checkpoint among them."""

    def follow(self, entries: Sequence[Entry], drafts: Sequence[EntryDraft]) -> None:
        """Add written entries, whose tables were made here."""
        if entries[0].header.prev != self._last.hex():
            self._begin(entries[0].header.seq)
            self._newest = -1
        for entry, draft in zip(entries, drafts, strict=True):
            body = draft.body
            if not isinstance(body, CheckpointBody):
                self._unprinted.append(None)
                continue
            if body.ids is not None:
                self._begin(entry.header.seq)
            self._newest = entry.header.seq
            self._unprinted.append(body)
        self._last = entries[-1].hash
        if len(self._unprinted) >= _UNPRINTED_MAX:
            self._print()

    def _begin(self, seq: int) -> None:
        """Drop the entries before a position."""
        self._first = seq
        self._prints.clear()
        self._unprinted.clear()

    def _print(self) -> None:
        for body in self._unprinted:
            self._prints += NO_ID if body is None else id_print(body.lane, body.id)
        self._unprinted.clear()
        if (beyond := len(self._prints) // PRINT_BYTES - 2 * TABLE_EVERY) > 0:
            self._first += beyond
            del self._prints[: beyond * PRINT_BYTES]

    def with_tables(self, drafts: list[EntryDraft]) -> list[EntryDraft]:
        """Return the drafts, with a table where one is due.

        A thread that is damaged far below continues without a table; a search for an id there finds
        the damage.
        """
        head = self._chain.head
        first = 0 if head is None else head.seq + 1
        told = self._newest // TABLE_EVERY if head is not None and head.hash == self._last else -1
        begins = drafts[0].kind is Kind.GENESIS  # earlier entries are of another generation
        if begins or (first + len(drafts) - 1) // TABLE_EVERY in (0, told):
            return drafts
        made: list[EntryDraft] = []
        prints: list[bytes] = []
        for seq, draft in enumerate(drafts, first):
            body, stretch = draft.body, seq // TABLE_EVERY
            is_due = isinstance(body, CheckpointBody) and stretch not in (0, told)
            if is_due and not self._has_table(stretch):
                with suppress(Tampered, Forked, NotTrusted):
                    full = msgspec.structs.replace(body, ids=self._table(seq, prints))
                    if len(encode_body(full)) <= BODY_BYTES_MAX:
                        draft = msgspec.structs.replace(draft, body=full)  # noqa: PLW2901
            made.append(draft)
            if isinstance(body, CheckpointBody):
                told = stretch
                prints.append(id_print(body.lane, body.id))
            else:
                prints.append(NO_ID)
        return made

    def _has_table(self, stretch: int) -> bool:
        """Whether this stretch of positions already has a checkpoint, or its generation is new."""
        for header, _ in self._chain.walk():
            if header.seq // TABLE_EVERY < stretch:
                return False
            if KINDS[header.kind].is_checkpoint or header.kind is Kind.GENESIS:
                return True
        return True

    def _table(self, seq: int, ahead: Sequence[bytes]) -> IdTable:
        """Return the table of a checkpoint at a position, given the prints of earlier drafts."""
        number = seq // TABLE_EVERY
        reach = min(number & -number, TABLE_POSITIONS_MAX // TABLE_EVERY)
        first = end = seq - len(ahead)
        prints = list(reversed(ahead))
        for first, found in self._before(end):
            prints.append(found)
            if first // TABLE_EVERY <= number - reach or seq - first >= TABLE_POSITIONS_MAX:
                break
        return IdTable(first=first, prints=join_prints(prints).hex())

    def _before(self, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield the prints before a position, newest first: known ones, then those in the store."""
        start = end - 1
        self._print()
        if self._prints and self._chain.verified_head().hash == self._last:
            yield self._first, bytes(self._prints)
            start = end = self._first  # this entry may carry a table itself
        yield from id_stretches(self._chain, start, end)


class ThreadWriter:
    """Writes entries of a thread under the session of its handle.

    Args:
        state: The state of the handle.
        reader: Reads the thread.
        gate: Decides about the sessions that saves belong to.
    """

    def __init__(self, state: ThreadState, reader: ThreadReader, gate: SessionGate) -> None:
        self._state = state
        self._reader = reader
        self._core = state.core
        self._chain = state.chain
        self._ids = _RecentIds(state.chain)
        self.gate = gate

    def commit(self, drafts: Sequence[CommitDraft]) -> list[Outcome]:
        """Write several drafts in order; see `AdapterThread.commit`."""
        state = self._state
        outcomes: list[Outcome | None] = [None] * len(drafts)
        with state.lock:
            try:
                self._core.signer()
                is_lost = False
                while None in outcomes:
                    changes = state.retention.changes
                    try:
                        is_lost = self._write_group(drafts, outcomes, hold=is_lost)
                    except Missing:
                        if not state.has_removed_since(changes):
                            raise
            except SealpointError as error:
                outcomes = [error if outcome is None else outcome for outcome in outcomes]
            written = [outcome for outcome in outcomes if outcome is not None]
            for outcome in written:
                if isinstance(outcome, SealpointError):
                    state.report(outcome)
        return written

    def open_session(self, start: SessionStart) -> Entry | None:
        """Begin a session without a save.

        Returns:
            None if another process wrote first, so that all steps must start again.
        """
        state = self._state
        try:
            entry = append(self._chain, EntryDraft(Kind.RESUME, start.body), trust=start.trust)
        except HeadMoved:
            before = self._chain.head
            self._chain.refresh()
            state.require_moved(before)
            return None
        except BaseException:
            state.uncertain = True
            state.own = frozenset({sha256(encode_body(start.body)).hexdigest()})
            raise
        state.session = entry.seq
        state.released, state.released_lanes = start.release, start.lanes
        state.note_opened(entry.seq, start.body)
        self._core.emit("session-opened", entry.header.thread, entry.seq, entry.hash)
        return entry

    # ------------------------------------------------------------------ one durable step

    def _write_group(
        self, drafts: Sequence[CommitDraft], outcomes: list[Outcome | None], *, hold: bool
    ) -> bool:
        """Write the next drafts that make one group, and record the outcome of each.

        Args:
            drafts: All drafts.
            outcomes: The outcome of each; None: none yet.
            hold: Whether to lock out other writers, because one came first before.

        Returns:
            Whether another writer came first, so that the group must be written again.
        """
        # (1) this handle has not lost the thread
        trust = self._state.admit_write()
        # (2) bodies and blobs
        group = self._encode(drafts, outcomes)
        if not group:
            return False
        try:
            written = self._write_alone(group) if hold else self._write(group, trust)
        except Paused as error:
            # Work that had begun is kept, unless a session would begin with it.
            written = [(item, error) for item in group if item.entry(paused=True).blocked_by_pause]
            if not written:
                raise
        except ResumeRefused as error:
            written = [(item, error) for item in group]
        for item, outcome in written:
            outcomes[item.at] = outcome
        return not written

    def _write(self, group: Sequence[_Item], trust: StoreChain) -> list[tuple[_Item, Outcome]]:
        # (3) the session of the drafts
        opening, start = self._open(group[0].draft, trust)
        # (4) and (5) sealed, appended, anchored: see `_append_entries.py`
        return self._append(group, opening, start, trust)

    def _write_alone(self, group: Sequence[_Item]) -> list[tuple[_Item, Outcome]]:
        """Write the group while no other writer can append, because one may append all the time.

        The state that the group was made from must be unchanged; otherwise the group is made again.
        Nothing is encoded here, because the OS threads that store blobs would wait for this one.
        """
        state, chain = self._state, self._chain
        made_from = self._write_basis()
        with self._core.storage.alone(chain.thread):
            state.uncertain = True
            trust = state.admit_write()
            return self._write(group, trust) if self._write_basis() == made_from else []

    def _write_basis(self) -> tuple[int, tuple[int, bytes] | None]:
        """Return the state that bodies and blobs are made from: the basis, and the removals."""
        basis = None if self._chain.head is None else self._chain.tip().basis
        return self._state.retention.changes, basis

    def _open(
        self, draft: CommitDraft, trust: StoreChain
    ) -> tuple[list[EntryDraft], SessionStart | None]:
        """Ask the gate about the session of a draft.

        Returns:
            The entries that the session begins with, and how it begins; empty and None if the draft
            belongs to the current session.
        """
        chain = self._chain
        if chain.head is not None and self._state.session is not None:
            self.gate.continue_session(draft)
            return [], None
        opening = []
        basis = 0 if chain.head is None else chain.tip().basis[0]
        owner = None if chain.head is None else chain.tip().fence.owner
        if owner is None:
            # A new thread, or a new generation of an erased one. If the writer is a member of
            # exactly one pool, the pool owns it.
            writer = check_rights(chain, trust, Kind.RESUME, None).name
            owner = trust.roster.pool_of(writer) or writer
            genesis = GenesisBody(salt=self._core.salt(), name=self._state.name, owner=owner)
            opening.append(EntryDraft(Kind.GENESIS, genesis))
        else:
            check_rights(chain, trust, Kind.RESUME, owner)
        start = self.gate.begin_session(draft, owner, basis, trust)
        return [*opening, EntryDraft(Kind.RESUME, start.body)], start

    def _append(
        self,
        group: Sequence[_Item],
        opening: Sequence[EntryDraft],
        start: SessionStart | None,
        trust: StoreChain,
    ) -> list[tuple[_Item, Outcome]]:
        """Seal and append a group after the entries that its session begins with.

        Returns:
            The outcome of each; empty if the group must be written again.
        """
        chain = self._chain
        paused = chain.head is not None and chain.tip().paused is not None
        drafts = [*opening, *[item.entry(paused=paused) for item in group]]
        drafts = self._ids.with_tables(drafts)
        if chain.head is None and not self._reserve_name():
            return []
        pending, spilled = _blobs_of(group)
        try:
            entries = append_all(chain, drafts, blobs=pending, needs=spilled, trust=trust)
            if start is not None and start.require_standing is not None:
                start.require_standing()
        except HeadMoved:
            entries = []  # handled below, so that this error is not its context
        except Missing:
            if not spilled:
                raise
            # Another process collected blobs stored ahead: store them again, and fewer ahead.
            for item in group:
                item.draft.collected += 1
            return []
        except BaseException as exc:
            if (saved := self._after_failure(exc, drafts, group, start)) is None:
                raise
            return saved
        if entries:
            self._ids.follow(entries, drafts)
            return self._saved(entries[-len(group) :], group, start)
        self._lost_swap(group[0].draft)
        return []

    def _reserve_name(self) -> bool:
        """Reserve the name of a new thread; False if another process did, so it must be read."""
        reserved = reserve(self._chain, self._chain.thread)
        self._state.uncertain = self._state.uncertain or not reserved
        return reserved

    def _lost_swap(self, draft: CommitDraft) -> None:
        """Handle a lost write; entries that move no basis are tolerated, up to a limit."""
        before = self._chain.head
        self._chain.refresh()
        self._state.check_session()
        self._state.require_moved(before)
        draft.repeat_after(self._chain.verified_head(), self._state.name)

    def _saved(
        self, entries: Sequence[Entry], group: Sequence[_Item], start: SessionStart | None
    ) -> list[tuple[_Item, Outcome]]:
        """Record the written entries, and return their positions."""
        state, last = self._state, entries[-1]
        outcomes: list[tuple[_Item, Outcome]] = []
        opened = state.session != last.header.fence
        state.session = last.header.fence
        if start is not None:
            state.released, state.released_lanes = start.release, start.lanes
            state.note_opened(last.header.fence, start.body)
        if opened:
            self._core.emit("session-opened", last.header.thread, last.header.fence, b"")
        for entry, item in zip(entries, group, strict=True):
            body = item.body
            self._core.emit("saved", entry.header.thread, entry.seq, entry.hash)
            if isinstance(body, ResultsBody):
                outcomes.append((item, ResultsRef(seq=entry.seq, entry=entry.hash.hex())))
                continue
            blobs = item.blobs
            if blobs is None:
                cache = state.caches.of(body.lane)
                if cache.known or cache.seen:
                    cache.remember(set(), {})
            else:
                # Another process may have written on top of it since.
                known = blobs.reached if self._chain.head is last else set()
                state.caches.of(body.lane).remember(known, blobs.seen)
            outcomes.append((item, make_ref(entry.header, body, entry.writer, entry.hash)))
        return outcomes

    def _standing(self, last: Entry, count: int) -> list[Entry]:
        """Return this many entries up to one that this handle has just written."""
        entries = [last]
        while len(entries) < count:
            above = entries[0].header
            record, _ = self._chain.linked(above.seq - 1, above.prev)
            entries.insert(0, self._chain.verify(record, above.seq - 1))
        return entries

    def _after_failure(
        self,
        exc: BaseException,
        drafts: Sequence[EntryDraft],
        group: Sequence[_Item],
        start: SessionStart | None,
    ) -> list[tuple[_Item, Outcome]] | None:
        """Determine whether the entries stand, before the next save signs anything.

        If the chain knows that they do, only a later step failed, and the error for each of them
        includes its reference.
        """
        self._state.uncertain = True
        digests = [sha256(encode_body(draft.body)).hexdigest() for draft in drafts]
        self._state.own = frozenset(digests)
        if isinstance(exc, Superseded):
            return None  # a restore was accepted in between, and did not keep them
        head = self._chain.head
        if head is None or head.header.body != digests[-1]:
            return None
        entries = self._standing(head, len(group))
        told: list[tuple[_Item, Outcome]] = []
        for item, ref in self._saved(entries, group, start):
            if not isinstance(exc, SealpointError) or not hasattr(exc, "ref"):
                return None
            error = copy.copy(exc)
            error.ref = ref if isinstance(ref, CheckpointRef) else None
            told.append((item, error))
        return told

    # ------------------------------------------------------------------ from drafts to bodies

    def _encode(self, drafts: Sequence[CommitDraft], outcomes: list[Outcome | None]) -> list[_Item]:
        """Make bodies and blobs of the remaining drafts, as far as they form one group."""
        group: list[_Item] = []
        named: set[object] = set()
        newest: dict[str, _Newest] = {}
        for at, draft in enumerate(drafts):
            if outcomes[at] is not None:
                continue
            saves, key = isinstance(draft, SaveDraft), draft.key
            if saves and key in named:
                break  # it must name the position of its namesake, which is not yet known
            if group and draft.world not in (None, group[0].draft.world):
                break  # the world of a run is judged once for a group
            try:
                built = self._encode_one(draft, newest)
            except (Missing, HeadMoved, Superseded):
                # The thread may have been erased in between, so all steps start again; or this
                # handle has lost the thread, and nothing of the group may be written.
                raise
            except SealpointError as error:
                outcomes[at] = error
                continue
            if isinstance(built, CheckpointRef):
                outcomes[at] = built
                continue
            group.append(_Item(at, draft, *built))
            if key is not None:
                named.add(key)
            if saves:
                newest[draft.lane] = _reached(built[2])
        return group

    def _encode_one(
        self, draft: CommitDraft, newest: dict[str, _Newest]
    ) -> CheckpointRef | tuple[CheckpointBody | ResultsBody, bytes | None, BlobWriter | None]:
        caches, saves = self._state.caches, isinstance(draft, SaveDraft)
        place = since = None
        if isinstance(draft, SaveDraft) and draft.key is not None:
            found = self._find_namesake(draft, draft.key)
            if isinstance(found, CheckpointRef):
                return found
            place, since = found, self._since(draft.key, found)
        cache = caches.of(draft.lane)
        known, seen = newest.get(draft.lane, (cache.known, cache.seen))
        memo = cache.memo if saves else None
        rank = None if place is None else place.rank
        short = self._encode_short(draft, known, memo)
        if short is not None:
            return self._body(draft, short[0], again=rank, since=since), short[1], None
        blobs = BlobWriter(
            self._core.storage,
            self._chain.thread,
            known,
            seen if saves else {},
            caches.known_but(draft.lane),
            collected=draft.collected,
        )
        root, world = self._put_blobs(draft, blobs, memo)
        payload = blobs.take_root(root)
        body = self._body(draft, root, blobs.listing(), world=world, again=rank, since=since)
        return body, payload, blobs

    def _find_namesake(self, draft: SaveDraft, key: Key) -> CheckpointRef | CheckpointPlace | None:
        """Return the equal checkpoint of this name, or otherwise the place of the newest one."""
        state = self._state
        place = self._namesake(draft, key)
        if place is None or self._repeated(draft, place) is None:
            return place
        # No write would detect that another process has replaced or deleted it.
        state.refresh()
        state.check_session()
        place = self._namesake(draft, key)
        same = None if place is None else self._repeated(draft, place)
        return place if same is None else same

    def _encode_short(
        self, draft: CommitDraft, known: set[bytes], memo: TreeMemo | None
    ) -> tuple[bytes, bytes] | None:
        """Return root and payload of a state that fits with its entry completely, as most do.

        Returns:
            None if it has more blobs, or is longer.
        """
        if isinstance(draft, SaveDraft) and draft.world is not None:
            return None
        payload = self._core.registry.encode_short(draft.value, memo)
        root = None if payload is None else self._state.caches.take_root(payload, known)
        return None if payload is None or root is None else (root, payload)

    def _put_blobs(
        self, draft: CommitDraft, blobs: BlobWriter, memo: TreeMemo | None
    ) -> tuple[bytes, str | None]:
        """Store the blobs of a draft; return its root, and the name of the checkpoint's world."""
        if memo is not None:
            memo.again = blobs.again
        with blobs:
            root = self._core.registry.encode_tree(
                draft.value, blobs.put, seed=self._chain.thread, memo=memo
            )
            if not isinstance(root, bytes):
                raise UsageError("root: give what put() returned")
            world = draft.world if isinstance(draft, SaveDraft) else None
            return root, None if world is None else blobs.put(world).hex()

    def _since(self, key: Key, place: CheckpointPlace | None) -> int | None:
        """Return the position of the first results that were added before their checkpoint."""
        state = self._state
        if place is not None:
            record, header = self._chain.linked(place.seq, place.entry.hex())
            return state.checkpoint_body(header, record).since
        if not state.checkpoints.is_kept:
            return None
        session = state.session
        if session is None:
            session = self._chain.verified_head().seq + 1  # one that begins with this write
        return state.checkpoints.get().earliest(key, session, state.retention.covers)

    def _body(
        self,
        draft: CommitDraft,
        root: bytes,
        listing: tuple[tuple[str, ...], str | None] = ((), None),
        *,
        world: str | None = None,
        again: int | None = None,
        since: int | None = None,
    ) -> CheckpointBody | ResultsBody:
        core, (fresh, fresh_list) = self._core, listing
        if isinstance(draft, ResultsDraft):
            return ResultsBody(
                salt=core.salt(),
                checkpoint=draft.checkpoint,
                task=draft.task,
                root=root.hex(),
                lane=draft.lane,
                path=draft.path,
                fresh=fresh,
                fresh_list=fresh_list,
                question=draft.question,
                answers=draft.blocked_by_pause,
                origin=draft.origin,
            )
        name = draft.id
        if name is None:
            name = f"{CheckpointId.prefix}:{core.random_hex(CheckpointId.size_bytes)}"
        return CheckpointBody(
            salt=core.salt(),
            id=name,
            root=root.hex(),
            fresh=fresh,
            fresh_list=fresh_list,
            parent=draft.parent,
            metadata=draft.metadata,
            world=world,
            prune=self._state.retention.seq(),
            question=draft.question,
            lane=draft.lane,
            again=again,
            since=since,
            origin=draft.origin,
        )

    def _namesake(self, draft: SaveDraft, key: Key) -> CheckpointPlace | None:
        """Return the newest checkpoint that already has this name, unless it was deleted."""
        return self._state.checkpoints.find(key, rises=draft.supersedes)

    def _repeated(self, draft: SaveDraft, place: CheckpointPlace) -> CheckpointRef | None:
        """Return the checkpoint that already has this name, if it has the same content."""
        state = self._state
        record, header = self._chain.linked(place.seq, place.entry.hex())
        body = state.checkpoint_body(header, record)
        world = None if draft.world is None else blob_digest(draft.world).hex()
        pruned = state.retention.covers(header.seq)
        same = draft.equals_stored(body, world) and self._reader.payloads.is_same(
            draft.value, body, header, None if pruned else record
        )
        if not same:
            if draft.supersedes:
                return None
            raise IdReused(
                f"checkpoint {draft.id!r} of thread {state.name!r}: entry {place.seq} has this "
                "id and another state"
            )
        entry = link_hash(record.header)
        return make_ref(header, body, self._core.writer(header), entry, pruned=pruned)
