# SPDX-License-Identifier: Apache-2.0
"""The parts of an answer: for each question, and the rest.

Each key and value of an answer is in exactly one field. A short form stands for what it was made
of, and for nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sealpoint.views.asked import APPROVAL, ReadQuestion, unread
from sealpoint.views.conversation import fields_of, parsed_arguments
from sealpoint.views.readable import (
    TextField,
    is_same,
    is_text,
    label_of,
    labels_of,
    lines_of,
    named_values,
    plain_of,
    text_field,
)
from sealpoint.world import visible

__all__ = [
    "NOTHING",
    "EditedCall",
    "answer_fields",
    "decisions_of",
    "edited_call",
    "names_other_call",
    "split_answer",
]


NOTHING = object()
"""Stands for no answer, which is not the answer None."""


class EditedCall(NamedTuple):
    """The call that a decision puts in the place of the one that was asked about."""

    name: str
    arguments: dict[str, Any]


def split_answer(
    answer: Any, ids: Sequence[str | None]
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Return the answer to each question, and by labels that to no single one, and other effects.

    Two questions with one id have no answer each: it is not known what would be given to which.
    """
    none: list[Any] = [NOTHING] * len(ids)
    if answer is None:
        return none, {}, {}
    rest, given = {}, answer
    tag = "resume" if type(answer) is dict and "resume" in answer else "responses"
    if type(answer) is dict and tag in answer:
        rest = {label_of(key): plain_of(value) for key, value in answer.items() if key != tag}
        given = answer[tag]
    is_by_id = type(given) is dict and given and given.keys() <= {*ids}
    if is_by_id and len({*ids}) == len(ids):
        return [plain_of(given[id_]) if id_ in given else NOTHING for id_ in ids], {}, rest
    if len(ids) == 1:
        return [plain_of(given)], {}, rest
    return none, named_values(plain_of(given)), rest


def decisions_of(question: ReadQuestion, reply: Any) -> list[Any]:
    """Return the decision on each reviewed call."""
    found = fields_of(reply).get("decisions", reply)
    if question.calls and not isinstance(found, list | tuple):
        return [found] if len(question.calls) == 1 else []
    return list(found) if question.calls else []


def answer_fields(question: ReadQuestion, reply: Any) -> Iterator[TextField]:
    """Yield the answer to a question as fields."""
    if reply is NOTHING:
        return
    fields = fields_of(reply)
    if question.approval and fields.get("type") == f"{APPROVAL}response":
        yield from _approval_fields(question, fields)
        return
    decisions = fields.get("decisions", reply if question.calls else None)
    given = named_values(reply)
    if type(decisions) is list and decisions and all(map(_is_decision, decisions)):
        given = {name: each for name, each in given.items() if name not in ("", "decisions")}
        names = labels_of([each.name for each in question.calls])
        for number, each in enumerate(decisions):
            label = names[number] if number < len(names) else f"decision {number + 1}"
            yield from _decision_fields(label if len(decisions) > 1 or given else "", each)
    yield from (text_field(name, value) for name, value in given.items())


def _is_decision(value: Any) -> bool:
    return type(value) is dict and is_text(fields_of(value).get("type"))


def _approval_fields(question: ReadQuestion, fields: Mapping[str, Any]) -> Iterator[TextField]:
    yield text_field("", "approve" if fields.get("approved") is True else "reject")
    read = ["type"]
    if type(fields.get("approved")) is bool:
        read.append("approved")
    if is_same(fields.get("id"), question.approval.get("id")):
        read.append("id")
    if not names_other_call(question, fields):
        read.append("function_call")
    left = unread(fields, *read)
    yield from (text_field(label_of(name), value) for name, value in left.items())


def names_other_call(question: ReadQuestion, reply: Any) -> bool:
    """Whether the reply is an approval that names another call than the question.

    Agent Framework runs the call that it has stored with the question, whatever the approval says.
    """
    fields = fields_of(reply)
    is_approval = bool(question.approval) and fields.get("type") == f"{APPROVAL}response"
    return is_approval and not is_same(_named_call(fields), _named_call(question.approval))


def _named_call(fields: Mapping[str, Any]) -> Any:
    call = fields_of(fields.get("function_call"))
    if not call:
        return fields.get("function_call")
    given = parsed_arguments(call.get("arguments", {}))
    return unread(call) | {"arguments": given}


def _decision_fields(label: str, decision: Mapping[str, Any]) -> Iterator[TextField]:
    """Yield a decision on one call: its kind, and all else that it has."""
    edited, lines = edited_call(decision), [visible(decision["type"])]
    left = {name: each for name, each in decision.items() if name != "type"}
    if edited is not None:
        lines, left = [*lines, f"call {visible(edited.name)}"], edited.arguments
    yield TextField(name=label, lines=tuple(lines))
    of = f"{label}: " if label else ""
    for name, value in left.items():
        yield TextField(name=f"{of}{label_of(name)}", lines=lines_of(value))


def edited_call(decision: Any) -> EditedCall | None:
    """Return the call of a decision that is exactly of a known form."""
    fields = fields_of(decision) if type(decision) is dict else {}
    for key, name in (("edited_action", "name"), ("args", "action")):
        new = fields.get(key)
        if (
            fields.keys() == {"type", key}
            and fields["type"] == "edit"
            and type(new) is dict
            and new.keys() == {name, "args"}
            and is_text(new[name])
            and type(new["args"]) is dict
            and all(map(is_text, new["args"]))
        ):
            return EditedCall(new[name], new["args"])
    return None
