# SPDX-License-Identifier: Apache-2.0
"""Honest work on a modelled store: every rule knows how its call has to end.

While nobody has changed the store, a call ends exactly as the truth says. While somebody has, it
may be refused as well; what landed all the same is taken into the truth.
"""

import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from msgspec import structs

from sealpoint.errors import (
    AnchorUnavailable,
    Erased,
    HeadMoved,
    IdReused,
    NotOwner,
    NotTrusted,
    SealpointError,
    StorageUnavailable,
    Superseded,
    UnknownThread,
)
from sealpoint.gate import Thread
from sealpoint.store import CheckpointRef
from tests.properties.model_reads import CheckedScene
from tests.properties.model_truth import Meant, Saved, state_of

__all__ = ["NAME", "SMALL", "Honest"]

SMALL = st.integers(0, 11)
_IDS = st.sampled_from([None, None, "c0", "c1", "c2"])
NAME = st.sampled_from(["t", "t", "t", "u", "u", "v"])
_WRITER = st.sampled_from(["a", "b", "c", "a", "b", "d"])
_LOST = (HeadMoved, Superseded)


@dataclass(frozen=True)
class _Outcome:
    """How a save may end."""

    errors: tuple[type[SealpointError], ...]
    lands: bool = False
    repeats: bool = False
    """Whether the checkpoint that is there already may be the answer."""

    def check(self, ref: object, refused: SealpointError | None, *, landed: bool) -> None:
        """Fail unless it ended so."""
        if refused is not None:
            assert not landed, f"landed, and refused with {refused.code}: {refused}"
            assert isinstance(refused, self.errors), f"refused with {refused.code}: {refused}"
        elif landed:
            assert self.lands, f"saved, expected {self.errors}"
        else:
            assert self.repeats, f"answered {ref}, expected {self.errors}"


