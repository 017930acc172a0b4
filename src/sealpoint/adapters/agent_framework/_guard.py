# SPDX-License-Identifier: Apache-2.0
"""`guard`: a workflow whose every run goes through the gate.

The storage sees what is saved and loaded, never with what a run is about to go on. The guarded
workflow sees both: it binds the responses, the input and what else a call brings to the decision,
has that recorded, and gives the run a storage of its own. What was decided about is what runs: a
run that goes on in the same process begins from the checkpoint too, and not from what lies in
memory.

An operator's pause is told by the save after each superstep: it is kept, and the run ends there.
"""

import asyncio
import copy
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from agent_framework import (
    FunctionalWorkflow,
    Workflow,
    WorkflowCheckpointException,
    WorkflowEvent,
    WorkflowExecutor,
)

from sealpoint.adapters._function_code import Memory
from sealpoint.adapters.agent_framework._storage import (
    RunStopped,
    RunStorage,
    SealedCheckpointStorage,
)
from sealpoint.adapters.agent_framework._world import world_again, world_of
from sealpoint.adapters.face import GuardedRuns, entered_off_loop, to_display_json
from sealpoint.errors import SealpointError, UsageError
from sealpoint.world import World

_W = TypeVar("_W", Workflow, FunctionalWorkflow)
_BROUGHT = ("function_invocation_kwargs", "client_kwargs")
"""What else a call may bring along, beside tools, that steers a run."""


def guard(
    workflow: _W,
    storage: SealedCheckpointStorage,
    *,
    actor: str,
    world: World | Mapping[str, Any] | None = None,
) -> _W:
    """The same workflow, behind the gate.

    It has the whole interface of the workflow, and `run` takes `deliberate="why"` beside what it
    takes already. A run, a response or an older checkpoint that the policy does not simply allow
    raises `NeedsApproval` or `ResumeRefused` before any executor runs; after the approval the same
    call passes once.

    Args:
        workflow: A workflow of the builder, or a functional one.
        storage: Where its checkpoints are kept; it takes the place of the workflow's own.
        actor: Who goes on, for the record: a claim, unlike the identity that the store was opened
            with.
        world: What the workflow is able to do; without it, what `world_of(workflow)` finds at each
            run.

    Raises:
        UsageError: There is no actor, it is no workflow, the storage is another one, or a workflow
            inside of it is guarded itself.
    """
    if not isinstance(workflow, Workflow | FunctionalWorkflow):
        raise UsageError(
            f"guard: expected a workflow, found {type(workflow).__name__}",
            hint="Build it first: WorkflowBuilder(...).build(), or .build() of a @workflow.",
        )
    if not isinstance(storage, SealedCheckpointStorage):
        raise UsageError(
            f"guard: expected a SealedCheckpointStorage, found {type(storage).__name__}"
        )
    if not actor.strip():
        raise UsageError("guard: actor= is empty; name who goes on with the run")
    _require_unguarded_parts(workflow)
    gate = WorkflowGate(storage, actor, World.of(world))
    gate.world(workflow)  # what cannot be told is said now, and not in the first run
    found = copy.copy(workflow)
    found.__class__ = _class_of(cast("Any", type(workflow)))
    found.__dict__["_sealpoint_gate"] = gate
    found.__dict__["_sealpoint_deliberate"] = None
    return found


def declared_world(workflow: Any) -> World:
    """What the gate is told that a workflow is able to do: that of its guard, if it has one.

    Raises:
        UsageError: It is no workflow.
        WorldInvalid: It says more than a world can hold.
    """
    if isinstance(workflow, _GuardedWorkflow):
        return workflow.sealpoint_world()
    return world_of(workflow)


def _require_unguarded_parts(workflow: Any) -> None:
    for executor in getattr(workflow, "executors", {}).values():
        if isinstance(executor, WorkflowExecutor):
            if isinstance(executor.workflow, _GuardedWorkflow):
                raise UsageError(
                    f"guard: the workflow inside of executor {executor.id!r} is guarded itself",
                    hint="Guard the outermost workflow alone: what lies inside runs in its name.",
                )
            _require_unguarded_parts(executor.workflow)


class WorkflowCall(NamedTuple):
    """A call as the gate has to judge it."""

    thread: str
    checkpoint: str | None
    """What it goes on from; None: it begins."""
    world: World
    answer: Any
    """What it answers, or brings along; None: nothing that is always bound."""
    offer: Callable[[], Any] | None
    """What it brings along that is bound where people are asked."""
    would_run: Callable[[], bool] | None
    """Whether anything would run; None: surely."""
    deliberate: str | None


