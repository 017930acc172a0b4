# SPDX-License-Identifier: Apache-2.0
"""The positions of a thread's checkpoints, and of the results that were added to them.

A thread may hold several lines of work, its *lanes*: a framework uses separate lanes for its
subgraphs. The index is built only from verified entries. An index in the store is never used,
because one that hides an entry would make an id appear free. The index covers the chain from its
head down to its bottom, and grows downwards as needed. An audit builds a complete index from the
first entry on, without a chain. The index contains everything that a release needs.

A lookup of one id need not wait until the index has grown down to it: some checkpoints carry the
ids of a long stretch before them, signed and linked like the rest of their body. `OlderIds` reads
those tables, and the writer makes them.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from heapq import heappop, heappush
from itertools import chain as chained
from itertools import takewhile
from typing import Any, NamedTuple

from sealpoint.errors import Misplaced
from sealpoint.ledger import (
    KINDS,
    NO_ID,
    PRINT_BYTES,
    TABLE_EVERY,
    TABLE_POSITIONS_MAX,
    CheckpointBody,
    Header,
    IdTable,
    Kind,
    Origin,
    PruneBody,
    Rank,
    ResultsBody,
    id_print,
    link_hash,
)
from sealpoint.storage import Record
from sealpoint.store._verified_chain import Chain, entry_body


class Key(NamedTuple):
    """The lane and id that identify a checkpoint within its thread."""

    lane: str
    id: str


class CheckpointPlace(NamedTuple):
    """The position of a checkpoint, proven by the links from the head, and facts from its body."""

    seq: int
    entry: bytes
    """The hash of the entry."""
    key: Key
    rank: int
    """The position of the first checkpoint of the same name, which gives the order in the lane."""
    held: bool
    """Whether a pause held it back."""
    at: datetime
    world: str | None
    question: Any
    since: int
    """The position of the first results that count for it."""
    origin: Origin | None
    session: int
    """The position of the resume that began the session in which it was saved."""


class ResultPlace(NamedTuple):
    """The position of results that were added to a checkpoint, and facts from their body."""

    seq: int
    entry: bytes
    key: Key
    """The key of the checkpoint, which may be saved later."""
    task: str
    path: str
    question: Any
    answers: bool


Gone = Callable[[int], bool]
"""Whether the entry at a position was pruned or deleted."""


class CheckpointIndex:
    """The checkpoints and results of a thread.

    Args:
        chain: A chain with a verified head, for an index that grows downwards; None: a complete
            index, which receives every entry from the first on.
        is_complete: Whether the index is complete although there is a chain.
    """

    def __init__(self, chain: Chain | None, *, is_complete: bool = False) -> None:
        self._chain = chain
        self._bottom: Header | None = None
        self._top = -1
        """The newest position that it covers."""
        self._complete = chain is None or is_complete
        self._older: OlderIds | None = None
        """The ids below the bottom, from the tables, once a table was found."""
        self._places: dict[tuple[str, str], CheckpointPlace] = {}
        """By their keys, which are found as plain pairs too."""
        self._superseded: dict[Key, CheckpointPlace] = {}
        """For names that were saved more than once, the lowest checkpoint found so far."""
        self._lowest: CheckpointBody | None = None
        """The lowest checkpoint on the way down."""
        self._lowest_removals: PruneBody | None = None
        """The lowest prune or deletion on the way down."""
        self._results: dict[Key, list[ResultPlace]] = {}
        self._order: dict[str, list[tuple[int, str]]] = {}
        """By lane, in the order of their ranks."""
        self._saved: deque[tuple[int, Key]] = deque()
        """Every checkpoint by its position, rising."""
        self._added: deque[tuple[int, Key]] = deque()
        """The same for all results."""
        self._floor = 0
        """Entries before this position were dropped from the index."""
        self.asked_too_far = False
        """Whether a caller has asked for dropped entries, so that the answer may be incomplete."""

    def find(self, key: Key) -> CheckpointPlace | None:
        """Return the newest checkpoint of a name."""
        self._grow(lambda _seq: key in self._places or self._older is not None)
        found = self._places.get(key)
        if found is None and self._older is not None and not self._complete:
            found = self._older.find(key)
        return found

    def known(self, key: Key) -> CheckpointPlace | None:
        """Return the newest checkpoint of a name, as far as the index already reaches."""
        return self._places.get(key)

    def newest(self, lane: str, gone: Gone) -> CheckpointPlace | None:
        """Return the newest checkpoint of a lane that is not gone."""
        found = next(self._left(lane, gone), None)
        reaches = found is not None and self._bottom is not None and self._bottom.seq <= found.rank
        if not self._complete and not reaches:

            def ranks_first(seq: int) -> bool:
                newest = next(self._left(lane, gone), None)
                return newest is not None and seq <= newest.rank

            self._grow(ranks_first)
            found = next(self._left(lane, gone), None)
        if found is None or found.rank < self._floor:
            self._note_floor(-1)
        return found

    def each(self, lane: str, gone: Gone) -> Iterator[CheckpointPlace]:
        """Yield all checkpoints of a lane that are not gone, newest first."""
        self._grow_down_to(-1)
        yield from list(self._left(lane, gone))

    def lanes(self) -> list[str]:
        """Return every lane that has a checkpoint."""
        self._grow_down_to(-1)
        return sorted(self._order)

    def lanes_after(self, seq: int, gone: Gone) -> Iterator[CheckpointPlace]:
        """Yield the newest checkpoint of every lane that was written to after a position.

        A write is a checkpoint, or results that are not gone, for any checkpoint.
        """
        for lane in sorted(self.busy_lanes(seq, gone)):
            found = self.newest(lane, gone)
            if found is not None:
                yield found

    def busy_lanes(self, seq: int, gone: Gone) -> set[str]:
        """Return every lane that was written to after a position."""
        self._grow_down_to(seq)
        return self._busy_after(seq, gone)

    def saved_after(self, seq: int) -> list[CheckpointPlace]:
        """Return the newest checkpoint of each name saved after a position, newest first."""
        self._grow_down_to(seq)
        found = {key: self._places[key] for _, key in self._saved_after(seq)}
        return list(found.values())

    def results(self, key: Key, since: int) -> list[ResultPlace]:
        """Return the results that were added to a checkpoint at `since` or later, oldest first.

        Earlier results are left out even if they are known, so that every handle reads the same
        state.
        """
        self._grow_down_to(since)
        return [place for place in self._results.get(key, ()) if place.seq >= since]

    def earliest(self, key: Key, since: int, gone: Gone) -> int | None:
        """Return the position of the first results of a checkpoint that is about to be written.

        Such results belong to the same session, which begins at `since`.
        """
        self._grow_down_to(since)
        found = (
            place.seq
            for place in self._results.get(key, ())
            if place.seq >= since and not gone(place.seq)
        )
        return next(found, None)

    def follow(
        self,
        header: Header,
        entry: bytes,
        body: CheckpointBody | ResultsBody,
        place: CheckpointPlace | None = None,
    ) -> bool:
        """Add an entry that has just become the newest; with its place, if that is known.

        Returns:
            False if a newer entry is in the index already. The last saved checkpoint would then no
            longer be the newest, so nothing is added, and the owner of the index must build
            another.
        """
        if self._bottom is None and not self._complete:
            return True  # nothing was read yet: the way down begins above this entry
        if header.seq <= self._top:
            return False
        self._top = header.seq
        if place is not None:
            self._put(place, older=False)
        else:
            self._add(header, entry, body, older=False)
        return True

    def forget_before(self, seq: int, gone: Gone) -> None:
        """Drop the entries before a position, to limit memory.

        The newest checkpoint of the main lane stays, and that of each lane written to since.
        """
        busy = self._busy_after(seq - 1, gone) | {""}
        newest = [self.newest(lane, gone) for lane in busy]
        older = [place for place in self._places.values() if place.seq < seq]
        for place in older:
            if place not in newest:
                self._superseded.pop(place.key, None)
                del self._places[place.key]
                self._order[place.key.lane].remove((place.rank, place.key.id))
        self._forget_results(seq)
        self._floor = seq

    def _forget_results(self, seq: int) -> None:
        for key, results in list(self._results.items()):
            if key not in self._places and results[-1].seq < seq:
                del self._results[key]
        self._saved = deque(saved for saved in self._saved if saved[1] in self._places)
        self._added = deque(added for added in self._added if added[1] in self._results)

    def result_count(self) -> int:
        """Return how many results it holds."""
        return sum(map(len, self._results.values()))

    def _saved_after(self, seq: int) -> Iterator[tuple[int, Key]]:
        return takewhile(lambda saved: saved[0] > seq, reversed(self._saved))

    def _busy_after(self, seq: int, gone: Gone) -> set[str]:
        added = takewhile(lambda added: added[0] > seq, reversed(self._added))
        return {key.lane for _, key in self._saved_after(seq)} | {
            key.lane for at, key in added if not gone(at)
        }

    def _left(self, lane: str, gone: Gone) -> Iterator[CheckpointPlace]:
        for _, name in reversed(self._order.get(lane, ())):
            place = self._places[lane, name]
            if not gone(place.seq):
                yield place

    def _grow_down_to(self, seq: int) -> None:
        self._note_floor(seq)
        self._grow(lambda bottom: bottom <= seq)

    def _note_floor(self, seq: int) -> None:
        if seq + 1 < self._floor:
            self.asked_too_far = True

    def _grow(self, enough: Callable[[int], bool]) -> None:
        """Extend the index downwards until `enough(seq)` or the start of the generation."""
        if self._complete or self._chain is None:
            return
        if self._bottom is not None and enough(self._bottom.seq):
            return
        for header, record in self._below(self._chain):
            if header.kind is Kind.ERASE:
                break
            self._take(self._chain.name, header, record)
            self._bottom = header
            if enough(header.seq):
                return
        self._complete = True

    def _below(self, chain: Chain) -> Iterator[tuple[Header, Record]]:
        """Return the entries below the bottom; at first from the head on."""
        if self._bottom is None:
            self._top = chain.verified_head().seq
        return chain.walk(self._bottom)

    def _take(self, name: str, header: Header, record: Record) -> None:
        rule = KINDS[header.kind]
        if rule.is_retention:
            require_named(self._lowest, header.seq)
            self._take_removals(name, header, record)
        if not rule.holds_payload:
            return
        body = entry_body(name, header, record.body)
        self._add(header, link_hash(record.header), body, older=True)
        if isinstance(body, CheckpointBody):
            require_named(self._lowest, body.prune)
            self._lowest = body

    def _take_removals(self, name: str, header: Header, record: Record) -> None:
        """Check that each later prune or delete names the one before it."""
        above: PruneBody | None = self._lowest_removals
        if above is not None and above.earlier != header.seq:
            raise Misplaced(
                f"entry {header.seq} of thread {name!r}: the prune or delete after it names entry "
                f"{above.earlier} as the one before"
            )
        self._lowest_removals = entry_body(name, header, record.body)

    def _add(
        self, header: Header, entry: bytes, body: CheckpointBody | ResultsBody, *, older: bool
    ) -> None:
        if isinstance(body, CheckpointBody):
            self._put(checkpoint_place(header, entry, body), older=older)
            if older and body.ids is not None and self._chain is not None:
                self._older = OlderIds(self._chain, header.seq)
            return
        place = _result_of(header, entry, body)
        results = self._results.setdefault(place.key, [])
        results.insert(0 if older else len(results), place)
        (self._added.appendleft if older else self._added.append)((place.seq, place.key))

    def _put(self, place: CheckpointPlace, *, older: bool) -> None:
        known = self._places.get(place.key)
        if known is not None:
            self._supersede(known, place, older=older)
            if older:
                return
        (self._saved.appendleft if older else self._saved.append)((place.seq, place.key))
        self._places[place.key] = place
        order = self._order.setdefault(place.key.lane, [])
        if known is not None and known.rank != place.rank:
            order.remove((known.rank, place.key.id))  # the previous one was deleted
        if known is None or known.rank != place.rank:
            insort(order, (place.rank, place.key.id))

    def _supersede(self, known: CheckpointPlace, place: CheckpointPlace, *, older: bool) -> None:
        """Record that a second checkpoint of a name was found."""
        if not older:
            require_place_of(place, known)
            self._superseded.setdefault(place.key, known)
            return
        require_place_of(self._superseded.get(place.key, known), place)
        self._superseded[place.key] = place


def require_named(above: CheckpointBody | None, removals: int | None) -> None:
    """Refuse a checkpoint that does not name the newest prune or deletion before it.

    Args:
        above: The checkpoint above, if it exists.
        removals: The prune or deletion that was found below it, or that the next checkpoint names.

    Raises:
        Misplaced: The checkpoint names an earlier one, or none.
    """
    if above is None or removals is None:
        return
    if above.prune is None or above.prune < removals:
        raise Misplaced(
            f"checkpoint {above.id!r}: expected it to name what entry {removals} gave up, or a "
            f"later one, found {above.prune}"
        )


class AllCheckpoints:
    """Every checkpoint of the lanes of a thread, including superseded ones.

    It reads from the head downwards, as far as needed.

    Args:
        chain: A chain with a verified head.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._bottom: Header | None = None
        self._complete = False
        self._lanes: dict[str, list[Rank]] = {}
        """By lane, each lower than the one before it."""

    def each(self, lane: str) -> Iterator[Rank]:
        """Yield a lane's checkpoints by rank, highest first, and of a name the last one first."""
        places, taken = self._lanes.setdefault(lane, []), 0
        waiting: list[tuple[int, int, int]] = []
        while True:
            highest = -waiting[0][0] if waiting else -1
            # No checkpoint ranks above its own position.
            if taken < len(places) and places[taken].seq >= highest:
                place = places[taken]
                heappush(waiting, (-place.rank, -place.seq, place.since))
                taken += 1
            elif taken == len(places) and not self._reaches(highest):
                self._grow(highest, lane)
            elif waiting:
                rank, seq, since = heappop(waiting)
                yield Rank(-seq, -rank, since)
            else:
                return

    def lanes_between(self, first: int, end: int) -> set[str]:
        """Return every lane with a checkpoint at a position from `first` on and before `end`."""
        if first < end:
            self._grow(first)
        found = set[str]()
        for lane, places in self._lanes.items():
            at = bisect_right(places, -end, key=lambda place: -place.seq)
            if at < len(places) and places[at].seq >= first:
                found.add(lane)
        return found

    def _reaches(self, seq: int) -> bool:
        return self._complete or (self._bottom is not None and self._bottom.seq <= seq)

    def _grow(self, seq: int, lane: str | None = None) -> None:
        """Read down to a position, or to the next checkpoint of a lane."""
        if self._reaches(seq):
            return
        for header, record in self._chain.walk(self._bottom):
            if header.kind is Kind.ERASE:
                break
            body = checkpoint_of(self._chain, header, record)
            if body is not None:
                place = checkpoint_place(header, b"", body)
                found = Rank(place.seq, place.rank, place.since)
                self._lanes.setdefault(body.lane, []).append(found)
            self._bottom = header
            if header.seq <= seq or (body is not None and body.lane == lane):
                return
        self._complete = True


