# SPDX-License-Identifier: Apache-2.0
"""Reads the databases of OpenClaw: one read transaction each, also while the gateway runs.

Nothing is written to them, and nothing of them is run: triggers do not fire on a read, and views
and virtual tables are not read. Every table counts, known or not. The content of a virtual table is
in its shadow tables, such as those of a full-text index; each of these counts as a whole.

A gateway that was stopped leaves a write-ahead log. SQLite cannot read it where this user may not
write the folder, so a copy of both files is read then. A copy is never made of a database in use,
or of one with a rollback journal: the gateway would read other rows than the copy has.
"""

import json
import shutil
import sqlite3
import tempfile
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sealpoint.errors import StorageUnavailable
from sealpoint_openclaw._classes import DatabaseKind, StateClass, TableRule, table_rule
from sealpoint_openclaw._inventory import Database, Digests, Mark, NumberedRows, Table

SHADOWS = "shadow tables"
"""The table of an inventory that has a row for each shadow table."""

_SHADOW = TableRule(state_class=StateClass.RUNTIME)
_BUSY_SECONDS = 10
_LONG = 1000
_TAIL = 64
_PRIMARY = 0xFF  # of an error code of SQLite; the other bits are details
_MADE_BY_SQLITE = frozenset(
    {
        "CREATE TABLE sqlite_sequence(name,seq)",
        "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
        "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
    }
)
"""Tables that come with the first row or with ANALYZE. They are no change of the schema."""
_UNWRITABLE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})


_encode_json = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading, inside a transaction.

    Raises:
        StorageUnavailable: It cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="sealpoint-") as spare, reading(path):
        try:
            connection = _connect(path)
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & _PRIMARY not in _UNWRITABLE:
                raise
            if path.with_name(f"{path.name}-journal").exists():
                raise StorageUnavailable(
                    f"{path}-journal: this rollback journal changes the database at its next open",
                    hint=f"Bring back a backup. Or let SQLite apply the journal (sqlite3 {path} "
                    ".schema), and look at the changes: sealpoint openclaw diff",
                ) from exc
            # The user of the guard may not write the shared memory file next to the log.
            connection = _connect(_copied(path, Path(spare)))
        with closing(connection):
            yield connection


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the database in an error of SQLite, or in one about a name that is not text."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeError) as exc:
        raise StorageUnavailable(
            f"{path}: this database of OpenClaw cannot be read: {exc}",
            hint="Run this as the user of the guard. With OpenClaw stopped, a copy of the database "
            "can be checked: openclaw database preflight COPY",
        ) from exc


def _connect(path: Path) -> sqlite3.Connection:
    quoted = str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{quoted}?mode=ro", uri=True, timeout=_BUSY_SECONDS, isolation_level=None
    )
    try:
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        connection.execute("PRAGMA trusted_schema=OFF")
        # Checks call functions that an older SQLite lacks, and every row counts with its values.
        connection.execute("PRAGMA ignore_check_constraints=ON")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _copied(path: Path, spare: Path) -> Path:
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            shutil.copyfile(source, spare / source.name)
    return spare / path.name


def read_database(
    path: Path, kind: DatabaseKind, digests: Digests, before: Database | None = None
) -> Database:
    """Return the inventory of a database.

    Args:
        path: The database.
        kind: Which of OpenClaw's databases it is.
        digests: Makes the digests.
        before: An earlier inventory. Of ordered tables, only rows after those in it are read, so an
            edit of an older row is not noticed. None: every row is read.
    """
    with open_database(path) as connection, reading(path):
        return _read(connection, kind, digests, before)


