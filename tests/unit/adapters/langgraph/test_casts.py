# SPDX-License-Identifier: Apache-2.0
"""Casts of messages tell every change, and what they make shares nothing that can change."""

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.base import TextAccessor

from sealpoint.adapters.langgraph._types_casts import message_cast
from sealpoint.codec import TreeMemo
from tests.blobs import Blobs
from tests.unit.adapters.langgraph.samples import registry

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


@pytest.mark.parametrize("which", _MESSAGES)
def test_a_cast_fits_what_it_was_taken_of(which: str) -> None:
    """As long as nothing changes, and whatever equal containers lie in its place."""
    message = _MESSAGES[which]()
    cast = message_cast(message)
    assert cast is not None

    assert cast.fits(message)
    message.__dict__["additional_kwargs"] = copy.deepcopy(message.additional_kwargs)
    assert cast.fits(message)


@pytest.mark.parametrize("which", _MESSAGES)
@pytest.mark.parametrize("change", _CHANGES)
def test_a_cast_tells_every_change(which: str, change: str) -> None:
    """Of a value, a type, a field, or which fields were given."""
    message = _MESSAGES[which]()
    before = copy.deepcopy((message.__dict__, message.__pydantic_fields_set__))
    cast = message_cast(message)
    assert cast is not None

    _CHANGES[change](message)
    unchanged = change == "keys less" and before[0]["additional_kwargs"] == {}
    assert cast.fits(message) is unchanged


@pytest.mark.parametrize("change", _DEEP_CHANGES)
def test_a_cast_tells_changes_in_containers(change: str) -> None:
    """However deep, and where Python takes two values for equal."""
    message = _answer()
    cast = message_cast(message)
    assert cast is not None

    _DEEP_CHANGES[change](message)
    assert not cast.fits(message)


@pytest.mark.parametrize("which", _MESSAGES)
def test_what_a_cast_makes_is_equal_and_its_own(which: str) -> None:
    """Nothing that can change is shared with the message, or between two that were made."""
    message = _MESSAGES[which]()
    cast = message_cast(message)
    assert cast is not None
    one, other = cast.make(), cast.make()

    assert one == message
    assert repr(one) == repr(message)
    assert one.__pydantic_fields_set__ == message.__pydantic_fields_set__
    assert one.__pydantic_extra__ == message.__pydantic_extra__
    assert cast.fits(one)
    for made in (one, other):
        made.additional_kwargs["mine"] = made.__pydantic_fields_set__.add("mine")
        made.response_metadata.setdefault("list", []).append(1)
    assert cast.make() == message
    assert "mine" not in message.additional_kwargs


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("x", additional_kwargs={"when": object()}),
        HumanMessage("x", additional_kwargs={"deep": [[[[[[[[[[[]]]]]]]]]]]}),
        HumanMessage("x", additional_kwargs={"long": "y" * 2000}),
        HumanMessage("x", additional_kwargs={"large": 1 << 70}),
        HumanMessage("x", additional_kwargs={"text": "\udc80"}),
        ToolMessage("x", tool_call_id="1", artifact=(1, 2)),
    ],
)
def test_no_cast_is_taken_where_changes_could_not_be_told(message: Any) -> None:
    """It is then encoded and decoded every time."""
    assert message_cast(message) is None


def test_a_long_chat_is_saved_and_loaded_as_it_is_now() -> None:
    """Whatever becomes of its messages between one turn and the next."""
    chosen, blobs = registry(), Blobs()
    memo = TreeMemo(lambda _names: False)
    state = {"messages": [*(_MESSAGES[which]() for which in ("bare", "full", "tool") * 60)]}
    for turn, change in enumerate([*_CHANGES, *_DEEP_CHANGES] * 2):
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
    """The casts are let go when they are too many."""
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


def test_a_message_that_changes_while_it_is_encoded_is_not_remembered() -> None:
    """Its bytes may be of before or after: the next encoding looks again."""
    chosen, blobs = registry(), Blobs()
    memo = TreeMemo(lambda _names: False)
    messages = [HumanMessage(f"{number} " + "x" * 400, id=str(number)) for number in range(60)]

    cast = message_cast(messages[0])
    assert cast is not None
    messages[0].content = "changed " + "x" * 400
    memo.casts.note(messages[0], cast, b"payload", b"data")

    root = chosen.encode_tree(messages, blobs.put, seed=_SEED, memo=memo)
    assert chosen.decode_tree(root, blobs.get)[0].content.startswith("changed")
