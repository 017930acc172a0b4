# SPDX-License-Identifier: Apache-2.0
"""`guard`: a workflow whose every run goes through the gate.

The storage sees what is saved and loaded, but never the new input of a run. The guarded workflow
sees both: it binds the responses, the input and the other arguments of a call to the decision, has
the decision recorded, and gives the run its own storage. The run that was decided about is the run
that executes: a run that continues in the same process also begins from the checkpoint, and not
from memory, and the arguments of a call are copied before they are judged.

`guard` changes the workflow itself, so that no unguarded one is left, and a workflow has one run at
a time, for all callers together. An operator's pause takes effect at the save after each superstep:
the save succeeds, and the run ends there.
"""

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar, cast

from agent_framework import (
    FunctionalWorkflow,
    Workflow,
    WorkflowCheckpoint,
    WorkflowEvent,
    WorkflowExecutor,
)

from sealpoint.adapters.guarded_runs import GuardedRuns, entered_off_loop, to_display_json
from sealpoint.adapters.object_search import Memory
from sealpoint.adapters.world_parts import watched_values
from sealpoint.errors import EncodeError, ResumeRefused, SealpointError, UsageError
from sealpoint.world import JSON, World
from sealpoint_agent_framework._storage import (
    Known,
    RestingStorage,
    RunStopped,
    RunStorage,
    SealedCheckpointStorage,
    checkpoint_of,
    framework_error,
    rephrase,
    require_same_workflow,
)
from sealpoint_agent_framework._unsealed_inputs import check_names, require_accepted
from sealpoint_agent_framework._world import world_again, world_of

_W = TypeVar("_W", Workflow, FunctionalWorkflow)
_NOT_BOUND = ("responses", "checkpoint_id", "checkpoint_storage", "streaming", "tools")
"""Arguments that are judged separately, or do not change the run; all others are bound."""
_OPTIONAL = ("function_invocation_kwargs", "client_kwargs")
_DROPPED_STREAM_TURNS = 100
"""The number of turns of the event loop in which a dropped stream has to end."""
_DELIBERATE: ContextVar[str | None] = ContextVar("sealpoint_deliberate", default=None)
TAKES: ContextVar[str | int | None] = ContextVar("sealpoint_takes", default=None)
"""The answer, approval or interrupted session that is the reason for the run about to begin."""


def guard(
    workflow: _W,
    storage: SealedCheckpointStorage,
    *,
    actor: str,
    world: World | Mapping[str, Any] | None = None,
    idempotent: Collection[str] = (),
    accept_unsealed: Collection[str] = (),
    files: Iterable[str | PurePath] = (),
    watch: Mapping[str, JSON] | None = None,
) -> _W:
    """The same workflow, behind the gate from this call on.

    It returns the same object, so that no code can run it past the gate. `run` takes
    `deliberate="why"` in addition to its other arguments. A run, a response or an older checkpoint
    that the policy does not simply allow raises `NeedsApproval` or `ResumeRefused` before any
    executor runs; after the approval the same call passes once.

    Args:
        workflow: A workflow of the builder, or a functional one.
        storage: The storage of its checkpoints; it replaces the workflow's own.
        actor: The name of the caller, for the record: a claim, unlike the identity of the store.
        world: The capabilities of the workflow; by default, the result of `world_of` at each run.
        idempotent: The executors that may repeat their work, or the name of a functional workflow:
            where only they get a response, a run that received one and died before it had saved
            anything needs no approval.
        accept_unsealed: The unsealed sources that agents may read: `memory` for a history or
            another memory outside of the session, `remote` for agents that run elsewhere.
        files: Data files of the world, such as prompts, or folders of them; read at each run.
        watch: Values of the world by name, such as a limit, of the class `other`; read at each run.

    Raises:
        UsageError: The actor is missing, the value is not a workflow or has run already, it lacks
            one of the executors, the storage is another one, the workflow or one inside it is
            guarded already, or an agent reads an unsealed source that is not accepted.
    """
    if not isinstance(workflow, Workflow | FunctionalWorkflow):
        raise UsageError(
            f"guard: expected a workflow, found {type(workflow).__name__}",
            hint="Build it first: WorkflowBuilder(...).build(), or .build() of a @workflow.",
        )
    if not isinstance(storage, SealedCheckpointStorage):
        raise UsageError(
            f"guard: expected a SealedCheckpointStorage, found {type(storage).__name__}",
            hint="Make one: SealedCheckpointStorage.for_workflow(workflow, store).",
        )
    if not actor.strip():
        raise UsageError("guard: actor= is empty; name who resumes the run")
    if isinstance(workflow, _GuardedWorkflow):
        raise UsageError(
            "guard: the workflow is guarded already",
            hint="Build another workflow for another guard: what it has in memory is of one.",
        )
    _require_unused(workflow)
    _require_unguarded_parts(workflow)
    _require_known(workflow, idempotent)
    gate = WorkflowGate(
        storage,
        actor,
        world=World.of(world),
        idempotent=frozenset(idempotent),
        unsealed=check_names(accept_unsealed),
        files=tuple(files),
        watched=watched_values(watch, world),
    )
    gate.world(workflow)  # what cannot be told is said now, and not in the first run
    workflow.__class__ = _class_of(cast("Any", type(workflow)))
    workflow.__dict__["_sealpoint_gate"] = gate
    return workflow


