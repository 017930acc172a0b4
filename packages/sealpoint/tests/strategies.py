# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies over every built-in type and every kind of rule.

`values()` is the one that holds all the others: any value that `tests.application.make_registry`
allows. `keys()` gives what may be a dict key or a set member.
"""

import ipaddress
import zoneinfo
from collections import OrderedDict, defaultdict, deque
from datetime import UTC, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import cache
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from typing import Any

import hypothesis.strategies as st
import pydantic_core

from sealpoint.codec._containers import FACTORIES
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
    Numbers,
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
from tests.arrays import ARRAYS

if ARRAYS:
    from tests.array_strategies import array_scalars, arrays, tensors

Values = st.SearchStrategy[Any]

_ZONE_NAMES = ["Europe/Paris", "America/New_York", "Asia/Kathmandu", "UTC", "Etc/GMT+5"]


def big_ints() -> Values:
    """Whole numbers around and beyond what 64 bits hold."""
    edges = [
        s * ((1 << p) + d) for p in (31, 32, 63, 64, 65, 127) for d in (-1, 0, 1) for s in (1, -1)
    ]
    return st.sampled_from(edges) | st.integers(-(1 << 400), 1 << 400)


def floats() -> Values:
    """Floats, with every special one."""
    special = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324]
    return st.floats() | st.sampled_from(special)


def texts() -> Values:
    """Texts, lone surrogates included."""
    lone = st.text(st.characters(), max_size=5).map(lambda text: text + "\ud800")
    return st.text(max_size=20) | lone | st.just("\udcff" * 3)


def zones() -> st.SearchStrategy[tzinfo]:
    """Zones of every kind that may stand on its own."""
    offsets = st.timedeltas(timedelta(hours=-23), timedelta(hours=23))
    named = st.builds(timezone, offsets, st.text(max_size=4))
    places = st.sampled_from(_ZONE_NAMES).map(zoneinfo.ZoneInfo)
    return st.just(UTC) | st.builds(timezone, offsets) | named | places


def _any_zones() -> Values:
    parsed = st.integers(-86_399, 86_399).map(pydantic_core.TzInfo)
    return st.none() | zones() | parsed


def _folded(times: Values) -> Values:
    return st.builds(lambda time, fold: time.replace(fold=fold), times, st.integers(0, 1))


def moments() -> Values:
    """Dates, times, datetimes and durations."""
    return (
        _folded(st.datetimes(timezones=_any_zones(), allow_imaginary=True))
        | _folded(st.times(timezones=_any_zones()))
        | st.datetimes(timezones=st.just(UTC))
        | st.dates()
        | st.timedeltas()
        | st.sampled_from([timedelta.min, timedelta.max, timedelta.resolution])
    )


def _decimals() -> Values:
    special = ["NaN", "-NaN7", "Infinity", "-Infinity", "-0", "0E-7", "1E+999", "1.10", "1E-1999"]
    return st.decimals(allow_nan=False) | st.sampled_from(special).map(Decimal)


def _addresses() -> Values:
    scoped = st.sampled_from(["fe80::1%eth0", "::ffff:1.2.3.4", "::"]).map(ipaddress.ip_address)
    return (
        st.ip_addresses()
        | scoped
        | st.builds(lambda a: ipaddress.IPv4Interface((a, 8)), st.ip_addresses(v=4))
        | st.builds(lambda a: ipaddress.IPv6Interface((a, 64)), st.ip_addresses(v=6))
        | st.builds(lambda a: ipaddress.IPv4Network((a, 12), strict=False), st.ip_addresses(v=4))
        | st.builds(lambda a: ipaddress.IPv6Network((a, 48), strict=False), st.ip_addresses(v=6))
    )


def _paths() -> Values:
    parts = st.lists(st.sampled_from(["a", "..", ".", "b c", "\u00e9", "\udc80", "~"]), max_size=4)
    classes = st.sampled_from([PurePosixPath, PureWindowsPath, PosixPath])
    rooted = st.sampled_from(["", "/", "//"])
    return st.builds(lambda cls, root, names: cls(root + "/".join(names)), classes, rooted, parts)


@cache
def _any_hashable_scalar() -> Values:
    scalars = (
        st.none()
        | st.booleans()
        | st.integers()
        | big_ints()
        | floats()
        | texts()
        | st.binary(max_size=20)
        | st.complex_numbers()
        | moments()
        | zones()
        | _decimals()
        | st.fractions()
        | st.uuids()
        | _paths()
        | _addresses()
        | st.builds(range, st.integers(), st.integers(), st.integers(1, 9) | st.integers(-9, -1))
        | st.sampled_from([*Mode, *Level, *Color, *Access])
        | st.integers(0, 7).map(Access)
        | st.integers(0, 31).map(Bits)
    )
    return scalars | array_scalars() if ARRAYS else scalars


@st.composite
def _hashable_scalars(draw: st.DrawFn) -> Any:
    # Drawn one step removed, here and below, because Hypothesis prints strategies in full.
    return draw(_any_hashable_scalar())


def _frozen(inner: Values) -> Values:
    return (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.builds(Point, st.integers(), inner)
        | st.builds(FrozenSlotted, inner)
        | st.builds(Label, st.text(max_size=4), inner)
        | st.builds(Cached, st.integers())
        | st.builds(Coin, cents=st.integers(), mint=st.text(max_size=3))
        | st.builds(FrozenRecord, inner)
        | st.builds(CountedRecord, st.integers(0))
        | st.builds(Pair, inner, inner)
    )


@cache
def _any_key() -> Values:
    return st.recursive(_hashable_scalars(), _frozen, max_leaves=4)


@st.composite
def keys(draw: st.DrawFn) -> Any:
    """Anything that may be a dict key or a set member."""
    return draw(_any_key())


@cache
def _any_scalar() -> Values:
    signalling = st.just(Decimal("-sNaN12"))
    slices = st.builds(slice, keys(), keys(), keys())
    scalars = _hashable_scalars() | signalling | slices
    return scalars | arrays() | tensors() if ARRAYS else scalars


@st.composite
def _scalars(draw: st.DrawFn) -> Any:
    return draw(_any_scalar())


def _message(fields: dict[str, Any], draft: Any, unset: Any) -> Message:
    message = Message.model_construct(_fields_set=set(fields), **fields)
    message._draft = draft
    if unset is not None:
        message._unset = unset
    return message


def _models(inner: Values) -> Values:
    given = st.fixed_dictionaries(
        {}, optional={"role": st.text(max_size=4), "content": inner, "sent": st.none()}
    )
    extra = st.dictionaries(st.text("xyz\u00e9", min_size=1, max_size=3), inner, max_size=3)
    return (
        st.builds(_message, given, inner, st.none() | inner)
        | st.builds(lambda fields: Open(**fields), extra)
        | st.builds(lambda items: Page[int](items=items), st.lists(st.integers(), max_size=3))
        | st.builds(lambda low: Ranged(**{"from": low}), st.integers(0, 99))
    )


def _fields(inner: Values) -> Values:
    return (
        st.builds(Step, st.text(max_size=4), inner)
        | st.builds(Slotted, inner, inner)
        | st.builds(Child, st.integers(), st.lists(inner, max_size=2), st.text(max_size=4))
        | st.builds(SlottedChild, st.integers(), st.lists(inner, max_size=2))
        | st.builds(Box, inner)
        | st.builds(Box[Any], inner)
        | st.builds(KeywordOnly, width=st.integers(), height=inner)
        | st.builds(Total, st.lists(st.integers(), max_size=3))
        | st.builds(Checked, st.integers(max_value=0), st.integers(0))
        | st.builds(Ticket, inner, st.integers())
        | st.builds(Loose, inner, inner)
        | st.builds(Positive, st.integers(0))
        | st.builds(Triple, inner, inner, inner)
        | st.builds(Record, st.text(max_size=4), inner)
        | st.builds(NamedRecord, left=inner, right=inner)
        | st.builds(Money, st.integers(), inner)
        | st.text(max_size=4).map(Text)
    )


def _default_dict(factory: Any, items: dict[Any, Any]) -> defaultdict[Any, Any]:
    return defaultdict(factory, items)


def _containers(inner: Values) -> Values:
    dicts = st.dictionaries(keys(), inner, max_size=4)
    lists = st.lists(inner, max_size=4)
    return (
        lists
        | lists.map(tuple)
        | st.dictionaries(texts(), inner, max_size=4)
        | dicts
        | dicts.map(OrderedDict)
        | st.builds(_default_dict, st.sampled_from(list(FACTORIES.values())), dicts)
        | st.sets(keys(), max_size=4)
        | st.frozensets(keys(), max_size=4)
        | st.builds(deque, lists, st.none() | st.integers(4, 9))
        | st.builds(slice, inner, inner, inner)
    )


def typed(inner: Values) -> Values:
    """Values of application types, one of every kind of rule, around other values."""
    return _fields(inner) | _models(inner) | _frozen(keys())


@cache
def _any_value() -> Values:
    return st.recursive(_scalars(), lambda inner: _containers(inner) | typed(inner), max_leaves=8)


@st.composite
def values(draw: st.DrawFn) -> Any:
    """Any value that the application's registry allows."""
    return draw(_any_value())


def root_models() -> Values:
    """Models that are one bare value."""
    return st.lists(st.integers(), max_size=5).map(Numbers)
