# SPDX-License-Identifier: Apache-2.0
"""The file backend as a directory: made, opened, refused, read only, and out of space."""

import stat
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sealpoint.errors import (
    DirectoryUnusable,
    Edited,
    ReadOnly,
    SchemaUnknown,
    StorageUnavailable,
    UsageError,
)
from sealpoint.storage import Record
from sealpoint.storage import _file_threads as _file_lock
from sealpoint.storage.file import FileStorage
from tests.unit.storage.file_places import DIGEST, RECORD, THREAD, run, thread_path, tree


def test_made_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Directories have mode 0700 and files 0600, whatever the mask of the process allows."""
    store = tmp_path / "store"
    result = run(
        "os.umask(0)\n"
        "storage = FileStorage(path, create=True)\n"
        "storage.append(thread, 0, [Record(b'h', b's', b'b')], blobs={digest: b'blob'},\n"
        "               label=digest)\n",
        store,
    )
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in store.rglob("*")}

    assert (result.returncode, result.stderr) == (0, "")
    assert modes == {(True, 0o700), (False, 0o600)}
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == [store]


def test_strict_mask_leaves_files_readable(tmp_path: Path) -> None:
    """A mask that takes the owner's rights away does not make the files unreadable."""
    result = run(
        "os.umask(0o277)\n"
        "storage = FileStorage(path, create=True)\n"
        "storage.append(thread, 0, [Record(b'h', b's', b'b')], blobs={digest: b'blob'})\n",
        tmp_path / "store",
    )
    modes = {
        stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "store").rglob("*")
        if path.is_file()
    }

    assert (result.returncode, result.stderr) == (0, "")
    assert modes == {0o600}


def test_new_store_holds_its_mark_and_nothing_else(tmp_path: Path) -> None:
    """Making one twice is making it once, and the mark is frozen: stores in the field carry it."""
    store = tmp_path / "store"
    FileStorage(store, create=True).close()
    before = tree(store)
    FileStorage(store, create=True).close()

    assert tree(store) == before
    assert sorted(before) == ["labels", "sealpoint-store", "threads"]
    assert before["sealpoint-store"][2] == b"sealpoint file store, version 1\n"


def test_empty_directory_becomes_a_store(tmp_path: Path) -> None:
    """A directory that somebody made for it, or a mount point, is used as it is."""
    store = tmp_path / "store"
    store.mkdir(mode=0o755)
    with closing(FileStorage(store, create=True)) as storage:
        storage.append(THREAD, 0, [RECORD], blobs={})

    assert stat.S_IMODE(store.stat().st_mode) == 0o755


def test_missing_directory_is_named(tmp_path: Path) -> None:
    """Without create=True a missing directory is an error that names it, and is not made."""
    for read_only in (False, True):
        with pytest.raises(StorageUnavailable, match="absent: there is no such directory"):
            FileStorage(tmp_path / "absent", read_only=read_only)
    with pytest.raises(StorageUnavailable, match=r"there is no directory .*nowhere"):
        FileStorage(tmp_path / "nowhere" / "store", create=True)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("name", ["notes.txt", "threads/notes.txt", "labels/ab/notes.txt", ".git/"])
