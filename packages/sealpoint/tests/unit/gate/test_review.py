# SPDX-License-Identifier: Apache-2.0
"""Judging again: what a gate allowed passes, and what a pod wrote past its gate is found."""

import dataclasses
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint import api
from sealpoint.audit import UNJUSTIFIED, Report
from sealpoint.audit._trail import UNREADABLE
from sealpoint.errors import NeedsApproval, Paused, RequestClosed, ResumeRefused, SealpointError
from sealpoint.gate import Request, Thread
from sealpoint.gate import _reviewed_checkpoints as log_module
from sealpoint.ledger import (
    Body,
    ExpiryBody,
    HandoffBody,
    Kind,
    Marks,
    PauseBody,
    RequestBody,
    ResumeBody,
    UnpauseBody,
    VerdictBody,
    carried_attestations,
    encode_body,
    encode_header,
    link_hash,
    parse_header,
    skip_seq,
)
from sealpoint.signing import Action, Attestation, Role, Verdict, attest
from sealpoint.storage import Record
from sealpoint.store import EntryDraft, Key, SessionStart, accept_restore, plan_restore
from sealpoint.world import World as SealedWorld
from tests.deployment import Deployment
from tests.ledgers import identity, key, seals
from tests.unit.gate.team import NARROW, READ, SHELL, Team, policy
from tests.unit.store.laned import added, put, results, saved


@pytest.fixture
def crew() -> Iterator[Team]:
    """A team whose store is in memory."""
    made = Deployment()
    yield Team(made)
    made.close()


def _digest(world: dict[str, Any]) -> str:
    return SealedWorld.from_dict(world).digest


def _verified(team: Team) -> Report:
    return team.world.open(None, read_only=True).verify()


def _found(team: Team) -> str:
    """What is not justified, in one text; nothing else may be found."""
    report = _verified(team)
    assert all(finding.code == UNJUSTIFIED for finding in report.findings), report.findings
    assert not any(finding.refuses for finding in report.findings)
    assert report.ok == (not report.findings)
    return "\n".join(finding.message for finding in report.findings)


def _resume_body(team: Team, handle: Thread, **fields: Any) -> ResumeBody:
    """What an honest gate would have written for an ordinary continuation, with some changes."""
    handle.load()
    checkpoint = fields.get("checkpoint", next(iter(handle.history())).entry)
    release = None if checkpoint is None else handle._reader.release_of(checkpoint)
    nothing = None if checkpoint is None else "cd" * 32
    world = fields.get("world", team.newest(Kind.CHECKPOINT).world)
    body = ResumeBody(
        salt="ab" * 32,
        owner="worker",
        basis=handle._state.chain.tip().basis[0],
        checkpoint=checkpoint,
        release=nothing if release is None else release.digest,
        released=None if release is None else release.seq,
        world=world,
        leaves=next((each for each in (READ, SHELL) if _digest(each) == world), None),
        policy=team.digest,
        attestations=_words(team, fields.get("request")),
    )
    return replace(body, **fields)


def _words(team: Team, request: str | None) -> tuple[Attestation, ...]:
    """Every word on a request that lies on the thread."""
    found = list[Attestation]()
    for _, record in team.store("operator").storage.inner.scan(team.world.thread_id("t"), 0):
        with suppress(SealpointError):  # there may be nonsense beside them
            found += carried_attestations(parse_header(record.header), record.body)
    return tuple(word for word in found if word.statement == request)


def _rogue(team: Team, who: str = "worker", **fields: Any) -> None:
    """Begin a session as a pod whose gate is other code, or none."""
    handle = team.fresh(who)
    assert (
        handle._gate.writer.open_session(
            SessionStart(_resume_body(team, handle, **fields), handle._state.core.trust())
        )
        is not None
    )


def _spend(team: Team, request: Any, **fields: Any) -> None:
    """Spend a request past the gate."""
    statement = request.statement
    given = {
        "request": request.id,
        "world": statement.world_to,
        "answer": statement.answer,
        "checkpoint": statement.checkpoint,
        "rules": ("tools",),
    }
    _rogue(team, statement.requester, **(given | fields))


def test_what_the_gate_allowed_is_justified(crew: Team) -> None:
    """Saves, approved resumes, an older checkpoint, a pause and handoffs leave no finding."""
    crew.granted()
    crew.thread().resume(world=SHELL)
    crew.thread().save({"n": 3}, world=SHELL)
    older = crew.ask(ref="c1", world=READ)
    crew.approve(older)
    crew.thread("operator").pause("a look")
    crew.thread("operator").unpause("fine")
    crew.thread().resume(ref="c1", world=READ)
    crew.thread().save({"n": 4})
    crew.thread().handoff(to="spare", reason="yours")
    crew.go_on("spare", world=READ)
    crew.thread("spare").save({"n": 5}, world=READ)

    assert _found(crew) == ""


