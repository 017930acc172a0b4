# SPDX-License-Identifier: Apache-2.0
"""What every request and every answer passes, whatever the page."""

import asyncio
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sealpoint_console import _http_protection
from sealpoint_console._http_protection import (
    BODY_BYTES_MAX,
    Allowance,
    Shield,
    comes_from_elsewhere,
)
from sealpoint_console._server import person_of
from tests.console.scene import Scene, Served

ORIGIN = "http://localhost:8734"
OWN = {"host": "localhost:8734", "sec-fetch-site": "same-origin"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A console that nobody changes."""
    with Scene(tmp_path_factory.mktemp("shield") / "scene").make().serving() as served:
        yield served


@pytest.fixture(autouse=True)
def _sign_ins(served: Served) -> None:
    """Each test may sign people in anew."""
    served.console.desk.sign_ins = Allowance(burst=20, a_minute=20)


async def length(request: Request) -> Response:
    """Say how much came."""
    return PlainTextResponse(str(len(await request.body())))


async def never(_request: Request) -> Response:
    """Take very long."""
    await asyncio.sleep(60)
    return PlainTextResponse("done")


async def broken(_request: Request) -> Response:
    """Fail."""
    raise RuntimeError


PAGES = Starlette(
    routes=[
        Route("/length", length, methods=["GET", "POST"]),
        Route("/never", never),
        Route("/broken", broken),
    ]
)


def ask(method: str, path: str, *, origin: str = ORIGIN, **options: Any) -> httpx.Response:
    """Ask a few small pages behind a shield of their own."""

    async def answer() -> httpx.Response:
        shield = Shield(PAGES, origin=origin)
        transport = httpx.ASGITransport(shield, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
            return await client.request(method, path, **{"headers": OWN, **options})

    return asyncio.run(answer())


# ---------------------------------------------------------------------- where it comes from

NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    ("method", "headers", "refused"),
    [
        # Our own pages, and what people type or have bookmarked.
        ("POST", {"sec-fetch-site": "same-origin"}, False),
        ("POST", {"sec-fetch-site": "none"}, False),
        ("GET", {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}, False),
        ("GET", {"sec-fetch-site": "none", **NAVIGATION}, False),
        # A link from elsewhere leads to a page, and does nothing.
        ("GET", {"sec-fetch-site": "cross-site", **NAVIGATION}, False),
        ("GET", {"sec-fetch-site": "same-site", **NAVIGATION}, False),
        ("HEAD", {"sec-fetch-site": "cross-site", **NAVIGATION}, False),
        # A form, a frame, an image, a script and a fetch from elsewhere.
        ("POST", {"sec-fetch-site": "cross-site", **NAVIGATION}, True),
        ("POST", {"sec-fetch-site": "same-site", **NAVIGATION}, True),
        ("GET", {"sec-fetch-site": "cross-site", **NAVIGATION, "sec-fetch-dest": "iframe"}, True),
        ("GET", {"sec-fetch-site": "cross-site", **NAVIGATION, "sec-fetch-dest": "embed"}, True),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, True),
        ("GET", {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}, True),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}, True),
        ("GET", {"sec-fetch-site": "cross-site"}, True),
        ("POST", {"sec-fetch-site": "cross-site", "origin": ORIGIN}, True),
        # What no browser says is not ours.
        ("POST", {"sec-fetch-site": ""}, True),
        ("POST", {"sec-fetch-site": "Same-Origin"}, True),
        ("POST", {"sec-fetch-site": "same-origin, cross-site"}, True),
        # Browsers that do not say it name their origin, if they post.
        ("POST", {"origin": ORIGIN}, False),
        ("POST", {"origin": "http://localhost:1"}, True),
        ("POST", {"origin": "https://localhost:8734"}, True),
        ("POST", {"origin": "http://localhost:8734.evil.example"}, True),
        ("POST", {"origin": "null"}, True),
        ("POST", {"origin": ""}, True),
        ("GET", {"origin": "https://evil.example"}, True),
        ("POST", {}, True),
        ("GET", {}, False),
    ],
)
def test_only_our_own_pages_do_something(
    method: str, headers: dict[str, str], *, refused: bool
) -> None:
    """The table of what browsers say of where a request comes from."""
    assert comes_from_elsewhere(method, headers, ORIGIN) is refused


def test_what_comes_from_elsewhere_reaches_no_page(served: Served) -> None:
    """A form on another site is refused though the browser sends the cookie along."""
    with closing(served.client("olga")) as olga:
        for site in ("cross-site", "same-site"):
            headers = {"sec-fetch-site": site, "origin": "https://evil.example", **NAVIGATION}

            assert olga.post("/sign-out", headers=headers).status_code == 403
        assert olga.get("/people").status_code == 200, "nobody was signed out"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1:8734", "localhost", "localhost:8735", "localhost:8734.", "", "a@b"],
)
def test_another_name_for_this_machine_is_not_answered(host: str) -> None:
    """A name that an attacker points here would else be a site that the browser trusts."""
    answer = ask("GET", "/length", headers={**OWN, "host": host})

    assert answer.status_code == 421
    assert host not in answer.text or not host or host == "localhost"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_there_are_three_methods(served: Served, method: str) -> None:
    """Others are refused, whatever the address; so no other site is told that it may ask."""
    with closing(served.client()) as client:
        answer = client.send(httpx.Request(method, f"{served.origin}/", headers=client.headers))

    assert answer.status_code in (400, 405)
    assert "access-control-allow-origin" not in answer.headers


# ---------------------------------------------------------------------- how much, and how long


@pytest.mark.parametrize(("size", "status"), [(BODY_BYTES_MAX, 200), (BODY_BYTES_MAX + 1, 413)])
@pytest.mark.parametrize("announced", [True, False])
def test_a_body_is_bounded_whether_it_says_its_size_or_not(
    served: Served, size: int, status: int, *, announced: bool
) -> None:
    """What counts is what comes."""
    data = b"x" * size
    answer = ask("POST", "/length", content=data)
    assert answer.status_code == status
    pieces = (data[start : start + 4096] for start in range(0, size, 4096))
    with closing(served.client()) as client:
        real = client.post("/sign-in/link", content=data if announced else pieces)

    assert real.status_code == (400 if status == 200 else 413)


def connection(served: Served) -> socket.socket:
    """A connection on which a test says what it likes."""
    port = int(served.origin.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def head(served: Served, size: int) -> bytes:
    """The beginning of a request."""
    host = served.origin.removeprefix("http://")
    return (
        f"POST /sign-in/link HTTP/1.1\r\nhost: {host}\r\nsec-fetch-site: same-origin\r\n"
        f"content-type: application/json\r\ncontent-length: {size}\r\n\r\n"
    ).encode()


def test_a_body_that_comes_too_slowly_is_given_up(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then keeps nobody busy for long."""
    monkeypatch.setattr(_http_protection, "_BODY_S", 0.3)
    with connection(served) as slow:
        slow.sendall(head(served, 100) + b"{")
        begun = time.monotonic()
        answer = slow.recv(65536)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer
    assert time.monotonic() - begun < 10


def test_a_body_that_breaks_off_is_not_taken_for_a_whole_one(served: Served) -> None:
    """Half of a form is none: the link that it begins with is not used up."""
    link = served.console.desk.sessions.make_link("ann")
    body = f'{{"link": "{link}"}}'.encode()
    with connection(served) as broken_off:
        broken_off.sendall(head(served, len(body) + 1) + body)
        broken_off.shutdown(socket.SHUT_WR)
        broken_off.recv(65536)

    assert served.console.desk.sessions.use_link(link) == "ann"


def test_a_page_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits is told so."""
    monkeypatch.setattr(_http_protection, "_REQUEST_S", 0.05)
    answer = ask("GET", "/never")

    assert answer.status_code == 503
    assert "content-security-policy" in answer.headers


# ---------------------------------------------------------------------- how often


@pytest.fixture
def interleaved() -> Iterator[None]:
    """OS threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now


def test_an_address_has_its_own_allowance_which_comes_back_with_time() -> None:
    """So many at once, and so many a minute."""
    clock = Clock()
    allowance = Allowance(burst=3, a_minute=60, clock=clock)
    assert [allowance.take("192.0.2.1") for _ in range(4)] == [True, True, True, False]
    assert allowance.take("192.0.2.2")
    clock.now += 1

    assert [allowance.take("192.0.2.1") for _ in range(2)] == [True, False]
    clock.now += 3600
    assert [allowance.take("192.0.2.1") for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("no:address", "no:other", False),
    ],
)
def test_the_addresses_of_one_network_share_an_allowance(
    one: str, other: str, *, same: bool
) -> None:
    """Whoever has one IPv6 address has 2**64 of them."""
    allowance = Allowance(burst=1, a_minute=1, clock=Clock())

    assert allowance.take(one)
    assert allowance.take(other) is not same


