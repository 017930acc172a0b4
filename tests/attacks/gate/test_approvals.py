# SPDX-License-Identifier: Apache-2.0
"""Approvals that people never gave, or gave to something else, are not spent."""

from functools import partial
from typing import Any

import msgspec
import pytest

from sealpoint.errors import (
    Edited,
    Forged,
    Misplaced,
    NeedsApproval,
    NotTrusted,
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
from tests.attacks.gate.raid import Raid
from tests.ledgers import key
from tests.unit.gate.team import READ, SHELL, policy


def _word(
    raid: Raid, who: str, request: Request, verdict: Verdict = Verdict.APPROVE
) -> VerdictBody:
    return VerdictBody(salt=raid.salt, attestation=attest(key(who), request.id, verdict, "fine"))


# ---------------------------------------------------------------------- 30


def test_copies_of_one_approval_count_once(raid: Raid) -> None:
    """Whoever may relay appends one person's genuine word again and again."""
    raid.waiting("ann")
    with raid.landing():
        genuine = raid.body(raid.find(Kind.APPROVAL))
        for _ in range(5):
            raid.slip(Kind.APPROVAL, genuine, "officer")

    assert raid.resumed() is NeedsApproval
    assert raid.thread("operator").requests()[0].approved_by == ("ann",)


def test_a_copied_row_is_no_second_approval(raid: Raid) -> None:
    """The row itself, once more at the end, by somebody without a key."""
    raid.waiting("ann")
    with raid.landing():
        raid.append(raid.rows()[raid.find(Kind.APPROVAL)])

    assert raid.resumed() is Misplaced
    assert len(raid.world.open("bob", gated=True).requests().failures) == 1


@pytest.mark.parametrize("who", ["bobby", "twin", "worker", "far", "spare", "nobody", "somebody"])
def test_words_of_those_who_do_not_count_are_not_counted(raid: Raid, who: str) -> None:
    """The same person, the requester, no approver here, an unknown key."""
    request = raid.waiting("bob")
    with raid.landing():
        raid.slip(Kind.APPROVAL, _word(raid, who, request), "officer")

    assert raid.resumed() is NeedsApproval
    (found,) = raid.thread("operator").requests()
    assert (found.approved_by, len(found.ignored)) == (("bob",), 1)


def test_a_word_for_another_request_counts_for_none(raid: Raid) -> None:
    """Moved to another thread, or with another digest in it."""
    raid.thread(name="u").save(1, world=READ)
    other = raid.ask(name="u")
    raid.approve(other)
    request = raid.waiting("ann")
    with raid.landing():
        genuine = _word(raid, "bob", other)
        raid.slip(Kind.APPROVAL, genuine, "officer")
        renamed = msgspec.structs.replace(genuine.attestation, statement=request.id)
        raid.slip(Kind.APPROVAL, VerdictBody(salt=raid.salt, attestation=renamed), "officer")

    assert raid.resumed() is NeedsApproval
    assert raid.thread("operator").requests()[0].approved_by == ("ann",)


# ---------------------------------------------------------------------- 31


def test_a_spent_grant_is_not_spent_again_from_a_copy(raid: Raid) -> None:
    """The store is put back to where the grant was not spent yet."""
    raid.waiting("ann", "bob")
    put_back = raid.burglar.copied()
    assert raid.fresh().resume(world=SHELL).state == {"n": 2}
    raid.world.close()
    with raid.landing():
        raid.world.close()
        put_back()

    assert raid.resumed() is RolledBack


def test_a_spent_grant_is_not_spent_again_by_taking_the_resume_away(raid: Raid) -> None:
    """Only the entry that spent it is deleted."""
    raid.waiting("ann", "bob")
    raid.fresh().resume(world=SHELL)
    with raid.landing():
        raid.truncate(raid.find(Kind.RESUME))

    assert raid.resumed() is RolledBack


def test_a_spent_request_put_after_the_resume_is_void(raid: Raid) -> None:
    """Request and approvals are appended once more, by keys that may do so."""
    raid.waiting("ann", "bob")
    raid.fresh().resume(world=SHELL)
    with raid.landing():
        for kind, signer in ((Kind.REQUEST, "worker"), (Kind.APPROVAL, "officer")):
            for seq, row in raid.rows().items():
                if parse_header(row.header).kind is kind:
                    raid.slip(kind, raid.body(seq), signer)

    assert raid.resumed() is NeedsApproval
    assert [kind for kind, body in raid.entries() if kind == "resume" and body.request] == [
        "resume"
    ]


# ---------------------------------------------------------------------- 32


@pytest.mark.parametrize("what", ["answer", "world", "statement"])
def test_a_request_is_not_edited_after_it_was_approved(raid: Raid, what: str) -> None:
    """42 becomes 99999 in what was approved, in place."""
    raid.thread().save(1, world=READ, question="pay?")
    request = raid.ask(answer={"pay": 42})
    raid.approve(request)
    with raid.landing():
        seq = raid.find(Kind.REQUEST)
        row, body = raid.rows()[seq], raid.body(seq)
        changed = {
            "answer": {"answer": {"pay": 99999}},
            "world": {"world": READ},
            "statement": {"statement": msgspec.structs.replace(body.statement, reason="other")},
        }[what]
        edited = msgspec.json.encode(msgspec.structs.replace(body, **changed))
        raid.put({seq: Record(row.header, row.seals, edited)})

    assert raid.resumed(answer={"pay": 42}) is Edited
    assert raid.resumed(answer={"pay": 99999}) is Edited
    assert raid.world.open("carl", gated=True).requests().requests == ()


def test_what_was_not_approved_is_not_executed(raid: Raid) -> None:
    """Another answer, another world, another checkpoint, with the store untouched."""
    raid.thread().save(0, id="c0", world=READ)
    raid.thread().save(1, id="c1", world=READ, question="pay?")
    raid.approve(raid.ask(answer={"pay": 42}))
    raid.sound()

    assert raid.resumed(answer={"pay": 99999}) is NeedsApproval
    assert raid.resumed(answer={"pay": 42.0}) is NeedsApproval
    assert raid.resumed(answer={"pay": 42}, ref="c0") is NeedsApproval
    assert raid.resumed(answer={"pay": 42}, world=READ) is NeedsApproval
    assert raid.fresh().resume(world=SHELL, answer={"pay": 42}).state == 1


@pytest.mark.parametrize("what", ["answer", "world", "no world", "no answer"])
def test_a_request_that_shows_another_thing_than_it_binds_is_none(raid: Raid, what: str) -> None:
    """A stolen writer's key asks for one thing and shows people a harmless one."""
    raid.thread().save(1, world=READ, question="pay?")
    request = raid.ask(answer={"pay": 99999})
    cases: dict[str, dict[str, Any]] = {
        "answer": {"answer": {"pay": 42}},
        "world": {"world": READ},
        "no world": {"world": None},
        "no answer": {"answer": None},
    }
    statement = msgspec.structs.replace(request.statement, nonce="ab" * 16)
    with raid.landing():
        asked = RequestBody(salt=raid.salt, statement=statement, answer={"pay": 99999}, world=SHELL)
        raid.slip(Kind.REQUEST, msgspec.structs.replace(asked, **cases[what]), "worker")
    ann = raid.world.open("ann", gated=True)

    assert [each.id for each in ann.requests().requests] == [request.id]
    assert raid.ending(lambda: ann.approve(statement.digest, reason="42 is fine")) is UnknownRequest


def test_a_request_in_somebody_elses_name_is_none(raid: Raid) -> None:
    """An approver who is also the requester names another as such."""
    raid.pool("pods", "worker", "spare")
    request = raid.waiting()
    statement = msgspec.structs.replace(request.statement, requester="spare")
    with raid.landing():
        body = RequestBody(salt=raid.salt, statement=statement, world=SHELL)
        raid.slip(Kind.REQUEST, body, "worker")
        for who in ("twin", "ann"):
            word = attest(key(who), statement.digest, Verdict.APPROVE, "fine")
            raid.slip(Kind.APPROVAL, VerdictBody(salt=raid.salt, attestation=word), "officer")

    assert raid.resumed("spare") is NeedsApproval
    assert statement.digest not in {each.id for each in raid.thread("operator").requests()}


# ---------------------------------------------------------------------- 33


def test_approvals_that_come_after_the_thread_moved_on_are_stale(raid: Raid) -> None:
    """Genuine words on what was there before, appended behind a later checkpoint."""
    request = raid.waiting("ann")
    raid.thread().save({"n": 3}, world=READ)
    with raid.landing():
        raid.slip(Kind.APPROVAL, _word(raid, "bob", request), "officer")

    assert raid.resumed() is NeedsApproval
    assert raid.newest(Kind.REQUEST).statement.digest != request.id


def test_a_checkpoint_is_not_taken_away_to_make_an_approval_fit_again(raid: Raid) -> None:
    """What moved on is deleted, and the approved state is the newest again."""
    raid.waiting("ann", "bob")
    raid.thread().save({"n": 3}, world=READ)
    with raid.landing():
        raid.truncate(raid.find(Kind.CHECKPOINT))

    assert raid.resumed() is RolledBack


def test_an_approval_under_an_earlier_policy_is_void(raid: Raid) -> None:
    """And neither the policy's bytes nor its roster can be put back."""
    raid.apply(policy("weak", needed=1))
    raid.waiting("ann")
    put_back = raid.burglar.copied()
    raid.apply(policy("strict", needed=2))
    assert raid.resumed() is NeedsApproval
    with raid.landing():
        raid.world.close()
        put_back()

    assert raid.ending(lambda: raid.world.open("worker", gated=True)) is RolledBack


# ---------------------------------------------------------------------- 34


def test_who_asks_cannot_approve_with_any_identity(raid: Raid) -> None:
    """By the library, and by an entry that was slipped in."""
    request = raid.waiting("ann")
    raid.sound()
    for who in ("worker", "twin"):
        approve = partial(raid.world.open(who, gated=True).approve, request.id, reason="mine")
        assert raid.ending(approve) is NotTrusted
    with raid.landing():
        raid.slip(Kind.APPROVAL, _word(raid, "twin", request), "twin")

    assert raid.resumed() is NeedsApproval


# ---------------------------------------------------------------------- 35


def test_a_denial_cannot_be_taken_away(raid: Raid) -> None:
    """Its row is deleted, or hollowed out."""
    request = raid.waiting("ann", "bob")
    raid.store("carl").deny(request.id, reason="no")
    seq = raid.find(Kind.DENIAL)
    row = raid.rows()[seq]
    with raid.landing():
        raid.put({seq: None})
    assert raid.resumed() is RolledBack
    raid.put({seq: Record(row.header, row.seals, None)})
    assert issubclass(raid.resumed(), Tampered)
    raid.put({seq: row})

    assert raid.resumed() is ResumeRefused
    raid.sound()


def test_a_denial_cannot_be_turned_round(raid: Raid) -> None:
    """In its body, in its header, or in both."""
    request = raid.waiting("ann")
    raid.store("carl").deny(request.id, reason="no")
    seq = raid.find(Kind.DENIAL)
    row = raid.rows()[seq]
    body = (row.body or b"").replace(b'"deny"', b'"approve"')
    header = encode_header(msgspec.structs.replace(parse_header(row.header), kind=Kind.APPROVAL))
    found: list[type[SealpointError]] = []
    for record in (
        Record(row.header, row.seals, body),
        Record(header, row.seals, row.body),
        Record(header, row.seals, body),
    ):
        raid.put({seq: row})
        with raid.landing():
            raid.put({seq: record})
        found.append(raid.resumed())

    assert all(issubclass(error, Tampered) for error in found), found


def test_a_denial_is_not_outvoted_by_words_slipped_in(raid: Raid) -> None:
    """Later approvals, even of the one who denied, change nothing."""
    request = raid.waiting("ann", "bob")
    raid.store("carl").deny(request.id, reason="no")
    with raid.landing():
        raid.slip(Kind.APPROVAL, _word(raid, "carl", request), "officer")

    assert raid.resumed() is ResumeRefused


def test_an_approval_cannot_be_made_out_of_other_signed_bytes(raid: Raid) -> None:
    """A seal of an approver's key on an entry proves no approval."""
    request = raid.waiting("ann", "bob")
    seal = raid.rows()[raid.find(Kind.APPROVAL)].seals
    proof = msgspec.json.decode(seal)[0][1]
    raid.thread().save({"n": 3}, world=READ)
    second = raid.ask()
    raid.approve(second, "ann")
    with raid.landing():
        word = msgspec.structs.replace(
            attest(key("bob"), second.id, Verdict.APPROVE, "fine"), proof=proof
        )
        raid.slip(Kind.APPROVAL, VerdictBody(salt=raid.salt, attestation=word), "officer")

    assert raid.resumed() is NeedsApproval
    assert second.id != request.id
    assert raid.ending(lambda: raid.store("carl").relay(word)) is Forged
