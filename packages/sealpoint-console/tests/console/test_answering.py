# SPDX-License-Identifier: Apache-2.0
"""People answer the question of a thread in the console, signed with their passkeys."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from sealpoint.errors import NeedsApproval
from sealpoint.gate import Request
from tests.attacks.console.passkeys import answer_to, give_passkey
from tests.console.person import person_at
from tests.console.scene import WORLD, Scene, Served
from tests.unit.signing.authenticator import Authenticator

_QUESTION = [
    {
        "id": "q1",
        "value": {"pay": "42 EUR to ACME?"},
        "schema": {
            "type": "object",
            "properties": {
                "approved": {"type": "boolean", "title": "Pay it"},
                "note": {"type": "string"},
            },
            "required": ["approved"],
        },
    }
]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A console of a store in which a thread asks."""
    scene = Scene(tmp_path / "scene").make()
    with scene.open() as store:
        store.thread("invoice-17").save({"pay": 42}, question=_QUESTION, world=WORLD)
    with scene.serving() as found:
        found.seen()
        yield found


def _page_of(served: Served) -> str:
    with served.scene.open() as store:
        thread = store.thread("invoice-17")
        thread.load()
        return f"/threads/{thread.id}"


def _sent(client: httpx.Client, page: str, passkey: Authenticator, **fields: str) -> httpx.Response:
    """What a browser sends when somebody fills in the form and touches their authenticator."""
    text = client.get(f"{page}/answer").text
    ticket = re.search(r'name="ticket" value="([^"]+)"', text)
    begun = client.post(
        f"{page}/answer/begin", json={"ticket": ticket[1] if ticket else "", "reason": "", **fields}
    )
    if begun.status_code != 200:
        return begun
    options = begun.json()
    return client.post(
        f"{page}/answer",
        json={"ticket": options["ticket"], **answer_to(passkey, options["challenge"])},
    )


def test_a_person_answers_in_a_browser_and_the_worker_takes_it(
    served: Served, browser: Browser
) -> None:
    """The form has the fields of the schema; the name of the person is on record."""
    with person_at(browser, served, "ann") as ann:
        ann.enrol().use_passkey()
        page = ann.open(_page_of(served))
        page.get_by_role("link", name="Answer it").click()
        expect(page.get_by_text("42 EUR to ACME?")).to_be_visible()
        page.get_by_role("radio", name="Yes").check()
        page.get_by_role("textbox", name="note").fill("as agreed")
        page.get_by_role("button", name="Answer").click()
        expect(page.get_by_text("Your answer is on record.")).to_be_visible()
        assert ann.complaints == []
        assert ann.violations() == []
    answer = {"resume": {"q1": {"approved": True, "note": "as agreed"}}}
    with served.scene.open() as store:
        given = store.thread("invoice-17").signed_answer
        assert given is not None
        assert (given.person, given.answer) == ("ann", answer)
        with pytest.raises(NeedsApproval) as needs:
            store.thread("invoice-17").resume(world=WORLD, answer=answer)
        request = needs.value.request
        assert isinstance(request, Request)
        assert request.statement.actor == "ann"
        assert store.verify().ok


def test_an_answer_without_a_field_is_refused_and_nothing_is_written(served: Served) -> None:
    """The error names the field; another value than those to choose from is refused too."""
    passkey, page = Authenticator(origin=served.origin), _page_of(served)
    give_passkey(served.scene, "ann", passkey)
    with served.client("ann") as client:
        fields: list[dict[str, Any]] = [{}, {"answer-0.0": "7"}, {"answer-0.0": "yes"}]
        for each in fields:
            found = _sent(client, page, passkey, **each)
            assert found.status_code == 400, found.text
            assert "Pay it" in found.text
    with served.scene.open() as store:
        assert store.thread("invoice-17").signed_answer is None


def test_one_person_answers_and_the_next_is_told(served: Served) -> None:
    """The second has read the page before the first has answered."""
    page = _page_of(served)
    keys = {
        name: Authenticator(number, origin=served.origin)
        for number, name in enumerate(("ann", "bob"), start=1)
    }
    for name, key in keys.items():
        give_passkey(served.scene, name, key)
    with served.client("ann") as ann, served.client("bob") as bob:
        ticket = re.search(r'name="ticket" value="([^"]+)"', bob.get(f"{page}/answer").text)
        assert _sent(ann, page, keys["ann"], **{"answer-0.0": "0"}).status_code == 200
        late = bob.post(
            f"{page}/answer/begin",
            json={"ticket": ticket[1] if ticket else "", "reason": "", "answer-0.0": "1"},
        )
        assert late.status_code == 409, late.text
        assert "has answered" in bob.get(f"{page}/answer").text


def test_who_has_no_role_does_not_answer(served: Served) -> None:
    """An auditor reads the question, and has no form."""
    passkey, page = Authenticator(origin=served.origin), _page_of(served)
    with served.client("vera") as vera:
        assert "you need the role" in vera.get(f"{page}/answer").text
        assert _sent(vera, page, passkey, **{"answer-0.0": "0"}).status_code == 403
