# SPDX-License-Identifier: Apache-2.0
"""What the owner of a thread gave up: the body of a prune and of a hide.

Each says all that was given up so far, so the newest one tells everything.
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise

from sealpoint.ledger._body import Body

__all__ = ["PruneBody", "require_sense"]


class PruneBody(Body, frozen=True, kw_only=True):
    """What was given up, in this prune or hide and in those before it.

    Every checkpoint, and all results, at a position below `before` that is not in `kept`, and
    everything in `hidden`, has lost its payload. What is hidden is not shown in listings either.
    """

    before: int
    kept: tuple[int, ...] = ()
    """In rising order, all below `before`."""
    reason: str | None = None
    hidden: tuple[tuple[int, int], ...] = ()
    """First and last positions, in rising order and apart from each other."""
    earlier: int | None = None
    """The position of the prune or hide before this one, in the same generation."""

    def covers(self, seq: int) -> bool:
        """Whether what lies at this position has lost its payload."""
        if seq < self.before:
            place = bisect_left(self.kept, seq)
            if place == len(self.kept) or self.kept[place] != seq:
                return True
        return self.hides(seq)

    def hides(self, seq: int) -> bool:
        """Whether what lies at this position was deleted by the application."""
        return seq <= self.span_at(seq)[1]

    def includes(self, earlier: "PruneBody") -> bool:
        """Whether everything that was given up before is given up here."""
        spans = tuple(self.span_at(first) for first, _ in earlier.hidden)
        return (
            self.before >= earlier.before
            and not any(earlier.covers(seq) and not self.hides(seq) for seq in self.kept)
            and all(last <= span[1] for (_, last), span in zip(earlier.hidden, spans, strict=True))
        )

    def newly_hidden(self, before: "PruneBody | None") -> int | None:
        """The first position that is deleted here and was not before; None if there is none."""
        for first, last in self.hidden:
            start = first
            if before is not None:
                start = max(first, before.span_at(first)[1] + 1)
            if start <= last:
                return start
        return None

    def span_at(self, seq: int) -> tuple[int, int]:
        """The last deleted span that begins at a position or before it; else an empty one."""
        place = bisect_right(self.hidden, seq, key=_first)
        return self.hidden[place - 1] if place else (seq, seq - 1)

    @property
    def end(self) -> int:
        """The position after the last that it could mean."""
        return max(self.before, self.hidden[-1][1] + 1 if self.hidden else 0)


def _first(span: tuple[int, int]) -> int:
    return span[0]


def require_sense(body: PruneBody) -> None:
    """Refuse positions that no writer would list, even if its owner signed them."""
    places = (-1, *body.kept, body.before)
    if any(earlier >= later for earlier, later in pairwise(places)):
        raise ValueError("expected rising positions below the bound")
    ends = (-1, *(end for first, last in body.hidden for end in (first, last + 1)))
    if any(earlier >= later for earlier, later in pairwise(ends)):
        raise ValueError("expected rising spans")
    if body.earlier is not None and body.earlier < 0:
        raise ValueError("expected a position")
