# SPDX-License-Identifier: Apache-2.0
"""A configuration that a client wrote: what stands in the places of ours is no mark of ours."""

from collections.abc import Callable
from typing import Any

import pytest

from sealpoint.errors import ResumeRefused, SealpointError, Superseded, UsageError
from sealpoint_langgraph import SealedSaver
from sealpoint_langgraph._configuration import TICKET
from tests.attacks.langgraph.desks import EITHER_FACE, Desk, config_of, run
from tests.attacks.langgraph.office import Office

_FOREIGN: tuple[Any, ...] = (["thread", 1], [], {"thread": "t", "number": 1}, 1, True, "x", None)


def _sent(foreign: Any, thread: str) -> Any:
    return [thread, 1] if foreign == ["thread", 1] else foreign


def _graph(office: Office, desk: Desk, kind: str) -> Any:
    if kind == "guarded":
        return office.guarded(desk)
    return desk.builder().compile(checkpointer=SealedSaver(office.worker))


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("foreign", _FOREIGN[:-1], ids=repr)
def test_a_pass_of_somebody_else_lets_nobody_in(
    office: Office, calm: Office, thread: str, foreign: Any, face: str
) -> None:
    """A guarded graph has its own; a bare saver refuses it before any node runs."""
    desk = Desk()
    where = config_of(thread, **{TICKET: _sent(foreign, thread)})
    with pytest.raises(ResumeRefused):
        run(face, _graph(office, desk, "bare"), {"amount": 2}, where)
    alone = desk.builder().compile(checkpointer=SealedSaver(calm.worker))
    with pytest.raises(Superseded, match="the run that this configuration is of has ended"):
        run(face, alone, {"amount": 2}, where)
    assert desk.ran == []
    run(face, _graph(office, desk, "guarded"), {"amount": 2}, where)

    assert desk.ran == ["plan"]


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("foreign", _FOREIGN, ids=repr)
def test_no_mark_of_somebody_else_answers_a_question(
    office: Office, desk: Desk, thread: str, foreign: Any, face: str
) -> None:
    """A thread that waits for people waits on, whatever a client says to which run it belongs."""
    office.waiting(desk, thread)
    before = office.kinds(thread)
    bare = _graph(office, desk, "bare")
    where = config_of(thread, **{TICKET: _sent(foreign, thread)})
    with pytest.raises(SealpointError):
        run(face, bare, None, where)
    with pytest.raises(SealpointError):
        bare.update_state(where, {"amount": 3}, as_node="plan")

    assert desk.ran == []
    assert office.kinds(thread) == before


_PLACES: dict[str, Any] = {
    "checkpoint_ns": (["x"], {"x": 1}, 1, True),
    "checkpoint_id": (["x"], {"x": 1}, 1, True),
    "checkpoint_map": (["x"], "x", 1, True, {"": ["x"]}, {"": 1}, {"desk:x": 1}),
}
_CASES = [(place, value) for place, values in _PLACES.items() for value in values]
_CALLS: dict[str, Callable[[Any, Any], object]] = {
    "a run": lambda graph, where: graph.invoke(None, where),
    "an edit": lambda graph, where: graph.update_state(where, {"amount": 3}, as_node="plan"),
}


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
@pytest.mark.parametrize(("place", "value"), _CASES, ids=repr)
def test_what_is_no_name_names_no_checkpoint(
    office: Office, thread: str, place: str, value: Any, call: Callable[[Any, Any], object]
) -> None:
    """A guarded graph says what is wrong with the configuration, and writes nothing."""
    desk = Desk()
    graph = office.waiting(desk, thread)
    before = office.kinds(thread)
    with pytest.raises(UsageError, match="configuration: expected"):
        call(graph, config_of(thread, **{place: value}))

    assert desk.ran == []
    assert office.kinds(thread) == before
