# SPDX-License-Identifier: Apache-2.0
"""The building blocks of every framework adapter.

An adapter translates and does nothing else. It works on a thread only through
`store.thread(name).adapter` (`AdapterThread`): `begin`, `snapshot`, `snapshots`, `commit`,
`may_go_on`, `delete`. It commits drafts, `SaveDraft` and `ResultsDraft`, each with the
`RunPosition` of its run. Adapters also share:

- `WriteQueue`: keeps the writes of one thread in the order of the calls, and batches them.
- `GuardedRuns`: decides about a run before it begins and gives it a pass to show from then on. A
  thread has one guarded run at a time: while it is alive, a second one is refused as `Busy`.
- `Refusals`: reports a failed save of one part of a run to the run.
- `RunWatch`: tells whether a run may take its next step.
- `entered_off_loop`, `done_off_loop`: make decisions and saves without blocking the event loop.
- `LoopOrder`: keeps the calls that an event loop makes about a thread in their order.
- `to_display_json`: shows a value as people see it and as a statement binds it;
  `question_to_display_json` does the same for the question of a run, and cuts it if it is too long.
- `run_paused`, `extra_missing`: make the errors for a paused run, and for a framework that is
  missing or too old.

This module does not depend on any framework. The guide is docs/guides/write-an-adapter.md.
"""

import asyncio
import copy
import secrets
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from sealpoint.adapters._display_json import question_to_display_json, to_display_json
from sealpoint.api import Store
from sealpoint.config import code_of
from sealpoint.errors import (
    ExtraMissing,
    Paused,
    SealpointError,
    StorageUnavailable,
    Superseded,
    WorldInvalid,
)
from sealpoint.gate import AdapterThread, Thread
from sealpoint.limits import UNREPORTED_REFUSALS_MAX
from sealpoint.store import (
    CommitDraft,
    Key,
    Outcome,
    ResultsDraft,
    RunPosition,
    SaveDraft,
    Snapshot,
)
from sealpoint.world import World

__all__ = [
    "AdapterThread",
    "GuardedRuns",
    "Key",
    "LoopOrder",
    "QueuedWrite",
    "Refusals",
    "ResultsDraft",
    "RunPass",
    "RunPosition",
    "RunWatch",
    "SaveDraft",
    "Snapshot",
    "WriteQueue",
    "done_off_loop",
    "entered_off_loop",
    "extra_missing",
    "question_to_display_json",
    "run_paused",
    "to_display_json",
]

_T = TypeVar("_T")
_GROUP_MAX = 64
_MARKS = 64 * 1024
_TOKEN_BYTES = 16


class QueuedWrite:
    """A draft that waits to be written."""

    __slots__ = ("_unsettled", "draft", "outcome", "queue")

    def __init__(self, draft: CommitDraft, queue: "WriteQueue") -> None:
        self.draft = draft
        self.queue = queue
        """Keeps the queue alive as long as a ticket exists, so that a thread never has two
        queues."""
        self.outcome: Outcome | None = None
        # A lock instead of an event: only the caller that put the draft waits, and a lock costs a
        # sixth.
        self._unsettled = threading.Lock()
        self._unsettled.acquire()

    def wait(self, patience_s: float) -> None:
        """Wait until the write has an outcome, but no longer than this."""
        if self.outcome is None and self._unsettled.acquire(timeout=patience_s):
            self._unsettled.release()

    def end(self, outcome: Outcome) -> None:
        """Set the outcome, once."""
        self.outcome = outcome
        self._unsettled.release()


