# SPDX-License-Identifier: Apache-2.0
"""Agents, tools and people whose every text is an attack on whoever reads it."""

import pytest
from playwright.sync_api import Browser

from sealpoint import World
from sealpoint.errors import NeedsApproval
from tests.console.person import person_at
from tests.console.scene import Scene, Served

_HOSTILE = (
    "<script>window.hit=1</script><img src=//evil.example/x onerror=window.hit=1>"
    '"><svg onload=window.hit=1><button hx-post="/sign-out" hx-trigger="load">x</button>'
    "<style>*{display:none}</style><iframe srcdoc='<script>parent.hit=1</script>'></iframe>"
    "<form action=//evil.example><input name=x></form><base href=//evil.example>"
    "{{ 7 * 7 }}{% raw %}javascript:window.hit=1"
)
_UNPRINTED = "pay \u202e00099\u202c \x1b[2J\x07\u200b\u2066end"


@pytest.fixture
def hostile(scene: Scene) -> Scene:
    """A store in which whatever can be a text is a hostile one."""
    world = World(tools=[{"name": "t", "description": _HOSTILE}], prompts={"system": _HOSTILE})
    with scene.open() as store:
        thread = store.thread(_HOSTILE[:400])
        before = World(tools=["t"])
        messages = [{"role": "user", "content": _HOSTILE}]
        thread.save({_HOSTILE: _UNPRINTED, "messages": messages}, world=before)
        thread.save(
            {"text": _HOSTILE, "long": "A" * 1_000_000, "deep": {"a": {"b": {"c": _HOSTILE}}}},
            metadata={_HOSTILE: _UNPRINTED},
            question={_HOSTILE: _UNPRINTED, "long": "B" * 300_000},
            world=before,
        )
        with pytest.raises(NeedsApproval):
            thread.resume(world=world, answer={"x": _HOSTILE + _UNPRINTED}, actor=_UNPRINTED)
    with scene.open("operator") as store:
        store.thread(_HOSTILE[:400]).pause(_HOSTILE + _UNPRINTED)
    return scene


def test_nothing_that_an_agent_wrote_runs_hides_or_leaves(hostile: Scene, browser: Browser) -> None:
    """Every page in a real browser: no code runs, no request leaves, no policy is violated."""
    with hostile.serving() as served, person_at(browser, served, "olga") as olga:
        olga.sign_in()
        for path in _paths(served):
            page = olga.open(path)
            page.wait_for_timeout(150)
            assert page.evaluate("window.hit") is None, path
            assert olga.violations() == [], path
            assert page.locator("iframe, base, form[action*=evil], img").count() == 0, path
            text = page.content()
            assert not set("\u202e\x1b\x07\u200b\u2066") & set(text), path
        assert olga.complaints == []
        assert [url for url in olga.requests if not url.startswith(served.origin)] == []


def test_a_request_shows_all_of_a_long_question(hostile: Scene) -> None:
    """Whoever approves is shown everything, however long it is."""
    with hostile.serving() as served, served.client("ann") as client:
        (request,) = served.console.desk.watch.requests().requests
        page = client.get(f"/requests/{request.id}").text

        assert "B" * 300_000 in page
        assert "\\u{202e}" in page


def _paths(served: Served) -> list[str]:
    (thread,) = served.console.desk.watch.page().threads
    (request,) = served.console.desk.watch.requests().requests
    return [
        *("/", "/requests", "/rollouts", "/audit", "/people", "/health"),
        f"/threads/{thread.id}",
        *(f"/threads/{thread.id}/entries/{seq}" for seq in (2, 3)),
        f"/threads/{thread.id}/entries/3?q=script",
        f"/threads/{thread.id}/compare?from=2&to=3",
        f"/threads/{thread.id}/explain?as=worker",
        f"/requests/{request.id}",
        f"/requests/{request.id}/break-glass",
    ]