def test_entries_of_a_store_without_a_policy_are_fine() -> None:
    """What a gate writes names what it released, whether or not a policy was in force."""
    world = Deployment()
    store = world.open(gated=True)
    store.thread("t").save(1)
    world.open(gated=True).thread("t").save(2)
    report = world.open(None, read_only=True).verify()
    world.close()

    assert report.ok
    assert not report.findings


def test_a_resume_that_no_gate_has_judged_is_found(crew: Team) -> None:
    """A pod without a gate names no policy, although the roster does."""
    crew.thread().save(1, world=READ)
    crew.world.open("worker").thread("t").save(2)

    assert "names policy" in _found(crew)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"policy": "00" * 32}, "names policy"),
        ({"policy": None}, "judged by none"),
        ({"checkpoint": None}, "does not name the checkpoint"),
        ({"checkpoint": "11" * 32}, "there was no checkpoint"),
        ({"world": "22" * 32}, "missing-world"),
        ({"world": _digest(SHELL), "leaves": SHELL}, "tools"),
        ({"world": _digest(NARROW), "leaves": NARROW}, "narrower-world"),
        ({"world": "22" * 32, "rules": ("narrower-world",)}, "missing-world"),
        ({"world": None}, "missing-world"),
        ({"answer": "33" * 32}, "answer"),
        ({"rules": ("tools",)}, "approvals needed: 2, found: 0"),
        ({"rules": ("no-such-rule",)}, "no policy has: no-such-rule"),
        ({"request": "44" * 32}, "there was no open request"),
    ],
)
def test_a_resume_past_the_gate_is_found(crew: Team, fields: dict[str, Any], words: str) -> None:
    """Whatever a pod claims about its resume, the entry does not fit what lies before it."""
    crew.thread().save(1, world=READ)
    _rogue(crew, **fields)

    assert words in _found(crew)


def test_the_same_resume_without_changes_is_justified(crew: Team) -> None:
    """The control: what the helper writes is an ordinary continuation."""
    crew.thread().save(1, world=READ)
    _rogue(crew)

    assert _found(crew) == ""


def test_a_hidden_wider_world_is_found(crew: Team) -> None:
    """A pod that calls a wider world narrower is found out by the leaves."""
    crew.thread().save(1, world=READ)
    wide = crew.ask(world=SHELL).statement.world_to
    _rogue(crew, world=wide, leaves=SHELL, rules=("narrower-world",))

    assert "tools" in _found(crew)


def test_a_narrower_world_is_justified(crew: Team) -> None:
    """The policy allows it without a word."""
    crew.thread().save(1, world=READ)
    crew.fresh().resume(world=NARROW)

    assert _found(crew) == ""


def test_a_narrower_world_that_a_save_declares_is_justified(crew: Team) -> None:
    """The session that it begins shows no world: the checkpoint after it has that."""
    crew.thread().save(1, world=READ)
    crew.fresh().save(2, world=NARROW)

    assert crew.newest(Kind.RESUME).rules == ("narrower-world",)
    assert _found(crew) == ""


def test_a_wider_world_that_nothing_shows_is_found(crew: Team) -> None:
    """It is called narrower, and neither a request nor the resume nor a checkpoint shows it."""
    crew.thread().save(1, world=READ)
    _rogue(crew, world=_digest(SHELL), leaves=None, rules=("narrower-world",))
    found = _found(crew)

    assert "it does not hold the world that it decided" in found
    assert "these rules applied: missing-world" in found
    assert "approvals needed: 2, found: 0" in found


def test_a_grant_with_too_few_approvals_is_found(crew: Team) -> None:
    """One of two is not enough, and neither is the requester's own or one person twice."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request, "bob", "bobby")
    _spend(crew, request)

    assert "needed 2 approvals and had 1" in _found(crew)


def test_an_approved_request_that_is_spent_is_justified(crew: Team) -> None:
    """The control: the same with two persons."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request)
    _spend(crew, request)

    assert _found(crew) == ""


def test_a_request_that_is_spent_twice_is_found(crew: Team) -> None:
    """The first resume has moved the basis, so that there is no such request any more."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request)
    _spend(crew, request)
    _spend(crew, request)

    assert _found(crew).count("there was no open request") == 1


def test_a_denied_request_that_is_spent_is_found(crew: Team) -> None:
    """One eligible denial is final."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request)
    crew.store("carl").deny(request.id, reason="no")
    _spend(crew, request)

    assert "was denied by carl" in _found(crew)


def _asked_again(team: Team, request: Request, who: str) -> str:
    """Other code with the requester's key asks for the same once more; the id of that."""
    body = team.newest(Kind.REQUEST)
    statement = replace(request.statement, nonce="cd" * 16)
    _written(team, Kind.REQUEST, replace(body, statement=statement), who)
    return statement.digest


