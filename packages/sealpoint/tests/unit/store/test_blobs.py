# SPDX-License-Identifier: Apache-2.0
"""Blobs: what a save writes and leaves out, what is spilled, and that nothing unproven is read."""

import random
import threading
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint import Limits, Registry
from sealpoint.errors import Edited, Missing, StorageUnavailable, UsageError
from sealpoint.ledger import Kind, parse_body, parse_header
from sealpoint.storage.memory import MemoryStorage
from sealpoint.store import BlobReader, fresh_digests
from sealpoint.store import _blobs as blobs_module
from sealpoint.store._blobs import BlobWriter, blob_digest
from tests.deployment import Deployment

_THREAD = b"t" * 16


def _random(count: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(count)  # noqa: S311 - data to test with


def _reader(storage: MemoryStorage, bytes_max: int = 1 << 20) -> BlobReader:
    return BlobReader(storage, _THREAD, bytes_max, "entry 2 of thread 't'", (bytes(32), None))


def test_known_blobs_are_left_out_and_listed_as_reached() -> None:
    """Only what is not known is written, each blob once."""
    known = blob_digest(b"known")
    writer = BlobWriter(MemoryStorage(), _THREAD, {known})
    names = [writer.put(blob) for blob in (b"known", b"new", b"new", b"other")]

    assert names == [known, blob_digest(b"new"), blob_digest(b"new"), blob_digest(b"other")]
    assert writer.pending == {blob_digest(b"new"): b"new", blob_digest(b"other"): b"other"}
    assert list(writer.fresh) == names[1:2] + names[3:]
    assert writer.reached == set(names)


@pytest.mark.parametrize("count", [0, 1, 64, 65, 3000])
def test_many_fresh_blobs_are_named_by_a_blob(count: int) -> None:
    """Up to 64 are named one by one, more by a blob that lists them; both read back the same."""
    storage = MemoryStorage()
    writer = BlobWriter(storage, _THREAD, set())
    names = [writer.put(b"blob %d" % number) for number in range(count)]
    fresh, fresh_list = writer.listing()
    storage.put_blobs(_THREAD, writer.pending)

    assert (fresh_list is None) == (count <= 64)
    assert len(fresh) == (count if count <= 64 else 0)
    assert list(fresh_digests(fresh, fresh_list, _reader(storage))) == names


def test_a_blob_is_proven_before_it_is_given_out() -> None:
    """Other bytes, no bytes and too many bytes are refused, naming the entry."""
    storage = MemoryStorage()
    name = blob_digest(b"good")
    with pytest.raises(Missing, match=r"entry 2 of thread 't': blob \w+ is missing"):
        _reader(storage).get(name)
    storage.put_blobs(_THREAD, {name: b"evil"})
    with pytest.raises(Edited, match="bytes of another hash"):
        _reader(storage).get(name)
    storage.put_blobs(_THREAD, {name: b"good"})
    with pytest.raises(Edited, match="at most 3 bytes"):
        _reader(storage, bytes_max=3).get(name)
    reader = _reader(storage)

    assert reader.get(name) == b"good"
    assert reader.reached == {name}


def test_a_blob_of_another_thread_is_missing() -> None:
    """Sharing is within one thread."""
    storage = MemoryStorage()
    storage.put_blobs(b"o" * 16, {blob_digest(b"x"): b"x"})

    with pytest.raises(Missing):
        _reader(storage).get(blob_digest(b"x"))


def test_a_blob_is_called_by_bytes() -> None:
    """The store names blobs by their digest alone."""
    with pytest.raises(UsageError, match="expected 32 bytes"):
        _reader(MemoryStorage()).get("ab" * 32)


def test_a_large_state_is_spilled(world: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would take too much memory is stored ahead of its entry, and comes back whole."""
    monkeypatch.setattr(blobs_module, "_PENDING_BYTES_MAX", 50_000)
    store = world.open()
    state = {"data": _random(400_000), "text": "x" * 10}
    store.thread("t").save(state)

    assert store.storage.spills >= 5
    assert store.storage.groups == [3]
    assert world.open().thread("t").load().state == state
    assert world.open().verify().ok


class _FullStorage(MemoryStorage):
    """A storage that takes so many blobs ahead and is then full."""

    def __init__(self, spills: int) -> None:
        super().__init__()
        self._spills = spills

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        self._spills -= 1
        if self._spills < 0:
            raise StorageUnavailable("storage: it is full")
        super().put_blobs(thread, blobs)


def _put(writer: BlobWriter, count: int, then: BaseException | None = None) -> list[bytes]:
    names = [writer.put(_random(1001, number)) for number in range(count)]
    if then is not None:
        raise then
    return names


@pytest.mark.parametrize("spills", [0, 1, 9])
def test_a_spill_that_fails_fails_the_save(monkeypatch: pytest.MonkeyPatch, spills: int) -> None:
    """Blobs are stored while the next are made, and no failure is lost: the last one's neither."""
    monkeypatch.setattr(blobs_module, "_PENDING_BYTES_MAX", 1000)
    writer = BlobWriter(_FullStorage(spills), _THREAD, set())

    with pytest.raises(StorageUnavailable, match="it is full"), writer:
        _put(writer, 10)


def test_no_spill_outlives_a_save_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails is what the caller hears of, when nothing is stored any more."""
    monkeypatch.setattr(blobs_module, "_PENDING_BYTES_MAX", 1000)
    storage = _FullStorage(1)
    threads = threading.active_count()
    writer = BlobWriter(storage, _THREAD, set())
    with pytest.raises(KeyboardInterrupt), writer:
        _put(writer, 2, then=KeyboardInterrupt())

    assert threading.active_count() == threads
    assert len([*storage.stored_blobs(_THREAD)]) == 1


def test_a_spill_that_a_world_begins_is_over_before_the_entry_is_written(
    memory: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is put after the state may be what is too much, and its failure is not lost either."""
    store = memory.open()
    thread = store.thread("t")
    monkeypatch.setattr(blobs_module, "_PENDING_BYTES_MAX", 1000)
    threads = threading.active_count()
    full = StorageUnavailable("storage: it is full")
    store.storage.spilling.after = _raising(full)
    with pytest.raises(StorageUnavailable, match="it is full"):
        thread.save("small", world={"n": "x" * 2000})
    thread.save("small", world={"n": "x" * 2000})

    assert threading.active_count() == threads
    assert memory.open().thread("t").load().state == "small"


def _raising(error: Exception) -> Callable[[], None]:
    def hook() -> None:
        raise error

    return hook


def test_a_spill_that_nobody_would_wait_for_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after its block a writer stores what is too much at once."""
    monkeypatch.setattr(blobs_module, "_PENDING_BYTES_MAX", 1000)
    storage = _FullStorage(1)
    writer = BlobWriter(storage, _THREAD, set())
    with writer:
        first = writer.put(b"short")
    second = writer.put(_random(1001))

    assert {name for name, _ in storage.stored_blobs(_THREAD)} == {first, second}
    with pytest.raises(StorageUnavailable, match="it is full"):
        writer.put(_random(1001, 2))


def test_a_spill_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no OS thread can be started, blobs are stored all the same."""
    monkeypatch.setattr(blobs_module, "_PENDING_BYTES_MAX", 1000)
    monkeypatch.setattr(threading.Thread, "start", _refuse_to_start)
    storage = MemoryStorage()
    with BlobWriter(storage, _THREAD, set()) as writer:
        names = _put(writer, 3)

    assert writer.spilled == {*names} == {name for name, _ in storage.stored_blobs(_THREAD)}


def _refuse_to_start(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_state_of_many_chunks_verifies_under_its_own_limits(memory: Deployment) -> None:
    """The list of fresh blobs is no blob of the state: a bound on those does not refuse it."""
    registry = Registry(limits=Limits(blob_bytes_max=64 * 1024))
    store = memory.open(registry=registry)
    state = {f"part {n}": _random(60_000, n) for n in range(170)}
    store.thread("t").save(state)

    assert len(store.storage.written) > 2048
    assert store.thread("t").load().state == state
    assert store.verify().ok


def _state(turns: int) -> dict[str, Any]:
    return {"messages": [f"message {n} " + "x" * (n % 90) for n in range(turns)]}


def test_what_did_not_change_is_not_written_again(world: Deployment) -> None:
    """A list that grew by one message is not rewritten, by this handle or after a load."""
    store, other = world.open(), world.open()
    store.thread("t").save(_state(4000))
    first = len(store.storage.written)
    store.storage.written.clear()
    store.thread("t").save(_state(4001))
    second = len(store.storage.written)
    other.thread("t").load()
    other.thread("t").save(_state(4002))

    assert first > 30
    assert second < first / 4
    assert len(other.storage.written) < first / 4
    assert world.open().thread("t").load().state == _state(4002)


def test_a_handle_that_has_not_loaded_leaves_nothing_out(world: Deployment) -> None:
    """That the storage happens to have a blob is no reason to leave it out."""
    store, other = world.open(), world.open()
    store.thread("t").save(_state(2000))
    other.thread("t").save(_state(2000))

    assert other.storage.written >= {
        blob for blob in store.storage.written if blob in other.storage.written
    }
    assert len(other.storage.written) >= len(store.storage.written) > 10


def test_a_lost_blob_is_written_again_by_whoever_did_not_prove_it(memory: Deployment) -> None:
    """A blob deleted behind everybody's back comes back with the next save of a second handle."""
    memory.open().thread("t").save(_state(2000))
    names = list(memory.blobs("t"))
    for name in names:
        memory.put_blob("t", name, None)
    other = memory.open().thread("t")
    with pytest.raises(Missing):
        other.load()
    other.save(_state(2000))

    assert other.load().state == _state(2000)
    assert set(names) <= memory.blobs("t").keys()


def test_a_blob_of_an_older_checkpoint_is_written_again(memory: Deployment) -> None:
    """Only the newest checkpoint counts: what it no longer reaches is not relied upon."""
    thread = memory.open().thread("t")
    thread.save(_state(1000))
    old = set(memory.blobs("t"))
    thread.save({"small": 1})
    for name in old:
        memory.put_blob("t", name, None)
    thread.save(_state(1000))

    assert thread.load().state == _state(1000)


def test_loading_an_older_checkpoint_is_no_reason_either(memory: Deployment) -> None:
    """Having read an older state proves nothing about the newest one."""
    thread = memory.open().thread("t")
    first = thread.save(_state(1000))
    old = set(memory.blobs("t"))
    thread.save({"small": 1})
    assert thread.load(first).state == _state(1000)
    for name in old:
        memory.put_blob("t", name, None)
    thread.save(_state(1000))

    assert thread.load().state == _state(1000)


def test_damaged_blobs_are_replaced_by_a_save(memory: Deployment) -> None:
    """A blob that is given does not rely on the stored one, which may be an attacker's."""
    memory.open().thread("t").save(_state(1000))
    for name in memory.blobs("t"):
        memory.put_blob("t", name, b"evil")
    other = memory.open().thread("t")
    other.save(_state(1000))

    assert other.load().state == _state(1000)


def test_a_checkpoint_names_exactly_the_blobs_that_were_stored_with_it(memory: Deployment) -> None:
    """The list in the body is what an audit checks: nothing is missing from it."""
    store = memory.open()
    seen: set[bytes] = set()
    for turns in (10, 3000, 3001, 20):
        store.storage.written.clear()
        seq = store.thread("t").save(_state(turns), world={"tools": ["a"]}).seq
        record = memory.record("t", seq)
        header = parse_header(record.header)
        body = parse_body(Kind.CHECKPOINT, header.body, record.body or b"")
        nothing = (bytes(32), None)
        reader = BlobReader(memory.memory, memory.thread_id("t"), 1 << 24, "here", nothing)
        named = set(fresh_digests(body.fresh, body.fresh_list, reader))
        listed = set() if body.fresh_list is None else {bytes.fromhex(body.fresh_list)}

        assert named | listed == store.storage.written
        seen |= named
    assert seen <= memory.blobs("t").keys()


def test_a_large_state_after_a_small_one_is_not_in_memory_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored ahead is let go of, and nothing else keeps the blobs of a large state."""
    monkeypatch.setattr(blobs_module, "_PENDING_BYTES_MAX", 500_000)
    monkeypatch.setattr(blobs_module, "_SEEN_BYTES_MAX", 0)
    where: dict[str, Any] = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    (tmp_path / "data").mkdir()
    url = f"sqlite:///{tmp_path / 'data' / 'agents.db'}"
    sealpoint.init(url, **where)
    state = {"data": _random(8_000_000)}
    with sealpoint.open_store(url, **where) as store:
        thread = store.thread("t")
        thread.save({"small": 1})
        tracemalloc.start()
        try:
            thread.save(state)
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak_bytes < len(state["data"]) / 2
