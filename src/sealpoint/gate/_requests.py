# SPDX-License-Identifier: Apache-2.0
"""Requests as people see them: what is asked, how it stands, and what has to be shown."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum, unique
from typing import Any

from sealpoint.gate._pending import Asked
from sealpoint.gate._policy import Policy
from sealpoint.gate._rules import GrantFacts
from sealpoint.signing import Action, Attestation, Role, Roster, Statement, count

__all__ = ["Request", "Status", "grant_of", "make_request"]


@unique
class Status(StrEnum):
    """How a request stands."""

    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    VOID = "void"
    """The policy has changed since: nobody can approve it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asks other people to approve, verified where it lies."""

    id: str
    """The digest of the statement; approving is signing it."""
    thread: str
    """The name of the thread."""
    statement: Statement
    asked_at: datetime
    reasons: tuple[str, ...]
    """Why it needs approval, in the requester's words: the verified facts are in the statement."""
    answer: Any = field(hash=False)
    """What the run would be answered; the statement binds its digest."""
    world: dict[str, Any] | None = field(hash=False)
    """What the run would be able to do, if that differs; the statement binds its digest."""
    status: Status
    approved_by: tuple[str, ...]
    """The identities whose approvals count by the newest roster, one for each person."""
    denied_by: tuple[str, ...]
    needed: int
    """How many approvals it needs, by the policy that the statement names."""
    worlds: tuple[dict[str, Any], ...] = field(default=(), hash=False)
    """The worlds of a rollout; the statement binds their digests."""
    broken_glass: str | None = None
    """Who let it pass without them, and why."""
    ignored: tuple[str, ...] = ()
    """Words on it that do not count, and why."""
    attestations: tuple[Attestation, ...] = ()
    """Every word on it that was recorded, whether it counts or not."""

    @property
    def short(self) -> str:
        """The first digits of the id, for people to compare."""
        return self.id[:12]


def grant_of(asked: Asked, roster: Roster, now: datetime) -> GrantFacts:
    """What a request has become, by the newest roster."""
    statement = asked.body.statement
    tally = count(asked.attestations, statement=statement, roster=roster, now=now)
    # The glass is broken for one resume, never for many.
    glass = asked.broken_glass if statement.action is Action.RESUME else None
    if glass is not None:
        # Like an approval, it counts by the newest roster.
        breaker = roster.identity(glass[0])
        may = breaker is not None and breaker.may(Role.OPERATOR, statement.ns)
        glass = glass if breaker is not None and may and breaker.break_glass else None
    return GrantFacts(
        approved_by=tally.approved_by,
        denied_by=tuple(sorted({*tally.denied_by, *(name for name, _ in asked.denials)})),
        expired=asked.expired or now >= statement.expires,
        broken_glass=None if glass is None else f"{glass[0]}: {glass[1]}",
        needed=statement.needed,
    )


def make_request(
    asked: Asked,
    thread: str,
    *,
    roster: Roster,
    policy: Policy | None,
    now: datetime,
    least: int = 0,
) -> Request:
    """A request as it stands now, where at least so many have to approve it."""
    statement = asked.body.statement
    needed = max(statement.needed, least)
    tally = count(asked.attestations, statement=statement, roster=roster, now=now)
    grant = grant_of(asked, roster, now)
    return Request(
        id=asked.id,
        thread=thread,
        statement=statement,
        asked_at=asked.entry.header.at,
        reasons=asked.body.reasons,
        answer=asked.body.answer,
        world=asked.body.world,
        worlds=asked.body.worlds,
        status=_status(grant, statement, policy, needed),
        approved_by=grant.approved_by,
        denied_by=grant.denied_by,
        needed=needed,
        broken_glass=grant.broken_glass,
        ignored=tally.ignored,
        attestations=asked.attestations,
    )


def _status(grant: GrantFacts, statement: Statement, policy: Policy | None, needed: int) -> Status:
    if grant.denied_by:
        return Status.DENIED
    if grant.expired:
        return Status.EXPIRED
    if policy is None or policy.digest != statement.policy:
        return Status.VOID
    if len(grant.approved_by) >= needed or grant.broken_glass is not None:
        return Status.APPROVED
    return Status.OPEN
