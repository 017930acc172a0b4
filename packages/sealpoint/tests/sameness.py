# SPDX-License-Identifier: Apache-2.0
"""When two values are the same: equal, of the same type, all the way down.

Stricter than `==`: types must match exactly, dicts keep their order, a NaN is the same as a NaN
of the same bits, 0.0 is not -0.0, times keep fold and zone, deques their longest length,
defaultdicts their factory, models the set of fields that were given.
"""

import dataclasses
import math
import struct
import uuid
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from datetime import datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
import pydantic_core

from tests.application import Money
from tests.arrays import ARRAYS, np, torch

_UNSET = object()


def same(a: Any, b: Any) -> bool:
    """Tell whether two values are the same."""
    if type(a) is not type(b):
        return False
    compare = _COMPARISONS.get(type(a))
    if compare is not None:
        return compare(a, b)
    if isinstance(a, Enum):
        return a is b or (a._value_ == b._value_ and a._name_ == b._name_)
    if ARRAYS and isinstance(a, np.generic):
        return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())
    if isinstance(a, tuple):
        return _members(a, b)
    if isinstance(a, pydantic.BaseModel):
        return _models(a, b)
    names = _field_names(a)
    if names is not None:
        return all(same(getattr(a, n, _UNSET), getattr(b, n, _UNSET)) for n in names)
    return bool(a == b)


def _field_names(value: Any) -> list[str] | None:
    if isinstance(value, msgspec.Struct):
        return list(value.__struct_fields__)
    if attrs.has(type(value)):
        return [each.name for each in attrs.fields(type(value))]
    if dataclasses.is_dataclass(value):
        return [each.name for each in dataclasses.fields(value)]
    return None


def _floats(a: float, b: float) -> bool:
    return struct.pack(">d", a) == struct.pack(">d", b) or (math.isnan(a) and math.isnan(b))


def _complex(a: complex, b: complex) -> bool:
    return _floats(a.real, b.real) and _floats(a.imag, b.imag)


def _decimals(a: Decimal, b: Decimal) -> bool:
    return a.as_tuple() == b.as_tuple()


def _zones(a: tzinfo | None, b: tzinfo | None) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, ZoneInfo) and isinstance(b, ZoneInfo):
        return a.key == b.key
    if isinstance(a, timezone) and isinstance(b, timezone):
        return repr(a) == repr(b)
    if isinstance(a, pydantic_core.TzInfo) and b is not None:
        return a.utcoffset(None) == b.utcoffset(None)
    return a is b


def _times(a: datetime | time, b: datetime | time) -> bool:
    bare = a.replace(tzinfo=None) == b.replace(tzinfo=None)
    return bare and a.fold == b.fold and _zones(a.tzinfo, b.tzinfo)


def _members(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def _sets(a: Any, b: Any) -> bool:
    if len(a) != len(b):
        return False
    left = list(b)
    for member in a:
        for place, other in enumerate(left):
            if same(member, other):
                del left[place]
                break
        else:
            return False
    return True


def _maps(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> bool:
    return _members(list(a), list(b)) and _members(list(a.values()), list(b.values()))


def _slices(a: slice, b: slice) -> bool:
    return _members((a.start, a.stop, a.step), (b.start, b.stop, b.step))


def _ranges(a: range, b: range) -> bool:
    return (a.start, a.stop, a.step) == (b.start, b.stop, b.step)


def _arrays(a: Any, b: Any) -> bool:
    like = a.dtype == b.dtype and a.dtype.str == b.dtype.str and a.shape == b.shape
    return bool(like and a.tobytes() == b.tobytes())


def _tensors(a: Any, b: Any) -> bool:
    if (a.dtype, a.shape, a.requires_grad) != (b.dtype, b.shape, b.requires_grad):
        return False
    left, right = (each.detach().contiguous().reshape(-1).view(torch.uint8) for each in (a, b))
    return bool(torch.equal(left, right))


def _models(a: pydantic.BaseModel, b: pydantic.BaseModel) -> bool:
    return (
        _maps(_declared(a), _declared(b))
        and a.__pydantic_fields_set__ == b.__pydantic_fields_set__
        and same(a.__pydantic_extra__, b.__pydantic_extra__)
        and _private(a, b)
    )


def _declared(model: pydantic.BaseModel) -> dict[str, Any]:
    return {name: model.__dict__[name] for name in type(model).model_fields}


def _private(a: pydantic.BaseModel, b: pydantic.BaseModel) -> bool:
    left, right = a.__pydantic_private__, b.__pydantic_private__
    if left is None or right is None:
        return left is right
    return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)


_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    float: _floats,
    complex: _complex,
    Decimal: _decimals,
    datetime: _times,
    time: _times,
    timedelta: lambda a, b: a == b,
    timezone: _zones,
    ZoneInfo: _zones,
    uuid.UUID: lambda a, b: a == b,
    list: _members,
    tuple: _members,
    deque: lambda a, b: a.maxlen == b.maxlen and _members(a, b),
    set: _sets,
    frozenset: _sets,
    dict: _maps,
    OrderedDict: _maps,
    defaultdict: lambda a, b: a.default_factory is b.default_factory and _maps(a, b),
    slice: _slices,
    range: _ranges,
    Money: lambda a, b: same(a.cents, b.cents) and same(a.note, b.note),
}
if ARRAYS:
    _COMPARISONS |= {np.ndarray: _arrays, torch.Tensor: _tensors}
