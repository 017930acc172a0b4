# SPDX-License-Identifier: Apache-2.0
"""The trail: everything in the order of time, in plain words, and nothing left out in silence."""

from collections.abc import Iterator
from datetime import datetime

import pytest
from msgspec.structs import replace

from sealpoint.audit import NOT_RELEASED, AuditRecord
from sealpoint.errors import UnknownThread, UsageError
from sealpoint.ledger import Kind, parse_header
from sealpoint.signing import Verdict, attest
from tests.deployment import Deployment
from tests.ledgers import key, sealed
from tests.unit.gate.team import READ, SHELL, Team

_HOSTILE = "fine\x1b[2J\u202e\nverdict approve"


@pytest.fixture
def team() -> Iterator[Team]:
    """A thread that was paused, approved, resumed and handed off, and another."""
    made = Deployment()
    crew = Team(made)
    crew.granted(answer={"pay": True})
    crew.thread("operator").pause("a look")
    crew.thread("operator").unpause("fine")
    crew.thread().resume(world=SHELL, answer={"pay": True}, actor="desk")
    crew.thread(name="u").save(1)
    crew.thread().save({"n": 3}, world=SHELL)
    crew.thread().handoff(to="spare", reason="yours")
    yield crew
    made.close()


def _trail(team: Team, **filters: object) -> list[AuditRecord]:
    return list(team.world.open(None, read_only=True).audit(**filters))  # type: ignore[arg-type]


def test_everything_is_told_in_the_order_of_time(team: Team) -> None:
    """Threads and the store chain are merged; each entry is there once."""
    found = _trail(team)
    times = [record.time for record in found if record.time is not None]

    assert times == sorted(times)
    assert len(found) == len(times) == _entries(team)
    assert {record.thread for record in found} == {"", "t", "u"}
    assert found[0].kind == "roster"
    kinds = [record.kind for record in found if record.thread == "t"]
    assert kinds == team.kinds("t")
    assert all(len(record.entry) == 64 for record in found)


def _entries(team: Team) -> int:
    return team.world.open(None, read_only=True).verify().entries


def test_records_say_who_did_what_and_why(team: Team) -> None:
    """Identity, person, reason, request and verdict are there in words."""
    told = {record.kind: record for record in _trail(team, thread="t")}

    assert told["pause"].summary == "paused: a look"
    assert (told["pause"].by, told["pause"].person) == ("operator", "operator")
    assert "by bob: bob has looked" in told["approval"].summary
    assert told["handoff"].summary == "new owner spare: yours"
    resume = told["resume"].summary
    assert "rules tools, answer" in resume
    assert f"policy {team.digest[:12]}" in resume
    assert "spends request" in resume
    assert "for desk, as the caller claims" in resume
    assert NOT_RELEASED not in resume
    assert told["request"].as_dict()["kind"] == "request"


def test_a_resume_without_a_later_entry_is_not_known_to_be_released(team: Team) -> None:
    """A crash between the decision and the first save leaves only the decision."""
    team.fresh(name="u").resume(world=None)
    waiting = [record.summary for record in _trail(team, thread="u", kind="resume")]
    team.fresh(name="u").save(2)
    followed = [record.summary for record in _trail(team, thread="u", kind="resume")]

    assert [NOT_RELEASED in words for words in waiting] == [False, True]
    assert [NOT_RELEASED in words for words in followed] == [False, True, False]


