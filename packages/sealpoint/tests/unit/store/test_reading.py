# SPDX-License-Identifier: Apache-2.0
"""Loading by head, ref and id; history; and reading without writing."""

from collections.abc import Iterator
from itertools import islice

import msgspec
import pytest

from sealpoint.errors import (
    Forked,
    Misplaced,
    Missing,
    ReadOnly,
    RolledBack,
    SealpointError,
    Unanchored,
    UnknownCheckpoint,
    UnknownThread,
)
from sealpoint.store import CheckpointRef
from tests.deployment import Deployment
from tests.ledgers import identity


def test_load_gives_the_newest_or_what_was_asked_for(world: Deployment) -> None:
    """The head, a ref and an id each give their own state, from any handle."""
    thread = world.open().thread("t")
    refs = [thread.save({"n": n}, id=f"c{n}", metadata={"n": n}) for n in range(6)]

    for reader in (thread, world.open().thread("t")):
        assert reader.load().state == {"n": 5}
        for number, ref in enumerate(refs):
            assert reader.load(ref).state == {"n": number}
            assert reader.load(f"c{number}").ref == ref
            assert reader.load(ref).metadata == {"n": number}


def test_history_goes_from_the_newest_to_the_first(world: Deployment) -> None:
    """Every checkpoint once, across sessions, with what its save returned."""
    refs = [world.open().thread("t").save(number, metadata={"n": number}) for number in range(4)]

    assert list(world.open().thread("t").history()) == refs[::-1]


def test_a_checkpoint_is_found_by_its_position(world: Deployment) -> None:
    """As the save returned it; entries of other kinds and positions beyond the end are none."""
    thread = world.open().thread("t")
    refs = [thread.save(number, id=f"c{number}") for number in range(9)]

    for reader in (thread, world.open().thread("t")):
        assert [reader.checkpoint_at(ref.seq) for ref in refs] == refs
        for seq in (-1, 0, 1, refs[-1].seq + 1):
            with pytest.raises(UnknownCheckpoint, match=f"no checkpoint at position {seq}"):
                reader.checkpoint_at(seq)


def test_a_checkpoint_far_back_costs_a_few_reads(memory: Deployment) -> None:
    """Links are skipped, wherever it lies."""
    store = memory.open()
    for number in range(200):
        store.thread("t").save(number)
    reader = memory.open()
    reader.thread("t").load()
    reader.storage.read_positions.clear()

    assert reader.thread("t").checkpoint_at(5).seq == 5
    assert len(reader.storage.read_positions) < 40


def test_history_reads_no_more_than_is_asked_for(memory: Deployment) -> None:
    """The newest ref of a long thread costs a few reads, not the whole thread."""
    store = memory.open()
    for number in range(200):
        store.thread("t").save(number)
    reader = memory.open()
    reader.storage.read_positions.clear()
    refs = reader.thread("t").history()
    assert not reader.storage.read_positions
    newest = list(islice(refs, 3))

    assert [ref.seq for ref in newest] == [201, 200, 199]
    assert len(reader.storage.read_positions) < 60


def test_history_stays_what_it_was_while_saving_goes_on(world: Deployment) -> None:
    """A history that was begun shows the thread as it was then."""
    thread = world.open().thread("t")
    for number in range(3):
        thread.save(number)
    refs = thread.history()
    first = next(refs)
    thread.save("later")
    thread.load()

    assert [first.seq, *(ref.seq for ref in refs)] == [4, 3, 2]


def test_an_unknown_thread_is_unknown(world: Deployment) -> None:
    """Reading a name that nobody saved is an error of its own, and makes nothing."""
    store = world.open()
    thread = store.thread("t")

    with pytest.raises(UnknownThread, match="'t'"):
        thread.load()
    with pytest.raises(UnknownThread):
        thread.load("c1")
    with pytest.raises(UnknownThread):
        next(thread.history())
    assert store.anchor.writes == 0
    assert thread.save(1).seq == 2


@pytest.mark.parametrize("which", ["id", "seq", "past the end", "before", "of another kind"])
def test_an_unknown_checkpoint_is_unknown(world: Deployment, which: str) -> None:
    """An id or ref that the thread does not have is refused; a ref must match id and place."""
    thread = world.open().thread("t")
    ref = thread.save(1, id="c1")
    seq = {"seq": 1, "past the end": 9, "before": -1, "of another kind": 0}.get(which, ref.seq)
    wrong = CheckpointRef(
        id="c2" if which == "id" else "c1",
        seq=seq,
        time=ref.time,
        writer=ref.writer,
        metadata={},
    )

    with pytest.raises(UnknownCheckpoint, match="it has no checkpoint"):
        thread.load(wrong)
    with pytest.raises(UnknownCheckpoint):
        thread.load("c2")


def test_a_ref_of_another_thread_is_unknown(world: Deployment) -> None:
    """Refs are looked up in the thread that is asked."""
    store = world.open()
    store.thread("t").save(1, id="mine")
    other = store.thread("u").save(2)

    with pytest.raises(UnknownCheckpoint):
        store.thread("t").load(other)