@pytest.mark.usefixtures("interleaved")
def test_an_allowance_is_not_more_if_it_is_taken_at_once() -> None:
    """Requests that race each other share it as those that wait do."""
    allowance = Allowance(burst=200, a_minute=1, clock=Clock())
    taken: list[bool] = []

    def take() -> None:
        taken.extend(allowance.take("192.0.2.1") for _ in range(100))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert taken.count(True) == 200


def test_whoever_has_many_addresses_takes_up_a_bounded_place() -> None:
    """Those that were not seen for longest are forgotten."""
    allowance = Allowance(burst=1, a_minute=1, clock=Clock())
    for number in range(5000):
        allowance.take(f"a{number}")

    assert len(allowance._left) == 4096


def test_whoever_asks_too_often_is_told_to_wait() -> None:
    """Before anything of the request is read."""

    async def statuses() -> list[int]:
        transport = httpx.ASGITransport(Shield(PAGES, origin=ORIGIN, clock=Clock()))
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
            return [(await client.get("/length", headers=OWN)).status_code for _ in range(301)]

    found = asyncio.run(statuses())
    assert found == [200] * 300 + [429]


def test_nobody_uses_up_what_another_person_is_allowed() -> None:
    """Behind a proxy all people have one address, so whoever has signed in is counted by name."""

    def person(scope: Any) -> str | None:
        return dict(scope["headers"]).get(b"x-test-person", b"").decode() or None

    async def statuses() -> list[int]:
        shield = Shield(PAGES, origin=ORIGIN, person=person, clock=Clock())
        transport = httpx.ASGITransport(shield)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
            return [
                (await client.get("/length", headers={**OWN, "x-test-person": who})).status_code
                for who in (*["olga"] * 301, *[""] * 301, "vera")
            ]

    assert asyncio.run(statuses()) == [*[200] * 300, 429, *[200] * 300, 429, 200]


