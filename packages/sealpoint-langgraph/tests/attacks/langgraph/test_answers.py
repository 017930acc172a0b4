# SPDX-License-Identifier: Apache-2.0
"""A question under the policy `strict`: what people approved happens once, nothing else does."""

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.types import Command, StateUpdate

from sealpoint.errors import NeedsApproval, ResumeRefused
from sealpoint_langgraph import SealedSaver, deliberately, guard
from tests.attacks.langgraph.desks import EITHER_FACE, Desk, config_of, run
from tests.attacks.langgraph.office import Office

_YES: Any = Command(resume="yes")
_OTHERS: tuple[Any, ...] = (
    Command(resume="no"),
    Command(resume=["yes"]),
    Command(resume="yes", update={"amount": 3}),
    Command(resume="yes", goto="end"),
    None,
)
_BROUGHT: dict[str, Any] = {
    "an answer": _YES,
    "nothing": None,
    "a new turn": {"amount": 3},
    "a jump": Command(goto="end"),
    "an update": Command(update={"amount": 3}),
    "an answer and an update": Command(resume="yes", update={"amount": 3}),
    "an answer and a jump": Command(resume="yes", goto="end"),
}


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("value", _BROUGHT.values(), ids=_BROUGHT)
def test_a_waiting_thread_goes_on_with_nothing_that_nobody_approved(
    office: Office, desk: Desk, thread: str, value: Any, face: str
) -> None:
    """Whatever is brought, a request is all that comes of it; one approval is not two."""
    graph = office.waiting(desk, thread)
    before = office.kinds(thread)
    request = office.asked(lambda: run(face, graph, value, config_of(thread)))
    office.approve(request, "ann")
    with pytest.raises(NeedsApproval):
        run(face, graph, value, config_of(thread))

    assert desk.ran == []
    assert office.kinds(thread) == [*before, "request", "approval"]


@pytest.mark.parametrize("face", EITHER_FACE)
def test_what_was_approved_happens_once(
    new_office: Office, desk: Desk, thread: str, face: str
) -> None:
    """The control: after two approvals the same call passes, and not a second time."""
    graph = new_office.waiting(desk, thread)
    new_office.approve(new_office.asked(lambda: run(face, graph, _YES, config_of(thread))))
    run(face, graph, _YES, config_of(thread))
    paid, before = list(desk.ran), new_office.kinds(thread)
    with pytest.raises(ResumeRefused, match="it has finished"):
        run(face, graph, _YES, config_of(thread))
    assert new_office.worker.verify().ok

    assert paid == ["asked", "pay", "end"]
    assert desk.ran == paid
    assert new_office.kinds(thread) == before, "nobody is asked about what makes nothing run"


def test_an_approval_is_not_good_for_the_next_question(
    office: Office, desk: Desk, thread: str
) -> None:
    """The same amount and the same answer, one turn later: it has been spent."""
    graph = office.waiting(desk, thread)
    first = office.asked(lambda: graph.invoke(_YES, config_of(thread)))
    office.approve(first)
    graph.invoke(_YES, config_of(thread))
    graph.invoke({"amount": 2}, config_of(thread))
    desk.ran.clear()
    second = office.asked(lambda: graph.invoke(_YES, config_of(thread)))

    assert second.id != first.id
    assert second.approved_by == ()
    assert desk.ran == []


@pytest.mark.parametrize("face", EITHER_FACE)
def test_another_answer_than_the_approved_one_is_refused(
    office: Office, desk: Desk, thread: str, face: str
) -> None:
    """Approve A, do B: each B needs its own request, and A can still be done."""
    graph = office.waiting(desk, thread)
    request = office.asked(lambda: run(face, graph, _YES, config_of(thread)))
    office.approve(request)
    for other in _OTHERS:
        assert office.asked(lambda: run(face, graph, other, config_of(thread))) != request  # noqa: B023
    assert desk.ran == []
    run(face, graph, _YES, config_of(thread))

    assert desk.ran == ["asked", "pay", "end"]


