# SPDX-License-Identifier: Apache-2.0
"""Lanes: several lines of work in one thread, each with its own names, order and newest."""

from typing import Any

import pytest

from sealpoint.errors import IdReused, UnknownCheckpoint, UsageError
from sealpoint.limits import LANE_BYTES_MAX
from sealpoint.store import Key, SaveDraft
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
    values,
)
from tests.unit.store.retained import state_of


def test_lanes_are_kept_apart(world: Deployment) -> None:
    """The same id in two lanes is two checkpoints, and each lane has a newest of its own."""
    store = world.open()
    saved(store.thread("t"), put("root", "1"), put("inner", "1", "sub"), put("deep", "2", "sub|x"))

    for thread in everywhere(world, store):
        found = {lane: thread.adapter.snapshot(lane) for lane in ("", "sub", "sub|x")}
        assert {lane: each and each.state for lane, each in found.items()} == {
            "": "root",
            "sub": "inner",
            "sub|x": "deep",
        }
        assert thread.adapter.snapshot("other") is None
        assert thread.adapter.snapshot("", "2") is None
        assert ids(thread, None) == ["2", "1", "1"]
        assert thread.load().state == "root"
    check_verified(world)


def test_results_stay_in_their_lane(world: Deployment) -> None:
    """Results for a name of one lane are not shown for the same name of another."""
    store = world.open()
    saved(
        store.thread("t"),
        put(1, "1"),
        put(1, "1", "sub"),
        results("outer", "1"),
        results("inner", "1", lane="sub"),
    )

    for thread in everywhere(world, store):
        assert values(thread) == ["outer"]
        assert values(thread, "sub") == ["inner"]


def test_a_thread_with_other_lanes_alone_has_no_newest(world: Deployment) -> None:
    """What is loaded is the main lane; where there is nothing, that is said."""
    store = world.open()
    saved(store.thread("t"), put(1, "1", "sub"))

    with pytest.raises(UnknownCheckpoint):
        store.thread("t").load()
    assert store.thread("t").adapter.snapshot() is None


@pytest.mark.parametrize("lane", ["x" * (LANE_BYTES_MAX + 1), "a\x00b", "\ud800"])
def test_a_lane_has_a_name_within_bounds(lane: str) -> None:
    """Other names are refused before anything is read or written."""
    with pytest.raises(UsageError, match="lane"):
        put(1, "1", lane)


# ---------------------------------------------------------------------- the same name once more


def test_the_same_once_more_is_no_entry(world: Deployment) -> None:
    """An identical checkpoint is the one that is there, also for another process."""
    store = world.open()
    (first,) = saved(store.thread("t"), put({"a": 1}, "1", metadata={"step": 1}, parent="0"))
    same = put({"a": 1}, "1", metadata={"step": 1}, parent="0")
    again = saved(store.thread("t"), same)
    other = saved(world.open().thread("t"), put({"a": 1}, "1", metadata={"step": 1}, parent="0"))

    assert again == other == [first]
    assert store.storage.groups == [3]


