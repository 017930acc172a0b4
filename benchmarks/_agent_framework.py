# SPDX-License-Identifier: Apache-2.0
"""Checkpoint storage of Microsoft Agent Framework, beside its own on the same disk.

The stock storage waits for no disk: what it saved last may be gone after a power cut. Ours waits,
so wall time is told together with processor time. A guarded turn is a decision that is recorded, a
checkpoint that is put back, and the saves; the stock workflow has the saves alone.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from agent_framework import FileCheckpointStorage

from benchmarks._measure import Result, Taken
from benchmarks._site import Site, quiet_collector
from benchmarks._workflows import chat_workflow, ring_checkpoints
from sealpoint_agent_framework import SealedCheckpointStorage, guard

__all__ = ["experiments"]

_START = 20
_SUPERSTEPS = 100
_LOADS = 40
_READS = 10
_TURNS = 30


_Calls = tuple[list[Taken], list[Taken], list[Taken], list[Taken]]


class _Side(NamedTuple):
    """What each kind of call took on one storage, and the bytes on disk at the end."""

    save: list[Taken]
    load: list[Taken]
    ids: list[Taken]
    latest: list[Taken]
    size_bytes: int


async def _timed(call: Callable[[], Awaitable[Any]]) -> Taken:
    wall, processor = time.perf_counter(), time.process_time()
    await call()
    return Taken(time.perf_counter() - wall, time.process_time() - processor)


@contextmanager
def _opened(scheme: str, home: Path) -> Iterator[tuple[SealedCheckpointStorage, Path]]:
    """A storage of ours, and where its store lies."""
    site = Site(home, scheme=scheme)
    with site.open() as store:
        yield SealedCheckpointStorage(store), site.data


def _size_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@cache
def _measured(scheme: str) -> tuple[_Side, _Side]:
    """The same checkpoints on both, call by call in turns; measured once."""
    checkpoints = ring_checkpoints(_START, _SUPERSTEPS)
    quiet_collector()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        stock = FileCheckpointStorage(home / "stock")
        with _opened(scheme, home) as (sealed, data):
            sides = asyncio.run(_work([sealed, stock], checkpoints))
        sizes = _size_bytes(data), _size_bytes(home / "stock")
    (ours, peer), (ours_bytes, peer_bytes) = sides, sizes
    return _Side(*ours, size_bytes=ours_bytes), _Side(*peer, size_bytes=peer_bytes)


async def _work(storages: list[Any], checkpoints: list[Any]) -> list[_Calls]:
    taken: list[_Calls] = [([], [], [], []) for _ in storages]

    async def each(kind: int, call: Callable[[Any], Awaitable[Any]]) -> None:
        for place, storage in enumerate(storages):
            taken[place][kind].append(await _timed(lambda: call(storage)))  # noqa: B023

    for checkpoint in checkpoints:
        await each(0, lambda storage: storage.save(checkpoint))  # noqa: B023
    for checkpoint in checkpoints[-_LOADS:]:
        await each(1, lambda storage: storage.load(checkpoint.checkpoint_id))  # noqa: B023
    for _ in range(_READS):
        await each(2, lambda storage: storage.list_checkpoint_ids(workflow_name="ring"))
        await each(3, lambda storage: storage.get_latest(workflow_name="ring"))
    return taken


def _ratio(
    question: str, ours: list[Taken], peer: list[Taken], *, bar: float, unit: str = "wall"
) -> Result:
    mine, theirs = (statistics.fmean(getattr(each, unit) for each in side) for side in (ours, peer))
    return Result(
        question=question,
        ours=f"{mine * 1e3:.2f} ms",
        peer=f"FileCheckpointStorage {theirs * 1e3:.2f} ms",
        figure=mine / theirs,
        unit=f"x the peer's {unit} time",
        bar=bar,
        at_least=False,
    )


def _storage(scheme: str) -> Iterator[Result]:
    ours, peer = _measured(scheme)
    where = f"Agent Framework on {scheme}: "
    for question, mine, theirs in (
        (f"save a checkpoint, of {_SUPERSTEPS}", ours.save, peer.save),
        ("load a checkpoint, verified", ours.load, peer.load),
    ):
        yield _ratio(f"{where}{question}", mine, theirs, bar=1.0)
        yield _ratio("the same", mine, theirs, bar=1.0, unit="processor")
    yield _ratio(f"{where}list {_SUPERSTEPS} ids", ours.ids, peer.ids, bar=0.2)
    yield _ratio(f"{where}get_latest of {_SUPERSTEPS}", ours.latest, peer.latest, bar=0.2)
    yield Result(
        question=f"{where}{_SUPERSTEPS} supersteps on disk",
        ours=f"{ours.size_bytes:,} bytes",
        peer=f"FileCheckpointStorage {peer.size_bytes:,} bytes",
        figure=ours.size_bytes / peer.size_bytes,
        unit="x the peer's size",
        bar=0.2,
        at_least=False,
    )


def _turns(scheme: str) -> Iterator[Result]:
    """Turns of a conversation: behind the gate, and unguarded on the stock storage."""
    quiet_collector()
    with tempfile.TemporaryDirectory() as name, _opened(scheme, Path(name)) as (sealed, _):
        stock = FileCheckpointStorage(Path(name) / "stock")
        guarded = guard(chat_workflow("ours"), sealed, actor="bench")
        plain = chat_workflow("peer")

        async def work() -> tuple[list[Taken], list[Taken]]:
            ours, peer = [], []
            for turn in range(_TURNS):
                text = f"question {turn}"
                ours.append(await _timed(lambda: guarded.run(text)))  # noqa: B023
                peer.append(
                    await _timed(lambda: plain.run(text, checkpoint_storage=stock))  # noqa: B023
                )
            return ours, peer

        ours, peer = asyncio.run(work())
    question = f"Agent Framework on {scheme}: a guarded turn of a chat, of {_TURNS}"
    yield _ratio(question, ours[1:], peer[1:], bar=1.5)
    yield _ratio("the same", ours[1:], peer[1:], bar=1.5, unit="processor")


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    yield from _storage("sqlite")
    yield from _turns("sqlite")
    yield from _storage("file")
