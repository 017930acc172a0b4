# SPDX-License-Identifier: Apache-2.0
"""The defaults of fields, as far as they are data of the class.

A value that was stored before a field was added gets the field's default. A default is an object
that the class holds; a default factory is code. Those that Python itself brings and that always
give the same (`list`, `dict` and the like) are called. An application's own factory is called only
where the rule lets the application's code run (`validate=True`): it may give another result at
every load (an id, the time), and what people approved would not be what runs. What the class's own
code would still change (a converter, a validator of defaults, `__post_init__` for a field that no
argument sets) is no default either: the object would not be one that the class makes.

Stored data can leave a field out, and can do nothing else here: which object or factory that means
is said by the class.
"""

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from sealpoint.codec._containers import FACTORIES

__all__ = [
    "Defaults",
    "attrs_defaults",
    "dataclass_defaults",
    "named_tuple_defaults",
    "pydantic_defaults",
    "struct_defaults",
]

Default = Callable[[], Any]
Defaults = dict[str, Default]
"""For each field that has one, what gives its default."""

_SAFE_FACTORIES = frozenset(factory for factory in FACTORIES.values() if factory is not None)


def _held(value: Any) -> Default:
    return lambda: value


def _may_call(factory: Any, *, validate: bool) -> bool:
    # Looked up by identity of the class itself: a factory's own equality does not run.
    return validate or any(factory is each for each in _SAFE_FACTORIES)


def dataclass_defaults(cls: Any, *, validate: bool) -> Defaults:
    """Those of a dataclass."""

    def found() -> Iterator[tuple[str, Default]]:
        for field in dataclasses.fields(cls):
            if not field.init and hasattr(cls, "__post_init__"):
                continue
            if field.default is not dataclasses.MISSING:
                yield field.name, _held(field.default)
            elif field.default_factory is not dataclasses.MISSING and _may_call(
                field.default_factory, validate=validate
            ):
                yield field.name, field.default_factory

    return dict(found())


def attrs_defaults(cls: Any, *, validate: bool) -> Defaults:
    """Those of an attrs class; a factory that takes the object needs one that is built already."""
    # attrs is not imported here: the class that was given brought it. Its mark for "no default"
    # is an enum member, and a factory is known by what it consists of.
    found: Defaults = {}
    for each in cls.__attrs_attrs__:
        default = each.default
        if each.converter is not None or (not each.init and hasattr(cls, "__attrs_post_init__")):
            continue
        if type(default).__module__.partition(".")[0] != "attr":
            found[each.name] = _held(default)
        elif (
            type(default).__name__ == "Factory"
            and not default.takes_self
            and _may_call(default.factory, validate=validate)
        ):
            found[each.name] = default.factory
    return found


def named_tuple_defaults(cls: Any) -> Defaults:
    """Those of a named tuple."""
    return {name: _held(value) for name, value in cls._field_defaults.items()}


def pydantic_defaults(cls: Any, *, validate: bool) -> Defaults:
    """Those of a pydantic model; as in pydantic, objects share no list, dict or set of it."""
    found: Defaults = {}
    validated = cls.model_config.get("validate_default")
    for name, field in cls.model_fields.items():
        if field.is_required() or (
            validated if field.validate_default is None else field.validate_default
        ):
            continue
        factory = field.default_factory
        if factory is None:
            found[name] = partial(_copied, field.default)
        elif not getattr(field, "default_factory_takes_validated_data", False) and _may_call(
            factory, validate=validate
        ):
            found[name] = factory
    return found


def _copied(value: Any) -> Any:
    """A copy of plain containers; no code of what they hold runs, not even a hash."""
    kind = type(value)
    if kind is list:
        return [_copied(each) for each in value]
    if kind is tuple:
        return tuple(map(_copied, value))
    if kind is dict and all(type(key) is str for key in value):
        return {key: _copied(each) for key, each in value.items()}
    return value.copy() if kind in (dict, set) else value


def struct_defaults(cls: Any, *, validate: bool) -> Defaults:
    """Those of a msgspec struct."""
    found: Defaults = {}
    for field in msgspec.structs.fields(cls):
        if field.default is not msgspec.NODEFAULT:
            found[field.name] = _held(field.default)
        elif field.default_factory is not msgspec.NODEFAULT and _may_call(
            field.default_factory, validate=validate
        ):
            found[field.name] = field.default_factory
    return found
