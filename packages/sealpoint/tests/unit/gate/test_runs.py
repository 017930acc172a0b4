# SPDX-License-Identifier: Apache-2.0
"""Runs that nobody decided about before: each write says what it goes on from."""

from typing import Any, cast

import pytest

from sealpoint.errors import HeadMoved, ResumeRefused, Superseded, UsageError
from sealpoint.gate import Rule, Thread, shipped_policy
from sealpoint.ledger import Kind
from sealpoint.store import CheckpointRef, ResultsDraft, RunPosition, SaveDraft
from sealpoint.world import LeafClass, World
from tests.unit.gate.team import NARROW, READ, SHELL, Team, lose_hold, policy
from tests.unit.store.laned import put, refused, results, saved

_ALLOW = policy(
    "calm",
    after_restore="reason",
    **cast(
        "Any",
        {
            rule.value.replace("-", "_"): "record"
            for rule in Rule
            if rule not in (Rule.AFTER_RESTORE, Rule.HANDOFF_BY_OPERATOR)
        },
    ),
)


@pytest.fixture
def calm(memory: Team) -> Team:
    """A team whose policy asks nobody and lets all pass."""
    memory.apply(_ALLOW)
    return memory


@pytest.fixture
def solo(memory: Team) -> Team:
    """A team whose policy wants reasons."""
    memory.apply(shipped_policy("solo"))
    return memory


def _save(name: str, parent: str | None, lane: str = "", **options: Any) -> SaveDraft:
    """A checkpoint as a saver puts it, in a run that goes on from its parent."""
    where = {key: options.pop(key) for key in _WHERE if key in options}
    position = RunPosition(**({"checkpoint": parent} | where))
    options.setdefault("world", World.of(READ))
    return put({"is": name}, name, lane, parent=parent, position=position, **options)


def _add(value: Any, name: str, lane: str = "", **options: Any) -> ResultsDraft:
    """Results as a saver puts them, in a run that stands on their checkpoint."""
    where = {key: options.pop(key) for key in _WHERE if key in options}
    position = RunPosition(**({"checkpoint": name} | where))
    options.setdefault("world", World.of(READ))
    return results(value, name, lane=lane, position=position, **options)


_WHERE = ("run", "lanes", "checkpoint", "begins", "inside", "answered", "deliberate", "token")


_NOBODY: Any = dict.fromkeys(
    (
        *LeafClass,
        "older_checkpoint",
        "narrower_world",
        "missing_world",
        "answer",
        "unknown_outcome",
        "old_age",
        "after_restore",
    ),
    "refuse",
)


def _sessions(team: Team) -> int:
    return team.kinds().count("resume")


def _turn(thread: Thread, *names: str, parent: str | None = None) -> None:
    """A run that begins with an input and saves some checkpoints."""
    for place, name in enumerate(names):
        saved(thread, _save(name, parent, begins=not place))
        parent = name


# ---------------------------------------------------------------------- where a run begins


def test_a_run_is_one_session_and_the_next_one_another(solo: Team) -> None:
    """Recorded with its first write, in the same durable step, with what it goes on from."""
    store = solo.world.open("worker", gated=True)
    thread = store.thread("t")
    _turn(thread, "1", "2")
    saved(thread, _add("r", "2"), _save("3", "2"))
    _turn(thread, "4", "5", parent="3")

    assert _sessions(solo) == 2
    assert solo.newest(Kind.RESUME).checkpoint == thread.load("3").ref.entry
    assert store.storage.groups[-2:] == [2, 1]
    solo.check_sound()


def test_reading_begins_and_ends_nothing(solo: Team) -> None:
    """Whatever is read between two writes, by the same handle."""
    thread = solo.thread()
    _turn(thread, "1", "2")
    before = solo.everything()
    for name in (None, "1", "2", "none"):
        thread.adapter.snapshot("", name)
        thread.adapter.snapshot("child", name)
    list(thread.adapter.snapshots())
    assert solo.everything() == before
    saved(thread, _save("3", "2"))

    assert _sessions(solo) == 1


def test_a_run_of_a_new_process_goes_on_from_the_newest(solo: Team) -> None:
    """With an input, or with nothing but the results of a task that was not done."""
    _turn(solo.fresh(), "1", "2")
    saved(solo.fresh(), _add("r", "2"))
    _turn(solo.fresh(), "3", parent="2")

    assert _sessions(solo) == 3
    solo.check_sound()


