# SPDX-License-Identifier: Apache-2.0
"""A chat on PostgreSQL beside the stock `PostgresSaver` with a pool of 8, on one server.

The server waits for the disk at each commit. Both have a database of their own on it, ours with
the anchor on this machine.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

import sealpoint
from benchmarks._langgraph import one_node, plain_answers, turn, turns_taken
from benchmarks._measure import Result, ratio
from benchmarks._site import quiet_collector
from sealpoint_langgraph import SealedSaver
from tests.postgres_server import ADMIN, PostgresServer

__all__ = ["experiments"]

_TURNS = 200
_PROCESSES = 8
_POOL = 8
_NAME = "PostgresSaver"


class _Place(NamedTuple):
    """Where both sides lie; it is given to other processes."""

    directory: Path
    port: int
    password: str

    def database(self, name: str) -> str:
        """What libpq connects to."""
        return (
            f"host=127.0.0.1 port={self.port} user={ADMIN} password={self.password} dbname={name}"
        )

    def made(self) -> "_Place":
        """The place with both databases, one a store."""
        with psycopg.connect(self.database("postgres"), autocommit=True) as connection:
            for name in ("ours", "peer"):
                connection.execute(f"CREATE DATABASE {name}")
        with self.peer() as peer:
            peer.setup()
        sealpoint.init(self._url, **self._where)
        return self

    @property
    def _url(self) -> str:
        return f"postgresql://{ADMIN}@127.0.0.1:{self.port}/ours"

    @property
    def _where(self) -> Any:
        return {
            "config_dir": self.directory / "config",
            "state_dir": self.directory / "state",
            "password": self.password,
        }

    @contextmanager
    def ours(self) -> Iterator[SealedSaver]:
        """Our saver."""
        with sealpoint.open_store(self._url, **self._where) as store:
            yield SealedSaver(store)

    @contextmanager
    def peer(self) -> Iterator[PostgresSaver]:
        """The stock one, with the options that its documentation asks for."""
        kwargs = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        pool: Any = ConnectionPool(
            self.database("peer"), min_size=1, max_size=_POOL, kwargs=kwargs, open=True
        )
        with pool:
            yield PostgresSaver(pool)

    def written(self, name: str) -> tuple[int, int]:
        """The bytes of a database, and of the log of the whole server."""
        with psycopg.connect(self.database(name), autocommit=True) as connection:
            found = connection.execute(
                "SELECT pg_database_size(current_database()), pg_current_wal_lsn() - '0/0'"
            ).fetchone()
        if found is None:
            raise AssertionError("the server says nothing")
        return int(found[0]), int(found[1])


@contextmanager
def _new_place() -> Iterator[_Place]:
    quiet_collector()
    server = PostgresServer.create(durable=True)
    try:
        server.start()
        with tempfile.TemporaryDirectory() as name:
            yield _Place(Path(name), server.port, server.password).made()
    finally:
        server.remove()


def _turns() -> Iterator[Result]:
    with _new_place() as place, place.ours() as ours, place.peer() as peer:
        graphs = [one_node(each, plain_answers()) for each in (ours, peer)]
        mine, theirs = turns_taken(graphs, _TURNS)
    for around, bar in ((10, 1.0), (_TURNS, 0.5)):
        some = slice(max(0, around - 8), around + 8)
        question = f"PostgreSQL: a turn of a chat, around turn {around}"
        yield ratio(question, mine[some], theirs[some], bar, _NAME)


def _bytes() -> Iterator[Result]:
    """A chat of each, one after the other: the log is the server's."""
    found = []
    with _new_place() as place:
        for name in ("ours", "peer"):
            before = place.written(name)
            with getattr(place, name)() as saver:
                graph = one_node(saver, plain_answers())
                for number in range(_TURNS):
                    turn(graph, number)
            after = place.written(name)
            found.append((after[0] - before[0], after[1] - before[1]))
    for what, ours, peer in zip(("database", "log"), *found, strict=True):
        yield Result(
            question=f"PostgreSQL: {_TURNS} turns in the {what}",
            ours=f"{ours:,} bytes",
            peer=f"{_NAME} {peer:,} bytes",
            figure=peer / ours,
            unit="x smaller",
            bar=20,
            at_least=True,
        )


def _process(place: _Place, side: str, number: int, ready: Any, done: Any) -> None:
    """One process of several; all begin together."""
    with ExitStack() as open_until_end:
        graph = one_node(open_until_end.enter_context(getattr(place, side)()), plain_answers())
        turn(graph, 0, f"warm-{number}")
        ready.wait()
        start = time.time()
        for each in range(_TURNS):
            turn(graph, each, f"chat-{number}")
        done.put((start, time.time()))


def _rate(place: _Place, side: str) -> float:
    """Turns a second of all processes together."""
    spawning = multiprocessing.get_context("spawn")
    ready, done = spawning.Barrier(_PROCESSES), spawning.Queue()
    running = [
        spawning.Process(target=_process, args=(place, side, number, ready, done))
        for number in range(_PROCESSES)
    ]
    for each in running:
        each.start()
    times: list[tuple[float, float]] = [done.get(timeout=600) for _ in running]
    for each in running:
        each.join()
    took = max(end for _, end in times) - min(start for start, _ in times)
    return _PROCESSES * _TURNS / took


def _processes() -> Iterator[Result]:
    with _new_place() as place:
        ours, peer = _rate(place, "ours"), _rate(place, "peer")
    yield Result(
        question=f"PostgreSQL: {_PROCESSES} processes, a chat of {_TURNS} turns each",
        ours=f"{ours:.0f} turns a second",
        peer=f"{_NAME} {peer:.0f} turns a second",
        figure=ours / peer,
        unit="x the peer's throughput",
        bar=2,
        at_least=True,
    )


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    yield from _turns()
    yield from _bytes()
    yield from _processes()
