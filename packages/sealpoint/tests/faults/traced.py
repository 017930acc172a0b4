# SPDX-License-Identifier: Apache-2.0
"""A process that starts children and follows every system call they make on a store's files.

Run as `python -m tests.faults.traced`. Like the spawner it has imported everything and opened
nothing. Requests are tasks, as lines of JSON; each is answered when its child has ended, with its
exit status, what it told, and which of its calls counted. One call, or every call from one on,
can be made to fail; or the child is killed there.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec
import pytest

from tests.faults.calls import NUMBERS, Call, Reached, reached
from tests.faults.events import Event
from tests.faults.places import Place
from tests.faults.ptrace import (
    Fail,
    Fault,
    Kill,
    Shorten,
    follow,
    show_calls,
    stop_for_tracing,
)
from tests.faults.recording import Recorder
from tests.faults.scenarios import SCENARIOS, Note, Teller

__all__ = ["COUNTED", "FAULTS", "Outcome", "Task", "Traced", "read_events", "traced"]

_WRITES = frozenset({"write", "pwrite64", "writev", "pwritev", "pwritev2"})
_SYNCS = frozenset({"fsync", "fdatasync"})
_SIZES = frozenset({"ftruncate", "fallocate", "truncate"})
_NAMES = frozenset({"mkdirat", "unlinkat", "renameat2", "linkat", "symlinkat"})
_PATHS = frozenset({"openat", "newfstatat", "faccessat", "statx", "truncate", "fchmodat"})
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_UNFAILING = frozenset({"close", "munmap", "mmap"})
"""Calls whose failure tells nothing: closing has closed, and memory is not what is tested."""


def _is_change(found: Reached) -> bool:
    opens = found.name == "openat" and bool(found.args[2] & _WRITING)
    return opens or found.name in _WRITES | _SYNCS | _SIZES | _NAMES


COUNTED: dict[str, Callable[[Reached], bool]] = {
    "writes": lambda found: found.name in _WRITES,
    "syncs": lambda found: found.name in _SYNCS,
    "file syncs": lambda found: found.name in _SYNCS and not Path(found.paths[0]).is_dir(),
    "space": lambda found: found.name in _WRITES | _SIZES | {"mkdirat", "linkat", "renameat2"},
    "changes": _is_change,
    "names": lambda found: found.name in _NAMES | _PATHS,
    "all": lambda found: found.name not in _UNFAILING and not found.unlocks,
}
"""Which calls count, of those that reach a file of the store, of its keys or of its anchor."""


def _shortened(found: Reached) -> Fault:
    return Shorten(found.args[2] // 2)


FAULTS: dict[str, Callable[[Reached], Fault]] = {
    "EIO": lambda _: Fail(errno.EIO),
    "ENOSPC": lambda _: Fail(errno.ENOSPC),
    "EACCES": lambda _: Fail(errno.EACCES),
    "EROFS": lambda _: Fail(errno.EROFS),
    "half": _shortened,
    "kill": lambda _: Kill(),
    "kill after": lambda _: Kill(after=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a child is to do, and what is to happen to it."""

    directory: str
    kind: str
    scenario: str
    writer: int = 0
    """A number that no other child on the same store has."""
    recording: str = ""
    """A file for what it does to the files, or nothing. What was recorded under the same name
    before is gone on with: the disk has then not been told to sync in between."""
    counted: str = "all"
    number: int = 0
    """Which of the calls that count is hit, from 1; 0: none."""
    fault: str = "EIO"
    then: str = ""
    """What hits every call that counts after that one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a task."""

    status: int
    notes: list[Note] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """The calls that counted while faults were allowed, each with the name of its file."""
    refused: str = ""
    """What it did that is not understood; it was killed for that."""

    def words(self, word: str) -> list[Note]:
        """What it told with one word."""
        return [note for note in self.notes if note.word == word]


_recorders: dict[str, Recorder] = {}
"""The last one, by the file it is for."""


