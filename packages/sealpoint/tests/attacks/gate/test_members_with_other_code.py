# SPDX-License-Identifier: Apache-2.0
"""A member of the roster writes what the rules do not allow, and anchors it: no reader takes it.

A fresh process has nothing but the anchor, which the member has moved. A warm one knows the thread
from before. Both refuse, whether the entry is the newest one, lies under junk that any member may
write, or is buried under sessions of the same member; and `verify` finds it.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sealpoint.errors import (
    Forked,
    NeedsApproval,
    NotTrusted,
    SealpointError,
    Tampered,
)
from sealpoint.gate import ROLLOUTS, Request
from sealpoint.ledger import (
    AdoptBody,
    ExpiryBody,
    GenesisBody,
    HandoffBody,
    Kind,
    PruneBody,
    ResumeBody,
    UnpauseBody,
    VerdictBody,
)
from sealpoint.signing import Attestation, Statement
from tests.attacks.gate.attacked_team import BACKENDS, AttackedTeam
from tests.ledgers import SALT, identity
from tests.rogue import Rogue
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.ended import expire

_REFUSED = (NotTrusted, Tampered, Forked)

_Act = Callable[["_Scene"], Rogue]


class _Scene:
    """A thread of the worker's with two states, and everybody's process around it."""

    def __init__(self, team: AttackedTeam) -> None:
        self.team = team
        team.world.enrol(identity("second"))
        for number in range(2):
            team.thread().save({"n": number}, id=f"c{number}")

    def rogue(self, who: str) -> Rogue:
        """Somebody's process with other code."""
        return Rogue(self.team.store(who).core, who)

    def hand_over(self) -> None:
        """The worker gives the thread to another writer, who goes on with it."""
        self.team.fresh().handoff(to="spare", reason="on leave")
        self.team.go_on("spare", world=None)
        self.team.thread("spare").save({"n": 7})

    def pause(self) -> int:
        """An operator pauses the thread; the position of the pause."""
        self.team.fresh("operator").pause("stop")
        return self.team.find(Kind.PAUSE)

    def approved_handoff(self, to: str) -> tuple[Statement, tuple[Attestation, ...]]:
        """What an operator asked for and two people approved, as it lies on the thread."""
        with pytest.raises(NeedsApproval) as needs:
            self.team.fresh("operator").handoff(to=to, reason="on leave")
        request = needs.value.request
        assert isinstance(request, Request)
        self.team.approve(request)
        words = [body for _, body in self.team.entries() if isinstance(body, VerdictBody)]
        return request.statement, tuple(word.attestation for word in words)


def _through_a_pause(scene: _Scene) -> Rogue:
    scene.pause()
    rogue = scene.rogue("worker")
    rogue.resume("worker")
    rogue.save()
    return rogue


def _past_a_pause(scene: _Scene) -> Rogue:
    scene.pause()
    rogue = scene.rogue("worker")
    rogue.leave_out(pause=0)
    rogue.resume("worker")
    rogue.save()
    return rogue


def _on_in_a_session_through_a_pause(scene: _Scene) -> Rogue:
    scene.pause()
    rogue = scene.rogue("worker")
    rogue.save()
    return rogue


def _somebody_elses_thread(scene: _Scene) -> Rogue:
    rogue = scene.rogue("spare")
    rogue.resume("worker")
    rogue.save()
    return rogue


def _called_ones_own(scene: _Scene) -> Rogue:
    rogue = scene.rogue("spare")
    rogue.resume("spare")
    rogue.save()
    return rogue


def _in_somebody_elses_session(scene: _Scene) -> Rogue:
    rogue = scene.rogue("spare")
    rogue.save()
    return rogue


def _handed_to_oneself(scene: _Scene) -> Rogue:
    rogue = scene.rogue("spare")
    rogue.hand_off("spare")
    rogue.resume("spare")
    rogue.save()
    return rogue


def _handed_over_by_an_operator_alone(scene: _Scene) -> Rogue:
    scene.rogue("operator").hand_off("spare")
    rogue = scene.rogue("spare")
    rogue.resume("spare")
    rogue.save()
    return rogue


def _begun_anew_without_an_erasure(scene: _Scene) -> Rogue:
    rogue = scene.rogue("spare")
    rogue.write(Kind.GENESIS, GenesisBody(salt=SALT, name="t", owner="spare"), gen=1)
    rogue.resume("spare")
    rogue.save()
    return rogue


