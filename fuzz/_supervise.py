# SPDX-License-Identifier: Apache-2.0
"""Starting the processes that fuzz, and finding out what became of them.

A process that crashes or stands still has found an escape too: its last case is saved, and another
process takes its place for the time that is left.
"""

import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from fuzz._session import Progress, read_staged, save_escape

__all__ = ["Job", "Run", "supervise"]

_STILL_SECONDS = 60.0
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 120.0
_BUSY_TIMES = 10
"""How much longer a process may take than it works, while others use the machine."""
_ATTEMPTS_MAX = 20
_SEED_STEP = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one process is asked to do."""

    engine: str
    program: str
    output: Path
    own: Path
    seed: int
    seconds: float
    worker: str
    """The module that is the process."""

    def command(self) -> list[str]:
        """The command line of the process."""
        return [
            *(sys.executable, "-m", self.worker, self.engine, self.program),
            *(str(self.output), str(self.own), str(self.seed), str(self.seconds)),
        ]


@dataclass(slots=True, kw_only=True)
class Run:
    """What all processes of a run did together."""

    executions: int = 0
    seconds: float = 0.0
    corpus: int = 0
    escapes: dict[str, int] = field(default_factory=dict)

    def add(self, progress: Progress) -> None:
        """Add what one process did."""
        self.executions += progress.executions
        for kind, times in progress.escapes.items():
            self.escapes[kind] = self.escapes.get(kind, 0) + times


def supervise(
    *,
    engine: str,
    output: Path,
    seed: int,
    seconds: float,
    workers: int,
    program: str = "decode",
    worker: str = "fuzz._worker",
) -> Run:
    """Fuzz for a while with some processes at once.

    Args:
        engine: `plain` or `atheris`.
        output: The folder for what is left behind; cases of an earlier run are removed from it.
        seed: Where random choices start.
        seconds: For how long each process is at work, starting apart.
        workers: How many processes.
        program: The name of the program.
        worker: The module that they run.

    Raises:
        RuntimeError: A process ended before it tried anything.
    """
    for old in ("corpus", "workers"):
        shutil.rmtree(output / old, ignore_errors=True)
    (output / "corpus").mkdir(parents=True)
    began = time.monotonic()
    jobs = [
        Job(
            engine=engine,
            program=program,
            output=output,
            own=output / "workers" / f"{number}",
            seed=seed + number,
            seconds=seconds,
            worker=worker,
        )
        for number in range(workers)
    ]
    run = Run()
    waiting = [_Process(job) for job in jobs]
    while waiting:
        time.sleep(_POLL_SECONDS)
        still: list[_Process] = []
        for process in waiting:
            end = process.poll()
            if end is None:
                still.append(process)
                continue
            run.add(process.progress)
            left = seconds - (time.monotonic() - began)
            if end:
                _record_death(process, end, run)
                if left > 1:
                    still.append(process.again(left))
        waiting = still
    run.seconds = time.monotonic() - began
    run.corpus = sum(1 for _ in (output / "corpus").iterdir())
    return run


def _record_death(process: "_Process", end: str, run: Run) -> None:
    count, data = read_staged(process.job.own)
    detail = process.errors()
    if count == 0 or process.attempt >= _ATTEMPTS_MAX:
        raise RuntimeError(f"{end} after {count} cases\n{detail}")
    save_escape(process.job.output, end, detail, data)
    run.add(Progress(escapes={end: 1}))


class _Process:
    """One process under supervision."""

    def __init__(self, job: Job, attempt: int = 0) -> None:
        self.job = job
        self.attempt = attempt
        job.own.mkdir(parents=True, exist_ok=True)
        self._log = job.own / "log"
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(job.command(), stdout=log, stderr=log)  # noqa: S603
        self._moved = time.monotonic()
        self._end = self._moved + _BUSY_TIMES * job.seconds + _GRACE_SECONDS
        self._count = 0

    @property
    def progress(self) -> Progress:
        """What it said last."""
        return Progress.read(self.job.own / "progress.json")

    def errors(self) -> str:
        """The end of what it printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def poll(self) -> str | None:
        """None while it goes on; else how it ended: nothing to say, or an escape's kind."""
        status = self._child.poll()
        now = time.monotonic()
        if status is None:
            count, _ = (
                read_staged(self.job.own) if now - self._moved > _STILL_SECONDS else (-1, b"")
            )
            if count not in (-1, self._count):
                self._count, self._moved = count, now
            elif count != -1 or now > self._end:
                self._child.kill()
                self._child.wait()
                return "the process stood still"
            return None
        if status < 0:
            return f"the process was ended by {signal.Signals(-status).name}"
        return f"the process ended with status {status}" if status else ""

    def again(self, seconds: float) -> "_Process":
        """Another process in its place, with other choices."""
        attempt = self.attempt + 1
        name = f"{self.job.own.name.partition('-')[0]}-{attempt}"
        job = replace(
            self.job,
            own=self.job.own.with_name(name),
            seed=self.job.seed + _SEED_STEP,
            seconds=seconds,
        )
        return _Process(job, attempt)
