# SPDX-License-Identifier: Apache-2.0
"""Rollouts: a change of world that people accept once, for many threads.

A rollout names pairs of worlds, each from one and to another, in one namespace and until a date. It
is a request like that of a resume: people approve it by signing its statement, one denial ends it,
before or after it holds. While it holds, a resume between two of its worlds passes what the policy
asks of changed worlds, and carries the proof. It covers nothing else: no answer, no older
checkpoint, no pause, no restore.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sealpoint.errors import UnknownCheckpoint, UnknownRequest, UnknownThread, UsageError
from sealpoint.gate._context import GateContext
from sealpoint.gate._desk import only_one
from sealpoint.gate._operations import Operations
from sealpoint.gate._policies import Policies
from sealpoint.gate._policy import Measure
from sealpoint.gate._requests import Request
from sealpoint.gate._rollout_book import ROLLOUTS, RolloutBook
from sealpoint.gate._rollout_plan import RolloutPlan, make_plan
from sealpoint.gate._rules import compared_reasons
from sealpoint.gate._thread import Thread
from sealpoint.limits import BODY_BYTES_MAX, ROLLOUT_DAYS_MAX, ROLLOUT_PAIRS_MAX
from sealpoint.signing import Attestation, Verdict
from sealpoint.store import Core, ThreadReader, ThreadState
from sealpoint.world import World, WorldDiff

__all__ = ["Rollouts"]

_WORLDS_BYTES_MAX = BODY_BYTES_MAX * 3 // 4
"""What people are shown lies in the body of one entry."""


class Rollouts:
    """The rollouts of an open store's namespace: `store.rollouts`."""

    def __init__(
        self, core: Core, policies: Policies, book: RolloutBook, thread: Callable[[str], Thread]
    ) -> None:
        self._core = core
        self._policies = policies
        self._book = book
        self._thread = thread
        state = ThreadState(core, ROLLOUTS)
        context = GateContext(state, policies, book)
        self._operations = Operations(state, ThreadReader(state), context)

    def plan(self, world: World | Mapping[str, Any]) -> RolloutPlan:
        """Say what a new world would mean for the threads that there are; writes nothing.

        Args:
            world: What runs would be able to do from now on.

        Raises:
            WorldInvalid: It is no world.
            StorageUnavailable, AnchorUnavailable: Nobody can look.
            Tampered, NotTrusted, RolledBack, Forked: The store chain cannot be believed.
        """
        new = _world(world)
        return make_plan(
            self._core,
            new,
            policy=self._policies.in_force(self._core.trust().roster),
            exact=self._world_of,
            rollout=lambda before: self._book.find(before, new.digest),
        )

    def propose(
        self,
        pairs: Iterable[tuple[World | Mapping[str, Any], World | Mapping[str, Any]]],
        *,
        reason: str,
        until: datetime | timedelta = timedelta(days=14),
    ) -> Request:
        """Ask people to accept changes of world, each from one and to another.

        Where the policy asks for no more than a reason, it holds at once.

        Args:
            pairs: The changes: from, to. `plan` finds the worlds of the threads that there are.
            reason: Why; it is signed, and told with every resume that it lets pass.
            until: When it ends, or how long it holds.

        Raises:
            UsageError: There are no or too many pairs, the policy lets all of them pass as they
                are or refuses one, the time is none, or there is no reason.
            WorldInvalid: One is no world.
            NotTrusted: This identity may not ask, because it is neither writer nor operator.
        """
        policy = self._policies.in_force(self._core.trust().roster)
        if policy is None:
            raise UsageError("rollout: no policy is in force, so nobody can approve anything")
        worlds: dict[str, World] = {}
        measures: dict[tuple[str, str], Measure] = {}
        for before, after in ((_world(one), _world(other)) for one, other in pairs):
            reasons = compared_reasons(before.diff(after), policy)
            measure = max((each.measure for each in reasons), default=Measure.ALLOW)
            if not measure.passes:
                worlds |= {before.digest: before, after.digest: after}
                measures[before.digest, after.digest] = measure
        if not measures:
            raise UsageError(
                f"rollout: expected worlds between which the policy {policy.name!r} asks for "
                "something, found none",
                hint="Nothing has to be accepted: these runs go on as they are.",
            )
        if len(measures) > ROLLOUT_PAIRS_MAX:
            raise UsageError(
                f"rollout: expected at most {ROLLOUT_PAIRS_MAX} pairs of worlds, found "
                f"{len(measures)}",
                hint="Propose them in several rollouts.",
            )
        size_bytes = sum(len(world.encode()) for world in worlds.values())
        if size_bytes > _WORLDS_BYTES_MAX:
            raise UsageError(
                f"rollout: expected worlds of {_WORLDS_BYTES_MAX} bytes together at most, found "
                f"{size_bytes}",
                hint="Propose them in several rollouts.",
            )
        if Measure.REFUSE in measures.values():
            raise UsageError(
                f"rollout: expected changes that people can accept, found one that the policy "
                f"{policy.name!r} refuses",
                hint="sealpoint rollout plan shows which; sealpoint policy show says why.",
            )
        return self._operations.ask_rollout(
            tuple(sorted(measures)),
            tuple(worlds[digest] for digest in sorted(worlds)),
            needed=max(measures.values()).people,
            policy=policy,
            reason=reason,
            expires=self._end(until),
        )

    def _end(self, until: datetime | timedelta) -> datetime:
        now = self._core.now()
        ends = until if isinstance(until, datetime) else now + until
        longest = timedelta(days=ROLLOUT_DAYS_MAX)
        if ends.tzinfo is None or not now < ends <= now + longest:
            raise UsageError(
                f"rollout: expected an end with a time zone, within {ROLLOUT_DAYS_MAX} days from "
                f"now, found {until}"
            )
        return ends.astimezone(UTC)

    def list(self) -> tuple[Request, ...]:
        """Every rollout since the newest restore, oldest first, whatever became of it.

        Raises:
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._book.all()

    def get(self, rollout_id: str) -> Request:
        """One rollout, by its id or the first digits of it.

        Raises:
            UsageError: There are too few digits, or other characters.
            UnknownRequest: There is no such rollout, or more than one.
        """
        return only_one(self.list(), rollout_id, "rollout")

    def compare(self, rollout: Request) -> tuple[tuple[str, str, WorldDiff], ...]:
        """What a rollout lets pass: from, to, and what differs, for each pair."""
        worlds = {world.digest: world for world in map(World.from_dict, rollout.worlds)}
        return tuple(
            (before, after, worlds[before].diff(worlds[after]))
            for before, after in rollout.statement.pairs
        )

    def revoke(self, rollout_id: str, *, reason: str) -> Attestation:
        """End a rollout for good, as the identity that the store was opened with.

        An approver may, and whoever proposed it. Runs that have gone on already are not stopped.

        Raises:
            UnknownRequest: There is no such rollout.
            RequestClosed: It has ended already.
            NotTrusted: This identity may not.
            UsageError: There is no reason.
        """
        return self._operations.answer(self.get(rollout_id).id, Verdict.DENY, reason)

    def _world_of(self, name: str) -> str | None:
        """The world that a thread would go on from; None if it is undeclared or there is none."""
        try:
            return self._thread(name).release().world
        except (UnknownThread, UnknownCheckpoint, UnknownRequest):
            return None


def _world(given: World | Mapping[str, Any]) -> World:
    return given if isinstance(given, World) else World.from_dict(given)
