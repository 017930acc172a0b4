# SPDX-License-Identifier: Apache-2.0
"""What subgraphs could not save, until the graph around them is told.

The framework drops the error of a subgraph that then asks a question; the graph is told when it
puts next, which it does to keep the question. A run that ends otherwise never puts again, so only
so many are kept. Of a thread whose error had to go it is still known that there was one: its next
put is refused once without the cause, rather than let through. Another thread may be taken for it,
and is refused once as well.
"""

import copy
import threading

from sealpoint.errors import SealpointError, StorageUnavailable
from sealpoint.limits import UNTOLD_REFUSALS_MAX

__all__ = ["Refusals"]

_MARKS = 64 * 1024


class Refusals:
    """The errors of the subgraphs of a store's runs in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], SealpointError] = {}
        """By thread, and what its run is known by."""
        self._marks = bytearray(_MARKS)
        """Set for the threads whose error is not kept any more."""
        self._is_marked = False

    def note(self, thread: str, run: str, error: SealpointError) -> None:
        """Remember the first error of a run."""
        with self._lock:
            # A copy: the error itself holds on to what was being saved.
            self._known.setdefault((thread, run), copy.copy(error))
            if len(self._known) > UNTOLD_REFUSALS_MAX:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._marks[_place(oldest[0])] = self._is_marked = True

    def take(self, thread: str, run: str | None) -> SealpointError | None:
        """What a run has to be told, once."""
        if run is None or not (self._known or self._is_marked):
            return None
        with self._lock:
            found = self._known.pop((thread, run), None)
            if found is None and self._marks[_place(thread)]:
                self._marks[_place(thread)] = False
                found = StorageUnavailable(
                    f"thread {thread!r}: something of a subgraph may not have been saved; too many "
                    "other runs have failed since to say what",
                    hint="Run the graph again: it goes on from what was saved.",
                )
        return found

    def drop(self, thread: str, run: str) -> None:
        """A run has ended: nobody is left to be told."""
        with self._lock:
            self._known.pop((thread, run), None)

    def forget(self, thread: str) -> None:
        """A run begins anew: what those before it could not save is their own affair."""
        if self._known or self._is_marked:
            with self._lock:
                self._marks[_place(thread)] = False
                for key in [key for key in self._known if key[0] == thread]:
                    del self._known[key]


def _place(thread: str) -> int:
    return hash(thread) % _MARKS
