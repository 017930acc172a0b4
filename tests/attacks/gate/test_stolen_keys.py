# SPDX-License-Identifier: Apache-2.0
"""A stolen writer's key inside its window: what it reaches, and what it never does.

Whoever holds a worker's key and the store writes in the worker's name until the key is revoked:
that is no secret of ours. What was anchored stays, a pause holds, and nobody approves with it.
"""

import msgspec
import pytest

from sealpoint.errors import (
    Edited,
    Forked,
    Missing,
    NeedsApproval,
    NotTrusted,
    ResumeRefused,
    RolledBack,
    Tampered,
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
from tests.attacks.gate.raid import Raid
from tests.ledgers import key
from tests.unit.gate.team import READ, SHELL


def _rewritten(raid: Raid, window: int) -> dict[int, Record]:
    """The thread with its last entries written anew, each well made, by the stolen key."""
    rows = raid.rows()
    length = len(rows)
    known = {seq: row for seq, row in rows.items() if seq < length - window}
    for seq in range(length - window, length):
        body = raid.body(seq)
        known[seq] = raid.forged(
            Kind.CHECKPOINT,
            CheckpointBody(salt=raid.salt, id=body.id, root=body.root, world=body.world),
            "worker",
            rows=known,
        )
    return known


@pytest.mark.parametrize("window", [1, 10, 100])
def test_what_was_anchored_is_not_written_anew(raid: Raid, window: int) -> None:
    """Not the last entry, nor the last ten or hundred, though each has a valid seal."""
    for number in range(window + 2):
        raid.thread().save(number, id=f"c{number}", world=READ)
    with raid.landing():
        raid.burglar.put_rows(raid.world.thread_id("t"), _rewritten(raid, window))

    assert raid.resumed(world=READ) is Forked
    assert raid.ending(lambda: raid.fresh().load()) is Forked


@pytest.mark.parametrize("window", [1, 10, 100])
def test_what_was_anchored_is_not_cut_off(raid: Raid, window: int) -> None:
    """And going on from before it is no way out."""
    for number in range(window + 2):
        raid.thread().save(number, id=f"c{number}", world=READ)
    with raid.landing():
        raid.truncate(len(raid.rows()) - window)

    assert raid.resumed(world=READ) is RolledBack


@pytest.mark.parametrize("kind", [Kind.RESUME, Kind.CHECKPOINT])
def test_a_pause_stops_a_stolen_key(raid: Raid, kind: Kind) -> None:
    """Every reader refuses what was written while the thread was paused."""
    raid.thread().save(1, world=READ)
    root = raid.body(raid.find(Kind.CHECKPOINT)).root
    raid.thread("operator").pause("stolen")
    with raid.landing():
        if kind is Kind.RESUME:
            raid.slip(kind, ResumeBody(salt=raid.salt, owner="worker", basis=2), "worker")
        else:
            raid.slip(kind, CheckpointBody(salt=raid.salt, id="x", root=root), "worker")

    assert raid.resumed(world=READ) is NotTrusted
    assert raid.ending(lambda: raid.fresh().load()) is NotTrusted


def test_a_stolen_key_ends_no_pause_and_gives_no_approval(raid: Raid) -> None:
    """Neither is a writer's to write, nor to sign for."""
    request = raid.waiting("ann")
    raid.thread("operator").pause("stolen")
    rows = raid.rows()
    with raid.landing():
        raid.slip(Kind.UNPAUSE, UnpauseBody(salt=raid.salt, reason="fine"), "worker")
    assert raid.resumed() is NotTrusted
    raid.burglar.put_rows(raid.world.thread_id("t"), rows)
    with raid.landing():
        word = attest(key("worker"), request.id, Verdict.APPROVE, "fine")
        raid.slip(Kind.APPROVAL, VerdictBody(salt=raid.salt, attestation=word), "worker")

    raid.fresh("operator").unpause("fine")
    assert raid.resumed() is NeedsApproval


def test_a_stolen_operators_key_takes_no_thread(raid: Raid) -> None:
    """A handoff carries the approval of another person, or no reader takes it."""
    raid.thread().save(1, world=READ)
    with raid.landing():
        raid.slip(
            Kind.HANDOFF, HandoffBody(salt=raid.salt, owner="spare", reason="mine"), "operator"
        )

    assert raid.resumed("spare", world=READ) is NotTrusted
    assert raid.ending(lambda: raid.fresh().load()) is NotTrusted


def test_a_stolen_key_makes_no_grant_for_an_honest_worker(raid: Raid) -> None:
    """An entry that claims to spend what was never approved releases nothing."""
    request = raid.waiting("ann")
    with raid.landing():
        claimed = ResumeBody(
            salt=raid.salt,
            owner="worker",
            basis=raid.find(Kind.CHECKPOINT),
            checkpoint=request.statement.checkpoint,
            release=request.statement.release,
            world=request.statement.world_to,
            policy=raid.digest,
            rules=("tools",),
            request=request.id,
        )
        raid.slip(Kind.RESUME, claimed, "worker")

    assert raid.resumed() is NeedsApproval
    assert not raid.world.open(None, read_only=True).verify().ok


def test_a_revoked_key_writes_nothing_more(raid: Raid) -> None:
    """The window is over with its cut, and what was approved for it as well."""
    raid.waiting("ann", "bob")
    raid.end("worker")
    with raid.landing():
        raid.slip(Kind.RESUME, ResumeBody(salt=raid.salt, owner="worker", basis=3), "worker")

    assert raid.resumed() in (NotTrusted, ResumeRefused)
    assert raid.ending(lambda: raid.fresh("spare").load()) is NotTrusted


def test_a_stolen_key_changes_no_bytes_of_others(raid: Raid) -> None:
    """An approval is not made to say what the holder of another key would like."""
    raid.waiting("ann")
    seq = raid.find(Kind.APPROVAL)
    body = raid.rows()[seq].body or b""
    with raid.landing():
        row = raid.rows()[seq]
        raid.put({seq: Record(row.header, row.seals, body.replace(b"ann has", b"all have"))})

    assert raid.resumed() is Edited
    assert issubclass(raid.ending(lambda: raid.fresh().resume(world=SHELL)), Tampered)


@pytest.mark.parametrize("back", [False, True])
def test_a_thread_whose_owner_s_name_is_gone_is_taken_by_nobody(raid: Raid, back: bool) -> None:  # noqa: FBT001
    """Another writer goes on where the body of the session is gone: at no look is that read."""
    raid.thread().save("the owner's", world=READ)
    seq, basis = raid.find(Kind.RESUME), raid.find(Kind.CHECKPOINT)
    told, warm = raid.rows()[seq], raid.fresh()
    warm.load()
    with raid.landing():
        raid.put({seq: msgspec.structs.replace(told, body=None)})
        raid.slip(Kind.RESUME, ResumeBody(salt=raid.salt, owner="spare", basis=basis), "spare")
        taken = CheckpointBody(salt=raid.salt, id="mine", root=raid.body(basis).root)
        record = raid.forged(Kind.CHECKPOINT, taken, "spare")
        raid.append(msgspec.structs.replace(record, payload=raid.rows()[basis].payload))

    for thread in (warm, raid.fresh(), warm, raid.fresh("spare")):
        assert raid.ending(thread.load) is Missing
    if back:
        raid.put({seq: told})
        for thread in (warm, raid.fresh(), warm, raid.fresh("spare")):
            assert raid.ending(thread.load) is NotTrusted
    raid.truncate(basis + 1)
    raid.put({seq: told})
    for thread in (warm, raid.fresh()):
        assert thread.load().state == "the owner's"
    assert warm.resume(world=READ).state == "the owner's"
