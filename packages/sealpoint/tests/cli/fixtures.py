# SPDX-License-Identifier: Apache-2.0
"""Every test runs without settings of whoever runs it, on a terminal of 100 columns."""

from pathlib import Path

import pytest

from tests.cli.machine import Machine

_VARIABLES = ("STORE", "IDENTITY", "NAMESPACE", "CONFIG_DIR", "STATE_DIR")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(f"SEALPOINT_{name}", raising=False)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a new store."""
    made = Machine(tmp_path / "disk" / "store.db", tmp_path / "one")
    made.done("init")
    return made


@pytest.fixture
def other(tmp_path: Path) -> Machine:
    """Another machine, which sees the same store and knows nothing about it."""
    return Machine(tmp_path / "disk" / "store.db", tmp_path / "two")
