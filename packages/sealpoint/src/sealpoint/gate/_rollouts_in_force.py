# SPDX-License-Identifier: Apache-2.0
"""The book of rollouts: a reserved thread of the namespace that holds them as requests.

So a rollout is signed, chained, anchored, approved, denied, exported and audited like any other
request. The gate looks up the differences between two worlds here, and uses only entries below the
book's verified, anchored head. A verified entry is not verified again.

A rollout accepts capabilities, and no state of a thread, so an accepted restore does not end it. If
a restore lost entries of the book itself, every rollout before it has ended: a denial may be among
the lost entries.
"""

from collections.abc import Iterable, Iterator, Mapping
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
from sealpoint.gate._decision import RolloutFacts, accepted_leaves, asked_leaves
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
    StoreChain,
    VerdictBody,
    is_lost,
    readable_body,
)
from sealpoint.limits import (
    POSITION_LIST_BYTES_MAX,
    ROLLOUT_DAYS_MAX,
    ROLLOUTS_PER_RESUME_MAX,
)
from sealpoint.signing import Action, Attestation, Roster, Statement, count
from sealpoint.storage import Record
from sealpoint.store import Chain, Core
from sealpoint.world import WorldDiff

_LONGEST = timedelta(days=ROLLOUT_DAYS_MAX)
_NOBODY = 1_000
"""More people than can ever approve; stands for a change that the policy refuses."""


class Rollout(NamedTuple):
    """A rollout in force that accepts differences between worlds, with the proof of it."""

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
    epoch: int | None
    """The epoch of the entry that first recorded its end; None if none did."""


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
        if end.epoch is not None and end.epoch < header.epoch:
            yield "it had ended before a restore, and the resume is later"
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
    diff: WorldDiff | None,
    policy: str | None,
    trust: StoreChain,
    history: RolloutHistory | None,
    slack: timedelta = timedelta(),
) -> Iterator[str]:
    """Yield why a rollout did not allow a resume, apart from the approvals that it had.

    The function is pure, and both the gate and the review call it.

    Args:
        rollout: The statement of the rollout.
        header: The header of the resume.
        at: The time of the resume.
        diff: The differences between the world before the resume and the world after it.
        policy: The digest of the policy that judges the resume.
        trust: The store chain.
        history: The rollouts of the namespace; None if they are unknown.
        slack: The tolerated time between judging and writing.
    """
    for name, found, expected in (
        ("action", rollout.action, Action.ROLLOUT),
        ("store", rollout.store, header.store),
        ("namespace", rollout.ns, header.ns),
        ("policy", rollout.policy, policy),
    ):
        if found != expected:
            yield f"it was for {name} {short_digest(found)}, not {short_digest(expected)}"
    yield from _epoch_faults(rollout, header, trust)
    accepted = {leaf for leaf, _, _ in rollout.differences}
    if diff is None or accepted.isdisjoint(change.leaf for change, _, _ in diff.values()):
        yield "it does not name a difference between these worlds"
    if rollout.expired_at(at, slack=slack):
        yield "it had expired"
    if rollout.expires - at > _LONGEST + slack:
        yield f"it was to hold for more than {ROLLOUT_DAYS_MAX} days"
    if history is not None:
        yield from history.end_faults(rollout, header, at, slack)


def _epoch_faults(rollout: Statement, header: Header, trust: StoreChain) -> Iterator[str]:
    """Yield why a restore ended a rollout before a resume, or it is of a later epoch."""
    if rollout.epoch > header.epoch:
        yield f"it was for epoch {rollout.epoch}, not {header.epoch}"
        return
    try:
        book = bytes.fromhex(rollout.thread)
        cut = trust.restores.last_cut(book, trust.lists, until=header.epoch)
    except (Tampered, NotTrusted) as error:
        yield f"it cannot be determined whether a restore ended it: {error.message}"
        return
    if cut > rollout.epoch:
        yield "a restore lost entries of its book, and ended it"


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
        """Return every rollout, oldest first, in any status; none from before a cut of the book."""
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
            each.id: RolloutEnd(
                next((at for _, at in each.denials if at), None), each.positions, each.ended_in
            )
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

    def find(self, diff: WorldDiff, since: datetime | None = None) -> tuple[Rollout, ...]:
        """Return the rollouts in force that accept differences which the policy asks about.

        The result is empty if the book cannot be read. Any member can cause that, and people
        are then asked as if nothing had been proposed. The error is logged, and listing the
        rollouts raises it.

        Args:
            diff: The differences between the world that a thread was saved in and the next one.
            since: The time of that thread, so that setting back a clock revives nothing.

        Returns:
            As few as possible, by their digests: one that accepts as much as all together, the one
            with the most approvals, or the fewest that do.
        """
        with self._lock:
            try:
                asked, now = self._read(), self._core.now(since)
            except (Tampered, NotTrusted, Forked, RolledBack) as error:
                self._core.emit_refused(error, self._chain.thread.hex())
                return ()
            roster = self._core.trust().roster
            policy = self._policies.in_force(roster)
            if policy is None:
                return ()
            leaves = asked_leaves(diff, policy).keys()
            found = [
                self._in_force(each, roster, policy, now)
                for each in asked
                if not leaves.isdisjoint(leaf for leaf, _, _ in each.body.statement.differences)
            ]
        living = [each for each in found if each is not None]
        return _fewest(diff, policy, living)

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
            diff = WorldDiff.of_values(asked.body.differences)
            measures = asked_leaves(diff, policy).values()
            refused = Measure.REFUSE in measures
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
        head, tip, trust = chain.verified_head(), chain.tip(), core.trust()
        epoch, seen = trust.restores.last_cut(chain.thread, trust.lists), self._seen
        if self._pending is None or seen is None or seen[2:] != (tip.basis[0], epoch):
            self._pending, seen = Pending(time=tip.time), None
        if seen is None or seen[:2] != (head.seq, head.hash):
            last = -1 if seen is None else seen[0]
            new = list(takewhile(lambda each: _is_after(each[0], last), chain.walk()))
            self._seen = None  # if an entry cannot be read, no entry may count twice
            fold_found(chain, tip.basis, reversed(new), self._pending, since_epoch=epoch)
        self._seen = (head.seq, head.hash, tip.basis[0], epoch)
        asked = self._pending.asked.values()
        return [each for each in asked if each.body.statement.action is Action.ROLLOUT]


def _fewest(diff: WorldDiff, policy: Policy, living: list[Rollout]) -> tuple[Rollout, ...]:
    """Return as few rollouts as possible that accept what all of them accept together."""

    def accepted(rollouts: Iterable[Rollout]) -> frozenset[str]:
        return accepted_leaves(diff, policy, [each.facts for each in rollouts])

    every = accepted(living)
    if not every:
        return ()
    chosen = sorted(living, key=lambda each: -len(each.facts.approved_by))
    alone = next((each for each in chosen if accepted([each]) == every), None)
    if alone is not None:
        return (alone,)
    for each in reversed(tuple(chosen)):
        rest = [other for other in chosen if other is not each]
        chosen = rest if accepted(rest) == every else chosen
    if len(chosen) > ROLLOUTS_PER_RESUME_MAX:
        return ()
    return tuple(sorted(chosen, key=lambda each: each.facts.id))


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
        differences=statement.differences,
    )
    return Rollout(facts, statement, tally.approvals)


def _body(header: Header, record: Record) -> Any:
    """Return the content of an entry about requests; None if it cannot be read."""
    return readable_body(header, record.body) if KINDS[header.kind].about_requests else None
