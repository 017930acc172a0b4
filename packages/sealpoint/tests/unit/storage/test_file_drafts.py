# SPDX-License-Identifier: Apache-2.0
"""What the file backend syncs, in which order, and what it does about those who crashed before."""

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sealpoint.errors import StorageUnavailable
from sealpoint.storage.file import FileStorage
from tests.unit.storage.file_places import (
    DIGEST,
    RECORD,
    THREAD,
    blob_path,
    group_path,
    record_of,
    thread_path,
)

_CALLS = ("fsync", "link", "mkdir", "rename", "unlink")


class _Watched:
    """The calls that change names or wait for the disk, in order, with the last names."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str]] = []
        self.failing: Callable[[str, str], bool] = lambda _call, _name: False
        for name in _CALLS:
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **more: Any) -> Any:
            about = args[1] if name in {"link", "rename"} else args[0]
            if isinstance(about, int):
                about = Path(f"/proc/self/fd/{about}").readlink().name
            self.calls.append((name, about))
            if self.failing(name, about):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return call(*args, **more)

        return watched

    def taken(self) -> list[tuple[str, str]]:
        """The calls since it was asked before."""
        calls, self.calls = self.calls, []
        return calls

    def syncs(self) -> list[str]:
        """What was waited for since it was asked before."""
        return [name for call, name in self.taken() if call == "fsync"]


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="this system does not tell names of open files"
)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> _Watched:
    """The calls of this process."""
    return _Watched(monkeypatch)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store lies."""
    return tmp_path / "store"


@pytest.fixture
def storage(store: Path) -> Iterator[FileStorage]:
    """A store with one entry and one blob."""
    with closing(FileStorage(store, create=True)) as storage:
        storage.append(THREAD, 0, [RECORD], blobs={DIGEST: b"blob"}, label=DIGEST)
        yield storage


def test_small_append_waits_for_the_disk_twice(storage: FileStorage, watched: _Watched) -> None:
    """Bytes, name, directory, and only then the end of the draft."""
    storage.append(THREAD, 1, [RECORD, RECORD], blobs={})
    name = group_path(Path(), 1, 2).name

    assert watched.taken() == [
        ("fsync", "new-0"),
        ("link", name),
        ("fsync", "01"),
        ("unlink", "new-0"),
    ]


def test_blob_is_on_the_disk_before_the_entry_that_names_it(
    storage: FileStorage, watched: _Watched
) -> None:
    """One blob costs two more waits; the name of the entry comes after both."""
    other = b"\x01" + DIGEST[1:]
    storage.append(THREAD, 1, [RECORD], blobs={other: b"other"})
    calls = watched.taken()
    name = group_path(Path(), 1, 1).name

    assert [call for call in calls if call[0] in {"fsync", "link"}] == [
        ("fsync", "new-0"),
        ("link", other.hex()),
        ("fsync", "0"),
        ("fsync", "new-0"),
        ("link", name),
        ("fsync", "01"),
    ]


def test_many_blobs_sync_each_directory_once_for_a_batch(
    storage: FileStorage, watched: _Watched
) -> None:
    """All bytes are waited for before any name is given."""
    blobs = {bytes([0x10 * (n % 3), n]) + bytes(30): b"%d" % n for n in range(30)}
    storage.put_blobs(THREAD, blobs)
    watched.taken()
    storage.put_blobs(THREAD, {digest: b"replaced " + data for digest, data in blobs.items()})
    calls = watched.taken()
    order = [call for call, _ in calls]

    assert order.count("fsync") == 33
    assert order[:30] == ["fsync"] * 30
    assert sorted(name for _, name in calls if len(name) == 1) == ["0", "1", "2"]
    assert order.count("rename") == 30