class _RemovalHistory:
    """The prunes and deletions of a thread, read from the newest one on, as far as needed."""

    def __init__(self, chain: Chain, newest: tuple[int, PruneBody]) -> None:
        self._chain = chain
        self._known = [newest]

    def first(self, seq: int) -> tuple[int, PruneBody, PruneBody | None]:
        """Return the first prune that covers a position, its position, and the prune before it."""
        while (body := self._known[-1][1]).covers(seq) and body.earlier is not None:
            self._known.append((body.earlier, retention_at(self._chain, body.earlier)))
        at = bisect_left(self._known, 1, key=lambda each: int(not each[1].covers(seq)))
        return *self._known[at - 1], self._known[at][1] if at < len(self._known) else None


def require_newest_kept(
    chain: Chain, index: CheckpointIndex, lane: str, removals: tuple[int, PruneBody]
) -> None:
    """Refuse a lane if a prune removed the checkpoint that was its newest at that time.

    Such a prune makes an older checkpoint appear as the newest, or none. A deletion may do that,
    and is shown.

    Args:
        chain: A chain with a verified head.
        index: Its index.
        lane: The lane.
        removals: The newest prune or deletion, with its position.

    Raises:
        Misplaced: A prune removed the newest remaining checkpoint, which it must keep.
    """
    top = index.newest(lane, lambda _seq: False)
    if top is None or not removals[1].covers(top.seq):
        return  # the usual case
    history, above = _RemovalHistory(chain, removals), list[int]()
    for place in AllCheckpoints(chain).each(lane):
        if not removals[1].covers(place.seq):
            return
        taken, by, before = history.first(place.seq)
        left = (each < taken and not (before and before.covers(each)) for each in reversed(above))
        if not by.deletes(place.seq) and not any(left):
            raise Misplaced(
                f"entry {place.seq} of thread {chain.name!r}: a prune took the newest checkpoint, "
                "which a prune must keep"
            )
        above.append(place.seq)


