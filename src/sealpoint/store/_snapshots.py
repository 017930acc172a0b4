# SPDX-License-Identifier: Apache-2.0
"""Reading a thread as a framework does: checkpoints of a lane with the results added to them.

The read path is that of `_view.py`. Results are taken only from the stretch of the verified chain
that begins where the checkpoint says and ends at the head, so that none can be left out or slipped
in. What is not there is None; what is there and cannot be trusted is an error.
"""

from collections.abc import Iterator
from typing import Any

from sealpoint.errors import BytesMalformed, UnknownThread
from sealpoint.ledger import CheckpointBody, Header, Kind, WritesBody, link_hash
from sealpoint.storage import Record
from sealpoint.store._lanes import Key, Place, entry_body
from sealpoint.store._refs import CheckpointRef, Results, ResultsRef, Snapshot
from sealpoint.store._save_draft import SaveDraft
from sealpoint.store._view import ThreadView, make_ref

__all__ = ["SnapshotView"]


class SnapshotView(ThreadView):
    """A thread whose lanes can be read."""

    def snapshot(self, lane: str = "", id: str | None = None) -> Snapshot | None:  # noqa: A002
        """The newest checkpoint of a lane, or the one of an id, with what was added to it.

        This is for reading. Unlike `load` it does not let a handle that lost the thread go on.

        Returns:
            None if there is none, or it was deleted or given up.

        Raises:
            DecodeError: The registry does not allow what was saved.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was;
                nothing was decoded.
        """
        with self._lock, self._reporting():
            return self._settled(lambda: self._snapshot(lane, id))

    def snapshots(self, lane: str | None = None) -> Iterator[CheckpointRef]:
        """The checkpoints of a lane, or of all, that still have their state, newest first.

        Raises:
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        with self._lock, self._reporting():
            if not self._find_head():
                return
            index = self._indexed()
            lanes = index.lanes() if lane is None else [lane]
            places = [place for each in lanes for place in index.each(each, self._is_given_up)]
        for place in sorted(places, key=lambda found: found.first, reverse=True):
            with self._lock, self._reporting():
                record, header = self._chain.linked(place.seq, place.entry.hex())
                ref = self._ref(header, record)
            yield ref  # without the lock: who reads may be slow, or another OS thread next time

    def _snapshot(self, lane: str, name: str | None) -> Snapshot | None:
        # (0) to (5): the store chain, the head, its descent from the anchored entry
        return self._read(lane, name) if self._find_head() else None

    def _read(self, lane: str, name: str | None) -> Snapshot | None:
        """Read below the verified head."""
        index = self._indexed()
        if name is None:
            place = index.newest(lane, self._is_given_up)
        else:
            place = index.find(Key(lane, name))
        if (held := self._held(lane, name, place)) is not None:
            return self._held_snapshot(lane, held)
        # (6) deleted, given up or superseded
        if place is None or self._is_given_up(place.seq):
            return None
        header, record = self._at(place)
        body = self._body(header, record)
        # (7) and (8): the bodies and blobs against their digests, then the decoding
        state = self._decoded(header, record, body, keep=name is None)
        results = tuple(self._result(found) for found in self._added(place, body))
        return Snapshot(state=state, ref=self._ref(header, record), results=results)

    def held_back(self) -> list[SaveDraft]:
        """Checkpoints that a pause held back and that are still to be saved, oldest first."""
        # Without the lock: who asks before each save must not wait for the one before it.
        index = self._index
        if index is None or not index.any_held:
            return []
        with self._lock, self._reporting():
            if not self._find_head():
                return []
            index = self._indexed()
            found = [
                place
                for lane in index.held_lanes()
                for place in index.held(lane, self._rank(index.newest(lane, self._is_given_up)))
                if not self._is_given_up(place.seq)
            ]
            return [self._saved_later(place) for place in sorted(found)]

    def _held(self, lane: str, name: str | None, place: Place | None) -> Place | None:
        """A checkpoint that was held back and is newer than what is there, or has the name."""
        index = self._indexed()
        newest = index.newest(lane, self._is_given_up)
        for held in reversed(index.held(lane, self._rank(newest))):
            if not self._is_given_up(held.seq) and name in (None, held.id):
                return held if name is None or place is None else None
        return None

    def _rank(self, place: Place | None) -> int:
        return -1 if place is None else place.first

    def _held_snapshot(self, lane: str, held: Place) -> Snapshot:
        header, record = self._at(held)
        body = self._results_body(header, record)
        value = self._decoded(header, record, body, keep=False)
        if not isinstance(value, dict) or value.keys() != {"state", "parent", "metadata"}:
            raise BytesMalformed(
                f"entry {header.seq} of thread {self._name!r}: expected a checkpoint that was held "
                "back, found another value"
            )
        ref = CheckpointRef(
            id=held.id,
            seq=header.seq,
            time=header.at,
            writer=self._core.writer(header),
            metadata=dict(value["metadata"] or {}),
            entry=held.entry.hex(),
            question=body.question,
            lane=lane,
            parent=value["parent"],
        )
        added = self._indexed().results(Key(lane, held.id), 0)
        results = tuple(self._result(found) for found in self._living(added))
        return Snapshot(state=value["state"], ref=ref, results=results)

    def _saved_later(self, held: Place) -> SaveDraft:
        header, record = self._at(held)
        lane = self._results_body(header, record).lane
        found = self._held_snapshot(lane, held)
        return SaveDraft(
            found.state,
            found.ref.id,
            found.ref.parent,
            found.ref.metadata,
            None,
            question=found.ref.question,
            lane=lane,
            supersedes=True,
        )

    def _find_head(self) -> bool:
        """Look; False if the thread holds nothing."""
        try:
            self._look()
        except UnknownThread:
            return False
        return self._holds()

    def _holds(self) -> bool:
        """Whether there is anything below the head that was found."""
        head = self._chain.head
        return head is not None and head.header.kind is not Kind.ERASE

    def _added(self, place: Place, body: CheckpointBody) -> list[Place]:
        """Where the results lie that were added to a checkpoint."""
        since = place.first if body.since is None else body.since
        return self._living(self._looked_up().results(Key(body.lane, body.id), since))

    def _living(self, results: list[Place]) -> list[Place]:
        """Those that were not given up, without checkpoints that were held back."""
        return [place for place in results if not place.held and not self._is_given_up(place.seq)]

    def _pending_question(self, header: Header, body: CheckpointBody) -> Any:
        """What a checkpoint, or tasks that go on from it, wait for somebody to answer."""
        if body.question is not None:
            return body.question
        if header.seq == self._chain.verified_head().seq and body.since is None:
            return None  # nothing has been added yet
        waiting: dict[str, Any] = {}
        first = header.seq if body.again is None else body.again
        places = self._added(Place(header.seq, b"", body.id, first), body)
        # A checkpoint that was held back, or is still on its way, may wait as well.
        places += [
            place
            for place in self._looked_up().asking(body.lane, first)
            if not self._is_given_up(place.seq)
        ]
        for found in places:
            record, result_header = self._chain.linked(found.seq, found.entry.hex())
            result = self._results_body(result_header, record)
            if not result.answers:
                waiting[result.task] = result.question
        questions = [question for question in waiting.values() if question is not None]
        return questions or None

    def _result(self, place: Place) -> Results:
        header, record = self._at(place)
        body = self._results_body(header, record)
        return Results(
            task=body.task,
            path=body.path,
            value=self._decoded(header, record, body, keep=False),
            ref=ResultsRef(seq=header.seq, entry=place.entry.hex()),
            question=body.question,
            answers=body.answers,
        )

    def _results_body(self, header: Header, record: Record) -> WritesBody:
        body: WritesBody = entry_body(self._name, header, record.body)
        return body

    def _decoded(
        self, header: Header, record: Record, body: CheckpointBody | WritesBody, *, keep: bool
    ) -> Any:
        root = bytes.fromhex(body.root)
        reader = self._reader(header, record, root, body.lane)
        value = self._core.registry.decode_tree(
            root,
            reader.get,
            verified=True,
            get_many=reader.get_many,
            memo=self._trails.of(body.lane).memo if keep else None,
        )
        if keep:
            self._remember(body.lane, reader)
        return value

    def _ref(self, header: Header, record: Record) -> CheckpointRef:
        body = self._body(header, record)
        return make_ref(header, body, self._core.writer(header), link_hash(record.header))

    def _is_given_up(self, seq: int) -> bool:
        prune = self._retention()
        return prune is not None and prune.covers(seq)
