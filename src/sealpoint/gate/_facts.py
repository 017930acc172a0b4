# SPDX-License-Identifier: Apache-2.0
"""Gathering the facts of a decision, all of them from the verified chain."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sealpoint.errors import WorldInvalid
from sealpoint.gate._rules import Facts
from sealpoint.ledger import Entry, Kind, StoreChain, Tip
from sealpoint.store import Chain, CheckpointRef
from sealpoint.world import World, WorldDiff

__all__ = ["Candidate", "gather"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A checkpoint that would be released, without its state."""

    ref: CheckpointRef
    newest: bool
    world_digest: str | None
    """The digest of what the run was able to do when it was saved, if that was declared."""
    read_world: Callable[[], dict[str, Any]]
    """Reads that world, which is only needed where it differs."""
    question: Any


def gather(
    chain: Chain,
    candidate: Candidate,
    *,
    trust: StoreChain,
    who: str,
    session: int | None,
    world: World | None,
    pause: tuple[Entry, str] | None,
    now: datetime,
) -> Facts:
    """What a decision about a checkpoint depends on, beside what the caller says.

    Args:
        chain: The verified chain.
        candidate: The checkpoint.
        trust: The store chain.
        who: The identity that would go on.
        session: The session that it holds itself.
        world: What the run is able to do now.
        pause: The pause in force, and its reason.
        now: The effective time.
    """
    tip = chain.tip()
    owner = tip.fence.owner
    return Facts(
        thread=chain.name,
        paused=None if pause is None else f"{pause[0].writer}: {pause[1]}",
        owner=owner is not None and trust.roster.owns(who, owner),
        diff=_difference(candidate, world),
        world_before=candidate.world_digest is not None,
        world_now=world is not None,
        newest=candidate.newest,
        question=candidate.question is not None,
        answered=False,
        age=now - candidate.ref.time,
        restored=_is_restored(chain, tip, trust),
        living_session=_living_session(chain, tip, session, now),
        deliberate=None,
        grant=None,
    )


def _difference(candidate: Candidate, world: World | None) -> WorldDiff | None:
    """What differs, if both worlds are declared and can be read."""
    if candidate.world_digest is None or world is None:
        return None
    if candidate.world_digest == world.digest:
        return WorldDiff()
    try:
        return World.from_dict(candidate.read_world()).diff(world)
    except WorldInvalid:
        return None


def _is_restored(chain: Chain, tip: Tip, trust: StoreChain) -> bool:
    """Whether a restore has cut the thread, and no session has begun since."""
    if not trust.epoch:
        return False
    executed = _executed_epoch(chain, tip)
    return any(
        trust.lists.get(restore.lost).position(chain.thread) is not None
        for restore in trust.restores.all[executed:]
    )


def _executed_epoch(chain: Chain, tip: Tip) -> int:
    """The epoch in which the thread was last released for execution."""
    if tip.fence.is_session:
        return chain.descend(tip.fence.seq)[1].epoch
    for header, _ in chain.walk():
        if header.kind is Kind.RESUME:
            return header.epoch
    return 0


def _living_session(chain: Chain, tip: Tip, session: int | None, now: datetime) -> timedelta | None:
    """How long ago another session than this one last moved the thread; None if there is none."""
    if not tip.fence.is_session or tip.fence.seq == session:
        return None
    return now - chain.descend(tip.basis[0])[1].at
