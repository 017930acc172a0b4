# SPDX-License-Identifier: Apache-2.0
"""What a call of a guarded graph does, as JSON: different calls are told differently."""

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.types import Command, Interrupt, Send, StateUpdate

from sealpoint.adapters.guarded_runs import to_display_json
from sealpoint.codec import Registry
from sealpoint.errors import TypeNotAllowed
from sealpoint.limits import JSON_DEPTH_MAX
from sealpoint.store import plain_value
from sealpoint_langgraph._call_gate import Stops, edit_operation, run_operation
from sealpoint_langgraph._conversion import shown_question
from sealpoint_langgraph._framework_types import allow_framework_types


@dataclass(frozen=True)
class Quiet:
    """Two of them print alike."""

    amount: int = field(repr=False)


_REGISTRY = Registry()
allow_framework_types(_REGISTRY)
_REGISTRY.allow(Quiet, name="tests.quiet")
_NONE = Stops(None, None)
_TAGS = (
    *("resume", "update", "goto", "graph", "input", "go on", "edit", "namespace", "from"),
    *("interrupt_before", "values", "as_node", "type", "sha256", "text"),
    *("$object", "$$object", "object", "$", "a"),
)
_OBJECTS: tuple[Any, ...] = (
    *(
        (),
        (1,),
        (1, 2),
        {1},
        frozenset({1}),
        b"a",
        2**70,
        float("inf"),
        {1: 2},
        {"a": ()},
        "\ud800",
    ),
    *(Send("a", 1), Send("a", arg=True), HumanMessage("a"), Quiet(1), Quiet(2)),
)


def _stand_ins() -> list[Any]:
    told = [
        {
            "type": type(each).__qualname__,
            "sha256": sha256(_REGISTRY.encode(each)).hexdigest(),
            "text": repr(each),
        }
        for each in _OBJECTS
    ]
    return [
        *told,
        *({"$object": each} for each in told),
        *(to_display_json(each, _REGISTRY) for each in _OBJECTS),
    ]


_LEAVES = st.sampled_from(
    (None, True, False, 0, 1, 0.0, -0.0, 1.0, "", "a", "yes", "*", *_OBJECTS, *_stand_ins())
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.sampled_from(_TAGS), inner, max_size=3)
    ),
    max_leaves=6,
)
_NODES = st.sampled_from((None, "*", ["a"], ["a", "b"], ["*"]))
_GOTOS = st.sampled_from(((), "a", ["a"], ["a", "b"], Send("a", 1), [Send("a", 1), "a"]))
_COMMANDS = st.builds(
    Command,
    resume=_VALUES,
    update=_VALUES,
    goto=_GOTOS,
    graph=st.sampled_from((None, "a", "__parent__")),
)
_EDITS = st.builds(
    StateUpdate,
    _VALUES,
    st.sampled_from((None, "a", "b")),
    st.sampled_from((None, "a", "b")),
)


class _Run:
    """A run with an input, a command or nothing."""

    def __init__(self, value: Any, before: Any, after: Any) -> None:
        self.value, self.stops = value, Stops(before, after)

    def told(self) -> Any:
        return run_operation(
            self.value, _REGISTRY, own=Stops(["pay"], None), call=self.stops, binds=True
        )

    def meaning(self) -> str:
        value = self.value
        if isinstance(value, Command):
            goto = value.goto or ()
            jumps = [goto] if isinstance(goto, str | Send) else list(goto)
            parts = [value.resume, value.update, jumps, value.graph]
            value = None if parts == [None, None, [], None] else ("command", *map(_exact, parts))
        told = value if isinstance(value, tuple) else ("input", _exact(value))
        return repr(
            ("run", told if value is not None else None, [each or None for each in self.stops])
        )


class _Edit:
    """An edit in steps."""

    def __init__(self, steps: list[list[StateUpdate]], lane: str) -> None:
        self.steps, self.lane = steps, lane

    def told(self) -> Any:
        return edit_operation(self.steps, self.lane, _REGISTRY)

    def meaning(self) -> str:
        return repr(
            ("edit", [[_exact(tuple(each)) for each in step] for step in self.steps], self.lane)
        )


def _exact(value: Any) -> str:
    """A spelling of a value that tells types apart, and not the order of a dict."""
    if type(value) is dict:
        return "{" + ",".join(sorted(f"{_exact(k)}:{_exact(v)}" for k, v in value.items())) + "}"
    if type(value) in (list, tuple):
        return f"{type(value).__name__}({','.join(map(_exact, value))})"
    return f"{type(value).__name__}:{_REGISTRY.encode(value)!r}"


_OPERATIONS = st.one_of(
    st.builds(_Run, _VALUES | _COMMANDS, _NODES, _NODES),
    st.builds(
        _Edit, st.lists(st.lists(_EDITS, max_size=2), max_size=2), st.sampled_from(("", "a"))
    ),
)


def _json(operation: Any) -> str:
    return json.dumps(operation.told(), sort_keys=True)


