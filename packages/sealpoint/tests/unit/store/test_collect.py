# SPDX-License-Identifier: Apache-2.0
"""Collecting garbage: what was cut short is finished, what lives is never touched."""

from collections.abc import Callable

import pytest

from sealpoint.errors import (
    Edited,
    Erased,
    Missing,
    Pruned,
    ReadOnly,
    StorageUnavailable,
    UnknownThread,
)
from sealpoint.store._names import label_of
from tests.deployment import Deployment, Opened
from tests.unit.store.retained import (
    check_whole,
    contents,
    enrolled,
    filled,
    kept_ids,
    needed,
    state_of,
    stored,
)


def _gone() -> None:
    raise StorageUnavailable("storage: expected it, found it gone")


def _crash(store: Opened, where: str) -> None:
    """Let a step of the next sweep fail."""
    step, when = where.split()
    setattr(getattr(store.storage, step), when, _gone)


_STEPS = ["dropping before", "dropping after", "compacting before"]


@pytest.mark.parametrize("where", _STEPS)
def test_a_prune_that_was_cut_short_is_finished(world: Deployment, where: str) -> None:
    """The entry stands, so the state is given up at once; a collection frees the space."""
    store = world.open()
    refs = filled(store, 4)
    planned = store.thread("t").prune(keep_last=1, dry_run=True)
    _crash(store, where)
    with pytest.raises(StorageUnavailable):
        store.thread("t").prune(keep_last=1)
    left = stored(store)
    for reader in (store, world.open()):
        with pytest.raises(Pruned):
            reader.thread("t").load(refs[0])
        assert reader.verify().ok
    collector = world.open("operator")
    found = collector.gc()

    assert found.failures == ()
    assert found.blobs == len(left) - len(stored(store))
    assert found.blobs == planned.blobs or where != "dropping before"
    assert set(stored(store)) == needed(world)
    assert collector.storage.compactions == 1
    assert kept_ids(store) == ["c3"]
    check_whole(world)


@pytest.mark.parametrize("where", _STEPS)
def test_a_prune_that_was_cut_short_is_finished_by_the_next(world: Deployment, where: str) -> None:
    """Whoever prunes again finishes the sweep, though there is nothing more to give up."""
    store = world.open()
    filled(store, 4)
    _crash(store, where)
    with pytest.raises(StorageUnavailable):
        store.thread("t").prune(keep_last=1)
    done = world.open().thread("t").prune(keep_last=1)

    assert (done.pruned, done.entry) == ((), None)
    assert store.gc(dry_run=True).blobs == 0
    check_whole(world)


@pytest.mark.parametrize("again", ["gc", "erase"])
@pytest.mark.parametrize("where", _STEPS)
def test_an_erasure_that_was_cut_short_is_finished(
    world: Deployment, where: str, again: str
) -> None:
    """Nobody can read what is left, and a collection or a repetition takes it away."""
    enrolled(world)
    store = world.open()
    filled(store, 4)
    thread, label = world.thread_id("t"), store.thread("t")._state.chain.label
    officer = world.open("officer")
    _crash(officer, where)
    with pytest.raises(StorageUnavailable):
        officer.thread("t").erase(reason="x")
    for reader in (store, world.open()):
        with pytest.raises(Erased):
            reader.thread("t").load()
        assert reader.verify().ok
    if again == "gc":
        assert world.open("operator").gc().failures == ()
    else:
        world.open("officer").thread("t").erase(reason="x")

    rows = list(store.storage.inner.scan(thread, 0))
    assert [seq for seq, row in rows if row.body or row.payload] == [6]
    assert list(store.storage.inner.stored_blobs(thread)) == []
    assert store.storage.inner.labelled(label) == []
    assert world.open().verify().ok


