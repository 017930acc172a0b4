# SPDX-License-Identifier: Apache-2.0
"""A graph that is not guarded runs no node where only guarded graphs may run."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from sealpoint.errors import ResumeRefused
from sealpoint_langgraph import SealedSaver, deliberately, guard
from tests.attacks.langgraph.desks import EITHER_FACE, Desk, State, config_of, run
from tests.attacks.langgraph.office import Office

_VALUES: tuple[Any, ...] = (Command(resume="yes"), Command(goto="pay"), None, {"amount": 3})
_every_way = pytest.mark.parametrize("durability", ["sync", "async", "exit"])
_every_face = pytest.mark.parametrize("face", EITHER_FACE)


class Wrapper(BaseCheckpointSaver[Any]):
    """Delegates as `_CustomCheckpointerAdapter` of langgraph-api 0.16.7 does, in both faces.

    It answers `get_next_version` itself, and passes neither `with_allowlist` nor the history of
    delta channels on.
    """

    def __init__(self, inner: SealedSaver) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner

    def get_next_version(self, current: Any, channel: None) -> str:
        """As the server counts."""
        del channel
        before = 0 if current is None else int(str(current).split(".")[0])
        return f"{before + 1:032}.{random.random():.16f}"  # noqa: S311

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Delegates."""
        return self.inner.get_tuple(config)

    def list(self, config: RunnableConfig | None, **named: Any) -> Iterator[CheckpointTuple]:
        """Delegates."""
        return self.inner.list(config, **named)

    def put(self, config: RunnableConfig, *put: Any) -> RunnableConfig:
        """Delegates."""
        return self.inner.put(config, *put)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[Any], task_id: str, task_path: str = ""
    ) -> None:
        """Delegates."""
        self.inner.put_writes(config, writes, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Delegates."""
        return await self.inner.aget_tuple(config)

    async def alist(
        self, config: RunnableConfig | None, **named: Any
    ) -> AsyncIterator[CheckpointTuple]:
        """Delegates."""
        async for found in self.inner.alist(config, **named):
            yield found

    async def aput(self, config: RunnableConfig, *put: Any) -> RunnableConfig:
        """Delegates."""
        return await self.inner.aput(config, *put)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[Any], task_id: str, task_path: str = ""
    ) -> None:
        """Delegates."""
        await self.inner.aput_writes(config, writes, task_id, task_path)


def _edit(face: str, graph: Any, where: RunnableConfig) -> None:
    if face == "sync":
        graph.update_state(where, {"amount": 3}, as_node="plan")
    else:
        asyncio.run(graph.aupdate_state(where, {"amount": 3}, as_node="plan"))


def _states(graph: Any, where: RunnableConfig) -> list[Any]:
    """What each kind of read shows; a server adds a runtime without a control."""

    async def awaited() -> list[Any]:
        served = config_of(where["configurable"]["thread_id"], __pregel_runtime=Runtime())
        history = [found async for found in graph.aget_state_history(served)]
        return [await graph.aget_state(served, subgraphs=True), history[0]]

    found = [graph.get_state(where), graph.get_state(where, subgraphs=True)]
    return [*found, next(iter(graph.get_state_history(where))), *asyncio.run(awaited())]


@pytest.fixture(params=["office", "calm"], ids=["team", "solo"])
def place(request: pytest.FixtureRequest) -> Office:
    """A store whose policy asks people, and one whose policy asks nobody."""
    found: Office = request.getfixturevalue(request.param)
    return found


@_every_way
@_every_face
def test_the_saver_of_a_guarded_graph_refuses_any_other(
    place: Office, desk: Desk, thread: str, face: str, durability: str
) -> None:
    """Before any node, under every policy, also behind a wrapper; the other graph may read."""
    saver, where = place.waiting(desk, thread).checkpointer, config_of(thread)
    before = place.kinds(thread)
    for other in (desk.builder().compile(checkpointer=each) for each in (saver, Wrapper(saver))):
        for value in _VALUES:
            for target in (where, config_of(f"{thread} new")):
                with pytest.raises(ResumeRefused, match="belongs to a guarded graph"):
                    run(face, other, value, target, durability=durability)
        with pytest.raises(ResumeRefused, match="belongs to a guarded graph"):
            _edit(face, other, where)
        assert all(state.interrupts or state.tasks for state in _states(other, where))

    assert desk.ran == []
    assert place.kinds(thread) == before


@_every_face
def test_the_hint_of_the_refusal_works(place: Office, desk: Desk, thread: str, face: str) -> None:
    """The other graph runs behind a guard of its own, with the same saver."""
    saver, where = place.waiting(desk, thread).checkpointer, config_of(thread)
    answer: Any = Command(resume="yes")
    other = desk.builder().compile(checkpointer=saver)
    with pytest.raises(ResumeRefused) as refused:
        run(face, other, answer, where)
    assert "guard(graph, saver, actor=...)" in refused.value.hint
    guarded = guard(other, saver, actor="dev")
    if place.worker.policy is not None and place.worker.policy.asks_people:
        place.approve(place.asked(lambda: run(face, guarded, answer, where)))
    run(face, guarded, answer, where)

    assert desk.ran == ["asked", "pay", "end"]


@_every_way
@_every_face
def test_a_wrapped_bare_saver_is_refused_before_any_node(
    office: Office, desk: Desk, thread: str, face: str, durability: str
) -> None:
    """On a thread that waits and on a new one, where the policy asks people; it may read."""
    office.waiting(desk, thread)
    before, where = office.kinds(thread), config_of(thread)
    graph = desk.builder().compile(checkpointer=Wrapper(office.saver))
    for value in _VALUES:
        for target in (where, config_of(f"{thread} new")):
            with pytest.raises(ResumeRefused, match="not guarded"):
                run(face, graph, value, target, durability=durability)
    with pytest.raises(ResumeRefused, match="asks for approvals"):
        _edit(face, graph, where)

    assert desk.ran == []
    assert office.kinds(thread) == before
    assert all(state.interrupts or state.tasks for state in _states(graph, where))


@_every_face
def test_a_node_may_read_with_its_own_configuration(office: Office, thread: str, face: str) -> None:
    """By the saver, by the guarded graph and by another one, also from an OS thread of its own."""
    guarded, where = office.waiting(Desk(), thread), config_of(thread)
    other = guarded.builder.compile(checkpointer=guarded.checkpointer)
    found: list[Any] = []

    def look(_state: State, config: RunnableConfig) -> State:
        named = {**config["configurable"], **where["configurable"], "checkpoint_ns": ""}
        named.pop("__pregel_checkpointer")  # else the graphs read with the saver of this one
        own: Any = {**config, "configurable": named}
        found.extend((office.saver.get_tuple(own), guarded.get_state(own), other.get_state(own)))
        apart = threading.Thread(target=lambda: found.append(guarded.get_state(own)))
        apart.start()
        apart.join()
        return {}

    built: Any = StateGraph(State)
    built.add_node("look", look)
    built.add_edge(START, "look")
    run(face, built.compile(checkpointer=InMemorySaver()), {"amount": 1}, config_of())

    assert len(found) == 4
    assert all(found)


class _PowerCut(BaseException):
    """The process is gone: no code of the graph catches it."""


def _dies() -> None:
    raise _PowerCut


@pytest.mark.parametrize("kind", ["guarded", "bare"])
@_every_face
def test_an_edit_settles_no_unknown_outcome(
    calm: Office, desk: Desk, thread: str, face: str, kind: str
) -> None:
    """A run died in the payment; the edit, whatever reason it has, is not what came of that."""
    guarded, where = calm.waiting(desk, thread), config_of(thread)
    desk.during["pay"] = _dies
    with pytest.raises(_PowerCut):
        run(face, guarded, Command(resume="yes"), where)
    bare = desk.builder().compile(checkpointer=SealedSaver(calm.worker))
    _edit(face, guarded if kind == "guarded" else bare, deliberately(where, "a typo"))
    desk.ran.clear()

    with pytest.raises(ResumeRefused, match=r"edited at .* what came of an answer"):
        run(face, guarded, None, where)
    assert desk.ran == []
    run(face, guarded, None, deliberately(where, "the bank has no such payment"))
    assert guarded.get_state(where).interrupts
