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

__all__ = ["Fact", "Place", "anchor_of", "core_of", "facts"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the store of one test lies: a file, a configuration and a state directory."""

    directory: Path

    @property
    def url(self) -> str:
        """The URL of the store."""
        return f"sqlite:///{self.directory}/store/agents.db"

    def make(self) -> "Place":
        """Initialise the store."""
        (self.directory / "store").mkdir(parents=True)
        sealpoint.init(self.url, **self._directories())
        return self

    def open(self, **options: Any) -> Store:
        """Open the store with fresh handles."""
        return sealpoint.open_store(self.url, **self._directories(), **options)

    def open_async(self) -> aio.Opening:
        """Open the store for async code."""
        return aio.open_store(self.url, **self._directories())

    def _directories(self) -> dict[str, Any]:
        return {"config_dir": self.directory / "config", "state_dir": self.directory / "state"}


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
        for seq, record in core_of(store).storage.scan(thread._chain.thread, 0)
    }
    kinds = [header.kind for header in headers.values()]
    assert kinds.count(Kind.GENESIS) == 1
    assert kinds.count(Kind.CHECKPOINT) == len(refs)
    return [Fact(ref.seq, headers[ref.seq].fence, ref.id, ref.metadata) for ref in refs]
