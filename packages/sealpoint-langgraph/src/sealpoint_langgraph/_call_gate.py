# SPDX-License-Identifier: Apache-2.0
"""The gate before every call of a guarded graph.

The gate reads a call (its checkpoint, world and operation), decides and records the decision, and
then gives the call a pass, which the saver checks. The run that was decided about is the run that
executes: the world is that of the current graph, and the decision binds the operation whenever
approvers are asked.
"""

import asyncio
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import PurePath
from typing import Any, NamedTuple, Protocol, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager, Callbacks
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.func import entrypoint, task
from langgraph.runtime import RunControl
from langgraph.types import All, Command, Send, StateUpdate

from sealpoint.adapters.guarded_runs import GuardedRuns, RunWatch, to_display_json
from sealpoint.adapters.object_search import Memory
from sealpoint.codec import Registry
from sealpoint.errors import ResumeRefused, UsageError
from sealpoint.gate import Thread
from sealpoint.world import JSON, World
from sealpoint_langgraph._checkpoint_writes import RESUME
from sealpoint_langgraph._configuration import (
    DELIBERATE,
    TAKES,
    TICKET,
    CheckpointTarget,
    is_nested,
    rephrase_for_graph,
    task_on,
    token_of,
    with_pass,
)
from sealpoint_langgraph._conversion import Address, graph_paused, pending_writes
from sealpoint_langgraph._saver import SealedSaver
from sealpoint_langgraph._unsealed_inputs import require_accepted
from sealpoint_langgraph._world import world_again

# The operation of a call of a guarded graph, as JSON: approvers see it, and a statement binds it.
#
# No two different calls have the same JSON. Its top level has tags and nothing else (`resume`,
# `update`, `goto`, `graph`, `input`, `go on`, `edit`, `namespace`, `interrupt_before`,
# `interrupt_after`, `from`); values that a caller chose stand below the tag of their form.
#
# A call is refused if its configuration makes it do something other than the call says.


_FRAMEWORK = "__pregel_"
_COPY = "__copy__"
_HARMLESS = {
    *(DELIBERATE, TAKES, TICKET),
    "__pregel_node_finished",
    "__pregel_runtime",
    "__pregel_stream_messages_v2",
    "__pregel_strict_resume",
    "__pregel_timed_attempt_observer",
}
"""Names of a server or of the guarded graph; none answers, jumps, or selects another saver."""
_Nodes = All | Sequence[str] | None


class Stops(NamedTuple):
    """Breakpoints: the nodes before and after which a run stops."""

    before: _Nodes
    after: _Nodes

    def json_form(self) -> dict[str, Any]:
        """The breakpoints that are set, by the framework's names for them."""
        named = {"interrupt_before": self.before, "interrupt_after": self.after}
        return {
            name: nodes if isinstance(nodes, str) else list(nodes)
            for name, nodes in named.items()
            if nodes
        }

    def lifts(self, own: "Stops") -> bool:
        """Whether breakpoints of a call replace those of the graph and omit some."""
        return any(_lacks(nodes, stop) for nodes, stop in zip(self, own, strict=True))


def _lacks(nodes: _Nodes, own: _Nodes) -> bool:
    if not nodes or not own or nodes == "*":
        return False
    return isinstance(nodes, str) or own == "*" or not set(own) <= set(nodes)


def run_operation(
    value: Any, registry: Registry, *, own: Stops, call: Stops, binds: bool
) -> dict[str, Any] | None:
    """The input of a run, besides its saved state; None if it has none.

    Args:
        value: The input, or a command, or None.
        registry: The allowed types.
        own: The breakpoints of the graph.
        call: The breakpoints of the call itself.
        binds: Whether a new turn answers something, or needs approval.

    Raises:
        TypeNotAllowed: The value holds a type that the registry does not allow.
    """
    if isinstance(value, Command):
        told = _command(value, registry)
        if told:
            return told | call.json_form()
        value = None
    if value is None:
        # A breakpoint leaves no question behind: a caller who lets the run pass it answers one.
        stops = any((*own, *call))
        return {"go on": "past a breakpoint"} | call.json_form() if stops else None
    if binds or call.lifts(own):
        return {"input": to_display_json(value, registry)} | call.json_form()
    return None


