# SPDX-License-Identifier: Apache-2.0
"""Going back: replay from an older checkpoint, edit it, and go on from the fork."""

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.types import StateSnapshot, interrupt
from typing_extensions import TypedDict

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.turns import Answer, Edit, Graph, Pick, Program, Run

__all__ = ["PROGRAM"]


class State(TypedDict, total=False):
    """A joke in the making."""

    topic: str
    joke: str
    title: str


def choose(state: State) -> State:  # noqa: ARG001 - the framework calls it by this name
    """Choose a topic."""
    happen("chose a topic")
    return {"topic": "socks in the dryer"}


def write(state: State) -> State:
    """Write the joke."""
    happen(f"wrote about {state['topic']}")
    return {"joke": f"Why do {state['topic']} go missing? They elope."}


def name(state: State) -> State:
    """Ask a person for a title."""
    title = interrupt({"question": "title?", "joke": state["joke"]})
    happen(f"named it {title}")
    return {"title": title}


def _before(node: str) -> Pick:
    def pick(history: Sequence[StateSnapshot]) -> StateSnapshot:
        """Pick the oldest state that has this node before it."""
        return [state for state in history if state.next == (node,)][-1]

    return pick


def _newest_edit(history: Sequence[StateSnapshot]) -> StateSnapshot:
    return next(
        state for state in history if state.metadata and state.metadata["source"] == "update"
    )


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the line of three nodes."""
    builder = StateGraph(State)
    for node in (choose, write, name):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "choose")
    builder.add_edge("choose", "write")
    builder.add_edge("write", "name")
    return builder.compile(checkpointer=checkpointer)


PROGRAM = Program(
    name="time-travel",
    build=build,
    durabilities=("sync", "async"),
    survives=("sync", "async"),
    turns=(
        Run(given={}),
        Answer(reply=lambda _: "Lost socks"),
        # Replay: the joke is written again, and the question is asked again.
        Run(given=None, at=_before("write")),
        Answer(reply=lambda _: "Lost again"),
        # Fork: another topic, from before the joke was written.
        Edit(values={"topic": "chickens"}, at=_before("write")),
        Run(given=None, at=_newest_edit),
        Answer(reply=lambda asked: {asked[0].id: "Chickens"}),
        # The older branch, once more, from the question on.
        Run(given=None, at=_before("name")),
        Answer(reply=lambda _: "Third title"),
    ),
)
