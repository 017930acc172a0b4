# SPDX-License-Identifier: Apache-2.0
"""The raw content of a store, with the records of a thread as whoever holds the disk sees them.

What is put back is put back byte for byte: a change is a set of cells, rows of the database or
whole files, and so is what undoes it.
"""

import re
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from sealpoint.storage import Record
from tests.attacks.ledger.raw_editor import (
    columns_of,
    group_folder,
    read_group,
    record_of,
    write_group,
)
from tests.properties.model_cells import (
    BLOB,
    ENTRY,
    FILE,
    LABEL,
    Cells,
    Changes,
    Content,
    FileCells,
    Key,
    ServerCells,
    SqliteCells,
    Value,
)

__all__ = ["Disk", "Rows", "disk_of"]

Rows = dict[int, Record]


class Disk(Protocol):
    """The content of a store, and what it means."""

    def content(self, threads: Iterable[bytes]) -> Content:
        """Every cell of some threads, and the labels."""
        ...

    def put(self, changes: Changes) -> None:
        """Change some cells."""
        ...

    def rows(self, content: Content, thread: bytes) -> Rows:
        """The records of a thread by position, as far as they can be read."""
        ...

    def with_rows(
        self, content: Content, thread: bytes, rows: Mapping[int, Record | None]
    ) -> Changes:
        """What changes if records are put in the place of others, or taken away (None)."""
        ...

    def blobs(self, content: Content, thread: bytes) -> list[Key]:
        """The cells that are blobs of a thread, in order."""
        ...

    def labels(self, content: Content) -> list[Key]:
        """The cells that are labels, in order."""
        ...

    def positions(self, thread: bytes, key: Key) -> range:
        """The positions of a thread that a cell holds records of."""
        ...


def disk_of(backend: str, folder: Path) -> Disk:
    """The disk of a store that is kept in a folder."""
    if backend == "file":
        return _Directory(folder)
    path = folder / "agents.db"
    if backend == "sqlite":
        return _Database(SqliteCells(path), lambda value: Record(*value), _four)
    return _Database(ServerCells(path), lambda value: record_of(*value), columns_of)


class _Database:
    """A store in a database.

    Args:
        cells: Its rows.
        read: The record in one of them.
        write: The row of a record.
    """

    def __init__(
        self, cells: Cells, read: Callable[[Value], Record], write: Callable[[Record], Value]
    ) -> None:
        self._cells, self._read, self._write = cells, read, write
        self.put = cells.put

    def content(self, threads: Iterable[bytes]) -> Content:
        chosen = set(threads)
        return {key: value for key, value in self._cells.all().items() if key[1] in chosen}

    def rows(self, content: Content, thread: bytes) -> Rows:
        found = sorted(key for key in content if key[:2] == (ENTRY, thread))
        return {key[2]: self._read(content[key]) for key in found}

    def with_rows(
        self,
        content: Content,  # noqa: ARG002 (a row is a cell of its own)
        thread: bytes,
        rows: Mapping[int, Record | None],
    ) -> Changes:
        return {
            (ENTRY, thread, seq): None if row is None else self._write(row)
            for seq, row in rows.items()
        }

    def blobs(self, content: Content, thread: bytes) -> list[Key]:
        return sorted(key for key in content if key[:2] == (BLOB, thread))

    def labels(self, content: Content) -> list[Key]:
        return sorted(key for key in content if key[0] == LABEL)

    def positions(self, thread: bytes, key: Key) -> range:
        return range(key[2], key[2] + 1) if key[:2] == (ENTRY, thread) else range(0)


_GROUP = re.compile(r"[0-9a-f/]*/([0-9a-f]{16})-([0-9a-f]{16})")


class _Directory(FileCells):
    """A store in a directory."""

    def content(self, threads: Iterable[bytes]) -> Content:
        folders = [_folder(thread) for thread in threads]
        return {
            (FILE, b"", str(path.relative_to(self._folder))): (path.read_bytes(),)
            for folder in (*folders, "labels")
            for path in (self._folder / folder).rglob("*")
            if path.is_file()
        }

    def rows(self, content: Content, thread: bytes) -> Rows:
        found: Rows = {}
        for key, (data,) in content.items():
            if span := self.positions(thread, key):
                try:
                    records = read_group(data)
                except struct.error:
                    continue  # somebody has damaged it
                found |= dict(zip(span, records, strict=False))
        return dict(sorted(found.items()))

    def with_rows(
        self, content: Content, thread: bytes, rows: Mapping[int, Record | None]
    ) -> Changes:
        changes: dict[Key, Value | None] = {}
        left = dict(rows)
        for key, (data,) in content.items():
            span = self.positions(thread, key)
            if not any(seq in rows for seq in span):
                continue
            found = dict(zip(span, read_group(data), strict=True)) | {
                seq: left.pop(seq) for seq in span if seq in left
            }
            if all(found.values()):
                changes[key] = (write_group([row for row in found.values() if row]),)
                continue
            changes[key] = None
            changes |= {_cell(thread, seq): _group(row) for seq, row in found.items() if row}
        return changes | {_cell(thread, seq): _group(row) for seq, row in left.items() if row}

    def blobs(self, content: Content, thread: bytes) -> list[Key]:
        return sorted(key for key in content if key[2].startswith(f"{_folder(thread)}/blobs/"))

    def labels(self, content: Content) -> list[Key]:
        return sorted(key for key in content if key[2].startswith("labels/"))

    def positions(self, thread: bytes, key: Key) -> range:
        start = _folder(thread)
        found = _GROUP.fullmatch(key[2].removeprefix(start)) if key[2].startswith(start) else None
        return range(int(found[1], 16), int(found[2], 16) + 1) if found else range(0)


def _folder(thread: bytes) -> str:
    return f"threads/{thread.hex()[:2]}/{thread.hex()}"


def _cell(thread: bytes, seq: int) -> Key:
    return FILE, b"", f"{_folder(thread)}/{group_folder(seq)}/{seq:016x}-{seq:016x}"


def _group(row: Record) -> Value:
    return (write_group([row]),)


def _four(row: Record) -> Value:
    return row.header, row.seals, row.body, row.payload
