# SPDX-License-Identifier: Apache-2.0
"""A real store with its processes, and what must be true of it.

Everything that a process signs is noted when it reaches the storage, so that the truth follows
what landed even where a call was refused. `model_reads.py` compares reads with it.
"""

import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sealpoint.errors import (
    SealpointError,
)
from sealpoint.ledger import STORE_CHAIN, Kind, link_hash, parse_body, parse_header
from sealpoint.signing import Role, RosterDocument
from sealpoint.store import CheckpointRef
from tests.deployment import Deployment, Opened
from tests.ledgers import identity
from tests.properties.model_cells import (
    Cells,
    Changes,
    Content,
    FileCells,
    MemoryCells,
    SqliteCells,
    blob_key,
    difference,
)
from tests.properties.model_truth import POOL, POOL_MEMBERS, Fact, Meant, Saved, ThreadTruth
from tests.unit.store.ended import enter, pool

__all__ = ["NAMES", "WRITERS", "Holder", "Scene"]

NAMES = ("t", "u", "v")
WRITERS = ("a", "b", "c", "d")
_PROCESSES = {
    "a": "worker",
    "b": "worker",
    "c": "second",
    "d": "other",
    "officer": "officer",
    "operator": "operator",
}


@dataclass
class Holder:
    """A process that holds a store open."""

    label: str
    who: str
    key: str
    store: Opened


def _enrolled(document: RosterDocument) -> RosterDocument:
    """The roster with everybody in it, and the pool."""
    people = (identity("second"), identity("other"), identity("officer", Role.PRIVACY))
    everybody = msgspec.structs.replace(document, identities=(*document.identities, *people))
    return pool(POOL, *POOL_MEMBERS)(everybody)


