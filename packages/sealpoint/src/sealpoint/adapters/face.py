# SPDX-License-Identifier: Apache-2.0
"""What the adapter of a framework builds on, whatever the framework is.

An adapter translates and nothing else. `store.thread(name).adapter` (`AdapterThread`) is all that
it does with a thread: `begin`, `snapshot`, `snapshots`, `commit`, `may_go_on`, `delete`. The drafts
that it commits are `SaveDraft` and `ResultsDraft`, each with the `RunPosition` of its run. Beside
that adapters share:

- `WriteQueue`: writes of one thread keep the order of the calls, and go together.
- `GuardedRuns`: a run is decided about before it begins, and shows a pass from then on. A thread
  has one at a time: while it lives, a second one is refused as `Busy`.
- `Refusals`: what a part of a run could not save is told to the run.
- `RunWatch`: whether a run may take its next step.
- `entered_off_loop`, `done_off_loop`: decisions and saves that an event loop does not wait for.
- `LoopOrder`: the calls of an event loop about a thread have their turns in the order of the calls.
- `to_display_json`: a value as people are shown it, and as a statement binds it;
  `question_to_display_json`: the same for what a run asks, cut where it is too long to be read.
- `run_paused`, `extra_missing`: what to say where a pause stopped a run, and where the framework is
  missing or too old.

Nothing here knows a framework. The guide is docs/guides/write-an-adapter.md.
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
from sealpoint.limits import UNTOLD_REFUSALS_MAX
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
    """Something that waits to be written."""

    __slots__ = ("_unsettled", "draft", "outcome", "queue")

    def __init__(self, draft: CommitDraft, queue: "WriteQueue") -> None:
        self.draft = draft
        self.queue = queue
        """Who holds a ticket holds the queue, so that a thread has only one."""
        self.outcome: Outcome | None = None
        # A lock and no event: only who put it waits for it, and that costs a sixth.
        self._unsettled = threading.Lock()
        self._unsettled.acquire()

    def wait(self, patience_s: float) -> None:
        """Wait until it has an outcome, for so long at most."""
        if self.outcome is None and self._unsettled.acquire(timeout=patience_s):
            self._unsettled.release()

    def end(self, outcome: Outcome) -> None:
        """Say what became of it, once."""
        self.outcome = outcome
        self._unsettled.release()


class WriteQueue:
    """What is to be written to one thread: order is given at the call, what waits goes together.

    A framework saves from several OS threads or tasks of an event loop. Whoever comes first writes
    for all that wait, in one durable step; the others find their outcome when their turn comes.
    There is no thread of its own that could die or outlive the adapter.
    """

    def __init__(self, thread: AdapterThread) -> None:
        self._thread = thread
        self._waiting: deque[QueuedWrite] = deque()
        self._writing = threading.Lock()

    def put(self, draft: CommitDraft) -> QueuedWrite:
        """Give something its place in the order."""
        ticket = QueuedWrite(draft, self)
        self._waiting.append(ticket)
        return ticket

    def settle(self, ticket: QueuedWrite, *, patience_s: float = 0.0) -> None:
        """Come back when it is written, and everything that was put before it.

        Args:
            ticket: What was put.
            patience_s: How long to wait for somebody who has more to write.

        Raises:
            SealpointError: It was not written, or only what came after it failed.
        """
        if patience_s:
            ticket.wait(patience_s)
            if ticket.outcome is None and self._writing.locked():
                # Who has more to write may wait for what is being written.
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
            # Whoever waits must not wait for ever; what became of it is looked up by the next.
            error = StorageUnavailable("adapter: the write was interrupted")
            error.__cause__ = exc
            for ticket in group:
                ticket.end(error)
            raise
        for ticket, outcome in zip(group, outcomes, strict=True):
            ticket.end(outcome)


class RunPass(NamedTuple):
    """What a guarded run has been let in for."""

    token: str
    """What it shows with each read and write; no other run has it."""
    world: World | None
    root: str | None
    """The checkpoint that was judged; None: the newest."""
    session: int | None
    """The session that the decision began; None: there was nothing to decide about yet."""


class GuardedRuns:
    """The guarded runs on a store of this process: a thread has one at a time.

    All adapters of a store share them, as they share the handles of its threads.
    """

    def __init__(self, store: Store) -> None:
        self.refusals = Refusals()
        self._store = store
        self._lock = threading.RLock()  # the collector may end a run while it is held
        self._deciding: WeakValueDictionary[str, threading.RLock] = WeakValueDictionary()
        self._passes: dict[str, RunPass] = {}
        self._held: set[str] = set()
        """The tokens of runs whose work a pause held back."""
        self._order = LoopOrder()

    @classmethod
    def of(cls, store: Store) -> "GuardedRuns":
        """The guarded runs of a store."""
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
        watch: "RunWatch | None" = None,
    ) -> Iterator[RunPass]:
        """Have a run decided about and recorded, and let it in for as long as the block takes.

        Args are those of `AdapterThread.begin`, and so are the errors: they come before the block.
        Beside them `watch` tells what of the run is at work, where the framework says.
        """
        token = secrets.token_hex(_TOKEN_BYTES)
        # Kept for as long as the run takes: a handle that nobody has is made anew.
        handle = self._store.thread(thread)
        # Of two calls at once the one that is decided first would otherwise be granted its pass
        # last, and neither could go on.
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
        """The pass of a token; None if there is no token.

        Raises:
            Superseded: It is that of a run that has ended or was overtaken.
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
        """Whether a run may go on."""
        with self._lock:
            return self._has(thread, token)

    def read(self, thread: str, token: object, lane: str, name: str | None) -> Snapshot | None:
        """Read a checkpoint, for the guarded run of a token or, without one, for anybody.

        Raises:
            Superseded: A guarded run reads, and another one goes on with the thread by now.
            ResumeRefused: It reads another checkpoint than was decided about.
        """
        handle = self._store.thread(thread).adapter
        found = self.find(thread, token)
        if found is None:
            return handle.snapshot(lane, name)
        if not lane and name is None and found.root is not None:
            # A framework compares what a run goes on from with the newest.
            return handle.snapshot(lane)
        return handle.snapshot(lane, name, running=True, session=found.session)

    def hold(self, thread: str, token: object) -> bool:
        """Remember that a pause holds the work of a guarded run back; False if it is none."""
        with self._lock:
            held = self._has(thread, token)
            if held:
                self._held.add(str(token))
            return held

    def was_held(self, token: str) -> bool:
        """Whether a pause held work of a run back."""
        with self._lock:
            return token in self._held

    def turn(self, thread: str) -> asyncio.Lock:
        """What gives the calls of the running event loop their turn to be decided."""
        return self._order.turn(thread)

    def _has(self, thread: str, token: object) -> bool:
        found = self._passes.get(thread)
        return found is not None and found.token == token


