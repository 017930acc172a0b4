# SPDX-License-Identifier: Apache-2.0
"""Restores and keys that ended: what a key wrote before may be kept, and nothing is revived."""

from datetime import timedelta

import msgspec
import pytest

from sealpoint.anchor import Position
from sealpoint.errors import NotTrusted, RolledBack, SealpointError
from sealpoint.ledger import encode_header, parse_header
from sealpoint.storage import Record
from sealpoint.store import ThreadOutcome
from tests.deployment import Deployment
from tests.ledgers import key, seals
from tests.unit.store.backup import Backup, accepted, planned
from tests.unit.store.ended import add_key, end, expire


def _saved(world: Deployment, *numbers: int) -> None:
    thread = world.open().thread("t")
    for number in numbers:
        thread.save(number)


def _position(world: Deployment) -> Position:
    position = world.position("t")
    assert position is not None
    return position


def _renewed(world: Deployment) -> None:
    """The worker's key ends, and a new one is there."""
    end(world, "worker", change=add_key("worker", "worker-2"))


def _with_new_key(world: Deployment, state: object) -> None:
    world.open("worker-2").thread("t").save(state)


def test_a_thread_of_a_revoked_key_is_kept_below_its_cut(world: Deployment) -> None:
    """The cut lists an entry that is lost now; what lies before it is still the key's own."""
    _saved(world, 1, 2)
    backup = Backup(world)
    _saved(world, 3, 4)
    _renewed(world)
    backup.put_back()
    with pytest.raises(RolledBack):
        world.open(None, read_only=True).thread("t").load()
    (loss,) = planned(world).losses

    assert (loss.outcome, loss.kept, loss.seen) == (ThreadOutcome.BEHIND, 3, 6)
    accepted(world)
    assert world.open(None, read_only=True).thread("t").load().state == 2
    _with_new_key(world, 5)
    report = world.open(None, read_only=True).verify()
    assert report.ok, report.findings


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_revoked_key_adds_nothing_after_a_restore(memory: Deployment, epoch: int) -> None:
    """Neither in the old epoch nor in the new one, though positions below its cut are free now."""
    _saved(memory, 1, 2)
    backup = Backup(memory)
    _saved(memory, 3, 4)
    _renewed(memory)
    lost = memory.record("t", 4)
    backup.put_back()
    accepted(memory)
    header = msgspec.structs.replace(parse_header(lost.header), epoch=epoch)
    raw = encode_header(header)
    thread = memory.thread_id("t")
    memory.put(thread, 4, Record(raw, seals(raw, key("worker")), lost.body, lost.payload))

    with pytest.raises(SealpointError) as refused:
        memory.open(None, read_only=True).thread("t").load()
    assert refused.value.code == ("misplaced" if epoch == 0 else "not-trusted")


def test_a_key_that_ends_after_a_restore_keeps_what_it_wrote(world: Deployment) -> None:
    """In the old epoch as far as it was kept, and in the new one."""
    _saved(world, 1, 2)
    backup = Backup(world)
    _saved(world, 3)
    backup.put_back()
    accepted(world)
    _saved(world, 4)
    _renewed(world)

    assert world.open(None, read_only=True).thread("t").load().state == 4
    _with_new_key(world, 5)
    assert world.open(None, read_only=True).verify().ok


@pytest.mark.parametrize("seen", [True, False])
def test_what_a_revoked_key_wrote_beyond_its_cut_is_thrown_away(
    memory: Deployment, *, seen: bool
) -> None:
    """Nobody may read it, and it is in the way: a restore keeps what comes before it."""
    _saved(memory, 1, 2)
    before, held = _position(memory), Backup(memory)
    _saved(memory, 3)
    after, late = _position(memory), Backup(memory)
    held.put_back()
    memory.anchored._positions[memory.slot("t")] = before
    _renewed(memory)
    late.put_back()
    memory.anchored._positions[memory.slot("t")] = after if seen else before
    (loss,) = planned(memory).losses

    assert loss.outcome is (ThreadOutcome.BEHIND if seen else ThreadOutcome.DAMAGED)
    assert (loss.kept, loss.lost, loss.beyond) == (3, 2 if seen else 0, 2)
    assert "revoked key" in loss.stopped
    accepted(memory)
    assert memory.open(None, read_only=True).thread("t").load().state == 2
    _with_new_key(memory, 4)
    assert memory.open(None, read_only=True).verify().ok


def test_entries_of_an_expired_key_are_not_proven_by_a_backup(memory: Deployment) -> None:
    """Nothing says when they were written; the plan says so, and the root may move the expiry."""
    _saved(memory, 1, 2)
    backup = Backup(memory)
    _saved(memory, 3)
    expire(memory, "worker", memory.clock + timedelta(seconds=60))
    memory.clock += timedelta(days=1)
    backup.put_back()
    (loss,) = planned(memory).losses

    assert (loss.outcome, loss.kept) == (ThreadOutcome.GONE, None)
    assert "expired at" in loss.stopped
    expire(memory, "worker", None)
    (loss,) = planned(memory).losses
    assert (loss.outcome, loss.kept) == (ThreadOutcome.BEHIND, 3)
    accepted(memory)
    expire(memory, "worker", memory.clock - timedelta(seconds=60))
    assert memory.open(None, read_only=True).thread("t").load().state == 2
    with pytest.raises(NotTrusted):
        memory.open().thread("t").save(4)
