# SPDX-License-Identifier: Apache-2.0
"""A store with its configuration and anchor below one directory, as `sealpoint init` makes it."""

import gc
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sealpoint
from sealpoint import api

__all__ = ["Site", "new_site", "quiet_collector"]


class Site:
    """One set-up; it is made unless it is there."""

    def __init__(self, directory: Path, *, scheme: str = "sqlite", policy: str = "solo") -> None:
        self.data = directory / "data"
        self.file = self.data / "agents.db"
        self.url = f"{scheme}:///{self.file}" if scheme == "sqlite" else f"file://{self.data}"
        self._where: Any = {"config_dir": directory / "config", "state_dir": directory / "state"}
        if not self.data.exists():
            self.data.mkdir()
            sealpoint.init(self.url, policy=policy, **self._where)

    def open(self, **options: Any) -> sealpoint.Store:
        """Open the store, cold."""
        return sealpoint.open_store(self.url, **self._where, **options)

    def admin(self) -> api.Admin:
        """The administration of the store."""
        return api.admin(self.url, **self._where)

    def disk_bytes(self) -> int:
        """What lies in the directory of the data."""
        return sum(path.stat().st_size for path in self.data.rglob("*") if path.is_file())


@contextmanager
def new_site(*, scheme: str = "sqlite", policy: str = "solo") -> Iterator[Site]:
    """A set-up that is gone afterwards."""
    quiet_collector()
    with tempfile.TemporaryDirectory() as directory:
        yield Site(Path(directory), scheme=scheme, policy=policy)


def quiet_collector() -> None:
    """What the harness keeps (recorded steps, modules) is no garbage of either side.

    The collector need not walk it again and again while the two are timed.
    """
    gc.collect()
    gc.freeze()
