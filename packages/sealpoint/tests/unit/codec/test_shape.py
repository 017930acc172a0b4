# SPDX-License-Identifier: Apache-2.0
"""The shape digest changes when a class does, and only then."""

import sys
import types
import typing
from dataclasses import dataclass, field, make_dataclass
from typing import Annotated, Any, Dict, List, Literal, Optional, Union  # noqa: UP035 # compared

import attrs
import msgspec
import pydantic
import pytest

from sealpoint import Registry
from sealpoint.codec._class_shape import annotation_text
from sealpoint.errors import ShapeChanged

_FUTURE = """
from __future__ import annotations
from dataclasses import dataclass
from typing import Optional

@dataclass
class Thing:
    a: int
    b: Optional[list[int]] = None
"""


class _Named(typing.NamedTuple):
    a: int
    b: int


def _shape(cls: type) -> bytes:
    registry = Registry()
    registry.allow(cls, name="app.thing")
    return registry.rules[0].kind.shape.digest


def _of(**annotations: Any) -> type:
    return make_dataclass("Thing", list(annotations.items()))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Optional[int], int | None),  # noqa: UP045
        (Union[int, str], int | str),  # noqa: UP007
        (List[int], list[int]),  # noqa: UP006
        (Dict[str, List[int]], dict[str, list[int]]),  # noqa: UP006
        (Annotated[int, "note"], int),
        (typing.Any, Any),
        ("int", int),
        ("list[int]", list[int]),
        (Optional[List[int]], list[int] | None),  # noqa: UP006, UP045
    ],
    ids=str,
)
def test_two_spellings_of_one_meaning_have_one_shape(one: Any, other: Any) -> None:
    """Old and new spellings of an annotation leave stored data readable."""
    assert _shape(_of(a=one)) == _shape(_of(a=other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (int, str),
        (list[int], list[str]),
        (int | None, int),
        (Literal["a"], Literal["b"]),
        (dict[str, int], dict[int, str]),
        (tuple[int, ...], tuple[int]),
    ],
    ids=str,
)
def test_another_meaning_has_another_shape(one: Any, other: Any) -> None:
    """A changed annotation changes the shape."""
    assert _shape(_of(a=one)) != _shape(_of(a=other))


def test_names_order_and_kind_are_part_of_the_shape() -> None:
    """Renamed, reordered, added and removed fields change it, and so does another kind of class."""
    shapes = [
        _shape(_of(a=int, b=int)),
        _shape(_of(b=int, a=int)),
        _shape(_of(a=int)),
        _shape(_of(a=int, b=int, c=int)),
        _shape(_of(a=int, bb=int)),
        _shape(attrs.make_class("Thing", {"a": attrs.field(type=int), "b": attrs.field(type=int)})),
        _shape(msgspec.defstruct("Thing", [("a", int), ("b", int)])),
        _shape(pydantic.create_model("Thing", a=(int, ...), b=(int, ...))),
        _shape(_Named),
    ]

    assert len(set(shapes)) == len(shapes)


def test_module_class_name_defaults_and_methods_are_not_part_of_the_shape() -> None:
    """A class that moved, was renamed, or got other defaults or methods reads its old data."""

    @dataclass
    class Renamed:
        a: int = 5
        b: list[int] = field(default_factory=list)

        def method(self) -> int:
            """Do something."""
            return self.a

    moved = _of(a=int, b=list[int])
    moved.__module__ = "elsewhere.entirely"

    assert _shape(Renamed) == _shape(moved)


def test_a_type_of_the_application_is_known_by_its_name_alone() -> None:
    """An annotation's module is no part of the shape."""
    here = type("Part", (), {"__module__": "here"})
    there = type("Part", (), {"__module__": "there"})

    assert annotation_text(here) == annotation_text(there) == "Part"
    assert _shape(_of(a=list[here])) == _shape(_of(a=list[there]))  # type: ignore[valid-type]


def _thing_in_module(monkeypatch: pytest.MonkeyPatch, name: str, source: str) -> type:
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(source, vars(module))  # noqa: S102 # the future import works per module
    thing: type = module.Thing
    return thing


def test_future_annotations_leave_the_shape_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """`from __future__ import annotations` changes nothing that is stored."""
    plain = _FUTURE.replace("from __future__ import annotations", "")

    assert _shape(_thing_in_module(monkeypatch, "with_future", _FUTURE)) == _shape(
        _thing_in_module(monkeypatch, "without_future", plain)
    )


def test_a_name_that_only_a_type_checker_sees_is_taken_as_text() -> None:
    """An annotation that cannot be resolved does not keep a class from being allowed."""
    unresolved = _of(a="Nowhere", b=int)

    assert _shape(unresolved) == _shape(_of(a="Nowhere", b=int))
    assert _shape(unresolved) != _shape(_of(a="Elsewhere", b=int))


def test_a_class_that_changed_and_kept_its_version_is_refused() -> None:
    """The error says that the class changed, which one, and what to do."""
    before, after = Registry(), Registry()
    before.allow(_of(a=int), name="app.thing")
    changed = _of(a=int, b=int)
    after.allow(changed, name="app.thing")
    data = before.encode([before.rules[0].cls(1)])

    with pytest.raises(ShapeChanged) as caught:
        after.decode(data)

    assert "app.thing version 1" in str(caught.value)
    assert caught.value.message.endswith("'b' is new without a default")
    assert 'name="app.thing", version=2, upgrade={1: from_v1})' in caught.value.hint


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "int"),
        (None, "None"),
        (type(None), "None"),
        (int | None, "int|None"),
        (list[int], "list[int]"),
        (tuple[int, ...], "tuple[int,...]"),
        (Literal["a", 1], "Literal['a',1]"),
        (typing.Callable[[int], str], "Callable[[int],str]"),
        ("  list [ int ] ", "list[int]"),
        (typing.ForwardRef("Some . Thing"), "Some.Thing"),
        (Any, "Any"),
        (typing.TypeVar("T"), "T"),
    ],
    ids=str,
)
def test_the_text_of_an_annotation_is_fixed(annotation: Any, text: str) -> None:
    """These texts are part of stored data; a change here changes every digest."""
    assert annotation_text(annotation) == text


def test_the_digest_of_a_shape_is_frozen() -> None:
    """The bytes of one digest, so that the way of making them cannot change unseen."""
    assert _shape(_of(a=int, b=list[str])).hex() == "e6ca4579f70e7de8"
