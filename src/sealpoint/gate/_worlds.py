# SPDX-License-Identifier: Apache-2.0
"""Whether the world of a session was allowed, judged again from the resume that decided it.

A worker with a genuine key and other code can open a session in any world, and an honest worker
would then continue in it as if nothing had changed. So the gate does not believe the world that a
session names. Each resume names the resume in which its world was decided, and that one holds the
world itself, the checkpoint that it went on from, and the approvals that let the change pass. The
change is judged here as the gate judges one now, by the policy that binds the position.

A world that people have approved needs no look further back. A change that the policy lets pass
without people does: the world before it has to be one that was decided, too.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sealpoint.errors import (
    NotTrusted,
    PolicyInvalid,
    SealpointError,
    StorageUnavailable,
    Tampered,
    WorldInvalid,
)
from sealpoint.gate._decision import Facts, GrantFacts, Outcome, RolloutFacts, decide
from sealpoint.gate._policy import Policies, Policy
from sealpoint.gate._requests import Asked, fold_entry, grant_of, roster_then, spending_faults
from sealpoint.gate._rollout_book import RolloutBook, rollout_faults
from sealpoint.ledger import (
    KINDS,
    CheckpointBody,
    Entry,
    Header,
    Kind,
    PruneBody,
    ResumeBody,
    StoreChain,
    Unreadable,
    counted_attestations,
    link_hash,
    parse_body,
    read_body,
)
from sealpoint.signing import Statement, count
from sealpoint.storage import Record
from sealpoint.store import Chain, ThreadReader
from sealpoint.world import World, WorldDiff

SLACK = timedelta(minutes=1)
"""What may lie between judging and writing: a grant or an age that ran out meanwhile is forgiven.
Whoever writes the entry also writes its time, so less would prove no more."""

_BEGINNING = datetime.min.replace(tzinfo=UTC)
_DECISIONS_MAX = 64
"""So many changes of world are judged; what needs more cannot be judged."""


class _Decision(NamedTuple):
    """A resume in which a world was decided."""

    entry: Entry
    body: ResumeBody


class AllowedWorld(NamedTuple):
    """The world from which a resume is compared, and why that is not the one that is named."""

    world: World | None
    """None: none was declared, or it cannot be read."""
    faults: tuple[str, ...] = ()
    """Why the world that the session names was not allowed; nothing if it was."""


class SessionWorlds:
    """Judges the worlds of the sessions of one thread.

    Args:
        chain: The chain of the thread.
        reader: Reads the resumes of it.
        policies: The policies of the store.
        book: Its rollouts.
    """

    def __init__(
        self, chain: Chain, reader: ThreadReader, policies: Policies, book: RolloutBook
    ) -> None:
        self._chain = chain
        self._reader = reader
        self._policies = policies
        self._book = book
        self._known: tuple[StoreChain | None, dict[bytes, tuple[str, ...]]] = (None, {})
        """By which store chain, what was found about decisions, by the hashes of their entries."""

    def allowed(self, session: int) -> AllowedWorld:
        """The world in which a session was allowed to run.

        That is the one that it names, or else the newest one before it that was allowed.
        """
        faults: tuple[str, ...] = ()
        for _ in range(_DECISIONS_MAX):
            try:
                decision = self._decision(session)
                found = self._faults(decision)
                if not found:
                    return AllowedWorld(world_held(decision.body), faults)
                faults = faults or found
                before = self._before(decision)
            except (StorageUnavailable, Tampered):
                raise
            except SealpointError as error:
                return AllowedWorld(None, (*faults, error.message))
            if before is None:
                break
            session = before.entry.seq
        return AllowedWorld(None, faults)

    def _decision(self, session: int) -> _Decision:
        """The resume in which the world of a session was decided.

        Raises:
            NotTrusted: The session names one that decided another world.
        """
        entry, body = self._reader.opening(session)
        if body.decided is None:
            return _Decision(entry, body)
        decision = _Decision(*self._reader.opening(body.decided))
        if decision.body.decided is not None or decision.body.world != body.world:
            raise NotTrusted(
                f"entry {session}: it says that entry {body.decided} decided its world, and that "
                "decided another one"
            )
        return decision

    def _before(self, decision: _Decision) -> _Decision | None:
        """Where the world was decided that a change began from; None: nothing was saved before.

        Raises:
            Tampered, NotTrusted: The checkpoint that it names is not there.
        """
        body = decision.body
        if body.checkpoint is None:
            return None
        where = f"entry {decision.entry.seq}"
        if body.released is None:
            raise NotTrusted(f"{where}: it does not say where the checkpoint lies that it released")
        record, header = self._chain.descend(body.released)
        is_released = link_hash(record.header).hex() == body.checkpoint
        if not is_released or not KINDS[header.kind].is_checkpoint:
            raise NotTrusted(f"{where}: the checkpoint that it released lies somewhere else")
        return self._decision(header.fence)

    def _faults(self, decision: _Decision) -> tuple[str, ...]:
        """Why a decision was not allowed, or one that it rests on."""
        trust = self._chain.trust.get()
        if self._known[0] is not trust:
            self._known = trust, {}
        known, key = self._known[1], decision.entry.hash
        if key in known:
            return known[key]
        found = tuple(self._judge(decision, trust))
        if decision.body.rollout is None:  # one may be revoked at any time
            known[key] = found
        return found

    def _judge(self, decision: _Decision, trust: StoreChain) -> Iterator[str]:
        entry, body = decision
        words = f"entry {entry.seq} by {entry.writer!r} changed the world"
        if body.checkpoint is None:
            if self._has_checkpoint_below(entry):
                yield f"{words}, and does not name the checkpoint that it released"
            return
        try:
            digest = trust.policy_at(entry.header)
            policy = None if digest is None else self._policies.get(digest)
        except (PolicyInvalid, NotTrusted) as error:
            yield f"{words}, and the policy to judge it by cannot be read: {error.message}"
            return
        before = self._before(decision)
        if before is None:
            return
        facts = self._facts(decision, before, policy, trust)
        judged = decide(facts, policy)
        if judged.outcome is not Outcome.ALLOW:
            reasons = "; ".join(reason.words for reason in judged.reasons)
            yield f"{words}, which the gate would not have allowed: {reasons}"
        elif not judged.rolled_out and not _is_granted(facts.grant):
            yield from self._faults(before)

    def _facts(
        self, decision: _Decision, before: _Decision, policy: Policy | None, trust: StoreChain
    ) -> Facts:
        """What the gate had to decide about a change of worlds, and nothing else."""
        body = decision.body
        worlds = world_held(before.body), world_held(body)
        same = before.body.world == body.world
        diff = WorldDiff() if same and body.world is not None else None
        if worlds[0] is not None and worlds[1] is not None and not same:
            diff = worlds[0].diff(worlds[1])
        return Facts(
            thread=self._chain.name,
            paused=None,
            owner=True,
            diff=diff,
            world_before=before.body.world is not None,
            world_now=body.world is not None,
            newest=True,
            deleted=0,
            copied=False,
            question=False,
            answered=False,
            age=timedelta(),
            restored=False,
            living_session=None,
            deliberate=body.reason,
            grant=self._grant(decision, before, policy, trust),
            rollout=self._rollout(decision, before, policy, trust),
        )

    def _grant(
        self, decision: _Decision, before: _Decision, policy: Policy | None, trust: StoreChain
    ) -> GrantFacts | None:
        """The grant that a resume spent, if it was for exactly this."""
        entry, body = decision
        if body.request is None:
            return None
        asked = self._asked_before(entry, trust).get(body.request)
        roster = trust.roster_at(entry.header.roster)
        if asked is None or roster is None:
            return None
        judged_by = None if policy is None else policy.digest
        faults = spending_faults(asked.body.statement, entry, body, before.body.world, judged_by)
        return None if any(faults) else grant_of(asked, roster, forgiving(entry.header.at))

    def _asked_before(self, entry: Entry, trust: StoreChain) -> dict[str, Asked]:
        """The requests that were open when an entry was written, with the words on them."""
        found, basis = [], b""
        for header, record in self._chain.walk(entry.header):
            if KINDS[header.kind].moves_basis or header.kind is Kind.GENESIS:
                basis = link_hash(record.header)
                break
            if KINDS[header.kind].about_requests and record.body is not None:
                found.append((self._chain.verify(record, header.seq), record.body))
        asked: dict[str, Asked] = {}
        for each, data in reversed(found):
            try:
                body: Any = read_body(each.header.kind, each.header.body, data)
            except Unreadable:
                continue
            fold_entry(
                asked,
                each,
                body,
                basis=basis.hex(),
                epoch=each.header.epoch,
                then=roster_then(each, body, trust),
            )
        return asked

    def _rollout(
        self, decision: _Decision, before: _Decision, policy: Policy | None, trust: StoreChain
    ) -> RolloutFacts | None:
        """The rollout that a resume used, if it let exactly this change pass."""
        entry, body = decision
        statement, history = body.rollout, self._book.history()
        if statement is None or history is None:
            return None
        faults = rollout_faults(
            statement,
            entry.header,
            at=entry.header.at,
            change=(before.body.world, body.world),
            policy=None if policy is None else policy.digest,
            history=history,
            slack=SLACK,
        )
        return None if any(faults) else rollout_facts(statement, entry, body, trust)

    def _has_checkpoint_below(self, entry: Entry) -> bool:
        """Whether there was a checkpoint to release before an entry, which nobody had deleted."""
        below = entry.header
        given_up: PruneBody | None = None
        while True:
            for header, record in self._chain.walk(below):
                rule = KINDS[header.kind]
                if header.kind in (Kind.GENESIS, Kind.ERASE):
                    return False
                if rule.is_retention and given_up is None and record.body is not None:
                    given_up = parse_body(header.kind, header.body, record.body)
                if rule.is_checkpoint and _is_main(header, record):
                    if given_up is None or not given_up.deletes(header.seq):
                        return True
                    # All of the span was deleted: what lies before it is next.
                    below = self._chain.descend(given_up.span_at(header.seq)[0])[1]
                    break
            else:
                return False


def _is_granted(grant: GrantFacts | None) -> bool:
    """Whether people have approved what a resume spent."""
    return grant is not None and len(set(grant.approved_by)) >= max(1, grant.needed)


def _is_main(header: Header, record: Record) -> bool:
    """Whether a checkpoint is one of the main lane, which a run goes on from."""
    if record.body is None:
        return True
    body: CheckpointBody = parse_body(header.kind, header.body, record.body)
    return not body.lane


def forgiving(at: datetime) -> datetime:
    """A little earlier, unless that is before the beginning of time: a writer chose the time."""
    return at - min(SLACK, at - _BEGINNING)


def rollout_facts(
    statement: Statement,
    entry: Entry,
    body: ResumeBody,
    chain: StoreChain,
    at: datetime | None = None,
) -> RolloutFacts | None:
    """What a rollout was when a resume used it, by the words that the entry carries.

    Args:
        statement: The statement of the rollout.
        entry: The resume.
        body: Its body.
        chain: The rosters.
        at: The time of the resume, where that is later than it says.
    """
    roster = chain.roster_at(entry.header.roster)
    if roster is None:
        return None
    now = forgiving(entry.header.at if at is None else at)
    counted = counted_attestations(entry, body, chain)
    tally = count(counted, statement=statement, roster=roster, now=now)
    return RolloutFacts(
        id=statement.digest,
        approved_by=tally.approved_by,
        needed=statement.needed,
        reason=statement.reason,
    )


def world_held(body: ResumeBody) -> World | None:
    """The world that a resume holds, if it is the one that it names."""
    if body.world is None or body.leaves is None:
        return None
    try:
        world = World.from_dict(body.leaves)
    except WorldInvalid:
        return None
    return world if world.digest == body.world else None
