# SPDX-License-Identifier: Apache-2.0
"""One neutral way to write down a value: JSON, for what either decoder gives.

Plain values are what JSON has for them, except that numbers are exact: an integer is its
hexadecimal digits, a float the bytes of its double. Everything else is an object whose first key
says what it is. The specification has the table.
"""

import contextlib
import json
import struct
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import torch
from pydantic_core import TzInfo

from tests.vectors.decoder import FACTORIES, PARSED
from tests.vectors.rules import KINDS, rules_as_data

__all__ = ["deep_values", "render"]

_RULES = rules_as_data()
_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)


@contextlib.contextmanager
def deep_values() -> Iterator[None]:
    """Let Python follow the deepest value that may be read, and a little more."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _bits(number: float) -> str:
    return struct.pack(">d", number).hex()


def _zone(zone: tzinfo | None) -> Any:
    if zone is None or zone is UTC:
        return None if zone is None else "utc"
    if isinstance(zone, ZoneInfo):
        return {"iana": zone.key}
    offset = zone.utcoffset(None)
    assert offset is not None
    name = zone.__getinitargs__()[1:] if isinstance(zone, timezone) else ()  # type: ignore[attr-defined]
    if isinstance(zone, TzInfo) or name == (PARSED,):
        return {"pydantic": offset // _SECOND}
    return {"offset": offset // _MICROSECOND, "name": name[0] if name else None}


def _clock(value: datetime | time) -> list[Any]:
    fields = [value.hour, value.minute, value.second, value.microsecond, value.fold]
    return [*fields, _zone(value.tzinfo)]


def _pairs(mapping: dict[Any, Any]) -> list[Any]:
    return [[render(key), render(member)] for key, member in mapping.items()]


def _sorted(members: Any) -> list[Any]:
    return sorted(map(render, members), key=json.dumps)


def _default_dict(value: defaultdict[Any, Any]) -> Any:
    factory = FACTORIES.index(value.default_factory)
    return {"default_dict": _pairs(value), "factory": factory}


def _address(value: Any) -> Any:
    return {"address": type(value).__name__, "text": str(value)}


def _path(value: Any) -> Any:
    return {"path": type(value).__name__, "text": str(value)}


_PLAIN: dict[type, Callable[[Any], Any]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    str: lambda value: value,
    int: lambda value: {"int": hex(value)},
    float: lambda value: {"float": _bits(value)},
    bytes: lambda value: {"bytes": value.hex()},
    list: lambda value: list(map(render, value)),
    dict: lambda value: {"map": _pairs(value)},
    set: lambda value: {"set": _sorted(value)},
    frozenset: lambda value: {"frozenset": _sorted(value)},
    complex: lambda value: {"complex": [_bits(value.real), _bits(value.imag)]},
    datetime: lambda value: {"datetime": [value.year, value.month, value.day, *_clock(value)]},
    date: lambda value: {"date": [value.year, value.month, value.day]},
    time: lambda value: {"time": _clock(value)},
    timedelta: lambda value: {"timedelta": [value.days, value.seconds, value.microseconds]},
    timezone: lambda value: {"zone": _zone(value)},
    ZoneInfo: lambda value: {"zone": _zone(value)},
    TzInfo: lambda value: {"zone": _zone(value)},
    Decimal: lambda value: {"decimal": str(value)},
    Fraction: lambda value: {"fraction": [hex(value.numerator), hex(value.denominator)]},
    UUID: lambda value: {"uuid": value.hex},
    deque: lambda value: {"deque": list(map(render, value)), "longest": value.maxlen},
    OrderedDict: lambda value: {"ordered_dict": _pairs(value)},
    defaultdict: _default_dict,
    range: lambda value: {"range": [hex(each) for each in (value.start, value.stop, value.step)]},
    slice: lambda value: {
        "slice": [render(each) for each in (value.start, value.stop, value.step)]
    },
    **dict.fromkeys((PurePosixPath, PureWindowsPath, PosixPath), _path),
    **dict.fromkeys((IPv4Address, IPv4Interface, IPv4Network), _address),
    **dict.fromkeys((IPv6Address, IPv6Interface, IPv6Network), _address),
}


def render(value: Any) -> Any:
    """A value as JSON."""
    found = _PLAIN.get(type(value))
    if found is not None:
        return found(value)
    if type(value) is tuple:
        neutral = _NEUTRAL.get(value[0]) if value and type(value[0]) is str else None
        return neutral(*value[1:]) if neutral else {"tuple": list(map(render, value))}
    if isinstance(value, np.ndarray):
        return _array(_element(value.dtype), list(value.shape), value.tobytes())
    if isinstance(value, np.bytes_ | np.str_):
        return (
            _scalar("text", "".join(value))
            if isinstance(value, str)
            else _scalar("bytes", bytes(value))
        )
    if isinstance(value, np.generic):
        return _scalar(_element(value.dtype), value.tobytes())
    if isinstance(value, torch.Tensor):
        raw = (
            value.detach().reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""
        )
        name = str(value.dtype).removeprefix("torch.")
        return _tensor(name, list(value.shape), value.requires_grad, raw)
    return _object(value, *KINDS[type(value)])


def _element(dtype: Any) -> Any:
    if dtype.names is None:
        return dtype.str
    fields = []
    for name in dtype.names:
        base, sides = dtype[name].subdtype or (dtype[name], ())
        fields.append([name, _element(base), list(sides)])
    return fields


def _array(element: Any, shape: list[int], raw: bytes) -> Any:
    return {"array": raw.hex(), "element": element, "shape": shape}


def _tensor(element: str, shape: list[int], gradient: bool, raw: bytes) -> Any:  # noqa: FBT001
    return {"tensor": raw.hex(), "element": element, "shape": shape, "gradient": gradient}


def _scalar(element: Any, raw: Any) -> Any:
    """A scalar has no byte order of its own: little endian stands for both."""
    if element == "text":
        return {"scalar": raw, "element": element}
    if element[0] == ">":
        width = len(raw) // (2 if element[1] == "c" else 1)
        raw = b"".join(raw[at : at + width][::-1] for at in range(0, len(raw), width))
        element = "<" + element[1:]
    return {"scalar": raw.hex(), "element": element}


def _object(value: Any, name: str, kind: str) -> Any:
    """An object of ours, seen from outside."""
    rule = _RULES[name]
    if kind == "pair":
        return _typed(name, [value.value])
    if kind == "enum":
        return _typed(name, value.name if value.name in rule["members"] else value.value)
    fields = {each: getattr(value, each) for each in rule["fields"]}
    if kind != "pydantic":
        return _typed(name, fields)
    given = value.model_fields_set
    named = (*fields, *(value.model_extra or ()))
    mask = sum(1 << place for place, each in enumerate(named) if each in given)
    return _typed(name, fields, mask, value.model_extra, value.__pydantic_private__)


def _typed(name: str, what: Any, *beside: Any) -> Any:
    if type(what) is list:
        return {"typed": name, "value": render(what[0])}
    if type(what) in (str, int):
        return {"typed": name, "member" if type(what) is str else "combined": what}
    if type(what) is tuple:
        what = dict(zip(_RULES[name]["fields"], what, strict=True))
    found = {"typed": name, "fields": _pairs(what)}
    if beside:
        mask, extra, private = beside
        named = (*what, *(extra or ()))
        found["given"] = [each for place, each in enumerate(named) if mask >> place & 1]
        found |= {"extra": render(extra), "private": render(private)}
    return found


_NEUTRAL: dict[str, Callable[..., Any]] = {
    "array": _array,
    "scalar": _scalar,
    "tensor": _tensor,
    "typed": _typed,
}
