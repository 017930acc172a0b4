# SPDX-License-Identifier: Apache-2.0
"""What a reviewer remembers of the checkpoints before a resume, within a bound."""

from datetime import datetime
from typing import Any, NamedTuple

from sealpoint.ledger import CheckpointBody, Entry, PruneBody, WritesBody

__all__ = ["Past", "Saved"]

_KEPT = 256
"""Memory must not follow the thread: of a checkpoint further back, neither the age is judged nor
what was asked or declared in it; that it is an older one is."""


class Saved(NamedTuple):
    """What is remembered of a checkpoint."""

    id: str
    seq: int
    rank: int
    """Where the first checkpoint of its name lies."""
    at: datetime
    world: str | None
    question: bool
    since: int
    """Where the first results lie that count for it."""


class Past:
    """The checkpoints of the main lane: only that is resumed, what lies in others comes with it."""

    def __init__(self) -> None:
        self.newest: str | None = None
        """The hash of the entry."""
        self._rank = -1
        """Of the newest."""
        self._forgotten = -1
        """The highest rank of those that are no longer remembered."""
        self._saved: dict[str, Saved] = {}
        self._waiting: dict[str, dict[str, tuple[int, bool]]] = {}
        """By the id of a checkpoint: which tasks wait for somebody to answer, and since where."""

    def saved(self, entry: str) -> Saved | None:
        """A checkpoint by the hash of its entry, if it is remembered."""
        return self._saved.get(entry)

    def is_older(self, entry: str | None) -> bool:
        """Whether a checkpoint is certainly not the newest."""
        return entry != self.newest and self._rank >= self._forgotten

    def is_waiting(self, saved: Saved) -> bool:
        """Whether a question of a checkpoint, or of a task that goes on from it, is pending."""
        waiting = self._waiting.get(saved.id, {}).values()
        return saved.question or any(asks and seq >= saved.since for seq, asks in waiting)

    def save(self, entry: Entry, body: CheckpointBody) -> None:
        """Take in a checkpoint."""
        if body.lane:
            return
        rank = entry.seq if body.again is None else body.again
        name = entry.hash.hex()
        self._saved[name] = Saved(
            id=body.id,
            seq=entry.seq,
            rank=rank,
            at=entry.header.at,
            world=body.world,
            question=body.question is not None,
            since=rank if body.since is None else body.since,
        )
        if rank >= self._rank:
            self.newest, self._rank = name, rank
        if len(self._saved) > _KEPT:
            # Never the newest: whatever was saved once more since then ranks lower.
            oldest = next(each for each in self._saved if each != self.newest)
            self._forgotten = max(self._forgotten, self._saved.pop(oldest).rank)

    def add(self, entry: Entry, body: WritesBody) -> None:
        """Take in results; an answer alone is not yet what the task makes of it."""
        if not (body.lane or body.answers or body.held):
            waiting = self._waiting.setdefault(body.checkpoint, {})
            waiting[body.task] = (entry.seq, body.question is not None)
            _bound(waiting)
            _bound(self._waiting)

    def hide(self, body: PruneBody) -> None:
        """Take in what was deleted: the newest of what is left counts from here on."""
        self._saved = {
            name: found for name, found in self._saved.items() if not body.hides(found.seq)
        }
        self._waiting = {
            name: {task: found for task, found in tasks.items() if not body.hides(found[0])}
            for name, tasks in self._waiting.items()
        }
        if self.newest not in self._saved:
            ranked = ((found.rank, found.seq, name) for name, found in self._saved.items())
            self._rank, _, self.newest = max(ranked, default=(-1, -1, None))


def _bound(remembered: dict[str, Any]) -> None:
    """Forget the oldest of too many."""
    if len(remembered) > _KEPT:
        del remembered[next(iter(remembered))]
