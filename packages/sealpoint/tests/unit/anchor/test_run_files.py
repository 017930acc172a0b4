# SPDX-License-Identifier: Apache-2.0
"""Runs of a local anchor: one process at a time has a thread, however the one before it ended."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from sealpoint.anchor import Hold, Holder
from sealpoint.anchor.local import LocalAnchor
from sealpoint.errors import AnchorUnavailable
from tests.unit.anchor.places import KEY, STORE, opened, slot

_WAIT_S = 60
_SINCE = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
_HERE = Holder("here", _SINCE)
_THERE = Holder("there", _SINCE)
_FILE = f"run.{slot(1).hex()}"

_PRELUDE = """
import os, sys, time
from datetime import UTC, datetime
from pathlib import Path
from sealpoint.anchor import Holder
from sealpoint.anchor.local import LocalAnchor
from tests.unit.anchor.places import KEY, STORE, slot

anchor = LocalAnchor(Path(sys.argv[1]), store=STORE, key=KEY)
there = Holder("there", datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC))
"""
_HOLD = """
hold = anchor.hold(slot(1), there)
print("held" if not isinstance(hold, Holder) else hold.who, flush=True)
"""
_WAIT = """
sys.stdin.read()
"""


def _start(directory: Path, program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _PRELUDE + program, str(directory), *arguments],
        cwd=Path(__file__).parents[5],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def _elsewhere(directory: Path, program: str) -> Iterator[subprocess.Popen[str]]:
    """Another process, which has said something and waits."""
    with _start(directory, program) as process:
        try:
            yield process
        finally:
            process.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None

    return process.stdout.readline().strip()


def _held(anchor: LocalAnchor, holder: Holder = _HERE) -> Hold:
    hold = anchor.hold(slot(1), holder)

    assert not isinstance(hold, Holder), hold
    return hold


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The directory of an anchor."""
    return tmp_path / "anchor"


@pytest.fixture
def anchor(place: Path) -> Iterator[LocalAnchor]:
    """An anchor in it."""
    with opened(place, create=True) as made:
        yield made


def test_processes_exclude_each_other(place: Path, anchor: LocalAnchor) -> None:
    """A run of another process is refused, and its holder is named; and the other way round."""
    with _elsewhere(place, _HOLD + _WAIT) as other:
        assert _line(other) == "held"
        assert anchor.hold(slot(1), _HERE) == _THERE
        assert anchor.holder(slot(1)) == _THERE
        other.communicate(timeout=_WAIT_S)
    hold = _held(anchor)
    with _elsewhere(place, _HOLD) as other:
        assert _line(other) == "here"
    hold.end()


def test_process_that_is_killed_leaves_its_thread_at_once(place: Path, anchor: LocalAnchor) -> None:
    """After kill -9 the holder does not live, and the next run has the thread without waiting."""
    with _elsewhere(place, _HOLD + _WAIT) as other:
        assert _line(other) == "held"
        other.send_signal(signal.SIGKILL)
        other.wait(_WAIT_S)

    dead = Holder("there", _SINCE, living=False)
    assert anchor.holder(slot(1)) == dead
    with opened(place, read_only=True) as reader:
        assert reader.holder(slot(1)) == dead
    hold = _held(anchor)
    assert anchor.holder(slot(1)) == _HERE
    hold.end()
    assert anchor.holder(slot(1)) is None


def test_process_that_ends_without_ending_its_run_does_not_live(
    place: Path, anchor: LocalAnchor
) -> None:
    """A process that returns, or closes its anchor, and never ended the run left a dead one."""
    with _elsewhere(place, _HOLD + "anchor.close()\n") as other:
        other.communicate(timeout=_WAIT_S)

    assert anchor.holder(slot(1)) == Holder("there", _SINCE, living=False)


@pytest.mark.parametrize("forgotten", ["", "del hold\nimport gc; gc.collect()\n"])
def test_child_that_outlives_its_parent_does_not_keep_the_thread(
    place: Path, anchor: LocalAnchor, forgotten: str
) -> None:
    """A lock is shared over a fork; the child gives it up, and ending it there changes nothing."""
    program = (
        _HOLD
        + forgotten
        + """
if os.fork() == 0:
    if "hold" in globals():
        hold.end()
    print(os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
sys.stdin.read()
"""
    )
    with _elsewhere(place, program) as other:
        assert _line(other) == "held"
        child = int(_line(other))
        try:
            assert anchor.holder(slot(1)) == _THERE
            assert anchor.hold(slot(1), _HERE) == _THERE
            other.kill()
            other.wait(_WAIT_S)
            os.kill(child, 0)

            assert anchor.holder(slot(1)) == Holder("there", _SINCE, living=False)
            _held(anchor).end()
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("step", ["open", "ftruncate", "pwrite"])
def test_child_made_while_a_run_begins_keeps_no_lock(
    place: Path, anchor: LocalAnchor, step: str
) -> None:
    """Another OS thread may be anywhere in `hold` when a child is made: the child locks nothing."""
    program = f"""
import threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
reached = threading.Event()
do = os.{step}

def slowly(*args, **named):
    done = do(*args, **named)
    reached.set()
    time.sleep(0.1)
    return done

os.{step} = slowly
beginning = threading.Thread(target=anchor.hold, args=(slot(1), there))
beginning.start()
reached.wait()
if os.fork() == 0:
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)
    os._exit(0)
beginning.join()
os.write(1, b"held\\n")
sys.stdin.read()
"""
    with _elsewhere(place, program) as other:
        [child] = {_line(other), _line(other)} - {"held"}
        try:
            assert anchor.holder(slot(1)) == _THERE
            other.kill()
            other.wait(_WAIT_S)

            assert anchor.holder(slot(1)) == Holder("there", _SINCE, living=False)
            _held(anchor).end()
        finally:
            os.kill(int(child), signal.SIGKILL)


