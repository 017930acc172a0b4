# SPDX-License-Identifier: Apache-2.0
"""Another site, open in the browser of somebody who uses the console."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sealpoint_console._sessions import COOKIE, cookie_of
from tests.attacks.console.passkeys import give_passkey, sign_in
from tests.console.conftest import chromium
from tests.console.person import person_at
from tests.console.scene import Scene, Served
from tests.unit.signing.authenticator import Authenticator

_IMAGE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
_LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
_TRIES = 400


def test_a_passkey_of_another_origin_signs_nobody_in(served: Served) -> None:
    """Whoever has the console's former address cannot sign people in here by a touch there."""
    here = Authenticator(1, origin=served.origin)
    former = Authenticator(2, origin="http://localhost:8080")
    give_passkey(served.scene, "ann", here)
    give_passkey(served.scene, "bob", former)

    assert sign_in(served, here).status_code == 200
    assert sign_in(served, former).status_code == 403


def test_another_site_does_not_use_up_what_somebody_may_ask(served: Served) -> None:
    """Neither images nor links of it by the hundred keep an operator from a pause."""
    with served.client("olga") as olga:
        images = {olga.get("/people", headers=_IMAGE).status_code for _ in range(_TRIES)}
        links = {olga.head("/static/icon.svg", headers=_LINK).status_code for _ in range(_TRIES)}

        assert images == {403}
        assert links == {200, 429}
        assert olga.get("/people").status_code == 200


@pytest.mark.parametrize("space", [b"\xa0", b"\x85", b"\x1c", b"\xc2\xa0", b"\xe2\x80\x80"])
def test_a_name_that_only_looks_like_ours_is_no_cookie_of_ours(space: bytes) -> None:
    """A sibling site sets it for the whole domain, so that people work in a session of its own."""
    name = COOKIE.encode()
    for tossed in (space + name + b"=theirs", name + space + b"=theirs"):
        alone = [(b"cookie", tossed)]

        assert cookie_of(alone, COOKIE) is None
        assert cookie_of([(b"cookie", name + b"=ours; " + tossed)], COOKIE) == "ours"
        assert cookie_of([*alone, (b"cookie", b" " + name + b"=ours")], COOKIE) == "ours"


def test_nobody_is_signed_in_by_one_of_two_cookies(served: Served) -> None:
    """Whose is whose cannot be told, so that neither counts; the same twice is one."""
    with served.client("olga") as olga, served.client("vera") as vera:
        hers, other = (each.headers["cookie"] for each in (olga, vera))
        twice = olga.get("/people", headers={"cookie": f"{hers}; {hers}"})
        both = olga.get("/people", headers={"cookie": f"{hers}; {other}"})

    assert (twice.status_code, both.status_code) == (200, 303)


@contextmanager
def _another_server() -> Iterator[tuple[str, list[str]]]:
    """A server on this machine, and the cookies that it is sent; it sets one of our name."""
    got: list[str] = []

    class Another(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.send_header("set-cookie", f"{COOKIE}=theirs; Secure; Path=/")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Another) as server:
        runs = threading.Thread(target=server.serve_forever)
        runs.start()
        yield f"http://localhost:{server.server_port}/", got
        server.shutdown()
        runs.join()


def test_another_server_on_the_machine_is_sent_no_session_of_a_console_with_its_own_name(
    scene: Scene,
) -> None:
    """Ports do not keep cookies apart, names do: neither is one taken, nor one given."""
    scene.host = "blue-heron.localhost"
    with (
        scene.serving() as served,
        _another_server() as (place, got),
        chromium() as browser,
        person_at(browser, served, "olga") as olga,
    ):
        olga.sign_in()
        olga.page.goto(place)
        page = olga.open("/people")

        assert got[0] == ""
        assert page.url.endswith("/people")
