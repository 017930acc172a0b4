# SPDX-License-Identifier: Apache-2.0
"""A guarded workflow is the workflow, and every run of it goes through the gate."""

import asyncio
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpointException,
    WorkflowContext,
    WorkflowExecutor,
    WorkflowRunState,
    handler,
    tool,
)

from sealpoint.adapters.guarded_runs import extra_missing
from sealpoint.errors import (
    Paused,
    ResumeRefused,
    SealpointError,
    TypeNotAllowed,
    UsageError,
)
from sealpoint_agent_framework import SealedCheckpointStorage, guard
from tests.adapters.agent_framework.payments import SHAPES, Payments, asked_of
from tests.adapters.agent_framework.stores import opened, sealed


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[SealedCheckpointStorage]:
    """A storage on a store of one person."""
    with opened("sqlite", tmp_path / "home") as store:
        yield sealed(store)


@pytest.fixture(params=SHAPES)
def payments(request: pytest.FixtureRequest) -> Payments:
    """Workflows of each shape."""
    return Payments(request.param)


def _guarded(payments: Payments, storage: SealedCheckpointStorage, **named: Any) -> Any:
    return guard(payments.build(**named), storage, actor="dev")


def _run(awaitable: Any) -> Any:
    return asyncio.run(awaitable)


async def _ending(awaitable: Any) -> type[BaseException] | None:
    try:
        await awaitable
    except (SealpointError, WorkflowCheckpointException) as error:
        return type(error)
    return None


# ---------------------------------------------------------------------- what it is


def test_it_does_what_the_workflow_does(payments: Payments, storage: Any) -> None:
    """The same events and outputs as with the framework's own storage, in one process."""

    async def events(made: Any, **named: Any) -> list[list[tuple[str, str]]]:
        first = await made.run("ann", include_status_events=True, **named)
        response = {asked_of(first): True}
        then = await made.run(responses=response, include_status_events=True, **named)
        return [[(each.type, repr(each.data)) for each in run] for run in (first, then)]

    async def work() -> None:
        stock = await events(payments.build(), checkpoint_storage=InMemoryCheckpointStorage())
        ours = await events(_guarded(payments, storage))
        assert _without_ids(ours) == _without_ids(stock)
        half = len(payments.did) // 2
        assert payments.did[:half] == payments.did[half:]

    _run(work())


def _without_ids(runs: list[list[tuple[str, str]]]) -> list[list[str]]:
    return [[kind for kind, _ in run] for run in runs]


def test_it_streams(payments: Payments, storage: Any) -> None:
    """Events come one by one, and the final result after them."""

    async def work() -> None:
        made = _guarded(payments, storage)
        stream = made.run("ann", stream=True)
        kinds = [event.type async for event in stream]
        result = await stream.get_final_response()
        assert "request_info" in kinds
        assert result.get_final_state() is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
        again = made.run(responses={asked_of(result): True}, stream=True)
        outputs = [event.data async for event in again if event.type == "output"]
        assert outputs == ["paid 42 to ann: True"]

    _run(work())


def test_another_process_goes_on_from_a_checkpoint(payments: Payments, storage: Any) -> None:
    """With the response, and nothing that was done is done twice."""

    async def work() -> None:
        request = asked_of(await _guarded(payments, storage).run("ann"))
        latest = await storage.get_latest(workflow_name="payments")
        payments.did.clear()
        again = guard(payments.build(), sealed(storage.store), actor="dev")
        result = await again.run(checkpoint_id=latest.checkpoint_id, responses={request: True})
        assert result.get_outputs() == ["paid 42 to ann: True"]
        assert [each for each in payments.did if "looks" in each] == []
        assert storage.store.verify().ok

    _run(work())


def test_it_is_of_the_class_of_the_workflow(storage: Any) -> None:
    """So that a host, or `as_agent`, takes it."""
    made = _guarded(Payments(), storage)
    assert isinstance(made, Workflow)
    assert made.name == "payments"
    assert [each.id for each in made.get_executors_list()] == ["clerk", "bank"]


def test_a_second_input_goes_on_in_the_same_thread(storage: Any) -> None:
    """The state of the first turn is there, and what is judged is what is gone on from."""
    seen: list[Any] = []

    class Counter(Executor):
        @handler
        async def count(self, text: str, ctx: WorkflowContext[None, str]) -> None:
            turns = [*(ctx.get_state("turns") or []), text]
            ctx.set_state("turns", turns)
            seen.append(turns)
            await ctx.yield_output(text)

    async def work() -> None:
        made = WorkflowBuilder(start_executor=Counter(id="counter"), name="turns").build()
        guarded = guard(made, storage, actor="dev")
        for text in ("one", "two", "three"):
            await guarded.run(text)
        assert seen[-1] == ["one", "two", "three"]
        assert len(list(storage.store.threads())) == 1

    _run(work())


