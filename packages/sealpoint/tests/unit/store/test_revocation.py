# SPDX-License-Identifier: Apache-2.0
"""Ending keys: what was saved stays, nothing is added to it, and no save is lost in silence."""

import threading
from collections.abc import Callable

import msgspec
import pytest

from sealpoint.errors import (
    HeadMoved,
    KeyMissing,
    NotTrusted,
    SealpointError,
    Unanchored,
)
from sealpoint.ledger import STORE_CHAIN
from sealpoint.signing import STOPPED, Cutoff, RosterDocument
from tests.deployment import Deployment
from tests.ledgers import identity, key
from tests.unit.store.ended import add_key, end, enter, pool, rooted, survey

_NEW = add_key("worker", "worker-2")


def test_a_revoked_key_saves_nothing_more(world: Deployment) -> None:
    """In every process that holds it, at its next save, with a hint; threads stay readable."""
    busy, idle = world.open(), world.open()
    busy.thread("t").save(1)
    idle.thread("u").save(1)
    ended = end(world, "worker", change=_NEW)

    for store, name in ((busy, "t"), (idle, "u"), (idle, "new"), (world.open(), "t")):
        with pytest.raises(NotTrusted, match="was revoked, by roster 2") as caught:
            store.thread(name).save(2)
        assert "open the store again with the new one" in caught.value.hint
    assert (ended.roster, ended.threads, ended.unverified, ended.beyond) == (2, 2, (), ())
    assert busy.thread("t").load().state == 1
    assert [ref.seq for ref in idle.thread("u").history()] == [2]


def test_the_new_key_goes_on_with_the_threads(world: Deployment) -> None:
    """It loads what the old one saved, saves on top of it, and everything verifies."""
    world.open().thread("t").save(1)
    end(world, "worker", change=_NEW)
    store = world.open("worker-2")
    store.thread("u").save(3)

    assert store.thread("t").load().state == 1
    assert store.thread("t").save(2).seq == 4
    assert [ref.writer for ref in store.thread("t").history()] == ["worker", "worker"]
    assert store.verify().ok
    assert world.open(None, read_only=True).thread("t").load().state == 2


def test_keys_end_one_after_the_other(world: Deployment) -> None:
    """Each has its own list; those of the earlier ones are repeated and still found."""
    world.open().thread("t").save(1)
    end(world, "worker", change=_NEW)
    store = world.open("worker-2")
    first = store.thread("t").load().ref
    second = store.thread("t").save(2)
    end(world, "worker-2", change=add_key("worker", "worker-3"))
    third = world.open("worker-3")

    assert third.thread("t").load().ref == second
    assert third.thread("t").load(first).state == 1
    assert third.thread("t").save(3).seq == 6
    assert third.verify().ok
    assert len(third.core.trust().roster.cutoffs) == 2


def test_several_keys_end_at_once(world: Deployment) -> None:
    """A roster carries the cuts of all; each key keeps what it wrote, and no more."""
    world.enrol(identity("second"))
    world.open().thread("t").save(1)
    world.open("second").thread("u").save(2)
    ended = end(world, "worker", "second")
    reader = world.open(None, read_only=True)

    assert ended.threads == 2
    assert [reader.thread(name).load().state for name in ("t", "u")] == [1, 2]
    for who in ("worker", "second"):
        with pytest.raises(NotTrusted, match="revoked"):
            world.open(who).thread("v").save(3)


def test_a_key_that_wrote_nothing_ends_with_an_empty_list(world: Deployment) -> None:
    """From then on nothing that it signs counts."""
    world.open().thread("t").save(1)
    ended = end(world, "operator")

    assert ended.threads == 0
    assert world.open().thread("t").save(2).seq == 4
    assert world.open().verify().ok


