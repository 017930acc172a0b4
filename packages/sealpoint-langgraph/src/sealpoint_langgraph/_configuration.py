# SPDX-License-Identifier: Apache-2.0
"""Reading a configuration of the framework: the starting checkpoint of a run, and its identity.

A read is only a read: a caller that asks for a checkpoint gets it without any decision. A run that
`guard` has admitted carries a pass in its own configuration. It reads only the checkpoint that was
decided about, and it writes only in the session of the pass. Any other run states its base with
each write, in terms that the framework promises: the parent of a checkpoint, the checkpoint of
results, the namespace, and the source in the metadata; and its run-scoped control shows which
writes belong to one run.

An id next to the thread is not the only way to name a checkpoint: a map names one for each
namespace, and takes precedence. The gate judges the checkpoint that will be loaded, so this module
reads the configuration in the same way.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.runtime import Runtime

from sealpoint.adapters.guarded_runs import AdapterThread, RunPosition
from sealpoint.api import Store
from sealpoint.errors import ResumeRefused, UsageError
from sealpoint_langgraph._conversion import Address, require_text

# Streams of the framework show the configuration without names that begin like its own.
TICKET = "__pregel_sealpoint_ticket"
"""Where `guard` keeps the pass of a run."""
DELIBERATE = "__pregel_sealpoint_deliberate"
"""The key under which a caller justifies an unusual resume."""
TAKES = "__pregel_sealpoint_takes"
"""The key for the answer, approval or interrupted session that is the reason for a run."""

_RUNTIME = "__pregel_runtime"
_CHECKPOINTER = "__pregel_checkpointer"
_OF_RUNS = frozenset({TICKET, DELIBERATE, TAKES, _RUNTIME})

_SAID, _MEANT = 'pass deliberate="why"', 'pass deliberately(config, "why")'
_HINT = (
    "Run the graph through guard(graph, saver, actor=...), which asks for what is needed; where "
    'the policy only wants a reason, pass deliberately(config, "why") to the graph.'
)

_NESTED = "__pregel_read"
"""The key that the framework sets for a graph run by a task of another graph."""


def is_nested(config: Mapping[str, Any] | None) -> bool:
    """Whether a graph is run by a task of another one.

    Its value is a function. A configuration that came over a network may have the name, but no
    function.
    """
    return callable(((config or {}).get("configurable") or {}).get(_NESTED))


class CheckpointTarget(NamedTuple):
    """The checkpoints that a configuration names."""

    root: str | None
    """The checkpoint of the graph itself; None: the newest."""
    inner: dict[str, str]
    """The checkpoints of its subgraphs, by namespace."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "CheckpointTarget":
        """Read the configuration of a run that no other run has begun.

        Raises:
            UsageError: The value for a checkpoint is not a name.
        """
        _, lane, named = Address.of(config)
        by_lane = map_of((config.get("configurable") or {}).get("checkpoint_map"))
        inner = {key: value for key, value in by_lane.items() if key and value}
        if lane:
            # The framework begins at the root; only the map tells at which checkpoint.
            if named is not None and inner.setdefault(lane, named) != named:
                raise UsageError(
                    f"configuration: checkpoint_id and checkpoint_map name two checkpoints of "
                    f"namespace {lane!r}",
                    hint="Pass the configuration that get_state or get_state_history returned.",
                )
            lane, named = "", None
        if lane is not None and lane in by_lane:
            named = by_lane[lane] or None
        return cls(named, inner)

    def older(self, thread: AdapterThread) -> dict[str, str]:
        """The checkpoints of subgraphs that are not the newest of their namespace."""
        found = {}
        for lane, name in self.inner.items():
            newest = thread.snapshot(lane)
            if newest is None or newest.ref.id != name:
                found[lane] = name
        return found


def map_of(found: object) -> dict[str, str]:
    """The checkpoints that a configuration names by namespace.

    Raises:
        UsageError: The value is not such a map.
    """
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise UsageError(
            f"configuration: expected a map as checkpoint_map, found {type(found).__name__}",
            hint="Pass the configuration that get_state or get_state_history returned.",
        )
    for key, value in found.items():
        require_text(key, "name in checkpoint_map")
        require_text(value, "value in checkpoint_map")
    return dict(found)


