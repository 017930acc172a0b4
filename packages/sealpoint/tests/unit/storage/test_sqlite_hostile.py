# SPDX-License-Identifier: Apache-2.0
"""The SQLite backend over a file that somebody with raw SQL or an editor has been at."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from sealpoint.errors import Edited, SealpointError, StorageUnavailable, Tampered
from sealpoint.limits import BODY_BYTES_MAX, HEADER_BYTES_MAX, SEALS_BYTES_MAX
from sealpoint.storage import Record
from sealpoint.storage.sqlite import SqliteStorage

_THREAD = bytes(range(16))
_DIGEST = bytes(range(32))
_RECORD = Record(b"header", b"seals", b"body")
_LENGTH_LIMIT = 2 * 1024 * 1024

_CALLS: list[Callable[[SqliteStorage], object]] = [
    lambda storage: storage.read(_THREAD, 1),
    lambda storage: list(storage.scan(_THREAD, 0)),
    lambda storage: list(storage.scan(_THREAD, 0, descending=True)),
    lambda storage: storage.blob(_THREAD, _DIGEST, 1000),
    lambda storage: list(storage.heads()),
    lambda storage: storage.labelled(_DIGEST),
    lambda storage: list(storage.stored_blobs(_THREAD)),
    lambda storage: list(storage.blob_threads()),
    lambda storage: storage.compact(),
    lambda storage: storage.drop(
        _THREAD, 99, payloads=[7], bodies=[8], blobs=[bytes(32)], label=bytes(32)
    ),
    lambda storage: storage.append(_THREAD, 8, [_RECORD], blobs={}, needs=[_DIGEST]),
    lambda storage: storage.append(_THREAD, 1, [_RECORD] * 2, blobs={_DIGEST: b"blob"}),
    lambda storage: storage.append(_THREAD, 9, [_RECORD], blobs={}, label=_DIGEST),
    lambda storage: storage.put_blobs(_THREAD, {_DIGEST: b"other"}),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a store with three entries, a blob and a label."""
    path = tmp_path / "store.db"
    with closing(SqliteStorage(path, create=True)) as storage:
        storage.append(_THREAD, 0, [_RECORD] * 3, blobs={_DIGEST: b"blob"}, label=_DIGEST)
    return path


def _attack(path: Path, *statements: str, **parts: object) -> None:
    """Run raw SQL, as whoever holds the file can, whatever the schema says."""
    with closing(sqlite3.connect(path, isolation_level=None)) as attacker:
        attacker.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            attacker.execute(statement.format(**parts))


@pytest.mark.parametrize(
    ("column", "bytes_max"),
    [("header", HEADER_BYTES_MAX), ("seals", SEALS_BYTES_MAX), ("body", BODY_BYTES_MAX)],
)
@pytest.mark.parametrize("value", ["'text'", "7", "1.5", "zeroblob({more})", "hex(zeroblob(50))"])
def test_row_that_cannot_be_a_record_is_edited(
    path: Path, column: str, bytes_max: int, value: str
) -> None:
    """Another type or one byte too many is Edited for every call that meets the row."""
    value = value.format(more=bytes_max + 1)
    _attack(path, "UPDATE entries SET {column} = {value} WHERE seq = 1", column=column, value=value)
    with closing(SqliteStorage(path)) as storage:
        with pytest.raises(Edited, match=f"of {column}"):
            storage.read(_THREAD, 1)
        with pytest.raises(Edited):
            list(storage.scan(_THREAD, 0))
        with pytest.raises(Edited):
            storage.append(_THREAD, 1, [_RECORD], blobs={})

        assert storage.read(_THREAD, 0) == _RECORD


def test_missing_header_is_edited(path: Path) -> None:
    """NULL, written past its constraint, is Edited in a header and an erased body in a body."""
    sql = "UPDATE sqlite_master SET sql = replace(sql, {}) WHERE name = 'entries'"
    _attack(path, sql.format("'header BLOB NOT NULL', 'header BLOB /*NOT*/ NULL'"))
    _attack(path, "UPDATE entries SET header = NULL WHERE seq = 1")
    _attack(path, "UPDATE entries SET body = NULL WHERE seq = 2")
    _attack(path, sql.format("'header BLOB /*NOT*/ NULL', 'header BLOB NOT NULL'"))
    with closing(SqliteStorage(path)) as storage:
        with pytest.raises(Edited, match="found type null"):
            storage.read(_THREAD, 1)

        assert storage.read(_THREAD, 2) == Record(b"header", b"seals", None)


@pytest.mark.parametrize("value", ["'text'", "7", "1.5", "zeroblob(1001)"])
def test_blob_of_another_type_or_size_is_edited_and_can_be_replaced(path: Path, value: str) -> None:
    """A hostile blob is never returned; giving the blob again makes it good."""
    _attack(path, "UPDATE blobs SET data = {value}", value=value)
    with closing(SqliteStorage(path)) as storage:
        with pytest.raises(Edited, match="expected at most 1000 bytes"):
            storage.blob(_THREAD, _DIGEST, 1000)
        storage.put_blobs(_THREAD, {_DIGEST: b"blob"})

        assert storage.blob(_THREAD, _DIGEST, 1000) == b"blob"


