# SPDX-License-Identifier: Apache-2.0
"""Approvals that people never gave, or gave to something else, are not spent."""

from functools import partial
from typing import Any

import msgspec
import pytest

from sealpoint.errors import (
    Forged,
    Misplaced,
    NeedsApproval,
    NoRight,
    ResumeRefused,
    RolledBack,
    SealpointError,
    Tampered,
    UnknownRequest,
)
from sealpoint.gate import Request
from sealpoint.ledger import Kind, RequestBody, VerdictBody, encode_header, parse_header
from sealpoint.signing import Verdict, attest
from sealpoint.storage import Record
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import key
from tests.unit.gate.team import READ, SHELL, policy


def _word(
    attacked: AttackedTeam, who: str, request: Request, verdict: Verdict = Verdict.APPROVE
) -> VerdictBody:
    return VerdictBody(
        salt=attacked.salt, attestation=attest(key(who), request.id, verdict, "fine")
    )


# ---------------------------------------------------------------------- 30


def test_copies_of_one_approval_count_once(attacked: AttackedTeam) -> None:
    """Whoever may relay appends one person's genuine word again and again."""
    attacked.waiting("ann")
    with attacked.landing():
        genuine = attacked.body(attacked.find(Kind.APPROVAL))
        for _ in range(5):
            attacked.slip(Kind.APPROVAL, genuine, "officer")

    assert attacked.resumed() is NeedsApproval
    assert attacked.thread("operator").requests()[0].approved_by == ("ann",)


def test_a_copied_row_is_no_second_approval(attacked: AttackedTeam) -> None:
    """The row itself, once more at the end, by somebody without a key."""
    attacked.waiting("ann")
    with attacked.landing():
        attacked.append(attacked.rows()[attacked.find(Kind.APPROVAL)])

    assert attacked.resumed() is Misplaced
    assert len(attacked.world.open("bob", gated=True).requests().failures) == 1


@pytest.mark.parametrize("who", ["bobby", "twin", "worker", "far", "spare", "nobody", "somebody"])
def test_words_of_those_who_do_not_count_are_not_counted(attacked: AttackedTeam, who: str) -> None:
    """The same person, the requester, no approver here, an unknown key."""
    request = attacked.waiting("bob")
    with attacked.landing():
        attacked.slip(Kind.APPROVAL, _word(attacked, who, request), "officer")

    assert attacked.resumed() is NeedsApproval
    (found,) = attacked.thread("operator").requests()
    assert (found.approved_by, len(found.ignored)) == (("bob",), 1)


def test_a_word_for_another_request_counts_for_none(attacked: AttackedTeam) -> None:
    """Moved to another thread, or with another digest in it."""
    attacked.thread(name="u").save(1, world=READ)
    other = attacked.ask(name="u")
    attacked.approve(other)
    request = attacked.waiting("ann")
    with attacked.landing():
        genuine = _word(attacked, "bob", other)
        attacked.slip(Kind.APPROVAL, genuine, "officer")
        renamed = msgspec.structs.replace(genuine.attestation, statement=request.id)
        attacked.slip(
            Kind.APPROVAL, VerdictBody(salt=attacked.salt, attestation=renamed), "officer"
        )

    assert attacked.resumed() is NeedsApproval
    assert attacked.thread("operator").requests()[0].approved_by == ("ann",)


# ---------------------------------------------------------------------- 31


def test_a_spent_grant_is_not_spent_again_from_a_copy(attacked: AttackedTeam) -> None:
    """The store is put back to where the grant was not spent yet."""
    attacked.waiting("ann", "bob")
    put_back = attacked.editor.copied()
    assert attacked.fresh().resume(world=SHELL).state == {"n": 2}
    attacked.world.close()
    with attacked.landing():
        attacked.world.close()
        put_back()

    assert attacked.resumed() is RolledBack


def test_a_spent_grant_is_not_spent_again_by_taking_the_resume_away(attacked: AttackedTeam) -> None:
    """Only the entry that spent it is deleted."""
    attacked.waiting("ann", "bob")
    attacked.fresh().resume(world=SHELL)
    with attacked.landing():
        attacked.truncate(attacked.find(Kind.RESUME))

    assert attacked.resumed() is RolledBack


def test_a_spent_request_put_after_the_resume_is_void(attacked: AttackedTeam) -> None:
    """Request and approvals are appended once more, by keys that may do so."""
    attacked.waiting("ann", "bob")
    attacked.fresh().resume(world=SHELL)
    with attacked.landing():
        for kind, signer in ((Kind.REQUEST, "worker"), (Kind.APPROVAL, "officer")):
            for seq, row in attacked.rows().items():
                if parse_header(row.header).kind is kind:
                    attacked.slip(kind, attacked.body(seq), signer)

    assert attacked.resumed() is NeedsApproval
    assert [kind for kind, body in attacked.entries() if kind == "resume" and body.request] == [
        "resume"
    ]


