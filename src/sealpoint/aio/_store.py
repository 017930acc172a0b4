# SPDX-License-Identifier: Apache-2.0
"""A store and its threads for async code.

Calls of a thread take effect in the order in which they were made. What a store opens is closed
again, also when nobody waits any more.
"""

import asyncio
import os
from collections import deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import islice
from threading import Lock
from typing import Any, ParamSpec, Self, TypeVar
from weakref import WeakValueDictionary

from sealpoint import api
from sealpoint.audit import AuditRecord, Progress, Report
from sealpoint.codec import Registry
from sealpoint.config import PassphraseSource
from sealpoint.errors import UsageError
from sealpoint.gate import (
    Decision,
    Policy,
    Request,
    Requests,
    RolloutPlan,
    Rollouts,
    Thread,
    ThreadSummary,
)
from sealpoint.ids import StoreId
from sealpoint.signing import Attestation, Signer, TrustPin, Verdict
from sealpoint.store import (
    CheckpointRef,
    Collected,
    Erasure,
    Event,
    Loaded,
    PendingResult,
    Pruning,
    Release,
    Results,
    ThreadNames,
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
        raise UsageError(
            "store: it is closed",
            hint="Open it again: what `with` opened is closed at the end of the block.",
        ) from exc


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


# The async twin of `Rollouts`.


class AsyncRollouts:
    """The rollouts of an open store's namespace, with methods to await."""

    def __init__(self, rollouts: Rollouts, pool: ThreadPoolExecutor) -> None:
        self._rollouts = rollouts
        self._pool = pool

    async def plan(self, world: World | Mapping[str, Any]) -> RolloutPlan:
        """As `Rollouts.plan`."""
        return await call(self._pool, self._rollouts.plan, world)

    async def propose(
        self,
        pairs: Iterable[tuple[World | Mapping[str, Any], World | Mapping[str, Any]]],
        *,
        reason: str,
        until: datetime | timedelta = timedelta(days=14),
    ) -> Request:
        """As `Rollouts.propose`."""
        return await call(self._pool, self._rollouts.propose, pairs, reason=reason, until=until)

    async def list(self) -> tuple[Request, ...]:
        """As `Rollouts.list`."""
        return await call(self._pool, self._rollouts.list)

    async def get(self, rollout_id: str) -> Request:
        """As `Rollouts.get`."""
        return await call(self._pool, self._rollouts.get, rollout_id)

    async def compare(self, rollout: Request) -> tuple[tuple[str, str, WorldDiff], ...]:
        """As `Rollouts.compare`."""
        return await call(self._pool, self._rollouts.compare, rollout)

    async def revoke(self, rollout_id: str, *, reason: str) -> Attestation:
        """As `Rollouts.revoke`."""
        return await call(self._pool, self._rollouts.revoke, rollout_id, reason=reason)


_WORKERS = 4
_RECORDS_AT_ONCE = 64
_PIECES_AT_ONCE = 16


class AsyncStore:
    """An open store whose methods are awaited. See `sealpoint.api.Store`."""

    def __init__(self, store: api.Store, pool: ThreadPoolExecutor) -> None:
        self._store = store
        self._pool = pool
        self._lock = Lock()
        self._twins: WeakValueDictionary[str, AsyncThread] = WeakValueDictionary()
        self.rollouts = AsyncRollouts(store.rollouts, pool)
        """As `Store.rollouts`."""

    @property
    def id(self) -> StoreId:
        """As `Store.id`."""
        return self._store.id

    @property
    def namespace(self) -> str:
        """As `Store.namespace`."""
        return self._store.namespace

    @property
    def registry(self) -> Registry:
        """As `Store.registry`."""
        return self._store.registry

    def thread(self, name: str) -> AsyncThread:
        """The thread of a name; the same one for the same name, so that calls keep their order."""
        with self._lock:
            twin = self._twins.get(name)
            if twin is None:
                twin = self._twins[name] = AsyncThread(self._store.thread(name), self._pool)
            return twin

    async def threads(self, *, partial: bool = False) -> ThreadNames:
        """As `Store.threads`."""
        return await call(self._pool, self._store.threads, partial=partial)

    async def overview(self, *, partial: bool = False) -> list[ThreadSummary]:
        """As `Store.overview`, all of it at once."""
        return await call(self._pool, lambda: list(self._store.overview(partial=partial)))

    async def policy(self) -> Policy | None:
        """As `Store.policy`; here it is a method, because it may have to read the store."""
        return await call(self._pool, lambda: self._store.policy)

    async def requests(self) -> Requests:
        """As `Store.requests`."""
        return await call(self._pool, self._store.requests)

    async def request(self, request_id: str) -> Request:
        """As `Store.request`."""
        return await call(self._pool, self._store.request, request_id)

    async def approve(self, request_id: str, *, reason: str) -> Attestation:
        """As `Store.approve`."""
        return await call(self._pool, self._store.approve, request_id, reason=reason)

    async def deny(self, request_id: str, *, reason: str) -> Attestation:
        """As `Store.deny`."""
        return await call(self._pool, self._store.deny, request_id, reason=reason)

    async def attest(self, request_id: str, verdict: Verdict, *, reason: str) -> Attestation:
        """As `Store.attest`."""
        return await call(self._pool, self._store.attest, request_id, verdict, reason=reason)

    async def relay(self, attestation: Attestation) -> int:
        """As `Store.relay`."""
        return await call(self._pool, self._store.relay, attestation)

    async def break_glass(self, request_id: str, *, reason: str) -> int:
        """As `Store.break_glass`."""
        return await call(self._pool, self._store.break_glass, request_id, reason=reason)

    async def verify(self, progress: Callable[[Progress], object] | None = None) -> Report:
        """As `Store.verify`; `progress` is called from another OS thread."""
        return await call(self._pool, self._store.verify, progress)

    async def audit(
        self,
        *,
        thread: str | None = None,
        actor: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncIterator[AuditRecord]:
        """As `Store.audit`."""
        records = await call(
            self._pool,
            self._store.audit,
            thread=thread,
            actor=actor,
            kind=kind,
            since=since,
            until=until,
        )
        async for record in self._each(records, _RECORDS_AT_ONCE):
            yield record

    async def why(self, ref: str) -> api.Why:
        """As `Store.why`."""
        return await call(self._pool, self._store.why, ref)

    async def export(
        self, threads: Iterable[str] | None = None, *, payloads: bool = False
    ) -> AsyncIterator[bytes]:
        """As `Store.export`."""
        pieces = await call(self._pool, self._store.export, threads, payloads=payloads)
        async for piece in self._each(pieces, _PIECES_AT_ONCE):
            yield piece

    async def _each(self, items: Iterator[_T], at_once: int) -> AsyncIterator[_T]:
        """Take from an iterator in the pool, some at a time."""
        while batch := await call(self._pool, lambda: list(islice(items, at_once))):
            for item in batch:
                yield item

    async def gc(
        self,
        *,
        dry_run: bool = False,
        compact: bool = True,
        progress: Callable[[int, int], object] | None = None,
    ) -> Collected:
        """As `Store.gc`; `progress` is called from another OS thread."""
        return await call(
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

    async def __aexit__(self, *_: object) -> None:
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
        opening = submit(pool, self._opener)
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

    async def __aexit__(self, *_: object) -> None:
        if self._store is not None:
            await self._store.close()


def open_store(
    url: str,
    *,
    identity: str | None = None,
    namespace: str = "default",
    registry: Registry | None = None,
    trust: TrustPin | str | os.PathLike[str] | int | None = None,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    read_only: bool = False,
    on_event: Callable[[Event], object] | None = None,
    passphrase: PassphraseSource | None = None,
    signer: Signer | None = None,
    secrets_dir: str | os.PathLike[str] | None = None,
    key_fd: int | None = None,
) -> Opening:
    """Open a store for async code; the arguments are those of `sealpoint.open_store`.

    A `signer=` is an ordinary one, not async: it is called in an OS thread of the store's own, and
    never in the event loop.

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
            signer=signer,
            secrets_dir=secrets_dir,
            key_fd=key_fd,
        )
    )


def _close_unused(opening: Future[api.Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
