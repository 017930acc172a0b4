# SPDX-License-Identifier: Apache-2.0
"""Graphs whose nodes tell that they ran: a payment that somebody has to answer for.

Each turn brings an amount, a node asks, and the payment is made if the answer says so. In the
second shape asking and paying are a subgraph; in the deep ones that is a subgraph of a subgraph, or
all of it is a program of the functional API, and each step a task of it.
"""

import asyncio
import operator
from collections.abc import Callable, Iterable
from typing import Annotated, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from tests.effort import in_turn

__all__ = ["DEEP_SHAPES", "EITHER_FACE", "FACES", "SHAPES", "Desk", "State", "config_of", "run"]

SHAPES = ("root", "subgraph")
DEEP_SHAPES = ("nested", "program")
FACES = ("sync", "async")
EITHER_FACE = in_turn(*FACES)
"""Daily each attack comes through one of them."""


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
        self.during: dict[str, Callable[[], object]] = {}
        """What somebody does while a node runs."""

    def _node(self, name: str) -> Any:
        def node(state: State) -> State:
            self.ran.append(name)
            self.during.pop(name, lambda: None)()
            return {"log": [f"{name} {state.get('amount')}"]}

        return node

    def _ask(self, state: State) -> State:
        answer = interrupt({"pay": state["amount"]})
        self.ran.append("asked")
        return {"log": [f"answer {answer}"]}

    def step(self, name: str) -> Any:
        """What a step does."""
        return self._ask if name == "ask" else self._node(name)

    def builder(self, *more: str) -> Any:
        """The graph: plan, ask, pay, end, and more nodes after that."""
        if self.shape == "program":
            return _Program(self, more)
        built: Any = StateGraph(State)
        built.add_node("plan", self._node("plan"))
        built.add_edge(START, "plan")
        last = "plan"
        if self.shape != "root":
            inner: Any = StateGraph(State)
            inner.add_node("ask", self._ask)
            inner.add_node("pay", self._node("pay"))
            inner.add_edge(START, "ask")
            inner.add_edge("ask", "pay")
            if self.shape == "nested":
                # What is added is added to the innermost.
                self._append(inner, "pay", more)
                till, inner, more = inner, cast("Any", StateGraph(State)), ()
                inner.add_node("till", till.compile())
                inner.add_edge(START, "till")
            built.add_node("desk", inner.compile())
            built.add_edge("plan", last := "desk")
        else:
            built.add_node("ask", self._ask)
            built.add_node("pay", self._node("pay"))
            built.add_edge("plan", "ask")
            built.add_edge("ask", last := "pay")
        self._append(built, last, ("end", *more))
        return built

    def _append(self, built: Any, last: str, names: Iterable[str]) -> None:
        for name in names:
            built.add_node(name, self._node(name))
            built.add_edge(last, name)
            last = name


class _Program:
    """The same as a program of the functional API; it has the log of the turns before."""

    def __init__(self, desk: Desk, more: tuple[str, ...]) -> None:
        self._desk, self._more = desk, more

    def compile(self, checkpointer: Any = None) -> Any:
        """Make the entrypoint."""
        names = ("plan", "ask", "pay", "end", *self._more)
        steps: list[Any] = [task(self._desk.step(name), name=name) for name in names]

        @entrypoint(checkpointer=checkpointer)
        def program(state: State, *, previous: State | None = None) -> State:
            log = list((previous or {}).get("log", []))
            for step in steps:
                log += step(state).result()["log"]
            return {**state, "log": log}

        return program