_EDITS: dict[str, Callable[[Any, Any, str], object]] = {
    "past the question": lambda graph, where, node: graph.update_state(
        where, {"log": ["answer yes"]}, as_node=node
    ),
    "of the amount": lambda graph, where, _: graph.update_state(
        where, {"amount": 9_999}, as_node="plan"
    ),
    "in two steps": lambda graph, where, node: graph.bulk_update_state(
        where,
        [[StateUpdate({"amount": 9_999}, "plan")], [StateUpdate({"log": ["answer yes"]}, node)]],
    ),
}


@pytest.mark.parametrize("edit", _EDITS.values(), ids=_EDITS)
def test_an_edit_of_a_waiting_thread_needs_approval(
    new_office: Office, desk: Desk, thread: str, edit: Callable[[Any, Any, str], object]
) -> None:
    """Nothing of it is written before, so that nothing is left for a later run to take up."""
    graph, where = new_office.waiting(desk, thread), config_of(thread)
    node = "ask" if desk.shape == "root" else "desk"
    before, shown = new_office.kinds(thread), graph.get_state(where)
    request = new_office.asked(lambda: edit(graph, where, node))

    assert new_office.kinds(thread) == [*before, "request"]
    assert graph.get_state(where) == shown
    new_office.approve(request)
    edit(graph, where, node)
    assert graph.get_state(where).config != shown.config
    assert desk.ran == []
    assert new_office.worker.verify().ok


def test_an_approved_edit_is_not_one_of_a_subgraph(office: Office, thread: str) -> None:
    """The same values in another namespace are another edit."""
    desk = Desk("subgraph")
    graph, where = office.waiting(desk, thread), config_of(thread)
    inner = graph.get_state(where, subgraphs=True).tasks[0].state.config
    request = office.asked(lambda: graph.update_state(where, {"amount": 3}))
    office.approve(request)
    other = office.asked(lambda: graph.update_state(inner, {"amount": 3}))

    assert other.id != request.id


def _named(shown: Any, name: str) -> dict[str, Any]:
    """Ways to name an older checkpoint."""
    where = config_of(name)["configurable"]
    found = shown.config["configurable"]["checkpoint_id"]
    return {
        "by its id": {**where, "checkpoint_id": found},
        "by id and namespace": {**where, "checkpoint_ns": "", "checkpoint_id": found},
        "by a map": {**where, "checkpoint_ns": "", "checkpoint_map": {"": found}},
        "by a map of a subgraph": {
            **where,
            "checkpoint_ns": "desk:x",
            "checkpoint_map": {"": found},
        },
    }


_NAMES = tuple(_named(type("Shown", (), {"config": {"configurable": {"checkpoint_id": ""}}}), ""))


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("way", _NAMES)
def test_an_older_checkpoint_needs_approval_however_it_is_named(
    office: Office, desk: Desk, thread: str, way: str, face: str
) -> None:
    """The framework lets a map name it as well, which counts for more than the id."""
    graph = office.waiting(desk, thread)
    office.approve(office.asked(lambda: graph.invoke(_YES, config_of(thread))))
    graph.invoke(_YES, config_of(thread))
    desk.ran.clear()
    before = office.kinds(thread)
    older = list(graph.get_state_history(config_of(thread)))[2]
    where: Any = {"configurable": _named(older, thread)[way]}
    for value in (None, {"amount": 3}):
        with pytest.raises(NeedsApproval):
            run(face, graph, value, where)
        with pytest.raises(NeedsApproval):
            graph.update_state(where, {"amount": 3}, as_node="plan")

    assert desk.ran == []
    assert set(office.kinds(thread)[len(before) :]) == {"request"}


def test_an_approved_older_checkpoint_is_the_one_that_runs(
    new_office: Office, desk: Desk, thread: str
) -> None:
    """The control: it is replayed after the approvals, and recorded so."""
    graph = new_office.waiting(desk, thread)
    new_office.approve(new_office.asked(lambda: graph.invoke(_YES, config_of(thread))))
    graph.invoke(_YES, config_of(thread))
    desk.ran.clear()
    older = next(iter(graph.get_state_history(config_of(thread)))).parent_config
    new_office.approve(new_office.asked(lambda: graph.invoke(None, older)))
    graph.invoke(None, older)

    assert desk.ran == ["end"]
    assert new_office.worker.verify().ok


