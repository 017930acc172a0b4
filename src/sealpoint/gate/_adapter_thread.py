# SPDX-License-Identifier: Apache-2.0
"""A thread as the adapter of a framework uses it: several lanes, results, runs that show a token.

An adapter translates what its framework saves into drafts, and has each run decided about before it
begins. It reads by `snapshot`, which never lets a handle that lost the thread go on; it writes by
`commit`, where every draft says of which run it is. The gate refuses what a run writes that was
never decided about, was refused, or was overtaken. What adapters share beside this is in
`sealpoint.adapters.face`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sealpoint.gate._gate import Gate
from sealpoint.gate._resume_call import ResumeCall
from sealpoint.store import (
    CheckpointRef,
    CommitDraft,
    Key,
    Outcome,
    Snapshot,
    ThreadReader,
    ThreadRetention,
    ThreadState,
)
from sealpoint.world import World


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
            token: What the run shows with each write, in `RunPosition`; no other run has it.
            would_run: Whether anything would run at all. It is asked before people are: they have
                nothing to say where nothing runs.

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
        )
        return self._gate.begin(call, token)

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
