# SPDX-License-Identifier: Apache-2.0
"""Somebody who holds the disk: edits, stolen keys, and the way back from each.

Whatever was changed can be put back as it was, and then everything must work again, in the
processes that have seen the change as well. Two refusals stay, and are meant to:

- A process that wrote while rows were missing, and was told so, has written a second history.
  It keeps to it until it ends, and what it wrote has to be taken out together with putting the
  rows back: no reader can tell by itself which of two genuine histories is the right one.
- What a restore was accepted without never counts again, though every row of it is genuine.
"""

from hashlib import sha256

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from sealpoint.errors import SealpointError
from sealpoint.ledger import CheckpointBody, Kind, encode_body, link_hash, parse_header, skip_seq
from tests.deployment import Opened
from tests.ledgers import SALT, key, sealed
from tests.properties.model_attacks import EDITS, Edit, drop_newest, must_alarm, older, reinserted
from tests.properties.model_cells import Changes, Content, difference
from tests.properties.model_honest import NAME
from tests.properties.model_keys import Keyed
from tests.properties.model_scene import NAMES, WRITERS

__all__ = ["NUMBER", "Hostile"]

NUMBER = st.integers(0, 255)
_ATTACKS_MAX = 3


class Hostile(Keyed):
    """An attacker, and an operator who puts things right."""

    def __init__(self) -> None:
        super().__init__()
        self.copies: list[Content] = []
        """The disk at some earlier times."""
        self.lost: Content = {}
        """Rows that a restore was accepted without."""

    # ------------------------------------------------------------------ edits

    def _disturb(self, changes: Changes) -> None:
        content = self.scene.cells.all()
        real = {at: value for at, value in changes.items() if content.get(at) != value}
        if real:
            self.scene.change(real)

    @precondition(lambda self: len(self.scene.undo) < _ATTACKS_MAX)
    @rule(edit=st.sampled_from(EDITS), one=NUMBER, two=NUMBER, three=NUMBER)
    def attack(self, edit: Edit, one: int, two: int, three: int) -> None:
        """Some row is flipped, deleted, swapped, copied or added."""
        content = self.scene.cells.all()
        if content:
            self._disturb(edit(content, one, two, three))

    @precondition(lambda self: len(self.scene.undo) < _ATTACKS_MAX)
    @rule(what=st.sampled_from(["newest", "older", "lost"]), one=NUMBER, two=NUMBER)
    def bring_back_the_past(self, what: str, one: int, two: int) -> None:
        """The newest entries are gone, a row is as it was, or what a restore cut off is back."""
        content = self.scene.cells.all()
        if what == "lost" and self.lost:
            self._disturb(reinserted(content, self.lost))
            self.tally["lost rows brought back"] += not self.scene.clean
        elif what == "older" and self.copies:
            self._disturb(older(content, self.copies, one, two))
        else:
            self._disturb(drop_newest(content, one, two))

    @precondition(lambda self: self.scene.ended and self.scene.clean)
    @rule(name=NAME, which=NUMBER)
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
        self.require_alarm(name)

    def require_alarm(self, name: str) -> None:
        """A new process must not read this thread as if nothing had happened."""
        try:
            reader = self.scene.reader()
        except SealpointError as error:
            self.scene.excuse_alarm(error)
            return
        alarm = self.scene.check_newest(reader, name)
        reader.close()

        assert alarm, f"read thread {name!r} as if nobody had changed it"

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
        for label in sorted(scene.strays):
            scene.reopen(label)
        scene.strays.clear()
        self.healed()
        for label in WRITERS:
            for name in NAMES:
                self.read_history(label, name)

    def healed(self) -> None:
        """What could not be done while the store was changed is done now."""
        self.finish_key_changes()

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
            scene.excuse_alarm(error)
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
            self.scene.excuse_alarm(error)
            return False
