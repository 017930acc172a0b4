# SPDX-License-Identifier: Apache-2.0
"""A guarded graph that is awaited: its decisions are made beside the event loop, in order."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import sealpoint.aio
from sealpoint.errors import Busy, UsageError
from sealpoint.store import Event
from sealpoint_langgraph import SealedSaver, deliberately, guard
from tests.adapters.langgraph.stores import opened, places, url_of
from tests.attacks.langgraph.desks import Desk, config_of
from tests.attacks.langgraph.office import Office

_SECONDS = 30
_CALLER: ContextVar[str] = ContextVar("caller", default="nobody")


class Decisions:
    """A store that tells when a decision has been recorded, and may be made to wait there."""

    def __init__(self, home: Path) -> None:
        self.office = Office(home, policy="solo")
        self.listener: Callable[[], object] | None = None
        self.store = self.office.process(on_event=self._event)
        self.desk = Desk()

    def _event(self, event: Event) -> None:
        if event.code == "session-opened" and self.listener is not None:
            self.listener()

    def graph(self, actor: str = "dev") -> Any:
        """A guarded graph."""
        return guard(self.desk.builder().compile(), SealedSaver(self.store), actor=actor)

    def actors(self) -> list[str]:
        """Who went on, in the order of the record."""
        found = self.store.audit(thread="t", kind="resume")
        return [each.summary for each in found]


@pytest.fixture
def decisions(tmp_path: Path) -> Iterator[Decisions]:
    """A store whose thread has had its first turn."""
    made = Decisions(tmp_path / "home")
    made.graph().invoke({"amount": 1}, config_of())
    made.desk.ran.clear()
    yield made
    assert made.store.verify().ok
    made.office.close()


# ---------------------------------------------------------------------- what to pass


def test_an_async_store_is_refused_with_what_to_pass(tmp_path: Path) -> None:
    """Opened or on its way; the store of `open_store` serves both faces."""
    home = tmp_path / "home"
    opened("sqlite", home).close()

    async def hand_over() -> None:
        opening: Any = sealpoint.aio.open_store(url_of("sqlite", home), **places(home))
        async with opening as store:
            for each in (store, opening):
                with pytest.raises(UsageError, match="expected an open store") as refused:
                    SealedSaver(each)
                assert "sealpoint.open_store(url)" in str(refused.value.hint)

    asyncio.run(hand_over())
    with opened("sqlite", home) as store:
        graph = guard(Desk().builder().compile(), SealedSaver(store), actor="dev")
        found = asyncio.run(graph.ainvoke({"amount": 1}, config_of()))
    assert found["log"] == ["plan 1"]


def test_a_guard_on_another_saver_is_refused() -> None:
    """It could not ask for a pass."""
    stock: Any = InMemorySaver()
    with pytest.raises(UsageError, match="expected a SealedSaver, found InMemorySaver"):
        guard(Desk().builder().compile(), stock, actor="dev")


# ---------------------------------------------------------------------- beside the loop


@pytest.mark.parametrize("way", ["ainvoke", "astream", "aupdate_state"])
def test_a_decision_is_made_beside_the_event_loop(decisions: Decisions, way: str) -> None:
    """In an OS thread that has the context variables of the caller; the loop goes on meanwhile."""
    graph, told, beat = decisions.graph(), [], threading.Event()

    def decided() -> None:
        # Another task of the loop runs while this one waits.
        told.append((threading.current_thread(), _CALLER.get(), beat.wait(_SECONDS)))

    async def call() -> None:
        if way == "aupdate_state":
            await graph.aupdate_state(config_of(), {"amount": 2}, as_node="plan")
        elif way == "astream":
            async for _ in graph.astream({"amount": 2}, config_of()):
                pass
        else:
            await graph.ainvoke({"amount": 2}, config_of())

    async def work() -> None:
        _CALLER.set("caller")
        calling = asyncio.create_task(call())
        while not told and not calling.done():
            await asyncio.sleep(0.001)
            beat.set()
        await calling

    decisions.listener = decided
    asyncio.run(work())

    ((thread, caller, went_on),) = told
    assert thread is not threading.current_thread()
    assert (caller, went_on) == ("caller", True)


def test_calls_of_a_loop_are_decided_in_their_order(decisions: Decisions) -> None:
    """The first of eight at once goes on; those that come meanwhile are told, and do nothing."""
    before = len(decisions.actors())
    graphs = [decisions.graph(f"caller {number}") for number in range(8)]

    async def work() -> list[Any]:
        calls = [graph.ainvoke({"amount": 2}, config_of()) for graph in graphs]
        return await asyncio.gather(*calls, return_exceptions=True)

    found = asyncio.run(work())

    ran = [number for number, each in enumerate(found) if not isinstance(each, Busy)]
    assert ran[0] == 0
    assert [found[number]["log"][-1] for number in ran] == ["plan 2"] * len(ran)
    for number, summary in zip(ran, decisions.actors()[before:], strict=True):
        assert f"caller {number}" in summary


def test_a_call_that_is_cancelled_leaves_nothing_behind(decisions: Decisions) -> None:
    """It ends when its decision has been made: that is on record, and no pass goes on with it."""
    graph, decided, goes = decisions.graph(), threading.Event(), threading.Event()

    def wait() -> None:
        decided.set()
        assert goes.wait(_SECONDS)

    async def work() -> None:
        calling = asyncio.create_task(graph.ainvoke({"amount": 2}, config_of()))
        await asyncio.to_thread(decided.wait, _SECONDS)
        for _ in range(2):
            calling.cancel()
            await asyncio.sleep(0.01)
            assert not calling.done(), "while its decision is being recorded"
        goes.set()
        with pytest.raises(asyncio.CancelledError):
            await calling

    before = len(decisions.actors())
    decisions.listener = wait
    asyncio.run(work())
    decisions.listener = None

    assert len(decisions.actors()) == before + 1
    assert decisions.desk.ran == []
    again = deliberately(config_of(), "nothing of it ran")
    found = asyncio.run(graph.ainvoke({"amount": 3}, again))
    assert found["log"][-1] == "plan 3", "the next run takes the thread over"


def test_a_call_that_is_cancelled_while_it_waits_for_its_turn_decides_nothing(
    decisions: Decisions,
) -> None:
    """The one before it goes on."""
    graph, decided, goes = decisions.graph(), threading.Event(), threading.Event()

    def wait() -> None:
        decided.set()
        assert goes.wait(_SECONDS)

    async def work() -> Any:
        first = asyncio.create_task(graph.ainvoke({"amount": 2}, config_of()))
        await asyncio.to_thread(decided.wait, _SECONDS)
        second = asyncio.create_task(graph.ainvoke({"amount": 3}, config_of()))
        await asyncio.sleep(0.01)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        goes.set()
        return await first

    before = len(decisions.actors())
    decisions.listener = wait
    found = asyncio.run(work())

    assert found["log"][-1] == "plan 2"
    assert len(decisions.actors()) == before + 1
