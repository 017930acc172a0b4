# SPDX-License-Identifier: Apache-2.0
"""Approve A, do B, where B looks like A: each call has a form of its own, and is bound to it.

A client of an application often chooses the value of an answer, the fields of a command, and more
of a configuration than anybody thought of.
"""

import asyncio
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, StateUpdate

from sealpoint.errors import NeedsApproval, ResumeRefused, UsageError
from sealpoint_langgraph import deliberately, guard
from tests.attacks.langgraph.desks import EITHER_FACE, Desk, State, config_of, run
from tests.attacks.langgraph.office import Office

Call = Callable[[Any, Any], object]


def _answer(value: Any) -> Call:
    return lambda graph, where: graph.invoke(Command(resume=value), where)


def _command(**parts: Any) -> Call:
    return lambda graph, where: graph.invoke(Command(**parts), where)


def _edit(*steps: list[tuple[Any, str]]) -> Call:
    made = [[StateUpdate(values, node) for values, node in step] for step in steps]
    return lambda graph, where: graph.bulk_update_state(where, made)


def _turn(value: Any) -> Call:
    return lambda graph, where: graph.invoke(value, where)


def _stand_in(value: Any, office: Office) -> dict[str, Any]:
    """The plain data by which a value without a plain form is told."""
    digest = sha256(office.worker.registry.encode(value)).hexdigest()
    return {"type": type(value).__qualname__, "sha256": digest, "text": repr(value)}


_A, _B = ({"amount": 3}, "plan"), ({"log": ["answer yes"]}, "ask")
_TOLD_A = {"values": {"amount": 3}, "as_node": "plan"}
_TOLD_B = {"values": {"log": ["answer yes"]}, "as_node": "ask"}
_PAIRS: dict[str, tuple[Call, Call]] = {
    "a jump": (_answer({"goto": "pay"}), _command(goto="pay")),
    "a jump in a list": (_answer({"goto": ["pay"]}), _command(goto=["pay"])),
    "an update": (_answer({"update": {"amount": 9}}), _command(update={"amount": 9})),
    "an answer and a jump": (
        _answer({"resume": "yes", "goto": "pay"}),
        _command(resume="yes", goto="pay"),
    ),
    "an answer in an answer": (_answer({"resume": "yes"}), _answer("yes")),
    "an edit": (_answer({"edit": [_TOLD_A]}), _edit([_A])),
    "an edit in steps": (_answer({"edit": [[_TOLD_A]]}), _edit([_A])),
    "a new turn": (_answer({"input": {"amount": 9}}), _turn({"amount": 9})),
    "two steps as one": (_edit([_A], [_B]), _edit([_A, _B])),
    "one step as two": (_edit([_A, _B]), _edit([_A], [_B])),
    "an edit and a turn": (_edit([_A]), _turn({"edit": [[_TOLD_A]]})),
    "to go on": (_turn(None), _answer({"go on": "past a breakpoint"})),
}
_EITHER_WAY = {
    **{f"{name}, of the answer": pair for name, pair in _PAIRS.items()},
    **{f"{name}, of the other": pair[::-1] for name, pair in _PAIRS.items()},
}


def _check(office: Office, desk: Desk, thread: str, approved: Call, other: Call) -> None:
    """What was approved is not spent by the other one, and the other one asks for itself."""
    graph, where = office.waiting(desk, thread), config_of(thread)
    request = office.asked(lambda: approved(graph, where))
    office.approve(request)
    before = office.kinds(thread)
    second = office.asked(lambda: other(graph, where))

    assert second.id != request.id
    assert second.statement.answer != request.statement.answer
    assert second.approved_by == ()
    assert desk.ran == []
    assert office.kinds(thread) == [*before, "request"]


@pytest.mark.parametrize(("approved", "other"), _EITHER_WAY.values(), ids=_EITHER_WAY)
def test_an_approved_form_is_not_another_form(
    office: Office, thread: str, approved: Call, other: Call
) -> None:
    """The value of an answer may look like a command; it is not one, and the reverse."""
    _check(office, Desk(), thread, approved, other)


