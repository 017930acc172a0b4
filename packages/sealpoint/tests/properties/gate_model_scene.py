# SPDX-License-Identifier: Apache-2.0
"""A team behind the gate, what its processes know, and what must hold after every step.

After each step a process that has seen nothing, and one of those that are at work in turn, say of
every thread that changed what the truth says would run. Not all of them are asked: who is asked
has looked, and processes that have not are what races are made of.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from sealpoint.audit import QUESTION_PASSED
from sealpoint.errors import Pruned, UnknownCheckpoint
from sealpoint.gate import Thread
from sealpoint.storage import Record
from sealpoint.store import CheckpointRef, Snapshot
from tests.attacks.ledger.raw_editor import (
    DatabaseEditor,
    DirectoryEditor,
    MemoryEditor,
    RawEditor,
)
from tests.deployment import Deployment, Opened
from tests.properties.gate_model_release import Line, WouldRun
from tests.properties.gate_model_truth import Rulebook, ThreadFacts
from tests.unit.gate.team import NARROW, READ, SHELL, Team, policy

__all__ = [
    "IDENTITY",
    "LANES",
    "NAMES",
    "POLICIES",
    "RIVALS",
    "GateScene",
    "Run",
    "lanes",
    "names",
    "workers",
    "worlds",
]

NAMES = ("t", "u")
LANES = ("", "child")
_ROLES = ("owner", "owner", "owner", "rival", "rival", "stranger")
"""The process of whoever owns a thread, another one of the same identity, and that of another."""
IDENTITY = {"again": "worker", "spare again": "spare"}
"""Processes that are others of the same identity."""
RIVALS = {"worker": "again", "again": "worker", "spare": "spare again", "spare again": "spare"}
POLICIES = [
    (policy("two", needed=2), 2, "approve"),
    (policy("one", needed=1), 1, "approve"),
    (
        policy(
            "solo",
            needed=1,
            older_checkpoint="reason",
            tools="reason",
            first_world="reason",
            missing_world="reason",
            answer="reason",
            old_age="reason",
            after_restore="reason",
            unknown_outcome="reason",
        ),
        1,
        "reason",
    ),
]
_VERIFIED_EVERY = 12

names = st.sampled_from(NAMES)
workers = st.sampled_from(_ROLES)
lanes = st.sampled_from(LANES)
worlds = st.sampled_from([READ, READ, SHELL, SHELL, NARROW, None])


@dataclass(frozen=True, slots=True)
class Run:
    """A session that was begun by somebody who reads later."""

    process: str
    name: str
    session: int
    id: str | None
    """The checkpoint that was asked for; None: the newest."""
    released: WouldRun


class GateScene(RuleBasedStateMachine):
    """A team, and what must be true of its threads."""

    backend: ClassVar[str] = "memory"
    tally: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._folder = None if self.backend == "memory" else Path(tempfile.mkdtemp())
        self.world = Deployment(
            self._folder, backend="file" if self.backend == "file" else "sqlite"
        )
        self.team = Team(self.world, POLICIES[0][0])
        self.editor = self._editor()
        self.book = Rulebook({self.team.digest: POLICIES[0][1:]}, self.team.digest)
        self.book.rosters.append((0, self.team.digest))
        self.facts = {name: ThreadFacts(self.book) for name in NAMES}
        self.values: dict[str, Any] = {}
        """What was saved, by the hash of the entry."""
        self.refs: dict[str, CheckpointRef] = {}
        self.runs: list[Run] = []
        self.sessions: dict[tuple[str, str], int] = {}
        """The session that a process has on a thread."""
        self._steps = 0
        self._checked: dict[str, tuple[int, int]] = {}
        self.tally["histories"] += 1

    def _editor(self) -> RawEditor:
        if self._folder is None:
            return MemoryEditor(self.world.memory)
        path = self._folder / "store.db"
        return DirectoryEditor(path) if self.backend == "file" else DatabaseEditor(path)

    def teardown(self) -> None:
        """Ask everybody, verify everything, and end."""
        try:
            for name in NAMES:
                if self.exists(name):
                    for store in self.team._open.values():
                        self.check_release(store.thread(name), name)
            self.check_verified()
        finally:
            self.world.close()
            if self._folder is not None:
                shutil.rmtree(self._folder)

    # ------------------------------------------------------------------ processes

    def store(self, process: str) -> Opened:
        """The store of a process."""
        made = self.team._open.get(process)
        if made is None:
            made = self.world.open(IDENTITY.get(process, process), gated=True)
            self.team._open[process] = made
        return made

    def process(self, role: str, name: str) -> str:
        """The process that has a role on a thread; a process has its own name."""
        owner = self.facts[name].owner or "worker"
        stranger = "spare" if owner == "worker" else "worker"
        return {"owner": owner, "rival": RIVALS[owner], "stranger": stranger}.get(role, role)

    def thread(self, process: str, name: str) -> Thread:
        """The handle of a process."""
        return self.store(process).thread(name)

    @contextmanager
    def cold(self, name: str, who: str | None = None) -> Iterator[Thread]:
        """The handle of a process that has seen nothing, and ends at once."""
        store = self.world.open(who, read_only=who is None, gated=True)
        try:
            yield store.thread(name)
        finally:
            store.close()
            self.world._opened.remove(store)

    def reopen(self) -> None:
        """Let every process end; new ones begin when they are asked for."""
        for store in self.team._open.values():
            store.close()
        self.team._open.clear()
        self.sessions.clear()
        self.runs.clear()

    def is_running(self, process: str, name: str) -> bool:
        """Whether a process has a session that nobody has ended."""
        return self.sessions.get((process, name)) == self.facts[name].fence

    # ------------------------------------------------------------------ looking

    def exists(self, name: str) -> bool:
        """Whether anything was saved under a name."""
        return self.facts[name].rows > 0

    def rows(self, name: str) -> dict[int, Record]:
        """What lies in the store."""
        if self.world.position(name) is None:
            return {}
        return self.editor.rows(self.world.thread_id(name))

    def learn(self, name: str) -> list[Any]:
        """Judge whatever has landed."""
        return self.facts[name].learn(self.rows(name))

    def now(self, name: str) -> datetime:
        """The later of the clock and the newest time of the thread."""
        at = self.facts[name].at
        return self.world.clock if at is None else max(self.world.clock, at)

    def count(self, what: str) -> None:
        """Note that something happened."""
        self.tally[what] += 1

    # ------------------------------------------------------------------ what must hold

    @invariant()
    def check(self) -> None:
        """Who has seen nothing and who is at work say what the truth says."""
        self._steps += 1
        for name in NAMES:
            facts = self.facts[name]
            state = facts.rows, self.book.epoch
            if not facts.rows or self._checked.get(name) == state:
                continue
            self._checked[name] = state
            with self.cold(name) as thread:
                self.check_release(thread, name)
                older = facts.states()
                self.check_release(thread, name, older[self._steps % len(older)] if older else None)
            asked = list(self.team._open.values())
            if asked:
                self.check_release(asked[self._steps % len(asked)].thread(name), name)
        if not self._steps % _VERIFIED_EVERY:
            self.check_verified()

    def check_release(self, thread: Thread, name: str, target: Line | None = None) -> None:
        """Compare what a process says would run with what would."""
        facts = self.facts[name]
        run = facts.would_run(None if target is None else target.entry)
        ref = None if target is None else self.refs[target.entry]
        try:
            found = thread.release(ref)
        except (UnknownCheckpoint, Pruned):
            assert run is None, "nothing would run, and something would"
            return
        assert run is not None, "something would run that is gone"
        assert found.entry == run.checkpoint.entry
        assert [each.entry for each in found.results] == [each.entry for each in run.results]
        assert (found.held, found.newest) == (run.held, run.newest)
        assert found.question == run.question
        assert [
            (lane.entry, lane.held, [each.entry for each in lane.results]) for lane in found.lanes
        ] == [
            (head.entry, head.kind == "held", [each.entry for each in added])
            for head, added in run.lanes
        ]
        assert [each.entry for each in found.deleted] == [each.entry for each in run.deleted]
        assert (found.time, found.world) == (run.saved, run.checkpoint.body.world)
        assert (found.basis, found.fence) == (run.basis, facts.fence)
        assert found.digest == run.digest

    def check_snapshot(
        self, found: Snapshot | None, expected: tuple[Line, tuple[Line, ...]] | None
    ) -> None:
        """Compare what was handed over with what was to be."""
        if expected is None:
            assert found is None, "handed over what is gone"
            return
        line, added = expected
        assert found is not None, "nothing was handed over"
        assert (found.ref.entry, found.state) == (line.entry, self.values[line.entry])
        assert [each.ref.entry for each in found.results] == [each.entry for each in added]
        assert [each.value for each in found.results] == [self.values[e.entry] for e in added]

    def check_verified(self) -> None:
        """A process that has seen nothing finds nothing amiss."""
        store = self.world.open(None, read_only=True)
        report = store.verify()
        store.close()
        self.world._opened.remove(store)
        # The clock was turned back by somebody, or a run did not wait: noted, and no more.
        notes = ("time", QUESTION_PASSED)
        amiss = [finding for finding in report.findings if finding.code not in notes]
        assert not amiss, amiss
        assert report.ok
        self.count("verified")
