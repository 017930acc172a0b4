# SPDX-License-Identifier: Apache-2.0
"""The book of rollouts: a reserved thread of the namespace on which they are requests.

So a rollout is signed, chained, anchored, approved, denied, exported and audited like any other
request. The gate looks a change of worlds up here, and takes nothing from the book that is not
below its verified, anchored head. What was verified once is not verified again.
"""

from datetime import datetime
from threading import Lock
from typing import NamedTuple

from sealpoint.errors import UnknownThread
from sealpoint.gate._pending import Asked, Pending, fold_found
from sealpoint.gate._policies import Policies
from sealpoint.gate._requests import Request, make_request
from sealpoint.gate._rules import RolloutFacts
from sealpoint.ledger import Kind
from sealpoint.signing import Action, Attestation, Roster, Statement, count
from sealpoint.store import RESERVED, Chain, Core

__all__ = ["ROLLOUTS", "Rollout", "RolloutBook"]

ROLLOUTS = f"{RESERVED}rollouts"
"""The name of the thread that is the book."""


class Rollout(NamedTuple):
    """A rollout in force that names a change of worlds, with the proof of it."""

    facts: RolloutFacts
    statement: Statement
    approvals: tuple[Attestation, ...]
    """One word of each person that counts."""


class RolloutBook:
    """The rollouts of a namespace, as an open store sees them."""

    def __init__(self, core: Core, policies: Policies) -> None:
        self._core = core
        self._policies = policies
        self._lock = Lock()
        self._chain = Chain(core, ROLLOUTS)
        self._pending: Pending | None = None
        self._seen: tuple[int, bytes, int, int] | None = None
        self._counted: dict[str, tuple[tuple[int, int, int], Rollout | None]] = {}

    def all(self) -> tuple[Request, ...]:
        """Every rollout since the newest restore, oldest first, whatever became of it."""
        with self._lock:
            asked, now = self._read()
        roster = self._core.trust().roster
        policy = self._policies.in_force(roster)
        return tuple(
            make_request(each, ROLLOUTS, roster=roster, policy=policy, now=now) for each in asked
        )

    def ends(self) -> dict[str, datetime | None]:
        """When somebody who may has ended each rollout; None for one that nobody has."""
        with self._lock:
            asked, now = self._read()
            roster = self._core.trust().roster
            return {each.id: self._ended(each, roster, now) for each in asked}

    def _ended(self, asked: Asked, roster: Roster, now: datetime) -> datetime | None:
        statement = asked.body.statement
        for word, place in zip(asked.attestations, asked.relayed, strict=True):
            if count([word], statement=statement, roster=roster, now=now).denied_by:
                return self._chain.descend(place)[1].at
        return None

    def find(self, before: str, after: str, since: datetime | None = None) -> Rollout | None:
        """The rollout in force with the most approvals that names a change of worlds.

        Args:
            before: The world that a thread was saved in.
            after: The one that it would go on in.
            since: The time of that thread: a clock that was turned back revives nothing.

        Raises:
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The book is not what it was.
        """
        with self._lock:
            asked, now = self._read()
            now = now if since is None else max(now, since)
            roster = self._core.trust().roster
            policy = self._policies.in_force(roster)
            if policy is None:
                return None
            found = [
                self._in_force(each, roster, now)
                for each in asked
                if (before, after) in each.body.statement.pairs
                and each.body.statement.policy == policy.digest
            ]
        living = [each for each in found if each is not None]
        return max(living, key=lambda each: len(each.facts.approved_by), default=None)

    def _in_force(self, asked: Asked, roster: Roster, now: datetime) -> Rollout | None:
        """A rollout that has the approvals it needs, and that nobody denied; None for others."""
        statement = asked.body.statement
        if asked.expired or now >= statement.expires:
            return None
        # Whose words count changes with the roster, with each word, and when a key expires.
        ends = [roster.expires(word.credential) for word in asked.attestations]
        living = sum(end is None or now < end for end in ends)
        stands = (roster.seq, len(ends), living)
        known = self._counted.get(asked.id)
        if known is None or known[0] != stands:
            known = self._counted[asked.id] = stands, _counted(asked, roster, now)
        return known[1]

    def _read(self) -> tuple[list[Asked], datetime]:
        """Take in what is new in the book."""
        chain, core = self._chain, self._core
        try:
            chain.refresh()
        except UnknownThread:
            return [], core.now()
        head, tip, epoch = chain.verified_head(), chain.tip(), core.trust().epoch
        seen = self._seen
        if self._pending is None or seen is None or seen[2:] != (tip.basis[0], epoch):
            self._pending, seen = Pending(time=tip.time), None
        if seen is None or seen[:2] != (head.seq, head.hash):
            found = []
            for header, record in chain.walk():
                if (seen is not None and header.seq <= seen[0]) or header.kind is Kind.GENESIS:
                    break
                found.append((header, record))
            fold_found(chain, tip.basis, reversed(found), self._pending)
        self._seen = (head.seq, head.hash, tip.basis[0], epoch)
        asked = self._pending.asked.values()
        rollouts = [each for each in asked if each.body.statement.action is Action.ROLLOUT]
        return rollouts, core.now(tip.time)


def _counted(asked: Asked, roster: Roster, now: datetime) -> Rollout | None:
    statement = asked.body.statement
    tally = count(asked.attestations, statement=statement, roster=roster, now=now)
    if tally.denied_by or len(tally.approved_by) < statement.needed:
        return None
    facts = RolloutFacts(
        id=asked.id,
        approved_by=tally.approved_by,
        needed=statement.needed,
        reason=statement.reason,
    )
    return Rollout(facts, statement, tally.approvals)