def test_file_is_there_while_the_run_is(place: Path, anchor: LocalAnchor) -> None:
    """Its file is made with the hold, for this user alone, and is gone after the end."""
    hold = _held(anchor)
    status = (place / _FILE).stat()
    hold.end()

    assert stat.S_IMODE(status.st_mode) == 0o600
    assert sorted(path.name for path in place.iterdir()) == ["anchor.slots"]


def test_two_anchors_of_a_process_exclude_each_other(place: Path, anchor: LocalAnchor) -> None:
    """A second handle of the same process is another one; its close ends no run."""
    with opened(place) as second:
        hold = _held(second, _THERE)
        assert anchor.hold(slot(1), _HERE) == _THERE

    assert anchor.holder(slot(1)) == _THERE
    hold.end()
    assert anchor.holder(slot(1)) is None


def test_racing_processes_never_have_a_thread_together(place: Path, tmp_path: Path) -> None:
    """Processes that begin and end runs, or die in them, never overlap, and nobody gets stuck."""
    program = """
log = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
who = sys.argv[3].encode()
until = time.monotonic() + 0.8
while time.monotonic() < until:
    hold = anchor.hold(slot(1), there)
    if isinstance(hold, Holder):
        continue
    os.write(log, b"begin %s\\n" % who)
    anchor.holder(slot(1))
    os.write(log, b"end %s\\n" % who)
    if sys.argv[3] == "0" and time.monotonic() > until - 0.4:
        os._exit(0)
    hold.end()
"""
    log = tmp_path / "log"
    with opened(place, create=True) as anchor:
        processes = [_start(place, program, str(log), str(who)) for who in range(8)]
        for process in processes:
            process.communicate(timeout=_WAIT_S)
        lines = log.read_text().splitlines()

        assert [process.returncode for process in processes] == [0] * 8
        assert len({line.split()[1] for line in lines}) > 1
        assert len(lines) % 2 == 0
        for begin, end in zip(lines[::2], lines[1::2], strict=True):
            assert (begin, end) == (f"begin {end[4:]}", f"end {begin[6:]}")
        found = anchor.holder(slot(1))
        assert found is None or not found.living
        _held(anchor).end()


@pytest.mark.parametrize("content", [b"no json", b"{}", b"\xff" * 9000, b'{"who": 1, "since": 2}'])
def test_content_that_names_nobody_is_a_run_of_nobody(
    place: Path, anchor: LocalAnchor, content: bytes
) -> None:
    """What lies in a file decides nothing: the lock does."""
    (place / _FILE).touch(0o600)
    (place / _FILE).write_bytes(content)

    found = anchor.holder(slot(1))
    assert found is not None
    assert (found.who, found.living) == ("", False)
    hold = _held(anchor)
    (place / _FILE).write_bytes(content)
    for refused in (anchor.holder(slot(1)), anchor.hold(slot(1), _HERE)):
        assert isinstance(refused, Holder)
        assert (refused.who, refused.living) == ("", True)
    hold.end()
    assert anchor.holder(slot(1)) is None


def test_empty_file_is_no_run(place: Path, anchor: LocalAnchor) -> None:
    """A process that died before it wrote its name had not begun."""
    (place / _FILE).touch(0o600)

    assert anchor.holder(slot(1)) is None
    _held(anchor).end()
    assert not (place / _FILE).exists()


def test_file_that_others_can_write_is_refused(
    place: Path, anchor: LocalAnchor, tmp_path: Path
) -> None:
    """A link, a directory, or a file with write permission for others is AnchorUnavailable."""
    (tmp_path / "target").touch(0o600)
    (place / _FILE).symlink_to(tmp_path / "target")
    _require_refused(anchor, "link")
    (place / _FILE).unlink()
    (place / _FILE).mkdir()
    _require_refused(anchor, "directory")
    (place / _FILE).rmdir()
    (place / _FILE).touch()
    (place / _FILE).chmod(0o666)
    _require_refused(anchor, "only its owner writes")
    assert (tmp_path / "target").read_bytes() == b""


def _require_refused(anchor: LocalAnchor, why: str) -> None:
    with pytest.raises(AnchorUnavailable, match=why):
        anchor.hold(slot(1), _HERE)
    with pytest.raises(AnchorUnavailable, match=why):
        anchor.holder(slot(1))


