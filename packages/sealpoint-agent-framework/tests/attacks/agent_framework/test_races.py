# SPDX-License-Identifier: Apache-2.0
"""Two who go on with the same conversation at once: one of them does, and it is paid once."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import (
    InMemoryCheckpointStorage,
    WorkflowCheckpointException,
    WorkflowException,
)

from sealpoint.errors import Paused, ResumeRefused, SealpointError, Superseded, UsageError
from tests.adapters.agent_framework.payments import Payments, asked_of
from tests.attacks.agent_framework.bureau import Bureau, Noted, Waiting, once_admitted

Call = Callable[[], Any]


def _elsewhere(call: Call) -> BaseException | None:
    """Make a call in another OS thread, with an event loop of its own, and say how it ended."""
    found: list[BaseException | None] = []

    async def awaited() -> None:
        await call()

    def work() -> None:
        try:
            asyncio.run(awaited())
        except (SealpointError, WorkflowException) as error:
            found.append(error)
        else:
            found.append(None)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


async def _ending(call: Call) -> BaseException | None:
    try:
        await call()
    except (SealpointError, WorkflowException) as error:
        return error
    return None


def _cause(error: BaseException | None) -> BaseException | None:
    """Ours, where the framework tells it by its own."""
    return error.__cause__ if isinstance(error, WorkflowCheckpointException) else error


def _paid(payments: Payments) -> list[str]:
    return [each for each in payments.did if "pays" in each]


@pytest.mark.parametrize("first", ["this process", "another process"])
def test_of_two_processes_that_answer_one_after_the_other_the_first_does(
    calm: Bureau, payments: Payments, first: str
) -> None:
    """In either order; the second is told that it is late, and nothing runs."""

    async def work() -> None:
        at = await calm.waiting(payments)
        other = calm.guarded(payments, calm.another())
        calls: list[Call] = [
            lambda: at.workflow.run(responses={at.request: True}),
            lambda: other.run(**at.call(response=False)),
        ]
        if first == "another process":
            calls.reverse()
        assert await _ending(calls[0]) is None
        late = await _ending(calls[1])
        assert isinstance(late, ResumeRefused)
        assert len(_paid(payments)) == 1
        assert calm.worker.verify().ok

    asyncio.run(work())


def test_the_control_answers_both() -> None:
    """The framework's own storage lets the opposite answer have its way as well."""

    async def work() -> None:
        payments, storage = Payments(), InMemoryCheckpointStorage()
        request = asked_of(await payments.build(checkpoint_storage=storage).run("ann"))
        latest = await storage.get_latest(workflow_name="payments")
        assert latest is not None
        for response in (True, False):
            again = payments.build(checkpoint_storage=storage)
            await again.run(checkpoint_id=latest.checkpoint_id, responses={request: response})
        assert _paid(payments) == ["pays 42 to ann: True", "pays 42 to ann: False"]

    asyncio.run(work())


@pytest.mark.usefixtures("unseen_runs")
def test_who_answers_while_another_does_is_late(calm: Bureau) -> None:
    """The response of the first is delivered, and recorded, before anything runs."""

    async def work() -> None:
        late: list[BaseException | None] = []
        did = Noted()
        payments = Payments(did=did)
        at = await calm.waiting(payments)
        other = calm.guarded(payments, calm.another())
        did.then(
            "heard True",
            lambda: late.append(_elsewhere(lambda: other.run(**at.call(response=False)))),
        )
        await at.workflow.run(responses={at.request: True})
        assert isinstance(late[0], ResumeRefused)
        assert _paid(payments) == ["pays 42 to ann: True"]

    asyncio.run(work())


