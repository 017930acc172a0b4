# SPDX-License-Identifier: Apache-2.0
"""The SQLite backend as a file: made, opened, refused, shared, forked, locked and full."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from sealpoint.errors import HeadMoved, ReadOnly, SchemaUnknown, StorageUnavailable, UsageError
from sealpoint.storage import Record
from sealpoint.storage._sqlite_connections import failure
from sealpoint.storage._sqlite_schema import APPLICATION_ID
from sealpoint.storage.sqlite import SqliteStorage
from tests.warm import run_command

_THREAD = bytes(range(16))
_DIGEST = bytes(range(32))
_RECORD = Record(b"header", b"seals", b"body")


def _run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program that has the names of this package in another process."""
    prelude = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from sealpoint.errors import *\n"
        "from sealpoint.storage import Record\n"
        "from sealpoint.storage.sqlite import SqliteStorage\n"
        "path = Path(sys.argv[1])\n"
        "thread, digest = bytes(range(16)), bytes(range(32))\n"
    )
    words = ["python", "-c", prelude + program, *map(str, arguments)]
    return run_command(words, Path.cwd(), dict(os.environ), 60, apart=True)


def test_made_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """The file and what SQLite puts beside it have mode 0600; nothing else is left there."""
    path = tmp_path / "store.db"
    with closing(SqliteStorage(path, create=True)) as storage:
        storage.append(_THREAD, 0, [_RECORD], blobs={})
        files = sorted(tmp_path.iterdir())
        modes = {stat.S_IMODE(file.stat().st_mode) for file in files}

    assert [file.name for file in files] == ["store.db", "store.db-shm", "store.db-wal"]
    assert modes == {0o600}


def test_closing_leaves_one_file(tmp_path: Path) -> None:
    """The last close folds the log into the file."""
    path = tmp_path / "store.db"
    with closing(SqliteStorage(path, create=True)) as storage:
        storage.append(_THREAD, 0, [_RECORD], blobs={_DIGEST: bytes(100_000)})

    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_size > 100_000


def test_commits_are_synchronous_and_logged(tmp_path: Path) -> None:
    """The writing connection has synchronous=FULL and a write-ahead log."""
    with closing(SqliteStorage(tmp_path / "store.db", create=True)) as storage:
        writer = storage._connections._handles.writer
        assert writer is not None
        writer.set_authorizer(None)
        synchronous = writer.execute("PRAGMA synchronous").fetchone()
        journal = writer.execute("PRAGMA journal_mode").fetchone()

    assert synchronous == (2,)
    assert journal == ("wal",)


def test_names_with_signs_of_an_address_are_plain_names(tmp_path: Path) -> None:
    """A path is a path: question marks, hashes and percent signs mean nothing in it."""
    path = tmp_path / "a?mode=memory#b%20c d.db"
    with closing(SqliteStorage(path, create=True)) as storage:
        storage.append(_THREAD, 0, [_RECORD], blobs={})

    assert list(tmp_path.iterdir()) == [path]


def test_missing_file_is_named(tmp_path: Path) -> None:
    """Without create=True a missing file is an error that names it, and is not made."""
    path = tmp_path / "absent.db"
    for read_only in (False, True):
        with pytest.raises(StorageUnavailable, match=r"absent\.db: there is no such file"):
            SqliteStorage(path, read_only=read_only)

    assert not path.exists()


def test_missing_directory_is_named(tmp_path: Path) -> None:
    """A store is not made in a directory that does not exist."""
    with pytest.raises(StorageUnavailable, match=r"expected a directory .*nowhere"):
        SqliteStorage(tmp_path / "nowhere" / "store.db", create=True)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("content", [b"", b"no database at all\n" * 100, b"SQLite format 3\x00"])
