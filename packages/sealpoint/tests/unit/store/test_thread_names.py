# SPDX-License-Identifier: Apache-2.0
"""The list of names: what counts, what makes it incomplete, and who is told."""

from collections.abc import Callable
from operator import attrgetter

import pytest

from sealpoint.errors import ListIncomplete, UnknownThread
from sealpoint.signing import Role
from sealpoint.storage import Record
from sealpoint.store import UnlistedThread
from tests.deployment import Deployment
from tests.ledgers import identity


def test_names_are_listed_in_order(world: Deployment) -> None:
    """The names of the namespace, sorted; other namespaces are counted and not shown."""
    store = world.open()
    for name in ("b", "ä", "a"):
        store.thread(name).save(name)
    world.open(namespace="billing").thread("z").save(1)
    found = store.threads()

    assert found.names == ("a", "b", "ä")
    assert list(found) == ["a", "b", "ä"]
    assert len(found) == 3
    assert found.complete
    assert world.open(namespace="billing").threads().names == ("z",)


def test_an_empty_store_has_no_names(world: Deployment) -> None:
    """Nothing is missing where nothing was saved."""
    assert world.open().threads().names == ()
    assert world.open().threads().complete


def test_a_dropped_thread_makes_the_list_incomplete(memory: Deployment) -> None:
    """The anchor remembers what the store no longer has."""
    store = memory.open()
    for name in ("a", "b"):
        store.thread(name).save(name)
    thread = memory.thread_id("a")
    for seq in (2, 1, 0):
        memory.put(thread, seq, None)
    found = store.threads(partial=True)

    assert found.names == tuple(found) == ("b",)
    assert not found.complete
    assert found.left_out == (UnlistedThread(thread=thread.hex(), name=None, anchored=True),)
    assert not memory.open(namespace="billing").threads().complete


@pytest.mark.parametrize("damage", ["no genesis", "an edited genesis", "no body"])
def test_a_thread_that_cannot_be_read_makes_the_list_incomplete(
    memory: Deployment, damage: str
) -> None:
    """A name that cannot be proven is not listed, and not passed over either."""
    store = memory.open()
    store.thread("a").save(1)
    record = memory.record("a", 0)
    changed = {
        "no genesis": None,
        "an edited genesis": Record(b"{}", record.seals, record.body),
        "no body": Record(record.header, record.seals, None),
    }[damage]
    memory.put(memory.thread_id("a"), 0, changed)
    found = store.threads(partial=True)

    assert found.names == ()
    assert not found.complete
    assert [each.thread for each in found.left_out] == [memory.thread_id("a").hex()]


def test_a_shortened_thread_makes_the_list_incomplete(memory: Deployment) -> None:
    """A name counts only with the entry that the anchor has seen."""
    store = memory.open()
    store.thread("a").save(1)
    memory.put(memory.thread_id("a"), 2, None)
    found = store.threads(partial=True)

    assert found.names == ()
    assert found.left_out == (
        UnlistedThread(thread=memory.thread_id("a").hex(), name="a", anchored=True),
    )


def test_an_incomplete_list_gives_no_name_unasked(memory: Deployment) -> None:
    """Whoever goes through it is told what it lacks; whoever asks for the rest gets that."""
    store = memory.open()
    for name in "abcdef":
        store.thread(name).save(name)
    for name in "abcd":
        memory.put(memory.thread_id(name), 2, None)
    memory.forget("e")
    found = store.threads()
    calls: list[Callable[[], object]] = [
        *(lambda: list(found), lambda: len(found), lambda: found.names, lambda: "f" in found)
    ]
    errors = []
    for call in calls:
        with pytest.raises(ListIncomplete) as caught:
            call()
        errors.append(caught.value)

    assert not found.complete
    assert {error.left_out for error in errors} == {found.left_out}
    assert errors[0].message.startswith(
        "threads of namespace 'default': the list would leave out 5: "
    )
    assert errors[0].message.endswith("; and 2 more")
    assert "sealpoint anchor adopt" in errors[0].hint
    assert list(store.threads(partial=True)) == ["f"]


def test_a_thread_that_only_the_store_knows_is_told(memory: Deployment) -> None:
    """It is named as one that the anchor does not know; one of another namespace is not."""
    memory.open().thread("mine").save(1)
    memory.open(namespace="billing").thread("theirs").save(1)
    other = memory.thread_id("mine")
    memory.forget("mine")
    store = memory.open()
    memory.forget_slot(memory.slot("theirs", "billing"))

    assert store.threads().left_out == (
        UnlistedThread(thread=other.hex(), name="mine", anchored=False),
    )
    assert [each.name for each in memory.open(namespace="billing").threads().left_out] == ["theirs"]


def test_a_thread_begun_or_erased_while_listing_is_no_gap(memory: Deployment) -> None:
    """Between any two looks at storage and anchor."""
    memory.enrol(identity("officer", Role.PRIVACY))
    memory.open().thread("t").save(1)

    def change() -> None:
        memory.open().thread("new").save(1)
        memory.open("officer").thread("t").erase(reason="x")

    for hooks in ("storage.listing", "anchor.listing", "storage.reading"):
        store = memory.open()
        memory.open().thread("t").save(1)
        attrgetter(hooks)(store).before = change
        found = store.threads()

        assert found.complete, hooks
        assert set(found.names) <= {"t", "new"}
        memory.open("officer").thread("new").erase(reason="again")


def test_a_planted_thread_is_not_listed(memory: Deployment) -> None:
    """A copy under another id carries a genuine genesis, and the anchor does not know it."""
    store = memory.open()
    store.thread("a").save(1)
    for seq in range(3):
        memory.put(b"x" * 16, seq, memory.record("a", seq))
    found = store.threads()

    assert found.names == ("a",)
    assert found.complete


def test_a_reserved_slot_does_not_count(memory: Deployment) -> None:
    """A first save that died before it wrote left a name without a thread; nothing is missing."""
    store = memory.open()
    store.storage.fail(KeyboardInterrupt(), after=False)
    with pytest.raises(KeyboardInterrupt):
        store.thread("a").save(1)
    position = memory.position("a")

    assert position is not None
    assert position.reserved
    assert store.threads().names == ()
    assert store.threads().complete
    with pytest.raises(UnknownThread):
        memory.open().thread("a").load()
    assert memory.open().thread("a").save(1).seq == 2
    assert memory.thread_id("a") == position.thread
