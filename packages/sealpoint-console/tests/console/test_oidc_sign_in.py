# SPDX-License-Identifier: Apache-2.0
"""Sign-in by a provider at the console: who comes in, and every way in which nobody does."""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser
from starlette.responses import JSONResponse, Response

from sealpoint.errors import UsageError
from sealpoint_console._http_protection import Allowance
from sealpoint_console._oidc_sign_in import PENDING_COOKIE, PENDING_S, PendingSignIns
from sealpoint_console._sessions import COOKIE
from sealpoint_console.settings import OidcSettings
from tests.console.person import person_at
from tests.console.provider import (
    CLIENT,
    SECRET,
    Provider,
    Times,
    serving_provider,
)
from tests.console.scene import Scene, Served, until

# ---------------------------------------------------------------------- pending sign-ins


def test_a_sign_in_is_taken_once_in_its_own_browser_within_ten_minutes() -> None:
    """A state alone, a cookie alone, and both once more, are nothing."""
    times = Times()
    pending = PendingSignIns(times.clock)
    flow, browser = pending.begin()
    assert pending.take(flow.state, browser) == flow
    (other, _), (old, old_browser) = pending.begin(), pending.begin()
    times.passed = PENDING_S

    for state, token in (
        (flow.state, browser),
        (other.state, browser),
        (old.state, old_browser),
        ("", ""),
        ("é", "\udc80"),
    ):
        with pytest.raises(UsageError, match="sign-in"):
            pending.take(state, token)


def test_sign_ins_that_nobody_ends_are_forgotten() -> None:
    """Whoever begins many takes up a bounded place."""
    pending = PendingSignIns()
    flow, browser = pending.begin()
    for _ in range(1000):
        pending.begin()

    with pytest.raises(UsageError):
        pending.take(flow.state, browser)


# ---------------------------------------------------------------------- in the console


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Provider]]:
    """A console of a team whose people a provider knows."""
    folder = tmp_path_factory.mktemp("oidc")
    secret = folder / "secret"
    secret.touch(mode=0o600)
    secret.write_text(SECRET)
    with serving_provider() as provider:
        settings = OidcSettings(
            issuer=provider.issuer, client_id=CLIENT, client_secret_file=str(secret)
        )
        scene = Scene(folder / "scene", settings={"oidc": settings}).make()
        with scene.serving() as served:
            yield served, provider


@dataclass
class Window:
    """A browser without a screen, at the console."""

    served: Served
    provider: Provider
    client: httpx.Client
    cookies: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, url: str, **headers: str) -> httpx.Response:
        """Send cookies and keep them, as a browser does on localhost, also where TLS is not."""
        told = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = self.client.request(method, url, headers={**headers, "cookie": told})
        for line in answer.headers.get_list("set-cookie"):
            name, _, rest = line.partition("=")
            if "Max-Age=0" in rest:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = rest.partition(";")[0]
        return answer

    def begin(self) -> dict[str, str]:
        """Ask to sign in; gives what the browser is to tell the provider."""
        answer = self.ask("POST", "/sign-in/oidc")
        assert answer.status_code == 200, answer.text
        return dict(parse_qsl(urlsplit(answer.headers["refresh"]).query))

    def back(self, url: str) -> httpx.Response:
        """Come back from the provider, as a link from another site is followed."""
        return self.ask(
            "GET",
            url,
            **{
                "sec-fetch-site": "cross-site",
                "sec-fetch-mode": "navigate",
                "sec-fetch-dest": "document",
            },
        )

    def sign_in(self) -> httpx.Response:
        """All of it."""
        return self.back(self.provider.authorize(self.begin()))

    @property
    def is_in(self) -> bool:
        """Whether pages are shown."""
        return self.ask("GET", "/people").status_code == 200


@pytest.fixture
def windows(house: tuple[Served, Provider]) -> Iterator[Callable[[], Window]]:
    """Gives out browsers; the provider is honest again at the start of each test."""
    served, provider = house
    # Its keys and what it says of itself are what the console has fetched.
    keys = provider.keys
    provider.reset().keys = keys
    served.console.desk.sign_ins = Allowance(burst=20, a_minute=20)
    opened: list[Window] = []

    def make() -> Window:
        opened.append(Window(served, provider, served.client()))
        return opened[-1]

    yield make
    for each in opened:
        each.client.close()


