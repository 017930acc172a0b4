# SPDX-License-Identifier: Apache-2.0
"""Erasing: everything goes, that it was there is known, and the name begins anew."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from sealpoint.anchor import Position
from sealpoint.errors import (
    Erased,
    HeadMoved,
    NotOwner,
    NotTrusted,
    ReadOnly,
    RolledBack,
    Superseded,
    UnknownCheckpoint,
    UnknownThread,
    UsageError,
)
from sealpoint.ledger import EraseBody, Kind, parse_body, parse_header
from sealpoint.signing import Role
from tests.deployment import Deployment, Opened
from tests.ledgers import identity
from tests.unit.store.retained import (
    check_whole,
    contents,
    enrolled,
    filled,
    kept_ids,
    state_of,
    stored,
)


@pytest.fixture(autouse=True)
def _people(request: pytest.FixtureRequest) -> None:
    """Every world of these tests has a privacy officer."""
    for name in ("world", "memory"):
        if name in request.fixturenames:
            enrolled(request.getfixturevalue(name))


def _erased(world: Deployment, name: str = "t", count: int = 3) -> Opened:
    """A store with a thread that was filled and erased."""
    store = world.open()
    filled(store, count, name=name)
    world.open("officer").thread(name).erase(reason="as was asked for")
    return store


def _position(world: Deployment, name: str = "t") -> Position:
    position = world.position(name)
    assert position is not None
    return position


def test_an_erased_thread_holds_nothing(world: Deployment) -> None:
    """Not a body, a payload, a blob or a label is left; headers and signatures are."""
    store = world.open()
    filled(store, 3)
    thread, label = world.thread_id("t"), store.thread("t")._state.chain.label
    before = list(store.storage.inner.scan(thread, 0))
    done = world.open("officer").thread("t").erase(reason="as was asked for")
    after = list(store.storage.inner.scan(thread, 0))
    body: EraseBody = parse_body(
        Kind.ERASE, parse_header(after[5][1].header).body, after[5][1].body or b""
    )

    assert [(seq, row.header, row.seals) for seq, row in after[:5]] == [
        (seq, row.header, row.seals) for seq, row in before
    ]
    assert all(row.body is None and row.payload is None for _, row in after[:5])
    assert body.reason == "as was asked for"
    assert (done.entries, done.entry) == (5, 5)
    assert done.blobs > 0
    assert done.size_bytes > 1000
    assert list(store.storage.inner.stored_blobs(thread)) == []
    assert thread not in list(store.storage.inner.blob_threads())
    assert store.storage.inner.labelled(label) == []
    assert _position(world).erased


def test_reading_an_erased_thread_says_that_it_was_erased(world: Deployment) -> None:
    """Whoever asks is told so, by name, by id and by an old reference; nothing is listed."""
    store = world.open()
    refs = filled(store, 3)
    officer = world.open("officer")
    officer.thread("t").erase(reason="x")

    for reader in (store, officer, world.open(), world.open(None, read_only=True)):
        for name in (None, refs[0], refs[2], "c1"):
            with pytest.raises(Erased, match="it was erased at entry 5"):
                reader.thread("t").load(name)
        assert list(reader.thread("t").history()) == []
        assert reader.threads().names == ()
        assert reader.threads().complete
        assert reader.verify().ok


def test_a_save_after_an_erasure_begins_a_new_generation(world: Deployment) -> None:
    """Same thread, next position, next generation; what was before stays erased."""
    old = filled(world.open(), 3)
    _erased(world, count=0)
    store = world.open()
    refs = filled(store, 2)
    rows = list(store.storage.inner.scan(world.thread_id("t"), 6))
    headers = [parse_header(row.header) for _, row in rows]

    assert [ref.seq for ref in refs] == [8, 9]
    assert [header.kind for header in headers] == [
        *(Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT, Kind.CHECKPOINT)
    ]
    assert {header.gen for header in headers} == {1}
    assert not _position(world).erased
    assert _position(world).gen == 1
    for reader in (store, world.open()):
        assert reader.thread("t").load().state == state_of(1)
        assert [ref.id for ref in reader.thread("t").history()] == ["c1", "c0"]
        assert reader.threads().names == ("t",)
        assert reader.threads().complete
        for ref in old:
            with pytest.raises(Erased, match=f"entry {ref.seq} of thread 't'"):
                reader.thread("t").load(ref)
        with pytest.raises(UnknownCheckpoint):
            reader.thread("t").load("c2")
    check_whole(world)


@pytest.mark.parametrize("generations", [1, 2, 4])
def test_a_thread_can_be_erased_again_and_again(world: Deployment, generations: int) -> None:
    """Each time everything goes, prunes and earlier erasures included."""
    officer = world.open("officer")
    for generation in range(generations):
        store = world.open()
        filled(store, 3)
        store.thread("t").prune(keep_last=1)
        done = officer.thread("t").erase(reason=f"time {generation}")
        rows = list(store.storage.inner.scan(world.thread_id("t"), 0))

        assert [seq for seq, row in rows if row.body is not None] == [done.entry]
        assert stored(store) == {}
        assert world.open().verify().ok
    filled(world.open(), 2)

    assert _position(world).gen == generations
    assert kept_ids(world.open()) == ["c0", "c1"]
    check_whole(world)


def test_another_owner_may_begin_the_next_generation(world: Deployment) -> None:
    """Nobody can know any more whose the thread was: its name is free to whoever may write."""
    _erased(world)
    filled(world.open("other"), 2)

    assert world.open().thread("t").load().ref.writer == "other"
    with pytest.raises(NotOwner):
        world.open().thread("t").save(1)
    check_whole(world)


def test_the_handle_that_erased_may_go_on(world: Deployment) -> None:
    """An owner who has the privacy role erases and saves with one handle."""
    world.enrol(identity("both", Role.WRITER, Role.PRIVACY))
    store = world.open("both")
    filled(store, 3)
    store.thread("t").erase(reason="x")
    filled(store, 2)

    assert store.storage.groups == [3, 1, 1, 1, 3, 1]
    check_whole(world)


def test_erasing_twice_records_it_once(world: Deployment) -> None:
    """The second call finds nothing to do, and makes sure of it."""
    _erased(world)
    officer = world.open("officer")
    before = contents(officer)
    done = officer.thread("t").erase(reason="once more")

    assert (done.entries, done.blobs, done.size_bytes, done.entry) == (0, 0, 0, 5)
    assert officer.storage.compactions == 1
    assert contents(officer) == before


def test_other_threads_are_left_alone(world: Deployment) -> None:
    """Blobs are of one thread: the same state under another name stays."""
    filled(world.open(), 3, name="beside")
    _erased(world)

    assert kept_ids(world.open(), "beside") == ["c0", "c1", "c2"]
    assert world.open().threads().names == ("beside",)
    check_whole(world, "beside")


# ---------------------------------------------------------------------- who may, and dry runs


@pytest.mark.parametrize("who", ["worker", "other", "operator"])
def test_only_the_privacy_role_erases(world: Deployment, who: str) -> None:
    """Neither the owner nor an operator may; nothing is written."""
    filled(world.open(), 2)
    before = contents(world.open())

    with pytest.raises(NotTrusted, match="needs role privacy in namespace 'default'"):
        world.open(who).thread("t").erase(reason="x")
    assert contents(world.open()) == before


def test_an_erasure_needs_a_reason_and_a_thread(world: Deployment) -> None:
    """An empty reason is none, and what nobody saved cannot be erased."""
    officer = world.open("officer")

    for reason in ("", " \n"):
        with pytest.raises(UsageError, match="erase: a reason is needed"):
            officer.thread("t").erase(reason=reason)
    with pytest.raises(UnknownThread):
        officer.thread("t").erase(reason="x")


def test_a_store_for_reading_is_not_erased(world: Deployment) -> None:
    """Not before an erasure, and not after one either."""
    filled(world.open(), 2)
    reader = world.open(None, read_only=True)

    for _ in range(2):
        with pytest.raises(ReadOnly):
            reader.thread("t").erase(reason="x")
        world.open("officer").thread("t").erase(reason="x")
    assert reader.storage.drops == 0


def test_a_dry_run_says_what_would_go_and_changes_nothing(world: Deployment) -> None:
    """It needs no right, and gives what the erasure after it gives."""
    store = world.open()
    filled(store, 3)
    before = contents(store)
    planned = world.open(None, read_only=True).thread("t").erase(reason="x", dry_run=True)
    assert contents(store) == before
    done = world.open("officer").thread("t").erase(reason="x")
    nothing = store.thread("t").erase(reason="x", dry_run=True)

    assert planned.entry is None
    assert (planned.entries, planned.blobs, planned.size_bytes) == (
        *(done.entries, done.blobs, done.size_bytes),
    )
    assert (nothing.entries, nothing.blobs) == (0, 0)


def test_an_erasure_is_told(world: Deployment) -> None:
    """Whoever listens learns that a thread was erased, and not its name or the reason."""
    _erased(world)
    (event,) = [event for event in world.events if event.code == "erase"]

    assert (event.seq, event.thread) == (5, world.thread_id("t").hex())


# ---------------------------------------------------------------------- beside others


def test_a_worker_whose_thread_was_erased_is_told(world: Deployment) -> None:
    """Its session is over; once it has been told, it may begin the thread anew."""
    worker = world.open()
    filled(worker, 3)
    world.open("officer").thread("t").erase(reason="x")

    for _ in range(2):
        with pytest.raises(Superseded):
            worker.thread("t").save("lost")
    with pytest.raises(Erased):
        worker.thread("t").load()
    assert filled(worker, 1)[0].seq == 8
    check_whole(world)


def test_a_reader_whose_thread_was_erased_is_told(world: Deployment) -> None:
    """A handle without a session does not write over an erasure that it has not seen."""
    reader = world.open()
    filled(world.open(), 3)
    reader.thread("t").load()
    world.open("officer").thread("t").erase(reason="x")

    with pytest.raises(HeadMoved):
        reader.thread("t").save("lost")
    with pytest.raises(Erased):
        reader.thread("t").load()
    assert filled(reader, 1)[0].seq == 8


def test_a_save_in_the_middle_of_an_erasure_goes_with_the_rest(world: Deployment) -> None:
    """Whatever was saved before the entry that records the erasure is erased by it."""
    worker, officer = world.open(), world.open("officer")
    filled(worker, 2)
    officer.storage.appending.before = lambda: filled(worker, 1, first=2)
    done = officer.thread("t").erase(reason="x")

    assert done.entry == 5
    assert stored(officer) == {}
    with pytest.raises(Superseded):
        worker.thread("t").save("lost")


def test_a_generation_that_begins_during_the_sweep_is_kept(world: Deployment) -> None:
    """Its blobs, its bodies and its label stay, whatever the erasure still has to drop."""
    worker, officer = world.open(), world.open("officer")
    filled(worker, 3)

    def begin() -> None:
        with suppress(Erased):
            worker.thread("t").load()
        filled(worker, 2)

    officer.storage.dropping.before = begin
    officer.thread("t").erase(reason="x")

    assert worker.storage.inner.labelled(worker.thread("t")._state.chain.label) == [
        world.thread_id("t")
    ]
    assert officer.gc(dry_run=True).blobs == 0
    assert kept_ids(world.open()) == ["c0", "c1"]
    check_whole(world)


_CALLS: dict[str, tuple[str, Callable[[Opened], object], type[Exception] | None]] = {
    "load": ("fetching", lambda store: store.thread("t").load(), Erased),
    "load by id": ("fetching", lambda store: store.thread("t").load("c1"), Erased),
    "find an id": ("scanning", lambda store: store.thread("t").save(1, id="c9"), HeadMoved),
    "plan a prune": ("fetching", lambda s: s.thread("t").prune(keep_last=2, dry_run=True), None),
    "prune": ("fetching", lambda store: store.thread("t").prune(keep_last=2), None),
    "collect": ("fetching", lambda store: store.gc(), None),
    "plan a collection": ("fetching", lambda store: store.gc(dry_run=True), None),
    "verify": ("fetching", lambda store: store.verify(), None),
}


@pytest.mark.parametrize(("where", "call", "error"), _CALLS.values(), ids=_CALLS)
def test_reading_during_an_erasure_is_no_alarm(
    world: Deployment, where: str, call: Callable[[Opened], Any], error: type[Exception] | None
) -> None:
    """Whoever was reading is told that it was erased, or goes on; never that something is gone."""
    worker, reader, officer = world.open(), world.open(), world.open("officer")
    filled(worker, 4)
    worker.thread("t").prune(keep_last=3)
    reader.thread("t").load()
    reader.thread("t")._state.caches.forget()
    hooks = getattr(reader.storage, where)
    hooks.before = lambda: officer.thread("t").erase(reason="x")
    if error is None:
        found = call(reader)
        assert getattr(found, "failures", ()) == ()
        assert getattr(found, "findings", ()) == ()
    else:
        with pytest.raises(error):
            call(reader)

    assert hooks.before is None, "the erasure came in between"
    assert _position(world).erased
    assert stored(officer) == {}
    assert not [event for event in world.events if event.code == "missing"]


def test_a_listing_during_an_erasure_is_no_alarm(world: Deployment) -> None:
    """Whoever has begun to list is given the rest, or told that it was erased meanwhile."""
    filled(world.open(), 4)
    listed = world.open().thread("t").history()
    assert next(listed).id == "c3"
    world.open("officer").thread("t").erase(reason="x")
    with suppress(Erased):
        assert [ref.id for ref in listed] == ["c2", "c1", "c0"]

    assert not [event for event in world.events if event.code == "missing"]


def test_the_rest_of_a_listing_is_erased_not_missing(memory: Deployment) -> None:
    """Where the listing meets what is gone, it says why."""
    filled(memory.open(), 4)
    listed = memory.open().thread("t").history()
    next(listed)
    memory.open("officer").thread("t").erase(reason="x")

    with pytest.raises(Erased):
        list(listed)


# ---------------------------------------------------------------------- what stays known


def test_an_older_anchor_follows_over_an_erasure(memory: Deployment) -> None:
    """A reader that has last seen a position before the erasure is led past it."""
    filled(memory.open(), 3)
    behind = _position(memory)
    memory.open("officer").thread("t").erase(reason="x")
    filled(memory.open(), 2)
    newest = _position(memory)
    memory.turn_anchor(memory.slot("t"), behind)

    assert memory.open().thread("t").load().state == state_of(1)
    assert _position(memory) == newest


def test_an_erased_name_is_never_new(memory: Deployment) -> None:
    """With every row gone the name is rolled back: it does not turn into one nobody used."""
    store = _erased(memory)
    thread = memory.thread_id("t")
    for seq in range(6):
        memory.put(thread, seq, None)

    with pytest.raises(RolledBack):
        store.thread("t").load()
    with pytest.raises(RolledBack):
        memory.open().thread("t").load()
    with pytest.raises(RolledBack):
        memory.open().thread("t").save(1)
    assert [finding.code for finding in memory.open().verify().findings] == ["rolled-back"]
