# SPDX-License-Identifier: Apache-2.0
"""What `prune` leaves of a thread with subgraphs, and that the thread goes on as if it had all."""

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from sealpoint.errors import UsageError
from sealpoint_langgraph import SealedSaver
from tests.adapters.langgraph.stores import BACKENDS, opened

_THREADS = ("pruned", "twin")


class _State(TypedDict):
    said: Annotated[list[str], operator.add]


@pytest.fixture(params=BACKENDS)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SealedSaver]:
    """A saver on each backend."""
    with opened(request.param, tmp_path / "site") as store:
        yield SealedSaver(store)


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def _count(state: _State) -> dict[str, list[str]]:
    return {"said": [f"{len(state['said'])} before"]}


def _ask(state: _State) -> dict[str, list[str]]:
    return {"said": [interrupt(f"question {len(state['said'])}")]}


def _graph(saver: SealedSaver, **nodes: tuple[Any, bool | None]) -> Any:
    """A graph of subgraphs, one after the other: each has one node."""
    builder, before = StateGraph(_State), START
    for name, (node, remembers) in nodes.items():
        inner = StateGraph(_State)
        inner.add_node("node", node)
        inner.add_edge(START, "node")
        builder.add_node(name, inner.compile(checkpointer=remembers))
        builder.add_edge(before, name)
        before = name
    return builder.compile(checkpointer=saver)


def _namespaces(saver: SealedSaver, thread: str) -> list[str]:
    return sorted(
        each.config["configurable"]["checkpoint_ns"] for each in saver.list(_config(thread))
    )


def test_a_finished_call_of_a_subgraph_is_pruned_with_what_it_began_at(saver: SealedSaver) -> None:
    """Of a finished call nothing stays, of a subgraph that remembers the newest checkpoint."""
    graph = _graph(saver, memory=(_count, True), call=(_count, None))
    for number in range(3):
        for thread in _THREADS:
            graph.invoke({"said": [f"turn {number}"]}, _config(thread))

    saver.prune(["pruned"])

    assert _namespaces(saver, "pruned") == ["", "memory"]
    results = [graph.invoke({"said": ["one more"]}, _config(thread)) for thread in _THREADS]
    assert results[0] == results[1]


def test_a_subgraph_that_waits_is_not_pruned(saver: SealedSaver) -> None:
    """The call that asks stays, calls that were answered go, and the answer reaches it."""
    graph = _graph(saver, asking=(_ask, None))
    for thread in _THREADS:
        for answer in ("yes", "no"):
            graph.invoke({"said": ["turn"]}, _config(thread))
            graph.invoke(Command(resume=answer), _config(thread))
        graph.invoke({"said": ["turn"]}, _config(thread))
    state = graph.get_state(_config("pruned"), subgraphs=True)
    waiting = state.tasks[0].state.config["configurable"]["checkpoint_ns"]

    saver.prune(["pruned"])

    assert _namespaces(saver, "pruned") == ["", waiting]
    results = [graph.invoke(Command(resume="perhaps"), _config(each)) for each in _THREADS]
    assert results[0] == results[1]


@pytest.mark.parametrize("call", ["prune", "delete_for_runs"])
def test_one_id_in_the_place_of_several_deletes_nothing(saver: SealedSaver, call: str) -> None:
    """The letters of an id are not taken for the ids of threads or runs."""
    graph = _graph(saver, call=(_count, None))
    graph.invoke({"said": ["turn"]}, {**_config("t"), "metadata": {"run_id": "t"}})
    before = list(saver.list(_config("t")))

    with pytest.raises(UsageError, match="expected a list of ids"):
        getattr(saver, call)("t")

    assert list(saver.list(_config("t"))) == before
