# SPDX-License-Identifier: Apache-2.0
"""All streaming modes at once: values, updates, tokens, own events, tasks, checkpoints, debug."""

from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.scripted import Line, ScriptedChat
from tests.adapters.langgraph.turns import Answer, Graph, Program, Run

__all__ = ["PROGRAM"]

_MODEL = ScriptedChat(
    script=[
        Line(cue=r"joke about (\w+)", say="What do {0} drink? Tea, mostly."),
        Line(cue=r"Tea", say="It is about tea."),
    ]
)


class State(MessagesState, total=False):
    """Messages, and what the person thinks of them."""

    rating: int


def write(state: State) -> dict[str, Any]:
    """Write a joke, with reports on the way."""
    report = get_stream_writer()
    report({"progress": 0.5})
    happen("wrote")
    answer = _MODEL.invoke(state["messages"])
    report("written")
    return {"messages": [answer]}


def explain(state: State) -> dict[str, Any]:
    """Explain it."""
    return {"messages": [_MODEL.invoke(state["messages"])]}


def rate(state: State) -> dict[str, Any]:  # noqa: ARG001 - the framework calls it by this name
    """Ask a person."""
    return {"rating": interrupt("How good was it?")}


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build a writer with an explaining subgraph."""
    inner = StateGraph(State)
    inner.add_node("explain", explain)
    inner.add_edge(START, "explain")

    builder = StateGraph(State)
    builder.add_node("write", write)
    builder.add_node("explainer", inner.compile())
    builder.add_node("rate", rate)
    builder.add_edge(START, "write")
    builder.add_edge("write", "explainer")
    builder.add_edge("explainer", "rate")
    return builder.compile(checkpointer=checkpointer)


PROGRAM = Program(
    name="streaming",
    build=build,
    streams=True,
    turns=(
        Run(given={"messages": [HumanMessage("A joke about cats, please", id="h1")]}),
        Answer(reply=lambda _: 7),
        Run(given={"messages": [HumanMessage("A joke about dogs, please", id="h2")]}),
        Answer(reply=lambda _: 9),
    ),
)