def test_foreign_directory_is_refused_and_left_alone(
    tmp_path: Path, name: str, *, create: bool
) -> None:
    """A directory with other files in it is SchemaUnknown, and keeps everything as it was."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if name.endswith("/") else path.write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(SchemaUnknown, match=str(tmp_path)):
        FileStorage(tmp_path, create=create)

    assert tree(tmp_path) == before


@pytest.mark.parametrize("version", [2, 17, 999_999_999])
@pytest.mark.parametrize("create", [True, False])
def test_other_schema_version_is_refused_with_both_versions(
    tmp_path: Path, version: int, *, create: bool
) -> None:
    """A newer store is SchemaUnknown, saying what was found and what is known."""
    store = tmp_path / "store"
    FileStorage(store, create=True).close()
    (store / "sealpoint-store").write_text(f"sealpoint file store, version {version}\n")

    with pytest.raises(SchemaUnknown, match=rf"expected schema version 1.*found {version}\n"):
        FileStorage(store, create=create)


@pytest.mark.parametrize(
    "mark",
    [
        b"",
        b"sealpoint file store, version 1",
        b"sealpoint file store, version 1\n\n",
        b"sealpoint file store, version 0\n",
        b"sealpoint file store, version 01\n",
        b"sealpoint file store, version 1" + b"0" * 9 + b"\n",
        b"sealpoint file store, version \xd9\xa1\n",
        b"Sealpoint file store, version 1\n",
        b"sealpoint file store, version 1\n" * 10,
    ],
)
def test_damaged_mark_is_no_mark(tmp_path: Path, mark: bytes) -> None:
    """A mark is exactly the one line that a store has."""
    store = tmp_path / "store"
    FileStorage(store, create=True).close()
    (store / "sealpoint-store").write_bytes(mark)

    with pytest.raises(SchemaUnknown, match="is not that of a Sealpoint store"):
        FileStorage(store)


def test_gigantic_mark_is_not_read(tmp_path: Path) -> None:
    """A mark of a terabyte is refused without its bytes in memory."""
    store = tmp_path / "store"
    FileStorage(store, create=True).close()
    with (store / "sealpoint-store").open("r+b") as file:
        file.truncate(2**40)
    tracemalloc.start()
    try:
        with pytest.raises(SchemaUnknown):
            FileStorage(store)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 1_000_000


def test_creation_that_crashed_is_completed(tmp_path: Path) -> None:
    """The mark comes last; what an interrupted creation leaves without it is no other file."""
    store = tmp_path / "store"
    FileStorage(store, create=True).close()
    (store / "sealpoint-store").rename(store / "new-0")
    (store / "threads").chmod(0o1700)
    (store / "labels").rmdir()
    with pytest.raises(SchemaUnknown, match="found no sealpoint-store"):
        FileStorage(store)
    with closing(FileStorage(store, create=True)) as storage:
        storage.append(THREAD, 0, [RECORD], blobs={}, label=DIGEST)

        assert storage.labelled(DIGEST) == [THREAD]
    assert stat.S_IMODE((store / "threads").stat().st_mode) == 0o700


def test_root_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    """A file or a link in the place of the root is refused, whatever it leads to."""
    store = tmp_path / "store"
    FileStorage(store, create=True).close()
    (tmp_path / "link").symlink_to(store)
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "file").write_text("mine")

    for name in ("link", "dangling", "file"):
        for create in (True, False):
            with pytest.raises(DirectoryUnusable, match="expected a directory, found"):
                FileStorage(tmp_path / name, create=create)
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o720, 0o777])
def test_root_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    """Whoever can write in the root could exchange everything in it."""
    store, empty = tmp_path / "store", tmp_path / "empty"
    FileStorage(store, create=True).close()
    empty.mkdir()
    store.chmod(mode)
    empty.chmod(mode)

    for create in (True, False):
        with pytest.raises(DirectoryUnusable, match=f"only its owner writes, found {mode:04o}"):
            FileStorage(store, create=create)
    with pytest.raises(DirectoryUnusable, match="only its owner writes"):
        FileStorage(empty, create=True)
    assert not list(empty.iterdir())


def test_root_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store is used by its owner alone, and by nobody else, root included."""
    store = tmp_path / "store"
    FileStorage(store, create=True).close()
    owner = store.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)

    with pytest.raises(DirectoryUnusable, match=rf"user {owner + 1} as its owner, found user"):
        FileStorage(store)


def test_exchanged_root_is_noticed(tmp_path: Path) -> None:
    """A handle does not go over to another directory that took the name of its own."""
    store = tmp_path / "store"
    storage = FileStorage(store, create=True)
    storage.append(THREAD, 0, [RECORD], blobs={})
    store.rename(tmp_path / "moved")
    with pytest.raises(StorageUnavailable, match="there is no such directory"):
        storage.read(THREAD, 0)
    FileStorage(store, create=True).close()

    with pytest.raises(Edited, match="another directory has taken the place"):
        storage.read(THREAD, 0)
    with pytest.raises(Edited):
        storage.append(THREAD, 1, [RECORD], blobs={})
    assert not list((store / "threads").iterdir())


def test_read_only_writes_nothing_at_all(tmp_path: Path) -> None:
    """A read-only handle follows the writer, refuses to write, and leaves every file alone."""
    store = tmp_path / "store"
    with (
        closing(FileStorage(store, create=True)) as writer,
        closing(FileStorage(store, read_only=True)) as reader,
    ):
        for number in range(3):
            writer.append(THREAD, number, [RECORD], blobs={DIGEST: b"blob"}, label=DIGEST)
            assert len(list(reader.scan(THREAD, 0))) == number + 1
        (thread_path(store) / "new-7").write_bytes(b"left by a crash")
        before = tree(store)
        calls: list[Callable[[], object]] = [
            lambda: reader.append(THREAD, 3, [RECORD], blobs={}),
            lambda: reader.put_blobs(THREAD, {DIGEST: b"other"}),
            lambda: reader.put_blobs(THREAD, {}),
            lambda: reader.drop(THREAD, 2, bodies=[0], label=DIGEST),
            reader.compact,
        ]
        for call in calls:
            with pytest.raises(ReadOnly, match="read_only"):
                call()

        assert reader.blob(THREAD, DIGEST, 10) == b"blob"
        assert list(reader.stored_blobs(THREAD)) == [(DIGEST, 4)]
        assert reader.labelled(DIGEST) == list(dict(reader.heads())) == list(reader.blob_threads())
        assert tree(store) == before
    with pytest.raises(UsageError, match="found both"):
        FileStorage(store, create=True, read_only=True)


