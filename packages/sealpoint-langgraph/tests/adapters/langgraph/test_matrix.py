# SPDX-License-Identifier: Apache-2.0
"""Agents and programs give the same guarded, bare and in memory; every turn is another process.

The stock saver in memory says what is right, in one process. Ours does each turn in a process of
its own, on a real file, which opens the store, makes the graph, and goes on with the thread; and
while a run goes on, somebody else looks at the thread before every node.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import cache, partial
from typing import Any, cast

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, StateSnapshot

from sealpoint.errors import NeedsApproval
from sealpoint.gate import Request
from sealpoint_langgraph import SealedSaver, deliberately, guard
from sealpoint_langgraph._declared_types import allow_types
from tests.adapters.langgraph.agents import AGENT_TYPES, AGENTS
from tests.adapters.langgraph.faces import FACES, Face
from tests.adapters.langgraph.programs import APPLICATION_TYPES, PROGRAMS
from tests.adapters.langgraph.results import Result, written_down
from tests.adapters.langgraph.turns import Edit, Graph, Program, Run, Turn
from tests.attacks.langgraph.office import Office

_ALL = {**AGENTS, **PROGRAMS}
_SECONDS = 30
_GUARDED = (
    *AGENTS,
    "edited-draft",
    "functional-api",
    "human-approval",
    "map-reduce",
    "stateful-subgraph",
    "streaming",
    "subgraph-interrupts",
    "time-travel",
)
_APPROVED = (
    "create-react-agent",
    "functional-api",
    "middleware-that-asks",
    "subgraph-interrupts",
    "time-travel",
)
"""Those with turns that need approval under the policy `strict`."""


class _Poller(BaseCallbackHandler):
    """Looks at a thread twice whenever something of its run begins, as a UI would."""

    raise_error = run_inline = True

    def __init__(self, graph: Graph, config: RunnableConfig) -> None:
        super().__init__()
        self._graph, self._config = graph, config
        self.failed: list[BaseException] = []

    def on_chain_start(self, *_: Any, **__: Any) -> None:
        """Look, in an OS thread of its own, which has nothing of the run's."""
        looking = threading.Thread(target=self._look)
        looking.start()
        looking.join(_SECONDS)

    def _look(self) -> None:
        try:
            for _ in range(2):
                self._graph.get_state(self._config)
        except BaseException as error:  # noqa: BLE001 # told where it counts
            self.failed.append(error)


class _Stock:
    """The stock saver in memory."""

    def __init__(self) -> None:
        self._saver = InMemorySaver()

    def process(self, program: Program) -> tuple[Graph, Any]:
        """A graph, and its saver."""
        return program.build(self._saver), self._saver

    def meant(self, config: RunnableConfig) -> RunnableConfig:
        """A configuration that says that going back is meant."""
        return config

    async def do(self, act: Callable[[], Coroutine[Any, Any, Any]], *, is_usual: bool) -> Any:
        """Do a turn."""
        del is_usual
        return await act()


class _Sealed(_Stock):
    """Ours: each turn is another process of the office."""

    guarded = False

    def __init__(self, office: Office) -> None:
        super().__init__()
        self.office = office

    def process(self, program: Program) -> tuple[Graph, Any]:
        store = self.office.process()
        allow_types(store.registry, (*APPLICATION_TYPES, *AGENT_TYPES))
        saver = SealedSaver(store)
        graph = program.build(saver)
        return (guard(graph, saver, actor="dev") if self.guarded else graph), saver

    def meant(self, config: RunnableConfig) -> RunnableConfig:
        return deliberately(config, "the program goes back on purpose")


class _Guarded(_Sealed):
    """Ours, behind the gate."""

    guarded = True


class _Team(_Guarded):
    """Under a policy by which other people approve what is no ordinary continuation."""

    async def do(self, act: Callable[[], Coroutine[Any, Any, Any]], *, is_usual: bool) -> Any:
        """Do a turn, which needs approval if it is unusual; what is approved passes."""
        if is_usual:
            return await act()
        with pytest.raises(NeedsApproval) as needs:
            await act()
        self.office.approve(cast("Request", needs.value.request))
        return await act()


def _is_usual(turn: Turn, graph: Graph, config: RunnableConfig, before: StateSnapshot) -> bool:
    """Whether a turn is a new one, or goes on with the newest checkpoint and past no breakpoint."""
    if not isinstance(turn, Run):
        return False
    newest = before.config["configurable"].get("checkpoint_id")
    if config["configurable"].get("checkpoint_id", newest) != newest:
        return False
    return turn.given is not None or not graph.interrupt_before_nodes


