# SPDX-License-Identifier: Apache-2.0
"""The frameworks' own types, which a checkpoint may hold without a rule of the application.

Each has a rule with a name, a form of our own and a reason. Only exactly these classes are covered:
a subclass is an application's type and needs its own rule. Decoding sets fields on bare objects and
runs no constructor and no validator. Nothing falls back to text or to dicts, with one exception
that the framework makes itself: an exception in the channel `__error__` is stored as its text
(`storable_error`).

`Send` and `Command` steer a graph. They have rules because the framework stores them, and a check
that allows them only where the framework puts them (`check_privileged`).
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

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
from langchain_core.messages.base import TextAccessor
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.constants import END
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
from pydantic import BaseModel

from sealpoint.adapters.field_forms import (
    REQUIRED,
    FieldForm,
    Pair,
    defaults_of,
    named_tuple_pair,
    object_pair,
)
from sealpoint.codec import DictForm, Registry
from sealpoint.errors import BytesMalformed, TypeNotAllowed
from sealpoint_langgraph._framework_models import model_form, model_pair


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkType:
    """One type of a framework that may be stored."""

    cls: type
    name: str
    """The name of its rule, which is in stored data and never changes."""
    reason: str
    """Why it may be stored, in one sentence."""
    pair: Pair
    """Functions that convert an object to its parts, and parts to an object."""
    form: DictForm | None = None
    """The memory layout of objects, if it equals the stored form."""


# The fields that every message stores, whatever fields a later version adds. The order is part of
# the stored form and stays.
_MESSAGE = ("content", "additional_kwargs", "response_metadata", "type", "name", "id")
_AI = (*_MESSAGE, "tool_calls", "invalid_tool_calls", "usage_metadata")
_AI_CHUNK = (*_AI, "tool_call_chunks", "chunk_position")
_TOOL = (*_MESSAGE, "tool_call_id", "artifact", "status")
_CHAT = (*_MESSAGE, "role")
_DOCUMENT = ("id", "metadata", "page_content", "type")
_ITEM = dict.fromkeys(("value", "key", "namespace", "created_at", "updated_at"), REQUIRED)
_SEND = {"node": REQUIRED, "arg": REQUIRED, "timeout": None}


def _fields_pair(cls: type, defaults: Mapping[str, Any] | None = None) -> Pair:
    """The pair for a class of slots; those of a dataclass have their own defaults."""
    return object_pair(FieldForm(cls, defaults_of(cls) if defaults is None else defaults))


def _text_pair() -> Pair:
    def build(form: Any) -> TextAccessor:
        if type(form) is not str:
            raise BytesMalformed(f"text: expected a string, found {type(form).__name__}")
        return str.__new__(TextAccessor, form)

    return str.__str__, build


_REASONS = {
    "langchain.human": "A person's message: text and content blocks, which are data.",
    "langchain.human-chunk": "A streamed part of a human message.",
    "langchain.ai": "A model's message; the tool calls in it are data, and a node decides "
    "whether to run them.",
    "langchain.ai-chunk": "A streamed part of a model's message.",
    "langchain.system": "An instruction to a model: text, which is data.",
    "langchain.system-chunk": "A streamed part of a system message.",
    "langchain.tool": "The result of a tool; its artifact may hold allowed types only.",
    "langchain.tool-chunk": "A streamed part of a tool's message.",
    "langchain.function": "The result of a function: the older form of a tool's message.",
    "langchain.function-chunk": "A streamed part of a function's message.",
    "langchain.chat": "A message of a role that the application names: text and content blocks.",
    "langchain.chat-chunk": "A streamed part of a chat message.",
    "langchain.message": "A message of no particular kind: text and content blocks.",
    "langchain.message-chunk": "A streamed part of a message of no particular kind.",
    "langchain.remove": "Asks the reducer of a list of messages to drop one by its id; it can "
    "do nothing else.",
    "langchain.document": "A retrieved text with metadata, which is data.",
    "langchain.text": "What `message.text` gives: a string that may also be called, and "
    "gives itself then.",
    "langgraph.send": "Privileged: starts a node with any input, so only in the channel of "
    "pending tasks.",
    "langgraph.command": "Privileged: updates, resumes and jumps, so only where the functional "
    "API stores results.",
    "langgraph.interrupt": "A question of a node that waits for an answer: its value and its id, "
    "which are data.",
    "langgraph.overwrite": "A value that replaces a channel's instead of being reduced into it.",
    "langgraph.timeout": "How long a pending task may take: two durations and a word, part of "
    "`Send`.",
    "langgraph.snapshot": "The result of `get_state`, where an application keeps it in its "
    "state: a tuple of data.",
    "langgraph.task": "A task in a snapshot: a tuple of data; it cannot be run.",
    "langgraph.delta": "How a delta channel occasionally stores its whole value: a tuple of one.",
    "langgraph.item": "An item of a long-term store: plain values with a key and two times.",
    "langgraph.search-item": "A search result of a long-term store: an item and its score.",
    "langgraph.get-op": "A question to a long-term store: a namespace and a key; it asks "
    "nothing by itself.",
}
"""Why each may be stored, in one sentence."""


def _type(name: str, cls: type, pair: Pair) -> FrameworkType:
    return FrameworkType(cls=cls, name=name, reason=_REASONS[name], pair=pair)


def _model(name: str, cls: type[BaseModel], settled: Iterable[str]) -> FrameworkType:
    pair, form = model_pair(cls, settled), model_form(cls, settled)
    return FrameworkType(cls=cls, name=name, reason=_REASONS[name], pair=pair, form=form)


FRAMEWORK_TYPES = (
    _model("langchain.human", HumanMessage, _MESSAGE),
    _model("langchain.human-chunk", HumanMessageChunk, _MESSAGE),
    _model("langchain.ai", AIMessage, _AI),
    _model("langchain.ai-chunk", AIMessageChunk, _AI_CHUNK),
    _model("langchain.system", SystemMessage, _MESSAGE),
    _model("langchain.system-chunk", SystemMessageChunk, _MESSAGE),
    _model("langchain.tool", ToolMessage, _TOOL),
    _model("langchain.tool-chunk", ToolMessageChunk, _TOOL),
    _model("langchain.function", FunctionMessage, _MESSAGE),
    _model("langchain.function-chunk", FunctionMessageChunk, _MESSAGE),
    _model("langchain.chat", ChatMessage, _CHAT),
    _model("langchain.chat-chunk", ChatMessageChunk, _CHAT),
    _model("langchain.message", BaseMessage, _MESSAGE),
    _model("langchain.message-chunk", BaseMessageChunk, _MESSAGE),
    _model("langchain.remove", RemoveMessage, _MESSAGE),
    _model("langchain.document", Document, _DOCUMENT),
    _type("langchain.text", TextAccessor, _text_pair()),
    _type("langgraph.send", Send, _fields_pair(Send, _SEND)),
    _type("langgraph.command", Command, _fields_pair(Command)),
    _type("langgraph.interrupt", Interrupt, _fields_pair(Interrupt)),
    _type("langgraph.overwrite", Overwrite, _fields_pair(Overwrite)),
    _type("langgraph.timeout", TimeoutPolicy, _fields_pair(TimeoutPolicy)),
    _type("langgraph.snapshot", StateSnapshot, named_tuple_pair(StateSnapshot)),
    _type("langgraph.task", PregelTask, named_tuple_pair(PregelTask)),
    _type("langgraph.delta", _DeltaSnapshot, named_tuple_pair(_DeltaSnapshot)),
    _type("langgraph.item", Item, _fields_pair(Item, _ITEM)),
    _type("langgraph.search-item", SearchItem, _fields_pair(SearchItem, {**_ITEM, "score": None})),
    _type("langgraph.get-op", GetOp, named_tuple_pair(GetOp)),
)
"""Every type of the frameworks that may be stored, each with the reason why."""


def allow_framework_types(registry: Registry) -> None:
    """Add a rule for each type of `FRAMEWORK_TYPES` that the registry has none for.

    Raises:
        RuleInvalid: The registry has a rule of the same name for another class.
    """
    there = {rule.cls for rule in registry.rules}
    for each in FRAMEWORK_TYPES:
        if each.cls not in there:
            encode, decode = each.pair
            registry.allow(each.cls, name=each.name, encode=encode, decode=decode)
            if each.form is not None:
                registry.roll(each.cls, each.form)


def storable_error(value: Any) -> Any:
    """The stored form of a value written to the channel `__error__`.

    The framework's own savers store the text `repr(value)` of an exception, and load it as that
    text; so does this package. Any other value is returned unchanged, and stored like any value.
    """
    if not isinstance(value, BaseException):
        return value
    try:
        return str.__str__(repr(value))
    except Exception:  # noqa: BLE001 - an exception whose own code fails is still one to record
        return f"{type(value).__qualname__}(...)"


# The places of `Send` and `Command`.
#
# An attacker who can put one of them into a checkpoint decides which node runs next, and with what.
# So they are stored only where the framework itself puts them:
#
# - `Send` in `__pregel_tasks`, the channel of pending tasks, and in its writes;
# - `Command` and `Send` in `__return__`, which keeps the result of a task of the functional API for
#   the code that called it;
# - `Command`, and `Send` as its goto, in `__end__` and `__previous__`, the result of an entrypoint,
#   which may be a node of another graph.
#
# Everywhere else they are refused, in every list, dict, dataclass or model, and also inside another
# `Send` or `Command`. The check skips messages and documents: the framework executes nothing that
# it finds in them.


_TASKS = "__pregel_tasks"
_RETURN = "__return__"
_PREVIOUS = "__previous__"

_Allowed = frozenset[type]
_Look = tuple[Any, _Allowed, type | None]
"""A value, its allowed types, and the `Send` or `Command` that carries it, if any."""
_NONE: _Allowed = frozenset()
_BOTH: _Allowed = frozenset({Command, Send})
_COMMAND: _Allowed = frozenset({Command})
_SENDS: _Allowed = frozenset({Send})
_PLACES: dict[str, _Allowed] = {
    _TASKS: _SENDS,
    _RETURN: _BOTH,
    END: _COMMAND,
    _PREVIOUS: _COMMAND,
}

_LEAVES: frozenset[type] = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, bytearray),
        *(date, datetime, time, timedelta, Decimal, UUID, Document),
        *(each.cls for each in FRAMEWORK_TYPES if issubclass(each.cls, BaseMessage | str)),
    }
)
"""Types whose objects need no inspection."""


def check_privileged(channel: str, value: Any) -> None:
    """Check that only a channel for `Send` or `Command` receives one.

    Args:
        channel: The channel that holds the value, or that it is written to.
        value: The value, before it is encoded.

    Raises:
        TypeNotAllowed: A `Send` or `Command` is in a place where the framework puts none.
    """
    if type(value) in _LEAVES:
        return
    waiting: list[_Look] = [(value, _PLACES.get(channel, _NONE), None)]
    seen: set[tuple[int, _Allowed]] = set()
    while waiting:
        found, allowed, carrier = waiting.pop()
        if (id(found), allowed) in seen:
            continue
        seen.add((id(found), allowed))
        if type(found) in _BOTH:
            if type(found) not in allowed:
                raise _misplaced(channel, type(found), carrier)
            waiting.extend(_carried(found))
            continue
        members = _members(found)
        # This one pass is enough for a list of messages.
        if not _LEAVES.issuperset(map(type, members)):
            waiting.extend(
                (each, allowed, carrier) for each in members if type(each) not in _LEAVES
            )


def _carried(found: Any) -> Iterable[_Look]:
    """The content of a privileged object, each part with its own allowed types."""
    if type(found) is Send:
        return ((found.arg, _NONE, Send),)
    return (
        (found.update, _NONE, Command),
        (found.resume, _NONE, Command),
        (found.goto, _SENDS, Command),
    )


_COLLECTIONS = (list, tuple, set, frozenset, deque)


def _members(value: Any) -> list[Any]:
    """The members of a container or an object with declared fields; none for any other."""
    if isinstance(value, _COLLECTIONS):
        return list(value)
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    kind = type(value)
    if kind is Overwrite or kind is Interrupt:
        return [value.value]
    if hasattr(kind, "model_fields"):
        return [*value.__dict__.values(), *(value.__pydantic_extra__ or {}).values()]
    for fields in ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__"):
        if hasattr(kind, fields):
            names = (getattr(each, "name", each) for each in getattr(kind, fields))
            return [getattr(value, name, None) for name in names]
    return []


def _misplaced(channel: str, kind: type, carrier: type | None) -> TypeNotAllowed:
    name = kind.__qualname__
    if carrier is not None:
        return TypeNotAllowed(
            f"channel {channel!r}: expected data in a {carrier.__qualname__}, found a "
            f"{kind.__module__}.{name}, which steers the graph",
            hint="Give the node plain data, such as Send(node, data), and let it return the "
            f"{name} that it makes of it.",
        )
    places = ", ".join(repr(place) for place, allowed in _PLACES.items() if kind in allowed)
    return TypeNotAllowed(
        f"channel {channel!r}: expected data, found a {kind.__module__}.{name}, which steers the "
        f"graph and may be stored in {places} only",
        hint=f"Return the {name} from a node or an edge instead of keeping it in the state; to "
        "keep what it says, store it as plain data.",
    )
