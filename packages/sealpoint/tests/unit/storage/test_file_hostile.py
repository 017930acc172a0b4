# SPDX-License-Identifier: Apache-2.0
"""A store in which somebody has planted things: an error that says so, and never a hang."""

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sealpoint.errors import ConfigError, Edited, SealpointError, StorageUnavailable, Tampered
from sealpoint.storage.file import FileStorage
from tests.unit.storage.file_places import (
    DIGEST,
    RECORD,
    THREAD,
    blob_path,
    group_path,
    thread_path,
    tree,
)

_OTHER = bytes(31) + b"\x01"
_SEQ = 300


@pytest.fixture(autouse=True)
def _power_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about durability, and syncs take their time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where a store with one thread lies."""
    path = tmp_path / "store"
    with closing(FileStorage(path, create=True)) as storage:
        storage.append(THREAD, _SEQ, [RECORD], blobs={DIGEST: b"blob"}, label=DIGEST)
    return path


@pytest.fixture
def storage(store: Path) -> Iterator[FileStorage]:
    """The store, opened before anything is planted."""
    with closing(FileStorage(store)) as storage:
        yield storage


def _link(path: Path, moved: Path) -> None:
    path.symlink_to(moved)


def _pipe(path: Path, _moved: Path) -> None:
    os.mkfifo(path, 0o600)


def _socket(path: Path, _moved: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a socket is short
    try:
        with closing(socket.socket(socket.AF_UNIX)) as planted:
            planted.bind("s")
        Path("s").rename(path)
    finally:
        os.chdir(here)


def _directory(path: Path, _moved: Path) -> None:
    path.mkdir(0o700)
    (path / "inside").touch(0o600)


def _file(path: Path, _moved: Path) -> None:
    path.touch(0o600)


def _writable(path: Path, moved: Path) -> None:
    moved.rename(path)
    path.chmod(0o770 if path.is_dir() else 0o660)


_PLANTED = {
    "a symbolic link": _link,
    "a pipe": _pipe,
    "a socket": _socket,
    "a directory": _directory,
    "an empty file": _file,
    "what others can write": _writable,
}
_READS: dict[str, Callable[[FileStorage], object]] = {
    "read": lambda storage: storage.read(THREAD, _SEQ),
    "scan": lambda storage: list(storage.scan(THREAD, 0)),
    "scan backwards": lambda storage: list(storage.scan(THREAD, 0, descending=True)),
    "blob": lambda storage: storage.blob(THREAD, DIGEST, 9),
    "blobs": lambda storage: storage.blobs(THREAD, [DIGEST], 9),
    "stored blobs": lambda storage: list(storage.stored_blobs(THREAD)),
    "threads": lambda storage: list(storage.heads()),
    "blob threads": lambda storage: list(storage.blob_threads()),
    "labelled": lambda storage: storage.labelled(DIGEST),
}
_WRITES: dict[str, Callable[[FileStorage], object]] = {
    "append": lambda storage: storage.append(
        THREAD, _SEQ + 1, [RECORD], blobs={_OTHER: b"other"}, needs=[DIGEST], label=_OTHER
    ),
    "put blobs": lambda storage: storage.put_blobs(THREAD, {DIGEST: b"blob"}),
    "drop": lambda storage: storage.drop(
        THREAD, _SEQ + 1, bodies=[_SEQ], blobs=[DIGEST], label=DIGEST
    ),
    "compact": lambda storage: storage.compact(),
}


def _places(store: Path) -> list[Path]:
    """Every directory and file of the store but its root and its mark."""
    return [path for path in sorted(store.rglob("*")) if path.name != "sealpoint-store"]


@pytest.mark.parametrize("planted", _PLANTED)
def test_planted_things_are_refused_wherever_they_are(
    tmp_path: Path, store: Path, storage: FileStorage, planted: str
) -> None:
    """Reads of what lies behind one are an error of ours or find nothing, and none is followed."""
    moved = tmp_path / "moved"
    original = {name: call(storage) for name, call in _READS.items()}
    refused = set()
    for path in _places(store):
        path.rename(moved)
        try:
            _PLANTED[planted](path, moved)
            for name, call in _READS.items():
                try:
                    found = call(storage)
                except SealpointError as exc:
                    assert isinstance(exc, (Tampered, StorageUnavailable))  # noqa: PT017
                    refused.add(name)
                    continue
                assert (found != original[name]) == _is_behind(name, path, store), (path, name)
        finally:
            _remove(path, moved)

    assert refused >= {"read", "scan", "scan backwards", "blob", "blobs", "labelled"}
    assert {name: call(storage) for name, call in _READS.items()} == original


def _is_behind(name: str, path: Path, store: Path) -> bool:
    """Whether what a read gives is reached through a path, so that it cannot be given."""
    group, blob = group_path(store, _SEQ, _SEQ), blob_path(store)
    if name in {"blob", "blobs", "stored blobs"}:
        return path == blob or path in blob.parents
    if name == "blob threads":
        return path in blob.parents
    if name == "threads":
        return path in group.parents
    if name == "labelled":
        # A label is a name, whatever bears it.
        shard = store / "labels" / DIGEST.hex()[:2]
        return path in (group, shard) or path in group.parents or path in shard.parents
    return path == group or path in group.parents


def _remove(path: Path, moved: Path) -> None:
    if moved.exists() or moved.is_symlink():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        moved.rename(path)
    else:
        path.chmod(0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize("planted", _PLANTED)
@pytest.mark.parametrize("write", _WRITES)
def test_nothing_is_written_through_planted_things(
    tmp_path: Path, store: Path, planted: str, write: str
) -> None:
    """Writes end in an error of ours or go past it; what a link leads to stays as it was."""
    moved, backup = tmp_path / "moved", tmp_path / "backup"
    shutil.copytree(store, backup)
    places = [path.relative_to(store) for path in _places(store)]
    for place in places:
        path = store / place
        path.rename(moved)
        _PLANTED[planted](path, moved)
        outside = tree(moved) if moved.is_dir() else None
        content = moved.read_bytes() if moved.is_file() else None
        with closing(FileStorage(store)) as storage:
            try:
                _WRITES[write](storage)
            except SealpointError as exc:
                assert not isinstance(exc, ConfigError)  # noqa: PT017

        if outside is not None:
            assert tree(moved) == outside, place
        if content is not None:
            assert moved.read_bytes() == content, place
        for left in (store, moved):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
        shutil.copytree(backup, store)


def test_file_of_another_user_is_refused(
    store: Path, storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What belongs to somebody else was written by somebody else."""
    true_fstat, path = os.fstat, group_path(store, _SEQ, _SEQ)
    foreign = path.stat().st_ino

    def fstat(descriptor: int) -> os.stat_result:
        found = true_fstat(descriptor)
        if found.st_ino != foreign:
            return found
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:]))

    monkeypatch.setattr(os, "fstat", fstat)

    with pytest.raises(Edited, match="as its owner, found user"):
        storage.read(THREAD, _SEQ)


