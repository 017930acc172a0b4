# SPDX-License-Identifier: Apache-2.0
"""A worker with a genuine key says that a person has answered; `verify` finds that it lies."""

from pathlib import Path
from typing import Any

import pytest

from sealpoint.gate import SignedAnswer
from sealpoint.gate._resume_call import answer_digest
from sealpoint.ledger import Kind, RequestBody, VerdictBody, parse_header
from sealpoint.signing import Verdict, attest
from sealpoint.world import World
from tests.attacks.gate.attacked_team import BACKENDS, AttackedTeam
from tests.ledgers import key
from tests.unit.gate.team import READ, policy


@pytest.fixture(params=BACKENDS)
def team(request: pytest.FixtureRequest, tmp_path: Path) -> AttackedTeam:
    """A team whose policy records answers, with a thread that asks."""
    made = AttackedTeam(tmp_path, request.param)
    made.apply(policy(answer="record"))
    made.thread().save({"n": 1}, question={"pay": 42}, world=READ)
    return made


def _signed(team: AttackedTeam, person: str, answer: Any) -> SignedAnswer:
    thread = team.thread("operator")
    statement = thread.prepare_answer(answer, person=person)
    word = attest(key(person), statement.digest, Verdict.APPROVE, statement.reason)
    return thread.record_answer(statement, answer, word)


def _slip(team: AttackedTeam, **fields: Any) -> None:
    """Append a resume that is true in everything but who answered."""
    head = parse_header(team.rows()[max(team.rows())].header)
    told = {
        "world": World.from_dict(READ).digest,
        "leaves": READ,
        "rules": ("answer",),
        "answer": answer_digest("yes"),
        "policy": team.store("operator").core.trust().roster.policy_digest("default"),
    }
    team.slip_resume(at=head.at, roster=head.roster, **(told | fields))


def _findings(team: AttackedTeam) -> list[str]:
    return [each.message for each in team.world.open(None, read_only=True).verify().findings]


@pytest.mark.parametrize("lie", ["an id of nothing", "another answer", "another person"])
def test_a_resume_that_names_an_answer_that_nobody_gave_is_found(
    team: AttackedTeam, lie: str
) -> None:
    """Whether it is missing, was another, or was given by somebody else."""
    given = _signed(team, "ann", "no" if lie == "another answer" else "yes")
    team.sound()
    named = "0" * 64 if lie == "an id of nothing" else given.id
    _slip(team, answered=named, actor="bob" if lie == "another person" else "ann")
    assert any("answer" in each for each in _findings(team))


def test_the_control_is_sound(team: AttackedTeam) -> None:
    """The same resume with the true answer has no such finding."""
    given = _signed(team, "ann", "yes")
    _slip(team, answered=given.id, actor="ann")
    assert not any("answer" in each for each in _findings(team))


def test_an_answer_that_only_the_worker_signed_is_none(team: AttackedTeam) -> None:
    """A request of the action answer, approved by the key of the worker, counts for nobody."""
    thread = team.thread("operator")
    statement = thread.prepare_answer("yes", person="ann")
    body = RequestBody(salt=team.salt, statement=statement, reasons=(), answer="yes")
    team.slip(Kind.REQUEST, body, "operator")
    word = attest(key("worker"), statement.digest, Verdict.APPROVE, "she said so")
    team.slip(Kind.APPROVAL, VerdictBody(salt=team.salt, attestation=word), "worker")
    assert team.fresh().signed_answer is None
    assert team.store("operator").requests().answers == ()
