# SPDX-License-Identifier: Apache-2.0
"""The tables of a shared anchor in PostgreSQL, and its statements.

A table has a primary key and nothing else. The table names differ from those of a store, so that
the two stay distinguishable even in one schema, which nobody should set up. A value whose size is
not the size that a position has is never read into memory: the query leaves it out, and a row
without it is not a position. Statements name no schema: a connection searches PostgreSQL's own
schema first, then the schema of its URL.
"""

from sealpoint.limits import NAME_BYTES_MAX

SCHEMA_VERSION = 2

TABLES = {
    "anchor_version": "number integer PRIMARY KEY",
    "slots": (
        "store bytea NOT NULL, slot bytea NOT NULL, thread bytea NOT NULL, epoch bigint NOT NULL, "
        "gen bigint NOT NULL, seq bigint NOT NULL, entry bytea NOT NULL, erased boolean NOT NULL, "
        "fence bigint NOT NULL, pause bigint NOT NULL, owner bigint NOT NULL, "
        "owner_entry bytea NOT NULL, paused boolean NOT NULL, "
        "PRIMARY KEY (store, slot)"
    ),
    "slot_secrets": "store bytea PRIMARY KEY, secret bytea NOT NULL",
    "runs": (
        "store bytea NOT NULL, slot bytea NOT NULL, token bytea NOT NULL, who bytea NOT NULL, "
        "since bigint NOT NULL, until timestamptz NOT NULL, "
        "PRIMARY KEY (store, slot)"
    ),
}

SLOTS_ROWS = 512

_POSITION = (
    "CASE WHEN octet_length(thread) = 16 THEN thread END, epoch, gen, seq, "
    "CASE WHEN octet_length(entry) = 32 THEN entry END, erased, fence, pause, owner, "
    "CASE WHEN octet_length(owner_entry) = 32 THEN owner_entry END, paused"
)


def _sql(*parts: str) -> str:
    """Assemble a statement from constants of this package alone."""
    return " ".join(parts)


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
            f"{schema}.anchor_version (number) VALUES ({SCHEMA_VERSION})",
            "ON CONFLICT (number) DO NOTHING",
        ),
    ]


VERSION = "SELECT number FROM anchor_version ORDER BY number LIMIT 2"

# If an attacker removed the primary key, the query shows two rows where one should be.
GET = _sql("SELECT", _POSITION, "FROM slots WHERE store = $1 AND slot = $2 LIMIT 2")
GET_BOTH = _sql(
    *("SELECT CASE WHEN octet_length(slot) = 32 THEN slot END,", _POSITION, "FROM slots"),
    "WHERE store = $1 AND slot IN ($2, $3) LIMIT 3",
)
_COLUMNS = (
    *("thread", "epoch", "gen", "seq", "entry", "erased"),
    *("fence", "pause", "owner", "owner_entry", "paused"),
)


def _value(column: str, number: int) -> str:
    """The parameter of a column; a truth value is sent as a number."""
    return f"(${number} <> 0)" if column in ("erased", "paused") else f"${number}"


def _pairs(first: int, join: str) -> str:
    """Every column with its parameter, numbered from `first` on."""
    return join.join(f"{each} = {_value(each, at)}" for at, each in enumerate(_COLUMNS, first))


_FIRST = 3
"""The first parameter of a position, after store and slot."""
CREATE = _sql(
    *("INSERT INTO slots (store, slot,", ", ".join(_COLUMNS), ") VALUES ($1, $2,"),
    ", ".join(_value(column, at) for at, column in enumerate(_COLUMNS, _FIRST)),
    ") ON CONFLICT (store, slot) DO NOTHING",
)
ADVANCE = _sql(
    *("UPDATE slots SET", _pairs(_FIRST + len(_COLUMNS), ", ")),
    *("WHERE store = $1 AND slot = $2 AND", _pairs(_FIRST, " AND ")),
)
SLOTS = _sql(
    *("SELECT CASE WHEN octet_length(slot) = 32 THEN slot END,", _POSITION, "FROM slots"),
    *("WHERE store = $1 AND slot > $2 ORDER BY slot LIMIT", str(SLOTS_ROWS)),
)
KEY_OF_SLOTS = (
    "SELECT CASE WHEN octet_length(secret) = 32 THEN secret END FROM slot_secrets "
    "WHERE store = $1 LIMIT 2"
)
KEEP_KEY_OF_SLOTS = (
    "INSERT INTO slot_secrets (store, secret) VALUES ($1, $2) ON CONFLICT (store) DO NOTHING"
)

# Every time is the server's, because clocks of machines differ. A hold that repeats the call after
# it lost its connection finds its own token.
_UNTIL = "clock_timestamp() + $6 * interval '1 millisecond'"
TAKE_RUN = _sql(
    "INSERT INTO runs (store, slot, token, who, since, until)",
    f"VALUES ($1, $2, $3, $4, $5, {_UNTIL})",
    "ON CONFLICT (store, slot) DO UPDATE SET token = excluded.token, who = excluded.who,",
    f"since = excluded.since, until = {_UNTIL}",
    "WHERE runs.until <= clock_timestamp() OR runs.token = excluded.token OR $7 <> 0",
)
GET_RUN = _sql(
    f"SELECT CASE WHEN octet_length(who) <= {NAME_BYTES_MAX} THEN who END, since,",
    "until > clock_timestamp() FROM runs WHERE store = $1 AND slot = $2 LIMIT 2",
)
RENEW_RUNS = (
    "UPDATE runs SET until = clock_timestamp() + $4 * interval '1 millisecond' "
    "WHERE store = $1 AND slot = ANY($2) AND token = ANY($3)"
)
LEAVE_RUN = (
    "UPDATE runs SET until = clock_timestamp() WHERE store = $1 AND slot = $2 AND token = $3"
)
END_RUN = "DELETE FROM runs WHERE store = $1 AND slot = $2 AND token = $3"

COLUMNS = {VERSION: 1, KEY_OF_SLOTS: 1, GET: 11, GET_BOTH: 12, SLOTS: 12, GET_RUN: 3}
"""The number of columns in the result of each statement that returns rows."""
