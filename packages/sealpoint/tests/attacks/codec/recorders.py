# SPDX-License-Identifier: Apache-2.0
"""Application types of every kind whose own code writes down that it ran."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import attrs
import msgspec
import pydantic

CALLS: list[str] = []
"""What ran, in order."""


def _note(what: str) -> None:
    CALLS.append(what)


def _validate(_: Any, __: Any, ___: Any) -> None:
    _note("validator")


def _convert(value: Any) -> Any:
    _note("converter")
    return value


class _Noisy:
    """A mixin with every hook that loading could touch."""

    __slots__ = ()

    def __init_subclass__(cls, **_: Any) -> None:
        _note("__init_subclass__")

    def __setattr__(self, name: str, value: Any) -> None:
        _note("__setattr__")
        object.__setattr__(self, name, value)

    def __getattribute__(self, name: str) -> Any:
        _note(f"__getattribute__ {name}")
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        _note("__getattr__")
        raise AttributeError(name)

    def __delattr__(self, name: str) -> None:
        _note("__delattr__")

    def __setstate__(self, state: Any) -> None:
        _note("__setstate__")

    def __copy__(self) -> Any:
        _note("__copy__")
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        _note("__deepcopy__")
        return self

    def __eq__(self, other: object) -> bool:
        _note("__eq__")
        return self is other

    def __hash__(self) -> int:
        _note("__hash__")
        return 1

    def __bool__(self) -> bool:
        _note("__bool__")
        return True

    def __len__(self) -> int:
        _note("__len__")
        return 1

    def __repr__(self) -> str:
        _note("__repr__")
        return "noisy"

    def __str__(self) -> str:
        _note("__str__")
        return "noisy"

    def __index__(self) -> int:
        _note("__index__")
        return 1

    def __call__(self) -> None:
        _note("__call__")


@dataclass(eq=False)
class NoisyDataclass(_Noisy):
    """A dataclass."""

    x: Any
    y: Any = 0

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Note that it ran."""
        _note("__new__")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        _note("__post_init__")


@dataclass(eq=False, slots=True)
class NoisySlots(_Noisy):
    """A dataclass with slots."""

    x: Any

    def __post_init__(self) -> None:
        _note("__post_init__")


@attrs.define(eq=False)
class NoisyAttrs(_Noisy):
    """An attrs class."""

    x: Any = attrs.field(validator=_validate, converter=_convert)

    def __attrs_pre_init__(self) -> None:
        _note("__attrs_pre_init__")

    def __attrs_post_init__(self) -> None:
        _note("__attrs_post_init__")


class NoisyModel(pydantic.BaseModel):
    """A pydantic model."""

    x: Any
    _kept: Any = pydantic.PrivateAttr(default_factory=lambda: _note("private factory"))

    @pydantic.field_validator("x")
    @classmethod
    def _field(cls, value: Any) -> Any:
        _note("field validator")
        return value

    @pydantic.model_validator(mode="before")
    @classmethod
    def _before(cls, value: Any) -> Any:
        _note("model validator")
        return value

    @pydantic.model_validator(mode="after")
    def _after(self) -> "NoisyModel":
        _note("model validator")
        return self

    def __init__(self, **fields: Any) -> None:
        _note("__init__")
        super().__init__(**fields)

    def model_post_init(self, context: Any, /) -> None:
        """Note that it ran."""
        _note("model_post_init")
        super().model_post_init(context)

    def __setattr__(self, name: str, value: Any) -> None:
        _note("__setattr__")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        _note("__eq__")
        return self is other

    def __hash__(self) -> int:
        _note("__hash__")
        return 1


class NoisyStruct(msgspec.Struct):
    """A msgspec struct."""

    x: Any

    def __post_init__(self) -> None:
        _note("__post_init__")

    def __eq__(self, other: object) -> bool:
        _note("__eq__")
        return self is other

    def __hash__(self) -> int:
        _note("__hash__")
        return 1


class _NoisyBase(NamedTuple):
    x: Any


class NoisyTuple(_NoisyBase):
    """A named tuple with a constructor of its own."""

    __slots__ = ()

    def __new__(cls, x: Any) -> Self:
        """Note that it ran."""
        _note("__new__")
        return super().__new__(cls, x)

    def __eq__(self, other: object) -> bool:
        _note("__eq__")
        return self is other

    def __hash__(self) -> int:
        _note("__hash__")
        return 1


class NoisyEnum(enum.Enum):
    """An enum."""

    A = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:  # noqa: ARG003
        _note("_missing_")
        return cls.A

    def __eq__(self, other: object) -> bool:
        _note("__eq__")
        return self is other

    def __hash__(self) -> int:
        _note("__hash__")
        return 1


class NoisyFlag(enum.Flag):
    """A flag."""

    A = 1
    B = 2

    @classmethod
    def _missing_(cls, value: object) -> Any:  # noqa: ARG003
        _note("_missing_")
        return cls.A


MAKERS: dict[type, Callable[[], Any]] = {
    NoisyDataclass: lambda: NoisyDataclass(1, [2]),
    NoisySlots: lambda: NoisySlots(1),
    NoisyAttrs: lambda: NoisyAttrs(1),
    NoisyModel: lambda: NoisyModel(x=1),
    NoisyStruct: lambda: NoisyStruct(1),
    NoisyTuple: lambda: NoisyTuple(1),
    NoisyEnum: lambda: NoisyEnum.A,
    NoisyFlag: lambda: NoisyFlag.A | NoisyFlag.B,
}
"""How to make one of each."""
