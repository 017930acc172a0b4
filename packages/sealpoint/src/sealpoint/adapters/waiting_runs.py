# SPDX-License-Identifier: Apache-2.0
"""The runs that wait for their worker: answered, approved, or interrupted after an answer.

A worker calls `resume_waiting` of its adapter, once or in a loop. It finds these runs and tries
each of them, in any number of processes at once: the gate lets each answer and each approval be
taken by one run. A run that needs approval is asked for, and tried again when the thread changes.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum, unique
from functools import partial
from typing import Any

from sealpoint.api import Store
from sealpoint.errors import (
    Busy,
    Moved,
    NeedsApproval,
    Paused,
    ResumeRefused,
    SealpointError,
    Superseded,
    UsageError,
)
from sealpoint.gate import Request, SignedAnswer, Status, Thread
from sealpoint.signing import Action

__all__ = [
    "OnRun",
    "ResumeCounts",
    "RunOutcome",
    "WaitingReason",
    "WaitingRun",
    "resume_each",
    "resume_each_async",
]

_LOG = logging.getLogger("sealpoint")
_AGAIN_SECONDS = 60.0
"""After this time a run is tried again, even if its thread has not changed."""
_SOON_SECONDS = 5.0
"""The same for a run that another process has taken."""


@unique
class WaitingReason(StrEnum):
    """Why a run may resume."""

    ANSWERED = "answered"
    """A person has signed the answer to its question."""
    APPROVED = "approved"
    """People have approved what this identity asked for."""
    INTERRUPTED = "interrupted"
    """It had been given an answer, and its process ended before it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRun:
    """A run that may resume."""

    thread: Thread
    reason: WaitingReason
    answer: Any
    """The answer for the run, as the gate binds it; None: it gets none."""
    takes: str | int
    """The argument of this name for `AdapterThread.begin`."""
    checkpoint: str | None = None
    """The checkpoint to resume from; None: the newest."""
    deliberate: str | None = None
    """Why it is intended, as a person has written and signed it."""


@unique
class RunOutcome(StrEnum):
    """The outcome of an attempt to resume a run."""

    RAN = "ran"
    """It ran, to its end or to its next question."""
    NEEDS_APPROVAL = "needs approval"
    REFUSED = "refused"
    """The gate refused it: the error says why."""
    FAILED = "failed"
    """Its own code raised an error. It is not tried again."""
    TAKEN = "taken"
    """Another process runs it, or ran it; an operator has paused it; its answer was withdrawn."""
    FOREIGN = "foreign"
    """It is not of this graph or workflow, or only the application can repeat its call."""


@dataclass(slots=True)
class ResumeCounts:
    """The attempts of `resume_waiting` so far, for metrics."""

    outcomes: Counter[RunOutcome] = field(default_factory=Counter)
    """How many attempts had each outcome."""
    passes: int = 0
    """How often it has looked."""

    @property
    def ran(self) -> int:
        """How many runs have resumed."""
        return self.outcomes[RunOutcome.RAN]


OnRun = Callable[[WaitingRun, RunOutcome, BaseException | None], object]
"""Called after each attempt, with the error if there was one."""


def resume_each(
    store: Store,
    attempt: Callable[[WaitingRun], bool],
    *,
    every: float | None = None,
    stop: threading.Event | None = None,
    on_run: OnRun | None = None,
) -> ResumeCounts:
    """Resume what waits: once, or in a loop until it is stopped.

    Args:
        store: The store.
        attempt: Resumes one run, and raises the errors of gate and run; returns False if it is not
            of this application.
        every: Look again after this many seconds; None: look once.
        stop: Set it to end the loop after the run under way.
        on_run: Called after each attempt.

    Raises:
        UsageError: The time between two looks is not positive.
        SealpointError: The store or the anchor cannot be read, when it looks once. A loop logs it,
            and looks again.
    """
    finder, stop = _Finder(store, every, on_run), stop or threading.Event()
    while not stop.is_set():
        for run in finder.find():
            try:
                finder.settle(run, ran=attempt(run))
            except Exception as error:  # noqa: BLE001 (an application may raise anything)
                finder.settle(run, error)
            if stop.is_set():
                break
        if every is None or stop.wait(every):
            break
    return finder.counts


async def resume_each_async(
    store: Store,
    attempt: Callable[[WaitingRun], Awaitable[bool]],
    *,
    every: float | None = None,
    stop: asyncio.Event | None = None,
    on_run: OnRun | None = None,
) -> ResumeCounts:
    """Resume what waits, as `resume_each` does, on the running event loop."""
    finder, stop = _Finder(store, every, on_run), stop or asyncio.Event()
    while not stop.is_set():
        for run in await asyncio.to_thread(lambda: list(finder.find())):
            try:
                finder.settle(run, ran=await attempt(run))
            except Exception as error:  # noqa: BLE001 (an application may raise anything)
                finder.settle(run, error)
            if stop.is_set():
                break
        if every is None:
            break
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), every)
    return finder.counts


def _outcome_of(error: Exception) -> RunOutcome:
    match error:
        case NeedsApproval():
            return RunOutcome.NEEDS_APPROVAL
        case Busy() | Moved() | Paused() | Superseded():
            return RunOutcome.TAKEN
        case ResumeRefused():
            return RunOutcome.REFUSED
        case _:
            return RunOutcome.FAILED


