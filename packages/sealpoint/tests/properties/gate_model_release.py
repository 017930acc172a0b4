# SPDX-License-Identifier: Apache-2.0
"""What would be executed if a thread went on, told from a plain list of the entries that landed.

It shares no code with the release that the store makes, and no shortcut: every question is put to
the whole list. The digest is written out by hand, with the JSON of the standard library.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sealpoint.ledger import Kind

__all__ = [
    "STATES",
    "Line",
    "WouldRun",
    "given_up",
    "is_retried",
    "living",
    "newest_of",
    "read",
    "read_entry",
    "would_run",
]

STATES = (Kind.CHECKPOINT, Kind.HELD)
"""The kinds that hold a state."""
_GIVES_UP = (Kind.PRUNE, Kind.DELETE)
_MOVES = (*STATES, Kind.RESULTS, Kind.RESUME, Kind.HANDOFF, *_GIVES_UP)
"""The kinds after which a resume would mean something else."""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as it landed."""

    seq: int
    entry: str
    """The hash of its header, in hexadecimal."""
    kind: Kind
    thread: str
    gen: int
    at: datetime
    fence: int
    body: Any
    by: str
    """Who wrote it."""

    @property
    def moves(self) -> bool:
        """Whether a resume would mean something else after it."""
        return self.kind in _MOVES

    @property
    def name(self) -> tuple[str, str]:
        """Lane and id of the checkpoint that it is, or that it adds to."""
        body = self.body
        return body.lane, body.id if self.kind in STATES else body.checkpoint

    @property
    def rank(self) -> int:
        """The place of a checkpoint in its lane: where the first of its name lies."""
        return self.seq if self.body.again is None else int(self.body.again)

    @property
    def since(self) -> int:
        """Where the first results lie that count for a checkpoint."""
        return self.rank if self.body.since is None else int(self.body.since)


@dataclass(frozen=True, slots=True)
class WouldRun:
    """Exactly what would be executed."""

    checkpoint: Line
    newest: bool
    results: tuple[Line, ...]
    lanes: tuple[tuple[Line, tuple[Line, ...]], ...]
    deleted: tuple[Line, ...]
    question: Any
    basis: str
    copied: bool
    """It is a copy that nobody has resumed yet."""

    @property
    def authors(self) -> set[str]:
        """Who saved it."""
        added = (*self.results, *(each for _, found in self.lanes for each in found))
        return {each.by for each in (self.checkpoint, *added, *(head for head, _ in self.lanes))}

    @property
    def held(self) -> bool:
        """Whether a pause held it back."""
        return self.checkpoint.kind is Kind.HELD

    @property
    def saved(self) -> datetime:
        """When the state was saved first."""
        line = self.checkpoint
        return line.at if line.body.origin is None else min(line.at, line.body.origin.at)

    @property
    def digest(self) -> str:
        """What statements bind and resumes record."""
        line, origin = self.checkpoint, self.checkpoint.body.origin
        copied_from = None
        if origin is not None:
            at = origin.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            copied_from = {"thread": origin.thread, "entry": origin.entry, "at": at}
        fields = {
            "v": 1,
            "thread": line.thread,
            "gen": line.gen,
            "basis": self.basis,
            "checkpoint": line.entry,
            "held": self.held,
            "newest": self.newest,
            "world": line.body.world,
            "origin": copied_from,
            "copied": self.copied,
            "question": self.question,
            "results": [each.entry for each in self.results],
            "lanes": [
                [head.body.lane, head.entry, [each.entry for each in added]]
                for head, added in self.lanes
            ],
            "deleted": [each.entry for each in self.deleted],
        }
        return sha256(_json(fields).encode()).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def given_up(lines: Sequence[Line]) -> set[int]:
    """The positions of what a prune or a deletion has taken, as the newest of them says."""
    said = [line.body for line in lines if line.kind in _GIVES_UP]
    if not said:
        return set()
    body = said[-1]
    return {
        line.seq
        for line in lines
        if line.kind in (*STATES, Kind.RESULTS)
        and (
            (line.seq < body.before and line.seq not in body.kept)
            or any(first <= line.seq <= last for first, last in body.deleted)
        )
    }


def living(lines: Sequence[Line], lane: str, gone: set[int]) -> list[Line]:
    """The checkpoints of a lane that are not gone, the one that ranks highest first."""
    named = {line.name: line for line in lines if line.kind in STATES and line.body.lane == lane}
    left = [line for line in named.values() if line.seq not in gone]
    return sorted(left, key=lambda line: line.rank, reverse=True)


def newest_of(lines: Sequence[Line], lane: str = "") -> Line | None:
    """The newest checkpoint of a lane."""
    return next(iter(living(lines, lane, given_up(lines))), None)


