# SPDX-License-Identifier: Apache-2.0
"""A request as one value: what programs are given and what people read are of the same thing."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sealpoint.api import ExaminedRequest, examine
from sealpoint.errors import NotTrusted
from sealpoint.gate import Request
from sealpoint.store import ResultsDraft, SaveDraft
from sealpoint.views.requests import RequestView, Section, SectionKind, request_view
from sealpoint.views.words import Line, Styled
from sealpoint.world import World
from tests.deployment import Deployment
from tests.unit.gate.team import READ, SHELL, Team

_HOSTILE = "ok \x1b[2J \u202eesrever\u2066 \u200b\u3164\r\nStatus:"
_QUESTION = {"pay": "250.00 EUR", "token": "t-1"}


@pytest.fixture
def team() -> Team:
    """A team with a thread that waits with a question, and a result that is pending."""
    team = Team(Deployment())
    world = World.of(READ)
    outcomes = team.thread().adapter.commit(
        [
            SaveDraft({"step": 1}, "root", None, None, world),
            ResultsDraft({"sum": 250}, checkpoint="root", task="add", world=world),
            ResultsDraft([], checkpoint="root", task="pay", question=_QUESTION, world=world),
        ]
    )
    assert not [each for each in outcomes if isinstance(each, Exception)]
    return team


def _examined(team: Team, request: Request) -> ExaminedRequest:
    store = team.store("ann")
    return examine(store, store.request(request.id))


def _view(team: Team, **wish: Any) -> RequestView:
    return request_view(_examined(team, team.ask(**wish)))


def _text(line: Line) -> str:
    spans = [line] if isinstance(line, str | Styled) else line
    return "".join(each if isinstance(each, str) else each.text for each in spans)


def _texts(view: RequestView) -> Iterator[str]:
    yield _text(view.title)
    for section in view.sections:
        yield from section.titles
        yield from (line for field in section.fields for line in (field.name, *field.lines))
        yield from map(_text, section.lines)
        yield "" if section.note is None else _text(section.note)


def _fields(section: Section | None) -> dict[str, tuple[str, ...]]:
    assert section is not None
    return {field.name: field.lines for field in section.fields}


def test_a_view_holds_everything_that_would_run(team: Team) -> None:
    """Checkpoint, results, question, answer, worlds and who asks: each as a value and in words."""
    view = _view(team, answer={"pay": True}, deliberate="it is due")

    assert view.digest == view.request.statement.digest
    assert view.newest is True
    assert view.decision is not None
    (question,) = view.decision.questions
    assert {each.name: each.lines for each in question.fields}["pay"] == ("250.00 EUR",)
    assert [(each.name, each.lines) for each in question.answer] == [("pay", ("true",))]
    assert view.decision.differences == ("New tool: shell",)
    assert [change.diff.lines() for change in view.worlds] == [("+ tool shell",)]
    assert view.worlds[0].direction.startswith("other or more: tools;")
    assert view.fault is None
    assert [str(section.kind) for section in view.sections] == [
        *("question", "answer", "differences", "world-diff", "standing", "reasons", "release"),
        "statement",
    ]
    assert _fields(view.section(SectionKind.STATEMENT))["requester"] == ("worker",)
    assert _fields(view.section(SectionKind.STATEMENT))["reason"] == ("it is due",)
    assert _fields(view.section(SectionKind.STANDING))["approved by"] == ("nobody",)


def test_nothing_of_a_request_is_masked(team: Team) -> None:
    """Whoever approves is shown what would run, whatever its keys are called."""
    view = _view(team, answer={"password": "p-1"})
    said = "\n".join(_texts(view))

    assert "token: t-1" in said
    assert "password: p-1" in said


def test_no_text_of_a_view_hides_or_passes_for_a_heading(team: Team) -> None:
    """Texts of the requester are in lines of their own, with everything visible in them."""
    world = World.of(READ)
    team.thread(name="u").adapter.commit(
        [
            SaveDraft({}, "root", None, None, world),
            ResultsDraft({_HOSTILE: _HOSTILE}, checkpoint="root", task="t", world=world),
        ]
    )
    hostile = {"tools": [{"name": "read"}, {"name": "pay", "description": _HOSTILE}]}
    view = _view(team, name="u", answer=_HOSTILE, deliberate=_HOSTILE, world=hostile)
    texts = list(_texts(view))

    assert not [text for text in texts if not text.isprintable()]
    assert not [text for text in texts if set(text) & set("\u200b\u3164\u202e")]
    assert texts.count("Status:") == 1 + sum(
        line == "Status:" for line in _fields(view.section(SectionKind.STATEMENT))["reason"]
    )


def test_a_view_says_how_old_the_state_is_and_whether_it_is_the_newest(team: Team) -> None:
    """An approver is told that something newer is there, and since when the state waits."""
    thread = team.thread()
    thread.save({"step": 2}, id="two", world=READ)
    team.later(days=1)
    view = _view(team, ref="root", world=READ)

    assert view.newest is False
    age = view.age(team.world.now())
    assert age is not None
    assert age.days == 1
    assert "NOT the newest" in _text(
        (view.section(SectionKind.RELEASE) or view.sections[0]).lines[0]
    )


def test_a_request_that_cannot_be_believed_says_so_and_compares_nothing(team: Team) -> None:
    """What was found wrong stands where the release would be; no world and no answer is told."""
    examined = _examined(team, team.ask(answer=1))
    fault = NotTrusted("it shows another release")
    view = request_view(replace(examined, shown=None, diff=None, fault=fault))
    release = view.section(SectionKind.RELEASE)

    assert view.fault == "it shows another release"
    assert release is not None
    assert release.note is not None
    assert _text(release.note) == "  NOT TO BE BELIEVED: it shows another release"
    assert view.worlds == ()
    assert view.decision is not None
    assert not view.decision.has_answer
    assert view.section(SectionKind.WORLD_DIFF) is view.section(SectionKind.WORLD) is None


def test_a_value_whose_types_are_not_known_is_named_with_what_to_do(team: Team) -> None:
    """It is never left out in silence, and whoever shows it says how it can be read."""
    examined = _examined(team, team.ask(answer=1))
    assert examined.shown is not None
    first, *rest = examined.shown.results
    unknown = replace(first, value=None, fault="found 'app.Order'")
    shown = replace(examined.shown, results=(unknown, *rest))
    view = request_view(replace(examined, shown=shown), hint=lambda fault: f"Do this: {fault}")
    said = "\n".join(_texts(view))

    assert "NOT SHOWN, entry " in said
    assert "Do this: found 'app.Order'" in said


def test_a_rollout_is_shown_by_its_differences(team: Team) -> None:
    """Every difference is in one section, and what it does not accept is said."""
    store = team.store()
    pair = (World.from_dict(READ), World.from_dict(SHELL))
    made = store.rollouts.propose(
        [pair], reason="a new tool", until=team.world.now() + timedelta(1)
    )
    view = request_view(examine(store, made))

    assert [str(section.kind) for section in view.sections] == [
        *("statement", "world-diff", "standing"),
    ]
    assert [change.diff.lines() for change in view.worlds] == [("+ tool shell",)]
    assert view.newest is None
    assert view.age(team.world.now()) is None
