# SPDX-License-Identifier: Apache-2.0
"""What holds for all facts and all policies: more reasons and stricter measures never permit."""

from dataclasses import replace
from datetime import timedelta

import hypothesis.strategies as st
from hypothesis import given

from sealpoint.gate import (
    COMPARED_RULES,
    Facts,
    GrantFacts,
    Measure,
    Outcome,
    Policy,
    Rule,
    decide,
)
from sealpoint.world import Code, LeafClass, World
from tests.unit.gate.judging import (
    ALL_LEAVES,
    BARS,
    MEASURES,
    NARROWABLE,
    TAKEOVER_AFTER,
    TRIGGERS,
    difference,
    measures,
    rollout,
    text,
)

_WORDS = st.none() | st.sampled_from(["", " ", "meant"])
_PEOPLE = st.lists(st.sampled_from(["alice", "bob", "carol"]), max_size=3).map(tuple)
_TIMES = st.timedeltas(min_value=timedelta(days=-1), max_value=timedelta(days=20))
_GRANTS = st.none() | st.builds(
    GrantFacts,
    approved_by=_PEOPLE,
    denied_by=st.just(()) | _PEOPLE,
    expired=st.booleans(),
    broken_glass=_WORDS,
    needed=st.integers(min_value=0, max_value=3),
)
_ROLLOUTS = st.lists(
    st.builds(
        lambda people, needed, leaves: rollout(*people, needed=needed, leaves=leaves),
        _PEOPLE,
        st.integers(min_value=0, max_value=3),
        st.sets(st.sampled_from(sorted(ALL_LEAVES))),
    ),
    max_size=2,
).map(tuple)
_WORLDS = st.builds(
    World,
    code=st.none() | st.builds(Code, version=st.sampled_from(["1", "2"])),
    permissions=st.sets(st.sampled_from(["read", "write"])),
)
_REAL = st.builds(World.diff, _WORLDS, _WORLDS)
_ANY_DIFF = st.builds(
    lambda differs, narrower: difference(*differs, narrower=narrower),
    st.sets(st.sampled_from(LeafClass)),
    st.sets(st.sampled_from(NARROWABLE)),
)
_FACTS = st.builds(
    Facts,
    thread=st.text(),
    paused=st.none() | st.text(),
    owner=st.booleans(),
    diff=st.none() | _REAL | _ANY_DIFF,
    world_before=st.booleans(),
    world_now=st.booleans(),
    newest=st.booleans(),
    question=st.booleans(),
    answered=st.booleans(),
    age=_TIMES,
    restored=st.booleans(),
    living_session=st.none() | _TIMES,
    deliberate=_WORDS,
    grant=_GRANTS,
    rollouts=_ROLLOUTS,
)


_MEASURES = st.sampled_from([*MEASURES, Measure.approve(3)])


@st.composite
def _rule_measures(draw: st.DrawFn) -> dict[str, str]:
    """Every rule with any measure that it may have."""
    least = {
        Rule.UNKNOWN_OUTCOME: Measure.RECORD,
        Rule.AFTER_RESTORE: Measure.RECORD,
        Rule.HANDOFF_BY_OPERATOR: Measure.approve(1),
    }
    return {rule: str(max(draw(_MEASURES), least.get(rule, Measure.ALLOW))) for rule in Rule}


def _policy(rules: dict[str, str]) -> Policy:
    return Policy.parse(text(rules).encode())


_POLICIES = st.none() | st.builds(_policy, _rule_measures())
_RANK = {Outcome.ALLOW: 0, Outcome.NEEDS_APPROVAL: 1, Outcome.REFUSE: 1}


@given(_FACTS, _POLICIES)
def test_a_decision_is_ordinary_if_and_only_if_nothing_applies(
    facts: Facts, policy: Policy | None
) -> None:
    """Whatever the facts, there is a decision, always the same, with words for every reason."""
    decision = decide(facts, policy)
    rules = [reason.rule for reason in decision.reasons]

    assert decision == decide(facts, policy)
    assert decision.ordinary is (decision.reasons == ())
    assert decision.outcome is Outcome.ALLOW or not decision.ordinary
    assert len(rules) == len(set(rules))
    assert all(reason.words for reason in decision.reasons)


