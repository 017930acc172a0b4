# SPDX-License-Identifier: Apache-2.0
"""A page that is open while others work: what it is told, what it shows, and what it leaves."""

import json
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.person import person_at
from tests.console.scene import Scene, Served

_SAVES = 30


def _moves(lines: Iterator[str]) -> Iterator[tuple[str, list[str] | None]]:
    """The place and the threads of each event that says that something moved."""
    name = place = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "id":
            place = value
        elif field == "data" and name == "moved":
            yield place, json.loads(value).get("threads")


def _save(scene: Scene, name: str) -> None:
    with scene.open() as store:
        store.thread(name).save({"x": 1})


def _listening(client: httpx.Client, since: str) -> tuple[str, list[str] | None]:
    """The first thing that somebody is told who comes from a place."""
    with client.stream("GET", "/live", params={"since": since}) as feed:
        return next(_moves(feed.iter_lines()))


def test_the_feed_names_the_threads_that_moved(served: Served) -> None:
    """And no others, and says where it is."""
    _save(served.scene, "one")
    _save(served.scene, "two")
    served.seen()
    one, two = (served.console.desk.watch.thread(name).id for name in ("one", "two"))
    place = served.console.desk.place
    with closing(served.client("vera")) as vera:
        with vera.stream("GET", "/live") as feed:
            moves = _moves(feed.iter_lines())
            _save(served.scene, "two")
            found = next(moves)
        assert found == (served.console.desk.place, [two])
        _save(served.scene, "one")
        served.seen()

        assert _listening(vera, place)[1] == sorted([one, two])
        assert _listening(vera, found[0])[1] == [one]


@pytest.mark.parametrize("since", ["0", "00000000-1", "x-\u0661", "-", f"{'9' * 400}"])
def test_whoever_comes_from_elsewhere_reads_all_anew(served: Served, since: str) -> None:
    """Nobody is told that only some threads moved who was never told of the others."""
    with closing(served.client("vera")) as vera:
        assert _listening(vera, since) == (served.console.desk.place, None)


def test_a_place_before_all_that_is_kept_is_from_elsewhere(served: Served) -> None:
    """So is one that is not reached yet."""
    desk = served.console.desk
    run = desk.place.rpartition("-")[0]

    assert desk.moved_since(f"{run}-999")[1] is None
    assert desk.moved_since(desk.place)[1] == frozenset()


def test_a_change_of_the_roster_moves_every_page(served: Served) -> None:
    """What somebody may do can depend on it, on each of them."""
    place = served.console.desk.place
    served.scene.admin.keys.create("zoe")
    served.scene.admin.keys.add("zoe", person="zoe", roles=["auditor"], namespaces=["*"])
    served.seen()

    assert served.console.desk.moved_since(place)[1] is None


def _long(scene: Scene, name: str) -> None:
    with scene.open() as store:
        for turn in range(_SAVES):
            store.thread(name).save({"turn": turn}, id=f"t{turn}")


def _asked_for(page: Page, path: str) -> list[str]:
    """What the page asks for by itself from now on, at its own address."""
    found: list[str] = []
    page.on("request", lambda each: found.append(each.url) if each.url.endswith(path) else None)
    return found


def test_an_open_thread_follows_and_leaves_a_person_alone(scene: Scene, browser: Browser) -> None:
    """The choice of what to compare, the focus and what is on the screen stay as they were."""
    _long(scene, "long")
    _long(scene, "other")
    with scene.serving() as served, person_at(browser, served, "olga") as olga:
        olga.sign_in()
        path = f"/threads/{served.console.desk.watch.thread('long').id}"
        page = olga.open(path)
        asked = _asked_for(page, path)
        chosen = page.locator("#entry-12 input[name=from]")
        chosen.check()
        page.locator("#entry-20 input[name=to]").check()
        link = page.locator("#entry-15 a").first
        link.focus()
        top = link.evaluate("it => it.getBoundingClientRect().top")
        page.get_by_text("Hand it off").first.evaluate("it => it.parentElement.open = true")
        page.get_by_label("Next owner").evaluate("it => { it.value = 'half typed'; }")

        with scene.open() as store:
            store.thread("other").save({"x": 1})
            served.seen()
            store.thread("long").save({"turn": "new"}, id="brand-new")
        expect(page.get_by_text("state brand-new is saved")).to_be_attached()
        entries = served.console.desk.watch.thread("long").entries
        expect(page.locator("#facts-list")).to_contain_text(f"Entries{entries}")

        expect(chosen).to_be_checked()
        expect(page.locator("#entry-20 input[name=to]")).to_be_checked()
        expect(link).to_be_focused()
        assert abs(link.evaluate("it => it.getBoundingClientRect().top") - top) < 2
        assert page.get_by_label("Next owner").input_value() == "half typed"
        assert len(asked) == 1, "only a move of its own thread makes a page ask again"
        assert not olga.violations()
        assert olga.complaints == []


def test_what_nobody_chose_follows_the_newest(scene: Scene, browser: Browser) -> None:
    """Whoever has touched nothing compares the two newest states; a resume lies between them."""
    _long(scene, "long")
    with scene.serving() as served, person_at(browser, served, "olga") as olga:
        page = olga.sign_in().open(f"/threads/{served.console.desk.watch.thread('long').id}")
        with scene.open() as store:
            newest = store.thread("long").save({"turn": "new"}, id="brand-new").seq

        expect(page.locator(f"#entry-{newest} input[name=to]")).to_be_checked()
        expect(page.locator(f"#entry-{newest - 2} input[name=from]")).to_be_checked()


def test_what_moved_before_a_page_listened_is_shown(scene: Scene, browser: Browser) -> None:
    """Between the making of a page and its first event nothing is lost."""
    _long(scene, "long")
    with scene.serving() as served, person_at(browser, served, "olga") as olga:
        olga.sign_in()
        path = f"/threads/{served.console.desk.watch.thread('long').id}"
        held: list[object] = []

        def hold(route: object) -> None:
            if not held:
                _save(scene, "long")
                served.seen()
            held.append(route)
            route.continue_()  # type: ignore[attr-defined]

        olga.page.route("**/live*", hold)
        page = olga.open(path)

        expect(page.locator(f"#entry-{_SAVES + 2}")).to_be_attached()
