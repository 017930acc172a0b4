# SPDX-License-Identifier: Apache-2.0
"""The store beside LangGraph's SqliteSaver: the same states, the same durability, the same run."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

import sealpoint
from benchmarks._graphs import Step, chat_turns, long_steps, small_steps
from benchmarks._langgraph import stock_saver
from benchmarks._measure import Result, Taken, alternated, ratio, taken
from benchmarks._site import Site, new_site
from benchmarks._states import ChatMessage, Plan, agent_state, messages, registry
from benchmarks._states import Step as PlanStep

__all__ = ["experiments", "small_save"]

_SMALL_STEPS = 1500
_LONG_STEPS = 40
_LONG_HISTORY = 500
_TURNS = 200
_LOADS = 60
_TURNS_AT_ONCE = 10
_CHATS = 5


class _Pair:
    """A Sealpoint store and a stock saver in one directory."""

    def __init__(self, site: Site, peer: SqliteSaver) -> None:
        self._site = site
        self.ours_file, self.peer_file = site.file, site.data.parent / "peer.db"
        self.store = self.open()
        self.peer = peer
        types = [(kind.__module__, kind.__qualname__) for kind in (ChatMessage, PlanStep, Plan)]
        peer.serde = JsonPlusSerializer(allowed_msgpack_modules=types)

    def open(self) -> sealpoint.Store:
        allowed = registry()
        allowed.allow(HumanMessage, name="langchain.human")
        allowed.allow(AIMessage, name="langchain.ai")
        return self._site.open(registry=allowed)

    def save_peer(self, step: Step) -> None:
        for writes in step.writes:
            self.peer.put_writes(*writes)
        self.peer.put(*step.put)

    def close(self) -> None:
        self.store.close()
        self.peer.conn.close()


@contextmanager
def _pair() -> Iterator[_Pair]:
    with new_site() as site, stock_saver(site.data.parent / "peer.db") as peer:
        pair = _Pair(site, peer)
        try:
            yield pair
        finally:
            pair.close()


def _saved(question: str, pair: _Pair, steps: Sequence[Step], bar: float, *, block: int) -> Result:
    thread = pair.store.thread("bench")
    ours, peer = alternated(
        [lambda step=step: thread.save(step.state) for step in steps],  # type: ignore[misc]
        [lambda step=step: pair.save_peer(step) for step in steps],  # type: ignore[misc]
        block,
    )
    return ratio(question, ours, peer, bar)


def _loaded(question: str, pair: _Pair, calls: int, bar: float, *, block: int) -> Result:
    thread = pair.store.thread("bench")
    config: Any = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}
    thread.load()
    pair.peer.get_tuple(config)
    ours, peer = alternated(
        [thread.load] * calls, [lambda: pair.peer.get_tuple(config)] * calls, block
    )
    return ratio(question, ours, peer, bar)


def small_save(question: str, steps: int, bar: float) -> Result:
    """A save of a small state, beside the peer's writes and checkpoint of the same step."""
    recorded = small_steps(steps)
    with _pair() as pair:
        return _saved(question, pair, recorded, bar, block=50)


def _history() -> list[ChatMessage]:
    made = (agent_state()["messages"] * 3)[:_LONG_HISTORY]
    return [each.model_copy(update={"id": f"message-{at}"}) for at, each in enumerate(made)]


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    recorded = small_steps(_SMALL_STEPS)
    with _pair() as pair:
        yield _saved("save a small state", pair, recorded, 1.1, block=50)
        yield _loaded("load a small state, warm, verified", pair, 1000, 1.0, block=50)
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
            yield _saved(f"save {name}", pair, steps, 0.6, block=4)
            yield _loaded(f"load {name}, warm, verified", pair, _LOADS, 0.7, block=5)
    yield from _chat()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chat:
    """One chat: what each turn took, and bytes."""

    ours: list[Taken]
    peer: list[Taken]
    written: list[int]
    ours_bytes: int
    peer_bytes: int


def _one_chat(turns: Sequence[Sequence[Step]]) -> _Chat:
    """Save a chat as often as LangGraph saves it, three checkpoints a turn."""
    ours: list[Taken] = []
    peer: list[Taken] = []
    written = []
    with _pair() as pair:
        thread = pair.store.thread("bench")

        def save(turn: Sequence[Step]) -> None:
            for step in turn:
                thread.save(step.state)

        def save_peer(turn: Sequence[Step]) -> None:
            for step in turn:
                pair.save_peer(step)

        for at in range(0, len(turns), _TURNS_AT_ONCE):
            for turn in turns[at : at + _TURNS_AT_ONCE]:
                ours.append(taken(lambda: save(turn)))  # noqa: B023
                written.append(_pages(pair.ours_file))
            peer.extend(
                taken(lambda: save_peer(turn))  # noqa: B023
                for turn in turns[at : at + _TURNS_AT_ONCE]
            )
        pair.close()
        sizes = [file.stat().st_size for file in (pair.ours_file, pair.peer_file)]
    return _Chat(ours=ours, peer=peer, written=written, ours_bytes=sizes[0], peer_bytes=sizes[1])


def _chat() -> Iterator[Result]:
    """A chat of 200 turns, several times: its last turns are over in a moment."""
    turns = chat_turns(_TURNS, 1024)
    chats = [_one_chat(turns) for _ in range(_CHATS)]
    mine = [each for chat in chats for each in chat.ours[-_TURNS_AT_ONCE:]]
    theirs = [each for chat in chats for each in chat.peer[-_TURNS_AT_ONCE:]]
    yield ratio(f"the last ten turns of a chat of {_TURNS} (2 KB a turn)", mine, theirs, 0.6)
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
