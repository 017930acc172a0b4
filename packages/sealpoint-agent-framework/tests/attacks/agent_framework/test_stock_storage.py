# SPDX-License-Identifier: Apache-2.0
"""The control of the attacks: the framework's own file storage takes them, and acts on them.

Who may write its directory has no key and needs none. The payloads are harmless; those that would
run code make an empty directory.
"""

import asyncio
import base64
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from agent_framework import FileCheckpointStorage, WorkflowCheckpoint

from tests.adapters.agent_framework.payments import Payment, Payments, asked_of

_ALLOWED = [f"{Payment.__module__}:{Payment.__qualname__}"]


class Stock:
    """Conversations on `FileCheckpointStorage`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.payments = folder, Payments()

    @property
    def storage(self) -> FileCheckpointStorage:
        """The storage, as a new process makes it."""
        return FileCheckpointStorage(self.folder, allowed_checkpoint_types=_ALLOWED)

    async def waiting(self, to: str = "ann") -> tuple[str, str]:
        """A conversation that waits: its request, and the checkpoint that it waits at."""
        made = self.payments.build(checkpoint_storage=self.storage)
        request = asked_of(await made.run(to))
        self.payments.did.clear()
        return request, str(made.get_last_checkpoint_id())

    async def answer(self, checkpoint: str, request: str, *, name: str = "payments") -> list[Any]:
        """What comes of answering it in a new process."""
        made = self.payments.build(name=name, checkpoint_storage=self.storage)
        found = await made.run(checkpoint_id=checkpoint, responses={request: True})
        outputs: list[Any] = found.get_outputs()
        return outputs

    def file(self, checkpoint: str) -> Path:
        """Where a checkpoint lies."""
        return self.folder / f"{checkpoint}.json"

    def edit(self, checkpoint: str, **fields: Any) -> None:
        """Write other fields into the file."""
        found = json.loads(self.file(checkpoint).read_text())
        self.file(checkpoint).write_text(json.dumps({**found, **fields}))


@pytest.fixture
def stock(tmp_path: Path) -> Stock:
    """A storage of its own."""
    return Stock(tmp_path / "stock")


class Gadget:
    """A pickle that calls a class of the framework, which the default allowlist lets through."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> Any:
        return FileCheckpointStorage, (str(self._marker),)


def test_a_file_runs_a_constructor_when_ids_are_listed(stock: Stock, tmp_path: Path) -> None:
    """Nobody has to load it; the default allowlist is in force."""
    marker = tmp_path / "ran"
    _, checkpoint = asyncio.run(stock.waiting())
    planted = base64.b64encode(pickle.dumps(Gadget(marker))).decode()
    stock.edit(checkpoint, state={"x": {"__pickled__": planted, "__type__": "x:x"}})
    asyncio.run(FileCheckpointStorage(stock.folder).list_checkpoint_ids(workflow_name="payments"))

    assert marker.is_dir()


def test_edited_fields_are_believed(stock: Stock) -> None:
    """The file is what there is."""
    _, checkpoint = asyncio.run(stock.waiting())
    stock.edit(checkpoint, workflow_name="refunds", state={"role": "admin"}, iteration_count=7)
    found = asyncio.run(stock.storage.load(checkpoint))

    assert (found.workflow_name, found.state, found.iteration_count) == (
        "refunds",
        {"role": "admin"},
        7,
    )


def test_another_amount_is_paid(stock: Stock) -> None:
    """Asked for 42, edited to 99999: the answer to the first is one to the second."""

    async def work() -> list[Any]:
        request, checkpoint = await stock.waiting()
        found = await stock.storage.load(checkpoint)
        found.pending_request_info_events[request].data = Payment(99_999, "mallory")
        await stock.storage.save(found)
        return await stock.answer(checkpoint, request)

    assert asyncio.run(work()) == ["paid 99999 to mallory: True"]


def test_a_consumed_checkpoint_pays_again(stock: Stock) -> None:
    """As often as it is answered."""

    async def work() -> None:
        request, checkpoint = await stock.waiting()
        for _ in range(2):
            await stock.answer(checkpoint, request)

    asyncio.run(work())

    assert stock.payments.did.count("pays 42 to ann: True") == 2


def test_a_checkpoint_of_another_workflow_is_gone_on_from(stock: Stock) -> None:
    """If it is built alike."""

    async def work() -> list[Any]:
        request, checkpoint = await stock.waiting()
        return await stock.answer(checkpoint, request, name="refunds")

    assert asyncio.run(work()) == ["paid 42 to ann: True"]


def test_an_older_copy_is_the_newest(stock: Stock, tmp_path: Path) -> None:
    """A restored directory is not told from the newest, and the question is open again."""

    async def work() -> WorkflowCheckpoint | None:
        request, checkpoint = await stock.waiting()
        shutil.copytree(stock.folder, tmp_path / "older")
        await stock.answer(checkpoint, request)
        shutil.rmtree(stock.folder)
        shutil.copytree(tmp_path / "older", stock.folder)
        await stock.answer(checkpoint, request)
        return await stock.storage.load(checkpoint)

    assert asyncio.run(work()) is not None
    assert stock.payments.did.count("pays 42 to ann: True") == 2


def test_the_newest_file_deleted_is_an_older_conversation(stock: Stock) -> None:
    """What is missing was never there."""

    async def work() -> tuple[str | None, str]:
        _, checkpoint = await stock.waiting()
        before = (await stock.storage.load(checkpoint)).previous_checkpoint_id
        stock.file(checkpoint).unlink()
        latest = await stock.storage.get_latest(workflow_name="payments")
        assert latest is not None
        return before, latest.checkpoint_id

    before, latest = asyncio.run(work())
    assert latest == before


def test_two_conversations_can_be_swapped(stock: Stock) -> None:
    """The answer that was meant for one of them pays the other."""

    async def work() -> list[Any]:
        request, checkpoint = await stock.waiting("ann")
        other_request, other = await stock.waiting("mallory")
        mine, theirs = await stock.storage.load(checkpoint), await stock.storage.load(other)
        theirs.checkpoint_id = checkpoint
        events = theirs.pending_request_info_events
        event = events.pop(other_request)
        event._request_id = request
        events[request] = event
        assert mine.checkpoint_id == checkpoint
        await stock.storage.save(theirs)
        return await stock.answer(checkpoint, request)

    assert asyncio.run(work()) == ["paid 42 to mallory: True"]


def test_a_file_that_somebody_planted_is_the_latest(stock: Stock) -> None:
    """Whoever says the latest time is it."""

    async def work() -> WorkflowCheckpoint | None:
        _, checkpoint = await stock.waiting()
        found = await stock.storage.load(checkpoint)
        found.checkpoint_id, found.timestamp = "planted", "2099-01-01T00:00:00+00:00"
        found.state["role"] = "admin"
        await stock.storage.save(found)
        return await stock.storage.get_latest(workflow_name="payments")

    latest = asyncio.run(work())
    assert latest is not None
    assert (latest.checkpoint_id, latest.state["role"]) == ("planted", "admin")
