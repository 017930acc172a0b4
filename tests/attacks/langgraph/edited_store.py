# SPDX-License-Identifier: Apache-2.0
"""A graph that waits for an answer in a sealed store, and somebody who reaches for its bytes.

A verdict counts only with its controls: the store was usable before the edit, a reopen without an
edit says the same, and the edit really landed. That the same edits work on the framework's own
saver is in `test_stock_saver.py`.
"""

import asyncio
import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from langgraph.types import Command

from sealpoint.adapters.langgraph import SealedSaver
from sealpoint.api import Store
from sealpoint.api._location import StoreLocation
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
from tests.adapters.langgraph.stores import opened, places, url_of
from tests.attacks.langgraph.desks import Desk, config_of
from tests.attacks.ledger.raw_editor import DatabaseEditor, DirectoryEditor, RawEditor
from tests.ledgers import SALT, seals

__all__ = ["ALARMS", "BACKENDS", "EditedStore", "ending"]

BACKENDS = ("sqlite", "file")
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


class EditedStore:
    """Two threads that paid once and wait for the second answer; `other` is there to take from."""

    def __init__(self, home: Path, backend: str, shape: str) -> None:
        self.home, self.backend, self.shape = home, backend, shape
        self.desk = Desk(shape)
        with self.open() as store:
            graph = self.graph(store)
            for name in ("t", "other"):
                where = config_of(name)
                graph.invoke({"amount": 1}, where)
                graph.invoke(Command(resume="yes"), where)
                if name == "t":
                    self.ids = {"t": bytes.fromhex(store.thread("t").id)}
                    self._older = self.copied()
                graph.invoke({"amount": 2}, where)
                self.ids[name] = bytes.fromhex(store.thread(name).id)
            self.truth = graph.get_state(config_of()).values
            self.registry = store.registry

    def open(self, identity: str = "worker") -> Store:
        """The store, as a new process opens it."""
        return opened(self.backend, self.home, identity=identity)

    def graph(self, store: Store) -> Any:
        """The graph with a saver of its own."""
        return self.desk.builder().compile(checkpointer=SealedSaver(store))

    @property
    def editor(self) -> RawEditor:
        """Who has the database or the directory, and no key."""
        disk = self.home / "disk"
        if self.backend == "sqlite":
            return DatabaseEditor(disk / "agents.db")
        return DirectoryEditor(disk)

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

    def questions(self) -> list[int]:
        """Where the pending question was written: once for each namespace that it shows in."""
        rows = self.rows()
        asked = {seq: _body(rows[seq]).question for seq in self.find(Kind.RESULTS)}
        newest = [question for question in asked.values() if question is not None][-1]
        return [seq for seq, question in asked.items() if question == newest]

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

    def sound(self) -> None:
        """Two controls: usable as it is, and a reopen without an edit says the same."""
        with self.open() as store:
            state = self.graph(store).get_state(config_of())
            assert state.values == self.truth, "not usable before the edit"
            assert state.interrupts, "no question is pending"
            report = store.verify()
            assert report.ok, f"not sound before the edit: {report.findings}"

    def endings(self, face: str, name: str = "t") -> dict[str, type[SealpointError] | None]:
        """How every way to go on and to read ends, in a new process; no node may run."""
        self.desk.ran.clear()
        with self.open() as store:
            graph = self.graph(store)
            if face == "sync":
                found = {way: ending(call) for way, call in _ways(graph, config_of(name)).items()}
            else:
                found = asyncio.run(_async_endings(graph, config_of(name)))
        assert not self.desk.ran, f"{self.desk.ran} ran"
        return found


def _make(folder: Path) -> None:
    """Make a directory and those above it, each for its owner alone."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o700)


def _body(row: Record) -> Any:
    header = parse_header(row.header)
    return parse_body(header.kind, header.body, row.body or b"")


def _ways(graph: Any, where: Any) -> dict[str, Callable[[], object]]:
    return {
        "go on": lambda: graph.invoke(None, where),
        "answer": lambda: graph.invoke(Command(resume="yes"), where),
        "turn": lambda: graph.invoke({"amount": 3}, where),
        "edit": lambda: graph.update_state(where, {"amount": 3}, as_node="plan"),
        "show": lambda: graph.get_state(where, subgraphs=True),
        "list": lambda: list(graph.get_state_history(where)),
    }


async def _async_endings(graph: Any, where: Any) -> dict[str, type[SealpointError] | None]:
    async def listed() -> list[Any]:
        return [each async for each in graph.aget_state_history(where)]

    ways = {
        "go on": graph.ainvoke(None, where),
        "answer": graph.ainvoke(Command(resume="yes"), where),
        "turn": graph.ainvoke({"amount": 3}, where),
        "edit": graph.aupdate_state(where, {"amount": 3}, as_node="plan"),
        "show": graph.aget_state(where, subgraphs=True),
        "list": listed(),
    }
    found: dict[str, type[SealpointError] | None] = {}
    for way, call in ways.items():
        try:
            await call
        except SealpointError as error:
            found[way] = type(error)
        else:
            found[way] = None
    return found