@pytest.mark.parametrize(
    "options",
    [
        {"metadata": {"step": 2}},
        {"parent": "9"},
        {"question": "sure?"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_anything_else_about_it_makes_it_another(
    world: Deployment, options: dict[str, Any]
) -> None:
    """The state alone does not make two checkpoints the same."""
    store = world.open()
    first, second = added(store.thread("t"), put(1, "1"), put(1, "1", **options))

    assert second > first
    found = cold(world).adapter.snapshot()
    assert found is not None
    assert found.ref.seq == second


def test_another_state_supersedes_and_keeps_its_rank(world: Deployment) -> None:
    """Who asks by its name is given the new one; the newest of the lane is still another."""
    store = world.open()
    saved(store.thread("t"), put("one", "1"), put("two", "2"), put("three", "3"))
    saved(store.thread("t"), put("once more", "2"))
    saved(world.open().thread("t"), put("and again", "2"))

    for thread in (cold(world), world.open().thread("t")):
        assert thread.adapter.snapshot("", "2").state == "and again"  # type: ignore[union-attr]
        assert thread.adapter.snapshot().state == "three"  # type: ignore[union-attr]
        assert thread.load().state == "three"
        assert ids(thread) == ["3", "2", "1"]
        assert sorted(ref.id for ref in thread.history()) == ["1", "2", "3"]
    check_verified(world)


def test_the_newest_can_be_superseded(world: Deployment) -> None:
    """It stays the newest, for the handle that wrote it and for any other."""
    store = world.open()
    saved(store.thread("t"), put("one", "1"), put("two", "2"), put("other", "2"))

    for thread in everywhere(world, store):
        assert thread.load().state == "other"
        assert thread.adapter.snapshot().state == "other"  # type: ignore[union-attr]


def test_a_plain_save_supersedes_nothing(world: Deployment) -> None:
    """Under an id of the caller's own another state is refused, as ever."""
    store = world.open()
    store.thread("t").save(1, id="1")
    with pytest.raises(IdReused):
        store.thread("t").save(2, id="1")
    (outcome,) = store.thread("t").adapter.commit([SaveDraft(2, "1", None, None, None)])

    assert isinstance(outcome, IdReused)


def test_a_repetition_is_not_answered_by_what_was_known(world: Deployment) -> None:
    """Somebody else has replaced it since this handle looked: it is not there any more."""
    first, second = world.open(), world.open()
    saved(first.thread("t"), put("one", "1"))
    second.thread("t").adapter.snapshot()
    saved(first.thread("t"), put("other", "1"))

    assert refused(second.thread("t").adapter.commit([put("one", "1")])) == ["head-moved"]
    third = world.open()
    third.thread("t").adapter.snapshot()
    saved(first.thread("t"), put("another", "1"))
    outcomes = third.thread("t").adapter.commit([put("new", "1", "sub"), put("other", "1")])
    assert refused(outcomes) == ["head-moved"] * 2
    assert ids(cold(world), None) == ["1"]


@pytest.mark.parametrize("supersedes", [True, False])
def test_a_repetition_of_what_was_deleted_is_saved(world: Deployment, *, supersedes: bool) -> None:
    """Somebody else has deleted it since this handle looked, which takes no session away."""
    first, second = world.open(), world.open()
    saved(first.thread("t"), put("one", "1"))
    second.thread("t").adapter.delete()
    draft = SaveDraft("one", "1", None, None, None, supersedes=supersedes)
    saved(first.thread("t"), draft)

    assert ids(cold(world)) == ["1"]
    assert cold(world).load().state == "one"
    check_verified(world)


def test_names_need_not_rise_for_who_is_found(world: Deployment) -> None:
    """A name below the newest is looked up as far back as it takes, by a cold handle too."""
    store = world.open()
    saved(store.thread("t"), *(put(number, f"{number}") for number in range(5)))
    (again,) = saved(world.open().thread("t"), put(1, "1"))

    assert again.seq == 3  # type: ignore[union-attr]


# ---------------------------------------------------------------------- blobs shared by lanes


def test_lanes_share_what_they_both_hold(world: Deployment) -> None:
    """A state that another lane's newest checkpoint holds costs its entry and little more."""
    store = world.open()
    thread = store.thread("t")
    saved(thread, put(state_of(1), "1"))
    before = len(store.storage.given)
    saved(thread, put(state_of(1), "1", "sub"))

    assert len(store.storage.given) <= before + 1
    assert cold(world).adapter.snapshot("sub").state == state_of(1)  # type: ignore[union-attr]


@pytest.mark.parametrize("how", ["prune", "hide", "collect"])
def test_what_lanes_share_outlives_the_one_that_brought_it(world: Deployment, how: str) -> None:
    """The lane that stored the blobs gives them up; the one that left them out keeps them."""
    store, cron = world.open(), world.open()
    thread = store.thread("t")
    saved(thread, put(state_of(1), "1"))
    saved(thread, put(state_of(1), "1", "sub"))
    saved(thread, put("small", "2"))
    if how == "hide":
        cron.thread("t").adapter.delete([Key("", "1"), Key("", "2")])
    elif how == "prune":
        assert [ref.lane for ref in cron.thread("t").prune(keep_last=1).pruned] == [""]
    else:
        assert cron.gc().failures == ()
    saved(thread, put({**state_of(1), "more": 1}, "2", "sub"))

    assert cold(world).adapter.snapshot("sub", "1").state == state_of(1)  # type: ignore[union-attr]
    assert cold(world).adapter.snapshot("sub").state == {**state_of(1), "more": 1}  # type: ignore[union-attr]
    check_verified(world)


def test_a_handle_remembers_the_lanes_that_it_used_last(memory: Deployment) -> None:
    """Memory does not follow the number of lanes."""
    store = memory.open()
    for number in range(40):
        saved(store.thread("t"), put(number, "1", f"lane {number}"))

    assert len(store.thread("t")._state.caches._all) <= 8
    assert len(ids(cold(memory), None)) == 40


def test_a_handle_that_only_saves_keeps_no_index(memory: Deployment) -> None:
    """Nobody asked for anything by its name, so nothing follows the length of the thread."""
    store = memory.open()
    for number in range(20):
        store.thread("t").save(number)
    store.thread("t").load()

    assert store.thread("t")._state.checkpoints.is_kept is False
    assert len(store.thread("t")._state.caches._all) == 1
