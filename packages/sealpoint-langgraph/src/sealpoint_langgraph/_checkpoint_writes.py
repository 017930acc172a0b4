# SPDX-License-Identifier: Apache-2.0
"""The writes of a saver: drafts with the position of their run, written in the order of the calls.

Results wait a moment for the checkpoint that a run puts right after them. A failed save of a
subgraph is reported to the surrounding graph at its next put, because the framework drops the error
of a subgraph that then asks a question.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata

from sealpoint.adapters.guarded_runs import (
    GuardedRuns,
    QueuedWrite,
    ResultsDraft,
    RunPosition,
    SaveDraft,
    WriteQueue,
)
from sealpoint.api import Store
from sealpoint.errors import EncodeError, ResumeRefused, SealpointError, TypeNotAllowed
from sealpoint.store import CheckpointRef, CommitDraft
from sealpoint.world import World
from sealpoint_langgraph._configuration import (
    position_of,
    rephrase_for_graph,
    run_key_of,
    token_of,
)
from sealpoint_langgraph._conversion import (
    Address,
    graph_paused,
    metadata_of,
    of_channel,
    shown_question,
    state_of,
    storable_writes,
)

_INTERRUPT = "__interrupt__"
RESUME = "__resume__"
_EDIT = "update"
_BEGINNINGS = ("input", "fork")
"""The sources of a checkpoint with which a run begins."""
_NO_TASK = "00000000-0000-0000-0000-000000000000"
"""The task id of the writes of a `Command`."""
_SHORTER = (
    "A dataclass, model, NamedTuple or Enum can be listed instead: "
    "SealedSaver.for_graph(graph, store, types=[...])"
)
_PATIENCE_S = 0.005
"""How long results of a run wait for the checkpoint after them: both are then one durable step."""


class PutQueues:
    """The queues of a saver, one for each thread."""

    def __init__(self, store: Store, world: World | None) -> None:
        self._store = store
        self._world = world
        self._runs = GuardedRuns.of(store)
        self._queues: WeakValueDictionary[str, WriteQueue] = WeakValueDictionary()
        self._lock = threading.Lock()

    def of(self, name: str) -> WriteQueue:
        """The queue of a thread; it exists as long as a waiting write references it."""
        with self._lock:
            found = self._queues.get(name)
            if found is None:
                found = self._queues[name] = WriteQueue(self._store.thread(name).adapter)
            return found

    def put_checkpoint(
        self,
        address: Address,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
    ) -> QueuedWrite:
        """Give a checkpoint its place in the order."""
        source = metadata.get("source")
        # In a namespace every run of the subgraph begins with an input: only an edit is a new run.
        edits = source == _EDIT
        begins = edits or (not address.lane and source in _BEGINNINGS)
        draft = SaveDraft(
            state_of(checkpoint),
            checkpoint["id"],
            address.id,
            metadata_of(config, metadata),
            self._world_of(address, config),
            lane=address.lane or "",
            supersedes=True,
            holds=True,
            position=position_of(
                address, config, self._store, begins=begins, answered=edits, edits=edits
            ),
        )
        return self._enqueue(address, config, draft)

    def put_results(
        self,
        address: Address,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> QueuedWrite:
        """Give results of a task their place in the order."""
        channels = [channel for channel, _ in writes]
        asked = [value for channel, value in writes if channel == _INTERRUPT]
        draft = ResultsDraft(
            storable_writes(writes),
            checkpoint=address.id or "",
            task=task_id,
            path=task_path,
            lane=address.lane or "",
            question=shown_question(asked[-1], self._store.registry) if asked else None,
            # The values that a call brings are put before any node of it runs.
            answers=task_id == _NO_TASK or channels.count(RESUME) == len(channels),
            world=self._world_of(address, config),
            position=self._results_position(address, config, channels, task_id),
        )
        return self._enqueue(address, config, draft)

    def _results_position(
        self,
        address: Address,
        config: RunnableConfig,
        channels: Sequence[str],
        task_id: str,
    ) -> RunPosition:
        begins = task_id == _NO_TASK and not address.lane
        answered = begins or RESUME in channels
        # An edit puts what it writes before its checkpoint, in the name of the task.
        return position_of(
            address, config, self._store, begins=begins, answered=answered, edits=True
        )

    def _world_of(self, address: Address, config: Mapping[str, Any]) -> World | None:
        token = token_of(config)
        found = None if token is None else self._runs.find(address.thread, token)
        return self._world if found is None else found.world

    def _enqueue(
        self, address: Address, config: Mapping[str, Any], draft: CommitDraft
    ) -> QueuedWrite:
        refusals = self._runs.refusals
        if draft.position is not None and draft.position.begins:
            refusals.forget(address.thread)  # what those before it could not save is their affair
        lost = None if address.lane else run_key_of(address, config)
        if (refused := refusals.take(address.thread, lost)) is not None:
            raise refused
        return self.of(address.thread).put(draft)

    def settle(self, address: Address, config: Mapping[str, Any], write: QueuedWrite) -> None:
        """Return when the write is done.

        Raises:
            SealpointError: The write failed; the message addresses the caller of a graph.
            Paused: The write succeeded, and the run must not continue.
        """
        try:
            write.queue.settle(write, patience_s=_patience_s(write.draft))
        except SealpointError as error:
            told = _rephrase(error, write.draft)
            self._note_refusal(address, config, told)
            if told is error:
                raise
            raise told from error.__cause__
        # The work is done and saved, but the run must not continue. The framework puts no later
        # checkpoint after one that failed, and would lose the results of nodes in progress; so a
        # guarded run gets no error here, and stops before its next step.
        held = isinstance(write.outcome, CheckpointRef) and write.outcome.held
        if held and not self._runs.hold(address.thread, token_of(config)):
            raise graph_paused(address.thread)

    def _note_refusal(
        self, address: Address, config: Mapping[str, Any], error: SealpointError
    ) -> None:
        """Record that a write of a subgraph was not saved."""
        run, token = run_key_of(address, config), token_of(config)
        if not address.lane or run is None:
            return
        # Without this entry, a put of a guarded run that has ended is refused.
        if token is None or self._runs.is_living(address.thread, token):
            self._runs.refusals.note(address.thread, run, error)


def _patience_s(draft: CommitDraft) -> float:
    """How long a write waits for the next one of its run; zero after a question."""
    waits = (
        isinstance(draft, ResultsDraft) and draft.question is None and not draft.blocked_by_pause
    )
    return _PATIENCE_S if waits else 0.0


def _rephrase(error: SealpointError, draft: CommitDraft) -> SealpointError:
    """The same error, with advice for the caller of a graph."""
    if isinstance(error, ResumeRefused):
        return rephrase_for_graph(error)
    if isinstance(error, EncodeError) and isinstance(draft, ResultsDraft):
        error = of_channel(error, draft.value)
    if isinstance(error, TypeNotAllowed) and error.hint.startswith("Write: "):
        return TypeNotAllowed(error.message, hint=f"{error.hint}\n{_SHORTER}")
    return error