def test_an_older_checkpoint_of_a_subgraph_is_an_older_checkpoint(
    office: Office, thread: str
) -> None:
    """The root is the newest and the subgraph is not: somebody has to say why, and approve it."""
    desk = Desk("subgraph")
    graph, where = office.waiting(desk, thread), config_of(thread)
    inner = graph.get_state(where, subgraphs=True).tasks[0].state
    lane = inner.config["configurable"]["checkpoint_ns"]
    root = graph.get_state(where).config["configurable"]["checkpoint_id"]
    older = inner.parent_config["configurable"]["checkpoint_id"]
    aimed = config_of(thread, checkpoint_ns="", checkpoint_map={"": root, lane: older})
    for value in (None, _YES):
        with pytest.raises(NeedsApproval, match="not the newest of namespace"):
            graph.invoke(value, aimed)
        plain = office.asked(lambda: graph.invoke(value, where))  # noqa: B023
        office.approve(plain)
        other = office.asked(lambda: graph.invoke(value, deliberately(aimed, "why")))  # noqa: B023
        assert other.id != plain.id

    assert desk.ran == []


def test_one_more_tool_needs_approval(office: Office, desk: Desk, thread: str) -> None:
    """A graph that can do more than the one that saved does not even take an ordinary turn."""
    graph = office.waiting(desk, thread)
    request = office.asked(lambda: graph.invoke(_YES, config_of(thread)))
    office.approve(request)
    wider = office.guarded(desk, "shell")
    other = office.asked(lambda: wider.invoke(_YES, config_of(thread)))
    assert other.id != request.id
    assert desk.ran == []
    graph.invoke(_YES, config_of(thread))
    desk.ran.clear()
    with pytest.raises(NeedsApproval):
        wider.invoke({"amount": 3}, config_of(thread))

    assert desk.ran == []


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("value", _BROUGHT.values(), ids=_BROUGHT)
def test_a_bare_saver_of_another_process_is_refused(
    office: Office, desk: Desk, thread: str, value: Any, face: str
) -> None:
    """No node runs, nothing at all is written, and the hint has the way on."""
    graph = office.waiting(desk, thread)
    office.asked(lambda: graph.invoke(value, config_of(thread)))
    before = office.kinds(thread)
    with office.process() as store:
        bare = desk.builder().compile(checkpointer=SealedSaver(store))
        with pytest.raises(ResumeRefused) as refused:
            run(face, bare, value, config_of(thread))
        with pytest.raises(ResumeRefused):
            bare.update_state(config_of(thread), {"amount": 3}, as_node="plan")
        assert bare.get_state(config_of(thread)).interrupts

    assert "guard(" in str(refused.value.hint)
    assert desk.ran == []
    assert office.kinds(thread) == before


def test_an_approval_does_not_help_a_bare_saver(office: Office, desk: Desk, thread: str) -> None:
    """It cannot see the answer, so it cannot tell the approved one from another."""
    graph = office.waiting(desk, thread)
    office.approve(office.asked(lambda: graph.invoke(_YES, config_of(thread))))
    with office.process() as store:
        bare = desk.builder().compile(checkpointer=SealedSaver(store, world=office.world(graph)))
        for value in (_YES, _OTHERS[0], None):
            with pytest.raises(ResumeRefused):
                bare.invoke(value, config_of(thread))

    assert desk.ran == []


def test_passing_a_breakpoint_is_an_answer(office: Office, thread: str) -> None:
    """A stop by `interrupt_before` leaves no question, and going on past it needs approval."""
    desk = Desk()
    built = desk.builder()
    graph = guard(built.compile(interrupt_before=["pay"]), office.saver, actor="dev")
    graph.invoke({"amount": 2}, config_of(thread))
    office.approve(office.asked(lambda: graph.invoke(_YES, config_of(thread))))
    graph.invoke(_YES, config_of(thread))
    assert graph.get_state(config_of(thread)).next == ("pay",)
    desk.ran.clear()
    request = office.asked(lambda: graph.invoke(None, config_of(thread)))
    assert desk.ran == []
    office.approve(request)
    graph.invoke(None, config_of(thread))

    assert desk.ran == ["pay", "end"]
