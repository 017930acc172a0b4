# SPDX-License-Identifier: Apache-2.0
"""A look at a thread, with whatever configuration, ends no run, asks nobody and writes nothing."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from sealpoint.errors import ResumeRefused
from sealpoint_langgraph import SealedSaver, guard
from tests.attacks.langgraph.desks import EITHER_FACE, Desk, State, config_of, run
from tests.attacks.langgraph.office import Office

_LOOKS: dict[str, Callable[[Any, str], tuple[Any, Any]]] = {
    "plain": lambda graph, thread: (graph, config_of(thread)),
    "with the limit of the run": lambda graph, thread: (
        graph,
        {**config_of(thread), "recursion_limit": 50},
    ),
    "with a limit of the graph": lambda graph, thread: (
        graph.with_config({"recursion_limit": 50}),
        config_of(thread),
    ),
    "with tags and metadata": lambda graph, thread: (
        graph,
        {**config_of(thread), "recursion_limit": 50, "tags": ["x"], "metadata": {"a": "b"}},
    ),
    "with a runtime of a client": lambda graph, thread: (
        graph,
        config_of(thread, __pregel_runtime={"context": {}}),
    ),
}
_KINDS = ("guarded", "bare")


def _look(face: str, graph: Any, where: Any) -> Any:
    if face == "sync":
        return graph.get_state(where)
    return asyncio.run(graph.aget_state(where))


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("way", _LOOKS)
def test_a_waiting_thread_may_be_looked_at(
    office: Office, desk: Desk, thread: str, way: str, *, kind: str, face: str
) -> None:
    """Whoever is to approve something may see it, and nothing comes of it."""
    graph = office.waiting(desk, thread)
    if kind == "bare":
        graph = desk.builder().compile(checkpointer=SealedSaver(office.worker))
    before = office.kinds(thread)
    found = _look(face, *_LOOKS[way](graph, thread))

    assert found.interrupts
    assert office.kinds(thread) == before
    assert desk.ran == []


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("way", _LOOKS)
def test_a_look_ends_no_run(calm: Office, thread: str, way: str, kind: str, face: str) -> None:
    """Somebody else's page shows the thread while a node works."""
    seen: list[Any] = []

    def work(_state: State) -> State:
        looker = threading.Thread(
            target=lambda: seen.append(_look(face, *_LOOKS[way](graph, thread)))
        )
        looker.start()
        looker.join()
        return {"log": ["work"]}

    built: Any = StateGraph(State)
    built.add_node("work", work)
    built.add_node("after", lambda _: {"log": ["after"]})
    built.add_edge(START, "work")
    built.add_edge("work", "after")
    if kind == "guarded":
        graph = guard(built.compile(), calm.saver, actor="dev")
    else:
        graph = built.compile(checkpointer=SealedSaver(calm.worker))
    found = run(face, graph, {"amount": 2}, config_of(thread))

    assert found["log"] == ["work", "after"]
    assert len(seen) == 1


@pytest.mark.parametrize("way", _LOOKS)
def test_an_edit_with_the_same_configuration_is_no_look(
    office: Office, desk: Desk, thread: str, way: str
) -> None:
    """The control: what writes is decided about, whatever the configuration has or lacks."""
    office.waiting(desk, thread)
    bare = desk.builder().compile(checkpointer=SealedSaver(office.worker))
    graph, where = _LOOKS[way](bare, thread)
    with pytest.raises(ResumeRefused):
        graph.update_state(where, {"amount": 3}, as_node="plan")
    with pytest.raises(ResumeRefused):
        asyncio.run(graph.aupdate_state(where, {"amount": 3}, as_node="plan"))

    assert desk.ran == []
