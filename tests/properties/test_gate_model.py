# SPDX-License-Identifier: Apache-2.0
"""Whole histories behind the gate against a model: nothing is released that was not allowed.

Workers, approvers, operators, clocks that go both ways, copies that are put back, an attacker with
the database and a thief with somebody's key. No grant is spent twice, also by two processes at
once, and nothing is refused that the policy allows.
"""

from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.gate_model import TWISTS, GateModel
from tests.unit.gate.team import READ, SHELL

_STEPS = 30


class InMemory(GateModel):
    """A store in memory."""

    tally: ClassVar[Counter[str]] = Counter()


class InDatabase(GateModel):
    """A store in a database."""

    backend = "sqlite"
    tally: ClassVar[Counter[str]] = Counter()


class InDirectory(GateModel):
    """A store in a directory."""

    backend = "file"
    tally: ClassVar[Counter[str]] = Counter()


@pytest.mark.parametrize(
    ("model", "histories"), [(InMemory, 25), (InDatabase, 2), (InDirectory, 2)]
)
def test_no_history_releases_what_was_not_allowed(model: type[GateModel], histories: int) -> None:
    """A few histories, the same in every run."""
    model.tally.clear()
    run_state_machine_as_test(
        model, settings=settings(max_examples=histories, stateful_step_count=_STEPS)
    )

    assert model.tally["histories"] >= histories


_WISHES: list[dict[str, Any]] = [
    {"world": SHELL, "older": False, "answer": None, "deliberate": None},
    {"world": READ, "older": False, "answer": "yes", "deliberate": None},
    {"world": SHELL, "older": True, "answer": "yes", "deliberate": "meant"},
]


@pytest.mark.parametrize("twist", TWISTS)
def test_a_grant_meets_whatever_may_happen_to_it(twist: str) -> None:
    """Each thing that can come between an approval and its use, once for sure."""
    for wish in _WISHES:
        model = InMemory()
        try:
            for _ in range(2):
                model.save("worker", "t", READ, question=False)
            people = ["bob", "bobby", "twin"]
            model.petition("t", wish, people, twist, {**wish, "answer": "no"})
            model.pause("t", on=False)
            model.save("worker", "t", READ, question=False)
            model.petition("t", wish, people, "none", wish)

            assert model.book.spent, "nothing was ever spent"
        finally:
            model.teardown()


_HAPPENS = {
    "a word relayed by a thief",
    "approve recorded",
    "approve refused: not-trusted",
    "approve refused: request-closed",
    "approve refused: unknown-request",
    "clock turned back",
    "deny recorded",
    "glass broken",
    "handed off",
    "needs approval",
    "put back and refused",
    "raced: resume",
    "raced: pause",
    "raced: save",
    "raced: deny",
    "raced: handoff",
    "raced: policy",
    "released",
    "released by a grant",
    "resume refused: edited",
    "resume refused: missing",
    "resume refused: not-owner",
    "resume refused: resume-refused",
    "resume refused: rolled-back",
    "restored",
    "saved",
    "save refused: paused",
    "save refused: resume-refused",
    "save refused: superseded",
}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("model", "histories"), [(InMemory, 5000), (InDatabase, 150), (InDirectory, 150)]
)
def test_thousands_of_histories_release_nothing_that_was_not_allowed(
    model: type[GateModel], histories: int, request: pytest.FixtureRequest
) -> None:
    """New histories in every run, and among them everything that can happen has happened."""
    model.tally.clear()
    try:
        run_state_machine_as_test(
            model,
            settings=settings(
                max_examples=histories,
                stateful_step_count=_STEPS,
                derandomize=False,
                database=None,
            ),
        )
    finally:
        writer = request.config.get_terminal_writer()
        writer.line()
        for what, count in sorted(model.tally.items()):
            writer.line(f"{model.backend}: {count} {what}")

    assert model.tally["histories"] >= histories
    if histories >= 5000:
        assert {what for what in _HAPPENS if not model.tally[what]} == set()