# ---------------------------------------------------------------------- 32


@pytest.mark.parametrize("what", ["answer", "world", "statement"])
def test_a_request_is_not_edited_after_it_was_approved(attacked: AttackedTeam, what: str) -> None:
    """42 becomes 99999 in what was approved, in place."""
    attacked.thread().save(1, world=READ, question="pay?")
    request = attacked.ask(answer={"pay": 42})
    attacked.approve(request)
    with attacked.landing():
        seq = attacked.find(Kind.REQUEST)
        row, body = attacked.rows()[seq], attacked.body(seq)
        changed = {
            "answer": {"answer": {"pay": 99999}},
            "world": {"world": READ},
            "statement": {"statement": msgspec.structs.replace(body.statement, reason="other")},
        }[what]
        edited = msgspec.json.encode(msgspec.structs.replace(body, **changed))
        attacked.put({seq: Record(row.header, row.seals, edited)})

    assert attacked.world.open("carl", gated=True).requests().requests == ()
    assert attacked.resumed(answer={"pay": 42}) is NeedsApproval
    assert attacked.resumed(answer={"pay": 99999}) is NeedsApproval
    assert not attacked.world.open(None, read_only=True).verify().ok


def test_what_was_not_approved_is_not_executed(attacked: AttackedTeam) -> None:
    """Another answer, another world, another checkpoint, with the store untouched."""
    attacked.thread().save(0, id="c0", world=READ)
    attacked.thread().save(1, id="c1", world=READ, question="pay?")
    attacked.approve(attacked.ask(answer={"pay": 42}))
    attacked.sound()

    assert attacked.resumed(answer={"pay": 99999}) is NeedsApproval
    assert attacked.resumed(answer={"pay": 42.0}) is NeedsApproval
    assert attacked.resumed(answer={"pay": 42}, ref="c0") is NeedsApproval
    assert attacked.resumed(answer={"pay": 42}, world=READ) is NeedsApproval
    assert attacked.fresh().resume(world=SHELL, answer={"pay": 42}).state == 1


@pytest.mark.parametrize("what", ["answer", "world", "no world", "no answer"])
def test_a_request_that_shows_another_thing_than_it_binds_is_none(
    attacked: AttackedTeam, what: str
) -> None:
    """A stolen writer's key asks for one thing and shows people a harmless one."""
    attacked.thread().save(1, world=READ, question="pay?")
    request = attacked.ask(answer={"pay": 99999})
    cases: dict[str, dict[str, Any]] = {
        "answer": {"answer": {"pay": 42}},
        "world": {"world": READ},
        "no world": {"world": None},
        "no answer": {"answer": None},
    }
    statement = msgspec.structs.replace(request.statement, nonce="ab" * 16)
    with attacked.landing():
        asked = RequestBody(
            salt=attacked.salt, statement=statement, answer={"pay": 99999}, world=SHELL
        )
        attacked.slip(Kind.REQUEST, msgspec.structs.replace(asked, **cases[what]), "worker")
    ann = attacked.world.open("ann", gated=True)

    assert [each.id for each in ann.requests().requests] == [request.id]
    assert (
        attacked.ending(lambda: ann.approve(statement.digest, reason="42 is fine"))
        is UnknownRequest
    )


def test_a_request_in_somebody_elses_name_is_none(attacked: AttackedTeam) -> None:
    """An approver who is also the requester names another as such."""
    attacked.pool("pods", "worker", "spare")
    request = attacked.waiting()
    statement = msgspec.structs.replace(request.statement, requester="spare")
    with attacked.landing():
        body = RequestBody(salt=attacked.salt, statement=statement, world=SHELL)
        attacked.slip(Kind.REQUEST, body, "worker")
        for who in ("twin", "ann"):
            word = attest(key(who), statement.digest, Verdict.APPROVE, "fine")
            attacked.slip(
                Kind.APPROVAL, VerdictBody(salt=attacked.salt, attestation=word), "officer"
            )

    assert attacked.resumed("spare") is NeedsApproval
    assert statement.digest not in {each.id for each in attacked.thread("operator").requests()}


# ---------------------------------------------------------------------- 33


def test_approvals_that_come_after_the_thread_moved_on_are_stale(attacked: AttackedTeam) -> None:
    """Genuine words on what was there before, appended behind a later checkpoint."""
    request = attacked.waiting("ann")
    attacked.thread().save({"n": 3}, world=READ)
    with attacked.landing():
        attacked.slip(Kind.APPROVAL, _word(attacked, "bob", request), "officer")

    assert attacked.resumed() is NeedsApproval
    assert attacked.newest(Kind.REQUEST).statement.digest != request.id