def retention_at(chain: Chain, seq: int) -> PruneBody:
    """Return the body of a prune or deletion that a later entry names.

    Raises:
        Misplaced: The entry is not a prune or deletion, or removes more than existed.
    """
    record, header = chain.descend(seq)
    if not KINDS[header.kind].is_retention:
        raise Misplaced(
            f"entry {seq} of thread {chain.name!r}: the prune that a later entry names is not there"
        )
    body: PruneBody = entry_body(chain.name, header, record.body)
    if body.end > seq or (body.earlier is not None and body.earlier >= seq):
        raise Misplaced(
            f"entry {seq} of thread {chain.name!r}: a prune gives up more than was there"
        )
    return body


def require_place_of(newer: CheckpointPlace, older: CheckpointPlace) -> None:
    """Refuse a checkpoint that supersedes another and takes a different place.

    Otherwise an attacker with the owner's key could make an older state the newest, or have
    finished work repeated.

    Raises:
        Misplaced: It names another rank or other results. A checkpoint without its own rank is new.
    """
    if newer.rank == newer.seq or (newer.rank, newer.since) == (older.rank, older.since):
        return
    raise Misplaced(
        f"entry {newer.seq}: expected rank {older.rank} with results from entry {older.since} on, "
        f"as entry {older.seq} of the same name has, found {newer.rank} and {newer.since}"
    )


