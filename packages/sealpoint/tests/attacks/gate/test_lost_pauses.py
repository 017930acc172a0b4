# SPDX-License-Identifier: Apache-2.0
"""The attacker puts the store back to before a pause, and waits until somebody accepts a restore.

The holder of the root sees a disk failure. The pause must not be lifted by that: not by
`--release`, under no policy, and not for a worker with a genuine key and other code (B05).
"""

import hashlib

import pytest

from sealpoint.errors import NeedsApproval, NotTrusted, Paused, ResumeRefused, UsageError
from sealpoint.gate import Request
from sealpoint.ledger import CheckpointBody, ExpiryBody, Kind, ResultsBody, ResumeBody
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.rogue import Rogue
from tests.unit.gate.team import READ, policy
from tests.unit.store.backup import Backup, accepted, planned

_MEASURES = ("record", "reason", "approve 1")


def _put_back_before_the_pause(attacked: AttackedTeam) -> None:
    attacked.thread().save(1, world=READ)
    attacked.thread(name="u").save(1, world=READ)
    backup = Backup(attacked.world)
    attacked.thread("operator").pause("it pays the wrong people")
    attacked.fresh(name="u").save(2, world=READ)
    backup.put_back()


@pytest.mark.parametrize("measure", _MEASURES)
def test_a_restore_does_not_lift_a_pause(attacked: AttackedTeam, measure: str) -> None:
    """The plan shows the lost pause, `release=True` leaves the thread out, and it stays paused."""
    attacked.apply(policy("after", after_restore=measure))
    _put_back_before_the_pause(attacked)
    by_name = {each.name: each for each in planned(attacked.world).losses}
    done = accepted(attacked.world, release=True)

    assert (by_name["t"].paused, by_name["t"].loses_pause) == (True, True)
    assert by_name["t"].not_released == "it was paused, and the restore loses the pause"
    assert (by_name["u"].paused, by_name["u"].not_released) == (False, "")
    assert [each.name for each in done.released] == ["u"]
    assert attacked.fresh(name="u").resume(world=READ).state == 1
    handle = attacked.fresh()
    assert handle.paused
    if measure == "approve 1":  # as in every pause: people may approve now, for the time after it
        with pytest.raises(NeedsApproval) as asked:
            handle.resume(world=READ, deliberate="the disk died")
        request = asked.value.request
        assert isinstance(request, Request)
        attacked.approve(request, "ann")
        handle = attacked.fresh()
    with pytest.raises((ResumeRefused, Paused), match="lost the pause"):
        handle.resume(world=READ, deliberate="the disk died")
    with pytest.raises((ResumeRefused, Paused)):
        attacked.fresh().save(2, world=READ)
    assert attacked.fresh().load().state == 1
    attacked.check_sound()


@pytest.mark.parametrize("how", ["unpause", "pause and unpause"])
def test_an_operator_ends_the_lost_pause(attacked: AttackedTeam, how: str) -> None:
    """By an unpause, after a pause with a new reason or without one; then the policy decides."""
    attacked.apply(policy("after", after_restore="reason"))
    _put_back_before_the_pause(attacked)
    accepted(attacked.world, release=True)
    if how != "unpause":
        attacked.fresh("operator").pause("still wrong")
        with pytest.raises(ResumeRefused, match="still wrong"):
            attacked.fresh().resume(world=READ, deliberate="the disk died")
    attacked.fresh("operator").unpause("looked at")

    assert not attacked.fresh().paused
    with pytest.raises(ResumeRefused, match="a restore cut the thread"):
        attacked.fresh().resume(world=READ)
    assert attacked.fresh().resume(world=READ, deliberate="looked at").state == 1
    attacked.fresh().save(2, world=READ)
    attacked.check_sound()


def test_a_thread_that_was_paused_cannot_be_released_by_name(attacked: AttackedTeam) -> None:
    """Nothing is accepted, so that nobody believes that the thread continues."""
    _put_back_before_the_pause(attacked)

    with pytest.raises(UsageError, match="it was paused, and the restore loses the pause"):
        accepted(attacked.world, release=["t"])
    assert planned(attacked.world).losses


