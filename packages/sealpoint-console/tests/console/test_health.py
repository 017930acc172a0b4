# SPDX-License-Identifier: Apache-2.0
"""The page about the health of a store: its set-up, the anchor, the verification."""

import sqlite3
import threading
from contextlib import closing

import sealpoint
from sealpoint.api import Diagnosis
from sealpoint.errors import AnchorUnavailable
from sealpoint_console._health import Checkup
from tests.console.scene import Scene, Served, until


class _Doctor:
    """Says what it is told to say, once it may."""

    def __init__(self) -> None:
        self.calls = 0
        self.may_end = threading.Event()
        self.now = 0.0
        self.fails = False

    def __call__(self) -> Diagnosis:
        self.calls += 1
        assert self.may_end.wait(20)
        if self.fails:
            raise AnchorUnavailable("the anchor is down")
        return Diagnosis(url="sqlite:///agents.db")


def test_a_look_at_the_set_up_is_waited_for_by_nobody_and_kept_a_while() -> None:
    """While one runs no other is begun; the last one is shown until it is too old."""
    doctor = _Doctor()
    checkup = Checkup(doctor, clock=lambda: doctor.now)

    assert checkup.look() == (None, True)
    assert checkup.look() == (None, True)
    doctor.may_end.set()
    until(lambda: checkup.look()[1] is False)
    first = checkup.look()[0]
    assert first is not None
    assert first.diagnosis == Diagnosis(url="sqlite:///agents.db")
    doctor.now = 29.0
    assert checkup.look() == (first, False)
    assert doctor.calls == 1
    doctor.may_end.clear()
    doctor.now = 31.0
    assert checkup.look() == (first, True)
    doctor.may_end.set()
    until(lambda: checkup.look()[1] is False)
    assert doctor.calls == 2


def test_a_look_that_took_long_is_kept_longer() -> None:
    """So that a large store is not looked at all the time."""
    doctor = _Doctor()
    checkup = Checkup(doctor, clock=lambda: doctor.now)
    checkup.look()
    doctor.now = 20.0
    doctor.may_end.set()
    until(lambda: checkup.look()[1] is False)
    doctor.now = 219.0

    assert checkup.look()[1] is False
    assert doctor.calls == 1


def test_why_nobody_can_look_is_shown() -> None:
    """The error takes the place of findings, and the next look may find some."""
    doctor = _Doctor()
    doctor.fails = True
    doctor.may_end.set()
    checkup = Checkup(doctor, clock=lambda: doctor.now)
    until(lambda: checkup.look()[1] is False)
    found = checkup.look()[0]

    assert found is not None
    assert found.fault is not None
    assert found.fault.code == "anchor-unavailable"


def test_the_page_says_what_the_doctor_says(served: Served) -> None:
    """To those who mend, with what mends it; to others not."""
    with served.client("olga") as olga, served.client("ann") as ann:
        until(lambda: "As <code>sealpoint doctor</code> reported" in olga.get("/health").text)
        page, other = olga.get("/health").text, ann.get("/health").text

    found = served.scene.admin.doctor().findings
    assert found
    assert all(each.code in page for each in found)
    assert not any(each.code in other for each in found)


def test_the_page_says_how_the_store_stands_to_the_anchor(scene: Scene) -> None:
    """In step as long as everything is there, and not after entries were cut off."""
    scene.ask()
    with scene.serving() as served, served.client("ann") as client:
        assert "In step" in client.get("/health").text
    with closing(sqlite3.connect(scene.folder / "disk" / "agents.db")) as database, database:
        assert database.execute(
            "DELETE FROM entries WHERE seq = 3 AND thread != zeroblob(16)"
        ).rowcount
    with scene.serving() as served, served.client("ann") as client:
        page = client.get("/health").text

    assert "In step" not in page
    assert "1 thread does not verify" in page


def test_a_verification_says_what_it_has_found(scene: Scene) -> None:
    """Begun from the page, it shows how many entries were verified."""
    scene.ask()
    with scene.serving() as served, served.client("olga") as client:
        page = client.get("/health").text
        ticket = page.partition('name="ticket" value="')[2].partition('"')[0]
        assert client.post("/health/verify", data={"ticket": ticket}).status_code == 303
        until(lambda: "All verified" in client.get("/health").text)
        page = client.get("/health").text

    assert "entries verified" in page


def test_what_was_found_in_another_namespace_is_only_counted(served: Served) -> None:
    """The console of one namespace names no thread of another (B02)."""
    scene = served.scene
    with sealpoint.open_store(scene.url, namespace="payroll", **scene.place) as store:
        store.thread("salaries-of-the-board").save({"n": 1})
        thread = store.thread("salaries-of-the-board").release().thread
    with closing(sqlite3.connect(scene.url.removeprefix("sqlite:///"))) as database:
        edit = "UPDATE entries SET payload = x'01' WHERE thread = ? AND payload IS NOT NULL"
        assert database.execute(edit, (bytes.fromhex(thread),)).rowcount == 1
        database.commit()
    with served.client("olga") as olga, served.client("ann") as ann:
        ticket = olga.get("/health").text.partition('name="ticket" value="')[2].partition('"')[0]
        assert olga.post("/health/verify", data={"ticket": ticket}).status_code == 303
        until(lambda: "more in other namespaces" in ann.get("/health").text)
        page, told = ann.get("/health").text, ann.get("/api/v1/health")

    assert "1 more in other namespaces" in page
    assert "salaries" not in page
    assert "salaries" not in told.text
    found = told.json()["verification"]
    assert (found["elsewhere"], found["report"]["findings"]) == (1, [])
    assert found["report"]["ok"] is False
