# SPDX-License-Identifier: Apache-2.0
"""Rolls of messages tell every change, and what is built from them shares nothing."""

import copy
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.base import TextAccessor

from sealpoint import Registry
from sealpoint.codec import TreeMemo
from sealpoint.codec._encode import Encoding
from sealpoint.errors import SealpointError, ValueNotAllowed
from tests.blobs import Blobs
from tests.effort import SOAKING
from tests.unit.adapters.langgraph.samples import SAMPLES, registry

_SEED = b"thread"


class _Name(str):
    __slots__ = ()


def _answer() -> AIMessage:
    return AIMessage(
        "three",
        id="7",
        additional_kwargs={"score": 1, "parts": ["a", {"b": None}]},
        response_metadata={"model": "small", "sure": True},
        tool_calls=[{"name": "add", "args": {"x": 1}, "id": "c1", "type": "tool_call"}],
        usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
    )


_MESSAGES: dict[str, Callable[[], Any]] = {
    "bare": lambda: HumanMessage("one and two", id="1"),
    "full": _answer,
    "tool": lambda: ToolMessage("3", tool_call_id="c1", id="8", status="error"),
}


def _set(name: str, item: Any) -> Callable[[Any], None]:
    return lambda message: message.__dict__.__setitem__(name, item)


_CHANGES: dict[str, Callable[[Any], None]] = {
    "other text": _set("content", "four"),
    "blocks": _set("content", [{"type": "text", "text": "three"}]),
    "another id": _set("id", None),
    "a text of another type": _set("content", TextAccessor("three")),
    "a name of another type": _set("name", _Name("ann")),
    "an attribute more": _set("colour", "red"),
    "an attribute less": lambda message: message.__dict__.pop("name"),
    "another attribute": lambda message: message.__dict__.update(
        colour=message.__dict__.pop("name")
    ),
    "an empty container of another type": _set("response_metadata", OrderedDict()),
    "a list for a dict": _set("additional_kwargs", []),
    "a key more": lambda message: message.additional_kwargs.update(x=1),
    "keys less": lambda message: message.additional_kwargs.clear(),
    "a given field more": lambda message: message.__pydantic_fields_set__.add("name"),
    "an extra": lambda message: object.__setattr__(message, "__pydantic_extra__", {"x": 1}),
}
_DEEP_CHANGES: dict[str, Callable[[Any], None]] = {
    "a number of another type": lambda message: message.additional_kwargs.update(score=True),
    "a float of the same value": lambda message: message.additional_kwargs.update(score=1.0),
    "a deep value": lambda message: message.additional_kwargs["parts"][1].update(b=0),
    "an object": lambda message: message.additional_kwargs.update(score=object()),
    "a call's argument": lambda message: message.tool_calls[0]["args"].update(x=2),
    "a call less": lambda message: message.tool_calls.pop(),
    "a tuple for a list": lambda message: message.additional_kwargs.update(parts=("a",)),
    "keys that are no names": lambda message: message.additional_kwargs.update({1: 1}),
    "a missing container": lambda message: message.__dict__.pop("tool_calls"),
}


def _chat(which: str, count: int = 60) -> list[Any]:
    return [_MESSAGES[which](), *(HumanMessage("y" * 400, id=str(n)) for n in range(count))]


def _saved(chosen: Registry, state: Any, memo: TreeMemo | None) -> bytes | str:
    """What becomes of a save: its root, or what it is refused for."""
    blobs = Blobs()
    try:
        return chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
    except SealpointError as error:
        return str(error)


def _is_rolled(memo: TreeMemo) -> bool:
    return bool(memo.rolled)


@pytest.mark.parametrize(
    ("which", "change"),
    [*product(_MESSAGES, _CHANGES), *product(["full"], _DEEP_CHANGES)],
)
def test_every_change_of_a_message_is_saved(which: str, change: str) -> None:
    """Of a value, a type, a field, or which fields were given: as without a memo, and back."""
    chosen, memo = registry(), TreeMemo(lambda _names: True)
    state = _chat(which)
    _saved(chosen, state, memo)
    assert _is_rolled(memo)
    before = copy.deepcopy(state[0])
    (_CHANGES | _DEEP_CHANGES)[change](state[0])

    assert _saved(chosen, state, memo) == _saved(chosen, state, None)
    state[0] = before
    assert _saved(chosen, state, memo) == _saved(chosen, state, None)


