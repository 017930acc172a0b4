# SPDX-License-Identifier: Apache-2.0
"""The flat vectors that are accepted: every tag, every kind of rule, and what readers tolerate."""

import uuid
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import torch
from pydantic_core import TzInfo

from sealpoint.limits import Limits
from tests.vectors.building import accept, array, encoded, extension, shape, typed
from tests.vectors.rules import (
    Access,
    Color,
    Invoice,
    Message,
    Nothing,
    Pair,
    Plan,
    Point,
    Ticket,
    Token,
    Tool,
    Usage,
    Wide,
)

__all__ = ["accepted"]

Vectors = Iterator[dict[str, Any]]


def accepted() -> list[dict[str, Any]]:
    """Every flat vector that a reader must accept."""
    groups = (_plain, _tolerated, _numbers, _times, _places, _containers, _keys, _arrays)
    return [vector for group in (*groups, _tensors, _typed, _limits) for vector in group()]


def _plain() -> Vectors:
    for constant in (None, False, True):
        yield accept(f"constant {constant}", "One byte.", constant)
    edges = (0, 127, 128, 255, 256, 65535, 65536, (1 << 32) - 1, 1 << 32, (1 << 64) - 1)
    for number in (*edges, -1, -32, -33, -128, -129, -32768, -32769, -(1 << 31), -(1 << 63)):
        yield accept(f"int {number}", "The shortest form of an integer.", number)
    floats = {"0": 0.0, "-0": -0.0, "1.5": 1.5, "infinity": float("inf"), "nan": float("nan")}
    for name, double in floats.items():
        yield accept(f"float {name}", "A float has eight bytes.", double)
    for size in (0, 31, 32, 256):
        yield accept(f"text of {size}", "The shortest header of a text.", "a" * size)
        yield accept(f"bytes of {size}", "The shortest header of a byte string.", b"\xc1" * size)
    yield accept("text in UTF-8", "Any code point but the surrogates, NUL included.", "\0é€😀")
    for size in (0, 15, 16):
        yield accept(f"list of {size}", "The shortest header of a list.", [0] * size)
        mapping = {chr(97 + place): place for place in range(size)}
        yield accept(f"map of {size}", "The shortest header of a map, in its own order.", mapping)
    yield accept("map order", "A map keeps the order of its keys.", {"b": 1, "a": 2})
    yield accept("nested", "Lists and maps in one another.", {"a": [{"b": [[], {}]}]})


def _tolerated() -> Vectors:
    long = "No writer writes it; a reader built on a general engine accepts it."
    yield accept("long int", long, 5, b"\xd3" + bytes(7) + b"\5")
    yield accept("long negative int", long, -1, b"\xd1\xff\xff")
    yield accept("float32", long, 1.5, b"\xca\x3f\xc0\0\0")
    yield accept("long text", long, "a", b"\xdb\0\0\0\1a")
    yield accept("long key", long, {"a": 1}, b"\x81\xd9\1a\1")
    yield accept("long bytes", long, b"a", b"\xc6\0\0\0\1a")
    yield accept("long list", long, [1], b"\xdd\0\0\0\1\1")
    yield accept("long map", long, {"a": 1}, b"\xdf\0\0\0\1\xa1a\1")
    yield accept("long extension", long, (1,), b"\xc9\0\0\0\2\6\x91\1")
    yield accept(
        "equal keys",
        "The last one wins, in the place of the first.",
        {"a": 3, "b": 2},
        b"\x83\xa1a\1\xa1b\2\xa1a\3",
    )
    moment = datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC)
    whole = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    yield accept(
        "nanoseconds",
        "A timestamp is cut to microseconds.",
        moment,
        b"\xd7\xff" + (1999 << 34 | 1).to_bytes(8, "big"),
    )
    yield accept("long timestamp", long, whole, b"\xd7\xff" + (1).to_bytes(8, "big"))
    yield accept("longest timestamp", long, whole, b"\xc7\x0c\xff" + bytes(11) + b"\1")
    yield accept("long timestamp header", long, whole, b"\xc7\4\xff\0\0\0\1")
    yield accept("unsorted set", "Order is the writer's duty.", {1, 2}, extension(7, b"\x92\2\1"))


