# SPDX-License-Identifier: Apache-2.0
"""The agents that the framework makes itself, each as its users make it, with their turns.

Both prebuilt agents, three kinds of middleware, and answers in a schema. The models answer from a
script; nothing is asked over a network.
"""

import warnings
from collections.abc import Callable
from typing import Any, NotRequired

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.prebuilt import create_react_agent
from langgraph.warnings import LangGraphDeprecatedSinceV10
from pydantic import BaseModel

from tests.adapters.langgraph.outside import happen
from tests.adapters.langgraph.scripted import Line, ScriptedChat
from tests.adapters.langgraph.turns import Answer, Edit, Graph, Program, Run, Turn

__all__ = ["AGENTS", "AGENT_TYPES"]


@tool
def transfer(account: str, amount: int) -> str:
    """Move money to an account."""
    happen(f"moved {amount} to {account}")
    return f"moved {amount} to {account}"


class Receipt(BaseModel):
    """What an agent answers with."""

    account: str
    amount: int


_SCRIPT = [
    Line(cue=r"pay (\w+)", say="I will pay.", call=[("transfer", {"account": "{0}", "amount": 5})]),
    Line(cue=r"receipt for (\w+)", call=[("Receipt", {"account": "{0}", "amount": 5})]),
    Line(cue=r"(moved .*)", say="Done: {0}."),
    Line(cue=r"not allowed", say="Then I will not."),
    Line(cue=r"summary|summarize|conversation", say="They greeted."),
    Line(cue=r"hello (\w+)", say="Hello, {0}."),
]
_MODEL = ScriptedChat(script=_SCRIPT)


class _Said(AgentState[Any]):
    """A state with a field of the middleware's own."""

    calls: NotRequired[int]
    names: NotRequired[dict[str, tuple[int, ...]]]


class _Counts(AgentMiddleware[_Said, None, Any]):
    """Counts the calls of the model, in the state."""

    state_schema = _Said

    def before_model(self, state: _Said, runtime: Any) -> dict[str, Any]:
        """Count, and note how long the chat was."""
        del runtime
        calls = state.get("calls", 0) + 1
        names = {**state.get("names", {}), str(calls): (len(state["messages"]),)}
        return {"calls": calls, "names": names}

    async def abefore_model(self, state: _Said, runtime: Any) -> dict[str, Any]:
        """The same."""
        return self.before_model(state, runtime)


def _says(text: str, number: int) -> Run:
    return Run(given={"messages": [HumanMessage(text, id=f"h{number}")]})


def _decides(**decision: Any) -> Answer:
    return Answer(reply=lambda _: {"decisions": [decision]})


def _agent(**options: Any) -> Callable[[BaseCheckpointSaver[Any]], Graph]:
    def build(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
        made = {name: make() for name, make in options.items()}
        agent: Graph = create_agent(
            _MODEL, tools=[transfer], checkpointer=checkpointer, system_prompt="Be exact.", **made
        )
        return agent

    return build


def _react(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        agent: Graph = create_react_agent(
            _MODEL, [transfer], checkpointer=checkpointer, interrupt_before=["tools"]
        )
    return agent


_CHAT: tuple[Turn, ...] = (_says("pay Ada", 1), _says("hello Bob", 2))

AGENTS: dict[str, Program] = {
    program.name: program
    for program in (
        Program(name="create-agent", build=_agent(), turns=_CHAT),
        Program(
            name="create-react-agent",
            build=_react,
            turns=(
                _says("pay Ada", 1),
                Run(given=None),
                Edit(values={"messages": [HumanMessage("hello Cleo", id="h2")]}, as_node="tools"),
                Run(given=None),
            ),
        ),
        Program(
            name="middleware-that-asks",
            build=_agent(
                middleware=lambda: [HumanInTheLoopMiddleware(interrupt_on={"transfer": True})]
            ),
            turns=(
                _says("pay Ada", 1),
                _decides(type="approve"),
                _says("pay Bob", 2),
                _decides(type="reject", message="not allowed"),
                _says("pay Cleo", 3),
                _decides(
                    type="edit",
                    edited_action={"name": "transfer", "args": {"account": "Dora", "amount": 6}},
                ),
            ),
        ),
        Program(
            name="middleware-that-summarizes",
            build=_agent(
                middleware=lambda: [
                    SummarizationMiddleware(_MODEL, trigger=("messages", 4), keep=("messages", 2))
                ]
            ),
            turns=tuple(_says(f"hello {name}", place) for place, name in enumerate("abc")),
        ),
        Program(
            name="middleware-with-a-state",
            build=_agent(middleware=lambda: [_Counts()]),
            turns=_CHAT,
        ),
        Program(
            name="structured-output",
            build=_agent(response_format=lambda: ToolStrategy(Receipt)),
            turns=(_says("receipt for Ada", 1), _says("receipt for Bob", 2)),
            types=(Receipt,),
        ),
    )
}

AGENT_TYPES: tuple[type, ...] = tuple(kind for each in AGENTS.values() for kind in each.types)
"""What a saver has to allow for them, besides the framework's own."""
