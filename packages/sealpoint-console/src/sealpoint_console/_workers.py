# SPDX-License-Identifier: Apache-2.0
"""The OS threads in which pages are made: so many at once, so many that wait, and no more.

A page reads the store, which may be slow or hang. Whoever waits too long is told so and is gone,
while the OS thread goes on until its read returns: it keeps its place until then, so that pages
that nobody waits for any more cannot pile up. What has no place is refused before it is begun.

Nobody takes the places of everybody: each person has a few, and what does something, such as a
pause, has places of its own, which no page takes.
"""

import asyncio
import contextvars
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from sealpoint.errors import Overloaded, TooOften

AT_ONCE_MAX = 32
WAITING_MAX = 96
ACTING_MAX = 8
EACH_MAX = 8

_Made = TypeVar("_Made")


class Workers:
    """Runs what blocks, beside the event loop.

    Args:
        at_once: How many pages are made at the same time.
        waiting: How many more may wait for their turn.
        acting: How many actions run at the same time; as many more may wait.
        each: How many of either one person may have under way.
    """

    def __init__(
        self,
        at_once: int = AT_ONCE_MAX,
        waiting: int = WAITING_MAX,
        acting: int = ACTING_MAX,
        each: int = EACH_MAX,
    ) -> None:
        self._pages = _Pool("sealpoint-page", at_once, waiting)
        self._actions = _Pool("sealpoint-action", acting, acting)
        self._each = each
        self._under_way: Counter[tuple[str, bool]] = Counter()
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], _Made], *, who: str = "", acts: bool = False) -> _Made:
        """Run it, and give what it gives.

        Args:
            work: What is to be done.
            who: Whose it is: a person, or the address of somebody who has not signed in.
            acts: Whether it does something, and is more than a page.

        Raises:
            TooOften: So much of theirs is under way; it was not begun.
            Overloaded: Too many run and wait already; it was not begun.
        """
        self._take(who, acts=acts)
        try:
            future = (self._actions if acts else self._pages).submit(work)
        except BaseException:
            self._give_back(who, acts=acts)
            raise
        # Not when nobody waits for it any more: when it is over, or was taken off the queue.
        future.add_done_callback(lambda _: self._give_back(who, acts=acts))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Begin nothing more."""
        self._pages.close()
        self._actions.close()

    def _take(self, who: str, *, acts: bool) -> None:
        with self._lock:
            if self._under_way[who, acts] >= self._each:
                raise TooOften(
                    f"{self._each} pages of yours are under way already",
                    hint="Wait until they are there, or close them; then try again.",
                )
            self._under_way[who, acts] += 1

    def _give_back(self, who: str, *, acts: bool) -> None:
        with self._lock:
            self._under_way[who, acts] -= 1
            if not self._under_way[who, acts]:
                del self._under_way[who, acts]


class _Pool:
    """OS threads, and how many may wait for them."""

    def __init__(self, name: str, at_once: int, waiting: int) -> None:
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix=name)
        self._places = threading.BoundedSemaphore(at_once + waiting)

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        if not self._places.acquire(blocking=False):
            raise Overloaded("the console has more pages to make than it can make at once")
        future = self._threads.submit(contextvars.copy_context().run, work)
        future.add_done_callback(lambda _: self._places.release())
        return future

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
