# SPDX-License-Identifier: Apache-2.0
"""The machine that reads any pickle as symbols."""

import datetime as dt
import decimal
import pickle
import pickletools
import struct
import uuid
from collections import OrderedDict, deque
from typing import Any

import pytest

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_DEPTH_MAX, MODEL_NODES_MAX, MODEL_PICKLE_BYTES_MAX
from sealpoint_models.scan import (
    ANY_PICKLE,
    UNNAMED,
    Call,
    Dict,
    Global,
    List,
    Mentions,
    New,
    Persistent,
    Program,
    Set,
    Tuple,
    Value,
    run_pickle,
)


def _run(program: bytes) -> Value:
    return run_pickle(program + b".", "p").value


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


_VALUE = {
    "a": [1, -1, 255, 256, 1 << 16, 1 << 31, -(1 << 40), 1 << 2000, -(1 << 2000)],
    "b": (None, True, False, 1.5, -0.0, float("inf"), 1e300, ()),
    "c": [[], {}, (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    "d": list(range(3000)),
    "e": ["ü", "\u1234", "\U0001f600", "half \ud800", "\\ \n \r \0 \x1a ' \"", "x" * 70_000],
    5: {"x": {"y": ()}},
}


@pytest.mark.parametrize("protocol", range(6))
def test_plain_values_are_read_as_python_reads_them(protocol: int) -> None:
    """In every protocol, and also after unused numbers were taken out."""
    data = pickle.dumps(_VALUE, protocol)

    assert _plain(run_pickle(data, "p").value) == _VALUE
    assert _plain(run_pickle(pickletools.optimize(data), "p").value) == _VALUE


@pytest.mark.parametrize("protocol", [4, 5])
def test_bytes_and_sets_are_read_as_python_reads_them(protocol: int) -> None:
    """Where a protocol has opcodes for them; older ones write a call."""
    value = [b"", b"x" * 300, b"y" * 70_000, {1, 2}, frozenset({3}), set()]

    assert _plain(run_pickle(pickle.dumps(value, protocol), "p").value) == value


def test_byte_arrays_are_read_as_python_reads_them() -> None:
    """They have an opcode in protocol 5."""
    assert run_pickle(pickle.dumps(bytearray(b"z" * 300), 5), "p").value == bytearray(b"z" * 300)


@pytest.mark.parametrize(
    "value", [(1 << n) + d for n in (7, 8, 31, 32, 63, 64) for d in (-1, 0, 1)]
)
def test_ints_are_read_as_python_reads_them(value: int) -> None:
    """Around each border of the forms of an int."""
    for number in (value, -value):
        for protocol in range(6):
            assert run_pickle(pickle.dumps(number, protocol), "p").value == number


@pytest.mark.parametrize(
    ("program", "value"),
    [
        (b"S'a\\n\\x01'\n", "a\n\x01"),
        (b'S"it\'s"\n', "it's"),
        (b"S'\\xff'\n", b"\xff"),
        (b"U\x02ab", "ab"),
        (b"U\x01\xff", b"\xff"),
        (b"T\x02\x00\x00\x00ab", "ab"),
        (b"\x8a\x00", 0),
        (b"L12L\n", 12),
        (b"Va\\u005cb\n", "a\\b"),
        (b"(lp0\nI1\na", [1]),
        (b"(dp0\nI1\nI2\ns", {1: 2}),
        (b"(I1\nI2\nl", [1, 2]),
        (b"NN0", None),
        (b"K\x05(NN1", 5),
        (b"K\x05(0", 5),
        (b"K\x072\x86", (7, 7)),
    ],
)
def test_older_forms_are_read(program: bytes, value: object) -> None:
    """Strings of Python 2 are text if they are ASCII, and bytes otherwise."""
    assert _plain(_run(program)) == value


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        decimal.Decimal("1.5"),
        uuid.UUID(int=5),
        deque([1, 2], 3),
        OrderedDict(a=1),
        range(3),
        Global("m", "n"),
        Global,
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_are_symbols(value: Any, protocol: int) -> None:
    """A name is not looked up, a call is not made, and a state is not set."""
    program = run_pickle(pickle.dumps(value, protocol), "p")

    assert isinstance(program.value, Call | New | Global)
    assert program.names


def test_every_node_has_its_form() -> None:
    """Items, state, instances, keywords and references are kept apart."""
    name = b"cm\nf\n"
    tree = _run(
        b"(" + name + b")R(K\x01K\x02u}b" + name + b")\x81K\x03K\x04sK\x05b" + b"NQPabc\n"
        b"(ios\nx\n(" + name + b"K\x06o" + name + b")}K\x01K\x02s\x92t"
    )
    assert isinstance(tree, Tuple)
    called, made, referred, by_text, instance, by_class, keyed = tree.values

    assert isinstance(called, Call)
    assert (called.pairs, called.built, called.bare) == ([(1, 2)], True, False)
    assert isinstance(made, New)
    assert made.function == Global("m", "f")
    assert (made.pairs, made.state, made.built) == ([(3, 4)], 5, True)
    assert isinstance(referred, Persistent)
    assert referred.identity is None
    assert isinstance(by_text, Persistent)
    assert by_text.identity == "abc"
    assert isinstance(instance, Call)
    assert (instance.function, instance.bare) == (Global("os", "x"), True)
    assert isinstance(by_class, Call)
    assert by_class.arguments.values == (6,)
    assert isinstance(keyed, New)
    assert isinstance(keyed.keywords, Dict)


@pytest.mark.parametrize(
    "program",
    [
        b"cm\nf\n)R)R",
        b"N)R",
        b"(NK\x01o",
        b"cm\nf\n}b",
        b"cm\nf\n)R}b}b",
        b"]}b",
        b"N)\x81",
    ],
)
def test_what_is_no_name_is_called_without_one(program: bytes) -> None:
    """It is in no table, so that nobody takes it for something known."""
    tree = _run(program)

    assert isinstance(tree, Call | New)
    assert tree.function == UNNAMED
    assert (UNNAMED, len(program) - 1) in run_pickle(program + b".", "p").calls


def test_numbers_of_extensions_are_names() -> None:
    """Of no module: what they stand for only the process knew that wrote them."""
    names = run_pickle(b"(\x82\x01\x83\x01\x01\x84\x01\x00\x01\x00t.", "p").names

    assert [str(name) for name in names] == ["extension 1", "extension 257", "extension 65537"]


def test_dropped_names_and_calls_are_kept() -> None:
    """With the byte of the first mention, in order."""
    program = run_pickle(b"cos\nsystem\n(X\x02\x00\x00\x00lstR0ca\nb\n0cos\nsystem\n0N.", "p")

    assert program.value is None
    assert dict(program.names) == {Global("os", "system"): 0, Global("a", "b"): 22}
    assert program.calls == [(Global("os", "system"), 20)]


def test_names_of_a_pickle_that_is_refused_are_kept() -> None:
    """A payload first and a mistake after it is an old trick."""
    mentions = Mentions()
    with pytest.raises(ModelMalformed):
        run_pickle(b"cos\nsystem\n)R\xff", "p", mentions=mentions)

    assert mentions.calls == [(Global("os", "system"), 12)]


def test_pickles_may_follow_each_other() -> None:
    """Where the caller says so, the end of one is the beginning of the next."""
    data = pickle.dumps(1, 2) + pickle.dumps("a", 4) + b"rest"
    first = run_pickle(data, "p", whole=False)
    second = run_pickle(data, "p", start=first.end, whole=False)

    assert (first.value, second.value) == (1, "a")
    assert data[second.end :] == b"rest"
    with pytest.raises(ModelMalformed, match="nothing after the end"):
        run_pickle(data, "p")


def test_values_inside_of_themselves_are_read() -> None:
    """Lists, dicts and objects with links to their parents are no mistake."""
    cyclic: list[Any] = [1]
    cyclic.append({"parent": cyclic})
    for protocol in range(6):
        tree = run_pickle(pickle.dumps(cyclic, protocol), "p").value
        assert isinstance(tree, List)
        inner = tree.values[1]
        assert isinstance(inner, Dict)
        assert inner.pairs[0][1] is tree


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
        (b"]q\x00h\x00a", 2, 1),
    ],
)
def test_values_are_counted_wherever_they_are_used(
    program: bytes, nodes: int | None, depth: int | None
) -> None:
    """Counts and depths add up, also of what is shared."""
    tree = _run(program)

    assert getattr(tree, "nodes", None) == nodes
    assert getattr(tree, "depth", None) == depth


