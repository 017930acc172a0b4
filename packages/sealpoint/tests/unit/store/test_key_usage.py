# SPDX-License-Identifier: Apache-2.0
"""A look at every thread: where keys wrote last, without reading more than that takes."""

import pytest

from sealpoint.ledger import STORE_CHAIN
from tests.deployment import Deployment
from tests.ledgers import identity, key
from tests.unit.store.ended import add_key, end, rooted, survey

_NEW = add_key("worker", "worker-2")


def test_a_look_finds_the_newest_entry_by_each_key(world: Deployment) -> None:
    """Also below entries of others, and in every namespace."""
    world.enrol(identity("second"))
    worker = world.open()
    for number in range(3):
        worker.thread("t").save(number)
    world.open(namespace="billing").thread("t").save(1)
    world.open("second").thread("u").save(1)
    found = survey(world, "worker", "second")
    here, there = world.thread_id("t"), world.thread_id("t", "billing")
    lists = found.positions

    assert found.threads == 3
    assert len(found.heads) == 3
    assert lists[key("worker").key].position(here) == found.heads.position(here)
    assert lists[key("worker").key].position(there) is not None
    assert lists[key("worker").key].position(world.thread_id("u")) is None
    assert len(lists[key("second").key]) == 1


def test_a_look_stops_where_a_key_cannot_have_written(memory: Deployment) -> None:
    """Along a thread the roster never goes back, so entries of earlier ones are not read."""
    worker = memory.open()
    for number in range(30):
        worker.thread("t").save(number)
    end(memory, "worker", change=_NEW)
    renewed = memory.open("worker-2")
    renewed.thread("t").load()
    renewed.thread("t").save("new")
    with rooted(memory) as root:
        root.look("worker-2")
        read = [place for thread, place in root.storage.read_positions if thread != STORE_CHAIN]

    assert min(seq for seq in read if seq) >= 31


def test_a_second_look_walks_only_what_moved(memory: Deployment) -> None:
    """A thread that stands still is judged from its head, and not walked."""
    worker = memory.open()
    for number in range(20):
        worker.thread("t").save(number)
    memory.enrol(identity("second"))
    first = survey(memory, "second")
    with rooted(memory) as root:
        again = root.look("second", before=first)
        read = [place for thread, place in root.storage.read_positions if thread != STORE_CHAIN]

    assert again.same_as(first)
    assert len(set(read)) < 16


def test_a_dry_look_moves_no_anchor(memory: Deployment) -> None:
    """Read-only, it sees the same and changes nothing."""
    worker = memory.open()
    worker.thread("t").save(1)
    worker.anchor.fail(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        worker.thread("t").save(2)
    before = dict(memory.anchored._positions)
    found = survey(memory, "worker", read_only=True)

    assert memory.anchored._positions == before
    assert found.positions[key("worker").key].position(memory.thread_id("t")) is not None
    assert found.heads.data[16:24] == bytes(7) + b"\x03"