class WriteQueue:
    """The pending writes of one thread: each call gets its place, and pending writes go together.

    A framework saves from several OS threads or from tasks of an event loop. The first caller
    writes for all that wait, in one durable step; the others find their outcome when their turn
    comes. The queue has no OS thread of its own that could die or outlive the adapter.
    """

    def __init__(self, thread: AdapterThread) -> None:
        self._thread = thread
        self._waiting: deque[QueuedWrite] = deque()
        self._writing = threading.Lock()

    def put(self, draft: CommitDraft) -> QueuedWrite:
        """Append a draft to the queue."""
        ticket = QueuedWrite(draft, self)
        self._waiting.append(ticket)
        return ticket

    def settle(self, ticket: QueuedWrite, *, patience_s: float = 0.0) -> None:
        """Return when this draft, and everything queued before it, has been written.

        Args:
            ticket: The queued write.
            patience_s: How long to wait for another caller that has more to write.

        Raises:
            SealpointError: The draft was not written, or a step after its write failed.
        """
        if patience_s:
            ticket.wait(patience_s)
            if ticket.outcome is None and self._writing.locked():
                # Another caller that has more to write may itself wait for the current write.
                with self._writing:
                    pass
                ticket.wait(patience_s)
        while ticket.outcome is None:
            with self._writing:
                if ticket.outcome is None:
                    self._write()
        if isinstance(ticket.outcome, SealpointError):
            raise ticket.outcome

    def _write(self) -> None:
        group = [self._waiting.popleft() for _ in range(min(len(self._waiting), _GROUP_MAX))]
        try:
            outcomes = self._thread.commit([ticket.draft for ticket in group])
        except BaseException as exc:
            # The other callers must not wait forever. The next call finds out what was written.
            error = StorageUnavailable("adapter: the write was interrupted")
            error.__cause__ = exc
            for ticket in group:
                ticket.end(error)
            raise
        for ticket, outcome in zip(group, outcomes, strict=True):
            ticket.end(outcome)


class RunPass(NamedTuple):
    """The conditions under which a guarded run was admitted."""

    token: str
    """The token that the run presents with each read and write; no other run has it."""
    world: World | None
    root: str | None
    """The checkpoint that the decision was about; None: the newest."""
    session: int | None
    """The session that the decision began; None: there was nothing to decide about yet."""


class GuardedRuns:
    """The guarded runs on a store in this process: one at a time for each thread.

    All adapters of a store share this object, and the handles of its threads.
    """

    def __init__(self, store: Store) -> None:
        self.refusals = Refusals()
        self._store = store
        # reentrant: the garbage collector may end a run while this lock is held
        self._lock = threading.RLock()
        self._deciding: WeakValueDictionary[str, threading.RLock] = WeakValueDictionary()
        self._passes: dict[str, RunPass] = {}
        self._held: set[str] = set()
        """The tokens of runs whose work was held back by a pause."""
        self._order = LoopOrder()

    @classmethod
    def of(cls, store: Store) -> "GuardedRuns":
        """Return the guarded runs of a store."""
        with _ALL_LOCK:
            found = _ALL.get(id(store))
            if found is None:
                found = _ALL[id(store)] = cls(store)
            return found

    @contextmanager
    def admit(
        self,
        thread: str,
        *,
        world: World | None,
        ref: str | None = None,
        answer: Any = None,
        actor: str | None = None,
        deliberate: str | None = None,
        lanes: Mapping[str, str] | None = None,
        offer: Callable[[], Any] | None = None,
        would_run: Callable[[], bool] | None = None,
        idempotent: Callable[[], bool] | None = None,
        edits: bool = False,
        takes: str | int | None = None,
        watch: "RunWatch | None" = None,
    ) -> Iterator[RunPass]:
        """Decide about a run, record the decision, and admit the run for the duration of the block.

        The arguments and the errors are those of `AdapterThread.begin`; errors come before the
        block. In addition, `watch` shows which parts of the run are at work, if the framework
        reports that.
        """
        token = secrets.token_hex(_TOKEN_BYTES)
        # Keep the handle for the whole run: a handle without references would be created again.
        handle = self._store.thread(thread)
        # Without this lock, the earlier of two concurrent decisions could be granted its pass last,
        # and neither run could continue.
        with self._lock:
            deciding = self._deciding.setdefault(thread, threading.RLock())
        with deciding:
            session = handle.adapter.begin(
                world=world,
                ref=ref,
                answer=answer,
                actor=actor,
                deliberate=deliberate,
                lanes=lanes,
                offer=offer,
                token=token,
                would_run=would_run,
                idempotent=idempotent,
                edits=edits,
                takes=takes,
            )
            granted = RunPass(token, world, ref, session)
            with self._lock:
                self._passes[thread] = granted
        if watch is not None:
            watch.token = token
        came_to_end = False
        try:
            yield granted
            came_to_end = True
        except BaseException as error:
            came_to_end = _came_to_end(error, watch)
            raise
        finally:
            with self._lock:
                self._held.discard(token)
                if self._has(thread, token):
                    del self._passes[thread]
            self.refusals.drop(thread, token)
            ran = watch is None or watch.has_begun
            handle.adapter.end(token, came_to_end=came_to_end, ran=ran)

    def find(self, thread: str, token: object) -> RunPass | None:
        """Return the pass of a token; None if there is no token.

        Raises:
            Superseded: The run of the token has ended, or another run replaced it.
        """
        if token is None:
            return None
        with self._lock:
            if self._has(thread, token):
                return self._passes[thread]
        raise Superseded(
            f"thread {thread!r}: the run that this configuration is of has ended, or another run "
            "has resumed the thread"
        )

    def is_living(self, thread: str, token: object) -> bool:
        """Whether the run may continue."""
        with self._lock:
            return self._has(thread, token)

    def read(self, thread: str, token: object, lane: str, name: str | None) -> Snapshot | None:
        """Read a checkpoint: for the guarded run of a token, or without a token for any reader.

        Raises:
            Superseded: A guarded run reads, but another run has resumed the thread.
            ResumeRefused: The run reads another checkpoint than the decision was about.
        """
        handle = self._store.thread(thread).adapter
        found = self.find(thread, token)
        if found is None:
            return handle.snapshot(lane, name)
        if not lane and name is None and found.root is not None:
            # The framework compares the checkpoint that a run resumes from with the newest one.
            return handle.snapshot(lane)
        return handle.snapshot(lane, name, running=True, session=found.session)

    def hold(self, thread: str, token: object) -> bool:
        """Record that a pause holds back the work of a guarded run; False if the run has ended."""
        with self._lock:
            held = self._has(thread, token)
            if held:
                self._held.add(str(token))
            return held

    def was_held(self, token: str) -> bool:
        """Whether a pause held back work of a run."""
        with self._lock:
            return token in self._held

    def turn(self, thread: str) -> asyncio.Lock:
        """Return the lock that orders the decisions of the running event loop."""
        return self._order.turn(thread)

    def _has(self, thread: str, token: object) -> bool:
        found = self._passes.get(thread)
        return found is not None and found.token == token


