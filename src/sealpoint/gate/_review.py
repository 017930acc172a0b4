# SPDX-License-Identifier: Apache-2.0
"""Judging again: whether every resume and handoff on a thread was justified when it was written.

A worker that runs other code than ours can write a resume that no gate has allowed, and every entry
is genuine. So the audit goes through the verified thread once more and holds each decision to the
policy that the roster of that entry names, and each grant that it spends to the request and the
words that lie before it. It is pure: what it is given has been verified. What an erasure has taken
is not judged, and what cannot be computed again (a world that was not given) is not held against
anybody.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sealpoint.errors import PolicyInvalid, Tampered, WorldInvalid
from sealpoint.gate._past import Past, Saved
from sealpoint.gate._pending import Asked, fold_entry
from sealpoint.gate._policies import policy_digest
from sealpoint.gate._policy import Measure, Policy, Rule
from sealpoint.gate._requests import grant_of
from sealpoint.ledger import (
    KINDS,
    CheckpointBody,
    Entry,
    HandoffBody,
    Kind,
    PruneBody,
    ResumeBody,
    StoreChain,
    Tip,
    VerdictBody,
    WritesBody,
    believed_words,
)
from sealpoint.signing import Action, Role, Roster, count
from sealpoint.world import World

__all__ = ["Reviewer"]

_SLACK = timedelta(minutes=1)
"""What may lie between judging and writing: a grant or an age that ran out meanwhile is forgiven.
Whoever writes the entry also writes its time, so less would prove no more."""

_WORLD_RULES = frozenset({Rule.CHANGED_CODE, Rule.WIDER_WORLD, Rule.NARROWER_WORLD})

_GATE_FIELDS = ("world", "leaves", "policy", "rules", "request", "answer", "actor")
"""What a resume from before the gate has not; its `reason` is as old as the kind."""


class Reviewer:
    """One thread, judged again entry by entry.

    Args:
        policies: Gives the policy of a digest, or raises `PolicyInvalid`.
        worlds: Gives the world of a digest that a checkpoint names; None where it is not there.
    """

    def __init__(
        self,
        policies: Callable[[str], Policy],
        worlds: Callable[[str], dict[str, Any] | None] = lambda _digest: None,
    ) -> None:
        self._policies = policies
        self._worlds = worlds
        self._past = Past()
        self._asked: dict[str, Asked] = {}
        self._basis_at: datetime | None = None
        self._latest: datetime | None = None
        self._executed_epoch = 0

    def take(
        self, entry: Entry, body: Any, before: Tip | None, chain: StoreChain
    ) -> tuple[str, ...]:
        """Take the next verified entry into account.

        Args:
            entry: The entry.
            body: Its body; None if an erasure has taken it, or its writer wrote nonsense.
            before: The end of the thread before it.
            chain: The store chain.

        Returns:
            Why it was not justified, one sentence each; nothing if it was.
        """
        header = entry.header
        roster = chain.roster_at(header.roster)
        unjustified: tuple[str, ...] = ()
        if roster is not None and before is not None:
            if isinstance(body, ResumeBody):
                unjustified = tuple(self._resume(entry, body, before, chain, roster))
            elif isinstance(body, HandoffBody):
                unjustified = tuple(self._handoff(entry, body, before, chain, roster))
            elif body is not None:
                self._fold(entry, body, before, chain)
        if KINDS[header.kind].tells_time:
            self._latest = self._now(entry)
        if KINDS[header.kind].moves_basis:
            self._asked.clear()
            self._basis_at = header.at
        if header.kind is Kind.RESUME:
            self._executed_epoch = header.epoch
        elif header.kind is Kind.ERASE:
            self._past = Past()
        return tuple(f"entry {entry.seq}: {words}" for words in unjustified)

    # ------------------------------------------------------------------ what lies before

    def _now(self, entry: Entry) -> datetime:
        """The time of an entry, or the latest before it: a clock turned back revives nothing."""
        at = entry.header.at
        return at if self._latest is None else max(at, self._latest)

    def _fold(self, entry: Entry, body: Any, before: Tip, chain: StoreChain) -> None:
        """Remember checkpoints, requests that are bound to the basis, and words on them."""
        header = entry.header
        if isinstance(body, VerdictBody) and not believed_words(entry, body, chain):
            return  # its key had ended
        if isinstance(body, CheckpointBody):
            self._past.save(entry, body)
        elif isinstance(body, WritesBody):
            self._past.add(entry, body)
        elif isinstance(body, PruneBody):
            self._past.hide(body)
        else:
            basis = before.basis[1].hex()
            fold_entry(self._asked, entry, body, basis=basis, epoch=header.epoch)

    # ------------------------------------------------------------------ resumes

    def _resume(
        self, entry: Entry, body: ResumeBody, before: Tip, chain: StoreChain, roster: Roster
    ) -> Iterator[str]:
        expected = policy_digest(roster, entry.header.ns)
        # (1) The policy is the one that the roster of that time names.
        if body.policy != expected:
            yield (
                f"a resume by {entry.writer!r}: expected policy {_short(expected)}, which roster "
                f"{roster.seq} names, found {_short(body.policy)}"
            )
            return
        # (2) A thread that holds no checkpoint yet begins, and nothing is released.
        if body.checkpoint is None:
            yield from self._nothing_named(body)
            return
        try:
            policy = None if expected is None else self._policies(expected)
        except (PolicyInvalid, Tampered) as error:
            yield f"a resume: expected a policy to judge it by, found: {error.message}"
            return
        # (3) Every rule that applies is told.
        listed = set(body.rules)
        applying = self._applying(entry, body, chain, policy)
        missing = applying - listed
        if missing:
            yield f"a resume: expected it to tell the rules {_listed(missing)}, found them missing"
        elif self._world_differs(body) and not listed & _WORLD_RULES:
            yield "a resume in another world: expected it to tell a rule about that, found none"
        if (busy := self._busy(entry, before, policy)) is not None:
            yield busy
        # (4) What it spends was open, for exactly this, and granted.
        granted = False
        if body.request is not None:
            faults = tuple(self._spending(entry, body, policy, roster))
            granted = not faults
            yield from faults
        # (5) The strictest measure was met.
        yield from _unmet(listed | applying, body, policy, granted=granted)

    def _nothing_named(self, body: ResumeBody) -> Iterator[str]:
        """Judge a resume that names no checkpoint, as those from before the gate do."""
        if self._past.newest is None:
            return
        if any(getattr(body, name) for name in _GATE_FIELDS):
            yield "a resume: expected the checkpoint that was released, found none named"

    def _applying(
        self, entry: Entry, body: ResumeBody, chain: StoreChain, policy: Policy | None
    ) -> set[str]:
        """The rules that certainly apply, as far as that can be told from here."""
        header, found = entry.header, set[str]()
        if self._past.is_older(body.checkpoint):
            found.add(Rule.OLDER_CHECKPOINT)
        executed = chain.restores.all[self._executed_epoch : header.epoch]
        thread = bytes.fromhex(header.thread)
        if any(chain.lists.get(each.lost).position(thread) is not None for each in executed):
            found.add(Rule.AFTER_RESTORE)
        saved = None if body.checkpoint is None else self._past.saved(body.checkpoint)
        if saved is None:
            return found  # it lies far back, or was never there; that it is older is told
        if self._past.is_waiting(saved) or body.answer is not None:
            found.add(Rule.ANSWER)
        age_max = None if policy is None else policy.age_max
        if age_max is not None and header.at - saved.at > age_max + _SLACK:
            found.add(Rule.OLD_AGE)
        if saved.world is None and body.world is not None:
            found.add(Rule.FIRST_WORLD)
        elif saved.world is not None and body.world is None:
            found.add(Rule.MISSING_WORLD)
        return found | self._world_rules(saved, body)

    def _world_differs(self, body: ResumeBody) -> bool:
        saved = None if body.checkpoint is None else self._past.saved(body.checkpoint)
        worlds = None if saved is None else (saved.world, body.world)
        return worlds is not None and None not in worlds and worlds[0] != worlds[1]

    def _world_rules(self, saved: Saved, body: ResumeBody) -> set[str]:
        """What the two worlds say, where both can be read; widening is what must not be hidden.

        The gate writes the other world into the resume, unless a request or a checkpoint has it:
        one that nobody can read counts as wider.
        """
        if saved.world is None or body.world is None or saved.world == body.world:
            return set()
        asked = None if body.request is None else self._asked.get(body.request)
        leaves = body.leaves if asked is None else asked.body.world
        if leaves is None and body.request is None:
            leaves = self._worlds(body.world)
        now = _readable(leaves)
        if now is None or now.digest != body.world:
            # A request that is not there is told by itself.
            return set() if leaves is None and body.request is not None else {Rule.WIDER_WORLD}
        earlier = _readable(self._worlds(saved.world))
        if earlier is None:
            return set()
        diff = earlier.diff(now)
        found = {str(Rule.CHANGED_CODE)} if diff.code_changed else set()
        if diff.widening:
            found.add(Rule.WIDER_WORLD)
        return found

    def _busy(self, entry: Entry, before: Tip, policy: Policy | None) -> str | None:
        """Whether somebody else's session was taken over too early; a key may take over its own."""
        fence = before.fence
        if policy is None or not fence.is_session or fence.by == entry.header.by:
            return None
        if self._basis_at is None or entry.header.at - self._basis_at >= policy.takeover_after:
            return None
        return (
            f"a resume by {entry.writer!r}: expected the session of entry {fence.seq} to be "
            f"{policy.takeover_after} old, found {entry.header.at - self._basis_at}"
        )

    def _spending(
        self, entry: Entry, body: ResumeBody, policy: Policy | None, roster: Roster
    ) -> Iterator[str]:
        request = body.request or ""
        what = f"a resume that spends request {request[:12]}"
        asked = self._asked.get(request)
        if asked is None:
            yield f"{what}: expected an open request for the thread as it was, found none"
            return
        statement = asked.body.statement
        saved = None if body.checkpoint is None else self._past.saved(body.checkpoint)
        for name, found, expected in (
            ("action", statement.action, Action.RESUME),
            ("checkpoint", statement.checkpoint, body.checkpoint),
            ("world", statement.world_to, body.world),
            ("answer", statement.answer, body.answer),
            ("requester", statement.requester, entry.writer),
            ("policy", statement.policy, body.policy),
            ("epoch", str(statement.epoch), str(entry.header.epoch)),
            (
                "saved world",
                statement.world_from,
                statement.world_from if saved is None else saved.world,
            ),
        ):
            if found != expected:
                yield (f"{what}: expected one for {name} {_short(expected)}, found {_short(found)}")
        yield from _grant_faults(asked, self._now(entry), policy, roster, what)

    # ------------------------------------------------------------------ handoffs

    def _handoff(
        self, entry: Entry, body: HandoffBody, before: Tip, chain: StoreChain, roster: Roster
    ) -> Iterator[str]:
        """Judge a handoff; that of an owner needs nobody's word."""
        header, owner = entry.header, before.fence.owner
        identity = roster.identity(entry.writer)
        if owner is None or (
            identity is not None
            and identity.may(Role.WRITER, header.ns)
            and roster.owns(entry.writer, owner)
        ):
            return
        what = f"a handoff by {entry.writer!r}"
        digest = policy_digest(roster, header.ns)
        try:
            policy = None if digest is None else self._policies(digest)
        except (PolicyInvalid, Tampered) as error:
            yield f"{what}: expected a policy to judge it by, found: {error.message}"
            return
        if policy is None or policy.measure(Rule.HANDOFF_BY_OPERATOR) is not Measure.APPROVAL:
            yield f"{what}: expected a policy that lets operators hand off, found another"
            return
        statement = body.statement
        if statement is None or statement.policy != digest:
            yield f"{what}: expected approvals by policy {_short(digest)}, found others"
            return
        asked = self._asked.get(statement.digest)
        if asked is None:
            yield f"{what}: expected an open request {statement.digest[:12]}, found none"
            return
        words = (*asked.attestations, *believed_words(entry, body, chain))
        now = self._now(entry)
        yield from _grant_faults(replace(asked, attestations=words), now, policy, roster, what)


