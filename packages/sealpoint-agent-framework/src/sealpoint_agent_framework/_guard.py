# SPDX-License-Identifier: Apache-2.0
"""`guard`: a workflow whose every run goes through the gate.

The storage sees what is saved and loaded, never with what a run is about to go on. The guarded
workflow sees both: it binds the responses, the input and what else a call brings to the decision,
has that recorded, and gives the run a storage of its own. What was decided about is what runs: a
run that goes on in the same process begins from the checkpoint too, and not from what lies in
memory, and what a call brings along is copied before it is judged.

`guard` changes the workflow itself, so that no unguarded one is left, and a workflow has one run at
a time, whoever calls it. An operator's pause is told by the save after each superstep: it is kept,
and the run ends there.
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

from sealpoint.adapters.face import GuardedRuns, entered_off_loop, to_display_json
from sealpoint.adapters.search import Memory
from sealpoint.errors import EncodeError, ResumeRefused, SealpointError, UsageError
from sealpoint.world import World
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
from sealpoint_agent_framework._unsealed import check_names, require_accepted
from sealpoint_agent_framework._world import world_again, world_of

_W = TypeVar("_W", Workflow, FunctionalWorkflow)
_NOT_BOUND = ("responses", "checkpoint_id", "checkpoint_storage", "streaming", "tools")
"""Arguments that are judged by themselves, or change nothing that runs; all others are bound."""
_OPTIONAL = ("function_invocation_kwargs", "client_kwargs")
_DROPPED_STREAM_TURNS = 100
"""How many turns of the event loop a stream that was dropped has to end in."""
_DELIBERATE: ContextVar[str | None] = ContextVar("sealpoint_deliberate", default=None)


def guard(
    workflow: _W,
    storage: SealedCheckpointStorage,
    *,
    actor: str,
    world: World | Mapping[str, Any] | None = None,
    idempotent: Collection[str] = (),
    accept_unsealed: Collection[str] = (),
    files: Iterable[str | PurePath] = (),
) -> _W:
    """The same workflow, behind the gate from now on.

    It is the very object, so that nothing runs it past the gate any more. `run` takes
    `deliberate="why"` beside what it takes already. A run, a response or an older checkpoint that
    the policy does not simply allow raises `NeedsApproval` or `ResumeRefused` before any executor
    runs; after the approval the same call passes once.

    Args:
        workflow: A workflow of the builder, or a functional one.
        storage: Where its checkpoints are kept; it takes the place of the workflow's own.
        actor: Who runs it, for the record: a claim, unlike the identity of the store.
        world: What the workflow is able to do; by default, what `world_of` finds at each run.
        idempotent: The executors that may do again what they did, or the name of a functional
            workflow: where only they get a response, nobody is asked about a run that was given one
            and died before it had saved anything.
        accept_unsealed: What agents may read although nobody seals it: `memory` for a history or
            another memory outside of the session, `remote` for agents that run elsewhere.
        files: Data files that count, such as prompts, or folders of them; read at each run.

    Raises:
        UsageError: There is no actor, it is no workflow or one that has run already, it has no such
            executor, the storage is another one, the workflow or one inside of it is guarded
            already, or an agent reads what is not sealed and nobody accepted that.
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
    names = {workflow.name, *getattr(workflow, "executors", ())}
    if unknown := sorted(set(idempotent) - names):
        raise UsageError(
            f"guard: idempotent= names {unknown[0]!r}, and the workflow has no such executor"
        )
    gate = WorkflowGate(
        storage,
        actor,
        world=World.of(world),
        idempotent=frozenset(idempotent),
        unsealed=check_names(accept_unsealed),
        files=tuple(files),
    )
    gate.world(workflow)  # what cannot be told is said now, and not in the first run
    workflow.__class__ = _class_of(cast("Any", type(workflow)))
    workflow.__dict__["_sealpoint_gate"] = gate
    return workflow


def declared_world(workflow: Any) -> World:
    """What the gate is told that a workflow is able to do: that of its guard, if it has one.

    Raises:
        UsageError: It is no workflow.
        WorldInvalid: It says more than a world can hold.
    """
    if isinstance(workflow, _GuardedWorkflow):
        return workflow.sealpoint_world()
    return world_of(workflow)


