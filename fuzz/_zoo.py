# SPDX-License-Identifier: Apache-2.0
"""Values to start from: some of every tag and of every kind of rule."""

import ipaddress
import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pydantic_core
import torch

from fuzz import _types as app

__all__ = ["allowed_values"]


def _plain() -> Iterator[Any]:
    yield from (None, True, False, 0, 1, -1, 127, 128, -32, -33, 255, 65535, 65536, 1 << 31)
    yield from (1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -(1 << 63), -(1 << 31))
    yield from (0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308)
    yield from ("", "a", "x" * 31, "x" * 32, "é" * 200, "\U0001f600", "\x00", "name", "value")
    yield from (b"", b"\x00", b"x" * 255, b"x" * 256, b"\x80\x04\x95pickle.", bytearray(b"ab"))
    yield memoryview(b"abcd")[::2]
    yield from (
        [],
        [1, [2, [3]]],
        {},
        {"a": {"b": [None, {}]}},
        [0] * 17,
        {str(n): n for n in range(17)},
    )
    yield [[[[[[[[[["deep"]]]]]]]]]]


def _numbers() -> Iterator[Any]:
    yield from (1 << 64, -(1 << 63) - 1, 1 << 200, -(1 << 999), 3 << 70)
    yield from (1j, complex(math.nan, -0.0), complex(1.5, math.inf))
    for text in (
        "0",
        "-0",
        "1.50",
        "1E+9",
        "0E-10",
        "NaN",
        "sNaN",
        "-Infinity",
        "NaN12",
        "123456789.123456789",
    ):
        yield Decimal(text)
    yield from (
        Fraction(1, 3),
        Fraction(-7, 1 << 70),
        Fraction(0),
        UUID(int=0),
        UUID(int=(1 << 128) - 1),
    )
    yield from (range(3), range(1, 1 << 70, -2), slice(None), slice(1, "x", (1,)))


def _texts() -> Iterator[Any]:
    yield from ("\ud800", "a\udfffb", {"\udc80": 1})
    yield from (
        PurePosixPath("/a/../b"),
        PurePosixPath("."),
        PosixPath("x y"),
        PureWindowsPath("c:\\a\\b"),
    )
    yield PureWindowsPath("//host/share/x")
    for text in (
        "0.0.0.0",  # noqa: S104 - an address as data
        "255.255.255.255",
        "::",
        "2001:db8::1",
        "fe80::1%eth0",
        "::ffff:1.2.3.4",
    ):
        address = ipaddress.ip_address(text)
        yield address
        if "%" not in text:
            yield ipaddress.ip_network(text)
            yield ipaddress.ip_interface(f"{text}/8")


def _times() -> Iterator[Any]:
    zones: list[tzinfo | None] = [
        None,
        UTC,
        timezone.min,
        timezone(timedelta(hours=2)),
        timezone(timedelta(0), "UTC"),
        timezone(timedelta(seconds=-1, microseconds=1), "odd \ud800"),
        ZoneInfo("UTC"),
        ZoneInfo("Europe/Berlin"),
        pydantic_core.TzInfo(3600),
    ]
    for zone in zones:
        yield datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=zone)
        yield datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=zone)
        yield time(1, 2, 3, 4, tzinfo=zone, fold=1)
        if zone is not None and type(zone) is not pydantic_core.TzInfo:
            yield zone
    yield from (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    yield from (datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, 0, 0, 0, 5, UTC))
    yield from (
        datetime.min,  # noqa: DTZ901 - naive on purpose
        datetime.max,  # noqa: DTZ901
        date.min,
        date.max,
        time.max,
        timedelta.min,
        timedelta.max,
    )
    yield timedelta(-1, 86399, 999999)


