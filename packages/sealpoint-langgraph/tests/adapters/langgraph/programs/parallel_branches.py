# SPDX-License-Identifier: Apache-2.0
"""Branches side by side, two of which ask a person; a deferred node joins them."""

import operator
from typing import Annotated, Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite, interrupt
from typing_extensions import TypedDict

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.turns import Answer, Graph, Program, Run, by_question

__all__ = ["PROGRAM"]


class State(TypedDict, total=False):
    """What the branches collect."""

    question: str
    notes: Annotated[list[str], operator.add]
    votes: Annotated[dict[str, bool], operator.or_]
    report: str


def search(state: State) -> State:
    """Look it up."""
    happen(f"searched {state['question']}")
    return {"notes": [f"found something on {state['question']}"]}


def legal(state: State) -> State:
    """Ask a lawyer."""
    answer = interrupt("legal?")
    happen(f"legal said {answer}")
    return {
        "notes": [f"legal on {state['question']}: {answer}"],
        "votes": {"legal": answer == "yes"},
    }


def finance(state: State) -> State:
    """Ask twice in one node: the first answer is remembered while the second is asked for."""
    budget = interrupt("budget?")
    sure = interrupt({"question": "sure?", "budget": budget})
    happen(f"finance said {budget}, {sure}")
    return {"notes": [f"budget for {state['question']}: {budget}"], "votes": {"finance": sure}}


def refine(state: State) -> State:
    """Take one more step than the other branches."""
    happen("refined")
    return {"notes": [f"refined {len(state['notes'])} notes"]}


def report(state: State) -> dict[str, Any]:
    """Join the branches, and begin the notes anew."""
    happen("reported")
    return {"report": "; ".join(state["notes"]), "notes": Overwrite([])}


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the fan of branches."""
    builder = StateGraph(State)
    for node in (search, legal, finance, refine):
        builder.add_node(node.__name__, node)
    builder.add_node("report", report, defer=True)
    for name in ("search", "legal", "finance"):
        builder.add_edge(START, name)
    builder.add_edge("search", "refine")
    for name in ("refine", "legal", "finance"):
        builder.add_edge(name, "report")
    builder.add_edge("report", END)
    return builder.compile(checkpointer=checkpointer)


_REPLIES = {"legal?": "yes", "budget?": 1000, "sure?": True}

PROGRAM = Program(
    name="parallel-branches",
    build=build,
    turns=(
        Run(given={"question": "solar roofs", "notes": ["begun"]}),
        Answer(reply=by_question(_REPLIES)),
        Answer(reply=by_question(_REPLIES)),
        Run(given={"question": "heat pumps"}),
        # One question at a time, in an order of the person's own.
        Answer(
            reply=lambda asked: by_question(_REPLIES)([q for q in asked if q.value != "legal?"])
        ),
        Answer(
            reply=lambda asked: by_question(_REPLIES)([q for q in asked if q.value == "legal?"])
        ),
        Answer(reply=by_question(_REPLIES)),
    ),
)