@pytest.mark.parametrize("which", _MESSAGES)
def test_what_is_built_from_a_roll_is_equal_and_its_own(which: str) -> None:
    """Nothing that can change is shared with the roll, or between two that were loaded."""
    chosen, blobs, memo = registry(), Blobs(), TreeMemo(lambda _names: True)
    state = _chat(which)
    root = chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
    root_alone = {root: blobs.get(root)}.__getitem__
    one, other = (chosen.decode_tree(root, root_alone, memo=memo) for _ in range(2))

    assert one == other == state
    assert repr(one) == repr(chosen.decode_tree(root, blobs.get))
    for made in (one[0], other[0]):
        made.additional_kwargs["mine"] = made.__pydantic_fields_set__.add("mine")
        made.response_metadata.setdefault("list", []).append(1)
        made.__pydantic_extra__["more"] = 1
    assert chosen.decode_tree(root, root_alone, memo=memo) == state
    assert "mine" not in state[0].additional_kwargs


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("x", additional_kwargs={"when": datetime(2030, 1, 1, tzinfo=UTC)}),
        HumanMessage("x", additional_kwargs={"deep": [[[[[[[[[[[]]]]]]]]]]]}),
        HumanMessage("x", additional_kwargs={"long": "y" * 2000}),
        HumanMessage("x" * 20_000),
        HumanMessage("x" * 20_000, additional_kwargs={"pair": (1, 2)}),
        HumanMessage("x", additional_kwargs={"large": 1 << 70}),
        HumanMessage("x", additional_kwargs={"text": "\udc80"}),
        HumanMessage("x", additional_kwargs={"numbers": {1: 2}}),
        ToolMessage("x", tool_call_id="1", artifact=(1, {"a": np.array([1.5])})),
        HumanMessage("x", colour="red"),
    ],
)
def test_a_message_that_holds_more_than_plain_values_is_saved_and_loaded_too(message: Any) -> None:
    """As it is without a memo, among messages that are as they were."""
    chosen, blobs, memo = registry(), Blobs(), TreeMemo(lambda _names: True)
    state = [*_chat("full"), message, *_chat("tool", 40)]
    for _ in range(3):
        root = chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
        assert root == chosen.encode_tree(state, blobs.put, seed=_SEED)
        found = chosen.decode_tree(root, blobs.get, memo=memo)
        assert repr(found) == repr(chosen.decode_tree(root, blobs.get))
        state = [*found, HumanMessage("more")]


def test_a_long_chat_is_saved_and_loaded_as_it_is_now() -> None:
    """Whatever becomes of its messages between one turn and the next."""
    chosen, blobs = registry(), Blobs()
    memo = TreeMemo(lambda _names: False)
    changes = [*_CHANGES, *_DEEP_CHANGES] * (2 if SOAKING else 1)
    kinds = ("bare", "full", "tool") * (len(changes) + 1)
    state = {"messages": [_MESSAGES[which]() for which in kinds]}
    for turn, change in enumerate(changes):
        root = chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
        assert root == chosen.encode_tree(state, blobs.put, seed=_SEED)
        state = chosen.decode_tree(root, blobs.get, memo=memo)
        assert repr(state) == repr(chosen.decode_tree(root, blobs.get))
        message = state["messages"][3 * turn + 1]
        kept = copy.deepcopy(message)
        (_CHANGES | _DEEP_CHANGES)[change](message)
        try:
            changed = chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
        except Exception as with_memo:  # noqa: BLE001 # what is not allowed stays so
            with pytest.raises(type(with_memo)):
                chosen.encode_tree(state, blobs.put, seed=_SEED)
            state["messages"][3 * turn + 1] = kept
        else:
            assert changed == chosen.encode_tree(state, blobs.put, seed=_SEED)


def test_a_chat_that_is_larger_than_the_memory_for_it_is_right_too() -> None:
    """Whatever of it is remembered."""
    chosen, blobs = registry(), Blobs()
    memo = TreeMemo(lambda _names: False)
    state = {"messages": [HumanMessage("x" * 4000, id=str(number)) for number in range(400)]}
    for number in range(3):
        state["messages"].append(HumanMessage("y", id=f"late {number}"))
        root = chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
        found = chosen.decode_tree(root, blobs.get, memo=memo)
        assert found == state
        assert root == chosen.encode_tree(found, blobs.put, seed=_SEED)
        state = found


