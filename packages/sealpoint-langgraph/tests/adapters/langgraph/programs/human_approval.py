# SPDX-License-Identifier: Apache-2.0
"""A person reviews each payment before it is made: approves it, edits it, or refuses it."""

from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.scripted import Line, ScriptedChat
from tests.adapters.langgraph.turns import Answer, Graph, Program, Run

__all__ = ["PROGRAM"]


class Decision(BaseModel):
    """What the reviewer decides."""

    verdict: Literal["approve", "edit", "refuse"]
    arguments: dict[str, Any] = {}
    reason: str = ""


@tool
def pay(to: str, amount: int) -> str:
    """Send money to somebody."""
    happen(f"paid {amount} to {to}")
    return f"Paid {amount} to {to}."


_MODEL = ScriptedChat(
    script=[
        Line(
            cue=r"[Pp]ay (\w+)", say="Let me do that.", call=[("pay", {"to": "{0}", "amount": 82})]
        ),
        Line(cue=r"^Paid (\d+) to (\w+)", say="{1} has got {0}."),
        Line(cue=r"^Refused", say="Then I leave it."),
    ]
)


def call_model(state: MessagesState) -> dict[str, Any]:
    """Ask the model."""
    return {"messages": [_MODEL.invoke(state["messages"])]}


def route(state: MessagesState) -> Literal["review", "__end__"]:
    """Review what the model wants to do, if anything."""
    last = state["messages"][-1]
    return "review" if isinstance(last, AIMessage) and last.tool_calls else "__end__"


def review(state: MessagesState) -> Command[Literal["tools", "agent"]]:
    """Ask a person about the tool call, and go where the answer leads."""
    last = state["messages"][-1]
    assert isinstance(last, AIMessage)
    call = last.tool_calls[0]
    decision = interrupt(
        {"question": "Shall I?", "call": call["name"], "arguments": call["args"]},
        response_schema=Decision,
    )
    if decision.verdict == "approve":
        return Command(goto="tools")
    if decision.verdict == "edit":
        edited = last.model_copy(
            update={"tool_calls": [{**call, "args": {**call["args"], **decision.arguments}}]}
        )
        return Command(goto="tools", update={"messages": [edited]})
    refusal = ToolMessage(
        f"Refused: {decision.reason}", tool_call_id=str(call["id"]), id=f"refusal-of-{call['id']}"
    )
    return Command(goto="agent", update={"messages": [refusal]})


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the agent with its reviewer."""
    builder = StateGraph(MessagesState)
    builder.add_node("agent", call_model)
    builder.add_node("review", review)
    builder.add_node("tools", ToolNode([pay]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", route)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=checkpointer)


PROGRAM = Program(
    name="human-approval",
    build=build,
    turns=(
        Run(given={"messages": [HumanMessage("Pay ada", id="h1")]}),
        Answer(reply=lambda _: {"verdict": "approve"}),
        Run(given={"messages": [HumanMessage("Pay bob", id="h2")]}),
        Answer(reply=lambda _: {"verdict": "edit", "arguments": {"amount": 8}}),
        Run(given={"messages": [HumanMessage("Pay eve", id="h3")]}),
        Answer(reply=lambda asked: {asked[0].id: {"verdict": "refuse", "reason": "no"}}),
    ),
)
