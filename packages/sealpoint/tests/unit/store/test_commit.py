# SPDX-License-Identifier: Apache-2.0
"""Groups: several entries in their order as one durable step, each with an outcome of its own."""

import threading
from typing import Any

import pytest

from sealpoint.errors import (
    AnchorUnavailable,
    IdReused,
    ReadOnly,
    SealpointError,
    StorageUnavailable,
    TypeNotAllowed,
)
from sealpoint.store import CheckpointRef, ResultsRef, SaveDraft
from tests.deployment import Deployment
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
    tasks,
    values,
)
from tests.unit.store.retained import state_of


def test_a_group_is_one_durable_step(world: Deployment) -> None:
    """One append and one step of the anchor, with the session that it begins."""
    store = world.open()
    before = store.anchor.writes
    seqs = added(store.thread("t"), put(1, "1"), results("a", "1"), put(2, "2"), put(1, "1", "sub"))

    assert seqs == [2, 3, 4, 5]
    assert store.storage.groups == [6]
    assert store.anchor.writes == before + 2  # one reserved the name
    assert ids(cold(world), None) == ["1", "2", "1"]
    check_verified(world)


def test_an_empty_group_is_nothing(world: Deployment) -> None:
    """Nothing is written, not even the beginning of a session."""
    store = world.open()

    assert store.thread("t").adapter.commit([]) == []
    assert store.storage.groups == []


def test_outcomes_say_where_each_lies(world: Deployment) -> None:
    """A reference for each, in the order of the drafts."""
    store = world.open()
    first, second = saved(store.thread("t"), put(1, "1", "sub"), results("a", "1", lane="sub"))

    assert isinstance(first, CheckpointRef)
    assert isinstance(second, ResultsRef)
    assert (first.id, first.lane, first.seq) == ("1", "sub", 2)
    assert second.seq == 3
    found = cold(world).adapter.snapshot("sub")
    assert found is not None
    assert found.ref == first
    assert found.results[0].ref == second


def test_one_that_is_refused_hurts_no_other(world: Deployment) -> None:
    """What the registry does not allow, or an id that names another, is told for it alone."""
    store = world.open()
    saved(store.thread("t"), put(0, "0"))
    outcomes = store.thread("t").adapter.commit(
        [
            put(1, "1"),
            put({"x": object()}, "2"),
            results(object(), "1"),
            SaveDraft("other", "0", None, None, None),
            results("kept", "1"),
        ]
    )

    assert [type(each) for each in outcomes if isinstance(each, SealpointError)] == [
        TypeNotAllowed,
        TypeNotAllowed,
        IdReused,
    ]
    assert store.storage.groups == [3, 2]
    for thread in everywhere(world, store):
        assert ids(thread) == ["1", "0"]
        assert values(thread) == ["kept"]
    check_verified(world)


def test_a_group_of_which_all_is_refused_writes_nothing(world: Deployment) -> None:
    """No session begins for it either."""
    store = world.open()

    assert refused(store.thread("t").adapter.commit([put(object(), "1")])) == ["type-not-allowed"]
    assert store.storage.groups == []


def test_a_checkpoint_whose_results_came_first_is_in_the_next_group(world: Deployment) -> None:
    """It says where they lie, which is known once they are written."""
    store = world.open()
    saved(store.thread("t"), results("a", "1"), put(1, "1"), results("b", "1"))

    assert store.storage.groups == [3, 2]
    for thread in everywhere(world, store):
        assert values(thread) == ["a", "b"]


def test_the_same_name_twice_in_one_call(world: Deployment) -> None:
    """The later one supersedes, or is the same; both are told where it lies."""
    store = world.open()
    one, two, three = added(store.thread("t"), put(1, "1"), put(2, "1"), put(2, "1"))

    assert one < two == three
    assert cold(world).adapter.snapshot().state == 2  # type: ignore[union-attr]
    assert ids(cold(world)) == ["1"]


