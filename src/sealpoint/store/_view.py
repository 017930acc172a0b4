# SPDX-License-Identifier: Apache-2.0
"""Reading a thread: load, history, and finding a checkpoint by its id.

The read path is numbered here and in `_chain.py`, in the order of the design: (0) the pin and the
store chain, (1) bounds, (2) strict parsing, (3) signature, (4) place and descent, (5) the anchor,
(6) erased or not, (7) body and blobs against their digests, (8) decoding.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from sealpoint.errors import (
    BytesMalformed,
    Missing,
    SealpointError,
    UnknownCheckpoint,
    UnknownThread,
)
from sealpoint.ledger import CheckpointBody, Header, Kind, PruneBody, link_hash
from sealpoint.storage import Record
from sealpoint.store._blobs import BlobReader, within_bound
from sealpoint.store._chain import Chain
from sealpoint.store._handle import ThreadHandle
from sealpoint.store._lanes import Key, Place
from sealpoint.store._names import check_name
from sealpoint.store._refs import CheckpointRef, Loaded

__all__ = ["ThreadView", "decode_world", "make_ref"]

_WORLD = msgspec.json.Decoder(dict[str, Any])


class _Found(NamedTuple):
    """A checkpoint whose entry was verified, and whose body is the one that was sealed."""

    header: Header
    record: Record
    body: CheckpointBody
    entry: bytes
    """Its hash."""


class ThreadView(ThreadHandle):
    """What a thread holds, as its newest verified head says. `Thread` adds saving."""

    def load(self, ref: "str | CheckpointRef | None" = None) -> Loaded:
        """Load the newest checkpoint, or the one that `ref` names.

        This is for reading. The handle takes note of what is newest, so that it may save again
        after `HeadMoved` or `Superseded`.

        Raises:
            UnknownThread: Nobody has saved anything under this name.
            UnknownCheckpoint: The thread has no such checkpoint.
            DecodeError: The registry does not allow what was saved.
            Erased: It was erased on purpose.
            Pruned: Its state was given up on purpose.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was;
                nothing was decoded.
        """
        with self._lock:
            try:
                return self._settled(lambda: self._load(ref))
            except SealpointError as error:
                self._refused(error)
                raise

    def _load(self, ref: "str | CheckpointRef | None") -> Loaded:
        # (0) to (5): the store chain, the head, its descent from the anchored entry
        try:
            self._look()
        except UnknownThread:
            # That there is nothing is what the caller is given, and may go on from.
            self._take_up()
            raise
        try:
            # (6) and (7): erased or not, the body against its digest
            header, record, body, entry = self._newest() if ref is None else self._named(ref)
        except UnknownCheckpoint:
            if ref is None:  # as above: all was deleted, or lies in other lanes
                self._take_up()
            raise
        if ref is not None:
            self._require_kept(header)
        root = bytes.fromhex(body.root)
        reader = self._reader(header, record, root)
        # (7) the blobs against their digests, (8) only then decode
        state = self._core.registry.decode_tree(
            root,
            reader.get,
            verified=True,
            get_many=reader.get_many,
            memo=self._trails.of(body.lane).memo if ref is None else None,
        )
        world = None
        if body.world is not None:
            world = decode_world(reader.get(bytes.fromhex(body.world)))
        if ref is None:
            self._remember(body.lane, reader)
        self._take_up()
        found = make_ref(header, body, self._core.writer(header), entry)
        self._core.emit("loaded", header.thread, header.seq, entry)
        return Loaded(
            state=state,
            ref=found,
            metadata=dict(found.metadata),
            world=world,
            question=body.question,
        )

    def history(self) -> Iterator[CheckpointRef]:
        """The checkpoints, newest first. Every link from the head to genesis is walked.

        Raises:
            UnknownThread: Nobody has saved anything under this name.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        with self._lock, self._reporting():
            self._look()
            # A view of its own, so that saving goes on while somebody reads.
            view = Chain(self._core, self._name, lambda _entry, _record: None)
            view.bind(self._chain.thread)
            view.head = self._chain.verified_head()
            listed = self._listed(view)
        with self._reporting():
            try:
                yield from listed
            except Missing:
                self._require_unerased(view)
                raise

    def _require_unerased(self, view: Chain) -> None:
        """Say so if what is missing below an older head has been erased since."""
        with self._lock, suppress(Missing):
            self._look()
            self._require_generation(view.verified_head().header)

    def _listed(self, chain: Chain) -> Iterator[CheckpointRef]:
        """The checkpoints below a chain's verified head; what an erasure took is walked, no more.

        What the newest prune gave up is looked up at once, while the caller holds the lock.
        """
        return self._walked(chain, self._retention())

    def _walked(self, chain: Chain, prune: PruneBody | None) -> Iterator[CheckpointRef]:
        erased, superseded = False, set[Key]()
        for header, record in chain.walk():
            erased = erased or header.kind is Kind.ERASE
            hidden = prune is not None and prune.hides(header.seq)
            if header.kind is not Kind.CHECKPOINT or erased or hidden:
                continue
            body = self._body(header, record)
            key = Key(body.lane, body.id)
            if key not in superseded:
                yield make_ref(
                    header,
                    body,
                    self._core.writer(header),
                    link_hash(record.header),
                    pruned=prune is not None and prune.covers(header.seq),
                )
            if body.again is not None:
                superseded.add(key)

    def _newest(self, lane: str = "") -> _Found:
        """The newest checkpoint of a lane: mostly the head itself."""
        head, record = self._chain.verified_head(), self._chain.head_record
        if head.header.kind is Kind.CHECKPOINT and record is not None:
            body = self._body(head.header, record)
            if body.lane == lane and body.again is None:
                return _Found(head.header, record, body, head.hash)
        if head.header.kind is Kind.ERASE:
            # That there is nothing is what the caller is given, and may go on from.
            self._take_up()
            raise self._erased(head.header)
        place = self._looked_up().newest(lane, self._is_hidden)
        if place is None:
            raise UnknownCheckpoint(f"thread {self._name!r}: expected a checkpoint, found none")
        header, record = self._at(place)
        return _Found(header, record, self._body(header, record), place.entry)

    def _at(self, place: Place) -> tuple[Header, Record]:
        """(3) and (4) The entry at a proven place, and its signature."""
        head, found = self._chain.verified_head(), self._chain.head_record
        if found is not None and place.entry == head.hash:
            return head.header, found
        record, header = self._chain.linked(place.seq, place.entry.hex())
        self._chain.verify(record, place.seq)
        return header, record

    def _named(self, ref: "str | CheckpointRef") -> _Found:
        if isinstance(ref, CheckpointRef):
            seq: int | None = ref.seq
            name, expected = ref.id, ref.entry
        else:
            name, expected = check_name(ref, "checkpoint id"), ""
            self._require_generation(self._chain.verified_head().header)
            place = self._indexed().find(Key("", name))
            seq = None if place is None else place.seq
        if seq is not None and 0 <= seq <= self._chain.verified_head().seq:
            # (4) it reaches the verified head; (3) its own signature
            record, header = self._chain.descend(seq)
            self._chain.verify(record, seq)
            self._require_generation(header)
            entry = link_hash(record.header)
            if expected in ("", entry.hex()) and header.kind is Kind.CHECKPOINT:
                body = self._body(header, record)
                if body.id == name:
                    return _Found(header, record, body, entry)
        raise UnknownCheckpoint(f"thread {self._name!r}: expected checkpoint {name!r}, found none")

    def _remember(self, lane: str, reader: BlobReader) -> None:
        """Keep what was read of the newest state of a lane, for the next save or load."""
        trail = self._trails.of(lane)
        trail.known = reader.reached
        if reader.fetched:
            kept = [pair for pair in trail.seen if pair[1] in reader.reached]
            trail.seen = within_bound([*kept, *reader.fetched])

    def _reader(self, header: Header, record: Record, root: bytes, lane: str = "") -> BlobReader:
        return BlobReader(
            self._core.storage,
            self._chain.thread,
            self._core.registry.limits.blob_bytes_max,
            f"entry {header.seq} of thread {self._name!r}",
            (root, record.payload),
            seen=self._trails.of(lane).seen,
        )


def decode_world(data: bytes) -> dict[str, Any]:
    try:
        return _WORLD.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise BytesMalformed("world: expected a JSON object, found other bytes") from exc


def make_ref(
    header: Header, body: CheckpointBody, writer: str, entry: bytes, *, pruned: bool = False
) -> CheckpointRef:
    """The reference to a checkpoint that was verified."""
    return CheckpointRef(
        id=body.id,
        seq=header.seq,
        time=header.at,
        writer=writer,
        metadata=dict(body.metadata or {}),
        entry=entry.hex(),
        pruned=pruned,
        question=body.question,
        lane=body.lane,
        parent=body.parent,
    )