def test_the_root_is_needed_before_anything_is_written(memory: Deployment) -> None:
    """Without its keys nothing is stopped."""
    entries = len(memory.memory._records[STORE_CHAIN])
    with rooted(memory) as root, pytest.raises(KeyMissing):
        root.end("worker", roots=["operator"])
    assert len(memory.memory._records[STORE_CHAIN]) == entries


def test_progress_is_told(memory: Deployment) -> None:
    """How many threads are done, of how many, at every look."""
    for name in ("a", "b"):
        memory.open().thread(name).save(name)
    told: list[tuple[int, int]] = []
    end(memory, "worker", progress=lambda done, total: told.append((done, total)))

    assert told == [(1, 2), (2, 2)] * 3


# ---------------------------------------------------------------------- saves meanwhile


def test_what_is_saved_before_the_stop_is_kept(memory: Deployment) -> None:
    """A save that comes after the first look and before the stop is in the list."""
    worker = memory.open()
    worker.thread("t").save(1)
    with rooted(memory) as root:
        # The first thing that is appended is the roster that stops the key.
        root.storage.appending.before = lambda: worker.thread("t").save(2)
        ended = root.end("worker", change=_NEW)

    assert ended.beyond == ()
    assert memory.open("worker-2").thread("t").load().state == 2


def test_between_stop_and_cut_nothing_is_saved(memory: Deployment) -> None:
    """The key has expired then, by every clock, and what it wrote is readable."""
    worker = memory.open()
    worker.thread("t").save(1)

    def look() -> None:
        assert worker.core.trust().roster.expiries.get(key("worker").key) == STOPPED
        with pytest.raises(NotTrusted, match="is being ended"):
            worker.thread("t").save(2)
        assert worker.thread("t").load().state == 1

    with rooted(memory) as root:
        seen: list[int] = []

        def settled(done: int, total: int) -> None:
            del total
            if root.core.trust().roster.seq == 1 and not seen:
                seen.append(done)
                look()

        root.end("worker", change=_NEW, progress=settled)

    assert seen == [1]


def test_a_save_that_is_held_up_over_the_whole_end_fails_loudly(memory: Deployment) -> None:
    """It was signed before the stop and lands after the cut: refused there and everywhere."""
    worker = memory.open()
    worker.thread("t").save(1)
    worker.thread("u").save(1)
    worker.storage.appending.before = lambda: end(memory, "worker", change=_NEW)

    with pytest.raises(NotTrusted, match="of the revoked key"):
        worker.thread("t").save(2)
    for reader in (memory.open("worker-2"), memory.open(None, read_only=True), worker):
        with pytest.raises(NotTrusted, match="of the revoked key"):
            reader.thread("t").load()
    assert memory.open("worker-2").thread("u").save(2).seq == 4
    codes = [finding.code for finding in memory.open("worker-2").verify().findings]
    assert codes == ["not-trusted"]


