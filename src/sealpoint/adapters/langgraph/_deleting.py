# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints may be deleted: all that are asked for, but none that a living one needs.

A delta channel is not in every checkpoint: its value is what the last ancestor that has it holds,
and all writes since. So the ancestors that a living checkpoint is rebuilt from stay, too.
"""

from collections.abc import Iterable

from sealpoint.adapters.langgraph._tuples import COUNTERS
from sealpoint.gate import Thread
from sealpoint.store import CheckpointRef, Key

__all__ = ["keys_of_runs", "older_keys"]


def keys_of_runs(thread: Thread, runs: frozenset[str]) -> list[Key]:
    """The checkpoints of a thread that some runs saved and nothing else needs."""
    refs = list(thread.snapshots())
    doomed = [ref for ref in refs if ref.metadata.get("run_id") in runs]
    return _without_needed(thread, refs, doomed)


def older_keys(thread: Thread) -> list[Key]:
    """All checkpoints of a thread but the newest of each lane and what those need."""
    refs, seen, doomed = list(thread.snapshots()), set[str](), []
    for ref in refs:
        if ref.lane in seen:
            doomed.append(ref)
        seen.add(ref.lane)
    return _without_needed(thread, refs, doomed)


def _without_needed(
    thread: Thread, refs: Iterable[CheckpointRef], doomed: Iterable[CheckpointRef]
) -> list[Key]:
    known = {_key(ref): ref for ref in refs}
    going = {_key(ref) for ref in doomed}
    needed: set[Key] = set()
    for key, ref in known.items():
        if key not in going:
            needed |= _ancestry(thread, known, ref)
    return [key for key in known if key in going and key not in needed]


def _ancestry(thread: Thread, known: dict[Key, CheckpointRef], ref: CheckpointRef) -> set[Key]:
    """The ancestors that the delta channels of a checkpoint are rebuilt from."""
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