@given(st.lists(_OPERATIONS, min_size=2, max_size=8))
def test_different_operations_are_told_differently(found: list[Any]) -> None:
    """No answer looks like a command, no object like data, no two steps like one."""
    meanings = {each.meaning() for each in found}

    assert len({_json(each) for each in found}) == len(meanings)


def _twins(told: Any) -> list[Any]:
    """Operations by which a caller brings what is told of another one."""
    inner = next(iter(told.values()), None) if isinstance(told, dict) else None
    return [
        made
        for value in (told, inner)
        for made in (
            _Run(value, None, None),
            _Run(Command(resume=value), None, None),
            _Run(Command(update=value), None, None),
            _Edit([[StateUpdate(value, "a")]], ""),
        )
    ]


@given(_OPERATIONS)
def test_no_operation_is_told_as_one_that_brings_its_words(operation: Any) -> None:
    """What is shown of a call is a value, too, and somebody may answer with it."""
    for twin in _twins(operation.told()):
        assert (_json(twin) == _json(operation)) == (twin.meaning() == operation.meaning())


@given(_VALUES)
def test_no_value_is_told_as_the_data_that_tell_it(value: Any) -> None:
    """However often: an object, what stands for it, and what stands for that."""
    told = to_display_json(value, _REGISTRY)
    again = to_display_json(told, _REGISTRY)

    assert (_exact(told) == _exact(again)) == (_exact(told) == _exact(value))


@given(st.lists(_VALUES, min_size=2, max_size=8))
def test_different_values_are_told_differently(found: list[Any]) -> None:
    """Whatever a caller chooses stands below a tag, and says which value it is."""
    told = {json.dumps(to_display_json(each, _REGISTRY), sort_keys=True) for each in found}

    assert len(told) == len({_exact(each) for each in found})


def test_objects_that_print_alike_are_told_differently() -> None:
    """By the digest of what would be saved, and by their fields, whatever a class prints."""
    told = [json.dumps(to_display_json(each, _REGISTRY)) for each in (*_OBJECTS, *_stand_ins())]
    texts = [to_display_json(Quiet(amount), _REGISTRY)["$object"]["text"] for amount in (1, 2)]

    assert len(set(told)) == len({_exact(each) for each in (*_OBJECTS, *_stand_ins())})
    assert texts == ["Quiet(amount=1)", "Quiet(amount=2)"]


@given(_OPERATIONS)
def test_what_is_told_fits_a_statement(operation: Any) -> None:
    """It is plain JSON of bounded depth."""
    told = operation.told()

    assert told is None or plain_value(told, "answer") == told


def test_what_is_told_is_readable() -> None:
    """People see the words of the framework, and messages with their text."""

    def told(value: Any) -> Any:
        return run_operation(value, _REGISTRY, own=_NONE, call=_NONE, binds=True)

    assert told(Command(resume="yes")) == {"resume": "yes"}
    assert told(Command(resume={"ok": True}, goto="pay")) == {
        "resume": {"ok": True},
        "goto": ["pay"],
    }
    assert told({"amount": 3}) == {"input": {"amount": 3}}
    (message,) = told({"messages": [HumanMessage("pay it")]})["input"]["messages"]
    assert message["$object"]["type"] == "HumanMessage"
    assert "pay it" in message["$object"]["text"]
    assert told(None) is told(Command()) is None
    assert edit_operation([[StateUpdate({"a": 1}, "b")]], None, _REGISTRY) == {
        "edit": [[{"values": {"a": 1}, "as_node": "b"}]]
    }


def test_a_new_turn_is_told_where_it_counts() -> None:
    """Where nobody is asked an ordinary turn brings nothing, unless it lifts a breakpoint."""

    def told(call: Stops) -> Any:
        own = Stops(["pay"], None)
        return run_operation({"a": 1}, _REGISTRY, own=own, call=call, binds=False)

    assert told(_NONE) is told(Stops(["pay", "end"], ["end"])) is told(Stops("*", None)) is None
    for nodes in (["end"], ["payment"], "payment"):
        assert told(Stops(nodes, None)) == {"input": {"a": 1}, "interrupt_before": nodes}


def test_deep_values_are_told_by_their_digest() -> None:
    """What stands around a value has room, however deep the value is."""
    value: Any = 1
    for _ in range(JSON_DEPTH_MAX * 2):
        value = [value]
    told = edit_operation([[StateUpdate({"a": value}, "b")]], None, _REGISTRY)

    assert plain_value(told, "answer") == told
    assert "$object" in json.dumps(told)


def test_a_type_that_is_not_allowed_is_refused_with_its_place() -> None:
    """Nobody is asked to approve what could not be saved."""

    class Stranger:
        pass

    with pytest.raises(TypeNotAllowed, match=r'\["a"\]\[1\]'):
        to_display_json({"a": [1, Stranger()]}, _REGISTRY)


def test_questions_are_told_with_their_ids() -> None:
    """A question is not the dict that looks like one."""
    asked = shown_question((Interrupt({"pay": 2}, id="1"),), _REGISTRY)

    assert asked == [{"id": "1", "value": {"pay": 2}}]
    assert shown_question([{"id": "1", "value": {"pay": 2}}], _REGISTRY) != asked
