# SPDX-License-Identifier: Apache-2.0
"""Whether the world of a session was allowed, judged again from the resume that opened it.

A worker with a genuine key and other code can open a session in any world, and an honest worker
would then continue in it as if nothing had changed. So the gate does not trust the world that a
session names. The resume of the session names its checkpoint. It either says that the world is
still that of the session that saved this checkpoint, or holds the new world with the approvals or
the rollout that allowed the change. This module judges that as the gate would judge it now, by the
policy that binds the position.

A session rests on the session that it resumed from, so that one is judged next, and so on, as long
as both are by one person. When another person resumes, one of the two runs our code, which judged
the same. Only consecutive sessions of our own key are not judged one by one: an attacker who holds
our own key can do everything there that we can.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from types import MappingProxyType
from typing import NamedTuple

from sealpoint.errors import (
    Missing,
    NotTrusted,
    PolicyInvalid,
    SealpointError,
    StorageUnavailable,
    Tampered,
    WorldInvalid,
)
from sealpoint.gate._decision import (
    Facts,
    GrantFacts,
    Outcome,
    RolloutFacts,
    decide,
    world_facts,
)
from sealpoint.gate._policy import Policies, Policy
from sealpoint.gate._requests import (
    RequestsById,
    as_spent,
    denied_alike,
    fold_entry,
    fold_lost,
    grant_of,
    spending_faults,
)
from sealpoint.gate._reviewed_checkpoints import Resumes, Settled
from sealpoint.gate._rollouts_in_force import RolloutBook, rollout_faults
from sealpoint.ledger import (
    KINDS,
    CheckpointBody,
    Entry,
    Header,
    Kind,
    PruneBody,
    ResumeBody,
    StoreChain,
    counted_attestations,
    is_lost,
    link_hash,
    parse_body,
    read_basis_and_time,
    readable_body,
    time_at,
)
from sealpoint.signing import Statement, count
from sealpoint.storage import Record
from sealpoint.store import Chain, ThreadReader, checkpoint_place
from sealpoint.world import World, WorldDiff

SLACK = timedelta(minutes=1)
"""The tolerated time between judging and writing, for a grant or an age that ran out in between.
The writer of the entry also chooses its time, so a smaller tolerance would prove no more."""

_BEGINNING = datetime.min.replace(tzinfo=UTC)
_OWN_MAX = 4
"""This many changes of world in a row of this process's own sessions are judged."""


class AllowedWorld(NamedTuple):
    """The world that a resume is compared with, and why it differs from the named one."""

    world: World | None
    """None: no world was declared, or it cannot be read."""
    faults: tuple[str, ...] = ()
    """Why the world that the session names was not allowed; empty if it was."""

    def digest(self, named: str | None) -> str | None:
        """Return the digest of the world that counts, given the one that a checkpoint names."""
        if not self.faults:
            return named
        return None if self.world is None else self.world.digest


class _Opened(NamedTuple):
    """A session, with the resume that opened it."""

    entry: Entry
    body: ResumeBody

    @property
    def decided(self) -> int:
        """Return the position of the resume that holds its world."""
        return self.entry.seq if self.body.decided is None else self.body.decided


class _WorldFinding(NamedTuple):
    """The result of judging one session."""

    faults: tuple[str, ...] = ()
    below: int | None = None
    """The session that it resumed from; if that was not permitted, the one that it should have
    resumed from. None if there is no such session."""
    settled: bool = False
    """Whether no earlier session needs to be judged."""


_Rank = tuple[int, int]
"""The negated rank and position of a checkpoint, so that the newest is the smallest."""

_StretchRow = tuple[Header, CheckpointBody | PruneBody | ResumeBody | None]
"""The body of a checkpoint, a prune, a deletion or a resume; None: a resume without its body."""


