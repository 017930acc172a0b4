# SPDX-License-Identifier: Apache-2.0
"""A thread of an open store: what applications hold, and what adapters of frameworks hold.

Every method hands on to one of its parts: the reader reads (`store/_reader.py`), the gate decides
and lets the writer write (`_gate.py`, `store/_writer.py`), retention gives up what is old
(`store/_retention.py`), and operations are what people do to a thread (`_operations.py`). They
share one `ThreadState`. Calls from several OS threads are taken one after the other.

`AdapterThread` is the same thread as an adapter uses it: several lanes, results, runs that show a
token. An adapter translates what its framework saves into drafts, and has each run decided about
before it begins. It reads by `snapshot`, which never lets a handle that lost the thread go on; it
writes by `commit`, where every draft says of which run it is. The gate refuses what a run writes
that was never decided about, was refused, or was overtaken. What adapters share beside this is in
`sealpoint.adapters.face`.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, cast

from sealpoint.errors import SealpointError
from sealpoint.gate._context import GateContext
from sealpoint.gate._decision import Decision
from sealpoint.gate._gate import Gate
from sealpoint.gate._operations import Operations
from sealpoint.gate._policy import Policies
from sealpoint.gate._requests import Request
from sealpoint.gate._resume_call import ResumeCall
from sealpoint.gate._rollout_book import RolloutBook
from sealpoint.gate._standing import Standing
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
    """A thread of an open store: its checkpoints, and the gate that every resume goes through."""

    def __init__(self, core: Core, name: str, policies: Policies, book: RolloutBook) -> None:
        self._state = ThreadState(core, name)
        self._reader = ThreadReader(self._state)
        self._retention = ThreadRetention(self._state)
        context = GateContext(self._state, policies, book)
        self._gate = Gate(self._state, self._reader, context)
        self.operations = Operations(self._state, self._reader, context)
        """Answers to requests, as `Store.approve` and its like record them."""
        self.adapter = AdapterThread(self._state, self._reader, self._gate, self._retention)
        """What the adapter of a framework does with the thread."""

    @property
    def name(self) -> str:
        """What the application calls the thread."""
        return self._state.name

    @property
    def id(self) -> str:
        """The thread's id in hexadecimal; empty while nobody has looked or saved."""
        return self._state.chain.thread.hex()

    def __repr__(self) -> str:
        return f"<Thread {self.name!r}>"

    # ------------------------------------------------------------------ reading

    def load(self, ref: "str | CheckpointRef | None" = None) -> Loaded:
        """Load the newest checkpoint, or the one that `ref` names.

        This is for reading. The handle takes note of what is newest, so that it may save again
        after `HeadMoved` or `Superseded`.

        Raises:
            UnknownThread: Nobody has saved anything under this name.
            UnknownCheckpoint: The thread has no such checkpoint.
            DecodeError: The registry does not allow what was saved.
            Erased: It was erased on purpose.
            Pruned: Its state was given up on purpose.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was;
                nothing was decoded.
        """
        return self._reader.load(ref)

    def history(self) -> Iterator[CheckpointRef]:
        """The checkpoints, newest first. Every link from the head to genesis is walked.

        Raises:
            UnknownThread: Nobody has saved anything under this name.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._reader.history()

    def checkpoint_at(self, seq: int) -> CheckpointRef:
        """The checkpoint at a position, without its state; it costs the same wherever that lies.

        Raises:
            UnknownThread: Nobody has saved anything under this name.
            UnknownCheckpoint: There is no checkpoint at this position, or it was deleted.
            Erased: It was erased on purpose.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return checkpoint_at(self._state, seq)

    def release(self, ref: "str | CheckpointRef | None" = None) -> Release:
        """What would be executed if the thread went on from the newest checkpoint, or from `ref`.

        It decides nothing and writes nothing. The gate decides on this very value.

        Raises:
            UnknownThread, UnknownCheckpoint, Erased, Pruned: There is nothing to go on from.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._gate.release(ref)

    def read_result(self, result: PendingResult) -> Results:
        """What a task wrote that is part of a release.

        Raises:
            DecodeError: The registry does not allow what was saved.
            Tampered: It is not what was written.
        """
        return self._reader.read_pending(result)

    def ref_of(self, release: Release) -> CheckpointRef:
        """The checkpoint of a release, without its state.

        Raises:
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._reader.ref_of(release)

    @property
    def question(self) -> Any:
        """What the newest checkpoint, or a task that goes on from it, waits for; looked up anew."""
        return self._reader.question()

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

        Another process may take the thread over while what was released is executed; `run` keeps it
        from that.

        Args:
            world: What the run is able to do now; None: nothing is declared.
            ref: The checkpoint to go on from; without it the newest one.
            answer: The answer to a pending question, as JSON.
            actor: Who answers or asks, for the record: a claim that satisfies no rule.
            deliberate: Why this is meant, where the policy asks for that; also the reason that
                approvers are shown.
            idempotent: Whether what is going to run may be done again: then it is not asked where
                somebody went on with an answer and saved nothing since.

        Raises:
            NeedsApproval: Other people have to approve first; `.request` is what they are asked.
            ResumeRefused: The gate says no; `.reasons` has every reason.
            Busy: A run is under way, or another session is too young to be taken over.
            NotOwner, NotTrusted: This identity may not go on with the thread.
            UnknownThread, UnknownCheckpoint, Erased, Pruned: There is nothing to go on from.
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
        """Resume, and have the thread for as long as the block takes: it is one run.

        Meanwhile everybody else who goes on with the thread is refused as `Busy`, in this process
        and in others. The session ends with the block, however that ends; it ends with the process,
        too. Args and errors are those of `resume`.
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
            came_to_end = True  # whoever called is told
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
        """What the gate would say to a resume, without writing or releasing anything.

        `.release` of the result is what it is about.

        Args:
            world: As for `resume`.
            ref: As for `resume`.
            answer: As for `resume`.
            deliberate: As for `resume`.
            identity: Who would resume, in a process of its own; its key is not needed. Without
                it, the identity that the store was opened with.

        Raises:
            UsageError: The roster has no such identity.
            UnknownThread, UnknownCheckpoint, Erased, Pruned: There is nothing to go on from.
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
            id: A name of the caller's own. Saving the same again under it returns the checkpoint
                that is there; anything else under it is refused.
            parent: The checkpoint that this one came from: lineage for people, not order.
            metadata: A JSON object beside the state, shown in listings.
            world: What the run is able to do; without it, what the session was resumed with.
            question: What the run waits for somebody to answer, as JSON.

        Raises:
            ResumeRefused: A session would begin that is no ordinary continuation, or the world
                has become wider than that of the session: call `resume`.
            EncodeError: The state holds something that is not allowed; nothing was written.
            HeadMoved: Somebody else has written since this handle looked; load again.
            Superseded: A later session took the thread over; load again.
            Paused: An operator paused the thread; keep the state and save it later.
            NotOwner: The thread belongs to another identity.
            NotTrusted: The roster does not let this identity write here.
            IdReused: The id names another checkpoint of this thread.
            AnchorUnavailable: The anchor is down. `.ref` is the checkpoint if it was saved; it
                stands. None: nothing was saved.
            StorageUnavailable: It was not saved, or nobody can tell: repeat it under the same id.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        declared = None if world is None else World.of(world)
        draft = SaveDraft(state, id, parent, metadata, declared, question=question)
        (outcome,) = self._gate.commit([draft])
        if isinstance(outcome, SealpointError):
            raise outcome
        return cast("CheckpointRef", outcome)

    # ------------------------------------------------------------------ giving up

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
        """Give up the states of older checkpoints and free their space.

        A checkpoint stays if any rule keeps it; the newest of a lane, and the one that was saved
        there last if that is another, always do. What goes is recorded in a signed entry; ids,
        metadata and times stay in the history. A worker may go on saving meanwhile.

        Args:
            keep_last: Keep so many of the newest checkpoints that still have their state, of each
                lane.
            keep_since: Keep what was saved at this time or later.
            keep: Keep these.
            reason: Why, for the record.
            dry_run: Say what would go, and change nothing.
            compact: Also make the files smaller, which writes once more whatever stays.

        Raises:
            UsageError: No rule was given, or one that makes no sense.
            UnknownCheckpoint: `keep` names one that is not there.
            NotOwner: The thread belongs to another identity.
            ReadOnly: The store was opened for reading only, and this is no dry run.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was; nothing was
                given up.
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
        """Remove all that the thread ever held from the store and its files.

        The identity needs the privacy role. A signed entry records the erasure; headers and
        signatures stay and say nothing about what was there. A later save under the name begins a
        new generation.

        Args:
            reason: Why, for the record. It stays readable.
            dry_run: Say what would go, and change nothing.

        Raises:
            UsageError: There is no reason, or it is too long.
            NotTrusted: The identity does not have the privacy role here.
            ReadOnly: The store was opened for reading only, and this is no dry run.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        return self._retention.erase(reason, dry_run=dry_run)

    # ------------------------------------------------------------------ operators and approvers

    @property
    def paused(self) -> bool:
        """Whether an operator has stopped the thread; looked up anew each time."""
        return self.operations.is_paused()

    def standing(self) -> Standing:
        """Where the thread stands, for somebody who is shown it before they act on it.

        `pause`, `unpause` and `handoff` take it as `expect`.

        Raises:
            UnknownThread, Erased: There is nothing to show.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self.operations.standing()

    def pause(
        self, reason: str, *, actor: str | None = None, expect: Standing | None = None
    ) -> int:
        """Stop the thread: until it is unpaused nothing is saved and nobody resumes.

        A worker that runs learns it at its next save. Pausing twice records nothing more.

        Args:
            reason: Why.
            actor: The person of the roster for whom this is done, as the caller claims. It is
                recorded and shown, proves nothing and gives no right.
            expect: What `standing` gave when this was decided: nothing is written if thread,
                generation, epoch, owner or pause are others by now. A checkpoint more is no
                change.

        Returns:
            The position of the entry that records it.

        Raises:
            UsageError: There is no reason, or no person of that name.
            NotTrusted: The identity is no operator of the namespace.
            UnknownThread, Erased: There is nothing to pause.
            Moved: The thread is not any more as `expect` says.
        """
        return self.operations.pause(reason, actor, expect)

    def unpause(
        self, reason: str, *, actor: str | None = None, expect: Standing | None = None
    ) -> int:
        """Let the thread go on: sessions and requests are as they were.

        Args:
            reason: Why.
            actor: As for `pause`.
            expect: As for `pause`; that the thread has gone on is a change, too.

        Returns:
            The position of the entry that records it.

        Raises:
            UsageError: There is no reason, no person of that name, or the thread is not paused.
            NotTrusted: The identity is no operator of the namespace.
            Moved: The thread is not any more as `expect` says.
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

        The session that is under way ends: its worker's next save is refused. An owner may do
        that by itself; an operator needs the approval of others, as for a resume.

        Args:
            to: The next owner.
            reason: Why.
            actor: As for `pause`; of an operator's request, also a person who cannot approve it.
            expect: As for `unpause`.

        Returns:
            The position of the entry that records it.

        Raises:
            NeedsApproval: An operator asks, and others have to approve first.
            ResumeRefused: The policy does not let operators hand threads off.
            UsageError: There is no reason, or no writer or person of that name.
            NotOwner, NotTrusted: The identity is neither owner nor operator.
            Moved: The thread is not any more as `expect` says.
        """
        return self.operations.handoff(to, reason, actor, expect)

    def requests(self) -> tuple[Request, ...]:
        """Every request that is about the thread as it is, oldest first, whatever became of it.

        Raises:
            UnknownThread: Nobody has saved anything under this name.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self.operations.requests()

    def release_of(self, request: Request) -> Release:
        """What a request asks to be released, made anew from the thread.

        Raises:
            UnknownCheckpoint: The thread has no such checkpoint, or has given it up.
        """
        return self.operations.release_of(request)

    def compare(self, request: Request) -> WorldDiff | None:
        """What the run could do after a request, compared with the checkpoint that it names.

        Returns:
            The difference; None if one of the worlds is not declared, or that of the checkpoint
            cannot be compared.

        Raises:
            NotTrusted: The request says another release, or another world of its checkpoint, than
                there is on the thread.
            UnknownCheckpoint: The thread has no such checkpoint, or has given it up.
        """
        return self.operations.compare(request)


