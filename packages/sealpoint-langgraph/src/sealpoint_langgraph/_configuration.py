# SPDX-License-Identifier: Apache-2.0
"""What a configuration of the framework says: from where a run begins, and which run it is.

Reading is reading: whoever asks for a checkpoint is shown it, and nothing is decided. A run that
`guard` has let in carries a pass in its own configuration. What it reads is what was decided about,
and what it writes is written in the session of the pass or not at all. Any other run says with
each write what it goes on from, in words that the framework promises: the parent of a checkpoint,
the checkpoint of results, the namespace, and the source in the metadata; and its run-scoped control
tells which writes are of one run.

An id beside the thread is not the only way to name a checkpoint: a map names one for each
namespace, and counts for more. The gate judges what is going to be loaded, so the configuration is
read in the same way here.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.runtime import Runtime

from sealpoint.adapters.face import AdapterThread, RunPosition
from sealpoint.api import Store
from sealpoint.errors import ResumeRefused, UsageError
from sealpoint_langgraph._conversion import Address, require_text

# What the framework streams shows the configuration without the names that begin like its own.
TICKET = "__pregel_sealpoint_ticket"
"""Where `guard` keeps the pass of a run."""
DELIBERATE = "__pregel_sealpoint_deliberate"
"""Where a caller says why an unusual resume is meant."""

_RUNTIME = "__pregel_runtime"
_CHECKPOINTER = "__pregel_checkpointer"
_OF_RUNS = frozenset({TICKET, DELIBERATE, _RUNTIME})

_SAID, _MEANT = 'pass deliberate="why"', 'pass deliberately(config, "why")'
_HINT = (
    "Run the graph through guard(graph, saver, actor=...), which asks for what is needed; where "
    'the policy only wants a reason, pass deliberately(config, "why") to the graph.'
)

_NESTED = "__pregel_read"
"""What the framework leaves in the configuration of a graph that a task of another one runs."""


def is_nested(config: Mapping[str, Any] | None) -> bool:
    """Whether a graph is run by a task of another one.

    What is left there is a function. A configuration that came over a network may have the name in
    it, but no function.
    """
    return callable(((config or {}).get("configurable") or {}).get(_NESTED))


class CheckpointTarget(NamedTuple):
    """The checkpoints that a configuration names."""

    root: str | None
    """The one of the graph itself; None: the newest."""
    inner: dict[str, str]
    """Those of its subgraphs, by namespace."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "CheckpointTarget":
        """Read the configuration of a run that no other run has begun.

        Raises:
            UsageError: Something else than a name stands for one.
        """
        _, lane, named = Address.of(config)
        by_lane = map_of((config.get("configurable") or {}).get("checkpoint_map"))
        inner = {key: value for key, value in by_lane.items() if key and value}
        if lane:
            # The framework begins at the root; only the map tells where from.
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
        """Those of subgraphs that are not the newest of their namespace."""
        found = {}
        for lane, name in self.inner.items():
            newest = thread.snapshot(lane)
            if newest is None or newest.ref.id != name:
                found[lane] = name
        return found


def map_of(found: object) -> dict[str, str]:
    """The checkpoints that a configuration names by namespace.

    Raises:
        UsageError: Something else stands there.
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
    address: Address, config: Mapping[str, Any], store: Store, *, begins: bool, answered: bool
) -> RunPosition:
    """Where a run stands that writes something.

    Args:
        address: What it goes on from, or adds to.
        config: The configuration that it was given.
        store: The store that it writes to.
        begins: Whether a run or an edit begins with it.
        answered: Whether it answers or edits.

    Raises:
        UsageError: Something else than a name stands for a checkpoint, or a reason says nothing.
    """
    named = config.get("configurable") or {}
    token = token_of(config)
    if token is not None:
        return RunPosition(token=str(token))
    by_lane = map_of(named.get("checkpoint_map"))
    root = by_lane.get("") if address.lane else address.id
    around = task_on(address.thread, store)
    return RunPosition(
        run=_control_of(around or {}) or _control_of(named),
        checkpoint=root or None,
        lanes={} if address.lane else {lane: id_ for lane, id_ in by_lane.items() if lane and id_},
        begins=begins,
        inside=around is not None,
        answered=answered,
        deliberate=named.get(DELIBERATE),
    )


def _control_of(named: Mapping[str, Any]) -> object | None:
    """What all that a run does has: the framework's control of it, which subgraphs share.

    Who writes by hand has none, nor has an edit from outside of a run.
    """
    runtime = named.get(_RUNTIME)
    return runtime.control if isinstance(runtime, Runtime) else None


def token_of(config: Mapping[str, Any]) -> str | None:
    """The pass that a configuration carries, if it does."""
    found = (config.get("configurable") or {}).get(TICKET)
    return None if found is None else str(found)


def with_pass(config: RunnableConfig, token: str) -> RunnableConfig:
    """The same configuration, for what a guarded run does."""
    found = {**(config.get("configurable") or {}), TICKET: token}
    return cast("RunnableConfig", {**config, "configurable": found})


def for_reading(config: RunnableConfig) -> RunnableConfig:
    """The same configuration without what makes it that of a run, to read with or to return."""
    named = config.get("configurable") or {}
    if named.keys().isdisjoint(_OF_RUNS):
        return config
    kept = {key: value for key, value in named.items() if key not in _OF_RUNS}
    return cast("RunnableConfig", {**config, "configurable": kept})


def is_run(config: Mapping[str, Any]) -> bool:
    """Whether a run is about to load a checkpoint; a read or an edit from outside is not a run.

    Wrappers of a saver pass the configuration on, so it decides. The framework gives each run a
    runtime of its own, with a control. A server adds a runtime without a control to its reads. A
    node that reads with its own configuration passes the runtime of its task.
    """
    named = config.get("configurable") or {}
    around = (var_child_runnable_config.get() or {}).get("configurable") or {}
    return _control_of(named) is not None and named[_RUNTIME] is not around.get(_RUNTIME)


def task_on(thread: str, store: Store) -> Mapping[str, Any] | None:
    """What the task has in its configuration whose code calls, if it runs on a thread of a store.

    What a run itself puts, it puts from outside of its tasks.
    """
    around = var_child_runnable_config.get()
    if not is_nested(around):
        return None
    found = (around or {}).get("configurable") or {}
    saver = found.get(_CHECKPOINTER)
    own = str(found.get("thread_id")) == thread and getattr(saver, "store", None) is store
    return found if own else None


def run_key_of(address: Address, config: Mapping[str, Any]) -> str | None:
    """By what a run is known to its subgraphs: its pass, or the checkpoint that it stands on."""
    token = token_of(config)
    if token is not None:
        return token
    named = config.get("configurable") or {}
    return map_of(named.get("checkpoint_map")).get("") if address.lane else address.id


def rephrase_for_graph(error: ResumeRefused, hint: str = _HINT) -> ResumeRefused:
    """The same refusal, with what a caller of a graph can do about it.

    Args:
        error: What the gate says, which speaks of its own arguments.
        hint: What to say unless the gate knows better.
    """
    usual = error.hint == ResumeRefused.hint or "resume(world=...)" in error.hint
    return ResumeRefused(
        error.message.replace(_SAID, _MEANT),
        reasons=tuple(reason.replace(_SAID, _MEANT) for reason in error.reasons),
        hint=hint if usual else error.hint.replace(_SAID, _MEANT),
    )
