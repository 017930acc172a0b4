# SPDX-License-Identifier: Apache-2.0
"""What an audit remembers of a thread on its way through it, so that it can make releases again."""

from typing import Any

from sealpoint.ledger import (
    CheckpointBody,
    Entry,
    Header,
    Kind,
    PruneBody,
    Tip,
    WritesBody,
)
from sealpoint.limits import AUDIT_CHECKPOINTS_MAX, AUDIT_RESULTS_MAX
from sealpoint.store import (
    CheckpointIndex,
    CheckpointPlace,
    Release,
    Standpoint,
    make_release,
    place_of,
)

__all__ = ["CheckpointLog"]


class CheckpointLog:
    """The checkpoints and results of a thread's generation, up to some entry.

    Memory does not follow the thread: of what lies further back than a bound nothing is known but
    that it is older than the newest.
    """

    def __init__(self) -> None:
        self.forgets = False
        """Whether something lies too far back to be known."""
        self.overflows = False
        """Whether there were more results than are taken in: nothing can be told any more."""
        self._begin()

    def _begin(self) -> None:
        """A generation begins, of which nothing is known."""
        self._index = CheckpointIndex(None)
        self._places: dict[str, CheckpointPlace] = {}
        """By the hash of the entry, in the order of their positions."""
        self._given_up: PruneBody | None = None
        self._given_up_before: PruneBody | None = None
        """What had been given up when the thread was last resumed."""
        self._resumed = -1
        self._results = 0

    def take(self, entry: Entry, body: Any) -> None:
        """Take in a verified entry with its body; None if nobody can read that."""
        if isinstance(body, CheckpointBody):
            self._index.follow(entry.header, entry.hash, body)
            self._places[entry.hash.hex()] = place_of(entry.header, entry.hash, body)
            if len(self._places) > AUDIT_CHECKPOINTS_MAX * 3 // 2:
                self._forget()
        elif isinstance(body, WritesBody) and not self.overflows:
            self._index.follow(entry.header, entry.hash, body)
            self._results += 1
            if self._results > AUDIT_RESULTS_MAX:
                self._forget()
                self.overflows = self._results > AUDIT_RESULTS_MAX // 2
        elif isinstance(body, PruneBody):
            self._given_up = body
        elif entry.header.kind is Kind.RESUME:
            self._given_up_before = self._given_up
            self._resumed = entry.seq
        elif entry.header.kind is Kind.ERASE:
            self._begin()

    def holds_anything(self) -> bool:
        """Whether there is a checkpoint that a resume could go on from."""
        return self._index.newest("", self._is_gone) is not None

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

    def is_newest(self, checkpoint: str) -> bool:
        """Whether a checkpoint is the newest one, which is known however far back it lies."""
        newest = self._index.newest("", self._is_gone)
        return newest is not None and newest.entry.hex() == checkpoint

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
        self._results = self._index.result_count()
        self.forgets = True
