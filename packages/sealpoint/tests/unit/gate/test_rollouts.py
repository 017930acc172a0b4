# SPDX-License-Identifier: Apache-2.0
"""Rollouts: a change of world that people accept once, for many threads and for nothing else."""

import dataclasses
import logging
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from sealpoint.errors import (
    Moved,
    NameInvalid,
    NeedsApproval,
    NotTrusted,
    RequestClosed,
    ResumeRefused,
    UnknownRequest,
    UsageError,
)
from sealpoint.gate import ROLLOUTS, Request, Status, shipped_policy
from sealpoint.ledger import Kind
from sealpoint.limits import ROLLOUT_DIFFERENCES_MAX
from sealpoint.signing import Action
from sealpoint.store import Key
from sealpoint.world import World
from tests.unit.gate.team import NARROW, READ, SHELL, Team, policy

_MAIL: dict[str, Any] = {"tools": [{"name": "read"}, {"name": "mail"}]}
_SHELL_ALONE: dict[str, Any] = {"tools": [{"name": "shell"}]}


def _proposed(team: Team, *pairs: tuple[Any, Any], who: str = "operator", **named: Any) -> Request:
    return team.store(who).rollouts.propose(
        pairs or [(READ, SHELL)], **({"reason": "release 42"} | named)
    )


def _accepted(team: Team, *pairs: tuple[Any, Any], **named: Any) -> Request:
    found = _proposed(team, *pairs, **named)
    team.approve(found)
    return found


def _saved(team: Team, *names: str, world: Any = READ) -> None:
    for name in names:
        team.thread(name=name).save({"n": 1}, id="c1", world=world)


# ---------------------------------------------------------------------- what it lets pass


def test_one_rollout_lets_every_thread_go_on(team: Team) -> None:
    """Two people approve once, each thread goes on, and its entry carries the proof."""
    _saved(team, "a", "b", "c")
    rollout = _accepted(team)
    for name in "abc":
        team.fresh(name=name).resume(world=SHELL)
        body = team.newest(Kind.RESUME, name)
        assert [each.digest for each in body.rollouts] == [rollout.id]
        assert len(body.attestations) == 2
        assert (body.rules, body.request) == (("tools",), None)
        assert "request" not in team.kinds(name)
    team.check_sound()


def test_it_waits_for_as_many_people_as_the_policy_asks_for(team: Team) -> None:
    """One approval is not enough, and the requester is none of them."""
    _saved(team, "t")
    rollout = _proposed(team)
    assert (rollout.status, rollout.needed) == (Status.OPEN, 2)
    team.approve(rollout, "ann")
    with pytest.raises(NeedsApproval):
        team.fresh().resume(world=SHELL)
    with pytest.raises(NotTrusted):
        team.store("operator").approve(rollout.id, reason="my own")
    team.approve(rollout, "bob")
    assert team.store().rollouts.get(rollout.id[:8]).status is Status.APPROVED
    team.fresh().resume(world=SHELL)


def test_where_a_reason_is_enough_it_holds_at_once(memory: Team) -> None:
    """The proposer's reason is what the policy asks for, and nobody else has to say anything."""
    memory.apply(policy(tools="reason"))
    _saved(memory, "t")
    with pytest.raises(ResumeRefused) as refused:
        memory.fresh().resume(world=SHELL)
    assert "sealpoint rollout plan" in refused.value.hint
    rollout = _proposed(memory)
    assert (rollout.status, rollout.needed) == (Status.APPROVED, 0)
    memory.fresh().resume(world=SHELL)
    assert memory.newest(Kind.RESUME).rollouts == (rollout.statement,)
    memory.check_sound()


def test_a_save_that_begins_a_session_passes_too(memory: Team) -> None:
    """Whoever saves without a resume is asked the same, and carries the same proof."""
    memory.apply(policy(tools="reason"))
    _saved(memory, "t")
    with pytest.raises(ResumeRefused):
        memory.fresh().save({"n": 2}, world=SHELL)
    rollout = _proposed(memory)
    memory.fresh().save({"n": 2}, world=SHELL)
    assert memory.newest(Kind.RESUME).rollouts == (rollout.statement,)
    memory.check_sound()


def test_where_the_policy_asks_for_nothing_no_rollout_is_named(memory: Team) -> None:
    """An entry carries no proof that it does not need."""
    _saved(memory, "t")
    _accepted(memory)
    memory.apply(policy(tools="record"))
    memory.fresh().resume(world=SHELL)
    assert memory.newest(Kind.RESUME).rollouts == ()