def test_an_input_waits_for_the_run_that_is_under_way(storage: Any) -> None:
    """In the process where it broke off and in a new one; the hint lets both of them run."""
    did: list[str] = []

    class Step(Executor):
        @handler
        async def go(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            did.append(f"{self.id} {text}")
            if self.id == "two" and did == ["one x", "two x"]:
                raise ConnectionError
            await ctx.send_message(text)

    def process() -> Any:
        built = WorkflowBuilder(start_executor=(one := Step(id="one")), name="steps")
        own = sealed(storage.store, thread="july")
        return guard(built.add_edge(one, Step(id="two")).build(), own, actor="dev")

    async def work() -> None:
        broken = process()
        with pytest.raises(ConnectionError):
            await broken.run("x")
        again = process()
        named: list[str] = []
        for made in (broken, again):
            with pytest.raises(UsageError, match="'july': a run is under way at") as refused:
                await made.run("y")
            named += re.findall(r"run\(checkpoint_id='([^']+)'\)", refused.value.hint)
        assert did == ["one x", "two x"]
        await again.run(checkpoint_id=named[1])
        await again.run("y")
        assert did[2:] == ["two x", "one y", "two y"]

    _run(work())


def test_a_request_that_is_cancelled_goes_through_the_gate_as_well(storage: Any) -> None:
    """It is recorded as an answer, and the workflow goes on without the request."""

    async def work() -> None:
        made = _guarded(Payments(), storage)
        request = asked_of(await made.run("ann"))
        result = await made.cancel_pending_requests([request])
        assert result.get_final_state() is WorkflowRunState.IDLE
        with pytest.raises(UsageError, match="none of the responses"):
            await made.run(responses={request: True})

    _run(work())


# ---------------------------------------------------------------------- what it refuses


def test_what_it_is_made_with_is_checked(storage: Any) -> None:
    """Before anything runs."""
    built = Payments().build()
    with pytest.raises(UsageError, match="expected a workflow"):
        guard("payments", storage, actor="dev")  # type: ignore[type-var]
    with pytest.raises(UsageError, match="SealedCheckpointStorage"):
        guard(built, InMemoryCheckpointStorage(), actor="dev")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="actor"):
        guard(built, storage, actor=" ")
    inner = guard(built, storage, actor="dev")
    outer = WorkflowBuilder(start_executor=WorkflowExecutor(inner, id="in"), name="out").build()
    with pytest.raises(UsageError, match="guarded itself"):
        guard(outer, storage, actor="dev")


def test_a_consumed_checkpoint_is_not_answered_again(payments: Payments, storage: Any) -> None:
    """Neither with the same response nor with another, in this process or in the next."""

    async def work() -> None:
        made = _guarded(payments, storage)
        request = asked_of(await made.run("ann"))
        consumed = await storage.get_latest(workflow_name="payments")
        await made.run(responses={request: True})
        payments.did.clear()
        for workflow in (made, _guarded(payments, sealed(storage.store))):
            for response in (True, False):
                with pytest.raises(ResumeRefused, match="not the newest"):
                    await workflow.run(
                        checkpoint_id=consumed.checkpoint_id, responses={request: response}
                    )
        assert payments.did == []
        meant = _guarded(payments, storage)
        result = await meant.run(
            checkpoint_id=consumed.checkpoint_id,
            responses={request: False},
            deliberate="the bank lost the first one",
        )
        assert result.get_outputs() == ["paid 42 to ann: False"]

    _run(work())


def test_a_pause_stops_before_the_next_superstep(tmp_path: Path) -> None:
    """What was under way is kept, nothing after it runs, and later the run goes on from there."""
    did: list[str] = []

    async def work() -> None:
        with (
            opened("sqlite", tmp_path / "home") as store,
            opened("sqlite", tmp_path / "home", identity="operator") as office,
        ):
            storage = sealed(store, thread="july")

            class Step(Executor):
                @handler
                async def go(self, text: str, ctx: WorkflowContext[str, str]) -> None:
                    did.append(self.id)
                    if self.id == "two" and did.count("two") == 1:
                        office.thread("july").pause("somebody looks")
                    await ctx.send_message(text)

            def build() -> Workflow:
                one, two, three = (Step(id=name) for name in ("one", "two", "three"))
                built = WorkflowBuilder(start_executor=one, name="steps")
                return built.add_chain([one, two, three]).build()

            guarded = guard(build(), storage, actor="dev")
            with pytest.raises(Paused, match=r"'july'.*what had been done is kept") as paused:
                await guarded.run("x")
            assert "sealpoint unpause 'july' --reason WHY" in paused.value.hint
            assert did == ["one", "two"]
            latest = await storage.get_latest(workflow_name="steps")
            assert latest is not None
            assert await _ending(guarded.run(checkpoint_id=latest.checkpoint_id)) is ResumeRefused
            office.thread("july").unpause("fine")
            await guarded.run(checkpoint_id=latest.checkpoint_id)
            assert did == ["one", "two", "three"]

    _run(work())


