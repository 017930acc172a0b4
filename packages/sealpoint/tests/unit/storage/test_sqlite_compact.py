# SPDX-License-Identifier: Apache-2.0
"""The SQLite backend when it compacts: what is left in its files, and what others notice of it."""

import os
import random
import signal
import sqlite3
import stat
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

import sealpoint.storage._sqlite_file as compacting
from sealpoint.errors import ReadOnly, StorageUnavailable, UsageError
from sealpoint.storage import Record
from sealpoint.storage._sqlite_connections import connect
from sealpoint.storage._sqlite_file import file_identity
from sealpoint.storage._sqlite_schema import APPLICATION_ID, Purpose
from sealpoint.storage.sqlite import SqliteStorage
from tests.unit.storage.sqlite_churn import (
    Churn,
    content_of,
    found,
    holds_part,
    mark_of,
    names_beside,
    process,
    raw_of,
    say,
)

_THREAD = bytes(range(16))
_MIB = 1024 * 1024


def test_nothing_dropped_is_left_while_another_process_has_the_store_open(tmp_path: Path) -> None:
    """No file holds a part of what went, or its digest; before compacting one did."""
    # The other process has read everything, and goes on reading and writing afterwards.
    path = tmp_path / "store.db"
    program = (
        "storage = SqliteStorage(path)\n"
        "for line in sys.stdin:\n"
        "    for each in storage.blob_threads():\n"
        "        list(storage.scan(each, 0))\n"
        "        for digest, size in storage.stored_blobs(each):\n"
        "            assert len(storage.blob(each, digest, size)) == size\n"
        "    storage.append(thread, int(line), [Record(b'h', b's', b'b')], blobs={})\n"
        "    print('done', flush=True)\n"
        "storage.close()\n"
    )
    with closing(SqliteStorage(path, create=True)) as storage, process(program, path) as other:
        first = say(other, "0")
        churn = Churn(storage)
        second = say(other, "1")
        before = raw_of(path)
        storage.compact()
        after = raw_of(path)
        third = say(other, "2")
        last = raw_of(path)

    assert (first, second, third, other.returncode) == ("done", "done", "done", 0)
    assert len(churn.gone) > 300
    assert churn.gone & found(before)
    assert not holds_part(after, churn.gone)
    assert not churn.gone & found(last)
    assert churn.kept <= found(after)


def test_copies_of_rows_that_were_moved_are_not_left(tmp_path: Path) -> None:
    """Copies that SQLite made of small rows, and forgot, stay until the store is compacted."""
    # Without such copies, overwriting what is dropped and emptying the log would be enough.
    # Whether a store has any is a matter of chance: about one in three has.
    copies = 0
    for seed in (1, 2, 8):
        chance = random.Random(seed)  # noqa: S311 # the same every time
        path = tmp_path / str(seed) / "store.db"
        path.parent.mkdir()
        gone: set[bytes] = set()
        live: list[bytes] = []
        with closing(SqliteStorage(path, create=True)) as storage:
            for step in range(60):
                new = [mark_of(step, number) for number in range(chance.randrange(40))]
                blobs = {mark + bytes(12): mark * chance.choice((2, 5, 12)) for mark in new}
                storage.put_blobs(_THREAD, blobs)
                live += new
                chance.shuffle(live)
                count = int(len(live) * chance.random() * 0.5)
                storage.drop(_THREAD, 0, blobs=[mark + bytes(12) for mark in live[:count]])
                gone.update(live[:count])
                del live[:count]
            with closing(sqlite3.connect(path)) as other:
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            copies += len(gone & found(raw_of(path)))
            storage.compact()
            raw = raw_of(path)

        assert not holds_part(raw, gone)
        assert found(raw) >= set(live)
    assert copies


def test_one_entry_of_many_leaves_nothing(tmp_path: Path) -> None:
    """What was dropped first and alone is not in the file after any later compaction either."""
    path = tmp_path / "store.db"
    marks = [mark_of("body", number) for number in range(40)]
    with closing(SqliteStorage(path, create=True)) as storage:
        for number, mark in enumerate(marks):
            storage.append(_THREAD, number, [Record(b"h", b"s", mark, mark)], blobs={})
        for number in (7, 20, 0, 39):
            storage.drop(_THREAD, 39, bodies=[number])
            storage.compact()
            left = {seq for seq, mark in enumerate(marks) if mark in raw_of(path)}
            stored = {seq for seq, record in storage.scan(_THREAD, 0) if record.body is not None}

            assert number not in left
            assert left == stored