class _Watch:
    """Records if asked to, counts, and hits; faults happen only between two marks."""

    def __init__(self, task: Task, marks: int) -> None:
        self._task = task
        self._marks = marks
        self._root = task.directory
        self._armed = False
        self.recorder: Recorder | None = None
        self.texts: list[str] = []
        self.calls: list[str] = []

    def begin(self) -> None:
        name = self._task.recording
        if name:
            self.recorder = _recorders.get(name) or Recorder(Path(self._root))
            _recorders.clear()
            _recorders[name] = self.recorder

    def enter(self, call: Call) -> Fault | None:
        if self._is_mark(call):
            return None
        if self.recorder is not None:
            self.recorder.enter(call)
        found = reached(call, self._root) if self._armed else None
        if found is None or not COUNTED[self._task.counted](found):
            return None
        self.calls.append(f"{found.name} {found.paths[-1].rpartition('/')[2]}")
        number = len(self.calls)
        if number == self._task.number:
            return FAULTS[self._task.fault](found)
        if self._task.then and 0 < self._task.number < number:
            return FAULTS[self._task.then](found)
        return None

    def waits_for(self, call: Call) -> bool:
        return self.recorder is not None or self._is_mark(call)

    def leave(self, call: Call, result: int) -> None:
        if self._is_mark(call):
            text = call.data(call.args[1], call.args[2]).decode()
            self.texts.append(text)
            self._armed = {"armed": True, "disarmed": False}.get(Note.read(text).word, self._armed)
            if self.recorder is not None:
                self.recorder.mark(text)
        elif self.recorder is not None:
            self.recorder.leave(call, result)

    def _is_mark(self, call: Call) -> bool:
        return call.name == "write" and call.args[0] == self._marks


def _recorded() -> None:
    """Let all calls of this process be seen from here on."""
    stop_for_tracing()
    show_calls()


def _told() -> None:
    """Let what this process tells be seen; its other calls count once faults are allowed."""
    stop_for_tracing()
    show_calls({"write"})


def _run(task: Task) -> Outcome:
    marks = os.open(os.devnull, os.O_WRONLY)
    try:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                place = Place(Path(task.directory), task.kind)
                teller = Teller(marks, task.writer, show_calls)
                SCENARIOS[task.scenario](place, teller, _recorded if task.recording else _told)
                status = 0
            except BaseException:  # noqa: BLE001 # the child must end here, whatever it met
                traceback.print_exc()
            finally:
                os._exit(status)
        watch = _Watch(task, marks)
        status = follow(child, watch)
    except NotImplementedError as exc:
        return Outcome(status=-signal.SIGKILL, refused=str(exc))
    finally:
        os.close(marks)
    if watch.recorder is not None:
        watch.recorder.close()
        Path(task.recording).write_bytes(msgspec.msgpack.encode(watch.recorder.events))
    notes = [Note.read(text) for text in watch.texts]
    return Outcome(status=status, notes=notes, calls=watch.calls)


def read_events(path: Path) -> list[Event]:
    """What was recorded."""
    return msgspec.msgpack.decode(path.read_bytes(), type=list[Event])


class _Silent:
    """Watches and does nothing."""

    def begin(self) -> None:
        pass

    def enter(self, _call: Call) -> None:
        pass

    def waits_for(self, _call: Call) -> bool:
        return False

    def leave(self, _call: Call, _result: int) -> None:
        pass


def _obstacle() -> str:
    """Why nobody can be traced here, found by trying; nothing if it works."""
    child = os.fork()
    if child == 0:
        try:
            _recorded()
        except OSError as exc:
            os._exit(exc.errno or 1)
        os._exit(0)
    try:
        status = follow(child, _Silent())
    except OSError as exc:
        return str(exc)
    return os.strerror(status) if status else ""


def main() -> None:
    """Run one child after the other as asked."""
    sys.stdout.write(f"{_obstacle()}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        outcome = _run(Task(**json.loads(line)))
        sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
        sys.stdout.flush()


class Traced:
    """The test's end of the pipe."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, task: Task) -> Outcome:
        """Let a child carry out a task, and wait for its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(task)) + "\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=Outcome)


@contextmanager
def traced() -> Iterator[Traced]:
    """Run such a process, or skip the test where processes cannot be traced."""
    if sys.platform != "linux" or os.uname().machine not in NUMBERS:
        pytest.skip("system calls are traced on Linux, on x86-64 and 64-bit ARM only")
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.faults.traced"],
        cwd=Path(__file__).parents[4],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        obstacle = process.stdout.readline().strip()
        if obstacle:
            pytest.skip(f"system calls cannot be traced here: {obstacle}")
        yield Traced(process)


if __name__ == "__main__":
    main()
