# SPDX-License-Identifier: Apache-2.0
"""A LangGraph saver before the outside yardstick of `benchmarks.agmi`.

    agmi-check --adapter benchmarks.agmi_langgraph:LangGraphAdapter

The edits are those of the SQLite adapter. The answers are a graph user's: the newest checkpoint by
`get_tuple`, the history by `list`, and each listed checkpoint by `get_tuple` again.
"""

from typing import Any

from langgraph.checkpoint.base import empty_checkpoint

from benchmarks.agmi import SqliteAdapter
from sealpoint.api import Store
from sealpoint.errors import SealpointError
from sealpoint_langgraph import SealedSaver

__all__ = ["LangGraphAdapter"]

_THREAD = "agmi-thread"


def _config(thread: str, parent: str | None = None) -> Any:
    found = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": found if parent is None else {**found, "checkpoint_id": parent}}


class LangGraphAdapter(SqliteAdapter):
    """Checkpoints of LangGraph in an SQLite file."""

    name = "sealpoint-langgraph"

    def _save(self, store: Store, thread: str) -> None:
        number, self._seeded = self._seeded, self._seeded + 1
        saver = SealedSaver(store)
        newest = saver.get_tuple(_config(thread))
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"note": f"agmi-seed-{number:04}"}
        saver.put(
            _config(thread, None if newest is None else newest.checkpoint["id"]),
            checkpoint,
            {"source": "loop", "step": number, "parents": {}},
            {},
        )

    def verify(self) -> bool:
        """Ask for the newest checkpoint, list the history, ask for what it lists."""
        self.verify_detail = None
        self.refusal = None
        read = "open_store()"
        try:
            with self._open() as store:
                saver = SealedSaver(store)
                read = "get_tuple()"
                saver.get_tuple(_config(_THREAD))
                read = "list()"
                for found in list(saver.list(_config(_THREAD))):
                    read = "get_tuple(id)"
                    saver.get_tuple(found.config)
        except SealpointError as error:
            self.refusal = (read, error.code)
            self.verify_detail = f"{read} refused: {error.code}"
            return False
        return True
