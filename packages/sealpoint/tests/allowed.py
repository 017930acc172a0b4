# SPDX-License-Identifier: Apache-2.0
"""Looking through a decoded value for anything that the registry does not allow."""

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from typing import Any

import attrs
import msgspec
import pydantic

from sealpoint import Registry
from sealpoint.codec import BUILTINS, PLAIN_REASONS
from tests.arrays import ARRAYS, np, torch

_BUILT_IN = {kind for builtin in BUILTINS for kind in builtin.types} | set(PLAIN_REASONS)
_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, set, frozenset, deque)


def _inside(value: Any) -> Iterable[Any]:
    kind = type(value)
    if kind in _MAPPINGS:
        yield from value
        yield from value.values()
    elif kind in _SEQUENCES or isinstance(value, tuple):
        yield from value
    elif kind is slice:
        yield from (value.start, value.stop, value.step)
    elif isinstance(value, pydantic.BaseModel):
        yield from value.__dict__.values()
        yield value.__pydantic_extra__
        yield value.__pydantic_private__
    elif isinstance(value, msgspec.Struct):
        yield from (getattr(value, name, None) for name in value.__struct_fields__)
    elif attrs.has(kind):
        yield from (getattr(value, each.name, None) for each in attrs.fields(kind))
    elif dataclasses.is_dataclass(value):
        yield from (getattr(value, each.name, None) for each in dataclasses.fields(value))


def foreign_types(value: Any, registry: Registry) -> set[type]:
    """Collect the types in a value that are neither built in nor allowed by a rule."""
    allowed = _BUILT_IN | {rule.cls for rule in registry.rules}
    if ARRAYS:
        allowed |= {np.ndarray, torch.Tensor}
    foreign: set[type] = set()
    waiting = [value]
    while waiting:
        found = waiting.pop()
        kind = type(found)
        if kind not in allowed and not (ARRAYS and issubclass(kind, np.generic)):
            foreign.add(kind)
            continue
        waiting.extend(_inside(found))
    return foreign
