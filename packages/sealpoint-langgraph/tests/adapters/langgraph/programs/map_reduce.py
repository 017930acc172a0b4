# SPDX-License-Identifier: Apache-2.0
"""Map and reduce: a `Send` per subject to a small graph of its own, then the best is chosen."""

import operator
from typing import Annotated, Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.scripted import Line, ScriptedChat
from tests.adapters.langgraph.turns import Graph, Program, Run

__all__ = ["PROGRAM"]


class Overall(TypedDict, total=False):
    """The state of the whole."""

    topic: str
    subjects: list[str]
    jokes: Annotated[list[str], operator.add]
    best: str


class One(TypedDict, total=False):
    """The state of one joke."""

    subject: str
    draft: str
    jokes: list[str]


_MODEL = ScriptedChat(
    script=[
        Line(cue=r"subjects of (\w+)", say="lions, penguins, bees"),
        Line(cue=r"joke about (\w+)", say="Why do {0} never lose? They are prime mates."),
        Line(cue=r"best", say="1"),
    ]
)


def _ask(text: str) -> str:
    return str(_MODEL.invoke([HumanMessage(text, id="asked")]).text)


def subjects(state: Overall) -> Overall:
    """Find subjects of the topic."""
    return {"subjects": _ask(f"subjects of {state['topic']}").split(", ")}


def each(state: Overall) -> list[Send]:
    """Send every subject off on its own."""
    return [Send("joke", {"subject": subject}) for subject in state["subjects"]]


def draft(state: One) -> One:
    """Write a joke."""
    happen(f"drafted {state['subject']}")
    return {"draft": _ask(f"joke about {state['subject']}")}


def polish(state: One) -> One:
    """Make it better."""
    happen(f"polished {state['subject']}")
    return {"jokes": [state["draft"].replace("Why", "Tell me: why")]}


def choose(state: Overall) -> Overall:
    """Choose the best joke."""
    happen(f"chose from {len(state['jokes'])}")
    return {"best": state["jokes"][int(_ask("best?"))]}


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the map and its reduction."""
    one = StateGraph(One)
    one.add_node("draft", draft)
    one.add_node("polish", polish)
    one.add_edge(START, "draft")
    one.add_edge("draft", "polish")

    builder = StateGraph(Overall)
    builder.add_node("subjects", subjects)
    builder.add_node("joke", one.compile())
    builder.add_node("choose", choose)
    builder.add_edge(START, "subjects")
    builder.add_conditional_edges("subjects", each, ["joke"])
    builder.add_edge("joke", "choose")
    builder.add_edge("choose", END)
    return builder.compile(checkpointer=checkpointer)


PROGRAM = Program(
    name="map-reduce",
    build=build,
    turns=(Run(given={"topic": "animals"}),),
)