@pytest.mark.parametrize("begins", [True, False])
def test_an_older_checkpoint_wants_a_reason(solo: Team, *, begins: bool) -> None:
    """It passes with one, and both are recorded."""
    _turn(solo.thread(), "1", "2")
    before = solo.everything()
    expected = ["resume-refused" if begins else "superseded"]
    for thread in (solo.fresh(), solo.thread()):
        assert refused(thread.adapter.commit([_save("3", "1", begins=begins)])) == expected
    assert solo.everything() == before
    saved(solo.fresh(), _save("3", "1", begins=begins, deliberate="the receipt was lost"))

    body = solo.newest(Kind.RESUME)
    assert (body.reason, body.rules) == ("the receipt was lost", (Rule.OLDER_CHECKPOINT,))
    solo.check_sound()


def test_a_wider_world_wants_a_reason(solo: Team) -> None:
    """A saver that declares more than the one before, in the same process or another."""
    wider, narrower = World.of(SHELL), World.of(NARROW)
    _turn(solo.thread(), "1")
    for thread in (solo.thread(), solo.fresh()):
        assert refused(thread.adapter.commit([_save("2", "1", world=wider)])) == ["resume-refused"]
    saved(solo.thread(), _save("2", "1", world=wider, deliberate="the tool is needed"))
    saved(solo.thread(), _save("3", "2", world=narrower))

    assert solo.newest(Kind.RESUME).rules == (Rule.NARROWER_WORLD,)
    solo.check_sound()


def test_an_answer_is_recorded_as_one(solo: Team) -> None:
    """The rule is named in the session that the answer begins."""
    thread = solo.thread()
    _turn(thread, "1")
    saved(thread, _add("?", "1", question="pay 5?"))
    saved(thread, _add("yes", "1", begins=True, answered=True, answers=True))

    assert solo.newest(Kind.RESUME).rules == (Rule.ANSWER,)
    solo.check_sound()


def test_what_is_saved_after_a_question_is_judged_by_it(solo: Team) -> None:
    """Also if the answer itself was not written, as with a durability that saves at the end."""
    thread = solo.thread()
    _turn(thread, "1")
    saved(thread, _add("?", "1", question="pay 5?"))
    saved(thread, _save("2", "1"))

    assert _sessions(solo) == 2
    assert solo.newest(Kind.RESUME).rules == (Rule.ANSWER,)


def test_where_people_are_asked_nothing_is_written(memory: Team) -> None:
    """A run that nobody decided about is refused, on a thread with something and on a new one."""
    memory.thread().save(1, id="1", world=READ)
    before = memory.everything()
    for name in ("t", "new"):
        thread = memory.world.open("worker", gated=True).thread(name)
        (outcome,) = thread.adapter.commit([_save("2", None, begins=True)])
        assert isinstance(outcome, ResumeRefused)
        assert "asks for approvals" in outcome.message

    assert memory.everything() == before


def test_a_reason_says_something(solo: Team) -> None:
    """Blank text is none, and nothing else than text is one."""
    _turn(solo.thread(), "1")
    for reason in ("  ", "", 5):
        with pytest.raises(UsageError):
            _save("2", "1", deliberate=reason)


# ---------------------------------------------------------------------- who goes on


def test_a_run_that_another_process_overtook_is_refused(calm: Team) -> None:
    """Whatever the policy allows: the thread is another's by now."""
    thread = calm.thread()
    _turn(thread, "1", "2")
    _turn(calm.fresh(), "3", parent="2")
    before = calm.everything()
    outcomes = thread.adapter.commit([_add("r", "2"), _save("4", "2")])

    assert set(refused(outcomes)) <= {"superseded", "head-moved"}
    assert calm.everything() == before


def test_after_that_the_next_run_goes_on(calm: Team) -> None:
    """From what the other process saved."""
    thread = calm.thread()
    _turn(thread, "1")
    _turn(calm.fresh(), "2", parent="1")
    thread.adapter.commit([_save("x", "1")])
    thread.adapter.snapshot()
    _turn(thread, "3", parent="2")

    assert calm.fresh().load().ref.id == "3"
    calm.check_sound()


def test_a_run_that_another_of_its_process_overtook_is_refused(solo: Team) -> None:
    """It names a checkpoint that is not the newest any more."""
    thread = solo.thread()
    _turn(thread, "1", "2")
    _turn(thread, "3", "4", parent="2")
    outcomes = thread.adapter.commit(
        [_add("r", "2"), _save("x", "2"), _save("y", "2", begins=True)]
    )

    assert refused(outcomes) == ["superseded", "superseded", "resume-refused"]
    saved(thread, _save("5", "4"))
    assert _sessions(solo) == 2


