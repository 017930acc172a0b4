# SPDX-License-Identifier: Apache-2.0
"""Memos of messages tell every change, and what they make shares nothing that can change."""

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.base import TextAccessor

from sealpoint.adapters.langgraph._types_models import message_memo
from sealpoint.codec import TreeMemo
from sealpoint.errors import SealpointError, ValueNotAllowed
from tests.blobs import Blobs
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


@pytest.mark.parametrize("which", _MESSAGES)
def test_a_cast_fits_what_it_was_taken_of(which: str) -> None:
    """As long as nothing changes, and whatever equal containers lie in its place."""
    message = _MESSAGES[which]()
    memo = message_memo(message)
    assert memo is not None

    assert memo.matches(message)
    message.__dict__["additional_kwargs"] = copy.deepcopy(message.additional_kwargs)
    assert memo.matches(message)


@pytest.mark.parametrize("which", _MESSAGES)
@pytest.mark.parametrize("change", _CHANGES)
def test_a_cast_tells_every_change(which: str, change: str) -> None:
    """Of a value, a type, a field, or which fields were given."""
    message = _MESSAGES[which]()
    before = copy.deepcopy((message.__dict__, message.__pydantic_fields_set__))
    memo = message_memo(message)
    assert memo is not None

    _CHANGES[change](message)
    unchanged = change == "keys less" and before[0]["additional_kwargs"] == {}
    assert memo.matches(message) is unchanged


@pytest.mark.parametrize("change", _DEEP_CHANGES)
def test_a_cast_tells_changes_in_containers(change: str) -> None:
    """However deep, and where Python takes two values for equal."""
    message = _answer()
    memo = message_memo(message)
    assert memo is not None

    _DEEP_CHANGES[change](message)
    assert not memo.matches(message)


@pytest.mark.parametrize("which", _MESSAGES)
def test_what_a_cast_makes_is_equal_and_its_own(which: str) -> None:
    """Nothing that can change is shared with the message, or between two that were made."""
    message = _MESSAGES[which]()
    memo = message_memo(message)
    assert memo is not None
    one, other = memo.rebuild(), memo.rebuild()

    assert one == message
    assert repr(one) == repr(message)
    assert one.__pydantic_fields_set__ == message.__pydantic_fields_set__
    assert one.__pydantic_extra__ == message.__pydantic_extra__
    assert memo.matches(one)
    for made in (one, other):
        made.additional_kwargs["mine"] = made.__pydantic_fields_set__.add("mine")
        made.response_metadata.setdefault("list", []).append(1)
    assert memo.rebuild() == message
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
    assert message_memo(message) is None


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
    """The memos are let go when they are too many."""
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


def test_what_is_remembered_is_what_was_encoded() -> None:
    """A message that changes after its memo was taken, and back, is not saved as it was between."""
    chosen, blobs = registry(), Blobs()
    memo = TreeMemo(lambda _names: False)
    message = HumanMessage("before " + "x" * 400, id="m")
    state = [message, *(HumanMessage("y" * 400, id=str(number)) for number in range(60))]
    rule = next(rule for rule in chosen.rules if rule.cls is HumanMessage)
    assert rule.memo_maker is message_memo

    def changing(value: Any) -> Any:
        memo = message_memo(value)
        message.__dict__["content"] = "between " + "x" * 400
        return memo

    chosen.memoise(HumanMessage, changing)
    first = chosen.decode_tree(
        chosen.encode_tree(state, blobs.put, seed=_SEED, memo=memo), blobs.get
    )
    chosen.memoise(HumanMessage, message_memo)
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
    ],
    ids=["attribute", "given", "order", "extra"],
)
def test_no_cast_is_taken_of_what_would_come_back_otherwise(change: Callable[[Any], Any]) -> None:
    """With the memo and without, the same is loaded."""
    message = HumanMessage("x", id="1")
    change(message)

    assert message_memo(message) is None


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
