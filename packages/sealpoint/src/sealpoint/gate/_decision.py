# SPDX-License-Identifier: Apache-2.0
"""The decision whether a saved run may resume, made from verified facts and a policy.

`decide` is pure and total: it reads no clock and no store, it raises nothing, and the same facts
and policy always give the same decision, so that an audit can judge again. It reports every reason
that applies, not only the one that decides. The caller must ensure that the facts are true: who
owns the thread, whose approvals count, what the request was about.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum, unique
from functools import lru_cache

from sealpoint.gate._policy import COMPARED_RULES, RULE_WORDS, Measure, Policy, Rule
from sealpoint.store import Release
from sealpoint.world import LeafClass, WorldDiff, value_digest

DENIED_HINT = (
    "The denial stands until the request expires or the thread moves on: sealpoint requests --all "
    "shows who said no, and why. Until then, only something else can be asked for: another answer, "
    "checkpoint or world."
)

_BUSY = "busy"
_COMPARED_MAX = 16
_CLASS_WORDS = {
    LeafClass.TOOLS: "the tools are not those of the checkpoint",
    LeafClass.PERMISSIONS: "the permissions are not those of the checkpoint",
    LeafClass.MODEL: "the model is not that of the checkpoint",
    LeafClass.PROMPTS: "the prompts are not those of the checkpoint",
    LeafClass.TOPOLOGY: "the graph is not built as that of the checkpoint",
    LeafClass.CODE: "the code is not that of the checkpoint",
    LeafClass.APPLICATION: "other modules of the application are not those of the checkpoint",
    LeafClass.RUNTIME: "the installed versions are not those of the checkpoint",
    LeafClass.OTHER: "what the application declares is not that of the checkpoint",
}
_LINES_CHARS_MAX = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantFacts:
    """The state of the request for exactly this resume."""

    approved_by: tuple[str, ...]
    """The identities whose approval counts, one for each person."""
    denied_by: tuple[str, ...]
    """The same for denials."""
    expired: bool
    broken_glass: str | None
    """The permitted operators who turned it into a grant, and why."""
    needed: int = 0
    """How many approvals the request stated when the approvers signed it."""


Difference = tuple[str, str | None, str | None]
"""A leaf, the digest of its value before, and that of its value after; None: it is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFacts:
    """A rollout in force that accepts differences between worlds."""

    id: str
    """The digest of its statement."""
    approved_by: tuple[str, ...]
    """The identities whose approval counts, one for each person."""
    needed: int
    """How many approvals the proposal stated when the approvers signed it."""
    reason: str
    """The reason that the proposer gave."""
    differences: tuple[Difference, ...]
    """The differences that it accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that a decision depends on, apart from the policy."""

    thread: str
    """Its name."""
    paused: str | None
    """The operator who paused the thread, and the reason."""
    owner: bool
    """Whether the caller of the resume owns the thread."""
    diff: WorldDiff | None
    """The change from the world of the checkpoint to the current world, if both are declared."""
    world_before: bool
    """Whether a world was declared when the checkpoint was saved."""
    world_now: bool
    """Whether a world is declared now."""
    newest: bool
    """Whether the checkpoint is the newest one of the thread."""
    deleted: int
    """How many newer checkpoints or results were deleted before a session saved something new."""
    copied: bool
    """Whether the checkpoint is a copy, from another thread or from a file."""
    question: bool
    """Whether a question is pending."""
    answered: bool
    """Whether an answer is given."""
    age: timedelta
    """The age of the checkpoint."""
    restored: bool
    """Whether an accepted restore has cut the thread and nothing was executed since."""
    living_session: timedelta | None
    """How long ago another session, which may still be running, last moved the thread."""
    deliberate: str | None
    """The reason that the caller gave to show that the resume is intended."""
    grant: GrantFacts | None
    rollouts: tuple[RolloutFacts, ...] = ()
    """The rollouts that accept differences between these worlds for many threads at once."""
    told: tuple[Rule, ...] = ()
    """For an audit: the rules that the entry itself records; they count as if they applied."""
    also_older: tuple[str, ...] = ()
    """Descriptions of other starting points of the run that are not the newest."""
    stranger: str | None = None
    """Says that a stranger to the identity that resumes saved the state or deleted something, if
    the thread has come by an unapproved handoff since."""
    imported: bool = False
    """Whether the copy was imported from a file."""
    holder: str | None = None
    """The identity whose run currently holds the thread, and since when."""
    unknown: str | None = None
    """The identity that resumed with an answer and has saved nothing since, and when."""
    edits: bool = False
    """Whether the call only edits the state, so that nothing will run."""
    world_faults: tuple[str, ...] = ()
    """Why the world of the checkpoint was not allowed; the comparison then uses another world."""


