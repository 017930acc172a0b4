# SPDX-License-Identifier: Apache-2.0
"""Honest files of every kind load as torch loads them, type for type."""

import io
import random
import struct
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from sealpoint.errors import ExtraMissing, ModelError, ModelMalformed
from sealpoint_models._optional_packages import require_torch
from sealpoint_models._torch_files import load_pt, load_trusted
from tests.pt_files import (
    archive,
    as_file,
    call,
    integer,
    named,
    ours,
    pickled,
    records_of,
    saved,
    stock,
    storage,
    tensor,
    text,
    tupled,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class _Net(nn.Module):
    """Layers of several kinds, two of which share a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)
        self.memory = nn.LSTM(3, 4, num_layers=2)


def _trained(kind: Any) -> tuple[nn.Module, Any]:
    net = _Net()
    optimizer = kind(net.parameters(), lr=0.1)
    net.norm(net.second(net.first(torch.randn(4, 3)))).sum().backward()
    optimizer.step()
    return net, optimizer


def _state(kind: Any) -> object:
    return _trained(kind)[1].state_dict()


def _schedules() -> object:
    _, optimizer = _trained(torch.optim.SGD)
    kinds = torch.optim.lr_scheduler
    return [
        kinds.CosineAnnealingLR(optimizer, 10).state_dict(),
        kinds.OneCycleLR(optimizer, 0.1, total_steps=5).state_dict(),
        kinds.MultiStepLR(optimizer, [3, 3, 7]).state_dict(),
        kinds.ReduceLROnPlateau(optimizer).state_dict(),
    ]


def _views() -> object:
    whole = torch.arange(24.0).reshape(2, 3, 4)
    return [whole, whole[0], whole[:, 1], whole.transpose(0, 2), whole[2:], whole[..., ::2]]


def _quantized() -> object:
    values, scales = torch.randn(2, 3), torch.tensor([0.1, 0.2])
    zeros = torch.tensor([0, 1])
    return [
        torch.quantize_per_tensor(values, 0.1, 3, torch.qint8),
        torch.quantize_per_tensor(values, 0.1, 3, torch.quint8),
        torch.quantize_per_tensor(values, 0.1, 0, torch.qint32),
        torch.quantize_per_channel(values, scales, zeros, 0, torch.quint8),
        torch.quantize_per_channel(values, scales, zeros.float(), 0, torch.quint8),
    ]


def _sparse() -> object:
    unit = torch.eye(4)
    return [
        unit.to_sparse(),
        torch.sparse_coo_tensor(torch.tensor([[1, 1], [0, 0]]), torch.ones(2), (2, 2)),
        torch.randn(3, 4, 2).to_sparse(2),
        torch.zeros(3, 3).to_sparse(),
        unit.to_sparse_csr(),
        unit.to_sparse_csc(),
        unit.to_sparse_bsr((2, 2)),
        unit.to_sparse_bsc((2, 2)),
        torch.stack([unit, unit]).to_sparse_csr(),
        torch.zeros(2, 3).to_sparse_csr(),
        nn.Parameter(unit.to_sparse()),
    ]


_DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64),
    *(torch.complex128, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    *(torch.bool, torch.uint16, torch.uint32, torch.uint64, torch.complex32),
    *(torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz),
    torch.float8_e8m0fnu,
]
_PLAIN = {
    "ints": [0, -1, 255, 256, 65536, 1 << 31, -(1 << 31) - 1, 1 << 63, -(1 << 63), 1 << 2000],
    "floats": [1.5, -0.0, float("inf")],
    "texts": ["", "ü€𝄞", "a" * 70_000],
    "bytes": [b"\0\xff", bytearray(b"ab"), bytearray()],
    "complex": [1 + 2j, -0.0j],
    "nested": {"a": [{"b": (1, (), [])}], 3: None, (1, "x"): True, None: 2.5, b"k": 1, 1j: 2},
    "sets": [{1, "a", (2, 3), None, 2.5, b"x"}, set()],
    "torch": [torch.Size([2, 3]), torch.device("cuda:1"), torch.device("cpu"), torch.float32],
    "names": [torch.strided, torch.sparse_coo, torch.per_tensor_affine, torch.qint8, torch.uint16],
    "keys": {torch.float32: 1, torch.Size([1]): 2, torch.device("cpu"): 3},
    "counters": [Counter("abca"), Counter(), OrderedDict(b=1, a=2)],
    "long": list(range(3000)),
}
_ZOO: dict[str, Callable[[], object]] = {
    "state dict": lambda: _Net().state_dict(),
    "parameters": lambda: list(_Net().parameters()),
    "SGD": lambda: _state(torch.optim.SGD),
    "Adam": lambda: _state(torch.optim.Adam),
    "AdamW": lambda: _state(torch.optim.AdamW),
    "schedules": _schedules,
    "random numbers": lambda: [torch.get_rng_state(), random.getstate()],
    "plain": lambda: _PLAIN,
    "quantized": _quantized,
    "sparse": _sparse,
    "views": _views,
    "types": lambda: [torch.ones(3).to(dtype) for dtype in _DTYPES],
    "empty": lambda: [torch.empty(0), torch.empty(0, 3, dtype=torch.int8), torch.tensor(3.0)],
    "expanded": lambda: [torch.ones(1).expand(1000), torch.ones(2, 1).expand(2, 5)],
    "bits": lambda: [torch.tensor([1 + 1j]).conj(), torch.tensor([1 + 1j]).conj().imag],
    "channels last": lambda: torch.randn(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "many": lambda: [torch.tensor(index) for index in range(300)],
    "gradient": lambda: torch.ones(2, requires_grad=True),
    "nothing": lambda: None,
}


def _elements(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_quantized:
        return tensor.int_repr()
    if tensor.layout is not torch.strided:
        return tensor.to_dense()
    held = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return torch.tensor(list(held.untyped_storage()), dtype=torch.uint8)


def assert_same(found: Any, expected: Any) -> None:
    """Both are the same, type for type and bit for bit."""
    assert type(found) is type(expected)
    if isinstance(expected, torch.Tensor):
        for attribute in ("dtype", "shape", "layout", "requires_grad", "is_leaf", "device"):
            assert getattr(found, attribute) == getattr(expected, attribute)
        if expected.layout is torch.strided:
            assert found.stride() == expected.stride()
            assert found.storage_offset() == expected.storage_offset()
            assert found.is_conj() == expected.is_conj()
            assert found.is_neg() == expected.is_neg()
        assert torch.equal(_elements(found), _elements(expected))
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_same(found[key], expected[key])
        assert getattr(found, "__dict__", None) == getattr(expected, "__dict__", None)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            assert_same(mine, theirs)
    else:
        assert found == expected


@pytest.mark.parametrize("make", _ZOO.values(), ids=_ZOO)
def test_honest_file_loads_as_with_torch(make: Callable[[], object]) -> None:
    """What torch saved is the same from both loaders."""
    data = saved(make())

    assert_same(ours(data), stock(data))


def test_shared_storages_stay_shared() -> None:
    """Tied weights and views are still one memory."""
    loaded = ours(saved(_Net().state_dict()))

    assert loaded["first.weight"].data_ptr() == loaded["second.weight"].data_ptr()


def test_metadata_of_a_state_dict_stays() -> None:
    """The versions of its modules are needed to load it into a module."""
    net = _Net()

    net.load_state_dict(ours(saved(net.state_dict())))


@pytest.mark.parametrize(
    "make",
    [
        lambda records: records,
        lambda records: {k: v for k, v in records.items() if k[0] != "." and k != "byteorder"},
        lambda records: {k: v for k, v in records.items() if k[0] != "."},
        lambda records: dict(sorted(records.items())),
    ],
    ids=["today", "1.6", "2.0", "another order"],
)
def test_file_of_an_older_torch_loads(
    make: Callable[[dict[str, bytes]], dict[str, bytes]],
) -> None:
    """The sets of records that releases since 1.6 wrote are all accepted."""
    data = saved({"a": torch.ones(3)})

    assert_same(ours(archive(make(records_of(data)), folder="my model")), stock(data))


def test_our_writer_writes_what_torch_writes() -> None:
    """The archives that tests put together differ from torch's in nothing."""
    data = saved(_Net().state_dict())

    assert archive(records_of(data)) == data


def test_file_saved_under_a_name_loads(tmp_path: Path) -> None:
    """Torch names the folder after the file."""
    path = tmp_path / "épreuve.v2 (1).pt"
    torch.save({"a": torch.ones(3)}, path)

    assert_same(ours(path.read_bytes()), stock(path.read_bytes()))


def test_file_without_checksums_loads() -> None:
    """Torch can be told to write none."""
    torch.serialization.set_crc32_options(compute_crc32=False)
    try:
        data = saved({"a": torch.ones(3)})
    finally:
        torch.serialization.set_crc32_options(compute_crc32=True)

    assert_same(ours(data), stock(data))


@pytest.mark.parametrize("alignment", [4096, 1, 1 << 14])
def test_other_alignment_loads(alignment: int) -> None:
    """Torch can be told to align storages with pages."""
    config: Any = torch.utils.serialization.config
    with config.patch("save.storage_alignment", alignment):
        data = saved([torch.ones(3), torch.ones(2)])

    assert_same(ours(data), stock(data))


def test_elements_in_the_other_byte_order_are_swapped() -> None:
    """A file of a big-endian machine loads with its numbers."""
    records = records_of(saved(torch.tensor([1.0])))
    records |= {"byteorder": b"big", "data/0": b"\x3f\x80\0\0"}

    assert ours(archive(records)).tolist() == [1.0]


def test_older_forms_of_calls_load() -> None:
    """A tensor without gradient and hooks, a bytearray of a text, a sparse tensor without flag."""
    held = storage("FloatStorage", "0", 2)
    old = call("torch._utils", "_rebuild_tensor", held, integer(0), *[tupled(integer(2))] * 1)
    old = old.removesuffix(b"tR") + tupled(integer(1)) + b"tR"
    array = call("__builtin__", "bytearray", text("\xff"), text("latin-1"))
    data = pickled(tupled(old, array), {"0": b"\0" * 8})

    assert_same(ours(data), stock(data))


def test_tensors_of_torch_0_4_load() -> None:
    """They have nothing in the place of hooks, and were often written by Python 2."""
    held = storage("FloatStorage", "7", 1)
    place = integer(0), tupled(integer(1)), tupled(integer(1)), b"\x89", b"N"
    program = tupled(b"U\x02up", call("torch._utils", "_rebuild_tensor_v2", held, *place))
    data = pickled(program, {"7": bytes(4)})

    assert_same(ours(data), stock(data))


def test_attributes_that_frameworks_put_on_tensors_stay() -> None:
    """A buffer of torch, and the marks of transformers and others, are read as torch reads them."""
    weight = nn.Parameter(torch.ones(2))
    vars(weight).update(_is_hf_initialized=True, tag={"a": 1})
    data = saved([torch.nn.Buffer(torch.ones(2)), weight])
    found, expected = ours(data), stock(data)

    assert_same(found, expected)
    assert [vars(tensor) for tensor in found] == [vars(tensor) for tensor in expected]
    assert isinstance(found[0], torch.nn.Buffer)


def test_device_that_is_not_there_is_named() -> None:
    """The message says where the tensors were and what to do."""
    data = pickled(tensor(storage("FloatStorage", "0", 1, "cuda:7"), [1], [1]), {"0": b"\0" * 4})

    with pytest.raises(ModelError, match="expected device 'cuda:7' to take a tensor") as caught:
        ours(data, None)
    assert "map_location" in str(caught.value.hint)
    assert ours(data).device.type == "cpu"


@pytest.mark.parametrize("location", [None, "cpu", torch.device("cpu"), {"cpu": "cpu"}, "meta"])
def test_every_form_of_map_location_is_passed_on(location: Any) -> None:
    """It means what it means to torch."""
    loaded = ours(saved(torch.ones(3)), location)

    assert loaded.device.type == ("meta" if location == "meta" else "cpu")


def test_missing_torch_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message holds the command that installs it."""
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(ExtraMissing) as caught:
        require_torch()
    assert caught.value.message.startswith(
        "sealpoint_models: expected torch, found it missing: pip install 'sealpoint[models]'"
    )


def test_trusted_file_may_hold_anything(tmp_path: Path) -> None:
    """What is asked for by its name runs what the file says."""
    path = as_file(tmp_path, saved(Path("x")))

    assert load_trusted(path, "cpu") == Path("x")


def test_file_is_left_open(tmp_path: Path) -> None:
    """It belongs to the caller."""
    path = as_file(tmp_path, saved(torch.ones(2)))
    with io.FileIO(path) as file:
        load_pt(file, path.stat().st_size, "m.pt", "cpu")

        assert not file.closed


def test_zero_point_and_scale_are_plain_numbers() -> None:
    """A quantizer of anything else is refused."""
    one = b"G" + struct.pack(">d", 1.0)
    for scale, zero in (
        (text("x"), integer(0)),
        (b"G" + bytes(8), integer(0)),
        (b"G" + struct.pack(">d", float("nan")), integer(0)),
        (one, integer(1 << 40)),
        (one, integer(128)),
        (one, integer(-129)),
    ):
        quantizer = tupled(named("torch", "per_tensor_affine"), scale, zero)
        parts = (storage("QInt8Storage", "0", 1), integer(0), tupled(integer(1)))
        program = call("torch._utils", "_rebuild_qtensor", *parts, tupled(integer(1)), quantizer)
        program = program.removesuffix(b"tR") + b"\x89ccollections\nOrderedDict\n)RtR"

        with pytest.raises(ModelMalformed, match=r"quantizer|zero point|scale above 0"):
            ours(pickled(program, {"0": b"\0"}))
