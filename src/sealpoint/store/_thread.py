# SPDX-License-Identifier: Apache-2.0
"""A thread of an open store: `Thread` adds saving to reading (`_view.py`) and retention.

Whatever is to be written goes through `commit`, which writes several things in their order as one
group where it can. Calls from several OS threads are taken one after the other.
"""

import copy
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

from sealpoint.errors import (
    HeadMoved,
    Missing,
    Paused,
    ResumeRefused,
    SealpointError,
    Superseded,
)
from sealpoint.ledger import Entry, GenesisBody, Kind, ResumeBody, WritesBody, encode_body
from sealpoint.store._append import Draft, append_all, check_rights, reserve
from sealpoint.store._building import BuildingThread, EntryDraft, Item, Outcome
from sealpoint.store._refs import CheckpointRef, ResultsRef
from sealpoint.store._save_draft import SaveDraft
from sealpoint.store._view import make_ref
from sealpoint.world import World

__all__ = ["Thread"]


class Thread(BuildingThread):
    """A thread's checkpoints. `CheckpointStore.thread` gives one handle for each name."""

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
        (outcome,) = self.commit([draft])
        if isinstance(outcome, SealpointError):
            raise outcome
        return cast("CheckpointRef", outcome)

    def commit(self, drafts: Sequence[EntryDraft]) -> list[Outcome]:
        """Write several things in their order, as one durable step where that can be.

        Returns:
            For each of them where it lies, or why it was not written; the errors are those of
            `save`. That one was not written keeps no other from being so.
        """
        outcomes: list[Outcome | None] = [None] * len(drafts)
        with self._lock:
            try:
                self._settled(lambda: self._commit(drafts, outcomes))
            except SealpointError as error:
                outcomes = [error if each is None else each for each in outcomes]
            found = [outcome for outcome in outcomes if outcome is not None]
            for outcome in found:
                if isinstance(outcome, SealpointError):
                    self._refused(outcome)
        return found

    def _commit(self, drafts: Sequence[EntryDraft], outcomes: list[Outcome | None]) -> None:
        self._core.signer()
        while None in outcomes:
            self._enter()
            group = self._built(drafts, outcomes)
            if not group:
                continue
            try:
                written = self._attempt(group)
            except Paused as error:
                # Results of work that had begun are kept, unless a session would begin with them.
                written = [(item, error) for item in group if item.halts]
                if len(written) in (0, len(group)):
                    raise
            except ResumeRefused as error:
                written = [(item, error) for item in group]
            for item, outcome in written:
                outcomes[item.at] = outcome

    def _attempt(self, group: Sequence[Item]) -> list[tuple[Item, Outcome]]:
        """Write a group, with whatever must come before it.

        Returns:
            What became of it; nothing if entries that change nothing came in between, and it is
            to be tried again.
        """
        chain = self._chain
        opening = self._opening(group[0].draft)
        drafts = [
            *opening,
            *(Draft(each.draft.kind, each.body, each.payload, each.halts) for each in group),
        ]
        if chain.head is None and not reserve(chain, chain.thread):
            self._uncertain = True
            return []
        begins = drafts[0].kind is Kind.GENESIS
        spilled = set().union(*(item.blobs.spilled for item in group))
        try:
            entries = append_all(
                chain,
                drafts,
                blobs={name: blob for item in group for name, blob in item.blobs.pending.items()},
                needs=spilled,
                label=chain.label if begins else None,
                trust=self._under,
            )
        except HeadMoved:
            entries = []  # what became of it is said below, without this as its context
        except Missing:
            if not (spilled and all(item.draft.may_repeat() for item in group)):
                raise
            return []  # somebody collected what was put ahead: it is put once more
        except BaseException as exc:
            if (saved := self._after_failure(exc, drafts, group)) is None:
                raise
            return saved
        if not entries:
            self._lost_swap(group[0].draft)
            return []
        return self._saved(entries[len(opening) :], group)

    def _opening(self, draft: EntryDraft) -> list[Draft]:
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

    def _continuation(self, draft: EntryDraft, owner: str, basis: int) -> ResumeBody:  # noqa: ARG002
        """The body of the resume entry that a save without a session begins with."""
        return ResumeBody(salt=self._core.salt(), owner=owner, basis=basis)

    def _saved(self, entries: Sequence[Entry], group: Sequence[Item]) -> list[tuple[Item, Outcome]]:
        """Take note of what was written, and tell where it lies."""
        last = entries[-1]
        outcomes: list[tuple[Item, Outcome]] = []
        opened = self._session != last.header.fence
        self._session = last.header.fence
        if opened:
            self._core.emit("session-opened", last.header.thread, last.header.fence, b"")
        for entry, item in zip(entries, group, strict=True):
            body = item.body
            if self._index is not None:
                self._index.follow_body(entry.header, entry.hash, body)
            self._core.emit("saved", entry.header.thread, entry.seq, entry.hash)
            if isinstance(body, WritesBody):
                outcomes.append((item, ResultsRef(seq=entry.seq, entry=entry.hash.hex())))
                continue
            trail = self._trails.of(body.lane)
            # Others may have written on top of it by now.
            trail.known = item.blobs.reached if self._chain.head is last else set()
            trail.seen = item.blobs.seen
            outcomes.append((item, make_ref(entry.header, body, entry.writer, entry.hash)))
        return outcomes

    def _standing(self, last: Entry, count: int) -> list[Entry]:
        """So many entries up to one that this handle has just written."""
        entries = [last]
        while len(entries) < count:
            above = entries[0].header
            record, _ = self._chain.linked(above.seq - 1, above.prev)
            entries.insert(0, self._chain.verify(record, above.seq - 1))
        return entries

    def _after_failure(
        self, exc: BaseException, drafts: Sequence[Draft], group: Sequence[Item]
    ) -> list[tuple[Item, Outcome]] | None:
        """Look up before the next save signs anything whether the entries stand.

        If the chain knows that they do, only what came after them failed, and each of them is
        told so with where it lies.
        """
        self._uncertain = True
        digests = [sha256(encode_body(draft.body)).hexdigest() for draft in drafts]
        self._own = frozenset(digests)
        if isinstance(exc, Superseded):
            return None  # a restore was accepted meanwhile, and did not keep them
        head = self._chain.head
        if head is None or head.header.body != digests[-1]:
            return None
        entries = self._standing(head, len(group))
        told: list[tuple[Item, Outcome]] = []
        for item, ref in self._saved(entries, group):
            if not isinstance(exc, SealpointError) or not hasattr(exc, "ref"):
                return None
            error = copy.copy(exc)
            error.ref = ref if isinstance(ref, CheckpointRef) else None
            told.append((item, error))
        return told
