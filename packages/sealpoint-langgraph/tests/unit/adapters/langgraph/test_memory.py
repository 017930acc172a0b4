# SPDX-License-Identifier: Apache-2.0
"""A graph that is looked at again: what changed is found, what was only filled in is not."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from sealpoint.adapters.object_search import Memory
from sealpoint_langgraph._world import world_again


class State(TypedDict, total=False):
    """Nothing much."""

    n: int


@tool
def read_file(name: str) -> str:
    """Read a file."""
    return name


@tool
def shell(name: str) -> str:
    """Run a command."""
    return name


def helper() -> int:
    """Count."""
    return 1


def other_helper() -> int:
    """Count otherwise."""
    return 2


class App:
    """An application with a node that is a method, and names that are filled later."""

    def __init__(self) -> None:
        self.model: Any = None
        self.cache: dict[str, Any] = {}
        self.tools = [read_file]
        self.table = {"count": helper}
        self.data: dict[str, Any] = {"seen": 1}
        self.hook: Callable[[], int] | None = None

    def node(self, state: State) -> State:
        """Use what there is."""
        return {"n": state.get("n", 0) + self.table["count"]()}

    def graph(self) -> Any:
        """The graph."""
        built: Any = StateGraph(State)
        built.add_node("node", self.node)
        built.add_edge(START, "node")
        return built.compile()


def _fill_model(app: App) -> None:
    app.model = FakeListChatModel(responses=["a"])


def _fill_cache(app: App) -> None:
    app.cache["tools"] = [shell]


def _fill_attribute(app: App) -> None:
    app.later = other_helper  # type: ignore[attr-defined]


def _fill_hook(app: App) -> None:
    app.hook = other_helper


def _fill_data(app: App) -> None:
    app.data["model"] = FakeListChatModel(responses=["a"])


def _add_tool(app: App) -> None:
    app.tools.append(shell)


def _replace_tool(app: App) -> None:
    app.tools[0] = shell


def _other_tools(app: App) -> None:
    app.tools = [read_file, shell]


def _replace_code(app: App) -> None:
    app.table["count"] = other_helper


def _add_code(app: App) -> None:
    app.table["more"] = other_helper


_FILLED = (_fill_model, _fill_cache, _fill_attribute, _fill_hook, _fill_data)
_CHANGED = (_add_tool, _replace_tool, _other_tools, _replace_code, _add_code)


@pytest.mark.parametrize("fill", _FILLED)
def test_what_is_filled_in_later_is_not_another_graph(fill: Callable[[App], None]) -> None:
    """A client that is made when it is first needed does not stop the next turn."""
    app = App()
    graph = app.graph()
    before, memory = world_again(graph, None)
    fill(app)
    now, memory = world_again(graph, memory)
    again, _ = world_again(graph, memory)

    assert before.digest == now.digest == again.digest


@pytest.mark.parametrize("change", _CHANGED)
def test_what_takes_the_place_of_something_is_another_graph(change: Callable[[App], None]) -> None:
    """The same for what is added to a list of tools, or to a table of functions."""
    app = App()
    graph = app.graph()
    before, memory = world_again(graph, None)
    assert world_again(graph, memory)[0].digest == before.digest
    for fill in _FILLED:
        fill(app)
    change(app)
    now, memory = world_again(graph, memory)

    assert now.digest != before.digest
    assert world_again(graph, memory)[0].digest == now.digest


def test_a_first_look_sees_everything() -> None:
    """Of an application that the process has not met, what was filled in before counts."""
    empty = world_again(App().graph(), None)[0]
    app = App()
    _fill_model(app)
    _fill_hook(app)

    assert world_again(app.graph(), None)[0].digest != empty.digest


def test_a_second_guard_looks_no_further_than_the_first() -> None:
    """One that is made for each request meets what the request before has filled in."""
    app = App()
    empty = world_again(app.graph(), None)[0]
    _fill_model(app)
    _fill_hook(app)

    assert world_again(app.graph(), None)[0].digest == empty.digest


def test_nothing_is_kept_that_is_gone() -> None:
    """A look remembers what it met itself, and lets go of the rest."""
    memory = Memory()
    first, second = [helper], [helper]
    memory.held(first, {0: helper})
    later = Memory(memory)
    later.held(second, {0: helper})

    assert [owner for owner, _ in later.found.values()] == [second]
    assert [owner for owner, _ in memory.found.values()] == [first]


def test_an_identity_that_is_used_again_is_another_object() -> None:
    """What counts is the object, and not the number by which it is found."""
    memory, owner = Memory(), object()
    memory.held(owner, {"a": helper, "b": None})
    memory.found[id(owner)] = (object(), frozenset({"a"}))

    assert memory.held(owner, {"b": helper}) == {"b": helper}
