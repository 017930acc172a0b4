# SPDX-License-Identifier: Apache-2.0
"""People of a scene who have passkeys, and what their browsers send to the console."""

import base64
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from tests.console.scene import ROLES, Scene, Served
from tests.unit.signing.authenticator import Authenticator


def give_passkey(scene: Scene, name: str, passkey: Authenticator) -> None:
    """Have the root add somebody's passkey to the roster."""
    scene.admin.keys.add(
        name,
        person=name,
        roles=ROLES[name],
        namespaces=["*"],
        break_glass=name == "olga",
        passkey=passkey.passkey,
    )


def answer_to(passkey: Authenticator, challenge: str) -> dict[str, Any]:
    """What a browser sends back when a person has touched their authenticator."""
    made = passkey.get(base64.urlsafe_b64decode(challenge + "=" * (-len(challenge) % 4)))
    parts = {
        "credential": passkey.credential,
        "client_data": made.client_data,
        "authenticator_data": made.authenticator_data,
        "signature": made.signature,
    }
    return {name: base64.urlsafe_b64encode(part).decode() for name, part in parts.items()}


def sign_in(served: Served, passkey: Authenticator) -> httpx.Response:
    """Sign in with a passkey."""
    with served.client() as client:
        begun = client.post("/sign-in/passkey/begin", json={}).json()
        answer = {"ticket": begun["ticket"], **answer_to(passkey, begun["challenge"])}
        return client.post("/sign-in/passkey", json=answer)


def ticket_of(client: httpx.Client, page: str, action: str) -> str:
    """The ticket of a form on a page."""
    text = client.get(page).text
    form = re.search(rf'action="[^"]*/{action}".*?name="ticket" value="([^"]+)"', text, re.DOTALL)
    assert form is not None, f"{page} does not offer {action}"
    return form[1]


def at_once(*presses: Callable[[], httpx.Response]) -> list[httpx.Response]:
    """What several people get who press at the same moment."""
    start, answers = threading.Barrier(len(presses)), dict[int, httpx.Response]()

    def press(number: int) -> None:
        start.wait()
        answers[number] = presses[number]()

    pressing = [threading.Thread(target=press, args=(each,)) for each in range(len(presses))]
    for each in pressing:
        each.start()
    for each in pressing:
        each.join()
    return [answers[each] for each in range(len(presses))]


@dataclass
class Tab:
    """A page of somebody who has a passkey, in a browser without a screen."""

    client: httpx.Client
    passkey: Authenticator

    def press(self, page: str, action: str, **fields: str) -> Callable[[], httpx.Response]:
        """Open a page; what is returned presses a button of it."""
        data = {"ticket": ticket_of(self.client, page, action), "reason": "a test", **fields}
        return lambda: self.client.post(f"{page}/{action}", data=data)

    def say(self, request: str, verdict: str = "approve") -> Callable[[], httpx.Response]:
        """Open a request and touch the authenticator; what is returned sends what it signed."""
        page = f"/requests/{request}"
        shown = f"{page}/break-glass" if verdict == "break-glass" else page
        word = {"ticket": ticket_of(self.client, shown, "answer"), "reason": "a test"}
        begun = self.client.post(f"{page}/answer/begin", json={**word, "verdict": verdict}).json()
        signed = {"ticket": begun["ticket"], **answer_to(self.passkey, begun["challenge"])}
        headers = {"accept": "application/json"}
        return lambda: self.client.post(f"{page}/answer", json=signed, headers=headers)
