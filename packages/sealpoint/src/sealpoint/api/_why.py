# SPDX-License-Identifier: Apache-2.0
"""Explaining a decision: the rules, the facts and the policy of that time.

Everything is read from the verified thread, and the policy is the one that the decision names.
Erased data can no longer be shown, and the explanation says that it is gone.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple, cast

from sealpoint.api._store_location import read_pin
from sealpoint.audit import (
    NOT_RELEASED,
    AuditRecord,
    BundleReport,
    record_of,
    select_threads,
    store_chain_record,
)
from sealpoint.audit import verify_bundle as verify_lines
from sealpoint.errors import PolicyInvalid, Tampered, UnknownEntry, WorldInvalid
from sealpoint.gate import (
    COMPARED_RULES,
    RULE_WORDS,
    Measure,
    Newest,
    Policies,
    Policy,
    Reason,
    Reviewer,
    RolloutBook,
    Rule,
    compared_reasons,
)
from sealpoint.ledger import (
    KINDS,
    STORE_CHAIN,
    ChainStep,
    ExpiryBody,
    HandoffBody,
    Kind,
    RequestBody,
    ResumeBody,
    VerdictBody,
    link_hash,
    parse_body,
    parse_header,
)
from sealpoint.signing import (
    Statement,
    Tally,
    TrustPin,
    Verdict,
    begins_digest,
    count,
)
from sealpoint.storage import Record
from sealpoint.store import Core, Release, ThreadWalk, read_world
from sealpoint.world import World, WorldDiff, json_form, visible

# The content of an explanation.


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyApproval:
    """One person's answer to a request."""

    identity: str
    """Empty if the signer is not in the roster."""
    person: str
    time: datetime
    """When it was recorded."""
    verdict: str
    reason: str
    counts: bool
    """Whether it counted, by the roster of the decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The explanation of a decision."""

    subject: AuditRecord
    """The entry in question; for a request, the entry that made it."""
    decision: str
    """The decision, in a sentence."""
    rules: tuple[Reason, ...]
    """Every rule that applied, with its measure by the policy of that time."""
    facts: tuple[tuple[str, str], ...]
    """The facts of the decision, each with its name."""
    policy: Policy | None
    """The policy of that time, with its text in `source`; None if none was named, or it is gone."""
    approvals: tuple[WhyApproval, ...]
    entries: tuple[AuditRecord, ...]
    """The entries that it rests on, oldest first."""
    unjustified: tuple[str, ...]
    """The faults that the audit finds by the policy of that time."""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        policy: dict[str, Any] | None = None
        if self.policy is not None:
            policy = json_form(self.policy, "name", "digest")
            policy["text"] = self.policy.source.decode()
        rules = [each.as_dict() for each in self.rules]
        return json_form(self) | {"rules": rules, "facts": dict(self.facts), "policy": policy}


# The gate's review of the verified entries: for an open store and for a bundle.


def reviewer(
    core: Core,
    policies: Policies,
    book: RolloutBook,
) -> Reviewer:
    """Return a reviewer for the decisions of a thread of an open store."""
    rollouts = book.history()
    return Reviewer(
        policies.get,
        {} if rollouts is None else {core.namespace: rollouts},
    )


def verify_bundle(
    source: bytes | BinaryIO, trust: TrustPin | str | os.PathLike[str]
) -> BundleReport:
    """Verify an evidence bundle, without its store: only the pin is needed.

    It verifies everything that a reader of the store would verify, except the states, and judges
    every resume and handoff again by the policy of its time. The proof ends at the head of each
    thread that the report names: later entries may exist.

    Args:
        source: The bundle, or a file that is open for reading its bytes.
        trust: The pin of the store, or the path of one.

    Raises:
        BundleInvalid: The data is not a bundle, or not as it was exported.
        NotTrusted: It belongs to another store, or a signer had no right to sign.
        Tampered, Forked: An entry is not what was written.
        RolledBack: Its roster is older than the pin, a cut or a restore says.
    """
    known: dict[str, Policy] = {}

    def judge(blobs: Mapping[str, bytes]) -> Any:
        def policy(digest: str) -> Policy:
            if digest not in known:
                if digest not in blobs:
                    raise PolicyInvalid(
                        f"policy {digest[:12]}: the store does not hold this policy"
                    )
                known[digest] = Policy.parse(blobs[digest])
            return known[digest]

        return Reviewer(policy).take

    return verify_lines(source, read_pin(trust), judge)