def test_a_session_says_who_asks(served: Served) -> None:
    """The console counts a page by the person of its session, and any other by its address."""
    with closing(served.client("vera")) as vera:
        vera.get("/")
        cookie = [(b"cookie", vera.headers["cookie"].encode())]

    assert person_of(served.console.desk, {"headers": cookie}) == "vera"
    assert person_of(served.console.desk, {"headers": []}) is None


def test_one_address_tries_links_only_so_often(served: Served) -> None:
    """Guessing is hopeless, and is not let go on either."""
    served.console.desk.sign_ins = Allowance(burst=3, a_minute=1)
    with closing(served.client()) as client:
        tries = [client.post("/sign-in/link", json={"link": "x"}) for _ in range(4)]

    assert [each.status_code for each in tries[:3]] == [403] * 3
    assert "too many tries" in tries[3].text


# ---------------------------------------------------------------------- what goes out

POLICY = (
    r"default-src 'none'; script-src 'nonce-([A-Za-z0-9_-]{24})'; style-src 'self'; "
    r"img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    r"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types htmx"
)


def require_headers(answer: httpx.Response) -> str:
    """Check what every answer has; gives its nonce."""
    found = re.fullmatch(POLICY, answer.headers["content-security-policy"])
    assert found, answer.headers["content-security-policy"]
    for name, value in {
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }.items():
        assert answer.headers[name] == value
    assert "camera=()" in answer.headers["permissions-policy"]
    assert "server" not in answer.headers
    assert not {each for each in answer.headers if each.startswith("access-control-")}
    return found[1]