def test_somebody_whom_the_roster_knows_comes_in(windows: Callable[[], Window]) -> None:
    """They are who the provider says, have a session, and the cookie of the way there is gone."""
    window = windows()
    answer = window.sign_in()

    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert window.is_in
    assert "ann" in window.ask("GET", "/people").text
    kept, dropped = sorted(answer.headers.get_list("set-cookie"), key=len, reverse=True)
    for line, name in ((kept, COOKIE), (dropped, PENDING_COOKIE)):
        assert line.startswith(f"{name}=")
        for word in ("Path=/", "Secure", "HttpOnly", "SameSite=lax"):
            assert word in line
        assert "Domain" not in line
    assert "Max-Age=0" in dropped


def test_the_way_to_the_provider_is_a_page_that_goes_on_by_itself(
    windows: Callable[[], Window],
) -> None:
    """It keeps the policy that forms lead nowhere but to our own pages."""
    answer = windows().client.post("/sign-in/oidc")

    assert "form-action 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["refresh"].startswith("0; url=http://localhost:")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_somebody_whom_the_roster_does_not_know_stays_outside(
    windows: Callable[[], Window],
) -> None:
    """The page says so, what to do, and leads back."""
    window = windows()
    window.provider.person["email"] = "<b>mallory</b>"
    answer = window.sign_in()

    assert answer.status_code == 403
    assert "nobody called" in answer.text
    assert "<b>mallory" not in answer.text
    assert "sealpoint keys add" in answer.text
    assert 'href="/sign-in"' in answer.text
    assert not window.is_in


def test_a_way_back_works_once(windows: Callable[[], Window]) -> None:
    """Neither again, nor with a new code, nor after signing out."""
    window = windows()
    asked = window.begin()
    pending = window.cookies[PENDING_COOKIE]
    url = window.provider.authorize(asked)
    assert window.back(url).status_code == 303
    window.cookies = {PENDING_COOKIE: pending}

    assert window.back(url).status_code == 400
    window.cookies = {PENDING_COOKIE: pending}
    assert window.back(window.provider.authorize(asked)).status_code == 400
    assert len(window.provider.redeemed) == 1
    assert not window.is_in


def test_nobody_is_signed_in_by_the_link_of_somebody_else(windows: Callable[[], Window]) -> None:
    """An attacker's code and state end in the attacker's browser, or nowhere."""
    attacker, victim, idle = windows(), windows(), windows()
    victim.begin()
    url = attacker.provider.authorize(attacker.begin())

    assert victim.back(url).status_code == 400
    assert idle.back(url).status_code == 400
    assert attacker.provider.redeemed == []
    assert not victim.is_in
    assert not idle.is_in


def test_a_code_that_is_swapped_into_another_sign_in_is_refused(
    windows: Callable[[], Window],
) -> None:
    """The state is the victim's own, and the code the attacker's: PKCE tells them apart."""
    attacker, victim = windows(), windows()
    stolen = attacker.provider.authorize(attacker.begin())
    own = victim.provider.authorize(victim.begin())
    mixed = dict(parse_qsl(urlsplit(own).query)) | {
        "code": parse_qs(urlsplit(stolen).query)["code"][0]
    }

    answer = victim.back(f"/sign-in/oidc/callback?{urlencode(mixed)}")
    assert answer.status_code == 403
    assert not victim.is_in


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda asked: {**asked, "state": "other"}, 400),
        (lambda asked: {**asked, "state": ""}, 400),
        (lambda asked: {k: v for k, v in asked.items() if k != "state"}, 400),
        (lambda asked: {k: v for k, v in asked.items() if k != "code"}, 400),
        (lambda asked: {k: v for k, v in asked.items() if k != "iss"}, 403),
        (lambda asked: {**asked, "iss": "https://evil.example"}, 403),
        (lambda asked: {**asked, "code": "made-up"}, 403),
        (lambda asked: {**asked, "code": ["a", "b"]}, 400),
        (lambda asked: {**asked, "state": [asked["state"]] * 2}, 400),
        (lambda asked: {"state": asked["state"], "error": "access_denied"}, 403),
        (lambda asked: {**asked, "error": "access_denied"}, 403),
    ],
)
def test_a_way_back_that_was_changed_signs_nobody_in(
    windows: Callable[[], Window], change: Callable[[dict[str, Any]], dict[str, Any]], status: int
) -> None:
    """Each parameter is there once and as it was given."""
    window = windows()
    back = window.provider.authorize(window.begin())
    asked = change(dict(parse_qsl(urlsplit(back).query)))

    answer = window.back(f"/sign-in/oidc/callback?{urlencode(asked, doseq=True)}")
    assert answer.status_code == status
    assert "You are not signed in" in answer.text
    assert not window.is_in


