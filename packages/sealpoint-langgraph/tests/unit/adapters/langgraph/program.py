# SPDX-License-Identifier: Apache-2.0
"""A program that writes the world of its agent; run by `test_world` in processes of their own."""

import sys
import warnings
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent

from sealpoint_langgraph._world import world_of


class Scripted(GenericFakeChatModel):
    """A model that can be bound."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Bind tools."""
        return self.bind(tools=list(tools), **kwargs)


@tool
def pay(amount: int, to: str = "ann") -> str:
    """Move money."""
    return f"{amount} to {to}"


@tool
def look(name: str) -> bool:
    """Look somebody up."""
    return name in {"ann", "bob", "cy"}


def choose(state: MessagesState) -> str:
    """Choose a node."""
    return "agent" if state["messages"] else "__end__"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    model = Scripted(messages=iter([AIMessage("done")]))
    agent = create_react_agent(model, [pay, look], prompt="Be careful.", name="payer")
    builder = StateGraph(MessagesState).add_node("agent", agent).add_node("start", choose)
    builder.add_edge(START, "start").add_conditional_edges("start", choose, ["agent", "__end__"])

    @tool
    def extra(text: str) -> str:
        """Do more."""
        return text

    builder.add_node("more", lambda _: [extra, look])
    sys.stdout.buffer.write(world_of(builder.compile()).encode())
