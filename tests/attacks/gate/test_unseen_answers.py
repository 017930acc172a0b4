# SPDX-License-Identifier: Apache-2.0
"""An answer carries something that the people who are to approve it are not shown.

A model may leave fields out of its own JSON, or mask them: what is sealed, and given to the run,
has them all the same.
"""

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_serializer

from sealpoint.adapters.face import to_display_json
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


_MODELS = (Excluding, Masking, Private, Open, Whole)
_REGISTRY = Registry()
for _model in _MODELS:
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
