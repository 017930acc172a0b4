# SPDX-License-Identifier: Apache-2.0
"""Sessions: who may go on, who must look again, and that nobody is refused because of itself."""

import threading
from dataclasses import dataclass

import pytest

from sealpoint import Registry
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.errors import HeadMoved, Missing, SealpointError, Superseded, UnknownType
from sealpoint.ledger import Kind, parse_header
from sealpoint.storage import Record
from sealpoint.store import adopt_store_chain, adopt_thread
from tests.deployment import Deployment, Opened, SimulatedAnchor


@dataclass
class _Step:
    number: int


def _kinds(store: Opened, name: str) -> list[str]:
    thread = store.thread(name)._state.chain.thread
    return [str(parse_header(row.header).kind) for _, row in store.storage.inner.scan(thread, 0)]


def _fences(store: Opened, name: str) -> list[int]:
    thread = store.thread(name)._state.chain.thread
    return [parse_header(row.header).fence for _, row in store.storage.inner.scan(thread, 0)]


def test_the_first_save_is_one_append(world: Deployment) -> None:
    """Genesis, session and checkpoint come into being together or not at all."""
    store = world.open()
    ref = store.thread("t").save({"n": 1})

    assert store.storage.groups == [3]
    assert _kinds(store, "t") == ["genesis", "resume", "checkpoint"]
    assert (ref.seq, ref.writer, ref.metadata) == (2, "worker", {})


def test_a_session_is_opened_once(world: Deployment) -> None:
    """Later saves of one handle are one entry each, under the fence of its session."""
    store = world.open()
    thread = store.thread("t")
    for number in range(5):
        assert thread.save({"n": number}).seq == number + 2
        assert thread.load().state == {"n": number}

    assert store.storage.groups == [3, 1, 1, 1, 1]
    assert _fences(store, "t") == [0, 1, 1, 1, 1, 1, 1]


def test_a_new_process_opens_its_own_session(world: Deployment) -> None:
    """A handle that finds a thread resumes it before its first checkpoint, in one append."""
    world.open().thread("t").save(1)
    store = world.open()
    store.thread("t").save(2)

    assert store.storage.groups == [2]
    assert _kinds(store, "t")[3:] == ["resume", "checkpoint"]
    assert _fences(store, "t")[3:] == [3, 3]


def test_a_later_session_ends_the_earlier_one(world: Deployment) -> None:
    """The old worker is refused, stays refused, and nothing of it is written."""
    old, new = world.open(), world.open()
    old.thread("t").save(1)
    new.thread("t").load()
    new.thread("t").save(2)

    for _ in range(2):
        with pytest.raises(Superseded):
            old.thread("t").save("lost")
    assert new.thread("t").load().state == 2
    assert len(_kinds(new, "t")) == 5


def test_a_superseded_handle_loads_and_goes_on(world: Deployment) -> None:
    """Having looked again, it may take the thread over in its turn."""
    old, new = world.open(), world.open()
    old.thread("t").save(1)
    new.thread("t").save(2)
    with pytest.raises(Superseded):
        old.thread("t").save(3)

    assert old.thread("t").load().state == 2
    assert old.thread("t").save(3).seq == 6
    with pytest.raises(Superseded):
        new.thread("t").save(4)


def test_a_handle_without_a_session_learns_that_the_head_moved(world: Deployment) -> None:
    """Whoever loaded and then was overtaken decides anew instead of writing over it."""
    writer, reader = world.open(), world.open()
    writer.thread("t").save(1)
    reader.thread("t").load()
    writer.thread("t").save(2)

    for _ in range(2):
        with pytest.raises(HeadMoved):
            reader.thread("t").save("lost")
    assert reader.thread("t").load().state == 2
    assert reader.thread("t").save(3).seq == 5


def test_loading_ends_no_session_of_ones_own(world: Deployment) -> None:
    """Reading between saves opens no new session."""
    store = world.open()
    thread = store.thread("t")
    first = thread.save(1)
    thread.load()
    list(thread.history())
    thread.load(first)
    thread.save(2)

    assert store.storage.groups == [3, 1]


def test_two_handles_race_for_a_new_name(world: Deployment) -> None:
    """One of two first saves wins; the other is told, and both agree on the thread."""
    one, two = world.open(), world.open()
    one.storage.appending.before = lambda: two.thread("t").save("two")

    with pytest.raises(HeadMoved):
        one.thread("t").save("one")
    assert one.thread("t").load().state == "two"
    assert one.thread("t").save("one").seq == 4
    assert one.threads().names == ("t",)


def test_a_thread_that_was_made_meanwhile_is_not_written_over(world: Deployment) -> None:
    """Between looking and reserving somebody made the thread: this handle has to load it first."""
    one, two = world.open(), world.open()
    one.anchor.creating.before = lambda: two.thread("t").save("two")

    with pytest.raises(HeadMoved):
        one.thread("t").save("one")
    assert one.thread("t").load().state == "two"
    assert one.thread("t").save("one").seq == 4


def test_a_save_after_a_refused_look_is_refused_too(world: Deployment) -> None:
    """Nothing is acknowledged after a head whose descent was not compared with the anchor."""
    world.open().thread("t").save(1)
    store = world.open()
    position = store.core.anchor.get(store.thread("t")._state.chain.slot)
    assert position is not None
    thread = position.thread
    store.storage.append(thread, 50, [Record(b"junk", b"junk", b"junk")], blobs={})

    for _ in range(3):
        with pytest.raises(Missing):
            store.thread("t").save(2)
    assert [seq for seq, _ in store.storage.scan(thread, 0)] == [0, 1, 2, 50]


