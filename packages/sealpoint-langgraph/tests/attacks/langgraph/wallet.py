# SPDX-License-Identifier: Apache-2.0
"""A graph that spends an amount each turn: whoever goes on from an older state spends it twice."""

from typing import Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from sealpoint_langgraph import SealedSaver, guard

__all__ = ["KINDS", "Wallet"]

KINDS = ("bare", "guarded")


class _Balance(TypedDict, total=False):
    balance: int
    amount: int


class Wallet:
    """Makes the graph, and knows what was spent from which balance."""

    def __init__(self) -> None:
        self.spent: list[tuple[int, int]] = []

    def _spend(self, state: _Balance) -> _Balance:
        self.spent.append((state["balance"], state["amount"]))
        return {"balance": state["balance"] - state["amount"]}

    def graph(self, saver: SealedSaver, kind: str = "bare") -> Any:
        """The graph on a saver, with a guard or without."""
        built: Any = StateGraph(_Balance)
        built.add_node("spend", self._spend)
        built.add_edge(START, "spend")
        if kind == "guarded":
            return guard(built.compile(), saver, actor="dev")
        return built.compile(checkpointer=saver)
