# SPDX-License-Identifier: Apache-2.0
"""What an audit remembers of a thread on its way through it, so that it can make releases again."""

from array import array
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sealpoint.ledger import (
    CheckpointBody,
    Entry,
    Header,
    Kind,
    PruneBody,
    ResultsBody,
    Tip,
)
from sealpoint.limits import AUDIT_CHECKPOINTS_MAX, AUDIT_RESULTS_MAX
from sealpoint.store import (
    CheckpointIndex,
    CheckpointPlace,
    Key,
    Release,
    Standpoint,
    make_release,
    place_of,
)

_HASH_BYTES = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Outline(NamedTuple):
    """What is known of a checkpoint however far back it lies."""

    seq: int
    time: datetime
    """When the state was saved first: of a copy, when the original was."""
    world: str | None
    """The digest of what the run was able to do."""


class _Outlines:
    """The outline of every checkpoint, in few bytes each: that much memory follows the thread."""

    def __init__(self) -> None:
        self._hashes = bytearray()
        self._positions = array("q")
        self._times = array("q")
        self._worlds = array("q")
        self._main = array("q")
        """The numbers of those of the main lane."""
        self._ranks = array("q")
        """Their ranks."""
        self._numbers: dict[str | None, int] = {None: 0}
        self._digests: list[str | None] = [None]

    def add(self, place: CheckpointPlace) -> None:
        """Take in the next checkpoint."""
        world = self._numbers.setdefault(place.world, len(self._digests))
        if world == len(self._digests):
            self._digests.append(place.world)
        time = place.at if place.origin is None else min(place.at, place.origin.at)
        if not place.key.lane:
            self._main.append(len(self._positions))
            self._ranks.append(place.rank)
        self._hashes += place.entry
        self._positions.append(place.seq)
        self._times.append((time - _EPOCH) // _MICROSECOND)
        self._worlds.append(world)

    def find(self, entry: bytes) -> Outline | None:
        """That of an entry's hash."""
        at = self._hashes.find(entry)
        while at % _HASH_BYTES and at >= 0:
            at = self._hashes.find(entry, at + 1)
        if at < 0:
            return None
        number = at // _HASH_BYTES
        time = _EPOCH + self._times[number] * _MICROSECOND
        return Outline(self._positions[number], time, self._digests[self._worlds[number]])

    def newest(self, gone: Callable[[int], bool]) -> bytes | None:
        """The newest checkpoint of the main lane that is left."""
        best, highest = None, -1
        for number, rank in zip(reversed(self._main), reversed(self._ranks), strict=True):
            seq = self._positions[number]
            if seq < highest:
                break  # nothing ranks above its own position
            if rank > highest and not gone(seq):
                best, highest = number, rank
        if best is None:
            return None
        return bytes(self._hashes[best * _HASH_BYTES : (best + 1) * _HASH_BYTES])


class CheckpointLog:
    """The checkpoints and results of a thread's generation, up to some entry.

    Results, questions and lanes are known within a bound, so that their memory does not follow the
    thread. Of a checkpoint that lies further back its outline is known and whether it is the newest
    one, but no release can be made.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        """A generation begins, of which nothing is known."""
        self.overflows = False
        """Whether there were more results than are taken in: nothing can be told any more."""
        self._outlines = _Outlines()
        self._newest_far_back: tuple[PruneBody | None, bytes | None] | None = None
        """The newest of all, once it was looked for, and what had been given up by then."""
        self._index = CheckpointIndex(None)
        self._places: dict[str, CheckpointPlace] = {}
        """By the hash of the entry, in the order of their positions."""
        self._given_up: PruneBody | None = None
        self._given_up_before: PruneBody | None = None
        """What had been given up when the thread was last resumed."""
        self._resumed = -1
        self._results = 0
        self._living: dict[int, tuple[Key, str]] = {}
        """By position the results that nobody has given up: of which checkpoint and task."""

    def take(self, entry: Entry, body: Any) -> None:
        """Take in a verified entry with its body; None if nobody can read that."""
        if isinstance(body, CheckpointBody):
            place = place_of(entry.header, entry.hash, body)
            self._index.follow(entry.header, entry.hash, body, place)
            self._places[entry.hash.hex()] = place
            self._outlines.add(place)
            self._newest_far_back = None
            if len(self._places) > AUDIT_CHECKPOINTS_MAX * 3 // 2:
                self._forget()
        elif isinstance(body, ResultsBody) and not self.overflows:
            self._index.follow(entry.header, entry.hash, body)
            self._living[entry.seq] = Key(body.lane, body.checkpoint), body.task
            self._results += 1
            if self._results > AUDIT_RESULTS_MAX:
                self._forget()
                self.overflows = self._results > AUDIT_RESULTS_MAX // 2
        elif isinstance(body, PruneBody):
            self._given_up = body
            self._living = {at: each for at, each in self._living.items() if not body.covers(at)}
        elif entry.header.kind is Kind.RESUME:
            self._given_up_before = self._given_up
            self._resumed = entry.seq
        elif entry.header.kind is Kind.ERASE:
            self._begin()

    def losses(self, header: Header, body: PruneBody) -> Iterator[str]:
        """What a prune or delete takes and must not: results alone, or the newest checkpoint."""
        newest = self._newest()
        outline = None if newest is None else self._outlines.find(newest)
        if outline is not None and body.covers(outline.seq) and not body.deletes(outline.seq):
            yield f"a prune: it gives up the newest checkpoint, in entry {outline.seq}"
        for seq, (key, task) in self._living.items():
            if not body.covers(seq):
                continue
            place = self._index.known(key)
            if place is None:
                keeps = header.kind is Kind.PRUNE  # of a checkpoint that is still on its way
            else:
                keeps = place.since <= seq and not body.covers(place.seq)
            if keeps:
                yield (
                    f"a {header.kind.word}: it gives up results of task {task!r} in entry {seq}, "
                    f"and keeps their checkpoint {key.id!r}"
                )

    def holds_anything(self) -> bool:
        """Whether there is a checkpoint that a resume could go on from."""
        return self._newest() is not None

    def outline(self, checkpoint: str) -> Outline | None:
        """What is known of a checkpoint by its hash; None if there is none that is left."""
        found = self._outlines.find(bytes.fromhex(checkpoint))
        return None if found is None or self._is_gone(found.seq) else found

    def release(self, checkpoint: str, header: Header, before: Tip) -> Release | None:
        """What a resume released, made again.

        Args:
            checkpoint: The hash of the checkpoint's entry, as the resume names it.
            header: Of the resume.
            before: The end of the thread before it.

        Returns:
            None if there is no such checkpoint, or it reaches too far back.
        """
        place = self._places.get(checkpoint)
        if place is None or self._is_gone(place.seq):
            return None
        standpoint = Standpoint(
            thread=header.thread,
            gen=header.gen,
            basis=before.basis[1].hex(),
            fence=before.entry.header.fence,
            resumed=self._resumed,
            given_up=self._given_up,
            given_up_before=self._given_up_before,
        )
        self._index.asked_too_far = False
        release = make_release(self._index, place, standpoint)
        return None if self._index.asked_too_far else release

    def newest(self) -> str | None:
        """The hash of the newest checkpoint, however far back it lies."""
        found = self._newest()
        return None if found is None else found.hex()

    def newest_at_resume(self) -> CheckpointPlace | None:
        """The newest checkpoint, also one that was deleted since the thread was last resumed."""
        before = self._given_up_before
        return self._index.newest("", lambda seq: before is not None and before.deletes(seq))

    def is_newest(self, checkpoint: str) -> bool:
        """Whether a checkpoint is the newest one, which is known however far back it lies."""
        return self.newest() == checkpoint

    def _newest(self) -> bytes | None:
        """The newest checkpoint of the main lane that is left."""
        self._index.asked_too_far = False
        found = self._index.newest("", self._is_gone)
        if not self._index.asked_too_far:
            return None if found is None else found.entry
        if self._newest_far_back is None or self._newest_far_back[0] is not self._given_up:
            self._newest_far_back = self._given_up, self._outlines.newest(self._is_gone)
        return self._newest_far_back[1]

    def _is_gone(self, seq: int) -> bool:
        return self._given_up is not None and self._given_up.covers(seq)

    def _forget(self) -> None:
        kept = list(self._places.values())[-AUDIT_CHECKPOINTS_MAX:]
        first = kept[0].seq if kept else 0
        newest = self._index.newest("", self._is_gone)
        self._index.forget_before(first, self._is_gone)
        self._places = {
            name: place
            for name, place in self._places.items()
            if place.seq >= first or (newest is not None and place.entry == newest.entry)
        }
        self._living = {at: each for at, each in self._living.items() if at >= first}
        self._results = self._index.result_count()
