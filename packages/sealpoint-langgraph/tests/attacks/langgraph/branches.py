# SPDX-License-Identifier: Apache-2.0
"""A graph of two branches, of which one may fail when the other has paid."""

from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from tests.attacks.langgraph.desks import State, config_of, run

__all__ = ["Branches"]


class Branches:
    """One branch pays and is done, the other fails for as long as it is told to."""

    def __init__(self, shape: str) -> None:
        self.shape, self.fails = shape, True
        self.ran: list[str] = []

    def _pay(self, _state: State) -> State:
        self.ran.append("pay")
        return {"log": ["paid"]}

    def _tell(self, _state: State) -> State:
        if self.fails:
            raise ConnectionError("nobody there")
        self.ran.append("tell")
        return {"log": ["told"]}

    def builder(self) -> Any:
        """Both branches, in the graph or in a subgraph."""
        built: Any = StateGraph(State)
        built.add_node("pay", self._pay)
        built.add_node("tell", self._tell)
        built.add_edge(START, "pay")
        built.add_edge(START, "tell")
        if self.shape == "root":
            return built
        outer: Any = StateGraph(State)
        outer.add_node("both", built.compile())
        outer.add_edge(START, "both")
        return outer

    def fail(self, graph: Any, face: str) -> None:
        """Run until the one has paid and the other has failed."""
        with pytest.raises(ConnectionError):
            run(face, graph, {"amount": 1}, config_of(), durability="sync")
        assert self.ran == ["pay"]
        self.fails = False