def _held_back_by_no_pause(scene: _Scene) -> Rogue:
    rogue = scene.rogue("worker")
    rogue.save(Kind.HELD)
    return rogue


def _after_it_was_given_away(scene: _Scene) -> Rogue:
    scene.team.fresh().handoff(to="spare", reason="on leave")
    rogue = scene.rogue("worker")
    rogue.leave_out(owner=0)
    rogue.resume("worker")
    rogue.save()
    return rogue


def _in_a_session_that_was_overtaken(scene: _Scene) -> Rogue:
    scene.team.fresh().save({"n": 9})  # another process of the worker's goes on
    rogue = scene.rogue("worker")
    rogue.leave_out(fence=1)
    rogue.save()
    return rogue


def _after_a_handoff_called_the_end_of_a_pause(scene: _Scene) -> Rogue:
    scene.pause()
    scene.team.fresh().handoff(to="spare", reason="on leave")
    rogue = scene.rogue("spare")
    rogue.leave_out(pause=len(rogue.rows) - 1)
    rogue.resume("spare")
    rogue.save()
    return rogue


def _taken_back_by_a_former_owner(scene: _Scene) -> Rogue:
    scene.hand_over()
    rogue = scene.rogue("worker")
    rogue.leave_out(owner=0, fence=1)
    _under_junk(rogue)
    rogue.leave_out()
    rogue.hand_off("worker")
    rogue.resume("worker")
    rogue.save()
    return rogue


def _taken_back_and_given_to_a_bystander(scene: _Scene) -> Rogue:
    scene.hand_over()
    rogue = scene.rogue("worker")
    rogue.leave_out(owner=0, fence=1)
    _under_junk(rogue)
    rogue.leave_out()
    rogue.hand_off("second")
    return rogue


def _of_a_generation_that_never_began(scene: _Scene) -> Rogue:
    rogue = scene.rogue("ann")
    rogue.write(Kind.EXPIRY, ExpiryBody(salt=SALT, request="0" * 64), gen=5)
    return rogue


def _by_an_approver(scene: _Scene) -> Rogue:
    rogue = scene.rogue("ann")
    rogue.resume("worker")
    rogue.save()
    return rogue


def _past_a_pause_by_an_entry_that_ends_none(scene: _Scene) -> Rogue:
    scene.pause()
    rogue = scene.rogue("worker")
    rogue.resume("worker", header={"pause": len(rogue.rows)})
    rogue.resume("worker")
    rogue.save()
    return rogue


def _under_an_older_roster(scene: _Scene) -> Rogue:
    rogue = scene.rogue("worker")
    rogue.resume("worker")
    rogue.save()
    rogue.write(Kind.RESUME, ResumeBody(salt=SALT, owner="worker", basis=0), roster=0)
    return rogue


def _right_after_an_erasure(scene: _Scene) -> Rogue:
    scene.team.fresh("officer").erase(reason="asked for")
    rogue = scene.rogue("ann")
    _under_junk(rogue)
    return rogue


def _saved_after_an_erasure(scene: _Scene) -> Rogue:
    scene.team.fresh("officer").erase(reason="asked for")
    rogue = scene.rogue("spare")
    rogue.save()
    rogue.write(Kind.PRUNE, PruneBody(salt=SALT, before=0))
    return rogue


def _erased_twice(scene: _Scene) -> Rogue:
    rogue = scene.rogue("officer")
    rogue.erase()
    rogue.erase()
    return rogue


def _erased_in_a_generation_that_never_began(scene: _Scene) -> Rogue:
    rogue = scene.rogue("officer")
    rogue.erase(gen=5)
    return rogue


def _erased_over_a_pause_that_never_was(scene: _Scene) -> Rogue:
    rogue = scene.rogue("officer")
    rogue.write(Kind.EXPIRY, ExpiryBody(salt=SALT, request="0" * 64), pause=2)
    rogue.erase()
    return rogue


def _adopted_by_an_approver(scene: _Scene) -> Rogue:
    rogue = scene.rogue("ann")
    rogue.write(Kind.ADOPT, AdoptBody(salt=SALT, reason="mine"))
    _under_junk(rogue)
    return rogue


def _of_another_generation_under_junk(scene: _Scene) -> Rogue:
    rogue = scene.rogue("ann")
    rogue.write(Kind.EXPIRY, ExpiryBody(salt=SALT, request="0" * 64), gen=5)
    rogue.write(Kind.EXPIRY, ExpiryBody(salt=SALT, request="1" * 64), gen=0)
    return rogue


