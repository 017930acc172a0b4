# SPDX-License-Identifier: Apache-2.0
"""The values that may be dict keys or set members.

Putting an object into a hash table calls its `__hash__` and `__eq__`. For the built-in types these
are Python's own; for an application type they are application code unless a decorator generated
them, and data must not decide to run application code. Many of Python's own hashes are also
predictable, so that a few kilobytes of chosen keys can keep a process busy for minutes: equal
hashes are counted before any table is built.
"""

import inspect
import ipaddress
import operator
import types
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sealpoint.codec._hash_probes import dict_is_slow, set_is_slow
from sealpoint.limits import Limits

# The hashes of these types are either keyed per process or cannot be chosen to collide.
_UNPREDICTABLE = frozenset({str, bytes, bool, types.NoneType})

# Types whose hash and equality are Python's own and read nothing else.
_ATOMS = _UNPREDICTABLE | {
    *(int, float, complex, memoryview, Decimal, UUID, range),
    *(datetime, date, time, timedelta, timezone, ZoneInfo),
    *(PurePosixPath, PureWindowsPath, PosixPath, WindowsPath),
    *(ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv4Interface),
    *(ipaddress.IPv6Address, ipaddress.IPv6Network, ipaddress.IPv6Interface),
}
# Members of a frozenset were checked when it was built or packed.
_CHECKED = _ATOMS | {frozenset}
_NESTED = {tuple: iter, slice: lambda value: (value.start, value.stop, value.step)}

# The square of this many probes is still cheap; larger tables are simulated first.
_UNPROBED_KEYS = 1024

_GENERATED_FILES = ("<string>", "<attrs generated")
_GENERATED_MODULES = ("pydantic._internal.", "enum", "msgspec")


def is_plain_key(key: object) -> bool:
    """Whether a plain map can hold this key: exactly a string, and one that UTF-8 can hold."""
    return type(key) is str and (
        key.isascii() or not any("\ud800" <= char <= "\udfff" for char in key)
    )


def generated_hash(cls: type, fields: Iterable[str] = ()) -> bool:
    """Whether hashing and comparing a `cls` runs no code that the application wrote.

    A generated hash reads the fields, so no application code may intercept that.
    """
    reads: object = cls.__getattribute__
    hashes: object = cls.__hash__
    if hashes is None or not isinstance(reads, types.WrapperDescriptorType):
        return False
    for name in fields:
        found = inspect.getattr_static(cls, name, None)
        if hasattr(type(found), "__get__") and not isinstance(found, types.MemberDescriptorType):
            return False
    return all(_generated(cls, name) for name in ("__hash__", "__eq__"))


def _generated(cls: type, name: str) -> bool:
    for base in cls.__mro__:
        if name in base.__dict__:
            function = base.__dict__[name]
            if base in (object, tuple, int, str, float, Enum, Flag):
                return True
            if not isinstance(function, types.FunctionType):
                return isinstance(function, types.WrapperDescriptorType)
            return (
                function.__code__.co_filename.startswith(_GENERATED_FILES)
                or function.__module__.startswith(_GENERATED_MODULES)
                or f"{function.__module__}.{function.__qualname__}"
                == f"pydantic.main.BaseModel.{name}"
            )
    return False


def key_fault(keys: Sequence[Any], members: Callable[[Any], Iterable[Any] | None]) -> str | None:
    """Return why hashing these keys would run application code, or None.

    Args:
        keys: The keys or members, before they are hashed.
        members: For a key of any other type (an application's, numpy's, a Fraction): returns the
            parts that its hash reads, or None if hashing it would run application code.
    """
    if _CHECKED.issuperset(map(type, keys)):
        return None
    for key in keys:
        if (fault := _one_key_fault(key, members)) is not None:
            return fault
    return None


def large_int_fault(
    keys: Iterable[Any], members: Callable[[Any], Iterable[Any] | None], limits: Limits
) -> str | None:
    """Return why comparing these keys could cost the square of an int's size, or None."""
    for key in keys:
        kind = type(key)
        if kind is int:
            if key.bit_length() > limits.key_int_bytes_max * 8:
                return (
                    f"dict or set: expected ints of at most {limits.key_int_bytes_max} bytes "
                    "among keys (key_int_bytes_max), found a larger one"
                )
        elif kind not in _CHECKED and kind is not Fraction:
            look = _NESTED.get(kind, members)
            if (fault := large_int_fault(look(key) or (), members, limits)) is not None:
                return fault
    return None


def collision_fault(keys: Sequence[Any], limits: Limits, *, in_set: bool) -> str | None:
    """Return why these keys must not share a table, or None; their hashes must be safe to call."""
    most = limits.colliding_keys_max
    if len(keys) <= most or _UNPREDICTABLE.issuperset(map(type, keys)):
        return None
    hashes = list(map(hash, keys))
    ordered = sorted(hashes)
    if any(map(operator.eq, ordered, ordered[most:])):
        return f"dict or set: expected at most {most} keys of one hash (colliding_keys_max)"
    if len(keys) <= _UNPROBED_KEYS:
        return None
    is_slow = set_is_slow if in_set else dict_is_slow
    if is_slow(hashes, limits.key_probes_max):
        return (
            f"dict or set: expected at most {limits.key_probes_max} probes for each key "
            "(key_probes_max), found hashes that need more"
        )
    return None


def _one_key_fault(key: Any, members: Callable[[Any], Iterable[Any] | None]) -> str | None:
    kind = type(key)
    if kind in _CHECKED:
        return None
    look = _NESTED.get(kind)
    inside = look(key) if look is not None else members(key)
    if inside is None:
        return (
            f"dict or set: expected keys with Python's own hash, found {kind.__qualname__}, which "
            "has none, or whose hash, equality or attributes are application code"
        )
    inside = list(inside)
    if _CHECKED.issuperset(map(type, inside)):
        return None
    for member in inside:
        if (fault := _one_key_fault(member, members)) is not None:
            return fault
    return None
