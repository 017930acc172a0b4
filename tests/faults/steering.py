# SPDX-License-Identifier: Apache-2.0
"""How a writer is made to kill itself at one step of a save, inside the real code.

A step is reached by the wrappers of `sealpoint_testing.faults`, by SQLite's own trace of the
statements it begins, by a system call that is made to write half of what it was given, or, for
the inside of a commit, by a limit on the size of files: the system ends the process in the middle
of writing the log. Nothing is simulated after that: the process is gone. What a store of files
does inside an append are system calls, one by one: `test_kill_calls.py` reaches those.
"""

import os
import resource
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from sealpoint import disk
from sealpoint.anchor import _slot_table
from sealpoint.anchor import local as _shared
from sealpoint.api import Store
from sealpoint.storage.sqlite import SqliteStorage
from sealpoint_testing.faults import Step, crash, inject
from tests.faults.places import KINDS, core_of

__all__ = [
    "GROWTH_STEPS",
    "NEW_THREAD_STEPS",
    "SAVE_STEPS",
    "SMALL_STEPS",
    "Steering",
    "count_lines",
    "steer",
]

KindStep = tuple[str, str, bool]

_PACKAGES = tuple(
    f"{os.sep}sealpoint{os.sep}{name}{os.sep}" for name in ("store", "storage", "anchor")
)


class Steering:
    """An open store in a process that is going to kill itself."""

    def __init__(self, store: Store, hit: Callable[[], object]) -> None:
        self._storage = core_of(store).storage
        self.faults = inject(store)
        self.hit = hit

    @property
    def _sqlite(self) -> SqliteStorage:
        assert isinstance(self._storage, SqliteStorage)
        return self._storage

    @property
    def writer(self) -> sqlite3.Connection:
        """The connection of SQLite that writes."""
        writer = self._sqlite._connections._handles.writer
        assert writer is not None
        return writer

    @property
    def log_file(self) -> Path:
        """The write-ahead log of SQLite."""
        return Path(f"{self._sqlite._path}-wal")

    def die(self) -> None:
        """Say so, and be killed."""
        self.hit()
        crash()


def _at(step: Step, steering: Steering) -> None:
    steering.faults.at(step, steering.die)


def _at_statement(begin: str, steering: Steering) -> None:
    """Die when SQLite is about to run a statement that begins so."""
    steering.writer.set_trace_callback(
        lambda sql: steering.die() if sql.startswith(begin) else None
    )


def _in_commit(steering: Steering) -> None:
    """Be ended by the system while SQLite writes its log, a few thousand bytes into it."""

    def limit(sql: str) -> None:
        # What the statement changes is written when the transaction ends, its own or a larger one.
        if sql.startswith("INSERT INTO entries"):
            bytes_left = 1 + int.from_bytes(os.urandom(2), "big") % 8000
            bytes_max = steering.log_file.stat().st_size + bytes_left
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            steering.hit()
            steering.writer.set_trace_callback(None)
            resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, bytes_max))

    steering.writer.set_trace_callback(limit)


def _in_write(step: Step, part: float, steering: Steering) -> None:
    """Die in the anchor's first write after a step, with only a part of it written."""
    write = os.pwrite

    def die_writing(file: int, data: bytes, offset: int) -> int:
        write(file, data[: int(len(data) * part)], offset)
        steering.die()
        return 0

    steering.faults.at(step, lambda: setattr(os, "pwrite", die_writing))


def _around(module: Any, name: str, steering: Steering, *, before: bool) -> None:
    """Die right before or right after a function of growth."""
    function = getattr(module, name)

    def die(*args: Any, **named: Any) -> Any:
        if not before:
            function(*args, **named)
        steering.die()

    steering.faults.at(Step.BEFORE_CREATE, lambda: setattr(module, name, die))


_SAVE: dict[str, tuple[Callable[[Steering], None], bool]] = {
    "before append": (partial(_at, Step.BEFORE_APPEND), False),
    "after begin": (partial(_at_statement, "INSERT INTO entries"), False),
    "between statements": (partial(_at_statement, "INSERT INTO blobs"), False),
    "before commit": (partial(_at_statement, "COMMIT"), False),
    "inside commit": (_in_commit, False),
    "after commit": (partial(_at, Step.AFTER_APPEND), True),
    "half of the anchor's copy": (partial(_in_write, Step.BEFORE_ADVANCE, 0.5), True),
    "after the anchor": (partial(_at, Step.AFTER_ADVANCE), True),
}
_GROUP = ("between statements", "before commit")
_SQLITE_ONLY = ("after begin", "inside commit", *_GROUP)
_NEW_THREAD: dict[str, tuple[Callable[[Steering], None], bool]] = {
    "before reservation": (partial(_at, Step.BEFORE_CREATE), False),
    "half of the reservation's copy": (partial(_in_write, Step.BEFORE_CREATE, 0.5), False),
    "between the reservation's writes": (partial(_in_write, Step.BEFORE_CREATE, 1), False),
    "after reservation": (partial(_at, Step.AFTER_CREATE), False),
}
_GROWTH: dict[str, tuple[Callable[[Steering], None], bool]] = {
    "growth begins": (partial(_around, _shared, "write_table", before=True), False),
    "inside the grown file": (partial(_around, _slot_table, "_copy_slots", before=False), False),
    "grown file written": (partial(_around, _shared, "open_table", before=True), False),
    "old file marked": (partial(_around, disk, "publish", before=True), False),
    "grown file renamed": (partial(_around, disk, "publish", before=False), False),
}
_STEPS = _SAVE | _NEW_THREAD | _GROWTH


def _steps(steps: dict[str, tuple[Callable[[Steering], None], bool]]) -> tuple[KindStep, ...]:
    return tuple(
        (kind, step, stands)
        for kind in KINDS
        for step, (_, stands) in steps.items()
        if kind == "sqlite" or step not in _SQLITE_ONLY
    )


SAVE_STEPS = _steps(_SAVE)
"""The steps of every save by backend, with whether the checkpoint stands after a kill there."""
SMALL_STEPS = tuple(found for found in SAVE_STEPS if found[1] not in _GROUP)
"""Those of a save that is a transaction of one statement."""
NEW_THREAD_STEPS = _steps(_NEW_THREAD)
GROWTH_STEPS = _steps(_GROWTH)


def steer(steering: Steering, step: str) -> None:
    """Let the process die at a step of what it saves next."""
    _STEPS[step][0](steering)


@contextmanager
def count_lines(steering: Steering, line: int) -> Iterator[Callable[[], int]]:
    """Count the lines of store, storage and anchor that are executed, and die at one of them.

    Args:
        steering: The process.
        line: The number of the line to die at; less than 1: only count.
    """
    counted = 0

    def each_line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal counted
        if event == "line":
            counted += 1
            if counted == line:
                steering.die()
        return each_line

    def each_call(frame: FrameType, _event: str, _argument: object) -> Any:
        inside = any(package in frame.f_code.co_filename for package in _PACKAGES)
        return each_line if inside else None

    sys.settrace(each_call)
    try:
        yield lambda: counted
    finally:
        sys.settrace(None)
