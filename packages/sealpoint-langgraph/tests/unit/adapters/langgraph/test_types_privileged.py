# SPDX-License-Identifier: Apache-2.0
"""`Send` and `Command` are stored where the framework puts them, and nowhere else."""

from collections import deque
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import attrs
import msgspec
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph, add_messages
from langgraph.types import Command, Interrupt, Overwrite, Send
from pydantic import BaseModel

from sealpoint.errors import TypeNotAllowed
from sealpoint_langgraph._framework_types import check_privileged

_SEND = Send("pay", {"amount": 1})
_COMMAND = Command(goto=[_SEND, "audit"], update={"messages": [HumanMessage("a")]}, resume="yes")


@dataclass
class _Plan:
    step: Any


@dataclass(slots=True)
class _Slotted:
    step: Any


@attrs.define
class _Attrs:
    step: Any


class _Struct(msgspec.Struct):
    step: Any


class _Model(BaseModel, arbitrary_types_allowed=True):
    step: Any


@pytest.mark.parametrize(
    ("channel", "value"),
    [
        ("__pregel_tasks", _SEND),
        ("__pregel_tasks", [_SEND, _SEND]),
        ("__return__", _COMMAND),
        ("__return__", [AIMessage("a"), _COMMAND, _SEND]),
        ("__return__", {"plan": (_SEND,)}),
        ("__end__", _COMMAND),
        ("__previous__", [_COMMAND]),
        ("messages", [HumanMessage("a"), AIMessage("b")]),
        ("messages", None),
        ("state", {"a": [1, (2.5, "x", {b"y"})], 3: _Plan({"deep": deque([1])})}),
    ],
)
def test_what_the_framework_stores_passes(channel: str, value: Any) -> None:
    """Values that a graph really stores are not refused."""
    check_privileged(channel, value)


@pytest.mark.parametrize("steering", [_SEND, _COMMAND])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda value: value,
        lambda value: [HumanMessage("a"), value],
        lambda value: {"a": {"b": (1, [value])}},
        lambda value: deque([value]),
        lambda value: Overwrite([value]),
        lambda value: Interrupt({"q": value}, "i"),
        lambda value: _DeltaSnapshot([value]),
        _Plan,
        lambda value: _Slotted([value]),
        _Attrs,
        lambda value: _Struct([value]),
        lambda value: _Model(step=[value]),
    ],
)
def test_steering_objects_in_ordinary_channels_are_refused(steering: Any, wrap: Any) -> None:
    """However deep it lies, the error names the channel and the type."""
    with pytest.raises(TypeNotAllowed, match=f"'messages'.*{type(steering).__name__}"):
        check_privileged("messages", wrap(steering))


@pytest.mark.parametrize(
    ("channel", "value"),
    [
        ("__pregel_tasks", _COMMAND),
        ("__pregel_tasks", [Send("a", {"next": Send("b", 1)})]),
        ("__pregel_tasks", [Send("a", [_COMMAND])]),
        ("__end__", _SEND),
        ("__previous__", [_SEND]),
        ("__return__", Command(update={"x": _SEND})),
        ("__return__", Command(resume=_COMMAND)),
        ("__resume__", _COMMAND),
        ("__interrupt__", (Interrupt(_SEND, "i"),)),
        ("__start__", _SEND),
    ],
)
def test_steering_objects_in_the_wrong_special_channel_are_refused(
    channel: str, value: Any
) -> None:
    """Each special channel holds only what the framework puts there, also inside of it."""
    with pytest.raises(TypeNotAllowed, match=channel):
        check_privileged(channel, value)


def test_a_value_that_holds_itself_ends() -> None:
    """A cycle is looked through once; that it cannot be stored is another's to say."""
    circle: list[Any] = [1]
    circle.append({"again": circle})

    check_privileged("state", circle)


class _Watching(InMemorySaver):
    """A saver of the framework's own that checks all it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.steered: set[str] = set()

    def _check(self, channel: str, value: Any) -> None:
        check_privileged(channel, value)
        if any(isinstance(each, Send | Command) for each in (value, *_listed(value))):
            self.steered.add(channel)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        for channel, value in checkpoint["channel_values"].items():
            self._check(channel, value)
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        for channel, value in writes:
            self._check(channel, value)
        super().put_writes(config, writes, task_id, task_path)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class _State(TypedDict):
    messages: Annotated[list[Any], add_messages]


def test_graphs_that_send_and_command_are_not_refused() -> None:
    """Map-reduce with Send, nodes that return Command and tasks that do all work as they are."""

    def fan(_: _State) -> list[Send]:
        return [Send("work", {"messages": [f"part {n}"]}) for n in range(3)]

    def work(state: _State) -> Command[Any]:
        return Command(update={"messages": state["messages"]}, goto=Send("last", state))

    def last(state: _State) -> _State:
        return state

    saver = _Watching()
    builder = StateGraph(_State)
    builder.add_node("work", work, destinations=("last",))
    builder.add_node("last", last)
    builder.add_conditional_edges(START, fan, ["work"])
    builder.compile(checkpointer=saver).invoke(
        {"messages": ["go"]}, {"configurable": {"thread_id": "1"}}
    )

    @task
    def decide(number: int) -> Command[Any]:
        return Command(update={"n": number})

    @entrypoint(checkpointer=saver)
    def flow(number: int) -> Command[Any]:
        return decide(number).result()

    for _ in flow.stream(1, {"configurable": {"thread_id": "2"}}):
        pass

    assert saver.steered == {"__pregel_tasks", "__return__", "__end__", "__previous__"}
