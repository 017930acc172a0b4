# SPDX-License-Identifier: Apache-2.0
"""The store of the histories: real processes of a team, each with keys and anchor of one user."""

import shutil
from pathlib import Path

import sealpoint
from sealpoint.api import Store
from sealpoint.gate import Request
from tests.adapters.langgraph.stores import places, url_of
from tests.attacks.langgraph.office import APPROVERS, Office
from tests.differential.disk import disk_of

__all__ = ["Place"]


class Place:
    """A store under the policy `strict`, and everybody who has a say in it.

    Args:
        folder: Where everything is kept.
        backend: sqlite, file or postgres.
    """

    def __init__(self, folder: Path, backend: str) -> None:
        self._home, self._template = folder / "home", folder / "template"
        self._backend = backend
        self._open: list[Store] = []
        self._people: dict[str, Store] = {}
        self.disk = disk_of(backend, self._home / "disk")
        office = Office(self._home, backend=backend)
        office.enrol("officer", "privacy")
        office.close()
        shutil.copytree(self._home, self._template)
        self._rows = office.editor.copied() if backend == "postgres" else None

    def empty(self) -> None:
        """Begin anew: the store, its keys and its anchor are as on the first day."""
        self.close()
        shutil.rmtree(self._home)
        shutil.copytree(self._template, self._home)
        if self._rows is not None:
            self._rows()

    def process(self, identity: str = "worker") -> Store:
        """A new process of somebody."""
        url = url_of(self._backend, self._home)
        self._open.append(sealpoint.open_store(url, identity=identity, **places(self._home)))
        return self._open[-1]

    def of(self, name: str) -> Store:
        """The process of somebody else than a worker."""
        if name not in self._people:
            self._people[name] = self.process(name)
        return self._people[name]

    def approve(self, request: Request) -> None:
        """Let everybody approve who is asked."""
        for name in APPROVERS:
            self.of(name).approve(request.id, reason=f"{name} has looked")

    def deny(self, request: Request) -> None:
        """Let somebody deny."""
        self.of(APPROVERS[0]).deny(request.id, reason="not that")

    def renew(self) -> None:
        """Let everybody but the workers begin anew when they are needed."""
        for store in self._people.values():
            store.close()
        self._people.clear()

    def close(self) -> None:
        """End every process."""
        self._people.clear()
        while self._open:
            self._open.pop().close()
