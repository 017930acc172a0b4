# SPDX-License-Identifier: Apache-2.0
"""The framework's own conformance suite, on every backend, by its async and its sync methods."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from benchmarks.agmi import run_agmi
from benchmarks.agmi_langgraph import LangGraphAdapter
from sealpoint_langgraph import SealedSaver
from tests.adapters.langgraph.stores import opened


class _BySync(SealedSaver):
    """The suite knows only async methods: here each of them is the sync one."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.get_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (the framework's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        for each in self.list(config, filter=filter, before=before, limit=limit):
            yield each

    async def aput(self, *args: Any) -> RunnableConfig:
        return self.put(*args)

    async def aput_writes(self, *args: Any, **named: Any) -> None:
        self.put_writes(*args, **named)

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self.prune(thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Collection[str]
    ) -> Mapping[str, Any]:
        return self.get_delta_channel_history(config=config, channels=list(channels))


_EVERY = [
    pytest.param(
        backend,
        saver,
        id=f"{backend}-{face}",
        marks=[pytest.mark.soak] if (backend, face) == ("postgres", "sync") else [],
    )
    for backend in ("memory", "sqlite", "file", "postgres")
    for face, saver in (("async", SealedSaver), ("sync", _BySync))
]


@pytest.mark.parametrize(("backend", "saver"), _EVERY)
def test_the_conformance_suite_passes_with_every_capability(
    backend: str, saver: type[SealedSaver], tmp_path: Path
) -> None:
    """Every capability that the suite knows is there, and each of its cases passes."""
    made = iter(range(100))

    @checkpointer_test(name="sealpoint")
    async def factory() -> AsyncIterator[SealedSaver]:
        with opened(backend, tmp_path / str(next(made))) as store:
            yield saver(store)

    report = asyncio.run(validate(factory))
    found = report.to_dict()

    assert report.passed_all(), found
    assert {name for name, result in report.results.items() if result.passed} == {
        each.value for each in Capability
    }


def test_all_nine_edits_of_the_yardstick_are_refused_while_reading() -> None:
    """`agmi-check --adapter benchmarks.agmi_langgraph:LangGraphAdapter`: nine of nine."""
    found = {
        row["edit"].split()[0]: (row["verdict"], row["read"]) for row in run_agmi(LangGraphAdapter)
    }

    assert found == {
        "T1": ("REJECTED", "list()"),
        "T2": ("REJECTED", "get_tuple()"),
        "T3": ("REJECTED", "list()"),
        "T4": ("REJECTED", "get_tuple()"),
        "T5": ("REJECTED", "get_tuple()"),
        "T6": ("REJECTED", "get_tuple()"),
        "T7": ("REJECTED", "get_tuple()"),
        "T8": ("REJECTED", "list()"),
        "T9": ("REJECTED", "get_tuple()"),
    }
