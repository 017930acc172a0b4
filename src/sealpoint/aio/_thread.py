# SPDX-License-Identifier: Apache-2.0
"""A thread for async code: its calls take effect in the order in which they were made."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from sealpoint.errors import UsageError
from sealpoint.gate import Decision, Request, Thread
from sealpoint.store import (
    CheckpointRef,
    Erasure,
    Loaded,
    PendingResult,
    Pruning,
    Release,
    Results,
)
from sealpoint.world import World, WorldDiff

# Calls that other OS threads make. A store that was closed takes none.


_P = ParamSpec("_P")
_T = TypeVar("_T")


async def call(
    pool: ThreadPoolExecutor, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    return await asyncio.wrap_future(submit(pool, function, *args, **kwargs))


def submit(
    pool: ThreadPoolExecutor, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> Future[_T]:
    try:
        return pool.submit(function, *args, **kwargs)
    except RuntimeError as exc:
        raise UsageError("store: it is closed") from exc


_REFS_AT_ONCE = 64


class AsyncThread:
    """A thread whose methods are awaited. See `sealpoint.Thread` for what they do."""

    def __init__(self, thread: Thread, pool: ThreadPoolExecutor) -> None:
        self._thread = thread
        self._pool = pool
        self._lock = Lock()
        self._calls: deque[Callable[[], None]] = deque()

    @property
    def name(self) -> str:
        """What the application calls the thread."""
        return self._thread.name

    @property
    def id(self) -> str:
        """As `Thread.id`."""
        return self._thread.id

    async def save(
        self,
        state: Any,
        *,
        id: str | None = None,  # noqa: A002 (the name callers write)
        parent: str | CheckpointRef | None = None,
        metadata: Mapping[str, Any] | None = None,
        world: World | Mapping[str, Any] | None = None,
        question: Any = None,
    ) -> CheckpointRef:
        """As `Thread.save`."""
        return await self._in_order(
            lambda: self._thread.save(
                state, id=id, parent=parent, metadata=metadata, world=world, question=question
            )
        )

    async def load(self, ref: str | CheckpointRef | None = None) -> Loaded:
        """As `Thread.load`."""
        return await self._in_order(lambda: self._thread.load(ref))

    async def history(self) -> AsyncIterator[CheckpointRef]:
        """As `Thread.history`."""
        refs: Iterator[CheckpointRef] = self._thread.history()
        while batch := await self._in_order(lambda: list(islice(refs, _REFS_AT_ONCE))):
            for ref in batch:
                yield ref

    async def release(self, ref: str | CheckpointRef | None = None) -> Release:
        """As `Thread.release`."""
        return await self._in_order(lambda: self._thread.release(ref))

    async def read_result(self, result: PendingResult) -> Results:
        """As `Thread.read_result`."""
        return await self._in_order(lambda: self._thread.read_result(result))

    async def ref_of(self, release: Release) -> CheckpointRef:
        """As `Thread.ref_of`."""
        return await self._in_order(lambda: self._thread.ref_of(release))

    async def release_of(self, request: Request) -> Release:
        """As `Thread.release_of`."""
        return await self._in_order(lambda: self._thread.release_of(request))

    async def resume(
        self,
        *,
        world: World | Mapping[str, Any] | None,
        ref: str | CheckpointRef | None = None,
        answer: Any = None,
        actor: str | None = None,
        deliberate: str | None = None,
    ) -> Loaded:
        """As `Thread.resume`."""
        return await self._in_order(
            lambda: self._thread.resume(
                world=world, ref=ref, answer=answer, actor=actor, deliberate=deliberate
            )
        )

    async def judge(
        self,
        *,
        world: World | Mapping[str, Any] | None,
        ref: str | CheckpointRef | None = None,
        answer: Any = None,
        deliberate: str | None = None,
    ) -> Decision:
        """As `Thread.judge`."""
        return await self._in_order(
            lambda: self._thread.judge(world=world, ref=ref, answer=answer, deliberate=deliberate)
        )

    async def pause(self, reason: str) -> int:
        """As `Thread.pause`."""
        return await self._in_order(lambda: self._thread.pause(reason))

    async def unpause(self, reason: str) -> int:
        """As `Thread.unpause`."""
        return await self._in_order(lambda: self._thread.unpause(reason))

    async def handoff(self, *, to: str, reason: str) -> int:
        """As `Thread.handoff`."""
        return await self._in_order(lambda: self._thread.handoff(to=to, reason=reason))

    async def requests(self) -> tuple[Request, ...]:
        """As `Thread.requests`."""
        return await self._in_order(self._thread.requests)

    async def compare(self, request: Request) -> WorldDiff | None:
        """As `Thread.compare`."""
        return await self._in_order(lambda: self._thread.compare(request))

    async def prune(
        self,
        *,
        keep_last: int | None = None,
        keep_since: datetime | None = None,
        keep: Sequence[str | CheckpointRef] = (),
        reason: str | None = None,
        dry_run: bool = False,
        compact: bool = True,
    ) -> Pruning:
        """As `Thread.prune`."""
        return await self._in_order(
            lambda: self._thread.prune(
                keep_last=keep_last,
                keep_since=keep_since,
                keep=keep,
                reason=reason,
                dry_run=dry_run,
                compact=compact,
            )
        )

    async def erase(self, *, reason: str, dry_run: bool = False) -> Erasure:
        """As `Thread.erase`."""
        return await self._in_order(lambda: self._thread.erase(reason=reason, dry_run=dry_run))

    async def _in_order(self, call: Callable[[], _T]) -> _T:
        """Run a call after every call that was made before it.

        The call joins the queue now. One worker at a time takes from it, the oldest first, so that
        a long queue of one thread leaves the other workers to the others.
        """
        future: Future[_T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = call()
            except BaseException as exc:  # noqa: BLE001 (it is the caller's, and is raised there)
                future.set_exception(exc)
            else:
                future.set_result(result)

        self._calls.append(run)
        try:
            submit(self._pool, self._next)
        except UsageError:
            if future.cancel():  # else a worker has taken it already, and its outcome counts
                raise
        return await asyncio.wrap_future(future)

    def _next(self) -> None:
        # Whoever holds the lock looks again after letting go of it, so nothing is left behind.
        while self._calls and self._lock.acquire(blocking=False):
            try:
                if self._calls:
                    self._calls.popleft()()
            finally:
                self._lock.release()
