# SPDX-License-Identifier: Apache-2.0
"""Lanes, results, prunes and deletions against a plain model: random histories of two workers.

Whatever happened, both workers and a process that has seen nothing read what the model says, and
whoever verifies the store finds it whole: no blob that lanes share is ever lost.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealpoint.errors import HeadMoved, SealpointError, Superseded, UnknownCheckpoint, UnknownThread
from sealpoint.gate import Thread
from sealpoint.store import CheckpointRef, Key, ResultsDraft, SaveDraft
from tests.deployment import Deployment, Opened
from tests.effort import examples
from tests.unit.store.laned import check_verified, put, results

_LANES = ["", "sub", "sub|deep"]
_keys = st.builds(Key, st.sampled_from(_LANES), st.sampled_from(["1", "2", "3"]))
_states = st.integers(0, 3)
_drafts = st.lists(
    st.tuples(st.sampled_from(["put", "put", "results", "early"]), _keys, _states),
    min_size=1,
    max_size=4,
)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 1), _drafts),
        st.tuples(st.just("commit"), st.integers(0, 1), _drafts),
        st.tuples(st.just("commit"), st.integers(0, 1), _drafts),
        st.tuples(st.just("prune"), st.integers(0, 1), st.integers(1, 2)),
        st.tuples(st.just("hide"), st.integers(0, 1), st.sets(_keys, max_size=4)),
        st.tuples(st.just("hide"), st.integers(0, 1), st.none()),
        st.tuples(st.just("collect"), st.integers(0, 1), st.none()),
        st.tuples(st.just("begin anew"), st.integers(0, 1), st.none()),
        st.tuples(st.just("look"), st.integers(0, 1), st.none()),
    ),
    min_size=1,
    max_size=12,
)


def _state(number: int) -> dict[str, list[str]]:
    """A state of several blobs: half of it is in every state, half in no other."""
    return {
        "shared": [f"message {place} that everybody has {'x' * 300}" for place in range(30)],
        "own": [f"message {place} of state {number} alone {'y' * 300}" for place in range(12)],
    }


@dataclass
class _Kept:
    """What the model knows of a checkpoint."""

    state: Any
    seq: int
    rank: int
    pruned: bool = False
    results: list[Any] = field(default_factory=list)


class _Model:
    """A thread as a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[Key, _Kept] = {}
        self.early: dict[Key, list[Any]] = {}

    def put(self, key: Key, state: Any, ref: CheckpointRef) -> None:
        found = self.kept.get(key)
        if found is None:
            early = self.early.pop(key, [])
            self.kept[key] = _Kept(state, ref.seq, ref.seq, results=early)
        elif found.state != state:
            found.state, found.seq, found.pruned = state, ref.seq, False
        assert ref.seq == self.kept[key].seq

    def add(self, key: Key, value: Any) -> None:
        found = self.kept.get(key)
        (self.early.setdefault(key, []) if found is None else found.results).append(value)

    def living(self, lane: str) -> list[tuple[Key, _Kept]]:
        """The checkpoints of a lane that have their state, the newest first."""
        found = [pair for pair in self.kept.items() if pair[0].lane == lane and not pair[1].pruned]
        return sorted(found, key=lambda pair: pair[1].rank, reverse=True)

    def prune(self, keep_last: int) -> None:
        for lane in _LANES:
            living = self.living(lane)
            last = max((kept.seq for _, kept in living), default=-1)
            for _, kept in living[keep_last:]:
                if kept.seq != last:
                    kept.pruned, kept.results = True, []

    def delete(self, names: set[Key] | None) -> None:
        for kept in (self.kept, self.early):
            for key in [key for key in kept if names is None or key in names]:
                del kept[key]

    def check(self, thread: Thread) -> None:
        """Compare with what a thread shows."""
        for lane in _LANES:
            living = self.living(lane)
            assert [ref.id for ref in thread.adapter.snapshots(lane)] == [
                key.id for key, _ in living
            ]
            newest = thread.adapter.snapshot(lane)
            assert (newest and newest.ref.id) == (living[0][0].id if living else None)
            for name in sorted({"0", "1", *(key.id for key in self.kept if key.lane == lane)}):
                kept, found = self.kept.get(Key(lane, name)), thread.adapter.snapshot(lane, name)
                if kept is None or kept.pruned:
                    assert found is None
                    continue
                assert found is not None
                assert (found.state, found.ref.seq) == (kept.state, kept.seq)
                assert [each.value for each in found.results] == kept.results


