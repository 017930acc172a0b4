# SPDX-License-Identifier: Apache-2.0
"""A question as a form, and the answer that a filled form gives."""

from typing import Any

import pytest

from sealpoint.errors import UsageError
from sealpoint.views.answer_forms import (
    FieldKind,
    FormField,
    each_question,
    questions_of,
    read_answer,
)


def _asked(value: Any, schema: Any = None, id_: str = "q") -> dict[str, Any]:
    return {"id": id_, "value": value, **({} if schema is None else {"schema": schema})}


def _only(question: Any) -> FormField:
    (found,) = questions_of(question)
    return found.form


def _read(question: Any, **filled: str) -> Any:
    """The value that a form of one question gives."""
    found = questions_of(question)
    return read_answer(found, {name.replace("_", "."): text for name, text in filled.items()})


def _value(schema: Any, **filled: str) -> Any:
    named = {f"answer-0{name[1:]}": text for name, text in filled.items()}
    answer = read_answer(
        questions_of([_asked("?", schema)]),
        {name.replace("_", "."): text for name, text in named.items()},
    )
    return answer["resume"]["q"]


def test_a_question_without_an_id_takes_text() -> None:
    """The answer is the text itself, whatever the question is."""
    strange = [{"id": [1], "value": "Go?"}]
    for question in (
        "Go?",
        strange,
        {"ask": "Go?"},
        ["a", "b"],
        [{"id": 1, "value": 2, "more": 3}],
    ):
        assert read_answer(questions_of(question), {"answer": "yes"}) == "yes"


@pytest.mark.parametrize(
    "question", [[_asked("Go?")], [[_asked("Go?")]], _asked("Go?"), [[[_asked("Go?")]]]]
)
def test_the_answer_names_the_question(question: Any) -> None:
    """As each framework nests it."""
    assert read_answer(questions_of(question), {"answer-0": "yes"}) == {"resume": {"q": "yes"}}


def test_several_questions_have_an_answer_each() -> None:
    """In one answer; a question without an id next to others makes one form of all."""
    found = questions_of([[_asked("a", id_="1")], [_asked("b", {"type": "integer"}, "2")]])
    assert read_answer(found, {"answer-0": "x", "answer-1": "7"}) == {"resume": {"1": "x", "2": 7}}
    assert [each.id for each in questions_of([_asked("a"), {"value": "b"}])] == [None]
    assert [id_ for id_, _, _ in each_question([_asked("a"), {"value": "b"}])] == ["q", None]


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "boolean"}, "0", True),
        ({"type": "boolean"}, "1", False),
        ({"enum": ["a", 2, None]}, "2", None),
        ({"type": "integer"}, "-3", -3),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "string"}, "a\r\nb", "a\nb"),
        ({"type": "array"}, "[1]", [1]),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "0", True),
        ({"$ref": "#/$defs/Yes", "$defs": {"Yes": {"type": "boolean"}}}, "0", True),
        ({"type": "unheard of"}, '{"a": 1}', {"a": 1}),
    ],
)
def test_a_schema_gives_the_type_of_the_value(schema: Any, text: str, value: Any) -> None:
    """Of what a form has no fields for, it takes JSON."""
    found = _value(schema, _=text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "boolean"}, "2"),
        ({"type": "boolean"}, "yes"),
        ({"type": "boolean"}, ""),
        ({"type": "boolean"}, "\u0660"),
        ({"type": "integer"}, "1.5"),
        ({"type": "integer"}, "true"),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, "1e999"),
        ({"type": "string"}, "  "),
        ({"type": "array"}, "[1"),
        ({"type": "array"}, "[" * 100_000),
    ],
)
def test_what_does_not_fit_is_refused_by_the_name_of_the_field(schema: Any, text: str) -> None:
    """The error does not repeat the text."""
    with pytest.raises(UsageError, match="Answer") as refused:
        _value(schema, _=text)
    assert len(refused.value.message) < 200


def test_an_object_has_a_field_for_each_property() -> None:
    """An optional field that is empty is left out."""
    schema = {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "note": {"type": "string"},
            "to": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
        "required": ["ok"],
    }
    assert _value(schema, __0="1") == {"ok": False}
    assert _value(schema, __0="0", __1="fine", __2_0="ann") == {
        "ok": True,
        "note": "fine",
        "to": {"name": "ann"},
    }
    with pytest.raises(UsageError, match="ok"):
        _value(schema, __1="fine")


REVIEW = {
    "action_requests": [
        {"name": "refund", "args": {"amount": 120}},
        {"name": "mail", "args": {"to": "x"}},
    ],
    "review_configs": [
        {"action_name": "refund", "allowed_decisions": ["approve", "edit", "reject"]},
        {"action_name": "mail", "allowed_decisions": ["approve", "respond"]},
    ],
}


def test_a_review_of_tool_calls_has_a_decision_for_each() -> None:
    """As LangChain's middleware takes them."""
    found = questions_of([_asked(REVIEW)])
    rows = found[0].form.fields[0]
    assert rows.kind is FieldKind.ROWS
    refund, mail = rows.fields
    answer = read_answer(
        found,
        {
            refund.name: "1",
            refund.fields[1].fields[1].fields[1].name: '{"amount": 12}',
            mail.name: "1",
            mail.fields[1].fields[1].name: "sent by hand",
        },
    )
    assert answer["resume"]["q"] == {
        "decisions": [
            {"type": "edit", "edited_action": {"name": "refund", "args": {"amount": 12}}},
            {"type": "respond", "message": "sent by hand"},
        ]
    }
    approved = read_answer(found, {refund.name: "0", mail.name: "0"})
    assert approved["resume"]["q"] == {"decisions": [{"type": "approve"}, {"type": "approve"}]}
    with pytest.raises(UsageError, match="Message"):
        read_answer(found, {refund.name: "0", mail.name: "1"})


def test_alternatives_of_a_schema_are_one_choice() -> None:
    """Each has its own fields, and the constant that tells them apart."""
    schema = {
        "anyOf": [
            {"type": "object", "properties": {"type": {"const": "approve"}}, "required": ["type"]},
            {
                "type": "object",
                "properties": {"type": {"const": "reject"}, "message": {"type": "string"}},
                "required": ["type", "message"],
            },
        ]
    }
    assert _value(schema, _="0") == {"type": "approve"}
    assert _value(schema, _="1", __1_1="no") == {"type": "reject", "message": "no"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/a/b"},
        {"type": "object", "properties": {str(each): {"type": "string"} for each in range(200)}},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"enum": []},
        {"enum": list(range(1000))},
        {"type": "object", "properties": {"a": 5}},
        {"oneOf": 7, "type": ["string", "null"]},
        {},
    ],
)
def test_a_strange_schema_gives_a_field_for_json(schema: Any) -> None:
    """Neither circles nor thousands of fields: the data of a run decides nothing about a page."""
    assert _only([_asked("?", schema)]).kind is FieldKind.JSON


def test_labels_are_made_visible() -> None:
    """A schema cannot imitate another part of the page."""
    form = _only([_asked("?", {"type": "string", "title": "a\u202eb", "description": "c\x00"})])
    assert "\u202e" not in form.label
    assert "\x00" not in form.help
