# SPDX-License-Identifier: Apache-2.0
"""The facts of a decision about a release, for the gate and for an audit that judges it again.

`facts_of` is pure, and the only function that turns a release into facts. `gather` collects the
other facts from the verified chain of an open thread.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sealpoint.errors import WorldInvalid
from sealpoint.gate._decision import Facts, GrantFacts
from sealpoint.gate._last_session import LastSession
from sealpoint.gate._policy import Rule
from sealpoint.gate._session_worlds import AllowedWorld
from sealpoint.ledger import StoreChain
from sealpoint.store import Release, ThreadState
from sealpoint.world import World, WorldDiff

_COMPARED_MAX = 16


def facts_of(
    release: Release,
    *,
    thread: str,
    owner: bool,
    diff: WorldDiff | None,
    world_now: bool,
    now: datetime,
    restored: bool,
    living_session: timedelta | None,
    holder: str | None = None,
    unknown: str | None = None,
    edits: bool = False,
    paused: str | None = None,
    answered: bool = False,
    deliberate: str | None = None,
    grant: GrantFacts | None = None,
    also_older: tuple[str, ...] = (),
    retried: bool = False,
    stranger: str | None = None,
    told: tuple[Rule, ...] = (),
    world_faults: tuple[str, ...] = (),
) -> Facts:
    """Return the facts that a decision about a release depends on.

    A resume that repeats an earlier one by the same key, which saved nothing new, does not have to
    justify again what was deleted or copied before that one.
    """
    return Facts(
        thread=thread,
        paused=paused,
        owner=owner,
        diff=diff,
        world_before=release.world is not None,
        world_now=world_now,
        newest=release.newest,
        also_older=also_older,
        stranger=stranger,
        deleted=0 if retried else len(release.deleted),
        copied=release.copied and not retried,
        imported=release.origin is not None and release.origin.is_file,
        question=release.question is not None,
        answered=answered,
        age=now - release.time,
        restored=restored,
        living_session=living_session,
        holder=holder,
        unknown=unknown,
        edits=edits,
        deliberate=deliberate,
        grant=grant,
        told=told,
        world_faults=world_faults,
    )


def gather(
    state: ThreadState,
    release: Release,
    *,
    trust: StoreChain,
    who: str,
    last: LastSession,
    session: int | None,
    unknown: str | None,
    world: World | None,
    read_world: Callable[[], dict[str, Any] | None],
    allowed: AllowedWorld | None,
    now: datetime,
    holder: str | None = None,
    edits: bool = False,
    paused: str | None = None,
    answered: bool = False,
    deliberate: str | None = None,
    grant: GrantFacts | None = None,
    also_older: tuple[str, ...] = (),
) -> Facts:
    """Collect the facts of a resume that is requested now.

    Args:
        state: The verified thread.
        release: The state that would be executed.
        trust: The store chain.
        who: The identity that asks to resume.
        last: The session in force.
        session: The caller's own session; any other session that has not ended is foreign.
        unknown: The identity that resumed with an answer and has saved nothing since.
        world: The current capabilities of the run.
        read_world: Reads the world of the checkpoint, if it differs.
        allowed: The world that the checkpoint's session was allowed; None: the one that it names.
        now: The effective time.
        holder: The other run that holds the thread, and since when.
        edits: Whether the call only edits the state, so that nothing will run.
        paused: The operator who paused the thread, and the reason.
        answered: Whether the call brings an answer, an input or an edit.
        deliberate: The reason that the caller gave to show that the resume is intended.
        grant: The state of the request for exactly this resume.
        also_older: Descriptions of other starting points that are not the newest.
    """
    owner = state.chain.tip().fence.owner
    return facts_of(
        release,
        thread=state.name,
        owner=owner is not None and trust.roster.owns(who, owner),
        diff=_difference(release.world, world, read_world, allowed),
        world_now=world is not None,
        now=now,
        restored=last.was_cut(trust),
        living_session=last.age(release, session, now),
        holder=holder,
        unknown=unknown,
        edits=edits,
        paused=paused,
        answered=answered,
        deliberate=deliberate,
        grant=grant,
        also_older=also_older,
        retried=last.is_retried_by(release),
        stranger=last.stranger(release, trust.roster, who),
        world_faults=() if allowed is None else allowed.faults,
    )


def _difference(
    before: str | None,
    world: World | None,
    read_world: Callable[[], dict[str, Any] | None],
    allowed: AllowedWorld | None,
) -> WorldDiff | None:
    """Return the change from the world that the checkpoint names, or from the one allowed."""
    if allowed is None or not allowed.faults:
        return difference(before, world, read_world)
    return None if allowed.world is None or world is None else allowed.world.diff(world)


def difference(
    before: str | None, world: World | None, read_world: Callable[[], dict[str, Any] | None]
) -> WorldDiff | None:
    """Return the change between the worlds, if both are declared and readable."""
    if before is None or world is None:
        return None
    if before == world.digest:
        return WorldDiff()
    try:
        found = read_world()
        return None if found is None else _compared(_Saved(before, found), world)
    except WorldInvalid:
        return None


class _Saved:
    """A verified world, compared by its digest for the cache."""

    __slots__ = ("digest", "found")

    def __init__(self, digest: str, found: dict[str, Any]) -> None:
        self.digest = digest
        self.found = found

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Saved) and other.digest == self.digest


@lru_cache(maxsize=_COMPARED_MAX)
def _compared(before: _Saved, world: World) -> WorldDiff:
    """Compare two worlds; cached, because after a deployment all threads ask for the same pair."""
    held = World.from_dict(before.found)
    if held.digest != before.digest:  # the cache would show it to every thread with this digest
        raise WorldInvalid("the leaves of a world are not those that its digest names")
    return held.diff(world)
