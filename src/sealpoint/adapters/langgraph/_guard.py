# SPDX-License-Identifier: Apache-2.0
"""`guard`: a graph whose every run and edit goes through the gate.

The saver sees what is loaded, never with what a run is about to go on. The guarded graph sees both:
it binds the answer, the input or the edit to the decision, has that recorded, and hands the run a
pass which the saver asks for. A pause is looked up before every step, in every durability mode,
because refusing to save comes too late: the next nodes have run by then.
"""

import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Self, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    merge_configs,
    var_child_runnable_config,
)
from langgraph.pregel import Pregel

from sealpoint.adapters.langgraph._aim import is_nested
from sealpoint.adapters.langgraph._call_gate import CallGate
from sealpoint.adapters.langgraph._gate import DELIBERATE, TICKET
from sealpoint.adapters.langgraph._saver import SealedSaver
from sealpoint.errors import UsageError
from sealpoint.world import World

__all__ = ["deliberately", "guard"]

_G = TypeVar("_G", bound=Pregel[Any, Any, Any, Any])
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
        world: What the graph is able to do; without it, what `world_of(graph)` finds at each run.

    Raises:
        UsageError: There is no actor, or the graph is not compiled.
    """
    if not isinstance(graph, Pregel):
        raise UsageError(f"guard: expected a compiled graph, found {type(graph).__name__}")
    if not actor.strip():
        raise UsageError("guard: expected who goes on as actor, found none")
    gate = CallGate(saver, actor, World.of(world))
    gate.world(graph)  # what cannot be told is told now, and not in the first run
    return cast("_G", _guarded(graph.copy({"checkpointer": saver}), gate))


def deliberately(config: RunnableConfig, reason: str) -> RunnableConfig:
    """A configuration that says why an unusual run is meant, where the policy asks for that.

    Args:
        config: The configuration of the call.
        reason: Why; it is recorded.
    """
    found = {**(config.get("configurable") or {}), DELIBERATE: reason}
    return cast("RunnableConfig", {**config, "configurable": found})


def _guarded(graph: Any, gate: CallGate) -> Any:
    found = copy.copy(graph)
    found.__class__ = _class_of(cast("Any", type(graph)))
    found.__dict__["_sealpoint_gate"] = gate
    return found


class _Guarded(Pregel[Any, Any, Any, Any]):
    """A compiled graph behind the gate; mixed into the class of the graph that it was."""

    _sealpoint_gate: CallGate
    _sealpoint_base: type

    def copy(self, update: dict[str, Any] | None = None) -> Self:
        plain = copy.copy(self)
        plain.__class__ = self._sealpoint_base
        gate = plain.__dict__.pop("_sealpoint_gate")
        return cast("Self", _guarded(plain.copy(update), gate.for_copy()))

    def stream(self, input: Any, config: RunnableConfig | None = None, **named: Any) -> Any:  # noqa: A002
        if self._is_nested(config):
            return super().stream(input, config, **named)
        return self._streamed(input, config, named)

    def _streamed(
        self, value: Any, config: RunnableConfig | None, named: dict[str, Any]
    ) -> Iterator[Any]:
        gate, merged = self._sealpoint_gate, self._merged(config)
        named["control"] = gate.control(merged, named)
        with gate.run(self, merged, value, named) as let_in:
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
        with gate.run(self, merged, value, named) as let_in:
            async for chunk in super().astream(value, let_in, **named):
                yield chunk

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[Any]]
    ) -> RunnableConfig:
        gate, merged = self._sealpoint_gate, self._merged(config)
        steps = [list(superstep) for superstep in supersteps]
        if gate.has_let_in(merged):
            return super().bulk_update_state(config, steps)
        with gate.edit(self, merged, steps) as let_in:
            return _without_pass(super().bulk_update_state(let_in, steps))

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[Any]]
    ) -> RunnableConfig:
        gate, merged = self._sealpoint_gate, self._merged(config)
        steps = [list(superstep) for superstep in supersteps]
        if gate.has_let_in(merged):
            return await super().abulk_update_state(config, steps)
        with gate.edit(self, merged, steps) as let_in:
            return _without_pass(await super().abulk_update_state(let_in, steps))

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