def test_what_was_denied_is_not_asked_for_once_more(crew: Team) -> None:
    """Approvals of the second request do not help; something else may be asked for."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.store("carl").deny(request.id, reason="no")
    second = dataclasses.replace(request, id=_asked_again(crew, request, "worker"))
    crew.approve(second)
    with pytest.raises(ResumeRefused, match="denied by carl"):
        crew.fresh().resume(world=SHELL)
    assert crew.ask(world=None).id != request.id
    _spend(crew, second)
    assert f"request {request.short} for the same was denied by carl" in _found(crew)


def test_a_denial_stands_until_the_thread_has_moved_on(crew: Team) -> None:
    """Or until the request has expired: then the same may be asked for anew."""
    crew.thread().save(1, world=READ)
    crew.store("carl").deny(crew.ask().id, reason="no")
    crew.later(hours=2)
    crew.store("carl").deny(crew.ask().id, reason="no")
    crew.thread().save(2, world=READ)
    request = crew.ask()
    crew.approve(request)

    assert crew.thread().resume(world=SHELL).state == 2
    crew.check_sound()


def test_a_handoff_that_was_denied_is_not_asked_for_once_more(crew: Team) -> None:
    """Nor carried out past the gate without a finding."""
    crew.thread().save(1, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        crew.thread("operator").handoff(to="spare", reason="gone")
    request = needs.value.request
    assert isinstance(request, Request)
    crew.store("carl").deny(request.id, reason="no")
    second = dataclasses.replace(request, id=_asked_again(crew, request, "operator"))
    crew.approve(second)
    with pytest.raises(ResumeRefused, match="denied by carl"):
        crew.fresh("operator").handoff(to="spare", reason="gone")
    statement = replace(request.statement, nonce="cd" * 16)
    words = [body.attestation for kind, body in crew.entries() if kind == Kind.APPROVAL]
    body = HandoffBody(
        salt="ab" * 32, owner="spare", reason="x", statement=statement, attestations=tuple(words)
    )
    _written(crew, Kind.HANDOFF, body, "operator")

    assert "for the same was denied by carl" in _found(crew)


@pytest.mark.parametrize("ahead", [timedelta(), timedelta(days=3650)])
def test_a_request_holds_no_longer_than_the_policy_lets_it(crew: Team, ahead: timedelta) -> None:
    """Whatever its requester says: nobody approves it, it lets nothing pass, and it is found."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    body, until = crew.newest(Kind.REQUEST), request.statement.expires + timedelta(days=3650)
    statement = replace(request.statement, nonce="cd" * 16, expires=until)
    made = replace(body, statement=statement)
    _written(crew, Kind.REQUEST, made, "worker", crew.world.clock + ahead)
    long = dataclasses.replace(request, id=statement.digest)
    for call in (crew.store("ann").approve, crew.store("ann").deny):
        with pytest.raises(RequestClosed, match="expired"):
            call(long.id, reason="for today")
    for who in ("ann", "bob"):
        word = attest(key(who), long.id, Verdict.APPROVE, "for today")
        _written(crew, Kind.APPROVAL, VerdictBody(salt="ab" * 32, attestation=word), who)
    crew.later(days=3)
    with pytest.raises(NeedsApproval, match="has 0 of"):
        crew.fresh().resume(world=SHELL)
    _spend(crew, long)

    assert "the request says that it holds longer than the policy lets it" in _unjustified(crew)


def test_an_expired_request_that_is_spent_is_found(crew: Team) -> None:
    """Approvals do not outlive their request."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request)
    crew.later(hours=2)
    _spend(crew, request)

    assert "had expired" in _found(crew)


def test_a_request_that_is_spent_for_something_else_is_found(crew: Team) -> None:
    """The approvers were shown another answer."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request)
    _spend(crew, request, answer="55" * 32, rules=("tools", "answer"))

    assert "it was for answer" in _found(crew)


