# SPDX-License-Identifier: Apache-2.0
"""Classes of every kind with fields of one's choice: `(name, annotation)`, and a default if any.

A default that can be called is a default factory.
"""

import collections
import dataclasses
from collections.abc import Callable
from typing import Any, cast

import attrs
import msgspec
import pydantic

__all__ = ["MAKERS", "make_attrs", "make_dataclass", "make_pydantic", "make_struct"]


def make_dataclass(*fields: Any) -> type:
    """A dataclass."""
    return dataclasses.make_dataclass(
        "Thing", [(name, kind, *map(_field, rest)) for name, kind, *rest in fields]
    )


def _field(default: Any) -> Any:
    if callable(default):
        return dataclasses.field(default_factory=default)
    return dataclasses.field(default=default)


def _make_slotted(*fields: Any) -> type:
    return dataclasses.make_dataclass(
        "Thing", [(name, kind, *map(_field, rest)) for name, kind, *rest in fields], slots=True
    )


def make_attrs(*fields: Any) -> type:
    """An attrs class."""
    made = {}
    for name, kind, *rest in fields:
        default = (
            attrs.Factory(rest[0]) if rest and callable(rest[0]) else (rest or [attrs.NOTHING])[0]
        )
        made[name] = attrs.field(type=kind, default=default)
    return attrs.make_class("Thing", made)


def make_pydantic(*fields: Any) -> type:
    """A pydantic model."""

    def info(rest: list[Any]) -> Any:
        if not rest:
            return ...
        return pydantic.Field(default_factory=rest[0]) if callable(rest[0]) else rest[0]

    made: Any = pydantic.create_model
    model: type = made("Thing", **{name: (kind, info(rest)) for name, kind, *rest in fields})
    return model


def make_struct(*fields: Any) -> type:
    """A msgspec struct, whose arguments go by name."""

    def made(name: str, kind: Any, *rest: Any) -> Any:
        if rest and callable(rest[0]):
            return name, kind, msgspec.field(default_factory=rest[0])
        return name, kind, *rest

    return msgspec.defstruct("Thing", [made(*field) for field in fields], kw_only=True)


def _make_named_tuple(*fields: Any) -> type:
    names = {name: kind for name, kind, *_ in fields}
    defaults = [rest[0] for _, _, *rest in fields if rest]
    make: Any = collections.namedtuple  # noqa: PYI024 # the other form has no defaults
    made = make("Thing", names, defaults=defaults)
    made.__annotations__ = names
    return cast("type", made)


MAKERS: dict[str, Callable[..., type]] = {
    "dataclass": make_dataclass,
    "slots": _make_slotted,
    "attrs": make_attrs,
    "pydantic": make_pydantic,
    "struct": make_struct,
    "namedtuple": _make_named_tuple,
}
