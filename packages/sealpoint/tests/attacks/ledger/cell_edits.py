# SPDX-License-Identifier: Apache-2.0
"""An attacker who knows no schema: every row and value of any SQLite file, changed in every way.

It reads the names of tables and columns from the file and knows nothing of what they mean. Edits
come in a fixed order. What the file's own constraints refuse raises `sqlite3.Error`.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

__all__ = ["Damage", "damages", "page_damages", "schema_damages"]

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Damage:
    """One edit: what it touches, what it does, and how."""

    table: str
    column: str
    """Empty where a whole row or table is touched."""
    what: str
    edit: Callable[[sqlite3.Connection], object]

    def __str__(self) -> str:
        return f"{self.what} {self.table}.{self.column}"


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]


def _tables(database: sqlite3.Connection) -> list[str]:
    sql = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    return [name for (name,) in database.execute(sql)]


def _where(columns: list[str]) -> str:
    return " AND ".join(f'"{column}" IS ?' for column in columns)


def _set(table: str, columns: list[str], row: Row, column: str, value: Any) -> Callable[..., Any]:
    sql = f'UPDATE "{table}" SET "{column}" = ? WHERE {_where(columns)}'  # noqa: S608 # the attack
    return lambda database: database.execute(sql, (value, *row))


def _insert(table: str, row: Row) -> Callable[..., Any]:
    places = ", ".join("?" * len(row))
    sql = f'INSERT OR REPLACE INTO "{table}" VALUES ({places})'  # noqa: S608 # the attack
    return lambda database: database.execute(sql, row)


def _delete(table: str, columns: list[str], row: Row) -> Callable[..., Any]:
    sql = f'DELETE FROM "{table}" WHERE {_where(columns)}'  # noqa: S608 # the attack
    return lambda database: database.execute(sql, row)


def _swap(table: str, columns: list[str], row: Row, other: Row, column: int) -> Callable[..., Any]:
    """Exchange one value of two rows."""
    mine, theirs = list(row), list(other)
    mine[column], theirs[column] = other[column], row[column]

    def edit(database: sqlite3.Connection) -> None:
        database.execute("BEGIN")
        for gone in (row, other):
            _delete(table, columns, gone)(database)
        for made in (mine, theirs):
            places = ", ".join("?" * len(made))
            database.execute(f'INSERT INTO "{table}" VALUES ({places})', made)  # noqa: S608
        database.execute("COMMIT")

    return edit


def _values(value: Any, *, dense: bool) -> Iterator[tuple[str, Any]]:
    """Other values in the place of one."""
    yield "set null in", None
    yield "empty", b""
    yield "set text in", "text"
    yield "set a number in", 7
    yield "set a fraction in", 0.5
    yield "set a huge number in", 2**63 - 1
    yield "set a negative number in", -1
    yield "blow up", bytes(2 * 1024 * 1024)
    if isinstance(value, int):
        for step in (1, -1, 1000, 2**40):
            yield "shift", value + step
    if isinstance(value, bytes) and value:
        count = len(value) if dense else 6
        for place in {len(value) * turn // count for turn in range(count)} | {len(value) - 1}:
            flipped = bytearray(value)
            flipped[place] ^= 1 << (place % 8)
            yield "flip a bit of", bytes(flipped)
        yield "shorten", value[:-1]
        yield "lengthen", value + b"\0"
        yield "set the text of", value.decode("latin-1")


def damages(
    database: sqlite3.Connection, older: dict[str, list[Row]], *, dense: bool = False
) -> Iterator[Damage]:
    """Every value, row and table changed.

    Args:
        database: The file.
        older: The rows of each table at an earlier time.
        dense: Flip a bit of every byte instead of some.
    """
    for table in _tables(database):
        columns = _columns(database, table)
        rows = database.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608 # the attack
        for number, row in enumerate(rows):
            others = [rows[(number + step) % len(rows)] for step in (1, len(rows) // 2, -1)]
            for place, column in enumerate(columns):
                for what, value in _values(row[place], dense=dense):
                    yield Damage(table, column, what, _set(table, columns, row, column, value))
                for other in others:
                    if other[place] != row[place]:
                        copied = _set(table, columns, row, column, other[place])
                        yield Damage(table, column, "copy a sibling's", copied)
                        swapped = _swap(table, columns, row, other, place)
                        yield Damage(table, column, "swap with a sibling's", swapped)
            yield Damage(table, "", "delete a row of", _delete(table, columns, row))
            for other in others:
                for place in range(1, len(columns)):
                    # A sibling's row with this row's first values: what is moved keeps its slot.
                    moved = (*row[:place], *other[place:])
                    if moved != row:
                        yield Damage(table, "", "move a row of", _insert(table, moved))
        yield from _table_damages(table, columns, rows, older.get(table, []))


def _table_damages(
    table: str, columns: list[str], rows: list[Row], older: list[Row]
) -> Iterator[Damage]:
    def empty(database: sqlite3.Connection) -> None:
        database.execute(f'DELETE FROM "{table}"')  # noqa: S608 # the attack

    def restore(database: sqlite3.Connection) -> None:
        empty(database)
        for row in older:
            _insert(table, row)(database)

    def reverse(database: sqlite3.Connection) -> None:
        empty(database)
        for row, other in zip(rows, reversed(rows), strict=True):
            _insert(table, (row[0], *other[1:]))(database)

    yield Damage(table, "", "empty", empty)
    yield Damage(table, "", "restore the older rows of", restore)
    yield Damage(table, "", "renumber", reverse)
    for row in rows:
        if row not in older:
            yield Damage(table, "", "delete a newer row of", _delete(table, columns, row))


_SCRIPTS = {
    "drop": 'DROP TABLE "{table}"',
    "rename": 'ALTER TABLE "{table}" RENAME TO elsewhere',
    "rename a column of": 'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO other',
    "add a column to": 'ALTER TABLE "{table}" ADD COLUMN other BLOB',
    "add an index to": 'CREATE INDEX planted ON "{table}" ("{column}")',
    "add a trigger before inserts into": """
        CREATE TRIGGER planted BEFORE INSERT ON "{table}" BEGIN SELECT RAISE(IGNORE); END""",
    "add a trigger after inserts into": """
        CREATE TRIGGER planted AFTER INSERT ON "{table}"
        BEGIN UPDATE "{table}" SET "{column}" = x'00'; END""",
    "add a view of": 'CREATE VIEW planted AS SELECT * FROM "{table}"',
    "put a view in the place of": """
        ALTER TABLE "{table}" RENAME TO elsewhere;
        CREATE VIEW "{table}" AS SELECT * FROM elsewhere""",
    "copy and drop": """
        CREATE TABLE elsewhere AS SELECT * FROM "{table}"; DROP TABLE "{table}";
        ALTER TABLE elsewhere RENAME TO {table}""",
}
_PRAGMAS = ("application_id = 1", "user_version = 2", "journal_mode = DELETE")


def _script(sql: str, database: sqlite3.Connection) -> None:
    database.executescript(sql)


def schema_damages(database: sqlite3.Connection) -> Iterator[Damage]:
    """Tables, indexes, triggers and views, dropped, added or put in the place of others."""
    for table in _tables(database):
        last = _columns(database, table)[-1]
        for what, script in _SCRIPTS.items():
            sql = script.format(table=table, column=last)
            yield Damage(table, "", what, partial(_script, sql))
    for pragma in _PRAGMAS:
        yield Damage("", "", pragma, partial(_script, f"PRAGMA {pragma}"))


def page_damages(
    data: bytes, older: bytes, *, page_bytes: int = 4096
) -> Iterator[tuple[str, bytes]]:
    """The whole file, changed byte by byte and page by page, without regard to what is in it."""
    pages = len(data) // page_bytes

    def page(number: int, of: bytes = data) -> bytes:
        return of[number * page_bytes : (number + 1) * page_bytes]

    def with_page(number: int, content: bytes, of: bytes = data) -> bytes:
        start = number * page_bytes
        return of[:start] + content + of[start + page_bytes :]

    for number in range(pages):
        base = number * page_bytes
        header = base + 100 if number == 0 else base
        inside = {base + (number * 997 + turn * 611) % page_bytes for turn in range(6)}
        for offset in sorted({*range(header, header + 16), *inside}):
            for mask in (1, 0x80, 0xFF):
                flipped = bytearray(data)
                flipped[offset] ^= mask
                yield f"flip byte {offset}", bytes(flipped)
        yield f"clear page {number}", with_page(number, bytes(page_bytes))
        for other in {(number + 1) % pages, (number * 7 + 3) % pages, 0} - {number}:
            swapped = with_page(other, page(number), with_page(number, page(other)))
            yield f"swap pages {number} and {other}", swapped
            yield f"copy page {other} over {number}", with_page(number, page(other))
        if page(number, older) and page(number, older) != page(number):
            yield f"restore page {number}", with_page(number, page(number, older))
        yield f"cut at page {number}", data[:base]
        yield f"cut inside page {number}", data[: base + 1 + number * 131 % page_bytes]
        yield from _cell_damages(data, header, number)
    for offset in range(100):
        flipped = bytearray(data)
        flipped[offset] ^= 0xFF
        yield f"flip byte {offset} of the file's header", bytes(flipped)


def _cell_damages(data: bytes, header: int, number: int) -> Iterator[tuple[str, bytes]]:
    """Cells out of order: an index that leads readers astray."""
    if data[header] not in {2, 5, 10, 13}:
        return
    first = header + (12 if data[header] in {2, 5} else 8)
    cells = int.from_bytes(data[header + 3 : header + 5], "big")
    for one, two in {(0, 1), (0, cells - 1), (cells // 2, cells - 1), (cells // 3, cells // 2)}:
        if 0 <= one < two < cells:
            changed = bytearray(data)
            left, right = first + 2 * one, first + 2 * two
            changed[left : left + 2] = data[right : right + 2]
            changed[right : right + 2] = data[left : left + 2]
            yield f"swap cells {one} and {two} of page {number}", bytes(changed)
            changed[right : right + 2] = data[right : right + 2]
            yield f"double cell {two} of page {number}", bytes(changed)
