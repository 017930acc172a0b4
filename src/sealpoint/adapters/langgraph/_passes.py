# SPDX-License-Identifier: Apache-2.0
"""The passes of guarded runs, and where the run stands that writes something.

Reading is reading: whoever asks for a checkpoint is shown it, and nothing is decided. A run that
`guard` has let in carries a pass in its own configuration. What it reads is what was decided about,
and what it writes is written in the session of the pass or not at all. Any other run says with
each write what it goes on from, in words that the framework promises: the parent of a checkpoint,
the checkpoint of results, the namespace, and the source in the metadata; and its run-scoped control
tells which writes are of one run.
"""

import asyncio
import copy
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.runtime import Runtime

from sealpoint.adapters.langgraph._conversion import Address, require_text
from sealpoint.api import Store
from sealpoint.errors import (
    ResumeRefused,
    SealpointError,
    StorageUnavailable,
    Superseded,
    UsageError,
)
from sealpoint.gate import Thread
from sealpoint.limits import UNTOLD_REFUSALS_MAX
from sealpoint.store import RunPosition, Snapshot
from sealpoint.world import World

# ---------------------------------------------------------------------- refusals
# What subgraphs could not save, until the graph around them is told.
#
# The framework drops the error of a subgraph that then asks a question; the graph is told when it
# puts next, which it does to keep the question. A run that ends otherwise never puts again, so
# only so many are kept. Of a thread whose error had to go it is still known that there was one:
# its next put is refused once without the cause, rather than let through. Another thread may be
# taken for it, and is refused once as well.


_MARKS = 64 * 1024


class Refusals:
    """The errors of the subgraphs of a store's runs in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], SealpointError] = {}
        """By thread, and what its run is known by."""
        self._marks = bytearray(_MARKS)
        """Set for the threads whose error is not kept any more."""
        self._is_marked = False

    def note(self, thread: str, run: str, error: SealpointError) -> None:
        """Remember the first error of a run."""
        with self._lock:
            # A copy: the error itself holds on to what was being saved.
            self._known.setdefault((thread, run), copy.copy(error))
            if len(self._known) > UNTOLD_REFUSALS_MAX:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._marks[_place(oldest[0])] = self._is_marked = True

    def take(self, thread: str, run: str | None) -> SealpointError | None:
        """What a run has to be told, once."""
        if run is None or not (self._known or self._is_marked):
            return None
        with self._lock:
            found = self._known.pop((thread, run), None)
            if found is None and self._marks[_place(thread)]:
                self._marks[_place(thread)] = False
                found = StorageUnavailable(
                    f"thread {thread!r}: something of a subgraph may not have been saved; too many "
                    "other runs have failed since to say what",
                    hint="Run the graph again: it goes on from what was saved.",
                )
        return found

    def drop(self, thread: str, run: str) -> None:
        """A run has ended: nobody is left to be told."""
        with self._lock:
            self._known.pop((thread, run), None)

    def forget(self, thread: str) -> None:
        """A run begins anew: what those before it could not save is their own affair."""
        if self._known or self._is_marked:
            with self._lock:
                self._marks[_place(thread)] = False
                for key in [key for key in self._known if key[0] == thread]:
                    del self._known[key]


def _place(thread: str) -> int:
    return hash(thread) % _MARKS


# ---------------------------------------------------------------------- off loop
# Decisions that an event loop does not wait for: an OS thread makes them.
#
# Calls about one thread are decided in the order in which they came to their loop. Whoever is
# cancelled meanwhile is told so when the decision has been made, and its pass is worthless by
# then: nothing of a call goes on after its end. What was recorded stands, as for a run that
# crashed before its first step, and the next run takes the thread over.


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


# ---------------------------------------------------------------------- aim
# From which checkpoints a run begins, as the framework reads it from a configuration.
#
# An id beside the thread is not the only way to name a checkpoint: a map names one for each
# namespace, and counts for more. The gate judges what is going to be loaded, so it has to read
# the configuration in the same way.


_NESTED = "__pregel_read"
"""What the framework leaves in the configuration of a graph that a task of another one runs."""


def is_nested(config: Mapping[str, Any] | None) -> bool:
    """Whether a graph is run by a task of another one.

    What is left there is a function. A configuration that came over a network may have the name in
    it, but no function.
    """
    return callable(((config or {}).get("configurable") or {}).get(_NESTED))


class Aim(NamedTuple):
    """The checkpoints that a configuration names."""

    root: str | None
    """The one of the graph itself; None: the newest."""
    inner: dict[str, str]
    """Those of its subgraphs, by namespace."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Aim":
        """Read the configuration of a run that no other run has begun.

        Raises:
            UsageError: Something else than a name stands for one.
        """
        _, lane, named = Address.of(config)
        by_lane = map_of((config.get("configurable") or {}).get("checkpoint_map"))
        inner = {key: value for key, value in by_lane.items() if key and value}
        if lane:
            # The framework begins at the root; only the map tells where from.
            if named is not None and inner.setdefault(lane, named) != named:
                raise UsageError(
                    f"configuration: checkpoint_id and checkpoint_map name two checkpoints of "
                    f"namespace {lane!r}",
                    hint="Pass the configuration that get_state or get_state_history tells.",
                )
            lane, named = "", None
        if lane is not None and lane in by_lane:
            named = by_lane[lane] or None
        return cls(named, inner)

    def older(self, thread: Thread) -> dict[str, str]:
        """Those of subgraphs that are not the newest of their namespace."""
        found = {}
        for lane, name in self.inner.items():
            newest = thread.snapshot(lane)
            if newest is None or newest.ref.id != name:
                found[lane] = name
        return found


