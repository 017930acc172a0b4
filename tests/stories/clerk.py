# SPDX-License-Identifier: Apache-2.0
"""A clerk who asks before each payment: the application that a story copies, edits and deploys.

`python clerk.py ask|answer URL CONFIG STATE FIRST END` takes threads to their first question, or
answers the one that each waits at, which brings it to the next. It prints what became of them.
"""

import json
import sys
from collections import Counter
from typing import Any, TypedDict

from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import sealpoint
from sealpoint.errors import NeedsApproval, SealpointError
from sealpoint_langgraph import SealedSaver, guard

__all__ = ["graph"]


class State(TypedDict, total=False):
    """What the clerk has done."""

    paid: int


@tool
def balance(account: str) -> int:
    """Say how much there is in an account."""
    return len(account)


@tool
def transfer(account: str) -> str:
    """Move money to an account."""
    return account


TOOLS: list[BaseTool] = [balance]


def pay(state: State) -> State:
    """Pay once more, if somebody says so."""
    # Ask first.
    answer = interrupt({"pay": 250, "tools": [each.name for each in TOOLS]})
    return {"paid": state.get("paid", 0) + (answer == "yes")}


builder = StateGraph(State)
builder.add_node("pay", pay)
builder.add_edge(START, "pay")
builder.add_edge("pay", "pay")
graph = builder.compile()


def _turn(guarded: Any, act: str, number: int) -> str:
    """Take one thread a question further; "ok", or the code that it was refused with."""
    given: Any = {} if act == "ask" else Command(resume="yes")
    config = {"configurable": {"thread_id": f"invoice-{number}"}}
    try:
        found = guarded.invoke(given, config, durability="exit")
    except NeedsApproval as error:
        return f"{error.code}: {', '.join(error.reasons)}"
    except SealpointError as error:
        return error.code
    return "ok" if found["__interrupt__"] else "ended"


def _main(act: str, url: str, config: str, state: str, *numbers: str) -> None:
    with sealpoint.open_store(url, config_dir=config, state_dir=state) as store:
        guarded = guard(graph, SealedSaver.for_graph(builder, store), actor="clerk")
        told = Counter(_turn(guarded, act, number) for number in range(*map(int, numbers)))
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