@pytest.mark.parametrize("name", ["threads", "labels"])
def test_missing_directory_of_a_store_is_noticed(
    store: Path, storage: FileStorage, name: str
) -> None:
    """A store has both from its beginning: neither is made anew in silence."""
    shutil.rmtree(store / name)
    calls: list[Callable[[], object]] = [
        lambda: storage.labelled(DIGEST),
        lambda: storage.append(THREAD, 0, [RECORD], blobs={}, label=_OTHER),
    ]
    if name == "threads":
        calls += [lambda: list(storage.heads()), lambda: storage.read(THREAD, 0)]
    for call in calls:
        with pytest.raises(Edited, match=f"{name}: the directory is missing"):
            call()

    assert not (store / name).exists()


def test_planted_bytes_under_a_digest_are_replaced(
    tmp_path: Path, store: Path, storage: FileStorage
) -> None:
    """Whoever gives a blob does not rely on what is there, a link or a pipe included."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"blob")
    path = blob_path(store)
    for plant in (
        lambda: path.symlink_to(outside),
        lambda: os.mkfifo(path),
        lambda: path.write_bytes(b"BLOB"),
        lambda: os.link(outside, path),
    ):
        path.unlink()
        plant()
        path.chmod(0o600, follow_symlinks=False) if not path.is_symlink() else None
        storage.put_blobs(THREAD, {DIGEST: b"blob"})

        assert storage.blob(THREAD, DIGEST, 9) == b"blob"
        assert not path.is_symlink()
    assert outside.read_bytes() == b"blob"


def test_draft_of_a_crash_or_of_somebody_else_is_never_written_to(
    tmp_path: Path, store: Path, storage: FileStorage
) -> None:
    """A name that is taken is passed over, whatever has it: a file, a link, or a directory."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    thread = thread_path(store)
    (thread / "new-0").symlink_to(outside)
    os.link(outside, thread / "new-1")
    (thread / "new-2").mkdir()
    os.mkfifo(thread / "new-3")
    storage.append(THREAD, _SEQ + 1, [RECORD], blobs={DIGEST: b"other"})

    assert storage.read(THREAD, _SEQ + 1) == RECORD
    assert storage.blob(THREAD, DIGEST, 9) == b"other"
    assert outside.read_bytes() == b"mine"
    with pytest.raises(StorageUnavailable):
        storage.compact()
    (thread / "new-2").rmdir()
    storage.compact()
    assert not list(thread.glob("new-*"))
    assert outside.read_bytes() == b"mine"


def test_too_many_labels_are_refused(store: Path, storage: FileStorage) -> None:
    """A directory stuffed with names is Edited before they fill the memory."""
    shard = store / "labels" / DIGEST.hex()[:2]
    for number in range(4096):
        (shard / f"{DIGEST.hex()}-{number:032x}-{0:016x}").touch(0o600)

    with pytest.raises(Edited, match="more than 4096"):
        storage.labelled(DIGEST)
