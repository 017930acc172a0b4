# SPDX-License-Identifier: Apache-2.0
"""A pause during the second of three tasks: the third never runs, and the second is not repeated.

Tasks of the functional API are called by code, inside of one step of the framework.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph

from sealpoint.errors import Paused, ResumeRefused
from sealpoint_langgraph import _call_gate, guard
from tests.attacks.langgraph.desks import State, config_of
from tests.attacks.langgraph.office import Office
from tests.effort import every_pair

DURABILITIES = ("sync", "async", "exit")
_ALL = ["one", "two", "three"]


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """A store with an operator, whose policy asks nobody, for one test: each verifies all of it."""
    made = Office(tmp_path / "home", policy="solo")
    yield made
    made.close()


class Works:
    """Programs of three tasks; while the second runs, somebody may do something."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.during: Callable[[], object] | None = None
        self.swallows = False

    def _work(self, name: str) -> str:
        self.ran.append(name)
        if name == "two" and self.during is not None:
            self.during()
        return name

    def tasks(self) -> list[Any]:
        """The tasks, which are called one after the other."""
        made = []
        for name in _ALL:

            def work(before: list[str], name: str = name) -> list[str]:
                return [*before, self._work(name)]

            work.__name__ = name
            made.append(task(work))
        return made

    def entrypoint(self) -> Any:
        """An entrypoint that calls them."""
        steps = self.tasks()

        @entrypoint()
        def program(log: list[str]) -> list[str]:
            for step in steps:
                try:
                    log = step(log).result()
                except Exception:
                    if not self.swallows:
                        raise
            return log

        return program

    def async_entrypoint(self) -> Any:
        """The same, with tasks that are awaited."""
        made = []
        for name in _ALL:

            async def work(before: list[str], name: str = name) -> list[str]:
                await asyncio.sleep(0)
                return [*before, self._work(name)]

            work.__name__ = name
            made.append(task(work))

        @entrypoint()
        async def program(log: list[str]) -> list[str]:
            for step in made:
                log = await step(log)
            return log

        return program

    def tasks_in_tasks(self) -> Any:
        """An entrypoint whose only task calls the others."""
        steps = self.tasks()

        @task
        def all_of_them(log: list[str]) -> list[str]:
            for step in steps:
                log = step(log).result()
            return log

        @entrypoint()
        def program(log: list[str]) -> list[str]:
            return all_of_them(log).result()

        return program

    def node(self) -> Any:
        """A node of a graph that calls them."""
        steps = self.tasks()

        def calls(_state: State) -> State:
            log: list[str] = []
            for step in steps:
                log = step(log).result()
            return {"log": log}

        built: Any = StateGraph(State)
        built.add_node("calls", calls)
        built.add_edge(START, "calls")
        return built.compile()

    def node_of_subgraph(self) -> Any:
        """The same node, in a subgraph."""
        built: Any = StateGraph(State)
        built.add_node("inner", self.node())
        built.add_edge(START, "inner")
        return built.compile()


SHAPES: dict[str, Callable[[Works], Any]] = {
    "entrypoint": Works.entrypoint,
    "async entrypoint": Works.async_entrypoint,
    "tasks in tasks": Works.tasks_in_tasks,
    "node": Works.node,
    "node of a subgraph": Works.node_of_subgraph,
}
WAYS = ("invoke", "ainvoke", "stream", "astream")
_CASES = [
    (shape, way, durability)
    for shape in SHAPES
    for way in WAYS
    for durability in DURABILITIES
    if shape != "async entrypoint" or way.startswith("a")
]


async def _drained(stream: Any) -> list[Any]:
    return [each async for each in stream]


def _run(way: str, graph: Any, value: Any, thread: str, **options: Any) -> Any:
    where = config_of(thread)
    if way == "invoke":
        return graph.invoke(value, where, **options)
    if way == "ainvoke":
        return asyncio.run(graph.ainvoke(value, where, **options))
    if way == "stream":
        return list(graph.stream(value, where, **options))
    return asyncio.run(_drained(graph.astream(value, where, **options)))


def _given(shape: str) -> Any:
    return {"log": []} if shape.startswith("node") else []