def _approved(request: Request, thread: Thread, _: int) -> WaitingRun | None:
    """Return the run that people have approved; None if another identity asked for it."""
    told = request.statement
    if told.requester != thread.adapter.identity:
        return None
    release = thread.release_of(request)
    return WaitingRun(
        thread=thread,
        reason=WaitingReason.APPROVED,
        answer=request.answer,
        takes=request.id,
        checkpoint=None if release.newest else release.id,
        deliberate=told.reason,
    )


def _answered(answer: SignedAnswer, thread: Thread, _: int) -> WaitingRun:
    """Return the run that a person has answered."""
    return WaitingRun(
        thread=thread,
        reason=WaitingReason.ANSWERED,
        answer=answer.answer,
        takes=answer.id,
        deliberate=answer.deliberate,
    )


class _Finder:
    """Finds the runs that wait, and remembers what came of the attempts."""

    def __init__(self, store: Store, every: float | None, on_run: OnRun | None) -> None:
        if every is not None and every <= 0:
            raise UsageError(f"every: expected a number of seconds above 0, found {every}")
        self._store = store
        self._is_loop = every is not None
        self._on_run = on_run
        self.counts = ResumeCounts()
        self._watch = store.watch()
        self._tried: dict[str, tuple[str | int, int, float]] = {}
        """For each thread: what was tried, at which position, and when it is tried again."""
        self._settled: dict[str, int] = {}
        """For each thread, the position at which its newest run is nothing to repeat."""

    def find(self) -> Iterator[WaitingRun]:
        """Yield the runs that may resume now; those that were interrupted come last."""
        self.counts.passes += 1
        try:
            yield from (run for run in self._find() if not run.thread.paused)
        except SealpointError as error:
            if not self._is_loop:
                raise
            _LOG.warning("waiting runs could not be read code=%s", error.code)

    def _find(self) -> Iterator[WaitingRun]:
        self._watch.refresh()
        heads = dict(self._watch.heads().values())
        found = self._watch.requests()
        for request in found.requests:
            told = request.statement
            is_approved = (told.action, request.status) == (Action.RESUME, Status.APPROVED)
            if is_approved and self._is_due(request.thread, request.id, heads):
                yield from self._read(request.thread, heads, partial(_approved, request))
        for answer in found.answers:
            if self._is_due(answer.thread, answer.id, heads):
                yield from self._read(answer.thread, heads, partial(_answered, answer))
        # A run begins with an entry. So a thread that no run holds, at the position where its
        # newest run was found to be nothing to repeat, stays so.
        for name, seq in heads.items():
            is_settled = self._settled.get(name) == seq or name.startswith("sealpoint:")
            if not is_settled and self._is_due(name, None, heads):
                yield from self._read(name, heads, self._interrupted)

    def _read(
        self,
        name: str,
        heads: Mapping[str, int],
        read: Callable[[Thread, int], WaitingRun | None],
    ) -> Iterator[WaitingRun]:
        """Yield what waits on a thread; one that cannot be read stops no other."""
        thread, seq = self._store.thread(name), heads.get(name, -1)
        try:
            found = read(thread, seq)
        except SealpointError as error:
            _LOG.warning("waiting run unreadable thread=%s code=%s", thread.id, error.code)
            self._tried[name] = ("", seq, time.monotonic() + _AGAIN_SECONDS)
        else:
            if found is not None:
                yield found

    def _interrupted(self, thread: Thread, seq: int) -> WaitingRun | None:
        """Return the interrupted run of a thread."""
        if thread.adapter.is_held():
            return None  # look again next time
        found = thread.adapter.interrupted()
        if found is None or not (found.saved or found.answer is not None):
            self._settled[thread.name] = seq
            return None
        return WaitingRun(
            thread=thread,
            reason=WaitingReason.INTERRUPTED,
            answer=None if found.saved else found.answer,
            takes=found.session,
        )

    def _is_due(self, name: str, takes: str | None, heads: dict[str, int]) -> bool:
        """Whether an answer or a request, or the newest run, was not tried where the thread is."""
        tried, position, again = self._tried.get(name, (None, -1, 0.0))
        is_same = position == heads.get(name, -1) and takes in (None, tried)
        return not is_same or time.monotonic() > again

    def settle(self, run: WaitingRun, error: Exception | None = None, *, ran: bool = False) -> None:
        """Count an attempt, and repeat it only after its thread has changed."""
        outcome = RunOutcome.RAN if ran else RunOutcome.FOREIGN
        if error is not None:
            outcome = _outcome_of(error)
        self.counts.outcomes[outcome] += 1
        name = run.thread.name
        seq = dict(self._watch.heads().values()).get(name, -1)
        if (outcome, run.reason) == (RunOutcome.FOREIGN, WaitingReason.INTERRUPTED):
            self._settled[name] = seq
        else:
            rest_s = _SOON_SECONDS if outcome is RunOutcome.TAKEN else _AGAIN_SECONDS
            self._tried[name] = (run.takes, seq, time.monotonic() + rest_s)
        if outcome in (RunOutcome.REFUSED, RunOutcome.FAILED):
            code = error.code if isinstance(error, SealpointError) else type(error).__name__
            _LOG.warning("waiting run %s thread=%s code=%s", outcome, run.thread.id, code)
        if self._on_run is not None:
            self._on_run(run, outcome, error)
