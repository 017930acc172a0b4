# SPDX-License-Identifier: Apache-2.0
"""The policies that come with Sealpoint: what they say, and that the reference says it too."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from sealpoint.errors import PolicyInvalid
from sealpoint.gate import (
    SHIPPED_POLICIES,
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
from tests.unit.gate.judging import BARS, ORDINARY, TRIGGERS, facts, grant

_DEV = Policy.parse(shipped_policy("dev"))
_SOLO = Policy.parse(shipped_policy("solo"))
_TEAM = Policy.parse(shipped_policy("team"))
_STRICT = Policy.parse(shipped_policy("strict"))
_FOLDER = Path("packages", "sealpoint", "src", "sealpoint", "gate", "policies")

_WORDS = ("allow", "record", "reason", "approve", "refuse")
_MEASURES = {
    Rule.OLDER_CHECKPOINT: ("record", "reason", "approve 1", "approve 2"),
    Rule.TOOLS: ("record", "reason", "approve 1", "approve 2"),
    Rule.PERMISSIONS: ("record", "reason", "approve 1", "approve 2"),
    Rule.MODEL: ("record", "reason", "approve 1", "approve 2"),
    Rule.PROMPTS: ("record", "record", "record", "approve 2"),
    Rule.TOPOLOGY: ("record", "record", "record", "approve 2"),
    Rule.CODE: ("record", "record", "record", "approve 2"),
    Rule.APPLICATION: ("record", "record", "record", "approve 2"),
    Rule.RUNTIME: ("record", "record", "record", "approve 2"),
    Rule.OTHER: ("record", "reason", "approve 1", "approve 2"),
    Rule.NARROWER_WORLD: ("record", "record", "record", "record"),
    Rule.FIRST_WORLD: ("record", "record", "record", "approve 2"),
    Rule.MISSING_WORLD: ("record", "reason", "approve 1", "approve 2"),
    Rule.ANSWER: ("record", "record", "record", "approve 2"),
    Rule.OLD_AGE: ("record", "record", "record", "approve 2"),
    Rule.UNKNOWN_OUTCOME: ("record", "reason", "reason", "approve 2"),
    Rule.AFTER_RESTORE: ("record", "reason", "approve 1", "approve 2"),
    Rule.HANDOFF_BY_OPERATOR: ("approve 1", "approve 1", "approve 1", "approve 2"),
}


def test_the_shipped_policies_are_dev_solo_team_and_strict() -> None:
    """Each file is the one of its name, and there are no others."""
    files = sorted(path.name for path in (ROOT / _FOLDER).iterdir())

    assert SHIPPED_POLICIES == ("dev", "solo", "team", "strict")
    assert files == ["dev.toml", "solo.toml", "strict.toml", "team.toml"]
    for name, policy in zip(SHIPPED_POLICIES, (_DEV, _SOLO, _TEAM, _STRICT), strict=True):
        assert policy.name == name
        assert shipped_policy(name) == (ROOT / _FOLDER / f"{name}.toml").read_bytes()


@pytest.mark.parametrize("name", ["", "Solo", "../policies/solo", "solo.toml", "x" * 99])
def test_no_other_policy_is_shipped(name: str) -> None:
    """A name is one of the four, never a part of a path."""
    with pytest.raises(PolicyInvalid) as caught:
        shipped_policy(name)

    assert caught.value.message == (
        f"shipped policy: expected one of dev, solo, team, strict, found {name[:64]!r}"
    )


@pytest.mark.parametrize("rule", Rule)
def test_the_shipped_policies_have_the_measures_of_the_design(rule: Rule) -> None:
    """What each asks for where a rule applies."""
    found = tuple(str(policy.measure(rule)) for policy in (_DEV, _SOLO, _TEAM, _STRICT))

    assert found == _MEASURES[rule]


def test_the_shipped_policies_have_the_numbers_of_the_design() -> None:
    """How long a request stays open, which age is too great, when a session is taken over."""
    shipped = (_DEV, _SOLO, _TEAM, _STRICT)

    assert [policy.expires for policy in shipped] == [timedelta(days=1)] * 4
    assert [policy.age_max for policy in shipped] == [
        None,
        None,
        timedelta(days=7),
        timedelta(days=7),
    ]
    assert [policy.takeover_after for policy in shipped] == [timedelta()] * 4
    assert [policy.asks_nothing for policy in shipped] == [True, False, False, False]
    assert [policy.asks_people for policy in shipped] == [False, False, True, True]


@pytest.mark.parametrize("rule", TRIGGERS)
def test_dev_lets_everything_pass_and_tells_it(rule: Rule) -> None:
    """Nothing asks for a word, and nothing is left out of the record."""
    found = decide(facts(TRIGGERS[rule]), _DEV)
    applies = [] if rule is Rule.OLD_AGE else [rule.value]

    assert [reason.rule for reason in found.reasons] == applies
    assert found.outcome is Outcome.ALLOW


@pytest.mark.parametrize("bar", BARS)
def test_no_shipped_policy_lets_pass_what_nothing_permits(bar: str) -> None:
    """A pause, another owner, a denial and an expiry are refused by dev as by strict."""
    found = [decide(facts(BARS[bar]), policy).outcome for policy in (_DEV, _SOLO, _TEAM, _STRICT)]
    refused = Outcome.ALLOW if bar == "busy" else Outcome.REFUSE

    assert found == [refused] * 4


@pytest.mark.parametrize("rule", TRIGGERS)
def test_solo_asks_one_person_for_a_reason_at_most(rule: Rule) -> None:
    """Nothing needs other people; what is not recorded alone passes with a reason."""
    silent = decide(facts(TRIGGERS[rule]), _SOLO)
    meant = decide(facts(TRIGGERS[rule], deliberate="meant"), _SOLO)
    applies = [] if rule is Rule.OLD_AGE else [rule.value]

    assert [reason.rule for reason in silent.reasons] == applies
    assert silent.outcome is (Outcome.ALLOW if _MEASURES[rule][1] == "record" else Outcome.REFUSE)
    assert meant.outcome is Outcome.ALLOW


@pytest.mark.parametrize("rule", TRIGGERS)
def test_strict_asks_two_other_people(rule: Rule) -> None:
    """Everything that is not ordinary but a narrower world needs two approvals."""
    one = decide(facts(TRIGGERS[rule], deliberate="meant", grant=grant("alice")), _STRICT)
    two = decide(facts(TRIGGERS[rule], grant=grant("alice", "bob")), _STRICT)

    assert [reason.rule for reason in one.reasons] == [rule.value]
    assert one.outcome is (Outcome.ALLOW if rule is Rule.NARROWER_WORLD else Outcome.NEEDS_APPROVAL)
    assert two.outcome is Outcome.ALLOW


@pytest.mark.parametrize("rule", TRIGGERS)
def test_team_asks_one_other_person_at_most(rule: Rule) -> None:
    """For what widens what a run may do, or repeats work; the rest passes, or with a reason."""
    meant = decide(facts(TRIGGERS[rule], deliberate="meant"), _TEAM)
    one = decide(facts(TRIGGERS[rule], grant=grant("alice", needed=1)), _TEAM)
    asks = _MEASURES[rule][2] == "approve 1"

    assert meant.outcome is (Outcome.NEEDS_APPROVAL if asks else Outcome.ALLOW)
    assert one.outcome is Outcome.ALLOW


@pytest.mark.parametrize("policy", [_DEV, _SOLO, _TEAM, _STRICT], ids=SHIPPED_POLICIES)
def test_each_allows_an_ordinary_continuation(policy: Policy) -> None:
    """Also where another session lives, and at any age that solo can have."""
    busy = facts(living_session=timedelta())

    assert decide(ORDINARY, policy).ordinary
    assert decide(busy, policy).ordinary


def test_real_worlds_are_judged_as_the_design_says() -> None:
    """Each difference meets the rule of its class, and one permission fewer is narrower."""
    before = World(code=Code(version="1"), permissions=["read", "write"])
    more = World(code=Code(version="1"), permissions=["read", "shell", "write"])
    less = World(code=Code(version="1"), permissions=["read"])
    newer = World(code=Code(version="2"), permissions=["read", "write"])
    newer_and_more = World(code=Code(version="2"), permissions=["read", "shell", "write"])
    newer_and_less = World(code=Code(version="2"), permissions=["read"])
    worlds = (before, more, less, newer, newer_and_more, newer_and_less)
    found = [decide(facts(diff=before.diff(world)), _SOLO) for world in worlds]
    outcomes = [decision.outcome is Outcome.ALLOW for decision in found]

    assert found[0].ordinary
    assert [[str(reason.rule) for reason in decision.reasons] for decision in found] == [
        [],
        ["permissions"],
        ["narrower-world"],
        ["code"],
        ["permissions", "code"],
        ["code", "narrower-world"],
    ]
    assert outcomes == [True, False, True, True, False, True]
    assert "shell" in found[1].reasons[0].words
    assert "write" in found[2].reasons[0].words


@pytest.mark.parametrize("name", SHIPPED_POLICIES)
def test_a_shipped_policy_teaches_its_language(name: str) -> None:
    """Above every key stands a comment, and the measures and units are explained."""
    lines = shipped_policy(name).decode().splitlines()
    keys = [number for number, line in enumerate(lines) if re.match(r"[a-z][a-z_-]* = ", line)]

    assert len(shipped_policy(name)) < POLICY_BYTES_MAX
    for number in keys:
        bare = lines[number].startswith(("version", "name"))
        assert bare or lines[number - 1].startswith("# "), lines[number]
    for measure in _WORDS:
        assert any(line.startswith(f'#   "{measure}') for line in lines)
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    "word",
    [
        *Rule,
        *_WORDS,
        "version",
        "name",
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
    """The row of a rule ends with what dev, solo and team ask for."""
    page = (REFERENCE / "policy.md").read_text(encoding="utf-8")
    ends = "".join(f"\\| `{measure}` " for measure in _MEASURES[rule])

    assert re.search(rf"^\| `{rule}` \|.*{ends}\|$", page, re.MULTILINE)


@pytest.mark.parametrize("name", SHIPPED_POLICIES)
def test_the_reference_prints_the_shipped_policies(name: str) -> None:
    """The page includes the file itself, so that it cannot differ."""
    page = (REFERENCE / "policy.md").read_text(encoding="utf-8")

    assert f"{{literalinclude}} ../../{_FOLDER.as_posix()}/{name}.toml" in page
