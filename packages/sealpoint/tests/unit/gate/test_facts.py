# SPDX-License-Identifier: Apache-2.0
"""Facts are gathered from the chain, and no more of it is read than they need."""

from typing import Any

from sealpoint.gate._decision_facts import difference
from sealpoint.world import World, WorldDiff

_READ = World(tools=["read"])


def _unread() -> dict[str, Any]:
    raise AssertionError("the world was read")


def test_the_same_world_is_not_read_again() -> None:
    """Its digest says that nothing differs, so an ordinary continuation reads no blob for it."""
    assert difference(_READ.digest, _READ, _unread) == WorldDiff()


def test_a_world_that_is_not_compared_is_not_read() -> None:
    """Where one of the two is not declared there is nothing to compare."""
    assert difference(None, _READ, _unread) is None
    assert difference(_READ.digest, None, _unread) is None
