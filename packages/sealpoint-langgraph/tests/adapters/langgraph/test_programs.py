# SPDX-License-Identifier: Apache-2.0
"""Programs like the framework's tutorials give the same over every saver, also when killed.

The stock saver in memory, never killed, says what is right. In `make test` every program is
killed at every write in the strictest durability, on one of its faces; half of them also when they
are saved late, and the others once. `make soak` kills each once after every single write, in all of
them and on both faces.
"""

import functools
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.memory import InMemorySaver

from tests.adapters.langgraph.harness import Mode, Result, at_every_write, once_after, run_program
from tests.adapters.langgraph.programs import PROGRAMS
from tests.adapters.langgraph.savers import REFERENCE, UNDER_TEST
from tests.adapters.langgraph.turns import Durability
from tests.effort import every_pair

_DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")
_FACES: tuple[Literal["sync", "async"], ...] = ("sync", "async")
_INVOKED = [
    Mode(face=face, durability=durability) for face in _FACES for durability in _DURABILITIES
]
_SAMPLE = 23

_every_saver = pytest.mark.parametrize(
    "saver",
    [
        pytest.param(name, marks=[pytest.mark.soak] if place else [])
        for place, name in enumerate(UNDER_TEST)
    ],
)


def _shown(mode: Mode) -> str:
    return f"{mode.face}-{mode.durability}{'-streamed' if mode.streamed else ''}"


def _runs() -> list[Any]:
    """List every program in every mode in which its turns make sense."""
    rows = [
        (name, face, (durability, streamed))
        for name, program in PROGRAMS.items()
        for face in _FACES
        # Streamed in the durability that the framework uses when it is not told.
        for durability, streamed in (*((each, False) for each in _DURABILITIES), ("async", True))
        if durability in program.durabilities
    ]
    listed = []
    for row in every_pair(rows):
        name, face, (durability, streamed) = row.values
        mode = Mode(face=face, durability=durability, streamed=streamed)
        listed.append(pytest.param(name, mode, id=f"{name}-{_shown(mode)}", marks=row.marks))
    return listed


