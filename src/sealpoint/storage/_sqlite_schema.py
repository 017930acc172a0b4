# SPDX-License-Identifier: Apache-2.0
"""The tables of a SQLite store, and what a statement may do with them.

It guarantees, by the authorizers below, that a connection does no more than its purpose takes:
reading changes nothing; writing adds rows, replaces the data of blobs, takes bodies and payloads
away, and deletes blobs and labels, but never an entry; compacting copies the tables into the
nameless database of `VACUUM` and writes nothing by a statement to the store itself. SQLite asks
whenever it prepares a statement, and it prepares again when the schema changed, so a trigger or
view that is planted under an open connection fails the statement.

The tables were chosen by short runs on a busy machine with two cores (one record of 1.1 KB and
three blobs of 1 KB in each commit), so differences below a tenth decided nothing:

- Rows lie in the order they were written, found through a small unique index: an append then
  fills the last page of each table and touches index pages that stay in the cache. Rows kept in
  the order of their key (`WITHOUT ROWID`) spill anything beyond 1 KB to pages of its own and
  split pages in the middle: in one run twice the time and three times the space.
- A thread is its 16 bytes in every row. Numbering threads would save 1 % of space, half a page to
  one page in each commit, and 10 to 15 % of an append to long threads (nothing with 500 short
  ones). It was left out for a table less to attack and no second lookup in a read.
- Pages of 4096 bytes: 8192 save 14 % of space; which is faster did not show.
"""

import sqlite3
from collections.abc import Callable
from enum import Enum

__all__ = ["APPLICATION_ID", "AUTHORIZERS", "OBJECTS", "SCHEMA", "SCHEMA_VERSION", "Purpose"]

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
# What sqlite_master holds then: SQLite makes the indexes of the UNIQUE clauses itself.
OBJECTS = {
    *(("table", name, name, sql) for name, sql in SCHEMA.items()),
    ("index", "sqlite_autoindex_entries_1", "entries", None),
    ("index", "sqlite_autoindex_blobs_1", "blobs", None),
}


class Purpose(Enum):
    """What a connection is for."""

    READ = "read"
    WRITE = "write"
    TRUNCATE = "truncate"
    COMPACT = "compact"


_Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]

_MASTER = "sqlite_master"
_TABLES = frozenset({*SCHEMA, _MASTER})
_ALWAYS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_TRANSACTION})
_FUNCTIONS = frozenset({"length", "typeof"})
_UPDATES = frozenset({("blobs", "data"), ("entries", "body"), ("entries", "payload")})
_DELETES = frozenset({"blobs", "labels"})
# What VACUUM does, to the tables of the database that it attaches for the time.
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


# Each takes an action, two names that depend on it, the database, and the name of the trigger or
# view that the statement came from, which is never one of ours.


def _may_read(
    action: int, first: str | None, second: str | None, _database: str | None, inside: str | None
) -> int:
    if inside is None and (
        action in _ALWAYS
        or (action == sqlite3.SQLITE_READ and first in _TABLES)
        or (action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS)
    ):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _may_write(
    action: int, first: str | None, second: str | None, _database: str | None, inside: str | None
) -> int:
    if inside is None and (
        action in _ALWAYS
        or (action == sqlite3.SQLITE_READ and first in _TABLES)
        or (action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS)
        or (action == sqlite3.SQLITE_INSERT and first in SCHEMA)
        or (action == sqlite3.SQLITE_UPDATE and (first, second) in _UPDATES)
        or (action == sqlite3.SQLITE_DELETE and first in _DELETES)
    ):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _may_truncate(
    action: int, first: str | None, second: str | None, database: str | None, inside: str | None
) -> int:
    # A purpose of its own: no connection that saves can take an entry away.
    if inside is None and action == sqlite3.SQLITE_DELETE and first == "entries":
        return sqlite3.SQLITE_OK
    return _may_read(action, first, second, database, inside)


def _may_compact(
    action: int, first: str | None, second: str | None, database: str | None, inside: str | None
) -> int:
    if inside is None and (
        action in _ALWAYS
        or (action == sqlite3.SQLITE_READ and first in _TABLES)
        or (action == sqlite3.SQLITE_FUNCTION and second in _COPYING_FUNCTIONS)
        or (action in _COPYING and first in _COPIED and database not in {None, "main", "temp"})
        # Without a name it is a database that SQLite makes for the time and removes.
        or (action == sqlite3.SQLITE_ATTACH and not first)
        or (action == sqlite3.SQLITE_PRAGMA and first in _COMPACTING_PRAGMAS)
    ):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


AUTHORIZERS: dict[Purpose, _Authorizer] = {
    Purpose.READ: _may_read,
    Purpose.WRITE: _may_write,
    Purpose.TRUNCATE: _may_truncate,
    Purpose.COMPACT: _may_compact,
}