def _jumps(value: Any) -> Iterator[str]:
    """The nodes that a command jumps to."""
    goto = value.goto if isinstance(value, Command) else ()
    for jump in [goto] if isinstance(goto, str | Send) else goto:
        yield jump.node if isinstance(jump, Send) else str(jump)


def _command(command: Command[Any], registry: Registry) -> dict[str, Any]:
    goto = command.goto
    jumps = [goto] if isinstance(goto, str | Send) else goto
    parts = {
        "resume": command.resume,
        "update": command.update,
        "goto": list(jumps) if isinstance(jumps, list | tuple) else jumps,
        "graph": command.graph,
    }
    return {
        name: to_display_json(part, registry)
        for name, part in parts.items()
        if part is not None and (name != "goto" or goto)
    }


def edit_operation(
    supersteps: Sequence[Sequence[StateUpdate]], lane: str | None, registry: Registry
) -> dict[str, Any]:
    """The writes of an edit: its steps in order, each with its writes.

    Raises:
        TypeNotAllowed: The edit holds a type that the registry does not allow.
    """
    told = [[_edit(edit, registry) for edit in superstep] for superstep in supersteps]
    return {"edit": told, "namespace": lane} if lane else {"edit": told}


def _edit(edit: Sequence[Any], registry: Registry) -> dict[str, Any]:
    if not isinstance(edit, Sequence):
        return {"values": to_display_json(edit, registry)}
    values, as_node, task = (*edit, None, None)[:3]
    if as_node == _COPY and isinstance(values, list):
        # A copy of a checkpoint, with its own edits.
        told = {"edits": [_edit(each, registry) for each in values]}
    else:
        told = {"values": to_display_json(values, registry)}
    return told | {"as_node": as_node} | ({} if task is None else {"task_id": task})


def require_own_words(config: Mapping[str, Any]) -> None:
    """Refuse a call that uses names of the framework that are reserved for subgraphs.

    Such names would answer a question, resume or load a checkpoint contrary to the call, so that
    another run than the judged and approved one would execute.

    Raises:
        UsageError: The call has such a name.
    """
    for name in config.get("configurable") or {}:
        if str(name).startswith(_FRAMEWORK) and name not in _HARMLESS:
            raise UsageError(
                f"configuration: {name!r} is one of the framework's own names and may not be set",
                hint="Take out of configurable what begins with __pregel_, and answer with "
                "Command(resume=...).",
            )


# Stopping a guarded run when an operator pauses its thread or another run takes it over.
#
# A graph is stopped before its next step. Inside a step, a node or an entrypoint may call tasks of
# the functional API one after the other: the run is stopped before the next of these. Work that was
# done before a pause is saved by then or is about to be, and is not repeated when the run resumes.
#
# Refusing to save would come too late in both cases: the framework saves in the background, and it
# reports a failed save of a task that code calls to no one.


PAUSED = "paused by an operator"
"""The reason for stopping a run, as the framework reports it."""


class Pausable(Protocol):
    """The pause state of a thread."""

    has_begun: bool
    """Whether a run may have taken a step."""
    at_work: set[object]
    """The parts of a run that have begun and not ended."""

    @property
    def paused(self) -> bool:
        """Whether an operator has paused the thread; raises if a run has lost it."""


class PauseControl(RunControl):
    """Asks before every step whether the run may continue."""

    __slots__ = ("_also", "_at_exit", "_thread")

    def __init__(self, thread: Pausable, also: RunControl | None, *, at_exit: bool) -> None:
        super().__init__()
        self._thread = thread
        self._also = also
        self._at_exit = at_exit
        """Whether everything is saved when the run ends, and not before."""

    @property
    def drain_requested(self) -> bool:
        if self._also is not None and self._also.drain_requested:
            self.request_drain(self._also.drain_reason or "shutdown")
        elif self._thread.paused:
            if self._at_exit:
                # A subgraph that ends in order saves nothing then; an aborted one does.
                raise GraphDrained(PAUSED)
            self.request_drain(PAUSED)
        return super().drain_requested


