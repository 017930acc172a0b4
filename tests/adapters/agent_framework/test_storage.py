# SPDX-License-Identifier: Apache-2.0
"""The contract of a checkpoint storage, as the framework states it, on every backend."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowEvent,
    WorkflowMessage,
)

from sealpoint.adapters.agent_framework import RunStopped, SealedCheckpointStorage
from sealpoint.errors import (
    NotTrusted,
    TypeNotAllowed,
    UnknownCheckpoint,
    UsageError,
    ValueNotAllowed,
)
from tests.adapters.agent_framework.stores import BACKENDS, opened, sealed


def _checkpoint(name: str = "orders", **fields: Any) -> WorkflowCheckpoint:
    return WorkflowCheckpoint(workflow_name=name, graph_signature_hash="a" * 64, **fields)


@pytest.fixture(params=BACKENDS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SealedCheckpointStorage]:
    """A storage of its own."""
    with opened(request.param, tmp_path / "home") as store:
        yield sealed(store)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[SealedCheckpointStorage]:
    """A storage where the backend does not matter."""
    with opened("sqlite", tmp_path / "home") as store:
        yield sealed(store)


def _run(awaitable: Any) -> Any:
    return asyncio.run(awaitable)


async def _saved(storage: SealedCheckpointStorage, *checkpoints: WorkflowCheckpoint) -> None:
    for each in checkpoints:
        assert await storage.save(each) == each.checkpoint_id


# ---------------------------------------------------------------------- copies in and out


def _fields() -> dict[str, Any]:
    return {
        "state": {"deep": {"er": [1, (2, 3)]}, "set": {4}},
        "messages": {"a": [WorkflowMessage(data={"n": 1}, source_id="a", target_id="b")]},
        "pending_request_info_events": {"r": WorkflowEvent("status", data={"n": 1})},
        "metadata": {"owner": {"name": "ann"}},
        "iteration_count": 7,
    }


def _touch(checkpoint: WorkflowCheckpoint) -> None:
    checkpoint.state["deep"]["er"].append("touched")
    checkpoint.messages["a"][0].data["n"] = "touched"
    checkpoint.pending_request_info_events["r"].data["n"] = "touched"
    checkpoint.metadata["owner"]["name"] = "touched"


def test_what_is_saved_comes_back_and_belongs_to_whoever_loads_it(
    storage: SealedCheckpointStorage,
) -> None:
    """Neither what was saved nor what was loaded changes what is stored, however deep."""

    async def work() -> None:
        checkpoint = _checkpoint(**_fields())
        told = repr(checkpoint)
        await _saved(storage, checkpoint)
        _touch(checkpoint)
        for awaitable in (
            storage.load(checkpoint.checkpoint_id),
            storage.get_latest(workflow_name="orders"),
        ):
            loaded: Any = await awaitable
            assert repr(loaded) == told
            assert type(loaded) is WorkflowCheckpoint
            _touch(loaded)
        (listed,) = await storage.list_checkpoints(workflow_name="orders")
        assert repr(listed) == told
        _touch(listed)
        assert repr(await storage.load(checkpoint.checkpoint_id)) == told

    _run(work())


def test_a_workflow_has_its_own_checkpoints_and_an_unknown_one_none(
    storage: SealedCheckpointStorage,
) -> None:
    """Also one whose name begins like another's."""

    async def work() -> None:
        names = ("a", "b", "a", "a/b")
        made = [_checkpoint(name) for name in names]
        await _saved(storage, *made)
        for name in {*names}:
            wanted = [each.checkpoint_id for each in made if each.workflow_name == name]
            assert await storage.list_checkpoint_ids(workflow_name=name) == wanted
            listed = await storage.list_checkpoints(workflow_name=name)
            assert [each.checkpoint_id for each in listed] == wanted
        assert await storage.list_checkpoint_ids(workflow_name="c") == []
        assert await storage.list_checkpoints(workflow_name="c") == []
        assert await storage.get_latest(workflow_name="c") is None

    _run(work())