def test_a_checkpoint_is_not_taken_away_to_make_an_approval_fit_again(
    attacked: AttackedTeam,
) -> None:
    """What moved on is deleted, and the approved state is the newest again."""
    attacked.waiting("ann", "bob")
    attacked.thread().save({"n": 3}, world=READ)
    with attacked.landing():
        attacked.truncate(attacked.find(Kind.CHECKPOINT))

    assert attacked.resumed() is RolledBack


def test_an_approval_under_an_earlier_policy_is_void(attacked: AttackedTeam) -> None:
    """And neither the policy's bytes nor its roster can be put back."""
    attacked.apply(policy("weak", needed=1))
    attacked.waiting("ann")
    put_back = attacked.editor.copied()
    attacked.apply(policy("strict", needed=2))
    assert attacked.resumed() is NeedsApproval
    with attacked.landing():
        attacked.world.close()
        put_back()

    assert attacked.ending(lambda: attacked.world.open("worker", gated=True)) is RolledBack


# ---------------------------------------------------------------------- 34


def test_who_asks_cannot_approve_with_any_identity(attacked: AttackedTeam) -> None:
    """By the library, and by an entry that was slipped in."""
    request = attacked.waiting("ann")
    attacked.sound()
    for who in ("worker", "twin"):
        approve = partial(attacked.world.open(who, gated=True).approve, request.id, reason="mine")
        assert attacked.ending(approve) is NoRight
    with attacked.landing():
        attacked.slip(Kind.APPROVAL, _word(attacked, "twin", request), "twin")

    assert attacked.resumed() is NeedsApproval


# ---------------------------------------------------------------------- 35


def test_a_denial_cannot_be_taken_away(attacked: AttackedTeam) -> None:
    """Its row is deleted, or hollowed out."""
    request = attacked.waiting("ann", "bob")
    attacked.store("carl").deny(request.id, reason="no")
    seq = attacked.find(Kind.DENIAL)
    row = attacked.rows()[seq]
    with attacked.landing():
        attacked.put({seq: None})
    assert attacked.resumed() is RolledBack
    attacked.put({seq: Record(row.header, row.seals, None)})
    assert attacked.resumed() is ResumeRefused
    assert not attacked.world.open(None, read_only=True).verify().ok
    attacked.put({seq: row})

    assert attacked.resumed() is ResumeRefused
    attacked.sound()


def test_a_denial_cannot_be_turned_round(attacked: AttackedTeam) -> None:
    """In its body, in its header, or in both."""
    request = attacked.waiting("ann")
    attacked.store("carl").deny(request.id, reason="no")
    seq = attacked.find(Kind.DENIAL)
    row = attacked.rows()[seq]
    body = (row.body or b"").replace(b'"deny"', b'"approve"')
    header = encode_header(msgspec.structs.replace(parse_header(row.header), kind=Kind.APPROVAL))
    found: list[type[SealpointError]] = []
    for record in (Record(header, row.seals, row.body), Record(header, row.seals, body)):
        attacked.put({seq: row})
        with attacked.landing():
            attacked.put({seq: record})
        found.append(attacked.resumed())

    assert all(issubclass(error, Tampered) for error in found), found
    attacked.put({seq: Record(row.header, row.seals, body)})
    assert attacked.resumed() is ResumeRefused


def test_a_denial_is_not_outvoted_by_words_slipped_in(attacked: AttackedTeam) -> None:
    """Later approvals, even of the one who denied, change nothing."""
    request = attacked.waiting("ann", "bob")
    attacked.store("carl").deny(request.id, reason="no")
    with attacked.landing():
        attacked.slip(Kind.APPROVAL, _word(attacked, "carl", request), "officer")

    assert attacked.resumed() is ResumeRefused


def test_an_approval_cannot_be_made_out_of_other_signed_bytes(attacked: AttackedTeam) -> None:
    """A seal of an approver's key on an entry proves no approval."""
    request = attacked.waiting("ann", "bob")
    seal = attacked.rows()[attacked.find(Kind.APPROVAL)].seals
    proof = msgspec.json.decode(seal)[0][1]
    attacked.thread().save({"n": 3}, world=READ)
    second = attacked.ask()
    attacked.approve(second, "ann")
    with attacked.landing():
        word = msgspec.structs.replace(
            attest(key("bob"), second.id, Verdict.APPROVE, "fine"), proof=proof
        )
        attacked.slip(Kind.APPROVAL, VerdictBody(salt=attacked.salt, attestation=word), "officer")

    assert attacked.resumed() is NeedsApproval
    assert second.id != request.id
    assert attacked.ending(lambda: attacked.store("carl").relay(word)) is Forged
