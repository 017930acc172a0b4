# SPDX-License-Identifier: Apache-2.0
"""A pause at every point of a run: nothing after the step runs, and later it goes on from there."""

import asyncio
from typing import Any

import pytest
from agent_framework import RunContext, step, workflow

from sealpoint.errors import Paused, ResumeRefused, UsageError
from sealpoint_agent_framework import RunStopped, guard
from tests.adapters.agent_framework.payments import Payments, asked_of
from tests.adapters.agent_framework.stores import sealed
from tests.attacks.agent_framework.bureau import Bureau, Noted, once_admitted


@pytest.mark.parametrize("way", ["run", "stream"])
@pytest.mark.parametrize("shape", ["graph", "nested"])
def test_a_pause_in_any_superstep_ends_the_run_there(calm: Bureau, shape: str, way: str) -> None:
    """Each step is done once, whichever of them the pause came in."""

    async def work() -> None:
        did = Noted()
        payments = Payments(shape, did=did)
        at = await calm.waiting(payments)
        thread = calm.operator().thread(at.thread)
        calls: list[dict[str, Any]] = [{"responses": {at.request: True}}]
        for told in ("heard True", "pays 42 to ann: True"):
            did.then(told, lambda: thread.pause("look"))
            with pytest.raises(Paused, match="what had been done is kept"):
                await _run(at.workflow, way, **calls[-1])
            for call in ({"message": "bob"}, {"checkpoint_id": at.workflow._sealpoint_gate.last}):
                with pytest.raises(ResumeRefused, match="paused"):
                    await _run(at.workflow, way, **call)
            assert payments.did[-1] == told
            thread.unpause("looked")
            calls = [{"checkpoint_id": at.workflow._sealpoint_gate.last}]
        await _run(at.workflow, way, **calls[-1])
        assert payments.did == ["heard True", "pays 42 to ann: True"]
        assert calm.worker.verify().ok

    asyncio.run(work())


async def _run(made: Any, way: str, **call: Any) -> None:
    if way == "stream":
        async for _ in made.run(stream=True, **call):
            pass
    else:
        await made.run(**call)


def test_a_pause_in_a_step_of_a_function_ends_the_run_there(calm: Bureau) -> None:
    """The step is kept, and not done again, by a call with the same response."""

    async def work() -> None:
        did = Noted()
        payments = Payments("function", did=did)
        at = await calm.waiting(payments)
        thread = calm.operator().thread(at.thread)
        did.then("pays 42 to ann: True", lambda: thread.pause("look"))
        with pytest.raises(Paused):
            await at.workflow.run(**at.call())
        thread.unpause("looked")
        call = {"checkpoint_id": at.workflow._sealpoint_gate.last}
        with pytest.raises(UsageError, match="answered otherwise"):
            await at.workflow.run(**call, responses={at.request: False})
        result = await at.workflow.run(**call, responses={at.request: True})
        assert result.get_outputs() == ["paid 42 to ann: True"]
        assert did == ["pays 42 to ann: True"]

    asyncio.run(work())


@pytest.mark.parametrize("shape", ["graph", "nested", "function"])
def test_a_pause_between_the_decision_and_the_run_is_noticed(
    calm: Bureau, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response is kept as delivered, at most; nobody hears it before the pause is over."""

    async def work() -> None:
        payments = Payments(shape)
        at = await calm.waiting(payments)
        thread = calm.operator().thread(at.thread)
        once_admitted(at.workflow, lambda: thread.pause("look"), monkeypatch)
        with pytest.raises(Paused):
            await at.workflow.run(responses={at.request: True})
        assert payments.did == [] or shape == "function"
        thread.unpause("looked")

    asyncio.run(work())


@pytest.mark.filterwarnings("ignore:.FUNCTIONAL_WORKFLOWS")
def test_code_that_catches_everything_does_not_make_a_stopped_run_a_success(
    calm: Bureau,
) -> None:
    """A function may catch what a save raises: the run is told again, and nothing more is saved."""
    did = Noted()

    def build(storage: Any) -> Any:
        @step(name="one", replay_key=lambda: "one")
        async def one() -> str:
            did.append("one")
            return "one"

        @step(name="two", replay_key=lambda: "two")
        async def two() -> str:
            did.append("two")
            return "two"

        @workflow(name="stubborn")
        async def stubborn(text: str, ctx: RunContext) -> str:
            await ctx.request_info(text, bool)
            for each in (one, two):
                try:
                    await each()
                except BaseException as caught:  # noqa: BLE001 (what the test is about)
                    did.append(type(caught).__name__)
            return "done"

        return guard(stubborn.build(), storage, actor="dev")

    async def work() -> None:
        storage = sealed(calm.worker)
        made = build(storage)
        request = asked_of(await made.run("x"))
        name = await storage.thread_of(made._sealpoint_gate.last)
        thread = calm.operator().thread(name)
        before = len(list(calm.worker.thread(name).history()))
        did.then("one", lambda: thread.pause("look"))
        with pytest.raises(Paused):
            await made.run(responses={request: True})
        assert did.count(RunStopped.__name__) == 2
        thread.unpause("looked")
        assert len(list(calm.worker.thread(name).history())) <= before + 1

    asyncio.run(work())