class TaskStop(BaseCallbackHandler):
    """Asks before every task that the code of a run calls whether the run may continue.

    The framework has no check at this point, but it notifies listeners, and lets a listener raise.
    A task is identified by its namespace: anything else that begins in that namespace is part of
    the task, and is not stopped. A graph that a node runs on another thread is not stopped either;
    that thread has its own pauses.

    Args:
        thread: The thread of the run.
        every: Stop everything that begins, because tasks cannot be distinguished from the rest.
    """

    raise_error = True
    run_inline = True
    ignore_llm = ignore_retry = ignore_agent = ignore_retriever = True
    ignore_chat_model = ignore_custom_event = True

    def __init__(self, thread: Pausable, *, every: bool) -> None:
        super().__init__()
        self._thread = thread
        self._every = every
        self._root: UUID | None = None
        self._nodes: set[str] = set()
        """The namespaces of the nodes of the run itself."""
        self._begun: set[str] = set()

    def among(self, others: Callbacks) -> Callbacks:
        """The callbacks of a call, with this one added."""
        if isinstance(others, BaseCallbackManager):
            found = others.copy()
            found.add_handler(self, inherit=True)
            return found
        return [self, *(others or ())]

    def on_chain_start(
        self,
        serialized: Mapping[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Stop a task that is about to begin."""
        del serialized, inputs
        if self._root is None:
            self._root = run_id  # the run itself
            return
        self._thread.has_begun = True
        self._thread.at_work.add(run_id)
        found = metadata or {}
        place = str(found.get("langgraph_checkpoint_ns"))
        if not self._every and not _is_called(found.get("langgraph_path")):
            if parent_run_id == self._root:
                self._nodes.add(place)
            return
        own = self._every or place.partition("|")[0] in self._nodes
        if own and place not in self._begun:
            if self._thread.paused:
                raise GraphDrained(PAUSED)
            self._begun.add(place)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """Record that a part of the run has ended."""
        del outputs
        self._thread.at_work.discard(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Record a failure; a cancelled part may continue in a thread of its own."""
        if isinstance(error, Exception):
            self._thread.at_work.discard(run_id)


def _is_called(path: object) -> bool:
    """Whether the path of a task is that of a task called by code."""
    return isinstance(path, tuple) and (path[0], path[-1]) == ("__pregel_push", True)


class _Asked:
    """A thread that is not paused, and records the queries."""

    def __init__(self, log: list[str]) -> None:
        self._log = log
        self.has_begun = False
        self.at_work = set[object]()

    @property
    def paused(self) -> bool:
        self._log.append("asked")
        return False


@cache
def reports_tasks() -> bool:
    """Whether this release of the framework notifies listeners of tasks, tested on a tiny graph."""
    log: list[str] = []

    @task
    def step() -> None:
        log.append("ran")

    @entrypoint()
    def program(_: int) -> None:
        log.append("began")
        step().result()

    program.invoke(0, {"callbacks": [TaskStop(_Asked(log), every=False)]})
    return log == ["began", "asked", "ran"]


_MISSING = object()
_HINT = (
    'Where the policy only wants a reason, pass deliberately(config, "why") instead of the '
    "configuration; anything else that it refuses, it has to allow first: sealpoint policy show."
)


class _Entry(NamedTuple):
    """A call as the gate judges it: its checkpoint, its world, and its reason."""

    config: RunnableConfig
    thread: Thread
    target: CheckpointTarget
    older: dict[str, str]
    """Older checkpoints of subgraphs from which it begins."""
    deliberate: Any
    takes: Any
    """The answer, approval or interrupted session that is the reason for the call."""
    world: World

    @property
    def begins_new_turn(self) -> bool:
        """Whether an input is a new turn; the framework resumes a run that it recognizes."""
        loaded = self.thread.adapter.snapshot("", self.target.root)
        state = None if loaded is None else loaded.state
        if loaded is None or not (isinstance(state, dict) and state.get("channel_versions")):
            return True
        # The way the framework looks it up: next to the thread, where the metadata lack it.
        named, told = self.config.get("configurable") or {}, self.config.get("metadata") or {}
        run = told["run_id"] if "run_id" in told else named.get("run_id") or None
        return bool(run != loaded.ref.metadata.get("run_id", _MISSING))


class CallGate:
    """Decides about the runs of one guarded graph."""

    def __init__(
        self,
        saver: SealedSaver,
        actor: str,
        *,
        world: World | None,
        idempotent: frozenset[str] = frozenset(),
        unsealed: frozenset[str] = frozenset(),
        files: tuple[str | PurePath, ...] = (),
        watched: Mapping[str, JSON] | None = None,
    ) -> None:
        self.saver = saver
        self.actor = actor
        self._world = world
        """The world that the caller declared; without it, the world of the graph about to run."""
        self._idempotent = idempotent
        """The nodes that may repeat their work."""
        self._unsealed = unsealed
        """The sources that the graph may read without a seal."""
        self._files = files
        """The data files that are part of the world."""
        self._watched = watched
        """The values that are part of the world."""
        self._memory: Memory | None = None
        self._runs = GuardedRuns.of(saver.store)

    def for_copy(self) -> "CallGate":
        """The gate of a copy of the graph; later changes of the copy do not affect this gate."""
        return copy.copy(self)

    def world(self, graph: Any) -> World:
        """The capabilities of a graph, now.

        Raises:
            WorldInvalid: The graph has more than a world can hold.
        """
        if self._world is not None:
            return self._world
        world, self._memory = world_again(graph, self._memory, self._files, self._watched)
        return world

    def entry(self, graph: Any, config: RunnableConfig) -> _Entry:
        """Read a call.

        Raises:
            UsageError: Its configuration contradicts the call, or the graph has another saver.
        """
        require_own_words(config)
        self._require_own_saver(graph)
        require_accepted(graph, self._unsealed)
        thread = self.saver.store.thread(Address.of(config).thread)
        target = CheckpointTarget.of(config)
        named = config.get("configurable") or {}
        deliberate, takes = named.get(DELIBERATE), named.get(TAKES)
        older = target.older(thread.adapter)
        return _Entry(config, thread, target, older, deliberate, takes, self.world(graph))

    def _require_own_saver(self, graph: Any) -> None:
        found = graph.checkpointer
        if not isinstance(found, SealedSaver) or found.store is not self.saver.store:
            raise UsageError(
                f"guarded graph: it was given another checkpointer, {type(found).__name__}, than "
                "the saver that it was guarded with",
                hint="Give the graph another one by calling guard(graph, saver, actor=...) again.",
            )
        if not found.is_guarded:
            graph.checkpointer = found.behind_guard()

    def watch(self, config: RunnableConfig) -> RunWatch:
        """The objects that tell a run before its next step whether it may continue."""
        return RunWatch(self.saver.store.thread(Address.of(config).thread))

    def run(
        self,
        graph: Any,
        config: RunnableConfig,
        value: Any,
        named: Mapping[str, Any],
        watch: RunWatch,
    ) -> AbstractContextManager[RunnableConfig]:
        """Admit a run, with its input."""
        entry = self.entry(graph, config)
        own = Stops(graph.interrupt_before_nodes, graph.interrupt_after_nodes)
        call = Stops(named.get("interrupt_before"), named.get("interrupt_after"))
        is_turn = value is not None and not isinstance(value, Command)

        def told(*, binds: bool) -> dict[str, Any] | None:
            # The framework ignores an input if it resumes a run that it recognizes.
            looks = not (is_turn and (binds or any((*own, *call)))) or entry.begins_new_turn
            registry = self.saver.store.registry
            return run_operation(
                value if looks else None, registry, own=own, call=call, binds=binds
            )

        operation = told(binds=False)
        offer = (lambda: told(binds=True)) if is_turn and operation is None else None
        stop = TaskStop(watch, every=not reports_tasks())
        listeners = stop.among(config.get("callbacks"))
        stopped = cast("RunnableConfig", {**config, "callbacks": listeners})
        # An answer to a finished run makes nothing run, whatever approvers say to it.
        answers = operation is not None and operation.keys() == {"resume"}
        return self._entered(
            entry._replace(config=stopped),
            operation,
            offer=offer,
            watch=watch,
            would_run=(lambda: bool(graph.get_state(config).next)) if answers else None,
            idempotent=lambda: self._may_do_again(graph, entry, value),
        )

    def _may_do_again(self, graph: Any, entry: _Entry, value: Any) -> bool:
        """Whether only nodes that may repeat their work would run, or none.

        The work of a run that saved nothing consists of nodes that would run now.
        """
        would_run = {*graph.get_state(entry.config).next, *_jumps(value)}
        if would_run:
            return self._idempotent.issuperset(would_run)
        # A jump that a call brought is stored with the checkpoint; an answer without a waiting
        # question makes nothing run.
        found = entry.thread.adapter.snapshot("", entry.target.root)
        waiting = () if found is None else pending_writes(found.results)
        return all(channel == RESUME for _, channel, _ in waiting)

    def edit(
        self, graph: Any, config: RunnableConfig, supersteps: Sequence[Sequence[Any]]
    ) -> AbstractContextManager[RunnableConfig]:
        """Admit an edit, with its writes."""
        lane, registry = Address.of(config).lane, self.saver.store.registry
        operation = edit_operation(supersteps, lane, registry)
        return self._entered(self.entry(graph, config), operation, edits=True)

    def turn(self, config: RunnableConfig) -> asyncio.Lock:
        """The lock that serializes decisions about calls of the running event loop."""
        return self._runs.turn(Address.of(config).thread)

    def has_let_in(self, config: RunnableConfig) -> bool:
        """Whether the surrounding graph was admitted for this edit of a subgraph."""
        token = token_of(config)
        return self._runs.is_living(Address.of(config).thread, token) and not is_nested(config)

    def pass_around(self, config: RunnableConfig) -> str | None:
        """The pass of the run whose own code calls, if the call is about the same thread."""
        thread = Address.of(config).thread
        token = (task_on(thread, self.saver.store) or {}).get(TICKET)
        return str(token) if self._runs.is_living(thread, token) else None

    @contextmanager
    def _entered(
        self,
        entry: _Entry,
        operation: dict[str, Any] | None,
        *,
        offer: Callable[[], dict[str, Any] | None] | None = None,
        watch: RunWatch | None = None,
        would_run: Callable[[], bool] | None = None,
        idempotent: Callable[[], bool] | None = None,
        edits: bool = False,
    ) -> Iterator[RunnableConfig]:
        """Decide and record a call, and give it its pass while it lasts."""
        thread, older = entry.thread, entry.older
        if older:
            # Approvers see which ones, and the decision is bound to them.
            told = offer or (lambda: operation)
            operation, offer = None, lambda: {**(told() or {}), "from": older}
        with ExitStack() as admitted:
            try:
                run = admitted.enter_context(
                    self._runs.admit(
                        thread.name,
                        world=entry.world,
                        ref=entry.target.root,
                        answer=operation,
                        actor=self.actor,
                        deliberate=entry.deliberate,
                        lanes=older,
                        offer=offer,
                        would_run=would_run,
                        idempotent=idempotent,
                        edits=edits,
                        takes=entry.takes,
                        watch=watch,
                    )
                )
            except ResumeRefused as error:
                raise rephrase_for_graph(error, _HINT) from error
            try:
                yield with_pass(entry.config, run.token)
                if self._runs.was_held(run.token):
                    raise graph_paused(thread.name)
            except GraphDrained as drained:
                if drained.reason == PAUSED:
                    raise graph_paused(thread.name) from drained
                raise
