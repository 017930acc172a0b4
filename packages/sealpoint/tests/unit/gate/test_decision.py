# SPDX-License-Identifier: Apache-2.0
"""The decision: each rule, each measure, what nothing can permit, and every reason told."""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from typing import Any

import pytest

from sealpoint.gate import (
    COMPARED_RULES,
    Decision,
    GrantFacts,
    Measure,
    Outcome,
    Policy,
    Reason,
    RolloutFacts,
    Rule,
    decide,
)
from sealpoint.world import LeafChange, LeafClass, WorldDiff, value_digest
from tests.unit.gate.judging import (
    AGE_MAX,
    BARS,
    MEASURES,
    NARROWABLE,
    ORDINARY,
    TAKEOVER_AFTER,
    TRIGGERS,
    difference,
    facts,
    grant,
    measures,
    policy,
    rollout,
    text,
)

_GRANTED = grant("alice", "bob")
_TWO = Measure.approve(2)
_MICROSECOND = timedelta(microseconds=1)

_ALWAYS_TOLD = (Rule.UNKNOWN_OUTCOME, Rule.AFTER_RESTORE)
_WORDS = {
    Rule.OLDER_CHECKPOINT: "the checkpoint is not the newest of thread 'invoice-7'",
    Rule.TOOLS: "the tools are not those of the checkpoint: + tool shell",
    Rule.PERMISSIONS: "the permissions are not those of the checkpoint: + permission net",
    Rule.MODEL: "the model is not that of the checkpoint: + model name",
    Rule.PROMPTS: "the prompts are not those of the checkpoint: + prompt system",
    Rule.TOPOLOGY: "the graph is not built as that of the checkpoint: + topology edges",
    Rule.CODE: "the code is not that of the checkpoint: + code version",
    Rule.APPLICATION: (
        "other modules of the application are not those of the checkpoint: + application jobs"
    ),
    Rule.RUNTIME: "the installed versions are not those of the checkpoint: + runtime langgraph",
    Rule.OTHER: "what the application declares is not that of the checkpoint: + extra region",
    Rule.NARROWER_WORLD: "the run can do less than when it was saved: - permission read",
    Rule.FIRST_WORLD: "a world is declared, and none was when the checkpoint was saved",
    Rule.MISSING_WORLD: "no world is declared, and one was when the checkpoint was saved",
    Rule.ANSWER: "a question is pending and no answer is given",
    Rule.UNKNOWN_OUTCOME: "'worker' resumed with an answer at noon",
    Rule.OLD_AGE: "the checkpoint is 7 days, 0:00:00.000001 old, more than 7 days, 0:00:00",
    Rule.AFTER_RESTORE: "a restore cut the thread, and it has not been executed since",
}

_REASON_HINT = ' (pass deliberate="why" if that is meant)'
_MET = ""

# What each measure comes to: without anything, deliberate, approved by enough, and both.
_TABLE: list[tuple[Measure, str | None, GrantFacts | None, Outcome, str]] = [
    (Measure.RECORD, None, None, Outcome.ALLOW, _MET),
    (Measure.RECORD, "meant", None, Outcome.ALLOW, _MET),
    (Measure.RECORD, None, _GRANTED, Outcome.ALLOW, _MET),
    (Measure.REASON, None, None, Outcome.REFUSE, _REASON_HINT),
    (Measure.REASON, "", None, Outcome.REFUSE, _REASON_HINT),
    (Measure.REASON, " \t\n", None, Outcome.REFUSE, _REASON_HINT),
    (Measure.REASON, "meant", None, Outcome.ALLOW, _MET),
    (Measure.REASON, None, grant("alice"), Outcome.REFUSE, _REASON_HINT),
    (Measure.REASON, "meant", grant("alice"), Outcome.ALLOW, _MET),
    (Measure.REASON, None, _GRANTED, Outcome.ALLOW, _MET),
    (Measure.REASON, None, grant(broken_glass="fire"), Outcome.ALLOW, _MET),
    (_TWO, None, None, Outcome.NEEDS_APPROVAL, " (approvals needed: 2, found: 0)"),
    (_TWO, "meant", None, Outcome.NEEDS_APPROVAL, " (approvals needed: 2, found: 0)"),
    (_TWO, None, grant(), Outcome.NEEDS_APPROVAL, " (approvals needed: 2, found: 0)"),
    (
        _TWO,
        "meant",
        grant("alice"),
        Outcome.NEEDS_APPROVAL,
        " (approvals needed: 2, found: 1)",
    ),
    (
        _TWO,
        None,
        grant("alice", "alice"),
        Outcome.NEEDS_APPROVAL,
        " (approvals needed: 2, found: 1)",
    ),
    (
        _TWO,
        None,
        grant(broken_glass=""),
        Outcome.NEEDS_APPROVAL,
        " (approvals needed: 2, found: 0)",
    ),
    (
        _TWO,
        None,
        grant("alice", broken_glass=" \n"),
        Outcome.NEEDS_APPROVAL,
        " (approvals needed: 2, found: 1)",
    ),
    (_TWO, None, _GRANTED, Outcome.ALLOW, _MET),
    (_TWO, None, grant("alice", "bob", "carol"), Outcome.ALLOW, _MET),
    (_TWO, None, grant(broken_glass="fire"), Outcome.ALLOW, _MET),
    (Measure.REFUSE, None, None, Outcome.REFUSE, " (the policy refuses that)"),
    (Measure.REFUSE, "meant", _GRANTED, Outcome.REFUSE, " (the policy refuses that)"),
    (
        Measure.REFUSE,
        None,
        grant(broken_glass="fire"),
        Outcome.REFUSE,
        " (the policy refuses that)",
    ),
]