def test_filters_choose(team: Team) -> None:
    """By thread, actor, kind and time; whoever approved is an actor, whoever relayed it."""
    everything = _trail(team)
    middle = everything[len(everything) // 2].time
    assert middle is not None

    assert {record.thread for record in _trail(team, thread="u")} == {"u"}
    assert {record.kind for record in _trail(team, kind="approval")} == {"approval"}
    assert [record.by for record in _trail(team, actor="ann")] == ["ann"]
    assert len(_trail(team, since=middle)) + len(_trail(team, until=middle)) == len(everything)


def test_a_relayed_approval_is_found_by_its_approver(team: Team) -> None:
    """The entry is by the operator, and the word in it is Ann's."""
    team.thread(name="v").save(1, world=READ)
    request = team.ask(name="v")
    team.store("operator").relay(attest(key("ann"), request.id, Verdict.APPROVE, "yes"))
    found = [record for record in _trail(team, actor="ann") if record.thread == "v"]

    assert [(record.by, record.kind) for record in found] == [("operator", "approval")]
    assert [(record.word_of, record.request) for record in found] == [("ann", request.id)]


def test_records_name_the_request_that_they_are_about(team: Team) -> None:
    """It is the same from the question over the answers to the resume that uses them."""
    found = [(record.kind, record.word_of) for record in _trail(team) if record.request]

    assert found == [("request", ""), ("approval", "ann"), ("approval", "bob"), ("resume", "")]
    assert len({record.request for record in _trail(team) if record.request}) == 1


def test_what_no_filter_can_mean_is_refused(team: Team) -> None:
    """An unknown kind, a time without a zone, a name that nobody has saved under."""
    for filters in ({"kind": "resumes"}, {"since": datetime(2026, 1, 1)}):  # noqa: DTZ001
        with pytest.raises(UsageError):
            _trail(team, **filters)
    with pytest.raises(UnknownThread):
        _trail(team, thread="nobody")


def test_texts_are_made_visible(team: Team) -> None:
    """No control character of a reason reaches whoever reads the trail."""
    team.thread("operator").pause(_HOSTILE)
    summary = _trail(team, kind="pause")[-1].summary

    assert summary.isprintable()
    assert "\\u{1b}" in summary
    assert "\\u{202e}" in summary


def test_erased_bodies_are_said_to_be_erased(team: Team) -> None:
    """Who and when stay; what was said is gone."""
    team.thread("officer", "u").erase(reason="asked for")
    thread = team.world.thread_id("u").hex()
    found = [record for record in _trail(team) if record.thread_id == thread]

    assert [record.summary for record in found[:-1]] == ["(erased)"] * 3
    assert found[-1].summary == "all that the thread held was erased: asked for"
    assert {record.thread for record in found} == {""}
    assert [record.kind for record in _trail(team, thread="u")][-1] == "erase"


def test_a_damaged_thread_is_told_as_far_as_it_verifies(team: Team) -> None:
    """Then a finding follows, whatever was asked for, and other threads are told."""
    thread = team.world.thread_id("t")
    record = team.world.record("t", 2)
    team.world.put(thread, 2, replace(record, body=(record.body or b"") + b" "))
    found = _trail(team)
    mine = [record for record in found if record.thread_id == thread.hex()]

    assert [record.seq for record in mine] == [0, 1, 2]
    assert mine[-1].finding is not None
    assert mine[-1].finding.code == "edited"
    assert any(record.thread == "u" for record in found)
    assert [record.kind for record in _trail(team, kind="erase", actor="nobody")] == ["finding"]


def test_a_missing_thread_is_a_finding(team: Team) -> None:
    """The anchor knows it, and the store shows nothing of it."""
    thread = team.world.thread_id("u")
    for seq in range(3):
        team.world.put(thread, seq, None)
    findings = [record.finding for record in _trail(team) if record.finding is not None]

    assert [finding.code for finding in findings] == ["rolled-back"]


def test_a_shortened_thread_is_a_finding(team: Team) -> None:
    """All that is left verifies, and the anchor has seen more."""
    thread = team.world.thread_id("u")
    team.world.put(thread, 2, None)
    found = [record for record in _trail(team) if record.thread_id == thread.hex()]

    assert [record.kind for record in found] == ["genesis", "resume", "finding"]


def test_a_thread_cannot_be_moved_out_of_sight(team: Team) -> None:
    """A first entry that claims another namespace does not hide the thread."""
    thread = team.world.thread_id("u")
    record = team.world.record("u", 0)
    header = replace(parse_header(record.header), ns="elsewhere")
    team.world.put(thread, 0, sealed(header, record.body, key("worker")))
    found = [record for record in _trail(team) if record.thread_id == thread.hex()]

    assert [record.kind for record in found][-1] == "finding"


def test_a_thread_that_only_the_store_knows_is_a_finding(team: Team) -> None:
    """Its entries are genuine; that they are all cannot be told."""
    thread = team.world.thread_id("u").hex()
    team.world.forget("u")
    found = [record for record in _trail(team) if record.thread_id == thread]

    assert [record.kind for record in found] == ["genesis", "resume", "checkpoint", "finding"]
    assert found[-1].finding is not None
    assert found[-1].finding.code == "unanchored"


def test_clocks_that_went_back_keep_the_order_of_a_thread(team: Team) -> None:
    """Positions rise within a thread, whatever the times say."""
    team.later(hours=-5)
    team.go_on("spare")
    team.thread("spare").save({"n": 9}, world=SHELL)
    positions = [record.seq for record in _trail(team) if record.thread == "t"]

    assert positions == sorted(positions)


def test_every_kind_of_a_thread_has_its_words(team: Team) -> None:
    """Prune, adopt, expiry and break-glass as well."""
    team.thread(name="w").save(1, id="a", world=READ)
    team.thread(name="w").save(2, id="b", world=READ)
    team.thread(name="w").prune(keep_last=1, reason="old")
    request = team.ask(name="w")
    team.store("chief").break_glass(request.id, reason="fire")
    told = {record.kind: record.summary for record in _trail(team, thread="w")}

    assert told["prune"].endswith(": old")
    assert told[Kind.BREAK_GLASS].endswith("passes without the approvals it needs by chief: fire")