def _killed_daily(modes: Sequence[Mode], first: int = 0, every: int = 1) -> list[Any]:
    """List programs, each in one of some modes, in turn; the soak kills it in all."""
    listed = []
    for number, (name, program) in enumerate(PROGRAMS.items()):
        found = [mode for mode in modes if mode.durability in program.survives]
        if found:
            mode = found[number // every % len(found)]
            marks = [] if number % every == first else [pytest.mark.soak]
            listed.append(pytest.param(name, mode, id=f"{name}-{_shown(mode)}", marks=marks))
    return listed


def _kills(modes: Sequence[Mode]) -> list[Any]:
    """List every program in every mode in which it can go on after a kill."""
    return [
        pytest.param(name, mode, id=f"{name}-{_shown(mode)}")
        for name, program in PROGRAMS.items()
        for mode in modes
        if mode.durability in program.survives
    ]


@functools.cache
def _reference(name: str, mode: Mode) -> Result:
    return run_program(PROGRAMS[name], REFERENCE(Path()), mode)


def _assert_survived(killed: Result, name: str, mode: Mode) -> None:
    """Compare a run that was killed with one that was not."""
    reference = _reference(name, mode)

    assert killed.lasting == reference.lasting
    if mode.durability != "exit":
        # Saved only at the exit of a run, a task has nothing saved of its own.
        assert not killed.repeated(reference)
        assert not killed.left_out(reference)


@_every_saver
@pytest.mark.parametrize(("name", "mode"), _runs())
def test_program_gives_what_it_gives_in_memory(
    saver: str, name: str, mode: Mode, tmp_path: Path
) -> None:
    """Outputs or streams, states, history and everything stored are those of the stock saver."""
    result = run_program(PROGRAMS[name], UNDER_TEST[saver](tmp_path), mode)
    reference = _reference(name, mode)

    assert result.whole == reference.whole
    assert result.lasting == reference.lasting
    assert result.happened == reference.happened


@_every_saver
@pytest.mark.parametrize(
    ("name", "mode"), _killed_daily([mode for mode in _INVOKED if mode.durability == "sync"])
)
def test_program_killed_at_every_write_comes_to_the_same(
    saver: str, name: str, mode: Mode, tmp_path: Path
) -> None:
    """Each process gets one write further and dies; nothing that was saved is done twice."""
    savers = UNDER_TEST[saver](tmp_path)

    killed = run_program(PROGRAMS[name], savers, mode, at_every_write)

    assert killed.lives > len(PROGRAMS[name].turns)
    _assert_survived(killed, name, mode)


@_every_saver
@pytest.mark.parametrize(
    ("name", "mode"),
    _killed_daily([Mode(durability="async"), Mode(face="async", durability="exit")], 0, 2),
)
def test_program_saved_late_and_killed_comes_to_the_same(
    saver: str, name: str, mode: Mode, tmp_path: Path
) -> None:
    """Saved in the background or at the exit, a killed program still comes to the same."""
    savers = UNDER_TEST[saver](tmp_path)

    killed = run_program(PROGRAMS[name], savers, mode, at_every_write)

    _assert_survived(killed, name, mode)


@_every_saver
@pytest.mark.parametrize(
    ("name", "mode"), _killed_daily([Mode(), Mode(face="async", durability="async")], 1, 2)
)
def test_program_killed_once_comes_to_the_same(
    saver: str, name: str, mode: Mode, tmp_path: Path
) -> None:
    """After one kill, at places spread over the program, a second process finishes it."""
    writes = _reference(name, mode).writes
    for after in range(len(name) % _SAMPLE, writes, _SAMPLE):
        folder = tmp_path / str(after)
        folder.mkdir()
        killed = run_program(PROGRAMS[name], UNDER_TEST[saver](folder), mode, once_after(after))

        assert killed.lives == 2
        _assert_survived(killed, name, mode)


@pytest.mark.soak
@_every_saver
@pytest.mark.parametrize(("name", "mode"), _kills(_INVOKED))
def test_program_killed_once_after_any_write_comes_to_the_same(
    saver: str, name: str, mode: Mode, tmp_path: Path
) -> None:
    """After one kill, wherever it was, a second process finishes the program."""
    for after in range(_reference(name, mode).writes):
        folder = tmp_path / str(after)
        folder.mkdir()
        killed = run_program(PROGRAMS[name], UNDER_TEST[saver](folder), mode, once_after(after))

        _assert_survived(killed, name, mode)


@pytest.mark.soak
@_every_saver
@pytest.mark.parametrize(("name", "mode"), _kills(_INVOKED))
def test_program_killed_at_every_write_in_any_mode_comes_to_the_same(
    saver: str, name: str, mode: Mode, tmp_path: Path
) -> None:
    """Each process gets one write further and dies, in every durability and on both faces."""
    savers = UNDER_TEST[saver](tmp_path)

    _assert_survived(run_program(PROGRAMS[name], savers, mode, at_every_write), name, mode)


class _LosesResults(InMemorySaver):
    """Acknowledges what a task wrote, and forgets it."""

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Forget everything."""


class _LosesTypes(InMemorySaver):
    """Gives numbers back as text."""

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: Any,
    ) -> RunnableConfig:
        """Save something else."""
        changed: Any = {**metadata, "trial": "3"}
        return super().put(config, checkpoint, changed, new_versions)


class _One:
    """A store that is one saver object."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        self._saver = saver

    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver[Any]]:
        yield self._saver

    @asynccontextmanager
    async def aopen(self) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        yield self._saver

    def going_back(self, config: RunnableConfig) -> RunnableConfig:
        return config


def test_saver_that_forgets_results_is_caught() -> None:
    """When finished tasks are forgotten in a kill, what they did outside is seen to be repeated."""
    killed = run_program(PROGRAMS["react-agent"], _One(_LosesResults()), Mode(), at_every_write)

    assert killed.repeated(_reference("react-agent", Mode()))


def test_saver_that_loses_types_is_caught() -> None:
    """A number that comes back as text is seen, although the program does not look at it."""
    result = run_program(PROGRAMS["react-agent"], _One(_LosesTypes()), Mode())

    assert result.lasting != _reference("react-agent", Mode()).lasting
