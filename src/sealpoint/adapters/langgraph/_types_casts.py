# SPDX-License-Identifier: Apache-2.0
"""Casts of messages, so that a long chat is not taken apart and put together in every turn.

A cast is taken of a message whose fields are scalars and small plain containers. It fits as long
as each scalar is the very same object, and each container is of its type and would be written as
before.
"""

from functools import lru_cache
from operator import is_, itemgetter
from typing import Any

from ormsgpack import MsgpackEncodeError, packb, unpackb
from pydantic import BaseModel

from sealpoint.adapters.langgraph._types_models import (
    set_extra,
    set_fields,
    set_given,
    set_private,
)
from sealpoint.codec import Cast

__all__ = ["message_cast"]

_SCALARS = frozenset({type(None), bool, int, float, str})
_PACKED_BYTES_MAX = 1024
_DEPTH_MAX = 8
_PLANS_MAX = 256


class _Plan:
    """Which fields of a message hold what; many messages share one."""

    __slots__ = ("count", "empty", "empty_of", "full", "full_of", "kinds", "scalars_of")

    def __init__(
        self,
        scalars: tuple[str, ...],
        empty: tuple[tuple[str, type], ...],
        full: tuple[str, ...],
    ) -> None:
        self.count = len(scalars) + len(empty) + len(full)
        self.empty = empty
        self.full = full
        self.kinds = [kind for _, kind in empty]
        self.scalars_of = _getter(scalars)
        self.empty_of = _getter(tuple(name for name, _ in empty))
        self.full_of = _getter(full)


class _MessageCast:
    """What a message said when it was saved."""

    __slots__ = ("_cls", "_extra", "_fields", "_given", "_packed", "_plan", "_scalars")

    def __init__(self, value: BaseModel, plan: _Plan, packed: bytes) -> None:
        self._cls = type(value)
        self._plan = plan
        self._fields = dict(value.__dict__)
        self._scalars = plan.scalars_of(self._fields)
        self._packed = packed
        self._given = frozenset(value.__pydantic_fields_set__)
        self._extra = value.__pydantic_extra__ is not None

    def fits(self, value: Any) -> bool:
        fields, plan = value.__dict__, self._plan
        try:
            same = all(map(is_, plan.scalars_of(fields), self._scalars))
            empty = plan.empty_of(fields)
            full = plan.full_of(fields) if plan.full else ()
        except KeyError:
            return False  # a field was removed
        return (
            same
            and len(fields) == plan.count
            and [*map(type, empty)] == plan.kinds
            and not any(empty)
            and value.__pydantic_fields_set__ == self._given
            and not value.__pydantic_extra__
            and (not full or _packed(full) == self._packed)
        )

    def make(self) -> Any:
        fields, plan = self._fields.copy(), self._plan
        for name, kind in plan.empty:
            fields[name] = kind()
        if plan.full:
            fields.update(zip(plan.full, unpackb(self._packed), strict=True))
        value = object.__new__(self._cls)
        set_fields(value, fields)
        set_extra(value, {} if self._extra else None)
        set_given(value, set(self._given))
        set_private(value, None)
        return value


def message_cast(value: BaseModel) -> Cast | None:
    """Take a cast of a message, or none if its changes could not be told."""
    fields, names = value.__dict__, _names(type(value))
    if tuple(fields) != names or not value.__pydantic_fields_set__.issubset(names):
        return None  # something lies there that is no field, and would not come back
    if value.__pydantic_extra__ != _no_extra(type(value)) or value.__pydantic_private__:
        return None
    scalars: list[str] = []
    empty: list[tuple[str, type]] = []
    full: list[str] = []
    for name, item in fields.items():
        kind = type(item)
        if kind in _SCALARS:
            scalars.append(name)
        elif kind is not dict and kind is not list:
            return None
        elif item:
            full.append(name)
        else:
            empty.append((name, kind))
    plan = _plan(tuple(scalars), tuple(empty), tuple(full))
    packed = _packed(plan.full_of(fields)) if full else b""
    if packed is None or len(packed) > _PACKED_BYTES_MAX:
        return None
    return _MessageCast(value, plan, packed)


@lru_cache(maxsize=_PLANS_MAX)
def _names(cls: type[BaseModel]) -> tuple[str, ...]:
    return tuple(cls.model_fields)


@lru_cache(maxsize=_PLANS_MAX)
def _no_extra(cls: type[BaseModel]) -> dict[str, Any] | None:
    """What a model has that was decoded, if nothing was added to it."""
    return {} if cls.model_config.get("extra") == "allow" else None


_plan = lru_cache(maxsize=_PLANS_MAX)(_Plan)


def _getter(names: tuple[str, ...]) -> Any:
    """What takes some fields out of all, always as a tuple."""
    if not names:
        return lambda _fields: ()
    if len(names) == 1:
        return lambda fields: (fields[names[0]],)
    return itemgetter(*names)


def _packed(containers: tuple[Any, ...]) -> bytes | None:
    """What containers hold; None if that is more than plain values."""
    if not all(map(_is_plain, containers)):
        return None
    try:
        return packb([*containers])
    except (MsgpackEncodeError, ValueError):
        return None


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value holds scalars, and lists and dicts of them with names as keys."""
    kind = type(value)
    if kind is dict:
        members: Any = value.values()
        if any(type(name) is not str for name in value):
            return False
    elif kind is list:
        members = value
    else:
        return kind in _SCALARS
    return depth < _DEPTH_MAX and all(_is_plain(each, depth + 1) for each in members)
