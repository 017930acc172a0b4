# SPDX-License-Identifier: Apache-2.0
"""The file backend between OS threads and processes: races, locks, forks, and sudden ends."""

import os
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from sealpoint.errors import HeadMoved, StorageUnavailable
from sealpoint.storage import Record
from sealpoint.storage._file_directory import Directory
from sealpoint.storage._file_threads import locked
from sealpoint.storage.file import FileStorage
from tests.unit.storage.file_places import DIGEST, RECORD, THREAD, run, thread_path

_forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def _together(program: str, store: Path, *names: object) -> dict[str, str]:
    """Run a program several times at once; returns what each printed."""
    results: dict[str, subprocess.CompletedProcess[str]] = {}
    starters = [
        threading.Thread(target=lambda n=str(name): results.update({n: run(program, store, n)}))
        for name in names
    ]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    assert {result.stderr for result in results.values()} == {""}
    return {name: result.stdout for name, result in results.items()}


def test_two_creators_make_one_store(tmp_path: Path) -> None:
    """Processes that create at once all succeed and write to the same store."""
    store = tmp_path / "store"
    program = (
        "storage = FileStorage(path, create=True)\n"
        "storage.append(thread, int(sys.argv[2]), [Record(b'h', b's', b'b')], blobs={})\n"
    )
    _together(program, store, 0, 1, 2, 3)
    with closing(FileStorage(store)) as storage:
        numbers = [number for number, _ in storage.scan(THREAD, 0)]

    assert numbers == [0, 1, 2, 3]
    assert list(tmp_path.iterdir()) == [store]


def test_racing_processes_win_each_position_once(tmp_path: Path) -> None:
    """Two processes after the same positions: each position has one winner, and both know it."""
    store = tmp_path / "store"
    FileStorage(store, create=True).close()
    program = (
        "won, me = [], sys.argv[2].encode()\n"
        "storage = FileStorage(path)\n"
        "for number in range(0, 120, 3):\n"
        "    try:\n"
        "        group = [Record(me, b's', b'b')] * (2 + (len(me) == 5))\n"
        "        storage.append(thread, number, group, blobs={digest: me})\n"
        "        won.append(number)\n"
        "    except HeadMoved:\n"
        "        pass\n"
        "print(*won)\n"
    )
    printed = _together(program, store, "one", "three")
    with closing(FileStorage(store)) as storage:
        stored = {number: record.header.decode() for number, record in storage.scan(THREAD, 0)}

    claimed = {int(number): name for name, won in printed.items() for number in won.split()}
    assert sum(len(won.split()) for won in printed.values()) == len(claimed) == 40
    expected = {
        number + more: name
        for number, name in claimed.items()
        for more in range(3 if name == "three" else 2)
    }
    assert stored == expected


def test_drop_and_needed_blob_exclude_each_other_between_processes(tmp_path: Path) -> None:
    """Of a save that needs a blob and a drop of it, one is refused, whoever comes first."""
    store = tmp_path / "store"
    FileStorage(store, create=True).close()
    program = (
        "storage, done = FileStorage(path), []\n"
        "for number in range(40):\n"
        "    thread = bytes([number]) * 16\n"
        "    storage.put_blobs(thread, {digest: b'blob'})\n"
        "    try:\n"
        "        if sys.argv[2] == 'save':\n"
        "            storage.append(thread, 0, [Record(b'h', b's', b'b')], blobs={},\n"
        "                           needs=[digest])\n"
        "        else:\n"
        "            storage.drop(thread, -1, blobs=[digest])\n"
        "        done.append(number)\n"
        "    except (HeadMoved, Missing):\n"
        "        pass\n"
        "print(*done)\n"
    )
    printed = _together(program, store, "save", "drop")
    with closing(FileStorage(store)) as storage:
        for number in map(int, printed["save"].split()):
            assert storage.blob(bytes([number]) * 16, DIGEST, 9) == b"blob"

    assert printed["save"].split() or printed["drop"].split()


