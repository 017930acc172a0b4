# SPDX-License-Identifier: Apache-2.0
"""The gate of a thread: the only way to release a state for execution.

A resume has the numbered steps that the code below marks: (1) look and verify, (2) make the
release, (3) read its content, (4) gather the facts and judge, (5) write the decision with the
digest of the release, (6) hand over the content. If another process writes in between, all steps
start again. The gate judges a session that a save begins by itself in the same way: it must be an
ordinary continuation, or the policy must allow it without a reason or an approval. Inside a session
the declared world must not change.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from sealpoint.anchor import Hold
from sealpoint.errors import (
    Busy,
    Erased,
    Moved,
    NeedsApproval,
    ResumeRefused,
    SealpointError,
    UnknownCheckpoint,
    UnknownThread,
    UsageError,
)
from sealpoint.gate._answers import SignedAnswer
from sealpoint.gate._decision import Decision, GrantFacts, Outcome, refusal_hint, refused_for
from sealpoint.gate._decision_facts import gather
from sealpoint.gate._framework_runs import Run, RunTracker, older_lanes
from sealpoint.gate._gate_context import GateContext
from sealpoint.gate._last_session import Interrupted, LastSession, Liveness
from sealpoint.gate._policy import Measure, Policy
from sealpoint.gate._requests import Asked, Request, Status, denied_first, grant_of
from sealpoint.gate._resume_call import ResumeCall
from sealpoint.gate._rollouts_in_force import Rollout
from sealpoint.gate._session_worlds import AllowedWorld, SessionWorlds
from sealpoint.ledger import KINDS, Entry, Kind, RequestBody, ResumeBody, StoreChain
from sealpoint.signing import Action, Attestation, Statement, count
from sealpoint.store import (
    CheckpointRef,
    CommitDraft,
    Loaded,
    Release,
    RunPosition,
    SessionStart,
    Snapshot,
    ThreadReader,
    ThreadState,
    ThreadWriter,
    check_rights,
    is_paused,
    judge_unvouched,
    lost_pause,
)
from sealpoint.store import Outcome as Written
from sealpoint.world import World

_T = TypeVar("_T")


class _Judged(NamedTuple):
    """A release with the request for it, the facts about it, and the gate's decision."""

    release: Release
    policy: Policy | None
    asked: Asked | None
    """The open request for exactly this resume, if it exists."""
    decision: Decision
    trust: StoreChain
    """The store chain whose roster the decision used."""
    allowed: AllowedWorld | None
    """The world that the session of the checkpoint was allowed; None: the one that it names."""
    rollouts: tuple[Rollout, ...] = ()
    """The rollouts that accept the changed world, if any are needed."""
    idempotent: bool = False
    """Whether a step passes because it is safe to repeat."""
    died: bool = False
    """Whether the last run was interrupted."""
    signed: SignedAnswer | None = None
    """The answer of the call, if a person has signed it."""

    @property
    def is_allowed(self) -> bool:
        """Whether a session is to begin."""
        return self.decision.outcome is Outcome.ALLOW

    @property
    def is_new_request(self) -> bool:
        """Whether people are to be asked who have not been."""
        return self.decision.outcome is Outcome.NEEDS_APPROVAL and self.asked is None

    def is_alike(self, before: "_Judged") -> bool:
        """Whether nothing has to be asked of anybody again before it is written."""
        one, other = self.decision, before.decision
        return (self.died, one.outcome, one.concerns_people) == (
            before.died,
            other.outcome,
            other.concerns_people,
        )


@dataclass(slots=True)
class _UnderWay:
    """A run in progress."""

    hold: Hold
    """The run's hold on the thread."""
    died: bool
    """Whether the run before it was interrupted."""
    begun: bool
    """Whether the previous run can be forgotten: it came to its end, or this one has begun."""


class _Prefetched(NamedTuple):
    """The snapshot of a session that has just begun, kept for the first read."""

    session: int
    snapshot: Snapshot


