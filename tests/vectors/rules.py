# SPDX-License-Identifier: Apache-2.0
"""The application types of the vectors: one rule of every kind, and the same rules as data.

`registry` is what our decoder is given, `rules_as_data` what the second decoder is given.
"""

import dataclasses
import enum
from decimal import Decimal
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic

from sealpoint import Registry
from sealpoint.limits import Limits

__all__ = ["ADDED", "KINDS", "registry", "rules_as_data"]


@dataclasses.dataclass
class Plan:
    """A dataclass of two fields."""

    steps: list[str]
    budget: int | None


@dataclasses.dataclass(frozen=True)
class Point:
    """A frozen dataclass, which can be a key."""

    x: int
    y: float


@dataclasses.dataclass
class Nothing:
    """A dataclass without fields."""


@dataclasses.dataclass
class Ticket:
    """A dataclass that got two fields with defaults."""

    number: str
    urgent: bool = False
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Invoice:
    """A dataclass in its third version."""

    number: str
    currency: str
    note: str | None


@attrs.define
class Tool:
    """An attrs class with a private attribute."""

    name: str
    _calls: int


class Pair(NamedTuple):
    """A named tuple."""

    left: Any
    right: Any


class Color(enum.Enum):
    """An enum with an alias."""

    RED = "red"
    GREEN = "green"
    CRIMSON = "red"  # noqa: PIE796 - an alias is a second name of a member


class Access(enum.Flag):
    """Flags, one of them a named combination."""

    READ = 1
    WRITE = 2
    RUN = 4
    EDIT = 3


class Message(pydantic.BaseModel):
    """A model with a default, extra fields and a private attribute."""

    model_config = pydantic.ConfigDict(extra="allow")
    text: str
    score: float = 0.0
    _seen: int = pydantic.PrivateAttr(default=0)


class Usage(msgspec.Struct):
    """A struct."""

    tokens: int
    cost: Decimal


class Token:
    """A class that a pair of functions takes apart."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and self.value == other.value


Wide = dataclasses.make_dataclass("Wide", [(f"field_{place:02}", int) for place in range(16)])

ADDED: dict[int, dict[str, Any]] = {1: {"currency": "EUR"}, 2: {"note": None}}
"""What each upgrade of an invoice adds."""

KINDS: dict[type, tuple[str, str]] = {
    Plan: ("test.plan", "dataclass"),
    Point: ("test.point", "dataclass"),
    Nothing: ("test.nothing", "dataclass"),
    Wide: ("test.wide", "dataclass"),
    Ticket: ("test.ticket", "dataclass"),
    Invoice: ("test.invoice", "dataclass"),
    Tool: ("test.tool", "attrs"),
    Pair: ("test.pair", "namedtuple"),
    Color: ("test.color", "enum"),
    Access: ("test.access", "enum"),
    Message: ("test.message", "pydantic"),
    Usage: ("test.usage", "struct"),
    Token: ("test.token", "pair"),
}
"""Each type with the name and the kind of its rule."""

# The annotations as the shape digest sees them, written down by hand.
_ANNOTATIONS: dict[type, dict[str, str]] = {
    Plan: {"steps": "list[str]", "budget": "int|None"},
    Point: {"x": "int", "y": "float"},
    Nothing: {},
    Wide: {f"field_{place:02}": "int" for place in range(16)},
    Ticket: {"number": "str", "urgent": "bool", "tags": "list[str]"},
    Invoice: {"number": "str", "currency": "str", "note": "str|None"},
    Tool: {"name": "str", "_calls": "int"},
    Pair: {"left": "Any", "right": "Any"},
    Color: {"member": ""},
    Access: {"flag": ""},
    Message: {"text": "str", "score": "float"},
    Usage: {"tokens": "int", "cost": "Decimal"},
    Token: {},
}
_KEYS = (Point, Pair, Color, Access)


def _added(step: int) -> Any:
    return lambda fields: {**fields, **ADDED[step]}


def registry(limits: dict[str, int] | None = None) -> Registry:
    """A registry with every rule of the vectors, and the bounds of one of them."""
    found = Registry(limits=Limits(**(limits or {})))
    for cls, (name, kind) in KINDS.items():
        if kind == "pair":
            found.allow(cls, name=name, encode=lambda token: token.value, decode=Token)
        elif cls is Invoice:
            found.allow(cls, name=name, version=3, upgrade={step: _added(step) for step in ADDED})
        else:
            found.allow(cls, name=name)
    return found


def rules_as_data() -> dict[str, dict[str, Any]]:
    """The same rules without any type of ours: all that a second implementation has to be told."""
    rules = {rule.name: rule for rule in registry().rules}
    table: dict[str, dict[str, Any]] = {}
    for cls, (name, kind) in KINDS.items():
        annotations = _ANNOTATIONS[cls]
        table[name] = {
            "version": rules[name].version,
            "kind": kind,
            "shape": rules[name].label[-8:].hex(),
            "annotations": [list(each) for each in annotations.items()],
            "fields": ["name"] if kind == "enum" else list(annotations),
            "key": cls in _KEYS,
            "defaults": {},
        }
    table["test.ticket"]["defaults"] = {"urgent": False, "tags": []}
    table["test.message"]["defaults"] = {"score": 0.0}
    table["test.invoice"]["upgrade"] = {str(step): added for step, added in ADDED.items()}
    table["test.color"] |= {"members": _members(Color), "combined": []}
    table["test.access"] |= {"members": _members(Access), "combined": [0, 5, 6, 7]}
    table["test.message"] |= {"extra": True, "private": ["_seen"]}
    return table


def _members(cls: type[enum.Enum]) -> dict[str, str]:
    return {name: member.name for name, member in cls.__members__.items()}