def _containers() -> Iterator[Any]:
    yield from ((), (1, ("a", (None,))), {1, 2.5, "a"}, {math.nan, None}, frozenset({(1, 2), b"x"}))
    yield from (
        set(range(20)),
        {(n, str(n)) for n in range(18)},
        frozenset({frozenset({frozenset()})}),
    )
    yield from ({1: "a", None: 2, (1,): 3}, {True: 1, 2.0: 2}, {date.min: {time.min: []}})
    yield from ({UUID(int=n): n for n in range(18)}, {Decimal(1): 1, Fraction(1, 2): 2, 1j: 3})
    yield from (
        deque(),
        deque([1, 2], maxlen=2),
        deque([deque()]),
        OrderedDict(a=1),
        OrderedDict({1: 2}),
    )
    for factory in (
        None,
        list,
        dict,
        set,
        int,
        float,
        str,
        bool,
        tuple,
        frozenset,
        bytes,
        deque,
        OrderedDict,
    ):
        yield defaultdict(factory, {"a": 1, 2: []})
    yield {timezone(timedelta(hours=n % 5), str(n)): n for n in range(18)}
    yield {f"{n}\ud800" if n == 3 else f"{n}": [n] for n in range(5)}
    yield [{"a": {"\ud800": 1}}, ["\udfff"], {"a": memoryview(b"abcd")[::2]}]
    yield {np.str_("a"): 1, np.int64(3): 2, np.float32(0.5): 3, np.bytes_(b"x"): 4}


def _application() -> Iterator[Any]:
    key, row = app.Key(a=1), app.Row(1, [2])
    yield from (
        app.Plan([1, 2], {"x": 1}),
        key,
        {key, app.Key(a=(2,))},
        app.Lookup(a="g"),
        {app.Row(1, 2): 3},
    )
    yield from (app.Slotted(a=1, b=None), app.Checked(4), app.Wide(), row, app.Span(1, 2))
    yield from (
        app.Message(),
        app.Message(a=3, bee=[1]),
        app.Message.model_validate({"zz": 1, "a": 2}),
    )
    yield from (
        app.Point(x=1),
        {app.Point(x=(1,), y=0.5): 1},
        app.Account.model_validate({"a": 1, "more": [1]}),
        app.Second(a=1),
    )
    yield from (app.Step(1, 2), app.Cached("c"), {app.Cached(1), app.Cached(2)}, app.Opened(3))
    yield from (app.Colour.RED, app.Colour.BLUE, app.Text.A, {app.Text.B: 1, app.Colour.RED: 2})
    yield from (
        app.Access.READ,
        app.Access.BOTH,
        app.Access(0),
        app.Bits.LOW,
        app.Bits(12),
        ~app.Bits.LOW,
    )
    yield from (
        app.Record(1),
        {app.Record((1,)), app.Record("x")},
        app.Entry([1]),
        app.Strict(3),
        app.Newer(1),
    )
    yield from (app.Money(5), app.Money([app.Money(1)]), app.Word("w"), {app.Word(1): app.Word(2)})
    yield from (app.Third(1), app.Later(1), app.Shade.DARK, app.Weight(3))
    yield {"plan": app.Plan([1], (row, key, {key: row})), "when": datetime(2024, 1, 1, tzinfo=UTC)}


def _arrays() -> Iterator[Any]:
    for spec in (
        "|b1",
        "|i1",
        "<u2",
        ">i4",
        "<f2",
        "<f4",
        ">f8",
        "<c8",
        "<c16",
        "|S3",
        "<U2",
        ">U1",
        "<M8[ns]",
        "<m8[25s]",
        "<M8",
    ):
        yield np.zeros((2, 1), spec)
        yield np.ones(1, spec)[0]
    record = np.dtype(
        [("a", "<i4"), ("b", "|b1", (2,)), ("c", [("d", "<U2"), ("e", ">f8", (1, 2))])]
    )
    yield from (np.zeros(2, record), np.zeros(1, record)[0], np.float64(math.nan), np.bool_(1))
    yield from (
        np.zeros((0, 3)),
        np.zeros((), "<i4"),
        np.arange(40, dtype="<i8")[::2],
        np.str_("ü"),
    )
    yield from (
        np.zeros((2, 0, 5), "|S0"),
        np.array("", "<U"),
        np.bytes_(b""),
        np.zeros(70000, "u1"),
    )
    for dtype in (
        torch.bool,
        torch.uint8,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.complex64,
    ):
        yield torch.zeros((2, 3), dtype=dtype)
    yield from (torch.zeros(0, 2), torch.tensor(1.5, requires_grad=True), torch.ones(3, 2).t())
    yield [np.zeros(2), (torch.zeros(1),)]


def allowed_values() -> Iterator[Any]:
    """Values that a registry of the application encodes and gives back."""
    yield from _plain()
    yield from _numbers()
    yield from _texts()
    yield from _times()
    yield from _containers()
    yield from _application()
    yield from _arrays()
