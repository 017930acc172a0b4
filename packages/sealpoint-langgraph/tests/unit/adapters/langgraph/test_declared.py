# SPDX-License-Identifier: Apache-2.0
"""What a graph declares that cannot be saved is said before anything runs."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, TypedDict

import numpy as np
import pytest
from langchain_core.tools import tool
from langgraph.channels import UntrackedValue
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import create_react_agent
from pydantic import BaseModel

import sealpoint
from sealpoint.errors import TypeNotAllowed
from sealpoint_langgraph import SealedSaver, TypesNotAllowedWarning, guard
from tests.unit.adapters.langgraph.program import Scripted

pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent")


class Money:
    """A class that needs functions of its own."""


class Euro(Money):
    """One below it that needs them, too."""


class Named(Protocol):
    """Anything with a name."""

    name: str


class Shape:
    """A class whose own objects are not meant."""


@dataclass
class Circle(Shape):
    """One below it that can be saved."""

    radius: int


@dataclass
class Plan:
    """A class that only needs its rule."""

    steps: int


class Kept(BaseModel):
    """A model that can be saved."""

    text: str


def _graph(annotation: Any) -> Any:
    make: Any = TypedDict
    builder = StateGraph(make("State", {"value": annotation}, total=False))
    builder.add_node("run", lambda _: pytest.fail("nothing runs"))
    builder.add_edge(START, "run")
    return builder.compile()


def _check(graph: Any, door: str, registry: sealpoint.Registry | None = None) -> None:
    with sealpoint.open_store("memory:", registry=registry) as store:
        if door == "for_graph":
            SealedSaver.for_graph(graph, store)
        else:
            guard(graph, SealedSaver(store), actor="clerk")


_both = pytest.mark.parametrize("door", ["for_graph", "guard"])


@_both
@pytest.mark.parametrize(
    "annotation", [Money, Money | Euro, Annotated[Counter[str], "note"], type(threading.Lock())]
)
def test_a_channel_that_can_hold_nothing_that_is_saved_is_an_error(
    annotation: Any, door: str
) -> None:
    """The channel, the type and the line to write are told, and no node has run."""
    with pytest.raises(TypeNotAllowed, match="channel 'value': ") as told:
        _check(_graph(annotation), door)

    assert "sealpoint.open_store(url, registry=registry)" in told.value.hint


@_both
@pytest.mark.parametrize(
    "annotation", [Money | None, list[Money], dict[str, Money], Money | Named, Money | Any], ids=str
)
def test_what_may_never_be_there_is_a_warning(annotation: Any, door: str) -> None:
    """An empty list and a None can be saved."""
    with pytest.warns(
        TypesNotAllowedWarning, match=r"(?s)channel 'value': .*\.Money.*registry\.allow"
    ):
        _check(_graph(annotation), door)


def test_a_type_that_only_lacks_its_rule_is_a_warning_of_guard() -> None:
    """`for_graph` allows it, a bare saver behind `guard` does not."""
    with pytest.warns(TypesNotAllowedWarning, match=r"registry\.allow\(Plan, "):
        _check(_graph(Plan), "guard")
    _check(_graph(Plan), "for_graph")


@_both
@pytest.mark.parametrize(
    "annotation",
    [
        *(int, str, Any, object, Path, np.ndarray, list[int], dict[str, Any], tuple[int, ...]),
        *(Sequence[int], Mapping[str, int], Named, Circle | None, Shape, BaseModel),
        Annotated[Money, UntrackedValue],
    ],
    ids=str,
)
def test_what_can_be_saved_is_not_mentioned(annotation: Any, door: str) -> None:
    """Built-in types, what says nothing, what is never saved, and classes with others below."""
    registry = sealpoint.Registry()
    registry.allow(Circle, name="shop.circle")
    registry.allow(Kept, name="shop.kept")
    _check(_graph(annotation), door, registry)


@_both
def test_a_rule_settles_it(door: str) -> None:
    """The printed line, with its functions, is all that is needed."""
    registry = sealpoint.Registry()
    registry.allow(Money, name="shop.money", encode=lambda _: 0, decode=lambda _: Money())
    _check(_graph(Money), door, registry)


@tool(response_format="content_and_artifact")
def pay(amount: int) -> tuple[str, Money]:
    """Pay."""
    raise AssertionError(amount)


@tool
def look(name: str) -> Money:
    """Look somebody up; what it returns becomes text."""
    raise AssertionError(name)


@_both
def test_an_artifact_that_cannot_be_saved_is_an_error_before_its_tool_has_run(door: str) -> None:
    """In a graph and in a subgraph; what a tool returns as text is not meant."""
    agent = create_react_agent(Scripted(messages=iter([])), [pay])
    outer: Any = StateGraph(agent.builder.state_schema)
    outer.add_node("agent", agent)
    outer.add_edge(START, "agent")
    for graph in (agent, outer.compile()):
        with pytest.raises(TypeNotAllowed, match=r"artifact of the tool 'pay': .*\.Money"):
            _check(graph, door)
    _check(create_react_agent(Scripted(messages=iter([])), [look]), door)
