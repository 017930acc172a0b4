# SPDX-License-Identifier: Apache-2.0
"""The Python types that a pickle may name, and how readers make their values.

A pickle reader looks up the names of a pickle in these tables, as texts. It imports nothing, calls
nothing by name, and uses no `getattr`; it must refuse a name that is in no table. Both the scanner
of model files and the import of Agent Framework's own storage use these tables and their bounds, so
that each type is decided about once.

`PLAIN_CALLS` make a value from plain arguments. These must have the exact types, be within the
bounds, and be in the form that the type itself writes, in any release of Python from 2.7 on.
Containers hold any values, and each reader fills them in its own way; `FACTORIES`, `uuid_of` and
`is_deque_length` define what may be in them.
"""

import datetime as dt
import ipaddress
import os
import pathlib
import struct
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from decimal import Decimal, DecimalException
from fractions import Fraction
from typing import Any, NamedTuple

__all__ = [
    "FACTORIES",
    "FAULTS",
    "PLAIN_CALLS",
    "PlainCall",
    "builtin_names",
    "is_deque_length",
    "uuid_of",
]

Name = tuple[str, str]
"""A module, and a name in it."""

FAULTS = (ValueError, TypeError, OverflowError, DecimalException, NotImplementedError, struct.error)
"""The exceptions of a function whose arguments do not make a value."""

_INT_BITS_MAX = 1 << 10
_NUMBER_CHARS_MAX = 640
"""Needed because a few bytes of a pickle can build a number repeatedly from the same parts."""
_TEXT_CHARS_MAX = 8192
_PATH_PARTS_MAX = 256
_DATETIME, _DATE, _TIME = struct.Struct(">H5B3s"), struct.Struct(">H2B"), struct.Struct(">3B3s")


class PlainCall(NamedTuple):
    """A type that is made from plain arguments."""

    make: Callable[..., Any]
    """Returns the value; returns None, or raises one of `FAULTS`, if the type never writes
    these."""
    reason: str
    """Why a pickle may name it."""


def builtin_names(name: str) -> tuple[Name, Name]:
    """Return both names of a built-in: from Python 2, which protocols up to 2 use, and Python 3."""
    return ("__builtin__", name), ("builtins", name)


def _bytes_of(value: object) -> bytes:
    """Return bytes, also from a Python 2 string that was read as text."""
    if type(value) is str and value.isascii():
        return value.encode("ascii")
    if type(value) is not bytes:
        raise TypeError
    return value


def _zone(value: object) -> dt.timezone | None:
    if value is not None and type(value) is not dt.timezone:
        raise TypeError
    return value


def _datetime(data: object, zone: object = None) -> dt.datetime:
    year, month, day, hour, minute, second, micro = _DATETIME.unpack(_bytes_of(data))
    whole = int.from_bytes(micro, "big")
    return dt.datetime(
        year, month & 127, day, hour, minute, second, whole, _zone(zone), fold=month >> 7
    )


def _date(data: object) -> dt.date:
    return dt.date(*_DATE.unpack(_bytes_of(data)))


def _time(data: object, zone: object = None) -> dt.time:
    hour, minute, second, micro = _TIME.unpack(_bytes_of(data))
    whole = int.from_bytes(micro, "big")
    return dt.time(hour & 127, minute, second, whole, _zone(zone), fold=hour >> 7)


def _timedelta(*parts: object) -> dt.timedelta | None:
    if [type(part) for part in parts] != [int, int, int]:
        return None
    made = dt.timedelta(*parts)  # type: ignore[arg-type]
    return made if (made.days, made.seconds, made.microseconds) == parts else None


def _timezone(offset: object, name: object = None) -> dt.timezone | None:
    if type(offset) is not dt.timedelta or (name is not None and type(name) is not str):
        return None
    return dt.timezone(offset) if name is None else dt.timezone(offset, name)


def _decimal(text: object) -> Decimal | None:
    if type(text) is not str or len(text) > _NUMBER_CHARS_MAX:
        return None
    made = Decimal(text)
    return made if str(made) == text else None


def _fraction(*parts: Any) -> Fraction | None:
    if len(parts) == 1 and type(parts[0]) is str and len(parts[0]) <= _NUMBER_CHARS_MAX:
        made = Fraction(parts[0])  # before Python 3.12
        return made if str(made) == parts[0] else None
    if [type(part) for part in parts] != [int, int]:
        return None
    numerator, denominator = parts
    if not _is_bounded(numerator) or not _is_bounded(denominator) or denominator < 1:
        return None
    made = Fraction(numerator, denominator)
    return made if made.denominator == denominator else None


def _is_bounded(number: object) -> bool:
    return isinstance(number, int) and number.bit_length() <= _INT_BITS_MAX


def _complex(*parts: Any) -> complex | None:
    return complex(*parts) if [type(part) for part in parts] == [float, float] else None


def _range(*parts: Any) -> range | None:
    good = [type(part) for part in parts] == [int, int, int] and all(map(_is_bounded, parts))
    return range(*parts) if good else None


