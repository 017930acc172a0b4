# SPDX-License-Identifier: Apache-2.0
"""What a thread is at, for a list of threads: paused, waiting, or gone on with.

It is read from the verified end of the thread, costs the same however long that is, and keeps
nothing. Whether a run is alive somewhere, nobody can see from here: a session that was begun and
not ended says only that somebody may be at work.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum, unique

from sealpoint.errors import (
    AnchorUnavailable,
    SealpointError,
    StorageUnavailable,
    UnknownCheckpoint,
)
from sealpoint.gate._pending import Asked, read_pending
from sealpoint.gate._policies import Policies
from sealpoint.gate._requests import Status, make_request
from sealpoint.store import Core, ThreadReader, ThreadState

__all__ = ["ThreadPhase", "ThreadSummary", "summarise"]


@unique
class ThreadPhase(StrEnum):
    """What a thread is at."""

    PAUSED = "paused"
    """An operator has paused it."""
    NEEDS_APPROVAL = "waits for approval"
    """Somebody has asked for an approval, and there is none yet, or it was not used."""
    NEEDS_ANSWER = "waits for an answer"
    """A question is pending."""
    SAVED = "saved"
    """It was saved, and waits for nobody: it is at work, may go on, or has finished."""
    EMPTY = "empty"
    """It holds no checkpoint."""
    UNREADABLE = "not readable"
    """It does not verify, or cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSummary:
    """One thread in a list of threads."""

    name: str
    phase: ThreadPhase
    changed: datetime | None
    """When it was last saved or gone on with; None if it cannot be read."""
    owner: str | None
    """The identity or pool that owns it."""
    entries: int | None
    """How many entries it has."""
    reason: str = ""
    """Why it is paused or not readable."""


def summarise(core: Core, name: str, policies: Policies) -> ThreadSummary:
    """Say what a thread is at.

    Args:
        core: The store.
        name: The thread.
        policies: Those of the store: what a request still needs depends on them.

    Raises:
        StorageUnavailable, AnchorUnavailable: Nobody can look.
    """
    try:
        return _summary(ThreadState(core, name), name, policies)
    except (StorageUnavailable, AnchorUnavailable):
        raise
    except SealpointError as error:
        return ThreadSummary(
            name=name,
            phase=ThreadPhase.UNREADABLE,
            changed=None,
            owner=None,
            entries=None,
            reason=error.message,
        )


def _summary(state: ThreadState, name: str, policies: Policies) -> ThreadSummary:
    state.refresh()
    chain = state.chain
    tip, pending = chain.tip(), read_pending(chain)
    phase, reason = ThreadPhase.SAVED, ""
    if pending.paused is not None:
        phase, reason = ThreadPhase.PAUSED, pending.paused[1]
    elif any(_is_open(state.core, asked, name, policies) for asked in pending.asked.values()):
        phase = ThreadPhase.NEEDS_APPROVAL
    else:
        try:
            release = state.retry_if_pruned(ThreadReader(state).release)
            if release.question is not None:
                phase = ThreadPhase.NEEDS_ANSWER
        except UnknownCheckpoint:
            phase = ThreadPhase.EMPTY
    return ThreadSummary(
        name=name,
        phase=phase,
        changed=chain.descend(tip.basis[0])[1].at,
        owner=tip.fence.owner,
        entries=tip.entry.seq + 1,
        reason=reason,
    )


def _is_open(core: Core, asked: Asked, name: str, policies: Policies) -> bool:
    roster = core.trust().roster
    policy, now = policies.in_force(roster), core.now(asked.entry.header.at)
    return make_request(asked, name, roster=roster, policy=policy, now=now).status is Status.OPEN
