# SPDX-License-Identifier: Apache-2.0
"""What people are told of: entries, findings and keys, without state and without reasons."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from sealpoint.audit import AuditRecord, Finding
from sealpoint.signing import Roster, Verdict, attest
from sealpoint_console._notification_events import (
    ConsoleEvent,
    event_id,
    expiry_events,
    finding_event,
    record_event,
    resume_event,
    sentence,
)
from sealpoint_console.settings import CONSOLE_EVENTS
from tests.deployment import Deployment
from tests.ledgers import NOW, identity, key, roster
from tests.unit.gate.team import READ, SHELL, Team

_STORE = "store:00"
_SECRET = "4111 1111 1111 1111"  # noqa: S105 - what a state, an answer or a reason may hold
_HOSTILE = "</a><!channel> *x* \u202e\x1b[2J {{DATE(now)}} ${name}"


@pytest.fixture
def team() -> Iterator[Team]:
    """A thread whose state, answer and reasons hold what nobody is told."""
    made = Deployment()
    crew = Team(made)
    crew.thread(name="v").save({"card": _SECRET}, world=READ)
    yield crew
    made.close()


def _records(team: Team, thread: str = "v") -> list[AuditRecord]:
    return list(team.world.open(None, read_only=True).audit(thread=thread))


def _events(team: Team, thread: str = "v") -> list[ConsoleEvent]:
    records = _records(team, thread)
    asked = {record.request for record in records if record.kind == "request"}
    found = (record_event(record, _STORE, asked) for record in records)
    return [event for event in found if event is not None]


def test_entries_about_people_are_events_and_others_are_not(team: Team) -> None:
    """A request, its approval, a pause and its end are told; saves and resumes are not."""
    request = team.ask(name="v", answer={"card": _SECRET})
    team.store("ann").approve(request.id, reason=_SECRET)
    team.thread("operator", "v").pause(_SECRET)
    team.thread("operator", "v").unpause(_SECRET)
    found = _events(team)

    assert [event.kind for event in found] == ["request", "approved", "paused", "unpaused"]
    assert [event.by for event in found] == ["worker", "ann", "operator", "operator"]
    assert [event.request for event in found] == [request.id, request.id, "", ""]
    thread = team.world.thread_id("v").hex()
    assert [event.page for event in found] == [
        *[f"/requests/{request.id}?thread={request.statement.thread}"] * 2,
        *[f"/threads/{thread}"] * 2,
    ]
    assert {(event.thread, event.thread_id) for event in found} == {("v", thread)}
    assert _SECRET not in json.dumps([event.as_dict() for event in found])


def test_a_denial_and_a_handoff_are_told(team: Team) -> None:
    """Whoever denied is named, and so is whoever gave the thread away."""
    request = team.ask(name="v")
    team.store("bob").deny(request.id, reason="no")
    team.thread(name="v").handoff(to="spare", reason="yours")

    assert [(event.kind, event.by) for event in _events(team)][1:] == [
        ("denied", "bob"),
        ("handed-off", "worker"),
    ]


def test_an_answer_is_by_whose_word_it_is(team: Team) -> None:
    """The operator wrote the entry, and the word in it is Ann's."""
    request = team.ask(name="v")
    team.store("operator").relay(attest(key("ann"), request.id, Verdict.APPROVE, "yes"))

    assert [(event.kind, event.by) for event in _events(team)][1:] == [("approved", "ann")]


def test_an_answer_that_nobody_gave_is_told_as_refused(team: Team) -> None:
    """Nobody reads that a request was approved because somebody wrote such an entry."""
    request = team.ask(name="v")
    team.store("ann").approve(request.id, reason="yes")
    (record,) = (each for each in _records(team) if each.kind == "approval")
    forged = record_event(_changed(record, word_of="", by="mallory"), _STORE, {request.id})

    assert forged is not None
    assert (forged.kind, forged.by, forged.code) == ("refused", "mallory", "not-trusted")
    assert "refused" in sentence(forged)


def _changed(record: AuditRecord, **changes: str) -> AuditRecord:
    values = {name: getattr(record, name) for name in AuditRecord.__dataclass_fields__}
    return AuditRecord(**{**values, **changes})


def test_the_same_entry_is_the_same_event_and_another_is_another(team: Team) -> None:
    """An id follows from the entry, so a receiver can drop doubles."""
    team.thread("operator", "v").pause("a look")
    first = _events(team)
    team.thread("operator", "v").unpause("fine")
    team.thread("operator", "v").pause("a look")
    found = _events(team)

    assert [event.id for event in found[: len(first)]] == [event.id for event in first]
    assert len({event.id for event in found}) == len(found) == 3
    assert event_id("a", "bc") != event_id("ab", "c")


