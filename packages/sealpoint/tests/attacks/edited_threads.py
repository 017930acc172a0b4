# SPDX-License-Identifier: Apache-2.0
"""A sealed store of any framework, and somebody who reaches for its bytes.

A verdict counts only with its controls: the store was usable before the edit, a reopen without an
edit says the same, and the edit really landed. What usable means, each framework says in `sound`.
"""

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from sealpoint.api import Store
from sealpoint.api._store_location import StoreLocation
from sealpoint.codec import Registry
from sealpoint.errors import Forked, NotTrusted, RolledBack, SealpointError, Tampered, Unanchored
from sealpoint.ledger import (
    Body,
    Header,
    Kind,
    encode_body,
    encode_header,
    link_hash,
    parse_body,
    parse_header,
    skip_seq,
)
from sealpoint.signing import PrivateKey
from sealpoint.storage import Record
from tests.adapters.langgraph.stores import opened, path_of, places, url_of
from tests.attacks.ledger.raw_editor import RawEditor, editor_of
from tests.effort import in_soak, in_turn
from tests.ledgers import SALT, seals

__all__ = ["ALARMS", "BACKENDS", "EditedThreads", "ending"]

BACKENDS = (*in_turn("sqlite", "file"), in_soak("postgres"))
"""What is attacked lies above the backend; the attacks of `tests/attacks/ledger` run on each."""
ALARMS = (Tampered, RolledBack, Forked, Unanchored, NotTrusted)
"""What says that the store is not what it was."""


def ending(call: Callable[[], object]) -> type[SealpointError] | None:
    """How a call is refused; None if it is not."""
    try:
        call()
    except SealpointError as error:
        return type(error)
    return None


class EditedThreads(ABC):
    """Threads of a store on disk: `ids` says which, `t` is attacked unless another is named."""

    ids: dict[str, bytes]
    registry: Registry
    _older: Callable[[], None]
    """Puts an older copy of everything back."""

    def __init__(self, home: Path, backend: str) -> None:
        self.home, self.backend = home, backend

    @abstractmethod
    def sound(self) -> None:
        """Two controls: usable as it is, and a reopen without an edit says the same."""

    def open(self, identity: str = "worker") -> Store:
        """The store, as a new process opens it."""
        return opened(self.backend, self.home, identity=identity)

    @property
    def editor(self) -> RawEditor:
        """Who has the database or the directory, and no key."""
        return editor_of(self.backend, path_of(self.backend, self.home))

    # ------------------------------------------------------------------ the attacker

    def rows(self, name: str = "t") -> dict[int, Record]:
        """The records of a thread."""
        return self.editor.rows(self.ids[name])

    def put(self, rows: dict[int, Record], name: str = "t") -> None:
        """Let a thread have these records and no others."""
        self.editor.put_rows(self.ids[name], rows)

    def append(self, record: Record) -> None:
        """Put a record after the newest one."""
        rows = self.rows()
        self.put({**rows, len(rows): record})

    def header(self, seq: int, name: str = "t") -> Header:
        """The header of an entry."""
        return parse_header(self.rows(name)[seq].header)

    def body(self, seq: int, name: str = "t") -> Any:
        """What an entry says."""
        return _body(self.rows(name)[seq])

    def find(self, kind: Kind, name: str = "t", **fields: Any) -> list[int]:
        """Where entries of a kind lie that say something, oldest first."""
        return [
            seq
            for seq, row in self.rows(name).items()
            if parse_header(row.header).kind is kind
            and all(getattr(_body(row), key) == value for key, value in fields.items())
        ]

    def head(self, lane: str | None = "") -> int:
        """Where the newest checkpoint lies, of the root or, with None, of any namespace."""
        found = self.find(Kind.CHECKPOINT) if lane is None else self.find(Kind.CHECKPOINT, lane="")
        return found[-1]

    def key(self, identity: str) -> PrivateKey:
        """A key that was stolen."""
        place = StoreLocation.find(url_of(self.backend, self.home), **places(self.home))
        return place.files.keys.signer(identity)

    def forged(self, kind: Kind, body: Body, payload: bytes, by: PrivateKey | None) -> Record:
        """What would be the next entry: well made in every way, signed by a key or by none."""
        rows, data = self.rows(), encode_body(body)
        seq, before = len(rows), parse_header(rows[len(rows) - 1].header)
        header = msgspec.structs.replace(
            before,
            seq=seq,
            prev=link_hash(rows[seq - 1].header).hex(),
            skip=link_hash(rows[skip_seq(seq)].header).hex(),
            kind=kind,
            by=before.by if by is None else by.public.id.raw.hex(),
            body=hashlib.sha256(data).hexdigest(),
        )
        raw = encode_header(header)
        return Record(raw, b"[]" if by is None else seals(raw, by), data, payload)

    def rewritten(self, seq: int, *, state: Any = None, **fields: Any) -> None:
        """Change what an entry says, with every digest made right again; the seals are the old."""
        rows = self.rows()
        row, body, payload = rows[seq], self.body(seq), rows[seq].payload
        if state is not None:
            payload = self.registry.encode(state)
            fields["root"] = hashlib.sha256(payload).hexdigest()
        data = encode_body(msgspec.structs.replace(body, **fields))
        header = msgspec.structs.replace(self.header(seq), body=hashlib.sha256(data).hexdigest())
        self.put({**rows, seq: Record(encode_header(header), row.seals, data, payload)})

    def state(self, seq: int) -> Any:
        """The value that an entry holds."""
        return self.registry.decode(self.rows()[seq].payload or b"")

    def root_of(self, value: Any) -> tuple[bytes, str]:
        """A value as it is stored, and its digest."""
        payload = self.registry.encode(value)
        return payload, hashlib.sha256(payload).hexdigest()

    @property
    def salt(self) -> str:
        """What every body begins with."""
        return SALT

    def roll_back(self) -> None:
        """Put the copy back that was made before the second turn."""
        self._older()

    # ------------------------------------------------------------------ the controls

    @contextmanager
    def landing(self) -> Iterator[None]:
        """All three controls around an edit, which is taken back in the end."""
        self.sound()
        before, genuine = self.editor.raw(), self.copied()
        try:
            yield
            assert self.editor.raw() != before, "the edit did not land"
        finally:
            genuine()

    def copied(self) -> Callable[[], None]:
        """Copy everything; what is returned puts the copy back in the place of the store."""
        if self.backend == "postgres":
            return self.editor.copied()
        disk = self.home / "disk"
        files = {path: path.read_bytes() for path in disk.rglob("*") if path.is_file()}

        def put_back() -> None:
            shutil.rmtree(disk)
            disk.mkdir(mode=0o700)
            for path, data in files.items():
                _make(path.parent)
                path.touch(mode=0o600)
                path.write_bytes(data)

        return put_back


def _make(folder: Path) -> None:
    """Make a directory and those above it, each for its owner alone."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o700)


def _body(row: Record) -> Any:
    header = parse_header(row.header)
    return parse_body(header.kind, header.body, row.body or b"")
