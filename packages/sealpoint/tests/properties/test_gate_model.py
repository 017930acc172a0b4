# SPDX-License-Identifier: Apache-2.0
"""Whole histories behind the gate against a model: nothing is released that was not allowed.

Workers, approvers, operators, clocks that go both ways, copies that are put back, an attacker with
the database and a thief with somebody's key. What ran is what the record names: with checkpoints
that a pause held back, results, deletions, prunes, copies, lanes and processes that overtake each
other. No grant is spent twice, also by two processes at once, and nothing is refused that the
policy allows. Faults that are known, and that the model looks away from, have a test at the end.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from sealpoint.errors import NeedsApproval
from sealpoint.gate import Request, Thread
from sealpoint.store import CheckpointRef, Key
from sealpoint.world import World as Declared
from tests.deployment import Deployment
from tests.properties.gate_model import BETWEEN, OVERTAKERS, TWISTS, GateModel
from tests.unit.gate.team import NARROW, READ, SHELL, Team
from tests.unit.store.laned import put, results, saved, values

_STEPS = 30


class InMemory(GateModel):
    """A store in memory."""

    tally: ClassVar[Counter[str]] = Counter()


class InDatabase(GateModel):
    """A store in a database."""

    backend = "sqlite"
    tally: ClassVar[Counter[str]] = Counter()


class InDirectory(GateModel):
    """A store in a directory."""

    backend = "file"
    tally: ClassVar[Counter[str]] = Counter()


@pytest.mark.parametrize(
    ("model", "histories"), [(InMemory, 12), (InDatabase, 1), (InDirectory, 1)]
)
def test_no_history_releases_what_was_not_allowed(model: type[GateModel], histories: int) -> None:
    """A few histories, the same in every run."""
    model.tally.clear()
    run_state_machine_as_test(
        model, settings=settings(max_examples=histories, stateful_step_count=_STEPS)
    )

    assert model.tally["histories"] >= histories


_WISHES: list[dict[str, Any]] = [
    {"world": SHELL, "older": None, "by id": False, "answer": None, "deliberate": None},
    {"world": SHELL, "older": 1, "by id": True, "answer": "yes", "deliberate": "meant"},
]


@pytest.mark.parametrize("twist", TWISTS)
def test_a_grant_meets_whatever_may_happen_to_it(twist: str) -> None:
    """Each thing that can come between an approval and its use, once for sure."""
    for wish in _WISHES:
        model = InMemory()
        try:
            for _ in range(2):
                model.save("worker", "t", READ, question=False)
            people = ["bob", "bobby", "twin"]
            model.petition("t", wish, people, twist, {**wish, "answer": "no"})
            model.pause("t", on=False)
            for _ in range(2):
                model.save("worker", "t", READ, question=False)
            model.petition("t", wish, people, "none", wish)
            model.check()

            assert model.book.spent, "nothing was ever spent"
        finally:
            model.teardown()


@pytest.mark.parametrize("what", OVERTAKERS)
def test_a_run_is_given_what_was_decided_or_nothing(what: str) -> None:
    """Whatever others do between the decision about a run and its first read."""
    model = InMemory()
    model.tally.clear()
    try:
        for kinds in (["put", "asking"], ["put"], ["again"], ["put", "results"]):
            model.work("worker", "t", "", kinds, 1, holds=False, world=READ)
            model.work("worker", "t", "child", kinds, 0, holds=False, world=None)
        for between in BETWEEN:
            for older in (None, 2):
                model.overtake("t", older, what, between)
                model.check()

        ends = {"held back": "read what it wrote", "nobody": "read what was released"}
        assert model.tally[ends.get(what, "overtaken, and given nothing")]
    finally:
        model.teardown()


_HAPPENS = {
    "a word relayed by a thief",
    "approve recorded",
    "approve refused: no-right",
    "approve refused: request-closed",
    "approve refused: unknown-request",
    "clock turned back",
    "copied",
    "deleted: all",
    "deleted: lane",
    "deleted: newest",
    "deleted: older",
    "deny recorded",
    "break-glass recorded",
    "break-glass refused: no-right",
    "handed off",
    "held back",
    "needs approval",
    "nothing to begin from",
    "overtaken, and given nothing",
    "overtaken by: begin",
    "overtaken by: early results",
    "overtaken by: handoff",
    "overtaken by: held back",
    "overtaken by: nobody",
    "overtaken by: results",
    "overtaken by: resume",
    "overtaken by: save",
    "pruned",
    "put back and refused",
    "raced: resume",
    "raced: pause",
    "raced: save",
    "raced: deny",
    "raced: handoff",
    "raced: policy",
    "raced: begin",
    "raced: delete",
    "raced: prune",
    "raced: results",
    "read another lane of what was released",
    "read what it wrote",
    "read what was released",
    "released",
    "released by a grant",
    "resume refused: edited",
    "resume refused: missing",
    "resume refused: not-owner",
    "resume refused: pruned",
    "resume refused: resume-refused",
    "resume refused: rolled-back",
    "resume refused: unknown-checkpoint",
    "restored",
    "results added",
    "saved",
    "save refused: paused",
    "save refused: resume-refused",
    "save refused: superseded",
}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("model", "histories"), [(InMemory, 5000), (InDatabase, 150), (InDirectory, 150)]
)
def test_thousands_of_histories_release_nothing_that_was_not_allowed(
    model: type[GateModel], histories: int, request: pytest.FixtureRequest
) -> None:
    """New histories in every run, and among them everything that can happen has happened."""
    model.tally.clear()
    try:
        run_state_machine_as_test(
            model,
            settings=settings(
                max_examples=histories,
                stateful_step_count=_STEPS,
                derandomize=False,
                database=None,
            ),
        )
    finally:
        writer = request.config.get_terminal_writer()
        writer.line()
        for what, count in sorted(model.tally.items()):
            writer.line(f"{model.backend}: {count} {what}")

    assert model.tally["histories"] >= histories
    if histories >= 5000:
        assert {what for what in _HAPPENS if not model.tally[what]} == set()


# ---------------------------------------------------------------------- known faults


@pytest.fixture
def team() -> Iterator[Team]:
    """A team with a thread of two checkpoints."""
    made = Team(Deployment())
    saved(made.thread(), put({"n": 1}, "1", world=Declared.of(READ)), put({"n": 2}, "2"))
    yield made
    made.world.close()


def _begun(team: Team, ref: str | CheckpointRef) -> tuple[Thread, int | None]:
    """A run from a checkpoint that two people have approved, in a process of its own."""
    thread = team.fresh()
    with pytest.raises(NeedsApproval) as needs:
        thread.adapter.begin(world=READ, ref=ref)
    request = needs.value.request
    assert isinstance(request, Request)
    team.approve(request)
    return thread, thread.adapter.begin(world=READ, ref=ref)


def test_what_is_deleted_before_it_is_read_is_replaced_by_nothing(team: Team) -> None:
    """A run that was decided about the newest is not given what a deletion left."""
    thread = team.fresh()
    session = thread.adapter.begin(world=READ)
    team.fresh().adapter.delete([Key("", "2")])
    found = thread.adapter.snapshot(running=True, session=session)

    assert found is None or found.state == {"n": 2}


def test_a_run_from_what_was_superseded_is_given_that(team: Team) -> None:
    """Also if an entry that changes nothing comes between the decision and the read."""
    first = team.thread().adapter.snapshot(id="1")
    assert first is not None
    saved(team.thread(), put({"n": "put once more"}, "1"))
    thread, session = _begun(team, first.ref)
    team.thread("operator").pause("a look")
    team.thread("operator").unpause("fine")
    found = thread.adapter.snapshot(id="1", running=True, session=session)

    assert found is not None
    assert found.state == {"n": 1}


def test_a_run_from_an_older_checkpoint_is_not_given_the_newest(team: Team) -> None:
    """Whoever was let go on from the older one reads the older one, or nothing."""
    thread, session = _begun(team, "1")
    found = thread.adapter.snapshot(running=True, session=session)

    assert found is None or found.state == {"n": 1}


def test_a_lane_that_is_left_is_not_run_in_a_wider_world(team: Team) -> None:
    """Where the main lane was deleted, what another lane holds still needs approval."""
    saved(team.thread(), put({"child": 1}, "3", "child"))
    team.thread().adapter.delete([Key("", "1"), Key("", "2")])
    thread = team.fresh()
    outcomes = thread.adapter.commit([put({"n": 3}, "4", world=Declared.of(SHELL))])

    assert (
        not isinstance(outcomes[0], CheckpointRef)
        or thread.adapter.snapshot("child", running=True) is None
    )


@pytest.mark.parametrize("how", ["hide", "prune"])
def test_an_honest_resume_stays_justified_when_its_checkpoint_goes(team: Team, how: str) -> None:
    """The world of the resume was that of the checkpoint, and both digests are still there."""
    team.thread().resume(world=READ)
    if how == "hide":
        team.thread().adapter.delete(None)
    else:
        team.thread().resume(world=NARROW)
        team.thread().save({"n": 3})
        team.thread().save({"n": 4})
        team.thread().prune(keep_last=1)

    assert team.world.open(None, read_only=True).verify().findings == ()


def test_results_of_an_ended_session_count_for_no_later_checkpoint(team: Team) -> None:
    """Whatever lies last when the session begins that saves the checkpoint."""
    saved(team.thread(), results("of another session", "3"))
    saved(team.fresh(), put({"n": 3}, "3", world=Declared.of(READ)))

    assert values(team.fresh()) == []
