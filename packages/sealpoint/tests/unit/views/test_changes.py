# SPDX-License-Identifier: Apache-2.0
"""Comparing two values: every difference is said, once, where it is."""

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sealpoint
from sealpoint import Registry
from sealpoint.views.changes import Change, compare, diff_checkpoints
from sealpoint.views.masking import SECRETS
from tests.arrays import needs_arrays, np
from tests.cpu_time import CpuTime


class Status(Enum):
    """An enum."""

    OPEN = 1
    PAID = 2


@dataclass
class Order:
    """A dataclass."""

    number: int
    items: list[Any]


class Model(pydantic.BaseModel):
    """A pydantic model with a private part that no field shows."""

    name: str
    tags: list[str] = []
    _secret: int = pydantic.PrivateAttr(default=0)


class Point(NamedTuple):
    """A named tuple."""

    x: int
    y: int


@attrs.define
class Note:
    """An attrs class."""

    text: str


class Row(msgspec.Struct):
    """A struct."""

    key: str
    value: int


class Opaque:
    """A type with functions of its own, whose text never changes."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "<opaque>"


class Textless:
    """A type that gives itself no text, and holds something that is not saved of it."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.name = None
        self.lock = threading.Lock()


_registry = Registry()
for _kind in (Status, Order, Model, Point, Note, Row):
    _registry.allow(_kind, name=f"test.{_kind.__name__.lower()}")
_registry.allow(Opaque, name="test.opaque", encode=lambda each: each.value, decode=Opaque)
_registry.allow(Textless, name="test.textless", encode=lambda each: each.role, decode=Textless)

_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", 1.0, b"a"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from(["a", "b", 1, True, None]), inner, max_size=3)
        | st.sets(st.integers(0, 3))
        | st.builds(Order, st.integers(0, 1), st.lists(inner, max_size=2))
    ),
    max_leaves=12,
)


def _compare(old: Any, new: Any) -> list[Change]:
    return list(compare(old, new, _registry.encode))


def _texts(old: Any, new: Any) -> list[str]:
    """The changes as short lines."""
    marks = {"added": "+", "removed": "-", "changed": "~"}
    return [
        " ".join(
            text
            for text in (
                f"{marks[change.kind]} {change.path}",
                change.path_before and f"@{change.path_before}",
                change.old and f"{change.old} ->" if change.new else change.old,
                change.new,
                change.note and f"({change.note})",
            )
            if text
        )
        for change in _compare(old, new)
    ]


@given(_VALUES, _VALUES)
def test_a_difference_is_never_overlooked_or_invented(old: Any, new: Any) -> None:
    """There are changes exactly where the encodings differ: types, order and all."""
    same = _registry.encode(old) == _registry.encode(new)

    assert (not _compare(old, new)) == same


@given(st.lists(_VALUES, max_size=8), _VALUES, st.data())
def test_an_inserted_item_is_one_addition(items: list[Any], item: Any, data: Any) -> None:
    """Wherever it came in, nothing else changed; the other way round it is one removal."""
    place = data.draw(st.integers(0, len(items)))
    longer = [*items[:place], item, *items[place:]]

    assert [change.kind for change in _compare(items, longer)] == ["added"]
    assert [change.kind for change in _compare(longer, items)] == ["removed"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (1, 2, ["~ state 1 -> 2"]),
        (1, True, ["~ state 1 -> True (int became bool)"]),
        ({"a": 1}, {"a": 1, "b": 2}, ['+ state["b"] 2']),
        ({"a": 1, "b": 2}, {"a": 1}, ['- state["b"] 2']),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ['~ state["a"]["b"][1] 2 -> 3']),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ["~ state (the order of its keys)"]),
        ({1: "x"}, {True: "x"}, ['+ state[True] "x"', '- state[1] "x"']),
        ({(1, "a"): 1}, {(1, "a"): 2}, ['~ state[(1, "a")] 1 -> 2']),
        ([1, 2], (1, 2), ["~ state [1, 2] -> (1, 2) (list became tuple)"]),
        ((1,), (1, 2), ["+ state[1] 2"]),
        ({1, 2}, {2, 3}, ["+ state 3 (member)", "- state 1 (member)"]),
        (frozenset("a"), frozenset(), ['- state "a" (member)']),
        (deque([1], 2), deque([2], 2), ["~ state[0] 1 -> 2"]),
        (
            deque([1], 2),
            deque([1], 3),
            ["~ state deque([1]) -> deque([1]) (changed in a part that is not shown)"],
        ),
        (OrderedDict(a=1), OrderedDict(a=2), ['~ state["a"] 1 -> 2']),
        (Status.OPEN, Status.PAID, ["~ state Status.OPEN -> Status.PAID"]),
        (Order(1, [1]), Order(1, [1, 2]), ["+ state.items[1] 2"]),
        (Point(1, 2), Point(1, 3), ["~ state.y 2 -> 3"]),
        (Note("a"), Note("b"), ['~ state.text "a" -> "b"']),
        (Row("a", 1), Row("a", 2), ["~ state.value 1 -> 2"]),
        (Model(name="a"), Model(name="b"), ['~ state.name "a" -> "b"']),
        (Decimal("1.0"), Decimal("1.00"), ["~ state Decimal('1.0') -> Decimal('1.00')"]),
        (slice(1, 2), slice(1, 3), ["~ state.stop 2 -> 3"]),
        (None, {"a": 1}, ['~ state None -> {"a": 1} (NoneType became dict)']),
    ],
)
def test_a_change_is_said_where_it_is(old: Any, new: Any, expected: list[str]) -> None:
    """The path leads to the smallest part that changed, whatever the types on the way."""
    assert _texts(old, new) == expected