def test_a_broken_glass_justifies_and_no_more_than_its_request(crew: Team) -> None:
    """What a marked operator let pass needs no approvals."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.store("chief").break_glass(request.id, reason="fire")
    crew.thread().resume(world=SHELL)

    assert _found(crew) == ""


def test_approvals_count_by_the_roster_of_the_resume(crew: Team) -> None:
    """Who lost the role before the resume does not count; a loss afterwards changes nothing."""
    crew.granted()
    crew.thread().resume(world=SHELL)
    crew.thread().save({"n": 3})
    crew.end("bob")

    assert _found(crew) == ""


def test_the_policy_of_that_time_counts(crew: Team) -> None:
    """A stricter policy later makes nothing unjust that was not."""
    crew.granted()
    crew.thread().resume(world=SHELL)
    crew.apply(policy(needed=5, narrower_world="refuse"))

    assert _found(crew) == ""


def test_a_session_that_was_taken_over_too_early_is_found() -> None:
    """Another writer of the pool has to wait as long as the policy says."""
    world = Deployment()
    team = Team(world, policy(takeover="1h"))
    team.pool("pods", "worker", "spare")
    team.thread().save(1, world=READ)
    _rogue(team, "spare", owner="pods")
    found = _found(team)
    world.close()

    assert "may be taken over at 1:00:00" in found


def _handed_off(team: Team, needed: int) -> None:
    """Hand a thread off as an operator who brings some approvals and no request."""
    handle = team.fresh("operator")
    handle._state.refresh()
    handle.operations._context.require_living()
    statement = handle.operations._context.statement(
        action=Action.HANDOFF,
        to="spare",
        policy=handle.operations._context.policies.get(team.digest),
        needed=2,
        reason="mine",
    )
    words = tuple(
        attest(key(who), statement.digest, Verdict.APPROVE, "fine") for who in ("ann", "bob")
    )
    body = HandoffBody(
        salt="ab" * 32,
        owner="spare",
        reason="mine",
        statement=statement,
        attestations=words[:needed],
    )
    assert handle._state.record(EntryDraft(Kind.HANDOFF, body)) is not None


def test_an_operators_handoff_without_an_open_request_is_found(crew: Team) -> None:
    """Every reader accepts it by its approvals; that nobody was asked on the thread is found."""
    crew.thread().save(1, world=READ)
    _handed_off(crew, 2)

    assert "there was no open request" in _found(crew)


def test_an_operators_handoff_with_too_few_approvals_is_found(crew: Team) -> None:
    """One approval satisfies every reader; the policy asks for two."""
    crew.thread().save(1, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        crew.thread("operator").handoff(to="spare", reason="mine")
    request = needs.value.request
    assert isinstance(request, Request)
    crew.approve(request, "ann")
    handle = crew.fresh("operator")
    handle._state.refresh()
    asked = handle.operations._context.pending().asked[request.id]
    body = HandoffBody(
        salt="ab" * 32,
        owner="spare",
        reason="mine",
        statement=asked.body.statement,
        attestations=asked.attestations,
    )
    assert handle._state.record(EntryDraft(Kind.HANDOFF, body)) is not None

    assert "needed 2 approvals and had 1" in _found(crew)


def test_how_many_a_handoff_needs_is_for_the_policy_to_say(crew: Team) -> None:
    """A request that claims fewer is neither used by the operation nor good for the audit."""
    crew.thread().save(1, world=READ)
    handle = crew.fresh("operator")
    context = handle.operations._context
    context.require_living()
    statement = context.statement(
        action=Action.HANDOFF,
        to="spare",
        policy=context.policies.get(crew.digest),
        needed=1,
        reason="mine",
    )
    assert context.ask(RequestBody(salt="ab" * 32, statement=statement)) is not None
    crew.store("ann").approve(statement.digest, reason="fine")
    with pytest.raises(NeedsApproval, match="0 of 2 approvals"):
        crew.fresh("operator").handoff(to="spare", reason="mine")
    word = attest(key("ann"), statement.digest, Verdict.APPROVE, "fine")
    body = HandoffBody(
        salt="ab" * 32, owner="spare", reason="mine", statement=statement, attestations=(word,)
    )
    handle._state.refresh()
    assert handle._state.record(EntryDraft(Kind.HANDOFF, body)) is not None

    assert "needed 2 approvals and had 1" in _found(crew)


def test_erased_decisions_are_not_judged(crew: Team) -> None:
    """What an erasure has taken cannot be told any more, and is held against nobody."""
    crew.thread().save(1, world=READ)
    _rogue(crew, policy="00" * 32)
    crew.thread("officer").erase(reason="gone")

    assert _found(crew) == ""


def _crew(rules: bytes) -> Team:
    """A team under another policy; its store is in memory, and goes with it."""
    return Team(Deployment(), rules)


def test_an_age_that_is_not_told_is_found(crew: Team) -> None:
    """A pod that goes on with a state of last month tells the rule, or is found."""
    crew.thread().save(1, world=READ)
    crew.later(days=8)
    _rogue(crew)

    assert "these rules applied: old-age" in _found(crew)


def test_a_first_world_that_is_not_told_is_found(crew: Team) -> None:
    """Nothing was declared when it was saved."""
    crew.thread().save(1)
    _rogue(crew, world="66" * 32)

    assert "first-world" in _found(crew)


def test_leaves_that_are_not_the_world_they_name_are_found(crew: Team) -> None:
    """What is shown has to be what the digest binds; what is no world shows nothing."""
    crew.thread().save(1, world=READ)
    _rogue(crew, world="22" * 32, leaves=SHELL, rules=("narrower-world",))
    assert "missing-world" in _found(crew)
    _rogue(crew, world="22" * 32, leaves={"tools": 1}, rules=("narrower-world",))

    assert len(_found(crew).split("\n")) == 6  # the world, the rule and its measure, of both


def test_what_the_policy_refuses_is_found() -> None:
    """No approval makes it right."""
    team = _crew(policy(answer="refuse"))
    team.thread().save(1, world=READ)
    _rogue(team, answer="33" * 32, rules=("answer",))

    assert "(the policy refuses that)" in _found(team)


def test_what_needs_a_word_and_has_none_is_found() -> None:
    """The policy asks for a reason on the call; blank text is none."""
    team = _crew(policy(answer="reason"))
    team.thread().save(1, world=READ)
    _rogue(team, answer="33" * 32, rules=("answer",), reason="meant")
    assert _found(team) == ""
    _rogue(team, answer="33" * 32, rules=("answer",), reason=" ", idempotent=True)

    assert "pass deliberate=" in _found(team)


def test_without_a_policy_only_an_ordinary_continuation_is_justified() -> None:
    """A rule that applied has nobody who allows it, and a request nobody who asks for it."""
    world = Deployment()
    team = Team(world)
    team.enter(lambda document: replace(document, policies={}))
    team.thread().save(1, world=READ)
    _rogue(team, policy=None)
    assert _found(team) == ""
    _rogue(team, policy=None, answer="33" * 32, rules=("answer",))

    assert "no policy is in force" in _found(team)


def _lawless() -> Team:
    """A team without a policy, whose thread has a checkpoint that declares a world."""
    team = Team(Deployment())
    team.enter(lambda document: replace(document, policies={}))
    team.thread().save(1, world=READ)
    return team


@pytest.mark.parametrize(
    "fields",
    [
        {"world": _digest(SHELL)},
        {"world": _digest(READ)},
        {"leaves": SHELL},
        {"request": "44" * 32},
        {"answer": "33" * 32},
        {"actor": "somebody"},
        {"rules": ("answer",)},
        {},
    ],
)
def test_without_a_policy_a_resume_names_what_it_releases(fields: dict[str, Any]) -> None:
    """Every gate names the checkpoint; who does not hides what it went on from."""
    team = _lawless()
    _rogue(team, **({"policy": None, "checkpoint": None, "world": None} | fields))

    assert "does not name the checkpoint" in _found(team)


def _written(
    team: Team, kind: Kind, body: Body | bytes, who: str, at: datetime | None = None
) -> None:
    """Append an entry as somebody whose code or clock is their own."""
    thread = team.world.thread_id("t")
    rows = dict(team.store("operator").storage.inner.scan(thread, 0))
    seq, newest = len(rows), parse_header(rows[len(rows) - 1].header)
    data = body if isinstance(body, bytes) else encode_body(body)
    header = replace(
        newest,
        seq=seq,
        prev=link_hash(rows[seq - 1].header).hex(),
        skip=link_hash(rows[skip_seq(seq)].header).hex(),
        kind=kind,
        **Marks.of(newest).after(kind, seq)._asdict(),
        by=key(who).public.id.raw.hex(),
        body=hashlib.sha256(data).hexdigest(),
        at=newest.at if at is None else at,
    )
    raw = encode_header(header)
    team.world.put(thread, seq, Record(raw, seals(raw, key(who)), data))


def _unjustified(team: Team) -> str:
    """What is not justified; clocks that went back or far ahead may be found too."""
    findings = _verified(team).findings
    assert {finding.code for finding in findings} <= {UNJUSTIFIED, "time"}, findings
    return "\n".join(each.message for each in findings if each.code == UNJUSTIFIED)


def _spending(team: Team, request: Request) -> ResumeBody:
    """A resume that spends a request, to be written at a time of the writer's choice."""
    given = {"request": request.id, "world": request.statement.world_to}
    return _resume_body(team, team.fresh(), rules=("tools",), **given)


