# SPDX-License-Identifier: Apache-2.0
"""What a loaded state is made of, looked at without trusting the reader that made it."""

import argparse
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from fuzz._claim import Escape
from sealpoint.codec import BUILTINS, PLAIN_REASONS
from sealpoint_models import Inert

__all__ = ["Looking", "described"]

_STORED_TIMES = 3
"""A tensor is read, put into its order in memory, and made a quantized one."""
_STORED_BYTES = 4096
_WHOLE_ELEMENTS_MAX = 1 << 16
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
"""For each width, a type whose elements are copied as they are."""
_LEAVES = (torch.Size, torch.dtype, torch.device)
_SEQUENCES = (list, tuple, deque)
_MAPPINGS = (dict, OrderedDict, defaultdict, Counter)
_NAMESPACES = (argparse.Namespace, SimpleNamespace)


def _pairs(value: Any) -> Iterable[Any]:
    return [*value.keys(), *value.values(), getattr(value, "_metadata", None)]


def _inert_parts(value: Inert) -> tuple[Any, ...]:
    parts = value.arguments, value.keywords, value.state, value.items, value.pairs
    return (value.type, value.made, *parts)


def _member_table() -> dict[type, Callable[[Any], Iterable[Any]]]:
    """For every allowed type, how to look into it."""
    table: dict[type, Callable[[Any], Iterable[Any]]] = dict.fromkeys(PLAIN_REASONS, lambda _: ())
    for builtin in BUILTINS:
        table.update(dict.fromkeys(builtin.types, lambda _: ()))
    table.update(dict.fromkeys(_LEAVES, lambda _: ()))
    table.update(dict.fromkeys((*_SEQUENCES, set, frozenset), iter))
    table.update(dict.fromkeys(_MAPPINGS, _pairs))
    table.update(dict.fromkeys(_NAMESPACES, lambda value: [*vars(value), *vars(value).values()]))
    table[Inert] = _inert_parts
    table[slice] = lambda value: (value.start, value.stop, value.step)
    for missing in (bytearray, memoryview):
        del table[missing]
    return table


_MEMBERS = _member_table()


class Looking:
    """One look at a value.

    Args:
        size: How long the file is that it came from.
        features: Where to say what was seen.
    """

    def __init__(self, size: int, features: set[Any]) -> None:
        self._size = size
        self._features = features
        self._storages: dict[int, int] = {}
        self.elsewhere = False
        """Some tensor has no elements here."""

    def check(self, value: Any) -> None:
        """Look at all of it.

        Raises:
            Escape: There is something in it that must not be.
        """
        waiting = [(type(None), value)]
        while waiting:
            parent, found = waiting.pop()
            kind = type(found)
            self._features.add((parent, kind))
            look = _MEMBERS.get(kind)
            if look is not None:
                waiting += [(kind, member) for member in look(found)]
            elif kind in (torch.Tensor, torch.nn.Parameter):
                self._check_tensor(found)
            elif kind is np.ndarray:
                self._check_array(found)
            elif not issubclass(kind, np.generic):
                raise Escape(f"load returned a {kind.__qualname__}", f"inside {parent.__name__}")
        stored = sum(self._storages.values())
        if stored > _STORED_TIMES * self._size + _STORED_BYTES:
            raise Escape("load made more memory than the file has", f"{stored} of {self._size}")

    def _check_array(self, array: Any) -> None:
        self._features.add((array.dtype.kind, min(array.ndim, 4), array.size == 0))
        low, high = np.lib.array_utils.byte_bounds(array)
        self._storages[low] = max(self._storages.get(low, 0), high - low)
        if array.dtype.hasobject or array.nbytes > self._size:
            raise Escape("load returned an array that the file does not hold", str(array.dtype))

    def _check_tensor(self, tensor: Any) -> None:
        plain = tensor.detach()
        self._features.add((plain.dtype, min(plain.dim(), 4), plain.numel() == 0, type(tensor)))
        self._features.add((plain.layout, plain.is_quantized, tensor.requires_grad))
        if plain.device.type != "cpu":
            self.elsewhere = True
            return
        if vars(tensor) or tensor.grad is not None or not tensor.is_leaf:
            raise Escape("load returned a tensor with more than elements")
        for part in _strided(plain):
            self._check_strided(part)
        if plain.layout is not torch.strided:
            _check_sparse(plain)

    def _check_strided(self, tensor: Any) -> None:
        storage = tensor.untyped_storage()
        begin = tensor.storage_offset()
        reach = sum(
            (side - 1) * step for side, step in zip(tensor.shape, tensor.stride(), strict=True)
        )
        last = begin + reach if tensor.numel() else begin - 1
        if begin < 0 or min(tensor.stride(), default=0) < 0:
            raise Escape("load returned a tensor that begins before its memory")
        if (last + 1) * tensor.element_size() > storage.nbytes() and tensor.numel():
            raise Escape("load returned a tensor that ends after its memory", str(tensor.shape))
        self._storages[storage.data_ptr()] = storage.nbytes()
        order = tensor.is_contiguous(), begin == 0, 0 in tensor.stride()
        self._features.add((order, storage.nbytes() > tensor.nbytes))