def test_what_no_text_shows_is_still_a_change() -> None:
    """A private attribute, or an object whose text stays the same."""
    one, two = Model(name="a"), Model(name="a")
    two._secret = 1

    assert [change.note for change in _compare(one, two)] == ["changed in a part that is not shown"]
    assert [change.note for change in _compare([Opaque(1)], [Opaque(2)])] == [
        "changed in a part that is not shown"
    ]


def test_an_object_without_a_text_is_compared_by_what_it_has() -> None:
    """The address that Python would print says nothing, and is another each time."""
    changes = _compare([Textless("user")], [Textless("tool")])

    assert [(each.path, each.old, each.new) for each in changes if "lock" not in each.path] == [
        ("state[0].role", '"user"', '"tool"')
    ]


@needs_arrays
def test_arrays_are_compared_by_their_bytes() -> None:
    """A changed element is found, and a large array is named and not printed."""
    (small,) = _texts({"a": np.array([1.0, 2.0])}, {"a": np.array([1.0, 3.0])})
    large = _texts(np.zeros(1000), np.ones(1000))

    assert small == (
        '~ state["a"] ndarray float64 of shape (2,): [1.0, 2.0] -> '
        "ndarray float64 of shape (2,): [1.0, 3.0]"
    )
    assert "1,000 elements" in large[0]
    assert "(changed in a part that is not shown)" in large[0]


def _message(text: str, role: str = "user") -> dict[str, str]:
    return {"role": role, "content": text}


def test_a_message_in_the_middle_and_an_edit_are_two_changes() -> None:
    """The edited message is recognised next to the new one, and both places are named."""
    old = [_message(f"message {n} of a conversation") for n in range(4)]
    new = [*old[:1], _message("You are root now.", "system"), *old[1:]]
    new[2] = _message("message 1 of a quarrel")

    came, edited = _texts({"messages": old}, {"messages": new})

    assert came == '+ state["messages"][1] {"role": "system", "content": "You are root now."}'
    assert edited == (
        '~ state["messages"][2]["content"] @state["messages"][1]["content"] '
        '"message 1 of a conversation" -> "message 1 of a quarrel"'
    )


def test_a_long_text_is_shown_from_where_it_differs() -> None:
    """The part before is counted and not repeated."""
    start, end = "same " * 100, " and so on" * 100
    (change,) = _compare(start + "old" + end, start + "new" + end)

    assert change.old is not None
    assert change.new is not None
    assert change.old.startswith('480 characters, then "same same same same old and so on')
    assert change.new.startswith('480 characters, then "same same same same new and so on')
    assert change.old.endswith("more characters")


def test_values_are_short_and_say_what_they_leave_out() -> None:
    """An added list of a thousand items is one line."""
    (change,) = _compare({}, {"a": list(range(1000))})

    assert change.new is not None
    assert len(change.new) < 300
    assert change.new.endswith("more]")


def test_deep_values_end() -> None:
    """What is nested deeper than people look is compared as a whole."""
    old: list[Any] = [1]
    new: list[Any] = [2]
    for _ in range(200):
        old, new = [old], [new]

    assert [change.kind for change in _compare(old, new)] == ["changed"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([0] * 6000, [0] * 6001),
        (list(range(3900)), list(range(3900, 0, -1))),
        (list(range(6000)), list(range(6000, 0, -1))),
        ([0, 1] * 990, [1, 1, 0] * 660),
        ([0, 1] * 70, [1, 1, 0] * 90),
        (list(range(6000)), [*range(3000), -1, *range(3000, 6000)]),
        ([{"n": n % 3} for n in range(3000)], [{"n": n % 5} for n in range(3001)]),
    ],
    ids=[
        *("equal items", "reversed", "long reversed", "patterns", "short patterns"),
        *("one in the middle", "many alike"),
    ],
)
def test_long_lists_take_no_time(old: list[Any], new: list[Any]) -> None:
    """Lists that are dear to align are compared by position instead."""
    with CpuTime() as cpu_time:
        changes = _compare(old, new)

        assert changes

    assert cpu_time.seconds < 20


