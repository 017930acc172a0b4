# SPDX-License-Identifier: Apache-2.0
"""Two tabs of one person, and two people, who press at the same moment."""

import pytest

from sealpoint.gate import Status
from tests.attacks.console.conftest import Open
from tests.attacks.console.passkeys import at_once
from tests.console.scene import WIDER, WORLD, Served


def _kinds(served: Served, thread: str) -> list[str]:
    with served.scene.open() as store:
        return [each.kind for each in store.audit(thread=thread)]


def _saved(served: Served, name: str) -> str:
    with served.scene.open() as store:
        store.thread(name).save({"n": 1}, world=WORLD)
    served.seen()
    return f"/threads/{served.console.desk.watch.thread(name).id}"


def _asked(served: Served, name: str) -> str:
    request = served.scene.ask(name)
    served.seen()
    return request


@pytest.mark.parametrize(("who", "verdict"), [("ann", "approve"), ("olga", "break-glass")])
def test_who_says_the_same_in_two_tabs_has_said_it_once(
    raced: Served, tab: Open, who: str, verdict: str
) -> None:
    """Both tabs are told of the one entry that there is."""
    thread = f"twice-{verdict}"
    request = _asked(raced, thread)
    answers = at_once(*(tab(who).say(request, verdict) for _ in range(2)))

    assert [each.status_code for each in answers] == [200, 200]
    assert len({each.json()["entry"] for each in answers}) == 1
    assert len(_kinds(raced, thread)) == 5


@pytest.mark.parametrize("denier", ["ann", "bob"])
def test_a_denial_holds_whatever_else_is_said_at_that_moment(
    raced: Served, tab: Open, denier: str
) -> None:
    """By the same person in another tab or by another: nothing goes on, and both are told."""
    thread = f"denied-{denier}"
    request = _asked(raced, thread)
    assert tab("bob").say(request)().status_code == 200
    answers = at_once(tab("ann").say(request), tab(denier).say(request, "deny"))
    with raced.scene.open() as store:
        status = store.request(request).status

    assert answers[0].status_code in (200, 409)
    assert answers[1].status_code == 200
    assert status is Status.DENIED
    assert not raced.scene.goes_on(thread)


def test_a_denial_beats_glass_that_is_broken_at_that_moment(raced: Served, tab: Open) -> None:
    """Whichever comes first on record."""
    request = _asked(raced, "glass-denied")
    answers = at_once(tab("olga").say(request, "break-glass"), tab("ann").say(request, "deny"))

    assert answers[1].status_code == 200
    assert not raced.scene.goes_on("glass-denied")


@pytest.mark.parametrize("actions", [("pause",), ("pause", "unpause")], ids="-".join)
def test_of_two_who_do_the_same_one_has_done_it(
    raced: Served, tab: Open, actions: tuple[str, ...]
) -> None:
    """The other is told what moved, and there is one entry."""
    name = "-".join(actions)
    page = _saved(raced, name)
    for action in actions:
        answers = at_once(*(tab("olga").press(page, action) for _ in range(2)))

        assert sorted(each.status_code for each in answers) == [303, 409]
        (lost,) = (each.text for each in answers if each.status_code == 409)
        assert "it is not as it was shown" in lost
    assert _kinds(raced, name)[-len(actions) :] == list(actions)


def test_of_two_who_tell_a_worker_to_go_on_one_has_told_it(raced: Served, tab: Open) -> None:
    """A worker that is told twice would begin twice, and end its own first run."""
    page = _saved(raced, "resumed")
    answers = at_once(*(tab("olga").press(page, "resume") for _ in range(2)))
    told = raced.console.desk.notifier.reported_resumes(page.rpartition("/")[2])

    assert sorted(each.status_code for each in answers) == [303, 409]
    (lost,) = (each.text for each in answers if each.status_code == 409)
    assert "its worker was notified again since then, for olga" in lost
    assert told.count == 1
    assert "It was last notified just now, for olga." in tab("olga").client.get(page).text


def test_who_has_seen_that_a_worker_was_told_may_tell_it_again(raced: Served, tab: Open) -> None:
    """It may have been down."""
    page, olga = _saved(raced, "resumed-again"), tab("olga")

    assert [olga.press(page, "resume")().status_code for _ in range(2)] == [303, 303]


def test_of_two_who_propose_a_rollout_one_has_proposed_it(raced: Served, tab: Open) -> None:
    """Of two for one change people would revoke one, and the other would hold."""
    request = raced.scene.ask("rolled-out", world=WIDER)
    raced.seen()
    page = f"/requests/{request}"
    answers = at_once(*(tab("olga").press(page, "rollout") for _ in range(2)))
    with raced.scene.open() as store:
        rollouts = store.rollouts.list()

    assert sorted(each.status_code for each in answers) == [303, 409]
    (lost,) = (each.text for each in answers if each.status_code == 409)
    assert "is proposed for the same change, and waits for approval" in lost
    assert len(rollouts) == 1
    raced.seen()
    shown = tab("olga").client.get(page).text
    assert f"/requests/{rollouts[0].id}" in shown
    assert "Propose a rollout" not in shown


def test_broken_glass_is_not_called_approved(raced: Served, tab: Open) -> None:
    """Neither in the list nor on the request's page: nobody has approved it."""
    request = _asked(raced, "glass")
    assert tab("olga").say(request, "break-glass")().status_code == 200
    raced.seen()
    pages = [
        tab("ann").client.get(path).text for path in (f"/requests/{request}", "/requests?all=1")
    ]

    assert all("</svg>Glass broken</span>" in page for page in pages)
    assert "</svg>Approved</span>" not in pages[0]