_ANSWERS = frozenset(list(_PAIRS)[: list(_PAIRS).index("two steps as one")])
"""Those whose first call is an answer, whatever it looks like."""
_ALONE = {name: call for name, (call, _) in _PAIRS.items() if name != "to go on"}


@pytest.mark.parametrize(("name", "approved"), _ALONE.items(), ids=_ALONE)
def test_the_control_passes_once(office: Office, thread: str, name: str, approved: Call) -> None:
    """The very call that was approved is let in, and not a second time."""
    desk = Desk()
    graph, where = office.waiting(desk, thread), config_of(thread)
    office.approve(office.asked(lambda: approved(graph, where)))
    before = graph.get_state(where).config
    approved(graph, where)

    assert graph.get_state(where).config != before
    # An answer to what has finished makes nothing run; whatever else is brought is asked about.
    finished = not graph.get_state(where).next and name in _ANSWERS
    with pytest.raises(ResumeRefused if finished else NeedsApproval):
        approved(graph, where)


@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "under its tag"])
@pytest.mark.parametrize("value", [(1, 2), {1, 2}, b"yes", 2**70], ids=repr)
def test_an_object_is_not_the_data_that_stands_for_it(
    office: Office, thread: str, value: Any, *, wrapped: bool
) -> None:
    """A tuple is told by its type, digest and text; a dict that says the same is a dict."""
    told = _stand_in(value, office)
    twin = {"$object": told} if wrapped else told

    _check(office, Desk(), thread, _answer(value), _answer(twin))
    _check(office, Desk(), f"{thread}-2", _answer(twin), _answer(value))
    if wrapped:
        _check(office, Desk(), f"{thread}-3", _answer(twin), _answer({"$$object": told}))


@pytest.mark.parametrize("send", [Send("pay", {"amount": 2}), Send("pay", {"amount": 9})])
def test_a_jump_to_a_node_is_not_one_with_an_argument(
    office: Office, thread: str, send: Send
) -> None:
    """`Send` carries what the node is given; it is approved with exactly that."""
    desk = Desk()
    _check(office, desk, thread, _command(goto="pay"), _command(goto=send))
    _check(office, desk, f"{thread}-2", _command(goto=send), _command(goto=Send("pay", {})))


# ---------------------------------------------------------------------- other reasons to ask


def _paid(office: Office, desk: Desk, thread: str) -> Any:
    """A guarded graph whose thread has paid, and waits for nothing."""
    graph = office.waiting(desk, thread)
    office.approve(office.asked(lambda: _answer("yes")(graph, config_of(thread))))
    _answer("yes")(graph, config_of(thread))
    desk.ran.clear()
    return graph


@pytest.mark.parametrize("face", EITHER_FACE)
def test_an_approved_older_checkpoint_is_not_one_with_new_input(
    office: Office, desk: Desk, thread: str, face: str
) -> None:
    """Nothing waits for an answer there, and still the input is part of what people approve."""
    graph = _paid(office, desk, thread)
    older = list(graph.get_state_history(config_of(thread)))[2].config
    for approved, others in (
        (None, ({"amount": 9_999}, {})),
        ({"amount": 3}, ({"amount": 9_999}, {})),
    ):
        office.approve(office.asked(lambda: run(face, graph, approved, older)))  # noqa: B023
        for value in others:
            office.asked(lambda: run(face, graph, value, older))  # noqa: B023
    assert desk.ran == []
    run(face, graph, {"amount": 3}, older)

    assert desk.ran[0] == "plan"
    assert graph.get_state(config_of(thread)).values["amount"] == 3


def test_an_approved_change_of_the_graph_is_not_one_with_other_input(
    office: Office, thread: str
) -> None:
    """A wider graph may take the turn that people were shown, and no other."""
    desk = Desk()
    _paid(office, desk, thread)
    wider, where = office.guarded(desk, "shell"), config_of(thread)
    office.approve(office.asked(lambda: wider.invoke({"amount": 3}, where)))
    for value in ({"amount": 9_999}, None):
        office.asked(lambda: wider.invoke(value, where))  # noqa: B023
    assert desk.ran == []
    wider.invoke({"amount": 3}, where)

    assert desk.ran == ["plan"]