def test_a_worker_with_other_code_does_not_pass_a_lost_pause(attacked: AttackedTeam) -> None:
    """Every reader refuses its resume, although no entry of the thread pauses it."""
    _put_back_before_the_pause(attacked)
    accepted(attacked.world)
    body = ResumeBody(salt=attacked.salt, owner="worker", basis=2)
    attacked.append(attacked.forged(Kind.RESUME, body, "worker", epoch=1))

    with pytest.raises(NotTrusted, match="expected no resume while the thread is paused"):
        attacked.fresh().load()
    findings = attacked.world.open("operator", gated=True).verify().findings
    assert [each.code for each in findings] == ["not-trusted"]


@pytest.mark.parametrize("buried", [False, True])
def test_results_on_top_do_not_hide_a_session_in_a_lost_pause(
    attacked: AttackedTeam, *, buried: bool
) -> None:
    """The entry that began the session is judged, also under a handoff of the same member."""
    _put_back_before_the_pause(attacked)
    accepted(attacked.world)
    name = next(iter(attacked.fresh("ann").history())).id
    rogue = Rogue(attacked.store().core, "worker")
    rogue.resume("worker", header={"epoch": 1})
    payload = b"\xa6bought"
    root = hashlib.sha256(payload).hexdigest()
    results = ResultsBody(salt=attacked.salt, checkpoint=name, task="buy", root=root)
    rogue.write(Kind.RESULTS, results, payload)
    if buried:
        rogue.hand_off("spare")
    rogue.anchor()

    for call in (
        lambda: attacked.fresh().load(),
        lambda: attacked.fresh().release(),
        lambda: attacked.fresh("operator").unpause("looked at"),
    ):
        with pytest.raises(NotTrusted, match="expected no resume while the thread is paused"):
            call()


@pytest.mark.parametrize("lies", [False, True])
def test_nothing_hides_a_state_that_was_saved_through_a_lost_pause(
    attacked: AttackedTeam, *, lies: bool
) -> None:
    """A checkpoint that claims to have settled the pause itself, under entries that do not."""
    _put_back_before_the_pause(attacked)
    accepted(attacked.world)
    rogue = Rogue(attacked.store().core, "worker")
    payload = b"\xa6bought"
    root = hashlib.sha256(payload).hexdigest()
    world = World.from_dict(READ).digest
    saved = CheckpointBody(salt=attacked.salt, id="bought", root=root, world=world)
    rogue.write(
        Kind.CHECKPOINT,
        saved,
        payload,
        epoch=1,
        **({"pause": len(rogue.rows)} if lies else {}),
    )
    rogue.write(Kind.EXPIRY, ExpiryBody(salt=attacked.salt, request="ab" * 32), pause=0)
    results = ResultsBody(salt=attacked.salt, checkpoint="nowhere", task="buy", root=root)
    rogue.write(Kind.RESULTS, results, payload)
    rogue.anchor()

    for call in (
        lambda: attacked.fresh("ann").load(),
        lambda: attacked.fresh("ann").release(),
        lambda: attacked.fresh("operator").unpause("looked at"),
        lambda: attacked.fresh().resume(world=READ, deliberate="again"),
    ):
        with pytest.raises(NotTrusted):
            call()


def test_a_second_restore_does_not_lift_the_pause_either(attacked: AttackedTeam) -> None:
    """Positions that are given a second time still settle it."""
    attacked.thread().save(0, world=READ)
    first = Backup(attacked.world)
    attacked.thread().save(1, world=READ)
    second = Backup(attacked.world)
    attacked.thread("operator").pause("it pays the wrong people")
    second.put_back()
    accepted(attacked.world)
    attacked.fresh("operator").unpause("looked at")
    first.put_back()
    accepted(attacked.world, release=True)

    assert attacked.fresh().paused
    attacked.fresh("operator").unpause("looked at again")
    assert not attacked.fresh().paused
    attacked.check_sound()
