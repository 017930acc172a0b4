# SPDX-License-Identifier: Apache-2.0
"""The subject of an approval: the question, the calls, the answer, and what differs between them.

Questions, calls and answers of LangGraph, LangChain's review of tool calls and Agent Framework are
read as plain data, by their stored forms; no framework is imported. A shape that is not known here
is shown as it is: nothing of a question, a call or an answer is left out or masked, and all texts
are complete, with unprintable characters made visible.

A question is what the agent chose to say. The calls come from the pending state, so a value that
the question does not mention, or mentions otherwise, is named as a difference.
"""

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sealpoint.codec import UntypedValue
from sealpoint.gate import Request
from sealpoint.views.answer_forms import each_question
from sealpoint.views.conversation import (
    ChatMessage,
    PartKind,
    fields_of,
    find_conversations,
    parsed_arguments,
    read_conversation,
)
from sealpoint.views.masking import REVEALED, Masking
from sealpoint.views.nodes import lane_names, node_name
from sealpoint.views.tree import StateTree
from sealpoint.views.values import json_fault, render, untyped_json, value_lines
from sealpoint.world import LeafChange, LeafClass, leaf_subject, visible

if TYPE_CHECKING:  # code that only shows the status of a request does not load them
    from sealpoint.api import ExaminedRequest, ShownRelease, ShownResult

__all__ = [
    "AskedQuestion",
    "Decision",
    "TextField",
    "ToolCall",
    "answer_line",
    "question_line",
    "read_decision",
    "shorten_alike",
]

_TEXT_CHARS_MAX = 500_000
_LINE_CHARS_MAX = 2_000
_SHORT_CHARS = 60
_MESSAGES = 30
_PUSH = "~__pregel_push"
_INDEX = re.compile(r"[0-9]{1,12}")
_SENT = "__pregel_tasks"
_REVIEWER = "HumanInTheLoopMiddleware"
_APPROVAL = "function_approval_"
_NUMBER = re.compile(r"(?<![\w.,-])-?\d[\d,]*(?:\.\d+)?(?![\w-])")
_PROMPTING = (LeafClass.TOOLS, LeafClass.PERMISSIONS, LeafClass.MODEL, LeafClass.PROMPTS)
"""The classes of capabilities whose changes have a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextField:
    """A named value and its lines."""

    name: str
    """Empty for a value without a name."""
    lines: tuple[str, ...]
    """Empty if there is no value."""
    style: str = ""
    """As `Styled.style`; `warning` marks a value that a difference names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that would run after the answer."""

    name: str
    arguments: tuple[TextField, ...]
    is_asked: bool
    """Whether the question itself holds it; otherwise only the pending state does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """One question, with the calls and the answer that belong to it."""

    asker: str
    """Which agent, node or tool asks; empty if unknown."""
    text: tuple[str, ...]
    fields: tuple[TextField, ...]
    calls: tuple[ToolCall, ...]
    answer: tuple[TextField, ...]
    """Empty if the answer does not say which question it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Everything that a person compares before approving."""

    questions: tuple[AskedQuestion, ...]
    answer: tuple[TextField, ...]
    """The part of the answer that belongs to no single question."""
    has_answer: bool
    answered_by: str
    differences: tuple[str, ...]
    messages: tuple[ChatMessage, ...]
    """The last messages before the question, oldest first."""
    earlier: int
    """The number of messages before those."""
    unread: str
    """Why the state is not shown; empty if it is."""


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    arguments: Any
    id: str = ""
    is_asked: bool = False
    marked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Question:
    """A question before its state and its answer are known."""

    id: str | None
    text: str
    rest: dict[str, Any]
    calls: tuple[_Call, ...]


