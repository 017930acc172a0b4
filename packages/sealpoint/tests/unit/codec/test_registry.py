# SPDX-License-Identifier: Apache-2.0
"""Allowing types: call and decorator, names and versions, and what stays refused."""

import collections
import datetime as dt
import decimal
import enum
import fractions
import uuid
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pytest

from sealpoint import Registry
from sealpoint.codec import DictForm
from sealpoint.errors import DecodeError, RuleInvalid, TypeNotAllowed
from tests.arrays import ARRAYS, np, torch
from tests.blobs import Blobs
from tests.sameness import same


@dataclass
class _Plan:
    steps: list[str]


class _Handle:
    def __init__(self, number: int) -> None:
        self.number = number


def test_allow_works_as_a_call_and_returns_the_class() -> None:
    """`registry.allow(Plan, name=...)` gives the class back unchanged."""
    registry = Registry()

    assert registry.allow(_Plan, name="app.plan") is _Plan
    assert registry.decode(registry.encode(_Plan(["a"]))) == _Plan(["a"])


def test_allow_works_as_a_decorator() -> None:
    """`@registry.allow(name=...)` above a class allows that class."""
    registry = Registry()

    @registry.allow(name="app.decorated", version=2, upgrade={1: lambda fields: fields})
    @dataclass
    class Decorated:
        x: int

    assert isinstance(Decorated, type)
    assert registry.decode(registry.encode(Decorated(1))) == Decorated(1)
    (rule,) = registry.rules
    assert (rule.cls, rule.name, rule.version) == (Decorated, "app.decorated", 2)


def test_a_pair_of_functions_works_as_call_and_decorator() -> None:
    """Any class can be allowed with encode= and decode=."""
    registry = Registry()
    registry.allow(_Handle, name="app.handle", encode=lambda h: h.number, decode=_Handle)

    @registry.allow(name="app.other", encode=lambda o: [o.x], decode=lambda parts: Other(*parts))
    class Other:
        def __init__(self, x: int) -> None:
            self.x = x

    assert registry.decode(registry.encode(_Handle(7))).number == 7
    assert registry.decode(registry.encode(Other(8))).x == 8


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Plan",
        "app plan",
        "app.Plan",
        ".plan",
        "app.",
        "app..plan",
        "1plan",
        "-plan",
        "_plan",
        "plän",
        "a" * 101,
        "plan\n",
        "app/plan",
        "�",
        b"plan",
        None,
        7,
    ],
)
def test_a_bad_name_is_refused(name: Any) -> None:
    """Names are lower-case words with dots, at most 100 characters."""
    with pytest.raises(RuleInvalid):
        Registry().allow(_Plan, name=name)


@pytest.mark.parametrize("name", ["a", "plan", "app.plan", "a-b_c.d0.1", "a" * 100])
def test_a_good_name_is_allowed(name: str) -> None:
    """Names that follow the rule make a rule."""
    registry = Registry()
    registry.allow(_Plan, name=name)

    assert registry.decode(registry.encode(_Plan([]))) == _Plan([])


@pytest.mark.parametrize("version", [0, -1, 65_536, 1.0, "1", None, True])
def test_a_bad_version_is_refused(version: Any) -> None:
    """Versions are whole numbers from 1 to 65535."""
    with pytest.raises(RuleInvalid):
        Registry().allow(_Plan, name="plan", version=version)


@pytest.mark.parametrize(
    "upgrade", [{1: len}, {0: len}, {2: len}, {"1": len}, {1: "no function"}, {True: len}]
)
def test_a_bad_upgrade_is_refused(upgrade: Any) -> None:
    """Upgrades go from versions below the rule's own, and are functions."""
    version = 2 if upgrade == {1: "no function"} else 1

    with pytest.raises(RuleInvalid):
        Registry().allow(_Plan, name="plan", version=version, upgrade=upgrade)


def test_a_name_or_type_is_allowed_once() -> None:
    """Two rules of one name, or for one type, are refused, and the first stays as it was."""
    registry = Registry()
    registry.allow(_Plan, name="plan")

    with pytest.raises(RuleInvalid, match="plan"):
        registry.allow(_Plan, name="other")
    with pytest.raises(RuleInvalid, match="plan"):
        registry.allow(_Handle, name="plan", encode=lambda h: h.number, decode=_Handle)
    assert [rule.name for rule in registry.rules] == ["plan"]


@pytest.mark.parametrize("functions", [{"encode": len}, {"decode": len}])
def test_one_function_of_a_pair_is_refused(functions: Any) -> None:
    """encode= and decode= come together."""
    with pytest.raises(RuleInvalid, match="both"):
        Registry().allow(_Handle, name="handle", **functions)


@pytest.mark.parametrize(
    "cls",
    [
        str,
        int,
        dict,
        list,
        tuple,
        bytes,
        set,
        dt.datetime,
        uuid.UUID,
        decimal.Decimal,
        collections.deque,
        slice,
        bytearray,
        type(None),
        *((np.ndarray, np.float64, torch.Tensor) if ARRAYS else ()),
    ],
)
def test_a_built_in_type_cannot_be_given_a_rule(cls: type) -> None:
    """What is built in has one meaning, which no rule changes."""
    with pytest.raises(RuleInvalid, match="built in"):
        Registry().allow(cls, name="builtin", encode=lambda _: None, decode=lambda _: cls())


@pytest.mark.parametrize("cls", [_Plan([]), 7, "Plan", None.__class__.__call__, lambda: None])
def test_only_a_class_is_allowed(cls: Any) -> None:
    """An object or function is no type."""
    with pytest.raises(RuleInvalid):
        Registry().allow(cls, name="thing")