def world_facts(
    thread: str,
    diff: WorldDiff | None,
    *,
    world_before: bool,
    world_now: bool,
    newest: bool,
    deliberate: str | None,
    grant: GrantFacts | None,
    rollouts: tuple[RolloutFacts, ...],
) -> Facts:
    """Return only the facts that decide whether a session may run in its world.

    Whether the checkpoint was the newest is one of them: an older checkpoint may name a wider world
    that was allowed once.
    """
    return Facts(
        thread=thread,
        paused=None,
        owner=True,
        diff=diff,
        world_before=world_before,
        world_now=world_now,
        newest=newest,
        deleted=0,
        copied=False,
        question=False,
        answered=False,
        age=timedelta(),
        restored=False,
        living_session=None,
        deliberate=deliberate,
        grant=grant,
        rollouts=rollouts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One rule that applies, the measure that it requires, and a description."""

    rule: str
    """A rule of the policy, or a refusal that no policy can change: `paused`, `not-owner`, `busy`,
    `denied`, `expired`, `no-policy`, `no-right`."""
    measure: Measure
    words: str

    def as_dict(self) -> dict[str, str]:
        """The JSON form."""
        return {"rule": str(self.rule), "measure": str(self.measure), "words": self.words}


@unique
class Outcome(StrEnum):
    """The gate's answer."""

    ALLOW = "allow"
    NEEDS_APPROVAL = "needs-approval"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome with every reason that applies."""

    outcome: Outcome
    reasons: tuple[Reason, ...]
    ordinary: bool
    """Whether no rule applies: the run continues in the ordinary way."""
    needed: int = 0
    """How many approvals the resume needs; 0 if none."""
    rolled_out: bool = False
    """Whether rollouts accept differences between the worlds that the policy asks about."""
    release: Release | None = None
    """The release that was judged; None where only facts were judged."""

    @property
    def concerns_people(self) -> bool:
        """Whether people must approve, or a question is involved: then the run's input is bound."""
        return any(each.rule == Rule.ANSWER or each.measure.asks_people for each in self.reasons)

    @property
    def busy(self) -> bool:
        """Whether the only ground for refusal is another run, or a session that is too recent."""
        return {each.rule for each in self.reasons if each.measure == Measure.REFUSE} == {_BUSY}


def decide(facts: Facts, policy: Policy | None) -> Decision:
    """Judge a resume.

    Args:
            facts: The verified facts.
            policy: The policy in force; None if the roster names none for the namespace.
    """
    # (1) Refusals that no policy can lift.
    reasons = list(_barred(facts, policy))
    # (2) Every rule that applies, each with its measure.
    found = _reasons(facts, policy)
    # (3) A difference that rollouts accept is recorded, and requires nothing more.
    rolled_out = False
    if facts.diff is not None and policy is not None and facts.rollouts:
        accepted = accepted_leaves(facts.diff, policy, facts.rollouts)
        rolled_out = bool(accepted)
        if accepted:
            rest = compared_reasons(facts.diff.without(accepted), policy)
            found = list(_with_the_rest(found, rest, facts.rollouts))
    # (4) A reason that the policy simply allows is not reported.
    found = [each for each in found if each.measure > Measure.ALLOW]
    # (5) Without a policy, only an ordinary continuation passes.
    if found and policy is None:
        words = "no policy is in force here, so nothing but an ordinary continuation is allowed"
        reasons.append(Reason(rule="no-policy", measure=Measure.REFUSE, words=words))
    # (6) The strictest measure decides; if it is not met, the words say how to meet it.
    strictest = max((each.measure for each in (*reasons, *found)), default=Measure.ALLOW)
    outcome, remedy = _outcome(strictest, facts, policy)
    reasons += [
        replace(each, words=each.words + remedy) if each.measure == strictest else each
        for each in found
    ]
    return Decision(
        outcome=outcome,
        reasons=tuple(reasons),
        ordinary=not reasons,
        needed=strictest.people,
        rolled_out=rolled_out,
    )


def _reasons(facts: Facts, policy: Policy | None) -> list[Reason]:
    applying = dict(_applying(facts, policy))
    applying |= {rule: RULE_WORDS[rule] for rule in facts.told if rule not in applying}
    return [
        Reason(rule=rule, measure=_measure(rule, policy, edits=facts.edits), words=words)
        for rule, words in applying.items()
    ]


def _measure(rule: Rule, policy: Policy | None, *, edits: bool = False) -> Measure:
    if policy is None:
        return Measure.REFUSE
    if edits and rule is Rule.UNKNOWN_OUTCOME:
        return Measure.RECORD  # an edit runs nothing; the gate judges the next run
    return policy.measure(rule)


def asked_leaves(diff: WorldDiff, policy: Policy) -> dict[str, Measure]:
    """Return the leaves whose difference a policy asks about, each with its strictest measure."""
    less, asked = diff.less, dict[str, Measure]()
    for change, _, after in diff.values():
        is_less = not after and change.leaf in less
        rule = Rule.NARROWER_WORLD if is_less else Rule(change.leaf_class)
        measure = max(policy.rules[rule], asked.get(change.leaf, Measure.ALLOW))
        if not measure.passes:
            asked[change.leaf] = measure
    return asked


def accepted_leaves(
    diff: WorldDiff, policy: Policy, rollouts: Iterable[RolloutFacts]
) -> frozenset[str]:
    """Return the leaves whose difference rollouts accept, of those that a policy asks about.

    A rollout accepts a leaf to change from the value that its approvers saw to the value that they
    saw. Several accepted changes may follow each other: who accepted A to B and who accepted B to C
    have seen all that changes from A to C. A refusal of the policy is never accepted, and a rollout
    with too few approvals for the measure of a difference does not count for it.
    """
    asked = asked_leaves(diff, policy)
    steps: dict[str, list[tuple[str | None, str | None, int]]] = {}
    for rollout in rollouts:
        people = len(set(rollout.approved_by))
        for leaf, before, after in rollout.differences if people >= rollout.needed else ():
            if leaf in asked:
                steps.setdefault(leaf, []).append((before, after, people))
    return frozenset(
        change.leaf
        for change, before, after in diff.values()
        if change.leaf in steps
        and asked[change.leaf] != Measure.REFUSE
        and _is_reached(
            _digest(before),
            _digest(after),
            [step[:2] for step in steps[change.leaf] if step[2] >= asked[change.leaf].people],
        )
    )


def _digest(values: tuple[object, ...]) -> str | None:
    return value_digest(values[0]) if values else None


def _is_reached(
    before: str | None, after: str | None, steps: Sequence[tuple[str | None, str | None]]
) -> bool:
    """Whether accepted changes lead from one value of a leaf to another."""
    reached, new = {before}, {before}
    while new:
        new = {later for earlier, later in steps if earlier in new} - reached
        reached |= new
    return after in reached


def _with_the_rest(
    found: Sequence[Reason], rest: Sequence[Reason], rollouts: Sequence[RolloutFacts]
) -> Iterator[Reason]:
    """Yield the reasons, with those about worlds reduced to what the rollouts do not accept."""
    left: Mapping[str, Reason] = {each.rule: each for each in rest}
    named = ", ".join(f"{each.id[:12]} ({each.reason})" for each in rollouts)
    some = "rollout" if len(rollouts) == 1 else "rollouts"
    for each in found:
        if each.rule not in COMPARED_RULES:
            yield each
        elif each.rule in left:
            yield replace(each, words=f"{left[each.rule].words} (beyond {some} {named})")
        else:
            words = f"{each.words} (accepted by {some} {named})"
            yield replace(each, measure=Measure.RECORD, words=words)
    known = {each.rule for each in found}
    yield from (each for each in rest if each.rule not in known)


def refused_for(decision: Decision, words: str) -> Decision:
    """Return the same decision for an identity that has no right to resume at all."""
    reasons = (_refusal("no-right", words), *decision.reasons)
    return replace(decision, outcome=Outcome.REFUSE, reasons=reasons, ordinary=False)


def refusal_hint(decision: Decision, thread: str) -> str | None:
    """Return a hint for a decision that does not allow the resume; None for the default hint."""
    rules = {each.rule for each in decision.reasons}
    if "paused" in rules:
        return f"An operator ends it: sealpoint unpause {thread!r} --reason WHY"
    if "denied" in rules:
        return DENIED_HINT
    asked = [each for each in decision.reasons if not each.measure.passes]
    if not asked or not COMPARED_RULES.issuperset(each.rule for each in asked):
        return None
    if any(each.measure == Measure.REFUSE for each in asked):
        return None
    once = (
        "Another person answers the request: sealpoint approve ID --reason WHY"
        if decision.needed
        else 'For this call alone pass deliberate="why"'
    )
    return (
        f"{once}; for all threads at once: sealpoint rollout plan --graph MODULE:OBJECT shows the "
        "change, and sealpoint rollout propose has it accepted."
    )


def _barred(facts: Facts, policy: Policy | None) -> Iterator[Reason]:
    """Yield each refusal that no policy can lift."""
    thread = repr(facts.thread)
    if facts.paused is not None:
        yield _refusal("paused", f"thread {thread} is paused: {facts.paused}")
    if not facts.owner:
        yield _refusal("not-owner", f"thread {thread} is owned by another identity")
    if facts.holder is not None:
        yield _refusal(_BUSY, f"a run is under way: {facts.holder}")
    elif policy is not None and facts.living_session is not None:
        # A clock that was set back must not make a session appear younger than zero.
        age = max(facts.living_session, timedelta())
        if age < policy.takeover_after:
            yield _refusal(
                _BUSY,
                f"another session of thread {thread} is {age} old and may be taken over at "
                f"{policy.takeover_after}",
            )
    if facts.grant is not None:
        if facts.grant.denied_by:
            yield _refusal("denied", f"the request was denied by {_listed(facts.grant.denied_by)}")
        if facts.grant.expired:
            yield _refusal("expired", "the request has expired")


def _refusal(rule: str, words: str) -> Reason:
    return Reason(rule=rule, measure=Measure.REFUSE, words=words)


def _applying(facts: Facts, policy: Policy | None) -> Iterator[tuple[Rule, str]]:
    """Yield the rules that apply, in their order, each with a description."""
    if older := list(_older(facts)):
        yield Rule.OLDER_CHECKPOINT, "; ".join(older)
    yield from _world(facts)
    if facts.question and facts.answered:
        yield Rule.ANSWER, "an answer is given to a pending question"
    elif facts.question:
        yield Rule.ANSWER, "a question is pending and no answer is given"
    elif facts.answered:
        yield (
            Rule.ANSWER,
            "an answer, an input or an edit is brought in, and no question is pending",
        )
    if facts.unknown is not None:
        yield Rule.UNKNOWN_OUTCOME, facts.unknown
    age_max = None if policy is None else policy.age_max
    if age_max is not None and facts.age > age_max:
        yield Rule.OLD_AGE, f"the checkpoint is {facts.age} old, more than {age_max}"
    if facts.restored:
        yield Rule.AFTER_RESTORE, "a restore cut the thread, and it has not been executed since"


def _older(facts: Facts) -> Iterator[str]:
    """Yield each way in which a checkpoint differs from the newest state of the run."""
    if not facts.newest:
        yield f"the checkpoint is not the newest of thread {facts.thread!r}"
    yield from facts.also_older
    if facts.deleted:
        yield f"newer checkpoints, or results of tasks, have been deleted ({facts.deleted})"
    if facts.copied and facts.imported:
        yield "the checkpoint was imported from a file, where nobody had signed it"
    elif facts.copied:
        yield "the checkpoint is a copy of one of another thread"
    if facts.stranger is not None:
        yield f"{facts.stranger}, and the thread was handed over since without approvals"


def _world(facts: Facts) -> Iterator[tuple[Rule, str]]:
    """Yield the rules about declared worlds; a change of unknown direction counts as wider."""
    diff, because = facts.diff, ""
    if facts.world_faults:
        because = f" (compared with what was allowed: {'; '.join(facts.world_faults)})"
    if diff is not None:
        yield from ((rule, words + because) for rule, words in _compared(_The(diff)))
    elif facts.world_faults:
        yield Rule.MISSING_WORLD, f"the world cannot be compared{because}"
    elif facts.world_before and facts.world_now:
        yield Rule.MISSING_WORLD, "the world cannot be compared with that of the checkpoint"
    elif facts.world_now:
        yield Rule.FIRST_WORLD, "a world is declared, and none was when the checkpoint was saved"
    elif facts.world_before:
        yield Rule.MISSING_WORLD, "no world is declared, and one was when the checkpoint was saved"


def compared_reasons(diff: WorldDiff, policy: Policy | None) -> tuple[Reason, ...]:
    """Return what a policy requires because of a difference between worlds alone."""
    return tuple(
        Reason(rule=rule, measure=_measure(rule, policy), words=words)
        for rule, words in _compared(_The(diff))
    )


class _The:
    """An immutable difference between worlds, compared by object identity for the cache."""

    __slots__ = ("diff",)

    def __init__(self, diff: WorldDiff) -> None:
        self.diff = diff

    def __hash__(self) -> int:
        return id(self.diff)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _The) and other.diff is self.diff


