# SPDX-License-Identifier: Apache-2.0
"""`SealedSaver`: a checkpointer for LangGraph on a sealed store.

It translates and nothing else: a thread of the framework is a thread of the store, the namespace
of a subgraph is a lane of it, a checkpoint is a checkpoint, pending writes are results. What is
loaded for execution goes through the gate first (`_gate.py`), what is put is taken in the order of
the calls (`_outbox.py`).
"""

import asyncio
import copy
import threading
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Any, Self
from weakref import WeakValueDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from sealpoint.adapters.langgraph._copying import copies_of
from sealpoint.adapters.langgraph._deleting import keys_of_runs, older_keys
from sealpoint.adapters.langgraph._gate import RUN, Runs, marks_of
from sealpoint.adapters.langgraph._outbox import Outbox, Ticket
from sealpoint.adapters.langgraph._schemas import allow_types, schema_types, types_of_allowlist
from sealpoint.adapters.langgraph._shown import shown_question
from sealpoint.adapters.langgraph._signal import signs_hold
from sealpoint.adapters.langgraph._tuples import (
    Address,
    checkpoint_tuple,
    metadata_of,
    of_channel,
    state_of,
    storable_writes,
)
from sealpoint.adapters.langgraph._types import allow_framework_types
from sealpoint.api import Store
from sealpoint.errors import EncodeError, Paused, UnknownThread
from sealpoint.store import CheckpointRef, EntryDraft, ResultsDraft, SaveDraft
from sealpoint.world import World

__all__ = ["SealedSaver"]

_INTERRUPT = "__interrupt__"
_RESUME = "__resume__"
_PATIENCE_S = 0.005
"""How long results of a run wait for the checkpoint after them: both are then one durable step."""


