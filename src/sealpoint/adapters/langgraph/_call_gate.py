# SPDX-License-Identifier: Apache-2.0
"""The gate before every call of a guarded graph.

A call is read (from where, in which world, what it does), decided and recorded, and then handed a
pass which the saver asks for. What was decided about is what runs: the world is that of the graph
as it is now, and what the call does is bound whenever people are asked.
"""

import copy
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command

from sealpoint.adapters.langgraph._aim import Aim, is_nested
from sealpoint.adapters.langgraph._control import (
    PAUSED,
    PauseControl,
    TaskStop,
    paused_error,
    tasks_are_told,
)
from sealpoint.adapters.langgraph._gate import (
    DELIBERATE,
    TICKET,
    in_words_of_graphs,
    require_reason,
)
from sealpoint.adapters.langgraph._memory import Memory
from sealpoint.adapters.langgraph._operation import (
    Stops,
    edit_operation,
    require_own_words,
    run_operation,
)
from sealpoint.adapters.langgraph._saver import SealedSaver
from sealpoint.adapters.langgraph._tuples import Address
from sealpoint.adapters.langgraph._world import world_again
from sealpoint.errors import Erased, ResumeRefused, UnknownCheckpoint, UnknownThread, UsageError
from sealpoint.gate import Measure, Rule, Thread
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

    @property
    def asks_people(self) -> bool:
        """Whether even a turn that brings nothing would answer something, or need approval."""
        if self.older or self.thread.question is not None:
            return True
        if not self.thread.id:
            return False  # nobody has saved anything yet
        try:
            found = self.thread.judge(
                world=self.world, ref=self.aim.root, deliberate=self.deliberate
            )
        except (Erased, UnknownCheckpoint, UnknownThread):
            return False  # there is nothing to go on from
        return any(
            reason.rule == Rule.ANSWER or reason.measure is Measure.APPROVAL
            for reason in found.reasons
        )


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
            ResumeRefused: It goes on from older checkpoints of subgraphs, and nobody says why.
        """
        require_own_words(config)
        self._require_own_saver(graph.checkpointer)
        thread = self.saver.store.thread(Address.of(config).thread)
        aim, deliberate = Aim.of(config), (config.get("configurable") or {}).get(DELIBERATE)
        older = aim.older(thread)
        require_reason(thread, older, deliberate)
        return _Entry(config, thread, aim, older, deliberate, self.world(graph))

    def _require_own_saver(self, found: object) -> None:
        if not isinstance(found, SealedSaver) or found.store is not self.saver.store:
            raise UsageError(
                "guarded graph: expected the saver that it was guarded with, found "
                f"{type(found).__name__}",
                hint="Give the graph another one by calling guard(graph, saver, actor=...) again.",
            )

    def run(
        self, graph: Any, config: RunnableConfig, value: Any, named: Mapping[str, Any]
    ) -> AbstractContextManager[RunnableConfig]:
        """Let a run in, with what it is given."""
        entry = self.entry(graph, config)
        own = Stops(graph.interrupt_before_nodes, graph.interrupt_after_nodes)
        call = Stops(named.get("interrupt_before"), named.get("interrupt_after"))
        is_turn = value is not None and not isinstance(value, Command)
        binds = is_turn and entry.asks_people
        if is_turn and (binds or any((*own, *call))) and not entry.begins_anew:
            value = None  # what is given is not looked at
        registry = self.saver.store.registry
        told = run_operation(value, registry, own=own, call=call, binds=binds)
        stop = TaskStop(entry.thread, every=not tasks_are_told())
        listeners = stop.among(config.get("callbacks"))
        stopped = cast("RunnableConfig", {**config, "callbacks": listeners})
        return self._entered(entry._replace(config=stopped), told)

    def edit(
        self, graph: Any, config: RunnableConfig, supersteps: Sequence[Sequence[Any]]
    ) -> AbstractContextManager[RunnableConfig]:
        """Let an edit in, with what it writes."""
        lane, registry = Address.of(config).lane, self.saver.store.registry
        return self._entered(self.entry(graph, config), edit_operation(supersteps, lane, registry))

    def has_let_in(self, config: RunnableConfig) -> bool:
        """Whether an edit of a subgraph is one that the graph around it has been let in for."""
        found = self.saver.runs.world(Address.of(config).thread, config)
        return found is not None and not is_nested(config)

    @contextmanager
    def _entered(self, entry: _Entry, operation: dict[str, Any] | None) -> Iterator[RunnableConfig]:
        """Have a call decided and recorded, and give it its pass for as long as it takes."""
        thread, runs = entry.thread, self.saver.runs
        try:
            session = thread.begin(
                world=entry.world,
                ref=entry.aim.root,
                answer={**(operation or {}), "from": entry.older} if entry.older else operation,
                actor=self.actor,
                deliberate=entry.deliberate,
            )
        except ResumeRefused as error:
            raise in_words_of_graphs(error, _HINT) from error
        token = secrets.token_hex(_PASS_BYTES)
        runs.grant(thread.name, token, entry.world, entry.aim.root, session)
        try:
            marks = {**(entry.config.get("configurable") or {}), TICKET: token}
            yield cast("RunnableConfig", {**entry.config, "configurable": marks})
            if runs.was_held(token):
                raise paused_error(thread)
        except GraphDrained as drained:
            if drained.reason == PAUSED:
                raise paused_error(thread) from drained
            raise
        finally:
            runs.revoke(thread.name, token)

    def control(self, config: RunnableConfig, named: Mapping[str, Any]) -> RunControl:
        """What stops a run before its next step."""
        thread = self.saver.store.thread(Address.of(config).thread)
        return PauseControl(thread, named.get("control"), at_exit=named.get("durability") == "exit")
