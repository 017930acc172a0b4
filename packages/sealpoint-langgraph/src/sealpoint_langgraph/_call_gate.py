# SPDX-License-Identifier: Apache-2.0
"""The gate before every call of a guarded graph.

A call is read (from where, in which world, what it does), decided and recorded, and then handed a
pass which the saver asks for. What was decided about is what runs: the world is that of the graph
as it is now, and what the call does is bound whenever people are asked.
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

from sealpoint.adapters.face import GuardedRuns, RunWatch, to_display_json
from sealpoint.adapters.search import Memory
from sealpoint.codec import Registry
from sealpoint.errors import ResumeRefused, UsageError
from sealpoint.gate import Thread
from sealpoint.world import World
from sealpoint_langgraph._configuration import (
    DELIBERATE,
    TICKET,
    CheckpointTarget,
    is_nested,
    rephrase_for_graph,
    task_on,
    token_of,
    with_pass,
)
from sealpoint_langgraph._conversion import Address, graph_paused, pending_writes
from sealpoint_langgraph._puts import RESUME
from sealpoint_langgraph._saver import SealedSaver
from sealpoint_langgraph._unsealed import require_accepted
from sealpoint_langgraph._world import world_again

# What a call of a guarded graph does, as JSON: people are shown it, and a statement binds it.
#
# No two different calls have the same JSON. At its top stand tags and nothing else (`resume`,
# `update`, `goto`, `graph`, `input`, `go on`, `edit`, `namespace`, `interrupt_before`,
# `interrupt_after`, `from`); what a caller has chosen stands below the tag of its form.
#
# A call whose configuration makes it do something else than it says is refused.


_FRAMEWORK = "__pregel_"
_COPY = "__copy__"
_HARMLESS = {
    *(DELIBERATE, TICKET),
    "__pregel_node_finished",
    "__pregel_runtime",
    "__pregel_stream_messages_v2",
    "__pregel_strict_resume",
    "__pregel_timed_attempt_observer",
}
"""Names that a server of the framework uses, or the guarded graph itself; none of them answers a
question, jumps, or makes another saver be asked."""
_Nodes = All | Sequence[str] | None


class Stops(NamedTuple):
    """Breakpoints: before and after which nodes a run stops."""

    before: _Nodes
    after: _Nodes

    def told(self) -> dict[str, Any]:
        """Those that there are, by the framework's names for them."""
        named = {"interrupt_before": self.before, "interrupt_after": self.after}
        return {
            name: nodes if isinstance(nodes, str) else list(nodes)
            for name, nodes in named.items()
            if nodes
        }

    def lifts(self, own: "Stops") -> bool:
        """Whether breakpoints of a call take the place of those of the graph, and lack some."""
        return any(_lacks(nodes, stop) for nodes, stop in zip(self, own, strict=True))


def _lacks(nodes: _Nodes, own: _Nodes) -> bool:
    if not nodes or not own or nodes == "*":
        return False
    return isinstance(nodes, str) or own == "*" or not set(own) <= set(nodes)


def run_operation(
    value: Any, registry: Registry, *, own: Stops, call: Stops, binds: bool
) -> dict[str, Any] | None:
    """What a run is given, beside what was saved; None if nothing.

    Args:
        value: The input, or a command, or None.
        registry: Which types are allowed.
        own: The breakpoints of the graph.
        call: Those that the call has of its own.
        binds: Whether a new turn answers something, or needs the approval of people.

    Raises:
        TypeNotAllowed: It holds a type that the registry does not allow.
    """
    if isinstance(value, Command):
        told = _command(value, registry)
        if told:
            return told | call.told()
        value = None
    if value is None:
        # A breakpoint leaves no question behind: who lets the run pass it answers one.
        stops = any((*own, *call))
        return {"go on": "past a breakpoint"} | call.told() if stops else None
    if binds or call.lifts(own):
        return {"input": to_display_json(value, registry)} | call.told()
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
    """What an edit writes: its steps in their order, and the writes of each.

    Raises:
        TypeNotAllowed: It holds a type that the registry does not allow.
    """
    told = [[_edit(edit, registry) for edit in superstep] for superstep in supersteps]
    return {"edit": told, "namespace": lane} if lane else {"edit": told}