def declared_world(workflow: Any) -> World:
    """The capabilities of a workflow as the gate sees them: those of its guard, if it has one.

    Raises:
        UsageError: The value is not a workflow.
        WorldInvalid: The workflow has more than a world can hold.
    """
    if isinstance(workflow, _GuardedWorkflow):
        return workflow.sealpoint_world()
    return world_of(workflow)


def guarded_storage(workflow: Any) -> SealedCheckpointStorage | None:
    """The storage behind a workflow from `guard`; None for any other workflow."""
    if isinstance(workflow, _GuardedWorkflow):
        return workflow.sealpoint_storage()
    return None


def _parts(workflow: Any) -> Iterator[WorkflowExecutor]:
    """The executors that contain a workflow, at any depth."""
    for executor in getattr(workflow, "executors", {}).values():
        if isinstance(executor, WorkflowExecutor):
            yield executor
            yield from _parts(executor.workflow)


def _require_unguarded_parts(workflow: Any) -> None:
    for executor in _parts(workflow):
        if isinstance(executor.workflow, _GuardedWorkflow):
            raise UsageError(
                f"guard: the workflow inside of executor {executor.id!r} is guarded itself",
                hint="Guard the outermost workflow alone: what lies inside runs in its name.",
            )


def _require_known(workflow: Any, idempotent: Collection[str]) -> None:
    names = {workflow.name, *getattr(workflow, "executors", ())}
    if unknown := sorted(set(idempotent) - names):
        raise UsageError(
            f"guard: idempotent= names {unknown[0]!r}, and the workflow has no such executor"
        )


def _require_unused(workflow: Any) -> None:
    """Refuse a workflow whose state was never judged, and would begin a thread with it."""
    for each in (workflow, *(part.workflow for part in _parts(workflow))):
        if isinstance(each, Workflow) and each._runner.state.export_state():  # noqa: SLF001
            raise UsageError(
                f"guard: the workflow {each.name!r} has run already, past the gate",
                hint="Build it again, and guard it before its first run.",
            )


class WorkflowCall(NamedTuple):
    """A call as the gate judges it."""

    thread: str
    checkpoint: str | None
    """The checkpoint that it continues from; None: it begins a thread."""
    message: Any
    arguments: dict[str, Any]
    """Copies of its arguments: the gate judges these, and the run gets these."""
    answered: dict[str, str]
    """The responses so far, by request: the digest of each."""
    world: World
    answer: Any
    """The response or argument that the decision always binds; None: there is none."""
    offer: Callable[[], Any] | None
    """The arguments that the decision binds where approval is needed."""
    rest: "_Rest | None"
    """Tells whether anything would run; None: something certainly would."""
    idempotent: Callable[[], bool] | None
    """Tells whether the nodes that would run may repeat their work."""
    deliberate: str | None
    takes: str | int | None


class _Rest:
    """The checkpoint of a call without input: only messages in progress would run.

    The gate checks this where it would ask for approval: nothing needs approval where nothing runs.
    """

    def __init__(
        self, storage: SealedCheckpointStorage, thread: str, checkpoint_id: str | None
    ) -> None:
        self.checkpoint: WorkflowCheckpoint | None = None
        """The checkpoint that was found to hold no messages."""
        self._thread = storage.store.thread(thread).adapter
        self._checkpoint_id = checkpoint_id

    def would_run(self) -> bool:
        """Whether messages are in progress, so that an executor would run."""
        found = self._thread.snapshot("", self._checkpoint_id)
        if found is None or (made := checkpoint_of(found)).messages:
            return found is not None
        self.checkpoint = made
        return False


