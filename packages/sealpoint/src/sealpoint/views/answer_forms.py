# SPDX-License-Identifier: Apache-2.0
"""The question of a thread as a form, and the answer that a filled form gives.

A question is whatever the run saved. Where it brings a JSON schema for its answer, the form has the
fields of the schema; a request for decisions about tool calls has one decision for each; anything
else takes free text. The schema is data of the run: it decides which fields are shown, and a value
that does not fit the form is refused, but the run judges the answer itself.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from typing import Any

from sealpoint.errors import UsageError
from sealpoint.world import visible

__all__ = [
    "FieldKind",
    "FormField",
    "QuestionForm",
    "answer_to",
    "each_question",
    "questions_of",
    "read_answer",
]

_LEVELS_MAX = 4
_FIELDS_MAX = 64
_OPTIONS_MAX = 64
_DECISIONS = ("approve", "edit", "reject", "respond")
_DECISION_WORDS = {
    "approve": "Approve the call as it is",
    "edit": "Approve it with other arguments",
    "reject": "Reject it",
    "respond": "Answer in its place",
}


@unique
class FieldKind(StrEnum):
    """How a field is filled."""

    CHOICE = "choice"
    TEXT = "text"
    NUMBER = "number"
    JSON = "json"
    GROUP = "group"
    """The fields of an object."""
    ROWS = "rows"
    """A list with a field for each of its items."""
    EITHER = "either"
    """One of several groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of a form."""

    name: str
    """The name of its value in a filled form; unique in the form."""
    label: str
    kind: FieldKind
    key: str | None = None
    """Its key in the object that contains it."""
    help: str = ""
    required: bool = True
    options: tuple[tuple[str, Any], ...] = field(default=(), hash=False)
    """For a choice: the words and the value of each option."""
    fields: tuple["FormField", ...] = ()
    """The fields of a group, the items of a list, or the alternatives."""
    value: Any = field(default=None, hash=False)
    """The first value in the field; for a group without fields, its constant value."""
    is_whole: bool = False
    """For a number: whether it has no fraction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionForm:
    """One of the questions of a thread, with the form of its answer."""

    id: str | None
    """Its id; None if the thread asks one question without an id."""
    value: Any = field(hash=False)
    """The question, as the run saved it."""
    form: FormField


def questions_of(question: Any) -> tuple[QuestionForm, ...]:
    """Return the questions that a thread waits with.

    Args:
        question: The question of a release, in the form that an adapter or the application chose.
    """
    found = [*each_question(question)]
    if None in (ids := {id_ for id_, _, _ in found}) or not 0 < len(ids) == len(found):
        return (QuestionForm(id=None, value=question, form=_form(question, None, "answer")),)
    return tuple(
        QuestionForm(id=id_, value=value, form=_form(value, schema, f"answer-{place}"))
        for place, (id_, value, schema) in enumerate(found)
    )


def read_answer(questions: Sequence[QuestionForm], filled: Mapping[str, str]) -> Any:
    """Return the answer that a filled form gives, in the form that a signed answer has.

    Raises:
        UsageError: A field is missing, or does not fit; the error names it.
    """
    return answer_to(questions, [_read(each.form, filled) for each in questions])


def answer_to(questions: Sequence[QuestionForm], values: Sequence[Any]) -> Any:
    """Return the answer with these values, one for each question."""
    if len(questions) == 1 and questions[0].id is None:
        return values[0]
    named = zip(questions, values, strict=True)
    return {"resume": {each.id: value for each, value in named}}


def each_question(question: Any) -> Iterator[tuple[str | None, Any, Any]]:
    """Yield each question of a release: its id, if it has one, its value, and its schema."""
    if type(question) is list and question and all(type(each) in (list, dict) for each in question):
        for each in question:
            yield from each_question(each)
    elif (
        type(question) is dict
        and {"value"} <= question.keys() <= {"id", "value", "schema"}
        and type(question.get("id", "")) is str
    ):
        yield question.get("id"), question["value"], question.get("schema")
    elif question is not None:
        yield None, question, None


def _form(value: Any, schema: Any, name: str) -> FormField:
    calls = _calls_of(value)
    if calls and schema is None:
        rows = [
            _decision(call, allowed, f"{name}.{place}")
            for place, (call, allowed) in enumerate(calls)
        ]
        decisions = FormField(
            name=f"{name}.decisions",
            key="decisions",
            label="Decisions",
            kind=FieldKind.ROWS,
            fields=tuple(rows),
        )
        return FormField(name=name, label="Answer", kind=FieldKind.GROUP, fields=(decisions,))
    if isinstance(schema, Mapping):
        found = _Schema(schema).field(schema, name, "Answer")
        if found is not None and sum(1 for _ in _all_of(found)) <= _FIELDS_MAX:
            return found
        return FormField(name=name, label="Answer, as JSON", kind=FieldKind.JSON)
    return FormField(name=name, label="Answer", kind=FieldKind.TEXT)


