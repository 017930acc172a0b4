# SPDX-License-Identifier: Apache-2.0
"""`SealedSaver`: a checkpointer for LangGraph on a sealed store.

It translates and nothing else: a thread of the framework is a thread of the store, the namespace
of a subgraph is a lane of it, a checkpoint is a checkpoint, pending writes are results. Reading
verifies and does nothing else. What is put says where its run stands (`_passes.py`), is taken in
the order of the calls (`_outbox.py`), and is judged by the gate where a run begins with it.
"""

import asyncio
import copy
import threading
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
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

from sealpoint.adapters.langgraph._conversion import (
    Address,
    checkpoint_tuple,
    copies_of,
    keys_of_runs,
    metadata_of,
    of_channel,
    older_keys,
    require_text,
    shown_question,
    state_of,
    storable_writes,
)
from sealpoint.adapters.langgraph._outbox import Outbox, Ticket
from sealpoint.adapters.langgraph._passes import (
    TICKET,
    Passes,
    in_words_of_graphs,
    position_of,
    without_pass,
)
from sealpoint.adapters.langgraph._schemas import (
    allow_types,
    check_declared,
    graph_types,
    types_of_allowlist,
)
from sealpoint.adapters.langgraph._types import allow_framework_types
from sealpoint.api import Store
from sealpoint.errors import (
    EncodeError,
    Paused,
    ResumeRefused,
    SealpointError,
    TypeNotAllowed,
    UnknownThread,
    UsageError,
)
from sealpoint.store import CheckpointRef, CommitDraft, ResultsDraft, RunPosition, SaveDraft
from sealpoint.world import World

