# SPDX-License-Identifier: Apache-2.0
"""Somebody with the store's rows wants an id that is taken to look free.

Old ids are found by tables that checkpoints carry. A look that failed must not be taken, by the
next one, for a look that found nothing.
"""

from collections.abc import Iterator

import pytest

from sealpoint.errors import IdReused, Missing, UnknownCheckpoint
from sealpoint.gate import Thread
from sealpoint.ledger import TABLE_EVERY
from tests.deployment import Deployment
from tests.unit.store.laned import put, saved

_LENGTH = 3 * TABLE_EVERY + 40
_TABLE = 2 * TABLE_EVERY
"""Where the table lies that tells of the first ids."""


@pytest.fixture
def world() -> Iterator[Deployment]:
    """A thread whose checkpoint at position n is called n."""
    world = Deployment()
    thread = world.open("worker").thread("t")
    saved(thread, put(2, "2"))
    for first in range(3, _LENGTH, 50):
        saved(thread, *(put(seq, str(seq)) for seq in range(first, min(first + 50, _LENGTH))))
    yield world
    world.close()


def _warm(world: Deployment) -> Thread:
    """A handle that has looked for an id while the entry with a table was away."""
    thread = world.open("worker").thread("t")
    thread.load()
    record = world.record("t", _TABLE)
    world.put(world.thread_id("t"), _TABLE, None)
    with pytest.raises(Missing):
        thread.load("5")
    world.put(world.thread_id("t"), _TABLE, record)
    return thread


def test_a_look_that_failed_does_not_hide_an_id(world: Deployment) -> None:
    """Whoever takes a row away for a moment does not make the handle take the id for unknown."""
    thread = _warm(world)

    assert thread.load("5").state == 5
    with pytest.raises(UnknownCheckpoint):
        thread.load("nowhere")


def test_a_look_that_failed_does_not_free_an_id(world: Deployment) -> None:
    """Nor does a save reuse it."""
    thread = _warm(world)
    with pytest.raises(IdReused):
        thread.save("other", id="5")
