# SPDX-License-Identifier: Apache-2.0
"""The state that an audit keeps of a thread while it reads it, to rebuild each release."""

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
    ResumeBody,
    Tip,
)
from sealpoint.limits import AUDIT_CHECKPOINTS_MAX, AUDIT_RESULTS_MAX
from sealpoint.store import (
    CheckpointIndex,
    CheckpointPlace,
    Key,
    Release,
    ReleasePosition,
    checkpoint_place,
    make_release,
)

_HASH_BYTES = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Outline(NamedTuple):
    """The facts about a checkpoint that the audit keeps, however old the checkpoint is."""

    seq: int
    time: datetime
    """When the state was first saved; for a copy, when the original was saved."""
    world: str | None
    """The digest of the run's capabilities."""


class _Outlines:
    """The outline of every checkpoint, in a few bytes each: this memory grows with the thread."""

    def __init__(self) -> None:
        self._hashes = bytearray()
        self._positions = array("q")
        self._times = array("q")
        self._worlds = array("q")
        self._main = array("q")
        """The numbers of the checkpoints of the main lane."""
        self._ranks = array("q")
        """The ranks of the checkpoints of the main lane."""
        self._numbers: dict[str | None, int] = {None: 0}
        self._digests: list[str | None] = [None]

    def add(self, place: CheckpointPlace) -> None:
        """Add the next checkpoint."""
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
        """Return the outline of the checkpoint whose entry has this hash."""
        at = self._hashes.find(entry)
        while at % _HASH_BYTES and at >= 0:
            at = self._hashes.find(entry, at + 1)
        if at < 0:
            return None
        number = at // _HASH_BYTES
        time = _EPOCH + self._times[number] * _MICROSECOND
        return Outline(self._positions[number], time, self._digests[self._worlds[number]])

    def newest(self, gone: Callable[[int], bool]) -> bytes | None:
        """Return the newest remaining checkpoint of the main lane."""
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


class Settled(NamedTuple):
    """A resume that settled what was deleted or copied before it."""

    resume: int = -1
    removals: PruneBody | None = None
    """The prune or delete in force at that resume."""
    checkpoint: str | None = None
    """The hash of the checkpoint that it released."""

    def is_retried(self, checkpoint: str | None, removals: PruneBody | None) -> bool:
        """Whether a resume repeats this one: the same checkpoint, and nothing deleted since."""
        known = self.resume >= 0 and self.checkpoint is not None
        return known and self.checkpoint == checkpoint and self.removals is removals


class Resumes:
    """The resumes that may settle what was deleted or copied before them.

    A session that saved a new checkpoint in the main lane settles that for everyone. A session that
    saved none settles it only for a retry by the same key. Otherwise opening one would be enough to
    hide a deletion.
    """

    def __init__(self) -> None:
        self._newest = self.settled = Settled()
        self._by_key: dict[str, Settled] = {}

    def add(self, header: Header, removals: PruneBody | None, checkpoint: str | None) -> None:
        """Take the next resume, with the prune or delete in force and the released checkpoint."""
        self._newest = self._by_key[header.by] = Settled(header.seq, removals, checkpoint)

    def settle(self) -> None:
        """Note that the newest session has saved a new checkpoint in the main lane."""
        self.settled = self._newest
        self._by_key.clear()

    def unproductive(self, by: str) -> Settled:
        """Return the newest resume by a key since then, in whose session nothing new was saved."""
        return self._by_key.get(by, Settled())


