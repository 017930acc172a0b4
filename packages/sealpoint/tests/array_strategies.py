# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies over arrays and scalars of numpy, and tensors of torch."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch
from hypothesis.extra import numpy as hnp

__all__ = ["array_scalars", "arrays", "tensors"]

Values = st.SearchStrategy[Any]

_NUMBERS = ["?", "i1", "u2", "<i4", ">i4", "<u8", ">f2", "<f4", "f8", "c8", ">c16"]
_OTHERS = ["S3", "U2", ">U3", "M8[s]", "m8[ns]", "M8[25us]", ">M8[D]"]
_TENSORS = ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "complex64"]


def array_scalars() -> Values:
    """Scalars of numpy: numbers, times and texts."""
    numbers = st.sampled_from(["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
    times = st.sampled_from(["M8[s]", "m8[ns]", "M8[25us]"])
    fixed = (numbers | times).flatmap(lambda name: hnp.arrays(name, (1,)).map(lambda a: a[0]))
    ends = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
    return fixed | ends.map(np.str_) | st.binary(min_size=1).map(lambda b: np.bytes_(b + b"."))


def arrays() -> Values:
    """Arrays of numpy: numbers, times, texts, records; empty ones and those without dimensions."""
    record = np.dtype([("a", "<i4"), ("b", "U2", (2,)), ("c", [("d", "?"), ("e", ">f8")])])
    dtypes = st.sampled_from([*map(np.dtype, _NUMBERS + _OTHERS), record])
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    made = dtypes.flatmap(lambda dtype: hnp.arrays(dtype, shapes, fill=st.nothing()))
    return made | made.map(np.transpose)


def _tensor(name: str, shape: list[int], raw: bytes, *, grad: bool) -> torch.Tensor:
    dtype = getattr(torch, name)
    tensor = (
        torch.tensor(list(raw)).to(torch.float32 if dtype.is_complex else torch.int64).to(dtype)
    )
    sized = tensor.repeat(64)[: int(np.prod(shape))].reshape(shape)
    return sized.clone().requires_grad_(grad and (dtype.is_floating_point or dtype.is_complex))


def tensors() -> Values:
    """Tensors of torch."""
    shapes = st.lists(st.integers(0, 3), max_size=3)
    names = st.sampled_from(_TENSORS)
    raw = st.binary(min_size=1, max_size=8)
    made = st.builds(_tensor, names, shapes, raw, grad=st.booleans())
    return made | made.map(lambda tensor: tensor.detach().T if tensor.ndim == 2 else tensor)
