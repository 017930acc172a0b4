# SPDX-License-Identifier: Apache-2.0
"""`guard`: a graph whose every run and edit goes through the gate.

The saver sees the loaded checkpoint, but never the new input of a run. The guarded graph sees both:
it binds the answer, the input or the edit to the decision, has the decision recorded, and gives the
run a pass, which the saver checks. It looks for a pause before every step, in every durability
mode, because refusing to save comes too late: the next nodes have run by then.
"""

import copy
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    aclosing,
    nullcontext,
)
from functools import cache, partial
from pathlib import PurePath
from typing import Any, Self, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    merge_configs,
    var_child_runnable_config,
)
from langgraph.pregel import Pregel

from sealpoint.adapters.guarded_runs import entered_off_loop
from sealpoint.adapters.world_parts import watched_values
from sealpoint.api import Store
from sealpoint.errors import UsageError
from sealpoint.world import JSON, World
from sealpoint_langgraph._call_gate import CallGate, PauseControl
from sealpoint_langgraph._configuration import (
    DELIBERATE,
    for_reading,
    is_nested,
    with_pass,
)
from sealpoint_langgraph._declared_types import check_declared
from sealpoint_langgraph._saver import SealedSaver
from sealpoint_langgraph._unsealed_inputs import check_names, require_accepted
from sealpoint_langgraph._world import world_of

_G = TypeVar("_G", bound=Pregel[Any, Any, Any, Any])
_MAPPERS = ("_output_mapper", "_state_mapper")
"""The attributes that convert the stream of a graph to typed output."""
_COORDINATES = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


def guard(
    graph: _G,
    saver: SealedSaver,
    *,
    actor: str,
    world: World | Mapping[str, Any] | None = None,
    idempotent: Collection[str] = (),
    accept_unsealed: Collection[str] = (),
    files: Iterable[str | PurePath] = (),
    watch: Mapping[str, JSON] | None = None,
) -> _G:
    """The same graph, behind the gate.

    It has the whole interface of the graph. A run, an answer, an older checkpoint or an edit that
    the policy does not simply allow raises `NeedsApproval` or `ResumeRefused` before any node runs;
    after the approval, the same call passes once.

    Args:
        graph: A compiled graph.
        saver: The saver of its checkpoints; it replaces the checkpointer of the graph.
        actor: The name of the caller, for the record: a claim, unlike the identity that the store
            was opened with.
        world: The capabilities of the graph; without it, the result of `world_of(graph)` at each
            run.
        idempotent: The nodes that may repeat their work: where only they would run, a run that
            received an answer and died before it had saved anything needs no approval.
        accept_unsealed: The unsealed sources that the graph may read: `cache` for a cache of nodes,
            `memory` for a long-term memory, `remote` for graphs that run elsewhere.
        files: Data files that are part of the world, such as prompts, or folders of them; read at
            each run.
        watch: Values that decide what the graph does, such as a limit, by name. They are part of
            the world, in the class `other`, and are read at each run.

    Raises:
        UsageError: The actor is missing, the graph is not compiled or lacks one of the nodes, the
            saver is another one, or the graph reads an unsealed source that is not accepted.
        TypeNotAllowed: Every possible value of a channel, or of the artifact of a tool, is of a
            type that cannot be saved.
        WorldInvalid: A file does not exist, or the graph has more than a world can hold.
    """
    if not isinstance(graph, Pregel):
        raise UsageError(f"guard: expected a compiled graph, found {type(graph).__name__}")
    if not isinstance(saver, SealedSaver):
        raise UsageError(f"guard: expected a SealedSaver, found {type(saver).__name__}")
    if not actor.strip():
        raise UsageError("guard: actor= is empty; name who resumes the run")
    if unknown := sorted(set(idempotent) - set(graph.nodes)):
        raise UsageError(f"guard: idempotent= names {unknown[0]!r}, and the graph has no such node")
    accepted = check_names(accept_unsealed)
    gate = CallGate(
        saver,
        actor,
        world=World.of(world),
        idempotent=frozenset(idempotent),
        unsealed=accepted,
        files=tuple(files),
        watched=watched_values(watch, world),
    )
    # Report capabilities that cannot be determined and types that cannot be saved now, and not in
    # the first run.
    require_accepted(graph, accepted)
    gate.world(graph)
    check_declared(graph, saver.store.registry)
    return cast("_G", _guarded(_copied(graph, {"checkpointer": saver.behind_guard()}), gate))


def declared_world(graph: Any) -> World:
    """The capabilities of a graph as the gate sees them: those of its guard, if it has one.

    Raises:
        UsageError: The graph is not compiled.
        WorldInvalid: The graph has more than a world can hold.
    """
    if isinstance(graph, _Guarded):
        return graph.sealpoint_world()
    return world_of(graph)


def guarded_store(graph: Any) -> Store | None:
    """The store behind a graph from `guard`; None for any other graph."""
    return graph.sealpoint_store() if isinstance(graph, _Guarded) else None


def deliberately(config: RunnableConfig, reason: str) -> RunnableConfig:
    """A configuration that justifies an unusual run, where the policy requires a reason.

    Args:
        config: The configuration of the call.
        reason: The reason; it is recorded.
    """
    found = {**(config.get("configurable") or {}), DELIBERATE: reason}
    return cast("RunnableConfig", {**config, "configurable": found})


