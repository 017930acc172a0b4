# SPDX-License-Identifier: Apache-2.0
"""The async twin of `Rollouts`."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from sealpoint.aio._calls import call
from sealpoint.gate import Request, RolloutPlan, Rollouts
from sealpoint.signing import Attestation
from sealpoint.world import World, WorldDiff

__all__ = ["AsyncRollouts"]


class AsyncRollouts:
    """The rollouts of an open store's namespace, with methods to await."""

    def __init__(self, rollouts: Rollouts, pool: ThreadPoolExecutor) -> None:
        self._rollouts = rollouts
        self._pool = pool

    async def plan(self, world: World | Mapping[str, Any]) -> RolloutPlan:
        """As `Rollouts.plan`."""
        return await call(self._pool, self._rollouts.plan, world)

    async def propose(
        self,
        pairs: Iterable[tuple[World | Mapping[str, Any], World | Mapping[str, Any]]],
        *,
        reason: str,
        until: datetime | timedelta = timedelta(days=14),
    ) -> Request:
        """As `Rollouts.propose`."""
        return await call(self._pool, self._rollouts.propose, pairs, reason=reason, until=until)

    async def list(self) -> tuple[Request, ...]:
        """As `Rollouts.list`."""
        return await call(self._pool, self._rollouts.list)

    async def get(self, rollout_id: str) -> Request:
        """As `Rollouts.get`."""
        return await call(self._pool, self._rollouts.get, rollout_id)

    async def compare(self, rollout: Request) -> tuple[tuple[str, str, WorldDiff], ...]:
        """As `Rollouts.compare`."""
        return await call(self._pool, self._rollouts.compare, rollout)

    async def revoke(self, rollout_id: str, *, reason: str) -> Attestation:
        """As `Rollouts.revoke`."""
        return await call(self._pool, self._rollouts.revoke, rollout_id, reason=reason)
