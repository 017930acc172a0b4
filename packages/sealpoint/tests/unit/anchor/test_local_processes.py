# SPDX-License-Identifier: Apache-2.0
"""Several processes on one local anchor: no update is lost, no reader goes back, no crash stops."""

import subprocess
import sys
from pathlib import Path

import pytest

from sealpoint.errors import AnchorUnavailable
from tests.unit.anchor.places import NAME, opened, position, slot

_WAIT_S = 120

_PRELUDE = """
import os, sys, threading
from pathlib import Path
from msgspec.structs import replace
from sealpoint.anchor import local as _shared
from sealpoint.anchor.local import LocalAnchor
from tests.unit.anchor.places import KEY, STORE, position, slot

def count_up(anchor, who, times):
    won = 0
    held = anchor.get(slot(0))
    while won < times:
        named = {"gen": who, "entry": os.urandom(32)}
        mine = replace(held, seq=held.seq + 1, fence=held.seq + 1, **named)
        found = anchor.advance(slot(0), held, mine)
        won += found == mine
        held = found

anchor = LocalAnchor(Path(sys.argv[1]), store=STORE, key=KEY)
who = int(sys.argv[2])
"""

_DIE_AT_DIRECTORY = """
sync = os.fsync
os.fsync = lambda file: os._exit(9) if os.path.isdir(f"/dev/fd/{file}") else sync(file)
"""

_HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def _start(directory: Path, who: int, program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _PRELUDE + program, str(directory), str(who)],
        cwd=Path(__file__).parents[5],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _finish(processes: list[subprocess.Popen[str]], status: int = 0) -> None:
    outputs = [process.communicate(timeout=_WAIT_S)[0] for process in processes]

    assert [process.returncode for process in processes] == [status] * len(processes), outputs


@pytest.mark.parametrize("processes", [2, 4])
def test_no_update_is_lost_between_processes(tmp_path: Path, processes: int) -> None:
    """Processes that count up one slot at once reach exactly the sum of their steps."""
    directory = tmp_path / "anchor"
    with opened(directory, create=True) as anchor:
        anchor.create(slot(0), position(0))
        _finish([_start(directory, who, "count_up(anchor, who, 800)") for who in range(processes)])
        found = anchor.get(slot(0))

        assert found is not None
        assert found.seq == processes * 800


def test_growth_disturbs_nobody(tmp_path: Path) -> None:
    """While processes make slots and the file grows, counters and readers go on undisturbed."""
    directory = tmp_path / "anchor"
    make = """
for number in range(1, 400):
    mine = slot(who * 1000 + number)
    assert anchor.create(mine, position(number)) == position(number)
    assert anchor.create(slot(5000 + number), position(number)) == position(number)
    assert anchor.advance(mine, position(number), position(number + 1)) == position(number + 1)
    assert anchor.get(mine) == position(number + 1)
    count_up(anchor, who, 1)
"""
    read = """
newest, seen = 0, set()
while newest < 2 * 399:
    held = anchor.get(slot(0))
    assert held.seq >= newest
    newest = held.seq
    listed = dict(anchor.slots())
    assert seen <= set(listed)
    seen = set(listed)
"""
    with opened(directory, create=True) as anchor:
        anchor.create(slot(0), position(0))
        _finish(
            [_start(directory, 1, make), _start(directory, 2, make), _start(directory, 3, read)]
        )
        counted = anchor.get(slot(0))
        listed = dict(anchor.slots())

        assert counted is not None
        assert counted.seq == 2 * 399
        assert len(listed) == 1 + 3 * 399
        assert all(listed[slot(1000 + n)] == position(n + 1) for n in range(1, 400))
    assert [path.name for path in directory.iterdir()] == [NAME]


def test_processes_that_make_the_file_at_once_share_it(tmp_path: Path) -> None:
    """Of processes that find no file one makes it, and the slots of all are in it."""
    directory = tmp_path / "state" / "anchor"
    program = "anchor.create(slot(who), position(who))"
    _finish([_start(directory, who, program) for who in range(4)])

    with opened(directory) as anchor:
        assert dict(anchor.slots()) == {slot(who): position(who) for who in range(4)}
    assert [path.name for path in directory.iterdir()] == [NAME]


@pytest.mark.parametrize(
    "crash",
    [
        "_shared.write_table = lambda *args, **named: os._exit(9)",
        "_shared.open_table = lambda *args, **named: os._exit(9)",
        "_shared.disk.publish = lambda *args, **named: os._exit(9)",
        _DIE_AT_DIRECTORY,
        "_shared._let_go = lambda table: os._exit(9)",
    ],
)
def test_process_that_dies_while_growing_holds_nobody_up(tmp_path: Path, crash: str) -> None:
    """After a process died at a step of growth, those with the file open read and write on."""
    directory = tmp_path / "anchor"
    with opened(directory, create=True) as anchor, opened(directory, read_only=True) as reader:
        for number in range(153):
            anchor.create(slot(number), position(number))
        program = f"anchor.get(slot(1))\n{crash}\n"
        _finish([_start(directory, 1, program + "anchor.create(slot(999), position(0))")], status=9)

        for number in range(153):
            assert reader.get(slot(number)) == position(number)
        assert anchor.advance(slot(1), position(1), position(2)) == position(2)
        assert reader.get(slot(1)) == position(2)
        for number in range(153, 330):
            assert anchor.create(slot(number), position(number)) == position(number)
            assert reader.get(slot(number)) == position(number)
        assert len(dict(reader.slots())) == 330


def test_process_that_dies_while_making_a_slot_leaves_it_absent(tmp_path: Path) -> None:
    """A process that dies between the two writes of a new slot leaves none, and no damage."""
    directory = tmp_path / "anchor"
    program = """
write = os.pwrite
os.pwrite = lambda *args: (write(*args), os._exit(9))
anchor.create(slot(1), position(0))
"""
    with opened(directory, create=True) as anchor:
        before = (directory / NAME).read_bytes()
        _finish([_start(directory, 1, program)], status=9)

        assert (directory / NAME).read_bytes() != before
        assert anchor.get(slot(1)) is None
        assert anchor.create(slot(1), position(3)) == position(3)


def test_forked_child_and_parent_lock_each_other_out(tmp_path: Path) -> None:
    """A child made by fork, even while another OS thread held the lock, counts with its parent."""
    directory = tmp_path / "anchor"
    program = """
import signal, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
anchor.create(slot(0), position(0))
counting = threading.Thread(target=count_up, args=(anchor, 1, 1500))
counting.start()
children = []
for who in (2, 3, 4):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        count_up(anchor, who, 400)
        os._exit(0)
    children.append(child)
counting.join()
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
assert anchor.get(slot(0)).seq == 1500 + 3 * 400, anchor.get(slot(0)).seq
"""
    _finish([_start(directory, 0, program)])


def test_lock_that_is_never_released_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for a process that holds the lock is AnchorUnavailable; readers do not wait."""
    directory = tmp_path / "anchor"
    with opened(directory, create=True) as anchor:
        anchor.create(slot(1), position(0))
        with subprocess.Popen(
            [
                sys.executable,
                "-c",
                _HOLD,
                str(directory / NAME),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            monkeypatch.setattr("sealpoint.anchor.local._LOCK_WAIT_S", 0.05)

            with pytest.raises(AnchorUnavailable, match="held its lock"):
                anchor.advance(slot(1), position(0), position(1))
            assert anchor.get(slot(1)) == position(0)
            holder.communicate()
        assert anchor.advance(slot(1), position(0), position(1)) == position(1)
