# SPDX-License-Identifier: Apache-2.0
"""The page on which people decide, for real agents, in a real browser.

Question and answer are on the first screen, and Approve waits until the end of what is approved was
on the screen. That protects people against haste; what counts is judged by the server.
"""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

import sealpoint
from sealpoint.api import examine
from sealpoint.codec import Registry
from sealpoint.views.requests import request_view
from tests.console.conftest import chromium
from tests.console.person import Person, person_at
from tests.console.scene import Scene
from tests.effort import in_soak
from tests.stories.asking_agents import AGENTS, WORKFLOWS, ask, ask_workflow

_DAILY = ("tool-asks", "mail", "parallel", "af-tool")
_NAMES = [name if name in _DAILY else in_soak(name) for name in (*AGENTS, *WORKFLOWS)]
_LOOKS: dict[str, dict[str, Any]] = {
    "wide": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "wide-dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 375, "height": 812}, "color_scheme": "light"},
    "narrow-dark": {"viewport": {"width": 375, "height": 812}, "color_scheme": "dark"},
}
_SHOTS = Path(__file__).parents[2] / "build" / "console"
_DAILY_LOOKS = (("wide", "narrow-dark"), ("wide-dark", "narrow"))


def _each_on_two_screens() -> list[Any]:
    """Every agent in each look; daily in a wide and a narrow one, of which one is dark."""
    daily = {(name, look) for n, name in enumerate(_DAILY) for look in _DAILY_LOOKS[n % 2]}
    return [
        pytest.param(*row, marks=[] if row in daily else [pytest.mark.soak])
        for row in itertools.product((*AGENTS, *WORKFLOWS), _LOOKS)
    ]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A store of a team, in which every agent of these tests asks."""
    return Scene(tmp_path_factory.mktemp("asking") / "scene").make()


@pytest.fixture(scope="module")
def ann(scene: Scene) -> Iterator[Person]:
    """An approver with a passkey, at one browser for all tests."""
    with (
        chromium() as browser,
        scene.serving() as served,
        person_at(browser, served, "ann") as person,
    ):
        yield person.enrol().use_passkey()


def _request(scene: Scene, name: str) -> str:
    """The request of an agent, which asks only once."""
    with scene.open() as store:
        known = [each for each in store.requests().requests if each.thread == name]
        if known:
            return known[0].id
        if name in AGENTS:
            return ask(store, name, name)
        # In a thread of its own: the browser runs an event loop in this one.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(ask_workflow, store, name, name).result()


def _words(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if name in WORKFLOWS:
        return WORKFLOWS[name][2], ()
    return AGENTS[name].says, AGENTS[name].differs


@pytest.mark.parametrize("name", _NAMES)
def test_what_an_agent_asks_is_read_in_its_own_words(scene: Scene, name: str) -> None:
    """Question, calls, answer and differences are values of the model, each of them once."""
    request = _request(scene, name)
    untyped = Registry().showing_untyped("")
    with sealpoint.open_store(scene.url, read_only=True, registry=untyped, **scene.place) as store:
        examined = examine(store, store.request(request), states=True)
    decision = request_view(examined).decision
    assert decision is not None
    said = str(decision.questions) + str(decision.answer)
    says, differs = _words(name)

    assert all(words.encode("unicode_escape").decode() in said or words in said for words in says)
    assert all(any(words in each for each in decision.differences) for words in differs)
    assert bool(decision.differences) == bool(differs)
    assert all(each.asker for each in decision.questions)


@pytest.mark.parametrize(("name", "look"), _each_on_two_screens())
def test_question_and_answer_are_on_the_first_screen(
    ann: Person, scene: Scene, name: str, look: str
) -> None:
    """Nobody has to scroll past digests to see what is asked, on any screen."""
    page = _open(ann, scene, name, look)
    says, differs = _words(name)
    shown = page.locator(".shown").inner_text()

    assert _top(page.locator("#question-1, #answer").first) >= 0
    assert _bottom(page.locator("#answer-1, #answer").first) <= page.viewport_size["height"]  # type: ignore[index]
    assert all(words in shown for words in (*says, *differs)), (name, shown)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=_SHOTS / f"{name}-{look}.png", full_page=True)


@pytest.mark.parametrize("look", ["wide", "narrow"])
@pytest.mark.parametrize("name", _NAMES)
def test_nobody_approves_what_was_not_on_their_screen(
    ann: Person, scene: Scene, name: str, look: str
) -> None:
    """Approve waits for every end, says what is left, and Deny does not wait."""
    page = _open(ann, scene, name, look)
    approve = page.get_by_role("button", name="Approve")
    ends = page.locator("[data-end]")
    hidden = [n for n in range(ends.count()) if not _is_seen(ends.nth(n))]

    assert page.get_by_role("button", name="Deny").is_enabled()
    if hidden:
        expect(approve).to_be_disabled()
        expect(page.locator("[data-left]")).to_contain_text("Left to see:")
    for number in hidden:
        expect(approve).to_be_disabled()
        ends.nth(number).scroll_into_view_if_needed()
        page.wait_for_timeout(50)
    expect(approve).to_be_enabled()
    expect(page.locator("[data-left]")).to_be_hidden()
    assert ann.complaints == []


def test_a_long_question_is_read_to_its_end_by_keyboard(ann: Person, scene: Scene) -> None:
    """Its region takes the focus, and End scrolls it; then Approve can be used."""
    page = _open(ann, scene, "mail", "wide")
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_disabled()
    page.get_by_role("link", name="the end of the question").press("Enter")
    expect(page.locator("#question-1")).to_be_focused()
    expect(approve).to_be_disabled()
    page.keyboard.press("End")

    expect(approve).to_be_enabled()


def test_the_panel_stays_in_view_beside_what_is_read(ann: Person, scene: Scene) -> None:
    """On a wide screen it is sticky; on a narrow one it comes after what it approves."""
    page = _open(ann, scene, "mail", "wide")
    page.evaluate("scrollTo(0, 600)")
    assert _top(page.locator(".panel")) >= 0

    page = _open(ann, scene, "mail", "narrow")
    assert _top(page.locator(".panel")) >= _bottom(page.locator(".shown"))


def test_lists_tell_requests_apart_and_threads_say_what_comes_next(
    ann: Person, scene: Scene
) -> None:
    """Question and answer are in both lists; an approved thread does not look unanswered."""
    with scene.open() as store:
        request = ask(store, "tool-asks", "in-lists")
    ann.served.seen()
    ann.page.set_viewport_size({"width": 1280, "height": 900})
    row = ann.open("/requests").locator(f"#r-{request}")
    expect(row).to_contain_text("Refund 120 EUR for order A-17?")
    expect(row).to_contain_text("yes")
    thread = ann.served.console.desk.watch.thread("in-lists").id
    expect(ann.open("/").locator(f"#t-{thread}")).to_contain_text("Refund 120 EUR for order A-17?")
    page = ann.open(f"/threads/{thread}")
    expect(page.locator("#timeline")).to_contain_text("Node model finished")
    expect(page.locator("#timeline")).to_contain_text("Step 1, after model")
    for name in ("ann", "bob"):
        with scene.open(name) as store:
            store.approve(request, reason="as agreed")
    ann.served.seen()
    page = ann.open(f"/threads/{thread}")

    expect(page.locator("#now")).to_contain_text("Approved")
    expect(page.locator("#now")).not_to_contain_text("Waits for an answer")
    expect(page.locator("#question")).to_contain_text("Approved by 2 of 2.")
    expect(page.locator("#question")).to_contain_text("when its worker takes it")
    expect(ann.open("/").locator(f"#t-{thread}")).to_contain_text("Waits for its worker")


def _open(ann: Person, scene: Scene, name: str, look: str) -> Page:
    request = _request(scene, name)
    ann.served.seen()
    ann.page.set_viewport_size(_LOOKS[look]["viewport"])
    ann.page.emulate_media(color_scheme=_LOOKS[look]["color_scheme"])
    page = ann.open(f"/requests/{request}")
    page.wait_for_timeout(100)
    return page


def _is_seen(end: Locator) -> bool:
    return bool(
        end.evaluate(
            """end => new Promise(done => new IntersectionObserver((seen, watch) => {
                 watch.disconnect(); done(seen[0].isIntersecting);
               }).observe(end))"""
        )
    )


def _top(place: Locator) -> float:
    box = place.bounding_box()
    assert box is not None
    return box["y"]


def _bottom(place: Locator) -> float:
    box = place.bounding_box()
    assert box is not None
    return box["y"] + box["height"]
