# SPDX-License-Identifier: Apache-2.0
"""The machine that reads a pickle as symbols."""

import pickle
import pickletools
import time

import pytest

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_DEPTH_MAX, MODEL_NODES_MAX, MODEL_PICKLE_BYTES_MAX
from sealpoint.scan import (
    TORCH_PICKLE,
    Call,
    Dict,
    Global,
    List,
    New,
    Persistent,
    Tuple,
    Value,
    run_pickle,
)


def _run(program: bytes) -> Value:
    return run_pickle(b"\x80\x02" + program + b".", "p", TORCH_PICKLE)


def _plain(value: Value) -> object:
    """A tree of plain containers as what it stands for."""
    match value:
        case Tuple():
            return tuple(map(_plain, value.values))
        case List():
            return list(map(_plain, value.values))
        case Dict():
            return {_plain(key): _plain(held) for key, held in value.pairs}
        case _:
            return value


_VALUE = {
    "a": [1, -1, 255, 256, 1 << 16, 1 << 31, -(1 << 40), 1 << 2000, -(1 << 2000)],
    "b": (None, True, False, 1.5, "ü", ()),
    "c": [[], {}, (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    "d": list(range(3000)),
    5: {"x": {"y": ()}},
}


def test_plain_values_are_read_as_python_reads_them() -> None:
    """What Python's pickler writes in protocol 2 gives the same values."""
    assert _plain(run_pickle(pickle.dumps(_VALUE, 2), "p", TORCH_PICKLE)) == _VALUE


@pytest.mark.parametrize(
    "value", [(1 << n) + d for n in (7, 8, 31, 32, 63, 64) for d in (-1, 0, 1)]
)
def test_ints_are_read_as_python_reads_them(value: int) -> None:
    """Around each border of the forms of an int."""
    for number in (value, -value):
        assert run_pickle(pickle.dumps(number, 2), "p", TORCH_PICKLE) == number


def test_calls_are_symbols() -> None:
    """A name is not looked up, a call is not made, and a state is not set."""
    tree = _run(b"cos\nsystem\n(X\x02\x00\x00\x00lstR")

    assert isinstance(tree, Call)
    assert tree.function == Global("os", "system")
    assert tree.arguments.values == ("ls",)


def test_every_node_has_its_form() -> None:
    """Items, state, instances and references are kept apart."""
    tree = _run(b"(cm\nf\n)R(K\x01K\x02u}bcm\nC\n)\x81K\x03K\x04sK\x05bNQt")
    assert isinstance(tree, Tuple)
    called, made, referred = tree.values

    assert isinstance(called, Call)
    assert called.pairs == [(1, 2)]
    assert called.built
    assert isinstance(made, New)
    assert made.function == Global("m", "C")
    assert (made.pairs, made.state, made.built) == ([(3, 4)], 5, True)
    assert isinstance(referred, Persistent)
    assert referred.identity is None


@pytest.mark.parametrize(
    ("program", "nodes", "depth"),
    [
        (b"N", None, None),
        (b")", 1, 1),
        (b"(NNt", 3, 1),
        (b"](K\x01]K\x02ae", 4, 2),
        (b"}(K\x01K\x02K\x03K\x04u", 5, 1),
        (b"Nq\x00(h\x00h\x00tq\x01(h\x01h\x01h\x01t\x87", 15, 3),
        (b"cm\nf\n)R", 3, 2),
    ],
)
def test_values_are_counted_wherever_they_are_used(
    program: bytes, nodes: int | None, depth: int | None
) -> None:
    """Counts and depths add up, also of what is shared."""
    tree = _run(program)

    assert getattr(tree, "nodes", None) == nodes
    assert getattr(tree, "depth", None) == depth


_MALFORMED = {
    "nothing": b"",
    "unknown opcode": b"\xff",
    "pop": b"NN0",
    "duplicate": b"N2",
    "instance": b"(ios\nsystem\n",
    "object": b"(cos\nsystem\no",
    "stack global": b"X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93",
    "memoize": b"N\x94",
    "frame": b"\x95\x00\x00\x00\x00\x00\x00\x00\x00N",
    "extension": b"\x82\x01",
    "text reference": b"Pabc\n",
    "text int": b"I1\n",
    "text get": b"Nq\x00g0\n",
    "long in four bytes": b"\x8b\x01\x00\x00\x00\x01",
    "bytes": b"C\x01a",
    "empty set": b"\x8f",
    "append to nothing": b"Na",
    "append to a tuple": b")Na",
    "items in a list": b"]NNs",
    "odd items": b"}(NNNu",
    "no mark": b"Nt",
    "tuple of too few": b"N\x86",
    "call without function": b")R",
    "call of a value": b"N)R",
    "call with a list": b"cm\nf\n]R",
    "call of a result": b"cm\nf\n)R)R",
    "state of a list": b"]}b",
    "two states": b"cm\nf\n)R}b}b",
    "items after a state": b"cm\nf\n)R}bNNs",
    "reference to nothing": b"Q",
    "get what is not there": b"h\x00",
    "put nothing": b"q\x00",
    "put twice": b"Nq\x00q\x01",
    "put after get": b"(Nq\x00h\x00q\x01t",
    "two values": b"NN",
    "open mark": b"(N",
    "text that is not UTF-8": b"X\x01\x00\x00\x00\xff",
    "half of a surrogate pair": b"X\x03\x00\x00\x00\xed\xa0\x80",
    "short text that is not UTF-8": b"U\x01\xff",
    "name that is not UTF-8": b"c\xff\nf\n",
    "name without an end": b"cabc",
    "name longer than names are": b"c" + b"a" * 600 + b"\nf\n",
    "int that is cut off": b"J\x00",
    "text that is cut off": b"X\xff\xff\xff\xffa",
    "cycle": b"]q\x00h\x00a",
    "cycle by a tuple": b"]q\x00(h\x00ta",
    "change after use": b"(]q\x00h\x00Nat",
}


@pytest.mark.parametrize("program", _MALFORMED.values(), ids=_MALFORMED)
def test_malformed_program_is_refused(program: bytes) -> None:
    """The message names the record and what was expected."""
    with pytest.raises(ModelMalformed, match=r"^p: expected"):
        _run(program)


@pytest.mark.parametrize("protocol", [0, 1, 3, 4, 5])
def test_other_protocol_is_refused(protocol: int) -> None:
    """Torch writes protocol 2 unless it is told otherwise."""
    with pytest.raises(ModelMalformed, match="expected a pickle of protocol 2, found"):
        run_pickle(pickle.dumps([1], protocol), "p", TORCH_PICKLE)


def test_no_opcode_is_known_that_protocol_2_does_not_have() -> None:
    """Every opcode of Python is either refused or one that protocol 2 writes."""
    known = {
        opcode.name
        for opcode in pickletools.opcodes
        if "opcode" not in _refusal(opcode.code.encode("latin-1"))
    }

    assert known == {
        *("MARK", "STOP", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "NONE", "NEWTRUE"),
        *("NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE"),
        *("SHORT_BINSTRING", "GLOBAL", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("EMPTY_LIST", "EMPTY_DICT", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "REDUCE"),
        *("NEWOBJ", "BUILD", "BINPERSID"),
    }


def _refusal(opcode: bytes) -> str:
    try:
        run_pickle(b"\x80\x02" + opcode, "p", TORCH_PICKLE)
    except ModelMalformed as exc:
        return str(exc).replace("its last opcode", "its end")
    return ""


def test_bounds_are_exact() -> None:
    """As deep as allowed is read, and one deeper is not."""
    assert _run(b"N" + b"\x85" * MODEL_DEPTH_MAX) is not None
    with pytest.raises(ModelLimitExceeded, match="deep"):
        _run(b"N" + b"\x85" * (MODEL_DEPTH_MAX + 1))


def test_pickle_that_is_too_long_is_refused() -> None:
    """Before anything of it is read."""
    with pytest.raises(ModelLimitExceeded, match=f"at most {MODEL_PICKLE_BYTES_MAX} bytes"):
        run_pickle(b"\x80\x02" + bytes(MODEL_PICKLE_BYTES_MAX), "p", TORCH_PICKLE)


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that nothing holds yet are counted too, as are marks and what is remembered."""
    monkeypatch.setattr("sealpoint.scan._pickle.MODEL_NODES_MAX", 1000)

    with pytest.raises(ModelLimitExceeded, match="more than 1000 values"):
        _run(b"N" * 1001)
    with pytest.raises(ModelLimitExceeded, match="more than 1000 values"):
        _run(b"Nq\x00" + b"h\x00" * 1001)
    with pytest.raises(ModelLimitExceeded, match="more than 1000 values"):
        _run(b"}" + b"(u" * 1001)
    assert MODEL_NODES_MAX == 1 << 22


def test_time_is_linear() -> None:
    """Ten times the program takes about ten times as long, however it is shared."""

    def seconds(levels: int) -> float:
        program = b"(Nr\x00\x00\x00\x00"
        for index in range(levels):
            program += b"Nr" + (index + 1).to_bytes(4, "little")
            program += b"(" + (b"j" + index.to_bytes(4, "little")) * 20 + b"t"
        begin = time.process_time()
        _run(program + b"t")
        return time.process_time() - begin

    small, large = min(seconds(300) for _ in range(3)), seconds(3000)

    assert large < 40 * small
