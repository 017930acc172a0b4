# SPDX-License-Identifier: Apache-2.0
"""What an open store remembers of states: the caches of its threads, within one bound."""

import threading
import weakref
from typing import Protocol

from sealpoint.limits import STATE_MEMORY_BYTES_MAX


class StateCache(Protocol):
    """What is remembered of one state."""

    @property
    def size_bytes(self) -> int:
        """What it takes in memory."""
        ...

    def let_go(self) -> None:
        """Forget it. MAY be called while another OS thread uses it."""
        ...


class StateMemory:
    """What one open store remembers of states, over all its threads: those that were used last.

    All of it was proven or made by this process, and nothing of it says what is newest. It may be
    used by any number of OS threads.
    """

    def __init__(self, bytes_max: int = STATE_MEMORY_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        # Weak, so that a handle that nobody holds is let go of; it counts until it is the oldest.
        self._sizes: dict[weakref.ref[StateCache], int] = {}
        self._total_bytes = 0

    def hold(self, cache: StateCache) -> None:
        """A cache was used: it is the youngest, and the oldest go until all fit."""
        size_bytes, mine = cache.size_bytes, weakref.ref(cache)
        with self._lock:
            self._total_bytes += size_bytes - self._sizes.pop(mine, 0)
            self._sizes[mine] = size_bytes
            while self._total_bytes > self._bytes_max and self._sizes:
                oldest = next(iter(self._sizes))
                self._total_bytes -= self._sizes.pop(oldest)
                if (found := oldest()) is not None:
                    found.let_go()