def _all_of(form: FormField) -> Iterator[FormField]:
    yield form
    for each in form.fields:
        yield from _all_of(each)


def _calls_of(value: Any) -> list[tuple[Mapping[str, Any], list[str]]]:
    """Return the tool calls that a request for decisions lists, each with what may be decided."""
    if not isinstance(value, Mapping):
        return []
    calls, configs = value.get("action_requests"), value.get("review_configs")
    if not isinstance(calls, list) or not isinstance(configs, list):
        return []
    if not all(isinstance(each, Mapping) for each in (*calls, *configs)):
        return []
    allowed = {str(each.get("action_name")): each.get("allowed_decisions") for each in configs}
    found = []
    for call in calls:
        listed = allowed.get(str(call.get("name")))
        known = [each for each in _DECISIONS if isinstance(listed, list) and each in listed]
        found.append((call, known or ["approve", "reject"]))
    return found


def _decision(call: Mapping[str, Any], allowed: Sequence[str], name: str) -> FormField:
    """Return the decision about one tool call."""
    title = visible(str(call.get("name")))
    ways = []
    for place, each in enumerate(allowed):
        inner = f"{name}.{place}"
        fields = [_constant("type", each, inner)]
        if each == "edit":
            action = FormField(
                name=f"{inner}.action",
                key="edited_action",
                label="Call",
                kind=FieldKind.GROUP,
                fields=(
                    _constant("name", call.get("name"), f"{inner}.action"),
                    FormField(
                        name=f"{inner}.args",
                        key="args",
                        label=f"Arguments of {title}, as JSON",
                        kind=FieldKind.JSON,
                        value=call.get("args", {}),
                    ),
                ),
            )
            fields.append(action)
        elif each != "approve":
            fields.append(
                FormField(
                    name=f"{inner}.message",
                    key="message",
                    label="Message to the agent",
                    kind=FieldKind.TEXT,
                    required=each == "respond",
                )
            )
        words = _DECISION_WORDS[each]
        ways.append(FormField(name=inner, label=words, kind=FieldKind.GROUP, fields=tuple(fields)))
    return FormField(name=name, label=title, kind=FieldKind.EITHER, fields=tuple(ways))


def _constant(key: str, value: Any, within: str) -> FormField:
    return FormField(name=f"{within}.{key}", key=key, label=key, kind=FieldKind.GROUP, value=value)


