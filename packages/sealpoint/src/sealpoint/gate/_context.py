# SPDX-License-Identifier: Apache-2.0
"""What every decision and every operator's act on a thread needs: who, when, what is pending."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from sealpoint.errors import Moved, Superseded, UsageError
from sealpoint.gate._decision import Decision, Facts, Outcome, decide
from sealpoint.gate._policy import Policies, Policy
from sealpoint.gate._requests import Asked, Pause, Pending, PendingReader, Request, make_request
from sealpoint.gate._resume_call import check_actor
from sealpoint.gate._rollout_book import Rollout, RolloutBook
from sealpoint.gate._standing import Standing, StandingPause
from sealpoint.ledger import ROLLOUTS, Body, Kind, RequestBody
from sealpoint.signing import Action, Identity, Statement
from sealpoint.store import EntryDraft, ThreadState
from sealpoint.world import World

_NONCE_BYTES = 16


class GateContext:
    """A thread as the gate and its operators see it."""

    def __init__(self, state: ThreadState, policies: Policies, book: RolloutBook) -> None:
        self._state = state
        self.book = book
        # Of the book everybody is a reader: nobody's wrong clock may end what others propose.
        self._is_book = state.name == ROLLOUTS
        self._core = state.core
        self._chain = state.chain
        self.policies = policies
        self._pending = PendingReader(state.chain)

    def policy(self) -> Policy | None:
        """The policy in force."""
        return self.policies.in_force(self._core.trust().roster)

    def pending(self) -> Pending:
        """The pause in force, and the requests about the thread as it is."""
        return self.book.pending() if self._is_book else self._pending.read()

    def rollouts(self) -> tuple[Request, ...]:
        """Every rollout of the book, as it stands now."""
        return self.book.all()

    def request(self, asked: Asked) -> Request:
        """A request as it stands now."""
        roster = self._core.trust().roster
        return make_request(
            asked,
            self._state.name,
            roster=roster,
            policy=self.policies.in_force(roster),
            now=self.now(),
        )

    def ask(self, body: RequestBody) -> int | None:
        """Append a request; None if somebody else wrote first."""
        body.statement.check()
        return self.write(Kind.REQUEST, body)

    def write(
        self, kind: Kind, body: Body, blobs: Mapping[bytes, bytes] | None = None
    ) -> int | None:
        """Append an entry with the blobs that it names; None if somebody else wrote first."""
        return self._state.record(EntryDraft(kind, body), blobs)

    def decide(
        self, facts: Facts, policy: Policy | None, before: str | None, world: World | None
    ) -> tuple[Decision, Rollout | None]:
        """What the policy says, and the rollout that lets another world pass if one is needed.

        Args:
            facts: What there is to decide about.
            policy: The policy in force.
            before: The digest of the world that the present one was compared with.
            world: The present one.
        """
        decision = decide(facts, policy)
        compared = facts.diff is not None and not facts.diff.same
        if decision.outcome is Outcome.ALLOW or not compared:
            return decision, None
        if world is None or before is None:
            return decision, None
        rollout = self.book.find(before, world.digest, self.now())
        if rollout is None:
            return decision, None
        decision = decide(replace(facts, rollout=rollout.facts), policy)
        return decision, rollout if decision.rolled_out else None

    def require_rollout(self, rollout: Rollout) -> None:
        """Refuse a resume by a rollout that ended while the resume was written.

        Its end may list the threads without this entry, and an audit would not take the resume for
        justified. Whoever ends a rollout lists them after the denial is in the anchor, so a resume
        that the list misses is always refused here.

        Raises:
            Superseded: The rollout has ended.
        """
        if not self.book.holds(rollout.facts.id, self.now()):
            raise Superseded(
                f"thread {self._state.name!r}: rollout {rollout.facts.id[:12]} ended while this "
                "resume was written",
                hint="Resume again: the gate decides without the rollout.",
            )

    def require_living(self) -> None:
        """Look, and refuse a thread that holds nothing."""
        self._state.refresh()
        self._state.require_generation(self._chain.verified_head().header)

    def now(self) -> datetime:
        """The effective time: no earlier than that of the thread."""
        return self._core.now(None if self._is_book else self._chain.tip().time)

    def owner(self) -> str:
        """Who owns the thread."""
        return self._chain.tip().fence.owner or ""

    def identity(self) -> str:
        """The identity that the store was opened with; empty if it was for reading only."""
        if self._core.parts.read_only:
            return ""
        holder = self._core.holder(self._core.trust())
        return "" if holder is None else holder[0].name

    def identity_of(self, name: str) -> Identity:
        """An identity of the newest roster.

        Raises:
            UsageError: There is none of this name.
        """
        roster = self._core.trust().roster
        found = roster.identity(name)
        if found is None:
            raise UsageError(
                f"identity: expected one of roster {roster.seq}, found {name!r}",
                hint="sealpoint keys list shows every identity.",
            )
        return found

    def standing(self) -> Standing:
        """Where the thread stands, as it was last looked at."""
        head, tip = self._chain.verified_head(), self._chain.tip()
        pause = None if tip.paused is None else self.pending().paused
        return Standing(
            thread=head.header.thread,
            name=self._state.name,
            generation=head.header.gen,
            epoch=self._core.trust().epoch,
            owner=tip.fence.owner,
            paused=None if pause is None else _shown_pause(pause),
            basis=tip.basis[1].hex(),
            basis_seq=tip.basis[0],
            head=head.hash.hex(),
            head_seq=head.seq,
        )

    def require_standing(self, expect: Standing | None, *, basis: bool) -> None:
        """Refuse to act on a thread that is not any more as somebody was shown it.

        Args:
            expect: What was shown; None: whatever there is, is meant.
            basis: Whether it counts that the thread has gone on.

        Raises:
            Moved: It has changed.
        """
        if expect is None:
            return
        if not isinstance(expect, Standing):
            raise UsageError(f"expect: expected a Standing, found {type(expect).__name__}")
        if moved := expect.changes(self.standing(), basis=basis):
            raise Moved(
                f"thread {self._state.name!r}: it is not as it was shown: {'; '.join(moved)}",
                moved=moved,
            )

    def require_person(self, actor: str | None) -> None:
        """Refuse to act for somebody whom the roster does not know: a claim has to name a person.

        Raises:
            UsageError: There is no such person.
        """
        if actor is None:
            return
        check_actor(actor)
        roster = self._core.trust().roster
        if actor not in roster.persons:
            identity = roster.identity(actor)
            raise UsageError(
                f"actor: expected a person of roster {roster.seq}, found {actor!r}",
                hint="The persons are those that sealpoint keys list shows."
                if identity is None
                else f"{actor!r} is an identity of the person {identity.person!r}: give that.",
            )

    def statement(
        self,
        *,
        action: Action,
        policy: Policy,
        reason: str,
        checkpoint: str | None = None,
        release: str | None = None,
        world_from: str | None = None,
        world_to: str | None = None,
        answer: str | None = None,
        to: str | None = None,
        needed: int,
        pairs: tuple[tuple[str, str], ...] = (),
        expires: datetime | None = None,
        actor: str | None = None,
    ) -> Statement:
        """A statement that is bound to the thread as it is."""
        head = self._chain.verified_head().header
        return Statement(
            store=head.store,
            ns=head.ns,
            thread=head.thread,
            epoch=self._core.trust().epoch,
            gen=head.gen,
            basis=self._chain.tip().basis[1].hex(),
            action=action,
            checkpoint=checkpoint,
            release=release,
            world_from=world_from,
            world_to=world_to,
            answer=answer,
            to=to,
            pairs=pairs,
            requester=self.identity(),
            actor=actor,
            policy=policy.digest,
            needed=needed,
            nonce=self._core.random_hex(_NONCE_BYTES),
            expires=expires or self._until(policy.expires),
            reason=reason,
        )

    def _until(self, span: timedelta) -> datetime:
        now = self.now()
        try:
            return now + span
        except OverflowError as exc:
            raise UsageError(
                f"thread {self._state.name!r}: its newest time, {now}, is too far ahead to "
                "reckon with",
                hint="A worker saved with a clock far ahead; erase the thread or begin another.",
            ) from exc


def _shown_pause(pause: Pause) -> StandingPause:
    header = pause.entry.header
    return StandingPause(
        seq=header.seq,
        entry=pause.entry.hash.hex(),
        at=header.at,
        by=pause.entry.writer,
        actor=pause.actor,
        reason=pause.reason,
    )
