# SPDX-License-Identifier: Apache-2.0
"""Whether the indices of a sparse tensor are such that no operation leaves its memory.

Torch builds sparse tensors without looking at their indices, and its operations trust them: one
index out of range reads or writes beyond an array. Here they are looked at with tensor operations
on the tensor itself. The switch of torch that does the same is shared by all threads of a process,
so that one of them can switch it off for another; it is neither used nor changed.

Whether the parts of a sparse tensor fit one another, by their sizes alone.

Used twice with the same rules: on what a pickle declares, before torch builds anything of it,
and on the tensor that torch built. The indices themselves are looked at in `_sparse.py`.
"""

import math
from collections.abc import Sequence
from typing import Any

from sealpoint.errors import ModelLimitExceeded, SparseInvalid
from sealpoint.models._placing import is_permuted

_ELEMENTS_MAX = 1 << 62
_COPIED_TIMES = 2
_CHECKED_TIMES = 64
_BLOCKED = ("torch.sparse_bsr", "torch.sparse_bsc")
_BY_ROW = ("torch.sparse_csr", "torch.sparse_bsr")

Sizes = Sequence[int]


def coo_fault(indices: Sizes, values: Sizes, size: Sizes) -> str | None:
    """Why these cannot be the indices and values of a COO tensor of this size, or None."""
    if math.prod(max(side, 1) for side in size) > _ELEMENTS_MAX:
        return "expected fewer elements"
    if len(indices) != 2:
        return f"expected indices of 2 dimensions, found {len(indices)}"
    dimensions, count = indices
    if not values or values[0] != count:
        return f"expected as many values as the {count} indices"
    if dimensions > len(size) or list(values[1:]) != list(size[dimensions:]):
        return f"expected values for the dimensions after the first {dimensions}"
    return None


def compressed_fault(
    layout: str, compressed: Sizes, plain: Sizes, values: Sizes, size: Sizes
) -> str | None:
    """Why these cannot be the parts of a CSR, CSC, BSR or BSC tensor of this size, or None."""
    if math.prod(max(side, 1) for side in size) > _ELEMENTS_MAX:
        return "expected fewer elements"
    batch = len(compressed) - 1
    blocked = 2 * (layout in _BLOCKED)
    if batch < 0 or len(plain) != batch + 1 or len(values) < batch + 1 + blocked:
        return "expected indices and values of the same batch"
    if len(size) != len(values) - blocked + 1:
        return f"expected {len(values) - blocked + 1} dimensions, found {len(size)}"
    if len({tuple(each[:batch]) for each in (compressed, plain, values, size)}) > 1:
        return "expected indices and values of the batch of the tensor"
    if plain[batch] != values[batch]:
        return f"expected as many values as the {plain[batch]} indices"
    block = list(values[batch + 1 : batch + 1 + blocked]) or [1, 1]
    if list(values[batch + 1 + blocked :]) != list(size[batch + 2 :]):
        return "expected values for the dimensions after the first two"
    return _lines_fault(layout, compressed[batch], block, size[batch : batch + 2])


def _lines_fault(layout: str, compressed: int, block: Sizes, sides: Sizes) -> str | None:
    if min(block) < 1 or sides[0] % block[0] or sides[1] % block[1]:
        return "expected blocks that divide the tensor"
    lines = sides[0] // block[0] if layout in _BY_ROW else sides[1] // block[1]
    if compressed != lines + 1:
        return f"expected {lines + 1} compressed indices, found {compressed}"
    return None


QUANTIZED = {"qint8": ("int8", 8), "quint8": ("uint8", 8), "qint32": ("int32", 32)}
"""The quantized types: what carries their elements, and how many bits these have."""


def quantizer_fault(dtype: str, scale: object, zero: object) -> str | None:
    """Why these cannot be the scale and the zero point of a quantized type, or None."""
    bits = QUANTIZED[dtype][1]
    low = 0 if dtype == "quint8" else -(1 << (bits - 1))
    if type(scale) is not float or not (math.isfinite(scale) and scale > 0):
        return "expected a quantized tensor with a scale above 0"
    if type(zero) is not int or not low <= zero < low + (1 << bits):
        return f"expected a zero point of its {bits} bits"
    return None


class TensorBudget:
    """What tensors may cost beside their bytes: any number of them may stand for the same ones.

    Args:
        size: The bytes of the file.
        what: The file, for messages.
    """

    def __init__(self, size: int, what: str) -> None:
        self._copied_bytes_left = _COPIED_TIMES * size
        self._checked_bytes_left = _CHECKED_TIMES * size
        self._what = what

    def copy(self, size: int) -> None:
        """Count bytes that are about to be copied."""
        self._copied_bytes_left -= size
        if self._copied_bytes_left < 0:
            raise ModelLimitExceeded(
                f"{self._what}: expected at most {_COPIED_TIMES} times its size in copies"
            )

    def check_indices(self, size: int) -> None:
        """Count bytes of sparse indices: all are looked at, for each tensor that uses them."""
        self._checked_bytes_left -= size
        if self._checked_bytes_left < 0:
            raise ModelLimitExceeded(
                f"{self._what}: expected at most {_CHECKED_TIMES} times its size in sparse indices"
            )


