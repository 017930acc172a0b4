# SPDX-License-Identifier: Apache-2.0
"""Objects of a framework become maps of their fields and come back, checked on both ways."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from sealpoint.adapters.field_forms import (
    REQUIRED,
    FieldForm,
    FieldKind,
    StoredAs,
    defaults_of,
    object_pair,
)
from sealpoint.errors import BytesMalformed, ValueNotAllowed, VersionUnknown


@dataclass
class Order:
    """A class of some framework."""

    number: int
    lines: list[str] = field(default_factory=list)
    note: str = "none"
    paid: bool = False
    raw: Any = None


@dataclass(slots=True)
class Slotted:
    """One whose fields lie in slots."""

    number: int
    lines: list[str] = field(default_factory=list)


_KINDS = {
    "number": FieldKind(types=(int,)),
    "lines": FieldKind(types=(list,), members=(str,)),
    "note": FieldKind(types=(str, type(None))),
}


def _pair(cls: type = Order, **named: Any) -> Any:
    return object_pair(FieldForm(cls, defaults_of(cls), kinds=_KINDS, dropped=["raw"], **named))


@pytest.mark.parametrize("cls", [Order, Slotted])
def test_a_form_has_what_differs_from_the_defaults(cls: Any) -> None:
    """Equal counts as the default, although it is another object; other types do not."""
    take, build = _pair(cls)

    assert take(cls(3)) == {"number": 3}
    assert take(cls(3, ["a"])) == {"number": 3, "lines": ["a"]}
    assert build({"number": 3}) == cls(3)
    assert build({"lines": ["a"], "number": 3}) == cls(3, ["a"])
    assert build({"number": 3}).lines is not build({"number": 3}).lines


def test_defaults_are_compared_by_what_they_say() -> None:
    """The same value gives the same form, however it was made; a value of another type is told."""
    take, _ = _pair()

    assert take(Order(3, note=str(b"none", "ascii"))) == {"number": 3}
    assert take(Order(3, paid=0, raw=object())) == {"number": 3, "paid": 0}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("number", "3", "expected int, found str"),
        ("lines", "ab", "expected list of str, found str"),
        ("lines", [1], "expected list of str, found list of others"),
        ("note", 3, "expected str or None, found int"),
    ],
)
def test_kinds_are_checked_on_both_ways(name: str, wrong: Any, told: str) -> None:
    """What could not be loaded is not saved; the message says what was found."""
    take, build = _pair()

    with pytest.raises(ValueNotAllowed) as saved:
        take(Order(**{"number": 3, name: wrong}))
    with pytest.raises(BytesMalformed) as loaded:
        build({"number": 3, name: wrong})
    assert saved.value.message == loaded.value.message == f"field {name!r}: {told}"


def test_a_form_is_complete_and_has_nothing_else() -> None:
    """Fields that are missing, unknown or never stored are refused, as is what is no map."""
    _, build = _pair()

    with pytest.raises(BytesMalformed, match="'number': its value is missing"):
        build({})
    with pytest.raises(VersionUnknown, match="found 'colour'") as told:
        build({"number": 3, "colour": "red"})
    assert "Install the version of tests" in told.value.hint
    with pytest.raises(BytesMalformed, match="'raw': expected that it is not stored"):
        build({"number": 3, "raw": 1})
    for other in ([3], {3: 3}, None):
        with pytest.raises(BytesMalformed, match="names as keys"):
            build(other)


def test_an_object_that_is_not_as_declared_is_refused() -> None:
    """An attribute that was added or taken away is not lost in silence; the order is no matter."""
    take, _ = _pair()
    more, fewer, turned = Order(3), Order(3), Order(3, ["a"])
    more.colour = "red"  # type: ignore[attr-defined]
    del fewer.paid
    vars(turned)["number"] = vars(turned).pop("number")

    with pytest.raises(ValueNotAllowed, match="'colour'"):
        take(more)
    with pytest.raises(ValueNotAllowed, match="'paid': it is not set"):
        take(fewer)
    assert take(turned) == {"number": 3, "lines": ["a"]}


def test_a_field_may_be_stored_as_something_else() -> None:
    """And objects as a whole may be looked at, before they are stored and after."""
    stored = {"note": StoredAs(encode=str.upper, decode=str.lower)}
    take, build = _pair(
        stored_as=stored, fault=lambda form: "no" if form.get("note") == "bad" else None
    )

    assert take(Order(3, note="good")) == {"number": 3, "note": "GOOD"}
    assert build({"number": 3, "note": "GOOD"}).note == "good"
    with pytest.raises(ValueNotAllowed, match="no"):
        take(Order(3, note="bad"))
    with pytest.raises(BytesMalformed, match="no"):
        build({"number": 3, "note": "BAD"})


def test_a_default_that_is_made_anew_each_time_is_no_default() -> None:
    """Two objects that were made without it are not equal, so it is stored."""

    @dataclass
    class Numbered:
        number: list[int] = field(default_factory=lambda: [1])

    assert defaults_of(Numbered) == {"number": REQUIRED}
