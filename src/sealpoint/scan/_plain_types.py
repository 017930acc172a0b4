# SPDX-License-Identifier: Apache-2.0
"""The types that Python brings, and how each is written into a pickle.

A row is a name, the function of ours that makes the value of plain arguments, and the reason why it
is there. Arguments have to be of the exact types and in the form that the type itself writes, for
one of the releases of Python from 2.7 on; a function gives None where they are not.
"""

import datetime as dt
import os
import pathlib
import struct
from collections.abc import Callable
from decimal import Decimal, DecimalException
from fractions import Fraction
from typing import Any

from sealpoint.scan._symbols import Global

_INT_BITS_MAX = 1 << 10
_NUMBER_CHARS_MAX = 640
"""A few bytes of a pickle make a number again and again out of the same parts."""
_TEXT_CHARS_MAX = 8192
_PATH_PARTS_MAX = 256
_DATETIME, _DATE, _TIME = struct.Struct(">H5B3s"), struct.Struct(">H2B"), struct.Struct(">3B3s")

FAULTS = (ValueError, TypeError, OverflowError, DecimalException, NotImplementedError, struct.error)
"""What a function may raise at arguments that make no value."""


def builtin(name: str) -> tuple[Global, Global]:
    """Both names of a built-in: of Python 2, which protocols up to 2 use, and of Python 3."""
    return Global("__builtin__", name), Global("builtins", name)


def _bytes_of(value: object) -> bytes:
    """Bytes, or a string of Python 2 that was read as text."""
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
    """Protocols before 3 write empty bytes as a call without arguments."""
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


def _text(text: object) -> str | None:
    return text if type(text) is str else None


# A path of another system cannot be made here; what it says is the same.
_IS_WINDOWS = os.name == "nt"
_PATHS: dict[str, Callable[..., Any]] = {
    "PosixPath": pathlib.PurePosixPath if _IS_WINDOWS else pathlib.PosixPath,
    "WindowsPath": pathlib.WindowsPath if _IS_WINDOWS else pathlib.PureWindowsPath,
    "PurePosixPath": pathlib.PurePosixPath,
    "PureWindowsPath": pathlib.PureWindowsPath,
}

PLAIN_CALLS: dict[Global, tuple[Callable[..., Any], str]] = {
    Global("datetime", "datetime"): (_datetime, "a moment, of its packed bytes"),
    Global("datetime", "date"): (_date, "a day, of its packed bytes"),
    Global("datetime", "time"): (_time, "a time of day, of its packed bytes"),
    Global("datetime", "timedelta"): (_timedelta, "a duration, of three whole numbers"),
    Global("datetime", "timezone"): (_timezone, "a fixed offset"),
    Global("decimal", "Decimal"): (_decimal, "a number, of its one text"),
    Global("fractions", "Fraction"): (_fraction, "a number, of two whole numbers or its text"),
    Global("_codecs", "encode"): (_encoded, "how protocols before 3 write bytes"),
    Global("torch.torch_version", "TorchVersion"): (_text, "the text of a version"),
    **{
        name: (function, reason)
        for spelled, function, reason in (
            ("complex", _complex, "a number, of two floats"),
            ("range", _range, "three whole numbers"),
            ("xrange", _range, "a range of Python 2"),
            ("slice", _slice, "three plain values"),
            ("bytes", _bytes, "empty bytes"),
            ("bytearray", _bytearray, "bytes; a number would ask for that much memory"),
        )
        for name in builtin(spelled)
    },
    **{
        Global(module, name): (_path(make), "a path, of its parts")
        for module in ("pathlib", "pathlib._local")
        for name, make in _PATHS.items()
    },
}
"""How each is made of plain arguments, and why it may be."""