Ask = Callable[[httpx.Client], httpx.Response]
ANSWERS: dict[str, tuple[int, Ask]] = {
    "a page": (200, lambda client: client.get("/people")),
    "a page before sign-in": (200, lambda client: client.get("/sign-in", headers={"cookie": ""})),
    "a redirect": (303, lambda client: client.get("/people", headers={"cookie": ""})),
    "a refused program": (
        401,
        lambda client: client.get("/", headers={"cookie": "", "accept": "application/json"}),
    ),
    "a head": (200, lambda client: client.head("/people")),
    "no such page": (404, lambda client: client.get("/nowhere")),
    "no such thread": (404, lambda client: client.get("/threads/x")),
    "a wrong method": (405, lambda client: client.post("/people")),
    "no method": (405, lambda client: client.put("/people")),
    "a form without a ticket": (400, lambda client: client.post("/health/verify", json={})),
    "no form": (400, lambda client: client.post("/sign-in/link", content=b"\xff")),
    "a static file": (200, lambda client: client.get("/static/console.css")),
    "no such file": (404, lambda client: client.get("/static/nothing.css")),
    "a way out of the files": (404, lambda client: client.get("/static/..%2f_app.py")),
    "another host": (421, lambda client: client.get("/", headers={"host": "evil.example"})),
    "another site": (
        403,
        lambda client: client.post("/sign-out", headers={"sec-fetch-site": "cross-site"}),
    ),
    "too many bytes": (
        413,
        lambda client: client.post("/sign-in/link", content=b"x" * (BODY_BYTES_MAX + 1)),
    ),
    "nobody listens": (401, lambda client: client.get("/live", headers={"cookie": ""})),
}


@pytest.mark.parametrize(("status", "request_it"), ANSWERS.values(), ids=ANSWERS)
def test_every_kind_of_answer_has_the_headers(served: Served, status: int, request_it: Ask) -> None:
    """Errors and files no less than pages."""
    with closing(served.client("olga")) as olga:
        answer = request_it(olga)

    assert answer.status_code == status, answer.text
    require_headers(answer)


REFUSED: dict[str, tuple[int, str, dict[str, Any]]] = {
    "another host": (421, "usage", {"headers": {"host": "evil.example"}}),
    "another site": (403, "no-right", {"headers": {"sec-fetch-site": "cross-site"}}),
    "nobody knows where from": (403, "no-right", {"headers": {"sec-fetch-site": "", "origin": ""}}),
    "too many bytes": (413, "usage", {"content": b"x" * (BODY_BYTES_MAX + 1)}),
    "no method": (405, "usage", {"method": "PUT"}),
}


@pytest.mark.parametrize(("status", "code", "options"), REFUSED.values(), ids=REFUSED)
def test_what_reaches_no_page_is_told_to_a_program_in_the_one_shape(
    served: Served, status: int, code: str, options: dict[str, Any]
) -> None:
    """Below /api always, and elsewhere if it is asked for; a browser is told in words."""
    options = {"method": "POST", **options}
    accepting = {**options, "headers": {**options.get("headers", {}), "accept": "application/json"}}
    with closing(served.client("olga")) as olga:
        below = olga.request(url="/api/v1/threads", **options)
        asked = olga.request(url="/sign-out", **accepting)
        words = olga.request(url="/sign-out", **options)

    assert (below.status_code, asked.status_code, words.status_code) == (status,) * 3
    for answer in (below, asked):
        assert set(answer.json()) == {"error"}
        assert answer.json()["error"]["code"] == code
        assert answer.json()["error"]["hint"]
    assert words.headers["content-type"].startswith("text/plain")


