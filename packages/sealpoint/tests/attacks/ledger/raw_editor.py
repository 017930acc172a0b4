# SPDX-License-Identifier: Apache-2.0
"""Somebody with access to the bytes of a store, whatever it is kept in, and with no key.

Each editor goes through the backend's own door: plain SQL on the database, plain files in the
directory, the tables of the store in memory. None of them calls the code under attack.
"""

import re
import shutil
import sqlite3
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from sealpoint.storage import Record
from sealpoint.storage._record_packing import _DICTIONARY
from sealpoint.storage.memory import MemoryStorage
from tests.postgres_server import schema_of, shared_admin

__all__ = [
    "DatabaseEditor",
    "DirectoryEditor",
    "MemoryEditor",
    "RawEditor",
    "ServerEditor",
    "columns_of",
    "editor_of",
    "group_folder",
    "read_group",
    "record_of",
    "write_group",
]

Rows = dict[int, Record]


class RawEditor(Protocol):
    """What every editor can do."""

    def rows(self, thread: bytes) -> Rows:
        """The records of a thread by position."""
        ...

    def put_rows(self, thread: bytes, rows: Rows) -> None:
        """Let a thread have these records and no others."""
        ...

    def blobs(self, thread: bytes) -> dict[bytes, bytes]:
        """The blobs of a thread by digest."""
        ...

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Let a thread have these blobs and no others."""
        ...

    def copied(self) -> Callable[[], None]:
        """Copy everything; what is returned puts the copy back in the place of the store."""
        ...

    def raw(self) -> bytes:
        """Every byte that lies anywhere in the store, names of files included."""
        ...


class MemoryEditor:
    """Reaches into the store of a process."""

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage

    def rows(self, thread: bytes) -> Rows:
        """The records of a thread by position."""
        return dict(self._storage._records.get(thread, {}))

    def put_rows(self, thread: bytes, rows: Rows) -> None:
        """Let a thread have these records and no others."""
        self._storage._records.pop(thread, None)
        self._storage._positions.pop(thread, None)
        if rows:
            self._storage._records[thread] = dict(rows)
            self._storage._positions[thread] = sorted(rows)

    def blobs(self, thread: bytes) -> dict[bytes, bytes]:
        """The blobs of a thread by digest."""
        held = self._storage._blobs.items()
        return {digest: blob for (owner, digest), blob in held if owner == thread}

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Let a thread have these blobs and no others."""
        for digest in self.blobs(thread):
            del self._storage._blobs[thread, digest]
        for digest, blob in blobs.items():
            self._storage._blobs[thread, digest] = blob
        self._storage._digests[thread] = sorted(blobs)

    def copied(self) -> Callable[[], None]:
        """Copy everything; what is returned puts the copy back in the place of the store."""
        held = self._storage
        records = {thread: dict(rows) for thread, rows in held._records.items()}
        blobs = dict(held._blobs)

        def put_back() -> None:
            for thread in {*held._records, *records}:
                self.put_rows(thread, records.get(thread, {}))
            for thread in {owner for owner, _ in {*held._blobs, *blobs}}:
                mine = {digest: blob for (owner, digest), blob in blobs.items() if owner == thread}
                self.put_blobs(thread, mine)

        return put_back

    def raw(self) -> bytes:
        """Every byte that lies anywhere in the store, names of files included."""
        held = self._storage
        rows = [row for rows in held._records.values() for row in rows.values()]
        parts = [part for row in rows for part in (row.header, row.seals, row.body, row.payload)]
        parts += [part for (_, digest), blob in held._blobs.items() for part in (digest, blob)]
        return b"\n".join([part for part in parts if part is not None] + list(held._labels))