@pytest.mark.parametrize("threads", [True, False])
def test_many_blobs_are_synced_together_each_before_it_gets_its_name(
    storage: FileStorage, watched: _Watched, monkeypatch: pytest.MonkeyPatch, *, threads: bool
) -> None:
    """Several files are waited for at once, in threads if there are any, and names come after."""
    if not threads:
        monkeypatch.setattr(threading.Thread, "start", _refuse_to_start)
    storage.put_blobs(THREAD, {bytes((n,)) * 32: bytes((n,)) for n in range(0, 256, 9)})
    calls = watched.taken()
    synced = [name for call, name in calls if call == "fsync" and name.startswith("new-")]
    first_link = [call for call, _ in calls].index("link")

    assert len(synced) == len({*synced}) == 29
    assert {*synced} <= {name for call, name in calls[:first_link] if call == "fsync"}


def _refuse_to_start(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_one_failed_sync_of_many_fails_the_call(storage: FileStorage, watched: _Watched) -> None:
    """No blob gets its name if one of its batch is not on the disk."""
    before = [*storage.stored_blobs(THREAD)]
    watched.failing = lambda call, name: call == "fsync" and name == "new-17"
    with pytest.raises(StorageUnavailable):
        storage.put_blobs(THREAD, {bytes((n,)) * 32: bytes((n,)) for n in range(0, 256, 9)})

    assert [*storage.stored_blobs(THREAD)] == before


def test_new_thread_is_on_the_disk_from_the_top(storage: FileStorage, watched: _Watched) -> None:
    """Every directory that is made is waited for before anything is put into it."""
    thread, label = b"\xab" * 16, b"\xcd" * 32
    storage.append(thread, 0, [RECORD], blobs={label: b"blob"}, label=label)
    calls = watched.taken()

    assert [call for call in calls if call[0] in {"mkdir", "fsync"}] == [
        *(("mkdir", "ab"), ("fsync", "threads")),
        *(("mkdir", thread.hex()), ("fsync", "ab")),
        *(("mkdir", "blobs"), ("fsync", thread.hex())),
        *(("mkdir", "c"), ("fsync", "blobs")),
        *(("fsync", "new-0"), ("fsync", "c")),
        *(("mkdir", "cd"), ("fsync", "labels"), ("fsync", "cd")),
        *(("mkdir", "01"), ("fsync", thread.hex())),
        *(("fsync", "new-0"), ("fsync", "01")),
    ]


def test_repeated_append_costs_nothing(storage: FileStorage, watched: _Watched) -> None:
    """What is on the disk already is not written or waited for again."""
    storage.append(THREAD, 0, [RECORD], blobs={DIGEST: b"blob"})

    assert watched.taken() == []


def test_entry_whose_writer_crashed_is_synced_before_it_is_read(
    store: Path, storage: FileStorage, watched: _Watched
) -> None:
    """An entry that still has its draft is not relied upon before its name is on the disk."""
    os.link(group_path(store, 0, 0), thread_path(store) / "new-0")
    watched.taken()
    reads: list[Callable[[], object]] = [
        lambda: storage.read(THREAD, 0),
        lambda: list(storage.scan(THREAD, 0)),
        lambda: list(storage.scan(THREAD, 0, descending=True)),
        lambda: storage.append(THREAD, 0, [RECORD], blobs={}),
    ]
    for read in reads:
        read()
        assert watched.syncs() == ["01"]
    storage.compact()
    assert "01" in watched.syncs()
    for read in reads:
        read()

    assert watched.syncs() == []
    assert not list(store.rglob("new-*"))


def test_entry_that_cannot_be_synced_is_not_read(
    store: Path, storage: FileStorage, watched: _Watched
) -> None:
    """Whoever asks after a failure whether an append took effect is not told a guess."""
    watched.failing = lambda call, name: (call, name) == ("fsync", "01")
    with pytest.raises(StorageUnavailable, match="Input/output error") as caught:
        storage.append(THREAD, 1, [record_of(1)], blobs={})
    with pytest.raises(StorageUnavailable):
        storage.read(THREAD, 1)
    watched.failing = lambda _call, _name: False

    assert isinstance(caught.value.__cause__, OSError)
    assert storage.read(THREAD, 1) == record_of(1)
    storage.append(THREAD, 1, [record_of(1)], blobs={})
    assert len(list(store.rglob("new-*"))) == 1
    storage.compact()
    assert not list(store.rglob("new-*"))


def test_blob_whose_writer_crashed_is_synced_before_it_is_relied_upon(
    store: Path, storage: FileStorage, watched: _Watched
) -> None:
    """Given again, or needed by an entry, a blob that still has its draft is made durable."""
    os.link(blob_path(store), thread_path(store) / "new-0")
    watched.taken()
    storage.put_blobs(THREAD, {DIGEST: b"blob"})
    assert watched.syncs() == ["0"]
    storage.append(THREAD, 1, [RECORD], blobs={}, needs=[DIGEST])

    assert watched.syncs()[0] == "0"


def test_drop_whose_process_crashed_is_synced_when_it_is_repeated(
    store: Path, storage: FileStorage, watched: _Watched
) -> None:
    """A drop that finds everything gone already makes sure that it stays gone."""
    storage.drop(THREAD, 0, bodies=[0], blobs=[DIGEST], label=DIGEST)
    os.link(group_path(store, 0, 0), thread_path(store) / "new-0")
    watched.taken()
    storage.drop(THREAD, 0, bodies=[0], blobs=[DIGEST], label=DIGEST)

    assert sorted(watched.syncs()) == ["0", "00", "01"]


@pytest.mark.parametrize("place", ["threads/00", "thread", "thread/01", "thread/blobs/0"])
def test_directory_whose_maker_crashed_is_synced_before_it_is_used(
    store: Path, storage: FileStorage, watched: _Watched, place: str
) -> None:
    """A directory with the sticky bit was not known to be on the disk when it was made."""
    path = thread_path(store) / place.removeprefix("thread/") if place != "thread" else None
    path = thread_path(store) if path is None else path
    path = store / place if place.startswith("threads/") else path
    path.chmod(0o1700)
    before = storage.read(THREAD, 0)
    modes_read = stat.S_IMODE(path.stat().st_mode)
    watched.taken()
    other = b"\x01" + DIGEST[1:]
    storage.append(THREAD, 1, [RECORD], blobs={other: b"other"})

    assert before == RECORD
    assert modes_read == 0o1700
    assert path.parent.name in watched.syncs()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    path.chmod(0o1700)
    storage.drop(THREAD, 1, bodies=[0], blobs=[other])
    assert storage.blob(THREAD, other, 9) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_directory_that_was_made_read_only_stays_so(store: Path, storage: FileStorage) -> None:
    """Rights that somebody took away are not given back in silence."""
    leaf = group_path(store, 0, 0).parent
    leaf.chmod(0o500)
    with pytest.raises(StorageUnavailable, match="Permission denied"):
        storage.append(THREAD, 1, [RECORD], blobs={})

    assert storage.read(THREAD, 0) == RECORD
    assert stat.S_IMODE(leaf.stat().st_mode) == 0o500
    leaf.chmod(0o700)


def test_append_that_fails_at_any_call_is_told_by_read(tmp_path: Path, watched: _Watched) -> None:
    """Whatever call fails, all or nothing is there, and repeating the append makes it good."""
    number, outcomes = 0, set()
    while True:
        number += 1
        with closing(FileStorage(tmp_path / str(number), create=True)) as storage:
            left = [number]

            def failing(_call: str, _name: str, left: list[int] = left) -> bool:
                left[0] -= 1
                return left[0] == 0

            watched.failing = failing
            records = [record_of(n) for n in range(3)]
            try:
                storage.append(THREAD, 0, records, blobs={DIGEST: b"blob"}, label=DIGEST)
                failed = False
            except StorageUnavailable:
                failed = True
            watched.failing = lambda _call, _name: False
            found = [record for _, record in storage.scan(THREAD, 0)]
            assert found in ([], records)
            assert storage.labelled(DIGEST) == ([THREAD] if found else [])
            outcomes.add((failed, bool(found)))
            storage.append(THREAD, 0, records, blobs={DIGEST: b"blob"}, label=DIGEST)
            storage.compact()
            assert not list((tmp_path / str(number)).rglob("new-*"))
            assert storage.blob(THREAD, DIGEST, 9) == b"blob"
            if not failed:
                break

    assert outcomes == {(True, False), (True, True), (False, True)}
    assert number > 15
