# SPDX-License-Identifier: Apache-2.0
"""Values that cannot be saved, each for another reason."""

import io
import struct
from collections import defaultdict
from datetime import datetime, tzinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import torch

from fuzz import _types as app

__all__ = ["refused_values"]


class _Stranger:
    """A class that no rule allows."""


class _Sub(dict[str, int]):
    """A subclass of a plain type, which must not be flattened."""


class _Zone(tzinfo):
    """A zone that no table knows."""

    def utcoffset(self, _: datetime | None, /) -> None:
        """Say nothing."""

    def dst(self, _: datetime | None, /) -> None:
        """Say nothing."""

    def tzname(self, _: datetime | None, /) -> None:
        """Say nothing."""


class _NoHash:
    """A factory that cannot be looked up."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self) -> int:
        return 0


def _nameless_zone() -> ZoneInfo:
    """A zone that was read from a file and has no name."""
    header = b"TZif\0" + bytes(15) + struct.pack(">6I", 0, 0, 0, 0, 1, 4)
    return ZoneInfo.from_file(io.BytesIO(header + bytes(6) + b"UTC\0"))


def refused_values() -> list[Any]:
    """Values that cannot be encoded, each for another reason."""
    unset = app.Plan([1])
    del unset.__dict__["a"]
    beside = app.Key(a=1)
    beside.__dict__["c"] = 1
    cycle: list[Any] = []
    cycle.append(cycle)
    tuple_cycle: list[Any] = []
    tuple_cycle.append((tuple_cycle,))
    model = app.Message()
    del model.__dict__["a"]
    nested: list[Any] = []
    for _ in range(300):
        nested = [nested]
    slotted: app.Slotted[int] = app.Slotted(1)
    del slotted.a
    bare = app.Newer(1)
    del bare.a
    tuple_beside = type("Aside", (app.Row,), {})(1, 2)
    return [
        *(
            _nameless_zone(),
            defaultdict(_NoHash()),
            tuple_beside,
            app.Money(app.Money),
            [app.Money(...)],
        ),
        *(np.int_, {frozenset({(app.Plan,)}): 1}, {app.Money: 1}),
        *(
            _Stranger(),
            _Stranger,
            object(),
            len,
            lambda: None,
            _Sub(a=1),
            {_Stranger(): 1},
            {_Stranger},
        ),
        *(type("OddName__", (), {"__module__": "_x.Y9"})(), type("T", (app.Plan,), {})([1])),
        *(
            unset,
            beside,
            model,
            slotted,
            bare,
            cycle,
            tuple_cycle,
            nested,
            {1: nested},
        ),
        *(datetime(2024, 1, 1, tzinfo=_Zone()), _Zone(), defaultdict(lambda: 0), defaultdict(_Sub)),
        *(
            np.array([object()], object),
            np.zeros(1, "<V4"),
            np.longdouble(1),
        ),
        *(
            torch.zeros(2).to_sparse(),
            torch.ones(1, requires_grad=True) * 2,
            torch.zeros(1, device="meta"),
        ),
        *(
            1 << 600_000,
            Fraction(1 << 20_000, 3),
            Decimal("1E+3000000"),
            Decimal("1" * 5000),
        ),
        *(
            PurePosixPath("x" * 70_000),
            {hash: 1},
        ),
        *(
            np.zeros((1,) * 40),
            torch.zeros((1,) * 40),
            {refused_values: 1},
        ),
        {n * ((1 << 61) - 1): n for n in range(40)},
    ]