def _rules(decision: Decision) -> list[str]:
    return [reason.rule for reason in decision.reasons]


def _under(rule: Rule, measure: Measure) -> Policy:
    """A policy that asks this of the rule, and of every other the opposite end of the scale."""
    other = Measure.REFUSE if measure.passes else Measure.ALLOW
    return Policy.parse(text({**measures(other), rule: str(measure)}).encode())


def test_every_rule_of_a_resume_is_triggered_here() -> None:
    """The triggers of these tests are all the rules but the one for handoffs, in their order."""
    assert [*TRIGGERS, Rule.HANDOFF_BY_OPERATOR] == list(Rule)
    assert list(_WORDS) == list(TRIGGERS)


@pytest.mark.parametrize(
    ("rule", "measure", "deliberate", "given", "outcome", "remedy"),
    [(rule, *row) for rule in TRIGGERS for row in _TABLE],
)
def test_a_rule_comes_to_what_its_measure_says(
    *,
    rule: Rule,
    measure: Measure,
    deliberate: str | None,
    given: GrantFacts | None,
    outcome: Outcome,
    remedy: str,
) -> None:
    """One rule applies: its measure alone decides, and the one reason names rule and finding."""
    found = facts(TRIGGERS[rule], deliberate=deliberate, grant=given)

    assert decide(found, _under(rule, measure)) == Decision(
        outcome=outcome,
        reasons=(Reason(rule=rule.value, measure=measure, words=_WORDS[rule] + remedy),),
        ordinary=False,
        needed=measure.people,
    )


@pytest.mark.parametrize("rule", [rule for rule in TRIGGERS if rule not in _ALWAYS_TOLD])
def test_what_a_policy_allows_is_not_told(rule: Rule) -> None:
    """It is an ordinary continuation then; what is recorded is not."""
    found = facts(TRIGGERS[rule])

    assert decide(found, _under(rule, Measure.ALLOW)) == Decision(
        outcome=Outcome.ALLOW, reasons=(), ordinary=True
    )
    assert _rules(decide(found, _under(rule, Measure.RECORD))) == [rule]


def test_what_is_allowed_is_not_told_beside_what_is_not() -> None:
    """Of two classes that differ only the one that the policy wants to hear of is a reason."""
    found = facts(diff=difference(LeafClass.TOOLS, LeafClass.RUNTIME))

    assert _rules(decide(found, policy(runtime="allow"))) == ["tools"]
    assert _rules(decide(found, policy(runtime="record"))) == ["tools", "runtime"]


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_ordinary_continuation_is_allowed_by_every_policy(measure: Measure) -> None:
    """Where nothing applies the strictest policy allows, and so does having none."""
    allowed = Decision(outcome=Outcome.ALLOW, reasons=(), ordinary=True)

    assert decide(ORDINARY, policy(measure)) == allowed
    assert decide(ORDINARY, None) == allowed
    assert decide(facts(deliberate="meant", grant=_GRANTED), policy(measure)) == allowed