def test_lock_that_is_kept_is_unavailable_then_usable(tmp_path: Path) -> None:
    """Waiting for another writer ends in StorageUnavailable; reads go on; later it works."""
    store = tmp_path / "store"
    with closing(FileStorage(store, create=True, wait_seconds_max=0.05)) as storage:
        storage.append(THREAD, 0, [RECORD], blobs={})
        path = str(thread_path(store))
        with locked(lambda: Directory.root(path), 1.0):
            with pytest.raises(
                StorageUnavailable, match=r"another writer held its lock for 0\.05 s"
            ):
                storage.append(THREAD, 1, [RECORD], blobs={})
            with pytest.raises(StorageUnavailable):
                storage.compact()
            assert storage.read(THREAD, 0) == RECORD
            storage.append(bytes(16), 0, [RECORD], blobs={})
        storage.append(THREAD, 1, [RECORD], blobs={})

        assert [number for number, _ in storage.scan(THREAD, 0)] == [0, 1]


def test_writer_waits_for_its_turn(tmp_path: Path) -> None:
    """A lock that is given up in time is no failure."""
    store = tmp_path / "store"
    with closing(FileStorage(store, create=True)) as storage:
        storage.append(THREAD, 0, [RECORD], blobs={})
        path = str(thread_path(store))
        writer = threading.Thread(
            target=storage.append, args=(THREAD, 1, [RECORD]), kwargs={"blobs": {}}
        )
        with locked(lambda: Directory.root(path), 1.0):
            writer.start()
            time.sleep(0.05)
            before = storage.read(THREAD, 1)
        writer.join()

        assert before is None
        assert storage.read(THREAD, 1) == RECORD


def test_directory_that_was_removed_under_the_lock_is_made_anew(tmp_path: Path) -> None:
    """Whoever waited for the lock of an empty directory that `compact` removed is not lost."""
    store = tmp_path / "store"
    path = thread_path(store)
    with closing(FileStorage(store, create=True)) as storage:
        storage.put_blobs(THREAD, {DIGEST: b"blob"})
        storage.drop(THREAD, -1, blobs=[DIGEST])
        writer = threading.Thread(
            target=storage.append, args=(THREAD, 0, [RECORD]), kwargs={"blobs": {}}
        )
        with locked(lambda: Directory.root(str(path)), 1.0):
            writer.start()
            time.sleep(0.05)
            (path / "blobs" / "0").rmdir()
            (path / "blobs").rmdir()
            path.rmdir()
        writer.join()

        assert storage.read(THREAD, 0) == RECORD


@pytest.mark.parametrize("times", [1, 3])
def test_directory_that_is_removed_as_soon_as_it_is_made_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """A writer does not fail because `compact` takes its directory away before it is opened."""
    store, made = tmp_path / "store", 0
    real_mkdir = os.mkdir

    def make_and_compact(path: str, mode: int, *, dir_fd: int) -> None:
        nonlocal made
        real_mkdir(path, mode, dir_fd=dir_fd)
        if path == THREAD.hex() and made < times:
            made += 1
            other.compact()

    with (
        closing(FileStorage(store, create=True)) as storage,
        closing(FileStorage(store)) as other,
    ):
        monkeypatch.setattr(os, "mkdir", make_and_compact)
        storage.append(THREAD, 0, [RECORD], blobs={DIGEST: b"blob"})

        assert made == times
        assert storage.read(THREAD, 0) == RECORD
        assert storage.blob(THREAD, DIGEST, 9) == b"blob"


