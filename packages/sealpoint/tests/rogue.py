# SPDX-License-Identifier: Apache-2.0
"""A member of the roster with a genuine key, whose process runs other code than ours.

It appends whatever its key can sign and moves whatever anchor its process can move. Nothing of its
own code checks anything; the storage and the anchors are the real ones.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from sealpoint.anchor import Position
from sealpoint.errors import SealpointError, UsageError
from sealpoint.ledger import (
    Body,
    CheckpointBody,
    EraseBody,
    HandoffBody,
    Header,
    Kind,
    Marks,
    ResumeBody,
    encode_body,
    encode_header,
    link_hash,
    parse_header,
    skip_seq,
)
from sealpoint.storage import Record
from sealpoint.store import Core, thread_slot
from tests.ledgers import SALT, key, seals

__all__ = ["Rogue"]

_PAYLOAD = b"\x81\xa4note\xa6bought"
"""The state that it saves, as the codec has it."""


class Rogue:
    """One thread in the hands of somebody who follows no rule.

    Args:
        core: The parts of its process: storage and anchors.
        who: The identity whose key it has.
        name: The thread.
    """

    def __init__(self, core: Core, who: str, name: str = "t") -> None:
        self._core = core
        self.key = key(who)
        self.slot = thread_slot(core.parts.secret, core.namespace, name)
        position = core.anchor.get(self.slot)
        assert position is not None
        self.thread = position.thread
        self._left_out: dict[str, int] = {}

    def leave_out(self, **marks: int) -> None:
        """From here on, name these entries for the session, the pause or the owner in force."""
        self._left_out = marks

    @property
    def rows(self) -> list[Record]:
        """The records of the thread."""
        return [record for _, record in self._core.storage.scan(self.thread, 0)]

    def write(self, kind: Kind, body: Body, payload: bytes | None = None, **fields: Any) -> int:
        """Append an entry, well made in every way that is not named, and give its position."""
        rows, data = self.rows, encode_body(body)
        seq, before = len(rows), parse_header(rows[-1].header)
        marks = Marks.of(before).after(kind, seq)._asdict()
        for mark, value in self._left_out.items():
            if marks[mark] != seq:
                marks[mark] = value
        made: Header = msgspec.structs.replace(
            before,
            seq=seq,
            prev=link_hash(rows[-1].header).hex(),
            skip=link_hash(rows[skip_seq(seq)].header).hex(),
            kind=kind,
            by=self.key.public.id.raw.hex(),
            body=hashlib.sha256(data).hexdigest(),
            roster=self._core.trust().roster.seq,
            **marks,
        )
        raw = encode_header(msgspec.structs.replace(made, **fields))
        record = Record(raw, seals(raw, self.key), data, payload)
        self._core.storage.append(self.thread, seq, [record], blobs={})
        return seq

    def resume(self, owner: str, *, header: Mapping[str, Any] | None = None, **fields: Any) -> int:
        """Begin a session, as an owner of this name; with some fields of the header changed."""
        body = ResumeBody(salt=SALT, owner=owner, basis=len(self.rows) - 1, **fields)
        return self.write(Kind.RESUME, body, **(header or {}))

    def save(self, kind: Kind = Kind.CHECKPOINT, **fields: Any) -> int:
        """Save a state of its own."""
        root = hashlib.sha256(_PAYLOAD).hexdigest()
        body = CheckpointBody(salt=SALT, id=f"bought-{len(self.rows)}", root=root, **fields)
        return self.write(kind, body, _PAYLOAD)

    def hand_off(self, owner: str) -> int:
        """Give the thread to somebody; nobody has approved that."""
        return self.write(Kind.HANDOFF, HandoffBody(salt=SALT, owner=owner, reason="mine now"))

    def erase(self, **header: Any) -> int:
        """Erase the thread, and leave everything in the store."""
        return self.write(Kind.ERASE, EraseBody(salt=SALT, reason="mine"), **header)

    def anchor(self, *, epoch: int | None = None) -> Position:
        """Move every anchor of its process to what it wrote last, as far as they let it.

        First with the marks that its own entry names, and where an anchor refuses to forget, with
        the highest that the anchor has seen.

        Args:
            epoch: Claim this epoch instead of that of its entry.
        """
        rows = self.rows
        header = parse_header(rows[-1].header)
        seen = self._core.anchor.get(self.slot)
        assert seen is not None
        claimed = Position(
            self.thread,
            header.epoch if epoch is None else epoch,
            header.gen,
            header.seq,
            link_hash(rows[-1].header),
            header.kind is Kind.ERASE,
            header.fence,
            header.pause,
            header.owner,
            link_hash(rows[header.owner].header),
            parse_header(rows[header.pause].header).kind is Kind.PAUSE,
        )
        kept = msgspec.structs.replace(
            claimed,
            fence=max(seen.fence, claimed.fence),
            pause=max(seen.pause, claimed.pause),
            owner=max(seen.owner, claimed.owner),
            owner_entry=seen.owner_entry if seen.owner >= claimed.owner else claimed.owner_entry,
            paused=seen.paused if seen.pause >= claimed.pause else claimed.paused,
        )
        for position in (claimed, kept):
            try:
                if self._core.anchor.advance(self.slot, seen, position) == position:
                    return position
            except (UsageError, SealpointError):
                continue
        raise AssertionError("no anchor was moved")