def test_ordinary_continuation_needs_no_declared_world() -> None:
    """A run that never declared a world goes on without one."""
    found = facts(diff=None, world_before=False, world_now=False)

    assert decide(found, policy()) == Decision(outcome=Outcome.ALLOW, reasons=(), ordinary=True)


_BAR_WORDS = {
    "paused": "thread 'invoice-7' is paused: olga: looking at it",
    "not-owner": "thread 'invoice-7' is owned by another identity",
    "busy": (
        "another session of thread 'invoice-7' is 0:04:59.999999 old and may be taken over at "
        "0:05:00"
    ),
    "denied": "the request was denied by carol",
    "expired": "the request has expired",
}


@pytest.mark.parametrize("bar", BARS)
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_what_nothing_permits_is_refused_under_every_policy(bar: str, measure: Measure) -> None:
    """A pause, another owner, a young session, a denial and an expiry are refused by themselves."""
    found = facts(BARS[bar], deliberate="meant")

    assert decide(found, policy(measure)) == Decision(
        outcome=Outcome.REFUSE,
        reasons=(Reason(rule=bar, measure=Measure.REFUSE, words=_BAR_WORDS[bar]),),
        ordinary=False,
    )


@pytest.mark.parametrize("bar", [bar for bar in BARS if bar != "busy"])
def test_what_nothing_permits_is_refused_without_a_policy(bar: str) -> None:
    """The reason is the thing itself: that there is no policy is not one."""
    assert decide(facts(BARS[bar]), None) == Decision(
        outcome=Outcome.REFUSE,
        reasons=(Reason(rule=bar, measure=Measure.REFUSE, words=_BAR_WORDS[bar]),),
        ordinary=False,
    )


@pytest.mark.parametrize("bar", ["paused", "not-owner", "busy"])
def test_neither_approval_nor_break_glass_overrides_what_nothing_permits(bar: str) -> None:
    """A grant, with the glass broken as well, changes nothing about a pause or an owner."""
    given = grant("alice", "bob", broken_glass="fire")
    decision = decide(facts(BARS[bar], newest=False, grant=given), policy(_TWO))

    assert decision.outcome is Outcome.REFUSE
    assert _rules(decision) == [bar, "older-checkpoint"]


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        (grant("alice", "bob", denied_by=("carol",), broken_glass="fire"), ["denied"]),
        (grant("alice", "bob", expired=True, broken_glass="fire"), ["expired"]),
        (grant("alice", denied_by=("carol",), expired=True), ["denied", "expired"]),
    ],
)
def test_a_denied_or_expired_request_grants_nothing(given: GrantFacts, rules: list[str]) -> None:
    """Enough approvals and broken glass count for nothing once a request is over."""
    decision = decide(facts(newest=False, grant=given), policy(_TWO))

    assert decision.outcome is Outcome.REFUSE
    assert _rules(decision) == [*rules, "older-checkpoint"]


def test_everybody_who_denied_is_named() -> None:
    """The reason lists the people, in the order of the facts."""
    decision = decide(facts(grant=grant(denied_by=("dan", "carol"))), policy())

    assert [reason.words for reason in decision.reasons] == ["the request was denied by dan, carol"]


@pytest.mark.parametrize("rule", [rule for rule in TRIGGERS if rule is not Rule.OLD_AGE])
def test_without_a_policy_everything_else_is_refused(rule: Rule) -> None:
    """Neither a reason nor an approval nor broken glass helps where no policy is in force."""
    given = grant("alice", "bob", broken_glass="fire")
    found = facts(TRIGGERS[rule], deliberate="meant", grant=given)

    assert decide(found, None) == Decision(
        outcome=Outcome.REFUSE,
        reasons=(
            Reason(
                rule="no-policy",
                measure=Measure.REFUSE,
                words=(
                    "no policy is in force here, so nothing but an ordinary continuation is allowed"
                ),
            ),
            Reason(rule=rule.value, measure=Measure.REFUSE, words=_WORDS[rule]),
        ),
        ordinary=False,
    )


def test_without_a_policy_there_is_no_age_and_no_takeover_limit() -> None:
    """How old is too old, and how young too young, is for a policy to say."""
    found = facts(age=timedelta(days=4000), living_session=timedelta())

    assert decide(found, None) == Decision(outcome=Outcome.ALLOW, reasons=(), ordinary=True)


