# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a sparse tensor fit one another, by their sizes alone.

Used twice with the same rules: on what a pickle declares, before torch builds anything of it, and
on the tensor that torch built. The indices themselves are looked at in `_sparse.py`.
"""

import math
from collections.abc import Sequence

__all__ = ["compressed_fault", "coo_fault"]

_ELEMENTS_MAX = 1 << 62

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
    blocked = 2 if layout in ("torch.sparse_bsr", "torch.sparse_bsc") else 0
    if batch < 0 or len(plain) != batch + 1 or len(values) < batch + 1 + blocked:
        return "expected indices and values of the same batch"
    if len(size) != len(values) - blocked + 1:
        return f"expected {len(values) - blocked + 1} dimensions, found {len(size)}"
    if not list(compressed[:batch]) == list(plain[:batch]) == list(values[:batch]):
        return "expected indices and values of the same batch"
    if list(size[:batch]) != list(values[:batch]):
        return "expected the batch of the tensor for its parts"
    if plain[batch] != values[batch]:
        return f"expected as many values as the {plain[batch]} indices"
    block = list(values[batch + 1 : batch + 1 + blocked]) or [1, 1]
    rows, columns = size[batch], size[batch + 1]
    if min(block) < 1 or rows % block[0] or columns % block[1]:
        return "expected blocks that divide the tensor"
    if list(values[batch + 1 + blocked :]) != list(size[batch + 2 :]):
        return "expected values for the dimensions after the first two"
    by_row = layout in ("torch.sparse_csr", "torch.sparse_bsr")
    lines = rows // block[0] if by_row else columns // block[1]
    if compressed[batch] != lines + 1:
        return f"expected {lines + 1} compressed indices, found {compressed[batch]}"
    return None