def test_the_one_with_the_most_approvals_is_taken(memory: Team) -> None:
    """A second rollout of the same worlds that still waits changes nothing."""
    _saved(memory, "t")
    first = _accepted(memory)
    _proposed(memory, reason="again", until=timedelta(days=20))
    memory.fresh().resume(world=SHELL)
    assert memory.newest(Kind.RESUME).rollouts == (first.statement,)


def test_a_warm_process_hears_of_it(team: Team) -> None:
    """A worker that was refused goes on as soon as people have approved, and not after a denial."""
    _saved(team, "t", "u")
    with pytest.raises(NeedsApproval):
        team.thread().resume(world=SHELL)
    rollout = _accepted(team)
    team.thread().resume(world=SHELL)
    team.store("carl").rollouts.revoke(rollout.id, reason="the tool misbehaves")
    with pytest.raises(NeedsApproval):
        team.thread(name="u").resume(world=SHELL)


# ---------------------------------------------------------------------- what it does not let pass


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"world": _MAIL}, id="another-world"),
        pytest.param({"world": None}, id="no-world"),
        pytest.param({"world": SHELL, "answer": "yes"}, id="an-answer"),
        pytest.param({"world": SHELL, "ref": "c1"}, id="an-older-checkpoint"),
    ],
)
def test_it_covers_nothing_but_its_worlds(memory: Team, wish: dict[str, Any]) -> None:
    """Whatever else is asked for needs its own approval."""
    _saved(memory, "t")
    memory.thread().save({"n": 2}, id="c2", world=READ)
    _accepted(memory)
    with pytest.raises(NeedsApproval):
        memory.fresh().resume(**wish)


def test_it_does_not_cover_the_way_back(memory: Team) -> None:
    """From the new value of a tool to the old one is another difference."""
    odd: dict[str, Any] = {"tools": [{"name": "read", "description": "odd"}]}
    _saved(memory, "t", world=odd)
    _accepted(memory, (READ, odd))
    with pytest.raises(NeedsApproval):
        memory.fresh().resume(world=READ)
    _accepted(memory, (odd, READ))
    memory.fresh().resume(world=READ)


def test_it_holds_whatever_else_differs_and_needs_nothing(team: Team) -> None:
    """A patch version, another prompt or an older world of the same tools void nothing."""
    team.apply(policy(runtime="record", prompts="record"))
    patched = {**SHELL, "runtime": {"langgraph": "1.2.1"}, "prompts": {"system": "be brief"}}
    _saved(team, "a", "b")
    _saved(team, "c", world={**READ, "runtime": {"langgraph": "1.1.0"}})
    rollout = _accepted(team)
    for name in "abc":
        team.fresh(name=name).resume(world=patched)
        assert team.newest(Kind.RESUME, name).rollouts == (rollout.statement,)
    team.check_sound()


def test_two_deploys_are_accepted_by_the_rollout_of_each(team: Team) -> None:
    """A thread that slept through one of them needs no third, and its entry carries both."""
    one, two, three = ({"tools": [{"name": "pay", "limit": each}]} for each in (1, 2, 3))
    _saved(team, "t", world=one)
    first, second = _accepted(team, (one, two)), _accepted(team, (two, three))
    team.fresh().resume(world=three)

    assert {each.digest for each in team.newest(Kind.RESUME).rollouts} == {first.id, second.id}
    team.check_sound()


def test_more_rollouts_than_one_entry_carries_do_not_help(memory: Team) -> None:
    """Then people are asked, or a rollout of all differences is proposed."""
    worlds = [{"tools": [{"name": "pay", "limit": each}]} for each in range(6)]
    _saved(memory, "t", world=worlds[0])
    for pair in pairwise(worlds):
        _accepted(memory, pair)
    with pytest.raises(NeedsApproval):
        memory.fresh().resume(world=worlds[5])
    memory.fresh().resume(world=worlds[4])


def test_a_request_asks_for_what_no_rollout_accepts(memory: Team) -> None:
    """Of a tool and a model, the accepted tool is not asked about again."""
    memory.apply(policy(tools="approve 3", model="approve 1"))
    _saved(memory, "t")
    found = memory.store("operator").rollouts.propose([(READ, SHELL)], reason="release 42")
    memory.approve(found, "ann", "bob", "carl")
    request = memory.ask(world={**SHELL, "model": {"name": "next"}})

    assert request.needed == 1
    memory.approve(request, "ann")
    memory.fresh().resume(world={**SHELL, "model": {"name": "next"}})
    memory.check_sound()


def test_a_pause_holds(memory: Team) -> None:
    """Nothing goes on while the thread is paused."""
    _saved(memory, "t")
    _accepted(memory)
    memory.thread("operator").pause("wait")
    with pytest.raises(ResumeRefused, match="paused"):
        memory.fresh().resume(world=SHELL)


