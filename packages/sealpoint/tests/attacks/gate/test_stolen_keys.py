# SPDX-License-Identifier: Apache-2.0
"""A stolen writer's key inside its window: what it reaches, and what it never does.

Whoever holds a worker's key and the store writes in the worker's name until the key is revoked:
that is no secret of ours. What was anchored stays, a pause holds, and nobody approves with it.
"""

import msgspec
import pytest

from sealpoint.errors import (
    Forked,
    Missing,
    NeedsApproval,
    NotTrusted,
    ResumeRefused,
    RolledBack,
)
from sealpoint.ledger import (
    CheckpointBody,
    HandoffBody,
    Kind,
    ResumeBody,
    UnpauseBody,
    VerdictBody,
)
from sealpoint.signing import Verdict, attest
from sealpoint.storage import Record
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import key
from tests.unit.gate.team import READ


def _rewritten(attacked: AttackedTeam, window: int) -> dict[int, Record]:
    """The thread with its last entries written anew, each well made, by the stolen key."""
    rows = attacked.rows()
    length = len(rows)
    known = {seq: row for seq, row in rows.items() if seq < length - window}
    for seq in range(length - window, length):
        body = attacked.body(seq)
        known[seq] = attacked.forged(
            Kind.CHECKPOINT,
            CheckpointBody(salt=attacked.salt, id=body.id, root=body.root, world=body.world),
            "worker",
            rows=known,
        )
    return known


@pytest.mark.parametrize("window", [1, 10, 100])
def test_what_was_anchored_is_not_written_anew(attacked: AttackedTeam, window: int) -> None:
    """Not the last entry, nor the last ten or hundred, though each has a valid seal."""
    for number in range(window + 2):
        attacked.thread().save(number, id=f"c{number}", world=READ)
    with attacked.landing():
        attacked.editor.put_rows(attacked.world.thread_id("t"), _rewritten(attacked, window))

    assert attacked.resumed(world=READ) is Forked
    assert attacked.ending(lambda: attacked.fresh().load()) is Forked


@pytest.mark.parametrize("window", [1, 10, 100])
def test_what_was_anchored_is_not_cut_off(attacked: AttackedTeam, window: int) -> None:
    """And going on from before it is no way out."""
    for number in range(window + 2):
        attacked.thread().save(number, id=f"c{number}", world=READ)
    with attacked.landing():
        attacked.truncate(len(attacked.rows()) - window)

    assert attacked.resumed(world=READ) is RolledBack


@pytest.mark.parametrize("kind", [Kind.RESUME, Kind.CHECKPOINT])
def test_a_pause_stops_a_stolen_key(attacked: AttackedTeam, kind: Kind) -> None:
    """Every reader refuses what was written while the thread was paused."""
    attacked.thread().save(1, world=READ)
    root = attacked.body(attacked.find(Kind.CHECKPOINT)).root
    attacked.thread("operator").pause("stolen")
    with attacked.landing():
        if kind is Kind.RESUME:
            attacked.slip(kind, ResumeBody(salt=attacked.salt, owner="worker", basis=2), "worker")
        else:
            attacked.slip(kind, CheckpointBody(salt=attacked.salt, id="x", root=root), "worker")

    assert attacked.resumed(world=READ) is NotTrusted
    assert attacked.ending(lambda: attacked.fresh().load()) is NotTrusted


def test_a_stolen_key_ends_no_pause_and_gives_no_approval(attacked: AttackedTeam) -> None:
    """Neither is a writer's to write, nor to sign for."""
    request = attacked.waiting("ann")
    attacked.thread("operator").pause("stolen")
    rows = attacked.rows()
    with attacked.landing():
        attacked.slip(Kind.UNPAUSE, UnpauseBody(salt=attacked.salt, reason="fine"), "worker")
    assert attacked.resumed() is NotTrusted
    attacked.editor.put_rows(attacked.world.thread_id("t"), rows)
    with attacked.landing():
        word = attest(key("worker"), request.id, Verdict.APPROVE, "fine")
        attacked.slip(Kind.APPROVAL, VerdictBody(salt=attacked.salt, attestation=word), "worker")

    attacked.fresh("operator").unpause("fine")
    assert attacked.resumed() is NeedsApproval


