# SPDX-License-Identifier: Apache-2.0
"""Copies of a modelled store: made, put in its place, and accepted or taken away again."""

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from sealpoint.errors import RolledBack
from sealpoint.store import accept_restore, plan_restore
from tests.ledgers import key
from tests.properties.model_cells import Changes, Content, difference, of_store_chain
from tests.properties.model_honest import SMALL
from tests.properties.model_hostile import NUMBER, Hostile
from tests.properties.model_scene import NAMES
from tests.properties.model_truth import Fact
from tests.unit.store.ended import rooted

__all__ = ["Restored"]

_BACKUPS_MAX = 4
_ONLY = st.sampled_from([None, None, *NAMES])


@dataclass(frozen=True)
class Backup:
    """A copy of the disk, and what was true when it was made."""

    content: Content
    facts: dict[str, tuple[Fact, ...]]


@dataclass(frozen=True)
class _RolledBack:
    """A copy that was put in the place of the store."""

    kept: dict[str, tuple[Fact, ...]]
    """What each thread that it concerns would keep."""
    facts: dict[str, tuple[Fact, ...]]
    """What they held before."""
    stored: dict[str, tuple[Fact, ...]]
    """What the copy holds of them."""


class Restored(Hostile):
    """A disk dies, and a copy takes its place."""

    def __init__(self) -> None:
        super().__init__()
        self.backups: list[Backup] = []
        self.rolled: _RolledBack | None = None
        self.dead: set[bytes] = set()
        """Hashes of entries that a restore was accepted without."""

    @initialize(numbers=st.lists(SMALL, max_size=4), others=st.lists(SMALL, max_size=2))
    def begin(self, numbers: list[int], others: list[int]) -> None:
        """Most stores are not empty, and of most there is a copy."""
        for number in numbers:
            self.save("a", "t", number)
        for number in others:
            self.save("c", "u", number)
        if len(numbers) != 1:
            self.back_up()

    @precondition(lambda self: self.scene.clean)
    @rule()
    def back_up(self) -> None:
        """Somebody copies the disk."""
        facts = {name: truth.facts for name, truth in self.scene.truth.items()}
        self.backups = [*self.backups, Backup(self.scene.cells.all(), facts)][-_BACKUPS_MAX:]
        self.copies = [backup.content for backup in self.backups]

    @precondition(lambda self: self.backups and self.scene.clean)
    @rule(which=NUMBER, only=_ONLY, chain=st.booleans())
    def roll_back(self, which: int, only: str | None, chain: bool) -> None:  # noqa: FBT001
        """A copy takes the place of the store, or of one of its threads."""
        scene = self.scene
        backup = self.backups[which % len(self.backups)]
        names = NAMES if only is None else (only,)
        now = scene.cells.all()
        if only is not None:
            mine = scene.content_of(only, now)
            target = {at: value for at, value in now.items() if at not in mine}
            target |= scene.content_of(only, backup.content)
        else:
            target = {at: each for at, each in backup.content.items() if not of_store_chain(at)}
            target |= {
                at: each
                for at, each in (backup.content if chain else now).items()
                if of_store_chain(at)
            }
        changes = difference(now, target)
        concerned = [name for name in names if backup.facts[name] != scene.truth[name].facts]
        if changes:
            scene.change(changes)
            self.tally["rolled back"] += bool(concerned)
            self.rolled = _RolledBack(
                kept={
                    name: scene.truth[name].kept_of(backup.facts[name], self.dead)
                    for name in concerned
                },
                facts={name: scene.truth[name].facts for name in concerned},
                stored={name: backup.facts[name] for name in concerned},
            )
            for name in concerned:
                self.require_alarm(name)

    @precondition(lambda self: self.backups and self.scene.clean)
    @rule(which=NUMBER, only=_ONLY, chain=st.booleans())
    def restore(self, which: int, only: str | None, chain: bool) -> None:  # noqa: FBT001
        """A copy takes the place of the store, and is accepted."""
        self.roll_back(which, only, chain)
        self.every_read_is_true()
        if self._may_accept():
            self.accept()

    def _may_accept(self) -> bool:
        """Whether a restore is what was shown: nobody has saved on top of what is missing.

        A copy whose payloads were given up by a prune that is itself dead lacks states that
        nobody gave up in what would be kept: accepting it is for nobody.
        """
        rolled = self.rolled
        if rolled is None or len(self.scene.undo) != 1:
            return False
        for name, facts in rolled.facts.items():
            kept = rolled.kept[name]
            dead = rolled.stored[name][len(kept) :]
            gone = {seq for fact in dead for seq in fact.gone}
            if self.scene.truth[name].facts is not facts or any(seq < len(kept) for seq in gone):
                return False
        return True

    def healed(self) -> None:
        """The copy is taken away again."""
        self.rolled = None
        super().healed()

    @precondition(lambda self: self._may_accept())
    @rule()
    def accept(self) -> None:
        """The root accepts the store as it is: what is lost is known before, and stays lost."""
        scene, rolled = self.scene, self.rolled
        assert rolled is not None
        (undo,) = scene.undo
        chain = {at: value for at, value in undo.items() if of_store_chain(at)}
        with rooted(scene.world, random_bytes=scene.random) as root:
            if chain:
                self._require_refused(lambda: plan_restore(root.core))
                scene.cells.put(chain)
            plan = plan_restore(root.core)
            lost = {
                scene.threads[name].hex(): len(kept) - 1 if kept else None
                for name, kept in rolled.kept.items()
                if kept != rolled.facts[name]
            }
            assert {each.thread: each.kept for each in plan.losses} == lost
            if not lost and not plan.leftovers:
                scene.cells.put(undo)
            else:
                roots = [key(name) for name in scene.roots]
                done = accept_restore(root.core, plan, "the disk died", roots=roots)
                assert done.in_the_way == ()
                self.tally["restore accepted" if lost else "leftovers taken out"] += 1
        self._cut(rolled, undo)

    def _require_refused(self, call: Callable[[], object]) -> None:
        try:
            call()
        except RolledBack:
            return
        raise AssertionError("a restore with an older store chain was planned")

    def _cut(self, rolled: _RolledBack, undo: Changes) -> None:
        """From now on the truth is what was kept."""
        scene = self.scene
        genuine = {at: value for at, value in undo.items() if value is not None}
        for name, kept in rolled.kept.items():
            if kept != rolled.facts[name]:
                alive = {fact.hash for fact in kept}
                self.dead |= {fact.hash for fact in rolled.facts[name]} - alive
                scene.truth[name].cut(kept)
                scene.doubt(name)
                self.lost |= scene.content_of(name, genuine)
        scene.undo.clear()
        self.healed()
