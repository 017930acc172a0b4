# SPDX-License-Identifier: Apache-2.0
"""Graphs whose nodes tell that they ran: a payment that somebody has to answer for.

Each turn brings an amount, a node asks, and the payment is made if the answer says so. In the
second shape asking and paying are a subgraph.
"""

import asyncio
import operator
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

__all__ = ["FACES", "SHAPES", "Desk", "State", "config_of", "run"]

SHAPES = ("root", "subgraph")
FACES = ("sync", "async")


class State(TypedDict, total=False):
    """What the graphs work on."""

    amount: int
    log: Annotated[list[str], operator.add]


def config_of(thread: str = "t", **fields: Any) -> RunnableConfig:
    """The configuration of a thread."""
    return {"configurable": {"thread_id": thread, **fields}}


def run(face: str, graph: Any, value: Any, config: RunnableConfig, **options: Any) -> Any:
    """Run a graph, by either of its faces."""
    if face == "sync":
        return graph.invoke(value, config, **options)
    return asyncio.run(graph.ainvoke(value, config, **options))


class Desk:
    """Makes the graph, and knows which of its nodes ran."""

    def __init__(self, shape: str = "root") -> None:
        self.shape = shape
        self.ran: list[str] = []

    def _node(self, name: str) -> Any:
        def node(state: State) -> State:
            self.ran.append(name)
            return {"log": [f"{name} {state.get('amount')}"]}

        return node

    def _ask(self, state: State) -> State:
        answer = interrupt({"pay": state["amount"]})
        self.ran.append("asked")
        return {"log": [f"answer {answer}"]}

    def builder(self, *more: str) -> Any:
        """The graph: plan, ask, pay, end, and more nodes after that."""
        built: Any = StateGraph(State)
        built.add_node("plan", self._node("plan"))
        built.add_edge(START, "plan")
        last = "plan"
        if self.shape == "subgraph":
            inner: Any = StateGraph(State)
            inner.add_node("ask", self._ask)
            inner.add_node("pay", self._node("pay"))
            inner.add_edge(START, "ask")
            inner.add_edge("ask", "pay")
            built.add_node("desk", inner.compile())
            built.add_edge("plan", last := "desk")
        else:
            built.add_node("ask", self._ask)
            built.add_node("pay", self._node("pay"))
            built.add_edge("plan", "ask")
            built.add_edge("ask", last := "pay")
        for name in ("end", *more):
            built.add_node(name, self._node(name))
            built.add_edge(last, name)
            last = name
        return built