class WorkflowGate:
    """Decides about the runs of one guarded workflow."""

    def __init__(self, storage: SealedCheckpointStorage, actor: str, world: World | None) -> None:
        self.storage = storage
        self.last: str | None = None
        """The checkpoint that the workflow of this process stands on."""
        self._actor = actor
        self._world = world
        """What the caller declared; without it, the world of the workflow that is about to run."""
        self._memory: Memory | None = None
        self._runs = GuardedRuns.of(storage.store)

    def world(self, workflow: Any, tools: Any = None) -> World:
        """What a run of a workflow is able to do, now.

        Args:
            workflow: The workflow.
            tools: Tools that the call brings along.

        Raises:
            WorldInvalid: It says more than a world can hold.
        """
        if self._world is not None and tools is None:
            return self._world
        world, self._memory = world_again(workflow, self._memory, tools=tools)
        return world

    def call(
        self,
        workflow: Any,
        named: Mapping[str, Any],
        *,
        message: Any = None,
        responses: Mapping[str, Any] | None = None,
        cancelled: Collection[str] = (),
        deliberate: str | None = None,
    ) -> WorkflowCall:
        """Read a call of a workflow.

        Raises:
            UsageError: It brings a storage of its own, or responses that nothing waits for.
            UnknownCheckpoint: There is no such checkpoint.
            TypeNotAllowed: It brings something that cannot be saved.
        """
        self._require_own_storage(named.get("checkpoint_storage"))
        answers = {*(responses or ()), *cancelled}
        checkpoint = self._checkpoint_of(workflow, named, answers=bool(answers))
        thread = self._thread_of(workflow, checkpoint, answers)
        answer = {
            name: self._shown(named[name]) for name in _BROUGHT if named.get(name) is not None
        }
        if responses:
            answer["responses"] = self._shown(dict(responses))
        if cancelled:
            answer["cancel"] = sorted(cancelled)
        brings = answers or message is not None or isinstance(workflow, FunctionalWorkflow)
        return WorkflowCall(
            thread,
            checkpoint,
            self.world(workflow, named.get("tools")),
            answer or None,
            None if message is None else lambda: {**answer, "input": self._shown(message)},
            None if brings else lambda: self._has_messages(thread, checkpoint),
            deliberate,
        )

    def _checkpoint_of(
        self, workflow: Any, named: Mapping[str, Any], *, answers: bool
    ) -> str | None:
        """What a call goes on from: what it names, or what the workflow of this process stands on.

        An input of a functional workflow begins it anew.
        """
        found: str | None = named.get("checkpoint_id")
        goes_on = answers or isinstance(workflow, Workflow)
        return self.last if found is None and goes_on else found

    def _thread_of(self, workflow: Any, checkpoint: str | None, answers: set[str]) -> str:
        places = self.storage.places
        known = None if checkpoint is None else places.find(checkpoint)
        if answers and (known is None or known.asks.isdisjoint(answers)):
            raise UsageError(
                "workflow: none of the responses is to a request that waits for one",
                hint="Answer the requests of the checkpoint that the run goes on from: pass it as "
                "checkpoint_id=, or run the workflow until it asks.",
            )
        return (
            places.new_thread(workflow.name, str(uuid.uuid4())) if known is None else known.thread
        )

    def _has_messages(self, thread: str, checkpoint: str | None) -> bool:
        """Whether messages are under way, so that an executor would run."""
        found = self.storage.store.thread(thread).adapter.snapshot("", checkpoint)
        return found is not None and bool(found.state["messages"])

    def _require_own_storage(self, given: Any) -> None:
        if given is not None and given is not self.storage:
            raise UsageError(
                f"guarded workflow: it was given another storage, {type(given).__name__}, than the "
                "one that it was guarded with",
                hint="Leave checkpoint_storage= out, or guard the workflow with that storage.",
            )

    def _brought(self, named: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._shown(named[name]) for name in _BROUGHT if named.get(name) is not None}

    def _shown(self, value: Any) -> Any:
        return to_display_json(value, self.storage.store.registry)

    @asynccontextmanager
    async def let_in(
        self, read: Callable[[], WorkflowCall]
    ) -> AsyncIterator[tuple[WorkflowCall, RunStorage]]:
        """Have a call decided and recorded, and give its run a storage for as long as it takes.

        Raises:
            NeedsApproval, ResumeRefused, Paused: Before anything runs.
            SealpointError: Why the run was stopped.
        """
        call = await asyncio.to_thread(_framework_error, read)
        turn = self._runs.turn(call.thread)
        async with entered_off_loop(turn, lambda: self._admitted(call)) as run:
            storage = RunStorage(self.storage, call.thread, run)
            try:
                yield call, storage
            except RunStopped as stopped:
                raise stopped.error from stopped.error.__cause__
            finally:
                self.last = storage.last or call.checkpoint or self.last

    def _admitted(self, call: WorkflowCall) -> Any:
        return self._runs.admit(
            call.thread,
            world=call.world,
            ref=call.checkpoint,
            answer=call.answer,
            actor=self._actor,
            deliberate=call.deliberate,
            offer=call.offer,
            would_run=call.would_run,
        )