def test_a_policy_that_allows_it_lets_both_go_on(calm: Team) -> None:
    """As the framework's own savers do, but each time on record."""
    thread = calm.thread()
    _turn(thread, "1")
    _turn(thread, "2", parent="1")
    saved(thread, _save("3", "1"))

    assert calm.newest(Kind.RESUME).rules == (Rule.OLDER_CHECKPOINT,)
    calm.check_sound()


def test_two_that_begin_a_thread_at_once(calm: Team) -> None:
    """The second process has seen that there is nothing, and there is something."""
    first, second = calm.fresh(), calm.fresh()
    assert first.adapter.snapshot() is None
    assert second.adapter.snapshot() is None
    _turn(first, "1")

    assert isinstance(second.adapter.commit([_save("2", None, begins=True)])[0], HeadMoved)


# ---------------------------------------------------------------------- results that come first


def test_results_may_come_before_their_checkpoint(solo: Team) -> None:
    """Saves run in the background: all is of one run, and none of the results is lost."""
    thread = solo.thread()
    _turn(thread, "1")
    saved(thread, _add("r", "2"), _save("2", "1"), _add("s", "3"), _save("3", "2"))

    assert _sessions(solo) == 1
    for name, value in (("2", "r"), ("3", "s")):
        found = solo.fresh().adapter.snapshot("", name)
        assert found is not None
        assert [each.value for each in found.results] == [value]
    solo.check_sound()


def test_results_may_come_after_the_next_checkpoint_of_their_run(solo: Team) -> None:
    """Several OS threads write for a run, also to the checkpoint that it began from."""
    thread, run = solo.thread(), object()
    _turn(thread, "1", "2")
    saved(thread, _add("a", "2", run=run), _save("3", "2", run=run))
    saved(thread, _add("b", "2", run=run, task="other"))
    saved(thread, _save("4", "3", run=run))

    assert _sessions(solo) == 2
    assert refused(thread.adapter.commit([_add("c", "2", run=object())])) == ["superseded"]
    assert refused(thread.adapter.commit([_add("d", "2")])) == ["superseded"]


def test_results_may_come_after_the_next_checkpoint_of_their_lane(solo: Team) -> None:
    """The same in a subgraph, which goes on from a checkpoint that another run has saved."""
    thread, run = solo.thread(), object()
    _turn(thread, "1", "2")
    saved(thread, _save("k1", None, "kid", checkpoint="2"))
    saved(thread, _save("k2", "k1", "kid", checkpoint="2", run=run))
    saved(thread, _add("a", "k1", "kid", checkpoint="2", run=run))

    assert _sessions(solo) == 2
    late = _add("b", "k1", "kid", checkpoint="2", run=object())
    assert refused(thread.adapter.commit([late])) == ["resume-refused"]


def test_a_run_whose_results_come_before_its_input_is_one_run(solo: Team) -> None:
    """They joined the session before; they count in the one that the input begins."""
    thread = solo.thread()
    _turn(thread, "1")
    saved(thread, _add("r", "2"), _add("s", "2"))
    saved(thread, _save("2", "1", begins=True))
    found = solo.fresh().adapter.snapshot()

    assert found is not None
    assert [each.value for each in found.results] == ["r", "s"]
    assert _sessions(solo) == 2
    solo.check_sound()


def test_an_answer_by_name_begins_a_run(solo: Team) -> None:
    """It comes with the results of the task that asked, and with nothing before them."""
    thread = solo.thread()
    _turn(thread, "1")
    saved(thread, _add("?", "1", question="pay 5?"))
    saved(thread, _add("yes", "1", answered=True), _add("more", "1", answered=True))
    saved(thread, _save("2", "1"))

    assert _sessions(solo) == 2
    assert solo.newest(Kind.RESUME).rules == (Rule.ANSWER,)


# ---------------------------------------------------------------------- other lanes


def test_a_subgraph_is_a_part_of_its_run(solo: Team) -> None:
    """Its inputs begin nothing, and it stands where the graph stands."""
    thread = solo.thread()
    _turn(thread, "1")
    saved(thread, _save("a", None, "child", checkpoint="1"))
    saved(thread, _add("r", "a", "child", checkpoint="1"), _save("b", "a", "child", checkpoint="1"))
    saved(thread, _save("2", "1"))

    assert _sessions(solo) == 1


