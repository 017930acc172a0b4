# SPDX-License-Identifier: Apache-2.0
"""The flat vectors that are refused, with the code of the error: every class of refusal."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np

from sealpoint.limits import Limits
from tests.vectors.building import array, encoded, extension, reference, refuse, shape, typed

__all__ = ["refused"]

Vectors = Iterator[dict[str, Any]]

_MALFORMED = "bytes-malformed"
_LIMIT = "decode-limit"
_UNKNOWN = "unknown-type"
_NO, _YES = False, True


def refused() -> list[dict[str, Any]]:
    """Every flat vector that a reader must refuse."""
    groups = (_framing, _extensions, _numbers, _times, _places, _containers, _arrays, _tensors)
    return [vector for group in (*groups, _typed, _limits) for vector in group()]


def _each(text: str, error: str, cases: dict[str, bytes]) -> Vectors:
    for name, data in cases.items():
        yield refuse(name, text, error, data)


def _framing() -> Vectors:
    yield from _each(
        "Every byte belongs to the one value.",
        _MALFORMED,
        {
            "nothing": b"",
            "trailing byte": b"\1\2",
            "trailing value after an extension": extension(6, b"\x90") + b"\1",
            "trailing value in a payload": extension(6, b"\x90\1"),
            "trailing array": b"\1" + encoded(np.array([1, 2])),
            "trailing typed value": b"\1" + encoded_point(),
            "payload too short": extension(6, b"\x92\1"),
            "payload empty": extension(6, b""),
            "extension cut": b"\xc7\5\6\x90",
            "list cut": b"\x92\1",
            "map cut": b"\x81\xa1a",
            "text cut": b"\xa2a",
            "huge list": b"\xdd\xff\xff\xff\xff",
            "huge map": b"\xdf\xff\xff\xff\xff",
            "huge bytes": b"\xc6\xff\xff\xff\xff",
            "huge extension": b"\xc9\xff\xff\xff\xff\6",
        },
    )
    yield from _each(
        "Text is strict UTF-8.",
        _MALFORMED,
        {
            "text not UTF-8": b"\xa1\xff",
            "text overlong": b"\xa2\xc0\x80",
            "text surrogate": b"\xa3\xed\xa0\x80",
            "key not UTF-8": b"\x81\xa1\xff\1",
        },
    )
    yield from _each(
        "Keys of a plain map are texts.",
        _MALFORMED,
        {
            "key int": b"\x81\1\1",
            "key nil": b"\x81\xc0\1",
            "key bytes": b"\x81\xc4\1a\1",
            "key extension": b"\x81" + encoded("\ud800") + b"\1",
            "key timestamp": b"\x81\xd6\xff\0\0\0\0\1",
            "key list": b"\x81\x90\1",
        },
    )
    yield refuse("reserved byte", "0xc1 is never used.", _MALFORMED, b"\xc1")
    yield refuse(
        "array too wide",
        "Sides and element together stay below 2**63 bytes.",
        _MALFORMED,
        array(32, ["|S999999999", [0, 1 << 40]], b"\xc4\0"),
    )
    deep = "Deeper than DECODE_DEPTH_MAX."
    yield refuse("lists too deep", deep, _LIMIT, b"\x91" * 1024 + b"\xc0")
    yield refuse("maps too deep", deep, _LIMIT, b"\x81\xa1a" * 1024 + b"\xc0")
    inside = typed("test.token", b"\x91" + b"\x91" * 1024 + b"\xc0")
    yield refuse("lists too deep in a typed value", deep, _LIMIT, inside)


def encoded_point() -> bytes:
    """A typed value."""
    return typed("test.point", b"\x91" + encoded({"x": 1, "y": 2.0}))


def _extensions() -> Vectors:
    for tag in (0, 25, 31, 35, 127, 128, 254):
        data = extension(tag, b"a")
        yield refuse(f"tag {tag}", "A tag that is not in the table.", _UNKNOWN, data)
        yield refuse(f"tag {tag} in a list", "The same, further inside.", _UNKNOWN, b"\x91" + data)
    data = reference(4, 0, 0, 1, b"a")
    yield refuse("reference", "A flat encoding holds no references.", _UNKNOWN, data)
    yield from _each(
        "A timestamp has 4, 8 or 12 bytes.",
        _MALFORMED,
        {
            f"timestamp of {size}": b"\xc7" + bytes((size, 0xFF)) + bytes(size)
            for size in (0, 1, 2, 3, 5, 7, 9, 11, 13, 16)
        },
    )
    yield from _each(
        "Nanoseconds stay below a second, years within 1 to 9999.",
        _MALFORMED,
        {
            "nanoseconds 64": b"\xd7\xff" + (10**9 << 34).to_bytes(8, "big"),
            "nanoseconds 96": b"\xc7\x0c\xff" + (10**9).to_bytes(4, "big") + bytes(8),
            "year 10000": b"\xc7\x0c\xff" + bytes(4) + (253402300800).to_bytes(8, "big"),
            "year 0": b"\xc7\x0c\xff" + bytes(4) + (-62135596801).to_bytes(8, "big", signed=True),
            "end of time": b"\xc7\x0c\xff" + bytes(4) + b"\x7f" + b"\xff" * 7,
        },
    )


def _numbers() -> Vectors:
    yield from _each(
        "A big int is the shortest form of more than 64 bits.",
        _MALFORMED,
        {
            "big int empty": extension(3, b""),
            "big int small": extension(3, b"\5"),
            "big int of 64 bits": extension(3, b"\0" + b"\xff" * 8),
            "big int least": extension(3, b"\x80" + bytes(7)),
            "big int padded": extension(3, b"\0\0\1" + bytes(8)),
            "big int negative padded": extension(3, b"\xff\xfe" + bytes(8)),
        },
    )
    yield refuse("complex short", "Sixteen bytes.", _MALFORMED, extension(9, bytes(15)))
    yield from _each(
        "Only what a decimal prints.",
        _MALFORMED,
        {
            f"decimal {text!r}": extension(14, text.encode())
            for text in (
                "",
                " 1",
                "1_0",
                "+1",
                "1e5",
                "1E5",
                "01",
                ".5",
                "nan",
                "inf",
                "\uff11",
                "abc",
            )
        },
    )
    yield from _each(
        "Two whole numbers in lowest terms.",
        _MALFORMED,
        {
            "fraction not lowest": extension(15, b"\x92\2\4"),
            "fraction over 0": extension(15, b"\x92\1\0"),
            "fraction negative below": extension(15, b"\x92\1\xff"),
            "fraction of a bool": extension(15, b"\x92\xc3\2"),
            "fraction of one": extension(15, b"\x91\1"),
            "fraction of a float": extension(15, b"\x92\1" + encoded(2.0)),
        },
    )


def _times() -> Vectors:
    moment = bytes.fromhex("07ea0102030405") + bytes(4)
    folded = bytes.fromhex("07ea0102030405") + b"\x80\0\0\0"
    yield from _each(
        "Every field is in its range.",
        _MALFORMED,
        {
            "datetime short": extension(10, moment[:10]),
            "datetime month 13": extension(10, moment[:2] + b"\x0d" + moment[3:]),
            "datetime year 0": extension(10, b"\0\0" + moment[2:]),
            "datetime microsecond": extension(10, moment[:7] + (10**6).to_bytes(4, "big")),
            "datetime in UTC": extension(10, moment + b"u"),
            "date February 30": extension(11, bytes.fromhex("07ea021e")),
            "date long": extension(11, bytes.fromhex("07ea021c00")),
            "time hour 24": extension(12, b"\x18\0\0" + bytes(4)),
            "time short": extension(12, b"\1\0\0"),
            "timedelta second": extension(13, bytes(4) + (86400).to_bytes(4, "big") + bytes(4)),
            "timedelta microsecond": extension(13, bytes(8) + (10**6).to_bytes(4, "big")),
            "timedelta days": extension(13, (10**9).to_bytes(4, "big") + bytes(8)),
            "timedelta short": extension(13, bytes(11)),
        },
    )
    day = 86_400_000_000
    yield from _each(
        "A zone has one of four forms.",
        _MALFORMED,
        {
            "zone empty": extension(24, b""),
            "zone kind": extension(24, b"x"),
            "zone UTC long": extension(24, b"uu"),
            "zone offset 0": extension(24, b"o" + bytes(8)),
            "zone offset of a day": extension(24, b"o" + day.to_bytes(8, "big")),
            "zone offset short": extension(24, b"o" + bytes(7)),
            "zone offset long": extension(24, b"o" + bytes(7) + b"\1x"),
            "zone offset huge": extension(24, b"o\x7f" + b"\xff" * 7),
            "zone name not UTF-8": extension(24, b"o" + bytes(7) + b"\1n\xff"),
            "zone pydantic alone": extension(24, b"p" + bytes(8)),
            "zone pydantic fraction": extension(10, folded + b"p" + bytes(7) + b"\1"),
            "zone pydantic of a day": extension(10, folded + b"p" + day.to_bytes(8, "big")),
            "zone pydantic long": extension(10, folded + b"p" + bytes(9)),
            "datetime zone kind": extension(10, folded + b"x"),
        },
    )
    yield from _each(
        "A zone name is in the table or nowhere.",
        _UNKNOWN,
        {
            "zone unknown": extension(24, b"zEurope/Atlantis"),
            "zone path": extension(24, b"z../../etc/passwd"),
            "zone absolute": extension(24, b"z/etc/localtime"),
            "zone of no name": extension(24, b"z"),
            "datetime zone unknown": extension(10, folded + b"zMars/Base"),
        },
    )


def _places() -> Vectors:
    yield refuse("uuid short", "Sixteen bytes.", _MALFORMED, extension(16, bytes(15)))
    yield from _each(
        "Only what a path prints.",
        _MALFORMED,
        {
            "path nothing": extension(17, b""),
            "path of no text": extension(17, b"\0"),
            "path doubled slash": extension(17, b"\0a//b"),
            "path trailing slash": extension(17, b"\0a/"),
            "path not UTF-8": extension(17, b"\0\xff"),
            "path windows slash": extension(17, b"\1a/b"),
        },
    )
    yield from _each(
        "Four or sixteen bytes, then a prefix length or a scope.",
        _MALFORMED,
        {
            "address nothing": extension(18, b""),
            "address short": extension(18, b"\0\1\2\3"),
            "address v6 short": extension(18, b"\1" + bytes(15)),
            "address v4 with a scope": extension(18, b"\0\1\2\3\4a"),
            "scope with a percent": extension(18, b"\1" + bytes(16) + b"a%b"),
            "scope not UTF-8": extension(18, b"\1" + bytes(16) + b"\xff"),
            "network without a prefix": extension(18, b"\2\x0a\0\0\0"),
            "network prefix": extension(18, b"\2\x0a\0\0\0\x21"),
            "network with host bits": extension(18, b"\2\x0a\0\0\1\x08"),
            "network trailing": extension(18, b"\2\x0a\0\0\0\x08\0"),
            "interface v6 prefix": extension(18, b"\5" + bytes(16) + b"\x81"),
        },
    )
    yield refuse("path code", "A code of the table.", _UNKNOWN, extension(17, b"\4a"))
    yield refuse("address code", "A code of the table.", _UNKNOWN, extension(18, b"\6\1\2\3\4"))


def _containers() -> Vectors:
    yield from _each(
        "Bytes of a string with a lone surrogate.",
        _MALFORMED,
        {
            "surrogate text without": extension(4, b"\xc4\1a"),
            "surrogate text of text": extension(4, b"\xa1a"),
            "surrogate text pair": extension(4, b"\xc4\4\xf0\x9f\x98\x80"),
            "surrogate text not UTF-8": extension(4, b"\xc4\1\xff"),
        },
    )
    uuids = b"".join(encoded(UUID(int=place * ((1 << 61) - 1))) for place in range(17))
    yield from _each(
        "Members are distinct, and few of them share a hash.",
        _LIMIT,
        {
            "set colliding": extension(7, b"\xdc\0\x11" + uuids),
            "dict colliding": extension(
                5, b"\xdc\0\x22" + uuids.replace(b"\xd8", b"\0\xd8")[1:] + b"\0"
            ),
        },
    )
    twice = {"set": 7, "frozenset": 8}
    yield from _each(
        "No member or key twice, by value.",
        _MALFORMED,
        {
            **{f"{name} twice": extension(tag, b"\x92\1\1") for name, tag in twice.items()},
            "set twice as bool": extension(7, b"\x92\1\xc3"),
            "set twice as float": extension(7, b"\x92\1" + encoded(1.0)),
            "set of lists": extension(7, b"\x91\1")[:-2] + b"\1\1",
            "dict twice": extension(5, b"\x94\1\1\1\1"),
            "ordered dict twice": extension(20, b"\x94\xa1a\1\xa1a\1"),
            "default dict twice": extension(21, b"\1\x94\1\1\1\1"),
            "dict odd": extension(5, b"\x93\1\1\1"),
            "dict of texts": extension(5, b"\x92\xa1a\1"),
            "dict empty": extension(5, b"\x90"),
            "ordered dict odd": extension(20, b"\x91\xa1a"),
            "tuple of a map": extension(6, b"\x80"),
            "tuple of a tuple": extension(6, extension(6, b"\x90")),
            "set of a map": extension(7, b"\x80"),
            "default dict nothing": extension(21, b""),
            "default dict of nothing": extension(21, b"\1"),
        },
    )
    yield from _each(
        "Keys whose hash is Python's own.",
        _MALFORMED,
        {
            "set of a list": extension(7, b"\x91\x90"),
            "set of a map inside": extension(7, b"\x91\x80"),
            "set of a tuple of a list": extension(7, b"\x91" + encoded(([],))),
            "set of a set": extension(7, b"\x91" + encoded(set())),
            "set of an array": extension(7, b"\x91" + encoded(np.array([1]))),
            "set of a dataclass": extension(7, b"\x91" + typed("test.nothing", b"\x91\x80")),
            "set of a list in an object": extension(
                7, b"\x91" + typed("test.point", b"\x91" + encoded({"x": [], "y": 1}))
            ),
            "set of a pair": extension(7, b"\x91" + typed("test.token", b"\x91\1")),
        },
    )
    yield refuse("factory code", "A code of the table.", _UNKNOWN, extension(21, b"\x0d\x90"))
    yield from _each(
        "As many parts as the type has.",
        _MALFORMED,
        {
            "deque short": extension(19, b"\x91\xc0"),
            "deque overfull": extension(19, b"\x92\1\x92\1\2"),
            "deque negative": extension(19, b"\x92\xff\x90"),
            "deque bool": extension(19, b"\x92\xc3\x91\1"),
            "deque of a text": extension(19, b"\x92\xc0\xa1a"),
            "deque endless number": extension(19, b"\x92\xcf\x80" + bytes(7) + b"\x90"),
            "range step 0": extension(22, b"\x93\1\2\0"),
            "range of two": extension(22, b"\x92\1\2"),
            "range of a bool": extension(22, b"\x93\1\2\xc3"),
            "slice of two": extension(23, b"\x92\1\2"),
        },
    )


def _arrays() -> Vectors:
    def numbers(element: Any, raw: bytes = b"\xc4\1\1", shape: Any = (1,)) -> bytes:
        return array(32, [element, list(shape) if isinstance(shape, tuple) else shape], raw)

    bad = (
        "|O",
        "|V1",
        "<i1",
        "|i2",
        "=i4",
        "<f16",
        "<c32",
        "|b2",
        "|S0",
        "<U0",
        "|S01",
        "i4",
        "<m4",
    )
    texts = (*bad, "|S٣", "<M8[1s]", "<M8[07s]", "<M8[B]", "<M8[]", "<U999999999", "|S1 ", "<i4\n")
    yield from _each(
        "Element types are of the grammar.",
        _MALFORMED,
        {f"element {text!r}": numbers(text) for text in texts},
    )
    field: list[Any] = ["a", "|u1", []]
    yield from _each(
        "Records are lists of name, element type and shape.",
        _MALFORMED,
        {
            "record of nothing": numbers([]),
            "record field": numbers([["a", "|u1"]]),
            "record name empty": numbers([["", "|u1", []]]),
            "record name twice": numbers([field, field], b"\xc4\2\1\1"),
            "record name int": numbers([[1, "|u1", []]]),
            "record side 0": numbers([["a", "|u1", [0]]]),
            "record side bool": numbers([["a", "|u1", [True]]]),
            "record huge": numbers([["a", "|u1", [1 << 31]]]),
            "record of an object": numbers([["a", "|O", []]]),
            "record boolean": numbers([["a", "|b1", []]], b"\xc4\1\2"),
        },
    )
    yield from _each(
        "Raw bytes are as many as shape and element type say.",
        _MALFORMED,
        {
            "array short": numbers("<i4", b"\xc4\3" + bytes(3)),
            "array long": numbers("<i4", b"\xc4\5" + bytes(5)),
            "array of a list": numbers("|u1", b"\x91\1"),
            "array of a text": numbers("|u1", b"\xa1a"),
            "array of nothing": numbers("|u1", b""),
            "array trailing": numbers("|u1", b"\xc4\1\1\1"),
            "array bin32 trailing": numbers("|u1", b"\xc6\0\0\0\1\1\1"),
            "shape negative": numbers("|u1", shape=[-1]),
            "shape of a bool": numbers("|u1", shape=[True]),
            "shape of a text": numbers("|u1", shape="a"),
            "shape of a float": numbers("|u1", shape=[1.0]),
            "boolean 2": numbers("|b1", b"\xc4\1\2"),
            "character": numbers("<U1", b"\xc4\4\0\0\x11\0"),
            "scalar short": array(33, ["<i4"], b"\xc4\3" + bytes(3)),
            "scalar boolean 2": array(33, ["|b1"], b"\xc4\1\2"),
            "scalar of characters": array(33, ["<U1"], b"\xc4\4a\0\0\0"),
            "scalar of empty bytes": array(33, ["|S0"], b"\xc4\0"),
            "scalar text not UTF-8": array(33, ["text"], b"\xc4\1\xff"),
            "scalar bytes of text": array(33, ["bytes"], b"\xa1a"),
            "scalar text of text": array(33, ["text"], b"\xa1a"),
            "array of text": array(32, ["text", []], b"\xc4\1a"),
            "scalar with a shape": array(33, ["|u1", []], b"\xc4\1\1"),
        },
    )
    yield from _each(
        "A header is a list in its shortest form.",
        _MALFORMED,
        {
            "header empty": extension(32, b""),
            "header cut": extension(32, b"\0\5\x92"),
            "header long": array(32, b"\x92\xd9\3|u1\x91\1", b"\xc4\1\1"),
            "header trailing": array(32, b"\x92\xa3|u1\x91\1\1", b"\xc4\1\1"),
            "header of a map": array(32, b"\x80", b"\xc4\1\1"),
            "header extension": array(32, b"\x92\xa3|u1" + extension(6, b"\x91\1"), b"\xc4\1\1"),
            "header long number": array(32, b"\x92\xa3|u1\x91\xcc\1", b"\xc4\1\1"),
            "header signed number": array(32, b"\x92\xa3|u1\x91\xd0\1", b"\xc4\1\1"),
        },
    )
    yield from _each(
        "Bounds come before memory.",
        _LIMIT,
        {
            "array huge": numbers("|u1", shape=(1 << 20, 1 << 21)),
            "array huge and empty": numbers("<i8", b"\xc4\0", (0, 1 << 20, 1 << 21)),
            "array of 33 sides": numbers("|u1", shape=(1,) * 33),
        },
    )


def _tensors() -> Vectors:
    def numbers(*header: Any, raw: bytes = b"\xc4\1\1") -> bytes:
        return array(34, list(header), raw)

    yield from _each(
        "Element types of the table, a shape and a flag.",
        _MALFORMED,
        {
            "tensor element": numbers("qint8", [1], _NO),
            "tensor element attribute": numbers("load", [1], _NO),
            "tensor element list": numbers([], [1], _NO),
            "tensor flag": numbers("uint8", [1], 0),
            "tensor gradient of ints": numbers("uint8", [1], _YES),
            "tensor gradient of bools": numbers("bool", [1], _YES),
            "tensor without flag": numbers("uint8", [1]),
            "tensor short": numbers("int16", [1], _NO),
            "tensor boolean 2": numbers("bool", [1], _NO, raw=b"\xc4\1\2"),
            "tensor shape": numbers("uint8", 1, _NO),
        },
    )
    huge = numbers("uint8", [1 << 41], _NO)
    yield refuse("tensor huge", "Bounds come before memory.", _LIMIT, huge)


def _typed() -> Vectors:
    fields = encoded({"x": 1, "y": 2.0})
    point = b"\x91" + fields
    yield refuse("name unknown", "No rule of this name.", _UNKNOWN, typed("os.system", point))
    yield refuse(
        "shape changed",
        "Same version, other shape.",
        "shape-changed",
        typed("test.point", point, shape=bytes(8)),
    )
    yield from _older_shapes()
    for version in (0, 4):
        yield refuse(
            f"version {version}",
            "Neither the rule's version nor one it upgrades from.",
            "version-unknown",
            typed("test.invoice", b"\x91\x80", version=version),
        )
    yield refuse(
        "upgrade of other fields",
        "An upgrade must give the declared fields.",
        "rule-failed",
        typed("test.invoice", b"\x91\x81\xa1a\1", version=1),
    )
    yield from _each(
        "A label is a name, a version and a shape.",
        _MALFORMED,
        {
            "label nothing": extension(1, b""),
            "label cut": extension(1, b"\x0atest.point\0\1"),
            "label name": extension(1, b"\4Test\0\1" + bytes(8) + point),
            "label name not ASCII": extension(1, b"\1\xff\0\1" + bytes(8) + point),
            "upgrade of no fields": typed("test.invoice", b"\x91\1", version=1),
            "upgrade of an ordered dict": typed(
                "test.invoice", b"\x91" + extension(20, b"\x92\xa6number\xa17"), version=1
            ),
            "upgrade of no list": typed("test.invoice", b"\x80", version=1),
            "upgrade of an empty list": typed("test.invoice", b"\x90", version=1),
        },
    )
    yield from _each(
        "A body has each field once, in declared order.",
        _MALFORMED,
        {
            "body nothing": typed("test.point", b""),
            "body map": typed("test.point", fields),
            "body of two": typed("test.point", b"\x92" + fields + b"\1"),
            "body long header": typed("test.point", b"\xdc\0\1" + fields),
            "body long map": typed("test.point", b"\x91\xde\0\2" + fields[1:]),
            "body trailing": typed("test.point", point + b"\1"),
            "field missing": typed("test.point", b"\x91" + encoded({"x": 1})),
            "field more": typed("test.point", b"\x91" + encoded({"x": 1, "y": 2.0, "z": 3})),
            "field order": typed("test.point", b"\x91" + encoded({"y": 2.0, "x": 1})),
            "field twice": typed("test.point", b"\x91\x82\xa1x\1\xa1x\1"),
            "field name": typed("test.point", b"\x91" + encoded({"x": 1, "__class__": 2})),
            "fields not a map": typed("test.point", b"\x91\x92\1\2"),
        },
    )
    yield from _each(
        "A member by its name, a combination by its value.",
        _MALFORMED,
        {
            "enum by value": typed("test.color", b"\x91" + encoded({"value": "red"})),
            "enum key": typed("test.color", b"\x91" + encoded({"other": "RED"})),
            "enum name int": typed("test.color", b"\x91" + encoded({"name": 1})),
            "enum of nothing": typed("test.color", b"\x91\x80"),
            "flag single by value": typed("test.access", b"\x91" + encoded({"value": 1})),
            "flag named by value": typed("test.access", b"\x91" + encoded({"value": 3})),
            "flag unknown bit": typed("test.access", b"\x91" + encoded({"value": 8})),
            "flag negative": typed("test.access", b"\x91" + encoded({"value": -1})),
            "flag bool": typed("test.access", b"\x91" + encoded({"value": False})),
        },
    )
    start = b"\x94" + encoded({"text": "a", "score": 0.0})
    yield from _each(
        "Given, extra and private are checked.",
        _MALFORMED,
        {
            "given bool": typed("test.message", start + b"\xc3\xc0\xc0"),
            "given bit": typed("test.message", start + b"\4\xc0\xc0"),
            "given bit of no extra": typed("test.message", start + b"\x08\x81\xa1a\1\xc0"),
            "extra of ints": typed("test.message", start + b"\1" + encoded({1: 2}) + b"\xc0"),
            "given negative": typed("test.message", start + b"\xff\xc0\xc0"),
            "extra list": typed("test.message", start + b"\1\x90\xc0"),
            "extra declared": typed("test.message", start + b"\1\x81\xa4text\1\xc0"),
            "private unknown": typed("test.message", start + b"\1\xc0\x81\xa1a\1"),
            "private list": typed("test.message", start + b"\1\xc0\x90"),
            "model of three": typed("test.message", b"\x93" + start[1:] + b"\1\xc0"),
        },
    )


def _older_shapes() -> Vectors:
    def ticket(stored: dict[str, Any], *fields: tuple[str, str]) -> bytes:
        return typed("test.ticket", b"\x91" + encoded(stored), shape=shape("dataclass", *fields))

    number, urgent = ("number", "str"), ("urgent", "bool")
    owner = {"number": "7", "owner": "ann"}
    one = shape("dataclass", number)
    yield from _each(
        "Only fields that the class has, as it has them, and the rest by default.",
        "shape-changed",
        {
            "field went": ticket(owner, number, ("owner", "str")),
            "field without default": ticket({"urgent": True}, urgent),
            "field annotated anew": ticket({"number": "7"}, ("number", "int")),
            "fields annotated anew": ticket(
                {"number": "7", "urgent": True}, ("number", "int"), ("urgent", "int")
            ),
            "field more than its shape": ticket({"number": "7", "urgent": True}, number),
            "field fewer than its shape": ticket({"number": "7"}, number, urgent),
            "fields not in the order of their shape": ticket(
                {"urgent": True, "number": "7"}, number, urgent
            ),
            "another kind": typed(
                "test.ticket", b"\x91" + encoded({"number": "7"}), shape=shape("attrs", number)
            ),
            "pair of another kind": typed("test.token", b"\x91\x80", shape=one),
            "enum of another kind": typed(
                "test.color", b"\x91" + encoded({"name": "RED"}), shape=one
            ),
            "enum unknown": typed("test.color", b"\x91" + encoded({"name": "BLUE"})),
            "enum dunder": typed("test.color", b"\x91" + encoded({"name": "__class__"})),
        },
    )
    yield from _each(
        "An older shape follows the form of a body as well.",
        _MALFORMED,
        {
            "older shape twice": typed(
                "test.ticket", b"\x91\x82\xa6number\1\xa6number\1", shape=one
            ),
            "older shape of two": typed("test.ticket", b"\x92\x81\xa6number\1\1", shape=one),
            "older shape long map": typed("test.ticket", b"\x91\xde\0\1\xa6number\1", shape=one),
            "older shape no list": typed("test.ticket", b"\x80", shape=one),
            "older shape empty": typed("test.ticket", b"\x90", shape=one),
            "older shape no map": typed("test.ticket", b"\x91\1", shape=one),
            "older shape trailing": typed("test.ticket", b"\x91\x81\xa6number\1\1", shape=one),
            "older shape given": typed(
                "test.message",
                b"\x94\x81\xa4text\1\2\xc0\xc0",
                shape=shape("pydantic", ("text", "str")),
            ),
            "older shape given no int": typed(
                "test.message",
                b"\x94\x81\xa4text\1\xc3\xc0\xc0",
                shape=shape("pydantic", ("text", "str")),
            ),
        },
    )


def _limits() -> Vectors:
    def over(name: str, bound: int, data: bytes) -> dict[str, Any]:
        return refuse(
            f"{name} {bound} exceeded", "One beyond a limit.", _LIMIT, data, limits={name: bound}
        )

    yield over("int_bytes_max", 9, encoded(1 << 72))
    yield over("fraction_part_bytes_max", 2, extension(15, b"\x92\xcd\x80\0\1"))
    yield over("decimal_digits_max", 3, extension(14, b"1.234"))
    yield over("decimal_exponent_max", 3, extension(14, b"1E-4"))
    yield over("text_bytes_max", 3, extension(17, b"\0abcd"))
    yield over("array_dimensions_max", 2, encoded(np.zeros((1, 1, 1))))
    yield over("array_elements_max", 2, encoded(np.zeros(3)))
    yield over("costly_values_max", 2, extension(6, b"\x93" + extension(17, b"\0a") * 3))
    kinds = (
        extension(17, b"\0a"),
        extension(18, b"\2" + bytes(5)),
        extension(18, b"\4" + bytes(5)),
        extension(18, b"\1" + bytes(16) + b"a"),
        extension(19, b"\x92\xc0\x90"),
        extension(20, b"\x90"),
        extension(21, b"\0\x90"),
    )
    yield over("costly_values_max", 6, b"\x97" + b"".join(kinds))
    yield over("extension_depth_max", 2, encoded((((),),)))
    yield over("colliding_keys_max", 2, encoded({(1 << 61) - 1, 0, ((1 << 61) - 1) * 2}))
    yield over("value_bytes_max", 3, encoded([1, 2, 3]))
    yield over("value_nodes_max", 3, encoded([1, 2, 3]))
    deepest = Limits().extension_depth_max
    yield over("extension_depth_max", deepest, _nested(deepest))


def _nested(count: int) -> bytes:
    """A tuple in so many others, which is one more level."""
    data = extension(6, b"\x90")
    for _ in range(count):
        data = extension(6, b"\x91" + data)
    return data
