# SPDX-License-Identifier: Apache-2.0
"""The cached states of an open store: the caches of its threads, within one limit."""

import threading
import weakref
from typing import Protocol

from sealpoint.limits import STATE_MEMORY_BYTES_MAX


class StateCache(Protocol):
    """The cached parts of one state."""

    @property
    def size_bytes(self) -> int:
        """Return its size in memory."""
        ...

    def let_go(self) -> None:
        """Drop the content. MAY be called while another OS thread uses it."""
        ...


class StateMemory:
    """The most recently used caches of an open store, over all its threads.

    This process has proven or made everything in the caches, and they do not say which state is
    newest. Any number of OS threads may use them.
    """

    def __init__(self, bytes_max: int = STATE_MEMORY_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        # Weak, so that an unused handle is freed; it counts until it is the oldest.
        self._sizes: dict[weakref.ref[StateCache], int] = {}
        self._total_bytes = 0

    def hold(self, cache: StateCache) -> None:
        """Make a used cache the youngest, and drop the oldest caches until all fit."""
        size_bytes, mine = cache.size_bytes, weakref.ref(cache)
        with self._lock:
            self._total_bytes += size_bytes - self._sizes.pop(mine, 0)
            self._sizes[mine] = size_bytes
            while self._total_bytes > self._bytes_max and self._sizes:
                oldest = next(iter(self._sizes))
                self._total_bytes -= self._sizes.pop(oldest)
                if (found := oldest()) is not None:
                    found.let_go()
