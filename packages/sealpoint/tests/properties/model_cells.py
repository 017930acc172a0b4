# SPDX-License-Identifier: Apache-2.0
"""The raw content of a store as whoever holds the disk sees it: cells that can be put anew.

A cell is a row or a file: a key, and a tuple of values. In memory and in a database the keys are
(kind, thread, place), and the attacker knows what they mean; in a directory they are paths.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from sealpoint.ledger import STORE_CHAIN
from sealpoint.storage import Record
from sealpoint.storage.memory import MemoryStorage
from tests.postgres_server import schema_of, shared_admin

__all__ = [
    "BLOB",
    "ENTRY",
    "FILE",
    "LABEL",
    "Cells",
    "Changes",
    "Content",
    "FileCells",
    "Key",
    "MemoryCells",
    "ServerCells",
    "SqliteCells",
    "Value",
    "blob_key",
    "difference",
    "entries_of",
    "of_store_chain",
]

ENTRY, BLOB, LABEL, FILE = "entry", "blob", "label", "file"

Key = tuple[str, bytes, Any]
"""The kind, the thread (none for a file), and the place: a position, a digest, a label, a path."""
Value = tuple[Any, ...]
Content = dict[Key, Value]
Changes = Mapping[Key, Value | None]
"""New values; None for a cell that goes."""


class Cells(Protocol):
    """The content of a store, to be read and changed behind everybody's back."""

    def all(self) -> Content:
        """Every cell."""
        ...

    def put(self, changes: Changes) -> None:
        """Change some cells."""
        ...


def difference(before: Content, after: Content) -> Changes:
    """The changes that make one content of the other."""
    gone: dict[Key, Value | None] = dict.fromkeys(before.keys() - after.keys())
    return gone | {key: value for key, value in after.items() if before.get(key) != value}


def blob_key(backend: str, thread: bytes, digest: bytes) -> Key:
    """The cell of a blob."""
    if backend != "file":
        return BLOB, thread, digest
    whose, name = thread.hex(), digest.hex()
    return FILE, b"", f"threads/{whose[:2]}/{whose}/blobs/{name[0]}/{name}"


def of_store_chain(key: Key) -> bool:
    """Whether a cell belongs to the store chain."""
    if key[0] == FILE:
        return STORE_CHAIN.hex() in Path(key[2]).parts
    return key[1] == STORE_CHAIN


def entries_of(content: Content, thread: bytes) -> list[Key]:
    """The entries of a thread, in order."""
    return sorted(key for key in content if key[:2] == (ENTRY, thread))


class MemoryCells:
    """The content of a storage in memory."""

    def __init__(self, memory: MemoryStorage) -> None:
        self._memory = memory

    def all(self) -> Content:
        """Every cell."""
        memory = self._memory
        found: Content = {}
        for thread, rows in memory._records.items():
            for seq, row in rows.items():
                found[ENTRY, thread, seq] = (row.header, row.seals, row.body, row.payload)
        for (thread, digest), blob in memory._blobs.items():
            found[BLOB, thread, digest] = (blob,)
        for label, threads in memory._labels.items():
            for thread in threads:
                found[LABEL, thread, label] = (label,)
        return found

    def put(self, changes: Changes) -> None:
        """Change some cells."""
        for (kind, thread, place), value in changes.items():
            if kind == ENTRY:
                self._put_entry(thread, place, value)
            elif kind == BLOB:
                self._memory._forget(thread, [place])
                if value is not None:
                    self._memory._put(thread, {place: value[0]})
            elif value is not None:
                self._memory._labels.setdefault(value[0], {})[thread] = None
            else:
                self._memory._labels.get(place, {}).pop(thread, None)

    def _put_entry(self, thread: bytes, seq: int, value: Value | None) -> None:
        rows = self._memory._records.setdefault(thread, {})
        if value is None:
            rows.pop(seq, None)
        else:
            rows[seq] = Record(*value)
        self._memory._positions[thread] = sorted(rows)
        if not rows:
            del self._memory._records[thread], self._memory._positions[thread]


