# SPDX-License-Identifier: Apache-2.0
"""The SQLite backend when it drops and lists, over a file that somebody has been at."""

import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from sealpoint.errors import Edited, HeadMoved, Missing, SealpointError, StorageUnavailable
from sealpoint.storage import Record
from sealpoint.storage._sqlite_connections import connect
from sealpoint.storage._sqlite_file import file_identity
from sealpoint.storage._sqlite_schema import Purpose
from sealpoint.storage.sqlite import SqliteStorage

_THREAD = bytes(range(16))
_DIGEST = bytes(range(32))
_RECORD = Record(b"header", b"seals", b"body", b"payload")
_PAGE_BYTES = 4096
_MIB = 1024 * 1024
_BLOBS = 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a store with three entries, many blobs and a label."""
    path = tmp_path / "store.db"
    blobs = {number.to_bytes(32, "big"): b"%d" % number for number in range(1, _BLOBS + 1)}
    with closing(SqliteStorage(path, create=True)) as storage:
        storage.append(_THREAD, 0, [_RECORD] * 3, blobs=blobs, label=_DIGEST)
    return path


def _attack(path: Path, *statements: str, **parts: object) -> None:
    """Run raw SQL, as whoever holds the file can, whatever the schema says."""
    with closing(sqlite3.connect(path, isolation_level=None)) as attacker:
        attacker.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            attacker.execute(statement.format(**parts))


def _root_page(path: Path, name: str) -> int:
    with closing(sqlite3.connect(path)) as look:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        return int(look.execute(sql, (name,)).fetchone()[0])


def _turn_round(path: Path, name: str, pointer: Callable[[int, list[int]], int]) -> None:
    """Change the pointers to the children of the root page of a table or index."""
    number = _root_page(path, name)
    content = bytearray(path.read_bytes())
    page = memoryview(content)[(number - 1) * _PAGE_BYTES : number * _PAGE_BYTES]
    assert page[0] in {2, 5}  # it has children
    cells = int.from_bytes(page[3:5], "big")
    places = [int.from_bytes(page[12 + 2 * n : 14 + 2 * n], "big") for n in range(cells)]
    children = [int.from_bytes(page[place : place + 4], "big") for place in places]
    for place in places:
        page[place : place + 4] = pointer(number, children).to_bytes(4, "big")
    page.release()
    path.write_bytes(content)


_LOOPS: dict[str, Callable[[int, list[int]], int]] = {
    "to the first child": lambda _own, children: children[0],
    "to itself": lambda own, _children: own,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["blobs", "sqlite_autoindex_blobs_1"])
@pytest.mark.parametrize("loop", _LOOPS)
def test_loop_in_a_table_or_index_ends_with_our_error(path: Path, name: str, loop: str) -> None:
    """Pages that lead to each other neither keep a call for ever nor fill the memory."""
    _turn_round(path, name, _LOOPS[loop])
    digests = [number.to_bytes(32, "big") for number in range(1, _BLOBS + 1)]
    with closing(SqliteStorage(path)) as storage:
        calls: list[Callable[[], object]] = [
            lambda: list(storage.blob_threads()),
            lambda: storage.append(_THREAD, 3, [_RECORD], blobs={}, needs=digests),
            lambda: storage.drop(_THREAD, 3, blobs=digests),
        ]
        tracemalloc.start()
        try:
            with pytest.raises(Edited):
                list(storage.stored_blobs(_THREAD))
            with pytest.raises(Edited, match="found damaged ones"):
                storage.compact()
            for call in calls:
                with suppress(SealpointError):
                    call()
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert storage.read(_THREAD, 0) == _RECORD
    assert peak_bytes < _MIB


def test_index_in_another_order_is_edited(path: Path) -> None:
    """Blobs are listed upwards or not at all."""
    change = "UPDATE sqlite_master SET sql = replace(sql, {}) WHERE name = 'blobs'"
    _attack(path, change.format("'(thread, digest)', '(thread, digest DESC)'"))
    _attack(path, "REINDEX blobs")
    _attack(path, change.format("'(thread, digest DESC)', '(thread, digest)'"))
    with (
        closing(SqliteStorage(path)) as storage,
        pytest.raises(Edited, match=r"blobs in store .*: expected them in rising order"),
    ):
        list(storage.stored_blobs(_THREAD))


@pytest.mark.parametrize(
    "digest", ["'text'", "7", "1.5", "x''", "zeroblob(33)", "zeroblob(9000000)"]
)
def test_impossible_digest_is_edited_where_blobs_are_listed(path: Path, digest: str) -> None:
    """A row whose digest cannot be one is refused by the list that meets it."""
    _attack(path, "UPDATE blobs SET digest = {digest} WHERE number = 500", digest=digest)
    with closing(SqliteStorage(path)) as storage, pytest.raises(Edited, match="digest in blobs"):
        list(storage.stored_blobs(_THREAD))


@pytest.mark.parametrize("data", ["'text'", "7", "1.5", "hex(zeroblob(4000000))"])
def test_blob_that_is_no_bytes_is_edited_where_blobs_are_listed(path: Path, data: str) -> None:
    """A row whose data are of another type has no size; a text is not read to find one."""
    _attack(path, "UPDATE blobs SET data = {data} WHERE number = 500", data=data)
    with closing(SqliteStorage(path)) as storage:
        _limit(storage)
        with pytest.raises(Edited, match="expected bytes"):
            list(storage.stored_blobs(_THREAD))


@pytest.mark.parametrize("thread", ["'text'", "7", "x''", "zeroblob(17)", "zeroblob(9000000)"])
def test_impossible_thread_of_a_blob_is_edited(path: Path, thread: str) -> None:
    """A row whose thread cannot be one is refused by the list that meets it."""
    _attack(path, "UPDATE blobs SET thread = {thread} WHERE number = 500", thread=thread)
    with closing(SqliteStorage(path)) as storage, pytest.raises(Edited, match="thread in blobs"):
        list(storage.blob_threads())


def test_gigantic_value_is_listed_and_dropped_without_being_read(path: Path) -> None:
    """Connections that cannot hold the values tell their sizes and take them away."""
    _attack(path, "UPDATE blobs SET data = zeroblob(8000000) WHERE number = 500")
    _attack(path, "UPDATE entries SET body = zeroblob(8000000) WHERE seq = 1")
    _attack(path, "UPDATE entries SET payload = zeroblob(8000000)")
    digest = (500).to_bytes(32, "big")
    with closing(SqliteStorage(path)) as storage:
        _limit(storage)
        size_bytes = dict(storage.stored_blobs(_THREAD))[digest]
        storage.append(_THREAD, 3, [_RECORD], blobs={}, needs=[digest])
        storage.drop(_THREAD, 3, payloads=[0], bodies=[1, 2], blobs=[digest])
        found = [record for _, record in storage.scan(_THREAD, 0)]

        assert size_bytes == 8_000_000
        assert digest not in dict(storage.stored_blobs(_THREAD))
        assert found[0] == Record(b"header", b"seals", b"body")
        assert found[1] == found[2] == Record(b"header", b"seals", None)


@pytest.mark.parametrize("column", ["header", "seals"])
def test_gigantic_header_keeps_everything_from_being_dropped(path: Path, column: str) -> None:
    """What stays of an entry would have to be read to be written again: it is Edited instead."""
    _attack(path, "UPDATE entries SET {column} = zeroblob(8000000) WHERE seq = 1", column=column)
    digest = (500).to_bytes(32, "big")
    with closing(SqliteStorage(path)) as storage:
        writer = storage._connections._handles.writer
        assert writer is not None
        limit = writer.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
        with pytest.raises(Edited, match="SQLITE_TOOBIG"):
            storage.drop(_THREAD, 2, bodies=[0, 1], blobs=[digest], label=_DIGEST)

        assert storage.read(_THREAD, 0) == _RECORD
        assert storage.blob(_THREAD, digest, 9) == b"500"
        assert storage.labelled(_DIGEST) == [_THREAD]
        assert writer.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == limit
        storage.put_blobs(_THREAD, {_DIGEST: bytes(5 * _MIB)})


@pytest.mark.parametrize(
    "trigger",
    [
        "BEFORE UPDATE ON entries BEGIN SELECT raise(IGNORE); END",
        "BEFORE DELETE ON blobs BEGIN SELECT raise(IGNORE); END",
        "AFTER DELETE ON labels BEGIN INSERT INTO labels VALUES (old.label, old.thread); END",
        "AFTER UPDATE ON entries BEGIN DELETE FROM entries; END",
    ],
)
def test_planted_trigger_changes_no_drop(path: Path, trigger: str) -> None:
    """A trigger that appears under an open store fails the drop, or it does what it says."""
    digest = (500).to_bytes(32, "big")
    with closing(SqliteStorage(path)) as storage:
        storage.drop(_THREAD, 2, bodies=[8], blobs=[_DIGEST], label=bytes(32))
        _attack(path, f"CREATE TRIGGER t {trigger}")
        with suppress(Edited):
            storage.drop(_THREAD, 2, bodies=[0], blobs=[digest], label=_DIGEST)
        gone = [
            storage.read(_THREAD, 0) == Record(b"header", b"seals", None),
            storage.blob(_THREAD, digest, 9) is None,
            storage.labelled(_DIGEST) == [],
        ]

        assert len(set(gone)) == 1
        assert len(list(storage.scan(_THREAD, 0))) == 3


_NEVER = [
    "DELETE FROM entries",
    "UPDATE entries SET header = x''",
    "UPDATE entries SET seals = x''",
    "UPDATE entries SET seq = seq + 1",
    "UPDATE entries SET number = number + 1",
    "UPDATE blobs SET digest = x''",
    "UPDATE blobs SET thread = x''",
    "UPDATE labels SET thread = x''",
    "DROP TABLE labels",
    "CREATE TABLE more (x)",
    "CREATE TEMP TABLE more (x)",
    "CREATE TEMP TRIGGER t AFTER DELETE ON blobs BEGIN DELETE FROM labels; END",
    "ATTACH 'other.db' AS other",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA secure_delete = OFF",
    "PRAGMA user_version = 7",
    "SELECT load_extension('x')",
    "SELECT randomblob(9)",
    "ANALYZE",
    "REINDEX",
]
_WRITES = [
    "INSERT INTO labels VALUES (x'', x'')",
    "INSERT INTO blobs (thread, digest, data) VALUES (x'', x'', x'')",
    "UPDATE blobs SET data = x''",
    "UPDATE entries SET body = NULL, payload = NULL",
    "DELETE FROM blobs",
    "DELETE FROM labels",
]


@pytest.mark.parametrize("purpose", Purpose)
def test_connection_does_no_more_than_its_purpose_takes(path: Path, purpose: Purpose) -> None:
    """Statements that are not needed are not authorized, whoever would come to run them."""
    denied = {
        Purpose.READ: [*_NEVER, *_WRITES, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"],
        Purpose.WRITE: [*_NEVER, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"],
        # It may delete entries, and nothing else.
        Purpose.TRUNCATE: [*_NEVER[1:], *_WRITES, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"],
        Purpose.COMPACT: [*_NEVER, *_WRITES, "VACUUM INTO 'other.db'"],
    }
    connection = connect(path, identity=file_identity(path), purpose=purpose, wait_seconds_max=5)
    with closing(connection):
        for sql in denied[purpose]:
            with pytest.raises(sqlite3.Error, match=r"not authorized|authorization denied"):
                connection.execute(sql)

    assert [each.name for each in path.parent.iterdir() if "other" in each.name] == []


def test_writer_overwrites_what_it_deletes(path: Path) -> None:
    """The writing connection has secure_delete on, whatever SQLite was built with."""
    with closing(SqliteStorage(path)) as storage:
        writer = storage._connections._handles.writer
        assert writer is not None
        writer.set_authorizer(None)

        assert writer.execute("PRAGMA secure_delete").fetchone() == (1,)


def test_plain_append_is_one_statement(path: Path) -> None:
    """The most frequent append has no transaction around it; one that needs a blob has."""
    with closing(SqliteStorage(path)) as storage:
        writer = storage._connections._handles.writer
        assert writer is not None
        statements: list[str] = []
        writer.set_trace_callback(statements.append)
        storage.append(_THREAD, 3, [_RECORD], blobs={})
        plain = [sql.split()[0] for sql in statements]
        statements.clear()
        storage.append(_THREAD, 4, [_RECORD], blobs={}, needs=[(1).to_bytes(32, "big")])
        needing = [sql.split()[0] for sql in statements]
        writer.set_trace_callback(None)

    assert plain == ["INSERT"]
    assert needing == ["BEGIN", "INSERT", "SELECT", "COMMIT"]


def test_interrupted_drop_leaves_everything(path: Path) -> None:
    """Whatever stops a drop before its commit, nothing of it stays and the handle works."""
    digests = [number.to_bytes(32, "big") for number in range(1, _BLOBS + 1)]
    with closing(SqliteStorage(path)) as storage:
        writer = storage._connections._handles.writer
        assert writer is not None
        calls = iter(range(100_000))
        writer.set_progress_handler(lambda: int(next(calls) >= 200), 20)
        with pytest.raises(StorageUnavailable, match="SQLITE_INTERRUPT"):
            storage.drop(_THREAD, 2, bodies=[0, 1, 2], blobs=digests, label=_DIGEST)
        writer.set_progress_handler(None, 0)
        kept = [record for _, record in storage.scan(_THREAD, 0)]
        count = len(list(storage.stored_blobs(_THREAD)))
        storage.drop(_THREAD, 2, bodies=[0, 1, 2], blobs=digests, label=_DIGEST)

        assert kept == [_RECORD] * 3
        assert count == _BLOBS
        assert not list(storage.stored_blobs(_THREAD))


def test_locked_store_drops_nothing_and_needs_nothing(path: Path) -> None:
    """Waiting for another writer ends in StorageUnavailable; later both work."""
    digest = (500).to_bytes(32, "big")
    with (
        closing(SqliteStorage(path, wait_seconds_max=0.05)) as storage,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailable, match="SQLITE_BUSY"):
            storage.drop(_THREAD, 2, blobs=[digest])
        with pytest.raises(StorageUnavailable, match="SQLITE_BUSY"):
            storage.append(_THREAD, 3, [_RECORD], blobs={}, needs=[digest])
        other.execute("ROLLBACK")
        storage.append(_THREAD, 3, [_RECORD], blobs={}, needs=[digest])
        with pytest.raises(HeadMoved, match="entry 3 of thread"):
            storage.drop(_THREAD, 2, blobs=[digest])
        storage.drop(_THREAD, 3, blobs=[digest])
        with pytest.raises(Missing, match=f"blob {digest.hex()} of thread"):
            storage.append(_THREAD, 4, [_RECORD], blobs={}, needs=[digest])

        assert storage.read(_THREAD, 4) is None


def _limit(storage: SqliteStorage) -> None:
    """Let no connection of a storage hold a value of more than two megabytes."""
    for connection in (storage._connections._handles.reader, storage._connections._handles.writer):
        assert connection is not None
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * _MIB)
