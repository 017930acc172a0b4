# SPDX-License-Identifier: Apache-2.0
"""The states that are measured: the same objects for us and for the peer."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from pydantic import BaseModel

from sealpoint import Registry

__all__ = [
    "ChatMessage",
    "Plan",
    "Step",
    "agent_state",
    "json_state",
    "messages",
    "real_message",
    "real_messages",
    "registry",
]

_WORDS = ("the", "agent", "reads", "an", "invoice", "asks", "whether", "to", "pay", "and", "waits")
_START = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)


class ChatMessage(BaseModel):
    """A chat message as frameworks model it."""

    id: str
    role: str
    content: str
    sent: datetime
    tokens: int = 0
    metadata: dict[str, Any] = {}


@dataclass
class Step:
    """One step of a plan."""

    number: int
    tool: str
    arguments: dict[str, Any]
    done: bool = False


@dataclass
class Plan:
    """A plan of steps with sub-plans."""

    goal: str
    steps: list[Step]
    children: list["Plan"]


def _text(source: random.Random, words: int) -> str:
    return " ".join(source.choices(_WORDS, k=words))


def _plan(source: random.Random, depth: int) -> Plan:
    steps = [
        Step(number, source.choice(_WORDS), {"path": _text(source, 2), "limit": number})
        for number in range(8)
    ]
    return Plan(
        _text(source, 5), steps, [_plan(source, depth - 1) for _ in range(2)] if depth else []
    )


def agent_state() -> dict[str, Any]:
    """200 messages as pydantic models with a datetime each, nested dataclasses, 50 datetimes."""
    source = random.Random(7)
    return {
        "messages": [
            ChatMessage(
                id=f"message-{number}",
                role=source.choice(("user", "assistant", "tool")),
                content=_text(source, 40),
                sent=_START + timedelta(seconds=number),
                tokens=number,
                metadata={"model": "small", "finish": "stop"},
            )
            for number in range(200)
        ],
        "plan": _plan(source, 2),
        "times": [_START + timedelta(minutes=number) for number in range(50)],
    }


def json_state() -> dict[str, Any]:
    """Plain JSON-like data: what an agent keeps when it models nothing."""
    source = random.Random(8)
    return {
        "messages": [
            {
                "id": f"message-{number}",
                "role": source.choice(("user", "assistant", "tool")),
                "content": _text(source, 40),
                "tokens": number,
                "score": source.random(),
                "metadata": {"model": "small", "finish": "stop", "flags": [True, None]},
            }
            for number in range(200)
        ],
        "counters": {f"counter-{number}": number for number in range(200)},
        "settings": {"temperature": 0.2, "tools": ["search", "pay"], "limits": {"steps": 40}},
    }


def messages(count: int, size_bytes: int) -> list[dict[str, str]]:
    """Messages of about `size_bytes` each, all different."""
    source = random.Random(9)
    made = []
    for number in range(count):
        text = f"{number:08d} " + source.randbytes(size_bytes).hex()
        made.append({"role": "user", "content": text[: size_bytes - 24]})
    return made


def real_messages(count: int) -> list[AnyMessage]:
    """Messages as models return them: who said it, what it cost, and what was called.

    Every other one is a person's; every eighth answer calls a tool.
    """
    source = random.Random(10)
    return [real_message(number, source) for number in range(count)]


def real_message(number: int, source: random.Random) -> AnyMessage:
    """One of them, of about 1 KB."""
    text = f"{number:08d} {source.randbytes(400).hex()}"
    if number % 2 == 0:
        return HumanMessage(text, id=f"{source.getrandbits(128):032x}", name="ann")
    read, written = 900 + number, 40 + number % 70
    called = ToolCall(name="search", args={"query": text[:20]}, id=f"call_{number}")
    return AIMessage(
        text,
        id=f"run--{source.getrandbits(128):032x}-0",
        tool_calls=[called] if number % 16 == 1 else [],
        response_metadata={
            "token_usage": {
                "completion_tokens": written,
                "prompt_tokens": read,
                "total_tokens": read + written,
                "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": None},
                "prompt_tokens_details": {"cached_tokens": 512, "audio_tokens": None},
            },
            "model_provider": "openai",
            "model_name": "gpt-4.1-2026-04-14",
            "system_fingerprint": "fp_07871e2ad8",
            "id": f"chatcmpl-{source.getrandbits(96):024x}",
            "service_tier": "default",
            "finish_reason": "stop",
            "logprobs": None,
        },
        usage_metadata=UsageMetadata(
            input_tokens=read,
            output_tokens=written,
            total_tokens=read + written,
            input_token_details={"cache_read": 512},
            output_token_details={"reasoning": 0},
        ),
    )


def registry() -> Registry:
    """A registry that allows the types above."""
    made = Registry()
    made.allow(ChatMessage, name="bench.message")
    made.allow(Step, name="bench.step")
    made.allow(Plan, name="bench.plan")
    return made
