# SPDX-License-Identifier: Apache-2.0
"""Reading a thread: load, history, and finding a checkpoint by its id.

The read path is numbered here and in `_chain.py`, in the order of the design: (0) the pin and the
store chain, (1) bounds, (2) strict parsing, (3) signature, (4) place and descent, (5) the anchor,
(6) erased or not, (7) body and blobs against their digests, (8) decoding.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import msgspec

from sealpoint.errors import (
    BytesMalformed,
    Edited,
    Erased,
    Misplaced,
    Missing,
    Pruned,
    SealpointError,
    UnknownCheckpoint,
    UnknownThread,
)
from sealpoint.ledger import (
    CheckpointBody,
    Entry,
    Header,
    Kind,
    PruneBody,
    link_hash,
    parse_body,
)
from sealpoint.storage import Record
from sealpoint.store._blobs import BlobReader, within_bound
from sealpoint.store._chain import Chain
from sealpoint.store._core import Core
from sealpoint.store._names import check_name
from sealpoint.store._refs import CheckpointRef, Loaded

__all__ = ["ThreadView", "decode_world", "make_ref"]

_T = TypeVar("_T")

_WORLD = msgspec.json.Decoder(dict[str, Any])
_RETENTION = frozenset({Kind.CHECKPOINT, Kind.PRUNE, Kind.ERASE, Kind.GENESIS})


class ThreadView:
    """What a thread holds, as its newest verified head says. `Thread` adds saving."""

    _called = "Thread"
    """What a handle calls itself, whichever of our classes it is."""

    def __init__(self, core: Core, name: str) -> None:
        self._core = core
        self._name = check_name(name, "thread name")
        self._lock = threading.RLock()
        self._chain = Chain(core, self._name, self._observe, self._cut_off)
        self._known: set[bytes] = set()
        """Blobs of the newest checkpoint: those that a save may leave out."""
        self._seen: list[tuple[bytes, bytes]] = []
        """Blobs of the state that this handle saved or loaded last, up to a megabyte, with their
        digests: what they hold is proven, so a save or load need not hash or fetch it again."""
        self._ids: dict[str, int] | None = None
        """Every checkpoint by its id, once somebody has asked for one."""
        self._prune: tuple[int, PruneBody] | None = None
        self._prune_known = False
        """Whether `_prune` is the newest prune entry, with its position."""
        self._given_up = 0
        """How many prunes and erasures by others this handle has met."""

    @property
    def name(self) -> str:
        """What the application calls the thread."""
        return self._name

    def __repr__(self) -> str:
        return f"<{self._called} {self._name!r}>"

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
        header, record = self._newest() if ref is None else self._named(ref)
        # (6) and (7): erased or not, the body and the blobs against their digests
        body = self._body(header, record)
        if ref is not None:
            self._require_kept(header)
        root = bytes.fromhex(body.root)
        reader = self._reader(header, record, root)
        # (8) only now decode
        state = self._core.registry.decode_tree(
            root, reader.get, verified=True, get_many=reader.get_many
        )
        world = None
        if body.world is not None:
            world = decode_world(reader.get(bytes.fromhex(body.world)))
        if ref is None:
            self._known = reader.reached
            if reader.fetched:
                kept = [pair for pair in self._seen if pair[1] in reader.reached]
                self._seen = within_bound([*kept, *reader.fetched])
        self._take_up()
        entry = link_hash(record.header)
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
        erased = False
        for header, record in chain.walk():
            erased = erased or header.kind is Kind.ERASE
            if header.kind is Kind.CHECKPOINT and not erased:
                yield make_ref(
                    header,
                    self._body(header, record),
                    self._core.writer(header),
                    link_hash(record.header),
                    pruned=prune is not None and prune.covers(header.seq),
                )

    def _take_up(self) -> None:
        """The caller is given what is newest."""

    def _look(self) -> None:
        """Learn what is newest."""
        self._chain.refresh()

    def _settled(self, call: Callable[[], _T]) -> _T:
        """The result of a call, which begins anew where a prune or an erasure came in between.

        Whoever reads while somebody else gives up what is read would take it for damage.
        """
        while True:
            given_up = self._given_up
            try:
                return call()
            except Missing:
                with suppress(SealpointError):
                    self._look()
                if self._given_up == given_up:
                    raise

    def _observe(self, entry: Entry, record: Record) -> None:
        """An entry that this handle did not know has been verified."""
        kind = entry.header.kind
        if kind in _RETENTION:
            self._prune_known = False
            self._given_up += kind in (Kind.PRUNE, Kind.ERASE)
        if kind is Kind.ERASE:
            self._known, self._seen, self._ids = set(), [], None
        elif kind is Kind.CHECKPOINT:
            self._known = set()
            # Without a body, an erasure follows; if none does, whoever asks for the body is told.
            if self._ids is not None and record.body is not None:
                self._ids[self._body(entry.header, record).id] = entry.seq

    def _cut_off(self) -> None:
        """A restore has cut off what this handle knew."""
        self._known, self._seen, self._ids = set(), [], None
        self._prune, self._prune_known = None, False
        self._given_up += 1

    def _newest(self) -> tuple[Header, Record]:
        """The newest checkpoint: mostly the head itself."""
        head, record = self._chain.verified_head(), self._chain.head_record
        if head.header.kind is Kind.CHECKPOINT and record is not None:
            return head.header, record
        for header, found in self._chain.walk():
            if header.kind is Kind.CHECKPOINT:
                self._chain.verify(found, header.seq)
                return header, found
            if header.kind is Kind.ERASE:
                # That there is nothing is what the caller is given, and may go on from.
                self._take_up()
                raise self._erased(header)
        raise UnknownCheckpoint(f"thread {self._name!r}: expected a checkpoint, found none")

    def _require_kept(self, header: Header) -> None:
        """(6) Refuse a checkpoint whose state was given up, whether or not its bytes are there."""
        if self._is_pruned(header):
            raise Pruned(
                f"entry {header.seq} of thread {self._name!r}: its state was given up by a prune"
            )

    def _is_pruned(self, header: Header) -> bool:
        prune = self._retention()
        return prune is not None and prune.covers(header.seq)

    def _retention(self) -> PruneBody | None:
        """What the newest prune entry says; the newest checkpoint names it."""
        if not self._prune_known:
            self._prune = self._found_prune()
            self._prune_known = True
        return None if self._prune is None else self._prune[1]

    def _found_prune(self) -> tuple[int, PruneBody] | None:
        seq = self._prune_named()
        if seq is None or (self._prune is not None and self._prune[0] == seq):
            return None if seq is None else self._prune
        record, header = self._chain.descend(seq)
        self._chain.verify(record, seq)
        if header.kind is not Kind.PRUNE or record.body is None:
            raise Missing(f"entry {seq} of thread {self._name!r}: expected a prune, found none")
        body: PruneBody = parse_body(Kind.PRUNE, header.body, record.body)
        if body.before > seq:
            raise Misplaced(
                f"entry {seq} of thread {self._name!r}: expected a prune of what was there, found "
                "one of more"
            )
        return seq, body

    def _prune_named(self) -> int | None:
        """The position of the newest prune entry, as the first entry below the head says."""
        head, head_record = self._chain.verified_head().header, self._chain.head_record
        if head.kind is Kind.CHECKPOINT and head_record is not None:
            return self._body(head, head_record).prune
        for header, record in self._chain.walk():
            if header.kind is Kind.CHECKPOINT:
                return self._body(header, record).prune
            if header.kind is Kind.PRUNE:
                return header.seq
            if header.kind in (Kind.GENESIS, Kind.ERASE):
                break
        return None

    def _named(self, ref: "str | CheckpointRef") -> tuple[Header, Record]:
        if isinstance(ref, CheckpointRef):
            seq: int | None = ref.seq
            name, entry = ref.id, ref.entry
        else:
            name, entry = check_name(ref, "checkpoint id"), ""
            self._require_generation(self._chain.verified_head().header)
            seq = self._find_id(name, everything=False)
        if seq is not None and 0 <= seq <= self._chain.verified_head().seq:
            # (4) it reaches the verified head; (3) its own signature
            record, header = self._chain.descend(seq)
            self._chain.verify(record, seq)
            self._require_generation(header)
            same = entry in ("", link_hash(record.header).hex())
            if same and header.kind is Kind.CHECKPOINT and self._body(header, record).id == name:
                return header, record
        raise UnknownCheckpoint(f"thread {self._name!r}: expected checkpoint {name!r}, found none")

    def _require_generation(self, header: Header) -> None:
        """(6) Refuse what an erasure took, whether or not its bytes are there."""
        head = self._chain.verified_head().header
        if head.kind is Kind.ERASE:
            raise self._erased(head)
        if header.gen < head.gen:
            raise Erased(f"entry {header.seq} of thread {self._name!r}: it was erased on purpose")

    def _erased(self, header: Header) -> Erased:
        return Erased(f"thread {self._name!r}: it was erased at entry {header.seq}")

    def _find_id(self, name: str, *, everything: bool) -> int | None:
        """The position of a checkpoint by its id, walking back from the head.

        No index is asked: one that hides an entry would make an id look free.
        """
        if self._ids is not None:
            return self._ids.get(name)
        ids: dict[str, int] = {}
        for header, record in self._chain.walk():
            if header.kind is Kind.ERASE:
                break
            if header.kind is Kind.CHECKPOINT:
                found = self._body(header, record).id
                ids.setdefault(found, header.seq)
                if found == name and not everything:
                    return header.seq
        self._ids = ids
        return ids.get(name)

    def _body(self, header: Header, record: Record) -> CheckpointBody:
        if record.body is None:
            # No erasure came after it, or nobody would have asked for the body.
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
    )