@pytest.mark.usefixtures("unseen_runs")
@pytest.mark.parametrize("named", ["by its checkpoint", "in the same process"])
def test_a_run_that_was_overtaken_before_it_began_runs_nothing(
    calm: Bureau, payments: Payments, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its decision and its first read another one answers, and pays."""

    async def work() -> None:
        at = await calm.waiting(payments)
        other, did = calm.guarded(payments, calm.another()), payments.did
        call = at.call() if named == "by its checkpoint" else {"responses": {at.request: True}}
        faster: list[BaseException | None] = []
        once_admitted(
            at.workflow,
            lambda: faster.append(
                _elsewhere(lambda: other.run(**at.call(response=False), deliberate="meant"))
            ),
            monkeypatch,
        )
        slower = await _ending(lambda: at.workflow.run(**call))
        assert faster == [None]
        assert isinstance(_cause(slower), Superseded)
        assert [each for each in did if "True" in each] == []
        assert _paid(payments) == ["pays 42 to ann: False"]
        assert calm.worker.verify().ok

    asyncio.run(work())


async def _crashed(calm: Bureau, payments: Payments, did: Noted) -> Waiting:
    """A run that died when its response had been delivered: whoever resumes it runs it."""
    at = await calm.waiting(payments)

    def die() -> None:
        raise MemoryError

    did.then("heard True", die)
    with pytest.raises(MemoryError):
        await at.workflow.run(responses={at.request: True})
    payments.did.clear()
    return at._replace(checkpoint=at.workflow._sealpoint_gate.last)


@pytest.mark.usefixtures("unseen_runs")
@pytest.mark.parametrize("what", ["another run", "a pause"])
def test_what_comes_before_the_first_superstep_of_a_run_that_only_resumes_stops_it(
    calm: Bureau, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a run saves nothing before it: it is asked whether it may still go on."""

    async def work() -> None:
        did = Noted()
        payments = Payments(did=did)
        at = await _crashed(calm, payments, did)
        slow, fast = (calm.guarded(payments, calm.another()) for _ in range(2))
        restore = slow._runner.restore_from_checkpoint

        async def restored(*given: Any) -> None:
            await restore(*given)
            if what == "a pause":
                calm.operator().thread(at.thread).pause("look at it")
            else:
                assert _elsewhere(lambda: fast.run(checkpoint_id=at.checkpoint)) is None

        monkeypatch.setattr(slow._runner, "restore_from_checkpoint", restored)
        ended = await _ending(lambda: slow.run(checkpoint_id=at.checkpoint))
        if what == "a pause":
            assert isinstance(ended, Paused)
            assert payments.did == []
            calm.operator().thread(at.thread).unpause("looked at it")
        else:
            assert isinstance(ended, Superseded)
            assert len(_paid(payments)) == 1

    asyncio.run(work())


@pytest.mark.usefixtures("unseen_runs")
def test_an_overtaken_run_stops_at_its_next_save(calm: Bureau) -> None:
    """Somebody takes over on purpose while an executor works; what it sent is not delivered."""

    async def work() -> None:
        did = Noted()
        payments = Payments(did=did)
        at = await calm.waiting(payments)
        other, storage = None, calm.another()
        taken: list[BaseException | None] = []

        def take_over() -> None:
            async def newest() -> Any:
                other = calm.guarded(payments, storage)
                thread = storage.store.thread(at.thread)
                return await other.run(
                    checkpoint_id=next(iter(thread.history())).id, deliberate="it hangs"
                )

            taken.append(_elsewhere(newest))

        did.then("heard True", take_over)
        slower = await _ending(lambda: at.workflow.run(responses={at.request: True}))
        assert other is None
        assert taken == [None]
        assert isinstance(slower, Superseded)
        assert _paid(payments) == ["pays 42 to ann: True"]
        assert calm.worker.verify().ok

    asyncio.run(work())


# ---------------------------------------------------------------------- one workflow


_AT_ONCE: dict[str, Callable[[Waiting], Any]] = {
    "run": lambda at: at.workflow.run("bob"),
    "answer": lambda at: at.workflow.run(responses={at.request: False}),
    "cancel": lambda at: at.workflow.cancel_pending_requests([at.request]),
}


@pytest.mark.parametrize("loop", ["the same loop", "another loop"])
@pytest.mark.parametrize("call", _AT_ONCE.values(), ids=_AT_ONCE)
def test_a_workflow_has_one_run_at_a_time(
    calm: Bureau, call: Callable[[Waiting], Any], loop: str
) -> None:
    """A second call would share its memory, and its saves would be taken for the other's."""

    async def work() -> None:
        did = Noted()
        payments = Payments(did=did)
        at = await calm.waiting(payments)
        refused: list[BaseException | None] = []
        if loop == "another loop":
            did.then("heard True", lambda: refused.append(_elsewhere(lambda: call(at))))
            await at.workflow.run(responses={at.request: True})
        else:
            stream = at.workflow.run(responses={at.request: True}, stream=True)
            async for _ in stream:
                if not refused:
                    refused.append(await _ending(lambda: call(at)))
        assert isinstance(refused[0], UsageError | WorkflowException)
        assert _paid(payments) == ["pays 42 to ann: True"]
        assert calm.worker.verify().ok

    asyncio.run(work())


def test_a_stream_that_was_dropped_does_not_lock_the_workflow(calm: Bureau) -> None:
    """Its run has ended when the next one is judged."""

    async def work() -> None:
        payments = Payments()
        at = await calm.waiting(payments)
        async for event in at.workflow.run(responses={at.request: True}, stream=True):
            if event.type == "superstep_started":
                break
        newest = next(iter(calm.worker.thread(at.thread).history()))
        result = await at.workflow.run(checkpoint_id=newest.id, deliberate="nothing was paid")
        assert result.get_outputs() == ["paid 42 to ann: True"]

    asyncio.run(work())


def test_a_reason_is_not_that_of_another_call(calm: Bureau) -> None:
    """Nor is it left behind: an older checkpoint is meant by the call that says so."""

    async def work() -> None:
        payments = Payments()
        at = await calm.waiting(payments)
        await at.workflow.run(responses={at.request: True})
        again = calm.guarded(payments, calm.another())
        meant = again.run(**at.call(), deliberate="it was lost", stream=True)
        del meant
        with pytest.raises(ResumeRefused, match="not the newest"):
            await again.run(**at.call())

    asyncio.run(work())
