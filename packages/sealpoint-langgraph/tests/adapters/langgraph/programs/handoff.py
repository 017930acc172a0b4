# SPDX-License-Identifier: Apache-2.0
"""Agents that hand a customer over to each other, by tools that command the graph above them."""

import functools
import warnings
from typing import Annotated, Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, create_react_agent
from langgraph.types import Command
from langgraph.warnings import LangGraphDeprecatedSinceV10

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.scripted import Line, ScriptedChat
from tests.adapters.langgraph.turns import Graph, Program, Run

__all__ = ["PROGRAM"]


class State(MessagesState, total=False):
    """The chat, and who leads it."""

    active: str


def _handoff_to(agent: str) -> BaseTool:
    @tool(f"ask_{agent}", description=f"Hand over to {agent}.")
    def hand_over(
        state: Annotated[dict[str, Any], InjectedState],
        tool_call_id: Annotated[str, InjectedToolCallId],
    ) -> Command[Any]:
        happen(f"handed over to {agent}")
        note = ToolMessage(
            f"Now with {agent}",
            name=f"ask_{agent}",
            tool_call_id=tool_call_id,
            id=f"note-{tool_call_id}",
        )
        return Command(
            goto=agent,
            graph=Command.PARENT,
            update={"messages": [*state["messages"], note], "active": agent},
        )

    return hand_over


@tool
def book_flight(to: str) -> str:
    """Book a flight."""
    happen(f"flight to {to}")
    return f"Flight to {to} is booked."


@tool
def book_hotel(city: str) -> str:
    """Book a hotel."""
    happen(f"hotel in {city}")
    return f"Hotel in {city} is booked."


_FLIGHTS = ScriptedChat(
    voice="flights",
    script=[
        Line(cue=r"trip to (\w+)", call=[("book_flight", {"to": "{0}"})]),
        Line(cue=r"Flight to \w+ is booked", call=[("ask_hotels", {})]),
        Line(cue=r"Now with flights", say="Flights again: you are set."),
    ],
)
_HOTELS = ScriptedChat(
    voice="hotels",
    script=[
        Line(cue=r"Now with hotels", call=[("book_hotel", {"city": "Lima"})]),
        Line(cue=r"Hotel in \w+ is booked", say="All is booked."),
        Line(cue=r"thanks", call=[("ask_flights", {})]),
    ],
)


@functools.cache
def _agents() -> tuple[Graph, Graph]:
    with warnings.catch_warnings():
        # Its successor is in another package; the programs that use this one are many.
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        return (
            create_react_agent(_FLIGHTS, [book_flight, _handoff_to("hotels")], name="flights"),
            create_react_agent(_HOTELS, [book_hotel, _handoff_to("flights")], name="hotels"),
        )


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build two agents under one graph."""
    flights, hotels = _agents()
    builder = StateGraph(State)
    builder.add_node("flights", flights)
    builder.add_node("hotels", hotels)
    builder.add_conditional_edges(
        START, lambda state: state.get("active", "flights"), ["flights", "hotels"]
    )
    return builder.compile(checkpointer=checkpointer)


PROGRAM = Program(
    name="handoff",
    build=build,
    turns=(
        Run(given={"messages": [HumanMessage("A trip to Lima, please", id="h1")]}),
        Run(given={"messages": [HumanMessage("thanks", id="h2")]}),
    ),
)
