# SPDX-License-Identifier: Apache-2.0
"""Threads that a restore cut, and somebody who wants them to go on without being asked about.

The list of released threads lies in the store, where the attacker can write. It is named by its
digest in the entry that the root signed, and counts for nothing without that.
"""

import hashlib

import pytest

from sealpoint.errors import Edited, Missing, NeedsApproval, SealpointError
from sealpoint.ledger import STORE_CHAIN, PositionList
from tests.attacks.gate.raid import Raid
from tests.unit.gate.team import READ
from tests.unit.store.backup import Backup, accepted

_NAMES = ("t", "u")


def _restored(raid: Raid, *released: str) -> tuple[bytes, PositionList]:
    """Two threads that lost a checkpoint; the digest of the list of those released, and `kept`."""
    for name in _NAMES:
        raid.thread(name=name).save(1, world=READ)
    backup = Backup(raid.world)
    for name in _NAMES:
        raid.fresh(name=name).save(2, world=READ)
    backup.put_back()
    kept = accepted(raid.world, release=released).plan.kept
    chain = raid.world.using(lambda core: core.renewed_trust())
    return bytes.fromhex(chain.restores.all[-1].released), kept


def _outcome(raid: Raid, name: str) -> object:
    try:
        return raid.fresh(name=name).resume(world=READ).state
    except SealpointError as error:
        return type(error)


def test_what_was_released_goes_on_and_nothing_else(raid: Raid) -> None:
    """The honest twin of all that follows."""
    _restored(raid, "t")

    assert [_outcome(raid, name) for name in _NAMES] == [1, NeedsApproval]
    raid.check_sound()


@pytest.mark.parametrize("how", ["all lines", "another line", "no line", "gone"])
def test_a_list_of_released_threads_that_was_changed_is_refused(raid: Raid, how: str) -> None:
    """Neither thread goes on, and `verify` names the restore."""
    digest, kept = _restored(raid, "t")
    raid.sound()
    blobs = raid.burglar.blobs(STORE_CHAIN)
    assert blobs[digest] in kept.data
    lines = {
        "all lines": kept.data,
        "another line": kept.data.replace(blobs[digest], b""),
        "no line": b"",
    }
    blobs = {name: data for name, data in blobs.items() if name != digest}
    if how != "gone":
        blobs[digest] = lines[how]
        assert hashlib.sha256(lines[how]).digest() != digest
    raid.burglar.put_blobs(STORE_CHAIN, blobs)
    expected = Missing if how == "gone" else Edited

    assert [_outcome(raid, name) for name in _NAMES] == [expected, expected]
    findings = raid.world.open("operator", gated=True).verify().findings
    assert any("restore in entry" in each.message and each.refuses for each in findings)
