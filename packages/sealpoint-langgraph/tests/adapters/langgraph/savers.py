# SPDX-License-Identifier: Apache-2.0
"""The savers that run the programs: one store each, opened anew by every process.

`REFERENCE` is the framework's own saver in memory, whose results are the right ones. `UNDER_TEST`
names the savers that must give the same.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from sealpoint_langgraph import SealedSaver, deliberately
from sealpoint_langgraph._declared_types import allow_types
from tests.adapters.langgraph.programs import APPLICATION_TYPES
from tests.adapters.langgraph.stores import opened

__all__ = ["REFERENCE", "UNDER_TEST", "Savers"]


class Savers(Protocol):
    """One store that outlives processes.

    Each call MUST give a new saver object over the same store; what an earlier one acknowledged
    is there. `open` is for the sync face, `aopen` for the async face.
    """

    def open(self) -> AbstractContextManager[BaseCheckpointSaver[Any]]:
        """Open the store in a new process."""
        ...

    def aopen(self) -> AbstractAsyncContextManager[BaseCheckpointSaver[Any]]:
        """Open the store in a new process, inside an event loop."""
        ...

    def going_back(self, config: RunnableConfig) -> RunnableConfig:
        """Add to a configuration of an older checkpoint what says that this is meant."""
        ...


class _InMemory:
    """The stock saver in memory; its dictionaries are the store."""

    def __init__(self, _: Path) -> None:
        self._first = InMemorySaver()

    def _anew(self) -> InMemorySaver:
        saver = InMemorySaver()
        saver.storage, saver.writes = self._first.storage, self._first.writes
        saver.blobs = self._first.blobs
        return saver

    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver[Any]]:
        yield self._anew()

    @asynccontextmanager
    async def aopen(self) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        yield self._anew()

    def going_back(self, config: RunnableConfig) -> RunnableConfig:
        return config


class _StockSqlite:
    """The stock savers on one SQLite file."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "checkpoints.sqlite")

    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver[Any]]:
        with SqliteSaver.from_conn_string(self._path) as saver:
            saver.conn.execute("PRAGMA synchronous=OFF")  # kills here are not power cuts
            yield saver

    @asynccontextmanager
    async def aopen(self) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        async with AsyncSqliteSaver.from_conn_string(self._path) as saver:
            await saver.conn.execute("PRAGMA synchronous=OFF")
            try:
                yield saver
            finally:
                # A write that was cancelled on its way leaves its transaction open, and closing
                # does not end it while a cursor is still referred to; a kill would.
                await saver.conn.rollback()

    def going_back(self, config: RunnableConfig) -> RunnableConfig:
        return config


class _Sealed:
    """Ours, on a backend; every opening is a new handle of the store."""

    def __init__(self, backend: str, folder: Path) -> None:
        self._backend = backend
        self._home = folder / "home"

    @contextmanager
    def open(self) -> Iterator[BaseCheckpointSaver[Any]]:
        with opened(self._backend, self._home) as store:
            allow_types(store.registry, APPLICATION_TYPES)
            yield SealedSaver(store)

    @asynccontextmanager
    async def aopen(self) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        with self.open() as saver:
            yield saver

    def going_back(self, config: RunnableConfig) -> RunnableConfig:
        return deliberately(config, "the program goes back on purpose")


REFERENCE: Callable[[Path], Savers] = _InMemory

UNDER_TEST: dict[str, Callable[[Path], Savers]] = {
    "sealed-sqlite": partial(_Sealed, "sqlite"),
    "sealed-file": partial(_Sealed, "file"),
    "sealed-postgres": partial(_Sealed, "postgres"),
    "stock-sqlite": _StockSqlite,
}
"""The argument is an empty folder of its own for each run; the object is one fresh store. The
first is put to the test each time, the others in long runs: the last shows that what is asked for
can be had."""
