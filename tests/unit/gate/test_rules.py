# SPDX-License-Identifier: Apache-2.0
"""The decision: each rule, each measure, what nothing can permit, and every reason told."""

import itertools
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from typing import Any, cast

import pytest

from sealpoint.gate import (
    Decision,
    GrantFacts,
    Measure,
    Outcome,
    Policy,
    Reason,
    Rule,
    decide,
)
from sealpoint.world import WorldDiff
from tests.unit.gate.judging import (
    AGE_MAX,
    BARS,
    ORDINARY,
    TAKEOVER_AFTER,
    TRIGGERS,
    Difference,
    difference,
    facts,
    grant,
    measures,
    policy,
    text,
)

_GRANTED = grant("alice", "bob")
_WIDER = cast("Difference", difference(widening=True))
_MICROSECOND = timedelta(microseconds=1)

_WORDS = {
    Rule.OLDER_CHECKPOINT: "the checkpoint is not the newest of thread 'invoice-7'",
    Rule.CHANGED_CODE: "the code is not that of the checkpoint: + tool shell; ~ tool read",
    Rule.WIDER_WORLD: "the world is wider than that of the checkpoint: + tool shell; ~ tool read",
    Rule.NARROWER_WORLD: (
        "the world is narrower than that of the checkpoint: + tool shell; ~ tool read"
    ),
    Rule.FIRST_WORLD: "a world is declared, and none was when the checkpoint was saved",
    Rule.MISSING_WORLD: "no world is declared, and one was when the checkpoint was saved",
    Rule.ANSWER: "a question is pending and no answer is given",
    Rule.OLD_AGE: "the checkpoint is 7 days, 0:00:00.000001 old, more than 7 days, 0:00:00",
    Rule.AFTER_RESTORE: "a restore cut the thread, and it has not been executed since",
}

_DELIBERATE_HINT = ' (pass deliberate="why" if that is meant)'
_MET = ""

# What each measure comes to: without anything, deliberate, approved by enough, and both.
_TABLE: list[tuple[Measure, str | None, GrantFacts | None, Outcome, str]] = [
    (Measure.ALLOW, None, None, Outcome.ALLOW, _MET),
    (Measure.ALLOW, "meant", None, Outcome.ALLOW, _MET),
    (Measure.ALLOW, None, _GRANTED, Outcome.ALLOW, _MET),
    (Measure.DELIBERATE, None, None, Outcome.REFUSE, _DELIBERATE_HINT),
    (Measure.DELIBERATE, "", None, Outcome.REFUSE, _DELIBERATE_HINT),
    (Measure.DELIBERATE, " \t\n", None, Outcome.REFUSE, _DELIBERATE_HINT),
    (Measure.DELIBERATE, "meant", None, Outcome.ALLOW, _MET),
    (Measure.DELIBERATE, None, grant("alice"), Outcome.REFUSE, _DELIBERATE_HINT),
    (Measure.DELIBERATE, "meant", grant("alice"), Outcome.ALLOW, _MET),
    (Measure.DELIBERATE, None, _GRANTED, Outcome.ALLOW, _MET),
    (Measure.DELIBERATE, None, grant(broken_glass="fire"), Outcome.ALLOW, _MET),
    (Measure.APPROVAL, None, None, Outcome.NEEDS_APPROVAL, " (approvals needed: 2, found: 0)"),
    (Measure.APPROVAL, "meant", None, Outcome.NEEDS_APPROVAL, " (approvals needed: 2, found: 0)"),
    (Measure.APPROVAL, None, grant(), Outcome.NEEDS_APPROVAL, " (approvals needed: 2, found: 0)"),
    (
        Measure.APPROVAL,
        "meant",
        grant("alice"),
        Outcome.NEEDS_APPROVAL,
        " (approvals needed: 2, found: 1)",
    ),
    (
        Measure.APPROVAL,
        None,
        grant("alice", "alice"),
        Outcome.NEEDS_APPROVAL,
        " (approvals needed: 2, found: 1)",
    ),
    (
        Measure.APPROVAL,
        None,
        grant(broken_glass=""),
        Outcome.NEEDS_APPROVAL,
        " (approvals needed: 2, found: 0)",
    ),
    (
        Measure.APPROVAL,
        None,
        grant("alice", broken_glass=" \n"),
        Outcome.NEEDS_APPROVAL,
        " (approvals needed: 2, found: 1)",
    ),
    (Measure.APPROVAL, None, _GRANTED, Outcome.ALLOW, _MET),
    (Measure.APPROVAL, None, grant("alice", "bob", "carol"), Outcome.ALLOW, _MET),
    (Measure.APPROVAL, None, grant(broken_glass="fire"), Outcome.ALLOW, _MET),
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
    other = Measure.REFUSE if measure is Measure.ALLOW else Measure.ALLOW
    return Policy.parse(text({**measures(other), rule: measure}).encode())


def test_every_rule_of_a_resume_is_triggered_here() -> None:
    """The triggers of these tests are all the rules but the one for handoffs, in their order."""
    assert [*TRIGGERS, Rule.HANDOFF_BY_OPERATOR] == list(Rule)
    assert list(_WORDS) == list(TRIGGERS)


@pytest.mark.parametrize(
    ("rule", "measure", "deliberate", "given", "outcome", "remedy"),
    [
        (rule, *row)
        for rule in TRIGGERS
        for row in _TABLE
        # No policy allows this one; the tests of the policy show it.
        if (rule, row[0]) != (Rule.AFTER_RESTORE, Measure.ALLOW)
    ],
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
    )


@pytest.mark.parametrize("measure", Measure)
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
    "not-owner": "thread 'invoice-7' is owned by somebody else",
    "busy": (
        "another session of thread 'invoice-7' is 0:04:59.999999 old and may be taken over at "
        "0:05:00"
    ),
    "denied": "the request was denied by carol",
    "expired": "the request has expired",
}