def test_the_latest_is_that_of_the_latest_timestamp(storage: SealedCheckpointStorage) -> None:
    """In whichever order they were saved, and with or without a zone."""

    async def work() -> None:
        times = ("2026-01-02T00:00:00+00:00", "2026-01-03T00:00:00", "2026-01-01T00:00:00+05:00")
        made = [_checkpoint(timestamp=time) for time in times]
        await _saved(storage, *made)
        latest = await storage.get_latest(workflow_name="orders")
        assert latest is not None
        assert latest.checkpoint_id == made[1].checkpoint_id

    _run(work())


def test_a_deleted_checkpoint_is_gone_and_the_deletion_stays(
    storage: SealedCheckpointStorage,
) -> None:
    """The second deletion finds nothing; who looks at the thread sees the first."""

    async def work() -> None:
        first = _checkpoint()
        second = _checkpoint(previous_checkpoint_id=first.checkpoint_id)
        await _saved(storage, first, second)
        thread = await storage.thread_of(first.checkpoint_id)
        assert await storage.delete(first.checkpoint_id) is True
        assert await storage.delete(first.checkpoint_id) is False
        with pytest.raises(WorkflowCheckpointException) as refused:
            await storage.load(first.checkpoint_id)
        assert isinstance(refused.value.__cause__, UnknownCheckpoint)
        wanted = [second.checkpoint_id]
        assert await storage.list_checkpoint_ids(workflow_name="orders") == wanted
        assert await storage.delete("never saved") is False
        assert storage.store.verify().ok
        assert [ref.id for ref in storage.store.thread(thread).history()] == wanted

    _run(work())


def test_a_missing_checkpoint_is_told_as_the_framework_tells_it(
    storage: SealedCheckpointStorage,
) -> None:
    """With our error as the cause, and our hint in the text."""
    with pytest.raises(WorkflowCheckpointException, match="hint: ") as refused:
        _run(storage.load("nobody"))
    assert isinstance(refused.value.__cause__, UnknownCheckpoint)


def test_it_is_true_and_tells_the_hash_of_an_entry(storage: SealedCheckpointStorage) -> None:
    """The framework leaves a storage out that is false; a host compares the hash."""

    async def work() -> None:
        made = [_checkpoint(), _checkpoint()]
        await _saved(storage, *made)
        found = [await storage.load_with_hash(each.checkpoint_id) for each in made]
        assert [repr(each) for each, _ in found] == [repr(each) for each in made]
        hashes = {digest for _, digest in found}
        assert len(hashes) == 2
        assert all(len(digest) == 64 for digest in hashes)

    assert bool(storage) is True
    _run(work())


# ---------------------------------------------------------------------- threads


def test_what_goes_on_from_a_checkpoint_lies_in_its_thread(one: SealedCheckpointStorage) -> None:
    """And what begins has one of its own, so that two runs have histories of their own."""

    async def work() -> None:
        first = _checkpoint()
        second = _checkpoint(previous_checkpoint_id=first.checkpoint_id)
        other = _checkpoint()
        await _saved(one, first, other, second)
        threads = [await one.thread_of(each.checkpoint_id) for each in (first, second, other)]
        assert threads[0] == threads[1] == f"orders/{first.checkpoint_id}"
        assert threads[2] == f"orders/{other.checkpoint_id}"
        log = list(one.store.thread(threads[0]).history())
        assert [each.id for each in log] == [second.checkpoint_id, first.checkpoint_id]
        assert log[0].parent == first.checkpoint_id

    _run(work())