def _frame(content: bytes, length: int | None = None) -> bytes:
    return b"\x95" + struct.pack("<Q", len(content) if length is None else length) + content


_MALFORMED = {
    "nothing": b"",
    "unknown opcode": b"\xff",
    "protocol of the future": b"\x80\x06N",
    "protocol of the past": b"\x80\x01N",
    "protocol in the middle": b"N0\x80\x02N",
    "buffer from outside": b"\x97",
    "read-only buffer": b"N\x98",
    "append to nothing": b"Na",
    "append to a tuple": b")Na",
    "append to a name": b"cm\nf\nNa",
    "items in a list": b"]NNs",
    "members in a list": b"](N\x90",
    "members in a call": b"cm\nf\n)R(N\x90",
    "members in a frozenset": b"(N\x91(N\x90",
    "odd items": b"}(NNNu",
    "no mark": b"Nt",
    "tuple of too few": b"N\x86",
    "tuple over a mark": b"N(N\x86",
    "call without function": b")R",
    "call with a list": b"cm\nf\n]R",
    "keywords in a list": b"cm\nf\n)]\x92",
    "object of nothing": b"(o",
    "pop of nothing": b"0",
    "get what is not there": b"h\x00",
    "get from a gap": b"Nq\x05h\x00",
    "put nothing": b"q\x00",
    "put twice": b"Nq\x00q\x00",
    "put in order and by number": b"Nq\x05\x94",
    "put in other digits": b"Np00\n",
    "get a negative number": b"Np0\ng-1\n",
    "two values": b"NN",
    "open mark": b"(N",
    "text that is not UTF-8": b"X\x01\x00\x00\x00\xff",
    "name that is not UTF-8": b"c\xff\nf\n",
    "name without an end": b"cabc",
    "name longer than names are": b"c" + b"a" * 600 + b"\nf\n",
    "name of a number": b"K\x01\x8c\x01f\x93",
    "extension 0": b"\x82\x00",
    "extension below 0": b"\x84\xff\xff\xff\xff",
    "int that is cut off": b"J\x00",
    "text that is cut off": b"X\xff\xff\xff\xffa",
    "bytes that are cut off": b"\x8e" + b"\xff" * 8,
    "string of a negative length": b"T\xff\xff\xff\xff",
    "int in other digits": b"I0x10\n",
    "int with an underscore": b"I1_0\n",
    "int with a space": b"I 1\n",
    "int with a plus": b"I+1\n",
    "int with a leading zero": b"I010\n",
    "int with a NUL": b"I1\x00\n",
    "minus zero": b"I-0\n",
    "long without its letter": b"L1\n",
    "long in other digits": b"L0x1L\n",
    "int longer than it need be": b"\x8a\x02\x01\x00",
    "zero in a byte": b"\x8a\x01\x00",
    "float with a space": b"F 1.5\n",
    "float without a point": b"F1\n",
    "float with more digits": b"F1.50\n",
    "string without quotes": b"Sabc\n",
    "string in other quotes": b'S"abc"\n',
    "string with other escapes": b"S'\\u0041'\n",
    "text with other escapes": b"Va\\u0041\n",
    "reference that is not ASCII": b"P\xff\n",
    "frame beyond the end": b"\x80\x04" + _frame(b"N", 255),
    "frame that ends in an argument": b"\x80\x04" + _frame(b"X\x03\x00\x00\x00abc", 6),
    "frame that ends after an opcode": b"\x80\x04" + _frame(b"K\x01", 1),
    "frame in a frame": b"\x80\x04" + _frame(_frame(b"N") + b"0N"),
}


