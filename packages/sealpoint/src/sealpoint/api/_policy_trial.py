# SPDX-License-Identifier: Apache-2.0
"""Trying a policy: what it would have asked about the resumes that a store has recorded.

The review of each thread gathers the facts of every recorded resume from verified entries, and the
trial decides about the same facts by another policy, without the approvals and rollouts of that
time. It writes nothing. Resumes that were refused have left no entry, so nobody can try them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from sealpoint.api._why import reviewer
from sealpoint.errors import SealpointError, UsageError
from sealpoint.gate import (
    COMPARED_RULES,
    Facts,
    Measure,
    Policies,
    Policy,
    RolloutBook,
    Rule,
    decide,
)
from sealpoint.ledger import GenesisBody, ResumeBody
from sealpoint.store import Core, ThreadWalk
from sealpoint.world import json_form


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedResume:
    """A recorded resume, judged by another policy."""

    at: datetime
    thread: str
    entry: str
    """The hash of its entry."""
    world: str | None
    """The digest of the world that it resumed in."""
    rules: tuple[str, ...]
    """The rules of the tried policy that would have asked for something."""
    asks: Measure
    """The measure of the tried policy."""
    asked: Measure
    """The measure of the policy of that time."""
    differences: tuple[str, ...]
    """How the world differs from that of the checkpoint, one line each."""

    @property
    def is_of_a_deploy(self) -> bool:
        """Whether one rollout could accept it for every thread at once."""
        return bool(self.rules) and COMPARED_RULES.issuperset(map(Rule, self.rules))

    def as_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {
            **json_form(self, "at", "thread", "entry", "world", "rules"),
            "asks": str(self.asks),
            "asked": str(self.asked),
            **json_form(self, "is_of_a_deploy", "differences"),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTrial:
    """The result of trying a policy on the resumes of a store."""

    policy: Policy
    since: datetime
    resumes: int
    """How many resumes were judged."""
    found: tuple[TriedResume, ...]
    """Those of which it asks for more than a record, or for something else than was asked then;
    oldest first."""
    failures: tuple[tuple[str, str], ...]
    """The threads that do not verify: name or id, message."""

    @property
    def asking(self) -> tuple[TriedResume, ...]:
        """The resumes for which the policy asks for more than a record."""
        return tuple(each for each in self.found if not each.asks.passes)

    @property
    def differing(self) -> int:
        """How many resumes it asks for something else than was asked then."""
        return sum(each.asks != each.asked for each in self.found)


def try_policy(
    core: Core, policies: Policies, book: RolloutBook, policy: Policy, since: datetime
) -> PolicyTrial:
    """Judge every recorded resume since a time by a policy; see `Store.try_policy`."""
    if since.tzinfo is None:
        raise UsageError("since: expected a time with a time zone")
    count, found, failures = 0, list[TriedResume](), list[tuple[str, str]]()
    core.renewed_trust()
    for walk in ThreadWalk.each(core):
        try:
            for tried in _tried(core, walk, policies, book, policy):
                if tried.at >= since:
                    count += 1
                    if not tried.asks.passes or tried.asks != tried.asked:
                        found.append(tried)
        except SealpointError as error:
            failures.append((walk.name or walk.thread.hex(), error.message))
    found.sort(key=lambda each: (each.at, each.entry))
    return PolicyTrial(
        policy=policy,
        since=since,
        resumes=count,
        found=tuple(found),
        failures=tuple(failures),
    )


def _tried(
    core: Core, walk: ThreadWalk, policies: Policies, book: RolloutBook, policy: Policy
) -> Iterator[TriedResume]:
    review, name = reviewer(core, policies, book), walk.name
    for step in walk.steps():
        review.take(step)
        if isinstance(step.body, GenesisBody):
            name = step.body.name
        if review.judged is None or not isinstance(step.body, ResumeBody):
            continue
        facts, then = review.judged
        asks, rules = _asked(facts, policy)
        yield TriedResume(
            at=step.entry.header.at,
            thread=name or step.entry.header.thread,
            entry=step.entry.hash.hex(),
            world=step.body.world,
            rules=rules,
            asks=asks,
            asked=_asked(facts, then)[0],
            differences=() if facts.diff is None else facts.diff.lines(),
        )


def _asked(facts: Facts, policy: Policy | None) -> tuple[Measure, tuple[str, ...]]:
    """Return what a policy asks for before anybody approved or said why, and by which rules."""
    told = tuple(rule for rule in facts.told if rule is not Rule.OLD_AGE)
    bare = replace(facts, deliberate=None, grant=None, rollouts=(), told=told, living_session=None)
    measures = {each.rule: each.measure for each in decide(bare, policy).reasons}
    # A measure that only records asks nothing, and an ordinary continuation has no measure.
    asks = max(measures.values(), default=Measure.RECORD)
    asks = Measure.RECORD if asks.passes else asks
    return asks, tuple(rule for rule, each in measures.items() if not each.passes)