def _numbers() -> Vectors:
    for number in (1 << 64, -(1 << 63) - 1, 1 << 71, -(1 << 71), (1 << 71) - 1, 1 << 200):
        yield accept(f"big int {number:#x}", "Two's complement, as short as can be.", number)
    yield accept("complex", "Two doubles.", complex(1.5, -0.0))
    for text in ("0", "-0", "1.10", "1E+5", "-1.5E-7", "0E-10", "NaN", "-sNaN12", "Infinity"):
        yield accept(f"decimal {text}", "The text that a decimal prints.", Decimal(text))
    yield accept("fraction", "Lowest terms.", Fraction(-1, 3))
    yield accept("fraction of big ints", "Parts beyond 64 bits.", Fraction((1 << 70) + 1, 1 << 70))
    yield accept("fraction 0", "Zero is 0/1.", Fraction(0))


def _times() -> Vectors:
    for name, moment in {
        "timestamp 32": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "timestamp 64": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        "timestamp 64 late": datetime(2200, 1, 1, tzinfo=UTC),
        "timestamp 96 early": datetime(1, 1, 1, tzinfo=UTC),
        "timestamp 96 late": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        "timestamp before 1970": datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    }.items():
        yield accept(name, "A time in UTC in the shortest of its three forms.", moment)
    yield accept("datetime naive", "Without a zone.", datetime(2026, 1, 2, 3, 4, 5, 6))  # noqa: DTZ001
    offset = timezone(timedelta(hours=5, minutes=30))
    named = timezone(timedelta(microseconds=-1), "a\ud800")
    zones: dict[str, tzinfo] = {
        "offset": offset,
        "named offset": named,
        "empty name": timezone(timedelta(0), ""),
    }
    zones |= {"iana": ZoneInfo("Europe/Berlin"), "pydantic": TzInfo(-3600)}
    for name, zone in zones.items():
        moment = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=zone)
        yield accept(f"datetime {name}", "Calendar fields, fold and zone.", moment)
        yield accept(f"time {name}", "Clock fields and zone.", time(1, 2, 3, 4, zone))
        if name != "pydantic":
            yield accept(f"zone {name}", "A zone that stands for itself.", zone)
    folded = datetime(2026, 1, 2, tzinfo=UTC, fold=1)
    yield accept("datetime UTC folded", "Only a folded time in UTC has calendar fields.", folded)
    yield accept("zone UTC", "UTC in its own form.", UTC)
    yield accept("time naive", "Without a zone.", time(23, 59, 59, 999999, fold=1))
    yield accept("date", "Year, month and day.", date(2026, 2, 28))
    for name, span in {"zero": timedelta(0), "least": timedelta.min, "most": timedelta.max}.items():
        yield accept(f"timedelta {name}", "Days, seconds and microseconds, normalised.", span)


def _places() -> Vectors:
    yield accept("uuid", "Sixteen bytes.", uuid.UUID(int=0x0123456789ABCDEF))
    yield accept("path posix", "A code and the path's text.", PurePosixPath("/a/../b"))
    yield accept("path empty", "The empty path prints a dot.", PurePosixPath())
    yield accept("path windows", "Backslashes.", PureWindowsPath("c:/a/b"))
    yield accept("path concrete", "Of the reader's system only.", PosixPath("a/b"))
    yield accept("path surrogate", "File names that are no UTF-8.", PurePosixPath("a\udcff"))
    for text in ("127.0.0.1", "::1", "fe80::1%eth0"):
        yield accept(
            f"address {text}", "A code, the address's bytes and a scope.", ip_address(text)
        )
    for text in ("10.0.0.0/8", "2001:db8::/32"):
        yield accept(
            f"network {text}",
            "A code, the address's bytes and the prefix length.",
            ip_network(text),
        )
    for text in ("10.0.0.1/8", "2001:db8::1/32"):
        yield accept(
            f"interface {text}",
            "A code, the address's bytes and the prefix length.",
            ip_interface(text),
        )


