# SPDX-License-Identifier: Apache-2.0
"""What is judged is what runs, whatever lies in memory and whoever has another hold of it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    RunContext,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowExecutor,
    WorkflowInvocationKwargs,
    workflow,
)

from sealpoint.errors import NeedsApproval, ResumeRefused, RolledBack, SealpointError, UsageError
from sealpoint_agent_framework import SealedCheckpointStorage, guard
from tests.adapters.agent_framework.payments import Payment, Payments, asked_of
from tests.adapters.agent_framework.stores import sealed
from tests.attacks.agent_framework.bureau import Bureau, Waiting


def _reach_into(at: Waiting) -> None:
    """Change everything that a workflow of this process remembers: 99999 to mallory."""
    made = at.workflow
    if not hasattr(made, "_runner"):
        made._last_message = "mallory"
        made._last_step_cache = dict.fromkeys(made._last_step_cache, "mallory")
        made._last_pending_request_ids = {at.request, "another"}
        return
    inner = [
        each.workflow for each in made.executors.values() if isinstance(each, WorkflowExecutor)
    ]
    for each in (made, *inner):
        pending = each._runner_context._pending_request_info_events
        assert pending, "there was something to change"
        for event in pending.values():
            event.data = Payment(99_999, "mallory")
        each._runner.state.set("limit", 99_999)
        each._runner.state.commit()


@pytest.mark.parametrize("named", ["by its checkpoint", "in the same process"])
def test_what_was_changed_in_memory_after_the_approval_does_not_run(
    office: Bureau, payments: Payments, named: str
) -> None:
    """Approved for 42; the live workflow says 99999 by the time of the call; 42 is paid."""

    async def work() -> None:
        at = await office.waiting(payments)
        call = at.call() if named == "by its checkpoint" else {"responses": {at.request: True}}
        office.approve(await office.request_for(at.workflow.run(**call)))
        _reach_into(at)
        result = await at.workflow.run(**call)
        assert result.get_outputs() == ["paid 42 to ann: True"]
        latest = await at.storage.load(at.workflow._sealpoint_gate.last)
        assert "limit" not in latest.state

    asyncio.run(work())


def test_the_control_pays_what_lies_in_memory() -> None:
    """The framework goes on from memory: with its own storage the change is paid."""

    async def work() -> None:
        payments = Payments()
        made = payments.build(checkpoint_storage=InMemoryCheckpointStorage())
        request = asked_of(await made.run("ann"))
        for event in made._runner_context._pending_request_info_events.values():
            event.data = Payment(99_999, "mallory")
        result = await made.run(responses={request: True})
        assert result.get_outputs() == ["paid 99999 to mallory: True"]

    asyncio.run(work())


@pytest.mark.parametrize("shape", ["graph", "nested"])
def test_what_a_call_brings_is_not_changed_while_it_is_judged(
    office: Bureau, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody changes the caller's objects after the decision, and before the run."""

    async def work() -> None:
        payments = Payments(shape)
        at = await office.waiting(payments)
        responses: dict[str, Any] = {at.request: True}
        arguments = {"limit": [42]}
        call = {"responses": responses, "function_invocation_kwargs": arguments}
        office.approve(await office.request_for(at.workflow.run(**call)))
        gate = at.workflow._sealpoint_gate
        admitted = gate._admitted

        def changed(read: Any) -> Any:
            found = admitted(read)
            responses[at.request] = False
            arguments["limit"][0] = 99_999
            return found

        monkeypatch.setattr(gate, "_admitted", changed)
        result = await at.workflow.run(**call)
        assert responses == {at.request: False}
        assert result.get_outputs() == ["paid 42 to ann: True"]
        latest = await at.storage.load(gate.last)
        assert "99999" not in repr(latest.state)
        assert "[42]" in repr(latest.state)

    asyncio.run(work())


def test_arguments_for_executors_are_bound_too(office: Bureau) -> None:
    """The framework's own wrapper for them is no way around."""

    async def work() -> None:
        at = await office.waiting(Payments())
        found = set()
        for limit in (42, 99_999):
            brought = WorkflowInvocationKwargs(executor_kwargs={"bank": {"limit": limit}})
            call = at.call(function_invocation_kwargs=brought)
            found.add((await office.request_for(at.workflow.run(**call))).id)
        assert len(found) == 2

    asyncio.run(work())


# ---------------------------------------------------------------------- another hold of it