class WorkflowGate:
    """Decides about the runs of one guarded workflow."""

    def __init__(
        self,
        storage: SealedCheckpointStorage,
        actor: str,
        *,
        world: World | None,
        idempotent: frozenset[str] = frozenset(),
        unsealed: frozenset[str] = frozenset(),
        files: tuple[str | PurePath, ...] = (),
        watched: Mapping[str, JSON] | None = None,
    ) -> None:
        self.storage = storage
        self.last: str | None = None
        """The current checkpoint of the workflow in this process."""
        self._actor = actor
        self._world = world
        """The world that the caller declared; without it, the world of the current workflow."""
        self._idempotent = idempotent
        """The executors that may repeat their work."""
        self._unsealed = unsealed
        """The sources that the workflow may read without a seal."""
        self._files = files
        """The data files that are part of the world."""
        self._watched = watched
        """The values that are part of the world."""
        self._memory: Memory | None = None
        self._runs = GuardedRuns.of(storage.store)
        self._running = threading.Lock()

    def world(self, workflow: Any, tools: Any = None) -> World:
        """The capabilities of a run of a workflow, now.

        Args:
            workflow: The workflow.
            tools: Tools among the arguments of the call.

        Raises:
            UsageError: It reads an unsealed source that is not accepted.
            WorldInvalid: It has more than a world can hold.
        """
        found, self._memory = world_again(
            workflow, self._memory, tools=tools, files=self._files, watched=self._watched
        )
        require_accepted(found, self._unsealed)
        if self._world is None:
            return found
        if not tools:
            return self._world
        # The declared world stays, and the tools of the call are added to it.
        own, _ = world_again(workflow, self._memory)
        known = {tool.name for tool in (*own.tools, *self._world.tools)}
        declared, tools = self._world.to_dict(), found.to_dict().get("tools", ())
        brought = (tool for tool in tools if tool["name"] not in known)
        return World.from_dict({**declared, "tools": [*declared.get("tools", ()), *brought]})

    def call(
        self,
        workflow: Any,
        named: Mapping[str, Any],
        *,
        message: Any = None,
        cancelled: Collection[str] = (),
        deliberate: str | None = None,
        takes: str | int | None = None,
    ) -> WorkflowCall:
        """Read a call of a workflow.

        Raises:
            UsageError: It brings its own storage, continues a checkpoint of another workflow, or
                responds to a request that nothing waits for.
            UnknownCheckpoint: There is no such checkpoint.
            TypeNotAllowed: It brings a value that cannot be saved.
        """
        _require_unguarded_parts(workflow)
        self._require_own_storage(named.get("checkpoint_storage"))
        message, arguments = self._copied(message), self._arguments(named)
        responses = arguments.get("responses") or {}
        answers = {*responses, *cancelled}
        checkpoint = self._checkpoint_of(workflow, named, answers=bool(answers))
        known = None if checkpoint is None else self.storage.places.find(checkpoint)
        if known is not None:
            require_same_workflow(known, workflow.name)
        is_function = isinstance(workflow, FunctionalWorkflow)
        given = {id_: self.storage.digest(value) for id_, value in responses.items()}
        _require_asked(known, answers, given)
        answer = self._answer(arguments, cancelled)
        brings = answers or message is not None or is_function
        thread = self._thread_of(workflow, known)
        return WorkflowCall(
            thread,
            checkpoint,
            message,
            arguments,
            {**known.answered, **given} if known and is_function else {},
            self.world(workflow, named.get("tools")),
            answer or None,
            None if message is None else lambda: {**answer, "input": self._shown(message)},
            None if brings else _Rest(self.storage, thread, checkpoint),
            (lambda: self._may_do_again(workflow, thread, checkpoint, responses))
            if self._idempotent
            else None,
            deliberate,
            takes,
        )

    def _may_do_again(
        self, workflow: Any, thread: str, checkpoint_id: str | None, answered: Collection[str]
    ) -> bool:
        """Whether only executors that may repeat their work would run."""
        if isinstance(workflow, FunctionalWorkflow):
            return True  # it is all one, and was named
        found = self.storage.store.thread(thread).adapter.snapshot("", checkpoint_id)
        if found is None:
            return False
        made = checkpoint_of(found)
        asked = made.pending_request_info_events
        would_run = {asked[id_].source_executor_id for id_ in answered if id_ in asked}
        for group in workflow.edge_groups:
            if not made.messages.keys().isdisjoint(group.source_executor_ids):
                would_run.update(group.target_executor_ids)
        return self._idempotent.issuperset(would_run)

    def _arguments(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Copies of the arguments of a call: nobody can change them after the judgment."""
        found = {
            name: self._copied(value)
            for name, value in named.items()
            if name not in _NOT_BOUND and (value is not None or name not in _OPTIONAL)
        }
        if named.get("responses") is not None:
            found["responses"] = self._copied(dict(named["responses"]))
        return found

    def _answer(self, arguments: Mapping[str, Any], cancelled: Collection[str]) -> dict[str, Any]:
        """The part of a call that the decision binds like an answer."""
        brought = {name: self._shown(arguments[name]) for name in arguments if name != "responses"}
        found: dict[str, Any] = {"arguments": brought} if brought else {}
        if arguments.get("responses"):
            found["resume"] = self._shown(arguments["responses"])
        if cancelled:
            found["cancel"] = sorted(cancelled)
        return found

    def _checkpoint_of(
        self, workflow: Any, named: Mapping[str, Any], *, answers: bool
    ) -> str | None:
        """The checkpoint of a call: the named one, or the current one of this process.

        If the process has none yet, and all checkpoints are of one thread, it is the newest of that
        thread, which the gate judges. An input of a functional workflow restarts the workflow.
        """
        found: str | None = named.get("checkpoint_id")
        if found is not None or not (answers or isinstance(workflow, Workflow)):
            return found
        return self.last or self.storage.places.newest()

    def _thread_of(self, workflow: Any, known: Known | None) -> str:
        if known is not None:
            return known.thread
        return self.storage.places.new_thread(workflow.name, str(uuid.uuid4()))

    def _require_own_storage(self, given: Any) -> None:
        if given is not None and given is not self.storage:
            raise UsageError(
                f"guarded workflow: it was given another storage, {type(given).__name__}, than the "
                "one that it was guarded with",
                hint="Leave checkpoint_storage= out, or guard the workflow with that storage.",
            )

    def _shown(self, value: Any) -> Any:
        return to_display_json(value, self.storage.store.registry)

    def _copied(self, value: Any) -> Any:
        registry = self.storage.store.registry
        return None if value is None else registry.decode(registry.encode(value))

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Exclude other calls of the workflow: it has only one memory, and one storage.

        Raises:
            UsageError: Another call runs it.
        """
        for _ in range(_DROPPED_STREAM_TURNS):
            if self._running.acquire(blocking=False):
                break
            await asyncio.sleep(0)
        else:
            raise UsageError(
                "guarded workflow: it is running already",
                hint="Wait for the other run to end, or build a workflow for each conversation.",
            )
        try:
            yield
        finally:
            self._running.release()

    @asynccontextmanager
    async def let_in(
        self, read: Callable[[], WorkflowCall]
    ) -> AsyncIterator[tuple[WorkflowCall, RunStorage | RestingStorage]]:
        """Decide and record a call, and give its run a storage while it lasts.

        Raises:
            NeedsApproval, ResumeRefused, Paused: Before anything runs.
            SealpointError: The reason for stopping the run.
        """
        call = await asyncio.to_thread(_read_call, read)
        async with AsyncExitStack() as admitted:
            storage = await self._storage_of(call, admitted)
            try:
                yield call, storage
                storage.raise_if_stopped()  # code of the workflow may have caught it
            except RunStopped as stopped:
                raise stopped.error from stopped.error.__cause__
            finally:
                self.last = storage.last or call.checkpoint or self.last

    async def _storage_of(
        self, call: WorkflowCall, admitted: AsyncExitStack
    ) -> RunStorage | RestingStorage:
        """The storage of an admitted run.

        Where a run needs approval but no executor would run, nobody is asked, and nothing is
        recorded. The workflow is restored to the checkpoint, so that it reports its pending
        requests, as the framework's `as_agent` does before it answers. The gate judges the next
        call separately.
        """
        entered = entered_off_loop(self._runs.turn(call.thread), lambda: self._admitted(call))
        try:
            run = await admitted.enter_async_context(entered)
        except ResumeRefused:
            if call.rest is None or call.rest.checkpoint is None:
                raise
            return RestingStorage(call.rest.checkpoint)
        return RunStorage(self.storage, call.thread, run, call.answered)

    def _admitted(self, call: WorkflowCall) -> Any:
        return self._runs.admit(
            call.thread,
            world=call.world,
            ref=call.checkpoint,
            answer=call.answer,
            actor=self._actor,
            deliberate=call.deliberate,
            offer=call.offer,
            would_run=None if call.rest is None else call.rest.would_run,
            idempotent=call.idempotent,
            takes=call.takes,
        )


def _require_asked(known: Known | None, answers: set[str], given: Mapping[str, str]) -> None:
    """Refuse responses to unknown requests, and responses that differ from the earlier ones.

    A functional workflow runs again with all responses so far, so those have to be the same.
    """
    if not answers:
        return
    if known is None or answers.isdisjoint({*known.asks, *known.answered}):
        raise UsageError(
            "workflow: none of the responses is to a request that waits for one",
            hint="Answer the requests of the checkpoint that the run resumes from: pass it as "
            "checkpoint_id=, or run the workflow until it asks.",
        )
    for id_ in sorted(answers):
        if id_ in known.answered and known.answered[id_] != given.get(id_):
            raise UsageError(
                f"workflow: request {id_!r} was answered otherwise before",
                hint="Pass the response that was given, with that to the request that waits. "
                "If another one is meant, resume from the checkpoint that asked for it.",
            )
        if id_ not in known.asks and id_ not in known.answered:
            raise UsageError(
                f"workflow: no request {id_!r} waits for a response",
                hint="Answer the requests that the run ended with, and no others.",
            )


def _read_call(read: Callable[[], WorkflowCall]) -> WorkflowCall:
    """Read a call; an unreadable checkpoint raises the framework's own error."""
    try:
        return read()
    except UsageError:
        raise
    except EncodeError as error:  # what it brings cannot be saved
        raise rephrase(error, guarded=True) from error.__cause__
    except SealpointError as error:
        raise framework_error(error) from error


class _GuardedWorkflow:
    """A workflow behind the gate; mixed into the original class of the workflow."""

    _sealpoint_gate: WorkflowGate

    def sealpoint_world(self) -> World:
        """The capabilities of a run as the gate sees them."""
        return self._sealpoint_gate.world(self)

    def sealpoint_storage(self) -> SealedCheckpointStorage:
        """The storage of its checkpoints."""
        return self._sealpoint_gate.storage

    def run(self, message: Any = None, *, deliberate: str | None = None, **named: Any) -> Any:
        # The framework creates the run before it returns, and with it the call below.
        before = _DELIBERATE.set(deliberate)
        try:
            return super().run(message, **named)  # type: ignore[misc]
        finally:
            _DELIBERATE.reset(before)

    def _run_core(self, message: Any = None, **named: Any) -> AsyncIterator[WorkflowEvent[Any]]:
        return self._run_gated(message, _DELIBERATE.get(), TAKES.get(), named)

    async def _run_gated(
        self,
        message: Any,
        deliberate: str | None,
        takes: str | int | None,
        named: dict[str, Any],
    ) -> AsyncIterator[WorkflowEvent[Any]]:
        gate = self._sealpoint_gate
        named = {**named, "tools": _tools_of(self, named)}

        def read() -> WorkflowCall:
            return gate.call(self, named, message=message, deliberate=deliberate, takes=takes)

        with _released(cast("Any", self)):
            async with gate.alone(), gate.let_in(read) as (call, storage):
                own = {**named, **call.arguments, "checkpoint_storage": storage}
                if isinstance(self, FunctionalWorkflow):
                    own["checkpoint_id"] = call.checkpoint  # it begins anew by itself
                    own = {name: own[name] for name in own if name != "tools" or own[name]}
                elif named.get("checkpoint_id") is None:
                    await _restore(cast("Any", self), call, storage)
                stream: Any = super()._run_core(call.message, **own)  # type: ignore[misc]
                async with aclosing(stream) as events:
                    async for event in _watched(events, storage):
                        yield event


class _GuardedGraph(_GuardedWorkflow):
    """The additional methods of a workflow of the builder."""

    async def cancel_pending_requests(
        self, request_ids: Collection[str], *, deliberate: str | None = None, **named: Any
    ) -> Any:
        gate, cancelled = self._sealpoint_gate, sorted({*request_ids})

        def read() -> WorkflowCall:
            return gate.call(self, named, cancelled=cancelled, deliberate=deliberate)

        async with gate.alone(), gate.let_in(read) as (call, storage):
            own = {**named, **call.arguments, "checkpoint_storage": storage}
            own["checkpoint_id"] = call.checkpoint
            result = await super().cancel_pending_requests(cancelled, **own)  # type: ignore[misc]
            if storage.saves < sum(event.type == "superstep_completed" for event in result):
                raise _unsaved("a superstep")
            return result

    async def resolve_pause_checkpoint_id(
        self, request_ids: Collection[str], *, checkpoint_storage: Any = None, **named: Any
    ) -> Any:
        storage = checkpoint_storage or self._sealpoint_gate.storage
        found = super().resolve_pause_checkpoint_id  # type: ignore[misc]
        return await found(request_ids, checkpoint_storage=storage, **named)


def _tools_of(workflow: Any, named: Mapping[str, Any]) -> Any:
    """The tools that a run will be given, regardless of later changes of the caller's list."""
    if isinstance(workflow, Workflow):
        return workflow._runner.context.get_runtime_tools()  # noqa: SLF001
    return named.get("tools")


@contextmanager
def _released(workflow: Any) -> Iterator[None]:
    """Let another run begin after this one, also if the gate refused it before it began."""
    active = getattr(workflow, "_active_run", None)
    try:
        yield
    finally:
        if isinstance(workflow, FunctionalWorkflow):
            workflow._release_run_guard()  # noqa: SLF001
        elif workflow._active_run is active:  # noqa: SLF001
            workflow._active_run = None  # noqa: SLF001


async def _restore(workflow: Any, call: WorkflowCall, storage: Any) -> None:
    """Restore a workflow of this process to the checkpoint of the decision, or to none.

    Raises:
        UsageError: The call brings an input, and a run is in progress there.
    """
    runner = workflow._runner  # noqa: SLF001
    if call.checkpoint is None:
        nothing = WorkflowCheckpoint(workflow.name, workflow.graph_signature_hash)
        await runner.restore_checkpoint(nothing)
        runner._previous_checkpoint_id = None  # noqa: SLF001
        return
    runner.context.set_runtime_checkpoint_storage(storage)
    await runner.restore_from_checkpoint(call.checkpoint)
    await runner.context.drain_events()  # who goes on in the same process knows of the requests
    if call.message is not None and await runner.context.has_messages():
        raise UsageError(
            f"thread {call.thread!r}: a run is under way at checkpoint {call.checkpoint!r}, and an "
            "input begins another",
            hint=f"Let it end first, with run(checkpoint_id={call.checkpoint!r}), and bring the "
            "input then. For a separate run, build the workflow again, with a storage for "
            "another thread.",
        )


async def _watched(
    events: AsyncIterator[WorkflowEvent[Any]], storage: RunStorage | RestingStorage
) -> AsyncIterator[WorkflowEvent[Any]]:
    """The events of a run, which ends where the framework leaves a checkpoint out.

    The framework creates a checkpoint after each superstep, and drops errors that occur before it
    calls the storage. A run that only resumes saves nothing before its first superstep, so this
    check asks there whether the run may continue.

    Raises:
        UsageError: A superstep has ended without a checkpoint.
        Paused, Superseded: The run may not continue.
    """
    saves = 0
    async for event in events:
        storage.raise_if_stopped()
        if event.type == "superstep_started":
            saves = storage.saves
            if not saves:
                await asyncio.to_thread(storage.require_going_on)
        elif event.type == "superstep_completed" and saves == storage.saves:
            raise _unsaved(f"superstep {event.iteration}")
        yield event


def _unsaved(superstep: str) -> UsageError:
    return UsageError(
        f"workflow: the framework made no checkpoint after {superstep}",
        hint="Its log says which executor's on_checkpoint_save failed: let that return a dict with "
        "text keys.",
    )


@cache
def _class_of(base: type) -> type:
    """The guarded subclass of a class of workflows."""
    guarded = _GuardedGraph if issubclass(base, Workflow) else _GuardedWorkflow
    return type(f"Guarded{base.__name__}", (guarded, base), {})
