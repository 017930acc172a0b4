# SPDX-License-Identifier: Apache-2.0
"""A thread of an open store, for applications and for the adapters of frameworks.

Every method delegates to one part: the reader reads (`store/_thread_reader.py`), the gate decides
and lets the writer write (`_gate.py`, `store/_thread_writer.py`), retention removes old data
(`store/_retention.py`), and operations are the actions of people on a thread
(`_operator_actions.py`). The parts share one `ThreadState`. Calls from several OS threads run one
after the other.

`AdapterThread` is the same thread for an adapter: several lanes, results, and runs that show a
token. An adapter translates the saves of its framework into drafts, and has each run judged before
it begins. It reads with `snapshot`, which never lets a handle that lost the thread continue. It
writes with `commit`, where every draft names its run. The gate refuses the writes of a run that was
never judged, was refused, or was overtaken. The other code that adapters share is in
`sealpoint.adapters.guarded_runs`.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, cast

from sealpoint.errors import SealpointError
from sealpoint.gate._answer_actions import AnswerActions
from sealpoint.gate._answers import SignedAnswer
from sealpoint.gate._decision import Decision
from sealpoint.gate._gate import Gate
from sealpoint.gate._gate_context import GateContext
from sealpoint.gate._last_session import Interrupted
from sealpoint.gate._operator_actions import OperatorActions
from sealpoint.gate._policy import Policies
from sealpoint.gate._requests import Request
from sealpoint.gate._resume_call import ResumeCall
from sealpoint.gate._rollouts_in_force import RolloutBook
from sealpoint.gate._shown_standing import Standing
from sealpoint.signing import Attestation, Statement
from sealpoint.store import (
    CheckpointRef,
    CommitDraft,
    Core,
    Erasure,
    Key,
    Loaded,
    Outcome,
    PendingResult,
    Pruning,
    Release,
    Results,
    SaveDraft,
    Snapshot,
    ThreadReader,
    ThreadRetention,
    ThreadState,
    checkpoint_at,
)
from sealpoint.world import World, WorldDiff


class Thread:
    """A thread of an open store: its checkpoints, and the gate that every resume passes."""

    def __init__(self, core: Core, name: str, policies: Policies, book: RolloutBook) -> None:
        self._state = ThreadState(core, name)
        self._reader = ThreadReader(self._state)
        self._retention = ThreadRetention(self._state)
        context = GateContext(self._state, policies, book)
        self._gate = Gate(self._state, self._reader, context)
        self.operations = OperatorActions(self._state, self._reader, context)
        """Answers to requests, as `Store.approve` and similar methods record them."""
        self._answers = AnswerActions(self._state, self._reader, context, self.operations)
        self.adapter = AdapterThread(self._state, self._reader, self._gate, self._retention)
        """The operations of a framework's adapter on the thread."""

    @property
    def name(self) -> str:
        """Return the application's name for the thread."""
        return self._state.name

    @property
    def id(self) -> str:
        """Return the thread's id in hexadecimal; empty until the thread was read or saved."""
        return self._state.chain.thread.hex()

    def __repr__(self) -> str:
        return f"<Thread {self.name!r}>"

    # ------------------------------------------------------------------ reading

    def load(self, ref: "str | CheckpointRef | None" = None) -> Loaded:
        """Load the newest checkpoint, or the one that `ref` names.

        This is for reading. The handle records the newest position, so that it may save again after
        `HeadMoved` or `Superseded`.

        Raises:
            UnknownThread: Nothing was saved under this name.
            UnknownCheckpoint: The thread has no such checkpoint.
            DecodeError: The registry does not allow the saved data.
            Erased: The thread was erased on purpose.
            Pruned: The state was pruned on purpose.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was;
                nothing was decoded.
        """
        return self._reader.load(ref)

    def history(self) -> Iterator[CheckpointRef]:
        """Yield the checkpoints, newest first; checks every link from the head to genesis.

        Raises:
            UnknownThread: Nothing was saved under this name.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._reader.history()

    def checkpoint_at(self, seq: int) -> CheckpointRef:
        """Return the checkpoint at a position, without its state; the cost is the same everywhere.

        Raises:
            UnknownThread: Nothing was saved under this name.
            UnknownCheckpoint: There is no checkpoint at this position, or it was deleted.
            Erased: The thread was erased on purpose.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return checkpoint_at(self._state, seq)

    def release(self, ref: "str | CheckpointRef | None" = None) -> Release:
        """Return the state that a resume would execute from the newest checkpoint, or from `ref`.

        It decides nothing and writes nothing. The gate decides on this very value.

        Raises:
            UnknownThread, UnknownCheckpoint, Erased, Pruned: There is nothing to resume from.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._gate.release(ref)

    def read_result(self, result: PendingResult) -> Results:
        """Return the output of a task that is part of a release.

        Raises:
            DecodeError: The registry does not allow the saved data.
            Tampered: The data is not what was written.
        """
        return self._reader.read_pending(result)

    def ref_of(self, release: Release) -> CheckpointRef:
        """Return the checkpoint of a release, without its state.

        Raises:
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._reader.ref_of(release)

    @property
    def question(self) -> Any:
        """Return the question of the newest checkpoint or its tasks; read again on every call."""
        return self._reader.question()

    @property
    def signed_answer(self) -> SignedAnswer | None:
        """Return the answer that a person has signed and no run has taken; read on every call."""
        return self._answers.current()

    # ------------------------------------------------------------------ answering

    def answer(self, answer: Any, *, reason: str = "") -> SignedAnswer:
        """Answer the question of the thread, signed with the key of the identity in use.

        Nothing runs: the worker resumes with the answer, and the policy decides then. A signed
        answer proves who answered, and nobody else can change it.

        Args:
            answer: The answer, as JSON; for a framework, what `answer_to` makes.
            reason: A note for approvers; it is signed too.

        Raises:
            UsageError: The thread asks nothing, or the answer is null or too long.
            ValueNotAllowed: The answer is not JSON.
            Moved: Someone has answered already, or the thread has continued.
            NotTrusted: This identity is neither an operator nor an approver.
            UnknownThread, Erased: There is no such thread.
        """
        return self._answers.answer(answer, reason)

    def prepare_answer(self, answer: Any, *, person: str, reason: str = "") -> Statement:
        """Return the statement of an answer, for a person to sign with another key; writes nothing.

        Args:
            answer: As for `answer`.
            person: The person who will sign it.
            reason: As for `answer`.

        Raises:
            UsageError: As for `answer`, or the roster does not list the person.
            Moved: Someone has answered already.
        """
        return self._answers.prepare(answer, person, reason)

    def record_answer(
        self, statement: Statement, answer: Any, attestation: Attestation
    ) -> SignedAnswer:
        """Record an answer that a person has signed, made by `prepare_answer` of this identity.

        Raises:
            NotTrusted, Forged: The person has not signed exactly this, or may not answer.
            Moved: The thread has continued since, or someone has answered.
        """
        return self._answers.record(statement, answer, attestation)

    # ------------------------------------------------------------------ resuming

    def resume(
        self,
        *,
        world: World | Mapping[str, Any] | None,
        ref: "str | CheckpointRef | None" = None,
        answer: Any = None,
        actor: str | None = None,
        deliberate: str | None = None,
        idempotent: bool = False,
    ) -> Loaded:
        """Release a state for execution, if the gate allows it, and begin a session with it.

        Another process may take over the thread while the state is executed; `run` prevents that.

        Args:
            world: The current capabilities of the run; None: nothing is declared.
            ref: The checkpoint to resume from; without it the newest one.
            answer: The answer to a pending question, as JSON.
            actor: The person who answers or asks, for the record: a claim that satisfies no rule.
            deliberate: Why the resume is intended, if the policy asks for that; approvers see this
                reason too.
            idempotent: Whether the steps to run may be repeated. If so, no approval is needed only
                because an earlier run resumed with an answer and saved nothing since.

        Raises:
            NeedsApproval: Other people must approve first; `.request` is the request to them.
            ResumeRefused: The gate refuses; `.reasons` has every reason.
            Busy: A run is in progress, or another session is too recent to be taken over.
            NotOwner, NotTrusted: This identity may not resume the thread.
            UnknownThread, UnknownCheckpoint, Erased, Pruned: There is nothing to resume from.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        call = ResumeCall.of(
            world,
            ref=ref,
            answer=answer,
            actor=actor,
            deliberate=deliberate,
            idempotent=(lambda: True) if idempotent else None,
        )
        return self._gate.resume(call)

    @contextmanager
    def run(
        self,
        *,
        world: World | Mapping[str, Any] | None,
        ref: "str | CheckpointRef | None" = None,
        answer: Any = None,
        actor: str | None = None,
        deliberate: str | None = None,
        idempotent: bool = False,
    ) -> Iterator[Loaded]:
        """Resume, and hold the thread for the duration of the block, which is one run.

        During the block, every other resume of the thread is refused as `Busy`, in this process and
        in others. The session ends with the block, even if the block raises, or with the process.
        Args and errors are those of `resume`.
        """
        call = ResumeCall.of(
            world,
            ref=ref,
            answer=answer,
            actor=actor,
            deliberate=deliberate,
            idempotent=(lambda: True) if idempotent else None,
        )
        run = secrets.token_hex()
        loaded = self._gate.resume(call._replace(run=run))
        came_to_end = False
        try:
            yield loaded
            came_to_end = True
        except Exception:
            came_to_end = True  # the caller receives the error
            raise
        finally:
            self._gate.end(run, came_to_end=came_to_end)

    def judge(
        self,
        *,
        world: World | Mapping[str, Any] | None,
        ref: "str | CheckpointRef | None" = None,
        answer: Any = None,
        deliberate: str | None = None,
        identity: str | None = None,
    ) -> Decision:
        """Return the gate's decision about a resume, without writing or releasing anything.

        `.release` of the result is the state that it is about.

        Args:
            world: As for `resume`.
            ref: As for `resume`.
            answer: As for `resume`.
            deliberate: As for `resume`.
            identity: The identity that would resume, in its own process; its key is not needed.
                Without it, the identity that opened the store.

        Raises:
            UsageError: The roster has no such identity.
            UnknownThread, UnknownCheckpoint, Erased, Pruned: There is nothing to resume from.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        call = ResumeCall.of(world, ref=ref, answer=answer, actor=None, deliberate=deliberate)
        return self._gate.judge(call, identity)

    # ------------------------------------------------------------------ saving

    def save(
        self,
        state: Any,
        *,
        id: str | None = None,  # noqa: A002 (the name callers write)
        parent: "str | CheckpointRef | None" = None,
        metadata: Mapping[str, Any] | None = None,
        world: World | Mapping[str, Any] | None = None,
        question: Any = None,
    ) -> CheckpointRef:
        """Save a state as the newest checkpoint of the thread.

        When it returns, the checkpoint survives a crash and a power cut.

        Args:
            state: Any value that the store's registry allows.
            id: A name that the caller chooses. Saving the same content again under it returns the
                existing checkpoint; other content under it is refused.
            parent: The checkpoint that this one came from: lineage for people, not order.
            metadata: A JSON object stored with the state, shown in listings.
            world: The current capabilities of the run; without it, the world of the session.
            question: The question that the run waits for a person to answer, as JSON.

        Raises:
            ResumeRefused: A session would begin that is not an ordinary continuation, or the world
                is another than that of the session: call `resume`.
            EncodeError: The state contains a value that is not allowed; nothing was written.
            HeadMoved: Another process has written since this handle last read; load again.
            Superseded: A later session took the thread over; load again.
            Paused: An operator paused the thread; keep the state and save it later.
            NotOwner: The thread belongs to another identity.
            NotTrusted: The roster does not let this identity write here.
            IdReused: The id names another checkpoint of this thread.
            AnchorUnavailable: The anchor is down. `.ref` is the checkpoint if it was saved; it
                stands. None: nothing was saved.
            StorageUnavailable: It was not saved, or the outcome is unknown: repeat it under the
                same id.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        declared = None if world is None else World.of(world)
        draft = SaveDraft(state, id, parent, metadata, declared, question=question)
        (outcome,) = self._gate.commit([draft])
        if isinstance(outcome, SealpointError):
            raise outcome
        return cast("CheckpointRef", outcome)

    # ------------------------------------------------------------------ pruning and erasing

    def prune(
        self,
        *,
        keep_last: int | None = None,
        keep_since: datetime | None = None,
        keep: "Sequence[str | CheckpointRef]" = (),
        reason: str | None = None,
        dry_run: bool = False,
        compact: bool = True,
    ) -> Pruning:
        """Remove the states of older checkpoints and free their space.

        A checkpoint stays if any rule keeps it. The newest of a lane always stays, and so does the
        one last saved there, if it is another. A signed entry records the removal; ids, metadata
        and times stay in the history. A worker may continue to save at the same time.

        Args:
            keep_last: For each lane, keep this many of the newest checkpoints that still have their
                state.
            keep_since: Keep checkpoints saved at this time or later.
            keep: Keep these.
            reason: Why, for the record.
            dry_run: Show what would be removed, and change nothing.
            compact: Also shrink the files, which rewrites all remaining data.

        Raises:
            UsageError: No rule was given, or an invalid one.
            UnknownCheckpoint: `keep` names a checkpoint that does not exist.
            NotOwner: The thread belongs to another identity.
            ReadOnly: The store was opened for reading only, and this is not a dry run.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was; nothing was
                removed.
        """
        return self._retention.prune(
            last=keep_last,
            since=keep_since,
            ids=keep,
            reason=reason,
            dry_run=dry_run,
            compact=compact,
        )

    def erase(self, *, reason: str, dry_run: bool = False) -> Erasure:
        """Remove all content of the thread, past and present, from the store and its files.

        The identity needs the privacy role. A signed entry records the erasure; headers and
        signatures stay and reveal nothing about the content. A later save under the name begins a
        new generation.

        Args:
            reason: Why, for the record. It stays readable.
            dry_run: Show what would be removed, and change nothing.

        Raises:
            UsageError: There is no reason, or it is too long.
            NotTrusted: The identity does not have the privacy role here.
            ReadOnly: The store was opened for reading only, and this is not a dry run.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        return self._retention.erase(reason, dry_run=dry_run)

    # ------------------------------------------------------------------ operators and approvers

    @property
    def paused(self) -> bool:
        """Whether an operator has paused the thread; read again on every call."""
        return self.operations.is_paused()

    def standing(self) -> Standing:
        """Return the position of the thread, to show to a person before they act on it.

        `pause`, `unpause` and `handoff` take it as `expect`.

        Raises:
            UnknownThread, Erased: There is nothing to show.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self.operations.standing()

    def pause(
        self, reason: str, *, actor: str | None = None, expect: Standing | None = None
    ) -> int:
        """Pause the thread: until it is unpaused, saves and resumes are refused.

        A running worker learns it at its next save. Pausing twice records nothing more.

        Args:
            reason: Why.
            actor: The person of the roster for whom this is done, as the caller claims. It is
                recorded and shown, proves nothing and gives no right.
            expect: The result of `standing` when this was decided: nothing is written if the
                thread, generation, epoch, owner or pause have changed since. A new checkpoint is
                not a change.

        Returns:
            The position of the entry that records it.

        Raises:
            UsageError: There is no reason, or no person of that name.
            NotTrusted: The identity is not an operator of the namespace.
            UnknownThread, Erased: There is nothing to pause.
            Moved: The thread has changed since `expect`.
        """
        return self.operations.pause(reason, actor, expect)

    def unpause(
        self, reason: str, *, actor: str | None = None, expect: Standing | None = None
    ) -> int:
        """End the pause: sessions and requests are unchanged.

        Args:
            reason: Why.
            actor: As for `pause`.
            expect: As for `pause`, but a new basis of the thread is a change, too.

        Returns:
            The position of the entry that records it.

        Raises:
            UsageError: There is no reason, no person of that name, or the thread is not paused.
            NotTrusted: The identity is not an operator of the namespace.
            Moved: The thread has changed since `expect`.
        """
        return self.operations.unpause(reason, actor, expect)

    def handoff(
        self,
        *,
        to: str,
        reason: str,
        actor: str | None = None,
        expect: Standing | None = None,
    ) -> int:
        """Give the thread to another owner: an identity, or a pool of the roster.

        The current session ends: its worker's next save is refused. An owner may do that alone; an
        operator needs the approval of others, as for a resume.

        Args:
            to: The next owner.
            reason: Why.
            actor: As for `pause`; if an operator requests it, this person cannot approve it either.
            expect: As for `unpause`.

        Returns:
            The position of the entry that records it.

        Raises:
            NeedsApproval: An operator asks, and others must approve first.
            ResumeRefused: The policy does not let operators hand threads off.
            UsageError: There is no reason, or no writer or person of that name.
            NotOwner, NotTrusted: The identity is neither owner nor operator.
            Moved: The thread has changed since `expect`.
        """
        return self.operations.handoff(to, reason, actor, expect)

    def requests(self) -> tuple[Request, ...]:
        """Return every request about the thread's current state, oldest first, in any status.

        Raises:
            UnknownThread: Nothing was saved under this name.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self.operations.requests()

    def release_of(self, request: Request) -> Release:
        """Make the release that a request asks for again from the thread.

        Raises:
            UnknownCheckpoint: The thread has no such checkpoint, or has removed it.
        """
        return self.operations.release_of(request)

    def compare(self, request: Request) -> WorldDiff | None:
        """Return how a request changes the capabilities, compared with the checkpoint it names.

        Returns:
            The difference; None if one of the worlds is not declared, or that of the checkpoint
            cannot be compared.

        Raises:
            NotTrusted: The request names another release, or another world of its checkpoint, than
                the thread has.
            UnknownCheckpoint: The thread has no such checkpoint, or has removed it.
        """
        return self.operations.compare(request)


