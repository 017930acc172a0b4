# SPDX-License-Identifier: Apache-2.0
"""What Agent Framework itself writes: a real workflow runs once, and every checkpoint is kept.

Three agents sit in a ring, and each superstep one of them adds a message to the conversation. The
same checkpoints are then saved to the stock storage and to Sealpoint, so that neither is timed
together with the workflow.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentExecutor,
    BaseChatClient,
    ChatResponse,
    FunctionInvocationLayer,
    InMemoryCheckpointStorage,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
)

from benchmarks._states import messages

__all__ = ["MESSAGE_BYTES", "chat_workflow", "conversation", "ring_checkpoints"]

MESSAGE_BYTES = 250


class _Chat(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """A model that says one text after the other."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self._texts = texts

    def _inner_get_response(self, *, messages: Sequence[Message], **_: Any) -> Any:
        text = self._texts[len(messages) % len(self._texts)]

        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", [text])])

        return answer()


def _agent(name: str, texts: Sequence[str]) -> AgentExecutor:
    return AgentExecutor(Agent(_Chat(texts), f"You are the {name}.", id=name, name=name))


def conversation(count: int) -> list[Message]:
    """What was said before: messages of people and models in turns."""
    return [
        Message("user" if number % 2 else "assistant", [each["content"]])
        for number, each in enumerate(messages(count, MESSAGE_BYTES))
    ]


def _goes_on(length: int) -> Callable[[Any], bool]:
    return lambda response: len(response.full_conversation) < length


def ring_checkpoints(start: int, supersteps: int) -> list[WorkflowCheckpoint]:
    """Every checkpoint of a conversation that grows by a message in each superstep.

    Args:
        start: How many messages it begins with.
        supersteps: How many supersteps there are.
    """
    texts = [each["content"] for each in messages(start + supersteps, MESSAGE_BYTES)]
    ring = [_agent(name, texts) for name in ("planner", "writer", "critic")]
    built = WorkflowBuilder(start_executor=ring[0], name="ring", max_iterations=supersteps + 1)
    for place, each in enumerate(ring):
        built.add_edge(each, ring[place - 2], condition=_goes_on(start + supersteps))

    async def run() -> list[WorkflowCheckpoint]:
        storage = InMemoryCheckpointStorage()
        await built.build().run(conversation(start), checkpoint_storage=storage)
        return await storage.list_checkpoints(workflow_name="ring")

    return asyncio.run(run())[1:-1]  # without what came in, and what is left at the end


def chat_workflow(name: str) -> Workflow:
    """A conversation with one agent, which remembers what was said."""
    texts = [each["content"] for each in messages(64, MESSAGE_BYTES)]
    return WorkflowBuilder(start_executor=_agent("helper", texts), name=name).build()
