# SPDX-License-Identifier: Apache-2.0
"""A long chat: the model sees the newest messages, older ones become a summary and are removed."""

from typing import Any

from langchain_core.messages import HumanMessage, RemoveMessage, SystemMessage, trim_messages
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from tests.adapters.langgraph.scripted import Line, ScriptedChat
from tests.adapters.langgraph.turns import Graph, Program, Run

__all__ = ["PROGRAM"]

_TURNS = 8
_KEPT = 4
_LONG = 8

_MODEL = ScriptedChat(
    script=[
        Line(cue=r"Summarise (\d+)", say="They talked about {0} things."),
        Line(cue=r"number (\d+)", say="I have heard number {0}."),
    ]
)


class State(MessagesState, total=False):
    """The newest messages, and a summary of the others."""

    summary: str


def chat(state: State) -> dict[str, Any]:
    """Answer, seeing the summary and the newest messages."""
    seen = trim_messages(
        state["messages"], max_tokens=3, token_counter=len, strategy="last", start_on="human"
    )
    about = [SystemMessage(f"So far: {state['summary']}")] if state.get("summary") else []
    return {"messages": [_MODEL.invoke([*about, *seen])]}


def is_long(state: State) -> str:
    """Summarise when there is too much."""
    return "summarise" if len(state["messages"]) >= _LONG else END


def summarise(state: State) -> dict[str, Any]:
    """Put the older messages into a summary, and remove them."""
    old = state["messages"][:-_KEPT]
    asked = HumanMessage(f"Summarise {len(old)} messages", id="asked")
    said = str(_MODEL.invoke([asked]).text)
    return {
        "summary": f"{state.get('summary', '')} {said}".strip(),
        "messages": [RemoveMessage(id=str(message.id)) for message in old],
    }


def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the chat."""
    builder = StateGraph(State)
    builder.add_node("chat", chat)
    builder.add_node("summarise", summarise)
    builder.add_edge(START, "chat")
    builder.add_conditional_edges("chat", is_long, ["summarise", END])
    builder.add_edge("summarise", END)
    return builder.compile(checkpointer=checkpointer)


PROGRAM = Program(
    name="long-chat",
    build=build,
    turns=tuple(
        # Plain dicts, as many applications give them: the framework makes messages of them.
        Run(given={"messages": [{"role": "user", "content": f"number {n}", "id": f"h{n}"}]})
        for n in range(_TURNS)
    ),
)
