# SPDX-License-Identifier: Apache-2.0
"""Retention of a thread: giving up old states, and erasing all it held.

First the signed entry that says what goes, then the bytes: a crash in between leaves bytes that
nobody may read any more, and the next call, or `gc`, takes them away. ADR 0009 says why.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from sealpoint.errors import Edited, HeadMoved, UnknownCheckpoint, UsageError
from sealpoint.ledger import (
    CheckpointBody,
    Entry,
    EraseBody,
    Kind,
    PruneBody,
    WritesBody,
)
from sealpoint.signing import check_reason, check_reason_size
from sealpoint.store._append import Draft, append
from sealpoint.store._lanes import Key, entry_body
from sealpoint.store._names import check_name
from sealpoint.store._refs import CheckpointRef, Erasure, Pruning
from sealpoint.store._snapshots import SnapshotView
from sealpoint.store._sweep import Swept, sweep, would_sweep

__all__ = ["RetainedThread"]


@dataclass(frozen=True, slots=True)
class _Keep:
    """Which checkpoints a prune keeps: those that any of the rules names."""

    last: int | None
    since: datetime | None
    ids: frozenset[str]

    @classmethod
    def checked(
        cls, last: int | None, since: datetime | None, ids: "Iterable[str | CheckpointRef]"
    ) -> "_Keep":
        if isinstance(ids, str | CheckpointRef):
            ids = [ids]
        named = frozenset(
            check_name(each.id if isinstance(each, CheckpointRef) else each, "checkpoint id")
            for each in ids
        )
        if last is None and since is None and not named:
            raise UsageError("prune: expected keep_last, keep_since or keep, found none of them")
        if last is not None and last < 1:
            raise UsageError(f"keep_last: expected 1 or more, found {last!r}")
        if since is not None and since.tzinfo is None:
            raise UsageError("keep_since: expected a time with a zone, found one without")
        return cls(last, since, named)

    def keeps(self, place: int, ref: CheckpointRef) -> bool:
        """Whether the checkpoint that is number `place`, counted from the newest, is kept."""
        return (
            place == 0
            or (self.last is not None and place < self.last)
            or (self.since is not None and ref.time >= self.since)
            or ref.id in self.ids
        )


class RetainedThread(SnapshotView):
    """A thread whose past can be given up."""

    def prune(
        self,
        *,
        keep_last: int | None = None,
        keep_since: datetime | None = None,
        keep: "Sequence[str | CheckpointRef]" = (),
        reason: str | None = None,
        dry_run: bool = False,
        compact: bool = True,
    ) -> Pruning:
        """Give up the states of older checkpoints and free their space.

        A checkpoint stays if any rule keeps it; the newest of a lane, and the one that was saved
        there last if that is another, always do. What goes is recorded in a signed entry; ids,
        metadata and times stay in the history. A worker may go on saving meanwhile.

        Args:
            keep_last: Keep so many of the newest checkpoints that still have their state, of each
                lane.
            keep_since: Keep what was saved at this time or later.
            keep: Keep these.
            reason: Why, for the record.
            dry_run: Say what would go, and change nothing.
            compact: Also make the files smaller, which writes once more whatever stays.

        Raises:
            UsageError: No rule was given, or one that makes no sense.
            UnknownCheckpoint: `keep` names one that is not there.
            NotOwner: The thread belongs to another identity.
            ReadOnly: The store was opened for reading only, and this is no dry run.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was; nothing was
                given up.
        """
        rule = _Keep.checked(keep_last, keep_since, keep)
        if reason is not None:
            check_reason_size(reason, "prune")
        with self._lock, self._reporting():
            if dry_run:
                return self._settled(lambda: self._would_prune(rule))
            self._core.signer()
            return self._settled(lambda: self._pruned(rule, reason, compact=compact))

    def _would_prune(self, rule: _Keep) -> Pruning:
        self._look()
        given_up, body = self._plan(rule, None)
        swept = would_sweep(self._chain, prune=body if given_up else None)
        return _pruning(given_up, swept, None)

    def _pruned(self, rule: _Keep, reason: str | None, *, compact: bool) -> Pruning:
        while True:
            self._look()
            given_up, body = self._plan(rule, reason)
            if not given_up:
                return _pruning([], self._swept(compact=compact), None)
            seq = self._recorded(Draft(Kind.PRUNE, body))
            if seq is not None:
                self._prune, self._prune_known = (seq, body), True
                gone = [replace(ref, pruned=True) for ref in given_up]
                return _pruning(gone, self._swept(compact=compact), seq)

    def _plan(self, rule: _Keep, reason: str | None) -> tuple[list[CheckpointRef], PruneBody]:
        """What the rule gives up now, and the entry that says so together with all before."""
        given_up: list[CheckpointRef] = []
        kept: list[CheckpointRef] = []
        places: Counter[str] = Counter()
        holding = list(self._holding())
        ranks = {seq: rank for seq, _, _, rank in holding}
        listed = [ref for ref in self._listed(self._chain) if not ref.pruned]
        # Whoever saves meanwhile counts on what was saved last, and that may rank lower.
        last = {ref.lane: ref.seq for ref in reversed(listed)}
        for ref in sorted(listed, key=lambda ref: ranks[ref.seq], reverse=True):
            keeps = rule.keeps(places[ref.lane], ref) or ref.seq == last[ref.lane]
            (kept if keeps else given_up).append(ref)
            places[ref.lane] += 1
        if missing := rule.ids - {ref.id for ref in kept}:
            raise UnknownCheckpoint(
                f"thread {self._name!r}: expected checkpoint {min(missing)!r} with its state, "
                "found none"
            )
        earlier = self._given_up_before()
        # A checkpoint that another one of the same name superseded goes with that one's name.
        gone = {Key(ref.lane, ref.id) for ref in given_up} - {Key(ref.lane, ref.id) for ref in kept}
        added = [(seq, key in gone) for seq, kind, key, _ in holding if kind is Kind.WRITES]
        rest = [ref.seq for ref in kept]
        rest += [seq for seq, goes in added if not goes and not earlier.covers(seq)]
        lost = [ref.seq for ref in given_up] + [seq for seq, goes in added if goes]
        before = max(earlier.before, *(seq + 1 for seq in lost), 0)
        body = msgspec.structs.replace(
            earlier,
            salt=self._core.salt(),
            before=before,
            kept=tuple(sorted(seq for seq in rest if seq < before)),
            reason=reason,
        )
        return given_up, body

    def _given_up_before(self) -> PruneBody:
        earlier = self._retention()
        return PruneBody(salt="", before=0) if earlier is None else earlier

    def _holding(self) -> Iterator[tuple[int, Kind, Key, int]]:
        """Every entry of this generation that holds something, with its rank, newest first."""
        for header, record in self._chain.walk():
            if header.kind is Kind.ERASE:
                return
            if header.kind in (Kind.CHECKPOINT, Kind.WRITES):
                body: CheckpointBody | WritesBody = entry_body(self._name, header, record.body)
                rank = header.seq
                if isinstance(body, CheckpointBody):
                    rank = header.seq if body.again is None else body.again
                name = body.id if isinstance(body, CheckpointBody) else body.checkpoint
                yield header.seq, header.kind, Key(body.lane, name), rank

    def hide(
        self, names: "Iterable[Key] | None" = None, *, reason: str | None = None
    ) -> int | None:
        """Delete checkpoints for the application, with all results that were added to them.

        They are shown no more, and what they held is taken away as far as nothing else needs it.
        A signed entry records it; headers and bodies stay for the audit, unlike after `erase`. A
        database file may show remnants until somebody compacts it, as `gc` and `prune` do.

        Args:
            names: Lane and id of each; None: all that the thread holds.
            reason: Why, for the record.

        Returns:
            The position of the entry that records it; None: there was nothing to delete.

        Raises:
            NotOwner: The thread belongs to another identity.
            UnknownThread: Nobody has saved anything under this name.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        chosen = None if names is None else frozenset(names)
        with self._lock, self._reporting():
            self._core.signer()
            return self._settled(lambda: self._hidden(chosen, reason))

    def _hidden(self, names: frozenset[Key] | None, reason: str | None) -> int | None:
        while True:
            self._look()
            earlier = self._given_up_before()
            holding = self._holding()
            places = sorted((seq, names is None or key in names) for seq, _, key, _ in holding)
            spans = _spans((seq, goes or earlier.hides(seq)) for seq, goes in places)
            if spans == earlier.hidden:
                return None
            body = msgspec.structs.replace(
                earlier, salt=self._core.salt(), hidden=spans, reason=reason
            )
            seq = self._recorded(Draft(Kind.HIDE, body))
            if seq is not None:
                self._prune, self._prune_known = (seq, body), True
                self._trails.lose_known()
                sweep(self._chain)
                return seq

    def erase(self, *, reason: str, dry_run: bool = False) -> Erasure:
        """Remove all that the thread ever held from the store and its files.

        The identity needs the privacy role. A signed entry records the erasure; headers and
        signatures stay and say nothing about what was there. A later save under the name begins a
        new generation.

        Args:
            reason: Why, for the record. It stays readable.
            dry_run: Say what would go, and change nothing.

        Raises:
            UsageError: There is no reason, or it is too long.
            NotTrusted: The identity does not have the privacy role here.
            ReadOnly: The store was opened for reading only, and this is no dry run.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        check_reason(reason, "erase")
        with self._lock, self._reporting():
            if dry_run:
                self._look()
                erased = self._chain.verified_head().header.kind is Kind.ERASE
                return _erasure(would_sweep(self._chain, erased=not erased), None)
            self._core.signer()
            while True:
                self._look()
                head = self._chain.verified_head()
                seq: int | None = head.seq
                if head.header.kind is not Kind.ERASE:
                    body = EraseBody(salt=self._core.salt(), reason=reason)
                    seq = self._recorded(Draft(Kind.ERASE, body))
                if seq is not None:
                    self._forget()
                    swept = sweep(self._chain)
                    self._core.storage.compact()
                    return _erasure(swept, seq)

    def _forget(self) -> None:
        """Let go of what this handle knew, which is no longer there."""
        self._forget_all()
        self._prune, self._prune_known = None, True
        self._take_up()

    def _recorded(self, draft: Draft) -> int | None:
        """Append an entry; None if somebody else wrote first, and it is to be decided anew."""
        before = self._chain.head
        try:
            entry = append(self._chain, draft)
        except HeadMoved:
            self._look()
            self._require_moved(before)
            return None
        self._core.emit(draft.kind, entry.header.thread, entry.seq, entry.hash)
        return entry.seq

    def _require_moved(self, before: Entry | None) -> None:
        """Refuse to try again for ever: a damaged index may hold a position that no read shows."""
        if self._chain.head is before:
            raise Edited(
                f"thread {self._name!r}: expected the entry that is in the way, found none"
            ) from None

    def _swept(self, *, compact: bool) -> Swept:
        swept = sweep(self._chain)
        if compact and (swept.blobs or swept.payloads):
            self._core.storage.compact()
        return swept


def _spans(places: Iterable[tuple[int, bool]]) -> tuple[tuple[int, int], ...]:
    """First and last of each stretch of what goes; what lies between holds nothing."""
    spans: list[tuple[int, int]] = []
    open_span = False
    for seq, goes in places:
        if goes:
            spans.append((spans.pop()[0], seq) if open_span else (seq, seq))
        open_span = goes
    return tuple(spans)


def _pruning(given_up: Sequence[CheckpointRef], swept: Swept, entry: int | None) -> Pruning:
    return Pruning(
        pruned=tuple(given_up), blobs=swept.blobs, size_bytes=swept.size_bytes, entry=entry
    )


def _erasure(swept: Swept, entry: int | None) -> Erasure:
    return Erasure(
        entries=swept.payloads, blobs=swept.blobs, size_bytes=swept.size_bytes, entry=entry
    )
