# SPDX-License-Identifier: Apache-2.0
"""Messages of a state as a conversation: speakers, tool calls, and tool results.

The search finds lists of messages anywhere in a state: by the stored types of LangGraph and Agent
Framework, and maps with a role and a content, as the APIs of model providers take them. It imports
no framework, and it also works on untyped values. No part of a message is
left out: everything that is not text, a call or a result is in its own part, `details`. All texts
are complete and for people, with unprintable characters made visible.

The author of a message is a claim that the agent stored, and proves nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any

from sealpoint.codec import UntypedValue
from sealpoint.errors import UsageError
from sealpoint.views.masking import Masking
from sealpoint.views.tree import StateTree, visible_lines
from sealpoint.views.values import ValueShape, parts_of, render, short_text
from sealpoint.world import json_form, visible

__all__ = [
    "ChatMessage",
    "Conversation",
    "Conversations",
    "MessagePart",
    "PartKind",
    "fields_of",
    "find_conversations",
    "parsed_arguments",
    "read_conversation",
]

_NODES_MAX = 100_000
_CONVERSATIONS_MAX = 100
_MESSAGES = 50
_MESSAGES_MAX = 500
_ARGUMENTS_CHARS_MAX = 1_000_000

_CONTAINERS = (str, list, dict, tuple)
_FLAGS = ("hosted", "informational_only")
"""Fields of a call that matter only if they are set."""

_LANGCHAIN = "langchain."
_AGENT_FRAMEWORK = "agent_framework.message"
_MODEL_PARTS = (2, 4)
"""The lengths of the stored form of a message of LangChain."""
_CONTENT = "agent_framework.content"
_PLAIN = "plain"
_PLAIN_ROLES = frozenset({"user", "assistant", "system", "developer", "tool", "function"})
_CLASSES = {
    ("langchain_core", "HumanMessage"): "langchain.human",
    ("langchain_core", "AIMessage"): "langchain.ai",
    ("langchain_core", "SystemMessage"): "langchain.system",
    ("langchain_core", "ToolMessage"): "langchain.tool",
    ("langchain_core", "FunctionMessage"): "langchain.function",
    ("langchain_core", "ChatMessage"): "langchain.chat",
    ("langchain_core", "RemoveMessage"): "langchain.remove",
    ("agent_framework", "Message"): _AGENT_FRAMEWORK,
    ("agent_framework", "Content"): _CONTENT,
}
"""The stored names of the frameworks' classes, for states that were loaded with their types."""
_ROLES = {
    "langchain.human": "user",
    "langchain.ai": "assistant",
    "langchain.system": "system",
    "langchain.tool": "tool",
    "langchain.function": "tool",
    "langchain.chat": "",
    "langchain.message": "",
    "langchain.remove": "remove",
    _AGENT_FRAMEWORK: "",
    _PLAIN: "",
}
"""The role of each kind of message; empty if the message states it."""


@unique
class PartKind(StrEnum):
    """The kind of a part of a message."""

    TEXT = "text"
    REASONING = "reasoning"
    TOOL_CALL = "tool-call"
    TOOL_RESULT = "tool-result"
    OTHER = "other"
    """An image, a file, or anything that fits no other kind."""
    DETAILS = "details"
    """The remaining fields of the message, such as the model's name and the token count."""


