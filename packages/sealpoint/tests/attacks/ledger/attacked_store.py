# SPDX-License-Identifier: Apache-2.0
"""A store in memory, in a database or in a directory, who edits it, and every way to read.

A verdict counts only with three controls: before the edit every read ended as it should, a reopen
without an edit ends the same and verifies, and the edit really landed.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from sealpoint.errors import SealpointError
from sealpoint.gate import Thread
from sealpoint.ledger import (
    Body,
    CheckpointBody,
    Kind,
    Marks,
    encode_body,
    encode_header,
    link_hash,
    parse_header,
    skip_seq,
)
from sealpoint.signing import Role
from sealpoint.storage import Record
from sealpoint.store import CheckpointRef
from tests.attacks.ledger.raw_editor import MemoryEditor, RawEditor, editor_of
from tests.deployment import Deployment
from tests.effort import in_soak, in_turn
from tests.ledgers import identity, key, seals, session_world

__all__ = ["ALL_BACKENDS", "BACKENDS", "AttackedStore"]

ALL_BACKENDS = (in_soak("memory"), *in_turn("sqlite", "file", "postgres"))
BACKENDS = (in_soak("memory"), *in_turn("sqlite", "file"), in_soak("postgres"))

Saved = list[tuple[CheckpointRef, Any]]
"""The checkpoints of a thread with their states, oldest first."""

Outcome = dict[str, type[SealpointError] | None]
"""Every read by its name: None if it gave exactly what was saved, else how it was refused."""


@dataclass
class AttackedStore:
    """A store with what was saved in it, and somebody who reaches for its bytes."""

    world: Deployment
    editor: RawEditor
    saved: dict[str, Saved] = field(default_factory=dict)
    erased: dict[str, int] = field(default_factory=dict)
    """How many of a thread's checkpoints, the oldest, are known to be erased."""

    def __post_init__(self) -> None:
        self.worker = self.world.open()

    @classmethod
    def planned(cls, folder: Path, backend: str) -> "AttackedStore":
        """A new store whose people are a worker, an operator, an officer and another writer."""
        world = Deployment() if backend == "memory" else Deployment(folder, backend=backend)
        world.enrol(
            identity("officer", Role.PRIVACY),
            identity("other"),
            identity("elsewhere", Role.PRIVACY, namespaces=("billing",)),
        )
        if backend == "memory":
            return cls(world, MemoryEditor(world.memory))
        return cls(world, editor_of(backend, folder / "store.db"))

    def save(self, name: str, number: int) -> CheckpointRef:
        """Save a state of several blobs, and remember what is true from now on."""
        state = {
            "shared": [f"line {place} that all have {'x' * 40}" for place in range(60)],
            "own": [f"line {place} of {name} {number} {'y' * 40}" for place in range(20)],
        }
        ref = self.worker.thread(name).save(
            state, id=f"{name}-{number}", metadata={"number": number}, world={"n": 0}
        )
        self.saved.setdefault(name, []).append((ref, state))
        return ref

    def prune(self, name: str, **rule: Any) -> None:
        """Prune as the owner."""
        self.worker.thread(name).prune(**rule)

    def erase(self, name: str) -> None:
        """Erase as the officer; the worker goes on with a new process."""
        self.world.open("officer").thread(name).erase(reason="as was asked for")
        self.erased[name] = len(self.saved[name])
        self.worker = self.world.open()

    def leave(self) -> None:
        """Let every process that looks at the store end."""
        for opened in self.world._opened:
            opened.close()
        self.world._opened.clear()

    # ------------------------------------------------------------------ the attacker

    def thread(self, name: str) -> bytes:
        """The id of a thread."""
        return self.world.thread_id(name)

    def rows(self, name: str) -> dict[int, Record]:
        """The records of a thread."""
        return self.editor.rows(self.thread(name))

    def put(self, name: str, rows: dict[int, Record | None]) -> None:
        """Put records in the place of others, or None to take one away."""
        merged: dict[int, Record | None] = {**self.rows(name), **rows}
        kept = {seq: row for seq, row in merged.items() if row is not None}
        self.editor.put_rows(self.thread(name), kept)

    def strip(self, name: str, *positions: int, body: bool = True) -> None:
        """Take the bodies and payloads of records away, or the payloads alone."""
        rows = self.rows(name)
        self.put(
            name,
            {
                seq: Record(
                    rows[seq].header, rows[seq].seals, None if body else rows[seq].body, None
                )
                for seq in positions
            },
        )

    def forged(
        self,
        name: str,
        kind: Kind,
        body: Body,
        signer: str,
        *,
        seq: int | None = None,
        **fields: Any,
    ) -> Record:
        """What would be the next entry of a thread, well made in every way, by a key of one's own.

        Args:
            name: The thread.
            kind: What it records.
            body: What it says.
            signer: Whose key signs.
            seq: Its position, if it is not the next.
            fields: Fields of the header that are to be otherwise.
        """
        rows = self.rows(name)
        if isinstance(body, CheckpointBody) and body.world is None:
            body = msgspec.structs.replace(body, world=session_world(rows))
        data = encode_body(body)
        at = len(rows) if seq is None else seq
        before = parse_header(rows[at - 1].header)
        header = msgspec.structs.replace(
            before,
            seq=at,
            prev=link_hash(rows[at - 1].header).hex(),
            skip=link_hash(rows[skip_seq(at)].header).hex(),
            kind=kind,
            **Marks.of(before).after(kind, at)._asdict(),
            by=key(signer).public.id.raw.hex(),
            body=hashlib.sha256(data).hexdigest(),
            roster=1,
        )
        raw = encode_header(msgspec.structs.replace(header, **fields))
        return Record(raw, seals(raw, key(signer)), data)

    # ------------------------------------------------------------------ the victim

    def read(self) -> Outcome:
        """How every read of a fresh process ends; anything but the truth or an error fails."""
        found: Outcome = {}
        store = self.world.open(None, read_only=True)
        for name, saved in self.saved.items():
            thread = store.thread(name)
            found[f"load {name}"] = _ending(partial(_check_newest, thread, saved))
            for ref, state in saved:
                found[f"load {ref.id}"] = _ending(partial(_check_older, thread, ref, state))
            left = saved[self.erased.get(name, 0) :]
            found[f"history {name}"] = _ending(partial(_check_history, thread, left))
        return found

    def after(self, edit: Callable[[], object]) -> dict[str, type[SealpointError]]:
        """The reads that end otherwise after an edit, with all three controls."""
        before = self.read()
        assert self.read() == before, "a reopen without an edit differs"
        assert self.world.open().verify().ok, "not sound before the edit"
        bytes_before = self.everything()
        edit()
        assert self.everything() != bytes_before, "the edit did not land"
        after = self.read()
        changed = {read: error for read, error in after.items() if error is not before[read]}
        assert None not in changed.values(), f"an edit made something readable: {changed}"
        return {read: error for read, error in changed.items() if error is not None}

    def everything(self) -> dict[str, Any]:
        """All records and blobs of the threads."""
        return {
            name: (self.rows(name), self.editor.blobs(self.thread(name))) for name in self.saved
        }

    def findings(self) -> list[str]:
        """The codes of what a full verification finds."""
        return [finding.code for finding in self.world.open().verify().findings]


def _ending(read: Callable[[], None]) -> type[SealpointError] | None:
    try:
        read()
    except SealpointError as error:
        return type(error)
    return None


def _check_newest(thread: Thread, saved: Saved) -> None:
    loaded = thread.load()
    assert (loaded.ref, loaded.state) == saved[-1], "not what was saved last"


def _check_older(thread: Thread, ref: CheckpointRef, state: Any) -> None:
    assert thread.load(ref).state == state, "not what was saved"


def _check_history(thread: Thread, saved: Saved) -> None:
    found = [ref.id for ref in thread.history()]
    assert found == [ref.id for ref, _ in reversed(saved)], "not what was saved"