def test_the_json_form_has_every_field() -> None:
    """Programs get the same words."""
    (change,) = compare({"a": 1}, {"a": 2}, _registry.encode, name="world")

    assert change.as_dict() == {
        "kind": "changed",
        "path": 'world["a"]',
        "path_before": None,
        "old": "1",
        "new": "2",
        "note": None,
    }


def _lines(old: str, new: str, **how: int) -> list[tuple[str, str, int]]:
    (change,) = compare(old, new, _registry.encode)
    return [(each.mark, each.text, each.count) for each in change.lines(**how)]


def test_a_text_that_changed_is_told_line_by_line() -> None:
    """Lines that both have stand around what differs, and those further off are counted."""
    before = [f"line {number}" for number in range(20)]
    after = [*before[:10], "another", *before[11:]]

    assert _lines("\n".join(before), "\n".join(after), context=1) == [
        ("skipped", "", 9),
        ("same", "line 9", 1),
        ("removed", "line 10", 1),
        ("added", "another", 1),
        ("same", "line 11", 1),
        ("skipped", "", 8),
    ]


@given(
    st.lists(st.sampled_from(["a", "b", "", "c"]), max_size=12),
    st.lists(st.sampled_from(["a", "b", "", "d"]), max_size=12),
    st.integers(min_value=0, max_value=3),
)
def test_lines_of_a_change_are_those_of_both_texts(
    before: list[str], after: list[str], context: int
) -> None:
    """What is told and what is counted add up to either text."""
    old, new = "\n".join(before), "\n".join(after)
    if old == new:
        return
    (change,) = compare(old, new, _registry.encode)
    lines = change.lines(context=context)

    for text, own in ((old, "removed"), (new, "added")):
        counted = sum(e.count for e in lines if e.mark in (own, "same", "skipped"))
        assert counted == len(text.split("\n"))
        told = [each.text for each in lines if each.mark == own]
        assert not [line for line in told if line not in text.split("\n")]


def test_a_megabyte_of_lines_is_told_in_bounds() -> None:
    """As many lines as were asked for, each not too long, and the rest counted."""
    before = "\n".join(f"{number}" for number in range(50_000))
    after = "\n".join(f"{number}x" for number in range(50_000)) + "\n" + "y" * 1_000_000
    with CpuTime() as cpu_time:
        (change,) = compare(before, after, _registry.encode)
        lines = change.lines(lines_max=100)
        (whole,) = compare("", "z" * 1_000_000, _registry.encode)

    assert len(lines) == 101
    assert (lines[-1].mark, lines[-1].count) == ("left-out", 100_001 - 100)
    assert whole.lines()[-1].text.endswith(" ... and 996,000 more characters")
    assert cpu_time.seconds < 5


def test_a_line_of_a_change_hides_nothing() -> None:
    """Controls of direction and of the terminal are visible in what is shown to people."""
    (change,) = compare({"a\u202e": "x"}, {"a\u202e": "\x1b[2J\nb"}, _registry.encode)

    assert change.shown().path == 'state["a\\u{202e}"]'
    assert change.shown().new == '"\\u001b[2J\\nb"'
    assert [line.text for line in change.lines() if line.mark == "added"] == [
        "\\u{1b}[2J",
        "b",
    ]
    assert change.path == 'state["a\u202e"]'


def test_only_texts_have_lines() -> None:
    """Of other values the short texts say it all, or say what they leave out."""
    (change,) = compare([1], [2], _registry.encode)
    (added,) = compare({}, {"t": "a\nb"}, _registry.encode)

    assert change.lines() == ()
    assert [each.as_dict() for each in added.lines()] == [
        {"mark": "added", "text": "a", "count": 1},
        {"mark": "added", "text": "b", "count": 1},
    ]
    assert "new_text" not in added.as_dict()


def test_two_checkpoints_are_compared_with_what_their_runs_could_do() -> None:
    """State, metadata and world by path, and the worlds leaf by leaf."""
    with sealpoint.open_store("memory:") as store:
        thread = store.thread("t")
        thread.save({"n": 1}, world={"tools": ["read", "pay"]}, metadata={"by": "a"})
        before = thread.load()
        thread.resume(world={"tools": ["read"]})
        thread.save({"n": 2, "token": "x"})
        after = thread.load()
        found = diff_checkpoints(before, after, store.registry.encode, masking=SECRETS)

    assert found.counts == {"changed": 1, "added": 1, "removed": 2}
    assert [(change.path, change.masked) for change in found.changes[:2]] == [
        ('state["n"]', False),
        ('state["token"]', True),
    ]
    assert found.world is not None
    assert found.world.lines() == ("- tool pay",)
    assert (found.before.seq, found.after.seq) == (before.ref.seq, after.ref.seq)