def test_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no fcntl there is no file store, and one sentence says so."""
    monkeypatch.setattr(_file_lock, "fcntl", None)

    with pytest.raises(StorageUnavailable, match="found a system without the fcntl module"):
        FileStorage(tmp_path / "store", create=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no limit on file sizes")
def test_full_disk_is_unavailable_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    """When bytes cannot be written the append has no effect, and smaller ones still succeed."""
    program = (
        "import resource\n"
        "storage = FileStorage(path, create=True)\n"
        "record = Record(b'h', b's', b'b')\n"
        "storage.append(thread, 0, [record], blobs={digest: b'old'})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))\n"
        "for large in ({'records': [Record(b'h', b's', bytes(500_000))], 'blobs': {}},\n"
        "              {'records': [record], 'blobs': {digest: bytes(500_000)}}):\n"
        "    try:\n"
        "        storage.append(thread, 1, **large)\n"
        "        raise SystemExit('the limit was not reached')\n"
        "    except StorageUnavailable as exc:\n"
        "        assert isinstance(exc.__cause__, OSError)\n"
        "        print(exc)\n"
        "    assert storage.read(thread, 1) is None\n"
        "    assert storage.blob(thread, digest, 9) == b'old'\n"
        "    assert not [found for found in path.rglob('new-*')]\n"
        "storage.append(thread, 1, [record], blobs={})\n"
    )
    result = run(program, tmp_path / "store")

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("expected the file system to succeed, found File too large") == 2


def test_positions_of_any_size_are_no_foreign_error(tmp_path: Path) -> None:
    """Numbers and names of any size are refused or find nothing; they never overflow."""
    last = 2**63 - 1
    with closing(FileStorage(tmp_path / "store", create=True)) as storage:
        storage.append(THREAD, last - 2, [RECORD, RECORD], blobs={DIGEST: b"blob"})
        for seq in (2**63, last, last - 1, -1):
            with pytest.raises(UsageError, match="position"):
                storage.append(THREAD, seq, [RECORD, RECORD], blobs={})

        assert storage.read(THREAD, last - 1) == RECORD
        assert storage.read(THREAD, 2**80) is None
        assert storage.read(THREAD, -1) is None
        assert storage.read(b"", 0) is storage.read(b"short", 0) is None
        assert not list(storage.scan(THREAD, 2**80))
        assert [n for n, _ in storage.scan(THREAD, -(2**80), 2**80)] == [last - 2, last - 1]
        assert [n for n, _ in storage.scan(THREAD, 0, descending=True)] == [last - 1, last - 2]
        assert storage.blob(THREAD, DIGEST, 2**80) == b"blob"
        assert storage.blob(THREAD, b"", 1) is storage.blob(b"", DIGEST, 1) is None
        assert storage.blobs(THREAD, [b"", DIGEST], 9) == {DIGEST: b"blob"}
        assert not list(storage.stored_blobs(b""))
        assert storage.labelled(b"") == []


@pytest.mark.parametrize("wrong", ["text", bytearray(b"bytes"), 7])
def test_only_bytes_are_stored(tmp_path: Path, wrong: object) -> None:
    """What is not exactly bytes would come back as something else, so it is refused."""
    with closing(FileStorage(tmp_path / "store", create=True)) as storage:
        with pytest.raises(UsageError):
            storage.append(THREAD, 0, [Record(b"h", b"s", wrong)], blobs={})  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            storage.append(THREAD, 0, [Record(b"h", None, b"")], blobs={})  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            storage.put_blobs(THREAD, {DIGEST: wrong})  # type: ignore[dict-item]
        with pytest.raises(UsageError, match="1 to 4096 records, found 4097"):
            storage.append(THREAD, 0, [RECORD] * 4097, blobs={})

        assert not list(storage.heads())


def test_names_of_threads_never_leave_the_store(tmp_path: Path) -> None:
    """Ids that spell a way out are digits on the disk; nothing appears outside the root."""
    hostile = [
        b"../../../outside",
        b"/tmp/outside0000",
        b"\0" * 16,
        b"%2e%2e/%2e%2e/./",
        b"\xff" * 16,
    ]
    store = tmp_path / "store"
    with closing(FileStorage(store, create=True)) as storage:
        for thread in hostile:
            storage.append(thread, 0, [RECORD], blobs={thread * 2: b"blob"}, label=thread * 2)
        found = list(dict(storage.heads()))

    assert sorted(found) == sorted(hostile)
    assert list(tmp_path.iterdir()) == [store]
    names = {path.name for path in store.rglob("*")} - {"threads", "labels", "blobs"}
    assert {char for name in names for char in name} <= set("0123456789abcdef-") | set(
        "sealpoint-store"
    )
