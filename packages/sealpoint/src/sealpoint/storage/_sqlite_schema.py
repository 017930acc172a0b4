# SPDX-License-Identifier: Apache-2.0
"""The tables of a SQLite store, its statements, and the permissions of each connection.

The module guarantees that a value of another type or beyond its bound is never brought into memory:
SQLite answers with its size or type instead. The authorizers below guarantee that a connection does
no more than its purpose requires. Reading changes nothing. Writing adds rows, replaces the data of
blobs, removes bodies and payloads, and deletes blobs and labels, but never an entry. Compacting
copies the tables into the nameless database of `VACUUM` and writes nothing by a statement to the
store itself. SQLite calls the authorizer whenever it prepares a statement, and it prepares again
when the schema changed, so a trigger or view that is planted under an open connection fails the
statement.
"""

import sqlite3
from collections.abc import Callable
from enum import Enum

from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)
from sealpoint.storage._contract import DIGEST_BYTES, THREAD_BYTES

# The tables were chosen by short runs on a busy machine with two cores (one record of 1.1 KB and
# three blobs of 1 KB in each commit), so differences below a tenth decided nothing:
#
# - Rows are stored in the order they were written, and found through a small unique index: an
#   append then fills the last page of each table and touches index pages that stay in the cache.
#   Rows kept in the order of their key (`WITHOUT ROWID`) spill anything beyond 1 KB to separate
#   pages and split pages in the middle: in one run twice the time and three times the space.
# - A thread is its 16 bytes in every row. Numbering threads would save 1 % of space, half a page to
#   one page in each commit, and 10 to 15 % of an append to long threads (nothing with 500 short
#   ones). It was rejected to have one table less to attack and no second lookup in a read.
# - Pages of 4096 bytes: 8192 save 14 % of space; neither was measurably faster.
APPLICATION_ID = 0x5EA190B7
SCHEMA_VERSION = 1

SCHEMA = {
    "entries": (
        "CREATE TABLE entries (number INTEGER PRIMARY KEY, thread BLOB NOT NULL, "
        "seq INTEGER NOT NULL, header BLOB NOT NULL, seals BLOB NOT NULL, body BLOB, "
        "payload BLOB, UNIQUE (thread, seq))"
    ),
    "blobs": (
        "CREATE TABLE blobs (number INTEGER PRIMARY KEY, thread BLOB NOT NULL, "
        "digest BLOB NOT NULL, data BLOB NOT NULL, UNIQUE (thread, digest))"
    ),
    "labels": (
        "CREATE TABLE labels (label BLOB NOT NULL, thread BLOB NOT NULL, "
        "PRIMARY KEY (label, thread)) WITHOUT ROWID"
    ),
}
# The expected content of sqlite_master: SQLite makes the indexes of the UNIQUE clauses itself.
OBJECTS = {
    *(("table", name, name, sql) for name, sql in SCHEMA.items()),
    ("index", "sqlite_autoindex_entries_1", "entries", None),
    ("index", "sqlite_autoindex_blobs_1", "blobs", None),
}


class Purpose(Enum):
    """The purpose of a connection."""

    READ = "read"
    WRITE = "write"
    TRUNCATE = "truncate"
    COMPACT = "compact"


_Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]
_Rule = Callable[[str | None, str | None, str | None], bool]

_MASTER = "sqlite_master"
_TABLES = frozenset({*SCHEMA, _MASTER})
_FUNCTIONS = frozenset({"length", "typeof"})
_UPDATES = frozenset({("blobs", "data"), ("entries", "body"), ("entries", "payload")})
_DELETES = frozenset({"blobs", "labels"})
# The actions of VACUUM, on the tables of the database that it attaches temporarily.
_COPYING = frozenset(
    {
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_UPDATE,
    }
)
_COPIED = frozenset({*_TABLES, *(f"sqlite_autoindex_{name}_1" for name in SCHEMA)})
_COPYING_FUNCTIONS = frozenset({"coalesce", "quote"})
_COMPACTING_PRAGMAS = frozenset(
    {"busy_timeout", "freelist_count", "page_count", "quick_check", "temp_store", "wal_checkpoint"}
)

_VERSION_PRAGMA = ("data_version", None)

LEAPS = "leaps"
"""The name of the one recursive query, which SQLite reports for statements inside it."""

