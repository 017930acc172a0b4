# SPDX-License-Identifier: Apache-2.0
"""Real graphs on `SealedSaver` beside the same graphs on the stock `SqliteSaver`.

Both run turn by turn in one process with the same durability, so that a ratio compares what a user
would see: the framework's own work is in both figures.
"""

import random
import sqlite3
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from benchmarks._measure import Result, Taken, alternated, measured, ratio, taken
from benchmarks._site import new_site
from benchmarks._states import messages, real_message, real_messages
from sealpoint_langgraph import SealedSaver, guard

__all__ = [
    "Chat",
    "Savers",
    "both_savers",
    "chat",
    "chat_of",
    "config",
    "curve",
    "experiments",
    "one_node",
    "plain_answers",
    "stock_saver",
    "turn",
    "turns_taken",
]

_TURNS = 200
_LENGTHS = {10: 20, 100: 12, 400: 12, 800: 8, 1_100: 8, 2_000: 8, 5_000: 4, 10_000: 4}
"""How many turns are timed in a chat of so many messages."""
_LENGTH_BARS = {400: 0.45, 2_000: 0.35, 10_000: 0.35}
_STATE_MESSAGES = 500
_READS = 20
_ANSWERED = 30


class _Messages(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def one_node(saver: Any, answer: Callable[[int], AnyMessage]) -> Any:
    """A chat of one node; it is given how many messages there are."""

    def node(state: _Messages) -> dict[str, list[AnyMessage]]:
        return {"messages": [answer(len(state["messages"]))]}

    builder = StateGraph(_Messages)
    builder.add_node("chat", node)
    builder.add_edge(START, "chat")
    builder.add_edge("chat", END)
    return builder.compile(checkpointer=saver)


def plain_answers() -> Callable[[int], AnyMessage]:
    """Answers of 1 KB with nothing but text."""
    texts = [text["content"] for text in messages(2 * _TURNS, 1024)]
    return lambda place: AIMessage(texts[place % len(texts)], id=f"ai-{place}")


def _real_answers() -> Callable[[int], AnyMessage]:
    return lambda place: real_message(2 * place + 1, random.Random(place))


class Savers(NamedTuple):
    """The two sides."""

    ours: SealedSaver
    peer: SqliteSaver
    sizes: Callable[[], tuple[int, int]]
    """The bytes on disk, once both are closed."""


@contextmanager
def stock_saver(file: Path) -> Iterator[SqliteSaver]:
    """The stock saver, as durable as ours."""
    connection = sqlite3.connect(file, check_same_thread=False)
    try:
        saver = SqliteSaver(connection)
        saver.setup()
        if connection.execute("PRAGMA synchronous").fetchone() != (2,):
            raise AssertionError("the peer's connection is not as durable as ours")
        yield saver
    finally:
        connection.close()


@contextmanager
def both_savers() -> Iterator[Savers]:
    """Ours and the stock one, each on a file of its own in the same place."""
    with new_site() as site, site.open() as store:
        file = site.data.parent / "peer.db"
        with stock_saver(file) as peer:

            def sizes() -> tuple[int, int]:
                store.close()
                peer.conn.close()
                return site.file.stat().st_size, file.stat().st_size

            yield Savers(SealedSaver(store), peer, sizes)


def config(thread: str) -> Any:
    """The configuration of a thread."""
    return {"configurable": {"thread_id": thread}}


def turn(graph: Any, number: int, thread: str = "chat") -> None:
    """One message in, one out."""
    text = HumanMessage("q" * 1000 + f" {number}", id=f"human-{number}")
    graph.invoke({"messages": [text]}, config(thread), durability="sync")


class Chat(NamedTuple):
    """What each turn of a chat took, and the bytes on disk at its end."""

    ours: list[Taken]
    peer: list[Taken]
    ours_bytes: int
    peer_bytes: int


@cache
def chat() -> Chat:
    """A chat of 200 turns; measured once."""
    return chat_of(_TURNS)


def chat_of(turns: int) -> Chat:
    """A chat of one node, the two sides in turns."""
    with both_savers() as savers:
        graphs = [one_node(saver, plain_answers()) for saver in (savers.ours, savers.peer)]
        ours, peer = turns_taken(graphs, turns)
        return Chat(ours, peer, *savers.sizes())


def turns_taken(graphs: list[Any], turns: int) -> tuple[list[Taken], list[Taken]]:
    """What turns of one chat took, the two sides in turns."""
    ours, peer = (
        [lambda graph=graph, number=number: turn(graph, number) for number in range(turns)]
        for graph in graphs
    )
    return alternated(ours, peer)


@cache
def curve() -> dict[int, tuple[list[Taken], list[Taken]]]:
    """Turns of chats that are so long already, with messages as models return them."""
    found = {}
    for length, turns in _LENGTHS.items():
        history = real_messages(length)
        with both_savers() as savers:
            graphs = [one_node(saver, _real_answers()) for saver in (savers.ours, savers.peer)]
            for graph in graphs:
                graph.invoke({"messages": history}, config("chat"), durability="sync")
                turn(graph, -1)
            found[length] = turns_taken(graphs, turns)
    return found


def _turns() -> Iterator[Result]:
    found = chat()
    ours, peer = found.ours, found.peer
    yield ratio("LangGraph: a turn of a chat, around turn 10", ours[5:15], peer[5:15], 1.25)
    yield ratio(f"the same, around turn {_TURNS}", ours[-10:], peer[-10:], 0.5)
    growth, peer_growth = (
        statistics.median(each.wall for each in side[-10:])
        - statistics.median(each.wall for each in side[:10])
        for side in (ours, peer)
    )
    yield Result(
        question="growth of a turn from the first ten to the last ten",
        ours=f"{growth * 1e3:.2f} ms",
        peer=f"SqliteSaver {peer_growth * 1e3:.2f} ms",
        figure=growth / peer_growth,
        unit="x the peer's growth",
        bar=0.3,
        at_least=False,
    )
    yield Result(
        question="the whole chat on disk",
        ours=f"{found.ours_bytes:,} bytes",
        peer=f"SqliteSaver {found.peer_bytes:,} bytes",
        figure=found.peer_bytes / found.ours_bytes,
        unit="x smaller",
        bar=60,
        at_least=True,
    )
    for length, (mine, theirs) in curve().items():
        if length in _LENGTH_BARS:
            question = f"a turn at {length:,} messages as models return them"
            yield ratio(question, mine, theirs, _LENGTH_BARS[length])


def _get_state() -> Result:
    texts = [text["content"] for text in messages(_STATE_MESSAGES, 1024)]
    history = [
        (AIMessage if number % 2 else HumanMessage)(text, id=f"message-{number}")
        for number, text in enumerate(texts[:-1])
    ]
    with both_savers() as savers:
        graphs = [one_node(saver, plain_answers()) for saver in (savers.ours, savers.peer)]
        for graph in graphs:
            graph.invoke({"messages": history}, config("long"), durability="sync")
        ours, peer = ([lambda g=graph: g.get_state(config("long"))] * _READS for graph in graphs)
        return ratio(f"get_state at {_STATE_MESSAGES} messages", *alternated(ours, peer), 0.6)


class _Payment(TypedDict):
    amount: int
    paid: bool


def _asking(saver: Any) -> Any:
    """A graph whose subgraph asks before it pays."""

    def ask(state: _Payment) -> dict[str, bool]:
        return {"paid": bool(interrupt({"pay": state["amount"]}))}

    inner = StateGraph(_Payment)
    inner.add_node("ask", ask)
    inner.add_edge(START, "ask")
    outer = StateGraph(_Payment)
    outer.add_node("pay", inner.compile())
    outer.add_edge(START, "pay")
    return outer.compile(checkpointer=saver)


def _answered(graph: Any, number: int) -> None:
    where = config(f"payment-{number}")
    graph.invoke({"amount": number, "paid": False}, where, durability="sync")
    found = graph.invoke(Command(resume=True), where, durability="sync")
    if found["paid"] is not True:
        raise AssertionError("the answer was to arrive")


def _questions() -> Iterator[Result]:
    with both_savers() as savers:
        bare, peer = _asking(savers.ours), _asking(savers.peer)
        guarded = guard(_asking(None), savers.ours, actor="bench")
        calls = [
            [lambda g=graph, n=n: _answered(g, n) for n in range(base, base + _ANSWERED)]
            for graph, base in ((bare, 0), (peer, 0), (guarded, 1_000), (peer, 1_000))
        ]
        question = "a subgraph with a question and its answer"
        yield ratio(question, *alternated(calls[0], calls[1]), 1.2)
        yield ratio(f"{question}, guarded", *alternated(calls[2], calls[3]), 1.2)


def _guarded_turns() -> Result:
    """What `guard` adds to a run, of processor time."""
    with both_savers() as savers:
        bare = one_node(savers.ours, plain_answers())
        guarded = guard(one_node(None, plain_answers()), savers.ours, actor="bench")
        pairs = [
            (taken(lambda: turn(guarded, n, "guarded")), taken(lambda: turn(bare, n, "bare")))  # noqa: B023
            for n in range(40)
        ]
    more = statistics.median(mine.processor - theirs.processor for mine, theirs in pairs[5:])
    return measured("a guarded run beside a bare one, processor time", more * 1e3, "ms more", 0.3)


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    yield from _turns()
    yield _get_state()
    yield from _questions()
    yield _guarded_turns()