def test_every_reason_is_told_in_one_order() -> None:
    """Whatever applies is told: first what nothing permits, then the rules of the policy."""
    everything = facts(
        paused="olga: looking",
        owner=False,
        living_session=timedelta(),
        grant=grant(denied_by=("carol",), expired=True),
        newest=False,
        diff=difference(*LeafClass),
        question=True,
        answered=True,
        unknown="somebody went on",
        age=timedelta(days=8),
        restored=True,
    )
    rules = [
        "older-checkpoint",
        *LeafClass,
        "answer",
        "unknown-outcome",
        "old-age",
        "after-restore",
    ]

    assert _rules(decide(everything, policy())) == [
        "paused",
        "not-owner",
        "busy",
        "denied",
        "expired",
        *rules,
    ]
    assert _rules(decide(everything, None)) == [
        "paused",
        "not-owner",
        "denied",
        "expired",
        "no-policy",
        *(rule for rule in rules if rule != "old-age"),
    ]


@pytest.mark.parametrize(
    ("older", "answer", "deliberate", "given", "outcome", "words"),
    [
        ("record", "reason", None, None, Outcome.REFUSE, ["", _REASON_HINT]),
        ("reason", "record", "meant", None, Outcome.ALLOW, ["", ""]),
        (
            "reason",
            "approve 2",
            "meant",
            None,
            Outcome.NEEDS_APPROVAL,
            ["", " (approvals needed: 2, found: 0)"],
        ),
        (
            "approve 2",
            "reason",
            None,
            grant("alice"),
            Outcome.NEEDS_APPROVAL,
            [" (approvals needed: 2, found: 1)", ""],
        ),
        ("approve 2", "reason", None, _GRANTED, Outcome.ALLOW, ["", ""]),
        (
            "refuse",
            "approve 2",
            "meant",
            _GRANTED,
            Outcome.REFUSE,
            [" (the policy refuses that)", ""],
        ),
        ("reason", "refuse", None, None, Outcome.REFUSE, ["", " (the policy refuses that)"]),
        (
            "approve 1",
            "approve 3",
            None,
            _GRANTED,
            Outcome.NEEDS_APPROVAL,
            ["", " (approvals needed: 3, found: 2)"],
        ),
        ("approve 1", "approve 2", None, _GRANTED, Outcome.ALLOW, ["", ""]),
    ],
)
def test_the_strictest_measure_decides(
    *,
    older: str,
    answer: str,
    deliberate: str | None,
    given: GrantFacts | None,
    outcome: Outcome,
    words: list[str],
) -> None:
    """Of two rules the stricter one decides, and only its words say what is missing."""
    found = facts(newest=False, question=True, deliberate=deliberate, grant=given)
    decision = decide(found, policy(older_checkpoint=older, answer=answer))

    assert decision.outcome is outcome
    assert [(reason.rule, str(reason.measure), reason.words) for reason in decision.reasons] == [
        ("older-checkpoint", older, _WORDS[Rule.OLDER_CHECKPOINT] + words[0]),
        ("answer", answer, _WORDS[Rule.ANSWER] + words[1]),
    ]


@pytest.mark.parametrize("people", [1, 2, 3, 16])
def test_as_many_people_are_needed_as_the_strictest_rule_says(people: int) -> None:
    """One fewer is not enough, and the decision says how many it takes."""
    names = [f"person {number}" for number in range(people)]
    rules = policy(_TWO, tools=f"approve {people}", runtime="approve 1", answer="reason")
    found = facts(diff=difference(LeafClass.TOOLS, LeafClass.RUNTIME), answered=True)
    enough = decide(replace(found, grant=grant(*names, needed=people)), rules)
    fewer = decide(replace(found, grant=grant(*names[1:], needed=people)), rules)

    assert (enough.outcome, enough.needed) == (Outcome.ALLOW, people)
    assert (fewer.outcome, fewer.needed) == (Outcome.NEEDS_APPROVAL, people)
    assert fewer.reasons[0].words.endswith(f" (approvals needed: {people}, found: {people - 1})")


