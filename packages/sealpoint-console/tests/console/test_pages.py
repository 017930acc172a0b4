# SPDX-License-Identifier: Apache-2.0
"""Every page for everybody: who may see and do what, and what an error looks like."""

import dataclasses
import html
import re
import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest
from jinja2 import PackageLoader, TemplateNotFound

from sealpoint.api import StoreWatch
from sealpoint.audit import AuditRecord, TimelinePage
from sealpoint.errors import NeedsApproval, NotTrusted
from sealpoint.gate import Status
from sealpoint.signing import Verdict
from sealpoint_console import _outbox, _question_lines, _sessions, _store_pages
from sealpoint_console.settings import HookSettings
from tests.console.scene import ROLES, WIDER, WORLD, Scene, Served, until
from tests.unit.signing.authenticator import Authenticator

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
            wanted = "/sign-in" if path == "/" else f"/sign-in?to={path}"
            assert (answer.status_code, answer.headers["location"]) == (303, wanted), path
        for path in (f"/threads/{thread}/pause", f"/requests/{request}/answer", "/health/verify"):
            answer = client.post(path, json={}, headers={"accept": "application/json"})
            assert answer.status_code == 401, path
            assert answer.json()["error"]["code"] == "no-right"
        assert client.get("/live").status_code == 401


def test_who_sends_a_form_after_the_session_ended_is_told_that_it_was_not_done(
    served: Served,
) -> None:
    """They sign in again, and are led back to the page of the form."""
    served.scene.ask()
    served.seen()
    thread = _thread(served)
    with served.client("olga") as olga:
        before = olga.get("/sign-in").text
        served.console.desk.sessions.end(olga.headers["cookie"].partition("=")[2])
        sent = olga.post(f"/threads/{thread}/pause", data={"ticket": "x", "reason": "stop"})
        page = olga.get(sent.headers["location"]).text

    assert sent.headers["location"] == f"/sign-in?to=/threads/{thread}"
    assert "If you just sent a form, it had no effect." in page
    assert "not signed in any more" not in before


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example",
        "https://evil.example",
        "/sign-out",
        "/requests/../x",
        "/\\evil",
        "",
        "/audit\n",
    ],
)
def test_who_signs_in_goes_on_at_pages_of_this_console_only(served: Served, to: str) -> None:
    """An address that somebody made up leads to the first page, a request's to the request."""
    page = f"/requests/{'0' * 64}"
    with served.client() as client:
        assert f'data-wanted="{page}"' in client.get("/sign-in", params={"to": page}).text
        assert 'data-wanted="/"' in client.get("/sign-in", params={"to": to}).text


def test_somebody_else_signs_in_where_somebody_is_signed_in(served: Served) -> None:
    """Whoever has just made a passkey need not find out that another has to sign out first."""
    with served.client("olga") as client:
        page = client.get("/sign-in")

        assert page.status_code == 200
        assert "Continue as olga" in page.text
        assert "Use a passkey" in page.text


def test_a_list_says_what_to_look_at_closely(served: Served) -> None:
    """In the row of the request, and beside the buttons of its page."""
    scene = served.scene
    plain, wider = scene.ask("invoice-17"), scene.ask("invoice-18", world=WIDER)
    served.seen()
    with served.client("ann") as client:
        found = client.get("/requests").text
        rows = {
            each: found.partition(f'id="r-{each}"')[2].partition("</tr>")[0]
            for each in (plain, wider)
        }
        pages = {each: client.get(f"/requests/{each}").text for each in (plain, wider)}

    assert "New tool: shell" in rows[wider]
    assert "New tool" not in rows[plain]
    assert "tools, permissions, model and prompts that it had" in pages[plain]
    assert "Look closely: 1 difference" not in pages[plain]


