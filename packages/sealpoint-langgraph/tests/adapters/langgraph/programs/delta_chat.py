# SPDX-License-Identifier: Apache-2.0
"""A chat whose messages are a delta channel: most checkpoints hold only what was added."""

from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.types import StateSnapshot
from typing_extensions import TypedDict

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.scripted import Line, ScriptedChat
from tests.adapters.langgraph.turns import Edit, Graph, Program, Run

__all__ = ["PROGRAM"]


def _append(messages: list[AnyMessage], added: Sequence[list[AnyMessage]]) -> list[AnyMessage]:
    return [*messages, *(message for some in added for message in some)]


class State(TypedDict, total=False):
    """Messages of which only additions are saved, and a full copy now and then."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_append, snapshot_frequency=3)]
    mood: str


_MODEL = ScriptedChat(script=[Line(cue=r"number (\d+)", say="{0} is a fine number.")])


def answer(state: State) -> State:
    """Answer the newest message."""
    happen(f"answered {state['messages'][-1].id}")
    return {"messages": [_MODEL.invoke(state["messages"])]}


def feel(state: State) -> State:
    """Say how it goes, by how much was said."""
    return {"mood": "fine" if len(state["messages"]) % 4 else "great"}


def _early(history: Sequence[StateSnapshot]) -> StateSnapshot:
    return next(state for state in history if len(state.values.get("messages", ())) == 4)


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the chat."""
    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_node("feel", feel)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "feel")
    return builder.compile(checkpointer=checkpointer)


def _say(number: int) -> Run:
    return Run(given={"messages": [HumanMessage(f"number {number}", id=f"h{number}")]})


PROGRAM = Program(
    name="delta-chat",
    build=build,
    turns=(
        *(_say(number) for number in range(4)),
        # A fork from the middle of the chat sees only its own ancestors.
        Edit(
            values={"messages": [HumanMessage("number 77", id="edited")]},
            as_node="__start__",
            at=_early,
        ),
        Run(given=None),
        _say(5),
        _say(6),
    ),
)
