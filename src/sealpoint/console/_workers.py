# SPDX-License-Identifier: Apache-2.0
"""The OS threads in which pages are made: so many at once, so many that wait, and no more.

A page reads the store, which may be slow or hang. Whoever waits too long is told so and is gone,
while the OS thread goes on until its read returns: it keeps its place until then, so that pages
that nobody waits for any more cannot pile up. What has no place is refused before it is begun.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sealpoint.errors import Overloaded

AT_ONCE_MAX = 32
WAITING_MAX = 96

_Made = TypeVar("_Made")


class Workers:
    """Runs what blocks, beside the event loop.

    Args:
        at_once: How many run at the same time.
        waiting: How many more may wait for their turn.
    """

    def __init__(self, at_once: int = AT_ONCE_MAX, waiting: int = WAITING_MAX) -> None:
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="sealpoint-page")
        self._places = threading.BoundedSemaphore(at_once + waiting)

    async def run(self, work: Callable[[], _Made]) -> _Made:
        """Run it, and give what it gives.

        Raises:
            Overloaded: Too many run and wait already; it was not begun.
        """
        if not self._places.acquire(blocking=False):
            raise Overloaded("the console has more pages to make than it can make at once")
        future = self._pool.submit(contextvars.copy_context().run, work)
        # Not when nobody waits for it any more: when it is over, or was taken off the queue.
        future.add_done_callback(lambda _: self._places.release())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