@pytest.mark.parametrize("size", [400, 20_000])
def test_what_is_remembered_is_what_was_encoded(size: int, monkeypatch: Any) -> None:
    """A message that changes while it is saved, and back, is not saved as it was between."""
    chosen, blobs, memo = registry(), Blobs(), TreeMemo(lambda _names: True)
    message = HumanMessage("before " + "x" * size, id="m")
    state = [message, *(HumanMessage("y" * 400, id=str(number)) for number in range(60))]
    pack = Encoding._pack_block

    def changing(self: Encoding, value: Any) -> bytes:
        packed = pack(self, value)
        message.__dict__["content"] = "between " + "x" * size
        return packed

    with monkeypatch.context() as patch:
        patch.setattr(Encoding, "_pack_block", changing)
        root = chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
    first = chosen.decode_tree(root, blobs.get)
    assert repr(chosen.decode_tree(root, blobs.get, memo=memo)) == repr(first)
    second = chosen.decode_tree(
        chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo), blobs.get
    )

    assert first[0].content.startswith("before")
    assert second[0].content.startswith("between")


def test_a_message_of_another_class_is_saved_as_that() -> None:
    """Whatever somebody has made of it."""
    chosen, blobs = registry(), Blobs()
    memo = TreeMemo(lambda _names: False)
    state: list[Any] = [HumanMessage("x" * 400, id=str(number)) for number in range(60)]
    chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
    state[7].__class__ = SystemMessage
    root = chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)

    assert type(chosen.decode_tree(root, blobs.get)[7]) is SystemMessage


class _Loud:
    def __bool__(self) -> bool:
        raise SystemExit


@pytest.mark.parametrize("value", [np.array([1, 2]), _Loud()], ids=["array", "loud"])
def test_what_replaces_an_empty_container_is_not_asked_whether_it_is_true(value: Any) -> None:
    """Its code does not run, and it is encoded or refused as without a memo."""
    chosen, blobs = registry(), Blobs()
    memo = TreeMemo(lambda _names: False)
    message = ToolMessage("x", tool_call_id="1", artifact=[])
    state = [message, *(HumanMessage("y" * 400, id=str(number)) for number in range(60))]
    chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
    message.artifact = value

    def ended(memo: TreeMemo | None) -> str:
        try:
            return repr(chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo))
        except SealpointError as error:
            return str(error)

    assert ended(memo) == ended(None)


def _bare() -> HumanMessage:
    made = object.__new__(HumanMessage)
    made.__dict__["content"] = "x"
    return made


@pytest.mark.parametrize(
    "change",
    [
        lambda message: message.__dict__.update(pretty_repr="mine"),
        lambda message: message.__pydantic_fields_set__.add("zzz"),
        lambda message: message.__dict__.update(content=message.__dict__.pop("content")),
        lambda message: object.__setattr__(message, "__pydantic_extra__", None),
        lambda message: object.__setattr__(message, "__pydantic_private__", {"x": 1}),
    ],
    ids=["attribute", "given", "order", "no extra", "private"],
)
def test_what_comes_back_otherwise_comes_back_the_same_with_a_memo(
    change: Callable[[Any], Any],
) -> None:
    """With the memo and without, the same is loaded."""
    chosen, blobs, memo = registry(), Blobs(), TreeMemo(lambda _names: True)
    state = _chat("bare")
    change(state[0])
    root = chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
    plain, found = (
        chosen.decode_tree(root, blobs.get),
        chosen.decode_tree(root, blobs.get, memo=memo),
    )

    assert root == chosen.encode_tree(state, blobs.put, seed=_SEED)
    for part in ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__"):
        assert getattr(found[0], part) == getattr(plain[0], part)


def test_a_broken_message_is_refused_as_without_a_memo() -> None:
    """With the path to it, and not by an error of pydantic's."""
    chosen, blobs = registry(), Blobs()
    state = [_bare(), *(HumanMessage("y" * 400, id=str(number)) for number in range(60))]

    with pytest.raises(ValueNotAllowed):
        chosen.encode_tree(state, blobs.put, seed=_SEED, memo=TreeMemo(lambda _names: False))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_every_type_comes_back_the_same_with_a_memo(sample: Any) -> None:
    """Of a state that was saved before, in every part that pydantic keeps."""
    chosen, blobs = registry(), Blobs()
    memo = TreeMemo(lambda _names: False)
    state = [sample, *(HumanMessage("y" * 400, id=str(number)) for number in range(60))]
    root = chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo)
    plain = chosen.decode_tree(root, blobs.get)[0]
    for _ in range(2):
        found = chosen.decode_tree(root, blobs.get, memo=memo)[0]
        assert type(found) is type(plain)
        assert repr(found) == repr(plain)
        for part in ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__"):
            assert getattr(found, part, None) == getattr(plain, part, None)
