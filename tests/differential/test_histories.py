# SPDX-License-Identifier: Apache-2.0
"""Whatever was read before, a handle reads what a new one reads, or refuses, while bytes change."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sealpoint.errors import Missing
from sealpoint.gate import Thread
from tests.differential.edits import EDITS
from tests.differential.history import ACTIONS, Difference, Step
from tests.differential.search import Search, steps_of
from tests.effort import SOAKING, in_soak

_BACKENDS = ("sqlite", "file", in_soak("postgres"))
_SEED = 7
_HISTORIES = 20 if SOAKING else 4


@pytest.fixture(scope="module", params=_BACKENDS)
def search(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Search:
    """A search on each backend."""
    return Search(tmp_path_factory.mktemp("search"), request.param)


def test_some_histories_end_in_no_difference(search: Search) -> None:
    """A few for each backend, the same in every run."""
    before = search.tally["histories"]
    search.run(_SEED, histories=_HISTORIES)

    assert search.tally["histories"] == before + _HISTORIES


@pytest.mark.soak
@pytest.mark.parametrize("backend", _BACKENDS)
def test_many_histories_end_in_no_difference(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A quarter of an hour for each backend with new histories, in which everything happens."""
    search = Search(tmp_path, backend)
    try:
        search.run(random.SystemRandom().randrange(2**32), seconds=900)
    finally:
        writer = request.config.get_terminal_writer()
        writer.line()
        for what, count in sorted(search.tally.items()):
            writer.line(f"{backend}: {count} {what}")

    happens = {*ACTIONS, *(f"{edit}, landed" for edit in EDITS), "held back"}
    assert {what for what in happens if not search.tally[what]} == set()


_KNOWN = {
    "a checkpoint whose body is gone": [
        Step("save", 2, 0, 1, 1),
        Step("look", 2, 0, 130, 0),
        Step("save", 0, 0, 154, 87),
        Step("no body", 0, 0, 43, 192),
    ],
    "a checkpoint of a lane whose body is gone": [
        Step("save", 2, 0, 2, 129),
        Step("save in a lane", 2, 0, 128, 11),
        Step("save in a lane", 1, 0, 79, 189),
        Step("no body", 0, 0, 70, 110),
    ],
    "results whose body is gone": [
        Step("step on", 2, 0, 167, 111),
        Step("step on", 0, 0, 201, 201),
        Step("no bodies", 1, 0, 119, 108),
    ],
    "bodies that are gone for a moment": [
        Step("step on", 1, 0, 159, 196),
        Step("step on", 0, 0, 65, 141),
        Step("no bodies", 1, 0, 139, 122),
        Step("put all back"),
    ],
    "the body of a session that is gone for a moment": [
        Step("save", 0, 0, 110, 37),
        Step("no body", 0, 0, 116, 176),
        Step("put all back"),
    ],
    "a name that is gone for a moment": [
        Step("save", 2, 0, 1, 1),
        Step("resume", 0, 0, 13, 192),
        Step("no bodies", 0, 0, 43, 85),
        Step("put all back"),
    ],
    "a question that is added to an older checkpoint": [
        Step("save", 2, 0, 1, 1),
        Step("step on", 1, 0, 20, 240),
        Step("add", 2, 0, 230, 216),
        Step("label", 0, 0, 0, 6),
    ],
    "the body of a session that is gone while an operator looks": [
        Step("save", 0, 0, 97, 107),
        Step("add", 0, 0, 207, 79),
        Step("no body", 2, 0, 172, 131),
        Step("pause", 2, 0, 31, 184),
        Step("put all back"),
        Step("approve", 2, 0, 237, 216),
    ],
    "the body of a session that is gone while a worker goes on": [
        Step("add", 2, 0, 13, 64),
        Step("add", 1, 0, 245, 22),
        Step("no bodies", 0, 0, 51, 98),
        Step("add", 1, 0, 246, 186),
        Step("swap bodies", 0, 0, 193, 0),
    ],
    "a blob of an erased generation that is there again": [
        Step("save in a lane", 2, 0, 127, 21),
        Step("erase", 0, 0, 241, 159),
        Step("as before", 1, 0, 93, 46),
        Step("save again", 0, 0, 148, 175),
    ],
    "a session that is written beside the history, and refused": [
        Step("save", 1, 1, 1, 1),
        Step("save in a lane", 0, 0, 117, 126),
        Step("blob", 2, 0, 19, 16),
        Step("add", 1, 1, 190, 240),
        Step("row gone", 0, 1, 151, 7),
        Step("save", 0, 1, 178, 238),
    ],
    "an erasure of a paused thread": [
        Step("save", 2, 0, 1, 1),
        Step("pause", 2, 0, 39, 116),
        Step("erase", 0, 0, 112, 122),
    ],
}