class Gate:
    """Decides from which states a thread may resume, and records the decisions."""

    def __init__(self, state: ThreadState, reader: ThreadReader, context: GateContext) -> None:
        self._state = state
        self._reader = reader
        self._context = context
        self._core = state.core
        self._chain = state.chain
        self.writer = ThreadWriter(state, reader, self)
        self._world: World | None = None
        """The capabilities that the run of this handle's session declared."""
        self._worlds = SessionWorlds(state.chain, reader, context.policies, context.book)
        self._last = LastSession(state, reader)
        self._idle: int | None = None
        """The session of this handle's last run, if the framework rejected it before it ran."""
        self._holds: dict[str, _UnderWay] = {}
        """The runs in progress."""
        self._runs = RunTracker(state)
        self._prefetched: _Prefetched | None = None

    @property
    def identity(self) -> str:
        """Return the identity that opened the store; empty if the store is read-only."""
        return self._context.identity()

    @property
    def owned(self) -> bool:
        """Whether that identity owns the thread, directly or by its pool, as of the last read."""
        return self._core.trust().roster.owns(self.identity, self._context.owner())

    def is_colleague(self, writer: str) -> bool:
        """Whether a writer is of the same person as that identity, or in a pool with it."""
        roster = self._core.trust().roster
        found = roster.identity(writer)
        return found is not None and roster.work_together(self.identity, found)

    # ------------------------------------------------------------------ resuming

    def resume(self, call: ResumeCall) -> Loaded:
        """Release a state, if it is allowed, and begin a session with it; see `Thread.resume`."""
        try:
            return self._resume(call)
        except BaseException:
            self.end(call.run)
            raise

    def _resume(self, call: ResumeCall) -> Loaded:
        with self._state.reporting(), self._state.shown_only_if_it_passes():
            self._core.signer()
            is_lost = False
            while True:
                release, loaded = self._look_up(call, self._reader.read_loaded)
                session = self._decide_and_open(call, release, hold=is_lost)
                if session is not None:
                    self._runs.current = None
                    # Another process may have resumed before the anchor had advanced.
                    self._state.require_session(session)
                    # (6) only now does the caller receive the state
                    return loaded
                is_lost = True

    def begin(self, call: ResumeCall) -> int | None:
        """Begin a session for a caller that reads by `snapshot`; see `AdapterThread.begin`."""
        token = call.run
        try:
            session = self._begin(call)
        except BaseException:
            self.end(token)
            raise
        position = RunPosition(token=token, deliberate=call.deliberate or None)
        run = Run(position, actor=call.actor)
        run.session, self._runs.current = session, None if token is None else run
        return session

    def end(self, run: str | None, *, came_to_end: bool = True, ran: bool = True) -> None:
        """Record that a run has ended, and with it its session; or that it was not admitted."""
        held = None if run is None else self._holds.pop(run, None)
        if held is not None:
            self._idle = None if ran else self._state.session
            held.hold.end(begun=held.begun and came_to_end)

    def _hold(self, run: str | None, *, died: bool) -> bool:
        """Give a run exclusive use of the thread until `end`, if the call belongs to a run.

        Returns:
            Whether the judgment still stands: False if another run has died since.

        Raises:
            Busy: Another run holds the thread.
        """
        if run is None or run in self._holds:
            return True
        hold = self._last.hold(self.identity, self._core.now(None))
        found = died or hold.left
        self._holds[run] = _UnderWay(hold, died=found, begun=not found)
        return found == died

    def _note_begun(self, run: str | None) -> None:
        """Record that a run has begun, so that the previous run can be forgotten."""
        if run is not None:
            self._holds[run].begun = True

    def _liveness(self, run: str | None) -> Liveness:
        """Return the liveness of the last run; the asking run may already hold the thread."""
        held = None if run is None else self._holds.get(run)
        return self._last.look() if held is None else Liveness(None, died=held.died)

    def _is_held(self, run: str | None) -> bool:
        return run in self._holds

    def _begin(self, call: ResumeCall) -> int | None:
        with self._state.reporting(), self._state.shown_only_if_it_passes():
            self._core.signer()
            is_lost = False
            while True:
                try:
                    release, snapshot = self._look_up(call, self._reader.read_snapshot)
                except (UnknownThread, UnknownCheckpoint, Erased) as error:
                    if call.ref is not None and isinstance(error, UnknownCheckpoint):
                        raise
                    self._hold(call.run, died=False)
                    self._note_begun(call.run)
                    self._state.session = None  # the first save begins one, from nothing
                    return None
                session = self._decide_and_open(call, release, hold=is_lost)
                if session is not None:
                    self._prefetched = _Prefetched(session, snapshot)
                    return session
                is_lost = True

    def judge(self, call: ResumeCall, identity: str | None) -> Decision:
        """Return the gate's decision, also for another identity; writes and releases nothing."""
        with self._state.reporting():
            self._state.refresh()
            release = self._reader.release(call.ref)
            if identity is None:
                judged = self._judge(call, release, self._core.trust())
                return replace(judged.decision, release=release)
            who = self._context.identity_of(identity)
            decision = self._judge(call, release, self._core.trust(), who.name).decision
            if not who.may_any(KINDS[Kind.RESUME].roles, self._core.namespace):
                found, _ = who.lacking(KINDS[Kind.RESUME].roles, self._core.namespace)
                decision = refused_for(
                    decision, f"{identity!r} is not a writer here: it has {found}"
                )
            return replace(decision, release=release)

    def release(self, ref: str | CheckpointRef | None) -> Release:
        """Return the state that the thread would resume from; see `Thread.release`."""
        with self._state.reporting():
            self._state.refresh()
            return self._state.retry_if_pruned(lambda: self._reader.release(ref))

    def snapshot(
        self, lane: str, name: str | None, *, running: bool, session: int | None
    ) -> Snapshot | None:
        """Read a lane; the state that a session was decided about is not read twice."""
        with self._state.reporting():
            ready = self._prefetched
            if running and ready is not None and (lane, session) == ("", ready.session):
                self._prefetched = None
                self._state.refresh(reads_back=False)
                self._state.require_session(session)
                if name in (None, ready.snapshot.ref.id):
                    # Even if the lane has changed since: the decision was about this state.
                    return ready.snapshot
        return self._reader.snapshot(lane, name, running=running, session=session)

    def may_go_on(self, token: str) -> bool:
        """Whether a run may take its next step; see `AdapterThread.may_go_on`."""
        with self._state.reporting():
            if not self._state.find(reads_back=False):
                return True
            run = self._runs.current
            if run is None or run.position.token != token:
                raise self._runs.overtaken(None)
            self._state.require_session(run.session)
            # A pause stops the run, even if the pause has ended since.
            return not (is_paused(self._chain) or self._last.is_stopped())

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
            if call.ref is None:  # the caller may continue from an empty thread
                state.mark_seen()
            raise
        # (3) bodies and blobs, and decoding: a failed read must not use up a grant
        found = read(release)
        state.mark_seen()
        return release, found

    def _decide_and_open(self, call: ResumeCall, release: Release, *, hold: bool) -> int | None:
        """Judge, and write the decision.

        Args:
            call: The request of the caller.
            release: The state that would be executed.
            hold: Whether to lock out other writers, because one came first before.

        Returns:
            The session that began; None if all steps must start again.
        """
        # (4) the facts, and the decision of the policy in force
        head = self._chain.head
        judged = self._judge_own(call, release)
        if call.offer is not None and (call.lanes or judged.decision.concerns_people):
            call = call.with_answer(call.offer())
            judged = self._judge(call, release, self._core.trust())
        if judged.is_new_request:
            call.require_something_to_run(self._state.name)
        elif judged.is_allowed and not self._hold(call.run, died=judged.died):
            return None
        if not hold and self._chain.head is not head:
            # The application was asked, and has read entries that are not judged.
            return None
        # (5) the decision is written before the state is released
        if hold and (judged.is_allowed or judged.is_new_request):
            judged, entry = self._write_alone(call, judged)
        else:
            entry = self._write_decision(call, judged)
        if entry is None:
            return None
        self._note_begun(call.run)
        if judged.rollouts:
            try:
                self._context.require_rollouts(judged.rollouts)
            except SealpointError:
                self._state.session = None  # nothing continues in the session that this began
                raise
        self._world = call.world
        return entry.seq

    def _write_decision(self, call: ResumeCall, judged: _Judged) -> Entry | None:
        """Write what was decided: a session, or a request.

        Returns:
            The session; None if it was a request, or another writer was first.
        """
        if judged.decision.outcome is Outcome.REFUSE:
            raise self._refusal(judged.decision)
        if judged.decision.outcome is Outcome.NEEDS_APPROVAL:
            self._ask(call, judged)
            return None
        body = self._resume_body(call, judged)
        return self.writer.open_session(
            SessionStart(body, judged.trust, judged.release, call.lanes)
        )

    def _write_alone(self, call: ResumeCall, before: _Judged) -> tuple[_Judged, Entry | None]:
        """The same while no other writer can append: one may do that all the time.

        Entries that others have added are judged. No state is read here, and the application is
        not asked: that may wait for another OS thread that waits to append. Where it would have to
        be, nothing is written, and all is looked at again.
        """
        basis, release = self._chain.tip().basis, before.release
        call = call._replace(offer=None, would_run=None, idempotent=lambda: before.idempotent)
        with self._core.storage.alone(self._chain.thread):
            self._state.refresh()
            if self._chain.tip().basis != basis:
                return before, None
            judged = self._judge_own(call, release)
            if not judged.is_alike(before):
                return before, None
            return judged, self._write_decision(call, judged)

    def is_held(self) -> bool:
        """Whether a living run holds the thread; see `AdapterThread.is_held`."""
        with self._state.reporting():
            return self._state.find() and self._last.look().holder is not None

    def interrupted(self) -> Interrupted | None:
        """Return the run that was interrupted; see `AdapterThread.interrupted`."""
        with self._state.reporting():
            self._state.refresh()
            return self._last.interrupted() if self._last.look().died else None

    # ------------------------------------------------------------------ judging

    def _judge_own(self, call: ResumeCall, release: Release) -> _Judged:
        """Judge what this identity asks for, which is about to be written."""
        trust = self._core.trust()
        check_rights(self._chain, trust, Kind.RESUME, self._context.owner())
        judge_unvouched(self._chain)
        self._require_untaken(call)
        return self._judge(call, release, trust)

    def _require_untaken(self, call: ResumeCall) -> None:
        """Refuse a call whose reason has gone: another run has taken it, or it was withdrawn."""
        if call.takes is None:
            return
        if isinstance(call.takes, int):
            stands = self._last.newest() == call.takes
        else:
            asked = self._context.pending().asked.get(call.takes)
            request = None if asked is None else self._context.request(asked)
            stands = request is not None and request.status is Status.APPROVED
            if stands and request is not None:
                stands = self._is_answer_in_force(request)
        if not stands:
            words = "another run has taken what this one was to run, or it was withdrawn"
            raise Moved(f"thread {self._state.name!r}: {words}", moved=(words,))

    def _is_answer_in_force(self, request: Request) -> bool:
        """Whether the answer of a request to take is the one that counts now."""
        told, signed = request.statement, self._context.signed_answer()
        if request.is_answer:
            return signed is not None and signed.id == request.id
        if told.answer is None or signed is None or signed.release != told.release:
            return True
        return (signed.digest, signed.person) == (told.answer, told.actor)

    def _judge(
        self, call: ResumeCall, release: Release, trust: StoreChain, other: str | None = None
    ) -> _Judged:
        """Judge the resume of a caller, or of another identity in its own process."""
        who = self._context.identity() if other is None else other
        policy = self._context.policies.in_force(trust.roster)
        pending = self._context.pending()
        allowed = self._allowed(release)
        before, signed = _world_before(release, allowed), self._signed(call, release)
        requests = [
            each
            for each in pending.asked.values()
            if call.is_asked_by(each.body.statement, release, before, policy, who)
            # Who answers approves nothing: what others were asked before counts no more.
            and (signed is None or signed.person == each.body.statement.actor)
        ]
        asked, grant = self._grant(requests, policy, trust)
        liveness = self._liveness(call.run)
        unknown = self._last.unknown(died=liveness.died)
        idempotent = unknown is not None and self._may_do_again(call)
        facts = gather(
            self._state,
            release,
            trust=trust,
            who=who,
            last=self._last,
            session=self._state.session if other is None else None,
            unknown=None if idempotent else unknown,
            holder=liveness.holder,
            edits=call.edits,
            world=call.world,
            read_world=lambda: self._reader.read_world(release),
            allowed=allowed,
            now=self._context.now(),
            paused=lost_pause(self._chain) if pending.paused is None else pending.paused.words,
            answered=call.answer is not None,
            deliberate=call.deliberate,
            grant=grant,
            also_older=older_lanes(call.lanes),
        )
        decision, rollouts = self._context.decide(facts, policy)
        if facts.paused is not None:
            # A request may be made and approved while paused; it is used only after the pause.
            unpaused, _ = self._context.decide(replace(facts, paused=None), policy)
            decision = unpaused if unpaused.outcome is Outcome.NEEDS_APPROVAL else decision
        waits = decision.outcome is Outcome.NEEDS_APPROVAL
        if waits and grant is not None and grant.needed < decision.needed:
            asked = None  # the request asked for fewer approvals than are needed now
        return _Judged(
            release,
            policy,
            asked,
            decision,
            trust,
            allowed,
            rollouts,
            idempotent=idempotent,
            died=liveness.died,
            signed=signed,
        )

    def _signed(self, call: ResumeCall, release: Release) -> SignedAnswer | None:
        """Return the signed answer that a call gives; None: nobody has signed it."""
        found = None if call.answer is None else self._context.signed_answer()
        if found is None or found.release != release.digest:
            return None
        return found if found.digest == call.answer_digest else None

    def _may_do_again(self, call: ResumeCall) -> bool:
        """Whether the effect of an answer may be repeated, or has not happened at all."""
        if self._idle is not None and self._idle == self._last.newest():
            return True
        return call.idempotent is not None and call.idempotent()

    def _allowed(self, release: Release) -> AllowedWorld | None:
        """Return the world allowed to the session of a checkpoint; our own sessions were judged."""
        if release.session in self._state.opened:
            return None
        return self._worlds.allowed(release.session)

    def _world_fields(
        self, world: World | None, release: Release | None, allowed: AllowedWorld | None
    ) -> dict[str, Any]:
        """Return a resume's fields about its world: a reference to the previous, or all of it."""
        digest = _digest(world)
        if release is not None and (allowed is None or not allowed.faults):
            opening = self._state.opened.get(release.session)
            if opening is None:
                opening = self._reader.opening(release.session)[1]
            if opening.world == digest:
                decided = release.session if opening.decided is None else opening.decided
                return {"world": digest, "decided": decided}
        return {"world": digest, "leaves": None if world is None else world.to_dict()}

    def _grant(
        self, requests: Iterable[Asked], policy: Policy | None, trust: StoreChain
    ) -> tuple[Asked | None, GrantFacts | None]:
        """Return the open request for exactly this resume, and its state.

        An expired request counts as if it had never been made: the resume makes a new request.
        """
        now = self._context.now()
        for asked in denied_first(requests):
            grant = grant_of(asked, trust.roster, now, policy)
            if not grant.expired:
                return asked, grant
        return None, None

    def _resume_body(self, call: ResumeCall, judged: _Judged) -> ResumeBody:
        """Return the body of the entry that records an allowed resume."""
        release = judged.release
        granted = any(reason.measure.asks_people for reason in judged.decision.reasons)
        spent = judged.asked if granted else None
        return ResumeBody(
            salt=self._core.salt(),
            owner=self._context.owner(),
            basis=self._chain.tip().basis[0],
            reason=call.deliberate if spent is None else spent.body.statement.reason,
            policy=_digest(judged.policy),
            request=None if spent is None else spent.id,
            answer=call.answer_digest,
            answered=None if judged.signed is None else judged.signed.id,
            actor=self._actor(call, judged),
            held=self._is_held(call.run),
            edits=call.edits,
            idempotent=judged.idempotent,
            **self._world_fields(call.world, release, judged.allowed),
            **_decision_fields(
                release, judged.decision, judged.rollouts, self._approvals(spent, judged.trust)
            ),
        )

    def _actor(self, call: ResumeCall, judged: _Judged) -> str | None:
        """Return the person who answered, also where a worker repeats a call; else the claim."""
        if judged.signed is not None:
            return judged.signed.person
        found = None
        if isinstance(call.takes, int):
            interrupted = self._last.interrupted()
            found = None if interrupted is None else interrupted.actor
        elif call.takes is not None and judged.asked is not None:
            found = judged.asked.body.statement.actor
        return found or call.actor

    def _approvals(self, spent: Asked | None, trust: StoreChain) -> tuple[Attestation, ...]:
        """Return the attestations that grant a request: approvals and break-glass."""
        if spent is None:
            return ()
        tally = count(
            spent.attestations,
            statement=spent.body.statement,
            roster=trust.roster,
            now=self._context.now(),
        )
        return tally.approvals + tally.broken_glass

    def _refusal(self, decision: Decision) -> SealpointError:
        if decision.busy:
            words = (each.words for each in decision.reasons if each.measure == Measure.REFUSE)
            return Busy(f"thread {self._state.name!r}: {'; '.join(words)}")
        reasons = tuple(reason.words for reason in decision.reasons)
        message = f"thread {self._state.name!r}: resume refused: {'; '.join(reasons)}"
        return ResumeRefused(
            message, reasons=reasons, hint=refusal_hint(decision, self._state.name)
        )

    def _ask(self, call: ResumeCall, judged: _Judged) -> None:
        """Raise that other people must approve; first make the request, if none is open.

        The method returns if the request is new or another process wrote first: then all steps
        start again.
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
            hint=refusal_hint(judged.decision, self._state.name),
        )

    def _statement(self, call: ResumeCall, judged: _Judged) -> Statement:
        """Return the statement that the approvers of this resume sign."""
        policy, release = judged.policy, judged.release
        if policy is None:
            raise UsageError(
                "request: no policy is in force, so nobody can approve anything",
                hint="Where the root key is, put one in force: sealpoint policy apply team",
            )
        # An actor whom the roster does not list cannot be compared with an approver.
        actor = self._actor(call, judged)
        known = actor is not None and actor in judged.trust.roster.persons
        return self._context.statement(
            action=Action.RESUME,
            checkpoint=release.entry,
            release=release.digest,
            world_from=_world_before(release, judged.allowed),
            world_to=None if call.world is None else call.world.digest,
            answer=call.answer_digest,
            policy=policy,
            needed=judged.decision.needed,
            reason=call.deliberate or "asked for by resume",
            actor=actor if known else None,
        )

    # ------------------------------------------------------------------ saving

    def commit(self, drafts: Sequence[CommitDraft]) -> list[Written]:
        """Write several things; see `AdapterThread.commit`."""
        with self._state.lock:
            self._prefetched = None  # a run that writes must read its own writes
            outcomes: list[Written] = []
            group: list[CommitDraft] = []
            for draft in drafts:
                try:
                    if draft.position is not None and not self._runs.is_continued_by(draft):
                        outcomes += self._write(group)
                        group = []
                        self._runs.begin(draft, self._world)
                except SealpointError as error:
                    outcomes += self._write(group)
                    group = []
                    self._state.report(error)
                    outcomes.append(error)
                    continue
                if self._runs.current is not None and draft.position is not None:
                    self._runs.current.note(draft)
                group.append(draft)
            return outcomes + self._write(group)

    def _write(self, group: Sequence[CommitDraft]) -> list[Written]:
        """Write the drafts of one session.

        A draft that declares no world has the world of the previous draft, or of the session.
        """
        if not group:
            return []
        state, run = self._state, self._runs.current
        early = [] if run is None else run.take_early()
        if state.session is None:
            self._world = None
        world = self._world
        for draft in group:
            if draft.declared is None and world is not None:
                draft.declare(world)
            world = draft.declared
        # Results count in the session that saves their checkpoint, so early ones are added again.
        outcomes = self.writer.commit([*early, *group])[len(early) :]
        refused = None if run is None else self._runs.settle(run, outcomes[0])
        if refused is not None:
            state.session, self._world = refused.session, refused.world
        return outcomes

    def continue_session(self, draft: CommitDraft) -> None:
        """Refuse another world inside a session: capabilities are decided when a run begins."""
        before, world = self._world, draft.declared
        if world == before:
            return
        if before is None:
            found = "a world is declared, and none was when the session began"
        elif world is None:
            found = "no world is declared"
        else:
            found = ", ".join(before.diff(world).lines())
        raise ResumeRefused(
            f"thread {self._state.name!r}: the world of a session may not change: {found}",
            reasons=(found,),
            hint="Call resume(world=...) with the new world: that begins a session with it.",
        )

    def begin_session(
        self, draft: CommitDraft, owner: str, basis: int, trust: StoreChain
    ) -> SessionStart:
        """Judge the session that a save begins by itself."""
        world = draft.declared
        run = self._runs.current if draft.position is not None else None
        policy = self._context.policies.in_force(trust.roster)
        body = ResumeBody(
            salt=self._core.salt(),
            owner=owner,
            basis=basis,
            policy=_digest(policy),
            actor=None if run is None else run.actor,
            held=run is not None and self._is_held(run.position.token),
            edits=run is not None and run.position.edits,
        )
        judged = self._judge_run(run, draft, trust, policy)
        release = None if judged is None else judged.release
        allowed = None if judged is None else judged.allowed
        body = msgspec.structs.replace(body, **self._world_fields(world, release, allowed))
        if judged is not None:
            body = msgspec.structs.replace(
                body,
                reason=None if run is None else run.position.deliberate,
                **_decision_fields(judged.release, judged.decision, judged.rollouts),
            )
        self._world = world
        rollouts = () if judged is None else judged.rollouts
        stands = partial(self._context.require_rollouts, rollouts) if rollouts else None
        return SessionStart(body, trust, release, {} if run is None else run.lanes, stands)

    def _judge_run(
        self, run: Run | None, draft: CommitDraft, trust: StoreChain, policy: Policy | None
    ) -> _Judged | None:
        """Judge the state that a save without a session continues from.

        Returns:
            None if the thread holds nothing.

        Raises:
            ResumeRefused: It needs a reason or approvals, or is refused.
        """
        position = RunPosition() if run is None else run.position
        if run is not None and position.token is None and policy is not None and policy.asks_people:
            words = f"the policy {policy.name!r} asks for approvals, which it did not ask for"
            raise ResumeRefused(
                f"thread {self._state.name!r}: a run that was not decided about before: {words}",
                reasons=(words,),
                hint="Call resume(world=...) or begin(...) first: the gate asks for approvals.",
            )
        release = self._release_to_go_on_from(run)
        if release is None:
            return None
        allowed = self._allowed(release)
        liveness = self._liveness(None if run is None else run.position.token)
        # The append reports a pause, as it does for a save within a session.
        facts = gather(
            self._state,
            release,
            trust=trust,
            who=self._context.identity(),
            last=self._last,
            session=self._state.session,
            unknown=self._last.unknown(died=liveness.died),
            holder=liveness.holder,
            edits=position.edits,
            world=draft.declared,
            read_world=lambda: self._reader.read_world(release),
            allowed=allowed,
            now=self._context.now(),
            answered=position.answered,
            deliberate=position.deliberate,
            also_older=() if run is None else older_lanes(run.lanes),
        )
        decision, rollouts = self._context.decide(facts, policy)
        if decision.outcome is not Outcome.ALLOW:
            reasons = tuple(reason.words for reason in decision.reasons)
            if run is not None and run.is_overtaken:
                raise self._runs.overtaken(run.base)
            raise ResumeRefused(
                f"thread {self._state.name!r}: this save would begin a session that is not an "
                f"ordinary continuation: {'; '.join(reasons)}",
                reasons=reasons,
                hint="Call resume(world=...) first: the gate decides, and records it.",
            )
        return _Judged(release, policy, None, decision, trust, allowed, rollouts)

    def _release_to_go_on_from(self, run: Run | None) -> Release | None:
        """Return the state that a save without a session continues from; None if there is none."""
        if self._chain.head is None or self._chain.tip().fence.erased:
            return None
        newest = self._state.checkpoints.newest("")
        base = None if run is None or newest is None or newest.key.id == run.base else run.base
        try:
            return self._reader.release(base)
        except UnknownCheckpoint:
            return None


def _world_before(release: Release, allowed: AllowedWorld | None) -> str | None:
    """Return the world to compare with: that of the checkpoint, if it was allowed."""
    return release.world if allowed is None else allowed.digest(release.world)


def _digest(named: World | Policy | None) -> str | None:
    return None if named is None else named.digest


def _decision_fields(
    release: Release,
    decision: Decision,
    rollouts: tuple[Rollout, ...],
    approvals: tuple[Attestation, ...] = (),
) -> dict[str, Any]:
    """Return the fields of a resume entry that record a decision."""
    return {
        "checkpoint": release.entry,
        "release": release.digest,
        "released": release.seq,
        "rules": tuple(reason.rule for reason in decision.reasons),
        "rollouts": tuple(each.statement for each in rollouts),
        "attestations": approvals + tuple(word for each in rollouts for word in each.approvals),
    }
