# SPDX-License-Identifier: Apache-2.0
"""Runs a program over a saver, whole or killed and resumed, and writes its result down.

A run is a sequence of lives. Each is a process of its own: a new saver object and a new graph over
the same store. A life that was allowed only so many writes dies at the next one; the following
life looks at the state, as a careful user would, and does the turn again, or goes on from what
was saved, or finds that it was done (`resuming.what_next`).

By hand: `python -m tests.adapters.langgraph.harness NAME` prints the result of one program, and
`... harness --types` the types that the programs hand to a saver.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command, Interrupt, StateSnapshot

from tests.adapters.langgraph.faces import FACES, Face
from tests.adapters.langgraph.outside import CrashingSaver, Killed, Life, living
from tests.adapters.langgraph.programs import PROGRAMS
from tests.adapters.langgraph.results import Result, written_down
from tests.adapters.langgraph.resuming import are_alike, by_id, still_asked, what_next
from tests.adapters.langgraph.same import types_of
from tests.adapters.langgraph.savers import REFERENCE, UNDER_TEST, Savers
from tests.adapters.langgraph.turns import Answer, Durability, Edit, Graph, Program, Run, Turn

__all__ = ["Mode", "Result", "at_every_write", "never", "once_after", "run_program"]

_T = TypeVar("_T")
_THREAD = "thread-1"
_LIVES_MAX = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """How a program is driven."""

    face: Literal["sync", "async"] = "sync"
    durability: Durability = "sync"
    streamed: bool = False


Kills: TypeAlias = Callable[[int, int], int | None]
"""How many writes a life is allowed: from its number, and how many lives before gained nothing."""


def never(_life: int, _stalled: int) -> int | None:
    """Kill nobody."""
    return None


def once_after(writes: int) -> Kills:
    """Kill the first life after so many writes."""
    return lambda life, _: writes if life == 0 else None


def at_every_write(_life: int, stalled: int) -> int | None:
    """Kill each life at its second write, so that each brings the program one write further.

    Some writes gain nothing by themselves: the answer to a question is written before the task
    that asked it runs. Then the next life may do one more.
    """
    return 1 + stalled


@dataclass(slots=True, kw_only=True)
class _Begun:
    """A turn that has begun: what it addresses, and how the state was before it."""

    turn: Turn
    config: RunnableConfig
    before: StateSnapshot
    seen: StateSnapshot


@dataclass(slots=True, kw_only=True)
class _Runner:
    """One run of a program; the same code for both faces (see `Face`)."""

    program: Program
    savers: Savers
    mode: Mode
    kills: Kills
    face: Face
    lives: list[Life] = field(default_factory=list)
    states: list[StateSnapshot] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    begun: _Begun | None = None
    stalled: int = 0

    @property
    def config(self) -> RunnableConfig:
        return {
            "configurable": {"thread_id": _THREAD, **self.program.keys},
            "metadata": {"purpose": self.program.name},
        }

    async def run(self) -> Result:
        while len(self.states) < len(self.program.turns):
            if len(self.lives) > _LIVES_MAX:
                msg = f"{self.program.name}: no end after {_LIVES_MAX} lives"
                raise RuntimeError(msg)
            life = Life(allowance=self.kills(len(self.lives), self.stalled))
            self.lives.append(life)
            await self._in_life(life, self._live)
        return await self._in_life(Life(), self._result)

    async def _in_life(
        self,
        life: Life,
        act: Callable[[Graph, BaseCheckpointSaver[Any], Life], Coroutine[Any, Any, _T]],
    ) -> _T:
        with living(life):
            opened: AbstractAsyncContextManager[BaseCheckpointSaver[Any]]
            opened = self.face.opened(self.savers)
            async with opened as inner:
                saver = CrashingSaver(inner, life)
                return await act(self.program.build(saver), saver, life)

    async def _live(self, graph: Graph, _: BaseCheckpointSaver[Any], life: Life) -> None:
        """Go on with the program until it ends or the process is killed."""
        while len(self.states) < len(self.program.turns):
            doing = await self._begin(graph)
            outcome = None
            try:
                outcome = None if doing is None else await doing(graph)
            except (Exception, Killed, asyncio.CancelledError):
                if not life.dead:
                    raise
            if life.dead:
                return
            self.states.append(await self.face.state(graph, self.config))
            self.outcomes.append(outcome)
            self.begun, self.stalled = None, 0

    async def _begin(self, graph: Graph) -> Callable[[Graph], Coroutine[Any, Any, Any]] | None:
        """Begin the next turn, or decide how to go on with one that was killed."""
        now = await self.face.state(graph, self.config)
        if self.begun is None:
            turn = self.program.turns[len(self.states)]
            config = self.config
            if isinstance(turn, Run | Edit) and turn.at:
                older = turn.at(await self.face.history(graph, self.config)).config
                config["configurable"] |= older["configurable"]
                config = self.savers.going_back(config)
            self.begun = _Begun(turn=turn, config=config, before=now, seen=now)
            return lambda graph: self._do(graph, turn, config, now.interrupts)
        begun = self.begun
        verdict = what_next(begun.turn, begun.before, now, self.program.is_skipped)
        gained = verdict != "again" and not are_alike(begun.seen, now)
        self.stalled = 0 if gained else self.stalled + 1
        begun.seen = now
        match verdict:
            case "again":
                asked = still_asked(begun.before, now)
                again = begun.turn
                if isinstance(again, Answer):
                    again = replace(again, reply=by_id(again.reply))
                return lambda graph: self._do(graph, again, begun.config, asked)
            case "go on":
                rest = Run(given=None, context=getattr(begun.turn, "context", None))
                return lambda graph: self._do(graph, rest, self.config, ())
            case "done":
                return None

    async def _do(
        self, graph: Graph, turn: Turn, config: RunnableConfig, asked: Sequence[Interrupt]
    ) -> Any:
        if isinstance(turn, Edit):
            return await self.face.edit(graph, config, turn.values, turn.as_node)
        context = turn.context if isinstance(turn, Run) else None
        given = turn.given if isinstance(turn, Run) else _answer(turn, asked)
        assert self.begun is not None
        raises = getattr(self.begun.turn, "raises", None)
        try:
            return await self.face.run(
                graph,
                given,
                config,
                context=context,
                durability=self.mode.durability,
                streamed=self.mode.streamed or self.program.streams,
            )
        except Exception as error:
            if raises is None or not isinstance(error, raises):
                raise
            return error

    async def _result(self, graph: Graph, saver: BaseCheckpointSaver[Any], _: Life) -> Result:
        return written_down(
            self.program,
            lives=self.lives,
            states=self.states,
            outcomes=self.outcomes,
            history=await self.face.history(graph, self.config),
            entries=await self.face.entries(saver, {"configurable": {"thread_id": _THREAD}}),
        )


def _answer(turn: Answer, asked: Sequence[Interrupt]) -> Command[Any]:
    return Command(resume=turn.reply(asked))


def run_program(
    program: Program, savers: Savers, mode: Mode | None = None, kills: Kills = never
) -> Result:
    """Run a program over a fresh store, and write down what it came to."""
    mode = mode or Mode()
    runner = _Runner(program=program, savers=savers, mode=mode, kills=kills, face=FACES[mode.face])
    return asyncio.run(runner.run()) if mode.face == "async" else _finish(runner.run())


def _finish(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine that never waits, so that the sync face has no event loop around it."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    msg = "the sync face waited"
    raise RuntimeError(msg)


def _main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.adapters.langgraph.harness")
    parser.add_argument("name", nargs="?", choices=sorted(PROGRAMS))
    parser.add_argument("--saver", choices=sorted(UNDER_TEST))
    parser.add_argument("--face", choices=("sync", "async"), default="sync")
    parser.add_argument("--durability", choices=("sync", "async", "exit"), default="sync")
    parser.add_argument("--streamed", action="store_true")
    parser.add_argument("--killed", action="store_true", help="kill it at every write")
    parser.add_argument("--types", action="store_true", help="list the types a saver is given")
    given = parser.parse_args(arguments)
    mode = Mode(face=given.face, durability=given.durability, streamed=given.streamed)
    names = [given.name] if given.name else sorted(PROGRAMS)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            savers = (UNDER_TEST[given.saver] if given.saver else REFERENCE)(Path(folder))
            kills = at_every_write if given.killed else never
            result = run_program(PROGRAMS[name], savers, mode, kills)
        shown = _types(result) if given.types else {**result.lasting, **result.whole}
        sys.stdout.write(f"{name}: {result.lives} lives, {result.writes} writes\n")
        sys.stdout.write(json.dumps(shown, indent=1) + "\n")


def _types(result: Result) -> dict[str, list[str]]:
    """List the types that a run handed to the saver."""
    found: dict[str, set[str]] = {"channels": set(), "writes": set(), "metadata": set()}

    def note_in(place: str) -> Callable[[type], None]:
        return lambda kind: found[place].add(f"{kind.__module__}.{kind.__qualname__}")

    for saved in result.saved:
        if saved.kind == "put":
            types_of(saved.value[0], note_in("channels"))
            types_of(saved.value[1], note_in("metadata"))
        else:
            for _, value in saved.value:
                types_of(value, note_in("writes"))
    return {place: sorted(names) for place, names in found.items()}


if __name__ == "__main__":
    _main(sys.argv[1:])
