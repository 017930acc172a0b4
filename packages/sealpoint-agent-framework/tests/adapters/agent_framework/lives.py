# SPDX-License-Identifier: Apache-2.0
"""Runs a sample over a storage, whole or killed and resumed, and writes down what it came to.

A run is a sequence of lives. Each is a process of its own, or what is left of one: a new event
loop, a new workflow, a new storage on a store that was opened from disk. A life dies after so many
saves; the next one looks at the newest checkpoint, as a careful user would, and goes on from it.
"""

import asyncio
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from pprint import pformat  # which puts keys in order: the framework makes some from sets
from typing import Any, get_origin

from agent_framework import (
    FunctionalWorkflow,
    InMemoryCheckpointStorage,
    WorkflowCheckpoint,
)
from pydantic import BaseModel

from sealpoint_agent_framework import SealedCheckpointStorage, guard
from tests.adapters.agent_framework.outside import Outside
from tests.adapters.agent_framework.samples import SAMPLES, Sample
from tests.adapters.agent_framework.stores import opened

__all__ = [
    "Death",
    "Killed",
    "MortalStock",
    "Result",
    "cancel_run",
    "kill_process",
    "live_once",
    "run_sample",
    "sealed",
    "stock",
    "written",
]

_LIVES_MAX = 60
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_UNWRITTEN = {"timestamp", "raw_representation"}


class Killed(BaseException):
    """The process ends here; nothing that would be told to the framework."""


def raise_killed() -> None:
    """Die as far as one process can stand for many."""
    raise Killed


def cancel_run() -> None:
    """Die as a task does whose event loop is shut down."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


def kill_process() -> None:
    """Die."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(slots=True, kw_only=True)
class Death:
    """When a life ends: at a save, after it or before."""

    saves: int | None = None
    """How many saves are left; None: it does not end."""
    before: bool = False
    die: Callable[[], None] = raise_killed
    is_armed: bool = True

    def expect(self, *, before: bool) -> None:
        """Die, if it is time."""
        if self.saves is None or not self.is_armed or before is not self.before:
            return
        self.saves -= 1
        if self.saves == 0:
            self.die()


class MortalSealed(SealedCheckpointStorage):
    """Ours, whose process dies at a save."""

    death: Death

    async def save_for(
        self, thread: Any, run: Any, checkpoint: WorkflowCheckpoint, answered: Any = None
    ) -> str:
        """Save for a run."""
        self.death.expect(before=True)
        saved = await super().save_for(thread, run, checkpoint, answered)
        self.death.expect(before=False)
        return saved


class MortalStock(InMemoryCheckpointStorage):
    """The framework's own, whose process dies at a save; it outlives the process."""

    death: Death

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Save."""
        self.death.expect(before=True)
        saved = await super().save(checkpoint)
        self.death.expect(before=False)
        return saved


Worlds = Callable[[Sample, Any, Death], AbstractContextManager[tuple[Any, Any]]]
"""A storage as a new process opens it, and the workflow as it runs there."""


def stock(made: type[MortalStock] = MortalStock) -> Worlds:
    """The framework's storage in memory, one for all lives."""
    storage = made()

    @contextmanager
    def world(_: Sample, workflow: Any, death: Death) -> Iterator[tuple[Any, Any]]:
        storage.death = death
        yield storage, workflow

    return world


def _guarded(workflow: Any, storage: SealedCheckpointStorage) -> Any:
    """A workflow behind the gate, of which everything may be done again after a kill."""
    names = list(getattr(workflow, "executors", ())) or [workflow.name]
    return guard(workflow, storage, actor="dev", idempotent=names)


def sealed(backend: str, home: Path, *, guarded: bool) -> Worlds:
    """Our storage on a store of its own."""

    @contextmanager
    def world(sample: Sample, workflow: Any, death: Death) -> Iterator[tuple[Any, Any]]:
        with opened(backend, home) as store:
            storage = MortalSealed.for_workflow(workflow, store, types=sample.types)
            storage.death = death
            try:
                yield storage, _guarded(workflow, storage) if guarded else workflow
            finally:
                assert storage.refused_saves == 0

    return world


@dataclass(slots=True, kw_only=True)
class Result:
    """What a sample came to."""

    outputs: list[str]
    """What its user was told."""
    did: list[str]
    checkpoints: list[Any]
    """Everything that was saved, in its order."""
    final: Any
    """The last of it, without its place in the lineage."""
    lives: int


