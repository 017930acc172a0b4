# SPDX-License-Identifier: Apache-2.0
"""Stored data says which fields it has, and can do nothing else with that.

Whoever may write a thread can write any shape: it is no secret. So a shape that fits its fields
must not open a way to set what the class does not have, to leave out what it needs, or to have
something called that data names.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from enum import Enum
from typing import Any

import ormsgpack
import pytest

from sealpoint import Registry
from sealpoint.codec._class_shape import ClassShape
from sealpoint.errors import BytesMalformed, DecodeError, ShapeChanged
from tests.wire import extension

CALLED: list[str] = []


def _factory() -> list[str]:
    CALLED.append("factory")
    return []


class _Shouting(Enum):
    """A default whose every hook would be noticed."""

    MEMBER = 1

    def __deepcopy__(self, memo: Any) -> Any:
        CALLED.append("copy")
        return self

    def __eq__(self, other: object) -> bool:
        CALLED.append("eq")
        return True

    def __hash__(self) -> int:
        CALLED.append("hash")
        return 1


_DEFAULT = _Shouting.MEMBER
_OWNER = object()


@dataclass
class Payment:
    """What an attacker would like to bend."""

    amount: int
    approved: bool
    note: str = "none"
    mark: Any = _DEFAULT
    tags: list[str] = field(default_factory=list)


@dataclass
class Noisy:
    """A class with an object and a factory of its own."""

    amount: int
    owner: Any = _OWNER
    made: list[str] = field(default_factory=_factory)

    def __post_init__(self) -> None:
        CALLED.append("__post_init__")


def _registry() -> Registry:
    registry = Registry()
    registry.allow(Payment, name="app.payment")
    registry.allow(Noisy, name="app.noisy")
    return registry


_ANNOTATIONS = {
    "amount": "int",
    "approved": "bool",
    "note": "str",
    "mark": "Any",
    "tags": "list[str]",
    "made": "list[str]",
}


def _forged(name: str, fields: dict[str, Any], *, body: bytes | None = None) -> bytes:
    """A value whose shape fits exactly the fields that it has."""
    texts = {each: _ANNOTATIONS.get(each, "str") for each in fields}
    label = bytes((len(name),)) + name.encode() + b"\0\1" + ClassShape("dataclass", texts).digest
    return extension(1, label + (b"\x91" + ormsgpack.packb(fields) if body is None else body))


_GOOD = {"amount": 1, "approved": False}


def test_a_fitting_shape_with_all_it_needs_is_loaded() -> None:
    """The control: what is refused below is refused for what it says, and not for its form."""
    value = _registry().decode(_forged("app.payment", _GOOD))

    assert (value.amount, value.approved, value.note, value.tags) == (1, False, "none", [])
    assert value.mark is _DEFAULT


@pytest.mark.parametrize(
    "foreign",
    [
        "owner",
        "__class__",
        "__dict__",
        "__init__",
        "__post_init__",
        "mark.x",
        "",
        "Amount",
        "note\0",
    ],
)
def test_a_field_that_the_class_does_not_have_is_never_set(foreign: str) -> None:
    """Neither one that went nor one that never was: it is not dropped either."""
    with pytest.raises(ShapeChanged, match="went"):
        _registry().decode(_forged("app.payment", {**_GOOD, foreign: "x"}))


@pytest.mark.parametrize("kept", [("amount",), ("approved",), ("note", "tags"), ()], ids=str)
def test_a_field_without_a_default_cannot_be_left_out(kept: tuple[str, ...]) -> None:
    """An object that its class could not have made is not made."""
    whole = {"amount": 1, "approved": False, "note": "x", "tags": []}
    with pytest.raises(ShapeChanged, match="new without a default"):
        _registry().decode(_forged("app.payment", {name: whole[name] for name in kept}))


def test_a_field_cannot_come_twice() -> None:
    """Which of two values counts is never a question: the number of fields is proven."""
    body = b"\x91\x83\xa6amount\1\xa8approved\xc2\xa6amount\2"
    with pytest.raises(BytesMalformed):
        _registry().decode(_forged("app.payment", _GOOD, body=body))


@pytest.mark.parametrize(
    "body",
    [
        b"\x92\x82\xa6amount\1\xa8approved\xc2\xc0",
        b"\x91\xde\0\2\xa6amount\1\xa8approved\xc2",
        b"\x91\x92\1\2",
        b"\x91\xc0",
        b"\x90",
        b"\xc0",
    ],
    ids=["two parts", "long map", "list", "nil", "empty", "no list"],
)
def test_another_form_of_body_is_refused(body: bytes) -> None:
    """An older shape is no way around the form."""
    with pytest.raises(DecodeError):
        _registry().decode(_forged("app.payment", _GOOD, body=body))


def test_loading_an_older_shape_runs_no_code_of_the_application() -> None:
    """No factory, constructor, copy, comparison or hash; what would need them is no default."""
    registry = _registry()
    CALLED.clear()
    registry.decode(_forged("app.payment", _GOOD))
    with pytest.raises(ShapeChanged, match="'owner', 'made' are new without a default"):
        registry.decode(_forged("app.noisy", {"amount": 1}))

    assert CALLED == []


@pytest.mark.parametrize("name", ["list", "builtins.list", "tests._factory", "_factory"])
def test_data_cannot_name_a_factory(name: str) -> None:
    """A text in a field, or in place of one, stays a text."""
    CALLED.clear()
    value = _registry().decode(_forged("app.payment", {**_GOOD, "note": name}))

    assert value.note == name
    assert value.tags == []
    assert CALLED == []


def test_a_shape_that_does_not_fit_its_fields_is_refused(
    mutated: Callable[[bytes], list[bytes]],
) -> None:
    """No other eight bytes let the same fields pass: each single bit that is turned is noticed."""
    data = _forged("app.payment", _GOOD)
    start = data.index(b"app.payment") + len(b"app.payment") + 2
    registry = _registry()
    for changed in mutated(data[start : start + 8]):
        with pytest.raises(ShapeChanged):
            registry.decode(data[:start] + changed + data[start + 8 :])


@pytest.fixture
def mutated() -> Callable[[bytes], list[bytes]]:
    """Every byte string that differs in one bit."""

    def turned(data: bytes) -> list[bytes]:
        number = int.from_bytes(data, "big")
        return [(number ^ 1 << bit).to_bytes(len(data), "big") for bit in range(8 * len(data))]

    return turned


def test_many_shapes_cost_a_bounded_memory() -> None:
    """Only shapes that fit are remembered, and only so many."""
    registry = _registry()
    for order in range(200):
        names = ["amount", "approved", *(["note"] if order % 2 else []), "tags"]
        fields = {
            name: _forged_value(name) for name in sorted(names, key=lambda n: hash((n, order)))
        }
        registry.decode(_forged("app.payment", fields))
    with pytest.raises(ShapeChanged):
        registry.decode(_forged("app.payment", {"amount": 1}))
    rule = next(rule for rule in registry.rules if rule.name == "app.payment")

    assert 0 < len(rule.fitting) <= 64


def _forged_value(name: str) -> Any:
    return {"amount": 1, "approved": True, "note": "x", "tags": []}[name]


class Loud:
    """An object that fails when any of its own code runs, but for its hash as a key."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    def __hash__(self) -> int:
        return 1

    def __format__(self, spec: str) -> str:
        raise AssertionError("told")

    def __repr__(self) -> str:
        raise AssertionError("told")


@pytest.mark.parametrize(
    "name", [7, None, ("a",), b"a", Loud()], ids=["int", "none", "tuple", "bytes", "object"]
)
def test_a_field_whose_name_is_no_text_is_refused_and_runs_nothing(name: Any) -> None:
    """Stored bytes may hold any value as a key, also an object that has methods of its own."""
    registry = Registry()
    registry.allow(make_dataclass("Held", [("a", Any)]), name="held")
    (rule,) = registry.rules

    with pytest.raises(BytesMalformed, match="expected fields by name"):
        rule.fields_added(bytes(8), [{name: 1}])
