# SPDX-License-Identifier: Apache-2.0
"""A checkpoint storage of Microsoft Agent Framework before the outside yardstick.

    agmi-check --adapter benchmarks.agmi_agent_framework:AgentFrameworkAdapter

The edits are those of the SQLite adapter. The answers are a workflow user's: the newest checkpoint
by `get_latest`, their ids by `list_checkpoint_ids`, and each of them by `load`. The framework's own
error counts as a refusal only with one of ours as its cause.
"""

import asyncio

from agent_framework import WorkflowCheckpoint, WorkflowCheckpointException

from benchmarks.agmi import SqliteAdapter
from sealpoint.api import Store
from sealpoint.errors import SealpointError
from sealpoint_agent_framework import SealedCheckpointStorage

__all__ = ["AgentFrameworkAdapter"]

_THREAD = "agmi-thread"
_WORKFLOW = "agmi"


class AgentFrameworkAdapter(SqliteAdapter):
    """Checkpoints of Agent Framework in an SQLite file."""

    name = "sealpoint-agent-framework"

    def _save(self, store: Store, thread: str) -> None:
        number, self._seeded = self._seeded, self._seeded + 1
        asyncio.run(_saved(SealedCheckpointStorage(store, thread=thread), number))

    def verify(self) -> bool:
        """Ask for the newest checkpoint, list the ids, load each of them."""
        self.verify_detail = None
        self.refusal = None
        self._read = "open_store()"
        try:
            with self._open() as store:
                asyncio.run(self._read_all(SealedCheckpointStorage(store, thread=_THREAD)))
        except WorkflowCheckpointException as refused:
            if not isinstance(refused.__cause__, SealpointError):
                raise
            return self._refused(refused.__cause__)
        except SealpointError as error:
            return self._refused(error)
        return True

    async def _read_all(self, storage: SealedCheckpointStorage) -> None:
        self._read = "get_latest()"
        await storage.get_latest(workflow_name=_WORKFLOW)
        self._read = "list_checkpoint_ids()"
        for each in await storage.list_checkpoint_ids(workflow_name=_WORKFLOW):
            self._read = "load(id)"
            await storage.load(each)

    def _refused(self, error: SealpointError) -> bool:
        self.refusal = (self._read, error.code)
        self.verify_detail = f"{self._read} refused: {error.code}"
        return False


async def _saved(storage: SealedCheckpointStorage, number: int) -> None:
    newest = await storage.get_latest(workflow_name=_WORKFLOW)
    await storage.save(
        WorkflowCheckpoint(
            _WORKFLOW,
            "0" * 64,
            previous_checkpoint_id=None if newest is None else newest.checkpoint_id,
            state={"note": f"agmi-seed-{number:04}"},
            iteration_count=number,
        )
    )
