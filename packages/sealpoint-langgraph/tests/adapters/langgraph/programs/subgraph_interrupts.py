# SPDX-License-Identifier: Apache-2.0
"""A subgraph in a subgraph asks a person; its own state and schema are its own affair."""

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.turns import Answer, Graph, Program, Run

__all__ = ["PROGRAM"]


class Order(TypedDict, total=False):
    """The state of the whole."""

    item: str
    address: str
    status: str


class Delivery(TypedDict, total=False):
    """The state of the middle graph; it shares `address` with the whole."""

    address: str
    carrier: str


class Check(TypedDict, total=False):
    """The state of the innermost graph."""

    address: str
    confirmed: bool


def read(state: Check) -> Check:
    """Read the address back."""
    happen(f"read back {state['address']}")
    return {}


def confirm(state: Check) -> Check:
    """Ask whether the address is right."""
    answer = interrupt(f"Is {state['address']} right?")
    return {"confirmed": True, "address": answer or state["address"]}


def choose(state: Delivery) -> Delivery:  # noqa: ARG001 - the framework calls it by this name
    """Choose a carrier, ask for the day."""
    day = interrupt("Which day?")
    happen(f"carrier booked for {day}")
    return {"carrier": f"bicycle on {day}"}


def take(state: Order) -> Order:
    """Take the order."""
    happen(f"took {state['item']}")
    return {"status": "taken"}


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build three graphs, one inside the other."""
    inner = StateGraph(Check)
    inner.add_node("read", read)
    inner.add_node("confirm", confirm)
    inner.add_edge(START, "read")
    inner.add_edge("read", "confirm")
    check = inner.compile()

    middle = StateGraph(Delivery)
    middle.add_node("check", check)
    middle.add_node("choose", choose)
    middle.add_edge(START, "check")
    middle.add_edge("check", "choose")
    delivery = middle.compile()

    def deliver(state: Order) -> Order:
        """Call the middle graph from a node, and translate between the schemas."""
        done = delivery.invoke({"address": state["address"]})
        happen("delivered")
        return {"status": f"{done['carrier']} to {done['address']}"}

    outer = StateGraph(Order)
    outer.add_node("take", take)
    outer.add_node("deliver", deliver)
    outer.add_edge(START, "take")
    outer.add_edge("take", "deliver")
    return outer.compile(checkpointer=checkpointer)


PROGRAM = Program(
    name="subgraph-interrupts",
    build=build,
    turns=(
        Run(given={"item": "a lamp", "address": "Elm Street 1"}),
        # By id: this step will ask again. An answer without an id is saved for whichever question
        # comes next, and stays saved: after a kill it would answer the second question as well
        # (known behaviour of the framework, with every saver).
        Answer(reply=lambda asked: {asked[0].id: "Elm Street 11"}),
        Answer(reply=lambda _: "Monday"),
        Run(given={"item": "a rug", "address": "Oak Road 2"}),
        Answer(reply=lambda asked: {asked[0].id: ""}),
        Answer(reply=lambda _: "Friday"),
    ),
)
