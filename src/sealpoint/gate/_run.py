# SPDX-License-Identifier: Apache-2.0
"""A run of a framework, by what it has written: what goes on from there goes on with it.

A write says what it goes on from, and which run it is of where the framework tells that. A run is
where it began, what it has written since, and where it stands. Who names something else that the
thread holds is another run, or one that was overtaken; the gate judges that.
"""

import copy
from collections import deque
from collections.abc import Mapping, Sequence

from sealpoint.errors import SealpointError
from sealpoint.store import CommitDraft, Key, ResultsDraft, RunPosition, ThreadState
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
        if position.begins or draft.declared != self._world:
            return False
        if not draft.lane and position.lanes and position.lanes != self.position.lanes:
            return False
        if self._asks and position.answered:
            return False
        saves = not draft.lane and not isinstance(draft, ResultsDraft)
        if saves and self._asks and draft.key not in self._awaited:
            return False
        if not self._stands_where(position.checkpoint, draft, state):
            return False
        return self.is_older or not draft.lane or self._goes_on_in_lane(draft, state)

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
        key = Key("", name or "")
        return key in self._written or state.place(key, rises=True) is None

    def _stands_where(self, name: str | None, draft: CommitDraft, state: ThreadState) -> bool:
        """Whether a write names the checkpoint of the main lane that the run stands on."""
        if name is None or name == self._stands_on or name in self._branches:
            return True
        key = Key("", name)
        if (draft.lane or isinstance(draft, ResultsDraft)) and key in self._written:
            return True  # it was on its way when the run went on
        return state.place(key, rises=True) is None

    def _goes_on_in_lane(self, draft: CommitDraft, state: ThreadState) -> bool:
        """Whether a write in another lane goes on from the newest there."""
        if isinstance(draft, ResultsDraft) and draft.key in self._written:
            return True  # on their way when the subgraph went on
        return older_in_lane(draft, state) is None


class EndedRuns:
    """Runs that were refused or overtaken: what they still write is told so."""

    def __init__(self) -> None:
        self._known: deque[tuple[object, SealpointError]] = deque(maxlen=_ENDED_MAX)

    def add(self, run: Run, error: SealpointError, going_on: Run | None) -> None:
        """Take no more from a run, unless it is the same one that goes on."""
        known = run.position.run
        goes_on = going_on is not None and going_on is not run and going_on.position.run is known
        if known is not None and not goes_on:
            # A copy: the error itself holds on to what was being written when it was raised.
            self._known.append((known, copy.copy(error)))

    def forget(self, position: RunPosition) -> None:
        """A run begins with what one that ended was known by."""
        kept = [each for each in self._known if each[0] is not position.run]
        self._known = deque(kept, maxlen=_ENDED_MAX)

    def refuse(self, position: RunPosition) -> None:
        """Refuse what a run writes that has ended.

        Raises:
            SealpointError: Why it has.
        """
        if position.run is not None and not position.begins:
            for ended, error in self._known:
                if ended is position.run:
                    raise copy.copy(error)


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
        newest = state.newest_place(lane)
        if newest is None or newest.key.id != name:
            found[lane] = name
    return found


def older_in_lane(draft: CommitDraft, state: ThreadState) -> str | None:
    """The checkpoint that a write goes on from, if it is not the newest of its lane."""
    name = draft.checkpoint if isinstance(draft, ResultsDraft) else draft.parent
    if name is None or state.place(Key(draft.lane, name), rises=True) is None:
        return None
    newest = state.newest_place(draft.lane)
    return None if newest is None or newest.key.id == name else name
