# SPDX-License-Identifier: Apache-2.0
"""A watch of ten thousand threads and a hundred thousand entries, on SQLite and on PostgreSQL.

The store is made in SQLite once, and moved to the server. What a person waits for at a page is the
bar: a tenth of a second for everything that the page needs.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sealpoint
from benchmarks._measure import Result, measured, taken
from benchmarks._site import Site, quiet_collector
from sealpoint import api
from sealpoint.api import StoreWatch
from sealpoint.errors import NeedsApproval
from sealpoint.gate import ThreadPhase
from tests.postgres_server import PostgresServer

__all__ = ["LONG", "experiments", "fill"]

_THREADS = 10_000
_SAVES = 8
"""The first makes three entries."""
_ASKING_EVERY = 100
LONG = 5_000
_ROUNDS = 11


def fill(store: sealpoint.Store) -> None:
    """Ten thousand threads, some of them asking, and a long one."""
    for number in range(_THREADS):
        thread = store.thread(f"run-{number:05d}")
        asks = number % _ASKING_EVERY == 0
        for step in range(_SAVES - asks):
            thread.save({"number": number, "step": step}, question="go on?" if asks else None)
        if asks:
            try:
                thread.resume(world=None, answer=True)
            except NeedsApproval:
                continue
            raise AssertionError("the resume was to need approval")
    thread = store.thread("long")
    for step in range(LONG - 2):
        thread.save({"step": step})


def _median_ms(call: Callable[[], object], before: Callable[[], object] | None = None) -> float:
    """The median of some calls, each after something that is not measured."""
    found = []
    for _ in range(_ROUNDS):
        if before is not None:
            before()
        found.append(taken(call).wall)
    return statistics.median(found) * 1e3


def _watched(where: str, open_store: Callable[[], sealpoint.Store]) -> Iterator[Result]:
    with open_store() as store, open_store() as working:
        watch = store.watch()
        start = time.perf_counter()
        watch.refresh()
        seconds = time.perf_counter() - start
        if watch.page().total != _THREADS + 1 or not watch.state.complete:
            raise AssertionError("the watch was to show them all")
        question = f"{where}: the first refresh of a watch, {_THREADS:,} threads verified"
        yield measured(question, seconds, "s", 20.0)
        yield from _warm(where, watch, working)


def _warm(where: str, watch: StoreWatch, working: sealpoint.Store) -> Iterator[Result]:
    still_ms_max = 5.0 if where == "SQLite" else 100.0  # a server cannot say that nothing changed
    found = _median_ms(watch.refresh)
    yield measured(f"{where}: a refresh with nothing new", found, "ms", still_ms_max)
    thread = working.thread("run-00777")

    def move() -> None:
        thread.save({"more": 1})

    found = _median_ms(watch.refresh, move)
    yield measured(f"{where}: a refresh after one thread has moved", found, "ms", 100.0)

    def renew() -> None:
        move()
        watch.refresh()

    def overview() -> None:
        watch.counts()
        watch.page()
        watch.page(text="777", phase=ThreadPhase.SAVED, by_name=True)
        watch.requests()

    found = _median_ms(overview, renew)
    yield measured(f"{where}: counts, a page, a search and all requests", found, "ms", 20.0)
    for what, offset in (("the newest page", 0), ("a page in the middle", LONG // 2)):
        found = _median_ms(lambda offset=offset: watch.timeline("long", offset=offset))  # type: ignore[misc]
        question = f"{where}: {what} of a thread of {LONG:,} entries, verified each time"
        yield measured(question, found, "ms", 100.0)


def experiments() -> Iterator[Result]:
    """Measure both."""
    quiet_collector()
    server = PostgresServer.create()
    try:
        server.start()
        with tempfile.TemporaryDirectory() as directory:
            site = Site(Path(directory), policy="strict")
            with site.open() as store:
                fill(store)
            yield from _watched("SQLite", site.open)
            url = server.url(schema=server.new_schema())
            site.admin().move_to(url, password=server.password)
            where: Any = {
                "config_dir": Path(directory) / "config",
                "state_dir": Path(directory) / "state",
                "password": server.password,
            }
            yield from _watched("PostgreSQL", lambda: api.open_store(url, **where))
    finally:
        server.remove()
