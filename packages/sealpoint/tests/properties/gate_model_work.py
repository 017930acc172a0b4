# SPDX-License-Identifier: Apache-2.0
"""What workers do on a thread behind the gate: save, add results, delete, copy, begin and read.

Inside a session that nobody has ended everything lands, except what a pause stops; and what a run
is given is what its own resume entry names, until it has written itself.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import rule

from sealpoint.errors import Paused, SealpointError, Superseded
from sealpoint.ledger import Kind, Origin
from sealpoint.store import CheckpointRef, Key, ResultsDraft, SaveDraft
from sealpoint.world import World as Declared
from tests.properties.gate_model_release import STATES, Line, given_up, read, read_entry
from tests.properties.gate_model_scene import (
    GateScene,
    Run,
    lanes,
    names,
    workers,
    worlds,
)
from tests.unit.gate.team import READ

__all__ = ["DELETIONS", "WORK", "GateWork", "work_kinds"]

WORK = (
    "put",
    "ask",
    "again",
    "revive",
    "results",
    "older results",
    "early",
    "asking",
    "answer",
)
DELETIONS = ("newest", "older", "lane", "all")

work_kinds = st.lists(st.sampled_from(("put", *WORK)), min_size=1, max_size=3)
_places = st.integers(0, 7)


class _Item(NamedTuple):
    """Something to be written, and what it holds."""

    draft: SaveDraft | ResultsDraft
    value: Any


class GateWork(GateScene):
    """Workers."""

    def __init__(self) -> None:
        super().__init__()
        self._number = 0

    # ------------------------------------------------------------------ saving

    @rule(process=workers, name=names, world=worlds, question=st.booleans())
    def save(self, process: str, name: str, world: Any, question: bool) -> None:  # noqa: FBT001
        """Save; a session that it begins by itself is judged like any other."""
        item = self._item(name, "", "ask" if question else "put", 0, world)
        self.write(process, name, [item])

    @rule(
        process=workers,
        name=names,
        lane=lanes,
        kinds=work_kinds,
        place=_places,
        holds=st.booleans(),
        world=st.sampled_from([None, None, None, READ]),
    )
    def work(  # noqa: PLR0917 (a rule draws each by its name)
        self,
        process: str,
        name: str,
        lane: str,
        kinds: list[str],
        place: int,
        holds: bool,  # noqa: FBT001
        world: Any,
    ) -> None:
        """Write several things as one step, as a framework does."""
        self.write(
            process,
            name,
            [self._item(name, lane, kind, place, world, holds=holds) for kind in kinds],
        )

    def _item(
        self, name: str, lane: str, kind: str, place: int, world: Any, *, holds: bool = False
    ) -> _Item:
        self._number += 1
        value, declared = {"number": self._number, "kind": kind}, Declared.of(world)
        fresh = f"{self._number:04}"
        there = self._ids(name, lane)
        if kind in ("put", "ask", "again", "revive"):
            id_ = there[place % len(there)] if kind == "again" and there else fresh
            # The names of a lane rise, so of what was deleted only what is above the rest.
            last = max((line.body.id for line in self.facts[name].states(lane)), default="")
            if kind == "revive" and last and last not in there:
                id_ = last
            return _Item(
                SaveDraft(
                    value,
                    id_,
                    None,
                    None,
                    declared,
                    lane=lane,
                    question="pay?" if kind == "ask" else None,
                    supersedes=True,
                    holds=holds,
                ),
                value,
            )
        checkpoint = there[0] if there else fresh
        if kind == "older results" and there:
            checkpoint = there[place % len(there)]
        elif kind == "early":
            checkpoint = f"{self._number + 1:04}"
        return _Item(
            ResultsDraft(
                value,
                checkpoint=checkpoint,
                task="ab"[place % 2],
                lane=lane,
                question=f"pay {place}?" if kind == "asking" else None,
                answers=kind == "answer",
                world=declared,
            ),
            value,
        )

    def _ids(self, name: str, lane: str) -> list[str]:
        """The names of a lane that were not deleted, the newest first."""
        facts = self.facts[name]
        hidden = [line.body.deleted for line in facts.lines if line.kind is Kind.DELETE]
        spans = hidden[-1] if hidden else ()
        return list(
            dict.fromkeys(
                line.body.id
                for line in sorted(facts.states(lane), key=lambda line: line.rank, reverse=True)
                if not any(first <= line.seq <= last for first, last in spans)
            )
        )

    def write(self, process: str, name: str, items: Sequence[_Item]) -> None:
        """Write, and see that all that may land does, and nothing else."""
        process = self.process(process, name)
        facts, before = self.facts[name], len(self.rows(name))
        # In a session that goes on only a pause stops anything.
        sure = self.is_running(process, name) and all(e.draft.declared is None for e in items)
        paused, is_lost = facts.stopped, facts.pause_is_lost and not facts.paused
        outcomes = self.thread(process, name).adapter.commit([item.draft for item in items])
        landed = 0
        for (draft, value), outcome in zip(items, outcomes, strict=True):
            if isinstance(outcome, SealpointError):
                self.count(f"save refused: {outcome.code}")
                holds = isinstance(draft, SaveDraft) and draft.holds and not is_lost
                stops = draft.blocked_by_pause or (isinstance(draft, SaveDraft) and not holds)
                assert not sure or (paused and stops), f"refused in a session: {outcome}"
                assert not sure or isinstance(outcome, Paused)
                continue
            landed += 1
            self.values[outcome.entry] = value
            self.count("saved" if isinstance(draft, SaveDraft) else "results added")
            if isinstance(outcome, CheckpointRef):
                self.refs[outcome.entry] = outcome
                if outcome.held:
                    self.count("held back")
        self.learn(name)
        found = [line for line in facts.lines[before:] if line.kind in (*STATES, Kind.RESULTS)]
        assert len(found) == landed, "refused, and written"
        if landed:
            self.sessions[process, name] = facts.fence

    @rule(process=workers, source=names, name=names, lane=lanes, place=_places)
    def copy(self, process: str, source: str, name: str, lane: str, place: int) -> None:
        """Copy a checkpoint of one thread into another, or into another lane."""
        states = [line for line in self.facts[source].states() if line.entry in self.values]
        if not states:
            return
        line = states[place % len(states)]
        self._number += 1
        value = self.values[line.entry]
        origin = Origin(thread=line.thread, entry=line.entry, at=line.at)
        draft = SaveDraft(
            value, f"{self._number:04}", None, None, None, lane=lane, supersedes=True, origin=origin
        )
        self.write(process, name, [_Item(draft, value)])
        self.count("copied")

    # ------------------------------------------------------------------ giving up

    @rule(name=names, lane=lanes, which=st.sampled_from(DELETIONS), place=_places)
    def delete(self, name: str, lane: str, which: str, place: int) -> None:
        """The owner deletes checkpoints."""
        if not self.exists(name):
            return
        facts, there = self.facts[name], self._ids(name, lane)
        chosen = {
            "newest": there[:1],
            "older": [there[1 + place % (len(there) - 1)]] if len(there) > 1 else [],
            "lane": there,
        }
        facts.goes = None if which == "all" else frozenset((lane, each) for each in chosen[which])
        keys = None if facts.goes is None else [Key(*each) for each in facts.goes]
        self.thread(facts.owner, name).adapter.delete(keys, reason="not wanted")
        self.learn(name)
        self.count(f"deleted: {which}")

    @rule(name=names, keep_last=st.integers(1, 2))
    def prune(self, name: str, keep_last: int = 2) -> None:
        """The owner gives up what is old."""
        if self.exists(name):
            self.facts[name].goes = keep_last
            self.thread(self.facts[name].owner, name).prune(keep_last=keep_last)
            self.learn(name)
            self.count("pruned")

    # ------------------------------------------------------------------ runs

    @rule(place=_places, lane=lanes, again=st.booleans())
    def read(self, place: int, lane: str, again: bool) -> None:  # noqa: FBT001
        """Somebody who began a session reads what is to be executed."""
        if self.runs:
            run = self.runs[place % len(self.runs)]
            self.read_run(run, lane)
            if again:
                self.read_run(run, "")

    def read_run(self, run: Run, lane: str = "") -> None:
        """What a run is given is what its session was decided about; or nothing."""
        facts = self.facts[run.name]
        name = run.id if lane == "" else None
        thread = self.thread(run.process, run.name)
        try:
            found = thread.adapter.snapshot(lane, name, running=True, session=run.session)
        except Superseded:
            deleted = any(
                line.kind is Kind.DELETE for line in facts.lines if line.seq > run.session
            )
            assert facts.fence != run.session or deleted, "nobody has overtaken it"
            self.count("overtaken, and given nothing")
            return
        assert facts.fence == run.session, "overtaken, and given something"
        since = [line for line in facts.lines if line.seq > run.session]
        wrote = any(line.kind in (*STATES, Kind.RESULTS) for line in since)
        if wrote:
            self.check_snapshot(found, self._goes_on_with(run, lane, name))
            self.count("read what it wrote")
            return
        if found is None and run.released.checkpoint.seq in given_up(facts.lines):
            self.count("gone before it was read, and given nothing")
            return
        if lane == "":
            self.check_snapshot(found, (run.released.checkpoint, run.released.results))
            self.count("read what was released")
            return
        # Of a lane that was at work it is what the release says; else what was there before.
        expected = next(
            (pair for pair in run.released.lanes if pair[0].body.lane == lane),
            read(facts.lines[: run.session], lane, None),
        )
        self.check_snapshot(found, expected)
        self.count("read another lane of what was released")

    def _goes_on_with(
        self, run: Run, lane: str, name: str | None
    ) -> tuple[Line, tuple[Line, ...]] | None:
        """What a run reads that has written something itself."""
        lines, released = self.facts[run.name].lines, run.released.checkpoint
        found = read(lines, lane, name)
        if found is not None and found[0].name == released.name and found[0].seq < run.session:
            # The name may have been put once more before: it was decided about this very entry.
            return read_entry(lines, released)
        return found
