# SPDX-License-Identifier: Apache-2.0
"""Pausing, handing off, answering and breaking the glass: who may, and what others then meet."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.errors import (
    AnchorUnavailable,
    Erased,
    Forged,
    NeedsApproval,
    NotOwner,
    NotTrusted,
    Paused,
    RequestClosed,
    ResumeRefused,
    SealpointError,
    StorageUnavailable,
    Superseded,
    UnknownThread,
    UsageError,
)
from sealpoint.gate import Request, Status, Thread
from sealpoint.ledger import Kind
from sealpoint.signing import Role, Verdict, attest
from tests.ledgers import identity, key
from tests.unit.gate.team import READ, SHELL, Team, policy

_NO_REASONS: list[Any] = ["", "  ", "\n", "\u200b", "x" * 4097, 5, None]


# ---------------------------------------------------------------------- pausing


def test_a_pause_reaches_a_worker_at_its_next_save(team: Team) -> None:
    """In any process; nothing of the save is written, and its session goes on afterwards."""
    worker = team.thread()
    worker.save(1, world=READ)
    team.thread("operator").pause("looks odd")
    before = team.everything()
    for _ in range(2):
        with pytest.raises(Paused, match="paused, by 'operator' in entry 3"):
            worker.save(2, world=READ)
    with pytest.raises(Paused):
        team.fresh().save(2, world=READ)
    assert team.everything() == before
    team.thread("operator").unpause("fine")
    worker.save(2)

    assert team.kinds() == [
        "genesis",
        "resume",
        "checkpoint",
        "pause",
        "unpause",
        "checkpoint",
    ]
    assert team.fresh().load().world == READ
    team.check_sound()


def test_a_paused_thread_can_be_read(team: Team) -> None:
    """A pause stops what goes on, not who looks."""
    team.thread().save(1, world=READ)
    team.thread("operator").pause("looks odd")

    assert team.fresh().load().state == 1
    assert len(list(team.fresh().history())) == 1


def test_pausing_twice_records_nothing_more(team: Team) -> None:
    """The position of the pause in force is told."""
    team.thread().save(1, world=READ)

    assert team.thread("operator").pause("looks odd") == 3
    assert team.thread("chief").pause("very odd") == 3
    assert team.kinds().count("pause") == 1


def test_only_what_is_paused_is_unpaused(team: Team) -> None:
    """Otherwise the call is wrong, and nothing is recorded."""
    team.thread().save(1, world=READ)
    with pytest.raises(UsageError, match="it is not paused"):
        team.thread("operator").unpause("fine")
    team.thread("operator").pause("looks odd")
    team.thread("operator").unpause("fine")
    with pytest.raises(UsageError, match="it is not paused"):
        team.thread("operator").unpause("fine")

    assert team.kinds().count("unpause") == 1


@pytest.mark.parametrize("who", ["worker", "spare", "ann", "officer", "stranger"])
def test_only_operators_pause(team: Team, who: str) -> None:
    """Neither the owner nor an approver; what is paused stays so."""
    team.thread().save(1, world=READ)
    with pytest.raises(NotTrusted):
        team.thread(who).pause("mine")
    team.thread("operator").pause("looks odd")
    before = team.everything()
    with pytest.raises(NotTrusted):
        team.thread(who).unpause("fine")

    assert team.everything() == before


@pytest.mark.parametrize("reason", _NO_REASONS)
def test_every_act_needs_a_reason(memory: Team, reason: Any) -> None:
    """A reason says something that can be seen, within bounds."""
    memory.thread().save(1, world=READ)
    request = memory.ask()
    before = memory.everything()
    operator = memory.thread("operator")
    acts: list[Callable[[], object]] = [
        lambda: operator.pause(reason),
        lambda: operator.unpause(reason),
        lambda: memory.thread().handoff(to="spare", reason=reason),
        lambda: memory.store("ann").approve(request.id, reason=reason),
        lambda: memory.store("ann").deny(request.id, reason=reason),
        lambda: memory.store("chief").break_glass(request.id, reason=reason),
    ]
    for act in acts:
        with pytest.raises(UsageError, match="reason"):
            act()

    assert memory.everything() == before


def test_nothing_is_done_to_what_is_not_there(team: Team) -> None:
    """A name that nobody has saved under, and a thread that was erased."""

    def refused(error: type[SealpointError]) -> None:
        acts: list[Callable[[], int]] = [
            lambda: team.thread("operator").pause("odd"),
            lambda: team.thread("operator").unpause("odd"),
            lambda: team.thread().handoff(to="spare", reason="yours"),
        ]
        for act in acts:
            with pytest.raises(error):
                act()

    refused(UnknownThread)
    team.thread().save(1, world=READ)
    team.thread("officer").erase(reason="asked for")
    before = team.everything()
    refused(Erased)

    assert team.everything() == before


def test_an_erasure_ends_a_pause(team: Team) -> None:
    """Nothing is left that could go on; a new generation begins unpaused."""
    team.thread().save(1, world=READ)
    team.thread("operator").pause("looks odd")
    team.thread("officer").erase(reason="asked for")
    team.fresh().save(2, world=READ)

    assert team.fresh().resume(world=READ).state == 2
    team.check_sound()


def test_results_of_a_prune_are_kept_while_paused(team: Team) -> None:
    """The owner may give up what is old; that lets nothing go on."""
    for number in range(3):
        team.thread().save(number, world=READ)
    team.thread("operator").pause("looks odd")
    team.thread().prune(keep_last=1)
    with pytest.raises(ResumeRefused, match="is paused"):
        team.fresh().resume(world=READ)

    assert team.kinds()[-1] == "prune"


def test_a_pause_that_loses_its_place_is_written_after(team: Team) -> None:
    """A checkpoint that comes first is accepted, and the next one is not."""
    team.thread().save(1, world=READ)
    operator = team.store("operator")
    operator.storage.appending.before = lambda: team.thread().save(2, world=READ)
    operator.thread("t").pause("looks odd")

    assert team.kinds()[-2:] == ["checkpoint", "pause"]
    with pytest.raises(Paused):
        team.thread().save(3, world=READ)


def test_a_save_that_loses_its_place_to_a_pause_is_refused(team: Team) -> None:
    """And one that loses it to a pause that is over already is tried again."""
    team.thread().save(1, world=READ)
    team.store().storage.appending.before = lambda: team.thread("operator").pause("looks odd")
    with pytest.raises(Paused):
        team.thread().save(2, world=READ)
    team.thread("operator").unpause("fine")

    def both() -> None:
        team.thread("operator").pause("looks odd")
        team.thread("operator").unpause("fine")

    team.store().storage.appending.before = both
    team.thread().save(2, world=READ)

    assert team.kinds()[3:] == ["pause", "unpause", "pause", "unpause", "checkpoint"]


@pytest.mark.parametrize("after", [False, True])
def test_a_pause_whose_outcome_was_unknown_can_be_repeated(team: Team, *, after: bool) -> None:
    """What lies in the store decides."""
    team.thread().save(1, world=READ)
    operator = team.store("operator")
    operator.storage.fail(StorageUnavailable("disk is gone"), after=after)
    if after:
        operator.thread("t").pause("looks odd")
    else:
        with pytest.raises(StorageUnavailable):
            operator.thread("t").pause("looks odd")
    operator.thread("t").pause("looks odd")

    assert team.kinds().count("pause") == 1


def test_a_pause_stands_though_the_anchor_is_down(team: Team) -> None:
    """The operator is told, and the worker is stopped."""
    team.thread().save(1, world=READ)
    operator = team.store("operator")
    operator.anchor.fail(AnchorUnavailable("anchor is gone"))
    with pytest.raises(AnchorUnavailable):
        operator.thread("t").pause("looks odd")

    with pytest.raises(Paused):
        team.thread().save(2, world=READ)
    assert operator.thread("t").pause("looks odd") == 3


# ---------------------------------------------------------------------- handing off


def test_an_owner_gives_its_thread_away(team: Team) -> None:
    """Its session ends, its late save is refused, and the next owner goes on if people agree."""
    team.thread().save(1, world=READ)
    assert team.thread().handoff(to="spare", reason="yours") == 3
    with pytest.raises(Superseded):
        team.thread().save("late", world=READ)
    team.thread().load()
    with pytest.raises(NotOwner):
        team.thread().save("late", world=READ)
    with pytest.raises(NotOwner):
        team.fresh().resume(world=READ)

    assert team.go_on("spare", world=READ) == 1
    team.thread("spare").save(2)
    assert team.fresh("worker").load().state == 2
    assert team.newest(Kind.HANDOFF).statement is None
    team.check_sound()


def test_a_running_worker_of_the_old_owner_is_refused(team: Team) -> None:
    """Though its key is valid and its session is younger than the process that hands off."""
    worker = team.fresh()
    worker.save(1, world=READ)
    team.thread().handoff(to="spare", reason="yours")
    before = team.everything()
    for _ in range(2):
        with pytest.raises(Superseded):
            worker.save("late", world=READ)

    assert team.everything() == before


def test_a_thread_is_given_to_a_pool(team: Team) -> None:
    """Every member may go on with it."""
    team.pool("pods", "worker", "spare")
    team.thread("spare", "u").save(0, world=READ)
    team.thread("worker", "u").handoff(to="spare", reason="yours alone")
    with pytest.raises(NotOwner):
        team.thread("worker", "u").resume(world=READ)
    team.thread("spare", "u").handoff(to="pods", reason="everybody's")

    assert team.thread("worker", "u").resume(world=READ).state == 0


@pytest.mark.parametrize("to", ["nobody", "ann", "operator", "", "no\npool"])
def test_a_thread_is_given_to_writers_only(team: Team, to: str) -> None:
    """Otherwise nobody could go on with it."""
    team.thread().save(1, world=READ)
    before = team.everything()
    for who in ("worker", "operator"):
        with pytest.raises(UsageError, match="expected a writer"):
            team.thread(who).handoff(to=to, reason="yours")

    assert team.everything() == before


@pytest.mark.parametrize("who", ["spare", "ann", "officer", "stranger"])
def test_nobody_else_gives_a_thread_away(team: Team, who: str) -> None:
    """Another writer needs to be its owner, and others have no say."""
    team.thread().save(1, world=READ)
    before = team.everything()
    with pytest.raises(NotOwner if who == "spare" else NotTrusted):
        team.thread(who).handoff(to="spare", reason="mine")

    assert team.everything() == before


def test_an_operator_gives_a_thread_away_with_approval(team: Team) -> None:
    """The entry carries what was approved and by whom; one of two is not enough."""
    team.thread().save(1, world=READ)

    def handoff() -> int:
        return team.thread("operator").handoff(to="spare", reason="worker is gone")

    with pytest.raises(NeedsApproval) as needs:
        handoff()
    request = needs.value.request
    assert isinstance(request, Request)
    team.approve(request, "ann")
    with pytest.raises(NeedsApproval, match="1 of 2 approvals"):
        handoff()
    team.approve(request, "bob")
    seq = handoff()
    body = team.newest(Kind.HANDOFF)

    assert (request.statement.to, request.statement.requester) == ("spare", "operator")
    assert seq == len(team.kinds()) - 1
    assert body.statement.digest == request.id
    assert len(body.attestations) == 2
    assert team.thread("spare").resume(world=READ).state == 1
    with pytest.raises(NeedsApproval) as again:
        handoff()
    assert isinstance(again.value.request, Request)
    assert again.value.request.id != request.id
    team.check_sound()


def test_an_operators_handoff_is_for_one_owner_and_one_operator(team: Team) -> None:
    """Another owner, or another operator, needs another request."""
    team.thread().save(1, world=READ)
    team.pool("pods", "worker", "spare")
    with pytest.raises(NeedsApproval) as needs:
        team.thread("operator").handoff(to="spare", reason="gone")
    request = needs.value.request
    assert isinstance(request, Request)
    team.approve(request)
    for who, to in (("operator", "pods"), ("chief", "spare")):
        with pytest.raises(NeedsApproval, match="has 0 of"):
            team.thread(who).handoff(to=to, reason="gone")

    assert team.thread("operator").handoff(to="spare", reason="gone") == len(team.kinds()) - 1


def test_a_denied_handoff_is_refused(team: Team) -> None:
    """And so is one that the policy refuses, or where there is no policy."""
    team.thread().save(1, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        team.thread("operator").handoff(to="spare", reason="gone")
    assert isinstance(needs.value.request, Request)
    team.store("carl").deny(needs.value.request.id, reason="no")
    with pytest.raises(ResumeRefused, match="denied by carl"):
        team.thread("operator").handoff(to="spare", reason="gone")
    team.apply(policy(handoff_by_operator="refuse"))
    before = team.everything()
    with pytest.raises(ResumeRefused, match="does not let an operator"):
        team.thread("operator").handoff(to="spare", reason="gone")

    assert team.everything() == before


def test_an_expired_handoff_is_asked_for_anew(team: Team) -> None:
    """What was approved too late does not count."""
    team.thread().save(1, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        team.thread("operator").handoff(to="spare", reason="gone")
    assert isinstance(needs.value.request, Request)
    team.approve(needs.value.request)
    team.later(hours=1)
    with pytest.raises(NeedsApproval, match="has 0 of"):
        team.thread("operator").handoff(to="spare", reason="gone")


def test_a_paused_thread_is_handed_off_and_stays_paused(team: Team) -> None:
    """Whoever must stop a worker for good does both."""
    team.thread().save(1, world=READ)
    team.thread("operator").pause("looks odd")
    team.thread().handoff(to="spare", reason="yours")
    team.approve(team.ask("spare", world=READ))
    with pytest.raises(ResumeRefused, match="is paused"):
        team.thread("spare").resume(world=READ)
    team.thread("operator").unpause("fine")

    assert team.thread("spare").resume(world=READ).state == 1


# ---------------------------------------------------------------------- answering


def _refused(error: type[SealpointError], act: Callable[[], object], team: Team) -> None:
    before = team.everything()
    with pytest.raises(error):
        act()
    assert team.everything() == before


@pytest.mark.parametrize(
    "who", ["worker", "twin", "spare", "operator", "chief", "officer", "far", "stranger"]
)
def test_who_does_not_count_is_refused_at_once(team: Team, who: str) -> None:
    """The requester, the requester's other identity, and whoever is no approver here."""
    team.thread().save(1, world=READ)
    request = team.ask()

    _refused(NotTrusted, lambda: team.store(who).approve(request.id, reason="fine"), team)
    assert team.thread().requests()[0].approved_by == ()


