# SPDX-License-Identifier: Apache-2.0
"""Another site, in the browser of somebody who is signed in: it frames, sends and reads nothing.

It is tried from another site and from another port of the same host, which cookies do not tell
apart.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from tests.console.conftest import chromium
from tests.console.person import Person, person_at
from tests.console.scene import Scene, Served

_HOSTS = ("127.0.0.1", "localhost")


@contextmanager
def _evil(host: str, page: str) -> Iterator[str]:
    """A site whose every address is one page."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base names it)
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{host}:{server.server_port}/"
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A console with a thread that could be paused."""
    scene = Scene(tmp_path_factory.mktemp("elsewhere") / "scene").make()
    with scene.open() as store:
        store.thread("chat").save({"x": 1})
    with scene.serving() as served:
        yield served


@pytest.fixture(scope="module")
def olga(served: Served) -> Iterator[Person]:
    """An operator who is signed in; no test here has an event loop of its own."""
    with chromium() as browser, person_at(browser, served, "olga") as olga:
        yield olga.sign_in()


def _require_untouched(olga: Person, served: Served) -> None:
    """Nothing was written, and nobody was signed out."""
    olga.open("/people")
    expect(olga.page.get_by_role("heading", name="People and keys")).to_be_visible()
    with served.scene.open() as store:
        assert not store.thread("chat").paused


@pytest.mark.parametrize("host", _HOSTS)
def test_a_page_is_framed_by_nobody(served: Served, olga: Person, host: str) -> None:
    """An invisible frame under a button that begs to be clicked holds no page of ours."""
    thread = served.console.desk.watch.thread("chat").id
    frames = "".join(
        f'<iframe src="{served.origin}{path}" style="opacity:.01;width:900px;height:600px">'
        "</iframe>"
        for path in (f"/threads/{thread}", "/sign-in", "/static/console.js")
    )
    objects = f'<object data="{served.origin}/"></object><embed src="{served.origin}/">'
    with _evil(host, f"<h1>Win a prize</h1>{frames}{objects}") as site:
        olga.page.goto(site)
        olga.page.wait_for_load_state("networkidle")
        held = [
            frame.locator("body").inner_text(timeout=5000)
            for frame in olga.page.frames[1:]
            if not frame.is_detached()
        ]

        assert len(held) >= 3
        assert not [each for each in held if "Sealpoint" in each or "chat" in each]
        assert not [each for each in held if "Sign in" in each]
    _require_untouched(olga, served)


@pytest.mark.parametrize("host", _HOSTS)
def test_a_form_of_another_site_does_nothing(served: Served, olga: Person, host: str) -> None:
    """Though the browser sends the cookie along, or could."""
    thread = served.console.desk.watch.thread("chat").id
    for path in ("/sign-out", f"/threads/{thread}/pause", "/sign-in/link"):
        form = (
            f'<form method="post" action="{served.origin}{path}">'
            '<input name="reason" value="x"><input name="ticket" value="x"></form>'
            "<script>document.forms[0].submit()</script>"
        )
        with _evil(host, form) as site:
            with olga.page.expect_response(f"{served.origin}{path}") as answer:
                olga.page.goto(site)

            assert answer.value.status == 403, path
    _require_untouched(olga, served)


@pytest.mark.parametrize("host", _HOSTS)
def test_a_script_of_another_site_sends_and_reads_nothing(
    served: Served, olga: Person, host: str
) -> None:
    """Not with any mode of `fetch`, not by an image, a script, an event stream or a window."""
    thread = served.console.desk.watch.thread("chat").id
    script = """<script>
    const origin = "ORIGIN", told = {};
    const tries = {
      plain: () => fetch(origin + "/api/v1/threads", { credentials: "include" }),
      form: () => fetch(origin + "/sign-out",
        { method: "POST", mode: "no-cors", credentials: "include", body: "x=y",
          headers: { "content-type": "application/x-www-form-urlencoded" } }),
      json: () => fetch(origin + "/threads/THREAD/pause",
        { method: "POST", credentials: "include", body: "{}",
          headers: { "content-type": "application/json" } }),
      blind: () => fetch(origin + "/", { mode: "no-cors", credentials: "include" }),
      image: () => new Promise((good, bad) => {
        const image = new Image(); image.onload = good; image.onerror = bad;
        image.src = origin + "/static/icon.svg"; }),
      script: () => new Promise((good, bad) => {
        const it = document.createElement("script"); it.onload = good; it.onerror = bad;
        it.src = origin + "/api/v1/threads"; document.head.append(it); }),
      stream: () => new Promise((good, bad) => {
        const it = new EventSource(origin + "/live", { withCredentials: true });
        it.onmessage = good; it.onerror = bad; }),
    };
    Promise.allSettled(Object.entries(tries).map(async ([name, work]) => {
      try { const found = await work(); told[name] = found && found.status ? "read" : "opaque"; }
      catch { told[name] = "refused"; }
    })).then(() => { window.told = told; });
    </script>""".replace("ORIGIN", served.origin).replace("THREAD", thread)
    with _evil(host, script) as site:
        olga.page.goto(site)
        olga.page.wait_for_function("window.told")
        told = olga.page.evaluate("window.told")

    assert set(told.values()) <= {"refused", "opaque"}, told
    assert all(told[name] == "refused" for name in ("plain", "json", "image", "script", "stream"))
    _require_untouched(olga, served)


def test_a_window_that_another_site_opens_is_out_of_its_reach(served: Served, olga: Person) -> None:
    """It cannot steer the page by the handle that it keeps."""
    opens = f"<button onclick=\"window.other = window.open('{served.origin}/people')\">Go</button>"
    with _evil("localhost", opens) as site:
        olga.page.goto(site)
        olga.page.get_by_role("button").click()
        # A window that left the group of its opener counts as closed there.
        olga.page.wait_for_function("window.other && window.other.closed")
    _require_untouched(olga, served)