@pytest.mark.parametrize("value", ["zeroblob(8000000)", "hex(zeroblob(4000000))"])
def test_gigantic_value_is_not_brought_into_memory(path: Path, value: str) -> None:
    """Calls answer Edited over connections that cannot hold the value at all."""
    _attack(
        path, "UPDATE entries SET body = {value}, header = {value}, seals = {value}", value=value
    )
    _attack(path, "UPDATE blobs SET data = {value}", value=value)
    with closing(SqliteStorage(path)) as storage:
        handles = storage._connections._handles
        for connection in (handles.reader, handles.writer):
            assert connection is not None
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LENGTH_LIMIT)
        for call in _CALLS[:4]:
            with pytest.raises(Edited, match="expected at most"):
                call(storage)
        with pytest.raises(Edited, match="expected at most"):
            storage.append(_THREAD, 0, [_RECORD], blobs={})
        storage.put_blobs(_THREAD, {_DIGEST: b"blob"})

        assert storage.blob(_THREAD, _DIGEST, 1000) == b"blob"


@pytest.mark.parametrize("seq", ["-1", "-9223372036854775808", "'text'", "x'00'"])
def test_impossible_position_is_not_met(path: Path, seq: str) -> None:
    """Rows at positions that cannot be are beside every range; the rest is read as before."""
    _attack(path, "UPDATE entries SET seq = {seq} WHERE seq = 1", seq=seq)
    with closing(SqliteStorage(path)) as storage:
        assert [number for number, _ in storage.scan(_THREAD, 0)] == [0, 2]
        assert [number for number, _ in storage.scan(_THREAD, -5)] == [0, 2]
        assert storage.read(_THREAD, 1) is None


def test_position_between_two_is_edited(path: Path) -> None:
    """A fraction as position lies inside a range, so the range is refused."""
    _attack(path, "UPDATE entries SET seq = 1.5 WHERE seq = 1")
    with (
        closing(SqliteStorage(path)) as storage,
        pytest.raises(Edited, match="whole number"),
    ):
        list(storage.scan(_THREAD, 0))


def test_greatest_position_ends_a_scan(path: Path) -> None:
    """A row at the last position SQLite has neither overflows nor loops."""
    last = 2**63 - 1
    _attack(path, "UPDATE entries SET seq = {seq} WHERE seq = 1", seq=last)
    with closing(SqliteStorage(path)) as storage:
        assert [number for number, _ in storage.scan(_THREAD, 0)] == [0, 2, last]
        assert [n for n, _ in storage.scan(_THREAD, 0, descending=True)] == [last, 2, 0]


@pytest.mark.parametrize("seq", ["'text'", "x'00'", "1.5"])
def test_impossible_position_hides_no_thread_from_the_list(path: Path, seq: str) -> None:
    """A row whose position cannot be one is no reason to leave its thread out, or to fail."""
    _attack(path, "UPDATE entries SET seq = {seq} WHERE seq = 1", seq=seq)
    with closing(SqliteStorage(path)) as storage:
        assert [thread for thread, _ in storage.heads()] == [_THREAD]
        assert dict(storage.heads())[_THREAD] in (-1, 2)


@pytest.mark.parametrize("thread", ["'text'", "7", "x''", "zeroblob(17)", "zeroblob(9000000)"])
def test_impossible_thread_is_edited_where_threads_are_listed(path: Path, thread: str) -> None:
    """A row whose thread cannot be one is refused by the listings that meet it."""
    _attack(path, "UPDATE entries SET thread = {thread} WHERE seq = 1", thread=thread)
    _attack(path, "UPDATE labels SET thread = {thread}", thread=thread)
    with closing(SqliteStorage(path)) as storage:
        with pytest.raises(Edited, match="thread in entries"):
            list(storage.heads())
        with pytest.raises(Edited, match="thread in labels"):
            storage.labelled(_DIGEST)


def test_flooded_label_is_edited(path: Path) -> None:
    """A label with more threads than any honest one is not collected into memory."""
    flood = (
        "INSERT INTO labels WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        "LIMIT 5000) SELECT x'{label}', randomblob(16) FROM n"
    )
    _attack(path, flood, label=_DIGEST.hex())
    with closing(SqliteStorage(path)) as storage, pytest.raises(Edited, match="4096"):
        storage.labelled(_DIGEST)