def _handed_over_with_approval_past_a_handoff(scene: _Scene) -> Rogue:
    scene.hand_over()
    statement, words = scene.approved_handoff("second")
    rogue = scene.rogue("operator")
    rogue.write(Kind.ADOPT, AdoptBody(salt=SALT, reason="mine"), owner=0)
    body = HandoffBody(
        salt=SALT, owner="second", reason="on leave", statement=statement, attestations=words
    )
    rogue.write(Kind.HANDOFF, body)
    return rogue


def _with_an_expired_key(scene: _Scene, who: str) -> Rogue:
    """Somebody's process, once their key has expired and the thread has gone on since."""
    expire(scene.team.world, who, scene.team.world.clock + timedelta(hours=1))
    scene.team.fresh().save({"n": 8})
    scene.team.later(hours=2)
    scene.team.fresh("chief").pause("look")
    scene.team.fresh("chief").unpause("looked")
    return scene.rogue(who)


def _past_a_pause_that_an_expired_key_ended(scene: _Scene) -> Rogue:
    ended = _with_an_expired_key(scene, "operator")
    scene.team.fresh("chief").pause("stop")
    ended.write(Kind.UNPAUSE, UnpauseBody(salt=SALT, reason="mine"))
    rogue = scene.rogue("worker")
    rogue.resume("worker")
    rogue.save()
    return rogue


def _unpaused_by_an_expired_key_at_an_earlier_time(scene: _Scene) -> Rogue:
    rogue = _with_an_expired_key(scene, "operator")
    scene.team.fresh("chief").pause("stop")
    at = scene.team.world.clock - timedelta(days=1)
    rogue.write(Kind.UNPAUSE, UnpauseBody(salt=SALT, reason="mine"), at=at)
    return rogue


def _erased_by_an_expired_key(scene: _Scene) -> Rogue:
    _with_an_expired_key(scene, "officer").erase()
    rogue = scene.rogue("spare")
    rogue.write(Kind.GENESIS, GenesisBody(salt=SALT, name="t", owner="spare"), gen=1)
    rogue.resume("spare")
    rogue.save()
    return rogue


def _owned_by_an_expired_key(scene: _Scene) -> Rogue:
    rogue = _with_an_expired_key(scene, "worker")
    rogue.resume("worker")
    rogue.save()
    return rogue


_ACTS: dict[str, _Act] = {
    act.__name__.strip("_").replace("_", " "): act
    for act in (
        _through_a_pause,
        _past_a_pause,
        _on_in_a_session_through_a_pause,
        _somebody_elses_thread,
        _called_ones_own,
        _in_somebody_elses_session,
        _handed_to_oneself,
        _handed_over_by_an_operator_alone,
        _begun_anew_without_an_erasure,
        _held_back_by_no_pause,
        _after_it_was_given_away,
        _in_a_session_that_was_overtaken,
        _after_a_handoff_called_the_end_of_a_pause,
        _taken_back_by_a_former_owner,
        _taken_back_and_given_to_a_bystander,
        _of_a_generation_that_never_began,
        _by_an_approver,
        _past_a_pause_by_an_entry_that_ends_none,
        _under_an_older_roster,
        _right_after_an_erasure,
        _saved_after_an_erasure,
        _erased_twice,
        _erased_in_a_generation_that_never_began,
        _erased_over_a_pause_that_never_was,
        _adopted_by_an_approver,
        _of_another_generation_under_junk,
        _handed_over_with_approval_past_a_handoff,
        _past_a_pause_that_an_expired_key_ended,
        _unpaused_by_an_expired_key_at_an_earlier_time,
        _erased_by_an_expired_key,
        _owned_by_an_expired_key,
    )
}


def _uncovered(_rogue: Rogue) -> None:
    """The entry is the newest of the thread."""


def _under_junk(rogue: Rogue) -> None:
    """Entries that anybody of the namespace may write lie on top."""
    for number in range(3):
        rogue.write(Kind.EXPIRY, ExpiryBody(salt=SALT, request=f"{number:064x}"))


def _under_more_of_the_same(rogue: Rogue) -> None:
    """Sessions of the same member lie on top, more than any reader reads."""
    owner = rogue.key.name
    for _ in range(20):
        rogue.resume(owner)
        rogue.save()


_COVERS = {"newest": _uncovered, "under junk": _under_junk, "buried": _under_more_of_the_same}


@pytest.fixture(params=BACKENDS)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[_Scene]:
    """A thread on each backend, with a local anchor."""
    team = AttackedTeam(tmp_path, request.param)
    yield _Scene(team)
    team.world.remove()


