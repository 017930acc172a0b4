# SPDX-License-Identifier: Apache-2.0
"""What one person, one address or one slow store can take from everybody else: a bounded part."""

import asyncio
import logging
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import httpx
import pytest

from sealpoint.errors import Overloaded
from sealpoint_console import _console_state, _http_protection, _server
from sealpoint_console._http_protection import Allowance
from sealpoint_console._worker_threads import Workers
from tests.console.scene import Scene, Served, until


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A console that nobody changes."""
    with Scene(tmp_path_factory.mktemp("limits") / "scene").make().serving() as served:
        yield served


@pytest.fixture(autouse=True)
def _sign_ins(served: Served) -> None:
    """Each test may sign people in anew."""
    served.console.desk.sign_ins = Allowance(burst=20, a_minute=20)


# ---------------------------------------------------------------------- connections


def _connection(served: Served) -> socket.socket:
    port = int(served.origin.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=20)


@pytest.mark.parametrize("said", [b"", b"GET /sign-in HTTP/1.1\r\nhost: x\r\n"])
def test_a_connection_that_does_not_say_what_it_asks_for_is_closed(
    served: Served, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """One that says nothing, and one that says a header now and then and never ends."""
    monkeypatch.setattr(_server, "_HEAD_S", 0.3)
    with _connection(served) as slow:
        slow.sendall(said)
        stop = threading.Event()

        def drip() -> None:
            while said and not stop.wait(0.05):
                try:
                    slow.sendall(b"x-more: 1\r\n")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert _end_of(slow) == b""
        finally:
            stop.set()
            dripping.join()


def _end_of(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def test_the_time_for_a_head_begins_anew_with_each_request(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is kept open is not closed for what it asked for before."""
    monkeypatch.setattr(_server, "_HEAD_S", 0.3)
    ask = f"GET /sign-in HTTP/1.1\r\nhost: {served.origin.removeprefix('http://')}\r\n\r\n"
    with _connection(served) as kept:
        for _ in range(3):
            kept.sendall(ask.encode())
            answer = kept.recv(65536)
            while b"</html>" not in answer:
                answer += kept.recv(65536)
            time.sleep(0.4)

            assert answer.startswith(b"HTTP/1.1 200 ")


# ---------------------------------------------------------------------- listeners


def test_one_person_listens_in_so_many_places_and_leaves_some_to_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A place that is left can be taken again."""
    monkeypatch.setattr(_console_state, "LISTENERS_EACH_MAX", 2)
    with ExitStack() as stack:
        olga, vera = (stack.enter_context(closing(served.client(who))) for who in ("olga", "vera"))
        first = olga.stream("GET", "/live")
        assert first.__enter__().status_code == 200
        assert stack.enter_context(olga.stream("GET", "/live")).status_code == 200
        refused = olga.get("/live")
        assert stack.enter_context(vera.stream("GET", "/live")).status_code == 200
        first.__exit__(None, None, None)

        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "too-often"
        until(lambda: _listens(olga))


def _listens(client: httpx.Client) -> bool:
    with client.stream("GET", "/live") as answer:
        return answer.status_code == 200


def test_all_together_listen_in_so_many_places(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes after that sees pages that do not move by themselves."""
    until(lambda: not served.console.desk._listeners)
    monkeypatch.setattr(_console_state, "LISTENERS_MAX", 1)
    with closing(served.client("olga")) as olga, closing(served.client("vera")) as vera:
        with olga.stream("GET", "/live") as listening:
            refused = vera.get("/live")

            assert listening.status_code == 200
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "overloaded"
        assert vera.get("/").status_code == 200


# ---------------------------------------------------------------------- signing in


def test_too_many_tries_to_sign_in_say_when_to_come_again(served: Served) -> None:
    """By a code of their own, to people and programs."""
    served.console.desk.sign_ins = Allowance(burst=1, a_minute=1)
    with closing(served.client()) as client:
        client.post("/sign-in/link", json={"link": "x"})
        told = client.post("/sign-in/link/person", json={"link": "x"})
        program = client.post(
            "/sign-in/link", json={"link": "x"}, headers={"accept": "application/json"}
        )

    assert (told.status_code, program.status_code) == (429, 429)
    assert told.headers["retry-after"] == program.headers["retry-after"] == "60"
    assert "Code too-often" in told.text
    assert program.json()["error"]["code"] == "too-often"


# ---------------------------------------------------------------------- slow pages


