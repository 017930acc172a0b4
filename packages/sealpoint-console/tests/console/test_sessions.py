# SPDX-License-Identifier: Apache-2.0
"""Sessions, links and tickets: how long they last, for whom, and that each is used once."""

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from sealpoint_console._http_protection import Allowance
from sealpoint_console._sessions import (
    COOKIE,
    IDLE_S,
    LINK_S,
    SESSION_S,
    TICKET_S,
    Session,
    Sessions,
)
from tests.console.scene import Scene, Served


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The clock of the sessions."""
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    """Sessions of nobody yet."""
    return Sessions(clock)


def begun(sessions: Sessions, person: str = "ann") -> tuple[str, Session]:
    """Somebody who is signed in."""
    token = sessions.begin(person, "link")
    session = sessions.find(token)
    assert session is not None
    return token, session


# ---------------------------------------------------------------------- sessions


def test_a_session_is_found_by_its_token_alone(sessions: Sessions) -> None:
    """What is kept here is its hash, which signs nobody in."""
    token, session = begun(sessions)

    assert session.person == "ann"
    for other in (None, "", token[:-1], token + "A", token.swapcase(), "é", "\udc80"):
        assert sessions.find(other) is None
    assert token not in repr(vars(sessions))


def test_a_session_ends_after_an_hour_in_which_nobody_came(
    sessions: Sessions, clock: Clock
) -> None:
    """And not before."""
    token, _ = begun(sessions)
    clock.now += IDLE_S
    assert sessions.find(token) is not None
    clock.now += IDLE_S + 1

    assert sessions.find(token) is None
    clock.now -= IDLE_S
    assert sessions.find(token) is None, "it is gone for good"


def test_a_session_ends_after_twelve_hours_whoever_comes(sessions: Sessions, clock: Clock) -> None:
    """A browser that is never left alone signs in once a day."""
    token, _ = begun(sessions)
    for _ in range(SESSION_S // IDLE_S):
        clock.now += IDLE_S
        assert sessions.find(token) is not None
    clock.now += 1

    assert sessions.find(token) is None


@pytest.mark.skipif(sys.platform != "linux", reason="it sets the clock of Linux")
def test_a_night_in_which_the_machine_slept_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop that is opened in the morning opens no session of the evening."""
    slept_s = 0.0
    real = time.clock_gettime

    def clock_gettime(clock: int) -> float:
        return real(clock) + (slept_s if clock == time.CLOCK_BOOTTIME else 0.0)

    monkeypatch.setattr(time, "clock_gettime", clock_gettime)
    sessions = Sessions()
    token, session = begun(sessions)
    link, ticket = sessions.make_link("ann"), sessions.offer(session, "pause", "t", "d")
    assert sessions.find(token) is session
    slept_s = SESSION_S + 1

    assert sessions.find(token) is None
    assert sessions.use_link(link) is None
    assert sessions.spend(session, ticket) is None


def test_a_page_that_asks_by_itself_keeps_no_session_alive(
    sessions: Sessions, clock: Clock
) -> None:
    """A tab that was left open is as idle as its owner."""
    token, _ = begun(sessions)
    for _ in range(2):
        clock.now += IDLE_S / 2
        assert sessions.find(token, keep=False) is not None
    clock.now += 1

    assert sessions.find(token, keep=False) is None


def test_signing_out_ends_one_session_or_all_of_a_person(sessions: Sessions) -> None:
    """Those of others go on."""
    (one, _), (two, _), (three, _) = begun(sessions), begun(sessions), begun(sessions)
    bob, _ = begun(sessions, "bob")
    sessions.end(one)
    sessions.end(None)
    assert [sessions.find(each) is None for each in (one, two, three, bob)] == [1, 0, 0, 0]
    sessions.end_all("ann")

    assert [sessions.find(each) is None for each in (one, two, three, bob)] == [1, 1, 1, 0]


def test_sessions_links_and_tickets_take_up_a_bounded_place(sessions: Sessions) -> None:
    """What was not used for longest goes first."""
    first, _ = begun(sessions)
    kept, session = begun(sessions)
    link, ticket = sessions.make_link("ann"), sessions.offer(session, "pause", "t", "d")
    for _ in range(2000):
        sessions.begin("bob", "link")
        sessions.find(kept)
    for _ in range(400):
        sessions.make_link("bob")
        sessions.offer(session, "pause", "t", "d")

    assert sessions.find(first) is None
    assert sessions.find(kept) is session
    assert sessions.use_link(link) is None
    assert sessions.spend(session, ticket) is None


# ---------------------------------------------------------------------- links and tickets


def racing(take: Callable[[], object]) -> int:
    """How many of eight who take something at once get it."""
    got: list[object] = []
    ready = threading.Barrier(8)

    def run() -> None:
        ready.wait()
        got.append(take())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(each is not None for each in got)


