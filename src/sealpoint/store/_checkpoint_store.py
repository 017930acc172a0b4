# SPDX-License-Identifier: Apache-2.0
"""An open store: its threads, and the list of their names."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from sealpoint.errors import UsageError
from sealpoint.store._core import Core, StoreParts, warn_of_expiry
from sealpoint.store._names import check_name
from sealpoint.store._refs import Collected
from sealpoint.store._sweep import collect
from sealpoint.store._thread_names import ThreadNames, list_threads

_HANDLES_KEPT = 256


_T = TypeVar("_T")


class CheckpointStore(Generic[_T]):
    """Checkpoints by thread, in one namespace of one store.

    Args:
        parts: What it is made of.
        handle: Makes the handle of a thread.

    Raises:
        NotTrusted: The store chain is not signed by the pinned root.
        Unanchored: The anchor does not know this store.
        RolledBack: The store chain ends before the anchored or pinned roster.
    """

    def __init__(self, parts: StoreParts, handle: Callable[[Core, str], _T]) -> None:
        check_name(parts.namespace, "namespace")
        self.core = Core(parts)
        warn_of_expiry(self.core, self.core.renewed_trust())
        self._lock = Lock()
        self._new_handle = handle
        self._handles: WeakValueDictionary[str, _T] = WeakValueDictionary()
        self._recent: OrderedDict[str, _T] = OrderedDict()
        self._closed = False

    def thread(self, name: str) -> _T:
        """The handle of a thread; the same one for the same name, so that a session has one owner.

        Nothing is read yet. A handle that nobody holds any more is given up in time; its session
        then ends, and the next save opens another.

        Raises:
            NameInvalid: The name is empty, too long or does not print.
        """
        name = check_name(name, "thread name")
        with self._lock:
            if self._closed:
                raise UsageError("store: it is closed")
            handle = self._handles.get(name)
            if handle is None:
                handle = self._handles[name] = self._new_handle(self.core, name)
            self._recent[name] = handle
            self._recent.move_to_end(name)
            if len(self._recent) > _HANDLES_KEPT:
                self._recent.popitem(last=False)
            return handle

    def threads(self, *, partial: bool = False) -> ThreadNames:
        """The names of the namespace's threads, sorted; see `list_threads`."""
        return list_threads(self.core, partial=partial)

    def gc(
        self,
        *,
        dry_run: bool = False,
        compact: bool = True,
        progress: Callable[[int, int], object] | None = None,
    ) -> Collected:
        """Take away what no thread of the store needs any more, in every namespace.

        That is what an interrupted prune or erasure, and saves that never came to an end, left
        behind. A thread that does not verify is left as it is.

        Args:
            dry_run: Say what would go, and change nothing.
            compact: Also make the files smaller, which writes once more whatever stays.
            progress: Called after each thread with how many are done, and how many there are.

        Raises:
            ReadOnly: The store was opened for reading only.
        """
        return collect(self.core, dry_run=dry_run, compact=compact, progress=progress)

    def close(self) -> None:
        """Release storage and anchor. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            self._recent.clear()
        self.core.parts.close()
