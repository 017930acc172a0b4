# SPDX-License-Identifier: Apache-2.0
"""The book of rollouts: a reserved thread of the namespace that holds them as requests.

So a rollout is signed, chained, anchored, approved, denied, exported and audited like any other
request. The gate looks up a change of worlds here, and uses only entries below the book's verified,
anchored head. A verified entry is not verified again.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import takewhile
from threading import Lock
from typing import Any, NamedTuple

from sealpoint.errors import (
    Forked,
    NotTrusted,
    PolicyInvalid,
    RolledBack,
    SealpointError,
    Tampered,
    Unanchored,
    UnknownThread,
)
from sealpoint.gate._decision import RolloutFacts, compared_reasons
from sealpoint.gate._policy import Measure, Policies, Policy
from sealpoint.gate._requests import (
    Asked,
    Pending,
    Request,
    RequestsById,
    fold_entry,
    fold_found,
    fold_lost,
    make_request,
    short_digest,
)
from sealpoint.ledger import (
    KINDS,
    ROLLOUTS,
    ExpiryBody,
    Header,
    Kind,
    PositionLists,
    RequestBody,
    VerdictBody,
    is_lost,
    readable_body,
)
from sealpoint.limits import POSITION_LIST_BYTES_MAX, ROLLOUT_DAYS_MAX
from sealpoint.signing import Action, Attestation, Roster, Statement, count
from sealpoint.storage import Record
from sealpoint.store import Chain, Core
from sealpoint.world import World

_LONGEST = timedelta(days=ROLLOUT_DAYS_MAX)
_NOBODY = 1_000
"""More people than can ever approve; stands for a change that the policy refuses."""


class Rollout(NamedTuple):
    """A rollout in force that names a change of worlds, with the proof of it."""

    facts: RolloutFacts
    statement: Statement
    approvals: tuple[Attestation, ...]
    """One counted approval of each person."""


class RolloutEnd(NamedTuple):
    """How a rollout ended, if it did."""

    revoked: datetime | None
    """When it was first denied, in the order of the book, as the writer of that entry states. None
    if no such writer has the right to determine the time."""
    positions: tuple[str, ...]
    """The digests of the position lists that were recorded after its end."""


class RolloutHistory(NamedTuple):
    """Every rollout that was ever proposed in a namespace, for an audit."""

    ends: Mapping[str, RolloutEnd]
    """By the digests of their statements."""
    lists: PositionLists
    """The source of the position lists."""

    def end_faults(
        self, rollout: Statement, header: Header, at: datetime, slack: timedelta
    ) -> Iterator[str]:
        """Yield why a rollout had ended, or never existed, when a resume used it.

        Positions are binding. Time decides only if no list counts, because the writers of the
        resume and of the denial chose it.

        Args:
            rollout: Its statement.
            header: The header of the resume.
            at: The time of the resume.
            slack: The tolerated time between judging and writing.
        """
        end = self.ends.get(rollout.digest)
        if end is None:
            yield "nobody has proposed it"
            return
        try:
            beyond = any(self._is_beyond(header, digest) for digest in end.positions)
        except (Tampered, NotTrusted) as error:
            yield f"it has ended, and the resume cannot be judged: {error.message}"
            return
        if beyond:
            yield "it had ended before the thread came to this position"
        elif not end.positions and end.revoked is not None and at - end.revoked >= slack:
            yield "it had been revoked"

    def _is_beyond(self, header: Header, digest: str) -> bool:
        last = self.lists.get(digest).position(bytes.fromhex(header.thread))
        return last is None or header.seq > last[0]


def rollout_faults(
    rollout: Statement,
    header: Header,
    *,
    at: datetime,
    change: tuple[str | None, str | None],
    policy: str | None,
    history: RolloutHistory | None,
    slack: timedelta = timedelta(),
) -> Iterator[str]:
    """Yield why a rollout did not allow a resume, apart from the approvals that it had.

    The function is pure, and both the gate and the review call it.

    Args:
        rollout: The statement of the rollout.
        header: The header of the resume.
        at: The time of the resume.
        change: The world before the resume and the world after it.
        policy: The digest of the policy that judges the resume.
        history: The rollouts of the namespace; None if they are unknown.
        slack: The tolerated time between judging and writing.
    """
    for name, found, expected in (
        ("action", rollout.action, Action.ROLLOUT),
        ("store", rollout.store, header.store),
        ("namespace", rollout.ns, header.ns),
        ("policy", rollout.policy, policy),
        ("epoch", str(rollout.epoch), str(header.epoch)),
    ):
        if found != expected:
            yield f"it was for {name} {short_digest(found)}, not {short_digest(expected)}"
    if change not in rollout.pairs:
        before, after = map(short_digest, change)
        yield f"it does not name a change from world {before} to {after}"
    if rollout.expired_at(at, slack=slack):
        yield "it had expired"
    if rollout.expires - at > _LONGEST + slack:
        yield f"it was to hold for more than {ROLLOUT_DAYS_MAX} days"
    if history is not None:
        yield from history.end_faults(rollout, header, at, slack)


class RolloutBook:
    """The rollouts of a namespace, as an open store sees them."""

    def __init__(self, core: Core, policies: Policies) -> None:
        self._core = core
        self._policies = policies
        self._lock = Lock()
        self._chain = Chain(core, ROLLOUTS)
        self._pending: Pending | None = None
        self._seen: tuple[int, bytes, int, int] | None = None
        self._history: tuple[tuple[bytes, int], dict[str, RolloutEnd]] | None = None
        self._lists = PositionLists(self._list)
        self._least: dict[tuple[str, str], int] = {}
        self._counted: dict[str, tuple[tuple[int, int, int], Rollout | None]] = {}

    def all(self) -> tuple[Request, ...]:
        """Return every rollout since the newest restore, oldest first, in any status."""
        with self._lock:
            asked, now = self._read(), self._core.now()
            roster = self._core.trust().roster
            policy = self._policies.in_force(roster)
            return tuple(
                make_request(
                    each,
                    ROLLOUTS,
                    roster=roster,
                    policy=policy,
                    now=now,
                    least=0 if policy is None else self._needed(each, policy),
                )
                for each in asked
            )

    def pending(self) -> Pending:
        """Return everything pending on the book's thread, for the callers who answer it."""
        with self._lock:
            self._read()
            return Pending(time=self._core.now()) if self._pending is None else self._pending

    def _list(self, digest: bytes) -> bytes | None:
        return self._core.storage.blob(self._chain.thread, digest, POSITION_LIST_BYTES_MAX)

    def history(self) -> RolloutHistory | None:
        """Return every rollout that was ever proposed, and how it ended; None if that is unknown.

        An audit uses it to judge resumes of every epoch. Whether a rollout held when it was used
        follows from the approvals that the resume carries.
        """
        with self._lock, self._chain.verified.all_kept():
            try:
                self._read()
                if self._chain.head is None:
                    return RolloutHistory({}, self._lists)
                known = (self._chain.verified_head().hash, self._core.trust().seq)
                if self._history is None or self._history[0] != known:
                    self._history = known, self._recorded_ends()
                return RolloutHistory(self._history[1], self._lists)
            except SealpointError:
                return None  # a fault of the book is reported as for every thread

    def _recorded_ends(self) -> dict[str, RolloutEnd]:
        chain, asked = self._chain, RequestsById()
        trust = chain.core.trust()
        for header, record in reversed(list(chain.walk())):
            body = _body(header, record)
            about = KINDS[header.kind].about_requests
            if body is None and about and is_lost(header, record.body):
                fold_lost(asked, chain.verify(record, header.seq), trust.roster_at(header.roster))
            if isinstance(body, RequestBody | VerdictBody | ExpiryBody):
                entry = chain.verify(record, header.seq)
                fold_entry(
                    asked,
                    entry,
                    body,
                    basis=body.statement.basis if isinstance(body, RequestBody) else "",
                    epoch=header.epoch,
                    trust=trust,
                )
        return {
            each.id: RolloutEnd(next((at for _, at in each.denials if at), None), each.positions)
            for each in asked.values()
        }

    def holds(self, rollout_id: str, since: datetime) -> bool:
        """Whether a rollout is in force, at a time of a thread.

        Raises:
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The book is not what it was.
        """
        with self._lock:
            asked, now = self._read(), self._core.now(since)
            roster = self._core.trust().roster
            policy = self._policies.in_force(roster)
            return policy is not None and any(
                each.id == rollout_id and self._in_force(each, roster, policy, now) is not None
                for each in asked
            )

    def find(self, before: str, after: str, since: datetime | None = None) -> Rollout | None:
        """Return the rollout in force for a change of worlds with the most approvals.

        The result is also None if the book cannot be read. Any member can cause that, and people
        are then asked as if nothing had been proposed. The error is logged, and listing the
        rollouts raises it.

        Args:
            before: The world that a thread was saved in.
            after: The world that it would resume in.
            since: The time of that thread, so that setting back a clock revives nothing.
        """
        with self._lock:
            try:
                asked, now = self._read(), self._core.now(since)
            except (Tampered, NotTrusted, Forked, RolledBack) as error:
                self._core.emit_refused(error, self._chain.thread.hex())
                return None
            roster = self._core.trust().roster
            policy = self._policies.in_force(roster)
            if policy is None:
                return None
            found = [
                self._in_force(each, roster, policy, now)
                for each in asked
                if (before, after) in each.body.statement.pairs
            ]
        living = [each for each in found if each is not None]
        return max(living, key=lambda each: len(each.facts.approved_by), default=None)

    def _in_force(
        self, asked: Asked, roster: Roster, policy: Policy, now: datetime
    ) -> Rollout | None:
        """Return the rollout if it has the approvals it needs and no denial; otherwise None."""
        statement = asked.body.statement
        # The proposer chooses `expires`, so it has a bound.
        if asked.expired or statement.expired_at(now) or statement.expires - now > _LONGEST:
            return None
        if asked.denials or statement.policy != policy.digest:
            return None
        # The counted answers change with the roster, with each answer, and when a key expires.
        words = asked.attestations
        expired = sum(roster.key_expired_at(word.credential, now) for word in words)
        stands = (roster.seq, len(words), expired)
        known = self._counted.get(asked.id)
        if known is None or known[0] != stands:
            needed = self._needed(asked, policy)
            known = self._counted[asked.id] = stands, _counted(asked, roster, needed, now)
        return known[1]

    def had_approvals(self, asked: Asked) -> bool:
        """Whether a rollout that has ended ever had the approvals that it needs, by this book."""
        with self._lock:
            statement, trust = asked.body.statement, self._core.trust()
            policies = {each.policy_digest(statement.ns) for each in trust.rosters}
            if statement.policy is None or statement.policy not in policies:
                return False
            try:
                needed = self._needed(asked, self._policies.get(statement.policy))
            except (PolicyInvalid, Tampered):
                needed = statement.needed
            persons = set()
            for seq, word in zip(asked.relayed, asked.attestations, strict=True):
                header = self._chain.descend(seq)[1]
                roster = trust.roster_at(header.roster)
                if roster is not None:
                    tally = count([word], statement=statement, roster=roster, now=header.at)
                    found = map(roster.identity, tally.approved_by)
                    persons |= {each.person for each in found if each is not None}
            return len(persons) >= needed

    def _needed(self, asked: Asked, policy: Policy) -> int:
        """Return how many must approve a rollout by the policy, whatever its proposer states."""
        key = asked.id, policy.digest
        if key not in self._least:
            worlds = {world.digest: world for world in map(World.from_dict, asked.body.worlds)}
            pairs = [(worlds[one], worlds[other]) for one, other in asked.body.statement.pairs]
            asks = [compared_reasons(one.diff(other), policy) for one, other in pairs]
            measures = [each.measure for reasons in asks for each in reasons]
            refused = Measure.REFUSE in measures
            # A pair without a compared difference needs no approval.
            people = max((each.people for each in measures), default=0)
            self._least[key] = _NOBODY if refused else people
        return max(self._least[key], asked.body.statement.needed)

    def _read(self) -> list[Asked]:
        """Read the new entries of the book, and return its rollouts."""
        # Any member may write to the book, so judging and reading must use the same entries.
        with self._chain.verified.all_kept():
            return self._read_new()

    def _read_new(self) -> list[Asked]:
        chain, core = self._chain, self._core
        try:
            chain.refresh()
        except (UnknownThread, Unanchored):
            return []  # this anchor knows of no rollout, so people are asked
        head, tip, epoch = chain.verified_head(), chain.tip(), core.trust().epoch
        seen = self._seen
        if self._pending is None or seen is None or seen[2:] != (tip.basis[0], epoch):
            self._pending, seen = Pending(time=tip.time), None
        if seen is None or seen[:2] != (head.seq, head.hash):
            last = -1 if seen is None else seen[0]
            new = list(takewhile(lambda each: _is_after(each[0], last), chain.walk()))
            self._seen = None  # if an entry cannot be read, no entry may count twice
            fold_found(chain, tip.basis, reversed(new), self._pending)
        self._seen = (head.seq, head.hash, tip.basis[0], epoch)
        asked = self._pending.asked.values()
        return [each for each in asked if each.body.statement.action is Action.ROLLOUT]


def _is_after(header: Header, seq: int) -> bool:
    return header.seq > seq and header.kind is not Kind.GENESIS


def _counted(asked: Asked, roster: Roster, needed: int, now: datetime) -> Rollout | None:
    statement = asked.body.statement
    tally = count(asked.attestations, statement=statement, roster=roster, now=now)
    if tally.denied_by or len(tally.approved_by) < needed:
        return None
    facts = RolloutFacts(
        id=asked.id,
        approved_by=tally.approved_by,
        needed=needed,
        reason=statement.reason,
    )
    return Rollout(facts, statement, tally.approvals)


def _body(header: Header, record: Record) -> Any:
    """Return the content of an entry about requests; None if it cannot be read."""
    return readable_body(header, record.body) if KINDS[header.kind].about_requests else None