def _added(lines: Iterable[Line], target: Line, gone: set[int]) -> tuple[Line, ...]:
    return tuple(
        line
        for line in lines
        if line.kind is Kind.RESULTS
        and line.name == target.name
        and line.seq >= target.since
        and line.seq not in gone
    )


def read(
    lines: Sequence[Line], lane: str, name: str | None
) -> tuple[Line, tuple[Line, ...]] | None:
    """What a run reads of a lane: its newest checkpoint, or that of a name, with its results."""
    found = next(iter(living(lines, lane, given_up(lines))), None)
    if name is not None:
        named = [line for line in lines if line.kind in STATES and line.name == (lane, name)]
        found = named[-1] if named else None
    return None if found is None else read_entry(lines, found)


def read_entry(lines: Sequence[Line], found: Line) -> tuple[Line, tuple[Line, ...]] | None:
    """The same of a checkpoint that is known; None if it is gone."""
    gone = given_up(lines)
    return None if found.seq in gone else (found, _added(lines, found, gone))


def would_run(lines: Sequence[Line], entry: str | None) -> WouldRun | None:
    """Say what would be executed.

    Args:
        lines: Every entry of the thread.
        entry: The checkpoint; None: the newest of the main lane.

    Returns:
        None if there is no such checkpoint, or it is gone.
    """
    gone, newest = given_up(lines), newest_of(lines)
    target = newest
    if entry is not None:
        found = [line for line in lines if line.entry == entry and line.kind in STATES]
        target = found[0] if found and found[0].seq not in gone else None
    if target is None:
        return None
    results = _added(lines, target, gone)
    return WouldRun(
        checkpoint=target,
        newest=newest is not None and newest.entry == target.entry,
        results=results,
        lanes=tuple((head, _added(lines, head, gone)) for head in _heads(lines, target, gone)),
        deleted=tuple(_deleted(lines, target, gone)),
        question=_question(target, results),
        basis=next(line.entry for line in reversed(lines) if line.moves),
        copied=target.body.origin is not None and target.seq > settled(lines),
    )


def settled(lines: Sequence[Line]) -> int:
    """The session that saved a new checkpoint of the main lane last; -1: none did."""
    new = [
        line.fence
        for line in lines
        if line.kind is Kind.CHECKPOINT and not line.body.lane and line.body.again is None
    ]
    return max(new, default=-1)


def is_retried(lines: Sequence[Line], entry: str, who: str) -> bool:
    """Whether somebody's newest session released the same, and nothing was deleted since."""
    resumes = [line for line in lines if line.kind is Kind.RESUME]
    if not resumes or resumes[-1].by != who or resumes[-1].body.checkpoint != entry:
        return False
    return all(line.seq < resumes[-1].seq for line in lines if line.kind in _GIVES_UP)


def _deleted(lines: Sequence[Line], target: Line, gone: set[int]) -> Iterable[Line]:
    """What would count, had it not gone since a session saved something new.

    Checkpoints that were newer than what is left of their lane, and results of others.
    """
    was_gone = given_up([line for line in lines if line.seq <= settled(lines)])
    latest = {line.name: line for line in lines if line.kind in STATES}
    lost = []
    for line in latest.values():
        if line.seq in gone and line.seq not in was_gone:
            left = next(iter(living(lines, line.body.lane, gone)), target)
            if line.rank > left.rank:
                lost.append(line)
    names = {line.name for line in lost}
    then = _pending(lines, target, was_gone)
    lost += [line for line in then if line.seq in gone and line.name not in names]
    return sorted(set(lost), key=lambda line: line.seq)


def _pending(lines: Sequence[Line], target: Line, gone: set[int]) -> list[Line]:
    """The results that a run would take."""
    heads = [target, *_heads(lines, target, gone)]
    return [line for head in heads for line in _added(lines, head, gone)]


def _heads(lines: Sequence[Line], target: Line, gone: set[int]) -> list[Line]:
    """The newest of every other lane in which something was written since."""
    states = [line for line in lines if line.kind in STATES]
    added = [line for line in lines if line.kind is Kind.RESULTS and line.seq not in gone]
    since = [line for line in (*states, *added) if line.seq > target.rank]
    busy = {line.body.lane for line in since} - {target.body.lane}
    return [head for lane in sorted(busy) for head in living(lines, lane, gone)[:1]]


def _question(target: Line, results: tuple[Line, ...]) -> Any:
    """What the checkpoint asks, or else each task that goes on from it."""
    if target.body.question is not None:
        return target.body.question
    waiting: dict[str, Any] = {}
    for line in results:
        if not line.body.answers:
            waiting[line.body.task] = line.body.question
    return [question for question in waiting.values() if question is not None] or None
