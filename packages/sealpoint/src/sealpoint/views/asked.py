# SPDX-License-Identifier: Apache-2.0
"""The questions of a checkpoint, who asks them, and the calls that wait for them.

Questions and calls of LangGraph, LangChain's review of tool calls and Agent Framework are read as
plain data, by their stored forms; no framework is imported. A shape that is not known here is shown
as it is.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sealpoint.views.answer_forms import each_question
from sealpoint.views.conversation import fields_of, find_conversations, parsed_arguments
from sealpoint.views.masking import REVEALED, Masking
from sealpoint.views.nodes import lane_names, node_name
from sealpoint.views.readable import (
    hide,
    is_cut,
    is_same,
    is_text,
    label_of,
    labels_of,
    named_values,
    plain_of,
)
from sealpoint.views.tree import StateTree
from sealpoint.world import visible

if TYPE_CHECKING:  # code that only shows the status of a request does not load them
    from sealpoint.api import ShownRelease, ShownResult

__all__ = [
    "APPROVAL",
    "Asker",
    "PendingCall",
    "ReadQuestion",
    "read_question",
    "read_questions",
    "unread",
    "without",
]

_PUSH = "~__pregel_push"
_INDEX = re.compile(r"[0-9]{1,12}")
_OWN = "__pregel_"
"""How the channels of LangGraph itself begin."""
_SENT = f"{_OWN}tasks"
_REVIEWER = "HumanInTheLoopMiddleware"
APPROVAL = "function_approval_"
"""How the types of a question for approval, and of its answer, begin in Agent Framework."""
_APPROVAL_DEFAULTS: Mapping[str, Any] = {
    "additional_properties": {},
    "hosted": False,
    "informational_only": False,
    "user_input_request": True,
}


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that runs after the answer, unless the answer says otherwise."""

    name: str
    arguments: Any
    id: str = ""
    is_asked: bool = False
    marked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """A question before its state and its answer are known."""

    id: str | None
    text: str
    rest: dict[str, Any]
    """Everything else, by the labels for people."""
    calls: tuple[PendingCall, ...]
    approval: Mapping[str, Any] = field(default_factory=dict)
    """The fields of a request for approval in Agent Framework."""


def read_questions(shown: "ShownRelease", masking: Masking) -> list[ReadQuestion]:
    """Return the questions of the checkpoint that would run."""
    whole = dict(_whole_questions(shown))
    questions = each_question(shown.release.question)
    return [read_question(id_, value, whole, masking) for id_, value, _ in questions]


def _whole_questions(shown: "ShownRelease") -> Iterator[tuple[str, Any]]:
    """Yield complete questions, by their ids: an adapter cuts the JSON of a very long one."""
    for result in shown.results:
        for write in result.value if type(result.value) is list else ():
            if type(write) is list and "__interrupt__" in write and write:
                for each in write[-1] if type(write[-1]) in (list, tuple) else (write[-1],):
                    fields = fields_of(each)
                    yield _id(fields.get("id")), fields.get("value")
    for each in shown.states:
        asked = each.state.get("pending_request_info_events") if type(each.state) is dict else None
        for id_, event in asked.items() if type(asked) is dict else ():
            yield _id(id_), fields_of(event).get("data")


def read_question(
    id_: str | None, value: Any, whole: Mapping[str, Any], masking: Masking = REVEALED
) -> ReadQuestion:
    """Return the text, the fields and the calls of a question.

    Args:
        id_: Its id, if it has one.
        value: The question as the adapter has saved it.
        whole: Complete questions by their ids: a very long one is saved as the start of its text.
        masking: The names of hidden values.
    """
    if is_cut(value) and id_ is not None and whole.get(id_) is not None:
        value = whole[id_]
    value = hide(plain_of(value), masking)
    if isinstance(value, str):
        return ReadQuestion(id_, value, {}, ())
    fields = fields_of(value)
    if fields.get("type") == f"{APPROVAL}request" and (call := _function_call(fields)):
        left = {label_of(k): v for k, v in unread(fields, "type", "id", "function_call").items()}
        named = fields_of(fields["function_call"])
        known = ("name", "arguments", "call_id", "id")
        left |= {f"function_call: {label_of(k)}": v for k, v in unread(named, *known).items()}
        return ReadQuestion(id_, "", left, (call,), fields)
    calls, text, rest = _reviewed(value if type(value) is list else [value])
    if calls:
        return ReadQuestion(id_, text, rest, calls)
    return ReadQuestion(id_, "", named_values(value), ())


