# SPDX-License-Identifier: Apache-2.0
"""A run of a framework, by what it has written: what goes on from there goes on with it.

A write says what it goes on from, and which run it is of where the framework tells that. A run is
where it began, what it has written since, and where it stands. Who names something else that the
thread holds is another run, or one that was overtaken; the gate judges that.
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
        position: What its first write says, or what it was decided about before.
        base: The checkpoint of the main lane that it goes on from; None: from nothing.
        lanes: The checkpoints of other lanes that it goes on from although they are not the newest.
        world: What it declares to be able to do.
        is_older: Whether that checkpoint is not the newest.
        actor: Who goes on, as the caller claims.
        early: Results of its first checkpoint that came before that, into the run before.
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
        """Whether it only goes on, from what is not the newest any more."""
        self.is_older = is_older or bool(self.lanes)
        """Whether it goes on from older checkpoints: those of other lanes come with them."""
        self.actor = actor
        self._early = list(early)
        self._world = world
        self._stands_on = base
        self._written: set[Key] = set()
        self._bases: set[Key] = set() if base is None else {Key("", base)}
        """What it has gone on from, in the main lane and in others, and has not written itself."""
        self._branches: set[str] = set()
        """Checkpoints of the main lane that code of its own tasks has written."""
        self._awaited: dict[Key, list[ResultsDraft]] = {}
        """Checkpoints that are on their way, because something has named them, with results."""
        self._asks = False
        """Whether it waits for an answer: what is saved after that has got one."""

    def includes(self, draft: CommitDraft, state: ThreadState) -> bool:
        """Whether something goes on from where this run stands."""
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
        """Whether something cannot be of this run, wherever it stands."""
        if position.begins or draft.declared != self._world:
            return True
        if not draft.lane and position.lanes and position.lanes != self.position.lanes:
            return True
        # What is saved after a question has got an answer.
        saves = _saves(draft) and draft.key not in self._awaited
        return self._asks and (position.answered or saves)

    def take_early(self) -> list[ResultsDraft]:
        """The results that came before the run had begun, once."""
        found, self._early = self._early, []
        return found

    def early_results(self, draft: CommitDraft) -> list[ResultsDraft]:
        """Results that came before the checkpoint with which, as it turns out, a run begins."""
        run = None if draft.position is None else draft.position.run
        if run is not None and run is self.position.run:
            return [each for early in self._awaited.values() for each in early]
        return [] if draft.key is None else self._awaited.get(draft.key, [])

    def note(self, draft: CommitDraft) -> None:
        """Something of it is about to be written."""
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
        """Whether the run went on from a checkpoint of the main lane, wrote it or is about to."""
        if name in (None, self.base, self._stands_on):
            return True
        return Key("", name or "") in self._written or self._is_new(name, state)

    def _stands_where(self, name: str | None, draft: CommitDraft, state: ThreadState) -> bool:
        """Whether a write names the checkpoint of the main lane that the run stands on."""
        if name is None or name == self._stands_on or name in self._branches:
            return True
        if (draft.lane or isinstance(draft, ResultsDraft)) and self._stood_on(Key("", name)):
            return True
        return self._is_new(name, state)

    def _is_new(self, name: str | None, state: ThreadState) -> bool:
        return _place_of("", name, self.position, state) is None

    def _goes_on_in_lane(self, draft: CommitDraft, state: ThreadState) -> bool:
        """Whether a write in another lane goes on from the newest there."""
        if isinstance(draft, ResultsDraft) and self._stood_on(draft.key):
            return True
        return older_in_lane(draft, state) is None

    def _stood_on(self, key: Key) -> bool:
        """Whether results of a checkpoint may have been on their way when the run went on."""
        known = self.position.run is not None  # else they may be those of any other run
        return key in self._written or (known and key in self._bases)


class EndedRuns:
    """Runs that were refused or overtaken: what they still write is told so."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, SealpointError]] = {}
        """What each was known by, which is held so that nothing else is taken for it."""

    def add(self, run: Run, error: SealpointError, going_on: Run | None) -> None:
        """Take no more from a run, unless it is the same one that goes on."""
        known = run.position.run
        goes_on = going_on is not None and going_on is not run and going_on.position.run is known
        if known is not None and not goes_on:
            # A copy: the error itself holds on to what was being written when it was raised.
            self._known.setdefault(id(known), (known, copy.copy(error)))
            if len(self._known) > _ENDED_MAX:
                del self._known[next(iter(self._known))]

    def forget(self, position: RunPosition) -> None:
        """A run begins with what one that ended was known by."""
        self._known.pop(id(position.run), None)

    def refuse(self, position: RunPosition) -> None:
        """Refuse what a run writes that has ended.

        Raises:
            SealpointError: Why it has.
        """
        if not position.begins and (ended := self._known.get(id(position.run))) is not None:
            raise copy.copy(ended[1])