@pytest.mark.parametrize(
    ("asked", "needed", "approved", "outcome"),
    [
        (1, 2, 1, Outcome.NEEDS_APPROVAL),
        (1, 2, 2, Outcome.ALLOW),
        (3, 2, 2, Outcome.NEEDS_APPROVAL),
        (3, 2, 3, Outcome.ALLOW),
    ],
)
def test_a_request_needs_what_its_people_were_told_and_what_the_policy_asks(
    *, asked: int, needed: int, approved: int, outcome: Outcome
) -> None:
    """One that was made for fewer people is not enough, nor is one that its own people left."""
    given = grant(*("alice", "bob", "carol")[:approved], needed=asked)
    decision = decide(facts(newest=False, grant=given), policy(Measure.approve(needed)))
    most = max(asked, needed)
    missing = f" (approvals needed: {most}, found: {approved})"

    assert (decision.outcome, decision.needed) == (outcome, needed)
    assert decision.reasons[0].words.endswith(missing) is (outcome is not Outcome.ALLOW)


def test_a_request_that_needs_nobody_is_no_approval() -> None:
    """Where a reason would do, an empty request does not stand for one."""
    given = grant(needed=0)

    assert decide(facts(newest=False, grant=given), policy(Measure.REASON)).outcome is (
        Outcome.REFUSE
    )
    assert decide(facts(newest=False, grant=given), policy(_TWO)).outcome is Outcome.NEEDS_APPROVAL


_CHANGED = {rule: TRIGGERS[rule] for rule in COMPARED_RULES}
_MANY = rollout("alice", "bob", "carol", needed=1)
_NAMED = " (accepted by rollout abababababab (release 7 of the agent))"


@pytest.mark.parametrize("measure", [Measure.REASON, Measure.approve(1), _TWO], ids=str)
@pytest.mark.parametrize("rule", sorted(COMPARED_RULES))
def test_a_rollout_lets_a_change_of_worlds_pass_and_is_named(rule: Rule, measure: Measure) -> None:
    """The reason is told, with the rollout, and asks for nothing more."""
    found = facts(_CHANGED[rule], rollouts=(rollout("alice", "bob"),))

    assert decide(found, _under(rule, measure)) == Decision(
        outcome=Outcome.ALLOW,
        reasons=(Reason(rule=rule, measure=Measure.RECORD, words=_WORDS[rule] + _NAMED),),
        ordinary=False,
        rolled_out=True,
    )


def test_a_rollout_lets_every_class_pass_at_once() -> None:
    """Whatever differs between its two worlds, also what went."""
    diff = difference(*LeafClass, narrower=NARROWABLE)
    narrowed = difference(LeafClass.CODE, narrower=[LeafClass.TOOLS])
    found = [decide(facts(diff=each, rollouts=(_MANY,)), policy(_TWO)) for each in (diff, narrowed)]

    assert [decision.outcome for decision in found] == [Outcome.ALLOW] * 2
    assert _rules(found[0]) == [*LeafClass]
    assert _rules(found[1]) == ["code", "narrower-world"]
    for reason in (*found[0].reasons, *found[1].reasons):
        assert reason.measure == Measure.RECORD
        assert reason.words.endswith(_NAMED)


@pytest.mark.parametrize("measure", [Measure.ALLOW, Measure.RECORD], ids=str)
def test_a_rollout_is_not_used_where_the_policy_lets_it_pass(measure: Measure) -> None:
    """The entry names no rollout that nobody needed."""
    found = facts(TRIGGERS[Rule.TOOLS], rollouts=(_MANY,))

    assert decide(found, policy(measure)) == decide(replace(found, rollouts=()), policy(measure))


@pytest.mark.parametrize("rule", sorted(COMPARED_RULES))
def test_a_rollout_never_permits_what_the_policy_refuses(rule: Rule) -> None:
    """Not the class that is refused, and no other class beside it."""
    alone = decide(facts(_CHANGED[rule], rollouts=(_MANY,)), _under(rule, Measure.REFUSE))
    both = difference(LeafClass.CODE, LeafClass.TOOLS)
    beside = decide(facts(diff=both, rollouts=(_MANY,)), policy(_TWO, code="refuse"))

    assert (alone.outcome, alone.rolled_out) == (Outcome.REFUSE, False)
    assert (beside.outcome, beside.rolled_out) == (Outcome.REFUSE, True)
    assert [str(reason.measure) for reason in beside.reasons] == ["record", "refuse"]


@pytest.mark.parametrize("given", [(), (_MANY,)], ids=["no rollout", "rollout"])
def test_without_a_policy_a_rollout_permits_nothing(given: tuple[RolloutFacts, ...]) -> None:
    """There is nothing that it could have been approved by."""
    decision = decide(facts(TRIGGERS[Rule.TOOLS], rollouts=given), None)

    assert (decision.outcome, decision.rolled_out) == (Outcome.REFUSE, False)
    assert _rules(decision) == ["no-policy", "tools"]


