# SPDX-License-Identifier: Apache-2.0
"""Retention of a thread: removing old states, and erasing everything it held.

The signed entry that records the removal comes first, then the removal of bytes. A crash in between
leaves bytes that no reader may use any more, and the next call, or `gc`, removes them. ADR 0009
gives the reasons.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec

from sealpoint.errors import UnknownCheckpoint, UsageError
from sealpoint.ledger import (
    KINDS,
    CheckpointBody,
    EraseBody,
    Kind,
    PruneBody,
    ResultsBody,
)
from sealpoint.signing import check_reason, check_reason_size
from sealpoint.store._append_entries import EntryDraft
from sealpoint.store._checkpoint_index import Key
from sealpoint.store._garbage_collection import Swept, sweep, would_sweep
from sealpoint.store._names import check_name
from sealpoint.store._return_values import CheckpointRef, Erasure, Pruning
from sealpoint.store._thread_reader import list_checkpoints
from sealpoint.store._thread_state import ThreadState
from sealpoint.store._verified_chain import entry_body


@dataclass(frozen=True, slots=True)
class _Keep:
    """The rules of a prune: it keeps every checkpoint that any rule names."""

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
            raise UsageError("prune: say what to keep, with keep_last, keep_since or keep")
        if last is not None and last < 1:
            raise UsageError(f"keep_last: expected 1 or more, found {last!r}")
        if since is not None and since.tzinfo is None:
            raise UsageError(
                "keep_since: the time needs a zone",
                hint="Give it with its zone, such as datetime(2030, 1, 1, tzinfo=UTC).",
            )
        return cls(last, since, named)

    def keeps(self, place: int, ref: CheckpointRef) -> bool:
        """Whether to keep the checkpoint with number `place`, counted from the newest."""
        return (
            place == 0
            or (self.last is not None and place < self.last)
            or (self.since is not None and ref.time >= self.since)
            or ref.id in self.ids
        )


class _Holding(NamedTuple):
    """An entry that holds a state or results."""

    seq: int
    kind: Kind
    key: Key
    """The key of its checkpoint."""
    rank: int


class ThreadRetention:
    """Removes data of a thread: old states, checkpoints that the application deletes, or all."""

    def __init__(self, state: ThreadState) -> None:
        self._state = state
        self._core = state.core
        self._chain = state.chain

    def prune(
        self,
        *,
        last: int | None,
        since: datetime | None,
        ids: "Iterable[str | CheckpointRef]",
        reason: str | None,
        dry_run: bool,
        compact: bool,
    ) -> Pruning:
        """Remove the states of older checkpoints; see `Thread.prune`."""
        rule = _Keep.checked(last, since, ids)
        if reason is not None:
            check_reason_size(reason, "prune")
        with self._state.reporting():
            if dry_run:
                return self._state.retry_if_pruned(lambda: self._would_prune(rule))
            self._core.signer()
            return self._state.retry_if_pruned(lambda: self._prune(rule, reason, compact=compact))

    def _would_prune(self, rule: _Keep) -> Pruning:
        self._state.refresh()
        removals, body = self._plan(rule, None)
        swept = would_sweep(self._chain, prune=body if removals else None)
        return _pruning(removals, swept, None)

    def _prune(self, rule: _Keep, reason: str | None, *, compact: bool) -> Pruning:
        while True:
            self._state.refresh()
            removals, body = self._plan(rule, reason)
            if not removals:
                return _pruning([], self._sweep(compact=compact), None)
            seq = self._state.record(EntryDraft(Kind.PRUNE, body))
            if seq is not None:
                gone = [msgspec.structs.replace(ref, pruned=True) for ref in removals]
                return _pruning(gone, self._sweep(compact=compact), seq)

    def _plan(self, rule: _Keep, reason: str | None) -> tuple[list[CheckpointRef], PruneBody]:
        """Return the checkpoints that the rule removes now, and the entry for all removals."""
        earlier, holding = self._removals_before(), list(self._holding())
        kept, removals = self._divide(rule, {each.seq: each.rank for each in holding})
        # A checkpoint that another one of the same name superseded is removed with that name.
        gone = _keys(removals) - _keys(kept)
        results = [each for each in holding if each.kind is Kind.RESULTS]
        lost = {ref.seq for ref in removals} | {each.seq for each in results if each.key in gone}
        rest = {ref.seq for ref in kept}
        rest |= {each.seq for each in results if not earlier.covers(each.seq)} - lost
        before = max(earlier.before, max(lost, default=-1) + 1)
        body = msgspec.structs.replace(
            earlier,
            salt=self._core.salt(),
            earlier=self._state.retention.seq(),
            before=before,
            kept=tuple(sorted(seq for seq in rest if seq < before)),
            reason=reason,
        )
        return removals, body

    def _divide(
        self, rule: _Keep, ranks: Mapping[int, int]
    ) -> tuple[list[CheckpointRef], list[CheckpointRef]]:
        """Return the checkpoints that still have their state: the kept ones, and the others.

        Raises:
            UnknownCheckpoint: A checkpoint to keep does not exist.
        """
        kept: list[CheckpointRef] = []
        removals: list[CheckpointRef] = []
        places: Counter[str] = Counter()
        all_listed = list_checkpoints(self._state, self._chain, self._state.retention.newest())
        listed = [ref for ref in all_listed if not ref.pruned]
        # A process that saves at the same time relies on the last save, which may rank lower.
        last = {ref.lane: ref.seq for ref in reversed(listed)}
        for ref in sorted(listed, key=lambda ref: ranks[ref.seq], reverse=True):
            keeps = rule.keeps(places[ref.lane], ref) or ref.seq == last[ref.lane]
            (kept if keeps else removals).append(ref)
            places[ref.lane] += 1
        if missing := rule.ids - {ref.id for ref in kept}:
            raise UnknownCheckpoint(
                f"thread {self._state.name!r}: it has no checkpoint {min(missing)!r} with its state"
            )
        return kept, removals

    def _removals_before(self) -> PruneBody:
        earlier = self._state.retention.newest()
        return PruneBody(salt="", before=0) if earlier is None else earlier

    def _holding(self) -> Iterator[_Holding]:
        """Yield every entry of this generation that holds a payload, newest first."""
        for header, record in self._chain.walk():
            if header.kind is Kind.ERASE:
                return
            if KINDS[header.kind].holds_payload:
                body: CheckpointBody | ResultsBody = entry_body(
                    self._state.name, header, record.body
                )
                rank = header.seq
                if isinstance(body, CheckpointBody):
                    rank = header.seq if body.again is None else body.again
                name = body.id if isinstance(body, CheckpointBody) else body.checkpoint
                yield _Holding(header.seq, header.kind, Key(body.lane, name), rank)

    def delete(self, names: "Iterable[Key] | None", reason: str | None) -> int | None:
        """Delete checkpoints with their results; see `AdapterThread.delete`."""
        chosen = None if names is None else frozenset(names)
        with self._state.reporting():
            self._core.signer()
            return self._state.retry_if_pruned(lambda: self._delete(chosen, reason))

    def _delete(self, names: frozenset[Key] | None, reason: str | None) -> int | None:
        while True:
            self._state.refresh()
            earlier = self._removals_before()
            places = sorted(
                (each.seq, names is None or each.key in names) for each in self._holding()
            )
            spans = _spans((seq, goes or earlier.deletes(seq)) for seq, goes in places)
            if spans == earlier.deleted:
                return None
            body = msgspec.structs.replace(
                earlier,
                salt=self._core.salt(),
                earlier=self._state.retention.seq(),
                deleted=spans,
                reason=reason,
            )
            seq = self._state.record(EntryDraft(Kind.DELETE, body))
            if seq is not None:
                sweep(self._chain)
                return seq

    def erase(self, reason: str, *, dry_run: bool) -> Erasure:
        """Remove everything that the thread ever held; see `Thread.erase`."""
        check_reason(reason, "erase")
        with self._state.reporting():
            if dry_run:
                self._state.refresh()
                erased = self._chain.verified_head().header.kind is Kind.ERASE
                return _erasure(would_sweep(self._chain, erased=not erased), None)
            self._core.signer()
            while True:
                self._state.refresh()
                head = self._chain.verified_head()
                seq: int | None = head.seq
                if head.header.kind is not Kind.ERASE:
                    body = EraseBody(salt=self._core.salt(), reason=reason)
                    seq = self._state.record(EntryDraft(Kind.ERASE, body))
                if seq is not None:
                    self._state.mark_seen()
                    swept = sweep(self._chain)
                    self._core.storage.compact()
                    return _erasure(swept, seq)

    def _sweep(self, *, compact: bool) -> Swept:
        swept = sweep(self._chain)
        if compact and (swept.blobs or swept.payloads):
            self._core.storage.compact()
        return swept


def _keys(refs: Iterable[CheckpointRef]) -> set[Key]:
    return {Key(ref.lane, ref.id) for ref in refs}


def _spans(places: Iterable[tuple[int, bool]]) -> tuple[tuple[int, int], ...]:
    """Return first and last of each stretch to delete; the entries between hold no payload."""
    spans: list[tuple[int, int]] = []
    open_span = False
    for seq, goes in places:
        if goes:
            spans.append((spans.pop()[0], seq) if open_span else (seq, seq))
        open_span = goes
    return tuple(spans)


def _pruning(removals: Sequence[CheckpointRef], swept: Swept, entry: int | None) -> Pruning:
    return Pruning(
        pruned=tuple(removals), blobs=swept.blobs, size_bytes=swept.size_bytes, entry=entry
    )


def _erasure(swept: Swept, entry: int | None) -> Erasure:
    return Erasure(
        entries=swept.payloads, blobs=swept.blobs, size_bytes=swept.size_bytes, entry=entry
    )