@pytest.mark.parametrize("after", [False, True])
def test_an_append_that_failed_gives_up_nothing_that_is_not_recorded(
    world: Deployment,
    after: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Where the outcome is unknown it is looked up; where nothing stands, nothing goes."""
    enrolled(world)
    store = world.open()
    filled(store, 3)
    before = stored(store)
    store.storage.fail(StorageUnavailable("storage: expected it, found it gone"), after=after)
    if after:
        assert store.thread("t").prune(keep_last=1).entry == 5
    else:
        with pytest.raises(StorageUnavailable):
            store.thread("t").prune(keep_last=1)
        assert stored(store) == before
        assert kept_ids(store) == ["c0", "c1", "c2"]
    check_whole(world)


@pytest.mark.parametrize("call", ["prune", "erase"])
def test_an_interrupt_after_the_entry_is_no_loss_of_place(world: Deployment, call: str) -> None:
    """The handle finds its own entry when it looks again, and the sweep is finished."""
    enrolled(world)
    filled(world.open(), 3)
    store = world.open("officer" if call == "erase" else "worker")
    store.storage.fail(KeyboardInterrupt(), after=True)
    calls: dict[str, Callable[[], object]] = {
        "prune": lambda: store.thread("t").prune(keep_last=1),
        "erase": lambda: store.thread("t").erase(reason="x"),
    }
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    calls[call]()

    assert store.storage.groups == [1]
    assert store.gc(dry_run=True).blobs == 0
    assert set(stored(store)) == needed(world)


# ---------------------------------------------------------------------- what belongs to nobody


def test_blobs_of_saves_that_never_ended_go(
    world: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored ahead of an entry that never came: for a thread that exists, and for one that not."""
    monkeypatch.setattr("sealpoint.store._blobs._PENDING_BYTES_MAX", 1000)
    store = world.open()
    filled(store, 2)
    before = stored(store)
    for name in ("t", "never"):
        dying = world.open()
        dying.storage.fail(KeyboardInterrupt(), after=False)
        with pytest.raises(KeyboardInterrupt):
            dying.thread(name).save(state_of(9))
    other = b"z" * 16
    store.storage.inner.put_blobs(other, {b"d" * 32: b"an orphan"})
    assert stored(store) != before
    planned = world.open().gc(dry_run=True)
    found = world.open().gc()

    assert (found.threads, found.failures) == (2, ())
    assert (found.blobs, found.size_bytes) == (planned.blobs, planned.size_bytes)
    assert found.size_bytes > 9000
    assert stored(store) == before
    assert set(store.storage.inner.blob_threads()) == {world.thread_id("t")}
    with pytest.raises(UnknownThread):
        world.open().thread("never").load()
    check_whole(world)


def test_a_save_whose_blobs_were_collected_is_repeated(
    world: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large save puts blobs ahead of its entry; if they are collected, it puts them anew."""
    monkeypatch.setattr("sealpoint.store._blobs._PENDING_BYTES_MAX", 1000)
    store, collector = world.open(), world.open("operator")
    taken: list[int] = []
    for number in range(3):
        store.storage.spilling.after = lambda: taken.append(collector.gc().blobs)
        filled(store, 1, first=number)

    assert len(taken) == 3
    assert all(taken)
    assert kept_ids(store) == ["c0", "c1", "c2"]
    check_whole(world)


def test_a_save_whose_blobs_are_always_collected_stores_them_with_its_entry(
    world: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collector that is as busy as that does not make a save fail: less and less is ahead."""
    monkeypatch.setattr("sealpoint.store._blobs._PENDING_BYTES_MAX", 1000)
    store, collector = world.open(), world.open("operator")
    filled(store, 1)
    taken: list[int] = []

    def collect() -> None:
        taken.append(collector.gc().blobs)
        store.storage.spilling.after = collect

    store.storage.spilling.after = collect
    filled(store, 1, first=1)

    assert len(taken) > 1
    assert all(taken)
    assert kept_ids(store) == ["c0", "c1"]
    check_whole(world)


def test_a_collection_during_a_first_save_hurts_nobody(
    world: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that is only reserved yet: its blobs are orphans until its entries stand."""
    monkeypatch.setattr("sealpoint.store._blobs._PENDING_BYTES_MAX", 1000)
    store, collector = world.open(), world.open("operator")
    store.storage.appending.before = collector.gc
    filled(store, 1)

    assert kept_ids(store) == ["c0"]
    check_whole(world)


def test_a_first_save_during_a_collection_is_kept(world: Deployment) -> None:
    """What got its entry after it was taken for an orphan is no orphan any more."""
    store, collector = world.open(), world.open("operator")
    store.storage.fail(KeyboardInterrupt(), after=False)
    with pytest.raises(KeyboardInterrupt):
        filled(store, 1)
    thread = store.thread("t")._state.chain.thread
    store.storage.inner.put_blobs(thread, {b"d" * 32: b"an orphan"})
    collector.storage.dropping.before = lambda: filled(store, 1)
    found = collector.gc()

    assert found.failures == ()
    assert kept_ids(store) == ["c0"]
    check_whole(world)


# ---------------------------------------------------------------------- what is left alone


def test_a_store_without_garbage_is_left_as_it_is(world: Deployment) -> None:
    """Nothing that lives is taken for garbage, pruned or not, in any generation or namespace."""
    enrolled(world)
    for name in ("t", "u", "v"):
        filled(world.open(), 3, name=name)
    filled(world.open(namespace="billing"), 2, name="w")
    world.open().thread("u").prune(keep_last=2)
    world.open("officer").thread("v").erase(reason="x")
    filled(world.open(), 2, name="v")
    store = world.open()
    before = contents(store)
    seen: list[tuple[int, int]] = []
    found = store.gc(progress=lambda done, total: seen.append((done, total)))

    assert (found.threads, found.blobs, found.size_bytes, found.failures) == (4, 0, 0, ())
    assert contents(store) == before
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_threads_of_other_namespaces_are_swept_too(world: Deployment) -> None:
    """A collection is of the store, whatever namespace it is opened for; labels are theirs."""
    enrolled(world)
    store = world.open(namespace="billing")
    filled(store, 3)
    officer = world.open("officer", namespace="billing")
    _crash(officer, "dropping before")
    with pytest.raises(StorageUnavailable):
        officer.thread("t").erase(reason="x")
    found = world.open().gc()

    assert found.blobs > 0
    assert stored(store) == {}
    label = label_of(world.pin.store.raw, "billing", "t")
    assert store.storage.inner.labelled(label) == []


def test_a_damaged_thread_is_left_as_it_is(memory: Deployment) -> None:
    """What is wrong is said, nothing of it is dropped, and the others are swept as ever."""
    store = memory.open()
    for name in ("t", "bad"):
        filled(store, 4, name=name)
        _crash(store, "dropping before")
        with pytest.raises(StorageUnavailable):
            store.thread(name).prune(keep_last=2)
    thread = memory.thread_id("bad")
    record = memory.record("bad", 3)
    memory.put(thread, 3, None)
    left = memory.blobs("bad")
    found = store.gc()

    assert [failed for failed, _ in found.failures] == [thread.hex()]
    assert "entry 3" in found.failures[0][1]
    assert found.blobs > 0
    assert memory.blobs("bad") == left
    memory.put(thread, 3, record)
    assert store.gc().failures == ()
    check_whole(memory, "bad")


def test_a_missing_blob_of_a_kept_state_stops_the_sweep(memory: Deployment) -> None:
    """What lives is read before anything is dropped: damage is not made worse."""
    store = memory.open()
    filled(store, 4)
    _crash(store, "dropping before")
    with pytest.raises(StorageUnavailable):
        store.thread("t").prune(keep_last=2)
    before = memory.blobs("t")
    missing: list[bytes] = []
    for digest, blob in before.items():
        memory.put_blob("t", digest, None)
        left = memory.blobs("t")
        found = memory.open().gc()
        if found.failures:
            missing.append(digest)
            assert memory.blobs("t") == left
            with pytest.raises(Missing):
                memory.open().thread("t").prune(keep_last=2)
        memory.memory.put_blobs(memory.thread_id("t"), {**before, digest: blob})

    assert missing


def test_an_edited_tree_stops_the_sweep(memory: Deployment) -> None:
    """A state that is kept and holds other bytes is damage, and nothing is dropped by it."""
    store = memory.open()
    thread = store.thread("t")
    refs = [thread.save({"small": number}, world={"n": number}) for number in range(3)]
    root = memory.record("t", refs[1].seq)
    memory.put(
        memory.thread_id("t"), refs[1].seq, type(root)(root.header, root.seals, root.body, b"evil")
    )
    before = memory.blobs("t")

    with pytest.raises(Edited):
        thread.prune(keep_last=2)
    assert memory.blobs("t") == before
    assert memory.record("t", refs[0].seq).payload is not None


def test_threads_that_only_the_store_knows_are_left_alone(memory: Deployment) -> None:
    """They may be somebody's newest copy: whoever adopts them sweeps them."""
    filled(memory.open(), 2)
    thread = memory.thread_id("t")
    memory.forget("t")
    before = dict(memory.memory._blobs)
    found = memory.open().gc()

    assert (found.threads, found.blobs) == (0, 0)
    assert dict(memory.memory._blobs) == before
    assert memory.memory.read(thread, 0) is not None


def test_blobs_of_a_thread_that_is_gone_are_evidence(memory: Deployment) -> None:
    """The anchor has seen the thread: its blobs are not taken for orphans."""
    filled(memory.open(), 2)
    thread, before = memory.thread_id("t"), memory.blobs("t")
    for seq in range(4):
        memory.put(thread, seq, None)
    found = memory.open().gc()

    assert [failed for failed, _ in found.failures] == [thread.hex()]
    assert memory.blobs("t") == before


def test_a_store_for_reading_is_not_collected(world: Deployment) -> None:
    """A dry run is a read; the collection itself is refused."""
    filled(world.open(), 2)
    store = world.open(None, read_only=True)

    with pytest.raises(ReadOnly):
        store.gc()
    assert store.gc(dry_run=True).threads == 1
    assert (store.storage.drops, store.storage.compactions) == (0, 0)


def test_compacting_can_be_left_for_later(world: Deployment) -> None:
    """A dry run never compacts; a collection does unless it is told not to."""
    store = world.open()
    filled(store, 1)
    store.gc(dry_run=True)
    store.gc(compact=False)
    assert store.storage.compactions == 0
    store.gc()
    assert store.storage.compactions == 1