def test_a_clock_turned_back_twice_revives_nothing(crew: Team) -> None:
    """The time of a thread is the latest of its entries, not that of the last one alone."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request)
    in_time = crew.world.clock
    late = in_time + timedelta(hours=2)
    _written(crew, Kind.PAUSE, PauseBody(salt="ab" * 32, reason="look"), "operator", late)
    _written(crew, Kind.UNPAUSE, UnpauseBody(salt="ab" * 32, reason="fine"), "operator", in_time)
    _written(crew, Kind.RESUME, _spending(crew, request), "worker", in_time)

    assert "had expired" in _unjustified(crew)


@pytest.mark.parametrize("kind", [Kind.APPROVAL, Kind.DENIAL, Kind.EXPIRY])
def test_what_anybody_may_write_tells_no_time(crew: Team, kind: Kind) -> None:
    """An auditor's clock that runs ahead expires nothing of others."""
    crew.world.enrol(identity("reader", Role.AUDITOR))
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request)
    in_time, ahead = crew.world.clock, crew.world.clock + timedelta(days=3000)
    verdict = Verdict.DENY if kind is Kind.DENIAL else Verdict.APPROVE
    word = attest(key("reader"), "00" * 32, verdict, "hm")
    body: Body = VerdictBody(salt="ab" * 32, attestation=word)
    if kind is Kind.EXPIRY:
        body = ExpiryBody(salt="ab" * 32, request="00" * 32)
    _written(crew, kind, body, "reader", ahead)
    _written(crew, Kind.RESUME, _spending(crew, request), "worker", in_time)

    assert _unjustified(crew) == ""


_ABOUT_REQUESTS = {
    Kind.REQUEST: "worker",
    Kind.APPROVAL: "ann",
    Kind.DENIAL: "ann",
    Kind.EXPIRY: "ann",
    Kind.BREAK_GLASS: "chief",
}