_UNIQUE = (
    "expected sorted and distinct indices, as the tensor says of itself, found unsorted "
    "or repeated ones"
)


def check_sparse(torch: Any, tensor: Any, what: str) -> None:
    """Check a sparse tensor of any layout.

    Args:
        torch: Torch.
        tensor: A sparse tensor, COO, CSR, CSC, BSR or BSC.
        what: The tensor and its file, for messages.

    Raises:
        SparseInvalid: Indices are out of range, out of order or too many.
    """
    layout = str(tensor.layout)
    if layout == "torch.sparse_coo":
        fault = _coo(torch, tensor)
    elif layout in _BY_ROW:
        fault = _compressed(torch, tensor, layout, tensor.crow_indices(), tensor.col_indices())
    elif layout in ("torch.sparse_csc", "torch.sparse_bsc"):
        fault = _compressed(torch, tensor, layout, tensor.ccol_indices(), tensor.row_indices())
    else:
        fault = f"expected a known sparse layout, found {layout}"
    if fault is not None:
        raise SparseInvalid(f"{what}: sparse tensor: {fault}")


def _coo(torch: Any, tensor: Any) -> str | None:
    """(1) Sizes, (2) type, (3) range, (4) order where the tensor claims it."""
    indices, values = tensor._indices(), tensor._values()  # noqa: SLF001 - the parts as stored
    size = list(tensor.shape)
    if (fault := coo_fault(indices.shape, values.shape, size)) is not None:
        return fault
    if tensor.sparse_dim() != indices.shape[0]:
        return "expected a row of indices for each sparse dimension"
    if indices.dtype is not torch.int64:
        return f"expected indices of 64 bits, found {indices.dtype}"
    sides = torch.tensor(size[: indices.shape[0]], dtype=torch.int64, device=indices.device)
    if bool((indices < 0).any()) or bool((indices >= sides.unsqueeze(1)).any()):
        return "expected every index inside the tensor, found one outside"
    if tensor.is_coalesced() and values.shape[0] > 1 and not _ascending(torch, indices):
        return _UNIQUE
    return None


def _ascending(torch: Any, indices: Any) -> bool:
    """Whether the columns of indices are in lexicographic order, each once."""
    before, after = indices[:, :-1], indices[:, 1:]
    decided = torch.zeros(before.shape[1], dtype=torch.bool, device=indices.device)
    for low, high in zip(before, after, strict=True):
        if bool((~decided & (low > high)).any()):
            return False
        decided |= low < high
    return bool(decided.all())


def _compressed(torch: Any, tensor: Any, layout: str, compressed: Any, plain: Any) -> str | None:
    """(1) Sizes, (2) types, (3) memory, (4) the indices."""
    values, size = tensor.values(), list(tensor.shape)
    fault = compressed_fault(layout, compressed.shape, plain.shape, values.shape, size)
    if fault is not None:
        return fault
    if compressed.dtype is not plain.dtype or plain.dtype not in (torch.int64, torch.int32):
        return f"expected indices of 64 or 32 bits, found {plain.dtype}"
    # Kernels read as many elements as there are from where they begin, whatever the stride.
    if not (compressed.is_contiguous() and plain.is_contiguous()):
        return "expected indices in order, found indices out of order"
    if not (values.is_contiguous() or is_permuted(values.shape, values.stride())):
        return "expected values without gaps and overlaps, found a gap or an overlap"
    batch = compressed.dim() - 1
    block = list(values.shape[batch + 1 : batch + 3]) if layout in _BLOCKED else [1, 1]
    across = size[batch + 1] // block[1] if layout in _BY_ROW else size[batch] // block[0]
    return _indices_fault(torch, compressed, plain, across)


def _indices_fault(torch: Any, compressed: Any, plain: Any, across: int) -> str | None:
    """(1) Compressed indices, (2) range, (3) order in a line."""
    count = int(plain.shape[-1])
    starts = compressed.reshape(-1, compressed.shape[-1]).to(torch.int64)
    lines = plain.reshape(starts.shape[0], count)
    if bool((starts[:, 0] != 0).any()) or bool((starts[:, -1] != count).any()):
        return f"expected compressed indices from 0 to {count}, found another beginning or end"
    steps = starts[:, 1:] - starts[:, :-1]
    if bool((steps < 0).any()) or bool((steps > across).any()):
        return (
            f"expected compressed indices that rise by 0 to {across}, found a larger step or a fall"
        )
    if bool((lines < 0).any()) or bool((lines >= across).any()):
        return "expected every index inside the tensor, found one outside"
    # Two neighbours of one line must rise; where a line begins they need not.
    begins = torch.zeros((starts.shape[0], count + 1), dtype=torch.bool, device=plain.device)
    begins.scatter_(1, starts, value=True)
    rises = lines[:, 1:] > lines[:, :-1]
    if not bool((rises | begins[:, 1:count]).all()):
        return "expected sorted and distinct indices in each line, found unsorted or repeated ones"
    return None
