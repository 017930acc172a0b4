# SPDX-License-Identifier: Apache-2.0
"""Edits below SQL: what SQLite would read from a database is what the guard has read of it."""

import re
import sqlite3
import struct
from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sealpoint.errors import StateChanged, StorageUnavailable
from sealpoint_openclaw import Concern
from sealpoint_openclaw._differences import find_differences
from sealpoint_openclaw._inventory import Database, Inventory, NumberedRows, Table
from tests.openclaw.recorded_folder import AGENT, STATE, Recorded
from tests.openclaw.test_attacks import DEVICE

_OPENED = '{"version":1,"agents":{"main":{"security":"full","ask":"off"}}}'
_OPEN = "UPDATE exec_approvals_config SET raw_json = ?"


@pytest.fixture
def attacked(stopped: Recorded, tmp_path: Path) -> Recorded:
    """A copy of a stopped folder, for an edit."""
    return stopped.copied(tmp_path / "openclaw")


def _refusal(recorded: Recorded) -> str:
    """Return why a folder that was edited does not start."""
    with (
        recorded.guard() as guard,
        pytest.raises((StateChanged, StorageUnavailable)) as caught,
        guard.running(),
    ):
        pytest.fail("it started")
    return "\n".join([str(caught.value), *getattr(caught.value, "differences", ())])


# ---------------------------------------------------------------------- the files of a database


def _plant_journal(database: Path, pages: bytes) -> None:
    """Write a rollback journal that replaces all pages of a database when it is opened."""
    size = struct.unpack(">H", pages[16:18])[0]
    count, nonce, sector = len(pages) // size, 7, 512
    header = bytes.fromhex("d9d505f920a163d7") + struct.pack(
        ">5I", count, nonce, count, sector, size
    )
    journal = [header.ljust(sector, b"\0")]
    for number in range(count):
        page = pages[number * size : (number + 1) * size]
        checksum = nonce + sum(page[place] for place in range(size - 200, 0, -200))
        journal += [struct.pack(">I", number + 1), page, struct.pack(">I", checksum & 0xFFFFFFFF)]
    database.with_name(f"{database.name}-journal").write_bytes(b"".join(journal))


def test_a_planted_rollback_journal_is_refused(attacked: Recorded) -> None:
    """The gateway's first open would replace the sealed rows by those of the journal."""
    database = attacked.folder / STATE
    sealed = database.read_bytes()
    attacked.sql(STATE, _OPEN, _OPENED)
    opened = database.read_bytes()
    database.write_bytes(sealed)
    _plant_journal(database, opened)

    assert "openclaw.sqlite-journal: this rollback journal changes the database" in _refusal(
        attacked
    )
    value = attacked.value(STATE, "SELECT raw_json FROM exec_approvals_config")
    assert value == _OPENED  # SQLite has applied it now


def test_a_journal_that_changes_nothing_is_a_difference(attacked: Recorded) -> None:
    """A stopped gateway leaves none."""
    attacked.write(f"{STATE}-journal", "\0" * 512)

    assert f"file {STATE}-journal: added" in _refusal(attacked)


# ---------------------------------------------------------------------- the schema


@contextmanager
def _schema(recorded: Recorded, database: str) -> Iterator[sqlite3.Connection]:
    """Open a database so that its schema is a table like others."""
    path = recorded.folder / database
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("PRAGMA ignore_check_constraints=ON")
        yield connection


def test_a_trigger_with_a_name_of_sqlite_is_refused(attacked: Recorded) -> None:
    """SQLite gives no such name to a trigger, but runs one."""
    trigger = (
        "CREATE TRIGGER sqlite_x AFTER UPDATE ON schema_meta BEGIN"
        " UPDATE exec_approvals_config SET raw_json = '{}'; END"
    )
    with _schema(attacked, STATE) as connection:
        connection.execute(
            "INSERT INTO sqlite_schema VALUES ('trigger', 'sqlite_x', 'schema_meta', 0, ?)",
            [trigger],
        )

    assert f"tables of {STATE}: changed" in _refusal(attacked)


def test_statistics_of_sqlite_are_no_change_of_the_schema(recorded: Recorded) -> None:
    """The gateway may let SQLite gather them while it runs."""
    with recorded.guard() as guard, guard.running() as watch:
        recorded.sql(STATE, "ANALYZE")
        watch.seal()
        watch.end(crashed=False)
    with recorded.guard() as guard:
        assert guard.verify().world == guard.newest().world