def _containers() -> Vectors:
    yield accept("surrogate text", "A string that UTF-8 cannot hold.", "a\ud800")
    yield accept("tuple", "Members as a list.", (1, (2, ()), "a"))
    yield accept("set", "Members in the order of their encodings.", {3, "a", b"b", None, (1, 2)})
    yield accept("set empty", "No members.", set())
    yield accept("frozenset", "As a set.", frozenset({frozenset({1}), 2.5}))
    yield accept("deque", "The longest length, then the members.", deque([1, 2], 3))
    yield accept("deque endless", "No longest length.", deque([[1]]))
    yield accept("ordered dict", "Pairs, whatever the keys.", OrderedDict(b=1, a=2))
    factories = (None, list, dict, set, int, float, str, bool, tuple, frozenset, bytes, deque)
    for code, factory in enumerate((*factories, OrderedDict)):
        value: defaultdict[str, Any] = defaultdict(factory, {"a": 1})
        yield accept(f"default dict {code}", "A code for the factory, then the pairs.", value)
    yield accept("range", "Start, stop and step.", range(10, -(1 << 70), -3))
    yield accept("slice", "Any three values.", slice(None, "a", (1,)))
    deepest = Limits().extension_depth_max
    yield accept("extensions deep", "extension_depth_max levels.", _wrapped(deepest, 0))
    leaf = _wrapped(deepest, uuid.UUID(int=1))
    yield accept("leaf in extensions deep", "A payload without values is no level.", leaf)
    lists: Any = []
    maps: Any = {}
    for _ in range(254):
        lists, maps = [lists], {"a": maps}
    yield accept("lists 255 deep", "ENCODE_DEPTH_MAX, the deepest that is written.", lists)
    yield accept("maps 255 deep", "ENCODE_DEPTH_MAX, the deepest that is written.", maps)
    deep: Any = None
    for _ in range(254):
        deep = [deep]
    yield accept("lists 255 deep in a tuple", "The same in a payload.", [(deep,)])


def _wrapped(count: int, value: Any) -> Any:
    for _ in range(count):
        value = (value,)
    return value


def _keys() -> Vectors:
    yield accept("dict of int keys", "Pairs as a list.", {1: "a", -1: "b"})
    mixed = {None: 1, False: 2, 2: 3, 2.5: 4, "a": 5, b"a": 6, (1, "b"): 7, frozenset({1}): 8}
    yield accept("dict of mixed keys", "Keys of any type whose hash is Python's own.", mixed)
    yield accept("dict of surrogate key", "A key that UTF-8 cannot hold.", {"\udc80": 1, "a": 2})
    times = {date(2026, 1, 1): 1, timedelta(1): 2, UTC: 3, Decimal("1.5"): 4, Fraction(1, 3): 5}
    yield accept("dict of other keys", "Built-in values as keys.", times)
    objects = {Point(1, 2.0): 1, Pair(1, 2): 2, Color.RED: 3, Access.READ | Access.RUN: 4}
    yield accept("dict of object keys", "Types whose hash is generated.", objects)
    yield accept(
        "set of scalars", "Scalars are compared as numbers.", {np.int32(1), np.float32(0.5)}
    )
    nans = [float("nan"), float("nan")]
    yield accept("set of NaN", "A NaN equals nothing.", set(nans))
    colliding = {place * ((1 << 61) - 1) for place in range(16)} | {1}
    yield accept("16 colliding keys", "colliding_keys_max.", colliding)


