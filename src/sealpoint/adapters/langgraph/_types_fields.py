# SPDX-License-Identifier: Apache-2.0
"""The frameworks' dataclasses, slotted classes and named tuples as plain data.

The form is a map of the fields that differ from their defaults, by name, so that a field that a
framework adds changes nothing about stored objects. Putting together sets fields on a bare object:
no constructor runs. A field that the installed version does not have is refused, never dropped.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from sealpoint.errors import BytesMalformed, ValueNotAllowed, VersionUnknown

__all__ = ["REQUIRED", "Pair", "dataclass_pair", "named_tuple_pair", "slots_pair", "unknown_field"]

Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]
"""The functions that take an object apart and put it together again."""

REQUIRED = object()
"""Stands for the default of a field that has none."""

_SHOWN_CHARS_MAX = 60


def unknown_field(cls: type, name: str) -> VersionUnknown:
    """The error for a stored field that the installed version of a class does not have."""
    shown = repr(name) if name.isidentifier() and len(name) <= _SHOWN_CHARS_MAX else "another"
    package = cls.__module__.partition(".")[0].replace("_", "-")
    return VersionUnknown(
        f"{cls.__qualname__}: expected fields that the installed {package} has, found {shown}",
        hint=f"Install the version of {package} that wrote the checkpoint, or a newer one.",
    )


def dataclass_pair(cls: type) -> Pair:
    """The pair for a dataclass whose fields lie in slots."""
    fields: Any = dataclasses.fields(cls)
    defaults = {
        field.name: REQUIRED if field.default is dataclasses.MISSING else field.default
        for field in fields
    }
    return slots_pair(cls, defaults)


def slots_pair(cls: type, defaults: Mapping[str, Any]) -> Pair:
    """The pair for a class with slots of these names; each has a default, or `REQUIRED`."""
    slots: dict[str, Any] = {name: _slot(cls, name) for name in defaults}

    def take(value: Any) -> dict[str, Any]:
        if getattr(value, "__dict__", None):
            raise ValueNotAllowed("attributes: expected fields only, found attributes of its own")
        try:
            found = {name: slot.__get__(value) for name, slot in slots.items()}
        except AttributeError as exc:
            raise ValueNotAllowed("fields: expected each set, found one unset") from exc
        return _told(found, defaults)

    def build(form: Any) -> Any:
        value: Any = object.__new__(cls)
        for name, item in _filled(cls, form, defaults).items():
            slots[name].__set__(value, item)
        return value

    return take, build


def named_tuple_pair(cls: Any) -> Pair:
    """The pair for a named tuple."""
    given: dict[str, Any] = cls._field_defaults
    defaults = {name: given.get(name, REQUIRED) for name in cls._fields}

    def take(value: Any) -> dict[str, Any]:
        return _told(dict(zip(defaults, value, strict=True)), defaults)

    def build(form: Any) -> Any:
        return tuple.__new__(cls, _filled(cls, form, defaults).values())

    return take, build


def _slot(cls: type, name: str) -> Any:
    for base in cls.__mro__:
        slot = base.__dict__.get(name)
        if hasattr(slot, "__set__"):
            return slot
    raise AttributeError(f"{cls.__qualname__}: no slot {name}")


def _told(found: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something: those whose values are not their defaults."""
    return {name: item for name, item in found.items() if not _is_default(item, defaults[name])}


def _is_default(item: Any, default: Any) -> bool:
    # The defaults of all these classes are None, texts, truth values and the empty tuple; nothing
    # of another type is even compared.
    return item is default or (type(item) is type(default) and item == default)


def _filled(cls: type, form: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """All fields in declared order, from those that were stored."""
    if type(form) is not dict or any(type(name) is not str for name in form):
        raise BytesMalformed("fields: expected a map with names as keys")
    for name in form:
        if name not in defaults:
            raise unknown_field(cls, name)
    filled = {**defaults, **form}
    for name, item in filled.items():
        if item is REQUIRED:
            raise BytesMalformed(f"field {name!r}: expected a value, found none")
    return filled
