# SPDX-License-Identifier: Apache-2.0
"""Watching the interpreter: what happens that must not happen while bytes are decoded.

Two kinds of event are kept: those that Python reports to audit hooks (import, open, exec,
compile, sockets, processes and all others), and calls of application code, which the types in
`_application` report themselves.

The garbage collector stands still meanwhile: it would run finalizers of whatever this process left
lying about before, and what those do is not done by the bytes.
"""

import contextlib
import gc
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

__all__ = ["Watch", "application_ran", "let_run"]

_events: list[str] = []
_watching = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching:
        _events.append(f"audit event {event} {[type(each).__name__ for each in arguments]}")


sys.addaudithook(_hook)


def application_ran(name: str) -> None:
    """Report, from inside application code, that it runs."""
    if _watching:
        _events.append(f"application code {name}")


@contextlib.contextmanager
def let_run() -> Iterator[None]:
    """Look away: the code of a rule that says `validate=True` may run, and look at what it gets."""
    global _watching  # noqa: PLW0603 - as below
    before, _watching = _watching, False
    try:
        yield
    finally:
        _watching = before


class Watch:
    """A stretch of time in which nothing may happen.

    `events` names everything that did, in order, once the stretch is over.
    """

    events: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        global _watching  # noqa: PLW0603 - one hook per interpreter, which cannot be removed
        self._collects = gc.isenabled()
        gc.disable()
        _watching = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        global _watching  # noqa: PLW0603 - as above
        _watching = False
        if self._collects:
            gc.enable()
        if _events:
            self.events = tuple(_events)
            _events.clear()