def test_no_unguarded_workflow_is_left(office: Bureau, payments: Payments) -> None:
    """The object that was given to `guard` is the guarded one."""

    async def work() -> None:
        built = payments.build()
        guarded = guard(built, office.storage, actor="dev")
        request = asked_of(await guarded.run("ann"))
        payments.did.clear()
        with pytest.raises(NeedsApproval):
            await built.run(responses={request: True})
        assert built is guarded
        assert payments.did == []

    asyncio.run(work())


def test_a_workflow_has_one_guard(office: Bureau, payments: Payments) -> None:
    """A second one would begin a thread with what the first has in memory."""
    built = payments.build()
    guard(built, office.storage, actor="dev")
    with pytest.raises(UsageError, match="guarded already"):
        guard(built, office.storage, actor="somebody else")


@pytest.mark.parametrize("shape", ["graph", "nested"])
def test_a_workflow_that_ran_past_the_gate_is_not_guarded(office: Bureau, shape: str) -> None:
    """What it asks for was never judged, and would be part of the first checkpoint."""

    async def work() -> None:
        payments = Payments(shape)
        built = payments.build()
        parts = [each for each in built.executors.values() if isinstance(each, WorkflowExecutor)]
        await (parts[0].workflow if parts else built).run("ann")
        with pytest.raises(UsageError, match="has run already"):
            guard(built, office.storage, actor="dev")

    asyncio.run(work())


def test_a_workflow_inside_that_is_guarded_later_stops_the_outer_one(office: Bureau) -> None:
    """Two gates would each decide about a part of what runs."""

    async def work() -> None:
        payments = Payments("nested")
        outer = office.guarded(payments)
        (inner,) = (e.workflow for e in outer.executors.values() if isinstance(e, WorkflowExecutor))
        guard(inner, office.storage, actor="dev")
        with pytest.raises(UsageError, match="is guarded itself"):
            await outer.run("ann")
        assert payments.did == []

    asyncio.run(work())


def test_the_first_run_begins_with_nothing(calm: Bureau) -> None:
    """Messages, state and requests that somebody put into a new workflow do not run."""

    async def work() -> None:
        payments = Payments()
        at = await calm.waiting(payments)
        events = await at.workflow._runner_context.get_pending_request_info_events()
        fresh = calm.guarded(payments)
        for event in events.values():
            await fresh._runner_context.add_request_info_event(event)
        fresh._runner.state.set("limit", 99_999)
        second = asked_of(await fresh.run("bob"))
        saved = await calm.storage.load(fresh._sealpoint_gate.last)
        assert list(saved.pending_request_info_events) == [second]
        assert "limit" not in saved.state
        with pytest.raises(UsageError, match="none of the responses"):
            await fresh.run(responses={at.request: True})

    asyncio.run(work())


