# SPDX-License-Identifier: Apache-2.0
"""A file that somebody changes while it is loaded, or after."""

import io
from pathlib import Path
from typing import Any

import pytest
import torch

from sealpoint.errors import ModelUnreadable
from sealpoint_models import _torch_files
from sealpoint_models._optional_packages import require_torch
from sealpoint_models._torch_files import load_pt
from tests.pt_files import as_file, call, ours, pickled, records_of, saved, text


def _load_while(path: Path, monkeypatch: pytest.MonkeyPatch, change: Any) -> Any:
    """Load a file that is changed between the last check and the first tensor."""
    required = require_torch

    def require_then_change() -> Any:
        change()
        return required()

    monkeypatch.setattr(_torch_files, "require_torch", require_then_change)
    with io.FileIO(path) as file:
        return load_pt(file, path.stat().st_size, "m.pt", "cpu")


def test_structure_that_changes_after_the_check_is_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another pickle written over the one that was checked has no effect."""
    marker = tmp_path / "ran"
    honest = pickled(text("x" * 200))
    command = call("os", "system", text(f"touch {marker}"))
    hostile = pickled(text("y" * (200 - len(command))) + command)
    path = as_file(tmp_path, honest)

    loaded = _load_while(path, monkeypatch, lambda: path.write_bytes(hostile))

    assert loaded == "x" * 200
    assert not marker.exists()


def test_only_elements_can_change_during_a_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All bytes are overwritten: what was checked stays, and numbers are other numbers."""
    path = as_file(tmp_path, saved({"a": torch.ones(4), "b": "text"}))
    size = path.stat().st_size

    loaded = _load_while(path, monkeypatch, lambda: path.write_bytes(b"\0" * size))

    assert loaded["a"].tolist() == [0, 0, 0, 0]
    assert loaded["b"] == "text"


def test_file_cut_off_during_a_load_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elements that are gone are not made up."""
    path = as_file(tmp_path, saved({"a": torch.ones(4000)}))

    with pytest.raises(ModelUnreadable, match=r"m\.pt: expected \d+ bytes at \d+, found its end"):
        _load_while(path, monkeypatch, lambda: path.write_bytes(b""))


def test_what_was_loaded_does_not_change_with_the_file(tmp_path: Path) -> None:
    """With `mmap` torch's tensors follow the file after the load; ours are memory of their own."""
    data = saved(torch.ones(4))
    path = as_file(tmp_path, data)
    mapped = torch.load(path, weights_only=True, mmap=True)
    with io.FileIO(path) as file:
        loaded = load_pt(file, len(data), "m.pt", "cpu")
    elements = records_of(data)["data/0"]

    with path.open("r+b") as file:
        file.write(data.replace(elements, b"\0" * 16))

    assert mapped.tolist() == [0, 0, 0, 0]
    assert loaded.tolist() == [1, 1, 1, 1]


def test_mapping_that_is_on_for_the_process_is_not_used() -> None:
    """The default of torch can be to map; a load here says no."""
    config: Any = torch.utils.serialization.config
    with config.patch("load.mmap", True):  # noqa: FBT003 - the interface of torch
        loaded = ours(saved(torch.ones(4)))

    assert loaded.tolist() == [1, 1, 1, 1]
