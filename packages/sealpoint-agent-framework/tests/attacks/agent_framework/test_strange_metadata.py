# SPDX-License-Identifier: Apache-2.0
"""What another writer of the namespace says of its checkpoints keeps nobody from finding theirs."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agent_framework import WorkflowCheckpoint, WorkflowCheckpointException

from sealpoint.api import Store
from tests.adapters.agent_framework.stores import opened, sealed
from tests.attacks.agent_framework.bureau import Bureau

_NAME = {"workflow_name": "payments"}


@dataclass
class Strange:
    """What only one of the writers knows."""

    number: int


def _checkpoint(name: str, **state: Any) -> WorkflowCheckpoint:
    return WorkflowCheckpoint(name, "a" * 64, state=state)


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


def test_what_others_saved_of_types_of_their_own_is_passed_over(tmp_path: Path) -> None:
    """Its owners, readers, and who asks for that very thread are told which checkpoint it is."""
    office = Bureau(tmp_path / "home", policy="solo")
    office.enrol("mate", "writer")
    office.admin.roster.set_pool("clerks", ["clerk", "mate"])
    own, strange = _checkpoint("lists"), _checkpoint("lists", strange=Strange(7))
    thread = f"lists/{strange.checkpoint_id}"
    told = f"'tests.strange', inside checkpoint '{strange.checkpoint_id}' of thread '{thread}'"

    async def listed(storage: Any) -> list[str]:
        latest = await storage.get_latest(workflow_name="lists")
        found = await storage.list_checkpoints(workflow_name="lists")
        return [each.checkpoint_id for each in (latest, *found)]

    async def work() -> None:
        await sealed(office.worker).save(own)
        clerk = office.process("clerk")
        clerk.registry.allow(Strange, name="tests.strange")
        await sealed(clerk).save(strange)
        ids = [own.checkpoint_id, strange.checkpoint_id]
        assert await listed(sealed(clerk)) == [strange.checkpoint_id, *ids]
        assert await listed(office.another()) == [own.checkpoint_id] * 2
        for storage in (
            *(sealed(office.process(name)) for name in ("clerk", "mate")),
            sealed(office.process(read_only=True)),
            sealed(office.worker, thread=thread),
        ):
            for reads in (storage.list_checkpoints, storage.get_latest):
                with pytest.raises(WorkflowCheckpointException, match=told):
                    await reads(workflow_name="lists")

    asyncio.run(work())
    office.close()
