# SPDX-License-Identifier: Apache-2.0
"""Differences between a question, its calls, its answer and the state that would run.

A question is what the agent chose to say. The calls come from the pending state, so a value that
the question does not mention, or mentions otherwise, is named as a difference.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from sealpoint.views.asked import PendingCall, ReadQuestion
from sealpoint.views.conversation import fields_of
from sealpoint.views.readable import brief, is_same, label_of, line_of, shorten, words_of
from sealpoint.views.replies import NOTHING, edited_call, names_other_call
from sealpoint.views.summaries import answer_line
from sealpoint.world import LeafChange, LeafClass, leaf_subject, visible

if TYPE_CHECKING:  # code that only shows the status of a request does not load them
    from sealpoint.api import ExaminedRequest, ShownRelease

__all__ = [
    "approval_words",
    "earlier_words",
    "edited",
    "release_words",
    "signed_words",
    "unmentioned",
    "world_words",
]

_SHORT_CHARS = 60
_NUMBER = re.compile(r"(?<![\w.,-])-?\d[\d,]*(?:\.\d+)?(?![\w-])")
_PROMPTING = (LeafClass.TOOLS, LeafClass.PERMISSIONS, LeafClass.MODEL, LeafClass.PROMPTS)
"""The classes of capabilities whose changes have a sentence each."""


def unmentioned(question: ReadQuestion, call: PendingCall, differences: list[str]) -> Iterator[str]:
    """Yield the arguments that the question does not mention, although it mentions such values."""
    given = fields_of(call.arguments)
    said = "\n".join((question.text, *(words_of(each) for each in question.rest.values())))
    if (question.calls and not question.text) or not given:
        return
    numbers = {_number(each): each for each in _NUMBER.findall(said)}
    is_named = {name: _mentions(said, numbers.keys(), value) for name, value in given.items()}
    missing = [name for name, known in is_named.items() if known is False]
    wrong = [name for name in missing if numbers and _is_number(given[name])]
    spare = numbers.keys() - {_number(words_of(value)) for value in given.values()}
    told = ", ".join(numbers[each] for each in sorted(spare or numbers))
    for name in wrong:
        value = line_of(given[name])
        differences.append(f"The question says {told}, and the call has {label_of(name)} {value}.")
    others = [name for name in missing if name not in wrong]
    if others and any(is_named.values()):
        names = ", ".join(map(label_of, others))
        differences.append(f"The question does not mention {names} of {visible(call.name)}.")
        wrong += others
    yield from wrong


def _mentions(said: str, numbers: Collection[Decimal], value: Any) -> bool | None:
    """Whether a text mentions a value; None if the value has no text of its own."""
    if value is None or isinstance(value, bool) or words_of(value) in ("", "[]", "{}"):
        return None
    if _is_number(value):
        return _number(words_of(value)) in numbers
    return words_of(value).casefold() in said.casefold()


def _is_number(value: Any) -> bool:
    is_plain = isinstance(value, int | float | str) and not isinstance(value, bool)
    return is_plain and _NUMBER.fullmatch(words_of(value)) is not None


def _number(text: str) -> Decimal:
    with suppress(InvalidOperation):
        return Decimal(text.replace(",", ""))
    return Decimal("nan")


def edited(call: PendingCall, answer: Any, differences: list[str]) -> Iterator[str]:
    """Yield the arguments that the answer changes."""
    new = edited_call(answer)
    if new is None:
        if fields_of(answer).get("type") == "edit":
            differences.append(
                f"The answer edits {visible(call.name)} in a form that is not known here: read all "
                "of it."
            )
        return
    if new.name != call.name:
        differences.append(f"The answer calls {visible(new.name)} instead of {visible(call.name)}.")
    known = fields_of(call.arguments)
    before = known or ({"": call.arguments} if call.arguments else {})
    for each in dict.fromkeys((*before, *new.arguments)):
        one, other = before.get(each, NOTHING), new.arguments.get(each, NOTHING)
        if one is not NOTHING and other is not NOTHING and is_same(one, other):
            continue
        yield each
        shown = label_of(each)
        if other is NOTHING:
            differences.append(f"The answer removes {shown}, which was {brief(one)}.")
        elif one is NOTHING:
            differences.append(f"The answer adds {shown}: {brief(other)}.")
        else:
            differences.append(f"The answer changes {shown} from {brief(one)} to {brief(other)}.")


def approval_words(question: ReadQuestion, reply: Any) -> Iterator[str]:
    """Yield a sentence if an approval names another call than the one that would run."""
    if names_other_call(question, reply):
        yield (
            "The answer names another call than the question. The call of the question is the one "
            "that runs."
        )


def release_words(shown: "ShownRelease") -> Iterator[str]:
    """Yield a sentence for each way in which the checkpoint is not simply the newest."""
    release = shown.release
    if not release.newest:
        yield "This is not the newest checkpoint of the thread."
    if release.held:
        yield "A pause held this checkpoint back."
    if release.origin is not None:
        yield "This checkpoint is a copy." if not release.origin.is_file else "It was imported."
    if release.deleted:
        yield "Newer work that this run would have used was deleted."


def world_words(examined: "ExaminedRequest") -> Iterator[str]:
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
        one, other = line_of(change.before), line_of(change.after)
        short = f", from {one} to {other}" if max(len(one), len(other)) <= _SHORT_CHARS else ""
    return f"{kind}{of}: {name}{short}"


def signed_words(examined: "ExaminedRequest", question: Any) -> Iterator[str]:
    """Yield a sentence if a person has signed an answer, and the request is not for theirs."""
    told, signed = examined.request.statement, examined.signed
    if signed is None or told.answer is None:
        return
    person = visible(signed.person)
    if signed.digest != told.answer:
        line = shorten(answer_line(signed.answer, question), 200)
        yield f"{person} has signed another answer: {line}"
    elif signed.person != told.actor:
        yield (
            f"{person} has signed this answer since. The worker asks again in that name, and does "
            "not use this request."
        )


def earlier_words(examined: "ExaminedRequest", question: Any) -> Iterator[str]:
    """Yield a sentence for each earlier request for this checkpoint with another answer."""
    for each in examined.earlier:
        if each.statement.answer != examined.request.statement.answer:
            told = shorten(answer_line(each.answer, question), 200)
            yield (
                f"Request {each.short} ({each.status}) for the same checkpoint has another answer: "
                f"{told}"
            )
