# SPDX-License-Identifier: Apache-2.0
"""An attacker who knows no schema: every value, row and table of a PostgreSQL schema, changed.

It reads the names of tables and columns from the server's own catalogue and knows nothing of what
they mean. Where a constraint is in the way, it is taken away first. Edits come in a fixed order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
from psycopg import sql

__all__ = ["TableEdit", "definition_edits", "row_edits", "tables"]

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]
Server = psycopg.Connection[Row]


@dataclass(frozen=True, slots=True)
class TableEdit:
    """One edit: what it touches, what it does, and how."""

    table: str
    column: str
    """Empty where a whole row or table is touched."""
    what: str
    make: Callable[[Server], object]

    def __str__(self) -> str:
        return f"{self.what} {self.table}.{self.column}"


def tables(server: Server) -> dict[str, list[str]]:
    """The columns of every table of the schema that comes first in the path."""
    found: dict[str, list[str]] = {}
    for table, column in server.execute(
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position"
    ):
        found.setdefault(table, []).append(column)
    return found


def contents(server: Server) -> Rows:
    """Every row of every table."""
    return {
        table: server.execute(_of("SELECT * FROM {table} ORDER BY {table}::text", table)).fetchall()
        for table in tables(server)
    }


def _of(text: str, table: str, **names: str) -> sql.Composed:
    parts = {name: sql.Identifier(value) for name, value in {"table": table, **names}.items()}
    return sql.SQL(text).format(**parts)  # of constants of this file


def loosen(server: Server, table: str) -> None:
    """Take every constraint of a table away."""
    for (name,) in server.execute(
        "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype <> 'n'",
        (table,),
    ).fetchall():
        server.execute(_of("ALTER TABLE {table} DROP CONSTRAINT {name}", table, name=name))
    for column in tables(server)[table]:
        server.execute(
            _of("ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL", table, column=column)
        )


def _forced(table: str, change: Callable[[Server], object], server: Server) -> None:
    """Make a change, without the constraints where they refuse it."""
    try:
        with server.transaction():
            change(server)
    except (psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded):
        with server.transaction():
            loosen(server, table)
            change(server)


def _where(columns: list[str]) -> sql.Composable:
    same = sql.SQL("{} IS NOT DISTINCT FROM %s")
    return sql.SQL(" AND ").join(same.format(sql.Identifier(each)) for each in columns)


def _set(table: str, columns: list[str], row: Row, column: str, value: Any, server: Server) -> None:  # noqa: PLR0917
    text = sql.SQL("UPDATE {} SET {} = %s WHERE {}").format(
        sql.Identifier(table), sql.Identifier(column), _where(columns)
    )
    server.execute(text, (value, *row))


def _delete(table: str, columns: list[str], row: Row, server: Server) -> None:
    text = sql.SQL("DELETE FROM {} WHERE {}").format(sql.Identifier(table), _where(columns))
    server.execute(text, row)


def _insert(table: str, row: Row, server: Server) -> None:
    places = sql.SQL(", ").join([sql.Placeholder()] * len(row))
    server.execute(sql.SQL("INSERT INTO {} VALUES ({})").format(sql.Identifier(table), places), row)


def _swap(  # noqa: PLR0917
    table: str, columns: list[str], row: Row, other: Row, place: int, server: Server
) -> None:
    mine, theirs = list(row), list(other)
    mine[place], theirs[place] = other[place], row[place]
    for gone in (row, other):
        _delete(table, columns, gone, server)
    for made in (mine, theirs):
        _insert(table, tuple(made), server)


def _fill(table: str, rows: list[Row], server: Server) -> None:
    server.execute(_of("DELETE FROM {table}", table))
    for row in rows:
        _insert(table, row, server)


def _values(value: Any, *, dense: bool) -> Iterator[tuple[str, Any]]:
    """Other values in the place of one."""
    yield "set null in", None
    if isinstance(value, int):
        for what, step in (("shift", 1), ("shift", -1), ("shift", 1000), ("shift far", 2**30)):
            yield what, value + step
        yield "set a negative number in", -1
        yield "set the largest number in", 2**31 - 1
    if isinstance(value, bytes):
        yield "empty", b""
        yield "blow up", bytes(2 * 1024 * 1024)
        yield "lengthen", value + b"\0"
    if isinstance(value, bytes) and value:
        yield "shorten", value[:-1]
        count = len(value) if dense else 6
        for place in sorted({len(value) * turn // count for turn in range(count)}):
            flipped = bytearray(value)
            flipped[place] ^= 1 << (place % 8)
            yield "flip a bit of", bytes(flipped)


def row_edits(server: Server, older: Rows, *, dense: bool = False) -> Iterator[TableEdit]:
    """Every value, row and table changed.

    Args:
        server: A connection that has the schema first in its path.
        older: The rows of each table at an earlier time.
        dense: Flip a bit of every byte instead of some.
    """
    found = contents(server)
    for table, columns in tables(server).items():
        rows = found[table]

        def edit(
            column: str, what: str, change: Callable[[Server], object], table: str = table
        ) -> TableEdit:
            return TableEdit(table, column, what, partial(_forced, table, change))

        for number, row in enumerate(rows):
            others = [rows[(number + step) % len(rows)] for step in (1, len(rows) // 2)]
            for place, column in enumerate(columns):
                for what, value in _values(row[place], dense=dense):
                    yield edit(column, what, partial(_set, table, columns, row, column, value))
                for other in others:
                    if other[place] != row[place]:
                        copied = partial(_set, table, columns, row, column, other[place])
                        yield edit(column, "copy a sibling's", copied)
                        swapped = partial(_swap, table, columns, row, other, place)
                        yield edit(column, "swap with a sibling's", swapped)
            yield edit("", "delete a row of", partial(_delete, table, columns, row))
            yield edit("", "put twice a row of", partial(_insert, table, row))
            for other in others:
                for place in range(1, len(columns)):
                    # A sibling's row under this row's first values.
                    moved = (*row[:place], *other[place:])
                    if moved not in rows:
                        yield edit("", "put under another key a row of", _put_over(table, moved))
        yield edit("", "empty", partial(_fill, table, []))
        yield edit("", "restore the older rows of", partial(_fill, table, older.get(table, [])))


def _put_over(table: str, row: Row) -> Callable[[Server], object]:
    return partial(_insert, table, row)


# ruff: noqa: S608 - statements are what the attack is made of
_ELSEWHERE = "ALTER TABLE {table} RENAME TO elsewhere; "
_VIEW = f"{_ELSEWHERE}CREATE VIEW {{table}} AS SELECT * FROM elsewhere"
_FUNCTION = "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} END $$; "
_DEFINITIONS = {
    "drop": "DROP TABLE {table}",
    "rename": "ALTER TABLE {table} RENAME TO elsewhere",
    "rename a column of": "ALTER TABLE {table} RENAME COLUMN {column} TO other",
    "drop a column of": "ALTER TABLE {table} DROP COLUMN {column}",
    "add a column to": "ALTER TABLE {table} ADD COLUMN other bytea",
    "make text of": "ALTER TABLE {table} ALTER COLUMN {column} TYPE text USING {column}::text",
    "make json of": "ALTER TABLE {table} ALTER COLUMN {column} TYPE json USING '{{}}'::json",
    "make numbers of": "ALTER TABLE {table} ALTER COLUMN {column} TYPE numeric USING 7",
    "make whole numbers of": "ALTER TABLE {table} ALTER COLUMN {column} TYPE integer USING 7",
    "make arrays of": (
        "ALTER TABLE {table} ALTER COLUMN {column} TYPE bytea[] USING ARRAY['\\x00'::bytea]"
    ),
    "make a domain of": (
        "CREATE DOMAIN planted AS bytea; ALTER TABLE {table} "
        "ALTER COLUMN {column} TYPE planted USING {column}::text::bytea::planted"
    ),
    "compute": (
        "ALTER TABLE {table} DROP COLUMN {column}; "
        "ALTER TABLE {table} ADD COLUMN {column} bytea GENERATED ALWAYS AS ('\\x00') STORED"
    ),
    "take the keys off": "ALTER TABLE {table} DROP CONSTRAINT {table}_pkey",
    "take the keys off and double": (
        "ALTER TABLE {table} DROP CONSTRAINT {table}_pkey; INSERT INTO {table} TABLE {table}"
    ),
    "put a view in the place of": _VIEW,
    "put a view of one row in the place of": f"{_VIEW} LIMIT 1",
    "put a shuffled view in the place of": f"{_VIEW} ORDER BY random()",
    "put a doubled view in the place of": f"{_VIEW} UNION ALL SELECT * FROM elsewhere",
    "put a failing view in the place of": f"{_VIEW} WHERE 1 / (random() * 0)::integer = 1",
    "put a frozen view in the place of": (
        f"{_ELSEWHERE}CREATE MATERIALIZED VIEW {{table}} AS SELECT * FROM elsewhere"
    ),
    "put a partitioned table in the place of": (
        f"{_ELSEWHERE}CREATE TABLE {{table}} (LIKE elsewhere) PARTITION BY HASH ({{column}})"
    ),
    "put a sequence in the place of": f"{_ELSEWHERE}CREATE SEQUENCE {{table}}",
    "add a rule against inserts into": (
        "CREATE RULE planted AS ON INSERT TO {table} DO INSTEAD NOTHING"
    ),
    "add a trigger before inserts into": (
        _FUNCTION.format("RETURN NULL;") + "CREATE TRIGGER planted BEFORE INSERT ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION planted()"
    ),
    "add a trigger that fails to": (
        _FUNCTION.format("RAISE EXCEPTION 'no'; RETURN NULL;")
        + "CREATE TRIGGER planted BEFORE INSERT ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION planted()"
    ),
    "hide the rows of": (
        "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; "
        "ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
    ),
    "add a check to": "ALTER TABLE {table} ADD CHECK (false) NOT VALID",
    "add a foreign key to": (
        "CREATE TABLE elsewhere (key bytea PRIMARY KEY); "
        "ALTER TABLE {table} ADD FOREIGN KEY ({column}) REFERENCES elsewhere NOT VALID"
    ),
    "take rights on": "REVOKE ALL ON {table} FROM CURRENT_USER, {login}",
    "plant functions beside": (
        "CREATE FUNCTION octet_length(bytea) RETURNS integer LANGUAGE sql AS 'SELECT 0'; "
        "CREATE FUNCTION unnest(bytea[], bytea[]) RETURNS SETOF bytea LANGUAGE sql "
        "AS 'SELECT NULL::bytea'"
    ),
}
_VERSIONS = {
    "raise": "UPDATE version SET number = 2",
    "add to": "INSERT INTO version VALUES (2)",
    "make negative": "UPDATE version SET number = -1",
}


def definition_edits(server: Server, login: str) -> Iterator[TableEdit]:
    """Tables, columns, types, keys, views, rules, triggers and rights, changed or put in between.

    Args:
        server: A connection that has the schema first in its path.
        login: Whose rights are taken.
    """
    for table, columns in tables(server).items():
        for column in columns:
            for what, script in _DEFINITIONS.items():
                text = script.format(table=table, column=column, login=login)
                if column == columns[-1] or "{column}" in script:
                    yield TableEdit(table, column, what, partial(_script, text))
    for what, script in _VERSIONS.items():
        yield TableEdit("version", "number", what, partial(_script, script))


def _script(text: str, server: Server) -> None:
    with server.transaction():
        server.execute(text.encode())