@pytest.mark.parametrize("body", [b"{}", b"\xff\x00", b""])
@pytest.mark.parametrize("kind", _ABOUT_REQUESTS)
def test_nonsense_about_requests_is_its_writers(crew: Team, kind: Kind, body: bytes) -> None:
    """It is found and told, stops nobody, and the rest is judged as if it were not there."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request)
    resume = _spending(crew, request)
    _written(crew, kind, body, _ABOUT_REQUESTS[kind])
    _written(crew, Kind.RESUME, resume, "worker")
    found = _found(crew)
    told = [each for each in crew.store("operator").audit(thread="t") if each.seq == 6]
    report = api.verify_bundle(b"".join(crew.store("operator").export()), crew.world.pin)

    assert found.count("\n") == 0
    assert f"entry 6: expected the fields of a {kind}, found what" in found
    assert [each.summary for each in told] == [UNREADABLE]
    assert [each.message for each in report.findings] == [found]
    assert not report.ok


_ONLY_WHY = {
    Kind.ADOPT: "operator",
    Kind.PAUSE: "operator",
    Kind.UNPAUSE: "operator",
    Kind.ERASE: "officer",
}


@pytest.mark.parametrize("kind", _ONLY_WHY)
def test_nonsense_in_place_of_a_reason_is_its_writers(crew: Team, kind: Kind) -> None:
    """What was done counts and is told, and what lies above it is judged, shown and kept."""
    crew.thread().save(1, world=READ)
    if kind is Kind.UNPAUSE:
        crew.thread("operator").pause("stop")
    _written(crew, kind, b"garbage", _ONLY_WHY[kind])
    if kind is Kind.PAUSE:
        with pytest.raises(Paused):
            crew.fresh().save(2, world=READ)
        crew.fresh("operator").unpause("go on")
    above = crew.fresh().save(2, world=READ).seq
    told = {each.seq: each.summary for each in crew.store("operator").audit(thread="t")}
    report = api.verify_bundle(b"".join(crew.store("operator").export()), crew.world.pin)
    newest = crew.fresh().save(3, world=READ).seq
    crew.world.put(crew.world.thread_id("t"), newest, None)
    crew.world.using(
        lambda core: accept_restore(core, plan_restore(core), "disk died", roots=[key("root")]),
        "operator",
    )

    found = _found(crew)
    assert found.count("\n") == 0
    assert f"expected the fields of a {kind}, found what" in found
    assert "it counts all the same" in found
    assert [each.message for each in report.findings] == [found]
    assert above in told
    assert list(told.values()).count(UNREADABLE) == 1
    assert crew.fresh().load().state == 2


def test_a_body_that_is_another_is_damage(crew: Team) -> None:
    """Whoever exchanges a body that somebody sealed makes no nonsense of theirs."""
    crew.thread().save(1, world=READ)
    crew.ask()
    record = crew.world.record("t", 2)
    crew.world.put(crew.world.thread_id("t"), 2, replace(record, body=b"{}"))

    assert [(each.code, each.refuses) for each in _verified(crew).findings] == [("edited", True)]


def test_a_denial_from_before_a_restore_is_over(crew: Team) -> None:
    """For the gate that asks again, for an audit, and for the colleague who continues."""
    crew.pool("pods", "worker", "spare")
    crew.thread().save({"n": 1}, world=READ)
    crew.thread().handoff(to="pods", reason="shared")
    crew.thread("spare").resume(world=READ)
    crew.thread("spare").save({"n": 2}, world=READ)
    denied = crew.ask(world=SHELL)
    crew.store("ann").deny(denied.id, reason="not now")
    lost = crew.thread(name="other").save(1).seq
    crew.world.put(crew.world.thread_id("other"), lost, None)
    crew.world.using(
        lambda core: accept_restore(core, plan_restore(core), "disk died", roots=[key("root")]),
        "operator",
    )
    for store in crew._open.values():
        store.core.renewed_trust()
    crew.approve(crew.ask(world=SHELL))
    approved = crew.fresh()
    approved.resume(world=SHELL)
    approved.save({"n": 3}, world=SHELL)

    assert _found(crew) == ""
    assert crew.fresh("spare").resume(world=SHELL).state == {"n": 3}


def test_nonsense_that_a_thread_depends_on_is_damage(crew: Team) -> None:
    """Without the body of a resume or a checkpoint nobody can go on."""
    crew.thread().save(1, world=READ)
    _written(crew, Kind.CHECKPOINT, b"{}", "worker")

    assert [(each.code, each.refuses) for each in _verified(crew).findings] == [("edited", True)]


def test_a_policy_that_is_gone_is_told(crew: Team) -> None:
    """Nobody can judge by what is not there, neither a resume nor a handoff."""
    crew.thread().save(1, world=READ)
    _rogue(crew)
    _handed_off(crew, 2)
    crew.world.memory._forget(bytes(16), [bytes.fromhex(crew.digest)])

    assert _found(crew).count("the policy to judge it by cannot be read") == 2


def test_an_expiry_that_was_recorded_ends_a_request(crew: Team) -> None:
    """Whoever notices it records it; nothing revives the request."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request)
    crew.later(hours=2)
    with pytest.raises(RequestClosed):
        crew.store("carl").approve(request.id, reason="late")
    _spend(crew, request)

    assert "expiry" in crew.kinds()
    assert "had expired" in _found(crew)


