# SPDX-License-Identifier: Apache-2.0
"""Metadata comes back exactly, or is refused with the path to what could not."""

import enum
import math
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import ValueNotAllowed
from sealpoint.store._drafts import plain_object
from tests.deployment import Deployment
from tests.sameness import same

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


class _Number(enum.IntEnum):
    ONE = 1


class _Text(str):
    __slots__ = ()


def _nested(depth: int, *, lists: bool) -> dict[str, Any]:
    value: Any = 1
    for _ in range(depth - 1):
        value = [value] if lists else {"a": value}
    return {"a": value}


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), _JSON, max_size=5))
def test_json_values_come_back_exactly(value: dict[str, Any]) -> None:
    """Every JSON object is equal to its copy in every type and sign, and is another object."""
    made = plain_object(value, "metadata")

    assert same(made, value)
    assert made is not value


_REFUSED: dict[str, tuple[Any, str]] = {
    "NaN": (
        {"a": math.nan},
        r'metadata\["a"\]: expected a JSON value, found a number that is not finite',
    ),
    "infinity": ({"a": [math.inf]}, r'metadata\["a"\]\[0\]'),
    "a tuple": ({"a": {"b": (1,)}}, r'metadata\["a"\]\["b"\]: .* found tuple'),
    "a set": ({"a": {1}}, "found set"),
    "bytes": ({"a": b"x"}, "found bytes"),
    "a key that is a number": ({"a": {1: 2}}, r'metadata\["a"\]: expected keys that are text'),
    "a key that is null": ({None: 2}, "found NoneType"),
    "a key of a subclass": ({_Text("a"): 2}, "found _Text"),
    "an int of 65 bits": ({"a": 2**64}, "found an integer beyond 64 bits"),
    "a negative int of 65 bits": ({"a": -(2**63) - 1}, "found an integer beyond 64 bits"),
    "an enum": ({"a": _Number.ONE}, "found _Number"),
    "a str subclass": ({"a": _Text("x")}, "found _Text"),
    "an OrderedDict inside": ({"a": OrderedDict(b=1)}, "found OrderedDict"),
    "a lone surrogate": ({"a": "\ud800"}, "lone surrogates"),
    "a lone surrogate in a key": ({"\udfff": 1}, "lone surrogates"),
    "33 levels of dicts": (_nested(33, lists=False), "more than 32 lists and objects"),
    "33 levels of lists": (_nested(33, lists=True), "more than 32 lists and objects"),
    "a list": ([1], "expected a mapping, found list"),
    "a text": ("x", "expected a mapping, found str"),
    "pairs": ([("a", 1)], "expected a mapping, found list"),
    "an empty list": ([], "expected a mapping, found list"),
    "an empty text": ("", "expected a mapping, found str"),
    "zero": (0, "expected a mapping, found int"),
}


@pytest.mark.parametrize(("value", "why"), _REFUSED.values(), ids=_REFUSED)
def test_other_values_are_refused(value: Any, why: str, memory: Deployment) -> None:
    """What JSON would change is refused with its path, and nothing is written."""
    store = memory.open()

    with pytest.raises(ValueNotAllowed, match=why):
        store.thread("t").save(1, metadata=value)
    assert not store.storage.offered


@pytest.mark.parametrize("lists", [True, False])
def test_32_levels_are_kept(lists: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """The deepest object that is allowed."""
    assert plain_object(_nested(32, lists=lists), "metadata") == _nested(32, lists=lists)


def test_metadata_comes_back_exactly(world: Deployment) -> None:
    """Through a store and a second process, types, order and signs are those that were saved."""
    given = {"b": 1, "a": [1.0, -0.0, 1e300, 5e-324, True, None, 2**64 - 1, "ü\u2028", ""], "": {}}
    world.open().thread("t").save(0, metadata=MappingProxyType(given))
    loaded = world.open().thread("t").load()

    assert same(loaded.metadata, given)
    assert list(loaded.metadata) == ["b", "a", ""]
    assert loaded.ref.metadata == given


def test_an_empty_world_is_a_world(world: Deployment) -> None:
    """Nothing said and nothing allowed are two things; empty metadata is none."""
    thread = world.open().thread("t")
    thread.save(1, world={}, metadata={})
    empty = thread.load()
    thread.save(2)

    assert (empty.world, empty.metadata) == ({}, {})
    assert thread.load().world is None


def test_later_edits_of_the_caller_do_not_matter(memory: Deployment) -> None:
    """What a save was given is a copy, and so is what a load gives out."""
    metadata = {"list": [1]}
    thread = memory.open().thread("t")
    ref = thread.save(1, metadata=metadata)
    metadata["list"].append(2)
    thread.load().metadata["list"] = "mine"

    assert ref.metadata == {"list": [1]}
    assert thread.load().metadata == {"list": [1]}
