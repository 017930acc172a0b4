# SPDX-License-Identifier: Apache-2.0
"""Retention of a modelled store: prunes, erasures and collections."""

from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from msgspec import structs

from sealpoint.errors import (
    NotOwner,
    NotTrusted,
    SealpointError,
    StorageUnavailable,
    UnknownThread,
)
from sealpoint.ledger import Kind
from sealpoint.store import CheckpointRef
from tests.properties.model_cells import ENTRY, FILE
from tests.properties.model_honest import NAME, SMALL, Honest
from tests.properties.model_scene import WRITERS
from tests.properties.model_truth import Meant

__all__ = ["Retained"]

_OWNER = st.sampled_from(WRITERS)


def _gone() -> None:
    raise StorageUnavailable("storage: expected it, found it gone")


class Retained(Honest):
    """Giving up what is old, and erasing what must go."""

    def _may_sweep(self) -> bool:
        """Whether a sweep is tried while the store is changed.

        A sweep of a directory writes files anew, with whatever somebody has put into them; putting
        one file back would then undo only half of it.
        """
        return self.scene.clean or self.scene.backend != "file"

    @rule(label=_OWNER, name=NAME, last=st.sampled_from([None, 1, 2, 3]), one=SMALL, two=SMALL)
    def prune(self, label: str, name: str, last: int | None, one: int, two: int) -> None:
        """A dry run says exactly what goes, and then exactly that goes."""
        scene, truth = self.scene, self.scene.truth[name]
        living = [ref for ref in truth.view.listed if not ref.pruned]
        since = living[one % len(living)] if living and one % 3 == 0 else None
        keep = [living[two % len(living)]] if living and two % 2 == 0 else []
        if not self._may_sweep() or (last is None and since is None and not keep):
            return
        gone = truth.would_prune(last, since, [ref.id for ref in keep])
        thread = scene.holders[label].store.thread(name)
        prune = partial(
            thread.prune,
            keep_last=last,
            keep_since=None if since is None else since.time,
            keep=keep,
        )
        token = truth.view.token
        try:
            planned = prune(dry_run=True)
        except SealpointError as error:
            self._refused(label, name, error, () if truth.view.exists else (UnknownThread,))
            return
        assert (list(planned.pruned), planned.entry) == (gone, None)
        meant = Meant(gone=frozenset(ref.seq for ref in gone))
        done, refused = scene.write(label, name, meant, prune)
        if refused is not None:
            self._refused(label, name, refused, self._prune_errors(label, name, gone))
            return
        scene.looked(label, name, token)
        self.tally["pruned" if gone else "nothing to prune"] += 1
        assert list(done.pruned) == [structs.replace(ref, pruned=True) for ref in gone]
        assert (done.blobs, done.size_bytes) == (planned.blobs, planned.size_bytes)
        assert done.entry == (len(truth.facts) - 1 if gone else None)

    def _prune_errors(self, label: str, name: str, gone: list[CheckpointRef]) -> tuple[Any, ...]:
        holder = self.scene.holders[label]
        if gone and holder.key in self.scene.ended:
            return (NotTrusted,)
        return (NotOwner,) if gone and not self.scene.truth[name].view.may_write(holder.who) else ()

    def _refused(
        self, label: str, name: str, error: SealpointError, expected: tuple[Any, ...]
    ) -> None:
        """A call that writes was refused: as it has to be, or because the store was changed."""
        if self.scene.clean:
            assert isinstance(error, expected), f"refused with {error.code}: {error}"
            self.scene.looked(label, name, self.scene.truth[name].view.token)
        else:
            self.scene.was_refused(label, name)

    @precondition(lambda self: self.scene.clean)
    @rule(label=_OWNER, name=NAME, erases=st.booleans())
    def cut_short(self, label: str, name: str, erases: bool) -> None:  # noqa: FBT001 - drawn
        """A sweep ends before it begins: the entry stands, and a collection does the rest."""
        scene, truth = self.scene, self.scene.truth[name]
        who = "officer" if erases else label
        holder = scene.holders[who]
        thread, token = holder.store.thread(name), truth.view.token
        gone = truth.would_prune(1, None, [])
        call = (
            partial(thread.erase, reason="asked for")
            if erases
            else partial(thread.prune, keep_last=1)
        )
        holder.store.storage.dropping.before = _gone
        meant = Meant(gone=frozenset(ref.seq for ref in gone))
        _, refused = scene.write(who, name, meant, call)
        swept = holder.store.storage.dropping.before is None
        holder.store.storage.dropping.before = None
        assert swept == isinstance(refused, StorageUnavailable), refused
        scene.looked(who, name, token)
        if swept:
            self.tally["cut short"] += 1
        if erases and truth.view.erased:
            # It knows that somebody wrote, and not that it was itself.
            scene.was_refused(who, name)

    @rule(label=st.sampled_from(["officer", "officer", "officer", "a"]), name=NAME)
    def erase(self, label: str, name: str) -> None:
        """Everything goes, by whoever has the privacy role and by nobody else."""
        scene, truth = self.scene, self.scene.truth[name]
        if not self._may_sweep():
            return
        thread, erased = scene.holders[label].store.thread(name), truth.view.erased
        planned = None
        if scene.clean and truth.view.exists:
            planned = thread.erase(reason="asked for", dry_run=True)
            scene.looked(label, name, truth.view.token)
        done, refused = scene.write(label, name, Meant(), partial(thread.erase, reason="asked for"))
        if refused is not None:
            wrong = () if erased or label == "officer" else (NotTrusted,)
            self._refused(label, name, refused, wrong if truth.view.exists else (UnknownThread,))
            return
        self.tally["erased again" if erased else "erased"] += 1
        assert truth.view.erased
        assert truth.facts[done.entry].kind is Kind.ERASE
        scene.took_up(label, name)
        if planned is not None:
            assert (done.entries, done.blobs, done.size_bytes) == (
                planned.entries,
                planned.blobs,
                planned.size_bytes,
            )
            self._check_removed(name, done.entry)

    def _check_removed(self, name: str, entry: int) -> None:
        """Of what was erased, headers and signatures stay and nothing else."""
        scene = self.scene
        if scene.backend == "file":
            return
        for (kind, _, place), value in scene.content_of(name, scene.cells.all()).items():
            assert kind == ENTRY, f"a {kind} of a thread that was erased"
            assert place <= entry
            assert value[2:] == (None, None) or place == entry
        assert FILE not in {key[0] for key in scene.cells.all()}

    @rule(dry_run=st.booleans())
    def collect(self, dry_run: bool) -> None:  # noqa: FBT001 - drawn
        """A collection takes nothing away that anybody needs, and a second one finds nothing."""
        scene = self.scene
        store = scene.holders["operator"].store
        if not self._may_sweep():
            return
        try:
            found = store.gc(dry_run=dry_run)
        except SealpointError as error:
            scene.excuse(error)
            return
        self.tally["collected"] += bool(found.blobs)
        if scene.clean:
            assert found.failures == ()
            if not dry_run:
                assert store.gc(dry_run=True).blobs == 0
