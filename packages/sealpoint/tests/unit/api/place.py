# SPDX-License-Identifier: Apache-2.0
"""A place for a store on disk, with directories of its own."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sealpoint
from sealpoint import Admin, Store, TrustPin
from sealpoint.config import StoreFiles, StoreUrl, load_settings

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """Where a store, its keys and its anchor lie."""

    folder: Path

    def __post_init__(self) -> None:
        self.disk.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def disk(self) -> Path:
        """The directory of the store, which has nothing else in it."""
        return self.folder / "disk"

    @property
    def path(self) -> Path:
        """The file of the store."""
        return self.disk / "agents.db"

    @property
    def url(self) -> str:
        """The store's URL."""
        return f"sqlite:///{self.path}"

    @property
    def directories(self) -> dict[str, Any]:
        """Where keys and anchor lie, as arguments."""
        return {"config_dir": self.folder / "config", "state_dir": self.folder / "state"}

    @property
    def files(self) -> StoreFiles:
        """The files of the store in the configuration directory."""
        return StoreFiles(load_settings(**self.directories), StoreUrl.parse(self.url))

    @property
    def admin(self) -> Admin:
        """What administers the store."""
        return sealpoint.admin(self.url, **self.directories)

    def init(self) -> TrustPin:
        """Make the store."""
        return sealpoint.init(self.url, **self.directories)

    def open(self, **options: Any) -> Store:
        """Open the store."""
        return sealpoint.open_store(self.url, **(self.directories | options))

    @contextmanager
    def rows(self) -> Iterator[sqlite3.Connection]:
        """The bare file, as whoever holds the disk sees it."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            yield connection

    def is_untouched(self) -> bool:
        """Whether nobody has made anything here."""
        return list(self.folder.rglob("*")) == [self.disk]

    def everything(self) -> dict[str, bytes]:
        """Every file with its bytes."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }
