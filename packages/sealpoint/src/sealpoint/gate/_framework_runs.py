# SPDX-License-Identifier: Apache-2.0
"""A run of a framework, tracked by its writes: a write that continues it belongs to it.

A write names the checkpoint that it continues from and, if the framework knows it, its run. A run
consists of its starting checkpoint, the checkpoints that it has written since, and its current
position. A write that names any other checkpoint of the thread belongs to another run, or to one
that was overtaken; the gate judges that.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sealpoint.errors import SealpointError, Superseded, UnknownCheckpoint
from sealpoint.store import (
    CheckpointPlace,
    CommitDraft,
    Key,
    Outcome,
    ResultsDraft,
    RunPosition,
    ThreadState,
)
from sealpoint.world import World

_ENDED_MAX = 64


class Run:
    """One run of a framework on a thread.

    Args:
        position: The position that its first write states, or that was judged before.
        base: The checkpoint of the main lane that it continues from; None: the thread was empty.
        lanes: The checkpoints of other lanes that it continues from although they are not the
            newest.
        world: The capabilities that it declares.
        is_older: Whether the base is not the newest checkpoint.
        actor: The actor who resumes, as the caller claims.
        early: Results of its first checkpoint that arrived before it, in the previous run.
    """

    def __init__(
        self,
        position: RunPosition,
        base: str | None = None,
        lanes: Mapping[str, str] | None = None,
        world: World | None = None,
        *,
        is_older: bool = False,
        actor: str | None = None,
        early: Sequence[ResultsDraft] = (),
    ) -> None:
        self.position = position
        self.base = base
        self.lanes = dict(lanes or {})
        self.session: int | None = None
        """The session that records it; None: nothing has been written yet."""
        self.is_overtaken = is_older and not (position.begins or position.deliberate)
        """Whether it only continues, from a checkpoint that is no longer the newest."""
        self.is_older = is_older or bool(self.lanes)
        """Whether it continues from older checkpoints; those of other lanes come with them."""
        self.actor = actor
        self._early = list(early)
        self._world = world
        self._stands_on = base
        self._written: set[Key] = set()
        self._bases: set[Key] = set() if base is None else {Key("", base)}
        """The checkpoints, in all lanes, that it has continued from and has not written itself."""
        self._branches: set[str] = set()
        """Checkpoints of the main lane that code of its own tasks has written."""
        self._awaited: dict[Key, list[ResultsDraft]] = {}
        """Checkpoints that were named but are not written yet, with their early results."""
        self._asks = False
        """Whether it waits for an answer: a later save means that the answer has arrived."""

    def includes(self, draft: CommitDraft, state: ThreadState) -> bool:
        """Whether a write continues from the current position of this run."""
        position = draft.position
        if position is None:
            return True
        if position.run is not self.position.run:
            return False
        if position.inside and not draft.lane:
            return self._has_met(position.checkpoint, state)
        if self._is_another(draft, position):
            return False
        if not self._stands_where(position.checkpoint, draft, state):
            return False
        return self.is_older or not draft.lane or self._goes_on_in_lane(draft, state)

    def _is_another(self, draft: CommitDraft, position: RunPosition) -> bool:
        """Whether a write cannot belong to this run, at any position."""
        if position.begins or draft.declared != self._world:
            return True
        if self.position.edits and not position.edits:
            return True
        if not draft.lane and position.lanes and position.lanes != self.position.lanes:
            return True
        # A save after a question means that the answer has arrived.
        saves = _saves(draft) and draft.key not in self._awaited
        return self._asks and (position.answered or saves)

    def take_early(self) -> list[ResultsDraft]:
        """Return the results that arrived before the run had begun, once."""
        found, self._early = self._early, []
        return found

    def early_results(self, draft: CommitDraft) -> list[ResultsDraft]:
        """Return the results that arrived before the first checkpoint of the new run."""
        run = None if draft.position is None else draft.position.run
        if run is not None and run is self.position.run:
            return [each for early in self._awaited.values() for each in early]
        return [] if draft.key is None else self._awaited.get(draft.key, [])

    def note(self, draft: CommitDraft) -> None:
        """Record a draft of this run that is about to be written."""
        self._asks = self._asks or draft.question is not None
        if draft.lane and draft.position is not None and draft.position.checkpoint is not None:
            self._await(Key("", draft.position.checkpoint), [])
        if isinstance(draft, ResultsDraft):
            self._await(draft.key, [draft])
            return
        if draft.key is None:
            return
        self._written.add(draft.key)
        self._awaited.pop(draft.key, None)
        if draft.lane:
            if draft.parent is not None:
                self._bases.add(Key(draft.lane, draft.parent))
            return
        if draft.position is not None and draft.position.inside:
            self._branches.add(draft.key.id)
        else:
            self._stands_on = draft.key.id

    def _await(self, key: Key, early: list[ResultsDraft]) -> None:
        if key not in self._written and key != Key("", self._stands_on or ""):
            self._awaited.setdefault(key, []).extend(early)

    def _has_met(self, name: str | None, state: ThreadState) -> bool:
        """Whether the run continued from a checkpoint of the main lane, or writes it."""
        if name in (None, self.base, self._stands_on):
            return True
        return Key("", name or "") in self._written or self._is_new(name, state)

    def _stands_where(self, name: str | None, draft: CommitDraft, state: ThreadState) -> bool:
        """Whether a write names the run's current checkpoint of the main lane."""
        if name is None or name == self._stands_on or name in self._branches:
            return True
        if (draft.lane or isinstance(draft, ResultsDraft)) and self._stood_on(Key("", name)):
            return True
        return self._is_new(name, state)

    def _is_new(self, name: str | None, state: ThreadState) -> bool:
        return _place_of("", name, self.position, state) is None

    def _goes_on_in_lane(self, draft: CommitDraft, state: ThreadState) -> bool:
        """Whether a write in another lane continues from the newest checkpoint there."""
        if isinstance(draft, ResultsDraft) and self._stood_on(draft.key):
            return True
        return older_in_lane(draft, state) is None

    def _stood_on(self, key: Key) -> bool:
        """Whether results of a checkpoint may have been in transit when the run continued."""
        known = self.position.run is not None  # otherwise any other run may have written them
        return key in self._written or (known and key in self._bases)