@given(_FACTS, _POLICIES)
def test_nothing_is_allowed_that_a_rule_refuses_or_nobody_has_met(
    facts: Facts, policy: Policy | None
) -> None:
    """Read from the design once more: what each measure must have for state to be released."""
    decision = decide(facts, policy)
    found = [reason.measure for reason in decision.reasons]
    people = set() if facts.grant is None else set(facts.grant.approved_by)
    told = 0 if facts.grant is None else facts.grant.needed
    asked = max((measure.people for measure in found), default=0)
    broken = facts.grant is not None and (facts.grant.broken_glass or "").strip() != ""
    granted = policy is not None and (len(people) >= max(1, asked, told) or broken)
    meant = (facts.deliberate or "").strip() != ""
    if Measure.REFUSE in found:
        expected = Outcome.REFUSE
    elif asked:
        expected = Outcome.ALLOW if granted else Outcome.NEEDS_APPROVAL
    elif Measure.REASON in found:
        expected = Outcome.ALLOW if granted or meant else Outcome.REFUSE
    else:
        expected = Outcome.ALLOW

    assert decision.outcome is expected
    if decision.outcome is Outcome.ALLOW:
        assert facts.paused is None
        assert facts.owner
        assert facts.grant is None or not (facts.grant.denied_by or facts.grant.expired)


_ONE_MORE = st.sampled_from(
    [
        *(
            change
            for rule, change in TRIGGERS.items()
            if rule not in {Rule.FIRST_WORLD, Rule.MISSING_WORLD}
        ),
        *(BARS[bar] for bar in ("paused", "not-owner", "busy")),
        {"answered": True},
    ]
)


@given(_FACTS, _POLICIES, _ONE_MORE)
def test_one_more_reason_never_permits(
    facts: Facts, policy: Policy | None, change: dict[str, object]
) -> None:
    """A fact that makes one more rule apply turns no refusal, and no request, into an allow."""
    if "diff" in change:
        # One more difference comes on top of worlds that are the same.
        facts = replace(facts, diff=difference())
    if "living_session" in change:
        facts = replace(facts, living_session=None)
    before = decide(facts, policy)
    after = decide(replace(facts, **change), policy)  # type: ignore[arg-type]

    assert _RANK[after.outcome] >= _RANK[before.outcome]
    assert {reason.rule for reason in after.reasons} >= {reason.rule for reason in before.reasons}


@given(facts=_FACTS, policy=_POLICIES, denied=st.booleans())
def test_a_denial_or_an_expiry_never_permits(
    facts: Facts, policy: Policy | None, *, denied: bool
) -> None:
    """A request that is over refuses, whoever approved it before."""
    given_up = facts.grant or GrantFacts(
        approved_by=(), denied_by=(), expired=False, broken_glass=None
    )
    over = replace(given_up, denied_by=("carol",)) if denied else replace(given_up, expired=True)

    assert decide(replace(facts, grant=over), policy).outcome is Outcome.REFUSE


@given(_FACTS, _rule_measures(), st.sampled_from(Rule), _MEASURES)
def test_a_stricter_measure_never_permits(
    facts: Facts, rules: dict[str, str], rule: Rule, measure: Measure
) -> None:
    """Raising the measure of one rule turns no refusal, and no request, into an allow."""
    before = _policy(rules)
    after = _policy({**rules, rule: str(max(before.measure(rule), measure))})
    one, other = decide(facts, before), decide(facts, after)

    assert _RANK[other.outcome] >= _RANK[one.outcome]
    assert {reason.rule for reason in other.reasons} >= {reason.rule for reason in one.reasons}


@given(_FACTS, _POLICIES)
def test_a_rollout_changes_nothing_but_what_is_asked_of_a_change_of_worlds(
    facts: Facts, policy: Policy | None
) -> None:
    """Every other rule asks for what it asks for without it, and nothing goes untold."""
    without = decide(replace(facts, rollouts=()), policy)
    found = decide(facts, policy)
    one, other = (
        [(each.rule, each.measure) for each in decision.reasons if each.rule not in COMPARED_RULES]
        for decision in (without, found)
    )

    assert one == other
    for each in found.reasons:
        if each.rule in COMPARED_RULES and policy is not None:
            assert each.measure in (Measure.RECORD, policy.measure(each.rule))
    assert {each.rule for each in found.reasons} >= {each.rule for each in without.reasons}
    assert found == without or found.rolled_out


@given(_FACTS, _rule_measures())
def test_having_no_policy_never_permits(facts: Facts, rules: dict[str, str]) -> None:
    """No policy allows less than any policy, except that it knows no age and no takeover limit."""
    young = replace(facts, age=timedelta(), living_session=TAKEOVER_AFTER)
    without = decide(young, None)
    with_policy = decide(young, _policy(rules))

    assert _RANK[without.outcome] >= _RANK[with_policy.outcome]
    assert with_policy.ordinary or not without.ordinary


@given(_FACTS, st.sampled_from(MEASURES))
def test_the_measure_of_a_handoff_says_nothing_about_a_resume(
    facts: Facts, measure: Measure
) -> None:
    """It is for whoever writes the handoff to ask for."""
    rules = measures(measure)
    one, other = (
        decide(facts, _policy({**rules, "handoff-by-operator": handoff}))
        for handoff in ("approve 1", "refuse")
    )

    assert one == other