def _position(place: ResultPlace) -> int:
    return place.seq


def checkpoint_place(header: Header, entry: bytes, body: CheckpointBody) -> CheckpointPlace:
    """Return the place of a verified checkpoint, from its own fields."""
    rank = header.seq if body.again is None else body.again
    return CheckpointPlace(
        header.seq,
        entry,
        Key(body.lane, body.id),
        rank,
        header.kind is Kind.HELD,
        header.at,
        body.world,
        body.question,
        rank if body.since is None else body.since,
        body.origin,
        header.fence,
    )


def _result_of(header: Header, entry: bytes, body: ResultsBody) -> ResultPlace:
    key = Key(body.lane, body.checkpoint)
    return ResultPlace(header.seq, entry, key, body.task, body.path, body.question, body.answers)


# ------------------------------------------------------------------ tables of ids


class _Stretch(NamedTuple):
    """The ids of consecutive entries."""

    first: int
    prints: bytes
    known: frozenset[int]
    """The prints without their order, to rule out an id quickly."""

    @classmethod
    def of(cls, first: int, prints: bytes) -> "_Stretch":
        return cls(first, prints, frozenset(memoryview(prints).cast("I")))

    def positions(self, wanted: bytes) -> Iterator[int]:
        """Yield the positions of the entries that may have an id, newest first."""
        if memoryview(wanted).cast("I")[0] not in self.known:
            return
        at = self.prints.rfind(wanted)
        while at >= 0:
            place, between = divmod(at, PRINT_BYTES)
            if not between:
                yield self.first + place
            at = self.prints.rfind(wanted, 0, at + PRINT_BYTES - 1)