_BESIDE: Mapping[str, Mapping[str, Any]] = {
    rule: TRIGGERS[rule]
    for rule in TRIGGERS
    if rule not in {*COMPARED_RULES, Rule.FIRST_WORLD, Rule.MISSING_WORLD}
}


@pytest.mark.parametrize("rule", _BESIDE)
def test_a_rollout_covers_nothing_but_the_change_of_worlds(rule: str) -> None:
    """An answer, an older checkpoint, age and a restore ask for what they ask for beside it."""
    found = facts(TRIGGERS[Rule.TOOLS], _BESIDE[rule], rollouts=(_MANY,))
    waits = decide(found, policy(_TWO))
    refused = decide(found, Policy.parse(text({**measures(_TWO), rule: "refuse"}).encode()))
    granted = decide(replace(found, grant=_GRANTED), policy(_TWO))

    assert (waits.outcome, waits.needed) == (Outcome.NEEDS_APPROVAL, 2)
    assert {each.rule: str(each.measure) for each in waits.reasons} == {
        "tools": "record",
        rule: "approve 2",
    }
    assert refused.outcome is Outcome.REFUSE
    assert granted.outcome is Outcome.ALLOW


@pytest.mark.parametrize("bar", BARS)
def test_a_rollout_never_permits_what_nothing_permits(bar: str) -> None:
    """A pause, another owner, a young session, a denial and an expiry are refused beside it."""
    found = facts(TRIGGERS[Rule.TOOLS], BARS[bar], rollouts=(_MANY,))
    decision = decide(found, policy(_TWO))

    assert decision.outcome is Outcome.REFUSE
    assert _rules(decision) == [bar, "tools"]


@pytest.mark.parametrize(
    "change",
    [TRIGGERS[Rule.FIRST_WORLD], TRIGGERS[Rule.MISSING_WORLD], {"diff": None}],
    ids=["first", "missing", "not to be compared"],
)
def test_a_rollout_lets_no_world_pass_that_was_not_compared(change: Mapping[str, Any]) -> None:
    """It names two worlds: one that is missing, first or unreadable is neither of them."""
    found = facts(change, rollouts=(_MANY,))
    decision = decide(found, policy(_TWO))

    assert decision == decide(replace(found, rollouts=()), policy(_TWO))
    assert (decision.outcome, decision.rolled_out) == (Outcome.NEEDS_APPROVAL, False)


@pytest.mark.parametrize(
    ("asked", "needed", "approved", "passes"),
    [
        (2, 2, ("alice",), False),
        (2, 2, ("alice", "alice"), False),
        (2, 2, ("alice", "bob"), True),
        (1, 2, ("alice",), False),
        (1, 2, ("alice", "bob"), True),
        (2, 1, ("alice",), False),
        (2, 1, ("alice", "bob"), True),
        (0, 1, (), False),
    ],
)
def test_a_rollout_needs_what_its_people_were_told_and_what_the_policy_asks(
    *, asked: int, needed: int, approved: tuple[str, ...], passes: bool
) -> None:
    """Of the two numbers the greater, and a person counts once."""
    given = (rollout(*approved, needed=asked),)
    decision = decide(facts(TRIGGERS[Rule.TOOLS], rollouts=given), policy(Measure.approve(needed)))

    assert decision.rolled_out is passes
    assert decision.outcome is (Outcome.ALLOW if passes else Outcome.NEEDS_APPROVAL)
    assert decision.needed == (0 if passes else needed)


def _step(leaf: str, before: Any, after: Any, who: str = "alice") -> RolloutFacts:
    """A rollout that one person approved, of one change of a leaf."""
    digests = [None if value is None else value_digest(value) for value in (before, after)]
    given = rollout(who, needed=1)
    return replace(given, id=f"{who}{leaf}", differences=((leaf, digests[0], digests[1]),))


def _changed(leaf: str, before: Any, after: Any) -> WorldDiff:
    return WorldDiff(changed=(LeafChange(leaf, before, after),))