def _endings(scene: _Scene) -> list[SealpointError | object]:
    """What fresh honest processes get: the owner's, another writer's, an operator's, a reader's."""
    team = scene.team
    reader = team.world.open(None, read_only=True)
    calls: list[Callable[[], object]] = [
        lambda: team.fresh().load(),
        lambda: team.fresh().resume(world=None, deliberate="to see"),
        lambda: team.fresh().save({"n": 5}),
        lambda: team.fresh("spare").resume(world=None, deliberate="to see"),
        lambda: team.fresh("operator").pause("stop"),
        lambda: list(team.fresh("operator").history()),
        lambda: reader.thread("t").load(),
    ]
    found: list[SealpointError | object] = []
    for call in calls:
        try:
            found.append(call())
        except SealpointError as error:
            found.append(error)
    return found


_OWN_MATTER = {("held back by no pause", "buried"), ("under an older roster", "buried")}
"""A worker may save what it likes on its own thread; under later sessions only `verify` tells."""


@pytest.mark.parametrize(
    ("act", "cover"),
    [
        pytest.param(act, cover, marks=pytest.mark.in_turn(cover))
        for act in _ACTS
        for cover in _COVERS
        if (act, cover) not in _OWN_MATTER
    ],
)
def test_what_a_member_writes_against_the_rules_is_refused(
    scene: _Scene, act: str, cover: str
) -> None:
    """By every fresh process, by a warm one, and by the verification of everything."""
    team = scene.team
    warm = team.fresh("operator")
    warm.load()
    team.sound()
    rogue = _ACTS[act](scene)
    _COVERS[cover](rogue)
    rogue.anchor()

    endings = _endings(scene)
    assert all(isinstance(ending, _REFUSED) for ending in endings), endings
    with pytest.raises(_REFUSED):
        warm.load()
    assert not team.world.open(None, read_only=True).verify().ok


def test_a_checkpoint_that_no_pause_held_back_is_not_released(scene: _Scene) -> None:
    """Buried under later sessions of its worker it is still refused by name, and found."""
    rogue = scene.rogue("worker")
    held = rogue.save(Kind.HELD)
    _under_more_of_the_same(rogue)
    rogue.anchor()

    for call in (scene.team.fresh().load, lambda ref: scene.team.fresh().release(ref)):
        with pytest.raises(NotTrusted, match="only for a paused thread"):
            call(f"bought-{held}")
    assert not scene.team.world.open(None, read_only=True).verify().ok


def test_an_anchor_of_an_epoch_that_never_began_hides_no_pause(scene: _Scene) -> None:
    """A later epoch begins with other marks: no anchor leaves it, and no reader accepts it."""
    team = scene.team
    scene.pause()
    rogue = scene.rogue("worker")
    rogue.leave_out(pause=0)
    rogue.resume("worker")
    rogue.save()
    claimed = rogue.anchor(epoch=1)

    endings = _endings(scene)
    assert all(isinstance(ending, NotTrusted) for ending in endings), endings
    _under_more_of_the_same(rogue)
    with pytest.raises(AssertionError, match="no anchor was moved"):
        rogue.anchor()
    assert team.world.position("t") == claimed
    assert not team.world.open(None, read_only=True).verify().ok


def test_the_book_of_rollouts_is_not_erased(scene: _Scene) -> None:
    """A fresh process knows whose book it asks for, although the erasure took the name away."""
    team = scene.team
    rollout = team.store("operator").rollouts.propose([(READ, SHELL)], reason="release 42")
    team.approve(rollout)
    rogue = Rogue(team.store("officer").core, "officer", ROLLOUTS)
    rogue.erase()
    rogue.anchor()

    for who in ("operator", "ann"):
        with pytest.raises(NotTrusted, match="has no place on a thread"):
            team.world.open(who, gated=True).rollouts.list()
    report = team.world.open(None, read_only=True, gated=True).verify()
    assert not report.ok
    assert any("in the book of rollouts" in each.message for each in report.findings)


def test_an_honest_session_after_a_pause_is_taken(scene: _Scene) -> None:
    """The control: the same entries by our own code, in a thread that was paused and resumed."""
    team = scene.team
    team.fresh("operator").pause("stop")
    team.fresh("operator").unpause("go on")
    team.fresh().save({"n": 5})
    scene.hand_over()

    assert team.fresh("operator").load().state == {"n": 7}
    team.sound()
