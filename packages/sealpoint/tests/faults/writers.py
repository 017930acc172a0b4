# SPDX-License-Identifier: Apache-2.0
"""A process of several OS threads that saves as fast as it can and notes what it was told.

Run as `python -m tests.faults.writers`, with a plan as JSON in its only argument. It says `ready`
when its store is open, waits for a line, and ends with status 0 unless a save ended in anything
but success, `Superseded` or `HeadMoved`. Each OS thread notes every call in a file of its own,
right after the call returned.
"""

import itertools
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sealpoint.api import Store
from sealpoint.errors import HeadMoved, Superseded
from tests.faults.places import Place

__all__ = ["SMALL", "Call", "Plan", "calls", "race", "start", "state_of"]

_WAIT_S = 200
_PATIENCE_S = 30
_SAVES_A_TURN, _REST_S = 20, 0.05
SMALL = 1000
"""Writers from this number on save states that need no blob: an append of one statement."""
# Large enough for blobs of its own, and the same in every save: sharing them must survive a race.
_BALLAST = bytes(range(256)) * 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one process is to do."""

    directory: str
    process: int
    names: tuple[str, ...]
    os_threads: int = 4
    seconds: float = 0
    """How long to save under names drawn at random; 0: once under each name, in step."""
    saves_least: int = 0
    turns_least: int = 0
    """So often it saves, and takes its thread back, before it ends, for as long as patience lasts.
    For turns, a process rests after every few saves: who never rests may keep a thread for ever."""
    kind: str = "sqlite"
    own_stores: bool = False
    """Every OS thread opens the store itself, so that they are rivals too."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `save`, as its caller saw it."""

    name: str
    process: int
    os_thread: int
    counter: int
    session: int
    """How many sessions this process has lost on this thread before, as far as it knew."""
    began: int
    ended: int
    """Tickets of the process, drawn right before and right after the call."""
    seq: int
    """Where it was saved, or -1."""
    outcome: str

    @property
    def mark(self) -> list[int]:
        """What tells this save from every other."""
        return [self.process, self.os_thread, self.counter, self.session]


class _Process:
    """What the OS threads of one process share."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._tickets = itertools.count()
        self._lock = threading.Lock()
        self._sessions = dict.fromkeys(plan.names, 0)
        self._saves = self._turns = self._taken_back = 0
        self._is_lost = False
        self._rests_until = 0.0
        self.failures: list[str] = []

    def saved(self) -> None:
        """Note a save; the first after a loss took the thread back."""
        with self._lock:
            self._saves += 1
            if self._is_lost:
                self._is_lost = False
                self._turns += 1
                self._taken_back = next(self._tickets)
            if self.plan.turns_least and self._saves % _SAVES_A_TURN == 0:
                self._rests_until = time.monotonic() + _REST_S

    def rest(self) -> None:
        """Wait until this process has rested."""
        time.sleep(max(0.0, self._rests_until - time.monotonic()))

    def is_content(self) -> bool:
        with self._lock:
            is_enough = self._saves >= self.plan.saves_least
            return is_enough and self._turns >= self.plan.turns_least

    def ticket(self) -> int:
        with self._lock:
            return next(self._tickets)

    def session(self, name: str) -> int:
        with self._lock:
            return self._sessions[name]

    def lost(self, name: str, began: int) -> None:
        """Note that a call failed; one that began before the thread was taken back is late news."""
        with self._lock:
            self._sessions[name] += 1
            self._is_lost |= began > self._taken_back


def state_of(mark: list[int]) -> dict[str, Any]:
    """The state of a save, which says whose it is; unless it is small, with blobs of its own."""
    if mark[0] >= SMALL:
        return {"mark": mark}
    return {"mark": mark, "ballast": _BALLAST, "own": repr(mark).encode() * 1200}


def _log_path(directory: str, process: int, os_thread: int) -> Path:
    return Path(directory) / f"calls-{process}-{os_thread}"


def _run(shared: _Process, store: Store, os_thread: int, started: float) -> None:
    plan = shared.plan
    path = _log_path(plan.directory, plan.process, os_thread)
    with path.open("a", buffering=1) as log:
        for counter, name in enumerate(_names(shared, os_thread, started)):
            shared.rest()
            thread = store.thread(name)
            session = shared.session(name)
            mark = [plan.process, os_thread, counter, session]
            seq, outcome = -1, "saved"
            began = shared.ticket()
            try:
                seq = thread.save(state_of(mark), metadata={"mark": mark}).seq
            except (Superseded, HeadMoved) as exc:
                outcome = exc.code
            ended = shared.ticket()
            call = Call(name, plan.process, os_thread, counter, session, began, ended, seq, outcome)
            log.write(json.dumps(asdict(call)) + "\n")
            if outcome == "saved":
                shared.saved()
            else:
                thread.load()
                shared.lost(name, began)


def _names(shared: _Process, os_thread: int, started: float) -> Iterator[str]:
    plan = shared.plan
    if not plan.seconds:
        for step, name in enumerate(plan.names[os_thread :: plan.os_threads]):
            # The processes share this clock, so they come to a name at the same moment.
            time.sleep(max(0.0, started + step * 0.02 - time.monotonic()))
            yield name
        return
    draw = random.Random(f"{plan.process} {os_thread}")  # noqa: S311 # which thread is next
    while time.monotonic() < started + plan.seconds or (
        not shared.is_content() and time.monotonic() < started + plan.seconds + _PATIENCE_S
    ):
        yield draw.choice(plan.names)


def _guarded(shared: _Process, store: Store, os_thread: int, started: float) -> None:
    try:
        if shared.plan.own_stores:
            with closing(Place(Path(shared.plan.directory), shared.plan.kind).open()) as own:
                _run(shared, own, os_thread, started)
        else:
            _run(shared, store, os_thread, started)
    except Exception as exc:  # noqa: BLE001 # whatever it is, it is reported
        shared.failures.append(f"{type(exc).__name__}: {exc}")


def main() -> None:
    """Carry out the plan in the argument."""
    plan = Plan(**json.loads(sys.argv[1]))
    shared = _Process(plan)
    with Place(Path(plan.directory), plan.kind).open() as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        started = float(sys.stdin.readline())
        workers = [
            threading.Thread(target=_guarded, args=(shared, store, number, started))
            for number in range(plan.os_threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    if shared.failures:
        sys.exit("\n".join(shared.failures))


def start(plan: Plan) -> "subprocess.Popen[str]":
    """Start a process that will carry out a plan once it is told when."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.faults.writers", json.dumps(asdict(plan))],
        cwd=Path(__file__).parents[4],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def race(*plans: Plan) -> None:
    """Let processes carry out their plans at the same time; every one must end well."""
    with ExitStack() as stack:
        processes = [stack.enter_context(start(plan)) for plan in plans]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate(timeout=_WAIT_S)
        moment = f"{time.monotonic() + 0.1}\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(moment)
            process.stdin.flush()
        ends = [process.communicate(timeout=_WAIT_S)[1][-2000:] for process in processes]

    codes = [process.returncode for process in processes]
    assert codes == [0] * len(plans), (codes, ends)


def calls(*plans: Plan) -> list[Call]:
    """What the processes noted, OS thread by OS thread in the order of the calls."""
    return [
        Call(**json.loads(line))
        for plan in plans
        for os_thread in range(plan.os_threads)
        for line in _log_path(plan.directory, plan.process, os_thread).read_text().splitlines()
    ]


if __name__ == "__main__":
    main()
