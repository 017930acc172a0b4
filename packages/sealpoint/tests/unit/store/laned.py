# SPDX-License-Identifier: Apache-2.0
"""Threads with several lanes: checkpoints and results as a framework writes them."""

from typing import Any, cast

from sealpoint.errors import SealpointError
from sealpoint.gate import Thread
from sealpoint.store import (
    CheckpointRef,
    Outcome,
    ResultsDraft,
    ResultsRef,
    RunPosition,
    SaveDraft,
)
from tests.deployment import Deployment, Opened

__all__ = [
    "added",
    "check_verified",
    "cold",
    "everywhere",
    "ids",
    "put",
    "refused",
    "results",
    "saved",
    "tasks",
    "values",
    "written",
]


def put(state: Any, name: str, lane: str = "", **options: Any) -> SaveDraft:
    """A checkpoint as a framework saves it: the same name once more replaces it."""
    parent, metadata = options.pop("parent", None), options.pop("metadata", None)
    world = options.pop("world", None)
    return SaveDraft(state, name, parent, metadata, world, lane=lane, supersedes=True, **options)


def results(
    value: Any, checkpoint: str, task: str = "task", lane: str = "", **options: Any
) -> ResultsDraft:
    """Results of a task, to be added to a checkpoint."""
    return ResultsDraft(value, checkpoint=checkpoint, task=task, lane=lane, **options)


def saved(thread: Thread, *drafts: SaveDraft | ResultsDraft) -> list[Outcome]:
    """Write a group of which nothing is refused."""
    outcomes = thread.adapter.commit(drafts)
    for outcome in outcomes:
        if isinstance(outcome, SealpointError):
            raise outcome
    return outcomes


def written(thread: Thread, world: Any) -> None:
    """Go on as a run does that nobody decided about: it reads, and says what it goes on from."""
    found = thread.adapter.snapshot()
    name = None if found is None else found.ref.id
    position = RunPosition(checkpoint=name, begins=True)
    saved(thread, put({"balance": 95}, "next", parent=name, world=world, position=position))


def added(thread: Thread, *drafts: SaveDraft | ResultsDraft) -> list[int]:
    """The same, for who wants to know the positions."""
    return [cast("CheckpointRef | ResultsRef", each).seq for each in saved(thread, *drafts)]


def refused(outcomes: list[Outcome]) -> list[str | None]:
    """The code of each refusal; None for what was written."""
    return [each.code if isinstance(each, SealpointError) else None for each in outcomes]


def cold(world: Deployment, name: str = "t") -> Thread:
    """The handle of a process that has seen nothing yet."""
    return world.open(None, read_only=True).thread(name)


def ids(thread: Thread, lane: str | None = "") -> list[str]:
    """The checkpoints of a lane, newest first."""
    return [ref.id for ref in thread.adapter.snapshots(lane)]


def values(thread: Thread, lane: str = "", name: str | None = None) -> list[Any] | None:
    """The results of a checkpoint, oldest first; None: there is no such checkpoint."""
    found = thread.adapter.snapshot(lane, name)
    return None if found is None else [each.value for each in found.results]


def tasks(thread: Thread, lane: str = "", name: str | None = None) -> list[str]:
    """Whose results a checkpoint has, oldest first."""
    found = thread.adapter.snapshot(lane, name)
    assert found is not None
    return [each.task for each in found.results]


def everywhere(world: Deployment, store: Opened) -> list[Thread]:
    """The handle that wrote, and one that has seen nothing: both must say the same."""
    return [store.thread("t"), cold(world)]


def check_verified(world: Deployment) -> None:
    """Whoever verifies the whole store finds nothing amiss."""
    report = world.open(None, read_only=True).verify()
    assert report.ok, report.findings
