# SPDX-License-Identifier: Apache-2.0
"""A person at a real browser, with an authenticator of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

from sealpoint.signing import Passkey
from tests.console.scene import ROLES, Served

_AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""


@dataclass
class Person:
    """Somebody at a browser; whatever the browser complains about is kept."""

    name: str
    served: Served
    context: BrowserContext
    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    authenticator: tuple[Any, str] | None = None

    def open(self, path: str) -> Page:
        """Go to a page."""
        self.page.goto(f"{self.served.origin}{path}")
        return self.page

    def sign_in(self) -> "Person":
        """By a link from the terminal."""
        self.page.goto(self.served.console.sign_in_link(self.name))
        self.page.get_by_role("button", name=f"Sign in as {self.name}").click()
        self.page.wait_for_url(f"{self.served.origin}/")
        return self

    def enrol(self) -> "Person":
        """Make a passkey in the browser, and have it added to the roster."""
        page = self.open("/enrol")
        page.get_by_label("Your name in the roster").fill(self.name)
        page.get_by_role("button", name="Make a passkey").click()
        return self.have_it_added()

    def have_it_added(self) -> "Person":
        """Have the passkey that a page shows added to the roster."""
        text = self.page.locator("[data-enrolment]")
        self.page.locator("[data-enrolled]:not([hidden])").wait_for()
        passkey = Passkey.parse((text.text_content() or "").encode())
        self.served.scene.admin.keys.add(
            self.name,
            person=self.name,
            roles=ROLES[self.name],
            namespaces=["*"],
            break_glass=self.name == "olga",
            passkey=passkey,
        )
        return self

    def use_passkey(self) -> "Person":
        """Sign in with it."""
        self.open("/sign-in").get_by_role("button", name="Use a passkey").click()
        self.page.wait_for_url(f"{self.served.origin}/")
        return self

    def violations(self) -> list[str]:
        """What the page's own policy has stopped."""
        found: list[str] = self.page.evaluate("window.violations || []")
        return found


@contextmanager
def person_at(browser: Browser, served: Served, name: str, **options: Any) -> Iterator[Person]:
    """Give somebody a browser window, an authenticator and nothing else."""
    options = {"viewport": {"width": 1280, "height": 900}, **options}
    context = browser.new_context(**options)
    context.add_init_script(_WATCH)
    page = context.new_page()
    page.set_default_timeout(30_000)
    person = Person(name, served, context, page)
    page.on("console", lambda message: person.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: person.complaints.append(f"error: {error}"))
    page.on("request", lambda request: person.requests.append(request.url))
    page.on("dialog", lambda dialog: person.complaints.append(f"dialog: {dialog.message}"))
    devtools = context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    made = devtools.send("WebAuthn.addVirtualAuthenticator", {"options": _AUTHENTICATOR})
    person.authenticator = (devtools, made["authenticatorId"])
    try:
        yield person
    finally:
        context.close()
