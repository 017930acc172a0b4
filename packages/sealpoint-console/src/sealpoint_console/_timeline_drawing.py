# SPDX-License-Identifier: Apache-2.0
"""A drawing of one page of a timeline: the line of each entry, forks, and owners.

Entries are one chain, and that never forks. Their content may fork: a checkpoint with an older
parent, or a resume from an older checkpoint, begins its own line next to the line that it leaves.
The page also says in words everything that the drawing shows. This module reads nothing, and uses
only statements of the entries; it looks for the source of a fork only among the given entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sealpoint.audit import TimelineEntry

LINES_MAX = 6
"""The number of lines that are drawn side by side; words describe further forks."""


@dataclass(slots=True)
class ChainRow:
    """One entry, and its drawing."""

    entry: TimelineEntry
    line: int = 0
    """The line that its knot is on, counted from the left."""
    upward: set[int] = field(default_factory=set)
    """The lines that continue from here to newer entries."""
    downward: set[int] = field(default_factory=set)
    """The lines that come from older entries."""
    branches: set[int] = field(default_factory=set)
    """The lines that begin at this entry's knot, to its right or left."""
    came_from: "ChainRow | None" = None
    """The entry that this one continues, where that is not the entry below it."""
    came_from_name: str = ""
    """The label of that entry: the id of a checkpoint, or the first digits of an entry."""
    left_for: "ChainRow | None" = None
    """The entry that continued from elsewhere while this was the newest state."""
    stretch: tuple[str, ...] = ()
    """The stretches that begin with this entry, in words: an owner, an epoch, a generation."""

    @property
    def seq(self) -> int:
        """The position of the entry."""
        return self.entry.record.seq

    @property
    def width(self) -> int:
        """The number of lines that its drawing needs."""
        return 1 + max({self.line} | self.upward | self.downward)

    @property
    def is_fork(self) -> bool:
        """Whether it continues an older entry than the one below it."""
        return bool(self.came_from_name)


def draw_chain(entries: Sequence[TimelineEntry]) -> list[ChainRow]:
    """Draw consecutive entries, newest first, and return them in that order."""
    rows = [ChainRow(entry) for entry in reversed(entries)]
    drawing = _Drawing(rows)
    for place in range(len(rows)):
        drawing.add(place)
    return rows[::-1]


class _Drawing:
    """Receives the rows of a page, oldest first."""

    def __init__(self, rows: list[ChainRow]) -> None:
        self._rows = rows
        self._named: dict[tuple[str, str], int] = {}
        """The row of each checkpoint, by its lane and id."""
        self._hashed: dict[str, int] = {}
        """The same by the hash of its entry."""
        self._tips: dict[str, str] = {}
        """By lane, the id of the expected parent of the next checkpoint."""

    def add(self, place: int) -> None:
        """Draw one more row."""
        row = self._rows[place]
        before = self._rows[place - 1] if place else None
        row.stretch = _stretch(row.entry, None if before is None else before.entry)
        source, row.came_from_name = self._source(row.entry)
        if before is not None:
            if row.is_fork:
                self._left(row.entry, before).left_for = row
                self._fork(place, source)
            else:
                row.line = before.line
                _join(before, row, row.line)
        self._note(place)

    def _left(self, entry: TimelineEntry, before: ChainRow) -> ChainRow:
        """The row that a fork leaves: the newest state of that line, without later answers."""
        lane = entry.facts.get("lane", "")
        place = self._named.get((lane, self._tips.get(lane, "")))
        newest = before if place is None else self._rows[place]
        return newest if newest.line == before.line else before

    def _source(self, entry: TimelineEntry) -> tuple[int | None, str]:
        """The entry that another continues, if that is not the one below it; and its label."""
        facts, kind = entry.facts, entry.record.kind
        if kind == "resume":
            wanted = facts.get("checkpoint", "")
            newest = self._named.get(("", self._tips.get("", "")))
            found = self._hashed.get(wanted)
            if not wanted or newest is None or found == newest:
                return None, ""
            name = self._rows[found].entry.facts.get("id", "") if found is not None else ""
            return found, name or wanted[:12]
        if kind not in ("checkpoint", "held"):
            return None, ""
        lane, parent = facts.get("lane", ""), facts.get("parent", "")
        if not parent or self._tips.get(lane, parent) == parent:
            return None, ""
        return self._named.get((lane, parent)), parent

    def _note(self, place: int) -> None:
        entry = self._rows[place].entry
        lane, name = entry.facts.get("lane", ""), entry.facts.get("id", "")
        if entry.record.kind in ("checkpoint", "held"):
            self._named[lane, name] = place
            self._hashed[entry.record.entry] = place
            self._tips[lane] = name
        elif entry.record.kind == "resume":
            found = self._hashed.get(entry.facts.get("checkpoint", ""))
            if found is not None:
                self._tips[""] = self._rows[found].entry.facts.get("id", "")

    def _fork(self, place: int, source: int | None) -> None:
        """Begin a line, from its source row if that is on the page."""
        row, before = self._rows[place], self._rows[place - 1]
        if source is None:
            row.line = 1 if before.line == 0 else 0
            return
        start, between = self._rows[source], self._rows[source + 1 : place]
        row.came_from = start
        taken = start.upward.union(*({each.line} | each.upward | each.downward for each in between))
        free = [line for line in range(LINES_MAX) if line not in taken]
        if not free:
            row.line = before.line
            return
        row.line = start.line if start.line in free else free[0]
        if row.line != start.line:
            start.branches.add(row.line)
        _join(start, row, row.line)
        for each in between:
            each.upward.add(row.line)
            each.downward.add(row.line)


def _join(older: ChainRow, newer: ChainRow, line: int) -> None:
    older.upward.add(line)
    newer.downward.add(line)


def _stretch(entry: TimelineEntry, before: TimelineEntry | None) -> tuple[str, ...]:
    """The stretches that begin with an entry."""
    said = []
    if before is not None and entry.epoch != before.epoch:
        said.append(f"Epoch {entry.epoch}: a restored store was accepted")
    if before is not None and entry.generation != before.generation:
        said.append(f"Generation {entry.generation}: restarted after it was erased")
    owner = entry.facts.get("owner", "")
    if entry.record.kind in ("genesis", "handoff") and owner:
        said.append(f"Owner {owner}")
    return tuple(said)
