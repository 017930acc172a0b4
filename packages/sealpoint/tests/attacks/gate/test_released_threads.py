# SPDX-License-Identifier: Apache-2.0
"""Threads that a restore cut, and somebody who wants them to go on without being asked about.

The list of released threads lies in the store, where the attacker can write. It is named by its
digest in the entry that the root signed, and counts for nothing without that.
"""

import hashlib

import pytest

from sealpoint.errors import Edited, Missing, NeedsApproval, SealpointError
from sealpoint.ledger import STORE_CHAIN, PositionList
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.unit.gate.team import READ
from tests.unit.store.backup import Backup, accepted

_NAMES = ("t", "u")


def _restored(attacked: AttackedTeam, *released: str) -> tuple[bytes, PositionList]:
    """Two threads that lost a checkpoint; the digest of the list of those released, and `kept`."""
    for name in _NAMES:
        attacked.thread(name=name).save(1, world=READ)
    backup = Backup(attacked.world)
    for name in _NAMES:
        attacked.fresh(name=name).save(2, world=READ)
    backup.put_back()
    kept = accepted(attacked.world, release=released).plan.kept
    chain = attacked.world.using(lambda core: core.renewed_trust())
    return bytes.fromhex(chain.restores.all[-1].released), kept


def _outcome(attacked: AttackedTeam, name: str) -> object:
    try:
        return attacked.fresh(name=name).resume(world=READ).state
    except SealpointError as error:
        return type(error)


def test_what_was_released_goes_on_and_nothing_else(attacked: AttackedTeam) -> None:
    """The honest twin of all that follows."""
    _restored(attacked, "t")

    assert [_outcome(attacked, name) for name in _NAMES] == [1, NeedsApproval]
    attacked.check_sound()


@pytest.mark.parametrize("how", ["all lines", "another line", "no line", "gone"])
def test_a_list_of_released_threads_that_was_changed_is_refused(
    attacked: AttackedTeam, how: str
) -> None:
    """Neither thread goes on, and `verify` names the restore."""
    digest, kept = _restored(attacked, "t")
    attacked.sound()
    blobs = attacked.editor.blobs(STORE_CHAIN)
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
    attacked.editor.put_blobs(STORE_CHAIN, blobs)
    expected = Missing if how == "gone" else Edited

    assert [_outcome(attacked, name) for name in _NAMES] == [expected, expected]
    findings = attacked.world.open("operator", gated=True).verify().findings
    assert any("restore in entry" in each.message and each.refuses for each in findings)