@pytest.mark.parametrize("end", ["expired", "denied", "withdrawn", "policy"])
def test_it_ends(memory: Team, end: str) -> None:
    """By its date, by one denial, by its proposer, and with the policy that it was made under."""
    _saved(memory, "t")
    rollout = _accepted(memory, until=timedelta(hours=2))
    if end == "expired":
        memory.later(hours=2)
    elif end == "denied":
        memory.store("carl").deny(rollout.id, reason="no")
    elif end == "withdrawn":
        memory.store("operator").rollouts.revoke(rollout.id, reason="a mistake")
    else:
        memory.apply(policy(age="8d"))
    status = {"expired": Status.EXPIRED, "policy": Status.VOID}.get(end, Status.DENIED)
    assert memory.store().rollouts.get(rollout.id).status is status
    with pytest.raises(NeedsApproval):
        memory.fresh().resume(world=SHELL)


def test_a_clock_turned_back_revives_nothing(memory: Team) -> None:
    """The time of a thread counts too: what had ended for it stays ended."""
    _saved(memory, "t", "u")
    _accepted(memory, until=timedelta(hours=2))
    memory.later(hours=3)
    memory.thread().save({"n": 2}, id="c2", world=READ)
    memory.later(hours=-3)
    with pytest.raises(NeedsApproval):
        memory.fresh().resume(world=SHELL)
    memory.fresh(name="u").resume(world=SHELL)


def test_a_revoked_approver_counts_no_more(memory: Team) -> None:
    """Who approved is asked of the newest roster each time."""
    _saved(memory, "t")
    _accepted(memory)
    memory.end("ann")
    with pytest.raises(NeedsApproval):
        memory.fresh().resume(world=SHELL)


def test_the_glass_is_not_broken_for_many(memory: Team) -> None:
    """An emergency is one resume."""
    rollout = _proposed(memory)
    with pytest.raises(UsageError, match="break-glass is for one resume"):
        memory.store("chief").break_glass(rollout.id, reason="hurry")


# ---------------------------------------------------------------------- proposing


@pytest.mark.parametrize(
    ("pairs", "named", "words"),
    [
        ([], {}, "asks for nothing"),
        ([(READ, READ)], {}, "asks for nothing"),
        ([(READ, NARROW)], {}, "asks for nothing"),
        ([(READ, SHELL)], {"reason": " "}, "a reason is needed"),
        ([(READ, SHELL)], {"until": timedelta(days=91)}, "within 90 days"),
        ([(READ, SHELL)], {"until": timedelta(0)}, "within 90 days"),
        ([(READ, SHELL)], {"until": datetime(2020, 1, 1)}, "time zone"),  # noqa: DTZ001
        (
            [(READ, {"tools": [f"t{n}" for n in range(ROLLOUT_DIFFERENCES_MAX + 1)]})],
            {},
            f"at most {ROLLOUT_DIFFERENCES_MAX}",
        ),
    ],
)
def test_what_cannot_be_proposed(
    memory: Team, pairs: list[tuple[Any, Any]], named: dict[str, Any], words: str
) -> None:
    """It is refused in words, and nothing is written."""
    before = memory.everything()
    with pytest.raises(UsageError, match=words):
        memory.store("operator").rollouts.propose(pairs, **({"reason": "why"} | named))
    assert memory.everything() == before


def test_what_the_policy_refuses_nobody_can_accept(memory: Team) -> None:
    """Not in the proposal, and not later by another policy of the same digest."""
    memory.apply(policy(tools="refuse"))
    with pytest.raises(UsageError, match="refuses"):
        _proposed(memory)


def test_without_a_policy_nothing_is_proposed(memory: Team) -> None:
    """There is nobody who could be asked."""
    memory.enter(lambda document: msgspec.structs.replace(document, policies={}))
    with pytest.raises(UsageError, match="no policy is in force"):
        _proposed(memory)


@pytest.mark.parametrize("who", ["ann", "officer"])
def test_only_writers_and_operators_propose(memory: Team, who: str) -> None:
    """As with every request."""
    with pytest.raises(NotTrusted):
        _proposed(memory, who=who)


def test_a_change_that_waits_for_approval_is_not_proposed_again(team: Team) -> None:
    """People would end one of the two, and the other would hold."""
    rollout = _proposed(team)
    with pytest.raises(Moved, match="waits for approval") as refused:
        _proposed(team, (NARROW, _SHELL_ALONE), who="spare", until=timedelta(days=80))

    assert f"sealpoint approve {rollout.short}" in (refused.value.hint or "")
    assert [each.id for each in team.store("ann").rollouts.list()] == [rollout.id]


