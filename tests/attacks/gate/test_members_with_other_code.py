# SPDX-License-Identifier: Apache-2.0
"""A member of the roster writes what the rules do not allow, and anchors it: no reader takes it.

A fresh process has nothing but the anchor, which the member has moved. A warm one knows the thread
from before. Both refuse, whether the entry is the newest one, lies under junk that any member may
write, or is buried under sessions of the same member; and `verify` finds it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sealpoint.errors import Forked, NotTrusted, SealpointError, Tampered
from sealpoint.ledger import ExpiryBody, GenesisBody, Kind
from tests.attacks.gate.attacked_team import BACKENDS, AttackedTeam
from tests.ledgers import SALT, identity
from tests.rogue import Rogue

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

    def pause(self) -> int:
        """An operator pauses the thread; the position of the pause."""
        self.team.fresh("operator").pause("stop")
        return self.team.find(Kind.PAUSE)


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
    scene.team.fresh().handoff(to="spare", reason="on leave")
    scene.team.fresh("spare").save({"n": 7})
    rogue = scene.rogue("worker")
    rogue.leave_out(owner=0, fence=1)
    _under_junk(rogue)
    rogue.leave_out()
    rogue.hand_off("worker")
    rogue.resume("worker")
    rogue.save()
    return rogue


def _taken_back_and_given_to_a_bystander(scene: _Scene) -> Rogue:
    scene.team.fresh().handoff(to="spare", reason="on leave")
    scene.team.fresh("spare").save({"n": 7})
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


_OWN_MATTER = {("held back by no pause", "buried")}
"""A worker may save what it likes on its own thread; under later sessions `held` means nothing."""


@pytest.mark.parametrize(
    ("act", "cover"),
    [(act, cover) for act in _ACTS for cover in _COVERS if (act, cover) not in _OWN_MATTER],
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


def test_an_honest_session_after_a_pause_is_taken(scene: _Scene) -> None:
    """The control: the same entries by our own code, in a thread that was paused and resumed."""
    team = scene.team
    team.fresh("operator").pause("stop")
    team.fresh("operator").unpause("go on")
    team.fresh().save({"n": 5})
    team.fresh().handoff(to="spare", reason="on leave")
    team.fresh("spare").save({"n": 6})

    assert team.fresh("operator").load().state == {"n": 6}
    team.sound()
