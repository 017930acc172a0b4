# SPDX-License-Identifier: Apache-2.0
"""Every public way to run or edit a compiled graph leads through the gate of a guarded one.

The list is held against the framework's class: a method that a new release brings has to be
looked at before the tests pass again.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateUpdate

from sealpoint.errors import NeedsApproval
from tests.attacks.langgraph.desks import Desk, config_of
from tests.attacks.langgraph.office import Office

_YES: Any = Command(resume="yes")
Way = Callable[[Any, Any], object]


async def _drained(stream: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in stream]


async def _one() -> AsyncIterator[Any]:
    yield _YES


async def _events(graph: Any, where: Any) -> list[Any]:
    return [each async for each in await graph.astream_events(_YES, where, version="v3")]


WAYS: dict[str, Way] = {
    "invoke": lambda graph, where: graph.invoke(_YES, where),
    "invoke v2": lambda graph, where: graph.invoke(_YES, where, version="v2"),
    "ainvoke": lambda graph, where: asyncio.run(graph.ainvoke(_YES, where)),
    "stream": lambda graph, where: list(graph.stream(_YES, where)),
    "stream v2": lambda graph, where: list(graph.stream(_YES, where, version="v2")),
    "stream modes": lambda graph, where: list(
        graph.stream(_YES, where, stream_mode=["values", "debug", "messages"], subgraphs=True)
    ),
    "astream": lambda graph, where: asyncio.run(_drained(graph.astream(_YES, where))),
    "batch": lambda graph, where: graph.batch([_YES], [where]),
    "abatch": lambda graph, where: asyncio.run(graph.abatch([_YES], [where])),
    "batch_as_completed": lambda graph, where: list(graph.batch_as_completed([_YES], [where])),
    "abatch_as_completed": lambda graph, where: asyncio.run(
        _drained(graph.abatch_as_completed([_YES], [where]))
    ),
    "stream_events": lambda graph, where: list(graph.stream_events(_YES, where, version="v3")),
    "astream_events": lambda graph, where: asyncio.run(
        _drained(graph.astream_events(_YES, where, version="v2"))
    ),
    "astream_events v3": lambda graph, where: asyncio.run(_events(graph, where)),
    "astream_log": lambda graph, where: asyncio.run(_drained(graph.astream_log(_YES, where))),
    "transform": lambda graph, where: list(graph.transform(iter([_YES]), where)),
    "atransform": lambda graph, where: asyncio.run(_drained(graph.atransform(_one(), where))),
    "with_config": lambda graph, where: graph.with_config(where).invoke(_YES),
    "copy": lambda graph, where: graph.copy().invoke(_YES, where),
    "copy with an update": lambda graph, where: graph.copy({"name": "x"}).invoke(_YES, where),
    "bind": lambda graph, where: graph.bind(stream_mode="values").invoke(_YES, where),
    "with_retry": lambda graph, where: graph.with_retry(stop_after_attempt=1).invoke(_YES, where),
    "with_listeners": lambda graph, where: graph.with_listeners().invoke(_YES, where),
    "with_alisteners": lambda graph, where: asyncio.run(
        graph.with_alisteners().ainvoke(_YES, where)
    ),
    "with_types": lambda graph, where: graph.with_types(input_type=dict).invoke(_YES, where),
    "pipe": lambda graph, where: graph.pipe(lambda found: found).invoke(_YES, where),
    "assign": lambda graph, where: graph.assign(more=lambda found: found).invoke(_YES, where),
    "pick": lambda graph, where: graph.pick("log").invoke(_YES, where),
    "map": lambda graph, where: graph.map().invoke([_YES], where),
    "as_tool": lambda graph, where: graph.as_tool(name="desk", description="pays").invoke(
        {"amount": 3, "log": []}, where
    ),
    "update_state": lambda graph, where: graph.update_state(where, {"amount": 3}, as_node="plan"),
    "aupdate_state": lambda graph, where: asyncio.run(
        graph.aupdate_state(where, {"amount": 3}, as_node="plan")
    ),
    "bulk_update_state": lambda graph, where: graph.bulk_update_state(
        where, [[StateUpdate({"amount": 3}, "plan")]]
    ),
    "abulk_update_state": lambda graph, where: asyncio.run(
        graph.abulk_update_state(where, [[StateUpdate({"amount": 3}, "plan")]])
    ),
    "with_fallbacks": lambda graph, where: graph.with_fallbacks(
        [RunnableLambda(lambda _: {})], exceptions_to_handle=(KeyError,)
    ).invoke(_YES, where),
}

_SHOWS = {
    *("aget_graph", "aget_state", "aget_state_history", "aget_subgraphs", "get_graph"),
    *("get_state", "get_state_history", "get_subgraphs", "get_name", "get_prompts"),
    *("config_schema", "get_config_jsonschema", "get_context_jsonschema", "get_input_jsonschema"),
    *("get_input_schema", "get_output_jsonschema", "get_output_schema"),
}
"""They run nothing and change nothing."""
_BUILDS = {"attach_branch", "attach_edge", "attach_node", "validate", "aclear_cache", "clear_cache"}
"""They change the graph as an object, or its cache; no state is released."""


def test_every_public_method_has_been_looked_at() -> None:
    """No method of a compiled graph is missing here."""
    public = {
        name
        for name, _ in inspect.getmembers(CompiledStateGraph, inspect.isfunction)
        if not name.startswith("_")
    }

    assert public - {way.split(" ")[0] for way in WAYS} == _SHOWS | _BUILDS


@pytest.mark.filterwarnings("ignore:.*astream_log.*", "ignore:.*beta.*", "ignore:.*experimental.*")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_way_leads_past_the_gate(office: Office, desk: Desk, thread: str, way: Way) -> None:
    """A thread that waits for an answer: a request is made, no node runs, nothing is written."""
    graph = office.waiting(desk, thread)
    before = office.kinds(thread)
    with pytest.raises(NeedsApproval):
        way(graph, config_of(thread))

    assert desk.ran == []
    assert office.kinds(thread) == [*before, "request"]


@pytest.mark.filterwarnings("ignore:.*astream_log.*", "ignore:.*beta.*", "ignore:.*experimental.*")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_control_runs_on_the_graph_itself(way: Way) -> None:
    """Without the guard the same calls run nodes, or change the state."""
    desk = Desk()
    graph = desk.builder().compile(checkpointer=InMemorySaver())
    graph.invoke({"amount": 2}, config_of())
    before = graph.get_state(config_of()).config
    way(graph, config_of())

    assert graph.get_state(config_of()).config != before
