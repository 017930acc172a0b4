# SPDX-License-Identifier: Apache-2.0
"""A model that answers from a script, so that agents run without a network."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
)

__all__ = ["Reply", "agent", "says"]

Reply = Callable[[Sequence[Message]], Sequence[str | Content]]
"""What a model says to messages. It looks at nothing else, so a resumed run gets the same."""


class ScriptedChat(FunctionInvocationLayer, BaseChatClient):
    """A chat client whose model is a function, with a live object in each of its answers."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.reply = reply

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_: Any
    ) -> Any:
        contents: Any = [
            Content.from_text(each, raw_representation=object()) if isinstance(each, str) else each
            for each in self.reply(messages)
        ]
        if stream:

            async def updates() -> AsyncIterator[ChatResponseUpdate]:
                for content in contents:
                    yield ChatResponseUpdate(
                        contents=[content], role="assistant", raw_representation=object()
                    )

            response_format = options.get("response_format")
            return self._build_response_stream(updates(), response_format=response_format)

        async def answer() -> ChatResponse[Any]:
            return ChatResponse(
                messages=[Message("assistant", contents, raw_representation=object())],
                response_format=options.get("response_format"),
                usage_details={"input_token_count": 3, "output_token_count": 4},
                raw_representation=object(),
            )

        return answer()


def says(*lines: str) -> Reply:
    """A model that says one line after the other, by how often it spoke before."""

    def reply(messages: Sequence[Message]) -> Sequence[str]:
        spoken = sum(each.role == "assistant" for each in messages)
        return [lines[min(spoken, len(lines) - 1)]]

    return reply


def agent(name: str, reply: Reply, **named: Any) -> Agent:
    """An agent with a scripted model."""
    named.setdefault("description", f"{name} of the tests")
    return Agent(ScriptedChat(reply), id=name, name=name, **named)
