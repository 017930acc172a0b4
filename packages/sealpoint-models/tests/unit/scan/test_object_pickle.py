# SPDX-License-Identifier: Apache-2.0
"""The machine that reads a pickle as symbols, for what Python's pickler writes for objects."""

import datetime as dt
import decimal
import pickle
import pickletools
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any

import pytest

from sealpoint.errors import FileRefused
from sealpoint.limits import MODEL_DEPTH_MAX, MODEL_NODES_MAX, MODEL_PICKLE_BYTES_MAX
from sealpoint_models.scan import (
    OBJECT_PICKLE,
    Call,
    Dict,
    Global,
    List,
    New,
    Set,
    Tuple,
    Value,
    run_pickle,
)


@dataclass
class _Point:
    x: int


def _run(program: bytes) -> Value:
    return run_pickle(b"\x80\x05" + program + b".", "p", OBJECT_PICKLE).value


def _plain(value: Value) -> object:
    """A tree of plain containers as what it stands for."""
    match value:
        case Tuple():
            return tuple(map(_plain, value.values))
        case List():
            return list(map(_plain, value.values))
        case Set():
            members = map(_plain, value.values)
            return frozenset(members) if value.frozen else set(members)
        case Dict():
            return {_plain(key): _plain(held) for key, held in value.pairs}
        case _:
            return value


_SHARED = ["shared", ("a",)]
_VALUE = {
    "ints": [1, -1, 255, 256, 1 << 16, 1 << 31, -(1 << 40), 1 << 2000, 1 << 3000, -(1 << 3000)],
    "scalars": (None, True, False, 1.5, "ü", "half \ud800", b"", b"x" * 300, bytearray(b"y")),
    "containers": [[], {}, (), {1, 2}, frozenset({3}), set(), (1, 2, 3, 4)],
    "long": ["x" * 300, "y" * 100_000, b"z" * 100_000, list(range(3000))],
    "shared": [_SHARED, _SHARED, {"again": _SHARED}],
    5: {"x": {"y": ()}},
}


def test_plain_values_are_read_as_python_reads_them() -> None:
    """What Python's pickler writes in protocol 5 gives the same values, frames and all."""
    assert _plain(run_pickle(pickle.dumps(_VALUE, 5), "p", OBJECT_PICKLE).value) == _VALUE


@pytest.mark.parametrize(
    "value",
    [
        _Point(1),
        dt.datetime.now(dt.UTC),
        decimal.Decimal("1.5"),
        uuid.uuid4(),
        deque([1, 2], 3),
        OrderedDict(a=1),
        _Point,
        list[str],
    ],
)
def test_objects_are_symbols(value: Any) -> None:
    """A name is not looked up, a call is not made, and a state is not set."""
    tree = run_pickle(pickle.dumps(value, 5), "p", OBJECT_PICKLE).value

    assert isinstance(tree, Call | New | Global)


def test_every_node_has_its_form() -> None:
    """Names, calls with items, bare objects with a state, sets."""
    name = b"\x8c\x01m\x8c\x01f\x93"
    tree = _run(b"(" + name + b")R(K\x01K\x02e" + name + b")\x81}b\x8f(K\x03\x90(K\x04\x91t")
    assert isinstance(tree, Tuple)
    called, made, members, frozen = tree.values

    assert isinstance(called, Call)
    assert called.function == Global("m", "f")
    assert called.values == [1, 2]
    assert isinstance(made, New)
    assert made.built
    assert isinstance(members, Set)
    assert (members.values, members.frozen) == ([3], False)
    assert isinstance(frozen, Set)
    assert (frozen.values, frozen.frozen) == ([4], True)


_NAME = b"\x8c\x01m\x8c\x01f\x93"
_MALFORMED = {
    "nothing": b"",
    "pop": b"NN0",
    "pop to a mark": b"N(N1",
    "duplicate": b"N2",
    "instance": b"(ios\nsystem\n",
    "object": b"(" + _NAME + b"o",
    "name in lines": b"cos\nsystem\n",
    "name of a number": b"K\x01\x8c\x01f\x93",
    "name without a module": b"\x8c\x01f\x93",
    "name longer than names are": b"X\x58\x02\x00\x00" + b"a" * 600 + b"\x8c\x01f\x93",
    "put by a number": b"Nq\x00",
    "memo of nothing": b"\x94",
    "memo twice": b"N\x94\x94",
    "memo after get": b"(N\x94h\x00\x94t",
    "get what is not there": b"h\x00",
    "extension": b"\x82\x01",
    "persistent reference": b"NQ",
    "buffer from outside": b"\x97",
    "read-only buffer": b"N\x98",
    "arguments by name": _NAME + b")}\x92",
    "text int": b"I1\n",
    "frame beyond the end": b"\x95\xff\x00\x00\x00\x00\x00\x00\x00N",
    "text beyond the end": b"\x8c\xffa",
    "bytes beyond the end": b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff",
    "text that is not UTF-8": b"\x8c\x01\xff",
    "int that is longer than it need be": b"\x8a\x02\x01\x00",
    "append to a set": b"\x8fNa",
    "append after a state": _NAME + b")\x81}bNa",
    "add to a list": b"](N\x90",
    "add to a frozenset": b"((N\x91(N\x90t",
    "state of a name": _NAME + b"}b",
    "call of a result": _NAME + b")R)R",
    "cycle": b"]\x94h\x00a",
    "cycle by a set": b"\x8f\x94(h\x00\x90",
    "change after use": b"(]\x94h\x00Nat",
    "set changed after use": b"(\x8f\x94h\x00(N\x90t",
    "two values": b"NN",
    "open mark": b"(N",
}


@pytest.mark.parametrize("name", _MALFORMED)
def test_any_other_program_is_refused(name: str) -> None:
    """An opcode that the pickler does not write, or one that does not add up."""
    with pytest.raises(FileRefused):
        _run(_MALFORMED[name])


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_other_protocols_are_refused(protocol: int) -> None:
    """The framework always writes the highest."""
    with pytest.raises(FileRefused, match="protocol 5"):
        run_pickle(pickle.dumps([1], protocol), "p", OBJECT_PICKLE)


def test_every_opcode_is_taken_or_refused() -> None:
    """Those that call, import or reach outside are not among those that are taken."""
    never = {"INST", "OBJ", "GLOBAL", "PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "NEXT_BUFFER"}
    taken = {each.name for each in pickletools.opcodes if ord(each.code) in OBJECT_PICKLE.opcodes}

    assert taken.isdisjoint(never)
    assert {"REDUCE", "NEWOBJ", "BUILD", "STACK_GLOBAL", "MEMOIZE"} <= taken


def test_bytes_values_and_nesting_are_bounded() -> None:
    """Each is refused before it is walked, also where a few bytes stand for many values."""
    doubled = b"()\x94" + b"".join(
        b"h" + bytes((place,)) * 1 + b"h" + bytes((place,)) + b"\x86\x94" for place in range(30)
    )
    for program in (b"]" * (MODEL_DEPTH_MAX + 1) + b"a" * MODEL_DEPTH_MAX, doubled + b"t"):
        with pytest.raises(FileRefused):
            _run(program)
    assert MODEL_NODES_MAX < 1 << 30
    with pytest.raises(FileRefused, match="bytes"):
        run_pickle(b"\x80\x05" + bytes(MODEL_PICKLE_BYTES_MAX), "p", OBJECT_PICKLE)
