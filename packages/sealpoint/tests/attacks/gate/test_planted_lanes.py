# SPDX-License-Identifier: Apache-2.0
"""A lane that a run was never given: of another writer, or of work that was deleted.

A run continues from one checkpoint of the main lane. Work in other lanes comes with it only if a
session on the way to that checkpoint saved it or released it.
"""

from collections.abc import Callable
from typing import Any

import pytest

from sealpoint.gate import Thread, shipped_policy
from sealpoint.ledger import Kind
from sealpoint.store import Key
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.rogue import Rogue
from tests.unit.gate.team import READ
from tests.unit.store.laned import put, results, saved

_WORLD = World.of(READ)
_PLANTED = {"pay": "mallory"}


@pytest.fixture(autouse=True)
def _policy(attacked: AttackedTeam) -> None:
    attacked.apply(shipped_policy("strict"))


def _foreign(attacked: AttackedTeam) -> None:
    """Another writer saves only a lane under the name of a thread, and gives the thread away."""
    saved(attacked.thread("spare"), put(_PLANTED, "s1", "sub", world=_WORLD))
    attacked.thread("spare").handoff(to="worker", reason="yours")


def _foreign_by_other_code(attacked: AttackedTeam) -> None:
    """The same, and a session on top that says that it released nothing."""
    _foreign(attacked)
    attacked.thread().handoff(to="spare", reason="not mine")
    rogue = Rogue(attacked.store("spare").core, "spare")
    rogue.resume("spare")
    rogue.save(lane="sub")
    rogue.hand_off("worker")
    rogue.anchor()


def _older(attacked: AttackedTeam) -> None:
    """Another writer, whose thread it is for a while, leaves of the worker's work only a lane."""
    saved(
        attacked.thread(),
        put({"n": 1}, "c1", world=_WORLD),
        put(_PLANTED, "s1", "sub"),
        put({"n": 2}, "c2"),
    )
    attacked.thread().handoff(to="spare", reason="hold this for me")
    attacked.fresh("spare").adapter.delete([Key("", "c1"), Key("", "c2")])
    attacked.fresh("spare").handoff(to="worker", reason="yours again")


_WAYS = {
    "foreign": _foreign,
    "foreign, by other code": _foreign_by_other_code,
    "older": _older,
}
_every_way = pytest.mark.parametrize("plant", _WAYS.values(), ids=_WAYS)


def _begun(thread: Thread) -> int | None:
    return thread.adapter.begin(world=READ, token="run")  # noqa: S106


def _read(thread: Thread, session: int | None, name: str | None = None) -> Any:
    found = thread.adapter.snapshot("sub", name, running=True, session=session)
    return None if found is None else found.state


@_every_way
def test_a_run_executes_no_lane_that_was_there_before_it_began_from_nothing(
    attacked: AttackedTeam, plant: Callable[[AttackedTeam], None]
) -> None:
    """Neither the run that begins the work, nor the ones after it."""
    plant(attacked)
    thread = attacked.fresh()
    session = _begun(thread)
    first = _read(thread, session)
    saved(thread, put({"n": 1}, "m1", world=_WORLD))
    during = _read(thread, None)
    thread.adapter.end("run")
    later = attacked.fresh()
    session = _begun(later)

    assert first is None
    assert during is None
    assert _read(later, session) is None
    assert _read(later, session, "s1") is None


@_every_way
def test_results_of_such_a_lane_do_not_count_for_a_checkpoint_of_its_name(
    attacked: AttackedTeam, plant: Callable[[AttackedTeam], None]
) -> None:
    """A run that saves under the same name has its own results alone."""
    plant(attacked)
    thread = attacked.fresh()
    _begun(thread)
    saved(
        thread,
        put({"n": 1}, "m1", world=_WORLD),
        put({"own": 1}, "s1", "sub"),
        results("own", "s1", "task", "sub"),
    )
    thread.adapter.end("run")
    later = attacked.fresh()
    found = later.adapter.snapshot("sub", running=True, session=_begun(later))

    assert found is not None
    assert found.state == {"own": 1}
    assert [each.value for each in found.results] == ["own"]


@pytest.mark.parametrize("runs", [0, 1, 12])
def test_a_lane_that_a_subgraph_keeps_between_runs_comes_along(
    attacked: AttackedTeam, runs: int
) -> None:
    """The control: however many runs have left it alone, and whoever of a pool made them."""
    attacked.pool("pods", "worker", "spare")
    saved(
        attacked.thread(),
        put({"n": 0}, "c0", world=_WORLD),
        put({"kept": 1}, "s1", "sub"),
        put({"n": 1}, "c1"),
    )
    for number in range(runs):
        thread = attacked.fresh(("worker", "spare")[number % 2])
        _begun(thread)
        saved(thread, put({"n": number}, f"r{number}", world=_WORLD))
        thread.adapter.end("run")
    thread = attacked.fresh()

    assert _read(thread, _begun(thread)) == {"kept": 1}
    assert attacked.kinds().count(Kind.RESUME) == runs + 2


def test_a_lane_of_another_writer_comes_along_once_people_have_approved_its_thread(
    attacked: AttackedTeam,
) -> None:
    """The control: the lane was saved on the way to the checkpoint that they approved."""
    saved(
        attacked.thread("spare"),
        put({"n": 0}, "c0", world=_WORLD),
        put({"kept": 1}, "s1", "sub"),
        put({"n": 1}, "c1"),
    )
    attacked.thread("spare").handoff(to="worker", reason="yours")
    attacked.go_on("worker", world=READ)
    saved(attacked.thread(), put({"n": 2}, "c2", world=_WORLD))
    thread = attacked.fresh()

    assert _read(thread, _begun(thread)) == {"kept": 1}
