# SPDX-License-Identifier: Apache-2.0
"""One run cannot change another's state, or the class, through the default of an added field.

Every thread that was stored before the field was added gets its default. If that were one object,
a run that raises its own limit would raise everybody's, past every signature and every approval.
"""

import copy
import types
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
import pytest

from sealpoint import Registry
from sealpoint.errors import RuleFailed, ShapeChanged
from tests.changed_classes import MAKERS, make_pydantic

_NAME = "app.state"
_Make = Callable[..., type]


class Limits(pydantic.BaseModel):
    """What a run must not exceed."""

    spend: int = 5


class Mode(Enum):
    """A member of an enum is one object everywhere."""

    SLOW = "slow"


class _Text(str):  # noqa: SLOT000 # that it can hold more is the point
    """A text that can hold more."""


class _Zone(tzinfo):
    """A zone that the application can change."""

    shift = timedelta(0)

    def utcoffset(self, at: datetime | None) -> timedelta:  # noqa: ARG002
        return self.shift

    def dst(self, at: datetime | None) -> None:
        """None is in force."""

    def tzname(self, at: datetime | None) -> str:  # noqa: ARG002
        return "own"


_CYCLE: list[Any] = []
_CYCLE.append(_CYCLE)

_OBJECTS: dict[str, Any] = {
    "model": Limits(),
    "namespace": types.SimpleNamespace(spend=5),
    "object": type("Own", (), {})(),
    "text": _Text("x"),
    "zone": datetime(2026, 1, 5, tzinfo=_Zone()),
    "time": time(9, tzinfo=_Zone()),
    "network": IPv4Network("10.0.0.0/8"),
    "bytearray": bytearray(b"x"),
    "deque": deque([1]),
    "ordered": OrderedDict(a=1),
    "counter": Counter("a"),
    "cycle": _CYCLE,
    "in a tuple": (1, Limits()),
    "in a list": [[Limits()]],
    "in a dict": {1: {"a": Limits()}},
    "in a frozenset": frozenset({type("Own", (), {})()}),
    "in a set": {_Text("x")},
    "as a key": {_Text("x"): 1},
    "beside a key": {Mode.SLOW: [1]},
}
_CONTAINERS: list[Any] = [
    *([], [1], [[1], [[2]]], {}, {"a": 1}, {"a": [1]}, {1: [2], 3: {"b": {4}}}),
    *({3}, {Mode.SLOW}, {Mode.SLOW: 1}, ([4],), (1, ({5},)), [(6, 7), (6, 7)]),
]
_VALUES: list[Any] = [
    *(None, True, 1, 1.5, 2j, "x", b"x", Decimal("0.1"), Fraction(1, 3), UUID(int=1), range(3)),
    *(date(2026, 1, 5), time(9, 30), time(9, tzinfo=UTC), timedelta(1), UTC),
    *(datetime(2026, 1, 5), datetime(2026, 1, 5, tzinfo=UTC)),  # noqa: DTZ001
    *(datetime(2026, 1, 5, tzinfo=ZoneInfo("Europe/Berlin")), IPv4Address("10.0.0.1")),
    *(PurePosixPath("a/b"), Mode.SLOW, (), (1, ("x", Mode.SLOW)), frozenset({1, (2,)})),
]


def _cases(defaults: dict[str, Any]) -> list[Any]:
    """Every kind of class with every default that the kind itself takes."""
    found = []
    for kind, make in MAKERS.items():
        for name, default in defaults.items():
            try:
                make(("limits", Any, default))
            except (TypeError, ValueError):
                continue
            found.append(pytest.param(make, default, id=f"{kind}-{name}"))
    return found


def _shown(defaults: list[Any]) -> dict[str, Any]:
    return {f"{place} {each!r}": each for place, each in enumerate(defaults)}


def _registry(cls: type, **rule: Any) -> Registry:
    registry = Registry()
    registry.allow(cls, name=_NAME, **rule)
    return registry


def _stored(make: _Make) -> bytes:
    cls = make(("number", int))
    return _registry(cls).encode(cls(number=7))


