# SPDX-License-Identifier: Apache-2.0
"""The application's types are found in its schemas, and nowhere in stored data."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypeVar,
)

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph, add_messages
from langgraph.prebuilt import create_react_agent
from langgraph.runtime import Runtime
from langgraph.types import Send
from pydantic import BaseModel
from typing_extensions import TypeAliasType, TypedDict

from sealpoint.adapters.declared_types import rule_name
from sealpoint.codec import Registry
from sealpoint.errors import RuleInvalid, TypeNotAllowed, UsageError
from sealpoint_langgraph._declared_types import (
    allow_types,
    graph_types,
    types_of_allowlist,
)
from tests.unit.adapters.langgraph.program import Scripted

pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent")

T = TypeVar("T")


class Color(Enum):
    """An enum in a named tuple."""

    RED = "red"


class Size(Enum):
    """An enum in a literal."""

    SMALL = 1


class Point(NamedTuple):
    """A named tuple in a dataclass."""

    x: int
    color: Color


@dataclass
class Step:
    """A dataclass that refers to itself."""

    at: Point
    next: "Step | None" = None


class Plan(BaseModel):
    """A model in a field that may be missing."""

    steps: list[Step] = []


@dataclass
class Box(Generic[T]):
    """A generic dataclass."""

    value: T


class Inner(TypedDict):
    """A typed dict, which is plain data."""

    plan: NotRequired[Plan]


class Context(BaseModel):
    """The context of runs."""

    user: str = ""


class NodeInput(BaseModel):
    """The input of one node."""

    number: int = 0


class Deep(BaseModel):
    """A type of a subgraph's state."""

    depth: int = 0


class Opaque:
    """A class that no rule can be made for without functions of its own."""


Boxed = NewType("Boxed", Box[Deep])
Alias = TypeAliasType("Alias", dict[str, tuple[Inner, ...]])


class State(TypedDict):
    """A state with everything in it."""

    messages: Annotated[list[AnyMessage], add_messages]
    alias: Required[Alias]
    sized: Literal["any", Size.SMALL]
    boxed: Sequence[Boxed] | None
    opaque: Opaque
    sends: list[Send]


class SubState(TypedDict):
    """The state of a subgraph."""

    deep: Deep


def _nothing(_: Any) -> dict[str, Any]:
    return {}


def _builder() -> Any:
    def typed(state: NodeInput, config: RunnableConfig, runtime: Runtime[Context]) -> State:
        raise NotImplementedError

    builder: Any = StateGraph(State, context_schema=Context)
    builder.add_node("typed", typed, input_schema=NodeInput)
    builder.add_edge(START, "typed")
    return builder


_IN_STATE = {Color, Size, Point, Step, Plan, Box, Deep, Context, NodeInput}


def test_types_are_found_wherever_a_schema_names_them() -> None:
    """Generics, unions, aliases, fields of fields and nodes' own schemas are looked through."""
    found = graph_types(_builder())

    assert set(found) == _IN_STATE
    assert len(found) == len(set(found))
    assert set(graph_types(_builder().compile())) == _IN_STATE


def test_types_of_subgraphs_are_found() -> None:
    """A subgraph saves into the same store, as a node or when a node calls it."""
    inner: Any = StateGraph(SubState)
    sub = inner.add_node("a", _nothing).add_edge(START, "a").compile()

    def calls(state: Any) -> Any:
        return sub.invoke(state)

    class Root(TypedDict):
        number: int

    as_node = StateGraph(Root).add_node("sub", sub).add_edge(START, "sub")
    called = StateGraph(Root).add_node("calls", calls).add_edge(START, "calls")

    assert graph_types(as_node) == [Deep]
    assert graph_types(as_node.compile()) == [Deep]
    assert graph_types(called) == [Deep]


@task
def _measure(number: int) -> Point:
    return Point(number, Color.RED)


def test_types_of_the_functional_api_come_from_annotations() -> None:
    """An entrypoint's input, result and previous value count, and its tasks' results."""

    @entrypoint()
    def flow(given: NodeInput, *, previous: Plan | None = None) -> entrypoint.final[int, Deep]:
        number = given.number + len(previous.steps if previous else ())
        return entrypoint.final(value=_measure(number).result().x, save=Deep())

    assert set(graph_types(flow)) == {NodeInput, Plan, Step, Point, Color, Deep}


def test_what_is_no_graph_is_refused() -> None:
    """A mistaken argument is an error, not an empty list."""
    with pytest.raises(UsageError, match="expected a StateGraph"):
        graph_types({"state": State})


def test_values_of_found_types_come_back() -> None:
    """A rule per type is enough to save and load what the schema describes."""
    known = Registry()
    value = [Plan(steps=[Step(Point(1, Color.RED))]), Box(Deep(depth=2)), Size.SMALL]
    with pytest.raises(TypeNotAllowed):
        known.encode(value)
    names = allow_types(known, graph_types(_builder()))

    assert known.decode(known.encode(value)) == value
    assert sorted(names) == [rule.name for rule in known.rules]
    assert allow_types(known, graph_types(_builder())) == []


def test_a_rule_of_the_application_is_left_alone() -> None:
    """A type that was given its own name and version keeps them."""
    known = Registry()
    known.allow(Deep, name="shop.deep", version=3)

    assert allow_types(known, [Deep, HumanMessage, int]) == []
    assert [rule.version for rule in known.rules] == [3]


