# SPDX-License-Identifier: Apache-2.0
"""A request with all that people are shown of it: made anew from the thread, never from its words.

What an approver sees on the command line and what an export holds is what `examine` finds, and
nothing besides.
"""

from dataclasses import dataclass
from typing import Any

from sealpoint.api._store import Store
from sealpoint.errors import DecodeError, SealpointError
from sealpoint.gate import Request, Thread
from sealpoint.store import CheckpointRef, PendingResult, Release
from sealpoint.world import WorldDiff

__all__ = ["Examined", "ShownRelease", "ShownResult", "examine", "read_release"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResult:
    """Results of a task, and what they say if that can be decoded here."""

    lane: str
    result: PendingResult
    value: Any
    fault: str | None
    """Why the value is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRelease:
    """A release with the values of what is pending."""

    release: Release
    ref: CheckpointRef
    results: tuple[ShownResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A request, and what was found out about it here."""

    request: Request
    shown: ShownRelease | None
    """What it would release, made anew from the thread; None if nothing, or if that failed."""
    diff: WorldDiff | None
    fault: SealpointError | None
    """Why what it shows cannot be believed."""


def examine(store: Store, request: Request) -> Examined:
    """Make the release of a request anew from its thread, and compare what it shows with that."""
    shown, diff, fault = None, None, None
    if request.statement.checkpoint is not None:
        handle = store.thread(request.thread)
        try:
            shown = read_release(handle, handle.release_of(request))
            diff = handle.compare(request)
        except SealpointError as error:
            fault = error
    return Examined(request=request, shown=shown, diff=diff, fault=fault)


def read_release(thread: Thread, release: Release) -> ShownRelease:
    """Read what a release says, as far as the registry of the store knows its types.

    Raises:
        SealpointError: The thread is not what it was when the release was made.
    """
    pending = [(release.lane, result) for result in release.results]
    pending += [(lane.lane, result) for lane in release.lanes for result in lane.results]
    return ShownRelease(
        release=release,
        ref=thread.ref_of(release),
        results=tuple(_read(thread, lane, result) for lane, result in pending),
    )


def _read(thread: Thread, lane: str, result: PendingResult) -> ShownResult:
    try:
        value = thread.read_result(result).value
    except DecodeError as error:
        return ShownResult(lane=lane, result=result, value=None, fault=error.message)
    return ShownResult(lane=lane, result=result, value=value, fault=None)
