# SPDX-License-Identifier: Apache-2.0
"""A roll changes nothing but the time: the same bytes, refusals and objects as without."""

import copy
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, PrivateAttr

from sealpoint import Registry
from sealpoint.codec import TreeMemo
from sealpoint.errors import SealpointError
from tests.blobs import Blobs
from tests.effort import examples


@dataclass
class _Step:
    name: str
    found: Any = None
    more: dict[str, Any] = field(default_factory=dict)


class _Note(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str
    found: Any = None
    _seen: int = PrivateAttr(default=0)


class _Line(BaseModel):
    name: str
    found: Any = None
    more: dict[str, Any] = {}


class _Text(str):
    __slots__ = ()


_REGISTRY = Registry()
for _cls in (_Step, _Note, _Line):
    _REGISTRY.allow(_cls, name=f"app.{_cls.__name__[1:].lower()}")

# What Python takes for equal and bytes do not, what has no place in bytes, and what is long.
_ODD: tuple[Callable[[], Any], ...] = (
    *(lambda each=each: each for each in (0, False, 0.0, -0.0, 1, True, 1.0, float("nan"), None)),
    *(
        lambda each=each: each
        for each in ("", "a", _Text("a"), "\udc80", b"", b"a", 1 << 70, (), (1,))
    ),
    *(dict, list, OrderedDict, lambda: bytearray(b"a"), lambda: {"a": 1, "b": 2}),
    *(lambda: {"b": 2, "a": 1}, lambda: {1: 2}, lambda: {"a": [True, {"b": 1.0}]}, object, set),
    *(
        lambda: _Step("inner"),
        lambda: [_Line(name="inner")],
        lambda: "x" * 9000,
        lambda: "y" * 9000,
    ),
    lambda: ["z" * 900] * 20,
)
_value = st.sampled_from(_ODD).map(lambda make: make())
_member = st.builds(
    lambda cls, name, size: cls(name=name * size),
    st.sampled_from((_Step, _Step, _Note, _Line, _Line)),
    st.sampled_from("abc"),
    st.integers(1, 300),
)


def _set_extra(member: Any, value: Any) -> None:
    if isinstance(member, BaseModel):
        object.__setattr__(member, "__pydantic_extra__", value)


def _give(member: Any, _value: Any) -> None:
    if isinstance(member, BaseModel):
        member.__pydantic_fields_set__ ^= {"found"}


def _hide(member: Any, value: Any) -> None:
    if isinstance(member, _Note):
        member.__pydantic_private__ = {"_seen": value}


def _turn(member: Any, _value: Any) -> None:
    member.__dict__.update(name=member.__dict__.pop("name", "gone"))


_CHANGES: dict[str, Callable[[Any, Any], object]] = {
    "found": lambda member, value: member.__dict__.update(found=value),
    "name": lambda member, value: member.__dict__.update(name=value),
    "attribute": lambda member, value: member.__dict__.update(colour=value),
    "missing": lambda member, _value: member.__dict__.pop("found", None),
    "deep": lambda member, value: member.__dict__.setdefault("more", {}).update(deep=value),
    "order": _turn,
    "extra": _set_extra,
    "no extra": lambda member, _value: _set_extra(member, None),
    "an extra": lambda member, value: _set_extra(member, {"x": value}),
    "given": _give,
    "private": _hide,
    "class": lambda member, _value: setattr(
        member, "__class__", _Line if type(member) is _Note else type(member)
    ),
}
_edit = st.tuples(
    st.sampled_from((*_CHANGES, "append", "append", "insert", "delete", "replace", "first")),
    st.integers(0, 200),
    _member,
    _value,
)


def _apply(members: list[Any], edit: tuple[str, int, Any, Any]) -> None:
    kind, number, member, value = edit
    member = copy.deepcopy(member)
    place = number % len(members) if members else 0
    if kind == "append":
        members.append(member)
    elif kind == "insert":
        members.insert(place, member)
    elif members and kind == "delete":
        del members[place]
    elif members and kind == "first":
        del members[0]
    elif members and kind == "replace":
        members[place] = member if number % 3 else value
    elif members and hasattr(members[place], "__dict__"):
        _CHANGES[kind](members[place], value)


def _outcome(state: Any, memo: TreeMemo | None, blobs: Blobs) -> Any:
    try:
        return _REGISTRY.encode_tree(state, blobs.put, seed=b"t", memo=memo)
    except Exception as error:  # noqa: BLE001 # whatever it is, it is the same
        return type(error), str(error)


def _read(root: bytes, memo: TreeMemo | None, blobs: Blobs) -> Any:
    try:
        return _REGISTRY.decode_tree(root, blobs.get, memo=memo)
    except SealpointError as error:
        return type(error), str(error)


def _parts(value: Any) -> Any:
    """Everything of a list of objects that can differ, told apart by `repr`."""
    names = ("__dict__", "__pydantic_extra__", "__pydantic_private__")
    return [
        (
            type(each),
            [repr(getattr(each, name, None)) for name in names],
            getattr(each, "__pydantic_fields_set__", None),
        )
        for each in value
    ]


@settings(max_examples=examples(150), deadline=None)
@given(
    first=st.lists(_member, min_size=1, max_size=80),
    edits=st.lists(st.lists(_edit, max_size=3), min_size=1, max_size=6),
    loads=st.booleans(),
)
def test_saving_and_loading_with_a_roll_is_the_same_as_without(
    first: list[Any], edits: list[list[tuple[str, int, Any, Any]]], *, loads: bool
) -> None:
    """Whatever is edited in place, added, removed or swapped between two saves."""
    members = [copy.deepcopy(member) for member in first] * 2
    memo, blobs = TreeMemo(lambda _names: True), Blobs()
    for edit in [[], *edits]:
        for each in edit:
            _apply(members, each)
        # The first is short at times, and then has no chunks of its own.
        state = {"first": members[: len(members) // 4], "members": members}
        root = _outcome(state, memo, blobs)
        assert root == _outcome(state, None, Blobs())
        if not isinstance(root, bytes):
            continue
        plain, found = _read(root, None, blobs), _read(root, memo, blobs)
        if isinstance(plain, tuple):
            assert found == plain
            continue
        assert _parts(found["members"]) == _parts(plain["members"])
        members = found["members"] if loads else members
