# SPDX-License-Identifier: Apache-2.0
"""Checks of the claims in checkpoints, prunes and deletions about earlier entries.

A signature does not make a claim true: its writer may run other code. So readers that follow the
entries compare each claim with the entries themselves, in order: a full verification, a bundle, the
plan of a restore, and a writer that continues from another person's entries. They all use
`ClaimCheck`, so that none accepts what another refuses.

A reader that follows a thread from its first entry needs nothing else; it keeps a few bytes for
each entry. A reader that starts in the middle provides the facts about the entries below.
"""

import hashlib
from array import array
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from sealpoint.errors import Misplaced
from sealpoint.ledger._entry import NO_ID, PRINT_BYTES, Header, id_print
from sealpoint.ledger._entry_bodies import CheckpointBody, IdTable, PruneBody
from sealpoint.ledger._entry_kinds import KINDS, Kind

_NOTHING = PruneBody(salt="", before=0)
_MARK_BYTES = 16
"""The bytes of a name's mark: an attacker who chooses names must not find two with one mark."""
_NO_MARK = bytes(_MARK_BYTES)
_FILTER_BYTES_MIN = 1024


class Rank(NamedTuple):
    """The place that a checkpoint claims in its lane."""

    seq: int
    """Its own position."""
    rank: int
    """The position of the first checkpoint of its name."""
    since: int
    """The position of the first results that count for it."""


class Below(Protocol):
    """Facts about the entries below the first one that is followed."""

    removals: tuple[int, PruneBody] | None
    """The newest prune or deletion, with its position."""
    checkpoint: int
    """The position of the newest checkpoint; -1: there is none."""

    def find(self, lane: str, name: str) -> Rank | None:
        """Return the newest checkpoint of a name."""

    def newest(self, lane: str, is_gone: Callable[[int], bool]) -> Rank | None:
        """Return the checkpoint of a lane with the highest rank that is not gone."""

    def lanes_with_removals(self, earlier: PruneBody, now: PruneBody) -> set[str]:
        """Return every lane of which a prune gives up a checkpoint that still existed."""

    def divides(self, earlier: PruneBody, now: PruneBody) -> bool:
        """Whether a deletion takes a checkpoint and leaves another one of its name."""

    def prints(self) -> tuple[int, bytes]:
        """Return the first position of the generation, and the prints of its entries."""