def test_a_class_of_no_known_kind_needs_functions() -> None:
    """The error says what to write."""
    with pytest.raises(RuleInvalid) as caught:
        Registry().allow(_Handle, name="handle")

    assert "encode=..., decode=..." in caught.value.hint


class _Text(str):
    __slots__ = ()


class _Number(int):
    pass


class _Real(float):
    pass


class _Data(bytes):
    pass


class _Mapping(dict[Any, Any]):
    pass


class _Items(list[Any]):
    pass


class _Parts(tuple[Any, ...]):
    __slots__ = ()


class _Members(set[Any]):
    pass


class _Frozen(frozenset[Any]):
    pass


class _Moment(dt.datetime):
    pass


class _Day(dt.date):
    pass


class _Clock(dt.time):
    pass


class _Span(dt.timedelta):
    pass


class _Unique(uuid.UUID):
    pass


class _Exact(decimal.Decimal):
    pass


class _Ratio(fractions.Fraction):
    pass


class _Queue(collections.deque[Any]):
    pass


class _Ordered(collections.OrderedDict[Any, Any]):
    pass


class _Default(collections.defaultdict[Any, Any]):
    pass


class _Pure(PurePosixPath):
    pass


class _Buffer(bytearray):
    pass


class _Word(enum.StrEnum):
    A = "a"


def _arrays() -> list[Any]:
    class _Array(np.ndarray[Any, Any]):
        pass

    parameter = torch.nn.Parameter(torch.zeros(1))
    return [np.zeros(2).view(_Array), parameter, np.ma.masked_array([1])]


_SUBCLASSED: list[Any] = [
    *(_Text("a"), _Number(1), _Real(1.5), _Data(b"a"), _Mapping(a=1), _Items([1]), _Parts((1,))),
    *(_Members({1}), _Frozen({1}), _Moment(2024, 1, 1), _Day(2024, 1, 1), _Clock(1), _Span(1)),
    *(_Unique(int=1), _Exact(1), _Ratio(1, 2), _Queue([1]), _Ordered(a=1), _Default(list)),
    *(_Pure("a"), _Buffer(b"a"), _Word.A),
    *(_arrays() if ARRAYS else ()),
]


@pytest.mark.parametrize("value", _SUBCLASSED, ids=lambda value: type(value).__name__)
def test_a_subclass_of_a_built_in_type_is_not_flattened(value: Any) -> None:
    """A subclass needs a rule of its own: as a value, member, key, and inside of other types."""
    registry = Registry()
    places: list[Any] = [
        value,
        [value],
        {"a": value},
        (value,),
        {1: value},
        collections.deque([value]),
    ]
    if type(value).__hash__ is not None and not (ARRAYS and isinstance(value, np.ndarray)):
        places += [{value: 1}, {value}, frozenset({(value,)}), {"other": 1, value: 2}]

    for place in places:
        with pytest.raises(TypeNotAllowed, match=type(value).__name__):
            registry.encode(place)
        with pytest.raises(TypeNotAllowed, match=type(value).__name__):
            registry.encode_tree(place, Blobs().put)


@pytest.mark.parametrize("value", _SUBCLASSED[:5], ids=lambda value: type(value).__name__)
def test_a_subclass_with_a_rule_comes_back_as_itself(value: Any) -> None:
    """With a pair of functions the subclass is kept."""
    registry = Registry()
    cls = type(value)
    plain = cls.__mro__[1]
    registry.allow(cls, name="app.sub", encode=plain, decode=cls)

    assert same(registry.decode(registry.encode([value, {"a": value}])), [value, {"a": value}])


def test_subclasses_of_an_allowed_type_are_not_included() -> None:
    """A rule is for one class; a subclass of it needs another."""

    @dataclass
    class Special(_Plan):
        extra: int = 0

    registry = Registry()
    registry.allow(_Plan, name="plan")

    with pytest.raises(TypeNotAllowed, match="Special"):
        registry.encode(Special([]))


@pytest.mark.parametrize("data", ["text", None, 7, ["bytes"], object()])
def test_decoding_something_that_is_not_bytes_is_refused(data: Any) -> None:
    """Only bytes, a bytearray or a memoryview can be decoded."""
    registry = Registry()

    with pytest.raises(DecodeError):
        registry.decode(data)
    others: list[Any] = [bytearray(b"\x01"), memoryview(b"\x01")]
    assert [registry.decode(other) for other in others] == [1, 1]


def test_rules_are_listed_in_the_order_of_their_names() -> None:
    """`registry.rules` tells what is allowed."""
    registry = Registry()
    registry.allow(_Plan, name="b")
    registry.allow(_Handle, name="a", encode=lambda h: h.number, decode=_Handle)

    assert [rule.name for rule in registry.rules] == ["a", "b"]


def test_a_rule_is_found_by_its_type_and_by_its_name() -> None:
    """The same one, or none."""
    registry = Registry()
    registry.allow(_Plan, name="app.plan")

    assert registry.rule_of(_Plan) is registry.rule_named("app.plan") is registry.rules[0]
    assert registry.rule_of(int) is registry.rule_named("plan") is None


def test_registries_do_not_share_rules() -> None:
    """Allowing a type in one registry allows it in no other."""
    Registry().allow(_Plan, name="plan")

    with pytest.raises(TypeNotAllowed):
        Registry().encode(_Plan([]))


def test_only_an_allowed_type_has_a_form() -> None:
    """A form shortens what a rule does, and without a rule there is nothing to shorten."""
    registry = Registry()
    form = DictForm(("steps",), lambda fields, _mask: [fields])

    with pytest.raises(RuleInvalid, match="no rule allows it"):
        registry.roll(_Plan, form)
    registry.allow(_Plan, name="app.plan")
    registry.roll(_Plan, form)
    assert registry.decode(registry.encode(_Plan(["a"]))) == _Plan(["a"])
