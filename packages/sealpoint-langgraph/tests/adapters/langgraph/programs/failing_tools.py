# SPDX-License-Identifier: Apache-2.0
"""Tools that fail: once and are tried again, for good and are handled, or until the outage ends."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import NodeError
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, RetryPolicy
from typing_extensions import TypedDict

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.turns import Graph, Program, Run

__all__ = ["PROGRAM"]


class Outage(Exception):
    """The carrier does not answer."""


class Unreachable(Exception):
    """The warehouse does not answer yet."""


# Never freed: the framework remembers the errors that a handler took over by their address, and
# would swallow a later error that happens to get the same one.
_NO_GIFTS = ValueError("there are no gifts")


@dataclass(frozen=True)
class Surroundings:
    """What differs between runs: whether the carrier answers."""

    carrier_answers: bool


class State(TypedDict, total=False):
    """An order on its way."""

    order: str
    log: Annotated[list[str], operator.add]


def charge(state: State) -> State:
    """Charge the card; this must never happen twice."""
    happen(f"charged {state['order']}")
    return {"log": ["charged"]}


def pack(state: State, runtime: Runtime[Surroundings]) -> State:
    """Succeed at the second attempt."""
    if runtime.execution_info is not None and runtime.execution_info.node_attempt == 1:
        msg = "try again"
        raise Unreachable(msg)
    happen(f"packed {state['order']}")
    return {"log": ["packed"]}


def gift(state: State) -> State:  # noqa: ARG001 - the framework calls it by this name
    """Fail always."""
    raise _NO_GIFTS.with_traceback(None)


def no_gift(state: State, error: NodeError) -> Command[Any]:
    """Go on without what failed.

    Nothing happens outside, and the error is not shown: after a kill the framework runs a handler
    again although it had finished, and the error that it is given is then only a text.
    """
    return Command(update={"log": [f"no {error.node} for {state['order']}"]}, goto="ship")


def ship(state: State, runtime: Runtime[Surroundings]) -> State:
    """Fail during an outage."""
    if not runtime.context.carrier_answers:
        msg = "the carrier does not answer"
        raise Outage(msg)
    happen(f"shipped {state['order']}")
    return {"log": ["shipped"]}


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the order's way."""
    again = RetryPolicy(max_attempts=3, initial_interval=0.0, jitter=False, retry_on=(Unreachable,))
    builder = StateGraph(State, context_schema=Surroundings)
    builder.add_node("charge", charge)
    builder.add_node("pack", pack, retry_policy=again)
    builder.add_node("gift", gift, error_handler=no_gift)
    builder.add_node("ship", ship)
    builder.add_edge(START, "charge")
    builder.add_edge("charge", "pack")
    builder.add_edge("pack", "gift")
    return builder.compile(checkpointer=checkpointer)


_DOWN, _UP = Surroundings(carrier_answers=False), Surroundings(carrier_answers=True)

PROGRAM = Program(
    name="failing-tools",
    build=build,
    turns=(
        Run(given={"order": "A1", "log": []}, context=_DOWN, raises=Outage),
        Run(given=None, context=_DOWN, raises=Outage),
        Run(given=None, context=_UP),
        Run(given={"order": "B2"}, context=_UP),
    ),
)