@pytest.mark.parametrize("steps", _KNOWN.values(), ids=_KNOWN)
def test_a_history_that_once_ended_in_a_difference_does_no_more(
    search: Search, steps: list[Step]
) -> None:
    """What the search has found on its way, in the fewest steps."""
    before = search.tally["reads"]
    search.replay(steps)

    assert search.tally["reads"] > before


# ---------------------------------------------------------------------- the search finds things

_load = Thread.load


def _from_memory(self: Thread, ref: Any = None) -> Any:
    """A load that gives once more what it gave the first time."""
    known = self.__dict__.setdefault("planted", {})
    if ref not in known:
        known[ref] = _load(self, ref)
    return known[ref]


def _offended(self: Thread, ref: Any = None) -> Any:
    """A load that never forgets that something was missing."""
    if (error := self.__dict__.get("planted")) is not None:
        raise error
    try:
        return _load(self, ref)
    except Missing as error:
        self.__dict__["planted"] = error
        raise


def _foreign(self: Thread, ref: Any = None) -> Any:
    """A load that raises what is none of our errors."""
    try:
        return _load(self, ref)
    except Missing as error:
        raise KeyError(ref) from error


_FAULTS: dict[str, tuple[Callable[..., Any], str]] = {
    "a handle that answers from memory": (_from_memory, "load"),
    "a handle that never forgives": (_offended, "on genuine bytes"),
    "an exception that is not ours": (_foreign, "KeyError escaped"),
}


_PLAIN = {"save", "look", "row gone", "tail gone", "put back", "put all back"}


def _plain_steps(seed: int, number: int) -> list[Step]:
    """Histories of a few plain things, in which only what is planted makes a difference."""
    return [step for step in steps_of(seed, number) if step.what in _PLAIN]


@pytest.mark.parametrize(("fault", "words"), _FAULTS.values(), ids=_FAULTS)
def test_a_planted_fault_is_found_and_told_in_few_steps(
    fault: Callable[..., Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the search finds what it is there to find, and what it tells can be repeated."""
    search = Search(tmp_path, "sqlite")
    search.replay(_plain_steps(_SEED, 0))
    monkeypatch.setattr(Thread, "load", fault)
    with pytest.raises(Difference, match=words) as told:
        search.run(_SEED, seconds=60, steps_of=_plain_steps)
    text = str(told.value)
    steps = eval(text.partition("steps = ")[2], {"Step": Step})  # noqa: S307 # our own words
    with pytest.raises(Difference, match=words):
        search.replay(steps)

    assert f"seed {_SEED}, history" in text
    assert len(steps) <= 6


def test_a_history_is_the_same_in_every_run(search: Search) -> None:
    """The same steps end in the same reads, writes and refusals."""
    tallies = []
    for _ in range(2):
        search.tally.clear()
        search.replay(_plain_steps(_SEED, 1))
        tallies.append(search.tally.copy())

    assert tallies[0] == tallies[1]
    assert tallies[0]["reads refused"]