def test_directory_that_is_gone_is_not_a_free_thread(
    place: Path, anchor: LocalAnchor, tmp_path: Path
) -> None:
    """What cannot be looked for is an error; a run ends in its directory, wherever that is."""
    hold = _held(anchor)
    place.rename(tmp_path / "elsewhere")

    with pytest.raises(AnchorUnavailable):
        anchor.holder(slot(1))
    with pytest.raises(AnchorUnavailable):
        anchor.hold(slot(1), _HERE)
    hold.end()
    (tmp_path / "elsewhere").rename(place)
    assert anchor.holder(slot(1)) is None


def test_end_removes_no_file_of_another_run(place: Path, anchor: LocalAnchor) -> None:
    """Where somebody removed a file by hand, the end of its run leaves the next run alone."""
    first = _held(anchor)
    (place / _FILE).unlink()
    second = _held(anchor, _THERE)
    first.end()

    assert anchor.holder(slot(1)) == _THERE
    second.end()


def test_disk_that_is_full_leaves_no_run(
    anchor: LocalAnchor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hold that cannot be written is AnchorUnavailable, and the next one is given."""

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("sealpoint.anchor._run_files.os.pwrite", fail)
        with pytest.raises(AnchorUnavailable, match="No space"):
            anchor.hold(slot(1), _HERE)

    assert anchor.holder(slot(1)) is None
    _held(anchor).end()


def test_anchor_opened_for_reading_begins_no_run(place: Path, anchor: LocalAnchor) -> None:
    """It sees who has a thread, and makes no file."""
    with opened(place, read_only=True) as reader:
        with pytest.raises(AnchorUnavailable, match="reading only"):
            reader.hold(slot(1), _HERE)
        assert reader.holder(slot(1)) is None
        hold = _held(anchor)
        assert reader.holder(slot(1)) == _HERE
        hold.end()
    assert sorted(path.name for path in place.iterdir()) == ["anchor.slots"]


def test_anchor_that_was_never_made_is_made_by_a_run(place: Path) -> None:
    """A run may come before the first position; looking makes nothing."""
    with opened(place) as late:
        assert late.holder(slot(1)) is None
        assert not place.exists()
        hold = _held(late)
        assert late.holder(slot(1)) == _HERE
        hold.end()


def test_members_of_a_group_share_the_file(place: Path) -> None:
    """In a directory that a group shares its members may take over what one of them left."""
    group = os.getgid()
    anchor = LocalAnchor(place, store=STORE, key=KEY, create=True, group=group)
    try:
        hold = _held(anchor)
        status = (place / _FILE).stat()
        (place / _FILE).chmod(0o666)
        _require_refused(anchor, "writes")
        hold.end()
    finally:
        anchor.close()

    assert (status.st_gid, stat.S_IMODE(status.st_mode)) == (group, 0o660)


def test_looking_keeps_no_run_from_beginning(anchor: LocalAnchor) -> None:
    """Readers lock a file for a moment, and whoever begins a run does not take them for one."""
    refused: list[Hold | Holder] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            anchor.holder(slot(1))

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(200):
            hold = anchor.hold(slot(1), _HERE)
            if isinstance(hold, Holder):
                refused.append(hold)
            else:
                hold.end()
    finally:
        done.set()
        for reader in readers:
            reader.join()

    assert refused == []


def test_reader_that_never_lets_go_is_reported(
    place: Path, anchor: LocalAnchor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared lock is no run, so nobody is named; whoever waits for it is not kept for ever."""
    monkeypatch.setattr("sealpoint.anchor._run_files._WAIT_S", 0.02)
    (place / _FILE).touch(0o600)
    with (place / _FILE).open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)

        assert anchor.holder(slot(1)) is None
        with pytest.raises(AnchorUnavailable, match="readers held the lock"):
            anchor.hold(slot(1), _HERE)
    _held(anchor).end()


def test_file_that_is_being_made_is_waited_for(
    place: Path, anchor: LocalAnchor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new file gets its group and mode, and its content, a moment after its name."""
    (place / _FILE).touch()
    (place / _FILE).chmod(0o666)
    looks: list[float] = []

    def pause(seconds: float) -> None:
        looks.append(seconds)
        (place / _FILE).chmod(0o600)

    with monkeypatch.context() as patched:
        patched.setattr("sealpoint.anchor._run_files.sleep", pause)
        assert anchor.holder(slot(1)) is None
        (place / _FILE).chmod(0o666)
        hold = _held(anchor)
        assert len(looks) == 2
        (place / _FILE).write_bytes(b"")
        patched.setattr(
            "sealpoint.anchor._run_files.sleep",
            lambda _: (place / _FILE).write_bytes(msgspec.json.encode(_THERE)),
        )
        assert anchor.holder(slot(1)) == _THERE
        (place / _FILE).write_bytes(b"")
        assert anchor.hold(slot(1), _HERE) == _THERE
    hold.end()
