# SPDX-License-Identifier: Apache-2.0
"""Every way to read a store, and when one reading may stand beside another.

A read ends in a value or in one of our errors, anything else fails by itself. While the store is
edited, a read gives what is true or refuses; a list that says of itself that it lacks something
refuses as well, and whatever it does show is true.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sealpoint.api import Store
from sealpoint.errors import Erased, Pruned, SealpointError, UnknownCheckpoint, UnknownThread
from sealpoint.gate import Requests, Thread
from sealpoint.store import Key, ThreadNames
from tests.unit.gate.team import READ, SHELL

__all__ = ["LANES", "Reading", "Readings", "read_all", "unsound", "untrue"]

LANES = ("", "sub")
_TOLD_CHARS = 400
_ID_CHARS = 12
"""How many digits of its id stand for a thread whose name cannot be proven."""
_QUIET = (Erased, Pruned, UnknownCheckpoint, UnknownThread)
"""What says that something is not there, and not that somebody has edited the store."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a read ended."""

    value: Any
    """What it gave; of a list that broke off, what it had given by then."""
    error: SealpointError | None = None
    listed: bool = False

    def told(self, beside: "Reading | None" = None) -> str:
        """How it ended, from about where it differs from another."""
        if self.error is not None:
            return f"raises {type(self.error).__name__}: {self.error.message}"[:_TOLD_CHARS]
        mine = repr(self.value)
        if beside is None or beside.error is not None:
            return f"gives {mine}"[:_TOLD_CHARS]
        pairs = enumerate(zip(mine, repr(beside.value), strict=False))
        differs = next((place for place, (one, other) in pairs if one != other), 0)
        start = max(0, differs - _TOLD_CHARS // 4)
        return f"gives {'... ' if start else ''}{mine[start : start + _TOLD_CHARS]}"


Readings = dict[str, Reading]
_Read = Callable[[], Any]


def _verbs(thread: Thread, keys: Sequence[Key]) -> Iterator[tuple[str, _Read]]:
    """Every read of a thread: a verb that is added to threads is added here."""
    yield "load", thread.load
    yield "snapshots", thread.adapter.snapshots
    yield "history", thread.history
    yield "paused", lambda: thread.paused
    yield "question", lambda: thread.question
    yield "requests", thread.requests
    yield "release", thread.release
    yield "judge", partial(thread.judge, world=READ)
    yield "judge in a wider world", partial(thread.judge, world=SHELL)
    for lane in LANES:
        yield f"snapshot of {lane!r}", partial(thread.adapter.snapshot, lane)
        yield f"snapshots of {lane!r}", partial(thread.adapter.snapshots, lane)
    for key in keys:
        yield f"snapshot of {key.lane!r} {key.id}", partial(thread.adapter.snapshot, *key)
        if not key.lane:
            yield f"load {key.id}", partial(thread.load, key.id)
    for key in [key for key in keys if not key.lane][:1]:
        yield f"judge {key.id}", partial(thread.judge, world=READ, ref=key.id)
        yield f"release {key.id}", partial(thread.release, key.id)


def read_all(store: Store, keys: Mapping[str, Sequence[Key]], turn: int) -> Readings:
    """Read everything.

    Args:
        store: An open store.
        keys: The checkpoints that are asked for, by the name of their thread.
        turn: With which read to begin: what one read has met, the next ones rest on.
    """
    reads: list[tuple[str, _Read]] = [
        ("threads", partial(store.threads, partial=True)),
        ("requests", store.requests),
    ]
    for name, chosen in keys.items():
        thread = store.thread(name)
        reads += [(f"{name}: {verb}", read) for verb, read in _verbs(thread, chosen)]
    first = turn % len(reads)
    return {verb: _reading(read) for verb, read in (*reads[first:], *reads[:first])}


def _reading(read: _Read) -> Reading:
    try:
        found = read()
    except SealpointError as error:
        return Reading(None, error)
    if not isinstance(found, Iterator):
        return Reading(found)
    listed: list[Any] = []
    try:
        for each in found:
            listed.append(each)  # noqa: PERF402 (what came before the error is compared, too)
    except SealpointError as error:
        return Reading(listed, error, listed=True)
    return Reading(listed, listed=True)


def unsound(reading: Reading) -> bool:
    """Whether a reading of a store that nobody has edited is an alarm."""
    if reading.error is not None:
        return not isinstance(reading.error, _QUIET)
    return _lacks(reading.value)


def untrue(reading: Reading, truth: Reading, *, edited: bool) -> bool:
    """Whether a reading must not stand beside the true one.

    Args:
        reading: How a read ended.
        truth: How it ends in a process that knows nothing, on the bytes that are genuine.
        edited: Whether the store is edited at the moment: then a read may refuse.
    """
    if not edited:
        return (type(reading.error), reading.value) != (type(truth.error), truth.value)
    if reading.error is not None:
        return reading.listed and reading.value != (truth.value or [])[: len(reading.value)]
    if truth.error is not None:
        return True
    found = reading.value
    if isinstance(found, Requests):
        found = _without_names(found, truth.value)
    if _lacks(found):
        return not _shown(found) <= _shown(truth.value)
    return bool(found != truth.value)


def _lacks(value: Any) -> bool:
    """Whether a list says that it is not complete."""
    if isinstance(value, ThreadNames):
        return not value.complete
    return isinstance(value, Requests) and bool(value.failures)


def _shown(value: ThreadNames | Requests) -> set[str]:
    if isinstance(value, ThreadNames):
        return set(value.names)
    return {repr(request) for request in value.requests}


def _without_names(found: Requests, truth: Requests) -> Requests:
    """The requests with their true names where a thread is called by its id.

    Whose name cannot be proven, because somebody has edited what says it, is listed by its id.
    """
    names = {request.id: request.thread for request in truth.requests}
    return replace(
        found,
        requests=tuple(
            replace(request, thread=names.get(request.id, request.thread))
            if request.thread == request.statement.thread[:_ID_CHARS]
            else request
            for request in found.requests
        ),
    )
