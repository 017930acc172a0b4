# SPDX-License-Identifier: Apache-2.0
"""A person signs the answer to a thread's question; one run takes it."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.errors import (
    Forged,
    Moved,
    NeedsApproval,
    NoRight,
    NotTrusted,
    RequestClosed,
    SealpointError,
    UsageError,
)
from sealpoint.gate import Request, SignedAnswer, Status
from sealpoint.ledger import Kind, RequestBody
from sealpoint.signing import Attestation, Statement, Verdict, attest
from tests.deployment import Deployment
from tests.ledgers import key
from tests.unit.gate.team import READ, Team, policy

_QUESTION = {"pay": "42 EUR to ACME?"}
_RECORDED = policy(answer="record")
_FIRST, _SECOND = "first", "second"


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """A worker's thread that waits for an answer, under a policy that only records answers."""
    made = Team(Deployment(tmp_path), _RECORDED)
    made.thread().save({"n": 1}, question=_QUESTION, world=READ)
    return made


def _signed(team: Team, person: str, answer: Any = "yes", by: str | None = None) -> SignedAnswer:
    """The answer of a person, which an operator's process records."""
    thread = team.thread("operator")
    statement = thread.prepare_answer(answer, person=person, reason="asked them")
    word = attest(key(by or person), statement.digest, Verdict.APPROVE, "asked them")
    return thread.record_answer(statement, answer, word)


def test_the_resume_names_the_person_who_signed_the_answer(team: Team) -> None:
    """The person is proven, whoever the worker says that it acts for."""
    given = _signed(team, "ann")
    assert team.thread().signed_answer == given
    assert (given.person, given.answer, given.deliberate) == ("ann", "yes", "asked them")
    team.thread().resume(world=READ, answer="yes", actor="bot")
    body = team.newest(Kind.RESUME)
    assert (body.actor, body.answered) == ("ann", given.id)
    assert team.thread().signed_answer is None, "it has been taken"
    team.check_sound()


def test_another_answer_is_not_that_of_the_person(team: Team) -> None:
    """A run that is given something else is recorded with what its worker claims."""
    _signed(team, "ann")
    team.thread().resume(world=READ, answer="no", actor="bot")
    body = team.newest(Kind.RESUME)
    assert (body.actor, body.answered) == ("bot", None)
    team.check_sound()


def test_an_answer_is_no_request_for_approval(team: Team) -> None:
    """It is in a list of its own, and nobody is asked about it."""
    given = _signed(team, "ann")
    found = team.store("operator").requests()
    assert (found.requests, [each.id for each in found.answers]) == ((), [given.id])
    assert team.thread().requests() == ()
    assert team.store("operator").request(given.id).status is Status.APPROVED


def test_nobody_answers_after_another_person(team: Team) -> None:
    """The first answer stands, and nothing is written."""
    given = _signed(team, "ann")
    before = team.everything()
    with pytest.raises(Moved, match="'ann' has answered"):
        _signed(team, "bob", "no")
    assert team.everything() == before
    assert team.thread().signed_answer == given


def test_who_answered_may_withdraw_it_and_answer_again(team: Team) -> None:
    """A denial by the same person frees the question."""
    given = _signed(team, "ann")
    team.store("ann").deny(given.id, reason="misread")
    assert team.thread().signed_answer is None
    assert _signed(team, "bob", "no").person == "bob"
    team.check_sound()


def test_an_operator_answers_with_the_own_key(team: Team) -> None:
    """Without a reason it is not deliberate."""
    given = team.thread("operator").answer("yes")
    assert (given.identity, given.deliberate) == ("operator", None)


@pytest.mark.parametrize("who", ["spare", "officer", "far"])
def test_a_person_without_the_role_does_not_answer(team: Team, who: str) -> None:
    """A writer, a privacy officer, and an approver of another namespace."""
    before = team.everything()
    with pytest.raises(NotTrusted):
        _signed(team, who)
    assert team.everything() == before


@pytest.mark.parametrize("by", ["bob", "operator", "worker"])
def test_nobody_signs_the_answer_of_another(team: Team, by: str) -> None:
    """Neither another approver, nor the operator, nor the worker."""
    before = team.everything()
    with pytest.raises(NotTrusted):
        _signed(team, "ann", by=by)
    assert team.everything() == before


