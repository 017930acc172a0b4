# SPDX-License-Identifier: Apache-2.0
"""The review: whether every resume and handoff on a thread was justified when it was written.

A worker that runs other code than ours can write a resume that no gate has allowed, and every entry
is still genuine. So the audit walks the verified thread again. It makes each release again and
compares the digest, gathers the same facts as the gate did, and calls the same `decide` with the
policy that judges that entry: the policy of the roster that the entry names, or of a later roster
if the entry is beyond the positions that it lists.

The review is pure: its input has been verified. It does not judge data that an erasure has removed.
The resume that decided a world holds that world, so a prune removes nothing that the review needs.
For a resume older than an audit's memory, the review does not judge the digest of its release, a
pending question, copies and deletions. It does judge whether the checkpoint existed and was the
newest, its world, its age and its grant.
"""

import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from sealpoint.errors import NotTrusted, PolicyInvalid, Tampered, WorldInvalid
from sealpoint.gate._decision import Facts, GrantFacts, Outcome, decide, world_facts
from sealpoint.gate._decision_facts import difference, facts_of
from sealpoint.gate._last_session import (
    acts_on_answer,
    positions_of,
    saves_outcome,
    stranger_words,
    unknown_outcome,
)
from sealpoint.gate._policy import Measure, Policy, Rule
from sealpoint.gate._requests import (
    Asked,
    RequestsById,
    as_spent,
    denied_alike,
    fold_entry,
    fold_lost,
    grant_of,
    holds_too_long,
    is_too_early,
    short_digest,
    spending_faults,
)
from sealpoint.gate._reviewed_checkpoints import CheckpointLog, Outline
from sealpoint.gate._rollouts_in_force import RolloutHistory, rollout_faults
from sealpoint.gate._session_worlds import SLACK, forgiving, rollout_facts, world_held
from sealpoint.ledger import (
    KINDS,
    ChainStep,
    Entry,
    ExpiryBody,
    HandoffBody,
    Header,
    Kind,
    PruneBody,
    ResumeBody,
    StoreChain,
    Tip,
    time_at,
)
from sealpoint.signing import Action, Identity, Role, Roster, Statement, count
from sealpoint.store import Release
from sealpoint.world import World, WorldDiff

_WORLDS_BYTES_MAX = 16 * 1024 * 1024


