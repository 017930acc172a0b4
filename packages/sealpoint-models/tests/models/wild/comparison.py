# SPDX-License-Identifier: Apache-2.0
"""What we read of a file beside what those read who trust it: the same, value by value.

An `Inert` is held against what pickle itself would write of the object: the same name, and the same
arguments, state and items, each compared in turn.
"""

import argparse
import copyreg
import types
from collections import deque
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from torch.torch_version import TorchVersion

from sealpoint_models import Inert
from sealpoint_models._state_flattening import path_text
from tests.sameness import same
from tests.training import same_state

Path = tuple[Any, ...]

_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_OLD_NAMES = {"builtins.long": "builtins.int"}
"""What protocols before 3 write for names of today, as far as the files have them."""


class Comparison:
    """Compares two values, and says where they differ."""

    def __init__(self, left_out: Collection[str] = ()) -> None:
        self._left_out = left_out
        self._seen: set[tuple[int, int]] = set()
        self._kept: list[Any] = []
        """What was made for the comparison: others must not get its identity."""
        self.tensors = 0

    def difference(self, ours: Any, theirs: Any, path: Path = ()) -> str | None:
        """Where they differ first; None: they are the same."""
        if (id(ours), id(theirs)) in self._seen:
            return None
        self._seen.add((id(ours), id(theirs)))
        self._kept += (ours, theirs)
        if isinstance(ours, Inert):
            return self._inert(ours, theirs, path)
        if type(theirs) is TorchVersion and ours == str(theirs):
            return None
        if isinstance(ours, torch.UntypedStorage):  # torch makes one of bytes of it
            held: Any = ours
            return None if held.tolist() == theirs.untyped().tolist() else path_text(path)
        if type(ours) is not type(theirs):
            return f"{path_text(path)}: {type(ours)} and {type(theirs)}"
        if isinstance(ours, argparse.Namespace | types.SimpleNamespace):
            return self.difference(vars(ours), vars(theirs), path)
        if isinstance(ours, dict):
            return self._dicts(ours, theirs, path)
        if isinstance(ours, list | tuple | deque) and type(ours) is not torch.Size:
            return self._members(list(ours), list(theirs), path)
        if isinstance(ours, np.ndarray) and ours.dtype == object:
            return self._members(list(ours.flat), list(theirs.flat), path)
        return None if self._leaf(ours, theirs) else path_text(path)

    def _leaf(self, ours: Any, theirs: Any) -> bool:
        self.tensors += isinstance(ours, torch.Tensor | np.ndarray)
        if isinstance(ours, torch.Tensor):
            if vars(ours) != vars(theirs):
                return False
            if ours.is_meta:
                return (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            return same_state(ours, theirs)
        return same(ours, theirs)

    def _members(self, ours: list[Any], theirs: list[Any], path: Path) -> str | None:
        if len(ours) != len(theirs):
            return f"{path_text(path)}: {len(ours)} and {len(theirs)} members"
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if one is None and path_text((*path, place)) in self._left_out:
                continue
            if (found := self.difference(one, other, (*path, place))) is not None:
                return found
        return None

    def _dicts(self, ours: Any, theirs: Any, path: Path) -> str | None:
        keys = [key for key in theirs if path_text((*path, key)) not in self._left_out]
        if (found := self._members(list(ours), keys, path)) is not None:
            return found
        for key, other in zip(ours, keys, strict=True):
            found = self.difference(ours[key], theirs[other], (*path, other))
            if found is not None:
                return found
        kept, held = (getattr(each, "_metadata", None) for each in (ours, theirs))
        return self.difference(kept, held, (*path, "_metadata"))

    def _inert(self, ours: Inert, theirs: Any, path: Path) -> str | None:
        if ours.made == "name":
            return None if _is_named(ours.type, theirs) else f"{path_text(path)}: {ours.type}"
        reduce = copyreg.dispatch_table.get(type(theirs))
        reduced: Any = theirs.__reduce_ex__(2) if reduce is None else reduce(theirs)
        function, arguments, *rest = reduced
        state, items, pairs = (*rest, None, None, None)[:3]
        if getattr(function, "__name__", "") == "__newobj__":
            function, *arguments = arguments
        if not _is_named(ours.type, function):
            return f"{path_text(path)}: {ours.type} and {function}"
        parts = {
            "arguments": (ours.arguments, tuple(arguments)),
            "state": (ours.state, state),
            "items": (ours.items, list(items or ())),
            "pairs": (ours.pairs, list(pairs or ())),
        }
        for name, (one, other) in parts.items():
            if (found := self.difference(one, other, (*path, name))) is not None:
                return found
        return None


def _is_named(name: str, value: Any) -> bool:
    module, _, rest = name.partition(".")
    name = f"{_OLD_MODULES.get(module, module)}.{rest}"
    own = getattr(value, "__qualname__", None) or getattr(value, "_name", None)
    return _OLD_NAMES.get(name, name) == f"{value.__module__}.{own}"