@pytest.mark.parametrize("program", _MALFORMED.values(), ids=_MALFORMED)
def test_malformed_program_is_refused(program: bytes) -> None:
    """The message names the record and what was expected."""
    with pytest.raises(ModelMalformed, match=r"^p: expected"):
        _run(program)


def test_every_opcode_is_known() -> None:
    """Those of Python are all read, but for buffers, which are not there."""
    special = {"PROTO", "STOP", "NEXT_BUFFER", "READONLY_BUFFER"}
    missing = {
        each.name for each in pickletools.opcodes if ord(each.code) not in ANY_PICKLE.opcodes
    }

    assert missing == special


def test_bounds_are_exact() -> None:
    """As deep as allowed is read, and one deeper is not."""
    assert _run(b"N" + b"\x85" * MODEL_DEPTH_MAX) is not None
    with pytest.raises(ModelLimitExceeded, match="deep"):
        _run(b"N" + b"\x85" * (MODEL_DEPTH_MAX + 1))


def test_pickle_that_is_too_long_is_refused() -> None:
    """Before anything of it is read."""
    with pytest.raises(ModelLimitExceeded, match=f"at most {MODEL_PICKLE_BYTES_MAX} bytes"):
        run_pickle(b"\x80\x02" + bytes(MODEL_PICKLE_BYTES_MAX), "p")


