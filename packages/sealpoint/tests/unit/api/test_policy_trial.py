# SPDX-License-Identifier: Apache-2.0
"""Trying a policy on what a store has recorded: thirty days of deploys and questions."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from sealpoint.api import PolicyTrial
from sealpoint.api._policy_trial import try_policy
from sealpoint.gate import (
    Consent,
    Policies,
    Policy,
    PolicyAnswers,
    RolloutBook,
    draft_policy,
    shipped_policy,
)
from tests.deployment import Deployment
from tests.unit.gate.team import Team

_OURS = draft_policy(
    "ours",
    PolicyAnswers(
        tools=Consent.ONE_OTHER,
        answers=Consent.NOBODY,
        code=Consent.NOBODY,
        oldest="30d",
        break_glass=False,
    ),
)
_NAMES = ("a", "b", "c")


def _world(version: int, *tools: str, code: int = 1) -> dict[str, Any]:
    return {
        "tools": [{"name": each} for each in ("read", *tools)],
        "runtime": {"langgraph": f"1.2.{version}"},
        "code": {"version": str(code)},
    }


@pytest.fixture
def team() -> Iterator[Team]:
    """A team under `dev`, where nobody was asked, with three threads on the first day."""
    made = Deployment()
    crew = Team(made, shipped_policy("dev"))
    for name in _NAMES:
        crew.thread(name=name).save({"day": 0}, world=_world(0))
    yield crew
    made.close()


def _deploy(team: Team, world: dict[str, Any], *names: str, **call: Any) -> None:
    """A day later, threads resume in another world and save there."""
    team.later(days=1)
    for name in names or _NAMES:
        thread = team.fresh(name=name)
        thread.resume(world=world, **call)
        thread.save({"day": 1}, world=world)


def _tried(team: Team, policy: bytes, days: int = 30) -> PolicyTrial:
    core = team.world.open(None, read_only=True).core
    policies = Policies(core)
    since = team.world.clock - timedelta(days=days)
    return try_policy(core, policies, RolloutBook(core, policies), Policy.parse(policy), since)


def test_thirty_days_of_deploys_ask_one_person_once(team: Team) -> None:
    """Patch versions and code ask nobody; the one new tool is one question for all threads."""
    for day in range(28):
        _deploy(team, _world(day, *(["pay"] if day >= 10 else []), code=1 + day // 7))
    before = team.everything()
    found = _tried(team, _OURS)

    assert found.resumes == 28 * 3
    assert {each.thread for each in found.asking} == set(_NAMES)
    assert {str(each.asks) for each in found.asking} == {"approve 1"}
    assert {each.rules for each in found.asking} == {("tools",)}
    assert len({each.world for each in found.asking}) == 1
    assert all(each.is_of_a_deploy for each in found.asking)
    assert found.differing == 3
    assert team.everything() == before


def test_under_strict_each_of_these_deploys_asks(team: Team) -> None:
    """What differs from what happened is counted, and days that are too long ago are not."""
    for day in range(4):
        _deploy(team, _world(1 + day))
    found = _tried(team, shipped_policy("strict"))

    assert (found.resumes, len(found.asking), found.differing) == (12, 12, 12)
    assert {str(each.asks) for each in found.asking} == {"approve 2"}
    assert _tried(team, shipped_policy("strict"), days=2).resumes == 6
    assert _tried(team, shipped_policy("dev")).found == ()


def test_answers_and_ages_are_judged(team: Team) -> None:
    """Each by its rule, and none of them is a matter of a deploy."""
    team.later(days=1)
    team.thread(name="a").save({"day": 1}, world=_world(0), question="pay?")
    _deploy(team, _world(0), "a", answer="yes")
    team.later(days=20)
    _deploy(team, _world(0), "b")
    found = _tried(team, shipped_policy("strict"))

    assert {each.rules for each in found.asking} == {("answer",), ("old-age",)}
    assert not any(each.is_of_a_deploy for each in found.asking)


def test_what_people_approved_then_is_not_counted_as_agreed(team: Team) -> None:
    """The trial asks again: approvals and rollouts were given under another policy."""
    team.apply(shipped_policy("strict"))
    rollout = team.store("operator").rollouts.propose(
        [(_world(0), _world(1, "pay"))], reason="release 42"
    )
    team.approve(rollout)
    _deploy(team, _world(1, "pay"))
    found = _tried(team, _OURS)

    assert [str(each.asks) for each in found.found] == ["approve 1"] * 3
    assert [str(each.asked) for each in found.found] == ["approve 2"] * 3
