# SPDX-License-Identifier: Apache-2.0
"""Python's own types are made of the arguments that they write, and of no others."""

import datetime as dt
import pathlib
import pickle
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from sealpoint.errors import ModelMalformed
from sealpoint_models.scan import Global, read_meaning, run_pickle
from sealpoint_models.scan._known_types import PLAIN_CALLS, builtin

_VALUES: list[Any] = [
    dt.datetime(2024, 2, 29, 23, 59, 58, 999_999),  # noqa: DTZ001 - what people have
    dt.datetime(2024, 10, 27, 2, 30, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    dt.date(1, 1, 1),
    dt.time(23, 59),
    dt.time(1, tzinfo=dt.UTC),
    dt.timedelta(days=-1, seconds=5, microseconds=7),
    dt.timezone(dt.timedelta(minutes=-30), "here"),
    Decimal("-1.50E+7"),
    Decimal("NaN"),
    Fraction(-3, 7),
    complex(1.5, -0.0),
    range(5, -5, -2),
    b"",
    b"\xff\0",
    bytearray(b"ab"),
    bytearray(),
    pathlib.PurePosixPath("/a/b"),
    pathlib.PureWindowsPath("c:/a"),
    pathlib.PosixPath("a"),
    uuid.UUID(int=7, is_safe=uuid.SafeUUID.safe),
]


def _read(data: bytes) -> Any:
    return read_meaning(run_pickle(data, "p"), storages={}, file_bytes=len(data), what="p")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", _VALUES, ids=repr)
def test_a_value_is_what_python_wrote(value: Any, protocol: int) -> None:
    """Equal and of the same type, in every protocol."""
    made = _read(pickle.dumps(value, protocol))

    assert type(made) is type(value)
    assert repr(made) == repr(value)


@pytest.mark.parametrize("protocol", [4, 5])
def test_the_second_of_two_equal_times_stays_the_second(protocol: int) -> None:
    """Where clocks are put back; protocols before 4 do not say which one it is."""
    zone = dt.timezone(dt.timedelta(hours=1))
    value = (dt.time(2, 30, fold=1), dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=zone))

    assert repr(_read(pickle.dumps(value, protocol))) == repr(value)


@pytest.mark.parametrize("value", [slice(1, None, 2), slice(None)], ids=repr)
def test_a_slice_is_what_python_wrote(value: slice) -> None:
    """It has no hash of its own, and is compared by its parts."""
    assert _read(pickle.dumps(value)) == value


_ODD: dict[str, tuple[str, bytes]] = {
    "a day that is none": ("datetime date", b"C\x04\x07\xe8\x02\x1e"),
    "a moment of too few bytes": ("datetime datetime", b"C\x09" + b"\1" * 9),
    "a duration that is not the shortest": ("datetime timedelta", b"K\x00J\x00\xa4\x01\x00K\x00"),
    "a duration of a truth": ("datetime timedelta", b"\x88K\x00K\x00"),
    "a decimal in other words": ("decimal Decimal", b"X\x02\0\0\x0001"),
    "a decimal without end": ("decimal Decimal", b"X\x00\x30\0\0" + b"1" * 0x3000),
    "a fraction that can be shortened": ("fractions Fraction", b"K\x02K\x04"),
    "a fraction below nothing": ("fractions Fraction", b"K\x02J\xff\xff\xff\xff"),
    "a complex number of ints": ("builtins complex", b"K\x01K\x02"),
    "a range of two": ("builtins range", b"K\x01K\x02"),
    "a range of truths": ("builtins range", b"\x88\x88\x88"),
    "bytes of a number": ("builtins bytes", b"K\x05"),
    "a byte array of a number": ("builtins bytearray", b"K\x05"),
    "a byte array of a list": ("builtins bytearray", b"]"),
    "a path of bytes": ("pathlib PurePosixPath", b"C\x01a"),
    "an encoding of another name": ("_codecs encode", b"X\x01\0\0\0aX\x05\0\0\0utf-8"),
    "a zone of a number": ("datetime timezone", b"K\x05"),
}


@pytest.mark.parametrize("label", _ODD)
def test_arguments_that_no_type_writes_are_refused(label: str) -> None:
    """The message names the type, and nothing is made."""
    spelled, arguments = _ODD[label]
    name = spelled.replace(" ", "\n").encode()
    data = b"\x80\x03c" + name + b"\n(" + arguments + b"tR."

    with pytest.raises(ModelMalformed, match="in the form that it is written in"):
        _read(data)


def test_every_type_has_its_reason_and_both_names() -> None:
    """A built-in has the name of Python 2 and the one of Python 3."""
    assert all(call.reason for call in PLAIN_CALLS.values())
    assert builtin("set") == (Global("__builtin__", "set"), Global("builtins", "set"))
