# SPDX-License-Identifier: Apache-2.0
"""Every test runs without settings of whoever runs it, on a terminal of 100 columns.

Tests of keys under a passphrase may encrypt at the least cost.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpoint.signing import _key_file_format
from tests.cli.machine import Machine

_CIPHER = _key_file_format._cipher
_SCRYPT_N_LEAST = 2
_VARIABLES = ("STORE", "IDENTITY", "NAMESPACE", "CONFIG_DIR", "STATE_DIR")


@pytest.fixture(autouse=True, scope="session")
def _no_settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        for name in _VARIABLES:
            environment.delenv(f"SEALPOINT_{name}", raising=False)
        for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            environment.delenv(name, raising=False)
        environment.setenv("COLUMNS", "100")
        yield


@pytest.fixture
def quick_passphrases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encrypt key files at the least cost: for tests of what happens, not of what it costs."""
    monkeypatch.setattr(
        _key_file_format, "_cipher", lambda words, salt, _: _CIPHER(words, salt, _SCRYPT_N_LEAST)
    )


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
