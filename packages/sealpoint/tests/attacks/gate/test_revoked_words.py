# SPDX-License-Identifier: Apache-2.0
"""The word of an approver whose key has ended: it counts where it was given, and nowhere later.

Whoever holds that key and an operator's writes entries that name an older roster, in which the
approver still counted. The list of the cut says up to where the key is believed.
"""

from datetime import timedelta

import pytest

from sealpoint import api
from sealpoint.errors import Forked, NeedsApproval, NotTrusted, RolledBack
from sealpoint.gate import Request
from sealpoint.ledger import (
    Follower,
    HandoffBody,
    Kind,
    Place,
    ResumeBody,
    VerdictBody,
    link_hash,
    parse_header,
)
from sealpoint.signing import STOPPED, Action, Statement, Verdict, attest
from sealpoint.storage import Record
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import key
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.ended import end, expire


def _stolen_handoff(attacked: AttackedTeam, *words: str, roster: int) -> Record:
    """A handoff by a stolen operator's key, with words of these keys, under an older roster."""
    rows = attacked.rows()
    header = parse_header(rows[len(rows) - 1].header)
    statement = Statement(
        store=header.store,
        ns=header.ns,
        thread=header.thread,
        epoch=header.epoch,
        gen=header.gen,
        basis=link_hash(rows[attacked.find(Kind.CHECKPOINT)].header).hex(),
        action=Action.HANDOFF,
        checkpoint=None,
        release=None,
        world_from=None,
        world_to=None,
        answer=None,
        to="spare",
        differences=(),
        requester="operator",
        actor=None,
        policy=attacked.digest,
        needed=2,
        nonce="66" * 16,
        expires=attacked.world.clock + timedelta(hours=1),
        reason="mine now",
    )
    said = tuple(attest(key(who), statement.digest, Verdict.APPROVE, "yes") for who in words)
    body = HandoffBody(
        salt=attacked.salt, owner="spare", reason="mine now", statement=statement, attestations=said
    )
    return attacked.forged(Kind.HANDOFF, body, "operator", roster=roster)


def _approved_once(attacked: AttackedTeam) -> int:
    """A thread with a word of Ann on it, whose key then ends; the roster in which it was good."""
    attacked.waiting("ann")
    return attacked.store().core.renewed_trust().roster.seq


@pytest.mark.parametrize("how", ["ended", "stopped"])
def test_a_revoked_approvers_word_hands_nothing_off(attacked: AttackedTeam, how: str) -> None:
    """Not even under the roster in which it still counted, with a stolen operator's key."""
    roster = _approved_once(attacked)
    if how == "ended":
        end(attacked.world, "ann")
    else:
        expire(attacked.world, "ann", STOPPED)
    with attacked.landing():
        attacked.append(_stolen_handoff(attacked, "ann", roster=roster))

    assert attacked.ending(lambda: attacked.fresh("spare").load()) is NotTrusted
    assert attacked.ending(lambda: attacked.fresh("spare").resume(world=READ)) is NotTrusted
    assert attacked.world.open("ann", gated=True).requests().failures != ()
    report = attacked.world.open(None, read_only=True).verify()
    assert "not-trusted" in [each.code for each in report.findings]


@pytest.mark.parametrize("how", ["ended", "stopped"])
def test_a_word_of_a_key_in_force_beside_it_counts(attacked: AttackedTeam, how: str) -> None:
    """The other control: one word that counts is what every reader asks for."""
    roster = _approved_once(attacked)
    if how == "ended":
        end(attacked.world, "ann")
    else:
        expire(attacked.world, "ann", STOPPED)
    attacked.append(_stolen_handoff(attacked, "ann", "bob", roster=roster))

    assert attacked.fresh("spare").load().state == {"n": 2}