_INTERRUPT = "__interrupt__"
_RESUME = "__resume__"
_EDIT = "update"
_BEGINNINGS = ("input", "fork")
"""The sources of a checkpoint with which a run begins."""
_NO_TASK = "00000000-0000-0000-0000-000000000000"
"""Whose writes those of a `Command` are."""
_SHORTER = (
    "A dataclass, model, NamedTuple or Enum can be listed instead: "
    "SealedSaver.for_graph(graph, store, types=[...])"
)
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

    Raises:
        UsageError: It is no store that `sealpoint.open_store` gives, but an async one for instance.
    """

    def __init__(self, store: Store, *, world: World | Mapping[str, Any] | None = None) -> None:
        super().__init__()
        if not isinstance(store, Store):
            raise UsageError(
                f"SealedSaver: expected an open store, found {type(store).__name__}",
                hint="Pass the store that sealpoint.open_store(url) gives, also for a graph that "
                "is awaited: the saver works in OS threads then.",
            )
        self._store = store
        self._world = World.of(world)
        self._passes = Passes.of(store)
        self._outboxes: WeakValueDictionary[str, Outbox] = WeakValueDictionary()
        self._lock = threading.Lock()
        self.is_guarded = False
        """Whether every run that uses it is decided about before it begins."""
        allow_framework_types(store.registry)

    @classmethod
    def for_graph(
        cls,
        graph: Any,
        store: Store,
        *,
        types: Iterable[type] = (),
        world: World | Mapping[str, Any] | None = None,
    ) -> Self:
        """A saver that also allows the types that a graph names.

        These are the types in its schemas, in the return annotations of its tools, and in the
        response format of a prebuilt agent. A type that has a rule keeps it.

        Args:
            graph: A graph, compiled or not.
            store: An open store.
            types: More types, which the graph does not name.
            world: What the graph is able to do.

        Raises:
            RuleInvalid: Two types have one name, or no rule can be made for one of `types`.
            TypeNotAllowed: A channel, or the artifact of a tool, can hold nothing that can be
                saved.
        """
        saver = cls(store, world=world)
        allow_types(store.registry, graph_types(graph, types))
        check_declared(graph, store.registry)
        return saver

    def behind_guard(self) -> Self:
        """The same saver, for a graph whose every run is decided about before it begins."""
        found = copy.copy(self)
        found.is_guarded = True
        return found

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """The same saver, with more types allowed; each is named by its module and its name."""
        allow_types(self._store.registry, types_of_allowlist(extra_allowlist, strict=False))
        return copy.copy(self)

    @property
    def store(self) -> Store:
        """The store that everything is kept in."""
        return self._store

    @property
    def passes(self) -> Passes:
        """Which guarded runs may go on."""
        return self._passes

    # ------------------------------------------------------------------ reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a configuration names, or the newest of its namespace.

        Raises:
            Superseded: A guarded run reads, and another one goes on with the thread by now.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        address = Address.of(config)
        snapshot, marks = self._passes.read(address, config)
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
        if limit is not None and not isinstance(limit, int):
            raise UsageError(f"limit: expected a number, found {type(limit).__name__}")
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
        end = ((before or {}).get("configurable") or {}).get("checkpoint_id")
        require_text(end, "checkpoint_id")
        # By id, as the framework's own savers do, in whichever order they were put.
        refs = self._store.thread(address.thread).snapshots(address.lane, by_id=True)
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
            ResumeRefused: A run begins with it, and the policy does not allow that.
            Superseded, HeadMoved: Another run goes on with the thread.
            Paused: An operator paused the thread.
        """
        address = Address.of(config)
        self._settle(address, config, self._checkpoint(address, config, checkpoint, metadata))
        return address.config(checkpoint["id"], address.lane or "", _marks_of(config))

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
        source = metadata.get("source")
        # In a namespace every run of the subgraph begins with an input: only an edit is a new run.
        begins = source == _EDIT or (not address.lane and source in _BEGINNINGS)
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
                address, config, self._store, begins=begins, answered=source == _EDIT
            ),
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
            position=self._results_position(address, config, writes, task_id),
        )
        return self._enqueued(address, config, draft)

    def _results_position(
        self,
        address: Address,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
    ) -> RunPosition:
        begins = task_id == _NO_TASK and not address.lane
        answered = begins or any(channel == _RESUME for channel, _ in writes)
        found = position_of(address, config, self._store, begins=begins, answered=answered)
        if found.token is None and found.run is None:
            # An edit puts what it writes before its checkpoint, in the name of the task.
            return replace(found, answered=True)
        return found

    def _world_of(self, address: Address, config: RunnableConfig) -> World | None:
        found = self._passes.find(address.thread, config)
        return self._world if found is None else found.world

    def _enqueued(self, address: Address, config: RunnableConfig, draft: CommitDraft) -> Ticket:
        if draft.position is not None and draft.position.begins:
            self._passes.forget_refusals(address.thread)
        self._passes.raise_refusal(address, config)
        return self._outbox(address.thread).put(draft)

    def _settle(self, address: Address, config: RunnableConfig, ticket: Ticket) -> None:
        try:
            ticket.outbox.settle(ticket, patience_s=_patience_s(ticket.draft))
        except SealpointError as error:
            told = _in_words_of_graphs(error, ticket.draft)
            self._passes.note_refusal(address, config, told)
            if told is error:
                raise
            raise told from error.__cause__
        # The work is done and kept, but the run must not go on. The framework puts no later
        # checkpoint after one that failed, and the results of nodes that were on their way would be
        # lost; so a guarded run is told nothing here, and stops before its next step.
        held = isinstance(ticket.outcome, CheckpointRef) and ticket.outcome.held
        if held and not self._passes.hold(address.thread, config):
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
            self._store.thread(str(thread_id)).delete(reason="delete_thread")
        except UnknownThread:
            return

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what some runs saved, except what living checkpoints still need.

        Raises:
            RolledBack: The store lacks threads that the anchor knows; nothing is deleted then.
        """
        wanted = frozenset(str(each) for each in run_ids)
        if not wanted:
            return
        for name in self._store.threads():
            thread = self._store.thread(name)
            if keys := keys_of_runs(thread, wanted):
                thread.delete(keys, reason="delete_for_runs")

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
                thread.delete(keys, reason="prune: keep_latest")

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

    @property
    def get_next_version(self) -> Callable[[Any, None], Any]:
        """What gives the version after another: a number, or text where the thread began with text.

        The framework takes hold of it when a run or an edit begins, and never to read. So where
        only guarded graphs may run, a graph that is not is told so here, before any node runs;
        what it puts would be refused too.

        Raises:
            ResumeRefused: The policy asks for approvals, and the graph is not guarded.
        """
        policy = None if self.is_guarded else self._store.policy
        if policy is not None and policy.asks_people:
            words = f"the policy {policy.name!r} asks for approvals, which only guard can ask for"
            raise ResumeRefused(
                f"saver: a graph that is not guarded may not run: {words}",
                reasons=(words,),
                hint="Run the graph through guard(graph, saver, actor=...).",
            )
        return _next_version

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
        return address.config(checkpoint["id"], address.lane or "", _marks_of(config))

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

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What channels of a checkpoint are put together from, down to their last whole value."""
        # Part of one checkpoint's state, which lies in those before it: nobody runs from these.
        return super().get_delta_channel_history(config=without_pass(config), channels=channels)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """The same as `get_delta_channel_history`."""
        return await asyncio.to_thread(
            self.get_delta_channel_history, config=config, channels=channels
        )


def _next_version(current: Any, _channel: None = None) -> Any:
    if isinstance(current, str):
        return f"{int(current.split('.')[0]) + 1:032}"
    return 1 if current is None else current + 1


def _patience_s(draft: CommitDraft) -> float:
    """How long something waits for what its run writes next; after a question that is nothing."""
    waits = (
        isinstance(draft, ResultsDraft) and draft.question is None and not draft.blocked_by_pause
    )
    return _PATIENCE_S if waits else 0.0


def _marks_of(config: RunnableConfig) -> dict[str, Any]:
    """What an edit in several steps goes on with; it is not shown to the caller."""
    found = config.get("configurable") or {}
    return {TICKET: found[TICKET]} if TICKET in found else {}


def _in_words_of_graphs(error: SealpointError, draft: CommitDraft) -> SealpointError:
    """The same error, in the words of somebody who runs a graph."""
    if isinstance(error, ResumeRefused):
        return in_words_of_graphs(error)
    if isinstance(error, EncodeError) and isinstance(draft, ResultsDraft):
        error = of_channel(error, draft.value)
    if isinstance(error, TypeNotAllowed) and error.hint.startswith("Write: "):
        return TypeNotAllowed(error.message, hint=f"{error.hint}\n{_SHORTER}")
    return error
