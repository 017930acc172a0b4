# SPDX-License-Identifier: Apache-2.0
"""A store of a team: two people who approve, an operator, and everybody's process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import sealpoint
from sealpoint import api
from sealpoint.api import Store
from sealpoint.errors import NeedsApproval
from sealpoint.gate import Request
from sealpoint.ledger import parse_header
from tests.adapters.langgraph.stores import opened, path_of, places, url_of
from tests.attacks.ledger.raw_editor import RawEditor, editor_of

__all__ = ["APPROVERS", "Team"]

APPROVERS = ("ann", "bob")


class Team:
    """Everybody's process, whatever the framework."""

    def __init__(self, home: Path, *, policy: str = "strict", backend: str = "sqlite") -> None:
        self.home = home
        self.worker = opened(backend, home, policy=policy)
        self._open = [self.worker]
        self._url = url_of(backend, home)
        for name in APPROVERS:
            self.enrol(name, "approver")
        self._people = {name: self.process(name) for name in (*APPROVERS, "operator")}
        self.editor: RawEditor = editor_of(backend, path_of(backend, home))

    def enrol(self, name: str, role: str) -> None:
        """Give somebody a key and a role."""
        self.admin.keys.create(name)
        self.admin.keys.add(name, person=name, roles=[role], namespaces=["*"])

    @property
    def admin(self) -> api.Admin:
        """What the root's key changes."""
        return api.admin(self._url, **places(self.home))

    def process(self, identity: str = "worker", **options: Any) -> Store:
        """A new process of somebody."""
        store = sealpoint.open_store(self._url, identity=identity, **places(self.home), **options)
        self._open.append(store)
        return store

    def close(self) -> None:
        """End every process."""
        for store in self._open:
            store.close()

    def asked(self, call: Callable[[], object]) -> Request:
        """The request that a call leads to."""
        try:
            found = call()
        except NeedsApproval as needs:
            return cast("Request", needs.request)
        raise AssertionError(f"not refused: {found!r}")

    def approve(self, request: Request, *people: str) -> None:
        """Let people approve."""
        for name in people or APPROVERS:
            self._people[name].approve(request.id, reason=f"{name} has looked")

    def operator(self) -> Store:
        """The process of who may pause."""
        return self._people["operator"]

    def kinds(self, thread: str) -> list[str]:
        """The kinds of all entries of a thread, read past every lock."""
        rows = self.editor.rows(bytes.fromhex(self.worker.thread(thread).id))
        return [str(parse_header(row.header).kind) for row in rows.values()]
