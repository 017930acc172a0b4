# SPDX-License-Identifier: Apache-2.0
"""`kill -9` at every system call of a save: before it, after it, and in the middle of a write."""

import signal
from pathlib import Path

import pytest

from tests.faults.killed_children import Bench, calls, every_kind, hit_each, saves
from tests.faults.traced import Traced

_ROUNDS = 5


@every_kind
@saves("new thread", every=4)
@pytest.mark.parametrize("fault", ["kill", "kill after"])
def test_kill_at_every_write_sync_and_name(
    tmp_path: Path, tracer: Traced, kind: str, situation: str, *, every: int, fault: str
) -> None:
    """Whichever call was the last one, the next process finds a sound store and goes on."""
    bench = Bench(tmp_path, kind, tracer)
    for _ in range(_ROUNDS if every == 1 else 1):
        outcomes = hit_each(bench, situation, every=every, counted="changes", fault=fault)

        assert len(outcomes) > 5 // every
        assert {outcome.status for outcome in outcomes} == {-signal.SIGKILL}


@every_kind
@saves("small state")
def test_kill_in_the_middle_of_a_write(
    tmp_path: Path, tracer: Traced, kind: str, situation: str, every: int
) -> None:
    """A write of which only a half was done, by a process that is gone, is not taken for a save."""
    bench = Bench(tmp_path, kind, tracer)
    outcomes = hit_each(bench, situation, every=every, counted="writes", fault="half", then="kill")

    assert outcomes


@every_kind
@calls(110)
def test_kill_while_a_store_is_made(tmp_path: Path, tracer: Traced, kind: str, every: int) -> None:
    """An `init` that was killed at any call can be repeated, or has come to its end."""
    bench = Bench(tmp_path, kind, tracer)
    outcomes = hit_each(bench, "making", every=every, counted="all", fault="kill after")

    assert {outcome.status for outcome in outcomes} == {-signal.SIGKILL}


@every_kind
@calls(37)
def test_kill_while_states_are_given_up(
    tmp_path: Path, tracer: Traced, kind: str, every: int
) -> None:
    """A prune that was killed at any call has taken nothing away that was to be kept."""
    bench = Bench(tmp_path, kind, tracer)
    outcomes = hit_each(bench, "pruning", every=every, counted="changes", fault="kill after")

    assert {outcome.status for outcome in outcomes} == {-signal.SIGKILL}
