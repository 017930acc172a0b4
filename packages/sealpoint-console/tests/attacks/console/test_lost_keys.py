# SPDX-License-Identifier: Apache-2.0
"""Keys that end while a page is open, and what they opened."""

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from tests.attacks.console.conftest import Open
from tests.attacks.console.passkeys import Tab, answer_to, give_passkey
from tests.console.scene import Served, until
from tests.unit.signing.authenticator import Authenticator


def _signed_in(served: Served, passkey: Authenticator) -> Tab:
    """Somebody who has signed in with their passkey."""
    client = served.client()
    begun = client.post("/sign-in/passkey/begin", json={}).json()
    answer = {"ticket": begun["ticket"], **answer_to(passkey, begun["challenge"])}
    made = client.post("/sign-in/passkey", json=answer)
    assert made.status_code == 200, made.text
    client.headers["cookie"] = made.headers["set-cookie"].partition(";")[0]
    return Tab(client, passkey)


def test_what_a_lost_passkey_opened_ends_with_it(served: Served) -> None:
    """The person has other keys, and stays signed in where they did not use this one."""
    lost = Authenticator(1, origin=served.origin)
    give_passkey(served.scene, "ann", lost)
    thief = _signed_in(served, lost)
    with closing(served.client("ann")) as ann, closing(thief.client) as theirs:
        before = theirs.get("/people").status_code
        with theirs.stream("GET", "/live") as live:
            assert live.status_code == 200
            served.scene.admin.keys.revoke("ann", key=lost.passkey.id.raw.hex(), reason="lost")
            told = "".join(live.iter_text())  # which ends
        after = theirs.get("/people")

        assert "event: standing" in told
        assert (before, after.status_code) == (200, 303)
        assert ann.get("/people").status_code == 200


@pytest.mark.parametrize("raced", ["sqlite"], indirect=True)
def test_a_passkey_that_ends_between_page_and_signature_says_nothing(
    raced: Served, tab: Open
) -> None:
    """By its own end, and by the root; the page was made while it counted."""
    request = raced.scene.ask("ended")
    raced.seen()
    soon = Authenticator(7, origin=raced.origin)
    ends = datetime.now(UTC) + timedelta(seconds=1.5)
    raced.scene.admin.keys.add("ann", passkey=soon.passkey, expires=ends)
    expiring = Tab(tab("ann").client, soon).say(request)
    revoked = tab("bob").say(request)
    key = tab("bob").passkey.passkey.id.raw.hex()
    raced.scene.admin.keys.revoke("bob", key=key, reason="lost")
    until(lambda: datetime.now(UTC) > ends)
    answers = [expiring(), revoked()]
    with raced.scene.open() as store:
        found = store.request(request)

    assert [each.status_code for each in answers] == [403, 403]
    assert all("does not have this passkey" in each.text for each in answers)
    assert found.approved_by == ()


def test_a_key_that_has_expired_is_told_as_that(served: Served) -> None:
    """Not as one that is about to, and the sign-in says what helps."""
    device = Authenticator(7, origin=served.origin)
    ends = datetime.now(UTC) + timedelta(seconds=2)
    keys = served.scene.admin.keys
    keys.add("ann", passkey=device.passkey, expires=ends)
    keys.add("bob", expires=datetime.now(UTC) + timedelta(days=5))
    until(lambda: datetime.now(UTC) > ends)
    with served.client("olga") as olga:
        page = olga.get("/people").text
    with served.client(accept="application/json") as client:
        begun = client.post("/sign-in/passkey/begin", json={}).json()
        answer = {"ticket": begun["ticket"], **answer_to(device, begun["challenge"])}
        refused = client.post("/sign-in/passkey", json=answer)
    fault = refused.json()["error"]

    assert page.count("expired</span>") == 1
    assert page.count(", expires <time") == 1
    assert "this passkey of 'ann' expired at" in fault["message"]
    assert (
        f"sealpoint keys add ann --expires 365d --public-key {device.passkey.public}"
        in (fault["hint"])
    )
