# SPDX-License-Identifier: Apache-2.0
"""Every page for everybody: who may see and do what, and what an error looks like."""

import sqlite3
from contextlib import closing

import pytest

from tests.console.scene import ROLES, Scene, Served

_PAGES = ("/", "/requests", "/rollouts", "/audit", "/people", "/health")


def _thread(served: Served, name: str = "invoice-17") -> str:
    return served.console.desk.watch.thread(name).id


def test_without_signing_in_every_page_leads_to_the_sign_in(served: Served) -> None:
    """Nothing is shown or done for nobody, and a program is told so."""
    request = served.scene.ask()
    served.seen()
    thread = _thread(served)
    with served.client() as client:
        for path in (*_PAGES, f"/threads/{thread}", f"/requests/{request}"):
            answer = client.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in"), path
        for path in (f"/threads/{thread}/pause", f"/requests/{request}/answer", "/health/verify"):
            answer = client.post(path, json={}, headers={"accept": "application/json"})
            assert answer.status_code == 401, path
            assert answer.json()["error"]["code"] == "no-right"
        assert client.get("/live").status_code == 401


@pytest.mark.parametrize("person", [*ROLES, "owner"])
def test_everybody_of_the_roster_sees_every_page(served: Served, person: str) -> None:
    """Whatever their role, each page answers, and offers only what they may do."""
    request = served.scene.ask()
    served.seen()
    thread = _thread(served)
    with served.client(person) as client:
        for path in (
            *_PAGES,
            f"/threads/{thread}",
            f"/threads/{thread}/entries/2",
            f"/threads/{thread}/explain",
            f"/requests/{request}",
        ):
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
        page = client.get(f"/threads/{thread}").text
        assert (f"/threads/{thread}/pause" in page) == (person in ("olga", "owner"))
        glass = client.get(f"/requests/{request}/break-glass").status_code
        assert glass == (200 if person == "olga" else 403)


@pytest.mark.parametrize("person", ["ann", "vera"])
def test_who_is_no_operator_pauses_nothing(served: Served, person: str) -> None:
    """The right is asked for before anything else."""
    served.scene.ask()
    served.seen()
    thread = _thread(served)
    with served.client(person) as client:
        answer = client.post(f"/threads/{thread}/pause", data={"ticket": "x", "reason": "x"})

    assert answer.status_code == 403
    with served.scene.open() as store:
        assert not store.thread("invoice-17").paused


def _ticket(page: str, action: str) -> str:
    form = page.partition(f'/{action}"')[2]
    return form.partition('name="ticket" value="')[2].partition('"')[0]


def test_a_form_works_once_and_for_nobody_else(served: Served) -> None:
    """A ticket is its person's, for its action and thread, and is used up."""
    served.scene.ask()
    served.seen()
    thread = _thread(served)
    with served.client("olga") as olga, served.client("owner") as owner:
        ticket = _ticket(olga.get(f"/threads/{thread}").text, "pause")
        form = {"ticket": ticket, "reason": "it looks odd"}

        assert owner.post(f"/threads/{thread}/pause", data=form).status_code == 400
        assert olga.post(f"/threads/{thread}/handoff", data=form | {"to": "x"}).status_code == 400
        ticket = _ticket(olga.get(f"/threads/{thread}").text, "pause")
        form = {"ticket": ticket, "reason": "it looks odd"}
        assert olga.post(f"/threads/{thread}/pause", data=form).status_code == 303
        assert olga.post(f"/threads/{thread}/pause", data=form).status_code == 400
    with served.scene.open() as store:
        paused = store.thread("invoice-17").standing().paused
        assert paused is not None
        assert paused.said_by == "operator for olga"


def test_what_moved_meanwhile_is_told_and_nothing_is_written(served: Served) -> None:
    """An unpause by somebody else makes the page of the first one old."""
    served.scene.ask()
    with served.scene.open("operator") as store:
        store.thread("invoice-17").pause("it looks odd")
    served.seen()
    thread = _thread(served)
    with served.client("olga") as client:
        ticket = _ticket(client.get(f"/threads/{thread}").text, "unpause")
        with served.scene.open("operator") as store:
            store.thread("invoice-17").unpause("all is well")
            store.thread("invoice-17").pause("it is not")
        form = {"ticket": ticket, "reason": "all is well"}
        answer = client.post(f"/threads/{thread}/unpause", data=form)

    assert answer.status_code == 409
    assert "it was paused by operator" in answer.text
    with served.scene.open() as store:
        assert store.thread("invoice-17").paused


def test_a_person_who_left_the_roster_is_out_at_once(served: Served) -> None:
    """Rights are asked for at every request."""
    with served.client("vera") as client:
        assert client.get("/").status_code == 200
        served.scene.admin.keys.revoke("vera", reason="she left")

        assert client.get("/").status_code == 303


def test_a_thread_that_was_tampered_with_is_shown_as_that(scene: Scene) -> None:
    """The list, its page and the requests say so, and nothing can be done with it."""
    scene.ask()
    with closing(sqlite3.connect(scene.folder / "disk" / "agents.db")) as database, database:
        changed = "UPDATE entries SET body = CAST(replace(body, '42 EUR', '99 EUR') AS BLOB)"
        assert database.execute(changed).rowcount
    with scene.serving() as served, served.client("olga") as client:
        overview = client.get("/?phase=not+readable").text
        thread = served.console.desk.watch.findings()[0].thread
        page = client.get(f"/threads/{thread}")

        assert "Refused" in overview
        assert page.status_code == 200
        assert "Does not verify" in page.text
        assert "/pause" not in page.text
        assert "is not known" in client.get("/requests").text


def test_unknown_things_are_not_found(served: Served) -> None:
    """A page says so, and a program gets the one shape of errors."""
    with served.client("olga") as client:
        for path in ("/threads/" + "0" * 32, "/requests/" + "0" * 64, "/nothing"):
            assert client.get(path).status_code == 404, path
            answer = client.get(path, headers={"accept": "application/json"})
            assert answer.status_code == 404
            assert set(answer.json()) == {"error"}
        assert client.get("/threads/x?offset=-1").status_code in (400, 404)
        assert client.get("/audit?since=yesterday").status_code == 400