def _strided(tensor: Any) -> Iterator[Any]:
    """The dense tensors that a tensor is made of."""
    if tensor.layout is torch.strided:
        yield tensor
        if tensor.is_quantized and tensor.qscheme() is not torch.per_tensor_affine:
            yield tensor.q_per_channel_scales()
            yield tensor.q_per_channel_zero_points()
    elif tensor.layout is torch.sparse_coo:
        yield from (tensor._indices(), tensor._values())  # noqa: SLF001 - coalesced or not
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        yield from (tensor.crow_indices(), tensor.col_indices(), tensor.values())
    else:
        yield from (tensor.ccol_indices(), tensor.row_indices(), tensor.values())


def _check_sparse(tensor: Any) -> None:
    *indices, values = _strided(tensor)
    try:
        if tensor.layout is torch.sparse_coo:
            torch._validate_sparse_coo_tensor_args(  # noqa: SLF001 - no public name
                indices[0], values, tensor.shape, tensor.is_coalesced()
            )
        else:
            compressed, plain = indices
            torch._validate_sparse_compressed_tensor_args(  # noqa: SLF001 - as above
                compressed, plain, values, tensor.shape, tensor.layout
            )
    except RuntimeError as exc:
        raise Escape("load returned a sparse tensor that torch refuses", str(exc)[:200]) from exc


def _elements(tensor: Any) -> Any:
    """The bytes of a dense tensor; of one that repeats its elements, how it does and of what."""
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    if tensor.numel() == 0:
        return b""
    if tensor.numel() > _WHOLE_ELEMENTS_MAX:
        # Each element once; what lies between them belongs to nobody and is not saved.
        once = tensor
        for dimension, step in enumerate(tensor.stride()):
            once = once.narrow(dimension, 0, 1) if step == 0 else once
        if once.numel() > _WHOLE_ELEMENTS_MAX:
            return tensor.stride(), once.numel()
        return tensor.stride(), _elements(once)
    width = tensor.element_size()
    words = torch.empty(0, dtype=_WORDS[width])
    words.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())
    return words.numpy().tobytes()


def _described_tensor(tensor: Any) -> Any:
    plain = tensor.detach()
    more: Any = None
    if plain.is_quantized and plain.qscheme() is torch.per_tensor_affine:
        more = repr(plain.q_scale()), plain.q_zero_point()
    elif plain.layout is torch.sparse_coo:
        more = plain.is_coalesced()
    parts = [(part.dtype, part.shape, _elements(part)) for part in _strided(plain)]
    facts = type(tensor), plain.dtype, plain.shape, plain.layout, tensor.requires_grad
    return (*facts, more, parts)


def described(value: Any) -> Any:
    """All that makes two states equal, as plain data to compare."""
    kind = type(value)
    if kind in (torch.Tensor, torch.nn.Parameter):
        return _described_tensor(value)
    if kind is np.ndarray:
        return kind, value.dtype.str, value.shape, value.tobytes()
    if issubclass(kind, np.generic):
        return kind, value.dtype.str, value.tobytes()
    if kind in _MAPPINGS:
        items = [(described(key), described(member)) for key, member in value.items()]
        beside = described(getattr(value, "_metadata", None))
        return kind, getattr(value, "default_factory", None), beside, items
    if kind in _SEQUENCES:
        return kind, getattr(value, "maxlen", None), [*map(described, value)]
    if kind in _NAMESPACES:
        return kind, described(vars(value))
    if kind is Inert:
        return kind, described(_inert_parts(value))
    if kind is slice:
        return kind, [*map(described, (value.start, value.stop, value.step))]
    if kind in (set, frozenset):
        return kind, sorted(repr(described(member)) for member in value)
    return kind, repr(value)