def _parts(workflow: Any) -> Iterator[WorkflowExecutor]:
    """The executors that have a workflow inside, at any depth."""
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


def _require_unused(workflow: Any) -> None:
    """Refuse a workflow that holds what nobody decided about, and would begin a thread with it."""
    for each in (workflow, *(part.workflow for part in _parts(workflow))):
        if isinstance(each, Workflow) and each._runner.state.export_state():  # noqa: SLF001
            raise UsageError(
                f"guard: the workflow {each.name!r} has run already, past the gate",
                hint="Build it again, and guard it before its first run.",
            )


class WorkflowCall(NamedTuple):
    """A call as the gate has to judge it."""

    thread: str
    checkpoint: str | None
    """What it goes on from; None: it begins."""
    message: Any
    arguments: dict[str, Any]
    """What it brings along, copied: this is judged, and this runs."""
    answered: dict[str, str]
    """What was answered so far, by request: the digest of each response."""
    world: World
    answer: Any
    """What it answers, or brings along; None: nothing that is always bound."""
    offer: Callable[[], Any] | None
    """What it brings along that is bound where people are asked."""
    rest: "_Rest | None"
    """Tells whether anything would run; None: surely."""
    idempotent: Callable[[], bool] | None
    """Tells whether what would run may be done again."""
    deliberate: str | None


class _Rest:
    """A checkpoint that a call goes on from with nothing: nothing would run but what is under way.

    That is looked at where people would be asked: they have nothing to say where nothing runs.
    """

    def __init__(
        self, storage: SealedCheckpointStorage, thread: str, checkpoint_id: str | None
    ) -> None:
        self.checkpoint: WorkflowCheckpoint | None = None
        """The checkpoint that was found to hold no messages."""
        self._thread = storage.store.thread(thread).adapter
        self._checkpoint_id = checkpoint_id

    def would_run(self) -> bool:
        """Whether messages are under way, so that an executor would run."""
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
    ) -> None:
        self.storage = storage
        self.last: str | None = None
        """The checkpoint that the workflow of this process stands on."""
        self._actor = actor
        self._world = world
        """What the caller declared; without it, the world of the workflow that is about to run."""
        self._idempotent = idempotent
        """The executors that may do again what they did."""
        self._unsealed = unsealed
        """What the workflow may read although nobody seals it."""
        self._files = files
        """The data files that count."""
        self._memory: Memory | None = None
        self._runs = GuardedRuns.of(storage.store)
        self._running = threading.Lock()

    def world(self, workflow: Any, tools: Any = None) -> World:
        """What a run of a workflow is able to do, now.

        Args:
            workflow: The workflow.
            tools: Tools that the call brings along.

        Raises:
            UsageError: It reads what is not sealed, and nobody accepted that.
            WorldInvalid: It says more than a world can hold.
        """
        found, self._memory = world_again(workflow, self._memory, tools=tools, files=self._files)
        require_accepted(found, self._unsealed)
        if self._world is None:
            return found
        if not tools:
            return self._world
        # What is declared stands, and the tools of the call come on top of it.
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
    ) -> WorkflowCall:
        """Read a call of a workflow.

        Raises:
            UsageError: It brings a storage of its own, goes on from a checkpoint of another
                workflow, or responds to what nothing waits for.
            UnknownCheckpoint: There is no such checkpoint.
            TypeNotAllowed: It brings something that cannot be saved.
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
        )

    def _may_do_again(
        self, workflow: Any, thread: str, checkpoint_id: str | None, answered: Collection[str]
    ) -> bool:
        """Whether only executors would run that may do again what they did."""
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
        """Copies of what a call brings along: nobody changes them once they are judged."""
        found = {
            name: self._copied(value)
            for name, value in named.items()
            if name not in _NOT_BOUND and (value is not None or name not in _OPTIONAL)
        }
        if named.get("responses") is not None:
            found["responses"] = self._copied(dict(named["responses"]))
        return found

    def _answer(self, arguments: Mapping[str, Any], cancelled: Collection[str]) -> dict[str, Any]:
        """What of a call is bound like an answer."""
        brought = {name: self._shown(arguments[name]) for name in arguments if name != "responses"}
        found: dict[str, Any] = {"arguments": brought} if brought else {}
        if arguments.get("responses"):
            found["responses"] = self._shown(arguments["responses"])
        if cancelled:
            found["cancel"] = sorted(cancelled)
        return found

    def _checkpoint_of(
        self, workflow: Any, named: Mapping[str, Any], *, answers: bool
    ) -> str | None:
        """What a call goes on from: what it names, or what the workflow of this process stands on.

        Where it stands on nothing yet, and all is of one thread, that is the newest there: it is
        what is judged. An input of a functional workflow begins it anew.
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
        """Let no other call run the workflow meanwhile: it has one memory, and one storage.

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
        """Have a call decided and recorded, and give its run a storage for as long as it takes.

        Raises:
            NeedsApproval, ResumeRefused, Paused: Before anything runs.
            SealpointError: Why the run was stopped.
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
        """The storage of a run that is let in.

        Where people would be asked about a run in which nothing runs, nobody is, and nothing is
        recorded. The workflow is put to the checkpoint, so that it tells what waits there, as the
        framework's `as_agent` does before it answers. What comes next is judged by itself.
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
        )


def _require_asked(known: Known | None, answers: set[str], given: Mapping[str, str]) -> None:
    """Refuse responses to what nothing asks for, and other ones than were given before.

    A functional workflow runs anew with all responses so far, so those have to be the same.
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
    """Read a call; a checkpoint that cannot be read is told as the framework tells it."""
    try:
        return read()
    except UsageError:
        raise
    except EncodeError as error:  # what it brings cannot be saved
        raise rephrase(error, guarded=True) from error.__cause__
    except SealpointError as error:
        raise framework_error(error) from error