class _HeldWorlds:
    """The worlds that the resumes of a thread hold; the oldest are dropped at a size limit."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self._bytes = 0

    def add(self, digest: str, leaves: dict[str, Any]) -> None:
        packed = zlib.compress(msgspec.json.encode(leaves), 1)
        self._bytes += len(packed) - len(self._packed.pop(digest, b""))
        self._packed[digest] = packed
        while self._bytes > _WORLDS_BYTES_MAX:
            self._bytes -= len(self._packed.pop(next(iter(self._packed))))

    def get(self, digest: str) -> dict[str, Any] | None:
        packed = self._packed.get(digest)
        found: dict[str, Any] | None
        found = None if packed is None else msgspec.json.decode(zlib.decompress(packed))
        return found


class Newest(NamedTuple):
    """The newest checkpoint of a thread, as the gate would have seen it before some entry."""

    entry: str
    """The hash of its entry."""
    seq: int
    time: datetime
    world: str | None
    question: Any
    """None also if the checkpoint is too old to know it."""


class _Resume(NamedTuple):
    """A resume under review, with the end of the thread before it."""

    entry: Entry
    body: ResumeBody
    before: Tip
    chain: StoreChain
    roster: Roster
    policy: Policy | None
    """The policy that judges the resume."""

    @property
    def time(self) -> datetime:
        """Return the effective time of the gate when it decided."""
        return time_at(self.entry.header, self.before.time)

    @property
    def judged_by(self) -> str | None:
        """Return the digest of the policy that judges the resume."""
        return None if self.policy is None else self.policy.digest


class Reviewer:
    """Reviews one thread, entry by entry.

    Args:
        policies: Returns the policy of a digest, or raises `PolicyInvalid`.
        rollouts: By namespace, every rollout that was ever proposed there, and how it ended; for a
            missing namespace, neither is judged.
    """

    def __init__(
        self,
        policies: Callable[[str], Policy],
        rollouts: Mapping[str, RolloutHistory] = MappingProxyType({}),
    ) -> None:
        self._rollouts = rollouts
        self._policies = policies
        self._leaves = _HeldWorlds()
        self._decided: dict[int, str | None] = {}
        """By position, the worlds that resumes of this generation decided."""
        self._allowed: dict[int, str | None] = {}
        """The worlds that sessions were allowed, for those that name another one."""
        self._log = CheckpointLog()
        self._asked = RequestsById()
        """The requests that are bound to the basis and to the epoch."""
        self._epoch = 0
        self._basis_at: datetime | None = None
        self._executed_epoch = 0
        self._held = False
        """Whether a run held the thread in the current session, so that its end is not visible."""
        self._edits = False
        """Whether the session in force is an edit, in which nothing runs."""
        self._unknown: str | None = None
        """A description of the session that resumed with an answer and has saved nothing since."""
        self._authors: list[tuple[int, Identity | None]] = []
        """The identities that saved or deleted, each with the position where its row begins."""
        self._approved = -1
        """The position of the newest handoff that other people approved."""
        self.release: Release | None = None
        """The release of the last entry, made again; None if the entry was not a resume."""
        self.judged: tuple[Facts, Policy | None] | None = None
        """The facts about the last entry, and the policy that judges it; None if the entry was not
        a resume of a checkpoint, or they are not known."""

    def take(self, step: ChainStep) -> tuple[str, ...]:
        """Review the next verified entry.

        Returns:
            Why it was not justified, one sentence each; empty if it was.
        """
        entry, body, before, chain = step.entry, step.body, step.before, step.chain
        header = entry.header
        roster = chain.roster_at(header.roster)
        unjustified: tuple[str, ...] = ()
        self.release = self.judged = None
        if header.epoch != self._epoch:
            self._asked.clear()  # a restore makes every earlier request void
            self._epoch = header.epoch
        if roster is not None and before is not None:
            if isinstance(body, ResumeBody):
                if body.world is not None and body.leaves is not None and world_held(body):
                    self._leaves.add(body.world, body.leaves)
                unjustified = tuple(self._resume(entry, body, before, chain, roster))
            elif isinstance(body, HandoffBody):
                unjustified = tuple(self._handoff(entry, body, before, chain, roster))
            elif step.lost:
                fold_lost(self._asked, entry, roster)
            elif body is not None and KINDS[header.kind].about_requests:
                self._fold(entry, body, before, chain)
                unjustified = tuple(self._list_faults(entry, body))
            elif isinstance(body, PruneBody):
                unjustified = tuple(self._log.losses(header, body))
        self._log.take(entry, body)
        if KINDS[header.kind].holds_payload or header.kind is Kind.DELETE:
            self._note_author(entry, roster)
        if KINDS[header.kind].moves_basis:
            self._asked.clear()
            self._basis_at = header.at
        if header.kind is Kind.RESUME:
            self._executed_epoch = header.epoch
            if isinstance(body, ResumeBody):
                self._begin(entry, body)
        elif header.kind is Kind.ERASE:
            self._leaves, self._unknown = _HeldWorlds(), None
            self._decided, self._allowed = {}, {}
            self._authors.clear()
        elif not self._edits and saves_outcome(header, body):
            self._unknown = None
        return tuple(f"entry {entry.seq}: {words}" for words in unjustified) if unjustified else ()

    def _begin(self, entry: Entry, body: ResumeBody) -> None:
        """Record that a session has begun."""
        self._held, self._edits = body.held, body.edits
        if body.decided is None:
            self._decided[entry.seq] = body.world
        if acts_on_answer(body):  # otherwise it had to record an unknown outcome, which stays
            self._unknown = unknown_outcome(entry, body)

    def _note_author(self, entry: Entry, roster: Roster | None) -> None:
        author = None if roster is None else roster.identity(entry.writer)
        if not self._authors or self._authors[-1][1] != author:
            self._authors.append((entry.seq, author))

    def newest(self, header: Header, before: Tip) -> Newest | None:
        """Return the newest checkpoint of the main lane before the next entry."""
        entry = self._log.newest()
        outline = None if entry is None else self._log.outline(entry)
        if entry is None or outline is None:
            return None
        release = self._log.release(entry, header, before)
        question = None if release is None else release.question
        return Newest(entry, outline.seq, outline.time, outline.world, question)

    # ------------------------------------------------------------------ state before an entry

    def _fold(self, entry: Entry, body: Any, before: Tip, chain: StoreChain) -> None:
        """Record requests that are bound to the basis, and answers to them."""
        fold_entry(
            self._asked,
            entry,
            body,
            basis=before.basis[1].hex(),
            epoch=entry.header.epoch,
            trust=chain,
        )

    # ------------------------------------------------------------------ resumes

    def _resume(
        self, entry: Entry, body: ResumeBody, before: Tip, chain: StoreChain, roster: Roster
    ) -> Iterator[str]:
        expected = roster.policy_digest(entry.header.ns)
        # (1) The resume records the policy of the roster that it names.
        if body.policy != expected:
            yield (
                f"a resume by {entry.writer!r}: roster {roster.seq} names policy "
                f"{short_digest(expected)}, and it was judged by {short_digest(body.policy)}"
            )
            return
        yield from self._world_faults(body)
        # (2) A thread without a checkpoint begins, and nothing is released.
        if body.checkpoint is None:
            if self._log.holds_anything():
                yield "a resume: it does not name the checkpoint that was released"
            return
        # (3) The policy that judges the resume is readable.
        try:
            policy = self._policy_at(entry, chain)
        except (PolicyInvalid, Tampered, NotTrusted) as error:
            yield f"a resume: the policy to judge it by cannot be read: {error.message}"
            return
        if self._log.overflows:
            yield "a resume: more results of tasks lie before it than an audit takes in"
            return
        resume = _Resume(entry, body, before, chain, roster, policy)
        outline = self._log.outline(body.checkpoint)
        if outline is None:
            yield f"a resume: there was no checkpoint {short_digest(body.checkpoint)} to release"
            return
        yield from self._review_release(resume, body.checkpoint, outline)

    def _policy_at(self, entry: Entry, chain: StoreChain) -> Policy | None:
        """Return the policy that judges an entry; None if no policy does."""
        digest = chain.policy_at(entry.header)
        return None if digest is None else self._policies(digest)

    def _review_release(self, resume: _Resume, checkpoint: str, outline: Outline) -> Iterator[str]:
        """Review a resume that released a checkpoint."""
        entry, body = resume.entry, resume.body
        # (4) The released state is the one at that position.
        if body.released != outline.seq:
            yield "a resume: the checkpoint that it released lies somewhere else than it says"
        self.release = release = self._log.release(checkpoint, entry.header, resume.before)
        if release is not None and release.digest != body.release:
            yield (
                f"a resume: it records release {short_digest(body.release)}, and what lay there "
                f"was release {short_digest(release.digest)}"
            )
        # (5) The request that it uses was open, was for exactly this resume, and was granted.
        grant, before = None, outline.world
        if release is not None:
            before = self._allowed.get(release.session, before)
        if body.request is not None:
            faults = tuple(self._spending(resume, before))
            yield from faults
            asked = self._asked.get(body.request)
            if asked is not None and not faults:
                spent = as_spent(asked, entry, body, resume.chain)
                grant = grant_of(spent, resume.roster, forgiving(resume.time))
        # The signed answer that it names was given for this, by the person that it names.
        yield from self._answer_faults(resume)
        # (6) The rollouts that it names held, and accept differences between its worlds.
        rollouts = []
        for statement in body.rollouts:
            faults = tuple(self._rollout_faults(resume, statement, before))
            yield from faults
            if not faults:
                rollouts.append(rollout_facts(statement, entry, body, resume.chain, resume.time))
        # (7) The gate would have decided the same, and the resume records every rule that applied.
        if release is None:
            facts = self._facts_far_back(resume, outline, grant)
        else:
            facts = self._facts(resume, release, before, grant)
        facts = replace(facts, rollouts=tuple(each for each in rollouts if each is not None))
        if not _is_world_allowed(facts, resume.policy):
            self._allowed[entry.seq] = self._world_of_newest()
        yield from self._judged_again(resume, facts)

    def _world_of_newest(self) -> str | None:
        """Return the world that was allowed at the newest checkpoint before a resume."""
        place = self._log.newest_at_resume()
        return None if place is None else self._allowed.get(place.session, place.world)

    def _judged_again(self, resume: _Resume, facts: Facts) -> Iterator[str]:
        self.judged = facts, resume.policy
        told = set(resume.body.rules)
        if unknown := told - {str(rule) for rule in Rule}:
            yield f"a resume: it tells rules that no policy has: {_listed(unknown)}"
        decision = decide(facts, resume.policy)
        rules = {str(each.rule) for each in decision.reasons if each.rule in tuple(Rule)}
        if rules - told:
            yield f"a resume: it does not tell that these rules applied: {_listed(rules - told)}"
        if decision.outcome is not Outcome.ALLOW:
            words = "; ".join(each.words for each in decision.reasons)
            late = f", which names roster {resume.roster.seq} after a later change of policy,"
            late = "" if resume.judged_by == resume.body.policy else late
            who = f"{resume.entry.writer!r}{late}"
            yield f"a resume by {who} that the gate would not allow: {words}"

    def _facts(
        self, resume: _Resume, release: Release, before: str | None, grant: GrantFacts | None
    ) -> Facts:
        """Return the facts that the gate had, as far as they can be reconstructed."""
        entry, body = resume.entry, resume.body
        return facts_of(
            release,
            thread=entry.header.thread[:12],
            owner=True,  # the walk has checked it
            diff=self._diff(body, before),
            world_now=body.world is not None,
            now=forgiving(resume.time),
            restored=self._restored(resume),
            living_session=self._living_session(resume, release),
            unknown=None if body.idempotent else self._unknown,
            edits=body.edits,
            answered=body.answer is not None,
            deliberate=body.reason,
            grant=grant,
            retried=self._log.is_retry(entry.header, body),
            stranger=self._stranger(resume, release),
            told=_recorded_rules(body),
        )

    def _stranger(self, resume: _Resume, release: Release) -> str | None:
        """Say what a stranger did to it, as `LastSession.stranger` does."""
        head, saved, deleted = (
            resume.before.entry.header,
            positions_of(release),
            self._log.deletions,
        )
        if head.fence != head.owner:
            return None
        return stranger_words(
            lambda seq: self._authors[bisect_right(self._authors, seq, key=_first) - 1][1],
            saved=() if self._approved > max(saved) else saved,
            deleted=() if self._approved > max(deleted, default=-1) else deleted,
            works_with=lambda author: resume.roster.work_together(resume.entry.writer, author),
        )

    def _facts_far_back(self, resume: _Resume, outline: Outline, grant: GrantFacts | None) -> Facts:
        """Return the facts of a resume that is too old for its release to be made again.

        It is unknown whether a question was pending, whether the checkpoint was a copy, and whether
        newer ones had been deleted. None of that is counted against the resume.
        """
        body = resume.body
        return Facts(
            thread=resume.entry.header.thread[:12],
            paused=None,
            owner=True,
            diff=self._diff(body, outline.world),
            world_before=outline.world is not None,
            world_now=body.world is not None,
            newest=self._log.is_newest(body.checkpoint or ""),
            deleted=0,
            copied=False,
            question=False,
            answered=body.answer is not None,
            age=forgiving(resume.time) - outline.time,
            restored=self._restored(resume),
            living_session=self._living_session(resume),
            unknown=None if body.idempotent else self._unknown,
            edits=body.edits,
            deliberate=body.reason,
            grant=grant,
            told=_recorded_rules(body),
        )

    def _restored(self, resume: _Resume) -> bool:
        header = resume.entry.header
        thread = bytes.fromhex(header.thread)
        return resume.chain.restores.cuts_off(
            thread,
            resume.chain.lists,
            basis=resume.before.basis[0],
            since=self._executed_epoch,
            until=header.epoch,
        )

    def _diff(self, body: ResumeBody, before: str | None) -> WorldDiff | None:
        """Return the change from the world of the checkpoint; None if it cannot be determined."""
        if before is None or body.world is None:
            return None
        if before == body.world:
            return WorldDiff()
        return difference(before, self._world(body.world), lambda: self._leaves.get(before))

    def _world(self, digest: str) -> World | None:
        """Return a world that a resume of this thread holds, including the one under review."""
        try:
            leaves = self._leaves.get(digest)
            found = None if leaves is None else World.from_dict(leaves)
        except WorldInvalid:
            return None
        return found if found is not None and found.digest == digest else None

    def _world_faults(self, body: ResumeBody) -> Iterator[str]:
        """Yield why a resume does not name where its world was decided."""
        if body.decided is not None and self._decided.get(body.decided) != body.world:
            yield (
                f"a resume: it says that entry {body.decided} decided its world, and that decided "
                "another one, or none"
            )
        if body.decided is None and body.world is not None and self._world(body.world) is None:
            yield "a resume: it does not hold the world that it decided"

    def _living_session(self, resume: _Resume, release: Release | None = None) -> timedelta | None:
        """Return how long ago another key's session moved the thread; None if it may have ended."""
        fence = resume.before.fence
        stopped = release and release.session == fence.seq and release.question is not None
        paused = resume.before.entry.header.pause > fence.seq
        if self._held or stopped or paused:
            return None
        if not fence.is_session or fence.by == resume.entry.header.by or self._basis_at is None:
            return None
        return resume.time - self._basis_at

    def _spending(self, resume: _Resume, saved_world: str | None) -> Iterator[str]:
        """Yield why the request that a resume uses was not for exactly this, or was not granted."""
        entry, body = resume.entry, resume.body
        request = body.request or ""
        what = f"a resume that spends request {request[:12]}"
        asked = self._asked.get(request)
        if asked is None:
            yield f"{what}: there was no open request for the thread as it was"
            return
        statement = asked.body.statement
        faults = spending_faults(statement, entry, body, saved_world, resume.judged_by)
        yield from (f"{what}: {words}" for words in faults)
        if body.answered is not None and statement.actor != body.actor:
            yield f"{what}: it does not name the person who answered, and who may not approve it"
        # The number of approvals that the policy requires is judged with the rules that applied.
        spent = as_spent(asked, entry, body, resume.chain)
        yield from _grant_faults(spent, resume.time, resume.policy, resume.roster, what)
        yield from self._denied_before(asked, resume.time, resume.policy, what)

    def _answer_faults(self, resume: _Resume) -> Iterator[str]:
        """Yield why the signed answer that a resume names was not for this, or was not signed."""
        body = resume.body
        if body.answered is None:
            return
        what = f"a resume with answer {body.answered[:12]}"
        asked = self._asked.get(body.answered)
        if asked is None:
            yield f"{what}: nobody had signed it for the thread as it was"
            return
        told = asked.body.statement
        named = (told.action, told.release, told.answer, told.actor)
        if named != (Action.ANSWER, body.release, body.answer, body.actor):
            yield f"{what}: it was signed for something else, or by another person"
        yield from _grant_faults(asked, resume.time, resume.policy, resume.roster, what)

    # ------------------------------------------------------------------ rollouts

    def _rollout_faults(
        self, resume: _Resume, statement: Statement, saved_world: str | None
    ) -> Iterator[str]:
        """Yield why a rollout did not allow a resume, apart from the approvals that it had."""
        header = resume.entry.header
        faults = rollout_faults(
            statement,
            header,
            at=resume.time,
            diff=self._diff(resume.body, saved_world),
            policy=resume.judged_by,
            trust=resume.chain,
            history=self._rollouts.get(header.ns),
            slack=SLACK,
        )
        yield from (f"a resume by rollout {statement.digest[:12]}: {words}" for words in faults)

    def _list_faults(self, entry: Entry, body: Any) -> Iterator[str]:
        """Yield why the positions that the end of a rollout lists cannot be read."""
        history = self._rollouts.get(entry.header.ns)
        if history is None or not isinstance(body, ExpiryBody) or body.positions is None:
            return
        try:
            history.lists.get(body.positions)
        except (Tampered, NotTrusted) as error:
            yield f"the end of a rollout, recorded by {entry.writer!r}: {error.message}"

    # ------------------------------------------------------------------ handoffs

    def _handoff(
        self, entry: Entry, body: HandoffBody, before: Tip, chain: StoreChain, roster: Roster
    ) -> Iterator[str]:
        """Review a handoff; an owner's handoff needs no approval."""
        header, owner = entry.header, before.fence.owner
        identity = roster.identity(entry.writer)
        if owner is None or (
            identity is not None
            and identity.may(Role.WRITER, header.ns)
            and roster.owns(entry.writer, owner)
        ):
            return
        self._approved = entry.seq
        what = f"a handoff by {entry.writer!r}"
        try:
            policy = self._policy_at(entry, chain)
        except (PolicyInvalid, Tampered, NotTrusted) as error:
            yield f"{what}: the policy to judge it by cannot be read: {error.message}"
            return
        measure = Measure.REFUSE if policy is None else policy.measure(Rule.HANDOFF_BY_OPERATOR)
        if measure == Measure.REFUSE:
            yield f"{what}: the policy does not let operators hand threads off"
            return
        statement = body.statement
        judged_by = None if policy is None else policy.digest
        if statement is None or statement.policy != judged_by:
            yield f"{what}: it carries no approvals by policy {short_digest(judged_by)}"
            return
        asked = self._asked.get(statement.digest)
        if asked is None:
            yield f"{what}: there was no open request {statement.digest[:12]}"
            return
        asked, now = as_spent(asked, entry, body, chain), time_at(header, before.time)
        yield from _grant_faults(asked, now, policy, roster, what, least=measure.people)
        yield from self._denied_before(asked, now, policy, what)

    def _denied_before(
        self, asked: Asked, at: datetime, policy: Policy | None, what: str
    ) -> Iterator[str]:
        """Yield a fault if the same was denied, by a request that was open at that time."""
        denied = denied_alike(self._asked.values(), asked, policy, at)
        if denied is not None:
            names = tuple(name for name, _ in denied.denials)
            yield f"{what}: request {denied.id[:12]} for the same was denied by {_listed(names)}"