def test_an_error_of_our_own_has_the_headers_and_tells_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What went wrong is for the log."""

    def fail() -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(served.console.desk.notifier, "status", fail)
    with closing(served.client("olga")) as olga:
        answer = olga.get("/health")

    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert "RuntimeError" not in answer.text
    require_headers(answer)


def test_the_live_feed_has_the_headers(served: Served) -> None:
    """It lasts, and is kept by nobody on the way."""
    with closing(served.client("olga")) as olga, olga.stream("GET", "/live") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        require_headers(answer)


def test_a_nonce_is_new_in_each_answer_and_is_the_one_of_the_page(served: Served) -> None:
    """What was seen once lets nothing run later."""
    with closing(served.client("olga")) as olga:
        answers = [olga.get("/people") for _ in range(3)]

    nonces = [require_headers(each) for each in answers]
    assert len(set(nonces)) == 3
    for answer, nonce in zip(answers, nonces, strict=True):
        assert set(re.findall(r'nonce="([^"]*)"', answer.text)) == {nonce}


def test_pages_are_kept_by_no_cache_and_files_by_their_digest_only(served: Served) -> None:
    """What one person was shown is not on the disk for the next one."""
    with closing(served.client("olga")) as olga:
        page = olga.get("/people")
        path = re.search(r'"(/static/console\.css\?v=[0-9a-f]{16})"', page.text)
        assert path is not None
        named, plain = olga.get(path[1]), olga.get("/static/console.css")
        old = olga.get("/static/console.css?v=0000000000000000")

    assert page.headers["cache-control"] == "no-store"
    assert named.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plain.headers["cache-control"] == old.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("origin", ["https://console.example.com", ORIGIN])
def test_browsers_are_told_to_stay_with_tls_where_there_is_tls(origin: str) -> None:
    """On localhost they are not: other servers there have none."""
    host = origin.partition("//")[2]
    answer = ask("GET", "/length", origin=origin, headers={**OWN, "host": host})

    assert answer.status_code == 200
    assert ("strict-transport-security" in answer.headers) == origin.startswith("https:")


# ---------------------------------------------------------------------- who may

PUBLIC = {
    ("GET", "/sign-in"),
    ("GET", "/enrol"),
    ("GET", "/static/{name}"),
    ("POST", "/sign-in/link"),
    ("POST", "/sign-in/link/person"),
    ("POST", "/sign-in/passkey"),
    ("POST", "/sign-in/passkey/begin"),
    ("POST", "/sign-out"),
    ("POST", "/enrol"),
    ("POST", "/enrol/begin"),
}


def routes_of(served: Served) -> Iterator[tuple[str, str]]:
    """Every route of the console, as the server has it."""
    app: Any = served.console._server.config.app
    while not isinstance(app, Starlette):
        app = app._app
    for route in app.routes:
        assert isinstance(route, Route)
        for method in sorted((route.methods or set()) - {"HEAD"}):
            yield method, route.path


def test_every_route_but_those_named_here_is_for_people_who_are_signed_in(
    served: Served,
) -> None:
    """A route that is added is closed until it is named."""
    found = set(routes_of(served))
    assert found >= PUBLIC
    with closing(served.client(accept="application/json")) as client:
        for method, path in sorted(found - PUBLIC):
            real = re.sub(r"\{[a-z]+(:int)?\}", "1", path)
            for cookie in ("", "__Host-sealpoint=made-up"):
                answer = client.request(method, real, headers={"cookie": cookie})

                assert answer.status_code == 401, f"{method} {path}"


def test_what_operators_do_is_refused_to_everybody_else(served: Served) -> None:
    """By the role of the roster, whatever the form says."""
    found = [path for method, path in routes_of(served) if method == "POST"]
    ends = ("/rollout", "/revoke")
    asked = [each for each in found if each.startswith(("/threads/", "/health/"))]
    asked = [each for each in asked if "/answer" not in each]  # approvers answer, too
    asked += [each for each in found if each.endswith(ends)]
    assert asked
    for person in ("ann", "vera"):
        with closing(served.client(person)) as client:
            for path in asked:
                answer = client.post(re.sub(r"\{[a-z]+\}", "1", path), data={"ticket": "x"})

                assert answer.status_code == 403, f"{person} {path}"