def map_of(found: object) -> dict[str, str]:
    """The checkpoints that a configuration names by namespace.

    Raises:
        UsageError: Something else stands there.
    """
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise UsageError(
            f"configuration: expected a map as checkpoint_map, found {type(found).__name__}",
            hint="Pass the configuration that get_state or get_state_history tells.",
        )
    for key, value in found.items():
        require_text(key, "name in checkpoint_map")
        require_text(value, "value in checkpoint_map")
    return dict(found)


# ---------------------------------------------------------------------- passes

# What the framework streams shows the configuration without the names that begin like its own.
TICKET = "__pregel_sealpoint_ticket"
"""Where `guard` keeps the pass of a run."""
DELIBERATE = "__pregel_sealpoint_deliberate"
"""Where a caller says why an unusual resume is meant."""

_RUNTIME = "__pregel_runtime"
_CHECKPOINTER = "__pregel_checkpointer"

_SAID, _MEANT = 'pass deliberate="why"', 'pass deliberately(config, "why")'
_HINT = (
    "Run the graph through guard(graph, saver, actor=...), which asks for what is needed; where "
    'the policy only wants a reason, pass deliberately(config, "why") to the graph.'
)


class Pass(NamedTuple):
    """What `guard` lets a run do."""

    token: str
    world: World
    root: str | None
    """The checkpoint that was judged; None: the newest."""
    session: int | None
    """The session that the decision began; None: there was nothing to decide about yet."""


class Passes:
    """The passes of guarded runs on a store of this process: a thread has one at a time.

    All savers of a store share them, as they share the handles of its threads.
    """

    def __init__(self, store: Store) -> None:
        self.order = LoopOrder()
        """In which order the calls of an event loop are decided."""
        self._store = store
        self._lock = threading.Lock()
        self._deciding: WeakValueDictionary[str, threading.RLock] = WeakValueDictionary()
        self._passes: dict[str, Pass] = {}
        self._held: set[str] = set()
        """The passes of runs whose work a pause held back."""
        self._refusals = Refusals()

    @classmethod
    def of(cls, store: Store) -> "Passes":
        """The passes of a store."""
        with _ALL_LOCK:
            found = _ALL.get(id(store))
            if found is None:
                found = _ALL[id(store)] = cls(store)
            return found

    @contextmanager
    def deciding(self, thread: str) -> Iterator[None]:
        """Decide about a thread and grant the pass: nobody else does so between the two.

        Otherwise of two calls at once the one that was decided first might be granted its pass
        last, and neither could go on.
        """
        with self._lock:
            lock = self._deciding.setdefault(thread, threading.RLock())
        with lock:
            yield

    def grant(self, thread: str, found: Pass) -> None:
        """Let the run that carries a pass in, and no other one of the thread."""
        with self._lock:
            self._passes[thread] = found

    def revoke(self, thread: str, token: str) -> None:
        """Make a pass worthless."""
        with self._lock:
            self._held.discard(token)
            if self._has(thread, token):
                del self._passes[thread]
        self._refusals.drop(thread, token)

    def find(self, thread: str, config: Mapping[str, Any]) -> Pass | None:
        """The pass that a configuration carries; None if it carries none.

        Raises:
            Superseded: It is that of a run that has ended or was overtaken.
        """
        token = (config.get("configurable") or {}).get(TICKET)
        if token is None:
            return None
        with self._lock:
            if self._has(thread, token):
                return self._passes[thread]
        raise Superseded(
            f"thread {thread!r}: expected the pass of a run that goes on, found that of one that "
            "has ended or was overtaken"
        )

    def is_living(self, thread: str, token: object) -> bool:
        """Whether a run may go on."""
        with self._lock:
            return self._has(thread, token)

    def read(
        self, address: Address, config: Mapping[str, Any]
    ) -> tuple[Snapshot | None, dict[str, Any]]:
        """Read a checkpoint, for a guarded run or for anybody.

        Returns:
            What lies there, and the marks that a guarded run goes on with.

        Raises:
            Superseded: A guarded run reads, and another one goes on with the thread by now.
            ResumeRefused: It reads another checkpoint than was decided about.
        """
        thread, lane = self._store.thread(address.thread), address.lane or ""
        found = self.find(address.thread, config)
        if found is None:
            return thread.snapshot(lane, address.id), {}
        marks = {TICKET: found.token}
        if not lane and address.id is None and found.root is not None:
            # The framework compares what a run goes on from with the newest.
            return thread.snapshot(lane), marks
        return thread.snapshot(lane, address.id, running=True, session=found.session), marks

    def hold(self, thread: str, config: Mapping[str, Any]) -> bool:
        """Remember that a pause holds the work of a guarded run back; False if it is none."""
        token = (config.get("configurable") or {}).get(TICKET)
        with self._lock:
            held = self._has(thread, token)
            if held:
                self._held.add(str(token))
            return held

    def was_held(self, token: str) -> bool:
        """Whether a pause held work of a run back."""
        with self._lock:
            return token in self._held

    # ------------------------------------------------------------------ what a subgraph lost

    def note_refusal(
        self, address: Address, config: Mapping[str, Any], error: SealpointError
    ) -> None:
        """Remember that something of a subgraph was not saved; see `_refusals.py`."""
        root = _root_of(address, config)
        if not address.lane or root is None:
            return
        token = (config.get("configurable") or {}).get(TICKET)
        # What a guarded run puts that has ended is refused without this.
        if token is None or self.is_living(address.thread, token):
            self._refusals.note(address.thread, root, error)

    def raise_refusal(self, address: Address, config: Mapping[str, Any]) -> None:
        """Tell what a subgraph of a run could not save, once.

        Raises:
            SealpointError: There is such a thing.
        """
        root = None if address.lane else _root_of(address, config)
        found = self._refusals.take(address.thread, root)
        if found is not None:
            raise found

    def forget_refusals(self, thread: str) -> None:
        """A run begins anew."""
        self._refusals.forget(thread)

    def _has(self, thread: str, token: object) -> bool:
        found = self._passes.get(thread)
        return found is not None and found.token == token