_POSITIONS_LEAST = TABLE_EVERY // 2
"""A table with fewer positions costs more than a walk: its seal, and a way down from the head."""


class OlderIds:
    """The ids of all entries before a position, from the tables there.

    Args:
        chain: A chain with a verified head.
        seq: The position of a checkpoint with a table.
    """

    def __init__(self, chain: Chain, seq: int) -> None:
        self._chain = chain
        self._known: list[_Stretch] = []
        self._below = seq
        """Nothing before this position has been read yet."""
        self._complete = False

    def find(self, key: Key) -> CheckpointPlace | None:
        """Return the newest checkpoint of a name, proven by links; its seal is not checked yet.

        Raises:
            Misplaced: A table and the entry at that position contradict each other.
        """
        wanted = id_print(*key)
        for stretch in chained(list(self._known), self._read()):
            for seq in stretch.positions(wanted):
                record, header = self._chain.descend(seq)
                body = checkpoint_of(self._chain, header, record)
                # Ids with the same print are rare: a table with many of them was crafted.
                if body is None or id_print(body.lane, body.id) != wanted:
                    raise Misplaced(
                        f"entry {seq} of thread {self._chain.name!r}: a table of ids tells of "
                        "another one there"
                    )
                if (body.lane, body.id) == key:
                    return checkpoint_place(header, link_hash(record.header), body)
        return None

    def _read(self) -> Iterator[_Stretch]:
        """Read the remaining stretches; after an error, the next lookup continues there."""
        if self._complete:
            return
        below = self._below
        for first, prints in id_stretches(self._chain, below, below, least=_POSITIONS_LEAST):
            self._known.append(_Stretch.of(first, prints))
            self._below = first
            yield self._known[-1]
        self._complete = True


