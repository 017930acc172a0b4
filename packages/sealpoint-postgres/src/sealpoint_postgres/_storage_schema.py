# SPDX-License-Identifier: Apache-2.0
"""The tables of a PostgreSQL store, and its statements.

The tables have primary keys and nothing else: no foreign keys, sequences, triggers or functions, so
that any database works that speaks PostgreSQL's protocol and keeps a primary key unique. A value
beyond its bound is never read into memory: the server knows its size and leaves it out. The queries
also limit the number of rows, in case an attacker removed a primary key.

Statements name no schema: a connection searches PostgreSQL's own schema, then the schema of the
store, then temporary tables, so that no object of another user takes precedence over ours.
"""

from functools import cache

from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)
from sealpoint.storage import DIGEST_BYTES, PACKED_BYTES_MORE, THREAD_BYTES

SCHEMA_VERSION = 1

TABLES = {
    "version": "number integer PRIMARY KEY",
    "entries": (
        "thread bytea NOT NULL, seq bigint NOT NULL, head bytea NOT NULL, body bytea, "
        "payload bytea, PRIMARY KEY (thread, seq)"
    ),
    "blobs": (
        "thread bytea NOT NULL, digest bytea NOT NULL, data bytea NOT NULL, "
        "PRIMARY KEY (thread, digest)"
    ),
    "labels": "label bytea NOT NULL, thread bytea NOT NULL, PRIMARY KEY (label, thread)",
}

HEADER_LENGTH_BYTES = 4
"""A head is a header behind its length, then the seals."""

SCAN_ROWS = 32
HEADERS_ROWS = 256
BLOBS_ROWS = 128
STORED_ROWS = 256
THREADS_ROWS = 256
HEADS_ROWS = 4096
LABELLED_MAX = 4096

HEAD_BYTES_MAX = HEADER_BYTES_MAX + SEALS_BYTES_MAX + HEADER_LENGTH_BYTES
_BOUNDS = {"head": HEAD_BYTES_MAX, "body": BODY_BYTES_MAX, "payload": PAYLOAD_BYTES_MAX}
_WITHIN = {
    name: f"octet_length({name}) <= {most + PACKED_BYTES_MORE}" for name, most in _BOUNDS.items()
}
_FITS = " AND ".join(f"coalesce({fits}, true)" for fits in _WITHIN.values())
_COLUMNS = ", ".join(f"CASE WHEN {fits} THEN {name} END" for name, fits in _WITHIN.items())
# A position, whether all columns are within their bounds, and those that are.
_RECORD = f"seq, {_FITS}, {_COLUMNS}"


def _sql(*parts: str) -> str:
    """Assemble a statement from constants of this package alone."""
    return " ".join(parts)


def _sized(column: str, size_bytes: int) -> str:
    """A column of values of one size, without those that have another."""
    return f"CASE WHEN octet_length({column}) = {size_bytes} THEN {column} END"


def create_statements(schema: str) -> list[str]:
    """Create the schema and the tables where they are missing; the URL parser checked the name."""
    return [
        _sql("CREATE SCHEMA IF NOT EXISTS", schema),
        *(
            _sql("CREATE TABLE IF NOT EXISTS", f"{schema}.{name} ({columns})")
            for name, columns in TABLES.items()
        ),
        _sql(
            "INSERT INTO",
            f"{schema}.version (number) VALUES ({SCHEMA_VERSION})",
            "ON CONFLICT (number) DO NOTHING",
        ),
    ]


VERSION = "SELECT number FROM version ORDER BY number LIMIT 2"
HAS_ENTRIES = "SELECT EXISTS (SELECT 1 FROM entries)"
MAY_LOOK_INTO = _sql(
    "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace",
    "WHERE nspname = convert_from($1, 'UTF8')",
)

_SELECT = _sql("SELECT", _RECORD, "FROM entries WHERE thread = $1")
READ = _sql(_SELECT, "AND seq = $2 LIMIT 1")
HEADERS = _sql(
    *("SELECT seq, head FROM entries WHERE thread = $1 AND seq = ANY($2) AND", _WITHIN["head"]),
    *("LIMIT", str(HEADERS_ROWS)),
)
_SCAN = _sql(_SELECT, "AND seq BETWEEN $2 AND $3 ORDER BY seq")
SCAN_ASCENDING = _sql(_SCAN, "LIMIT", str(SCAN_ROWS))
SCAN_DESCENDING = _sql(_SCAN, "DESC LIMIT", str(SCAN_ROWS))

BLOB = (
    "SELECT octet_length(data), CASE WHEN octet_length(data) <= $1 THEN data END FROM blobs "
    "WHERE thread = $2 AND digest = $3 LIMIT 1"
)
BLOBS = _sql(
    "SELECT digest, data FROM blobs WHERE thread = $1 AND digest = ANY($2)",
    "AND octet_length(data) <= $3 LIMIT",
    str(BLOBS_ROWS),
)
STORED = _sql(
    *("SELECT", _sized("digest", DIGEST_BYTES), ", octet_length(data) FROM blobs"),
    *("WHERE thread = $1 AND digest > $2 ORDER BY digest LIMIT", str(STORED_ROWS)),
)
LABELLED = _sql(
    *("SELECT", _sized("thread", THREAD_BYTES), "FROM labels WHERE label = $1"),
    *("LIMIT", str(LABELLED_MAX + 1)),
)


