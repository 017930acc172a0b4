# SPDX-License-Identifier: Apache-2.0
"""A page of a timeline as a drawing: which line each entry is on, where lines fork, who owns what.

Entries are one chain, and that never forks. What they hold may: a checkpoint that came from an
older one, or a resume from an older one, begins a line of its own beside what it leaves behind.
Whatever the drawing says, words say too. Nothing is read here, and nothing is believed that the
entries do not say; what a fork came from is only looked for among the entries that are given.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sealpoint.audit import TimelineEntry

LINES_MAX = 6
"""So many lines are drawn side by side; a fork beyond is told in words alone."""


@dataclass(slots=True)
class ChainRow:
    """One entry, and what is drawn beside it."""

    entry: TimelineEntry
    line: int = 0
    """The line that its knot is on, counted from the left."""
    upward: set[int] = field(default_factory=set)
    """The lines that go on from here to newer entries."""
    downward: set[int] = field(default_factory=set)
    """The lines that come from older entries."""
    branches: set[int] = field(default_factory=set)
    """The lines that begin at this entry's knot, to its right or left."""
    came_from: "ChainRow | None" = None
    """What it goes on from, where that is not what lies before it."""
    came_from_name: str = ""
    """What to call that: the id of a checkpoint, or the first digits of an entry."""
    left_for: "ChainRow | None" = None
    """The entry that went on from somewhere else, while this was the newest state."""
    stretch: tuple[str, ...] = ()
    """What begins with this entry, in words: an owner, an epoch, a generation."""

    @property
    def seq(self) -> int:
        """The position of the entry."""
        return self.entry.record.seq

    @property
    def width(self) -> int:
        """How many lines its drawing needs."""
        return 1 + max({self.line} | self.upward | self.downward)

    @property
    def is_fork(self) -> bool:
        """Whether it goes on from something older than what lies before it."""
        return bool(self.came_from_name)


def draw_chain(entries: Sequence[TimelineEntry]) -> list[ChainRow]:
    """Draw entries that lie one after the other, newest first, and are given back so."""
    rows = [ChainRow(entry) for entry in reversed(entries)]
    drawing = _Drawing(rows)
    for place in range(len(rows)):
        drawing.add(place)
    return rows[::-1]


class _Drawing:
    """Takes in the rows of a page, oldest first."""

    def __init__(self, rows: list[ChainRow]) -> None:
        self._rows = rows
        self._named: dict[tuple[str, str], int] = {}
        """Where each checkpoint is, by its lane and id."""
        self._hashed: dict[str, int] = {}
        """The same by the hash of its entry."""
        self._tips: dict[str, str] = {}
        """By lane, the id of the checkpoint that the next one is expected to come from."""

    def add(self, place: int) -> None:
        """Draw one row more."""
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
        """What a fork leaves behind: the newest state of that line, and not who said what since."""
        lane = entry.facts.get("lane", "")
        place = self._named.get((lane, self._tips.get(lane, "")))
        newest = before if place is None else self._rows[place]
        return newest if newest.line == before.line else before

    def _source(self, entry: TimelineEntry) -> tuple[int | None, str]:
        """What an entry goes on from, if that is not what lies before it; and what to call that."""
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
        """Begin a line, from the row that it came from if that is here."""
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
    """What begins with an entry."""
    said = []
    if before is not None and entry.epoch != before.epoch:
        said.append(f"Epoch {entry.epoch}: a restored store was accepted")
    if before is not None and entry.generation != before.generation:
        said.append(f"Generation {entry.generation}: begun anew after it was erased")
    owner = entry.facts.get("owner", "")
    if entry.record.kind in ("genesis", "handoff") and owner:
        said.append(f"Owner {owner}")
    return tuple(said)
