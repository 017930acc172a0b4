# SPDX-License-Identifier: Apache-2.0
"""The async twin of `open_store`: the same store, with methods to await.

The work is done by a few OS threads of the store's own, so the event loop is never held up.
Calls on one thread take effect in the order in which they were made, whichever loop or OS thread
made them; calls on different threads run beside each other.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from threading import Lock
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar
from weakref import WeakValueDictionary

from sealpoint import api
from sealpoint.audit import Progress, Report
from sealpoint.codec import Registry
from sealpoint.config import PassphraseSource
from sealpoint.errors import UsageError
from sealpoint.signing import TrustPin
from sealpoint.store import (
    CheckpointRef,
    Collected,
    Erasure,
    Event,
    Loaded,
    Pruning,
    Thread,
    ThreadNames,
)

__all__ = ["AsyncStore", "AsyncThread", "Opening", "open_store"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

_WORKERS = 4
_REFS_AT_ONCE = 64


class AsyncThread:
    """A thread whose methods are awaited. See `sealpoint.store.Thread` for what they do."""

    def __init__(self, thread: Thread, pool: ThreadPoolExecutor) -> None:
        self._thread = thread
        self._pool = pool
        self._lock = Lock()
        self._calls: deque[Callable[[], None]] = deque()

    @property
    def name(self) -> str:
        """What the application calls the thread."""
        return self._thread.name

    async def save(
        self,
        state: Any,
        *,
        id: str | None = None,  # noqa: A002 (the name callers write)
        parent: str | CheckpointRef | None = None,
        metadata: Mapping[str, Any] | None = None,
        world: Mapping[str, Any] | None = None,
    ) -> CheckpointRef:
        """As `Thread.save`."""
        return await self._in_order(
            lambda: self._thread.save(state, id=id, parent=parent, metadata=metadata, world=world)
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
            _submit(self._pool, self._next)
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


class AsyncStore:
    """An open store whose methods are awaited. See `sealpoint.api.Store`."""

    def __init__(self, store: api.Store, pool: ThreadPoolExecutor) -> None:
        self._store = store
        self._pool = pool
        self._lock = Lock()
        self._twins: WeakValueDictionary[str, AsyncThread] = WeakValueDictionary()

    def thread(self, name: str) -> AsyncThread:
        """The thread of a name; the same one for the same name, so that calls keep their order."""
        with self._lock:
            twin = self._twins.get(name)
            if twin is None:
                twin = self._twins[name] = AsyncThread(self._store.thread(name), self._pool)
            return twin

    async def threads(self) -> ThreadNames:
        """As `Store.threads`."""
        return await _call(self._pool, self._store.threads)

    async def verify(self, progress: Callable[[Progress], object] | None = None) -> Report:
        """As `Store.verify`; `progress` is called from another OS thread."""
        return await _call(self._pool, self._store.verify, progress)

    async def gc(
        self,
        *,
        dry_run: bool = False,
        compact: bool = True,
        progress: Callable[[int, int], object] | None = None,
    ) -> Collected:
        """As `Store.gc`; `progress` is called from another OS thread."""
        return await _call(
            self._pool, self._store.gc, dry_run=dry_run, compact=compact, progress=progress
        )

    async def close(self) -> None:
        """Release everything once the calls under way have ended."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        # Calls that were made before are in the pool's queue, or wait there for their turn.
        self._pool.shutdown(wait=True)
        self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class Opening:
    """What `open_store` returns: await it, or use it in `async with`."""

    def __init__(self, opener: Callable[[], api.Store]) -> None:
        self._opener = opener
        self._store: AsyncStore | None = None

    def __await__(self) -> Generator[Any, None, AsyncStore]:
        return self._open().__await__()

    async def _open(self) -> AsyncStore:
        pool = ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="sealpoint")
        opening = _submit(pool, self._opener)
        try:
            store = await asyncio.wrap_future(opening)
        except BaseException:
            # Whoever gave up waiting gets no store to close.
            opening.add_done_callback(_close_unused)
            pool.shutdown(wait=False)
            raise
        return AsyncStore(store, pool)

    async def __aenter__(self) -> AsyncStore:
        self._store = await self._open()
        return self._store

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._store is not None:
            await self._store.close()


def open_store(
    url: str,
    *,
    identity: str = "worker",
    namespace: str = "default",
    registry: Registry | None = None,
    trust: TrustPin | str | os.PathLike[str] | None = None,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    read_only: bool = False,
    on_event: Callable[[Event], object] | None = None,
    passphrase: PassphraseSource | None = None,
) -> Opening:
    """Open a store for async code; the arguments are those of `sealpoint.open_store`.

    ```python
    async with sealpoint.aio.open_store("memory:") as store:
        await store.thread("invoice-7").save({"step": 1})
    ```
    """
    return Opening(
        lambda: api.open_store(
            url,
            identity=identity,
            namespace=namespace,
            registry=registry,
            trust=trust,
            config_dir=config_dir,
            state_dir=state_dir,
            read_only=read_only,
            on_event=on_event,
            passphrase=passphrase,
        )
    )


def _close_unused(opening: Future[api.Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


async def _call(
    pool: ThreadPoolExecutor, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    return await asyncio.wrap_future(_submit(pool, function, *args, **kwargs))


def _submit(
    pool: ThreadPoolExecutor, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> Future[_T]:
    try:
        return pool.submit(function, *args, **kwargs)
    except RuntimeError as exc:
        raise UsageError("store: expected an open store, found it closed") from exc
