# SPDX-License-Identifier: Apache-2.0
"""Deleting for the application: shown no more, payloads gone, and the audit still whole."""

from pathlib import Path

import pytest

from sealpoint.errors import (
    NotOwner,
    NotTrusted,
    Pruned,
    ReadOnly,
    UnknownCheckpoint,
    UnknownThread,
)
from sealpoint.ledger import Kind, PruneBody, parse_body, parse_header
from sealpoint.store import Key
from tests.deployment import Deployment, Opened
from tests.unit.store.laned import (
    added,
    check_verified,
    cold,
    everywhere,
    ids,
    put,
    refused,
    results,
    saved,
    values,
)
from tests.unit.store.retained import enrolled, state_of, stored


def _hidden(world: Deployment, store: Opened) -> PruneBody:
    rows = reversed(list(store.storage.inner.scan(world.thread_id("t"), 0)))
    for _, row in rows:
        header = parse_header(row.header)
        if header.kind is Kind.DELETE:
            body: PruneBody = parse_body(header.kind, header.body, row.body or b"")
            return body
    raise AssertionError("expected a hide")


def test_what_is_deleted_is_shown_no_more(world: Deployment) -> None:
    """Neither by its id nor in a listing nor as the newest, to any handle; others stay."""
    store = world.open()
    saved(store.thread("t"), put(1, "1"), results("r", "1"), put(2, "2"), put(3, "3"))
    (ref,) = [each for each in store.thread("t").history() if each.id == "3"]
    warm = world.open().thread("t")
    assert ids(warm) == ["3", "2", "1"]
    at = store.thread("t").adapter.delete([Key("", "1"), Key("", "3")], reason="asked for")

    assert _hidden(world, store).reason == "asked for"
    assert at == 6
    for thread in (*everywhere(world, store), warm):
        assert ids(thread) == ["2"]
        assert [each.id for each in thread.history()] == ["2"]
        assert thread.adapter.snapshot().ref.id == "2"  # type: ignore[union-attr]
        assert thread.adapter.snapshot("", "1") is None
        assert thread.adapter.snapshot("", "3") is None
        assert thread.load().state == 2
        for name in ("3", ref):
            with pytest.raises(Pruned, match="it was deleted"):
                thread.load(name)
        with pytest.raises(UnknownCheckpoint):
            thread.checkpoint_at(ref.seq)
    check_verified(world)


def test_what_is_deleted_is_dropped(world: Deployment) -> None:
    """No payload and no blob is left that nothing else needs; headers and bodies are."""
    store = world.open()
    saved(store.thread("t"), put(state_of(1), "1"), results(state_of(2), "1"), put("x", "2"))
    before = list(store.storage.inner.scan(world.thread_id("t"), 0))
    store.thread("t").adapter.delete([Key("", "1")])
    after = list(store.storage.inner.scan(world.thread_id("t"), 0))

    assert stored(store) == {}
    assert [(row.header, row.seals, row.body) for _, row in after[:-1]] == [
        (row.header, row.seals, row.body) for _, row in before
    ]
    assert [row.payload is None for _, row in after] == [True, True, True, True, False, True]


