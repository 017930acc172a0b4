# SPDX-License-Identifier: Apache-2.0
"""Decisions that an event loop does not wait for: an OS thread makes them.

Calls about one thread are decided in the order in which they came to their loop. Whoever is
cancelled meanwhile is told so when the decision has been made, and its pass is worthless by then:
nothing of a call goes on after its end. What was recorded stands, as for a run that crashed before
its first step, and the next run takes the thread over.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, suppress
from contextvars import copy_context
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

__all__ = ["LoopOrder", "entered_off_loop"]

_T = TypeVar("_T")


class LoopOrder:
    """Who waits for a decision about a thread, in each event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: WeakKeyDictionary[
            asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]
        ] = WeakKeyDictionary()

    def turn(self, thread: str) -> asyncio.Lock:
        """What gives the calls of the running loop their turn, first come first served."""
        with self._lock:
            turns = self._turns.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
            return turns.setdefault(thread, asyncio.Lock())


@asynccontextmanager
async def entered_off_loop(
    turn: asyncio.Lock, make: Callable[[], AbstractContextManager[_T]]
) -> AsyncIterator[_T]:
    """Make a context manager and enter it in an OS thread, with the caller's context variables.

    Args:
        turn: What gives the call its turn.
        make: What makes the context manager; it is left in the event loop.
    """
    with ExitStack() as entered:
        async with turn:
            enter = copy_context().run
            deciding = asyncio.get_running_loop().run_in_executor(
                None, enter, lambda: entered.enter_context(make())
            )
            try:
                await asyncio.wait([deciding])
            except asyncio.CancelledError:
                # An OS thread cannot be stopped; what it has entered by then is left.
                while not deciding.done():
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([deciding])
                deciding.exception()  # nobody is told of it any more
                raise
        yield deciding.result()