def test_a_run_whose_first_save_failed_can_be_begun_again(
    calm: Bureau, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it left in memory is not gone on from."""

    async def work() -> None:
        payments = Payments()
        made = calm.guarded(payments)
        with monkeypatch.context() as broken:
            broken.setattr(calm.storage, "_write", _unavailable)
            with pytest.raises(SealpointError):
                await made.run("mallory")
        asked_of(await made.run("ann"))
        assert payments.did == ["looks at ann"]

    asyncio.run(work())


def _unavailable(*_: Any) -> Any:
    raise ResumeRefused("no", reasons=("no",))


def test_a_new_process_goes_on_from_the_newest_of_its_thread(calm: Bureau) -> None:
    """What is judged is the newest checkpoint, so that is what an input comes on top of."""

    async def work() -> None:
        payments = Payments()
        first = asked_of(
            await calm.guarded(payments, sealed(calm.worker, thread="july")).run("ann")
        )
        again = calm.guarded(payments, sealed(calm.process(), thread="july"))
        second = asked_of(await again.run("bob"))
        saved = await again._sealpoint_gate.storage.load(again._sealpoint_gate.last)
        assert set(saved.pending_request_info_events) == {first, second}

    asyncio.run(work())


# ---------------------------------------------------------------------- another storage


def test_a_storage_of_the_call_is_never_read(office: Bureau, tmp_path: Path) -> None:
    """Neither the framework's, nor one that wraps ours, nor another of ours."""

    async def work() -> None:
        payments = Payments()
        at = await office.waiting(payments)
        others: tuple[Any, ...] = (
            FileCheckpointStorage(tmp_path),
            _Wrapper(at.storage),
            sealed(office.worker),
        )
        for other in others:
            with pytest.raises(UsageError, match="another storage"):
                await at.workflow.run(**at.call(), checkpoint_storage=other)
            with pytest.raises(UsageError, match="another storage"):
                await at.workflow.cancel_pending_requests([at.request], checkpoint_storage=other)
        assert payments.did == []

    asyncio.run(work())


class _Wrapper:
    """A storage around another that says something else."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Lying(SealedCheckpointStorage):
    """A storage of the application, derived from ours, that changes what it loads."""

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        found = await super().load(checkpoint_id)
        for event in found.pending_request_info_events.values():
            event.data = Payment(99_999, "mallory")
        return found


@pytest.mark.parametrize("named", ["by its checkpoint", "in the same process"])
def test_a_storage_that_lies_about_what_it_loads_changes_nothing_that_runs(
    calm: Bureau, payments: Payments, named: str
) -> None:
    """A guarded run reads what was judged, and not by methods that somebody may override."""

    async def work() -> None:
        at = await calm.waiting(payments, _Lying(calm.worker))
        call = at.call() if named == "by its checkpoint" else {"responses": {at.request: True}}
        result = await at.workflow.run(**call)
        assert result.get_outputs() == ["paid 42 to ann: True"]

    asyncio.run(work())


def test_the_checkpoint_of_a_pause_is_found_in_the_own_storage(
    calm: Bureau, tmp_path: Path
) -> None:
    """A host asks the workflow where it waits; what it was built with is not asked."""

    async def work() -> None:
        stock = FileCheckpointStorage(tmp_path)
        made = calm.guarded(Payments(), checkpoint_storage=stock)
        request = asked_of(await made.run("ann"))
        found = await made.resolve_pause_checkpoint_id([request])
        assert found == made._sealpoint_gate.last
        assert await made.resolve_pause_checkpoint_id(["another"]) is None

    asyncio.run(work())
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- another workflow


@pytest.mark.parametrize("way", ["guarded", "bare"])
@pytest.mark.parametrize("shape", ["graph", "nested", "function"])
def test_a_checkpoint_of_another_workflow_is_refused(calm: Bureau, shape: str, way: str) -> None:
    """Also if it is built alike, which is all that the framework compares."""

    async def work() -> None:
        payments = Payments(shape)
        at = await calm.waiting(payments)
        other = payments.build(name="refunds")
        if way == "guarded":
            with pytest.raises(UsageError, match="is of workflow 'payments'"):
                await guard(other, at.storage, actor="dev").run(**at.call())
        else:
            with pytest.raises(BaseException, match="of workflow 'payments'"):
                await other.run(**at.call(), checkpoint_storage=at.storage)
        assert not [each for each in payments.did if "pays" in each]

    asyncio.run(work())


def test_workflows_without_a_name_go_on_in_a_new_process(calm: Bureau) -> None:
    """The framework gives them another name each time, so it tells nothing."""

    async def work() -> None:
        payments = Payments()
        storage = sealed(calm.worker)
        first = guard(payments.build(name=""), storage, actor="dev")
        request = asked_of(await first.run("ann"))
        again = guard(payments.build(name=""), sealed(calm.process()), actor="dev")
        assert again.name != first.name
        result = await again.run(
            checkpoint_id=first._sealpoint_gate.last,
            responses={request: True},
        )
        assert result.get_outputs() == ["paid 42 to ann: True"]

    asyncio.run(work())


@pytest.mark.parametrize("name", ["evil/{}", "payments/{}", "zzz"])
def test_a_checkpoint_that_another_writer_saved_under_the_same_id_is_not_taken(
    calm: Bureau, name: str
) -> None:
    """Neither read nor gone on from, whatever its thread is called; who owns neither is told."""

    async def work() -> None:
        payments = Payments()
        at = await calm.waiting(payments)
        forged = await at.storage.load(at.checkpoint)
        forged.state["role"] = "admin"
        thread = name.format(at.checkpoint)
        with calm.process("clerk") as store:
            await sealed(store, thread=thread).save(forged)
        storage = calm.another()
        assert "role" not in (await storage.load(at.checkpoint)).state
        assert await storage.thread_of(at.checkpoint) == at.thread
        with calm.process("operator") as store:
            with pytest.raises(WorkflowCheckpointException, match="2 threads of others"):
                await sealed(store).load(at.checkpoint)
            found = await sealed(store, thread=at.thread).load(at.checkpoint)
            assert "role" not in found.state
        result = await calm.guarded(payments, calm.another()).run(**at.call())
        assert result.get_outputs() == ["paid 42 to ann: True"]

    asyncio.run(work())


@pytest.mark.parametrize("damage", ["a junk row", "every row gone"])
def test_what_a_stranger_handed_over_does_not_stand_in_for_what_cannot_be_read(
    tmp_path: Path, damage: str
) -> None:
    """A clerk gives the worker a copy of its own, and makes the paused original unreadable."""
    office = Bureau(tmp_path / "home", policy="dev")

    async def work() -> None:
        payments = Payments()
        at = await office.waiting(payments)
        office.operator().thread(at.thread).pause(reason="suspicious")
        forged = await at.storage.load(at.checkpoint)
        forged.state["role"] = "admin"
        clerk = office.process("clerk")
        await sealed(clerk, thread="payments/zzz").save(forged)
        clerk.thread("payments/zzz").handoff(to="worker", reason="yours")
        thread = bytes.fromhex(office.worker.thread(at.thread).id)
        rows = office.editor.rows(thread)
        junk = {} if damage == "every row gone" else {**rows, max(rows) + 1: rows[max(rows)]}
        office.editor.put_rows(thread, junk)
        for storage in (office.another(), sealed(office.process("operator"))):
            with pytest.raises(WorkflowCheckpointException):
                await storage.load(at.checkpoint)
        with pytest.raises((SealpointError, WorkflowCheckpointException)):
            await office.guarded(payments, office.another()).run(**at.call())
        assert payments.did == []

    asyncio.run(work())
    office.close()


def test_what_a_stranger_handed_over_is_not_the_latest(tmp_path: Path) -> None:
    """However late it says that it is; a reader, who owns nothing, is given the latest of all."""
    office = Bureau(tmp_path / "home", policy="dev")

    async def work() -> None:
        payments = Payments()
        at = await office.waiting(payments)
        forged = await at.storage.load(at.checkpoint)
        forged.checkpoint_id, forged.timestamp = "planted", "2999-01-01T00:00:00+00:00"
        clerk = office.process("clerk")
        await sealed(clerk, thread="payments/zzz").save(forged)
        for _ in range(2):
            latest = await office.another().get_latest(workflow_name="payments")
            assert latest is not None
            assert latest.checkpoint_id == at.checkpoint
            if office.worker.thread("payments/zzz").standing().owner == "clerk":
                clerk.thread("payments/zzz").handoff(to="worker", reason="yours")
        reader = sealed(office.process(read_only=True))
        planted = await reader.get_latest(workflow_name="payments")
        assert planted is not None
        assert planted.checkpoint_id == "planted"

    asyncio.run(work())
    office.close()


# ---------------------------------------------------------------------- answers of before


@pytest.mark.filterwarnings("ignore:.FUNCTIONAL_WORKFLOWS")
def test_a_function_is_not_given_another_answer_to_what_was_answered(calm: Bureau) -> None:
    """It runs anew with all responses so far: the second question does not reopen the first."""
    did: list[str] = []

    def build() -> Any:
        @workflow(name="twice")
        async def twice(to: str, ctx: RunContext) -> str:
            pay = await ctx.request_info(Payment(42, to), bool)
            sure = await ctx.request_info("sure?", bool)
            did.append(f"pays {to}: {pay}, {sure}")
            return did[-1]

        return guard(twice.build(), sealed(calm.process()), actor="dev")

    async def work() -> None:
        made = build()
        first = asked_of(await made.run("ann"))
        second = asked_of(await made.run(responses={first: False}))
        where = made._sealpoint_gate.last
        for again in (made, build()):
            with pytest.raises(UsageError, match="was answered otherwise before"):
                await again.run(checkpoint_id=where, responses={first: True, second: True})
        assert did == []
        result = await build().run(checkpoint_id=where, responses={first: False, second: True})
        assert result.get_outputs() == ["pays ann: False, True"]

    asyncio.run(work())


# ---------------------------------------------------------------------- a store that went back


def test_a_warm_workflow_does_not_go_on_with_a_store_that_was_rolled_back(
    tmp_path: Path,
) -> None:
    """The process remembers where it stands; the store is older than that."""

    async def work() -> None:
        payments = Payments()
        team = Bureau(tmp_path / "home", policy="solo")
        at = await team.waiting(payments)
        id_ = bytes.fromhex(team.worker.thread(at.thread).id)
        older = team.editor.rows(id_)
        await at.workflow.run(responses={at.request: True})
        payments.did.clear()
        team.editor.put_rows(id_, older)
        calls: tuple[Callable[[], Any], ...] = (
            lambda: at.workflow.run("bob"),
            lambda: at.workflow.run(**at.call(response=False)),
            lambda: at.workflow.run(checkpoint_id=at.checkpoint),
        )
        for call in calls:
            with pytest.raises((SealpointError, WorkflowCheckpointException)) as refused:
                await call()
            error = refused.value
            assert isinstance(error, RolledBack) or isinstance(error.__cause__, RolledBack)
        assert payments.did == []
        team.close()

    asyncio.run(work())
