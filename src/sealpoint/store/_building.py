# SPDX-License-Identifier: Apache-2.0
"""From what callers want to save to bodies and blobs, by what the handle knows of the thread."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sealpoint.codec import TreeMemo
from sealpoint.errors import (
    HeadMoved,
    IdReused,
    Missing,
    SealpointError,
    Superseded,
    UsageError,
)
from sealpoint.ids import CheckpointId
from sealpoint.ledger import KINDS, CheckpointBody, Header, Kind, WritesBody, link_hash
from sealpoint.storage import Record
from sealpoint.store._blobs import BlobWriter, blob_digest
from sealpoint.store._lanes import Place
from sealpoint.store._refs import CheckpointRef, ResultsRef
from sealpoint.store._save_draft import ResultsDraft, SaveDraft
from sealpoint.store._session import SessionThread
from sealpoint.store._view import make_ref

__all__ = ["BuildingThread", "EntryDraft", "Item", "Outcome"]

EntryDraft = SaveDraft | ResultsDraft

Outcome = CheckpointRef | ResultsRef | SealpointError
"""What became of something that was to be written."""

_Newest = tuple[set[bytes], list[tuple[bytes, bytes]]]
"""What the newest state of a lane reaches, and its blobs."""


class Item(NamedTuple):
    """One thing of a group, ready to be signed."""

    at: int
    """Its number among those that were asked for."""
    draft: EntryDraft
    body: CheckpointBody | WritesBody
    payload: bytes | None
    blobs: BlobWriter

    @property
    def halts(self) -> bool:
        """Whether a pause stops it."""
        return self.draft.halts or KINDS[self.draft.kind].halts


class BuildingThread(SessionThread):
    """A thread that makes entries of drafts."""

    def _built(self, drafts: Sequence[EntryDraft], outcomes: list[Outcome | None]) -> list[Item]:
        """Make bodies and blobs of what is still to be written, as far as it can be one group."""
        group: list[Item] = []
        named: set[object] = set()
        trails: dict[str, _Newest] = {}
        for at, draft in enumerate(drafts):
            if outcomes[at] is not None:
                continue
            if draft.kind is Kind.CHECKPOINT and draft.key in named:
                break  # it has to say where the others of its name lie, which is not yet known
            if group and draft.world not in (None, group[0].draft.world):
                break  # what a run is able to do is judged once for a group
            try:
                built = self._built_one(draft, trails)
            except (Missing, HeadMoved, Superseded):
                # Somebody may have erased it meanwhile, then all begins anew; or this handle has
                # lost the thread, and nothing of the group may be written.
                raise
            except SealpointError as error:
                outcomes[at] = error
                continue
            if isinstance(built, CheckpointRef):
                outcomes[at] = built
                continue
            group.append(Item(at, draft, *built))
            if draft.key is not None:
                named.add(draft.key)
            if draft.kind is Kind.CHECKPOINT:
                trails[draft.lane] = (built[2].reached, built[2].seen)
        return group

    def _built_one(
        self, draft: SaveDraft | ResultsDraft, trails: dict[str, _Newest]
    ) -> CheckpointRef | tuple[CheckpointBody | WritesBody, bytes | None, BlobWriter]:
        trail = self._trails.of(draft.lane)
        known, seen = trails.get(draft.lane, (trail.known, trail.seen))
        blobs = BlobWriter(
            self._core.storage,
            self._chain.thread,
            known,
            seen if draft.kind is Kind.CHECKPOINT else (),
            self._trails.known_but(draft.lane),
        )
        if isinstance(draft, ResultsDraft):
            return *self._results(draft, blobs), blobs
        place = self._namesake(draft)
        if place is not None and self._repeated(draft, place) is not None:
            # Nothing will be written that would meet it if somebody has replaced or deleted it.
            self._look()
            self._check_session()
            place = self._namesake(draft)
            if place is not None and (same := self._repeated(draft, place)) is not None:
                return same
        again = None if place is None else place.first
        return *self._checkpoint(draft, blobs, trail.memo, again, self._since(draft, place)), blobs

    def _since(self, draft: SaveDraft, place: Place | None) -> int | None:
        """Where the first results lie that were added to a checkpoint before it was there."""
        if place is not None:
            record, header = self._chain.linked(place.seq, place.entry.hex())
            return self._body(header, record).since
        if self._index is None or draft.key is None:
            return None
        session = self._chain.verified_head().seq if self._session is None else self._session
        return self._index.earliest(draft.key, session, self._is_given_up)

    def _checkpoint(
        self,
        draft: SaveDraft,
        blobs: BlobWriter,
        memo: TreeMemo,
        again: int | None,
        since: int | None,
    ) -> tuple[CheckpointBody, bytes | None]:
        """The body of a checkpoint, and the root blob if it is to lie beside the entry."""
        memo.again = blobs.again
        root = self._root(draft, blobs, memo)
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
            lane=draft.lane,
            again=again,
            since=since,
            origin=draft.origin,
        )
        return body, payload

    def _results(self, draft: ResultsDraft, blobs: BlobWriter) -> tuple[WritesBody, bytes | None]:
        """The same for results that are added to a checkpoint."""
        root = self._root(draft, blobs, None)
        payload = blobs.take_root(root)
        fresh, fresh_list = blobs.listing()
        body = WritesBody(
            salt=self._core.salt(),
            checkpoint=draft.checkpoint,
            task=draft.task,
            root=root.hex(),
            lane=draft.lane,
            path=draft.path,
            fresh=fresh,
            fresh_list=fresh_list,
            question=draft.question,
            answers=draft.halts,
            held=draft.held,
            origin=draft.origin,
        )
        return body, payload

    def _root(self, draft: EntryDraft, blobs: BlobWriter, memo: TreeMemo | None) -> bytes:
        root = self._core.registry.encode_tree(
            draft.value, blobs.put, seed=self._chain.thread, memo=memo
        )
        if not isinstance(root, bytes):
            raise UsageError("root: expected what `put` returned")
        return root

    def _prune_seq(self) -> int | None:
        """The newest prune entry, for the checkpoint that is about to follow it."""
        if self._chain.head is None:
            return None
        self._retention()
        return None if self._prune is None else self._prune[0]

    def _namesake(self, draft: SaveDraft) -> Place | None:
        """The newest checkpoint that has this name already, unless it was deleted."""
        if self._chain.head is None or draft.key is None:
            return None
        index = self._indexed()
        newest = index.newest(draft.lane, self._is_hidden) if draft.supersedes else None
        if newest is not None and newest.id < draft.key.id:
            place = index.known(draft.key)  # the names of a lane rise, so this one is new
        else:
            place = index.find(draft.key)
        return None if place is None or self._is_hidden(place.seq) else place

    def _repeated(self, draft: SaveDraft, place: Place) -> CheckpointRef | None:
        """The checkpoint that has this name already, if it says the same."""
        record, header = self._chain.linked(place.seq, place.entry.hex())
        body = self._body(header, record)
        world = None if draft.world is None else blob_digest(draft.world).hex()
        pruned = self._is_pruned(header)
        stored = None if pruned else record
        same = draft.says_what(body, world) and self._same_state(draft.value, body, header, stored)
        if not same:
            if draft.supersedes:
                return None
            raise IdReused(
                f"checkpoint {draft.id!r} of thread {self._name!r}: expected the same payload as "
                f"entry {place.seq}, found another"
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
