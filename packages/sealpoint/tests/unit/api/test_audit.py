# SPDX-License-Identifier: Apache-2.0
"""Auditing a store on disk: restores, explanations, and evidence that is verified elsewhere."""

import shutil

import pytest

from sealpoint import api
from sealpoint.errors import (
    NeedsApproval,
    ResumeRefused,
    UnknownEntry,
    UnknownThread,
    UsageError,
)
from sealpoint.gate import Measure
from sealpoint.store import CheckpointRef
from sealpoint.world import World as Declared
from tests.deployment import Deployment
from tests.unit.api.place import Place
from tests.unit.gate.team import READ, SHELL, Team
from tests.unit.store.laned import put, results, saved


def test_a_restore_is_told_and_what_follows_is_justified(made: Place) -> None:
    """The trail says what was kept and lost; going on deliberately leaves no finding."""
    with made.open() as store:
        store.thread("t").save(1)
        store.thread("u").save(1)
    shutil.copy(made.path, made.disk / "backup.db")
    with made.open() as store:
        store.thread("t").save(2)
        store.thread("v").save(3)
    shutil.copy(made.disk / "backup.db", made.path)
    plan = made.admin.restore.plan()
    made.admin.restore.accept(plan, reason="the disk died")
    with made.open() as store:
        with pytest.raises(ResumeRefused):
            store.thread("t").save(4)
        store.thread("t").resume(world=None, deliberate="go on")
        store.thread("t").save(4)
        report = store.verify()
        told = [record.summary for record in store.audit(kind="restore")]
        resumed = list(store.audit(thread="t", kind="resume"))[-1]
        data = b"".join(store.export(payloads=True))
        why = store.why(resumed.entry)
    bundle = api.verify_bundle(data, made.admin.trust.export_pin())

    assert report.ok, report.findings
    assert told == [
        "a restored store was accepted: 2 threads kept, 2 cut off or lost: the disk died"
    ]
    assert "rules after-restore" in resumed.summary
    assert [(each.rule, each.measure) for each in why.rules] == [("after-restore", Measure.REASON)]
    assert ("said deliberately", "go on") in why.facts
    assert (bundle.ok, bundle.epoch) == (True, 1)


@pytest.mark.parametrize("how", ["denied", "expired", "moved on", "glass"])
def test_every_end_of_a_request_is_explained(how: str) -> None:
    """Denied, expired, overtaken by a save, or let pass without approvals."""
    world = Deployment()
    team = Team(world)
    team.thread().save(1, world=READ)
    request = team.ask()
    if how == "denied":
        team.store("carl").deny(request.id, reason="no")
        expected = "it was denied by carl"
    elif how == "expired":
        team.later(hours=2)
        expected = "it has expired; approved by nobody yet"
    elif how == "moved on":
        team.approve(request, "ann")
        team.thread().save(2)
        expected = "it was never used: the thread moved on; approved by ann"
    else:
        team.store("chief").break_glass(request.id, reason="fire")
        team.thread().resume(world=SHELL)
        expected = (
            "entry 5 let the run continue, without approval, by breaking the glass; "
            "allowed, not known to be released"
        )
    found = team.store("operator").why(request.id[:8])
    world.close()

    assert found.decision == expected
    assert found.subject.kind == "request"
    assert found.policy is not None
    assert found.policy.digest == team.digest
    assert ("what differs", "+ tool shell") in found.facts


@pytest.mark.parametrize(
    ("approvers", "said"),
    [
        ((), "without approval, by breaking the glass"),
        (("ann",), "with approval, and by breaking the glass"),
    ],
)
def test_broken_glass_is_told_of_the_resume_that_it_let_pass(
    approvers: tuple[str, ...], said: str
) -> None:
    """Before it is spent, by its own entry, and by the resume that spent it."""
    world = Deployment()
    team = Team(world)
    team.thread().save(1, world=READ)
    request = team.ask()
    if approvers:
        team.approve(request, *approvers)
    team.store("chief").break_glass(request.id, reason="fire")
    waiting = team.store("operator").why(request.id)
    team.thread().resume(world=SHELL)
    team.thread().save(2)
    operator = team.store("operator")
    resumed = list(operator.audit(kind="resume"))[-1]
    broken = next(iter(operator.audit(kind="break-glass")))
    found, glass = operator.why(resumed.entry), operator.why(broken.entry)
    world.close()

    names = ", ".join(approvers) or "nobody yet"
    assert waiting.decision == (
        f"it may be spent, since the glass was broken for it; approved by {names}"
    )
    assert found.decision == f"entry {resumed.seq} let the run continue, {said}"
    assert glass.decision == found.decision
    assert [each.kind for each in found.entries] == [
        "request",
        *("approval" for _ in approvers),
        "break-glass",
        "resume",
    ]
    assert "chief" in broken.people
    assert "fire" in broken.summary
    assert found.unjustified == ()


def test_a_verdict_is_explained_by_its_request() -> None:
    """Whoever asks about an approval is told about what it approved."""
    world = Deployment()
    team = Team(world)
    team.thread().save(1, world=READ)
    with pytest.raises(NeedsApproval) as needs:
        team.thread("operator").handoff(to="spare", reason="mine")
    team.approve(needs.value.request, "twin")  # type: ignore[arg-type]
    approval = next(iter(team.store("operator").audit(kind="approval")))
    found = team.store("operator").why(approval.entry)
    world.close()

    assert found.decision == "it waits; approved by twin"
    assert [(each.identity, each.person, each.counts) for each in found.approvals] == [
        ("twin", "worker", True)
    ]
    assert [record.kind for record in found.entries] == ["request", "approval"]


def test_the_newest_checkpoint_is_that_of_the_main_lane() -> None:
    """What a subgraph saved later, and asks, is not what the gate judged; a task's question is."""
    world = Deployment()
    team = Team(world)
    (main, _) = saved(
        team.thread(),
        put(1, "main", world=Declared.of(READ)),
        put(2, "side", "sub", question="of the subgraph?"),
    )
    team.thread().resume(world=READ)
    operator = team.store("operator")
    quiet = dict(operator.why(list(operator.audit(kind="resume"))[-1].entry).facts)
    saved(team.thread(), results("?", "main", "pay", question="pay?"))
    request = team.ask(world=READ, answer="yes")
    asking = dict(operator.why(request.id).facts)
    world.close()

    assert isinstance(main, CheckpointRef)
    for facts in (quiet, asking):
        assert facts["newest checkpoint"] == f"entry {main.seq}, {main.entry}"
    assert ("question" in quiet, asking["question"]) == (False, "pending")
    assert quiet["world it was saved in"] == quiet["world it resumes in"]


def test_what_cannot_be_found_is_refused(made: Place) -> None:
    """Too few digits and other characters name no thread either; digits of nothing."""
    with made.open() as store:
        store.thread("t").save(1)
        for ref in ("1234567", "not-digits", "A" * 64, "0" * 65):
            with pytest.raises((UsageError, UnknownThread)):
                store.why(ref)
        with pytest.raises(UnknownEntry):
            store.why("0" * 64)
