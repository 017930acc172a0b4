# SPDX-License-Identifier: Apache-2.0
"""A thread behind the gate: the only way by which a state is released for execution.

The order of a resume, numbered below: (1) look and verify, (2) decode what would be released,
(3) gather the facts and judge, (4) write the decision, (5) hand the state over. If somebody else
wrote in between, everything begins anew. Saving is in `_saving.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sealpoint.errors import (
    HeadMoved,
    NeedsApproval,
    SealpointError,
    Superseded,
    UnknownCheckpoint,
    UsageError,
)
from sealpoint.gate._facts import Candidate, gather
from sealpoint.gate._pending import Asked, Pending, read_pending
from sealpoint.gate._policy import Measure, Policy
from sealpoint.gate._requests import grant_of
from sealpoint.gate._rules import Decision, GrantFacts, Outcome, decide
from sealpoint.gate._saving import Admission, SavingThread
from sealpoint.gate._wish import Wish
from sealpoint.ledger import Kind, RequestBody, ResumeBody, StoreChain
from sealpoint.signing import Action, Statement
from sealpoint.store import CheckpointRef, Loaded, Snapshot, check_rights
from sealpoint.world import World

__all__ = ["GatedThread"]


class _Judged(NamedTuple):
    """What would be released, what the gate found, and what it says to that."""

    candidate: Candidate
    policy: Policy | None
    asked: Asked | None
    """The request for exactly this, if there is a living one."""
    decision: Decision
    trust: StoreChain
    """By whose roster it was decided."""


class GatedThread(SavingThread):
    """A thread of an open store: checkpoints, and the gate that every resume goes through."""

    _overtaken = False
    """Whether the resume that is under way has met entries of others, new to this handle."""
    _found = False
    """Whether the resume that is under way has found anything in the thread."""
    _ready: tuple[str | None, Snapshot | None] | None = None
    """What a session that has just begun was decided about, for the first who reads it."""

    # ------------------------------------------------------------------ resuming

    def resume(
        self,
        *,
        world: World | Mapping[str, Any] | None,
        ref: "str | CheckpointRef | None" = None,
        answer: Any = None,
        actor: str | None = None,
        deliberate: str | None = None,
    ) -> Loaded:
        """Release a state for execution, if the gate allows it, and begin a session with it.

        Args:
            world: What the run is able to do now; None: nothing is declared.
            ref: The checkpoint to go on from; without it the newest one.
            answer: The answer to a pending question, as JSON.
            actor: Who answers or asks, for the record: a claim that satisfies no rule.
            deliberate: Why this is meant, where the policy asks for that; also the reason that
                approvers are shown.

        Raises:
            NeedsApproval: Other people have to approve first; `.request` is what they are asked.
            ResumeRefused: The gate says no; `.reasons` has every reason.
            Busy: Another session is too young to be taken over.
            NotOwner, NotTrusted: This identity may not go on with the thread.
            UnknownThread, UnknownCheckpoint, Erased, Pruned: There is nothing to go on from.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        wish = Wish.of(world, ref=ref, answer=answer, actor=actor, deliberate=deliberate)
        with self._lock, self._reporting():
            return self._resume(wish)

    def begin(
        self,
        *,
        world: World | Mapping[str, Any] | None,
        ref: "str | CheckpointRef | None" = None,
        answer: Any = None,
        actor: str | None = None,
        deliberate: str | None = None,
    ) -> int | None:
        """Begin a session as `resume` does, for a caller that reads the state by `snapshot`.

        Args and errors are those of `resume`, except that a thread which holds nothing yet is no
        error: its first save begins it.

        Returns:
            The position of the entry that records the decision; None if there was nothing to
            decide about.
        """
        wish = Wish.of(world, ref=ref, answer=answer, actor=actor, deliberate=deliberate)
        with self._lock, self._reporting():
            self._core.signer()
            return self._begun(wish, lambda candidate: self._released(wish, candidate))

    def admit(
        self,
        *,
        world: World | Mapping[str, Any] | None,
        ref: "str | CheckpointRef | None" = None,
        answered: bool = False,
        deliberate: str | None = None,
        lane: str = "",
        id: str | None = None,  # noqa: A002 (as in `snapshot`)
    ) -> Snapshot | None:
        """Decide about a resume now, and record it with the first entry that is written.

        For a framework that releases state by reading it, where reading must write nothing. It is
        refused unless the policy allows it without anybody's approval. Until something is written
        there is no record of it, so `begin` or `resume` is to be preferred.

        Args:
            world: What the run is able to do now.
            ref: The checkpoint that it goes on from; without it the newest one.
            answered: Whether something is brought in from outside, beside what was saved.
            deliberate: Why this is meant, where the policy asks for that.
            lane: Which lane is read by this, as by `snapshot`.
            id: Which checkpoint of it; without it the newest one.

        Returns:
            What `snapshot` gives.

        Raises:
            ResumeRefused: The policy does not allow it, or asks for approvals.
            Busy, NotOwner, NotTrusted, UnknownCheckpoint, Pruned, Tampered, RolledBack, Forked,
                Unanchored: As for `resume`.
        """
        wish = Wish.of(world, ref=ref, answer=None, actor=None, deliberate=deliberate)
        with self._lock, self._reporting():
            return self._settled(lambda: self._admit(wish, lane, id, answered=answered))

    def _admit(self, wish: Wish, lane: str, name: str | None, *, answered: bool) -> Snapshot | None:
        """Decide and read as one, with no look in between: to try again is to decide again."""
        lost, session, world = self._lost, self._session, self._world
        self._begun(wish, lambda candidate: self._admitted(wish, candidate, answered=answered))
        try:
            return self._read(lane, name) if self._found else None
        except BaseException:
            # A load that failed has shown nothing, and is nothing to go on from.
            self._lost, self._session, self._world, self._admission = lost, session, world, None
            self._show_nothing(lost, session)
            raise

    def _begun(self, wish: Wish, decide_on: Callable[[Candidate], bool]) -> int | None:
        lost, session, self._overtaken = self._lost, self._session, False
        while True:
            candidate = self._settled(lambda: self._sought(wish.ref))
            if candidate is None:
                return None
            try:
                decided = decide_on(candidate)
            except BaseException:
                self._show_nothing(lost, session)
                raise
            if decided:
                self._world = wish.world
                return self._session

    def _sought(self, ref: "str | CheckpointRef | None") -> Candidate | None:
        """What would be released; None if the thread holds nothing."""
        self._found = self._find_head()
        if not self._found:
            self._take_up()
            return None
        try:
            candidate = self._candidate(ref)
        except UnknownCheckpoint:
            if ref is not None:
                raise
            candidate = None
        self._take_up()
        return candidate

    def _released(self, wish: Wish, candidate: Candidate) -> bool:
        """Decide, once what would be released has been read: else a grant were spent on nothing."""
        name = None if wish.ref is None else candidate.ref.id
        self._ready = (name, self._snapshot("", name))
        return self._decided(wish, candidate)

    def _snapshot(self, lane: str, name: str | None) -> Snapshot | None:
        ready, self._ready = self._ready, None
        if ready is None or (lane, name) != ("", ready[0]) or not self._find_head():
            return super()._snapshot(lane, name)
        # If the session is the newest entry, nobody has written since this was read.
        begun = self._chain.verified_head().seq == self._session
        return ready[1] if begun else super()._snapshot(lane, name)

    def _admitted(self, wish: Wish, candidate: Candidate, *, answered: bool) -> bool:
        """Judge without writing; what was decided is judged once more by the first write."""
        if not self._core.parts.read_only:
            check_rights(self._chain, self._core.trust(), Kind.RESUME, self._owner())
        decision = self._judged(wish, candidate, answered=answered, granted=False).decision
        if decision.outcome is not Outcome.ALLOW:
            raise self._refusal(decision)
        self._session = None
        self._admission = Admission(wish, answered=answered)
        return True

    def judge(
        self,
        *,
        world: World | Mapping[str, Any] | None,
        ref: "str | CheckpointRef | None" = None,
        answer: Any = None,
        deliberate: str | None = None,
    ) -> Decision:
        """What the gate would say to a resume, without writing or releasing anything.

        Args are those of `resume`.

        Raises:
            UnknownThread, UnknownCheckpoint, Erased, Pruned: There is nothing to go on from.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        wish = Wish.of(world, ref=ref, answer=answer, actor=None, deliberate=deliberate)
        with self._lock, self._reporting():
            self._look()
            return self._judged(wish, self._candidate(ref)).decision

    def _resume(self, wish: Wish) -> Loaded:
        self._core.signer()
        lost, session, self._overtaken = self._lost, self._session, False
        while True:
            # (1) and (2): the store chain, the head, the anchor, bodies and blobs, the decoding
            loaded = self._settled(lambda: self._load(wish.ref))
            record, header = self._chain.descend(loaded.ref.seq)
            newest = wish.ref is None or self._newest().header.seq == header.seq
            try:
                candidate = self._candidate_at(header, record, newest=newest)
                released = self._decided(wish, candidate)
            except BaseException:
                self._show_nothing(lost, session)
                raise
            if released:
                self._world = wish.world
                # (5) only now is the caller given anything
                return loaded

    def _decided(self, wish: Wish, candidate: Candidate) -> bool:
        """Judge, and write what was decided; False if all is to be looked at anew."""
        check_rights(self._chain, self._core.trust(), Kind.RESUME, self._owner())
        # (3) the facts, and what the policy in force says to them
        judged = self._judged(wish, candidate)
        if judged.decision.outcome is Outcome.REFUSE:
            raise self._refusal(judged.decision)
        if judged.decision.outcome is Outcome.NEEDS_APPROVAL:
            self._ask(wish, judged)
            return False
        # (4) the decision is written before the state is released
        return self._open_session(self._allowed(wish, judged), judged.trust) is not None

    def _take_up(self) -> None:
        self._overtaken = self._overtaken or self._moved
        self._admission = None  # what was decided before is about what was shown before
        super()._take_up()

    def _show_nothing(self, lost: type[SealpointError] | None, session: int | None) -> None:
        """A resume that was refused is no load: who had to load again still has to."""
        if lost is None and self._overtaken:
            lost = HeadMoved if session is None else Superseded
        if lost is not None:
            self._session, self._lost = None, lost

    def _judged(
        self, wish: Wish, candidate: Candidate, *, answered: bool = False, granted: bool = True
    ) -> _Judged:
        trust = self._core.trust()
        policy = self._policies.in_force(trust.roster)
        pending = read_pending(self._chain)
        now = self._now()
        asked, grant = self._grant(wish, candidate, policy, pending) if granted else (None, None)
        facts = gather(
            self._chain,
            candidate,
            trust=trust,
            who=self._who(),
            session=self._session,
            world=wish.world,
            pause=pending.paused,
            now=now,
        )
        facts = replace(
            facts,
            answered=answered or wish.answer is not None,
            deliberate=wish.deliberate,
            grant=grant,
        )
        decision = decide(facts, policy)
        if facts.paused is not None:
            # A request may be made and approved while paused; it is spent only after that.
            unpaused = decide(replace(facts, paused=None), policy)
            decision = unpaused if unpaused.outcome is Outcome.NEEDS_APPROVAL else decision
        return _Judged(candidate, policy, asked, decision, trust)

    def _grant(
        self, wish: Wish, candidate: Candidate, policy: Policy | None, pending: Pending
    ) -> tuple[Asked | None, GrantFacts | None]:
        """The newest living request for exactly this, and what has become of it.

        One that has expired is as if it had never been made: a resume asks anew.
        """
        roster, now = self._core.trust().roster, self._now()
        for asked in reversed(pending.asked.values()):
            if wish.is_asked_by(asked.body.statement, candidate, policy, self._who()):
                grant = grant_of(asked, roster, now)
                if not grant.expired:
                    return asked, grant
        return None, None

    def _allowed(self, wish: Wish, judged: _Judged) -> ResumeBody:
        """The entry that records an allowance."""
        tip, world, candidate = self._chain.tip(), wish.world, judged.candidate
        granted = any(reason.measure is Measure.APPROVAL for reason in judged.decision.reasons)
        spent = judged.asked if granted else None
        request = None if spent is None else spent.id
        same = world is not None and world.digest == candidate.world_digest
        return ResumeBody(
            salt=self._core.salt(),
            owner=self._owner(),
            basis=tip.basis[0],
            reason=wish.deliberate if spent is None else spent.body.statement.reason,
            checkpoint=candidate.ref.entry,
            world=None if world is None else world.digest,
            leaves=None if world is None or same or request is not None else world.to_dict(),
            policy=None if judged.policy is None else judged.policy.digest,
            rules=tuple(reason.rule for reason in judged.decision.reasons),
            request=request,
            answer=wish.answer_digest,
            actor=wish.actor,
        )

    def _ask(self, wish: Wish, judged: _Judged) -> None:
        """Tell that others have to approve; first make the request, if there is none.

        It returns where the request is new, or somebody else wrote first: then all is looked at
        anew.
        """
        reasons = tuple(reason.words for reason in judged.decision.reasons)
        if judged.asked is None:
            self._asked(
                RequestBody(
                    salt=self._core.salt(),
                    statement=self._statement(wish, judged),
                    reasons=reasons,
                    answer=wish.answer,
                    world=None if wish.world is None else wish.world.to_dict(),
                )
            )
            return
        request = self._shown(judged.asked)
        raise NeedsApproval(
            f"thread {self._name!r}: expected {request.needed} approvals of request "
            f"{request.short}, found {len(request.approved_by)}: {'; '.join(reasons)}",
            request=request,
            reasons=reasons,
        )

    def _statement(self, wish: Wish, judged: _Judged) -> Statement:
        """Everything that approvers of this resume are asked for."""
        policy, candidate = judged.policy, judged.candidate
        if policy is None:
            raise UsageError("request: expected a policy that asks for approval, found none")
        return self._stated(
            action=Action.RESUME,
            checkpoint=candidate.ref.entry,
            world_from=candidate.world_digest,
            world_to=None if wish.world is None else wish.world.digest,
            answer=wish.answer_digest,
            policy=policy,
            reason=wish.deliberate or "asked for by resume",
        )
