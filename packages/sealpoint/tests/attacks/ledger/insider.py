# SPDX-License-Identifier: Apache-2.0
"""An attacker with a key: entries that are well made in every way but one.

What a test breaks is one rule, never the signature by accident: headers name the right place and
the right links unless a field is changed, and are signed with real keys.
"""

import hashlib
import sqlite3
from typing import Any

import msgspec

from sealpoint.api._store_location import StoreLocation
from sealpoint.ledger import (
    Body,
    CheckpointBody,
    Header,
    Kind,
    Marks,
    encode_body,
    link_hash,
    parse_header,
    skip_seq,
)
from sealpoint.signing import PrivateKey
from sealpoint.storage import Record
from tests.attacks.ledger.tampered_store import TamperedStore, entry_rows
from tests.ledgers import SALT, sealed, session_world

__all__ = ["Insider", "key_of", "put", "replace"]


def key_of(scene: TamperedStore, identity: str) -> PrivateKey:
    """The private key of an identity of the scene."""
    return StoreLocation.find(scene.url, **scene.places).files.keys.signer(identity)


def put(database: sqlite3.Connection, thread: bytes, seq: int, record: Record) -> None:
    """Insert a row as it is."""
    database.execute(
        "INSERT INTO entries (thread, seq, header, seals, body, payload) VALUES (?, ?, ?, ?, ?, ?)",
        (thread, seq, record.header, record.seals, record.body, record.payload),
    )


def replace(database: sqlite3.Connection, thread: bytes, seq: int, record: Record) -> None:
    """Put a row in the place of another."""
    database.execute("DELETE FROM entries WHERE thread = ? AND seq = ?", (thread, seq))
    put(database, thread, seq, record)


class Insider:
    """Writes what would be the next entry of a thread, or another in the place of one."""

    def __init__(self, scene: TamperedStore, name: str, *, thread: bytes | None = None) -> None:
        self.thread = scene.thread_id(name) if thread is None else thread
        with scene.raw() as database:
            self.rows = entry_rows(database, self.thread)
        self.headers = [parse_header(row[0]) for row in self.rows]

    @property
    def next_seq(self) -> int:
        """The position after the newest entry."""
        return len(self.rows)

    def header(
        self, kind: Kind, body: bytes, signer: PrivateKey, seq: int, **changes: Any
    ) -> Header:
        """A header for a position, with some fields changed."""
        before = self.headers[seq - 1]
        marks = Marks.of(before).after(kind, seq)
        made = Header(
            store=before.store,
            epoch=0,
            ns=before.ns,
            thread=before.thread,
            gen=0,
            seq=seq,
            prev=link_hash(self.rows[seq - 1][0]).hex(),
            skip=link_hash(self.rows[skip_seq(seq)][0]).hex(),
            kind=kind,
            fence=marks.fence,
            pause=marks.pause,
            owner=marks.owner,
            roster=before.roster,
            at=before.at,
            by=signer.public.id.raw.hex(),
            body=hashlib.sha256(body).hexdigest(),
        )
        return msgspec.structs.replace(made, **changes)

    def checkpoint(self, signer: PrivateKey, seq: int | None = None, **changes: Any) -> Record:
        """A checkpoint with a state of the attacker's own, signed by a key."""
        return self._state(Kind.CHECKPOINT, signer, seq, **changes)

    def held(self, signer: PrivateKey) -> Record:
        """The same as one that a pause held back, at the next position."""
        return self._state(Kind.HELD, signer, None)

    def _state(self, kind: Kind, signer: PrivateKey, seq: int | None, **changes: Any) -> Record:
        payload = b"\x81\xa4note\xa6bought"
        root = hashlib.sha256(payload).hexdigest()
        known = {at: Record(*row[:3]) for at, row in enumerate(self.rows)}
        world = session_world(known)
        body = encode_body(CheckpointBody(salt=SALT, id="bought", root=root, world=world))
        record = self.entry(kind, body, signer, seq, **changes)
        return Record(record.header, record.seals, record.body, payload)

    def entry(
        self,
        kind: Kind,
        body: Body | bytes,
        signer: PrivateKey,
        seq: int | None = None,
        **changes: Any,
    ) -> Record:
        """An entry of any kind, signed by a key; at the next position unless another is named."""
        data = body if isinstance(body, bytes) else encode_body(body)
        place = self.next_seq if seq is None else seq
        return sealed(self.header(kind, data, signer, place, **changes), data, signer)
