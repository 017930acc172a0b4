# SPDX-License-Identifier: Apache-2.0
"""The file backend passes the one suite that every backend passes."""

import os
from pathlib import Path

import pytest

from sealpoint.storage import Storage
from sealpoint.storage.file import FileStorage
from sealpoint_testing.conformance.storage import StorageConformance


@pytest.fixture(autouse=True)
def _power_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite is not about power cuts, and a sync for every blob takes its time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


class TestFileStorage(StorageConformance):
    """A directory of plain files."""

    def open(self, place: Path) -> Storage:
        """Open the one store of a directory."""
        return FileStorage(place / "store", create=True)
