# SPDX-License-Identifier: Apache-2.0
"""A member with a genuine key and other code: no history makes an honest process accept its work.

The walk from the genesis is the truth; `rogue_model.py` says what is compared with it. A failure
shows the shortest history that fails in the same way, with its seed.
"""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpoint.ledger import Kind
from tests.properties.rogue_model import History, Step, describe, draw_history, shorten
from tests.properties.rogue_scene import Broken, run_history

_BACKENDS = [("memory", 60), ("sqlite", 6), ("file", 6)]
_SOAK = [("sqlite", 5000), ("file", 5000), ("postgres", 5000)]

_Run = Callable[[History], Counter[str]]


def _runner(folder: Path, backend: str) -> _Run:
    """Runs each history in a folder of its own, or in memory."""
    number = 0

    def run(history: History) -> Counter[str]:
        nonlocal number
        number += 1
        if backend == "memory":
            return run_history(history)
        place = folder / str(number)
        place.mkdir()
        return run_history(history, place, backend)

    return run


def _try_all(run: _Run, seeds: range) -> Counter[str]:
    """Run the histories of some seeds; a failure is shortened before it is shown."""
    tally: Counter[str] = Counter()
    for seed in seeds:
        history = draw_history(seed)
        try:
            tally += run(history)
        except Broken as broken:
            shortest = shorten(history, lambda less: _breaks(run, less))
            raise Broken(f"seed {seed}: {broken}\n{describe(shortest)}") from broken
    return tally


_FOUND = {
    "a genesis in place of the end of a pause": History(
        "worker",
        1,
        (
            Step("operator", "pause"),
            Step("rogue", Kind.GENESIS),
            Step("rogue", Kind.CHECKPOINT, ("owner=previous",)),
            Step("rogue", Kind.RESUME),
            Step("rogue", "anchor"),
        ),
    ),
}
"""Histories of earlier soaks that were accepted once."""


@pytest.mark.parametrize("what", _FOUND)
def test_what_was_accepted_once_is_not(what: str) -> None:
    """The shortest history of each fault that a soak has found."""
    tally = run_history(_FOUND[what])

    assert any(each.startswith("refused") for each in tally), tally


def _breaks(run: _Run, history: History) -> bool:
    try:
        run(history)
    except Broken:
        return True
    return False


@pytest.mark.parametrize(("backend", "histories"), _BACKENDS)
def test_no_history_of_a_rogue_member_is_accepted(
    tmp_path: Path, backend: str, histories: int
) -> None:
    """A few histories, the same in every run: honest processes say what the walk says."""
    tally = _try_all(_runner(tmp_path, backend), range(histories))

    assert tally["histories"] == histories


@pytest.mark.soak
@pytest.mark.parametrize(("backend", "histories"), _SOAK)
def test_thousands_of_histories_of_a_rogue_member_are_not_accepted(
    tmp_path: Path, backend: str, histories: int
) -> None:
    """New histories in every run, and among them each ending that a history can have."""
    first = random.SystemRandom().randrange(10**9)
    tally = _try_all(_runner(tmp_path, backend), range(first, first + histories))

    assert tally["histories"] == histories
    for ending in ("accepted", "own matter", "refused: NotTrusted", "refused: Misplaced"):
        assert tally[ending], ending


def test_a_history_that_fails_is_shortened() -> None:
    """Whatever the failure does not need is left out: steps, and how they are done."""
    history = draw_history(3)
    needed = Step("rogue", str(Kind.PAUSE), ("pause=own", "gen=+1"))
    longer = history._replace(machines=2, steps=(*history.steps, needed, *history.steps))
    shortest = shorten(
        longer,
        lambda less: any("gen=+1" in step.how and step.act == "pause" for step in less.steps),
    )

    assert shortest.steps == (needed._replace(how=("gen=+1",)),)
    assert shortest.machines == 1