def test_an_ordinary_turn_still_needs_nobody(office: Office, desk: Desk, thread: str) -> None:
    """The control: new input on a thread that waits for nothing passes, as before."""
    graph = _paid(office, desk, thread)
    graph.invoke({"amount": 3}, config_of(thread))

    assert desk.ran == ["plan"]


def test_older_checkpoints_of_subgraphs_are_no_answer(office: Office, thread: str) -> None:
    """An answer that spells what is shown of them is an answer, at the newest ones."""
    desk = Desk("subgraph")
    graph, where = office.waiting(desk, thread), config_of(thread)
    inner = graph.get_state(where, subgraphs=True).tasks[0].state
    lane = inner.config["configurable"]["checkpoint_ns"]
    root = graph.get_state(where).config["configurable"]["checkpoint_id"]
    older = inner.parent_config["configurable"]["checkpoint_id"]
    aimed = deliberately(
        config_of(thread, checkpoint_ns="", checkpoint_map={"": root, lane: older}), "why"
    )
    request = office.asked(lambda: _answer("yes")(graph, aimed))
    office.approve(request)
    for value in (
        {"from": {lane: older}, "answer": "yes"},
        {"from": {lane: older}, "resume": "yes"},
    ):
        assert office.asked(lambda: _answer(value)(graph, where)).id != request.id  # noqa: B023
    assert office.asked(lambda: _answer("yes")(graph, where)).id != request.id

    assert desk.ran == []


# ---------------------------------------------------------------------- where a run stops


def _stopped(office: Office, desk: Desk, thread: str, **options: Any) -> Any:
    """A guarded graph that has stopped before the payment."""
    graph = guard(desk.builder().compile(interrupt_before=["pay"]), office.saver, actor="dev")
    where: Any = {**config_of(thread), **options}
    graph.invoke({"amount": 2}, where)
    office.approve(office.asked(lambda: _answer("yes")(graph, where)))
    _answer("yes")(graph, where)
    assert graph.get_state(config_of(thread)).next == ("pay",)
    desk.ran.clear()
    return graph


_SAME_RUN: dict[str, Callable[[str], Any]] = {
    "in the metadata": lambda thread: {**config_of(thread), "metadata": {"run_id": "r-1"}},
    "beside the thread": lambda thread: config_of(thread, run_id="r-1"),
}


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("way", _SAME_RUN)
def test_an_input_that_is_not_looked_at_is_no_new_turn(
    office: Office, thread: str, way: str, face: str
) -> None:
    """A run that the framework knows by its id goes on past the breakpoint, whatever it brings."""
    desk = Desk()
    graph = _stopped(office, desk, thread, metadata={"run_id": "r-1"})
    where = _SAME_RUN[way](thread)
    request = office.asked(lambda: run(face, graph, {"amount": 3}, where))
    plain = office.asked(lambda: run(face, graph, None, config_of(thread)))
    assert desk.ran == []

    assert plain.id == request.id
    office.approve(request)
    run(face, graph, {"amount": 3}, where)
    assert desk.ran == ["pay", "end"]
    assert graph.get_state(config_of(thread)).values["amount"] == 2


def test_another_run_id_is_a_new_turn(office: Office, thread: str) -> None:
    """The control: the graph begins anew, and asks."""
    desk = Desk()
    graph = _stopped(office, desk, thread, metadata={"run_id": "r-1"})
    graph.invoke({"amount": 3}, {**config_of(thread, run_id="r-1"), "metadata": {"run_id": "r-2"}})

    assert desk.ran == ["plan"]


def test_to_pass_a_breakpoint_is_no_answer(office: Office, thread: str) -> None:
    """Neither is an answer that says so."""
    desk = Desk()
    graph, where = _stopped(office, desk, thread), config_of(thread)
    request = office.asked(lambda: graph.invoke(None, where))
    for value in ({"go on": "past a breakpoint"}, "past a breakpoint"):
        assert office.asked(lambda: _answer(value)(graph, where)).id != request.id  # noqa: B023
    office.approve(request)
    assert desk.ran == []
    graph.invoke(None, where)

    assert desk.ran == ["pay", "end"]