def read_decision(
    shown: "ShownRelease | None",
    examined: "ExaminedRequest | None" = None,
    *,
    masking: Masking = REVEALED,
) -> Decision:
    """Read what is asked, and what would be answered.

    Args:
        shown: The release that would run, with its states if they were read.
        examined: The request for it, if it exists.
        masking: The names of hidden values: of a request in the conversation alone.
    """
    request = None if examined is None else examined.request
    answer = None if request is None or examined is None or examined.fault else request.answer
    hidden = masking if examined is None else REVEALED  # an approver sees all that would run
    asked = [] if shown is None else _asked(shown, hidden)
    replies, rest, effects = _answers(answer, [each.id for each in asked])
    differences: list[str] = []
    questions, called, place = [], set(), None
    for question, reply in zip(asked, replies, strict=True):
        asker = _Asker(shown, question.id, hidden)
        place = place or asker
        questions.append(_with_state(question, asker, reply, differences))
        called |= {each.id for each in (*question.calls, *asker.calls) if each.id}
    if effects:
        names = ", ".join(map(visible, effects))
        differences.append(f"The answer does more than answer: it also sets {names}.")
    if shown is not None:
        differences += _release_words(shown)
    if examined is not None:
        differences += _world_words(examined)
    if examined is not None:
        differences += _signed_words(examined)
        differences += _earlier_words(examined.request, examined.earlier)
    place = place or _Asker(shown, None, hidden)
    messages, earlier = _conversation(place.states, called, masking)
    return Decision(
        questions=tuple(questions),
        answer=tuple(_field(name, value) for name, value in (rest | effects).items()),
        has_answer=answer is not None,
        answered_by=_answered_by(examined),
        differences=tuple(differences),
        messages=messages,
        earlier=earlier,
        unread=next((each.fault for each in place.shown_states if each.fault), ""),
    )


def _answered_by(examined: "ExaminedRequest | None") -> str:
    if examined is None or examined.request.statement.answer is None:
        return ""
    if examined.signed is not None and examined.signed.answer == examined.request.answer:
        return f"Answered and signed by {visible(examined.signed.person)}"
    actor = examined.request.statement.actor
    if actor is None:
        return "The requester does not say who answered."
    return f"Answered by {visible(actor)} (as the requester claims)"


# Questions.


def _asked(shown: "ShownRelease", masking: Masking) -> list[_Question]:
    whole = dict(_whole_questions(shown))
    questions = each_question(shown.release.question)
    return [_read_question(id_, value, whole, masking) for id_, value, _ in questions]


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


def _read_question(
    id_: str | None, value: Any, whole: Mapping[str, Any], masking: Masking = REVEALED
) -> _Question:
    if _is_object(value) and id_ is not None and id_ in whole:
        value = whole[id_]
    value = _hidden(_plain(value), masking)
    if isinstance(value, str):
        return _Question(id_, value, {}, ())
    fields = fields_of(value)
    if fields.get("type") == f"{_APPROVAL}request":
        call = _function_call(fields.get("function_call"))
        left = {k: v for k, v in fields.items() if k not in _APPROVAL_FIELDS and v is not None}
        return _Question(id_, "", left if call else fields, (call,) if call else ())
    calls, text, rest = _reviewed(value if type(value) is list else [value])
    if calls:
        return _Question(id_, text, rest, calls)
    return _Question(id_, "", fields or {"": value}, ())


_APPROVAL_FIELDS = ("type", "id", "function_call", "user_input_request", "approved")


def _function_call(value: Any) -> _Call | None:
    fields = fields_of(value)
    if not isinstance(fields.get("name"), str):
        return None
    given = parsed_arguments(fields.get("arguments"))
    return _Call(fields["name"], given, str(fields.get("call_id") or ""), is_asked=True)


def _reviewed(requests: list[Any]) -> tuple[tuple[_Call, ...], str, dict[str, Any]]:
    """Return the calls that LangChain's review asks about, its words, and the rest."""
    calls: list[_Call] = []
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
            calls.append(_Call(name, given, is_asked=True))
            fields |= {"description": each.pop("description", fields.get("description")), **each}
            said = fields.pop("description") or ""
            # The usual description repeats the call, as Python writes it.
            said = said if type(said) is str else "\n".join(_lines(said))
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
        and all(map(_is_text, each["allowed_decisions"]))
        else None
        for each in configs
    }
    return found.pop() if len(found) == 1 else None


# What the pending state says about a question.


class _Asker:
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
        self.calls = tuple(replace(c, arguments=_hidden(c.arguments, masking)) for c in calls)

    def _pending_calls(self, state: Any) -> tuple[bool, tuple[_Call, ...]]:
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


def _calls_in(value: Any) -> Iterator[_Call]:
    for each in value if isinstance(value, list | tuple) else (value,):
        fields = fields_of(each)
        fields = fields_of(fields["tool_call"]) if "tool_call" in fields else fields
        if isinstance(fields.get("name"), str) and "args" in fields:
            yield _Call(fields["name"], fields["args"], str(fields.get("id") or ""))