class _History:
    """Two workers on one thread, and the model that goes along."""

    def __init__(self, world: Deployment) -> None:
        self.world = world
        self.model = _Model()
        self.stores = [world.open(), world.open()]

    def run(self, steps: list[tuple[str, int, Any]]) -> None:
        for action, who, what in steps:
            store = self.stores[who]
            if action == "commit":
                self._commit(store, what)
            elif action == "begin anew":
                self.stores[who] = self.world.open()
            else:
                with suppress(UnknownThread):
                    self._else(store, action, what)
        for store in (*self.stores, self.world.open(None, read_only=True)):
            self.model.check(store.thread("t"))
        assert self.stores[0].gc().failures == ()
        self.model.check(self.world.open(None, read_only=True).thread("t"))
        check_verified(self.world)

    def _else(self, store: Opened, action: str, what: Any) -> None:
        thread = store.thread("t")
        if action == "prune":
            thread.prune(keep_last=what, compact=False)
            self.model.prune(what)
        elif action == "hide":
            thread.adapter.delete(what)
            self.model.delete(what)
        elif action == "collect":
            assert store.gc(compact=False).failures == ()
        else:
            self.model.check(thread)

    def _commit(self, store: Opened, asked: list[tuple[str, Key, int]]) -> None:
        wanted = list(self._wanted(asked))
        outcomes = store.thread("t").adapter.commit([self._draft(*each) for each in wanted])
        lost = [isinstance(each, HeadMoved | Superseded) for each in outcomes]
        if any(lost):
            assert all(lost)
            with suppress(UnknownCheckpoint):
                store.thread("t").load()
            outcomes = store.thread("t").adapter.commit([self._draft(*each) for each in wanted])
        for (kind, key, state), outcome in zip(wanted, outcomes, strict=True):
            if isinstance(outcome, SealpointError):
                raise outcome
            if kind == "results":
                self.model.add(key, _state(state))
            else:
                assert isinstance(outcome, CheckpointRef)
                self.model.put(key, _state(state), outcome)

    def _wanted(self, asked: list[tuple[str, Key, int]]) -> Iterator[tuple[str, Key, int]]:
        """What is asked for, so that the names of a lane rise as the drafts demand.

        There are results only for what is there or follows at once.
        """
        there = set(self.model.kept)
        for kind, asked_key, state in asked:
            key, highest = (
                asked_key,
                max((k.id for k in there if k.lane == asked_key.lane), default=""),
            )
            if key not in there and key.id <= highest:
                key = Key(key.lane, chr(ord(highest) + 1))
            if kind == "results" and key not in there:
                continue
            there.add(key)
            if kind == "early":
                yield "results", key, state
            yield "results" if kind == "results" else "put", key, state

    def _draft(self, kind: str, key: Key, state: int) -> SaveDraft | ResultsDraft:
        if kind == "results":
            return results(_state(state), key.id, lane=key.lane)
        return put(_state(state), key.id, key.lane)


@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_steps)
def test_a_history_in_memory_is_what_the_model_says(steps: list[tuple[str, int, Any]]) -> None:
    """Saves, results, prunes and deletions on three lanes, by two workers in turn."""
    world = Deployment()
    try:
        _History(world).run(steps)
    finally:
        world.close()


@pytest.mark.parametrize("backend", ["sqlite", "file"])
def test_a_history_in_files_is_what_the_model_says(
    tmp_path_factory: pytest.TempPathFactory, backend: str
) -> None:
    """The same where every process has to read what it is shown."""

    @settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(_steps)
    def check(steps: list[tuple[str, int, Any]]) -> None:
        folder: Path = tmp_path_factory.mktemp("lanes")
        world = Deployment(folder, backend=backend)
        try:
            _History(world).run(steps)
        finally:
            world.close()

    check()
