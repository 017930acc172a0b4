# SPDX-License-Identifier: Apache-2.0
"""Many conversations at once on one saver: OS threads, processes, and one event loop."""

import asyncio
import gc
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks._langgraph import both_savers, config, one_node, plain_answers, stock_saver, turn
from benchmarks._measure import Result
from benchmarks._site import Site, new_site
from sealpoint_langgraph import SealedSaver

__all__ = ["experiments", "rates"]

OS_THREADS = (1, 2, 4, 8, 16)
_TURNS = 12
_ROUNDS = 3
_PROCESSES = 2
_PROCESS_THREADS = 4
_CONVERSATIONS = 64
_LOOP_TURNS = 4


def _talk(graph: Any, names: list[str]) -> float:
    """Turns a second, an OS thread for each conversation."""

    def run(thread: str) -> None:
        for number in range(_TURNS):
            turn(graph, number, thread)

    running = [threading.Thread(target=run, args=(name,)) for name in names]
    start = time.perf_counter()
    for each in running:
        each.start()
    for each in running:
        each.join()
    return len(names) * _TURNS / (time.perf_counter() - start)


@cache
def rates() -> dict[int, tuple[float, float]]:
    """Turns a second of ours and of the peer by OS threads, the two in turns."""
    found = {}
    for count in OS_THREADS:
        pairs = []
        with both_savers() as savers:
            graphs = [one_node(each, plain_answers()) for each in (savers.ours, savers.peer)]
            for number in range(_ROUNDS):
                names = [f"conversation-{number}-{place}" for place in range(count)]
                pairs.append([_talk(graph, names) for graph in graphs])
        ours, peer = map(statistics.median, zip(*pairs, strict=True))
        found[count] = ours, peer
    return found


def _rate(question: str, ours: float, peer: float, name: str, bar: float) -> Result:
    return Result(
        question=f"{question}, turns a second",
        ours=f"{ours:.0f} a second",
        peer=f"{name} {peer:.0f} a second",
        figure=ours / peer,
        unit="x the peer's throughput",
        bar=bar,
        at_least=True,
    )


def _process(side: str, directory: Path, number: int, ready: Any, rate: Any) -> None:
    """One process of several; all begin together."""
    with ExitStack() as open_until_end:
        if side == "ours":
            saver: Any = SealedSaver(open_until_end.enter_context(Site(directory).open()))
        else:
            saver = open_until_end.enter_context(stock_saver(directory / "peer.db"))
        graph = one_node(saver, plain_answers())
        turn(graph, 0, f"warm-{number}")
        ready.wait()
        rate.put(_talk(graph, [f"{number}-{place}" for place in range(_PROCESS_THREADS)]))


def _processes_rate(side: str) -> float:
    spawning = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        Site(directory)
        with stock_saver(directory / "peer.db") as saver:
            saver.conn.execute("PRAGMA busy_timeout = 30000")
        ready, found = spawning.Barrier(_PROCESSES), spawning.Queue()
        running = [
            spawning.Process(target=_process, args=(side, directory, number, ready, found))
            for number in range(_PROCESSES)
        ]
        for each in running:
            each.start()
        rate: float = sum(found.get(timeout=300) for _ in running)
        for each in running:
            each.join()
        return rate


def _processes() -> Result:
    pairs = [(_processes_rate("ours"), _processes_rate("peer")) for _ in range(_ROUNDS)]
    ours, peer = map(statistics.median, zip(*pairs, strict=True))
    question = f"{_PROCESSES} processes of {_PROCESS_THREADS} threads on one store"
    return _rate(question, ours, peer, "SqliteSaver", 0.9)