@pytest.mark.parametrize(("shape", "way", "durability"), every_pair(_CASES))
def test_the_third_task_never_runs_and_the_second_is_kept(
    office: Office, thread: str, shape: str, way: str, durability: str
) -> None:
    """The run ends as paused, nobody can go on, and after the pause the third comes next."""
    works = Works()
    graph = guard(SHAPES[shape](works), office.saver, actor="dev")
    _run(way, graph, _given(shape), thread, durability=durability)
    assert works.ran == _ALL, "the control: without a pause all of them run"
    works.ran.clear()
    paused = office.operator().thread(thread)
    works.during = lambda: paused.pause("look at it")
    with pytest.raises(Paused):
        _run(way, graph, _given(shape), thread, durability=durability)
    works.during = None
    with pytest.raises(ResumeRefused, match="paused"):
        _run(way, graph, None, thread, durability=durability)
    assert works.ran == ["one", "two"]
    works.ran.clear()
    paused.unpause("looked at it")
    _run(way, graph, None, thread, durability=durability)

    assert works.ran == ["three"]
    found = graph.get_state(config_of(thread)).values
    assert (found["log"][-3:] if shape.startswith("node") else found) == _ALL
    assert office.worker.verify().ok


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_tasks_that_have_begun_end(office: Office, thread: str, way: str) -> None:
    """Of several tasks at once, all that had begun are kept; those after them wait."""
    ran: list[str] = []
    operator, pausing = office.operator().thread(thread), [False]

    @task
    def side(name: str) -> str:
        ran.append(name)
        if name == "left" and pausing[0]:
            operator.pause("look at it")
        return name

    @task
    def last(names: list[str]) -> list[str]:
        ran.append("last")
        return names

    @entrypoint()
    def program(_: int) -> list[str]:
        begun = [side(name) for name in ("left", "right")]
        return last([each.result() for each in begun]).result()

    graph = guard(program, office.saver, actor="dev")
    _run(way, graph, 1, thread)
    ran.clear()
    pausing[0] = True
    with pytest.raises(Paused):
        _run(way, graph, 2, thread)
    pausing[0] = False
    first = list(ran)
    assert "last" not in first
    ran.clear()
    operator.unpause("looked at it")
    _run(way, graph, None, thread)

    assert sorted(first + ran) == ["last", "left", "right"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_program_that_swallows_errors_runs_no_further_task(
    office: Office, thread: str, way: str
) -> None:
    """It may not see that it was stopped; the next task does, and so does who called."""
    works = Works()
    graph = guard(works.entrypoint(), office.saver, actor="dev")
    _run(way, graph, [], thread)
    works.ran.clear()
    works.swallows = True
    works.during = lambda: office.operator().thread(thread).pause("look at it")
    with pytest.raises(Paused):
        _run(way, graph, [], thread)

    assert works.ran == ["one", "two"]


def test_another_release_of_the_framework_stops_as_well(
    office: Office, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where tasks cannot be told from the rest, whatever begins is stopped."""
    monkeypatch.setattr(_call_gate, "reports_tasks", lambda: False)
    works = Works()
    graph = guard(works.entrypoint(), office.saver, actor="dev")
    graph.invoke([], config_of(thread))
    works.ran.clear()
    operator = office.operator().thread(thread)
    works.during = lambda: operator.pause("look at it")
    with pytest.raises(Paused):
        graph.invoke([], config_of(thread))
    assert works.ran == ["one", "two"]
    works.during = None
    operator.unpause("looked at it")
    graph.invoke(None, config_of(thread))

    assert works.ran == _ALL


def test_a_graph_on_another_thread_has_pauses_of_its_own(office: Office, thread: str) -> None:
    """A node that runs another guarded program ends, although its own thread is paused."""
    works = Works()
    inner = guard(works.entrypoint(), office.saver, actor="dev")
    ran: list[str] = []

    def calls(_state: State) -> State:
        return {"log": inner.invoke([], config_of(f"{thread}-inner"))}

    def after(_state: State) -> State:
        ran.append("after")
        return {}

    built: Any = StateGraph(State)
    built.add_node("calls", calls)
    built.add_node("after", after)
    built.add_edge(START, "calls")
    built.add_edge("calls", "after")
    graph = guard(built.compile(), office.saver, actor="dev")
    graph.invoke({"log": []}, config_of(thread))
    works.ran.clear()
    ran.clear()
    operator = office.operator().thread(thread)
    works.during = lambda: operator.pause("look at it")
    with pytest.raises(Paused):
        graph.invoke({"log": []}, config_of(thread))
    works.during = None

    assert (works.ran, ran) == (_ALL, [])
    operator.unpause("looked at it")
    graph.invoke(None, config_of(thread))
    assert (works.ran, ran) == (_ALL, ["after"])


def test_the_control_runs_all_three() -> None:
    """A saver that raises while it saves stops no task."""
    works = Works()

    class Refusing(InMemorySaver):
        def put_writes(self, *arguments: Any) -> Any:
            if "two" in works.ran:
                raise Paused("too late")
            return super().put_writes(*arguments)

    program = works.entrypoint()
    program.checkpointer = Refusing()
    with pytest.raises(Paused):
        program.invoke([], config_of())

    assert works.ran == _ALL