class _Displaced(NamedTuple):
    """What a handle had before a run that has not written anything yet."""

    run: Run | None
    session: int | None
    world: World | None


class RunTracker:
    """Which run of a framework the session of a handle belongs to, and which have ended."""

    def __init__(self, state: ThreadState) -> None:
        self.current: Run | None = None
        """The run of this handle's session, if it is a framework's."""
        self._state = state
        self._ended = EndedRuns()
        self._displaced: _Displaced | None = None

    def is_continued_by(self, draft: CommitDraft) -> bool:
        """Whether something goes on with the run of this handle's session.

        Raises:
            Superseded: It does, or was decided about before, and another run goes on by now.
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
        """Whether the run is one that nobody decided about before, and includes something."""
        run = self.current
        return run is not None and run.position.token is None and run.includes(draft, self._state)

    def begin(self, draft: CommitDraft, world: World | None) -> None:
        """Let another run begin with something that is about to be written.

        Args:
            draft: What is written.
            world: The world of the handle's session until now.

        Raises:
            Superseded: It only goes on, from what is not the newest any more.
            UnknownCheckpoint: It names a checkpoint that is not there.
        """
        state, position = self._state, draft.position or RunPosition()
        self._ended.refuse(position)  # what was just written may have ended it
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
            state.mark_seen()  # it goes on from what it was shown
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
        # All of it is saved at the end: nobody can tell what the run was given.
        return position if position.begins else replace(position, answered=True)

    def settle(self, run: Run, outcome: Outcome) -> _Displaced | None:
        """Take note of what became of the first write of a group of the current run.

        Returns:
            What the handle goes back to, if the run was refused; otherwise None.
        """
        if run.session is None:
            run.session = self._state.session
        displaced, self._displaced = self._displaced, None
        if displaced is None:
            return None
        if run.session is None and isinstance(outcome, SealpointError):
            # Who is refused takes nobody's place, and what else it writes is refused as well.
            self._ended.add(run, outcome, None)
            self.current = displaced.run
            return displaced
        if displaced.run is not None:
            self._ended.add(displaced.run, self.overtaken(None), run)
        return None

    def overtaken(self, name: str | None) -> Superseded:
        """What to say to a run that goes on from what is not the newest any more."""
        stands = "" if name is None else f", and this one from checkpoint {name!r}"
        return Superseded(f"thread {self._state.name!r}: another run has resumed it{stands}")


def _place_of(
    lane: str, name: str | None, position: RunPosition, state: ThreadState
) -> CheckpointPlace | None:
    """Where a checkpoint lies that a run names; None if it names none, or a new one."""
    return None if name is None else state.checkpoints.find(Key(lane, name), rises=position.rising)


def _saves(draft: CommitDraft) -> bool:
    """Whether it is a checkpoint of the main lane."""
    return not draft.lane and not isinstance(draft, ResultsDraft)


def _older_lanes_of(
    draft: CommitDraft, position: RunPosition, state: ThreadState
) -> dict[str, str]:
    """The checkpoints of other lanes that a run begins from although they are not the newest."""
    if not draft.lane:
        return named_older(position, state)
    older = older_in_lane(draft, state)
    return {} if older is None else {draft.lane: older}


def older_lanes(lanes: Mapping[str, str]) -> tuple[str, ...]:
    """Checkpoints of other lanes that are not the newest there, in words."""
    return tuple(
        f"checkpoint {name!r} is not the newest of namespace {lane!r}"
        for lane, name in sorted(lanes.items())
    )


def named_older(position: RunPosition, state: ThreadState) -> dict[str, str]:
    """The checkpoints of other lanes that a run was told to go on from, and that are not newest."""
    found = {}
    for lane, name in position.lanes.items():
        newest = state.checkpoints.newest(lane)
        if newest is None or newest.key.id != name:
            found[lane] = name
    return found


def older_in_lane(draft: CommitDraft, state: ThreadState) -> str | None:
    """The checkpoint that a write goes on from, if it is not the newest of its lane."""
    name = draft.checkpoint if isinstance(draft, ResultsDraft) else draft.parent
    if _place_of(draft.lane, name, draft.position or RunPosition(), state) is None:
        return None
    newest = state.checkpoints.newest(draft.lane)
    return None if newest is None or newest.key.id == name else name