def test_what_was_signed_is_what_is_recorded(team: Team) -> None:
    """Another answer, person, statement, verdict or signature is refused."""
    thread = team.thread("operator")
    statement = thread.prepare_answer("yes", person="ann")
    word = attest(key("ann"), statement.digest, Verdict.APPROVE, statement.reason)
    denial = attest(key("ann"), statement.digest, Verdict.DENY, statement.reason)
    for told, answer, given in (
        (statement, "no", word),
        (replace(statement, actor="bob"), "yes", word),
        (replace(statement, nonce="0" * 32), "yes", word),
        (statement, "yes", denial),
        (statement, "yes", Attestation(**{**_fields(word), "proof": "00" * 64})),
    ):
        with pytest.raises((NotTrusted, Forged)):
            thread.record_answer(told, answer, given)
    assert thread.record_answer(statement, "yes", word).person == "ann"
    assert thread.record_answer(statement, "yes", word).person == "ann", "the same again"
    assert team.kinds().count("request") == 1


def _fields(word: Attestation) -> dict[str, Any]:
    return {name: getattr(word, name) for name in word.__struct_fields__}


def test_an_answer_to_what_has_gone_on_is_refused(team: Team) -> None:
    """The question was taken by another run while the person read it."""
    thread = team.thread("operator")
    statement = thread.prepare_answer("yes", person="ann")
    word = attest(key("ann"), statement.digest, Verdict.APPROVE, statement.reason)
    team.thread().resume(world=READ, answer="no")
    with pytest.raises(Moved):
        thread.record_answer(statement, "yes", word)
    with pytest.raises(NotTrusted):
        thread.record_answer(Statement.parse(statement.encode()), "later", word)


def test_a_thread_that_asks_nothing_takes_no_answer(team: Team) -> None:
    """Nor is null an answer."""
    team.thread(name="other").save({"n": 1}, world=READ)
    with pytest.raises(UsageError, match="does not wait"):
        team.thread("operator", "other").answer("yes")
    with pytest.raises(UsageError, match="null"):
        team.thread("operator").answer(None)


def test_an_answer_expires(team: Team) -> None:
    """After the time of the policy no run takes it."""
    given = _signed(team, "ann")
    team.later(hours=2)
    assert team.thread().signed_answer is None
    with pytest.raises(RequestClosed):
        team.store("ann").deny(given.id, reason="late")


def test_who_answered_does_not_approve_it(tmp_path: Path) -> None:
    """Where answers need approvals, the person who answered is the one who asks."""
    team = Team(Deployment(tmp_path), policy(answer="approve 1"))
    team.thread().save({"n": 1}, question=_QUESTION, world=READ)
    _signed(team, "ann")
    with pytest.raises(NeedsApproval) as needs:
        team.thread().resume(world=READ, answer="yes", actor="bot")
    request = needs.value.request
    assert isinstance(request, Request)
    assert request.statement.actor == "ann"
    with pytest.raises(NoRight):
        team.store("ann").approve(request.id, reason="mine")
    assert team.thread().signed_answer is not None, "asking does not take it"
    team.store("bob").approve(request.id, reason="looked")
    team.thread().resume(world=READ, answer="yes")
    assert team.newest(Kind.RESUME).actor == "ann"
    team.check_sound()


def test_who_answered_does_not_approve_its_repetition(tmp_path: Path) -> None:
    """The run died. The worker asks again for the person who answered."""
    team = Team(Deployment(tmp_path), policy(answer="approve 1", unknown_outcome="approve 1"))
    team.thread().save({"n": 1}, question=_QUESTION, world=READ)
    given = _signed(team, "ann")
    worker = team.fresh().adapter
    with pytest.raises(NeedsApproval) as first:
        worker.begin(world=READ, answer="yes", token=_FIRST, takes=given.id)
    team.store("bob").approve(first.value.request.id, reason="fine")
    worker.begin(world=READ, answer="yes", token=_FIRST, takes=first.value.request.id)
    worker.end(_FIRST, came_to_end=False)
    other = team.fresh().adapter
    died = other.interrupted()
    assert died is not None
    with pytest.raises(NeedsApproval) as again:
        other.begin(world=READ, answer="yes", actor="bot", token=_SECOND, takes=died.session)
    request = team.store("ann").request(again.value.request.id)
    assert request.statement.actor == "ann"
    with pytest.raises(NoRight):
        team.store("ann").approve(request.id, reason="mine")
    team.store("bob").approve(request.id, reason="fine")
    other.begin(world=READ, answer="yes", actor="bot", token=_SECOND, takes=request.id)
    assert team.newest(Kind.RESUME).actor == "ann"
    team.check_sound()


