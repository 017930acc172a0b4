# SPDX-License-Identifier: Apache-2.0
"""The parts of an answer: for each question, and the rest."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sealpoint.views.asked import APPROVAL, APPROVAL_FIELDS, ReadQuestion
from sealpoint.views.conversation import fields_of
from sealpoint.views.readable import TextField, lines_of, plain_of, text_field
from sealpoint.world import visible

__all__ = ["NOTHING", "answer_fields", "decision_lines", "decisions_of", "split_answer"]


NOTHING = object()
"""Stands for no answer, which is not the answer None."""


def split_answer(
    answer: Any, ids: Sequence[str | None]
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Return the answer to each question, an answer to no single one, and its other effects."""
    none: list[Any] = [NOTHING] * len(ids)
    if answer is None:
        return none, {}, {}
    rest, given = {}, answer
    if type(answer) is dict and (answer.keys() & {"resume", "responses"}):
        rest = {key: plain_of(value) for key, value in answer.items()}
        given = rest.pop("resume", rest.pop("responses", None))
        rest = {key: value for key, value in rest.items() if value is not None}
    if type(given) is dict and given and given.keys() <= {*ids}:
        return [plain_of(given[id_]) if id_ in given else NOTHING for id_ in ids], {}, rest
    if len(ids) == 1:
        return [plain_of(given)], {}, rest
    given = plain_of(given)
    return none, fields_of(given) or {"": given}, rest


def decisions_of(reply: Any, count: int) -> list[Any]:
    """Return the decision on each reviewed call."""
    found = fields_of(reply).get("decisions", reply)
    return list(found) if isinstance(found, list | tuple) else [found] * min(count, 1)


def answer_fields(question: ReadQuestion, reply: Any) -> Iterator[TextField]:
    """Yield the answer to a question as fields."""
    if reply is NOTHING:
        return
    fields = fields_of(reply)
    if fields.get("type") == f"{APPROVAL}response":
        yield text_field("", "approve" if fields.get("approved") is True else "reject")
        rest = {k: v for k, v in fields.items() if k not in APPROVAL_FIELDS and v is not None}
        yield from (text_field(name, value) for name, value in rest.items())
        return
    decisions = decisions_of(reply, len(question.calls)) if question.calls else []
    if question.calls and all(isinstance(fields_of(each).get("type"), str) for each in decisions):
        for number, decision in enumerate(decisions):
            call = question.calls[number].name if number < len(question.calls) else "no call"
            name = visible(call) if len(decisions) > 1 else ""
            yield TextField(name=name, lines=tuple(decision_lines(fields_of(decision))))
        rest = {} if fields.keys() <= {"decisions", "type", "args", "message"} else fields
        yield from (text_field(name, value) for name, value in rest.items() if name != "decisions")
    elif fields:
        yield from (text_field(name, value) for name, value in fields.items())
    else:
        yield text_field("", reply)


def decision_lines(decision: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a decision on one call."""
    yield visible(str(decision["type"]))
    for key, value in decision.items():
        edited = fields_of(value)
        if key in ("edited_action", "args") and edited:
            given = {"": edited.get("name", edited.get("action"))} | fields_of(edited.get("args"))
            for name, argument in given.items():
                first, *more = lines_of(argument)
                yield f"{visible(name)}: {first}" if name else f"call {first}"
                yield from more
        elif key != "type" and value is not None:
            first, *more = lines_of(value)
            yield f"{visible(key)}: {first}"
            yield from more
