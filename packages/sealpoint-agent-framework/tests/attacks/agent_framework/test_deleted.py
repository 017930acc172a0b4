# SPDX-License-Identifier: Apache-2.0
"""Making an old checkpoint the newest by deleting what came after it: it is still an old one."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from sealpoint.errors import SealpointError
from sealpoint_agent_framework import RunStopped
from tests.adapters.agent_framework.payments import Payments
from tests.attacks.agent_framework.bureau import Bureau, Waiting


async def _answered_and_deleted(office: Bureau, at: Waiting, *, approved: bool) -> None:
    """Answer, and delete every checkpoint since the question."""
    if approved:
        office.approve(await office.request_for(at.workflow.run(**at.call())))
    await at.workflow.run(**at.call())
    for ref in list(office.worker.thread(at.thread).history()):
        if ref.id == at.checkpoint:
            break
        assert await at.storage.delete(ref.id)
    newest = next(iter(office.worker.thread(at.thread).history()))
    assert newest.id == at.checkpoint, "it looks like the newest"


_WAYS: dict[str, Callable[[Waiting, Any, Any], Any]] = {
    "in the same process": lambda at, _, __: at.workflow.run(responses={at.request: False}),
    "by its checkpoint": lambda at, _, __: at.workflow.run(**at.call(response=False)),
    "in another process": lambda at, other, _: other.run(**at.call(response=False)),
    "without a guard": lambda at, _, bare: bare.run(**at.call(response=False)),
}
_UNGUARDED_FUNCTION = ("function", "without a guard")
"""It saves nothing before its first step, so nobody can refuse that."""


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("policy", ["solo", "strict"])
def test_what_is_left_after_a_deletion_is_not_answered_again(
    office: Bureau, calm: Bureau, payments: Payments, policy: str, way: str
) -> None:
    """With the opposite answer; under `strict` people are asked, whatever they said before."""
    team = office if policy == "strict" else calm

    async def work() -> None:
        at = await team.waiting(payments)
        await _answered_and_deleted(team, at, approved=policy == "strict")
        payments.did.clear()
        storage = team.another()
        other, bare = team.guarded(payments, storage), _Bare(payments.build(), storage)
        with pytest.raises((SealpointError, RunStopped, ValueError)):
            await _WAYS[way](at, other, bare)
        paid = [each for each in payments.did if "pays" in each]
        assert paid == [] or (payments.shape, way) == _UNGUARDED_FUNCTION
        assert team.worker.verify().ok

    asyncio.run(work())


class _Bare(NamedTuple):
    """A workflow that nobody guards, on a sealed storage."""

    workflow: Any
    storage: Any

    def run(self, **call: Any) -> Any:
        return self.workflow.run(**call, checkpoint_storage=self.storage)
