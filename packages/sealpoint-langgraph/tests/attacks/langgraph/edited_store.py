# SPDX-License-Identifier: Apache-2.0
"""A graph that waits for an answer in a sealed store, and somebody who reaches for its bytes.

That the same edits work on the framework's own saver is in `test_stock_saver.py`.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from sealpoint.api import Store
from sealpoint.errors import SealpointError
from sealpoint.ledger import Kind
from sealpoint_langgraph import SealedSaver
from tests.attacks.edited_threads import ALARMS, BACKENDS, EditedThreads, ending
from tests.attacks.langgraph.desks import SHAPES, Desk, config_of

__all__ = ["ALARMS", "BACKENDS", "PLACES", "EditedStore", "ending"]

_DAILY = tuple(zip(("sqlite", "file"), SHAPES, strict=True))
PLACES = [
    pytest.param(
        (backend, shape),
        id=f"{backend}-{shape}",
        marks=[] if (backend, shape) in _DAILY else [pytest.mark.soak],
    )
    for backend in ("sqlite", "file", "postgres")
    for shape in SHAPES
]
"""Each backend, with a question that is asked by the graph and by a subgraph; one each a day."""


class EditedStore(EditedThreads):
    """Two threads that paid once and wait for the second answer; `other` is there to take from."""

    def __init__(self, home: Path, backend: str, shape: str) -> None:
        super().__init__(home, backend)
        self.shape, self.desk = shape, Desk(shape)
        with self.open() as store:
            graph = self.graph(store)
            for name in ("t", "other"):
                where = config_of(name)
                graph.invoke({"amount": 1}, where)
                graph.invoke(Command(resume="yes"), where)
                if name == "t":
                    self.ids = {"t": bytes.fromhex(store.thread("t").id)}
                    self._older = self.copied()
                graph.invoke({"amount": 2}, where)
                self.ids[name] = bytes.fromhex(store.thread(name).id)
            self.truth = graph.get_state(config_of()).values
            self.registry = store.registry

    def graph(self, store: Store) -> Any:
        """The graph with a saver of its own."""
        return self.desk.builder().compile(checkpointer=SealedSaver(store))

    def questions(self) -> list[int]:
        """Where the pending question was written: once for each namespace that it shows in."""
        asked = {seq: self.body(seq).question for seq in self.find(Kind.RESULTS)}
        newest = [question for question in asked.values() if question is not None][-1]
        return [seq for seq, question in asked.items() if question == newest]

    def sound(self) -> None:
        """Two controls: usable as it is, and a reopen without an edit says the same."""
        with self.open() as store:
            state = self.graph(store).get_state(config_of())
            assert state.values == self.truth, "not usable before the edit"
            assert state.interrupts, "no question is pending"
            report = store.verify()
            assert report.ok, f"not sound before the edit: {report.findings}"

    def endings(self, face: str, name: str = "t") -> dict[str, type[SealpointError] | None]:
        """How every way to go on and to read ends, in a new process; no node may run."""
        self.desk.ran.clear()
        with self.open() as store:
            graph = self.graph(store)
            if face == "sync":
                found = {way: ending(call) for way, call in _ways(graph, config_of(name)).items()}
            else:
                found = asyncio.run(_async_endings(graph, config_of(name)))
        assert not self.desk.ran, f"{self.desk.ran} ran"
        return found


def _ways(graph: Any, where: Any) -> dict[str, Callable[[], object]]:
    return {
        "go on": lambda: graph.invoke(None, where),
        "answer": lambda: graph.invoke(Command(resume="yes"), where),
        "turn": lambda: graph.invoke({"amount": 3}, where),
        "edit": lambda: graph.update_state(where, {"amount": 3}, as_node="plan"),
        "show": lambda: graph.get_state(where, subgraphs=True),
        "list": lambda: list(graph.get_state_history(where)),
    }


async def _async_endings(graph: Any, where: Any) -> dict[str, type[SealpointError] | None]:
    async def listed() -> list[Any]:
        return [each async for each in graph.aget_state_history(where)]

    ways = {
        "go on": graph.ainvoke(None, where),
        "answer": graph.ainvoke(Command(resume="yes"), where),
        "turn": graph.ainvoke({"amount": 3}, where),
        "edit": graph.aupdate_state(where, {"amount": 3}, as_node="plan"),
        "show": graph.aget_state(where, subgraphs=True),
        "list": listed(),
    }
    found: dict[str, type[SealpointError] | None] = {}
    for way, call in ways.items():
        try:
            await call
        except SealpointError as error:
            found[way] = type(error)
        else:
            found[way] = None
    return found
