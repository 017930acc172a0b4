# SPDX-License-Identifier: Apache-2.0
"""An application with types of every kind that a rule can allow, for the tests that need some."""

import enum
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

import attrs
import msgspec
import pydantic

from sealpoint import Limits, Registry

T = TypeVar("T")


@dataclass
class Step:
    """A plain dataclass."""

    title: str
    detail: Any = None


@dataclass(frozen=True)
class Point:
    """A frozen dataclass, which can be a key."""

    x: int
    y: Any = 0


@dataclass(slots=True)
class Slotted:
    """A dataclass with slots."""

    left: Any
    right: Any = None


@dataclass(frozen=True, slots=True)
class FrozenSlotted:
    """A frozen dataclass with slots, which can be a key."""

    code: Any


@dataclass
class Parent:
    """A dataclass to inherit from."""

    born: int
    tags: list[Any] = field(default_factory=list)


@dataclass
class Child(Parent):
    """A dataclass with inherited fields."""

    name: str = ""


@dataclass(slots=True)
class SlottedChild(Parent):
    """A dataclass whose fields lie half in `__dict__` and half in slots."""

    name: str = ""


@dataclass
class Box(Generic[T]):
    """A generic dataclass."""

    content: T


@dataclass(kw_only=True)
class KeywordOnly:
    """A dataclass whose constructor takes no positional arguments."""

    width: int
    height: Any = None


@dataclass
class Total:
    """A dataclass with a field that its constructor does not take."""

    parts: list[int]
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(self.parts)


@dataclass
class Checked:
    """A dataclass that is built by its constructor on load."""

    low: int
    high: int
    span: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.low > self.high:
            message = "low is above high"
            raise ValueError(message)
        self.span = self.high - self.low


class Message(pydantic.BaseModel):
    """A model with aliases, private attributes and defaults."""

    role: str = "user"
    content: Any = pydantic.Field(default=None, alias="text")
    sent: datetime | None = pydantic.Field(default=None, validation_alias="sentAt")
    _draft: Any = pydantic.PrivateAttr(default=0)
    _unset: Any = pydantic.PrivateAttr()


class Open(pydantic.BaseModel):
    """A model that takes fields it does not declare."""

    model_config = pydantic.ConfigDict(extra="allow")

    known: int = 1


class Coin(pydantic.BaseModel):
    """A frozen model, which can be a key."""

    model_config = pydantic.ConfigDict(frozen=True)

    cents: int
    mint: str = ""


class Page(pydantic.BaseModel, Generic[T]):
    """A generic model."""

    items: list[T]
    number: int = 1


class Ranged(pydantic.BaseModel):
    """A model that is validated on load."""

    low: int = pydantic.Field(ge=0, alias="from")
    high: int = 10
    _seen: bool = pydantic.PrivateAttr(default=False)


class Numbers(pydantic.RootModel[list[int]]):
    """A model that is one bare value."""


@attrs.define
class Ticket:
    """An attrs class with slots and a private name."""

    seat: Any
    _price: int = 0


@attrs.frozen
class Label:
    """A frozen attrs class, which can be a key."""

    text: str
    weight: Any = 0


@attrs.define(slots=False)
class Loose:
    """An attrs class without slots."""

    first: Any
    second: Any = None


@attrs.frozen(cache_hash=True)
class Cached:
    """An attrs class that keeps its hash."""

    number: int


@attrs.define
class Positive:
    """An attrs class whose validators run on load."""

    amount: int = attrs.field(validator=attrs.validators.ge(0))
    doubled: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self.doubled = 2 * self.amount


class Pair(NamedTuple):
    """A NamedTuple."""

    first: Any
    second: Any = None


Triple = namedtuple("Triple", ("a", "b", "c"))  # noqa: PYI024 # this kind is the one tested


class Mode(enum.Enum):
    """An Enum with an alias and a value that is no plain one."""

    FAST = 1
    QUICK = 1  # noqa: PIE796 # an alias
    SLOW = (2, "slow")


class Level(enum.IntEnum):
    """An IntEnum."""

    LOW = 1
    HIGH = 2


class Color(enum.StrEnum):
    """A StrEnum."""

    RED = "red"
    BLUE = "blue"


class Access(enum.Flag):
    """A Flag."""

    READ = 1
    WRITE = 2
    RUN = 4


class Bits(enum.IntFlag):
    """An IntFlag, which keeps bits that have no name."""

    A = 1
    B = 2
    D = 8


class Record(msgspec.Struct):
    """A struct."""

    key: str
    value: Any = None


class FrozenRecord(msgspec.Struct, frozen=True):
    """A frozen struct, which can be a key."""

    key: Any


class NamedRecord(msgspec.Struct, kw_only=True):
    """A struct whose constructor takes no positional arguments."""

    left: Any
    right: Any = None


class CountedRecord(msgspec.Struct, frozen=True):
    """A struct with a `__post_init__`, which can be a key."""

    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            message = "number is negative"
            raise ValueError(message)


class Money:
    """A class that only a pair of functions can save."""

    def __init__(self, cents: int, note: Any = None) -> None:
        self.cents = cents
        self.note = note

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and (self.cents, self.note) == (other.cents, other.note)

    __hash__ = None  # type: ignore[assignment]


class Text(str):
    """A subclass of a plain type, which a pair of functions keeps what it is."""

    __slots__ = ()


Rule = tuple[type, str, dict[str, Any]]

RULES: tuple[Rule, ...] = (
    (Step, "app.step", {}),
    (Point, "app.point", {}),
    (Slotted, "app.slotted", {}),
    (FrozenSlotted, "app.frozen-slotted", {}),
    (Child, "app.child", {}),
    (SlottedChild, "app.slotted-child", {}),
    (Box, "app.box", {}),
    (KeywordOnly, "app.keyword-only", {}),
    (Total, "app.total", {}),
    (Checked, "app.checked", {"validate": True}),
    (Message, "app.message", {}),
    (Open, "app.open", {}),
    (Coin, "app.coin", {}),
    (Page[int], "app.page", {}),
    (Ranged, "app.ranged", {"validate": True}),
    (Ticket, "app.ticket", {}),
    (Label, "app.label", {}),
    (Loose, "app.loose", {}),
    (Cached, "app.cached", {}),
    (Positive, "app.positive", {"validate": True}),
    (Pair, "app.pair", {}),
    (Triple, "app.triple", {"validate": True}),
    (Mode, "app.mode", {}),
    (Level, "app.level", {}),
    (Color, "app.color", {}),
    (Access, "app.access", {}),
    (Bits, "app.bits", {}),
    (Record, "app.record", {}),
    (FrozenRecord, "app.frozen-record", {}),
    (NamedRecord, "app.named-record", {}),
    (CountedRecord, "app.counted-record", {}),
    (
        Money,
        "app.money",
        {
            "encode": lambda money: [money.cents, money.note],
            "decode": lambda parts: Money(*parts),
        },
    ),
    (Text, "app.text", {"encode": lambda text: str(text[:]), "decode": Text}),
)
"""Every rule but that of the model which is one bare value."""


def make_registry(
    *extra: Rule, limits: Limits | None = None, rules: tuple[Rule, ...] = RULES
) -> Registry:
    """Make a registry that allows the types above."""
    registry = Registry(limits=limits)
    for cls, name, options in (*rules, *extra):
        registry.allow(cls, name=name, **options)
    return registry


def outcome(function: Callable[[], Any]) -> Any:
    """What a call gives: its value, or the exception it ended with."""
    try:
        return function()
    except Exception as exc:  # noqa: BLE001 # the caller asks which
        return exc