class _Before(NamedTuple):
    """The state of the thread before a resume."""

    newest: int | None
    """The newest checkpoint of the main lane, including one whose deletion no resume has settled.
    None: it is below the stretch."""
    removals: PruneBody | None
    """The prune or deletion in force."""
    newest_left: int | None
    """The newest checkpoint that is left, for a retry."""
    retried: Settled
    """The newest resume by the same key in whose session nothing new was saved."""


class _Stretch(NamedTuple):
    """The state before each resume of a stretch of a thread."""

    first: int = 0
    last: int = -1
    before: Mapping[int, _Before] = MappingProxyType({})

    @classmethod
    def of(cls, rows: Sequence[_StretchRow], first: int) -> "_Stretch":
        """Build it from all rows of a stretch, newest first; the newest row is a resume."""
        before: dict[int, _Before] = {}
        removals: PruneBody | None = None
        resumes, ranks = Resumes(), list[_Rank]()
        ranks_by_key: dict[str, list[_Rank]] = {}
        for header, body in reversed(rows):
            if isinstance(body, PruneBody):
                removals = body
            elif isinstance(body, CheckpointBody) and not body.lane:
                if header.kind is Kind.CHECKPOINT and body.is_new_in_main_lane:
                    resumes.settle()
                    ranks_by_key.clear()
                rank = -(header.seq if body.again is None else body.again), -header.seq
                for heap in (ranks, *ranks_by_key.values()):
                    heappush(heap, rank)
            elif not isinstance(body, CheckpointBody):
                newest = left = _newest_rank(ranks, resumes.settled.removals)
                retried = resumes.unproductive(header.by)
                if left is not None and retried.removals and retried.removals.deletes(left):
                    if header.by not in ranks_by_key:
                        ranks_by_key[header.by] = ranks.copy()
                    left = _newest_rank(ranks_by_key[header.by], retried.removals)
                before[header.seq] = _Before(newest, removals, left, retried)
                resumes.add(header, removals, body.checkpoint if body else None)
        return cls(first, rows[0][0].seq, before)

    def includes(self, resume: int, rank: int) -> bool:
        """Whether it covers the state before a resume, down to the rank of a checkpoint."""
        return self.first <= rank and resume in self.before


def _newest_rank(ranks: list[_Rank], settled: PruneBody | None) -> int | None:
    """Drop from the top of a heap what was deleted, and return the position that is left there."""
    while ranks and settled and settled.deletes(-ranks[0][1]):
        heappop(ranks)  # a later deletion does not bring it back
    return -ranks[0][1] if ranks else None