# The search for the basis of a decision on a verified thread.
#
# It keeps the entries between the basis before an entry and the next entry that moved the basis: a
# request, the answers to it and the entry that used it are all in that range.


class Explaining:
    """Explains one entry, with one walk through its thread."""

    def __init__(
        self, core: Core, policies: Policies, book: RolloutBook, walk: ThreadWalk, seq: int
    ) -> None:
        self._core = core
        self._policies = policies
        self._walk = walk
        self._seq = seq
        self._review = reviewer(core, policies, book)
        self._name = ""
        self._steps: list[ChainStep] = []
        """The steps since the basis before the subject, which a decision rests on."""
        self._newest: Newest | None = None
        self._unjustified: tuple[str, ...] = ()
        self._release: Release | None = None
        """The release of the decision, made again from the entries before it."""

    def explain(self) -> Why:
        """Explain the entry.

        Raises:
            Tampered, NotTrusted, RolledBack, Forked, Unanchored: The thread does not verify.
        """
        subject, spending, released = self._gathered()
        request = self._request_of(subject)
        decided = spending or subject
        statement = None if request is None else request.body.statement
        policy = self._policy(decided, statement)
        approvals = self._approvals(statement, decided)
        mine = [step for step in self._steps if self._concerns(step, request, subject, spending)]
        return Why(
            subject=record_of(subject, self._name, released=released),
            decision=self._decision(subject, request, spending, released=released),
            rules=self._rules(decided, request, policy),
            facts=tuple(self._facts(decided, request)),
            policy=policy,
            approvals=approvals,
            entries=tuple(
                record_of(step, self._name, released=released or step is not decided)
                for step in mine
            ),
            unjustified=self._unjustified,
        )

    def _gathered(self) -> tuple[ChainStep, ChainStep | None, bool]:
        """Return the entry, the one that uses its request, and whether its session has written."""
        subject: ChainStep | None = None
        closing: ChainStep | None = None
        released = True
        for step in self._walk.steps():
            header = step.entry.header
            if header.seq == self._seq and step.before is not None:
                self._newest = self._review.newest(header, step.before)
            judged = self._review.take(step)
            if closing is not None:
                released = released or _is_saved_in(step, closing)
                continue
            self._steps.append(step)
            subject = step if header.seq == self._seq else subject
            if KINDS[header.kind].moves_basis and subject is None:
                self._steps = [step]
            elif KINDS[header.kind].moves_basis:
                closing, released = step, header.kind is not Kind.RESUME
                self._unjustified, self._release = judged, self._review.release
        self._name = self._walk.name
        if subject is None:
            raise UnknownEntry(f"entry {self._seq}: its thread has no such entry")
        return self._spending(subject, closing, released=released)

    def _spending(
        self, subject: ChainStep, closing: ChainStep | None, *, released: bool
    ) -> tuple[ChainStep, ChainStep | None, bool]:
        """Return the same, without an entry that moved the basis for another reason."""
        if closing is None or closing is subject:
            return subject, None, released
        if not self._spends(closing, self._request_of(subject)):
            self._unjustified, self._release = (), None
            return subject, None, True
        return subject, closing, released

    def _request_of(self, subject: ChainStep) -> ChainStep | None:
        """Return the request that an entry makes, answers or uses."""
        body = subject.body
        if isinstance(body, RequestBody):
            return subject
        digest: str | None = None
        if isinstance(body, VerdictBody):
            digest = body.attestation.statement
        elif isinstance(body, ExpiryBody | ResumeBody):
            digest = body.request
        elif isinstance(body, HandoffBody) and body.statement is not None:
            digest = body.statement.digest
        for step in self._steps:
            if isinstance(step.body, RequestBody) and step.body.statement.digest == digest:
                return step
        return None

    @staticmethod
    def _spends(step: ChainStep, request: ChainStep | None) -> bool:
        if request is None:
            return False
        statement: Statement = request.body.statement
        body = step.body
        if isinstance(body, ResumeBody):
            return body.request == statement.digest
        return isinstance(body, HandoffBody) and body.statement == statement

    def _concerns(
        self,
        step: ChainStep,
        request: ChainStep | None,
        subject: ChainStep,
        spending: ChainStep | None,
    ) -> bool:
        if step is subject or step is request or step is spending:
            return True
        digest = None if request is None else request.body.statement.digest
        body = step.body
        if isinstance(body, VerdictBody):
            return body.attestation.statement == digest
        if isinstance(body, ExpiryBody):
            return body.request == digest
        return step.entry.header.kind in (Kind.PAUSE, Kind.UNPAUSE)

    def _decision(
        self,
        subject: ChainStep,
        request: ChainStep | None,
        spending: ChainStep | None,
        *,
        released: bool,
    ) -> str:
        decided = spending or subject
        kind = decided.entry.header.kind
        if kind is Kind.RESUME:
            how = self._how_it_resumed(decided, request)
            words = f"entry {decided.entry.seq} let the run continue, {how}"
            return words if released else f"{words}; {NOT_RELEASED}"
        if kind is Kind.HANDOFF:
            return f"entry {decided.entry.seq} gave the thread to another owner"
        if request is None:
            return "nothing was decided: the entry only records what happened"
        return self._state_of_request(request, decided)

    def _how_it_resumed(self, decided: ChainStep, request: ChainStep | None) -> str:
        if request is not None:
            tally = self._tally(request.body.statement, decided)
            if not tally.approved_by:
                return "without approval, by breaking the glass"
            glass = ", and by breaking the glass" if tally.broken_glass_by else ""
            return f"with approval{glass}"
        if decided.body is not None and decided.body.rollouts:
            named = [f"rollout {each.digest[:12]}" for each in decided.body.rollouts]
            return f"by {' and '.join(named)}"
        return "without anybody's approval"

    def _state_of_request(self, request: ChainStep, decided: ChainStep) -> str:
        """Describe the state of a request that was not used."""
        tally = self._tally(request.body.statement, decided)
        if tally.denied_by:
            return f"it was denied by {', '.join(visible(name) for name in tally.denied_by)}"
        said = ", ".join(visible(name) for name in tally.approved_by) or "nobody yet"
        newest = self._steps[-1]
        if newest is not request and KINDS[newest.entry.header.kind].moves_basis:
            return f"it was never used: the thread moved on; approved by {said}"
        if request.body.statement.expired_at(self._core.now(newest.entry.header.at)):
            return f"it has expired; approved by {said}"
        if tally.broken_glass_by:
            return f"it may be spent, since the glass was broken for it; approved by {said}"
        return f"it waits; approved by {said}"

    def _tally(self, statement: Statement, decided: ChainStep) -> Tally:
        roster = decided.chain.roster_at(decided.entry.header.roster) or decided.chain.roster
        words = [
            step.body.attestation for step in self._steps if isinstance(step.body, VerdictBody)
        ]
        return count(words, statement=statement, roster=roster, now=decided.entry.header.at)

    def _approvals(
        self, statement: Statement | None, decided: ChainStep
    ) -> tuple[WhyApproval, ...]:
        if statement is None:
            return ()
        tally = self._tally(statement, decided)
        counted = {
            Verdict.APPROVE: tally.approved_by,
            Verdict.DENY: tally.denied_by,
            Verdict.BREAK_GLASS: tally.broken_glass_by,
        }
        found = []
        for step in self._steps:
            if (
                not isinstance(step.body, VerdictBody)
                or step.body.attestation.statement != statement.digest
            ):
                continue
            word = step.body.attestation
            told = record_of(step, self._name)
            roster = step.chain.roster_at(step.entry.header.roster) or step.chain.roster
            holder = next(
                (
                    identity
                    for key, (identity, _) in roster.holders().items()
                    if key.raw.hex() == word.credential and identity.name in told.people
                ),
                None,
            )
            found.append(
                WhyApproval(
                    identity="" if holder is None else holder.name,
                    person="" if holder is None else holder.person,
                    time=step.entry.header.at,
                    verdict=str(word.verdict),
                    reason=visible(word.reason),
                    counts=holder is not None and holder.name in counted[word.verdict],
                )
            )
        return tuple(found)

    def _policy(self, decided: ChainStep, statement: Statement | None) -> Policy | None:
        digest = statement.policy if statement is not None else None
        if isinstance(decided.body, ResumeBody):
            digest = decided.body.policy
        elif digest is None:
            roster = decided.chain.roster_at(decided.entry.header.roster)
            digest = None if roster is None else roster.policy_digest(self._core.namespace)
        try:
            return None if digest is None else self._policies.get(digest)
        except (PolicyInvalid, Tampered):
            return None

    def _rules(
        self, decided: ChainStep, request: ChainStep | None, policy: Policy | None
    ) -> tuple[Reason, ...]:
        if policy is None:
            return ()
        if isinstance(decided.body, ResumeBody):
            by_rollout = self._accepted_rules(decided.body, policy)
            return tuple(
                Reason(
                    rule=rule,
                    measure=Measure.RECORD if rule in by_rollout else policy.measure(rule),
                    words=RULE_WORDS[Rule(rule)],
                )
                for rule in decided.body.rules
                if rule in tuple(Rule)
            )
        if isinstance(decided.body, HandoffBody) and decided.body.statement is not None:
            rule = Rule.HANDOFF_BY_OPERATOR
            return (Reason(rule=rule, measure=policy.measure(rule), words=RULE_WORDS[rule]),)
        if request is not None:
            # If the request was not used, only the requester's own words are available.
            measure = Measure.approve(request.body.statement.needed)
            return tuple(
                Reason(rule="request", measure=measure, words=visible(words))
                for words in request.body.reasons
            )
        return ()

    def _facts(self, decided: ChainStep, request: ChainStep | None) -> Iterator[tuple[str, str]]:
        yield from self._facts_before(decided)
        named: Any = decided.body if isinstance(decided.body, ResumeBody) else None
        if request is not None:
            statement = request.body.statement
            yield "request", statement.digest
            yield "asked by", visible(statement.asked_by)
            yield "asked because", visible(statement.reason)
            yield "open until", statement.expires.isoformat()
            named = statement if named is None else named
        if named is None:
            return
        for name in ("checkpoint", "release", "answer"):
            value = getattr(named, name)
            if value is not None:
                yield name, value
        if self._release is not None:
            yield from _released(self._release)
        yield from self._worlds(named, request)
        if isinstance(named, ResumeBody):
            yield from _caller_statements(named)
            return
        if request is not None:
            for line in WorldDiff.of_values(request.body.differences).lines():
                yield "accepts", line

    def _facts_before(self, decided: ChainStep) -> Iterator[tuple[str, str]]:
        """Yield the state of the thread at the decision."""
        before, newest = decided.before, self._newest
        if before is not None and before.fence.owner is not None:
            yield "owner", visible(before.fence.owner)
        if newest is not None:
            yield "newest checkpoint", f"entry {newest.seq}, {newest.entry}"
            yield "its age", str(decided.entry.header.at - newest.time)
            if newest.question is not None:
                yield "question", "pending"

    def _world_before(self, named: Any, request: ChainStep | None) -> str | None:
        """Return the world of the checkpoint."""
        if request is not None:
            return cast("str | None", request.body.statement.world_from)
        if self._release is not None:
            return self._release.world
        newest = self._newest
        return newest.world if newest is not None and newest.entry == named.checkpoint else None

    def _worlds(self, named: Any, request: ChainStep | None) -> Iterator[tuple[str, str]]:
        old = self._world_before(named, request)
        new, leaves = named.world_to if isinstance(named, Statement) else named.world, None
        if old is not None:
            yield "world it was saved in", old
        if new is not None:
            yield "world it resumes in", new
        if request is not None and request.body.world is not None:
            leaves = request.body.world
        elif isinstance(named, ResumeBody):
            leaves = named.leaves
        if old is None or leaves is None or old == new:
            return
        try:
            diff = self._diff(old, leaves)
            if diff is not None:
                yield "what differs", "; ".join(diff.lines())
        except WorldInvalid:
            yield "what differs", "cannot be determined"

    def _diff(self, before: str, leaves: Mapping[str, Any]) -> WorldDiff | None:
        found = read_world(self._core, self._walk.thread, before)
        return None if found is None else World.from_dict(found).diff(World.from_dict(leaves))

    def _accepted_rules(self, body: ResumeBody, policy: Policy) -> frozenset[Rule]:
        """Return the rules of which the rollouts of a resume accept every difference."""
        if not body.rollouts:
            return frozenset()
        old = self._world_before(body, None)
        diff: WorldDiff | None = None
        with suppress(WorldInvalid):
            diff = None if old is None or body.leaves is None else self._diff(old, body.leaves)
        if diff is None:
            return COMPARED_RULES
        named = {leaf for each in body.rollouts for leaf, _, _ in each.differences}
        rest = compared_reasons(diff.without(named), policy)
        return COMPARED_RULES - {Rule(each.rule) for each in rest}


