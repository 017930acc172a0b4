# SPDX-License-Identifier: Apache-2.0
"""A worker with a genuine key and other code, which names the roster from before a policy change.

The entry's position decides which policy judges it. The roster and the time that it names do not.
"""

from datetime import datetime, timedelta
from hashlib import sha256

import pytest
from msgspec.structs import replace

from sealpoint.audit import UNJUSTIFIED, Report
from sealpoint.errors import NeedsApproval, Superseded
from sealpoint.gate import Request
from sealpoint.ledger import STORE_CHAIN, HandoffBody, Kind
from sealpoint.signing import Verdict, attest
from sealpoint.store import append_roster, list_positions_again
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.deployment import SimulatedStorage
from tests.ledgers import key
from tests.unit.gate.team import READ, SHELL, policy

_LENIENT = policy("lenient", tools="reason", handoff_by_operator="approve 1")
_STRICT = policy("strict")


class _Change:
    """A thread that was saved under a lenient policy, and the strict policy after it."""

    def __init__(self, attacked: AttackedTeam) -> None:
        self.attacked = attacked
        self.lenient = attacked.apply(_LENIENT)
        attacked.thread().save({"n": 1}, id="c1", world=READ)
        self.roster = attacked.store().core.trust().roster.seq
        self.time = attacked.world.clock
        attacked.later(hours=1)
        self.strict = attacked.apply(_STRICT)
        attacked.later(hours=4)

    def slip(
        self, *, name: str = "t", at: datetime | None = None, roster: int | None = None
    ) -> None:
        """Resume in a wider world, with the reason that the lenient policy asks for."""
        self.attacked.slip_resume(
            name=name,
            at=self.time if at is None else at,
            roster=self.roster if roster is None else roster,
            policy=self.lenient,
            reason="because",
        )


def _verified(attacked: AttackedTeam) -> Report:
    return attacked.world.open(None, read_only=True).verify()


def _unjustified(attacked: AttackedTeam) -> str:
    report = _verified(attacked)
    assert {each.code for each in report.findings} <= {UNJUSTIFIED}
    return "\n".join(each.message for each in report.findings)


def test_an_older_roster_does_not_bring_back_its_policy(attacked: AttackedTeam) -> None:
    """B01: a resume after the change is judged by the new policy, whatever roster and time."""
    change = _Change(attacked)
    with attacked.landing():
        change.slip()
    found = _unjustified(attacked)

    assert f"which names roster {change.roster} after a later change of policy" in found
    assert "approvals needed: 2, found: 0" in found


def test_a_resume_before_the_change_is_judged_by_the_policy_of_its_time(
    attacked: AttackedTeam,
) -> None:
    """The same resume at a position that the change lists is justified."""
    attacked.apply(_LENIENT)
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    attacked.thread().resume(world=SHELL, deliberate="because")
    attacked.apply(_STRICT)
    attacked.apply(policy("stricter", needed=3))

    attacked.check_sound()


def test_an_operators_handoff_is_judged_by_its_position(attacked: AttackedTeam) -> None:
    """One approval was enough under the lenient policy; the handoff came after the change."""
    attacked.apply(_LENIENT)
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    with pytest.raises(NeedsApproval) as needs:
        attacked.thread("operator").handoff(to="spare", reason="mine")
    request = needs.value.request
    assert isinstance(request, Request)
    attacked.approve(request, "ann")
    roster, time = attacked.store().core.trust().roster.seq, attacked.world.clock
    strict = attacked.apply(_STRICT)
    word = attest(key("ann"), request.id, Verdict.APPROVE, "fine")
    body = HandoffBody(
        salt=attacked.salt,
        owner="spare",
        reason="mine",
        statement=request.statement,
        attestations=(word,),
    )
    with attacked.landing():
        record = attacked.forged(Kind.HANDOFF, body, "operator", at=time, roster=roster)
        attacked.append(record)

    assert f"carries no approvals by policy {strict[:12]!r}" in _unjustified(attacked)


@pytest.mark.parametrize("damage", ["gone", "edited"])
def test_without_the_list_nothing_that_needs_it_passes(attacked: AttackedTeam, damage: str) -> None:
    """Whoever has the store can take the list away, and is found by that."""
    attacked.apply(_LENIENT)
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    attacked.thread().resume(world=SHELL, deliberate="because")
    attacked.apply(_STRICT)
    attacked.check_sound()
    listed = bytes.fromhex(attacked.store().core.trust().roster.positions or "")
    blobs = attacked.editor.blobs(STORE_CHAIN)
    kept = {name: data for name, data in blobs.items() if name != listed}
    edited = {} if damage == "gone" else {listed: blobs[listed] + blobs[listed]}
    attacked.editor.put_blobs(STORE_CHAIN, kept | edited)

    assert "the policy to judge it by cannot be read: list of positions" in _unjustified(attacked)


def test_a_worker_that_resumes_during_the_change_hears_of_it(attacked: AttackedTeam) -> None:
    """Its entry came too late for the list: it is refused, and the next resume asks people."""
    attacked.apply(_LENIENT)
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    worker = attacked.world.open(gated=True)
    worker.storage.appending.before = lambda: attacked.world.apply(_STRICT)
    with pytest.raises(Superseded, match="the policy changed while this resume was written"):
        worker.thread("t").resume(world=SHELL, deliberate="because")
    with pytest.raises(NeedsApproval):
        worker.thread("t").resume(world=SHELL, deliberate="because")


def test_a_worker_that_was_done_before_the_change_is_not_accused(attacked: AttackedTeam) -> None:
    """Its entry came after the first list and before the roster: the second list has it."""
    attacked.apply(_LENIENT)
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    worker = attacked.world.open(gated=True)

    core = attacked.world.core("operator")
    chain = core.renewed_trust()
    digest = sha256(_STRICT)
    document = replace(chain.roster.document, policies={"*": digest.hexdigest()})
    assert isinstance(core.storage, SimulatedStorage)
    core.storage.appending.before = lambda: worker.thread("t").resume(
        world=SHELL, deliberate="because"
    )
    blobs = {digest.digest(): _STRICT}
    written = append_roster(core, chain, document, [key("root")], blobs=blobs)
    core.written(written)
    before = _unjustified(attacked)
    list_positions_again(core, written, [key("root")])
    list_positions_again(core, core.renewed_trust(), [key("root")])
    rosters = core.renewed_trust().rosters
    core.storage.close()
    core.anchor.close()

    assert "approvals needed: 2" in before
    assert rosters[-1].seq == written.seq + 1, "one more list, and only one"
    attacked.check_sound()


def test_the_newest_roster_with_the_old_policy_is_found(attacked: AttackedTeam) -> None:
    """The control: the true time and the newest roster are found as before."""
    change = _Change(attacked)
    newest = attacked.store().core.trust().roster.seq
    with attacked.landing():
        change.slip(at=attacked.world.clock + timedelta(seconds=1), roster=newest)

    assert "was judged by" in _unjustified(attacked)
