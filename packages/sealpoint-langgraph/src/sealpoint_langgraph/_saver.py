# SPDX-License-Identifier: Apache-2.0
"""`SealedSaver`: a checkpointer for LangGraph on a sealed store.

It only translates: a thread of the framework is a thread of the store, the namespace of a subgraph
is a lane of it, a checkpoint is a checkpoint, pending writes are results. Reading verifies and does
nothing else. Every write states the position of its run, is queued in the order of the calls
(`_checkpoint_writes.py`), and is judged by the gate if a run begins with it.
"""

import asyncio
import copy
from collections.abc import (
    AsyncIterator,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from sealpoint.adapters.guarded_runs import GuardedRuns
from sealpoint.api import Store
from sealpoint.errors import ResumeRefused, UnknownThread, UsageError
from sealpoint.store import CheckpointRef
from sealpoint.world import World
from sealpoint_langgraph._checkpoint_writes import PutQueues
from sealpoint_langgraph._configuration import (
    DELIBERATE,
    TICKET,
    for_reading,
    is_run,
    token_of,
)
from sealpoint_langgraph._conversion import (
    Address,
    checkpoint_tuple,
    copies_of,
    keys_of_runs,
    older_keys,
    require_several,
    require_text,
)
from sealpoint_langgraph._declared_types import (
    allow_types,
    check_declared,
    graph_types,
    types_of_allowlist,
)
from sealpoint_langgraph._framework_types import allow_framework_types


class AwaitedSaver(BaseCheckpointSaver[Any]):
    """The awaited half of a checkpointer: it does the same in other OS threads."""

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


class SealedSaver(AwaitedSaver):
    """A checkpointer for LangGraph on a sealed store.

    ```python
    store = sealpoint.open_store("sqlite:///agents.db")
    graph = builder.compile(checkpointer=SealedSaver(store))
    ```

    It may be used by any number of OS threads and event loops.

    Args:
        store: An open store. The framework's types are added to its registry.
        world: The capabilities of the graphs of this saver, for example from `world_of(graph)`.

    Raises:
        UsageError: The store is not one that `sealpoint.open_store` returns, but for example an
            async one.
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
        self._queues = PutQueues(store, World.of(world))
        self.is_guarded = False
        """Whether it is the saver of a guarded graph, and refuses any other run or edit."""
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
            types: Additional types, which the graph does not name.
            world: The capabilities of the graph.

        Raises:
            RuleInvalid: Two types have one name, or no rule can be made for one of `types`.
            TypeNotAllowed: Every possible value of a channel, or of the artifact of a tool, is of a
                type that cannot be saved.
        """
        saver = cls(store, world=world)
        allow_types(store.registry, graph_types(graph, types))
        check_declared(graph, store.registry)
        return saver

    def behind_guard(self) -> Self:
        """The same saver, for a guarded graph alone."""
        found = copy.copy(self)
        found.is_guarded = True
        return found

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """The same saver, with more types allowed; each is named by its module and its name."""
        allow_types(self._store.registry, types_of_allowlist(extra_allowlist, strict=False))
        return copy.copy(self)

    @property
    def store(self) -> Store:
        """The store that holds everything."""
        return self._store

    # ------------------------------------------------------------------ reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a configuration names, or the newest of its namespace.

        Raises:
            ResumeRefused: An unguarded graph runs from it where only guarded graphs may run: the
                policy requires approvals, or the saver belongs to a guarded graph.
            Superseded: A guarded run reads, and another run has taken the thread since.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: Verification of the store failed.
        """
        if is_run(config):
            self._require_guard(config)
        address = Address.of(config)
        runs, token = GuardedRuns.of(self._store), token_of(config)
        snapshot = runs.read(address.thread, token, address.lane or "", address.id)
        if snapshot is None:
            return None
        # update_state(as_node="__copy__") puts the copy with the configuration of the parent.
        reason = _marks_of(config, DELIBERATE)
        return checkpoint_tuple(address, snapshot, _marks_of(config), reason)

    def _require_guard(self, config: RunnableConfig) -> None:
        """Refuse a run or an edit of an unguarded graph, where only guarded graphs may."""
        policy = None if self.is_guarded else self._store.policy
        if self.is_guarded and token_of(config) is None:
            words = "this saver belongs to a guarded graph"
        elif policy is not None and policy.asks_people:
            words = f"the policy {policy.name!r} asks for approvals, which only guard can ask for"
        else:
            return
        raise ResumeRefused(
            f"saver: a graph that is not guarded may not run or edit: {words}",
            reasons=(words,),
            hint="Run the graph through guard(graph, saver, actor=...).",
        )

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
            for ref in _refs_of(self._store, address, filter or {}, before):
                if left is not None and left <= 0:
                    return
                snapshot = self._store.thread(name).adapter.snapshot(ref.lane, ref.id)
                if snapshot is not None:
                    left = None if left is None else left - 1
                    yield checkpoint_tuple(address, snapshot)

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
            EncodeError: It holds a value that is not allowed; the message has the path.
            ResumeRefused: A run begins with it, and the policy does not allow that; or the saver
                belongs to a guarded graph, and another graph writes.
            Superseded, HeadMoved: Another run has taken the thread.
            Paused: An operator paused the thread.
        """
        address = self._address_of_write(config)
        write = self._queues.put_checkpoint(address, config, checkpoint, metadata)
        self._queues.settle(address, config, write)
        return address.config(checkpoint["id"], address.lane or "", _marks_of(config))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep results of a task on a checkpoint, which may follow later."""
        address = self._address_of_write(config)
        write = self._queues.put_results(address, config, writes, task_id, task_path)
        self._queues.settle(address, config, write)

    def _address_of_write(self, config: RunnableConfig) -> Address:
        if self.is_guarded:
            self._require_guard(config)  # what a bare saver puts is for the gate to judge
        return Address.of(config)

    # ------------------------------------------------------------------ deleting and copying

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread, recorded by a signed entry; `erase` removes more."""
        try:
            self._store.thread(str(thread_id)).adapter.delete(reason="delete_thread")
        except UnknownThread:
            return

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what some runs saved, except data that live checkpoints still need.

        Raises:
            RolledBack: The store lacks threads that the anchor knows; nothing is deleted then.
            UsageError: One id is given instead of several.
        """
        require_several(run_ids, "run_ids")
        wanted = frozenset(str(each) for each in run_ids)
        if not wanted:
            return
        for name in self._store.threads():
            thread = self._store.thread(name).adapter
            if keys := keys_of_runs(thread, wanted):
                thread.delete(keys, reason="delete_for_runs")

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of each namespace, or everything (`delete`).

        The namespace of a subgraph's call is deleted as a whole once the graph has continued from
        the checkpoint at which the call began; that of a subgraph with `checkpointer=True` stays.

        Raises:
            UsageError: One id is given instead of several.
        """
        require_several(thread_ids, "thread_ids")
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy: expected keep_latest or delete, found {strategy!r}")
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            thread = self._store.thread(str(thread_id)).adapter
            if keys := older_keys(thread):
                thread.delete(keys, reason="prune: keep_latest")

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints with their results into another thread, with new signatures.

        Each copy names its source. Approvals and pauses belong to the source alone; a paused thread
        is not copied.

        Raises:
            Paused: An operator paused the source.
        """
        source = self._store.thread(str(source_thread_id))
        drafts = copies_of(source)
        queue = self._queues.of(str(target_thread_id))
        for write in [queue.put(draft) for draft in drafts]:
            queue.settle(write)

    # ------------------------------------------------------------------ the rest of the contract

    def get_next_version(self, current: Any, channel: None) -> Any:  # noqa: ARG002
        """The version after another: a number, or text where the thread began with text."""
        if isinstance(current, str):
            return f"{int(current.split('.')[0]) + 1:032}"
        return 1 if current is None else current + 1

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """The same as `put`; its place in the order is that of the call."""
        address = self._address_of_write(config)
        write = self._queues.put_checkpoint(address, config, checkpoint, metadata)
        await asyncio.to_thread(self._queues.settle, address, config, write)
        return address.config(checkpoint["id"], address.lane or "", _marks_of(config))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """The same as `put_writes`; its place in the order is that of the call."""
        address = self._address_of_write(config)
        write = self._queues.put_results(address, config, writes, task_id, task_path)
        await asyncio.to_thread(self._queues.settle, address, config, write)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """The values and writes of a checkpoint's channels, back to their last complete value."""
        # Part of one checkpoint's state, which is stored in earlier checkpoints: no run starts from
        # these.
        return _Ancestors(self).get_delta_channel_history(
            config=for_reading(config), channels=channels
        )


class _Ancestors(BaseCheckpointSaver[Any]):
    """Reads each checkpoint once, so that a walk along a cycle of parents ends."""

    def __init__(self, saver: SealedSaver) -> None:
        super().__init__()
        self._saver = saver
        self._seen: set[str] = set()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a configuration names; None if it was read before."""
        found = self._saver.get_tuple(config)
        if found is None or found.checkpoint["id"] in self._seen:
            return None
        self._seen.add(found.checkpoint["id"])
        return found


def _refs_of(
    store: Store, address: Address, wanted: Mapping[str, Any], before: RunnableConfig | None
) -> Iterator[CheckpointRef]:
    end = ((before or {}).get("configurable") or {}).get("checkpoint_id")
    require_text(end, "checkpoint_id")
    # By id, like the framework's own savers, regardless of the order in which they were put.
    refs = store.thread(address.thread).adapter.snapshots(address.lane, by_id=True)
    for ref in refs:
        if end is not None and ref.id >= end:
            continue
        if address.id is not None and ref.id != address.id:
            continue
        if all(ref.metadata.get(key) == value for key, value in wanted.items()):
            yield ref


def _marks_of(config: RunnableConfig, name: str = TICKET) -> dict[str, Any]:
    """The keys that the next step of an edit needs from the configuration of the previous step."""
    mark = (config.get("configurable") or {}).get(name)
    return {} if mark is None else {name: mark}
