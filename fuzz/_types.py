# SPDX-License-Identifier: Apache-2.0
"""An application whose every method tells when it runs.

One class or more of each kind that a rule can allow. Those with `validate=True`, the pairs of
functions and the upgrades are code that a rule asks for, so they stay silent; everything else
reports itself to the watch, and then decoding has run code it must not run.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, ForwardRef, Generic, Literal, NamedTuple, TypeVar

import attrs
import msgspec
import pydantic

from fuzz._watch import application_ran, let_run

__all__ = [
    "Access",
    "Account",
    "Bits",
    "Cached",
    "Checked",
    "Colour",
    "Entry",
    "Key",
    "Later",
    "Lookup",
    "Message",
    "Money",
    "Newer",
    "Opened",
    "Plan",
    "Point",
    "Record",
    "Row",
    "Second",
    "Shade",
    "Slotted",
    "Span",
    "Step",
    "Strict",
    "Text",
    "Third",
    "Weight",
    "Wide",
    "Word",
]

_T = TypeVar("_T")
_C = TypeVar("_C", bound=type)

_ALL = (
    *("__init__", "__setattr__", "__delattr__", "__getattribute__", "__repr__", "__str__"),
    *("__eq__", "__ne__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__", "__format__"),
    *("__bool__", "__len__", "__iter__", "__contains__", "__getitem__", "__call__", "__index__"),
    *("__reduce_ex__", "__getstate__", "__setstate__", "__copy__", "__deepcopy__", "__del__"),
    *("__post_init__", "__attrs_post_init__", "model_post_init", "__set__", "__get__"),
)
_KEY = ("__eq__", "__hash__")


def _loud(*, but: tuple[str, ...] = (), add: tuple[str, ...] = ()) -> Callable[[_C], _C]:
    """Make a class report every call of its methods, and of some that it does not have."""

    def decorate(cls: _C) -> _C:
        for name in (each for each in _ALL if each not in but):
            original = getattr(cls, name, None)
            if (original is None and name not in add) or (name == "__hash__" and not original):
                continue
            setattr(cls, name, _reporting(f"{cls.__qualname__}.{name}", original))
        return cls

    return decorate


def _reporting(name: str, original: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        application_ran(name)
        return original(self, *args, **kwargs) if original is not None else 0

    return method


def _checked(name: str) -> Callable[..., Any]:
    """A validator, converter or default that reports itself."""

    def check(value: Any = 0) -> Any:
        application_ran(name)
        return value

    return check


@_loud(add=("__bool__", "__len__", "__contains__", "__getitem__"))
@dataclass
class Plan:
    """Everything is reported, hashing included, so no key."""

    a: "list[int] | None"
    b: Any = field(default_factory=list)

    def __post_init__(self) -> None:
        """Reported by the decorator."""


@_loud(but=(*_KEY, "__getattribute__"), add=("__bool__", "__len__"))
@dataclass(frozen=True)
class Key:
    """Hash and equality are generated; the rest is reported."""

    a: Any
    b: Literal["x", 1] = 1


@_loud(but=_KEY)
@dataclass(frozen=True)
class Lookup:
    """Hash and equality are generated, but reading a field runs application code."""

    a: Any


@_loud(but=("__getattribute__",))
@dataclass(slots=True)
class Slotted(Generic[_T]):
    """Fields lie in slots."""

    a: Annotated[int, "unit"]
    b: "Callable[[int], _T] | None" = None


@dataclass
class Checked:
    """Built by its constructor."""

    a: int
    b: list[Any] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        if type(self.a) is int and self.a < 0:  # other types' own code must not run from here
            raise ValueError("a: expected no negative number")


@dataclass
class Wide:
    """More fields than a short map header can count."""

    a0: int = 0
    a1: int = 0
    a2: int = 0
    a3: int = 0
    a4: int = 0
    a5: int = 0
    a6: int = 0
    a7: int = 0
    a8: int = 0
    a9: int = 0
    b0: int = 0
    b1: int = 0
    b2: int = 0
    b3: int = 0
    b4: int = 0
    b5: int = 0


@_loud(but=("__getattribute__", "__init__"))
class Message(pydantic.BaseModel):
    """Extra fields, private attributes, an alias, validators."""

    model_config = pydantic.ConfigDict(extra="allow", validate_assignment=True)
    a: Annotated[int, pydantic.AfterValidator(_checked("Message.a"))] = 0
    b: Any = pydantic.Field(default=None, alias="bee")
    _seen: Any = pydantic.PrivateAttr(default_factory=_checked("Message._seen"))

    @pydantic.model_validator(mode="after")
    def _after(self) -> "Message":
        application_ran("Message._after")
        return self


class Point(pydantic.BaseModel):
    """A frozen model, which may be a key."""

    model_config = pydantic.ConfigDict(frozen=True)
    x: Any = (datetime(2026, 1, 1, tzinfo=UTC), 0)
    y: float | None = None


class Account(pydantic.BaseModel):
    """Built by its validator."""

    model_config = pydantic.ConfigDict(extra="allow")
    a: int = 0
    when: Any = [[1], {2: [3]}, {4}, {5: 6}]

    @pydantic.model_validator(mode="wrap")
    @classmethod
    def _watched(cls, value: Any, handler: Any) -> Any:
        with let_run():  # a validator asks the values it is given
            return handler(value)


def _convert_step(value: Any) -> Any:
    application_ran("Step.a")
    return value


@_loud(but=("__getattribute__",))
@attrs.define(eq=True)
class Step:
    """Slots, a converter, a validator, a private attribute."""

    a: Any = attrs.field(default=0, converter=_convert_step)
    _b: Any = attrs.field(default=None, validator=lambda *_: application_ran("Step._b"))

    def __attrs_post_init__(self) -> None:
        """Reported by the decorator."""


@attrs.define(frozen=True, cache_hash=True)
class Cached:
    """Keeps its hash beside its fields."""

    a: Any = 0


@attrs.define(slots=False)
class Opened:
    """Built by its constructor, with a field that the constructor does not take."""

    _a: int = 0
    b: Any = attrs.field(init=False, default=None)


@_loud(but=("__init__", "__getattribute__", *_KEY))
class Row(NamedTuple):
    """A tuple with names."""

    a: Any
    b: Any = None


class Span(NamedTuple):
    """Built by its constructor."""

    a: int
    b: "Missing" = 0  # type: ignore[name-defined] # noqa: F821 - a name only a type checker sees


class Colour(enum.Enum):
    """Members by name."""

    RED = 1
    BLUE = (1, 2)
    ALIAS = 1  # noqa: PIE796 - a second name for the same member

    @classmethod
    def _missing_(cls, value: object) -> Any:
        application_ran(f"Colour._missing_ {type(value).__name__}")


class Text(str, enum.Enum):  # noqa: UP042 - the older way, which is another class
    """Members that are strings, equal to plain ones."""

    A = "a"
    B = "b"


class Access(enum.Flag):
    """Strict flags."""

    READ = 1
    WRITE = 2
    BOTH = 3

    @classmethod
    def _missing_(cls, value: object) -> Any:
        application_ran(f"Access._missing_ {type(value).__name__}")
        return super()._missing_(value)


class Bits(enum.IntFlag):
    """Flags that keep unknown bits."""

    LOW = 1
    HIGH = 1 << 40


class Record(msgspec.Struct, frozen=True):
    """Native construction; may be a key."""

    a: Any
    b: tuple[int, ...] = ()


class Entry(msgspec.Struct):
    """With a `__post_init__` that must not run."""

    a: Any
    b: Any = None

    def __post_init__(self) -> None:
        """Report."""
        application_ran("Entry.__post_init__")


class Strict(msgspec.Struct):
    """Built by its constructor."""

    a: int = 0

    def __post_init__(self) -> None:
        """Refuse zero."""
        if type(self.a) is int and self.a == 0:
            raise ValueError("a: expected not zero")


class Money:
    """An ordinary class with a pair of functions; hashed by identity."""

    def __init__(self, cents: Any) -> None:
        self.cents = cents


class Parcel:
    """An ordinary class whose functions store its `__dict__`, in lists of which a roll is kept."""

    def __init__(self, inside: Any) -> None:
        self.inside = inside


class Word:
    """An ordinary class with its own hash, which its rule allows by `validate=True`."""

    def __init__(self, text: Any) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and self._plain() == other._plain()

    def __hash__(self) -> int:
        return hash(self._plain())

    def _plain(self) -> str | int:
        """What is compared: never code of whatever type the text turned out to have."""
        return self.text if type(self.text) in (str, int) else 0


@dataclass
class Third:
    """The third version of a class; two upgrades lead to it."""

    a: Any
    c: Any = None


class Second(pydantic.BaseModel):
    """The second version of a model."""

    a: Any
    c: ForwardRef("int") | None = None  # type: ignore[valid-type]


class Later(NamedTuple):
    """The second version of a tuple."""

    a: Any


class Newer(msgspec.Struct):
    """The second version of a struct."""

    a: Any


class Shade(enum.Enum):
    """The second version of an enum."""

    DARK = 0


class Weight:
    """The second version of a class with a pair of functions."""

    def __init__(self, grams: Any) -> None:
        self.grams = grams