def test_a_link_signs_in_once_within_ten_minutes(sessions: Sessions, clock: Clock) -> None:
    """Whoever finds it later finds nothing."""
    used, old, raced = (sessions.make_link("ann") for _ in range(3))
    assert sessions.use_link(used) == "ann"
    assert sessions.use_link(used) is None
    assert racing(lambda: sessions.use_link(raced)) == 1
    clock.now += LINK_S

    assert sessions.use_link(old) is None
    assert sessions.use_link("") is None


def test_a_ticket_is_spent_once_within_half_an_hour(sessions: Sessions, clock: Clock) -> None:
    """A first step may look at it; racing forms get it once."""
    _, session = begun(sessions)
    used, old, raced = (sessions.offer(session, "pause", "t-1", "d-1") for _ in range(3))
    seen, spent = sessions.look(session, used), sessions.spend(session, used)
    assert seen == spent
    assert spent is not None
    assert (spent.action, spent.about, spent.shown) == ("pause", "t-1", "d-1")
    assert sessions.look(session, used) is sessions.spend(session, used) is None
    assert racing(lambda: sessions.spend(session, raced)) == 1
    clock.now += TICKET_S

    assert sessions.look(session, old) is sessions.spend(session, old) is None


def test_a_ticket_is_for_the_session_that_it_was_offered_to(sessions: Sessions) -> None:
    """Neither for somebody else, nor for the same person in another browser."""
    (_, ann), (_, again), (_, bob) = begun(sessions), begun(sessions), begun(sessions, "bob")
    ticket = sessions.offer(ann, "pause", "t-1", "d-1")

    for other in (again, bob):
        assert sessions.spend(other, ticket) is None
    assert sessions.spend(ann, ticket) is not None


# ---------------------------------------------------------------------- in the console


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A console with a thread, which tests pause and let go on."""
    scene = Scene(tmp_path_factory.mktemp("sessions") / "scene").make()
    scene.ask()
    scene.ask("invoice-18")
    scene.ask("invoice-19")
    with scene.serving() as served:
        yield served


@pytest.fixture
def served(house: Served) -> Served:
    """The same; each test may sign people in anew."""
    house.console.desk.sign_ins = Allowance(burst=20, a_minute=20)
    return house


def thread_of(served: Served, name: str) -> str:
    """The address of a thread's page."""
    with served.scene.open() as store:
        return f"/threads/{store.thread(name).standing().thread}"


def ticket_of(client: httpx.Client, page: str, action: str) -> str:
    """The ticket of a form on a page."""
    text = client.get(page).text
    found = re.search(
        rf'<form[^>]*action="{re.escape(page)}/{action}".*?name="ticket" value="([^"]+)"',
        text,
        re.DOTALL,
    )
    assert found, f"there is no form to {action} on {page}"
    return found[1]


def entries(served: Served, name: str, kind: str) -> int:
    """How many entries of a kind a thread has."""
    with served.scene.open() as store:
        return sum(each.kind == kind for each in store.audit(thread=name))


def test_a_form_does_what_it_was_offered_for_once(served: Served) -> None:
    """Not again, nor for another thread, nor something else, nor in another browser."""
    page, other = thread_of(served, "invoice-17"), thread_of(served, "invoice-18")
    with (
        closing(served.client("olga")) as olga,
        closing(served.client("olga")) as elsewhere,
    ):
        for where, action, client in (
            (other, "pause", olga),
            (page, "resume", olga),
            (page, "pause", elsewhere),
        ):
            ticket = ticket_of(olga, page, "pause")
            form = {"ticket": ticket, "reason": "a test"}
            answer = client.post(f"{where}/{action}", data=form)
            assert answer.status_code == 400, answer.text
            assert "too old" in answer.text
        assert entries(served, "invoice-17", "pause") == entries(served, "invoice-18", "pause") == 0
        form = {"ticket": ticket_of(olga, page, "pause"), "reason": "a test"}
        assert olga.post(f"{page}/pause", data=form).status_code == 303
        assert olga.post(f"{page}/pause", data=form).status_code == 400
        assert olga.post(f"{page}/pause", data={"reason": "none"}).status_code == 400

    assert entries(served, "invoice-17", "pause") == 1


def test_a_form_that_is_sent_many_times_at_once_is_done_once(served: Served) -> None:
    """Whoever presses twice, or is made to, pauses once."""
    page = thread_of(served, "invoice-19")
    with closing(served.client("olga")) as olga:
        form = {"ticket": ticket_of(olga, page, "pause"), "reason": "a test"}
        statuses: list[int] = []

        def send() -> object:
            statuses.append(olga.post(f"{page}/pause", data=form).status_code)
            return None

        racing(send)

    assert sorted(statuses) == [303] + [400] * 7
    assert entries(served, "invoice-19", "pause") == 1


def test_a_link_says_whom_it_signs_in_and_is_not_used_up(served: Served) -> None:
    """So that a person decides, and nobody works under another's name by a link of theirs."""
    link = served.console.sign_in_link("ann").partition("link=")[2]
    with closing(served.client()) as client:
        told = client.post("/sign-in/link/person", json={"link": link})
        assert told.json() == {"person": "ann"}
        assert "set-cookie" not in told.headers
        assert client.get("/sign-in").status_code == 200
        assert client.post("/sign-in/link", json={"link": link}).status_code == 200

        assert client.post("/sign-in/link/person", json={"link": link}).status_code == 403


