# SPDX-License-Identifier: Apache-2.0
"""A storage without a guard: a run is judged by its first save, and stops if that is refused."""

import asyncio
from typing import Any

import pytest

from sealpoint.errors import ResumeRefused, SealpointError
from sealpoint_agent_framework import RunStopped
from tests.adapters.agent_framework.payments import Payments, asked_of
from tests.adapters.agent_framework.stores import sealed
from tests.attacks.agent_framework.bureau import Bureau


async def _waiting(payments: Payments, storage: Any) -> dict[str, Any]:
    """The call that answers a workflow, in any process."""
    request = asked_of(await payments.build().run("ann", checkpoint_storage=storage))
    latest = await storage.get_latest(workflow_name="payments")
    payments.did.clear()
    return {"checkpoint_id": latest.checkpoint_id, "responses": {request: True}}


@pytest.mark.parametrize("refused", ["stop", "warn"])
def test_a_consumed_checkpoint_is_not_answered_with_the_opposite(
    calm: Bureau, payments: Payments, refused: Any
) -> None:
    """Before an executor runs; that a run may not go on is never only warned of."""

    async def work() -> None:
        storage = sealed(calm.worker, thread=f"bare {payments.shape} {refused}")
        storage.on_refused_save = refused
        call = await _waiting(payments, storage)
        await payments.build().run(**call, checkpoint_storage=storage)
        payments.did.clear()
        opposite = {**call, "responses": dict.fromkeys(call["responses"], False)}
        with pytest.raises(RunStopped) as stopped:
            await payments.build().run(**opposite, checkpoint_storage=storage)
        assert isinstance(stopped.value.error, SealpointError)
        # A function saves nothing before its first step.
        assert payments.did == [] or payments.shape == "function"

    asyncio.run(work())


@pytest.mark.parametrize("shape", ["graph", "nested"])
def test_under_the_policy_team_nothing_is_answered_without_a_guard(
    office: Bureau, shape: str
) -> None:
    """Nobody can be asked by a save, so it is refused, and the hint says what to do."""

    async def work() -> None:
        payments = Payments(shape)
        at = await office.waiting(payments)
        for storage in (at.storage, office.another()):
            with pytest.raises(RunStopped, match="through guard") as stopped:
                await payments.build().run(**at.call(), checkpoint_storage=storage)
            assert isinstance(stopped.value.error, ResumeRefused)
        assert payments.did == []

    asyncio.run(work())


def test_the_pass_of_a_run_is_worth_nothing_after_it(calm: Bureau) -> None:
    """A storage that an executor kept saves and reads nothing once its run has ended."""

    async def work() -> None:
        payments = Payments()
        at = await calm.waiting(payments)
        kept: list[Any] = []
        create = at.workflow._runner_context.create_checkpoint

        async def spied(*given: Any) -> Any:
            kept.append(at.workflow._runner_context._get_effective_checkpoint_storage())
            return await create(*given)

        at.workflow._runner_context.create_checkpoint = spied
        await at.workflow.run(responses={at.request: True})
        old = await at.storage.load(at.checkpoint)
        old.checkpoint_id = "written later"
        with pytest.raises(RunStopped):
            await kept[0].save(old)
        assert at.workflow._sealpoint_gate.last != "written later"

    asyncio.run(work())
