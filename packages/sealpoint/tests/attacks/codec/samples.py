# SPDX-License-Identifier: Apache-2.0
"""Valid values of every type, one of each, for attacks that start from a genuine encoding."""

import ipaddress
import uuid
from collections import OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from typing import Any
from zoneinfo import ZoneInfo

import pydantic_core

from tests.application import (
    Access,
    Bits,
    Box,
    Cached,
    Checked,
    Child,
    Coin,
    Color,
    CountedRecord,
    FrozenRecord,
    FrozenSlotted,
    KeywordOnly,
    Label,
    Level,
    Loose,
    Message,
    Mode,
    Money,
    NamedRecord,
    Open,
    Page,
    Pair,
    Point,
    Positive,
    Ranged,
    Record,
    Slotted,
    SlottedChild,
    Step,
    Text,
    Ticket,
    Total,
    Triple,
)
from tests.arrays import ARRAYS, np, torch

_PARIS = ZoneInfo("Europe/Paris")


def _arrays() -> tuple[Any, ...]:
    record = np.dtype([("a", "<i4"), ("b", "U2", (2,))])
    return (
        *(np.arange(6, dtype="<i4").reshape(2, 3), np.array(["ab", "c"]), np.zeros(2, record)),
        *(np.float32(1.5), np.str_("ab"), np.datetime64("2024-02-03"), np.bool_(True)),  # noqa: FBT003
        *(torch.arange(4, dtype=torch.int16), torch.ones(2, 2, requires_grad=True)),
    )


BUILT_IN: tuple[Any, ...] = (
    *(None, True, 1, -1, 2.5, "text", b"bytes", [1, [2]], {"key": {"inner": 1}}),
    *(
        1 << 64,
        -(1 << 90),
        "lone \ud800",
        {1: 2, (3,): "four"},
        (1, "two"),
        {1, 2},
        frozenset("ab"),
    ),
    *(1 + 2j, datetime(2024, 2, 3, 4, 5, 6, 7, tzinfo=UTC), datetime(2024, 2, 3, tzinfo=_PARIS)),
    datetime(2024, 2, 3),  # noqa: DTZ001 # naive on purpose
    datetime(2024, 2, 3, tzinfo=timezone(timedelta(hours=3), "here")),
    datetime(2024, 2, 3, tzinfo=pydantic_core.TzInfo(3600)),
    *(date(2024, 2, 3), time(4, 5, 6, fold=1), time(1, tzinfo=UTC), timedelta(1, 2, 3)),
    *(Decimal("1.50"), Fraction(3, 7), uuid.UUID(int=7), PurePosixPath("a/b"), PosixPath("c")),
    *(PureWindowsPath("c:/d"), ipaddress.ip_address("10.0.0.1"), ipaddress.ip_network("::/0")),
    *(ipaddress.ip_interface("10.0.0.1/8"), deque([1, 2], 5), OrderedDict(a=1), range(1, 9, 2)),
    *(defaultdict(list, {"a": [1]}), slice(1, None, "x"), UTC, timezone(timedelta(1) / 24), _PARIS),
    *(_arrays() if ARRAYS else ()),
)

APPLICATION: tuple[Any, ...] = (
    *(Step("a", [1]), Point(1, (2,)), Slotted(1, "b"), FrozenSlotted("c"), Child(1, [2], "d")),
    *(SlottedChild(1, [], "e"), Box(1), KeywordOnly(width=1), Total([1, 2]), Checked(1, 2)),
    *(
        Message(text="hi"),
        Open.model_validate({"known": 2, "other": "x"}),
        Coin(cents=5),
        Page[int](items=[1]),
    ),
    *(Ranged(**{"from": 1}), Ticket("a", 1), Label("b"), Loose(1), Cached(7), Positive(3)),
    *(Pair(1, 2), Triple(1, 2, 3), Mode.SLOW, Level.HIGH, Color.BLUE, Access.READ | Access.RUN),
    *(Bits(17), Record("k", 1), FrozenRecord("k"), NamedRecord(left=1), CountedRecord(4)),
    *(Money(5, "note"), Text("text")),
)

ALL: tuple[Any, ...] = BUILT_IN + APPLICATION