async def _do(
    turn: Turn,
    face: Face,
    graph: Graph,
    config: RunnableConfig,
    *,
    before: StateSnapshot,
    streamed: bool,
) -> Any:
    """Do a turn of a program, on the state that its user sees."""
    if isinstance(turn, Edit):
        return await face.edit(graph, config, turn.values, turn.as_node)
    if isinstance(turn, Run):
        context, given = turn.context, turn.given
    else:
        context, given = None, Command(resume=turn.reply(before.interrupts))
    try:
        return await face.run(
            graph, given, config, context=context, durability="async", streamed=streamed
        )
    except Exception as error:
        if turn.raises is None or not isinstance(error, turn.raises):
            raise
        return error


async def _come_to(program: Program, place: Any, face_name: str, *, polls: bool) -> Result:
    """Do all turns of a program, each in a process of its own."""
    face = FACES[face_name]
    states, outcomes = [], []
    thread: RunnableConfig = {"configurable": {"thread_id": f"{program.name} {face_name}"}}
    where: RunnableConfig = {
        "configurable": {**thread["configurable"], **program.keys},
        "metadata": {"purpose": program.name},
        "recursion_limit": 40,
    }
    for turn in program.turns:
        graph, _ = place.process(program)
        poller = _Poller(graph, where)
        before = await face.state(graph, where)
        config: RunnableConfig = {**where, "callbacks": [poller] if polls else []}
        if isinstance(turn, Run | Edit) and turn.at:
            older = turn.at(await face.history(graph, where)).config
            named = {**where["configurable"], **older["configurable"]}
            config = place.meant({**config, "configurable": named})

        do = partial(_do, turn, face, graph, config, before=before, streamed=program.streams)
        outcomes.append(await place.do(do, is_usual=_is_usual(turn, graph, config, before)))
        assert poller.failed == []
        states.append(await face.state(graph, where))
        assert await face.state(graph, where) == states[-1]
    graph, saver = place.process(program)
    return written_down(
        program,
        lives=(),
        states=states,
        outcomes=outcomes,
        history=await face.history(graph, where),
        entries=await face.entries(saver, thread),
    )


def _finish(face: str, work: Coroutine[Any, Any, Result]) -> Result:
    if face == "async":
        return asyncio.run(work)
    try:
        work.send(None)
    except StopIteration as done:
        found: Result = done.value
        return found
    raise AssertionError("the sync face waited")


@cache
def _reference(name: str, face: str) -> Result:
    return _finish(face, _come_to(_ALL[name], _Stock(), face, polls=False))


def _check(name: str, face: str, place: _Sealed) -> None:
    found = _finish(face, _come_to(_ALL[name], place, face, polls=True))
    right = _reference(name, face)

    assert found.whole == right.whole
    assert found.lasting == right.lasting


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A store of one person, for savers without a guard."""
    made = Office(tmp_path_factory.mktemp("bare") / "home", policy="solo")
    yield made
    assert made.worker.verify().ok
    made.close()


@pytest.fixture(scope="module")
def solo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A store of one person."""
    made = Office(tmp_path_factory.mktemp("solo") / "home", policy="solo")
    yield made
    assert made.worker.verify().ok
    made.close()


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """A store of a team."""
    made = Office(tmp_path_factory.mktemp("team") / "home")
    yield made
    assert made.worker.verify().ok
    made.close()


def _both_faces_of(names: Iterable[str]) -> pytest.MarkDecorator:
    """Each on one face in a daily run, in turn."""
    table = [
        pytest.param(face, name, marks=[pytest.mark.soak] if (place + number) % 2 else [])
        for place, face in enumerate(FACES)
        for number, name in enumerate(names)
    ]
    return pytest.mark.parametrize(("face", "name"), table)


@_both_faces_of(AGENTS)
def test_an_agent_on_a_bare_saver_gives_what_it_gives_in_memory(
    bare: Office, face: str, name: str
) -> None:
    """Each turn is another process, and somebody looks on."""
    _check(name, face, _Sealed(bare))


@_both_faces_of(_GUARDED)
def test_a_guarded_program_gives_what_it_gives_in_memory(
    solo: Office, face: str, name: str
) -> None:
    """Nothing is refused, and everything that is shown and stored is that of the stock saver."""
    _check(name, face, _Guarded(solo))


@_both_faces_of(_APPROVED)
def test_under_team_people_approve_and_the_program_gives_the_same(
    team: Office, face: str, name: str
) -> None:
    """Answers, edits and steps back need approval, new turns do not; the rest is as in memory."""
    _check(name, face, _Team(team))