def test_who_asked_may_withdraw(team: Team) -> None:
    """With any identity of its person; others who are no approvers may not deny."""
    team.thread().save(1, world=READ)
    request = team.ask()
    for who in ("spare", "operator", "far"):
        _refused(NotTrusted, partial(team.store(who).deny, request.id, reason="no"), team)
    team.store("worker").deny(request.id, reason="changed my mind")

    assert team.thread().requests()[0].status is Status.DENIED
    with pytest.raises(ResumeRefused, match="denied by worker"):
        team.thread().resume(world=SHELL)


def test_a_person_counts_once(team: Team) -> None:
    """With two identities, and however often: the first word stands, and no other is written."""
    team.thread().save(1, world=READ)
    request = team.ask()
    first = team.store("bob").approve(request.id, reason="fine")
    written = len(team.kinds())
    for who, reason in (("bobby", "fine"), ("bob", "still fine"), ("bob", "fine")):
        assert team.store(who).approve(request.id, reason=reason) == first
    (found,) = team.thread().requests()

    assert len(team.kinds()) == written
    assert (found.approved_by, found.status, found.needed) == (("bob",), Status.OPEN, 2)
    assert (found.attestations, found.ignored) == ((first,), ())
    with pytest.raises(NeedsApproval, match="has 1 of"):
        team.thread().resume(world=SHELL)