@dataclass(slots=True)
class _Life:
    """One process: what its user does from the newest checkpoint on."""

    sample: Sample
    outside: Outside
    storage: Any
    workflow: Any
    death: Death
    _agent: Any = field(init=False, default=None)
    _has_run: bool = field(init=False, default=False)

    async def live(self) -> None:
        """Go on until the user has nothing more to say."""
        self._agent = self.workflow.as_agent("agent") if self.sample.as_agent else None
        newest = await self._newest()
        if self.outside.noted("given")[-1:] == [_id_of(newest)]:
            self.outside.note("lost", _id_of(newest))  # it died before that was saved
        while not self._is_over(newest):
            await self._step(newest)
            newest = await self._newest()

    async def _newest(self) -> WorkflowCheckpoint | None:
        found: WorkflowCheckpoint | None = await self.storage.get_latest(
            workflow_name=self.workflow.name
        )
        return found

    def _is_over(self, newest: WorkflowCheckpoint | None) -> bool:
        if newest is None or newest.messages or newest.pending_request_info_events:
            return False
        if isinstance(self.workflow, FunctionalWorkflow):  # it does not say how far it is
            return bool(self.outside.noted("output"))
        return self._given == len(self.sample.inputs)

    @property
    def _given(self) -> int:
        """How many inputs have been taken, or are being said."""
        return len(self.outside.noted("given")) - len(self.outside.noted("lost"))

    async def _step(self, newest: WorkflowCheckpoint | None) -> None:
        if newest is None:
            self._has_run = True
            await self._say()
            return
        if newest.pending_request_info_events and not newest.messages:
            responses = {
                name: self.sample.answer(event.data)
                for name, event in newest.pending_request_info_events.items()
            }
            await self._run(**self._place(newest), responses=responses)
        elif newest.messages or isinstance(self.workflow, FunctionalWorkflow):
            await self._run(**self._place(newest))
        else:
            if place := self._place(newest):
                self.death.is_armed = False
                await self._run(**place)
                self.death.is_armed = True
            await self._say()

    def _place(self, newest: WorkflowCheckpoint) -> dict[str, str]:
        """What says where to go on from; nothing where this process stands there already."""
        stays = self._has_run and not isinstance(self.workflow, FunctionalWorkflow)
        self._has_run = True
        return {} if stays else {"checkpoint_id": newest.checkpoint_id}

    async def _say(self) -> None:
        message = self.sample.inputs[self._given]
        self.outside.note("given", _id_of(await self._newest()))
        await self._run(message)

    async def _run(self, message: Any = None, **named: Any) -> None:
        if self._agent is not None:
            stream = self._agent.run(message, stream=True, checkpoint_storage=self.storage, **named)
            async for update in stream:
                self.outside.note("output", update.text)
            return
        stream = self.workflow.run(message, stream=True, checkpoint_storage=self.storage, **named)
        async for event in stream:
            if event.type == "output":
                self.outside.note("output", pformat(Written().of(event.data)))


def _id_of(newest: WorkflowCheckpoint | None) -> str:
    return "" if newest is None else newest.checkpoint_id


def live_once(name: str, world: Worlds, outside: Outside, death: Death) -> list[WorkflowCheckpoint]:
    """One life of a sample.

    Returns:
        All checkpoints, if it came to its end.

    Raises:
        Killed, CancelledError: It died.
    """
    sample = SAMPLES[name]

    async def live() -> list[WorkflowCheckpoint]:
        with world(sample, sample.build(outside), death) as (storage, workflow):
            await _Life(sample, outside, storage, workflow, death).live()
            found: list[WorkflowCheckpoint] = await storage.list_checkpoints(
                workflow_name=workflow.name
            )
            return found

    return asyncio.run(live())


def run_sample(
    name: str, world: Worlds, file: Path, deaths: Callable[[int], Death] = lambda _: Death()
) -> Result:
    """Run a sample to its end, in as many lives as it takes.

    Args:
        name: Which one.
        world: Where its checkpoints are kept.
        file: Where what happened outside is written down.
        deaths: When each life ends, from its number.
    """
    outside = Outside(file)
    for life in range(_LIVES_MAX):
        try:
            found = live_once(name, world, outside, deaths(life))
        except (Killed, asyncio.CancelledError):
            continue
        return written(outside, found, life + 1)
    msg = f"{name}: no end after {_LIVES_MAX} lives"
    raise RuntimeError(msg)


def written(outside: Outside, found: Sequence[WorkflowCheckpoint], lives: int) -> Result:
    """Write down what a sample came to."""
    names = Written()
    places = ("checkpoint_id", "previous_checkpoint_id", "iteration_count", "timestamp")
    last = {name: item for name, item in found[-1].to_dict().items() if name not in places}
    return Result(
        outputs=outside.noted("output"),
        did=sorted(outside.noted("did")),
        checkpoints=[names.of(each)[1] for each in found],
        final=Written().of(last),
        lives=lives,
    )


class Written:
    """Values written down for comparing: ids are called by the order in which they come."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, value: Any) -> Any:
        """A value, with the types of all that is in it."""
        if isinstance(value, str) and type(value) is str:
            return _UUID.sub(self._name, value)
        if value is None or isinstance(value, bool | int | float | bytes | type):
            return value
        if get_origin(value) is not None:  # a type that is made of others
            return value
        if isinstance(value, Enum):
            return repr(value)
        if isinstance(value, dict):
            return {self.of(key): self.of(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.of(item) for item in value)
        if isinstance(value, set | frozenset):
            return type(value)(map(self.of, value))
        return type(value).__name__, self._fields(value)

    def _fields(self, value: Any) -> dict[str, Any]:
        if isinstance(value, BaseModel):
            found = value.model_dump()
        elif is_dataclass(value):
            found = {each.name: getattr(value, each.name) for each in fields(value)}
        elif hasattr(value, "__dict__"):
            found = vars(value)
        else:
            msg = f"cannot write down {type(value)!r}"
            raise TypeError(msg)
        return {name: self.of(item) for name, item in found.items() if name not in _UNWRITTEN}

    def _name(self, match: re.Match[str]) -> str:
        return self._names.setdefault(match[0], f"id-{len(self._names)}")
