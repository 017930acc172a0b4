# SPDX-License-Identifier: Apache-2.0
"""A class that changed: what loads by itself, what is refused, and that the printed code works."""

import dataclasses
import enum
import itertools
from collections.abc import Callable
from typing import Any

import attrs
import pydantic
import pytest

from sealpoint import Registry
from sealpoint.errors import RuleFailed, ShapeChanged
from tests.blobs import Blobs
from tests.changed_classes import MAKERS, make_attrs, make_dataclass, make_pydantic, make_struct

_Fields = list[tuple[Any, ...]]
_NAME = "app.thing"


_every_kind = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
_OLD = (("number", str), ("total", int))


def _registry(cls: type, **rule: Any) -> Registry:
    registry = Registry()
    registry.allow(cls, name=_NAME, **rule)
    return registry


def _stored(make: Callable[..., type], *fields: Any, **values: Any) -> bytes:
    cls = make(*(fields or _OLD))
    return _registry(cls).encode([cls(**(values or {"number": "7", "total": 12}))])


@_every_kind
def test_a_field_added_with_a_default_loads_by_itself(make: Callable[..., type]) -> None:
    """The object is the one that the class makes without the field, and the field is told."""
    cls = make(*_OLD, ("note", str, "none"))
    told: list[tuple[str, tuple[str, ...]]] = []
    (value,) = _registry(cls).decode(_stored(make), on_added=lambda *each: told.append(each))

    assert value == cls(number="7", total=12)
    assert value.note == "none"
    assert told == [(_NAME, ("note",))]


@_every_kind
def test_what_was_loaded_by_default_is_saved_like_any_other(make: Callable[..., type]) -> None:
    """The next save stores the new shape, and nothing is told when that is loaded."""
    registry = _registry(make(*_OLD, ("note", str, "none")))
    told: list[Any] = []
    value = registry.decode(_stored(make))
    again = registry.decode(registry.encode(value), on_added=lambda *each: told.append(each))

    assert again == value
    assert told == []


@pytest.mark.parametrize(
    "factory", [list, dict, set, tuple, frozenset, str, int], ids=lambda each: each.__name__
)
@pytest.mark.parametrize("make", [m for n, m in MAKERS.items() if n != "namedtuple"])
def test_a_builtin_factory_is_a_default(make: Callable[..., type], factory: Any) -> None:
    """Each object gets an empty container of its own."""
    registry = _registry(make(*_OLD, ("tags", Any, factory)))
    (one,), (other,) = (registry.decode(_stored(make)) for _ in range(2))

    assert one.tags == factory()
    assert factory not in (list, dict, set) or one.tags is not other.tags


@pytest.mark.parametrize("make", [m for n, m in MAKERS.items() if n != "namedtuple"])
def test_a_factory_of_the_application_is_no_default(make: Callable[..., type]) -> None:
    """It is code, which loading does not run; a rule that validates lets it run."""
    counter = itertools.count(1)
    cls = make(*_OLD, ("id", int, lambda: next(counter)))
    with pytest.raises(ShapeChanged, match="'id' is new without a default"):
        _registry(cls).decode(_stored(make))
    assert next(counter) == 1

    (value,) = _registry(cls, validate=True).decode(_stored(make))

    assert value.id == 2


@_every_kind
def test_fields_in_another_order_load_by_themselves(make: Callable[..., type]) -> None:
    """Fields are known by their names."""
    cls = make(_OLD[1], _OLD[0])
    (value,) = _registry(cls).decode(_stored(make))

    assert value == cls(total=12, number="7")


@_every_kind
@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ([_OLD[0]], "'total' went"),
        ([_OLD[1]], "'number' went"),
        ([*_OLD, ("note", str)], "'note' is new without a default"),
        ([_OLD[0], ("sum", int)], "'total' went; 'sum' is new without a default"),
        ([_OLD[0], ("sum", int, 0)], "'total' went"),
        ([_OLD[0], ("total", float)], "'total' had another annotation, now float"),
        ([("number", int), _OLD[1], ("n", int, 0)], "'number' had another annotation, now int"),
        (
            [("number", int), ("total", str)],
            "more than one of 'number', 'total' had another annotation",
        ),
        ([("total", float)], "'number' went; others may have had another annotation"),
        ([("other", int, 0)], "'number', 'total' went"),
    ],
    ids=str,
)
def test_every_other_change_is_refused_by_name(
    make: Callable[..., type], fields: _Fields, what: str
) -> None:
    """The message says which fields changed, and how."""
    with pytest.raises(ShapeChanged) as caught:
        _registry(make(*fields)).decode(_stored(make))

    assert caught.value.message == f"app.thing version 1: Thing changed since it was stored: {what}"


@_every_kind
@pytest.mark.parametrize(
    "fields",
    [
        [_OLD[0]],
        [*_OLD, ("note", str)],
        [_OLD[0], ("sum", int), ("more", int, 0)],
        [("number", int), ("total", str)],
    ],
    ids=str,
)
def test_the_printed_code_works_as_it_is(make: Callable[..., type], fields: _Fields) -> None:
    """Pasted without a change, its rule loads the old value and saves the new one."""
    cls = make(*fields)
    with pytest.raises(ShapeChanged) as caught:
        _registry(cls).decode(_stored(make))
    registry = _pasted(caught.value.hint, cls)
    (value,) = registry.decode(_stored(make))

    assert type(value) is cls
    assert registry.decode(registry.encode(value)) == value