class EndedRuns:
    """Runs that were refused or overtaken; their later writes raise the same error."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, SealpointError]] = {}
        """The object that identified each run; the reference keeps its id from being reused."""

    def add(self, run: Run, error: SealpointError, going_on: Run | None) -> None:
        """Refuse later writes of a run, unless the same run continues."""
        known = run.position.run
        goes_on = going_on is not None and going_on is not run and going_on.position.run is known
        if known is not None and not goes_on:
            # A copy, because the raised error references the data that was being written.
            self._known.setdefault(id(known), (known, copy.copy(error)))
            if len(self._known) > _ENDED_MAX:
                del self._known[next(iter(self._known))]

    def forget(self, position: RunPosition) -> None:
        """Forget an ended run, because a new run begins with the same identifying object."""
        self._known.pop(id(position.run), None)

    def refuse(self, position: RunPosition) -> None:
        """Refuse a write of a run that has ended.

        Raises:
            SealpointError: The error that ended the run.
        """
        if not position.begins and (ended := self._known.get(id(position.run))) is not None:
            raise copy.copy(ended[1])


class _Displaced(NamedTuple):
    """The state of a handle before a run that has not written anything yet."""

    run: Run | None
    session: int | None
    world: World | None


class RunTracker:
    """Tracks which run of a framework owns the session of a handle, and which runs have ended."""

    def __init__(self, state: ThreadState) -> None:
        self.current: Run | None = None
        """The run of this handle's session, if a framework started it."""
        self._state = state
        self._ended = EndedRuns()
        self._displaced: _Displaced | None = None

    def is_continued_by(self, draft: CommitDraft) -> bool:
        """Whether a write continues the run of this handle's session.

        Raises:
            Superseded: It does, or its run was judged before, but another run has taken over since.
            SealpointError: Its run was refused.
        """
        position, run = draft.position, self.current
        if position is None:
            return True
        self._ended.refuse(position)
        if position.token is None and not self._is_undecided_run_of(draft):
            return False
        lost = run is not None and run.session not in (None, self._state.session)
        if run is not None and not lost and run.position.token == position.token:
            return True
        error = self.overtaken(None)
        if run is not None and lost:
            self._ended.add(run, error, None)
            self.current = None
        raise error

    def _is_undecided_run_of(self, draft: CommitDraft) -> bool:
        """Whether the current run was not judged before it began, and includes the draft."""
        run = self.current
        return run is not None and run.position.token is None and run.includes(draft, self._state)

    def begin(self, draft: CommitDraft, world: World | None) -> None:
        """Begin another run with a draft that is about to be written.

        Args:
            draft: The draft.
            world: The world of the handle's session until now.

        Raises:
            Superseded: It only continues, from a checkpoint that is no longer the newest.
            UnknownCheckpoint: It names a checkpoint that does not exist.
        """
        state, position = self._state, draft.position or RunPosition()
        self._ended.refuse(position)  # the previous write may have ended it
        if state.chain.head is None:
            state.find()
        newest = state.checkpoints.newest("")
        place = _place_of("", position.checkpoint, position, state)
        is_older = place is not None and place != newest
        if _saves(draft):
            position = self._position_of_save(position, is_there=place is not None)
        elif is_older and not (position.begins or position.answered):
            raise self.overtaken(position.checkpoint)
        if place is not None:
            state.mark_seen()  # it continues from the state that it was shown
        self._displaced = _Displaced(self.current, state.session, world)
        self._ended.forget(position)
        base = place or newest
        self.current = Run(
            position,
            None if base is None else base.key.id,
            _older_lanes_of(draft, position, state),
            draft.declared,
            is_older=is_older,
            early=[] if self.current is None else self.current.early_results(draft),
        )
        state.session = None

    def _position_of_save(self, position: RunPosition, *, is_there: bool) -> RunPosition:
        if position.run is None:
            return position
        if position.checkpoint is not None and not is_there:
            raise UnknownCheckpoint(
                f"thread {self._state.name!r}: there is no checkpoint {position.checkpoint!r} to "
                "resume from"
            )
        # The run saves everything at its end, so nobody can tell whether it received an answer.
        return position if position.begins else replace(position, answered=True)

    def settle(self, run: Run, outcome: Outcome) -> _Displaced | None:
        """Record the outcome of the first write of a group of the current run.

        Returns:
            The state that the handle returns to, if the run was refused; otherwise None.
        """
        if run.session is None:
            run.session = self._state.session
        displaced, self._displaced = self._displaced, None
        if displaced is None:
            return None
        if run.session is None and isinstance(outcome, SealpointError):
            # A refused run replaces no other run, and its later writes are refused as well.
            self._ended.add(run, outcome, None)
            self.current = displaced.run
            return displaced
        if displaced.run is not None:
            self._ended.add(displaced.run, self.overtaken(None), run)
        return None

    def overtaken(self, name: str | None) -> Superseded:
        """Return the error for a run that continues from a checkpoint that is not the newest."""
        stands = "" if name is None else f", and this one from checkpoint {name!r}"
        return Superseded(f"thread {self._state.name!r}: another run has resumed it{stands}")


