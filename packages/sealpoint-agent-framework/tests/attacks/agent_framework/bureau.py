# SPDX-License-Identifier: Apache-2.0
"""A store of a team with guarded workflows on it, each of which asks before it pays."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from sealpoint.errors import NeedsApproval
from sealpoint.gate import Request
from sealpoint_agent_framework import SealedCheckpointStorage, guard
from tests.adapters.agent_framework.payments import Payments, asked_of
from tests.adapters.agent_framework.stores import sealed
from tests.attacks.team import Team

__all__ = ["Bureau", "Noted", "Waiting", "once_admitted"]


class Noted(list[str]):
    """What workflows did; somebody may do something at the moment that they do it."""

    def __init__(self) -> None:
        super().__init__()
        self._then: dict[str, Callable[[], object]] = {}

    def then(self, told: str, do: Callable[[], object]) -> None:
        """Do something once, when something is told next."""
        self._then[told] = do

    def append(self, told: str) -> None:
        """Note it."""
        super().append(told)
        self._then.pop(told, lambda: None)()


class Waiting(NamedTuple):
    """A workflow that waits for a response."""

    workflow: Any
    request: str
    checkpoint: str
    """Where it waits."""
    thread: str
    storage: SealedCheckpointStorage

    def call(self, *, response: Any = True, **named: Any) -> dict[str, Any]:
        """The arguments of a call that answers, in any process."""
        return {"checkpoint_id": self.checkpoint, "responses": {self.request: response}, **named}


class Bureau(Team):
    """The worker has a storage and guarded workflows; a clerk may write as well."""

    def __init__(self, home: Path, *, policy: str = "strict", backend: str = "sqlite") -> None:
        super().__init__(home, policy=policy, backend=backend)
        self.enrol("clerk", "writer")
        self.storage = sealed(self.worker)

    def guarded(
        self, payments: Payments, storage: SealedCheckpointStorage | None = None, **named: Any
    ) -> Any:
        """A guarded workflow, as a new process makes it."""
        return guard(payments.build(**named), storage or self.storage, actor="dev")

    def another(self) -> SealedCheckpointStorage:
        """The storage of another process of the worker."""
        return sealed(self.process())

    async def waiting(
        self, payments: Payments, storage: SealedCheckpointStorage | None = None
    ) -> Waiting:
        """A guarded workflow that has asked; what it did so far is forgotten."""
        own = storage or sealed(self.worker)
        workflow = self.guarded(payments, own)
        request = asked_of(await workflow.run("ann"))
        checkpoint = workflow._sealpoint_gate.last
        payments.did.clear()
        return Waiting(workflow, request, checkpoint, await own.thread_of(checkpoint), own)

    async def request_for(self, awaitable: Any) -> Request:
        """The request that a call leads to."""
        try:
            found = await awaitable
        except NeedsApproval as needs:
            return cast("Request", needs.request)
        raise AssertionError(f"not refused: {found!r}")


def once_admitted(workflow: Any, do: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something after a run of a workflow was decided about, and before it reads anything."""
    gate = workflow._sealpoint_gate
    admitted = gate._admitted

    @contextmanager
    def changed(call: Any) -> Iterator[Any]:
        with admitted(call) as run:
            do()
            yield run

    monkeypatch.setattr(gate, "_admitted", changed)