def test_nothing_is_said_to_what_is_closed(team: Team) -> None:
    """Denied, expired, void by another policy, or moved on from."""
    team.thread().save(1, world=READ)
    request = team.ask()
    team.store("carl").deny(request.id, reason="no")

    def approve() -> None:
        team.store("ann").approve(request.id, reason="fine")

    _refused(RequestClosed, approve, team)
    _refused(RequestClosed, lambda: team.store("ann").deny(request.id, reason="no"), team)
    _refused(RequestClosed, lambda: team.store("chief").break_glass(request.id, reason="x"), team)
    team.thread().save(2, world=READ)
    _refused(RequestClosed, approve, team)
    request = team.ask()
    team.apply(policy("another"))
    _refused(RequestClosed, approve, team)


def test_whoever_notices_an_expiry_records_it(team: Team) -> None:
    """Once; from then on the clock cannot bring it back."""
    team.thread().save(1, world=READ)
    request = team.ask()
    start = team.world.clock
    team.later(hours=2)
    with pytest.raises(RequestClosed, match="expired"):
        team.store("ann").approve(request.id, reason="fine")
    assert team.kinds()[-1] == "expiry"
    team.world.clock = start
    with pytest.raises(RequestClosed, match="expired"):
        team.store("bob").approve(request.id, reason="fine")

    assert team.kinds().count("expiry") == 1
    assert team.thread().requests()[0].status is Status.EXPIRED


