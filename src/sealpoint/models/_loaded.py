# SPDX-License-Identifier: Apache-2.0
"""A last look at what torch built: exactly the types that were judged, and sparse indices in range.

The pickle was judged before, so this finds nothing unless torch builds something else than it says.
It trusts no subclass: a tensor is exactly `torch.Tensor` or `torch.nn.Parameter`, without
attributes, and a container is exactly the built-in one.
"""

from collections import Counter, OrderedDict
from typing import Any

from sealpoint.errors import ModelMalformed
from sealpoint.models._sparse import check_sparse

__all__ = ["check_loaded"]

_PLAIN = {type(None), bool, int, float, complex, str, bytes, bytearray}
_MAPPINGS = {dict, OrderedDict, Counter}
_SEQUENCES = {list, tuple, set}


def check_loaded(torch: Any, value: Any, what: str) -> None:
    """Check a value that torch loaded, all of it.

    Raises:
        ModelMalformed: It holds something of another type than was judged.
        SparseInvalid: Indices of a sparse tensor are wrong.
    """
    leaves = _PLAIN | {torch.Size, torch.device, torch.dtype, torch.layout, torch.qscheme}
    tensors = {torch.Tensor, torch.nn.Parameter}
    todo: list[Any] = [value]
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind in leaves or id(value) in seen:
            continue
        seen.add(id(value))
        if kind in tensors:
            _check_tensor(torch, value, what)
        elif kind in _SEQUENCES:
            todo += value
        elif kind in _MAPPINGS:
            todo += value.keys()
            todo += value.values()
            if kind is not dict:
                _check_attributes(value, {"_metadata"} if kind is OrderedDict else set(), what)
                todo += vars(value).values()
        else:
            raise ModelMalformed(
                f"{what}: expected torch to build tensors and plain data, found {kind.__name__}"
            )


def _check_tensor(torch: Any, tensor: Any, what: str) -> None:
    _check_attributes(tensor, set(), what)
    if tensor.is_nested or tensor.grad_fn is not None:
        raise ModelMalformed(f"{what}: expected plain tensors, found a nested or computed one")
    if tensor.layout is not torch.strided and not tensor.is_meta:
        check_sparse(torch, tensor, what)


def _check_attributes(value: Any, known: set[str], what: str) -> None:
    if not known.issuperset(vars(value)):
        raise ModelMalformed(
            f"{what}: expected no attributes on what torch builds, "
            f"found some on {type(value).__name__}"
        )