@pytest.mark.parametrize("approved", [False, True])
def test_who_answers_later_does_not_approve_what_was_asked_before(
    tmp_path: Path, *, approved: bool
) -> None:
    """The worker asked first, for somebody unknown; then ann signs the same answer."""
    team = Team(Deployment(tmp_path), policy(answer="approve 1"))
    team.thread().save({"n": 1}, question=_QUESTION, world=READ)
    before = team.ask(answer="yes", world=READ)
    if approved:
        team.store("ann").approve(before.id, reason="fine")
    _signed(team, "ann")
    now = team.ask(answer="yes", world=READ)
    assert (before.statement.actor, now.statement.actor) == (None, "ann")
    with pytest.raises(NoRight):
        team.store("ann").approve(now.id, reason="mine")
    if not approved:
        team.store("ann").approve(before.id, reason="fine")
    with pytest.raises(NeedsApproval):
        team.thread().resume(world=READ, answer="yes")
    team.store("bob").approve(now.id, reason="fine")
    team.thread().resume(world=READ, answer="yes")
    assert team.newest(Kind.RESUME).request == now.id
    team.check_sound()


def test_who_answers_after_another_approves_nothing(tmp_path: Path) -> None:
    """The request in the name of ann, who has withdrawn, is not that of bob."""
    team = Team(Deployment(tmp_path), policy(answer="approve 1"))
    team.thread().save({"n": 1}, question=_QUESTION, world=READ)
    given = _signed(team, "ann")
    first = team.ask(answer="yes", world=READ)
    team.store("ann").deny(given.id, reason="let bob")
    _signed(team, "bob")
    second = team.ask(answer="yes", world=READ)
    assert [each.statement.actor for each in (first, second)] == ["ann", "bob"]
    with pytest.raises(NoRight):
        team.store("bob").approve(second.id, reason="mine")


@pytest.mark.parametrize("approved", [False, True])
def test_what_was_asked_for_a_withdrawn_answer_has_ended(tmp_path: Path, *, approved: bool) -> None:
    """Whether it was approved or not, and whether another answer is in force."""
    team = Team(Deployment(tmp_path), policy(answer="approve 1"))
    team.thread().save({"n": 1}, question=_QUESTION, world=READ)
    given = _signed(team, "ann")
    request = team.ask(answer="yes", world=READ)
    if approved:
        team.store("bob").approve(request.id, reason="fine")
    team.store("ann").deny(given.id, reason="misread")
    with pytest.raises(RequestClosed, match="was withdrawn"):
        team.store("carol").approve(request.id, reason="late")
    (ended,) = team.store("operator").requests().requests
    assert ended.status is Status.EXPIRED
    with pytest.raises(Moved):
        team.thread().adapter.begin(world=READ, answer="yes", token=_FIRST, takes=request.id)
    _signed(team, "ann")
    again = team.ask(answer="yes", world=READ)
    assert (again.id != request.id, again.status) == (True, Status.OPEN)
    team.check_sound()


def test_only_a_signed_answer_is_withdrawn_and_once(tmp_path: Path) -> None:
    """Nobody ends what is asked for an answer by denying another one, or an old one again."""
    team = Team(Deployment(tmp_path), policy(answer="approve 1"))
    team.thread().save({"n": 1}, question=_QUESTION, world=READ)
    thread = team.thread("operator")
    unsigned = thread.prepare_answer("yes", person="ann", reason="x")
    body = RequestBody(salt="0" * 32, statement=unsigned, reasons=(), answer="yes")
    assert thread._answers._write(body) is not None
    first = _signed(team, "ann")
    team.store("ann").deny(first.id, reason="misread")
    _signed(team, "ann")
    request = team.ask(answer="yes", world=READ)
    team.store("operator").deny(unsigned.digest, reason="mine")
    for person in ("ann", "bob"):
        word = attest(key(person), first.id, Verdict.DENY, "again")
        with suppress(SealpointError):
            team.store("operator").relay(word)
    (now,) = team.store("operator").requests().requests
    assert (now.id, now.status) == (request.id, Status.OPEN)
    team.check_sound()


