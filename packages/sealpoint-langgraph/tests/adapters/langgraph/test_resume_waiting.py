# SPDX-License-Identifier: Apache-2.0
"""`resume_waiting`: what people have answered or approved runs, once, in any worker."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from sealpoint.adapters.waiting_runs import RunOutcome, WaitingReason, WaitingRun
from sealpoint.errors import NeedsApproval, UsageError
from sealpoint.gate import Status, ThreadPhase
from sealpoint.views.answer_forms import questions_of, read_answer
from sealpoint_langgraph import SealedSaver, guard, resume_waiting
from tests.attacks.langgraph.desks import Desk, config_of
from tests.attacks.langgraph.office import Office

YES = {"type": "boolean"}


@pytest.fixture(params=["solo", "strict"])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Office]:
    """A team under a policy that records answers, or that asks two people about each."""
    made = Office(tmp_path / "home", policy=request.param)
    yield made
    made.close()


@pytest.fixture
def solo(tmp_path: Path) -> Iterator[Office]:
    """A team under a policy that records answers."""
    made = Office(tmp_path / "home", policy="solo")
    yield made
    made.close()


def _answer(office: Office, thread: str, value: Any = "yes") -> None:
    """The operator answers all that a thread asks."""
    handle = office.operator().thread(thread)
    questions = questions_of(handle.question)
    handle.answer({"resume": {each.id: value for each in questions}})


def _approve_all(office: Office) -> None:
    for request in office.operator().requests().requests:
        office.approve(request)


@pytest.mark.parametrize("shape", ["root", "subgraph"])
def test_an_answered_run_goes_on_once(office: Office, shape: str) -> None:
    """Under a policy that asks, approvals come first."""
    desk = Desk(shape)
    graph = office.waiting(desk, "t")
    assert resume_waiting(graph, office.worker).outcomes == {}
    _answer(office, "t")
    policy = office.worker.policy
    assert policy is not None
    if policy.name != "solo":
        found = resume_waiting(graph, office.worker)
        assert found.outcomes == {RunOutcome.NEEDS_APPROVAL: 1}
        assert desk.ran == []
        _approve_all(office)
    seen: list[tuple[WaitingRun, RunOutcome]] = []
    found = resume_waiting(
        graph, office.worker, on_run=lambda run, outcome, _: seen.append((run, outcome))
    )
    assert found.ran == 1
    assert seen[0][1] is RunOutcome.RAN
    assert desk.ran.count("pay") == 1
    assert resume_waiting(graph, office.worker).outcomes == {}
    assert desk.ran.count("pay") == 1


def test_what_was_approved_runs_without_its_caller(tmp_path: Path) -> None:
    """The call that asked is gone: the worker repeats it."""
    office = Office(tmp_path / "home", policy="strict")
    desk = Desk()
    graph = office.waiting(desk, "t")
    with pytest.raises(NeedsApproval):
        graph.invoke(Command(resume="yes"), config_of("t"))
    assert resume_waiting(graph, office.worker).outcomes == {}
    _approve_all(office)
    seen: list[WaitingReason] = []
    found = resume_waiting(graph, office.worker, on_run=lambda run, *_: seen.append(run.reason))
    assert (found.ran, seen) == (1, [WaitingReason.APPROVED])
    assert desk.ran.count("pay") == 1
    office.close()


def test_a_thread_of_another_graph_is_left_alone(solo: Office) -> None:
    """Its answer stays for the graph that asked."""
    desk = Desk()
    solo.waiting(desk, "t")
    _answer(solo, "t")

    class Other(TypedDict, total=False):
        note: str

    built: Any = StateGraph(Other)
    built.add_node("else", lambda _: {"note": "ran"})
    built.add_edge(START, "else")
    other = guard(built.compile(), solo.saver, actor="dev")
    assert resume_waiting(other, solo.worker).outcomes == {RunOutcome.FOREIGN: 1}
    assert desk.ran == []
    assert solo.operator().requests().answers


def test_of_two_workers_one_runs_it(solo: Office) -> None:
    """Both have seen the same answer; each thread runs once."""
    desk = Desk()
    graphs = []
    for number in range(6):
        solo.waiting(desk, f"t{number}")
        _answer(solo, f"t{number}")
    stores = [solo.worker, solo.process()]
    for store in stores:
        saver = SealedSaver(store)
        graphs.append(guard(desk.builder().compile(), saver, actor="dev"))
    together = threading.Barrier(2)

    def work(place: int) -> None:
        together.wait()
        resume_waiting(graphs[place], stores[place])

    workers = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    resume_waiting(graphs[0], stores[0])
    assert desk.ran.count("pay") == 6
    assert all(each.phase is ThreadPhase.SAVED for each in solo.worker.overview())


def test_a_failed_run_is_reported_and_not_repeated(solo: Office) -> None:
    """Its error goes to the caller, and the answer is spent."""
    desk = Desk()
    graph = solo.waiting(desk, "t")
    _answer(solo, "t")

    def fail() -> None:
        raise RuntimeError("the bank is closed")

    desk.during["pay"] = fail
    errors: list[BaseException | None] = []
    found = resume_waiting(graph, solo.worker, on_run=lambda _, __, error: errors.append(error))
    assert found.outcomes == {RunOutcome.FAILED: 1}
    assert str(errors[0]) == "the bank is closed"
    assert resume_waiting(graph, solo.worker).outcomes == {}


def test_a_withdrawn_answer_does_not_run_although_people_approved_it(tmp_path: Path) -> None:
    """The answer that is in force instead runs when it is approved."""
    office = Office(tmp_path / "home", policy="strict")
    desk = Desk()
    graph = office.waiting(desk, "t")
    _answer(office, "t", "yes")
    resume_waiting(graph, office.worker)
    _approve_all(office)
    (given,) = office.operator().requests().answers
    office.operator().deny(given.id, reason="misread")
    assert resume_waiting(graph, office.worker).outcomes == {}
    _answer(office, "t", "no")
    assert resume_waiting(graph, office.worker).outcomes == {RunOutcome.NEEDS_APPROVAL: 1}
    assert desk.ran == []
    (request,) = (
        each for each in office.operator().requests().requests if each.status is Status.OPEN
    )
    office.approve(request)
    assert resume_waiting(graph, office.worker).ran == 1
    office.close()


def test_a_paused_thread_waits(solo: Office) -> None:
    """It runs when the pause has ended."""
    desk = Desk()
    graph = solo.waiting(desk, "t")
    _answer(solo, "t")
    solo.operator().thread("t").pause("look")
    assert resume_waiting(graph, solo.worker).outcomes == {}
    solo.operator().thread("t").unpause("fine")
    assert resume_waiting(graph, solo.worker).ran == 1


def test_a_loop_ends_when_it_is_told_to(solo: Office) -> None:
    """After the run under way."""
    desk = Desk()
    graph = solo.waiting(desk, "t")
    stop = threading.Event()
    _answer(solo, "t")
    found = resume_waiting(graph, solo.worker, every=0.01, stop=stop, on_run=lambda *_: stop.set())
    assert (found.ran, found.passes) == (1, 1)


def test_a_question_brings_the_schema_of_its_answer(solo: Office) -> None:
    """The form has the two options, and the run gets the value."""

    class Said(TypedDict, total=False):
        said: bool

    built: Any = StateGraph(Said)
    built.add_node("ask", lambda _: {"said": interrupt({"pay": 120}, response_schema=YES)})
    built.add_edge(START, "ask")
    graph = guard(built.compile(), solo.saver, actor="dev")
    graph.invoke({}, config_of("t"))
    handle = solo.operator().thread("t")
    (asked,) = questions_of(handle.question)
    assert [words for words, _ in asked.form.options] == ["Yes", "No"]
    handle.answer(read_answer([asked], {asked.form.name: "1"}))
    assert resume_waiting(graph, solo.worker).ran == 1
    assert graph.get_state(config_of("t")).values == {"said": False}


def test_it_needs_the_guard_and_its_store(solo: Office) -> None:
    """Also a time between two looks."""
    graph = solo.waiting(Desk(), "t")
    other = solo.process()
    for found, store in ((graph, other), (Desk().builder().compile(), solo.worker)):
        with pytest.raises(UsageError, match="resume_waiting"):
            resume_waiting(found, store)
    with pytest.raises(UsageError, match="every"):
        resume_waiting(graph, solo.worker, every=0)


def test_a_thread_that_was_edited_stops_no_other(solo: Office) -> None:
    """It is left out, and the others run."""
    desk = Desk()
    for thread in ("edited", "sound"):
        solo.waiting(desk, thread)
    (edited,) = (each.id for each in solo.worker.overview() if each.name == "edited")
    *kept, _ = solo.editor.rows(bytes.fromhex(edited)).items()
    solo.editor.put_rows(bytes.fromhex(edited), dict(kept))
    _answer(solo, "sound")
    fresh = solo.process()
    graph = guard(desk.builder().compile(), SealedSaver(fresh), actor="dev")

    assert resume_waiting(graph, fresh).outcomes == {RunOutcome.RAN: 1}
