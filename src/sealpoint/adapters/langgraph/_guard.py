# SPDX-License-Identifier: Apache-2.0
"""`guard`: a graph whose every run and edit goes through the gate.

The saver sees what is loaded, never with what a run is about to go on. The guarded graph sees both:
it binds the answer, the input or the edit to the decision, has that recorded, and hands the run a
pass which the saver asks for. A pause is looked up before every step, in every durability mode,
because refusing to save comes too late: the next nodes have run by then.
"""

import copy
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Self, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    merge_configs,
    var_child_runnable_config,
)
from langgraph.errors import GraphDrained
from langgraph.pregel import Pregel
from langgraph.runtime import RunControl
from langgraph.types import Command

from sealpoint.adapters.langgraph._aim import Aim, is_nested
from sealpoint.adapters.langgraph._gate import (
    DELIBERATE,
    TICKET,
    in_words_of_graphs,
    require_reason,
)
from sealpoint.adapters.langgraph._saver import SealedSaver
from sealpoint.adapters.langgraph._shown import shown
from sealpoint.adapters.langgraph._tuples import Address
from sealpoint.adapters.langgraph._world import world_of
from sealpoint.errors import Paused, ResumeRefused, UsageError
from sealpoint.gate import Thread
from sealpoint.world import World

__all__ = ["deliberately", "guard"]

_G = TypeVar("_G", bound=Pregel[Any, Any, Any, Any])
_PASS_BYTES = 16
_COORDINATES = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


def guard(
    graph: _G,
    saver: SealedSaver,
    *,
    actor: str,
    world: World | Mapping[str, Any] | None = None,
) -> _G:
    """The same graph, behind the gate.

    It has the whole interface of the graph. A run, an answer, an older checkpoint or an edit that
    the policy does not simply allow raises `NeedsApproval` or `ResumeRefused` before any node runs;
    after the approval, the same call passes once.

    Args:
        graph: A compiled graph.
        saver: Where its checkpoints are kept; it replaces the checkpointer of the graph.
        actor: Who goes on, for the record: a claim, unlike the identity that the store was opened
            with.
        world: What the graph is able to do; without it, what `world_of(graph)` finds.

    Raises:
        UsageError: There is no actor, or the graph is not compiled.
    """
    if not isinstance(graph, Pregel):
        raise UsageError(f"guard: expected a compiled graph, found {type(graph).__name__}")
    if not actor.strip():
        raise UsageError("guard: expected who goes on as actor, found none")
    declared = world_of(graph) if world is None else World.of(world)
    gate = _Gate(saver, actor, cast("World", declared))
    return cast("_G", _guarded(graph.copy({"checkpointer": saver}), gate))


def deliberately(config: RunnableConfig, reason: str) -> RunnableConfig:
    """A configuration that says why an unusual run is meant, where the policy asks for that.

    Args:
        config: The configuration of the call.
        reason: Why; it is recorded.
    """
    found = {**(config.get("configurable") or {}), DELIBERATE: reason}
    return cast("RunnableConfig", {**config, "configurable": found})


class _Control(RunControl):
    """Asks before every step whether the run may go on."""

    __slots__ = ("_also", "_at_exit", "_thread")

    def __init__(self, thread: Thread, also: RunControl | None, *, at_exit: bool) -> None:
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
                raise GraphDrained(_PAUSED)
            self.request_drain(_PAUSED)
        return super().drain_requested


_PAUSED = "paused by an operator"
_HINT = (
    'Where the policy only wants a reason, pass deliberately(config, "why") instead of the '
    "configuration; anything else that it refuses, it has to allow first: sealpoint policy show."
)


class _Gate:
    """Decides about the runs of one guarded graph."""

    def __init__(self, saver: SealedSaver, actor: str, world: World) -> None:
        self.saver = saver
        self.actor = actor
        self.world = world

    @contextmanager
    def entered(self, config: RunnableConfig, brought: "_Brought") -> Iterator[RunnableConfig]:
        """Have a run decided and recorded, and give it its pass for as long as it takes."""
        address = Address.of(config)
        thread = self.saver.store.thread(address.thread)
        configurable = config.get("configurable") or {}
        aim, deliberate = Aim.of(config), configurable.get(DELIBERATE)
        older = aim.older(thread)
        require_reason(thread, older, deliberate)
        answer = brought(self.saver, thread, config)
        try:
            session = thread.begin(
                world=self.world,
                ref=aim.root,
                answer={"from": older, "answer": answer} if older else answer,
                actor=self.actor,
                deliberate=deliberate,
            )
        except ResumeRefused as error:
            raise in_words_of_graphs(error, _HINT) from error
        token = secrets.token_hex(_PASS_BYTES)
        self.saver.runs.grant(address.thread, token, self.world, aim.root, session)
        try:
            yield cast(
                "RunnableConfig", {**config, "configurable": {**configurable, TICKET: token}}
            )
            if self.saver.runs.was_held(token):
                raise _paused(thread)
        except GraphDrained as drained:
            if drained.reason == _PAUSED:
                raise _paused(thread) from drained
            raise
        finally:
            self.saver.runs.revoke(address.thread, token)

    def control(self, config: RunnableConfig, named: Mapping[str, Any]) -> RunControl:
        """What stops a run before its next step."""
        thread = self.saver.store.thread(Address.of(config).thread)
        return _Control(thread, named.get("control"), at_exit=named.get("durability") == "exit")


