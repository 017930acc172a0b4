# SPDX-License-Identifier: Apache-2.0
"""Workflows that wait for a response in a sealed store, and somebody who reaches for its bytes.

That the same edits work on the framework's own storage is in `test_stock_storage.py`.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_framework import WorkflowCheckpointException

from sealpoint.api import Store
from sealpoint.errors import SealpointError
from sealpoint_agent_framework import RunStopped, SealedCheckpointStorage, guard
from tests.adapters.agent_framework.payments import Payments, asked_of
from tests.adapters.agent_framework.stores import sealed
from tests.attacks.edited_threads import EditedThreads

__all__ = ["EditedWorkflows", "error_of"]

Call = Callable[[], Any]


async def error_of(call: Call) -> SealpointError | None:
    """How a call is refused, by our error, whoever tells it; None if it is not."""
    try:
        await call()
    except SealpointError as error:
        return error
    except RunStopped as stopped:
        if not isinstance(stopped.error, SealpointError):
            raise
        return stopped.error
    except WorkflowCheckpointException as told:
        if not isinstance(told.__cause__, SealpointError):
            raise
        return told.__cause__
    return None


class EditedWorkflows(EditedThreads):
    """Two conversations that paid once and wait for the second answer."""

    def __init__(self, home: Path, backend: str) -> None:
        super().__init__(home, backend)
        self.payments = Payments()
        self.ids = {}
        self.requests: dict[str, str] = {}
        self.checkpoints: dict[str, str] = {}
        with self.open() as store:
            self.registry = store.registry
            for name in ("other", "t"):
                asyncio.run(self._make(sealed(store), name))

    async def _make(self, storage: SealedCheckpointStorage, name: str) -> None:
        made: Any = guard(self.payments.build(), storage, actor="dev")
        await made.run(responses={asked_of(await made.run(f"{name}-1")): True})
        thread = storage.store.thread(await storage.thread_of(made._sealpoint_gate.last))
        self.ids[name] = bytes.fromhex(thread.id)
        if name == "t":
            self._older = self.copied()
        self.requests[name] = asked_of(await made.run(f"{name}-2"))
        self.checkpoints[name] = made._sealpoint_gate.last

    def sound(self) -> None:
        """Both requests wait, and nothing is found."""
        with self.open() as store:
            storage = sealed(store)
            for name, request in self.requests.items():
                found = asyncio.run(storage.load(self.checkpoints[name]))
                assert list(found.pending_request_info_events) == [request]
            report = store.verify()
            assert report.ok, f"not sound before the edit: {report.findings}"

    def endings(self, name: str = "t") -> dict[str, SealpointError | None]:
        """How every way to go on and to read ends, in a new process; nothing may run."""
        self.payments.did.clear()
        with self.open() as store:
            found = asyncio.run(self._endings(store, name))
        assert not self.payments.did, f"{self.payments.did} ran"
        return found

    async def _endings(self, store: Store, name: str) -> dict[str, SealpointError | None]:
        id_, responses = self.checkpoints[name], {self.requests[name]: True}
        ways = self._reads(sealed(store), id_) | self._runs(sealed(store), id_, responses)
        return {way: await error_of(call) for way, call in ways.items()}

    async def untouched(self, store: Store) -> dict[str, SealpointError | None]:
        """How every way to read ends, and an answer."""
        id_, responses = self.checkpoints["t"], {self.requests["t"]: True}
        ways = self._reads(sealed(store), id_)
        ways["answer"] = self._runs(sealed(store), id_, responses)["answer"]
        return {way: await error_of(call) for way, call in ways.items()}

    def _reads(self, storage: SealedCheckpointStorage, id_: str) -> dict[str, Call]:
        workflow = {"workflow_name": "payments"}
        return {
            "load": lambda: storage.load(id_),
            "load with hash": lambda: storage.load_with_hash(id_),
            "get the latest": lambda: storage.get_latest(**workflow),
            "list": lambda: storage.list_checkpoints(**workflow),
            "list ids": lambda: storage.list_checkpoint_ids(**workflow),
        }

    def _runs(
        self, storage: SealedCheckpointStorage, id_: str, responses: dict[str, Any]
    ) -> dict[str, Call]:
        def guarded() -> Any:
            return guard(self.payments.build(), storage, actor="dev")

        def bare() -> Any:
            return self.payments.build(checkpoint_storage=storage)

        return {
            "go on": lambda: guarded().run(checkpoint_id=id_),
            "answer": lambda: guarded().run(checkpoint_id=id_, responses=responses),
            "cancel": lambda: guarded().cancel_pending_requests([*responses], checkpoint_id=id_),
            "go on without a guard": lambda: bare().run(checkpoint_id=id_),
            "answer without a guard": lambda: bare().run(checkpoint_id=id_, responses=responses),
        }