def _arrays() -> Vectors:
    text = "Element type, shape and raw bytes."
    for element in ("|b1", "|i1", "|u1", "<i2", ">u4", "<i8", "<f2", ">f4", "<f8", "<c8", ">c16"):
        yield accept(f"array {element}", text, np.array([[0, 1, 1]], dtype=element))
    for element in ("<m8", "<m8[s]", ">M8[25us]", "<M8[D]"):
        yield accept(f"array {element}", text, np.array([0, 1]).astype(element))
    yield accept("array |S3", text, np.array([b"a", b"bcd"]))
    yield accept("array <U2", text, np.array(["a", "\ud800b"]))
    yield accept("array >U1", text, np.array(["a"], dtype=">U1"))
    yield accept("array 0-d", "No dimensions, one element.", np.array(1.5))
    yield accept("array empty", "A side of 0.", np.zeros((2, 0, 3), dtype="<i4"))
    inner = np.dtype([("c", "|b1"), ("d", "<U1", (2,))])
    record = np.zeros(2, dtype=[("a", "<i2"), ("b", inner, (1, 2))])
    yield accept("array of records", "Fields with shapes, packed.", record)
    yield accept("scalar of a record", text, record[0])
    numbers: tuple[Any, ...] = (np.bool_(1), np.int8(-1), np.uint64(1), np.float16(0.5))
    others = (np.float64(0.1), np.complex64(1j), np.datetime64(5, "s"), np.timedelta64(5, "D"))
    for scalar in (*numbers, *others):
        yield accept(f"scalar {scalar.dtype.str}", "Element type and raw bytes.", scalar)
    for string in (np.bytes_(b""), np.bytes_(b"a\0"), np.str_(""), np.str_("a\ud800\0")):
        kind = "bytes" if isinstance(string, bytes) else "text"
        name = f"scalar {kind} of {len(string)}"
        yield accept(name, "A string of its own length, zeros at its end included.", string)
    long = "Raw bytes in a longer header than needed."
    pair = np.array([1, 2], dtype="|u1")
    yield accept("array bin32", long, pair, array(32, ["|u1", [2]], b"\xc6\0\0\0\2\1\2"))
    yield accept(
        "scalar big endian",
        "Read as the same number.",
        np.int32(1),
        array(33, [">i4"], b"\xc4\4\0\0\0\1"),
    )
    yield accept("array nested", "Anywhere in a value.", {"a": [(np.array([1, 2]),)]})


def _tensors() -> Vectors:
    text = "Element type, shape, gradient flag and raw bytes."
    integers = (torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32)
    for element in (*integers, torch.int64, torch.uint64, torch.bool):
        name = str(element).removeprefix("torch.")
        yield accept(f"tensor {name}", text, torch.tensor([[1], [0]]).to(element))
    floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for element in (*floats, torch.complex64, torch.complex128):
        name = str(element).removeprefix("torch.")
        value = torch.tensor([0.5]).to(element).requires_grad_()
        yield accept(f"tensor {name}", text, value)
    yield accept("tensor 0-d", "No dimensions, one element.", torch.tensor(5))
    yield accept("tensor empty", "A side of 0.", torch.zeros(0, 3))


def _typed() -> Vectors:
    yield accept("dataclass", "Fields by name, in declared order.", Plan(["a"], None))
    yield accept("dataclass frozen", "The same.", Point(1, 2.5))
    yield accept("dataclass empty", "A body with an empty map.", Nothing())
    wide = Wide(*range(16))
    yield accept("dataclass wide", "Sixteen fields need a longer map header.", wide)
    yield accept("attrs", "Private attributes keep their names.", Tool("a", 1))
    yield accept("namedtuple", "Fields by name.", Pair((1,), [2]))
    yield accept("enum", "A member by its name.", Color.GREEN)
    yield accept("flag", "A single flag by its name.", Access.WRITE)
    yield accept("flag named combination", "A named combination by its name.", Access.EDIT)
    yield accept("flag combination", "Other combinations by their value.", Access.READ | Access.RUN)
    yield accept("flag none", "No flags: 0.", Access(0))
    yield accept("pydantic", "Fields, given, extra, private.", Message(text="a"))
    message = Message(text="a", score=1.5, other=[1])  # type: ignore[call-arg]
    yield accept("pydantic extra", "Extra fields apart.", message)
    built = Message.model_construct(text="a", other=1)
    built.__pydantic_fields_set__, built.__pydantic_private__ = {"text"}, None
    yield accept("pydantic extra not given", "Bits for extra fields come behind.", built)
    yield accept("struct", "Fields by name.", Usage(5, Decimal("0.01")))
    yield accept("pair", "What the encode function gave.", Token({"a": (1,)}))
    nested = Plan([Point(1, 2.0), Color.RED], [Message(text="b")])  # type: ignore[list-item, arg-type]
    yield accept("typed nested", "Typed values in typed values.", nested)
    yield from _older_shapes()
    yield accept("version 3", "The rule's own version.", Invoice("7", "USD", "x"))
    old = "An older version, upgraded step by step; its shape is not compared."
    yield accept(
        "version 2",
        old,
        Invoice("7", "USD", None),
        typed("test.invoice", b"\x91" + encoded({"number": "7", "currency": "USD"}), version=2),
    )
    yield accept(
        "version 1",
        old,
        Invoice("7", "EUR", None),
        typed("test.invoice", b"\x91" + encoded({"number": "7"}), version=1, shape=bytes(8)),
    )
    yield accept(
        "version 1 with more parts",
        "Parts beside the fields mean nothing here.",
        Invoice("7", "EUR", None),
        typed("test.invoice", b"\x92" + encoded({"number": "7"}) + b"\1", version=1),
    )
    yield accept(
        "enum alias",
        "An alias names its member.",
        Color.RED,
        typed("test.color", b"\x91" + encoded({"name": "CRIMSON"})),
    )
    without = Message(text="a")
    without.__pydantic_private__ = None
    yield accept("pydantic no private", "None where nothing was ever set.", without)


