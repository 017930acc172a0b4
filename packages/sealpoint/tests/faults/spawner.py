# SPDX-License-Identifier: Apache-2.0
"""A process that starts writers which are going to be killed, quickly and as often as needed.

Run as `python -m tests.faults.spawner`. It has imported everything and opened nothing, so that a
child made by fork is as good as a fresh process and costs a few milliseconds. It has one OS
thread. Requests are lines of JSON: a job is answered with the process id of its child; the number
of a child is answered with its exit status, negative for a signal, once it has ended.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sealpoint.errors import HeadMoved, Superseded
from sealpoint.gate import Thread
from tests.faults.places import Place
from tests.faults.steering import Steering, count_lines, steer
from tests.faults.writers import state_of

__all__ = ["Job", "Notes", "Spawner", "spawner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a child is to do until it is killed."""

    directory: str
    log: str
    writer: int
    names: tuple[str, ...]
    """The threads that are saved in turn."""
    unsteered: int = 0
    """How many saves come before the steering begins, so that a session is open."""
    saves: int = 1
    """How many saves come then; 0: until the file `stop` exists."""
    step: str = ""
    """The step at which the child kills itself."""
    line: int = 0
    """The executed line of a save at which the child kills itself; -1: only count them."""
    os_threads: int = 1
    pause_s: float = 0
    kind: str = "sqlite"


class _Log:
    """Lines that survive the death of their writer: each is handed to the system at once."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, *words: object) -> None:
        os.write(self._file, (json.dumps(words) + "\n").encode())


class Notes:
    """What the writers of one log were told, and where they were killed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bytes_read = 0
        self._read: dict[str, list[list[Any]]] = {}

    def _lines(self, word: str) -> list[list[Any]]:
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._bytes_read)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._bytes_read += len(line)
                    # Whoever was killed in the middle of a note leaves a torn one, and the next
                    # writes behind it: what follows is whole.
                    whole = line[line.rfind(b'["') :]
                    with contextlib.suppress(ValueError):
                        found = json.loads(whole)
                        self._read.setdefault(found[0], []).append(found[1:])
        return self._read.get(word, [])

    def acknowledged(self, name: str) -> dict[tuple[int, ...], int]:
        """Mark and position of every save that returned."""
        return {tuple(mark): seq for found, mark, seq in self._lines("saved") if found == name}

    def begun(self, name: str) -> set[tuple[int, ...]]:
        """The marks of all saves that were called and not refused."""
        refused = {(found, tuple(mark)) for found, mark in self._lines("refused")}
        begun = {(found, tuple(mark)) for found, mark in self._lines("begin")}
        return {mark for found, mark in begun - refused if found == name}

    def hits(self) -> list[str]:
        """The steps at which writers killed themselves."""
        return [str(step) for (step,) in self._lines("hit")]

    def executed_lines(self) -> int:
        """How many lines of the store the last counted save executed."""
        return int(self._lines("lines")[-1][0])

    def acknowledge(self, name: str, mark: tuple[int, ...], seq: int) -> None:
        """Note a save of the test itself."""
        log = _Log(str(self.path))
        log.write("begin", name, mark)
        log.write("saved", name, mark, seq)
        os.close(log._file)


def _save(log: _Log, thread: Thread, mark: list[int]) -> None:
    log.write("begin", thread.name, mark)
    try:
        ref = thread.save(state_of(mark), metadata={"mark": mark})
    except (Superseded, HeadMoved):
        log.write("refused", thread.name, mark)
        thread.load()
    else:
        log.write("saved", thread.name, mark, ref.seq)


def _work(job: Job, log: _Log, threads: Sequence[Thread], os_thread: int) -> None:
    stop = Path(job.directory) / "stop"
    counter = 0
    while job.saves == 0 or counter < job.saves:
        _save(log, threads[counter % len(threads)], [job.writer, os_thread, counter])
        counter += 1
        if job.saves == 0:
            time.sleep(job.pause_s)
            if stop.exists():
                return


def _child(job: Job) -> None:
    log = _Log(job.log)
    with Place(Path(job.directory), job.kind).open() as store:
        threads = [store.thread(name) for name in job.names]
        for counter in range(job.unsteered):
            _save(log, threads[0], [job.writer, -1, counter])
        steering = Steering(store, lambda: log.write("hit", job.step or "line"))
        if job.step:
            steer(steering, job.step)
        if job.line:
            with count_lines(steering, job.line) as counted:
                _work(job, log, threads, 0)
            log.write("lines", counted())
            return
        others = [
            threading.Thread(target=_work, args=(job, log, threads, number), daemon=True)
            for number in range(1, job.os_threads)
        ]
        for other in others:
            other.start()
        _work(job, log, threads, 0)
        for other in others:
            other.join()


def main() -> None:
    """Start and reap children as asked."""
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, int):
            answer = os.waitstatus_to_exitcode(os.waitpid(request, 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                status = 1
                try:
                    _child(Job(**request))
                    status = 0
                except BaseException:  # noqa: BLE001 # the child must end here, whatever it met
                    traceback.print_exc()
                finally:
                    os._exit(status)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


class Spawner:
    """The test's end of the pipe."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def start(self, job: Job) -> int:
        """Start a child; returns its process id."""
        return self._ask(asdict(job))

    def reap(self, child: int) -> int:
        """Wait for the end of a child; returns its exit status, negative for a signal."""
        return self._ask(child)

    def run(self, job: Job) -> int:
        """Start a child and wait for its end."""
        return self.reap(self.start(job))

    def _ask(self, request: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def spawner() -> Iterator[Spawner]:
    """Run a spawner."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.faults.spawner"],
        cwd=Path(__file__).parents[4],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Spawner(process)


if __name__ == "__main__":
    main()
