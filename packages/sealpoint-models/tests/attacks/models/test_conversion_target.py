# SPDX-License-Identifier: Apache-2.0
"""Somebody writes to the place of a converted file while it is converted."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from sealpoint.errors import UsageError
from sealpoint_models import _conversion, convert_checkpoint, load_checkpoint

_OTHERS = b"what somebody else put there"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file to convert."""
    path = tmp_path / "in.pt"
    torch.save({"epoch": 1}, path)
    return path


def _without_links(*_args: Any, **_kwargs: Any) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_replaced(
    source: Path, monkeypatch: pytest.MonkeyPatch, *, links: bool
) -> None:
    """It is told as one that was there before, also on a disk without second names for files."""
    target = source.with_name("out.safetensors")
    loaded = _conversion._loaded

    def load_while_others_write(*args: Any) -> Any:
        target.write_bytes(_OTHERS)
        return loaded(*args)

    if not links:
        monkeypatch.setattr(os, "link", _without_links)
    convert_checkpoint(source, source.with_name("honest.safetensors"))
    monkeypatch.setattr(_conversion, "_loaded", load_while_others_write)
    with pytest.raises(UsageError, match="expected no file there, found one"):
        convert_checkpoint(source, target)

    assert target.read_bytes() == _OTHERS
    assert len(list(source.parent.iterdir())) == 3
    assert load_checkpoint(source.with_name("honest.safetensors")) == {"epoch": 1}