def test_what_an_address_says_is_not_repeated_on_the_page(windows: Callable[[], Window]) -> None:
    """Nobody puts words into the console's mouth by a link."""
    window = windows()
    state = window.begin()["state"]
    words = {"state": state, "error": "Call 555-1234", "error_description": "and pay"}
    answer = window.back(f"/sign-in/oidc/callback?{urlencode(words)}")

    assert answer.status_code == 403
    assert "555" not in answer.text
    assert "and pay" not in answer.text
    assert state not in answer.text


def test_another_site_cannot_begin_a_sign_in(windows: Callable[[], Window]) -> None:
    """A form elsewhere is refused before anything is begun."""
    window = windows()
    for headers in (
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"},
    ):
        answer = window.client.post("/sign-in/oidc", headers=headers)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    assert window.client.get("/sign-in/oidc").status_code == 405


def test_one_address_signs_in_only_so_often(windows: Callable[[], Window]) -> None:
    """Each is counted when it begins, and may come back then."""
    window = windows()
    url = window.provider.authorize(window.begin())
    others = windows().client
    answers = [others.post("/sign-in/oidc") for _ in range(20)]

    assert [each.status_code for each in answers] == [200] * 19 + [429]
    assert answers[19].headers["retry-after"] == "60"
    assert window.back(url).status_code == 303


def test_another_site_cannot_get_in_the_way_of_a_sign_in(windows: Callable[[], Window]) -> None:
    """Links to the address where people come back, by the dozen, neither count nor end one."""
    window = windows()
    url = window.provider.authorize(window.begin())
    lured = {window.back("/sign-in/oidc/callback?state=x").status_code for _ in range(25)}

    assert lured == {400}
    assert window.back(url).status_code == 303
    assert window.is_in


def test_a_slow_provider_keeps_nobody_else_from_their_pages(
    windows: Callable[[], Window],
) -> None:
    """A few wait for it; whoever comes after them is told so at once."""
    waiting = [windows() for _ in range(4)]
    late = windows()
    urls = [each.provider.authorize(each.begin()) for each in (*waiting, late)]
    go_on = threading.Event()

    def answer() -> Response:
        go_on.wait(20)
        return JSONResponse({"error": "invalid_grant"}, 400)

    late.provider.answers["/token"] = answer
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda w=window, u=url: found.append(w.back(u).status_code))
        for window, url in zip(waiting, urls, strict=False)
    ]
    for each in threads:
        each.start()
    try:
        until(lambda: late.provider.asked.count("/token") == len(waiting))
        assert late.back(urls[-1]).status_code == 503
        assert late.ask("GET", "/sign-in").status_code == 200
    finally:
        go_on.set()
        for each in threads:
            each.join()

    assert found == [403] * 4


def test_nothing_secret_is_logged(
    windows: Callable[[], Window], caplog: pytest.LogCaptureFixture
) -> None:
    """Neither what signs in nor what could."""
    window = windows()
    with caplog.at_level(logging.DEBUG):
        asked = window.begin()
        pending = window.cookies[PENDING_COOKIE]
        back = window.provider.authorize(asked)
        assert window.back(back).status_code == 303
    # What this thread logs is the browser's.
    said = "\n".join(
        each.getMessage() for each in caplog.records if each.thread != threading.get_ident()
    )

    assert said
    verifier = window.provider.redeemed[-1]["code_verifier"]
    for secret in (SECRET, verifier, pending, window.cookies[COOKIE]):
        assert secret not in said


def test_a_secret_that_is_lost_is_told_in_the_log_and_not_on_the_page(
    windows: Callable[[], Window], caplog: pytest.LogCaptureFixture
) -> None:
    """Pages before sign-in are for anybody; files of the machine are not."""
    window = windows()
    settings = window.served.console.desk.settings.oidc
    assert settings is not None
    path = Path(settings.client_secret_file)
    moved = path.rename(path.with_suffix(".away"))
    try:
        answer = window.sign_in()
    finally:
        moved.rename(path)

    assert answer.status_code == 503
    assert str(path) not in answer.text
    assert str(path) in caplog.text


def test_a_real_browser_goes_to_the_provider_and_comes_back(
    windows: Callable[[], Window], browser: Browser
) -> None:
    """Nothing of the pages' own policy is in the way, and no form leads elsewhere."""
    window = windows()
    with person_at(browser, window.served, "ann") as ann:
        page = ann.open("/sign-in")
        page.get_by_role("button", name="Go to").click()
        page.wait_for_url(f"{window.served.origin}/")

        assert ann.complaints == []
        assert ann.violations() == []
        cookies = {each["name"]: each for each in ann.context.cookies()}
        assert set(cookies) == {COOKIE}
        assert cookies[COOKIE]["httpOnly"]
