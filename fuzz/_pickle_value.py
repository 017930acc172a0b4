# SPDX-License-Identifier: Apache-2.0
"""Looking at what was loaded from a pickle: its types, and whether two values are the same."""

import argparse
import datetime as dt
import math
import pathlib
import types
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from fuzz._claim import Escape
from sealpoint_models.scan import Inert

__all__ = ["check_types", "same"]

_LEAVES = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, bytearray, range, slice),
        *(dt.datetime, dt.date, dt.time, dt.timedelta, dt.timezone, Decimal, Fraction),
        *(uuid.UUID, uuid.SafeUUID, pathlib.PosixPath, pathlib.PurePosixPath),
        *(pathlib.PureWindowsPath, torch.Tensor, torch.nn.Parameter, torch.Size, torch.dtype),
        *(torch.device, torch.layout, torch.qscheme, torch.UntypedStorage),
        torch.storage.TypedStorage,
    }
)
_LISTS = frozenset({list, tuple, set, frozenset, deque})
_DICTS = frozenset({dict, OrderedDict, Counter, defaultdict})
_NAMESPACES = frozenset({argparse.Namespace, types.SimpleNamespace})


def check_types(value: Any, features: set[Any], *, may_be_inert: bool) -> None:
    """Go over all of a value, and keep which types are in which.

    Raises:
        Escape: Something is of a type that no reader may make.
    """
    todo = [value]
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        held = list(_held(each, may_be_inert=may_be_inert))
        features.update((type(each).__name__, type(inner).__name__) for inner in held[:50])
        todo += held


def _held(value: Any, *, may_be_inert: bool) -> Any:
    kind = type(value)
    if kind in _LISTS:
        return value
    if kind in _DICTS:
        attributes = vars(value).values() if kind is OrderedDict else ()
        return (*value, *value.values(), *attributes)
    if kind in _NAMESPACES:
        return vars(value).values()
    if kind is np.ndarray:
        return value.reshape(-1).tolist() if value.dtype.hasobject else ()
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return vars(value).values()
    if kind is Inert and may_be_inert:
        pairs = [part for pair in value.pairs for part in pair]
        return (*value.arguments, value.keywords, value.state, *value.items, *pairs)
    if kind in _LEAVES or isinstance(value, np.generic | np.dtype):
        return ()
    raise Escape(f"load returned a {kind.__name__}")


def same(first: Any, second: Any) -> bool:
    """Whether two values of plain types are equal, of the same types, also inside of themselves."""
    todo = [(first, second)]
    seen: set[tuple[int, int]] = set()
    while todo:
        a, b = todo.pop()
        if (id(a), id(b)) in seen:
            continue
        seen.add((id(a), id(b)))
        if type(a) is not type(b):
            return False
        if isinstance(a, list | tuple):
            if len(a) != len(b):
                return False
            todo += zip(a, b, strict=True)
        elif isinstance(a, dict):
            if len(a) != len(b):
                return False
            todo += zip(a, b, strict=True)
            todo += zip(a.values(), b.values(), strict=True)
        elif isinstance(a, float):
            if a != b and not (math.isnan(a) and math.isnan(b)):
                return False
        elif isinstance(a, set | frozenset):
            if len(a) != len(b):  # a NaN is no member of another set
                return False
        elif a != b:
            return False
    return True
