# SPDX-License-Identifier: Apache-2.0
"""Somebody who holds the disk: edits, thefts, old copies, and the way back from each.

Whatever was changed can be put back as it was, and then everything must work again, in the
processes that have seen the change as well. Two refusals stay, and are meant to:

- A process that wrote while rows were missing, and was told so, has written a second history.
  It keeps to it until it ends, and what it wrote has to be taken out together with putting the
  rows back: no reader can tell by itself which of two genuine histories is the right one.
- What a restore was accepted without never counts again, though every row of it is genuine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from sealpoint.errors import RolledBack, SealpointError
from sealpoint.ledger import CheckpointBody, Kind, encode_body, link_hash, parse_header, skip_seq
from sealpoint.store import accept_restore, plan_restore
from tests.ledgers import SALT, key, sealed
from tests.properties.model_attacks import EDITS, Edit, drop_newest, must_alarm, older, reinserted
from tests.properties.model_cells import Changes, Content, difference, of_store_chain
from tests.properties.model_honest import NAME, SMALL
from tests.properties.model_keys import Keyed
from tests.properties.model_scene import ALARMS, NAMES
from tests.properties.model_truth import Fact
from tests.unit.store.ended import rooted
from tests.unit.store.simulator import Opened

__all__ = ["Hostile"]

_NUMBER = st.integers(0, 255)
_ATTACKS_MAX = 3
_BACKUPS_MAX = 4


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


class Hostile(Keyed):
    """An attacker, and an operator who puts things right."""

    def __init__(self) -> None:
        super().__init__()
        self.backups: list[Backup] = []
        self.rolled: _RolledBack | None = None
        self.dead: set[bytes] = set()
        """Hashes of entries that a restore was accepted without."""
        self.lost: Content = {}
        """The rows of those."""

    # ------------------------------------------------------------------ edits

    def _disturb(self, changes: Changes) -> None:
        content = self.scene.cells.all()
        real = {at: value for at, value in changes.items() if content.get(at) != value}
        if real:
            self.scene.change(real)

    @precondition(lambda self: len(self.scene.undo) < _ATTACKS_MAX)
    @rule(edit=st.sampled_from(EDITS), one=_NUMBER, two=_NUMBER, three=_NUMBER)
    def attack(self, edit: Edit, one: int, two: int, three: int) -> None:
        """Some row is flipped, deleted, swapped, copied or added."""
        content = self.scene.cells.all()
        if content:
            self._disturb(edit(content, one, two, three))

    @precondition(lambda self: len(self.scene.undo) < _ATTACKS_MAX)
    @rule(what=st.sampled_from(["newest", "older", "lost"]), one=_NUMBER, two=_NUMBER)
    def bring_back_the_past(self, what: str, one: int, two: int) -> None:
        """The newest entries are gone, a row is as it was, or what a restore cut off is back."""
        content = self.scene.cells.all()
        if what == "lost" and self.lost:
            self._disturb(reinserted(content, self.lost))
            self.tally["lost rows brought back"] += not self.scene.clean
        elif what == "older" and self.backups:
            self._disturb(older(content, [each.content for each in self.backups], one, two))
        else:
            self._disturb(drop_newest(content, one, two))

    @precondition(lambda self: self.scene.ended and self.scene.clean)
    @rule(name=NAME, which=_NUMBER)
    def sign_with_a_stolen_key(self, name: str, which: int) -> None:
        """Whoever has a key that has ended adds the next entry, and nobody takes it."""
        scene, truth = self.scene, self.scene.truth[name]
        if not truth.view.exists:
            return
        thief = key(sorted(scene.ended)[which % len(scene.ended)])
        thread, storage = scene.threads[name], scene.holders["a"].store.storage.inner
        newest = storage.read(thread, len(truth.facts) - 1)
        assert newest is not None
        seq, before = len(truth.facts), parse_header(newest.header)
        payload = b"\xa6bought"
        root = sha256(payload).hexdigest()
        body = encode_body(CheckpointBody(salt=SALT, id="bought", root=root))
        header = msgspec.structs.replace(
            before,
            seq=seq,
            prev=link_hash(newest.header).hex(),
            skip=truth.facts[skip_seq(seq)].hash.hex(),
            kind=Kind.CHECKPOINT,
            by=thief.key,
            body=sha256(body).hexdigest(),
        )
        record = msgspec.structs.replace(sealed(header, body, thief), payload=payload)
        content = scene.cells.all()
        storage.append(thread, seq, [record], blobs={})
        scene.undo.append(difference(scene.cells.all(), content))
        self.tally["signed with a stolen key"] += 1
        reader = scene.reader()

        assert scene.check_newest(reader, name), "took an entry by a key that has ended"
        reader.close()

    # ------------------------------------------------------------------ old copies

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

    @precondition(lambda self: self.backups and self.scene.clean)
    @rule(which=_NUMBER, only=st.sampled_from([None, None, *NAMES]), chain=st.booleans())
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

    @precondition(lambda self: self.backups and self.scene.clean)
    @rule(which=_NUMBER, only=st.sampled_from([None, None, *NAMES]), chain=st.booleans())
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
                self.lost |= scene.content_of(name, genuine)
        scene.undo.clear()
        self.rolled = None

    # ------------------------------------------------------------------ putting it right

    @precondition(lambda self: not self.scene.clean)
    @rule()
    def heal(self) -> None:
        """Everything is as it was, and nobody remembers anything else."""
        scene = self.scene
        self.tally["healed"] += 1
        for changes in reversed(scene.undo):
            scene.cells.put(changes)
        scene.undo.clear()
        self.rolled = None
        for label in sorted(scene.strays):
            scene.reopen(label)
        scene.strays.clear()
        self.finish_key_changes()
        for label in scene.holders:
            for name in NAMES:
                if label in "abcd":
                    self.read_history(label, name)

    def genuine(self, content: Content) -> Content:
        """The content as it would be without any changes."""
        found = dict(content)
        for changes in reversed(self.scene.undo):
            for at, value in changes.items():
                if value is None:
                    found.pop(at, None)
                else:
                    found[at] = value
        return found

    def has_to_alarm(self) -> bool:
        """Whether a full verification has to notice what was changed."""
        scene = self.scene
        content = scene.cells.all()
        genuine = self.genuine(content)
        erased = {
            scene.threads[name]: max(
                (seq for seq, fact in enumerate(truth.facts) if fact.kind is Kind.ERASE), default=0
            )
            for name, truth in scene.truth.items()
            if truth.view.exists
        }
        return must_alarm(genuine, difference(genuine, content), erased, scene.known_threads)

    @invariant()
    def every_read_is_true(self) -> None:
        """What processes old and new read is the truth, and an alarm has its cause."""
        self.tally["steps"] += 1
        scene = self.scene
        scene.check_all(scene.watcher)
        try:
            reader = scene.reader()
        except SealpointError as error:
            assert not scene.clean, f"refused with {error.code}: {error}"
            assert isinstance(error, ALARMS), f"refused with {error.code}: {error}"
            return
        try:
            alarm = scene.check_all(reader)
            verified = self._verifies(reader)
        finally:
            reader.close()
        if scene.clean:
            assert verified, "a store that nobody has changed does not verify"
        elif alarm or self.has_to_alarm():
            assert not verified, "a store that was changed verifies"

    def _verifies(self, reader: Opened) -> bool:
        try:
            return reader.verify().ok
        except SealpointError as error:
            assert not self.scene.clean, f"refused with {error.code}: {error}"
            assert isinstance(error, ALARMS), f"refused with {error.code}: {error}"
            return False