class AdapterThread:
    """What `store.thread(name).adapter` is."""

    def __init__(
        self, state: ThreadState, reader: ThreadReader, gate: Gate, retention: ThreadRetention
    ) -> None:
        self._state = state
        self._reader = reader
        self._gate = gate
        self._retention = retention

    @property
    def name(self) -> str:
        """What the application calls the thread."""
        return self._state.name

    @property
    def identity(self) -> str:
        """The identity that the store was opened with; empty if it was for reading only."""
        return self._gate.identity

    @property
    def owned(self) -> bool:
        """Whether that identity owns the thread, itself or by its pool, as it was last read."""
        return self._gate.owned

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
    ) -> int | None:
        """Begin a session as `Thread.resume` does, for a caller that reads the state by `snapshot`.

        Errors are those of `Thread.resume`, except that a thread which holds nothing yet is no
        error: its first save begins it.

        Args:
            world: As for `Thread.resume`.
            ref: As for `Thread.resume`.
            answer: As for `Thread.resume`.
            actor: As for `Thread.resume`.
            deliberate: As for `Thread.resume`.
            lanes: The checkpoints of other lanes that the run goes on from, by lane, where they are
                not the newest there: that is judged like an older checkpoint of the thread.
            offer: What the run brings along that is no answer, such as the input of a new turn. It
                is asked for, and bound like an answer, where a question is pending or people have
                to approve.
            token: What the run shows with each write, in `RunPosition`; no other run has it. With
                one, the run has the thread until `end`: others are refused as `Busy`.
            would_run: Whether anything would run at all. It is asked before people are: they have
                nothing to say where nothing runs.
            idempotent: Whether what would run may be done again. It is asked where somebody went on
                with an answer and saved nothing since.
            edits: Whether the call only edits the state: nothing runs, whatever becomes of it.

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
        return self._gate.begin(call._replace(run=token, edits=edits))

    def end(self, token: str, *, came_to_end: bool = True, ran: bool = True) -> None:
        """A run that `begin` let in has stopped at a question, finished or failed.

        Args:
            token: What the run showed with each write. One that has ended before is no error.
            came_to_end: False: it was broken off, so that nobody knows what it did last.
            ran: False: the framework refused it before anything of it ran.
        """
        self._gate.end(token, came_to_end=came_to_end, ran=ran)

    def snapshot(
        self,
        lane: str = "",
        id: str | None = None,  # noqa: A002
        *,
        running: bool = False,
        session: int | None = None,
    ) -> Snapshot | None:
        """The newest checkpoint of a lane, or the one of an id, with what was added to it.

        Unlike `Thread.load` it does not let a handle that lost the thread go on.

        Args:
            lane: Which lane; the main one is empty.
            id: Which checkpoint of it; without it the newest one.
            running: Whether a run reads what it is going to execute.
            session: The session of that run, as `begin` gave it; None: that of this handle.

        Returns:
            None if there is none, or it was deleted or given up.

        Raises:
            Superseded: A run reads, and somebody else goes on with the thread by now.
            DecodeError: The registry does not allow what was saved.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was;
                nothing was decoded.
        """
        return self._gate.snapshot(lane, id, running=running, session=session)

    def may_go_on(self, token: str) -> bool:
        """Whether a run that `begin` let in may take its next step; looked up anew each time.

        Args:
            token: What the run shows with each write.

        Returns:
            False while an operator pauses the thread.

        Raises:
            Superseded: Another run goes on with the thread by now.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._gate.may_go_on(token)

    def snapshots(self, lane: str | None = None, *, by_id: bool = False) -> Iterator[CheckpointRef]:
        """The checkpoints of a lane, or of all, that still have their state, newest first.

        Args:
            lane: Which lane; None: all of them.
            by_id: Whether the highest id comes first, in whichever order they were saved.

        Raises:
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._reader.snapshots(lane, by_id=by_id)

    def commit(self, drafts: Sequence[CommitDraft]) -> list[Outcome]:
        """Write several things in their order, as one durable step where that can be.

        What declares no world has that of the one before it, or of the session.

        Returns:
            For each of them where it lies, or why it was not written; the errors are those of
            `Thread.save`. That one was not written keeps no other from being so.
        """
        return self._gate.commit(drafts)

    def delete(
        self, names: "Iterable[Key] | None" = None, *, reason: str | None = None
    ) -> int | None:
        """Delete checkpoints for the application, with all results that were added to them.

        They are shown no more, and what they held is taken away as far as nothing else needs it.
        A signed entry records it; headers and bodies stay for the audit, unlike after
        `Thread.erase`. A database file may show remnants until somebody compacts it, as `gc` and
        `prune` do. What is left is an older checkpoint where a newer one was deleted, and is judged
        as one.

        Args:
            names: Lane and id of each; None: all that the thread holds.
            reason: Why, for the record.

        Returns:
            The position of the entry that records it; None: there was nothing to delete.

        Raises:
            NotOwner: The thread belongs to another identity.
            UnknownThread: Nobody has saved anything under this name.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        return self._retention.delete(names, reason)