_SCHEMA_ATTACKS = {
    "trigger": [
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries WHERE seq = 0; END"
    ],
    "trigger before": [
        "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT raise(IGNORE); END",
        "CREATE TRIGGER u BEFORE INSERT ON blobs BEGIN SELECT raise(IGNORE); END",
        "CREATE TRIGGER v BEFORE UPDATE ON blobs BEGIN SELECT raise(IGNORE); END",
    ],
    "view": [
        "ALTER TABLE entries RENAME TO hidden",
        "CREATE VIEW entries AS SELECT * FROM hidden",
    ],
    "endless view": [
        "DROP TABLE entries",
        (
            "CREATE VIEW entries AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
            "SELECT i AS number, i AS thread, i AS seq, i AS header, i AS seals, i AS body FROM n"
        ),
    ],
    "dropped": ["DROP TABLE entries", "DROP TABLE blobs", "DROP TABLE labels"],
    "renamed table": ["ALTER TABLE blobs RENAME TO elsewhere"],
    "renamed column": ["ALTER TABLE entries RENAME COLUMN seals TO other"],
    "no constraint": [
        "DROP TABLE entries",
        "CREATE TABLE entries (number, thread, seq, header, seals, body)",
    ],
    "added column": ["ALTER TABLE entries ADD COLUMN extra"],
    "added table": ["CREATE TABLE extra (x)"],
    "added index": ["CREATE UNIQUE INDEX extra ON entries (header)"],
}


@pytest.mark.parametrize("name", _SCHEMA_ATTACKS)
def test_changed_schema_is_refused_when_opened(path: Path, name: str) -> None:
    """Anything but exactly the tables of a store is refused, in both modes."""
    _attack(path, "DELETE FROM entries WHERE seq > 0", *_SCHEMA_ATTACKS[name])

    for read_only in (False, True):
        with pytest.raises(Edited, match="added, changed or missing"):
            SqliteStorage(path, read_only=read_only)


@pytest.mark.parametrize("name", _SCHEMA_ATTACKS)
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
def test_schema_changed_under_an_open_store_raises_only_our_errors(
    path: Path, name: str, *, used: bool
) -> None:
    """Triggers and views that appear later run nothing: statements fail or do what they say."""
    with closing(SqliteStorage(path)) as storage:
        if used:
            for call in _CALLS:
                call(storage)
        _attack(path, "DELETE FROM entries WHERE seq > 0", *_SCHEMA_ATTACKS[name])
        for call in _CALLS:
            with suppress(SealpointError):
                call(storage)
        refused = 0
        for call in _CALLS[-3:]:
            try:
                call(storage)
            except Tampered:
                refused += 1

        assert refused > 0 or name in {"added column", "added table"}


def test_planted_trigger_changes_nothing_and_its_removal_heals(path: Path) -> None:
    """An append that would fire a trigger has no effect; without it the second call succeeds."""
    with closing(SqliteStorage(path)) as storage:
        _attack(path, *_SCHEMA_ATTACKS["trigger"])
        with pytest.raises(Edited, match="SQLITE_AUTH"):
            storage.append(_THREAD, 3, [_RECORD], blobs={})
        assert [number for number, _ in storage.scan(_THREAD, 0)] == [0, 1, 2]
        _attack(path, "DROP TRIGGER t")
        with suppress(Edited):
            storage.append(_THREAD, 3, [_RECORD], blobs={})
        storage.append(_THREAD, 3, [_RECORD], blobs={})

        assert [number for number, _ in storage.scan(_THREAD, 0)] == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["'bad' || x'ff'", "zeroblob(10)", "7", "NULL"])
def test_undecodable_schema_is_refused(path: Path, name: str) -> None:
    """Names in the schema that are no text are no foreign error."""
    _attack(
        path,
        "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) "
        "VALUES ('table', CAST({name} AS TEXT), 'x', 0, 'CREATE gibberish')",
        name=name,
    )

    with pytest.raises((Edited, StorageUnavailable)):
        SqliteStorage(path)


@pytest.mark.parametrize("start", [0, 16, 40, 100, 1000, 4096, 5000, 8192, 12288, 16384])
def test_damaged_file_raises_only_our_errors(path: Path, start: int) -> None:
    """Whatever page is overwritten or cut off, nothing but a SealpointError comes out."""
    content = path.read_bytes()
    for damage in (b"\xff" * 300, b"\x00" * 300, bytes(range(256))):
        path.write_bytes(content[:start] + damage + content[start + len(damage) :])
        _use(path)
    path.write_bytes(content[: max(start, 1)])
    _use(path)

    path.write_bytes(content)
    with closing(SqliteStorage(path)) as storage:
        assert storage.read(_THREAD, 1) is not None


def _use(path: Path) -> None:
    """Open and call everything; any error that is not ours escapes."""
    with suppress(SealpointError), closing(SqliteStorage(path)) as storage:
        for call in _CALLS:
            with suppress(SealpointError):
                call(storage)


def test_corrupt_page_is_edited(path: Path) -> None:
    """Damage that SQLite notices is reported as not what was written."""
    content = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as look:
        (root,) = look.execute("SELECT rootpage FROM sqlite_master WHERE name='entries'").fetchone()
    content[(root - 1) * 4096 : root * 4096] = b"\xaa" * 4096
    path.write_bytes(content)
    with closing(SqliteStorage(path)) as storage:
        with pytest.raises(Edited, match="SQLITE_CORRUPT"):
            storage.read(_THREAD, 1)
        with pytest.raises(Edited, match="SQLITE_CORRUPT"):
            storage.append(_THREAD, 7, [_RECORD], blobs={})

        assert storage.blob(_THREAD, _DIGEST, 1000) == b"blob"