def _place_of(
    lane: str, name: str | None, position: RunPosition, state: ThreadState
) -> CheckpointPlace | None:
    """Return the place of a checkpoint that a run names; None if it names none, or a new one."""
    return None if name is None else state.checkpoints.find(Key(lane, name), rises=position.rising)


def _saves(draft: CommitDraft) -> bool:
    """Whether the draft is a checkpoint of the main lane."""
    return not draft.lane and not isinstance(draft, ResultsDraft)


def _older_lanes_of(
    draft: CommitDraft, position: RunPosition, state: ThreadState
) -> dict[str, str]:
    """Return the older checkpoints of other lanes that a run begins from."""
    if not draft.lane:
        return named_older(position, state)
    older = older_in_lane(draft, state)
    return {} if older is None else {draft.lane: older}


def older_lanes(lanes: Mapping[str, str]) -> tuple[str, ...]:
    """Describe checkpoints of other lanes that are not the newest there."""
    return tuple(
        f"checkpoint {name!r} is not the newest of namespace {lane!r}"
        for lane, name in sorted(lanes.items())
    )


def named_older(position: RunPosition, state: ThreadState) -> dict[str, str]:
    """Return the checkpoints of other lanes that a run names and that are not the newest."""
    found = {}
    for lane, name in position.lanes.items():
        newest = state.checkpoints.newest(lane)
        if newest is None or newest.key.id != name:
            found[lane] = name
    return found


def older_in_lane(draft: CommitDraft, state: ThreadState) -> str | None:
    """Return the checkpoint that a write continues from, if it is not the newest of its lane."""
    name = draft.checkpoint if isinstance(draft, ResultsDraft) else draft.parent
    if _place_of(draft.lane, name, draft.position or RunPosition(), state) is None:
        return None
    newest = state.checkpoints.newest(draft.lane)
    return None if newest is None or newest.key.id == name else name
