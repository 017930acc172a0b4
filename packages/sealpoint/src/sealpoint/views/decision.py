# SPDX-License-Identifier: Apache-2.0
"""The subject of an approval: the question, the calls, the answer, and what differs between them.

Nothing of a question, a call or an answer is left out or masked, and all texts are complete, with
unprintable characters made visible.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sealpoint.views.asked import Asker, PendingCall, ReadQuestion, read_questions, without
from sealpoint.views.conversation import (
    ChatMessage,
    PartKind,
    find_conversations,
    read_conversation,
)
from sealpoint.views.differences import (
    approval_words,
    earlier_words,
    edited,
    release_words,
    signed_words,
    unmentioned,
    world_words,
)
from sealpoint.views.masking import REVEALED, Masking
from sealpoint.views.readable import TextField, label_of, named_values, text_field
from sealpoint.views.replies import NOTHING, answer_fields, decisions_of, split_answer
from sealpoint.views.tree import StateTree
from sealpoint.world import visible

if TYPE_CHECKING:  # code that only shows the status of a request does not load them
    from sealpoint.api import ExaminedRequest, ShownRelease

__all__ = ["AskedQuestion", "Decision", "ToolCall", "read_decision"]

_MESSAGES = 30


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
    asked = [] if shown is None else read_questions(shown, hidden)
    replies, rest, effects = split_answer(answer, [each.id for each in asked])
    differences: list[str] = []
    questions, called, place = [], set(), None
    for question, reply in zip(asked, replies, strict=True):
        asker = Asker(shown, question.id, hidden)
        place = place or asker
        questions.append(_with_state(question, asker, reply, differences))
        called |= {each.id for each in (*question.calls, *asker.calls) if each.id}
    if effects:
        names = ", ".join(effects)
        differences.append(f"The answer does more than answer: it also sets {names}.")
    if shown is not None:
        differences += release_words(shown)
    if examined is not None:
        differences += world_words(examined)
    if examined is not None:
        whole = None if shown is None else shown.release.question
        differences += signed_words(examined, whole)
        differences += earlier_words(examined, whole)
    place = place or Asker(shown, None, hidden)
    messages, earlier = _conversation(place.states, called, masking)
    return Decision(
        questions=tuple(questions),
        answer=tuple(text_field(name, value) for name, value in (rest | effects).items()),
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
    told, signed = examined.request.statement, examined.signed
    if told.actor is None:
        return "The requester does not say who answered."
    actor = visible(told.actor)
    if signed is not None and (signed.digest, signed.person) == (told.answer, told.actor):
        return f"Answered and signed by {actor}"
    return f"Answered by {actor} (as the requester claims)"


def _with_state(
    question: ReadQuestion, asker: Asker, reply: Any, differences: list[str]
) -> AskedQuestion:
    calls = list(question.calls)
    for each in without(asker.calls, question.calls, ids=False):
        calls.append(each)
        if question.calls:
            differences.append(f"The question does not mention the call of {visible(each.name)}.")
    differences += approval_words(question, reply)
    replies = decisions_of(question, reply)
    marked = []
    for number, call in enumerate(calls):
        answer = replies[number] if number < len(replies) else NOTHING
        names = {*unmentioned(question, call, differences), *edited(call, answer, differences)}
        marked.append(replace(call, marked=frozenset(names)))
    return AskedQuestion(
        asker=asker.words,
        text=tuple(map(visible, question.text.split("\n"))) if question.text else (),
        fields=tuple(text_field(name, value) for name, value in question.rest.items()),
        calls=tuple(map(_tool_call, marked)),
        answer=tuple(answer_fields(question, reply)),
    )


def _tool_call(call: PendingCall) -> ToolCall:
    is_empty = type(call.arguments) is dict and not call.arguments
    given = {} if is_empty else named_values(call.arguments)
    marked = {*map(label_of, call.marked)}
    arguments = (
        text_field(name, value, "warning" if name in marked else "")
        for name, value in given.items()
    )
    return ToolCall(name=visible(call.name), arguments=tuple(arguments), is_asked=call.is_asked)


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
