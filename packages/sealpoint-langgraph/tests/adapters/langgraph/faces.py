# SPDX-License-Identifier: Apache-2.0
"""The two faces of a graph, sync and async, under one interface.

The methods are coroutines in both, so that the harness is written once. Those of the sync face
never wait and need no event loop: they call only the sync methods of graph and saver.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import StateSnapshot, StreamMode

from tests.adapters.langgraph.savers import Savers
from tests.adapters.langgraph.turns import Durability, Graph

__all__ = ["FACES", "Face"]

_LEFT_SECONDS = 10.0
_MODES: Sequence[StreamMode] = (
    "values",
    "updates",
    "custom",
    "messages",
    "tasks",
    "checkpoints",
    "debug",
)


class Face(Protocol):
    """What the harness does with a graph and its saver."""

    def opened(self, savers: Savers) -> AbstractAsyncContextManager[BaseCheckpointSaver[Any]]:
        """Open the store in a new process."""
        ...

    async def run(
        self,
        graph: Graph,
        given: Any,
        config: RunnableConfig,
        *,
        context: Any,
        durability: Durability,
        streamed: bool,
    ) -> Any:
        """Invoke the graph; streamed, in all modes and with its subgraphs."""
        ...

    async def state(self, graph: Graph, config: RunnableConfig) -> StateSnapshot:
        """Look at the newest state, with subgraphs."""
        ...

    async def history(self, graph: Graph, config: RunnableConfig) -> list[StateSnapshot]:
        """Look at all states, newest first."""
        ...

    async def edit(
        self, graph: Graph, config: RunnableConfig, values: Any, as_node: str | None
    ) -> None:
        """Edit the state."""
        ...

    async def entries(
        self, saver: BaseCheckpointSaver[Any], config: RunnableConfig
    ) -> list[CheckpointTuple]:
        """List what the saver holds of a thread, in all its lanes."""
        ...


class _Sync:
    @asynccontextmanager
    async def opened(self, savers: Savers) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        with savers.open() as saver:
            yield saver

    async def run(
        self,
        graph: Graph,
        given: Any,
        config: RunnableConfig,
        *,
        context: Any,
        durability: Durability,
        streamed: bool,
    ) -> Any:
        if not streamed:
            return graph.invoke(given, config, context=context, durability=durability)
        chunks = graph.stream(
            given,
            config,
            context=context,
            durability=durability,
            stream_mode=_MODES,
            subgraphs=True,
        )
        return list(chunks)

    async def state(self, graph: Graph, config: RunnableConfig) -> StateSnapshot:
        return graph.get_state(config, subgraphs=True)

    async def history(self, graph: Graph, config: RunnableConfig) -> list[StateSnapshot]:
        return list(graph.get_state_history(config))

    async def edit(
        self, graph: Graph, config: RunnableConfig, values: Any, as_node: str | None
    ) -> None:
        graph.update_state(config, values, as_node)

    async def entries(
        self, saver: BaseCheckpointSaver[Any], config: RunnableConfig
    ) -> list[CheckpointTuple]:
        return list(saver.list(config))


class _Async:
    @asynccontextmanager
    async def opened(self, savers: Savers) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        async with savers.aopen() as saver:
            mine = asyncio.all_tasks()
            try:
                yield saver
            finally:
                # After an error the framework does not wait for all its tasks: some may still be
                # saving. Nothing of a process goes on when it is dead, and its store is closed.
                if left := asyncio.all_tasks() - mine:
                    await asyncio.wait(left, timeout=_LEFT_SECONDS)

    async def run(
        self,
        graph: Graph,
        given: Any,
        config: RunnableConfig,
        *,
        context: Any,
        durability: Durability,
        streamed: bool,
    ) -> Any:
        if not streamed:
            return await graph.ainvoke(given, config, context=context, durability=durability)
        chunks = graph.astream(
            given,
            config,
            context=context,
            durability=durability,
            stream_mode=_MODES,
            subgraphs=True,
        )
        return [chunk async for chunk in chunks]

    async def state(self, graph: Graph, config: RunnableConfig) -> StateSnapshot:
        return await graph.aget_state(config, subgraphs=True)

    async def history(self, graph: Graph, config: RunnableConfig) -> list[StateSnapshot]:
        return [state async for state in graph.aget_state_history(config)]

    async def edit(
        self, graph: Graph, config: RunnableConfig, values: Any, as_node: str | None
    ) -> None:
        await graph.aupdate_state(config, values, as_node)

    async def entries(
        self, saver: BaseCheckpointSaver[Any], config: RunnableConfig
    ) -> list[CheckpointTuple]:
        return [entry async for entry in saver.alist(config)]


FACES: dict[str, Face] = {"sync": _Sync(), "async": _Async()}