def _function_call(request: Mapping[str, Any]) -> PendingCall | None:
    fields = fields_of(request.get("function_call"))
    if not isinstance(fields.get("name"), str):
        return None
    given = parsed_arguments(fields.get("arguments", {}))
    return PendingCall(fields["name"], given, _id(fields.get("call_id")), is_asked=True)


def unread(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields of a content of Agent Framework but these, and but its defaults."""
    return {
        name: value
        for name, value in fields.items()
        if name not in names
        and not (name in _APPROVAL_DEFAULTS and is_same(value, _APPROVAL_DEFAULTS[name]))
        and not (name == "type" and value == "function_call")
    }


def _reviewed(requests: list[Any]) -> tuple[tuple[PendingCall, ...], str, dict[str, Any]]:
    """Return the calls that LangChain's review asks about, its words, and the rest."""
    found: list[tuple[PendingCall, dict[str, Any]]] = []
    texts: list[str] = []
    rest: dict[str, Any] = {}
    for number, request in enumerate(requests, 1):
        fields = dict(fields_of(request))
        listed = "action_requests" in fields
        actions = fields.pop("action_requests") if listed else [fields.pop("action_request", None)]
        if type(actions) is not list or not actions:
            return (), "", {}
        said = [_text_in(fields)]
        for action in actions:
            each = dict(fields_of(action))
            name = each.pop("name" if "name" in each else "action", None)
            if not isinstance(name, str):
                return (), "", {}
            call = PendingCall(name, each.pop("args", {}), is_asked=True)
            said.append(_text_in(each))
            texts += (_without_call(text, call) for text in said)
            said = []
            found.append((call, each))
        choices = _choices(fields.get("review_configs"))
        if choices is not None and "possible answers" not in fields:
            fields = {**fields, "possible answers": choices}
            del fields["review_configs"]
        of = f"request {number}: " if len(requests) > 1 else ""
        rest |= {f"{of}{label_of(key)}": value for key, value in fields.items()}
    calls = tuple(call for call, _ in found)
    for label, (_, fields) in zip(labels_of([each.name for each in calls]), found, strict=True):
        rest |= {f"{label}: {label_of(key)}": value for key, value in fields.items()}
    return calls, "\n".join(dict.fromkeys(filter(None, texts))), rest


def _text_in(fields: dict[str, Any]) -> str:
    """Remove and return the description of a request, if it is a text."""
    return fields.pop("description") if is_text(fields.get("description")) else ""


def _without_call(said: str, call: PendingCall) -> str:
    """Return a description without the call, which the usual one repeats as Python writes it."""
    with suppress(ValueError):  # a number of thousands of digits has no decimal text
        return said.removesuffix(f"\n\nTool: {call.name}\nArgs: {call.arguments}")
    return said


def _choices(configs: Any) -> str | None:
    """Return the answers that a review allows, if they are the same for all of its calls."""
    if not isinstance(configs, list | tuple):
        return None
    found = {
        ", ".join(each["allowed_decisions"])
        if type(each) is dict
        and each.keys() == {"action_name", "allowed_decisions"}
        and is_text(each["action_name"])
        and type(each["allowed_decisions"]) is list
        and all(is_text(one) and one.isidentifier() for one in each["allowed_decisions"])
        else None
        for each in configs
    }
    return found.pop() if len(found) == 1 else None


class Asker:
    """The asker of a question, and the calls that wait for it."""

    def __init__(
        self, shown: "ShownRelease | None", id_: str | None, masking: Masking = REVEALED
    ) -> None:
        self.result = None if shown is None else _asking(shown.results, id_)
        lane = "" if self.result is None else self.result.lane
        self.shown_states = () if shown is None else shown.states
        by_lane = {each.lane: each.state for each in self.shown_states if not each.fault}
        around = [lane[: found.start()] for found in re.finditer(r"\||$", lane)]
        self.states = [
            by_lane[each] for each in dict.fromkeys((*reversed(around), "")) if each in by_lane
        ]
        """The states around the question, innermost first."""
        self.lane = lane
        self.id = id_
        state = self.states[0] if self.states else None
        self.is_tool, calls = self._pending_calls(state)
        self.calls = tuple(replace(c, arguments=hide(c.arguments, masking)) for c in calls)

    def _pending_calls(self, state: Any) -> tuple[bool, tuple[PendingCall, ...]]:
        """Return whether a tool asks, and the calls that have no result yet."""
        channels = state.get("channel_values") if type(state) is dict else None
        if type(channels) is not dict:
            return False, ()
        sent = self._sent(channels)
        if sent is not None:
            calls = [*_calls_in(fields_of(sent).get("arg"))]
            return bool(calls), tuple(calls)
        return False, tuple(_unanswered_calls(channels))

    def _sent(self, channels: Mapping[str, Any]) -> Any:
        """Return the message that started the task, if it was started by one."""
        kind, _, rest = ("" if self.result is None else self.result.result.path).partition(", ")
        sent, number = channels.get(_SENT), rest.partition(", ")[0]
        if kind != _PUSH or type(sent) is not list or not _INDEX.fullmatch(number):
            return None
        return sent[int(number)] if int(number) < len(sent) else None

    @property
    def words(self) -> str:
        """Name the tool, agent or node."""
        inside = ", in ".join(reversed(lane_names(self.lane)))
        if self.result is None:
            return self._executor()
        node = node_name(self.result.result.path)
        if not node and self.states and self.is_tool:
            node = f"Tool {visible(self.calls[0].name)}"
        elif not node and self.states:
            channels = self.states[0].get("channel_values", {})
            node = str(fields_of(self._sent(channels)).get("node") or "")
            node = f"Node {visible(node)}" if node else ""
        elif node.startswith(_REVIEWER):
            return f"Agent {inside or self._author()}".rstrip()
        elif node:
            node = f"Node {node}"
        return f"{node}, in {inside}" if node and inside else node or inside

    def _author(self) -> str:
        """Return the name of the agent that wrote the last message, as it claims."""
        for state in self.states[:1]:
            messages = fields_of(state.get("channel_values")).get("messages")
            last = fields_of(messages[-1]) if type(messages) is list and messages else {}
            return visible(str(last.get("name") or ""))
        return ""

    def _executor(self) -> str:
        for state in self.states:
            asked = state.get("pending_request_info_events") if type(state) is dict else None
            event = fields_of(asked.get(self.id)) if type(asked) is dict else {}
            source = event.get("_source_executor_id") or event.get("source_executor_id")
            if isinstance(source, str):
                return f"Executor {visible(source)}"
        return ""


def _asking(results: Sequence["ShownResult"], id_: str | None) -> "ShownResult | None":
    """Return the innermost task that waits with a question."""
    found = [
        each
        for each in results
        if each.result.question is not None
        and (id_ is None or id_ in [known for known, _, _ in each_question(each.result.question)])
    ]
    return max(found, key=lambda each: each.lane.count("|") + bool(each.lane), default=None)


def _calls_in(value: Any) -> Iterator[PendingCall]:
    for each in value if isinstance(value, list | tuple) else (value,):
        fields = fields_of(each)
        fields = fields_of(fields["tool_call"]) if "tool_call" in fields else fields
        if (inner := fields_of(fields.get("function"))) and "name" not in fields:
            given = parsed_arguments(inner.get("arguments"))
            fields = {**fields, "name": inner.get("name"), "args": given}
        if isinstance(fields.get("name"), str) and "args" in fields:
            yield PendingCall(fields["name"], fields["args"], _id(fields.get("id")))


def _id(value: Any) -> str:
    return str.__str__(value) if isinstance(value, str) else ""


def _unanswered_calls(channels: Mapping[str, Any]) -> list[PendingCall]:
    """Return the calls without a result in the conversations of a state, each of them once."""
    held = {k: v for k, v in channels.items() if not (is_text(k) and k.startswith(_OWN))}
    tree = StateTree(held)
    places = (tree.value(each.at) for each in find_conversations(tree).found)
    lists = {id(each): each for each in (*held.values(), *places) if type(each) is list}
    calls: list[PendingCall] = []
    for messages in lists.values():
        calls += without(_unanswered_in(messages), calls)
    return calls


def _unanswered_in(messages: list[Any]) -> list[PendingCall]:
    """Return the calls without a result in the newest message with calls.

    A result may be of any of the calls that have its id, so that it counts for none of them unless
    all have one.
    """
    results: Counter[str] = Counter()
    for message in reversed(messages):
        fields = fields_of(message)
        calls = fields.get("tool_calls")
        if isinstance(calls, list | tuple) and calls:
            found = list(_calls_in(calls))
            ids = Counter(each.id for each in found)
            return [each for each in found if results[each.id] < ids[each.id]]
        if done := _id(fields.get("tool_call_id")):
            results[done] += 1
    return []


def without(
    calls: Iterable[PendingCall], others: Iterable[PendingCall], *, ids: bool = True
) -> list[PendingCall]:
    """Return the calls that are left if each of the others stands for one of the same content."""
    left = list(calls)
    for other in others:
        for number, each in enumerate(left):
            is_named = each.name == other.name and (each.id == other.id or not ids)
            if is_named and is_same(each.arguments, other.arguments):
                del left[number]
                break
    return left
