# SPDX-License-Identifier: Apache-2.0
"""The check of sparse indices, for every layout and against torch's own check."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from sealpoint.errors import SparseInvalid
from sealpoint_models._sparse_tensors import check_sparse
from sealpoint_models.scan import compressed_fault, coo_fault

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

_LAYOUTS: dict[str, Any] = {
    "csr": torch.sparse_csr,
    "csc": torch.sparse_csc,
    "bsr": torch.sparse_bsr,
    "bsc": torch.sparse_bsc,
}


def _compressed(layout: str, starts: Any, plain: Any, dtype: Any = torch.int64) -> torch.Tensor:
    """A matrix of 3 by 3, or of 3 by 3 blocks of 2 by 1."""
    block = (2, 1) if layout[0] == "b" else ()
    compressed, other = torch.tensor(starts, dtype=dtype), torch.tensor(plain, dtype=dtype)
    return torch.sparse_compressed_tensor(
        compressed,
        other,
        torch.ones(*other.shape, *block),
        (*other.shape[:-1], 6 if block else 3, 3),
        layout=_LAYOUTS[layout],
        check_invariants=False,
    )


def _refuses(tensor: torch.Tensor) -> bool:
    try:
        check_sparse(torch, tensor, "t")
    except SparseInvalid:
        return True
    return False


def _torch_refuses(build: Callable[[], torch.Tensor]) -> bool:
    try:
        build()
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("layout", _LAYOUTS)
def test_compressed_indices_are_judged_as_by_torch(layout: str, dtype: Any) -> None:
    """All small arrays of starts and indices, around the borders of what is allowed."""
    starts = [[0, *rest] for rest in itertools.product((-1, 0, 1, 2), (0, 1, 2, 3), (1, 2))]
    for start, plain in itertools.product(
        [*starts, [1, 1, 2, 2]], [[0, 1], [1, 0], [2, 3], [1, 1]]
    ):
        tensor = _compressed(layout, start, plain, dtype)
        by_row = layout in ("csr", "bsr")
        parts = (
            (tensor.crow_indices(), tensor.col_indices())
            if by_row
            else (tensor.ccol_indices(), tensor.row_indices())
        )
        expected = _torch_refuses(
            lambda parts=parts, tensor=tensor: torch.sparse_compressed_tensor(  # type: ignore[misc]
                *parts,
                tensor.values(),
                tensor.shape,
                layout=tensor.layout,
                check_invariants=True,
            )
        )

        assert _refuses(tensor) == expected, (start, plain)


def test_each_batch_is_judged() -> None:
    """The second of two matrices is as important as the first."""
    good, bad = [[0, 1, 2, 2]] * 2, [[0, 1], [0, 3]]

    check_sparse(torch, _compressed("csr", good, [[0, 1], [0, 2]]), "t")
    with pytest.raises(SparseInvalid, match="inside the tensor"):
        check_sparse(torch, _compressed("csr", good, bad), "t")


@pytest.mark.parametrize(
    ("indices", "coalesced", "right"),
    [
        ([[0, 0, 1], [0, 1, 0]], 1, 1),
        ([[0, 0, 1], [1, 0, 0]], 1, 0),
        ([[0, 0, 1], [1, 1, 0]], 1, 0),
        ([[1, 0, 0], [0, 1, 1]], 0, 1),
        ([[0, 0, 2], [0, 1, 0]], 0, 0),
        ([[0, 0, 1], [0, 3, 0]], 0, 0),
        ([[0, 0, -1], [0, 1, 0]], 0, 0),
    ],
)
def test_coordinates_are_judged(indices: list[list[int]], coalesced: int, right: int) -> None:
    """In range, and in order where the tensor says so."""
    tensor = torch.sparse_coo_tensor(
        torch.tensor(indices),
        torch.ones(3),
        (2, 3),
        is_coalesced=bool(coalesced),
        check_invariants=False,
    )

    assert _refuses(tensor) == (not right)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, 3).to_sparse(),
        lambda: torch.sparse_coo_tensor(torch.empty(0, 1, dtype=torch.int64), torch.ones(1), ()),
        lambda: torch.zeros(0, 3).to_sparse(),
        lambda: torch.ones(2, 3, 4).to_sparse(1),
    ],
    ids=["empty", "scalar", "no rows", "hybrid"],
)
def test_small_tensors_are_right(make: Callable[[], torch.Tensor]) -> None:
    """Nothing has to be there."""
    check_sparse(torch, make(), "t")


class _Claims:
    """What a tensor says of itself, where torch itself would not build it."""

    def __init__(self, layout: Any, size: list[int], *parts: torch.Tensor) -> None:
        self.layout, self.shape, self._parts = layout, size, parts

    def sparse_dim(self) -> int:
        return 1

    def _indices(self) -> torch.Tensor:
        return self._parts[0]

    crow_indices = _indices

    def col_indices(self) -> torch.Tensor:
        return self._parts[1]

    def values(self) -> torch.Tensor:
        return self._parts[-1]

    _values = values


@pytest.mark.parametrize(
    ("claims", "found"),
    [
        (_Claims(torch.sparse_coo, [3], torch.ones(1, 2), torch.ones(3)), "as many values"),
        (_Claims(torch.sparse_coo, [3, 3], torch.ones(2, 1), torch.ones(1)), "a row of indices"),
        (_Claims(torch.sparse_coo, [3], torch.ones(1, 2), torch.ones(2)), "64 bits, found"),
        (_Claims(torch.sparse_csr, [3, 3], *[torch.ones(4)] * 2, torch.ones(2)), "as many values"),
        (_Claims(torch.sparse_csr, [3, 3], *[torch.ones(4)] * 3), "64 or 32 bits, found"),
    ],
    ids=["coo sizes", "coo dimensions", "coo type", "csr sizes", "csr type"],
)
def test_what_torch_would_not_build_is_refused(claims: _Claims, found: str) -> None:
    """Sizes and types are looked at, whatever torch looks at."""
    with pytest.raises(SparseInvalid, match=found):
        check_sparse(torch, claims, "t")


def test_dense_tensor_is_not_sparse() -> None:
    """The layout is one of the five."""
    with pytest.raises(
        SparseInvalid, match=r"expected a known sparse layout, found torch\.strided"
    ):
        check_sparse(torch, torch.ones(1), "t")


@pytest.mark.parametrize(
    ("indices", "values", "size"),
    [
        ([2], [2], [2]),
        ([1, 2], [], [2]),
        ([1, 2], [3], [2]),
        ([3, 2], [2], [2, 2]),
        ([1, 2], [2, 5], [2, 4]),
        ([1, 2], [2], [1 << 40, 1 << 40]),
    ],
)
def test_parts_of_coordinates_that_do_not_fit_are_told(
    indices: list[int], values: list[int], size: list[int]
) -> None:
    """By their sizes alone."""
    assert coo_fault(indices, values, size)


@pytest.mark.parametrize(
    ("layout", "compressed", "plain", "values", "size"),
    [
        ("csr", [], [2], [2], [3, 3]),
        ("csr", [4], [1, 2], [2], [3, 3]),
        ("csr", [4], [2], [2], [3, 3, 3]),
        ("csr", [2, 4], [3, 2], [3, 2], [3, 3, 3]),
        ("csr", [2, 4], [2, 2], [2, 2], [3, 3, 3]),
        ("csr", [4], [2], [3], [3, 3]),
        ("csr", [5], [2], [2], [3, 3]),
        ("csr", [4], [2], [2, 5], [3, 3, 4]),
        ("bsr", [4], [2], [2], [3, 3]),
        ("bsr", [2], [2], [2, 2, 2], [3, 3]),
        ("bsr", [2], [2], [2, 0, 1], [3, 3]),
        ("csr", [4], [2], [2], [1 << 40, 1 << 40]),
    ],
)
def test_parts_of_a_compressed_tensor_that_do_not_fit_are_told(
    layout: str, compressed: list[int], plain: list[int], values: list[int], size: list[int]
) -> None:
    """By their sizes alone."""
    assert compressed_fault(f"torch.sparse_{layout}", compressed, plain, values, size)
