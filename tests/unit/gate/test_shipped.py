# SPDX-License-Identifier: Apache-2.0
"""The two policies that come with Sealpoint: what they say, and that the reference says it too."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from sealpoint.errors import PolicyInvalid
from sealpoint.gate import (
    SHIPPED_POLICIES,
    Measure,
    Outcome,
    Policy,
    Rule,
    decide,
    shipped_policy,
)
from sealpoint.limits import POLICY_BYTES_MAX
from sealpoint.world import Code, World
from tests.repo._markdown import holds_sentence, names
from tests.repo._tree import REFERENCE, ROOT
from tests.unit.gate.judging import ORDINARY, TRIGGERS, facts, grant

_SOLO = Policy.parse(shipped_policy("solo"))
_TEAM = Policy.parse(shipped_policy("team"))
_FOLDER = Path("src", "sealpoint", "gate", "policies")

_MEASURES = {
    Rule.OLDER_CHECKPOINT: ("deliberate", "approval"),
    Rule.CHANGED_CODE: ("deliberate", "approval"),
    Rule.WIDER_WORLD: ("deliberate", "approval"),
    Rule.NARROWER_WORLD: ("allow", "allow"),
    Rule.FIRST_WORLD: ("allow", "approval"),
    Rule.MISSING_WORLD: ("deliberate", "approval"),
    Rule.ANSWER: ("allow", "approval"),
    Rule.OLD_AGE: ("allow", "approval"),
    Rule.AFTER_RESTORE: ("deliberate", "approval"),
    Rule.HANDOFF_BY_OPERATOR: ("approval", "approval"),
}


def test_the_shipped_policies_are_solo_and_team() -> None:
    """Each file is the one of its name, and there are no others."""
    files = sorted(path.name for path in (ROOT / _FOLDER).iterdir())

    assert SHIPPED_POLICIES == ("solo", "team")
    assert files == ["solo.toml", "team.toml"]
    for name, policy in (("solo", _SOLO), ("team", _TEAM)):
        assert policy.name == name
        assert shipped_policy(name) == (ROOT / _FOLDER / f"{name}.toml").read_bytes()


@pytest.mark.parametrize("name", ["", "Solo", "../policies/solo", "solo.toml", "x" * 99])
def test_no_other_policy_is_shipped(name: str) -> None:
    """A name is one of the two, never a part of a path."""
    with pytest.raises(PolicyInvalid) as caught:
        shipped_policy(name)

    assert str(caught.value) == (f"shipped policy: expected one of solo, team, found {name[:64]!r}")


@pytest.mark.parametrize("rule", Rule)
def test_the_shipped_policies_have_the_measures_of_the_design(rule: Rule) -> None:
    """What each asks for where a rule applies."""
    assert (_SOLO.measure(rule), _TEAM.measure(rule)) == _MEASURES[rule]


def test_the_shipped_policies_have_the_numbers_of_the_design() -> None:
    """How many people, how long a request stays open, which age is too great."""
    assert (_SOLO.needed, _TEAM.needed) == (1, 2)
    assert (_SOLO.expires, _TEAM.expires) == (timedelta(days=1), timedelta(days=1))
    assert (_SOLO.age_max, _TEAM.age_max) == (None, timedelta(days=7))
    assert (_SOLO.takeover_after, _TEAM.takeover_after) == (timedelta(), timedelta())


@pytest.mark.parametrize("rule", TRIGGERS)
def test_solo_asks_one_person_for_a_reason_at_most(rule: Rule) -> None:
    """Nothing needs other people; what is not allowed passes with a reason."""
    silent = decide(facts(TRIGGERS[rule]), _SOLO)
    meant = decide(facts(TRIGGERS[rule], deliberate="meant"), _SOLO)
    applies = [] if rule is Rule.OLD_AGE else [rule.value]

    assert [reason.rule for reason in silent.reasons] == applies
    assert silent.outcome is (Outcome.ALLOW if _MEASURES[rule][0] == "allow" else Outcome.REFUSE)
    assert meant.outcome is Outcome.ALLOW


@pytest.mark.parametrize("rule", TRIGGERS)
def test_team_asks_two_other_people(rule: Rule) -> None:
    """Everything that is not ordinary but a narrower world needs two approvals."""
    one = decide(facts(TRIGGERS[rule], deliberate="meant", grant=grant("alice")), _TEAM)
    two = decide(facts(TRIGGERS[rule], grant=grant("alice", "bob")), _TEAM)

    assert [reason.rule for reason in one.reasons] == [rule.value]
    assert one.outcome is (Outcome.ALLOW if rule is Rule.NARROWER_WORLD else Outcome.NEEDS_APPROVAL)
    assert two.outcome is Outcome.ALLOW


@pytest.mark.parametrize("policy", [_SOLO, _TEAM], ids=["solo", "team"])
def test_both_allow_an_ordinary_continuation(policy: Policy) -> None:
    """Also where another session lives, and at any age that solo can have."""
    busy = facts(living_session=timedelta())

    assert decide(ORDINARY, policy).ordinary
    assert decide(busy, policy).ordinary


def test_real_worlds_are_judged_as_the_design_says() -> None:
    """One more permission is wider, one fewer narrower, another version changed code."""
    before = World(code=Code(version="1"), permissions=["read", "write"])
    more = World(code=Code(version="1"), permissions=["read", "shell", "write"])
    less = World(code=Code(version="1"), permissions=["read"])
    newer = World(code=Code(version="2"), permissions=["read", "write"])
    newer_and_more = World(code=Code(version="2"), permissions=["read", "shell", "write"])
    found = {
        world.digest: decide(facts(diff=before.diff(world)), _SOLO)
        for world in (before, more, less, newer, newer_and_more)
    }

    assert found[before.digest].ordinary
    assert [(r.rule, r.measure) for r in found[more.digest].reasons] == [
        ("wider-world", Measure.DELIBERATE)
    ]
    assert "shell" in found[more.digest].reasons[0].words
    assert found[more.digest].outcome is Outcome.REFUSE
    assert [(r.rule, r.measure) for r in found[less.digest].reasons] == [
        ("narrower-world", Measure.ALLOW)
    ]
    assert "write" in found[less.digest].reasons[0].words
    assert found[less.digest].outcome is Outcome.ALLOW
    assert [r.rule for r in found[newer.digest].reasons] == ["changed-code"]
    assert [r.rule for r in found[newer_and_more.digest].reasons] == [
        "changed-code",
        "wider-world",
    ]


@pytest.mark.parametrize("name", SHIPPED_POLICIES)
def test_a_shipped_policy_teaches_its_language(name: str) -> None:
    """Above every key stands a comment, and the measures and units are explained."""
    lines = shipped_policy(name).decode().splitlines()
    keys = [number for number, line in enumerate(lines) if re.match(r"[a-z][a-z_-]* = ", line)]

    assert len(shipped_policy(name)) < POLICY_BYTES_MAX
    for number in keys:
        bare = lines[number].startswith(("version", "name"))
        assert bare or lines[number - 1].startswith("# "), lines[number]
    for measure in Measure:
        assert any(line.startswith(f'#   "{measure}"') for line in lines)
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    "word",
    [
        *Rule,
        *Measure,
        "version",
        "name",
        "approvals.needed",
        "approvals.expires",
        "age.max",
        "session.takeover_after",
        "paused",
        "not-owner",
        "busy",
        "denied",
        "expired",
        "no-policy",
    ],
)
def test_the_reference_explains_every_word_of_a_policy(word: str) -> None:
    """Every key, rule, measure and reason has a line in the reference."""
    page = (REFERENCE / "policy.md").read_text(encoding="utf-8")

    assert any(names(line, word) and holds_sentence(line) for line in page.splitlines())


@pytest.mark.parametrize("rule", Rule)
def test_the_reference_gives_the_measures_of_the_shipped_policies(rule: Rule) -> None:
    """The row of a rule ends with what solo and team ask for."""
    page = (REFERENCE / "policy.md").read_text(encoding="utf-8")
    solo, team = _MEASURES[rule]

    assert re.search(rf"^\| `{rule}` \|.*\| `{solo}` \| `{team}` \|$", page, re.MULTILINE)


@pytest.mark.parametrize("name", SHIPPED_POLICIES)
def test_the_reference_prints_the_shipped_policies(name: str) -> None:
    """The page includes the file itself, so that it cannot differ."""
    page = (REFERENCE / "policy.md").read_text(encoding="utf-8")

    assert f"{{literalinclude}} ../../{_FOLDER.as_posix()}/{name}.toml" in page
