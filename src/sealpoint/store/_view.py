# SPDX-License-Identifier: Apache-2.0
"""Reading a thread: load, history, and finding a checkpoint by its id.

The read path is numbered here and in `_chain.py`, in the order of the design: (0) the pin and the
store chain, (1) bounds, (2) strict parsing, (3) signature, (4) place and descent, (5) the anchor,
(6) erased or not, (7) body and blobs against their digests, (8) decoding.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from sealpoint.errors import BytesMalformed, Edited, Missing, SealpointError, UnknownCheckpoint
from sealpoint.ledger import CheckpointBody, Entry, Header, Kind, link_hash, parse_body
from sealpoint.storage import Record
from sealpoint.store._blobs import BlobReader, within_bound
from sealpoint.store._chain import Chain
from sealpoint.store._core import Core
from sealpoint.store._names import check_name
from sealpoint.store._refs import CheckpointRef, Loaded

__all__ = ["ThreadView", "make_ref"]


_WORLD = msgspec.json.Decoder(dict[str, Any])


class ThreadView:
    """What a thread holds, as its newest verified head says. `Thread` adds saving."""

    def __init__(self, core: Core, name: str) -> None:
        self._core = core
        self._name = check_name(name, "thread name")
        self._lock = threading.RLock()
        self._chain = Chain(core, self._name, self._observe)
        self._known: set[bytes] = set()
        """Blobs of the newest checkpoint: those that a save may leave out."""
        self._seen: list[tuple[bytes, bytes]] = []
        """Blobs of the state that this handle saved or loaded last, up to a megabyte, with their
        digests: what they hold is proven, so a save or load need not hash or fetch it again."""
        self._ids: dict[str, int] | None = None
        """Every checkpoint by its id, once somebody has asked for one."""

    @property
    def name(self) -> str:
        """What the application calls the thread."""
        return self._name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}>"

    def load(self, ref: "str | CheckpointRef | None" = None) -> Loaded:
        """Load the newest checkpoint, or the one that `ref` names.

        This is for reading. The handle takes note of what is newest, so that it may save again
        after `HeadMoved` or `Superseded`.

        Raises:
            UnknownThread: Nobody has saved anything under this name.
            UnknownCheckpoint: The thread has no such checkpoint.
            DecodeError: The registry does not allow what was saved.
            Erased: It was erased on purpose.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was;
                nothing was decoded.
        """
        with self._lock:
            try:
                return self._load(ref)
            except SealpointError as error:
                self._refused(error)
                raise

    def _load(self, ref: "str | CheckpointRef | None") -> Loaded:
        # (0) to (5): the store chain, the head, its descent from the anchored entry
        self._look()
        header, record = self._newest() if ref is None else self._named(ref)
        # (6) and (7): erased or not, the body and the blobs against their digests
        body = self._body(header, record)
        root = bytes.fromhex(body.root)
        reader = self._reader(header, record, root)
        # (8) only now decode
        state = self._core.registry.decode_tree(
            root, reader.get, verified=True, get_many=reader.get_many
        )
        world = None
        if body.world is not None:
            world = _decode_world(reader.get(bytes.fromhex(body.world)))
        if ref is None:
            self._known = reader.reached
            if reader.fetched:
                kept = [pair for pair in self._seen if pair[1] in reader.reached]
                self._seen = within_bound([*kept, *reader.fetched])
        self._take_up()
        entry = link_hash(record.header)
        found = make_ref(header, body, self._core.writer(header), entry)
        self._core.emit("loaded", header.thread, header.seq, entry)
        return Loaded(state=state, ref=found, metadata=dict(found.metadata), world=world)

    def history(self) -> Iterator[CheckpointRef]:
        """The checkpoints, newest first. Every link from the head to genesis is walked.

        Raises:
            UnknownThread: Nobody has saved anything under this name.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        with self._lock, self._reporting():
            self._look()
            head = self._chain.verified_head()
        # A view of its own, so that saving goes on while somebody reads.
        view = Chain(self._core, self._name, lambda _entry, _record: None)
        view.bind(self._chain.thread)
        view.head = head
        with self._reporting():
            for header, record in view.walk():
                if header.kind is Kind.CHECKPOINT:
                    yield make_ref(
                        header,
                        self._body(header, record),
                        self._core.writer(header),
                        link_hash(record.header),
                    )

    def _take_up(self) -> None:
        """The caller is given what is newest."""

    def _look(self) -> None:
        """Learn what is newest."""
        self._chain.refresh()

    def _observe(self, entry: Entry, record: Record) -> None:
        """An entry that this handle did not know has been verified."""
        if entry.header.kind is Kind.CHECKPOINT:
            self._known = set()
            if self._ids is not None:
                self._ids[self._body(entry.header, record).id] = entry.seq

    def _newest(self) -> tuple[Header, Record]:
        """The newest checkpoint: mostly the head itself."""
        head, record = self._chain.verified_head(), self._chain.head_record
        if head.header.kind is Kind.CHECKPOINT and record is not None:
            return head.header, record
        for header, found in self._chain.walk():
            if header.kind is Kind.CHECKPOINT:
                self._chain.verify(found, header.seq)
                return header, found
        raise UnknownCheckpoint(f"thread {self._name!r}: expected a checkpoint, found none")

    def _named(self, ref: "str | CheckpointRef") -> tuple[Header, Record]:
        if isinstance(ref, CheckpointRef):
            seq: int | None = ref.seq
            name, entry = ref.id, ref.entry
        else:
            name, entry = check_name(ref, "checkpoint id"), ""
            seq = self._find_id(name, everything=False)
        if seq is not None and 0 <= seq <= self._chain.verified_head().seq:
            # (4) it reaches the verified head; (3) its own signature
            record, header = self._chain.descend(seq)
            self._chain.verify(record, seq)
            same = entry in ("", link_hash(record.header).hex())
            if same and header.kind is Kind.CHECKPOINT and self._body(header, record).id == name:
                return header, record
        raise UnknownCheckpoint(f"thread {self._name!r}: expected checkpoint {name!r}, found none")

    def _find_id(self, name: str, *, everything: bool) -> int | None:
        """The position of a checkpoint by its id, walking back from the head.

        No index is asked: one that hides an entry would make an id look free.
        """
        if self._ids is not None:
            return self._ids.get(name)
        ids: dict[str, int] = {}
        for header, record in self._chain.walk():
            if header.kind is Kind.CHECKPOINT:
                found = self._body(header, record).id
                ids.setdefault(found, header.seq)
                if found == name and not everything:
                    return header.seq
        self._ids = ids
        return ids.get(name)

    def _body(self, header: Header, record: Record) -> CheckpointBody:
        if record.body is None:
            # An erasure would be recorded, and this version knows of none.
            raise Missing(
                f"entry {header.seq} of thread {self._name!r}: expected its body, found none"
            )
        try:
            body: CheckpointBody = parse_body(Kind.CHECKPOINT, header.body, record.body)
        except Edited as exc:
            raise Edited(f"entry {header.seq} of thread {self._name!r}: {exc.message}") from exc
        return body

    def _reader(self, header: Header, record: Record, root: bytes) -> BlobReader:
        return BlobReader(
            self._core.storage,
            self._chain.thread,
            self._core.registry.limits.blob_bytes_max,
            f"entry {header.seq} of thread {self._name!r}",
            (root, record.payload),
            seen=self._seen,
        )

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except SealpointError as error:
            self._refused(error)
            raise

    def _refused(self, error: SealpointError) -> None:
        self._core.emit_refused(error, self._chain.place.thread)


def _decode_world(data: bytes) -> dict[str, Any]:
    try:
        return _WORLD.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise BytesMalformed("world: expected a JSON object, found other bytes") from exc


def make_ref(header: Header, body: CheckpointBody, writer: str, entry: bytes) -> CheckpointRef:
    """The reference to a checkpoint that was verified."""
    return CheckpointRef(
        id=body.id,
        seq=header.seq,
        time=header.at,
        writer=writer,
        metadata=dict(body.metadata or {}),
        entry=entry.hex(),
    )