class SessionWorlds:
    """Judges the worlds of the sessions of one thread.

    Args:
        chain: The chain of the thread.
        reader: Reads the resumes of the thread.
        policies: The policies of the store.
        book: The rollouts of the store.
    """

    def __init__(
        self, chain: Chain, reader: ThreadReader, policies: Policies, book: RolloutBook
    ) -> None:
        self._chain = chain
        self._reader = reader
        self._policies = policies
        self._book = book
        self._known: tuple[StoreChain | None, dict[bytes, _WorldFinding]] = (None, {})
        """The store chain of the judgments, and the findings about sessions by entry hash."""
        self._stretch = _Stretch()
        """The stretch of the thread that was read last to find the newest checkpoints."""
        self._faults: dict[int, _WorldFinding | None] = {}
        self._results: dict[int, AllowedWorld] = {}
        """For the length of one call: what was found from a session downwards."""

    def allowed(self, session: int) -> AllowedWorld:
        """Return the world in which a session was allowed to run.

        That is the one that it names, or otherwise the newest one before it that was allowed.
        """
        # A rollout may have been revoked since the last call.
        self._faults, self._results = {}, {}
        # Judging a rollout needs the world that was allowed below it: the lowest comes first.
        for below in reversed(self._rollouts_from(session)):
            self._allowed(below)
        return self._allowed(session)

    def _rollouts_from(self, session: int) -> list[int]:
        """Return the sessions from one downwards, as long as each was opened under a rollout."""
        found = list[int]()
        with suppress(SealpointError):  # raised again where it matters
            while (opened := self._session(session)).body.rollouts:
                found.append(session)
                session = self._saved_in(*self._released(opened)).entry.seq
        return found

    def _allowed(self, session: int) -> AllowedWorld:
        faults_of: dict[int, tuple[str, ...]] = {}
        world: World | None = None
        error: tuple[str, ...] = ()
        try:
            while session not in self._results:
                faults_of[session] = ()
                found = self._find_fault(session)
                if found is None:
                    world = self._world(self._session(session))
                    break
                faults_of[session] = found.faults
                if found.below is None:
                    break
                session = found.below
            else:
                world = self._results[session].world
        except (StorageUnavailable, Tampered):
            raise
        except SealpointError as refused:
            error = (refused.message,)
        for each, faults in faults_of.items():
            self._results[each] = AllowedWorld(world, faults + error)
        return self._results[next(iter(faults_of), session)]

    def _find_fault(self, session: int) -> _WorldFinding | None:
        """Return the fault of a session or of one that it rests on; None if there is no fault."""
        trust = self._chain.trust.get()
        if self._known[0] is not trust:
            self._known, self._stretch = (trust, {}), _Stretch()
        followed = list[int]()
        fault: _WorldFinding | None = None
        changes = 0
        while True:
            if session in self._faults:
                fault = self._faults[session]
                break
            opened = self._session(session)
            judged = self._judged(opened, trust)
            if judged.faults:
                fault = judged
                break
            if judged.settled or judged.below is None:
                break
            if not self._is_own(opened.entry):
                followed.append(session)
                session = judged.below
                continue
            # For our own sessions: jump to the one that decided the world.
            if opened.body.decided is not None:
                session = opened.decided
                if not self._is_own(self._decided(opened).entry):
                    break
                continue
            changes += 1
            if opened.body.rollouts or changes == _OWN_MAX:
                break
            session = judged.below
        self._faults.update(dict.fromkeys(followed, fault))
        return fault

    def _is_own(self, entry: Entry) -> bool:
        """Whether this store's key signed it; another key of the same identity may be stolen."""
        signer = self._chain.core.parts.signer
        return signer is not None and entry.header.by == signer.key

    def _session(self, session: int) -> _Opened:
        return _Opened(*self._reader.opening(session))

    def _decided(self, opened: _Opened) -> _Opened:
        """Return the session that decided the world of another one.

        Raises:
            NotTrusted: The entry that it names is not a session, or was erased before.
        """
        if opened.body.decided is None:
            return opened
        header = self._chain.descend(opened.decided)[1]
        if header.kind is not Kind.RESUME or header.gen != opened.entry.header.gen:
            raise NotTrusted(
                f"entry {opened.entry.seq}: it says that entry {opened.decided} decided its world, "
                "which is not a session of this generation"
            )
        return self._session(opened.decided)

    def _saved_in(self, record: Record, checkpoint: Header) -> _Opened:
        return _Opened(*self._reader.saved_in(checkpoint, record))

    def _judged(self, opened: _Opened, trust: StoreChain) -> _WorldFinding:
        known, key = self._known[1], opened.entry.hash
        found = known.get(key)
        if found is None:
            found = self._judge(opened, trust)
            if not opened.body.rollouts:  # a rollout may be revoked at any time
                known[key] = found
        return found

    def _judge(self, opened: _Opened, trust: StoreChain) -> _WorldFinding:
        """Judge one session by the session that it resumed from."""
        entry, body = opened
        words = f"entry {entry.seq} by {entry.writer!r}"
        if body.checkpoint is None:
            lost = self._has_checkpoint_below(entry)
            fault = f"{words} does not name the checkpoint that it released"
            return _WorldFinding((fault,) if lost else ())
        record, released = self._released(opened)
        before = self._saved_in(record, released)
        found = _WorldFinding(
            below=before.entry.seq,
            settled=trust.person_of(entry) != trust.person_of(before.entry),
        )
        kept = body.decided is not None
        if kept and (opened.decided, body.world) != (before.decided, before.body.world):
            fault = f"{words} says that entry {body.decided} decided its world"
            return found._replace(
                faults=(f"{fault}, and that of the checkpoint was decided in {before.decided}",)
            )
        newest, rests_on = self._newest(entry, record, released)
        is_newest = newest == released.seq
        if is_newest and rests_on is not None:
            found = found._replace(below=rests_on, settled=False)
        if kept and is_newest:
            return found
        if not is_newest:
            found = found._replace(below=self._saved_in(*self._chain.descend(newest)).entry.seq)
        try:
            digest = trust.policy_at(entry.header)
            policy = None if digest is None else self._policies.get(digest)
        except (PolicyInvalid, NotTrusted) as error:
            fault = f"{words} changed the world, and the policy to judge it by cannot be read"
            return found._replace(faults=(f"{fault}: {error.message}",))
        facts, approved = self._facts(opened, before, policy, trust, newest=is_newest)
        judged = decide(facts, policy)
        if judged.outcome is not Outcome.ALLOW:
            reasons = "; ".join(reason.words for reason in judged.reasons)
            fault = f"{words} changed the world, which the gate would not have allowed: {reasons}"
            return found._replace(faults=(fault,))
        below = released.fence if rests_on is None else rests_on
        return found._replace(below=below, settled=found.settled or approved)

    def _world(self, opened: _Opened) -> World | None:
        """Return the world of a session, from the resume that decided it."""
        held = self._decided(opened)
        return world_held(held.body) if held.body.world == opened.body.world else None

    def _released(self, opened: _Opened) -> tuple[Record, Header]:
        """Return the checkpoint that a session resumed from.

        Raises:
            Tampered, NotTrusted: The checkpoint that it names does not exist.
        """
        body, where = opened.body, f"entry {opened.entry.seq}"
        if body.released is None:
            raise NotTrusted(f"{where}: it does not say where the checkpoint lies that it released")
        record, header = self._chain.descend(body.released)
        is_released = link_hash(record.header).hex() == body.checkpoint
        if not is_released or not KINDS[header.kind].is_checkpoint:
            raise NotTrusted(f"{where}: the checkpoint that it released lies somewhere else")
        if header.gen != opened.entry.header.gen:
            raise NotTrusted(f"{where}: the checkpoint that it released was erased before")
        return record, header

    def _facts(
        self,
        opened: _Opened,
        before: _Opened,
        policy: Policy | None,
        trust: StoreChain,
        *,
        newest: bool,
    ) -> tuple[Facts, bool]:
        """Return the gate's facts about a change of worlds alone.

        Returns:
            The facts, and whether people have approved the change.
        """
        body = opened.body
        worlds = self._world(before), self._world(opened)
        same = before.body.world == body.world
        diff = WorldDiff() if same and body.world is not None else None
        if worlds[0] is not None and worlds[1] is not None and not same:
            diff = worlds[0].diff(worlds[1])
        before_it = read_basis_and_time(
            (header, record.header) for header, record in self._chain.walk(opened.entry.header)
        )[1]
        now = time_at(opened.entry.header, before_it)
        grant, approved = self._grant(opened, policy, trust, now)
        facts = world_facts(
            self._chain.name,
            diff,
            world_before=before.body.world is not None,
            world_now=body.world is not None,
            newest=newest,
            deliberate=body.reason,
            grant=grant,
            rollouts=(),
        )
        return self._with_rollouts(
            facts, opened, before, policy=policy, trust=trust, now=now
        ), approved

    def _grant(
        self, opened: _Opened, policy: Policy | None, trust: StoreChain, now: datetime
    ) -> tuple[GrantFacts | None, bool]:
        """Return the grant that a resume used, if it was for exactly this resume.

        Returns:
            The grant, and whether it was for a change of worlds: its approvers saw that change,
            from an allowed world.
        """
        entry, body = opened
        if body.request is None:
            return None, False
        pending = self._asked_before(entry, trust)
        asked = pending.get(body.request)
        roster = trust.roster_at(entry.header.roster)
        if asked is None or roster is None:
            return None, False
        if denied_alike(pending.values(), asked, policy, now) is not None:
            return None, False
        statement = asked.body.statement
        judged_by = None if policy is None else policy.digest
        if any(spending_faults(statement, entry, body, statement.world_from, judged_by)):
            return None, False
        grant = grant_of(as_spent(asked, entry, body, trust), roster, forgiving(now), policy)
        changes = statement.world_from != statement.world_to
        return grant, changes and len(set(grant.approved_by)) >= max(1, grant.needed)

    def _asked_before(self, entry: Entry, trust: StoreChain) -> RequestsById:
        """Return the requests that were open when an entry was written, with their answers."""
        found, basis = [], b""
        for header, record in self._chain.walk(entry.header):
            if KINDS[header.kind].moves_basis or header.kind is Kind.GENESIS:
                basis = link_hash(record.header)
                break
            if KINDS[header.kind].about_requests:
                found.append((self._chain.verify(record, header.seq), record.body))
        asked = RequestsById()
        for each, data in reversed(found):
            body = readable_body(each.header, data)
            if body is None and is_lost(each.header, data):
                fold_lost(asked, each, trust.roster_at(each.header.roster))
            if body is None:
                continue
            fold_entry(
                asked,
                each,
                body,
                basis=basis.hex(),
                epoch=entry.header.epoch,
                trust=trust,
            )
        return asked

    def _with_rollouts(
        self,
        facts: Facts,
        opened: _Opened,
        before: _Opened,
        *,
        policy: Policy | None,
        trust: StoreChain,
        now: datetime,
    ) -> Facts:
        """Return the facts with the rollouts that a resume used, if they accept its differences."""
        entry, body = opened
        if not body.rollouts or policy is None:
            return facts
        history = self._book.history()
        if history is None and not self._is_own(entry):
            return (
                facts  # their end is unknown here; our own resumes checked it when they were made
            )

        def rolled_out(diff: WorldDiff | None) -> Facts:
            found = []
            for statement in body.rollouts:
                faults = rollout_faults(
                    statement,
                    entry.header,
                    at=now,
                    diff=diff,
                    policy=policy.digest,
                    trust=trust,
                    history=history,
                    slack=SLACK,
                )
                if not any(faults):
                    found.append(rollout_facts(statement, entry, body, trust, now))
            counted = tuple(each for each in found if each is not None)
            return replace(facts, diff=diff, rollouts=counted)

        made = rolled_out(facts.diff)
        by_same_key = before.entry.header.by == entry.header.by
        if by_same_key or decide(made, policy).outcome is Outcome.ALLOW:
            return made
        # A resume from a session whose world was not allowed changes the allowed world.
        allowed, world = self._allowed(before.entry.seq), self._world(opened)
        if not allowed.faults or allowed.world is None or world is None:
            return made
        return rolled_out(allowed.world.diff(world))

    def _newest(self, entry: Entry, record: Record, released: Header) -> tuple[int, int | None]:
        """Return the position of the main-lane checkpoint that a resume should have released.

        That is the newest one. A deleted checkpoint also counts until a resume settles the
        deletion, because the remaining ones are older.

        Returns:
            The position, and the earlier resume by the same key on which that rests.

        Raises:
            Missing: A body is missing, so the answer is unknown.
            NotTrusted: The released checkpoint was deleted, or is not in the main lane.
        """
        body = parse_body(released.kind, released.body, _held_body(released, record))
        place = checkpoint_place(released, link_hash(record.header), body)
        if not self._stretch.includes(entry.seq, place.rank):
            self._stretch = self._read_stretch(entry.header, place.rank)
        found = self._stretch.before[entry.seq]
        if place.key.lane or (found.removals is not None and found.removals.deletes(released.seq)):
            raise NotTrusted(
                f"entry {entry.seq}: it released entry {released.seq}, from which nobody resumes"
            )
        newest, rests_on = found.newest, None
        is_deleted = newest is not None and newest != found.newest_left
        if is_deleted and found.retried.is_retried(link_hash(record.header).hex(), found.removals):
            newest, rests_on = found.newest_left, found.retried.resume
        return released.seq if newest is None else newest, rests_on

    def _read_stretch(self, above: Header, first: int) -> "_Stretch":
        """Read from a resume down to a position, and find the newest checkpoint before each resume.

        The next question is usually about a session that this one rests on. If it needs more
        entries but is inside the current stretch, the method reads twice as many. Otherwise a
        series of sessions that each need a little more would read the stretch again for each of
        them.
        """
        if self._stretch.first < above.seq <= self._stretch.last:
            first = min(first, 2 * self._stretch.first - self._stretch.last)
        rows: list[_StretchRow] = []
        for header, record in self._chain.walk(above):
            rule = KINDS[header.kind]
            if rule.is_retention or rule.is_checkpoint:
                body = parse_body(header.kind, header.body, _held_body(header, record))
                rows.append((header, body))
            elif header.kind is Kind.RESUME:
                data = record.body
                resume = None if data is None else parse_body(header.kind, header.body, data)
                rows.append((header, resume))
            if header.seq <= first or header.kind in (Kind.GENESIS, Kind.ERASE):
                break
        return _Stretch.of([(above, None), *rows], first)

    def _has_checkpoint_below(self, entry: Entry) -> bool:
        """Whether a checkpoint that was not deleted existed before an entry."""
        below = entry.header
        removals: PruneBody | None = None
        while True:
            for header, record in self._chain.walk(below):
                rule = KINDS[header.kind]
                if header.kind in (Kind.GENESIS, Kind.ERASE):
                    return False
                if rule.is_retention and removals is None:
                    removals = parse_body(header.kind, header.body, _held_body(header, record))
                if rule.is_checkpoint and _is_main(header, record):
                    if removals is None or not removals.deletes(header.seq):
                        return True
                    # All of the span was deleted: continue below it.
                    below = self._chain.descend(removals.span_at(header.seq)[0])[1]
                    break
            else:
                return False


