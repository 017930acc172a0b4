# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a tensor are consistent, by their sizes alone: whole-number arithmetic.

The same rules apply to the declarations of a file, before anything is built from them, and to the
built objects. The indices of sparse tensors are checked only on real tensors.
"""

import math
from collections.abc import Sequence

from sealpoint.errors import ModelLimitExceeded

_ELEMENTS_MAX = 1 << 62
_COPIED_TIMES = 2
_CHECKED_TIMES = 64
BLOCKED_LAYOUTS = ("torch.sparse_bsr", "torch.sparse_bsc")
BY_ROW_LAYOUTS = ("torch.sparse_csr", "torch.sparse_bsr")

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
    blocked = 2 * (layout in BLOCKED_LAYOUTS)
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
    lines = sides[0] // block[0] if layout in BY_ROW_LAYOUTS else sides[1] // block[1]
    if compressed != lines + 1:
        return f"expected {lines + 1} compressed indices, found {compressed}"
    return None


QUANTIZED = {"qint8": ("int8", 8), "quint8": ("uint8", 8), "qint32": ("int32", 32)}
"""The quantized types: the carrier of their elements, and its number of bits."""


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
    """The cost of tensors apart from their bytes: any number of them may share the same bytes.

    Args:
        size: The bytes of the file.
        what: The file, for messages.
    """

    def __init__(self, size: int, what: str) -> None:
        self._copied_bytes_left = _COPIED_TIMES * size
        self._checked_bytes_left = _CHECKED_TIMES * size
        self._what = what

    def copy(self, size: int) -> None:
        """Count bytes before they are copied."""
        self._copied_bytes_left -= size
        if self._copied_bytes_left < 0:
            raise ModelLimitExceeded(
                f"{self._what}: expected at most {_COPIED_TIMES} times its size in copies"
            )

    def check_indices(self, size: int) -> None:
        """Count bytes of sparse indices: all are checked, for each tensor that uses them."""
        self._checked_bytes_left -= size
        if self._checked_bytes_left < 0:
            raise ModelLimitExceeded(
                f"{self._what}: expected at most {_CHECKED_TIMES} times its size in sparse indices"
            )


def contiguous_stride(shape: Sequence[int]) -> list[int]:
    """The stride of a tensor whose elements are stored in the order of their indices."""
    stride: list[int] = []
    step = 1
    for side in reversed(shape):
        stride.append(step)
        step *= max(side, 1)
    return stride[::-1]