def test_small_program_for_a_huge_tree_is_refused() -> None:
    """Each value is counted wherever it is used, also where a cycle leads back."""
    doubled = b"".join(b"h%ch%c\x86q%c" % (at, at, at + 1) for at in range(30))
    levels = b"".join(b"]q%c(h%ch%ch\x00e0" % (at + 1, at, at) for at in range(30))
    assert MODEL_NODES_MAX < 1 << 30

    with pytest.raises(ModelLimitExceeded, match="counted where it is used"):
        _run(b"(Nq\x00" + doubled + b"t")
    with pytest.raises(ModelLimitExceeded, match="counted where it is used"):
        _run(b"]q\x00(" + levels[:-1] + b"e")


@pytest.mark.parametrize(
    ("head", "unit", "tail"),
    [
        (b"](", b"N", b"e"),
        (b"](", b"]", b"e"),
        (b"N", b"N0", b""),
        (b"", b"(", b""),
        (b"Nq\x00](", b"h\x00", b"e"),
        (b"}(", b"NN", b"u"),
        (b"cm\nf\nq\x00(", b"h\x00)R", b"t"),
        (b"(", b"I1\n", b"t"),
    ],
)
def test_more_than_fits_into_memory_is_refused(
    head: bytes, unit: bytes, tail: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that nothing holds are counted too, as are marks, names and what is dropped again."""
    monkeypatch.setattr("sealpoint_models.scan._pickle_machine.MODEL_SYMBOLS_BYTES_LEAST", 10_000)

    with pytest.raises(
        ModelLimitExceeded, match=r"more values and calls than a file of [0-9]+ bytes may have"
    ):
        _run(head + unit * 3000 + tail)


def test_number_far_away_makes_no_room() -> None:
    """An unpickler would ask for as much memory as the number says."""
    with pytest.raises(ModelLimitExceeded):
        _run(b"Nr\xff\xff\xff\xff")


def test_program_says_where_it_ends() -> None:
    """The place after its last byte."""
    assert run_pickle(b"N.", "p") == Program(value=None, end=2, mentions=Mentions())
