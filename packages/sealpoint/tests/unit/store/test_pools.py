# SPDX-License-Identifier: Apache-2.0
"""Pools: whoever is in exactly one begins threads for it, and every member goes on with them."""

import pytest

from sealpoint.errors import NotOwner, Superseded
from sealpoint.ledger import GenesisBody, Kind, ResumeBody, parse_body, parse_header
from sealpoint.signing import Role
from tests.deployment import Deployment, Opened
from tests.ledgers import identity
from tests.unit.store.ended import add_key, end, enter, pool


def _owner(store: Opened, name: str, seq: int = 0) -> str:
    """Who a genesis or resume says owns a thread."""
    record = store.storage.inner.read(store.thread(name)._state.chain.thread, seq)
    assert record is not None
    assert record.body is not None
    header = parse_header(record.header)
    body: GenesisBody | ResumeBody = parse_body(header.kind, header.body, record.body)
    return body.owner


def test_two_pods_go_on_with_each_other_s_threads(world: Deployment) -> None:
    """Each takes over what the other began, and the one that lost it is told."""
    world.enrol(identity("pod-1"), identity("pod-2"))
    enter(world, pool("pods", "pod-1", "pod-2"))
    one, two = world.open("pod-1"), world.open("pod-2")
    one.thread("t").save(1)

    assert _owner(one, "t") == "pods"
    assert two.thread("t").load().state == 1
    assert two.thread("t").save(2).writer == "pod-2"
    with pytest.raises(Superseded):
        one.thread("t").save(3)
    assert one.thread("t").load().state == 2
    assert one.thread("t").save(3).writer == "pod-1"
    assert [ref.writer for ref in two.thread("t").history()] == ["pod-1", "pod-2", "pod-1"]
    assert two.verify().ok


def test_others_do_not_own_what_a_pool_began(world: Deployment) -> None:
    """A writer outside the pool reads its threads and writes its own."""
    world.enrol(identity("pod-1"))
    enter(world, pool("pods", "pod-1"))
    world.open("pod-1").thread("t").save(1)
    worker = world.open()
    worker.thread("u").save(1)

    assert worker.thread("t").load().state == 1
    with pytest.raises(NotOwner, match="it belongs to 'pods', and 'worker' wants") as refused:
        worker.thread("t").save(2)
    assert "Open the store as a member of the pool 'pods', such as 'pod-1'" in refused.value.hint
    assert _owner(worker, "u") == "worker"
    with pytest.raises(NotOwner):
        world.open("pod-1").thread("u").save(2)


def test_threads_from_before_the_pool_keep_their_owner(memory: Deployment) -> None:
    """A pool owns what its members begin from then on."""
    memory.enrol(identity("second"))
    store = memory.open()
    store.thread("old").save(1)
    enter(memory, pool("pods", "worker", "second"))
    store.thread("new").save(1)

    assert [_owner(store, name) for name in ("old", "new")] == ["worker", "pods"]
    assert store.thread("old").save(2).seq == 3
    second = memory.open("second")
    assert second.thread("new").save(2).writer == "second"
    with pytest.raises(NotOwner):
        second.thread("old").save(3)


def test_with_several_pools_it_stands_for_itself(memory: Deployment) -> None:
    """Nobody can say which pool is meant, so none is given what another member began."""
    memory.enrol(identity("second"))
    enter(memory, pool("pods", "worker", "second"))
    enter(memory, pool("more", "worker"))
    store = memory.open()
    store.thread("t").save(1)

    assert _owner(store, "t") == "worker"


def test_a_pool_survives_the_end_of_a_member_s_key(world: Deployment) -> None:
    """The others go on with its threads, and so does its new key."""
    world.enrol(identity("pod-1"), identity("pod-2"))
    enter(world, pool("pods", "pod-1", "pod-2"))
    world.open("pod-1").thread("t").save(1)
    end(world, "pod-1", change=add_key("pod-1", "pod-1b"))

    two = world.open("pod-2")
    assert two.thread("t").load().state == 1
    assert two.thread("t").save(2).writer == "pod-2"
    renewed = world.open("pod-1b")
    assert renewed.thread("t").load().state == 2
    assert renewed.thread("t").save(3).writer == "pod-1"
    assert renewed.verify().ok


def test_a_new_generation_belongs_to_the_pool(memory: Deployment) -> None:
    """After an erasure the genesis names the pool that the writer stands for then."""
    memory.enrol(identity("second"), identity("officer", Role.PRIVACY))
    store = memory.open()
    store.thread("t").save(1)
    enter(memory, pool("pods", "worker", "second"))
    memory.open("officer").thread("t").erase(reason="asked for")
    second = memory.open("second")
    second.thread("t").save(2)

    genesis = second.thread("t").load().ref.seq - 2
    assert _owner(second, "t", genesis) == "pods"
    assert second.core.storage.read(second.thread("t")._state.chain.thread, genesis) is not None
    assert parse_header(memory.record("t", genesis).header).kind is Kind.GENESIS
