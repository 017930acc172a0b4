# SPDX-License-Identifier: Apache-2.0
"""Checks that the indices of a sparse tensor keep every operation inside its memory.

Torch builds sparse tensors without checking their indices, and its operations trust them: one index
out of range reads or writes beyond an array. This module checks them with tensor operations on the
tensor itself. Torch's own switch for the same checks is shared by all threads of a process, so that
one thread can switch it off for another; it is neither used nor changed.
"""

from typing import Any

from sealpoint.errors import SparseInvalid
from sealpoint_models._device_placement import is_permuted
from sealpoint_models.scan import BLOCKED_LAYOUTS, BY_ROW_LAYOUTS, compressed_fault, coo_fault

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
    elif layout in BY_ROW_LAYOUTS:
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
    # Kernels read as many elements as there are from the start, regardless of the stride.
    if not (compressed.is_contiguous() and plain.is_contiguous()):
        return "expected indices in order, found indices out of order"
    if not (values.is_contiguous() or is_permuted(values.shape, values.stride())):
        return "expected values without gaps and overlaps, found a gap or an overlap"
    batch = compressed.dim() - 1
    block = list(values.shape[batch + 1 : batch + 3]) if layout in BLOCKED_LAYOUTS else [1, 1]
    across = size[batch + 1] // block[1] if layout in BY_ROW_LAYOUTS else size[batch] // block[0]
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
    # Adjacent indices in one line must rise; across the start of a line they need not.
    begins = torch.zeros((starts.shape[0], count + 1), dtype=torch.bool, device=plain.device)
    begins.scatter_(1, starts, value=True)
    rises = lines[:, 1:] > lines[:, :-1]
    if not bool((rises | begins[:, 1:count]).all()):
        return "expected sorted and distinct indices in each line, found unsorted or repeated ones"
    return None
