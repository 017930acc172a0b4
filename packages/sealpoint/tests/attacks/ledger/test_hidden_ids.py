# SPDX-License-Identifier: Apache-2.0
"""Somebody wants an id that is taken to look free, or every look for one to take for ever.

Old ids are found by tables that checkpoints carry. A look that failed must not be taken, by the
next one, for a look that found nothing; and who has a worker's key may sign tables that are wrong.
"""

from collections.abc import Iterator

import msgspec
import pytest

from sealpoint.errors import IdReused, Misplaced, Missing, UnknownCheckpoint
from sealpoint.gate import Thread
from sealpoint.ledger import (
    TABLE_EVERY,
    CheckpointBody,
    IdTable,
    Kind,
    id_print,
    parse_body,
    parse_header,
)
from sealpoint.store._append_entries import EntryDraft, append
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


# ------------------------------------------------------------------ a worker that lies


def _sign(world: Deployment, *tables: IdTable) -> None:
    """Checkpoints that an owner of the thread signs, with tables of its own making."""
    thread = world.open("worker").thread("t")
    thread.load()
    seq = thread.save("honest").seq
    record = world.record("t", seq)
    body: CheckpointBody = parse_body(
        Kind.CHECKPOINT, parse_header(record.header).body, record.body or b""
    )
    for number, table in enumerate(tables):
        lie = msgspec.structs.replace(body, id=f"lie {number}", ids=table)
        append(thread._state.chain, EntryDraft(Kind.CHECKPOINT, lie, record.payload))


def test_a_table_that_names_entries_of_other_ids_is_refused(world: Deployment) -> None:
    """Else one that names every entry for an id would have each look at that id read them all."""
    end = _LENGTH + 2
    _sign(world, IdTable(first=0, prints=id_print("", "target").hex() * end))
    store = world.open(None, read_only=True)
    store.storage.notes_reads = True
    for _ in range(2):
        with pytest.raises(Misplaced, match="table of ids"):
            store.thread("t").load("target")

    assert len(store.storage.read_positions) < TABLE_EVERY
    assert world.open(None).verify().findings


def test_tables_of_one_position_are_not_followed_one_by_one(world: Deployment) -> None:
    """Each would cost a signature and a way down from the head; the links are walked instead."""
    first, count = _LENGTH + 2, 200
    _sign(
        world, *(IdTable(first=seq - 1, prints="81818181") for seq in range(first, first + count))
    )
    store = world.open(None, read_only=True)
    store.storage.notes_reads = True

    assert store.thread("t").load("5").state == 5
    assert len(store.storage.read_positions) < 2 * count
