# SPDX-License-Identifier: Apache-2.0
"""A ReAct agent: a model and its tools in a loop, two tools at once, a second turn of chat."""

from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.scripted import Line, ScriptedChat
from tests.adapters.langgraph.turns import Graph, Program, Run

__all__ = ["PROGRAM"]


@tool
def get_weather(city: str) -> str:
    """Say what the weather is like in a city."""
    happen(f"weather of {city}")
    return f"It is sunny in {city}, 24 degrees."


@tool
def multiply(left: int, right: int) -> int:
    """Multiply two numbers."""
    happen(f"{left} times {right}")
    return left * right


_MODEL = ScriptedChat(
    script=[
        Line(
            cue=r"weather in (\w+) and (\w+)",
            say="I will look at both.",
            call=[("get_weather", {"city": "{0}"}), ("get_weather", {"city": "{1}"})],
        ),
        Line(cue=r"sunny in (\w+)", say="Both are sunny; I looked at {0} last."),
        Line(cue=r"times", call=[("multiply", {"left": 6, "right": 7})]),
        Line(cue=r"^(\d+)$", say="That makes {0}."),
    ]
)


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the agent."""
    tools = [get_weather, multiply]
    model = _MODEL.bind_tools(tools)

    def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", call_model)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=checkpointer)


PROGRAM = Program(
    name="react-agent",
    build=build,
    turns=(
        Run(given={"messages": [HumanMessage("How is the weather in Rome and Oslo?", id="h1")]}),
        Run(given={"messages": [HumanMessage("And 6 times 7?", id="h2")]}),
    ),
    keys={"user_id": "ada", "trial": 3, "temperature": 0.5, "beta": True},
)
