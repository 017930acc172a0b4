# SPDX-License-Identifier: Apache-2.0
"""A team behind the gate, and somebody who reaches for the bytes of its store.

A verdict counts only with three controls: before the edit the store was usable, a reopen without
an edit verifies and says the same, and the edit really landed.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sealpoint.errors import SealpointError
from sealpoint.gate import Request
from sealpoint.ledger import (
    Body,
    CheckpointBody,
    Kind,
    Marks,
    Origin,
    ResumeBody,
    encode_body,
    encode_header,
    link_hash,
    parse_body,
    parse_header,
    skip_seq,
)
from sealpoint.storage import Record
from sealpoint.store import CheckpointRef
from sealpoint.world import World
from tests.attacks.ledger.raw_editor import RawEditor, editor_of
from tests.deployment import Deployment
from tests.effort import in_soak, in_turn
from tests.ledgers import SALT, key, seals, session_world
from tests.unit.gate.team import READ, SHELL, Team

__all__ = ["BACKENDS", "AttackedTeam"]

BACKENDS = (*in_turn("sqlite", "file"), in_soak("postgres"))
"""What is attacked lies above the backend; the attacks of `tests/attacks/ledger` run on each."""


class AttackedTeam(Team):
    """A team, and somebody with its database or directory and no key but stolen ones."""

    def __init__(self, folder: Path, backend: str) -> None:
        super().__init__(Deployment(folder, backend=backend))
        self.editor: RawEditor = editor_of(backend, folder / "store.db")

    def origin_of(self, ref: CheckpointRef, name: str) -> Origin:
        """What a copy of a checkpoint says that it is a copy of."""
        return Origin(thread=self.world.thread_id(name).hex(), entry=ref.entry, at=ref.time)

    def shared(self, *pool: str) -> None:
        """A thread of a pool that its honest member wrote last."""
        self.pool("pods", *pool)
        self.thread().save({"n": 0}, id="c0", world=READ)
        self.thread().handoff(to="pods", reason="shared")
        self.fresh().resume(world=READ)
        self.fresh().save({"n": 1}, id="c1", world=READ)

    # ------------------------------------------------------------------ the attacker

    def rows(self, name: str = "t") -> dict[int, Record]:
        """The records of a thread."""
        return self.editor.rows(self.world.thread_id(name))

    def put(self, rows: dict[int, Record | None], name: str = "t") -> None:
        """Put records in the place of others, or None to take one away."""
        merged: dict[int, Record | None] = {**self.rows(name), **rows}
        kept = {seq: row for seq, row in merged.items() if row is not None}
        self.editor.put_rows(self.world.thread_id(name), kept)

    def truncate(self, length: int, name: str = "t") -> None:
        """Take away whatever lies at a position or later."""
        self.put(dict.fromkeys(range(length, len(self.rows(name)))), name)

    def append(self, *records: Record, name: str = "t") -> None:
        """Put records after the newest one."""
        first = len(self.rows(name))
        self.put(dict(enumerate(records, start=first)), name)

    def find(self, kind: Kind, name: str = "t") -> int:
        """The position of the newest entry of a kind."""
        return max(
            seq for seq, row in self.rows(name).items() if parse_header(row.header).kind is kind
        )

    def body(self, seq: int, name: str = "t") -> Any:
        """What an entry says."""
        row = self.rows(name)[seq]
        header = parse_header(row.header)
        return parse_body(header.kind, header.body, row.body or b"")

    def forged(
        self,
        kind: Kind,
        body: Body | bytes,
        signer: str,
        *,
        name: str = "t",
        rows: dict[int, Record] | None = None,
        **fields: Any,
    ) -> Record:
        """What would be the next entry of a thread, well made in every way, by a stolen key."""
        known = self.rows(name) if rows is None else rows
        if isinstance(body, CheckpointBody) and body.world is None:
            body = msgspec.structs.replace(body, world=session_world(known))
        data = body if isinstance(body, bytes) else encode_body(body)
        at, before = len(known), parse_header(known[len(known) - 1].header)
        header = msgspec.structs.replace(
            before,
            seq=at,
            prev=link_hash(known[at - 1].header).hex(),
            skip=link_hash(known[skip_seq(at)].header).hex(),
            kind=kind,
            **Marks.of(before).after(kind, at)._asdict(),
            by=key(signer).public.id.raw.hex(),
            body=hashlib.sha256(data).hexdigest(),
        )
        raw = encode_header(msgspec.structs.replace(header, **fields))
        return Record(raw, seals(raw, key(signer)), data)

    def slip(self, kind: Kind, body: Body | bytes, signer: str, name: str = "t") -> None:
        """Append such an entry."""
        self.append(self.forged(kind, body, signer, name=name), name=name)

    def slip_resume(self, *, name: str = "t", at: datetime, roster: int, **fields: Any) -> None:
        """Append a resume of the newest checkpoint that no gate has judged, by the worker's key.

        It names a time and a roster of the attacker's choice; every other claim in it is true.
        """
        handle = self.fresh(name=name)
        handle.load()
        checkpoint = next(iter(handle.history())).entry
        release = handle._reader.release_of(checkpoint)
        assert release is not None
        body = ResumeBody(
            salt=self.salt,
            owner="worker",
            basis=handle._state.chain.tip().basis[0],
            checkpoint=checkpoint,
            release=release.digest,
            released=release.seq,
            world=World.from_dict(SHELL).digest,
            leaves=SHELL,
            rules=("tools",),
        )
        body = msgspec.structs.replace(body, **fields)
        record = self.forged(Kind.RESUME, body, "worker", name=name, at=at, roster=roster)
        self.append(record, name=name)

    @property
    def salt(self) -> str:
        """What every body begins with."""
        return SALT

    # ------------------------------------------------------------------ the controls

    def sound(self) -> None:
        """Two controls: usable as it is, and a reopen without an edit says the same."""
        for _ in range(2):
            store = self.world.open("operator", gated=True)
            assert store.requests().failures == (), "not usable before the edit"
            for name in store.threads().names:
                store.thread(name).load()
            report = store.verify()
            assert report.ok, f"not sound before the edit: {report.findings}"

    @contextmanager
    def landing(self) -> Iterator[None]:
        """All three controls around an edit."""
        self.sound()
        before = self.editor.raw()
        yield
        assert self.editor.raw() != before, "the edit did not land"

    def ending(self, call: Callable[[], object]) -> type[SealpointError]:
        """How a call is refused; that it is not fails."""
        try:
            found = call()
        except SealpointError as error:
            return type(error)
        raise AssertionError(f"not refused: {found!r}")

    def resumed(self, who: str = "worker", **wish: Any) -> type[SealpointError]:
        """How a resume of a fresh process is refused."""
        return self.ending(lambda: self.fresh(who).resume(**({"world": SHELL} | wish)))

    def waiting(self, *approvals: str) -> Request:
        """A thread whose resume in a wider world has these approvals."""
        self.thread().save({"n": 1}, id="c1", world=READ)
        self.thread().save({"n": 2}, id="c2", world=READ)
        request = self.ask()
        if approvals:
            self.approve(request, *approvals)
        return request