def test_an_older_checkpoint_of_a_lane_is_an_older_checkpoint(solo: Team) -> None:
    """The graph stands on its newest, and the subgraph does not: one rule for all lanes."""
    thread = solo.thread()
    _turn(thread, "1")
    saved(thread, _save("a", None, "child"), _save("b", "a", "child"), _save("2", "1"))
    older = {"lane": "child", "checkpoint": "2"}
    for each in (solo.fresh(), solo.thread()):
        (outcome,) = each.adapter.commit([_save("x", "a", **older)])
        assert isinstance(outcome, Superseded | ResumeRefused)
    saved(solo.fresh(), _save("c", "a", deliberate="once more", **older))

    body = solo.newest(Kind.RESUME)
    assert (body.reason, body.rules) == ("once more", (Rule.OLDER_CHECKPOINT,))
    solo.check_sound()


def test_lanes_come_with_an_older_checkpoint(solo: Team) -> None:
    """Who goes back on purpose goes back with the subgraphs, in one session."""
    thread = solo.thread()
    _turn(thread, "1")
    saved(thread, _save("a", None, "child", checkpoint="1"), _save("2", "1"))
    saved(thread, _save("b", "a", "child", checkpoint="2"), _save("3", "2"))
    why = {"deliberate": "the receipt was lost"}
    saved(thread, _save("4", "1", begins=True, **why))
    saved(thread, _save("c", "a", "child", checkpoint="4", **why), _save("5", "4", **why))

    assert _sessions(solo) == 2


def test_a_subgraph_of_a_run_that_was_overtaken_is_refused(calm: Team) -> None:
    """What it stands on is not the newest of the graph."""
    _turn(calm.thread(), "1")
    _turn(calm.thread(), "2", parent="1")
    (outcome,) = calm.thread().adapter.commit([_save("a", None, "child", checkpoint="1")])

    assert isinstance(outcome, Superseded)


# ---------------------------------------------------------------------- code of a task


def test_a_task_may_edit_its_own_thread(solo: Team) -> None:
    """What it writes is a branch of the run, which goes on from where it stood."""
    thread = solo.thread()
    _turn(thread, "1")
    saved(thread, _save("edit", "1", begins=True, inside=True, answered=True))
    saved(thread, _add("r", "1"), _save("2", "1"))
    saved(thread, _save("more", "edit", inside=True), _save("3", "2"))

    assert _sessions(solo) == 1
    assert solo.fresh().load().ref.id == "3"


def test_code_that_outlives_its_run_is_no_part_of_another(solo: Team) -> None:
    """What a task left running goes on from what is not the newest any more."""
    thread = solo.thread()
    _turn(thread, "1", "2")
    _turn(thread, "3", parent="2")
    (outcome,) = thread.adapter.commit([_save("x", "1", begins=True, inside=True, answered=True)])

    assert isinstance(outcome, ResumeRefused)
    saved(thread, _save("4", "3"))
    assert _sessions(solo) == 2


def test_who_is_refused_takes_nobodys_world(memory: Team) -> None:
    """The run that goes on is the one that was decided about, with what it could do."""
    memory.apply(policy("calm", first_world="refuse", **_NOBODY))
    thread = memory.thread()
    _turn(thread, "1", "2")
    (outcome,) = thread.adapter.commit([_save("x", "1", begins=True)])
    assert isinstance(outcome, ResumeRefused)
    saved(thread, _save("3", "2"))

    assert memory.newest(Kind.CHECKPOINT).world is not None


# ---------------------------------------------------------------------- decided about before


def test_a_run_with_a_token_writes_in_its_session(memory: Team) -> None:
    """Whatever it goes on from; under a policy that asks people too."""
    memory.thread().save(1, id="1", world=READ)
    thread = memory.fresh()
    session = thread.adapter.begin(world=READ, token="mine")  # noqa: S106
    saved(thread, _save("2", "1", token="mine"), _save("3", "1", token="mine"))  # noqa: S106

    assert thread.load().ref.id == "3"
    assert memory.newest(Kind.RESUME).checkpoint is not None
    assert session == memory.kinds().index("resume", 2)


def test_a_run_with_a_token_begins_a_thread(memory: Team) -> None:
    """There is nothing to decide about, and its first write begins the session."""
    thread = memory.fresh()
    assert thread.adapter.begin(world=READ, token="mine") is None  # noqa: S106
    saved(thread, _save("1", None, token="mine"))  # noqa: S106

    assert memory.kinds() == ["genesis", "resume", "checkpoint"]