def _read(
    connection: sqlite3.Connection,
    kind: DatabaseKind,
    digests: Digests,
    before: Database | None,
) -> Database:
    if before is None:
        (fault,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if fault != "ok":
            raise sqlite3.DatabaseError(f"it is damaged: {' '.join(fault.split())}")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables, marks, shadows = {}, {}, {}
    for name in _table_names(connection):
        rule = table_rule(kind, name)
        if rule.state_class is StateClass.IGNORED:
            continue
        known = None if before is None else before.tables.get(name)
        reader = _TableReader(connection, name, rule, digests, before)
        tables[name] = reader.read(known)
        marks[name] = reader.mark
    for name in _table_names(connection, "shadow"):
        reader = _TableReader(connection, name, _SHADOW, digests, before)
        shadows[name] = reader.digest()
        marks[name] = reader.mark
    return Database(
        version=version,
        schema=_schema(connection, digests),
        tables=tables | {SHADOWS: Table(rows=shadows)},
        marks={name: mark for name, mark in marks.items() if mark is not None},
    )


def _schema(connection: sqlite3.Connection, digests: Digests) -> bytes:
    """Return a digest of what the database is made of; a planted trigger would change it."""
    found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    return digests.row(
        (f"{kind} {name}", f"{table} {sql or ''}")
        for kind, name, table, sql in sorted(found, key=str)
        if sql not in _MADE_BY_SQLITE
    )


def _table_names(connection: sqlite3.Connection, kind: str = "table") -> list[str]:
    """Return the tables of a kind: those for themselves, or those that virtual ones are made of."""
    return [
        name
        for schema, name, each, *_ in connection.execute("PRAGMA table_list").fetchall()
        if schema == "main" and each == kind and not name.startswith("sqlite_")
    ]


class _TableReader:
    """Reads the rows of one table.

    Rows get rising rowids, and a row that is replaced gets another. So of a long table of a running
    gateway, only the last rows and those that came after them are read again, while none of the
    rows before is removed. A change of an old row in place is then noticed by the last seal.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        name: str,
        rule: TableRule,
        digests: Digests,
        before: Database | None,
    ) -> None:
        self.mark: Mark | None = None
        """Where the next reading may continue, once this one has ended."""
        self._continued = None if before is None else before.marks.get(name)
        self._connection = connection
        self._name = name
        self._rule = rule
        self._digests = digests
        columns = connection.execute(f"PRAGMA table_info({_quoted(name)})").fetchall()
        self._has_rowids = not connection.execute(
            "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", [name]
        ).fetchone()[0]
        keyed = sorted((column[5], column[1]) for column in columns if column[5])
        self._key = [column for _, column in keyed]
        # Sorted, so that the order in which a migration adds columns does not count.
        self._columns = sorted(column[1] for column in columns if column[1] not in rule.free)
        self._counted = [
            (place, column)
            for place, column in enumerate(self._columns)
            if column not in rule.skips
        ]
        self._quiet = [tuple(path.split(".")) for path in rule.quiet]
        self._key_places = [self._columns.index(column) for column in self._key]

    def read(self, before: Table | None) -> Table:
        """Return the inventory of the table."""
        if self._rule.ordered and self._key:
            return self._read_ordered(before)
        mark = None if before is None else self._kept_mark()
        known = Table() if before is None or mark is None else before
        rows, partial, whole = dict(known.rows), dict(known.partial), dict(known.whole)
        for key in () if mark is None else mark.after:
            for each in (rows, partial, whole):
                each.pop(key, None)
        keys = []
        shown: dict[str, Mapping[str, Any]] = {}
        for row in self._select_after(mark):
            digest = self._digest(row)
            key = self._key_text(row, digest, rows)
            keys.append(key)
            rows[key] = digest
            if self._rule.completes:
                partial[key] = self._digest(row, without=self._rule.completes)
            if self._rule.skips or self._rule.quiet:
                whole[key] = self._digests.row(zip(self._columns, row, strict=True))
            if self._rule.shows:
                shown[key] = dict(self._shown(row))
        self.mark = self._next_mark(len(rows), after=frozenset(keys[-_TAIL:]))
        return Table(rows=rows, partial=partial, whole=whole, shown=shown)

    def digest(self) -> bytes:
        """Return one digest of all rows, in the order of the table."""
        mark = self._kept_mark(is_derived=True)
        digest = self._digests.rows() if mark is None or mark.digest is None else mark.digest.copy()
        found = [self._digest(row) for row in self._select_after(mark)]
        digest.update(b"".join(found[:-_TAIL]))
        count = len(found) + (0 if mark is None else mark.count)
        self.mark = self._next_mark(count, digest=digest.copy())
        digest.update(b"".join(found[-_TAIL:]))
        return digest.digest()

    def _kept_mark(self, *, is_derived: bool = False) -> Mark | None:
        """Return the mark of the last reading, if no row before it was removed since.

        Of a derived table, only the last of these rows is looked for: to count would read all.
        """
        mark = self._continued
        if mark is None:
            return None
        (count,) = self._connection.execute(
            f"SELECT count(*) FROM {_quoted(self._name)}"  # noqa: S608 # nosec B608
            f" WHERE _rowid_ {'=' if is_derived else '<='} ?",
            [mark.rowid],
        ).fetchone()
        return mark if count == (1 if is_derived else mark.count) else None

    def _next_mark(self, count: int, **last: Any) -> Mark | None:
        """Return where the next reading may continue; a row that people decide about is read."""
        if count <= _LONG or not self._has_rowids or self._rule.state_class is StateClass.EXACT:
            return None
        (rowid,) = self._connection.execute(
            f"SELECT _rowid_ FROM {_quoted(self._name)}"  # noqa: S608 # nosec B608
            f" ORDER BY _rowid_ DESC LIMIT 1 OFFSET {_TAIL}"
        ).fetchone()
        return Mark(rowid=rowid, count=count - _TAIL, **last)

    def _select_after(self, mark: Mark | None) -> sqlite3.Cursor:
        return self._select() if mark is None else self._select("_rowid_ > ?", [mark.rowid])

    def _shown(self, row: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """Yield what a world shows of a row; what is not there is left out."""
        for each in self._rule.shows:
            column, _, path = each.partition(":")
            if column not in self._columns:
                continue
            value = row[self._columns.index(column)]
            if path:
                value = _at(_quietened(value, self._quiet), path.split("."))
            if value is not None and not isinstance(value, bytes):
                yield path or column, value

    def _read_ordered(self, before: Table | None) -> Table:
        rows: dict[str, bytes] = {}
        groups: dict[str, list[tuple[int, bytes]]] = {}
        kept, query, arguments = self._kept(before)
        for row in self._select(query, arguments):
            digest = self._digest(row)
            *group_key, number = (row[place] for place in self._key_places)
            if not isinstance(number, int):  # SQLite stores any type in any column
                rows[self._key_text(row, digest, rows)] = digest
                continue
            groups.setdefault(_key_of(group_key), []).append((number, digest))
        return Table(
            rows=rows,
            groups=kept
            | {name: _numbered(found, kept.get(name)) for name, found in groups.items()},
        )

    def _kept(self, before: Table | None) -> tuple[dict[str, NumberedRows], str, list[Any]]:
        """Return the groups that need not be read again, and a condition for the other rows."""
        if before is None or before.rows or not before.groups:
            return {}, "", []
        *group_columns, number = (_quoted(column) for column in self._key)
        listed = ", ".join(group_columns)
        counts = self._connection.execute(
            f"SELECT {listed}{', ' if listed else ''}count(*), max({number})"  # noqa: S608 # nosec B608
            f" FROM {_quoted(self._name)}{f' GROUP BY {listed}' if listed else ''}"
        )
        kept: dict[str, NumberedRows] = {}
        conditions: list[str] = []
        arguments: list[Any] = []
        for *group_key, count, newest in counts:
            group = before.groups.get(_key_of(group_key))
            if group is None or not group.numbers or newest is None:
                continue
            last = group.numbers[-1]
            same = " AND ".join([*(f"{column} IS ?" for column in group_columns), "1"])
            (older,) = self._connection.execute(
                f"SELECT count(*) FROM {_quoted(self._name)}"  # noqa: S608 # nosec B608
                f" WHERE {same} AND {number} <= ?",
                [*group_key, last],
            ).fetchone()
            if older != len(group.numbers) or count < older:
                continue
            kept[_key_of(group_key)] = group
            conditions.append(f"NOT ({same} AND {number} <= ?)")
            arguments += [*group_key, last]
        return kept, " AND ".join(conditions), arguments

    def _select(self, condition: str = "", arguments: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Return rows of the table itself: an index could leave some out."""
        listed = ", ".join(_quoted(column) for column in self._columns)
        return self._connection.execute(
            f"SELECT {listed} FROM {_quoted(self._name)} NOT INDEXED"  # noqa: S608 # nosec B608
            f"{f' WHERE {condition}' if condition else ''}",
            arguments,
        )

    def _digest(self, row: Sequence[Any], without: Collection[str] = ()) -> bytes:
        quiet = self._quiet
        return self._digests.row(
            (column, _quietened(row[place], quiet) if quiet else row[place])
            for place, column in self._counted
            if column not in without
        )

    def _key_text(self, row: Sequence[Any], digest: bytes, taken: Mapping[str, bytes]) -> str:
        """Return the key of a row as text, unique in its table; another row with it is numbered."""
        values = [row[place] for place in self._key_places]
        shown = bool(values) and not self._rule.hidden
        if shown:
            name = _key_of(values)
        else:
            found = self._digests.row(zip(self._key, values, strict=True)) if values else digest
            name = f"#{found.hex()}"
        key, number = name, 1
        while key in taken:
            number += 1
            key = _key_of([*values, number]) if shown else f"{name}-{number}"
        return key


def _numbered(rows: list[tuple[int, bytes]], older: NumberedRows | None) -> NumberedRows:
    """Return the rows of a group in order, after those that need not be read again."""
    rows.sort()
    numbers = array("q", (number for number, _ in rows))
    digests = b"".join(digest for _, digest in rows)
    if older is None:
        return NumberedRows(numbers=numbers, digests=digests)
    return NumberedRows(numbers=older.numbers + numbers, digests=older.digests + digests)


def _key_of(values: Sequence[Any]) -> str:
    """Return the values of key columns as JSON: different keys never have the same text."""
    return _encode_json(
        [{"bytes": value.hex()} if isinstance(value, bytes) else value for value in values]
    )


def _quietened(value: Any, quiet: Collection[tuple[str, ...]]) -> Any:
    """Return the JSON text of a column without the paths that the gateway keeps up to date."""
    if not isinstance(value, str) or value[:1] not in "{[":
        return value
    try:
        return json.dumps(_without(json.loads(value), quiet), sort_keys=True)
    except (ValueError, RecursionError):
        return value


def _at(text: Any, path: Sequence[str]) -> Any:
    """Return what a path leads to in a JSON text; None if that is nothing."""
    try:
        node = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    for key in path:
        if not isinstance(node, dict):
            return None
        node = node.get(key)
    return node


def _without(node: Any, paths: Collection[tuple[str, ...]]) -> Any:
    """Return a JSON value without what some paths lead to; `*` is any key or place in a list."""
    if isinstance(node, list):
        below = [path[1:] for path in paths if path[0] == "*" and len(path) > 1]
        return [_without(each, below) for each in node] if below else node
    if not isinstance(node, dict):
        return node
    kept = {}
    for key, value in node.items():
        fitting = [path[1:] for path in paths if path[0] in {"*", key}]
        if () in fitting:
            continue
        kept[key] = _without(value, fitting) if fitting else value
    return kept


def _quoted(name: str) -> str:
    """Return an identifier of SQL in quotes."""
    return '"' + name.replace('"', '""') + '"'
