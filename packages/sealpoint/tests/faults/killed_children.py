# SPDX-License-Identifier: Apache-2.0
"""Children that are hit at one system call each, on stores that are in use, and what is left."""

import contextlib
import signal
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from sealpoint.errors import SealpointError, StoreExists
from tests.faults.places import KINDS, Place
from tests.faults.replay import Told, judge
from tests.faults.scenarios import SITUATIONS
from tests.faults.traced import Outcome, Task, Traced

__all__ = ["CLEAR", "Bench", "calls", "every_kind", "hit_each", "saves"]

CLEAR = {"AnchorUnavailable", "StorageUnavailable"}
"""What a save may say when the disk fails. Anything else would accuse somebody."""
# SQLite takes a read that fails with EIO for a damaged file, and tells no more than that.
_ACCUSED = {("sqlite", "pread64"): {"Edited"}}
_CHILDREN_PER_STORE = 24
every_kind = pytest.mark.parametrize("kind", KINDS)


def saves(*quick: str, every: int = 1) -> pytest.MarkDecorator:
    """Every so many calls of some saves, and in long runs every call of all."""
    long = [situation for situation in SITUATIONS if every > 1 or situation not in quick]
    return pytest.mark.parametrize(
        ("situation", "every"),
        [
            *((situation, every) for situation in quick),
            *(pytest.param(situation, 1, marks=pytest.mark.soak) for situation in long),
        ],
    )


def calls(every: int) -> pytest.MarkDecorator:
    """Every so many calls, or all in long runs."""
    return pytest.mark.parametrize("every", [every, pytest.param(1, marks=pytest.mark.soak)])


class Bench:
    """Stores on which children are hit one after the other, and what they told."""

    def __init__(self, directory: Path, kind: str, tracer: Traced) -> None:
        self._directory = directory.resolve()
        self._kind = kind
        self._tracer = tracer
        self._count = 0
        self.place = Place(self._directory, kind)
        self.told = Told()

    def run(self, scenario: str, **fault: object) -> Outcome:
        """Let a child do something on a store that is in use; a new one now and then."""
        # To verify a long history takes longer than to hit a child.
        if self._count % _CHILDREN_PER_STORE == 0 or scenario in {"growing anchor", "making"}:
            self.told = Told()
            self.place = Place(self._directory / str(self._count), self._kind)
            if scenario == "making":
                (self.place.directory / "store").mkdir(parents=True, mode=0o700)
            else:
                self.place.make()
                self._child("small state", writer=0)
        self._count += 1
        return self._child(scenario, writer=2 * self._count, **fault)

    def _child(self, scenario: str, **more: object) -> Outcome:
        directory, kind = str(self.place.directory), self.place.kind
        task = Task(directory=directory, kind=kind, scenario=scenario, **more)  # type: ignore[arg-type]
        outcome = self._tracer.run(task)
        for note in outcome.notes:
            self.told.note(note)
        return outcome

    def judge(self) -> None:
        """Another process finds a sound store with all that was acknowledged."""
        if not self.told.begun:
            with contextlib.suppress(StoreExists):
                self.place.init()
        judge(self.place, self.told, go_on=not self.told.begun)


def hit_each(
    bench: Bench, scenario: str, *, every: int = 1, clear: AbstractSet[str] = CLEAR, **fault: object
) -> list[Outcome]:
    """Hit the calls of a child, one in each; nothing may be lost and nobody accused.

    Returns:
        What became of them.
    """
    outcomes: list[Outcome] = []
    for number in range(1, len(bench.run(scenario, **fault).calls) + 1, every):
        outcome = bench.run(scenario, number=number, **fault)
        if len(outcome.calls) < number:
            # Less was to be done than before, because blobs are shared.
            continue
        outcomes.append(outcome)
        call = outcome.calls[number - 1]
        allowed = clear | _ACCUSED.get((bench.place.kind, call.partition(" ")[0]), set())
        try:
            assert outcome.status in (0, -signal.SIGKILL)
            assert {note.detail.partition(":")[0] for note in outcome.words("failed")} <= allowed
            bench.judge()
        except (AssertionError, SealpointError) as exc:
            exc.add_note(f"hit was call {number}, {call}; told was {outcome.notes}")
            raise
    return outcomes
