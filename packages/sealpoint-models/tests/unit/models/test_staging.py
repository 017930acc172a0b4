# SPDX-License-Identifier: Apache-2.0
"""Loading onto an accelerator gives what loading into memory gives; only where there is one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import sealpoint
from sealpoint.errors import Edited
from sealpoint_models import load_checkpoint, open_checkpoint, save_checkpoint
from sealpoint_models._file_reader import PIECE_BYTES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")

_THREAD = "run"


@pytest.fixture
def state() -> dict[str, Any]:
    """Tensors of less than a buffer, of many of them, and of every kind that is built."""
    shared = torch.randn(64, 64)
    return {
        "large": torch.randint(0, 255, (7 * PIECE_BYTES + 13,), dtype=torch.uint8),
        "small": [torch.randn(place + 1) for place in range(300)],
        "middle": [torch.randn(PIECE_BYTES // 12) for _ in range(20)],
        "empty": torch.empty(0, 3),
        "flags": torch.arange(9) % 2 == 0,
        "parameter": torch.nn.Parameter(torch.randn(3, 3)),
        "views": (shared, shared.t(), shared[3:5]),
        "sparse": torch.eye(5).to_sparse(),
        "array": torch.arange(12).numpy().reshape(3, 4),
        "plain": {"epoch": 3},
    }


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    """A store of its own."""
    (tmp_path / "data").mkdir()
    url = f"sqlite:///{tmp_path / 'data' / 'runs.db'}"
    places: Any = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    sealpoint.init(url, **places)
    with sealpoint.open_store(url, **places) as opened:
        yield opened


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value.to_dense() if value.is_sparse else value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)


@pytest.mark.parametrize("sealed", [False, True])
def test_the_device_holds_what_the_file_does(
    tmp_path: Path, store: Any, state: dict[str, Any], *, sealed: bool
) -> None:
    """Every tensor arrives as it was saved, and arrays stay in memory."""
    path = tmp_path / "m.safetensors"
    run: Any = {"store": store, "thread": _THREAD} if sealed else {}
    save_checkpoint(state, path, **run)

    loaded = load_checkpoint(path, "cuda", **run)

    found = list(_tensors(loaded))
    assert {tensor.device.type for tensor in found} == {"cuda"}
    for mine, saved in zip(found, _tensors(state), strict=True):
        assert torch.equal(mine.cpu(), saved)
    assert (loaded["array"] == state["array"]).all()
    assert loaded["views"][0].data_ptr() == loaded["views"][1].data_ptr()


def test_a_changed_tensor_never_reaches_the_caller(
    tmp_path: Path, store: Any, state: dict[str, Any]
) -> None:
    """One bit on the disk, and the load to a device is refused as any other."""
    path = tmp_path / "m.safetensors"
    save_checkpoint(state, path, store=store, thread=_THREAD)
    with open_checkpoint(path) as model:
        place = max(model.tensors, key=lambda tensor: tensor.size).end - 1
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)

    with pytest.raises(Edited):
        load_checkpoint(path, "cuda", store=store, thread=_THREAD)


def test_one_tensor_alone(tmp_path: Path, state: dict[str, Any]) -> None:
    """A tensor by its name goes the same way."""
    path = tmp_path / "m.safetensors"
    save_checkpoint({"large": state["large"]}, path)

    with open_checkpoint(path) as model:
        loaded = model.tensor("large", "cuda:0")

    assert loaded.device == torch.device("cuda", 0)
    assert torch.equal(loaded.cpu(), state["large"])
