# SPDX-License-Identifier: Apache-2.0
"""Storages that are declared to be something else than the records that are there.

CVE-2026-24747, and what `mmap=True` still accepts: the declared length is not compared with the
record, so that a tensor reaches into its neighbours.
"""

import struct
from pathlib import Path

import pytest
import torch

from sealpoint.errors import ModelMalformed, RecordMismatch
from tests.pt_files import (
    as_file,
    call,
    integer,
    listed,
    named,
    ours,
    pickled,
    stock,
    storage,
    tensor,
    tupled,
)

_FOUR = struct.pack("<4f", 1, 2, 3, 4)


def test_longer_than_its_record_is_refused(tmp_path: Path) -> None:
    """With `mmap` torch gives 32 elements where the file stores 4; here nothing is loaded."""
    data = pickled(tensor(storage("FloatStorage", "0", 32), [32], [1]), {"0": _FOUR})
    loaded = torch.load(as_file(tmp_path, data), weights_only=True, mmap=True)

    assert loaded.untyped_storage().nbytes() == 128
    with pytest.raises(RecordMismatch, match="expected a record of 128 bytes, found 16"):
        ours(data)


def test_shorter_than_its_record_is_refused() -> None:
    """A record that holds more than its tensor says could hide something."""
    data = pickled(tensor(storage("FloatStorage", "0", 2), [2], [1]), {"0": _FOUR})

    with pytest.raises(RecordMismatch, match="expected a record of 8 bytes, found 16"):
        ours(data)


def test_one_record_of_two_types_is_refused() -> None:
    """Torch takes the type it saw first for both tensors; here the second one is refused."""
    data = pickled(
        listed(
            tensor(storage("FloatStorage", "0", 4), [4], [1]),
            tensor(storage("IntStorage", "0", 4), [4], [1]),
        ),
        {"0": _FOUR},
    )

    assert [part.dtype for part in stock(data)] == [torch.float32, torch.float32]
    with pytest.raises(RecordMismatch, match="the same type, length and device"):
        ours(data)


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [([5], [1], 0), ([4], [1], 1), ([2, 2], [3, 1], 0), ([2], [2**62], 0), ([1], [1], 2**62)],
)
def test_tensor_outside_of_its_storage_is_refused(
    size: list[int], stride: list[int], offset: int
) -> None:
    """A size, stride or offset that leaves the storage is refused before torch sees it."""
    data = pickled(tensor(storage("FloatStorage", "0", 4), size, stride, offset), {"0": _FOUR})

    with pytest.raises(RecordMismatch, match="expected its tensors inside its 16 bytes"):
        ours(data)


def test_record_that_nothing_uses_is_refused() -> None:
    """Torch does not look at it; here a file has no place for what is not a tensor."""
    data = pickled(tensor(storage("FloatStorage", "0", 4), [4], [1]), {"0": _FOUR, "1": b"hidden"})

    assert stock(data).tolist() == [1, 2, 3, 4]
    with pytest.raises(ModelMalformed, match="every storage to be used, found '1'"):
        ours(data)


def test_missing_record_is_refused() -> None:
    """A storage without a record is named."""
    data = pickled(tensor(storage("FloatStorage", "7", 4), [4], [1]), {"0": _FOUR})

    with pytest.raises(RecordMismatch, match="expected a record for storage '7'"):
        ours(data)


def test_items_set_on_a_tensor_are_refused() -> None:
    """The other half of CVE-2026-24747: putting items into what is not a dict."""
    held = tensor(storage("FloatStorage", "0", 4), [4], [1])

    with pytest.raises(ModelMalformed, match="a tensor without items"):
        ours(pickled(held + integer(0) + integer(9) + b"s", {"0": _FOUR}))


@pytest.mark.parametrize("axis", [2, -1])
def test_quantizer_that_does_not_fit_is_refused(axis: int) -> None:
    """Scales are read by the axis: https://github.com/pytorch/pytorch/issues/184652."""
    data = _per_channel(axis=axis, scales=2)

    with pytest.raises(RecordMismatch, match="expected an axis"):
        ours(data)


def test_too_few_scales_are_refused() -> None:
    """One scale for two channels would be read beyond."""
    with pytest.raises(RecordMismatch, match="expected 2 scales and zero points"):
        ours(_per_channel(axis=0, scales=1))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_quantized_tensor_outside_of_its_storage_is_refused() -> None:
    """The stride of a quantized tensor is held against its storage, as of any other."""
    with pytest.raises(RecordMismatch, match="inside its 4 bytes"):
        ours(_per_channel(axis=0, scales=2, stride=(1000, 1)))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_honest_twins_load() -> None:
    """The control: what is declared as it is loads with both, and is equal."""
    plain = pickled(tensor(storage("FloatStorage", "0", 4), [2, 2], [2, 1]), {"0": _FOUR})
    quantized = _per_channel(axis=0, scales=2)

    assert torch.equal(ours(plain), stock(plain))
    assert torch.equal(ours(quantized).dequantize(), stock(quantized).dequantize())


def _per_channel(*, axis: int, scales: int, stride: tuple[int, int] = (2, 1)) -> bytes:
    quantizer = tupled(
        named("torch", "per_channel_affine"),
        tensor(storage("DoubleStorage", "1", scales), [scales], [1]),
        tensor(storage("LongStorage", "2", 2), [2], [1]),
        integer(axis),
    )
    program = call(
        "torch._utils",
        "_rebuild_qtensor",
        storage("QInt8Storage", "0", 4),
        integer(0),
        tupled(integer(2), integer(2)),
        tupled(*map(integer, stride)),
        quantizer,
        b"\x89",
        b"ccollections\nOrderedDict\n)R",
    )
    contents = {"0": b"\1\2\3\4", "1": struct.pack("<d", 0.5) * scales, "2": b"\0" * 16}
    return pickled(program, contents)
