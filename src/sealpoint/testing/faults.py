# SPDX-License-Identifier: Apache-2.0
"""Faults at named steps of a real store: for testing what an application does when one happens.

The wrappers keep nothing themselves: every call reaches the storage or anchor they wrap, and what
was stored before a fault is really stored. At each step they ask `Faults` whether something is to
happen: an error, the end of the process, or any function of the caller's own, such as a save by a
rival at exactly that moment. They are for tests alone.

```python
from sealpoint.testing.faults import Step, inject, storage_error

with sealpoint.open_store("memory:") as store:
    faults = inject(store)
    faults.at(Step.AFTER_APPEND, storage_error)
    store.thread("invoice-7").save({"step": 1})  # the outcome was unknown, and is looked up
```
"""

import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NoReturn

from sealpoint.anchor import Anchor, Position
from sealpoint.api import Store
from sealpoint.errors import AnchorUnavailable, StorageUnavailable
from sealpoint.storage import Record, Storage

__all__ = [
    "Faults",
    "FaultyAnchor",
    "FaultyStorage",
    "Step",
    "anchor_error",
    "crash",
    "inject",
    "storage_error",
]


class Step(StrEnum):
    """The moments of a save, a load or a prune at which a fault can be made to happen, in order."""

    BEFORE_GET = "before-get"
    """The anchor is about to be read."""
    BEFORE_READ = "before-read"
    """Records or blobs are about to be read."""
    BEFORE_CREATE = "before-create"
    """A new thread is about to be reserved in the anchor."""
    AFTER_CREATE = "after-create"
    BEFORE_BLOBS = "before-blobs"
    """Blobs of a large state are about to be stored ahead of their entry."""
    AFTER_BLOBS = "after-blobs"
    BEFORE_APPEND = "before-append"
    """Entries are about to be stored; nothing is in the storage yet."""
    AFTER_APPEND = "after-append"
    """Entries are stored for good, and nobody has been told."""
    BEFORE_ADVANCE = "before-advance"
    """The anchor is about to follow."""
    AFTER_ADVANCE = "after-advance"
    """The anchor has followed; the save is about to return."""
    BEFORE_DROP = "before-drop"
    """Bytes that a prune or an erasure gave up are about to be taken away, a batch at a time."""
    AFTER_DROP = "after-drop"
    BEFORE_TRUNCATE = "before-truncate"
    """Entries that an accepted restore has cut off are about to be taken away."""
    AFTER_TRUNCATE = "after-truncate"
    BEFORE_COMPACT = "before-compact"
    """The files are about to be made smaller."""
    AFTER_COMPACT = "after-compact"


def storage_error() -> NoReturn:
    """Fail as a storage does whose disk, lock or connection is gone."""
    raise StorageUnavailable("storage: expected it to work, found a fault that a test asked for")


def anchor_error() -> NoReturn:
    """Fail as an anchor does that cannot be read or written."""
    raise AnchorUnavailable("anchor: expected it to work, found a fault that a test asked for")


def crash() -> None:
    """End this process at once, as `kill -9` does: nothing is closed, flushed or undone."""
    os.kill(os.getpid(), signal.SIGKILL)


