# SPDX-License-Identifier: Apache-2.0
"""What LangGraph itself writes: a real graph runs once, and every call to its saver is kept.

The same steps are then replayed, call by call, against the stock saver and against Sealpoint, so
that both write the same states in the same order and neither is timed together with the graph.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from benchmarks._states import messages

__all__ = ["Step", "chat_turns", "long_steps", "small_steps"]


@dataclass
class Step:
    """What the saver was asked to keep up to and with one checkpoint."""

    writes: list[tuple[Any, ...]] = field(default_factory=list)
    """The arguments of each `put_writes` since the checkpoint before."""
    put: tuple[Any, ...] = ()
    """The arguments of `put`."""

    @property
    def state(self) -> dict[str, Any]:
        """The state that the checkpoint holds."""
        found: dict[str, Any] = self.put[1]["channel_values"]
        return found


class _SameObjects:
    """A serializer that gives every object back as itself.

    A state that a graph takes up again is then the one that it saved, as with a saver that loses
    nothing; JsonPlusSerializer brings messages back with other fields set than they had.
    """

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        self._kept.append(value)
        return "same", str(len(self._kept) - 1).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self._kept[int(data[1])]


class _Recorder(InMemorySaver):
    """Keeps every call. States are shared, not copied: a graph makes new ones at each step."""

    def __init__(self) -> None:
        super().__init__(serde=_SameObjects())
        self.steps: list[Step] = []
        self._open = Step()

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._open.writes.append((_plain(config), list(writes), task_id, task_path))
        super().put_writes(config, writes, task_id, task_path)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        kept = {**checkpoint, "channel_values": dict(checkpoint["channel_values"])}
        self._open.put = (_plain(config), kept, metadata, new_versions)
        self.steps.append(self._open)
        self._open = Step()
        return super().put(config, checkpoint, metadata, new_versions)


def _plain(config: Any) -> dict[str, Any]:
    """A configuration without the objects of the run that made it."""
    keys = ("thread_id", "checkpoint_ns", "checkpoint_id")
    configurable = config["configurable"]
    return {"configurable": {key: configurable[key] for key in keys if key in configurable}}


def _run(state_type: Any, node: Callable[[Any], Any], steps: int, first: dict[str, Any]) -> Any:
    recorder = _Recorder()
    graph: Any = StateGraph(state_type)
    graph.add_node("agent", node)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", lambda state: "agent" if state["step"] < steps else END)
    compiled = graph.compile(checkpointer=recorder)
    config: Any = {"configurable": {"thread_id": "bench"}, "recursion_limit": steps + 10}
    compiled.invoke(first, config, durability="sync")
    return recorder.steps


class _Small(TypedDict):
    messages: list[str]
    step: int
    plan: dict[str, int]


def small_steps(count: int) -> list[Step]:
    """Steps of an agent with a small state."""

    def node(state: _Small) -> dict[str, Any]:
        return {
            "messages": [*state["messages"][-4:], f"turn {state['step']}"],
            "step": state["step"] + 1,
        }

    first = {"messages": ["hello"] * 5, "step": 0, "plan": {"budget": 40}}
    found: list[Step] = _run(_Small, node, count, first)[1:]
    return found


class _Long(TypedDict):
    messages: Annotated[list[Any], operator.add]
    step: int


def long_steps(count: int, history: list[Any]) -> list[Step]:
    """Steps of an agent that has a long history of pydantic messages and adds one at a time."""
    last = history[-1]

    def node(state: _Long) -> dict[str, Any]:
        number = state["step"] + 1
        return {"messages": [last.model_copy(update={"id": f"new-{number}"})], "step": number}

    found: list[Step] = _run(_Long, node, count, {"messages": history, "step": 0})[1:]
    return found


def chat_turns(count: int, size_bytes: int) -> list[list[Step]]:
    """A chat, turn by turn: one message in, one out, each of `size_bytes`."""
    texts = (message["content"] for message in messages(2 * count, size_bytes))
    recorder = _Recorder()
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda _state: {"messages": [AIMessage(next(texts))]})
    graph.add_edge(START, "agent")
    graph.add_edge("agent", END)
    compiled = graph.compile(checkpointer=recorder)
    turns = []
    for _ in range(count):
        config: Any = {"configurable": {"thread_id": "bench"}}
        first: Any = {"messages": [HumanMessage(next(texts))]}
        compiled.invoke(first, config, durability="sync")
        turns.append(recorder.steps)
        recorder.steps = []
    return turns
