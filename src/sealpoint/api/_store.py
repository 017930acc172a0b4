# SPDX-License-Identifier: Apache-2.0
"""The object that users hold."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from sealpoint.audit import Progress, Report, verify_store
from sealpoint.ids import StoreId
from sealpoint.store import CheckpointStore, Collected, Parts, Thread, ThreadNames

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

    def gc(
        self,
        *,
        dry_run: bool = False,
        compact: bool = True,
        progress: Callable[[int, int], object] | None = None,
    ) -> Collected:
        """Take away what no thread of the store needs any more, in every namespace.

        That is what an interrupted prune or erasure, and saves that never came to an end, left
        behind. A thread that does not verify is left as it is, and is named in the result.

        Args:
            dry_run: Say what would go, and change nothing.
            compact: Also make the files smaller, which writes once more whatever stays.
            progress: Called after each thread with how many are done, and how many there are.

        Raises:
            ReadOnly: The store was opened for reading only, and this is no dry run.
        """
        return self._checkpoints.gc(dry_run=dry_run, compact=compact, progress=progress)

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
