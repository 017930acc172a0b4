# SPDX-License-Identifier: Apache-2.0
"""Breakpoints, edits in the name of a node, and commands that send the graph elsewhere."""

import operator
from typing import Annotated, Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.turns import Edit, Graph, Program, Run

__all__ = ["PROGRAM"]


class State(TypedDict, total=False):
    """A text and what happened to it."""

    text: str
    steps: Annotated[list[str], operator.add]


def draft(state: State) -> State:
    """Draft the text."""
    happen(f"drafted {state['text']}")
    return {"text": f"{state['text']} (draft)", "steps": ["draft"]}


def judge(state: State) -> Command[Literal["improve", "publish"]]:
    """Go where the text is sent."""
    fine = "good" in state["text"]
    return Command(update={"steps": ["judge"]}, goto="publish" if fine else "improve")


def improve(state: State) -> State:
    """Improve the text."""
    happen("improved")
    return {"text": state["text"].replace("draft", "good"), "steps": ["improve"]}


def publish(state: State) -> State:
    """Publish; nobody can take it back."""
    happen(f"published {state['text']}")
    return {"steps": ["publish"]}


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the way to print, with a breakpoint before the press."""
    builder = StateGraph(State)
    for node in (draft, judge, improve, publish):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "judge")
    builder.add_edge("improve", "judge")
    builder.add_edge("publish", END)
    return builder.compile(checkpointer=checkpointer, interrupt_before=["publish"])


PROGRAM = Program(
    name="edited-draft",
    build=build,
    turns=(
        Run(given={"text": "news", "steps": []}, until=("publish",)),
        Edit(values={"text": "edited good news", "steps": ["edit"]}),
        Run(given=None),
        # In the name of a node: its edges are followed, it does not run.
        Run(given={"text": "more"}, until=("publish",)),
        Edit(values={"text": "bad draft", "steps": ["sent back"]}, as_node="improve"),
        Run(given=None, until=("publish",)),
        Run(given=None),
        # A command from outside: skip to another node, with an update.
        Run(
            given=Command(goto="improve", update={"steps": ["commanded"], "text": "a draft"}),
            until=("publish",),
        ),
        Run(given=None),
    ),
)
