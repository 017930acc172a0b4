# SPDX-License-Identifier: Apache-2.0
"""Facts are gathered from the chain, and no more of it is read than they need."""

from datetime import UTC, datetime
from typing import Any

from sealpoint.gate._facts import Candidate, _difference
from sealpoint.store import CheckpointRef
from sealpoint.world import World, WorldDiff

_READ = World.of({"tools": [{"name": "read"}]})


def _candidate(saved: World | None) -> Candidate:
    """A checkpoint that was saved in a world which must not be read."""
    return Candidate(
        ref=CheckpointRef(
            id="c", seq=2, time=datetime(2026, 1, 1, tzinfo=UTC), writer="worker", metadata={}
        ),
        newest=True,
        world_digest=None if saved is None else saved.digest,
        read_world=_unread,
        question=None,
    )


def _unread() -> dict[str, Any]:
    raise AssertionError("the world was read")


def test_the_same_world_is_not_read_again() -> None:
    """Its digest says that nothing differs, so an ordinary continuation reads no blob for it."""
    assert _difference(_candidate(_READ), _READ) == WorldDiff()


def test_a_world_that_is_not_compared_is_not_read() -> None:
    """Where one of the two is not declared there is nothing to compare."""
    assert _difference(_candidate(None), _READ) is None
    assert _difference(_candidate(_READ), None) is None
