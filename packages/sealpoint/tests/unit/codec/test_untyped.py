# SPDX-License-Identifier: Apache-2.0
"""Values of types without a rule, shown as plain data: nothing of an application runs."""

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import pydantic
import pytest

from sealpoint.codec import Registry, UntypedValue
from sealpoint.errors import BytesMalformed, TypeNotAllowed, UnknownType


@dataclass
class Plan:
    """A type of an application."""

    steps: list[Any]


class Colour(Enum):
    """A type with one value."""

    RED = "red"


class Open(pydantic.BaseModel, extra="allow"):
    """A type that takes fields which it does not declare."""

    name: str


class Money:
    """A type with an encoder of its own."""

    def __init__(self, amount: Decimal) -> None:
        self.amount = amount


def _writer() -> Registry:
    registry = Registry()
    registry.allow(Plan, name="shop.plan", version=3)
    registry.allow(Colour, name="shop.colour")
    registry.allow(Open, name="other.open")
    registry.allow(Money, name="shop.money", encode=lambda money: money.amount, decode=Money)
    return registry


def test_every_kind_of_class_is_shown_by_its_fields() -> None:
    """A dataclass, an enum, a model with extra fields, and a class with an encoder."""
    value = [Plan([Plan([1])]), Colour.RED, Open(name="a", more=2), Money(Decimal("1.5"))]  # type: ignore[call-arg]
    reader = Registry().showing_untyped("")
    plan, colour, model, money = reader.decode(_writer().encode(value))

    inner = UntypedValue(name="shop.plan", version=3, fields={"steps": [1]})
    assert plan == UntypedValue(name="shop.plan", version=3, fields={"steps": [inner]})
    assert (colour.name, colour.fields) == ("shop.colour", {"name": "RED"})
    assert model.fields == {"name": "a", "more": 2}
    assert money.fields == {"value": Decimal("1.5")}
    assert reader.encode(plan) != reader.encode(inner)


def test_only_names_that_begin_as_told_are_shown() -> None:
    """The others are refused as before, and a rule comes first."""
    data = _writer().encode(Plan([]))
    with pytest.raises(UnknownType):
        Registry().showing_untyped("other.").decode(data)

    assert Registry().showing_untyped("other.", "shop.").decode(data).name == "shop.plan"
    assert _writer().showing_untyped("").decode(data) == Plan([])


def test_the_registry_that_was_asked_stays_as_it_was() -> None:
    """An application's registry, looked through once, still refuses, and may still write."""
    registry = Registry()
    reader = registry.showing_untyped("")

    assert (reader.shows_untyped, registry.shows_untyped) == (True, False)
    with pytest.raises(UnknownType):
        registry.decode(_writer().encode(Plan([])))
    with pytest.raises(TypeNotAllowed):
        registry.encode(reader.decode(_writer().encode(Plan([]))))


@pytest.mark.parametrize("name", ["untyped", "sealpoint.untyped"])
def test_no_stored_name_says_that_a_value_has_another_type(name: str) -> None:
    """Whoever writes the bytes cannot choose under which type they are shown."""
    writer = Registry()
    writer.allow(UntypedValue, name=name)
    data = writer.encode(UntypedValue(name="shop.plan", version=3, fields={}))

    assert Registry().showing_untyped("").decode(data).name == name


def test_what_an_encode_function_returned_is_shown_whatever_it_is() -> None:
    """A dict whose keys are no names of fields is one value."""
    writer = Registry()
    writer.allow(Plan, name="shop.plan", encode=lambda _: {1: "one"}, decode=lambda _: Plan([]))

    shown = Registry().showing_untyped("").decode(writer.encode(Plan([])))
    assert shown == UntypedValue(name="shop.plan", version=1, fields={"value": {1: "one"}})


@pytest.mark.parametrize("body", [7, [], [{}, {1: 2}]])
def test_what_is_no_body_is_refused(body: Any) -> None:
    """Bytes that no encoder wrote are malformed, whatever they are shown as."""
    with pytest.raises(BytesMalformed):
        UntypedValue.of("shop.plan", 1, body)