def _guarded(graph: Any, gate: CallGate) -> Any:
    found = copy.copy(graph)
    found.__class__ = _class_of(cast("Any", type(graph)))
    found.__dict__["_sealpoint_gate"] = gate
    return found


def _copied(graph: Any, update: dict[str, Any] | None) -> Any:
    """A copy of a graph, including what the framework's own copies lose."""
    found = graph.copy(update)
    for name in _MAPPERS:
        if getattr(graph, name, None) is not None:
            setattr(found, name, getattr(graph, name))
    return found


class _Guarded(Pregel[Any, Any, Any, Any]):
    """A compiled graph behind the gate; mixed into the original class of the graph."""

    _sealpoint_gate: CallGate
    _sealpoint_base: type

    def sealpoint_world(self) -> World:
        """The capabilities of a run as the gate sees them."""
        return self._sealpoint_gate.world(self)

    def sealpoint_store(self) -> Store:
        """The store of the saver."""
        return self._sealpoint_gate.saver.store

    def copy(self, update: dict[str, Any] | None = None) -> Self:
        plain = copy.copy(self)
        plain.__class__ = self._sealpoint_base
        gate = plain.__dict__.pop("_sealpoint_gate")
        return cast("Self", _guarded(_copied(plain, update), gate.for_copy()))

    # ------------------------------------------------------------------ reading, for anybody

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> Any:
        return super().get_state(for_reading(config), subgraphs=subgraphs)

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> Any:
        return await super().aget_state(for_reading(config), subgraphs=subgraphs)

    def get_state_history(self, config: RunnableConfig, **named: Any) -> Iterator[Any]:
        return super().get_state_history(for_reading(config), **named)

    def aget_state_history(self, config: RunnableConfig, **named: Any) -> AsyncIterator[Any]:
        return super().aget_state_history(for_reading(config), **named)

    # ------------------------------------------------------------------ running and editing

    def stream(self, input: Any, config: RunnableConfig | None = None, **named: Any) -> Any:  # noqa: A002
        if self._is_nested(config):
            return super().stream(input, config, **named)
        return self._streamed(input, config, named)

    def _streamed(
        self, value: Any, config: RunnableConfig | None, named: dict[str, Any]
    ) -> Iterator[Any]:
        with self._let_in(value, config, named) as let_in:
            yield from super().stream(value, let_in, **named)

    def astream(self, input: Any, config: RunnableConfig | None = None, **named: Any) -> Any:  # noqa: A002
        if self._is_nested(config):
            return super().astream(input, config, **named)
        return self._astreamed(input, config, named)

    async def _astreamed(
        self, value: Any, config: RunnableConfig | None, named: dict[str, Any]
    ) -> AsyncIterator[Any]:
        # The inner stream is closed together with this one, and not when the garbage collector
        # finds it.
        async with (
            self._off_loop(config, partial(self._let_in, value, config, named)) as let_in,
            aclosing(cast("Any", super().astream(value, let_in, **named))) as stream,
        ):
            async for chunk in stream:
                yield chunk

    def _let_in(
        self, value: Any, config: RunnableConfig | None, named: dict[str, Any]
    ) -> AbstractContextManager[RunnableConfig]:
        gate, merged = self._sealpoint_gate, self._merged(config)
        watch = gate.watch(merged)
        at_exit = named.get("durability") == "exit"
        named["control"] = PauseControl(watch, named.get("control"), at_exit=at_exit)
        own = watch.token = gate.pass_around(merged)
        if own is not None:
            # Code of a node runs the graph on its own thread, as a part of its run.
            return nullcontext(with_pass(config or {}, own))
        return gate.run(self, merged, value, named, watch)

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[Any]]
    ) -> RunnableConfig:
        steps = [list(superstep) for superstep in supersteps]
        with self._let_edit(config, steps) as let_in:
            return for_reading(super().bulk_update_state(let_in, steps))

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[Any]]
    ) -> RunnableConfig:
        steps = [list(superstep) for superstep in supersteps]
        async with self._off_loop(config, partial(self._let_edit, config, steps)) as let_in:
            return for_reading(await super().abulk_update_state(let_in, steps))

    def _let_edit(
        self, config: RunnableConfig, steps: Sequence[Sequence[Any]]
    ) -> AbstractContextManager[RunnableConfig]:
        gate, merged = self._sealpoint_gate, self._merged(config)
        if gate.has_let_in(merged):
            return nullcontext(config)
        own = gate.pass_around(merged)
        if own is not None:
            return nullcontext(with_pass(config, own))
        return gate.edit(self, merged, steps)

    def _off_loop(
        self,
        config: RunnableConfig | None,
        let: Callable[[], AbstractContextManager[RunnableConfig]],
    ) -> AbstractAsyncContextManager[RunnableConfig]:
        """Have a call admitted without blocking the other tasks of the event loop."""
        return entered_off_loop(self._sealpoint_gate.turn(self._merged(config)), let)

    def _is_nested(self, config: RunnableConfig | None) -> bool:
        """Whether the caller is a task of another run, which passed its own gate.

        The framework also passes a task's configuration on where the caller gives none, unless the
        call names a checkpoint of its own.
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
    """The guarded subclass of a class of graphs."""
    return type(f"Guarded{base.__name__}", (_Guarded, base), {"_sealpoint_base": base})