def _came_to_end(error: BaseException, watch: "RunWatch | None") -> bool:
    """Whether the outcome of a run that ends with an error is known.

    If the code of the run raises, the caller gets the error, so the outcome is known. A canceled
    run may have left work behind that continues, unless none of its parts was at work. A run that
    could not save has done work that no one will know of. Closing a stream waits for its work,
    unless an event loop runs it.
    """
    if isinstance(error, SealpointError):
        return isinstance(error, Paused)
    if isinstance(error, Exception):
        return True
    if isinstance(error, GeneratorExit) and not _runs_in_loop():
        return True
    return watch is not None and not watch.at_work


def _runs_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_ALL: WeakValueDictionary[int, GuardedRuns] = WeakValueDictionary()
_ALL_LOCK = threading.Lock()


class RunWatch:
    """The thread of a guarded run, for as long as the run works on it."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.token: str | None = None
        """The pass of the run; None: it has not been admitted yet."""
        self.has_begun = False
        """Whether the run may have taken a step."""
        self.at_work: set[object] = set()
        """The parts of the run that have begun and not ended, by the framework's names."""

    @property
    def paused(self) -> bool:
        """Whether an operator has paused the thread; adapters ask before every step.

        Raises:
            Superseded: Another run has resumed the thread.
        """
        if self.token is None:
            return self.thread.paused
        self.has_begun = True
        return not self.thread.adapter.may_go_on(self.token)