def _changeable(value: Any) -> Iterator[int]:
    """The ids of all containers in a value that can be changed."""
    if isinstance(value, list | set | dict):
        yield id(value)
    if isinstance(value, list | tuple | set | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _changeable(each)


@pytest.mark.parametrize(("make", "default"), _cases(_OBJECTS))
def test_an_object_that_can_be_changed_is_no_default(make: _Make, default: Any) -> None:
    """It would be one object for all threads, so the field is named and an upgrade asked for."""
    cls = make(("number", int), ("limits", Any, default))
    with pytest.raises(ShapeChanged, match="'limits' is new without a default") as caught:
        _registry(cls).decode(_stored(make))

    assert "version=2, upgrade={1: from_v1})" in caught.value.hint


@pytest.mark.parametrize(("make", "default"), _cases(_OBJECTS))
def test_a_rule_that_validates_copies_it(make: _Make, default: Any) -> None:
    """Where the application's code may run, every load has a copy of its own."""
    registry = _registry(make(("number", int), ("limits", Any, default)), validate=True)
    one, two = (registry.decode(_stored(make)).limits for _ in range(2))

    assert type(one) is type(two) is type(default)
    assert one is not two
    assert one is not default


@pytest.mark.parametrize(("make", "default"), _cases(_shown(_CONTAINERS)))
def test_a_plain_container_is_nobody_elses(make: _Make, default: Any) -> None:
    """Nothing in it that can be changed is that of another load or of the class, at any depth."""
    default, content = copy.deepcopy(default), copy.deepcopy(default)
    registry = _registry(make(("number", int), ("limits", Any, default)))
    one, two = (registry.decode(_stored(make)).limits for _ in range(2))
    ids = [set(_changeable(each)) for each in (one, two, default)]

    assert one == two == content
    assert len(set.union(*ids)) == sum(map(len, ids))


def test_a_default_is_what_it_was_when_the_rule_was_made() -> None:
    """Who reaches the class's own list later changes no load, and slips no object into one."""
    default = [[1]]
    registry = _registry(make_pydantic(("number", int), ("limits", Any, default)))
    default[0].append(2)
    default.append(Limits())  # type: ignore[arg-type]

    assert registry.decode(_stored(make_pydantic)).limits == [[1]]


@pytest.mark.parametrize(("make", "default"), _cases(_shown(_VALUES)))
def test_a_value_that_cannot_be_changed_is_a_default(make: _Make, default: Any) -> None:
    """The honest twin: nobody can change it, so everybody may have it."""
    value = _registry(make(("number", int), ("limits", Any, default))).decode(_stored(make))

    assert value.number == 7
    assert value.limits == default
    assert type(value.limits) is type(default)


@pytest.mark.parametrize(
    "rule",
    [
        {"validate": True},
        {"version": 2, "upgrade": {1: lambda fields: {**fields, "limits": Limits()}}},
    ],
    ids=["validate", "upgrade"],
)
def test_a_run_that_raises_its_limit_raises_no_other(rule: dict[str, Any]) -> None:
    """Neither that of a thread loaded before, nor of one loaded later, nor of a new state."""
    cls: Any = make_pydantic(("number", int), ("limits", Limits, Limits()))
    registry, data = _registry(cls, **rule), _stored(make_pydantic)
    before, run = registry.decode(data), registry.decode(data)
    run.limits.spend = 1_000_000
    after = registry.decode(data)

    assert [each.limits.spend for each in (before, after, cls(number=1))] == [5, 5, 5]


def test_a_default_that_cannot_be_copied_is_a_failure_of_the_rule() -> None:
    """The error says what failed, and the object is not shared instead."""

    class Lonely:
        def __deepcopy__(self, memo: Any) -> Any:
            raise ValueError("there is only one")

    make = MAKERS["dataclass"]
    registry = _registry(make(("number", int), ("limits", Any, Lonely())), validate=True)
    with pytest.raises(RuleFailed, match=r"copy of the default .*Lonely: failed with ValueError"):
        registry.decode(_stored(make))
