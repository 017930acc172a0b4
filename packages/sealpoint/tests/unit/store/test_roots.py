# SPDX-License-Identifier: Apache-2.0
"""A new root in an open store: followed by everybody, demanded by a pin that knows it."""

import pytest

from sealpoint.errors import KeyMissing, NotTrusted, RolledBack, UsageError
from sealpoint.ledger import STORE_CHAIN
from sealpoint.signing import PrivateKey, Root
from sealpoint.store import append_root, append_roster
from tests.deployment import Deployment
from tests.ledgers import key, pin
from tests.unit.store.ended import rooted


def _root(*names: str, version: int = 2, threshold: int = 1) -> Root:
    return Root(version=version, threshold=threshold, keys=[key(name).public for name in names])


def _rotate(world: Deployment, root: Root, *signers: PrivateKey) -> int:
    with rooted(world) as process:
        core = process.core
        chain = append_root(core, core.renewed_trust(), root, signers, reason="yearly")
        return core.written(chain).seq


def test_a_new_root_is_followed_by_every_open_store(world: Deployment) -> None:
    """Threads go on as before, and rosters are signed by the new root."""
    store = world.open()
    store.thread("t").save(1)

    assert _rotate(world, _root("new"), key("root"), key("new")) == 1
    assert store.thread("t").save(2).seq == 3
    assert store.core.trust().root.version == 2
    with rooted(world) as process:
        core = process.core
        chain = core.renewed_trust()
        with pytest.raises(KeyMissing, match="root: 1 of its keys are needed here, found 0"):
            append_roster(core, chain, chain.roster.document, [key("root")])
        core.written(append_roster(core, chain, chain.roster.document, [key("new")]))
    assert store.core.trust().roster.seq == 2
    assert world.open(None, read_only=True).verify().ok


def test_both_roots_must_be_here(memory: Deployment) -> None:
    """Nothing is written without enough keys of each, or with more than an entry has room for."""
    many = [key(f"r{number}") for number in range(16)]
    crowd = Root(version=2, threshold=16, keys=[each.public for each in many])

    for signers in ([], [key("root")], [key("new")]):
        with pytest.raises(KeyMissing):
            _rotate(memory, _root("new"), *signers)
    with pytest.raises(UsageError, match="expected at most 16 signatures of both roots, found 17"):
        _rotate(memory, crowd, key("root"), *many)
    with pytest.raises(NotTrusted, match="expected root 2, found root 3"):
        _rotate(memory, _root("new", version=3), key("root"), key("new"))
    assert memory.memory._records[STORE_CHAIN].keys() == {0}


def test_a_pin_demands_the_root_that_it_knows(memory: Deployment) -> None:
    """A store chain that has not come to it is rolled back; one that has is good."""
    known = pin().with_root(_root("new"))
    with pytest.raises(RolledBack, match="expected root 2, which the pin names, found root 1"):
        memory.open(pin=known)
    _rotate(memory, _root("new"), key("root"), key("new"))

    assert memory.open(pin=known).core.trust().root.version == 2
    assert memory.open(pin=pin()).core.trust().root.version == 2
    with pytest.raises(NotTrusted, match="root 2 is not the one that the pin has"):
        memory.open(pin=pin().with_root(_root("other")))
    with pytest.raises(RolledBack, match="expected root 3"):
        memory.open(pin=pin().with_root(_root("third", version=3)))
    memory.put(STORE_CHAIN, 1, None)
    for trusted in (pin(), known):
        with pytest.raises(RolledBack):
            memory.open(pin=trusted)


def test_a_key_of_both_roots_signs_once(memory: Deployment) -> None:
    """The threshold of both is met by the same key."""
    _rotate(memory, _root("root", "second"), key("root"))

    assert memory.open().core.trust().root.document == _root("root", "second").document