_Brought = Callable[[SealedSaver, Thread, RunnableConfig], Any]
"""What a call brings in from outside: None if nothing."""


def _input(value: Any, *, stops: bool) -> _Brought:
    def brought(saver: SealedSaver, thread: Thread, _config: RunnableConfig) -> Any:
        registry = saver.store.registry
        if value is None:
            # A breakpoint leaves no question behind: who lets the run pass it answers one.
            return {"go on": "past a breakpoint"} if stops else None
        if not isinstance(value, Command):
            # A new turn answers nothing, unless the run waits for an answer.
            return {"input": shown(value, registry)} if thread.question is not None else None
        parts = {"resume": value.resume, "update": value.update, "goto": value.goto or None}
        told = {name: shown(part, registry) for name, part in parts.items() if part is not None}
        return told["resume"] if set(told) == {"resume"} else told or None

    return brought


def _edits(supersteps: Sequence[Sequence[Any]]) -> _Brought:
    def brought(saver: SealedSaver, _thread: Thread, config: RunnableConfig) -> Any:
        registry = saver.store.registry
        told = [
            {
                "values": shown(edit.values, registry),
                "as_node": edit.as_node,
                **({} if edit.task_id is None else {"task_id": edit.task_id}),
            }
            for superstep in supersteps
            for edit in superstep
        ]
        lane = Address.of(config).lane
        return {"edit": told, "namespace": lane} if lane else {"edit": told}

    return brought


def _paused(thread: Thread) -> Paused:
    return Paused(
        f"thread {thread.name!r}: expected it to run, found it paused; what had been done is kept"
    )


def _guarded(graph: Any, gate: _Gate) -> Any:
    found = copy.copy(graph)
    found.__class__ = _class_of(cast("Any", type(graph)))
    found.__dict__["_sealpoint_gate"] = gate
    return found


class _Guarded(Pregel[Any, Any, Any, Any]):
    """A compiled graph behind the gate; mixed into the class of the graph that it was."""

    _sealpoint_gate: _Gate
    _sealpoint_base: type

    def copy(self, update: dict[str, Any] | None = None) -> Self:
        plain = copy.copy(self)
        plain.__class__ = self._sealpoint_base
        gate = plain.__dict__.pop("_sealpoint_gate")
        return cast("Self", _guarded(plain.copy(update), gate))

    def stream(self, input: Any, config: RunnableConfig | None = None, **named: Any) -> Any:  # noqa: A002
        if self._is_nested(config):
            return super().stream(input, config, **named)
        return self._streamed(input, config, named)

    def _streamed(
        self, value: Any, config: RunnableConfig | None, named: dict[str, Any]
    ) -> Iterator[Any]:
        gate, merged = self._sealpoint_gate, self._merged(config)
        named["control"] = gate.control(merged, named)
        with gate.entered(merged, _input(value, stops=self._stops(named))) as let_in:
            yield from super().stream(value, let_in, **named)

    def astream(self, input: Any, config: RunnableConfig | None = None, **named: Any) -> Any:  # noqa: A002
        if self._is_nested(config):
            return super().astream(input, config, **named)
        return self._astreamed(input, config, named)

    async def _astreamed(
        self, value: Any, config: RunnableConfig | None, named: dict[str, Any]
    ) -> AsyncIterator[Any]:
        gate, merged = self._sealpoint_gate, self._merged(config)
        named["control"] = gate.control(merged, named)
        with gate.entered(merged, _input(value, stops=self._stops(named))) as let_in:
            async for chunk in super().astream(value, let_in, **named):
                yield chunk

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[Any]]
    ) -> RunnableConfig:
        merged = self._merged(config)
        with self._sealpoint_gate.entered(merged, _edits(supersteps)) as let_in:
            return _without_pass(super().bulk_update_state(let_in, supersteps))

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[Any]]
    ) -> RunnableConfig:
        merged = self._merged(config)
        with self._sealpoint_gate.entered(merged, _edits(supersteps)) as let_in:
            return _without_pass(await super().abulk_update_state(let_in, supersteps))

    def _stops(self, named: Mapping[str, Any]) -> bool:
        """Whether the graph, or this call, has breakpoints."""
        own = (self.interrupt_before_nodes, self.interrupt_after_nodes)
        return any((*own, named.get("interrupt_before"), named.get("interrupt_after")))

    def _is_nested(self, config: RunnableConfig | None) -> bool:
        """Whether a task of another run calls, which went through a gate of its own.

        The framework also hands a task's configuration on where none is given, unless the call
        names a checkpoint of its own.
        """
        own = merge_configs(self.config, config)
        found = own.get("configurable") or {}
        if is_nested(own) or any(found.get(key) for key in _COORDINATES):
            return is_nested(own)
        return is_nested(var_child_runnable_config.get())

    def _merged(self, config: RunnableConfig | None) -> RunnableConfig:
        return ensure_config(merge_configs(self.config, config))


@cache
def _class_of(base: type) -> type:
    """The class of guarded graphs that are otherwise of a class."""
    return type(f"Guarded{base.__name__}", (_Guarded, base), {"_sealpoint_base": base})


def _without_pass(config: RunnableConfig) -> RunnableConfig:
    found = {
        key: value for key, value in (config.get("configurable") or {}).items() if key != TICKET
    }
    return cast("RunnableConfig", {**config, "configurable": found})