def _slice(start: object, stop: object, step: object) -> slice:
    return slice(start, stop, step)


def _encoded(text: object, encoding: object = None) -> bytes | None:
    if type(text) is not str or encoding != "latin1":
        return None
    return text.encode("latin-1")


def _bytes(*parts: object) -> bytes | None:
    """Return empty bytes: protocols before 3 write them as a call without arguments."""
    return None if parts else b""


def _bytearray(*parts: object) -> bytearray | None:
    if not parts:
        return bytearray()
    if len(parts) == 1:
        return bytearray(_bytes_of(parts[0]))
    text, encoding = parts
    if type(text) is not str or encoding != "latin-1":
        return None
    return bytearray(text, "latin-1")  # before Python 3.8


def _path(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(*parts: object) -> Any:
        texts = [part for part in parts if type(part) is str]
        good = len(texts) == len(parts) <= _PATH_PARTS_MAX
        return make(*texts) if good and sum(map(len, texts)) <= _TEXT_CHARS_MAX else None

    return made


def _address(make: Callable[..., Any]) -> Callable[..., Any]:
    """Make an address from a number or text; networks, and addresses in one, only from text."""

    def made(value: object) -> Any:
        if type(value) is int:
            return make(value) if make in _ADDRESSES else None
        if type(value) is not str or len(value) > _NUMBER_CHARS_MAX:
            return None
        found = make(value)
        return found if str(found) == value else None

    return made


_ADDRESSES = frozenset({ipaddress.IPv4Address, ipaddress.IPv6Address})
# A path class of another system cannot be used here; its pure class holds the same path.
_IS_WINDOWS = os.name == "nt"
_PATHS: dict[str, Callable[..., Any]] = {
    "PosixPath": pathlib.PurePosixPath if _IS_WINDOWS else pathlib.PosixPath,
    "WindowsPath": pathlib.WindowsPath if _IS_WINDOWS else pathlib.PureWindowsPath,
    "PurePosixPath": pathlib.PurePosixPath,
    "PureWindowsPath": pathlib.PureWindowsPath,
}

PLAIN_CALLS: Mapping[Name, PlainCall] = {
    ("datetime", "datetime"): PlainCall(_datetime, "a moment, of its packed bytes"),
    ("datetime", "date"): PlainCall(_date, "a day, of its packed bytes"),
    ("datetime", "time"): PlainCall(_time, "a time of day, of its packed bytes"),
    ("datetime", "timedelta"): PlainCall(_timedelta, "a duration, of three whole numbers"),
    ("datetime", "timezone"): PlainCall(_timezone, "a fixed offset"),
    ("decimal", "Decimal"): PlainCall(_decimal, "a number, of its one text"),
    ("fractions", "Fraction"): PlainCall(_fraction, "a number, of two whole numbers or its text"),
    ("_codecs", "encode"): PlainCall(_encoded, "how protocols before 3 write bytes"),
    **{
        name: PlainCall(function, reason)
        for spelled, function, reason in (
            ("complex", _complex, "a number, of two floats"),
            ("range", _range, "three whole numbers"),
            ("xrange", _range, "what protocols before 3 call a range"),
            ("slice", _slice, "three plain values"),
            ("bytes", _bytes, "empty bytes"),
            ("bytearray", _bytearray, "bytes; a number would ask for that much memory"),
        )
        for name in builtin_names(spelled)
    },
    **{
        (module, name): PlainCall(_path(make), "a path, of its parts")
        for module in ("pathlib", "pathlib._local")
        for name, make in _PATHS.items()
    },
    **{
        ("ipaddress", make.__name__): PlainCall(_address(make), "an address, of its number or text")
        for make in (
            *(ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv4Interface),
            *(ipaddress.IPv6Address, ipaddress.IPv6Network, ipaddress.IPv6Interface),
        )
    },
}
"""How to make each type from plain arguments, and why a pickle may name it."""

FACTORIES: Mapping[Name, Any] = {
    **{
        name: kind
        for kind in (int, float, list, dict, set, str, bool, tuple, frozenset, bytes)
        for name in builtin_names(kind.__name__)
    },
    ("__builtin__", "long"): int,  # what protocols before 3 call it
    ("__builtin__", "unicode"): str,
    ("collections", "deque"): deque,
    ("collections", "OrderedDict"): OrderedDict,
}
"""The default factories that a defaultdict may have: they make empty built-in values."""


def uuid_of(state: Mapping[str, Any]) -> uuid.UUID | None:
    """Return the UUID with these attributes; None if its type would not write them."""
    number = state.get("int")
    if type(number) is not int or not 0 <= number < 1 << 128:
        return None
    if not state.keys() <= {"int", "is_safe"}:
        return None
    if state.get("is_safe") not in (None, 0, -1, *uuid.SafeUUID):
        return None
    return uuid.UUID(int=number)


def is_deque_length(longest: object, count: int) -> bool:
    """Whether a deque with this many members may have this maximum length; None: no maximum."""
    return longest is None or (type(longest) is int and count <= longest < 1 << 63)
