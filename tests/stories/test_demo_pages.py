# SPDX-License-Identifier: Apache-2.0
"""The end of `make demo` in a real browser: a payment from the question to the money.

The demo has a terminal here, so it serves its page and the console. Each person has a browser
window of their own, with an authenticator.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import browser
from tests.console.person import Person, person_at
from tests.console.scene import Served

__all__ = ["browser"]

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS_MAX = 240


class Demo:
    """`make demo` at a terminal, after the scenes that need nobody."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = {name: text for name, text in os.environ.items() if "SEALPOINT" not in name}
        terminal, stdin = os.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(_ROOT / "examples" / "demo")],
            cwd=folder,
            env=environment | {"TMPDIR": str(folder)},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(stdin)
        self._terminal = terminal
        self._late = threading.Timer(_SECONDS_MAX, self._process.kill)
        self._late.start()
        self.link = self._printed_link()

    def _printed_link(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.fullmatch(r"  (http://localhost:\d+/\S+/)\n", line)
            if found:
                return found[1]
        raise AssertionError(self._process.stderr and self._process.stderr.read())

    def end(self) -> str:
        """Press Ctrl-C; return what it said as errors."""
        self._process.send_signal(signal.SIGINT)
        _, told = self._process.communicate(timeout=_SECONDS_MAX)
        self._late.cancel()
        os.close(self._terminal)
        assert self._process.returncode == 0, told
        return told


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo, with its page."""
    made = Demo(tmp_path_factory.mktemp("demo"))
    yield made
    told = made.end()
    assert all(line.startswith("refused code=") for line in told.splitlines()), told


def _make_passkey(person: Person, page: Page) -> None:
    """Make one in the console, and have the page of the demo add it."""
    own = person.open("/enrol?other=1")
    own.get_by_label("Your name in the roster").fill(person.name)
    own.get_by_role("button", name="Make a passkey").click()
    page.get_by_role("button", name=f"Add the passkey of {person.name}").click()
    added = page.locator("#roster li", has_text="has a passkey").filter(has_text=person.name)
    expect(added).to_be_visible()
    person.use_passkey()


def _path_behind(page: Page, words: str) -> str:
    link = page.get_by_role("link", name=words).get_attribute("href")
    assert link is not None
    return re.sub("^http://[^/]*", "", link)


def test_people_answer_and_approve_a_payment_and_it_is_paid_once(
    demo: Demo, browser: Browser
) -> None:
    """Nobody types anything into the terminal, and the page is not loaded again."""
    page, complaints = browser.new_page(), cast("list[str]", [])
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(demo.link)
    page.get_by_label("Amount in EUR").fill("42.00")
    page.get_by_role("button", name="Ask the agent").click()
    expect(page.get_by_role("link", name="Answer it in the console")).to_be_visible()
    console = page.get_by_role("link", name="on this page of the console").get_attribute("href")
    served = Served(*cast("tuple[Any, Any]", (None, None)), str(console).partition("/enrol")[0])

    with person_at(browser, served, "ann") as ann:
        _make_passkey(ann, page)
        own = ann.open(_path_behind(page, "Answer it in the console"))
        own.get_by_role("radio", name="Yes").check()
        own.get_by_role("button", name="Answer").click()
        expect(own.get_by_text("Your answer is on record.")).to_be_visible()
    expect(page.get_by_role("link", name="Approve it in the console")).to_be_visible()
    expect(page.locator("#account")).to_contain_text("Nothing has moved.")
    with person_at(browser, served, "bob") as bob:
        _make_passkey(bob, page)
        own = bob.open(_path_behind(page, "Approve it in the console"))
        own.get_by_role("textbox", name="Why").fill("as agreed")
        own.get_by_role("button", name="Approve").click()
        expect(page.locator("#payments li")).to_have_text("42.00 EUR to initechPaid")

    page.wait_for_timeout(2_000)
    expect(page.locator("#account li")).to_have_text(["42.00 EUR to initechpaid"])
    assert complaints == []
    page.close()


def test_other_sites_cannot_post_to_the_page(demo: Demo, browser: Browser) -> None:
    """Without the key of its address there is no page, and an amount is checked."""
    page = browser.new_page()
    origin = re.sub("(http://[^/]*).*", r"\1", demo.link)
    for path in ("/", "/status", "/wrong/status"):
        found = page.request.get(f"{origin}{path}")
        assert found.status == 404
    for fields in ({"amount": "42", "to": "initech"}, {"amount": "42.00", "to": "two words"}):
        assert page.request.post(f"{demo.link}payments", data=fields).status == 400
    page.close()