def test_read_only_writes_nothing_and_needs_no_key(world: Deployment) -> None:
    """Neither store nor anchor is touched, even where the anchor is behind."""
    writer = world.open()
    writer.thread("t").save(1)
    writer.anchor.fail(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        writer.thread("t").save(2)
    before = world.position("t")
    reader = world.open(None, read_only=True)
    thread = reader.thread("t")

    assert thread.load().state == 2
    assert [ref.seq for ref in thread.history()] == [3, 2]
    assert reader.threads().complete
    assert reader.verify().ok
    assert (reader.anchor.writes, reader.storage.offered) == (0, [])
    assert world.position("t") == before
    for _ in range(2):
        with pytest.raises(ReadOnly):
            thread.save(3)


def test_a_reader_sees_what_others_write(world: Deployment) -> None:
    """Every load looks anew, from the same handle."""
    reader, writer = world.open(None, read_only=True).thread("t"), world.open().thread("t")
    for number in range(3):
        writer.save(number)
        assert reader.load().state == number


def test_a_reader_follows_a_new_roster(world: Deployment) -> None:
    """An entry under a roster that came after opening is understood without reopening."""
    reader, writer = world.open(None, read_only=True), world.open()
    writer.thread("t").save(1)
    assert reader.thread("t").load().state == 1
    world.enrol(identity("second"))
    second = world.open("second")
    second.thread("u").save(2)
    writer.thread("t").save(3)

    assert reader.thread("u").load().ref.writer == "second"
    assert reader.thread("t").load().state == 3
    assert reader.verify().ok


def _both(memory: Deployment) -> Iterator[tuple[str, object]]:
    """A handle that knows the thread, and one that does not."""
    known = memory.open().thread("t")
    for number in range(5):
        known.save(number)
    yield "known", known
    yield "new", memory.open().thread("t")


def test_a_shorter_store_is_rolled_back(memory: Deployment) -> None:
    """Taking the newest entries away is noticed by every read and every save."""
    handles = dict(_both(memory))
    for seq in (6, 5):
        memory.put(memory.thread_id("t"), seq, None)

    for handle in (*handles.values(), memory.open(None, read_only=True).thread("t")):
        with pytest.raises(RolledBack):
            handle.load()  # type: ignore[attr-defined]
        with pytest.raises(RolledBack):
            next(handle.history())  # type: ignore[attr-defined]
    with pytest.raises((RolledBack, Misplaced)):
        memory.open().thread("t").save("over it")
    assert memory.thread_id("t")


def test_a_hole_is_missing(memory: Deployment) -> None:
    """A deleted entry in the middle is noticed by every call that walks over it."""
    handles = dict(_both(memory))
    memory.put(memory.thread_id("t"), 3, None)

    assert handles["known"].load().state == 4  # type: ignore[attr-defined]
    for handle in handles.values():
        with pytest.raises(Missing):
            list(handle.history())  # type: ignore[attr-defined]
        with pytest.raises(SealpointError):
            handle.load("c3")  # type: ignore[attr-defined]


def test_a_genuine_entry_of_another_history_is_a_fork(memory: Deployment) -> None:
    """Two copies of a store went different ways: the anchor knows one of them."""
    memory.open().thread("t").save(0)
    thread = memory.thread_id("t")
    copy = {seq: memory.record("t", seq) for seq in range(3)}
    memory.open().thread("t").save("one way")
    other = Deployment()
    for seq, record in copy.items():
        other.put(thread, seq, record)
    slot, position = memory.slot("t"), memory.position("t")
    assert position is not None
    other.anchored.create(slot, type(position)(thread, 0, 0, -1, bytes(32)))
    other.open().thread("t").save("another way")
    for seq in (3, 4):
        memory.put(thread, seq, other.record("t", seq))

    with pytest.raises(Forked):
        memory.open().thread("t").load()
    with pytest.raises(Forked):
        memory.open().thread("t").save(1)
    other.close()


def test_an_unanchored_thread_is_refused_for_everything(memory: Deployment) -> None:
    """A thread that only the store knows is neither read nor written nor listed."""
    memory.open().thread("t").save(1)
    memory.forget("t")
    store = memory.open()
    thread = store.thread("t")

    for call in (thread.load, lambda: thread.save(2), lambda: next(thread.history())):
        with pytest.raises(Unanchored):
            call()
    assert store.threads(partial=True).names == ()
    assert not store.threads().complete
    assert store.storage.groups == []


@pytest.mark.parametrize("seq", range(5))
@pytest.mark.parametrize("part", ["header", "seals", "body", "payload"])
def test_no_edited_part_of_an_entry_is_believed(memory: Deployment, seq: int, part: str) -> None:
    """An edited part is refused by whoever relies on it, and never shown as something else."""
    states = [{"n": number, "text": "x" * 100} for number in range(2)]
    for number, state in enumerate(states):
        memory.open().thread("t").save(state, id=f"c{number}")
    record = memory.record("t", seq)
    old: bytes = getattr(record, part) or b"planted"
    changed = msgspec.structs.replace(record, **{part: old[:-3] + bytes([old[-3] ^ 1]) + old[-2:]})
    memory.put(memory.thread_id("t"), seq, changed)
    thread = memory.open().thread("t")
    codes = set()
    for call, genuine in (
        (lambda: thread.load().state, states[1]),
        (lambda: thread.load("c0").state, states[0]),
        (lambda: [ref.id for ref in thread.history()], ["c1", "c0"]),
        (lambda: thread.save(states[1]).seq, 6),
    ):
        try:
            assert call() == genuine
        except SealpointError as error:
            codes.add(error.code)

    assert codes <= {"edited", "forged"}
    assert codes or seq < 2 or part in {"seals", "payload"}
    if part in {"header", "body"} and seq in {2, 4}:
        assert codes == {"edited"}


def test_a_ref_is_of_one_thread_even_where_position_and_id_coincide(world: Deployment) -> None:
    """Position and id may coincide between threads; the entry that a ref names does not."""
    store = world.open()
    ref = store.thread("a").save("a", id="step-1")
    store.thread("b").save("b", id="step-1")

    assert store.thread("a").load(ref).state == "a"
    with pytest.raises(UnknownCheckpoint):
        store.thread("b").load(ref)