@pytest.mark.parametrize("in_memory", [True, False])
def test_space_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_memory: bool
) -> None:
    """After dropping five sixths the file has about a sixth, and its log nothing."""
    if not in_memory:
        monkeypatch.setattr(compacting, "_MEMORY_BYTES_MAX", 0)
    path = tmp_path / "store.db"
    blobs = {bytes([number]) * 32: os.urandom(_MIB // 2) for number in range(12)}
    with closing(SqliteStorage(path, create=True)) as storage:
        storage.append(_THREAD, 0, [Record(b"h", b"s", b"b")], blobs=blobs)
        storage.drop(_THREAD, 0, blobs=list(blobs)[2:])
        storage.compact()
        left = path.stat().st_size
        log = path.with_name("store.db-wal").stat().st_size

        assert log == 0
        assert _MIB < left < 1.2 * _MIB
        assert dict(storage.stored_blobs(_THREAD)) == dict.fromkeys(list(blobs)[:2], _MIB // 2)


def test_file_stays_what_it_was(tmp_path: Path) -> None:
    """Name, mode, page size, marks, log mode and schema are as before; SQLite finds no fault."""
    path = tmp_path / "store.db"
    with closing(SqliteStorage(path, create=True)) as storage:
        Churn(storage)
        inode = path.stat().st_ino
        storage.compact()
        modes = {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
        names = names_beside(path)
    with closing(sqlite3.connect(path)) as look:
        pragmas = {
            name: look.execute(f"PRAGMA {name}").fetchone()[0]
            for name in (
                *("application_id", "user_version", "page_size", "journal_mode"),
                *("freelist_count", "auto_vacuum", "integrity_check"),
            )
        }

    assert names == ["store.db", "store.db-shm", "store.db-wal"]
    assert modes == {0o600}
    assert path.stat().st_ino == inode
    assert pragmas == {
        "application_id": APPLICATION_ID,
        "user_version": 1,
        "page_size": 4096,
        "journal_mode": "wal",
        "freelist_count": 0,
        "auto_vacuum": 0,
        "integrity_check": "ok",
    }
    SqliteStorage(path).close()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs a list of open files")
@pytest.mark.parametrize("in_memory", [True, False])
def test_no_other_file_has_a_name_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_memory: bool
) -> None:
    """A small store is copied in memory; a large one in a file without a name, for its owner."""
    if not in_memory:
        monkeypatch.setattr(compacting, "_MEMORY_BYTES_MAX", 0)
    path = tmp_path / "store.db"
    with closing(SqliteStorage(path, create=True)) as storage:
        blobs = {bytes([number]) * 32: os.urandom(_MIB) for number in range(12)}
        storage.append(_THREAD, 0, [Record(b"h", b"s", b"b")], blobs=blobs)
    seen: dict[str, int] = {}

    def look() -> int:
        for each in Path("/proc/self/fd").iterdir():
            target = str(each.readlink()) if each.is_symlink() else ""
            if "etilqs" in target or target.startswith(str(tmp_path)):
                seen[target] = stat.S_IMODE(each.stat().st_mode)
        return 0

    connection = connect(
        path, identity=file_identity(path), purpose=Purpose.COMPACT, wait_seconds_max=5
    )
    with closing(connection):
        connection.set_progress_handler(look, 20)
        compacting.compact_file(connection, path, 5)
        connection.set_progress_handler(None, 0)

    own = {str(path.with_name(path.name + suffix)) for suffix in ("", "-wal", "-shm")}
    others = set(seen) - own
    assert set(seen) >= own
    assert set(seen.values()) == {0o600}
    assert bool(others) is not in_memory
    assert all(target.endswith(" (deleted)") for target in others)


def test_reader_that_stays_makes_it_unavailable(tmp_path: Path) -> None:
    """While somebody reads older pages the log cannot be emptied, and the caller hears of it."""
    path = tmp_path / "store.db"
    mark = mark_of("body")
    with (
        closing(SqliteStorage(path, create=True, wait_seconds_max=0.3)) as storage,
        closing(sqlite3.connect(path, isolation_level=None)) as reader,
    ):
        storage.append(_THREAD, 0, [Record(b"h", b"s", mark)], blobs={})
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries").fetchone()
        storage.drop(_THREAD, 0, bodies=[0])
        with pytest.raises(StorageUnavailable, match=r"for 0\.3 seconds"):
            storage.compact()
        between = storage.read(_THREAD, 0)
        storage.append(_THREAD, 1, [Record(b"h", b"s", b"written meanwhile")], blobs={})
        reader.execute("COMMIT")
        storage.compact()

        assert between == Record(b"h", b"s", None)
        assert mark not in raw_of(path)
        assert len(list(storage.scan(_THREAD, 0))) == 2


def test_reader_that_ends_is_waited_for(tmp_path: Path) -> None:
    """A reader that ends within the time only delays it, also for longer than one turn."""
    path = tmp_path / "store.db"
    mark = mark_of("body")
    with (
        closing(SqliteStorage(path, create=True)) as storage,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as reader,
    ):
        storage.append(_THREAD, 0, [Record(b"h", b"s", mark)], blobs={})
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries").fetchone()
        storage.drop(_THREAD, 0, bodies=[0])
        end = threading.Timer(1.3, reader.execute, ["COMMIT"])
        end.start()
        begun = time.monotonic()
        storage.compact()
        took_s = time.monotonic() - begun
        end.join()

        assert mark not in raw_of(path)
        assert took_s > 1


def test_writer_that_stays_makes_it_unavailable(tmp_path: Path) -> None:
    """While another process writes for long nothing is compacted, and nothing is lost."""
    path = tmp_path / "store.db"
    with (
        closing(SqliteStorage(path, create=True, wait_seconds_max=0.1)) as storage,
        closing(sqlite3.connect(path, isolation_level=None)) as writer,
    ):
        storage.append(_THREAD, 0, [Record(b"h", b"s", b"b")], blobs={})
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailable, match="SQLITE_BUSY"):
            storage.compact()
        writer.execute("ROLLBACK")
        storage.compact()

        assert storage.read(_THREAD, 0) == Record(b"h", b"s", b"b")


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no limit on file sizes")
def test_full_disk_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """When the new pages cannot be written nothing is lost, and later it works."""
    path = tmp_path / "store.db"
    program = (
        "import resource\n"
        "from sealpoint.errors import StorageUnavailable\n"
        "storage = SqliteStorage(path)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    storage.compact()\n"
        "except StorageUnavailable as exc:\n"
        "    print(type(exc.__cause__).__name__, flush=True)\n"
        "storage.read(thread, 0)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "sys.stdin.read()\n"
        "storage.compact()\n"
        "storage.close()\n"
    )
    with closing(SqliteStorage(path, create=True)) as storage:
        churn = Churn(storage)
        content = content_of(storage)
        with process(program, path) as other:
            printed = say(other, "")
            between = content_of(storage)
        after = content_of(storage)

    assert (printed, other.returncode) == ("OperationalError", 0)
    assert between == content
    assert after == content
    assert not churn.gone & found(raw_of(path))


def test_other_processes_read_and_write_meanwhile(tmp_path: Path) -> None:
    """Two processes append and read all the time; they wait at most, and nothing is lost."""
    path = tmp_path / "store.db"
    SqliteStorage(path, create=True).close()
    writing = (
        "storage = SqliteStorage(path)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "for number in range(150):\n"
        "    if number % 30 == 29:\n"
        "        sys.stdin.readline()  # one more compaction is over\n"
        "    digest = number.to_bytes(32, 'big')\n"
        "    blobs = {digest: bytes([number % 256]) * 5000}\n"
        "    storage.append(thread, number, [Record(b'%d' % number, b's', b'b')], blobs=blobs)\n"
        "    if number % 3 == 0:\n"
        "        storage.drop(thread, number, bodies=[number], blobs=[digest])\n"
        "storage.close()\n"
        "print('done', flush=True)\n"
    )
    reading = (
        "storage = SqliteStorage(path, read_only=True)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "found = []\n"
        "while len(found) < 150:\n"
        "    found = list(storage.scan(thread, 0))\n"
        "    assert [record.header for _, record in found] == [b'%d' % n for n, _ in found]\n"
        "    for digest, size in storage.stored_blobs(thread):\n"
        "        assert size == 5000\n"
        "storage.close()\n"
        "print('done', flush=True)\n"
    )
    with process(writing, path) as writer, process(reading, path) as reader:
        assert [say(each, "") for each in (writer, reader)] == ["ready"] * 2
        assert writer.stdin is not None
        compactions, told = 0, writer.stdin.fileno()
        with closing(SqliteStorage(path)) as storage:
            while None in (writer.poll(), reader.poll()) and compactions < 5_000:
                storage.compact()
                compactions += 1
                with suppress(BrokenPipeError):
                    os.write(told, b"\n")
                time.sleep(0.01)  # the turn of those who wait
            entries = list(storage.scan(_THREAD, 0))
            blobs = [int.from_bytes(digest, "big") for digest, _ in storage.stored_blobs(_THREAD)]
    with closing(sqlite3.connect(path)) as look:
        (integrity,) = look.execute("PRAGMA integrity_check").fetchone()

    assert (writer.returncode, reader.returncode) == (0, 0)
    assert compactions > 3
    assert [record.header for _, record in entries] == [b"%d" % number for number in range(150)]
    assert [seq for seq, record in entries if record.body is None] == list(range(0, 150, 3))
    assert blobs == [number for number in range(150) if number % 3]
    assert integrity == "ok"


_KILLS: dict[str, str] = {
    "while copying": (
        "begun = []\n"
        "connection.set_trace_callback(lambda sql: sql == 'VACUUM' and begun.append(sql))\n"
        "connection.set_progress_handler(lambda: begun and next(steps) >= {at} and die(), 10)\n"
    ),
    "before the log is emptied": (
        "connection.set_trace_callback(lambda sql: 'wal_checkpoint' in sql and die())\n"
    ),
    "after it": "",
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs a signal that kills")
@pytest.mark.parametrize(
    ("moment", "at"),
    [
        *(("while copying", at) for at in (0, 100, 200, 300)),
        *((moment, 0) for moment in list(_KILLS)[1:]),
    ],
)
def test_killed_compaction_loses_nothing(tmp_path: Path, moment: str, at: int) -> None:
    """Wherever it is killed everything is there, no other file is, and the next one completes."""
    path = tmp_path / "store.db"
    with closing(SqliteStorage(path, create=True)) as storage:
        churn = Churn(storage)
        content = content_of(storage)
    program = (
        "import itertools\n"
        "from sealpoint.storage._sqlite_file import compact_file\n"
        "from sealpoint.storage._sqlite_connections import connect\n"
        "from sealpoint.storage._sqlite_file import file_identity\n"
        "from sealpoint.storage._sqlite_schema import Purpose\n"
        "steps = itertools.count()\n"
        "die = lambda: os.kill(os.getpid(), signal.SIGKILL)\n"
        "connection = connect(path, identity=file_identity(path), purpose=Purpose.COMPACT,\n"
        "                     wait_seconds_max=5)\n"
        f"{_KILLS[moment].format(at=at)}"
        "compact_file(connection, path, 5)\n"
        "die()\n"
    )
    with process(program, path) as killed:
        killed.wait(30)
    between = found(raw_of(path))
    with closing(SqliteStorage(path)) as storage:
        after = content_of(storage)
        storage.compact()
        last = found(raw_of(path))
        again = content_of(storage)

    assert killed.returncode == -signal.SIGKILL
    assert churn.kept <= between
    assert after == content
    assert again == content
    assert not churn.gone & last


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_fork_waits_for_a_compaction(tmp_path: Path) -> None:
    """A process that forks meanwhile has no connection open, and both sides go on."""
    path = tmp_path / "store.db"
    program = (
        "import threading\n"
        "storage = SqliteStorage(path, create=True)\n"
        "storage.append(thread, 0, [Record(b'h', b's', b'b')], blobs={bytes(32): bytes(10**7)})\n"
        "compacting = threading.Thread(target=storage.compact)\n"
        "compacting.start()\n"
        "for number in range(1, 6):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        storage.append(thread, number, [Record(b'h', b's', b'b')], blobs={})\n"
        "        storage.compact()\n"
        "        storage.close()\n"
        "        os._exit(7)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "compacting.join()\n"
        "storage.compact()\n"
        "print(len(list(storage.scan(thread, 0))))\n"
        "storage.close()\n"
    )
    with process(program, path) as forking:
        assert forking.stdout is not None
        printed = forking.stdout.read()

    assert (forking.returncode, printed) == (0, "6\n")
    assert names_beside(path) == ["store.db"]


def test_what_only_reads_neither_drops_nor_compacts(tmp_path: Path) -> None:
    """A storage that was opened read-only refuses both; a closed one too."""
    path = tmp_path / "store.db"
    writer = SqliteStorage(path, create=True)
    writer.append(_THREAD, 0, [Record(b"h", b"s", b"b")], blobs={})
    calls: list[Callable[[SqliteStorage], None]] = [
        lambda storage: storage.drop(_THREAD, 0, bodies=[0]),
        lambda storage: storage.compact(),
    ]
    with closing(SqliteStorage(path, read_only=True)) as reader:
        for call in calls:
            with pytest.raises(ReadOnly):
                call(reader)
        kept = reader.read(_THREAD, 0)
    writer.close()

    assert kept == Record(b"h", b"s", b"b")
    for call in calls:
        with pytest.raises(UsageError, match="closed"):
            call(writer)
