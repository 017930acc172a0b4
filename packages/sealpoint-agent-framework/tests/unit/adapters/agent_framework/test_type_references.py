# SPDX-License-Identifier: Apache-2.0
"""A type that a request refers to is stored by a name of ours, and found by that name alone."""

import collections.abc
import datetime as dt
import decimal
import pathlib
import typing
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NewType, Optional, TypeVar, Union

import numpy as np
import pytest
from agent_framework import AgentResponse, Content, Message, WorkflowEvent
from pydantic import BaseModel

from sealpoint.codec import Registry
from sealpoint.errors import DecodeError, TypeNotAllowed
from sealpoint_agent_framework._type_references import TypeReferences
from tests.unit.adapters.agent_framework.samples import registry

T = TypeVar("T")


@dataclass
class Decision:
    """A type of the application."""

    approved: bool


@dataclass
class Box(Generic[T]):
    """A generic one."""

    held: T


class Page(BaseModel, Generic[T]):
    """A generic model, whose parameters make classes."""

    rows: list[T]


def _references(*types: type) -> TypeReferences:
    allowed = registry()
    for place, each in enumerate(types):
        allowed.allow(each, name=f"shop.type-{place}")
    return TypeReferences(allowed)


@pytest.mark.parametrize(
    ("reference", "form"),
    [
        (str, "str"),
        (type(None), "NoneType"),
        (Any, "Any"),
        (object, "object"),
        (dt.datetime, "datetime"),
        (decimal.Decimal, "Decimal"),
        (pathlib.Path, "Path"),
        (list, "list"),
        (list[str], {"of": ["list", "str"]}),
        (dict[str, list[int]], {"of": ["dict", "str", {"of": ["list", "int"]}]}),
        (tuple[int, ...], {"of": ["tuple", "int", "..."]}),
        (tuple[()], {"of": ["tuple"]}),
        (typing.List[str], {"of": ["typing.List", "str"]}),  # noqa: UP006
        (typing.List, "typing.List"),  # noqa: UP006
        (collections.abc.Sequence[str], {"of": ["abc.Sequence", "str"]}),
        (typing.Sequence[str], {"of": ["typing.Sequence", "str"]}),
        (str | None, {"union": ["str", "NoneType"]}),
        (Optional[str], {"typing.Union": ["str", "NoneType"]}),  # noqa: UP045
        (Union[str, list[int]], {"typing.Union": ["str", {"of": ["list", "int"]}]}),  # noqa: UP007
        (Literal["yes", 1, True], {"literal": ["yes", 1, True]}),
        (Message, {"rule": "agent_framework.message"}),
        (list[Message], {"of": ["list", {"rule": "agent_framework.message"}]}),
        (AgentResponse[Any], {"of": [{"rule": "agent_framework.agent-response"}, "Any"]}),
        (Decision, {"rule": "shop.type-0"}),
        (Decision | None, {"union": [{"rule": "shop.type-0"}, "NoneType"]}),
        (Box[int], {"of": [{"rule": "shop.type-1"}, "int"]}),
    ],
    ids=str,
)
def test_a_type_is_stored_by_name(reference: Any, form: Any) -> None:
    """The names are fixed, since they are in stored data; what comes back is equal."""
    references = _references(Decision, Box)

    assert references.encode(reference) == form
    assert references.decode(form) == reference
    assert type(references.decode(form)) is type(reference)


def test_an_event_comes_back_with_its_types() -> None:
    """The framework finds the same types in it, and a copy of the registry is not needed."""
    allowed = registry()
    event = WorkflowEvent.request_info("r1", "clerk", Content.from_text("a"), dict[str, Decision])
    with pytest.raises(TypeNotAllowed):
        allowed.encode(event)
    allowed.allow(Decision, name="shop.decision")  # rules may come later than the framework's
    found = allowed.decode(allowed.encode(event))

    assert found.request_type is Content
    assert found.response_type == dict[str, Decision]


def test_a_type_without_a_rule_is_refused_with_the_line_that_allows_it() -> None:
    """When it is saved; the line does what it says."""
    allowed = registry()
    event = WorkflowEvent.request_info("r1", "clerk", 42, list[Decision])

    with pytest.raises(TypeNotAllowed, match=r"test_type_references\.Decision") as told:
        allowed.encode({"pending": {"r1": event}})
    assert '["pending"]["r1"]' in told.value.message
    line = told.value.hint.removeprefix("Write: ").splitlines()[0].partition("  #")[0]
    assert line == 'registry.allow(Decision, name="test_type_references.decision")'
    exec(line, {"registry": allowed, "Decision": Decision})  # noqa: S102 - followed literally
    assert allowed.decode(allowed.encode(event)).response_type == list[Decision]


@pytest.mark.parametrize(
    "reference",
    [
        Annotated[str, "note"],
        NewType("Name", str),
        T,
        collections.abc.Callable[[int], str],
        Literal[b"a", decimal.ROUND_UP] | type,
        Page[int],
        np.ndarray,
        type,
        "str",
        3,
        tuple[tuple(int for _ in range(99))],  # type: ignore[misc]
    ],
    ids=str,
)
def test_what_has_no_name_is_refused(reference: Any) -> None:
    """Nothing is stored that could not be found again, and the hint says what to do."""
    with pytest.raises(TypeNotAllowed) as told:
        _references(Page).encode(reference)

    assert told.value.hint


def test_a_model_with_parameters_of_its_own_is_a_class_like_any_other() -> None:
    """`Page[int]` is a class; with a rule it is found by its name."""
    allowed = Registry()
    allowed.allow(Page[int], name="shop.page")
    references = TypeReferences(allowed)

    assert references.decode(references.encode(Page[int])) is Page[int]


def test_arguments_are_given_only_to_what_python_itself_makes() -> None:
    """Data cannot have a class run code by giving it arguments."""
    with pytest.raises(DecodeError):
        _references(Page).decode({"of": [{"rule": "shop.type-0"}, "int"]})


def test_a_deep_type_is_refused_both_ways() -> None:
    """There is a bound on types in one another."""
    deep: Any = int
    form: Any = "int"
    for _ in range(40):
        deep, form = list[deep], {"of": ["list", form]}

    with pytest.raises(TypeNotAllowed):
        _references().encode(deep)
    with pytest.raises(DecodeError):
        _references().decode(form)


def test_a_format_of_a_response_may_be_a_schema() -> None:
    """A JSON schema comes back as it was, a type as a type."""
    references = _references(Decision)
    schema = {"type": "object", "rule": "shop.type-0"}

    assert references.decode_format(references.encode_format(schema)) == schema
    assert references.decode_format(references.encode_format(Decision)) is Decision
