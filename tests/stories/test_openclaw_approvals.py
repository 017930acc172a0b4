# SPDX-License-Identifier: Apache-2.0
"""An approval of OpenClaw, given by people at real browsers with passkeys.

A gateway of our own speaks OpenClaw's protocol over a real WebSocket, and runs what it is allowed.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from sealpoint_openclaw import Guard
from sealpoint_openclaw import _operator_link as link_module
from sealpoint_openclaw._inventory import KEY_BYTES, Digests
from sealpoint_openclaw._operator_link import OperatorLink
from tests.console.conftest import chromium
from tests.console.person import Person, person_at
from tests.console.scene import Scene, Served, until
from tests.effort import in_soak
from tests.openclaw.recorded_folder import Recorded
from tests.openclaw.test_operator_link import Gateway

_THREAD = "openclaw/approvals/a-1"
_EXEC = {"command": "rm -r reports", "cwd": "/home/ann/workspace", "agentId": "main"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    """A gateway that waits for an approval of a command."""
    gateway = Gateway()
    gateway.waiting["exec"]["a-1"] = dict(_EXEC)
    yield gateway
    gateway.close()


@contextmanager
def _linked(scene: Scene, gateway: Gateway, folder: Path) -> Iterator[None]:
    """A guard of a recorded folder, whose seals are in the store of the people."""
    recorded = Recorded.of(folder)
    with scene.open() as store:
        digests = Digests(bytes(KEY_BYTES))
        guard = Guard(store.thread, "openclaw", recorded.settings().folder, digests)
        guard.seal_first()
        link = OperatorLink(guard, guard.acts(1), gateway.client, print)
        link.start()
        try:
            yield
        finally:
            link.close()


def _read(person: Person) -> Page:
    """Have a person open the request, and read the command in it."""
    page = person.open("/requests")
    page.get_by_role("link", name=_THREAD).click()
    expect(page.get_by_text("rm -r reports").first).to_be_visible()
    page.get_by_role("textbox", name="Why").fill("the reports are old")
    return page


def _never_approves(page: Page) -> None:
    """Press the button on a page of before, and see that it was not recorded as an approval."""
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert")).to_be_visible()


@pytest.mark.parametrize("case", ["approved", in_soak("late"), in_soak("altered")])
def test_two_people_approve_a_command_in_their_browsers(
    browser: Browser, gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """It runs once. A third answer, a late one, and one about a changed command run nothing."""
    for name in ("_WAIT_SECONDS", "_RECONNECT_SECONDS", "_ASK_SECONDS", "_LIST_SECONDS"):
        monkeypatch.setattr(link_module, name, 0.05)
    scene = Scene(tmp_path / "scene").make()
    with ExitStack() as stack:
        served: Served = stack.enter_context(scene.serving())
        stack.enter_context(_linked(scene, gateway, tmp_path / "openclaw"))
        people = [stack.enter_context(person_at(browser, served, name)) for name in ("ann", "bob")]
        for person in people:
            person.enrol().use_passkey()
        with scene.open() as store:
            until(lambda: store.requests().requests)
        ann, bob = (_read(person) for person in people)
        third = stack.enter_context(_second_window(people[0]))
        ann.get_by_role("button", name="Approve").click()
        expect(ann.get_by_text("1 of 2 approvals").first).to_be_visible()
        assert gateway.resolved == []
        if case == "late":
            gateway.waiting["exec"].clear()
            with scene.open() as store:
                until(lambda: not store.requests().requests)
            _never_approves(bob)
            assert gateway.resolved == []
            return
        if case == "altered":
            gateway.waiting["exec"]["a-1"] = _EXEC | {"command": "rm -r /"}
            until(lambda: gateway.resolved)
            _never_approves(bob)
            assert gateway.resolved == [("exec", "a-1", "deny")]
            return
        bob.get_by_role("button", name="Approve").click()
        expect(bob.get_by_text("Your approval is on record.")).to_be_visible()
        until(lambda: gateway.resolved)
        _never_approves(third)
        with scene.open() as store:
            kinds = [each.kind for each in store.audit(thread=_THREAD)]

        assert kinds.count("approval") == 2
        assert gateway.resolved == [("exec", "a-1", "allow-once")]


@contextmanager
def _second_window(person: Person) -> Iterator[Page]:
    """The same request in another window of a person, who has not answered in it."""
    page = person.context.new_page()
    page.goto(person.page.url)
    page.get_by_role("textbox", name="Why").fill("once more")
    yield page
    page.close()