_ALL: WeakValueDictionary[int, Passes] = WeakValueDictionary()
_ALL_LOCK = threading.Lock()


def position_of(
    address: Address, config: Mapping[str, Any], store: Store, *, begins: bool, answered: bool
) -> RunPosition:
    """Where a run stands that writes something.

    Args:
        address: What it goes on from, or adds to.
        config: The configuration that it was given.
        store: The store that it writes to.
        begins: Whether a run or an edit begins with it.
        answered: Whether it answers or edits.

    Raises:
        UsageError: Something else than a name stands for a checkpoint, or a reason says nothing.
    """
    named = config.get("configurable") or {}
    token = named.get(TICKET)
    if token is not None:
        return RunPosition(token=str(token))
    by_lane = map_of(named.get("checkpoint_map"))
    root = by_lane.get("") if address.lane else address.id
    around = task_on(address.thread, store)
    return RunPosition(
        run=_run_of(around or {}) or _run_of(named),
        checkpoint=root or None,
        lanes={} if address.lane else {lane: id_ for lane, id_ in by_lane.items() if lane and id_},
        begins=begins,
        inside=around is not None,
        answered=answered,
        deliberate=named.get(DELIBERATE),
    )


def _run_of(named: Mapping[str, Any]) -> object | None:
    """What all that a run does has: the framework's control of it, which subgraphs share.

    Who writes by hand has none, nor has an edit from outside of a run.
    """
    runtime = named.get(_RUNTIME)
    return runtime.control if isinstance(runtime, Runtime) else None


def with_pass(config: RunnableConfig, token: str) -> RunnableConfig:
    """The same configuration, for what a guarded run does."""
    found = {**(config.get("configurable") or {}), TICKET: token}
    return cast("RunnableConfig", {**config, "configurable": found})


def without_pass(config: RunnableConfig) -> RunnableConfig:
    """The same configuration, for somebody who reads, or is shown it."""
    found = config.get("configurable") or {}
    if TICKET not in found:
        return config
    kept = {key: value for key, value in found.items() if key != TICKET}
    return cast("RunnableConfig", {**config, "configurable": kept})


def task_on(thread: str, store: Store) -> Mapping[str, Any] | None:
    """What the task has in its configuration whose code calls, if it runs on a thread of a store.

    What a run itself puts, it puts from outside of its tasks.
    """
    around = var_child_runnable_config.get()
    if not is_nested(around):
        return None
    found = (around or {}).get("configurable") or {}
    saver = found.get(_CHECKPOINTER)
    own = str(found.get("thread_id")) == thread and getattr(saver, "store", None) is store
    return found if own else None


def _root_of(address: Address, config: Mapping[str, Any]) -> str | None:
    """By what a run is known to its subgraphs: its pass, or the checkpoint that it stands on."""
    named = config.get("configurable") or {}
    if TICKET in named:
        return str(named[TICKET])
    return map_of(named.get("checkpoint_map")).get("") if address.lane else address.id


def in_words_of_graphs(error: ResumeRefused, hint: str = _HINT) -> ResumeRefused:
    """The same refusal, with what a caller of a graph can do about it.

    Args:
        error: What the gate says, which speaks of its own arguments.
        hint: What to say unless the gate knows better.
    """
    usual = error.hint == ResumeRefused.hint or "resume(world=...)" in error.hint
    return ResumeRefused(
        error.message.replace(_SAID, _MEANT),
        reasons=tuple(reason.replace(_SAID, _MEANT) for reason in error.reasons),
        hint=hint if usual else error.hint.replace(_SAID, _MEANT),
    )
