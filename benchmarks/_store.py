# SPDX-License-Identifier: Apache-2.0
"""The store beside LangGraph's SqliteSaver: the same states, the same durability, the same run."""

import gc
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

import sealpoint
from benchmarks._graphs import Step, chat_turns, long_steps, small_steps
from benchmarks._measure import Result
from benchmarks._states import ChatMessage, Plan, agent_state, messages, registry
from benchmarks._states import Step as PlanStep
from sealpoint.signing import PrivateKey

__all__ = ["experiments"]

_SMALL_STEPS = 1500
_LONG_STEPS = 40
_LONG_HISTORY = 500
_TURNS = 200
_LOADS = 60
_TURNS_AT_ONCE = 10
_CHATS = 5


class _Pair:
    """A Sealpoint store and a stock saver in one directory."""

    def __init__(self, directory: Path) -> None:
        self.ours_file = directory / "data" / "ours.db"
        self.peer_file = directory / "data" / "peer.db"
        self.ours_file.parent.mkdir()
        self._config_dir, self._state_dir = directory / "config", directory / "state"
        self.url = f"sqlite:///{self.ours_file}"
        sealpoint.init(self.url, config_dir=self._config_dir, state_dir=self._state_dir)
        self.store = self.open()
        self._connection = sqlite3.connect(self.peer_file, check_same_thread=False)
        types = [(kind.__module__, kind.__qualname__) for kind in (ChatMessage, PlanStep, Plan)]
        serde = JsonPlusSerializer(allowed_msgpack_modules=types)
        self.peer = SqliteSaver(self._connection, serde=serde)
        self.peer.setup()
        (synchronous,) = self._connection.execute("PRAGMA synchronous").fetchone()
        if synchronous != 2:
            raise AssertionError("the peer's connection is not as durable as ours")

    def open(self) -> sealpoint.Store:
        allowed = registry()
        allowed.allow(HumanMessage, name="langchain.human")
        allowed.allow(AIMessage, name="langchain.ai")
        return sealpoint.open_store(
            self.url, registry=allowed, config_dir=self._config_dir, state_dir=self._state_dir
        )

    def save_peer(self, step: Step) -> None:
        for writes in step.writes:
            self.peer.put_writes(*writes)
        self.peer.put(*step.put)

    def close(self) -> None:
        self.store.close()
        self._connection.close()


@contextmanager
def _pair() -> Iterator[_Pair]:
    # What the harness keeps (recorded steps, modules) is no garbage of either side: the collector
    # need not walk it again and again while the two are timed.
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryDirectory() as directory:
        pair = _Pair(Path(directory))
        try:
            yield pair
        finally:
            pair.close()


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _replayed(pair: _Pair, steps: Sequence[Step], block: int) -> tuple[float, float, float]:
    """Median seconds of ours and of the peer for a step, and the median ratio of blocks."""
    thread = pair.store.thread("bench")
    return _alternated(
        [lambda step=step: thread.save(step.state) for step in steps],  # type: ignore[misc]
        [lambda step=step: pair.save_peer(step) for step in steps],  # type: ignore[misc]
        block,
    )


def _loaded(pair: _Pair, calls: int, block: int) -> tuple[float, float, float]:
    thread = pair.store.thread("bench")
    config: Any = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}
    thread.load()
    pair.peer.get_tuple(config)
    return _alternated([thread.load] * calls, [lambda: pair.peer.get_tuple(config)] * calls, block)


def _alternated(
    ours: Sequence[Callable[[], object]], peer: Sequence[Callable[[], object]], block: int
) -> tuple[float, float, float]:
    """Time both in turns, a block at a time: each runs in caches of its own, as it would alone."""
    mine: list[float] = []
    theirs: list[float] = []
    for at in range(0, len(ours), block):
        mine.extend(map(_timed, ours[at : at + block]))
        theirs.extend(map(_timed, peer[at : at + block]))
    return _medians(mine, theirs, block)


def _medians(ours: list[float], peer: list[float], block: int) -> tuple[float, float, float]:
    blocks = range(0, len(ours) - block + 1, block)
    ratios = [sum(ours[at : at + block]) / sum(peer[at : at + block]) for at in blocks]
    return statistics.median(ours), statistics.median(peer), statistics.median(ratios)


def _result(question: str, figures: tuple[float, float, float], bar: float) -> Result:
    ours, peer, ratio = figures
    return Result(
        question=question,
        ours=f"{ours * 1e6:,.0f} us",
        peer=f"SqliteSaver {peer * 1e6:,.0f} us",
        figure=ratio,
        unit="x the peer's time",
        bar=bar,
        at_least=False,
    )


def _history() -> list[ChatMessage]:
    made = (agent_state()["messages"] * 3)[:_LONG_HISTORY]
    return [each.model_copy(update={"id": f"message-{at}"}) for at, each in enumerate(made)]


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    small = small_steps(_SMALL_STEPS)
    with _pair() as pair:
        yield _result("save a small state", _replayed(pair, small, 50), 1.0)
        yield _result("load a small state, warm, verified", _loaded(pair, 1000, 50), 2.0)
    texts = messages(_LONG_HISTORY, 1024)
    framework = [
        (AIMessage if number % 2 else HumanMessage)(text["content"], id=f"message-{number}")
        for number, text in enumerate(texts)
    ]
    for what, history in (
        ("pydantic messages", _history()),
        ("LangChain messages of 1 KB", framework),
    ):
        steps = long_steps(_LONG_STEPS, history)
        with _pair() as pair:
            name = f"a state of {_LONG_HISTORY} {what}"
            yield _result(f"save {name}", _replayed(pair, steps, 4), 0.6)
            yield _result(f"load {name}, warm, verified", _loaded(pair, _LOADS, 5), 0.7)
    yield from _chat()
    yield _cold()
    yield from _verified()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chat:
    """One chat: seconds for each turn, and bytes."""

    ours: list[float]
    peer: list[float]
    written: list[int]
    ours_bytes: int
    peer_bytes: int


