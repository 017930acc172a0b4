# SPDX-License-Identifier: Apache-2.0
"""A store on disk with its own keys and anchor, and how it is read back after a fault."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sealpoint
from sealpoint import aio
from sealpoint.anchor import Anchor
from sealpoint.api import Store
from sealpoint.ledger import Kind, parse_header
from sealpoint.store import Core
from tests.postgres_server import schema_of, shared_server

__all__ = ["KINDS", "Fact", "Place", "anchor_of", "core_of", "facts"]

_URLS = {
    "sqlite": "sqlite:///{}/agents.db",
    "file": "file:///{}/agents",
}
KINDS = tuple(_URLS)
"""The backends of one machine, on which all faults are tested."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the store of one test lies: a backend, a configuration and a state directory."""

    directory: Path
    kind: str = "sqlite"

    @property
    def url(self) -> str:
        """The URL of the store."""
        if self.kind == "postgres":
            return self._server.read_text(encoding="utf-8").split()[0]
        return _URLS[self.kind].format(self.directory / "store")

    def make(self, **options: Any) -> "Place":
        """Initialise the store."""
        (self.directory / "store").mkdir(parents=True, mode=0o700)
        if self.kind == "postgres":
            server = shared_server()
            url = server.url(schema=schema_of(self.directory))
            self._server.write_text(f"{url} {server.password}", encoding="utf-8")
        return self.init(**options)

    @property
    def _server(self) -> Path:
        """The file that tells every process where the server is."""
        return self.directory / "server"

    def init(self, **options: Any) -> "Place":
        """Initialise the store in the directory that is there, below parents that need not be."""
        sealpoint.init(self.url, **self._directories(), **options)
        return self

    def open(self, **options: Any) -> Store:
        """Open the store with fresh handles."""
        return sealpoint.open_store(self.url, **self._directories(), **options)

    def open_async(self) -> aio.Opening:
        """Open the store for async code."""
        return aio.open_store(self.url, **self._directories())

    def _directories(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "config_dir": self.directory / "home" / "config" / "sealpoint",
            "state_dir": self.directory / "home" / "state" / "sealpoint",
        }
        if self.kind == "postgres":
            found["password"] = self._server.read_text(encoding="utf-8").split()[1]
        return found


@dataclass(frozen=True, slots=True)
class Fact:
    """A checkpoint as the verified chain has it."""

    seq: int
    session: int
    """The position of the resume entry that opened its session."""
    id: str
    metadata: dict[str, Any]


def core_of(store: Store) -> Core:
    """What an open store is made of."""
    return store._checkpoints.core


def anchor_of(store: Store) -> Anchor:
    """The anchor of an open store."""
    return core_of(store).anchor


def facts(store: Store, name: str) -> list[Fact]:
    """Every checkpoint of a thread, oldest first, with the session it belongs to.

    `history` has verified the head and walks every hash link down from it; the sessions are
    read from the same headers.
    """
    thread = store.thread(name)
    refs = list(thread.history())[::-1]
    headers = {
        seq: parse_header(record.header)
        for seq, record in core_of(store).storage.scan(thread._state.chain.thread, 0)
    }
    kinds = [header.kind for header in headers.values()]
    assert kinds.count(Kind.GENESIS) == 1
    assert kinds.count(Kind.CHECKPOINT) == len(refs)
    return [Fact(ref.seq, headers[ref.seq].fence, ref.id, ref.metadata) for ref in refs]