class CheckpointLog:
    """The checkpoints and results of a thread's generation, up to some entry.

    The log keeps results, questions and lanes only up to a limit, so that their memory does not
    grow with the thread. For an older checkpoint it keeps the outline and whether it is the newest,
    but it can make no release.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        """Start a new generation, with nothing known about it."""
        self.overflows = False
        """Whether there were more results than the limit: the log can no longer report losses."""
        self._outlines = _Outlines()
        self._newest_far_back: tuple[PruneBody | None, bytes | None] | None = None
        """The newest checkpoint of all, once searched for, and the prune in force at that time."""
        self._index = CheckpointIndex(None)
        self._places: dict[str, CheckpointPlace] = {}
        """By the hash of the entry, in the order of their positions."""
        self._removals: PruneBody | None = None
        self._resumes = Resumes()
        self.deletions: list[int] = []
        """The positions of the deletions since a session last saved a new checkpoint."""
        self._results = 0
        self._living: dict[int, tuple[Key, str]] = {}
        """The results that no prune has removed, by position: their checkpoint and their task."""

    def take(self, entry: Entry, body: Any) -> None:
        """Add a verified entry with its body; the body is None if it cannot be read."""
        if isinstance(body, CheckpointBody):
            place = checkpoint_place(entry.header, entry.hash, body)
            self._index.follow(entry.header, entry.hash, body, place)
            self._places[entry.hash.hex()] = place
            self._outlines.add(place)
            self._newest_far_back = None
            if entry.header.kind is Kind.CHECKPOINT and body.is_new_in_main_lane:
                self._resumes.settle()
                settled = self._resumes.settled.resume
                self.deletions = [seq for seq in self.deletions if seq > settled]
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
            self._removals = body
            if entry.header.kind is Kind.DELETE:
                self.deletions.append(entry.seq)
            self._living = {at: each for at, each in self._living.items() if not body.covers(at)}
        elif entry.header.kind is Kind.RESUME:
            checkpoint = body.checkpoint if isinstance(body, ResumeBody) else None
            self._resumes.add(entry.header, self._removals, checkpoint)
        elif entry.header.kind is Kind.ERASE:
            self._begin()

    def losses(self, header: Header, body: PruneBody) -> Iterator[str]:
        """Yield each forbidden loss in a prune or delete: lone results or the newest checkpoint."""
        newest = self._newest()
        outline = None if newest is None else self._outlines.find(newest)
        if outline is not None and body.covers(outline.seq) and not body.deletes(outline.seq):
            yield f"a prune: it gives up the newest checkpoint, in entry {outline.seq}"
        for seq, (key, task) in self._living.items():
            if not body.covers(seq):
                continue
            place = self._index.known(key)
            if place is None:
                keeps = header.kind is Kind.PRUNE  # of a checkpoint that is not saved yet
            else:
                keeps = place.since <= seq and not body.covers(place.seq)
            if keeps:
                yield (
                    f"a {header.kind.word}: it gives up results of task {task!r} in entry {seq}, "
                    f"and keeps their checkpoint {key.id!r}"
                )

    def holds_anything(self) -> bool:
        """Whether the thread has a checkpoint that a run could resume from."""
        return self._newest() is not None

    def outline(self, checkpoint: str) -> Outline | None:
        """Return the facts about a checkpoint by its hash; None if it is missing or removed."""
        found = self._outlines.find(bytes.fromhex(checkpoint))
        return None if found is None or self._is_gone(found.seq) else found

    def release(self, checkpoint: str, header: Header, before: Tip) -> Release | None:
        """Make the release of a resume again.

        Args:
            checkpoint: The hash of the checkpoint's entry, as the resume names it.
            header: The header of the resume.
            before: The end of the thread before the resume.

        Returns:
            None if there is no such checkpoint, or it is too old for this log.
        """
        place = self._places.get(checkpoint)
        if place is None or self._is_gone(place.seq):
            return None
        settled = self._resumes.settled
        release_position = ReleasePosition(
            thread=header.thread,
            gen=header.gen,
            basis=before.basis[1].hex(),
            fence=before.entry.header.fence,
            resumed=settled.resume,
            removals=self._removals,
            removals_before=settled.removals,
        )
        self._index.asked_too_far = False
        release = make_release(self._index, place, release_position)
        return None if self._index.asked_too_far else release

    def newest(self) -> str | None:
        """Return the hash of the newest checkpoint, however old it is."""
        found = self._newest()
        return None if found is None else found.hex()

    def is_retry(self, header: Header, body: ResumeBody) -> bool:
        """Whether a resume repeats one by the same key in whose session nothing new was saved."""
        earlier = self._resumes.unproductive(header.by)
        return earlier.is_retried(body.checkpoint, self._removals)

    def newest_at_resume(self) -> CheckpointPlace | None:
        """Return the newest checkpoint, including one whose deletion is not settled."""
        before = self._resumes.settled.removals
        return self._index.newest("", lambda seq: before is not None and before.deletes(seq))

    def is_newest(self, checkpoint: str) -> bool:
        """Whether a checkpoint is the newest one, however old it is."""
        return self.newest() == checkpoint

    def _newest(self) -> bytes | None:
        """Return the newest remaining checkpoint of the main lane."""
        self._index.asked_too_far = False
        found = self._index.newest("", self._is_gone)
        if not self._index.asked_too_far:
            return None if found is None else found.entry
        if self._newest_far_back is None or self._newest_far_back[0] is not self._removals:
            self._newest_far_back = self._removals, self._outlines.newest(self._is_gone)
        return self._newest_far_back[1]

    def _is_gone(self, seq: int) -> bool:
        return self._removals is not None and self._removals.covers(seq)

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