def test_an_attestation_made_elsewhere_is_relayed_by_anybody(team: Team) -> None:
    """It counts by its own proof; who relays it vouches for nothing."""
    team.thread().save(1, world=READ)
    request = team.ask()
    for who, relayed_by in (("ann", "worker"), ("bob", "officer")):
        word = attest(key(who), request.id, Verdict.APPROVE, "from my own machine")
        team.store(relayed_by).relay(word)

    assert team.thread().requests()[0].approved_by == ("ann", "bob")
    assert team.thread().resume(world=SHELL).state == 1


def test_an_attestation_that_was_changed_is_not_relayed(team: Team) -> None:
    """Turned round, given another reason, or under another name."""
    team.thread().save(1, world=READ)
    request = team.ask()
    word = attest(key("ann"), request.id, Verdict.DENY, "not on Fridays")
    for changes in (
        {"verdict": Verdict.APPROVE},
        {"reason": "fine"},
        {"credential": key("bob").key},
        {"proof": "00" * 64},
    ):
        changed = replace(word, **changes)
        _refused(Forged, partial(team.store().relay, changed), team)
    stranger = attest(key("stranger"), request.id, Verdict.APPROVE, "fine")
    _refused(NotTrusted, lambda: team.store().relay(stranger), team)


def test_an_approval_that_loses_its_place_to_a_denial_is_refused(team: Team) -> None:
    """It is decided anew on what is there then."""
    team.thread().save(1, world=READ)
    request = team.ask()
    ann = team.store("ann")
    ann.requests()
    ann.storage.appending.before = lambda: team.store("carl").deny(request.id, reason="no")
    with pytest.raises(RequestClosed):
        ann.approve(request.id, reason="fine")
    assert "approval" not in team.kinds()


