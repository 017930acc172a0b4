# SPDX-License-Identifier: Apache-2.0
"""The gate of a thread: the only way by which a state is released for execution.

The order of a resume, numbered below: (1) look and verify, (2) make the release, (3) read what it
says, (4) gather the facts and judge, (5) write the decision with the digest of the release, (6)
hand over what was read. If somebody else wrote in between, everything begins anew. A session that
a save begins by itself is judged in the same way: it has to be an ordinary continuation, or what
the policy allows without a word. Inside a session the declared world stays the same.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import msgspec

from sealpoint.anchor import Hold
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
from sealpoint.gate._decision import Decision, GrantFacts, Outcome, refusal_hint, refused_for
from sealpoint.gate._facts import gather
from sealpoint.gate._last_session import LastSession, Liveness
from sealpoint.gate._policy import Measure, Policy
from sealpoint.gate._requests import Asked, denied_first, grant_of
from sealpoint.gate._resume_call import ResumeCall
from sealpoint.gate._rollout_book import Rollout
from sealpoint.gate._run import Run, RunTracker, older_lanes
from sealpoint.gate._worlds import AllowedWorld, SessionWorlds
from sealpoint.ledger import KINDS, Kind, RequestBody, ResumeBody, StoreChain
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
    """What would be released, what the gate found, and what it says to that."""

    release: Release
    policy: Policy | None
    asked: Asked | None
    """The request for exactly this, if there is a living one."""
    decision: Decision
    trust: StoreChain
    """By whose roster it was decided."""
    allowed: AllowedWorld | None
    """The world that the session of the checkpoint was allowed; None: the one that it names."""
    rollout: Rollout | None = None
    """What lets another world pass, if that is needed."""
    idempotent: bool = False
    """Whether something passes because it may be done again."""
    died: bool = False
    """Whether the last run did not come to its end."""


@dataclass(slots=True)
class _UnderWay:
    """A run under way."""

    hold: Hold
    """What it has the thread with."""
    died: bool
    """Whether the run before it did not come to its end."""
    begun: bool
    """Whether the one before it need not be remembered: it came to its end, or this one runs."""


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
        self.writer = ThreadWriter(state, reader, self)
        self._world: World | None = None
        """What the run of this handle's session declared to be able to do."""
        self._worlds = SessionWorlds(state.chain, reader, context.policies, context.book)
        self._last = LastSession(state, reader)
        self._idle: int | None = None
        """The session of the last run of this handle, if the framework let nothing of it run."""
        self._holds: dict[str, _UnderWay] = {}
        """The runs under way."""
        self._runs = RunTracker(state)
        self._prefetched: _Prefetched | None = None

    @property
    def identity(self) -> str:
        """The identity that the store was opened with; empty if it was for reading only."""
        return self._context.identity()

    @property
    def owned(self) -> bool:
        """Whether that identity owns the thread, itself or by its pool, as it was last read."""
        return self._core.trust().roster.owns(self.identity, self._context.owner())

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
            while True:
                release, loaded = self._look_up(call, self._reader.read_loaded)
                session = self._decide_and_open(call, release)
                if session is not None:
                    self._runs.current = None
                    # Somebody may have gone on before the anchor had followed.
                    self._state.require_session(session)
                    # (6) only now is the caller given anything
                    return loaded

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
        """A run has ended, and with it its session; or it was not let in."""
        held = None if run is None else self._holds.pop(run, None)
        if held is not None:
            self._idle = None if ran else self._state.session
            held.hold.end(begun=held.begun and came_to_end)

    def _hold(self, run: str | None, *, died: bool) -> bool:
        """Let a run have the thread, if it is one, until `end`.

        Returns:
            Whether what was judged still stands: False if another run has died meanwhile.

        Raises:
            Busy: Another one has it.
        """
        if run is None or run in self._holds:
            return True
        hold = self._last.hold(self.identity, self._core.now(None))
        found = died or hold.left
        self._holds[run] = _UnderWay(hold, died=found, begun=not found)
        return found == died

    def _note_begun(self, run: str | None) -> None:
        """A run goes on: the one before it need not be remembered any more."""
        if run is not None:
            self._holds[run].begun = True

    def _liveness(self, run: str | None) -> Liveness:
        """What is known of the last run, for one that may have the thread by now."""
        held = None if run is None else self._holds.get(run)
        return self._last.look() if held is None else Liveness(None, died=held.died)

    def _is_held(self, run: str | None) -> bool:
        return run in self._holds

    def _begin(self, call: ResumeCall) -> int | None:
        with self._state.reporting(), self._state.shown_only_if_it_passes():
            self._core.signer()
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
                session = self._decide_and_open(call, release)
                if session is not None:
                    self._prefetched = _Prefetched(session, snapshot)
                    return session

    def judge(self, call: ResumeCall, identity: str | None) -> Decision:
        """What the gate would say, also to somebody else, without writing or releasing anything."""
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
                decision = refused_for(decision, f"{identity!r} is no writer here: it has {found}")
            return replace(decision, release=release)

    def release(self, ref: str | CheckpointRef | None) -> Release:
        """What would be executed if the thread went on; see `Thread.release`."""
        with self._state.reporting():
            self._state.refresh()
            return self._state.retry_if_pruned(lambda: self._reader.release(ref))

    def snapshot(
        self, lane: str, name: str | None, *, running: bool, session: int | None
    ) -> Snapshot | None:
        """Read a lane; what a session was decided about is not read twice."""
        with self._state.reporting():
            ready = self._prefetched
            if running and ready is not None and (lane, session) == ("", ready.session):
                self._prefetched = None
                self._state.refresh(reads_back=False)
                self._state.require_session(session)
                if name in (None, ready.snapshot.ref.id):
                    # Whatever lies there by now: this is what was decided about.
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
            # A pause has stopped it, also one that has ended by now.
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
        trust = self._core.trust()
        check_rights(self._chain, trust, Kind.RESUME, self._context.owner())
        judge_unvouched(self._chain)
        # (4) the facts, and what the policy in force says to them
        judged = self._judge(call, release, trust)
        if call.offer is not None and (call.lanes or judged.decision.concerns_people):
            call = call.with_answer(call.offer())
            judged = self._judge(call, release, self._core.trust())
        if judged.decision.outcome is Outcome.REFUSE:
            raise self._refusal(judged.decision)
        if judged.decision.outcome is Outcome.NEEDS_APPROVAL:
            self._ask(call, judged)
            return None
        # (5) the decision is written before the state is released
        if not self._hold(call.run, died=judged.died):
            return None
        body = self._resume_body(call, judged)
        entry = self.writer.open_session(
            SessionStart(body, judged.trust, judged.release, call.lanes)
        )
        if entry is None:
            return None
        self._note_begun(call.run)
        if judged.rollout is not None:
            try:
                self._context.require_rollout(judged.rollout)
            except SealpointError:
                self._state.session = None  # nothing goes on in the session that this began
                raise
        self._world = call.world
        return entry.seq

    # ------------------------------------------------------------------ judging

    def _judge(
        self, call: ResumeCall, release: Release, trust: StoreChain, other: str | None = None
    ) -> _Judged:
        """Judge what a caller asks for; or what another identity would, in its own process."""
        who = self._context.identity() if other is None else other
        policy = self._context.policies.in_force(trust.roster)
        pending = self._context.pending()
        allowed = self._allowed(release)
        before = _world_before(release, allowed)
        requests = [
            each
            for each in pending.asked.values()
            if call.is_asked_by(each.body.statement, release, before, policy, who)
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
        decision, rollout = self._context.decide(facts, policy, before, call.world)
        if facts.paused is not None:
            # A request may be made and approved while paused; it is spent only after that.
            unpaused, _ = self._context.decide(
                replace(facts, paused=None), policy, before, call.world
            )
            decision = unpaused if unpaused.outcome is Outcome.NEEDS_APPROVAL else decision
        waits = decision.outcome is Outcome.NEEDS_APPROVAL
        if waits and grant is not None and grant.needed < decision.needed:
            asked = None  # fewer people were asked than it needs by now
        return _Judged(
            release,
            policy,
            asked,
            decision,
            trust,
            allowed,
            rollout,
            idempotent=idempotent,
            died=liveness.died,
        )

    def _may_do_again(self, call: ResumeCall) -> bool:
        """Whether what an answer let happen may be done again, or has not happened at all."""
        if self._idle is not None and self._idle == self._last.newest():
            return True
        return call.idempotent is not None and call.idempotent()

    def _allowed(self, release: Release) -> AllowedWorld | None:
        """The world that the session of a checkpoint was allowed; one of our own was judged."""
        if release.session in self._state.opened:
            return None
        return self._worlds.allowed(release.session)

    def _world_fields(
        self, world: World | None, release: Release | None, allowed: AllowedWorld | None
    ) -> dict[str, Any]:
        """What a resume says of its world: that it is the one before, or all of it."""
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
        """The living one of the requests for exactly this, and what has become of it.

        One that has expired is as if it had never been made: a resume asks anew.
        """
        now = self._context.now()
        for asked in denied_first(requests):
            grant = grant_of(asked, trust.roster, now, policy)
            if not grant.expired:
                return asked, grant
        return None, None

    def _resume_body(self, call: ResumeCall, judged: _Judged) -> ResumeBody:
        """The entry that records an allowance."""
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
            actor=call.actor,
            held=self._is_held(call.run),
            edits=call.edits,
            idempotent=judged.idempotent,
            **self._world_fields(call.world, release, judged.allowed),
            **_decision_fields(
                release, judged.decision, judged.rollout, self._approvals(spent, judged.trust)
            ),
        )

    def _approvals(self, spent: Asked | None, trust: StoreChain) -> tuple[Attestation, ...]:
        """The words that make a grant of a request: of those who approved, or broke the glass."""
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
        """Tell that others have to approve; first make the request, if there is none.

        It returns where the request is new, or somebody else wrote first: then all is looked at
        anew.
        """
        reasons = tuple(reason.words for reason in judged.decision.reasons)
        if judged.asked is None:
            call.require_something_to_run(self._state.name)
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
        """Everything that approvers of this resume are asked for."""
        policy, release = judged.policy, judged.release
        if policy is None:
            raise UsageError(
                "request: no policy is in force, so nobody can approve anything",
                hint="Where the root key is, put one in force: sealpoint policy apply team",
            )
        # Of somebody whom the roster does not know, there is nothing to hold an approver against.
        known = call.actor is not None and call.actor in judged.trust.roster.persons
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
            actor=call.actor if known else None,
        )

    # ------------------------------------------------------------------ saving

    def commit(self, drafts: Sequence[CommitDraft]) -> list[Written]:
        """Write several things; see `AdapterThread.commit`."""
        with self._state.lock:
            self._prefetched = None  # a run that writes reads what it wrote
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
        """Write what belongs to one session.

        What declares no world has that of the one before it, or of the session.
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
        # Results count in the session that saves their checkpoint, so those are added once more.
        outcomes = self.writer.commit([*early, *group])[len(early) :]
        refused = None if run is None else self._runs.settle(run, outcomes[0])
        if refused is not None:
            state.session, self._world = refused.session, refused.world
        return outcomes

    def continue_session(self, draft: CommitDraft) -> None:
        """Refuse another world inside a session: what a run can do is decided as it begins."""
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
        )
        judged = self._judge_run(run, draft, trust, policy)
        release = None if judged is None else judged.release
        allowed = None if judged is None else judged.allowed
        body = msgspec.structs.replace(body, **self._world_fields(world, release, allowed))
        if judged is not None:
            body = msgspec.structs.replace(
                body,
                reason=None if run is None else run.position.deliberate,
                **_decision_fields(judged.release, judged.decision, judged.rollout),
            )
        self._world = world
        return SessionStart(body, trust, release, {} if run is None else run.lanes)

    def _judge_run(
        self, run: Run | None, draft: CommitDraft, trust: StoreChain, policy: Policy | None
    ) -> _Judged | None:
        """What a save without a session goes on from, and what is decided about that.

        Returns:
            None if the thread holds nothing.

        Raises:
            ResumeRefused: It is not allowed without a word, or not without people.
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
        # Whether it is paused is told by the append, as to a save in a session.
        facts = gather(
            self._state,
            release,
            trust=trust,
            who=self._context.identity(),
            last=self._last,
            session=self._state.session,
            unknown=self._last.unknown(died=liveness.died),
            holder=liveness.holder,
            world=draft.declared,
            read_world=lambda: self._reader.read_world(release),
            allowed=allowed,
            now=self._context.now(),
            answered=position.answered,
            deliberate=position.deliberate,
            also_older=() if run is None else older_lanes(run.lanes),
        )
        before = _world_before(release, allowed)
        decision, rollout = self._context.decide(facts, policy, before, draft.declared)
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
        return _Judged(release, policy, None, decision, trust, allowed, rollout)

    def _release_to_go_on_from(self, run: Run | None) -> Release | None:
        """What a save without a session goes on from; None if the thread holds nothing."""
        if self._chain.head is None or self._chain.tip().fence.erased:
            return None
        newest = self._state.checkpoints.newest("")
        base = None if run is None or newest is None or newest.key.id == run.base else run.base
        try:
            return self._reader.release(base)
        except UnknownCheckpoint:
            return None


def _world_before(release: Release, allowed: AllowedWorld | None) -> str | None:
    """The world that the present one is compared with: that of a checkpoint, if it was allowed."""
    return release.world if allowed is None else allowed.digest(release.world)


def _digest(named: World | Policy | None) -> str | None:
    return None if named is None else named.digest


def _decision_fields(
    release: Release,
    decision: Decision,
    rollout: Rollout | None,
    approvals: tuple[Attestation, ...] = (),
) -> dict[str, Any]:
    """What a resume entry records of a decision, whoever asked for it."""
    return {
        "checkpoint": release.entry,
        "release": release.digest,
        "released": release.seq,
        "rules": tuple(reason.rule for reason in decision.reasons),
        "rollout": None if rollout is None else rollout.statement,
        "attestations": approvals + (() if rollout is None else rollout.approvals),
    }
