# SPDX-License-Identifier: Apache-2.0
"""A store and its threads for async code.

Each method wraps the method of the same name of `sealpoint.Thread`, `Store` or `Rollouts`, with the
same arguments. An OS thread of the store runs it, and the caller awaits it. Calls on one thread
take effect in the order in which they were made. Whatever a store opens is closed again, even if no
caller is waiting any more.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from functools import partial, update_wrapper, wraps
from itertools import islice
from threading import Lock
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar
from weakref import WeakValueDictionary

from sealpoint import api
from sealpoint.codec import Registry
from sealpoint.errors import UsageError
from sealpoint.gate import Policy, Rollouts, Thread, ThreadSummary
from sealpoint.ids import StoreId

_P = ParamSpec("_P")
_S = TypeVar("_S")
_T = TypeVar("_T")
_WORKERS = 4
_REFS_AT_ONCE = 64
_RECORDS_AT_ONCE = 64
_PIECES_AT_ONCE = 16


def _submit(pool: ThreadPoolExecutor, function: Callable[[], _T]) -> Future[_T]:
    """Submit a call to another OS thread; a closed store accepts none."""
    try:
        return pool.submit(function)
    except RuntimeError as exc:
        raise UsageError(
            "store: it is closed",
            hint="Open it again: what `with` opened is closed at the end of the block.",
        ) from exc


class _Twin(Generic[_S]):
    """An object with blocking methods, and the OS threads that run them."""

    def __init__(self, sync: _S, pool: ThreadPoolExecutor) -> None:
        self._sync = sync
        self._pool = pool

    async def _run(self, call: Callable[[], _T]) -> _T:
        return await asyncio.wrap_future(_submit(self._pool, call))


def _awaited(
    method: Callable[Concatenate[_S, _P], _T],
) -> Callable[Concatenate[_Twin[_S], _P], Coroutine[Any, Any, _T]]:
    """Wrap a method, with its own arguments, so that it can be awaited."""

    @wraps(method)
    async def run(twin: _Twin[_S], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await twin._run(partial(method, twin._sync, *args, **kwargs))  # noqa: SLF001

    run.__doc__ = f"As `{method.__qualname__}`."
    return run


def _iterated(
    method: Callable[Concatenate[_S, _P], Iterator[_T]], at_once: int
) -> Callable[Concatenate[_Twin[_S], _P], AsyncIterator[_T]]:
    """Wrap a method that returns an iterator; the wrapper reads it in batches."""

    @wraps(method)
    async def each(twin: _Twin[_S], /, *args: _P.args, **kwargs: _P.kwargs) -> AsyncIterator[_T]:
        items = await twin._run(partial(method, twin._sync, *args, **kwargs))  # noqa: SLF001
        while batch := await twin._run(lambda: list(islice(items, at_once))):  # noqa: SLF001
            for item in batch:
                yield item

    each.__doc__ = f"As `{method.__qualname__}`."
    return each


def _entered(
    method: Callable[Concatenate[_S, _P], AbstractContextManager[_T]],
) -> Callable[Concatenate[_Twin[_S], _P], AbstractAsyncContextManager[_T]]:
    """Wrap a method that returns a context manager, so that an OS thread enters and exits it.

    After an error in the block, the event loop itself exits it.
    """

    @asynccontextmanager
    async def block(twin: _Twin[_S], /, *args: _P.args, **kwargs: _P.kwargs) -> AsyncIterator[_T]:
        inner = method(twin._sync, *args, **kwargs)  # noqa: SLF001
        try:
            found = await twin._run(inner.__enter__)  # noqa: SLF001
        except asyncio.CancelledError as error:
            # An OS thread may still enter the block. Exit it afterwards in any case.
            leave = partial(inner.__exit__, type(error), error, None)
            leaving = asyncio.ensure_future(twin._run(leave))  # noqa: SLF001
            leaving.add_done_callback(lambda left: left.cancelled() or left.exception())
            raise
        try:
            yield found
        except BaseException as error:
            inner.__exit__(type(error), error, error.__traceback__)
            raise
        await twin._run(partial(inner.__exit__, None, None, None))  # noqa: SLF001

    found = wraps(method)(block)
    found.__doc__ = f"As `{method.__qualname__}`."
    return found


class AsyncThread(_Twin[Thread]):
    """A thread whose methods are awaited. See `sealpoint.Thread` for their behavior."""

    def __init__(self, thread: Thread, pool: ThreadPoolExecutor) -> None:
        super().__init__(thread, pool)
        self._lock = Lock()
        self._calls: deque[Callable[[], None]] = deque()

    @property
    def name(self) -> str:
        """The application's name for the thread."""
        return self._sync.name

    @property
    def id(self) -> str:
        """As `Thread.id`."""
        return self._sync.id

    save = _awaited(Thread.save)
    load = _awaited(Thread.load)
    history = _iterated(Thread.history, _REFS_AT_ONCE)
    checkpoint_at = _awaited(Thread.checkpoint_at)
    release = _awaited(Thread.release)
    read_result = _awaited(Thread.read_result)
    ref_of = _awaited(Thread.ref_of)
    release_of = _awaited(Thread.release_of)
    resume = _awaited(Thread.resume)
    run = _entered(Thread.run)
    judge = _awaited(Thread.judge)
    standing = _awaited(Thread.standing)
    pause = _awaited(Thread.pause)
    unpause = _awaited(Thread.unpause)
    handoff = _awaited(Thread.handoff)
    answer = _awaited(Thread.answer)
    prepare_answer = _awaited(Thread.prepare_answer)
    record_answer = _awaited(Thread.record_answer)
    requests = _awaited(Thread.requests)
    compare = _awaited(Thread.compare)
    prune = _awaited(Thread.prune)
    erase = _awaited(Thread.erase)

    async def _run(self, call: Callable[[], _T]) -> _T:
        """Run a call after every call that was made before it.

        The call joins the queue now. One worker at a time takes calls from the queue, oldest first,
        so that a long queue of one thread leaves the other workers to the other threads.
        """
        future: Future[_T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = call()
            except BaseException as exc:  # noqa: BLE001 (the caller gets it, and raises it)
                future.set_exception(exc)
            else:
                future.set_result(result)

        self._calls.append(run)
        try:
            _submit(self._pool, self._next)
        except UsageError:
            # otherwise a worker has already taken the call, and its outcome counts
            if future.cancel():
                raise
        return await asyncio.wrap_future(future)

    def _next(self) -> None:
        # The holder of the lock looks again after releasing it, so no call is left behind.
        while self._calls and self._lock.acquire(blocking=False):
            try:
                if self._calls:
                    self._calls.popleft()()
            finally:
                self._lock.release()


class AsyncRollouts(_Twin[Rollouts]):
    """The rollouts of an open store's namespace, with methods to await."""

    plan = _awaited(Rollouts.plan)
    propose = _awaited(Rollouts.propose)
    propose_for = _awaited(Rollouts.propose_for)
    accepting = _awaited(Rollouts.accepting)
    list = _awaited(Rollouts.list)
    get = _awaited(Rollouts.get)
    revoke = _awaited(Rollouts.revoke)


class AsyncStore(_Twin[api.Store]):
    """An open store whose methods are awaited. See `sealpoint.api.Store`.

    A `progress=` is called from another OS thread.
    """

    def __init__(self, store: api.Store, pool: ThreadPoolExecutor) -> None:
        super().__init__(store, pool)
        self._lock = Lock()
        self._twins: WeakValueDictionary[str, AsyncThread] = WeakValueDictionary()
        self.rollouts = AsyncRollouts(store.rollouts, pool)
        """As `Store.rollouts`."""

    @property
    def id(self) -> StoreId:
        """As `Store.id`."""
        return self._sync.id

    @property
    def namespace(self) -> str:
        """As `Store.namespace`."""
        return self._sync.namespace

    @property
    def registry(self) -> Registry:
        """As `Store.registry`."""
        return self._sync.registry

    def thread(self, name: str) -> AsyncThread:
        """Return the thread of a name: always the same object, which keeps calls in order."""
        with self._lock:
            twin = self._twins.get(name)
            if twin is None:
                twin = self._twins[name] = AsyncThread(self._sync.thread(name), self._pool)
            return twin

    threads = _awaited(api.Store.threads)
    requests = _awaited(api.Store.requests)
    request = _awaited(api.Store.request)
    approve = _awaited(api.Store.approve)
    deny = _awaited(api.Store.deny)
    attest = _awaited(api.Store.attest)
    relay = _awaited(api.Store.relay)
    break_glass = _awaited(api.Store.break_glass)
    verify = _awaited(api.Store.verify)
    try_policy = _awaited(api.Store.try_policy)
    audit = _iterated(api.Store.audit, _RECORDS_AT_ONCE)
    why = _awaited(api.Store.why)
    export = _iterated(api.Store.export, _PIECES_AT_ONCE)
    gc = _awaited(api.Store.gc)

    async def overview(self, *, partial: bool = False) -> list[ThreadSummary]:
        """As `Store.overview`, but returned as one list."""
        return await self._run(lambda: list(self._sync.overview(partial=partial)))

    async def policy(self) -> Policy | None:
        """As `Store.policy`; a method here, because it may have to read the store."""
        return await self._run(lambda: self._sync.policy)

    async def close(self) -> None:
        """Release everything after the pending calls have ended."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        # Earlier calls are in the pool's queue, or wait there for their turn.
        self._pool.shutdown(wait=True)
        self._sync.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Opening:
    """The result of `open_store`: await it, or use it in `async with`."""

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
            # A caller that stopped waiting gets no store to close, so close it here.
            opening.add_done_callback(_close_unused)
            pool.shutdown(wait=False)
            raise
        return AsyncStore(store, pool)

    async def __aenter__(self) -> AsyncStore:
        self._store = await self._open()
        return self._store

    async def __aexit__(self, *_: object) -> None:
        if self._store is not None:
            await self._store.close()


def _taking_what(
    function: Callable[_P, object],
) -> Callable[[Callable[..., _T]], Callable[_P, _T]]:
    """Declare that a function takes the arguments of another function, to which it passes them."""

    def declare(handing_on: Callable[..., _T]) -> Callable[_P, _T]:
        return update_wrapper(handing_on, function, assigned=())

    return declare


@_taking_what(api.open_store)
def open_store(*args: Any, **kwargs: Any) -> Opening:
    """Open a store for async code; the arguments are those of `sealpoint.open_store`.

    A `signer=` is an ordinary one, not async: it is called in an OS thread of the store's own, and
    never in the event loop.

    ```python
    async with sealpoint.aio.open_store("memory:") as store:
        await store.thread("invoice-7").save({"step": 1})
    ```
    """
    return Opening(lambda: api.open_store(*args, **kwargs))


def _close_unused(opening: Future[api.Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