def id_stretches(
    chain: Chain, start: int, end: int, *, least: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Yield the prints of the generation's entries before a position, in stretches, newest first.

    If a checkpoint carries a table, the table stands for the entries before it, and the walk
    continues at the table's first entry. The checkpoint is verified on its own, so that a key that
    counts vouches for the skipped entries.

    Args:
        chain: A chain with a verified head.
        start: Where the walk begins: at the last entry before `end`, or at `end` for its table.
        end: The position.
        least: A table with fewer positions is skipped, and its entries are read instead.

    Yields:
        The first position of a stretch, and four bytes for each of its entries.

    Raises:
        Missing, Edited, Forked: The store lacks an entry or its body, or has others.
        Misplaced: A table goes beyond its generation.
    """
    gen = chain.verified_head().header.gen
    prints: list[bytes] = []
    table: IdTable | None = None
    while start >= 0:
        for header, record in _downwards(chain, start):
            if header.gen != gen:
                raise Misplaced(
                    f"thread {chain.name!r}: a table of ids begins at entry {header.seq}, which "
                    "is of another generation"
                )
            body = checkpoint_of(chain, header, record)
            if header.seq < end:
                prints.append(NO_ID if body is None else id_print(body.lane, body.id))
            table = None if body is None else _table_of(body, header.seq, least)
            if table is not None or header.kind is Kind.GENESIS:
                break
            if len(prints) == TABLE_POSITIONS_MAX:
                yield header.seq, join_prints(prints)
        if prints:
            yield header.seq, join_prints(prints)
        if table is None:
            return
        chain.verify(record, header.seq)
        yield table.first, bytes.fromhex(table.prints)
        start = end = table.first


def join_prints(prints: list[bytes]) -> bytes:
    """Join prints that were collected downwards, in rising order; the list is emptied."""
    joined = b"".join(reversed(prints))
    prints.clear()
    return joined


def _downwards(chain: Chain, seq: int) -> Iterator[tuple[Header, Record]]:
    record, header = chain.descend(seq)
    yield header, record
    if seq:
        yield from chain.walk(header)


def _table_of(body: CheckpointBody, seq: int, least: int) -> IdTable | None:
    table = body.ids
    return None if table is None or seq - table.first < least else table


def checkpoint_of(chain: Chain, header: Header, record: Record) -> CheckpointBody | None:
    """Return the checkpoint body of a proven entry; None if it is another kind of entry."""
    if not KINDS[header.kind].is_checkpoint:
        return None
    body: CheckpointBody = entry_body(chain.name, header, record.body)
    return body