class _Longest:
    """For how long the OS thread of an event loop was kept busy at a time, at most."""

    def __init__(self) -> None:
        self.callback_s = 0.0
        """By one callback, without Python's collector."""
        self.collection_s = 0.0
        """By the collector: it goes through all that the process holds, whoever made it."""
        self._loop = threading.get_ident()
        self._began = self._collected_s = 0.0

    def collecting(self, phase: str, _told: Any) -> None:
        """The collector begins or ends, in the middle of whatever runs."""
        now = time.thread_time()
        if threading.get_ident() != self._loop:
            return
        if phase == "start":
            self._began = now
        else:
            self._collected_s += now - self._began
            self.collection_s = max(self.collection_s, now - self._began)

    def run(self, call: Callable[[], None]) -> None:
        """Run a callback."""
        start, self._collected_s = time.thread_time(), 0.0
        call()
        took = time.thread_time() - start - self._collected_s
        self.callback_s = max(self.callback_s, took)


@contextmanager
def _longest() -> Iterator[_Longest]:
    """Watch every callback of the loop that this runs in."""
    longest, run = _Longest(), asyncio.Handle._run  # noqa: SLF001
    gc.callbacks.append(longest.collecting)
    asyncio.Handle._run = lambda handle: longest.run(lambda: run(handle))  # type: ignore[method-assign, assignment]  # noqa: SLF001
    try:
        yield longest
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]  # noqa: SLF001
        gc.callbacks.remove(longest.collecting)


async def _loop_rate(graph: Any, prefix: str) -> float:
    async def talk(thread: str) -> None:
        for number in range(_LOOP_TURNS):
            text = HumanMessage("q" * 1000, id=f"human-{number}")
            await graph.ainvoke({"messages": [text]}, config(thread), durability="sync")

    start = time.perf_counter()
    await asyncio.gather(*(talk(f"{prefix}-{number}") for number in range(_CONVERSATIONS)))
    return _CONVERSATIONS * _LOOP_TURNS / (time.perf_counter() - start)


async def _loop(store: Any, file: Path) -> tuple[list[list[float]], list[list[_Longest]]]:
    """Turns a second, and what kept the loop longest, of ours and of the peer."""
    pairs, kept = [], []
    async with AsyncSqliteSaver.from_conn_string(str(file)) as peer:
        graphs = [one_node(each, plain_answers()) for each in (SealedSaver(store), peer)]
        for graph in graphs:
            await _loop_rate(graph, "warm")
        for number in range(_ROUNDS):
            pairs.append([await _loop_rate(graph, f"r{number}") for graph in graphs])
            both = []
            for graph in graphs:
                with _longest() as longest:
                    await _loop_rate(graph, f"watched{number}")
                both.append(longest)
            kept.append(both)
    return pairs, kept


def _event_loop() -> Iterator[Result]:
    with new_site() as site, site.open() as store:
        pairs, kept = asyncio.run(_loop(store, site.data.parent / "peer.db"))
    ours, peer = map(statistics.median, zip(*pairs, strict=True))
    question = f"{_CONVERSATIONS} conversations in one event loop"
    yield _rate(question, ours, peer, "AsyncSqliteSaver", 0.8)
    (mine, my_pause), (theirs, their_pause) = map(_medians_ms, zip(*kept, strict=True))
    yield Result(
        question="the longest that a callback keeps that loop, framework included",
        ours=f"{mine:.1f} ms, and Python's collector {my_pause:.1f} ms",
        peer=f"AsyncSqliteSaver {theirs:.1f} ms, and the collector {their_pause:.1f} ms",
        figure=mine,
        unit="ms of processor time without the collector",
        bar=5,
        at_least=False,
    )


def _medians_ms(rounds: Sequence[_Longest]) -> tuple[float, float]:
    callback_s = statistics.median(each.callback_s for each in rounds)
    collection_s = statistics.median(each.collection_s for each in rounds)
    return callback_s * 1e3, collection_s * 1e3


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    ours, peer = rates()[8]
    yield _rate("8 threads on one saver", ours, peer, "SqliteSaver", 0.8)
    yield _processes()
    yield from _event_loop()
