# SPDX-License-Identifier: Apache-2.0
"""Chat models that answer from a script, and remember nothing.

The answer depends only on the messages: the first line whose cue occurs in the newest message is
said. Its id is made from the message that it answers, so a resumed run in another process, asked
again, gives the very same message.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import BaseModel

__all__ = ["Line", "ScriptedChat"]


class Line(BaseModel):
    """What is said when the cue occurs in the newest message.

    `say` may name parts of the cue's match: `{0}` is the first group. `call` lists tools with
    their arguments, whose text may name parts too.
    """

    cue: str
    say: str = ""
    call: list[tuple[str, dict[str, Any]]] = []


class ScriptedChat(BaseChatModel):
    """A chat model that reads its answers from a script."""

    script: list[Line]
    voice: str = "ai"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],  # noqa: ARG002
        *,
        tool_choice: str | None = None,  # noqa: ARG002
        **_: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model: its script knows the tools."""
        return self

    def _answer(self, messages: Sequence[BaseMessage]) -> AIMessage:
        asked = messages[-1]
        text = str(asked.text)
        asked_id = asked.tool_call_id if isinstance(asked, ToolMessage) else asked.id
        for line in self.script:
            if found := re.search(line.cue, text):
                break
        else:
            msg = f"the script of {self.voice!r} has no line for {text!r}"
            raise LookupError(msg)
        answer_id = f"{self.voice}-after-{asked_id}"
        calls = [
            tool_call(
                name=name,
                args={
                    key: value.format(*found.groups()) if isinstance(value, str) else value
                    for key, value in arguments.items()
                },
                id=f"call-{number}-of-{answer_id}",
            )
            for number, (name, arguments) in enumerate(line.call)
        ]
        said = line.say.format(*found.groups())
        return AIMessage(
            content=said,
            id=answer_id,
            tool_calls=calls,
            response_metadata={"model_name": "scripted-1", "finish_reason": "stop"},
            usage_metadata={
                "input_tokens": len(text.split()),
                "output_tokens": len(said.split()),
                "total_tokens": len(text.split()) + len(said.split()),
            },
        )

    def _chunks(self, messages: Sequence[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        for word in re.findall(r"\S+\s*", str(answer.content)):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word, id=answer.id))
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content="",
                id=answer.id,
                tool_call_chunks=[
                    tool_call_chunk(
                        name=call["name"],
                        args=json.dumps(call["args"]),
                        id=call["id"],
                        index=number,
                    )
                    for number, call in enumerate(answer.tool_calls)
                ],
                response_metadata=answer.response_metadata,
                usage_metadata=answer.usage_metadata,
            )
        )

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **_: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **_: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages):
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.message.content), chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages):
            if run_manager:
                await run_manager.on_llm_new_token(str(chunk.message.content), chunk=chunk)
            yield chunk
