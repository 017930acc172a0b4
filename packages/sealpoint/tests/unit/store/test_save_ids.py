# SPDX-License-Identifier: Apache-2.0
"""An id names one checkpoint: an exact repetition gives it back, anything else is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from sealpoint.errors import HeadMoved, IdReused
from tests.deployment import Deployment, Opened

_GIVEN: dict[str, Any] = {
    "parent": "root",
    "metadata": {"n": 1, "m": 2},
    "world": {"tools": ["read"]},
}


def _count(store: Opened) -> int:
    return len(list(store.thread("t").history()))


def _same_handle(_world: Deployment, store: Opened) -> Opened:
    return store


def _reopened(world: Deployment, store: Opened) -> Opened:
    store.close()
    return world.open()


def _other_process(world: Deployment, _store: Opened) -> Opened:
    return world.open()


_every_way = pytest.mark.parametrize("way", [_same_handle, _reopened, _other_process])


@_every_way
def test_the_same_payload_gives_the_same_ref(
    world: Deployment, way: Callable[[Deployment, Opened], Opened]
) -> None:
    """Repeating a save writes nothing, from whatever process, and even behind later ones."""
    store = world.open()
    first = store.thread("t").save({"a": [1, (2,)]}, id="step-1", **_GIVEN)
    for number in range(3):
        store.thread("t").save(number, world=_GIVEN["world"])
    again = way(world, store)
    ref = again.thread("t").save({"a": [1, (2,)]}, id="step-1", **_GIVEN)

    assert ref == first
    assert _count(again) == 4


_OTHERS: dict[str, dict[str, Any]] = {
    "state": {"state": {"a": 2}},
    "a type of the state": {"state": {"a": True}},
    "a list for a tuple": {"state": {"a": 1, "b": [1]}},
    "metadata": {"metadata": {"n": 2, "m": 2}},
    "a type of metadata": {"metadata": {"n": 1.0, "m": 2}},
    "a truth value of metadata": {"metadata": {"n": True, "m": 2}},
    "no metadata": {"metadata": None},
    "parent": {"parent": "other"},
    "no parent": {"parent": None},
    "world": {"world": {"tools": ["read", "write"]}},
    "an empty world": {"world": {}},
    "no world": {"world": None},
}


@_every_way
@pytest.mark.parametrize("change", _OTHERS.values(), ids=_OTHERS)
def test_another_payload_is_refused(
    world: Deployment, change: dict[str, Any], way: Callable[[Deployment, Opened], Opened]
) -> None:
    """State, metadata, parent and world are all part of what an id names."""
    store = world.open()
    store.thread("t").save({"a": 1}, id="x", **_GIVEN)
    given = {"state": {"a": 1}, **_GIVEN} | change
    again = way(world, store)

    with pytest.raises(IdReused, match="checkpoint 'x' of thread 't'"):
        again.thread("t").save(given.pop("state"), id="x", **given)
    assert _count(again) == 1


def test_ids_belong_to_one_thread(world: Deployment) -> None:
    """Two threads may use the same id for different things."""
    store = world.open()
    one, two = (store.thread(name).save(name, id="x") for name in ("t", "u"))

    assert one.id == two.id == "x"
    assert store.thread("u").load("x").state == "u"


def test_an_id_that_somebody_else_used_first_is_noticed(world: Deployment) -> None:
    """A handle that made its list of ids learns of those that come after."""
    one, two = world.open(), world.open()
    one.thread("t").save(1, id="a")
    one.thread("t").save(2, id="b")
    two.thread("t").load()
    two.thread("t").save(3, id="c")
    one.thread("t").load()

    assert one.thread("t").save(3, id="c").seq == 5
    with pytest.raises(IdReused):
        one.thread("t").save(4, id="c")


@pytest.mark.parametrize("later", [0, 3])
def test_an_id_of_a_thread_that_was_made_meanwhile_is_noticed(
    world: Deployment, later: int
) -> None:
    """Somebody makes the thread between looking and reserving, and uses the id first."""
    one, two = world.open(), world.open()

    def meanwhile() -> None:
        two.thread("t").save("first", id="x")
        for number in range(later):
            two.thread("t").save(number)

    one.anchor.creating.before = meanwhile

    with pytest.raises(HeadMoved):
        one.thread("t").save("second", id="x")
    one.thread("t").load()
    with pytest.raises(IdReused):
        one.thread("t").save("second", id="x")
    assert _count(two) == 1 + later


def test_a_lost_answer_is_repaired_by_repeating(world: Deployment) -> None:
    """A save whose answer was lost is repeated under its id and found, not written twice."""
    store = world.open()
    store.thread("t").save(0, id="zero")
    store.storage.fail(KeyboardInterrupt(), after=True)
    with pytest.raises(KeyboardInterrupt):
        store.thread("t").save(1, id="one")

    assert store.thread("t").save(1, id="one").seq == 3
    assert _count(store) == 2


def test_a_listener_that_fails_does_not_make_an_id_free(memory: Deployment) -> None:
    """A listener that raises is logged and nothing else: the save stands, and its id is taken."""
    failing = False

    def listen(_event: object) -> None:
        if failing:
            raise OSError("the listener's own")

    store = memory.open(on_event=listen)
    store.thread("t").save(0, id="zero")
    store.thread("t").save(0, id="zero")
    failing = True

    assert store.thread("t").save(1, id="one").seq == 3
    assert store.thread("t").save(1, id="one").seq == 3
    with pytest.raises(IdReused):
        store.thread("t").save(2, id="one")


def test_drawn_ids_differ_and_can_be_loaded(world: Deployment) -> None:
    """A checkpoint without a name gets one of its own."""
    thread = world.open().thread("t")
    refs = [thread.save(number) for number in range(4)]

    assert len({ref.id for ref in refs}) == 4
    assert all(ref.id.startswith("checkpoint:") for ref in refs)
    assert [thread.load(ref.id).state for ref in refs] == [0, 1, 2, 3]


def test_a_parent_is_lineage_and_not_order(world: Deployment) -> None:
    """A parent may be a ref or an id, older than the predecessor, or of nobody here."""
    store = world.open()
    thread = store.thread("t")
    first = thread.save(1, id="first")
    thread.save(2)
    thread.save(3, id="third", parent=first)
    again = thread.save(3, id="third", parent="first")
    elsewhere = thread.save(4, parent="of another thread")

    assert again.seq == 4
    assert elsewhere.seq == 5
    assert thread.load("third").state == 3
