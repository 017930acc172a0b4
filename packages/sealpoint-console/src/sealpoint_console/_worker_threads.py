# SPDX-License-Identifier: Apache-2.0
"""The OS threads that create pages: a fixed number of running and of waiting calls.

A page reads the store, which may be slow or hang. A caller who waits too long gets an error and
leaves, while the OS thread continues until its read returns: it keeps its slot until then, so that
abandoned pages cannot pile up. A call without a slot is refused before it begins.

Nobody can take all slots: each person has a few, and actions, such as a pause, have separate slots,
which no page takes.
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
    """Runs blocking work outside of the event loop.

    Args:
        at_once: The number of pages that are created at the same time.
        waiting: The number of further pages that may wait.
        acting: The number of actions that run at the same time; as many more may wait.
        each: The limit of each kind for one person.
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
        """Run a function, and return its result.

        Args:
            work: The function.
            who: The owner: a person, or the address of a client that has not signed in.
            acts: Whether it changes something, and is more than a page.

        Raises:
            TooOften: The owner has too many calls in progress; this one did not begin.
            Overloaded: Too many calls run and wait already; this one did not begin.
        """
        self._take(who, acts=acts)
        try:
            future = (self._actions if acts else self._pages).submit(work)
        except BaseException:
            self._give_back(who, acts=acts)
            raise
        # When the work is over or was removed from the queue, and not when its caller has left.
        future.add_done_callback(lambda _: self._give_back(who, acts=acts))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Accept no more work."""
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
    """OS threads, with a limit of waiting calls."""

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