def test_an_approval_that_loses_its_place_to_a_save_is_refused(team: Team) -> None:
    """The thread has moved on from what the approver saw."""
    team.thread().save(1, world=READ)
    request = team.ask()
    ann = team.store("ann")
    ann.storage.appending.before = lambda: team.thread().save(2, world=READ)
    with pytest.raises(RequestClosed):
        ann.approve(request.id, reason="fine")
    assert "approval" not in team.kinds()


def test_two_approvals_at_once_both_count(team: Team) -> None:
    """One lets the other pass and is written after it."""
    team.thread().save(1, world=READ)
    request = team.ask()
    ann = team.store("ann")
    ann.storage.appending.before = lambda: team.approve(request, "bob")
    ann.approve(request.id, reason="fine")

    assert team.thread().resume(world=SHELL).state == 1


@pytest.mark.parametrize("verb", ["pause", "approve", "deny"])
def test_an_action_that_lost_its_place_locks_the_thread(
    team: Team, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """A member that appends all the time delays it by one attempt, and not for ever."""
    team.thread().save(1, world=READ)
    request = team.ask()
    actor = team.store("operator" if verb == "pause" else "ann")
    locked: list[bytes] = []
    alone = actor.storage.alone

    def locking(thread: bytes) -> AbstractContextManager[None]:
        locked.append(thread)
        return alone(thread)

    monkeypatch.setattr(actor.storage, "alone", locking)
    actor.storage.appending.before = lambda: team.approve(request, "bob")
    if verb == "pause":
        actor.thread("t").pause("looks odd")
    else:
        getattr(actor, verb)(request.id, reason="mine")

    assert len(locked) == 1


# ---------------------------------------------------------------------- breaking the glass


def test_broken_glass_lets_one_request_pass_and_is_recorded(team: Team) -> None:
    """At once, with its reason, and once."""
    team.thread().save(1, world=READ)
    request = team.ask()
    team.store("chief").break_glass(request.id, reason="production is down")

    assert team.thread().requests()[0].broken_glass == "chief: production is down"
    assert team.thread().requests()[0].status is Status.APPROVED
    assert team.thread().resume(world=SHELL).state == 1
    assert team.newest(Kind.BREAK_GLASS).attestation.reason == "production is down"
    with pytest.raises(NeedsApproval):
        team.thread().resume(world=SHELL)
    team.check_sound()


@pytest.mark.parametrize("who", ["operator", "worker", "ann", "stranger"])
def test_only_an_operator_so_marked_breaks_the_glass(team: Team, who: str) -> None:
    """Not even another operator."""
    team.thread().save(1, world=READ)
    request = team.ask()

    _refused(NotTrusted, lambda: team.store(who).break_glass(request.id, reason="down"), team)


def test_broken_glass_overrides_neither_pause_nor_denial(team: Team) -> None:
    """Each of them still refuses."""
    team.thread().save(1, world=READ)
    request = team.ask()
    team.thread("operator").pause("looks odd")
    team.store("chief").break_glass(request.id, reason="production is down")
    with pytest.raises(ResumeRefused, match="is paused"):
        team.thread().resume(world=SHELL)
    team.thread("operator").unpause("fine")
    team.store("carl").deny(request.id, reason="no")
    with pytest.raises(ResumeRefused, match="denied by carl"):
        team.thread().resume(world=SHELL)


@pytest.mark.parametrize("how", ["mark", "role", "key"])
def test_broken_glass_counts_by_the_newest_roster(memory: Team, how: str) -> None:
    """Whoever has lost the mark, the role or the key since lets nothing pass any more."""
    memory.thread().save(1, world=READ)
    request = memory.ask()
    memory.store("chief").break_glass(request.id, reason="production is down")
    assert memory.thread().requests()[0].status is Status.APPROVED
    memory.end("chief")
    keys = (identity("chief-2", Role.OPERATOR).keys[0],)
    if how == "mark":
        memory.change("chief", keys=keys, break_glass=False)
    elif how == "role":
        memory.change("chief", keys=keys, roles=(Role.APPROVER,))
    else:
        memory.enter(
            lambda document: replace(
                document,
                identities=tuple(each for each in document.identities if each.name != "chief"),
            )
        )
    with pytest.raises(NeedsApproval):
        memory.fresh().resume(world=SHELL)

    assert memory.thread().requests()[0].broken_glass is None
    assert memory.thread().requests()[0].status is Status.OPEN


def test_broken_glass_gives_no_thread_away(team: Team) -> None:
    """An operator's handoff needs another person, whom every reader can check."""
    team.thread().save(1, world=READ)

    def handoff() -> int:
        return team.thread("operator").handoff(to="spare", reason="gone")

    with pytest.raises(NeedsApproval) as needs:
        handoff()
    assert isinstance(needs.value.request, Request)
    with pytest.raises(UsageError, match="a handoff or a rollout always needs its approvals"):
        team.store("chief").break_glass(needs.value.request.id, reason="down")
    team.approve(needs.value.request, "ann", "bob")

    assert handoff() == len(team.kinds()) - 1
    team.check_sound()


def test_handles_have_the_names_of_the_contract(memory: Team) -> None:
    """What the store gives for a name has a gate."""
    assert isinstance(memory.thread(), Thread)