@pytest.mark.parametrize("how", ["begin", "resume", "another process"])
def test_a_token_ends_with_its_session(memory: Team, how: str) -> None:
    """What the run still writes is refused, and not written in the session of another."""
    memory.thread().save(1, id="1", world=READ)
    thread = memory.fresh()
    thread.adapter.begin(world=READ, token="mine")  # noqa: S106
    lose_hold(thread)
    if how == "begin":
        thread.adapter.begin(world=READ, token="other")  # noqa: S106
    elif how == "resume":
        thread.resume(world=READ)
    else:
        memory.fresh().resume(world=READ)
    before = memory.everything()
    outcomes = thread.adapter.commit([_save("2", "1", token="mine"), _add("r", "1", token="mine")])  # noqa: S106

    assert refused(outcomes) == ["superseded", "superseded"]
    assert memory.everything() == before


def test_who_begins_a_thread_is_recorded(memory: Team) -> None:
    """There is nothing to decide about, and the record says who went on all the same."""
    thread = memory.fresh()
    thread.adapter.begin(world=READ, actor="clerk", token="mine")  # noqa: S106
    saved(thread, _save("1", None, token="mine"))  # noqa: S106

    assert memory.newest(Kind.RESUME).actor == "clerk"
    memory.check_sound()


# ---------------------------------------------------------------------- what a run reads


def test_a_run_reads_what_was_released_to_it(solo: Team) -> None:
    """It goes on from an older checkpoint, and is given no other one, however often it asks."""
    _turn(solo.thread(), "1", "2", "3")
    thread = solo.fresh()
    session = thread.adapter.begin(
        world=READ,
        ref="1",
        deliberate="the receipt was lost",
        token="mine",  # noqa: S106
    )

    for name in (None, None, "1"):
        found = thread.adapter.snapshot("", name, running=True, session=session)
        assert found is not None
        assert found.ref.id == "1"
    for name in ("2", "3"):
        with pytest.raises(ResumeRefused, match="not the one that was decided about"):
            thread.adapter.snapshot("", name, running=True, session=session)
    saved(thread, _add("r", "1", token="mine"))  # noqa: S106
    found = thread.adapter.snapshot(running=True, session=session)
    assert found is not None
    assert found.ref.id == "1"
    saved(thread, _save("4", "1", token="mine"))  # noqa: S106
    found = thread.adapter.snapshot(running=True, session=session)
    assert found is not None
    assert found.ref.id == "4"


def test_a_run_reads_the_very_entry_that_was_released(solo: Team) -> None:
    """A checkpoint that was put once more under its name, and a resume of how it was before."""
    thread = solo.thread()
    earlier = thread.adapter.commit([put({"is": "before"}, "1", world=World.of(READ))])[0]
    saved(thread, put({"is": "after"}, "1"))
    assert isinstance(earlier, CheckpointRef)
    other = solo.fresh()
    session = other.adapter.begin(world=READ, ref=earlier, deliberate="as it was", token="mine")  # noqa: S106

    for _ in range(2):
        found = other.adapter.snapshot(running=True, session=session)
        assert found is not None
        assert found.state == {"is": "before"}
    saved(other, _add("done", "1", token="mine"))  # noqa: S106
    for name in (None, "1"):
        found = other.adapter.snapshot("", name, running=True, session=session)
        assert found is not None
        assert found.state == {"is": "before"}
        assert [each.value for each in found.results] == ["done"]


def test_a_run_stops_once_the_very_entry_was_given_up(solo: Team) -> None:
    """It would do everything again; also where a name was put once more. What was read is given."""
    thread = solo.thread()
    earlier = thread.adapter.commit([put({"is": "before"}, "1", world=World.of(READ))])[0]
    saved(thread, put(2, "2"), put({"is": "after"}, "1"), put(3, "3"))
    assert isinstance(earlier, CheckpointRef)
    other = solo.fresh()
    session = other.adapter.begin(world=READ, ref=earlier, deliberate="as it was", token="mine")  # noqa: S106
    other.prune(keep_last=2)
    found = other.adapter.snapshot(running=True, session=session)
    assert found is not None
    assert found.state == {"is": "before"}

    for name in (None, "1"):
        with pytest.raises(Superseded, match="given up after the run began"):
            other.adapter.snapshot("", name, running=True, session=session)