@pytest.mark.parametrize(
    ("given", "passes"),
    [
        ([("a", "b")], True),
        ([("a", "x")], False),
        ([("x", "b")], False),
        ([("b", "a")], False),
        ([(None, "b")], False),
        ([("a", None)], False),
        ([("a", "x"), ("x", "b")], True),
        ([("x", "b"), ("a", "x")], True),
        ([("a", None), (None, "b")], True),
        ([("a", "x"), ("y", "b")], False),
    ],
)
def test_a_change_is_accepted_from_the_value_that_was_seen(
    given: list[tuple[Any, Any]], *, passes: bool
) -> None:
    """Another value before is another change; changes that follow each other are seen in full."""
    found = tuple(_step("tool.pay", *each) for each in given)
    decision = decide(
        facts(diff=_changed("tool.pay", "a", "b"), rollouts=found), policy(Measure.approve(1))
    )

    assert decision.rolled_out is passes
    assert (decision.outcome is Outcome.ALLOW) is passes


def test_several_rollouts_accept_together_and_each_for_its_own_people() -> None:
    """One that two approved does not lend them to one that a single person approved."""
    diff = difference(LeafClass.TOOLS, LeafClass.MODEL)
    tool, model = (
        rollout("alice", needed=1, leaves=[leaf]) for leaf in ("tool.shell", "model.name")
    )
    both = facts(diff=diff, rollouts=(tool, model))
    more = replace(both, rollouts=(tool, replace(model, approved_by=("alice", "bob"))))
    rules = policy(Measure.approve(1), model="approve 2")

    assert decide(both, policy(Measure.approve(1))).outcome is Outcome.ALLOW
    assert decide(both, rules).outcome is Outcome.NEEDS_APPROVAL
    assert decide(more, rules).outcome is Outcome.ALLOW


def test_the_rest_is_asked_about_by_itself() -> None:
    """A prompt beside an accepted tool asks for what prompts ask for, and a removal for less."""
    diff = difference(LeafClass.TOOLS, LeafClass.PROMPTS, narrower=[LeafClass.TOOLS])
    found = facts(diff=diff, rollouts=(rollout("alice", "bob", leaves=["tool.shell"]),))
    rules = policy(_TWO, prompts="reason", narrower_world="record")
    decision = decide(found, rules)

    assert {each.rule: str(each.measure) for each in decision.reasons} == {
        "tools": "record",
        "prompts": "reason",
        "narrower-world": "record",
    }
    assert decide(replace(found, deliberate="a better text"), rules).outcome is Outcome.ALLOW


def test_a_rollout_that_needs_nobody_stands_for_a_reason() -> None:
    """Where the policy asks for a reason, the one that it was proposed with is one."""
    found = facts(TRIGGERS[Rule.TOOLS], rollouts=(rollout(needed=0),))

    assert decide(found, policy(Measure.REASON)).rolled_out
    assert decide(found, policy(Measure.approve(1))).outcome is Outcome.NEEDS_APPROVAL


@pytest.mark.parametrize(
    ("question", "answered", "words"),
    [
        (True, True, "an answer is given to a pending question (the policy refuses that)"),
        (True, False, "a question is pending and no answer is given (the policy refuses that)"),
        (
            False,
            True,
            (
                "an answer, an input or an edit is brought in, and no question is pending "
                "(the policy refuses that)"
            ),
        ),
    ],
)
def test_a_question_or_an_answer_is_judged(*, question: bool, answered: bool, words: str) -> None:
    """The one rule for answers applies to a pending question as well as to an answer without."""
    decision = decide(facts(question=question, answered=answered), policy())

    assert decision == Decision(
        outcome=Outcome.REFUSE,
        reasons=(Reason(rule="answer", measure=Measure.REFUSE, words=words),),
        ordinary=False,
    )


@pytest.mark.parametrize("narrower", [(), NARROWABLE], ids=["", "narrower"])
@pytest.mark.parametrize("differs", [(), *((each,) for each in LeafClass), tuple(LeafClass)])
def test_a_difference_of_worlds_meets_the_rules_it_says(
    *, differs: tuple[LeafClass, ...], narrower: tuple[LeafClass, ...]
) -> None:
    """Each class has its rule, and where something only went the world is narrower."""
    diff = difference(*differs, narrower=narrower)
    less = set(narrower) - set(differs)
    expected = [*differs, *(["narrower-world"] if less else [])]

    assert _rules(decide(facts(diff=diff), policy())) == expected


def test_a_reason_tells_what_differs_in_its_class_alone() -> None:
    """So that the words of a rule are about what the rule is about."""
    diff = difference(LeafClass.CODE, LeafClass.TOOLS, narrower=[LeafClass.PERMISSIONS])

    assert {each.rule: each.words for each in decide(facts(diff=diff), policy()).reasons} == {
        rule: f"{_WORDS[rule]} (the policy refuses that)"
        for rule in (Rule.TOOLS, Rule.CODE, Rule.NARROWER_WORLD)
    }