# The permissions of each purpose: for an action of SQLite, whether its two arguments and the
# database are permitted.
_READING: dict[int, _Rule] = {
    sqlite3.SQLITE_SELECT: lambda *_: True,
    sqlite3.SQLITE_TRANSACTION: lambda *_: True,
    sqlite3.SQLITE_READ: lambda table, _column, _database: table in _TABLES,
    sqlite3.SQLITE_FUNCTION: lambda _, name, _database: name in _FUNCTIONS,
}
_RULES: dict[Purpose, dict[int, _Rule]] = {
    Purpose.READ: {
        **_READING,
        sqlite3.SQLITE_RECURSIVE: lambda *_: True,
        sqlite3.SQLITE_PRAGMA: lambda name, value, _database: (name, value) == _VERSION_PRAGMA,
    },
    Purpose.WRITE: {
        **_READING,
        sqlite3.SQLITE_PRAGMA: lambda name, value, _database: (name, value) == _VERSION_PRAGMA,
        sqlite3.SQLITE_INSERT: lambda table, _, _database: table in SCHEMA,
        sqlite3.SQLITE_UPDATE: lambda table, column, _: (table, column) in _UPDATES,
        sqlite3.SQLITE_DELETE: lambda table, _, _database: table in _DELETES,
    },
    # A separate purpose: no connection that saves can remove an entry.
    Purpose.TRUNCATE: {
        **_READING,
        sqlite3.SQLITE_DELETE: lambda table, _, _database: table == "entries",
    },
    Purpose.COMPACT: {
        **_READING,
        sqlite3.SQLITE_FUNCTION: lambda _, name, _database: name in _COPYING_FUNCTIONS,
        sqlite3.SQLITE_PRAGMA: lambda name, _, _database: name in _COMPACTING_PRAGMAS,
        # A database without a name is a temporary one that SQLite makes and removes.
        sqlite3.SQLITE_ATTACH: lambda name, _, _database: not name,
        **dict.fromkeys(
            _COPYING,
            lambda table, _, database: table in _COPIED and database not in {None, "main", "temp"},
        ),
    },
}


def _authorizer(rules: dict[int, _Rule]) -> _Authorizer:
    own = {None, LEAPS} if sqlite3.SQLITE_RECURSIVE in rules else {None}

    def decide(
        action: int, first: str | None, second: str | None, database: str | None, inside: str | None
    ) -> int:
        # Inside a trigger or view, which is never one of ours, nothing is allowed.
        rule = rules.get(action) if inside in own else None
        if rule is not None and rule(first, second, database):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    return decide


AUTHORIZERS: dict[Purpose, _Authorizer] = {
    purpose: _authorizer(rules) for purpose, rules in _RULES.items()
}


SCAN_ROWS = 32
LABELLED_MAX = 4096
BLOBS_ROWS = 128
STORED_ROWS = 128
HEADERS_ROWS = 128


def _guarded(column: str, bytes_max: str) -> str:
    """Return SQL for a column of bytes; its size if it is too long, its type if that is wrong.

    SQLite returns type and length of bytes without reading them; the length of a text it would have
    to read, so that is not requested.
    """
    return (
        f"CASE typeof({column}) WHEN 'blob' THEN CASE WHEN length({column}) <= {bytes_max} "
        f"THEN {column} ELSE length({column}) END ELSE typeof({column}) END"
    )


def _guarded_or_null(column: str, bytes_max: int) -> str:
    return f"CASE WHEN {column} IS NULL THEN NULL ELSE {_guarded(column, str(bytes_max))} END"


def _select(columns: str, source: str) -> str:
    """Put a statement together, only from constants of this package."""
    return f"SELECT {columns} FROM {source}"  # noqa: S608 # nosec B608


_COLUMNS = ", ".join(
    (
        "seq",
        _guarded("header", str(HEADER_BYTES_MAX)),
        _guarded("seals", str(SEALS_BYTES_MAX)),
        _guarded_or_null("body", BODY_BYTES_MAX),
        _guarded_or_null("payload", PAYLOAD_BYTES_MAX),
    )
)
READ = _select(_COLUMNS, "entries WHERE thread = ? AND seq = ?")
HEADERS = _select(
    f"seq, {_guarded('header', str(HEADER_BYTES_MAX))}",
    f"entries WHERE thread = ? AND seq IN ({', '.join('?' * HEADERS_ROWS)}) LIMIT {HEADERS_ROWS}",
)
_SCAN = _select(_COLUMNS, "entries WHERE thread = ? AND seq BETWEEN ? AND ?")
SCAN_ASCENDING = f"{_SCAN} ORDER BY seq LIMIT {SCAN_ROWS}"
SCAN_DESCENDING = f"{_SCAN} ORDER BY seq DESC LIMIT {SCAN_ROWS}"
BLOB = _select(_guarded("data", "?"), "blobs WHERE thread = ? AND digest = ?")
BLOBS = _select(
    f"digest, {_guarded('data', '?')}",
    # A damaged index may have a digest many times.
    f"blobs WHERE thread = ? AND digest IN ({', '.join('?' * BLOBS_ROWS)}) LIMIT {BLOBS_ROWS}",
)
_THREAD = _guarded("thread", str(THREAD_BYTES))
HEADS_ROWS = 1024
_IN_ORDER = "ORDER BY thread LIMIT 1"


