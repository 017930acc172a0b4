# SPDX-License-Identifier: Apache-2.0
"""Conversion of configurations, checkpoints and pending writes from and to the framework."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.types import Interrupt

from sealpoint.adapters.guarded_runs import question_to_display_json, run_paused
from sealpoint.codec import Registry
from sealpoint.errors import (
    BytesMalformed,
    EncodeError,
    Paused,
    ResumeRefused,
    UnknownCheckpoint,
    UsageError,
)
from sealpoint.gate import AdapterThread, Rule, Thread
from sealpoint.ledger import Origin
from sealpoint.limits import QUESTION_BYTES_MAX
from sealpoint.store import (
    CheckpointRef,
    CommitDraft,
    Key,
    Results,
    ResultsDraft,
    SaveDraft,
    Snapshot,
)
from sealpoint.world import World
from sealpoint_langgraph._framework_types import check_privileged, storable_error

_ERROR = "__error__"
_WRITTEN = re.compile(r"state\[([0-9]+)\]\[2\]")
COUNTERS = "counters_since_delta_snapshot"
_METADATA_LEVELS_MAX = 16
"""The framework's counters, per delta channel, of the checkpoints since its value was saved."""
_CALL = ":"
"""The separator before the task in the lane of a call; no node has it in its name."""


class ThreadIdMissing(UsageError, ValueError):
    """A configuration without a thread, which the framework reports as a value error."""


class Address(NamedTuple):
    """The checkpoint that a configuration names."""

    thread: str
    lane: str | None
    """The namespace of a subgraph; None where none is named."""
    id: str | None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Address":
        """Read a configuration.

        Raises:
            UsageError: It names no thread, or the value for a name is not a name.
        """
        found = (config or {}).get("configurable") or {}
        thread = found.get("thread_id")
        if thread is None or thread == "":
            raise ThreadIdMissing(
                "configuration: expected a thread_id in configurable, found none",
                hint='Pass config={"configurable": {"thread_id": "..."}} to the graph.',
            )
        lane, named = found.get("checkpoint_ns"), found.get("checkpoint_id")
        if type(lane) is not str or type(named) is not str:
            require_text(lane, "checkpoint_ns")
            require_text(named, "checkpoint_id")
        return cls(str(thread), lane, named or None)

    def config(self, name: str | None, lane: str, marks: Mapping[str, Any] = {}) -> RunnableConfig:
        """The configuration that names a checkpoint of this thread."""
        found = {"thread_id": self.thread, "checkpoint_ns": lane, "checkpoint_id": name, **marks}
        return {"configurable": found}


def require_text(value: object, name: str) -> None:
    """Refuse a value that cannot name a checkpoint or namespace; a client may have sent it.

    Raises:
        UsageError: The value is set and is not text.
    """
    if value is not None and not isinstance(value, str):
        raise UsageError(
            f"configuration: expected text as {name}, found {type(value).__name__}",
            hint="Pass the configuration that get_state or get_state_history returned.",
        )


def require_several(ids: object, name: str) -> None:
    """Refuse a single id in place of several: its letters would be taken for ids.

    Raises:
        UsageError: It is text.
    """
    if isinstance(ids, str):
        raise UsageError(
            f"{name}: expected a list of ids, found text", hint=f"Pass a list: [{name[:-1]}]."
        )