class SqliteCells:
    """The content of a database file, by plain SQL."""

    _READ = (
        (ENTRY, "SELECT thread, seq, header, seals, body, payload FROM entries"),
        (BLOB, "SELECT thread, digest, data FROM blobs"),
        (LABEL, "SELECT thread, label, label FROM labels"),
    )
    _DELETE = {  # noqa: RUF012 - constant
        ENTRY: "DELETE FROM entries WHERE thread = ? AND seq = ?",
        BLOB: "DELETE FROM blobs WHERE thread = ? AND digest = ?",
        LABEL: "DELETE FROM labels WHERE thread = ? AND label = ?",
    }
    _INSERT = {  # noqa: RUF012 - constant
        ENTRY: "INSERT INTO entries (header, seals, body, payload, thread, seq) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        BLOB: "INSERT INTO blobs (data, thread, digest) VALUES (?, ?, ?)",
        LABEL: "INSERT INTO labels (label, thread) VALUES (?, ?)",
    }

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def _raw(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self._path, isolation_level=None, timeout=30)
        try:
            yield database
        finally:
            database.close()

    def all(self) -> Content:
        """Every cell."""
        with self._raw() as database:
            return {
                (kind, row[0], row[1]): tuple(row[2:])
                for kind, sql in self._READ
                for row in database.execute(sql)
            }

    def put(self, changes: Changes) -> None:
        """Change some cells."""
        with self._raw() as database:
            database.execute("BEGIN IMMEDIATE")
            for (kind, thread, place), value in changes.items():
                database.execute(self._DELETE[kind], (thread, place))
                if value is not None:
                    key = (thread,) if kind == LABEL else (thread, place)
                    database.execute(self._INSERT[kind], (*value, *key))
            database.execute("COMMIT")


class ServerCells:
    """The content of a schema of a server, by plain SQL as its superuser."""

    _READ = (
        (ENTRY, "SELECT thread, seq, head, body, payload FROM entries"),
        (BLOB, "SELECT thread, digest, data FROM blobs"),
        (LABEL, "SELECT thread, label, label FROM labels"),
    )
    _DELETE = {  # noqa: RUF012 - constant
        ENTRY: "DELETE FROM entries WHERE thread = %s AND seq = %s",
        BLOB: "DELETE FROM blobs WHERE thread = %s AND digest = %s",
        LABEL: "DELETE FROM labels WHERE thread = %s AND label = %s",
    }
    _INSERT = {  # noqa: RUF012 - constant
        ENTRY: "INSERT INTO entries (head, body, payload, thread, seq) VALUES (%s, %s, %s, %s, %s)",
        BLOB: "INSERT INTO blobs (data, thread, digest) VALUES (%s, %s, %s)",
        LABEL: "INSERT INTO labels (label, thread) VALUES (%s, %s)",
    }

    def __init__(self, place: Path) -> None:
        self._schema = schema_of(place)

    @contextmanager
    def _raw(self) -> Iterator[Any]:
        server = shared_admin()
        with server.transaction():
            server.execute(f"SET LOCAL search_path = {self._schema}")
            yield server

    def all(self) -> Content:
        """Every cell."""
        with self._raw() as server:
            return {
                (kind, row[0], row[1]): tuple(row[2:])
                for kind, sql in self._READ
                for row in server.execute(sql)
            }

    def put(self, changes: Changes) -> None:
        """Change some cells."""
        with self._raw() as server:
            for (kind, thread, place), value in changes.items():
                server.execute(self._DELETE[kind], (thread, place))
                if value is not None:
                    key = (thread,) if kind == LABEL else (thread, place)
                    server.execute(self._INSERT[kind], (*value, *key))


class FileCells:
    """The content of a directory, file by file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def all(self) -> Content:
        """Every cell."""
        return {
            (FILE, b"", str(path.relative_to(self._folder))): (path.read_bytes(),)
            for path in self._folder.rglob("*")
            if path.is_file()
        }

    def put(self, changes: Changes) -> None:
        """Change some cells."""
        for (_, _, name), value in changes.items():
            path = self._folder / name
            if value is None:
                path.unlink(missing_ok=True)
                continue
            for parent in reversed(path.relative_to(self._folder).parents):
                (self._folder / parent).mkdir(mode=0o700, exist_ok=True)
            path.write_bytes(value[0])
            path.chmod(0o600)
