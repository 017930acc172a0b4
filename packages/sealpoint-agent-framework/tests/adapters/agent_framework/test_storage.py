# SPDX-License-Identifier: Apache-2.0
"""The contract of a checkpoint storage, as the framework states it, on every backend."""

import asyncio
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowEvent,
    WorkflowMessage,
)

from sealpoint.errors import (
    NotTrusted,
    SealpointError,
    TypeNotAllowed,
    UnknownCheckpoint,
    UsageError,
    ValueNotAllowed,
)
from sealpoint_agent_framework import RunStopped, SealedCheckpointStorage
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


def test_a_host_may_keep_messages_and_requests_in_plain_data(
    storage: SealedCheckpointStorage,
) -> None:
    """The framework's own storages take any value there; what is asked is shown as it is."""

    async def work() -> None:
        asked = {"r": {"question": "pay 42?"}, "s": "sure?"}
        messages = {"a": [{"data": 1}, "b"]}
        checkpoint = _checkpoint(messages=messages, pending_request_info_events=asked)
        await _saved(storage, checkpoint)
        assert repr(await storage.load(checkpoint.checkpoint_id)) == repr(checkpoint)
        thread = await storage.thread_of(checkpoint.checkpoint_id)
        (saved,) = storage.store.thread(thread).history()
        assert saved.question == [{"id": id_, "value": value} for id_, value in asked.items()]

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


# ---------------------------------------------------------------------- event loops


def test_saves_at_once_keep_the_order_of_the_calls(one: SealedCheckpointStorage) -> None:
    """What was made last is the newest, also for the gate: steps beside each other save at once."""

    async def work() -> None:
        first = _checkpoint()
        await one.save(first)
        beside = [_checkpoint(previous_checkpoint_id=first.checkpoint_id) for _ in range(12)]
        await asyncio.gather(*map(one.save, beside))
        thread = one.store.thread(await one.thread_of(first.checkpoint_id))
        ids = [each.checkpoint_id for each in (first, *beside)]
        assert [ref.id for ref in thread.history()] == ids[::-1]
        assert await one.list_checkpoint_ids(workflow_name="orders") == ids

    _run(work())


def test_a_save_that_is_cancelled_has_ended_when_its_task_has(
    one: SealedCheckpointStorage,
) -> None:
    """It is there or it is not: nothing comes later, so that whoever looks next may go on."""

    async def work() -> None:
        previous = None
        for _ in range(20):
            checkpoint = _checkpoint(state={"text": "x" * 10_000}, previous_checkpoint_id=previous)
            saving = asyncio.create_task(one.save(checkpoint))
            await asyncio.sleep(0)
            saving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await saving
            latest = await one.get_latest(workflow_name="orders")
            assert latest is not None
            assert latest.checkpoint_id == checkpoint.checkpoint_id
            previous = latest.checkpoint_id
        assert one.refused_saves == 0

    _run(work())


def test_loads_while_saves_are_under_way_see_whole_checkpoints(
    storage: SealedCheckpointStorage,
) -> None:
    """Of before or after, and the ids are in their order."""

    async def work() -> None:
        made = [_checkpoint(state={"n": number}) for number in range(12)]
        for before, after in itertools.pairwise(made):
            after.previous_checkpoint_id = before.checkpoint_id
        ids = [each.checkpoint_id for each in made]

        async def save() -> None:
            for each in made:
                await storage.save(each)

        saving = asyncio.create_task(save())
        while not saving.done():
            found = await storage.list_checkpoint_ids(workflow_name="orders")
            assert found == ids[: len(found)]
            latest = await storage.get_latest(workflow_name="orders")
            if latest is not None:
                assert repr(latest) == repr(made[latest.state["n"]])
        await saving

    _run(work())


def test_one_storage_serves_event_loops_one_after_the_other_and_at_once(
    storage: SealedCheckpointStorage,
) -> None:
    """Each run has its own thread of the store, whichever loop saves it."""
    runs = [[_checkpoint(state={"run": run, "n": n}) for n in range(4)] for run in range(6)]

    async def save(run: list[WorkflowCheckpoint]) -> None:
        for before, after in itertools.pairwise(run):
            after.previous_checkpoint_id = before.checkpoint_id
        for each in run:
            await storage.save(each)
            assert repr(await storage.load(each.checkpoint_id)) == repr(each)

    for run in runs[:2]:
        _run(save(run))
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda run: _run(save(run)), runs[2:]))

    async def look() -> None:
        for run in runs:
            for each in run:
                assert repr(await storage.load(each.checkpoint_id)) == repr(each)
        assert len(await storage.list_checkpoints(workflow_name="orders")) == 24

    _run(look())
    assert storage.refused_saves == 0