def _unanswered_calls(channels: Mapping[str, Any]) -> Iterator[_Call]:
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


def _with_state(
    question: _Question, asker: _Asker, reply: Any, differences: list[str]
) -> AskedQuestion:
    calls = list(question.calls)
    for each in asker.calls:
        if not any(c.name == each.name and _is_same(c.arguments, each.arguments) for c in calls):
            calls.append(each)
            if question.calls:
                differences.append(
                    f"The question does not mention the call of {visible(each.name)}."
                )
    replies = _decisions(reply, len(question.calls))
    marked = []
    for number, call in enumerate(calls):
        answer = replies[number] if number < len(replies) else _NOTHING
        names = {*_unmentioned(question, call, differences), *_edited(call, answer, differences)}
        marked.append(replace(call, marked=frozenset(names)))
    return AskedQuestion(
        asker=asker.words,
        text=_lines(question.text) if question.text else (),
        fields=tuple(_field(name, value) for name, value in question.rest.items()),
        calls=tuple(map(_tool_call, marked)),
        answer=tuple(_answer_fields(question, reply)),
    )


def _tool_call(call: _Call) -> ToolCall:
    fields = fields_of(call.arguments)
    is_empty = call.arguments is None or type(call.arguments) is dict
    given = fields or ({} if is_empty else {"": call.arguments})
    arguments = (
        _field(name, value, "warning" if name in call.marked else "")
        for name, value in given.items()
    )
    return ToolCall(name=visible(call.name), arguments=tuple(arguments), is_asked=call.is_asked)


# Answers.

_NOTHING = object()