def position_of(
    address: Address,
    config: Mapping[str, Any],
    store: Store,
    *,
    begins: bool,
    answered: bool,
    edits: bool,
) -> RunPosition:
    """The position of a run that writes.

    Args:
        address: The checkpoint that the write continues or adds to.
        config: The configuration of the write.
        store: The target store.
        begins: Whether a run or an edit begins with the write.
        answered: Whether the write answers or edits.
        edits: Whether it is part of an edit, if it is not part of a run.

    Raises:
        UsageError: The value for a checkpoint is not a name, or a reason is empty.
    """
    named = config.get("configurable") or {}
    token = token_of(config)
    if token is not None:
        return RunPosition(token=str(token))
    by_lane = map_of(named.get("checkpoint_map"))
    root = by_lane.get("") if address.lane else address.id
    around = task_on(address.thread, store)
    run = _control_of(around or {}) or _control_of(named)
    edits = edits and run is None
    return RunPosition(
        run=run,
        checkpoint=root or None,
        lanes={} if address.lane else {lane: id_ for lane, id_ in by_lane.items() if lane and id_},
        begins=begins,
        inside=around is not None,
        answered=answered or edits,
        edits=edits and around is None,
        deliberate=named.get(DELIBERATE),
    )


def _control_of(named: Mapping[str, Any]) -> object | None:
    """An object that all parts of a run share: the framework's control, also in subgraphs.

    A manual write has none, nor has an edit from outside of a run.
    """
    runtime = named.get(_RUNTIME)
    return runtime.control if isinstance(runtime, Runtime) else None


def token_of(config: Mapping[str, Any]) -> str | None:
    """The pass in a configuration, if it carries one."""
    found = (config.get("configurable") or {}).get(TICKET)
    return None if found is None else str(found)


def with_pass(config: RunnableConfig, token: str) -> RunnableConfig:
    """The same configuration, for the writes and reads of a guarded run."""
    found = {**(config.get("configurable") or {}), TICKET: token}
    return cast("RunnableConfig", {**config, "configurable": found})


def for_reading(config: RunnableConfig) -> RunnableConfig:
    """The same configuration without the keys of a run, to read with or to return."""
    named = config.get("configurable") or {}
    if named.keys().isdisjoint(_OF_RUNS):
        return config
    kept = {key: value for key, value in named.items() if key not in _OF_RUNS}
    return cast("RunnableConfig", {**config, "configurable": kept})


def is_run(config: Mapping[str, Any]) -> bool:
    """Whether a run is about to load a checkpoint; a read or an edit from outside is not a run.

    Wrappers of a saver pass the configuration on, so the configuration decides. The framework gives
    each run its own runtime, with a control. A server adds a runtime without a control to its
    reads. A node that reads with its own configuration passes the runtime of its task.
    """
    named = config.get("configurable") or {}
    around = (var_child_runnable_config.get() or {}).get("configurable") or {}
    return _control_of(named) is not None and named[_RUNTIME] is not around.get(_RUNTIME)


def task_on(thread: str, store: Store) -> Mapping[str, Any] | None:
    """The identity of the task whose code calls, if it runs on a thread of a store.

    A run itself puts its writes from outside of its tasks.
    """
    around = var_child_runnable_config.get()
    if not is_nested(around):
        return None
    found = (around or {}).get("configurable") or {}
    saver = found.get(_CHECKPOINTER)
    own = str(found.get("thread_id")) == thread and getattr(saver, "store", None) is store
    return found if own else None


def run_key_of(address: Address, config: Mapping[str, Any]) -> str | None:
    """The key of a run for its subgraphs: its pass, or its checkpoint."""
    token = token_of(config)
    if token is not None:
        return token
    named = config.get("configurable") or {}
    return map_of(named.get("checkpoint_map")).get("") if address.lane else address.id


def rephrase_for_graph(error: ResumeRefused, hint: str = _HINT) -> ResumeRefused:
    """The same refusal, with advice for a caller of a graph.

    Args:
        error: The refusal of the gate, which mentions the gate's own arguments.
        hint: The advice, unless the gate has a more specific one.
    """
    usual = error.hint == ResumeRefused.hint or "resume(world=...)" in error.hint
    return ResumeRefused(
        error.message.replace(_SAID, _MEANT),
        reasons=tuple(reason.replace(_SAID, _MEANT) for reason in error.reasons),
        hint=hint if usual else error.hint.replace(_SAID, _MEANT),
    )
