# SPDX-License-Identifier: Apache-2.0
"""Who may write: the roster decides at save time, by the rules that every reader applies."""

import pytest

from sealpoint.errors import KeyNotInForce, NotOwner, NotTrusted
from sealpoint.signing import Role
from tests.deployment import Deployment
from tests.ledgers import identity


def test_another_writer_is_not_the_owner(world: Deployment) -> None:
    """A second identity writes its own threads and reads the others."""
    world.enrol(identity("second"))
    world.open().thread("t").save(1)
    second = world.open("second")

    with pytest.raises(NotOwner, match="it belongs to 'worker', and 'second' wants"):
        second.thread("t").save(2)
    assert second.thread("t").load().state == 1
    assert second.thread("u").save(3).writer == "second"
    assert second.storage.groups == [3]


def test_a_loaded_thread_is_not_ones_own_either(world: Deployment) -> None:
    """Having read a thread gives no right to go on with it."""
    world.enrol(identity("second"))
    world.open().thread("t").save(1)
    thread = world.open("second").thread("t")
    thread.load()

    with pytest.raises(NotOwner):
        thread.save(2)
    assert [ref.writer for ref in thread.history()] == ["worker"]


def test_a_key_without_a_line_in_the_roster_writes_nothing(world: Deployment) -> None:
    """The store opens for reading; a save is refused before anything is written."""
    store = world.open("stranger")

    with pytest.raises(KeyNotInForce, match=r"identity 'stranger': its key .* is not in roster"):
        store.thread("t").save(1)
    assert store.storage.offered == []
    assert store.anchor.writes == 0


@pytest.mark.parametrize(
    "who",
    [
        identity("reader", Role.AUDITOR),
        identity("boss", Role.OPERATOR, Role.APPROVER, Role.PRIVACY),
        identity("elsewhere", namespaces=("billing",)),
        identity("nowhere", namespaces=()),
    ],
    ids=lambda each: each.name,
)
def test_a_writer_needs_role_and_namespace(world: Deployment, who: object) -> None:
    """Other roles and other namespaces are no right to write here; empty means no."""
    assert hasattr(who, "name")
    world.enrol(who)  # type: ignore[arg-type]
    store = world.open(who.name)

    with pytest.raises(NotTrusted, match="this needs role writer in namespace 'default'"):
        store.thread("t").save(1)
    assert store.storage.offered == []
    assert store.threads().complete


def test_a_namespace_is_a_world_of_its_own(world: Deployment) -> None:
    """The same name in two namespaces is two threads; a writer of one writes only there."""
    world.enrol(identity("biller", namespaces=("billing",)))
    world.open().thread("t").save("default")
    biller = world.open("biller", namespace="billing")
    biller.thread("t").save("billing")

    assert world.open().thread("t").load().state == "default"
    assert biller.thread("t").load().state == "billing"
    assert world.thread_id("t") != world.thread_id("t", "billing")
    assert (biller.namespace, biller.id) == ("billing", world.pin.store)


def test_rights_given_later_are_seen_by_an_open_store(world: Deployment) -> None:
    """A store that is open when the roster grows may write without being opened again."""
    store = world.open("late")
    with pytest.raises(NotTrusted):
        store.thread("t").save(1)
    world.enrol(identity("late"))

    assert store.thread("t").save(1).writer == "late"


def test_a_stranger_cannot_take_up_a_name(world: Deployment) -> None:
    """A refused first save leaves no slot that would keep others from the name."""
    with pytest.raises(NotTrusted):
        world.open("stranger").thread("t").save(1)

    assert world.position("t") is None
    assert world.open().thread("t").save(2).seq == 2