def _heads(first: str) -> str:
    """Return SQL for threads and their last positions, by leaps through the index.

    A value that is not a thread is returned as such, and leads to no position that the caller would
    follow.
    """
    following = _select(_THREAD, f"entries WHERE thread > {LEAPS}.thread {_IN_ORDER}")
    last = _select(
        "CASE typeof(seq) WHEN 'integer' THEN seq ELSE -1 END",
        f"entries WHERE entries.thread = {LEAPS}.thread ORDER BY seq DESC LIMIT 1",
    )
    leaps = " UNION ALL ".join(
        (
            _select("*", f"({first})"),
            _select(f"({following})", f"{LEAPS} WHERE thread IS NOT NULL"),
        )
    )
    listed = _select(f"thread, ({last})", f"{LEAPS} WHERE thread IS NOT NULL LIMIT {HEADS_ROWS}")
    return f"WITH RECURSIVE {LEAPS}(thread) AS ({leaps}) {listed}"


HEADS_FIRST = _heads(_select(_THREAD, f"entries {_IN_ORDER}"))
HEADS_NEXT = _heads(_select(_THREAD, f"entries WHERE thread > ? {_IN_ORDER}"))
BLOB_THREAD_FIRST = _select(_THREAD, f"blobs {_IN_ORDER}")
BLOB_THREAD_NEXT = _select(_THREAD, f"blobs WHERE thread > ? {_IN_ORDER}")
# The size is requested only for bytes: that of a text would have to be read.
_STORED = (
    f"{_guarded('digest', str(DIGEST_BYTES))}, "
    "CASE typeof(data) WHEN 'blob' THEN length(data) ELSE typeof(data) END"
)
STORED_FIRST = _select(_STORED, f"blobs WHERE thread = ? ORDER BY digest LIMIT {STORED_ROWS}")
STORED_NEXT = _select(
    _STORED, f"blobs WHERE thread = ? AND digest > ? ORDER BY digest LIMIT {STORED_ROWS}"
)
LABELLED = _select(_THREAD, f"labels WHERE label = ? LIMIT {LABELLED_MAX + 1}")
VERSION = "PRAGMA data_version"
_PUT = "INSERT INTO entries (thread, seq, header, seals, body, payload) VALUES "
_ENTRY = "(?, ?, ?, ?, ?, ?)"
PUT_ENTRY = f"{_PUT}{_ENTRY} ON CONFLICT (thread, seq) DO NOTHING"
PUT_ENTRIES_MAX = 4
PUT_ENTRIES = {
    count: f"{_PUT}{', '.join([_ENTRY] * count)}" for count in range(2, PUT_ENTRIES_MAX + 1)
}
"""Several at once, by their number; a taken position is an error."""
# The same bytes dirty no page. A stored value of another length is not read for the comparison: it
# may be a gigantic one that an attacker planted.
PUT_BLOB = (
    "INSERT INTO blobs (thread, digest, data) VALUES (?, ?, ?) "
    "ON CONFLICT (thread, digest) DO UPDATE SET data = excluded.data "
    "WHERE CASE typeof(data) WHEN 'blob' THEN CASE length(data) WHEN length(excluded.data) "
    "THEN data IS NOT excluded.data ELSE 1 END ELSE 1 END"
)
PUT_LABEL = (
    "INSERT INTO labels (label, thread) VALUES (?, ?) ON CONFLICT (label, thread) DO NOTHING"
)

IS_AT = "SELECT 1 FROM entries WHERE thread = ? AND seq = ?"
STORED_OF = (
    "SELECT digest FROM blobs WHERE thread = ? "  # noqa: S608 # nosec B608 # constants alone
    f"AND digest IN ({', '.join('?' * BLOBS_ROWS)}) LIMIT {BLOBS_ROWS}"
)
# A part that is already gone dirties no page.
DROP_PAYLOAD = (
    "UPDATE entries SET payload = NULL WHERE thread = ? AND seq = ? AND payload IS NOT NULL"
)
DROP_BODY = (
    "UPDATE entries SET body = NULL, payload = NULL "
    "WHERE thread = ? AND seq = ? AND (body IS NOT NULL OR payload IS NOT NULL)"
)
DROP_BLOB = "DELETE FROM blobs WHERE thread = ? AND digest = ?"
TRUNCATE = "DELETE FROM entries WHERE thread = ? AND seq >= ?"
DROP_LABEL = "DELETE FROM labels WHERE label = ? AND thread = ?"