def _caller_statements(body: ResumeBody) -> Iterator[tuple[str, str]]:
    """Yield the statements of the caller who resumed, and the rollout that the resume used."""
    if body.reason is not None:
        yield "said deliberately", visible(body.reason)
    if body.actor is not None:
        yield "actor, as claimed", visible(body.actor)
    if body.idempotent:
        yield "called idempotent", "nobody knew what came of an answer, and nobody was asked"
    for rollout in body.rollouts:
        yield "rollout", f"{rollout.digest}: {visible(rollout.reason)}"
        yield "proposed by", visible(rollout.asked_by)


def _released(release: Release) -> Iterator[tuple[str, str]]:
    """Yield the released data other than the state, if there is any."""
    if release.held:
        yield "held back", "by a pause, when it was saved"
    if release.origin is not None:
        origin = release.origin
        if origin.is_file:
            yield "imported from", f"a file with the SHA-256 {origin.entry}"
        else:
            yield "copied from", f"entry {origin.entry} of thread {origin.thread}"
    newer = [visible(each.id) for each in release.deleted if each.task is None]
    if newer:
        yield "deleted above it", ", ".join(newer)
    lost = [f"task {visible(each.task)}" for each in release.deleted if each.task is not None]
    if lost:
        yield "deleted results", ", ".join(lost)
    pending = [*release.results, *(each for lane in release.lanes for each in lane.results)]
    if pending:
        told = (f"task {visible(each.task)} in entry {each.seq}" for each in pending)
        yield "pending results", ", ".join(told)