@lru_cache(maxsize=_COMPARED_MAX)
def _compared(the: _The) -> tuple[tuple[Rule, str], ...]:
    """Return the rules that apply because of a difference, each with a description of it."""
    diff = the.diff
    lines, narrower = diff.by_class(), diff.narrower
    made = [
        (Rule(each), f"{_CLASS_WORDS[each]}: {_joined_lines(lines[each])}")
        for each in LeafClass
        if each in diff.differs
    ]
    if narrower:
        gone = [line for each in LeafClass if each in narrower for line in lines[each]]
        words = f"the run can do less than when it was saved: {_joined_lines(gone)}"
        made.append((Rule.NARROWER_WORLD, words))
    return tuple(made)


def _joined_lines(lines: Sequence[str]) -> str:
    """Join the differences up to a length limit; approvers see all of them elsewhere."""
    chars = 0
    for place, line in enumerate(lines):
        chars += len(line)
        if chars > _LINES_CHARS_MAX:
            return "; ".join([*lines[:place], f"and {len(lines) - place} more"])
    return "; ".join(lines)


def _outcome(strictest: Measure, facts: Facts, policy: Policy | None) -> tuple[Outcome, str]:
    """Return whether the strictest measure is met, and the words to add if it is not."""
    if strictest.passes:
        return Outcome.ALLOW, ""
    if policy is None:
        return Outcome.REFUSE, ""
    if strictest == Measure.REFUSE:
        return Outcome.REFUSE, " (the policy refuses that)"
    grant = facts.grant
    approvals = 0 if grant is None else len(set(grant.approved_by))
    needed = max(1, strictest.people, 0 if grant is None else grant.needed)
    if approvals >= needed or (grant is not None and _has_content(grant.broken_glass)):
        return Outcome.ALLOW, ""
    if strictest.asks_people:
        return Outcome.NEEDS_APPROVAL, f" (approvals needed: {needed}, found: {approvals})"
    if _has_content(facts.deliberate):
        return Outcome.ALLOW, ""
    return Outcome.REFUSE, ' (pass deliberate="why" if that is meant)'


def _has_content(reason: str | None) -> bool:
    """Whether a reason has content: a blank text does not count."""
    return reason is not None and bool(reason.strip())


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)