def test_rows_beyond_the_cut_are_taken_out_and_the_thread_goes_on(memory: Deployment) -> None:
    """An entry that no anchor has seen leaves nothing behind when it is removed."""
    worker = memory.open()
    worker.thread("t").save(1)
    worker.storage.appending.before = lambda: end(memory, "worker", change=_NEW)
    worker.anchor.fail(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        worker.thread("t").save(2)
    store = memory.open("worker-2")
    with pytest.raises(NotTrusted):
        store.thread("t").load()
    memory.put(memory.thread_id("t"), 3, None)

    assert store.thread("t").load().state == 1
    assert store.thread("t").save(2).seq == 4


def test_a_save_that_comes_to_its_end_during_the_looks_is_kept(memory: Deployment) -> None:
    """Its entry is there and the anchor does not know it yet: looked at again until it does."""
    worker = memory.open()
    worker.thread("t").save(1)
    written, go_on = threading.Event(), threading.Event()

    def held_up() -> None:
        written.set()
        assert go_on.wait(30)

    worker.anchor.advancing.before = held_up
    errors: list[SealpointError] = []

    def save() -> None:
        try:
            worker.thread("t").save(2)
        except SealpointError as error:
            errors.append(error)

    saving = threading.Thread(target=save)

    def begin() -> None:
        saving.start()
        assert written.wait(30)

    settled: list[int] = []

    def settle() -> None:
        settled.append(1)
        go_on.set()
        saving.join(30)

    with rooted(memory) as root:
        root.storage.appending.after = begin
        ended = root.end("worker", change=_NEW, settle=settle)

    # The roster was in the store and not in the anchor yet when the worker looked.
    assert settled
    assert len(errors) == 1
    assert "written while its key was ended" in str(errors[0])
    assert (ended.unverified, ended.beyond) == ((), ())
    assert memory.open("worker-2").thread("t").load().state == 2
    assert memory.open("worker-2").verify().ok


def test_nobody_builds_on_what_came_after_the_cut(memory: Deployment) -> None:
    """Another member of the pool that had verified it neither loads nor saves on top of it."""
    memory.enrol(identity("second"))
    enter(memory, pool("pods", "worker", "second"))
    worker, second = memory.open(), memory.open("second")
    worker.thread("t").save(1)
    looked = survey(memory, "worker")
    worker.thread("t").save(2)
    assert second.thread("t").load().state == 2
    listed = looked.positions[key("worker").key]
    enter(memory, _without_worker(Cutoff(key("worker").key, listed.digest.hex())), listed)

    with pytest.raises(NotTrusted, match="of the revoked key"):
        second.thread("t").save(3)
    with pytest.raises(NotTrusted, match="of the revoked key"):
        second.thread("t").load()
    with pytest.raises(NotTrusted, match="of the revoked key"):
        list(second.thread("t").history())
    assert memory.memory._records[memory.thread_id("t")].keys() == set(range(4))


def _without_worker(cut: Cutoff) -> Callable[[RosterDocument], RosterDocument]:
    def change(document: RosterDocument) -> RosterDocument:
        people = tuple(
            msgspec.structs.replace(each, keys=()) if each.name == "worker" else each
            for each in document.identities
        )
        return msgspec.structs.replace(document, identities=people, cutoffs=(cut,))

    return change


def test_keys_that_go_on_writing_are_told_apart(memory: Deployment) -> None:
    """Looks that never agree end with an error, and the key stays stopped."""
    worker = memory.open()
    worker.thread("t").save(1)
    worker.thread("t").save(2)
    thread = memory.thread_id("t")
    row = memory.record("t", 3)

    def move() -> None:
        there = 3 in memory.memory._records[thread]
        memory.put(thread, 3, None if there else row)

    with rooted(memory) as root:
        root.storage.appending.after = move
        with pytest.raises(HeadMoved, match="they still write"):
            root.end("worker", change=_NEW, settle=move)
    assert memory.open(None, read_only=True).core.trust().roster.cutoffs == {}
    with pytest.raises(NotTrusted, match="being ended"):
        memory.open().thread("u").save(1)


# ---------------------------------------------------------------------- interruptions


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("which", [1, 2])
def test_an_interrupted_end_is_repeated(memory: Deployment, which: int, *, after: bool) -> None:
    """Before or after either roster: repeating it ends the key, and nothing is lost."""
    memory.open().thread("t").save(1)
    with rooted(memory) as root:
        count = [0]

        def stop() -> None:
            count[0] += 1
            if count[0] == which:
                raise KeyboardInterrupt
            arm()

        def arm() -> None:
            if after:
                root.storage.appending.after = stop
            else:
                root.storage.appending.before = stop

        arm()
        with pytest.raises(KeyboardInterrupt):
            root.end("worker", change=_NEW)
    if memory.open(None).core.trust().roster.cutoffs:
        assert (which, after) == (2, True)
    else:
        end(memory, "worker", change=_NEW)

    assert memory.open("worker-2").thread("t").load().state == 1
    with pytest.raises(NotTrusted):
        memory.open().thread("t").save(2)
    assert memory.open("worker-2").thread("t").save(2).seq == 4


# ---------------------------------------------------------------------- threads in doubt


def test_a_damaged_thread_is_listed_as_the_anchor_saw_it(memory: Deployment) -> None:
    """What was good stays good once it is repaired; the rest of the store is not kept waiting."""
    worker = memory.open()
    for number in (1, 2):
        worker.thread("t").save(number)
    row = memory.record("t", 3)
    memory.put(memory.thread_id("t"), 3, msgspec.structs.replace(row, seals=b"[]"))
    ended = end(memory, "worker", change=_NEW)
    (doubt,) = ended.unverified

    assert (doubt.name, doubt.code, doubt.kept) == ("t", "edited", 3)
    assert ended.beyond == ()
    memory.put(memory.thread_id("t"), 3, row)
    store = memory.open("worker-2")
    assert store.thread("t").load().state == 2
    assert store.thread("t").save(3).seq == 5
    assert store.verify().ok


def test_a_lost_thread_can_be_brought_back(memory: Deployment) -> None:
    """The store has nothing of it, the anchor knows it: it is listed all the same."""
    memory.open().thread("t").save(1)
    thread = memory.thread_id("t")
    rows = dict(memory.memory._records[thread])
    for seq in rows:
        memory.put(thread, seq, None)
    (doubt,) = end(memory, "worker", change=_NEW).unverified
    for seq, row in rows.items():
        memory.put(thread, seq, row)

    assert (doubt.name, doubt.code, doubt.kept) == ("", "missing", 2)
    assert memory.open("worker-2").thread("t").load().state == 1


def test_an_entry_that_the_thief_planted_is_not_kept(memory: Deployment) -> None:
    """After the stop only what the anchor has seen is taken: the list ends before it."""
    worker = memory.open()
    worker.thread("t").save(1)
    thread = memory.thread_id("t")
    worker.anchor.fail(KeyboardInterrupt())
    with rooted(memory) as root:

        def plant() -> None:
            with pytest.raises(KeyboardInterrupt):
                worker.thread("t").save("planted")

        root.storage.appending.before = plant
        ended = root.end("worker", change=_NEW)
    (doubt,) = ended.unverified

    assert (doubt.code, doubt.kept) == ("not-trusted", 2)
    memory.put(thread, 3, None)
    assert memory.open("worker-2").thread("t").load().state == 1


def test_a_thread_that_the_anchor_does_not_know_is_left_out(memory: Deployment) -> None:
    """Nobody vouches for what the key wrote there, so none of it counts."""
    memory.open().thread("t").save(1)
    thread = memory.thread_id("t")
    memory.forget("t")
    (doubt,) = end(memory, "worker", change=_NEW).unverified

    assert (doubt.thread, doubt.name) == (thread.hex(), "t")
    assert (doubt.code, doubt.kept) == ("unanchored", None)
    with pytest.raises((NotTrusted, Unanchored)):
        memory.open("worker-2").thread("t").load()


def test_a_name_that_was_only_reserved_is_nothing(memory: Deployment) -> None:
    """A first save that never came to an entry is neither listed nor in doubt."""
    worker = memory.open()
    worker.storage.fail(KeyboardInterrupt(), after=False)
    with pytest.raises(KeyboardInterrupt):
        worker.thread("t").save(1)

    ended = end(memory, "worker", change=_NEW)
    assert (ended.threads, ended.unverified) == (0, ())


def test_a_first_save_that_the_anchor_has_not_seen_counts(memory: Deployment) -> None:
    """The first look verifies it and lets the anchor follow, before the key is stopped."""
    worker = memory.open()
    worker.anchor.fail(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        worker.thread("t").save(1)
    ended = end(memory, "worker", change=_NEW)

    assert (ended.threads, ended.unverified) == (1, ())
    assert memory.open("worker-2").thread("t").load().state == 1
