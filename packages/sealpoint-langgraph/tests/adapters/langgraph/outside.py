# SPDX-License-Identifier: Apache-2.0
"""The world outside a program, and the saver through which a kill comes.

`happen(what)` is what a tool does that cannot be taken back: a mail, a payment. It is noted with
the task that did it. A `CrashingSaver` stands for the process that holds it: when its allowance of
writes is used up the process is dead, and from then on every call to the saver and everything
that would happen outside raises `Killed`. So a thread of a dead process can neither save nor act,
although the framework may still be running its nodes.
"""

import threading
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.config import get_config

from tests.adapters.langgraph.same import CONTROL_CHANNELS

__all__ = ["CrashingSaver", "Killed", "Life", "Saved", "happen", "living"]


class Killed(BaseException):  # an Exception would be caught by the tools' error handling
    """The process that this call belongs to is dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """Something that a task did outside.

    `task`, `lane` and `step` say which task it was, `saved_before` how many writes its process had
    done by then.
    """

    what: str
    task: str
    lane: str
    step: int
    saved_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """One write as the saver was given it.

    `acknowledged` is false when the call did not return, being cancelled for instance: then
    nobody knows whether it is in the store.
    """

    acknowledged: bool
    kind: str
    checkpoint: str
    parents: frozenset[str]
    lane: str
    step: int | None
    task: str
    channels: tuple[str, ...]
    value: Any


@dataclass(slots=True, kw_only=True)
class Life:
    """One process: how many writes it may still do, and what it did.

    `found` are the checkpoints that it has read: they are in the store, whoever saved them.
    """

    allowance: int | None = None
    dead: bool = False
    happened: list[Happened] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def alive(self) -> None:
        """Refuse what a dead process does."""
        if self.dead:
            raise Killed

    def spend(self) -> None:
        """Take one write from the allowance, or die."""
        with self.lock:
            self.alive()
            if self.allowance is not None:
                self.dead = self.allowance == 0
                self.alive()
                self.allowance -= 1

    def kept(self, *, acknowledged: bool) -> list[str]:
        """List what happened in tasks whose result was saved, or may have been.

        A result is saved for the task, or with the checkpoint that ends the task's step: the
        framework does not wait for the first before it writes the second.
        """
        return [
            event.what
            for event in self.happened
            if acknowledged in {self._is_reached(saved) for saved in self._results(event)}
        ]

    def _is_reached(self, result: Saved) -> bool | None:
        """Whether a result will be found again, None if it surely will not.

        A result belongs to a checkpoint, and that of a subgraph to its parents'. The framework
        saves them in no order, so a result can be saved while its checkpoint never is.
        """
        around = {saved.checkpoint: saved for saved in self.saved if saved.kind == "put"}
        needed = {result.checkpoint, *result.parents}
        if result.checkpoint in around:
            needed |= around[result.checkpoint].parents
        if needed - self.found - around.keys():
            return None
        sure = self.found | {name for name, saved in around.items() if saved.acknowledged}
        return result.acknowledged and needed <= sure

    def _results(self, event: Happened) -> list[Saved]:
        return [
            saved
            for saved in self.saved[event.saved_before :]
            if (saved.task == event.task and set(saved.channels) - CONTROL_CHANNELS)
            or (saved.kind == "put" and (saved.lane, saved.step) == (event.lane, event.step))
        ]


_LIFE: ContextVar[Life | None] = ContextVar("life", default=None)


class living:  # noqa: N801 - reads as a word of the with statement
    """Everything inside belongs to one process."""

    def __init__(self, life: Life) -> None:
        self._life = life

    def __enter__(self) -> Life:
        self._token = _LIFE.set(self._life)
        return self._life

    def __exit__(self, *_: object) -> None:
        _LIFE.reset(self._token)


def happen(what: str) -> None:
    """Do something outside that cannot be taken back, and note which task did it.

    Raises:
        Killed: When the process of this task is dead.
    """
    life = _LIFE.get()
    if life is None:
        return
    config = get_config()
    lane = str(config["configurable"].get("checkpoint_ns", ""))
    with life.lock:
        life.alive()
        life.happened.append(
            Happened(
                what=what,
                task=str(config["configurable"]["__pregel_task_id"]),
                lane="|".join(lane.split("|")[:-1]),
                step=int(config["metadata"]["langgraph_step"]),
                saved_before=len(life.saved),
            )
        )


class CrashingSaver(BaseCheckpointSaver[Any]):
    """A saver that passes every call on to another one, until its process is dead."""

    def __init__(self, inner: BaseCheckpointSaver[Any], life: Life) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner
        self.life = life

    @property
    def config_specs(self) -> list[Any]:
        """As the inner saver says."""
        return self.inner.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        """As the inner saver counts."""
        return self.inner.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> "CrashingSaver":
        """Pass the types of the graph on to the inner saver."""
        return CrashingSaver(self.inner.with_allowlist(extra_allowlist), self.life)

    @contextmanager
    def _noted_put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> Iterator[None]:
        with self._noted(
            kind="put",
            checkpoint=checkpoint["id"],
            parents=frozenset(metadata.get("parents", {}).values()),
            lane=str(config["configurable"].get("checkpoint_ns", "")),
            step=metadata.get("step"),
            task="",
            channels=(),
            value=(checkpoint["channel_values"], metadata),
        ):
            yield

    @contextmanager
    def _noted_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str
    ) -> Iterator[None]:
        with self._noted(
            kind="put_writes",
            checkpoint=str(config["configurable"]["checkpoint_id"]),
            parents=frozenset(config["configurable"].get("checkpoint_map", {}).values()),
            lane=str(config["configurable"].get("checkpoint_ns", "")),
            step=None,
            task=task_id,
            channels=tuple(channel for channel, _ in writes),
            value=tuple(writes),
        ):
            yield

    @contextmanager
    def _noted(self, **given: Any) -> Iterator[None]:
        """Count a write and let it through, then note whether it was acknowledged."""
        self.life.spend()
        acknowledged = False
        try:
            yield
            acknowledged = True
        finally:
            with self.life.lock:
                self.life.saved.append(Saved(acknowledged=acknowledged, **given))

    def _found(self, read: CheckpointTuple | None) -> CheckpointTuple | None:
        if read is not None:
            self.life.found.add(read.checkpoint["id"])
        return read

    # Reads.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read, unless dead."""
        self.life.alive()
        return self._found(self.inner.get_tuple(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read, unless dead."""
        self.life.alive()
        return self._found(await self.inner.aget_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the framework's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Read, unless dead."""
        self.life.alive()
        for item in self.inner.list(config, filter=filter, before=before, limit=limit):
            self._found(item)
            yield item

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the framework's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Read, unless dead."""
        self.life.alive()
        async for item in self.inner.alist(config, filter=filter, before=before, limit=limit):
            self._found(item)
            yield item

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read, unless dead."""
        self.life.alive()
        return self.inner.get_delta_channel_history(config=config, channels=channels)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read, unless dead."""
        self.life.alive()
        return await self.inner.aget_delta_channel_history(config=config, channels=channels)

    # Writes.

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write, or die."""
        with self._noted_put(config, checkpoint, metadata):
            return self.inner.put(config, checkpoint, metadata, new_versions)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write, or die."""
        with self._noted_put(config, checkpoint, metadata):
            return await self.inner.aput(config, checkpoint, metadata, new_versions)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Write, or die."""
        with self._noted_writes(config, writes, task_id):
            self.inner.put_writes(config, writes, task_id, task_path)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Write, or die."""
        with self._noted_writes(config, writes, task_id):
            await self.inner.aput_writes(config, writes, task_id, task_path)
