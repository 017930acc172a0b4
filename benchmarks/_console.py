# SPDX-License-Identifier: Apache-2.0
"""The console of ten thousand threads, one of them long, as a browser meets it.

`sealpoint serve` runs in a process of its own, on SQLite and then on PostgreSQL; somebody is signed
in and asks over HTTP, while a worker in this process saves now and then, as workers do. Pages are
asked for one after the other, warm. The bar is a tenth of a second, for the middle of the answers
and for the slowest of twenty; what a worker saves is on a page within a second.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

import sealpoint
from benchmarks._measure import Result, measured
from benchmarks._site import Site, quiet_collector
from benchmarks._watch import LONG, fill
from sealpoint import api
from tests.postgres_server import PostgresServer, free_port

__all__ = ["experiments"]

_ROUNDS = 40
_BETWEEN_S = 0.1
"""Nobody is answered more often than this for long."""
_LIVE_ROUNDS = 15
_PAGE_MS_MAX = 100.0
_LIVE_S_MAX = 1.0
_READY_S_MAX = 120.0
_SAVE_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class _Place:
    """A store, for whoever opens it here and for a command."""

    name: str
    open: Callable[[], sealpoint.Store]
    options: tuple[str, ...]
    environ: dict[str, str]


@contextmanager
def _served(place: _Place) -> Iterator[httpx.Client]:
    """A browser without a screen that is signed in to a console, once that knows all threads."""
    port = free_port()
    origin = f"http://localhost:{port}"
    command = (sys.executable, "-m", "sealpoint", "serve", "--print-link")
    with subprocess.Popen(  # noqa: S603
        [*command, "--listen", f"127.0.0.1:{port}", *place.options],
        env={**os.environ, **place.environ, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as served:
        try:
            with httpx.Client(base_url=origin, headers={"origin": origin}, timeout=60) as client:
                _sign_in(client, served)
                _wait_until(lambda: "first time" not in client.get("/").text)
                yield client
        finally:
            served.terminate()


def _sign_in(client: httpx.Client, served: "subprocess.Popen[str]") -> None:
    link = None
    for line in served.stdout or ():
        if link := re.search(r"#link=([\w-]+)", line):
            break
    if link is None:
        raise AssertionError("the console was to print a link")
    _wait_until(lambda: _answers(client))
    answer = client.post("/sign-in/link", json={"link": link[1]})
    cookie = answer.raise_for_status().headers["set-cookie"].partition(";")[0]
    client.headers["cookie"] = cookie


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/sign-in").is_success
    except httpx.TransportError:
        return False


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _READY_S_MAX
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("the console was to be ready by now")
        time.sleep(0.1)


@contextmanager
def _working(store: sealpoint.Store) -> Iterator[None]:
    """A worker that saves now and then: what is kept warm has to follow it."""
    ending = threading.Event()

    def work() -> None:
        thread = store.thread("run-00777")
        while not ending.wait(_SAVE_EVERY_S):
            thread.save({"at": time.time()})

    works = threading.Thread(target=work)
    works.start()
    try:
        yield
    finally:
        ending.set()
        works.join()


def _asked(client: httpx.Client, question: str, path: str) -> Iterator[Result]:
    """How long a page takes, from the first byte that is sent to the last that comes."""
    found = []
    for _ in range(_ROUNDS + 3):
        time.sleep(_BETWEEN_S)
        start = time.perf_counter()
        answer = client.get(path)
        found.append((time.perf_counter() - start) * 1e3)
        if answer.status_code != httpx.codes.OK:
            raise AssertionError(f"{path}: {answer.status_code}")
    found = sorted(found[3:])  # the first ones open a connection, and warm what is kept
    yield measured(f"{question}, median", statistics.median(found), "ms", _PAGE_MS_MAX)
    yield measured(f"{question}, p95", found[int(len(found) * 0.95)], "ms", _PAGE_MS_MAX)


def _pages(place: _Place, client: httpx.Client, store: sealpoint.Store) -> Iterator[Result]:
    request = client.get("/api/v1/requests").json()["requests"][0]["id"]
    long = f"/threads/{store.thread('long').standing().thread}"
    pages = {
        "the overview": "/",
        "the overview, searched and filtered": "/?q=777&phase=saved",
        "the newest page of the long thread": long,
        "a page in the middle of the long thread": f"{long}?offset={LONG // 2}",
        "an old state of the long thread": f"{long}/entries/{LONG // 2}",
        "what changed between two of them": f"{long}/compare?from={LONG // 4}&to={LONG // 2}",
        "all open requests": "/requests",
        "one request": f"/requests/{request}",
        "health": "/health",
    }
    for words, path in pages.items():
        yield from _asked(client, f"{place.name}: console: {words}", path)


def _live(place: _Place, client: httpx.Client, store: sealpoint.Store) -> Iterator[Result]:
    """From a save until the page that an event asks for shows it."""
    thread, found = store.thread("long"), []
    path = f"/threads/{thread.standing().thread}"
    with client.stream("GET", "/live", timeout=30) as feed:
        lines = feed.iter_lines()
        for _ in range(_LIVE_ROUNDS):
            start = time.perf_counter()
            seq = thread.save({"at": start}).seq
            while f'id="entry-{seq}"' not in _after_event(client, lines, path):
                continue
            found.append(time.perf_counter() - start)
    words = f"{place.name}: console: from a save by another process to the page that shows it"
    yield measured(f"{words}, median", statistics.median(found), "s", _LIVE_S_MAX)
    yield measured(f"{words}, slowest of {_LIVE_ROUNDS}", max(found), "s", _LIVE_S_MAX)


def _after_event(client: httpx.Client, lines: Iterator[str], path: str) -> str:
    """The page, once the feed says that something moved."""
    for line in lines:
        if line == "event: moved":
            return client.get(path).text
    raise AssertionError("the feed was to go on")


def measure_place(place: _Place) -> Iterator[Result]:
    """Everything that is asked of one console."""
    with place.open() as store, place.open() as working, _served(place) as client:
        with _working(working):
            yield from _pages(place, client, store)
        yield from _live(place, client, store)


def sqlite_place(site: Site, directory: Path) -> _Place:
    """The store of a site, where it was made."""
    return _Place("SQLite", site.open, _options(site.url, directory), {})


def postgres_place(site: Site, directory: Path, server: PostgresServer) -> _Place:
    """The same, moved to a server."""
    url = server.url(schema=server.new_schema())
    site.admin().move_to(url, password=server.password)
    password = directory / "password"
    password.write_text(server.password)
    password.chmod(0o600)

    def open_store() -> sealpoint.Store:
        config, state = directory / "config", directory / "state"
        return api.open_store(url, password=server.password, config_dir=config, state_dir=state)

    options = _options(url, directory)
    environ = {"SEALPOINT_STORE_PASSWORD_FILE": str(password)}
    return _Place("PostgreSQL", open_store, options, environ)


def _options(url: str, directory: Path) -> tuple[str, ...]:
    config, state = str(directory / "config"), str(directory / "state")
    return ("--store", url, "--config-dir", config, "--state-dir", state)


def experiments() -> Iterator[Result]:
    """Measure both."""
    quiet_collector()
    server = PostgresServer.create()
    try:
        server.start()
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            site = Site(directory, policy="strict")
            with site.open() as store:
                fill(store)
            yield from measure_place(sqlite_place(site, directory))
            yield from measure_place(postgres_place(site, directory, server))
    finally:
        server.remove()