class DatabaseEditor:
    """Opens the database with plain SQL."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _open(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(self._path, isolation_level=None))

    def rows(self, thread: bytes) -> Rows:
        """The records of a thread by position."""
        sql = "SELECT seq, header, seals, body, payload FROM entries WHERE thread = ?"
        with self._open() as database:
            return {seq: Record(*parts) for seq, *parts in database.execute(sql, (thread,))}

    def put_rows(self, thread: bytes, rows: Rows) -> None:
        """Let a thread have these records and no others."""
        with self._open() as database:
            database.execute("DELETE FROM entries WHERE thread = ?", (thread,))
            for seq, row in rows.items():
                database.execute(
                    "INSERT INTO entries (thread, seq, header, seals, body, payload) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (thread, seq, row.header, row.seals, row.body, row.payload),
                )

    def blobs(self, thread: bytes) -> dict[bytes, bytes]:
        """The blobs of a thread by digest."""
        sql = "SELECT digest, data FROM blobs WHERE thread = ?"
        with self._open() as database:
            return dict(database.execute(sql, (thread,)).fetchall())

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Let a thread have these blobs and no others."""
        with self._open() as database:
            database.execute("DELETE FROM blobs WHERE thread = ?", (thread,))
            for pair in blobs.items():
                sql = "INSERT INTO blobs (thread, digest, data) VALUES (?, ?, ?)"
                database.execute(sql, (thread, *pair))

    def _files(self) -> list[Path]:
        return sorted(self._path.parent.glob(f"{self._path.name}*"))

    def copied(self) -> Callable[[], None]:
        """Copy everything; what is returned puts the copy back in the place of the store."""
        copy = {path: path.read_bytes() for path in self._files()}

        def put_back() -> None:
            for path in self._files():
                path.unlink()
            for path, data in copy.items():
                path.write_bytes(data)

        return put_back

    def raw(self) -> bytes:
        """Every byte that lies anywhere in the store, names of files included."""
        return b"\n".join(path.read_bytes() for path in self._files())


class ServerEditor:
    """Is the superuser of the server, with plain SQL; packs and unpacks by the format."""

    def __init__(self, place: Path) -> None:
        self._schema = schema_of(place)

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement, and say what it found."""
        server = shared_admin()
        server.execute(f"SET search_path = {self._schema}")
        cursor = server.execute(sql, values)
        return cursor.fetchall() if cursor.description else []

    def rows(self, thread: bytes) -> Rows:
        """The records of a thread by position."""
        sql = "SELECT seq, head, body, payload FROM entries WHERE thread = %s ORDER BY seq"
        return {seq: record_of(*columns) for seq, *columns in self.run(sql, thread)}

    def put_rows(self, thread: bytes, rows: Rows) -> None:
        """Let a thread have these records and no others, none of them packed."""
        self.run("DELETE FROM entries WHERE thread = %s", thread)
        sql = "INSERT INTO entries (thread, seq, head, body, payload) VALUES (%s, %s, %s, %s, %s)"
        for seq, row in rows.items():
            self.run(sql, thread, seq, *columns_of(row))

    def blobs(self, thread: bytes) -> dict[bytes, bytes]:
        """The blobs of a thread by digest."""
        return dict(self.run("SELECT digest, data FROM blobs WHERE thread = %s", thread))

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Let a thread have these blobs and no others."""
        self.run("DELETE FROM blobs WHERE thread = %s", thread)
        for pair in blobs.items():
            sql = "INSERT INTO blobs (thread, digest, data) VALUES (%s, %s, %s)"
            self.run(sql, thread, *pair)

    def _tables(self) -> dict[str, list[tuple[Any, ...]]]:
        return {name: self.run(f"TABLE {name}") for name in ("entries", "blobs", "labels")}

    def copied(self) -> Callable[[], None]:
        """Copy everything; what is returned puts the copy back in the place of the store."""
        copy = self._tables()

        def put_back() -> None:
            for name, rows in copy.items():
                self.run(f"DELETE FROM {name}")  # noqa: S608
                for row in rows:
                    places = ", ".join(["%s"] * len(row))
                    self.run(f"INSERT INTO {name} VALUES ({places})", *row)  # noqa: S608

        return put_back

    def raw(self) -> bytes:
        """Every byte that lies anywhere in the store, unpacked where it is packed."""
        found: list[bytes] = []
        for name, rows in self._tables().items():
            for row in rows:
                parts = [each for each in row if isinstance(each, bytes)]
                found += [unpacked(each) if name == "entries" else each for each in parts[1:]]
                found.append(parts[0])
        return b"\n".join(found)


def editor_of(backend: str, path: Path) -> RawEditor:
    """Who edits the store that a backend keeps at a path, or in the schema for it."""
    editors: dict[str, Callable[[Path], RawEditor]] = {
        "sqlite": DatabaseEditor,
        "file": DirectoryEditor,
        "postgres": ServerEditor,
    }
    return editors[backend](path)


Columns = tuple[bytes, bytes | None, bytes | None]
"""Head, body and payload of a record on a server."""


def record_of(head: bytes, body: bytes | None, payload: bytes | None) -> Record:
    """The record that the columns of a row on a server hold.

    Raises:
        zlib.error: Somebody has damaged them.
    """
    whole = unpacked(head)
    end = 4 + int.from_bytes(whole[:4], "big")
    return Record(
        whole[4:end],
        whole[end:],
        None if body is None else unpacked(body),
        None if payload is None else unpacked(payload),
    )