class Scene:
    """A world, its processes, the truth, and what was done to it behind everybody's back.

    Args:
        backend: memory, sqlite or file.
        tally: How often each thing happened, for whoever asks whether it did.
    """

    def __init__(self, backend: str, tally: Counter[str]) -> None:
        self.backend = backend
        self.tally = tally
        self._folder = None if backend == "memory" else Path(tempfile.mkdtemp())
        self._drawn = 0
        self.world = Deployment(self._folder, backend="file" if backend == "file" else "sqlite")
        enter(self.world, _enrolled)
        self.cells: Cells = MemoryCells(self.world.memory)
        if self._folder is not None:
            path = self._folder / "store.db"
            self.cells = FileCells(path) if backend == "file" else SqliteCells(path)
        self.truth = {name: ThreadTruth(name) for name in NAMES}
        self.threads: dict[str, bytes] = {}
        """The id of every name that was ever saved under."""
        self.keys = {who: who for who in _PROCESSES.values()}
        """The name of the key that each identity writes with; empty if it has none."""
        self.ended: set[str] = set()
        self.roots = ["root"]
        self.undo: list[Changes] = []
        """What brings the genuine content back, in the order to be undone in reverse."""
        self.strays: set[str] = set()
        """Processes that have written a second history while rows were missing."""
        self.seen: dict[tuple[str, str], bytes | None] = {}
        """What each process has looked at of each thread; None: nobody can tell."""
        self.holders = {label: self._opened(label) for label in _PROCESSES}
        self.watcher = self.reader()

    # ------------------------------------------------------------------ processes

    def random(self, size_bytes: int) -> bytes:
        """The same bytes in every run, so that a history can be repeated."""
        self._drawn += 1
        return hashlib.shake_256(b"%d" % self._drawn).digest(size_bytes)

    def _opened(self, label: str) -> Holder:
        who = _PROCESSES[label]
        key = self.keys[who] or who
        return Holder(label, who, key, self.world.open(key, random_bytes=self.random))

    def reader(self) -> Opened:
        """A new process that only reads."""
        return self.world.open(None, read_only=True, random_bytes=self.random)

    def reopen(self, label: str) -> None:
        """End a process and begin another one, with the newest key of its identity."""
        opened = self._opened(label)
        self.holders[label].store.close()
        self.holders[label] = opened
        for name in NAMES:
            self.seen.pop((label, name), None)

    def close(self) -> None:
        """End everything."""
        self.world.close()
        if self._folder is not None:
            shutil.rmtree(self._folder)

    @property
    def clean(self) -> bool:
        """Whether the store is as it was written."""
        return not self.undo

    # ------------------------------------------------------------------ what handles have seen

    def is_stale(self, label: str, name: str) -> bool | None:
        """Whether others wrote since this process looked; None if nobody can tell."""
        token = self.truth[name].view.token
        seen = self.seen.get((label, name), token)
        return None if seen is None else seen != token

    def looked(self, label: str, name: str, token: bytes) -> None:
        """A first look adopts what is newest; later ones do not."""
        self.seen.setdefault((label, name), token)

    def took_up(self, label: str, name: str) -> None:
        """A load or a save that succeeded goes on from what is newest."""
        self.seen[label, name] = self.truth[name].view.token

    def was_refused(self, label: str, name: str) -> None:
        """Somebody changed the store: how far the look came is not to be known."""
        self.seen[label, name] = None

    def doubt(self, name: str) -> None:
        """Entries are gone again: who had met them goes on as if somebody had written."""
        for label, seen in self.seen:
            if seen == name:
                self.seen[label, seen] = None

    # ------------------------------------------------------------------ writing

    def write(
        self, label: str, name: str, meant: Meant, call: Callable[[], Any]
    ) -> tuple[Any, SealpointError | None]:
        """Call something that writes, and take into the truth whatever landed."""
        holder = self.holders[label]
        offered, given = holder.store.storage.offered, holder.store.storage.given
        given.clear()
        mark, before = len(offered), None if self.clean else self.cells.all()
        found, refused = None, None
        try:
            found = call()
        except SealpointError as error:
            refused = error
        stray = False
        for thread, seq, header in offered[mark:]:
            stray |= self._landed(holder, name, meant, (thread, seq, header))
        if stray:
            assert before is not None, "two histories in a store that nobody has changed"
            assert refused is not None, f"acknowledged and beside the history: {found}"
            self.strays.add(label)
            self.tally["a second history written and refused"] += 1
            self.undo.append(difference(self.cells.all(), before))
        elif before is not None:
            # What was written where an attacker had been is genuine from now on, and so is a blob
            # that was given while one lay there already.
            made = self.cells.all().keys() - before.keys()
            kept = {blob_key(self.backend, *place): (blob,) for place, blob in given.items()}
            self.undo = [
                {
                    key: kept.get(key) if value is None else value
                    for key, value in changes.items()
                    if key not in made
                }
                for changes in self.undo
            ]
        return found, refused

    def _landed(
        self, holder: Holder, name: str, meant: Meant, offer: tuple[bytes, int, bytes]
    ) -> bool:
        """Take an entry into the truth if it landed; True if it landed beside the history."""
        thread, seq, raw = offer
        try:
            record = holder.store.storage.inner.read(thread, seq)
        except SealpointError:
            return False
        if record is None or record.header != raw:
            return False
        truth, header, entry = self.truth[name], parse_header(raw), link_hash(raw)
        if any(fact.hash == entry for fact in truth.facts):
            return False
        if seq != len(truth.facts) or (seq and header.prev != truth.facts[-1].hash.hex()):
            return True
        self.threads[name] = thread
        saved = None
        if header.kind is Kind.CHECKPOINT:
            assert record.body is not None
            ref = CheckpointRef(
                id=parse_body(header.kind, header.body, record.body).id,
                seq=seq,
                time=header.at,
                writer=holder.who,
                metadata=dict(meant.metadata or {}),
                entry=entry.hex(),
                parent=meant.parent,
            )
            saved = Saved(ref, meant)
        gone = meant.gone if header.kind is Kind.PRUNE else frozenset()
        truth.add(Fact(kind=header.kind, hash=entry, by=holder.who, saved=saved, gone=gone))
        return False

    # ------------------------------------------------------------------ the disk

    def change(self, changes: Changes) -> None:
        """Change the store behind everybody's back, so that it can be undone."""
        before = self.cells.all()
        self.undo.append({key: before.get(key) for key in changes})
        self.tally["changed behind everybody's back"] += 1
        self.cells.put(changes)

    def content_of(self, name: str, content: Content) -> Content:
        """The cells of one thread."""
        thread = self.threads.get(name, b"nothing")
        return {
            key: value
            for key, value in content.items()
            if key[1] == thread or thread.hex() in str(key[2])
        }

    @property
    def known_threads(self) -> set[bytes]:
        """The threads that the anchor has seen, and the store chain."""
        return {STORE_CHAIN} | {
            self.threads[name] for name, each in self.truth.items() if each.view.exists
        }