@pytest.mark.parametrize(("who", "ends"), [("ann", True), ("operator", True), ("officer", False)])
def test_an_end_on_record_holds_whatever_time_is_claimed(
    crew: Team, who: str, *, ends: bool
) -> None:
    """If it was recorded by somebody who has a say in it, as for the gate."""
    crew.thread().save(1, world=READ)
    request = crew.ask()
    crew.approve(request)
    in_time = crew.world.clock
    late = in_time + timedelta(hours=2)
    _written(crew, Kind.EXPIRY, ExpiryBody(salt="ab" * 32, request=request.id), who, late)
    _written(crew, Kind.RESUME, _spending(crew, request), "worker", in_time)

    assert ("had expired" in _unjustified(crew)) == ends


def test_an_operators_handoff_under_another_policy_is_found(crew: Team) -> None:
    """The approvals are for a policy that is no longer in force, or one that refuses it."""
    crew.thread().save(1, world=READ)
    old = crew.digest
    crew.apply(policy("newer"))
    _handed_off(crew, 2)
    assert f"{old[:12]}" not in _found(crew)
    assert "carries no approvals" in _found(crew)
    other = _crew(policy(handoff_by_operator="refuse"))
    other.thread().save(1, world=READ)
    _handed_off(other, 2)

    assert "does not let operators hand threads off" in _found(other)


