# SPDX-License-Identifier: Apache-2.0
"""What people see: every page in light, in the dark and on a phone, by rules of accessibility."""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from tests.console.person import person_at
from tests.console.scene import Scene, Served

_SHOTS = Path(__file__).parents[2] / "build" / "console"
_LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}


@pytest.fixture
def busy(scene: Scene) -> Scene:
    """A store with something in every state."""
    scene.ask()
    with scene.open() as store:
        for number in range(3):
            thread = store.thread(f"chat-{number}")
            for turn in range(3):
                messages = [{"role": "user", "content": f"Turn {each}"} for each in range(turn + 1)]
                thread.save({"messages": messages, "api_key": "x", "pay": turn}, id=f"t{turn}")
    with scene.open("operator") as store:
        store.thread("chat-1").pause("the supplier looks odd")
    return scene


@pytest.mark.parametrize("look", _LOOKS)
def test_no_page_breaks_a_rule_of_accessibility(busy: Scene, browser: Browser, look: str) -> None:
    """Axe finds nothing on any page, and nothing is wider than the window."""
    with busy.serving() as served, person_at(browser, served, "olga", **_LOOKS[look]) as olga:
        (_SHOTS / look).mkdir(parents=True, exist_ok=True)
        for name, path in {"sign-in": "/sign-in", "enrol": "/enrol"}.items():
            _check(olga.open(path), name, look)
        olga.sign_in()
        for name, path in _paths(served).items():
            _check(olga.open(path), name, look)
        # The page for what is not there is one, and the browser notes its status.
        assert [each for each in olga.complaints if "404" not in each] == []


def _check(page: Page, name: str, look: str) -> None:
    page.screenshot(path=_SHOTS / look / f"{name}.png", full_page=True)
    found = Axe().run(page)
    assert found.violations_count == 0, (name, found.generate_report())
    width = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.evaluate(width), (name, "it is wider than the window")


def _paths(served: Served) -> dict[str, str]:
    watch = served.console.desk.watch
    thread, chat = (watch.thread(name).id for name in ("chat-1", "chat-0"))
    (request,) = watch.requests().requests
    return {
        "overview": "/",
        "nothing-found": "/?q=no-such-thread",
        "thread": f"/threads/{chat}",
        "thread-paused": f"/threads/{thread}",
        "state": f"/threads/{chat}/entries/4",
        "compare": f"/threads/{chat}/compare?from=2&to=4",
        "explain": f"/threads/{chat}/explain?as=worker",
        "requests": "/requests",
        "request": f"/requests/{request.id}",
        "break-glass": f"/requests/{request.id}/break-glass",
        "rollouts": "/rollouts",
        "audit": "/audit",
        "people": "/people",
        "health": "/health",
        "error": "/threads/nothing",
    }


def test_a_thread_is_paused_by_keyboard_alone(busy: Scene, browser: Browser) -> None:
    """Tab, Enter and letters are enough."""
    with busy.serving() as served, person_at(browser, served, "olga") as olga:
        olga.sign_in()
        page = olga.open(f"/threads/{served.console.desk.watch.thread('chat-0').id}")
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent.trim()") == "Pause":
                break
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.type("by keyboard")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_text("by keyboard").first).to_be_visible()


def test_a_page_moves_within_a_second(busy: Scene, browser: Browser) -> None:
    """What a worker saves appears without loading the page again."""
    with busy.serving() as served, person_at(browser, served, "olga") as olga:
        page = olga.sign_in().page
        expect(page.get_by_role("link", name="chat-2").first).to_be_visible()
        page.wait_for_timeout(500)
        with busy.open() as store:
            store.thread("brand-new").save({"x": 1})
        expect(page.get_by_role("link", name="brand-new").first).to_be_visible()