def state_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The part of a checkpoint that is saved as its state; its id is that of the entry.

    Raises:
        TypeNotAllowed: It holds a command in a place where the framework puts none.
    """
    for channel, value in checkpoint["channel_values"].items():
        check_privileged(channel, value)
    return {key: value for key, value in checkpoint.items() if key != "id"}


def metadata_of(config: RunnableConfig, metadata: CheckpointMetadata) -> dict[str, Any]:
    """The metadata of a checkpoint as JSON; tuples, such as `langgraph_triggers`, become lists."""
    return {
        key: _with_lists(value, _METADATA_LEVELS_MAX)
        for key, value in get_checkpoint_metadata(config, metadata).items()
    }


def _with_lists(value: Any, levels: int) -> Any:
    """A value with lists instead of tuples; the store refuses what lies deeper."""
    if not levels:
        return value
    match value:
        case tuple() | list():
            return [_with_lists(each, levels - 1) for each in value]
        case dict():
            return {key: _with_lists(each, levels - 1) for key, each in value.items()}
        case _:
            return value


def storable_writes(writes: Sequence[tuple[str, Any]]) -> list[list[Any]]:
    """Writes of a task, each with its slot.

    Raises:
        TypeNotAllowed: One of them is a command in a place where the framework puts none.
    """
    found = []
    for number, (channel, value) in enumerate(writes):
        check_privileged(channel, value)
        kept = storable_error(value) if channel == _ERROR else value
        found.append([WRITES_IDX_MAP.get(channel, number), channel, kept])
    return found


def of_channel(error: EncodeError, writes: Sequence[Sequence[Any]]) -> EncodeError:
    """The same error about writes of a task, with the channel instead of the place in a list."""
    found = _WRITTEN.match(error.message)
    if found is None:
        return error
    channel = writes[int(found[1])][1]
    rest = error.message[found.end() :]
    return type(error)(f"write to channel {channel!r}, value{rest}", hint=error.hint)


def pending_writes(results: Iterable[Results]) -> list[PendingWrite]:
    """The pending writes of a checkpoint, in the framework's order.

    A slot is written once and stays; for a task that wrote to special slots alone, the newest write
    counts.
    """
    slots: dict[tuple[str, int], tuple[str, str, Any]] = {}
    for result in results:
        if not _is_written(result.value):
            raise BytesMalformed(
                f"entry {result.ref.seq}: expected results of a LangGraph task, found a "
                f"{type(result.value).__name__}",
                hint="Something else added it; give the graph a thread_id of its own.",
            )
        replaces = all(channel in WRITES_IDX_MAP for _, channel, _ in result.value)
        for slot, channel, value in result.value:
            found = (result.path, channel, value)
            if replaces:
                slots[result.task, slot] = found
            else:
                slots.setdefault((result.task, slot), found)
    ordered = sorted(slots.items(), key=lambda item: writes_sort_key(item[1][0], *item[0]))
    return [(task, channel, value) for (task, _), (_, channel, value) in ordered]


def _is_written(value: object) -> bool:
    """Whether a value has the form that `storable_writes` creates."""
    return isinstance(value, list) and all(
        isinstance(each, list) and [type(part) for part in each[:-1]] == [int, str]
        for each in value
    )


def checkpoint_tuple(
    address: Address,
    snapshot: Snapshot,
    marks: Mapping[str, Any] = {},
    parent_marks: Mapping[str, Any] = {},
) -> CheckpointTuple:
    """A checkpoint in the framework's form.

    Args:
        address: The address that was read.
        snapshot: The content that was read.
        marks: Additional keys of its configuration and of its parent's.
        parent_marks: Additional keys of its parent's configuration alone.
    """
    ref = snapshot.ref
    if not isinstance(snapshot.state, dict) or "channel_values" not in snapshot.state:
        raise BytesMalformed(
            f"checkpoint {ref.id!r} of thread {address.thread!r}: it was not saved by LangGraph",
            hint="Something else saved it; give the graph a thread_id of its own.",
        )
    checkpoint = cast("Checkpoint", {**snapshot.state, "id": ref.id})
    return CheckpointTuple(
        config=address.config(ref.id, ref.lane, marks),
        checkpoint=checkpoint,
        metadata=cast("Any", ref.metadata),
        parent_config=_parent(address, ref, {**marks, **parent_marks}),
        pending_writes=pending_writes(snapshot.results),
    )


def _parent(
    address: Address, ref: CheckpointRef, marks: Mapping[str, Any]
) -> RunnableConfig | None:
    return None if ref.parent is None else address.config(ref.parent, ref.lane, marks)


# Copies of a thread's checkpoints, to be signed again in another thread.


def copies_of(source: Thread) -> list[CommitDraft]:
    """Drafts of everything that a thread holds, oldest first.

    They declare the world of the thread's newest checkpoint: a copy must not let a run resume with
    more capabilities.

    A copy names its source and the source's age: the gate judges it as an older checkpoint.

    Raises:
        Paused: An operator paused the thread.
        ResumeRefused: A restore cut the thread, and no run has resumed it since.
    """
    refs = list(source.adapter.snapshots())
    if not refs:
        return []
    if source.paused:
        raise Paused(f"thread {source.name!r}: it is paused, so it cannot be copied")
    _require_no_restore(source)
    world = World.of(source.load(refs[0]).world)
    drafts: list[CommitDraft] = []
    for ref in reversed(refs):
        snapshot = source.adapter.snapshot(ref.lane, ref.id)
        if snapshot is None:
            continue
        at = source.release(ref).time
        drafts.append(
            SaveDraft(
                snapshot.state,
                ref.id,
                ref.parent,
                ref.metadata,
                world,
                question=ref.question,
                lane=ref.lane,
                supersedes=True,
                origin=Origin(thread=source.id, entry=ref.entry, at=at),
            )
        )
        drafts.extend(
            ResultsDraft(
                result.value,
                checkpoint=ref.id,
                task=result.task,
                path=result.path,
                lane=ref.lane,
                question=result.question,
                answers=result.answers,
                world=world,
                origin=Origin(thread=source.id, entry=result.ref.entry, at=at),
            )
            for result in snapshot.results
        )
    return drafts


def _require_no_restore(source: Thread) -> None:
    """Refuse to copy a checkpoint that can only be resumed deliberately."""
    try:
        reasons = source.judge(world=None).reasons
    except UnknownCheckpoint:
        return  # only subgraphs have something left
    if any(reason.rule == Rule.AFTER_RESTORE for reason in reasons):
        words = "a restore cut the thread, and it has not been executed since"
        raise ResumeRefused(
            f"thread {source.name!r}: it cannot be copied: {words}",
            reasons=(words,),
            hint="Run the thread itself first, with a reason or the approvals that its policy asks "
            "for; then copy it.",
        )


# The checkpoints that may be deleted: all requested ones, except those that a live one needs.
#
# A delta channel is not in every checkpoint: its value consists of the value in the last ancestor
# that has it, and all writes since. So the ancestors from which a live checkpoint is rebuilt stay,
# too.


def keys_of_runs(thread: AdapterThread, runs: frozenset[str]) -> list[Key]:
    """The checkpoints that the given runs saved and nothing else needs."""
    refs = list(thread.snapshots())
    doomed = [ref for ref in refs if ref.metadata.get("run_id") in runs]
    return _without_needed(thread, refs, doomed)


def older_keys(thread: AdapterThread) -> list[Key]:
    """All checkpoints except the newest of each live lane, and those that it needs.

    A call of a subgraph has its own lane, which is deleted with the checkpoint of the graph at
    which the call began. A subgraph that remembers has one lane for all of its calls.
    """
    refs = list(thread.snapshots())
    newest: dict[str, CheckpointRef] = {}
    for ref in refs:
        newest.setdefault(ref.lane, ref)
    # Saves come in the background: a call may be stored before the checkpoint at which it began.
    roots = [ref.id for ref in refs if not ref.lane]
    left = {*roots} - {*roots[:1]}
    kept = {
        _key(ref) for lane, ref in newest.items() if _CALL not in lane or _root_of(ref) not in left
    }
    return _without_needed(thread, refs, [ref for ref in refs if _key(ref) not in kept])


def _root_of(ref: CheckpointRef) -> str | None:
    """The checkpoint of the graph that a checkpoint of a subgraph belongs to."""
    parents = ref.metadata.get("parents")
    return parents.get("") if isinstance(parents, dict) else None


def _without_needed(
    thread: AdapterThread, refs: Iterable[CheckpointRef], doomed: Iterable[CheckpointRef]
) -> list[Key]:
    known = {_key(ref): ref for ref in refs}
    going = {_key(ref) for ref in doomed}
    needed: set[Key] = set()
    for key, ref in known.items():
        if key not in going:
            needed |= _ancestry(thread, known, ref)
    return [key for key in known if key in going and key not in needed]


def _ancestry(
    thread: AdapterThread, known: dict[Key, CheckpointRef], ref: CheckpointRef
) -> set[Key]:
    """The ancestors from which the delta channels of a checkpoint are rebuilt."""
    needed: set[Key] = set()
    missing = set(ref.metadata.get(COUNTERS) or ())
    found: CheckpointRef | None = ref
    while missing and found is not None and found.parent is not None:
        key = Key(found.lane, found.parent)
        found = known.get(key)
        snapshot = None if found is None else thread.snapshot(key.lane, key.id)
        if snapshot is None:
            break
        needed.add(key)
        missing -= set(snapshot.state["channel_values"])
    return needed


def _key(ref: CheckpointRef) -> Key:
    return Key(ref.lane, ref.id)


def graph_paused(thread: str) -> Paused:
    """The error that ends a run of a graph after a pause."""
    return run_paused(thread, "call the graph again, with None as its input.")


def shown_question(value: Any, registry: Registry) -> Any:
    """The questions of interrupts, as JSON: each with its id, and the schema of its answer."""
    found = value if isinstance(value, list | tuple) else [value]
    bytes_max = QUESTION_BYTES_MAX // max(len(found), 1)
    return [_asked(each, registry, bytes_max) for each in found]


def _asked(asked: Any, registry: Registry, bytes_max: int) -> dict[str, Any]:
    def shown(value: Any) -> Any:
        return question_to_display_json(value, registry, bytes_max=bytes_max // 2)

    if not isinstance(asked, Interrupt):
        return {"value": shown(asked)}
    told = {"id": asked.id, "value": shown(asked.value)}
    schema = getattr(asked, "response_schema", None)  # older releases have none
    return told if schema is None else {**told, "schema": shown(schema)}
