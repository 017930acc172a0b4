# SPDX-License-Identifier: Apache-2.0
"""Faults at named steps of a real store: for testing what an application does when one happens.

The wrappers keep nothing themselves: every call reaches the storage or anchor they wrap, and what
was stored before a fault is really stored. At each step they ask `Faults` whether something is to
happen: an error, the end of the process, or any function of the caller's own, such as a save by a
rival at exactly that moment. They are for tests alone.

```python
from sealpoint_testing.faults import Step, inject, storage_error

with sealpoint.open_store("memory:") as store:
    faults = inject(store)
    faults.at(Step.AFTER_APPEND, storage_error)
    store.thread("invoice-7").save({"step": 1})  # the outcome was unknown, and is looked up
```
"""

import os
import signal
import threading
from collections.abc import Callable
from enum import StrEnum
from typing import NoReturn, ParamSpec, TypeVar

from sealpoint.anchor import Anchor
from sealpoint.api import Store
from sealpoint.errors import AnchorUnavailable, StorageUnavailable
from sealpoint.storage import Storage

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

_P = ParamSpec("_P")
_T = TypeVar("_T")


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
    """Entries are stored durably, and no caller knows it yet."""
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
    """The actions for each step. Safe to use from several OS threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: dict[Step, list[Callable[[], object]]] = {}
        self.reached: list[Step] = []
        """Every step that was reached, in order."""

    def at(self, step: Step, action: Callable[[], object], *, times: int = 1) -> None:
        """Let an action happen the next `times` times that a step is reached.

        An action that raises makes the call fail there; after one that returns, the call continues.
        Actions for the same step run one after the other.
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

    def wrap(
        self, call: Callable[_P, _T], before: Step, after: Step | None = None
    ) -> Callable[_P, _T]:
        """A call with the step that it begins with, and the one that a success ends with."""

        def stepped(*args: _P.args, **named: _P.kwargs) -> _T:
            self.pass_through(before)
            found = call(*args, **named)
            if after is not None:
                self.pass_through(after)
            return found

        return stepped


class FaultyStorage:
    """A storage that passes every call to another one, and fails on request."""

    def __init__(self, storage: Storage, faults: Faults) -> None:
        wrap = faults.wrap
        self.append = wrap(storage.append, Step.BEFORE_APPEND, Step.AFTER_APPEND)
        self.alone = storage.alone
        self.put_blobs = wrap(storage.put_blobs, Step.BEFORE_BLOBS, Step.AFTER_BLOBS)
        self.drop = wrap(storage.drop, Step.BEFORE_DROP, Step.AFTER_DROP)
        self.truncate = wrap(storage.truncate, Step.BEFORE_TRUNCATE, Step.AFTER_TRUNCATE)
        self.compact = wrap(storage.compact, Step.BEFORE_COMPACT, Step.AFTER_COMPACT)
        self.read = wrap(storage.read, Step.BEFORE_READ)
        self.headers = wrap(storage.headers, Step.BEFORE_READ)
        self.scan = wrap(storage.scan, Step.BEFORE_READ)
        self.blob = wrap(storage.blob, Step.BEFORE_READ)
        self.blobs = wrap(storage.blobs, Step.BEFORE_READ)
        self.stored_blobs = wrap(storage.stored_blobs, Step.BEFORE_READ)
        self.version = wrap(storage.version, Step.BEFORE_READ)
        self.heads = wrap(storage.heads, Step.BEFORE_READ)
        self.blob_threads = wrap(storage.blob_threads, Step.BEFORE_READ)
        self.labelled = wrap(storage.labelled, Step.BEFORE_READ)
        self.close = storage.close


class FaultyAnchor:
    """An anchor that passes every call to another one, and fails on request."""

    def __init__(self, anchor: Anchor, faults: Faults) -> None:
        self.get = faults.wrap(anchor.get, Step.BEFORE_GET)
        self.create = faults.wrap(anchor.create, Step.BEFORE_CREATE, Step.AFTER_CREATE)
        self.advance = faults.wrap(anchor.advance, Step.BEFORE_ADVANCE, Step.AFTER_ADVANCE)
        self.slots = faults.wrap(anchor.slots, Step.BEFORE_GET)
        self.hold = anchor.hold
        self.holder = anchor.holder
        self.close = anchor.close


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