def test_of_two_processes_that_propose_at_once_one_has_proposed(team: Team) -> None:
    """The second loses its place in the book, looks again, and finds what the first wrote."""
    first, second = team.store("operator"), team.store("spare")
    first.storage.appending.before = lambda: _proposed(team, who="spare")
    with pytest.raises(Moved):
        first.rollouts.propose([(READ, SHELL)], reason="release 42")

    assert [each.statement.requester for each in second.rollouts.list()] == ["spare"]
    team.check_sound()


def test_a_rollout_that_holds_is_only_prolonged(memory: Team) -> None:
    """One that ends at about the same time is the same once more."""
    first = _accepted(memory)
    with pytest.raises(Moved, match="lets the same change pass until"):
        _proposed(memory, until=timedelta(days=14, hours=23))
    longer = _proposed(memory, until=timedelta(days=15))
    memory.store("ann").rollouts.revoke(first.id, reason="no")

    assert memory.store("ann").rollouts.get(longer.id).status is Status.OPEN


def test_what_was_revoked_has_ended_or_is_void_may_be_proposed_anew(memory: Team) -> None:
    """Nothing of it can hold any more."""
    memory.store("operator").rollouts.revoke(_proposed(memory).id, reason="wrong")
    _proposed(memory, until=timedelta(hours=1))
    memory.later(hours=2)
    _proposed(memory)
    memory.apply(policy(tools="approve 1"))

    assert _proposed(memory).status is Status.OPEN


def test_a_worker_may_propose_what_others_accept(memory: Team) -> None:
    """A pipeline with a writer's key asks, and people decide."""
    _saved(memory, "t")
    rollout = _proposed(memory, who="spare")
    assert rollout.statement.action is Action.ROLLOUT
    memory.approve(rollout)
    memory.fresh().resume(world=SHELL)


def test_unknown_and_ended_ones_are_told(memory: Team) -> None:
    """By the errors of requests."""
    rollout = _accepted(memory)
    rollouts = memory.store("carl").rollouts
    with pytest.raises(UnknownRequest):
        rollouts.get("0" * 8)
    with pytest.raises(UsageError):
        rollouts.get("0")
    rollouts.revoke(rollout.id, reason="no")
    with pytest.raises(RequestClosed):
        rollouts.revoke(rollout.id, reason="no")


def test_people_are_shown_what_differs(memory: Team) -> None:
    """Every difference that is accepted, with the values that the statement binds; nothing else."""
    odd: dict[str, Any] = {"tools": [{"name": "read", "description": "odd"}, {"name": "shell"}]}
    rollout = _proposed(memory, (READ, odd), (SHELL, _MAIL))
    found = memory.store("ann").rollouts.get(rollout.id).differences

    assert found is not None
    assert found.lines() == ("+ tool mail", "+ tool shell", "~ tool read: + description odd")


# ---------------------------------------------------------------------- the book


def test_the_book_is_no_thread_of_the_application(memory: Team) -> None:
    """It is not listed, cannot be opened by its name, and its requests are among the others."""
    rollout = _proposed(memory)
    store = memory.store("ann")
    assert ROLLOUTS not in store.threads()
    assert store.threads().complete
    with pytest.raises(NameInvalid, match="reserved"):
        store.thread(ROLLOUTS)
    assert [each.id for each in store.requests().requests] == [rollout.id]


def test_rollouts_are_of_one_namespace(memory: Team) -> None:
    """What was accepted in one lets nothing pass in another."""
    _accepted(memory)
    other = memory.world.open("operator", gated=True, namespace="billing")
    assert other.rollouts.list() == ()


# ---------------------------------------------------------------------- planning


def test_a_plan_counts_threads_by_their_world(team: Team) -> None:
    """With what differs and what the policy asks for; nothing is written."""
    _saved(team, "a", "b", "c")
    _saved(team, "d", world=SHELL)
    team.thread(name="e").save({"n": 1})
    before = team.everything()
    plan = team.store("operator").rollouts.plan(SHELL)
    (found,) = plan.worlds

    assert team.everything() == before
    assert (plan.threads, plan.same, plan.undeclared, plan.empty, plan.failed) == (5, 1, 1, 0, 0)
    assert (found.threads, set(found.examples)) == (3, {"a", "b", "c"})
    assert found.diff is not None
    assert found.diff.lines() == ("+ tool shell",)
    assert (str(found.measure), found.rollouts) == ("approve 2", ())