def test_worlds_that_cannot_be_compared_count_as_missing() -> None:
    """Both are declared and there is no difference to look at: that is no ordinary continuation."""
    assert decide(facts(diff=None), policy()) == Decision(
        outcome=Outcome.REFUSE,
        reasons=(
            Reason(
                rule="missing-world",
                measure=Measure.REFUSE,
                words=(
                    "the world cannot be compared with that of the checkpoint "
                    "(the policy refuses that)"
                ),
            ),
        ),
        ordinary=False,
    )


@pytest.mark.parametrize(
    ("age", "rules"),
    [(AGE_MAX, []), (AGE_MAX - _MICROSECOND, []), (AGE_MAX + _MICROSECOND, ["old-age"])],
)
def test_a_checkpoint_is_too_old_only_beyond_the_bound(age: timedelta, rules: list[str]) -> None:
    """Exactly the bound is not too old."""
    assert _rules(decide(facts(age=age), policy())) == rules


@pytest.mark.parametrize(
    ("age", "rules"),
    [
        (timedelta(days=-1), ["busy"]),
        (timedelta(), ["busy"]),
        (TAKEOVER_AFTER - _MICROSECOND, ["busy"]),
        (TAKEOVER_AFTER, []),
        (TAKEOVER_AFTER + _MICROSECOND, []),
        (None, []),
    ],
)
def test_a_session_may_be_taken_over_at_the_bound(age: timedelta | None, rules: list[str]) -> None:
    """A session of exactly that age may be taken over, and without one there is none to take."""
    assert _rules(decide(facts(living_session=age), policy())) == rules


def test_a_session_may_always_be_taken_over_where_the_policy_says_nothing() -> None:
    """With 0s no session is too young, not even one that seems to come from the future."""
    source = policy().source.replace(b'takeover_after = "5m"', b'takeover_after = "0s"')
    found = facts(living_session=timedelta(seconds=-9))

    assert decide(found, Policy.parse(source)).ordinary


def test_a_session_from_the_future_is_told_as_new() -> None:
    """The age in the words is never below zero."""
    decision = decide(facts(living_session=timedelta(seconds=-9)), policy())

    assert [reason.words for reason in decision.reasons] == [
        "another session of thread 'invoice-7' is 0:00:00 old and may be taken over at 0:05:00"
    ]


@pytest.mark.parametrize(
    "value",
    [
        ORDINARY,
        _GRANTED,
        Reason(rule="paused", measure=Measure.REFUSE, words=""),
        Decision(outcome=Outcome.ALLOW, reasons=(), ordinary=True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_facts_and_decisions_cannot_be_changed_afterwards(value: Any) -> None:
    """They are frozen and given by keyword, so that what was judged is what is recorded."""
    name = type(value).__slots__[0]

    with pytest.raises(FrozenInstanceError):
        setattr(value, name, None)
    with pytest.raises(TypeError):
        type(value)(*(getattr(value, slot) for slot in type(value).__slots__))


def test_outcomes_have_the_words_that_are_recorded() -> None:
    """The values are part of what is stored."""
    assert [*Outcome] == ["allow", "needs-approval", "refuse"]


def test_a_reason_has_a_json_form() -> None:
    """What applies, what is asked for because of it, and what was found, as texts."""
    (reason,) = decide(facts(newest=False), policy()).reasons

    assert reason.as_dict() == {
        "rule": "older-checkpoint",
        "measure": "refuse",
        "words": reason.words,
    }


@pytest.mark.parametrize(("chars", "more"), [(2048, False), (2049, True)])
def test_a_long_difference_is_told_as_far_as_it_fits(chars: int, *, more: bool) -> None:
    """Whole lines up to 2,048 characters, then how many more there are."""
    first, second = "a" * 1000, "b" * (chars - 1000 - 2 * len("+ tool "))
    diff = WorldDiff(added=tuple(LeafChange(f"tool.{each}") for each in (first, second, "c")))

    told = decide(facts(diff=diff), policy()).reasons[0].words
    if more:
        assert f"+ tool {first}; and 2 more" in told
    else:
        assert f"+ tool {first}; + tool {second}; and 1 more" in told