class AdapterThread:
    """The value of `store.thread(name).adapter`."""

    def __init__(
        self, state: ThreadState, reader: ThreadReader, gate: Gate, retention: ThreadRetention
    ) -> None:
        self._state = state
        self._reader = reader
        self._gate = gate
        self._retention = retention

    @property
    def name(self) -> str:
        """Return the application's name for the thread."""
        return self._state.name

    @property
    def identity(self) -> str:
        """Return the identity that opened the store; empty if the store is read-only."""
        return self._gate.identity

    @property
    def owned(self) -> bool:
        """Whether that identity owns the thread, directly or by its pool, as of the last read."""
        return self._gate.owned

    def is_by_colleague(self, writer: str) -> bool:
        """Whether this identity owns the thread and works with that writer."""
        return self.owned and self._gate.is_colleague(writer)

    def begin(
        self,
        *,
        world: World | Mapping[str, Any] | None,
        ref: "str | CheckpointRef | None" = None,
        answer: Any = None,
        actor: str | None = None,
        deliberate: str | None = None,
        lanes: Mapping[str, str] | None = None,
        offer: Callable[[], Any] | None = None,
        token: str | None = None,
        would_run: Callable[[], bool] | None = None,
        idempotent: Callable[[], bool] | None = None,
        edits: bool = False,
        takes: str | int | None = None,
    ) -> int | None:
        """Begin a session as `Thread.resume` does, for a caller that reads the state by `snapshot`.

        Errors are those of `Thread.resume`, except that an empty thread is not an error: its first
        save begins it.

        Args:
            world: As for `Thread.resume`.
            ref: As for `Thread.resume`.
            answer: As for `Thread.resume`.
            actor: As for `Thread.resume`.
            deliberate: As for `Thread.resume`.
            lanes: The checkpoints of other lanes to resume from, by lane, if they are not the
                newest there: the gate judges them like an older checkpoint of the thread.
            offer: Returns the run's input that is not an answer, such as the input of a new turn.
                If a question is pending or people must approve, the gate calls it and binds the
                input like an answer.
            token: The token that the run shows with each write, in `RunPosition`; no other run has
                it. With a token, the run holds the thread until `end`: others are refused as
                `Busy`.
            would_run: Whether anything would run at all. The gate calls it before it asks people,
                who have nothing to approve if nothing runs.
            idempotent: Whether the steps to run may be repeated. The gate calls it if an earlier
                run resumed with an answer and saved nothing since.
            edits: Whether the call only edits the state: nothing runs afterwards.
            takes: The id of the signed answer or approved request that is the reason for the run,
                or the session of an interrupted one. `Moved` is raised if another run took it.

        Returns:
            The session: the position of the entry that records the decision. None if there was
            nothing to decide about.
        """
        call = ResumeCall.of(
            world,
            ref=ref,
            answer=answer,
            actor=actor,
            deliberate=deliberate,
            lanes=lanes,
            offer=offer,
            would_run=would_run,
            idempotent=idempotent,
        )
        return self._gate.begin(call._replace(run=token, edits=edits, takes=takes))

    def end(self, token: str, *, came_to_end: bool = True, ran: bool = True) -> None:
        """Record that a run from `begin` has stopped at a question, finished or failed.

        Args:
            token: The token that the run showed with each write. A token that has ended before is
                not an error.
            came_to_end: False: the run was interrupted, so that its last effects are unknown.
            ran: False: the framework refused the run before anything of it ran.
        """
        self._gate.end(token, came_to_end=came_to_end, ran=ran)

    def is_held(self) -> bool:
        """Whether a living run holds the thread, in this process or another."""
        return self._gate.is_held()

    def interrupted(self) -> Interrupted | None:
        """Return the run that was given an answer and was interrupted; None if there is none."""
        return self._gate.interrupted()

    def snapshot(
        self,
        lane: str = "",
        id: str | None = None,  # noqa: A002
        *,
        running: bool = False,
        session: int | None = None,
    ) -> Snapshot | None:
        """Return the newest checkpoint of a lane, or the one of an id, with everything added to it.

        Unlike `Thread.load` it does not let a handle that lost the thread continue.

        Args:
            lane: The lane; the main lane is the empty name.
            id: The checkpoint; without it the newest one.
            running: Whether a run reads the state that it is going to execute.
            session: The session of that run, as `begin` returned it; None: that of this handle.

        Returns:
            None if there is no such checkpoint, or it was deleted or pruned.

        Raises:
            Superseded: A run reads, and another run has taken over the thread since.
            DecodeError: The registry does not allow the saved data.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was;
                nothing was decoded.
        """
        return self._gate.snapshot(lane, id, running=running, session=session)

    def may_go_on(self, token: str) -> bool:
        """Whether a run from `begin` may take its next step; read again on every call.

        Args:
            token: The token that the run shows with each write.

        Returns:
            False while an operator pauses the thread.

        Raises:
            Superseded: Another run has taken over the thread since.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._gate.may_go_on(token)

    def snapshots(self, lane: str | None = None, *, by_id: bool = False) -> Iterator[CheckpointRef]:
        """Yield the checkpoints of a lane, or of all, that still have their state, newest first.

        Args:
            lane: The lane; None: all of them.
            by_id: Whether the highest id comes first, regardless of the order of saves.

        Raises:
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._reader.snapshots(lane, by_id=by_id)

    def commit(self, drafts: Sequence[CommitDraft]) -> list[Outcome]:
        """Write several drafts in order, as one durable step where possible.

        A draft that declares no world has the world of the previous draft, or of the session.

        Returns:
            For each draft its position, or the error that prevented the write; the errors are those
            of `Thread.save`. A failed draft does not prevent the others.
        """
        return self._gate.commit(drafts)

    def delete(
        self, names: "Iterable[Key] | None" = None, *, reason: str | None = None
    ) -> int | None:
        """Delete checkpoints for the application, with all results that were added to them.

        They are no longer shown, and their content is removed unless other data needs it. A signed
        entry records the deletion; headers and bodies stay for the audit, unlike after
        `Thread.erase`. A database file may contain remnants until `gc` or `prune` compacts it. If a
        newer checkpoint was deleted, the remaining one is an older checkpoint, and the gate judges
        it as such.

        Args:
            names: The lane and id of each; None: all that the thread holds.
            reason: Why, for the record.

        Returns:
            The position of the entry that records it; None: there was nothing to delete.

        Raises:
            NotOwner: The thread belongs to another identity.
            UnknownThread: Nothing was saved under this name.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        return self._retention.delete(names, reason)