def _one_chat(turns: Sequence[Sequence[Step]]) -> _Chat:
    """Save a chat as often as LangGraph saves it, three checkpoints a turn."""
    ours: list[float] = []
    peer: list[float] = []
    written = []
    with _pair() as pair:
        thread = pair.store.thread("bench")
        for at in range(0, len(turns), _TURNS_AT_ONCE):
            for turn in turns[at : at + _TURNS_AT_ONCE]:
                ours.append(sum(_timed(lambda s=s: thread.save(s.state)) for s in turn))  # type: ignore[misc]
                written.append(_pages(pair.ours_file))
            peer.extend(
                sum(_timed(lambda s=s: pair.save_peer(s)) for s in turn)  # type: ignore[misc]
                for turn in turns[at : at + _TURNS_AT_ONCE]
            )
        pair.close()
        sizes = [file.stat().st_size for file in (pair.ours_file, pair.peer_file)]
    return _Chat(ours=ours, peer=peer, written=written, ours_bytes=sizes[0], peer_bytes=sizes[1])


def _chat() -> Iterator[Result]:
    """A chat of 200 turns, several times: its last turns are over in a moment."""
    turns = chat_turns(_TURNS, 1024)
    chats = [_one_chat(turns) for _ in range(_CHATS)]
    mine = [seconds for chat in chats for seconds in chat.ours[-_TURNS_AT_ONCE:]]
    theirs = [seconds for chat in chats for seconds in chat.peer[-_TURNS_AT_ONCE:]]
    yield _result(
        f"the last ten turns of a chat of {_TURNS} (2 KB a turn)",
        _medians(mine, theirs, _TURNS_AT_ONCE),
        0.6,
    )
    written, ours_bytes, peer_bytes = chats[0].written, chats[0].ours_bytes, chats[0].peer_bytes
    half = len(written) // 2
    early, late = written[half - 1] - written[9], written[-1] - written[half]
    yield Result(
        question="bytes a turn in its second half beside its first",
        ours=f"{late / (half - 1):,.0f} bytes",
        peer=f"first half {early / (half - 10):,.0f} bytes",
        figure=(late / (half - 1)) / (early / (half - 10)),
        unit="x the first half",
        bar=1.5,
        at_least=False,
    )
    yield Result(
        question="the whole chat on disk, after close",
        ours=f"{ours_bytes:,} bytes",
        peer=f"SqliteSaver {peer_bytes:,} bytes",
        figure=peer_bytes / ours_bytes,
        unit="x smaller",
        bar=50.0,
        at_least=True,
    )


def _pages(file: Path) -> int:
    """How many bytes of pages the database has, whether in the file or still in its log."""
    connection = sqlite3.connect(file)
    try:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    finally:
        connection.close()
    return int(pages) * int(size)


def _cold() -> Result:
    """Open a store and read the head of a long thread, beside that of a short one."""
    with _pair() as pair:
        for name, count in (("short", 8), ("long", 9_998)):
            thread = pair.store.thread(name)
            for number in range(count):
                thread.save({"number": number, "name": name})
        pair.store.close()

        def read(name: str) -> float:
            def call() -> None:
                with pair.open() as store:
                    store.thread(name).load()

            return _timed(call)

        read("long")
        pairs = [(read("long"), read("short")) for _ in range(30)]
    return Result(
        question="open the store and read the head of 10,000 entries",
        ours=f"{statistics.median(long for long, _ in pairs) * 1e6:,.0f} us",
        peer=f"of 10 entries {statistics.median(short for _, short in pairs) * 1e6:,.0f} us",
        figure=statistics.median(long / short for long, short in pairs),
        unit="x the time for 10",
        bar=3.0,
        at_least=False,
    )


def _bare_rate(verify: Callable[[bytes, bytes], object], signer: PrivateKey, count: int) -> float:
    """Bare Ed25519 verifications a second on two cores."""
    message = os.urandom(600)
    signature = signer.sign(message)

    def run() -> None:
        for _ in range(count // 2):
            verify(signature, message)

    with ThreadPoolExecutor(2) as pool:
        start = time.perf_counter()
        for each in [pool.submit(run) for _ in range(2)]:
            each.result()
        return count / (time.perf_counter() - start)


def _verified() -> Iterator[Result]:
    """Full verification of a long thread, beside bare verification of signatures on two cores."""
    with _pair() as pair:
        thread = pair.store.thread("long")
        for number in range(6_000):
            thread.save({"number": number})

        def rate() -> float:
            start = time.perf_counter()
            report = pair.store.verify()
            if not report.ok:
                raise AssertionError(report.findings)
            return report.entries / (time.perf_counter() - start)

        signer = PrivateKey.draw("bench", os.urandom)
        openssl = Ed25519PublicKey.from_public_bytes(signer.public.raw).verify
        rate()
        for library, verify in (("cryptography", openssl), ("PyNaCl", signer.public.verify)):
            pairs = [(rate(), _bare_rate(verify, signer, 6_000)) for _ in range(5)]
            bare = statistics.median(bare for _, bare in pairs)
            yield Result(
                question="verify every entry, body and blob of 6,000 entries",
                ours=f"{statistics.median(full for full, _ in pairs):,.0f} a second",
                peer=f"bare Ed25519 by {library} {bare:,.0f} a second",
                figure=statistics.median(full / bare for full, bare in pairs),
                unit="x the bare rate",
                bar=0.6,
                at_least=True,
            )