def test_a_handoff_whose_approvers_end_meanwhile_is_no_success(attacked: AttackedTeam) -> None:
    """Its writer is told, since nobody will believe the entry that is in the store."""
    attacked.thread().save({"n": 1}, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        attacked.thread("operator").handoff(to="spare", reason="gone")
    assert isinstance(needs.value.request, Request)
    attacked.approve(needs.value.request)
    operator = attacked.store("operator")
    operator.storage.appending.before = lambda: end(attacked.world, "ann", "bob")
    with pytest.raises(NotTrusted, match="found them ended before it was written"):
        operator.thread("t").handoff(to="spare", reason="gone")

    assert attacked.ending(lambda: attacked.fresh("spare").load()) is NotTrusted


def test_the_same_word_counted_before_the_key_ended(attacked: AttackedTeam) -> None:
    """The control: with a key in force every reader believes such a handoff."""
    roster = _approved_once(attacked)
    attacked.append(_stolen_handoff(attacked, "ann", roster=roster))

    assert attacked.fresh("spare").load().state == {"n": 2}


def test_what_was_handed_off_before_a_key_ended_stays_so(attacked: AttackedTeam) -> None:
    """Also where the word was relayed, and for whoever has not seen the thread yet."""
    attacked.thread().save({"n": 1}, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        attacked.thread("operator").handoff(to="spare", reason="gone")
    assert isinstance(needs.value.request, Request)
    for who in ("ann", "bob"):
        word = attest(key(who), needs.value.request.id, Verdict.APPROVE, "fine")
        attacked.store("officer").relay(word)
    attacked.fresh("operator").handoff(to="spare", reason="gone")
    ended = end(attacked.world, "ann", "bob")

    assert (ended.unverified, ended.beyond) == ((), ())
    assert attacked.fresh("spare").load().state == {"n": 1}
    attacked.fresh("spare").save({"n": 2}, world=READ)
    attacked.sound()
    data = b"".join(attacked.world.open("operator").export())
    assert api.verify_bundle(data, attacked.world.pin).ok


def test_another_history_with_a_revoked_approvers_word_is_refused(attacked: AttackedTeam) -> None:
    """A genuine handoff with it lies further on: a reader who has seen less is not led astray."""
    attacked.waiting()
    roster = attacked.store().core.renewed_trust().roster.seq
    seen = dict(attacked.rows())
    attacked.fresh().save({"n": 3}, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        attacked.fresh("operator").handoff(to="spare", reason="gone")
    assert isinstance(needs.value.request, Request)
    for who in ("ann", "bob"):
        word = attest(key(who), needs.value.request.id, Verdict.APPROVE, "fine")
        attacked.store("officer").relay(word)
    attacked.fresh("operator").handoff(to="spare", reason="gone")
    end(attacked.world, "ann")
    attacked.sound()
    attacked.editor.put_rows(attacked.world.thread_id("t"), seen)
    attacked.append(_stolen_handoff(attacked, "ann", roster=roster))
    follower = Follower(
        Place(attacked.world.pin.store.raw.hex(), "default", attacked.world.thread_id("t").hex()),
        attacked.world.open("operator").core.renewed_trust(),
    )

    def followed() -> None:
        for _, row in sorted(attacked.rows().items()):
            follower.take(row.header, row.seals, row.body)
        follower.finish()

    assert attacked.ending(followed) in {RolledBack, Forked, NotTrusted}


def test_a_resume_on_a_revoked_approvers_word_is_found(attacked: AttackedTeam) -> None:
    """The worker's own key may write it; the audit does not take the word for an approval."""
    request = attacked.waiting("bob")
    roster = attacked.store().core.renewed_trust().roster.seq
    end(attacked.world, "ann")
    word = attest(key("ann"), request.id, Verdict.APPROVE, "late")
    body = VerdictBody(salt=attacked.salt, attestation=word)
    attacked.append(attacked.forged(Kind.APPROVAL, body, "worker", roster=roster))
    spending = ResumeBody(
        salt=attacked.salt,
        owner="worker",
        basis=attacked.find(Kind.CHECKPOINT),
        checkpoint=request.statement.checkpoint,
        release=request.statement.release,
        released=attacked.find(Kind.CHECKPOINT),
        world=request.statement.world_to,
        leaves=SHELL,
        policy=attacked.digest,
        rules=("tools",),
        request=request.id,
        attestations=tuple(
            each.attestation for kind, each in attacked.entries() if kind == "approval"
        ),
    )
    attacked.append(attacked.forged(Kind.RESUME, spending, "worker", roster=roster))
    report = attacked.world.open(None, read_only=True).verify()

    assert "needed 2 approvals and had 1" in report.findings[0].message