def test_another_process_finds_a_checkpoint_by_its_id(tmp_path: Path) -> None:
    """Among the threads of all workflows, and others."""

    async def work() -> None:
        with opened("sqlite", tmp_path / "home") as store:
            storage = sealed(store)
            store.thread("something else").save({"n": 1})
            runs = [[_checkpoint(name) for _ in range(3)] for name in ("a", "b", "c")]
            for before, between, last in runs:
                between.previous_checkpoint_id = before.checkpoint_id
                last.previous_checkpoint_id = between.checkpoint_id
                await _saved(storage, before, between, last)
        with opened("sqlite", tmp_path / "home") as store:
            again = sealed(store)
            for run in runs:
                for each in reversed(run):
                    assert repr(await again.load(each.checkpoint_id)) == repr(each)

    _run(work())


def test_a_storage_of_one_thread_keeps_everything_there(tmp_path: Path) -> None:
    """Under the name that the application gave, where nothing has to be looked for."""

    async def work() -> None:
        with opened("sqlite", tmp_path / "home") as store:
            storage = sealed(store, thread="order 17")
            made = [_checkpoint(), _checkpoint()]
            await _saved(storage, *made)
            assert list(store.threads()) == ["order 17"]
            wanted = [each.checkpoint_id for each in made]
            assert await storage.list_checkpoint_ids(workflow_name="orders") == wanted
            assert await sealed(store, thread="order 18").get_latest(workflow_name="orders") is None

    _run(work())


def test_nobody_else_writes_or_deletes_in_a_thread(tmp_path: Path) -> None:
    """Another identity may read, and that is all."""

    async def work() -> None:
        checkpoint = _checkpoint()
        with opened("sqlite", tmp_path / "home") as store:
            await _saved(sealed(store), checkpoint)
        with opened("sqlite", tmp_path / "home", identity="operator") as store:
            other = sealed(store)
            assert repr(await other.load(checkpoint.checkpoint_id)) == repr(checkpoint)
            with pytest.raises(WorkflowCheckpointException) as refused:
                await other.delete(checkpoint.checkpoint_id)
            assert isinstance(refused.value.__cause__, NotTrusted)

    _run(work())


# ---------------------------------------------------------------------- refused saves


class Stranger:
    """A type that nobody allowed."""


def test_a_save_that_is_refused_stops_the_run_and_is_counted(one: SealedCheckpointStorage) -> None:
    """By something that the framework does not drop; nothing is half saved."""
    with pytest.raises(RunStopped, match="Stranger") as stopped:
        _run(one.save(_checkpoint(state={"x": Stranger()})))

    assert not isinstance(stopped.value, Exception)
    assert isinstance(stopped.value.error, TypeNotAllowed)
    assert one.refused_saves == 1
    assert one.last_refusal is stopped.value.error
    assert list(one.store.threads()) == []


def test_where_it_is_only_to_be_warned_of_the_framework_is_told(tmp_path: Path) -> None:
    """And it is counted as well."""
    with opened("sqlite", tmp_path / "home") as store:
        storage = sealed(store, on_refused_save="warn")
        with pytest.raises(WorkflowCheckpointException, match="Stranger"):
            _run(storage.save(_checkpoint(state={"x": Stranger()})))
        assert storage.refused_saves == 1


def test_another_state_under_a_known_id_is_refused(one: SealedCheckpointStorage) -> None:
    """A checkpoint is saved once; the same one again is the same."""

    async def work() -> None:
        checkpoint = _checkpoint(state={"n": 1})
        await _saved(one, checkpoint, checkpoint)
        checkpoint.state["n"] = 2
        with pytest.raises(RunStopped):
            await one.save(checkpoint)
        assert (await one.load(checkpoint.checkpoint_id)).state == {"n": 1}

    _run(work())


def test_what_it_is_made_with_is_checked(one: SealedCheckpointStorage) -> None:
    """Before anything is saved."""
    with pytest.raises(UsageError, match="expected an open store"):
        SealedCheckpointStorage("sqlite:///x.db")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="on_refused_save"):
        sealed(one.store, on_refused_save="ignore")
    with pytest.raises(RunStopped) as stopped:
        _run(one.save(_checkpoint(timestamp=float("nan"))))
    assert isinstance(stopped.value.error, ValueNotAllowed)
