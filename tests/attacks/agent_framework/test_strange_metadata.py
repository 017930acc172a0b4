# SPDX-License-Identifier: Apache-2.0
"""What another writer of the namespace says of its checkpoints keeps nobody from finding theirs."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import WorkflowCheckpoint

from sealpoint.api import Store
from tests.adapters.agent_framework.stores import opened, sealed

_NAME = {"workflow_name": "payments"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of its own."""
    with opened("sqlite", tmp_path / "home") as store:
        yield store


@pytest.mark.parametrize(
    ("metadata", "question"),
    [
        (_NAME, "Pay?"),
        (_NAME, 7),
        (_NAME, {"id": "r"}),
        (_NAME, ["r"]),
        (_NAME, [{"value": 1}]),
        (_NAME, [{"id": ["r"]}]),
        ({"workflow_name": ["payments"]}, None),
        ({**_NAME, "answered": "r"}, None),
        ({**_NAME, "answered": {"r": 1}}, None),
        (_NAME, None),
        ({**_NAME, "timestamp": 7}, None),
        ({**_NAME, "timestamp": "tomorrow"}, None),
        ({**_NAME, "timestamp": "2999-12-31T00:00:00+00:00"}, None),
    ],
)
def test_a_checkpoint_that_is_found_is_found_beside_it(
    store: Store, metadata: dict[str, Any], question: Any
) -> None:
    """By a process that has to look through all threads: by its id, in a list, as the latest."""
    for number, state in enumerate((1, {"messages": {}}, {"workflow_name": "payments", "x": 1})):
        store.thread(f"payments/{number}").save(state, metadata=metadata, question=question)
    made = WorkflowCheckpoint("payments", "a" * 64, timestamp="2999-01-01T00:00:00+00:00")

    async def work() -> None:
        await sealed(store).save(made)
        again = sealed(store)
        assert repr(await again.load(made.checkpoint_id)) == repr(made)
        assert repr(await sealed(store).get_latest(workflow_name="payments")) == repr(made)
        assert made.checkpoint_id in await again.list_checkpoint_ids(workflow_name="payments")
        assert list(map(repr, await again.list_checkpoints(workflow_name="payments"))) == [
            repr(made)
        ]

    asyncio.run(work())