def test_foreign_file_is_refused_and_left_alone(
    tmp_path: Path, content: bytes, *, create: bool
) -> None:
    """A file that is no SQLite database is SchemaUnknown, and keeps its bytes."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(SchemaUnknown, match=r"notes\.txt"):
        SqliteStorage(path, create=create)

    assert path.read_bytes() == content


def test_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A database of another program is SchemaUnknown, and keeps its bytes."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE entries (thread)")
    content = path.read_bytes()
    with pytest.raises(SchemaUnknown, match="found application id 0"):
        SqliteStorage(path, create=True)

    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("version", [0, 2, 1_000_000, -1])
def test_other_schema_version_is_refused_with_both_versions(tmp_path: Path, version: int) -> None:
    """A newer or older schema is SchemaUnknown, saying what was found and what is known."""
    path = tmp_path / "store.db"
    SqliteStorage(path, create=True).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")

    with pytest.raises(SchemaUnknown, match=rf"expected schema version 1.*found {version}\n"):
        SqliteStorage(path)


def test_directory_is_no_store(tmp_path: Path) -> None:
    """A path that is a directory is refused, created or not."""
    for create in (False, True):
        with pytest.raises(StorageUnavailable):
            SqliteStorage(tmp_path, create=create)


def test_application_id_is_frozen() -> None:
    """The mark of a store never changes: stores in the field carry it."""
    assert APPLICATION_ID == 1587646647


def test_read_only_reads_while_a_writer_writes(tmp_path: Path) -> None:
    """A read-only handle follows the writer, refuses to write, and leaves the file alone."""
    path = tmp_path / "store.db"
    with (
        closing(SqliteStorage(path, create=True)) as writer,
        closing(SqliteStorage(path, read_only=True)) as reader,
    ):
        for number in range(3):
            writer.append(_THREAD, number, [_RECORD], blobs={_DIGEST: b"blob"})
            assert len(list(reader.scan(_THREAD, 0))) == number + 1
        with pytest.raises(ReadOnly, match="read_only"):
            reader.append(_THREAD, 3, [_RECORD], blobs={})
        with pytest.raises(ReadOnly):
            reader.put_blobs(_THREAD, {_DIGEST: b"other"})

        assert writer.blob(_THREAD, _DIGEST, 10) == b"blob"
    with pytest.raises(UsageError, match="found both"):
        SqliteStorage(path, create=True, read_only=True)


def test_two_creators_make_one_store(tmp_path: Path) -> None:
    """Processes that create at once all succeed and write to the same file."""
    path = tmp_path / "store.db"
    program = (
        "storage = SqliteStorage(path, create=True)\n"
        "storage.append(thread, int(sys.argv[2]), [Record(b'h', b's', b'b')], blobs={})\n"
        "storage.close()\n"
    )
    results: list[subprocess.CompletedProcess[str]] = []
    starters = [
        threading.Thread(target=lambda n=number: results.append(_run(program, path, n)))
        for number in range(4)
    ]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    with closing(SqliteStorage(path)) as storage:
        numbers = [number for number, _ in storage.scan(_THREAD, 0)]

    assert [result.stderr for result in results] == [""] * 4
    assert numbers == [0, 1, 2, 3]
    assert list(tmp_path.iterdir()) == [path]


def test_racing_processes_win_each_position_once(tmp_path: Path) -> None:
    """Two processes after the same positions: each position has one winner, and both know it."""
    path = tmp_path / "store.db"
    SqliteStorage(path, create=True).close()
    program = (
        "won, me = [], sys.argv[2].encode()\n"
        "storage = SqliteStorage(path)\n"
        "for number in range(200):\n"
        "    try:\n"
        "        storage.append(thread, number, [Record(me, b's', b'b')], blobs={digest: me})\n"
        "        won.append(number)\n"
        "    except HeadMoved:\n"
        "        pass\n"
        "storage.close()\n"
        "print(*won)\n"
    )
    results: dict[str, subprocess.CompletedProcess[str]] = {}
    starters = [
        threading.Thread(target=lambda n=name: results.update({n: _run(program, path, n)}))
        for name in ("one", "two")
    ]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    with closing(SqliteStorage(path)) as storage:
        stored = {number: record.header.decode() for number, record in storage.scan(_THREAD, 0)}

    assert {result.stderr for result in results.values()} == {""}
    claimed = {
        int(number): name for name, result in results.items() for number in result.stdout.split()
    }
    assert claimed == stored
    assert sum(len(result.stdout.split()) for result in results.values()) == 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_fork_opens_its_own_connections(tmp_path: Path) -> None:
    """Parent and child go on with one handle, each over connections of its own."""
    path = tmp_path / "store.db"
    program = (
        "storage = SqliteStorage(path, create=True)\n"
        "unused = SqliteStorage(path)\n"
        "storage.append(thread, 0, [Record(b'parent', b's', b'b')], blobs={})\n"
        "inherited = storage._connections._handles\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    del unused\n"
        "    assert storage.read(thread, 0).header == b'parent'\n"
        "    assert storage._connections._handles is not inherited\n"
        "    assert inherited.writer is None\n"
        "    storage.append(thread, 1, [Record(b'child', b's', b'b')], blobs={})\n"
        "    storage.close()\n"
        "    sys.exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "assert storage._connections._handles is inherited\n"
        "storage.append(thread, 2, [Record(b'parent', b's', b'b')], blobs={})\n"
        "assert len(list(unused.scan(thread, 0))) == 3\n"
        "unused.close()\n"
        "storage.close()\n"
    )
    result = _run(program, path)
    with closing(sqlite3.connect(path)) as check:
        integrity = check.execute("PRAGMA integrity_check").fetchall()
    with closing(SqliteStorage(path)) as storage:
        headers = [record.header for _, record in storage.scan(_THREAD, 0)]

    assert (result.returncode, result.stderr) == (0, "")
    assert headers == [b"parent", b"child", b"parent"]
    assert integrity == [("ok",)]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_child_of_a_closed_storage_finds_it_closed(tmp_path: Path) -> None:
    """Forking does not reopen what was closed, and closing in the child leaves the parent's."""
    program = (
        "closed = SqliteStorage(path, create=True)\n"
        "closed.close()\n"
        "storage = SqliteStorage(path)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    storage.close()\n"
        "    for each in (closed, storage):\n"
        "        try:\n"
        "            each.read(thread, 0)\n"
        "        except UsageError:\n"
        "            continue\n"
        "        sys.exit(1)\n"
        "    sys.exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "storage.append(thread, 0, [Record(b'h', b's', b'b')], blobs={})\n"
        "storage.close()\n"
    )
    result = _run(program, tmp_path / "store.db")

    assert (result.returncode, result.stderr) == (0, "")


