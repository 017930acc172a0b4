# SPDX-License-Identifier: Apache-2.0
"""The object that users hold."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from sealpoint.audit import Progress, Report, verify_store
from sealpoint.ids import StoreId
from sealpoint.store import CheckpointStore, Parts, Thread, ThreadNames

__all__ = ["Store"]


class Store:
    """An open store. `open_store` makes one; use it in a `with` block, or close it."""

    def __init__(self, parts: Parts) -> None:
        self._checkpoints = CheckpointStore(parts)

    @property
    def id(self) -> StoreId:
        """The store's id, as the pin has it."""
        return self._checkpoints.core.store

    @property
    def namespace(self) -> str:
        """The namespace that the threads are in."""
        return self._checkpoints.core.namespace

    def __repr__(self) -> str:
        return f"<Store {self.id} namespace {self.namespace!r}>"

    def thread(self, name: str) -> Thread:
        """The thread of a name; it need not exist yet. The same name gives the same handle."""
        return self._checkpoints.thread(name)

    def threads(self) -> ThreadNames:
        """The names of all threads of the namespace, and whether the list is provably complete."""
        return self._checkpoints.threads()

    def verify(self, progress: Callable[[Progress], object] | None = None) -> Report:
        """Verify every entry, body and blob of every thread. Writes nothing.

        Args:
            progress: Called now and then with how far it has come.
        """
        return verify_store(self._checkpoints.core, progress)

    def close(self) -> None:
        """Release everything. Closing twice is allowed."""
        self._checkpoints.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
