# SPDX-License-Identifier: Apache-2.0
"""A subgraph with a memory of its own, kept from one turn to the next (`checkpointer=True`)."""

import operator
from typing import Annotated, Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.types import StateSnapshot, interrupt
from typing_extensions import TypedDict

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.turns import Answer, Graph, Program, Run, Turn

__all__ = ["PROGRAM"]


class Clerk(TypedDict, total=False):
    """What the clerk remembers; only `wish` and `answer` are the customer's."""

    wish: str
    answer: str
    diary: Annotated[list[str], operator.add]


class Counter(TypedDict, total=False):
    """What the customer knows."""

    wish: str
    answer: str


def note(state: Clerk) -> Clerk:
    """Write the wish into the diary."""
    happen(f"noted {state['wish']}")
    return {"diary": [state["wish"]]}


def check(state: Clerk) -> Clerk:
    """Ask the boss about every second wish."""
    if len(state["diary"]) % 2 == 0:
        return {"diary": [f"boss: {interrupt('Boss, is this fine?')}"]}
    return {}


def reply(state: Clerk) -> Clerk:
    """Answer from the diary."""
    happen(f"replied to {state['wish']}")
    return {"answer": f"wish {len(state['diary'])}: {', '.join(state['diary'])}"}


def thank(state: Counter) -> Counter:
    """Be polite."""
    return {"answer": f"{state['answer']}. Thank you."}


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the counter and its clerk."""
    inner = StateGraph(Clerk)
    for node in (note, check, reply):
        inner.add_node(node.__name__, node)
    inner.add_edge(START, "note")
    inner.add_edge("note", "check")
    inner.add_edge("check", "reply")

    builder = StateGraph(Counter)
    builder.add_node("clerk", inner.compile(checkpointer=True))
    builder.add_node("thank", thank)
    builder.add_edge(START, "clerk")
    builder.add_edge("clerk", "thank")
    return builder.compile(checkpointer=checkpointer)


def _is_skipped(turn: Turn, now: StateSnapshot) -> bool:
    """Whether the clerk has not yet begun with the wish of this turn.

    Going on (`invoke(None)`) tells the subgraph to go on as well. If it has not begun, it finds
    the finished state of the turn before, has nothing to do, and that turn's answer is given
    again: known behaviour of the framework, with every saver. So the wish is sent once more.
    """
    if not isinstance(turn, Run) or not now.tasks:
        return False
    task = now.tasks[0]
    if task.name == "__start__":
        return True
    if task.name != "clerk" or task.result or not isinstance(task.state, StateSnapshot):
        return False
    return not task.state.next and task.state.values.get("wish") != turn.given["wish"]


PROGRAM = Program(
    name="stateful-subgraph",
    build=build,
    # In the other modes the clerk's memory and the customer's are saved in no order: a kill may
    # leave the clerk ahead, and the wish, sent again, is noted twice.
    survives=("sync",),
    is_skipped=_is_skipped,
    turns=(
        Run(given={"wish": "tea"}),
        Run(given={"wish": "cake"}),
        Answer(reply=lambda _: "yes"),
        Run(given={"wish": "milk"}),
        Answer(reply=lambda asked: {asked[0].id: "if need be"}),
    ),
)
