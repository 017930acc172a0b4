# SPDX-License-Identifier: Apache-2.0
"""How a saver tells a load that is going to be executed from one that is shown.

The framework does not say so. A run leaves its runtime in the configuration that the saver is
given, an edit by `update_state` fills in whatever the caller left out of it, and what is only shown
has neither. A caller may write a recursion limit or anything of JSON there; a look stays a look.
None of this is promised, so it is tried out, once in a process, on a tiny graph. Should the signs
be gone, every load counts as an execution.
"""

from collections.abc import Mapping
from enum import Enum, auto
from functools import cache
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

__all__ = ["Purpose", "purpose_of"]

_RUNTIME = "__pregel_runtime"
_FILLED = {"callbacks", "metadata", "recursion_limit", "tags"}


class Purpose(Enum):
    """Why the framework asks for a checkpoint."""

    SHOW = auto()
    EDIT = auto()
    EXECUTE = auto()


def purpose_of(config: Mapping[str, Any]) -> Purpose:
    """Why a checkpoint is asked for, by what the framework left in the configuration."""
    found = _signs(config)
    if found is Purpose.SHOW and not signs_hold():
        return Purpose.EXECUTE
    return found


def _signs(config: Mapping[str, Any]) -> Purpose:
    if isinstance((config.get("configurable") or {}).get(_RUNTIME), Runtime):
        return Purpose.EXECUTE
    return Purpose.EDIT if config.keys() >= _FILLED else Purpose.SHOW


class _Recorder(InMemorySaver):
    """Remembers by which signs it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[Purpose] = set()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        self.found.add(_signs(config))
        return super().get_tuple(config)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.get_tuple(config)

    def asked(self) -> set[Purpose]:
        """What was found since the last time."""
        found, self.found = self.found, set()
        return found


class _State(TypedDict):
    n: int


@cache
def signs_hold() -> bool:
    """Whether this release of the framework leaves the signs where they are looked for."""
    saver = _Recorder()
    builder = StateGraph(_State)
    builder.add_node("step", _step)
    builder.add_edge(START, "step")
    builder.add_edge("step", END)
    graph = builder.compile(checkpointer=saver)
    config: RunnableConfig = {"configurable": {"thread_id": "self-check"}}
    graph.invoke({"n": 0}, config)
    executed = saver.asked()
    graph.update_state(config, {"n": 5})
    edited = saver.asked()
    graph.get_state(config)
    graph.get_state({**config, "recursion_limit": 9})
    shown = saver.asked()
    return (executed, edited, shown) == ({Purpose.EXECUTE}, {Purpose.EDIT}, {Purpose.SHOW})


def _step(state: _State) -> _State:
    return {"n": state["n"] + 1}