def test_locked_store_is_unavailable_then_usable(tmp_path: Path) -> None:
    """Waiting for another writer ends in StorageUnavailable; reads go on; later it works."""
    path = tmp_path / "store.db"
    SqliteStorage(path, create=True).close()
    with (
        closing(SqliteStorage(path, wait_seconds_max=0.05)) as storage,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailable, match="SQLITE_BUSY") as caught:
            storage.append(_THREAD, 0, [_RECORD], blobs={})
        assert storage.read(_THREAD, 0) is None
        other.execute("ROLLBACK")
        storage.append(_THREAD, 0, [_RECORD], blobs={})

        assert isinstance(caught.value.__cause__, sqlite3.Error)
        assert storage.read(_THREAD, 0) == _RECORD


def test_others_wait_for_who_is_alone(tmp_path: Path) -> None:
    """Until the block ends, or its own append has ended it; a refused one leaves nothing held."""
    path = tmp_path / "store.db"
    with (
        closing(SqliteStorage(path, create=True)) as storage,
        closing(SqliteStorage(path, wait_seconds_max=0.05)) as other,
    ):
        with storage.alone(_THREAD):
            with pytest.raises(StorageUnavailable, match="SQLITE_BUSY"):
                other.append(_THREAD, 0, [_RECORD], blobs={})
            storage.append(_THREAD, 0, [_RECORD], blobs={})
            other.append(_THREAD, 1, [_RECORD], blobs={})
        with storage.alone(_THREAD), pytest.raises(HeadMoved):
            storage.append(_THREAD, 1, [Record(b"other", b"", None)], blobs={})
        with pytest.raises(KeyError), storage.alone(_THREAD):
            raise KeyError
        other.append(_THREAD, 2, [_RECORD], blobs={})

        assert [seq for seq, _ in other.scan(_THREAD, 0)] == [0, 1, 2]


def _failing(connection: sqlite3.Connection, statement: str) -> sqlite3.Error:
    with closing(connection), pytest.raises(sqlite3.Error) as failed:
        connection.execute(statement)
    return failed.value