class ClaimCheck:
    """The check of the claims in the entries of a generation, one entry after the other.

    Args:
        below: Facts about the entries below the first one that is followed; None: its generation
            has none there.
        first: The position of the first one that is followed.
    """

    def __init__(self, below: Below | None = None, first: int = 0) -> None:
        self._begin(below, first)

    def _begin(self, below: Below | None, first: int) -> None:
        self._below = below
        self._removals = None if below is None else below.removals
        self._checkpoint = -1 if below is None else below.checkpoint
        self._names = _Names(first)
        self._values: dict[tuple[str, str], list[int]] = {}
        """The positions of the checkpoints of each lane and name that has several."""
        self._lanes: dict[str, _Lane] = {}
        self._first = self._followed = first
        """The first position of the generation, as far as known, and the first one that is
        followed."""
        self._prints = bytearray()
        """The prints of the entries from the first one that is followed."""
        self._prints_below: bytes | None = None
        """The prints of the entries below, once they are needed."""
        self._lacks_bodies = False
        """Whether an erasure removed data that a later entry would be compared with."""

    def follow(self, header: Header, body: Any) -> None:
        """Take the next verified entry with its body, if the body exists.

        Raises:
            Misplaced: A prune or deletion restores data that was given up, or gives up data that
                must stay; or a checkpoint does not name the newest prune, claims another place than
                the first checkpoint of its name, or repeats other ids than those before it.
        """
        if header.kind in (Kind.GENESIS, Kind.ERASE):
            self._begin(None, header.seq)  # nothing before a new generation counts
        rule, found = KINDS[header.kind], NO_ID
        if rule.is_retention or rule.is_checkpoint:
            self._lacks_bodies = self._lacks_bodies or body is None
            if rule.is_retention and not self._lacks_bodies:
                self._follow_retention(header, body)
            elif rule.is_checkpoint and body is not None:
                if not self._lacks_bodies:
                    self._follow_checkpoint(header, body)
                found = id_print(body.lane, body.id)
        self._names.skip_to(header.seq + 1)
        self._prints += found

    def _follow_retention(self, header: Header, body: PruneBody) -> None:
        seq, is_prune = header.seq, header.kind is Kind.PRUNE
        prune, earlier = self._removals or (None, _NOTHING)
        if not body.includes(earlier):
            raise Misplaced(f"entry {seq}: it keeps what an earlier prune or delete gave up")
        if body.earlier != prune:
            raise Misplaced(f"entry {seq}: it does not name the prune or delete before it")
        if body.end > seq:
            raise Misplaced(f"entry {seq}: it gives up entries that were not there yet")
        needed = self._checkpoint >= 0 or is_prune
        for newest in (*([self._checkpoint] if needed else ()), *self._newest_left(earlier, body)):
            if body.covers(newest) and not body.deletes(newest):
                raise Misplaced(f"entry {seq}: it gives up the newest checkpoint")
        if is_prune and body.deleted != earlier.deleted:
            raise Misplaced(f"entry {seq}: a prune deletes nothing, and this one claims to")
        if self._divides(earlier, body):
            raise Misplaced(f"entry {seq}: it deletes a checkpoint and keeps another of its name")
        self._removals = seq, body
        for lane in self._lanes.values():
            lane.drop(body.covers)

    def _divides(self, earlier: PruneBody, now: PruneBody) -> bool:
        """Whether a deletion takes one of several checkpoints of a name and leaves another."""
        if now.deleted == earlier.deleted:
            return False
        for name, values in self._values.items():
            left = [seq for seq in values if not earlier.deletes(seq)]
            gone = [seq for seq in left if now.deletes(seq)]
            if gone and len(gone) < len(left):
                return True
            self._values[name] = left
        return self._below is not None and self._below.divides(earlier, now)

    def _newest_left(self, earlier: PruneBody, now: PruneBody) -> Iterator[int]:
        """Yield the checkpoint with the highest rank of each lane that may lose one."""
        below, lanes = self._below, {"", *self._lanes}
        if below is not None:
            lanes |= below.lanes_with_removals(earlier, now)
        for name in lanes:
            found = self._lanes[name].newest() if name in self._lanes else None
            if below is not None and (found is None or found.rank < self._followed):
                left = below.newest(name, earlier.covers), found
                found = max(filter(None, left), key=_order, default=None)
            if found is not None:
                yield found.seq

    def _follow_checkpoint(self, header: Header, body: CheckpointBody) -> None:
        seq = header.seq
        prune = None if self._removals is None else self._removals[0]
        if body.prune != prune:
            raise Misplaced(f"entry {seq}: expected it to name prune {prune}, found {body.prune}")
        rank = seq if body.again is None else body.again
        place = Rank(seq, rank, rank if body.since is None else body.since)
        known = self._names.find(body.lane, body.id)
        if known is None and self._below is not None:
            known = self._below.find(body.lane, body.id)
        if body.again is not None:
            _require_first(place, known, body.id)
        if known is not None:
            values = self._values.setdefault((body.lane, body.id), [known.rank, known.seq])
            values.append(seq)
        if body.ids is not None:
            self._require_table(seq, body.ids)
        self._checkpoint = seq
        self._names.add(body.lane, body.id, place)
        self._lanes.setdefault(body.lane, _Lane()).add(place)

    def _require_table(self, seq: int, table: IdTable) -> None:
        """Require that a table of ids repeats the ids of the entries before it."""
        if self._below is not None and self._prints_below is None:
            self._first, self._prints_below = self._below.prints()
        if table.first < self._first:
            raise Misplaced(
                f"entry {seq}: expected its table of ids to begin at entry {self._first} or later, "
                f"found entry {table.first}"
            )
        known = (self._prints_below or b"") + self._prints
        expected = known[(table.first - self._first) * PRINT_BYTES :].hex()
        if table.prints == expected:
            return
        pairs = zip(_each(expected), _each(table.prints), strict=True)
        at, one, other = next(
            (at, one, other) for at, (one, other) in enumerate(pairs, table.first) if one != other
        )
        raise Misplaced(
            f"entry {seq}: expected its table of ids to have {one} for entry {at}, found {other}"
        )


