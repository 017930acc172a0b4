# SPDX-License-Identifier: Apache-2.0
"""A policy from five answers: each rule requires what an answer says, and tells which one."""

from itertools import product

import pytest

from sealpoint.errors import PolicyInvalid
from sealpoint.gate import Consent, Measure, Policy, PolicyAnswers, Rule, draft_policy


def _answers(**changes: object) -> PolicyAnswers:
    fields: dict[str, object] = {
        "tools": Consent.ONE_OTHER,
        "answers": Consent.NOBODY,
        "code": Consent.NOBODY,
        "oldest": "30d",
        "break_glass": False,
    }
    return PolicyAnswers(**(fields | changes))  # type: ignore[arg-type]  # each test gives the right ones


@pytest.mark.parametrize(
    ("tools", "answers", "code", "oldest"), list(product(Consent, Consent, Consent, ["7d", None]))
)
def test_all_answers_make_a_policy(
    tools: Consent, answers: Consent, code: Consent, oldest: str | None
) -> None:
    """It parses, and each rule has the measure of its answer."""
    given = _answers(tools=tools, answers=answers, code=code, oldest=oldest)
    found = Policy.parse(draft_policy("ours", given))

    assert found.name == "ours"
    assert found.measure("tools") == found.measure("permissions") == tools.measure
    assert found.measure("answer") == answers.measure
    assert found.measure("code") == found.measure("prompts") == code.measure
    assert found.measure("runtime") == Measure.RECORD
    assert found.measure("handoff-by-operator").asks_people
    assert (found.age_max is None) == (oldest is None)


def test_the_reasons_are_in_the_file() -> None:
    """Above each rule that an answer decides, one line says which; no line is too long."""
    text = draft_policy("ours", _answers(tools=Consent.TWO_OTHERS, break_glass=True)).decode()
    lines = text.splitlines()

    for rule in set(Rule) - {Rule.NARROWER_WORLD, Rule.FIRST_WORLD, Rule.UNKNOWN_OUTCOME}:
        (place,) = [number for number, line in enumerate(lines) if line.startswith(f"{rule} = ")]
        assert "# Our answer:" in "\n".join(lines[place - 2 : place]), rule
    assert "a change of what a run may do needs two other people." in text
    assert "may pass one resume alone" in " ".join(text.replace("#", "").split())
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("name", ["", 'a"', "a\nb", "x" * 65, "\u202e"])
def test_a_name_that_would_change_the_file_is_refused(name: str) -> None:
    """It is written into the file, and must not end its line."""
    with pytest.raises(PolicyInvalid, match="name"):
        draft_policy(name, _answers())


@pytest.mark.parametrize("oldest", ["", "soon", '7d"', "9999999d", "99999d", "7 d"])
def test_an_age_that_is_none_is_refused(oldest: str) -> None:
    """By its form, or by the bounds of policies."""
    with pytest.raises(PolicyInvalid, match="age"):
        draft_policy("ours", _answers(oldest=oldest))
