# SPDX-License-Identifier: Apache-2.0
"""The questions of a checkpoint, who asks them, and the calls that wait for them.

Questions and calls of LangGraph, LangChain's review of tool calls and Agent Framework are read as
plain data, by their stored forms; no framework is imported. A shape that is not known here is shown
as it is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sealpoint.views.answer_forms import each_question
from sealpoint.views.conversation import fields_of, parsed_arguments
from sealpoint.views.masking import REVEALED, Masking
from sealpoint.views.nodes import lane_names, node_name
from sealpoint.views.readable import hide, is_object, is_text, lines_of, plain_of
from sealpoint.world import visible

if TYPE_CHECKING:  # code that only shows the status of a request does not load them
    from sealpoint.api import ShownRelease, ShownResult

__all__ = [
    "APPROVAL",
    "APPROVAL_FIELDS",
    "Asker",
    "PendingCall",
    "ReadQuestion",
    "read_question",
    "read_questions",
]

_PUSH = "~__pregel_push"
_INDEX = re.compile(r"[0-9]{1,12}")
_SENT = "__pregel_tasks"
_REVIEWER = "HumanInTheLoopMiddleware"
APPROVAL = "function_approval_"
"""How the types of a question for approval, and of its answer, begin in Agent Framework."""


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
    calls: tuple[PendingCall, ...]


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
                    yield str(fields.get("id")), fields.get("value")
    for each in shown.states:
        asked = each.state.get("pending_request_info_events") if type(each.state) is dict else None
        for id_, event in asked.items() if type(asked) is dict else ():
            yield str(id_), fields_of(event).get("data")


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
    if is_object(value) and id_ is not None and id_ in whole:
        value = whole[id_]
    value = hide(plain_of(value), masking)
    if isinstance(value, str):
        return ReadQuestion(id_, value, {}, ())
    fields = fields_of(value)
    if fields.get("type") == f"{APPROVAL}request":
        call = _function_call(fields.get("function_call"))
        left = {k: v for k, v in fields.items() if k not in APPROVAL_FIELDS and v is not None}
        return ReadQuestion(id_, "", left if call else fields, (call,) if call else ())
    calls, text, rest = _reviewed(value if type(value) is list else [value])
    if calls:
        return ReadQuestion(id_, text, rest, calls)
    return ReadQuestion(id_, "", fields or {"": value}, ())


APPROVAL_FIELDS = ("type", "id", "function_call", "user_input_request", "approved")


def _function_call(value: Any) -> PendingCall | None:
    fields = fields_of(value)
    if not isinstance(fields.get("name"), str):
        return None
    given = parsed_arguments(fields.get("arguments"))
    return PendingCall(fields["name"], given, str(fields.get("call_id") or ""), is_asked=True)


def _reviewed(requests: list[Any]) -> tuple[tuple[PendingCall, ...], str, dict[str, Any]]:
    """Return the calls that LangChain's review asks about, its words, and the rest."""
    calls: list[PendingCall] = []
    texts: list[str] = []
    rest: dict[str, Any] = {}
    for request in requests:
        fields = dict(fields_of(request))
        actions = fields.pop("action_requests", None) or [fields.pop("action_request", None)]
        for action in actions if isinstance(actions, list | tuple) else ():
            each = dict(fields_of(action))
            name, given = each.pop("name", None) or each.pop("action", None), each.pop("args", None)
            if not isinstance(name, str):
                return (), "", {}
            calls.append(PendingCall(name, given, is_asked=True))
            fields |= {"description": each.pop("description", fields.get("description")), **each}
            said = fields.pop("description") or ""
            # The usual description repeats the call, as Python writes it.
            said = said if type(said) is str else "\n".join(lines_of(said))
            with suppress(ValueError):  # a number of thousands of digits has no decimal text
                said = said.removesuffix(f"\n\nTool: {name}\nArgs: {given}")
            texts.append(said)
        configs = fields.pop("review_configs", None)
        if (choices := _choices(configs)) is not None:
            fields["possible answers"] = choices
        elif configs is not None:
            fields["review_configs"] = configs
        rest |= fields
    return tuple(calls), "\n".join(dict.fromkeys(filter(None, texts))), rest


def _choices(configs: Any) -> str | None:
    """Return the answers that a review allows, if they are the same for all of its calls."""
    if not isinstance(configs, list | tuple):
        return None
    found = {
        ", ".join(each["allowed_decisions"])
        if type(each) is dict
        and each.keys() == {"action_name", "allowed_decisions"}
        and type(each["allowed_decisions"]) is list
        and all(map(is_text, each["allowed_decisions"]))
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
            yield PendingCall(fields["name"], fields["args"], str(fields.get("id") or ""))


def _unanswered_calls(channels: Mapping[str, Any]) -> Iterator[PendingCall]:
    """Yield the calls of the last message with calls that have no result."""
    messages = channels.get("messages")
    done: list[Any] = []
    for message in reversed(messages) if type(messages) is list else ():
        fields = fields_of(message)
        done.append(fields.get("tool_call_id"))
        calls = fields.get("tool_calls")
        if isinstance(calls, list | tuple) and calls:
            yield from (each for each in _calls_in(calls) if each.id not in done)
            return
        if fields.get("tool_call_id") is None:
            return
