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


class Past:
    """The checkpoints of the main lane: only that is resumed, what lies in others comes with it."""

    def __init__(self) -> None:
        self.newest: str | None = None
        """The hash of the entry."""
        self._certain = True
        self._saved: dict[str, Saved] = {}
        self._waiting: dict[str, dict[str, bool]] = {}
        """By the id of a checkpoint: which tasks wait for somebody to answer."""

    def saved(self, entry: str) -> Saved | None:
        """A checkpoint by the hash of its entry, if it is remembered."""
        return self._saved.get(entry)

    def is_older(self, entry: str | None) -> bool:
        """Whether a checkpoint is certainly not the newest."""
        return self._certain and entry != self.newest

    def is_waiting(self, saved: Saved) -> bool:
        """Whether a question of a checkpoint, or of a task that goes on from it, is pending."""
        return saved.question or any(self._waiting.get(saved.id, {}).values())

    def save(self, entry: Entry, body: CheckpointBody) -> None:
        """Take in a checkpoint."""
        if body.lane:
            return
        rank = entry.seq if body.again is None else body.again
        newest = None if self.newest is None else self._saved.get(self.newest)
        name = entry.hash.hex()
        self._saved[name] = Saved(
            body.id, entry.seq, rank, entry.header.at, body.world, body.question is not None
        )
        if newest is None or rank >= newest.rank:
            self.newest, self._certain = name, True
        _bound(self._saved)

    def add(self, body: WritesBody) -> None:
        """Take in results; an answer alone is not yet what the task makes of it."""
        if not body.lane and not body.answers:
            waiting = self._waiting.setdefault(body.checkpoint, {})
            waiting[body.task] = body.question is not None
            _bound(self._waiting)

    def hide(self, body: PruneBody) -> None:
        """Take in what was deleted: the newest of what is left counts from here on."""
        if self.newest is None or not body.hides(self._saved[self.newest].seq):
            return
        forgot = len(self._saved) >= _KEPT
        self._saved = {
            name: found for name, found in self._saved.items() if not body.hides(found.seq)
        }
        self.newest = max(self._saved, key=lambda name: self._saved[name].rank, default=None)
        self._certain = self.newest is not None or not forgot


def _bound(remembered: dict[str, Any]) -> None:
    """Forget the oldest of too many."""
    if len(remembered) > _KEPT:
        del remembered[next(iter(remembered))]