class SlowStore:
    """What makes the page of a console wait until a test lets it go on."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.begun = 0

    def audit(self, **_asked: object) -> None:
        """Wait."""
        self.begun += 1
        self.go_on.wait(20)
        raise Overloaded("it was slow")


@pytest.fixture
def slow(served: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowStore]:
    """A console with a page that takes very long, and few workers."""
    store, workers = SlowStore(), Workers(at_once=1, waiting=1)
    monkeypatch.setattr(served.console.desk.store, "audit", store.audit)
    monkeypatch.setattr(served.console.desk, "workers", workers)
    yield store
    store.go_on.set()
    workers.close()


def test_pages_that_are_slow_do_not_pile_up(served: Served, slow: SlowStore) -> None:
    """What has no place is refused at once, and says when to try again."""
    with closing(served.client("olga")) as olga:
        waiting = [
            threading.Thread(target=olga.get, args=("/audit",)),
            threading.Thread(target=olga.get, args=("/people",)),
        ]
        waiting[0].start()
        until(lambda: slow.begun == 1)
        waiting[1].start()
        until(lambda: served.console.desk.workers._pages._threads._work_queue.qsize() == 1)
        page = olga.get("/requests")
        program = olga.get("/api/v1/threads")
        slow.go_on.set()
        for each in waiting:
            each.join()
        after = olga.get("/requests")

    assert (page.status_code, program.status_code, after.status_code) == (503, 503, 200)
    assert page.headers["retry-after"] == "5"
    assert "Code overloaded" in page.text
    assert program.json()["error"]["code"] == "overloaded"


def test_a_page_that_nobody_waits_for_keeps_its_place(
    served: Served, slow: SlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asked is told that it took too long, and whoever asks again does not begin more."""
    monkeypatch.setattr(_http_protection, "_REQUEST_S", 0.3)
    with closing(served.client("olga")) as olga:
        statuses = [olga.get("/audit").status_code for _ in range(3)]

        assert statuses == [503] * 3
        assert slow.begun == 1
        slow.go_on.set()
        until(lambda: olga.get("/people").status_code == 200)


def test_one_person_takes_the_places_of_nobody_else(
    served: Served, slow: SlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for slow pages without end has a few of them, and another person all others."""
    workers = Workers(at_once=4, waiting=4, each=2)
    monkeypatch.setattr(served.console.desk, "workers", workers)
    with closing(served.client("vera")) as vera, closing(served.client("olga")) as olga:
        waiting = [threading.Thread(target=vera.get, args=("/audit",)) for _ in range(2)]
        for each in waiting:
            each.start()
        until(lambda: slow.begun == 2)
        more = [vera.get(path).status_code for path in ("/audit", "/people", "/api/v1/threads")]
        others = [olga.get(path).status_code for path in ("/people", "/requests")]
        slow.go_on.set()
        for each in waiting:
            each.join()
        after = vera.get("/people").status_code

    assert more == [429] * 3
    assert others == [200] * 2
    assert after == 200
    workers.close()


def test_pages_leave_places_for_what_is_done(served: Served, slow: SlowStore) -> None:
    """While no page is made any more, an operator begins a verification."""
    with closing(served.client("vera")) as vera, closing(served.client("olga")) as olga:
        ticket = olga.get("/health").text.partition('name="ticket" value="')[2].partition('"')[0]
        waiting = [threading.Thread(target=vera.get, args=("/audit",)) for _ in range(2)]
        for each in waiting:
            each.start()
        until(lambda: slow.begun == 1)
        until(lambda: served.console.desk.workers._pages._threads._work_queue.qsize() == 1)
        page = olga.get("/people").status_code
        done = olga.post("/health/verify", data={"ticket": ticket}).status_code
        slow.go_on.set()
        for each in waiting:
            each.join()

    assert (page, done) == (503, 303)


def test_what_a_worker_raises_is_raised_where_it_is_waited_for() -> None:
    """And its place is free again."""
    workers = Workers(at_once=1, waiting=0)

    async def tries() -> list[str]:
        found = []
        for _ in range(2):
            try:
                await workers.run(lambda: int("x"))
            except ValueError as error:
                found.append(type(error).__name__)
        return found

    assert asyncio.run(tries()) == ["ValueError"] * 2
    workers.close()


# ---------------------------------------------------------------------- faults of our own


def test_what_nobody_expected_is_logged_once_by_its_route(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither twice nor with the address, which names threads."""

    def fail(_thread_id: str) -> None:
        raise RuntimeError("of our own")

    monkeypatch.setattr(served.console.desk.watch, "thread_of", fail)
    with closing(served.client("olga")) as olga:
        answer = olga.get("/threads/some-thread")
    assert answer.status_code == 500
    until(lambda: caplog.records)
    time.sleep(0.1)
    told = [each for each in caplog.records if each.levelno >= logging.WARNING]

    assert [each.getMessage() for each in told] == ["/threads/{thread}: RuntimeError"]
    assert not re.search("some-thread", "".join(each.getMessage() for each in told))


def test_a_page_that_is_not_for_that_says_so(served: Served) -> None:
    """It was found, so it is not called missing."""
    with closing(served.client("olga")) as olga:
        answer = olga.post("/people", data={"x": "y"})

    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert "<h1>This cannot be done here</h1>" in answer.text
    assert "Not found" not in answer.text