def _pasted(hint: str, cls: type) -> Registry:
    """The registry that printed code makes, in a program that has the class and a URL."""
    code = hint.partition("\n\n")[2]
    lines = [line for line in code.splitlines() if not line.startswith("from ")]
    scope: dict[str, Any] = {cls.__name__: cls, "url": "memory:"}
    exec("\n".join(lines), scope)  # noqa: S102 # the code is there to be pasted
    scope["store"].close()
    found: Registry = scope["registry"]
    return found


def test_an_upgrade_that_is_there_stays_in_the_printed_rule() -> None:
    """The next version's rule has the older steps too."""

    def to_version_2(fields: dict[str, Any]) -> dict[str, Any]:
        return fields

    old, new = make_dataclass(*_OLD), make_dataclass(_OLD[0])
    writer = _registry(old, version=2, upgrade={1: to_version_2})
    with pytest.raises(ShapeChanged) as caught:
        _registry(new, version=2, upgrade={1: to_version_2}).decode(writer.encode(old("7", 12)))

    assert "version=3, upgrade={1: to_version_2, 2: from_v2})" in caught.value.hint


def test_an_upgrade_may_leave_out_what_has_a_default() -> None:
    """A field with a default needs no line in an upgrade; one without is still asked for."""
    cls = make_struct(("number", str), ("note", str, "none"), ("sum", int))
    right = _registry(cls, version=2, upgrade={1: lambda old: {"number": old["number"], "sum": 1}})
    wrong = _registry(cls, version=2, upgrade={1: lambda old: {"number": old["number"]}})

    assert right.decode(_stored(make_struct)) == [cls(number="7", note="none", sum=1)]
    with pytest.raises(RuleFailed, match="'sum' missing and 0 unknown"):
        wrong.decode(_stored(make_struct))


def test_another_kind_of_class_is_refused() -> None:
    """A dataclass that became a pydantic model is said to be one."""
    with pytest.raises(ShapeChanged, match="it was of another kind and is a pydantic model now"):
        _registry(make_pydantic(*_OLD)).decode(_stored(make_dataclass))


def test_a_model_does_not_count_an_added_field_as_given() -> None:
    """What was given before stays given, extra fields included."""

    class Old(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        a: int = 0
        b: int = 0

    class New(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        added: int = 5
        a: int = 0
        b: int = 0

    data = _registry(Old).encode(Old(b=2, other=3))  # type: ignore[call-arg]
    value = _registry(New).decode(data)

    assert value == New(b=2, other=3)  # type: ignore[call-arg]
    assert value.model_fields_set == {"b", "other"}


def test_a_changed_class_inside_another_is_named_with_its_place() -> None:
    """The error names the class that changed, and what it lies inside of."""
    inner, outer = make_dataclass(*_OLD), dataclasses.make_dataclass("Outer", [("things", list)])
    before, after = _registry(inner), _registry(make_dataclass(_OLD[0]))
    for registry in (before, after):
        registry.allow(outer, name="app.outer")
    with pytest.raises(ShapeChanged) as caught:
        after.decode(before.encode(outer([inner("7", 12)])))

    assert caught.value.message.endswith("stored: 'total' went, inside app.outer")


def test_a_member_that_an_enum_lost_is_named_with_its_upgrade() -> None:
    """An enum may get members; one that went is refused, and the printed code brings it back."""
    make: Any = enum.Enum
    old, more, fewer = (
        make("Thing", names) for names in ("OPEN DONE", "NEW OPEN DONE", "NEW DONE")
    )
    data = _registry(old).encode(old.OPEN)

    assert _registry(more).decode(data) is more.OPEN
    with pytest.raises(ShapeChanged, match="the member 'OPEN' went") as caught:
        _registry(fewer).decode(data)
    assert _pasted(caught.value.hint, fewer).decode(data) is fewer.NEW


def test_names_that_are_none_are_not_shown() -> None:
    """What cannot be a name in the application's code is not printed into a log."""
    cls = make_pydantic()
    fields = {"import os": (int, 1), "x" * 61: (int, 2)}
    writer = pydantic.create_model("Thing", **fields)  # type: ignore[call-overload]
    with pytest.raises(ShapeChanged) as caught:
        _registry(cls).decode(_registry(writer).encode(writer()))

    assert "'(another)', '(another)' went" in str(caught.value)
    assert "import os" not in str(caught.value) + caught.value.hint


def test_long_fields_of_an_older_shape_come_back_from_a_tree() -> None:
    """Fields that are a reference are completed like others."""
    fields = [(f"field_{place}", str) for place in range(40)]
    old, new = make_dataclass(*fields), make_dataclass(*fields, ("more", int, 1))
    blobs = Blobs()
    values = {name: f"{place}" * 4_000 for place, (name, _) in enumerate(fields)}
    root = _registry(old).encode_tree(old(**values), blobs.put)

    assert _registry(new).decode_tree(root, blobs.get) == new(**values)


def test_what_the_class_would_still_change_is_no_default() -> None:
    """A default that a converter, validator or `__post_init__` works on is not the value."""

    @dataclasses.dataclass
    class Computed:
        number: str
        total: int
        slug: str = dataclasses.field(default="", init=False)

        def __post_init__(self) -> None:
            self.slug = self.number.lower()

    converted = attrs.make_class(
        "Thing",
        {
            **{name: attrs.field(type=kind) for name, kind in _OLD},
            "slug": attrs.field(type=int, default="7", converter=int),
        },
    )

    class Checked(make_pydantic(*_OLD)):  # type: ignore[misc]
        slug: int = pydantic.Field(default="7", validate_default=True)

    for make, cls in (
        (make_dataclass, Computed),
        (make_attrs, converted),
        (make_pydantic, Checked),
    ):
        with pytest.raises(ShapeChanged, match="'slug' is new without a default"):
            _registry(cls).decode(_stored(make))