def test_a_stolen_operators_key_takes_no_thread(attacked: AttackedTeam) -> None:
    """A handoff carries the approval of another person, or no reader takes it."""
    attacked.thread().save(1, world=READ)
    with attacked.landing():
        attacked.slip(
            Kind.HANDOFF, HandoffBody(salt=attacked.salt, owner="spare", reason="mine"), "operator"
        )

    assert attacked.resumed("spare", world=READ) is NotTrusted
    assert attacked.ending(lambda: attacked.fresh().load()) is NotTrusted


def test_a_stolen_key_makes_no_grant_for_an_honest_worker(attacked: AttackedTeam) -> None:
    """An entry that claims to spend what was never approved releases nothing."""
    request = attacked.waiting("ann")
    with attacked.landing():
        claimed = ResumeBody(
            salt=attacked.salt,
            owner="worker",
            basis=attacked.find(Kind.CHECKPOINT),
            checkpoint=request.statement.checkpoint,
            release=request.statement.release,
            world=request.statement.world_to,
            policy=attacked.digest,
            rules=("tools",),
            request=request.id,
        )
        attacked.slip(Kind.RESUME, claimed, "worker")

    assert attacked.resumed() is NeedsApproval
    assert not attacked.world.open(None, read_only=True).verify().ok


def test_a_revoked_key_writes_nothing_more(attacked: AttackedTeam) -> None:
    """The window is over with its cut, and what was approved for it as well."""
    attacked.waiting("ann", "bob")
    attacked.end("worker")
    with attacked.landing():
        attacked.slip(
            Kind.RESUME, ResumeBody(salt=attacked.salt, owner="worker", basis=3), "worker"
        )

    assert attacked.resumed() in (NotTrusted, ResumeRefused)
    assert attacked.ending(lambda: attacked.fresh("spare").load()) is NotTrusted


def test_a_stolen_key_changes_no_bytes_of_others(attacked: AttackedTeam) -> None:
    """An approval is not made to say what the holder of another key would like."""
    attacked.waiting("ann")
    seq = attacked.find(Kind.APPROVAL)
    body = attacked.rows()[seq].body or b""
    with attacked.landing():
        row = attacked.rows()[seq]
        attacked.put({seq: Record(row.header, row.seals, body.replace(b"ann has", b"all have"))})

    attacked.approve(attacked.fresh("bob").requests()[0], "bob")
    assert attacked.resumed() is NeedsApproval
    assert not attacked.world.open(None, read_only=True).verify().ok


@pytest.mark.parametrize("back", [False, True])
def test_a_thread_whose_owner_s_name_is_gone_is_taken_by_nobody(
    attacked: AttackedTeam, *, back: bool
) -> None:
    """Another writer goes on where the body of the session is gone: at no look is that read."""
    attacked.thread().save("the owner's", world=READ)
    seq, basis = attacked.find(Kind.RESUME), attacked.find(Kind.CHECKPOINT)
    told, warm = attacked.rows()[seq], attacked.fresh()
    warm.load()
    with attacked.landing():
        attacked.put({seq: msgspec.structs.replace(told, body=None)})
        attacked.slip(
            Kind.RESUME, ResumeBody(salt=attacked.salt, owner="spare", basis=basis), "spare"
        )
        taken = CheckpointBody(salt=attacked.salt, id="mine", root=attacked.body(basis).root)
        record = attacked.forged(Kind.CHECKPOINT, taken, "spare")
        attacked.append(msgspec.structs.replace(record, payload=attacked.rows()[basis].payload))

    for thread in (warm, attacked.fresh(), warm, attacked.fresh("spare")):
        assert attacked.ending(thread.load) in {Missing, NotTrusted}
    if back:
        attacked.put({seq: told})
        for thread in (warm, attacked.fresh(), warm, attacked.fresh("spare")):
            assert attacked.ending(thread.load) is NotTrusted
    attacked.truncate(basis + 1)
    attacked.put({seq: told})
    for thread in (warm, attacked.fresh()):
        assert thread.load().state == "the owner's"
    assert warm.resume(world=READ).state == "the owner's"
