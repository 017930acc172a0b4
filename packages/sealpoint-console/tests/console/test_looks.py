# SPDX-License-Identifier: Apache-2.0
"""What people see: every page in light, in the dark and on a phone, by rules of accessibility."""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.console.person import person_at
from tests.console.scene import WIDER, WORLD, Scene, Served
from tests.effort import in_soak

_SHOTS = Path(__file__).parents[4] / "build" / "console"
_WIDE: ViewportSize = {"width": 1280, "height": 900}
_LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": _WIDE},
    "dark": {"color_scheme": "dark", "viewport": _WIDE},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
_ALL = tuple(_LOOKS)
_DIFFERS: dict[str, dict[str, Any]] = {
    "dark": {"runOnly": {"type": "tag", "values": ["cat.color"]}},
    "phone": {"rules": {"color-contrast": {"enabled": False}}},
}
"""The rules by which another look of an open page is judged: in the dark, only those of colors."""
_AXE = Axe().axe_script


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
    _forked(scene)
    _closed(scene)
    return scene


def _forked(scene: Scene) -> None:
    """A thread that went on from older states, and changed hands."""
    with scene.open() as store:
        thread = store.thread("travel-plan")
        first = thread.save({"plan": "train"}, id="train", world=WORLD)
        thread.save({"plan": "flight"}, id="flight", parent="train", world=WORLD)
        thread.save({"plan": "night train"}, id="night-train", parent="train", world=WORLD)
        thread.save({"plan": "sleeper"}, id="sleeper", parent="night-train", world=WORLD)
        scene.let_pass(
            lambda: thread.resume(ref=first, world=WORLD, deliberate="no sleeper is left")
        )
        thread.save({"plan": "bus"}, id="bus", parent="train", world=WORLD)
    scene.admin.keys.create("night-shift")
    scene.admin.keys.add("night-shift", person="worker", roles=["writer"], namespaces=["*"])
    with scene.open() as store:
        give = store.thread("travel-plan").handoff
        scene.let_pass(lambda: give(to="night-shift", reason="the day is over"))


def _closed(scene: Scene) -> None:
    """A request that was approved and used."""
    with scene.open() as store:
        thread = store.thread("invoice-16")
        thread.save({"pay": 7}, world=WORLD)
        scene.let_pass(lambda: thread.resume(world=WIDER))


@pytest.mark.parametrize("looks", [_ALL, *(in_soak((each,)) for each in _LOOKS)], ids="+".join)
def test_no_page_breaks_a_rule_of_accessibility(
    busy: Scene, browser: Browser, looks: tuple[str, ...]
) -> None:
    """Axe finds nothing on any page, and nothing is wider than the window."""
    with busy.serving() as served, person_at(browser, served, "olga", **_LOOKS[looks[0]]) as olga:
        (_SHOTS / looks[0]).mkdir(parents=True, exist_ok=True)
        for name, path in {"sign-in": "/sign-in", "enrol": "/enrol"}.items():
            _check(olga.open(path), name, looks)
        olga.sign_in()
        for name, path in _paths(served).items():
            _check(olga.open(path), name, looks)
        # The page for what is not there is one, and the browser notes its status.
        assert [each for each in olga.complaints if "404" not in each] == []


def _check(page: Page, name: str, looks: tuple[str, ...]) -> None:
    """Look at a page that is open in each way, and take a picture of it in the first."""
    page.evaluate(_AXE)
    for look in looks:
        _turn(page, look)
        rules = _DIFFERS.get(look, {}) if look != looks[0] else {}
        # Only what is wrong: to bring over what is right takes longer than to look.
        found = page.evaluate(
            "given => axe.run(given).then(found => found.violations)",
            {"resultTypes": ["violations"], **rules},
        )
        assert found == [], (name, look)
        width = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert page.evaluate(width), (name, look, "it is wider than the window")
    _turn(page, looks[0])
    page.screenshot(path=_SHOTS / looks[0] / f"{name}.png", full_page=True)


def _turn(page: Page, look: str) -> None:
    """Have a page that is open look otherwise."""
    page.emulate_media(color_scheme=_LOOKS[look]["color_scheme"])
    page.set_viewport_size(_LOOKS[look]["viewport"])


def _paths(served: Served) -> dict[str, str]:
    watch = served.console.desk.watch
    thread, chat = (watch.thread(name).id for name in ("chat-1", "chat-0"))
    forked, used = (watch.thread(name).id for name in ("travel-plan", "invoice-16"))
    (request,) = watch.requests().requests
    with served.scene.open() as store:
        (closed,) = (each.request for each in store.audit(thread="invoice-16", kind="request"))
    return {
        "overview": "/",
        "nothing-found": "/?q=no-such-thread",
        "thread": f"/threads/{chat}",
        "thread-forked": f"/threads/{forked}",
        "thread-paused": f"/threads/{thread}",
        "state": f"/threads/{chat}/entries/4",
        "compare": f"/threads/{chat}/compare?from=2&to=4",
        "explain": f"/threads/{chat}/explain?as=worker",
        "requests": "/requests",
        "request": f"/requests/{request.id}",
        "request-closed": f"/requests/{closed}?thread={used}",
        "break-glass": f"/requests/{request.id}/break-glass",
        "rollouts": "/rollouts",
        "audit": "/audit",
        "people": "/people",
        "health": "/health",
        "error": "/threads/nothing",
    }


def test_a_page_moves_within_a_second(busy: Scene, browser: Browser) -> None:
    """What a worker saves appears without loading the page again."""
    with busy.serving() as served, person_at(browser, served, "olga") as olga:
        page = olga.sign_in().page
        expect(page.get_by_role("link", name="chat-2").first).to_be_visible()
        page.wait_for_timeout(500)
        with busy.open() as store:
            store.thread("brand-new").save({"x": 1})
        expect(page.get_by_role("link", name="brand-new").first).to_be_visible()


def test_a_page_that_no_longer_moves_says_so(busy: Scene, browser: Browser) -> None:
    """After a restart of the console, nobody takes an old list for one in which nothing happens."""
    with busy.serving() as served, person_at(browser, served, "olga") as olga:
        page = olga.sign_in().page
        stale = page.get_by_text("This page no longer follows the store")
        expect(page.get_by_text("Looked at the store")).to_be_visible()
        expect(stale).to_be_hidden()
        served.console.desk.sessions.end_all("olga")

        expect(stale).to_be_visible()
        expect(page.get_by_text("you may have to sign in")).to_be_visible()


def test_the_page_of_a_thread_never_contradicts_what_it_says_was_done(
    busy: Scene, browser: Browser
) -> None:
    """Right after a pause it is shown as paused, and by itself no longer once somebody unpaused."""
    with busy.serving() as served, person_at(browser, served, "olga") as olga:
        thread = served.console.desk.watch.thread("chat-0").id
        olga.sign_in()
        page = olga.open(f"/threads/{thread}")
        page.get_by_text("Pause", exact=True).first.click()
        page.get_by_role("textbox", name="Why").first.fill("the supplier looks odd")
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("Nothing is saved or resumed").wait_for()
        badge = page.locator("#now .badge").first
        assert badge.inner_text() == "Paused"
        with busy.open("operator") as store:
            store.thread("chat-0").unpause("all is well")

        expect(badge).to_have_text("Saved")
        assert olga.complaints == []