def _older_shapes() -> Vectors:
    number, urgent, score = ("number", "str"), ("urgent", "bool"), ("score", "float")
    text = "A field that was added since gets its default."
    for name, fields, stored, value in (
        (
            "field added",
            [number, urgent],
            {"number": "7", "urgent": True},
            Ticket("7", urgent=True),
        ),
        ("fields added", [number], {"number": "7"}, Ticket("7")),
        (
            "field added elsewhere",
            [urgent, number],
            {"urgent": True, "number": "7"},
            Ticket("7", urgent=True),
        ),
    ):
        older = shape("dataclass", *fields)
        body = b"\x91" + encoded(stored)
        yield accept(name, text, value, typed("test.ticket", body, shape=older))
    swapped = shape("dataclass", ("y", "float"), ("x", "int"))
    yield accept(
        "fields in another order",
        "Fields are known by their names.",
        Point(1, 2.0),
        typed("test.point", b"\x91" + encoded({"y": 2.0, "x": 1}), shape=swapped),
    )
    model = b"\x94" + encoded({"text": "a"}) + b"\1\xc0" + encoded({"_seen": 0})
    plain = Message(text="a")
    plain.__pydantic_extra__ = None
    older = shape("pydantic", ("text", "str"))
    yield accept(
        "pydantic field added",
        "It does not count as given.",
        plain,
        typed("test.message", model, shape=older),
    )
    extra = b"\x94" + encoded({"text": "a"}) + b"\3\x81\xa5other\1\xc0"
    given = Message(text="a", other=1)  # type: ignore[call-arg]
    given.__pydantic_private__ = None
    yield accept(
        "pydantic field added before extra",
        "Bits of extra fields move up.",
        given,
        typed("test.message", extra, shape=older),
    )
    moved = b"\x94" + encoded({"score": 1.5, "text": "a"}) + b"\2\xc0\xc0"
    without = Message.model_construct({"text"}, text="a", score=1.5)
    without.__pydantic_extra__ = without.__pydantic_private__ = None
    yield accept(
        "pydantic in another order",
        "Bits follow the stored order.",
        without,
        typed("test.message", moved, shape=shape("pydantic", score, ("text", "str"))),
    )


def _limits() -> Vectors:
    def at(name: str, bound: int, value: Any) -> dict[str, Any]:
        return accept(f"{name} {bound}", "Exactly at a limit.", value, limits={name: bound})

    yield at("int_bytes_max", 10, 1 << 72)
    yield at("fraction_part_bytes_max", 2, Fraction(0x7FFF, 0x7FFE))
    yield at("decimal_digits_max", 3, Decimal("1.23"))
    yield at("decimal_exponent_max", 3, Decimal("1E-3"))
    yield at("text_bytes_max", 3, PurePosixPath("abc"))
    yield at("array_dimensions_max", 2, np.zeros((1, 1)))
    yield at("array_elements_max", 3, np.zeros(3))
    yield at("costly_values_max", 2, [PurePosixPath("a"), deque()])
    yield at("extension_depth_max", 2, ((1,),))
    yield at("colliding_keys_max", 2, {(1 << 61) - 1, 0, 1})
    yield at("value_bytes_max", 4, [1, 2, 3])
    yield at("value_nodes_max", 4, ["aaaaaaaa", 2, 3])
