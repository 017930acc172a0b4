# SPDX-License-Identifier: Apache-2.0
"""Key changes in a modelled store: rotation, revocation, new keys and a new root."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sealpoint.errors import SealpointError
from sealpoint.signing import Root
from sealpoint.store import append_root, append_roster
from tests.ledgers import key
from tests.properties.model_retention import Retained
from tests.unit.store.ended import add_key, rooted

__all__ = ["Keyed"]

_CHANGES_MAX = 6


class Keyed(Retained):
    """Keys come to their end, and others take their place."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = 0
        self._unfinished: dict[str, str] = {}
        """Changes that failed in the middle: who, and the key that is to follow."""

    def _next(self, who: str) -> str:
        self.changes += 1
        return f"{who}-{self.changes}"

    def _end(self, who: str, successor: str) -> None:
        """End the key of an identity, and give it another one if there is one."""
        scene = self.scene
        old = scene.keys[who]
        if old in scene.ended or who in self._unfinished:
            return
        change = add_key(who, successor) if successor else (lambda document: document)
        try:
            with rooted(scene.world, random_bytes=scene.random) as root:
                ended = root.end(old, change=change, roots=scene.roots)
        except SealpointError as error:
            scene.excuse(error)
            self._unfinished[who] = successor
            return
        how = "key rotated" if successor else "key revoked"
        self.tally[how if scene.clean else f"{how}, in a changed store"] += 1
        if scene.clean:
            assert (ended.unverified, ended.beyond) == ((), ())
        scene.keys[who] = successor
        scene.ended.add(old)

    def finish_key_changes(self) -> None:
        """Repeat what could not be finished while the store was changed."""
        scene = self.scene
        unfinished, self._unfinished = self._unfinished, {}
        for who, successor in sorted(unfinished.items()):
            with rooted(scene.world, random_bytes=scene.random) as root:
                cut = key(scene.keys[who]).key in root.core.renewed_trust().roster.cutoffs
            if cut:
                scene.ended.add(scene.keys[who])
                scene.keys[who] = successor
            else:
                self._end(who, successor)

    @precondition(lambda self: self.changes < _CHANGES_MAX)
    @rule(what=st.sampled_from(["worker", "second", "revoke", "root"]))
    def change_keys(self, what: str) -> None:
        """A key is rotated, revoked or given anew, or the root is."""
        scene = self.scene
        if what == "root":
            if scene.clean:
                self._new_root()
        elif what == "revoke":
            if scene.keys["second"]:
                self.changes += 1
                self._end("second", "")
        elif scene.keys[what]:
            self._end(what, self._next(what))
        elif scene.clean:
            self._give_a_key(what)

    def _give_a_key(self, who: str) -> None:
        """An identity without keys is given one."""
        scene = self.scene
        scene.keys[who] = self._next(who)
        with rooted(scene.world, random_bytes=scene.random) as root:
            chain = root.core.renewed_trust()
            document = add_key(who, scene.keys[who])(chain.roster.document)
            roots = [key(name) for name in scene.roots]
            root.core.written(append_roster(root.core, chain, document, roots))
        self.tally["key given"] += 1

    def _new_root(self) -> None:
        """A new root takes the place of the old one."""
        scene, successor = self.scene, self._next("root")
        with rooted(scene.world, random_bytes=scene.random) as root:
            chain = root.core.renewed_trust()
            version = chain.root.version + 1
            made = Root(version=version, threshold=1, keys=[key(successor).public])
            signers = [key(name) for name in (*scene.roots, successor)]
            root.core.written(append_root(root.core, chain, made, signers))
        scene.roots = [successor]
        self.tally["root changed"] += 1