def _is_main(header: Header, record: Record) -> bool:
    """Whether a checkpoint is in the main lane, from which runs resume."""
    body: CheckpointBody = parse_body(header.kind, header.body, _held_body(header, record))
    return not body.lane


def _held_body(header: Header, record: Record) -> bytes:
    """Return the body of an entry, without which the entries after it cannot be judged.

    Raises:
        Missing: The body is missing.
    """
    if record.body is None:
        raise Missing(f"entry {header.seq}: its body is missing")
    return record.body


def forgiving(at: datetime) -> datetime:
    """Return a slightly earlier time, within the range of dates: a writer chose the time."""
    return at - min(SLACK, at - _BEGINNING)


def rollout_facts(
    statement: Statement,
    entry: Entry,
    body: ResumeBody,
    chain: StoreChain,
    at: datetime | None = None,
) -> RolloutFacts | None:
    """Return the facts of a rollout when a resume used it, by the approvals in the entry.

    Args:
        statement: The statement of the rollout.
        entry: The resume.
        body: Its body.
        chain: The rosters.
        at: The time of the resume, if it is later than the entry states.
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
        differences=statement.differences,
    )


def world_held(body: ResumeBody) -> World | None:
    """Return the world that a resume holds, if it is the one that it names."""
    if body.world is None or body.leaves is None:
        return None
    try:
        world = World.from_dict(body.leaves)
    except WorldInvalid:
        return None
    return world if world.digest == body.world else None
