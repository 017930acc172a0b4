# SPDX-License-Identifier: Apache-2.0
"""A real graph on `SealedSaver` beside the same graph on the stock `SqliteSaver`.

Both run turn by turn in one process with the same durability, so that a ratio compares what a user
would see: the framework's own work is in both figures.
"""

import gc
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

import sealpoint
from benchmarks._measure import Result
from benchmarks._states import messages
from sealpoint.adapters.langgraph import SealedSaver

__all__ = ["Curves", "experiments", "measured"]

_TURNS = 200
_STATE_MESSAGES = 500
_READS = 20
_THREADS = 8
_THREAD_TURNS = 12


class _State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def _graph(saver: Any) -> Any:
    texts = [text["content"] for text in messages(2 * _TURNS, 1024)]

    def chat(state: _State) -> dict[str, list[AnyMessage]]:
        place = len(state["messages"])
        return {"messages": [AIMessage(texts[place % len(texts)], id=f"ai-{place}")]}

    builder = StateGraph(_State)
    builder.add_node("chat", chat)
    builder.add_edge(START, "chat")
    builder.add_edge("chat", END)
    return builder.compile(checkpointer=saver)


class _Sides:
    """The same graph twice, and the files behind them."""

    def __init__(self, home: Path) -> None:
        (home / "data").mkdir()
        self.ours_file, self.peer_file = home / "data" / "ours.db", home / "data" / "peer.db"
        config_dir, state_dir = home / "config", home / "state"
        url = f"sqlite:///{self.ours_file}"
        sealpoint.init(url, config_dir=config_dir, state_dir=state_dir)
        self._store = sealpoint.open_store(url, config_dir=config_dir, state_dir=state_dir)
        self._connection = sqlite3.connect(self.peer_file, check_same_thread=False)
        peer = SqliteSaver(self._connection)
        peer.setup()
        if self._connection.execute("PRAGMA synchronous").fetchone() != (2,):
            raise AssertionError("the peer's connection is not as durable as ours")
        self.ours, self.peer = _graph(SealedSaver(self._store)), _graph(peer)

    def close(self) -> None:
        self._store.close()
        self._connection.close()


@contextmanager
def _sides() -> Iterator[_Sides]:
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryDirectory() as name:
        sides = _Sides(Path(name))
        try:
            yield sides
        finally:
            sides.close()


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def _turn(graph: Any, number: int, thread: str = "chat") -> float:
    text = HumanMessage("q" * 1000 + f" {number}", id=f"human-{number}")
    start = time.perf_counter()
    graph.invoke({"messages": [text]}, _config(thread), durability="sync")
    return time.perf_counter() - start


class Curves(NamedTuple):
    """Seconds for each turn of a chat, and the bytes on disk at its end."""

    ours: list[float]
    peer: list[float]
    ours_bytes: int
    peer_bytes: int


@cache
def measured() -> Curves:
    """A chat of one node, the two sides in turns; measured once."""
    ours: list[float] = []
    peer: list[float] = []
    with _sides() as sides:
        for number in range(_TURNS):
            ours.append(_turn(sides.ours, number))
            peer.append(_turn(sides.peer, number))
        sides.close()
        ours_bytes, peer_bytes = (
            file.stat().st_size for file in (sides.ours_file, sides.peer_file)
        )
    return Curves(ours, peer, ours_bytes, peer_bytes)


def _ratio(question: str, ours: list[float], peer: list[float], bar: float) -> Result:
    mine, theirs = statistics.median(ours), statistics.median(peer)
    return Result(
        question=question,
        ours=f"{mine * 1e3:.2f} ms",
        peer=f"SqliteSaver {theirs * 1e3:.2f} ms",
        figure=mine / theirs,
        unit="x the peer's time",
        bar=bar,
        at_least=False,
    )


def _chat(curves: Curves) -> Iterator[Result]:
    ours, peer = curves.ours, curves.peer
    yield _ratio("LangGraph: a turn of a chat, around turn 10", ours[5:15], peer[5:15], 1.0)
    yield _ratio(f"the same, around turn {_TURNS}", ours[-10:], peer[-10:], 0.7)
    first, last = statistics.median(ours[:10]), statistics.median(ours[-10:])
    peer_first, peer_last = statistics.median(peer[:10]), statistics.median(peer[-10:])
    yield Result(
        question="growth of a turn from the first ten to the last ten",
        ours=f"{(last - first) * 1e3:.2f} ms",
        peer=f"SqliteSaver {(peer_last - peer_first) * 1e3:.2f} ms",
        figure=(last - first) / (peer_last - peer_first),
        unit="x the peer's growth",
        bar=0.5,
        at_least=False,
    )
    yield Result(
        question="the whole chat on disk",
        ours=f"{curves.ours_bytes:,} bytes",
        peer=f"SqliteSaver {curves.peer_bytes:,} bytes",
        figure=curves.peer_bytes / curves.ours_bytes,
        unit="x smaller",
        bar=40,
        at_least=True,
    )


def _get_state() -> Result:
    ours: list[float] = []
    peer: list[float] = []
    texts = [text["content"] for text in messages(_STATE_MESSAGES, 1024)]
    history = [
        (AIMessage if number % 2 else HumanMessage)(text, id=f"message-{number}")
        for number, text in enumerate(texts[:-1])
    ]
    with _sides() as sides:
        for graph in (sides.ours, sides.peer):
            graph.invoke({"messages": history}, _config("long"), durability="sync")
        for _ in range(_READS):
            for graph, taken in ((sides.ours, ours), (sides.peer, peer)):
                start = time.perf_counter()
                graph.get_state(_config("long"))
                taken.append(time.perf_counter() - start)
    return _ratio(f"get_state at {_STATE_MESSAGES} messages", ours, peer, 0.6)


def _throughput() -> Result:
    """Eight OS threads on one saver, each with a conversation of its own."""
    rates = []
    with _sides() as sides:
        for graph in (sides.ours, sides.peer):
            start = time.perf_counter()
            running = [
                threading.Thread(target=_conversation, args=(graph, f"conversation-{number}"))
                for number in range(_THREADS)
            ]
            for each in running:
                each.start()
            for each in running:
                each.join()
            rates.append(_THREADS * _THREAD_TURNS / (time.perf_counter() - start))
    return Result(
        question=f"{_THREADS} threads on one saver, turns a second",
        ours=f"{rates[0]:.0f} a second",
        peer=f"SqliteSaver {rates[1]:.0f} a second",
        figure=rates[0] / rates[1],
        unit="x the peer's throughput",
        bar=1.5,
        at_least=True,
    )


def _conversation(graph: Any, thread: str) -> None:
    for number in range(_THREAD_TURNS):
        _turn(graph, number, thread)


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    yield from _chat(measured())
    yield _get_state()
    yield _throughput()