def _edit(edit: Sequence[Any], registry: Registry) -> dict[str, Any]:
    if not isinstance(edit, Sequence):
        return {"values": to_display_json(edit, registry)}
    values, as_node, task = (*edit, None, None)[:3]
    if as_node == _COPY and isinstance(values, list):
        # A copy of a checkpoint, with edits of its own.
        told = {"edits": [_edit(each, registry) for each in values]}
    else:
        told = {"values": to_display_json(values, registry)}
    return told | {"as_node": as_node} | ({} if task is None else {"task_id": task})


def require_own_words(config: Mapping[str, Any]) -> None:
    """Refuse a call that steers the framework by names which graphs use to their subgraphs.

    They would answer a question, resume or load in the place of what the call says, and what was
    judged and approved would not be what runs.

    Raises:
        UsageError: There is such a name.
    """
    for name in config.get("configurable") or {}:
        if str(name).startswith(_FRAMEWORK) and name not in _HARMLESS:
            raise UsageError(
                f"configuration: {name!r} is one of the framework's own names and may not be set",
                hint="Take out of configurable what begins with __pregel_, and answer with "
                "Command(resume=...).",
            )


# What stops a guarded run when an operator pauses its thread, or another run takes it over.
#
# A graph is stopped before its next step. Inside of a step, a node or an entrypoint may call
# tasks of the functional API one after the other: it is stopped before the next of these. What
# has been done before a pause is saved by then or on its way, and is not done again when the run
# goes on.
#
# Refusing to save would come too late for either: the framework saves in the background, and of
# the tasks that code calls it tells nobody what could not be saved.


PAUSED = "paused by an operator"
"""Why a run was stopped, as the framework tells it on."""


class Pausable(Protocol):
    """A thread, as far as a pause goes."""

    has_begun: bool
    """Whether a run may have taken a step."""
    at_work: set[object]
    """What of a run has begun and not ended."""

    @property
    def paused(self) -> bool:
        """Whether an operator has stopped it; an error if a run has lost it."""


class PauseControl(RunControl):
    """Asks before every step whether the run may go on."""

    __slots__ = ("_also", "_at_exit", "_thread")

    def __init__(self, thread: Pausable, also: RunControl | None, *, at_exit: bool) -> None:
        super().__init__()
        self._thread = thread
        self._also = also
        self._at_exit = at_exit
        """Whether all is saved when the run ends, and not before."""

    @property
    def drain_requested(self) -> bool:
        if self._also is not None and self._also.drain_requested:
            self.request_drain(self._also.drain_reason or "shutdown")
        elif self._thread.paused:
            if self._at_exit:
                # A subgraph that ends orderly saves nothing then; one that is broken off does.
                raise GraphDrained(PAUSED)
            self.request_drain(PAUSED)
        return super().drain_requested


class TaskStop(BaseCallbackHandler):
    """Asks before every task that code of a run calls whether the run may go on.

    The framework asks nobody there, but it tells who listens, and lets a listener raise. A task is
    known by its namespace: what else begins in that is a part of it, and is not stopped. A graph
    that a node runs on another thread is not stopped either; that thread has pauses of its own.

    Args:
        thread: The thread of the run.
        every: Stop whatever begins, because tasks cannot be told from the rest.
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
        """The callbacks of a call, and this one."""
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
        """Something has ended."""
        del outputs
        self._thread.at_work.discard(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Something has failed; what was cancelled may go on in a thread of its own."""
        if isinstance(error, Exception):
            self._thread.at_work.discard(run_id)


def _is_called(path: object) -> bool:
    """Whether the path of a task is that of one which code calls."""
    return isinstance(path, tuple) and (path[0], path[-1]) == ("__pregel_push", True)


class _Asked:
    """A thread that is not paused, and takes note of who asks."""

    def __init__(self, log: list[str]) -> None:
        self._log = log
        self.has_begun = False
        self.at_work = set[object]()

    @property
    def paused(self) -> bool:
        self._log.append("asked")
        return False