def test_an_approved_request_is_not_taken_against_a_signed_answer(tmp_path: Path) -> None:
    """People approved what a worker asked for; before it ran, ann has answered otherwise."""
    team = Team(Deployment(tmp_path), policy(answer="approve 1"))
    team.thread().save({"n": 1}, question=_QUESTION, world=READ)
    request = team.ask(answer="yes", world=READ)
    team.store("bob").approve(request.id, reason="fine")
    _signed(team, "ann", "no")
    with pytest.raises(Moved):
        team.thread().adapter.begin(world=READ, answer="yes", token=_FIRST, takes=request.id)


def test_an_answer_whose_signature_comes_later_replaces_none(team: Team) -> None:
    """A member with other code has written it before, and brings the signature afterwards."""
    thread = team.thread("operator")
    statement = thread.prepare_answer("mine", person="operator", reason="x")
    body = RequestBody(salt="0" * 32, statement=statement, reasons=(), answer="mine")
    assert thread._answers._write(body) is not None
    given = _signed(team, "bob", "no")
    team.store("operator").relay(attest(key("operator"), statement.digest, Verdict.APPROVE, "x"))
    assert team.thread().signed_answer == given


def test_two_workers_ask_for_one_approval(tmp_path: Path) -> None:
    """One reads the thread for its own check, and finds the request of the other."""
    team = Team(Deployment(tmp_path), policy(answer="approve 1"))
    team.thread().save({"n": 1}, question=_QUESTION, world=READ)
    given = _signed(team, "ann")
    one, two = team.fresh(), team.fresh()

    def would_run() -> bool:
        with suppress(NeedsApproval):
            one.adapter.begin(world=READ, answer="yes", token=_FIRST, takes=given.id)
        return two.question is not None

    with pytest.raises(NeedsApproval):
        two.adapter.begin(
            world=READ, answer="yes", token=_SECOND, takes=given.id, would_run=would_run
        )
    assert len(team.store("ann").requests().requests) == 1


def test_one_run_takes_an_answer(team: Team) -> None:
    """The second is refused, and writes nothing."""
    given = _signed(team, "ann")
    first = team.fresh().adapter
    second = team.fresh().adapter
    first.begin(world=READ, answer="yes", token=_FIRST, takes=given.id)
    first.end(_FIRST)
    before = team.everything()
    with pytest.raises(Moved, match="another run has taken"):
        second.begin(world=READ, answer="yes", token=_SECOND, takes=given.id)
    assert team.everything() == before


def test_a_withdrawn_answer_is_not_taken(team: Team) -> None:
    """A worker that has seen it before does not run with it."""
    given = _signed(team, "ann")
    team.store("ann").deny(given.id, reason="misread")
    with pytest.raises(Moved):
        team.thread().adapter.begin(world=READ, answer="yes", token=_SECOND, takes=given.id)


def test_an_answer_lets_nothing_pass_that_the_policy_stops(team: Team) -> None:
    """New tools need their own approval."""
    _signed(team, "ann")
    wider = {"tools": [{"name": "read"}, {"name": "pay"}]}
    with pytest.raises(NeedsApproval):
        team.thread().resume(world=wider, answer="yes")


def test_a_paused_thread_takes_an_answer_and_does_not_run(team: Team) -> None:
    """It runs when the pause has ended."""
    team.thread("operator").pause("look")
    _signed(team, "ann")
    with pytest.raises(SealpointError):
        team.thread().resume(world=READ, answer="yes")
    team.thread("operator").unpause("fine")
    team.thread().resume(world=READ, answer="yes")
    assert team.newest(Kind.RESUME).actor == "ann"


def test_of_two_answers_the_first_in_the_thread_counts(team: Team) -> None:
    """Two people have the form open: the first on record stands, whatever the clocks."""
    thread = team.thread("operator")
    told = {who: thread.prepare_answer(who, person=who) for who in ("ann", "bob")}
    words = {
        who: attest(key(who), each.digest, Verdict.APPROVE, each.reason)
        for who, each in told.items()
    }
    team.later(minutes=-1)
    thread.record_answer(told["bob"], "bob", words["bob"])
    team.later(minutes=2)
    with pytest.raises(Moved):
        thread.record_answer(told["ann"], "ann", words["ann"])
    given = team.thread().signed_answer
    assert given is not None
    assert given.person == "bob"
    assert [each.person for each in team.store("operator").requests().answers] == ["bob"]
