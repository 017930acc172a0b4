# SPDX-License-Identifier: Apache-2.0
"""What was shown is what is confirmed: standings, and what refuses to act on another one."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from sealpoint.errors import Erased, Moved, NeedsApproval, RequestClosed, UnknownThread, UsageError
from sealpoint.gate import Request, Standing, Thread
from sealpoint.ledger import Kind
from tests.unit.gate.team import READ, SHELL, Team

_ACTS: dict[str, Callable[[Thread, Standing], int]] = {
    "pause": lambda thread, shown: thread.pause("odd", expect=shown),
    "unpause": lambda thread, shown: thread.unpause("fine", expect=shown),
    "handoff": lambda thread, shown: thread.handoff(to="spare", reason="gone", expect=shown),
}


def _shown(team: Team, act: str) -> Standing:
    """A thread on which an act would do something, as an operator is shown it."""
    for number in (1, 2):
        team.thread().save({"n": number}, world=READ)
    if act == "unpause":
        team.thread("operator").pause("looks odd")
    return team.thread("operator").standing()


def _moved(call: Callable[[], object], team: Team) -> tuple[str, ...]:
    """What a call says has moved; nothing is written by it."""
    before = team.kinds()
    with pytest.raises(Moved) as moved:
        call()
    assert team.kinds() == before
    assert all(words in str(moved.value) for words in moved.value.moved)
    return moved.value.moved


def test_it_says_where_a_thread_stands(team: Team) -> None:
    """Id, generation, epoch, owner, basis and head, each of them verified."""
    ref = team.thread().save({"n": 1}, world=READ)
    team.ask()
    found = team.thread("ann").standing()

    assert found.thread == team.world.thread_id("t").hex()
    assert (found.name, found.generation, found.epoch, found.owner) == ("t", 0, 0, "worker")
    assert (found.basis, found.basis_seq, found.head_seq) == (ref.entry, ref.seq, ref.seq + 1)
    assert found.head != found.basis
    assert found.paused is None


def test_it_says_by_whom_and_why_a_thread_is_paused(memory: Team) -> None:
    """With the person for whom it was done, as claimed."""
    memory.thread().save(1, world=READ)
    seq = memory.thread("operator").pause("looks odd", actor="ann")
    paused = memory.thread().standing().paused

    assert paused is not None
    assert (paused.seq, paused.by, paused.actor, paused.reason) == (
        seq,
        "operator",
        "ann",
        "looks odd",
    )
    assert paused.author_text == "operator for ann"
    assert paused.at == memory.world.clock


def test_there_is_none_of_what_is_not_there(memory: Team) -> None:
    """A name that nobody has saved under, and a thread that was erased."""
    with pytest.raises(UnknownThread):
        memory.thread().standing()
    memory.thread().save(1)
    memory.thread("officer").erase(reason="asked to")
    with pytest.raises(Erased):
        memory.thread().standing()


def test_a_standing_comes_back_as_it_was(memory: Team) -> None:
    """It is a value with one spelling and a digest, which a form may carry."""
    memory.thread().save(1, world=READ)
    memory.thread("operator").pause("looks odd", actor="ann")
    found = memory.thread().standing()
    back = Standing.parse(found.encode())

    assert back == found == memory.thread("operator").standing()
    assert (back.digest, hash(back)) == (found.digest, hash(found))
    assert memory.thread("operator").unpause("fine", expect=back)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"null",
        b"[" * 60_000,
        b"x" * (2**20 + 1),
        *({"head_seq": -1}, {"owner": 1}, {"more": 1}, {"basis": None}),
        {"paused": {"seq": 3}},
    ],
    ids=range(10),
)
def test_only_what_was_written_is_read(memory: Team, data: bytes | dict[str, Any]) -> None:
    """It was in other hands; whatever else they give is refused as such."""
    memory.thread().save(1)
    genuine = json.loads(memory.thread().standing().encode())
    given = data if isinstance(data, bytes) else msgspec.json.encode(genuine | data)
    with pytest.raises(UsageError, match="standing: "):
        Standing.parse(given)
    with pytest.raises(UsageError, match="canonical form"):
        Standing.parse(msgspec.json.format(msgspec.json.encode(genuine)))


@pytest.mark.parametrize("act", _ACTS)
def test_what_is_as_it_was_shown_is_done(team: Team, act: str) -> None:
    """Requests and words on them change nothing that was confirmed."""
    shown = _shown(team, act)
    team.ask()
    thread = team.thread("worker" if act == "handoff" else "operator")

    assert _ACTS[act](thread, shown) == len(team.kinds()) - 1
    team.check_sound()


@pytest.mark.parametrize("act", ["unpause", "handoff"])
def test_that_a_thread_went_on_is_a_change(team: Team, act: str) -> None:
    """The run that is let go on, or given away, is another one than was shown."""
    shown = _shown(team, act)
    if act == "unpause":
        team.thread().prune(keep_last=1)
    else:
        team.thread().save({"n": 3}, world=READ)
    found = _moved(lambda: _ACTS[act](team.thread("operator"), shown), team)

    assert found == (
        f"it continued: entry {len(team.kinds()) - 1} changed what a resume would mean",
    )


def test_a_pause_holds_although_the_run_went_on(team: Team) -> None:
    """Whoever wants to stop a run stops it: it never waits between two checkpoints."""
    shown = _shown(team, "pause")
    operator = team.store("operator")
    team.thread().save({"n": 3}, world=READ)
    operator.storage.appending.before = lambda: team.thread().save({"n": 4}, world=READ)

    assert operator.thread("t").pause("odd", expect=shown) == len(team.kinds()) - 1
    assert team.kinds()[-2:] == ["checkpoint", "pause"]


def _pause_again(team: Team) -> None:
    operator = team.thread("chief")
    if operator.paused:
        operator.unpause("fine")
        operator.pause("odd again")
    else:
        operator.pause("chief was first", actor="ann")


_MOVES: dict[str, tuple[Callable[[Team], object], str]] = {
    "paused": (_pause_again, "it was paused by chief"),
    "handed off": (
        lambda team: team.thread().handoff(to="spare", reason="holidays"),
        "it belongs to 'spare', and belonged to 'worker'",
    ),
}


@pytest.mark.parametrize("act", _ACTS)
@pytest.mark.parametrize("move", _MOVES)
def test_what_moved_is_told_and_nothing_is_done(team: Team, act: str, move: str) -> None:
    """Whether somebody was first before the call, or between its look and its write."""
    shown = _shown(team, act)
    change, words = _MOVES[move]
    operator = team.store("operator")
    operator.storage.appending.before = lambda: change(team)
    with pytest.raises(Moved) as raced:
        _ACTS[act](operator.thread("t"), shown)
    found = _moved(lambda: _ACTS[act](operator.thread("t"), shown), team)

    assert any(each.startswith(words) for each in raced.value.moved)
    assert found == raced.value.moved
    assert str(Kind.REQUEST) not in team.kinds()


def test_another_generation_epoch_or_thread_is_another(memory: Team) -> None:
    """An erased thread that began anew, an accepted restore, and a standing of another name."""
    shown = _shown(memory, "pause")
    memory.thread(name="u").save(1, world=READ)
    other = memory.thread("operator", "u").standing()
    thread = memory.thread("operator")

    assert _moved(lambda: thread.pause("odd", expect=other), memory) == (
        f"it is thread {shown.thread[:12]}, and {other.thread[:12]} was shown",
    )
    memory.thread("officer").erase(reason="asked to")
    memory.fresh().save(1, world=READ)
    assert "it was erased, and is now of generation 1" in _moved(
        lambda: thread.pause("odd", expect=shown), memory
    )
    assert _moved(
        lambda: thread.pause("odd", expect=replace(thread.standing(), epoch=1)), memory
    ) == ("a restored store was accepted: its epoch is 0, and was 1",)


def test_a_pause_that_is_in_force_already_was_shown_or_not(memory: Team) -> None:
    """Who saw it is told where it is; who did not see it learns of it."""
    before = _shown(memory, "pause")
    seq = memory.thread("operator").pause("odd")
    thread = memory.thread("operator")

    assert thread.pause("odd too", expect=thread.standing()) == seq
    assert _moved(lambda: thread.pause("odd too", expect=before), memory) == (
        f"it was paused by operator in entry {seq}: odd",
    )
    thread.unpause("fine")
    with pytest.raises(UsageError, match="it is not paused"):
        thread.unpause("fine", expect=thread.standing())


def test_a_standing_is_nothing_else(memory: Team) -> None:
    """A digest or a document is refused before anything is written."""
    shown = _shown(memory, "pause")
    given: Any
    for given in (shown.digest, shown.encode(), {}, 1):
        with pytest.raises(UsageError, match="expected a Standing"):
            memory.thread("operator").pause("odd", expect=given)


def test_an_operators_handoff_is_asked_for_what_was_shown(team: Team) -> None:
    """The request is bound as the act is: what moved is told instead of asking for it."""
    shown = _shown(team, "handoff")
    thread = team.thread("operator")
    with pytest.raises(NeedsApproval) as needs:
        thread.handoff(to="spare", reason="gone", expect=shown)
    request = needs.value.request
    assert isinstance(request, Request)
    team.approve(request)

    assert thread.handoff(to="spare", reason="gone", expect=shown) == len(team.kinds()) - 1


# ---------------------------------------------------------------------- requests that closed


def _answers(team: Team, request: Request) -> dict[str, Callable[[], object]]:
    return {
        "approve": lambda: team.store("ann").approve(request.id, reason="fine"),
        "deny": lambda: team.store("ann").deny(request.id, reason="no"),
        "break-glass": lambda: team.store("chief").break_glass(request.id, reason="down"),
    }


def _spend(team: Team, request: Request) -> None:
    team.approve(request, "bob", "carl")
    team.thread().resume(world=SHELL)


_CLOSINGS: dict[str, tuple[Callable[[Team, Request], object], str]] = {
    "denied": (
        lambda team, request: team.store("carl").deny(request.id, reason="no"),
        "it was denied by carl",
    ),
    "expired": (lambda team, _: team.later(hours=2), "it expired at 20"),
    "gone on": (
        lambda team, _: team.thread().save(2, world=READ),
        r"the thread has continued since, with entry 4 \(checkpoint\)",
    ),
    "used": (_spend, r"the thread has continued since, with entry 6 \(resume\)"),
}


@pytest.mark.parametrize("verb", ["approve", "deny", "break-glass"])
@pytest.mark.parametrize("how", _CLOSINGS)
def test_who_answers_too_late_is_told_what_closed_it(team: Team, verb: str, how: str) -> None:
    """Also if that happens between the look and the write."""
    team.thread().save(1, world=READ)
    request = team.ask()
    close, words = _CLOSINGS[how]
    answer = _answers(team, request)[verb]
    who = team.store("chief" if verb == "break-glass" else "ann")
    assert who.requests().requests == (request,)
    if how in ("denied", "gone on", "used"):
        who.storage.appending.before = lambda: close(team, request)
    else:
        close(team, request)
    for _ in range(2):
        with pytest.raises(RequestClosed, match=f"it is not open any more: {words}"):
            answer()