def test_breakpoints_of_the_call_are_part_of_it(office: Office, thread: str) -> None:
    """They take the place of the graph's own: a run that stops nowhere is another run."""
    desk = Desk()
    graph = _stopped(office, desk, thread)
    where = config_of(thread)
    requests = {
        office.asked(lambda: graph.invoke(None, where, **options)).id  # noqa: B023
        for options in (
            {},
            {"interrupt_before": ["end"]},
            {"interrupt_after": ["pay"]},
            {"interrupt_before": "*"},
        )
    }
    with pytest.raises(NeedsApproval):
        graph.invoke({"amount": 3}, where, interrupt_before=["nothing"])

    assert len(requests) == 4
    assert desk.ran == []
    graph.invoke({"amount": 3}, where, interrupt_before=["pay", "end"])
    assert desk.ran == ["plan"]


# ---------------------------------------------------------------------- guarded subgraphs


@pytest.mark.parametrize("face", EITHER_FACE)
def test_an_edit_of_a_guarded_subgraph_is_judged_once(
    new_office: Office, thread: str, face: str
) -> None:
    """The graph around it asks for the edit, and its own gate lets the approved one pass."""
    desk = Desk()
    inner: Any = StateGraph(State)
    inner.add_node("ask", desk._ask)
    inner.add_edge(START, "ask")
    outer: Any = StateGraph(State)
    outer.add_node("desk", guard(inner.compile(), new_office.saver, actor="inner"))
    outer.add_edge(START, "desk")
    graph = guard(outer.compile(), new_office.saver, actor="dev")
    graph.invoke({"amount": 2}, config_of(thread))
    (task,) = graph.get_state(config_of(thread), subgraphs=True).tasks
    where = task.state.config

    def edit(amount: int) -> object:
        if face == "sync":
            return graph.update_state(where, {"amount": amount})
        return asyncio.run(graph.aupdate_state(where, {"amount": amount}))

    new_office.approve(new_office.asked(lambda: edit(3)))
    new_office.asked(lambda: edit(9_999))
    edit(3)

    (task,) = graph.get_state(config_of(thread), subgraphs=True).tasks
    assert task.state.values["amount"] == 3
    assert new_office.worker.verify().ok


# ---------------------------------------------------------------------- private names


def _orders(graph: Any, thread: str) -> dict[str, Any]:
    found = graph.get_state(config_of(thread)).interrupts
    return {
        "__pregel_resume_map": {each.id: "yes" for each in found},
        "__pregel_resuming": True,
        "__pregel_checkpointer": "x",
        "__pregel_task_id": "x",
        "__pregel_read": "x",
        "__pregel_durability": "exit",
        "__pregel_anything": 1,
    }


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("place", ["configurable", "beside it"])
def test_no_name_of_the_framework_steers_a_call(
    office: Office, desk: Desk, thread: str, place: str, face: str
) -> None:
    """People approve to go on without an answer, and the configuration would bring one."""
    graph = office.waiting(desk, thread)
    office.approve(office.asked(lambda: run(face, graph, None, config_of(thread))))
    for name, value in _orders(graph, thread).items():
        named = {name: value}
        where: Any = (
            config_of(thread, **named) if place == "configurable" else config_of(thread) | named
        )
        with pytest.raises(UsageError, match=name):
            run(face, graph, None, where)
        with pytest.raises(UsageError, match=name):
            graph.update_state(where, {"amount": 3}, as_node="plan")

    assert desk.ran == []
    run(face, graph, None, config_of(thread))
    assert graph.get_state(config_of(thread)).interrupts


@pytest.mark.parametrize("face", EITHER_FACE)
def test_no_name_of_the_framework_passes_a_breakpoint(
    office: Office, thread: str, face: str
) -> None:
    """A new turn needs nobody, and would not have been one."""
    desk = Desk()
    graph = _stopped(office, desk, thread)
    with pytest.raises(UsageError, match="__pregel_resuming"):
        run(face, graph, {"amount": 3}, config_of(thread, __pregel_resuming=True))

    assert desk.ran == []
