# SPDX-License-Identifier: Apache-2.0
"""A graph is changed after it was guarded: what the gate judges is the graph that runs."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from sealpoint.errors import UsageError
from sealpoint_langgraph import SealedSaver, guard
from tests.attacks.langgraph.desks import EITHER_FACE, Desk, State, config_of, run
from tests.attacks.langgraph.office import Office

_YES: Any = Command(resume="yes")


def _other(desk: Desk) -> Any:
    """The nodes of a graph that pays something else."""

    def pay(_state: State) -> State:
        desk.ran.append("other pay")
        return {"log": ["pay 5,000,000"]}

    built, other = desk.builder(), cast("Any", StateGraph(State))
    built.nodes["pay"] = other.add_node("pay", pay).nodes["pay"]
    return built.compile().nodes


def _copied(graph: Any, desk: Desk) -> Any:
    return graph.copy({"nodes": _other(desk)})


def _replaced(graph: Any, desk: Desk) -> Any:
    graph.nodes["pay"] = _other(desk)["pay"]
    return graph


def _rewired(graph: Any, _desk: Desk) -> Any:
    graph.attach_edge("plan", "pay")
    return graph


def _unstopped(graph: Any, _desk: Desk) -> Any:
    graph.interrupt_before_nodes = []
    return graph


_CHANGES: dict[str, Callable[[Any, Desk], Any]] = {
    "a copy with other nodes": _copied,
    "another node": _replaced,
    "another edge": _rewired,
    "no breakpoint": _unstopped,
    "a copy of a copy": lambda graph, desk: _copied(graph.copy({"name": "x"}), desk).copy(),
}


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_a_changed_graph_needs_approval(
    office: Office, thread: str, change: Callable[[Any, Desk], Any], face: str
) -> None:
    """An approval of the answer was given for the graph as it was."""
    desk = Desk()
    graph = guard(desk.builder().compile(interrupt_before=["end"]), office.saver, actor="dev")
    run(face, graph, {"amount": 2}, config_of(thread))
    desk.ran.clear()
    request = office.asked(lambda: run(face, graph, _YES, config_of(thread)))
    office.approve(request)
    changed = change(graph, desk)
    other = office.asked(lambda: run(face, changed, _YES, config_of(thread)))

    assert other.id != request.id
    assert other.statement.world_to != request.statement.world_to
    assert desk.ran == []


@pytest.mark.parametrize("face", EITHER_FACE)
def test_an_ordinary_turn_of_a_changed_graph_needs_approval(
    office: Office, thread: str, face: str
) -> None:
    """Nothing else would have to be asked, and the code is not that of the checkpoint."""
    desk = Desk()
    graph = office.waiting(desk, thread)
    office.approve(office.asked(lambda: run(face, graph, _YES, config_of(thread))))
    run(face, graph, _YES, config_of(thread))
    desk.ran.clear()
    changed = _copied(graph, desk)
    office.asked(lambda: run(face, changed, {"amount": 3}, config_of(thread)))
    assert desk.ran == []
    run(face, graph, {"amount": 3}, config_of(thread))

    assert desk.ran == ["plan"]


def test_a_tool_that_is_added_later_needs_approval(office: Office, thread: str) -> None:
    """The dict of tools belongs to the node, and anybody in the process can add to it."""
    used: list[str] = []

    @tool
    def read_file(name: str) -> str:
        """Read a file."""
        used.append(name)
        return "text"

    @tool
    def shell(name: str) -> str:
        """Run a command."""
        used.append(f"shell {name}")
        return "done"

    tools = ToolNode([read_file])

    def agent(_state: MessagesState) -> Any:
        call = {"name": next(reversed(tools.tools_by_name)), "args": {"name": "a"}, "id": "1"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    built: Any = StateGraph(MessagesState)
    built.add_node("agent", agent)
    built.add_node("tools", tools)
    built.add_edge(START, "agent")
    built.add_edge("agent", "tools")
    graph, where = guard(built.compile(), office.saver, actor="dev"), config_of(thread)
    graph.invoke({"messages": []}, where)
    tools.tools_by_name["shell"] = shell
    request = office.asked(lambda: graph.invoke({"messages": []}, where))

    assert used == ["a"]
    assert any("shell" in reason for reason in request.reasons)
    office.approve(request)
    graph.invoke({"messages": []}, where)
    assert used == ["a", "shell a"]


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("way", ["a copy", "set"])
def test_another_checkpointer_is_refused(office: Office, thread: str, way: str, face: str) -> None:
    """The gate would decide about one store, and another one would be loaded from."""
    desk = Desk()
    graph = office.guarded(desk)
    for other in (InMemorySaver(), None, False):
        if way == "a copy":
            changed = graph.copy({"checkpointer": other})
        else:
            changed = graph.copy()
            changed.checkpointer = other
        with pytest.raises(UsageError, match="than the saver that it was guarded with"):
            run(face, changed, {"amount": 2}, config_of(thread))
        with pytest.raises(UsageError, match="than the saver that it was guarded with"):
            changed.update_state(config_of(thread), {"amount": 2}, as_node="plan")
    assert desk.ran == []
    run(
        face,
        graph.copy({"checkpointer": SealedSaver(office.worker)}),
        {"amount": 2},
        config_of(thread),
    )

    assert desk.ran == ["plan"]
