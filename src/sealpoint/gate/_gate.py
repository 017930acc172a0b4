# SPDX-License-Identifier: Apache-2.0
"""The gate of a thread: the only way by which a state is released for execution.

The order of a resume, numbered below: (1) look and verify, (2) make the release, (3) read what it
says, (4) gather the facts and judge, (5) write the decision with the digest of the release, (6)
hand over what was read. If somebody else wrote in between, everything begins anew. A session that
a save begins by itself is judged in the same way: it has to be an ordinary continuation, or what
the policy allows without a word. Inside a session the declared world becomes no wider.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import msgspec

from sealpoint.errors import (
    Busy,
    Erased,
    NeedsApproval,
    ResumeRefused,
    SealpointError,
    UnknownCheckpoint,
    UnknownThread,
    UsageError,
)
from sealpoint.gate._context import GateContext
from sealpoint.gate._facts import gather
from sealpoint.gate._pending import Asked, Pending
from sealpoint.gate._policy import Measure, Policy, Rule
from sealpoint.gate._requests import grant_of
from sealpoint.gate._resume_call import ResumeCall
from sealpoint.gate._rules import Decision, GrantFacts, Outcome, decide
from sealpoint.ledger import Kind, RequestBody, ResumeBody, StoreChain
from sealpoint.signing import Action, Statement
from sealpoint.store import (
    CheckpointRef,
    EntryDraft,
    Loaded,
    Release,
    SessionStart,
    Snapshot,
    ThreadReader,
    ThreadState,
    ThreadWriter,
    check_rights,
)
from sealpoint.store import Outcome as Written
from sealpoint.world import World

__all__ = ["Gate"]

_T = TypeVar("_T")


class _Judged(NamedTuple):
    """What would be released, what the gate found, and what it says to that."""

    release: Release
    policy: Policy | None
    asked: Asked | None
    """The request for exactly this, if there is a living one."""
    decision: Decision
    trust: StoreChain
    """By whose roster it was decided."""


class _Admission(NamedTuple):
    """A resume that was decided and is to be recorded with the first entry of its session."""

    call: ResumeCall
    answered: bool
    shown: int
    """What `times_shown` was: it is about what the caller was shown then."""


class _Prefetched(NamedTuple):
    """What a session that has just begun was decided about, for the first who reads it."""

    session: int
    snapshot: Snapshot


class Gate:
    """Decides what a thread may go on with, and records it."""

    def __init__(self, state: ThreadState, reader: ThreadReader, context: GateContext) -> None:
        self._state = state
        self._reader = reader
        self._context = context
        self._core = state.core
        self._chain = state.chain
        self.writer = ThreadWriter(state, reader, self._start_session, self._go_on)
        self._world: World | None = None
        """What the run of this handle's session declared to be able to do."""
        self._admission: _Admission | None = None
        self._prefetched: _Prefetched | None = None

    # ------------------------------------------------------------------ resuming

    def resume(self, call: ResumeCall) -> Loaded:
        """Release a state, if it is allowed, and begin a session with it; see `Thread.resume`."""
        with self._state.reporting(), self._state.shown_only_if_it_passes():
            self._core.signer()
            while True:
                release, loaded = self._look_up(call, self._reader.read_loaded)
                if self._decide_and_open(call, release) is not None:
                    # (6) only now is the caller given anything
                    return loaded

    def begin(self, call: ResumeCall) -> int | None:
        """Begin a session for a caller that reads by `snapshot`; see `Thread.begin`."""
        with self._state.reporting(), self._state.shown_only_if_it_passes():
            self._core.signer()
            while True:
                try:
                    release, snapshot = self._look_up(call, self._reader.read_snapshot)
                except (UnknownThread, UnknownCheckpoint, Erased) as error:
                    if call.ref is not None and isinstance(error, UnknownCheckpoint):
                        raise
                    self._state.session = None  # the first save begins one, from nothing
                    return None
                session = self._decide_and_open(call, release)
                if session is not None:
                    self._prefetched = _Prefetched(session, snapshot)
                    return session

    def admit(
        self, call: ResumeCall, *, answered: bool, lane: str, name: str | None
    ) -> Snapshot | None:
        """Decide now, and record it with the first entry that is written; see `Thread.admit`."""
        state = self._state
        session, world = state.session, self._world
        with state.reporting(), state.shown_only_if_it_passes():
            try:
                # To try again is to decide again: there is no look between deciding and reading.
                return state.retry_if_pruned(
                    lambda: self._admit(call, lane, name, answered=answered)
                )
            except BaseException:
                # A load that failed is nothing to go on from.
                state.session, self._world, self._admission = session, world, None
                raise

    def _admit(
        self, call: ResumeCall, lane: str, name: str | None, *, answered: bool
    ) -> Snapshot | None:
        self._admission = None
        try:
            release, _ = self._look_up_once(call, lambda found: found)
        except (UnknownThread, UnknownCheckpoint, Erased) as error:
            if call.ref is not None and isinstance(error, UnknownCheckpoint):
                raise
            # What lies in other lanes comes with the main one, and not without it.
            self._state.session = None
            return None
        else:
            if not self._core.parts.read_only:
                owner = self._context.owner()
                check_rights(self._chain, self._core.trust(), Kind.RESUME, owner)
            decision = self._judge(call, release, answered=answered, granted=False).decision
            if decision.outcome is not Outcome.ALLOW:
                raise self._refusal(decision)
            self._state.session = None
            self._admission = _Admission(call, answered, self._state.times_shown)
            self._world = call.world
        return self._reader.read_lane(lane, name)

    def judge(self, call: ResumeCall) -> Decision:
        """What the gate would say, without writing or releasing anything."""
        with self._state.reporting():
            self._state.refresh()
            release = self._reader.release(call.ref)
            return replace(self._judge(call, release).decision, release=release)

    def release(self, ref: str | CheckpointRef | None) -> Release:
        """What would be executed if the thread went on; see `Thread.release`."""
        with self._state.reporting():
            self._state.refresh()
            return self._state.retry_if_pruned(lambda: self._reader.release(ref))

    def question(self) -> Any:
        """What the thread waits for; None if for nothing, or it holds nothing."""
        with self._state.reporting():
            if not self._state.find():
                return None
            try:
                return self._state.retry_if_pruned(self._reader.release).question
            except UnknownCheckpoint:
                return None

    def snapshot(
        self, lane: str, name: str | None, *, running: bool, session: int | None
    ) -> Snapshot | None:
        """Read a lane; what a session was decided about is not read twice."""
        with self._state.reporting():
            ready = self._prefetched
            if running and ready is not None and (lane, session) == ("", ready.session):
                self._prefetched = None
                self._state.refresh()
                self._state.require_session(session)
                if name in (None, ready.snapshot.ref.id):
                    # Whatever lies there by now: this is what was decided about.
                    return ready.snapshot
        return self._reader.snapshot(lane, name, running=running, session=session)

    def _look_up(self, call: ResumeCall, read: Callable[[Release], _T]) -> tuple[Release, _T]:
        return self._state.retry_if_pruned(lambda: self._look_up_once(call, read))

    def _look_up_once(self, call: ResumeCall, read: Callable[[Release], _T]) -> tuple[Release, _T]:
        state = self._state
        try:
            # (1) the store chain, the head, the anchor
            state.refresh()
            # (2) what would be released
            release = self._reader.release(call.ref)
        except (UnknownThread, UnknownCheckpoint, Erased):
            if call.ref is None:  # that there is nothing is what the caller may go on from
                state.mark_seen()
            raise
        # (3) bodies and blobs, the decoding: a failed read must not use up a grant
        found = read(release)
        state.mark_seen()
        return release, found

    def _decide_and_open(self, call: ResumeCall, release: Release) -> int | None:
        """Judge, and write what was decided.

        Returns:
            The session that began; None if all is to be looked at anew.
        """
        check_rights(self._chain, self._core.trust(), Kind.RESUME, self._context.owner())
        # (4) the facts, and what the policy in force says to them
        judged = self._judge(call, release)
        if judged.decision.outcome is Outcome.REFUSE:
            raise self._refusal(judged.decision)
        if judged.decision.outcome is Outcome.NEEDS_APPROVAL:
            self._ask(call, judged)
            return None
        # (5) the decision is written before the state is released
        entry = self.writer.open_session(
            SessionStart(self._resume_body(call, judged), judged.trust)
        )
        if entry is None:
            return None
        self._world = call.world
        return entry.seq

    # ------------------------------------------------------------------ judging

    def _judge(
        self, call: ResumeCall, release: Release, *, answered: bool = False, granted: bool = True
    ) -> _Judged:
        trust = self._core.trust()
        policy = self._context.policies.in_force(trust.roster)
        pending = self._context.pending()
        asked, grant = self._grant(call, release, policy, pending) if granted else (None, None)
        facts = gather(
            self._state,
            release,
            trust=trust,
            who=self._context.identity(),
            world=call.world,
            read_world=lambda: self._reader.read_world(release),
            now=self._context.now(),
            pause=pending.paused,
            answered=answered or call.answer is not None,
            deliberate=call.deliberate,
            grant=grant,
        )
        decision = decide(facts, policy)
        if facts.paused is not None:
            # A request may be made and approved while paused; it is spent only after that.
            unpaused = decide(replace(facts, paused=None), policy)
            decision = unpaused if unpaused.outcome is Outcome.NEEDS_APPROVAL else decision
        return _Judged(release, policy, asked, decision, trust)

    def _grant(
        self, call: ResumeCall, release: Release, policy: Policy | None, pending: Pending
    ) -> tuple[Asked | None, GrantFacts | None]:
        """The newest living request for exactly this, and what has become of it.

        One that has expired is as if it had never been made: a resume asks anew.
        """
        roster, now = self._core.trust().roster, self._context.now()
        who = self._context.identity()
        for asked in reversed(pending.asked.values()):
            if call.is_asked_by(asked.body.statement, release, policy, who):
                grant = grant_of(asked, roster, now)
                if not grant.expired:
                    return asked, grant
        return None, None

    def _resume_body(self, call: ResumeCall, judged: _Judged) -> ResumeBody:
        """The entry that records an allowance."""
        tip, world, release = self._chain.tip(), call.world, judged.release
        granted = any(reason.measure is Measure.APPROVAL for reason in judged.decision.reasons)
        spent = judged.asked if granted else None
        request = None if spent is None else spent.id
        same = world is not None and world.digest == release.world
        return ResumeBody(
            salt=self._core.salt(),
            owner=self._context.owner(),
            basis=tip.basis[0],
            reason=call.deliberate if spent is None else spent.body.statement.reason,
            checkpoint=release.entry,
            release=release.digest,
            world=None if world is None else world.digest,
            leaves=None if world is None or same or request is not None else world.to_dict(),
            policy=None if judged.policy is None else judged.policy.digest,
            rules=tuple(reason.rule for reason in judged.decision.reasons),
            request=request,
            answer=call.answer_digest,
            actor=call.actor,
        )

    def _refusal(self, decision: Decision) -> SealpointError:
        reasons = tuple(reason.words for reason in decision.reasons)
        message = f"thread {self._state.name!r}: resume refused: {'; '.join(reasons)}"
        if decision.busy:
            return Busy(message)
        paused = any(reason.rule == "paused" for reason in decision.reasons)
        hint = f"An operator ends it: sealpoint unpause {self._state.name!r} --reason WHY"
        return ResumeRefused(message, reasons=reasons, hint=hint if paused else None)

    def _ask(self, call: ResumeCall, judged: _Judged) -> None:
        """Tell that others have to approve; first make the request, if there is none.

        It returns where the request is new, or somebody else wrote first: then all is looked at
        anew.
        """
        reasons = tuple(reason.words for reason in judged.decision.reasons)
        if judged.asked is None:
            self._context.ask(
                RequestBody(
                    salt=self._core.salt(),
                    statement=self._statement(call, judged),
                    reasons=reasons,
                    answer=call.answer,
                    world=None if call.world is None else call.world.to_dict(),
                )
            )
            return
        request = self._context.request(judged.asked)
        raise NeedsApproval(
            f"thread {self._state.name!r}: request {request.short} has {len(request.approved_by)} "
            f"of {request.needed} approvals: {'; '.join(reasons)}",
            request=request,
            reasons=reasons,
        )

    def _statement(self, call: ResumeCall, judged: _Judged) -> Statement:
        """Everything that approvers of this resume are asked for."""
        policy, release = judged.policy, judged.release
        if policy is None:
            raise UsageError("request: no policy is in force, so nobody can approve anything")
        return self._context.statement(
            action=Action.RESUME,
            checkpoint=release.entry,
            release=release.digest,
            world_from=release.world,
            world_to=None if call.world is None else call.world.digest,
            answer=call.answer_digest,
            policy=policy,
            reason=call.deliberate or "asked for by resume",
        )

    # ------------------------------------------------------------------ saving

    def commit(self, drafts: Sequence[EntryDraft]) -> list[Written]:
        """Write several things; see `Thread.commit`.

        What declares no world has that of the one before it, or of the session.
        """
        with self._state.lock:
            if self._state.session is None and self._admitted() is None:
                self._world = None
            world = self._world
            for draft in drafts:
                if draft.declared is None:
                    draft.declare(world)
                world = draft.declared
            self._prefetched = None  # a run that writes reads what it wrote
            outcomes = self.writer.commit(drafts)
            if self._state.session is not None:
                self._admission = None  # it is recorded by now
            return outcomes

    def _admitted(self) -> _Admission | None:
        """What was decided about what the caller was shown last."""
        found = self._admission
        return found if found is not None and found.shown == self._state.times_shown else None

    def _go_on(self, draft: EntryDraft) -> None:
        """Refuse another world inside a session, unless it is narrower or an allowed first one."""
        before, world = self._world, draft.declared
        if world == before:
            return
        self._world = world
        if before is None:
            policy = self._context.policy()
            if policy is not None and policy.measure(Rule.FIRST_WORLD) is Measure.ALLOW:
                return
            found = "a world is declared, and none was when the session began"
        elif world is None:
            found = "no world is declared"
        else:
            diff = before.diff(world)
            if diff.narrowing and not (diff.code_changed or diff.widening):
                return
            found = ", ".join(diff.lines())
        self._world = before
        raise ResumeRefused(
            f"thread {self._state.name!r}: the world of a session may not become another or wider "
            f"one: {found}",
            reasons=(found,),
            hint="Call resume(world=...) with the new world: that begins a session with it.",
        )

    def _start_session(self, draft: EntryDraft, owner: str, basis: int) -> SessionStart:
        """Judge the session that a save begins by itself."""
        world, trust = draft.declared, self._core.trust()
        policy = self._context.policies.in_force(trust.roster)
        body = ResumeBody(
            salt=self._core.salt(),
            owner=owner,
            basis=basis,
            world=None if world is None else world.digest,
            policy=None if policy is None else policy.digest,
        )
        release = self._release_to_go_on_from()
        if release is not None:
            admitted = self._admitted()
            deliberate = None if admitted is None else admitted.call.deliberate
            # Whether it is paused is told by the append, as to a save in a session.
            facts = gather(
                self._state,
                release,
                trust=trust,
                who=self._context.identity(),
                world=world,
                read_world=lambda: self._reader.read_world(release),
                now=self._context.now(),
                answered=admitted is not None and admitted.answered,
                deliberate=deliberate,
            )
            decision = decide(facts, policy)
            if decision.outcome is not Outcome.ALLOW:
                reasons = tuple(reason.words for reason in decision.reasons)
                raise ResumeRefused(
                    f"thread {self._state.name!r}: this save would begin a session that is no "
                    f"ordinary continuation: {'; '.join(reasons)}",
                    reasons=reasons,
                    hint="Call resume(world=...) first: the gate decides, and records it.",
                )
            other = world is not None and world.digest != release.world
            body = msgspec.structs.replace(
                body,
                reason=deliberate,
                checkpoint=release.entry,
                release=release.digest,
                leaves=world.to_dict() if world is not None and other else None,
                rules=tuple(reason.rule for reason in decision.reasons),
            )
        self._world = world
        return SessionStart(body, trust)

    def _release_to_go_on_from(self) -> Release | None:
        """What a save without a session goes on from; None if the thread holds nothing."""
        if self._chain.head is None or self._chain.tip().fence.erased:
            return None
        admitted = self._admitted()
        try:
            return self._reader.release(None if admitted is None else admitted.call.ref)
        except UnknownCheckpoint:
            return None