def _is_world_allowed(facts: Facts, policy: Policy | None) -> bool:
    """Whether a session may run in its world, regardless of other faults of its resume."""
    about_world = world_facts(
        facts.thread,
        facts.diff,
        world_before=facts.world_before,
        world_now=facts.world_now,
        newest=facts.newest and not facts.deleted,
        deliberate=facts.deliberate,
        grant=facts.grant,
        rollouts=facts.rollouts,
    )
    return decide(about_world, policy).outcome is Outcome.ALLOW


def _first(found: tuple[int, Any]) -> int:
    return found[0]


def _recorded_rules(body: ResumeBody) -> tuple[Rule, ...]:
    """Return the rules that a resume records as applied."""
    return tuple(rule for rule in Rule if rule in body.rules)


def _grant_faults(
    asked: Asked, at: datetime, policy: Policy | None, roster: Roster, what: str, *, least: int = 0
) -> Iterator[str]:
    """Yield why a request was not granted at a time, by a roster and by a policy's minimum."""
    grant = grant_of(asked, roster, at)
    if asked.expired or asked.body.statement.expired_at(at, slack=SLACK):
        yield f"{what}: the request had expired"
    elif holds_too_long(asked, policy) or is_too_early(asked, policy, at):
        yield f"{what}: the request says that it holds longer than the policy lets it"
    if grant.denied_by:
        yield f"{what}: the request was denied by {_listed(grant.denied_by)}"
    needed = max(asked.body.statement.needed, least)
    if policy is None:
        yield f"{what}: no policy was in force that asks for approvals"
    elif len(grant.approved_by) < needed and grant.broken_glass is None:
        ignored = count(
            asked.attestations, statement=asked.body.statement, roster=roster, now=at
        ).ignored
        why = f" ({'; '.join(ignored)})" if ignored else ""
        yield f"{what}: it needed {needed} approvals and had {len(grant.approved_by)}{why}"


def _listed(names: set[str] | tuple[str, ...]) -> str:
    return ", ".join(sorted(names))
