# SPDX-License-Identifier: Apache-2.0
"""The defaults of fields that were added to a class after a value of it was stored.

A value that was stored before a field was added gets the field's default, if the default is plain
data of the class. Two loaded objects never share anything mutable, neither with each other nor with
the class: otherwise, a run that changes its own limits would change those of every other thread. So
a default is an immutable value of a type that Python provides, or a list, dict, set or tuple of
such values, copied when the rule is made and again at every load. An object of any other type is
not used as a default: copying it would run its own code.

A default factory is code. Those that Python itself provides and that always return the same
(`list`, `dict` and similar) are called. An application's own factory may return another result at
every load (an id, the time), and then people would approve something other than what runs.

If the rule lets the application's code run (`validate=True`), its factories are called and other
objects are copied by `copy.deepcopy`. A default that the class's own code would still change (a
converter, a validator of defaults, `__post_init__` for a field that no argument sets) is not used
either: the class would not make such an object.

Stored data can omit a field, and can do nothing else here: the class determines the default object
or factory.
"""

import copy
import dataclasses
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from sealpoint.codec._containers import FACTORIES

Default = Callable[[], Any]
Defaults = dict[str, Default]
"""For each field with a default, the function that returns it."""

_SAFE_FACTORIES = frozenset(factory for factory in FACTORIES.values() if factory is not None)
_ZONES = frozenset({type(None), timezone, ZoneInfo})
# IP networks and interfaces are excluded: their addresses are attributes that can be set.
_IMMUTABLE = _ZONES | {
    *(bool, int, float, complex, str, bytes, Decimal, Fraction, UUID, range),
    *(date, timedelta, IPv4Address, IPv6Address),
    *(PurePosixPath, PureWindowsPath, PosixPath, WindowsPath),
}


def _is_immutable(value: Any) -> bool:
    """Whether many objects can share a value; checking this runs none of its code."""
    kind = type(value)
    if kind in (tuple, frozenset):
        return all(map(_is_immutable, value))
    if kind in (datetime, time):
        return type(value.tzinfo) in _ZONES
    return kind in _IMMUTABLE or issubclass(kind, Enum)


def _plain(value: Any, met: set[int]) -> Default | None:
    """Return a function that makes a new value with this content, or None if it is not plain.

    It uses the current content. A load runs no code of the values inside containers, not even a
    hash.

    Args:
        value: The value.
        met: The ids of the containers met so far; a container that occurs twice is not plain.
    """
    if _is_immutable(value):
        return lambda: value
    if type(value) not in (list, tuple, dict, set) or id(value) in met:
        return None
    met.add(id(value))
    if type(value) is dict:
        return _plain_dict(value, met)
    if type(value) is set:
        return value.copy().copy if all(map(_is_immutable, value)) else None
    make, parts = type(value), [_plain(each, met) for each in value]
    return None if None in parts else lambda: make(part() for part in parts if part)


def _plain_dict(value: dict[Any, Any], met: set[int]) -> Default | None:
    if not all(map(_is_immutable, value)):
        return None
    if all(map(_is_immutable, value.values())):
        return value.copy().copy
    if not _IMMUTABLE.issuperset(map(type, value)):
        return None
    parts = {key: _plain(each, met) for key, each in value.items()}
    if None in parts.values():
        return None
    return lambda: {key: part() for key, part in parts.items() if part}


def _held(value: Any, *, validate: bool) -> Default | None:
    """Return a function for a default that the class holds, or None if it cannot be used."""
    plain = _plain(value, set())
    if plain is not None or not validate:
        return plain

    def copied() -> Any:
        return copy.deepcopy(value)

    copied.__qualname__ = f"copy of the default {type(value).__qualname__}"
    return copied


def _called(factory: Any, *, validate: bool) -> Default | None:
    """Return the factory, if it may be called."""
    # Compare by identity, so that a factory's own equality does not run.
    return factory if validate or any(factory is each for each in _SAFE_FACTORIES) else None


def _those(found: dict[str, Default | None]) -> Defaults:
    return {name: default for name, default in found.items() if default is not None}


def dataclass_defaults(cls: Any, *, validate: bool) -> Defaults:
    """Return the defaults of a dataclass."""
    found: dict[str, Default | None] = {}
    for field in dataclasses.fields(cls):
        if not field.init and hasattr(cls, "__post_init__"):
            continue
        if field.default is not dataclasses.MISSING:
            found[field.name] = _held(field.default, validate=validate)
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = _called(field.default_factory, validate=validate)
    return _those(found)


def attrs_defaults(cls: Any, *, validate: bool) -> Defaults:
    """Return the defaults of an attrs class; a factory that takes the object is not used."""
    # This does not import attrs, which the given class has imported. The marker for "no default" is
    # an enum member, and a factory is recognized by its structure.
    found: dict[str, Default | None] = {}
    for each in cls.__attrs_attrs__:
        default = each.default
        if each.converter is not None or (not each.init and hasattr(cls, "__attrs_post_init__")):
            continue
        if type(default).__module__.partition(".")[0] != "attr":
            found[each.name] = _held(default, validate=validate)
        elif type(default).__name__ == "Factory" and not default.takes_self:
            found[each.name] = _called(default.factory, validate=validate)
    return _those(found)


def named_tuple_defaults(cls: Any, *, validate: bool) -> Defaults:
    """Return the defaults of a named tuple."""
    found = {name: _held(value, validate=validate) for name, value in cls._field_defaults.items()}
    return _those(found)


def pydantic_defaults(cls: Any, *, validate: bool) -> Defaults:
    """Return the defaults of a pydantic model."""
    found: dict[str, Default | None] = {}
    validated = cls.model_config.get("validate_default")
    for name, field in cls.model_fields.items():
        if field.is_required() or (
            validated if field.validate_default is None else field.validate_default
        ):
            continue
        factory = field.default_factory
        if factory is None:
            found[name] = _held(field.default, validate=validate)
        elif not getattr(field, "default_factory_takes_validated_data", False):
            found[name] = _called(factory, validate=validate)
    return _those(found)


def struct_defaults(cls: Any, *, validate: bool) -> Defaults:
    """Return the defaults of a msgspec struct."""
    found: dict[str, Default | None] = {}
    for field in msgspec.structs.fields(cls):
        if field.default is not msgspec.NODEFAULT:
            found[field.name] = _held(field.default, validate=validate)
        elif field.default_factory is not msgspec.NODEFAULT:
            found[field.name] = _called(field.default_factory, validate=validate)
    return _those(found)