def test_being_overtaken_between_append_and_anchor_is_noticed(world: Deployment) -> None:
    """A later session begins before the anchor follows: the save stands, the next is refused."""
    one, two = world.open(), world.open()
    one.thread("t").save(1)
    one.anchor.advancing.before = lambda: (two.thread("t").load(), two.thread("t").save(3))
    assert one.thread("t").save(2).seq == 3

    with pytest.raises(Superseded):
        one.thread("t").save(4)
    assert one.thread("t").load().state == 3
    assert _kinds(one, "t")[3:] == ["checkpoint", "resume", "checkpoint"]


def test_what_another_session_wrote_is_not_left_out(world: Deployment) -> None:
    """After having been overtaken, blobs are written again that only its own checkpoint reached."""
    one, two = world.open(), world.open()
    big = {"text": "x" * 50_000}
    one.thread("t").save(0)
    one.anchor.advancing.before = lambda: (two.thread("t").load(), two.thread("t").save(3))
    one.thread("t").save(big)
    one.thread("t").load()
    known = set(one.storage.written)
    one.storage.written.clear()
    one.thread("t").save(big)

    assert one.storage.written
    assert one.storage.written <= known | one.storage.written
    assert two.thread("t").load().state == big


def test_an_adoption_in_between_is_let_pass() -> None:
    """An entry that changes nothing for the session is linked over, silently."""
    world = Deployment()
    store = world.open()
    thread = store.thread("t")
    thread.save(1)
    elsewhere = SimulatedAnchor(MemoryAnchor(), closes=False)
    core = world.core("operator", anchor=elsewhere)
    adopt_store_chain(core, "a second machine")
    adopted = adopt_thread(core, "t", world.thread_id("t"), "a second machine")
    ref = thread.save(2)

    assert adopted == 3
    assert ref.seq == 4
    assert _kinds(store, "t") == ["genesis", "resume", "checkpoint", "adopt", "checkpoint"]
    assert _fences(store, "t") == [0, 1, 1, 1, 1]
    assert thread.load().state == 2
    world.close()


def test_own_saves_from_many_os_threads_are_never_refused(world: Deployment) -> None:
    """One handle is used from eight OS threads at once; every save gets a position of its own."""
    thread = world.open().thread("t")
    seqs: list[int] = []
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for number in range(4):
                seqs.append(thread.save([worker, number]).seq)
                thread.load()
        except BaseException as error:  # noqa: BLE001 - shown by the assertion
            errors.append(error)

    workers = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()

    assert not errors
    assert sorted(seqs) == list(range(2, 34))


def test_two_processes_that_fight_lose_nothing(world: Deployment) -> None:
    """Whatever was acknowledged to either of two stores is in the history, in its order."""
    stores = [world.open(), world.open()]
    acknowledged: list[str] = []
    refused = 0
    for turn in range(20):
        thread = stores[(turn * turn // 3) % 2].thread("t")
        try:
            acknowledged.append(thread.save(turn).id)
        except SealpointError:
            refused += 1
            thread.load()
    history = [ref.id for ref in stores[0].thread("t").history()]

    assert history[::-1] == acknowledged
    assert refused


def test_time_never_runs_backwards_along_a_thread(world: Deployment) -> None:
    """A clock that is set back does not make a later entry older, within a handle or across."""
    thread = world.open().thread("t")
    first = thread.save(1)
    world.clock = world.clock.replace(year=2001)
    second = thread.save(2)
    third = world.open().thread("t").save(3)

    assert first.time == second.time == third.time
    assert world.clock.year == 2001


def test_an_edit_in_place_is_saved(world: Deployment) -> None:
    """The same object, changed between two saves, is saved as it is now."""
    state = {"messages": [{"text": f"message {n}", "parts": [n] * 40} for n in range(400)]}
    thread = world.open().thread("t")
    thread.save(state)
    state["messages"][7]["parts"][3] = "edited"  # type: ignore[index]
    thread.save(state)
    state["messages"][7]["text"] = "later"
    found = world.open().thread("t").load().state

    assert found["messages"][7]["parts"][3] == "edited"
    assert found["messages"][7]["text"] == "message 7"


def test_a_resume_names_what_it_goes_on_from(memory: Deployment) -> None:
    """The basis of a resume is the entry that was the head when the session began."""
    memory.open().thread("t").save(1)
    memory.open().thread("t").save(2)
    body = memory.record("t", 3).body or b""

    assert parse_header(memory.record("t", 3).header).kind is Kind.RESUME
    assert b'"basis":2' in body


def test_a_load_that_fails_does_not_give_the_thread_back(world: Deployment) -> None:
    """Whoever lost the thread and was shown nothing of it may not write over what it never saw."""
    allowing = Registry()
    allowing.allow(_Step, name="tests.step")
    one, two = world.open(), world.open(registry=allowing)
    one.thread("t").save(1)
    two.thread("t").load()
    two.thread("t").save(_Step(2))
    with pytest.raises(Superseded):
        one.thread("t").save(3)
    with pytest.raises(UnknownType):
        one.thread("t").load()

    with pytest.raises(Superseded):
        one.thread("t").save(3)
    assert two.thread("t").load().state == _Step(2)


def test_a_thread_made_between_two_looks_is_no_stranger(world: Deployment) -> None:
    """The anchor is asked again before a thread counts as one that it does not know."""
    one, two = world.open(), world.open()
    one.storage.labelling.before = lambda: two.thread("t").save("two")

    assert one.thread("t").load().state == "two"
