# SPDX-License-Identifier: Apache-2.0
"""The gate before every call of a guarded graph.

A call is read (from where, in which world, what it does), decided and recorded, and then handed a
pass which the saver asks for. What was decided about is what runs: the world is that of the graph
as it is now, and what the call does is bound whenever people are asked.
"""

import asyncio
import copy
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.types import Command

from sealpoint.adapters.langgraph._aim import Aim, is_nested
from sealpoint.adapters.langgraph._control import (
    PAUSED,
    RunWatch,
    TaskStop,
    paused_error,
    tasks_are_told,
)
from sealpoint.adapters.langgraph._memory import Memory
from sealpoint.adapters.langgraph._operation import (
    Stops,
    edit_operation,
    require_own_words,
    run_operation,
)
from sealpoint.adapters.langgraph._passes import (
    DELIBERATE,
    TICKET,
    Pass,
    in_words_of_graphs,
    task_on,
    with_pass,
)
from sealpoint.adapters.langgraph._saver import SealedSaver
from sealpoint.adapters.langgraph._tuples import Address
from sealpoint.adapters.langgraph._world import world_again
from sealpoint.errors import ResumeRefused, UsageError
from sealpoint.gate import Thread
from sealpoint.world import World

__all__ = ["CallGate"]

_PASS_BYTES = 16
_MISSING = object()
_HINT = (
    'Where the policy only wants a reason, pass deliberately(config, "why") instead of the '
    "configuration; anything else that it refuses, it has to allow first: sealpoint policy show."
)


class _Entry(NamedTuple):
    """A call as the gate has to judge it: from where, in which world, and why."""

    config: RunnableConfig
    thread: Thread
    aim: Aim
    older: dict[str, str]
    """Older checkpoints of subgraphs that it begins from."""
    deliberate: Any
    world: World

    @property
    def begins_anew(self) -> bool:
        """Whether an input is a new turn; the framework goes on with a run that it knows again."""
        loaded = self.thread.snapshot("", self.aim.root)
        state = None if loaded is None else loaded.state
        if loaded is None or not (isinstance(state, dict) and state.get("channel_versions")):
            return True
        # As the framework finds it: beside the thread where the metadata do not have it.
        named, told = self.config.get("configurable") or {}, self.config.get("metadata") or {}
        run = told["run_id"] if "run_id" in told else named.get("run_id") or None
        return bool(run != loaded.ref.metadata.get("run_id", _MISSING))


class CallGate:
    """Decides about the runs of one guarded graph."""

    def __init__(self, saver: SealedSaver, actor: str, world: World | None) -> None:
        self.saver = saver
        self.actor = actor
        self._world = world
        """What the caller declared; without it, the world of the graph that is about to run."""
        self._memory: Memory | None = None

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
        world, self._memory = world_again(graph, self._memory)
        return world

    def entry(self, graph: Any, config: RunnableConfig) -> _Entry:
        """Read a call.

        Raises:
            UsageError: Its configuration says something else than the call, or the graph was given
                another saver.
        """
        require_own_words(config)
        self._require_own_saver(graph)
        thread = self.saver.store.thread(Address.of(config).thread)
        aim, deliberate = Aim.of(config), (config.get("configurable") or {}).get(DELIBERATE)
        return _Entry(config, thread, aim, aim.older(thread), deliberate, self.world(graph))

    def _require_own_saver(self, graph: Any) -> None:
        found = graph.checkpointer
        if not isinstance(found, SealedSaver) or found.store is not self.saver.store:
            raise UsageError(
                "guarded graph: expected the saver that it was guarded with, found "
                f"{type(found).__name__}",
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
            offer,
            watch,
            (lambda: bool(graph.get_state(config).next)) if answers else None,
        )

    def edit(
        self, graph: Any, config: RunnableConfig, supersteps: Sequence[Sequence[Any]]
    ) -> AbstractContextManager[RunnableConfig]:
        """Let an edit in, with what it writes."""
        lane, registry = Address.of(config).lane, self.saver.store.registry
        return self._entered(self.entry(graph, config), edit_operation(supersteps, lane, registry))

    def turn(self, config: RunnableConfig) -> asyncio.Lock:
        """What gives a call of the running event loop its turn to be decided."""
        return self.saver.passes.order.turn(Address.of(config).thread)

    def has_let_in(self, config: RunnableConfig) -> bool:
        """Whether an edit of a subgraph is one that the graph around it has been let in for."""
        token = (config.get("configurable") or {}).get(TICKET)
        return self.saver.passes.is_living(Address.of(config).thread, token) and not is_nested(
            config
        )

    def pass_around(self, config: RunnableConfig) -> str | None:
        """The pass of the run whose own code calls, if the call is about the same thread."""
        thread = Address.of(config).thread
        token = (task_on(thread, self.saver.store) or {}).get(TICKET)
        return str(token) if self.saver.passes.is_living(thread, token) else None

    @contextmanager
    def _entered(
        self,
        entry: _Entry,
        operation: dict[str, Any] | None,
        offer: Callable[[], dict[str, Any] | None] | None = None,
        watch: RunWatch | None = None,
        would_run: Callable[[], bool] | None = None,
    ) -> Iterator[RunnableConfig]:
        """Have a call decided and recorded, and give it its pass for as long as it takes."""
        thread, passes, older = entry.thread, self.saver.passes, entry.older
        token = secrets.token_hex(_PASS_BYTES)
        if older:
            # People are shown which ones, and the decision is bound to them.
            told = offer or (lambda: operation)
            operation, offer = None, lambda: {**(told() or {}), "from": older}
        with passes.deciding(thread.name):
            try:
                session = thread.begin(
                    world=entry.world,
                    ref=entry.aim.root,
                    answer=operation,
                    actor=self.actor,
                    deliberate=entry.deliberate,
                    lanes=older,
                    offer=offer,
                    token=token,
                    would_run=would_run,
                )
            except ResumeRefused as error:
                raise in_words_of_graphs(error, _HINT) from error
            passes.grant(thread.name, Pass(token, entry.world, entry.aim.root, session))
        if watch is not None:
            watch.token = token
        try:
            yield with_pass(entry.config, token)
            if passes.was_held(token):
                raise paused_error(thread)
        except GraphDrained as drained:
            if drained.reason == PAUSED:
                raise paused_error(thread) from drained
            raise
        finally:
            passes.revoke(thread.name, token)
