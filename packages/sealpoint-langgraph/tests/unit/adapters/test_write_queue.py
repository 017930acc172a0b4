# SPDX-License-Identifier: Apache-2.0
"""The queue of a thread: order, groups, and who waits for whom."""

import gc
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

import sealpoint
from sealpoint.adapters.guarded_runs import WriteQueue
from sealpoint.api import Store
from sealpoint.errors import TypeNotAllowed
from sealpoint.store import CommitDraft, Outcome, ResultsDraft, SaveDraft
from sealpoint_langgraph import SealedSaver

_CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
_LONG_S = 60.0


class _Counted:
    """A thread that counts how often something is written."""

    def __init__(self, store: Store) -> None:
        self._thread = store.thread("t")
        self.groups: list[int] = []

    def commit(self, drafts: Sequence[CommitDraft]) -> list[Outcome]:
        """Write, and count."""
        self.groups.append(len(drafts))
        return self._thread.adapter.commit(drafts)


def _save(name: str) -> SaveDraft:
    return SaveDraft({"step": name}, name, None, None, None)


def test_results_that_wait_are_written_with_the_checkpoint_after_them() -> None:
    """In one step, and whoever waits comes back at once instead of when its patience ends."""
    with sealpoint.open_store("memory:") as store:
        thread: Any = _Counted(store)
        queue = WriteQueue(thread)
        queue.settle(queue.put(_save("1")))
        waiting = queue.put(ResultsDraft([1], checkpoint="1", task="a"))
        patient = threading.Thread(
            target=queue.settle, args=(waiting,), kwargs={"patience_s": _LONG_S}
        )
        patient.start()
        queue.settle(queue.put(_save("2")))
        patient.join(_LONG_S / 2)

        assert not patient.is_alive()
        assert thread.groups == [1, 2]
        assert waiting.outcome is not None


def test_results_that_nothing_follows_are_written_all_the_same() -> None:
    """Whoever waited in vain writes by itself."""
    with sealpoint.open_store("memory:") as store:
        thread: Any = _Counted(store)
        queue = WriteQueue(thread)
        queue.settle(queue.put(_save("1")))
        queue.settle(queue.put(ResultsDraft([1], checkpoint="1", task="a")), patience_s=0.001)

        assert thread.groups == [1, 1]
        found = store.thread("t").adapter.snapshot()
        assert found is not None
        assert [result.value for result in found.results] == [[1]]


def test_a_saver_keeps_no_thread_that_nobody_uses() -> None:
    """A service with many conversations holds those in memory that the store keeps, and no more."""
    with sealpoint.open_store("memory:") as store:
        saver = SealedSaver(store)
        for number in range(5):
            config: Any = {"configurable": {"thread_id": f"t{number}", "checkpoint_ns": ""}}
            saver.put(config, empty_checkpoint(), {"source": "loop", "step": 0}, {})
        gc.collect()

        assert not saver._queues._queues


def test_a_type_that_is_not_allowed_in_writes_is_told_with_its_channel() -> None:
    """Where a list of writes is how we keep them, and nothing that anybody wrote."""
    with sealpoint.open_store("memory:") as store:
        saver = SealedSaver(store)
        saved = saver.put(_CONFIG, empty_checkpoint(), {"source": "loop", "step": 0}, {})

        with pytest.raises(TypeNotAllowed) as refusal:
            saver.put_writes(saved, [("plain", 1), ("other", {"deep": [object()]})], "task")
        assert refusal.value.message == (
            "write to channel 'other', value[\"deep\"][0]: expected an allowed type, found "
            "builtins.object, which no rule allows"
        )
        assert refusal.value.hint