def _leaps(columns: str, table: str, first: str, following: str, rows: int) -> str:
    """Columns of the first row that is found, and of each that follows the one before it.

    By leaps through the primary key: how many rows lie between makes no difference.
    """
    return _sql(
        *("WITH RECURSIVE found AS ((SELECT", columns, "FROM", table, first),
        *("LIMIT 1) UNION ALL SELECT following.* FROM found CROSS JOIN LATERAL (SELECT", columns),
        *("FROM", table, following, "LIMIT 1) AS following) SELECT"),
        *(columns.replace("thread", _sized("thread", THREAD_BYTES), 1), "FROM found"),
        *("LIMIT", str(rows)),
    )


# From the last entry of a thread to the last one of the thread below it.
_LAST = "ORDER BY thread DESC, seq DESC"
_LAST_BELOW = f"WHERE thread < found.thread {_LAST}"
HEADS_FIRST = _leaps("thread, seq", "entries", _LAST, _LAST_BELOW, HEADS_ROWS)
HEADS_NEXT = _leaps("thread, seq", "entries", f"WHERE thread < $1 {_LAST}", _LAST_BELOW, HEADS_ROWS)
BLOB_THREADS = _leaps(
    *("thread", "blobs", "WHERE thread > $1 ORDER BY thread"),
    *("WHERE thread > found.thread ORDER BY thread", THREADS_ROWS),
)

_PUT = "INSERT INTO entries (thread, seq, head, body, payload) VALUES"
_ROW_COLUMNS = 4


@cache
def put(rows: int = 1) -> str:
    """Create this many entries of a thread, or fail: the thread first, then the rest of each."""
    ends = range(1 + _ROW_COLUMNS, 2 + rows * _ROW_COLUMNS, _ROW_COLUMNS)
    places = (range(end - _ROW_COLUMNS + 1, end + 1) for end in ends)
    given = (", ".join(f"${place}" for place in each) for each in places)
    return _sql(_PUT, ", ".join(f"($1, {each})" for each in given))


# The position after the newest entry, taken for a moment; the savepoint releases it.
HOLD_NEXT = _sql(
    "INSERT INTO entries (thread, seq, head)",
    "SELECT $1, coalesce(max(seq), -1) + 1, ''::bytea FROM entries WHERE thread = $1",
)
SAVE_POINT = "SAVEPOINT held"
LEAVE_NEXT = "ROLLBACK TO SAVEPOINT held"

PUT_IF_ABSENT = _sql(put(), "ON CONFLICT (thread, seq) DO NOTHING")

PUT_BLOBS = (
    "INSERT INTO blobs (thread, digest, data) "
    "SELECT $1, digest, data FROM unnest($2::bytea[], $3::bytea[]) AS given (digest, data)"
)
PUT_BLOBS_IF_ABSENT = _sql(PUT_BLOBS, "ON CONFLICT (thread, digest) DO NOTHING RETURNING digest")
# The query skips the comparison of a value that is too long to be the same.
IS_BLOB = (
    "SELECT CASE WHEN octet_length(data) = $1 THEN data = $2 ELSE false END FROM blobs "
    "WHERE thread = $3 AND digest = $4"
)
REPLACE_BLOB = "UPDATE blobs SET data = $1 WHERE thread = $2 AND digest = $3"
PUT_LABEL = (
    "INSERT INTO labels (label, thread) VALUES ($1, $2) ON CONFLICT (label, thread) DO NOTHING"
)
# Fails, and so ends the transaction that it is part of, unless there are so many.
REQUIRE_STORED = (
    "SELECT 1 / (count(*) = $1)::integer FROM blobs WHERE thread = $2 AND digest = ANY($3)"
)
STORED_OF = "SELECT DISTINCT digest FROM blobs WHERE thread = $1 AND digest = ANY($2)"

DROP_PAYLOADS = (
    "UPDATE entries SET payload = NULL WHERE thread = $1 AND seq = ANY($2) AND payload IS NOT NULL"
)
DROP_BODIES = (
    "UPDATE entries SET body = NULL, payload = NULL WHERE thread = $1 AND seq = ANY($2) "
    "AND (body IS NOT NULL OR payload IS NOT NULL)"
)
DROP_BLOBS = "DELETE FROM blobs WHERE thread = $1 AND digest = ANY($2)"
DROP_LABEL = "DELETE FROM labels WHERE label = $1 AND thread = $2"
DROP_ENTRY = "DELETE FROM entries WHERE thread = $1 AND seq = $2"
DROP_HEADED = _sql(DROP_ENTRY, "AND head = $3")
DROP_OVERLONG = _sql(DROP_ENTRY, "AND NOT", _WITHIN["head"])
TRUNCATE = "DELETE FROM entries WHERE thread = $1 AND seq >= $2"
COMPACT = tuple(_sql("VACUUM (FULL)", name) for name in TABLES)

COLUMNS = {
    **dict.fromkeys((VERSION, HAS_ENTRIES, LABELLED, BLOB_THREADS, REQUIRE_STORED), 1),
    **dict.fromkeys((STORED_OF, PUT_BLOBS_IF_ABSENT, IS_BLOB, MAY_LOOK_INTO), 1),
    **dict.fromkeys((BLOB, BLOBS, HEADERS, STORED, HEADS_FIRST, HEADS_NEXT), 2),
    **dict.fromkeys((READ, SCAN_ASCENDING, SCAN_DESCENDING), 5),
}
"""The number of columns in the result of each statement that returns rows."""