class SealedSaver(BaseCheckpointSaver[Any]):
    """A checkpointer for LangGraph on a sealed store.

    ```python
    store = sealpoint.open_store("sqlite:///agents.db")
    graph = builder.compile(checkpointer=SealedSaver(store))
    ```

    It may be used by any number of OS threads and event loops.

    Args:
        store: An open store. The framework's types are added to its registry.
        world: What the graphs of this saver are able to do, such as `world_of(graph)` tells.
    """

    def __init__(self, store: Store, *, world: World | Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._store = store
        self._world = World.of(world)
        self._runs = Runs.of(store)
        self._outboxes: WeakValueDictionary[str, Outbox] = WeakValueDictionary()
        self._lock = threading.Lock()
        allow_framework_types(store.registry)
        signs_hold()  # tried out here, and not in the middle of the first run

    @classmethod
    def for_graph(
        cls, graph: Any, store: Store, *, world: World | Mapping[str, Any] | None = None
    ) -> Self:
        """A saver that also allows the types of a graph's schemas.

        Args:
            graph: A graph, compiled or not.
            store: An open store.
            world: What the graph is able to do.
        """
        saver = cls(store, world=world)
        allow_types(store.registry, schema_types(graph))
        return saver

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """The same saver, with more types allowed; each is named by its module and its name."""
        allow_types(self._store.registry, types_of_allowlist(extra_allowlist, strict=False))
        return copy.copy(self)

    @property
    def store(self) -> Store:
        """The store that everything is kept in."""
        return self._store

    @property
    def runs(self) -> Runs:
        """Which runs may go on."""
        return self._runs

    # ------------------------------------------------------------------ reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a configuration names, or the newest of its namespace.

        Raises:
            ResumeRefused: It would be executed, and the policy does not allow that.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        address = Address.of(config)
        snapshot, marks = self._runs.enter(address, config, self._world)
        if not address.lane and marks:
            # A thread that holds nothing has no checkpoint to carry the marks, and subgraphs get
            # the configuration of the run: it is the run's own, and never the caller's.
            config["configurable"].update(marks)
        return None if snapshot is None else checkpoint_tuple(address, snapshot, marks)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (the framework's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, or of all, newest first; for reading only.

        Raises:
            RolledBack: All are asked for, and the store lacks some that the anchor knows.
        """
        names = self._store.threads() if config is None else (Address.of(config).thread,)
        left = limit
        for name in names:
            address = Address(name, None, None) if config is None else Address.of(config)
            for ref in self._listed(address, filter or {}, before):
                if left is not None and left <= 0:
                    return
                snapshot = self._store.thread(name).snapshot(ref.lane, ref.id)
                if snapshot is not None:
                    left = None if left is None else left - 1
                    yield checkpoint_tuple(address, snapshot)

    def _listed(
        self, address: Address, wanted: Mapping[str, Any], before: RunnableConfig | None
    ) -> Iterator[CheckpointRef]:
        end = (before or {}).get("configurable", {}).get("checkpoint_id")
        refs = self._store.thread(address.thread).snapshots(address.lane)
        for ref in refs:
            if end is not None and ref.id >= end:
                continue
            if address.id is not None and ref.id != address.id:
                continue
            if all(ref.metadata.get(key) == value for key, value in wanted.items()):
                yield ref

    # ------------------------------------------------------------------ writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002 (every state is saved whole, and shared)
    ) -> RunnableConfig:
        """Save a checkpoint. When it returns, it survives a crash and a power cut.

        Raises:
            EncodeError: It holds something that is not allowed; the message has the path.
            Superseded, HeadMoved: Another run goes on with the thread.
            Paused: An operator paused the thread.
        """
        address = Address.of(config)
        self._settle(address, config, self._checkpoint(address, config, checkpoint, metadata))
        return address.config(checkpoint["id"], address.lane or "", marks_of(config))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep results of a task on a checkpoint, which may follow later."""
        address = Address.of(config)
        self._settle(address, config, self._results(address, config, writes, task_id, task_path))

    def _checkpoint(
        self,
        address: Address,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
    ) -> Ticket:
        draft = SaveDraft(
            state_of(checkpoint),
            checkpoint["id"],
            address.id,
            metadata_of(config, metadata),
            self._world_of(address, config),
            lane=address.lane or "",
            supersedes=True,
            holds=True,
        )
        return self._enqueued(address, config, draft)

    def _results(
        self,
        address: Address,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Ticket:
        asked = [value for channel, value in writes if channel == _INTERRUPT]
        draft = ResultsDraft(
            storable_writes(writes),
            checkpoint=address.id or "",
            task=task_id,
            path=task_path,
            lane=address.lane or "",
            question=shown_question(asked[-1], self._store.registry) if asked else None,
            answers=all(channel == _RESUME for channel, _ in writes),
            world=self._world_of(address, config),
        )
        return self._enqueued(address, config, draft)

    def _world_of(self, address: Address, config: RunnableConfig) -> World | None:
        return self._runs.world(address.thread, config) or self._world

    def _enqueued(self, address: Address, config: RunnableConfig, draft: EntryDraft) -> Ticket:
        self._runs.require_current(address.thread, config)
        return self._outbox(address.thread).put(draft)

    def _settle(self, address: Address, config: RunnableConfig, ticket: Ticket) -> None:
        outbox = ticket.outbox
        waits = isinstance(ticket.draft, ResultsDraft) and RUN in (config.get("configurable") or {})
        try:
            outbox.settle(ticket, patience_s=_PATIENCE_S if waits else 0.0)
        except EncodeError as error:
            if isinstance(ticket.draft, ResultsDraft):
                raise of_channel(error, ticket.draft.value) from error.__cause__
            raise
        # The work is done and kept, but the run must not go on. The framework puts no later
        # checkpoint after one that failed, and the results of nodes that were on their way would be
        # lost; so a guarded run is told nothing here, and stops before its next step.
        held = isinstance(ticket.outcome, CheckpointRef) and ticket.outcome.held
        if held and not self._runs.hold(address.thread, config):
            raise Paused(f"thread {address.thread!r}: it is paused; what had been done is kept")

    def _outbox(self, name: str) -> Outbox:
        with self._lock:
            found = self._outboxes.get(name)
            if found is None:
                found = self._outboxes[name] = Outbox(self._store.thread(name))
            return found

    # ------------------------------------------------------------------ deleting and copying

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread, recorded by a signed entry; `erase` removes more."""
        try:
            self._store.thread(str(thread_id)).hide(reason="delete_thread")
        except UnknownThread:
            return

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what some runs saved, except what living checkpoints still need.

        Raises:
            RolledBack: The store lacks threads that the anchor knows; nothing is deleted then.
        """
        wanted = frozenset(run_ids)
        if not wanted:
            return
        for name in self._store.threads():
            thread = self._store.thread(name)
            if keys := keys_of_runs(thread, wanted):
                thread.hide(keys, reason="delete_for_runs")

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of each namespace, or everything (`delete`)."""
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy: expected keep_latest or delete, found {strategy!r}")
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            thread = self._store.thread(str(thread_id))
            if keys := older_keys(thread):
                thread.hide(keys, reason="prune: keep_latest")

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints with their results into another thread, signed anew.

        Each copy says what it is a copy of. Approvals and pauses are of the source alone; a paused
        thread is not copied.

        Raises:
            Paused: An operator paused the source.
        """
        source = self._store.thread(str(source_thread_id))
        drafts = copies_of(source)
        outbox = self._outbox(str(target_thread_id))
        for ticket in [outbox.put(draft) for draft in drafts]:
            outbox.settle(ticket)

    # ------------------------------------------------------------------ the rest of the contract

    def get_next_version(self, current: Any, channel: None) -> Any:  # noqa: ARG002
        """The version after another: a number, or text where the thread began with text."""
        if isinstance(current, str):
            return f"{int(current.split('.')[0]) + 1:032}"
        return 1 if current is None else current + 1

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The same as `get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (the framework's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The same as `list`."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """The same as `put`; its place in the order is that of the call."""
        address = Address.of(config)
        ticket = self._checkpoint(address, config, checkpoint, metadata)
        await asyncio.to_thread(self._settle, address, config, ticket)
        return address.config(checkpoint["id"], address.lane or "", marks_of(config))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """The same as `put_writes`; its place in the order is that of the call."""
        address = Address.of(config)
        ticket = self._results(address, config, writes, task_id, task_path)
        await asyncio.to_thread(self._settle, address, config, ticket)

    async def adelete_thread(self, thread_id: str) -> None:
        """The same as `delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """The same as `delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """The same as `copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """The same as `prune`."""
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """The same as `get_delta_channel_history`."""
        return await asyncio.to_thread(
            self.get_delta_channel_history, config=config, channels=channels
        )