def columns_of(row: Record) -> Columns:
    """The columns of a row on a server that hold a record, none of them packed."""
    body, payload = (None if each is None else b"\0" + each for each in (row.body, row.payload))
    return b"\0" + len(row.header).to_bytes(4, "big") + row.header + row.seals, body, payload


def unpacked(data: bytes) -> bytes:
    """A part of a record as the format has it packed."""
    if data[:1] == b"\0":
        return data[1:]
    return zlib.decompressobj(-12, zdict=_DICTIONARY).decompress(data[1:])


_MAGIC = b"sealpoint group 1\n"
_GROUP = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}")
_BLOB = re.compile(r"[0-9a-f]{64}")
_NONE = 0xFFFF_FFFF


class DirectoryEditor:
    """Walks through the directory, reads its files and writes its own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _thread(self, thread: bytes) -> Path:
        (found,) = (path for path in self._path.rglob(thread.hex()) if path.is_dir())
        return found

    def _groups(self, thread: bytes) -> list[Path]:
        files = (path for path in self._thread(thread).rglob("*") if path.is_file())
        return [path for path in files if _GROUP.fullmatch(path.name)]

    def rows(self, thread: bytes) -> Rows:
        """The records of a thread by position."""
        found: Rows = {}
        for path in self._groups(thread):
            records = read_group(path.read_bytes())
            found |= dict(enumerate(records, start=int(path.name[:16], 16)))
        return dict(sorted(found.items()))

    def put_rows(self, thread: bytes, rows: Rows) -> None:
        """Let a thread have these records and no others, each in a file of its own."""
        for path in self._groups(thread):
            path.unlink()
        for seq, row in rows.items():
            leaf = self._thread(thread) / group_folder(seq)
            _make(leaf)
            _write(leaf / f"{seq:016x}-{seq:016x}", write_group([row]))

    def blobs(self, thread: bytes) -> dict[bytes, bytes]:
        """The blobs of a thread by digest."""
        files = (path for path in self._thread(thread).rglob("*") if path.is_file())
        named = [path for path in files if _BLOB.fullmatch(path.name)]
        return {bytes.fromhex(path.name): path.read_bytes() for path in named}

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Let a thread have these blobs and no others."""
        folder = self._thread(thread) / "blobs"
        for path in folder.rglob("*"):
            if path.is_file():
                path.unlink()
        for digest, blob in blobs.items():
            shelf = folder / digest.hex()[0]
            _make(shelf)
            _write(shelf / digest.hex(), blob)

    def copied(self) -> Callable[[], None]:
        """Copy everything; what is returned puts the copy back in the place of the store."""
        copy = self._path.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._path, copy)

        def put_back() -> None:
            shutil.rmtree(self._path)
            shutil.copytree(copy, self._path)

        return put_back

    def raw(self) -> bytes:
        """Every byte that lies anywhere in the store, names of files included."""
        files = sorted(path for path in self._path.rglob("*"))
        names = [str(path.relative_to(self._path)).encode() for path in files]
        return b"\n".join([*names, *(path.read_bytes() for path in files if path.is_file())])


def group_folder(last: int) -> str:
    """Where the group lies whose last record is at a position, in the directory of its thread."""
    digits = f"{last:x}"
    return "/".join((f"{len(digits):02x}", *digits[:-1]))


def read_group(data: bytes) -> list[Record]:
    """The records of a group, which is one that nobody has damaged."""
    (count,) = struct.unpack_from(">H", data, len(_MAGIC))
    at = len(_MAGIC) + 2
    lengths = [struct.unpack_from(">IIII", data, at + 16 * place) for place in range(count)]
    at += 16 * count
    found = []
    for four in lengths:
        parts: list[bytes | None] = []
        for length in four:
            parts.append(None if length == _NONE else data[at : at + length])
            at += 0 if length == _NONE else length
        header, seals, body, payload = parts
        found.append(Record(header or b"", seals or b"", body, payload))
    return found


def write_group(records: Sequence[Record]) -> bytes:
    """The bytes of a group."""
    parts = [(row.header, row.seals, row.body, row.payload) for row in records]
    lengths = [[_NONE if part is None else len(part) for part in four] for four in parts]
    return b"".join(
        (
            _MAGIC,
            struct.pack(">H", len(records)),
            *(struct.pack(">IIII", *four) for four in lengths),
            *(part or b"" for four in parts for part in four),
        )
    )


def _make(folder: Path) -> None:
    """Make a directory and those above it, each for its owner alone."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o700)


def _write(path: Path, data: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(data)