_SAID = {"text": PartKind.TEXT, "text_reasoning": PartKind.REASONING}
"""Contents of Agent Framework that are a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePart:
    """One complete part of a message."""

    kind: PartKind
    text: str
    name: str = ""
    """The name of the tool, or the kind of the part."""
    call: str = ""
    """The id that connects a call and its result."""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message in a conversation."""

    at: str
    """Its place in the tree."""
    role: str
    author: str
    """The author, if the message states one."""
    parts: tuple[MessagePart, ...]

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return json_form(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A list of messages in a state."""

    at: str
    path: str
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """The conversations in a state, in its order."""

    found: tuple[Conversation, ...]
    complete: bool
    """Whether these are all: the search reached the end of the state."""


def find_conversations(tree: StateTree) -> Conversations:
    """Find every list in a state that holds messages and nothing else."""
    found: list[Conversation] = []
    for number, place in enumerate(tree.walk(lambda value: not _is_conversation(value))):
        if number >= _NODES_MAX or len(found) >= _CONVERSATIONS_MAX:
            return Conversations(found=tuple(found), complete=False)
        if _is_conversation(place.value):
            size = len(place.value)
            found.append(Conversation(at=place.at, path=place.path, messages=size))
    return Conversations(found=tuple(found), complete=True)


def read_conversation(
    tree: StateTree, at: str, *, offset: int = 0, limit: int = _MESSAGES
) -> tuple[ChatMessage, ...]:
    """Return some messages of a conversation, each complete except for masked values.

    Args:
        tree: The state.
        at: The place of the conversation.
        offset: How many messages to skip at the beginning.
        limit: The maximum number of messages; never more than 500.

    Raises:
        UsageError: There is no conversation.
    """
    value = tree.value(at)
    if not _is_conversation(value):
        raise UsageError(
            "conversation: there is no list of messages",
            hint="Ask for one that find_conversations found in this state.",
        )
    start = max(offset, 0)
    stop = start + min(max(limit, 0), _MESSAGES_MAX)
    above = f"{at}." if at else ""
    members = parts_of(value).slice(start, stop)
    return tuple(_message(each, f"{above}{place}", tree.masking) for place, each in members)


def _is_conversation(value: Any) -> bool:
    if parts_of(value).shape is not ValueShape.SEQUENCE or not len(value):
        return False
    return all(_tag(each) in _ROLES for each in value)


def _tag(value: Any) -> str:
    """Return the stored name of a framework's class; a streamed chunk counts as its message."""
    kind = type(value)
    if kind is dict:
        is_said = "content" in value or "tool_calls" in value
        role = value.get("role")
        is_plain = is_said and _is_named(value) and type(role) is str and role in _PLAIN_ROLES
        return _PLAIN if is_plain else ""
    if kind is UntypedValue:
        return str(value.name).removesuffix("-chunk")
    root, _, _ = kind.__module__.partition(".")
    return _CLASSES.get((root, kind.__name__.removesuffix("Chunk")), "")


def fields_of(value: Any) -> dict[str, Any]:
    """Return the members of a dict or record by name; empty for any other value."""
    if type(value) is dict:
        return value if _is_named(value) else {}
    if type(value) is UntypedValue or _tag(value):
        return _fields(value)
    parts = parts_of(value)
    return dict(parts.held) if parts.shape is ValueShape.RECORD else {}


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a message or a content, whether or not its class is known here."""
    if type(value) is dict:
        return dict(value)
    if type(value) is not UntypedValue:
        return {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}
    is_message = _tag(value).startswith(_LANGCHAIN) and _tag(value) in _ROLES
    if is_message and value.fields.keys() == {"value"} and _is_model(value.fields["value"]):
        fields, _, *others = value.fields["value"]
        return {**{name: each for part in others for name, each in part.items()}, **fields}
    return dict(value.fields)


def _is_model(held: Any) -> bool:
    """Whether this is the stored form of a model of LangChain.

    It has the fields, a number for which of them were set, and maps of any other attributes.
    """
    if type(held) is not list or len(held) not in _MODEL_PARTS:
        return False
    return type(held[1]) is int and all(map(_is_named, (held[0], *held[2:])))


def _is_named(value: Any) -> bool:
    return type(value) is dict and all(type(key) is str for key in value)


def _message(value: Any, at: str, masking: Masking) -> ChatMessage:
    tag, fields = _tag(value), _fields(value)
    reading = _MessageReader(masking)
    read: Callable[[dict[str, Any]], Iterator[MessagePart]] = reading.agent_framework
    author = None if tag == _PLAIN else fields.pop("author_name", None)
    if tag.startswith(_LANGCHAIN) or tag == _PLAIN:
        read, author = reading.langchain, fields.pop("name", None)
    has_role = tag in ("langchain.chat", _AGENT_FRAMEWORK, _PLAIN)
    said = fields.pop("role", None) if has_role else None
    kind = fields.pop("type", None) if tag.startswith(_LANGCHAIN) else None
    return ChatMessage(
        at=at,
        role=visible(_ROLES[tag] or _word(said) or _word(kind) or "unknown"),
        author=visible(_word(author)),
        parts=tuple(read(fields)),
    )


def _word(value: Any) -> str:
    """Return a short field of a message as text; hostile data may have any type there."""
    if value is None:
        return ""
    return str.__str__(value) if isinstance(value, str) else short_text(value)


class _MessageReader:
    """Splits messages into parts; the remaining fields become details."""

    def __init__(self, masking: Masking) -> None:
        self._masking = masking

    # ------------------------------------------------------------------ LangChain, plain

    def langchain(self, fields: dict[str, Any]) -> Iterator[MessagePart]:
        """Yield the texts, calls and other parts of a message of LangChain, or of a map."""
        content = fields.pop("content", "")
        blocks = list(content) if isinstance(content, list | tuple) else [content]
        blocks = [] if content is None else blocks
        calls = _calls(fields, "tool_calls")
        broken = _calls(fields, "invalid_tool_calls")
        if result := _word(fields.pop("tool_call_id", None)):
            yield MessagePart(
                kind=PartKind.TOOL_RESULT,
                text=self._text(blocks[0] if len(blocks) == 1 else blocks, "result"),
                call=visible(result),
                failed=fields.get("status") == "error",
            )
        else:
            parts = (self._block(block, calls) for block in blocks)
            yield from filter(None, parts)
        yield from (self._call(each, "args", failed=False) for each in calls)
        yield from (self._call(each, "args", failed=True) for each in broken)
        yield from self._details(fields)

    def _block(self, block: Any, calls: list[dict[str, Any]]) -> MessagePart | None:
        """Return one block of a content; None if it is empty or repeats a call."""
        if isinstance(block, str):
            return MessagePart(kind=PartKind.TEXT, text=self._text(block)) if block else None
        if not _is_named(block):
            return self._other("block", block)
        if block.get("type") == "tool_use" and any(_is_same_call(block, each) for each in calls):
            return None
        return self._named_block(_word(block.get("type")), block)

    def _named_block(self, kind: str, block: dict[str, Any]) -> MessagePart:
        rest = {key: each for key, each in block.items() if key != "type"}
        if kind == "text" and rest.keys() == {"text"} and isinstance(rest["text"], str):
            return MessagePart(kind=PartKind.TEXT, text=self._text(rest["text"]))
        if kind in ("reasoning", "thinking"):
            return MessagePart(kind=PartKind.REASONING, text=self._text(rest), name=visible(kind))
        if kind == "tool_result" and rest.keys() <= {"tool_use_id", "content", "is_error"}:
            return MessagePart(
                kind=PartKind.TOOL_RESULT,
                text=self._text(rest.get("content"), "result"),
                call=visible(_word(rest.get("tool_use_id"))),
                failed=rest.get("is_error") is True,
            )
        if kind in ("tool_use", "tool_call", "function_call"):
            return self._call(rest, "input" if "input" in rest else "args", failed=False)
        return self._other(kind or "block", block)

    # ------------------------------------------------------------------ Agent Framework

    def agent_framework(self, fields: dict[str, Any]) -> Iterator[MessagePart]:
        """Yield the texts, calls and other parts of an Agent Framework message."""
        contents = _list(fields, "contents")
        for content in contents:
            if _tag(content) == _CONTENT:
                yield from self._content(_fields(content))
            elif isinstance(content, str):
                yield MessagePart(kind=PartKind.TEXT, text=self._text(content))
            else:
                yield self._other("content", content)
        yield from self._details(fields)

    def _content(self, fields: dict[str, Any]) -> Iterator[MessagePart]:
        kind = _word(fields.pop("type", None))
        said = _SAID.get(kind)
        if said is not None and isinstance(fields.get("text"), str):
            yield MessagePart(kind=said, text=self._text(fields.pop("text")))
            yield from self._details(fields)
        elif kind == "function_call":
            yield self._call(fields, "arguments", failed=False)
        elif kind.endswith("_result"):
            yield self._result(kind, fields)
        elif kind.endswith("_call"):
            name = _word(fields.pop("tool_name", None) or fields.pop("name", None)) or kind
            call = visible(_word(fields.pop("call_id", None)))
            text = self._text(_said(fields))
            yield MessagePart(kind=PartKind.TOOL_CALL, name=visible(name), call=call, text=text)
        else:
            yield self._other(kind or "content", _said(fields))

    def _result(self, kind: str, fields: dict[str, Any]) -> MessagePart:
        call, failed = _word(fields.pop("call_id", None)), fields.get("exception") is not None
        said = _said(fields)
        items = said.get("items")
        if isinstance(items, list | tuple) and _only_text(items) == (said.get("result"),):
            del said["items"]  # the same text again
        text = said["result"] if said.keys() == {"result"} else said
        return MessagePart(
            kind=PartKind.TOOL_RESULT,
            name="" if kind == "function_result" else visible(kind),
            call=visible(call),
            text=self._text(text, "result"),
            failed=failed,
        )

    # ------------------------------------------------------------------ both

    def _call(self, call: Mapping[str, Any], arguments: str, *, failed: bool) -> MessagePart:
        """Return a tool call with its arguments and any other fields."""
        inner: Any = call.get("function")
        if _is_named(inner) and inner.keys() == {"name", "arguments"} and "name" not in call:
            rest = {key: each for key, each in call.items() if key != "function"}
            return self._call({**rest, **inner}, "arguments", failed=failed)
        named = ("name", "id", "call_id", "type", arguments)
        rest = {key: each for key, each in call.items() if key not in named}
        given = parsed_arguments(call.get(arguments))
        told = {"arguments": given, **_said(rest)} if _said(rest) else given
        return MessagePart(
            kind=PartKind.TOOL_CALL,
            name=visible(_word(call.get("name"))),
            call=visible(_word(call.get("call_id") or call.get("id"))),
            text=self._text(told, "arguments"),
            failed=failed,
        )

    def _other(self, name: str, value: Any) -> MessagePart:
        return MessagePart(kind=PartKind.OTHER, name=visible(name), text=self._text(value))

    def _details(self, fields: dict[str, Any]) -> Iterator[MessagePart]:
        if said := _said(fields):
            yield MessagePart(kind=PartKind.DETAILS, text=self._text(said, "details"))

    def _text(self, value: Any, name: str = "value") -> str:
        """Return a complete value, line by line."""
        if isinstance(value, str):
            return visible_lines(value)
        lines = render(value, name=name, everything=True, masking=self._masking)
        return "\n".join(map(visible, lines))


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {
        key: each
        for key, each in fields.items()
        if each is not None
        and not (type(each) in _CONTAINERS and not each)
        and not (key in _FLAGS and each is False)
    }


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    """Remove and return a field that should be a list; any other value stays among the fields."""
    if isinstance(fields.get(name), list | tuple):
        return list(fields.pop(name))
    return []


def _calls(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Do the same for a list of calls, each with its fields by name."""
    found = fields.get(name)
    if isinstance(found, list | tuple) and all(map(_is_named, found)):
        return _list(fields, name)
    return []


def _only_text(items: Any) -> tuple[str] | None:
    """Return the only text in a list of contents, if the list holds nothing else."""
    if len(items) == 1 and _tag(items[0]) == _CONTENT:
        fields = _said(_fields(items[0]))
        if fields.keys() == {"type", "text"} and fields["type"] == "text":
            return (fields["text"],) if isinstance(fields["text"], str) else None
    return None


def _is_same_call(block: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """Whether a block of a content repeats a call, and nothing more."""
    told = [call.get(name) for name in ("name", "id", "args")]
    try:
        said = [block[name] for name in ("name", "id", "input")]
        return block.keys() == {"type", "name", "id", "input"} and said == told
    except (KeyError, RecursionError):
        return False


def parsed_arguments(arguments: Any) -> Any:
    """Parse arguments that are JSON, so that they can be read, and masked by name."""
    if not isinstance(arguments, str) or len(arguments) > _ARGUMENTS_CHARS_MAX:
        return arguments
    try:
        found = json.loads(arguments, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return arguments
    return found if isinstance(found, dict) else arguments


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key twice")  # one of the two would not be shown
    return made