def _framework_error(read: Callable[[], WorkflowCall]) -> WorkflowCall:
    """Read a call; a checkpoint that is not there is told as the framework tells it."""
    try:
        return read()
    except UsageError:
        raise
    except SealpointError as error:
        raise WorkflowCheckpointException(str(error)) from error


class _GuardedWorkflow:
    """A workflow behind the gate; mixed into the class of the workflow that it was."""

    _sealpoint_gate: WorkflowGate
    _sealpoint_deliberate: str | None

    def sealpoint_world(self) -> World:
        """What the gate is told that a run is able to do."""
        return self._sealpoint_gate.world(self)

    def run(self, message: Any = None, *, deliberate: str | None = None, **named: Any) -> Any:
        # The framework makes the run before it returns, and with it the call below.
        self._sealpoint_deliberate = deliberate
        try:
            return super().run(message, **named)  # type: ignore[misc]
        finally:
            self._sealpoint_deliberate = None

    def _run_core(self, message: Any = None, **named: Any) -> AsyncIterator[WorkflowEvent[Any]]:
        return self._run_gated(message, self._sealpoint_deliberate, named)

    async def _run_gated(
        self, message: Any, deliberate: str | None, named: dict[str, Any]
    ) -> AsyncIterator[WorkflowEvent[Any]]:
        gate, responses = self._sealpoint_gate, named.get("responses")

        def read() -> WorkflowCall:
            return gate.call(
                self, named, message=message, responses=responses, deliberate=deliberate
            )

        with _released(cast("Any", self)):
            async with gate.let_in(read) as (call, storage):
                own = {**named, "checkpoint_storage": storage}
                if isinstance(self, FunctionalWorkflow):
                    own["checkpoint_id"] = call.checkpoint  # it begins anew by itself
                elif call.checkpoint != named.get("checkpoint_id"):
                    await _restore(cast("Any", self), call.checkpoint, storage)
                stream: Any = super()._run_core(message, **own)  # type: ignore[misc]
                async with aclosing(stream) as events:
                    async for event in _watched(events, storage):
                        yield event

    async def cancel_pending_requests(
        self, request_ids: Collection[str], *, deliberate: str | None = None, **named: Any
    ) -> Any:
        gate = self._sealpoint_gate

        def read() -> WorkflowCall:
            return gate.call(self, named, cancelled=set(request_ids), deliberate=deliberate)

        async with gate.let_in(read) as (call, storage):
            own = {**named, "checkpoint_storage": storage, "checkpoint_id": call.checkpoint}
            return await super().cancel_pending_requests(request_ids, **own)  # type: ignore[misc]


@contextmanager
def _released(workflow: Any) -> Iterator[None]:
    """Let another run begin after this one, also if it was refused before the framework began."""
    active = getattr(workflow, "_active_run", None)
    try:
        yield
    finally:
        if isinstance(workflow, FunctionalWorkflow):
            workflow._release_run_guard()  # noqa: SLF001
        elif workflow._active_run is active:  # noqa: SLF001
            workflow._active_run = None  # noqa: SLF001


async def _restore(workflow: Any, checkpoint: str | None, storage: RunStorage) -> None:
    """Put a workflow of this process back to the checkpoint that was decided about."""
    runner = workflow._runner  # noqa: SLF001
    runner.context.set_runtime_checkpoint_storage(storage)
    await runner.restore_from_checkpoint(checkpoint)
    await runner.context.drain_events()  # who goes on in the same process knows of the requests


async def _watched(
    events: AsyncIterator[WorkflowEvent[Any]], storage: RunStorage
) -> AsyncIterator[WorkflowEvent[Any]]:
    """The events of a run, which ends where the framework leaves a checkpoint out.

    It makes one after each superstep, and drops what goes wrong before a storage is asked.

    Raises:
        UsageError: A superstep has ended without a checkpoint.
    """
    saves = 0
    async for event in events:
        if event.type == "superstep_started":
            saves = storage.saves
        elif event.type == "superstep_completed" and saves == storage.saves:
            raise UsageError(
                f"workflow: the framework made no checkpoint after superstep {event.iteration}",
                hint="Its log says which executor's on_checkpoint_save failed: let that return a "
                "dict with text keys.",
            )
        yield event


@cache
def _class_of(base: type) -> type:
    """The class of guarded workflows that are otherwise of a class."""
    return type(f"Guarded{base.__name__}", (_GuardedWorkflow, base), {})
