# SPDX-License-Identifier: Apache-2.0
"""Indices outside of a sparse tensor, which torch's operations follow out of its memory.

https://github.com/pytorch/pytorch/issues/184750 and, for the switch that threads share,
https://github.com/pytorch/pytorch/issues/194750.
"""

import struct
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from sealpoint.errors import SparseInvalid
from tests.pt_files import (
    call,
    integer,
    ours,
    pickled,
    saved,
    stock,
    storage,
    tensor,
    text,
    tupled,
)

pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")


def _longs(values: Iterable[int]) -> bytes:
    return b"".join(struct.pack("<q", value) for value in values)


def _coo(indices: list[int], *, coalesced: bool | None = False) -> bytes:
    """A sparse vector of 3 elements, with one value for each index."""
    count = len(indices)
    flag = {None: b"N", True: b"\x88", False: b"\x89"}[coalesced]
    parts = tupled(
        tensor(storage("LongStorage", "0", count), [1, count], [count, 1]),
        tensor(storage("FloatStorage", "1", count), [count], [1]),
        call("torch", "Size", tupled(integer(3))),
        flag,
    )
    layout = call("torch.serialization", "_get_layout", text("torch.sparse_coo"))
    program = call("torch._utils", "_rebuild_sparse_tensor", layout, parts)
    return pickled(program, {"0": _longs(indices), "1": struct.pack(f"<{count}f", *[1.0] * count)})


def _compressed(layout: str, starts: list[int], plain: list[int]) -> bytes:
    """A sparse matrix of 3 by 3."""
    count, lines = len(plain), len(starts)
    parts = tupled(
        tensor(storage("LongStorage", "0", lines), [lines], [1]),
        tensor(storage("LongStorage", "1", count), [count], [1]),
        tensor(storage("FloatStorage", "2", count), [count], [1]),
        call("torch", "Size", tupled(integer(3), integer(3))),
    )
    named = call("torch.serialization", "_get_layout", text(f"torch.sparse_{layout}"))
    program = call("torch._utils", "_rebuild_sparse_tensor", named, parts)
    values = struct.pack(f"<{count}f", *range(count))
    return pickled(program, {"0": _longs(starts), "1": _longs(plain), "2": values})


_WRONG = {
    "coo, beyond the end": _coo([5]),
    "coo, before the beginning": _coo([-1]),
    "coo, says sorted and is not": _coo([2, 0], coalesced=True),
    "coo, says distinct and is not": _coo([1, 1], coalesced=True),
    "csr, column beyond the end": _compressed("csr", [0, 1, 1, 1], [7]),
    "csr, column before the beginning": _compressed("csr", [0, 1, 1, 1], [-1]),
    "csr, starts beyond the values": _compressed("csr", [0, 1, 1, 900], [0]),
    "csr, starts before the values": _compressed("csr", [0, -5, 1, 1], [0]),
    "csr, starts that fall": _compressed("csr", [0, 2, 1, 2], [0, 1]),
    "csr, first start is not 0": _compressed("csr", [1, 1, 1, 1], [0]),
    "csr, a column twice in a row": _compressed("csr", [0, 2, 2, 2], [1, 1]),
    "csr, columns out of order": _compressed("csr", [0, 2, 2, 2], [2, 1]),
    "csc, row beyond the end": _compressed("csc", [0, 1, 1, 1], [3]),
    "csc, starts that fall": _compressed("csc", [0, 2, 1, 2], [0, 1]),
}


@pytest.mark.parametrize("data", _WRONG.values(), ids=_WRONG)
def test_wrong_indices_are_refused(data: bytes) -> None:
    """Torch returns a tensor whose indices lie outside of it; here it is refused."""
    assert isinstance(stock(data), torch.Tensor)
    with pytest.raises(SparseInvalid, match=r"m\.pt: sparse tensor: expected"):
        ours(data)


@pytest.mark.parametrize(
    "data",
    [
        _coo([0, 2], coalesced=True),
        _coo([2, 0]),
        _coo([1, 1], coalesced=None),
        _compressed("csr", [0, 2, 2, 3], [0, 2, 1]),
        _compressed("csc", [0, 0, 3, 3], [0, 1, 2]),
    ],
    ids=["coo sorted", "coo unsorted", "coo unsaid", "csr", "csc"],
)
def test_right_indices_load(data: bytes) -> None:
    """The control: the same files with indices inside the tensor load with both, and are equal."""
    assert torch.equal(ours(data).to_dense(), stock(data).to_dense())


def test_threads_cannot_hide_a_wrong_tensor_from_one_another() -> None:
    """Torch keeps what is to be checked in one list for all threads; here each checks its own."""
    good, bad = _coo([0, 2]), _coo([5])

    def refused(data: bytes) -> bool:
        try:
            ours(data)
        except SparseInvalid:
            return True
        return False

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(refused, [good, bad] * 40))

    assert found == [False, True] * 40


def test_the_switch_that_all_threads_share_is_neither_used_nor_moved() -> None:
    """Indices are checked while torch's own check is off, and it stays off."""
    switch: Any = torch.sparse.check_sparse_tensor_invariants
    assert not switch.is_enabled()

    with pytest.raises(SparseInvalid):
        ours(_coo([5]))

    assert not switch.is_enabled()


@pytest.mark.parametrize("stretched", ["indices", "values"])
def test_parts_that_do_not_lie_in_order_are_refused(stretched: str) -> None:
    """Kernels for compressed layouts ignore strides, and read on behind one repeated element."""
    count = 3
    sizes = {"indices": count, "values": count, stretched: 1}
    steps = {"indices": 1, "values": 1, stretched: 0}
    parts = tupled(
        tensor(storage("LongStorage", "0", count + 1), [count + 1], [1]),
        tensor(storage("LongStorage", "1", sizes["indices"]), [count], [steps["indices"]]),
        tensor(storage("FloatStorage", "2", sizes["values"]), [count], [steps["values"]]),
        call("torch", "Size", tupled(integer(count), integer(count))),
    )
    layout = call("torch.serialization", "_get_layout", text("torch.sparse_csr"))
    data = pickled(
        call("torch._utils", "_rebuild_sparse_tensor", layout, parts),
        {
            "0": _longs(range(count + 1)),
            "1": _longs([0] * sizes["indices"]),
            "2": bytes(4 * sizes["values"]),
        },
    )

    assert stock(data).shape == (count, count)
    with pytest.raises(SparseInvalid, match=r"in order|without gaps"):
        ours(data)


@pytest.mark.parametrize("layout", ["bsr", "bsc"])
def test_transposed_blocks_load(layout: str) -> None:
    """The blocks of a transposed matrix lie in another order, without gaps."""
    matrix = getattr(torch.eye(4), f"to_sparse_{layout}")((2, 2)).transpose(0, 1)

    loaded = ours(saved(matrix))

    assert not loaded.values().is_contiguous()
    assert torch.equal(loaded.to_dense(), torch.eye(4))