class _GuardedWorkflow:
    """A workflow behind the gate; mixed into the class of the workflow that it was."""

    _sealpoint_gate: WorkflowGate

    def sealpoint_world(self) -> World:
        """What the gate is told that a run is able to do."""
        return self._sealpoint_gate.world(self)

    def run(self, message: Any = None, *, deliberate: str | None = None, **named: Any) -> Any:
        # The framework makes the run before it returns, and with it the call below.
        before = _DELIBERATE.set(deliberate)
        try:
            return super().run(message, **named)  # type: ignore[misc]
        finally:
            _DELIBERATE.reset(before)

    def _run_core(self, message: Any = None, **named: Any) -> AsyncIterator[WorkflowEvent[Any]]:
        return self._run_gated(message, _DELIBERATE.get(), named)

    async def _run_gated(
        self, message: Any, deliberate: str | None, named: dict[str, Any]
    ) -> AsyncIterator[WorkflowEvent[Any]]:
        gate = self._sealpoint_gate
        named = {**named, "tools": _tools_of(self, named)}

        def read() -> WorkflowCall:
            return gate.call(self, named, message=message, deliberate=deliberate)

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
    """What only a workflow of the builder has."""

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
    """The tools that a run is going to be given, whatever became of the caller's list since."""
    if isinstance(workflow, Workflow):
        return workflow._runner.context.get_runtime_tools()  # noqa: SLF001
    return named.get("tools")


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


async def _restore(workflow: Any, call: WorkflowCall, storage: Any) -> None:
    """Put a workflow of this process back to the checkpoint that was decided about, or to none.

    Raises:
        UsageError: The call brings an input, and a run is under way there.
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

    It makes one after each superstep, and drops what goes wrong before a storage is asked. A run
    that only resumes saves nothing before its first superstep, so it is asked there whether it may
    still go on.

    Raises:
        UsageError: A superstep has ended without a checkpoint.
        Paused, Superseded: The run may not go on.
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
    """The class of guarded workflows that are otherwise of a class."""
    guarded = _GuardedGraph if issubclass(base, Workflow) else _GuardedWorkflow
    return type(f"Guarded{base.__name__}", (guarded, base), {})