def _require_first(place: Rank, first: Rank | None, name: str) -> None:
    """Require that a checkpoint with an earlier name keeps the place of the first one."""
    if first is None or (first.rank, first.since) != (place.rank, place.since):
        raise Misplaced(
            f"entry {place.seq}: expected the rank of the first checkpoint {name!r}, and "
            f"its results, found rank {place.rank} and results from entry {place.since} on"
        )


def _each(prints: str) -> Iterator[str]:
    size = 2 * PRINT_BYTES
    return (prints[at : at + size] for at in range(0, len(prints), size))


def _order(place: Rank) -> tuple[int, int]:
    return place.rank, place.seq


class _Names:
    """The newest checkpoint of each name: a few bytes for each entry, and the few exceptions.

    Most names are new, and a search would take as long as the thread is. So two bits of a filter
    are set for each name: without them the name is new, and with them a search decides.

    Args:
        first: The position of the first entry.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._marks = bytearray()
        self._filter = bytearray(_FILTER_BYTES_MIN)
        self._others: dict[int, Rank] = {}
        """Checkpoints whose rank or results do not begin at their own position."""

    def skip_to(self, seq: int) -> None:
        """Record that the entries up to a position have no name."""
        missing = (seq - self._first) * _MARK_BYTES - len(self._marks)
        self._marks += _NO_MARK * (missing // _MARK_BYTES)

    def add(self, lane: str, name: str, place: Rank) -> None:
        """Take the checkpoint at the next position."""
        self.skip_to(place.seq)
        mark = _mark(lane, name)
        self._marks += mark
        if len(self._marks) > 2 * len(self._filter):
            self._filter = bytearray(4 * len(self._filter))
            for at in range(0, len(self._marks), _MARK_BYTES):
                self._set(bytes(self._marks[at : at + _MARK_BYTES]))
        self._set(mark)
        if place != (place.seq, place.seq, place.seq):
            self._others[place.seq] = place

    def find(self, lane: str, name: str) -> Rank | None:
        """Return the newest checkpoint of a name."""
        wanted = _mark(lane, name)
        if not all(self._filter[byte] & bit for byte, bit in self._bits(wanted)):
            return None
        at = self._marks.rfind(wanted)
        while at >= 0 and at % _MARK_BYTES:
            at = self._marks.rfind(wanted, 0, at + _MARK_BYTES - 1)
        if at < 0:
            return None
        seq = self._first + at // _MARK_BYTES
        return self._others.get(seq, Rank(seq, seq, seq))

    def _set(self, mark: bytes) -> None:
        for byte, bit in self._bits(mark):
            self._filter[byte] |= bit

    def _bits(self, mark: bytes) -> Iterator[tuple[int, int]]:
        """Yield the two bits of a name, each as a byte of the filter and a bit in it."""
        for at in (0, _MARK_BYTES // 2):
            number = int.from_bytes(mark[at : at + _MARK_BYTES // 2], "big")
            yield number // 8 % len(self._filter), 1 << number % 8


def _mark(lane: str, name: str) -> bytes:
    """Return the bytes that represent a name; the lane's length tells where its id begins."""
    first, second = lane.encode(), name.encode()
    framed = len(first).to_bytes(8, "big") + first + second
    return hashlib.sha256(framed).digest()[:_MARK_BYTES]


class _Lane:
    """The ranks of the checkpoints of a lane that were not given up."""

    def __init__(self) -> None:
        self._seqs = array("q")
        self._ranks = array("q")

    def add(self, place: Rank) -> None:
        """Take the next checkpoint."""
        self._seqs.append(place.seq)
        self._ranks.append(place.rank)

    def drop(self, is_gone: Callable[[int], bool]) -> None:
        """Drop the checkpoints that are gone."""
        left = [at for at, seq in enumerate(self._seqs) if not is_gone(seq)]
        if len(left) < len(self._seqs):
            self._seqs = array("q", (self._seqs[at] for at in left))
            self._ranks = array("q", (self._ranks[at] for at in left))

    def newest(self) -> Rank | None:
        """Return the checkpoint with the highest rank; of several with one name, the last."""
        best: Rank | None = None
        for at in range(len(self._seqs) - 1, -1, -1):
            seq, rank = self._seqs[at], self._ranks[at]
            if best is not None and seq < best.rank:
                break  # nothing ranks above its own position
            if best is None or rank > best.rank:
                best = Rank(seq, rank, rank)
        return best