def test_a_disk_that_cannot_be_written_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full one and one that is mounted read-only: neither is a question of permissions."""
    path = tmp_path / "a.db"
    small = sqlite3.connect(path)
    small.execute("PRAGMA max_page_count = 1")
    full = failure(path, _failing(small, "CREATE TABLE t (a)"))
    denied = _failing(sqlite3.connect(f"file:{path}?mode=ro", uri=True), "CREATE TABLE t (a)")
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    mounted = failure(path, denied)

    assert "make room where the store lies" in str(full)
    assert "is on a file system that is mounted read-only" in str(mounted)
    assert "have it mounted so that it can be written" in str(mounted)


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no limit on file sizes")
def test_full_disk_is_unavailable_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    """When bytes cannot be written the append has no effect, and smaller ones still succeed."""
    program = (
        "import resource\n"
        "storage = SqliteStorage(path, create=True)\n"
        "storage.append(thread, 0, [Record(b'h', b's', b'b')], blobs={})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))\n"
        "for size in (300_000, 600_000, 30_000_000):\n"
        "    try:\n"
        "        storage.append(thread, 1, [Record(b'h', b's', b'b')] * 50,\n"
        "                       blobs={digest: bytes(size)}, label=digest)\n"
        "        assert size == 300_000\n"
        "        break\n"
        "    except StorageUnavailable as exc:\n"
        "        assert exc.__cause__ is not None\n"
        "else:\n"
        "    raise SystemExit('nothing fits')\n"
        "try:\n"
        "    storage.append(thread, 51, [Record(b'h', b's', b'b')],\n"
        "                   blobs={digest: bytes(600_000)})\n"
        "    raise SystemExit('the limit was not reached')\n"
        "except StorageUnavailable as exc:\n"
        "    print(exc)\n"
        "assert storage.read(thread, 51) is None\n"
        "assert len(storage.blob(thread, digest, 10**6)) == 300_000\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "storage.append(thread, 51, [Record(b'h', b's', b'b')], blobs={digest: bytes(600_000)})\n"
        "storage.close()\n"
    )
    path = tmp_path / "store.db"
    result = _run(program, path)
    with closing(SqliteStorage(path)) as storage:
        numbers = [number for number, _ in storage.scan(_THREAD, 0)]

    assert (result.returncode, result.stderr) == (0, "")
    assert "SQLITE_" in result.stdout
    assert numbers == list(range(52))


def test_interrupted_append_leaves_nothing(tmp_path: Path) -> None:
    """Whatever stops an append before its commit, nothing of it stays and the handle works."""
    with closing(SqliteStorage(tmp_path / "store.db", create=True)) as storage:
        writer = storage._connections._handles.writer
        assert writer is not None
        calls = iter(range(1000))

        def stop() -> int:
            return int(next(calls) >= 3)

        writer.set_progress_handler(stop, 5)
        with pytest.raises(StorageUnavailable, match="SQLITE_INTERRUPT"):
            storage.append(_THREAD, 0, [_RECORD] * 20, blobs={_DIGEST: b"blob"})
        writer.set_progress_handler(None, 0)

        assert storage.read(_THREAD, 0) is None
        storage.append(_THREAD, 0, [_RECORD], blobs={})
        assert [number for number, _ in storage.scan(_THREAD, 0)] == [0]


def test_scan_holds_nothing_between_batches(tmp_path: Path) -> None:
    """A scan that was left half-way does not keep the log from being folded in."""
    path = tmp_path / "store.db"
    with closing(SqliteStorage(path, create=True)) as storage:
        storage.append(_THREAD, 0, [_RECORD] * 100, blobs={})
        scan = storage.scan(_THREAD, 0)
        next(scan)
        storage.append(_THREAD, 100, [_RECORD], blobs={})
        with closing(sqlite3.connect(path)) as other:
            busy, _, _ = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

        assert busy == 0
        assert len(list(scan)) == 100


def test_positions_and_bounds_beyond_sqlite_are_no_foreign_error(tmp_path: Path) -> None:
    """Numbers of any size are refused or find nothing; they never overflow."""
    with closing(SqliteStorage(tmp_path / "store.db", create=True)) as storage:
        storage.put_blobs(_THREAD, {_DIGEST: b"blob"})
        with pytest.raises(UsageError, match="position"):
            storage.append(_THREAD, 2**63, [_RECORD], blobs={})

        assert storage.read(_THREAD, 2**80) is None
        assert storage.read(_THREAD, -1) is None
        assert not list(storage.scan(_THREAD, 2**80))
        assert not list(storage.scan(_THREAD, -(2**80), 2**80))
        assert storage.blob(_THREAD, _DIGEST, 2**80) == b"blob"


@pytest.mark.parametrize("wrong", ["text", bytearray(b"bytes"), 7])
def test_only_bytes_are_stored(tmp_path: Path, wrong: object) -> None:
    """What is not exactly bytes would come back as something else, so it is refused."""
    with closing(SqliteStorage(tmp_path / "store.db", create=True)) as storage:
        with pytest.raises(UsageError):
            storage.append(_THREAD, 0, [Record(b"h", b"s", wrong)], blobs={})  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            storage.put_blobs(_THREAD, {_DIGEST: wrong})  # type: ignore[dict-item]

        assert not list(storage.heads())


def test_nobody_waits_for_a_commit_to_be_told_the_version(tmp_path: Path) -> None:
    """While one is under way the version is unknown, and afterwards it has moved by that commit."""
    with closing(SqliteStorage(tmp_path / "store.db", create=True)) as storage:
        before = storage.version()
        asked: list[object] = []

        def commit(writer: sqlite3.Connection) -> None:
            asked.append(storage.version())
            writer.execute("SELECT 1")

        storage._connections.change(1, commit)
        after = storage.version()

    assert asked == [None]
    assert before is not None
    assert after == (before[0], before[1], before[2] + 1)
