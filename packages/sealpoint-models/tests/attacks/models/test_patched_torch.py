# SPDX-License-Identifier: Apache-2.0
"""A process whose torch was changed: loaders patched, classes allowed, flags set.

Packages patch `torch.load` so that old checkpoints load, and lists of allowed classes are shared by
all code of a process. None of it decides anything here, since none of it is asked.
"""

import argparse
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sealpoint.errors import GlobalNotAllowed
from sealpoint_models import load_checkpoint
from tests.pt_files import call, ours, pickled, saved, text


class _Allowed:
    """What an application allowed for torch."""


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A torch whose loaders all raise, and what was called of them."""
    called: list[str] = []

    def told(name: str) -> Any:
        def raising(*_arguments: Any, **_options: Any) -> Any:
            called.append(name)
            raise AssertionError(name)

        return raising

    for name in ("load", "_load", "_legacy_load"):
        monkeypatch.setattr(torch.serialization, name, told(name))
    monkeypatch.setattr(torch, "load", told("torch.load"))
    monkeypatch.setattr(torch._weights_only_unpickler, "load", told("unpickler"))
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with torch.serialization.safe_globals([_Allowed]):
        yield called


def test_no_loader_of_torch_is_called(patched: list[str], tmp_path: Path) -> None:
    """Files of every wrapping load while each loader of torch would raise."""
    state: dict[str, Any] = {"a": torch.arange(3.0), "b": [1, "x"]}
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        torch.save(state, tmp_path / "a.pt", **options)
        loaded = load_checkpoint(tmp_path / "a.pt")
        assert torch.equal(loaded["a"], state["a"])
        assert loaded["b"] == [1, "x"]

    assert patched == []


def test_what_an_application_allowed_is_refused(patched: list[str]) -> None:
    """The list is torch's, and has no meaning here."""
    with pytest.raises(GlobalNotAllowed, match="_Allowed"):
        ours(saved(_Allowed()))

    assert patched == []


def test_nothing_is_imported_or_run_while_a_file_is_read(tmp_path: Path) -> None:
    """An audit hook sees every import and every process of a load that reads names as data."""
    marker = tmp_path / "ran"
    payload = call("os", "system", text(f"touch {marker}"))
    importing = call("never_imported_module", "function", text("x"))
    seen: list[str] = []
    watching = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event in ("import", "os.system", "subprocess.Popen", "exec", "compile"):
            seen.append(f"{event} {arguments[0]!r}")

    ours(pickled(text("warm")))
    data = pickled(b"(" + payload + importing + b"t")
    sys.addaudithook(hook)
    with pytest.raises(GlobalNotAllowed, match=r"'os\.system', 'never_imported_module\.function'"):
        ours(data)
    with io.BytesIO() as file:
        torch.save(argparse.Namespace(a=1), file)
        loaded = ours(file.getvalue())
    watching = False

    assert loaded == argparse.Namespace(a=1)
    assert seen == []
    assert not marker.exists()