@pytest.mark.parametrize("backend", ["sqlite", "file"])
@pytest.mark.parametrize("size", [1, 5000], ids=["small", "large"])
def test_the_bytes_leave_the_files(tmp_path: Path, backend: str, size: int) -> None:
    """After a collection no file shows what was deleted; it shows what was not."""
    world = Deployment(tmp_path, backend=backend)
    store = world.open()
    saved(
        store.thread("t"),
        put({"k": ["NEEDLE in a state" * size]}, "1"),
        results({"v": "NEEDLE in results" * size}, "1"),
        put({"k": ["HAYSTACK" * size]}, "2"),
    )

    def files_with(text: bytes) -> int:
        return sum(text in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    assert files_with(b"NEEDLE in a state")
    assert files_with(b"NEEDLE in results")
    store.thread("t").adapter.delete([Key("", "1")])
    store.gc()

    assert not files_with(b"NEEDLE")
    assert files_with(b"HAYSTACK")
    world.close()


def test_shared_blobs_of_what_lives_are_kept(world: Deployment) -> None:
    """Half of each state is in all of them, and what lives is whole."""
    store, worker = world.open(), world.open()
    thread = worker.thread("t")
    for number in range(4):
        saved(thread, put(state_of(number), f"{number}"), results(state_of(number), f"{number}"))
    store.thread("t").adapter.delete([Key("", "0"), Key("", "3")])
    saved(thread, put(state_of(3), "4"))

    for reader in (thread, cold(world)):
        for number, name in ((1, "1"), (2, "2"), (3, "4")):
            assert reader.adapter.snapshot("", name).state == state_of(number)  # type: ignore[union-attr]
        assert values(reader, "", "2") == [state_of(2)]
    check_verified(world)
    assert store.gc(dry_run=True).blobs == 0


def test_everything_can_be_deleted_and_begun_anew(world: Deployment) -> None:
    """Under the same ids, with the same states, and without the results of the time before."""
    store = world.open()
    thread = store.thread("t")
    early = results("early", "1")
    saved(thread, early, put(state_of(1), "1"), results("old", "1"), put(1, "1", "sub"))
    warm = world.open().thread("t")
    assert values(warm, "", "1") == ["early", "old"]
    thread.adapter.delete()
    for reader in (thread, cold(world), warm):
        assert reader.adapter.snapshot() is None
        assert ids(reader, None) == []
    saved(thread, put(state_of(1), "1"), results("new", "1"))

    for reader in (thread, cold(world), warm):
        assert reader.adapter.snapshot().state == state_of(1)  # type: ignore[union-attr]
        assert values(reader) == ["new"]
        assert ids(reader, None) == ["1"]
    check_verified(world)


def test_deleting_nothing_writes_nothing(world: Deployment) -> None:
    """A name that is not there, one that was deleted before, or an empty list."""
    store = world.open()
    saved(store.thread("t"), put(1, "1"), put(2, "2"))
    assert store.thread("t").adapter.delete([Key("", "1")]) == 4
    for names in ([], [Key("", "1")], [Key("", "9")], [Key("sub", "2")]):
        assert store.thread("t").adapter.delete(names) is None

    assert store.thread("t").adapter.delete() == 5
    assert store.thread("t").adapter.delete() is None


def test_a_thread_that_is_not_there_has_nothing_to_delete(world: Deployment) -> None:
    """Nobody has saved anything under this name, and nothing is begun by asking."""
    store = world.open()
    with pytest.raises(UnknownThread):
        store.thread("t").adapter.delete()

    assert store.threads().names == ()


def test_only_the_owner_deletes(world: Deployment) -> None:
    """Neither another writer nor who has another role; nor a process that only reads."""
    enrolled(world)
    saved(world.open().thread("t"), put(1, "1"))
    with pytest.raises(NotOwner):
        world.open("other").thread("t").adapter.delete()
    for who in ("operator", "officer"):
        with pytest.raises(NotTrusted):
            world.open(who).thread("t").adapter.delete()
    with pytest.raises(ReadOnly):
        cold(world).adapter.delete()

    assert ids(cold(world)) == ["1"]


def test_a_session_goes_on_after_a_deletion(world: Deployment) -> None:
    """Somebody deletes beside a worker, which saves on in its session and loses no blob."""
    worker, other = world.open(), world.open()
    for number in range(6):
        saved(worker.thread("t"), put(state_of(number), f"{number}"))
        other.thread("t").adapter.delete([Key("", f"{number}")])
    saved(worker.thread("t"), put(state_of(5), "6"))

    assert worker.storage.groups == [3, *[1] * 6]
    assert cold(world).load().state == state_of(5)
    assert ids(cold(world)) == ["6"]
    check_verified(world)


@pytest.mark.parametrize("how", ["hide", "prune"])
def test_what_goes_between_building_and_writing_is_written_anew(
    world: Deployment, how: str
) -> None:
    """A save that left out a blob which is gone by the time of its append tries once more."""
    worker, other = world.open(), world.open()
    saved(worker.thread("t"), put(state_of(1), "1"), put(state_of(1), "1", "sub"))

    def give_up() -> None:
        if how == "hide":
            other.thread("t").adapter.delete()
        else:
            other.thread("t").prune(keep_last=1)
            other.gc()

    worker.storage.appending.before = give_up
    saved(worker.thread("t"), put({**state_of(1), "more": 1}, "2", "sub"), results(1, "2"))

    assert cold(world).adapter.snapshot("sub").state == {**state_of(1), "more": 1}  # type: ignore[union-attr]
    check_verified(world)


def test_a_deletion_says_all_that_was_deleted_before(world: Deployment) -> None:
    """The newest one tells everything, through prunes in between, and none brings back."""
    store = world.open()
    thread = store.thread("t")
    for number in range(8):
        saved(thread, put(state_of(number), f"{number}"))
    thread.adapter.delete([Key("", "1")])
    thread.prune(keep_last=2, keep=["2", "4"])
    thread.adapter.delete([Key("", "2")])
    thread.adapter.delete([Key("", "4")])
    thread.prune(keep_last=1)
    body = _hidden(world, store)

    assert body.deleted == ((3, 4), (6, 6))
    assert body.kept == (4, 6)
    assert ids(cold(world)) == ["7"]
    assert [ref.id for ref in cold(world).history()] == ["7", "6", "5", "3", "0"]
    check_verified(world)


def test_stretches_of_what_is_deleted_are_joined(world: Deployment) -> None:
    """What lies between and holds nothing does not part them, so the entry stays short."""
    store = world.open()
    first, last = added(store.thread("t"), put(1, "1"), put(2, "2"))
    saved(world.open().thread("t"), put(3, "3"), results(3, "3"))
    fresh = world.open()
    fresh.thread("t").adapter.delete()

    assert (first, last) == (2, 3)
    assert _hidden(world, fresh).deleted == ((2, 6),)


def test_deleting_needs_no_session(world: Deployment) -> None:
    """It takes no thread over: who saves there is not superseded, and who deletes may save."""
    worker, cleaner = world.open(), world.open()
    saved(worker.thread("t"), put(1, "1"), put(2, "2"))
    cleaner.thread("t").adapter.delete([Key("", "1")])

    assert refused(worker.thread("t").adapter.commit([put(3, "3")])) == [None]
    assert refused(cleaner.thread("t").adapter.commit([put(4, "4")])) == ["head-moved"]


def test_superseded_states_go_with_their_name(world: Deployment) -> None:
    """Every state that was ever saved under it is dropped."""
    store = world.open()
    for number in range(3):
        saved(store.thread("t"), put(state_of(number), "1"))
    saved(store.thread("t"), put("x", "2"))
    store.thread("t").adapter.delete([Key("", "1")])

    assert stored(store) == {}
    check_verified(world)


def test_a_crash_before_the_bytes_go_is_made_good(memory: Deployment) -> None:
    """Once it is recorded nobody is shown it; the next collection takes the bytes."""
    store = memory.open()
    saved(store.thread("t"), put(state_of(1), "1"), put("x", "2"))

    def crash() -> None:
        raise KeyboardInterrupt

    store.storage.dropping.before = crash
    with pytest.raises(KeyboardInterrupt):
        store.thread("t").adapter.delete([Key("", "1")])
    fresh = memory.open()

    assert stored(store) != {}
    assert fresh.thread("t").adapter.snapshot("", "1") is None
    check_verified(memory)
    fresh.gc()
    assert stored(store) == {}


def test_deleting_what_a_prune_kept_is_no_alarm(world: Deployment) -> None:
    """What is left has given up its state: there is nothing to load, and nothing is amiss."""
    store = world.open()
    saved(store.thread("t"), put(1, "1"), put(2, "2"))
    store.thread("t").prune(keep_last=1)
    store.thread("t").adapter.delete([Key("", "2")])

    for thread in (store.thread("t"), cold(world)):
        assert thread.adapter.snapshot() is None
        with pytest.raises(UnknownCheckpoint):
            thread.load()
