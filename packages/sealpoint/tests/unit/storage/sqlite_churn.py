# SPDX-License-Identifier: Apache-2.0
"""A store that much was written to and dropped from, marks to search its files for, and processes.

Every value is full of a mark that occurs nowhere else, so that no page with a part of it is
without one; marks begin alike, so that one pass over the files finds all of them.
"""

import hashlib
import itertools
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sealpoint.storage import Record
from sealpoint.storage.sqlite import SqliteStorage

__all__ = [
    "THREADS",
    "Churn",
    "content_of",
    "found",
    "holds_part",
    "mark_of",
    "names_beside",
    "process",
    "raw_of",
    "say",
]

THREADS = [bytes([number]) * 16 for number in range(5)]
_SIGN = b"\xf5mark\x9d"
_MARK_BYTES = 20
_MARK = re.compile(re.escape(_SIGN) + b"(?s:.{%d})" % (_MARK_BYTES - len(_SIGN)))
_PART_BYTES = 8
_SIZES_BYTES = (30, 90, 250, 700, 1500, 3000, 4100, 12_000, 40_000)
_PRELUDE = (
    "import os, signal, sys\n"
    "from pathlib import Path\n"
    "from sealpoint.storage import Record\n"
    "from sealpoint.storage.sqlite import SqliteStorage\n"
    "path, thread = Path(sys.argv[1]), bytes(range(16))\n"
)


@contextmanager
def process(program: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a program in another process; it has to end by itself when its input ends."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", _PRELUDE + program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        yield started


def say(other: "subprocess.Popen[str]", line: str) -> str:
    """Write a line to a process, and read one from it."""
    assert other.stdin is not None
    assert other.stdout is not None
    print(line, file=other.stdin, flush=True)
    return other.stdout.readline().strip()


def mark_of(*parts: object) -> bytes:
    """Bytes that occur nowhere else."""
    return _SIGN + hashlib.sha256(repr(parts).encode()).digest()[: _MARK_BYTES - len(_SIGN)]


def names_beside(path: Path) -> list[str]:
    """The names of everything in the directory of a store."""
    return sorted(each.name for each in path.parent.iterdir())


def raw_of(path: Path) -> bytes:
    """Everything in the file, its log and the index of the log; nothing else lies there."""
    assert set(names_beside(path)) <= {path.name, f"{path.name}-wal", f"{path.name}-shm"}
    return b"".join(each.read_bytes() for each in path.parent.iterdir())


def found(raw: bytes) -> set[bytes]:
    """The marks that occur in the bytes of a store's files."""
    return set(_MARK.findall(raw))


def holds_part(raw: bytes, marks: set[bytes]) -> bool:
    """Whether eight bytes in a row of any of the marks occur, as where a copy was cut off."""
    parts = {
        mark[start : start + _PART_BYTES]
        for mark in marks
        for start in range(len(_SIGN), _MARK_BYTES - _PART_BYTES + 1)
    }
    return any(raw[at : at + _PART_BYTES] in parts for at in range(len(raw)))


class Churn:
    """Writes and drops in several threads by turns, and remembers which marks are to be found.

    Small values are packed into pages, and rows of all threads lie between one another: when some
    go and others come, SQLite moves rows from page to page and leaves copies of them behind.
    """

    def __init__(self, storage: SqliteStorage) -> None:
        self.gone: set[bytes] = set()
        self.kept: set[bytes] = set()
        self._chance = random.Random(4)  # noqa: S311 # the same every time
        self._storage = storage
        self._bodies: dict[bytes, list[int]] = {thread: [] for thread in THREADS}
        self._blobs: dict[bytes, list[tuple[int, int]]] = {thread: [] for thread in THREADS}
        for step in range(120):
            thread = self._chance.choice(THREADS)
            self._append(thread, step)
            if step % 5 == 0:
                self._drop(thread)
        label = _label(THREADS[0])
        storage.drop(THREADS[0], 10**6, label=label)
        self._lose(label[:_MARK_BYTES])

    def _append(self, thread: bytes, step: int) -> None:
        blobs = {
            mark_of("digest", step, number) + bytes(12): self._filled("blob", step, number)
            for number in range(self._chance.randrange(8))
        }
        body = self._filled("body", step)
        payload = self._filled("payload", step)
        seq = len(self._bodies[thread])
        self._bodies[thread].append(step)
        self._blobs[thread] += [(step, number) for number in range(len(blobs))]
        self._storage.append(
            thread,
            seq,
            [Record(b"header", b"seals", body, payload[:12_000])],
            blobs=blobs,
            label=_label(thread),
        )
        self.kept |= {digest[:_MARK_BYTES] for digest in blobs} | {_label(thread)[:_MARK_BYTES]}

    def _drop(self, thread: bytes) -> None:
        steps, stored = self._bodies[thread], self._blobs[thread]
        lost = self._chance.sample(range(len(steps)), len(steps) // 2)
        payloads, bodies = lost[: len(lost) // 2], lost[len(lost) // 2 :]
        some = self._chance.sample(stored, len(stored) // 2)
        digests = {mark_of("digest", *each) + bytes(12) for each in some}
        self._storage.drop(thread, len(steps) - 1, payloads=payloads, bodies=bodies, blobs=digests)
        self._blobs[thread] = [each for each in stored if each not in some]
        self._lose(
            *(mark_of("payload", steps[seq]) for seq in lost),
            *(mark_of("body", steps[seq]) for seq in bodies),
            *(mark_of("blob", *each) for each in some),
            *(mark_of("digest", *each) for each in some),
        )

    def _filled(self, *parts: object) -> bytes:
        mark = mark_of(*parts)
        self.kept.add(mark)
        size_bytes = self._chance.choice(_SIZES_BYTES)
        return (mark * (size_bytes // len(mark) + 1))[:size_bytes]

    def _lose(self, *marks: bytes) -> None:
        self.gone.update(marks)
        self.kept.difference_update(marks)


def content_of(storage: SqliteStorage) -> list[object]:
    """What a storage gives of what a churn has written to it."""
    blobs = (storage.stored_blobs(thread) for thread in THREADS)
    scans = (storage.scan(thread, 0) for thread in THREADS)
    return [*itertools.chain(*scans), *itertools.chain(*blobs)]


def _label(thread: bytes) -> bytes:
    return mark_of("label", thread) + bytes(12)
