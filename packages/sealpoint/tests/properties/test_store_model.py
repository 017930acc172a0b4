# SPDX-License-Identifier: Apache-2.0
"""Whole histories of a store against a model of it: no wrong read, and no false alarm.

Several processes save, load, fork, prune, erase and collect, keys change, copies are put back and
accepted or not, and somebody with the disk changes what lies on it. After every step each read
gives exactly what the model says or, while something is changed, an alarm.
"""

from collections import Counter
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.model_restore import Restored

_STEPS = 30


class InMemory(Restored):
    """A store in memory."""

    tally: ClassVar[Counter[str]] = Counter()


class InDatabase(Restored):
    """A store in a database."""

    backend = "sqlite"
    tally: ClassVar[Counter[str]] = Counter()


class InDirectory(Restored):
    """A store in a directory."""

    backend = "file"
    tally: ClassVar[Counter[str]] = Counter()


@pytest.mark.parametrize(
    ("model", "histories"), [(InMemory, 24), (InDatabase, 3), (InDirectory, 3)]
)
def test_no_history_ends_in_a_wrong_read_or_a_false_alarm(
    model: type[Restored], histories: int
) -> None:
    """A few histories, the same in every run."""
    model.tally.clear()
    run_state_machine_as_test(
        model, settings=settings(max_examples=histories, stateful_step_count=_STEPS)
    )

    assert model.tally["histories"] >= histories


_HAPPENS = {
    "a second history written and refused",
    "changed behind everybody's back",
    "collected",
    "erased",
    "healed",
    "key given",
    "key revoked",
    "key rotated",
    "key rotated, in a changed store",
    "leftovers taken out",
    "lost rows brought back",
    "pruned",
    "repeated",
    "restore accepted",
    "rolled back",
    "root changed",
    "save refused: head-moved",
    "save refused: id-reused",
    "save refused: key-not-in-force",
    "save refused: not-owner",
    "save refused: superseded",
    "saved",
    "saved, in a changed store",
    "signed with a stolen key",
    *(f"read refused: {code}" for code in ("edited", "forged", "forked", "misplaced", "missing")),
    *(f"read refused: {code}" for code in ("not-trusted", "rolled-back")),
}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("model", "histories"), [(InMemory, 3000), (InDatabase, 150), (InDirectory, 150)]
)
def test_thousands_of_histories_end_in_no_wrong_read_and_no_false_alarm(
    model: type[Restored], histories: int, request: pytest.FixtureRequest
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
    if histories >= 3000:
        assert {what for what in _HAPPENS if not model.tally[what]} == set()
