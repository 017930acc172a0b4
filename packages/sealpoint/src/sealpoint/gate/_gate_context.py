# SPDX-License-Identifier: Apache-2.0
"""The shared context of decisions and operator actions: who, when, and which pending requests."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from sealpoint.errors import Moved, Superseded, UsageError
from sealpoint.gate._answers import SignedAnswer, answers_in_force
from sealpoint.gate._decision import Decision, Difference, Facts, Outcome, decide
from sealpoint.gate._policy import Policies, Policy
from sealpoint.gate._requests import Asked, Pause, Pending, PendingReader, Request, make_request
from sealpoint.gate._resume_call import check_actor
from sealpoint.gate._rollouts_in_force import Rollout, RolloutBook
from sealpoint.gate._shown_standing import Standing, StandingPause
from sealpoint.ledger import ROLLOUTS, Body, Kind, RequestBody
from sealpoint.signing import Action, Identity, Statement
from sealpoint.store import EntryDraft, ThreadState

_NONCE_BYTES = 16


class GateContext:
    """A thread as the gate and its operators see it."""

    def __init__(self, state: ThreadState, policies: Policies, book: RolloutBook) -> None:
        self._state = state
        self.book = book
        # Every process reads the book, so one writer's wrong clock must not end the others'
        # rollouts.
        self._is_book = state.name == ROLLOUTS
        self._core = state.core
        self._chain = state.chain
        self.policies = policies
        self._pending = PendingReader(state.chain)

    def policy(self) -> Policy | None:
        """Return the policy in force."""
        return self.policies.in_force(self._core.trust().roster)

    def pending(self) -> Pending:
        """Return the pause in force and the requests about the thread's current state."""
        return self.book.pending() if self._is_book else self._pending.read()

    def rollouts(self) -> tuple[Request, ...]:
        """Return every rollout of the book in its current state."""
        return self.book.all()

    def request(self, asked: Asked) -> Request:
        """Return a request in its current state."""
        roster = self._core.trust().roster
        return make_request(
            asked,
            self._state.name,
            roster=roster,
            policy=self.policies.in_force(roster),
            now=self.now(),
        )

    def signed_answer(self) -> SignedAnswer | None:
        """Return the signed answer in force to the question of the thread; None: there is none."""
        asked = self.pending().asked.values()
        given = (each for each in asked if each.body.statement.action is Action.ANSWER)
        return next(answers_in_force(map(self.request, given)), None)

    def binds(self, statement: Statement) -> bool:
        """Whether a statement is of this identity, and about the thread's current state."""
        head = self._chain.verified_head().header
        here = (head.store, head.ns, head.thread, head.gen)
        told = (statement.store, statement.ns, statement.thread, statement.gen)
        basis, epoch = self._chain.tip().basis[1].hex(), self._core.trust().epoch
        return told == here and (statement.basis, statement.epoch, statement.requester) == (
            basis,
            epoch,
            self.identity(),
        )

    def ask(self, body: RequestBody) -> int | None:
        """Append a request; None if another process wrote first."""
        body.statement.check()
        return self.write(Kind.REQUEST, body)

    def write(
        self, kind: Kind, body: Body, blobs: Mapping[bytes, bytes] | None = None
    ) -> int | None:
        """Append an entry with the blobs that it names; None if another process wrote first."""
        return self._state.record(EntryDraft(kind, body), blobs)

    def decide(self, facts: Facts, policy: Policy | None) -> tuple[Decision, tuple[Rollout, ...]]:
        """Apply the policy, and find the rollouts that accept a changed world if they are needed.

        Args:
            facts: The facts to decide about.
            policy: The policy in force.
        """
        decision = decide(facts, policy)
        if decision.outcome is Outcome.ALLOW or facts.diff is None or facts.diff.same:
            return decision, ()
        rollouts = self.book.find(facts.diff, self.now())
        if not rollouts:
            return decision, ()
        found = tuple(each.facts for each in rollouts)
        return decide(replace(facts, rollouts=found), policy), rollouts

    def require_rollouts(self, rollouts: Iterable[Rollout]) -> None:
        """Refuse a resume under a rollout that ended while the resume was being written.

        The entry that ends the rollout may list the threads without this resume, and an audit would
        then not accept the resume as justified. An approver who ends a rollout lists the threads
        after the anchor has the denial, so this check always refuses a resume that the list lacks.

        Raises:
            Superseded: A rollout has ended.
        """
        for rollout in rollouts:
            if not self.book.holds(rollout.facts.id, self.now()):
                raise Superseded(
                    f"thread {self._state.name!r}: rollout {rollout.facts.id[:12]} ended while "
                    "this resume was written",
                    hint="Resume again: the gate decides without the rollout.",
                )

    def require_living(self) -> None:
        """Refresh the thread, and refuse one that holds nothing."""
        self._state.refresh()
        self._state.require_generation(self._chain.verified_head().header)

    def now(self) -> datetime:
        """Return the effective time, which is never earlier than the time of the thread."""
        return self._core.now(None if self._is_book else self._chain.tip().time)

    def owner(self) -> str:
        """Return the owner of the thread."""
        return self._chain.tip().fence.owner or ""

    def identity(self) -> str:
        """Return the identity that opened the store; empty if the store is read-only."""
        if self._core.parts.read_only:
            return ""
        holder = self._core.holder(self._core.trust())
        return "" if holder is None else holder[0].name

    def identity_of(self, name: str) -> Identity:
        """Return an identity of the newest roster.

        Raises:
            UsageError: The roster has no identity of this name.
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
        """Return the position of the thread, as of the last read."""
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
        """Refuse to act on a thread that has changed since the caller was shown it.

        Args:
            expect: The standing that the caller was shown; None accepts any.
            basis: Whether a new state of the thread counts as a change.

        Raises:
            Moved: The thread has changed.
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
        """Refuse an actor whom the roster does not list: a claim must name a person.

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
        differences: tuple[Difference, ...] = (),
        expires: datetime | None = None,
        actor: str | None = None,
    ) -> Statement:
        """Return a statement that is bound to the thread's current state."""
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
            differences=differences,
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