def _is_saved_in(step: ChainStep, session: ChainStep) -> bool:
    """Whether a checkpoint was saved in the session that an entry began."""
    header = step.entry.header
    return KINDS[header.kind].is_checkpoint and header.fence == session.entry.seq


_DECISIONS = frozenset(
    {Kind.RESUME, Kind.HANDOFF, Kind.REQUEST, Kind.APPROVAL, Kind.DENIAL, Kind.EXPIRY}
    | {Kind.BREAK_GLASS}
)
"""The kinds of entries that decide about a thread, or ask for a decision."""


class _Found(NamedTuple):
    """The position of a match."""

    walk: ThreadWalk | None
    """A walk through its thread; None if it is on the store chain."""
    seq: int


def explain_decision(
    core: Core, policies: Policies, book: RolloutBook, ref: str, thread: str | None = None
) -> Why:
    """Explain a request or an entry.

    Args:
        core: The store.
        policies: Its policies.
        book: The rollouts, with their ends.
        ref: The id of a request, the hash of an entry, or the first digits of either; or the name
            of a thread, for its last decision.
        thread: The name of its thread, if known.

    Raises:
        UnknownEntry: No entry or more than one matches.
        UnknownThread: There is no such thread.
        Tampered, NotTrusted, RolledBack, Forked, Unanchored: Its thread does not verify.
    """
    if not begins_digest(ref):
        found = [_last_decision(core, ref)]
    elif thread is None:
        found = [*_find_in_chain(core, ref), *_find(core, ThreadWalk.each(core), ref)]
    else:
        found = [*_find(core, select_threads(core, [thread]), ref)]
    if len(found) != 1:
        raise UnknownEntry(
            f"{ref[:12]}: expected one request or entry of namespace {core.namespace!r} that "
            f"begins with these digits, found {len(found)}"
        )
    walk, seq = found[0]
    if walk is None:
        return _of_store_chain(core, seq)
    return Explaining(core, policies, book, walk, seq).explain()