def _grant_faults(
    asked: Asked, at: datetime, policy: Policy | None, roster: Roster, what: str
) -> Iterator[str]:
    """Why a request is no grant at a time, by a roster and a policy."""
    grant = grant_of(asked, roster, at)
    # The requester chose the time: nothing can be added to the last one there is.
    if asked.expired or at - asked.body.statement.expires >= _SLACK:
        yield f"{what}: expected a request in force, found one that had expired"
    if grant.denied_by:
        yield f"{what}: expected no denial, found that of {_listed(grant.denied_by)}"
    needed = 0 if policy is None else policy.needed
    if policy is None:
        yield f"{what}: expected a policy that asks for approvals, found none"
    elif len(grant.approved_by) < needed and grant.broken_glass is None:
        ignored = count(
            asked.attestations, statement=asked.body.statement, roster=roster, now=at
        ).ignored
        why = f" ({'; '.join(ignored)})" if ignored else ""
        yield f"{what}: expected {needed} approvals, found {len(grant.approved_by)}{why}"


def _readable(leaves: dict[str, Any] | None) -> World | None:
    """A world, if there is one."""
    try:
        return None if leaves is None else World.from_dict(leaves)
    except WorldInvalid:
        return None


def _unmet(
    rules: set[str], body: ResumeBody, policy: Policy | None, *, granted: bool
) -> Iterator[str]:
    """What the policy asked for because of some rules, and was not met."""
    known = {str(rule) for rule in Rule}
    if rules - known:
        yield f"a resume: expected rules of a policy, found {_listed(rules - known)}"
    measures = {
        rule: Measure.REFUSE if policy is None else policy.measure(rule) for rule in rules & known
    }
    strictest = max(measures.values(), default=Measure.ALLOW)
    because = _listed({rule for rule, measure in measures.items() if measure is strictest})
    if strictest is Measure.REFUSE:
        by = "no policy is in force" if policy is None else "the policy refuses that"
        yield f"a resume to which {because} applies: expected none, because {by}"
    elif strictest is Measure.APPROVAL and body.request is None:
        yield f"a resume to which {because} applies: expected approvals, found none named"
    elif strictest is Measure.DELIBERATE and not granted and not (body.reason or "").strip():
        yield f"a resume to which {because} applies: expected it to say why, found nothing"


def _short(found: str | None) -> str:
    return "none" if found is None else repr(found[:12])


def _listed(names: set[str] | tuple[str, ...]) -> str:
    return ", ".join(sorted(names))
