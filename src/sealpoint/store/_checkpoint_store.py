# SPDX-License-Identifier: Apache-2.0
"""An open store: its threads, and the list of their names."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from sealpoint.anchor import Position
from sealpoint.errors import SealpointError, UsageError
from sealpoint.ledger import STORE_CHAIN, link_hash, parse_header
from sealpoint.store._collect import collect
from sealpoint.store._core import Core, Parts
from sealpoint.store._expiry import warn_of_expiry
from sealpoint.store._genesis import claimed_name
from sealpoint.store._names import check_name, store_slot, thread_slot
from sealpoint.store._refs import Collected, ThreadNames

__all__ = ["CheckpointStore"]

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

    def __init__(self, parts: Parts, handle: Callable[[Core, str], _T]) -> None:
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
                raise UsageError("store: expected an open store, found it closed")
            handle = self._handles.get(name)
            if handle is None:
                handle = self._handles[name] = self._new_handle(self.core, name)
            self._recent[name] = handle
            self._recent.move_to_end(name)
            if len(self._recent) > _HANDLES_KEPT:
                self._recent.popitem(last=False)
            return handle

    def threads(self) -> ThreadNames:
        """The names of the namespace's threads, sorted, and whether the list is complete.

        A name counts when the anchor knows it for this very thread. The list is complete when
        every thread that the anchor knows was found so, with the entry that the anchor has seen.
        """
        core = self.core
        core.trust()
        own = store_slot(core.parts.secret)
        expected = {
            slot: self._restored(position)
            for slot, position in core.anchor.slots()
            if slot != own and not position.erased
        }
        names = []
        for thread in core.storage.threads():
            if thread == STORE_CHAIN:
                continue
            found = self._named(thread)
            if found is None:
                continue
            namespace, name = found
            slot = thread_slot(core.parts.secret, namespace, name)
            position = expected.get(slot)
            if position is not None and position.thread == thread and not self._is_lost(position):
                if namespace == core.namespace:
                    names.append(name)
                if self._stands(position):
                    del expected[slot]
        # A name that was only reserved need not have become a thread.
        complete = all(position.reserved for position in expected.values())
        return ThreadNames(names=tuple(sorted(names)), complete=complete)

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

    def _named(self, thread: bytes) -> tuple[str, str] | None:
        """What a genesis says it is called; the anchor's slot proves it."""
        try:
            return claimed_name(self.core, thread)
        except SealpointError:
            return None

    def _restored(self, position: Position) -> Position:
        try:
            return self.core.restored(position)
        except SealpointError:
            return position

    def _is_lost(self, position: Position) -> bool:
        """Whether what the store has of a thread was lost in a restore, and has come back."""
        record = self.core.storage.read(position.thread, 0) if position.reserved else None
        return record is not None and parse_header(record.header).epoch < position.epoch

    def _stands(self, position: Position) -> bool:
        """Whether the entry that the anchor has seen is where it was seen."""
        if position.reserved:
            return True
        try:
            record = self.core.storage.read(position.thread, position.seq)
        except SealpointError:
            return False
        return record is not None and link_hash(record.header) == position.entry

    def close(self) -> None:
        """Release storage and anchor. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            self._recent.clear()
        self.core.parts.close()