def test_names_follow_module_and_qualified_name() -> None:
    """The scheme is fixed, since names are in stored data."""

    class Local(BaseModel):
        pass

    module = "app.tests.unit.adapters.langgraph.test_schemas"

    assert rule_name(Plan) == f"{module}.plan"
    assert rule_name(Local).startswith(f"{module}.test_names_follow_module_and_")
    assert len(rule_name(Local)) == 100
    assert rule_name(type("Ä", (), {"__module__": "m"})) == "app.m.-"


def test_two_types_of_one_name_are_refused() -> None:
    """Names that differ in case only would be one stored name; the error has both and the way."""
    one, other = (
        type(name, (BaseModel,), {"__module__": "shop", "__qualname__": name})
        for name in ("Plan", "PLAN")
    )

    with pytest.raises(
        RuleInvalid, match=r"'app\.shop\.plan': .* shop\.Plan and shop\.PLAN"
    ) as told:
        allow_types(Registry(), [one, other])
    assert 'registry.allow(PLAN, name="app.shop.plan-2")' in told.value.hint


def test_the_started_program_is_named_like_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `python agent.py` stores is read after `import agent`; both at once are told."""
    program = ModuleType("__main__")
    program.__file__ = "/srv/agent.py"
    monkeypatch.setitem(sys.modules, "__main__", program)
    started, imported = (
        type("Plan", (BaseModel,), {"__module__": name, "__qualname__": "Plan"})
        for name in ("__main__", "agent")
    )

    assert rule_name(started) == rule_name(imported) == "app.agent.plan"
    with pytest.raises(RuleInvalid, match=r"__main__\.Plan and agent\.Plan") as told:
        allow_types(Registry(), [started, imported])
    assert "imported a second time" in told.value.hint


def test_the_frameworks_allowlist_names_loaded_classes() -> None:
    """Pairs are looked up in loaded modules; types of the framework need no rule."""
    pairs = [(Plan.__module__, "Plan"), (HumanMessage.__module__, "HumanMessage"), Step]

    assert types_of_allowlist(pairs) == [Plan, Step]


def test_an_allowlist_never_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is not loaded is not loaded for it, and its own code does not run."""

    class Trap(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "trap", Trap("trap"))
    monkeypatch.delitem(sys.modules, "this", raising=False)

    for pair in [("this", "s"), ("trap", "Plan"), ("os", "system"), (Plan.__module__, "Nobody")]:
        with pytest.raises(RuleInvalid, match="no loaded module"):
            types_of_allowlist([pair])
        assert types_of_allowlist([pair], strict=False) == []
    assert "this" not in sys.modules
    with pytest.raises(RuleInvalid, match="a module and a name"):
        types_of_allowlist(["os.system"])


@dataclass
class Line:
    """A part of what a tool returns."""

    text: str


@dataclass
class Receipt:
    """What a tool returns beside its text."""

    lines: list[Line]


class Answer(BaseModel):
    """What an agent has to answer with."""

    text: str


class Handle:
    """A class that needs functions of its own."""


@tool(response_format="content_and_artifact")
def pay(amount: int) -> tuple[str, Receipt]:
    """Pay."""
    return "paid", Receipt([Line(str(amount))])


class Look(BaseTool):
    """A tool with a method in place of a function."""

    name: str = "look"
    description: str = "Look something up."

    def _run(self, name: str) -> Color:
        return Color[name]


def test_types_that_tools_return_are_found() -> None:
    """The artifact's type, the types in its fields, and those of a tool's own method."""
    found = graph_types(create_react_agent(Scripted(messages=iter([])), [pay, Look()]))

    assert {Receipt, Line, Color} <= set(found)
    assert Answer not in found


@pytest.mark.parametrize("given", [Answer, ("Answer shortly.", Answer)], ids=["type", "prompt"])
def test_the_response_format_of_an_agent_is_found(given: Any) -> None:
    """Also where a prompt comes with it."""
    agent = create_react_agent(Scripted(messages=iter([])), [pay], response_format=given)

    assert Answer in graph_types(agent)


@pytest.mark.parametrize("strategy", ["", "AutoStrategy", "ProviderStrategy", "ToolStrategy"])
def test_the_response_format_of_create_agent_is_found(strategy: str) -> None:
    """As a type, and in each of the strategies that langchain has for it."""
    agents = pytest.importorskip("langchain.agents", reason="langchain is not installed")
    given = getattr(agents.structured_output, strategy)(Answer) if strategy else Answer
    agent = agents.create_agent(Scripted(messages=iter([])), [pay], response_format=given)

    assert {Answer, Receipt, Line} <= set(graph_types(agent))


def test_named_types_are_allowed_with_the_types_of_their_fields() -> None:
    """`types=` is for what a graph cannot name; what is no type is an error."""
    assert {Receipt, Line} <= set(graph_types(_builder(), [Receipt]))
    assert graph_types(_builder(), [Handle])[0] is Handle
    with pytest.raises(RuleInvalid, match="found Handle"):
        allow_types(Registry(), graph_types(_builder(), [Handle]))
    with pytest.raises(UsageError, match="expected classes, found str"):
        graph_types(_builder(), ["Receipt"])  # type: ignore[list-item]