def test_a_list_says_what_it_has_not_compared(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that is not compared does not look like one without differences; it looks again."""
    request = served.scene.ask(world=WIDER)
    served.seen()
    monkeypatch.setattr(_question_lines, "_COMPARING_S", -1)
    with served.client("ann") as client:
        before = client.get("/requests").text
        monkeypatch.undo()
        after = client.get("/requests").text
        with served.scene.open("ann") as store:
            store.deny(request, reason="no")
        served.seen()
        page = client.get("/requests?all=1").text

    assert ("Not compared yet" in before, "every 1s" in before) == (True, True)
    assert ("New tool: shell" in after, "every 1s" in after) == (True, False)
    assert "Not compared yet" not in page


def test_a_second_request_for_the_same_is_named(served: Served) -> None:
    """Each of two is in order, and both together pay twice."""
    scene = served.scene
    one, other = scene.ask("invoice-17"), scene.ask("invoice-18")
    third = scene.ask("invoice-19", pay=43)
    served.seen()
    with served.client("ann") as client:
        pages = [client.get(f"/requests/{each}").text for each in (one, other, third)]

    words = "Another request looks the same"
    assert [words in each for each in pages] == [True, True, False]
    assert f'href="/requests/{other}">invoice-18' in pages[0]


def test_a_decision_shows_its_reasons_and_what_comes_next(served: Served) -> None:
    """Of everybody who has answered, on the page of the request."""
    scene = served.scene
    one, other = scene.ask("invoice-17"), scene.ask("invoice-18")
    with scene.open("ann") as store:
        store.deny(one, reason="the supplier is unknown")
    served.seen()
    with served.client("bob") as client:
        page = client.get(f"/requests/{one}").text

    assert "<strong>ann</strong> denied: the supplier is unknown" in page
    assert f'href="/requests/{other}">Next: invoice-18' in page


def test_a_request_that_was_used_is_told_and_not_lost(served: Served) -> None:
    """Links to it, from a hook or the chain, say who approved, and what it let happen."""
    scene = served.scene
    request = scene.ask()
    for name in ("ann", "bob"):
        with scene.open(name) as store:
            store.approve(request, reason=f"{name} spoke to the supplier")
    served.seen()
    with served.client("ann") as client:
        page = client.get(f"/requests/{request}").text
        assert "You have approved this." in page
        assert "Approved by 2 of 2. It resumes, once, when its worker takes it" in page
        assert 'value="approve"' not in page
        assert scene.goes_on()
        served.seen()
        thread = _thread(served)
        link = f"/requests/{request}?thread={thread}"
        assert f'href="{link}"' in client.get(f"/threads/{thread}").text
        assert "let the run continue, with approval" in client.get(link).text
        page = client.get(f"/requests/{request}").text
        assert "let the run continue, with approval" in page
        assert "bob spoke to the supplier" in page
        assert client.get(f"/requests/{'0' * 64}").status_code == 404


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
        assert paused.author_text == "operator for olga"


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


def test_nothing_is_offered_that_is_newer_than_what_is_shown(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written while a page is made is not what its forms are bound to."""
    served.scene.ask()
    served.seen()
    thread, watch = _thread(served), served.console.desk.watch
    read = watch.timeline

    def overtaken(name: str, *, offset: int, limit: int) -> TimelinePage:
        page = read(name, offset=offset, limit=limit)
        with served.scene.open("operator") as store:
            store.thread(name).pause("it looks odd")
        return page

    monkeypatch.setattr(watch, "timeline", overtaken)
    with served.client("olga") as client:
        page = client.get(f"/threads/{thread}").text
        form = {"ticket": _ticket(page, "pause"), "reason": "it looks odd to me too"}
        answer = client.post(f"/threads/{thread}/pause", data=form)

    assert "/unpause" not in page
    assert answer.status_code == 409
    assert "it was paused by operator" in answer.text


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


def test_what_a_verification_finds_is_named_and_seen_on_every_page(scene: Scene) -> None:
    """A state that nobody read was changed: the menu counts it, and Health leads to its thread."""
    with scene.open() as store:
        store.thread("rent").save({"to": "landlord"})
    with scene.serving() as served, served.client("olga") as client:
        health = served.console.desk.health
        with closing(sqlite3.connect(scene.folder / "disk" / "agents.db")) as database, database:
            changed = "UPDATE entries SET payload = CAST(replace(payload, 'lord', 'lady') AS BLOB)"
            assert database.execute(f"{changed} WHERE instr(payload, 'lord')").rowcount
        served.seen()
        before = client.get("/people").text
        health.begin()
        until(lambda: health.last is not None and not health.last.runs)
        page = client.get("/health").text

        assert 'id="alarms" hidden' in before
        assert 'id="alarms" class="count bad"><span>1</span>' in client.get("/people").text
        assert f'<a href="/threads/{_thread(served, "rent")}">rent</a>' in page
        assert "bring back a good copy" in page
        thread = client.get(f"/threads/{_thread(served, 'rent')}").text
        assert "The last full verification found" in thread
        assert "Does not verify" in thread


def test_an_upgrade_changes_no_page_of_a_console_that_runs(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages are filled from what was read at the start, whatever lies on the disk now."""

    def replaced(*_: object) -> NoReturn:
        raise TemplateNotFound("of another version")

    monkeypatch.setattr(PackageLoader, "get_source", replaced)
    with served.client("olga") as client:
        assert {client.get(path).status_code for path in _PAGES} == {200}


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
        for path in ("/?phase=asleep", "/api/v1/threads?phase=asleep"):
            answer = client.get(path, headers={"accept": "application/json"})
            assert answer.status_code == 400
            assert "found 'asleep'" in answer.json()["error"]["message"]


def test_an_entry_that_is_no_checkpoint_is_not_found(served: Served) -> None:
    """Of one that never was, and of one that holds no state."""
    served.scene.ask()
    served.seen()
    with served.client("olga") as client:
        for seq in (0, 99):
            path = f"/threads/{_thread(served)}/entries/{seq}"
            answer = client.get(path, headers={"accept": "application/json"})
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "unknown-checkpoint"


def test_an_export_of_the_audit_says_that_there_is_more(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has an end, so that nobody who asks keeps the console busy."""
    served.scene.ask()
    with served.client("vera") as client:
        whole = client.get("/audit?format=json").json()
        monkeypatch.setattr(_store_pages, "EXPORT_MAX", 3)
        part = client.get("/audit?format=json").json()

    assert (whole["more"], part["more"]) == (False, True)
    assert part["records"] == whole["records"][:3]


def test_pages_of_the_audit_lead_to_each_other(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reads on where the one before it ended, so that all together cost one walk."""
    served.scene.ask()
    told: list[str] = []
    audit = served.console.desk.store.audit

    def counted(**asked: Any) -> Iterator[AuditRecord]:
        for record in audit(**asked):
            told.append(record.entry)
            yield record

    with served.client("vera") as vera, served.client("olga") as olga:
        whole = [each["entry"] for each in vera.get("/audit?format=json").json()["records"]]
        monkeypatch.setattr(_store_pages, "_RECORDS", 2)
        monkeypatch.setattr(served.console.desk.store, "audit", counted)
        paths, pages = ["/audit"], list[str]()
        while paths[-1]:
            pages.append(vera.get(paths[-1]).text)
            following = re.search(r'href="(/audit\?after=[^"]*)">More', pages[-1])
            paths.append(html.unescape(following[1]) if following else "")

        assert told == whole
        assert len(pages) == (len(whole) + 1) // 2 > 2
        assert [page.count('<td class="tight"><time') for page in pages[:-1]] == [2] * (
            len(pages) - 1
        )
        assert _records_of(vera.get(paths[1]).text) == _records_of(pages[1])
        for path in (f"{paths[1]}&kind=pause", "/audit?after=none"):
            assert vera.get(path).status_code == 400
        assert olga.get(paths[1]).status_code == 400


def _records_of(page: str) -> str:
    return page.partition("<tbody>")[2].partition("</tbody>")[0]


def _proposed(served: Served, *, by: str = "operator") -> str:
    """A rollout that waits for approvals."""
    with served.scene.open(by) as store:
        return store.rollouts.propose([(WORLD, WIDER)], reason="the new release").id


def test_an_operator_revokes_what_was_proposed_at_the_console(served: Served) -> None:
    """It has ended for good, says for whom, and the page offers it no more."""
    rollout = _proposed(served)
    with served.client("olga") as olga:
        ticket = _ticket(olga.get(f"/requests/{rollout}").text, "revoke")
        empty = olga.post(f"/requests/{rollout}/revoke", data={"ticket": ticket, "reason": " "})
        form = {"ticket": ticket, "reason": "the tool misbehaves"}
        done = olga.post(f"/requests/{rollout}/revoke", data=form)
        again = olga.post(f"/requests/{rollout}/revoke", data=form)
        page = olga.get(f"/requests/{rollout}").text

    assert (empty.status_code, done.status_code, again.status_code) == (400, 303, 400)
    assert "Revoked" in page
    assert f"/requests/{rollout}/revoke" not in page
    with served.scene.open() as store:
        assert store.rollouts.get(rollout).status is Status.DENIED
        (said,) = list(store.audit(kind="denial"))
        assert (said.by, said.actor) == ("operator", "olga")


@pytest.mark.parametrize("person", ["ann", "vera"])
def test_who_is_no_operator_is_offered_no_revocation(served: Served, person: str) -> None:
    """An approver denies it with a passkey of their own instead."""
    rollout = _proposed(served)
    with served.client(person) as client:
        page = client.get(f"/requests/{rollout}").text
        form = {"ticket": "x", "reason": "x"}
        answer = client.post(f"/requests/{rollout}/revoke", data=form)
        program = client.post(
            f"/api/v1/rollouts/{rollout}/revoke", json={"reason": "x", "expect": rollout}
        )

    assert f"/requests/{rollout}/revoke" not in page
    assert "sealpoint rollout revoke" in page
    assert (answer.status_code, program.status_code) == (403, 403)


def test_the_console_revokes_nothing_that_somebody_else_proposed(served: Served) -> None:
    """Though its identity were an approver, its operators have no such right by a server."""
    rollout = _proposed(served, by="olga")
    with served.client("olga") as olga:
        page = olga.get(f"/requests/{rollout}").text
        program = olga.post(
            f"/api/v1/rollouts/{rollout}/revoke", json={"reason": "x", "expect": rollout}
        )

    assert f"/requests/{rollout}/revoke" not in page
    assert program.status_code == 403
    assert program.json()["error"]["code"] == "no-right"
    with served.scene.open() as store:
        assert store.rollouts.get(rollout).status is Status.OPEN


def test_a_program_revokes_the_rollout_that_it_names_whole(served: Served) -> None:
    """A few digits are enough to find one, and not to end it."""
    rollout = _proposed(served)
    path = f"/api/v1/rollouts/{rollout[:12]}/revoke"
    with served.client("olga") as olga:
        short = olga.post(path, json={"reason": "x", "expect": rollout[:12]})
        done = olga.post(path, json={"reason": "x", "expect": rollout})

    assert short.status_code == 400
    assert done.json() == {"rollout": rollout, "status": "denied"}


def test_a_thread_that_waits_shows_what_it_asks(served: Served) -> None:
    """Nobody has to find the question in a state, or in a request that may not exist."""
    with served.scene.open() as store:
        store.thread("asks").save({"pay": 42}, question={"pay": "42 EUR to ACME?", "token": "s3"})
        store.thread("goes on").save({"pay": 42})
    served.seen()

    with served.client("olga") as olga:
        shown = {
            name: olga.get(f"/threads/{_thread(served, name)}").text for name in ("asks", "goes on")
        }

    assert "It asks</h2>" in shown["asks"]
    assert "42 EUR to ACME?" in shown["asks"]
    assert "s3" not in shown["asks"]
    assert 'id="question" hidden' in shown["goes on"]


def test_who_answered_is_shown_where_the_last_question_has_no_answer(served: Served) -> None:
    """An answer may be to some of the questions only."""
    asked = [{"id": f"{number}" * 32, "value": f"{number}?"} for number in (1, 2)]
    with served.scene.open() as store:
        thread = store.thread("asks")
        thread.save({}, question=asked, world=WORLD)
        with pytest.raises(NeedsApproval) as needed:
            thread.resume(world=WORLD, answer={"resume": {"1" * 32: "yes"}})
    with served.client("olga") as olga:
        page = olga.get(f"/requests/{needed.value.request.id}").text

    assert page.count("The requester does not say who answered.") == 1
    assert 'id="answer-1"' in page
    assert 'id="answer-2"' not in page


def test_capabilities_that_cannot_be_compared_are_read_before_approving(served: Served) -> None:
    """The page lists them all instead, above the form."""
    with served.scene.open() as store:
        thread = store.thread("first")
        thread.save({"pay": 1}, question={"pay": "1 EUR?"})
        with pytest.raises(NeedsApproval) as needed:
            thread.resume(world=WORLD, answer={"approved": True})
    with served.client("olga") as olga:
        page = olga.get(f"/requests/{needed.value.request.id}").text

    (place,) = re.findall(r'data-end="the capabilities" data-place="([^"]+)"', page)
    assert f'id="{place}"' in page
    assert page.index(f'id="{place}"') < page.index("Your decision")


def test_whoever_paused_a_thread_is_shown_it_paused_at_once(served: Served) -> None:
    """The page after a form, and what a program asks next, do not wait for the next look."""
    served.scene.ask()
    served.seen()
    path = f"/api/v1/threads/{_thread(served)}"
    with served.client("olga") as olga:
        for action, state in (("pause", "paused"), ("unpause", "waits for approval")) * 3:
            expect = olga.get(path).json()["expect"]
            olga.post(f"{path}/{action}", json={"reason": "odd", "expect": expect})

            assert olga.get(path).json()["state"] == state


@pytest.mark.parametrize("path", ["/sign-in", "/enrol"])
def test_who_has_no_scripts_is_told_that_they_are_needed(served: Served, path: str) -> None:
    """A passkey and a link need one; a button that does nothing says nothing."""
    with served.client() as client:
        assert "<noscript>" in client.get(path).text


def test_events_are_not_kept_back_by_a_proxy(served: Served) -> None:
    """Also by one of nginx that nobody told not to."""
    with served.client("vera") as vera, vera.stream("GET", "/live") as answer:
        assert answer.headers["x-accel-buffering"] == "no"


def _refusal(served: Served, request: str) -> tuple[int, str]:
    """How the page for breaking the glass refuses a request."""
    with served.client("olga", accept="application/json") as olga:
        answer = olga.get(f"/requests/{request}/break-glass")
    return answer.status_code, answer.json()["error"]["code"]


def test_the_glass_is_broken_for_what_was_shown(served: Served) -> None:
    """The page has all that the request's own page has: question, worlds and statement."""
    request = served.scene.ask(world=WIDER)
    with served.client("olga") as olga:
        whole, glass = (
            olga.get(f"/requests/{request}{path}").text for path in ("", "/break-glass")
        )
    shown = [part.partition("</section>")[0] for part in whole.split('aria-label="')[1:]]

    assert "42 EUR to ACME?" in glass
    assert "tool shell" in glass
    assert sum(part in glass for part in shown if "<h2>" in part) > 3


def test_the_glass_is_not_broken_for_a_request_that_lies(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it approved: the page is refused, and a form of a page from before; it is denied."""
    for number, name in enumerate(("olga", "ann"), start=1):
        passkey = Authenticator(number=number, origin=served.origin).passkey
        served.scene.admin.keys.add(name, passkey=passkey)
    request = served.scene.ask()
    path = f"/requests/{request}"
    with served.client("olga") as olga, served.client("ann") as ann:
        glass = {"ticket": _ticket(olga.get(f"{path}/break-glass").text, "answer"), "reason": "x"}
        word = {"ticket": _ticket(ann.get(path).text, "answer"), "reason": "x"}

        def lies(*_: object) -> None:
            raise NotTrusted("request: expected the world of its checkpoint, found another")

        monkeypatch.setattr("sealpoint.gate._operator_actions.OperatorActions.compare", lies)
        path = f"{path}/answer/begin"
        broken = olga.post(path, json={"verdict": "break-glass", **glass})
        approved = ann.post(path, json={"verdict": "approve", **word})
        denied = ann.post(path, json={"verdict": "deny", **word})

    assert _refusal(served, request) == (409, "not-trusted")
    assert (broken.status_code, approved.status_code) == (409, 409)
    assert denied.status_code == 200, denied.text


def test_the_glass_is_broken_for_nothing_that_is_closed_or_no_resume(served: Served) -> None:
    """Refused before anybody touches a passkey, as the command line refuses it."""
    closed = served.scene.ask()
    with served.scene.open("ann") as store:
        store.deny(closed, reason="not this one")

    assert _refusal(served, closed) == (409, "request-closed")
    assert _refusal(served, _proposed(served)) == (400, "usage")


def test_a_page_that_asks_by_itself_pushes_out_no_form(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it does, what another page offers can be done, and what it offers itself."""
    monkeypatch.setattr(_sessions, "_TICKETS_MAX", 5)
    served.scene.ask()
    served.seen()
    path = f"/threads/{_thread(served)}"
    with served.client("olga") as olga:
        form = {"ticket": _ticket(olga.get(path).text, "pause"), "reason": "it looks odd"}
        *_, polled = (olga.get("/health", headers={"hx-request": "true"}).text for _ in range(8))
        verified = olga.post("/health/verify", data={"ticket": _ticket(polled, "health/verify")})
        paused = olga.post(f"{path}/pause", data=form)

    assert (verified.status_code, paused.status_code) == (303, 303)


def test_who_asked_is_told_who_can_approve(served: Served) -> None:
    """The one in whose name it is asked, whoever cannot, and whoever has."""
    request = served.scene.ask()
    with served.scene.open("ann") as store:
        store.approve(request, reason="fine")
    served.seen()
    told = {}
    for person in ("owner", "vera", "ann", "bob"):
        with served.client(person) as client:
            told[person] = client.get(f"/requests/{request}").text

    way = f"/sign-in?to=/requests/{request}"
    assert [person for person in told if way in told[person]] == ["owner", "vera", "ann"]
    assert all(
        'Who can approve it: <strong class="wide">bob</strong>' in told[each]
        for each in ("owner", "vera", "ann")
    )
    assert "asked for in your name" in told["owner"]


def test_what_hooks_were_never_told_is_counted(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too much waited for one that is down: people, and programs, see that something is missing."""
    monkeypatch.setattr(_outbox, "WAITING_MAX", 3)
    secret = tmp_path / "desk.secret"
    secret.touch(mode=0o600)
    secret.write_bytes(b64encode(bytes(32)))
    hook = HookSettings(name="desk", url="http://127.0.0.1:9/", secret_file=str(secret))
    scene.settings = {"hooks": (hook,)}
    scene.ask()
    with scene.serving() as served, served.client("vera") as vera:
        (before,) = vera.get("/api/v1/health").json()["hooks"]
        until(lambda: served.console.desk.notifier._begun)
        with scene.open("operator") as store:
            for _ in range(3):
                store.thread("invoice-17").pause("a look")
                store.thread("invoice-17").unpause("fine")
        until(lambda: vera.get("/api/v1/health").json()["hooks"][0]["dropped"] == 3)
        (told,) = vera.get("/api/v1/health").json()["hooks"]
        page = vera.get("/health").text

    assert (before["dropped"], before["waiting"]) == (0, 0)
    assert (told["name"], told["waiting"], told["delivered"]) == ("desk", 3, 0)
    assert "3 events were given up, and desk never receives them." in page


def test_the_gate_is_asked_as_a_request_asks(served: Served) -> None:
    """With its world and its answer, of which what was saved knows nothing."""
    request = served.scene.ask(world=WIDER)
    served.seen()
    path = f"/threads/{_thread(served)}/explain"
    with served.client("vera") as vera:
        offered = vera.get(path).text
        saved = vera.get(path, params={"as": "worker"}).text
        asked = vera.get(path, params={"as": "worker", "world": request}).text
        other = vera.get(path, params={"as": "worker", "world": "0" * 64})
        nobody = vera.get(path, params={"as": "ann"})

    assert f"as request {request[:12]} asks" in offered
    assert "no answer is given" in saved
    assert "<td>tools</td>" in asked
    assert "an answer is given to a pending question" in asked
    assert "expected one that the page offers" in other.text
    assert nobody.status_code == 400


def test_the_audit_says_what_its_export_proves(served: Served) -> None:
    """Nothing elsewhere: that is what a bundle is for."""
    with served.client("vera") as vera:
        page = vera.get("/audit").text

    assert "is signed by nobody" in page
    assert "sealpoint verify-bundle FILE --trust PIN" in page


def test_the_feed_says_who_recorded_an_answer_and_not_that_they_gave_it(served: Served) -> None:
    """The console records what people sign; it approves nothing."""
    request = served.scene.ask()
    with served.scene.open("ann") as ann, served.scene.open("operator") as console:
        console.relay(ann.attest(request, Verdict.APPROVE, reason="fine"))
    served.seen()
    with served.client("vera") as vera:
        page = vera.get("/").text

    assert "Approved, recorded by operator" in page


def test_a_console_that_has_just_begun_does_not_say_that_nothing_is_there(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists say that the store is being read, and a link to a thread is to be tried again."""
    unread = dataclasses.replace(
        served.console.desk.watch.state, refreshed=None, done=3, total=10, complete=False
    )
    monkeypatch.setattr(StoreWatch, "state", property(lambda _: unread))
    with served.client("vera") as vera:
        pages = [vera.get(path).text for path in ("/", "/requests")]
        thread = vera.get(f"/threads/{'ab' * 16}")
        told = vera.get(f"/api/v1/threads/{'ab' * 16}")

    for page in pages:
        assert "The store is being read: 3 of 10 threads so far." in page
        assert "There is no thread yet" not in page
        assert "Nothing waits for approval" not in page
    assert (thread.status_code, told.status_code) == (503, 503)
    assert told.json()["error"]["code"] == "overloaded"
    assert told.headers["retry-after"]


def test_threads_that_belong_to_another_are_folded(served: Served) -> None:
    """A part keeps one for each start; one that waits for people, and a search, show them."""
    with served.scene.open() as store:
        for name in ("gateway", "gateway/acts/3", "gateway/acts/9", "invoice/7"):
            store.thread(name).save({"n": 1})
    served.scene.ask("gateway/approvals/a-1")
    served.seen()
    with served.client("olga") as client:
        folded, shown, found = (client.get(path).text for path in ("/", "/?below=1", "/?q=acts"))

    for name in ("gateway", "invoice/7", "gateway/approvals/a-1"):
        assert f"<strong>{name}</strong>" in folded
    assert "gateway/acts" not in folded.partition("Just now")[0]
    assert "Show 2 more that belong to these" in folded
    assert "<strong>gateway/acts/3</strong>" in shown
    assert "<strong>gateway/acts/9</strong>" in found
    assert 'id="folded"' not in shown + found