@pytest.mark.parametrize("bar", BARS)
@pytest.mark.parametrize("measure", Measure)
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
    decision = decide(facts(BARS[bar], newest=False, grant=given), policy(Measure.APPROVAL))

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
    decision = decide(facts(newest=False, grant=given), policy(Measure.APPROVAL))

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
        diff=difference(code_changed=True, widening=True),
        question=True,
        answered=True,
        age=timedelta(days=8),
        restored=True,
    )
    rules = [
        "older-checkpoint",
        "changed-code",
        "wider-world",
        "answer",
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
        ("allow", "deliberate", None, None, Outcome.REFUSE, ["", _DELIBERATE_HINT]),
        ("deliberate", "allow", "meant", None, Outcome.ALLOW, ["", ""]),
        (
            "deliberate",
            "approval",
            "meant",
            None,
            Outcome.NEEDS_APPROVAL,
            ["", " (approvals needed: 2, found: 0)"],
        ),
        (
            "approval",
            "deliberate",
            None,
            grant("alice"),
            Outcome.NEEDS_APPROVAL,
            [" (approvals needed: 2, found: 1)", ""],
        ),
        ("approval", "deliberate", None, _GRANTED, Outcome.ALLOW, ["", ""]),
        (
            "refuse",
            "approval",
            "meant",
            _GRANTED,
            Outcome.REFUSE,
            [" (the policy refuses that)", ""],
        ),
        ("deliberate", "refuse", None, None, Outcome.REFUSE, ["", " (the policy refuses that)"]),
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
    assert [(reason.rule, reason.measure, reason.words) for reason in decision.reasons] == [
        ("older-checkpoint", older, _WORDS[Rule.OLDER_CHECKPOINT] + words[0]),
        ("answer", answer, _WORDS[Rule.ANSWER] + words[1]),
    ]


def test_one_approval_is_enough_where_one_is_needed() -> None:
    """The number is the policy's."""
    found = facts(newest=False, grant=grant("alice"))

    assert decide(found, policy(Measure.APPROVAL, needed=1)).outcome is Outcome.ALLOW
    assert decide(found, policy(Measure.APPROVAL, needed=2)).outcome is Outcome.NEEDS_APPROVAL


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


@pytest.mark.parametrize(
    ("same", "code_changed", "narrowing", "widening"),
    list(itertools.product([False, True], repeat=4)),
)
def test_a_difference_of_worlds_meets_the_rules_it_says(
    *,
    same: bool,
    code_changed: bool,
    narrowing: bool,
    widening: bool,
) -> None:
    """Each flag has its rule, and a difference that claims none of them counts as wider."""
    diff = difference(same=same, code_changed=code_changed, narrowing=narrowing, widening=widening)
    unknown = not (same or code_changed or narrowing or widening)
    expected = [
        *(["changed-code"] if code_changed else []),
        *(["wider-world"] if widening or unknown else []),
        *(["narrower-world"] if narrowing and not widening else []),
    ]

    assert _rules(decide(facts(diff=diff), policy())) == expected


def test_worlds_that_cannot_be_compared_count_as_wider() -> None:
    """Both are declared and there is no difference to look at: that is no ordinary continuation."""
    assert decide(facts(diff=None), policy()) == Decision(
        outcome=Outcome.REFUSE,
        reasons=(
            Reason(
                rule="wider-world",
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
    first, second = "a" * 1000, "b" * (chars - 1000)
    diff = replace(_WIDER, told=(first, second, "c"))

    told = decide(facts(diff=cast("WorldDiff", diff)), policy()).reasons[0].words
    if more:
        assert f"{first}; and 2 more" in told
    else:
        assert f"{first}; {second}; and 1 more" in told