class Honest(RuleBasedStateMachine):
    """Saves, loads, prunes, erasures and collections by several processes."""

    backend = "memory"
    tally: ClassVar[Counter[str]] = Counter()
    """How often each thing happened, in all histories together."""

    def __init__(self) -> None:
        super().__init__()
        self.scene = CheckedScene(self.backend, self.tally)

    def teardown(self) -> None:
        """End everything, and count the histories that came to their end."""
        self.scene.close()
        if sys.exc_info()[0] is None:
            self.tally["histories"] += 1

    def thread(self, label: str, name: str) -> Thread:
        """A process's handle of a thread."""
        return self.scene.holders[label].store.thread(name)

    # ------------------------------------------------------------------ saving

    def _save(self, label: str, name: str, number: int, **options: Any) -> None:
        """Save one of a few states; everything else that a save takes follows from the number."""
        scene, view = self.scene, self.scene.truth[name].view
        parent = options.get("parent")
        meant = Meant(
            state=state_of(number),
            parent=parent.id if isinstance(parent, CheckpointRef) else parent,
            metadata={"number": number} if number % 2 else None,
            world=None,  # it is decided when a session begins, which the gate's model draws
        )
        call = partial(
            self.thread(label, name).save,
            meant.state,
            metadata=meant.metadata,
            world=meant.world,
            **options,
        )
        expected = self._expected(label, name, options.get("id"), meant)
        facts = len(scene.truth[name].facts)
        ref, refused = scene.write(label, name, meant, call)
        landed = scene.truth[name].facts[facts:]
        if ref is not None:
            made = landed[-1].saved if landed else view.named(ref.id)
            assert made is not None, "acknowledged, and nothing was written"
            assert made.says(meant), "acknowledged under the id of something else"
            assert structs.replace(ref, pruned=False) == structs.replace(made.ref, pruned=False)
        self._count(refused, landed=bool(landed))
        if scene.clean:
            expected.check(ref, refused, landed=bool(landed))
        if landed and ref is not None:
            scene.took_up(label, name)
        elif refused is not None and not scene.clean:
            scene.was_refused(label, name)
        else:
            scene.looked(label, name, view.token)

    def _count(self, refused: SealpointError | None, *, landed: bool) -> None:
        how = "saved" if landed else "repeated"
        if refused is not None:
            how = f"save refused: {refused.code}"
        self.tally[how if self.scene.clean else f"{how}, in a changed store"] += 1

    def _expected(self, label: str, name: str, key: str | None, meant: Meant) -> "_Outcome":
        """How a save has to end while the store is as it was written."""
        scene, holder = self.scene, self.scene.holders[label]
        view, stale = scene.truth[name].view, scene.is_stale(label, name)
        found = None if key is None else view.named(key)
        errors: list[type[SealpointError]] = []
        if holder.key in scene.ended:
            errors.append(NotTrusted)
        elif not view.may_write(holder.who):
            errors.append(NotOwner)
        # Who goes by an older view may be told whose the thread was, and what an id said.
        named = key is not None
        older = (*errors, NotOwner, *_LOST, *((IdReused,) if named else ()))
        if stale:
            return _Outcome(older, repeats=named)
        unsure = stale is None
        lost = older if unsure else ()
        if found is not None:
            same = found.says(meant)
            return _Outcome((*lost, *(() if same else (IdReused,))), repeats=same or unsure)
        return _Outcome((*lost, *errors), lands=not errors, repeats=named and unsure)

    @rule(label=_WRITER, name=NAME, number=SMALL)
    def save(self, label: str, name: str, number: int) -> None:
        """Save a state."""
        self._save(label, name, number)

    @precondition(lambda self: self.scene.clean)
    @rule(
        label=_WRITER, name=NAME, number=SMALL, where=st.sampled_from(["before", "after", "anchor"])
    )
    def save_with_a_fault(self, label: str, name: str, number: int, where: str) -> None:
        """The backend fails before or after it has stored, or the anchor does."""
        scene, store = self.scene, self.scene.holders[label].store
        if where == "anchor":
            store.anchor.fail(AnchorUnavailable("anchor: expected it, found it gone"))
        else:
            error = StorageUnavailable("storage: expected it, found it gone")
            store.storage.fail(error, after=where == "after")
        meant = Meant(state=state_of(number))
        facts = len(scene.truth[name].facts)
        call = partial(store.thread(name).save, meant.state)
        ref, refused = scene.write(label, name, meant, call)
        landed = scene.truth[name].facts[facts:]
        store.anchor.advancing.before = None
        store.storage.appending.before = store.storage.appending.after = None
        if where != "before" and landed:
            # Whoever reads next lets the anchor follow.
            scene.check_newest(scene.holders["operator"].store, name)
            self.tally[f"saved with a fault: {where}"] += 1
        if isinstance(refused, AnchorUnavailable):
            ref = refused.ref
        if landed:
            assert landed[-1].saved is not None
            assert ref == landed[-1].saved.ref
        scene.was_refused(label, name)

    @rule(label=_WRITER, name=NAME, number=SMALL, key=_IDS)
    def save_under_an_id(self, label: str, name: str, number: int, key: str | None) -> None:
        """Save under an id that may be in use, by the same state or another."""
        self._save(label, name, number, id=key)

    @rule(label=_WRITER, name=NAME, which=SMALL)
    def repeat(self, label: str, name: str, which: int) -> None:
        """Save exactly what a checkpoint says, under its id."""
        made = self.scene.truth[name].view.checkpoints
        if made:
            saved = made[which % len(made)]
            number = saved.meant.state["number"]
            self._save(label, name, number, id=saved.ref.id, parent=saved.meant.parent)

    @rule(label=_WRITER, name=NAME, numbers=st.lists(SMALL, min_size=2, max_size=4))
    def save_several(self, label: str, name: str, numbers: list[int]) -> None:
        """Load, and save one state after the other in a session."""
        self.load(label, name)
        for number in numbers:
            self._save(label, name, number)

    @rule(label=_WRITER, name=NAME, number=SMALL)
    def load_and_save(self, label: str, name: str, number: int) -> None:
        """Load what is newest and go on from there."""
        self.load(label, name)
        self._save(label, name, number)

    @rule(label=_WRITER, name=NAME, number=SMALL, back=SMALL)
    def fork(self, label: str, name: str, number: int, back: int) -> None:
        """Go back to an older checkpoint and save on from it."""
        made = self.scene.truth[name].view.checkpoints
        if made:
            saved = made[-1 - back % len(made)]
            self._load(label, name, saved, by_id=False)
            self._save(label, name, number, parent=saved.ref)

    # ------------------------------------------------------------------ loading

    @rule(label=_WRITER, name=NAME)
    def load(self, label: str, name: str) -> None:
        """Load what is newest."""
        scene, view = self.scene, self.scene.truth[name].view
        if view.checkpoints:
            self._load(label, name, view.checkpoints[-1], by_id=None)
            return
        expected = (Erased,) if view.erased else (UnknownThread,)
        if scene.attempt(self.thread(label, name).load, None, expected):
            scene.was_refused(label, name)
        else:
            # That there is nothing is something to go on from.
            scene.took_up(label, name)

    def _load(self, label: str, name: str, saved: Saved, *, by_id: bool | None) -> None:
        scene, thread = self.scene, self.thread(label, name)
        ref = None if by_id is None else saved.ref.id if by_id else saved.ref
        if scene.check_loaded(partial(thread.load, ref), saved):
            scene.was_refused(label, name)
        elif saved.ref.pruned:
            scene.looked(label, name, scene.truth[name].view.token)
        else:
            scene.took_up(label, name)

    @rule(label=_WRITER, name=NAME, back=SMALL, by_id=st.booleans())
    def load_older(self, label: str, name: str, back: int, by_id: bool) -> None:  # noqa: FBT001
        """Load an older checkpoint, by its ref or its id."""
        made = self.scene.truth[name].view.checkpoints
        if made:
            self._load(label, name, made[-1 - back % len(made)], by_id=by_id)

    @rule(label=_WRITER, name=NAME)
    def read_history(self, label: str, name: str) -> None:
        """List the checkpoints; a look that is no load takes up nothing."""
        scene, view = self.scene, self.scene.truth[name].view
        if scene.check_history(self.thread(label, name)):
            scene.was_refused(label, name)
        else:
            scene.looked(label, name, view.token)

    @rule(label=_WRITER)
    def reopen(self, label: str) -> None:
        """A process ends, and another one begins."""
        try:
            self.scene.reopen(label)
        except SealpointError as error:
            self.scene.excuse(error)
