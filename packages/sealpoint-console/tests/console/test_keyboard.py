# SPDX-License-Identifier: Apache-2.0
"""Everything that can be done at the console, by keyboard alone, in a real browser.

One console and one browser serve all of it, and each test has a thread of its own. After each
action the focus is on what says what was done.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from sealpoint.gate import Status
from sealpoint_console._http_protection import Allowance
from sealpoint_console.settings import HookSettings
from tests.console.conftest import chromium
from tests.console.keyboard import Keyboard
from tests.console.person import Person, person_at
from tests.console.scene import WIDER, WORLD, Scene, Served, until


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the hook of a worker writes what it is told."""
    return tmp_path_factory.mktemp("keyboard") / "told.json"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, told: Path) -> Iterator[Served]:
    """A console, and a hook that tells a worker to resume."""
    program = f"import sys; open({str(told)!r}, 'a').write(sys.stdin.read() + '\\n')"
    hook = HookSettings(
        name="worker", command=(sys.executable, "-c", program), events=("resume-wanted",)
    )
    scene = Scene(tmp_path_factory.mktemp("scene") / "scene", settings={"hooks": (hook,)})
    with scene.make().serving() as served:
        served.console.desk.sign_ins = Allowance(burst=1000, a_minute=1000)
        yield served


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    """The browser of all tests here; no test here has an event loop of its own."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def people(window: Browser, served: Served) -> Iterator[dict[str, Person]]:
    """An operator and two approvers, signed in, each with a passkey."""
    with ExitStack() as stack:
        found = {}
        for name in ("olga", "ann", "bob"):
            person = stack.enter_context(person_at(window, served, name))
            found[name] = person.enrol().use_passkey()
        yield found


@pytest.fixture
def olga(people: dict[str, Person]) -> Person:
    """The operator."""
    return people["olga"]


def _thread(served: Served, name: str) -> str:
    """The page of a thread, once the console knows it."""
    watch = served.console.desk.watch
    until(lambda: name in {each.name for each in watch.page(limit=100).threads})
    return f"/threads/{watch.thread(name).id}"


def _saved(served: Served, name: str) -> str:
    """The page of a new thread with a few checkpoints."""
    with served.scene.open() as store:
        for turn in range(3):
            state = {"turn": turn, "api_key": f"hunter-{turn}"}
            store.thread(name).save(state, id=f"t{turn}", world=WORLD)
    return _thread(served, name)


def _keys(person: Person, path: str) -> Keyboard:
    person.open(path)
    return Keyboard(person.page)


def _done(keys: Keyboard, words: str) -> None:
    """The page says what was done, and that is where somebody goes on from."""
    expect(keys.page.get_by_role("status").filter(has_text=words).first).to_be_focused()
    focus = keys.focus()
    assert focus is not None
    assert focus["isSeen"]
    assert focus["isInView"]


# ---------------------------------------------------------------------- coming and going


def test_signing_in_by_a_link_is_one_key(window: Browser, served: Served) -> None:
    """The page says who one would be, on the button that has the focus."""
    with person_at(window, served, "vera") as vera:
        vera.page.goto(served.console.sign_in_link("vera"))
        button = vera.page.get_by_role("button", name="Sign in as vera")
        expect(button).to_be_focused()
        assert served.origin in vera.page.url
        assert "link=" not in vera.page.url
        assert not vera.context.cookies(), "nobody is signed in by following a link"
        Keyboard(vera.page).press("Enter")
        vera.page.wait_for_url(f"{served.origin}/")


def test_signing_in_by_passkey_and_out(window: Browser, served: Served) -> None:
    """Make a passkey, sign in with it, and sign out."""
    with person_at(window, served, "vera") as vera:
        keys = _keys(vera, "/sign-in").follow("Make one")
        keys.to("input", "Your name").type("vera").choose("button", "Make a passkey")
        expect(vera.page.get_by_role("heading", name="Have it added")).to_be_focused()
        vera.have_it_added()
        keys = _keys(vera, "/sign-in").choose("button", "Use a passkey")
        vera.page.wait_for_url(f"{served.origin}/")
        keys.choose("button", "Sign out")
        vera.page.wait_for_url("**/sign-in")


def test_the_first_stop_leads_past_the_navigation(olga: Person) -> None:
    """After it, Tab goes on in the content, which begins with the search."""
    keys = _keys(olga, "/").press("Tab")
    focus = keys.focus()
    assert focus is not None
    assert focus["name"] == "Skip to the content"
    assert focus["isInView"]
    keys.press("Enter", "Tab")

    focus = keys.focus()
    assert focus is not None
    assert focus["isInMain"]
    assert focus["name"] == "Search threads by name or owner"


# ---------------------------------------------------------------------- threads


def test_a_thread_is_found_and_opened(olga: Person, served: Served) -> None:
    """Type a part of its name, Enter, and go to it."""
    _saved(served, "found-1")
    keys = _keys(olga, "/").to("input", "Search").type("found-").press("Enter")
    olga.page.wait_for_url("**q=found-**")
    keys.follow("found-1")

    expect(olga.page.get_by_role("heading", name="found-1")).to_be_visible()


def test_a_thread_is_paused_and_let_go_on(olga: Person, served: Served) -> None:
    """Each with its reason."""
    keys = _keys(olga, _saved(served, "paused-1"))
    keys.open_and_give("Pause", "it looks odd", "Pause")
    _done(keys, "Paused.")
    expect(olga.page.get_by_text("it looks odd").first).to_be_visible()
    keys.open_and_give("Let it continue", "all is well", "Let it continue")

    _done(keys, "It may continue.")
    with served.scene.open() as store:
        assert not store.thread("paused-1").paused


def test_a_worker_is_told_to_resume(olga: Person, served: Served, told: Path) -> None:
    """The hook hears of it."""
    keys = _keys(olga, _saved(served, "resumed-1"))
    keys.choose("summary", "Tell its worker").choose("button", "Tell its worker")

    _done(keys, "Its worker is notified.")
    until(told.exists)
    until(lambda: "resumed-1" in told.read_text())
    assert json.loads(told.read_text().splitlines()[0])["kind"] == "resume-wanted"


def test_a_thread_is_handed_off(olga: Person, served: Served) -> None:
    """What others have to approve leads to the request."""
    keys = _keys(olga, _saved(served, "handed-1")).choose("summary", "Hand it off")
    keys.to("input", "Next owner").type("worker").press("Escape")
    keys.to("textarea", "Why").type("it is on holiday").choose("button", "Ask for the handoff")

    _done(keys, "Asked for.")
    expect(olga.page.get_by_role("heading", name="Hand handed-1 to worker")).to_be_visible()


def test_two_states_are_compared(olga: Person, served: Served) -> None:
    """The two newest are chosen already; an arrow chooses another."""
    keys = _keys(olga, _saved(served, "compared-1")).choose("button", "Compare")

    expect(olga.page.get_by_role("heading", name="From entry 3 to entry 4")).to_be_visible()
    olga.page.go_back()
    keys.to("input", "from").press("ArrowDown").choose("button", "Compare")
    expect(olga.page.get_by_role("heading", name="From entry 2 to entry 4")).to_be_visible()


def test_secrets_are_shown_and_hidden(olga: Person, served: Served) -> None:
    """Only when somebody asks, and until they ask again."""
    keys = _keys(olga, f"{_saved(served, 'masked-1')}/entries/4")
    secret = olga.page.get_by_text("hunter-2")
    expect(secret).to_have_count(0)
    keys.follow("Show what is hidden")
    expect(secret.first).to_be_visible()
    keys.follow("Hide secrets")

    expect(secret).to_have_count(0)


def test_what_the_gate_would_say_is_asked(olga: Person, served: Served) -> None:
    """The answer is on the page that follows."""
    keys = _keys(olga, _saved(served, "asked-1")).follow("What would the gate say")
    keys.choose("button", "Ask the gate")

    expect(olga.page.get_by_role("heading", name="Its answer")).to_be_visible()


# ---------------------------------------------------------------------- requests


def _asked(served: Served, name: str, *, wider: bool = False) -> str:
    request = served.scene.ask(name, world=WIDER if wider else WORLD)
    _thread(served, name)
    watch = served.console.desk.watch
    until(lambda: request in {each.id for each in watch.requests().requests})
    return request


def test_a_request_is_approved_with_a_passkey(people: dict[str, Person], served: Served) -> None:
    """From the list to the request, and its answer."""
    request, ann = _asked(served, "approved-1"), people["ann"]
    keys = _keys(ann, "/requests").follow("approved-1")
    expect(ann.page.get_by_role("heading", name="Resume approved-1")).to_be_visible()
    keys.to("textarea", "Why").type("as agreed").choose("button", "Approve")

    _done(keys, "Your approval is on record.")
    with served.scene.open() as store:
        assert store.request(request).approved_by == ("ann",)


def test_a_request_is_denied_with_a_passkey(people: dict[str, Person], served: Served) -> None:
    """The other button, behind the first."""
    request, bob = _asked(served, "denied-1"), people["bob"]
    keys = _keys(bob, f"/requests/{request}")
    keys.to("textarea", "Why").type("it is wrong").choose("button", "Deny for good")

    _done(keys, "Your denial is on record")
    with served.scene.open() as store:
        assert store.request(request).status is Status.DENIED


def test_where_the_passkey_fails_the_button_keeps_the_focus(
    people: dict[str, Person], served: Served
) -> None:
    """What went wrong is told beside it, and Enter tries again."""
    request, ann = _asked(served, "failed-1"), people["ann"]
    assert ann.authenticator is not None
    devtools, which = ann.authenticator
    keys = _keys(ann, f"/requests/{request}").to("textarea", "Why").type("as agreed")
    verified = {"authenticatorId": which, "isUserVerified": False}
    devtools.send("WebAuthn.setUserVerified", verified)
    try:
        keys.choose("button", "Approve")
        expect(ann.page.get_by_role("alert")).to_contain_text("The passkey was not used")
        expect(ann.page.get_by_role("button", name="Approve")).to_be_focused()
    finally:
        devtools.send("WebAuthn.setUserVerified", verified | {"isUserVerified": True})
    keys.press("Enter")

    _done(keys, "Your approval is on record.")


def test_the_glass_is_broken_on_a_page_of_its_own(olga: Person, served: Served) -> None:
    """A link leads there, and the way back is beside the button."""
    request = _asked(served, "broken-1")
    keys = _keys(olga, f"/requests/{request}").follow("Break the glass")
    keys.to("textarea", "Why it cannot wait").type("the plant floods")
    keys.choose("button", "Break the glass")

    _done(keys, "The glass is broken.")
    with served.scene.open() as store:
        assert store.request(request).broken_glass


def test_a_rollout_is_proposed_approved_and_revoked(
    people: dict[str, Person], served: Served, olga: Person
) -> None:
    """By an operator, by two approvers, and by the operator again."""
    request = _asked(served, "rolled-1", wider=True)
    keys = _keys(olga, f"/requests/{request}")
    keys.open_and_give("Propose a rollout", "the new release", "Propose it")
    _done(keys, "Proposed.")
    rollout = olga.page.url.rpartition("/")[2]
    for name in ("ann", "bob"):
        other = _keys(people[name], "/rollouts").follow("the new release")
        other.to("textarea", "Why").type("as tested").choose("button", "Approve")
        _done(other, "Your approval is on record.")
    with served.scene.open() as store:
        assert store.rollouts.get(rollout).status is Status.APPROVED
    keys = _keys(olga, "/rollouts").follow("the new release")
    expect(olga.page.get_by_text("Holds").first).to_be_visible()
    keys.open_and_give("Revoke it", "the tool misbehaves", "Revoke for good")

    _done(keys, "Revoked")
    with served.scene.open() as store:
        assert store.rollouts.get(rollout).status is Status.DENIED


# ---------------------------------------------------------------------- the store


def test_the_audit_is_filtered_and_taken_along(olga: Person, served: Served) -> None:
    """Letters choose a kind; what is exported is what is shown."""
    _saved(served, "audited-1")
    keys = _keys(olga, "/audit").to("input", "Thread").type("audited-1")
    keys.to("select", "Kind").type("checkpoint").choose("button", "Show")
    expect(olga.page.get_by_role("row")).to_have_count(4)
    with olga.page.expect_download() as download:
        keys.choose("a", "Export as JSON")
    records = json.loads(download.value.path().read_text())["records"]

    assert {(each["thread"], each["kind"]) for each in records} == {("audited-1", "checkpoint")}
    assert len(records) == 3


def test_everything_is_verified_on_request(olga: Person) -> None:
    """The page follows it by itself, and the focus stays."""
    keys = _keys(olga, "/health").choose("button", "Verify everything")

    _done(keys, "The verification has begun.")
    expect(olga.page.get_by_text("entries verified").first).to_be_visible()
    _done(keys, "The verification has begun.")


# ---------------------------------------------------------------------- what moves


@pytest.mark.parametrize("place", ["#threads table", ".feed"])
def test_a_list_that_moves_takes_the_focus_along(olga: Person, served: Served, place: str) -> None:
    """Enter opens what somebody went to, though others came before it meanwhile."""
    name = f"kept-{len(place)}"
    _saved(served, name)
    keys = _keys(olga, "/")
    link = olga.page.locator(place).get_by_role("link", name=name).first
    expect(link).to_be_visible()
    for _ in range(200):
        keys.press("Tab")
        if link.evaluate("it => it === document.activeElement"):
            break
    for number in range(3):
        _saved(served, f"{name}-newer-{number}")
    newer = olga.page.locator(place).get_by_role("link", name=f"{name}-newer-2").first
    expect(newer).to_be_visible()
    focus = keys.focus()
    assert focus is not None
    assert focus["name"] == name
    keys.press("Enter")

    expect(olga.page.get_by_role("heading", name=name, exact=True)).to_be_visible()


def test_an_action_that_fails_says_so_where_the_focus_is(olga: Person, served: Served) -> None:
    """What moved meanwhile is told, and one link leads back to the page."""
    path = _saved(served, "moved-1")
    keys = _keys(olga, path).choose("summary", "Hand it off")
    keys.to("input", "Next owner").type("worker").press("Escape")
    keys.to("textarea", "Why").type("it is on holiday")
    with served.scene.open("operator") as store:
        store.thread("moved-1").pause("it looks odd")
    keys.choose("button", "Ask for the handoff")
    expect(olga.page.get_by_role("heading", name="This was not done")).to_be_visible()
    keys.follow("Back to the page")

    olga.page.wait_for_url(f"**{path}")
