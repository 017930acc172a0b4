# SPDX-License-Identifier: Apache-2.0
"""Reading a thread: states, lists of checkpoints, and releases.

The read path is numbered here and in `_verified_chain.py`, in the order of the design: (0) the pin
and the store chain, (1) bounds, (2) strict parsing, (3) signature, (4) place and descent, (5) the
anchor, (6) erased, deleted, pruned or superseded, (7) body and blobs against their digests, (8)
decoding. A read writes nothing but the anchor's record of the verified position; it begins, ends
and judges no session. Results are read only from the stretch of the verified chain from the
position that the checkpoint names to the head, so none can be left out or inserted.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from sealpoint.errors import (
    BytesMalformed,
    Misplaced,
    Missing,
    NotTrusted,
    ResumeRefused,
    SealpointError,
    Superseded,
    UnknownCheckpoint,
    UnknownThread,
)
from sealpoint.ledger import (
    KINDS,
    CheckpointBody,
    Entry,
    Header,
    Kind,
    PruneBody,
    ResultsBody,
    ResumeBody,
    StoreChain,
    check_pause,
    check_session,
    check_world,
    link_hash,
    parse_header,
)
from sealpoint.limits import WORLD_BYTES_MAX
from sealpoint.storage import Record
from sealpoint.store._blobs import BlobReader, PayloadReader
from sealpoint.store._checkpoint_index import (
    CheckpointIndex,
    CheckpointPlace,
    Gone,
    Key,
    ResultPlace,
    checkpoint_place,
    require_named,
    require_newest_kept,
)
from sealpoint.store._lane_descent import LaneDescent
from sealpoint.store._names import check_name
from sealpoint.store._release import PendingResult, Release, make_release, pending_result
from sealpoint.store._return_values import CheckpointRef, Loaded, Results, ResultsRef, Snapshot
from sealpoint.store._store_parts import Core
from sealpoint.store._thread_state import ThreadState, make_ref
from sealpoint.store._unvouched_entries import judge_unvouched
from sealpoint.store._verified_chain import Chain, entry_body

_WORLD = msgspec.json.Decoder(dict[str, Any])
_OPENINGS_MAX = 8


class _FoundCheckpoint(NamedTuple):
    """A checkpoint with a verified entry and a body that matches the signed digest."""

    header: Header
    record: Record
    body: CheckpointBody
    entry: bytes
    """Its hash."""

    @property
    def place(self) -> CheckpointPlace:
        return checkpoint_place(self.header, self.entry, self.body)

    def is_of(self, ref: CheckpointRef) -> bool:
        return ref.id == self.body.id and ref.entry in ("", self.entry.hex())

    def ref(self, core: Core) -> CheckpointRef:
        return make_ref(self.header, self.body, core.writer(self.header), self.entry)


class RunScope:
    """The checkpoints that a current run may read: those released to it, and its own.

    Args:
        state: The state of the handle.
        lanes: Says what comes along in other lanes.
    """

    def __init__(self, state: ThreadState, lanes: LaneDescent) -> None:
        self._state = state
        self._lanes = lanes
        self._released = state.released
        self._session = state.session

    def came_along(self, lane: str, seq: int) -> bool:
        """Whether an entry of a lane comes with what was released to the run, or is its own.

        Before the session has begun, that is the newest checkpoint of the main lane.
        """
        if not lane:
            return True
        if self._released is not None and self._session is not None:
            return self._lanes.reaches(seq, self._released.session)
        session = self._session
        if session is None:
            main = self._state.checkpoints.newest("")
            session = None if main is None else main.session
        return session is not None and self._lanes.reaches(seq, session)

    def is_gone_from(self, lane: str, is_given_up: Gone) -> Gone:
        """Return the function that says whether an entry was given up, or never came along."""
        return lambda seq: is_given_up(seq) or not self.came_along(lane, seq)

    def find_name(self, lane: str, name: str | None) -> str | None:
        """Return the checkpoint that the run continues from, which may not be the newest.

        Once the run has saved in the lane, and for any other lane, the requested name is returned.
        """
        if name is None and self._released is not None and lane == self._released.lane:
            place = self._state.checkpoints.newest(lane)
            if place is not None and place.seq < (self._session or 0):
                return self._released.id
        return name

    def find_earlier(self, lane: str, name: str | None) -> Release | None:
        """Return the release, if another checkpoint replaced its name before the run began."""
        released = self._released
        if released is None or (lane, name) != (released.lane, released.id):
            return None
        place = self._state.checkpoints.find(Key(lane, released.id))
        if place is None or place.seq >= (self._session or 0):
            return None
        return None if place.entry.hex() == released.entry else released

    def includes(self, lane: str, name: str | None) -> bool:
        """Whether a checkpoint of a lane was released to the run, or the run saved it itself.

        Raises:
            Superseded: The newest checkpoint of the lane was deleted since the run began.
            ResumeRefused: Another checkpoint was released to the run.
        """
        state = self._state
        index = state.checkpoints.get()
        place = index.newest(lane, self.is_gone_from(lane, state.retention.deletes))
        if self._session is None:
            # Nothing is written yet: the gate decided about the main lane, if it has a checkpoint,
            # and has judged earlier deletions.
            return not lane or index.newest("", state.retention.deletes) is not None
        if name is None:
            self._require_undeleted(lane, place)
        found = place if name is None else index.find(Key(lane, name))
        if found is None or found.seq > self._session:
            return True
        if self._released is None or not self.came_along(lane, found.seq):
            return False
        self._require_released(self._released, found, name)
        return True

    def require_left(self, place: CheckpointPlace | ResultPlace) -> None:
        """Refuse to continue without an entry from before the run: its work would be repeated.

        A prune keeps the newest of a lane and all results of the checkpoints it keeps. A process
        with other code, or a deletion, may have removed them since.

        Raises:
            Superseded: The entry was removed since.
        """
        state = self._state
        if self._session is None or not state.retention.covers(place.seq):
            return
        before = state.removals_at_resume()
        if before is None or not before.covers(place.seq):
            raise Superseded(
                f"thread {state.name!r}: entry {place.seq} of checkpoint {place.key.id!r} was "
                "given up after the run began"
            )

    def _require_undeleted(self, lane: str, left: CheckpointPlace | None) -> None:
        """Refuse to continue if a checkpoint newer than the remaining ones was deleted since."""
        state = self._state
        now, before = state.retention.newest(), state.removals_at_resume()
        first = None if now is None or now is before else now.newly_deleted(before)
        if now is None or first is None:
            return
        for each in state.checkpoints.get().saved_after(first - 1):
            was_there = before is None or not before.deletes(each.seq)
            newer = left is None or each.rank > left.rank
            taken = newer and was_there and now.deletes(each.seq)
            if each.key.lane == lane and taken and self.came_along(lane, each.seq):
                raise Superseded(
                    f"thread {state.name!r}: checkpoint {each.key.id!r} was deleted after the "
                    "run began, and what is left is older"
                )

    def _require_released(
        self, released: Release, place: CheckpointPlace, name: str | None
    ) -> None:
        """Refuse a checkpoint from before the run that was not released to it."""
        state, lane, session = self._state, place.key.lane, self._session or 0
        if lane == released.lane:
            fits = place.entry.hex() == released.entry
        elif name is None or not released.newest:
            fits = True  # the checkpoints of other lanes come with it
        else:
            is_gone = self.is_gone_from(lane, state.retention.deletes)
            newest = state.checkpoints.get().newest(lane, lambda seq: seq > session or is_gone(seq))
            fits = place == newest or state.released_lanes.get(lane) == name
        if not fits:
            where = f" of lane {lane!r}" if lane else ""
            raise ResumeRefused(
                f"thread {state.name!r}: checkpoint {place.key.id!r}{where} is not the one that "
                "was decided about",
                hint="Resume from the very checkpoint that the run is to resume from.",
            )


class ThreadReader:
    """Reads the contents of a thread, below its newest verified head."""

    def __init__(self, state: ThreadState) -> None:
        self._state = state
        self._core = state.core
        self._chain = state.chain
        self.payloads = PayloadReader(state.core, state.chain, state.caches)
        self._openings: tuple[StoreChain | None, dict[int, tuple[Entry, ResumeBody]]] = None, {}
        """The proven openings, with the store chain used: a restore makes a new chain."""
        self._lanes = LaneDescent(state.chain, self.opening)

    # ------------------------------------------------------------------ loading

    def load(self, ref: "str | CheckpointRef | None") -> Loaded:
        """Load the newest checkpoint, or the one that `ref` names; see `Thread.load`."""
        state = self._state
        with state.lock:  # as `reporting` does, without its cost
            try:
                return state.retry_if_pruned(lambda: self._load(ref))
            except SealpointError as error:
                state.report(error)
                raise

    def _load(self, ref: "str | CheckpointRef | None") -> Loaded:
        # (0) to (5): the store chain, the head, its descent from the anchored entry
        try:
            self._state.refresh()
        except UnknownThread:
            # The caller learns that the thread is empty, and may continue from that.
            self._state.mark_seen()
            raise
        # (6) and (7): a checkpoint that has its state, and its body against its digest
        if ref is not None:
            found = self._named(ref)
            self._require_kept(found.place)
        else:
            try:
                found = self._newest()
            except UnknownCheckpoint:  # as above: all was deleted, or is in other lanes
                self._state.mark_seen()
                raise
        loaded = self._read_loaded(found, keep=ref is None)
        self._state.mark_seen()
        return loaded

    def _newest(self) -> _FoundCheckpoint:
        """Return the newest checkpoint of the main lane, which is usually the head itself."""
        head, record = self._chain.verified_head(), self._chain.head_record
        if KINDS[head.header.kind].is_checkpoint and record is not None:
            body = self._state.checkpoint_body(head.header, record)
            if not body.lane and body.again is None:
                if body.prune is not None:
                    self._state.retention.newest()  # must be readable, as for a release
                return _FoundCheckpoint(head.header, record, body, head.hash)
        if head.header.kind is Kind.ERASE:
            self._state.mark_seen()
            raise self._state.erased(head.header)
        place = self._newest_place(self._state.checkpoints.get(keep=False), "")
        if place is None:
            raise UnknownCheckpoint(f"thread {self._state.name!r}: it has no checkpoint")
        return self._at(place.seq, place.entry)

    def _newest_place(self, index: CheckpointIndex, lane: str) -> CheckpointPlace | None:
        """(6) Return the newest checkpoint of a lane that has its state."""
        self._require_newest_kept(index, lane)
        return index.newest(lane, self._state.retention.covers)

    def _require_newest_kept(self, index: CheckpointIndex, lane: str) -> None:
        """(6) Refuse a lane that lost its newest checkpoint to a prune."""
        seq, removals = self._state.retention.seq(), self._state.retention.newest()
        if seq is not None and removals is not None:
            require_newest_kept(self._chain, index, lane, (seq, removals))

    def _require_kept(self, place: CheckpointPlace) -> None:
        """(6) Refuse a checkpoint that has lost its state by a prune or deletion."""
        if self._is_pruned(place):
            self._require_newest_kept(self._state.checkpoints.get(), place.key.lane)
        self._state.retention.require_kept(place.seq)

    def _is_pruned(self, place: CheckpointPlace) -> bool:
        retention = self._state.retention
        return retention.covers(place.seq) and not retention.deletes(place.seq)

    def _at(self, seq: int, entry: bytes) -> _FoundCheckpoint:
        header, record = self._entry_at(seq, entry)
        return _FoundCheckpoint(header, record, self._state.checkpoint_body(header, record), entry)

    def _entry_at(self, seq: int, entry: bytes) -> tuple[Header, Record]:
        """(3) and (4) Return the entry at a proven place, after its signature was checked."""
        head, found = self._chain.verified_head(), self._chain.head_record
        if found is not None and entry == head.hash:
            return head.header, found
        record, header = self._chain.linked(seq, entry.hex())
        self._chain.verify(record, seq)
        _check_session_key(self._chain, header)
        if KINDS[header.kind].only_paused:
            paused = self._chain.descend(header.pause)[1].kind is Kind.PAUSE
            check_pause(header, header.pause if paused else None)
        return header, record

    def _named(self, ref: "str | CheckpointRef") -> _FoundCheckpoint:
        head = self._chain.verified_head()
        if isinstance(ref, CheckpointRef):
            name, found = ref.id, _at_position(self._state, ref.seq)
            if found is not None and found.is_of(ref):
                return found
        else:
            name = check_name(ref, "checkpoint id")
            self._state.require_generation(head.header)
            place = self._state.checkpoints.get().find(Key("", name))
            if place is not None:
                return self._at(place.seq, place.entry)
        raise UnknownCheckpoint(f"thread {self._state.name!r}: it has no checkpoint {name!r}")

    # ------------------------------------------------------------------ releases

    def release(self, ref: "str | CheckpointRef | None" = None) -> Release:
        """Make the release of the newest checkpoint, or of `ref`.

        It is made below the head of the last refresh; the caller refreshes first.

        Raises:
            UnknownCheckpoint, Erased, Pruned: There is nothing to resume from.
        """
        state = self._state
        index = state.checkpoints.get(keep=False)
        if ref is None:
            state.require_generation(self._chain.verified_head().header)
            target = self._newest_place(index, "")
            if target is None:
                raise UnknownCheckpoint(f"thread {state.name!r}: it has no checkpoint")
        else:
            target = self._named(ref).place
            self._require_kept(target)
        self._require_world(target)
        for lane in index.busy_lanes(target.rank, state.retention.covers):
            self._require_newest_kept(index, lane)
        return make_release(index, target, state.release_position())

    def _require_world(self, target: CheckpointPlace) -> None:
        """Refuse a checkpoint that names another world than its session does."""
        fence = self._chain.in_force().fence
        session = fence.world
        if target.entry != self._chain.verified_head().hash:
            record, header = self._chain.linked(target.seq, target.entry.hex())
            self._chain.verify(record, target.seq)
            _check_session_key(self._chain, header)
            if not target.session == fence.seq < target.seq:
                session = self.saved_in(header, record)[1].world
        check_world(f"entry {target.seq} of thread {self._state.name!r}", target.world, session)

    def saved_in(self, header: Header, record: Record) -> tuple[Entry, ResumeBody]:
        """Return the resume that began the session in which a checkpoint was saved.

        Its writer may have named an earlier session than its own, and hidden that below later
        entries of its own. So the entries between are read, unless this store's own key saved it.

        Raises:
            NotTrusted: It was saved in another session than it names, or by another key.
        """
        entry = self._chain.verify(record, header.seq)
        opened = self.opening(header.fence)
        signer = self._core.parts.signer
        found = header.fence
        if signer is None or header.by != signer.key:
            below = (each for each, _ in self._chain.walk(header))
            found = next(each.seq for each in below if KINDS[each.kind].sets_fence)
        where = f"entry {header.seq} of thread {self._state.name!r}"
        if found != header.fence:
            raise NotTrusted(
                f"{where}: it says that it was saved in session {header.fence}, and entry {found} "
                "lies between"
            )
        if opened[0].header.by != entry.header.by:
            raise NotTrusted(f"{where}: expected the key that opened session {found}")
        return opened

    def opening(self, session: int) -> tuple[Entry, ResumeBody]:
        """Return the resume that began a session, verified on its own.

        Raises:
            Misplaced: The entry is not a resume.
            Missing: Its body is missing.
        """
        trust = self._chain.trust.get()
        if self._openings[0] is not trust:
            self._openings = trust, {}
        openings = self._openings[1]
        known = openings.pop(session, None)
        if known is not None:
            openings[session] = known  # the most recently used one goes last
            return known
        followed = self._state.resume
        if followed is not None and followed[0] == session:
            record, header = followed[1], parse_header(followed[1].header)
        else:
            record, header = self._chain.descend(session)
        entry = self._chain.verify(record, session)
        if header.kind is not Kind.RESUME:
            raise Misplaced(
                f"entry {session} of thread {self._state.name!r}: expected a resume, found a "
                f"{header.kind.word}"
            )
        body: ResumeBody = entry_body(self._state.name, header, record.body)
        if len(openings) >= _OPENINGS_MAX:
            openings.pop(next(iter(openings)))
        openings[session] = entry, body
        return entry, body

    def release_of(self, entry: str) -> Release | None:
        """Make the release of the checkpoint with an entry hash; None if it does not exist."""
        removals = self._state.retention.newest()
        for ref in list_checkpoints(self._state, self._chain, removals, superseded_too=True):
            if ref.entry == entry:
                return None if ref.pruned else self.release(ref)
        return None

    def read_loaded(self, release: Release) -> Loaded:
        """Read the state of a release, and of nothing else."""
        found = self._at(release.seq, bytes.fromhex(release.entry))
        return self._read_loaded(found, keep=release.newest, question=release.question)

    def read_snapshot(self, release: Release) -> Snapshot:
        """Read the state of a release with the results that are part of it."""
        found = self._at(release.seq, bytes.fromhex(release.entry))
        return Snapshot(
            state=self.payloads.decode(found.header, found.record, found.body, keep=release.newest),
            ref=found.ref(self._core),
            results=tuple(self.read_result(each) for each in release.results),
        )

    def question(self) -> Any:
        """Return the question that the thread waits for; None if there is none."""
        with self._state.reporting():
            if not self._state.find():
                return None
            try:
                return self._state.retry_if_pruned(self.release).question
            except UnknownCheckpoint:
                return None

    def read_world(self, release: Release) -> dict[str, Any] | None:
        """Return the capabilities of the run when the state of a release was saved."""
        if release.world is None:
            return None
        found = self._at(release.seq, bytes.fromhex(release.entry))
        return _world(found, self.payloads.blobs(found.header, found.record, found.body))

    def read_result(self, result: PendingResult) -> Results:
        """Return the output of a task that is part of a release."""
        header, record = self._entry_at(result.seq, bytes.fromhex(result.entry))
        body: ResultsBody = entry_body(self._state.name, header, record.body)
        return Results(
            task=result.task,
            path=result.path,
            value=self.payloads.decode(header, record, body, keep=False),
            ref=ResultsRef(seq=result.seq, entry=result.entry),
            question=result.question,
            answers=result.answers,
        )

    def read_pending(self, result: PendingResult) -> Results:
        """Return the output of a task, after a refresh, for display; see `Thread.read_result`."""
        with self._state.reporting():
            self._state.refresh()
            return self.read_result(result)

    def ref_of(self, release: Release) -> CheckpointRef:
        """Return the checkpoint of a release, without its state; see `Thread.ref_of`."""
        with self._state.reporting():
            self._state.refresh()
            return self._at(release.seq, bytes.fromhex(release.entry)).ref(self._core)

    # ------------------------------------------------------------------ snapshots of lanes

    def snapshot(
        self, lane: str, name: str | None, *, running: bool, session: int | None
    ) -> Snapshot | None:
        """Return a checkpoint of a lane with all additions; see `AdapterThread.snapshot`."""
        with self._state.reporting():
            return self._state.retry_if_pruned(
                lambda: self._snapshot(lane, name, running=running, session=session)
            )

    def _snapshot(
        self, lane: str, name: str | None, *, running: bool, session: int | None
    ) -> Snapshot | None:
        # (0) to (5): the store chain, the head, its descent from the anchored entry
        holds = self._state.find()
        if not running:
            return self.read_lane(lane, name) if holds else None
        if self._chain.head is not None:
            self._state.require_session(session)
        if not holds:
            return None
        judge_unvouched(self._chain)
        scope = RunScope(self._state, self._lanes)
        name = scope.find_name(lane, name)
        released = scope.find_earlier(lane, name)
        if released is not None:
            # Its name was saved again before the run: the gate decided about the earlier one.
            found = self._at(released.seq, bytes.fromhex(released.entry))
            scope.require_left(found.place)
            return self._with_results(found, keep=False, scope=scope)
        return self.read_lane(lane, name, scope) if scope.includes(lane, name) else None

    def read_lane(
        self, lane: str, name: str | None, scope: RunScope | None = None
    ) -> Snapshot | None:
        """Read a lane below the verified head; with a scope, for a current run."""
        state = self._state
        index = state.checkpoints.get()
        if name is not None:
            place = index.find(Key(lane, name))
        elif scope is None:
            place = self._newest_place(index, lane)
        else:
            self._require_newest_kept(index, lane)
            place = index.newest(lane, scope.is_gone_from(lane, state.retention.covers))
        # (6) deleted, pruned or superseded
        if place is not None and state.retention.covers(place.seq):
            if self._is_pruned(place):
                self._require_newest_kept(index, lane)
            if scope is not None:
                scope.require_left(place)
            return None
        if place is None:
            return None
        return self._with_results(self._at(place.seq, place.entry), keep=name is None, scope=scope)

    def _with_results(
        self, found: _FoundCheckpoint, *, keep: bool, scope: RunScope | None = None
    ) -> Snapshot:
        """(7) and (8): check the bodies and blobs against their digests, then decode."""
        state, place = self._state, found.place
        places = state.checkpoints.get().results(place.key, place.since)
        if scope is not None:
            places = [each for each in places if scope.came_along(each.key.lane, each.seq)]
            for each in places:
                scope.require_left(each)
        value = self.payloads.decode(found.header, found.record, found.body, keep=keep)
        results = (
            self.read_result(pending_result(each))
            for each in places
            if not state.retention.covers(each.seq)
        )
        return Snapshot(state=value, ref=found.ref(self._core), results=tuple(results))

    def snapshots(self, lane: str | None, *, by_id: bool = False) -> Iterator[CheckpointRef]:
        """Yield the checkpoints of a lane, or of all, that still have their state, newest first."""
        state = self._state
        with state.reporting():
            if not state.find():
                return
            index = state.checkpoints.get()
            lanes = index.lanes() if lane is None else [lane]
            for each in lanes:
                self._require_newest_kept(index, each)
            places = [place for each in lanes for place in index.each(each, state.retention.covers)]
        places.sort(key=_id_of if by_id else _rank_of, reverse=True)
        for place in places:
            with state.reporting():
                record, header = self._chain.linked(place.seq, place.entry.hex())
                body = state.checkpoint_body(header, record)
                ref = _FoundCheckpoint(header, record, body, place.entry).ref(self._core)
            yield ref  # without the lock: the consumer may be slow, or switch OS threads

    # ------------------------------------------------------------------ history

    def history(self) -> Iterator[CheckpointRef]:
        """Yield the checkpoints, newest first; checks every link from the head to genesis."""
        state = self._state
        with state.reporting():
            state.refresh()
            # A separate chain, so that saves can continue during the iteration.
            view = Chain(self._core, state.name)
            view.bind(self._chain.thread)
            view.head = self._chain.verified_head()
            removals = state.retention.newest()
        try:
            yield from list_checkpoints(state, view, removals)
        except SealpointError as error:
            if isinstance(error, Missing):
                self._require_unerased(view)
            state.report(error)
            raise

    def _require_unerased(self, view: Chain) -> None:
        """Raise `Erased` if the entries missing below an older head have been erased since."""
        with self._state.reporting(), suppress(Missing):
            self._state.refresh()
            self._state.require_generation(view.verified_head().header)

    # ------------------------------------------------------------------ decoding

    def _read_loaded(self, found: _FoundCheckpoint, *, keep: bool, question: Any = None) -> Loaded:
        header, record, body, entry = found
        blobs = self.payloads.blobs(header, record, body)
        value = self.payloads.decode(header, record, body, keep=keep, blobs=blobs)
        ref = found.ref(self._core)
        self._core.emit("loaded", header.thread, header.seq, entry)
        return Loaded(
            state=value,
            ref=ref,
            metadata=dict(ref.metadata),
            world=_world(found, blobs),
            question=body.question if question is None else question,
        )


def _check_session_key(chain: Chain, header: Header) -> None:
    """Check rule 6, for the session in force; `saved_in` checks it for earlier sessions."""
    fence = chain.in_force().fence
    if header.fence == fence.seq < header.seq:
        check_session(header, fence)


def _at_position(state: ThreadState, seq: int) -> _FoundCheckpoint | None:
    """Return the checkpoint at a position below the verified head; None if there is none."""
    chain = state.chain
    if not 0 <= seq <= chain.verified_head().seq:
        return None
    # (4) it is an ancestor of the verified head; (3) its own signature
    record, header = chain.descend(seq)
    chain.verify(record, seq)
    state.require_generation(header)
    if not KINDS[header.kind].is_checkpoint:
        return None
    _check_session_key(chain, header)
    body = state.checkpoint_body(header, record)
    return _FoundCheckpoint(header, record, body, link_hash(record.header))


def checkpoint_at(state: ThreadState, seq: int) -> CheckpointRef:
    """Return the checkpoint at a position, without its state; see `Thread.checkpoint_at`."""
    with state.reporting():
        state.refresh()
        found = _at_position(state, seq)
        if found is None or state.retention.deletes(seq):
            raise UnknownCheckpoint(
                f"thread {state.name!r}: it has no checkpoint at position {seq}"
            )
        ref = found.ref(state.core)
        return msgspec.structs.replace(ref, pruned=state.retention.covers(seq))


def list_checkpoints(
    state: ThreadState,
    chain: Chain,
    removals: PruneBody | None,
    *,
    superseded_too: bool = False,
) -> Iterator[CheckpointRef]:
    """Yield the checkpoints below a verified head; erased entries are walked, but not shown."""
    superseded = set[Key]()
    above: CheckpointBody | None = None
    erased = False
    for header, record in chain.walk():
        erased = erased or header.kind is Kind.ERASE
        if KINDS[header.kind].is_retention and not erased:
            require_named(above, header.seq)
        deleted = removals is not None and removals.deletes(header.seq)
        if not KINDS[header.kind].is_checkpoint or erased or deleted:
            continue
        _check_session_key(state.chain, header)
        body = state.checkpoint_body(header, record)
        require_named(above, body.prune)
        above = body
        key = Key(body.lane, body.id)
        if superseded_too or key not in superseded:
            yield make_ref(
                header,
                body,
                state.core.writer(header),
                link_hash(record.header),
                pruned=removals is not None and removals.covers(header.seq),
            )
        if body.again is not None:
            superseded.add(key)


def _world(found: _FoundCheckpoint, blobs: BlobReader) -> dict[str, Any] | None:
    world = found.body.world
    return None if world is None else decode_world(blobs.get(bytes.fromhex(world)))


def decode_world(data: bytes) -> dict[str, Any]:
    """Decode a world.

    Raises:
        BytesMalformed: It is not a JSON object.
    """
    try:
        return _WORLD.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise BytesMalformed(
            f"world: expected a JSON object, found {len(data)} bytes that are not one"
        ) from exc


def read_world(core: Core, thread: bytes, digest: str) -> dict[str, Any] | None:
    """Return a world that a checkpoint names; None if it was pruned, or is invalid."""
    data = core.storage.blob(thread, bytes.fromhex(digest), WORLD_BYTES_MAX)
    if data is None or hashlib.sha256(data).hexdigest() != digest:
        return None  # `verify` reports a blob that is missing without a prune
    try:
        return decode_world(data)
    except BytesMalformed:
        return None


def _id_of(place: CheckpointPlace) -> str:
    return place.key.id


def _rank_of(place: CheckpointPlace) -> int:
    return place.rank
