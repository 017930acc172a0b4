# SPDX-License-Identifier: Apache-2.0
"""The story of the gate, told by people at real browsers."""

from contextlib import ExitStack

from playwright.sync_api import Browser, expect

from tests.console.person import person_at
from tests.console.scene import Served, until


def test_three_people_in_three_browsers_bring_a_run_to_its_approved_end(
    served: Served, browser: Browser
) -> None:
    """An operator pauses and lets go on, two approvers sign with passkeys, the worker goes on."""
    scene = served.scene
    with ExitStack() as stack:
        olga, ann, bob = (
            stack.enter_context(person_at(browser, served, name)) for name in ("olga", "ann", "bob")
        )
        for person in (ann, bob):
            person.enrol().use_passkey()
        olga.sign_in()
        request = scene.ask()
        assert not scene.goes_on()

        # The operator sees it without loading the page again, and pauses the thread.
        expect(olga.page.get_by_role("link", name="invoice-17").first).to_be_visible()
        olga.page.get_by_role("link", name="invoice-17").first.click()
        olga.page.get_by_text("Pause", exact=True).first.click()
        olga.page.get_by_role("textbox", name="Why").first.fill("the supplier looks odd")
        olga.page.get_by_role("button", name="Pause").click()
        expect(olga.page.get_by_text("Let it continue").first).to_be_visible()

        # Two approvers read exactly what would run, and sign it.
        for person, count in (
            (ann, "1 of 2 approvals, by ann"),
            (bob, "2 of 2 approvals, by ann, bob"),
        ):
            page = person.open("/requests")
            page.get_by_role("link", name="invoice-17").click()
            expect(page.get_by_text("42 EUR to ACME?")).to_be_visible()
            page.get_by_text("Digests and internals").click()
            expect(page.get_by_text(request, exact=True).last).to_be_visible()
            page.get_by_role("textbox", name="Why").fill("I spoke to the supplier")
            page.get_by_role("button", name="Approve").click()
            expect(page.get_by_text(count).first).to_be_visible()
        assert not scene.goes_on(), "it is paused"

        olga.page.reload()
        olga.page.get_by_text("Let it continue").first.click()
        olga.page.get_by_role("textbox", name="Why").first.fill("all is well")
        olga.page.get_by_role("button", name="Let it continue").click()
        expect(olga.page.get_by_text("Pause", exact=True).first).to_be_visible()
        until(scene.goes_on)

        for person in (olga, ann, bob):
            assert person.complaints == []
            assert person.violations() == []
            assert all(url.startswith(served.origin) for url in person.requests)
    with scene.open() as store:
        trail = [(each.kind, each.people) for each in store.audit(thread="invoice-17")]
        assert [kind for kind, _ in trail].count("approval") == 2
        assert store.verify().ok


def test_what_a_proxy_says_for_a_console_that_is_down_is_no_refusal(
    served: Served, browser: Browser
) -> None:
    """Who approves meanwhile is told that nobody answered, and tries again when it is back."""
    request = served.scene.ask()
    with person_at(browser, served, "ann") as ann:
        ann.enrol().use_passkey()
        page = ann.open(f"/requests/{request}")
        page.get_by_role("textbox", name="Why").fill("I spoke to the supplier")
        page.route("**/answer", lambda route: route.fulfill(status=502, body="Bad Gateway"))
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("alert")).to_contain_text("The console does not answer (502).")
        page.unroute("**/answer")
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("1 of 2 approvals").first).to_be_visible()
