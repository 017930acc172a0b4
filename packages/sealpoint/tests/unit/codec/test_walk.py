# SPDX-License-Identifier: Apache-2.0
"""Errors name the path to what cannot be saved, and the line that allows it."""

import threading
from collections import OrderedDict, deque
from typing import Any

import pydantic
import pytest

from sealpoint import Registry
from sealpoint.errors import EncodeError, TypeNotAllowed, ValueNotAllowed
from tests.blobs import Blobs
from tests.unit.codec.plain_types import Handle, HTTPStep, Outer, Plan


class _Model(pydantic.BaseModel):
    items: Any = None
    _hidden: Any = pydantic.PrivateAttr(default=None)


def _hidden(value: Any) -> _Model:
    model = _Model()
    model._hidden = value
    return model


def _registry() -> Registry:
    registry = Registry()
    registry.allow(Plan, name="app.plan")
    registry.allow(_Model, name="app.model")
    return registry


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"plan": Plan([1, 2, 3, HTTPStep()])}, 'state["plan"].steps[3]'),
        (HTTPStep(), "state"),
        ([HTTPStep()], "state[0]"),
        ({"a": [{"b": (1, HTTPStep())}]}, 'state["a"][0]["b"][1]'),
        ({"not an identifier": HTTPStep()}, "state['not an identifier']"),
        ({1: HTTPStep()}, "state[1]"),
        ({None: HTTPStep(), True: 1}, "state[None]"),
        ({(1, 2): HTTPStep()}, "state[<key 0>]"),
        (deque([0, HTTPStep()]), "state[1]"),
        (OrderedDict(x=HTTPStep()), 'state["x"]'),
        (_Model(items=[HTTPStep()]), "state.items[0]"),
        (_hidden(HTTPStep()), "state._hidden"),
        (slice(None, HTTPStep()), "state.stop"),
        ([[[[[HTTPStep()]]]]], "state[0][0][0][0][0]"),
    ],
    ids=str,
)
def test_an_error_names_the_path(value: Any, path: str) -> None:
    """The message opens with where the type lies, flat and as a tree."""
    with pytest.raises(TypeNotAllowed) as flat:
        _registry().encode(value)
    with pytest.raises(TypeNotAllowed) as tree:
        _registry().encode_tree(value, Blobs().put)

    assert flat.value.message.startswith(f"{path}: ")
    assert tree.value.message == flat.value.message
    assert "HTTPStep" in str(flat.value)


def test_an_error_about_a_value_names_the_path_too() -> None:
    """A value of an allowed type that has no lossless form is located as well."""
    with pytest.raises(ValueNotAllowed, match=r'^state\["a"\]\[1\]: '):
        _registry().encode({"a": [0, _unset()]})


def _unset() -> Plan:
    plan = Plan()
    del plan.steps
    return plan


@pytest.mark.parametrize("cls", [Plan, HTTPStep, Outer.Inner], ids=lambda cls: cls.__qualname__)
def test_the_line_in_the_hint_works_when_pasted(cls: type) -> None:
    """Writing the hint's line, and its import, allows exactly that type."""
    registry = Registry()
    value = {"x": [cls()]}
    with pytest.raises(TypeNotAllowed) as caught:
        registry.encode(value)
    first, _, where = caught.value.hint.removeprefix("Write: ").partition("\n")
    line, _, imported = first.partition("  # ")

    scope: dict[str, Any] = {"registry": registry}
    exec(f"{imported}\n{line}", scope)  # noqa: S102 # the line is there to be pasted

    assert registry.decode(registry.encode(value)) == value
    assert "sealpoint.open_store(url, registry=registry)" in where


def test_the_line_for_other_classes_asks_for_functions() -> None:
    """A class of no known kind needs encode= and decode=, and the line says so."""
    with pytest.raises(TypeNotAllowed) as caught:
        Registry().encode([Handle()])

    assert "encode=..., decode=..." in caught.value.hint
    assert "Handle" in caught.value.hint


@pytest.mark.parametrize("code", [len, lambda: 1, int, threading, threading.Lock(), iter([])])
def test_code_and_resources_get_no_line_to_paste(code: Any) -> None:
    """Functions, classes, modules and locks cannot be allowed, and nothing suggests it."""
    with pytest.raises(EncodeError) as caught:
        Registry().encode({"x": code})

    assert caught.value.message.startswith('state["x"]: ')


def test_an_error_never_carries_the_payload() -> None:
    """Texts of the value that are no short keys do not appear in a message."""
    secret = "s3cret" * 20

    with pytest.raises(TypeNotAllowed) as caught:
        Registry().encode({secret: [secret, {"x": HTTPStep(secret)}]})

    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in caught.value.hint


def test_a_very_deep_path_is_shortened() -> None:
    """A path of hundreds of steps keeps its beginning and its end."""
    value: Any = HTTPStep()
    for _ in range(200):
        value = [value]

    with pytest.raises(TypeNotAllowed) as caught:
        Registry().encode({"deep": value})

    assert len(caught.value.message) < 500
    assert caught.value.message.startswith('state["deep"][0]')