class Refusals:
    """Failed saves of the parts of runs, kept until the run that contains the part is notified.

    A framework may drop the error of one part of a run, such as a subgraph that then asks a
    question. The next write of the run raises that error. A run that ends first never writes again,
    so the number of kept errors is limited. For a thread whose error was discarded, a mark remains:
    its next write is refused once, without the cause, instead of being accepted. Another thread can
    share the mark, and is then refused once as well.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], SealpointError] = {}
        """By thread and run id."""
        self._marks = bytearray(_MARKS)
        """Set for the threads whose errors were discarded."""
        self._is_marked = False

    def note(self, thread: str, run: str, error: SealpointError) -> None:
        """Record the first error of a run."""
        with self._lock:
            # A copy: the original error keeps a reference to the data of the save.
            self._known.setdefault((thread, run), copy.copy(error))
            if len(self._known) > UNREPORTED_REFUSALS_MAX:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._marks[_place(oldest[0])] = self._is_marked = True

    def take(self, thread: str, run: str | None) -> SealpointError | None:
        """Return and remove the error that a run must get."""
        if run is None or not (self._known or self._is_marked):
            return None
        with self._lock:
            found = self._known.pop((thread, run), None)
            if found is None and self._marks[_place(thread)]:
                self._marks[_place(thread)] = False
                found = StorageUnavailable(
                    f"thread {thread!r}: something of its run may not have been saved; too many "
                    "other runs have failed since to say what",
                    hint="Run it again: it continues from what was saved.",
                )
        return found

    def drop(self, thread: str, run: str) -> None:
        """Discard the error of a run that has ended: no one is left to receive it."""
        with self._lock:
            self._known.pop((thread, run), None)

    def forget(self, thread: str) -> None:
        """Discard the errors of earlier runs, because a new run begins."""
        if self._known or self._is_marked:
            with self._lock:
                self._marks[_place(thread)] = False
                for key in [key for key in self._known if key[0] == thread]:
                    del self._known[key]


def _place(thread: str) -> int:
    return hash(thread) % _MARKS


class LoopOrder:
    """The locks that order the decisions and saves of each event loop, by thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: WeakKeyDictionary[
            asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]
        ] = WeakKeyDictionary()

    def turn(self, thread: str) -> asyncio.Lock:
        """Return the lock that orders the running loop's calls on a thread."""
        with self._lock:
            turns = self._turns.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
            return turns.setdefault(thread, asyncio.Lock())


async def done_off_loop(call: Callable[[], _T]) -> _T:
    """Make a call in an OS thread, with the caller's context variables.

    If the caller is cancelled during the call, the cancellation waits for the call to end, since an
    OS thread cannot be stopped. Nothing of a call continues after this function returns.
    """
    doing = asyncio.get_running_loop().run_in_executor(None, copy_context().run, call)
    try:
        await asyncio.wait([doing])
    except asyncio.CancelledError:
        while not doing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([doing])
        doing.exception()  # marks the error as retrieved: no one receives it now
        raise
    return doing.result()


@asynccontextmanager
async def entered_off_loop(
    turn: asyncio.Lock, make: Callable[[], AbstractContextManager[_T]]
) -> AsyncIterator[_T]:
    """Make a context manager and enter it in an OS thread, with the caller's context variables.

    If the caller is cancelled during this, the cancellation waits for the decision, and the pass is
    then invalid. The recorded decision stands, as for a run that crashed before its first step, and
    the next run takes the thread over.

    Args:
        turn: The lock that gives the call its turn.
        make: Creates the context manager, which is exited in the event loop.
    """
    with ExitStack() as entered:
        async with turn:
            found = await done_off_loop(lambda: entered.enter_context(make()))
        yield found


def run_paused(thread: str, then: str) -> Paused:
    """Return the error for a run that a pause stopped.

    Args:
        thread: The application's name for the thread.
        then: How the run continues after the pause, in the words of the framework.
    """
    return Paused(
        f"thread {thread!r}: an operator has paused it; what had been done is kept",
        hint="If the pause is still in force, an operator ends it: sealpoint unpause "
        f"{thread!r} --reason WHY. Then {then}",
    )


def extra_missing(part: str, packages: Mapping[str, str], cause: ImportError) -> Exception:
    """Return the error for an import that failed.

    Args:
        part: The module of the part, such as `sealpoint_langgraph`. Its distribution has the same
            name with dashes, and depends on the packages.
        packages: The packages of the framework: install names by import names.
        cause: The import error.

    Returns:
        An error that says what to install, or `cause` itself if something else was missing: the
        error of a broken installation is clear by itself.
    """
    package = str(cause.name).partition(".")[0]
    if package not in packages:
        return cause
    name = packages[package]
    found, command = "it missing", "pip install"
    if cause.name != package:
        # Only a part of the package is missing: the package is installed but too old.
        with suppress(WorldInvalid):
            found = f"release {code_of(name).version}, which lacks {_lacking(cause)}"
            command = "pip install -U"
    return ExtraMissing(
        f"{part}: it needs {name}, found {found}: {command} {part.replace('_', '-')}"
    )


def _lacking(cause: ImportError) -> str:
    """Return the name of the module or attribute that could not be imported."""
    name = getattr(cause, "name_from", None)
    return str(cause.name) if name is None else f"{cause.name}.{name}"