def test_a_resume_that_somebody_overtook_hands_nothing_over(memory: Team) -> None:
    """Another process goes on before the anchor has followed."""
    memory.thread().save(1, id="1", world=READ)
    store = memory.world.open("worker", gated=True)
    other = memory.fresh()

    def resume() -> None:
        store.anchor.advancing.before = lambda: None
        other.resume(world=READ)

    store.anchor.advancing.before = resume
    with pytest.raises(Superseded):
        store.thread("t").resume(world=READ)


# ---------------------------------------------------------------------- which run it is


def test_what_another_run_writes_is_not_of_this_one(solo: Team) -> None:
    """Also if it names a checkpoint that nobody knows yet: it begins a session of its own."""
    thread, first, second = solo.thread(), object(), object()
    saved(thread, _save("1", None, begins=True, run=first))
    saved(thread, _add("r", "2", run=second), _save("2", "1", begins=True, run=second))
    found = solo.fresh().adapter.snapshot()

    assert found is not None
    assert [each.value for each in found.results] == ["r"]
    assert _sessions(solo) == 3
    solo.check_sound()


def test_a_run_that_was_refused_writes_nothing_more(solo: Team) -> None:
    """Whatever it names, and in whichever lane; who goes on is not disturbed."""
    thread, good, bad = solo.thread(), object(), object()
    saved(thread, _save("1", None, begins=True, run=good), _save("2", "1", run=good))
    before = solo.everything()
    outcomes = thread.adapter.commit(
        [
            _save("3", "1", begins=True, run=bad),
            _add("r", "3", run=bad),
            _add("r", "4", run=bad),
            _add("r", "2", run=bad),
            _save("a", None, "child", checkpoint="4", run=bad),
            _save("5", "2", run=bad),
        ]
    )
    assert refused(outcomes) == ["resume-refused"] * 6
    assert solo.everything() == before
    saved(thread, _save("6", "2", run=good))

    assert _sessions(solo) == 1


def test_a_run_that_was_overtaken_writes_nothing_more(calm: Team) -> None:
    """Under a policy that allows everything, too."""
    thread, slow, fast = calm.thread(), object(), object()
    saved(thread, _save("1", None, begins=True, run=slow))
    saved(thread, _save("2", "1", begins=True, run=fast))
    before = calm.everything()
    outcomes = thread.adapter.commit(
        [
            _add("r", "1", run=slow),
            _add("r", "x", run=slow),
            _save("a", None, "child", checkpoint="x", run=slow),
            _save("3", "1", run=slow),
        ]
    )

    assert refused(outcomes) == ["superseded"] * 4
    assert calm.everything() == before


def test_a_run_may_begin_again_with_what_it_is_known_by(solo: Team) -> None:
    """An application may give one control to all of its runs."""
    thread, shared = solo.thread(), object()
    saved(thread, _save("1", None, begins=True, run=shared))
    assert refused(thread.adapter.commit([_save("2", "1", begins=True, run=object())])) == [None]
    saved(thread, _save("3", "2", begins=True, run=shared), _save("4", "3", run=shared))

    assert _sessions(solo) == 3


def test_what_is_not_there_is_not_gone_on_from(calm: Team) -> None:
    """A run that names a checkpoint which was never there, or is no more."""
    thread = calm.thread()
    saved(thread, _save("1", None, begins=True, run=object()))
    before = calm.everything()
    outcomes = thread.adapter.commit([_save("2", "0", begins=True, run=object())])

    assert refused(outcomes) == ["unknown-checkpoint"]
    assert calm.everything() == before


def test_a_run_that_saves_all_at_its_end_may_have_brought_anything(solo: Team) -> None:
    """Its first write is no input and no answer, so it is judged as if it had brought one."""
    thread = solo.thread()
    saved(thread, _save("1", None, begins=True, run=object()))
    saved(thread, _save("2", "1", run=object()))

    assert solo.newest(Kind.RESUME).rules == (Rule.ANSWER,)


def test_lanes_that_a_run_was_told_are_judged_before_anything_is_kept(solo: Team) -> None:
    """An answer for an older checkpoint of a subgraph does not stay pending for the newer one."""
    thread = solo.thread()
    _turn(thread, "1")
    saved(thread, _save("a", None, "child"), _save("b", "a", "child"))
    before = solo.everything()
    told: Any = {"lanes": {"child": "a"}, "begins": True, "answered": True, "run": object()}
    (outcome,) = thread.adapter.commit([_add("yes", "1", **told)])

    assert isinstance(outcome, ResumeRefused)
    assert "not the newest of namespace 'child'" in outcome.message
    assert solo.everything() == before
