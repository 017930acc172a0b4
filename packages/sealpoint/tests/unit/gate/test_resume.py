# SPDX-License-Identifier: Apache-2.0
"""A resume: what the gate says, in which order, and what is written before anything is released."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from sealpoint.errors import (
    AnchorUnavailable,
    Busy,
    Erased,
    HeadMoved,
    NeedsApproval,
    NotOwner,
    NotTrusted,
    PolicyInvalid,
    Pruned,
    ReadOnly,
    ResumeRefused,
    SealpointError,
    StorageUnavailable,
    Superseded,
    UnknownCheckpoint,
    UnknownThread,
    UsageError,
    ValueNotAllowed,
)
from sealpoint.gate import Outcome, Request
from sealpoint.ledger import STORE_CHAIN, Kind
from sealpoint.limits import ANSWER_BYTES_MAX, REASON_BYTES_MAX
from sealpoint.signing import Verdict
from tests.unit.gate.team import NARROW, READ, SHELL, Team, policy
from tests.unit.store.ended import expire

_LAX: dict[str, Any] = {
    "tools": "record",
    "older_checkpoint": "record",
    "answer": "record",
    "first_world": "record",
    "missing_world": "record",
    "code": "record",
}


def _code(version: str) -> dict[str, Any]:
    return {**READ, "code": {"version": version}}


# ---------------------------------------------------------------------- what is allowed


def test_an_ordinary_continuation_is_allowed_and_recorded(team: Team) -> None:
    """The same world and no question: one entry, which names the checkpoint and the policy."""
    team.thread().save({"n": 1}, world=READ)
    loaded = team.fresh().resume(world=READ)
    body = team.newest(Kind.RESUME)

    assert (loaded.state, loaded.world) == ({"n": 1}, READ)
    assert team.kinds() == ["genesis", "resume", "checkpoint", "resume"]
    assert (body.checkpoint, body.policy, body.basis) == (loaded.ref.entry, team.digest, 2)
    assert (body.rules, body.request, body.leaves, body.owner) == ((), None, None, "worker")
    team.check_sound()


def test_a_narrower_world_passes_and_its_leaves_are_recorded(team: Team) -> None:
    """What the policy allows without a word is told in the entry, with the world itself."""
    team.thread().save(1, world=READ)
    team.fresh().resume(world=NARROW, actor="somebody", deliberate="no tools today")
    body = team.newest(Kind.RESUME)

    assert body.rules == ("narrower-world",)
    assert body.leaves is not None
    assert "tools" not in body.leaves
    assert (body.actor, body.reason) == ("somebody", "no tools today")


def test_a_session_that_was_resumed_saves_in_its_world(team: Team) -> None:
    """A save without a world has that of the resume, and no other one is taken, nor a narrower."""
    team.granted()
    thread = team.thread()
    thread.resume(world=SHELL)
    thread.save({"n": 3})

    assert team.fresh().load().world == SHELL
    assert thread.save({"n": 4}, world=SHELL).seq == len(team.kinds()) - 1
    before = team.everything()
    for other in (READ, {"tools": [{"name": "write"}]}, _code("2")):
        with pytest.raises(ResumeRefused, match="the world of a session"):
            thread.save({"n": 5}, world=other)
    assert team.everything() == before
    assert thread.save({"n": 5}).seq == len(team.kinds()) - 1
    assert team.fresh().load().world == SHELL


def test_a_grant_releases_once(team: Team) -> None:
    """Two approvals of others release the state; the same call again needs a new request."""
    request = team.granted(deliberate="needs a shell", actor="dev")
    loaded = team.thread().resume(world=SHELL, deliberate="needs a shell", actor="dev")
    body = team.newest(Kind.RESUME)

    assert loaded.state == {"n": 2}
    assert (body.request, body.rules, body.leaves) == (request.id, ("tools",), SHELL)
    assert (body.world, body.actor) == (request.statement.world_to, "dev")
    with pytest.raises(NeedsApproval) as again:
        team.thread().resume(world=SHELL, deliberate="needs a shell", actor="dev")
    assert isinstance(again.value.request, Request)
    assert again.value.request.id != request.id
    assert again.value.request.approved_by == ()
    team.check_sound()


def test_a_grant_is_for_the_process_that_comes_first(team: Team) -> None:
    """Any process of the requester may spend it, and one does."""
    team.granted()

    assert team.fresh().resume(world=SHELL).state == {"n": 2}
    with pytest.raises(NeedsApproval):
        team.fresh().resume(world=SHELL)


def test_asking_twice_makes_one_request(team: Team) -> None:
    """From any process of the requester; another reason is no other request."""
    team.thread().save(1, world=READ)
    first = team.ask()
    again = team.ask(deliberate="please")
    with pytest.raises(NeedsApproval) as fresh:
        team.fresh().resume(world=SHELL)

    assert isinstance(fresh.value.request, Request)
    assert first.id == again.id == fresh.value.request.id
    assert team.kinds().count("request") == 1
    assert "+ tool shell" in fresh.value.reasons[0]


# ---------------------------------------------------------------------- what is not


@pytest.mark.parametrize(
    "other",
    [
        {"world": {**SHELL, "permissions": ["net"]}},
        {"world": SHELL, "answer": "yes"},
        {"world": SHELL, "ref": "c1"},
        {"world": None},
    ],
    ids=["another world", "an answer", "another checkpoint", "no world"],
)
def test_a_grant_is_for_nothing_else(team: Team, other: dict[str, Any]) -> None:
    """Another wish needs another request, and leaves the grant as it was."""
    team.granted()
    with pytest.raises(NeedsApproval):
        team.thread().resume(**other)

    assert team.kinds().count("request") == 2
    assert team.thread().resume(world=SHELL).state == {"n": 2}


def test_every_rule_that_applies_is_told(team: Team) -> None:
    """An older checkpoint with a question, other code, more tools, and after a long time."""
    team.thread().save(1, id="c1", world=_code("1"), question="pay?")
    team.thread().save(2, id="c2", world=_code("1"))
    team.later(days=8)
    with pytest.raises(NeedsApproval) as needs:
        team.thread().resume(world={**SHELL, "code": {"version": "2"}}, ref="c1", answer="yes")

    told = " ".join(needs.value.reasons)
    for words in (
        "not the newest",
        "code is not",
        "+ tool shell",
        "an answer is given",
        "more than",
    ):
        assert words in told


@pytest.mark.parametrize(
    ("wish", "rule"),
    [
        ({"world": None}, "missing-world"),
        ({"world": READ, "ref": "c1"}, "older-checkpoint"),
        ({"world": READ, "answer": {"ok": True}}, "answer"),
        ({"world": SHELL}, "tools"),
        ({"world": _code("1")}, "code"),
    ],
)
def test_what_is_not_ordinary_obeys_its_rule(team: Team, wish: dict[str, Any], rule: str) -> None:
    """Refused where the policy refuses, recorded where it allows, and said where it must be."""
    team.thread().save(1, id="c1", world=READ)
    team.thread().save(2, id="c2", world=READ)
    key = rule.replace("-", "_")
    team.apply(policy(**{**_LAX, key: "refuse"}))
    with pytest.raises(ResumeRefused, match="the policy refuses that"):
        team.fresh().resume(**wish, deliberate="meant")
    team.apply(policy(**{**_LAX, key: "reason"}))
    before = team.everything()
    for deliberate in (None, ""):
        with pytest.raises(ResumeRefused, match="deliberate="):
            team.fresh().resume(**wish, deliberate=deliberate)

    assert team.everything() == before
    assert team.fresh().judge(**wish, deliberate="meant").outcome is Outcome.ALLOW
    team.fresh().resume(**wish, deliberate="meant")
    assert rule in team.newest(Kind.RESUME).rules
    assert team.newest(Kind.RESUME).reason == "meant"
    team.apply(policy(**_LAX))
    team.fresh().resume(**wish, idempotent=True)
    assert rule in team.newest(Kind.RESUME).rules


def test_a_first_world_is_not_taken_for_the_same(team: Team) -> None:
    """Nothing was declared when it was saved: what is declared now cannot be compared."""
    team.thread().save(1)

    assert team.fresh().resume(world=None).world is None
    with pytest.raises(NeedsApproval, match="none was when the checkpoint was saved"):
        team.fresh().resume(world=READ)


def test_a_question_is_answered_by_the_very_answer(team: Team) -> None:
    """The approved answer passes; no answer and another answer do not."""
    team.thread().save(1, world=READ, question={"pay": 42})
    request = team.ask(world=READ, answer={"pay": True, "to": ["a"]})
    team.approve(request)
    for answer in (None, {"pay": True, "to": ["b"]}, {"pay": 1, "to": ["a"]}):
        with pytest.raises(NeedsApproval):
            team.thread().resume(world=READ, answer=answer)
    loaded = team.thread().resume(world=READ, answer={"to": ["a"], "pay": True})

    assert (loaded.question, loaded.state) == ({"pay": 42}, 1)
    assert request.answer == {"pay": True, "to": ["a"]}
    assert team.newest(Kind.RESUME).answer == request.statement.answer


def test_without_a_policy_only_an_ordinary_continuation_passes(team: Team) -> None:
    """Empty means no."""
    team.enter(lambda document: type(document)(identities=document.identities))
    team.thread().save(1, world=READ)

    assert team.fresh().resume(world=READ).state == 1
    assert team.newest(Kind.RESUME).policy is None
    others: list[dict[str, Any]] = [{"world": SHELL}, {"world": NARROW}, {"world": None}]
    for wish in others:
        with pytest.raises(ResumeRefused, match="no policy is in force"):
            team.fresh().resume(**wish, deliberate="meant")


@pytest.mark.parametrize("bad", [None, b"version = 1"])
def test_a_policy_that_is_not_there_lets_nobody_go_on(memory: Team, bad: bytes | None) -> None:
    """Its bytes are gone, or others lie in their place: not even the ordinary passes."""
    memory.thread().save(1, world=READ)
    place = STORE_CHAIN, bytes.fromhex(memory.digest)
    if bad is None:
        memory.world.memory._forget(place[0], [place[1]])
    else:
        memory.world.memory._blobs[place] = bad
    before = memory.everything()
    for call in (
        lambda: memory.fresh().resume(world=READ),
        lambda: memory.fresh().judge(world=READ),
        lambda: memory.fresh().save(2, world=READ),
        lambda: memory.world.open("ann", gated=True).requests(),
    ):
        with pytest.raises(PolicyInvalid):
            call()

    assert memory.everything() == before


def test_who_may_not_go_on_is_told_so_and_asks_for_nothing(team: Team) -> None:
    """Neither another writer nor somebody without the role, whatever is asked for."""
    team.thread().save(1, world=READ)
    before = team.everything()
    for world in (READ, SHELL):
        with pytest.raises(NotOwner):
            team.thread("spare").resume(world=world)
        with pytest.raises(NotTrusted):
            team.thread("ann").resume(world=world)
        with pytest.raises(NotTrusted):
            team.thread("stranger").resume(world=world)
        reader = team.world.open(None, read_only=True, gated=True)
        with pytest.raises(ReadOnly):
            reader.thread("t").resume(world=world)
    assert team.everything() == before


def test_there_must_be_something_to_go_on_from(team: Team) -> None:
    """No thread, no such checkpoint, one that was given up, one that was erased."""
    with pytest.raises(UnknownThread):
        team.thread().resume(world=READ)
    for number in range(3):
        team.thread().save(number, id=f"c{number}", world=READ)
    with pytest.raises(UnknownCheckpoint):
        team.thread().resume(world=READ, ref="c9")
    team.thread().prune(keep_last=1)
    with pytest.raises(Pruned):
        team.thread().resume(world=READ, ref="c0")
    team.thread("officer").erase(reason="asked for")
    with pytest.raises(Erased):
        team.thread().resume(world=READ)
    assert "request" not in team.kinds()


@pytest.mark.parametrize(
    "wish",
    [
        {"actor": 5},
        {"actor": "\ud800"},
        {"actor": "x" * 513},
        {"deliberate": 5},
        {"deliberate": "\ud800"},
        {"deliberate": "\u200b"},
        {"deliberate": "x" * 4097},
    ],
)
def test_what_is_no_text_is_refused_before_anything(memory: Team, wish: dict[str, Any]) -> None:
    """A wrong call is a wrong call, whether or not the words would have been needed."""
    memory.thread().save(1, world=READ)
    before = memory.everything()
    for world in (READ, SHELL):
        with pytest.raises(UsageError):
            memory.fresh().resume(world=world, **wish)

    assert memory.everything() == before


@pytest.mark.parametrize("answer", [{1, 2}, float("nan"), {1: 2}, b"yes", "\ud800"])
def test_an_answer_that_is_not_json_is_refused(memory: Team, answer: object) -> None:
    """By a resume and by a dry run alike."""
    memory.thread().save(1, world=READ, question="?")
    for call in (memory.fresh().resume, memory.fresh().judge):
        with pytest.raises(ValueNotAllowed, match="answer"):
            call(world=READ, answer=answer)


def test_an_answer_that_is_too_large_is_refused(memory: Team) -> None:
    """By a resume and a dry run, with its size; nothing is written, and the thread goes on."""
    memory.thread().save(1, world=READ, question="?")
    before = memory.everything()
    for call in (memory.thread().resume, memory.thread().judge):
        for answer in ("x" * (ANSWER_BYTES_MAX - 1), ["\0" * 30_000]):
            size_bytes = len(json.dumps(answer).encode())
            words = f"answer: expected at most {ANSWER_BYTES_MAX} bytes as JSON, found {size_bytes}"
            with pytest.raises(UsageError, match=words):
                call(world=READ, answer=answer)

    assert memory.everything() == before


def test_the_largest_of_everything_fits_a_request(memory: Team) -> None:
    """Worlds that have nothing in common, the longest reason, and the longest answer."""

    def wide(letter: str) -> dict[str, Any]:
        return {"permissions": [f"{letter}{number:05}{'x' * 94}" for number in range(5000)]}

    memory.thread().save(1, world=wide("a"), question="?")
    answer = "y" * (ANSWER_BYTES_MAX - 2)
    reason = "\x01" * (REASON_BYTES_MAX - 1) + "!"
    wish: dict[str, Any] = {"world": wide("b"), "answer": answer, "deliberate": reason}
    with pytest.raises(NeedsApproval) as needs:
        memory.fresh().resume(**wish)
    request = needs.value.request
    assert isinstance(request, Request)
    memory.approve(request)

    assert (request.answer, request.statement.reason) == (answer, reason)
    assert all(len(each) < 3000 for each in request.reasons)
    assert any(each.endswith(" more (approvals needed: 2, found: 0)") for each in request.reasons)
    assert memory.fresh().resume(**wish).state == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda team, reason: team.thread("operator").pause(reason),
        lambda team, reason: team.thread().handoff(to="spare", reason=reason),
        lambda team, reason: team.thread().prune(keep_last=1, reason=reason),
        lambda team, reason: team.thread("officer").erase(reason=reason),
        lambda team, reason: team.thread().resume(world=READ, deliberate=reason),
    ],
)
def test_a_reason_that_is_too_long_is_refused(
    memory: Team, call: Callable[[Team, str], object]
) -> None:
    """Before anything is written, and the message says by how much."""
    memory.thread().save(1, world=READ)
    memory.thread().save(2)
    before = memory.everything()
    with pytest.raises(UsageError, match="a reason of at most 4096 bytes, found 4098"):
        call(memory, "é" * 2049)

    assert memory.everything() == before


# ---------------------------------------------------------------------- a dry run


def test_a_dry_run_writes_and_releases_nothing(team: Team) -> None:
    """It says what a resume would be told, to others than the owner too."""
    team.granted()
    before = team.everything()
    fresh = team.fresh()

    assert fresh.judge(world=READ).ordinary
    assert fresh.judge(world=SHELL).outcome is Outcome.ALLOW
    assert fresh.judge(world=None).outcome is Outcome.NEEDS_APPROVAL
    assert team.thread("spare").judge(world=READ).reasons[0].rule == "not-owner"
    assert team.everything() == before


# ---------------------------------------------------------------------- denied, expired, void


def test_one_denial_is_final(team: Team) -> None:
    """Two approvals before it and one after do not help."""
    request = team.granted()
    team.store("carl").deny(request.id, reason="no")
    before = team.everything()
    with pytest.raises(ResumeRefused, match="denied by carl"):
        team.thread().resume(world=SHELL)

    assert team.everything() == before


def test_a_grant_expires_and_no_clock_brings_it_back(team: Team) -> None:
    """Turned back after somebody has noticed, the time of the thread still holds."""
    request = team.granted()
    start = team.world.clock
    team.later(hours=1)
    with pytest.raises(NeedsApproval) as anew:
        team.thread().resume(world=SHELL)
    team.world.clock = start
    with pytest.raises(NeedsApproval) as still:
        team.fresh().resume(world=SHELL)

    assert isinstance(anew.value.request, Request)
    assert isinstance(still.value.request, Request)
    assert anew.value.request.id == still.value.request.id != request.id


def test_a_grant_holds_until_the_last_moment(team: Team) -> None:
    """Up to its expiry and not at it."""
    request = team.granted()
    expires = request.statement.expires
    team.world.clock = expires
    with pytest.raises(NeedsApproval) as late:
        team.fresh().resume(world=SHELL)

    assert isinstance(late.value.request, Request)
    assert late.value.request.id != request.id


@pytest.mark.parametrize("what", ["save", "resume", "prune", "handoff", "erase", "policy"])
def test_a_grant_is_void_when_what_it_was_for_has_changed(team: Team, what: str) -> None:
    """The approvers saw another thread, or another policy."""
    request = team.granted()
    if what == "save":
        team.thread().save({"n": 3}, world=READ)
    elif what == "resume":
        team.fresh().resume(world=READ)
    elif what == "prune":
        team.thread().prune(keep_last=1)
    elif what == "handoff":
        team.thread().handoff(to="spare", reason="yours")
        team.thread("spare").handoff(to="worker", reason="no, yours")
    elif what == "policy":
        team.apply(policy("another", needed=2))
    elif what == "erase":
        team.thread("officer").erase(reason="asked for")
        team.fresh().save({"n": 1}, id="c1", world=READ)
    with pytest.raises(NeedsApproval) as needs:
        team.thread().resume(world=SHELL)

    assert isinstance(needs.value.request, Request)
    assert needs.value.request.id != request.id
    assert needs.value.request.approved_by == ()
    assert not any(body and body.request for kind, body in team.entries() if kind == "resume")


def test_the_policy_in_force_decides_how_many(team: Team) -> None:
    """A request made under a weaker policy is not spent under a stricter one, nor the reverse."""
    team.apply(policy("weak", needed=1))
    request = team.granted()
    team.apply(policy("strict", needed=3))
    with pytest.raises(NeedsApproval, match="0 of 3 approvals"):
        team.thread().resume(world=SHELL)
    team.apply(policy("weak", needed=1))

    assert team.thread().resume(world=SHELL).state == {"n": 2}
    assert team.newest(Kind.RESUME).request == request.id


def test_what_needs_more_people_by_now_is_asked_for_anew(team: Team) -> None:
    """A rule that applies later asks for two: a request for one person is not enough for it."""
    team.apply(policy("aging", needed=1, old_age="approve 2", expires="30d"))
    team.thread().save({"n": 1}, world=READ)
    first = team.ask()
    team.approve(first, "ann")
    team.later(days=8)
    again = team.ask()
    team.approve(again)

    assert (first.needed, again.needed) == (1, 2)
    assert first.id != again.id
    assert team.thread().resume(world=SHELL).state == {"n": 1}
    assert team.newest(Kind.RESUME).request == again.id
    assert set(team.newest(Kind.RESUME).rules) == {"tools", "old-age"}
    team.check_sound()


def test_approvers_are_asked_after_again_when_a_grant_is_spent(team: Team) -> None:
    """One whose key has ended counts no more."""
    request = team.granted()
    team.end("ann")
    with pytest.raises(NeedsApproval, match="has 1 of") as ended:
        team.thread().resume(world=SHELL)

    assert isinstance(ended.value.request, Request)
    assert ended.value.request.id == request.id
    assert ended.value.request.approved_by == ("bob",)
    team.approve(request, "carl")
    assert team.thread().resume(world=SHELL).state == {"n": 2}
    team.check_sound()


def test_nobody_becomes_another_person(memory: Team) -> None:
    """Under the roster before it, whoever holds the key would go on as the person it was."""
    for who, person in (("ann", "worker"), ("twin", "somebody else")):
        with pytest.raises(NotTrusted, match="lost a right without a cutoff"):
            memory.change(who, person=person)


def test_a_key_that_has_expired_approves_nothing(team: Team) -> None:
    """By the time at which the grant is spent."""
    request = team.granted()
    expire(team.world, "bob", request.statement.expires - timedelta(minutes=30))
    assert team.fresh().judge(world=SHELL).outcome is Outcome.ALLOW
    team.later(minutes=31)

    assert team.fresh().judge(world=SHELL).outcome is Outcome.NEEDS_APPROVAL
    with pytest.raises(NeedsApproval, match="has 1 of"):
        team.fresh().resume(world=SHELL)


def test_a_denial_is_for_good(team: Team) -> None:
    """It counts by the roster that it was recorded under, whatever becomes of the key."""
    request = team.granted()
    team.store("carl").deny(request.id, reason="no")
    team.end("carl")

    with pytest.raises(ResumeRefused, match="denied by carl"):
        team.thread().resume(world=SHELL)


# ---------------------------------------------------------------------- paused


def test_while_paused_one_may_ask_and_be_approved_and_not_resume(team: Team) -> None:
    """It is spent only after the unpause, by the same approvals."""
    team.thread().save({"n": 1}, world=READ)
    team.thread("operator").pause("looks odd")
    request = team.ask()
    team.approve(request)
    before = team.everything()
    with pytest.raises(ResumeRefused, match="operator: looks odd"):
        team.thread().resume(world=SHELL)
    with pytest.raises(ResumeRefused, match="is paused"):
        team.thread().resume(world=READ)
    assert team.everything() == before
    assert team.thread().judge(world=READ).outcome is Outcome.REFUSE
    team.thread("operator").unpause("fine")

    assert team.thread().resume(world=SHELL).state == {"n": 1}
    assert team.newest(Kind.RESUME).request == request.id


# ---------------------------------------------------------------------- busy


def test_a_young_session_is_not_taken_over(team: Team) -> None:
    """Nor does anybody ask for it; its own process goes on, and others may once it is old."""
    team.apply(policy(takeover="10m"))
    team.pool("pods", "worker", "spare")
    team.thread().save(1, world=READ)
    before = team.everything()
    for world in (READ, SHELL):
        with pytest.raises(Busy, match="may be taken over at 0:10:00"):
            team.thread("spare").resume(world=world)
    with pytest.raises(ResumeRefused, match="may be taken over"):
        team.thread("spare").save(2, world=READ)
    assert team.everything() == before
    assert team.thread().resume(world=READ).state == 1
    team.later(minutes=11)

    assert team.thread("spare").resume(world=READ).state == 1
    with pytest.raises(Superseded):
        team.thread().save(2, world=READ)


def test_a_handed_over_thread_is_not_busy(team: Team) -> None:
    """A handoff ends the session, so the next owner need not wait."""
    team.apply(policy(takeover="10m"))
    team.thread().save(1, world=READ)
    team.thread().handoff(to="spare", reason="yours")

    assert team.go_on("spare", world=READ) == 1


# ---------------------------------------------------------------------- pools and owners


def test_a_grant_of_a_pool_is_for_the_member_that_asked(team: Team) -> None:
    """Another member may go on with the thread, and needs a request of its own for this."""
    team.pool("pods", "worker", "spare")
    request = team.granted()

    with pytest.raises(NeedsApproval) as needs:
        team.thread("spare").resume(world=SHELL)
    assert isinstance(needs.value.request, Request)
    assert needs.value.request.id != request.id
    assert needs.value.request.statement.requester == "spare"
    assert team.thread().resume(world=SHELL).state == {"n": 2}


def test_a_requester_whose_key_has_ended_does_not_spend(team: Team) -> None:
    """Nor does another member of its pool, which has not asked."""
    team.pool("pods", "worker", "spare")
    team.granted()
    team.end("worker")
    with pytest.raises(NotTrusted):
        team.thread().resume(world=SHELL)
    with pytest.raises(NeedsApproval, match="has 0 of"):
        team.thread("spare").resume(world=SHELL)


# ---------------------------------------------------------------------- handles


def test_a_refused_resume_is_no_load(team: Team) -> None:
    """Whoever had to load before the next save still has to: it was shown nothing."""
    team.pool("pods", "worker", "spare")
    old, new = team.thread(), team.thread("spare")
    old.save(1, world=READ)
    new.resume(world=READ)
    new.save(2)
    with pytest.raises(NeedsApproval):
        old.resume(world=SHELL)
    for _ in range(2):
        with pytest.raises(Superseded):
            old.save("stale", world=READ)
    with pytest.raises(NeedsApproval):
        old.resume(world=SHELL)
    with pytest.raises(Superseded):
        old.save("stale", world=READ)

    assert old.resume(world=READ).state == 2
    assert old.save(3).seq == len(team.kinds()) - 1


def test_a_refused_resume_does_not_hide_what_others_saved(team: Team) -> None:
    """The same for a handle that has no session."""
    reader = team.fresh()
    team.thread().save(1, world=READ)
    reader.load()
    team.thread().save(2, world=READ)
    with pytest.raises(NeedsApproval):
        reader.resume(world=SHELL)
    with pytest.raises(HeadMoved):
        reader.save("stale", world=READ)

    assert reader.load().state == 2
    assert reader.save(3, world=READ).seq == len(team.kinds()) - 1


def test_a_refused_resume_leaves_a_session_as_it_was(team: Team) -> None:
    """Who runs, asks for more and does not get it goes on with what it had."""
    team.thread().save(1, world=READ)
    team.ask()
    team.thread().save(2)

    assert team.kinds()[-2:] == ["request", "checkpoint"]
    assert team.fresh().load().world == READ


# ---------------------------------------------------------------------- races and failures


def test_of_two_that_race_for_one_grant_one_gets_it(team: Team) -> None:
    """The other finds its place taken, looks anew, and finds the grant spent."""
    team.granted()
    first, second = team.world.open("worker", gated=True), team.world.open("worker", gated=True)
    won: list[Any] = []
    first.storage.appending.before = lambda: won.append(second.thread("t").resume(world=SHELL))
    with pytest.raises(NeedsApproval):
        first.thread("t").resume(world=SHELL)

    assert [loaded.state for loaded in won] == [{"n": 2}]
    assert [kind for kind, body in team.entries() if kind == "resume" and body.request] == [
        "resume"
    ]
    team.check_sound()


@pytest.mark.parametrize("what", ["pause", "deny", "save", "handoff", "erase"])
def test_what_comes_before_the_decision_is_written_counts(team: Team, what: str) -> None:
    """Between judging and writing somebody else writes: all is judged anew."""
    request = team.granted()
    store = team.world.open("worker", gated=True)
    doing = {
        "pause": lambda: team.thread("operator").pause("stop"),
        "deny": lambda: team.store("carl").deny(request.id, reason="no"),
        "save": lambda: team.thread().save({"n": 3}, world=READ),
        "handoff": lambda: team.thread().handoff(to="spare", reason="yours"),
        "erase": lambda: team.thread("officer").erase(reason="asked for"),
    }
    store.storage.appending.before = doing[what]
    with pytest.raises(SealpointError) as refused:
        store.thread("t").resume(world=SHELL)

    expected = {
        "pause": ResumeRefused,
        "deny": ResumeRefused,
        "save": NeedsApproval,
        "handoff": NotOwner,
        "erase": Erased,
    }
    assert type(refused.value) is expected[what]
    assert not any(body and body.request for kind, body in team.entries() if kind == "resume")


def test_an_approval_that_comes_late_is_seen(team: Team) -> None:
    """An entry that moves no basis is let pass, and what it says is taken in."""
    team.thread().save({"n": 1}, world=READ)
    request = team.ask()
    team.approve(request, "ann")
    store = team.world.open("worker", gated=True)
    thread = store.thread("t")
    with pytest.raises(NeedsApproval):
        thread.resume(world=SHELL)
    team.approve(request, "bob")

    assert thread.resume(world=SHELL).state == {"n": 1}


@pytest.mark.parametrize("after", [False, True])
def test_a_storage_that_fails_releases_nothing_unless_it_was_written(
    team: Team, *, after: bool
) -> None:
    """What lies at the position says whether the decision stands; then the state is released."""
    team.granted()
    store = team.world.open("worker", gated=True)
    store.storage.fail(StorageUnavailable("disk is gone"), after=after)
    if after:
        assert store.thread("t").resume(world=SHELL).state == {"n": 2}
    else:
        with pytest.raises(StorageUnavailable):
            store.thread("t").resume(world=SHELL)

        assert store.thread("t").resume(world=SHELL).state == {"n": 2}
    assert team.kinds()[-1] == "resume"
    assert store.thread("t").save({"n": 3}).seq == len(team.kinds()) - 1


def test_an_anchor_that_fails_leaves_a_grant_spent_and_nothing_released(team: Team) -> None:
    """Allowed, not released: the decision stands, so the grant does not."""
    request = team.granted()
    store = team.world.open("worker", gated=True)
    store.anchor.fail(AnchorUnavailable("anchor is gone"))
    with pytest.raises(AnchorUnavailable):
        store.thread("t").resume(world=SHELL)

    assert team.newest(Kind.RESUME).request == request.id
    assert team.kinds()[-1] == "resume"
    with pytest.raises(NeedsApproval):
        store.thread("t").resume(world=SHELL)
    with pytest.raises(NeedsApproval):
        team.fresh().resume(world=SHELL)
    team.check_sound()


class _Crash(BaseException):
    """The process ends."""


def test_a_crash_after_the_decision_leaves_it_allowed_and_not_released(team: Team) -> None:
    """Its session has no entry; the grant is spent, and the thread goes on as usual."""
    request = team.granted()

    def crash(event: Any) -> None:
        if event.code == "session-opened":
            raise _Crash

    store = team.world.open("worker", gated=True, on_event=crash)
    with pytest.raises(_Crash):
        store.thread("t").resume(world=SHELL)

    assert team.newest(Kind.RESUME).request == request.id
    assert team.kinds()[-1] == "resume"
    with pytest.raises(NeedsApproval):
        team.fresh().resume(world=SHELL)
    assert team.fresh().resume(world=READ).state == {"n": 2}
    team.check_sound()


def test_a_crash_before_the_decision_leaves_the_grant(team: Team) -> None:
    """Nothing was written, so nothing was spent."""
    team.granted()
    store = team.world.open("worker", gated=True)
    store.storage.fail(_Crash(), after=False)
    with pytest.raises(_Crash):
        store.thread("t").resume(world=SHELL)

    assert team.fresh().resume(world=SHELL).state == {"n": 2}


def test_the_decision_is_written_before_the_state_is_given(team: Team) -> None:
    """When the session is announced, its entry is in the store and the anchor has seen it."""
    team.granted()
    seen: list[Any] = []

    def look(event: Any) -> None:
        if event.code == "session-opened":
            position = team.world.position("t")
            seen.append((team.kinds()[-1], position is not None and position.seq))

    store = team.world.open("worker", gated=True, on_event=look)
    store.thread("t").resume(world=SHELL)

    assert seen == [("resume", len(team.kinds()) - 1)]


def test_a_resume_is_one_append_and_changes_no_blob(team: Team) -> None:
    """What it costs over a load is one entry."""
    team.granted()
    store = team.world.open("worker", gated=True)
    store.thread("t").resume(world=SHELL)

    assert store.storage.groups == [1]
    assert store.storage.written == set()


def test_verdicts_can_be_given_through_the_thread(memory: Team) -> None:
    """What the store does by the id of a request, its thread does as well."""
    memory.thread().save(1, world=READ)
    request = memory.ask()
    memory.thread("ann").operations.answer(request.id, Verdict.APPROVE, "fine")
    memory.thread("bob").operations.answer(request.id, Verdict.APPROVE, "fine")

    assert [each.status for each in memory.thread().requests()] == ["approved"]
    assert memory.thread().resume(world=SHELL).state == 1
    assert memory.thread().requests() == ()
