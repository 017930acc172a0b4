# SPDX-License-Identifier: Apache-2.0
"""New stores for the tests of the adapter, on every backend, with any policy."""

from pathlib import Path
from typing import Any

import sealpoint
from sealpoint.api import Store

__all__ = ["BACKENDS", "opened", "places", "url_of"]

BACKENDS = ("memory", "sqlite", "file")


def places(home: Path) -> dict[str, Any]:
    """Where keys and anchor of a store lie."""
    return {"config_dir": home / "config", "state_dir": home / "state"}


def url_of(backend: str, home: Path) -> str:
    """The address of a store on a backend that has one."""
    return f"sqlite:///{home}/disk/agents.db" if backend == "sqlite" else f"file://{home}/disk"


def opened(backend: str, home: Path, *, policy: str = "solo", identity: str = "worker") -> Store:
    """A store of its own; the same one again if it is there."""
    if backend == "memory":
        return sealpoint.open_store("memory:")
    url = url_of(backend, home)
    if not home.exists():
        (home / "disk").mkdir(parents=True, mode=0o700)
        sealpoint.init(url, policy=policy, **places(home))
    return sealpoint.open_store(url, identity=identity, **places(home))