def test_memory_does_not_follow_the_thread(crew: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a checkpoint far back it is still found that it is not the newest."""
    monkeypatch.setattr(log_module, "AUDIT_CHECKPOINTS_MAX", 1)
    for number in range(4):
        crew.thread().save(number, world=READ)
    oldest = list(crew.fresh().history())[-1].entry
    _rogue(crew, checkpoint=oldest)

    assert "older-checkpoint" in _found(crew)


def _resaved(crew: Team, times: int) -> None:
    """Two checkpoints, the older of which is saved once more so many times."""
    saved(crew.thread(), put(0, "0", world=SealedWorld.of(READ)), put(1, "1"))
    for number in range(times):
        saved(crew.thread(), put([number], "0"))


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_checkpoint_saved_once_more_is_not_the_newest(
    crew: Team, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """However often: the reviewer goes by rank as the gate does, within its bound."""
    monkeypatch.setattr(log_module, "AUDIT_CHECKPOINTS_MAX", 1)
    _resaved(crew, times)
    crew.fresh().save(2, world=READ)
    assert _found(crew) == ""
    older = next(ref for ref in crew.fresh().history() if ref.id == "0")
    _rogue(crew, checkpoint=older.entry)

    assert "older-checkpoint" in _found(crew)


@pytest.mark.parametrize("times", [0, 1, 5])
def test_after_a_deletion_the_newest_of_the_rest_counts(
    crew: Team, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """People have to approve of it; then the reviewer accuses nobody, even of what it forgot."""
    monkeypatch.setattr(log_module, "AUDIT_CHECKPOINTS_MAX", 1)
    _resaved(crew, times)
    crew.thread().adapter.delete([Key("", "1")])
    with pytest.raises(ResumeRefused, match="have been deleted"):
        crew.fresh().save(2, world=READ)
    crew.approve(crew.ask(world=READ))
    crew.thread().resume(world=READ)
    crew.thread().save(2)
    crew.fresh().save(3, world=READ)

    assert _found(crew) == ""


def test_a_resume_that_hides_a_deletion_is_found(crew: Team) -> None:
    """A pod that goes on from what is left, as if nothing had been deleted."""
    _resaved(crew, 0)
    crew.thread().adapter.delete([Key("", "1")])
    _rogue(crew)

    assert "older-checkpoint" in _found(crew)


def test_after_deleting_everything_nothing_is_older(
    crew: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing to go on from, and a resume from what was deleted is found."""
    monkeypatch.setattr(log_module, "AUDIT_CHECKPOINTS_MAX", 1)
    _resaved(crew, 4)
    deleted = next(iter(crew.fresh().history())).entry
    crew.thread().adapter.delete()
    saved(crew.fresh(), put(2, "2", world=SealedWorld.of(READ)))
    assert _found(crew) == ""
    _rogue(crew, checkpoint=deleted)

    assert f"there was no checkpoint {deleted[:12]!r}" in _found(crew)


def _long(crew: Team, monkeypatch: pytest.MonkeyPatch, *, remembered: int = 2) -> list[str]:
    """A thread of eight checkpoints, of which an audit remembers few; their hashes."""
    monkeypatch.setattr(log_module, "AUDIT_CHECKPOINTS_MAX", remembered)
    for number in range(8):
        saved(crew.thread(), put(number, f"{number}", world=SealedWorld.of(READ)))
    return [ref.entry for ref in reversed(list(crew.fresh().history()))]


@pytest.mark.parametrize("remembered", [2, 256], ids=["far back", "within the bound"])
def test_an_invented_checkpoint_is_told_from_an_old_one(
    monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    """However long the thread is; the rules that the resume tells make no difference."""
    crew = _crew(policy(older_checkpoint="reason"))
    first, *_ = _long(crew, monkeypatch, remembered=remembered)
    given: dict[str, Any] = {"rules": ("older-checkpoint",), "reason": "back to the start"}
    _rogue(crew, checkpoint=first, **given)
    assert _found(crew) == ""
    _rogue(crew, checkpoint="ab" * 32, release="cd" * 32, **given)

    assert _found(crew).endswith("there was no checkpoint 'abababababab' to release")


@pytest.mark.parametrize("remembered", [2, 256], ids=["far back", "within the bound"])
def test_the_world_and_the_age_of_an_old_checkpoint_are_judged(
    monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    """Who resumes from it in a wider world, or long after, has to tell that and have it granted."""
    crew = _crew(policy(older_checkpoint="reason"))
    first, *_ = _long(crew, monkeypatch, remembered=remembered)
    given: dict[str, Any] = {"checkpoint": first, "reason": "back to the start"}
    told = ("older-checkpoint",)
    _rogue(crew, rules=told, world=_digest(SHELL), leaves=SHELL, **given)
    assert "these rules applied: tools" in _found(crew)
    assert "that the gate would not allow" in _found(crew)
    crew.later(days=8)
    _rogue(crew, rules=told, **given)

    assert "these rules applied: old-age" in _found(crew)


@pytest.mark.parametrize("remembered", [2, 256], ids=["far back", "within the bound"])
def test_who_goes_back_far_and_crashes_is_not_accused(
    monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    """All that is newer is deleted, a resume tells so, and the next one is ordinary again."""
    crew = _crew(policy(older_checkpoint="reason"))
    *_, third, _, _, _, _, _ = _long(crew, monkeypatch, remembered=remembered)
    saved(crew.thread(), put("once more", "1"))
    crew.thread().adapter.delete([Key("", f"{number}") for number in range(3, 8)])
    thread = crew.fresh()
    assert thread.resume(world=READ, deliberate="back").ref.entry == third
    assert crew.fresh().resume(world=READ).ref.entry == third
    assert _found(crew) == ""
    older = next(ref.entry for ref in crew.fresh().history() if ref.id == "1")
    _rogue(crew, checkpoint=older)

    assert "these rules applied: older-checkpoint" in _found(crew)


@pytest.mark.parametrize("remembered", [2, 256], ids=["far back", "within the bound"])
def test_what_was_deleted_far_back_is_not_there(
    crew: Team, monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    """A resume from it is found; so is one that names no checkpoint where some are left."""
    first, *_ = _long(crew, monkeypatch, remembered=remembered)
    crew.thread().adapter.delete([Key("", f"{number}") for number in (0, 3, 4, 5, 6, 7)])
    _rogue(crew, checkpoint=first)
    assert f"there was no checkpoint {first[:12]!r}" in _found(crew)
    _rogue(crew, checkpoint=None)

    assert "it does not name the checkpoint" in _found(crew)


def test_an_audit_begins_anew_with_a_generation(
    crew: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it could not take in before an erasure is no excuse, and no finding, after it."""
    monkeypatch.setattr(log_module, "AUDIT_RESULTS_MAX", 4)
    _long(crew, monkeypatch)
    added(crew.thread(), *(results(n, "none", task=f"{n}") for n in range(6)))
    crew.thread("officer").erase(reason="as was asked for")
    crew.fresh().save("new", world=READ)
    crew.fresh().resume(world=READ)
    assert _found(crew) == ""
    _rogue(crew, checkpoint="ab" * 32, release="cd" * 32)

    assert "there was no checkpoint" in _found(crew)


def test_a_question_of_a_task_that_was_passed_over_is_found(crew: Team) -> None:
    """A pod went on although results wait for an answer; what settled it is believed."""
    saved(crew.thread(), put(1, "1", world=SealedWorld.of(READ)))
    saved(crew.thread(), results("?", "1", "pay", question="pay?"))
    _rogue(crew)
    assert "answer" in _found(crew)
    calm = _crew(policy())
    saved(calm.thread(), put(1, "1", world=SealedWorld.of(READ)))
    saved(calm.thread(), results("?", "1", "pay", question="pay?"), results("paid", "1", "pay"))
    _rogue(calm)

    assert _found(calm) == ""


def test_more_results_than_an_audit_takes_in_are_a_finding(
    crew: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory does not follow the results of a thread, and that nobody judged it is said."""
    monkeypatch.setattr(log_module, "AUDIT_RESULTS_MAX", 4)
    saved(crew.thread(), put(1, "1", world=SealedWorld.of(READ)))
    added(crew.thread(), *(results(n, "1", task=f"{n}") for n in range(4)))
    crew.fresh().save(2, world=READ)
    assert _found(crew) == ""
    handle = crew.fresh()
    handle.save(3, world=READ)
    added(handle, *(results(n, "none", task=f"{n}") for n in range(5)))
    crew.fresh().save(4, world=READ)

    assert "more results of tasks" in _found(crew)
