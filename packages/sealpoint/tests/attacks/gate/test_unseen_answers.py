# SPDX-License-Identifier: Apache-2.0
"""An answer carries something that the people who are to approve it are not shown.

A model may leave fields out of its own JSON, or mask them: what is sealed, and given to the run,
has them all the same. And there are values that cannot be built without the application's types.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_serializer

from sealpoint.adapters.guarded_runs import to_display_json
from sealpoint.codec import Registry

_UNSEEN = "and delete everything"


class Excluding(BaseModel):
    """It leaves a field out."""

    approve: bool
    more: Any = Field(default=None, exclude=True)


class Masking(BaseModel):
    """It shows another text than it holds."""

    approve: bool
    more: Any = None

    @field_serializer("more")
    def _mask(self, _more: Any) -> str:
        return "nothing"


class Private(BaseModel):
    """It holds what is no field."""

    approve: bool
    _more: Any = PrivateAttr(default=None)

    def __init__(self, *, more: Any, **fields: Any) -> None:
        super().__init__(**fields)
        self._more = more


class Open(BaseModel):
    """It holds whatever it is given, and shows some of it."""

    model_config = ConfigDict(extra="allow")

    approve: bool

    def model_dump_json(self, **_options: Any) -> str:
        """As the application wants it."""
        return f'{{"approve": {str(self.approve).lower()}}}'


class Whole(BaseModel):
    """It shows what it holds."""

    approve: bool
    more: Any = None


class Colour(Enum):
    """A key that is of the application."""

    RED = 1


class Pair(NamedTuple):
    """Another."""

    one: Any
    other: Any


@dataclass(frozen=True)
class Order:
    """One more, and what has such keys in it."""

    keyed: Any
    more: Any = None


_MODELS = (Excluding, Masking, Private, Open, Whole)
_REGISTRY = Registry()
for _model in (*_MODELS, Colour, Pair, Order):
    _REGISTRY.allow(_model, name=f"tests.{_model.__name__.lower()}")


def _text(value: Any) -> str:
    shown: str = to_display_json(value, _REGISTRY)["$object"]["text"]
    return shown


@pytest.mark.parametrize("model", _MODELS)
def test_people_are_shown_all_of_an_answer(model: Any) -> None:
    """Whatever a class shows of itself, on its own and inside of another."""
    answer = model(approve=True, more=_UNSEEN)

    assert _UNSEEN in _text(answer)
    assert _UNSEEN in _text(Whole(approve=True, more=answer))
    assert _UNSEEN in _text(Whole(approve=True, more=[{"inside": answer}]))


def test_what_shows_all_of_itself_is_shown_so() -> None:
    """A model that leaves nothing out is told by its own JSON, as it is read most easily."""
    assert _text(Whole(approve=True, more=[1, {"a": None}])) == (
        '{"approve":true,"more":[1,{"a":null}]}'
    )


def test_a_name_that_is_spelt_like_fields_is_told_as_one() -> None:
    """A model that takes any name takes one with commas and equals signs."""
    given: dict[str, Any] = {"approve": True, "approve=False, note": 1}
    answer = Open.model_construct(**given)

    assert _text(answer) == "Open('approve=False, note'=1, approve=True)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({Colour.RED: _UNSEEN}, f"{{Colour(name='RED'): {_UNSEEN!r}}}"),
        ({Order(1): _UNSEEN}, f"{{Order(keyed=1, more=None): {_UNSEEN!r}}}"),
        ({Pair(1, 2): _UNSEEN}, f"{{Pair(one=1, other=2): {_UNSEEN!r}}}"),
        (frozenset({Pair(1, 2)}), "frozenset({Pair(one=1, other=2)})"),
        ({Order(2), Order(1)}, "{Order(keyed=1, more=None), Order(keyed=2, more=None)}"),
        (
            Order({Colour.RED: memoryview(b"x")}, _UNSEEN),
            f"Order(keyed={{Colour(name='RED'): b'x'}}, more={_UNSEEN!r})",
        ),
    ],
)
def test_keys_of_the_application_hide_nothing(value: Any, text: str) -> None:
    """A dict or set that only those types make possible is told with all that it has."""
    assert _text(value) == text
