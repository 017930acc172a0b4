# SPDX-License-Identifier: Apache-2.0
"""What something else than LangGraph saved in a thread is an error that says so."""

from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

import sealpoint
from sealpoint.errors import BytesMalformed
from sealpoint.store import ResultsDraft
from sealpoint_langgraph import SealedSaver

_CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.mark.parametrize("state", [1, {"step": 1}, [{"channel_values": {}}]])
def test_a_state_of_something_else_is_refused(state: Any) -> None:
    """A graph is given a checkpoint of LangGraph or an error, and never something like one."""
    with sealpoint.open_store("memory:") as store:
        store.thread("t").save(state)

        with pytest.raises(BytesMalformed, match="it was not saved by LangGraph"):
            SealedSaver(store).get_tuple(_CONFIG)


@pytest.mark.parametrize("value", [1, [1], [[0, "messages"]], [["0", "messages", 1]], [[]]])
def test_results_of_something_else_are_refused(value: Any) -> None:
    """The same for what was added to a checkpoint."""
    with sealpoint.open_store("memory:") as store:
        saver = SealedSaver(store)
        saved = saver.put(_CONFIG, empty_checkpoint(), {"source": "loop", "step": 0}, {})
        name = saved["configurable"]["checkpoint_id"]
        store.thread("t").adapter.commit([ResultsDraft(value, checkpoint=name, task="stranger")])

        with pytest.raises(BytesMalformed, match="expected results of a LangGraph task"):
            saver.get_tuple(_CONFIG)
