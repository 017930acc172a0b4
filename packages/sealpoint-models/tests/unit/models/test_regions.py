# SPDX-License-Identifier: Apache-2.0
"""Tensors that share memory: what is written of it, and that it can be read again."""

from pathlib import Path

import numpy as np
import pytest
import torch

from sealpoint.errors import ValueNotAllowed
from sealpoint_models import load_checkpoint, save_checkpoint


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "a.safetensors"


def test_what_lies_between_is_not_written(path: Path) -> None:
    """Two columns of a matrix are a region; the others are not in the file."""
    matrix = torch.full((4, 100), 7.0)
    matrix[:, :2] = torch.arange(8.0).reshape(4, 2)

    save_checkpoint({"a": matrix[:, 0], "b": matrix[:, 1]}, path)
    first = path.read_bytes()
    matrix[:, 2:] = 8.0
    save_checkpoint({"a": matrix[:, 0], "b": matrix[:, 1]}, path)
    loaded = load_checkpoint(path)

    assert path.read_bytes() == first
    assert torch.equal(loaded["a"], matrix[:, 0])
    assert torch.equal(loaded["b"], matrix[:, 1])


def test_what_lies_before_is_not_written(path: Path) -> None:
    """Views of several types begin at a multiple of 16 bytes; what fills it up is zero."""
    memory = torch.full((32,), 255, dtype=torch.uint8)
    views = {"a": memory[9:21], "b": memory.view(torch.int32)[4:6]}

    save_checkpoint(views, path)
    loaded = load_checkpoint(path)

    assert path.read_bytes().endswith(bytes(9) + b"\xff" * 15)
    assert all(torch.equal(loaded[name], view) for name, view in views.items())


def test_repeated_elements_among_others(path: Path) -> None:
    """An expanded tensor, windows and a transposed one come back from one region."""
    memory = torch.arange(24.0)
    views = {
        "expanded": memory[3:4].expand(5, 4, 1),
        "windows": memory.unfold(0, 6, 2),
        "transposed": memory[1:13].reshape(3, 4).t(),
    }

    save_checkpoint(views, path)
    loaded = load_checkpoint(path)

    assert all(torch.equal(loaded[name], view) for name, view in views.items())


def test_wide_elements_in_narrow_ones(path: Path) -> None:
    """A view that does not begin at a multiple of its elements in the tensor that covers it."""
    memory = torch.arange(16, dtype=torch.uint8)
    views = {"a": memory.view(torch.int32)[1:4], "b": memory.view(torch.int64)[1:2]}

    save_checkpoint(views, path)
    loaded = load_checkpoint(path)

    assert all(torch.equal(loaded[name], view) for name, view in views.items())


@pytest.mark.parametrize("shared", [slice(0, 2), slice(1, 3)])
def test_booleans_that_cannot_be_read_again_are_refused(path: Path, shared: slice) -> None:
    """A reader refuses memory with other bytes than 0 and 1 if a view of it is of booleans."""
    memory = torch.tensor([0, 1, 1, 5], dtype=torch.uint8)
    state = {"a": memory[1:], "b": memory[shared].view(torch.bool)}

    with pytest.raises(ValueNotAllowed, match="expected booleans of 0 or 1"):
        save_checkpoint(state, path)
    assert not path.exists()


def test_one_address_of_two_storages(path: Path) -> None:
    """Memory that torch was lent twice, in two sizes, is not resized."""
    array = np.arange(10, dtype=np.float32)
    views = {"a": torch.from_numpy(array[:4]), "b": torch.from_numpy(array)[2:]}

    save_checkpoint(views, path)
    loaded = load_checkpoint(path)

    assert all(torch.equal(loaded[name], view) for name, view in views.items())
