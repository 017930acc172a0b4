# SPDX-License-Identifier: Apache-2.0
"""A thread of an open store: `Thread` adds saving to reading (`_view.py`) and retention.

One handle is one worker's view of a thread. It adopts the verified head at its first use. Its
first save opens a session, whose resume entry is the fence; when somebody else opens a later one,
this handle's saves are refused (`Superseded`, or `HeadMoved` if it had no session yet) until it
loads again. Calls from several OS threads are taken one after the other.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NoReturn

import msgspec

from sealpoint.codec import TreeMemo
from sealpoint.errors import (
    HeadMoved,
    IdReused,
    Missing,
    SealpointError,
    Superseded,
    UnknownThread,
    UsageError,
)
from sealpoint.ids import CheckpointId, ThreadId
from sealpoint.ledger import (
    KINDS,
    CheckpointBody,
    Entry,
    GenesisBody,
    Header,
    Kind,
    ResumeBody,
    StoreChain,
    encode_body,
    link_hash,
    parse_body,
)
from sealpoint.storage import Record
from sealpoint.store._append import Draft, append, check_rights, reserve
from sealpoint.store._blobs import BlobWriter, blob_digest
from sealpoint.store._core import Core
from sealpoint.store._refs import CheckpointRef
from sealpoint.store._retention import RetainedThread
from sealpoint.store._save_draft import SaveDraft
from sealpoint.store._view import make_ref
from sealpoint.world import World

__all__ = ["Thread"]

_encode_json = msgspec.json.Encoder().encode


class Thread(RetainedThread):
    """A thread's checkpoints. `CheckpointStore.thread` gives one handle for each name."""

    def __init__(self, core: Core, name: str) -> None:
        super().__init__(core, name)
        self._session: int | None = None
        self._lost: type[SealpointError] | None = None
        self._uncertain = False
        self._memo = TreeMemo(lambda _names: False)
        self._looked = self._moved = False  # moved: somebody else has written since it looked
        self._under: StoreChain | None = None  # by whose roster the session to open was decided
        self._own: frozenset[str] = frozenset()
        """Digests of the bodies of an attempt whose outcome is unknown."""

    def save(
        self,
        state: Any,
        *,
        id: str | None = None,  # noqa: A002 (the name callers write)
        parent: "str | CheckpointRef | None" = None,
        metadata: Mapping[str, Any] | None = None,
        world: World | Mapping[str, Any] | None = None,
        question: Any = None,
    ) -> CheckpointRef:
        """Save a state as the newest checkpoint of the thread.

        When it returns, the checkpoint survives a crash and a power cut.

        Args:
            state: Any value that the store's registry allows.
            id: A name of the caller's own. Saving the same again under it returns the checkpoint
                that is there; anything else under it is refused.
            parent: The checkpoint that this one came from: lineage for people, not order.
            metadata: A JSON object beside the state, shown in listings.
            world: What the run was able to do, as a `World` or a JSON object.
            question: What the run waits for somebody to answer, as JSON.

        Raises:
            EncodeError: The state holds something that is not allowed; nothing was written.
            HeadMoved: Somebody else has written since this handle looked; load again.
            Superseded: A later session took the thread over; load again.
            NotOwner: The thread belongs to another identity.
            NotTrusted: The roster does not let this identity write here.
            Paused: An operator paused the thread; keep the state and save it later.
            IdReused: The id names another checkpoint of this thread.
            AnchorUnavailable: The anchor is down. `.ref` is the checkpoint if it was saved; it
                stands. None: nothing was saved.
            StorageUnavailable: It was not saved, or nobody can tell: repeat it under the same id.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        draft = SaveDraft(state, id, parent, metadata, world, question=question)
        with self._lock:
            try:
                return self._settled(lambda: self._save(draft))
            except SealpointError as error:
                self._refused(error)
                raise

    def _save(self, draft: SaveDraft) -> CheckpointRef:
        self._core.signer()
        while True:
            self._enter()
            if draft.id is not None and (same := self._repeated(draft)) is not None:
                return same
            ref = self._attempt(draft)
            if ref is not None:
                return ref

    def _enter(self) -> None:
        """Adopt the verified head at first use; refuse to go on after having lost the thread."""
        if self._lost is not None:
            raise self._lost(
                f"thread {self._name!r}: expected it to be loaded again since another session "
                "wrote it, found a save"
            )
        # A look that failed halfway has a head and nothing that it was compared with.
        chain = self._chain
        unknown = chain.head is None or chain.anchored is None or chain.is_outdated()
        if unknown or self._uncertain:
            try:
                self._look()
            except UnknownThread:
                if chain.head is not None:
                    raise
                if not chain.thread:
                    chain.bind(ThreadId.draw(self._core.parts.random_bytes).raw)
            self._uncertain = False
        self._check_session()

    def _check_session(self) -> None:
        """Refuse to go on where others have written, whichever call has met their entries.

        The anchor may show them even to a save that succeeded.
        """
        head = self._chain.head
        if self._session is not None and head is not None and head.header.fence != self._session:
            self._lose(Superseded)
        if self._moved:
            self._lose(HeadMoved)

    def _attempt(self, draft: SaveDraft) -> CheckpointRef | None:
        """Write the checkpoint, with whatever must come before it.

        Returns:
            None if entries that change nothing came in between, and it is to be tried again.
        """
        chain = self._chain
        blobs = BlobWriter(self._core.storage, chain.thread, self._known, self._seen)
        body, payload = self._checkpoint(draft, blobs)
        drafts = [*self._opening(draft), Draft(Kind.CHECKPOINT, body, payload)]
        if chain.head is None and not reserve(chain, chain.thread):
            self._uncertain = True
            return None
        begins = drafts[0].kind is Kind.GENESIS
        entry: Entry | None = None
        try:
            entry = append(
                chain,
                drafts,
                blobs=blobs.pending,
                needs=blobs.spilled,
                label=chain.label if begins else None,
                trust=self._under,
            )
        except HeadMoved:
            pass  # what became of it is said below, without this as its context
        except Missing:
            if not (blobs.spilled and draft.may_repeat()):
                raise
            return None  # somebody collected what was put ahead: it is put once more
        except BaseException as exc:
            self._after_failure(exc, drafts, body, blobs)
            raise
        if entry is None:
            self._lost_swap(draft)
            return None
        return self._saved(entry, body, blobs)

    def _opening(self, draft: SaveDraft) -> list[Draft]:
        """The entries that a session begins with, unless this handle has one."""
        chain = self._chain
        if chain.head is not None and self._session is not None:
            return []
        trust = self._core.trust()
        drafts = []
        basis = 0 if chain.head is None else chain.tip().basis[0]
        owner = None if chain.head is None else chain.tip().fence.owner
        if owner is None:
            # A new thread, or a new generation of one that was erased.
            # The pool owns it if there is one pool that the writer stands for.
            writer = check_rights(chain, trust, Kind.GENESIS, None).name
            owner = trust.roster.pool_of(writer) or writer
            genesis = GenesisBody(salt=self._core.salt(), name=self._name, owner=owner)
            drafts.append(Draft(Kind.GENESIS, genesis))
        else:
            check_rights(chain, trust, Kind.RESUME, owner)
        return [*drafts, Draft(Kind.RESUME, self._continuation(draft, owner, basis))]

    def _continuation(self, draft: SaveDraft, owner: str, basis: int) -> ResumeBody:  # noqa: ARG002
        """The body of the resume entry that a save without a session begins with."""
        return ResumeBody(salt=self._core.salt(), owner=owner, basis=basis)

    def _open_session(self, body: ResumeBody, trust: StoreChain) -> Entry | None:
        """Begin a session of its own, without a save, under the roster that it was decided by.

        Returns:
            None if somebody else wrote first, and everything has to be looked at anew.
        """
        chain, draft = self._chain, Draft(Kind.RESUME, body)
        try:
            entry = append(chain, [draft], blobs={}, trust=trust)
        except HeadMoved:
            before = chain.head
            chain.refresh()
            self._require_moved(before)
            return None
        except BaseException:
            self._uncertain = True
            self._own = frozenset({sha256(encode_body(body)).hexdigest()})
            raise
        self._session = entry.seq
        self._core.emit("session-opened", entry.header.thread, entry.seq, entry.hash)
        return entry

    def _checkpoint(
        self, draft: SaveDraft, blobs: BlobWriter
    ) -> tuple[CheckpointBody, bytes | None]:
        """The body of a checkpoint, and the root blob if it is to lie beside the entry."""
        self._memo.again = blobs.again
        root = self._core.registry.encode_tree(
            draft.state, blobs.put, seed=self._chain.thread, memo=self._memo
        )
        if not isinstance(root, bytes):
            raise UsageError("root: expected what `put` returned")
        world = None if draft.world is None else blobs.put(draft.world).hex()
        payload = blobs.take_root(root)
        fresh, fresh_list = blobs.listing()
        name = draft.id
        if name is None:
            name = f"{CheckpointId.prefix}:{self._core.random_hex(CheckpointId.size_bytes)}"
        body = CheckpointBody(
            salt=self._core.salt(),
            id=name,
            root=root.hex(),
            fresh=fresh,
            fresh_list=fresh_list,
            parent=draft.parent,
            metadata=draft.metadata,
            world=world,
            prune=self._prune_seq(),
            question=draft.question,
        )
        return body, payload

    def _prune_seq(self) -> int | None:
        """The newest prune entry, for the checkpoint that is about to follow it."""
        if self._chain.head is None:
            return None
        self._retention()
        return None if self._prune is None else self._prune[0]

    def _saved(self, entry: Entry, body: CheckpointBody, blobs: BlobWriter) -> CheckpointRef:
        opened = self._session != entry.header.fence
        self._session = entry.header.fence
        # Others may have written on top of it by now.
        self._known = blobs.reached if self._chain.head is entry else set()
        self._seen = blobs.seen
        if self._ids is not None:
            self._ids[body.id] = entry.seq
        if opened:
            self._core.emit("session-opened", entry.header.thread, entry.header.fence, b"")
        self._core.emit("saved", entry.header.thread, entry.seq, entry.hash)
        return make_ref(entry.header, body, entry.writer, entry.hash)

    def _after_failure(
        self, exc: BaseException, drafts: list[Draft], body: CheckpointBody, blobs: BlobWriter
    ) -> None:
        """Look up before the next save signs anything whether the entries stand.

        If the chain knows that they do, only what came after them failed.
        """
        self._uncertain = True
        self._own = frozenset(sha256(encode_body(draft.body)).hexdigest() for draft in drafts)
        if isinstance(exc, Superseded):
            return  # a restore was accepted meanwhile, and did not keep them
        head, record = self._chain.head, self._chain.head_record
        if head is None or record is None or head.header.kind is not Kind.CHECKPOINT:
            return
        if (
            record.body is not None
            and parse_body(Kind.CHECKPOINT, head.header.body, record.body) == body
        ):
            ref = self._saved(head, body, blobs)
            if hasattr(exc, "ref"):
                exc.ref = ref

    def _lost_swap(self, draft: SaveDraft) -> None:
        """Somebody else wrote first. Entries that move no basis are let pass, but not for ever."""
        before = self._chain.head
        self._chain.refresh()
        self._check_session()
        self._require_moved(before)
        draft.repeat_after(self._chain.verified_head(), self._name)

    def _lose(self, error: type[SealpointError]) -> NoReturn:
        self._session, self._lost = None, error
        head = self._chain.head
        if head is None:
            raise error(f"thread {self._name!r}: expected it as it was, found it lost in a restore")
        raise error(
            f"thread {self._name!r}: expected nobody else to write, found entry {head.seq} of "
            f"session {head.header.fence} by {head.writer!r}"
        )

    def _observe(self, entry: Entry, record: Record) -> None:
        # First: an edited body ends the next line, and must not hide that somebody wrote.
        # A prune keeps what the newest checkpoint holds, so a session goes on after it.
        kind, own = entry.header.kind, entry.header.body in self._own
        if KINDS[kind].moves_basis and kind is not Kind.PRUNE and not own:
            self._moved = True
        super()._observe(entry, record)

    def _cut_off(self) -> None:
        super()._cut_off()
        self._moved = True

    def _look(self) -> None:
        """Learn what is newest. At first use that is adopted; later it may be others' entries."""
        first, self._looked = not self._looked, True
        try:
            super()._look()
        except SealpointError as error:
            # Unless it was seen that nobody has saved, the caller has been shown nothing.
            self._looked = not first or isinstance(error, UnknownThread)
            raise
        finally:
            if first:
                self._moved = False

    def _take_up(self) -> None:
        # Only now: a load that failed has shown the caller nothing.
        head, moved, self._moved = self._chain.head, self._moved, False
        self._lost, self._uncertain = None, False
        # After a restore the session of somebody else may begin at the very position of this one.
        if head is None or moved or head.header.fence != self._session:
            self._session = None

    def _repeated(self, draft: SaveDraft) -> CheckpointRef | None:
        """The checkpoint that has this id already, if it says the same."""
        if self._chain.head is None:
            return None
        seq = self._find_id(draft.id or "", everything=True)
        if seq is None:
            return None
        record, header = self._chain.descend(seq)
        body = self._body(header, record)
        world = None if draft.world is None else blob_digest(draft.world).hex()
        # As JSON: in Python, 1 equals 1.0 and True.
        again = (draft.parent, _encode_json((draft.metadata, draft.question)), world)
        same = (body.parent, _encode_json((body.metadata, body.question)), body.world) == again
        pruned = self._is_pruned(header)
        stored = None if pruned else record
        if not same or not self._same_state(draft.state, body, header, stored):
            raise IdReused(
                f"checkpoint {draft.id!r} of thread {self._name!r}: expected the same payload as "
                f"entry {seq}, found another"
            )
        entry = link_hash(record.header)
        return make_ref(header, body, self._core.writer(header), entry, pruned=pruned)

    def _same_state(
        self, state: Any, body: CheckpointBody, header: Header, record: Record | None
    ) -> bool:
        """Compare trees; a tree that another version cut differently is built anew first.

        That cannot be done without the record: of a state that was given up only the root is left.
        """
        registry, seed, root = self._core.registry, self._chain.thread, bytes.fromhex(body.root)
        mine = registry.encode_tree(state, blob_digest, seed=seed)
        if mine == root or record is None:
            return mine == root
        reader = self._reader(header, record, root)
        stored = registry.decode_tree(root, reader.get, verified=True, get_many=reader.get_many)
        return registry.encode_tree(stored, blob_digest, seed=seed) == mine
