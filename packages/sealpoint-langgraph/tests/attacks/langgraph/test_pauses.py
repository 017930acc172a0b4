# SPDX-License-Identifier: Apache-2.0
"""A pause during the second of five nodes: the third never runs, and the second is not repeated."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from sealpoint.errors import Paused, ResumeRefused
from sealpoint_langgraph import SealedSaver, guard
from tests.attacks.langgraph.desks import SHAPES, State, config_of
from tests.attacks.langgraph.office import Office
from tests.effort import every_pair

DURABILITIES = ("sync", "async", "exit")
WAYS = ("invoke", "ainvoke", "stream", "astream", "batch", "astream_events")
_ALL = ["one", "two", "three", "four", "five"]


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """A store with an operator, whose policy asks nobody, for one test: each verifies all of it."""
    made = Office(tmp_path / "home", policy="solo")
    yield made
    made.close()


class Line:
    """Five nodes, one after the other; while the second runs, somebody may do something."""

    def __init__(self, shape: str = "root") -> None:
        self.shape = shape
        self.ran: list[str] = []
        self.during: Callable[[], object] | None = None
        self.before: Callable[[], object] | None = None

    def _node(self, name: str) -> Any:
        def node(_state: State) -> State:
            self.ran.append(name)
            hook = {"one": self.before, "two": self.during}.get(name)
            if hook is not None:
                hook()
            return {"log": [name]}

        return node

    def builder(self) -> Any:
        """The five nodes, in the graph or in a subgraph."""
        built: Any = StateGraph(State)
        last = START
        for name in _ALL:
            built.add_node(name, self._node(name))
            built.add_edge(last, name)
            last = name
        if self.shape == "root":
            return built
        outer: Any = StateGraph(State)
        outer.add_node("line", built.compile())
        outer.add_node("after", self._node("after"))
        outer.add_edge(START, "line")
        outer.add_edge("line", "after")
        return outer


async def _drained(stream: Any) -> None:
    async for _ in stream:
        pass


def _run(way: str, graph: Any, value: Any, thread: str, **options: Any) -> Any:
    where = config_of(thread)
    if way == "invoke":
        return graph.invoke(value, where, **options)
    if way == "ainvoke":
        return asyncio.run(graph.ainvoke(value, where, **options))
    if way == "stream":
        return list(graph.stream(value, where, **options))
    if way == "batch":
        return graph.batch([value], [where], **options)
    if way == "astream_events":
        return asyncio.run(_drained(graph.astream_events(value, where, version="v2", **options)))
    return asyncio.run(_drained(graph.astream(value, where, **options)))


@pytest.mark.parametrize(
    ("shape", "durability", "way"), every_pair(product(SHAPES, DURABILITIES, WAYS))
)
def test_the_third_node_never_runs_and_the_second_is_kept(
    office: Office, thread: str, shape: str, durability: str, way: str
) -> None:
    """The run ends as paused, nobody can go on, and after the pause the third comes next."""
    line = Line(shape)
    graph = guard(line.builder().compile(), office.saver, actor="dev")
    _run(way, graph, {"log": ["in"]}, thread, durability=durability)
    before = graph.get_state(config_of(thread)).values["log"]
    line.ran.clear()
    paused = office.operator().thread(thread)
    line.during = lambda: paused.pause("look at it")
    with pytest.raises(Paused):
        _run(way, graph, {"log": ["again"]}, thread, durability=durability)
    stopped, line.during = list(line.ran), None
    for value in (None, {"log": ["more"]}):
        with pytest.raises(ResumeRefused, match="paused"):
            _run(way, graph, value, thread, durability=durability)
    assert line.ran == stopped == ["one", "two"]
    line.ran.clear()
    paused.unpause("looked at it")
    _run(way, graph, None, thread, durability=durability)
    found = graph.get_state(config_of(thread)).values["log"]

    rest = ["three", "four", "five"]
    assert line.ran == (rest if shape == "root" else [*rest, "after"])
    assert found[len(before) :].count("two") == _times(shape, before)
    assert office.worker.verify().ok


def _times(shape: str, before: list[str]) -> int:
    # The log of a subgraph begins with that of the graph, which its result is added to once more.
    return 1 if shape == "root" else before.count("two") + 1


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_slow_store_loses_nothing_of_a_paused_run(
    office: Office, thread: str, shape: str, way: str
) -> None:
    """A pause that comes before the first node is saved keeps what both nodes have done."""
    # One refused save would keep the framework from putting the later ones, and the second node
    # would run again.
    line = Line(shape)
    graph = guard(line.builder().compile(), office.saver, actor="dev")
    _run(way, graph, {"log": ["in"]}, thread)
    line.ran.clear()
    operator, slow = office.operator().thread(thread), office.saver._queues.of(thread)._writing

    def pause() -> None:
        operator.pause("look at it")
        slow.release()

    line.before, line.during = slow.acquire, pause
    with pytest.raises(Paused):
        _run(way, graph, {"log": ["again"]}, thread)
    assert line.ran == ["one", "two"]
    line.before = line.during = None
    line.ran.clear()
    operator.unpause("looked at it")
    _run(way, graph, None, thread)

    assert line.ran[:3] == ["three", "four", "five"]
    assert office.worker.verify().ok


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_finished_branch_is_kept(office: Office, thread: str, durability: str, way: str) -> None:
    """Two branches run when the pause comes; both are done, and what follows waits."""
    ran: list[str] = []
    operator = office.operator().thread(thread)
    pausing = [False]

    def node(name: str) -> Any:
        def work(_state: State) -> State:
            ran.append(name)
            if name == "left" and pausing[0]:
                operator.pause("look at it")
            return {"log": [name]}

        return work

    built: Any = StateGraph(State)
    for name in ("left", "right", "both"):
        built.add_node(name, node(name))
    built.add_edge(START, "left")
    built.add_edge(START, "right")
    built.add_edge(["left", "right"], "both")
    graph = guard(built.compile(), office.saver, actor="dev")
    _run(way, graph, {"log": []}, thread)
    ran.clear()
    pausing[0] = True
    with pytest.raises(Paused):
        _run(way, graph, {"log": []}, thread, durability=durability)
    assert sorted(ran) == ["left", "right"]
    ran.clear()
    pausing[0] = False
    operator.unpause("looked at it")
    _run(way, graph, None, thread, durability=durability)

    assert ran == ["both"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_pause_stops_a_bare_saver_at_its_first_write(
    office: Office, thread: str, way: str
) -> None:
    """A run without the guard learns of it too late to stop, and nothing of the next is kept."""
    line = Line()
    graph = line.builder().compile(checkpointer=SealedSaver(office.worker))
    _run(way, graph, {"log": []}, thread)
    office.operator().thread(thread).pause("look at it")
    before = graph.get_state(config_of(thread))
    with pytest.raises(Paused):
        _run(way, graph, {"log": ["more"]}, thread)

    assert graph.get_state(config_of(thread)) == before


@pytest.mark.parametrize("durability", DURABILITIES)
def test_the_control_runs_all_five(durability: str) -> None:
    """A saver that raises while it saves stops nothing in the default mode."""
    line = Line()

    class Refusing(InMemorySaver):
        def put(self, *arguments: Any) -> Any:
            if "two" in line.ran:
                raise Paused("too late")
            return super().put(*arguments)

    with pytest.raises(Paused):
        line.builder().compile(checkpointer=Refusing()).invoke(
            {"log": []}, config_of(), durability=durability
        )

    assert ("three" in line.ran) == (durability != "sync")
