# SPDX-License-Identifier: Apache-2.0
"""Objects of every type that the frameworks store, and a registry that knows them."""

from datetime import UTC, datetime
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.store.base import GetOp, Item, SearchItem
from langgraph.types import (
    Command,
    Interrupt,
    Overwrite,
    PregelTask,
    Send,
    StateSnapshot,
    TimeoutPolicy,
)

from sealpoint.codec import Registry
from sealpoint_langgraph._framework_types import allow_framework_types

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
CALL = {"name": "pay", "args": {"amount": 120}, "id": "call-1", "type": "tool_call"}
BLOCKS: list[str | dict[Any, Any]] = [
    "and",
    {"type": "text", "text": "see"},
    {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
]
ITEM = {
    "value": {"likes": ["tea"]},
    "key": "k",
    "namespace": ("people", "ann"),
    "created_at": NOW,
    "updated_at": NOW,
}

SAMPLES: tuple[Any, ...] = (
    HumanMessage("hello", id="1", name="ann"),
    HumanMessageChunk(content=BLOCKS),
    AIMessage(
        BLOCKS,
        id="2",
        tool_calls=[CALL],
        invalid_tool_calls=[{"name": "x", "args": "{", "id": None, "error": "no JSON"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        response_metadata={"model_name": "m", "logprobs": None},
        additional_kwargs={"refusal": None},
    ),
    AIMessageChunk(
        content="part", tool_call_chunks=[{"name": "p", "args": "{", "id": "1", "index": 0}]
    ),
    SystemMessage("be careful", additional_kwargs={"cache": True}),
    SystemMessageChunk(content="be"),
    ToolMessage("ok", tool_call_id="call-1", artifact={"rows": (1, 2)}, status="error"),
    ToolMessageChunk(content="o", tool_call_id="call-1"),
    FunctionMessage(content="42", name="add"),
    FunctionMessageChunk(content="4", name="add"),
    ChatMessage(content="hm", role="critic"),
    ChatMessageChunk(content="h", role="critic"),
    BaseMessage("plain", type="custom"),
    BaseMessageChunk(content="plain", type="custom"),
    RemoveMessage(id="1"),
    Document("a page", id="d", metadata={"source": "a.txt", "page": 3}),
    AIMessage("said").text,
    Send("pay", {"amount": 120, "messages": [HumanMessage("now")]}, timeout=3.5),
    Command(goto=[Send("pay", 1), "audit"], update={"a": [1]}, graph=Command.PARENT),
    Command(resume={"id": True}),
    Interrupt({"question": "pay?"}, "interrupt-1", response_schema={"type": "boolean"}),
    Overwrite([HumanMessage("only")]),
    TimeoutPolicy(run_timeout=2.0, refresh_on="heartbeat"),
    StateSnapshot({"a": 1}, ("pay",), {"configurable": {}}, None, None, None, (), ()),
    PregelTask("id", "pay", ("__pregel_pull", 1, ("x",)), interrupts=(Interrupt("?", "i"),)),
    _DeltaSnapshot([HumanMessage("all")]),
    Item(**ITEM),  # type: ignore[arg-type]
    SearchItem(**ITEM, score=0.5),  # type: ignore[arg-type]
    GetOp(("people",), "ann", refresh_ttl=False),
)
"""At least one object of each type of `FRAMEWORK_TYPES`."""


def registry() -> Registry:
    """A registry that allows the frameworks' types and nothing else."""
    made = Registry()
    allow_framework_types(made)
    return made