def test_a_group_shares_blobs_within_itself(world: Deployment) -> None:
    """A later checkpoint of a lane leaves out what an earlier one of the group brings."""
    store = world.open()
    saved(store.thread("t"), put(state_of(1), "1"))
    once = len(store.storage.given)
    fresh = world.open()
    saved(
        fresh.thread("u"),
        put(state_of(1), "1"),
        put({**state_of(1), "more": 1}, "2"),
        results(state_of(1), "2"),
    )

    assert len(fresh.storage.given) < 2 * once
    thread = cold(world, "u")
    assert thread.adapter.snapshot().state == {**state_of(1), "more": 1}  # type: ignore[union-attr]
    assert values(thread) == [state_of(1)]
    check_verified(world)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_group_that_fails_stands_or_falls_as_one(world: Deployment, *, after: bool) -> None:
    """Each is told the same, and repeating it writes nothing twice."""
    store = world.open()
    saved(store.thread("t"), put(0, "0"))
    error = StorageUnavailable("out of order")
    store.storage.fail(error, after=after)

    def drafts() -> list[Any]:
        return [put(1, "1"), results("a", "1"), put(2, "2")]

    outcomes = store.thread("t").adapter.commit(drafts())
    # What took effect is found by looking, so that nobody is told of a failure.
    assert refused(outcomes) == [None if after else "storage-unavailable"] * 3
    saved(store.thread("t"), put(1, "1"), put(2, "2"))

    assert ids(cold(world)) == ["2", "1", "0"]
    assert tasks(cold(world), "", "1") == (["task"] if after else [])
    check_verified(world)


def test_an_anchor_that_fails_tells_each_where_it_stands(world: Deployment) -> None:
    """The entries are in the store; each checkpoint's error has its own reference."""
    store = world.open()
    saved(store.thread("t"), put(0, "0"))
    store.anchor.fail(AnchorUnavailable("out of order"))
    outcomes = store.thread("t").adapter.commit([put(1, "1"), results("a", "1"), put(2, "2")])

    assert refused(outcomes) == ["anchor-unavailable"] * 3
    refs: list[Any] = [each.ref for each in outcomes if isinstance(each, AnchorUnavailable)]
    assert [ref and ref.id for ref in refs] == ["1", None, "2"]
    saved(store.thread("t"), put(3, "3"))
    assert ids(cold(world)) == ["3", "2", "1", "0"]
    assert values(cold(world), "", "1") == ["a"]
    check_verified(world)


def test_a_group_that_somebody_got_ahead_of_is_refused_as_one(world: Deployment) -> None:
    """Another session began between building and writing: nothing of it is written."""
    worker, other = world.open(), world.open()
    saved(worker.thread("t"), put(0, "0"))
    worker.storage.appending.before = lambda: saved(other.thread("t"), put(9, "9"))
    outcomes = worker.thread("t").adapter.commit([put(1, "1"), results("a", "1")])

    assert refused(outcomes) == ["superseded"] * 2
    assert ids(cold(world)) == ["9", "0"]


def test_a_store_for_reading_takes_no_group(world: Deployment) -> None:
    """Every draft is told so."""
    saved(world.open().thread("t"), put(0, "0"))
    outcomes = cold(world).adapter.commit([put(1, "1"), results("a", "1")])

    assert all(isinstance(each, ReadOnly) for each in outcomes)


def test_groups_of_several_threads_are_taken_one_after_the_other(world: Deployment) -> None:
    """Eight OS threads on one handle: everything is there, and nothing is mixed up."""
    store = world.open()
    saved(store.thread("t"), put(0, "0"))
    failures: list[BaseException] = []

    def work(number: int) -> None:
        lane = f"lane {number}"
        try:
            for step in range(5):
                saved(
                    store.thread("t"),
                    put([number, step], f"{step}", lane),
                    results([number, step], f"{step}", lane=lane),
                )
        except BaseException as exc:  # noqa: BLE001 # raised again below
            failures.append(exc)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()

    assert failures == []
    reader = cold(world)
    for number in range(8):
        assert ids(reader, f"lane {number}") == ["4", "3", "2", "1", "0"]
        assert values(reader, f"lane {number}", "3") == [[number, 3]]
    check_verified(world)