@pytest.mark.parametrize(
    "renamed",
    ["CREATE TABLE planted\xff(a)", "CREATE TABLE planted(\xff)"],
    ids=["table", "column"],
)
def test_a_name_that_is_no_text_is_refused_with_a_sentence(
    attacked: Recorded, renamed: str
) -> None:
    """SQLite stores any bytes as a name."""
    attacked.sql(STATE, "CREATE TABLE planted(a)")
    attacked.sql(STATE, "INSERT INTO planted VALUES (1)")
    name = renamed.split("(", maxsplit=1)[0].rsplit(maxsplit=1)[-1].encode("latin-1")
    with _schema(attacked, STATE) as connection:
        connection.execute(
            "UPDATE sqlite_schema SET name = CAST(? AS TEXT), tbl_name = CAST(? AS TEXT),"
            " sql = CAST(? AS TEXT) WHERE name = 'planted'",
            [name, name, renamed.encode("latin-1")],
        )

    assert "cannot be read" in _refusal(attacked)


# ---------------------------------------------------------------------- rows without an index

_MESSAGE = (
    "INSERT INTO transcript_events (rowid, session_id, seq, event_json, created_at)"
    " SELECT min(rowid) - 5, session_id, 3, '{}', 3 FROM transcript_events"
)


@contextmanager
def _unindexed(recorded: Recorded, database: str, table: str) -> Iterator[None]:
    """Let SQLite forget the indexes of a table, and remember them as they were."""
    of_table = "FROM sqlite_schema WHERE tbl_name = ? AND type IN ('table', 'index')"
    with _schema(recorded, database) as connection:
        rows = connection.execute(f"SELECT rowid, * {of_table}", [table]).fetchall()
        connection.execute(
            "DELETE FROM sqlite_schema WHERE tbl_name = ? AND type = 'index'", [table]
        )
        (sql,) = (row[-1] for row in rows if row[1] == "table")
        bare = re.sub(r"(PRIMARY KEY|UNIQUE) ?\([^)]*\)", "CHECK (1)", sql)
        connection.execute(
            "UPDATE sqlite_schema SET sql = ? WHERE name = ?",
            [bare.replace(" PRIMARY KEY", ""), table],
        )
    yield
    with _schema(recorded, database) as connection:
        connection.execute(f"DELETE {of_table}", [table])
        connection.executemany(
            "INSERT INTO sqlite_schema (rowid, type, name, tbl_name, rootpage,"
            " sql) VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )


@pytest.mark.parametrize(
    ("database", "table", "insert"),
    [(STATE, "device_pairing_paired", DEVICE), (AGENT, "transcript_events", _MESSAGE)],
)
def test_a_row_that_no_index_has_is_refused(
    attacked: Recorded, database: str, table: str, insert: str
) -> None:
    """A list by the key does not have it, and the gateway's list of the table has."""
    with _unindexed(attacked, database, table), _schema(attacked, database) as connection:
        connection.execute(insert)

    assert "it is damaged" in _refusal(attacked)


def test_a_table_with_the_rows_of_another_is_refused(attacked: Recorded) -> None:
    """Rows of one are rows of the other then; neither has any now."""
    with _schema(attacked, STATE) as connection:
        connection.execute(
            "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema"
            " WHERE name = 'user_preferences') WHERE name = 'projects'"
        )

    assert "it is damaged" in _refusal(attacked)


def test_each_of_two_rows_with_one_key_counts(
    recorded: Recorded,
) -> None:
    """A key that is NULL is the key of several rows."""
    recorded.sql(STATE, "CREATE TABLE planted (id TEXT PRIMARY KEY, value TEXT)")
    recorded.sql(STATE, "INSERT INTO planted VALUES (NULL, 'a'), (NULL, 'b')")
    with recorded.guard() as guard:
        guard.accept("a table of ours")
    recorded.sql(STATE, "UPDATE planted SET value = 'c' WHERE value = 'a'")

    assert f"table planted of {STATE}, row None: changed" in _refusal(recorded)


def test_a_second_message_with_a_number_is_a_change() -> None:
    """A later row does not hide the one that was sealed."""
    rows = NumberedRows(numbers=array("q", [1, 2]), digests=b"a" * 16 + b"b" * 16)
    more = NumberedRows(numbers=array("q", [1, 1, 2]), digests=b"x" * 16 + rows.digests)
    sealed, now = (
        Inventory(
            databases={
                AGENT: Database(
                    version=1,
                    schema=b"",
                    tables={"transcript_events": Table(groups={'["s"]': found})},
                )
            },
            files={},
        )
        for found in (rows, more)
    )
    (difference,) = find_differences(sealed, now, may_have_run=True)

    assert difference.concern is Concern.HISTORY
    assert difference.words.endswith(", row s, 1: changed")