def test_a_type_that_cannot_be_saved_ends_the_run(storage: Any) -> None:
    """With the error itself, which is an ordinary one; the framework would have gone on."""

    class Stranger:
        pass

    class Maker(Executor):
        @handler
        async def make(self, text: str, ctx: WorkflowContext[None, str]) -> None:
            ctx.set_state(text, Stranger())
            await ctx.yield_output(text)

    made = WorkflowBuilder(start_executor=Maker(id="maker"), name="makes").build()
    with pytest.raises(TypeNotAllowed, match="Stranger") as refused:
        _run(guard(made, storage, actor="dev").run("x"))
    assert "SealedCheckpointStorage.for_workflow(workflow, store)" in refused.value.hint
    assert storage.refused_saves == 1


def test_what_a_call_brings_and_cannot_be_saved_is_told_as_such(
    payments: Payments, storage: Any
) -> None:
    """An input and a response alike: with the error itself, before anything runs."""

    class Stranger:
        pass

    async def work() -> None:
        made = _guarded(payments, storage)
        with pytest.raises(TypeNotAllowed, match="Stranger") as refused:
            await made.run(Stranger())
        assert "SealedCheckpointStorage.for_workflow(workflow, store)" in refused.value.hint
        request = asked_of(await made.run("ann"))
        payments.did.clear()
        with pytest.raises(TypeNotAllowed, match="Stranger"):
            await made.run(responses={request: Stranger()})
        assert payments.did == []

    _run(work())


def test_a_checkpoint_that_the_framework_leaves_out_ends_the_run(storage: Any) -> None:
    """Because an executor's own state cannot be had: no storage is asked then."""

    class Broken(Executor):
        @handler
        async def work(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            self.broken = True
            await ctx.yield_output(text)

        async def on_checkpoint_save(self) -> dict[str, Any]:
            return {1: 2} if getattr(self, "broken", False) else {}  # type: ignore[dict-item]

    made = WorkflowBuilder(start_executor=Broken(id="broken"), name="breaks").build()
    with pytest.raises(UsageError, match="no checkpoint after superstep 1"):
        _run(guard(made, storage, actor="dev").run("x"))


def test_a_storage_of_the_call_is_refused_unless_it_is_the_own_one(
    storage: Any, tmp_path: Path
) -> None:
    """And the one that the workflow was built with is not asked."""

    async def work() -> None:
        stock = FileCheckpointStorage(tmp_path / "stock")
        made = _guarded(Payments(), storage, checkpoint_storage=stock)
        with pytest.raises(UsageError, match="another storage"):
            await made.run("ann", checkpoint_storage=stock)
        await made.run("ann", checkpoint_storage=storage)
        assert list((tmp_path / "stock").iterdir()) == []
        assert len(await storage.list_checkpoint_ids(workflow_name="payments")) == 2

    _run(work())


def test_tools_that_a_call_brings_along_count_as_tools(storage: Any) -> None:
    """Who resumes with more of them than the checkpoint was saved with has to say why."""

    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return command

    async def work() -> None:
        request = asked_of(await _guarded(Payments(), storage).run("ann"))
        latest = await storage.get_latest(workflow_name="payments")
        wider = _guarded(Payments(), storage)
        call = {"checkpoint_id": latest.checkpoint_id, "responses": {request: True}}
        with pytest.raises(ResumeRefused, match="shell"):
            await wider.run(**call, tools=[shell])
        await wider.run(**call, tools=[shell], deliberate="it may")

    _run(work())


def test_responses_to_nothing_ask_nobody(storage: Any) -> None:
    """Neither on a new workflow nor for a request that is not there."""

    async def work() -> None:
        made = _guarded(Payments(), storage)
        with pytest.raises(UsageError, match="none of the responses"):
            await made.run(responses={"r": True})
        await made.run("ann")
        with pytest.raises(UsageError, match="none of the responses"):
            await made.run(responses={"r": True})

    _run(work())


def test_what_to_install_is_said() -> None:
    """The distribution has another name than the package, and the extra than the adapter."""
    packages = {"agent_framework": "agent-framework-core"}
    missing = ImportError("no", name="agent_framework")
    older = ImportError("no", name="agent_framework.nowhere")

    told = str(extra_missing("sealpoint_agent_framework", packages, missing))
    assert "it needs agent-framework-core, found it missing: pip install " in told
    assert "sealpoint-agent-framework" in told
    told = str(extra_missing("sealpoint_agent_framework", packages, older))
    assert f"found release {version('agent-framework-core')}, which lacks" in told


def test_watched_values_are_part_of_the_world(payments: Payments, storage: Any) -> None:
    """By their names, and not beside a world that is declared."""
    made: Any = guard(payments.build(), storage, actor="dev", watch={"limit": 100})
    other: Any = payments.build()
    unnamed: Any = [100]

    assert made._sealpoint_gate.world(made).leaves()["extra.watch.limit"] == 100
    with pytest.raises(UsageError, match="cannot be combined"):
        guard(other, storage, actor="dev", watch={"limit": 1}, world={"tools": ["pay"]})
    with pytest.raises(UsageError, match="watch="):
        guard(other, storage, actor="dev", watch=unnamed)