def test_a_plan_knows_what_has_been_accepted(memory: Team) -> None:
    """And what has been given up: a thread whose newest checkpoint was deleted is asked itself."""
    _saved(memory, "a", "b")
    memory.thread(name="b").resume(world=NARROW)
    memory.thread(name="b").save({"n": 2}, id="c2")
    memory.thread(name="b").adapter.delete([Key("", "c2")])
    rollout = _accepted(memory)
    (found,) = memory.store("operator").rollouts.plan(SHELL).worlds
    assert (found.threads, found.rollouts, found.left.passes) == (2, (rollout.id,), True)


def test_a_plan_tells_what_it_cannot_read(team: Team) -> None:
    """A thread that is not what the anchor has seen is counted, and named."""
    _saved(team, "a", "b")
    thread = team.world.thread_id("b")
    storage = team.store("operator").storage.inner
    newest, record = list(storage.scan(thread, 0))[-1]
    storage.truncate(thread, newest, record.header)
    plan = team.store("operator").rollouts.plan(SHELL)
    assert (plan.failed, plan.failures[0][0]) == (1, thread.hex())
    assert plan.worlds[0].threads == 1


# ---------------------------------------------------------------------- dev


def test_dev_lets_everything_pass_and_says_so_once(
    memory: Team, caplog: pytest.LogCaptureFixture
) -> None:
    """A store says once that its policy asks for nothing, however often it is asked."""
    memory.apply(shipped_policy("dev"))
    _saved(memory, "t")
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        store = memory.world.open("worker", gated=True)
        store.thread("t").resume(world=SHELL)
        store.thread("t").resume(world=_MAIL, ref="c1", answer="yes")
    said = [record for record in caplog.records if "everything but tampering" in record.message]
    assert len(said) == 1
    assert set(memory.newest(Kind.RESUME).rules) == {"tools", "answer"}


# ---------------------------------------------------------------------- from what waits


def test_what_many_threads_wait_for_is_accepted_once(team: Team) -> None:
    """Each of their requests names the change; the rollout has it once, and all of them go on."""
    _saved(team, "a", "b")
    _saved(team, "c", world=_MAIL)
    waiting = [team.ask(name=name) for name in "abc"]
    rollout = team.store("operator").rollouts.propose_for(
        waiting, reason="release 42", until=timedelta(days=1), actor="carl"
    )
    assert [leaf for leaf, _, _ in rollout.statement.differences] == ["tool.shell"]
    assert rollout.statement.actor == "carl"
    team.approve(rollout)
    for name in "abc":
        team.fresh(name=name).resume(world=SHELL)
        assert team.newest(Kind.RESUME, name).rollouts == (rollout.statement,)
    team.check_sound()


def test_a_rollout_for_requests_covers_nothing_else_of_them(memory: Team) -> None:
    """What a request asks for beside its worlds is still asked for."""
    memory.thread().save(1, world=READ, question="pay?")
    request = memory.ask(answer="yes")
    rollout = memory.store("operator").rollouts.propose_for([request], reason="release 42")
    memory.approve(rollout)

    with pytest.raises(NeedsApproval):
        memory.fresh().resume(world=SHELL, answer="yes")


def test_only_open_requests_for_other_worlds_are_rolled_out(memory: Team) -> None:
    """One that was denied, one whose thread went on, one for an answer alone, one of a rollout."""
    _saved(memory, "denied", "gone", "rolled")
    denied, gone = memory.ask(name="denied"), memory.ask(name="gone")
    memory.store("ann").deny(denied.id, reason="no")
    memory.thread(name="gone").save(2, world=READ)
    memory.thread(name="asks").save(1, world=READ, question="pay?")
    answer = memory.ask(name="asks", world=READ, answer="yes")
    rollouts = memory.store("operator").rollouts
    proposed = _proposed(memory)
    for request, error in (
        (denied, RequestClosed),
        (gone, UnknownRequest),
        (answer, UsageError),
        (proposed, UsageError),
    ):
        with pytest.raises(error):
            rollouts.propose_for([request], reason="release 42")
    with pytest.raises(UsageError):
        rollouts.propose_for([], reason="release 42")

    assert [each.id for each in rollouts.list()] == [proposed.id]


def test_a_request_that_lies_about_its_world_is_not_rolled_out(memory: Team) -> None:
    """What people would accept is what the thread was saved in, as the thread says it."""
    _saved(memory, "t")
    request = memory.ask()
    told = msgspec.structs.replace(
        request.statement, world_from=World.from_dict(_MAIL).digest, nonce="ab" * 16
    )
    lying = dataclasses.replace(request, id=told.digest, statement=told)

    with pytest.raises(UnknownRequest):
        memory.store("operator").rollouts.propose_for([lying], reason="release 42")
