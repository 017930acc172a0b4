# SPDX-License-Identifier: Apache-2.0
"""New stores for the tests of the adapter, on every backend, with any policy."""

from pathlib import Path
from typing import Any

import sealpoint
from sealpoint.api import Store
from tests.effort import in_soak
from tests.postgres_server import schema_of, shared_server

__all__ = ["BACKENDS", "opened", "path_of", "places", "url_of"]

BACKENDS = ("memory", "sqlite", "file", in_soak("postgres"))


def places(home: Path) -> dict[str, Any]:
    """Where keys and anchor of a store lie, and what a database asks for, if it is in one."""
    return {
        "config_dir": home / "config",
        "state_dir": home / "state",
        "password": lambda: shared_server().password,
    }


def path_of(backend: str, home: Path) -> Path:
    """Where the bytes of a store lie; for one on a server, what its schema is named after."""
    return home / "disk" if backend == "file" else home / "disk" / "agents.db"


def url_of(backend: str, home: Path) -> str:
    """The address of a store on a backend that has one."""
    path = path_of(backend, home)
    if backend == "postgres":
        return shared_server().url(schema=schema_of(path))
    return f"sqlite:///{path}" if backend == "sqlite" else f"file://{path}"


def opened(backend: str, home: Path, *, policy: str = "solo", identity: str = "worker") -> Store:
    """A store of its own; the same one again if it is there."""
    if backend == "memory":
        return sealpoint.open_store("memory:")
    url = url_of(backend, home)
    if not home.exists():
        (home / "disk").mkdir(parents=True, mode=0o700)
        sealpoint.init(url, policy=policy, **places(home))
    return sealpoint.open_store(url, identity=identity, **places(home))