def _last_decision(core: Core, name: str) -> _Found:
    """Find the newest decision about a thread, or request for one.

    Raises:
        UnknownThread: There is no such thread.
        UnknownEntry: Nothing was decided about it yet.
    """
    (walk,) = select_threads(core, [name])
    rows = core.storage.scan(walk.thread, 0)
    kinds = {seq: parse_header(record.header).kind for seq, record in rows}
    seq = max((seq for seq, kind in kinds.items() if kind in _DECISIONS), default=None)
    if seq is None:
        raise UnknownEntry(f"thread {name!r}: nothing was decided about it yet")
    return _Found(walk, seq)


def _find_in_chain(core: Core, ref: str) -> Iterator[_Found]:
    for seq, digest in enumerate(core.renewed_trust().hashes):
        if digest.hex().startswith(ref):
            yield _Found(None, seq)


def _find(core: Core, walks: Iterable[ThreadWalk], ref: str) -> Iterator[_Found]:
    """Find the digits; a match is verified afterwards, with its whole thread."""
    for walk in walks:
        for seq, record in core.storage.scan(walk.thread, 0):
            if link_hash(record.header).hex().startswith(ref) or _is_request(record, ref):
                yield _Found(walk, seq)


def _is_request(record: Record, ref: str) -> bool:
    # The kind is plain text in the header, and most entries are not requests.
    if record.body is None or b'"kind":"request"' not in record.header:
        return False
    try:
        header = parse_header(record.header)
        body = parse_body(header.kind, header.body, record.body)
    except Tampered:
        return False
    return isinstance(body, RequestBody) and body.statement.digest.startswith(ref)


def _of_store_chain(core: Core, seq: int) -> Why:
    record = core.storage.read(STORE_CHAIN, seq)
    chain = core.renewed_trust()
    if record is None or link_hash(record.header) != chain.hashes[seq]:
        raise UnknownEntry(
            f"store chain entry {seq}: it was there when it was verified and is gone now"
        )
    told = store_chain_record(record, chain, seq)
    return Why(
        subject=told,
        decision=told.summary,
        rules=(),
        facts=(),
        policy=None,
        approvals=(),
        entries=(told,),
        unjustified=(),
    )
