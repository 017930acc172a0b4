# SPDX-License-Identifier: Apache-2.0
"""How far a statement of SQLite may go: to a bound, or until a signal ends it.

SQLite follows the pages of a file wherever they lead, and pages that refer to themselves lead
nowhere: reading the schema of 98 KB may take for ever. It guarantees that a statement, and the
schema that SQLite reads before it, ends after a number of steps that no honest store comes near;
and that a signal whose handler raises, as Ctrl-C does, ends it too, with that exception. SQLite
calls a statement that was ended so interrupted; `_sqlite_file.py` says what that means.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

__all__ = ["BoundedConnection"]


_LOOK_STEPS = 1000


class BoundedConnection(sqlite3.Connection):
    """A connection whose statements end; without `allow`, they end at the first look."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._watch = _Watch()
        self.look_every()

    def look_every(self, steps: int = _LOOK_STEPS) -> None:
        """Look after so many steps whether to go on; `allow` has to say anew how far."""
        self._look_steps = steps
        self._watch.looks_left = 0
        self.set_progress_handler(self._watch.looks.__next__, steps)

    def allow(self, steps_max: int) -> None:
        """Let the statements from now on take so many steps together."""
        self._watch.looks_left = steps_max // self._look_steps

    def is_spent(self) -> bool:
        """Whether more steps were taken than were allowed."""
        return self._watch.looks_left < 0

    def interruption(self) -> BaseException | None:
        """What a signal's handler raised while a statement was under way, once."""
        raised, self._watch.raised = self._watch.raised, None
        return raised


class _Watch:
    """What SQLite asks; it does not refer to the connection, which refers to it."""

    __slots__ = ("looks", "looks_left", "raised")

    def __init__(self) -> None:
        self.looks_left = 0
        self.raised: BaseException | None = None
        self.looks = self._look()
        next(self.looks)

    def _look(self) -> Iterator[bool]:
        """Whether to stop, each time.

        A generator and no function: Python runs the handlers of signals when it enters either,
        and what they raise there is inside the `try` block of a generator alone. What leaves the
        function that SQLite calls is lost.
        """
        stop = False
        while True:
            try:
                yield stop
                self.looks_left -= 1
                stop = self.looks_left < 0
            except GeneratorExit:
                return
            except BaseException as exc:  # noqa: BLE001 # `interruption` gives it to the caller
                self.raised = exc
                stop = True
