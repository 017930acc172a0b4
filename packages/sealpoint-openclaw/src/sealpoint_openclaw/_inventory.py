# SPDX-License-Identifier: Apache-2.0
"""The inventory of a folder: a digest of each row and file that counts, and none of their content.

Digests are keyed by a secret of the guard. So a store with inventories reveals no token, and nobody
who reads it can test a guess at a short value. A row's digest covers the names and values of its
columns that are not NULL, so a new column of a migration changes no old row.

The rows of an `ordered` table are kept as numbers and digests in order, for each group: a history
of 50,000 events is about a megabyte, of which the store keeps the changed pieces.
"""

import json
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec

from sealpoint.errors import UsageError

DIGEST_BYTES = 16
"""Beyond any search for a second row with the same keyed digest."""
KEY_BYTES = 32
VERSION = 2

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRows:
    """The rows of one group of an ordered table: rising numbers, and a digest for each."""

    numbers: "array[int]"
    digests: bytes

    def since(self, place: int) -> "NumberedRows":
        """Return the rows from a place on."""
        return NumberedRows(
            numbers=self.numbers[place:], digests=self.digests[place * DIGEST_BYTES :]
        )

    def items(self) -> Iterator[tuple[int, bytes]]:
        """Yield each number with its digest."""
        for place, number in enumerate(self.numbers):
            yield number, self.digests[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows of a table, by their keys, or by group and number if it is ordered."""

    rows: Mapping[str, bytes] = field(default_factory=dict)
    partial: Mapping[str, bytes] = field(default_factory=dict)
    """For rows of a table with columns that are filled in once: the digest without these."""
    whole: Mapping[str, bytes] = field(default_factory=dict)
    """For rows of a table with columns that the gateway keeps up to date: the digest with these."""
    groups: Mapping[str, NumberedRows] = field(default_factory=dict)
    shown: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)
    """The part of exact rows that a world shows; it is not stored with the inventory."""

    def __len__(self) -> int:
        return len(self.rows) + sum(len(group.numbers) for group in self.groups.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The rows of a long table that need not be read again, while nothing among them is removed."""

    rowid: int
    """The last of them."""
    count: int
    after: frozenset[str] = frozenset()
    """The keys of the rows that come after it."""
    digest: "blake2b | None" = None
    """The digest of all of them in order, if the table has no keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """The tables of a database, and the version of its schema."""

    version: int
    schema: bytes
    """A digest of all tables, indexes and triggers, as SQL."""
    tables: Mapping[str, Table]
    marks: Mapping[str, "Mark"] = field(default_factory=dict, compare=False)
    """Where the next reading of a running gateway continues; not stored with the inventory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All that a seal says of a folder."""

    databases: Mapping[str, Database]
    """By path from the folder."""
    files: Mapping[str, bytes]

    def to_state(self) -> dict[str, Any]:
        """Return the inventory as a plain value that a checkpoint stores."""
        return {
            "version": VERSION,
            "databases": {
                path: {
                    "version": database.version,
                    "schema": database.schema,
                    "tables": {name: _packed(table) for name, table in database.tables.items()},
                }
                for path, database in self.databases.items()
            },
            "files": dict(self.files),
        }

    @classmethod
    def from_state(cls, state: Any) -> "Inventory":
        """Read what `to_state` gave.

        Raises:
            UsageError: The checkpoint holds no inventory of this version.
        """
        if not isinstance(state, dict) or state.get("version") != VERSION:
            raise UsageError(
                "the newest checkpoint of this thread is not a seal of OpenClaw's state",
                hint="Use another thread: sealpoint openclaw init --thread NAME",
            )
        return cls(
            databases={
                path: Database(
                    version=each["version"],
                    schema=each["schema"],
                    tables={name: _unpacked(table) for name, table in each["tables"].items()},
                )
                for path, each in state["databases"].items()
            },
            files=state["files"],
        )


def _packed(table: Table) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    if table.rows:
        packed["rows"] = dict(table.rows)
    if table.partial:
        packed["partial"] = dict(table.partial)
    if table.whole:
        packed["whole"] = dict(table.whole)
    if table.groups:
        packed["groups"] = {
            name: {"numbers": _number_bytes(group.numbers), "digests": group.digests}
            for name, group in table.groups.items()
        }
    return packed


def _unpacked(packed: Mapping[str, Any]) -> Table:
    groups = {}
    for name, group in packed.get("groups", {}).items():
        numbers = array("q", group["numbers"])
        if sys.byteorder == "big":
            numbers.byteswap()
        groups[name] = NumberedRows(numbers=numbers, digests=group["digests"])
    plain = {name: packed.get(name, {}) for name in ("rows", "partial", "whole")}
    return Table(**plain, groups=groups)


def _number_bytes(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers = array("q", numbers)
        numbers.byteswap()
    return numbers.tobytes()


class Digests:
    """Makes keyed digests of rows, files and values.

    Args:
        key: The secret of the guard, of `KEY_BYTES`.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise UsageError(f"digest key: expected {KEY_BYTES} bytes, found {len(key)}")
        self._row = blake2b(digest_size=DIGEST_BYTES, key=key, person=b"sealpoint row")
        self._rows = blake2b(digest_size=DIGEST_BYTES, key=key, person=b"sealpoint rows")
        self._file = blake2b(digest_size=DIGEST_BYTES, key=key, person=b"sealpoint file")
        self._value = blake2b(digest_size=DIGEST_BYTES, key=key, person=b"sealpoint value")

    def row(self, columns: Iterable[tuple[str, Any]]) -> bytes:
        """Return the digest of columns in the order of their names; NULL is left out."""
        flat = [each for column in columns if column[1] is not None for each in column]
        try:
            data = _encode(flat)
        except UnicodeEncodeError:  # no list is a value of SQLite, so nothing else looks like this
            data = _encode([_plain(each) for each in flat])
        digest = self._row.copy()
        digest.update(data)
        return digest.digest()

    def rows(self) -> "blake2b":
        """Return a digest that is given the digests of rows in order."""
        return self._rows.copy()

    def file(self) -> "blake2b":
        """Return a digest that is given the bytes of a file."""
        return self._file.copy()

    def value(self, value: Any) -> str:
        """Return the digest of a JSON value as text, for a world."""
        digest = self._value.copy()
        digest.update(
            json.dumps(value, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")
        )
        return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Return a text that is not UTF-8 as its bytes, in a list."""
    return [value.encode("utf-8", "surrogateescape")] if isinstance(value, str) else value