def test_a_link_works_once_over_the_wire(served: Served) -> None:
    """The second browser is told what to do."""
    link = served.console.sign_in_link("ann").partition("link=")[2]
    with closing(served.client()) as first, closing(served.client()) as second:
        assert first.post("/sign-in/link", json={"link": link}).status_code == 200
        answer = second.post("/sign-in/link", json={"link": link})

    assert answer.status_code == 403
    assert "Press Enter" in answer.text
    assert "set-cookie" not in answer.headers


def test_a_link_for_somebody_whom_the_roster_does_not_know_signs_nobody_in(
    served: Served,
) -> None:
    """A session begins only for people of the roster."""
    link = served.console.sign_in_link("mallory").partition("link=")[2]
    with closing(served.client()) as client:
        answer = client.post("/sign-in/link", json={"link": link})

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_session_that_was_signed_out_is_gone_for_whoever_copied_it(served: Served) -> None:
    """The server forgets it, and not only the browser."""
    with closing(served.client("ann")) as ann:
        cookie = ann.headers["cookie"]
        assert ann.get("/people").status_code == 200
        answer = ann.post("/sign-out")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert f'{COOKIE}=""' in answer.headers["set-cookie"]
        assert "Max-Age=0" in answer.headers["set-cookie"]

        assert ann.get("/people", headers={"cookie": cookie}).status_code == 303


def test_the_cookie_is_for_this_host_and_no_script(served: Served) -> None:
    """A browser refuses it from anywhere else by its very name."""
    link = served.console.sign_in_link("ann").partition("link=")[2]
    with closing(served.client()) as client:
        line = client.post("/sign-in/link", json={"link": link}).headers["set-cookie"]

    assert line.startswith("__Host-")
    for word in ("; Path=/;", "; Secure", "; HttpOnly", "; SameSite=lax", "; Max-Age=43200"):
        assert word in line
    assert "Domain" not in line


def test_a_sign_in_does_not_take_over_what_the_browser_brought(served: Served) -> None:
    """A token that somebody planted is not the one that counts afterwards."""
    link = served.console.sign_in_link("ann").partition("link=")[2]
    with closing(served.client()) as client:
        headers = {"cookie": f"{COOKIE}=planted"}
        answer = client.post("/sign-in/link", json={"link": link}, headers=headers)

        assert answer.status_code == 200
        assert "planted" not in answer.headers["set-cookie"]
        assert client.get("/people", headers=headers).status_code == 303


def test_whoever_is_taken_off_the_roster_is_out_at_once(tmp_path: Path) -> None:
    """Pages, actions, the live feed and every way back in end with the person's last key."""
    with Scene(tmp_path / "scene").make().serving() as served:
        with closing(served.client("olga")) as olga, closing(served.client("ann")) as ann:
            with olga.stream("GET", "/live") as feed:
                lines = feed.iter_lines()
                assert next(lines) == "event: standing"
                served.scene.admin.keys.revoke("olga", reason="she left")
                begun = time.monotonic()
                assert olga.get("/people").status_code == 303
                assert olga.post("/health/verify", data={"ticket": "x"}).status_code == 303
                list(lines)
            assert time.monotonic() - begun < 10
            assert ann.get("/people").status_code == 200
        link = served.console.sign_in_link("olga").partition("link=")[2]
        with closing(served.client()) as again:
            assert again.post("/sign-in/link", json={"link": link}).status_code == 403


def test_a_session_that_ends_is_told_nothing_more(served: Served) -> None:
    """Though the store is looked at all the time, and there is always something to tell."""
    with closing(served.client("ann")) as ann, ann.stream("GET", "/live") as feed:
        lines = feed.iter_lines()
        assert next(lines) == "event: standing"
        assert ann.post("/sign-out").status_code == 303
        begun = time.monotonic()
        list(lines)

    assert time.monotonic() - begun < 10


def test_a_tab_that_is_left_open_keeps_no_session_alive(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a page asks for by itself does not count as somebody who is there."""
    clock = Clock()
    monkeypatch.setattr(served.console.desk, "sessions", Sessions(clock))
    with closing(served.client("ann")) as ann:
        clock.now += IDLE_S - 1
        assert ann.get("/", headers={"hx-request": "true"}).status_code == 200
        clock.now += 2

        assert ann.get("/", headers={"hx-request": "true"}).status_code == 303


def test_who_signs_in_again_ends_the_session_that_was_there(served: Served) -> None:
    """A browser has one session, and no forgotten ones."""
    with closing(served.client("ann")) as ann:
        link = served.console.sign_in_link("bob").partition("link=")[2]
        assert ann.post("/sign-in/link", json={"link": link}).status_code == 200

        assert ann.get("/people").status_code == 303