def _answers(
    answer: Any, ids: Sequence[str | None]
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Return the answer to each question, an answer to no single one, and its other effects."""
    none: list[Any] = [_NOTHING] * len(ids)
    if answer is None:
        return none, {}, {}
    rest, given = {}, answer
    if type(answer) is dict and (answer.keys() & {"resume", "responses"}):
        rest = {key: _plain(value) for key, value in answer.items()}
        given = rest.pop("resume", rest.pop("responses", None))
        rest = {key: value for key, value in rest.items() if value is not None}
    if type(given) is dict and given and given.keys() <= {*ids}:
        return [_plain(given[id_]) if id_ in given else _NOTHING for id_ in ids], {}, rest
    if len(ids) == 1:
        return [_plain(given)], {}, rest
    given = _plain(given)
    return none, fields_of(given) or {"": given}, rest


def _decisions(reply: Any, count: int) -> list[Any]:
    """Return the decision on each reviewed call."""
    found = fields_of(reply).get("decisions", reply)
    return list(found) if isinstance(found, list | tuple) else [found] * min(count, 1)


def _answer_fields(question: _Question, reply: Any) -> Iterator[TextField]:
    if reply is _NOTHING:
        return
    fields = fields_of(reply)
    if fields.get("type") == f"{_APPROVAL}response":
        yield _field("", "approve" if fields.get("approved") is True else "reject")
        rest = {k: v for k, v in fields.items() if k not in _APPROVAL_FIELDS and v is not None}
        yield from (_field(name, value) for name, value in rest.items())
        return
    decisions = _decisions(reply, len(question.calls)) if question.calls else []
    if question.calls and all(isinstance(fields_of(each).get("type"), str) for each in decisions):
        for number, decision in enumerate(decisions):
            call = question.calls[number].name if number < len(question.calls) else "no call"
            name = visible(call) if len(decisions) > 1 else ""
            yield TextField(name=name, lines=tuple(_decision_lines(fields_of(decision))))
        rest = {} if fields.keys() <= {"decisions", "type", "args", "message"} else fields
        yield from (_field(name, value) for name, value in rest.items() if name != "decisions")
    elif fields:
        yield from (_field(name, value) for name, value in fields.items())
    else:
        yield _field("", reply)


def _decision_lines(decision: Mapping[str, Any]) -> Iterator[str]:
    yield visible(str(decision["type"]))
    for key, value in decision.items():
        edited = fields_of(value)
        if key in ("edited_action", "args") and edited:
            given = {"": edited.get("name", edited.get("action"))} | fields_of(edited.get("args"))
            for name, argument in given.items():
                first, *more = _lines(argument)
                yield f"{visible(name)}: {first}" if name else f"call {first}"
                yield from more
        elif key != "type" and value is not None:
            first, *more = _lines(value)
            yield f"{visible(key)}: {first}"
            yield from more


# Differences.


def _unmentioned(question: _Question, call: _Call, differences: list[str]) -> Iterator[str]:
    """Yield the arguments that the question does not mention, although it mentions such values."""
    given = fields_of(call.arguments)
    said = "\n".join((question.text, *(_line(each) for each in question.rest.values())))
    if (question.calls and not question.text) or not given:
        return
    numbers = {_number(each): each for each in _NUMBER.findall(said)}
    is_named = {name: _mentions(said, numbers.keys(), value) for name, value in given.items()}
    missing = [name for name, known in is_named.items() if known is False]
    wrong = [name for name in missing if numbers and _is_number(given[name])]
    spare = numbers.keys() - {_number(_line(value)) for value in given.values()}
    told = ", ".join(numbers[each] for each in sorted(spare or numbers))
    for name in wrong:
        value = _line(given[name])
        differences.append(f"The question says {told}, and the call has {visible(name)} {value}.")
    others = [name for name in missing if name not in wrong]
    if others and any(is_named.values()):
        names = ", ".join(map(visible, others))
        differences.append(f"The question does not mention {names} of {visible(call.name)}.")
        wrong += others
    yield from wrong


def _mentions(said: str, numbers: Collection[float], value: Any) -> bool | None:
    """Whether a text mentions a value; None if the value has no text of its own."""
    if value is None or isinstance(value, bool) or _line(value) in ("", "[]", "{}"):
        return None
    if _is_number(value):
        return _number(_line(value)) in numbers
    return _line(value).casefold() in said.casefold()


def _is_number(value: Any) -> bool:
    is_plain = isinstance(value, int | float | str) and not isinstance(value, bool)
    return is_plain and _NUMBER.fullmatch(_line(value)) is not None


def _number(text: str) -> float:
    with suppress(ValueError):
        return float(text.replace(",", ""))
    return float("nan")


def _edited(call: _Call, answer: Any, differences: list[str]) -> Iterator[str]:
    """Yield the arguments that the answer changes."""
    fields = fields_of(answer)
    new = fields_of(fields.get("edited_action") or fields.get("function_call"))
    if fields.get("type") == "edit" and not new:
        new = fields_of(fields.get("args"))
    if not new:
        return
    name = new.get("name", new.get("action"))
    if name != call.name:
        differences.append(f"The answer calls {_line(name)} instead of {visible(call.name)}.")
    before = fields_of(call.arguments)
    after = fields_of(parsed_arguments(new.get("args", new.get("arguments"))))
    for each in dict.fromkeys((*before, *after)):
        one, other = before.get(each, _NOTHING), after.get(each, _NOTHING)
        if one is not _NOTHING and other is not _NOTHING and _is_same(one, other):
            continue
        yield each
        shown = visible(each)
        if other is _NOTHING:
            differences.append(f"The answer removes {shown}, which was {_brief(one)}.")
        elif one is _NOTHING:
            differences.append(f"The answer adds {shown}: {_brief(other)}.")
        else:
            differences.append(f"The answer changes {shown} from {_brief(one)} to {_brief(other)}.")


def _release_words(shown: "ShownRelease") -> Iterator[str]:
    release = shown.release
    if not release.newest:
        yield "This is not the newest checkpoint of the thread."
    if release.held:
        yield "A pause held this checkpoint back."
    if release.origin is not None:
        yield "This checkpoint is a copy." if not release.origin.is_file else "It was imported."
    if release.deleted:
        yield "Newer work that this run would have used was deleted."


def _world_words(examined: "ExaminedRequest") -> Iterator[str]:
    """Yield a sentence for each change of tools, permissions, model and prompts; one for others."""
    told, diff = examined.request.statement, examined.diff
    if diff is None:
        if told.checkpoint is not None and told.world_from != told.world_to:
            yield "The run's capabilities cannot be compared with those of the checkpoint."
        return
    others = set()
    for word, changes in (
        ("New", diff.added),
        ("Changed", diff.changed),
        ("Removed", diff.removed),
    ):
        for change in changes:
            if change.leaf_class in _PROMPTING:
                yield f"{word} {_leaf(change)}"
            else:
                others.add(str(change.leaf_class))
    if others:
        yield f"Also different: {', '.join(sorted(others))}. The comparison is below."


def _leaf(change: LeafChange) -> str:
    agents, kind, name = leaf_subject(change.leaf)
    of = f" of agent {', '.join(agents)}" if agents else ""
    short = ""
    if change.before is not None and change.after is not None:
        one, other = _line(change.before), _line(change.after)
        short = f", from {one} to {other}" if max(len(one), len(other)) <= _SHORT_CHARS else ""
    return f"{kind}{of}: {name}{short}"


def _signed_words(examined: "ExaminedRequest") -> Iterator[str]:
    signed = examined.signed
    if signed is not None and signed.answer != examined.request.answer:
        told = _cut(answer_line(signed.answer), 200)
        yield f"{visible(signed.person)} has signed another answer: {told}"


def _earlier_words(request: Request, earlier: Sequence[Request]) -> Iterator[str]:
    for each in earlier:
        if each.statement.answer != request.statement.answer:
            told = _cut(answer_line(each.answer), 200)
            yield (
                f"Request {each.short} ({each.status}) for the same checkpoint has another answer: "
                f"{told}"
            )


# The conversation.


def _conversation(
    states: Sequence[Any], called: set[str], masking: Masking
) -> tuple[tuple[ChatMessage, ...], int]:
    """Return the end of the longest conversation around a question, and what it leaves out."""
    for state in states:
        tree = StateTree(state, masking=masking)
        found = max(find_conversations(tree).found, key=lambda each: each.messages, default=None)
        if found is not None:
            earlier = max(0, found.messages - _MESSAGES)
            messages = read_conversation(tree, found.at, offset=earlier, limit=_MESSAGES)
            return tuple(filter(None, (_without(each, called) for each in messages))), earlier
    return (), 0


def _without(message: ChatMessage, called: set[str]) -> ChatMessage | None:
    """Return a message without the calls that are shown above; None if nothing is left."""
    parts = tuple(
        each
        for each in message.parts
        if each.kind is not PartKind.TOOL_CALL or each.call not in called
    )
    is_empty = parts != message.parts and all(each.kind is PartKind.DETAILS for each in parts)
    return None if is_empty else replace(message, parts=parts)


# One line for lists.


def question_line(question: Any) -> str:
    """Return a question in one line."""
    texts = []
    for id_, value, _ in each_question(question):
        read = _read_question(id_, value, {})
        calls = [_call_line(each) for each in read.calls]
        said = [read.text] if read.text and not calls else []
        fields = [] if calls else [_pair(name, each) for name, each in read.rest.items()]
        texts.append(", ".join((*said, *calls, *fields)))
    return _one_line("; ".join(texts))


def answer_line(answer: Any, question: Any = None) -> str:
    """Return an answer in one line, without the ids of the questions."""
    if answer is None:
        return ""
    given = _plain(answer)
    if type(given) is dict and given.keys() & {"resume", "responses"}:
        rest = dict(given)
        main = rest.pop("resume", rest.pop("responses", None))
        told = fields_of(main).get("decisions", main)
        ids = [id_ for id_, _, _ in each_question(question)]
        if type(told) is dict and ("responses" in given or told.keys() <= {*ids}):
            told = [told[each] for each in sorted(told, key=lambda id_: (*ids, id_).index(id_))]
        parts = list(told) if isinstance(told, list | tuple) else [told]
        texts = [_reply_line(each) for each in parts]
        return _one_line(", ".join((*texts, *(_pair(k, v) for k, v in rest.items() if v))))
    return _one_line(_reply_line(given))


def _reply_line(reply: Any) -> str:
    fields = fields_of(reply)
    if fields.get("type") == f"{_APPROVAL}response":
        return "approve" if fields.get("approved") is True else "reject"
    if isinstance(fields.get("type"), str):
        return ", ".join(_decision_lines(fields))
    return ", ".join(_pair(*each) for each in fields.items()) if fields else _line(reply)


def _call_line(call: _Call) -> str:
    fields = fields_of(call.arguments) or {"": call.arguments}
    return f"{call.name}({', '.join(_pair(*each) for each in fields.items())})"


def _pair(name: str, value: Any) -> str:
    return f"{name}: {_line(value)}" if name else _line(value)


def _one_line(text: str) -> str:
    return visible(" ".join(_cut(text, _LINE_CHARS_MAX).split()))


def shorten_alike(texts: Sequence[str], chars_max: int) -> list[str]:
    """Shorten texts in the middle so that the place where similar ones differ stays visible."""
    order = sorted(range(len(texts)), key=lambda number: texts[number])
    differs = dict.fromkeys(order, 0)
    for one, other in pairwise(order):
        if texts[one] != texts[other]:
            shared = _shared(texts[one], texts[other])
            for each in (one, other):
                differs[each] = max(differs[each], shared)
    return [_around(text, differs[number], chars_max) for number, text in enumerate(texts)]


def _shared(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _around(text: str, place: int, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    head = chars_max // 3
    if place < 2 * head:
        return f"{text[: 2 * head]} … {text[-head:]}"
    start = min(place - 8, len(text) - 2 * head)
    end = start + 2 * head
    return f"{text[:head]} … {text[start:end]}{' …' if end < len(text) else ''}"


# Values as text.


def _field(name: str, value: Any, style: str = "") -> TextField:
    return TextField(name=visible(name), lines=_lines(value), style=style)


def _lines(value: Any) -> tuple[str, ...]:
    """Return a complete value in lines."""
    if isinstance(value, str):
        return tuple(map(visible, value.split("\n")))
    if type(value) is list and value and all(map(_is_one_line, value)):
        return tuple(f"- {visible(each)}" for each in value)
    with suppress(ValueError, TypeError, RecursionError):
        plain = untyped_json(value)
        if json_fault(plain) is None:
            return tuple(value_lines(plain))
    return tuple(map(visible, render(value, name="value", everything=True)))


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values have the same text, whatever the order of their keys."""
    with suppress(ValueError, TypeError, RecursionError):
        texts = [json.dumps(untyped_json(each), sort_keys=True) for each in (one, other)]
        return texts[0] == texts[1]
    return _lines(one) == _lines(other)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_one_line(value: Any) -> bool:
    return type(value) is str and "\n" not in value


def _line(value: Any) -> str:
    return " ".join(each.strip() for each in _lines(value))


def _brief(value: Any) -> str:
    return _cut(_line(value), 80)


def _cut(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else f"{text[:chars_max]} …"


def _hidden(value: Any, masking: Masking) -> Any:
    """Return a value without its secrets, as a person sees it who does not approve it."""
    if not masking.names:
        return value
    fields = fields_of(value)
    if fields:
        kept = {
            key: "(hidden)" if masking.hides(key) else _hidden(each, masking)
            for key, each in fields.items()
        }
        return replace(value, fields=kept) if type(value) is UntypedValue else kept
    return [_hidden(each, masking) for each in value] if type(value) is list else value


def _is_object(value: Any) -> bool:
    if type(value) is not dict or value.keys() != {"$object"}:
        return False
    return type(value["$object"]) is dict and isinstance(value["$object"].get("text"), str)


def _plain(value: Any) -> Any:
    """Return a value of an approver's JSON with the objects in it as their fields."""
    if _is_object(value):
        held = value["$object"]
        return _object(str(held.get("type")), held["text"])
    if type(value) is dict:
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if type(value) is list else value


def _object(name: str, text: str) -> Any:
    """Return an object by its text, which is JSON or what Python would write; else the text."""
    if len(text) > _TEXT_CHARS_MAX:
        return text
    fields = parsed_arguments(text)
    if type(fields) is dict:
        return UntypedValue(name=name, version=1, fields=fields)
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return _read_node(ast.parse(text, mode="eval").body, text)
    return text


def _read_node(node: ast.expr, text: str) -> Any:
    """Return what an expression stands for; nothing of it is executed."""
    match node:
        case ast.Constant(value=value) if type(value) in (str, int, float, bool, type(None)):
            return value
        case ast.List(elts=members) | ast.Tuple(elts=members):
            return [_read_node(each, text) for each in members]
        case ast.Dict(keys=keys, values=values):
            names = [key.value for key in keys if isinstance(key, ast.Constant)]
            if len({*filter(_is_text, names)}) == len(keys):
                pairs = zip(names, values, strict=True)
                return {name: _read_node(each, text) for name, each in pairs}
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[_, *_] as given):
            named = {each.arg: each.value for each in given if each.arg is not None}
            if len(named) == len(given):
                fields = {key: _read_node(each, text) for key, each in named.items()}
                return UntypedValue(name=name, version=1, fields=fields)
        case _:
            pass
    return ast.get_source_segment(text, node) or ""