class _Schema:
    """Makes the fields of a JSON schema; None: one textarea for all of it is better."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole = whole

    def field(self, schema: Any, name: str, label: str, level: int = 0) -> FormField | None:
        """Return the field of a schema."""
        schema = self._resolved(schema)
        if schema is None or level > _LEVELS_MAX:
            return None
        label = visible(str(schema.get("title") or label))
        found = self._field(schema, name, label, level)
        told = schema.get("description")
        if found is None or not isinstance(told, str):
            return found
        return replace(found, help=visible(told))

    def _field(
        self, schema: Mapping[str, Any], name: str, label: str, level: int
    ) -> FormField | None:
        if "const" in schema:
            return FormField(name=name, label=label, kind=FieldKind.GROUP, value=schema["const"])
        listed = schema.get("enum")
        if isinstance(listed, list) and 0 < len(listed) <= _OPTIONS_MAX:
            return _choice(name, label, [(_words(each), each) for each in listed], schema)
        for key in ("oneOf", "anyOf"):
            if isinstance(schema.get(key), list):
                return self._either(schema[key], name, label, level)
        match schema.get("type"):
            case "boolean":
                return _choice(name, label, [("Yes", True), ("No", False)], schema)
            case "string":
                value = schema.get("default")
                return FormField(name=name, label=label, kind=FieldKind.TEXT, value=value)
            case "integer" | "number" as kind:
                return FormField(
                    name=name,
                    label=label,
                    kind=FieldKind.NUMBER,
                    value=schema.get("default"),
                    is_whole=kind == "integer",
                )
            case "object" if isinstance(schema.get("properties"), Mapping):
                return self._group(schema, name, label, level)
            case "object" | "array" if level:
                value = schema.get("default")
                words = f"{label}, as JSON"
                return FormField(name=name, label=words, kind=FieldKind.JSON, value=value)
            case _:
                return None

    def _group(
        self, schema: Mapping[str, Any], name: str, label: str, level: int
    ) -> FormField | None:
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        fields = []
        for place, (key, part) in enumerate(schema["properties"].items()):
            found = self.field(part, f"{name}.{place}", str(key), level + 1)
            if found is None:
                return None
            fields.append(replace(found, key=str(key), required=key in needed))
        return FormField(name=name, label=label, kind=FieldKind.GROUP, fields=tuple(fields))

    def _either(self, parts: Sequence[Any], name: str, label: str, level: int) -> FormField | None:
        resolved = [self._resolved(each) for each in parts]
        present = [each for each in resolved if each is not None and each.get("type") != "null"]
        if len(present) == 1:
            only = self.field(present[0], name, label, level + 1)
            return None if only is None else replace(only, required=False)
        ways = []
        for place, part in enumerate(present):
            found = self.field(part, f"{name}.{place}", _way(part, place), level + 1)
            if found is None or found.kind is not FieldKind.GROUP:
                return None
            ways.append(found)
        is_open = 1 < len(ways) <= _OPTIONS_MAX
        if not is_open:
            return None
        return FormField(name=name, label=label, kind=FieldKind.EITHER, fields=tuple(ways))

    def _resolved(self, schema: Any) -> Mapping[str, Any] | None:
        """Return a schema without references; None if it has none, or they run in a circle."""
        for _ in range(_LEVELS_MAX):
            if not isinstance(schema, Mapping):
                return None
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            found: Any = self._whole
            for part in reference.removeprefix("#/").split("/"):
                found = found.get(part) if isinstance(found, Mapping) else None
            schema = found
        return None


def _way(schema: Mapping[str, Any], place: int) -> str:
    """Return the words for an alternative: its constant, or its title."""
    properties = schema.get("properties")
    for each in properties.values() if isinstance(properties, Mapping) else ():
        value = each.get("const") if isinstance(each, Mapping) else None
        if isinstance(value, str):
            return _DECISION_WORDS.get(value, visible(value))
    return f"Alternative {place + 1}"


def _choice(
    name: str, label: str, options: Sequence[tuple[str, Any]], schema: Mapping[str, Any]
) -> FormField:
    return FormField(
        name=name,
        label=label,
        kind=FieldKind.CHOICE,
        options=tuple(options),
        value=schema.get("default"),
    )


def _words(value: Any) -> str:
    return visible(value if isinstance(value, str) else json.dumps(value))


# Reading a filled form.


def _read(form: FormField, filled: Mapping[str, str]) -> Any:
    """Return the value of a field that is needed."""
    match form.kind:
        case FieldKind.GROUP if not form.fields:
            return form.value
        case FieldKind.GROUP:
            return {
                each.key: _read(each, filled)
                for each in form.fields
                if each.required or _is_filled(each, filled)
            }
        case FieldKind.ROWS:
            return [_read(each, filled) for each in form.fields]
        case FieldKind.EITHER:
            return _read(form.fields[_chosen(form, filled, len(form.fields))], filled)
        case FieldKind.CHOICE:
            return form.options[_chosen(form, filled, len(form.options))][1]
        case _:
            return _typed(form, _text(form, filled))


def _is_filled(form: FormField, filled: Mapping[str, str]) -> bool:
    if form.kind is FieldKind.GROUP:
        return not form.fields or any(_is_filled(each, filled) for each in form.fields)
    return bool(filled.get(form.name, "").strip())


def _text(form: FormField, filled: Mapping[str, str]) -> str:
    found = filled.get(form.name, "")
    if not found.strip():
        raise UsageError(f"answer: {form.label!r} is empty", hint="Fill it in.")
    return found


def _chosen(form: FormField, filled: Mapping[str, str], count: int) -> int:
    found = _text(form, filled)
    if found not in map(str, range(count)):
        raise UsageError(f"answer: {form.label!r} has another value than those to choose from")
    return int(found)


def _typed(form: FormField, text: str) -> Any:
    if form.kind is FieldKind.TEXT:
        return text.replace("\r\n", "\n")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
        is_fine = False
    else:
        is_fine = form.kind is FieldKind.JSON or _is_number(found, form)
    if not is_fine:
        expected = "JSON" if form.kind is FieldKind.JSON else "a number"
        raise UsageError(f"answer: {form.label!r}: expected {expected}, found another text")
    return found


def _is_number(value: Any, form: FormField) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or (math.isfinite(value) and not form.is_whole)
