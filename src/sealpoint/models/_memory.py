# SPDX-License-Identifier: Apache-2.0
"""How the elements of a tensor lie in memory: whole-number arithmetic, and the bytes themselves."""

from collections.abc import Sequence
from typing import Any

__all__ = ["contiguous_stride", "extent", "is_permuted", "raw_bytes", "view_of"]


def contiguous_stride(shape: Sequence[int]) -> list[int]:
    """The stride of a tensor whose elements lie in the order of their indices."""
    stride: list[int] = []
    step = 1
    for side in reversed(shape):
        stride.append(step)
        step *= max(side, 1)
    return stride[::-1]


def extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    """How many elements lie between the first and the last of a tensor, both counted."""
    if 0 in shape:
        return 0
    return 1 + sum((side - 1) * step for side, step in zip(shape, stride, strict=True))


def is_permuted(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether elements lie without gaps and overlaps, with the dimensions in another order."""
    step = 1
    for dimension_step, side in sorted(zip(stride, shape, strict=True)):
        if side != 1:
            if dimension_step != step:
                return False
            step *= side
    return 0 not in shape


def view_of(torch: Any, memory: Any, dtype: Any, offset: int, geometry: tuple[Any, Any]) -> Any:
    """A tensor of its own over the storage of another one.

    Args:
        torch: The module.
        memory: A tensor that fills its storage.
        dtype: The element type.
        offset: Where it begins, in elements.
        geometry: Shape and stride.
    """
    tensor = torch.empty(0, dtype=dtype, device=memory.device)
    return tensor.set_(memory.untyped_storage(), offset, *geometry)


def raw_bytes(torch: Any, tensor: Any) -> memoryview:
    """The bytes of a tensor in the order of its indices, in the memory of the processor."""
    dense = tensor.contiguous().cpu()
    if dense.numel() == 0:
        return memoryview(b"")
    start = dense.storage_offset() * dense.element_size()
    size = dense.numel() * dense.element_size()
    raw = view_of(torch, dense, torch.uint8, start, ((size,), (1,)))
    return memoryview(raw.numpy())