def _came_to_end(error: BaseException, watch: "RunWatch | None") -> bool:
    """Whether a run that ends with an error knows what it has done.

    One whose code raises does: whoever called is told. One that was cancelled may have left work
    behind that goes on, unless nothing of it was at work, and one that could not save has done what
    nobody will know of. A stream that is closed waits for its work, unless an event loop runs it.
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
    """The thread of a guarded run, for as long as the run goes on with it."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.token: str | None = None
        """The pass of the run; None: it has not been let in yet."""
        self.has_begun = False
        """Whether it may have taken a step."""
        self.at_work: set[object] = set()
        """What of it has begun and not ended, as the framework names it."""

    @property
    def paused(self) -> bool:
        """Whether an operator has stopped the thread: asked before every step.

        Raises:
            Superseded: Another run goes on with it by now.
        """
        if self.token is None:
            return self.thread.paused
        self.has_begun = True
        return not self.thread.adapter.may_go_on(self.token)


class Refusals:
    """What parts of runs could not save, until the run around them is told.

    A framework may drop the error of a part of a run, such as a subgraph that then asks a question;
    the run is told when it writes next. One that ends otherwise never writes again, so only so many
    are kept. Of a thread whose error had to go it is still known that there was one: its next write
    is refused once without the cause, rather than let through. Another thread may be taken for it,
    and is refused once as well.
    """

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
                    f"thread {thread!r}: something of its run may not have been saved; too many "
                    "other runs have failed since to say what",
                    hint="Run it again: it continues from what was saved.",
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


class LoopOrder:
    """Who waits for a decision about a thread, or to save in it, in each event loop."""

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


async def done_off_loop(call: Callable[[], _T]) -> _T:
    """Do something in an OS thread, with the caller's context variables.

    Whoever is cancelled meanwhile is told so when it has been done, since an OS thread cannot be
    stopped: nothing of a call goes on after its end.
    """
    doing = asyncio.get_running_loop().run_in_executor(None, copy_context().run, call)
    try:
        await asyncio.wait([doing])
    except asyncio.CancelledError:
        while not doing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([doing])
        doing.exception()  # nobody is told of it any more
        raise
    return doing.result()


@asynccontextmanager
async def entered_off_loop(
    turn: asyncio.Lock, make: Callable[[], AbstractContextManager[_T]]
) -> AsyncIterator[_T]:
    """Make a context manager and enter it in an OS thread, with the caller's context variables.

    Whoever is cancelled meanwhile is told so when the decision has been made, and its pass is
    worthless by then. What was recorded stands, as for a run that crashed before its first step,
    and the next run takes the thread over.

    Args:
        turn: What gives the call its turn.
        make: What makes the context manager; it is left in the event loop.
    """
    with ExitStack() as entered:
        async with turn:
            found = await done_off_loop(lambda: entered.enter_context(make()))
        yield found


def run_paused(thread: str, then: str) -> Paused:
    """What a run that a pause stopped ends with.

    Args:
        thread: What the application calls the thread.
        then: How it goes on after the pause, in the words of the framework.
    """
    return Paused(
        f"thread {thread!r}: an operator has paused it; what had been done is kept",
        hint="If the pause is still in force, an operator ends it: sealpoint unpause "
        f"{thread!r} --reason WHY. Then {then}",
    )


def extra_missing(part: str, packages: Mapping[str, str], cause: ImportError) -> Exception:
    """The error for an import that failed.

    Args:
        part: The module of the part, such as `sealpoint_langgraph`. Its distribution has the same
            name with dashes, and brings the packages.
        packages: The packages of the framework: as they are installed, by how they are imported.
        cause: Why the import failed.

    Returns:
        An error that says what to install, or `cause` itself when something else was missing: an
        installation that is broken says so itself.
    """
    package = str(cause.name).partition(".")[0]
    if package not in packages:
        return cause
    name = packages[package]
    found, command = "it missing", "pip install"
    if cause.name != package:
        # A part of it is missing: it is there, and too old.
        with suppress(WorldInvalid):
            found = f"release {code_of(name).version}, which lacks {_lacking(cause)}"
            command = "pip install -U"
    return ExtraMissing(
        f"{part}: it needs {name}, found {found}: {command} {part.replace('_', '-')}"
    )


def _lacking(cause: ImportError) -> str:
    """What could not be imported: a module, or a name of one."""
    name = getattr(cause, "name_from", None)
    return str(cause.name) if name is None else f"{cause.name}.{name}"