@cache
def tasks_are_told() -> bool:
    """Whether this release of the framework tells listeners of tasks, tried out on a tiny one."""
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
    """A call as the gate has to judge it: from where, in which world, and why."""

    config: RunnableConfig
    thread: Thread
    target: CheckpointTarget
    older: dict[str, str]
    """Older checkpoints of subgraphs that it begins from."""
    deliberate: Any
    world: World

    @property
    def begins_anew(self) -> bool:
        """Whether an input is a new turn; the framework goes on with a run that it knows again."""
        loaded = self.thread.adapter.snapshot("", self.target.root)
        state = None if loaded is None else loaded.state
        if loaded is None or not (isinstance(state, dict) and state.get("channel_versions")):
            return True
        # As the framework finds it: beside the thread where the metadata do not have it.
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
    ) -> None:
        self.saver = saver
        self.actor = actor
        self._world = world
        """What the caller declared; without it, the world of the graph that is about to run."""
        self._idempotent = idempotent
        """The nodes that may do again what they did."""
        self._unsealed = unsealed
        """What the graph may read although nobody seals it."""
        self._files = files
        """The data files that count."""
        self._memory: Memory | None = None
        self._runs = GuardedRuns.of(saver.store)

    def for_copy(self) -> "CallGate":
        """The gate of a copy of the graph, which may be changed without it."""
        return copy.copy(self)

    def world(self, graph: Any) -> World:
        """What a graph is able to do, now.

        Raises:
            WorldInvalid: It says more than a world can hold.
        """
        if self._world is not None:
            return self._world
        world, self._memory = world_again(graph, self._memory, self._files)
        return world

    def entry(self, graph: Any, config: RunnableConfig) -> _Entry:
        """Read a call.

        Raises:
            UsageError: Its configuration says something else than the call, or the graph was given
                another saver.
        """
        require_own_words(config)
        self._require_own_saver(graph)
        require_accepted(graph, self._unsealed)
        thread = self.saver.store.thread(Address.of(config).thread)
        target = CheckpointTarget.of(config)
        deliberate = (config.get("configurable") or {}).get(DELIBERATE)
        older = target.older(thread.adapter)
        return _Entry(config, thread, target, older, deliberate, self.world(graph))

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
        """What tells a run before its next step whether it may go on."""
        return RunWatch(self.saver.store.thread(Address.of(config).thread))

    def run(
        self,
        graph: Any,
        config: RunnableConfig,
        value: Any,
        named: Mapping[str, Any],
        watch: RunWatch,
    ) -> AbstractContextManager[RunnableConfig]:
        """Let a run in, with what it is given."""
        entry = self.entry(graph, config)
        own = Stops(graph.interrupt_before_nodes, graph.interrupt_after_nodes)
        call = Stops(named.get("interrupt_before"), named.get("interrupt_after"))
        is_turn = value is not None and not isinstance(value, Command)

        def told(*, binds: bool) -> dict[str, Any] | None:
            # The framework does not look at an input if it goes on with a run that it knows again.
            looks = not (is_turn and (binds or any((*own, *call)))) or entry.begins_anew
            registry = self.saver.store.registry
            return run_operation(
                value if looks else None, registry, own=own, call=call, binds=binds
            )

        operation = told(binds=False)
        offer = (lambda: told(binds=True)) if is_turn and operation is None else None
        stop = TaskStop(watch, every=not tasks_are_told())
        listeners = stop.among(config.get("callbacks"))
        stopped = cast("RunnableConfig", {**config, "callbacks": listeners})
        # An answer to a run that has finished makes nothing run, whatever people say to it.
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
        """Whether only nodes would run that may do again what they did, or nothing would.

        What a run did that saved nothing are nodes that would run now.
        """
        would_run = {*graph.get_state(entry.config).next, *_jumps(value)}
        if would_run:
            return self._idempotent.issuperset(would_run)
        # A jump that a call brought waits beside the checkpoint; an answer that nobody waits for
        # makes nothing run.
        found = entry.thread.adapter.snapshot("", entry.target.root)
        waiting = () if found is None else pending_writes(found.results)
        return all(channel == RESUME for _, channel, _ in waiting)

    def edit(
        self, graph: Any, config: RunnableConfig, supersteps: Sequence[Sequence[Any]]
    ) -> AbstractContextManager[RunnableConfig]:
        """Let an edit in, with what it writes."""
        lane, registry = Address.of(config).lane, self.saver.store.registry
        operation = edit_operation(supersteps, lane, registry)
        return self._entered(self.entry(graph, config), operation, edits=True)

    def turn(self, config: RunnableConfig) -> asyncio.Lock:
        """What gives a call of the running event loop its turn to be decided."""
        return self._runs.turn(Address.of(config).thread)

    def has_let_in(self, config: RunnableConfig) -> bool:
        """Whether an edit of a subgraph is one that the graph around it has been let in for."""
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
        """Have a call decided and recorded, and give it its pass for as long as it takes."""
        thread, older = entry.thread, entry.older
        if older:
            # People are shown which ones, and the decision is bound to them.
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