# ---------------------------------------------------------------------- ids

_ODD_IDS = {
    "going up": "../../etc/passwd",
    "absolute": "/etc/passwd",
    "for Windows": "..\\..\\C:x|y?.json",
    "not ASCII": "prüfpunkt-検査-🔏",
    "of signs": "%2e%2e%2f'; DROP TABLE entries; --",
    "long": "x" * 240,
}
_NO_IDS = {
    "empty": "",
    "very long": "x" * 100_000,
    "with a NUL": "a\0b",
    "with a newline": "a\nb",
    "half a pair": "\ud800",
    "of blanks": "  ",
    "not composed": "e\u0301",
}


@pytest.mark.parametrize("id_", _ODD_IDS.values(), ids=_ODD_IDS)
def test_an_id_is_a_name_and_no_place(
    id_: str, storage: SealedCheckpointStorage, tmp_path: Path
) -> None:
    """It comes back as it was given, whatever it looks like; nothing is written elsewhere."""
    before = _outside(tmp_path)

    async def work() -> None:
        checkpoint = _checkpoint(checkpoint_id=id_)
        await _saved(storage, checkpoint)
        assert repr(await storage.load(id_)) == repr(checkpoint)
        assert await storage.list_checkpoint_ids(workflow_name="orders") == [id_]
        assert await storage.delete(id_) is True

    _run(work())
    assert _outside(tmp_path) == before


@pytest.mark.parametrize("id_", _NO_IDS.values(), ids=_NO_IDS)
def test_what_can_be_no_id_is_refused_or_not_there(
    id_: str, storage: SealedCheckpointStorage
) -> None:
    """A save stops the run; a load and a deletion say what they say of an unknown one."""

    async def work() -> None:
        with pytest.raises(RunStopped) as stopped:
            await storage.save(_checkpoint(checkpoint_id=id_))
        assert isinstance(stopped.value.error, SealpointError)
        with pytest.raises(WorkflowCheckpointException):
            await storage.load(id_)
        assert await storage.delete(id_) is False
        assert await storage.list_checkpoint_ids(workflow_name="orders") == []

    _run(work())


def _outside(folder: Path) -> list[Path]:
    """Everything that is not in the home of the store."""
    return sorted(each for each in folder.rglob("*") if "home" not in each.parts)


@pytest.mark.parametrize("name", ["../x", "prüfung / 検査", "a?b#c"])
def test_a_workflow_may_be_called_anything_that_a_thread_may(
    name: str, one: SealedCheckpointStorage
) -> None:
    """And is found by that name."""

    async def work() -> None:
        checkpoint = _checkpoint(name)
        await _saved(one, checkpoint)
        (found,) = await one.list_checkpoints(workflow_name=name)
        assert repr(found) == repr(checkpoint)

    _run(work())


@pytest.mark.parametrize("name", ["a\0b", "x" * 2_000, "\ud800"])
def test_what_can_be_no_name_is_refused_and_has_nothing(
    name: str, one: SealedCheckpointStorage
) -> None:
    """The run is stopped when it is saved; who asks is told that there is nothing."""

    async def work() -> None:
        with pytest.raises(RunStopped):
            await one.save(_checkpoint(name))
        assert await one.list_checkpoints(workflow_name=name) == []
        assert await one.list_checkpoint_ids(workflow_name=name) == []
        assert await one.get_latest(workflow_name=name) is None

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


def test_whatever_keeps_a_checkpoint_from_being_saved_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The framework drops every exception of a storage, also one that nobody foresaw."""

    def exhausted(_: object) -> bytes:
        raise MemoryError

    async def work() -> None:
        with opened("sqlite", tmp_path / "home") as store:
            storage = sealed(store, on_refused_save="warn")
            monkeypatch.setattr(WorkflowCheckpoint, "to_dict", exhausted)
            with pytest.raises(RunStopped) as stopped:
                await storage.save(_checkpoint())
            assert isinstance(stopped.value.error, MemoryError)
            assert storage.refused_saves == 1

    _run(work())


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
