# SPDX-License-Identifier: Apache-2.0
"""Loading a checkpoint is safe unless somebody says otherwise, and then never by accident.

Runs by itself: `PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 pytest -q` and this file.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sealpoint_models import UnsafeLoadWarning, load_checkpoint

torch: Any = pytest.importorskip("torch")


@pytest.fixture
def state() -> dict[str, Any]:
    """A state dict of tensors only."""
    return {"linear.weight": torch.randn(2, 3), "linear.bias": torch.randn(2)}


@pytest.fixture
def path(tmp_path: Path, state: dict[str, Any]) -> Path:
    """The same, as `torch.save` writes it."""
    file = tmp_path / "model.pt"
    torch.save(state, file)
    return file


def _is_same(loaded: Any, state: dict[str, Any]) -> bool:
    return (
        isinstance(loaded, Mapping)
        and loaded.keys() == state.keys()
        and all(
            type(loaded[name]) is torch.Tensor
            and loaded[name].shape == tensor.shape
            and loaded[name].dtype == tensor.dtype
            and torch.equal(loaded[name], tensor)
            for name, tensor in state.items()
        )
    )


def test_a_state_dict_loads_safely_as_a_mapping_of_tensors(
    path: Path, state: dict[str, Any]
) -> None:
    """What `torch.save` wrote comes back with `safe=True`."""
    loaded = load_checkpoint(path, safe=True, map_location="cpu")

    assert _is_same(loaded, state)


def test_safe_is_the_default(path: Path, state: dict[str, Any]) -> None:
    """Without a word about it, loading is safe."""
    assert _is_same(load_checkpoint(path), state)


def test_a_torch_without_the_parameter_is_not_asked(
    path: Path, state: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `torch.load` that does not know `weights_only` has no part in a safe load."""
    calls = []

    def old_load(file: Any, map_location: Any = None) -> Any:
        calls.append((file, map_location))
        return {}

    monkeypatch.setattr(torch, "load", old_load)

    assert _is_same(load_checkpoint(path, safe=True), state)
    assert not calls


def test_an_unsafe_load_round_trips_the_same_file(path: Path, state: dict[str, Any]) -> None:
    """`safe=False` loads what `safe=True` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsafeLoadWarning)
        loaded = load_checkpoint(path, safe=False, map_location="cpu")

    assert _is_same(loaded, state)