def test_an_event_comes_back_from_its_json_form(team: Team) -> None:
    """What the outbox keeps is what was put in."""
    team.ask(name="v")
    found = [*_events(team), *expiry_events(_expiring(5), _STORE, "default", NOW)]

    assert found
    assert [
        ConsoleEvent.from_dict(json.loads(json.dumps(each.as_dict()))) for each in found
    ] == found


def _expiring(days: float) -> Roster:
    worker = identity("worker")
    keys = tuple(replace(each, expires=NOW + timedelta(days=days)) for each in worker.keys)
    return Roster(roster(replace(worker, keys=keys), identity("spare")), seq=0)


@pytest.mark.parametrize(
    ("days", "told"),
    [(31, 0), (30, 1), (8, 1), (7, 1), (1.5, 1), (1, 1), (0.1, 1), (0, 0), (-1, 0)],
)
def test_keys_are_told_of_before_they_expire(days: float, told: int) -> None:
    """One event for a key that ends within 30 days; none for one that has ended."""
    found = list(expiry_events(_expiring(days), _STORE, "default", NOW))

    assert [event.identity for event in found] == ["worker"] * told


def test_keys_are_told_of_three_times() -> None:
    """Thirty days before, seven and one are three events; the days between are none."""
    ids = [
        next(iter(expiry_events(_expiring(days), _STORE, "default", NOW))).id for days in (30, 7, 1)
    ]
    due = _expiring(40)
    seen = {
        event.id
        for hours in range(41 * 24)
        for event in expiry_events(due, _STORE, "default", NOW + timedelta(hours=hours))
    }

    assert len(set(ids)) == 3
    assert len(seen) == 3


def test_keys_of_other_namespaces_are_told_elsewhere() -> None:
    """A console tells of those who have to do with its namespace."""
    worker = identity("worker")
    keys = tuple(replace(each, expires=NOW + timedelta(days=2)) for each in worker.keys)
    other = Roster(roster(replace(worker, keys=keys, namespaces=("billing",))), seq=0)

    assert not list(expiry_events(other, _STORE, "default", NOW))
    assert list(expiry_events(other, _STORE, "billing", NOW))


def _every_kind(name: str) -> list[ConsoleEvent]:
    return [
        ConsoleEvent(
            id="0",
            kind=kind,
            time=NOW,
            page="/",
            thread=name,
            request="ab" * 32,
            by=name,
            identity=name,
            expires=NOW,
            code="edited",
        )
        for kind in CONSOLE_EVENTS
    ]


def test_every_kind_has_a_sentence_that_hides_nothing() -> None:
    """Whatever somebody is called, the sentence is printable, bounded and of one line."""
    for event in _every_kind(_HOSTILE * 200):
        words = sentence(event)

        assert words.isprintable(), event.kind
        assert len(words) < 600
        assert "more characters" in words


def test_a_finding_leads_to_its_thread_and_the_store_chain_to_health() -> None:
    """What does not verify is named by code, and told anew when it comes back."""
    finding = Finding(code="edited", thread="ab" * 16, name="v", message=_SECRET)
    chain = Finding(code="forged", thread="00" * 16, message="x")
    first, again = (finding_event(finding, _STORE, count, NOW) for count in (1, 2))

    assert (first.page, first.code, first.thread) == (f"/threads/{'ab' * 16}", "edited", "v")
    assert first.id != again.id
    assert _SECRET not in json.dumps(first.as_dict())
    assert finding_event(chain, _STORE, 1, NOW).page == "/health"


def test_each_wish_to_resume_is_an_event_of_its_own() -> None:
    """Somebody who asks again is not taken for a double."""
    at = datetime.now(UTC)
    first = resume_event(_STORE, "ab", "v", "alice", at)
    again = resume_event(_STORE, "ab", "v", "alice", at + timedelta(milliseconds=1))

    assert first.id != again.id
    assert sentence(first) == "alice wants the thread to resume (thread v)"


def test_a_broken_glass_is_told(team: Team) -> None:
    """Whoever broke it is named."""
    request = team.ask(name="v", world=SHELL)
    team.store("chief").break_glass(request.id, reason="the house burns")

    assert [(event.kind, event.by) for event in _events(team)][1:] == [("broken-glass", "chief")]