class Faults:
    """What is to happen at which step. Safe to use from several OS threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: dict[Step, list[Callable[[], object]]] = {}
        self.reached: list[Step] = []
        """Every step that was reached, in order."""

    def at(self, step: Step, action: Callable[[], object], *, times: int = 1) -> None:
        """Let an action happen the next `times` times that a step is reached.

        An action that raises makes the call fail there; one that returns lets it go on. Actions
        for the same step happen one after the other, each in its turn.
        """
        with self._lock:
            self._due.setdefault(step, []).extend([action] * times)

    def clear(self) -> None:
        """Let nothing more happen, and forget what was reached."""
        with self._lock:
            self._due.clear()
            self.reached.clear()

    def pass_through(self, step: Step) -> None:
        """Let happen what is due at this step; the wrappers call it."""
        with self._lock:
            self.reached.append(step)
            due = self._due.get(step)
            action = due.pop(0) if due else None
        if action is not None:
            action()


class FaultyStorage:
    """A storage that hands every call on to another one, and fails when it is told to."""

    def __init__(self, storage: Storage, faults: Faults) -> None:
        self._storage = storage
        self._faults = faults

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        needs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """As `Storage.append`."""
        self._faults.pass_through(Step.BEFORE_APPEND)
        self._storage.append(thread, seq, records, blobs=blobs, needs=needs, label=label)
        self._faults.pass_through(Step.AFTER_APPEND)

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """As `Storage.put_blobs`."""
        self._faults.pass_through(Step.BEFORE_BLOBS)
        self._storage.put_blobs(thread, blobs)
        self._faults.pass_through(Step.AFTER_BLOBS)

    def drop(
        self,
        thread: bytes,
        head: int,
        *,
        payloads: Sequence[int] = (),
        bodies: Sequence[int] = (),
        blobs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """As `Storage.drop`."""
        self._faults.pass_through(Step.BEFORE_DROP)
        self._storage.drop(thread, head, payloads=payloads, bodies=bodies, blobs=blobs, label=label)
        self._faults.pass_through(Step.AFTER_DROP)

    def truncate(self, thread: bytes, seq: int, header: bytes | None) -> None:
        """As `Storage.truncate`."""
        self._faults.pass_through(Step.BEFORE_TRUNCATE)
        self._storage.truncate(thread, seq, header)
        self._faults.pass_through(Step.AFTER_TRUNCATE)

    def compact(self) -> None:
        """As `Storage.compact`."""
        self._faults.pass_through(Step.BEFORE_COMPACT)
        self._storage.compact()
        self._faults.pass_through(Step.AFTER_COMPACT)

    def read(self, thread: bytes, seq: int) -> Record | None:
        """As `Storage.read`."""
        self._faults.pass_through(Step.BEFORE_READ)
        return self._storage.read(thread, seq)

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """As `Storage.scan`."""
        self._faults.pass_through(Step.BEFORE_READ)
        return self._storage.scan(thread, first, last, descending=descending)

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """As `Storage.blob`."""
        self._faults.pass_through(Step.BEFORE_READ)
        return self._storage.blob(thread, digest, size_bytes_max)

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """As `Storage.blobs`."""
        self._faults.pass_through(Step.BEFORE_READ)
        return self._storage.blobs(thread, digests, size_bytes_max)

    def stored_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """As `Storage.stored_blobs`."""
        self._faults.pass_through(Step.BEFORE_READ)
        return self._storage.stored_blobs(thread)

    def threads(self) -> Iterator[bytes]:
        """As `Storage.threads`."""
        self._faults.pass_through(Step.BEFORE_READ)
        return self._storage.threads()

    def blob_threads(self) -> Iterator[bytes]:
        """As `Storage.blob_threads`."""
        self._faults.pass_through(Step.BEFORE_READ)
        return self._storage.blob_threads()

    def labelled(self, label: bytes) -> list[bytes]:
        """As `Storage.labelled`."""
        self._faults.pass_through(Step.BEFORE_READ)
        return self._storage.labelled(label)

    def close(self) -> None:
        """Close the storage; this never fails on request."""
        self._storage.close()


class FaultyAnchor:
    """An anchor that hands every call on to another one, and fails when it is told to."""

    def __init__(self, anchor: Anchor, faults: Faults) -> None:
        self._anchor = anchor
        self._faults = faults

    def get(self, slot: bytes) -> Position | None:
        """As `Anchor.get`."""
        self._faults.pass_through(Step.BEFORE_GET)
        return self._anchor.get(slot)

    def create(self, slot: bytes, position: Position) -> Position:
        """As `Anchor.create`."""
        self._faults.pass_through(Step.BEFORE_CREATE)
        found = self._anchor.create(slot, position)
        self._faults.pass_through(Step.AFTER_CREATE)
        return found

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """As `Anchor.advance`."""
        self._faults.pass_through(Step.BEFORE_ADVANCE)
        found = self._anchor.advance(slot, expected, position)
        self._faults.pass_through(Step.AFTER_ADVANCE)
        return found

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """As `Anchor.slots`."""
        self._faults.pass_through(Step.BEFORE_GET)
        return self._anchor.slots()

    def close(self) -> None:
        """Close the anchor; this never fails on request."""
        self._anchor.close()


def inject(store: Store) -> Faults:
    """Put the wrappers between an open store and its storage and anchor.

    Returns:
        Where faults are asked for; none is asked for yet.
    """
    faults = Faults()
    core = store._checkpoints.core  # noqa: SLF001 # a store has no public way to change its parts
    core.storage = FaultyStorage(core.storage, faults)
    core.anchor = FaultyAnchor(core.anchor, faults)
    return faults