def test_directory_that_somebody_removes_for_ever_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer gives up when whatever it makes is gone at once."""
    real_mkdir = os.mkdir

    def make_and_remove(path: str, mode: int, *, dir_fd: int) -> None:
        real_mkdir(path, mode, dir_fd=dir_fd)
        os.rmdir(path, dir_fd=dir_fd)

    with closing(FileStorage(tmp_path / "store", create=True)) as storage:
        monkeypatch.setattr(os, "mkdir", make_and_remove)

        with pytest.raises(StorageUnavailable, match="expected it made, found it removed"):
            storage.append(THREAD, 0, [RECORD], blobs={})


def test_compacting_removes_a_thread_that_is_empty(tmp_path: Path) -> None:
    """Directories of blobs that are gone go too; those of entries stay."""
    store, other = tmp_path / "store", bytes(16)
    with closing(FileStorage(store, create=True)) as storage:
        storage.put_blobs(THREAD, {DIGEST: b"blob"})
        storage.append(other, 0, [RECORD], blobs={DIGEST: b"blob"})
        storage.drop(THREAD, -1, blobs=[DIGEST])
        storage.drop(other, 0, blobs=[DIGEST])
        storage.compact()

        assert not thread_path(store).exists()
        assert [path.name for path in thread_path(store, other).iterdir()] == ["01"]
        assert storage.read(other, 0) == RECORD
        storage.append(THREAD, 0, [RECORD], blobs={DIGEST: b"again"})
        assert storage.blob(THREAD, DIGEST, 9) == b"again"


@_forks
def test_both_sides_of_a_fork_go_on(tmp_path: Path) -> None:
    """Parent and child use one handle, which has nothing open between calls."""
    program = (
        "storage = FileStorage(path, create=True)\n"
        "storage.append(thread, 0, [Record(b'parent', b's', b'b')], blobs={})\n"
        "scan = storage.scan(thread, 0)\n"
        "opened = sorted(os.listdir('/dev/fd'))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    assert storage.read(thread, 0).header == b'parent'\n"
        "    storage.append(thread, 1, [Record(b'child', b's', b'b')], blobs={})\n"
        "    storage.close()\n"
        "    os._exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "storage.append(thread, 2, [Record(b'parent', b's', b'b')], blobs={})\n"
        "assert sorted(os.listdir('/dev/fd')) == opened\n"
    )
    store = tmp_path / "store"
    result = run(program, store)
    with closing(FileStorage(store)) as storage:
        headers = [record.header for _, record in storage.scan(THREAD, 0)]

    assert (result.returncode, result.stderr) == (0, "")
    assert headers == [b"parent", b"child", b"parent"]


@_forks
def test_child_does_not_keep_the_lock_of_a_parent_that_is_killed(tmp_path: Path) -> None:
    """A child forked while a thread of the parent held a lock has no copy of it."""
    program = (
        "from sealpoint.storage._file_directory import Directory\n"
        "from sealpoint.storage._file_threads import locked\n"
        "inside, never = threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with locked(lambda: Directory.root(str(path)), 1.0):\n"
        "        inside.set()\n"
        "        never.wait()\n"
        "threading.Thread(target=hold, daemon=True).start()\n"
        "inside.wait()\n"
        "import warnings\n"
        "warnings.simplefilter('ignore')\n"
        "if os.fork() == 0:\n"
        "    os.close(1), os.close(2)\n"
        "    with locked(lambda: Directory.root(str(path)), 10.0):\n"
        "        (path / 'child').touch()\n"
        "    time.sleep(30)\n"
        "    os._exit(0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = run(program, tmp_path)
    with locked(lambda: Directory.root(str(tmp_path)), 10.0):
        pass
    deadline = time.monotonic() + 10
    while not (tmp_path / "child").exists() and time.monotonic() < deadline:
        time.sleep(0.01)

    assert (result.returncode, result.stderr) == (-9, "")
    assert (tmp_path / "child").exists()


def test_reader_meets_whole_groups_only(tmp_path: Path) -> None:
    """While another process appends groups, every scan ends at the end of one."""
    store = tmp_path / "store"
    with closing(FileStorage(store, create=True)) as storage:
        program = (
            "storage = FileStorage(path)\n"
            "group = [Record(b'h' * 4000, b's', b'b')] * 4\n"
            "for number in range(0, 120, 4):\n"
            "    storage.append(thread, number, group, blobs={})\n"
        )
        writer = threading.Thread(target=run, args=(program, store))
        writer.start()
        lengths = set()
        while writer.is_alive():
            forwards = [number for number, _ in storage.scan(THREAD, 0)]
            backwards = [number for number, _ in storage.scan(THREAD, 0, descending=True)]
            assert forwards == list(range(len(forwards)))
            assert backwards == list(reversed(range(len(backwards))))
            lengths |= {len(forwards), len(backwards)}
        writer.join()

        assert all(length % 4 == 0 for length in lengths)
        assert len(list(storage.scan(THREAD, 0))) == 120


_OPERATIONS = {
    "new thread": (
        "",
        "storage.append(thread, 0, new, blobs={digest: b'blob'}, label=digest)",
    ),
    "append": (
        "storage.append(thread, 0, [old], blobs={digest: b'other'})",
        "storage.append(thread, 1, new, blobs={digest: b'blob'}, label=digest)",
    ),
    "completion": (
        "storage.append(thread, 1, new[1:2], blobs={}, label=digest)",
        "storage.append(thread, 0, new, blobs={digest: b'blob'})",
    ),
}


@_forks
@pytest.mark.parametrize("operation", _OPERATIONS)
def test_process_that_dies_at_any_call_leaves_all_or_nothing(
    tmp_path: Path, operation: str
) -> None:
    """Killed before any change of a file, an append took effect or did not, and can be repeated."""
    prepare, change = _OPERATIONS[operation]
    program = (
        "os.fsync = lambda descriptor: None  # the power stays on\n"
        "calls = ('write', 'fsync', 'link', 'unlink', 'rename', 'mkdir', 'fchmod', 'rmdir')\n"
        "old = Record(b'old', b's', b'b', b'p')\n"
        "new = [Record(b'h%d' % n, b's', b'b', b'p') for n in range(3)]\n"
        "def content(storage):\n"
        "    return (list(storage.scan(thread, 0)), storage.labelled(digest))\n"
        "def die_at(number):\n"
        "    global left\n"
        "    left = number\n"
        "    def dying(call):\n"
        "        def counted(*args, **more):\n"
        "            global left\n"
        "            left -= 1\n"
        "            if left == 0:\n"
        "                os._exit(9)\n"
        "            return call(*args, **more)\n"
        "        return counted\n"
        "    for name in calls:\n"
        "        setattr(os, name, dying(getattr(os, name)))\n"
        "number, outcomes = 0, set()\n"
        "while True:\n"
        "    number += 1\n"
        "    storage = FileStorage(path / str(number), create=True)\n"
        f"    {prepare}\n"
        "    before = content(storage)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        die_at(number)\n"
        f"        {change}\n"
        "        os._exit(0)\n"
        "    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "    after = content(storage)\n"
        f"    {change}\n"
        "    final = content(storage)\n"
        "    assert after in (before, final), (number, before, after)\n"
        "    if after == final:\n"
        "        assert storage.blob(thread, digest, 9) == b'blob', number\n"
        "    outcomes.add(after == final)\n"
        "    storage.compact()\n"
        "    assert content(storage) == final, number\n"
        "    assert not list(path.rglob('new-*')), number\n"
        "    if ended == 0:\n"
        "        break\n"
        "    assert ended == 9, ended\n"
        "assert outcomes == {True, False}\n"
        "print(number)\n"
    )
    result = run(program, tmp_path)

    assert (result.returncode, result.stderr) == (0, "")
    assert int(result.stdout) > 10


@_forks
def test_drop_that_dies_at_any_call_is_completed_by_repeating(tmp_path: Path) -> None:
    """Every record is whole or thinned out, nothing else is touched, and a second call ends it."""
    program = (
        "os.fsync = lambda descriptor: None  # the power stays on\n"
        "calls = ('write', 'fsync', 'link', 'unlink', 'rename')\n"
        "full = [Record(b'h%d' % n, b's', b'b', b'p') for n in range(20)]\n"
        "bare = [Record(r.header, r.seals, None if n < 5 else r.body,\n"
        "               r.payload if n >= 18 else None) for n, r in enumerate(full)]\n"
        "def drop(storage):\n"
        "    storage.drop(thread, 19, bodies=range(5), payloads=range(18), blobs=[digest],\n"
        "                 label=digest)\n"
        "number = 0\n"
        "while True:\n"
        "    number += 1\n"
        "    storage = FileStorage(path / str(number), create=True)\n"
        "    storage.append(thread, 0, full[:18], blobs={digest: b'blob'}, label=digest)\n"
        "    storage.append(thread, 18, full[18:], blobs={})\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        left = [number]\n"
        "        def dying(call):\n"
        "            def counted(*args, **more):\n"
        "                left[0] -= 1\n"
        "                if not left[0]:\n"
        "                    os._exit(9)\n"
        "                return call(*args, **more)\n"
        "            return counted\n"
        "        for name in calls:\n"
        "            setattr(os, name, dying(getattr(os, name)))\n"
        "        drop(storage)\n"
        "        os._exit(0)\n"
        "    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "    for seq, record in storage.scan(thread, 0):\n"
        "        assert record in (full[seq], bare[seq]), (number, seq)\n"
        "    drop(storage)\n"
        "    storage.compact()\n"
        "    assert list(storage.scan(thread, 0)) == list(enumerate(bare)), number\n"
        "    assert storage.blob(thread, digest, 9) is None\n"
        "    assert storage.labelled(digest) == []\n"
        "    assert not list(path.rglob('new-*')), number\n"
        "    if ended == 0:\n"
        "        break\n"
        "print(number)\n"
    )
    result = run(program, tmp_path)

    assert (result.returncode, result.stderr) == (0, "")
    assert int(result.stdout) > 5


@_forks
def test_truncation_that_dies_at_any_call_leaves_what_comes_first(tmp_path: Path) -> None:
    """The last records go first, so that there is never a hole; a second call does the rest."""
    program = (
        "os.fsync = lambda descriptor: None  # the power stays on\n"
        "full = [Record(b'h%d' % n, b's', b'b', b'p') for n in range(20)]\n"
        "number = 0\n"
        "while True:\n"
        "    number += 1\n"
        "    storage = FileStorage(path / str(number), create=True)\n"
        "    storage.append(thread, 0, full[:10], blobs={})\n"
        "    for n in range(10, 20):\n"
        "        storage.append(thread, n, full[n:n + 1], blobs={})\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        left = [number]\n"
        "        def dying(call):\n"
        "            def counted(*args, **more):\n"
        "                left[0] -= 1\n"
        "                if not left[0]:\n"
        "                    os._exit(9)\n"
        "                return call(*args, **more)\n"
        "            return counted\n"
        "        for name in ('write', 'fsync', 'link', 'unlink', 'rename'):\n"
        "            setattr(os, name, dying(getattr(os, name)))\n"
        "        storage.truncate(thread, 4, b'h4')\n"
        "        os._exit(0)\n"
        "    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "    found = list(storage.scan(thread, 0))\n"
        "    assert found == list(enumerate(full))[:len(found)], number\n"
        "    assert len(found) >= 4, number\n"
        "    if len(found) > 4:\n"
        "        storage.truncate(thread, 4, b'h4')\n"
        "    storage.compact()\n"
        "    assert list(storage.scan(thread, 0)) == list(enumerate(full))[:4], number\n"
        "    assert not list(path.rglob('new-*')), number\n"
        "    if ended == 0:\n"
        "        break\n"
        "print(number)\n"
    )
    result = run(program, tmp_path)

    assert (result.returncode, result.stderr) == (0, "")
    assert int(result.stdout) > 20


def test_loser_of_a_race_in_one_process_knows_it(tmp_path: Path) -> None:
    """Positions inside, around and across a group that is there are taken."""
    other = [Record(b"other", b"s", b"b")] * 6
    with closing(FileStorage(tmp_path / "store", create=True)) as storage:
        storage.append(THREAD, 20, [RECORD] * 4, blobs={})
        for seq, count in ((20, 4), (21, 1), (23, 1), (18, 3), (23, 6), (19, 6), (22, 4)):
            with pytest.raises(HeadMoved, match="it is there already"):
                storage.append(THREAD, seq, other[:count], blobs={DIGEST: b"blob"}, label=DIGEST)

        assert list(storage.scan(THREAD, 0)) == [(20 + n, RECORD) for n in range(4)]
        assert storage.blob(THREAD, DIGEST, 9) is None
        assert storage.labelled(DIGEST) == []
